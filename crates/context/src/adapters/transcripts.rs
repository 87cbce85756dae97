//! What the transcripts of coding agents share: one JSON object a line, some of them with a message under one member, and
//! others that are not part of the conversation.
//!
//! The lines without a message, and members that repeat what a message says, are kept in the document around the
//! conversation with the numbers of their lines. A session does not have them, so it holds no second copy of a result.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};

use super::Conversation;
use super::error::{AdapterError, object, parse};
use super::recognise::{check_utf8, lines};
use super::spans::left_out;
use super::wire::{Dialect, Reader};
use super::writer::Writer;
use contextweaver_core::text::sha256_hex;

/// The members of a line.
pub(super) type Line = Map<String, Value>;

/// Reads a message with these members, at this place.
type ReadMessage = fn(Map<String, Value>, &str, &mut Reader) -> Result<(), AdapterError>;

/// What differs between transcripts.
pub(super) struct Transcript {
    pub(super) dialect: Dialect,
    /// The member of a line that is its message.
    pub(super) inside: &'static str,
    /// Members of a line that repeat the message in another form.
    pub(super) repeats: &'static [&'static str],
    /// Whether the line has a message; the message is an object then.
    pub(super) has_message: fn(&Map<String, Value>) -> bool,
    /// Whether the line is of a conversation beside the main one.
    pub(super) is_aside: fn(&Map<String, Value>) -> bool,
    /// The places of messages of branches that the conversation left. It gets all lines, and the places of the messages.
    pub(super) abandoned: fn(&[Line], &[usize]) -> HashSet<usize>,
    /// Reads a message.
    pub(super) read: ReadMessage,
}

const OTHERS: &str = "other_lines";
const REPEATS: &str = "repeats";

impl Transcript {
    /// Reads the lines of a transcript.
    pub(super) fn read(&self, bytes: &[u8]) -> Result<Conversation, AdapterError> {
        check_utf8(bytes)?;
        let mut reader = Reader::new(self.dialect);
        let (mut others, mut repeats) = (Map::new(), Map::new());
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let (mut asides, mut left) = (0usize, 0usize);
        let (mut numbers, mut read) = (Vec::new(), Vec::new());
        for line in lines(bytes) {
            let (number, line) = line?;
            let place = format!("line {number}");
            read.push(object(parse(line, &place)?, &place)?);
            numbers.push(number);
        }
        let messages = || read.iter().enumerate().filter(|(_, line)| (self.has_message)(line));
        // A transcript of nothing but a conversation beside another one is about that conversation.
        let is_aside = messages().all(|(_, line)| (self.is_aside)(line));
        let main = messages().filter(|(_, line)| (self.is_aside)(line) == is_aside).map(|(position, _)| position);
        let abandoned = (self.abandoned)(&read, &main.collect::<Vec<_>>());
        for (position, (number, mut line)) in numbers.into_iter().zip(read).enumerate() {
            let place = format!("line {number}");
            if !(self.has_message)(&line) {
                *counts.entry(super::session_lines::kind_of(&Value::from(line.clone()))).or_default() += 1;
                others.insert(position.to_string(), line.into());
                continue;
            }
            let of_another = (self.is_aside)(&line) != is_aside;
            if of_another || abandoned.contains(&position) {
                *(if of_another { &mut asides } else { &mut left }) += 1;
                others.insert(position.to_string(), line.into());
                continue;
            }
            let taken: Map<String, Value> = self.repeats.iter().filter_map(|key| taken(&mut line, key)).collect();
            if !taken.is_empty() {
                repeats.insert(position.to_string(), taken.into());
            }
            let Some(message @ Value::Object(_)) = line.get_mut(self.inside) else { continue };
            let message = object(message.take(), &place)?;
            reader.enclose(line.into(), self.inside);
            (self.read)(message, &format!("{place}.{}", self.inside), &mut reader)?;
        }
        let document = [(OTHERS, others), (REPEATS, repeats)].into_iter().filter(|(_, lines)| !lines.is_empty());
        let document: Map<String, Value> = document.map(|(key, lines)| (key.to_owned(), lines.into())).collect();
        let mut conversation = reader.finish(Some(document).filter(|document| !document.is_empty()));
        conversation.remarks.extend(left_out("lines that are not messages", &counts));
        if asides > 0 {
            conversation.remarks.push(format!("messages of conversations beside the main one were left out: {asides}"));
        }
        if left > 0 {
            conversation.remarks.push(format!("messages of abandoned branches were left out: {left}"));
        }
        Ok(conversation)
    }

    /// Writes the lines of a transcript. `make` completes the lines that were made from events of other formats; it gets
    /// the line before it.
    pub(super) fn write(
        writer: &Writer,
        conversation: &Conversation,
        complete: fn(&mut Value, Option<&Value>, usize),
    ) -> Result<String, AdapterError> {
        let member = |key: &str| conversation.document.as_ref().and_then(|document| document.get(key)?.as_object());
        let others = member(OTHERS);
        let mut written: Vec<Value> = Vec::new();
        let put_others = |written: &mut Vec<Value>| {
            while let Some(other) = others.and_then(|others| others.get(&written.len().to_string())) {
                written.push(other.clone());
            }
        };
        for (mut line, fresh) in writer.lines(conversation)? {
            put_others(&mut written);
            if fresh {
                complete(&mut line, written.last(), written.len());
            }
            if let Some(repeats) = member(REPEATS).and_then(|lines| lines.get(&written.len().to_string())?.as_object())
            {
                repeats.iter().for_each(|(key, value)| line[key.as_str()] = value.clone());
            }
            written.push(line);
        }
        put_others(&mut written);
        Ok(written.iter().map(|line| format!("{line}\n")).collect())
    }
}

/// The value of a member, and nothing in its place.
fn taken(line: &mut Map<String, Value>, key: &str) -> Option<(String, Value)> {
    let value = line.get_mut(key).filter(|value| !value.is_null())?;
    Some((key.to_owned(), value.take()))
}

/// An id in the form of a UUID, the same for the same text.
pub(super) fn uuid_of(text: &str) -> String {
    let digest = sha256_hex(text.as_bytes());
    let piece = |from: usize, to: usize| digest.get(from..to).unwrap_or_default();
    format!("{}-{}-8{}-8{}-{}", piece(0, 8), piece(8, 12), piece(12, 15), piece(15, 18), piece(18, 30))
}

/// A text as the only part of a message.
pub(super) fn as_parts(content: Value, kind: &str) -> Value {
    match content {
        Value::String(text) => json!([{"type": kind, "text": text}]),
        other => other,
    }
}

//! What traces share: calls of models that each repeat the conversation before them, and calls of tools beside.
//!
//! Both become messages of OpenAI's chat, each once, in the order in which they were first said. What a model is sent is
//! laid beside what an earlier one was sent and answered: what both have in the same order was said before. Words alone
//! are no sign of that. Who says `yes` twice says it twice, so messages in which nobody answered yet are new, unless
//! they go on from those of an earlier call, or are asked again under other rules.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value, json};

use super::error::AdapterError;
use super::wire::{Dialect, IS_ERROR, KEY, Opening, wire_of};
use super::writer::{Writer, failed};
use super::{Conversation, Event, from_openai_chat, openai};
use crate::event::{ContextItem, ItemKind};
use crate::literal::Document;

/// Turns with the same answer that are compared, at most.
const MOST_TURNS: usize = 8;

/// The messages of a trace so far.
#[derive(Debug, Default)]
pub(super) struct Messages {
    said: Vec<Value>,
    /// Messages by what makes two of them the same.
    numbers: HashMap<String, usize>,
    /// What each model was sent and answered, in order.
    turns: Vec<Known>,
    /// The turns that a message ends, the last that begins with it, and the one that is from a span.
    ended: HashMap<usize, Vec<usize>>,
    began: HashMap<usize, usize>,
    spans: HashMap<String, usize>,
    rules: HashSet<usize>,
    called: HashSet<String>,
    answered: HashSet<String>,
    /// The ids under which calls were said that have another one here.
    aliases: HashMap<String, String>,
    /// Calls in order, by name and arguments, by name, and all of them. Those that have a result are dropped when they
    /// are met.
    waiting: HashMap<(String, String), VecDeque<String>>,
    waiting_by_name: HashMap<String, VecDeque<String>>,
    waiting_at_all: VecDeque<String>,
    /// Calls of which no model spoke yet, by name and arguments.
    unsaid: HashMap<(String, String), VecDeque<String>>,
}

/// One call of a model, in messages of OpenAI's chat. Calls and results that have no id have none there either.
#[derive(Debug)]
pub(super) struct Turn<'t> {
    /// What it was sent.
    pub(super) sent: Vec<Value>,
    /// What it answered.
    pub(super) answered: Vec<Value>,
    /// The span or run.
    pub(super) from: &'t str,
    /// The span or run around it: one that says the same is the same call, recorded twice.
    pub(super) within: Option<&'t str>,
}

/// A turn that was read, without its rules.
#[derive(Debug, Default)]
struct Known {
    messages: Vec<Entry>,
    /// How many of them were sent.
    sent: usize,
    rules: Vec<usize>,
}

/// A message of a turn, and the ids of its calls.
#[derive(Debug, Clone, Default)]
struct Entry {
    number: usize,
    calls: Vec<String>,
}

/// What a trace says of a call of a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolRun<'v> {
    /// The id of the call, where the trace knows it.
    pub(super) id: Option<&'v str>,
    pub(super) name: &'v str,
    pub(super) arguments: &'v Value,
    pub(super) result: Option<&'v Value>,
    /// Whether it failed.
    pub(super) failed: bool,
}

/// The member of a message that says which span or run it is from.
pub(super) const FROM: &str = "from";

impl Messages {
    /// Adds what one call of a model was sent and what it answered, without what was there before.
    pub(super) fn turn(&mut self, turn: Turn) {
        let Turn { sent, answered, from, within } = turn;
        let sent: Vec<(usize, Value)> = sent.into_iter().map(|message| (self.number(&message), message)).collect();
        let mut answered: Vec<(usize, Value)> =
            answered.into_iter().map(|message| (self.number(&message), message)).collect();
        // Some answers repeat the question.
        if !sent.is_empty() && answered.len() > sent.len() && numbers(&answered).take(sent.len()).eq(numbers(&sent)) {
            answered.drain(..sent.len());
        }
        let rules: Vec<usize> =
            sent.iter().filter(|(_, message)| is_rule(message)).map(|(number, _)| *number).collect();
        let spoken: Vec<usize> =
            sent.iter().filter(|(_, message)| !is_rule(message)).map(|(number, _)| *number).collect();
        let is_answered = sent.iter().any(|(_, message)| message["role"] == "assistant");
        let outer = within
            .and_then(|id| self.spans.get(id).copied())
            .filter(|&outer| self.sent_in(outer).eq(spoken.iter().copied()));
        let before: Vec<Option<Entry>> = match outer {
            Some(outer) => self.turns[outer].messages.iter().take(spoken.len()).cloned().map(Some).collect(),
            None if is_answered => self.repeated(&spoken),
            None => self.begun(&spoken, &rules),
        };
        let mut known = Known { rules, ..Known::default() };
        let mut open = Open::default();
        let mut before = before.into_iter();
        for (number, message) in sent {
            if is_rule(&message) {
                if self.rules.insert(number) {
                    self.say(message, from, true);
                }
                continue;
            }
            let entry = match before.next().flatten() {
                Some(entry) => entry,
                None => Entry { number, calls: self.say_in(&mut open, message.clone(), from, true) },
            };
            open.add(&message, &entry.calls);
            known.messages.push(entry);
        }
        known.sent = known.messages.len();
        let mut already = outer.map_or_else(VecDeque::new, |outer| {
            let outer = &self.turns[outer];
            outer.messages.iter().skip(outer.sent).cloned().collect::<VecDeque<Entry>>()
        });
        for (number, message) in answered {
            let entry = match already.pop_front() {
                Some(entry) if entry.number == number => entry,
                _ => Entry { number, calls: self.say_in(&mut open, message, from, false) },
            };
            known.messages.push(entry);
        }
        let turn = self.turns.len();
        if let (Some(first), Some(last)) = (known.messages.first(), known.messages.last()) {
            self.began.insert(first.number, turn);
            if known.messages.len() > known.sent {
                self.ended.entry(last.number).or_default().push(turn);
            }
        }
        self.spans.insert(from.to_owned(), turn);
        self.turns.push(known);
    }

    fn number(&mut self, message: &Value) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(key_of(message)).or_insert(next)
    }

    fn sent_in(&self, turn: usize) -> impl Iterator<Item = usize> {
        self.turns
            .get(turn)
            .into_iter()
            .flat_map(|known| known.messages.iter().take(known.sent))
            .map(|entry| entry.number)
    }

    /// What of the messages that a model was sent was said in an earlier turn, where somebody answered in them: the turn
    /// whose answer is in them last, otherwise one that begins like them, or the last one. Of several turns with this
    /// answer, the one with most of the messages.
    fn repeated(&self, spoken: &[usize]) -> Vec<Option<Entry>> {
        let ended = spoken.iter().rev().find_map(|number| self.ended.get(number));
        let began = || spoken.first().and_then(|first| self.began.get(first).copied());
        let Some(ended) = ended else {
            let turn = began().or_else(|| self.turns.len().checked_sub(1));
            return turn.map_or_else(Vec::new, |turn| self.repeated_of(spoken, turn, false));
        };
        let last = ended.iter().rev().take(MOST_TURNS);
        let repeated = last.map(|&turn| self.repeated_of(spoken, turn, true));
        let count = |before: &Vec<Option<Entry>>| before.iter().flatten().count();
        // The last turn of those that are alike.
        repeated.reduce(|one, earlier| if count(&earlier) > count(&one) { earlier } else { one }).unwrap_or_default()
    }

    /// What of the messages was said in this turn, whose answer is among them where `has_answer` says so.
    fn repeated_of(&self, spoken: &[usize], turn: usize, has_answer: bool) -> Vec<Option<Entry>> {
        let mut before = vec![None; spoken.len()];
        let Some(Known { messages, .. }) = self.turns.get(turn) else { return before };
        let known: Vec<usize> = messages.iter().map(|entry| entry.number).collect();
        // What stands behind the answer is new. What stands before it may have been shortened.
        let (end, same) = if has_answer { common_end(spoken, &known) } else { (spoken.len(), 0) };
        for back in 0..same {
            before[end - 1 - back] = Some(messages[known.len() - 1 - back].clone());
        }
        let mut places: HashMap<usize, VecDeque<usize>> = HashMap::new();
        for (place, number) in known[..known.len() - same].iter().enumerate() {
            places.entry(*number).or_default().push_back(place);
        }
        let mut next = 0;
        for (number, before) in spoken[..end - same].iter().zip(&mut before) {
            let Some(places) = places.get_mut(number) else { continue };
            while places.front().is_some_and(|place| *place < next) {
                places.pop_front();
            }
            if let Some(place) = places.pop_front() {
                *before = Some(messages[place].clone());
                next = place + 1;
            }
        }
        before
    }

    /// What of the messages that a model was sent was said in an earlier turn, where nobody answered in them.
    fn begun(&self, spoken: &[usize], rules: &[usize]) -> Vec<Option<Entry>> {
        let mut before = vec![None; spoken.len()];
        let turn = spoken.first().and_then(|first| self.turns.get(*self.began.get(first)?));
        let Some(Known { messages, sent, rules: others }) = turn else { return before };
        let begins = messages.iter().take(*sent).map(|entry| &entry.number).eq(spoken.iter().take(*sent));
        let was_answered = messages.len() > *sent;
        if begins && (spoken.len() > *sent || !was_answered || others != rules) {
            before
                .iter_mut()
                .zip(messages.iter().take(*sent))
                .for_each(|(before, entry)| *before = Some(entry.clone()));
        }
        before
    }

    /// Says a message of a turn. A result without an id answers the first call of the turn that waits for one, otherwise
    /// the first of all.
    fn say_in(&mut self, open: &mut Open, mut message: Value, from: &str, was_sent: bool) -> Vec<String> {
        if message["role"] == "tool" && id_in(&message, "tool_call_id").is_none() {
            let call = open.first().or_else(|| first_unanswered(&mut self.waiting_at_all, &self.answered));
            message["tool_call_id"] = call.unwrap_or_else(|| self.made_up(from)).into();
        }
        self.say(message, from, was_sent)
    }

    /// An id for a call that has none.
    fn made_up(&self, from: &str) -> String {
        let mut number = self.called.len();
        loop {
            let id = format!("{from}:{number}");
            if !self.called.contains(&id) && !self.answered.contains(&id) {
                return id;
            }
            number += 1;
        }
    }

    /// Says a message, and returns the ids of its calls. What a model was sent happened before it was asked.
    fn say(&mut self, mut message: Value, from: &str, was_sent: bool) -> Vec<String> {
        let mut ids = Vec::new();
        if let Some(id) = id_in(&message, "tool_call_id") {
            let id = self.aliases.get(id).map_or(id, String::as_str).to_owned();
            message["tool_call_id"] = id.as_str().into();
            if !self.answered.insert(id) {
                return ids;
            }
        }
        if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
            let mut fresh = Vec::new();
            for mut call in std::mem::take(calls) {
                let (id, is_new) = self.call(&mut call, from, was_sent);
                ids.push(id);
                fresh.extend(is_new.then_some(call));
            }
            let is_silent = fresh.is_empty() && message.get("content").is_none_or(Value::is_null);
            message["tool_calls"] = fresh.into();
            if is_silent {
                return ids;
            }
        }
        if let Value::Object(members) = &mut message {
            members.insert(FROM.to_owned(), from.into());
        }
        self.said.push(message);
        ids
    }

    /// The id of a call, and whether it was not said before.
    fn call(&mut self, call: &mut Value, from: &str, was_sent: bool) -> (String, bool) {
        let said = id_in(call, "id").map(str::to_owned);
        if let Some(id) = &said {
            if let Some(alias) = self.aliases.get(id) {
                return (alias.clone(), false);
            }
            if self.called.contains(id) {
                return (id.clone(), false);
            }
        }
        let what = what_is_called(call);
        let unsaid = self.unsaid.get_mut(&what).filter(|_| was_sent);
        if let Some(known) = unsaid.and_then(VecDeque::pop_front) {
            self.aliases.extend(said.map(|id| (id, known.clone())));
            return (known, false);
        }
        let id = said.unwrap_or_else(|| self.made_up(from));
        if call.is_object() {
            call["id"] = id.as_str().into();
        }
        self.called.insert(id.clone());
        self.waiting_by_name.entry(what.0.clone()).or_default().push_back(id.clone());
        self.waiting.entry(what).or_default().push_back(id.clone());
        self.waiting_at_all.push_back(id.clone());
        (id, true)
    }

    /// Adds a call of a tool, unless a model has said it, and its result, unless a model was told it. A call without an id
    /// is the first with its name and arguments that waits for a result, otherwise the first of its name.
    pub(super) fn tool(&mut self, run: &ToolRun, from: &str) {
        let ToolRun { id, name, arguments, result, failed } = *run;
        let id = id.map(|id| self.aliases.get(id).map_or(id, String::as_str).to_owned()).or_else(|| {
            let exact = self.waiting.get_mut(&(name.to_owned(), form_of(arguments)));
            let exact = exact.and_then(|waiting| first_unanswered(waiting, &self.answered));
            exact.or_else(|| first_unanswered(self.waiting_by_name.get_mut(name)?, &self.answered))
        });
        let id = id.unwrap_or_else(|| from.to_owned());
        if !self.called.contains(&id) {
            let call = call(Some(&id), name, arguments);
            let what = what_is_called(&call);
            self.say(json!({"role": "assistant", "content": null, "tool_calls": [call]}), from, false);
            self.unsaid.entry(what).or_default().push_back(id.clone());
        }
        if let Some(result) = result {
            let mut message = json!({"role": "tool", "content": returned(result), "tool_call_id": id});
            if failed {
                message[IS_ERROR] = true.into();
            }
            self.say(message, from, false);
        }
    }

    /// The conversation.
    pub(super) fn finish(self) -> Result<Conversation, AdapterError> {
        from_openai_chat(Value::Array(self.said))
    }
}

/// The calls of a turn that have no result in it so far.
#[derive(Debug, Default)]
struct Open {
    calls: VecDeque<String>,
    answered: HashSet<String>,
}

impl Open {
    fn add(&mut self, message: &Value, calls: &[String]) {
        self.calls.extend(calls.iter().cloned());
        if message["role"] == "tool" {
            match id_in(message, "tool_call_id") {
                Some(id) => drop(self.answered.insert(id.to_owned())),
                None => drop(self.first().map(|id| self.answered.insert(id))),
            }
        }
    }

    fn first(&mut self) -> Option<String> {
        first_unanswered(&mut self.calls, &self.answered)
    }
}

/// The first of `calls` that has no result; those before it are dropped.
fn first_unanswered(calls: &mut VecDeque<String>, answered: &HashSet<String>) -> Option<String> {
    while calls.front().is_some_and(|id| answered.contains(id)) {
        calls.pop_front();
    }
    calls.front().cloned()
}

fn numbers(messages: &[(usize, Value)]) -> impl Iterator<Item = usize> {
    messages.iter().map(|(number, _)| *number)
}

/// Where in `spoken` the longest end of `known` ends, and its length: the last such place, or the end of `spoken`.
fn common_end(spoken: &[usize], known: &[usize]) -> (usize, usize) {
    // Both from their ends, so that what is looked for is a beginning; no message has the number between them.
    let line: Vec<usize> =
        known.iter().rev().copied().chain([usize::MAX]).chain(spoken.iter().rev().copied()).collect();
    let mut lengths = vec![0; line.len()];
    let (mut left, mut right) = (0, 0);
    let (mut end, mut longest) = (spoken.len(), 0);
    for place in 1..line.len() {
        let mut length = if place < right { lengths[place - left].min(right - place) } else { 0 };
        while place + length < line.len() && line[length] == line[place + length] {
            length += 1;
        }
        lengths[place] = length;
        if place + length > right {
            (left, right) = (place, place + length);
        }
        if place > known.len() && length > longest {
            longest = length;
            end = spoken.len() - (place - known.len() - 1);
        }
    }
    (end, longest)
}

fn is_rule(message: &Value) -> bool {
    message["role"] == "system" || message["role"] == "developer"
}

/// An id that is there.
fn id_in<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str().filter(|id| !id.is_empty())
}

/// The name and the arguments of a call.
fn what_is_called(call: &Value) -> (String, String) {
    let name = call.pointer("/function/name").and_then(Value::as_str).unwrap_or_default();
    let arguments = call.pointer("/function/arguments").unwrap_or(&Value::Null);
    (name.to_owned(), form_of(arguments))
}

/// Arguments in one notation, whatever the order of their names: JSON, a text of JSON and a literal of Python are the same.
fn form_of(arguments: &Value) -> String {
    let text = as_text(arguments);
    let json =
        Document::parse_any(&text).ok().and_then(|document| document.root().minified(text.len().saturating_mul(6)));
    let value = json.and_then(|json| serde_json::from_str(&json).ok());
    value.map_or(text, |value| sorted(value).to_string())
}

/// The value with the members of objects in order.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(sorted).collect(),
        Value::Object(mut members) => {
            members.sort_keys();
            members.into_iter().map(|(key, value)| (key, sorted(value))).collect()
        }
        other => other,
    }
}

/// What makes two messages the same: the ids of calls and results; where there is none, what is said, called or returned.
fn key_of(message: &Value) -> String {
    let said = words(&message["content"]);
    if message["role"] == "tool" {
        return match id_in(message, "tool_call_id") {
            Some(id) => format!("result {id}"),
            None => format!("results in {said}"),
        };
    }
    let calls = message.get("tool_calls").and_then(Value::as_array).filter(|calls| !calls.is_empty());
    match calls {
        Some(calls) => {
            let keys = calls.iter().map(|call| match id_in(call, "id") {
                Some(id) => format!("call {id} "),
                None => format!("call of {:?} {said:?} ", what_is_called(call)),
            });
            keys.collect()
        }
        None => format!("{} {said}", message["role"]),
    }
}

/// What can be told of a content whether it comes as a text or as parts; thoughts are often left out when it is repeated.
fn words(content: &Value) -> String {
    let Some(parts) = content.as_array() else { return as_text(content) };
    let kind = |part: &Value, kind: &str| part.get("type").is_some_and(|found| found == kind);
    let said: Vec<&Value> = parts.iter().filter(|part| !kind(part, "reasoning")).collect();
    match said.iter().map(|part| part.get("text")?.as_str().filter(|_| kind(part, "text"))).collect::<Option<Vec<_>>>()
    {
        Some(texts) if !texts.is_empty() => texts.concat(),
        _ => content.to_string(),
    }
}

/// A call in a message of OpenAI's chat.
pub(super) fn call(id: Option<&str>, name: &str, arguments: &Value) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": as_text(arguments)}})
}

/// A text as it is, other values as JSON.
pub(super) fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What a call returned as the content of a message: parts as they are, any other value as a text.
pub(super) fn returned(result: &Value) -> Value {
    let is_part = |part: &Value| part.get("type").is_some_and(Value::is_string);
    match result {
        Value::Array(parts) if !parts.is_empty() && parts.iter().all(is_part) => result.clone(),
        other => as_text(other).into(),
    }
}

/// The JSON in a text, or the text.
pub(super) fn as_json(text: &Value) -> Value {
    text.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| text.clone())
}

/// Message parts as the content of a message: a single text is a string.
pub(super) fn content(mut parts: Vec<Value>) -> Value {
    let single = parts.len() == 1 && parts[0].get("type").is_some_and(|kind| kind == "text");
    let text = parts.first_mut().filter(|_| single).and_then(|part| part.get_mut("text")).map(Value::take);
    match text {
        Some(text @ Value::String(_)) => text,
        _ if parts.is_empty() => Value::Null,
        _ => parts.into(),
    }
}

/// Writes messages of OpenAI's chat that no provider gets: calls keep their ids and names, and results their pictures.
pub(super) const WRITER: Writer =
    Writer { fresh: Some(fresh), pictures_in_results: true, calls: None, ..openai::WRITER };

fn fresh(item: &ContextItem, content: &Value) -> Value {
    let mut message = openai::fresh(item, content);
    if item.kind == ItemKind::ToolResult && failed(item) {
        message[IS_ERROR] = true.into();
    }
    message
}

/// The messages of a conversation, and the last of them apart where a model says it.
pub(super) fn split(conversation: &Conversation) -> Result<(Vec<Value>, Option<Value>), AdapterError> {
    let bare = Conversation { events: newer(conversation)?, ..Conversation::default() };
    let Value::Array(mut messages) = WRITER.write(&bare)? else { return Ok((Vec::new(), None)) };
    for members in messages.iter_mut().filter_map(Value::as_object_mut) {
        members.shift_remove(FROM);
    }
    let last = messages.pop_if(|message| message.get("role").is_some_and(|role| role == "assistant"));
    Ok((messages, last))
}

/// The events without what is kept of messages with the older form of calls, which traces do not have.
fn newer(conversation: &Conversation) -> Result<Vec<Event>, AdapterError> {
    let mut is_older = HashMap::new();
    let mut events = conversation.events.clone();
    for Event { item, .. } in &mut events {
        let Some(wire) = wire_of(item)?.filter(|wire| wire.format == Dialect::OpenaiChat) else { continue };
        if let Some(Opening { value, .. }) = wire.opens {
            is_older.insert(wire.message, value["role"] == "function" || value["function_call"].is_object());
        }
        if is_older.get(&wire.message) == Some(&true) {
            item.metadata.shift_remove(KEY);
        }
    }
    Ok(events)
}

/// The documents of a file: one, or one a line.
pub(super) fn documents(document: Value) -> Vec<Value> {
    match document {
        Value::Array(documents) => documents,
        document => vec![document],
    }
}

/// A remark about what was left out, by kind.
pub(super) fn left_out(what: &str, counts: &std::collections::BTreeMap<String, usize>) -> Option<String> {
    let counts: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    (!counts.is_empty()).then(|| format!("{what} were left out: {}", counts.join(", ")))
}

/// A member that is an object, if it is there.
pub(super) fn object_at<'v>(value: &'v Value, key: &str) -> Option<&'v Map<String, Value>> {
    value.get(key)?.as_object()
}

//! Takes the messages of a provider's document apart into events, and puts them together again.
//!
//! A message becomes one event per part. The content that an event carries itself (its text) is taken out of the
//! message; the rest stays in the event's metadata under one key, with a JSON Pointer to where the text was. Putting
//! messages together is then the same for every format, and exact by construction: members that a format's reader does
//! not know were never touched. Formats that say the same thing at several places of a message (LangChain, Pydantic AI)
//! leave the parts where they are and take only the contents. An event without such metadata (from another format, or made in code) becomes a message
//! of its own.

use std::collections::{HashMap, HashSet, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::error::{AdapterError, shown};
use super::{Conversation, Event};
use crate::event::{ContextItem, ItemId, ItemKind, ToolOutput};

/// The metadata key with the rest of a message.
const KEY: &str = "wire";

/// The metadata key of a call with the name of what is called; the text of the call is then only the arguments.
pub(super) const FUNCTION_NAME: &str = "function_name";

/// The format that a message is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Dialect {
    OpenaiChat,
    OpenaiResponses,
    Anthropic,
    Gemini,
    Recorded,
    #[serde(rename = "langchain")]
    LangChain,
    PydanticAi,
    ClaudeCode,
    Codex,
}

/// The rest of a message that is kept for one of its events.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    format: Dialect,
    /// The number of the message in the document, from 0: events of one message belong together.
    message: usize,
    /// The message without its parts, on the first of its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    opens: Option<Opening>,
    /// The part, for messages that have parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<PartOf>,
    /// The place of the event's content in the part (or in a message without parts).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<Hole>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Opening {
    value: Value,
    /// The member of the document that is this message; `None` for a message of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    member: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartOf {
    /// The JSON Pointer to the list of parts in the message.
    list: String,
    value: Value,
}

/// The place from which an event's content was taken.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hole {
    at: String,
    holds: Holds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Holds {
    /// The text of the item, as a string.
    Text,
    /// The text of the item, as the JSON that it is.
    Json,
    /// The output of the event.
    Output,
}

/// The content of an event, after it was taken out of a part or a message.
#[derive(Debug)]
pub(super) struct Content {
    text: String,
    hole: Option<Hole>,
    output: Option<ToolOutput>,
}

impl Content {
    /// Takes the string at `at` out of `rest`; without one, nothing is taken and `otherwise` is the text.
    pub(super) fn text(rest: &mut Value, at: &str, otherwise: impl FnOnce(&Value) -> String) -> Self {
        match rest.pointer_mut(at) {
            Some(place @ Value::String(_)) => {
                let text = match place.take() {
                    Value::String(text) => text,
                    _ => String::new(),
                };
                Self { text, hole: Some(Hole { at: at.to_owned(), holds: Holds::Text }), output: None }
            }
            _ => Self::nothing(otherwise(rest)),
        }
    }

    /// Takes the value at `at` out of `rest` as compact JSON; without one, nothing is taken and `otherwise` is the text.
    pub(super) fn json(rest: &mut Value, at: &str, otherwise: impl FnOnce(&Value) -> String) -> Self {
        let Some(place) = rest.pointer_mut(at) else { return Self::nothing(otherwise(rest)) };
        let text = place.to_string();
        // A number may lose its last digit on the way through text; such a value stays where it is.
        let exact = serde_json::from_str::<Value>(&text).is_ok_and(|read| read == *place);
        let hole = exact.then(|| {
            *place = Value::Null;
            Hole { at: at.to_owned(), holds: Holds::Json }
        });
        Self { text, hole, output: None }
    }

    /// Takes the arguments of a call at `at` out of `rest`: a text as it is, other values as JSON.
    pub(super) fn arguments(rest: &mut Value, at: &str) -> Self {
        let none = |_: &Value| "{}".to_owned();
        match rest.pointer(at) {
            Some(Value::String(_) | Value::Null) | None => Self::text(rest, at, none),
            Some(_) => Self::json(rest, at, none),
        }
    }

    /// Takes the value at `at` out of `rest`, which `read` converts into an output.
    pub(super) fn output(
        rest: &mut Value,
        at: &str,
        read: impl FnOnce(Value) -> Result<ToolOutput, AdapterError>,
    ) -> Result<Self, AdapterError> {
        let value = rest.pointer_mut(at).map(Value::take).unwrap_or_default();
        let output = read(value)?;
        let hole = Some(Hole { at: at.to_owned(), holds: Holds::Output });
        Ok(Self { text: super::blocks::text_of(&output), hole, output: Some(output) })
    }

    /// A text that stands for what nothing was taken of.
    pub(super) fn nothing(text: impl Into<String>) -> Self {
        Self { text: text.into(), hole: None, output: None }
    }
}

/// A part, or a message without parts, and the content that was taken out of it.
#[derive(Debug)]
pub(super) struct Taken {
    rest: Value,
    content: Content,
}

impl Taken {
    /// As [`Content::text`].
    pub(super) fn text(mut rest: Value, at: &str, otherwise: impl FnOnce(&Value) -> String) -> Self {
        let content = Content::text(&mut rest, at, otherwise);
        Self { rest, content }
    }

    /// As [`Content::json`].
    pub(super) fn json(mut rest: Value, at: &str, otherwise: impl FnOnce(&Value) -> String) -> Self {
        let content = Content::json(&mut rest, at, otherwise);
        Self { rest, content }
    }

    /// As [`Content::output`].
    pub(super) fn output(
        mut rest: Value,
        at: &str,
        read: impl FnOnce(Value) -> Result<ToolOutput, AdapterError>,
    ) -> Result<Self, AdapterError> {
        let content = Content::output(&mut rest, at, read)?;
        Ok(Self { rest, content })
    }

    /// Takes nothing; `describe` makes the text.
    pub(super) fn nothing(rest: Value, describe: impl FnOnce(&Value) -> String) -> Self {
        let content = Content::nothing(describe(&rest));
        Self { rest, content }
    }
}

/// One event of a message that keeps its parts: only the content was taken out of it.
#[derive(Debug)]
pub(super) enum Piece {
    /// What somebody said.
    Said(ItemKind, Content),
    /// A call, with the id that the provider gave it, where it has one.
    Call { id: Option<String>, name: String, content: Content },
    /// The result of the call with the id `call`; `place` is where it stands.
    Result { call: String, failed: bool, content: Content, place: String },
}

/// Collects the events of a document.
#[derive(Debug)]
pub(super) struct Reader {
    dialect: Dialect,
    events: Vec<Event>,
    messages: usize,
    opening: Option<Opening>,
    /// What is put around the next message, under `inside`.
    around: Option<Value>,
    /// The member of a line that is the message; empty where a message stands alone.
    inside: &'static str,
    parts: usize,
    taken: HashMap<String, usize>,
    /// The event ids of calls, by the ids that the provider gave them.
    calls: HashMap<String, ItemId>,
    /// The event ids of calls in order, by the name of what is called.
    waiting: HashMap<String, VecDeque<ItemId>>,
    /// The calls among them that have a result.
    answered: HashSet<ItemId>,
}

impl Reader {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            events: Vec::new(),
            messages: 0,
            opening: None,
            around: None,
            inside: "",
            parts: 0,
            taken: HashMap::new(),
            calls: HashMap::new(),
            waiting: HashMap::new(),
            answered: HashSet::new(),
        }
    }

    /// Puts the next message under a member of what stands around it: a line of a transcript.
    pub(super) fn enclose(&mut self, around: Value, inside: &'static str) {
        self.around = Some(around);
        self.inside = inside;
    }

    /// Begins a message. `rest` is the message without its parts; `member` is its name in the document when it is not
    /// in the list.
    pub(super) fn open(&mut self, rest: Value, member: Option<&str>) {
        let value = match self.around.take() {
            Some(mut around) => {
                around[self.inside] = rest;
                around
            }
            None => rest,
        };
        self.opening = Some(Opening { value, member: member.map(str::to_owned) });
        self.messages += 1;
        self.parts = 0;
    }

    /// Ends a message. One without parts gets an event too, so that it is not lost.
    pub(super) fn close(&mut self, kind: ItemKind, text: impl Into<String>) {
        if self.opening.is_some() {
            let id = self.numbered();
            self.add(ContextItem::new(id, kind, text.into()), None, None, None);
        }
    }

    /// Adds a message without parts: the content was taken out of the message itself.
    pub(super) fn whole(&mut self, kind: ItemKind, taken: Taken, member: Option<&str>) {
        self.open(taken.rest, member);
        self.say(kind, taken.content, None);
    }

    /// Adds a part of the message, from the list at `list`.
    pub(super) fn part(&mut self, kind: ItemKind, list: &str, taken: Taken) {
        let part = PartOf { list: list.to_owned(), value: taken.rest };
        self.say(kind, taken.content, Some(part));
    }

    /// Adds a message that keeps its parts. `rest` is the message without what was taken out of it; one of which nothing
    /// was taken gets an event of `kind`.
    ///
    /// # Errors
    /// [`AdapterError`] when a result names a call that is not there.
    pub(super) fn message(&mut self, rest: Value, kind: ItemKind, pieces: Vec<Piece>) -> Result<(), AdapterError> {
        self.open(rest, None);
        for piece in pieces {
            match piece {
                Piece::Said(kind, content) => self.say(kind, content, None),
                Piece::Call { id, name, content: Content { text, hole, output } } => {
                    let item = self.called(id.as_deref(), &name, text);
                    self.add(item, output, None, hole);
                }
                Piece::Result { call, failed, content: Content { text, hole, output }, place } => {
                    let call = self.call_with(&call, &place)?;
                    let item = self.answer(call, text);
                    self.add(item, output, None, hole);
                    if failed {
                        self.remark("is_error", true);
                    }
                }
            }
        }
        self.close(kind, "");
        Ok(())
    }

    /// Adds a call of `name`, which has the id `id` with the provider. `list` as for a part; `None` for a message
    /// without parts.
    pub(super) fn call(&mut self, id: Option<&str>, name: &str, list: Option<&str>, taken: Taken) {
        let Taken { rest, content: Content { text, hole, output } } = taken;
        let item = self.called(id, name, text);
        self.add_somewhere(item, rest, list, output, hole);
    }

    fn called(&mut self, id: Option<&str>, name: &str, arguments: String) -> ContextItem {
        let event = match id {
            Some(id) => self.unique(id),
            None => self.unique(&format!("call:{}", self.events.len() + 1)),
        };
        let event = ItemId::from(event);
        if let Some(id) = id {
            self.calls.insert(id.to_owned(), event.clone());
        }
        self.waiting.entry(name.to_owned()).or_default().push_back(event.clone());
        let mut item = ContextItem::new(event, ItemKind::ToolCall, arguments);
        item.metadata.insert(FUNCTION_NAME.to_owned(), Value::String(name.to_owned()));
        item
    }

    /// Adds a result of the call that has the id `id` with the provider.
    pub(super) fn result(
        &mut self,
        id: &str,
        list: Option<&str>,
        taken: Taken,
        place: &str,
    ) -> Result<(), AdapterError> {
        let call = self.call_with(id, place)?;
        self.result_of(call, list, taken);
        Ok(())
    }

    /// The event of the call that has the id `id` with the provider.
    fn call_with(&self, id: &str, place: &str) -> Result<ItemId, AdapterError> {
        self.calls.get(id).cloned().ok_or_else(|| {
            let reason = format!("the result is for the call `{}`, but no call before it has this id", shown(id));
            AdapterError::new(place, reason)
        })
    }

    /// Adds a result of the first call of `name` that has none yet.
    pub(super) fn result_by_name(
        &mut self,
        name: &str,
        list: Option<&str>,
        taken: Taken,
        place: &str,
    ) -> Result<(), AdapterError> {
        let mut waiting = self.waiting.get_mut(name);
        let mut next = || waiting.as_mut().and_then(|waiting| waiting.pop_front());
        let Some(call) = std::iter::from_fn(&mut next).find(|call| !self.answered.contains(call)) else {
            let reason = format!("no call of `{}` before it is still without a result", shown(name));
            return Err(AdapterError::new(place, reason));
        };
        self.result_of(call, list, taken);
        Ok(())
    }

    fn result_of(&mut self, call: ItemId, list: Option<&str>, taken: Taken) {
        let Taken { rest, content: Content { text, hole, output } } = taken;
        let item = self.answer(call, text);
        self.add_somewhere(item, rest, list, output, hole);
    }

    fn answer(&mut self, call: ItemId, text: String) -> ContextItem {
        let id = self.unique(&format!("result:{call}"));
        self.answered.insert(call.clone());
        ContextItem::new(id, ItemKind::ToolResult, text).under(call)
    }

    /// Adds the result of the call just added, as a text in the same message without parts.
    pub(super) fn result_within(&mut self, text: String, at: &str) {
        self.within(text, None, Hole { at: at.to_owned(), holds: Holds::Text });
    }

    /// Adds the result of the call just added, as an output in the same message without parts.
    pub(super) fn output_within(&mut self, output: ToolOutput, at: &str) {
        let hole = Hole { at: at.to_owned(), holds: Holds::Output };
        self.within(super::blocks::text_of(&output), Some(output), hole);
    }

    fn within(&mut self, text: String, output: Option<ToolOutput>, hole: Hole) {
        let Some(call) = self.events.last().map(|event| event.item.id.clone()) else { return };
        let item = self.answer(call, text);
        self.add(item, output, None, Some(hole));
    }

    /// Adds a member to the metadata of the event just added.
    pub(super) fn remark(&mut self, key: &str, value: impl Into<Value>) {
        if let Some(event) = self.events.last_mut() {
            event.item.metadata.insert(key.to_owned(), value.into());
        }
    }

    pub(super) fn finish(self, document: Option<Map<String, Value>>) -> Conversation {
        Conversation { events: self.events, document, ..Conversation::default() }
    }

    fn say(&mut self, kind: ItemKind, content: Content, part: Option<PartOf>) {
        let id = self.numbered();
        self.add(ContextItem::new(id, kind, content.text), content.output, part, content.hole);
    }

    fn add_somewhere(
        &mut self,
        item: ContextItem,
        rest: Value,
        list: Option<&str>,
        output: Option<ToolOutput>,
        hole: Option<Hole>,
    ) {
        let part = match list {
            Some(list) => Some(PartOf { list: list.to_owned(), value: rest }),
            None => {
                self.open(rest, None);
                None
            }
        };
        self.add(item, output, part, hole);
    }

    fn add(
        &mut self,
        mut item: ContextItem,
        output: Option<ToolOutput>,
        mut part: Option<PartOf>,
        mut hole: Option<Hole>,
    ) {
        if !self.inside.is_empty() {
            let within = |at: &mut String| *at = format!("/{}{at}", self.inside);
            match (&mut part, &mut hole) {
                (Some(part), _) => within(&mut part.list),
                (None, Some(hole)) => within(&mut hole.at),
                (None, None) => {}
            }
        }
        let wire = Wire {
            format: self.dialect,
            message: self.messages.saturating_sub(1),
            opens: self.opening.take(),
            part,
            content: hole,
        };
        // Strings, numbers and JSON values always serialise.
        item.metadata.insert(KEY.to_owned(), serde_json::to_value(wire).unwrap_or_default());
        self.parts += 1;
        self.events.push(Event { item, output });
    }

    /// The id of an event that has none: `m3` for the only part of message 3, `m3.2` for its second part.
    fn numbered(&mut self) -> String {
        let id = match self.parts {
            0 => format!("m{}", self.messages),
            before => format!("m{}.{}", self.messages, before + 1),
        };
        self.unique(&id)
    }

    /// `id`, with a number appended where it is taken.
    fn unique(&mut self, id: &str) -> String {
        let mut candidate = id.to_owned();
        loop {
            let uses = self.taken.entry(candidate.clone()).or_insert(0);
            *uses += 1;
            if *uses == 1 {
                return candidate;
            }
            candidate = format!("{candidate}~{uses}");
        }
    }
}

/// What differs between formats when messages are put together.
pub(super) struct Writer {
    pub(super) dialect: Dialect,
    /// The names of the document's member that lists the messages, in the order in which they are looked for.
    pub(super) list: &'static [&'static str],
    /// Makes a message from an event of another format and its content; `None` where the format has no place for such
    /// events.
    pub(super) fresh: Option<fn(&ContextItem, &Value) -> Value>,
    /// Writes the content of a result.
    pub(super) output: fn(&ToolOutput) -> Result<Value, AdapterError>,
}

impl Writer {
    /// The messages of the conversation in order, each with whether it was made here, from an event of another format.
    pub(super) fn lines(&self, conversation: &Conversation) -> Result<Vec<(Value, bool)>, AdapterError> {
        let messages = self.messages(conversation)?;
        Ok(messages.into_iter().map(|(message, fresh)| (message.value, fresh)).collect())
    }

    fn messages(&self, conversation: &Conversation) -> Result<Vec<(Opening, bool)>, AdapterError> {
        let calls = conversation.events.iter().filter(|event| event.item.kind == ItemKind::ToolCall);
        let names: HashMap<&str, &str> =
            calls.map(|event| (event.item.id.as_str(), function_name(&event.item))).collect();
        let mut messages: Vec<(Opening, bool)> = Vec::new();
        let mut open = None;
        for event in &conversation.events {
            let wire = wire_of(&event.item, self.dialect)?;
            match wire {
                Some(mut wire) if wire.opens.is_some() || open == Some(wire.message) => {
                    messages.extend(wire.opens.take().map(|opening| (opening, false)));
                    open = Some(wire.message);
                    if let Some((message, _)) = messages.last_mut() {
                        self.put(&mut message.value, wire, event)?;
                    }
                }
                _ => {
                    let fresh = self.fresh.ok_or_else(|| {
                        let place = format!("event `{}`", event.item.id);
                        AdapterError::new(place, "it is from another format, and this one has no place for it")
                    })?;
                    let content = self.content(event, Holds::Output)?;
                    let item = match names.get(call_of(&event.item)) {
                        Some(name) if event.item.kind == ItemKind::ToolResult => &named(&event.item, name),
                        _ => &event.item,
                    };
                    messages.push((Opening { value: fresh(item, &content), member: None }, true));
                    open = None;
                }
            }
        }
        Ok(messages)
    }

    /// Writes the document of the conversation.
    pub(super) fn write(&self, conversation: &Conversation) -> Result<Value, AdapterError> {
        let messages = self.messages(conversation)?.into_iter().map(|(message, _)| message);
        let Some(mut document) = conversation.document.clone() else {
            return Ok(messages.map(|message| message.value).collect());
        };
        let list = self.list.iter().find(|key| document.contains_key(**key)).or(self.list.first());
        let mut listed = Vec::new();
        for Opening { value, member } in messages {
            match member {
                Some(member) => {
                    document.insert(member, value);
                }
                None => listed.push(value),
            }
        }
        if let Some(list) = list.filter(|list| !listed.is_empty() || document.get(**list).is_some_and(Value::is_array))
        {
            document.insert((*list).to_owned(), Value::Array(listed));
        }
        Ok(Value::Object(document))
    }

    fn put(&self, message: &mut Value, wire: Wire, event: &Event) -> Result<(), AdapterError> {
        let lost = |at: &str| {
            let reason = format!("its `{KEY}` metadata points to `{}`, which does not exist", shown(at));
            AdapterError::new(format!("event `{}`", event.item.id), reason)
        };
        let content = wire.content.map(|hole| self.content(event, hole.holds).map(|value| (hole.at, value)));
        let content = content.transpose()?;
        let fill = |target: &mut Value| match content {
            None => Ok(()),
            Some((at, value)) => {
                *target.pointer_mut(&at).ok_or_else(|| lost(&at))? = value;
                Ok(())
            }
        };
        match wire.part {
            None => fill(message),
            Some(PartOf { list, mut value }) => {
                fill(&mut value)?;
                let parts = message.pointer_mut(&list).and_then(Value::as_array_mut);
                parts.ok_or_else(|| lost(&list))?.push(value);
                Ok(())
            }
        }
    }

    fn content(&self, event: &Event, holds: Holds) -> Result<Value, AdapterError> {
        let text = &event.item.text;
        Ok(match (holds, &event.output) {
            (Holds::Output, Some(output)) => (self.output)(output)?,
            // A text that is no longer JSON was replaced, e.g. by a summary; formats expect an object here.
            (Holds::Json, _) => serde_json::from_str(text).unwrap_or_else(|_| json!({"text": text})),
            (Holds::Text | Holds::Output, _) => Value::String(text.clone()),
        })
    }
}

fn wire_of(item: &ContextItem, dialect: Dialect) -> Result<Option<Wire>, AdapterError> {
    let Some(value) = item.metadata.get(KEY) else { return Ok(None) };
    let wire = Wire::deserialize(value)
        .map_err(|error| AdapterError::new(format!("event `{}`", item.id), format!("its `{KEY}` metadata: {error}")))?;
    Ok((wire.format == dialect).then_some(wire))
}

/// A result that knows what was called.
fn named(result: &ContextItem, name: &str) -> ContextItem {
    let mut result = result.clone();
    result.metadata.insert(FUNCTION_NAME.to_owned(), Value::String(name.to_owned()));
    result
}

/// The name of what was called, for a result: that of its call, which a [`Writer`] tells it, else the id of the call.
pub(super) fn called_name(result: &ContextItem) -> &str {
    result.metadata.get(FUNCTION_NAME).and_then(Value::as_str).unwrap_or_else(|| call_of(result))
}

/// The name of what a call calls: from its metadata, otherwise the text before its arguments.
pub(super) fn function_name(item: &ContextItem) -> &str {
    let named = item.metadata.get(FUNCTION_NAME).and_then(Value::as_str);
    named.unwrap_or_else(|| item.text.split('(').next().unwrap_or_default())
}

/// The id that the provider's format gives to the call of a result.
pub(super) fn call_of(item: &ContextItem) -> &str {
    item.parent_id.as_ref().map_or(item.id.as_str(), ItemId::as_str)
}

/// The arguments of a call as JSON, where its text is JSON.
pub(super) fn arguments(item: &ContextItem) -> Value {
    serde_json::from_str(&item.text).unwrap_or_else(|_| json!({"text": item.text}))
}

/// The text that the prompt shows for a part that is not text: its kind, and its media type if it names one.
pub(super) fn placeholder(part: &Value) -> String {
    let kind = match part.get("type").and_then(Value::as_str) {
        Some(kind) => kind,
        None => part.as_object().and_then(|members| members.keys().next()).map_or("part", String::as_str),
    };
    let media_type = part.get("source").and_then(|source| source.get("media_type")).and_then(Value::as_str);
    match media_type {
        Some(media_type) => format!("[{} {}]", shown(kind), shown(media_type)),
        None => format!("[{}]", shown(kind)),
    }
}

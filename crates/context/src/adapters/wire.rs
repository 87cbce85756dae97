//! Takes the messages of a provider's document apart into events; a [`Writer`](super::writer::Writer) puts them together
//! again.
//!
//! A message becomes one event per part. The content that an event carries itself (its text) is taken out of the
//! message; the rest stays in the event's metadata under one key, with a JSON Pointer to where the text was. Putting
//! messages together is then the same for every format, and exact by construction: members that a format's reader does
//! not know were never touched. Formats that say the same thing at several places of a message (LangChain, Pydantic AI)
//! leave the parts where they are and take only the contents.

use std::collections::{HashMap, HashSet, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::{AdapterError, some_of};
use super::parts::{SECTION, THOUGHT};
use super::{Conversation, Event};
use crate::event::{ContextItem, ItemId, ItemKind, ToolOutput};

/// The metadata key with the rest of a message.
pub(super) const KEY: &str = "wire";

/// The metadata key of a call with the name of what is called; the text of the call is then only the arguments.
pub(super) const FUNCTION_NAME: &str = "function_name";

/// The metadata key of a result that says that the call failed.
pub(super) const IS_ERROR: &str = "is_error";

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
pub(super) struct Wire {
    pub(super) format: Dialect,
    /// The number of the message in the document, from 0: events of one message belong together.
    pub(super) message: usize,
    /// The message without its parts, on the first of its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) opens: Option<Opening>,
    /// The part, for messages that have parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) part: Option<PartOf>,
    /// The place of the event's content in the part (or in a message without parts).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<Hole>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Opening {
    pub(super) value: Value,
    /// The member of the document that is this message; `None` for a message of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) member: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartOf {
    /// The JSON Pointer to the list of parts in the message.
    pub(super) list: String,
    pub(super) value: Value,
}

/// The place from which an event's content was taken.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hole {
    pub(super) at: String,
    pub(super) holds: Holds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Holds {
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
        Ok(Self::of_output(read(value)?, at))
    }

    /// An output that was taken out from `at`.
    pub(super) fn of_output(output: ToolOutput, at: &str) -> Self {
        let hole = Some(Hole { at: at.to_owned(), holds: Holds::Output });
        Self { text: super::blocks::text_of(&output), hole, output: Some(output) }
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

    /// As [`Content::arguments`].
    pub(super) fn arguments(mut rest: Value, at: &str) -> Self {
        let content = Content::arguments(&mut rest, at);
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
    /// What the agent thought.
    Thought(Content),
    /// A call, with the id that the provider gave it, where it has one.
    Call { id: Option<String>, name: String, content: Content },
    /// The result of the call with the id `call`.
    Result { call: String, failed: bool, content: Content },
}

/// Which of several calls that wait for a result gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    First,
    Last,
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
    /// What results without a call say that they answer: the ids or names of calls that are not there.
    orphans: Vec<String>,
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
            orphans: Vec::new(),
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
    pub(super) fn message(&mut self, rest: Value, kind: ItemKind, pieces: Vec<Piece>) {
        self.open(rest, None);
        for piece in pieces {
            match piece {
                Piece::Said(kind, content) => self.say(kind, content, None),
                Piece::Thought(content) => {
                    self.say(ItemKind::AgentMsg, content, None);
                    self.is_thought();
                }
                Piece::Call { id, name, content } => self.call_within(id.as_deref(), &name, content),
                Piece::Result { call, failed, content: Content { text, hole, output } } => {
                    let item = self.answer(&call, text);
                    self.add(item, output, None, hole);
                    self.is_error(failed);
                }
            }
        }
        self.close(kind, "");
    }

    /// Adds a call of `name` whose arguments were taken out of the message that is open.
    pub(super) fn call_within(&mut self, id: Option<&str>, name: &str, content: Content) {
        let item = self.called(id, name, content.text);
        self.add(item, content.output, None, content.hole);
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
    pub(super) fn result(&mut self, id: &str, list: Option<&str>, taken: Taken) {
        let Taken { rest, content: Content { text, hole, output } } = taken;
        let item = self.answer(id, text);
        self.add_somewhere(item, rest, list, output, hole);
    }

    /// Adds a result of a call of `name` that has none yet: the one that `which` takes.
    pub(super) fn result_by_name(&mut self, name: &str, which: Which, list: Option<&str>, taken: Taken) {
        let Taken { rest, content: Content { text, hole, output } } = taken;
        let mut waiting = self.waiting.get_mut(name);
        let mut next = || {
            let waiting = waiting.as_mut()?;
            if which == Which::First { waiting.pop_front() } else { waiting.pop_back() }
        };
        let item = match std::iter::from_fn(&mut next).find(|call| !self.answered.contains(call)) {
            Some(call) => self.result_of(call, text),
            None => {
                let mut item = self.orphan(name, text);
                item.metadata.insert(FUNCTION_NAME.to_owned(), name.into());
                item
            }
        };
        self.add_somewhere(item, rest, list, output, hole);
    }

    fn answer(&mut self, id: &str, text: String) -> ContextItem {
        match self.calls.get(id).cloned() {
            Some(call) => self.result_of(call, text),
            None => self.orphan(id, text),
        }
    }

    fn result_of(&mut self, call: ItemId, text: String) -> ContextItem {
        let id = self.unique(&format!("result:{call}"));
        self.answered.insert(call.clone());
        ContextItem::new(id, ItemKind::ToolResult, text).under(call)
    }

    /// A result of a call that is not there, as where a conversation was cut.
    fn orphan(&mut self, call: &str, text: String) -> ContextItem {
        self.orphans.push(call.to_owned());
        ContextItem::new(self.unique(&format!("result:{call}")), ItemKind::ToolResult, text)
    }

    /// Adds the result of the call just added, which was taken out of the same message without parts.
    pub(super) fn result_within(&mut self, content: Content) {
        let Some(call) = self.events.last().map(|event| event.item.id.clone()) else { return };
        let item = self.result_of(call, content.text);
        self.add(item, content.output, None, content.hole);
    }

    /// Says of the event just added whether it is the result of a call that failed.
    pub(super) fn is_error(&mut self, failed: bool) {
        if failed {
            self.say_of_last(IS_ERROR, true.into());
        }
    }

    /// Says of the event just added that it is a thought.
    pub(super) fn is_thought(&mut self) {
        self.say_of_last(SECTION, THOUGHT.into());
    }

    fn say_of_last(&mut self, key: &str, value: Value) {
        if let Some(event) = self.events.last_mut() {
            event.item.metadata.insert(key.to_owned(), value);
        }
    }

    pub(super) fn finish(self, document: Option<Map<String, Value>>) -> Conversation {
        let orphans = some_of(&self.orphans)
            .map(|calls| format!("results of calls that are not in the conversation were kept without them: {calls}"));
        Conversation {
            events: self.events,
            document,
            remarks: orphans.into_iter().collect(),
            ..Conversation::default()
        }
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
        self.events.push(Event { item, output, envelope: None });
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

/// The rest of a message that is kept for an item.
///
/// # Errors
/// [`AdapterError`] when it was edited so that it is none.
pub(super) fn wire_of(item: &ContextItem) -> Result<Option<Wire>, AdapterError> {
    let Some(value) = item.metadata.get(KEY) else { return Ok(None) };
    let wire = Wire::deserialize(value)
        .map_err(|error| AdapterError::new(format!("event `{}`", item.id), format!("its `{KEY}` metadata: {error}")))?;
    Ok(Some(wire))
}

/// What an item's metadata under `key` keeps of a foreign message: its values without how they are put together again.
/// `None` for other metadata.
pub(crate) fn foreign_in<'v>(key: &str, value: &'v mut Value) -> Option<Vec<&'v mut Value>> {
    if key != KEY || Wire::deserialize(&*value).is_err() {
        return None;
    }
    let parts = value.as_object_mut()?.iter_mut().filter(|(key, _)| *key == "opens" || *key == "part");
    Some(parts.filter_map(|(_, part)| part.get_mut("value")).collect())
}

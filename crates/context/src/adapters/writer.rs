//! Puts the messages of a document together: those that came in its format exactly as they were, and new ones from the
//! events of other formats.
//!
//! New messages are such that providers take them. What the agent says and calls in a turn is one message, and the
//! results of its calls come right after it, in one message where the format has room for several. What a format has no
//! place for becomes the nearest thing that it has, or is left out; [`Writer::remarks`] says what.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::blocks::{plain, without_pictures};
use super::error::{AdapterError, shown, some_of};
use super::parts::{Picture, is_thought, kind_of_placeholder, picture_in};
use super::spans::left_out;
use super::wire::{Dialect, FUNCTION_NAME, Holds, IS_ERROR, KEY, Opening, PartOf, Wire, wire_of};
use super::{Conversation, Event};
use crate::event::{ContextItem, ItemId, ItemKind, PartBody, Status, ToolOutput};
use contextweaver_core::catalog::{ToolFormat, fitting_ids, fitting_names};

/// What differs between formats when messages are put together.
pub(super) struct Writer {
    pub(super) dialect: Dialect,
    /// The names of the document's member that lists the messages, in the order in which they are looked for.
    pub(super) list: &'static [&'static str],
    /// Makes a message from an event of another format and its content: a text, or a list of parts. `None` where the
    /// format has no place for such events.
    pub(super) fresh: Option<fn(&ContextItem, &Value) -> Value>,
    /// Writes the content of a result.
    pub(super) output: fn(&ToolOutput) -> Result<Value, AdapterError>,
    /// Makes the part of a message that is a picture.
    pub(super) picture: fn(&Picture) -> Value,
    /// Whether a result may hold pictures.
    pub(super) pictures_in_results: bool,
    /// JSON Pointers to the lists of a message that grow when the next event belongs to it: messages that agree in
    /// everything else become one. Empty where each event is a message.
    pub(super) grows: &'static [&'static str],
    /// Where the rules for the agent stand.
    pub(super) rules: Rules,
    /// What the provider takes as names of functions and as ids of calls; `None` where it takes all.
    pub(super) calls: Option<CallForm>,
}

/// What a provider takes as names of functions and as ids of calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallForm {
    /// The form of its tools, whose names have the rules of functions.
    pub(super) tools: ToolFormat,
    /// The number of characters that an id has at most.
    pub(super) longest_id: usize,
}

/// The place of policies in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    /// In messages of their own.
    Messages,
    /// In a member of the document, as a list at `list` in it or as a text.
    Member { name: &'static str, list: &'static str },
    /// Nowhere.
    Nowhere,
}

/// An event on its way into a document.
struct Placed<'e> {
    event: &'e Event,
    /// What is kept of the message that the event is from, in whatever format that was.
    wire: Option<Wire>,
    /// Whether the message was in the format that is written.
    is_own: bool,
}

impl Placed<'_> {
    fn is(&self, kinds: &[ItemKind]) -> bool {
        kinds.contains(&self.event.item.kind)
    }

    /// Whether what is not text was left in the message.
    fn is_left_there(&self) -> bool {
        let is_said = !self.is(&[ItemKind::ToolCall, ItemKind::ToolResult]);
        is_said && self.wire.as_ref().is_some_and(|wire| wire.content.is_none())
    }

    /// The picture that a user sent.
    fn picture(&self) -> Option<Picture<'_>> {
        let part =
            self.wire.as_ref()?.part.as_ref().filter(|_| self.is_left_there() && self.is(&[ItemKind::UserTurn]))?;
        picture_in(&part.value)
    }
}

/// What is called in a conversation.
struct Called<'e> {
    /// The names of what is called, by the ids of the calls.
    names: HashMap<&'e str, &'e str>,
    /// The names and the ids in the format that is written. Those that are not there stay as they are.
    functions: BTreeMap<&'e str, String>,
    ids: BTreeMap<&'e str, String>,
}

impl<'e> Called<'e> {
    fn of(placed: &[Placed<'e>], form: Option<CallForm>) -> Self {
        let calls = || placed.iter().filter(|placed| placed.is(&[ItemKind::ToolCall]));
        let names: HashMap<&str, &str> =
            calls().map(|placed| (placed.event.item.id.as_str(), function_name(&placed.event.item))).collect();
        let Some(CallForm { tools, longest_id }) = form else {
            return Self { names, functions: BTreeMap::new(), ids: BTreeMap::new() };
        };
        let called = placed.iter().filter_map(|placed| {
            let item = &placed.event.item;
            match item.kind {
                ItemKind::ToolCall => Some((function_name(item), item.id.as_str())),
                ItemKind::ToolResult if !names.contains_key(call_of(item)) => Some(made_up_call(item)),
                _ => None,
            }
        });
        let (functions, ids): (Vec<&str>, Vec<&str>) = called.unzip();
        let (mut functions, mut ids) = (fitting_names(&functions, tools), fitting_ids(&ids, longest_id));
        // What came in this format stays as it was, and what answers it must name it so.
        for own in calls().filter(|placed| placed.is_own) {
            functions.remove(function_name(&own.event.item));
            ids.remove(own.event.item.id.as_str());
        }
        Self { names, functions, ids }
    }

    /// An item with the ids and the names of this format.
    fn renamed<'i>(&self, item: &'i ContextItem) -> Cow<'i, ContextItem> {
        let id = |id: &ItemId| self.ids.get(id.as_str()).map_or_else(|| id.clone(), |id| ItemId::from(id.as_str()));
        let name = |name: &str| self.functions.get(name).map_or(name, String::as_str).to_owned();
        let mut item = Cow::Borrowed(item);
        match item.kind {
            ItemKind::ToolCall => {
                let name = name(function_name(&item));
                item.to_mut().id = id(&item.id);
                item.to_mut().metadata.insert(FUNCTION_NAME.to_owned(), name.into());
            }
            ItemKind::ToolResult => {
                let name = name(called_name(&item));
                item.to_mut().parent_id = item.parent_id.as_ref().map(id);
                item.to_mut().metadata.insert(FUNCTION_NAME.to_owned(), name.into());
            }
            _ => {}
        }
        item
    }
}

/// The messages so far.
#[derive(Default)]
struct Messages {
    /// Each with whether it was made here.
    written: Vec<(Opening, bool)>,
    /// Which of them is the member with the rules.
    rules: Option<usize>,
    /// The end of the last message, if it was made here and may grow.
    end: Option<End>,
}

/// The last event of a message.
struct End {
    kind: ItemKind,
    /// The foreign message that it is from.
    from: Option<(Dialect, usize)>,
    /// Whether the message has a call.
    calls: bool,
}

impl End {
    /// Whether an event belongs into the same message: the calls and words of a turn do, results next to each other, and
    /// the parts of one foreign message.
    fn takes(&self, kind: ItemKind, from: Option<(Dialect, usize)>) -> bool {
        match (self.kind, kind) {
            (ItemKind::ToolResult, ItemKind::ToolResult) => true,
            (ItemKind::AgentMsg | ItemKind::ToolCall, ItemKind::ToolCall) => true,
            (ItemKind::AgentMsg | ItemKind::ToolCall, ItemKind::AgentMsg) if self.calls => true,
            _ => self.kind == kind && from.is_some() && self.from == from,
        }
    }
}

impl Writer {
    /// The messages of the conversation in order, each with whether it was made here, from an event of another format.
    pub(super) fn lines(&self, conversation: &Conversation) -> Result<Vec<(Value, bool)>, AdapterError> {
        let messages = self.messages(conversation)?;
        Ok(messages.into_iter().map(|(message, fresh)| (message.value, fresh)).collect())
    }

    /// Writes the document of the conversation.
    pub(super) fn write(&self, conversation: &Conversation) -> Result<Value, AdapterError> {
        let messages = self.messages(conversation)?;
        let has_members = messages.iter().any(|(message, _)| message.member.is_some());
        // A session has no document; what stood beside its messages needs one.
        let mut document = match &conversation.document {
            Some(document) => document.clone(),
            None if has_members => Map::new(),
            None => return Ok(messages.into_iter().map(|(message, _)| message.value).collect()),
        };
        let list = self.list.iter().find(|key| document.contains_key(**key)).or(self.list.first());
        let mut listed = Vec::new();
        for (Opening { value, member }, _) in messages {
            match member {
                Some(member) => {
                    document.insert(member, value);
                }
                None => listed.push(value),
            }
        }
        let wants_list = |key: &str| !listed.is_empty() || document.get(key).is_none_or(Value::is_array);
        if let Some(list) = list.filter(|list| wants_list(list)) {
            document.insert((*list).to_owned(), Value::Array(listed));
        }
        Ok(Value::Object(document))
    }

    /// What writing the conversation leaves out or changes, for people. What came in this format is written as it was.
    pub(super) fn remarks(&self, conversation: &Conversation) -> Vec<String> {
        // Writing says what is wrong with an event.
        let Ok(placed) = self.placed(&conversation.events) else { return Vec::new() };
        let Called { names: calls, functions, .. } = Called::of(&placed, self.calls);
        let renamed = functions.iter().filter(|(name, new)| *name != new).map(|(name, _)| *name);
        let renamed: Vec<&str> = renamed.collect();
        let results = conversation.events.iter().filter(|event| event.item.kind == ItemKind::ToolResult);
        let answered: HashSet<&str> = results.map(|event| call_of(&event.item)).collect();
        let (mut unanswered, mut uncalled) = (Vec::new(), Vec::new());
        let mut others: BTreeMap<String, usize> = BTreeMap::new();
        let (mut thoughts, mut rules, mut wrapped) = (0usize, 0usize, 0usize);
        for placed in placed.iter().filter(|placed| !placed.is_own) {
            let item = &placed.event.item;
            let id = item.id.as_str();
            wrapped += usize::from(item.kind == ItemKind::ToolCall && is_no_object(item));
            match item.kind {
                _ if is_thought(item) => thoughts += 1,
                ItemKind::Policy if self.rules == Rules::Nowhere => rules += 1,
                ItemKind::ToolCall if !answered.contains(id) => unanswered.push(id),
                ItemKind::ToolResult if !calls.contains_key(call_of(item)) => uncalled.push(id),
                _ => {}
            }
            for kind in self.described(placed) {
                *others.entry(kind).or_default() += 1;
            }
        }
        let counted = |what: &str, count: usize| (count > 0).then(|| format!("{what}: {count}"));
        let listed = |what: &str, ids: &[&str]| some_of(ids).map(|ids| format!("{what}: {ids}"));
        [
            counted("thoughts of the agent were left out", thoughts),
            counted("rules were left out, since this format has no place for them", rules),
            left_out("parts that are not text", &others).map(|remark| format!("{remark}; a word stands for each")),
            listed("names of functions that the provider refuses were changed", &renamed),
            counted("arguments that are no object were put into one", wrapped),
            listed("calls without a result, which providers refuse", &unanswered),
            listed("results without a call got one that was made up", &uncalled),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// The kinds of the parts of an event that this format says in words.
    fn described(&self, placed: &Placed) -> Vec<String> {
        if is_thought(&placed.event.item) {
            return Vec::new();
        }
        if placed.is_left_there() {
            let kind = kind_of_placeholder(&placed.event.item.text).filter(|_| placed.picture().is_none());
            return kind.map(str::to_owned).into_iter().collect();
        }
        let parts = placed.event.output.iter().flat_map(|output| &output.parts);
        let kinds = parts.filter_map(|part| match &part.body {
            PartBody::Image { media_type, .. } if !self.pictures_in_results => {
                Some(format!("image {}", shown(media_type)))
            }
            PartBody::Audio { media_type, .. } => Some(format!("audio {}", shown(media_type))),
            PartBody::ResourceBlob { .. } => Some("resource".to_owned()),
            _ => None,
        });
        kinds.collect()
    }

    fn placed<'e>(&self, events: &'e [Event]) -> Result<Vec<Placed<'e>>, AdapterError> {
        let mut open = None;
        let place = |event: &'e Event| {
            let wire = wire_of(&event.item)?;
            let own = wire.as_ref().filter(|wire| wire.format == self.dialect);
            // Without its beginning, the rest of a message is of no use.
            let own = own.filter(|wire| wire.opens.is_some() || open == Some(wire.message));
            open = own.map(|wire| wire.message);
            Ok(Placed { event, is_own: own.is_some(), wire })
        };
        events.iter().map(place).collect()
    }

    fn messages(&self, conversation: &Conversation) -> Result<Vec<(Opening, bool)>, AdapterError> {
        let placed = self.placed(&conversation.events)?;
        let called = Called::of(&placed, self.calls);
        let mut messages = Messages::default();
        for mut placed in in_turns(placed) {
            if !placed.is_own {
                self.add(&mut messages, &placed, &called)?;
                continue;
            }
            let Some(mut wire) = placed.wire.take() else { continue };
            messages.end = None;
            if let Some(opening) = wire.opens.take() {
                self.push(&mut messages, opening, false);
            }
            if let Some((message, _)) = messages.written.last_mut() {
                self.put(&mut message.value, wire, placed.event)?;
            }
        }
        Ok(messages.written)
    }

    fn push(&self, messages: &mut Messages, opening: Opening, fresh: bool) {
        if let (Rules::Member { name, .. }, Some(member)) = (self.rules, &opening.member)
            && name == member
        {
            messages.rules = Some(messages.written.len());
        }
        messages.written.push((opening, fresh));
    }

    /// Adds an event of another format.
    fn add(&self, messages: &mut Messages, placed: &Placed, called: &Called) -> Result<(), AdapterError> {
        let Event { item, output, envelope } = placed.event;
        let make = self.fresh.ok_or_else(|| {
            let place = format!("event `{}`", item.id);
            AdapterError::new(place, "it is from another format, and this one has no place for it")
        })?;
        let is_silent = item.text.trim().is_empty() && !placed.is(&[ItemKind::ToolCall, ItemKind::ToolResult]);
        if is_silent || is_thought(item) || item.kind == ItemKind::Policy && self.rules == Rules::Nowhere {
            return Ok(());
        }
        let content = match (placed.picture(), output) {
            (Some(picture), _) => json!([(self.picture)(&picture)]),
            (None, Some(output)) if self.pictures_in_results => (self.output)(&plain(output))?,
            (None, Some(output)) => (self.output)(&without_pictures(&plain(output)))?,
            (None, None) => Value::String(item.text.clone()),
        };
        // Formats say of the event itself, of what was returned or of what was made of it that the call failed.
        let failed = output.as_ref().is_some_and(|output| output.is_error)
            || envelope.as_ref().is_some_and(|envelope| envelope.status == Status::Error);
        let fresh = |item: &ContextItem, content: &Value| {
            let mut item = called.renamed(item);
            if failed && item.kind == ItemKind::ToolResult {
                item.to_mut().metadata.insert(IS_ERROR.to_owned(), true.into());
            }
            make(&item, content)
        };
        let from = placed.wire.as_ref().map(|wire| (wire.format, wire.message));
        match (item.kind, called.names.get(call_of(item))) {
            (ItemKind::ToolResult, Some(name)) => {
                self.add_message(messages, item.kind, from, fresh(&named(item, name), &content));
            }
            (ItemKind::ToolResult, None) => {
                let (call, result) = with_call(item);
                self.add_message(messages, call.kind, None, fresh(&call, &Value::Null));
                self.add_message(messages, result.kind, from, fresh(&result, &content));
            }
            _ => self.add_message(messages, item.kind, from, fresh(item, &content)),
        }
        Ok(())
    }

    /// Adds a new message, or what it says to the one that it belongs to.
    fn add_message(&self, messages: &mut Messages, kind: ItemKind, from: Option<(Dialect, usize)>, mut message: Value) {
        if let (Rules::Member { name, list }, ItemKind::Policy) = (self.rules, kind) {
            let known = messages.rules.and_then(|at| messages.written.get_mut(at));
            match known.and_then(|(known, _)| known.value.pointer_mut(list)) {
                Some(rules) => {
                    let more = message.pointer_mut(list).map(Value::take);
                    *rules = appended(Some(rules.take()), more).unwrap_or_default();
                }
                None => self.push(messages, Opening { value: message, member: Some(name.to_owned()) }, true),
            }
            return;
        }
        let is_call = kind == ItemKind::ToolCall;
        let end = messages.end.take().filter(|end| end.takes(kind, from));
        let calls = is_call || end.as_ref().is_some_and(|end| end.calls);
        let last = messages.written.last_mut().filter(|_| end.is_some());
        if last.is_some_and(|(last, _)| self.join(&mut last.value, &mut message)) {
            messages.end = Some(End { kind, from, calls });
        } else {
            self.push(messages, Opening { value: message, member: None }, true);
            messages.end = Some(End { kind, from, calls: is_call });
        }
    }

    /// Adds the lists of `more` to those of `message`, if they agree in everything else.
    fn join(&self, message: &mut Value, more: &mut Value) -> bool {
        let (lists, added) = (self.take_lists(message), self.take_lists(more));
        let agree = !self.grows.is_empty() && message == more;
        if agree {
            let lists = lists.into_iter().zip(added).map(|(list, added)| appended(list, added)).collect();
            self.put_lists(message, lists);
        } else {
            self.put_lists(message, lists);
            self.put_lists(more, added);
        }
        agree
    }

    fn take_lists(&self, message: &mut Value) -> Vec<Option<Value>> {
        let take =
            |at: &&str| holder(message, at).and_then(|(members, key)| members.insert(key.to_owned(), Value::Null));
        self.grows.iter().map(take).collect()
    }

    fn put_lists(&self, message: &mut Value, lists: Vec<Option<Value>>) {
        for (at, list) in self.grows.iter().zip(lists) {
            match (holder(message, at), list) {
                (Some((members, key)), Some(list)) => drop(members.insert(key.to_owned(), list)),
                (Some((members, key)), None) => drop(members.shift_remove(key)),
                (None, _) => {}
            }
        }
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

/// The events in the order in which they are written. What answers the calls of a turn comes right after the turn,
/// whatever was said in between: providers refuse a call that is followed by anything else.
fn in_turns(placed: Vec<Placed<'_>>) -> Vec<Placed<'_>> {
    const TURN: [ItemKind; 2] = [ItemKind::AgentMsg, ItemKind::ToolCall];
    let mut results: HashMap<ItemId, Vec<usize>> = HashMap::new();
    for (at, placed) in placed.iter().enumerate().filter(|(_, placed)| !placed.is_own) {
        if let (true, Some(call)) = (placed.is(&[ItemKind::ToolResult]), &placed.event.item.parent_id) {
            results.entry(call.clone()).or_default().push(at);
        }
    }
    let mut waiting: Vec<Option<Placed>> = placed.into_iter().map(Some).collect();
    let mut due = BTreeSet::new();
    let mut ordered = Vec::with_capacity(waiting.len());
    for at in 0..waiting.len() {
        let Some(placed) = waiting.get(at).and_then(Option::as_ref) else { continue };
        if placed.is_own || !placed.is(&TURN) {
            let due = std::mem::take(&mut due).into_iter();
            ordered.extend(due.filter_map(|at: usize| waiting.get_mut(at)?.take()));
        }
        let Some(placed) = waiting.get_mut(at).and_then(Option::take) else { continue };
        if !placed.is_own && placed.is(&[ItemKind::ToolCall]) {
            due.extend(results.remove(&placed.event.item.id).unwrap_or_default());
        }
        ordered.push(placed);
    }
    ordered.extend(due.into_iter().filter_map(|at| waiting.get_mut(at)?.take()));
    ordered
}

/// The object that has what a JSON Pointer points to, and its name there.
fn holder<'v, 'p>(message: &'v mut Value, at: &'p str) -> Option<(&'v mut Map<String, Value>, &'p str)> {
    let (holder, key) = at.rsplit_once('/')?;
    Some((message.pointer_mut(holder)?.as_object_mut()?, key))
}

/// Contents one after the other: a single one as it is, more as a list of parts.
fn appended(content: Option<Value>, more: Option<Value>) -> Option<Value> {
    let says = |content: &Value| !content.is_null() && content != "";
    match (content, more) {
        (Some(content), Some(more)) if says(&content) && says(&more) => {
            let mut parts = parts_of(content);
            parts.extend(parts_of(more));
            Some(Value::Array(parts))
        }
        (Some(content), _) if says(&content) => Some(content),
        (content, more) => more.filter(says).or(content),
    }
}

fn parts_of(content: Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts,
        text => vec![json!({"type": "text", "text": text})],
    }
}

/// A result that knows what was called.
fn named(result: &ContextItem, name: &str) -> ContextItem {
    let mut result = result.clone();
    result.metadata.insert(FUNCTION_NAME.to_owned(), Value::String(name.to_owned()));
    result
}

/// The name of a call of which only the result is known.
const UNKNOWN_CALL: &str = "unknown_call";

/// The call of a result whose call is not there, and the result of it: providers refuse a result of nothing.
fn with_call(result: &ContextItem) -> (ContextItem, ContextItem) {
    let (name, id) = made_up_call(result);
    let id = ItemId::from(id);
    let mut call = ContextItem::new(id.clone(), ItemKind::ToolCall, "{}");
    call.metadata.insert(FUNCTION_NAME.to_owned(), name.into());
    (call, named(result, name).under(id))
}

/// The name and the id of that call.
fn made_up_call(result: &ContextItem) -> (&str, &str) {
    let id = call_of(result);
    let name = result.metadata.get(FUNCTION_NAME).and_then(Value::as_str).unwrap_or(UNKNOWN_CALL);
    (name, id.strip_prefix("result:").unwrap_or(id))
}

/// Whether the call of a result failed.
pub(super) fn failed(result: &ContextItem) -> bool {
    result.metadata.get(IS_ERROR) == Some(&Value::Bool(true))
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

/// The arguments of a call as an object, which providers want: what its text is, or an object with the text.
pub(super) fn arguments(item: &ContextItem) -> Value {
    let arguments = serde_json::from_str(&item.text).ok().filter(Value::is_object);
    arguments.unwrap_or_else(|| json!({"text": item.text}))
}

/// Whether the arguments of a call are JSON, but no object.
fn is_no_object(item: &ContextItem) -> bool {
    serde_json::from_str::<Value>(&item.text).is_ok_and(|arguments| !arguments.is_object())
}

/// The arguments of a call as the text of JSON: its own text where that is an object, so that every digit stays.
pub(super) fn arguments_as_text(item: &ContextItem) -> String {
    match serde_json::from_str::<BTreeMap<String, IgnoredAny>>(&item.text) {
        Ok(_) => item.text.clone(),
        Err(_) => arguments(item).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::adapters::testing::shown as events;
    use crate::adapters::{
        Format, from_anthropic, from_gemini, from_openai_chat, recognise, to_anthropic, to_gemini, to_openai_chat,
    };

    /// The conversation without what only its own format has around it, as a session has it.
    fn bare(conversation: Conversation) -> Conversation {
        Conversation { document: None, ..conversation }
    }

    fn written(conversation: &Conversation, formats: &[Format]) -> String {
        let write = |format: &Format| {
            let text = format.write(conversation).unwrap();
            let text = serde_json::from_str::<Value>(&text).map_or(text, |value| value.to_string());
            let read = recognise(text.as_bytes(), "x").unwrap().0;
            format!("{format}, read as {read}: {}", text.trim_end())
        };
        formats.iter().map(write).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_calls_of_a_turn_are_one_message_and_so_are_their_results() {
        let conversation = from_anthropic(json!([
            {"role": "user", "content": [{"type": "text", "text": "Two cities"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "ok"},
                {"type": "tool_use", "id": "a", "name": "w", "input": {"c": "x"}},
                {"type": "tool_use", "id": "b", "name": "w", "input": {"c": "y"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {"type": "tool_result", "tool_use_id": "b", "content": "2"}]},
            {"role": "assistant", "content": "done"}]))
        .unwrap();
        let formats =
            [Format::OpenaiChat, Format::Gemini, Format::LangChain, Format::PydanticAi, Format::OpenaiResponses];
        insta::assert_snapshot!(written(&conversation, &formats), @r#"
        OpenAI chat messages, read as OpenAI chat messages: [{"role":"user","content":"Two cities"},{"role":"assistant","content":"ok","tool_calls":[{"id":"a","type":"function","function":{"name":"w","arguments":"{\"c\":\"x\"}"}},{"id":"b","type":"function","function":{"name":"w","arguments":"{\"c\":\"y\"}"}}]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"},{"role":"assistant","content":"done"}]
        Gemini contents, read as Gemini contents: [{"role":"user","parts":[{"text":"Two cities"}]},{"role":"model","parts":[{"text":"ok"},{"functionCall":{"id":"a","name":"w","args":{"c":"x"}}},{"functionCall":{"id":"b","name":"w","args":{"c":"y"}}}]},{"role":"user","parts":[{"functionResponse":{"id":"a","name":"w","response":{"output":"1"}}},{"functionResponse":{"id":"b","name":"w","response":{"output":"2"}}}]},{"role":"model","parts":[{"text":"done"}]}]
        LangChain messages, read as LangChain messages: [{"type":"human","data":{"content":"Two cities","type":"human"}},{"type":"ai","data":{"content":"ok","type":"ai","tool_calls":[{"name":"w","args":{"c":"x"},"id":"a","type":"tool_call"},{"name":"w","args":{"c":"y"},"id":"b","type":"tool_call"}]}},{"type":"tool","data":{"content":"1","type":"tool","name":"w","tool_call_id":"a"}},{"type":"tool","data":{"content":"2","type":"tool","name":"w","tool_call_id":"b"}},{"type":"ai","data":{"content":"done","type":"ai"}}]
        Pydantic AI messages, read as Pydantic AI messages: [{"parts":[{"content":"Two cities","part_kind":"user-prompt"}],"kind":"request"},{"parts":[{"content":"ok","part_kind":"text"},{"tool_name":"w","args":{"c":"x"},"tool_call_id":"a","part_kind":"tool-call"},{"tool_name":"w","args":{"c":"y"},"tool_call_id":"b","part_kind":"tool-call"}],"kind":"response"},{"parts":[{"tool_name":"w","content":"1","tool_call_id":"a","part_kind":"tool-return"},{"tool_name":"w","content":"2","tool_call_id":"b","part_kind":"tool-return"}],"kind":"request"},{"parts":[{"content":"done","part_kind":"text"}],"kind":"response"}]
        OpenAI Responses items, read as OpenAI Responses items: [{"type":"message","role":"user","content":"Two cities"},{"type":"message","role":"assistant","content":"ok"},{"type":"function_call","call_id":"a","name":"w","arguments":"{\"c\":\"x\"}"},{"type":"function_call","call_id":"b","name":"w","arguments":"{\"c\":\"y\"}"},{"type":"function_call_output","call_id":"a","output":"1"},{"type":"function_call_output","call_id":"b","output":"2"},{"type":"message","role":"assistant","content":"done"}]
        "#);
        assert!(formats.iter().all(|format| format.remarks(&conversation).is_empty()));
        let openai = from_openai_chat(to_openai_chat(&conversation).unwrap()).unwrap();
        insta::assert_snapshot!(written(&openai, &[Format::Anthropic]), @r#"Anthropic messages, read as Anthropic messages: [{"role":"user","content":"Two cities"},{"role":"assistant","content":[{"type":"text","text":"ok"},{"type":"tool_use","id":"a","name":"w","input":{"c":"x"}},{"type":"tool_use","id":"b","name":"w","input":{"c":"y"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":"2"}]},{"role":"assistant","content":"done"}]"#);
    }

    #[test]
    fn what_a_format_has_another_place_for_goes_there() {
        let openai = from_openai_chat(json!([
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": [{"type": "text", "text": "In German."}, {"type": "text", "text": "Now."}]},
            {"role": "user", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,+/EC"}},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                {"type": "input_audio", "input_audio": {"data": "AAEC", "format": "wav"}}]},
            {"role": "assistant", "content": ""},
            {"role": "assistant", "content": "A cat."}]))
        .unwrap();
        let formats = [
            Format::Anthropic,
            Format::Gemini,
            Format::OpenaiResponses,
            Format::ClaudeCode,
            Format::Codex,
            Format::LangChain,
            Format::PydanticAi,
        ];
        insta::assert_snapshot!(written(&openai, &formats), @r#"
        Anthropic messages, read as Anthropic messages: {"system":[{"type":"text","text":"Be brief."},{"type":"text","text":"In German."},{"type":"text","text":"Now."}],"messages":[{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"+/EC"}},{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}},{"type":"text","text":"[input_audio]"}]},{"role":"assistant","content":"A cat."}]}
        Gemini contents, read as Gemini contents: {"systemInstruction":{"parts":[{"text":"Be brief."},{"text":"In German."},{"text":"Now."}]},"contents":[{"role":"user","parts":[{"text":"What is this?"},{"inlineData":{"mimeType":"image/png","data":"+/EC"}},{"fileData":{"fileUri":"https://example.org/a.png"}},{"text":"[input_audio]"}]},{"role":"model","parts":[{"text":"A cat."}]}]}
        OpenAI Responses items, read as OpenAI Responses items: [{"type":"message","role":"developer","content":"Be brief."},{"type":"message","role":"developer","content":"In German."},{"type":"message","role":"developer","content":"Now."},{"type":"message","role":"user","content":"What is this?"},{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,+/EC"}]},{"type":"message","role":"user","content":[{"type":"input_image","image_url":"https://example.org/a.png"}]},{"type":"message","role":"user","content":"[input_audio]"},{"type":"message","role":"assistant","content":"A cat."}]
        Claude Code transcript, read as Claude Code transcript: {"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"What is this?"},"uuid":"715afd7f-2d6e-8bea-8e89-62bdf98f9e57"}
        {"parentUuid":"715afd7f-2d6e-8bea-8e89-62bdf98f9e57","isSidechain":false,"type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"+/EC"}}]},"uuid":"c393cc7e-8898-80a7-82f7-83e4d07399ba"}
        {"parentUuid":"c393cc7e-8898-80a7-82f7-83e4d07399ba","isSidechain":false,"type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}]},"uuid":"16d7d173-2337-870d-8d31-ce1a13d38814"}
        {"parentUuid":"16d7d173-2337-870d-8d31-ce1a13d38814","isSidechain":false,"type":"user","message":{"role":"user","content":"[input_audio]"},"uuid":"9fd1fc08-456f-8241-8130-9020d144c016"}
        {"parentUuid":"9fd1fc08-456f-8241-8130-9020d144c016","isSidechain":false,"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"A cat."}]},"uuid":"72281cc1-d2bf-8b47-8887-132cbd6e8c67"}
        Codex transcript, read as Codex transcript: {"type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be brief."}]}}
        {"type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"In German."}]}}
        {"type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"Now."}]}}
        {"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"What is this?"}]}}
        {"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,+/EC"}]}}
        {"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_image","image_url":"https://example.org/a.png"}]}}
        {"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"[input_audio]"}]}}
        {"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"A cat."}]}}
        LangChain messages, read as LangChain messages: [{"type":"system","data":{"content":"Be brief.","type":"system"}},{"type":"system","data":{"content":[{"type":"text","text":"In German."},{"type":"text","text":"Now."}],"type":"system"}},{"type":"human","data":{"content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,+/EC"}},{"type":"image_url","image_url":{"url":"https://example.org/a.png"}},{"type":"text","text":"[input_audio]"}],"type":"human"}},{"type":"ai","data":{"content":"A cat.","type":"ai"}}]
        Pydantic AI messages, read as Pydantic AI messages: [{"parts":[{"content":"Be brief.","part_kind":"system-prompt"}],"kind":"request"},{"parts":[{"content":"In German.","part_kind":"system-prompt"},{"content":"Now.","part_kind":"system-prompt"}],"kind":"request"},{"parts":[{"content":"What is this?","part_kind":"user-prompt"},{"content":[{"data":"-_EC","media_type":"image/png","kind":"binary"}],"part_kind":"user-prompt"},{"content":[{"url":"https://example.org/a.png","kind":"image-url"}],"part_kind":"user-prompt"},{"content":"[input_audio]","part_kind":"user-prompt"}],"kind":"request"},{"parts":[{"content":"A cat.","part_kind":"text"}],"kind":"response"}]
        "#);
        insta::assert_snapshot!(Format::Anthropic.remarks(&openai).join("\n"), @"parts that are not text were left out: 1 input_audio; a word stands for each");
        insta::assert_snapshot!(Format::ClaudeCode.remarks(&openai).join("\n"), @r"
        rules were left out, since this format has no place for them: 3
        parts that are not text were left out: 1 input_audio; a word stands for each
        ");
        let back = [from_anthropic(to_anthropic(&openai).unwrap()), from_gemini(to_gemini(&openai).unwrap())];
        insta::assert_snapshot!(back.map(|back| events(&back.unwrap())).join("\n\n"), @r#"
        policy m1 "Be brief."
        policy m1.2 "In German."
        policy m1.3 "Now."
        user_turn m2 "What is this?"
        user_turn m2.2 "[image image/png]"
        user_turn m2.3 "[image] https://example.org/a.png"
        user_turn m2.4 "[input_audio]"
        agent_msg m3 "A cat."

        policy m1 "Be brief."
        policy m1.2 "In German."
        policy m1.3 "Now."
        user_turn m2 "What is this?"
        user_turn m2.2 "[inlineData]"
        user_turn m2.3 "[fileData] https://example.org/a.png"
        user_turn m2.4 "[input_audio]"
        agent_msg m3 "A cat."
        "#);
    }

    #[test]
    fn what_no_other_format_has_is_left_out_or_said_in_words() {
        let anthropic = json!({"system": "Be brief.", "messages": [
            {"role": "user", "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAEC"}},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAEC"}}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"},
                {"type": "redacted_thinking", "data": "Emw"},
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "cat"}},
                {"type": "web_search_tool_result", "tool_use_id": "s", "content": [
                    {"type": "web_search_result", "url": "https://example.org", "title": "Cats", "encrypted_content": "Eq"}]},
                {"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t", "is_error": true, "content": [
                    {"type": "text", "text": "blurred"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAEC"}},
                    {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}]}]}]});
        let conversation = bare(from_anthropic(anthropic.clone()).unwrap());
        let formats = [Format::OpenaiChat, Format::Gemini, Format::LangChain, Format::PydanticAi];
        insta::assert_snapshot!(written(&conversation, &formats), @r#"
        OpenAI chat messages, read as OpenAI chat messages: [{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAEC"}},{"type":"text","text":"[document application/pdf]"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"s","type":"function","function":{"name":"web_search","arguments":"{\"query\":\"cat\"}"}}]},{"role":"tool","tool_call_id":"s","content":[{"type":"text","text":"[web_search_result] https://example.org\nCats"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"look","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t","content":[{"type":"text","text":"blurred"},{"type":"text","text":"[image image/png]"},{"type":"text","text":"[image] https://example.org/a.png"}]}]
        Gemini contents, read as Gemini contents: {"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AAEC"}},{"text":"[document application/pdf]"}]},{"role":"model","parts":[{"functionCall":{"id":"s","name":"web_search","args":{"query":"cat"}}}]},{"role":"user","parts":[{"functionResponse":{"id":"s","name":"web_search","response":{"output":"[web_search_result] https://example.org\nCats"}}}]},{"role":"model","parts":[{"functionCall":{"id":"t","name":"look","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"t","name":"look","response":{"error":"blurred\n[image image/png]\n[image] https://example.org/a.png"}}}]}]}
        LangChain messages, read as LangChain messages: [{"type":"system","data":{"content":"Be brief.","type":"system"}},{"type":"human","data":{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAEC"}},{"type":"text","text":"[document application/pdf]"}],"type":"human"}},{"type":"ai","data":{"content":"","type":"ai","tool_calls":[{"name":"web_search","args":{"query":"cat"},"id":"s","type":"tool_call"}]}},{"type":"tool","data":{"content":["[web_search_result] https://example.org\nCats"],"type":"tool","name":"web_search","tool_call_id":"s"}},{"type":"ai","data":{"content":"","type":"ai","tool_calls":[{"name":"look","args":{},"id":"t","type":"tool_call"}]}},{"type":"tool","data":{"content":["blurred",{"type":"image_url","image_url":{"url":"data:image/png;base64,AAEC"}},"[image] https://example.org/a.png"],"type":"tool","name":"look","tool_call_id":"t","status":"error"}}]
        Pydantic AI messages, read as Pydantic AI messages: [{"parts":[{"content":"Be brief.","part_kind":"system-prompt"}],"kind":"request"},{"parts":[{"content":[{"data":"AAEC","media_type":"image/png","kind":"binary"}],"part_kind":"user-prompt"},{"content":"[document application/pdf]","part_kind":"user-prompt"}],"kind":"request"},{"parts":[{"tool_name":"web_search","args":{"query":"cat"},"tool_call_id":"s","part_kind":"tool-call"}],"kind":"response"},{"parts":[{"tool_name":"web_search","content":"[web_search_result] https://example.org\nCats","tool_call_id":"s","part_kind":"tool-return"}],"kind":"request"},{"parts":[{"tool_name":"look","args":{},"tool_call_id":"t","part_kind":"tool-call"}],"kind":"response"},{"parts":[{"tool_name":"look","content":["blurred",{"data":"AAEC","media_type":"image/png","kind":"binary"},"[image] https://example.org/a.png"],"tool_call_id":"t","part_kind":"tool-return","outcome":"failed"}],"kind":"request"}]
        "#);
        insta::assert_snapshot!(Format::OpenaiChat.remarks(&conversation).join("\n"), @r"
        thoughts of the agent were left out: 2
        parts that are not text were left out: 1 document application/pdf, 1 image image/png; a word stands for each
        ");
        insta::assert_snapshot!(Format::Gemini.remarks(&conversation).join("\n"), @r"
        thoughts of the agent were left out: 2
        parts that are not text were left out: 1 document application/pdf, 1 image image/png; a word stands for each
        ");
        // In its own format nothing is lost, even when it went through a session.
        assert_eq!(to_anthropic(&conversation).unwrap(), anthropic);
        assert_eq!(Format::Anthropic.remarks(&conversation), [""; 0]);
    }

    #[test]
    fn calls_and_results_find_each_other() {
        let call = |id: &str| Event::from(ContextItem::new(id, ItemKind::ToolCall, "f({})"));
        let result = |id: &str, call: &str| Event::from(ContextItem::new(id, ItemKind::ToolResult, id).under(call));
        let said = |id: &str, kind: ItemKind| Event::from(ContextItem::new(id, kind, id));
        let events = vec![
            call("a"),
            said("working", ItemKind::AgentMsg),
            call("b"),
            said("hurry", ItemKind::UserTurn),
            result("rb", "b"),
            said("soon", ItemKind::AgentMsg),
            result("ra", "a"),
            ContextItem::new("result:gone", ItemKind::ToolResult, "of nothing").into(),
            call("never"),
            said("bye", ItemKind::UserTurn),
        ];
        let conversation = Conversation { events, ..Conversation::default() };
        insta::assert_snapshot!(written(&conversation, &[Format::OpenaiChat, Format::Anthropic]), @r#"
        OpenAI chat messages, read as OpenAI chat messages: [{"role":"assistant","content":"working","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"text\":\"f({})\"}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{\"text\":\"f({})\"}"}}]},{"role":"tool","tool_call_id":"b","content":"rb"},{"role":"tool","tool_call_id":"a","content":"ra"},{"role":"user","content":"hurry"},{"role":"assistant","content":"soon","tool_calls":[{"id":"gone","type":"function","function":{"name":"unknown_call","arguments":"{}"}}]},{"role":"tool","tool_call_id":"gone","content":"of nothing"},{"role":"assistant","content":null,"tool_calls":[{"id":"never","type":"function","function":{"name":"f","arguments":"{\"text\":\"f({})\"}"}}]},{"role":"user","content":"bye"}]
        Anthropic messages, read as Anthropic messages: [{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"text":"f({})"}},{"type":"text","text":"working"},{"type":"tool_use","id":"b","name":"f","input":{"text":"f({})"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"rb"},{"type":"tool_result","tool_use_id":"a","content":"ra"}]},{"role":"user","content":"hurry"},{"role":"assistant","content":[{"type":"text","text":"soon"},{"type":"tool_use","id":"gone","name":"unknown_call","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"gone","content":"of nothing"}]},{"role":"assistant","content":[{"type":"tool_use","id":"never","name":"f","input":{"text":"f({})"}}]},{"role":"user","content":"bye"}]
        "#);
        insta::assert_snapshot!(Format::OpenaiChat.remarks(&conversation).join("\n"), @r"
        calls without a result, which providers refuse: `never`
        results without a call got one that was made up: `result:gone`
        ");
    }

    #[test]
    fn names_and_ids_are_such_that_providers_take_them() {
        let long = "i".repeat(70);
        let mut events = Vec::new();
        for (id, name) in [("call:1", "github.list_issues"), ("call_1", "fs/read file"), (&long, "github/list_issues")]
        {
            let mut call = ContextItem::new(id, ItemKind::ToolCall, "{}");
            call.metadata.insert(FUNCTION_NAME.to_owned(), name.into());
            let result = ContextItem::new(format!("r {id}"), ItemKind::ToolResult, "ok").under(id);
            events.extend([Event::from(call), result.into()]);
        }
        events.push(ContextItem::new("result:gone:1", ItemKind::ToolResult, "of nothing").into());
        let conversation = Conversation { events, ..Conversation::default() };
        let formats = [Format::OpenaiChat, Format::Anthropic, Format::Gemini, Format::OpenaiResponses];
        insta::assert_snapshot!(written(&conversation, &formats), @r#"
        OpenAI chat messages, read as OpenAI chat messages: [{"role":"assistant","content":null,"tool_calls":[{"id":"call_1_0af63155","type":"function","function":{"name":"github_list_issues","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1_0af63155","content":"ok"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"fs_read_file","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":"ok"},{"role":"assistant","content":null,"tool_calls":[{"id":"iiiiiiiiiiiiiiiiiiiiiiiiiiiiiii_0df8392f","type":"function","function":{"name":"github_list_issues_0097068d","arguments":"{}"}}]},{"role":"tool","tool_call_id":"iiiiiiiiiiiiiiiiiiiiiiiiiiiiiii_0df8392f","content":"ok"},{"role":"assistant","content":null,"tool_calls":[{"id":"gone_1","type":"function","function":{"name":"unknown_call","arguments":"{}"}}]},{"role":"tool","tool_call_id":"gone_1","content":"of nothing"}]
        Anthropic messages, read as Anthropic messages: [{"role":"assistant","content":[{"type":"tool_use","id":"call_1_0af63155","name":"github_list_issues","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1_0af63155","content":"ok"}]},{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"fs_read_file","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"ok"}]},{"role":"assistant","content":[{"type":"tool_use","id":"iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii_0df8392f","name":"github_list_issues_0097068d","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii_0df8392f","content":"ok"}]},{"role":"assistant","content":[{"type":"tool_use","id":"gone_1","name":"unknown_call","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"gone_1","content":"of nothing"}]}]
        Gemini contents, read as Gemini contents: [{"role":"model","parts":[{"functionCall":{"id":"call_1_0af63155","name":"github_list_issues","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"call_1_0af63155","name":"github_list_issues","response":{"output":"ok"}}}]},{"role":"model","parts":[{"functionCall":{"id":"call_1","name":"fs_read_file","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"call_1","name":"fs_read_file","response":{"output":"ok"}}}]},{"role":"model","parts":[{"functionCall":{"id":"iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii_0df8392f","name":"github_list_issues_0097068d","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii_0df8392f","name":"github_list_issues_0097068d","response":{"output":"ok"}}}]},{"role":"model","parts":[{"functionCall":{"id":"gone_1","name":"unknown_call","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"gone_1","name":"unknown_call","response":{"output":"of nothing"}}}]}]
        OpenAI Responses items, read as OpenAI Responses items: [{"type":"function_call","call_id":"call_1_0af63155","name":"github_list_issues","arguments":"{}"},{"type":"function_call_output","call_id":"call_1_0af63155","output":"ok"},{"type":"function_call","call_id":"call_1","name":"fs_read_file","arguments":"{}"},{"type":"function_call_output","call_id":"call_1","output":"ok"},{"type":"function_call","call_id":"iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii_0df8392f","name":"github_list_issues_0097068d","arguments":"{}"},{"type":"function_call_output","call_id":"iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii_0df8392f","output":"ok"},{"type":"function_call","call_id":"gone_1","name":"unknown_call","arguments":"{}"},{"type":"function_call_output","call_id":"gone_1","output":"of nothing"}]
        "#);
        insta::assert_snapshot!(Format::Gemini.remarks(&conversation).join("\n"), @r"
        names of functions that the provider refuses were changed: `fs/read file`, `github.list_issues`, `github/list_issues`
        results without a call got one that was made up: `result:gone:1`
        ");
        // What came in the format itself stays, and what answers it names it so.
        let own = json!([{"role": "assistant", "content": null, "tool_calls": [
            {"id": "call:1", "type": "function", "function": {"name": "a.b", "arguments": "{}"}}]}]);
        let mut mixed = from_openai_chat(own.clone()).unwrap();
        mixed.events.push(ContextItem::new("r", ItemKind::ToolResult, "ok").under("call:1").into());
        let written = to_openai_chat(&mixed).unwrap();
        assert_eq!((&written[0], &written[1]["tool_call_id"]), (&own[0], &json!("call:1")));
        assert_eq!(Format::OpenaiChat.remarks(&mixed), [""; 0]);
    }

    #[test]
    fn arguments_are_an_object_for_every_provider() {
        let call = |id: &str, text: &str| {
            let mut call = ContextItem::new(id, ItemKind::ToolCall, text);
            call.metadata.insert(FUNCTION_NAME.to_owned(), "f".into());
            Event::from(call)
        };
        let result = |id: &str, call: &str| Event::from(ContextItem::new(id, ItemKind::ToolResult, "ok").under(call));
        let conversation = |arguments: &str| Conversation {
            events: vec![call("a", arguments), result("r", "a")],
            ..Conversation::default()
        };
        for (arguments, written, said) in [
            ("{\"x\":1}", json!({"x": 1}), ""),
            ("[1,2]", json!({"text": "[1,2]"}), "arguments that are no object were put into one: 1"),
            ("7", json!({"text": "7"}), "arguments that are no object were put into one: 1"),
        ] {
            let conversation = conversation(arguments);
            let anthropic = to_anthropic(&conversation).unwrap();
            assert_eq!(anthropic[0]["content"][0]["input"], written, "{arguments}");
            let gemini = to_gemini(&conversation).unwrap();
            assert_eq!(gemini[0]["parts"][0]["functionCall"]["args"], written, "{arguments}");
            assert_eq!(Format::Anthropic.remarks(&conversation).join("; "), said, "{arguments}");
        }
    }

    #[test]
    fn what_failed_says_so_wherever_that_is_known_from() {
        let call = || Event::from(ContextItem::new("c", ItemKind::ToolCall, "f({})"));
        let result = || Event::from(ContextItem::new("r", ItemKind::ToolResult, "no").under("c"));
        let mut marked = result();
        marked.item.metadata.insert(IS_ERROR.to_owned(), true.into());
        let output = Some(ToolOutput { is_error: true, ..ToolOutput::text("no") });
        for result in [marked, Event { output, ..result() }] {
            let conversation = Conversation { events: vec![call(), result], ..Conversation::default() };
            let formats = [Format::Anthropic, Format::Gemini, Format::LangChain, Format::PydanticAi, Format::Otel];
            let marks = [
                "\"is_error\":true",
                "\"error\":",
                "\"status\":\"error\"",
                "\"outcome\":\"failed\"",
                r#"\"is_error\":true"#,
            ];
            for (format, mark) in formats.into_iter().zip(marks) {
                let written = written(&conversation, &[format]);
                assert!(written.contains(mark), "{written}");
            }
        }
    }

    /// Turns of one to three calls and their results, in any order and with words anywhere between.
    fn conversation() -> impl Strategy<Value = Conversation> {
        let said = prop::sample::select(&[ItemKind::UserTurn, ItemKind::AgentMsg, ItemKind::Policy][..]);
        let step = prop_oneof![said.prop_map(Some), Just(None), Just(None)];
        let steps = prop::collection::vec((step, any::<bool>(), any::<prop::sample::Index>()), 0..12);
        steps.prop_map(|steps| {
            let (mut events, mut open): (Vec<Event>, Vec<String>) = (Vec::new(), Vec::new());
            for (number, (said, calls, index)) in steps.into_iter().enumerate() {
                match said {
                    Some(kind) => events.push(ContextItem::new(format!("m{number}"), kind, "Hm.").into()),
                    None if calls || open.is_empty() => {
                        open.push(format!("c{number}"));
                        events.push(ContextItem::new(format!("c{number}"), ItemKind::ToolCall, "f({})").into());
                    }
                    None => {
                        let call = open.remove(index.index(open.len()));
                        let id = format!("r{number}");
                        events.push(ContextItem::new(id, ItemKind::ToolResult, "ok").under(call.as_str()).into());
                    }
                }
            }
            for call in open {
                events
                    .push(ContextItem::new(format!("r{call}"), ItemKind::ToolResult, "ok").under(call.as_str()).into());
            }
            Conversation { events, ..Conversation::default() }
        })
    }

    /// The ids under `key` of the parts of a kind in a message.
    fn ids(message: Option<&Value>, list: &str, kind: &str, key: &str) -> BTreeSet<String> {
        let parts = message.and_then(|message| message.get(list)?.as_array()).into_iter().flatten();
        let parts = parts.filter(|part| part["type"] == kind);
        parts.map(|part| part[key].as_str().unwrap().to_owned()).collect()
    }

    proptest! {
        #[test]
        fn every_call_is_answered_at_once(conversation in conversation()) {
            let openai = to_openai_chat(&conversation).unwrap();
            let mut due = BTreeSet::new();
            for message in openai.as_array().unwrap() {
                match message["tool_call_id"].as_str() {
                    Some(id) => prop_assert!(due.remove(id), "{openai}"),
                    None => prop_assert!(due.is_empty(), "{openai}"),
                }
                due.extend(ids(Some(message), "tool_calls", "function", "id"));
            }
            prop_assert!(due.is_empty(), "{openai}");
            let anthropic = to_anthropic(&conversation).unwrap();
            let messages = anthropic.get("messages").unwrap_or(&anthropic).as_array().unwrap();
            for (number, message) in messages.iter().enumerate() {
                let answers = ids(messages.get(number + 1), "content", "tool_result", "tool_use_id");
                prop_assert_eq!(ids(Some(message), "content", "tool_use", "id"), answers, "{}", anthropic);
            }
        }
    }
}

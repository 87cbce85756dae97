//! The session document of the Python implementation: events, facts and episodes, and references to artifacts without
//! their bytes; both ways.
//!
//! `{"event_count", "events": [item], "artifacts": {handle: about}, "facts": {key: value}, "episodes": [episode]}`.
//! Since the bytes are missing, a reference stays in the metadata of its event and does not become an artifact of ours:
//! the text of the event is all that is known.

use serde_json::{Map, Value, json};

use super::Conversation;
use super::error::{AdapterError, array, object, parse, text};
use crate::event::{ContextItem, Episode, Fact, ItemKind, Sensitivity};

/// The metadata key with members of an event that our types do not have.
const OTHER: &str = "session_event";

/// Reads a session document.
///
/// # Errors
/// [`AdapterError`] with the place when the text is not JSON, or an event, fact or episode is malformed.
pub fn from_session_json(json: &str) -> Result<Conversation, AdapterError> {
    let mut document = object(parse(json, "")?, "")?;
    let mut conversation = Conversation::default();
    let events = document.insert("events".to_owned(), Value::Array(Vec::new()));
    let events = events.ok_or_else(|| AdapterError::wrong("", "events", "an array", None))?;
    for (number, event) in array(events, "events")?.into_iter().enumerate() {
        let place = format!("events[{number}]");
        conversation.events.push(read_event(object(event, &place)?, &place)?.into());
    }
    if let Some(facts) = document.get_mut("facts") {
        for (key, value) in object(std::mem::replace(facts, json!({})), "facts")? {
            let Value::String(value) = value else {
                return Err(AdapterError::wrong("facts", &key, "a string", Some(&value)));
            };
            conversation.facts.push(Fact { key, value });
        }
    }
    if let Some(episodes) = document.get("episodes") {
        for (number, episode) in array(episodes.clone(), "episodes")?.into_iter().enumerate() {
            let place = format!("episodes[{number}]");
            let episode = object(episode, &place)?;
            let id = text(&episode, id_key(&episode), &place)?.to_owned();
            conversation.episodes.push(Episode { id, summary: text(&episode, "summary", &place)?.to_owned() });
        }
    }
    conversation.document = Some(document);
    Ok(conversation)
}

/// The key of an episode's id.
fn id_key(episode: &Map<String, Value>) -> &'static str {
    if episode.contains_key("episode_id") { "episode_id" } else { "id" }
}

fn read_event(mut event: Map<String, Value>, place: &str) -> Result<ContextItem, AdapterError> {
    let kind: Result<ItemKind, _> = text(&event, "kind", place)?.parse();
    let kind = kind.map_err(|error| AdapterError::new(place, format!("`kind`: {error}")))?;
    let mut item = ContextItem::new(text(&event, "id", place)?, kind, text(&event, "text", place)?);
    let mut read = vec!["kind", "id", "text"];
    if let Some(Value::String(parent)) = event.get("parent_id") {
        item.parent_id = Some(parent.as_str().into());
        read.push("parent_id");
    }
    if let Some(count) = event.get("token_estimate").and_then(Value::as_u64) {
        item.token_estimate = Some(count);
        read.push("token_estimate");
    }
    if let Some(level) = event.get("sensitivity") {
        let level = level.as_str().ok_or_else(|| AdapterError::wrong(place, "sensitivity", "a string", Some(level)))?;
        let level: Result<Sensitivity, _> = level.parse();
        item.sensitivity = level.map_err(|error| AdapterError::new(place, format!("`sensitivity`: {error}")))?;
    }
    if let Some(Value::Object(metadata)) = event.get_mut("metadata") {
        item.metadata = std::mem::take(metadata);
    }
    for key in read {
        event.shift_remove(key);
    }
    if !event.is_empty() {
        item.metadata.insert(OTHER.to_owned(), Value::Object(event));
    }
    Ok(item)
}

/// Writes the session document of a conversation: the inverse of [`from_session_json`].
#[must_use]
pub fn to_session_json(conversation: &Conversation) -> Value {
    let mut document = conversation.document.clone().unwrap_or_else(|| {
        object(json!({"event_count": 0, "events": [], "artifacts": {}, "facts": {}, "episodes": []}), "")
            .unwrap_or_default()
    });
    if document.contains_key("event_count") {
        document.insert("event_count".to_owned(), json!(conversation.events.len()));
    }
    let events = conversation.events.iter().map(|event| write_event(&event.item));
    document.insert("events".to_owned(), events.collect());
    if document.contains_key("facts") || !conversation.facts.is_empty() {
        let facts = conversation.facts.iter().map(|fact| (fact.key.clone(), json!(fact.value)));
        document.insert("facts".to_owned(), Value::Object(facts.collect()));
    }
    if document.contains_key("episodes") || !conversation.episodes.is_empty() {
        let known = document.get("episodes").and_then(Value::as_array).cloned().unwrap_or_default();
        let episodes = conversation.episodes.iter().enumerate();
        let episodes = episodes.map(|(number, episode)| write_episode(episode, known.get(number)));
        document.insert("episodes".to_owned(), episodes.collect());
    }
    Value::Object(document)
}

fn write_event(item: &ContextItem) -> Value {
    let mut metadata = item.metadata.clone();
    let mut event = Map::new();
    event.insert("id".to_owned(), json!(item.id));
    event.insert("kind".to_owned(), json!(item.kind));
    event.insert("text".to_owned(), json!(item.text));
    if let Some(count) = item.token_estimate {
        event.insert("token_estimate".to_owned(), json!(count));
    }
    if let Some(parent) = &item.parent_id {
        event.insert("parent_id".to_owned(), json!(parent));
    }
    if let Some(artifact) = &item.artifact {
        event.insert("artifact_ref".to_owned(), json!(artifact));
    }
    match metadata.shift_remove(OTHER) {
        Some(Value::Object(other)) => super::mcp::add_missing(&mut event, &other),
        Some(other) => {
            metadata.insert(OTHER.to_owned(), other);
        }
        None => {}
    }
    if event.contains_key("sensitivity") || item.sensitivity != Sensitivity::default() {
        event.insert("sensitivity".to_owned(), json!(item.sensitivity));
    }
    if !metadata.is_empty() {
        event.insert("metadata".to_owned(), Value::Object(metadata));
    }
    Value::Object(event)
}

/// An episode together with the further members of `known`, the entry at its place.
fn write_episode(episode: &Episode, known: Option<&Value>) -> Value {
    let known = known.and_then(Value::as_object).cloned().unwrap_or_default();
    let key = id_key(&known);
    let mut written = match known.get(key).and_then(Value::as_str) == Some(&episode.id) {
        true => known,
        false => Map::new(),
    };
    written.insert(key.to_owned(), json!(episode.id));
    written.insert("summary".to_owned(), json!(episode.summary));
    Value::Object(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_survives_both_ways() {
        let document = json!({
            "event_count": 2,
            "events": [
                {"id": "u1", "kind": "user_turn", "text": "Hi", "token_estimate": 1, "metadata": {}, "parent_id": null},
                {"id": "result:tc1", "kind": "tool_result", "text": "short", "token_estimate": 0, "parent_id": "u1",
                 "sensitivity": "internal", "metadata": {"tool": "t"}, "new": [1],
                 "artifact_ref": {"handle": "artifact:result:tc1", "media_type": "text/plain", "size_bytes": 9, "label": ""}}
            ],
            "artifacts": {"artifact:result:tc1": {"media_type": "text/plain", "size_bytes": 9, "label": ""}},
            "facts": {"tz": "UTC"},
            "episodes": [{"episode_id": "e1", "summary": "s", "tags": ["x"]}],
            "version": 3
        });
        let conversation = from_session_json(&document.to_string()).unwrap();
        assert_eq!(to_session_json(&conversation), document);
        assert_eq!(conversation.facts, [Fact { key: "tz".to_owned(), value: "UTC".to_owned() }]);
        assert_eq!(conversation.episodes, [Episode { id: "e1".to_owned(), summary: "s".to_owned() }]);
        let result = &conversation.events[1].item;
        assert_eq!((result.sensitivity, result.artifact.is_none()), (Sensitivity::Internal, true));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let error = |json: &str| from_session_json(json).unwrap_err().to_string();
        insta::assert_snapshot!(error("{}"), @"`events` is missing; expected an array");
        insta::assert_snapshot!(error(r#"{"events": [{"id": "a", "kind": "x", "text": ""}]}"#), @"events[0]: `kind`: unknown kind of event `x`; use user_turn, agent_msg, tool_call, tool_result, doc_snippet, retrieved_doc, memory_fact, plan_state, policy");
        insta::assert_snapshot!(error(r#"{"events": [], "facts": {"a": 1}}"#), @"facts: `a` must be a string, not a number");
        insta::assert_snapshot!(error(r#"{"events": [], "episodes": [{"summary": "s"}]}"#), @"episodes[0]: `id` is missing; expected a string");
    }
}

//! Pydantic AI: a message history (a list of requests and responses with `parts`, as `all_messages_json` writes it), or
//! an object with `messages`; both ways.
//!
//! Every part is an event; a prompt of the user with pictures in it is several. The instructions that each request
//! repeats are said when they change. Parts that are the library's own book-keeping (which tools were available, digests)
//! and that no model sees are kept without an event.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use serde_json::{Map, Value, json};

use super::Conversation;
use super::error::{AdapterError, Alike, array, check_nesting, object, shown, text};
use super::openai::unwrap;
use super::parts::Picture;
use super::wire::{Content, Dialect, Piece, Reader};
use super::writer::{Rules, Writer, arguments, call_of, called_name, failed, function_name};
use crate::event::{ContextItem, ItemKind, Part, PartBody, ToolOutput};

/// Whether a list, or an object with one, holds messages of Pydantic AI.
pub(super) fn is_document(document: &Value) -> bool {
    let messages = document.get("messages").unwrap_or(document);
    messages.as_array().and_then(|messages| messages.first()).is_some_and(|first| {
        let kind = first.get("kind").and_then(Value::as_str);
        matches!(kind, Some("request" | "response")) && first.get("parts").is_some_and(Value::is_array)
    })
}

/// Reads a history, or an object with `messages`.
///
/// # Errors
/// [`AdapterError`] when a message or part is malformed, and when no part is of a kind that the library has.
pub fn from_pydantic_ai(document: Value) -> Result<Conversation, AdapterError> {
    check_nesting(&document, "")?;
    let (document, messages) = unwrap(document, &["messages"])?;
    let mut reader = Reader::new(Dialect::PydanticAi);
    let mut alike = Alike::default();
    let mut instructions = String::new();
    for (number, message) in messages.into_iter().enumerate() {
        let place = format!("messages[{number}]");
        read_message(object(message, &place)?, &place, &mut instructions, &mut reader, &mut alike)?;
    }
    alike.check()?;
    Ok(reader.finish(document))
}

fn read_message(
    message: Map<String, Value>,
    place: &str,
    instructions: &mut String,
    reader: &mut Reader,
    alike: &mut Alike,
) -> Result<(), AdapterError> {
    let kind = match text(&message, "kind", place)? {
        "request" => ItemKind::UserTurn,
        "response" => ItemKind::AgentMsg,
        other => {
            let reason = format!("unknown kind of message `{}`; use request or response", shown(other));
            return Err(AdapterError::new(place, reason));
        }
    };
    let Some(parts) = message.get("parts").and_then(Value::as_array).map(Vec::len) else {
        return Err(AdapterError::wrong(place, "parts", "an array", message.get("parts")));
    };
    let mut message = Message { value: Value::Object(message), kind, pieces: Vec::new() };
    let stated = message.value.get("instructions").and_then(Value::as_str);
    if let Some(stated) = stated.filter(|stated| stated != instructions).map(str::to_owned) {
        message.say("/instructions", ItemKind::Policy);
        *instructions = stated;
    }
    for number in 0..parts {
        message.read_part(&format!("/parts/{number}"), &format!("{place}.parts[{number}]"), alike)?;
    }
    reader.message(message.value, kind, message.pieces);
    Ok(())
}

/// Parts that no model sees.
const BOOKKEEPING: [&str; 5] = [
    "tool-availability-delta",
    "capability-load-delta",
    "model-settings-delta",
    "instruction-baseline",
    "instruction-digest",
];

/// A message, and what was taken out of it.
struct Message {
    value: Value,
    /// Who speaks in it, where a part does not say otherwise.
    kind: ItemKind,
    pieces: Vec<Piece>,
}

impl Message {
    /// Takes the text at `at`. An empty one says nothing and stays where it is.
    fn take(&mut self, at: &str) -> Option<Content> {
        self.value.pointer(at).and_then(Value::as_str).filter(|text| !text.is_empty())?;
        Some(Content::text(&mut self.value, at, |_| String::new()))
    }

    /// Takes the text at `at`, which somebody said.
    fn say(&mut self, at: &str, kind: ItemKind) {
        let said = self.take(at).map(|content| Piece::Said(kind, content));
        self.pieces.extend(said);
    }

    fn read_part(&mut self, at: &str, place: &str, alike: &mut Alike) -> Result<(), AdapterError> {
        let Some(part) = self.value.pointer(at).and_then(Value::as_object) else {
            return Err(AdapterError::new(place, "a part must be an object"));
        };
        let content = format!("{at}/content");
        let part_kind = text(part, "part_kind", place)?;
        match part_kind {
            "system-prompt" | "instruction" | "instruction-delta" => self.read_content(&content, ItemKind::Policy),
            "user-prompt" | "retry-feedback" => self.read_content(&content, ItemKind::UserTurn),
            "thinking" => {
                let thought = self.take(&content).map(Piece::Thought);
                self.pieces.extend(thought);
            }
            "text" | "compaction" | "file" => self.read_content(&content, self.kind),
            "speech" => self.say(&format!("{at}/transcript"), self.kind),
            "tool-call" | "builtin-tool-call" => {
                let id = part.get("tool_call_id").and_then(Value::as_str).filter(|id| !id.is_empty());
                let (id, name) = (id.map(str::to_owned), text(part, "tool_name", place)?.to_owned());
                let content = Content::arguments(&mut self.value, &format!("{at}/args"));
                self.pieces.push(Piece::Call { id, name, content });
            }
            // Without a tool it answers nothing.
            "retry-prompt" if !part.get("tool_name").is_some_and(Value::is_string) => {
                self.read_content(&content, ItemKind::UserTurn);
            }
            "tool-return" | "builtin-tool-return" | "retry-prompt" => {
                let outcome = part.get("outcome").and_then(Value::as_str).unwrap_or("success");
                let failed = part_kind == "retry-prompt" || outcome != "success";
                let call = text(part, "tool_call_id", place)?.to_owned();
                let content = returned(&mut self.value, &content, failed)?;
                self.pieces.push(Piece::Result { call, failed, content });
            }
            known if BOOKKEEPING.contains(&known) => {}
            other => {
                alike.unknown(place, || format!("no part has the kind `{}`", shown(other)));
                let other = Content::nothing(format!("[{}]", shown(other)));
                self.pieces.push(Piece::Said(self.kind, other));
                return Ok(());
            }
        }
        alike.known();
        Ok(())
    }

    /// Reads a text, a list of texts and other contents, or something else as what it is.
    fn read_content(&mut self, at: &str, kind: ItemKind) {
        match self.value.pointer(at) {
            Some(Value::Array(contents)) => {
                for number in 0..contents.len() {
                    self.read_content(&format!("{at}/{number}"), kind);
                }
            }
            Some(content @ Value::Object(members)) => match members.get("kind").and_then(Value::as_str) {
                Some("text-content") => self.say(&format!("{at}/content"), kind),
                Some(_) => {
                    let described = Content::nothing(described(members));
                    self.pieces.push(Piece::Said(kind, described));
                }
                // The errors of a validation.
                None => {
                    let described = Content::nothing(content.to_string());
                    self.pieces.push(Piece::Said(kind, described));
                }
            },
            _ => self.say(at, kind),
        }
    }
}

/// What stands for content that is not text: its kind, and its media type or address.
fn described(content: &Map<String, Value>) -> String {
    let of = |key: &str| content.get(key).and_then(Value::as_str);
    let words = [of("kind"), of("url").or_else(|| of("media_type"))];
    format!("[{}]", words.into_iter().flatten().map(shown).collect::<Vec<_>>().join(" "))
}

/// What a call returned: a text, or JSON; a list with pictures or sound in it as its parts.
fn returned(message: &mut Value, at: &str, is_error: bool) -> Result<Content, AdapterError> {
    match message.pointer(at) {
        Some(Value::Array(contents)) if contents.iter().any(|content| media_of(content).is_some()) => {
            Content::output(message, at, |contents| {
                let parts = array(contents, "")?.into_iter().map(part_of).collect();
                Ok(ToolOutput { parts, is_error, ..ToolOutput::default() })
            })
        }
        Some(Value::String(_) | Value::Null) | None => Ok(Content::text(message, at, |_| String::new())),
        Some(_) => Ok(Content::json(message, at, |_| String::new())),
    }
}

fn part_of(content: Value) -> Part {
    match (media_of(&content), content) {
        (Some(body), Value::Object(mut other)) => {
            other.insert("data".to_owned(), Value::Null);
            Part { body, annotations: Map::new(), other }
        }
        (_, Value::String(text)) => Part::new(PartBody::Text(text)),
        (_, other) => Part::new(PartBody::Unknown(other)),
    }
}

/// The picture or sound in a content, if writing it again gives the same text.
fn media_of(content: &Value) -> Option<PartBody> {
    let of = |key: &str| content.get(key).and_then(Value::as_str);
    let (data, media_type) = (of("data").filter(|_| of("kind") == Some("binary"))?, of("media_type")?.to_owned());
    let bytes = URL_SAFE.decode(data).ok().filter(|bytes| URL_SAFE.encode(bytes) == data)?;
    match media_type.split('/').next() {
        Some("image") => Some(PartBody::Image { bytes, media_type }),
        Some("audio") => Some(PartBody::Audio { bytes, media_type }),
        _ => None,
    }
}

/// Writes the history of a conversation, as `ModelMessagesTypeAdapter` reads it: the inverse of [`from_pydantic_ai`].
/// From other formats, what the agent says and calls in a turn becomes one message, and so do the results of its calls;
/// kinds that the library does not have become system prompts.
///
/// # Errors
/// [`AdapterError`] when an event's metadata was edited so that it no longer fits.
pub fn to_pydantic_ai(conversation: &Conversation) -> Result<Value, AdapterError> {
    WRITER.write(conversation)
}

pub(super) const WRITER: Writer = Writer {
    dialect: Dialect::PydanticAi,
    list: &["messages"],
    fresh: Some(fresh),
    output,
    picture,
    pictures_in_results: true,
    grows: &["/parts"],
    rules: Rules::Messages,
    calls: None,
};

fn picture(picture: &Picture) -> Value {
    match picture {
        // Bytes are in the alphabet for addresses.
        Picture::Data { media_type, base64 } => {
            json!({"data": base64.replace('+', "-").replace('/', "_"), "media_type": media_type, "kind": "binary"})
        }
        Picture::At(url) => json!({"url": url, "kind": "image-url"}),
    }
}

fn output(output: &ToolOutput) -> Result<Value, AdapterError> {
    if let (true, Some(structured)) = (output.parts.is_empty(), &output.structured) {
        return Ok(serde_json::from_str(structured).unwrap_or_else(|_| Value::String(structured.clone())));
    }
    Ok(output.parts.iter().map(content_of).collect())
}

fn content_of(part: &Part) -> Value {
    match &part.body {
        PartBody::Unknown(value) => value.clone(),
        PartBody::Text(text) | PartBody::ResourceText { text, .. } => Value::String(text.clone()),
        PartBody::Image { bytes, media_type } | PartBody::Audio { bytes, media_type } => {
            let mut content = match part.other.get("kind") {
                Some(kind) if kind == "binary" => part.other.clone(),
                _ => Map::from_iter([
                    ("data".to_owned(), Value::Null),
                    ("media_type".to_owned(), media_type.as_str().into()),
                    ("kind".to_owned(), "binary".into()),
                ]),
            };
            content.insert("data".to_owned(), URL_SAFE.encode(bytes).into());
            Value::Object(content)
        }
        PartBody::ResourceBlob { uri, .. } | PartBody::ResourceLink { uri, .. } => format!("[resource {uri}]").into(),
    }
}

fn fresh(item: &ContextItem, content: &Value) -> Value {
    let message = |kind: &str, part: Value| json!({"parts": [part], "kind": kind});
    match item.kind {
        ItemKind::UserTurn => message("request", json!({"content": content, "part_kind": "user-prompt"})),
        ItemKind::AgentMsg => message("response", json!({"content": content, "part_kind": "text"})),
        ItemKind::ToolCall => {
            let call = json!({"tool_name": function_name(item), "args": arguments(item), "tool_call_id": item.id, "part_kind": "tool-call"});
            message("response", call)
        }
        ItemKind::ToolResult => {
            // A list with nothing but a text is one text.
            let content = match content.as_array().map(Vec::as_slice) {
                Some([only @ Value::String(_)]) => only,
                _ => content,
            };
            let mut result = json!({"tool_name": called_name(item), "content": content, "tool_call_id": call_of(item), "part_kind": "tool-return"});
            if failed(item) {
                result["outcome"] = "failed".into();
            }
            message("request", result)
        }
        ItemKind::Policy
        | ItemKind::PlanState
        | ItemKind::MemoryFact
        | ItemKind::DocSnippet
        | ItemKind::RetrievedDoc => message("request", json!({"content": content, "part_kind": "system-prompt"})),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::adapters::testing::{extra, near, round_trips, shown as events, with, wrapped};

    /// As `all_messages_json` of pydantic-ai 2.68 writes it, with shorter ids of runs and times.
    const SAMPLE: &str = r#"[
        {"parts":[{"content":"Be brief.","timestamp":"2026-11-27T03:04:21Z","dynamic_ref":null,"context_id":null,"scope":"conversation","metadata":null,"part_kind":"system-prompt"},{"content":["Why did it fail?",{"url":"https://example.org/a.png","force_download":false,"vendor_metadata":null,"kind":"image-url","media_type":"image/png","identifier":"1eca4f"}],"timestamp":"2026-11-27T03:04:21Z","part_kind":"user-prompt"}],"timestamp":"2026-11-27T03:04:21Z","instructions":"Be kind.","kind":"request","run_id":"r1","conversation_id":"k1","metadata":null,"state":"complete"},
        {"parts":[{"content":"Look first.","id":null,"signature":"x","provider_name":null,"provider_details":null,"part_kind":"thinking"},{"content":"I look.","id":null,"provider_name":null,"provider_details":null,"citations":null,"part_kind":"text"},{"tool_name":"read_log","args":{"job":"nightly"},"tool_call_id":"c1","tool_kind":null,"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call"},{"tool_name":"read_log","args":"{\"job\":\"bad\"}","tool_call_id":"c2","tool_kind":null,"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call"},{"tool_name":"plot","args":null,"tool_call_id":"c3","tool_kind":null,"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call"}],"usage":{"input_tokens":57,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":18,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},"model_name":"function:fn:","model_id":"function:function:fn:","timestamp":"2026-11-27T03:04:21Z","kind":"response","provider_name":null,"provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":null,"finish_reason":null,"run_id":"r1","conversation_id":"k1","metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"},
        {"parts":[{"tool_name":"read_log","content":{"log":"disk full"},"tool_call_id":"c1","tool_kind":null,"metadata":null,"timestamp":"2026-11-27T03:04:21Z","outcome":"success","retry":null,"part_kind":"tool-return","content_file_digests":[]},{"tool_name":"read_log","content":"no such job","tool_call_id":"c2","tool_kind":null,"metadata":null,"timestamp":"2026-11-27T03:04:21Z","outcome":"retried","retry":{"cause":"model_retry","attempt":1,"max_retries":1},"part_kind":"tool-return"},{"tool_name":"plot","content":["A plot",{"data":"__77","media_type":"image/png","vendor_metadata":null,"kind":"binary","identifier":"99d5e6"}],"tool_call_id":"c3","tool_kind":null,"metadata":null,"timestamp":"2026-11-27T03:04:21Z","outcome":"success","retry":null,"part_kind":"tool-return","content_file_digests":[]}],"timestamp":"2026-11-27T03:04:21Z","instructions":"Be kind.","kind":"request","run_id":"r1","conversation_id":"k1","metadata":null,"state":"complete"},
        {"parts":[{"content":"The disk was full.","id":null,"provider_name":null,"provider_details":null,"citations":null,"part_kind":"text"}],"usage":{"input_tokens":70,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":23,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},"model_name":"function:fn:","model_id":"function:function:fn:","timestamp":"2026-11-27T03:04:21Z","kind":"response","provider_name":null,"provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":null,"finish_reason":null,"run_id":"r1","conversation_id":"k1","metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"}]"#;

    fn sample() -> Value {
        serde_json::from_str(SAMPLE).unwrap()
    }

    #[test]
    fn parts_become_events_and_parts_again() {
        let conversation = from_pydantic_ai(sample()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        policy m1 "Be kind."
        policy m1.2 "Be brief."
        user_turn m1.3 "Why did it fail?"
        user_turn m1.4 "[image-url https://example.org/a.png]"
        agent_msg m2 (thought) "Look first."
        agent_msg m2.2 "I look."
        tool_call c1 read_log "{\"job\":\"nightly\"}"
        tool_call c2 read_log "{\"job\":\"bad\"}"
        tool_call c3 plot "{}"
        tool_result result:c1 < c1 "{\"log\":\"disk full\"}"
        tool_result result:c2 < c2 (failed) "no such job"
        tool_result result:c3 < c3 "A plot" +2 parts
        agent_msg m4 "The disk was full."
        "#);
        assert_eq!(to_pydantic_ai(&conversation).unwrap(), sample());
        let image = conversation.events.iter().find_map(|event| event.output.as_ref()?.parts.last()).unwrap();
        assert_eq!(image.body, PartBody::Image { bytes: b"\xff\xfe\xfb".to_vec(), media_type: "image/png".to_owned() });
        let failed: Vec<&str> = conversation
            .events
            .iter()
            .filter(|event| event.item.metadata.contains_key("is_error"))
            .map(|event| event.item.id.as_str())
            .collect();
        assert_eq!(failed, ["result:c2"]);
        let wrapped = json!({"messages": sample(), "cost": 1});
        assert_eq!(to_pydantic_ai(&from_pydantic_ai(wrapped.clone()).unwrap()).unwrap(), wrapped);
    }

    #[test]
    fn every_kind_of_part_is_read() {
        let errors = json!([{"type": "missing", "loc": ["a"], "msg": "Field required"}]);
        let document = json!([
            {"kind": "response", "parts": [
                {"part_kind": "thinking", "content": "", "signature": "x"},
                {"part_kind": "builtin-tool-call", "tool_name": "web_search", "args": {"q": 1}, "tool_call_id": "b1"},
                {"part_kind": "builtin-tool-return", "tool_name": "web_search", "content": [{"url": "u"}], "tool_call_id": "b1"},
                {"part_kind": "file", "content": {"kind": "binary", "data": "AAEC", "media_type": "image/png"}},
                {"part_kind": "compaction", "content": "So far.", "id": null},
                {"part_kind": "speech", "transcript": "Ho", "speaker": "assistant"},
                {"part_kind": "tool-call", "tool_name": "f", "args": "", "tool_call_id": "c1"}]},
            {"kind": "request", "instructions": "One.", "parts": [
                {"part_kind": "retry-prompt", "tool_name": "f", "content": errors, "tool_call_id": "c1"},
                {"part_kind": "retry-prompt", "tool_name": null, "content": "again", "tool_call_id": "x"},
                {"part_kind": "retry-feedback", "content": errors},
                {"part_kind": "instruction-baseline", "instructions": []},
                {"part_kind": "instruction-delta", "id": "agent", "content": "Be short."},
                {"part_kind": "user-prompt", "content": ["Hi", {"kind": "text-content", "content": "tagged"}, {"kind": "cache-point"}]},
                {"part_kind": "hologram", "content": "?"}]},
            {"kind": "request", "instructions": "One.", "parts": []},
            {"kind": "request", "instructions": "Two.", "parts": []}]);
        let conversation = from_pydantic_ai(document.clone()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        tool_call b1 web_search "{\"q\":1}"
        tool_result result:b1 < b1 "[{\"url\":\"u\"}]"
        agent_msg m1.3 "[binary image/png]"
        agent_msg m1.4 "So far."
        agent_msg m1.5 "Ho"
        tool_call c1 f ""
        policy m2 "One."
        tool_result result:c1 < c1 (failed) "[{\"type\":\"missing\",\"loc\":[\"a\"],\"msg\":\"Field required\"}]"
        user_turn m2.3 "again"
        user_turn m2.4 "{\"type\":\"missing\",\"loc\":[\"a\"],\"msg\":\"Field required\"}"
        policy m2.5 "Be short."
        user_turn m2.6 "Hi"
        user_turn m2.7 "tagged"
        user_turn m2.8 "[cache-point]"
        user_turn m2.9 "[hologram]"
        user_turn m3 ""
        policy m4 "Two."
        "#);
        assert_eq!(to_pydantic_ai(&conversation).unwrap(), document);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let error = |messages: Value| from_pydantic_ai(messages).unwrap_err().to_string();
        let request = |part: Value| json!([{"kind": "request", "parts": [part]}]);
        insta::assert_snapshot!(error(json!([{"parts": []}])), @"messages[0]: `kind` is missing; expected a string");
        insta::assert_snapshot!(error(json!([{"kind": "note", "parts": []}])), @"messages[0]: unknown kind of message `note`; use request or response");
        insta::assert_snapshot!(error(json!([{"kind": "request", "parts": 7}])), @"messages[0]: `parts` must be an array, not a number");
        insta::assert_snapshot!(error(request(json!(7))), @"messages[0].parts[0]: a part must be an object");
        insta::assert_snapshot!(error(request(json!({"content": "a"}))), @"messages[0].parts[0]: `part_kind` is missing; expected a string");
        insta::assert_snapshot!(error(request(json!({"part_kind": "tool-call", "tool_call_id": "c9"}))), @"messages[0].parts[0]: `tool_name` is missing; expected a string");
    }

    #[test]
    fn what_only_looks_alike_is_refused() {
        let parts = |parts: Value| json!([{"kind": "request", "parts": []}, {"kind": "request", "parts": parts}]);
        let robot = json!({"part_kind": "robot", "content": "Hi"});
        let error = from_pydantic_ai(parts(json!([robot, robot]))).unwrap_err().to_string();
        insta::assert_snapshot!(error, @"messages[1].parts[0]: no part has the kind `robot`, and nothing else here is known either; this is a different format");
        for other in [json!([{"role": "user", "parts": []}]), json!([{"kind": "message", "parts": []}]), json!([])] {
            assert!(!is_document(&other), "{other}");
        }
    }

    #[test]
    fn events_from_elsewhere_become_messages() {
        let image = PartBody::Image { bytes: b"\xff\xfe".to_vec(), media_type: "image/png".to_owned() };
        let texts = |parts: Vec<PartBody>| ToolOutput {
            parts: parts.into_iter().map(Part::new).collect(),
            ..ToolOutput::default()
        };
        let call = ContextItem::new("c", ItemKind::ToolCall, "f(x=1)");
        let result = |id: &str, output: ToolOutput| crate::adapters::Event {
            item: ContextItem::new(id, ItemKind::ToolResult, "").under("c"),
            output: Some(output),
            envelope: None,
        };
        let structured = ToolOutput { structured: Some(r#"{"a":1}"#.into()), ..ToolOutput::default() };
        let events = vec![
            call.into(),
            result("r1", texts(vec![PartBody::Text("ok".to_owned())])),
            result("r2", texts(vec![PartBody::Text("ok".to_owned()), image])),
            result("r3", structured),
        ];
        let messages = to_pydantic_ai(&Conversation { events, ..Conversation::default() }).unwrap();
        let returned = |content: Value| json!({"tool_name": "f", "content": content, "tool_call_id": "c", "part_kind": "tool-return"});
        assert_eq!(
            messages,
            json!([
                {"parts": [{"tool_name": "f", "args": {"text": "f(x=1)"}, "tool_call_id": "c", "part_kind": "tool-call"}], "kind": "response"},
                {"parts": [
                    returned(json!("ok")),
                    returned(json!(["ok", {"data": "__4=", "media_type": "image/png", "kind": "binary"}])),
                    returned(json!({"a": 1})),
                ], "kind": "request"},
            ])
        );
        assert_eq!(to_pydantic_ai(&from_pydantic_ai(messages.clone()).unwrap()).unwrap(), messages);
    }

    fn messages() -> impl Strategy<Value = Value> {
        let content = ("(?s).{0,6}", extra(), 0..4).prop_map(|(text, extra, kind)| match kind {
            0 => with(json!({"kind": "image-url", "url": text}), extra),
            1 => with(json!({"kind": "text-content", "content": text}), extra),
            2 => with(json!({"kind": "binary", "media_type": "image/png", "data": "__4="}), extra),
            _ => json!(text),
        });
        let contents = prop::collection::vec(content, 0..3).prop_map(Value::from);
        let content = prop_oneof!["(?s).{0,6}".prop_map(Value::from), contents, extra().prop_map(Value::from)].boxed();
        let asked = (prop::sample::select(&["user-prompt", "system-prompt"][..]), content.clone(), extra(), extra())
            .prop_map(|(kind, content, part, message)| {
                let part = with(json!({"content": content, "part_kind": kind}), part);
                vec![with(json!({"parts": [part], "instructions": "Be kind.", "kind": "request"}), message)]
            });
        let said =
            (prop::sample::select(&["text", "thinking"][..]), ".{0,6}", extra()).prop_map(|(kind, text, extra)| {
                vec![json!({"parts": [with(json!({"content": text, "part_kind": kind}), extra)], "kind": "response"})]
            });
        let called = ("[a-c]", extra(), content).prop_map(|(id, args, content)| {
            vec![
                json!({"parts": [{"tool_name": "f", "args": args, "tool_call_id": id, "part_kind": "tool-call"}], "kind": "response"}),
                json!({"parts": [{"tool_name": "f", "content": content, "tool_call_id": id, "part_kind": "tool-return"}], "kind": "request"}),
            ]
        });
        prop::collection::vec(prop_oneof![asked, said, called], 0..6).prop_map(|turns| turns.concat().into())
    }

    #[test]
    fn nothing_is_lost() {
        round_trips(100, prop_oneof![messages(), wrapped("messages", messages())], from_pydantic_ai, to_pydantic_ai);
    }

    #[test]
    fn what_reads_writes_the_same() {
        round_trips(
            10,
            near(prop_oneof![messages(), wrapped("messages", messages())]),
            from_pydantic_ai,
            to_pydantic_ai,
        );
    }
}

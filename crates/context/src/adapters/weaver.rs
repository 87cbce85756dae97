//! Frames of `weaver-spec`, both ways: what an executor with a firewall of its own hands over in place of a result.
//!
//! A frame is read as a [`ResultEnvelope`]. Its summary is the summary; what else it says for the model, its
//! `structured_data`, are facts; the frame without its summary is kept in the provenance under [`FRAME`]. Written
//! again, that gives the same frame. What an envelope of ours says beyond the contract stands in the metadata that the contract
//! leaves to programs, under [`OURS`].

use serde_json::{Map, Value, json};

use contextweaver_core::text::is_date_time;

use super::error::{AdapterError, array, check_nesting, object, shown, text};
use crate::event::{ResultEnvelope, Status};

/// The key of the provenance of an envelope under which the frame stands that it was read from.
const FRAME: &str = "frame";
/// The member of the metadata of a frame with what only this program says.
const OURS: &str = "contextweaver";
/// The member of the structured data that holds statements.
const FACTS: &str = "facts";
/// What stands for an empty summary, which the contract does not allow.
const NOTHING: &str = "(nothing was returned)";

/// What a frame says beside the envelope that it is made of. What is `None` comes from the frame that the envelope was
/// read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameLabels<'l> {
    /// The id of the frame.
    pub frame_id: Option<&'l str>,
    /// What was called, e.g. the id of a tool.
    pub capability_id: Option<&'l str>,
    /// When the result was processed, as RFC 3339 writes it.
    pub created_at: Option<&'l str>,
}

/// Reads what something else has made of a result: an envelope of ours, also as `contextweaver firewall --format json`
/// prints it, or a frame.
///
/// # Errors
/// [`AdapterError`] with the place when the value is neither, or a member is of the wrong type.
pub fn read_envelope(value: Value) -> Result<ResultEnvelope, AdapterError> {
    let mut members = object(value, "")?;
    if ["frame_id", "capability_id", "summary"].iter().all(|key| members.contains_key(*key)) {
        return from_weaver_frame(Value::Object(members));
    }
    // What the command adds to every document.
    members.retain(|name, _| !["schema_version", "kind"].contains(&name.as_str()));
    let envelope = serde_json::from_value(Value::Object(members));
    envelope.map_err(|error| AdapterError::new("", format!("not an envelope: {error}")))
}

/// Reads a frame. One that was not written here is of a call that ended well, and its handles lead into the store of
/// who made it: they are kept, and name no artifact.
///
/// # Errors
/// [`AdapterError`] with the place when the value is not a frame, or a member is of the wrong type.
pub fn from_weaver_frame(frame: Value) -> Result<ResultEnvelope, AdapterError> {
    check_nesting(&frame, "")?;
    let mut frame = object(frame, "")?;
    for key in ["frame_id", "capability_id", "summary", "created_at"] {
        if text(&frame, key, "")?.is_empty() {
            return Err(AdapterError::new("", format!("`{key}` is empty; a frame must state it")));
        }
    }
    for (number, handle) in list(&frame, "handle_refs")?.iter().enumerate() {
        if !handle.is_string() {
            return Err(AdapterError::new(format!("handle_refs[{number}]"), "expected a string"));
        }
    }
    let facts = match frame.get("structured_data") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Object(data)) => facts_of(data),
        found => return Err(AdapterError::wrong("", "structured_data", "an object", found)),
    };
    let mut summary = match frame.shift_remove("summary") {
        Some(Value::String(summary)) => summary,
        _ => String::new(),
    };
    let mut envelope = match take_ours(&mut frame)? {
        None => Map::new(),
        Some(ours) => ours,
    };
    if envelope.shift_remove("empty") == Some(Value::Bool(true)) && summary == NOTHING {
        summary.clear();
    }
    for (key, default) in [("status", json!(Status::Ok)), ("artifacts", json!([])), ("views", json!([]))] {
        envelope.entry(key).or_insert(default);
    }
    envelope.insert("summary".to_owned(), summary.into());
    envelope.insert("facts".to_owned(), facts.into());
    let envelope: Result<ResultEnvelope, _> = serde_json::from_value(Value::Object(envelope));
    let mut envelope =
        envelope.map_err(|error| AdapterError::new(format!("metadata.{OURS}"), format!("not an envelope: {error}")))?;
    envelope.provenance.insert(FRAME.to_owned(), Value::Object(frame));
    Ok(envelope)
}

/// Writes an envelope as a frame. Its facts are the `facts` of the structured data, its artifacts the handles.
///
/// # Errors
/// [`AdapterError`] when the labels lack what the contract requires, and `created_at` is not a moment.
pub fn to_weaver_frame(envelope: &ResultEnvelope, labels: &FrameLabels<'_>) -> Result<Value, AdapterError> {
    let mut provenance = envelope.provenance.clone();
    let before = match provenance.shift_remove(FRAME) {
        Some(Value::Object(frame)) => frame,
        _ => Map::new(),
    };
    let label = |key: &str, given: Option<&str>| {
        let known = given.or_else(|| before.get(key)?.as_str()).filter(|text| !text.is_empty());
        known.map(str::to_owned).ok_or_else(|| AdapterError::new("", format!("a frame needs `{key}`; add it")))
    };
    let (id, capability) = (label("frame_id", labels.frame_id)?, label("capability_id", labels.capability_id)?);
    let created = label("created_at", labels.created_at)?;
    if labels.created_at.is_some_and(|given| !is_date_time(given)) {
        let reason = format!("`created_at` is `{}`; write it as 2026-11-27T10:00:00Z", shown(&created));
        return Err(AdapterError::new("", reason));
    }
    let mut ours = Map::new();
    let is_empty = envelope.summary.is_empty();
    if is_empty {
        ours.insert("empty".to_owned(), true.into());
    }
    let said = [
        ("status", (envelope.status != Status::Ok).then(|| json!(envelope.status))),
        ("artifacts", (!envelope.artifacts.is_empty()).then(|| json!(envelope.artifacts))),
        ("views", (!envelope.views.is_empty()).then(|| json!(envelope.views))),
        ("provenance", (!provenance.is_empty()).then(|| Value::Object(provenance))),
        ("firewall", envelope.firewall.as_ref().map(|stats| json!(stats))),
    ];
    ours.extend(said.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));

    let mut frame = Map::from_iter([
        ("frame_id".to_owned(), id.into()),
        ("capability_id".to_owned(), capability.into()),
        ("summary".to_owned(), if is_empty { NOTHING.into() } else { envelope.summary.as_str().into() }),
    ]);
    if !envelope.facts.is_empty() {
        frame.insert("structured_data".to_owned(), json!({FACTS: envelope.facts}));
    }
    if !envelope.artifacts.is_empty() {
        let handles: Vec<&str> = envelope.artifacts.iter().map(|artifact| artifact.handle.as_str()).collect();
        frame.insert("handle_refs".to_owned(), json!(handles));
    }
    frame.insert("created_at".to_owned(), created.into());
    // What was read before goes out as it came in, unless the envelope says something else by now.
    let of_before = before.get("structured_data").and_then(Value::as_object).map(facts_of).unwrap_or_default();
    for (key, value) in before {
        let is_kept = match key.as_str() {
            "frame_id" | "capability_id" | "created_at" => false,
            "structured_data" => of_before == envelope.facts,
            "handle_refs" => envelope.artifacts.is_empty(),
            _ => true,
        };
        if is_kept {
            frame.insert(key, value);
        }
    }
    if !ours.is_empty() {
        match frame.entry("metadata").or_insert_with(|| json!({})) {
            Value::Object(metadata) => drop(metadata.insert(OURS.to_owned(), Value::Object(ours))),
            other => *other = json!({OURS: ours}),
        }
    }
    Ok(Value::Object(frame))
}

/// Takes out of the metadata what this program wrote there, and the metadata where nothing else is in it.
fn take_ours(frame: &mut Map<String, Value>) -> Result<Option<Map<String, Value>>, AdapterError> {
    let metadata = match frame.get_mut("metadata") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(metadata)) => metadata,
        found => return Err(AdapterError::wrong("", "metadata", "an object", found.as_deref())),
    };
    let Some(ours) = metadata.shift_remove(OURS) else { return Ok(None) };
    if metadata.is_empty() {
        frame.shift_remove("metadata");
    }
    let mut ours = object(ours, &format!("metadata.{OURS}"))?;
    // These are said by the frame itself.
    ours.retain(|key, _| !["summary", "facts"].contains(&key.as_str()));
    Ok(Some(ours))
}

fn list(frame: &Map<String, Value>, key: &str) -> Result<Vec<Value>, AdapterError> {
    match frame.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(value) => array(value.clone(), key),
    }
}

/// What structured data states: its `facts` where these are texts, and a line for each other member.
fn facts_of(data: &Map<String, Value>) -> Vec<String> {
    let line = |(key, value): (&String, &Value)| match value {
        Value::String(text) => format!("{key}: {text}"),
        value => format!("{key}: {value}"),
    };
    let texts = |values: &Vec<Value>| values.iter().map(|value| Some(value.as_str()?.to_owned())).collect();
    let of_member = |(key, value): (&String, &Value)| -> Vec<String> {
        let facts = value.as_array().filter(|_| key == FACTS).and_then(texts);
        facts.unwrap_or_else(|| vec![line((key, value))])
    };
    data.iter().flat_map(of_member).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::adapters::testing::{any_json, extra, with};
    use crate::event::{ArtifactRef, ContentHash, FirewallStats, Handle, Strategy as ShownAs};

    const LABELS: FrameLabels<'_> = FrameLabels {
        frame_id: Some("frame-1"),
        capability_id: Some("desk:read_log@1"),
        created_at: Some("2026-11-27T10:00:00Z"),
    };

    fn envelope(summary: &str, kept: &str) -> ResultEnvelope {
        let artifact = ArtifactRef {
            handle: Handle::new("artifact:result:c1"),
            media_type: "text/plain".to_owned(),
            size_bytes: kept.len() as u64,
            label: "read_log".to_owned(),
            content_hash: ContentHash::of(kept.as_bytes()),
        };
        ResultEnvelope {
            status: Status::Ok,
            summary: summary.to_owned(),
            facts: Vec::new(),
            artifacts: if kept.is_empty() { Vec::new() } else { vec![artifact] },
            views: Vec::new(),
            provenance: Map::new(),
            firewall: None,
        }
    }

    /// What a frame of the contract lacks.
    fn lacks(frame: &Value) -> Option<&'static str> {
        let said = ["frame_id", "capability_id", "summary", "created_at"];
        said.into_iter().find(|key| frame[*key].as_str().is_none_or(str::is_empty))
    }

    #[test]
    fn a_frame_of_others_is_a_summary_with_facts() {
        let frame = json!({
            "frame_id": "f1", "capability_id": "desk.rooms", "summary": "Two rooms are free.",
            "structured_data": {"count": 2, "floor": "second", "facts": ["Room 5 is quiet.", "Room 7 is not."]},
            "handle_refs": ["handle-9"], "redaction_notes": "Names of guests were taken out.",
            "created_at": "2026-11-27T10:00:00Z", "metadata": {"region": "north"},
        });
        let read = from_weaver_frame(frame.clone()).unwrap();
        insta::assert_snapshot!(serde_json::to_string(&read).unwrap(), @r#"{"status":"ok","summary":"Two rooms are free.","facts":["count: 2","floor: second","Room 5 is quiet.","Room 7 is not."],"artifacts":[],"views":[],"provenance":{"frame":{"frame_id":"f1","capability_id":"desk.rooms","structured_data":{"count":2,"floor":"second","facts":["Room 5 is quiet.","Room 7 is not."]},"handle_refs":["handle-9"],"redaction_notes":"Names of guests were taken out.","created_at":"2026-11-27T10:00:00Z","metadata":{"region":"north"}}}}"#);
        assert_eq!(to_weaver_frame(&read, &FrameLabels::default()).unwrap(), frame);
    }

    #[test]
    fn an_envelope_becomes_a_frame() {
        let mut envelope = envelope("900 keys", "key0: 0");
        envelope.status = Status::Partial;
        envelope.facts = vec!["key1 is 1".to_owned()];
        envelope.firewall = Some(FirewallStats {
            strategy: ShownAs::Summary,
            threshold_chars: 2000,
            original_bytes: 7,
            original_tokens: None,
            summary_tokens: 2,
            estimator: Default::default(),
        });
        let frame = to_weaver_frame(&envelope, &LABELS).unwrap();
        insta::assert_snapshot!(frame, @r#"{"frame_id":"frame-1","capability_id":"desk:read_log@1","summary":"900 keys","structured_data":{"facts":["key1 is 1"]},"handle_refs":["artifact:result:c1"],"created_at":"2026-11-27T10:00:00Z","metadata":{"contextweaver":{"status":"partial","artifacts":[{"handle":"artifact:result:c1","media_type":"text/plain","size_bytes":7,"label":"read_log","content_hash":"6d948a1947d99600c84bde774ebaa55b5100ba75a311ffe6bb8ef6a48d3a420a"}],"firewall":{"strategy":"summary","threshold_chars":2000,"original_bytes":7,"summary_tokens":2,"estimator":"cl100k_base"}}}}"#);
        assert_eq!(lacks(&frame), None);
        assert_eq!(read_back(&frame), envelope);
        // An empty summary is said in words.
        let empty = self::envelope("", "");
        let frame = to_weaver_frame(&empty, &LABELS).unwrap();
        assert_eq!((lacks(&frame), read_back(&frame)), (None, empty));
        // What was taken out of an envelope since it was read is not said again.
        let mut read = from_weaver_frame(json!({
            "frame_id": "f", "capability_id": "c", "summary": "s", "created_at": "2026-11-27T10:00:00Z",
            "structured_data": {"guest": "Kim"},
        }))
        .unwrap();
        read.facts.clear();
        assert_eq!(to_weaver_frame(&read, &LABELS).unwrap()["structured_data"], Value::Null);
    }

    /// The envelope in a frame, without where it is from.
    fn read_back(frame: &Value) -> ResultEnvelope {
        let mut envelope = from_weaver_frame(frame.clone()).unwrap();
        envelope.provenance.shift_remove(FRAME);
        envelope
    }

    #[test]
    fn what_is_no_frame_is_refused_with_its_place() {
        let frame =
            json!({"frame_id": "f", "capability_id": "c", "summary": "s", "created_at": "2026-11-27T10:00:00Z"});
        let wrong = |key: &str, value: Value| {
            let mut frame = frame.clone();
            frame[key] = value;
            from_weaver_frame(frame).unwrap_err().to_string()
        };
        let refused = [
            from_weaver_frame(json!([])).unwrap_err().to_string(),
            from_weaver_frame(json!({"frame_id": "f"})).unwrap_err().to_string(),
            wrong("summary", json!("")),
            wrong("structured_data", json!([1])),
            wrong("handle_refs", json!("h")),
            wrong("handle_refs", json!(["h", 1])),
            wrong("metadata", json!(1)),
            wrong("metadata", json!({OURS: {"status": "fine"}})),
            wrong("metadata", json!({OURS: {"other": 1}})),
            to_weaver_frame(&envelope("x", ""), &FrameLabels::default()).unwrap_err().to_string(),
            to_weaver_frame(&envelope("x", ""), &FrameLabels { created_at: Some("today"), ..LABELS })
                .unwrap_err()
                .to_string(),
        ];
        insta::assert_snapshot!(refused.join("\n"), @"
        expected an object, not an array
        `capability_id` is missing; expected a string
        `summary` is empty; a frame must state it
        `structured_data` must be an object, not an array
        handle_refs: expected an array, not a string
        handle_refs[1]: expected a string
        `metadata` must be an object, not a number
        metadata.contextweaver: not an envelope: unknown variant `fine`, expected one of `ok`, `partial`, `error`
        metadata.contextweaver: not an envelope: unknown field `other`, expected one of `status`, `summary`, `facts`, `artifacts`, `views`, `provenance`, `firewall`
        a frame needs `frame_id`; add it
        `created_at` is `today`; write it as 2026-11-27T10:00:00Z
        ");
    }

    proptest! {
        #[test]
        fn nothing_is_lost(
            id in "[a-z]{1,4}", summary in "\\PC{1,9}", more in extra(), data in prop::option::of(any_json()),
            notes in prop::option::of("\\PC{0,9}"), handles in prop::collection::vec("[a-z]{1,4}", 0..3), metadata in extra(),
        ) {
            let mut frame = json!({"frame_id": id, "capability_id": "c", "summary": summary, "created_at": "2026-11-27T10:00:00Z", "handle_refs": handles});
            if let Some(data) = data.filter(|data| data.is_object() || data.is_null()) {
                frame["structured_data"] = data;
            }
            if let Some(notes) = notes {
                frame["redaction_notes"] = notes.into();
            }
            if !metadata.is_empty() {
                frame["metadata"] = Value::Object(metadata);
            }
            let frame = with(frame, more);
            let read = from_weaver_frame(frame.clone()).unwrap();
            prop_assert_eq!(to_weaver_frame(&read, &FrameLabels::default()).unwrap(), frame);
        }

        #[test]
        fn an_envelope_survives(
            summary in "(?s).{0,30}", kept in "[a-z]{0,3}", status in 0..3, provenance in extra(),
            facts in prop::collection::vec("\\PC{0,9}", 0..3),
        ) {
            let status = [Status::Ok, Status::Partial, Status::Error][status as usize];
            let envelope = ResultEnvelope { status, facts, provenance, ..envelope(&summary, &kept) };
            let frame = to_weaver_frame(&envelope, &LABELS).unwrap();
            prop_assert_eq!(lacks(&frame), None);
            prop_assert_eq!(read_back(&frame), envelope);
        }

        #[test]
        fn no_frame_panics(value in any_json(), data in any_json()) {
            let _ = from_weaver_frame(value.clone());
            let frame = json!({"frame_id": "f", "capability_id": "c", "summary": "s", "created_at": "d", "structured_data": data, "metadata": {OURS: value}});
            if let Ok(envelope) = from_weaver_frame(frame) {
                prop_assert!(to_weaver_frame(&envelope, &FrameLabels::default()).is_ok());
            }
        }
    }
}

//! Results of MCP tool calls (`CallToolResult`, protocol 2025-11-25 and before), both ways.
//!
//! A result is read from its text and not from a parsed value: the structured content is kept as the exact text that
//! the server sent, and a result of megabytes is held once. Definitions of tools are read by
//! [`catalog::load`](contextweaver_core::catalog::load).

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::error::{AdapterError, check_nesting, parse};
use super::values::Budget;
use crate::event::{Part, PartBody, ToolOutput};

/// The members of an object in order, each value as its text.
pub(super) struct Members<'t>(pub(super) Vec<(Cow<'t, str>, &'t RawValue)>);

impl<'t> Deserialize<'t> for Members<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'t> Visitor<'t> for Collect {
            type Value = Members<'t>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(Key(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

#[derive(Deserialize)]
struct Key<'t>(#[serde(borrow)] Cow<'t, str>);

/// The members of the object in `json`.
pub(super) fn members<'t>(json: &'t str, place: &str) -> Result<Members<'t>, AdapterError> {
    serde_json::from_str(json).map_err(|error| AdapterError::new(place, format!("not a JSON object: {error}")))
}

/// Reads a `CallToolResult`. A part of an unknown kind, or whose content does not decode, is kept as
/// [`PartBody::Unknown`].
///
/// # Errors
/// [`AdapterError`] when the text is not JSON or not a `CallToolResult`: when it has neither `content` nor
/// `structuredContent`, or one of its members is of the wrong type.
pub fn from_mcp_result(json: &str) -> Result<ToolOutput, AdapterError> {
    from_mcp_result_within(json, Bounds::NONE)
}

/// How much of a result is read into parts and members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Parts.
    pub parts: usize,
    /// Parts that are not text.
    pub others: usize,
    /// JSON values in parts, and in members beside the content.
    pub values: usize,
}

impl Bounds {
    /// Everything is read.
    pub const NONE: Self = Self { parts: usize::MAX, others: usize::MAX, values: usize::MAX };
}

/// As [`from_mcp_result`], within bounds: content that is over one becomes a single text, its JSON, of which nothing is lost; a
/// member beside the content that is over one is left out.
///
/// # Errors
/// As [`from_mcp_result`].
pub fn from_mcp_result_within(json: &str, bounds: Bounds) -> Result<ToolOutput, AdapterError> {
    read_within(json, "", bounds)
}

/// As [`from_mcp_result`], for a result that is part of a document.
pub(super) fn read(json: &str, place: &str) -> Result<ToolOutput, AdapterError> {
    read_within(json, place, Bounds::NONE)
}

fn read_within(json: &str, place: &str, bounds: Bounds) -> Result<ToolOutput, AdapterError> {
    let budget = Budget::new(bounds.values);
    let inner = |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
    let mut output = ToolOutput::default();
    let mut recognised = false;
    for (key, raw) in members(json, place)?.0 {
        match &*key {
            "content" => {
                let parts: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|_| {
                    AdapterError::new(place, "`content` must be an array of parts, as in the result of an MCP tool")
                })?;
                let parts = read_parts(&parts, &inner("content"), bounds, &budget)?;
                output.parts = parts.unwrap_or_else(|| vec![Part::new(PartBody::Text(raw.get().to_owned()))]);
                recognised = true;
            }
            "structuredContent" => {
                output.structured = Some(raw.get().to_owned());
                recognised = true;
            }
            "isError" => {
                output.is_error = serde_json::from_str(raw.get())
                    .map_err(|_| AdapterError::new(place, "`isError` must be true or false"))?;
                if !output.is_error {
                    output.other.insert(key.into_owned(), Value::Bool(false));
                }
            }
            _ => {
                if let Some(value) = parsed(raw.get(), &inner(&key), &budget)? {
                    output.other.insert(key.into_owned(), value);
                }
            }
        }
    }
    if !recognised {
        let reason = "it has neither `content` nor `structuredContent`, so this is not a result of an MCP tool";
        return Err(AdapterError::new(place, reason));
    }
    Ok(output)
}

/// The parts of a content; `None` where they are over a bound.
fn read_parts(
    parts: &[&RawValue],
    place: &str,
    bounds: Bounds,
    budget: &Budget,
) -> Result<Option<Vec<Part>>, AdapterError> {
    if parts.len() > bounds.parts {
        return Ok(None);
    }
    let (mut read, mut others) = (Vec::with_capacity(parts.len()), 0);
    for (number, part) in parts.iter().enumerate() {
        let Some(part) = read_part(part.get(), &format!("{place}[{number}]"), budget)? else { return Ok(None) };
        others += usize::from(!matches!(part.body, PartBody::Text(_)));
        if others > bounds.others {
            return Ok(None);
        }
        read.push(part);
    }
    Ok(Some(read))
}

/// The value of a text, within the budget, that is not nested too deeply to be kept.
fn parsed(json: &str, place: &str, budget: &Budget) -> Result<Option<Value>, AdapterError> {
    let value = budget.parse(json).map_err(|error| AdapterError::new(place, format!("not JSON: {error}")))?;
    value.iter().try_for_each(|value| check_nesting(value, place))?;
    Ok(value)
}

fn read_part(json: &str, place: &str, budget: &Budget) -> Result<Option<Part>, AdapterError> {
    let Some(value) = parsed(json, place, budget)? else { return Ok(None) };
    let Value::Object(other) = value else { return Ok(Some(Part::new(PartBody::Unknown(value)))) };
    Ok(Some(part_of(other)))
}

fn part_of(mut other: Map<String, Value>) -> Part {
    let Some(body) = read_body(&mut other) else { return Part::new(PartBody::Unknown(Value::Object(other))) };
    other.shift_remove("type");
    let annotations = match other.get("annotations") {
        Some(Value::Object(members)) if !members.is_empty() => members.clone(),
        _ => Map::new(),
    };
    if !annotations.is_empty() {
        other.shift_remove("annotations");
    }
    Part { body, annotations, other }
}

/// The content of a part, taken out of `part`, which is unchanged when it is of an unknown kind.
fn read_body(part: &mut Map<String, Value>) -> Option<PartBody> {
    match part.get("type")?.as_str()? {
        "text" => Some(PartBody::Text(take_text(part, "text")?)),
        kind @ ("image" | "audio") => {
            let is_image = kind == "image";
            let media_type = part.get("mimeType")?.as_str()?.to_owned();
            let bytes = take_bytes(part, "data")?;
            part.shift_remove("mimeType");
            Some(match is_image {
                true => PartBody::Image { bytes, media_type },
                false => PartBody::Audio { bytes, media_type },
            })
        }
        "resource" => {
            let resource = part.get_mut("resource")?.as_object_mut()?;
            let uri = resource.get("uri")?.as_str()?.to_owned();
            let media_type = resource.get("mimeType").and_then(Value::as_str).map(str::to_owned);
            let body = match (resource.get("text"), resource.get("blob")) {
                (Some(Value::String(_)), None) => {
                    PartBody::ResourceText { uri, media_type, text: take_text(resource, "text")? }
                }
                (None, Some(Value::String(_))) => {
                    PartBody::ResourceBlob { uri, media_type, bytes: take_bytes(resource, "blob")? }
                }
                _ => return None,
            };
            resource.shift_remove("uri");
            resource.retain(|key, value| key != "mimeType" || !value.is_string());
            if resource.is_empty() {
                part.shift_remove("resource");
            }
            Some(body)
        }
        "resource_link" => {
            part.get("name")?.as_str()?;
            let uri = take_text(part, "uri")?;
            let name = take_text(part, "name")?;
            let is_about = |key: &str| key != "type" && key != "annotations" && key != "_meta";
            let keys: Vec<String> = part.keys().filter(|key| is_about(key)).cloned().collect();
            let about = keys.into_iter().filter_map(|key| part.shift_remove(&key).map(|value| (key, value)));
            Some(PartBody::ResourceLink { uri, name, about: about.collect() })
        }
        _ => None,
    }
}

fn take_text(members: &mut Map<String, Value>, key: &str) -> Option<String> {
    match members.get_mut(key)? {
        Value::String(text) => {
            let text = std::mem::take(text);
            members.shift_remove(key);
            Some(text)
        }
        _ => None,
    }
}

/// Decodes the base64 at `key`. Some servers break it into lines or leave out the padding; where encoding the bytes
/// again would give a different text, the text stays.
fn take_bytes(members: &mut Map<String, Value>, key: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &ALPHABET,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let text = members.get(key)?.as_str()?;
    let bytes = match STANDARD.decode(text) {
        Ok(bytes) => bytes,
        Err(_) => LENIENT.decode(text.split_ascii_whitespace().collect::<String>()).ok()?,
    };
    if STANDARD.encode(&bytes) == text {
        members.shift_remove(key);
    }
    Some(bytes)
}

/// Writes the `CallToolResult` of an output: the inverse of [`from_mcp_result`], except that `content`, which the
/// protocol requires, is always present.
///
/// # Errors
/// [`AdapterError`] when the structured content is not JSON, or is nested too deeply.
pub fn to_mcp_result(output: &ToolOutput) -> Result<Value, AdapterError> {
    let mut result = Map::new();
    result.insert("content".to_owned(), output.parts.iter().map(write_part).collect());
    if let Some(structured) = &output.structured {
        result.insert("structuredContent".to_owned(), parse(structured, "structuredContent")?);
    }
    if output.is_error {
        result.insert("isError".to_owned(), Value::Bool(true));
    }
    add_missing(&mut result, &output.other);
    Ok(Value::Object(result))
}

fn write_part(part: &Part) -> Value {
    let mut written = match &part.body {
        PartBody::Unknown(value) => return value.clone(),
        PartBody::Text(content) => typed("text", [("text", Some(content.clone()))]),
        PartBody::Image { bytes, media_type } => {
            typed("image", [("data", Some(STANDARD.encode(bytes))), ("mimeType", Some(media_type.clone()))])
        }
        PartBody::Audio { bytes, media_type } => {
            typed("audio", [("data", Some(STANDARD.encode(bytes))), ("mimeType", Some(media_type.clone()))])
        }
        PartBody::ResourceText { uri, media_type, text } => {
            resource(part, [("uri", Some(uri.clone())), ("mimeType", media_type.clone()), ("text", Some(text.clone()))])
        }
        PartBody::ResourceBlob { uri, media_type, bytes } => {
            let blob = STANDARD.encode(bytes);
            resource(part, [("uri", Some(uri.clone())), ("mimeType", media_type.clone()), ("blob", Some(blob))])
        }
        PartBody::ResourceLink { uri, name, about } => {
            let mut link = typed("resource_link", [("uri", Some(uri.clone())), ("name", Some(name.clone()))]);
            add_missing(&mut link, about);
            link
        }
    };
    if !part.annotations.is_empty() {
        written.insert("annotations".to_owned(), Value::Object(part.annotations.clone()));
    }
    // Base64 that is written in another way than ours was kept as text.
    written.extend(part.other.get("data").map(|data| ("data".to_owned(), data.clone())));
    add_missing(&mut written, &part.other);
    Value::Object(written)
}

fn typed<const N: usize>(kind: &str, members: [(&str, Option<String>); N]) -> Map<String, Value> {
    let mut written = Map::new();
    written.insert("type".to_owned(), Value::String(kind.to_owned()));
    written.extend(texts(members));
    written
}

fn resource<const N: usize>(part: &Part, members: [(&str, Option<String>); N]) -> Map<String, Value> {
    let mut inner: Map<String, Value> = texts(members).collect();
    if let Some(Value::Object(kept)) = part.other.get("resource") {
        inner.extend(kept.clone());
    }
    let mut written = typed("resource", []);
    written.insert("resource".to_owned(), Value::Object(inner));
    written
}

fn texts<const N: usize>(members: [(&str, Option<String>); N]) -> impl Iterator<Item = (String, Value)> {
    members.map(|(key, text)| text.map(|text| (key.to_owned(), Value::String(text)))).into_iter().flatten()
}

/// Adds the members that are missing.
pub(super) fn add_missing(members: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (key, value) in more {
        if !members.contains_key(key) {
            members.insert(key.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::adapters::testing::{any_json, extra, with};

    /// Every kind of content that the protocol knows, and some that it does not.
    fn every_kind() -> Value {
        json!({"content": [
            {"type": "text", "text": "a\nb", "annotations": {"audience": ["user"], "priority": 0.5}, "_meta": {"k": 1}},
            {"type": "image", "data": "AAEC", "mimeType": "image/png"},
            {"type": "audio", "data": "//8=", "mimeType": "audio/wav", "annotations": {}},
            {"type": "audio", "data": "//\n8", "mimeType": "audio/wav"},
            {"type": "image", "data": "not base64!", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "x", "_meta": {}}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAEC"}, "annotations": {"priority": 1}},
            {"type": "resource", "resource": {"uri": "file:///c"}},
            {"type": "resource_link", "uri": "file:///d", "name": "d", "title": "D", "mimeType": "text/plain", "_meta": {}},
            {"type": "video", "data": "AAEC"},
            {"type": "text", "text": 7},
            7],
            "structuredContent": {"z": 1, "a": 1.50},
            "isError": true, "_meta": {"t": null}, "extra": [1]})
    }

    #[test]
    fn every_kind_of_content_is_read() {
        let output = from_mcp_result(&every_kind().to_string()).unwrap();
        let shown = output.parts.iter().map(|part| {
            let Part { body, annotations, other } = part;
            format!("{body:?} {} {}", json!(annotations), json!(other))
        });
        insta::assert_snapshot!(shown.collect::<Vec<_>>().join("\n"), @r#"
        Text("a\nb") {"audience":["user"],"priority":0.5} {"_meta":{"k":1}}
        Image { bytes: [0, 1, 2], media_type: "image/png" } {} {}
        Audio { bytes: [255, 255], media_type: "audio/wav" } {} {"annotations":{}}
        Audio { bytes: [255, 255], media_type: "audio/wav" } {} {"data":"//\n8"}
        Unknown(Object {"type": String("image"), "data": String("not base64!"), "mimeType": String("image/png")}) {} {}
        ResourceText { uri: "file:///a", media_type: Some("text/plain"), text: "x" } {} {"resource":{"_meta":{}}}
        ResourceBlob { uri: "file:///b", media_type: None, bytes: [0, 1, 2] } {"priority":1} {}
        Unknown(Object {"type": String("resource"), "resource": Object {"uri": String("file:///c")}}) {} {}
        ResourceLink { uri: "file:///d", name: "d", about: {"title": String("D"), "mimeType": String("text/plain")} } {} {"_meta":{}}
        Unknown(Object {"type": String("video"), "data": String("AAEC")}) {} {}
        Unknown(Object {"type": String("text"), "text": Number(7)}) {} {}
        Unknown(Number(7)) {} {}
        "#);
        assert_eq!((output.is_error, output.other.len()), (true, 2));
        assert_eq!(to_mcp_result(&output).unwrap(), every_kind());
        let exact = from_mcp_result(r#"{"structuredContent": {"z":  1, "a": 1.50 }}"#).unwrap();
        assert_eq!(exact.structured.as_deref(), Some(r#"{"z":  1, "a": 1.50 }"#));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let error = |text: &str| from_mcp_result(text).unwrap_err().to_string();
        insta::assert_snapshot!(error(""), @"not a JSON object: EOF while parsing a value at line 1 column 0");
        insta::assert_snapshot!(error(r#"{"result": {"content": []}}"#), @"it has neither `content` nor `structuredContent`, so this is not a result of an MCP tool");
        insta::assert_snapshot!(error(r#"{"content": "a"}"#), @"`content` must be an array of parts, as in the result of an MCP tool");
        insta::assert_snapshot!(error(r#"{"content": [], "isError": "no"}"#), @"`isError` must be true or false");
        let deep = "[".repeat(110) + &"]".repeat(110);
        insta::assert_snapshot!(error(&format!(r#"{{"content": [{{}}, {deep}]}}"#)), @"content[1]: it is nested deeper than 100 levels; make it flatter");
        let bomb = "[".repeat(100_000) + &"]".repeat(100_000);
        insta::assert_snapshot!(error(&format!(r#"{{"content": [{bomb}]}}"#)), @"content[0]: not JSON: recursion limit exceeded at line 1 column 128");
        assert!(from_mcp_result(&format!(r#"{{"structuredContent": {bomb}}}"#)).is_ok(), "text is not descended into");
    }

    fn part() -> impl Strategy<Value = Value> {
        let annotated = (any::<bool>(), extra()).prop_map(|(annotated, mut extra)| {
            if annotated {
                extra.insert("annotations".to_owned(), json!({"audience": ["user"]}));
            }
            extra
        });
        (0..8, "(?s).{0,8}", prop::collection::vec(any::<u8>(), 0..8), annotated).prop_map(
            |(kind, text, bytes, more)| {
                let data = STANDARD.encode(bytes);
                let part = match kind {
                    0 => json!({"type": "text", "text": text}),
                    1 => json!({"type": "image", "data": data, "mimeType": text}),
                    2 => json!({"type": "audio", "data": text, "mimeType": "audio/wav"}),
                    3 => json!({"type": "resource", "resource": {"uri": text, "text": data}}),
                    4 => json!({"type": "resource", "resource": {"uri": text, "blob": data, "mimeType": null, "x": 1}}),
                    5 => json!({"type": "resource_link", "uri": text, "name": data}),
                    6 => json!({"type": text}),
                    _ => json!({"type": "text", "text": null}),
                };
                with(part, more)
            },
        )
    }

    proptest! {
        #[test]
        fn nothing_is_lost(
            parts in prop::collection::vec(part(), 0..5), structured in prop::option::of(extra()),
            is_error in prop::option::of(any::<bool>()), more in extra(),
        ) {
            let mut result = with(json!({"content": parts}), more);
            if let Some(structured) = structured {
                result["structuredContent"] = Value::Object(structured);
            }
            if let Some(is_error) = is_error {
                result["isError"] = json!(is_error);
            }
            let output = from_mcp_result(&result.to_string()).unwrap();
            prop_assert_eq!(to_mcp_result(&output).unwrap(), result);
        }

        #[test]
        fn no_json_stops_the_reader(value in any_json(), parts in prop::collection::vec(any_json(), 0..3)) {
            let _ = from_mcp_result(&value.to_string());
            let result = json!({"content": parts});
            prop_assert_eq!(to_mcp_result(&from_mcp_result(&result.to_string()).unwrap()).unwrap(), result);
        }

        #[test]
        fn no_text_stops_the_reader(text in "(?s).{0,40}") {
            let _ = from_mcp_result(&text);
        }
    }
}

//! Lists of typed blocks (`{"type": "text", "text": …}`) as the output of a call, both ways.
//!
//! The providers agree on the idea and differ in the names: a block is text under `text`, a picture as base64 under
//! `source.data`, or as a data URL under `image_url`. Content that is taken out of a block leaves `null` behind.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::error::AdapterError;
use crate::event::{Part, PartBody, ToolOutput};

/// The output in a list of blocks; another value is one unknown part.
pub(super) fn output_of(value: Value) -> ToolOutput {
    let blocks = match value {
        Value::Array(blocks) => blocks,
        other => vec![other],
    };
    ToolOutput { parts: blocks.into_iter().map(part_of).collect(), ..ToolOutput::default() }
}

fn part_of(block: Value) -> Part {
    let typed = block.get("type").is_some_and(Value::is_string);
    match block {
        Value::Object(mut rest) if typed => match body_of(&mut rest) {
            Some(body) => Part { body, annotations: Map::new(), other: rest },
            None => Part::new(PartBody::Unknown(Value::Object(rest))),
        },
        other => Part::new(PartBody::Unknown(other)),
    }
}

/// The content of the block, taken out of it.
fn body_of(block: &mut Map<String, Value>) -> Option<PartBody> {
    if let Some(place @ Value::String(_)) = block.get_mut("text") {
        return place.take().as_str().map(|text| PartBody::Text(text.to_owned()));
    }
    if let Some(source) = block.get_mut("source") {
        let media_type = source.get("media_type")?.as_str()?.to_owned();
        if source.get("type")?.as_str()? != "base64" {
            return None;
        }
        let data = source.get_mut("data")?;
        let bytes = canonical(data.as_str()?)?;
        *data = Value::Null;
        return Some(PartBody::Image { bytes, media_type });
    }
    let place = block.get_mut("image_url")?;
    let place = if place.is_object() { place.get_mut("url")? } else { place };
    let (media_type, data) = place.as_str()?.strip_prefix("data:")?.split_once(";base64,")?;
    let body = PartBody::Image { bytes: canonical(data)?, media_type: media_type.to_owned() };
    *place = Value::Null;
    Some(body)
}

/// The decoded bytes, if encoding them again gives the same text.
fn canonical(data: &str) -> Option<Vec<u8>> {
    let bytes = STANDARD.decode(data).ok()?;
    (STANDARD.encode(&bytes) == data).then_some(bytes)
}

/// The blocks of an output; `kinds` are the names of a text and a picture, for parts from other formats.
pub(super) fn to_blocks(output: &ToolOutput, kinds: &BlockNames) -> Result<Value, AdapterError> {
    let mut blocks = Vec::with_capacity(output.parts.len());
    for part in &output.parts {
        blocks.push(to_block(part, kinds)?);
    }
    if output.parts.is_empty() {
        blocks.extend(output.structured.as_ref().map(|json| json!({"type": kinds.text, "text": json})));
    }
    Ok(Value::Array(blocks))
}

/// The names that a format gives to the blocks that all formats have.
#[derive(Debug)]
pub(super) struct BlockNames {
    pub(super) text: &'static str,
    /// Makes a picture block from a media type and base64.
    pub(super) image: fn(&str, &str) -> Value,
}

/// The block of one part.
pub(super) fn to_block(part: &Part, kinds: &BlockNames) -> Result<Value, AdapterError> {
    let mut rest = part.other.clone();
    let came_as_block = rest.get("type").is_some_and(Value::is_string);
    let text = |text: &str| json!({"type": kinds.text, "text": text});
    Ok(match &part.body {
        PartBody::Unknown(value) => value.clone(),
        PartBody::Text(content) if came_as_block => {
            rest.insert("text".to_owned(), Value::String(content.clone()));
            Value::Object(rest)
        }
        PartBody::Image { bytes, media_type } if came_as_block => {
            put_image(&mut rest, media_type, &STANDARD.encode(bytes));
            Value::Object(rest)
        }
        PartBody::Text(content) | PartBody::ResourceText { text: content, .. } => text(content),
        PartBody::Image { bytes, media_type } => (kinds.image)(media_type, &STANDARD.encode(bytes)),
        PartBody::Audio { media_type, .. } => text(&format!("[audio {media_type}]")),
        PartBody::ResourceBlob { uri, .. } | PartBody::ResourceLink { uri, .. } => text(&format!("[resource {uri}]")),
    })
}

fn put_image(block: &mut Map<String, Value>, media_type: &str, data: &str) {
    if let Some(place) = block.get_mut("source").and_then(|source| source.get_mut("data")) {
        *place = Value::String(data.to_owned());
    } else if let Some(place) = block.get_mut("image_url") {
        let url = Value::String(format!("data:{media_type};base64,{data}"));
        match place.get_mut("url") {
            Some(inner) => *inner = url,
            None => *place = url,
        }
    }
}

/// The text parts of an output, joined by line breaks.
pub(super) fn text_of(output: &ToolOutput) -> String {
    let texts = output.parts.iter().filter_map(|part| match &part.body {
        PartBody::Text(text) | PartBody::ResourceText { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

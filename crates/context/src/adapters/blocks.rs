//! Lists of typed blocks (`{"type": "text", "text": …}`) as the output of a call, both ways.
//!
//! The providers agree on the idea and differ in the names: a block is text under `text`, a picture as base64 under
//! `source.data`, or as a data URL under `image_url`. Content that is taken out of a block leaves `null` behind. A block
//! of another kind stays whole, and its text is what can be read in it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::error::AdapterError;
use super::parts::{Picture, placeholder, readable};
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
            None => described(rest),
        },
        other => Part::new(PartBody::Unknown(other)),
    }
}

/// A block of which nothing was taken, under the text of what can be read in it.
fn described(block: Map<String, Value>) -> Part {
    let block = Value::Object(block);
    let has_hole = ["/text", "/source/data"].iter().any(|at| block.pointer(at).is_some_and(Value::is_null));
    let text = (!has_hole && !readable(&block).is_empty()).then(|| placeholder(&block));
    match (text, block) {
        (Some(text), Value::Object(other)) => Part { body: PartBody::Text(text), annotations: Map::new(), other },
        (_, block) => Part::new(PartBody::Unknown(block)),
    }
}

/// The content of the block, taken out of it.
fn body_of(block: &mut Map<String, Value>) -> Option<PartBody> {
    if let Some(place @ Value::String(_)) = block.get_mut("text") {
        return place.take().as_str().map(|text| PartBody::Text(text.to_owned()));
    }
    let has_text = block.contains_key("text");
    if let Some(source) = block.get_mut("source") {
        let media_type = source.get("media_type")?.as_str()?.to_owned();
        let kind = source.get("type")?.as_str()?.to_owned();
        let data = source.get_mut("data")?;
        let body = match kind.as_str() {
            "base64" => PartBody::Image { bytes: canonical(data.as_str()?)?, media_type },
            "text" if !has_text => PartBody::Text(data.as_str()?.to_owned()),
            _ => return None,
        };
        *data = Value::Null;
        return Some(body);
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
    /// Makes the block of a picture.
    pub(super) picture: fn(&Picture) -> Value,
}

/// The block of one part.
pub(super) fn to_block(part: &Part, kinds: &BlockNames) -> Result<Value, AdapterError> {
    let mut rest = part.other.clone();
    let came_as_block = rest.get("type").is_some_and(Value::is_string);
    let text = |text: &str| json!({"type": kinds.text, "text": text});
    Ok(match &part.body {
        PartBody::Unknown(value) => value.clone(),
        PartBody::Text(content) if came_as_block => {
            put_text(&mut rest, content);
            Value::Object(rest)
        }
        PartBody::Image { bytes, media_type } if came_as_block => {
            put_image(&mut rest, media_type, &STANDARD.encode(bytes));
            Value::Object(rest)
        }
        PartBody::Text(content) | PartBody::ResourceText { text: content, .. } => text(content),
        PartBody::Image { bytes, media_type } => {
            (kinds.picture)(&Picture::Data { media_type, base64: &STANDARD.encode(bytes) })
        }
        PartBody::Audio { .. } | PartBody::ResourceBlob { .. } | PartBody::ResourceLink { .. } => text(&in_words(part)),
    })
}

/// A part as text: what can be read in it, otherwise what it is.
fn in_words(part: &Part) -> String {
    match &part.body {
        PartBody::Text(text) | PartBody::ResourceText { text, .. } => text.clone(),
        PartBody::Image { media_type, .. } => format!("[image {media_type}]"),
        PartBody::Audio { media_type, .. } => format!("[audio {media_type}]"),
        PartBody::ResourceBlob { uri, .. } | PartBody::ResourceLink { uri, .. } => format!("[resource {uri}]"),
        PartBody::Unknown(value) if value.is_object() => placeholder(value),
        PartBody::Unknown(value) => value.to_string(),
    }
}

/// All parts of an output as one text.
pub(super) fn words_of(output: &ToolOutput) -> String {
    match (&output.structured, output.parts.is_empty()) {
        (Some(structured), true) => structured.clone(),
        _ => output.parts.iter().map(in_words).collect::<Vec<_>>().join("\n"),
    }
}

/// The output without what only the format has that it came in.
pub(super) fn plain(output: &ToolOutput) -> ToolOutput {
    let plain = |part: &Part| match &part.body {
        PartBody::Unknown(_) => Part::new(PartBody::Text(in_words(part))),
        body => Part::new(body.clone()),
    };
    ToolOutput { parts: output.parts.iter().map(plain).collect(), other: Map::new(), ..output.clone() }
}

/// The output with words in place of its pictures.
pub(super) fn without_pictures(output: &ToolOutput) -> ToolOutput {
    let said = |part: &Part| match &part.body {
        PartBody::Image { .. } => Part::new(PartBody::Text(in_words(part))),
        _ => part.clone(),
    };
    ToolOutput { parts: output.parts.iter().map(said).collect(), ..output.clone() }
}

/// Puts a text back to where it was taken from, if it was.
fn put_text(block: &mut Map<String, Value>, content: &str) {
    let place = match block.contains_key("text") {
        true => block.get_mut("text"),
        false => block.get_mut("source").and_then(|source| source.get_mut("data")),
    };
    if let Some(place) = place.filter(|place| place.is_null()) {
        *place = Value::String(content.to_owned());
    }
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

//! What the parts of foreign messages hold besides plain text: pictures, text under other names, and thoughts.

use serde_json::{Map, Value};

use super::error::shown;
use crate::event::ContextItem;

/// A picture in a part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Picture<'p> {
    /// The picture itself, in base64.
    Data { media_type: &'p str, base64: &'p str },
    /// Its address.
    At(&'p str),
}

impl Picture<'_> {
    /// The address of the picture: a data URL where the picture is there itself.
    pub(super) fn url(&self) -> String {
        match self {
            Self::Data { media_type, base64 } => format!("data:{media_type};base64,{base64}"),
            Self::At(url) => (*url).to_owned(),
        }
    }
}

/// The picture that a part is, as the providers write it: under `source` (Anthropic), `image_url` (OpenAI), or
/// `inlineData` or `fileData` (Gemini).
pub(super) fn picture_in(part: &Value) -> Option<Picture<'_>> {
    let member_of = |key: &str| part.get(key).filter(|value| !value.is_null());
    if let Some(source) = member_of("source").filter(|_| part["type"] == "image") {
        return match member(source, &["url"]) {
            Some(url) => Some(Picture::At(url)),
            None => {
                Some(Picture::Data { media_type: member(source, &["media_type"])?, base64: member(source, &["data"])? })
            }
        };
    }
    if let Some(image) = member_of("image_url") {
        let url = image.get("url").unwrap_or(image).as_str()?;
        let data = url.strip_prefix("data:").and_then(|data| data.split_once(";base64,"));
        return Some(data.map_or(Picture::At(url), |(media_type, base64)| Picture::Data { media_type, base64 }));
    }
    let file = ["inlineData", "inline_data", "fileData", "file_data"].into_iter().find_map(member_of)?;
    let media_type = member(file, &["mimeType", "mime_type"]).filter(|kind| kind.starts_with("image/"))?;
    match member(file, &["data"]) {
        Some(base64) => Some(Picture::Data { media_type, base64 }),
        None => Some(Picture::At(member(file, &["fileUri", "file_uri"])?)),
    }
}

/// The first of the members that is a text.
fn member<'v>(value: &'v Value, keys: &[&str]) -> Option<&'v str> {
    keys.iter().find_map(|key| value.get(*key)?.as_str())
}

/// The text that the prompt shows for a part that is not text: its kind, its media type if it names one, and what can
/// be read in it.
pub(super) fn placeholder<'p>(part: &'p Value) -> String {
    let kind = match part.get("type").and_then(Value::as_str) {
        Some(kind) => kind,
        None => {
            let there = |members: &'p Map<String, Value>| members.iter().find(|(_, value)| !value.is_null());
            part.as_object().and_then(there).map_or("part", |(key, _)| key)
        }
    };
    let media_type = part.get("source").and_then(|source| source.get("media_type")).and_then(Value::as_str);
    let mut text = match media_type {
        Some(media_type) => format!("[{} {}]", shown(kind), shown(media_type)),
        None => format!("[{}]", shown(kind)),
    };
    let mut separator = ' ';
    for read in readable(part) {
        text.push(separator);
        text.push_str(read);
        separator = '\n';
    }
    text
}

/// The kind that a [`placeholder`] names.
pub(super) fn kind_of_placeholder(text: &str) -> Option<&str> {
    text.strip_prefix('[').and_then(|text| text.split_once(']')).map(|(kind, _)| kind)
}

/// The members of parts whose texts are for readers.
const READABLE: [&str; 15] = [
    "title",
    "filename",
    "url",
    "image_url",
    "fileUri",
    "source",
    "query",
    "queries",
    "text",
    "content",
    "code",
    "output",
    "logs",
    "stdout",
    "stderr",
];

/// The texts for readers in a part, in the order in which they stand there. Embedded files are not among them.
pub(super) fn readable(part: &Value) -> Vec<&str> {
    let mut texts = Vec::new();
    collect(part, false, &mut texts);
    texts
}

/// Collects texts; documents are not nested so deeply that this could exhaust the stack.
fn collect<'v>(value: &'v Value, is_readable: bool, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) if is_readable && !text.trim().is_empty() && !text.starts_with("data:") => texts.push(text),
        Value::Array(values) => values.iter().for_each(|value| collect(value, is_readable, texts)),
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| collect(value, READABLE.contains(&key.as_str()), texts));
        }
        _ => {}
    }
}

/// The metadata key of an item's heading in a prompt.
pub(super) const SECTION: &str = "section";

/// The heading of what an agent thought. It is not what the agent said.
pub(super) const THOUGHT: &str = "THINKING";

/// Whether the item is a thought of the agent.
pub(super) fn is_thought(item: &ContextItem) -> bool {
    item.metadata.get(SECTION).is_some_and(|section| section == THOUGHT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_pictures_of_all_providers_are_found() {
        let data = Some(Picture::Data { media_type: "image/png", base64: "AAEC" });
        let at = Some(Picture::At("https://example.org/a.png"));
        let url = "data:image/png;base64,AAEC";
        for part in [
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAEC"}}),
            json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}}),
            json!({"type": "input_image", "image_url": url}),
            json!({"inlineData": {"mimeType": "image/png", "data": "AAEC"}}),
            json!({"inline_data": {"mime_type": "image/png", "data": "AAEC"}}),
        ] {
            assert_eq!(picture_in(&part), data, "{part}");
        }
        let address = "https://example.org/a.png";
        for part in [
            json!({"type": "image", "source": {"type": "url", "url": address}}),
            json!({"type": "image_url", "image_url": {"url": address}}),
            json!({"type": "input_image", "image_url": address}),
            json!({"fileData": {"mimeType": "image/png", "fileUri": address}}),
        ] {
            assert_eq!(picture_in(&part), at, "{part}");
        }
        for part in [
            json!({"type": "document", "source": {"type": "url", "url": address}}),
            json!({"inlineData": {"mimeType": "audio/wav", "data": "AAEC"}}),
            json!({"type": "image", "source": {"type": "file", "file_id": "f"}}),
            json!("text"),
        ] {
            assert_eq!(picture_in(&part), None, "{part}");
        }
    }

    #[test]
    fn what_can_be_read_in_a_part_is_kept() {
        let texts = [
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAEC"}}),
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}}),
            json!({"type": "search_result", "source": "https://example.org/run", "title": "Runbook",
                "content": [{"type": "text", "text": "Use port 8443."}], "citations": {"enabled": true}}),
            json!({"type": "web_search_result", "url": "https://example.org", "title": "Ports", "encrypted_content": "EqQB"}),
            json!({"type": "file_search_call", "id": "fs", "queries": ["port"], "results": [{"filename": "a.md", "text": "8443"}]}),
            json!({"inlineData": {"mimeType": "audio/wav", "data": "AAEC"}}),
            json!([]),
        ]
        .map(|part| placeholder(&part));
        insta::assert_snapshot!(texts.join("\n"), @r"
        [image image/png]
        [image_url]
        [search_result] https://example.org/run
        Runbook
        Use port 8443.
        [web_search_result] https://example.org
        Ports
        [file_search_call] port
        a.md
        8443
        [inlineData]
        [part]
        ");
        assert_eq!(kind_of_placeholder(&texts[2]), Some("search_result"));
    }
}

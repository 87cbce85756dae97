//! What a call returned, from bytes of which nobody says what they are: the result of an MCP tool, text, or a picture.

use super::mcp::from_mcp_result;
use crate::event::{Part, PartBody, ToolOutput};

/// The output of a call that was recognised by its content.
#[derive(Debug, Clone, PartialEq)]
pub struct Recognised {
    /// The output.
    pub output: ToolOutput,
    /// What a person should know: that it looked like the result of an MCP tool but is not one.
    pub remark: Option<String>,
}

/// Recognises the output of a call by its content: the result of an MCP tool (a `CallToolResult` as JSON), otherwise
/// text, otherwise what its first bytes say. `place` is the address of content that is not text.
#[must_use]
pub fn recognise_output(bytes: Vec<u8>, place: &str) -> Recognised {
    let plain = |output| Recognised { output, remark: None };
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return plain(of_bytes(place, error.into_bytes())),
    };
    if !text.trim_start().starts_with('{') {
        return plain(ToolOutput::text(text));
    }
    let claims = |text: &str| text.contains("\"content\"") || text.contains("\"structuredContent\"");
    match from_mcp_result(&text) {
        Ok(result) if is_result(&result) => plain(result),
        Err(error) if claims(text.get(..CLAIM_BYTES).unwrap_or(&text)) => {
            Recognised { output: ToolOutput::text(text), remark: Some(format!("taken as plain text: {error}")) }
        }
        _ => plain(ToolOutput::text(text)),
    }
}

/// Where a file is looked at to see whether it means to be the result of a tool.
const CLAIM_BYTES: usize = 4096;

/// Whether a document with the members of a result is one: other formats have a `content`, too.
fn is_result(output: &ToolOutput) -> bool {
    let known = |part: &Part| !matches!(part.body, PartBody::Unknown(_));
    output.structured.is_some() || output.parts.is_empty() || output.parts.iter().any(known)
}

/// What is not text: a part of its kind, told by its first bytes.
fn of_bytes(place: &str, bytes: Vec<u8>) -> ToolOutput {
    let media_type = media_type(&bytes).to_owned();
    let body = match media_type.split('/').next() {
        Some("image") => PartBody::Image { bytes, media_type },
        Some("audio") => PartBody::Audio { bytes, media_type },
        _ => PartBody::ResourceBlob { uri: place.to_owned(), media_type: Some(media_type), bytes },
    };
    ToolOutput { parts: vec![Part::new(body)], ..ToolOutput::default() }
}

fn media_type(bytes: &[u8]) -> &'static str {
    let at = |offset: usize, sign: &[u8]| bytes.get(offset..).is_some_and(|rest| rest.starts_with(sign));
    let table: [(usize, &[u8], &str); 16] = [
        (0, b"\x89PNG\r\n\x1a\n", "image/png"),
        (0, b"\xff\xd8\xff", "image/jpeg"),
        (0, b"GIF8", "image/gif"),
        (8, b"WEBP", "image/webp"),
        (0, b"BM", "image/bmp"),
        (8, b"WAVE", "audio/wav"),
        (0, b"ID3", "audio/mpeg"),
        (0, b"OggS", "audio/ogg"),
        (0, b"fLaC", "audio/flac"),
        (4, b"ftyp", "video/mp4"),
        (0, b"%PDF-", "application/pdf"),
        (0, b"PK\x03\x04", "application/zip"),
        (0, b"\x1f\x8b", "application/gzip"),
        (0, b"SQLite format 3\0", "application/vnd.sqlite3"),
        (0, b"\x7fELF", "application/x-elf"),
        (257, b"ustar", "application/x-tar"),
    ];
    let found = table.iter().find(|(offset, sign, _)| at(*offset, sign));
    found.map_or("application/octet-stream", |(.., media_type)| media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_that_only_looks_like_a_result_is_text_and_the_remark_says_why() {
        let taken = recognise_output(br#"{"log": {"content": {}}}"#.to_vec(), "x");
        assert_eq!(taken.output, ToolOutput::text(r#"{"log": {"content": {}}}"#));
        insta::assert_snapshot!(taken.remark.unwrap_or_default(), @"taken as plain text: it has neither `content` nor `structuredContent`, so this is not a result of an MCP tool");
    }
}

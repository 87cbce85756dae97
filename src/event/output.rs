//! What a call returned, before the firewall: the parts of an MCP result in our own types.

use serde_json::{Map, Value};

/// The output of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// In the order in which the server sent them.
    pub parts: Vec<Part>,
    /// The `structuredContent`, as the exact JSON text that came.
    pub structured: Option<String>,
    /// Whether the server calls it an error.
    pub is_error: bool,
    /// Members of the result that this type does not know, kept for round trips.
    pub other: Map<String, Value>,
}

/// One part of an output.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The content.
    pub body: PartBody,
    /// `annotations` (audience, priority …) as the server sent them; empty without.
    pub annotations: Map<String, Value>,
    /// Members that this type does not know, kept for round trips.
    pub other: Map<String, Value>,
}

/// The content of a part.
#[derive(Debug, Clone, PartialEq)]
pub enum PartBody {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// The decoded bytes.
        bytes: Vec<u8>,
        /// Its media type.
        media_type: String,
    },
    /// A recording.
    Audio {
        /// The decoded bytes.
        bytes: Vec<u8>,
        /// Its media type.
        media_type: String,
    },
    /// A resource that came along as text.
    ResourceText {
        /// Where it lives.
        uri: String,
        /// Its media type, if the server named one.
        media_type: Option<String>,
        /// Its text.
        text: String,
    },
    /// A resource that came along as bytes.
    ResourceBlob {
        /// Where it lives.
        uri: String,
        /// Its media type, if the server named one.
        media_type: Option<String>,
        /// The decoded bytes.
        bytes: Vec<u8>,
    },
    /// A pointer to a resource.
    ResourceLink {
        /// Where it lives.
        uri: String,
        /// Its name.
        name: String,
        /// The rest of the link (`title`, `description`, `mimeType` …).
        about: Map<String, Value>,
    },
    /// A part of a kind that this version does not know, or whose content does not decode, as it came.
    Unknown(Value),
}

impl ToolOutput {
    /// An output that is one text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::new(PartBody::Text(text.into()))], ..Self::default() }
    }
}

impl Part {
    /// A part without annotations.
    #[must_use]
    pub fn new(body: PartBody) -> Self {
        Self { body, annotations: Map::new(), other: Map::new() }
    }
}

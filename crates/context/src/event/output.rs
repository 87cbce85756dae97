//! The output of a call before the firewall: the parts of an MCP result in our own types.

use serde_json::{Map, Value};

/// The output of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// The parts, in the order in which the server sent them.
    pub parts: Vec<Part>,
    /// The `structuredContent`, as the exact JSON text that was received.
    pub structured: Option<String>,
    /// Whether the server marked the result as an error.
    pub is_error: bool,
    /// Members of the result that this type does not know, kept for round trips.
    pub other: Map<String, Value>,
}

/// One part of an output.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The content of the part.
    pub body: PartBody,
    /// `annotations` (audience, priority …) as the server sent them; empty when there were none.
    pub annotations: Map<String, Value>,
    /// Members that this type does not know, kept for round trips.
    pub other: Map<String, Value>,
}

/// The content of a part.
#[derive(Debug, Clone, PartialEq)]
pub enum PartBody {
    /// A text part.
    Text(String),
    /// A picture with its bytes.
    Image {
        /// The decoded bytes.
        bytes: Vec<u8>,
        /// The media type, e.g. `image/png`.
        media_type: String,
    },
    /// A sound recording with its bytes.
    Audio {
        /// The decoded bytes.
        bytes: Vec<u8>,
        /// The media type, e.g. `audio/wav`.
        media_type: String,
    },
    /// A resource included as text.
    ResourceText {
        /// The URI of the resource.
        uri: String,
        /// The media type, if the server named one.
        media_type: Option<String>,
        /// The text of the resource.
        text: String,
    },
    /// A resource included as bytes.
    ResourceBlob {
        /// The URI of the resource.
        uri: String,
        /// The media type, if the server named one.
        media_type: Option<String>,
        /// The decoded bytes.
        bytes: Vec<u8>,
    },
    /// A link to a resource.
    ResourceLink {
        /// The URI of the resource.
        uri: String,
        /// The name of the resource.
        name: String,
        /// The rest of the link (`title`, `description`, `mimeType` …).
        about: Map<String, Value>,
    },
    /// A part of a kind that this version does not know, or whose content does not decode, as it was received.
    Unknown(Value),
}

impl ToolOutput {
    /// An output that consists of one text.
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

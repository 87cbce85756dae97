//! The engines as requests and answers of JSON: a path and a document in, a document out.
//!
//! For programs in other languages, behind any transport: `contextweaver serve` puts it behind HTTP. Nothing is kept between
//! two requests but the index of the catalogs that came last, so any process answers any request. An answer is a document
//! such as the commands print with `--format json`. The crate knows neither sockets nor threads, and bounds
//! neither the size of a request nor the time for it: a transport does.

mod engines;
mod operations;
mod problem;

use serde_json::{Map, Value};

pub use engines::Engines;
pub use operations::{OPERATIONS, Operation};
pub use problem::{Kind, Problem};

/// The document that describes all paths: OpenAPI 3.1, as JSON text.
pub const OPENAPI: &str = include_str!("../openapi.json");

/// The version of the form of all documents that commands print and that are answered here.
pub const SCHEMA_VERSION: u32 = 1;

/// A document in the one form: an object that begins with `schema_version` and `kind`. The members of an object follow; a list
/// becomes the member `items`.
///
/// # Errors
/// The value cannot be written as JSON, or has a member of one of the two names itself.
pub fn envelope(kind: &str, value: &impl serde::Serialize) -> Result<Map<String, Value>, EnvelopeError> {
    let mut envelope = Map::new();
    envelope.insert("schema_version".to_owned(), SCHEMA_VERSION.into());
    envelope.insert("kind".to_owned(), kind.into());
    match serde_json::to_value(value)? {
        Value::Object(members) => {
            for (name, value) in members {
                if envelope.contains_key(&name) {
                    return Err(EnvelopeError::Twice { kind: kind.to_owned(), name });
                }
                envelope.insert(name, value);
            }
        }
        items => {
            envelope.insert("items".to_owned(), items);
        }
    }
    Ok(envelope)
}

/// A value cannot be put into the one form of documents.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// It cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It has a member of its own that the form adds.
    #[error("`{kind}` has a member `{name}` twice")]
    Twice {
        /// The kind of the document.
        kind: String,
        /// The name of the member.
        name: String,
    },
}

#[cfg(test)]
mod tests;

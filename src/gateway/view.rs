//! `tool_view`: a part of a stored result.

use serde::Deserialize;
use serde_json::{Value, json};

use super::error::{Code, GatewayError, text_result};
use super::hub::Gateway;
use super::wire::Raw;
use crate::context::view::{Bounds, Cursor, view};
use crate::event::{Handle, Selector};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ViewArgs {
    handle: String,
    selector: Value,
    cursor: Option<String>,
}

impl Gateway {
    pub(super) fn view(&self, args: &ViewArgs) -> Result<Raw, GatewayError> {
        let failed = |reason: String| GatewayError::new(Code::ViewFailed, reason).at(&args.handle);
        let selector = selector(&args.selector).map_err(failed)?;
        let cursor: Cursor = match &args.cursor {
            Some(cursor) => {
                cursor.parse().map_err(|error: crate::context::view::ViewError| failed(error.to_string()))?
            }
            None => Cursor::default(),
        };
        let handle = Handle::new(args.handle.as_str());
        let store = &self.artifacts.0;
        let reference = store.reference(&handle).map_err(|error| failed(error.to_string()))?;
        let content = store.get(&handle).map_err(|error| failed(error.to_string()))?;
        let shown = view(&handle, &content, &reference.media_type, &selector, cursor, Bounds::default())
            .map_err(|error| failed(error.to_string()))?;
        let clean = self.guards.sanitize().clean(&shown.text);
        let text = match shown.next {
            Some(next) => format!("{clean}\n[more: cursor {next}]"),
            None => clean.into_owned(),
        };
        Ok(text_result(&text, false))
    }
}

/// Both forms are taken: the object, and the short form as text.
fn selector(value: &Value) -> Result<Selector, String> {
    match value {
        Value::String(text) => text.parse().map_err(|error: crate::event::ParseSelectorError| error.to_string()),
        value => Selector::deserialize(value).map_err(|error| {
            format!("{error}; a selector is e.g. {}", json!({"type": "lines", "start": 0, "end": 20}))
        }),
    }
}

//! `/v1/view`: a part of a result, or of an artifact of a conversation.

use contextweaver_context::Firewall;
use contextweaver_context::event::{Handle, Selector};
use contextweaver_context::store::{ArtifactStore, MemoryArtifacts};
use contextweaver_context::view::{Bounds, Cursor, ViewError, view};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Remarked, compile, document, present, read, text_of, whole};
use crate::engines::Engines;
use crate::problem::Problem;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// A string, or any other JSON.
    #[serde(default, deserialize_with = "present")]
    content: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    conversation: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    handle: Option<String>,
    selector: String,
    #[serde(default, deserialize_with = "present")]
    cursor: Option<String>,
    #[serde(default, deserialize_with = "whole")]
    max_bytes: Option<usize>,
    #[serde(default, deserialize_with = "whole")]
    max_tokens: Option<usize>,
}

#[derive(Serialize)]
struct Shown {
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

pub(super) fn answer(engines: &Engines, body: &[u8]) -> Result<Value, Problem> {
    let request: Request = read(body)?;
    let selector: Selector = request.selector.parse().map_err(|error| Problem::of_member("selector", &error))?;
    let cursor = request.cursor.map(|cursor| cursor.parse::<Cursor>()).transpose();
    let cursor = cursor.map_err(|error| Problem::of_member("cursor", &error))?.unwrap_or_default();
    let tokenizer = engines.context.estimator;
    let bounds = Bounds::new(request.max_bytes.unwrap_or(8000), request.max_tokens.unwrap_or(2000), tokenizer);
    let (handle, content, media_type, remarks) = match (request.content, request.conversation, request.handle) {
        (Some(content), None, None) => {
            let text = text_of(&content)?;
            let (hooks, artifacts) = (engines.hooks(), MemoryArtifacts::default());
            // As the content of a conversation: what is seen of it is without secrets where a prompt is.
            let firewall = Firewall::new(&engines.context.firewall, tokenizer, &hooks, &artifacts);
            let text = firewall.redacted_by(hooks.redactor()).taken_in(&text).into_owned();
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            let media_type = if is_json { "application/json" } else { "text/plain" };
            (Handle::new("content"), text.into_bytes(), media_type.to_owned(), hooks.notes())
        }
        (None, Some(conversation), Some(handle)) => {
            let (session, _, remarks) = compile::session(engines, &engines.hooks(), &conversation)?;
            let handle = Handle::new(handle.as_str());
            let missing = |error: &dyn std::error::Error| Problem::of_member("handle", error);
            let reference = session.artifacts.reference(&handle).map_err(|error| missing(&error))?;
            let content = session.artifacts.get(&handle).map_err(|error| missing(&error))?;
            (handle, content.to_vec(), reference.media_type, remarks)
        }
        _ => return Err(Problem::bad("give `content`, or `conversation` and `handle`")),
    };
    let shown = view(&handle, &content, &media_type, &selector, cursor, bounds);
    let shown = shown.map_err(|error| {
        let member = if matches!(error, ViewError::Cursor(_)) { "cursor" } else { "selector" };
        Problem::of_member(member, &error)
    })?;
    let answer = Shown { text: shown.text, next: shown.next.map(|next| next.to_string()) };
    document("view", &Remarked { answer, remarks })
}

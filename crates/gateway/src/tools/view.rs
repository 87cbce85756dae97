//! `tool_view`: a part of a stored result.
//!
//! An answer is bounded, and a cursor goes on with it. What fails says what there is instead: the handles that the
//! client was given and that look most like the one it asked for, or ways into the artifact that lead somewhere.
//! Handles of other clients are never named. A picture is shown as one, whatever part of it was asked for.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::common::budget::most_values;
use crate::common::error::{Code, GatewayError, presentable, text_result};
use crate::common::sanitize::SanitizeConfig;
use crate::common::sync::lock;
use crate::common::work::{Exhausted, LARGE, aside, draw_bytes, draw_steps};
use crate::protocol::message::Raw;
use crate::results::artifacts::Artifacts;
use crate::results::kinds::{TooLarge, stored};
use crate::session::client::Caller;
use contextweaver_context::event::{Handle, Selector};
use contextweaver_context::store::{ArtifactStore, StoreError};
use contextweaver_context::view::{Bounds, Cursor, View, ViewError, automatic, view};

/// Handles or selectors that a failure names, at most.
const MOST_HINTS: usize = 3;

/// Characters of a selector that a failure repeats, at most.
const SELECTOR_IN_FAILURE: usize = 80;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ViewArgs {
    handle: String,
    selector: Value,
    cursor: Option<String>,
}

impl ViewArgs {
    /// The beginning of the artifact of this handle.
    pub(crate) fn beginning(handle: &str) -> Self {
        Self { handle: handle.to_owned(), selector: json!({"type": "head"}), cursor: None }
    }

    /// What is looked into.
    pub(crate) fn handle(&self) -> &str {
        &self.handle
    }
}

/// Shows a part of a stored result; of a picture or recording the whole, where that has at most `media_bytes`.
///
/// # Errors
/// There is no such artifact, or no such part of it.
pub(crate) async fn show(
    artifacts: &Artifacts,
    media_bytes: usize,
    sanitize: &SanitizeConfig,
    caller: &Caller,
    args: ViewArgs,
) -> Result<Raw, GatewayError> {
    let failed = |reason: String| GatewayError::new(Code::ViewFailed, reason).at(&args.handle);
    let selector = selector(&args.selector).map_err(failed)?;
    let cursor: Cursor = match &args.cursor {
        Some(cursor) => cursor.parse().map_err(|error: ViewError| failed(error.to_string()))?,
        None => Cursor::default(),
    };
    let handle = Handle::new(args.handle.as_str());
    let (store, on_disk) = (artifacts.of(caller.session()), artifacts.on_disk);
    let exhausted = |exhausted| {
        let selector: String = presentable(&args.selector.to_string()).chars().take(SELECTOR_IN_FAILURE).collect();
        GatewayError::exhausted(Code::ViewFailed, &format!("the selector {selector}"), exhausted).at(&args.handle)
    };
    let large = || store.reference(&handle).is_ok_and(|reference| reference.size_bytes > LARGE as u64);
    let shown = if on_disk || large() {
        let handle = handle.clone();
        let looking = aside(move || look(&store, &handle, &selector, cursor, media_bytes));
        looking.await.map_err(exhausted)?
    } else {
        look(&store, &handle, &selector, cursor, media_bytes)
    };
    match shown {
        Ok(Shown::Media(block)) => Ok(Raw::of(&json!({"content": [block], "isError": false}))),
        Ok(Shown::Text(View { text, next })) => {
            let clean = sanitize.clean(&text);
            Ok(match next {
                Some(next) => text_result(&format!("{clean}\n[more: cursor {next}]"), false),
                None => text_result(&clean, false),
            })
        }
        Err(Unseen::Store(error)) => {
            // What failed, and where, is for the log alone.
            let message = match &error {
                StoreError::Backend { .. } => {
                    tracing::warn!(%error, "a stored result could not be read");
                    "the store of results cannot be read now; try again later, or call the tool again".to_owned()
                }
                _ => error.to_string(),
            };
            let failure = failed(message).with("reason", reason(&error));
            Err(match nearest(caller, &args.handle) {
                near if near.is_empty() => failure,
                near => failure.with("nearest", near),
            })
        }
        Err(Unseen::Exhausted(error)) => Err(exhausted(error)),
        Err(Unseen::TooLarge(error)) => Err(failed(error.to_string()).with("reason", "size")),
        Err(Unseen::View { error, views }) => {
            let failure = failed(error.to_string()).with("reason", "selector");
            Err(if views.is_empty() { failure } else { failure.with("views", views) })
        }
    }
}

/// What there is to show.
enum Shown {
    Text(View),
    /// A content block.
    Media(Value),
}

/// Why there is nothing to show.
enum Unseen {
    /// It is too much work.
    Exhausted(Exhausted),
    Store(StoreError),
    TooLarge(TooLarge),
    View {
        error: ViewError,
        /// Selectors that lead somewhere.
        views: Vec<Value>,
    },
}

fn look(
    store: &dyn ArtifactStore,
    handle: &Handle,
    selector: &Selector,
    cursor: Cursor,
    media_bytes: usize,
) -> Result<Shown, Unseen> {
    let reference = store.reference(handle).map_err(Unseen::Store)?;
    draw_bytes(usize::try_from(reference.size_bytes).unwrap_or(usize::MAX)).map_err(Unseen::Exhausted)?;
    let content = store.get(handle).map_err(Unseen::Store)?;
    if let Some(block) = stored(&content, &reference.media_type, media_bytes) {
        return block.map(Shown::Media).map_err(Unseen::TooLarge);
    }
    let values = most_values(content.len());
    let steps = match selector {
        // Which values there are says nothing: each byte is visited.
        Selector::Grep { .. } => content.len() as u64,
        _ => values,
    };
    draw_steps(steps).map_err(Unseen::Exhausted)?;
    view(handle, &content, &reference.media_type, selector, cursor, Bounds::default()).map(Shown::Text).map_err(
        |error| {
            // It is looked through once more.
            let offered = draw_steps(values).map(|()| automatic(&reference, &content)).unwrap_or_default();
            let offered = offered.into_iter().take(MOST_HINTS);
            Unseen::View { error, views: offered.filter_map(|view| serde_json::to_value(view.selector).ok()).collect() }
        },
    )
}

fn reason(error: &StoreError) -> &'static str {
    match error {
        StoreError::NoArtifact(_) => "unknown",
        StoreError::Evicted { .. } => "evicted",
        StoreError::Altered { .. } => "altered",
        _ => "store",
    }
}

/// The handles of the client that look most like `handle`, the likeliest first.
fn nearest(caller: &Caller, handle: &str) -> Vec<Value> {
    let recent = lock(&caller.session().recent);
    let mut handles: Vec<(f64, &Handle)> =
        recent.youngest().map(|other| (strsim::jaro_winkler(handle, other.as_str()), other)).collect();
    // A stable sort: of equals the younger comes first.
    handles.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    handles
        .into_iter()
        .filter(|(_, other)| other.as_str() != handle)
        .take(MOST_HINTS)
        .map(|(_, other)| json!(other))
        .collect()
}

/// Both forms are taken: the object, and the short form as text.
fn selector(value: &Value) -> Result<Selector, String> {
    match value {
        Value::String(text) => {
            text.parse().map_err(|error: contextweaver_context::event::ParseSelectorError| error.to_string())
        }
        value => Selector::deserialize(value).map_err(|error| {
            format!("{error}; a selector is e.g. {}", json!({"type": "lines", "start": 0, "end": 20}))
        }),
    }
}

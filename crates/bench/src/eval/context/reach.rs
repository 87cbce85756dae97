//! What one view gives: the harness asks like a reader who knows what to look for.

use super::fidelity::Content;
use contextweaver_context::event::{Handle, Selector};
use contextweaver_context::view::{Bounds, Cursor, view};

/// The part of a result that `selector` denotes.
///
/// # Errors
/// The message of the view.
pub fn by_selector(content: &Content, selector: &Selector) -> Result<String, String> {
    let handle = Handle::new(format!("artifact:{}", content.name));
    let shown =
        view(&handle, content.text.as_bytes(), &content.media_type, selector, Cursor::default(), Bounds::default());
    shown.map(|view| view.text).map_err(|error| error.to_string())
}

/// The lines of an artifact that hold `text`; `None` when none does.
#[must_use]
pub fn pattern_view(handle: &Handle, bytes: &[u8], media_type: &str, text: &str) -> Option<String> {
    let selector = Selector::Grep { pattern: regex::escape(text), context: 0 };
    view(handle, bytes, media_type, &selector, Cursor::default(), Bounds::default()).ok().map(|view| view.text)
}

//! What a person who has to approve a call is shown of its arguments.

use serde_json::Value;
use serde_json::value::RawValue;

use super::canonical::shown_as_written;
use crate::common::sanitize::SanitizeConfig;
use crate::protocol::message::Members;
use contextweaver_context::store::redact;

/// Arguments that a person is shown, at most.
const MOST_SHOWN: usize = 20;

/// Characters of a name or value that a person is shown, at most.
const LONGEST_SHOWN: usize = 80;

/// A line for each argument; `written` is the text that is sent, where that is how the client wrote it.
pub(super) fn argument_lines(arguments: &Value, written: Option<&RawValue>) -> Vec<String> {
    let members = arguments.as_object();
    let written: Members<'_> = written.and_then(|written| serde_json::from_str(written.get()).ok()).unwrap_or_default();
    let mut lines = Vec::new();
    for (name, value) in members.into_iter().flatten().take(MOST_SHOWN) {
        let text = match (value.as_str(), written.get(name)) {
            (Some(text), _) => format!("{text:?}"),
            (None, Some(written)) => shown_as_written(written.get()),
            (None, None) => value.to_string(),
        };
        lines.push(format!("{} = {}", shown(name), shown(&text)));
    }
    let more = members.map_or(0, |members| members.len().saturating_sub(MOST_SHOWN));
    if more > 0 {
        lines.push(format!("and {more} more argument{}", if more == 1 { "" } else { "s" }));
    }
    lines
}

/// A text on one bounded line, without secrets or what could deceive the reader.
pub(super) fn shown(text: &str) -> String {
    let clean = redact(text).text.into_owned();
    let clean = SanitizeConfig::default().clean(&clean).replace(['\n', '\r', '\t'], " ");
    match clean.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}… ({} characters)", clean.get(..end).unwrap_or_default(), clean.chars().count()),
        None => clean,
    }
}

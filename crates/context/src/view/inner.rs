//! The text that most of a JSON document is, as where a shell answers with its output in a member.

use std::borrow::Cow;

use crate::literal::{Kind, Value};
use crate::summary::{json_path, member_path};

/// The number of bytes of a text from which its lines are what is asked for: a shorter one is read at a glance.
const LEAST: usize = 600;

/// A text inside a document.
pub(super) struct Inner<'d> {
    /// Where it is, as a JSONPath.
    pub(super) path: String,
    pub(super) text: Cow<'d, str>,
}

/// The text of several lines that is more than half of `root`.
pub(super) fn inner_text(root: Value<'_>) -> Option<Inner<'_>> {
    let is_most = |value: &Value<'_>| value.span().len() * 2 > root.span().len();
    let (mut value, mut path) = (root, String::new());
    loop {
        match value.kind() {
            Kind::Object => {
                let (key, member) = value.members().find(|(_, member)| is_most(member))?;
                (value, path) = (member, member_path(&path, &key.plain()));
            }
            Kind::Array => {
                let (at, item) = value.items().enumerate().find(|(_, item)| is_most(item))?;
                (value, path) = (item, format!("{path}[{at}]"));
            }
            _ => {
                let text = value.string().filter(|text| text.len() > LEAST && text.contains('\n'))?;
                return (!path.is_empty()).then(|| Inner { path: json_path(&path), text });
            }
        }
    }
}

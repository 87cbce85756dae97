//! The operations, one file each, and the list of them.

mod compact;
mod compile;
mod count;
mod evaluate;
mod handoff;
mod route;
mod view;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error as _, IntoDeserializer as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::engines::Engines;
use super::envelope;
use super::problem::Problem;

/// Something that can be asked for: a path, and what answers a document that is sent there.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// The path, which begins with the version of the interface.
    pub path: &'static str,
    /// Whether the answer may take many seconds.
    pub is_long: bool,
    pub(crate) answer: fn(&Engines, &[u8]) -> Result<Value, Problem>,
}

/// All of them, by path.
pub const OPERATIONS: [Operation; 7] = [
    Operation { path: "/v1/compact", is_long: false, answer: compact::answer },
    Operation { path: "/v1/compile", is_long: false, answer: compile::answer },
    Operation { path: "/v1/count", is_long: false, answer: count::answer },
    Operation { path: "/v1/evaluate", is_long: true, answer: evaluate::answer },
    Operation { path: "/v1/handoff", is_long: false, answer: handoff::answer },
    Operation { path: "/v1/route", is_long: false, answer: route::answer },
    Operation { path: "/v1/view", is_long: false, answer: view::answer },
];

/// An answer, with what is odd about what was asked, or went otherwise than configured, where there is any.
#[derive(Serialize)]
struct Remarked<T> {
    #[serde(flatten)]
    answer: T,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
}

/// The request in a body.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let wrong = |text: &str| Problem::bad(format!("the body is not what this path takes: {text}"));
    match body.trim_ascii_start().first() {
        None => return Err(Problem::bad("the body is empty; send an object of JSON")),
        // An array would be taken for the members in their order.
        Some(b'[') => return Err(wrong("it is an array; send an object")),
        _ => {}
    }
    serde_json::from_slice(body).map_err(|error| match error.classify() {
        Category::Data if !body.trim_ascii_start().starts_with(b"{") => wrong("it is no object; send one"),
        Category::Data => {
            // What reads a number does not say what it is for.
            let text = error.to_string().replace("expected f64", WHOLE);
            // What is missing, unknown or there twice has its name in the text, and is in no other member.
            let is_named =
                ["missing", "unknown", "duplicate"].iter().any(|what| text.starts_with(&format!("{what} field")));
            let name = member_at(body, &error).filter(|_| !is_named).map(|name| format!("`{name}`"));
            let name = name.filter(|name| !text.contains(name)).map(|name| format!("{name}: ")).unwrap_or_default();
            wrong(&format!("{name}{text}"))
        }
        Category::Syntax | Category::Eof | Category::Io => Problem::bad(format!("the body is not JSON: {error}")),
    })
}

/// The name of the member of the body in which the error is.
fn member_at<'b>(body: &'b [u8], error: &serde_json::Error) -> Option<Cow<'b, str>> {
    /// Borrows a text that has no escapes.
    #[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
    struct Name<'b>(#[serde(borrow)] Cow<'b, str>);

    let text = std::str::from_utf8(body).ok()?;
    let members: BTreeMap<Name<'_>, &RawValue> = serde_json::from_str(text).ok()?;
    let lines: usize = text.split_inclusive('\n').take(error.line().checked_sub(1)?).map(str::len).sum();
    let start = |value: &RawValue| value.get().as_ptr().addr() - text.as_ptr().addr();
    // The error is behind a number or a text, and before a list or an object.
    let before = members.into_iter().filter(|(_, value)| start(value) <= lines + error.column());
    before.max_by_key(|(_, value)| start(value)).map(|(Name(name), _)| name)
}

/// A member that may be absent; `null` is a value of another type.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

/// A member that is a name of a fixed set, which a type may read from more than a string.
fn named<'de, T: DeserializeOwned, D: Deserializer<'de>>(value: D) -> Result<T, D::Error> {
    T::deserialize(String::deserialize(value)?.into_deserializer())
}

/// The same, where it may be absent.
fn named_if_present<'de, T: DeserializeOwned, D: Deserializer<'de>>(value: D) -> Result<Option<T>, D::Error> {
    named(value).map(Some)
}

/// How the message about a number begins.
const WHOLE: &str = "expected a whole number";

/// A whole number that may be absent. JSON does not tell 5.0 from 5.
fn whole<'de, T: TryFrom<usize>, D: Deserializer<'de>>(value: D) -> Result<Option<T>, D::Error> {
    /// From here on, not every whole number is one that JSON can carry.
    const MOST: f64 = 9_007_199_254_740_991.0;
    let number = f64::deserialize(value)?;
    let number = ((0.0..=MOST).contains(&number) && number.fract() == 0.0).then_some(number as usize);
    let number = number.and_then(|number| T::try_from(number).ok());
    let least = usize::from(T::try_from(0).is_err());
    number.map(Some).ok_or_else(|| D::Error::custom(format!("{WHOLE} from {least} to {MOST}")))
}

/// The answer in the form of all documents.
fn document(kind: &str, value: &impl serde::Serialize) -> Result<Value, Problem> {
    envelope(kind, value).map(Value::Object).map_err(|error| Problem::internal(&error))
}

/// The text of a JSON string, or the JSON text of any other value: what a file with it would hold.
fn text_of(value: &RawValue) -> Result<String, Problem> {
    match value.get().starts_with('"') {
        true => serde_json::from_str(value.get()).map_err(|error| Problem::bad(error.to_string())),
        false => Ok(value.get().to_owned()),
    }
}

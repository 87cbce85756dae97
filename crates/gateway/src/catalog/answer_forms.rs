//! The forms of the results of MCP, member by member, for results that somebody wrote by hand.
//!
//! What comes from a server is passed on as it is; of what is written here a member that nothing knows is a slip of the pen, and
//! is said with its place.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

/// What is wrong with a document of answers, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswersFault {
    /// The place in the document, such as `tools["send"].content[0]`; empty where that is the whole.
    pub place: String,
    /// What is wrong there, and what to do about it.
    pub problem: String,
}

impl AnswersFault {
    pub(super) fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into() }
    }
}

impl fmt::Display for AnswersFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(formatter, "{}: ", self.place)?;
        }
        formatter.write_str(&self.problem)
    }
}

impl std::error::Error for AnswersFault {}

/// The form of a value.
pub(super) enum Form {
    /// A text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Bytes as a text in base64.
    Bytes,
    /// A number.
    Number,
    /// `true` or `false`.
    Truth,
    /// An object of anything.
    Anything,
    /// A list.
    List(&'static Form),
    /// An object of these members and no others.
    Record(&'static [Member]),
    /// An object whose member `type` says which others it has.
    Part,
    /// What a resource holds: a text, or a `blob` in base64.
    Contents,
}

/// A member of an object.
pub(super) struct Member {
    name: &'static str,
    form: &'static Form,
    is_required: bool,
}

const fn needs(name: &'static str, form: &'static Form) -> Member {
    Member { name, form, is_required: true }
}

const fn may(name: &'static str, form: &'static Form) -> Member {
    Member { name, form, is_required: false }
}

const META: Member = may("_meta", &Form::Anything);

const ROLE: &Form = &Form::Word(&["user", "assistant"]);

const NOTES: &[Member] =
    &[may("audience", &Form::List(ROLE)), may("priority", &Form::Number), may("lastModified", &Form::Text)];

const ANNOTATIONS: Member = may("annotations", &Form::Record(NOTES));

const TYPE: Member = needs("type", &Form::Text);
const MEDIA_TYPE: Member = needs("mimeType", &Form::Text);

const MESSAGE: &[Member] = &[needs("role", ROLE), needs("content", &Form::Part)];

/// The result of `tools/call`.
pub(super) static TOOL_RESULT: Form = Form::Record(&[
    needs("content", &Form::List(&Form::Part)),
    may("structuredContent", &Form::Anything),
    may("isError", &Form::Truth),
    META,
]);

/// The result of `resources/read`.
pub(super) static READ_RESOURCE_RESULT: Form = Form::Record(&[needs("contents", &Form::List(&Form::Contents)), META]);

/// The result of `prompts/get`.
pub(super) static GET_PROMPT_RESULT: Form =
    Form::Record(&[may("description", &Form::Text), needs("messages", &Form::List(&Form::Record(MESSAGE))), META]);

const ICON: &[Member] = &[
    needs("src", &Form::Text),
    may("mimeType", &Form::Text),
    may("sizes", &Form::List(&Form::Text)),
    may("theme", &Form::Word(&["light", "dark"])),
];

/// The members of a part of content, by its type.
const PARTS: [(&str, &[Member]); 5] = [
    ("text", &[TYPE, needs("text", &Form::Text), ANNOTATIONS, META]),
    ("image", &[TYPE, needs("data", &Form::Bytes), MEDIA_TYPE, ANNOTATIONS, META]),
    ("audio", &[TYPE, needs("data", &Form::Bytes), MEDIA_TYPE, ANNOTATIONS, META]),
    ("resource", &[TYPE, needs("resource", &Form::Contents), ANNOTATIONS, META]),
    (
        "resource_link",
        &[
            TYPE,
            needs("uri", &Form::Text),
            needs("name", &Form::Text),
            may("title", &Form::Text),
            may("description", &Form::Text),
            may("mimeType", &Form::Text),
            may("size", &Form::Number),
            may("icons", &Form::List(&Form::Record(ICON))),
            ANNOTATIONS,
            META,
        ],
    ),
];

const URI: Member = needs("uri", &Form::Text);

const TEXT_CONTENTS: &[Member] = &[URI, needs("text", &Form::Text), may("mimeType", &Form::Text), META];
const BLOB_CONTENTS: &[Member] = &[URI, needs("blob", &Form::Bytes), may("mimeType", &Form::Text), META];

/// Characters of a name that a message shows, at most.
const LONGEST: usize = 80;

/// A name from a document as a message shows it: quoted, bounded, on one line.
pub(super) fn shown(name: &str) -> String {
    let mut short: String = name.chars().take(LONGEST).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    format!("{short:?}")
}

/// The place of a member whose name is data.
pub(super) fn member(place: &str, name: &str) -> String {
    format!("{place}[{}]", shown(name))
}

/// Refuses a value that does not have this form.
///
/// # Errors
/// The first place that is wrong.
pub(super) fn check(form: &Form, value: &Value, place: &str) -> Result<(), AnswersFault> {
    let is_right = |is_right: bool, what: &str| match is_right {
        true => Ok(()),
        false => Err(AnswersFault::new(place, format!("is not {what}"))),
    };
    match form {
        Form::Text => is_right(value.is_string(), "a text"),
        Form::Bytes => {
            let is_base64 = value.as_str().is_some_and(|text| BASE64_STANDARD.decode(text).is_ok());
            is_right(is_base64, "a text in base64")
        }
        Form::Number => is_right(value.is_number(), "a number"),
        Form::Truth => is_right(value.is_boolean(), "true or false"),
        Form::Anything => is_right(value.is_object(), "an object"),
        Form::Word(words) => is_right(value.as_str().is_some_and(|word| words.contains(&word)), &words.join(" or ")),
        Form::List(form) => {
            let Some(list) = value.as_array() else { return is_right(false, "a list") };
            list.iter().enumerate().try_for_each(|(at, value)| check(form, value, &format!("{place}[{at}]")))
        }
        Form::Record(members) => record(members, value, place),
        Form::Part => {
            let named = value.get("type").and_then(Value::as_str);
            let Some((_, members)) = PARTS.iter().find(|(name, _)| Some(*name) == named) else {
                let names = PARTS.map(|(name, _)| name).join(", ");
                return Err(AnswersFault::new(
                    place,
                    format!("is not part of content: its `type` is not one of {names}"),
                ));
            };
            record(members, value, place)
        }
        Form::Contents => record(if value.get("blob").is_some() { BLOB_CONTENTS } else { TEXT_CONTENTS }, value, place),
    }
}

fn record(members: &[Member], value: &Value, place: &str) -> Result<(), AnswersFault> {
    let names = || members.iter().map(|member| member.name).collect::<Vec<_>>().join(", ");
    let Some(found) = value.as_object() else {
        return Err(AnswersFault::new(place, format!("is not an object with {}", names())));
    };
    if let Some(name) = found.keys().find(|name| members.iter().all(|member| member.name != name.as_str())) {
        return Err(AnswersFault::new(place, format!("unknown member {}; expected {}", shown(name), names())));
    }
    for Member { name, form, is_required } in members {
        match found.get(*name) {
            Some(value) => check(form, value, &format!("{place}.{name}"))?,
            None if *is_required => return Err(AnswersFault::new(place, format!("`{name}` is missing"))),
            None => {}
        }
    }
    Ok(())
}

//! Values of a configuration: variables, durations, and the error that names the field.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::net::IpAddr;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// A field of the configuration has a value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct FieldError {
    /// The path of the field, e.g. `policy.rules[0].tags`.
    pub field: String,
    /// What is wrong with its value and what to do.
    pub reason: String,
}

impl FieldError {
    /// The error of `field` for `reason`.
    pub(crate) fn new(field: impl Into<String>, reason: impl Display) -> Self {
        Self { field: field.into(), reason: reason.to_string() }
    }

    /// The same error with the field named from within `parent`, e.g. `token` under `http`.
    pub(crate) fn under(self, parent: &str) -> Self {
        Self { field: format!("{parent}.{}", self.field), ..self }
    }
}

/// What a text of the configuration refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reference<'t> {
    /// `${env:NAME}`: the variable of this name.
    Variable(&'t str),
    /// `${file:PATH}`: what the file at this path holds.
    File(&'t str),
}

impl<'t> Reference<'t> {
    /// The first reference of a text with what stands before and after it, if there is one.
    ///
    /// # Errors
    /// [`ExpandError::Unclosed`].
    pub(crate) fn first(text: &'t str) -> Result<Option<(&'t str, Self, &'t str)>, ExpandError> {
        const VARIABLE: &str = "${env:";
        const FILE: &str = "${file:";
        let starts = [VARIABLE, FILE].into_iter().filter_map(|start| Some((text.find(start)?, start)));
        let Some((at, start)) = starts.min() else { return Ok(None) };
        let (name, after) = text[at + start.len()..].split_once('}').ok_or(ExpandError::Unclosed(start))?;
        let reference = if start == FILE { Self::File(name) } else { Self::Variable(name) };
        Ok(Some((&text[..at], reference, after)))
    }
}

impl Display for Reference<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(formatter, "${{env:{name}}}"),
            Self::File(path) => write!(formatter, "${{file:{path}}}"),
        }
    }
}

/// A reference in a text cannot be replaced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExpandError {
    /// The closing brace is missing.
    #[error("`{0}` is not closed by `}}`")]
    Unclosed(&'static str),
    /// The environment has no such variable.
    #[error("the variable `{0}` is not set; set it in the environment of the gateway")]
    Unset(String),
    /// The file cannot be read.
    #[error("{0}")]
    Unread(String),
    /// Files are not read for this field.
    #[error("`${{file:{0}}}` is read for upstreams only; use a variable, or the field that names a file")]
    NoFiles(String),
}

/// That these variables are not set, in the words of [`ExpandError::Unset`]: whoever reads one message finds the others.
pub(crate) fn unset(variables: &[String]) -> String {
    match variables {
        [one] => format!("the variable `{one}` is not set"),
        several => format!("the variables `{}` are not set", several.join("`, `")),
    }
}

/// Replaces every `${env:NAME}` in `text` with the value that `environment` has for `NAME`.
///
/// # Errors
/// [`ExpandError`].
pub(crate) fn expand(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, ExpandError> {
    replaced(text, &|reference| match reference {
        Reference::Variable(name) => environment(name).ok_or_else(|| ExpandError::Unset(name.to_owned())),
        Reference::File(path) => Err(ExpandError::NoFiles(path.to_owned())),
    })
}

/// Replaces every reference in `text` with what `value` has for it.
///
/// # Errors
/// [`ExpandError`].
pub(crate) fn replaced(
    text: &str,
    value: &dyn Fn(Reference<'_>) -> Result<String, ExpandError>,
) -> Result<String, ExpandError> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, reference, after)) = Reference::first(rest)? {
        expanded.push_str(before);
        expanded.push_str(&value(reference)?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// A value without members.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scalar<'t> {
    Text(&'t str),
    Switch(bool),
}

/// Reads a field that is either a scalar or has members. The two are told apart by their form, so that a mistake in a member
/// keeps its place and its words.
///
/// # Errors
/// The members are malformed, or `scalar` takes no such value; `expecting` says what there may be.
pub(crate) fn scalar_or_members<'de, T, M: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    expecting: &'static str,
    scalar: impl Fn(Scalar<'_>) -> Option<T>,
    members: impl FnOnce(M) -> T,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(ScalarOrMembers { expecting, scalar, members, read: PhantomData })
}

struct ScalarOrMembers<M, S, F> {
    expecting: &'static str,
    scalar: S,
    members: F,
    read: PhantomData<M>,
}

impl<'de, T, M: Deserialize<'de>, S: Fn(Scalar<'_>) -> Option<T>, F: FnOnce(M) -> T> Visitor<'de>
    for ScalarOrMembers<M, S, F>
{
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.expecting)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.scalar)(Scalar::Text(text)).ok_or_else(|| E::invalid_type(Unexpected::Str(text), &self))
    }

    fn visit_bool<E: de::Error>(self, on: bool) -> Result<T, E> {
        (self.scalar)(Scalar::Switch(on)).ok_or_else(|| E::invalid_type(Unexpected::Bool(on), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        M::deserialize(MapAccessDeserializer::new(map)).map(self.members)
    }
}

/// Whether the host of an address is this machine itself: what goes there goes over no network.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The longest wait that a configuration may ask for, in seconds: a year.
const LONGEST_WAIT_SECONDS: f64 = 31_536_000.0;

/// A number of seconds is not a usable wait.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("is {0}; it must be a number of seconds above 0 and at most {LONGEST_WAIT_SECONDS}")]
pub(crate) struct DurationError(f64);

/// The wait of so many seconds.
///
/// # Errors
/// It is zero, negative, not a number, or longer than a year.
pub(crate) fn duration(seconds: f64) -> Result<Duration, DurationError> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() && seconds <= LONGEST_WAIT_SECONDS => Ok(duration),
        _ => Err(DurationError(seconds)),
    }
}

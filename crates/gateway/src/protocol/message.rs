//! JSON-RPC messages whose parts stay the bytes that came in.
//!
//! A gateway mostly passes on what it was given. Typed models lose members that they do not know and cost several
//! times a copy for large results, so a message is taken apart at its top level only: ids, parameters and results are
//! slices of the line in which they arrived.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A JSON text on one line.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Raw(Bytes);

impl Raw {
    /// The JSON text of `value`.
    #[must_use]
    pub fn of(value: &(impl Serialize + ?Sized)) -> Self {
        // Maps with string keys, strings and numbers always serialise; `null` stands for what cannot.
        Self(serde_json::to_vec(value).map_or_else(|_| Bytes::from_static(b"null"), Bytes::from))
    }

    /// A text that is known to be JSON on one line.
    pub(crate) fn of_text(text: String) -> Self {
        Self(Bytes::from(text))
    }

    /// A part of `line`, which the JSON parser has delimited.
    fn part(line: &Bytes, part: &RawValue) -> Self {
        Self(line.slice_ref(part.get().as_bytes()))
    }

    /// The text of an object, put together from parts of others.
    pub(crate) fn from_object(text: Bytes) -> Self {
        Self(text)
    }

    /// The bytes of the text, UTF-8 without a line end.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Reads it as a `T`, which may borrow from it.
    ///
    /// # Errors
    /// The text does not have the form of a `T`.
    pub fn read<'r, T: Deserialize<'r>>(&'r self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0)
    }

    /// The same object with what `change` does to its `_meta`; as it is where it is not an object.
    pub(crate) fn with_meta(&self, change: impl FnOnce(&mut Members<'_>)) -> Self {
        self.read::<Members<'_>>().map_or_else(|_| self.clone(), |members| members.with_meta(change))
    }

    /// An id in the form that all its spellings have in common: JSON can write one text, or number, in several ways.
    pub(crate) fn canonical(&self) -> Self {
        let is_text = self.0.starts_with(b"\"");
        let is_plain = match is_text {
            true => memchr::memchr(b'\\', &self.0).is_none(),
            false => memchr::memchr3(b'.', b'e', b'E', &self.0).is_none(),
        };
        let read = || match is_text {
            true => self.read::<String>().ok().map(|text| Self::of(&text)),
            // Up to here every whole number is one of its own.
            false => self
                .read::<f64>()
                .ok()
                .filter(|number| number.fract() == 0.0 && number.abs() < 9e15)
                .map(|number| Self::of_text(format!("{number:.0}"))),
        };
        if is_plain { self.clone() } else { read().unwrap_or_else(|| self.clone()) }
    }

    /// An id as a text: a number as it is written, a text without its quotes.
    pub(crate) fn id_text(&self) -> Cow<'_, str> {
        self.read::<String>().map_or_else(|_| String::from_utf8_lossy(&self.0), Cow::Owned)
    }

    /// The text as a raw value, for embedding into what is serialised.
    #[must_use]
    pub fn to_raw_value(&self) -> Box<RawValue> {
        self.read().unwrap_or_default()
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// The error of a JSON-RPC response.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RpcError {
    /// A code of JSON-RPC or MCP.
    pub code: i64,
    /// What went wrong, for people.
    pub message: String,
    /// Further data about the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// An error without data.
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The method is not offered.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        // A name is quoted as far as names go.
        let end = method.char_indices().nth(LONGEST_METHOD).map_or(method.len(), |(end, _)| end);
        let more = if end < method.len() { "…" } else { "" };
        Self::new(METHOD_NOT_FOUND, format!("method `{}{more}` is not offered here", &method[..end]))
    }

    /// The parameters do not fit the method.
    #[must_use]
    pub fn invalid_params(reason: impl fmt::Display) -> Self {
        Self::new(INVALID_PARAMS, format!("invalid params: {reason}"))
    }
}

/// Characters of a method that an error quotes.
const LONGEST_METHOD: usize = 100;

/// Bytes of an id as it is written, at most: every message of a subscription repeats it.
const LONGEST_ID: usize = 1024;

/// Bytes of a progress token as it is written, at most: every message about progress repeats it.
const LONGEST_TOKEN: usize = 256;

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32_700;
/// The JSON is not a message.
pub const INVALID_REQUEST: i64 = -32_600;
/// The method is not offered.
pub const METHOD_NOT_FOUND: i64 = -32_601;
/// The parameters do not fit the method.
pub const INVALID_PARAMS: i64 = -32_602;
/// The receiver failed to process a valid request.
pub const INTERNAL_ERROR: i64 = -32_603;
/// A person has to do something at an address before the request is made again, in the handshake era; the data says what.
pub(crate) const URL_ELICITATION_REQUIRED: i64 = -32_042;
/// There is no such resource, in the handshake era.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32_002;

/// The result of a request, or its error.
pub type Outcome = Result<Raw, RpcError>;

/// A message of JSON-RPC.
#[derive(Debug, Clone)]
pub enum Message {
    /// A call that wants an answer.
    Request {
        /// What the answer names; a string or a number.
        id: Raw,
        /// The method that is called.
        method: String,
        /// The parameters, a JSON object when there are any.
        params: Option<Raw>,
    },
    /// A call that wants none.
    Notification {
        /// The method that is called.
        method: String,
        /// The parameters, a JSON object when there are any.
        params: Option<Raw>,
    },
    /// An answer to a request.
    Response {
        /// That of the request.
        id: Raw,
        /// What came of it.
        outcome: Outcome,
    },
}

/// A text is not a message of JSON-RPC.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// It is JSON, but neither request nor notification nor response.
    #[error("not a JSON-RPC message: {0}")]
    Shape(String),
    /// It does not say that it is a message of JSON-RPC 2.0.
    #[error("not a JSON-RPC message: `jsonrpc` must be \"2.0\"")]
    Version {
        /// That of the request, if it is one: an error under the id of an answer would be taken for an answer itself.
        id: Option<Raw>,
    },
    /// It is meant as an answer, and is not one. Nothing answers that.
    #[error("{0}")]
    Answer(String),
}

impl WireError {
    /// What a server answers.
    #[must_use]
    pub fn to_rpc(&self) -> RpcError {
        let code = match self {
            Self::Json(_) => PARSE_ERROR,
            Self::Shape(_) | Self::Version { .. } | Self::Answer(_) => INVALID_REQUEST,
        };
        RpcError::new(code, self.to_string())
    }

    /// The id under which a server answers, where one can be read.
    #[must_use]
    pub fn id(&self) -> Option<&Raw> {
        match self {
            Self::Version { id } => id.as_ref(),
            Self::Json(_) | Self::Shape(_) | Self::Answer(_) => None,
        }
    }
}

/// A client's progress token as it is written: a string or an integer of at most 256 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgressToken<'t>(&'t RawValue);

impl ProgressToken<'_> {
    /// The text of the token.
    pub(crate) fn raw(self) -> Raw {
        Raw::of(self.0)
    }
}

impl<'de: 't, 't> Deserialize<'de> for ProgressToken<'t> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let token = <&'t RawValue>::deserialize(deserializer)?;
        let is_integer = |text: &str| text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
        match token.get() {
            text if text.len() <= LONGEST_TOKEN && (text.starts_with('"') || is_integer(text)) => Ok(Self(token)),
            _ => Err(serde::de::Error::custom(format_args!(
                "`_meta.progressToken` must be a string or an integer of at most {LONGEST_TOKEN} bytes"
            ))),
        }
    }
}

#[derive(Deserialize)]
struct Parts<'m> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'m RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'m RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'m, str>>,
    #[serde(borrow)]
    params: Option<&'m RawValue>,
    #[serde(borrow)]
    result: Option<&'m RawValue>,
    #[serde(borrow)]
    error: Option<&'m RawValue>,
}

/// A member that is there, be it `null`: a request with the id `null` is wrong, and no notification.
fn present<'m, D: serde::Deserializer<'m>>(reader: D) -> Result<Option<&'m RawValue>, D::Error> {
    <&RawValue>::deserialize(reader).map(Some)
}

/// Whether a JSON text is an object. Derived readers take an array for one too, member by member.
pub(crate) fn is_object(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"{")
}

/// Refuses parameters that are not an object.
pub(crate) fn check_params(params: Option<&Raw>) -> Result<(), RpcError> {
    match params {
        Some(params) if !is_object(params.bytes()) => Err(RpcError::invalid_params("`params` must be an object")),
        _ => Ok(()),
    }
}

/// Why a JSON text that is not an object is not a message.
fn no_object(text: &[u8]) -> WireError {
    match serde_json::from_slice::<serde::de::IgnoredAny>(text) {
        Err(error) => WireError::Json(error.to_string()),
        Ok(_) if text.trim_ascii_start().starts_with(b"[") => {
            WireError::Shape("batches are not supported; send each message by itself".to_owned())
        }
        Ok(_) => WireError::Shape("it must be an object".to_owned()),
    }
}

impl Message {
    /// Takes a text apart. Line ends between its tokens become spaces, so that every part fits on a line. That it is
    /// JSON-RPC 2.0 need not be said: some servers do not.
    ///
    /// # Errors
    /// It is not JSON, or no message.
    pub fn parse(text: Bytes) -> Result<Self, WireError> {
        Self::parse_as(text, false)
    }

    /// The messages of a batch, which servers of 2025-03-26 may answer with; `None` for what is none.
    pub(crate) fn of_batch(text: &Bytes) -> Option<Vec<Result<Self, WireError>>> {
        if !text.trim_ascii_start().starts_with(b"[") {
            return None;
        }
        let line = on_one_line(text.clone());
        let parts: Vec<&RawValue> = serde_json::from_slice(&line).ok()?;
        Some(parts.into_iter().map(|part| Self::parse(Raw::part(&line, part).0)).collect())
    }

    /// Takes a text of a client apart, which must say that it is JSON-RPC 2.0.
    ///
    /// # Errors
    /// As [`Message::parse`], or it does not say so.
    pub(crate) fn parse_of_client(text: Bytes) -> Result<Self, WireError> {
        Self::parse_as(text, true)
    }

    fn parse_as(text: Bytes, says_version: bool) -> Result<Self, WireError> {
        let line = of_whole_characters(on_one_line(text));
        if !is_object(&line) {
            return Err(no_object(&line));
        }
        let parts: Parts<'_> = serde_json::from_slice(&line).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => WireError::Shape(error.to_string()),
            _ => WireError::Json(error.to_string()),
        })?;
        let is_answer = parts.method.is_none() && (parts.result.is_some() || parts.error.is_some());
        Self::of_parts(&line, parts, says_version).map_err(|error| match is_answer {
            true => WireError::Answer(error.to_string()),
            false => error,
        })
    }

    fn of_parts(line: &Bytes, parts: Parts<'_>, says_version: bool) -> Result<Self, WireError> {
        let raw = |part: &RawValue| Raw::part(line, part);
        let id = match parts.id.map(RawValue::get) {
            Some(text) if text.len() > LONGEST_ID => {
                let reason = format!("`id` has {} bytes; at most {LONGEST_ID} are allowed", text.len());
                return Err(WireError::Shape(reason));
            }
            Some(text) if text.starts_with(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) => {
                parts.id.map(raw)
            }
            Some(_) => return Err(WireError::Shape("`id` must be a string or a number".to_owned())),
            None => None,
        };
        if says_version && parts.jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
            return Err(WireError::Version { id: id.filter(|_| parts.method.is_some()) });
        }
        match (parts.method, id, parts.result, parts.error) {
            (Some(method), Some(id), None, None) => {
                Ok(Self::Request { id, method: method.into_owned(), params: parts.params.map(raw) })
            }
            (Some(_), None, None, None) if parts.params.is_some_and(|params| !is_object(params.get().as_bytes())) => {
                Err(WireError::Shape("`params` must be an object".to_owned()))
            }
            (Some(method), None, None, None) => {
                Ok(Self::Notification { method: method.into_owned(), params: parts.params.map(raw) })
            }
            (None, Some(id), Some(result), None) => Ok(Self::Response { id, outcome: Ok(raw(result)) }),
            (None, Some(id), None, Some(error)) if is_object(error.get().as_bytes()) => {
                let error = serde_json::from_str(error.get());
                let error = error.map_err(|reason| WireError::Shape(format!("`error`: {reason}")))?;
                Ok(Self::Response { id, outcome: Err(error) })
            }
            (None, Some(_), None, Some(_)) => Err(WireError::Shape("`error` must be an object".to_owned())),
            _ => {
                Err(WireError::Shape("it must have a `method`, or an `id` with either `result` or `error`".to_owned()))
            }
        }
    }

    /// The text of the message, on one line without a line end.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::Request { id, method, params } => request(id, method, params.as_ref()),
            Self::Notification { method, params } => notification(method, params.as_ref()),
            Self::Response { id, outcome } => response(Some(id), outcome),
        }
    }
}

/// The members of a JSON object, their values unread, in the order in which they came.
#[derive(Debug, Default)]
pub struct Members<'m>(pub Vec<(Cow<'m, str>, Cow<'m, RawValue>)>);

impl<'m> Members<'m> {
    /// The value of the first member called `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| &**value)
    }

    /// Replaces the member called `key`, or adds it at the end. Of several of that name one is left: who reads the last of
    /// them must not read another value.
    pub fn set(&mut self, key: impl Into<Cow<'m, str>>, value: &Raw) {
        let (key, mut value) = (key.into(), Some(Cow::Owned(value.to_raw_value())));
        self.0.retain_mut(|(name, old)| *name != key || value.take().map(|value| *old = value).is_some());
        if let Some(value) = value {
            self.0.push((key, value));
        }
    }

    /// The first name that more than one member has.
    pub(crate) fn repeated(&self) -> Option<&str> {
        let mut seen = HashSet::with_capacity(self.0.len());
        self.0.iter().map(|(name, _)| &**name).find(|name| !seen.insert(*name))
    }

    /// Takes the member called `key` away.
    pub fn remove(&mut self, key: &str) {
        self.0.retain(|(name, _)| name != key);
    }

    /// The text of the object with what `change` does to its `_meta`, which is empty where it is absent or no object.
    pub(crate) fn with_meta(mut self, change: impl FnOnce(&mut Members<'_>)) -> Raw {
        let meta = self.get("_meta").map(Raw::of);
        let mut meta: Members<'_> = meta.as_ref().and_then(|meta| meta.read().ok()).unwrap_or_default();
        change(&mut meta);
        self.set("_meta", &Raw::of(&meta));
        Raw::of(&self)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> serde::de::Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                #[derive(Deserialize)]
                struct Key<'t>(#[serde(borrow)] Cow<'t, str>);
                let mut members = Vec::new();
                while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    members.push((key, Cow::Borrowed(value)));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

impl Serialize for Members<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, &**value)))
    }
}

/// JSON texts hold line ends between tokens only: within strings they are escaped.
fn on_one_line(text: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    let mut bytes = BytesMut::from(text);
    for byte in bytes.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    bytes.freeze()
}

/// The same JSON, in which half a character (the escape of one surrogate without the other) is U+FFFD. Programs that cut texts
/// write halves, and a text with one cannot be read here: a result would be lost, and no guard would see what is in it.
fn of_whole_characters(text: Bytes) -> Bytes {
    let halves = halves_of_characters(&text);
    if halves.is_empty() {
        return text;
    }
    let mut bytes = BytesMut::from(text);
    for at in halves {
        if let Some(digits) = bytes.get_mut(at..at + 4) {
            digits.copy_from_slice(b"fffd");
        }
    }
    bytes.freeze()
}

/// Where the digits of escaped surrogates begin that stand alone.
fn halves_of_characters(text: &[u8]) -> Vec<usize> {
    /// The number of an escape whose backslash is at `at`.
    fn escaped(text: &[u8], at: usize) -> Option<u16> {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        // `from_str_radix` would take a sign.
        let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
        std::str::from_utf8(digits).ok().filter(|_| is_hex).and_then(|digits| u16::from_str_radix(digits, 16).ok())
    }
    let mut halves = Vec::new();
    // Few texts have an escape of a surrogate at all.
    let is_of_surrogate = |at: usize| matches!(text.get(at + 2), Some(b'd' | b'D'));
    if !memchr::memmem::find_iter(text, b"\\u").any(is_of_surrogate) {
        return halves;
    }
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', text.get(at..).unwrap_or_default()) {
        at += found;
        at += match escaped(text, at) {
            Some(0xD800..=0xDBFF) if matches!(escaped(text, at + 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                halves.push(at + 2);
                6
            }
            // The escaped character may be a backslash itself.
            _ => 2,
        };
    }
    halves
}

/// The text of a request.
#[must_use]
pub fn request(id: &Raw, method: &str, params: Option<&Raw>) -> Bytes {
    let mut text = opened(params.map_or(0, |params| params.0.len()) + method.len());
    text.put_slice(b",\"id\":");
    text.put_slice(&id.0);
    put_call(&mut text, method, params);
    text.freeze()
}

/// The text of a notification.
#[must_use]
pub fn notification(method: &str, params: Option<&Raw>) -> Bytes {
    let mut text = opened(params.map_or(0, |params| params.0.len()) + method.len());
    put_call(&mut text, method, params);
    text.freeze()
}

/// Whether a text that was made here is a notification, which nobody waits for an answer to.
pub(crate) fn is_notification(text: &[u8]) -> bool {
    text.strip_prefix(OPENING).is_some_and(|rest| rest.starts_with(b",\"method\":"))
}

/// A response; to a text without a legible id, the id is `null`.
#[must_use]
pub fn response(id: Option<&Raw>, outcome: &Outcome) -> Bytes {
    let error;
    let (name, part) = match outcome {
        Ok(result) => (&b",\"result\":"[..], result),
        Err(reason) => {
            error = Raw::of(reason);
            (&b",\"error\":"[..], &error)
        }
    };
    let mut text = opened(part.0.len());
    text.put_slice(b",\"id\":");
    text.put_slice(id.map_or(b"null", |id| &id.0));
    text.put_slice(name);
    text.put_slice(&part.0);
    text.put_u8(b'}');
    text.freeze()
}

/// How every text of a message begins.
const OPENING: &[u8] = b"{\"jsonrpc\":\"2.0\"";

fn opened(length: usize) -> BytesMut {
    const FRAME: usize = 96;
    let mut text = BytesMut::with_capacity(length + FRAME);
    text.put_slice(OPENING);
    text
}

fn put_call(text: &mut BytesMut, method: &str, params: Option<&Raw>) {
    text.put_slice(b",\"method\":");
    text.put_slice(&Raw::of(&method).0);
    if let Some(params) = params {
        text.put_slice(b",\"params\":");
        text.put_slice(&params.0);
    }
    text.put_u8(b'}');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Message, WireError> {
        Message::parse(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn parts_stay_the_bytes_that_came_in() {
        let text = "{\"jsonrpc\":\"2.0\",\r\n \"id\": 1.0e0, \"params\": {\"b\":1, \"a\" : 1e2},\"method\":\"x\\/y\"}";
        let message = parse(text).unwrap();
        let Message::Request { id, method, params } = &message else { panic!("{message:?}") };
        assert_eq!((&id.0[..], method.as_str()), (&b"1.0e0"[..], "x/y"));
        assert_eq!(&params.as_ref().unwrap().0[..], b"{\"b\":1, \"a\" : 1e2}");
        let written = message.to_bytes();
        assert_eq!(&written[..], br#"{"jsonrpc":"2.0","id":1.0e0,"method":"x/y","params":{"b":1, "a" : 1e2}}"#);
    }

    #[test]
    fn a_member_that_is_set_stands_once_and_what_is_beside_it_stays() {
        let with_meta = |text: &'static str| {
            let raw = Raw(Bytes::from_static(text.as_bytes()));
            format!("{:?}", raw.with_meta(|meta| meta.set("a", &Raw::of(&1))))
        };
        let cases = [
            (r#"{"b":1.50}"#, r#"{"b":1.50,"_meta":{"a":1}}"#),
            (r#"{"_meta":{"b":1.50,"a":2,"c":1e400},"b":1}"#, r#"{"_meta":{"b":1.50,"a":1,"c":1e400},"b":1}"#),
            (r#"{"_meta":{"a":2,"b":3,"\u0061":4}}"#, r#"{"_meta":{"a":1,"b":3}}"#),
            (r#"{"_meta":{"b":2},"b":3,"_meta":{"b":4}}"#, r#"{"_meta":{"b":2,"a":1},"b":3}"#),
            (r#"{"_meta":[1]}"#, r#"{"_meta":{"a":1}}"#),
            ("[1]", "[1]"),
        ];
        for (text, expected) in cases {
            assert_eq!(with_meta(text), expected);
        }
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_code_of_json_rpc() {
        let cases = [
            ("", PARSE_ERROR),
            ("{\"id\":1,", PARSE_ERROR),
            ("[]", INVALID_REQUEST),
            ("{\"id\":1}", INVALID_REQUEST),
            ("{\"id\":{},\"method\":\"x\"}", INVALID_REQUEST),
            ("{\"id\":1,\"result\":{},\"error\":{\"code\":1,\"message\":\"\"}}", INVALID_REQUEST),
            ("{\"id\":1,\"method\":\"x\",\"result\":1}", INVALID_REQUEST),
            ("{\"id\":null,\"result\":1}", INVALID_REQUEST),
            ("{\"method\":7}", INVALID_REQUEST),
            ("{\"id\":null,\"method\":\"ping\"}", INVALID_REQUEST),
        ];
        for (text, code) in cases {
            assert_eq!(parse(text).unwrap_err().to_rpc().code, code, "{text}");
        }
    }

    #[test]
    fn a_long_id_is_refused() {
        let request = |id: &str| parse(&format!("{{\"id\":{id},\"method\":\"ping\"}}"));
        let text = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
        assert!(request(&text(LONGEST_ID)).is_ok());
        for id in [text(LONGEST_ID + 1), "1".repeat(LONGEST_ID + 1)] {
            let error = request(&id).unwrap_err().to_rpc();
            assert_eq!(
                (error.code, error.message.contains("1025 bytes")),
                (INVALID_REQUEST, true),
                "{}",
                error.message
            );
        }
    }

    #[test]
    fn an_id_is_told_as_a_number_is_written_and_without_quotes() {
        for (id, text) in [("7", "7"), ("1.50", "1.50"), ("\"7\"", "7"), (r#""a\u0062""#, "ab")] {
            assert_eq!(Raw::of_text(id.to_owned()).id_text(), text);
        }
    }

    #[test]
    fn a_client_says_which_protocol_it_speaks() {
        let of_client = |text: &str| Message::parse_of_client(Bytes::copy_from_slice(text.as_bytes()));
        assert!(of_client(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).is_ok());
        for version in ["", r#""jsonrpc":"1.0","#, r#""jsonrpc":2.0,"#, r#""jsonrpc":null,"#] {
            let text = format!("{{{version}\"id\":\"a\",\"method\":\"ping\"}}");
            let error = of_client(&text).unwrap_err();
            assert_eq!((error.to_rpc().code, error.id()), (INVALID_REQUEST, Some(&Raw::of("a"))), "{text}");
            assert!(parse(&text).is_ok(), "{text}");
        }
        assert!(of_client(r#"{"method":"notifications/cancelled"}"#).is_err());
        let nothing = of_client(r#"{"id":"a"}"#).unwrap_err();
        assert!(matches!(nothing, WireError::Version { id: None }), "{nothing:?}");
        let answers = [
            r#"{"id":"a","result":{}}"#,
            r#"{"id":"a","error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":[],"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"a","error":7}"#,
        ];
        for text in answers {
            let error = of_client(text).unwrap_err();
            assert!(matches!(error, WireError::Answer(_)) && error.id().is_none(), "{text}: {error:?}");
        }
    }

    #[test]
    fn a_progress_token_is_a_short_string_or_an_integer() {
        let read = |text: &str| serde_json::from_str::<ProgressToken<'_>>(text).map(|token| token.raw());
        for good in [r#""a""#, "-7", "0", &format!("\"{}\"", "x".repeat(LONGEST_TOKEN - 2))] {
            assert_eq!(read(good).unwrap(), Raw::of_text(good.to_owned()));
        }
        let long = format!("\"{}\"", "x".repeat(LONGEST_TOKEN - 1));
        for bad in ["1.5", "1e3", "true", "{}", "[1]", &long, &"1".repeat(LONGEST_TOKEN + 1)] {
            assert!(read(bad).unwrap_err().to_string().contains("`_meta.progressToken` must be"), "{bad}");
        }
    }

    #[test]
    fn a_long_method_is_not_repeated() {
        let message = RpcError::method_not_found(&"é".repeat(1 << 20)).message;
        assert_eq!(message, format!("method `{}…` is not offered here", "é".repeat(100)));
        assert_eq!(RpcError::method_not_found("x/y").message, "method `x/y` is not offered here");
    }

    #[test]
    fn an_array_is_taken_for_no_object() {
        let cases = [
            ("[1, \"ping\", {}, null, null]", "batches are not supported"),
            (" [{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", "batches are not supported"),
            ("\"ping\"", "must be an object"),
            ("7", "must be an object"),
            ("{\"method\":\"notifications/cancelled\",\"params\":[1]}", "`params` must be an object"),
            ("{\"id\":1,\"error\":[-1,\"x\",null]}", "`error` must be an object"),
        ];
        for (text, reason) in cases {
            let error = parse(text).unwrap_err().to_rpc();
            assert_eq!(error.code, INVALID_REQUEST, "{text}");
            assert!(error.message.contains(reason), "{text}: {}", error.message);
        }
        assert_eq!(parse("[1,").unwrap_err().to_rpc().code, PARSE_ERROR);
        let (object, array) = (Raw::of(&serde_json::json!({"a": 1})), Raw::of(&serde_json::json!(["a", 1])));
        assert!(check_params(None).is_ok() && check_params(Some(&object)).is_ok());
        let error = check_params(Some(&array)).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (INVALID_PARAMS, "invalid params: `params` must be an object")
        );
    }

    #[test]
    fn half_a_character_is_a_sign_for_one() {
        for (text, expected) in [
            (r#"{"a":"\ud83d\ude00 \u00e9"}"#, r#"{"a":"\ud83d\ude00 \u00e9"}"#),
            (r#"{"a":"x\ud83d"}"#, r#"{"a":"x\ufffd"}"#),
            (r#"{"\uD83D":"\uDE00"}"#, r#"{"\ufffd":"\ufffd"}"#),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, r#"{"a":"\ufffd\ud83d\ude00"}"#),
            // An escaped backslash, and digits that are none.
            (r#"{"a":"\\ud83d"}"#, r#"{"a":"\\ud83d"}"#),
            (r#"{"a":"\\\ud83d"}"#, r#"{"a":"\\\ufffd"}"#),
            (r#"{"a":"\ud83"}"#, r#"{"a":"\ud83"}"#),
            (r#"{"a":"\u+d83\ud83d"}"#, r#"{"a":"\u+d83\ufffd"}"#),
        ] {
            let read = of_whole_characters(Bytes::from(text));
            assert_eq!(std::str::from_utf8(&read).unwrap(), expected);
        }
        let answer =
            parse(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\ud83d"}]}}"#).unwrap();
        let Message::Response { outcome: Ok(result), .. } = answer else { panic!("{answer:?}") };
        assert_eq!(result.read::<serde_json::Value>().unwrap()["content"][0]["text"], "\u{fffd}");
    }

    proptest! {
        #[test]
        fn a_string_of_any_escapes_can_be_read(text in r"(\\u[dD][89a-fA-F][0-9a-f]{2}|\\\\|\\u[0-9a-f]{4}|[a-z])*") {
            let text = format!("\"{text}\"");
            let read = of_whole_characters(Bytes::from(text.clone()));
            prop_assert!(serde_json::from_slice::<String>(&read).is_ok(), "{}", text);
            if serde_json::from_str::<String>(&text).is_ok() {
                prop_assert_eq!(&read[..], text.as_bytes());
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Message::parse(Bytes::from(bytes));
        }

        #[test]
        fn a_message_reads_back_as_written(
            id in "[a-z\"\\\\\n]{0,8}", method in "[ -~]{0,12}", text in "\\PC{0,40}", kind in 0..4,
        ) {
            let (id, params) = (Raw::of(&id), Raw::of(&serde_json::json!({ "text": text })));
            let message = match kind {
                0 => Message::Request { id, method, params: Some(params) },
                1 => Message::Notification { method, params: None },
                2 => Message::Response { id, outcome: Ok(params) },
                _ => Message::Response { id, outcome: Err(RpcError::new(-1, text)) },
            };
            let written = message.to_bytes();
            prop_assert!(!written.contains(&b'\n'));
            let read = Message::parse(written.clone()).unwrap();
            prop_assert_eq!(read.to_bytes(), written);
        }
    }
}

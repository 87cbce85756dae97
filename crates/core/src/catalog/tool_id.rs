//! Canonical ids: their grammar, how they are read and written, and the hash that keeps them stable.
//!
//! A tool's id is `namespace:name[@version][#hash8]`, at most [`MAX_TOOL_ID`] bytes; it has a version or a hash or
//! both. Ids of resources and prompts are the same behind `resource::` and `prompt::`.
//!
//! | part | grammar | meaning |
//! |---|---|---|
//! | `namespace` | `[a-z][a-z0-9_-]{0,63}` | the server |
//! | `name` | `[A-Za-z_][A-Za-z0-9_.-]{0,127}` | the name without the part that repeats the namespace |
//! | `version` | `[A-Za-z0-9._-]{1,32}` | the version that the server declares |
//! | `hash8` | `[0-9a-f]{8}` | the shape: see [`tool_hash8`], [`resource_hash8`] and [`prompt_hash8`] |
//!
//! Ids travel between implementations, so grammar and hashes are those of the Python implementation of contextweaver,
//! byte for byte. Checked parts can only be made by [`ToolIdParts::new`], so an id that was formatted always parses.
//! Names that real catalogs use outside the grammar are escaped here and nowhere else; which namespace a server gets is
//! decided in [`super::namespace`].

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CatalogError, Kind};
use crate::text::sha256_hex;

/// The longest tool id, in bytes.
pub const MAX_TOOL_ID: usize = 240;
pub(super) const MAX_NAMESPACE: usize = 64;
const MAX_NAME: usize = 128;
const MAX_VERSION: usize = 32;

/// The checked parts of a canonical tool id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolIdParts {
    namespace: String,
    name: String,
    version: Option<String>,
    hash8: Option<String>,
}

impl ToolIdParts {
    /// The parts of an id, each within the grammar in the module's header.
    ///
    /// # Errors
    /// [`CatalogError::Id`] when a part breaks its rule, or when version and hash are both missing.
    pub fn new(namespace: &str, name: &str, version: Option<&str>, hash8: Option<&str>) -> Result<Self, CatalogError> {
        let refuse = |reason: String| {
            let text = join(namespace, name, version, hash8);
            Err(CatalogError::Id { text: text.chars().take(MAX_TOOL_ID).collect(), reason })
        };
        if !is_namespace(namespace) {
            return refuse(format!("the namespace is not [a-z][a-z0-9_-]* of 1 to {MAX_NAMESPACE} characters"));
        }
        if !is_name(name) {
            return refuse(format!("the name is not [A-Za-z_][A-Za-z0-9_.-]* of 1 to {MAX_NAME} characters"));
        }
        if version.is_some_and(|version| !is_version(version)) {
            return refuse(format!("the version is not [A-Za-z0-9._-]* of 1 to {MAX_VERSION} characters"));
        }
        if hash8.is_some_and(|hash8| !is_hash8(hash8)) {
            return refuse("the hash is not 8 characters of [0-9a-f]".to_owned());
        }
        if version.is_none() && hash8.is_none() {
            return refuse("without a version the hash is required".to_owned());
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            version: version.map(str::to_owned),
            hash8: hash8.map(str::to_owned),
        })
    }

    /// The namespace, which stands for the server.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name in the id, which can differ from the name that the server uses: it is without the part that repeats the
    /// namespace, and escaped where the grammar does not allow it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version that the server declared, if any.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// The hash of the shape, if any: 8 lower-case hexadecimal digits.
    #[must_use]
    pub fn hash8(&self) -> Option<&str> {
        self.hash8.as_deref()
    }
}

impl fmt::Display for ToolIdParts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&format_tool_id(self))
    }
}

fn join(namespace: &str, name: &str, version: Option<&str>, hash8: Option<&str>) -> String {
    let mut id = format!("{namespace}:{name}");
    for (mark, part) in [('@', version), ('#', hash8)] {
        if let Some(part) = part {
            id.push(mark);
            id.push_str(part);
        }
    }
    id
}

/// The id with these parts. At most 235 bytes, since every part is bounded.
#[must_use]
pub fn format_tool_id(parts: &ToolIdParts) -> String {
    join(&parts.namespace, &parts.name, parts.version(), parts.hash8())
}

/// Parses a canonical tool id into its parts.
///
/// # Errors
/// [`CatalogError::Id`] with the rule that the text breaks.
pub fn parse_tool_id(id: &str) -> Result<ToolIdParts, CatalogError> {
    if id.len() > MAX_TOOL_ID {
        return Err(CatalogError::Id {
            text: id.chars().take(MAX_TOOL_ID).collect(),
            reason: format!("it has {} bytes, over the limit of {MAX_TOOL_ID}", id.len()),
        });
    }
    let Some((namespace, rest)) = id.split_once(':') else {
        return Err(CatalogError::Id { text: id.to_owned(), reason: "there is no `:` after a namespace".to_owned() });
    };
    let (rest, hash8) = split_mark(rest, '#');
    let (name, version) = split_mark(rest, '@');
    ToolIdParts::new(namespace, name, version, hash8)
}

fn split_mark(text: &str, mark: char) -> (&str, Option<&str>) {
    text.split_once(mark).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// Which of the three disjoint id spaces an id belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrimitiveKind {
    /// Ids without a prefix: tools, and the agents and skills that are called like them.
    Tool,
    /// Ids that begin with `resource::`.
    Resource,
    /// Ids that begin with `prompt::`.
    Prompt,
}

impl PrimitiveKind {
    /// The id space of items of this kind.
    #[must_use]
    pub fn of(kind: Kind) -> Self {
        match kind {
            Kind::Tool | Kind::Agent | Kind::Skill | Kind::Internal => Self::Tool,
            Kind::Resource => Self::Resource,
            Kind::Prompt => Self::Prompt,
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Tool => "",
            Self::Resource => "resource::",
            Self::Prompt => "prompt::",
        }
    }
}

/// A canonical id of any primitive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrimitiveId {
    /// The id space that the id belongs to.
    pub kind: PrimitiveKind,
    /// The parts behind the prefix of the id space.
    pub parts: ToolIdParts,
}

/// The text of a primitive's id.
#[must_use]
pub fn format_primitive_id(id: &PrimitiveId) -> String {
    format!("{}{}", id.kind.prefix(), id.parts)
}

/// Parses a canonical primitive id. A key with a `~N` suffix is not canonical and is refused.
///
/// # Errors
/// [`CatalogError::Id`] with the rule that the text breaks.
pub fn parse_primitive_id(id: &str) -> Result<PrimitiveId, CatalogError> {
    let (kind, body) = match id.split_once("::") {
        None => (PrimitiveKind::Tool, id),
        Some(("resource", body)) => (PrimitiveKind::Resource, body),
        Some(("prompt", body)) => (PrimitiveKind::Prompt, body),
        Some(_) => {
            return Err(CatalogError::Id {
                text: id.chars().take(MAX_TOOL_ID).collect(),
                reason: "before `::` only `resource` and `prompt` are known".to_owned(),
            });
        }
    };
    Ok(PrimitiveId { kind, parts: parse_tool_id(body)? })
}

/// The hash of a tool: its name as the server gave it and the shape of its arguments, which is the names of the
/// top-level properties and the list of required ones. `None` means the empty schema.
#[must_use]
pub fn tool_hash8(upstream_name: &str, args_schema: Option<&Value>) -> String {
    short_sha256(&format!("{upstream_name}\n{}", argument_shape(args_schema)), 8)
}

/// The hash of a resource: its URI behind the word `resource`, which keeps it apart from the hashes of tools and
/// prompts.
#[must_use]
pub fn resource_hash8(uri: &str) -> String {
    short_sha256(&format!("resource\n{uri}"), 8)
}

/// The hash of a prompt: its name and its argument names, in any order, behind the word `prompt`.
#[must_use]
pub fn prompt_hash8(name: &str, arguments: &[&str]) -> String {
    let mut text = format!("prompt\n{name}\n");
    push_sorted_list(&mut text, arguments.to_vec());
    short_sha256(&text, 8)
}

/// The first `digits` hexadecimal digits of the SHA-256 of `text`.
pub(super) fn short_sha256(text: &str, digits: usize) -> String {
    let mut hash = sha256_hex(text.as_bytes());
    hash.truncate(digits);
    hash
}

/// The shape that [`tool_hash8`] hashes: compact JSON with sorted keys and ASCII escapes, as Python's `json.dumps(…,
/// sort_keys=True, separators=(",", ":"))` writes it. Members of `required` that are not strings are left out.
#[must_use]
pub fn argument_shape(args_schema: Option<&Value>) -> String {
    let member = |key| args_schema.and_then(|schema| schema.get(key));
    let properties = member("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flat_map(|map| map.keys()).map(String::as_str).collect();
    let required = member("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str).collect();
    let mut text = String::from("{\"properties\":");
    push_sorted_list(&mut text, properties);
    text.push_str(",\"required\":");
    push_sorted_list(&mut text, required);
    text.push('}');
    text
}

fn push_sorted_list(text: &mut String, mut names: Vec<&str>) {
    // Byte order of UTF-8 is code point order, which is how Python sorts strings.
    names.sort_unstable();
    text.push('[');
    for (index, name) in names.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        push_ascii_json_string(text, name);
    }
    text.push(']');
}

fn push_ascii_json_string(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            ' '..='~' => text.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    text.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    text.push('"');
}

/// `name` as the name part of an id: itself when the grammar allows it. Otherwise every run of other characters
/// becomes one `_`, a name that begins with a digit, `.` or `-` gets a `_` before it, and the rest is cut at 128
/// bytes. Two names may escape to one, so an id with an escaped name always carries its hash.
#[must_use]
pub fn escape_name(name: &str) -> Cow<'_, str> {
    if is_name(name) {
        return Cow::Borrowed(name);
    }
    let mut escaped = String::with_capacity(name.len().min(MAX_NAME) + 1);
    let mut in_run = false;
    for character in name.chars() {
        if is_name_character(character) {
            if escaped.is_empty() && !is_name_start(character) {
                escaped.push('_');
            }
            escaped.push(character);
            in_run = false;
        } else if !in_run {
            escaped.push('_');
            in_run = true;
        }
        if escaped.len() >= MAX_NAME {
            break;
        }
    }
    escaped.truncate(MAX_NAME);
    if escaped.is_empty() {
        escaped.push('_');
    }
    Cow::Owned(escaped)
}

fn is_name_start(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_'
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-')
}

fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME && text.starts_with(is_name_start) && text.chars().all(is_name_character)
}

pub(super) fn is_namespace(text: &str) -> bool {
    text.len() <= MAX_NAMESPACE
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
}

pub(super) fn is_version(text: &str) -> bool {
    (1..=MAX_VERSION).contains(&text.len()) && text.chars().all(is_name_character)
}

/// A version with `_` for each character that ids cannot hold.
pub(super) fn version_in_id(version: &str) -> String {
    version.replace(|character| !is_name_character(character), "_")
}

fn is_hash8(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn long(letter: &str, count: usize) -> String {
        letter.repeat(count)
    }

    #[test]
    fn ids_within_the_grammar_round_trip() {
        for id in [
            "github:create_issue@1.4.0".to_owned(),
            "slack:slack_send_message#3a91c7d2".to_owned(),
            "weather:get@2024-05#00000000".to_owned(),
            "a:_".to_owned() + "#0123abcd",
            "a_-9:A.b-c@A-._9".to_owned(),
            format!("{}:{}@{}#01234567", long("n", 64), long("N", 128), long("9", 32)),
        ] {
            let parts = parse_tool_id(&id).unwrap();
            assert_eq!(format_tool_id(&parts), id);
            assert_eq!(parse_primitive_id(&id).unwrap().kind, PrimitiveKind::Tool);
            for (prefix, kind) in [("resource::", PrimitiveKind::Resource), ("prompt::", PrimitiveKind::Prompt)] {
                let primitive = parse_primitive_id(&format!("{prefix}{id}")).unwrap();
                assert_eq!((primitive.kind, &primitive.parts), (kind, &parts));
                assert_eq!(format_primitive_id(&primitive), format!("{prefix}{id}"));
            }
        }
    }

    #[test]
    fn ids_outside_the_grammar_are_refused() {
        for (id, reason) in [
            ("".to_owned(), "no `:`"),
            ("github.create_issue".to_owned(), "no `:`"),
            ("github:create_issue".to_owned(), "the hash is required"),
            ("GitHub:create_issue@1".to_owned(), "namespace"),
            ("1github:create_issue@1".to_owned(), "namespace"),
            ("git hub:create_issue@1".to_owned(), "namespace"),
            (":x@1".to_owned(), "namespace"),
            (format!("{}:x@1", long("n", 65)), "namespace"),
            ("a:@1".to_owned(), "name"),
            ("a:1x@1".to_owned(), "name"),
            ("a:.x@1".to_owned(), "name"),
            ("a:x y@1".to_owned(), "name"),
            ("a:é@1".to_owned(), "name"),
            ("a:b:c@1".to_owned(), "name"),
            (format!("a:{}@1", long("n", 129)), "name"),
            ("a:x@".to_owned(), "version"),
            ("a:x@1 0".to_owned(), "version"),
            ("a:x@1@2".to_owned(), "version"),
            (format!("a:x@{}", long("1", 33)), "version"),
            ("a:x#1234567".to_owned(), "hash"),
            ("a:x#123456789".to_owned(), "hash"),
            ("a:x#1234567G".to_owned(), "hash"),
            ("a:x#ABCDEF01".to_owned(), "hash"),
            ("a:x@1#".to_owned(), "hash"),
            ("resource::a:x#12345678~2".to_owned(), "hash"),
            ("tool::a:x@1".to_owned(), "`resource`"),
            ("resource::prompt::a:x@1".to_owned(), "namespace"),
            (long("x", 241), "241 bytes"),
        ] {
            let error = parse_primitive_id(&id).unwrap_err().to_string();
            assert!(error.contains(reason), "{id}: {error}");
        }
    }

    /// The expected digests were printed by CPython's `json` and `hashlib` for the same inputs.
    #[test]
    fn hashes_equal_those_of_python() {
        let schema = json!({
            "type": "object",
            "required": ["b", "a", "a"],
            "properties": {"b": {}, "a": {}, "ü\"\\\n\u{7f}😀": {}, "\u{8}\u{c}\t\r\u{1}": {}, "￿": {}}
        });
        assert_eq!(
            argument_shape(Some(&schema)),
            r#"{"properties":["\b\f\t\r\u0001","a","b","\u00fc\"\\\n\u007f\ud83d\ude00","\uffff"],"required":["a","a","b"]}"#
        );
        let body = json!({"type": "object", "properties": {"title": {}, "body": {}}, "required": ["title"]});
        let odd = json!({"properties": [1], "required": ["x", 3, null]});
        assert_eq!(
            [
                tool_hash8("read_file", None),
                tool_hash8("read_file", Some(&json!({"type": "object", "properties": {}, "required": []}))),
                tool_hash8("github.create_issue", Some(&body)),
                tool_hash8("gitlab.create_issue", Some(&body)),
                tool_hash8("Wetter 😀", Some(&schema)),
                resource_hash8("file:///docs/readme.md"),
                prompt_hash8("summarize_pr", &["repo", "lang"]),
                prompt_hash8("leer", &[]),
            ],
            HASHES
        );
        assert_eq!(argument_shape(Some(&odd)), r#"{"properties":[],"required":["x"]}"#);
    }

    const HASHES: [&str; 8] =
        ["559d82ea", "559d82ea", "6c5f877d", "938fee2e", "b524593f", "a8c506b1", "1b0509b3", "b581ec6c"];

    #[test]
    fn names_outside_the_grammar_are_escaped() {
        for (name, escaped) in [
            ("create_issue", "create_issue"),
            ("TheClique :: Songkick concert", "TheClique_Songkick_concert"),
            ("3d print", "_3d_print"),
            ("-x", "_-x"),
            (".x", "_.x"),
            ("查询天气", "_"),
            ("get 天气!", "get_"),
            ("a@b#c:d/e", "a_b_c_d_e"),
            ("", "_"),
        ] {
            assert_eq!(escape_name(name), escaped, "{name}");
        }
        assert_eq!(escape_name(&long("x", 200)), long("x", 128));
    }

    proptest! {
        #[test]
        fn parts_round_trip(
            namespace in "[a-z][a-z0-9_-]{0,63}",
            name in "[A-Za-z_][A-Za-z0-9_.-]{0,127}",
            version in proptest::option::of("[A-Za-z0-9._-]{1,32}"),
            hash8 in "[0-9a-f]{8}",
            kind in proptest::sample::select(vec![PrimitiveKind::Tool, PrimitiveKind::Resource, PrimitiveKind::Prompt]),
        ) {
            let parts = ToolIdParts::new(&namespace, &name, version.as_deref(), Some(&hash8)).unwrap();
            let id = PrimitiveId { kind, parts };
            prop_assert_eq!(parse_primitive_id(&format_primitive_id(&id)).unwrap(), id);
        }

        #[test]
        fn what_parses_is_what_it_formats_to(text in "(resource::|prompt::|tool::)?[a-zA-Z:@#~_. é]{0,24}") {
            if let Ok(id) = parse_primitive_id(&text) {
                prop_assert_eq!(format_primitive_id(&id), text);
            }
        }

        #[test]
        fn every_name_escapes_into_the_grammar(name in any::<String>()) {
            prop_assert!(is_name(&escape_name(&name)));
        }
    }
}

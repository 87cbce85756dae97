//! One file as a list of definitions: which form it has and where each definition begins and ends.
//!
//! Nothing is known here about what a definition means. They are cut out without being interpreted, so that one bad
//! definition does not cost the others and the bytes stay as they were received.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::Kind;
use super::too_deep;

/// The list that a definition stands in, which says how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Tools,
    Resources,
    Prompts,
    /// Of the native form.
    Items,
}

impl fmt::Display for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
            Self::Items => "items",
        })
    }
}

/// A definition and its position in its list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'t> {
    pub(super) form: Form,
    pub(super) index: usize,
    pub(super) raw: &'t RawValue,
}

/// The definitions of one file.
#[derive(Debug)]
pub(super) struct Document<'t> {
    /// What the file calls its server.
    pub(super) server: Option<String>,
    pub(super) entries: Vec<Entry<'t>>,
}

/// Place and reason.
pub(super) type Fault = (String, String);

/// Everything that the known forms have at the top. Other keys of an MCP document are nobody's business here.
#[derive(Deserialize)]
struct Top<'t> {
    server: Option<String>,
    #[serde(borrow)]
    tools: Option<Vec<&'t RawValue>>,
    #[serde(borrow)]
    resources: Option<Vec<&'t RawValue>>,
    #[serde(borrow)]
    prompts: Option<Vec<&'t RawValue>>,
    #[serde(borrow)]
    items: Option<&'t RawValue>,
    #[serde(borrow)]
    result: Option<&'t RawValue>,
    #[serde(borrow)]
    error: Option<&'t RawValue>,
}

/// The result of a JSON-RPC response.
#[derive(Deserialize)]
#[serde(expecting = "an object with `tools`, `resources` or `prompts`")]
struct Lists<'t> {
    #[serde(borrow)]
    tools: Option<Vec<&'t RawValue>>,
    #[serde(borrow)]
    resources: Option<Vec<&'t RawValue>>,
    #[serde(borrow)]
    prompts: Option<Vec<&'t RawValue>>,
}

impl Lists<'_> {
    fn is_none(&self) -> bool {
        self.tools.is_none() && self.resources.is_none() && self.prompts.is_none()
    }
}

/// The way out for a file that is nearly of the native form.
const NATIVE_FORM: &str = "write the native form as {\"schema\": 1, \"items\": [...]}";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Native<'t> {
    schema: Option<u32>,
    #[serde(borrow)]
    items: Vec<&'t RawValue>,
}

/// Cuts a JSON text into definitions.
pub(super) fn parse(text: &str) -> Result<Document<'_>, Fault> {
    match text.trim_start().bytes().next() {
        Some(b'[') => {
            let tools: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| fault(&error))?;
            if tools.iter().any(|tool| is_native(tool)) {
                return Err(top_level(&format!("a bare list of items with `id` and `kind`; {NATIVE_FORM}")));
            }
            Ok(Document { server: None, entries: entries([(Form::Tools, Some(tools))]) })
        }
        Some(b'{') => parse_object(text),
        None => Err(top_level("the file is empty; put the answer of a server to `tools/list` there")),
        Some(_) => {
            // Either malformed or a scalar; the parser knows the position of the former.
            serde_json::from_str::<&RawValue>(text).map_err(|error| fault(&error))?;
            Err(top_level("an array of tools or an object is expected"))
        }
    }
}

fn parse_object(text: &str) -> Result<Document<'_>, Fault> {
    let top: Top<'_> = serde_json::from_str(text).map_err(|error| fault(&error))?;
    let lists = Lists { tools: top.tools, resources: top.resources, prompts: top.prompts };
    let lists = match (lists.is_none(), top.items, top.result, top.error) {
        (false, ..) => lists,
        (true, Some(_), ..) => return parse_native(text),
        (true, None, Some(result), _) => {
            serde_json::from_str(result.get()).map_err(|error| ("result".to_owned(), without_position(&error)))?
        }
        (true, None, None, Some(error)) => {
            let error = super::shortened(error.get());
            return Err(top_level(&format!("a JSON-RPC error response: {error}; ask the server again")));
        }
        (true, None, None, None) => lists,
    };
    if lists.is_none() {
        return Err(top_level("none of the keys `tools`, `resources`, `prompts` and `items` is there"));
    }
    let lists = [(Form::Tools, lists.tools), (Form::Resources, lists.resources), (Form::Prompts, lists.prompts)];
    Ok(Document { server: top.server.filter(|server| !server.trim().is_empty()), entries: entries(lists) })
}

fn parse_native(text: &str) -> Result<Document<'_>, Fault> {
    let native: Native<'_> = serde_json::from_str(text).map_err(|error| fault(&error))?;
    match native.schema {
        Some(super::native::SCHEMA) => {}
        None => return Err(top_level(&format!("`schema` is missing; {NATIVE_FORM}"))),
        Some(other) => {
            let expected = super::native::SCHEMA;
            return Err(top_level(&format!("`schema` is {other}; write the file in the form of {expected}")));
        }
    }
    Ok(Document { server: None, entries: entries([(Form::Items, Some(native.items))]) })
}

/// Whether a definition is an item of the native form, of which an MCP reader would drop most fields.
fn is_native(raw: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Item {
        #[serde(rename = "id")]
        _id: String,
        #[serde(rename = "kind")]
        _kind: Kind,
    }
    serde_json::from_str::<Item>(raw.get()).is_ok()
}

fn entries<'t, const N: usize>(lists: [(Form, Option<Vec<&'t RawValue>>); N]) -> Vec<Entry<'t>> {
    let mut entries = Vec::new();
    for (form, list) in lists {
        let list = list.unwrap_or_default().into_iter().enumerate();
        entries.extend(list.map(|(index, raw)| Entry { form, index, raw }));
    }
    entries
}

fn top_level(reason: &str) -> Fault {
    ("top level".to_owned(), reason.to_owned())
}

fn fault(error: &serde_json::Error) -> Fault {
    (format!("line {}, column {}", error.line(), error.column()), without_position(error))
}

fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).unwrap_or(&text).to_owned()
}

/// The value of one definition. Its name, when it has one, is put into `name` for messages, also on failure.
pub(super) fn parse_entry(raw: &RawValue, name: &mut String) -> Result<Value, String> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(value) => {
            value.get("name").and_then(Value::as_str).unwrap_or("").clone_into(name);
            Ok(value)
        }
        Err(error) => {
            if let Ok(named) = serde_json::from_str::<Named>(raw.get()) {
                *name = named.name;
            }
            let reason = without_position(&error);
            Err(if reason.starts_with("recursion limit") { too_deep() } else { reason })
        }
    }
}

/// Converts a YAML text to JSON, so that both take one way from here. Only `true` and `false` are booleans: a tool
/// called `on` or a country `no` is a text. The limits hold off alias bombs and deep nesting; the size of a plain
/// document is bounded by the size of its file.
pub(super) fn yaml_to_json(text: &str) -> Result<String, Fault> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_depth: super::MAX_NESTING + 1,
            max_nodes: 32_000_000,
            max_events: 64_000_000,
            max_total_scalar_bytes: 1 << 28,
            max_documents: 1,
        },
    };
    let value: Value = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let error = error.without_snippet();
        let reason = yaml_reason(error);
        match error.location() {
            None => top_level(&reason),
            Some(at) => {
                let place = format!("line {}, column {}", at.line(), at.column());
                let reason = reason.strip_suffix(&format!(" at {place}")).unwrap_or(&reason).to_owned();
                (place, reason)
            }
        }
    })?;
    Ok(value.to_string())
}

/// What is wrong with a YAML text, without the names that the parser has for its limits and options.
fn yaml_reason(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error;
    use serde_saphyr::budget::BudgetBreach;
    match error {
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => too_deep(),
        Error::Budget { breach: BudgetBreach::Documents { .. }, .. } | Error::MultipleDocuments { .. } => {
            "it holds more than one document; keep one per file".to_owned()
        }
        Error::Budget {
            breach: BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } | BudgetBreach::ScalarBytes { .. },
            ..
        } => "it is too large for YAML; save it as JSON or split it".to_owned(),
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "its anchors and aliases stand for too much; write the values out".to_owned()
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key `{}` is there twice; remove one", super::shortened(key))
        }
        Error::DuplicateMappingKey { key: None, .. } => "a key is there twice; remove one".to_owned(),
        Error::AliasError { error, .. } => yaml_reason(error),
        other => {
            let text = other.to_string();
            if text.starts_with("recursion limit") { too_deep() } else { text }
        }
    }
}

//! Reading what an operator wrote, with messages that show none of it.
//!
//! A configuration may hold secrets, and a parser's own message quotes the value that it stumbled over and the lines
//! around it. What is said here is the line, the column, the key and what was expected there. The name of a field that
//! nobody knows is shown: it is a key.

use serde::de::DeserializeOwned;
use serde_saphyr::Error;

use crate::store::redact;

/// Characters of a key that a message shows, at most.
const LONGEST_KEY: usize = 64;

/// Reads YAML or JSON.
///
/// # Errors
/// Where and what, on one line without values.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| told(text, &error))
}

/// The message of a parser without what it quotes.
fn told(text: &str, error: &Error) -> String {
    let error = error.without_snippet();
    let place = error.location().map(|location| (location.line(), location.column()));
    let problem = problem(error);
    let Some((line, column)) = place else { return problem };
    let key = if is_about_a_value(error) { key_before(text, line, column) } else { None };
    let key = key.map(|key| format!(", `{key}`")).unwrap_or_default();
    format!("line {line}, column {column}{key}: {problem}")
}

fn problem(error: &Error) -> String {
    match error {
        Error::AliasError { error, .. } => problem(error),
        Error::SerdeUnknownField { field, expected, .. } => {
            format!("unknown field `{}`; expected {}", shown(field), one_of(expected))
        }
        Error::SerdeUnknownVariant { expected, .. } => format!("the value is not {}", one_of(expected)),
        Error::SerdeInvalidType { expected, .. } | Error::SerdeInvalidValue { expected, .. } => {
            format!("the value is not {expected}")
        }
        Error::SerdeInvalidLength { len, expected, .. } => format!("{len} elements; expected {expected}"),
        Error::SerdeMissingField { field, .. } => format!("the field `{field}` is missing"),
        Error::InvalidScalar { ty, .. } => format!("the value is not {ty}"),
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().map(|key| format!(" `{}`", shown(key))).unwrap_or_default();
            format!("the key{key} stands there twice")
        }
        Error::Eof { .. } => "the text ends too early".to_owned(),
        Error::Unexpected { expected, .. } => format!("expected {expected}"),
        Error::NullIntoString { .. } => "the value is null, not a text".to_owned(),
        Error::MultipleDocuments { .. } => "there is more than one document".to_owned(),
        Error::Budget { .. } => "it is too large or too deep".to_owned(),
        // Of our own types and of addresses: those do not quote values.
        Error::Message { msg, .. } => redact(msg.lines().next().unwrap_or_default()).text.into_owned(),
        _ => "it is no YAML or JSON from there on; check indentation, quotes and brackets".to_owned(),
    }
}

fn is_about_a_value(error: &Error) -> bool {
    matches!(
        error,
        Error::SerdeInvalidType { .. }
            | Error::SerdeInvalidValue { .. }
            | Error::SerdeUnknownVariant { .. }
            | Error::InvalidScalar { .. }
            | Error::NullIntoString { .. }
            | Error::Message { .. }
    )
}

fn one_of(names: &[&str]) -> String {
    match names {
        [] => "nothing".to_owned(),
        [name] => format!("`{name}`"),
        _ => format!("one of {}", names.join(", ")),
    }
}

/// A key as a message shows it.
fn shown(key: &str) -> String {
    redact(key).text.chars().filter(|c| !c.is_control()).take(LONGEST_KEY).collect()
}

/// The key of the value that begins there, when it stands before it on its line.
fn key_before(text: &str, line: u64, column: u64) -> Option<String> {
    let line = text.lines().nth(usize::try_from(line.checked_sub(1)?).ok()?)?;
    let before: String = line.chars().take(usize::try_from(column.checked_sub(1)?).ok()?).collect();
    let (before, _) = before.trim_end().trim_end_matches(['"', '\'']).trim_end().rsplit_once(':')?;
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let key: String = before.trim_end_matches(['"', '\'', ' ']).chars().rev().take_while(|c| is_part(*c)).collect();
    let key: String = key.chars().rev().collect();
    (!key.is_empty()).then(|| shown(&key))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only the errors are looked at")]
    struct Written {
        token: Option<String>,
        #[serde(default)]
        count: u32,
        kind: Option<Kind>,
        inner: Option<Box<Written>>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        One,
        Two,
    }

    #[test]
    fn a_message_says_where_and_what_and_quotes_no_value() {
        let texts = [
            "token: hunter2\ncount: hunter2\n",
            "token: hunter2\ncount: [hunter2]\n",
            "{\"token\": \"hunter2\", \"inner\": {\"count\": \"hunter2\"}}",
            "token: hunter2\nkind: hunter2\n",
            "token: hunter2\nsecrets: hunter2\n",
            "token: hunter2\ntoken: hunter2\n",
            "token: \"hunter2\ncount: 1\n",
            "token: hunter2\n  bad: [hunter2\n",
            "{token: hunter2",
            "hunter2",
            "token: {hunter2: hunter2}\n",
            "count: -1 # hunter2\n",
        ];
        let told: Vec<String> = texts.map(|text| read::<Written>(text).map(drop).unwrap_err()).into();
        insta::assert_snapshot!(told.join("\n"), @r"
        line 2, column 8, `count`: the value is not u32
        line 2, column 8: expected string scalar
        line 1, column 41, `count`: the value is not u32
        line 2, column 7, `kind`: the value is not one of one, two
        line 2, column 1: unknown field `secrets`; expected one of token, count, kind, inner
        line 2, column 1: the key `token` stands there twice
        line 2, column 1: it is no YAML or JSON from there on; check indentation, quotes and brackets
        line 2, column 6: it is no YAML or JSON from there on; check indentation, quotes and brackets
        line 1, column 1: it is no YAML or JSON from there on; check indentation, quotes and brackets
        line 1, column 1: expected mapping start
        line 1, column 8: expected string scalar
        line 1, column 8, `count`: the value is not u32
        ");
        assert!(!told.join("\n").contains("hunter2"));
    }
}

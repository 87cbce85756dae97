//! Reads YAML and JSON that an operator wrote, with errors that quote no value.
//!
//! A configuration may hold secrets, and the parser's own message quotes the offending value and the lines around it.
//! The errors here give the line, the column, the key and what was expected. The name of an unknown field is shown: it
//! is a key.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_saphyr::Error;

use contextweaver_context::store::redact;
use contextweaver_routing::nearest;

/// Characters of a key that a message shows, at most.
const LONGEST_KEY: usize = 64;

/// A text is not YAML or JSON, or does not have the expected form. It holds no value of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlError {
    /// The line and column, both from 1, where the parser knows them.
    pub place: Option<(u64, u64)>,
    /// The key whose value is wrong, where it stands on the same line.
    pub key: Option<String>,
    /// What is wrong at that place.
    pub problem: String,
}

impl fmt::Display for YamlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.place {
            write!(formatter, "line {line}, column {column}")?;
            if let Some(key) = &self.key {
                write!(formatter, ", `{key}`")?;
            }
            formatter.write_str(": ")?;
        }
        formatter.write_str(&self.problem)
    }
}

impl std::error::Error for YamlError {}

/// Reads YAML or JSON.
///
/// # Errors
/// [`YamlError`], which holds no value of the text.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    serde_saphyr::from_str(text).map_err(|error| without_values(text, &error))
}

/// The error of the parser without the values that it quotes.
fn without_values(text: &str, error: &Error) -> YamlError {
    let error = error.without_snippet();
    let place = error.location().map(|location| (location.line(), location.column()));
    let key = place.filter(|_| is_about_a_value(error)).and_then(|(line, column)| key_before(text, line, column));
    YamlError { place, key, problem: problem(error) }
}

fn problem(error: &Error) -> String {
    match error {
        Error::AliasError { error, .. } => problem(error),
        Error::SerdeUnknownField { field, expected, .. } => {
            let field = shown(field);
            let meant = nearest(&field, &expected.iter().copied().collect());
            let meant = meant.map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
            format!("unknown field `{field}`; {meant}expected {}", one_of(expected))
        }
        Error::SerdeUnknownVariant { expected, .. } => format!("the value is not {}", one_of(expected)),
        Error::SerdeInvalidType { expected, .. } | Error::SerdeInvalidValue { expected, .. } => {
            format!("the value is not {}", number_in_words(expected))
        }
        Error::SerdeInvalidLength { len, expected, .. } => format!("{len} elements; expected {expected}"),
        Error::SerdeMissingField { field, .. } => format!("the field `{field}` is missing"),
        Error::InvalidScalar { ty, .. } => format!("the value is not {}", number_in_words(ty)),
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().map(|key| format!(" `{}`", shown(key))).unwrap_or_default();
            format!("the key{key} appears twice")
        }
        Error::Eof { .. } => "the text ends too early".to_owned(),
        Error::Unexpected { expected, .. } => format!("expected {}", in_words(expected)),
        Error::NullIntoString { .. } => "the value is null, not a string".to_owned(),
        Error::MultipleDocuments { .. } => "there is more than one document".to_owned(),
        Error::Budget { .. } => "it is too large or too deeply nested".to_owned(),
        // Only our own types and socket addresses produce these, and their messages quote no value.
        Error::Message { msg, .. } => redact(msg.lines().next().unwrap_or_default()).text.into_owned(),
        _ => "from here on this is not YAML or JSON; check indentation, quotes and brackets".to_owned(),
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
            | Error::Unexpected { .. }
            | Error::Message { .. }
    )
}

/// What the parser waits for, as people call it.
fn in_words(expected: &str) -> &str {
    match expected {
        "mapping start" => "members, like `{key: value}`",
        "sequence start" => "a list, like `[a, b]`",
        "string scalar" => "one value",
        other => other,
    }
}

/// A type of numbers, as people call it.
fn number_in_words(expected: &str) -> &str {
    match expected {
        "floating point" | "f32" | "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        other => other,
    }
}

fn one_of(names: &[&str]) -> String {
    match names {
        [] => "nothing".to_owned(),
        [name] => format!("`{name}`"),
        _ => format!("one of {}", names.join(", ")),
    }
}

/// A key as messages show it: without secrets and control characters, at most 64 characters.
fn shown(key: &str) -> String {
    redact(key).text.chars().filter(|c| !c.is_control()).take(LONGEST_KEY).collect()
}

/// The key before the value at this place, when both are on one line.
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
            "token: hunter2\ncounts: hunter2\n",
            "token: hunter2\ntoken: hunter2\n",
            "token: \"hunter2\ncount: 1\n",
            "token: hunter2\n  bad: [hunter2\n",
            "{token: hunter2",
            "hunter2",
            "token: {hunter2: hunter2}\n",
            "count: -1 # hunter2\n",
        ];
        let messages: Vec<String> = texts.map(|text| read::<Written>(text).map(drop).unwrap_err().to_string()).into();
        insta::assert_snapshot!(messages.join("\n"), @r"
        line 2, column 8, `count`: the value is not a whole number, 0 or more
        line 2, column 8, `count`: expected one value
        line 1, column 41, `count`: the value is not a whole number, 0 or more
        line 2, column 7, `kind`: the value is not one of one, two
        line 2, column 1: unknown field `secrets`; expected one of token, count, kind, inner
        line 2, column 1: unknown field `counts`; did you mean `count`? expected one of token, count, kind, inner
        line 2, column 1: the key `token` appears twice
        line 2, column 1: from here on this is not YAML or JSON; check indentation, quotes and brackets
        line 2, column 6: from here on this is not YAML or JSON; check indentation, quotes and brackets
        line 1, column 1: from here on this is not YAML or JSON; check indentation, quotes and brackets
        line 1, column 1: expected members, like `{key: value}`
        line 1, column 8, `token`: expected one value
        line 1, column 8, `count`: the value is not a whole number, 0 or more
        ");
        assert!(!messages.join("\n").contains("hunter2"));
    }
}

//! Selectors: which part of an artifact is asked for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A part of an artifact, in the form in which models and files write it, e.g. `{"type": "rows", "start": 10, "end": 20}`.
/// People may write `head:500`, `lines:0..20`, `rows:-10..`, `json_keys:a,b`, `json_path:$.a`, `grep:ERROR` or
/// `sample:10`; both forms are read by [`FromStr`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Selector {
    /// The first characters.
    Head {
        /// The number of characters.
        #[serde(default = "head_chars")]
        chars: usize,
    },
    /// Lines `start` (inclusive, from 0) to `end` (exclusive). Negative numbers count from the end.
    Lines {
        /// The first line, counted from 0.
        #[serde(default)]
        start: i64,
        /// The line after the last; the end of the text when `None`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<i64>,
    },
    /// Rows `start` (inclusive, from 0) to `end` (exclusive) of a table, an array or lines. Negative numbers count from
    /// the end.
    Rows {
        /// The first row, counted from 0.
        #[serde(default)]
        start: i64,
        /// The row after the last; the end of the table when `None`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<i64>,
    },
    /// The values of top-level keys of a JSON object.
    JsonKeys {
        /// The names of the keys.
        keys: Vec<String>,
    },
    /// The values at a path: a JSON Pointer (`/rows/3/name`) or a JSONPath (`$.rows[3].name`, `$.rows[*].name`).
    JsonPath {
        /// The path as text.
        path: String,
    },
    /// Lines that match a regular expression, with lines around them.
    Grep {
        /// The regular expression.
        pattern: String,
        /// The number of lines shown before and after a match.
        #[serde(default)]
        context: usize,
    },
    /// Rows or lines spread evenly over the whole.
    Sample {
        /// The number of rows or lines.
        #[serde(default = "sample_count")]
        count: usize,
    },
}

fn head_chars() -> usize {
    500
}

fn sample_count() -> usize {
    10
}

/// A text is not a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a selector: {problem}; write head:500, lines:0..20, rows:-10.., json_keys:a,b, json_path:$.a, grep:ERROR, sample:10 or the JSON form"
)]
pub struct ParseSelectorError {
    text: String,
    problem: SelectorProblem,
}

/// What is wrong with the text of a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum SelectorProblem {
    /// The JSON form does not parse; the parser's message.
    #[error("{0}")]
    Json(String),
    /// Nothing follows the colon.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A number is expected where this text is.
    #[error("`{0}` is not a number")]
    Number(String),
    /// No type of selector has this name.
    #[error("the type `{0}` is unknown")]
    Type(String),
}

impl SelectorProblem {
    fn number(text: &str) -> Self {
        Self::Number(text.to_owned())
    }
}

impl FromStr for Selector {
    type Err = ParseSelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |problem| ParseSelectorError { text: text.to_owned(), problem };
        if text.trim_start().starts_with('{') {
            return serde_json::from_str(text).map_err(|error| refuse(SelectorProblem::Json(error.to_string())));
        }
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest).filter(|rest| !rest.is_empty())),
            None => (text, None),
        };
        let needed = |what| rest.map(str::to_owned).ok_or_else(|| refuse(SelectorProblem::Missing(what)));
        let count = |default: usize| {
            rest.map_or(Ok(default), |rest| rest.parse().map_err(|_| refuse(SelectorProblem::number(rest))))
        };
        Ok(match kind {
            "head" => Self::Head { chars: count(head_chars())? },
            "sample" => Self::Sample { count: count(sample_count())? },
            "lines" => {
                let (start, end) = range(rest).map_err(refuse)?;
                Self::Lines { start, end }
            }
            "rows" => {
                let (start, end) = range(rest).map_err(refuse)?;
                Self::Rows { start, end }
            }
            "json_keys" => Self::JsonKeys { keys: needed("a key")?.split(',').map(str::to_owned).collect() },
            "json_path" => Self::JsonPath { path: needed("a path")? },
            "grep" => Self::Grep { pattern: needed("a pattern")?, context: 0 },
            _ => return Err(refuse(SelectorProblem::Type(kind.to_owned()))),
        })
    }
}

/// Parses `3..9`, `3..`, `..9`, `..` or a single position, `3`.
fn range(text: Option<&str>) -> Result<(i64, Option<i64>), SelectorProblem> {
    let Some(text) = text else { return Ok((0, None)) };
    let read = |text: &str| text.parse::<i64>().map_err(|_| SelectorProblem::number(text));
    match text.split_once("..") {
        Some((start, end)) => {
            let start = if start.is_empty() { 0 } else { read(start)? };
            Ok((start, if end.is_empty() { None } else { Some(read(end)?) }))
        }
        None => {
            let start = read(text)?;
            Ok((start, start.checked_add(1).filter(|end| *end != 0)))
        }
    }
}

impl fmt::Display for Selector {
    /// Writes the short form where it says everything, otherwise the JSON form.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |end: &Option<i64>| end.map_or(String::new(), |end| end.to_string());
        match self {
            Self::Head { chars } => write!(formatter, "head:{chars}"),
            Self::Lines { start, end: to } => write!(formatter, "lines:{start}..{}", end(to)),
            Self::Rows { start, end: to } => write!(formatter, "rows:{start}..{}", end(to)),
            Self::JsonPath { path } if !path.is_empty() => write!(formatter, "json_path:{path}"),
            Self::Grep { pattern, context: 0 } if !pattern.is_empty() => write!(formatter, "grep:{pattern}"),
            Self::Sample { count } => write!(formatter, "sample:{count}"),
            Self::JsonKeys { keys }
                if !keys.is_empty() && keys.iter().all(|key| !key.is_empty() && !key.contains(',')) =>
            {
                write!(formatter, "json_keys:{}", keys.join(","))
            }
            Self::JsonKeys { .. } | Self::JsonPath { .. } | Self::Grep { .. } => {
                formatter.write_str(&serde_json::to_string(self).unwrap_or_default())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn selectors() -> impl Strategy<Value = Selector> {
        let range = || (any::<i64>(), any::<Option<i64>>());
        prop_oneof![
            any::<usize>().prop_map(|chars| Selector::Head { chars }),
            range().prop_map(|(start, end)| Selector::Lines { start, end }),
            range().prop_map(|(start, end)| Selector::Rows { start, end }),
            prop::collection::vec("[a-z,]{0,4}", 0..3).prop_map(|keys| Selector::JsonKeys { keys }),
            ".{0,8}".prop_map(|path| Selector::JsonPath { path }),
            (".{0,8}", 0usize..3).prop_map(|(pattern, context)| Selector::Grep { pattern, context }),
            any::<usize>().prop_map(|count| Selector::Sample { count }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(selector in selectors()) {
            prop_assert_eq!(&selector.to_string().parse::<Selector>().unwrap(), &selector);
            let json = serde_json::to_string(&selector).unwrap();
            prop_assert_eq!(json.parse::<Selector>().unwrap(), selector);
        }
    }

    #[test]
    fn short_forms_leave_out_what_is_plain() {
        for (text, json) in [
            ("head", r#"{"type":"head","chars":500}"#),
            ("lines", r#"{"type":"lines","start":0}"#),
            ("rows:7", r#"{"type":"rows","start":7,"end":8}"#),
            ("rows:-1", r#"{"type":"rows","start":-1}"#),
            ("lines:..5", r#"{"type":"lines","start":0,"end":5}"#),
            ("grep:a:b", r#"{"type":"grep","pattern":"a:b","context":0}"#),
        ] {
            assert_eq!(serde_json::to_string(&text.parse::<Selector>().unwrap()).unwrap(), json, "{text}");
        }
        for wrong in ["tail:3", "lines:a..b", "head:x", "json_path", "{\"type\":\"rows\",\"from\":1}"] {
            assert!(wrong.parse::<Selector>().is_err(), "{wrong}");
        }
    }
}

//! Which part of an artifact is asked for.

use serde::{Deserialize, Serialize};

/// A part of an artifact, in the form in which models and files write it, e.g. `{"type": "rows", "start": 10, "end": 20}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Selector {
    /// The first characters.
    Head {
        /// How many.
        #[serde(default = "head_chars")]
        chars: usize,
    },
    /// Lines `start` (inclusive, from 0) to `end` (exclusive). Negative numbers count from the end.
    Lines {
        /// The first line.
        #[serde(default)]
        start: i64,
        /// Behind the last line; the end of the text without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<i64>,
    },
    /// Rows `start` (inclusive, from 0) to `end` (exclusive) of a table, an array or lines. Negative numbers count from
    /// the end.
    Rows {
        /// The first row.
        #[serde(default)]
        start: i64,
        /// Behind the last row; the end of the table without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<i64>,
    },
    /// The values of top-level keys of a JSON object.
    JsonKeys {
        /// The keys.
        keys: Vec<String>,
    },
    /// The values at a path: a JSON Pointer (`/rows/3/name`) or a JSONPath (`$.rows[3].name`, `$.rows[*].name`).
    JsonPath {
        /// The path.
        path: String,
    },
    /// Lines that match a regular expression, with lines around them.
    Grep {
        /// The expression.
        pattern: String,
        /// Lines shown before and after a match.
        #[serde(default)]
        context: usize,
    },
    /// Rows or lines spread evenly over the whole.
    Sample {
        /// How many.
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

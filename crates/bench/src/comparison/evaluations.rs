//! Files of `bench eval --format json` and the `results.json` of a workspace, which has the same form.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;

use super::outcomes::{ItemSet, Value};
use crate::eval::collection::Collection;
use crate::eval::distinct::distinct;
use contextweaver_core::files::without_mark;

/// The number of the form.
pub const SCHEMA: u32 = 1;

/// What some engines gave on a catalog of one's own, as far as a comparison needs it.
#[derive(Debug, Clone, Deserialize)]
pub struct Evaluations {
    #[serde(default)]
    schema_version: u32,
    /// The digest of catalog and queries.
    pub inputs_sha256: String,
    /// A digest of each query by its id; empty in a file that states none.
    #[serde(default, deserialize_with = "once")]
    pub queries: BTreeMap<String, String>,
    /// The tools that each query needs by its id; empty in a file that states none.
    #[serde(default, deserialize_with = "once")]
    pub wanted: BTreeMap<String, Vec<String>>,
    /// The limits of the gate that it was judged by; empty in a file that states none.
    #[serde(default)]
    pub limits: BTreeMap<String, f64>,
    /// One for each engine, at least one, each of another name.
    pub evaluations: Vec<EngineRanks>,
}

/// What one engine gave.
#[derive(Debug, Clone, Deserialize)]
pub struct EngineRanks {
    /// The name of the engine.
    pub configuration: String,
    /// The facts; another version of the program may have had others.
    #[serde(default)]
    pub facts: Json,
    /// The rank (from 1) of each needed tool by query; `None` for one that was not found.
    #[serde(default, deserialize_with = "once")]
    pub ranks: BTreeMap<String, Vec<Option<usize>>>,
}

/// A file is not of this form, or does not hold together.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationsError {
    /// It is not JSON, or lacks a member.
    #[error("is it the results.json of a workspace or the output of `bench eval --format json`? {0}")]
    Form(#[from] serde_json::Error),
    /// There is nothing in it.
    #[error("it is empty")]
    NoContent,
    /// Another version of the program wrote it.
    #[error("it has the form {0}, and this is {SCHEMA}; record it again")]
    Schema(u32),
    /// Nothing says on what it was measured.
    #[error("`inputs_sha256` is empty, so nothing says on which catalog and queries it was measured; record it again")]
    NoInputs,
    /// There is no engine.
    #[error("it has no evaluation; is it the results.json of a workspace or the output of `bench eval --format json`?")]
    Empty,
    /// Two engines could not be told apart.
    #[error("it has two evaluations of `{0}`; give each engine a name of its own")]
    Twice(String),
    /// Ranks count from 1.
    #[error("evaluation `{engine}`, query `{query}`: a rank is 0, and ranks count from 1; record it again")]
    RankZero {
        /// The name of the engine.
        engine: String,
        /// The id of the query.
        query: String,
    },
}

impl Evaluations {
    /// Reads the content of a file.
    ///
    /// # Errors
    /// [`EvaluationsError`] says what is wrong and where; a query that occurs twice is an error too.
    pub fn parse(bytes: &[u8]) -> Result<Self, EvaluationsError> {
        if without_mark(bytes).trim_ascii().is_empty() {
            return Err(EvaluationsError::NoContent);
        }
        let file: Self = serde_json::from_slice(without_mark(bytes))?;
        if file.schema_version != SCHEMA {
            return Err(EvaluationsError::Schema(file.schema_version));
        }
        if file.inputs_sha256.trim().is_empty() {
            return Err(EvaluationsError::NoInputs);
        }
        if file.evaluations.is_empty() {
            return Err(EvaluationsError::Empty);
        }
        let mut names = BTreeSet::new();
        for EngineRanks { configuration, ranks, .. } in &file.evaluations {
            if !names.insert(configuration) {
                return Err(EvaluationsError::Twice(configuration.clone()));
            }
            if let Some((query, _)) = ranks.iter().find(|(_, ranks)| ranks.contains(&Some(0))) {
                return Err(EvaluationsError::RankZero { engine: configuration.clone(), query: query.clone() });
            }
        }
        Ok(file)
    }

    /// The engine of a name, or the first where none has it: an engine is compared with itself where that can be.
    #[must_use]
    pub fn engine(&self, name: &str) -> Option<&EngineRanks> {
        self.evaluations.iter().find(|one| one.configuration == name).or(self.evaluations.first())
    }

    /// What one of the engines gave, item by item.
    #[must_use]
    pub fn items(&self, engine: &EngineRanks) -> ItemSet {
        ItemSet {
            inputs: Some(self.inputs_sha256.clone()),
            items: engine.ranks.iter().map(|(id, ranks)| (id.clone(), Value::Ranks(ranks.clone()))).collect(),
            tools: self.wanted.clone(),
            digests: self.queries.clone(),
            ..ItemSet::default()
        }
    }

    /// The same beside what is measured on `collection` now, with what that says of its queries. A file without digests does
    /// not say which of its queries are still the same in other inputs: there, its ids are no more than numbers.
    #[must_use]
    pub fn items_on(&self, engine: &EngineRanks, collection: &Collection) -> ItemSet {
        let items = self.items(engine).named_by(collection);
        let in_order = self.queries.is_empty() && self.inputs_sha256 != collection.inputs_sha256;
        ItemSet { in_order, ..items }
    }
}

/// A map with a member for each query, none of which occurs twice.
fn once<'de, D: Deserializer<'de>, V: Deserialize<'de>>(deserializer: D) -> Result<BTreeMap<String, V>, D::Error> {
    distinct(deserializer, "query")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_place() {
        let file = |members: &str| format!(r#"{{"schema_version": 1, "inputs_sha256": "x", {members}}}"#);
        let table = [
            (String::new(), "it is empty"),
            ("\u{feff} \n".to_owned(), "it is empty"),
            ("{".to_owned(), "is it the results.json of a workspace or the output"),
            ("{}".to_owned(), "`bench eval --format json`? missing field `inputs_sha256` at line 1 column 2"),
            (
                r#"{"schema_version": 2, "inputs_sha256": "x", "evaluations": []}"#.to_owned(),
                "it has the form 2, and this is 1",
            ),
            (
                r#"{"schema_version": 1, "inputs_sha256": " ", "evaluations": []}"#.to_owned(),
                "`inputs_sha256` is empty",
            ),
            (file(r#""evaluations": []"#), "it has no evaluation"),
            (
                file(r#""evaluations": [{"configuration": "a"}, {"configuration": "a"}]"#),
                "it has two evaluations of `a`",
            ),
            (
                file(r#""evaluations": [{"configuration": "a", "ranks": {"p": [1], "q": [null, 0]}}]"#),
                "evaluation `a`, query `q`: a rank is 0, and ranks count from 1",
            ),
            (
                file("\"evaluations\": [{\"configuration\": \"a\",\n\"ranks\": {\"q\": [1], \"q\": [2]}}]"),
                "query `q` occurs twice at line 2",
            ),
            (file(r#""queries": {"q": "1", "q": "2"}, "evaluations": []"#), "query `q` occurs twice at line 1"),
            (file(r#""evaluations": [{"configuration": "a", "ranks": {"q": [-1]}}]"#), "invalid value: integer `-1`"),
            (
                file(r#""evaluations": [{"configuration": "a", "ranks": {"q": [1.5]}}]"#),
                "invalid type: floating point `1.5`",
            ),
        ];
        for (text, expected) in table {
            let message = Evaluations::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
        let least = file(r#""evaluations": [{"configuration": "a"}]"#);
        let marked = format!("\u{feff}{least}");
        assert_eq!(Evaluations::parse(marked.as_bytes()).unwrap().evaluations[0].facts, Json::Null);
    }

    #[test]
    fn an_engine_is_compared_with_itself_where_it_is_there() {
        let file = r#"{"schema_version": 1, "inputs_sha256": "x",
            "evaluations": [{"configuration": "a"}, {"configuration": "b"}]}"#;
        let file = Evaluations::parse(file.as_bytes()).unwrap();
        for (name, expected) in [("a", "a"), ("b", "b"), ("c", "a")] {
            assert_eq!(file.engine(name).map(|one| one.configuration.as_str()), Some(expected), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_file_panics(ranks in "[-0-9.,e\\[\\]\"nul:{}q]{0,24}", huge in any::<u64>()) {
            Evaluations::parse(ranks.as_bytes()).ok();
            let one = json!({"configuration": "a", "ranks": {"q": [huge, null]}});
            let file = json!({"schema_version": 1, "inputs_sha256": "x", "evaluations": [one]}).to_string();
            prop_assert_eq!(Evaluations::parse(file.as_bytes()).is_ok(), huge > 0);
            Evaluations::parse(file.replace(&huge.to_string(), &ranks).as_bytes()).ok();
        }
    }
}

//! What the context engine is run on: event logs, with what a prompt made of them must hold.
//!
//! A scenario is a TOML file in `scenarios/context/` and a log beside it, or in the folder of public data. The file says
//! what is asked, what must be in the prompt (required items, planted facts), and what must not. It is read strictly:
//! unknown fields, empty answers and names that the log does not have are refused with file and field.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::question::{Plain, Question};
use crate::eval::files::files_ending_in;
use crate::eval::record::Origin;
use contextweaver_context::ContextConfig;
use contextweaver_context::adapters::{Conversation, recognise};
use contextweaver_context::event::Phase;

/// A scenario cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct ScenarioError {
    path: PathBuf,
    reason: String,
}

/// A statement of the log that the answer rests on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planted {
    /// What names the value in the log.
    pub label: String,
    /// The value.
    pub value: String,
    /// The event that states it.
    pub item: String,
}

/// A checked scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The name of its file, without the ending.
    pub name: String,
    /// What it shows.
    pub analysis: String,
    /// Who wrote the log, and with it where it is.
    pub origin: Origin,
    /// The log.
    pub events: PathBuf,
    /// What the prompt is for.
    pub phase: Phase,
    /// What the items are compared with.
    pub query: String,
    /// Tokens of the prompt at most; without it the phase's of the configuration.
    pub budget: Option<usize>,
    /// The collection whose tools a prompt without routing would hold, where the conversation calls them.
    pub catalog: Option<String>,
    /// Ids of events that the prompt must hold.
    pub required: Vec<String>,
    /// Statements that the prompt must hold, or that one view must reach.
    pub facts: Vec<Planted>,
    /// What people ask about results.
    pub questions: Vec<Question>,
    /// Texts that the prompt must not hold.
    pub forbidden: Vec<String>,
    /// The bytes of the file: a change of them is a change of the case.
    pub source: String,
    config: toml::Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioFile {
    analysis: String,
    origin: Origin,
    events: Option<String>,
    phase: Phase,
    query: String,
    budget: Option<usize>,
    #[serde(default)]
    config: toml::Table,
    catalog: Option<String>,
    required: Vec<String>,
    #[serde(default)]
    fact: Vec<Planted>,
    #[serde(default)]
    question: Vec<Question>,
    #[serde(default)]
    forbidden: Vec<String>,
}

/// The scenarios of `folder`, by name; the logs of public ones are looked for in `public`. Without the folder there are
/// none.
///
/// # Errors
/// A file that cannot be read or that says something wrong.
pub fn load_all(folder: &Path, public: &Path) -> Result<Vec<Scenario>, ScenarioError> {
    let refuse = |error: std::io::Error| ScenarioError { path: folder.to_owned(), reason: error.to_string() };
    files_ending_in(folder, "toml").map_err(refuse)?.iter().map(|path| Scenario::load(path, public)).collect()
}

impl Scenario {
    /// Reads and checks the file at `path`; the log of a public scenario is looked for in `public`.
    ///
    /// # Errors
    /// The file cannot be read, or a field is wrong.
    pub fn load(path: &Path, public: &Path) -> Result<Self, ScenarioError> {
        let refuse = |reason: String| ScenarioError { path: path.to_owned(), reason };
        let source = fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        Self::parse(path, source, public)
    }

    /// Checks the text of the file at `path`, which is not read.
    ///
    /// # Errors
    /// A field is wrong.
    pub fn parse(path: &Path, source: String, public: &Path) -> Result<Self, ScenarioError> {
        let refuse = |reason: String| ScenarioError { path: path.to_owned(), reason };
        let file: ScenarioFile =
            toml::from_str(&source).map_err(|error| refuse(error.to_string().trim_end().to_owned()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let empty = |field: &str, text: &str| match text.trim().is_empty() {
            true => Err(refuse(format!("`{field}` is empty"))),
            false => Ok(()),
        };
        empty("analysis", &file.analysis)?;
        for fact in &file.fact {
            empty("fact.label", &fact.label)?;
            empty("fact.value", &fact.value)?;
        }
        for question in &file.question {
            empty("question.question", &question.question)?;
            empty("question.answer", &question.answer)?;
        }
        for text in &file.forbidden {
            empty("forbidden", text)?;
        }
        let events = file.events.unwrap_or_else(|| format!("{name}.jsonl"));
        let folder = match file.origin {
            Origin::Embedded => path.parent().unwrap_or(Path::new("")).to_owned(),
            Origin::Public => public.to_owned(),
        };
        let scenario = Self {
            name,
            analysis: file.analysis.trim().to_owned(),
            origin: file.origin,
            events: folder.join(events),
            phase: file.phase,
            query: file.query,
            budget: file.budget,
            catalog: file.catalog,
            required: file.required,
            facts: file.fact,
            questions: file.question,
            forbidden: file.forbidden,
            source,
            config: file.config,
        };
        scenario.configured(&ContextConfig::default()).map_err(|reason| refuse(format!("`config`: {reason}")))?;
        Ok(scenario)
    }

    /// `base` with what the scenario sets otherwise.
    ///
    /// # Errors
    /// What is wrong with the scenario's fields.
    pub fn configured(&self, base: &ContextConfig) -> Result<ContextConfig, String> {
        let mut merged = toml::Table::try_from(base).map_err(|error| error.to_string())?;
        overlay(&mut merged, &self.config);
        toml::Value::Table(merged).try_into().map_err(|error: toml::de::Error| error.message().to_owned())
    }

    /// Whether the log is on this machine.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.events.is_file()
    }

    /// The bytes of the log and the conversation in it.
    ///
    /// # Errors
    /// The log cannot be read, or lacks what the scenario names in it.
    pub fn log(&self) -> Result<(Vec<u8>, Conversation), ScenarioError> {
        let refuse = |reason: String| ScenarioError { path: self.events.clone(), reason };
        let bytes = fs::read(&self.events).map_err(|error| refuse(error.to_string()))?;
        let conversation = self.conversation(&bytes)?;
        Ok((bytes, conversation))
    }

    /// The conversation in the bytes of a log.
    ///
    /// # Errors
    /// The log is none, lacks an event that the scenario names, or an answer does not stand in its result exactly once.
    pub fn conversation(&self, bytes: &[u8]) -> Result<Conversation, ScenarioError> {
        let refuse = |reason: String| ScenarioError { path: self.events.clone(), reason };
        let (_, conversation) = recognise(bytes, &self.name).map_err(|error| refuse(error.to_string()))?;
        let known = |id: &str| conversation.events.iter().any(|event| event.item.id.as_str() == id);
        let named = self.required.iter().map(|id| ("required", id));
        for (field, id) in named.chain(self.facts.iter().map(|fact| ("fact.item", &fact.item))) {
            if !known(id) {
                return Err(refuse(format!("no event `{id}`, which `{field}` of {}.toml names", self.name)));
            }
        }
        for question in &self.questions {
            let found = conversation.events.iter().find(|event| event.item.id.as_str() == question.item);
            let Question { item, answer, .. } = question;
            if !found.is_some_and(|event| question.is_unambiguous(&Plain::new(&event.item.text))) {
                let reason =
                    format!("the answer `{answer}` of {}.toml does not stand in event `{item}` once", self.name);
                return Err(refuse(reason));
            }
        }
        Ok(conversation)
    }
}

fn overlay(base: &mut toml::Table, top: &toml::Table) {
    for (key, value) in top {
        match (base.get_mut(key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => overlay(below, above),
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "analysis = \"shows\"\norigin = \"embedded\"\nphase = \"answer\"\nquery = \"q\"\nrequired = [\"u1\"]\n";

    fn loaded(text: &str) -> Result<Scenario, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.toml");
        fs::write(&path, text).unwrap();
        fs::write(folder.path().join("one.jsonl"), "{\"type\": \"user_turn\", \"id\": \"u1\", \"text\": \"hello\"}\n")
            .unwrap();
        let place = folder.path().display().to_string();
        let scenario = Scenario::load(&path, Path::new("/nowhere"));
        let scenario = scenario.and_then(|scenario| scenario.log().map(|_| scenario));
        scenario.map_err(|error| error.to_string().replace(&place, "DIR"))
    }

    #[test]
    fn what_is_wrong_is_named_with_its_file_and_field() {
        assert_eq!(loaded(GOOD).unwrap().required, ["u1"]);
        for (added, message) in [
            ("extra = 1", "unknown field `extra`"),
            ("forbidden = [\" \"]", "`forbidden` is empty"),
            ("[[fact]]\nlabel = \"a\"\nvalue = \"\"\nitem = \"u1\"", "`fact.value` is empty"),
            (
                "[[fact]]\nlabel = \"a\"\nvalue = \"b\"\nitem = \"x9\"",
                "no event `x9`, which `fact.item` of one.toml names",
            ),
            (
                "[[question]]\nitem = \"u1\"\nasks = \"name\"\nquestion = \"who\"\nanswer = \"hell\"",
                "the answer `hell` of one.toml does not stand in event `u1` once",
            ),
            ("[config.firewall]\ncap = 3", "`config`: unknown field `cap`"),
        ] {
            let error = loaded(&format!("{GOOD}{added}\n")).unwrap_err();
            assert!(error.starts_with("DIR/one.") && error.contains(message), "{error}");
        }
        let error = loaded(&GOOD.replace("u1", "u2")).unwrap_err();
        assert!(error.contains("no event `u2`, which `required`"), "{error}");
        let error = loaded(&GOOD.replace("shows", " ")).unwrap_err();
        assert!(error.contains("`analysis` is empty"), "{error}");
    }

    #[test]
    fn a_scenario_changes_what_it_names_and_nothing_else() {
        let scenario = loaded(&format!("{GOOD}[config.firewall]\nsummary_tokens = 150\n")).unwrap();
        let mut base = ContextConfig::default();
        base.dedup.threshold = 0.5;
        let config = scenario.configured(&base).unwrap();
        base.firewall.summary_tokens = 150;
        assert_eq!(config, base);
    }
}

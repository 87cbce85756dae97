//! What the context engine is run on: event logs, with what a prompt made of them must hold.
//!
//! Most scenarios are one log. What rests on more than that says so in a table of its own, see [`super::way`].
//!
//! A scenario is a TOML file in `scenarios/context/` and a log beside it, or in the folder of public data. The file says
//! what is asked, what must be in the prompt (required items, planted facts), and what must not. It is read strictly:
//! unknown fields, empty answers and names that the log does not have are refused with file and field.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::question::{Plain, Question};
use super::way::{Envelopes, Handover, Memories, StandIns, Tables, Way};
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

impl Planted {
    /// The statement on one line.
    pub(super) fn told(&self) -> String {
        format!("{}: {}", self.label, self.value)
    }
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
    /// What comes into the prompt that the log alone does not give.
    pub way: Option<Way>,
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
    memory: Option<Memories>,
    handoff: Option<Handover>,
    envelopes: Option<Envelopes>,
    hooks: Option<StandIns>,
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
        let tables =
            Tables { memory: file.memory, handoff: file.handoff, envelopes: file.envelopes, hooks: file.hooks };
        let way = tables.way().map_err(refuse)?;
        if let Some(way) = &way {
            let others = [("catalog", file.catalog.is_some()), ("question", !file.question.is_empty())];
            if let Some((field, _)) = others.iter().find(|(_, is_there)| *is_there) {
                let kind = way.kind().name();
                return Err(refuse(format!("`{field}`: a scenario with `{kind}` has none")));
            }
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
            way,
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

    /// Whether its logs are on this machine.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.paths().iter().all(|path| path.is_file())
    }

    /// The logs, those of earlier sessions first.
    fn paths(&self) -> Vec<PathBuf> {
        let folder = self.events.parent().unwrap_or(Path::new(""));
        let earlier = self.way.iter().flat_map(|way| way.earlier(folder));
        earlier.chain([self.events.clone()]).collect()
    }

    /// The bytes of the logs, those of earlier sessions first.
    ///
    /// # Errors
    /// A log cannot be read.
    pub fn logs(&self) -> Result<Vec<Vec<u8>>, ScenarioError> {
        let read = |path: PathBuf| fs::read(&path).map_err(|error| ScenarioError { path, reason: error.to_string() });
        self.paths().into_iter().map(read).collect()
    }

    /// The conversations in the bytes of [`Self::logs`].
    ///
    /// # Errors
    /// One is not a log, or they lack what the scenario names in them. Only the last one may hold what must be in the prompt.
    pub fn conversations(&self, logs: &[Vec<u8>]) -> Result<Vec<Conversation>, ScenarioError> {
        let read = |(path, bytes): (PathBuf, &Vec<u8>)| self.read(path, bytes);
        let all: Vec<Conversation> = self.paths().into_iter().zip(logs).map(read).collect::<Result<_, _>>()?;
        let refuse = |reason: String| ScenarioError { path: self.events.clone(), reason };
        let Some((own, earlier)) = all.split_last() else { return Err(refuse("there is no log".to_owned())) };
        let ids = all.iter().flat_map(|one| &one.events).map(|event| event.item.id.as_str());
        let mut known = BTreeSet::new();
        if let Some(id) = ids.into_iter().find(|id| !known.insert(*id)) {
            return Err(refuse(format!("event `{id}` is in two logs of {}.toml", self.name)));
        }
        self.names(&all).map_err(refuse)?;
        let before = self.required.iter().find(|id| earlier.iter().any(|one| has(one, id)) && !has(own, id));
        if let Some(id) = before {
            return Err(refuse(format!(
                "event `{id}`, which `required` of {}.toml names, is of an earlier log",
                self.name
            )));
        }
        if let Some(way) = &self.way {
            way.fits(own).map_err(|reason| refuse(format!("{}.toml: {reason}", self.name)))?;
        }
        Ok(all)
    }

    fn read(&self, path: PathBuf, bytes: &[u8]) -> Result<Conversation, ScenarioError> {
        let read = recognise(bytes, &self.name);
        read.map(|(_, conversation)| conversation).map_err(|error| ScenarioError { path, reason: error.to_string() })
    }

    /// Whether the logs have the events that the scenario names.
    fn names(&self, all: &[Conversation]) -> Result<(), String> {
        let named = self.required.iter().map(|id| ("required", id));
        for (field, id) in named.chain(self.facts.iter().map(|fact| ("fact.item", &fact.item))) {
            if !all.iter().any(|conversation| has(conversation, id)) {
                return Err(format!("no event `{id}`, which `{field}` of {}.toml names", self.name));
            }
        }
        Ok(())
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
    /// It is not a log, lacks an event that the scenario names, or an answer does not stand in its result exactly once.
    pub fn conversation(&self, bytes: &[u8]) -> Result<Conversation, ScenarioError> {
        let refuse = |reason: String| ScenarioError { path: self.events.clone(), reason };
        let conversation = self.read(self.events.clone(), bytes)?;
        self.names(std::slice::from_ref(&conversation)).map_err(refuse)?;
        for question in &self.questions {
            let found = conversation.events.iter().find(|event| event.item.id.as_str() == question.item);
            let Question { item, answer, .. } = question;
            if !found.is_some_and(|event| question.is_unambiguous(&Plain::new(&event.item.text))) {
                let reason = format!(
                    "the answer `{answer}` of {}.toml does not occur exactly once in event \
                             `{item}`",
                    self.name
                );
                return Err(refuse(reason));
            }
        }
        Ok(conversation)
    }
}

fn has(conversation: &Conversation, id: &str) -> bool {
    conversation.events.iter().any(|event| event.item.id.as_str() == id)
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
                "the answer `hell` of one.toml does not occur exactly once in event `u1`",
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
    fn what_is_wrong_with_a_table_is_named_too() {
        let folder = tempfile::tempdir().unwrap();
        let (path, place) = (folder.path().join("one.toml"), folder.path().display().to_string());
        let turn = |id: &str| format!("{{\"type\": \"user_turn\", \"id\": \"{id}\", \"text\": \"hello\"}}\n");
        let call = "{\"type\": \"tool_call\", \"id\": \"c1\", \"text\": \"f()\", \"parent_id\": \"u1\"}\n";
        let result = |id: &str, envelope: &str| {
            format!(
                "{{\"type\": \"tool_result\", \"id\": \"{id}\", \"text\": \"r\", \"parent_id\": \"c1\", \
                 \"metadata\": {envelope}}}\n"
            )
        };
        let log =
            turn("u1") + call + &result("x1", "{}") + &result("result:c1", "{\"envelope\": {\"status\": \"ok\"}}");
        fs::write(folder.path().join("one.jsonl"), log).unwrap();
        fs::write(folder.path().join("before.jsonl"), turn("e1")).unwrap();
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            let scenario = Scenario::load(&path, Path::new("/nowhere"))?;
            let logs = scenario.logs()?;
            scenario.conversations(&logs)?;
            Ok(scenario)
        };
        let loaded = |text: &str| read(text).map_err(|error: ScenarioError| error.to_string().replace(&place, "DIR"));
        let memory = "[memory]\nsession = [{events = \"before.jsonl\", day = \"2026-11-24\"}]\n";
        let scenario =
            loaded(&format!("{GOOD}[[fact]]\nlabel = \"a\"\nvalue = \"b\"\nitem = \"e1\"\n{memory}")).unwrap();
        assert!(scenario.is_present() && scenario.way.is_some());
        for (added, message) in [
            ("[memory]\nsession = []", "DIR/one.toml: `memory.session` is empty"),
            ("[memory]\nsession = [{events = \" \"}]", "DIR/one.toml: `memory.session.events` is empty"),
            ("[memory]\nsession = [{events = \"gone.jsonl\"}]", "DIR/gone.jsonl: "),
            (
                "[memory]\nsession = [{events = \"x\", day = \"monday\"}]",
                "`monday` is not a day; write it as 2026-11-24",
            ),
            ("[memory]\nsession = [{events = \"x\"}]\nmin_sessions = 0", "`memory.min_sessions` must be at least 1"),
            ("[memory]\nsession = [{events = \"x\"}]\nkept = \"disk\"", "unknown variant `disk`"),
            ("[memory]\nsession = [{events = \"x\"}]\nsimilar = 1", "unknown field `similar`"),
            ("[handoff]\nbefore = \"u1\"\nbudget = 0", "DIR/one.toml: `handoff.budget` must be at least 1"),
            ("[handoff]\nbefore = \"u9\"\nbudget = 9", "one.toml: no event `u9`, which `handoff.before` names"),
            (
                "[handoff]\nbefore = \"u1\"\nbudget = 9",
                "one.toml: nothing is before event `u1`, which `handoff.before`",
            ),
            ("[envelopes]\nresults = []", "DIR/one.toml: `envelopes.results` is empty"),
            ("[envelopes]\nresults = [\"u1\"]", "one.toml: no result `u1`, which `envelopes.results` names"),
            ("[envelopes]\nresults = [\"x1\"]", "event `x1`, which `envelopes.results` names, is not called `result:`"),
            ("[envelopes]\nresults = [\"result:c1\"]", "event `result:c1`: its `envelope`: missing field `summary`"),
            ("[hooks]", "DIR/one.toml: `hooks` names none"),
            ("[hooks.summarizer]\ncommand = [\"sh\"]", "unknown field `command`"),
            ("[hooks.token_counter]\nchars_per_token = 0", "`hooks.token_counter.chars_per_token` must be at least 1"),
            (
                "[hooks.redactor]\ndigits = 6\n[envelopes]\nresults = [\"x\"]",
                "`envelopes` and `hooks`: a scenario has one",
            ),
            ("catalog = \"workbench\"\n[hooks.redactor]\ndigits = 6", "`catalog`: a scenario with `hooks` has none"),
        ] {
            let error = loaded(&format!("{GOOD}{added}\n")).unwrap_err();
            assert!(error.starts_with("DIR/") && error.contains(message), "{added}: {error}");
        }
        let twice = memory.replace("before", "one");
        let error = loaded(&format!("{GOOD}{twice}")).unwrap_err();
        assert!(error.contains("event `u1` is in two logs of one.toml"), "{error}");
        let error = loaded(&format!("{}{memory}", GOOD.replace("u1", "e1"))).unwrap_err();
        assert!(error.contains("event `e1`, which `required` of one.toml names, is of an earlier log"), "{error}");
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

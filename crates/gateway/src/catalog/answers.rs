//! Answers to the calls, reads and prompts of a catalog that has no servers behind it, from a file.
//!
//! The file maps what is called to the result that a server would give, as MCP has it. What is wrong with it is said when the
//! gateway starts, with the place: a result of the wrong form, a name that the catalog does not have, arguments that a schema
//! refuses, a number that would not be passed on as it is written. Nothing of a catalog is served with such a file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer_forms::{
    AnswersFault, Form, GET_PROMPT_RESULT, READ_RESOURCE_RESULT, TOOL_RESULT, check, member, shown,
};
use super::exact_numbers;
use crate::guard::canonical::canonical;
use crate::guard::schema::{Checker, MOST_STEPS, Quote, compiled};
use crate::protocol::message::{Raw, RpcError};
use crate::protocol::strict;
use crate::protocol::versions::LEGACY_VERSIONS;
use crate::upstream::config::{Era, Target, UpstreamConfig};
use crate::upstream::fault::Fault;
use crate::upstream::in_process::{Answer, InProcess};
use contextweaver_core::catalog::{Kind, SelectableItem};
use contextweaver_core::files::{ReadError, Unread, read_file, without_mark};

/// Bytes of a file of answers, at most: all of it is held in memory.
const MOST_BYTES: u64 = 16 << 20;

/// A file of answers cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AnswersError {
    /// It cannot be read, or is too large.
    #[error("{}{}", .0, what_to_do(&.0.reason))]
    Read(ReadError),
    /// It is not a document of answers, or answers what the catalog does not have.
    #[error("{}: {fault}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        fault: AnswersFault,
    },
}

/// The end of the message about a file that is not read.
fn what_to_do(reason: &Unread) -> &'static str {
    if matches!(reason, Unread::TooLarge { .. }) { "; leave out answers that are not needed" } else { "" }
}

/// What can be answered; a section of the document for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Tools,
    Resources,
    Prompts,
}

/// What a section is about.
struct About {
    /// The member of the document.
    name: &'static str,
    /// One thing of it, for messages.
    one: &'static str,
    /// The form of a result.
    result: &'static Form,
    /// Whether answers may depend on arguments.
    takes_arguments: bool,
}

impl Section {
    const ALL: [Self; 3] = [Self::Tools, Self::Resources, Self::Prompts];

    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Resource => Self::Resources,
            Kind::Prompt => Self::Prompts,
            _ => Self::Tools,
        }
    }

    fn about(self) -> About {
        match self {
            Self::Tools => About { name: "tools", one: "tool", result: &TOOL_RESULT, takes_arguments: true },
            Self::Resources => {
                About { name: "resources", one: "resource", result: &READ_RESOURCE_RESULT, takes_arguments: false }
            }
            Self::Prompts => {
                About { name: "prompts", one: "prompt", result: &GET_PROMPT_RESULT, takes_arguments: true }
            }
        }
    }
}

/// The answers to one tool, resource or prompt.
#[derive(Debug, Clone)]
struct Given {
    /// By arguments, as one text for equal ones.
    when: BTreeMap<String, Case>,
    /// To all others.
    otherwise: Option<Raw>,
}

/// The answer to some arguments.
#[derive(Debug, Clone)]
struct Case {
    /// Its place in the list.
    number: usize,
    answer: Raw,
}

/// A document of answers whose form is right. Whether what it names is there, a catalog has to say.
#[derive(Debug, Clone)]
pub struct Answers(BTreeMap<Section, Vec<(String, Given)>>);

impl Answers {
    /// Reads a file of at most 16 MiB.
    ///
    /// # Errors
    /// [`AnswersError`].
    pub(super) fn load(path: &Path) -> Result<Self, AnswersError> {
        let bytes = read_file(path, MOST_BYTES).map_err(AnswersError::Read)?;
        let text = std::str::from_utf8(without_mark(&bytes))
            .map_err(|_| AnswersFault::new("", "it is not UTF-8; save it as UTF-8"));
        text.and_then(Self::parse).map_err(|fault| AnswersError::Wrong { path: path.to_owned(), fault })
    }

    /// Reads a JSON document: `tools` by id or name, `resources` by URI, `prompts` by id or name, each mapped to a result of MCP.
    ///
    /// # Errors
    /// [`AnswersFault`] for the first place that is wrong.
    pub fn parse(text: &str) -> Result<Self, AnswersFault> {
        let document = strict::parse_within(text, usize::MAX)
            .map_err(|error| AnswersFault::new("", format!("is not usable JSON: {error}")))?;
        exact_numbers::check(text, &document)?;
        let names = Section::ALL.map(|section| section.about().name);
        let sections = object(&document, "", &names)?;
        let mut answers = BTreeMap::new();
        for section in Section::ALL {
            let about = section.about();
            let Some(entries) = sections.get(about.name) else { continue };
            let Some(entries) = entries.as_object() else {
                return Err(AnswersFault::new(about.name, format!("is not an object; map {}s to results", about.one)));
            };
            let given =
                |(key, value): (&String, &Value)| Ok((key.clone(), given(&about, value, &member(about.name, key))?));
            answers.insert(section, entries.iter().map(given).collect::<Result<_, _>>()?);
        }
        Ok(Self(answers))
    }

    /// The upstreams that give these answers, one for each server of the items.
    ///
    /// # Errors
    /// [`AnswersFault`]: something is named that is not among the items, or not clearly; two entries are about the same; or
    /// there is an answer for arguments that the schema of the item refuses.
    fn served(self, items: &[SelectableItem]) -> Result<Served, AnswersFault> {
        let mut servers: BTreeMap<Option<String>, AnsweringServer> = BTreeMap::new();
        for item in items {
            servers.entry(item.server.clone()).or_default();
        }
        let named = names_of(items);
        let mut steps = 0;
        let mut answered: BTreeMap<(Section, Option<String>, String), String> = BTreeMap::new();
        for (section, entries) in self.0 {
            let about = section.about();
            for (key, given) in entries {
                let place = member(about.name, &key);
                let item = find(section, &key, &named).map_err(|problem| AnswersFault::new(&place, problem))?;
                let (server, name) = (item.server.clone(), asked_as(item).to_owned());
                if let Some(other) = answered.insert((section, server.clone(), name.clone()), key) {
                    let problem = format!("answers the same {} as {}; keep one", about.one, member(about.name, &other));
                    return Err(AnswersFault::new(place, problem));
                }
                check_cases(item, &given, &place, &mut steps)?;
                servers.entry(server).or_default().given.insert((section, name), given);
            }
        }
        let count = |section: Section| {
            let of_it = items.iter().filter(|item| Section::of(item.kind) == section);
            let has_answer = |item: &&SelectableItem| {
                answered.contains_key(&(section, item.server.clone(), asked_as(item).to_owned()))
            };
            Share { answered: of_it.clone().filter(has_answer).count(), all: of_it.count() }
        };
        let answered = Answered {
            tools: count(Section::Tools),
            resources: count(Section::Resources),
            prompts: count(Section::Prompts),
        };
        let upstream = |server: AnsweringServer| UpstreamConfig {
            era: Era::Legacy,
            ..UpstreamConfig::new(Target::InProcess(InProcess::new(server)))
        };
        Ok(Served { upstreams: servers.into_iter().map(|(name, server)| (name, upstream(server))).collect(), answered })
    }
}

/// What answers in place of the servers of a catalog.
pub(crate) struct Served {
    /// By the server of the items; `None` for items that name none.
    pub(crate) upstreams: BTreeMap<Option<String>, UpstreamConfig>,
    /// How much of the catalog is answered.
    pub(crate) answered: Answered,
}

impl Served {
    /// What the file at `path` says of these items.
    ///
    /// # Errors
    /// [`AnswersError`].
    pub(super) fn load(path: &Path, items: &[SelectableItem]) -> Result<Self, AnswersError> {
        let served = Answers::load(path)?.served(items);
        served.map_err(|fault| AnswersError::Wrong { path: path.to_owned(), fault })
    }
}

/// How many items of a kind are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Items of which a call is answered, with some arguments at least.
    pub answered: usize,
    /// All items.
    pub all: usize,
}

/// How much of a catalog a file of answers answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Answered {
    /// Tools.
    pub tools: Share,
    /// Resources.
    pub resources: Share,
    /// Prompts.
    pub prompts: Share,
}

/// The members of an object that may have these alone.
fn object<'v>(value: &'v Value, place: &str, known: &[&str]) -> Result<&'v Map<String, Value>, AnswersFault> {
    let list = || known.join(", ");
    let members =
        value.as_object().ok_or_else(|| AnswersFault::new(place, format!("is not an object with {}", list())))?;
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(members),
        Some(name) => {
            let problem = format!("unknown member {}; expected {}", shown(name), list());
            Err(AnswersFault::new(place, problem))
        }
    }
}

/// The answers of one entry: a result, or results by arguments.
fn given(about: &About, value: &Value, place: &str) -> Result<Given, AnswersFault> {
    let result = |value: &Value, place: &str| {
        check(about.result, value, place)?;
        Ok(Raw::of(value))
    };
    if about.takes_arguments && !value.is_object() {
        let told = |mut fault: AnswersFault| {
            fault.problem += "; or with when, otherwise";
            fault
        };
        check(about.result, value, place).map_err(told)?;
    }
    if !about.takes_arguments || !["when", "otherwise"].iter().any(|name| value.get(name).is_some()) {
        return Ok(Given { when: BTreeMap::new(), otherwise: Some(result(value, place)?) });
    }
    let members = object(value, place, &["when", "otherwise"])?;
    let mut when = BTreeMap::new();
    let at = format!("{place}.when");
    let cases = members.get("when").ok_or_else(|| AnswersFault::new(&at, "is missing beside `otherwise`"))?;
    let cases = cases.as_array().ok_or_else(|| AnswersFault::new(&at, "is not a list of answers by arguments"))?;
    if cases.is_empty() {
        let problem = "is empty; add an answer by arguments, or give one result in place of `when` and `otherwise`";
        return Err(AnswersFault::new(at, problem));
    }
    for (number, case) in cases.iter().enumerate() {
        let at = format!("{at}[{number}]");
        let case = object(case, &at, &["arguments", "result"])?;
        let arguments = case.get("arguments").filter(|arguments| arguments.is_object());
        let of_arguments = format!("{at}.arguments");
        let arguments =
            arguments.ok_or_else(|| AnswersFault::new(&of_arguments, "is missing or is not an object of arguments"))?;
        let of_result = format!("{at}.result");
        let answer = case.get("result").ok_or_else(|| AnswersFault::new(&of_result, "is missing"))?;
        let case = Case { number, answer: result(answer, &of_result)? };
        if when.insert(canonical(arguments), case).is_some() {
            return Err(AnswersFault::new(of_arguments, "are the same as in an earlier case; keep one"));
        }
    }
    let otherwise = members.get("otherwise").map(|value| result(value, &format!("{place}.otherwise"))).transpose()?;
    Ok(Given { when, otherwise })
}

/// Steps that checking the arguments of all cases against the schemas may take, at most.
const MOST_STEPS_OF_ALL: u64 = 10 * MOST_STEPS;

/// Refuses answers to arguments that the schema of the item refuses: no call would ever get them. What the checks take is added to
/// `steps`. A schema that cannot be used is none of the file's faults, and is said where the catalog is checked.
fn check_cases(item: &SelectableItem, given: &Given, place: &str, steps: &mut u64) -> Result<(), AnswersFault> {
    if given.when.is_empty() {
        return Ok(());
    }
    let Some(checker) = item.args_schema.as_deref().and_then(|schema| compiled(schema).ok()) else { return Ok(()) };
    let mut cases: Vec<(usize, &String)> = given.when.iter().map(|(text, case)| (case.number, text)).collect();
    cases.sort_unstable();
    for (number, text) in cases {
        let fault = |problem: String| AnswersFault::new(format!("{place}.when[{number}].arguments"), problem);
        let arguments = serde_json::from_str(text).map_err(|error| fault(error.to_string()))?;
        fits(&checker, &arguments, steps).map_err(fault)?;
    }
    Ok(())
}

/// Why a call with these arguments would be refused.
fn fits(checker: &Checker, arguments: &Value, steps: &mut u64) -> Result<(), String> {
    *steps = steps.saturating_add(checker.steps(arguments));
    if *steps > MOST_STEPS_OF_ALL {
        return Err(format!(
            "checking them and those of earlier cases against the schemas may take {steps} steps, over \
             {MOST_STEPS_OF_ALL}; remove some cases"
        ));
    }
    let found =
        checker.violations(arguments, Quote::Values).map_err(|exhausted| format!("checking them {exhausted}"))?;
    match found.into_iter().next() {
        None => Ok(()),
        Some(first) => {
            let at = if first.path.is_empty() { String::new() } else { format!("{}: ", shown(&first.path)) };
            Err(format!("the catalog refuses a call with them: {at}{}", first.reason))
        }
    }
}

/// What an item is asked for by: the URI of a resource, the name of a tool or prompt on its server.
fn asked_as(item: &SelectableItem) -> &str {
    let uri = item.metadata.get("uri").and_then(Value::as_str).filter(|_| item.kind == Kind::Resource);
    uri.unwrap_or(&item.name)
}

/// The items by their ids, and by what else a document may call them.
struct Named<'i> {
    ids: BTreeMap<&'i str, &'i SelectableItem>,
    names: BTreeMap<String, Vec<&'i SelectableItem>>,
}

fn names_of(items: &[SelectableItem]) -> Named<'_> {
    let mut names: BTreeMap<String, Vec<&SelectableItem>> = BTreeMap::new();
    for item in items {
        let asked = asked_as(item);
        names.entry(asked.to_owned()).or_default().push(item);
        if item.kind != Kind::Resource {
            names.entry(format!("{}:{asked}", item.namespace)).or_default().push(item);
        }
    }
    Named { ids: items.iter().map(|item| (item.id.as_str(), item)).collect(), names }
}

/// The item of the section that `key` names.
fn find<'i>(section: Section, key: &str, named: &Named<'i>) -> Result<&'i SelectableItem, String> {
    let about = section.about();
    let mut found: Vec<&SelectableItem> = match named.ids.get(key) {
        Some(item) => vec![item],
        None => named.names.get(key).cloned().unwrap_or_default(),
    };
    let elsewhere = found.first().map(|item| Section::of(item.kind).about());
    found.retain(|item| Section::of(item.kind) == section);
    // Copies of a resource are one to its server.
    let same = |item: &SelectableItem, other: &SelectableItem| {
        item.server == other.server && asked_as(item) == asked_as(other)
    };
    match (found.as_slice(), elsewhere) {
        ([first, others @ ..], _) if others.iter().all(|other| same(first, other)) => Ok(first),
        ([], Some(other)) => Err(format!(
            "the catalog has a {} with that name; move it to \
                                          `{}`",
            other.one, other.name
        )),
        ([], None) => {
            let by = if section == Section::Resources { "URI" } else { "id or name" };
            Err(format!("the catalog has no {} with that {by}", about.one))
        }
        (several, _) => {
            let ids: Vec<&str> = several.iter().take(5).map(|item| item.id.as_str()).collect();
            Err(format!("several {}s have that name; use one of {}", about.one, ids.join(", ")))
        }
    }
}

/// Answers what the file has for one server.
#[derive(Debug, Default)]
struct AnsweringServer {
    given: BTreeMap<(Section, String), Given>,
}

impl AnsweringServer {
    fn given(&self, section: Section, params: Option<&Raw>) -> Result<Raw, Fault> {
        #[derive(Deserialize)]
        struct Asked {
            #[serde(alias = "uri")]
            name: String,
            arguments: Option<Value>,
        }
        let invalid = |reason: &dyn fmt::Display| Fault::Rpc(RpcError::invalid_params(reason));
        let params = params.ok_or_else(|| invalid(&"they are missing"))?;
        let Asked { name, arguments } = params.read().map_err(|error| invalid(&error))?;
        let about = section.about();
        let Some(given) = self.given.get(&(section, name)) else {
            let reason = format!("the file of `answers` has no answer for it; add one under `{}`", about.name);
            return Err(Fault::Unanswered(reason));
        };
        let arguments = arguments.unwrap_or_else(|| json!({}));
        let case = given.when.get(&canonical(&arguments)).map(|case| &case.answer);
        let answer = case.or(given.otherwise.as_ref());
        answer.cloned().ok_or_else(|| {
            let reason = format!(
                "the file of `answers` has no answer for these arguments; add one under `{}`, or an `otherwise`",
                about.name
            );
            Fault::Unanswered(reason)
        })
    }
}

impl Answer for AnsweringServer {
    fn answer(&self, method: &str, params: Option<&Raw>) -> Result<Raw, Fault> {
        match method {
            "initialize" => Ok(Raw::of(&json!({
                "protocolVersion": LEGACY_VERSIONS[0],
                "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
                "serverInfo": {"name": "answers", "version": "1"},
            }))),
            "ping" => Ok(Raw::of(&json!({}))),
            "tools/call" => self.given(Section::Tools, params),
            "resources/read" => self.given(Section::Resources, params),
            "prompts/get" => self.given(Section::Prompts, params),
            _ => Err(Fault::Rpc(RpcError::method_not_found(method))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contextweaver_core::catalog::Catalog;

    /// A catalog of two servers, with a tool and a resource that both have.
    const CATALOG: &str = r#"{"tools": [
        {"name": "send", "server": "mail"}, {"name": "send", "server": "fax"}, {"name": "find", "server": "mail",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}}}],
        "resources": [
        {"uri": "file:///a", "name": "a", "server": "mail"}, {"uri": "file:///a", "name": "a", "server": "fax"},
        {"uri": "file:///b", "name": "b", "server": "mail"}, {"uri": "file:///b", "name": "b", "server": "mail", "title": "B"}],
        "prompts": [{"name": "greet", "server": "mail", "arguments": [{"name": "who", "required": true}]}]}"#;

    fn served(text: &str) -> Result<Served, AnswersFault> {
        Answers::parse(text)?.served(Catalog::from_json(CATALOG).unwrap().items())
    }

    const OK: &str = r#"{"content": []}"#;

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let long = "x".repeat(200);
        let cases = [
            "[]".to_owned(),
            "{".to_owned(),
            r#"{"tool": {}}"#.to_owned(),
            r#"{"tools": []}"#.to_owned(),
            format!(r#"{{"tools": {{"find": {OK}, "find": {OK}}}}}"#),
            r#"{"tools": {"find": "found"}}"#.to_owned(),
            r#"{"tools": {"find": {"contents": []}}}"#.to_owned(),
            r#"{"tools": {"find": {"content": "found"}}}"#.to_owned(),
            r#"{"tools": {"find": {"content": [], "is_error": true}}}"#.to_owned(),
            r#"{"tools": {"find": {"content": [], "isError": "no"}}}"#.to_owned(),
            r#"{"tools": {"find": {"content": [{"text": "found"}]}}}"#.to_owned(),
            r#"{"tools": {"find": {"content": [{"type": "text", "text": 1}]}}}"#.to_owned(),
            r#"{"tools": {"find": {"content": [{"type": "text", "text": "", "markdown": true}]}}}"#.to_owned(),
            r#"{"tools": {"find": {"content": [{"type": "text", "text": "", "annotations": {"audience": ["all"]}}]}}}"#
                .to_owned(),
            r#"{"tools": {"find": {"content": [{"type": "image", "data": "?", "mimeType": "image/png"}]}}}"#.to_owned(),
            format!(r#"{{"tools": {{"find": {{"otherwise": {OK}}}}}}}"#),
            r#"{"tools": {"find": {"when": []}}}"#.to_owned(),
            format!(r#"{{"tools": {{"find": {{"when": [{{"result": {OK}}}]}}}}}}"#),
            r#"{"tools": {"find": {"when": [{"arguments": {}}]}}}"#.to_owned(),
            r#"{"tools": {"find": {"when": [{"arguments": {}, "result": {}}]}}}"#.to_owned(),
            format!(r#"{{"tools": {{"find": {{"when": [{{"arguments": {{}}, "result": {OK}, "if": 1}}]}}}}}}"#),
            format!(r#"{{"tools": {{"find": {{"when": [{{"arguments": {{}}, "result": {OK}}}], "default": {OK}}}}}}}"#),
            format!(
                r#"{{"tools": {{"find": {{"when": [{{"arguments": {{"a": 1, "b": 2}}, "result": {OK}}},
                {{"arguments": {{"b": 2.0, "a": 1}}, "result": {OK}}}]}}}}}}"#
            ),
            r#"{"resources": {"file:///b": {"contents": [{"uri": "file:///b"}]}}}"#.to_owned(),
            r#"{"resources": {"file:///b": {"contents": [{"uri": "file:///b", "text": "", "blob": ""}]}}}"#.to_owned(),
            r#"{"resources": {"file:///b": {"when": []}}}"#.to_owned(),
            r#"{"prompts": {"greet": {"messages": [{"role": "system", "content": {"type": "text", "text": ""}}]}}}"#
                .to_owned(),
            r#"{"prompts": {"greet": {"messages": [{"role": "user", "content": "Hello"}]}}}"#.to_owned(),
            r#"{"tools": {"find": null}}"#.to_owned(),
            r#"{"tools": {"find": {"when": {}}}}"#.to_owned(),
            r#"{"tools": {"find": {"content": [{"type": "resource_link", "uri": "u:1", "name": "n",
                "icons": [{"src": "u:2", "theme": "blue"}]}]}}}"#
                .to_owned(),
            format!(
                r#"{{"tools": {{"find": {{"when": [{{"arguments": {{"a": 1, "b": 2}}, "result": {OK}}},
                {{"arguments": {{"a": 123456789012345678901234567890}}, "result": {OK}}}]}}}}}}"#
            ),
            r#"{"tools": {"find": {"content": [], "structuredContent": {"ids": [1, 12345678901234567890123]}}}}"#
                .to_owned(),
            format!(
                r#"{{"tools": {{"find": {{"when": [{{"arguments": {{"b": 2}}, "result": {OK}}},
                {{"arguments": {{"a": "1"}}, "result": {OK}}}]}}}}}}"#
            ),
            r#"{"prompts": {"greet": {"when": [{"arguments": {}, "result": {"messages": []}}]}}}"#.to_owned(),
            format!(r#"{{"tools": {{"{long}": {OK}}}}}"#),
            format!(r#"{{"tools": {{"send": {OK}}}}}"#),
            format!(r#"{{"tools": {{"greet": {OK}}}}}"#),
            format!(r#"{{"tools": {{"mail:find": {OK}, "find": {OK}}}}}"#),
            r#"{"resources": {"file:///a": {"contents": []}}}"#.to_owned(),
            r#"{"resources": {"b": {"contents": []}}}"#.to_owned(),
            r#"{"prompts": {"find": {"messages": []}}}"#.to_owned(),
        ];
        let said: Vec<String> =
            cases.iter().map(|text| served(text).err().unwrap_or_else(|| panic!("{text}")).to_string()).collect();
        insta::assert_snapshot!(said.join("\n"), @r#"
        is not an object with tools, resources, prompts
        is not usable JSON: EOF while parsing an object at line 1 column 1
        unknown member "tool"; expected tools, resources, prompts
        tools: is not an object; map tools to results
        is not usable JSON: `find` appears twice in one object; write it once at line 1 column 42
        tools["find"]: is not an object with content, structuredContent, isError, _meta; or with when, otherwise
        tools["find"]: unknown member "contents"; expected content, structuredContent, isError, _meta
        tools["find"].content: is not a list
        tools["find"]: unknown member "is_error"; expected content, structuredContent, isError, _meta
        tools["find"].isError: is not true or false
        tools["find"].content[0]: is not part of content: its `type` is not one of text, image, audio, resource, resource_link
        tools["find"].content[0].text: is not a text
        tools["find"].content[0]: unknown member "markdown"; expected type, text, annotations, _meta
        tools["find"].content[0].annotations.audience[0]: is not user or assistant
        tools["find"].content[0].data: is not a text in base64
        tools["find"].when: is missing beside `otherwise`
        tools["find"].when: is empty; add an answer by arguments, or give one result in place of `when` and `otherwise`
        tools["find"].when[0].arguments: is missing or is not an object of arguments
        tools["find"].when[0].result: is missing
        tools["find"].when[0].result: `content` is missing
        tools["find"].when[0]: unknown member "if"; expected arguments, result
        tools["find"]: unknown member "default"; expected when, otherwise
        tools["find"].when[1].arguments: are the same as in an earlier case; keep one
        resources["file:///b"].contents[0]: `text` is missing
        resources["file:///b"].contents[0]: unknown member "text"; expected uri, blob, mimeType, _meta
        resources["file:///b"]: unknown member "when"; expected contents, _meta
        prompts["greet"].messages[0].role: is not user or assistant
        prompts["greet"].messages[0].content: is not part of content: its `type` is not one of text, image, audio, resource, resource_link
        tools["find"]: is not an object with content, structuredContent, isError, _meta; or with when, otherwise
        tools["find"].when: is not a list of answers by arguments
        tools["find"].content[0].icons[0].theme: is not light or dark
        tools["find"].when[1].arguments.a: the number 123456789012345678901234567890 has more digits than 64 bits hold; write it as a text
        tools["find"].structuredContent.ids[1]: the number 12345678901234567890123 has more digits than 64 bits hold; write it as a text
        tools["find"].when[1].arguments: the catalog refuses a call with them: "/a": "1" is not of type "integer"
        prompts["greet"].when[0].arguments: the catalog refuses a call with them: "who" is a required property
        tools["xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"]: the catalog has no tool with that id or name
        tools["send"]: several tools have that name; use one of fax:send#24918ca4, mail:send#24918ca4
        tools["greet"]: the catalog has a prompt with that name; move it to `prompts`
        tools["find"]: answers the same tool as tools["mail:find"]; keep one
        resources["file:///a"]: several resources have that name; use one of resource::fax:a#5638217e, resource::mail:a#5638217e
        resources["b"]: the catalog has no resource with that URI
        prompts["find"]: the catalog has a tool with that name; move it to `tools`
        "#);
    }

    #[test]
    fn items_are_named_by_id_name_or_uri() {
        let ids: Vec<String> =
            Catalog::from_json(CATALOG).unwrap().items().iter().map(|item| item.id.clone()).collect();
        let [fax, mail] = ["fax:send", "resource::mail:a"]
            .map(|start| ids.iter().find(|id| id.starts_with(start)).unwrap_or_else(|| panic!("{ids:?}")));
        let text = format!(
            r#"{{"tools": {{"{fax}": {OK}, "mail:send": {OK}}},
            "resources": {{"{mail}": {{"contents": []}}, "file:///b": {{"contents": []}}}},
            "prompts": {{"mail:greet": {{"messages": []}}}}}}"#
        );
        let Served { upstreams, answered } = served(&text).unwrap();
        let servers: Vec<Option<&str>> = upstreams.keys().map(Option::as_deref).collect();
        assert_eq!(servers, [Some("fax"), Some("mail")]);
        let share = |answered, all| Share { answered, all };
        // The two copies of a resource are one to its server.
        let expected = Answered { tools: share(2, 3), resources: share(3, 4), prompts: share(1, 1) };
        assert_eq!(answered, expected);
    }

    #[test]
    fn a_file_that_does_not_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answers.json");
        std::fs::File::create(&path).unwrap().set_len(MOST_BYTES + 1).unwrap();
        let error = Answers::load(&path).unwrap_err().to_string();
        assert!(
            error.ends_with("answers.json: it has more than 16 MiB; leave out answers that are not needed"),
            "{error}"
        );
        let missing = Answers::load(&folder.path().join("none.json")).unwrap_err().to_string();
        assert!(missing.ends_with("none.json: there is no such file"), "{missing}");
        std::fs::write(&path, b"{\xff").unwrap();
        let error = Answers::load(&path).unwrap_err().to_string();
        assert!(error.ends_with("answers.json: it is not UTF-8; save it as UTF-8"), "{error}");
    }
}

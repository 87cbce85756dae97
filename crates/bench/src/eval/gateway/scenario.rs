//! What this project asks of a gateway: steps of one client, with what the servers answer and what must come of it.
//!
//! A scenario is a TOML file in `scenarios/gateway/`. It names the servers with what they list, and the steps in their
//! order. It is read strictly: unknown fields, empty answers and names of no tool are refused or fail the step.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::stage::Lists;
use crate::eval::files::files_ending_in;
use crate::eval::rng::Rng;
use contextweaver_context::adapters::{recognise, to_mcp_result};
use contextweaver_core::names::named;
use contextweaver_gateway::Code;
use contextweaver_gateway::upstream::Fault;
use contextweaver_gateway::wire::{Raw, RpcError};

/// A scenario cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct ScenarioError {
    path: PathBuf,
    reason: String,
}

/// A checked scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The name of its file, without the ending.
    pub name: String,
    /// What it shows.
    pub analysis: String,
    /// The servers that it writes down itself.
    pub servers: Vec<(String, Lists)>,
    /// The collection whose servers it adds.
    pub catalog: Option<String>,
    /// What the client does.
    pub steps: Vec<Step>,
    /// The bytes of the file.
    pub source: String,
    /// The folder of the file, where the logs of [`Play::Event`] are looked for.
    pub folder: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioFile {
    analysis: String,
    catalog: Option<String>,
    #[serde(default)]
    server: Vec<ServerTable>,
    step: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerTable {
    name: String,
    /// JSON arrays, as a server sends them.
    #[serde(default)]
    tools: Option<String>,
    #[serde(default)]
    resources: Option<String>,
    #[serde(default)]
    prompts: Option<String>,
}

/// What the client does, and what must come of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Looks for tools: by a query or a path.
    Browse {
        /// What to look through.
        #[serde(default)]
        shelf: Shelf,
        /// A query in words; alternatively a path.
        query: Option<String>,
        /// A path of the choice graph; alternatively a query.
        path: Option<String>,
        /// What must come of it.
        #[serde(default)]
        then: Then,
    },
    /// Calls a tool.
    Execute {
        /// `server:tool`, or an id that does not exist.
        tool: String,
        /// The arguments, as JSON.
        args: Option<String>,
        /// Whether the call is only checked.
        #[serde(default)]
        dry_run: bool,
        /// What the server answers; without it the call must not reach one.
        answer: Option<Play>,
        /// What must come of it.
        #[serde(default)]
        then: Then,
    },
    /// Reads a resource.
    Read {
        /// `server:name`, or an id or URI.
        resource: String,
        /// What the server answers; without it the request must not reach one.
        answer: Option<Play>,
        /// What must come of it.
        #[serde(default)]
        then: Then,
    },
    /// Fills in a prompt.
    Get {
        /// `server:name`, or an id that does not exist.
        prompt: String,
        /// The arguments, as JSON.
        args: Option<String>,
        /// What the server answers; without it the request must not reach one.
        answer: Option<Play>,
        /// What must come of it.
        #[serde(default)]
        then: Then,
    },
    /// Looks into a result.
    View {
        /// A handle; the first of the last answer that named any without it.
        handle: Option<String>,
        /// What is asked for, in the short form.
        selector: String,
        /// What must come of it.
        #[serde(default)]
        then: Then,
    },
}

named! {
    /// What is looked through.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub enum Shelf {
        /// The tools of all servers.
        #[default]
        Tools = "tools",
        /// The resources of all servers.
        Resources = "resources",
        /// The prompts of all servers.
        Prompts = "prompts",
    }
}

impl Shelf {
    /// The gateway's tool that looks through it.
    #[must_use]
    pub fn tool(self) -> &'static str {
        match self {
            Self::Tools => "tool_browse",
            Self::Resources => "resource_browse",
            Self::Prompts => "prompt_browse",
        }
    }
}

/// What must come of a step.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Then {
    /// Texts that the answer must hold; `server:name` stands for the id of that tool, resource or prompt.
    pub expect: Vec<String>,
    /// Texts that it must not hold.
    pub forbidden: Vec<String>,
    /// The failure that it must be; it must be none without it.
    pub code: Option<Code>,
    /// Handles that it must name.
    pub artifacts: Option<usize>,
    /// Tokens that it may cost.
    pub at_most: Option<usize>,
}

/// What a server answers.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Play {
    /// A result of one text.
    Text(String),
    /// A text, as an error of the tool.
    Error(String),
    /// A whole result, as JSON.
    Result(String),
    /// An event of a log in `scenarios/context/`.
    Event {
        /// The file of the log.
        log: String,
        /// The id of the event in it.
        item: String,
    },
    /// What the seed makes of a kind and a size.
    Generated {
        /// What it looks like.
        kind: Generated,
        /// How large it is, about.
        bytes: usize,
        /// A line that stands in the middle, where there are lines.
        #[serde(default)]
        planted: Option<String>,
    },
    /// No answer in time.
    Timeout,
    /// The server has gone.
    Unavailable,
    /// An HTTP status that is not a success.
    Status(u16),
    /// An answer that is not a message of the protocol.
    Malformed,
    /// An error of the protocol.
    Rpc {
        /// The code of the error, e.g. -32602.
        code: i64,
        /// The message of the error.
        message: String,
    },
}

/// What a generated result looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Generated {
    /// A table with a header.
    Csv,
    /// A JSON array of objects.
    Json,
    /// Lines of a log.
    Log,
    /// A picture of noise.
    Image,
}

/// The scenarios of `folder`, by name. Without the folder there are none.
///
/// # Errors
/// A file that cannot be read or that says something wrong.
pub fn load_all(folder: &Path) -> Result<Vec<Scenario>, ScenarioError> {
    let refuse = |error: std::io::Error| ScenarioError { path: folder.to_owned(), reason: error.to_string() };
    files_ending_in(folder, "toml").map_err(refuse)?.iter().map(|path| Scenario::load(path)).collect()
}

impl Scenario {
    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or a field is wrong.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let refuse = |reason: String| ScenarioError { path: path.to_owned(), reason };
        let source = fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        let file: ScenarioFile =
            toml::from_str(&source).map_err(|error| refuse(error.to_string().trim_end().to_owned()))?;
        if file.analysis.trim().is_empty() {
            return Err(refuse("`analysis` is empty".to_owned()));
        }
        let list = |server: &str, field: &str, text: &Option<String>| -> Result<Vec<Value>, ScenarioError> {
            let Some(text) = text else { return Ok(Vec::new()) };
            serde_json::from_str(text).map_err(|error| refuse(format!("`{field}` of server `{server}`: {error}")))
        };
        let mut servers = Vec::new();
        for ServerTable { name, tools, resources, prompts } in &file.server {
            let lists = Lists {
                tools: list(name, "tools", tools)?,
                resources: list(name, "resources", resources)?,
                prompts: list(name, "prompts", prompts)?,
                ..Lists::default()
            };
            servers.push((name.clone(), lists));
        }
        for (number, step) in (1..).zip(&file.step) {
            step.check().map_err(|reason| refuse(format!("step {number}: {reason}")))?;
        }
        Ok(Self {
            name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            analysis: file.analysis.trim().to_owned(),
            servers,
            catalog: file.catalog,
            steps: file.step,
            source,
            folder: path.parent().unwrap_or(Path::new("")).to_owned(),
        })
    }
}

impl Step {
    /// What must come of it.
    #[must_use]
    pub fn then(&self) -> &Then {
        match self {
            Self::Browse { then, .. }
            | Self::Execute { then, .. }
            | Self::Read { then, .. }
            | Self::Get { then, .. }
            | Self::View { then, .. } => then,
        }
    }

    fn check(&self) -> Result<(), String> {
        let then = self.then();
        if then.expect.iter().chain(&then.forbidden).any(|text| text.trim().is_empty()) {
            return Err("a text of `expect` or `forbidden` is empty".to_owned());
        }
        if let Self::Execute { args: Some(args), .. } | Self::Get { args: Some(args), .. } = self {
            serde_json::from_str::<Value>(args).map_err(|error| format!("`args` is not JSON: {error}"))?;
        }
        Ok(())
    }
}

fn text_result(text: &str, is_error: bool) -> Raw {
    Raw::of(&json!({"content": [{"type": "text", "text": text}], "isError": is_error}))
}

impl Scenario {
    /// The logs from which servers answer, each once: inputs as much as the file itself.
    #[must_use]
    pub fn logs(&self) -> BTreeSet<PathBuf> {
        let answer = |step: &Step| match step {
            Step::Execute { answer: Some(Play::Event { log, .. }), .. }
            | Step::Read { answer: Some(Play::Event { log, .. }), .. }
            | Step::Get { answer: Some(Play::Event { log, .. }), .. } => Some(log_path(&self.folder, log)),
            _ => None,
        };
        self.steps.iter().filter_map(answer).collect()
    }
}

fn log_path(folder: &Path, log: &str) -> PathBuf {
    folder.join("../context").join(log)
}

impl Play {
    /// The answer of the server.
    ///
    /// # Errors
    /// What is wrong with the scenario: a log or an event that is not there, or a result that is not JSON.
    pub fn answer(&self, folder: &Path) -> Result<Result<Raw, Fault>, String> {
        Ok(match self {
            Self::Text(text) => Ok(text_result(text, false)),
            Self::Error(text) => Ok(text_result(text, true)),
            Self::Result(json) => {
                let value: Value = serde_json::from_str(json).map_err(|error| format!("`answer.result`: {error}"))?;
                Ok(Raw::of(&value))
            }
            Self::Event { log, item } => Ok(event(&log_path(folder, log), item)?),
            Self::Generated { kind, bytes, planted } => Ok(kind.result(*bytes, planted.as_deref())),
            Self::Timeout => Err(Fault::Timeout(std::time::Duration::from_secs(30))),
            Self::Unavailable => Err(Fault::Unavailable("the process has exited".to_owned())),
            Self::Status(status) => Err(Fault::Status { status: *status, retry_after: None }),
            Self::Malformed => Err(Fault::Malformed("expected value at line 1 column 1".to_owned())),
            Self::Rpc { code, message } => Err(Fault::Rpc(RpcError::new(*code, message.as_str()))),
        })
    }
}

fn event(log: &Path, id: &str) -> Result<Raw, String> {
    let refuse = |reason: String| format!("{}: {reason}", log.display());
    let bytes = fs::read(log).map_err(|error| refuse(error.to_string()))?;
    let (_, conversation) = recognise(&bytes, "log").map_err(|error| refuse(error.to_string()))?;
    let found = conversation.events.iter().find(|event| event.item.id.as_str() == id);
    let event = found.ok_or_else(|| refuse(format!("no event `{id}`")))?;
    match &event.output {
        Some(output) => to_mcp_result(output).map(|result| Raw::of(&result)).map_err(|error| refuse(error.to_string())),
        None => Ok(text_result(&event.item.text, false)),
    }
}

impl Generated {
    /// A result of about `bytes` bytes; always the same.
    fn result(self, bytes: usize, planted: Option<&str>) -> Raw {
        let mut rng = Rng::new(bytes as u64);
        let text = match self {
            Self::Csv => lines(bytes, planted, Some("id,station,grams,state"), |number| {
                let (station, state) = (rng.below(40), rng.below(3));
                format!("{number},S{station:02},{},{}", rng.below(9_000), ["ok", "late", "held"][state])
            }),
            Self::Log => lines(bytes, planted, None, |number| {
                let (minute, second) = (number / 60 % 60, number % 60);
                let (level, unit) = (["INFO", "INFO", "DEBUG", "WARN"][rng.below(4)], rng.below(12));
                format!("2026-03-04T06:{minute:02}:{second:02}Z {level} unit-{unit:02} took {} ms", rng.below(900))
            }),
            Self::Json => {
                let rows = lines(bytes, planted, None, |number| {
                    let city = ["Lviv", "Graz", "Porto"][rng.below(3)];
                    json!({"id": number, "city": city, "amount": rng.below(100_000)}).to_string()
                });
                format!("[{}]", rows.lines().collect::<Vec<_>>().join(","))
            }
            Self::Image => {
                let noise: Vec<u8> =
                    std::iter::repeat_with(|| rng.next_u64().to_le_bytes()).take(bytes.div_ceil(8)).flatten().collect();
                let image = json!({"type": "image", "data": STANDARD.encode(noise), "mimeType": "image/png"});
                return Raw::of(&json!({"content": [image], "isError": false}));
            }
        };
        text_result(&text, false)
    }
}

/// A header and lines, until they have about `bytes` bytes.
fn lines(bytes: usize, planted: Option<&str>, header: Option<&str>, mut line: impl FnMut(usize) -> String) -> String {
    let mut text = header.map(|header| format!("{header}\n")).unwrap_or_default();
    let mut planted = planted;
    for number in 1.. {
        if text.len() >= bytes {
            break;
        }
        if let Some(planted) = planted.take_if(|_| text.len() >= bytes / 2) {
            text.push_str(planted);
            text.push('\n');
        }
        text.push_str(&line(number));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::gateway::exchange::texts;

    const GOOD: &str =
        "analysis = \"shows\"\n[[server]]\nname = \"up\"\ntools = '[]'\n[[step]]\ndo = \"browse\"\nquery = \"x\"\n";

    fn loaded(text: &str) -> Result<Scenario, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.toml");
        fs::write(&path, text).unwrap();
        let place = folder.path().display().to_string();
        Scenario::load(&path).map_err(|error| error.to_string().replace(&place, "DIR"))
    }

    #[test]
    fn what_is_wrong_is_named_with_its_file_and_field() {
        assert_eq!(loaded(GOOD).unwrap().steps.len(), 1);
        for (text, message) in [
            (GOOD.replace("analysis = \"shows\"", "analysis = \" \""), "`analysis` is empty"),
            (GOOD.replace("'[]'", "'{'"), "`tools` of server `up`"),
            (format!("{GOOD}then = {{ expects = [\"a\"] }}\n"), "unknown field `expects`"),
            (format!("{GOOD}then = {{ expect = [\" \"] }}\n"), "step 1: a text of `expect`"),
            (format!("{GOOD}then = {{ code = \"NO\" }}\n"), "NO"),
            (GOOD.replace("browse", "buy"), "unknown variant `buy`"),
            (format!("{GOOD}[[step]]\ndo = \"execute\"\ntool = \"a:b\"\nargs = \"x\"\n"), "step 2: `args` is not JSON"),
        ] {
            let error = loaded(&text).unwrap_err();
            assert!(error.starts_with("DIR/one.toml: ") && error.contains(message), "{error}");
        }
    }

    #[test]
    fn generated_results_are_always_the_same_and_hold_what_was_planted() {
        for kind in [Generated::Csv, Generated::Json, Generated::Log] {
            let (first, again) =
                (kind.result(20_000, Some("{\"planted\":1}")), kind.result(20_000, Some("{\"planted\":1}")));
            assert_eq!(first, again);
            let text = texts(&first);
            assert!((20_000..20_200).contains(&text.len()) && text.contains("planted"), "{kind:?} {}", text.len());
        }
        assert_eq!(texts(&Generated::Image.result(64, None)), "");
    }
}

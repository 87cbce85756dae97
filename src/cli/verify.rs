//! `verify`: whether this installation works, on data that is part of the program.
//!
//! No network is used and nothing is left behind. Each check computes something whose answer is known; what cannot be known
//! before, such as a folder, is tried.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use super::demo::{ASKED, BUDGET, CONVERSATION, NEEDED, catalog, office, orders};
use super::{Format, Outcome, in_one_line, print_json};
use contextweaver_bench::report::number::count;
use contextweaver_context::adapters::from_session_lines;
use contextweaver_context::event::{Fact, Phase, ToolOutput};
use contextweaver_context::store::{ArtifactStore, MemoryArtifacts, Session, Stores};
use contextweaver_context::summary::StructureSummarizer;
use contextweaver_context::view::{Bounds, Cursor, view};
use contextweaver_context::{ContextConfig, Firewall, Memory, Request as PromptRequest, compile, take_in};
use contextweaver_core::text::Estimator;
use contextweaver_gateway::upstream::InProcess;
use contextweaver_gateway::{GatewayConfig, LocalClient, Target, UpstreamConfig};
use contextweaver_routing::semantic::model::place;
use contextweaver_routing::{Request, Router, RoutingConfig};

/// What to do about a part that is built in and does not work.
const INSTALL: &str = "the program is damaged or built from other sources: install it again";

/// A text of several scripts, and the tokens that the two vocabularies have for it.
const TEXT: (&str, usize, usize) = ("Route the query, naïvely: 1234567 → 東京 🙂", 16, 15);

/// Check that this installation works, without a network
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every part is tried on built-in data, and nothing is left behind. Exit codes: 0 everything works, 1 something does not.

Examples:
  contextweaver verify
  contextweaver verify --format json")]
pub(super) struct Args {
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A part of the program, and how it is tried.
struct Check {
    name: &'static str,
    /// Gives what was found, in words.
    tried: fn() -> Result<Tried>,
    /// What to do where it does not work.
    remedy: &'static str,
}

/// What a check found where nothing failed.
enum Tried {
    Works(String),
    /// There is nothing to try, with the reason.
    Skipped(String),
}

const CHECKS: [Check; 9] = [
    Check { name: "token counter", tried: tokens, remedy: INSTALL },
    Check { name: "routing", tried: routing, remedy: INSTALL },
    Check { name: "prompts", tried: prompts, remedy: INSTALL },
    Check { name: "firewall", tried: firewall, remedy: INSTALL },
    Check { name: "sessions", tried: sessions, remedy: INSTALL },
    Check {
        name: "SQLite stores",
        tried: sqlite,
        remedy: "the folder for temporary files must be writable: set TMPDIR to one that is",
    },
    Check { name: "gateway", tried: gateway, remedy: INSTALL },
    Check { name: "sentence encoder", tried: encoder, remedy: INSTALL },
    Check {
        name: "folder of vectors",
        tried: vectors,
        remedy: "set CONTEXTWEAVER_VECTORS to a folder that can be written; without one, `route --model` is slower",
    },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    Skipped,
    Failed,
}

/// What is printed of a check.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    state: State,
    /// What was found, or what is wrong.
    found: String,
    /// What to do, of a check that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    ok: bool,
    checks: Vec<Row>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let checks: Vec<Row> = CHECKS.iter().map(row).collect();
    let ok = checks.iter().all(|row| row.state != State::Failed);
    let report = Report { version: env!("CARGO_PKG_VERSION"), ok, checks };
    match args.format {
        Format::Json => print_json(out, "verify", &report)?,
        Format::Text => print(&report, out)?,
    }
    Ok(if ok { Outcome::Ok } else { Outcome::Drift })
}

fn row(check: &Check) -> Row {
    let (state, found, remedy) = match (check.tried)() {
        Ok(Tried::Works(found)) => (State::Ok, found, None),
        Ok(Tried::Skipped(reason)) => (State::Skipped, reason, None),
        Err(error) => (State::Failed, in_one_line(&error), Some(check.remedy)),
    };
    Row { name: check.name, state, found, remedy }
}

fn print(report: &Report, out: &mut dyn Write) -> Result<()> {
    let width = report.checks.iter().map(|row| row.name.len()).max().unwrap_or_default();
    for Row { name, state, found, remedy } in &report.checks {
        let state = match state {
            State::Ok => "ok",
            State::Skipped => "skipped",
            State::Failed => "FAILED",
        };
        writeln!(out, "{name:<width$}  {state:<7}  {found}")?;
        if let Some(remedy) = remedy {
            writeln!(out, "{:width$}           {remedy}", "")?;
        }
    }
    let failed = report.checks.iter().filter(|row| row.state == State::Failed).count();
    match failed {
        0 => writeln!(out, "contextweaver {} works", report.version)?,
        _ => writeln!(out, "contextweaver {}: {failed} of {} checks failed", report.version, report.checks.len())?,
    }
    Ok(())
}

fn tokens() -> Result<Tried> {
    let (text, cl100k, o200k) = TEXT;
    let counted = [Estimator::Cl100kBase, Estimator::O200kBase].map(|one| one.count(text));
    ensure!(counted == [cl100k, o200k], "a text of {cl100k} and {o200k} tokens is counted as {counted:?}");
    Ok(Tried::Works(format!("{cl100k} tokens by cl100k_base and {o200k} by o200k_base, as they should be")))
}

fn routing() -> Result<Tried> {
    let catalog = catalog()?;
    let tools = catalog.len();
    let router = Router::build(catalog, RoutingConfig::default())?;
    let route = router.route(&Request::new("who is on call tonight"))?;
    let best = route.choices.first().context("no tool was found")?;
    let line = best.card.line(1, 1);
    ensure!(line.contains("get_oncall"), "another tool comes first: {line}");
    Ok(Tried::Works(format!("the right one of {} tools comes first", count(tools))))
}

fn prompts() -> Result<Tried> {
    let (config, artifacts) = (ContextConfig::default(), MemoryArtifacts::default());
    let firewall = Firewall::new(&config.firewall, config.estimator, &StructureSummarizer, &artifacts);
    let conversation = from_session_lines(CONVERSATION.as_bytes(), "outage")?;
    let transcript = take_in(conversation, &firewall)?.transcript;
    let request = PromptRequest { budget: Some(BUDGET), ..PromptRequest::new(Phase::Answer, ASKED) };
    let pack = compile(&transcript, &Memory::default(), &firewall, &request, &config)?;
    let counted = config.estimator.count(&pack.prompt);
    ensure!(counted <= BUDGET, "a prompt for {BUDGET} tokens has {counted}");
    let lost = NEEDED.iter().find(|(_, value)| !pack.prompt.contains(value));
    ensure!(lost.is_none(), "the prompt does not have {:?}", lost.unwrap_or(&NEEDED[0]));
    let events = count(transcript.len());
    Ok(Tried::Works(format!("{events} events in {} of {} tokens", count(counted), count(BUDGET))))
}

fn firewall() -> Result<Tried> {
    let (text, store) = (orders(), MemoryArtifacts::default());
    let kept = Firewall::with_defaults(&store).result("orders", &ToolOutput::text(text.clone()))?;
    let reference = kept.artifacts.first().context("a large result was not stored")?;
    let bytes = store.get(&reference.handle)?;
    ensure!(*bytes == *text.as_bytes(), "what was stored is not what came");
    let selector = "grep:chargeback".parse()?;
    let part = view(&reference.handle, &bytes, &reference.media_type, &selector, Cursor::default(), Bounds::default())?;
    ensure!(part.text.contains("\"state\":\"chargeback\""), "a view does not find what was stored");
    let summary = Estimator::Cl100kBase.count(&kept.summary);
    let whole = Estimator::Cl100kBase.count(&text);
    ensure!(summary < whole, "a summary of {summary} tokens stands for {whole}");
    Ok(Tried::Works(format!("{} tokens for {}, and every byte is kept", count(summary), count(whole))))
}

fn sessions() -> Result<Tried> {
    let conversation = from_session_lines(CONVERSATION.as_bytes(), "outage")?;
    let session = Session::default();
    let firewall = Firewall::with_defaults(&session.artifacts);
    let transcript = take_in(conversation, &firewall)?.transcript;
    let session = Session { transcript, ..session };
    let (mut bytes, mut again) = (Vec::new(), Vec::new());
    session.write(&mut bytes)?;
    Session::parse(&bytes, Path::new("session"))?.write(&mut again)?;
    ensure!(bytes == again, "a session is not the same after it was written and read");
    Ok(Tried::Works(format!("{} bytes written, read and written alike", count(bytes.len()))))
}

fn sqlite() -> Result<Tried> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("verify.db");
    let fact = Fact { key: "region".to_owned(), value: "eu-west-1".to_owned() };
    Stores::sqlite(&path)?.facts.put(fact.clone())?;
    let read = Stores::sqlite(&path)?.facts.all()?;
    ensure!(read == [fact], "what was stored is not there when the file is opened again");
    Ok(Tried::Works("what is stored is there when the file is opened again".to_owned()))
}

fn gateway() -> Result<Tried> {
    let mut config = GatewayConfig::default();
    config.upstreams.insert("office".to_owned(), UpstreamConfig::new(Target::InProcess(InProcess::new(office))));
    let client = LocalClient::start(config)?;
    let ask = |tool: &str, arguments: Value| -> Result<String> {
        let answer = client.call(tool, &arguments).map_err(|error| anyhow::anyhow!(error.message))?;
        let answer: Value = answer.read()?;
        let text = answer["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        ensure!(answer["isError"] != true, "{tool}: {text}");
        Ok(text)
    };
    let found = ask("tool_browse", json!({"query": "logs of a service"}))?;
    let id = found.split_whitespace().next().context("nothing was found")?;
    ask("tool_execute", json!({"tool_id": id, "args": {"query": "nightly job"}}))?;
    let stored = client.artifacts()?.len();
    ensure!(stored == 1, "{stored} artifacts of one large result");
    Ok(Tried::Works("a handshake, a search, a call, and its result in the store".to_owned()))
}

fn encoder() -> Result<Tried> {
    if !place::BUILT_IN {
        return Ok(Tried::Skipped("not part of this program".to_owned()));
    }
    let encoder = place::encoder()?;
    let asked = encoder.encode_query("How do I cancel my subscription?");
    let tools = encoder.encode_tools(&["End a membership".to_owned(), "Resize a picture".to_owned()]);
    let near: Vec<i32> = tools.iter().map(|tool| asked.similarity(tool)).collect();
    ensure!(
        near.is_sorted_by(|near, far| near > far),
        "a tool that serves a request is no nearer than one that does not"
    );
    Ok(Tried::Works(encoder.name()))
}

/// Whether vectors can be kept. A folder that is not there is not made: what would hold it is tried.
fn vectors() -> Result<Tried> {
    let Some(folder) = place::folder() else {
        let variable = place::FOLDER_VARIABLE;
        return Ok(Tried::Skipped(format!("no folder for a user's data is known; {variable} names one")));
    };
    let folder = std::path::absolute(folder)?;
    let there = folder.ancestors().find(|path| path.exists()).unwrap_or(&folder);
    tempfile::tempfile_in(there).with_context(|| format!("{} cannot be written", folder.display()))?;
    Ok(Tried::Works(format!("{} can be written", folder.display())))
}

//! `inspect`: what a session holds, without the contents unless they are asked for, and on request the tools of a query; or
//! whether its file is whole.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;

use super::files::{Files, write};
use super::session::{PromptArgs, SessionSource, context_config, load};
use super::source::CatalogSource;
use super::terminal::{self, shown};
use super::{Outcome, counted, in_one_line, print_json};
use contextweaver_bench::report::html::{self, PromptPage};
use contextweaver_bench::report::table::Table;
use contextweaver_context::event::{ArtifactRef, ContextItem, Episode, Fact, ItemId, Phase};
use contextweaver_context::handoff::hidden;
use contextweaver_context::store::database::Database;
use contextweaver_context::store::{
    ArtifactStore, EpisodicStore, FactStore, Session, SessionProblem, Verification, redact, verify_session,
};
use contextweaver_context::{ContextConfig, ContextPack};
use contextweaver_core::catalog::definition_tokens;
use contextweaver_core::files::ReadError;
use contextweaver_core::text::{Estimator, on_one_line};
use contextweaver_routing::{ChoiceCard, Request, Router};

/// Inspect a session: events, artifacts, facts, prompts
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  contextweaver inspect --session chat.session --prompts
  contextweaver inspect --session chat.session --html prompt.html --phase answer --query \"what went wrong\"
  contextweaver inspect --session chat.session --catalog tools.json --route-query \"open a ticket\"
  contextweaver inspect --session chat.session --verify

With --verify, only problems are shown, each with its line. Exit codes are then: 0 the session is whole, 1 it is not.")]
pub(super) struct Args {
    #[command(flatten)]
    source: SessionSource,
    #[command(flatten)]
    prompt: PromptArgs,
    /// Show the prompts too, not only their sizes
    #[arg(long)]
    prompts: bool,
    /// Check the session instead: lines, ids, parents, artifacts with their hashes, and a prompt for each phase
    #[arg(long, conflicts_with = "prompts")]
    verify: bool,
    /// Also write the prompt of a phase as an HTML page: what it holds, what it leaves out and why, and the tokens of
    /// each part
    #[arg(long, value_name = "FILE", conflicts_with = "verify")]
    html: Option<PathBuf>,
    /// The phase of that page: route, call, interpret or answer
    #[arg(long, value_name = "PHASE", default_value = "answer", requires = "html")]
    phase: Phase,
    /// Catalog for `--route-query`: a file, or a folder with one file per server; may be repeated
    #[arg(long, value_name = "PATH", requires = "route_query")]
    catalog: Vec<PathBuf>,
    /// Also show the cards that this query gets from the catalog, and the tokens of the definitions behind them
    #[arg(long, value_name = "TEXT", requires = "catalog", conflicts_with = "verify")]
    route_query: Option<String>,
    /// Leave out what is malformed in the catalog, report it, and continue with the rest
    #[arg(long, requires = "catalog")]
    lenient: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Form,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Form {
    #[default]
    Markdown,
    Json,
}

#[derive(Serialize)]
struct Report<'s> {
    source: &'s str,
    token_estimator: Estimator,
    events: Vec<EventRow<'s>>,
    artifacts: Vec<ArtifactRef>,
    facts: Vec<Fact>,
    episodes: Vec<Episode>,
    phases: Vec<PhaseRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    routing: Option<Routing>,
}

#[derive(Serialize)]
struct EventRow<'s> {
    #[serde(flatten)]
    about: EventAbout<'s>,
    tokens: usize,
}

#[derive(Serialize)]
struct EventAbout<'s> {
    id: &'s str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<&'s str>,
    sensitivity: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<&'s str>,
    text: String,
}

#[derive(Serialize)]
struct PhaseRow {
    phase: Phase,
    budget: usize,
    prompt_tokens: usize,
    included: usize,
    dropped: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
}

/// What a query gets from a catalog.
#[derive(Serialize)]
struct Routing {
    query: String,
    /// Whether the tools are only the nearest ones.
    no_tool_fits: bool,
    /// The tools, best first.
    tools: Vec<ToolRow>,
}

#[derive(Serialize)]
struct ToolRow {
    id: String,
    /// The line that a model chooses from.
    card: String,
    card_tokens: usize,
    definition_tokens: usize,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let files = Files::default().read("--session", [&args.source.session]).read("--config", &args.prompt.config);
    let files = files.read("--catalog", &args.catalog);
    files.page(&args.html).check()?;
    let config = context_config(args.prompt.config.as_deref())?;
    if args.verify {
        return verify(args, &config, out);
    }
    let session = args.source.load()?;
    let routing = args.route_query.as_deref().map(|query| routing(args, query, config.estimator)).transpose()?;
    if let Some(path) = &args.html {
        let page = page(args, &session, &config)?;
        write(path, page.as_bytes())?;
    }
    let mut phases = Vec::new();
    for phase in Phase::ALL {
        phases.push(phase_row(args.prompt.compile(&session, phase, &config)?, args.prompts));
    }
    let report = Report {
        source: &session.source,
        token_estimator: config.estimator,
        events: events(&session, config.estimator),
        artifacts: session.artifacts.list()?,
        facts: session.facts.all()?,
        episodes: session.episodes.all()?,
        phases,
        routing,
    };
    match args.format {
        Form::Json => print_json(out, "inspect", &report)?,
        Form::Markdown => out.write_all(markdown(&report).as_bytes())?,
    }
    Ok(Outcome::Ok)
}

/// The cards that a query gets, as `route` shows them.
fn routing(args: &Args, query: &str, estimator: Estimator) -> Result<Routing> {
    let catalog = CatalogSource { catalog: args.catalog.clone(), lenient: args.lenient }.load()?;
    let router = Router::new(catalog)?;
    let route = router.route(&Request::new(query))?;
    let row = |(number, card): (usize, &ChoiceCard)| {
        let line = card.line(number + 1, route.choices.len());
        ToolRow {
            id: card.id().to_owned(),
            card_tokens: estimator.count(&format!("{line}\n")),
            card: line,
            definition_tokens: router.catalog().get(card.id()).map_or(0, |item| definition_tokens(item, estimator)),
        }
    };
    let tools = route.choices.iter().map(|choice| &choice.card).enumerate().map(row).collect();
    Ok(Routing { query: route.query.clone(), no_tool_fits: route.no_tool_fits, tools })
}

/// The page of a prompt. Of what is too sensitive for prompts, and of what depends on it, nothing is shown.
fn page(args: &Args, session: &Session, config: &ContextConfig) -> Result<String> {
    let pack = args.prompt.compile(session, args.phase, config)?;
    let hidden = hidden(&session.transcript, config);
    let beginning = |id: &ItemId| {
        let position = session.transcript.position(id.as_str()).filter(|position| !hidden[*position])?;
        Some(redact(&glance(&session.transcript.items()[position].text)).text.into_owned())
    };
    Ok(html::prompt(&PromptPage {
        pack: &pack,
        source: &session.source,
        query: &args.prompt.query,
        beginning: &beginning,
    }))
}

/// What `--verify` prints.
#[derive(Serialize)]
struct Verified {
    ok: bool,
    #[serde(flatten)]
    found: Verification,
}

/// Checks the session file, or what an SQLite store holds, and then compiles it for every phase.
fn verify(args: &Args, config: &ContextConfig, out: &mut dyn Write) -> Result<Outcome> {
    let path = &args.source.session;
    let (mut found, session) = match Database::is_at(path) {
        true => of_store(path),
        false => verify_session(&std::fs::read(path).map_err(ReadError::at(path))?),
    };
    for (session, phase) in session.iter().flat_map(|session| Phase::ALL.map(|phase| (session, phase))) {
        let reason = match args.prompt.compile(session, phase, config) {
            Ok(pack) if pack.stats.prompt_tokens > pack.stats.budget => {
                let (tokens, budget) = (pack.stats.prompt_tokens, pack.stats.budget);
                format!("the prompt for {phase} has {tokens} tokens, over its budget of {budget}")
            }
            Ok(_) => continue,
            Err(error) => format!("no prompt for {phase}: {}", in_one_line(&error)),
        };
        found.problems.push(SessionProblem { line: None, reason });
    }
    let ok = found.problems.is_empty();
    match args.format {
        Form::Json => print_json(out, "inspect verify", &Verified { ok, found })?,
        Form::Markdown => {
            let path = path.display();
            for SessionProblem { line, reason } in &found.problems {
                let line = line.map(|line| format!(":{line}")).unwrap_or_default();
                terminal::line(out, format_args!("{path}{line}: {reason}"))?;
            }
            let Verification { events, artifacts, facts, episodes, problems } = &found;
            let whole = if ok { "whole".to_owned() } else { counted(problems.len(), "problem") };
            let held = [(events, "event"), (artifacts, "artifact"), (facts, "fact"), (episodes, "episode")];
            let held = held.map(|(number, noun)| counted(*number, noun)).join(", ");
            terminal::line(out, format_args!("{path}: {whole}; {held}"))?;
        }
    }
    Ok(if ok { Outcome::Ok } else { Outcome::Drift })
}

/// An SQLite store, checked as the file that it would be, but for its lines.
fn of_store(path: &Path) -> (Verification, Option<Session>) {
    let read = || -> Result<(Verification, Session)> {
        let (session, mut bytes) = (load(path)?, Vec::new());
        session.write(&mut bytes)?;
        let (mut found, _) = verify_session(&bytes);
        found.problems.iter_mut().for_each(|problem| problem.line = None);
        Ok((found, session))
    };
    match read() {
        Ok((found, session)) => (found, Some(session)),
        Err(error) => {
            let problems = vec![SessionProblem { line: None, reason: in_one_line(&error) }];
            (Verification { problems, ..Verification::default() }, None)
        }
    }
}

fn phase_row(pack: ContextPack, with_prompt: bool) -> PhaseRow {
    PhaseRow {
        phase: pack.phase,
        budget: pack.stats.budget,
        prompt_tokens: pack.stats.prompt_tokens,
        included: pack.stats.included_count,
        dropped: pack.stats.dropped_count,
        prompt: with_prompt.then_some(pack.prompt),
    }
}

fn events(session: &Session, estimator: Estimator) -> Vec<EventRow<'_>> {
    let row = |item| EventRow { about: about(item), tokens: estimator.count(&item.text) };
    session.transcript.items().iter().map(row).collect()
}

/// Characters of a text that a row shows.
const GLANCE: usize = 60;

/// The beginning of a text on one line.
fn glance(text: &str) -> String {
    on_one_line(text, GLANCE)
}

fn about(item: &ContextItem) -> EventAbout<'_> {
    EventAbout {
        id: item.id.as_str(),
        kind: item.kind.name(),
        parent_id: item.parent_id.as_ref().map(|parent| parent.as_str()),
        sensitivity: item.sensitivity.name(),
        artifact: item.artifact.as_ref().map(|artifact| artifact.handle.as_str()),
        text: glance(&item.text),
    }
}

fn markdown(report: &Report) -> String {
    let mut text = format!("# Session\n\nFrom {}. Tokens by {}.\n", shown(report.source), report.token_estimator);
    let words = ["kind", "parent", "sensitivity", "artifact", "text"];
    let mut events = Table::new(["id", "kind", "parent", "tokens", "sensitivity", "artifact", "text"]).words(&words);
    for EventRow { about, tokens } in &report.events {
        events.row([
            shown(about.id),
            about.kind.to_owned(),
            shown(about.parent_id.unwrap_or_default()),
            tokens.to_string(),
            about.sensitivity.to_owned(),
            shown(about.artifact.unwrap_or_default()),
            shown(&about.text),
        ]);
    }
    section(&mut text, "Events", &events);
    let words = ["media type", "label", "sha256"];
    let mut artifacts = Table::new(["handle", "media type", "bytes", "label", "sha256"]).words(&words);
    for one in &report.artifacts {
        let (handle, hash) = (shown(one.handle.as_str()), one.content_hash.to_string());
        artifacts.row([handle, shown(&one.media_type), one.size_bytes.to_string(), shown(&one.label), hash]);
    }
    section(&mut text, "Artifacts", &artifacts);
    let mut facts = Table::new(["key", "value"]).words(&["value"]);
    report.facts.iter().for_each(|fact| facts.row([shown(&fact.key), shown(&fact.value)]));
    section(&mut text, "Facts", &facts);
    let mut episodes = Table::new(["id", "summary"]).words(&["summary"]);
    report.episodes.iter().for_each(|episode| episodes.row([shown(&episode.id), shown(&episode.summary)]));
    section(&mut text, "Episodes", &episodes);
    let mut prompts = Table::new(["phase", "budget", "tokens", "events shown", "left out"]);
    for PhaseRow { phase, budget, prompt_tokens, included, dropped, .. } in &report.phases {
        let [budget, tokens, included, dropped] = [budget, prompt_tokens, included, dropped].map(ToString::to_string);
        prompts.row([phase.name().to_owned(), budget, tokens, included, dropped]);
    }
    section(&mut text, "Prompts", &prompts);
    if let Some(routing) = &report.routing {
        routed(&mut text, routing);
    }
    for PhaseRow { phase, prompt, .. } in &report.phases {
        if let Some(prompt) = prompt {
            let fence = "`".repeat(longest_run_of_ticks(prompt).max(2) + 1);
            text.push_str(&format!("\n### {phase}\n\n{fence}\n{prompt}\n{fence}\n"));
        }
    }
    text
}

/// The cards of a query, and the definitions that they stand for.
fn routed(text: &mut String, Routing { query, no_tool_fits, tools }: &Routing) {
    let title = format!("Tools for: {}", shown(query));
    let mut cards = Table::new(["card", "tokens", "tokens of its definition"]);
    for ToolRow { card, card_tokens, definition_tokens, .. } in tools {
        cards.row([shown(card), card_tokens.to_string(), definition_tokens.to_string()]);
    }
    section(text, &title, &cards);
    let sum = |of: fn(&ToolRow) -> usize| tools.iter().map(of).sum::<usize>();
    let (cards, definitions) = (sum(|row| row.card_tokens), sum(|row| row.definition_tokens));
    text.push_str(&match tools.is_empty() {
        true => format!("\n## {title}\n\nNo tool shares a word with this query.\n"),
        false => {
            let fit = if *no_tool_fits { "Nothing fits well; these are the nearest. " } else { "" };
            format!("\n{fit}The cards have {cards} tokens, their definitions {definitions}.\n")
        }
    });
}

fn longest_run_of_ticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

/// Writes a table under its title; nothing without rows.
fn section(text: &mut String, title: &str, table: &Table) {
    if !table.is_empty() {
        text.push_str(&format!("\n## {title}\n\n{}", table.unpadded_markdown()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_outside_stays_in_its_cell_and_steers_nothing() {
        let about = EventAbout {
            id: "u1\u{202e}",
            kind: "user_turn",
            parent_id: Some("p|1"),
            sensitivity: "public",
            artifact: None,
            text: glance("a\n| b | <i>\u{1b}[2J*"),
        };
        let report = Report {
            source: "x\n# Forged",
            token_estimator: Estimator::Cl100kBase,
            events: vec![EventRow { about, tokens: 7 }],
            artifacts: Vec::new(),
            facts: Vec::new(),
            episodes: Vec::new(),
            phases: Vec::new(),
            routing: None,
        };
        insta::assert_snapshot!(markdown(&report), @r"
        # Session

        From x\n# Forged. Tokens by cl100k_base.

        ## Events

        | id | kind | parent | tokens | sensitivity | artifact | text |
        | --- | --- | --- | --: | --- | --- | --- |
        | u1\\u{202e} | user_turn | p\|1 | 7 | public |  | a \| b \| &lt;i> [2J\* |
        ");
    }
}

//! `inspect`: what a session holds, without the contents unless they are asked for.

use std::io::Write;

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;

use super::session::{PromptArgs, SessionSource, context_config};
use super::{Outcome, print_json};
use contextweaver_context::ContextPack;
use contextweaver_context::event::{ArtifactRef, ContextItem, Episode, Fact, Phase};
use contextweaver_context::store::{ArtifactStore, EpisodicStore, FactStore, Session};
use contextweaver_core::text::Estimator;

/// Look into a session: events, artifacts, facts, prompts
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  contextweaver inspect --session chat.session --prompts")]
pub(super) struct Args {
    #[command(flatten)]
    source: SessionSource,
    #[command(flatten)]
    prompt: PromptArgs,
    /// The prompts as well, and not only their sizes
    #[arg(long)]
    prompts: bool,
    /// Form of the output
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

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let config = context_config(args.prompt.config.as_deref())?;
    let session = args.source.load()?;
    let mut phases = Vec::new();
    for &phase in Phase::ALL {
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
    };
    match args.format {
        Form::Json => print_json(out, "inspect", &report)?,
        Form::Markdown => out.write_all(markdown(&report).as_bytes())?,
    }
    Ok(Outcome::Ok)
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

fn about(item: &ContextItem) -> EventAbout<'_> {
    let mut text: String = item.text.chars().take(GLANCE).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if item.text.chars().nth(GLANCE).is_some() {
        text.push('…');
    }
    EventAbout {
        id: item.id.as_str(),
        kind: item.kind.name(),
        parent_id: item.parent_id.as_ref().map(|parent| parent.as_str()),
        sensitivity: item.sensitivity.name(),
        artifact: item.artifact.as_ref().map(|artifact| artifact.handle.as_str()),
        text,
    }
}

fn markdown(report: &Report) -> String {
    let mut text = format!("# Session\n\nFrom {}. Tokens by {}.\n", cell(report.source), report.token_estimator);
    let rows = report.events.iter().map(|row| {
        let EventRow { about, tokens } = row;
        let optional = |text: Option<&str>| cell(text.unwrap_or_default());
        vec![
            cell(about.id),
            about.kind.to_owned(),
            optional(about.parent_id),
            tokens.to_string(),
            about.sensitivity.to_owned(),
            optional(about.artifact),
            cell(&about.text),
        ]
    });
    let head = ["id", "kind", "parent", "tokens", "sensitivity", "artifact", "text"];
    table(&mut text, "Events", &head, &rows.collect::<Vec<_>>());
    let rows = report.artifacts.iter().map(|one| {
        let handle = cell(one.handle.as_str());
        vec![handle, cell(&one.media_type), one.size_bytes.to_string(), cell(&one.label), one.content_hash.to_string()]
    });
    table(&mut text, "Artifacts", &["handle", "media type", "bytes", "label", "sha256"], &rows.collect::<Vec<_>>());
    let rows = report.facts.iter().map(|fact| vec![cell(&fact.key), cell(&fact.value)]);
    table(&mut text, "Facts", &["key", "value"], &rows.collect::<Vec<_>>());
    let rows = report.episodes.iter().map(|episode| vec![cell(&episode.id), cell(&episode.summary)]);
    table(&mut text, "Episodes", &["id", "summary"], &rows.collect::<Vec<_>>());
    let rows = report.phases.iter().map(|row| {
        let PhaseRow { phase, budget, prompt_tokens, included, dropped, .. } = row;
        let numbers = [budget, prompt_tokens, included, dropped].map(ToString::to_string);
        [vec![phase.name().to_owned()], numbers.to_vec()].concat()
    });
    table(&mut text, "Prompts", &["phase", "budget", "tokens", "events shown", "left out"], &rows.collect::<Vec<_>>());
    for PhaseRow { phase, prompt, .. } in &report.phases {
        if let Some(prompt) = prompt {
            let fence = "`".repeat(longest_run_of_ticks(prompt).max(2) + 1);
            text.push_str(&format!("\n### {phase}\n\n{fence}\n{prompt}\n{fence}\n"));
        }
    }
    text
}

fn longest_run_of_ticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

/// Writes a table under its title; nothing without rows.
fn table(text: &mut String, title: &str, head: &[&str], rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    text.push_str(&format!("\n## {title}\n\n"));
    text.push_str(&line(head.to_vec()));
    text.push_str(&line(vec!["---"; head.len()]));
    for row in rows {
        text.push_str(&line(row.iter().map(String::as_str).collect()));
    }
}

/// Text that comes from outside, within a cell.
fn cell(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().replace('|', "\\|")
}

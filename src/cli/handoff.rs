//! `handoff`: what the next agent, or an advisor, must know of a session, within a budget.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;

use super::files::{Files, Overwrite, shown, words_about};
use super::session::{SessionSource, context_config, refuse_other, save};
use super::{Format, Outcome, counted, note, print_json};
use contextweaver_context::store::{ArtifactStore, EpisodicStore, FactStore};
use contextweaver_context::{Audience, HandoffRequest, Memory, hand_off};

/// Write what the next agent needs to know about a session, within a budget
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The goal, rules, the open plan, decisions, what failed, what was found and what is remembered, each taken from an event or a \
fact. Sensitive events are withheld. An advisor gets the question first, what was tried and failed, constraints and \
what is still open, with the event or fact that each statement is taken from.

Examples:
  contextweaver handoff --session chat.session --budget 600
  contextweaver handoff --session chat.session --for advisor --query \"why does the deployment fail\"
  contextweaver handoff --session chat.session --query \"apply the fix\" --out next.session
  contextweaver replay --session next.session --query \"apply the fix\"")]
pub(super) struct Args {
    #[command(flatten)]
    source: SessionSource,
    /// Maximum tokens of the text
    #[arg(long, value_name = "N", default_value_t = 1000)]
    budget: usize,
    /// Who it is for
    #[arg(long = "for", value_enum, value_name = "READER", default_value_t)]
    reader: Reader,
    /// What the next agent is about to do, or what the advisor is asked [default: what the user asked for first and last]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    query: String,
    /// Context configuration (TOML) [default: built in]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write a session for the next agent to continue from, with the contents that are named; an SQLite store if it
    /// ends in `.sqlite` or `.db`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Reader {
    /// The agent that continues the work
    #[default]
    Agent,
    /// A model that is asked for advice
    Advisor,
}

impl From<Reader> for Audience {
    fn from(reader: Reader) -> Self {
        match reader {
            Reader::Agent => Self::Agent,
            Reader::Advisor => Self::Advisor,
        }
    }
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let files = Files::default().read("--session", [&args.source.session]).read("--config", &args.config);
    files.written("--out", &args.out).check()?;
    args.out.iter().try_for_each(|path| refuse_other(path, &args.overwrite))?;
    let config = context_config(args.config.as_deref())?;
    let session = args.source.load()?;
    let memory = Memory { facts: session.facts.all()?, episodes: session.episodes.all()? };
    let request = HandoffRequest { query: &args.query, budget: args.budget, audience: args.reader.into() };
    let pack = hand_off(&session.transcript, &memory, &request, &config);
    if let Some(path) = &args.out {
        let next = pack.session(&session.source, &session.artifacts)?;
        save(&next, path, out)?;
        let contents = counted(next.artifacts.list()?.len(), "content");
        let path = shown(path, "to standard output");
        note(&format!("wrote {path}: {}, {contents}", counted(next.transcript.len(), "event")));
    }
    let mut words = io::stderr();
    let out = match &args.out {
        Some(path) => words_about(path, out, &mut words),
        None => out,
    };
    match args.format {
        Format::Json => print_json(out, "handoff", &pack)?,
        Format::Text => writeln!(out, "{}", pack.text)?,
    }
    if pack.text.is_empty() {
        note(&format!("nothing fits into {}; raise --budget", counted(args.budget, "token")));
    }
    Ok(Outcome::Ok)
}

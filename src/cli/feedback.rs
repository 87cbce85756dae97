//! `feedback`: the log of which queries led to which tools.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::Subcommand;
use serde::Serialize;

use super::files::Files;
use super::source::id_of;
use super::terminal::line;
use super::{Format, Outcome, counted, note, print_json};
use contextweaver_core::catalog::{LoadOptions, load};
use contextweaver_core::text::on_one_line;
use contextweaver_routing::{FeedbackLog, Observation};

/// Keep a log of which queries led to which tools, for `route --feedback`
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Add an observation to a log, which is created if it does not exist
    #[command(after_help = "\
The log is a local file that only its owner can read: it holds queries as they were asked. It stays within 10,000
observations and 4 MB by dropping the older half.

Example:
  contextweaver feedback add --log f.jsonl --catalog tools.json --tool \"pager:get_schedule#0a1b2c3d\" \"who is on call\"")]
    Add(AddArgs),
    /// Show what a log holds
    #[command(after_help = "Example:\n  contextweaver feedback show --log feedback.jsonl")]
    Show(ShowArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct AddArgs {
    /// The log (JSONL)
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
    /// The tool that the query led to: its id, or its name if only one has it
    #[arg(long, value_name = "ID")]
    tool: String,
    /// The tool was not what the query wanted
    #[arg(long)]
    not_useful: bool,
    /// When it happened, in seconds since 1970 [default: now]
    #[arg(long, value_name = "SECONDS")]
    at: Option<u64>,
    /// Catalog that must have the tool; may be repeated
    #[arg(long, value_name = "PATH", required_unless_present = "force")]
    catalog: Vec<PathBuf>,
    /// Add it without a catalog; an id that belongs to no tool has no effect
    #[arg(long, conflicts_with = "catalog")]
    force: bool,
    /// The query as it was asked
    query: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The log (JSONL)
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(command: &Command, out: &mut dyn Write) -> Result<Outcome> {
    match command {
        Command::Add(args) => add(args, out),
        Command::Show(args) => show(args, out),
    }
}

/// Reads a log; damaged lines are named on standard error.
pub(super) fn read(path: &Path) -> Result<FeedbackLog> {
    let log = FeedbackLog::read(path)?;
    if log.damaged > 0 {
        note(&format!("{}: skipped: {}", path.display(), counted(log.damaged, "damaged line")));
    }
    Ok(log)
}

fn add(args: &AddArgs, out: &mut dyn Write) -> Result<Outcome> {
    Files::default().read("--catalog", &args.catalog).written("--log", [&args.log]).check()?;
    let tool = match args.force {
        true => args.tool.clone(),
        false => id_of(&load(&args.catalog, LoadOptions::default())?.catalog, "--tool", &args.tool)?,
    };
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs());
    let at = args.at.map_or_else(now, Ok).context("the clock is before 1970; give --at")?;
    let observation = Observation { at, query: args.query.clone(), tool, useful: !args.not_useful };
    FeedbackLog::append(&args.log, &observation)?;
    line(out, format_args!("added to {}", args.log.display()))?;
    Ok(Outcome::Ok)
}

/// What a log says about one tool.
#[derive(Debug, Default, Serialize)]
struct Told {
    useful: usize,
    not_useful: usize,
    /// The latest query.
    query: String,
}

#[derive(Serialize)]
struct Shown<'a> {
    observations: usize,
    damaged: usize,
    tools: &'a BTreeMap<&'a str, Told>,
}

fn show(args: &ShowArgs, out: &mut dyn Write) -> Result<Outcome> {
    let log = FeedbackLog::read(&args.log)?;
    let mut tools: BTreeMap<&str, Told> = BTreeMap::new();
    for observation in &log.observations {
        let told = tools.entry(&observation.tool).or_default();
        *(if observation.useful { &mut told.useful } else { &mut told.not_useful }) += 1;
        told.query.clone_from(&observation.query);
    }
    if args.format == Format::Json {
        let shown = Shown { observations: log.observations.len(), damaged: log.damaged, tools: &tools };
        print_json(out, "feedback show", &shown)?;
        return Ok(Outcome::Ok);
    }
    let observations = counted(log.observations.len(), "observation");
    let (of, damaged) = (counted(tools.len(), "tool"), counted(log.damaged, "damaged line"));
    writeln!(out, "{observations} of {of}, {damaged}")?;
    for (tool, Told { useful, not_useful, query }) in &tools {
        let against = if *not_useful > 0 { format!(", not useful {not_useful}") } else { String::new() };
        line(out, format_args!("{tool}: useful {useful}{against}; last: {}", on_one_line(query, 100)))?;
    }
    Ok(Outcome::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_log_holds_steers_no_terminal() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log.jsonl");
        let observation = Observation {
            at: 1,
            query: "who\u{1b}[2J\n\u{202e}is".to_owned(),
            tool: "a:b\nc: useful 9".to_owned(),
            useful: true,
        };
        FeedbackLog::append(&log, &observation).unwrap();
        let mut out = Vec::new();
        show(&ShowArgs { log, format: Format::Text }, &mut out).unwrap();
        let shown = String::from_utf8(out).unwrap();
        assert_eq!(
            shown,
            "1 observation of 1 tool, 0 damaged lines\na:b\\nc: useful 9: useful 1; last: who [2J \\u{202e}is\n"
        );
    }
}

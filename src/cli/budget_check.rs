//! `budget-check`: whether the prompts of a session keep to bounds, for CI.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use serde::Serialize;

use super::files::{Files, write};
use super::price::{Cost, PriceArgs, told};
use super::session::{PromptArgs, SessionSource, context_config};
use super::{Format, Outcome, counted, print_json};
use contextweaver_context::event::Phase;
use contextweaver_context::{BuildStats, DroppedItem};
use contextweaver_core::files::{ReadError, Unread, read_text_file};
use contextweaver_core::text::{Estimator, Price};

/// Check the prompts of a session against bounds, for CI
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code 1 when a bound is broken, with a line for each.

Examples:
  contextweaver budget-check --session chat.session --max-tokens 4000 --require u1
  contextweaver budget-check --session chat.session --max-tokens 4000 --ratchet tokens.json --breakdown")]
pub(super) struct Args {
    #[command(flatten)]
    source: SessionSource,
    /// The phase to check; may be repeated
    #[arg(long, value_name = "PHASE", default_value = "answer")]
    phase: Vec<Phase>,
    #[command(flatten)]
    prompt: PromptArgs,
    /// Fail if a compiled prompt has more tokens than this
    #[arg(long, value_name = "N")]
    max_tokens: usize,
    /// An event that each prompt must show; may be repeated
    #[arg(long, value_name = "ID")]
    require: Vec<String>,
    /// Maximum number of events that a prompt may leave out
    #[arg(long, value_name = "N")]
    max_dropped: Option<usize>,
    /// Also fail if a prompt has more tokens than the lowest count in this file for the session and the phase; if
    /// nothing fails, lower and new counts are written to the file (JSON)
    #[arg(long, value_name = "FILE")]
    ratchet: Option<PathBuf>,
    /// Also show the tokens of each part of a prompt
    #[arg(long)]
    breakdown: bool,
    #[command(flatten)]
    price: PriceArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What was found about the prompt of a phase.
#[derive(Serialize)]
struct Checked {
    phase: Phase,
    /// Whether it keeps to every bound.
    ok: bool,
    prompt_tokens: usize,
    max_tokens: usize,
    token_estimator: Estimator,
    included_count: usize,
    dropped_count: usize,
    /// The bounds that it breaks, in words.
    broken: Vec<String>,
    /// Its parts, the largest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    breakdown: Option<Vec<Part>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratchet: Option<Ratcheted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

/// A part of a prompt.
#[derive(Serialize)]
struct Part {
    part: &'static str,
    tokens: usize,
}

/// What the file of `--ratchet` says of a prompt.
#[derive(Serialize)]
struct Ratcheted {
    /// The lowest count before this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<usize>,
    /// Whether the count of this run was recorded.
    written: bool,
}

/// The file of `--ratchet`: the lowest counts of tokens, by session and phase.
type Lowest = BTreeMap<String, BTreeMap<String, usize>>;

/// Bytes that such a file may have.
const MOST_BYTES: u64 = 16 << 20;

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let files = Files::default().read("--session", [&args.source.session]).read("--config", &args.prompt.config);
    files.written("--ratchet", &args.ratchet).check()?;
    let price = args.price.stated()?;
    let config = context_config(args.prompt.config.as_deref())?;
    let lowest = args.ratchet.as_deref().map(lowest).transpose()?.unwrap_or_default();
    let session = args.source.load()?;
    if let Some(unknown) = args.require.iter().find(|id| session.transcript.get(id).is_none()) {
        bail!("{}: no event `{unknown}` to require", args.source.session.display());
    }
    let name = args.source.session.display().to_string();
    let mut all = Vec::new();
    for &phase in &args.phase {
        let stats = args.prompt.compile(&session, phase, &config)?.stats;
        let recorded = lowest.get(&name).and_then(|phases| phases.get(phase.name())).copied();
        let broken = broken(args, &stats, recorded);
        let parts = || stats.parts().into_iter().map(|(part, tokens)| Part { part, tokens }).collect();
        all.push(Checked {
            phase,
            ok: broken.is_empty(),
            prompt_tokens: stats.prompt_tokens,
            max_tokens: args.max_tokens,
            token_estimator: stats.token_estimator,
            included_count: stats.included_count,
            dropped_count: stats.dropped_count,
            broken,
            breakdown: args.breakdown.then(parts),
            ratchet: args.ratchet.as_ref().map(|_| Ratcheted { recorded, written: false }),
            cost: price.as_ref().map(|price| Cost::of(price, stats.prompt_tokens)),
        });
    }
    let ok = all.iter().all(|checked| checked.ok);
    if let (true, Some(path)) = (ok, &args.ratchet) {
        record(path, lowest, name, &mut all)?;
    }
    match args.format {
        Format::Json => print_json(out, "budget-check", &all)?,
        Format::Text => all.iter().try_for_each(|checked| print(checked, price.as_ref(), out))?,
    }
    Ok(if ok { Outcome::Ok } else { Outcome::Drift })
}

/// The counts in the file of `--ratchet`; none if there is no such file yet.
fn lowest(path: &Path) -> Result<Lowest> {
    let text = match read_text_file(path, MOST_BYTES) {
        Err(ReadError { reason: Unread::System(error), .. }) if error.kind() == ErrorKind::NotFound => {
            return Ok(Lowest::new());
        }
        read => read?,
    };
    serde_json::from_str(&text).map_err(|error| {
        let path = path.display();
        anyhow!("{path}: not written by --ratchet: {error}; name another file, or delete this one to start over")
    })
}

/// Records the counts that are lower than those in the file, or new there; it is written only if there are any.
fn record(path: &Path, mut lowest: Lowest, session: String, all: &mut [Checked]) -> Result<()> {
    let phases = lowest.entry(session).or_default();
    let mut is_written = false;
    for Checked { phase, prompt_tokens, ratchet, .. } in all {
        if let Some(ratchet) = ratchet
            && ratchet.recorded.is_none_or(|recorded| *prompt_tokens < recorded)
        {
            phases.insert(phase.name().to_owned(), *prompt_tokens);
            (ratchet.written, is_written) = (true, true);
        }
    }
    if is_written {
        write(path, format!("{}\n", serde_json::to_string_pretty(&lowest)?).as_bytes())?;
    }
    Ok(())
}

fn print(checked: &Checked, price: Option<&Price>, out: &mut dyn Write) -> Result<()> {
    let Checked { phase, prompt_tokens, max_tokens, token_estimator, included_count, dropped_count, .. } = checked;
    let verdict = if checked.ok { "ok" } else { "FAILED" };
    let cost = price.map(|price| format!("; costs {}", told(price, *prompt_tokens))).unwrap_or_default();
    writeln!(
        out,
        "{phase}: {verdict}, {prompt_tokens} of {max_tokens} tokens ({token_estimator}), {} shown, \
         {dropped_count} left out{cost}",
        counted(*included_count, "event")
    )?;
    checked.broken.iter().try_for_each(|reason| writeln!(out, "  {reason}"))?;
    let parts = checked.breakdown.as_deref().unwrap_or_default();
    let width = parts.iter().map(|part| part.part.len()).max().unwrap_or_default();
    for Part { part, tokens } in parts {
        writeln!(out, "  {part:width$}  {}", counted(*tokens, "token"))?;
    }
    Ok(())
}

/// The bounds that a prompt breaks, in words. `recorded` is the lowest count so far.
fn broken(args: &Args, stats: &BuildStats, recorded: Option<usize>) -> Vec<String> {
    let mut reasons = Vec::new();
    if stats.prompt_tokens > args.max_tokens {
        reasons.push(format!("{} tokens, over the {} allowed", stats.prompt_tokens, args.max_tokens));
    }
    if let (Some(recorded), Some(path)) = (recorded.filter(|least| stats.prompt_tokens > *least), &args.ratchet) {
        let path = path.display();
        reasons.push(format!("{} tokens, more than the {recorded} recorded in {path}", stats.prompt_tokens));
    }
    for id in &args.require {
        let is_it = |dropped: &&DroppedItem| dropped.item_id.as_str() == id;
        match stats.dropped_items.iter().find(is_it) {
            Some(dropped) => reasons.push(format!("`{id}` is left out: {}", dropped.reason.name())),
            None if stats.included_items.iter().any(|item| item.item_id.as_str() == id) => {}
            None => reasons.push(format!("`{id}` is left out: this phase does not read events of its kind")),
        }
    }
    if let Some(most) = args.max_dropped.filter(|most| stats.dropped_count > *most) {
        reasons.push(format!("{} left out, over the {most} allowed", counted(stats.dropped_count, "event")));
    }
    reasons
}

//! `budget-check`: whether the prompts of a session keep to bounds, for CI.

use std::io::Write;

use anyhow::{Result, bail};
use serde::Serialize;

use super::price::{Cost, PriceArgs, told};
use super::session::{PromptArgs, SessionSource, context_config};
use super::{Format, Outcome, counted, print_json};
use contextweaver_context::event::Phase;
use contextweaver_context::{BuildStats, DroppedItem};
use contextweaver_core::text::{Estimator, Price};

/// Check the prompts of a session against bounds, for CI
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code 1 when a bound is broken, with a line for each.\n\nExample:\n  contextweaver budget-check --session chat.session --phase answer --max-tokens 4000 --require u1"
)]
pub(super) struct Args {
    #[command(flatten)]
    source: SessionSource,
    /// The phase to check; may be repeated
    #[arg(long, value_name = "PHASE", default_value = "answer")]
    phase: Vec<Phase>,
    #[command(flatten)]
    prompt: PromptArgs,
    /// Maximum tokens of a prompt
    #[arg(long, value_name = "N")]
    max_tokens: usize,
    /// An event that each prompt must show; may be repeated
    #[arg(long, value_name = "ID")]
    require: Vec<String>,
    /// Maximum number of events that a prompt may leave out
    #[arg(long, value_name = "N")]
    max_dropped: Option<usize>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let price = args.price.stated()?;
    let config = context_config(args.prompt.config.as_deref())?;
    let session = args.source.load()?;
    if let Some(unknown) = args.require.iter().find(|id| session.transcript.get(id).is_none()) {
        bail!("{}: no event `{unknown}` to require", args.source.session.display());
    }
    let mut all = Vec::new();
    for &phase in &args.phase {
        let stats = args.prompt.compile(&session, phase, &config)?.stats;
        let broken = broken(args, &stats);
        all.push(Checked {
            phase,
            ok: broken.is_empty(),
            prompt_tokens: stats.prompt_tokens,
            max_tokens: args.max_tokens,
            token_estimator: stats.token_estimator,
            included_count: stats.included_count,
            dropped_count: stats.dropped_count,
            broken,
            cost: price.as_ref().map(|price| Cost::of(price, stats.prompt_tokens)),
        });
    }
    match args.format {
        Format::Json => print_json(out, "budget-check", &all)?,
        Format::Text => all.iter().try_for_each(|checked| print(checked, price.as_ref(), out))?,
    }
    Ok(if all.iter().all(|checked| checked.ok) { Outcome::Ok } else { Outcome::Drift })
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
    Ok(())
}

/// The bounds that a prompt breaks, in words.
fn broken(args: &Args, stats: &BuildStats) -> Vec<String> {
    let mut reasons = Vec::new();
    if stats.prompt_tokens > args.max_tokens {
        reasons.push(format!("{} tokens, over the {} allowed", stats.prompt_tokens, args.max_tokens));
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

//! `budget-check`: whether the prompts of a session keep to bounds, for CI.

use std::io::Write;

use anyhow::{Result, bail};

use super::Outcome;
use super::session::{PromptArgs, SessionSource, context_config};
use contextweaver_context::event::Phase;
use contextweaver_context::{BuildStats, DroppedItem};

/// Check the prompts of a session against bounds, for CI
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code 1 when a bound is broken, with a line for each.\n\nExample:\n  contextweaver budget-check --session chat.session --phase answer --max-tokens 4000 --require u1"
)]
pub(super) struct Args {
    #[command(flatten)]
    source: SessionSource,
    /// The phase that is checked; may be repeated
    #[arg(long, value_name = "PHASE", default_value = "answer")]
    phase: Vec<Phase>,
    #[command(flatten)]
    prompt: PromptArgs,
    /// Tokens that a prompt may have
    #[arg(long, value_name = "N")]
    max_tokens: usize,
    /// An event that each prompt must show; may be repeated
    #[arg(long, value_name = "ID")]
    require: Vec<String>,
    /// Events that a prompt may leave out
    #[arg(long, value_name = "N")]
    max_dropped: Option<usize>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let config = context_config(args.prompt.config.as_deref())?;
    let session = args.source.load()?;
    if let Some(unknown) = args.require.iter().find(|id| session.transcript.get(id).is_none()) {
        bail!("{}: no event `{unknown}` that could be required", args.source.session.display());
    }
    let mut outcome = Outcome::Ok;
    for &phase in &args.phase {
        let stats = args.prompt.compile(&session, phase, &config)?.stats;
        let broken = broken(args, &stats);
        let verdict = if broken.is_empty() { "ok" } else { "FAILED" };
        writeln!(
            out,
            "{phase}: {verdict}, {} of {} tokens ({}), {} events shown, {} left out",
            stats.prompt_tokens, args.max_tokens, stats.token_estimator, stats.included_count, stats.dropped_count
        )?;
        for reason in broken {
            outcome = Outcome::Drift;
            writeln!(out, "  {reason}")?;
        }
    }
    Ok(outcome)
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
        reasons.push(format!("{} events left out, over the {most} allowed", stats.dropped_count));
    }
    reasons
}

//! `replay`: the prompt that a session gives, and nothing else.

use std::io::Write;

use anyhow::Result;

use super::session::{PromptArgs, SessionSource, context_config};
use super::{Outcome, counted, note};
use contextweaver_context::event::Phase;
use contextweaver_context::{BuildStats, DropReason};

/// Print the prompt that a session gives for a phase
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Standard output holds the prompt byte for byte, without a line break of its own at the end.\n\nExample:\n  contextweaver replay --session chat.session --phase answer --query \"what went wrong\" --budget 2000"
)]
pub(super) struct Args {
    #[command(flatten)]
    source: SessionSource,
    /// What the model is about to do: route, call, interpret or answer
    #[arg(long, value_name = "PHASE", default_value = "answer")]
    phase: Phase,
    #[command(flatten)]
    prompt: PromptArgs,
    /// Say on standard error what the prompt holds and what it leaves out
    #[arg(long)]
    stats: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let config = context_config(args.prompt.config.as_deref())?;
    let pack = args.prompt.compile(&args.source.load()?, args.phase, &config)?;
    out.write_all(pack.prompt.as_bytes())?;
    if pack.prompt.is_empty() {
        note(&nothing(&pack.stats));
    }
    if args.stats {
        // The prompt ends without a line break.
        note(&format!("\n{}", pack.stats.ledger().trim_end()));
    }
    Ok(Outcome::Ok)
}

/// Why a prompt is empty.
fn nothing(stats: &BuildStats) -> String {
    if stats.memory_lines_omitted > 0 || stats.dropped_reasons.contains_key(DropReason::Budget.name()) {
        return format!("nothing fits into {}; raise --budget", counted(stats.budget, "token"));
    }
    "the prompt is empty: `contextweaver stats` says what is left out, and why".to_owned()
}

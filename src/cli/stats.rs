//! `stats`: the account of a prompt.

use std::io::Write;

use anyhow::Result;

use super::session::{PromptArgs, SessionSource, context_config};
use super::{Format, Outcome, print_json};
use contextweaver_context::event::Phase;

/// Say what a prompt holds, what it leaves out, and why
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  contextweaver stats --session chat.session --phase answer --budget 2000")]
pub(super) struct Args {
    #[command(flatten)]
    source: SessionSource,
    /// What the model is about to do: route, call, interpret or answer
    #[arg(long, value_name = "PHASE", default_value = "answer")]
    phase: Phase,
    #[command(flatten)]
    prompt: PromptArgs,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let config = context_config(args.prompt.config.as_deref())?;
    let pack = args.prompt.compile(&args.source.load()?, args.phase, &config)?;
    match args.format {
        Format::Json => print_json(out, "stats", &pack.stats)?,
        Format::Text => write!(out, "{} prompt: {}", args.phase, pack.stats.ledger())?,
    }
    Ok(Outcome::Ok)
}

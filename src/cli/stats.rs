//! `stats`: the account of a prompt.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

use super::price::{Cost, PriceArgs, rate, told};
use super::session::{PromptArgs, SessionSource, context_config};
use super::{Format, Outcome, print_json};
use contextweaver_context::BuildStats;
use contextweaver_context::event::Phase;

/// Show what a prompt holds, what it leaves out, and why
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  contextweaver stats --session chat.session --phase answer --budget 2000\n  contextweaver stats --session chat.session --price 3"
)]
pub(super) struct Args {
    #[command(flatten)]
    source: SessionSource,
    /// What the model is about to do: route, call, interpret or answer
    #[arg(long, value_name = "PHASE", default_value = "answer")]
    phase: Phase,
    #[command(flatten)]
    prompt: PromptArgs,
    #[command(flatten)]
    price: PriceArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The account with what the prompt costs.
#[derive(Serialize)]
struct Account<'s> {
    #[serde(flatten)]
    stats: &'s BuildStats,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let price = args.price.stated()?;
    let config = context_config(args.prompt.config.as_deref())?;
    let pack = args.prompt.compile(&args.source.load()?, args.phase, &config)?;
    let tokens = pack.stats.prompt_tokens;
    match args.format {
        Format::Json => {
            let cost = price.as_ref().map(|price| Cost::of(price, tokens));
            print_json(out, "stats", &Account { stats: &pack.stats, cost })?;
        }
        Format::Text => {
            write!(out, "{} prompt: {}", args.phase, pack.stats.ledger())?;
            if let Some(price) = &price {
                writeln!(out, "\ncosts {} each time that it is sent, at {}", told(price, tokens), rate(price))?;
            }
        }
    }
    Ok(Outcome::Ok)
}

//! The prompts that end with tools: cards to choose from, or the schema of the chosen one.
//!
//! Cards and schemas come as text, so that this room need not know where they come from. They stand behind the items:
//! they change with every query, and what comes before them stays the same for a cache of prompts.

use super::compile::{CompileError, Memory, Request, Workspace, compile_in};
use super::config::ContextConfig;
use super::firewall::Firewall;
use super::stats::ContextPack;
use crate::event::{Phase, Transcript};

/// The part of the budget that cards may take, so that the conversation that they are chosen for is seen.
const CARDS_SHARE: (usize, usize) = (3, 4);

/// A prompt for choosing tools.
#[derive(Debug, Clone, PartialEq)]
pub struct RoutePrompt {
    /// The prompt and its account.
    pub pack: ContextPack,
    /// How many of the cards are in it: the first ones.
    pub cards_shown: usize,
}

/// The prompt of the route phase with `cards`, the best first, one line or a few each, behind the items. The phase and
/// the footer of `request` are not read. As many cards are shown as fit into three quarters of the budget; the number
/// is in the answer.
///
/// # Errors
/// As [`compile_in`].
pub fn build_route_prompt(
    workspace: &mut Workspace,
    (transcript, memory): (&Transcript, &Memory),
    firewall: &Firewall,
    request: &Request,
    cards: &[String],
    config: &ContextConfig,
) -> Result<RoutePrompt, CompileError> {
    let budget = request.budget.unwrap_or_else(|| config.budgets.of(Phase::Route));
    let written = |count: usize| match cards.get(..count) {
        Some(shown) if count > 0 => format!("[TOOLS]\n{}", shown.join("\n")),
        _ => String::new(),
    };
    let share = budget / CARDS_SHARE.1 * CARDS_SHARE.0;
    // More cards cost more, so the most that fit are found by halving.
    let (mut low, mut high) = (0, cards.len());
    while low < high {
        let middle = (low + high).div_ceil(2);
        let tokens = config.estimator.count(&format!("{}\n\n{}", request.header, written(middle)));
        if tokens <= share { low = middle } else { high = middle - 1 }
    }
    let footer = written(low);
    let request = Request { phase: Phase::Route, footer: &footer, ..*request };
    let pack = compile_in(workspace, transcript, memory, firewall, &request, config)?;
    Ok(RoutePrompt { pack, cards_shown: low })
}

/// The prompt of the call phase with the name and the full schema of the chosen tool behind the items. The phase and the
/// footer of `request` are not read.
///
/// # Errors
/// As [`compile_in`]; a schema that does not fit is refused with the numbers, since half a schema is none.
pub fn build_call_prompt(
    workspace: &mut Workspace,
    (transcript, memory): (&Transcript, &Memory),
    firewall: &Firewall,
    request: &Request,
    (tool, schema): (&str, &str),
    config: &ContextConfig,
) -> Result<ContextPack, CompileError> {
    let footer = format!("[TOOL SCHEMA]\n{tool}\n{schema}");
    let request = Request { phase: Phase::Call, footer: &footer, ..*request };
    compile_in(workspace, transcript, memory, firewall, &request, config)
}

//! Compiles events, a phase and a budget into a prompt.
//!
//! [`compile`] reads as the list of the eight stages; each stage is a file beside this one and says what it decides.
//! The prompt, with every heading, separator, header and footer, never exceeds the budget under the configured
//! estimator, and never the conversation that it stands for (`plain` says exactly what that means). The same input gives
//! the same bytes.

mod apply_firewall;
mod candidates;
mod closure;
mod dedup;
mod facts;
mod frame;
mod meter;
mod pack;
mod plain;
mod render;
mod repeats;
mod score;
mod sensitivity;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use dedup::TURNING;
pub(super) use facts::{chosen_first, derived_from};
pub(super) use frame::shows_all;
pub use render::one_line;
pub(super) use render::{SCHEMA, TOOLS, named};

use self::frame::Frame;
use self::meter::Meter;
use self::pack::Packed;
use self::plain::Plain;
use self::repeats::Writing;
use super::config::{ContextConfig, Order};
use super::firewall::{Firewall, FirewallError};
use super::stats::{BuildStats, ContextPack, DropReason, DroppedItem, FirewallCause, FirewallEvent, IncludedItem};
use crate::event::{ContextItem, Episode, Fact, ItemId, Phase, Transcript};
use contextweaver_core::text::Terms;

/// A request for a prompt.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What the model is about to do.
    pub phase: Phase,
    /// The text that items are compared with; may be empty.
    pub query: &'a str,
    /// Tags that items are compared with instead, when there are any.
    pub tags: &'a [String],
    /// The budget in tokens; the configuration's budget for the phase when `None`.
    pub budget: Option<usize>,
    /// The text before the items, e.g. instructions; may be empty.
    pub header: &'a str,
    /// The text after the items; may be empty.
    pub footer: &'a str,
}

impl<'a> Request<'a> {
    /// A request without tags, header and footer, with the phase's own budget.
    #[must_use]
    pub fn new(phase: Phase, query: &'a str) -> Self {
        Self { phase, query, tags: &[], budget: None, header: "", footer: "" }
    }
}

/// What is remembered beyond one conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    /// Remembered statements, by key.
    pub facts: Vec<Fact>,
    /// Summaries of earlier events, oldest first.
    pub episodes: Vec<Episode>,
}

/// A prompt cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The caller's header and footer exceed the budget.
    #[error(
        "header and footer of the {phase} prompt need {needed} tokens, the budget is {budget}; shorten them or raise the budget"
    )]
    FrameTooLarge {
        /// The phase of the prompt.
        phase: Phase,
        /// Tokens of header and footer with their separator.
        needed: usize,
        /// The budget in tokens.
        budget: usize,
    },
    /// The firewall could not store or read a content.
    #[error("event `{item}`: {source}")]
    Firewall {
        /// The event whose content it was.
        item: ItemId,
        /// The firewall's error.
        source: FirewallError,
    },
}

/// Reusable memory for several builds, which makes them faster and changes no result.
#[derive(Debug, Default)]
pub struct Workspace {
    terms: Terms,
}

/// An event on its way through the stages.
struct Candidate<'t> {
    /// Its position in the transcript.
    position: usize,
    /// The event as the stages so far left it.
    item: Cow<'t, ContextItem>,
}

/// What the stages drop and do, recorded as they go.
#[derive(Default, Clone)]
struct Ledger {
    dropped: Vec<DroppedItem>,
    events: Vec<FirewallEvent>,
}

impl Ledger {
    fn drop(&mut self, item: &ContextItem, reason: DropReason) {
        self.dropped.push(DroppedItem { item_id: item.id.clone(), kind: item.kind, reason });
    }
}

/// Compiles the prompt of `request` from the events of `transcript` and from `memory`.
///
/// # Errors
/// [`CompileError::FrameTooLarge`]; [`CompileError::Firewall`] when the firewall's store failed.
pub fn compile(
    transcript: &Transcript,
    memory: &Memory,
    firewall: &Firewall,
    request: &Request,
    config: &ContextConfig,
) -> Result<ContextPack, CompileError> {
    compile_in(&mut Workspace::default(), transcript, memory, firewall, request, config)
}

/// As [`compile`], reusing the memory of earlier builds.
///
/// # Errors
/// As [`compile`].
pub fn compile_in(
    workspace: &mut Workspace,
    transcript: &Transcript,
    memory: &Memory,
    firewall: &Firewall,
    request: &Request,
    config: &ContextConfig,
) -> Result<ContextPack, CompileError> {
    let Workspace { terms } = workspace;
    let meter = Meter::new(config.estimator);
    let mut ledger = Ledger::default();
    let budget = request.budget.unwrap_or_else(|| config.budgets.of(request.phase));
    let frame = frame::frame(transcript, memory, request, config, meter)?;
    let room = meter.limit(budget) - frame.cost;

    let allowed = candidates::generate(transcript, config.policy.kinds_of(request.phase));
    let wanted = closure::complete(transcript, &allowed);
    let shown = sensitivity::filter(transcript, &wanted, &config.policy, &mut ledger);
    let (screened, events) = apply_firewall::apply(transcript, shown, firewall)?;
    ledger.events = events;
    let ranked = score::rank(screened, request, &config.scoring, meter, terms);
    let distinct = dedup::remove(transcript, ranked, config.dedup.threshold, &mut ledger);
    let plain = Plain::of(&distinct, &ledger, (meter.limit(budget), meter), config);
    let writing = Writing { section: |item| Some(render::section(item, &item.text)), meter };
    let packed = repeats::select(transcript, distinct, room, (config, firewall), (writing, &mut ledger))?;
    let (mut packed, mut prompt, mut tokens) =
        rendered(transcript, packed, &frame, (budget, config), (meter, &mut ledger));
    if let Some(plain) = plain.filter(|_| plain::is_longer(&prompt, &frame, transcript, firewall, meter)) {
        let shorter = plain.prompt(transcript, &frame, (config, firewall), meter)?;
        if let Some(shorter) = shorter.filter(|shorter| shorter.tokens < tokens) {
            plain::Written { packed, prompt, tokens, ledger } = shorter;
        }
    }

    let closures = wanted.len() - allowed.len();
    let counts = Counts { budget, tokens, total: wanted.len(), closures };
    Ok(ContextPack { phase: request.phase, stats: stats(&packed, ledger, &frame, &counts, meter), prompt })
}

/// The items in the order of the prompt, and the prompt. Sections are counted one by one, so the whole is counted once
/// more at the end; where the caller's footer or the missing last separator cost a token more than expected, the
/// lowest-ranked items on which nothing depends are removed.
fn rendered<'t>(
    transcript: &Transcript,
    mut packed: Vec<Packed<'t>>,
    frame: &Frame,
    (budget, config): (usize, &ContextConfig),
    (meter, ledger): (Meter, &mut Ledger),
) -> (Vec<Packed<'t>>, String, usize) {
    loop {
        let mut order: Vec<usize> = (0..packed.len()).collect();
        if config.render.order == Order::Time {
            order.sort_by_key(|&place| packed[place].scored.position);
        }
        let sections = order.iter().map(|&place| packed[place].scored.section.as_str());
        let prompt = render::render(&frame.head, sections, &frame.foot);
        let tokens = meter.units(&prompt);
        let tokens = meter.tokens(tokens);
        if tokens <= budget {
            if config.render.order == Order::Time {
                packed.sort_by_key(|one| one.scored.position);
            }
            return (packed, prompt, tokens);
        }
        let parents: BTreeSet<usize> = packed.iter().filter_map(|one| transcript.parent(one.scored.position)).collect();
        let Some(worst) = packed.iter().rposition(|one| !parents.contains(&one.scored.position)) else {
            return (packed, String::new(), 0);
        };
        let worst = packed.remove(worst);
        ledger.drop(&worst.scored.item, DropReason::Budget);
    }
}

/// Numbers that are known only after running through the stages.
struct Counts {
    budget: usize,
    tokens: usize,
    total: usize,
    closures: usize,
}

fn stats(packed: &[Packed], ledger: Ledger, frame: &Frame, counts: &Counts, meter: Meter) -> BuildStats {
    let included: Vec<IncludedItem> = packed
        .iter()
        .map(|Packed { scored, form }| IncludedItem {
            item_id: scored.item.id.clone(),
            kind: scored.item.kind,
            tokens: meter.tokens(scored.cost),
            form: *form,
        })
        .collect();
    let mut sections = BTreeMap::new();
    for item in &included {
        *sections.entry(item.kind).or_default() += item.tokens;
    }
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for dropped in &ledger.dropped {
        *reasons.entry(dropped.reason.name().to_owned()).or_default() += 1;
    }
    let duplicates =
        ledger.dropped.iter().filter(|dropped| matches!(dropped.reason, DropReason::Duplicate { .. })).count();
    let condensed = ledger.events.iter().filter(|event| event.cause == FirewallCause::Condensed).count();
    BuildStats {
        token_estimator: meter.estimator(),
        budget: counts.budget,
        prompt_tokens: counts.tokens,
        header_footer_tokens: meter.tokens(frame.cost),
        tokens_per_section: sections,
        total_candidates: counts.total,
        included_count: included.len(),
        dropped_count: ledger.dropped.len(),
        dropped_reasons: reasons,
        dedup_removed: duplicates,
        dependency_closures: counts.closures,
        condensed,
        memory_lines_omitted: frame.omitted,
        included_items: included,
        dropped_items: ledger.dropped,
        firewall_events: ledger.events,
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests;

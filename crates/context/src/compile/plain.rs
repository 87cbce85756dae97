//! The prompt without headings: the texts one below the other, as the conversation has them.
//!
//! Headings pay where the rest of the conversation becomes shorter. Where there is nothing to shorten, they make the
//! prompt longer than the conversation, so they are left out there. A prompt is therefore never longer than the
//! conversation that it stands for, with these meanings:
//! - the *conversation* is the text of every event in its log, whatever the phase reads, each with a line break; a call
//!   with the name of its function, and a result whole, however much the firewall shows of it;
//! - *longer* means more tokens, without what a prompt adds on purpose: memory, header and footer (and with them cards
//!   and schemas), the handles of what is stored, the labels that items bring, and the marks of what was redacted.
//!
//! It holds under every budget: a conversation that does not fit is longer than any prompt of it. Headings stay, and
//! with them a longer prompt, in three cases:
//! - a line of the conversation looks like a heading: without real ones, it would pass for one;
//! - the items stand in the order of their scores, which is not that of the conversation;
//! - the configuration asks for them ([`Headings::Always`]), because it must always be said who speaks.
//!
//! Nothing else changes: the filter, the firewall, deduplication and the limit per kind decide as before.

use super::frame::Frame;
use super::meter::Meter;
use super::pack::Packed;
use super::repeats::{self, Writing};
use super::score::Scored;
use super::{CompileError, Ledger, render};
use crate::config::{ContextConfig, Headings, Order};
use crate::event::{ContextItem, Transcript};
use crate::firewall::Firewall;

/// The number of bytes that a token can stand for at most.
const MOST_BYTES_PER_TOKEN: usize = 128;

/// More than any heading of a kind and its separator cost.
const LONGEST_HEADING: &str = "[TOOL RESULT]\n\n[]\n";

/// Everything that a prompt without headings would hold.
pub(super) struct Plain<'t> {
    /// The items, their sections without headings.
    ranked: Vec<Scored<'t>>,
    ledger: Ledger,
    /// The number of units that the prompt may have.
    limit: usize,
}

/// A prompt without headings.
pub(super) struct Written<'t> {
    pub(super) packed: Vec<Packed<'t>>,
    pub(super) prompt: String,
    pub(super) tokens: usize,
    pub(super) ledger: Ledger,
}

impl<'t> Plain<'t> {
    /// The items in their plain form, with what was recorded of the stages before; `None` when headings must stay, and
    /// when the conversation is so long that no prompt within the limit can be longer.
    pub(super) fn of(
        ranked: &[Scored<'t>],
        ledger: &Ledger,
        (limit, meter): (usize, Meter),
        config: &ContextConfig,
    ) -> Option<Self> {
        if config.render.headings == Headings::Always || config.render.order == Order::Score || ranked.is_empty() {
            return None;
        }
        // Without this, every build of a long log would read its beginning once more.
        let heading = meter.units(LONGEST_HEADING);
        let shown_whole = ranked.iter().filter(|one| one.item.artifact.is_none() && one.item.metadata.is_empty());
        if shown_whole.map(|one| one.cost.saturating_sub(heading)).sum::<usize>() >= limit {
            return None;
        }
        let bare = |one: &Scored<'t>| Some(Scored { section: render::bare(&one.item)?, ..one.clone() });
        let ranked: Option<Vec<_>> = ranked.iter().map(bare).collect();
        Some(Self { ranked: ranked?, ledger: ledger.clone(), limit })
    }

    /// The prompt with all items, as far as the limit per kind allows; `None` when they do not fit.
    pub(super) fn prompt(
        self,
        transcript: &Transcript,
        frame: &Frame,
        (config, firewall): (&ContextConfig, &Firewall),
        meter: Meter,
    ) -> Result<Option<Written<'t>>, CompileError> {
        let Self { mut ranked, mut ledger, limit } = self;
        ranked.iter_mut().for_each(|one| one.cost = meter.units(&one.section));
        let writing = Writing { section: render::bare, meter };
        let mut packed = repeats::select(transcript, ranked, usize::MAX, (config, firewall), (writing, &mut ledger))?;
        packed.sort_by_key(|one| one.scored.position);
        let mut prompt = frame.head.clone();
        packed.iter().for_each(|one| prompt.push_str(&one.scored.section));
        if frame.foot.is_empty() {
            prompt.truncate(prompt.len() - usize::from(!packed.is_empty()));
        } else {
            prompt.push('\n');
            prompt.push_str(&frame.foot);
        }
        let units = meter.units(&prompt);
        Ok((units <= limit).then(|| Written { packed, tokens: meter.tokens(units), prompt, ledger }))
    }
}

/// Whether the prompt, without its frame, is longer than the conversation. The conversation is read only as far as it
/// takes to know.
pub(super) fn is_longer(
    prompt: &str,
    frame: &Frame,
    transcript: &Transcript,
    firewall: &Firewall,
    meter: Meter,
) -> bool {
    let units = meter.units(prompt).saturating_sub(frame.cost);
    let mut history = 0usize;
    !transcript.items().iter().any(|item| {
        history = history.saturating_add(cost(item, units, firewall, meter));
        history >= units
    })
}

/// What an event costs in the conversation; `enough` for one that certainly costs so much.
fn cost(item: &ContextItem, enough: usize, firewall: &Firewall, meter: Meter) -> usize {
    let shortened = item.artifact.as_ref().map_or(0, |artifact| artifact.size_bytes);
    if shortened > enough.saturating_mul(MOST_BYTES_PER_TOKEN) as u64 {
        return enough;
    }
    let original = firewall.original(item);
    meter.units(&render::line(item, original.as_deref().unwrap_or(&item.text)))
}

//! Stage 7: selects the best items that fit, each with what it depends on.
//!
//! Items are taken in the order of their scores. An item comes in together with those of its ancestors that are not in
//! yet, or not at all, so a result never appears without its call; an item that is in is never removed for a better one
//! that comes later. An item that does not fit may fit in a shorter form, and a smaller item may fit where a larger one
//! did not.
//!
//! Where not everything fits, long items are shortened before anything is left out: many short entries keep more of a
//! conversation than a few long ones.
//! - If all items fit when none has more tokens than some cap, they all come in, the older ones at the largest such cap
//!   and the others at the next one. The border between them moves in steps, and room left over is not spent: otherwise
//!   some item would change its form with every turn, and the prompt its beginning.
//! - If they do not fit even at the smallest cap, the best items share the first half of the room in longer forms, the
//!   next ones a quarter in shorter forms, and the rest come as short as possible.
//!
//! The limit per kind applies to all but the few items that hold a name in the query, with what they depend on; items
//! beyond it, by rank, take no part in sharing the room.
//!
//! Room only shrinks, so an item that was refused stays refused. A chain of ancestors is followed only as far as the
//! room reaches, so the work per item is bounded by the budget and not by the length of the chain.

use super::meter::Meter;
use super::score::Scored;
use super::{CompileError, Ledger, render};
use crate::config::ContextConfig;
use crate::event::{ContextItem, FirewallStats, ItemKind, Strategy, Transcript};
use crate::firewall::Firewall;
use crate::stats::{DropReason, FirewallCause, FirewallEvent, Form};

/// The caps, in tokens, at which a long item is offered in a shorter form.
const CAPS: [usize; 4] = [300, 150, 75, SHORTEST];

/// The smallest cap.
pub(super) const SHORTEST: usize = 40;

/// The smallest cap of a user's request, which has no source elsewhere.
const SHORTEST_REQUEST: usize = 75;

/// Where not everything fits, the caps for the best, the next and the last items.
const SHARED: [usize; 3] = [150, 75, SHORTEST];

/// The number of events by which the border between older and newer items moves.
const STEP: usize = 64;

/// Approximate tokens of a section's brackets, label and separator.
const HEADING: usize = 8;

/// The least number of bytes of a name or handle in a heading that make up a token.
const NAME_BYTES_PER_TOKEN: usize = 2;

/// An item that is in the prompt.
pub(super) struct Packed<'t> {
    pub(super) scored: Scored<'t>,
    pub(super) form: Form,
}

/// Selects the items of the prompt, best first.
pub(super) fn select<'t>(
    transcript: &Transcript,
    ranked: Vec<Scored<'t>>,
    room: usize,
    (config, firewall): (&ContextConfig, &Firewall),
    (meter, ledger): (Meter, &mut Ledger),
) -> Result<Vec<Packed<'t>>, CompileError> {
    let mut places = vec![None; transcript.len()];
    for (place, scored) in ranked.iter().enumerate() {
        places[scored.position] = Some(place);
    }
    let mut packer = Packer {
        transcript,
        ranked,
        places,
        state: Vec::new(),
        plan: Plan::Best { room },
        room,
        most: config.policy.max_items_per_kind,
        counts: [0; KINDS],
        firewall,
        meter,
    };
    packer.state = vec![State::Open; packer.ranked.len()];
    packer.plan = packer.planned();
    for place in 0..packer.ranked.len() {
        if !matches!(packer.state[place], State::Open) {
            continue;
        }
        match packer.group(place) {
            Ok(group) => match packer.fit(&group)? {
                Some(forms) => packer.admit(forms, ledger),
                None => packer.refuse(place, DropReason::Budget, ledger),
            },
            Err(reason) => packer.refuse(place, reason, ledger),
        }
    }
    let states = packer.state;
    let packed = packer.ranked.into_iter().zip(states).filter_map(|(scored, state)| match state {
        State::In(form) => Some(Packed { scored, form }),
        State::Open | State::Out { .. } => None,
    });
    Ok(packed.collect())
}

const KINDS: usize = ItemKind::ALL.len();

/// The state of an item during packing.
#[derive(Clone, Copy)]
enum State {
    Open,
    In(Form),
    Out { for_budget: bool },
}

/// How the room is shared.
#[derive(Clone, Copy)]
enum Plan {
    /// All items fit when each has at most so many tokens of text.
    All {
        /// The cap of the older items.
        older: usize,
        /// The position of the first newer item.
        until: usize,
        /// The cap of the newer items.
        newer: usize,
    },
    /// Not all items fit, however short.
    Best {
        /// The number of units at the start.
        room: usize,
    },
}

/// An item in the form in which it fits.
enum Fitted {
    Whole(usize),
    Condensed { place: usize, section: String, cost: usize, stats: FirewallStats },
}

struct Packer<'p, 't> {
    transcript: &'p Transcript,
    ranked: Vec<Scored<'t>>,
    /// Per position of the transcript the place of its event in `ranked`.
    places: Vec<Option<usize>>,
    state: Vec<State>,
    plan: Plan,
    /// The number of units left.
    room: usize,
    /// The number of items of one kind at most.
    most: usize,
    /// The number of items of each kind so far.
    counts: [usize; KINDS],
    firewall: &'p Firewall<'p>,
    meter: Meter,
}

impl Packer<'_, '_> {
    /// The longest forms in which everything fits, if there are any.
    fn planned(&self) -> Plan {
        // Shortening the others makes no room for an item that never fits.
        let cost = |one: &Scored, cap| Some(self.cost_at(one, cap)).filter(|&cost| cost <= self.room).unwrap_or(0);
        let mut counts = [0; KINDS];
        let within = self.ranked.iter().filter(|one| {
            let count = &mut counts[one.item.kind as usize];
            *count += 1;
            one.is_named || *count <= self.most
        });
        let items: Vec<&Scored> = within.collect();
        let mut newer = usize::MAX;
        let mut needed = 0;
        for older in [usize::MAX].into_iter().chain(CAPS) {
            let total: usize = items.iter().map(|one| cost(one, older)).sum();
            if total > self.room {
                (newer, needed) = (older, total - self.room);
                continue;
            }
            let mut saved = vec![0; self.transcript.len().div_ceil(STEP)];
            for one in &items {
                saved[one.position / STEP] += cost(one, newer).saturating_sub(cost(one, older));
            }
            let mut sum = 0;
            let enough = |saved: &usize| {
                sum += saved;
                sum >= needed
            };
            let steps =
                if needed == 0 { 0 } else { saved.iter().position(enough).map_or(saved.len(), |last| last + 1) };
            return Plan::All { older, until: steps * STEP, newer };
        }
        Plan::Best { room: self.room }
    }

    /// The item and its ancestors that are not in yet, or the reason why they cannot come in.
    fn group(&self, place: usize) -> Result<Vec<usize>, DropReason> {
        let mut counts = self.counts;
        let mut group = Vec::new();
        let mut least = 0usize;
        let mut next = place;
        loop {
            let scored = &self.ranked[next];
            let kind = scored.item.kind;
            group.push(next);
            counts[kind as usize] += 1;
            if counts[kind as usize] > self.most && !self.ranked[place].is_named {
                // The nearest item of the kind needs all others of the group, so it is the one that never comes in.
                let nearest = group.iter().copied().find(|&one| self.ranked[one].item.kind == kind).unwrap_or(next);
                let ancestor = self.ranked[nearest].item.id.clone();
                return Err(if nearest == place { DropReason::KindLimit } else { DropReason::Closure { ancestor } });
            }
            least = least.saturating_add(self.least(scored));
            if least > self.room {
                return Err(DropReason::Budget);
            }
            let Some(parent) = self.transcript.parent(scored.position) else { return Ok(group) };
            let ancestor = || self.transcript.items()[parent].id.clone();
            let Some(place) = self.places[parent] else { return Err(DropReason::Closure { ancestor: ancestor() }) };
            match self.state[place] {
                State::In(_) => return Ok(group),
                State::Out { for_budget: true } => return Err(DropReason::Budget),
                State::Out { for_budget: false } => return Err(DropReason::Closure { ancestor: ancestor() }),
                State::Open => next = place,
            }
        }
    }

    /// The lower bound on the item's cost: its shortest form is assumed to use up its cap.
    fn least(&self, scored: &Scored) -> usize {
        CAPS.iter().fold(scored.cost, |least, &cap| least.min(self.cost_at(scored, cap)))
    }

    /// The upper bound on the item's cost when its text may have `cap` tokens.
    fn cost_at(&self, scored: &Scored, cap: usize) -> usize {
        match least_cap(scored.item.kind) {
            // Most items are short, and nothing more need be known of them.
            Some(least) if scored.cost > self.meter.limit(cap.max(least)) => {
                scored.cost.min(self.meter.limit(cap.max(least).saturating_add(heading(&scored.item))))
            }
            _ => scored.cost,
        }
    }

    /// The cap at which the item is tried first.
    fn longest(&self, place: usize) -> usize {
        match self.plan {
            Plan::All { older, until, .. } if self.ranked[place].position < until => older,
            Plan::All { newer, .. } => newer,
            Plan::Best { room } if self.room > room / 2 => SHARED[0],
            Plan::Best { room } if self.room > room / 4 => SHARED[1],
            Plan::Best { .. } => SHARED[2],
        }
    }

    /// The group in the longest forms that fit.
    fn fit(&mut self, group: &[usize]) -> Result<Option<Vec<Fitted>>, CompileError> {
        let longest = group.iter().map(|&place| self.longest(place)).max().unwrap_or_default();
        for cap in [usize::MAX].into_iter().chain(CAPS).filter(|&cap| cap <= longest) {
            let capped: Vec<(usize, usize)> =
                group.iter().map(|&place| (place, cap.min(self.longest(place)))).collect();
            if capped.iter().map(|&(place, cap)| self.cost_at(&self.ranked[place], cap)).sum::<usize>() > self.room {
                continue;
            }
            let fitted: Result<Vec<Fitted>, _> =
                capped.into_iter().map(|(place, cap)| self.condensed(place, cap)).collect();
            let fitted = fitted?;
            if fitted.iter().map(|one| self.cost(one)).sum::<usize>() <= self.room {
                return Ok(Some(fitted));
            }
        }
        Ok(None)
    }

    /// The item, shortened to `cap` tokens if it is longer.
    fn condensed(&mut self, place: usize, cap: usize) -> Result<Fitted, CompileError> {
        let scored = &self.ranked[place];
        let item = &*scored.item;
        if scored.cost <= self.cost_at(scored, cap) {
            return Ok(Fitted::Whole(place));
        }
        let failed = |source| CompileError::Firewall { item: item.id.clone(), source };
        let cap = least_cap(item.kind).map_or(cap, |least| cap.max(least));
        let text = self.firewall.condense(item, cap).map_err(failed)?;
        let section = render::section(item, &text);
        let cost = self.meter.units(&section);
        if cost >= scored.cost {
            return Ok(Fitted::Whole(place));
        }
        let stats = condensed(item, &text, self.firewall, self.meter);
        Ok(Fitted::Condensed { place, section, cost, stats })
    }

    fn cost(&self, fitted: &Fitted) -> usize {
        match fitted {
            Fitted::Whole(place) => self.ranked[*place].cost,
            Fitted::Condensed { cost, .. } => *cost,
        }
    }

    fn admit(&mut self, group: Vec<Fitted>, ledger: &mut Ledger) {
        for fitted in group {
            self.room -= self.cost(&fitted);
            let place = match fitted {
                Fitted::Whole(place) => {
                    self.state[place] = State::In(Form::Whole);
                    place
                }
                Fitted::Condensed { place, section, cost, stats } => {
                    let scored = &mut self.ranked[place];
                    (scored.section, scored.cost) = (section, cost);
                    self.state[place] = State::In(Form::Condensed);
                    let item_id = scored.item.id.clone();
                    ledger.events.push(FirewallEvent { item_id, cause: FirewallCause::Condensed, stats });
                    place
                }
            };
            self.counts[self.ranked[place].item.kind as usize] += 1;
        }
    }

    fn refuse(&mut self, place: usize, reason: DropReason, ledger: &mut Ledger) {
        self.state[place] = State::Out { for_budget: reason == DropReason::Budget };
        ledger.drop(&self.ranked[place].item, reason);
    }
}

/// What the firewall did for an item in a shorter form.
pub(super) fn condensed(item: &ContextItem, text: &str, firewall: &Firewall, meter: Meter) -> FirewallStats {
    FirewallStats {
        strategy: Strategy::Summary,
        threshold_chars: firewall.config().threshold_chars,
        original_bytes: item.artifact.as_ref().map_or(item.text.len() as u64, |artifact| artifact.size_bytes),
        original_tokens: None,
        summary_tokens: meter.tokens(meter.units(text)),
        estimator: meter.estimator(),
    }
}

/// The smallest cap at which a shorter form of the item is still useful; `None` for a rule, a plan or a fact, which
/// would say something different.
fn least_cap(kind: ItemKind) -> Option<usize> {
    match kind {
        ItemKind::UserTurn => Some(SHORTEST_REQUEST),
        ItemKind::AgentMsg
        | ItemKind::ToolCall
        | ItemKind::ToolResult
        | ItemKind::DocSnippet
        | ItemKind::RetrievedDoc => Some(SHORTEST),
        ItemKind::MemoryFact | ItemKind::PlanState | ItemKind::Policy => None,
    }
}

/// The upper bound on the tokens of an item's section beyond its text, as far as it can be told before writing it.
fn heading(item: &ContextItem) -> usize {
    let names = ["function_name", "section"].into_iter().filter_map(|name| item.metadata.get(name)?.as_str());
    let handle = item.artifact.as_ref().map(|artifact| artifact.handle.as_str());
    names.chain(handle).fold(HEADING, |tokens, name| tokens + name.len() / NAME_BYTES_PER_TOKEN)
}

//! Stage 7: the best items that fit, each with what it depends on.
//!
//! Items are taken in the order of their scores. An item comes in together with its ancestors that are not in yet, or
//! not at all, so a result never stands without its call; what is in is never put out for something better that comes
//! later. What does not fit as it is may fit in a shorter form, and a smaller item may fit where a larger one did not.
//!
//! Where not everything fits, long results are shortened before anything is left out: many short accounts keep more of
//! a conversation than a few long ones.
//!
//! Room only shrinks, so an item that was refused stays refused. A chain of ancestors is followed no further than the
//! room reaches, which bounds the work of an item by the budget and not by the length of the chain.

use super::meter::Meter;
use super::score::Scored;
use super::{CompileError, Ledger, render};
use crate::context::config::ContextConfig;
use crate::context::firewall::Firewall;
use crate::context::stats::{DropReason, FirewallCause, FirewallEvent, Form};
use crate::event::{FirewallStats, ItemKind, Strategy, Transcript};

/// The caps, in tokens, at which a long item is offered in a shorter form.
const CAPS: [usize; 3] = [300, 150, 75];

/// The cap, in tokens, of results where not everything fits.
const TIGHT: usize = 150;

/// Tokens that heading and separator of a section cost at most, as far as one can tell before writing it.
const HEADING: usize = 24;

/// An item in the prompt.
pub(super) struct Packed<'t> {
    pub(super) scored: Scored<'t>,
    pub(super) form: Form,
}

/// The items of the prompt, best first.
pub(super) fn select<'t>(
    transcript: &Transcript,
    ranked: Vec<Scored<'t>>,
    room: usize,
    (config, firewall): (&ContextConfig, &Firewall),
    (meter, ledger): (&mut Meter, &mut Ledger),
) -> Result<Vec<Packed<'t>>, CompileError> {
    let mut places = vec![None; transcript.len()];
    for (place, scored) in ranked.iter().enumerate() {
        places[scored.position] = Some(place);
    }
    let most = config.policy.max_items_per_kind;
    let state = vec![State::Open; ranked.len()];
    // What never fits leaves no room by being shortened around.
    let wanted: usize = ranked.iter().map(|scored| scored.cost).filter(|&cost| cost <= room).sum();
    let results = if wanted > room { Results::Short } else { Results::Usual };
    let mut packer =
        Packer { transcript, ranked, places, state, results, room, most, counts: [0; KINDS], firewall, meter };
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

/// What became of an item so far.
#[derive(Clone, Copy)]
enum State {
    Open,
    In(Form),
    Out { for_budget: bool },
}

/// How results are offered at first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Results {
    /// As they are: there is room for everything.
    Usual,
    /// In at most [`TIGHT`] tokens.
    Short,
}

/// An item in the form in which it fits.
enum Fitted {
    Whole(usize),
    Condensed { place: usize, section: String, cost: usize, stats: FirewallStats },
}

struct Packer<'p, 'c, 't> {
    transcript: &'p Transcript,
    ranked: Vec<Scored<'t>>,
    /// The place in `ranked` of the event at a position.
    places: Vec<Option<usize>>,
    state: Vec<State>,
    results: Results,
    /// Units left.
    room: usize,
    /// Items of a kind at most.
    most: usize,
    /// Items of each kind so far.
    counts: [usize; KINDS],
    firewall: &'p Firewall<'p>,
    meter: &'p mut Meter<'c>,
}

impl Packer<'_, '_, '_> {
    /// The item and its ancestors that are not in yet, or why they cannot come in.
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
            if counts[kind as usize] > self.most {
                // The nearest of its kind needs all others of the group, so it is the one that never comes in.
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

    /// The least that the item may cost: its shortest form is taken to use up its cap.
    fn least(&self, scored: &Scored) -> usize {
        CAPS.iter().fold(scored.cost, |least, &cap| least.min(self.cost_at(scored, cap)))
    }

    /// What the item costs when its text may have `cap` tokens.
    fn cost_at(&self, scored: &Scored, cap: usize) -> usize {
        let capped = self.meter.limit(cap + HEADING);
        if is_condensable(scored.item.kind) { scored.cost.min(capped) } else { scored.cost }
    }

    /// The group in the longest forms that fit.
    fn fit(&mut self, group: &[usize]) -> Result<Option<Vec<Fitted>>, CompileError> {
        if group.iter().map(|&place| self.usual_cost(place)).sum::<usize>() <= self.room {
            let fitted: Result<Vec<Fitted>, _> = group.iter().map(|&place| self.usual(place)).collect();
            let fitted = fitted?;
            if fitted.iter().map(|one| self.cost(one)).sum::<usize>() <= self.room {
                return Ok(Some(fitted));
            }
        }
        for cap in CAPS {
            if group.iter().map(|&place| self.cost_at(&self.ranked[place], cap)).sum::<usize>() > self.room {
                continue;
            }
            let fitted: Result<Vec<Fitted>, _> = group.iter().map(|&place| self.condensed(place, cap)).collect();
            let fitted = fitted?;
            if fitted.iter().map(|one| self.cost(one)).sum::<usize>() <= self.room {
                return Ok(Some(fitted));
            }
        }
        Ok(None)
    }

    /// The item in the form in which it is offered at first.
    fn usual(&mut self, place: usize) -> Result<Fitted, CompileError> {
        if self.is_shortened(place) { self.condensed(place, TIGHT) } else { Ok(Fitted::Whole(place)) }
    }

    /// What that form costs at most.
    fn usual_cost(&self, place: usize) -> usize {
        let scored = &self.ranked[place];
        if self.is_shortened(place) { self.cost_at(scored, TIGHT) } else { scored.cost }
    }

    fn is_shortened(&self, place: usize) -> bool {
        self.results == Results::Short && self.ranked[place].item.kind == ItemKind::ToolResult
    }

    /// The item, shortened to `cap` tokens if it is longer.
    fn condensed(&mut self, place: usize, cap: usize) -> Result<Fitted, CompileError> {
        let scored = &self.ranked[place];
        let item = &*scored.item;
        if scored.cost <= self.cost_at(scored, cap) {
            return Ok(Fitted::Whole(place));
        }
        let failed = |source| CompileError::Firewall { item: item.id.clone(), source };
        let text = self.firewall.condense(item, cap).map_err(failed)?;
        let section = render::section(item, &text);
        let (cost, summary) = (self.meter.units(&section), self.meter.units(&text));
        if cost >= scored.cost {
            return Ok(Fitted::Whole(place));
        }
        let stats = FirewallStats {
            strategy: Strategy::Summary,
            threshold_chars: self.firewall.config().threshold_chars,
            original_bytes: item.artifact.as_ref().map_or(item.text.len() as u64, |artifact| artifact.size_bytes),
            original_tokens: None,
            summary_tokens: self.meter.tokens(summary),
            estimator: self.meter.estimator(),
        };
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

/// Whether a shorter form of the item still serves: of a rule, a plan, a fact or a call it would say something else.
fn is_condensable(kind: ItemKind) -> bool {
    match kind {
        ItemKind::UserTurn
        | ItemKind::AgentMsg
        | ItemKind::ToolResult
        | ItemKind::DocSnippet
        | ItemKind::RetrievedDoc => true,
        ItemKind::ToolCall | ItemKind::MemoryFact | ItemKind::PlanState | ItemKind::Policy => false,
    }
}

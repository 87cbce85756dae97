//! Makes the lines in place of repeats name only what is in the prompt.
//!
//! A result that was shown before is a line that names where. Whether that is in the prompt is known only after packing;
//! where it is not, the line leads to nothing that its reader sees. Then the best of the results that say so shows the
//! content, the others name that one, and everything is packed anew, each result at its rank. Content that does not fit
//! in any form gives way to the line, since the handle of the result stands in its heading. In the end, room that nothing
//! else has taken is for such contents in their shortest form.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::meter::Meter;
use super::pack::{self, Packed};
use super::score::Scored;
use super::{CompileError, Ledger};
use crate::config::ContextConfig;
use crate::event::{ContextItem, FirewallStats, Transcript};
use crate::firewall::{Firewall, Screened, Seen, repeated, structured_label};
use crate::stats::{FirewallCause, Form};

/// The number of times that the items are packed to find out which contents fit.
const MOST_ROUNDS: usize = 4;

/// How items are written and measured.
#[derive(Clone, Copy)]
pub(super) struct Writing {
    /// The section of an item; `None` for one that cannot be written in this way.
    pub(super) section: fn(&ContextItem) -> Option<String>,
    pub(super) meter: Meter,
}

/// A result that shows its content.
struct Restated<'t> {
    /// The result as it was: with a line in place of the content.
    line: Scored<'t>,
    /// What the firewall did instead.
    stats: FirewallStats,
}

/// Selects the items of the prompt, best first, as [`pack::select`] does.
pub(super) fn select<'t>(
    transcript: &Transcript,
    mut ranked: Vec<Scored<'t>>,
    room: usize,
    (config, firewall): (&ContextConfig, &Firewall),
    (writing, ledger): (Writing, &mut Ledger),
) -> Result<Vec<Packed<'t>>, CompileError> {
    let meter = writing.meter;
    if !ranked.iter().any(|one| repeated(&one.item).is_some()) {
        return pack::select(transcript, ranked, room, (config, firewall), (meter, ledger));
    }
    let places: BTreeMap<usize, usize> = ranked.iter().enumerate().map(|(place, one)| (one.position, place)).collect();
    // By their positions in the transcript.
    let mut restated: BTreeMap<usize, Restated<'t>> = BTreeMap::new();
    // What keeps its line, whatever that names.
    let mut kept = BTreeSet::new();
    for _ in 0..MOST_ROUNDS {
        let mut noted = ledger.clone();
        let packed = pack::select(transcript, ranked.clone(), room, (config, firewall), (meter, &mut noted))?;
        let shown: BTreeSet<usize> = packed.iter().map(|one| one.scored.position).collect();
        let refused: Vec<usize> = restated.keys().copied().filter(|position| !shown.contains(position)).collect();
        let lost = lost(&packed).into_iter().map(|place| packed[place].scored.position);
        let lost: Vec<usize> = lost.filter(|position| !kept.contains(position)).collect();
        if refused.is_empty() && lost.is_empty() {
            let packed = filled(packed, transcript, room, (config, firewall), writing, &mut restated)?;
            note(&mut noted, &restated);
            *ledger = noted;
            return Ok(packed);
        }
        for position in refused {
            kept.insert(position);
            if let Some(one) = restated.remove(&position) {
                ranked[places[&position]] = one.line;
            }
        }
        let mut seen = Seen::default();
        for position in lost {
            let place = places[&position];
            let call = call_of(transcript, &ranked[place], config);
            let screened = firewall.screen_repeat(call, &ranked[place].item, &mut seen);
            let written = screened.and_then(|one| Some(((writing.section)(&one.item)?, one)));
            let Some((section, one)) = written else {
                kept.insert(position);
                continue;
            };
            let (cost, item) = (meter.units(&section), Cow::Owned(one.item));
            let scored = Scored { item, section, cost, ..ranked[place].clone() };
            let before = std::mem::replace(&mut ranked[place], scored);
            let line = restated.remove(&position).map_or(before, |earlier| earlier.line);
            restated.insert(position, Restated { line, stats: one.stats });
        }
    }
    for (position, one) in std::mem::take(&mut restated) {
        ranked[places[&position]] = one.line;
    }
    let packed = pack::select(transcript, ranked, room, (config, firewall), (meter, ledger))?;
    let packed = filled(packed, transcript, room, (config, firewall), writing, &mut restated)?;
    note(ledger, &restated);
    Ok(packed)
}

/// The items of the prompt, with contents in place of lines that name what is not there, as far as the room goes that is left.
fn filled<'t>(
    mut packed: Vec<Packed<'t>>,
    transcript: &Transcript,
    room: usize,
    (config, firewall): (&ContextConfig, &Firewall),
    writing: Writing,
    restated: &mut BTreeMap<usize, Restated<'t>>,
) -> Result<Vec<Packed<'t>>, CompileError> {
    let mut free = room.saturating_sub(packed.iter().map(|one| one.scored.cost).sum());
    // Contents in the prompt, which others may name.
    let mut shown = Seen::default();
    for one in packed.iter().filter(|one| repeated(&one.scored.item).is_none()) {
        if let Some(Restated { line, .. }) = restated.get(&one.scored.position) {
            firewall.screen_repeat(call_of(transcript, line, config), &line.item, &mut shown);
        }
    }
    for place in lost(&packed) {
        let line = &packed[place].scored;
        // What is shown is remembered only once it fits: a copy to fall back on would be as large as all of it.
        let screened = firewall.show_repeat(call_of(transcript, line, config), &line.item, &shown);
        let fitted = match screened {
            Some(screened) => shortest(line, screened, firewall, writing)?,
            None => None,
        };
        let Some((scored, stats, form)) = fitted.filter(|(scored, ..)| scored.cost <= line.cost + free) else {
            continue;
        };
        firewall.remember_repeat(&line.item, &mut shown);
        free = free + line.cost - scored.cost;
        let line = std::mem::replace(&mut packed[place], Packed { scored, form }).scored;
        restated.insert(line.position, Restated { line, stats });
    }
    Ok(packed)
}

/// A result with its content in the shortest form in place of a line, and what the firewall did for it. `None` where it cannot
/// be written.
fn shortest<'t>(
    line: &Scored<'t>,
    screened: Screened,
    firewall: &Firewall,
    writing: Writing,
) -> Result<Option<(Scored<'t>, FirewallStats, Form)>, CompileError> {
    let Screened { item, stats } = screened;
    let (stats, form, item) = match repeated(&item) {
        // It names one that is shown by now.
        Some(_) => (stats, Form::Whole, item),
        None => {
            let failed = |source| CompileError::Firewall { item: item.id.clone(), source };
            let text = firewall.condense(&item, pack::SHORTEST).map_err(failed)?;
            let stats = pack::condensed(&item, &text, firewall, writing.meter);
            (stats, Form::Condensed, ContextItem { text, ..item })
        }
    };
    Ok((writing.section)(&item).map(|section| {
        let cost = writing.meter.units(&section);
        (Scored { item: Cow::Owned(item), section, cost, ..line.clone() }, stats, form)
    }))
}

/// The places among the items of the prompt, best first, of the results that name one whose content is not there.
fn lost(packed: &[Packed<'_>]) -> Vec<usize> {
    // The shorter form of a repeat is a summary of its content.
    let with_content = packed.iter().filter(|one| one.form == Form::Condensed || repeated(&one.scored.item).is_none());
    let with_content: Vec<&Scored<'_>> = with_content.map(|one| &one.scored).collect();
    let handle = |one: &&Scored<'_>| one.item.artifact.as_ref().map(|artifact| artifact.handle.as_str().to_owned());
    let handles: BTreeSet<String> = with_content.iter().filter_map(handle).collect();
    let named = packed.iter().map(|one| repeated(&one.scored.item).filter(|_| one.form == Form::Whole));
    let mut missing: Vec<(usize, &str)> =
        named.enumerate().filter_map(|(place, of)| Some((place, of.filter(|of| !handles.contains(*of))?))).collect();
    let wanted = missing.iter().map(|(_, of)| *of).collect();
    let labelled = labelled(with_content.iter().map(|one| one.section.as_str()), &wanted);
    missing.retain(|(_, of)| !labelled.contains(of));
    missing.into_iter().map(|(place, _)| place).collect()
}

/// Those of the handles `wanted` that stand in a label of structured content in one of `sections`. Each section is read
/// once, however many handles are wanted.
fn labelled<'w>(sections: impl Iterator<Item = &'w str>, wanted: &BTreeSet<&'w str>) -> BTreeSet<&'w str> {
    let label = structured_label("");
    let before = label.trim_end_matches(']');
    let Some(longest) = wanted.iter().map(|of| of.len()).max() else { return BTreeSet::new() };
    let mut found = BTreeSet::new();
    for section in sections {
        for (at, _) in section.match_indices(before) {
            let rest = section.get(at + before.len()..).unwrap_or_default();
            let near = rest.as_bytes().get(..rest.len().min(longest + 1)).unwrap_or_default();
            // A handle may itself hold what ends a label.
            let ends = memchr::memchr_iter(b']', near).filter_map(|end| rest.get(..end));
            found.extend(ends.filter_map(|of| wanted.get(of).copied()));
        }
    }
    found
}

/// The call of a result as it was sent. One that may not be read is not compared with anything.
fn call_of<'t>(transcript: &'t Transcript, result: &Scored<'_>, config: &ContextConfig) -> Option<&'t ContextItem> {
    let call = transcript.items().get(transcript.parent(result.position)?)?;
    (call.sensitivity < config.policy.sensitivity_floor).then_some(call)
}

/// Records what the firewall did with the results that show their content.
fn note(ledger: &mut Ledger, restated: &BTreeMap<usize, Restated<'_>>) {
    let stats: BTreeMap<_, _> = restated.values().map(|one| (&one.line.item.id, &one.stats)).collect();
    for event in ledger.events.iter_mut().filter(|event| event.cause == FirewallCause::Screened) {
        if let Some(stats) = stats.get(&event.item_id) {
            event.stats = (*stats).clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn labels_are_found_in_one_pass(
            sections in prop::collection::vec("(\\[structured content: |[ab\\[\\]é]{0,4}\\]?){0,6}", 0..4),
            wanted in prop::collection::btree_set("[ab\\[\\]é]{0,4}", 0..6),
        ) {
            let wanted: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
            let is_there = |of: &&&str| sections.iter().any(|section| section.contains(&structured_label(of)));
            let there: BTreeSet<&str> = wanted.iter().filter(is_there).copied().collect();
            prop_assert_eq!(labelled(sections.iter().map(String::as_str), &wanted), there);
        }
    }
}

//! Facts that were taken from results: which of them say how things stand, the newest first.
//!
//! A call that is made again and again gives the same fields each time, and only the newest values hold. Ids of results
//! say nothing of their order, so the order is that of the conversation.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::render::named;
use crate::event::{Fact, Transcript};

/// The event that a fact was taken from: the facts of a result have keys `<item id>:fact:<number>`.
pub(crate) fn derived_from(key: &str) -> Option<&str> {
    source(key).map(|(id, _)| id)
}

fn source(key: &str) -> Option<(&str, &str)> {
    key.rsplit_once(":fact:")
}

/// Of `facts` first those that somebody chose to remember, in their order, with their number; then those that were taken
/// from results, as [`latest`] has them.
pub(crate) fn chosen_first<'m>(
    transcript: &Transcript,
    facts: impl Iterator<Item = &'m Fact>,
) -> (usize, Vec<&'m Fact>) {
    let (taken, mut all): (Vec<&Fact>, Vec<&Fact>) = facts.partition(|fact| derived_from(&fact.key).is_some());
    let chosen = all.len();
    all.extend(latest(transcript, taken));
    (chosen, all)
}

/// The facts of the newest result first, those of one result in their order. Of a field that several results of the same
/// call have, with the same arguments, only what the newest says stays.
fn latest<'m>(transcript: &Transcript, facts: Vec<&'m Fact>) -> Vec<&'m Fact> {
    let placed = |fact: &'m Fact| {
        let (id, number) = source(&fact.key).unwrap_or_default();
        (transcript.position(id), number.parse().unwrap_or(usize::MAX), fact)
    };
    let mut placed: Vec<(Option<usize>, usize, &Fact)> = facts.into_iter().map(placed).collect();
    placed.sort_by_key(|(position, number, _)| (Reverse(*position), *number));
    let (mut made, mut number_of) = (HashMap::new(), (None, 0));
    let mut newest: HashMap<(usize, &str), usize> = HashMap::new();
    placed.retain(|(position, _, fact)| {
        let call = position.and_then(|position| transcript.parent(position));
        let (Some(position), Some(call)) = (*position, call) else { return true };
        // Arguments may be long, and facts of one result stand together.
        if number_of.0 != Some(call) {
            let (call_text, next) = (named(&transcript.items()[call], &transcript.items()[call].text), made.len());
            number_of = (Some(call), *made.entry(call_text).or_insert(next));
        }
        let field = fact.value.split_once(": ").map_or(fact.value.as_str(), |(field, _)| field);
        *newest.entry((number_of.1, field)).or_insert(position) == position
    });
    placed.into_iter().map(|(_, _, fact)| fact).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ContextItem, ItemKind};

    fn transcript(calls: &[(&str, &str)]) -> Transcript {
        let mut transcript = Transcript::default();
        for (id, call) in calls {
            transcript.push(ContextItem::new(*id, ItemKind::ToolCall, *call)).unwrap();
            let result = ContextItem::new(format!("result:{id}"), ItemKind::ToolResult, "").under(*id);
            transcript.push(result).unwrap();
        }
        transcript
    }

    #[test]
    fn the_newest_facts_come_first_and_stand_for_older_ones() {
        let transcript = transcript(&[
            ("c2", "status(job=7)"),
            ("c10", "owner(job=7)"),
            ("b", "status(job=7)"),
            ("c9", "rooms()"),
            ("d", "status(job=8)"),
        ]);
        let facts: Vec<Fact> = [
            ("region", "eu"),
            ("result:b:fact:0", "state: done"),
            ("result:b:fact:10", "seconds: 40"),
            ("result:b:fact:2", "step: 9"),
            ("result:c10:fact:0", "state: on holiday"),
            ("result:c2:fact:0", "state: running"),
            ("result:c2:fact:1", "retries: 3"),
            ("result:c9:fact:0", "room: 12"),
            ("result:c9:fact:1", "room: 14"),
            ("result:d:fact:0", "state: queued"),
            ("result:gone:fact:0", "state: unknown"),
            ("zone", "UTC"),
        ]
        .map(|(key, value)| Fact { key: key.to_owned(), value: value.to_owned() })
        .into();
        let (chosen, all) = chosen_first(&transcript, facts.iter());
        let values: Vec<&str> = all.iter().map(|fact| fact.value.as_str()).collect();
        assert_eq!(chosen, 2);
        assert_eq!(
            values.join(" | "),
            "eu | UTC | state: queued | room: 12 | room: 14 | state: done | step: 9 | seconds: 40 | state: on holiday | retries: 3 | \
             state: unknown"
        );
    }
}

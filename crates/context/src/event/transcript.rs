//! The checked order of events.

use std::collections::HashMap;

use super::item::{ContextItem, ItemId};

/// Events in the order in which they happened. Ids are distinct and a parent comes before its children, so no parent is
/// missing and no event is its own ancestor.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transcript {
    items: Vec<ContextItem>,
    parents: Vec<Option<u32>>,
    places: HashMap<ItemId, u32>,
}

/// Why events are not a transcript. Positions count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// Two events share an id.
    #[error("event {second}: event {first} already has the id `{id}`; ids must be unique")]
    Duplicate {
        /// The shared id.
        id: ItemId,
        /// The position of its first use.
        first: usize,
        /// The position of its second use.
        second: usize,
    },
    /// The parent of an event is not in the log.
    #[error("event {position} (`{id}`): its parent `{parent}` is not in the log")]
    MissingParent {
        /// The id of the child.
        id: ItemId,
        /// The id that it names as its parent.
        parent: ItemId,
        /// The position of the child.
        position: usize,
    },
    /// An event is its own ancestor.
    #[error("event {position} (`{id}`) is its own ancestor, via {}", names(through))]
    Cycle {
        /// The id of the event.
        id: ItemId,
        /// Its parent, the parent's parent and so on, up to the event itself.
        through: Vec<ItemId>,
        /// The position of the event.
        position: usize,
    },
    /// The parent of an event comes after it.
    #[error(
        "event {position} (`{id}`): its parent `{parent}` comes later, as event {later}; write events in time order"
    )]
    LateParent {
        /// The id of the child.
        id: ItemId,
        /// The id of the parent.
        parent: ItemId,
        /// The position of the child.
        position: usize,
        /// The position of the parent.
        later: usize,
    },
}

fn names(ids: &[ItemId]) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ")
}

impl Transcript {
    /// Checks the events.
    ///
    /// # Errors
    /// [`TranscriptError`] for the first event, in their order, that breaks a rule.
    pub fn new(items: Vec<ContextItem>) -> Result<Self, TranscriptError> {
        let mut transcript = Self::default();
        let mut rest = items.into_iter();
        while let Some(item) = rest.next() {
            if let Err(error) = transcript.push(item.clone()) {
                return Err(match error {
                    TranscriptError::MissingParent { id, parent, position } => {
                        let ahead: Vec<ContextItem> = std::iter::once(item).chain(rest).collect();
                        ahead_of(&ahead, id, parent, position)
                    }
                    other => other,
                });
            }
        }
        Ok(transcript)
    }

    /// Adds an event at the end.
    ///
    /// # Errors
    /// [`TranscriptError::Duplicate`], [`TranscriptError::MissingParent`] or, for a parent of itself,
    /// [`TranscriptError::Cycle`]; the transcript is then unchanged.
    pub fn push(&mut self, item: ContextItem) -> Result<(), TranscriptError> {
        let position = self.items.len() + 1;
        if let Some(&first) = self.places.get(&item.id) {
            return Err(TranscriptError::Duplicate { id: item.id, first: first as usize + 1, second: position });
        }
        let parent = match &item.parent_id {
            None => None,
            Some(parent) => match self.places.get(parent) {
                Some(&place) => Some(place),
                None if *parent == item.id => {
                    return Err(TranscriptError::Cycle { through: vec![item.id.clone()], id: item.id, position });
                }
                None => {
                    return Err(TranscriptError::MissingParent { parent: parent.clone(), id: item.id, position });
                }
            },
        };
        self.places.insert(item.id.clone(), self.items.len() as u32);
        self.items.push(item);
        self.parents.push(parent);
        Ok(())
    }

    /// The event with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&ContextItem> {
        self.places.get(id).and_then(|&place| self.items.get(place as usize))
    }

    /// The position (from 0) of the event with this id.
    #[must_use]
    pub fn position(&self, id: &str) -> Option<usize> {
        self.places.get(id).map(|&place| place as usize)
    }

    /// All events, in order.
    #[must_use]
    pub fn items(&self) -> &[ContextItem] {
        &self.items
    }

    /// The position (from 0) of the parent of the event at `position`, which is always smaller.
    #[must_use]
    pub fn parent(&self, position: usize) -> Option<usize> {
        self.parents.get(position).copied().flatten().map(|parent| parent as usize)
    }

    /// The number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is no event yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The events, consuming the transcript.
    #[must_use]
    pub fn into_items(self) -> Vec<ContextItem> {
        self.items
    }
}

/// Why the parent of the first event of `ahead`, which is at `position`, is not among the events before it.
fn ahead_of(ahead: &[ContextItem], id: ItemId, parent: ItemId, position: usize) -> TranscriptError {
    let places: HashMap<&ItemId, usize> = ahead.iter().enumerate().map(|(place, item)| (&item.id, place)).collect();
    let mut through: Vec<ItemId> = Vec::new();
    let mut next = Some(&parent);
    while let Some(&place) = next.and_then(|id| places.get(id)).filter(|_| through.len() < ahead.len()) {
        through.push(ahead[place].id.clone());
        if place == 0 {
            return TranscriptError::Cycle { id, through, position };
        }
        next = ahead[place].parent_id.as_ref();
    }
    match places.get(&parent) {
        Some(&place) => TranscriptError::LateParent { id, parent, position, later: position + place },
        None => TranscriptError::MissingParent { id, parent, position },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ItemKind;

    fn checked(events: &[(&str, Option<&str>)]) -> Result<Transcript, String> {
        let item = |(id, parent): &(&str, Option<&str>)| {
            let item = ContextItem::new(*id, ItemKind::UserTurn, "text");
            match parent {
                Some(parent) => item.under(*parent),
                None => item,
            }
        };
        Transcript::new(events.iter().map(item).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn parents_are_found_before_their_children() {
        let transcript = checked(&[("a", None), ("b", Some("a")), ("c", None), ("d", Some("b"))]).unwrap();
        let parents: Vec<Option<usize>> = (0..5).map(|position| transcript.parent(position)).collect();
        assert_eq!(parents, [None, Some(0), None, Some(1), None]);
    }

    #[test]
    fn what_is_no_transcript_is_refused_by_name_and_place() {
        let refused = |events: &[(&str, Option<&str>)]| checked(events).unwrap_err();
        insta::assert_snapshot!(refused(&[("a", None), ("a", None)]), @"event 2: event 1 already has the id `a`; ids must be unique");
        insta::assert_snapshot!(refused(&[("a", Some("x"))]), @"event 1 (`a`): its parent `x` is not in the log");
        insta::assert_snapshot!(refused(&[("a", Some("b")), ("b", None)]), @"event 1 (`a`): its parent `b` comes later, as event 2; write events in time order");
        insta::assert_snapshot!(refused(&[("a", Some("b")), ("b", Some("a"))]), @"event 1 (`a`) is its own ancestor, via `b`, `a`");
        insta::assert_snapshot!(refused(&[("a", Some("a"))]), @"event 1 (`a`) is its own ancestor, via `a`");
    }
}

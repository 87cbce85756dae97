//! Stage 1: the events whose kind the phase reads.

use crate::event::{ItemKind, Transcript};

/// The positions of the events of the given kinds, in time order.
pub(super) fn generate(transcript: &Transcript, kinds: &[ItemKind]) -> Vec<usize> {
    let items = transcript.items().iter().enumerate();
    items.filter(|(_, item)| kinds.contains(&item.kind)).map(|(position, _)| position).collect()
}

//! What was added to a catalog and removed from it since its index was built.
//!
//! Adding, changing or removing a few tools must not cost as much as indexing all of them. The index of the earlier
//! catalog stays as it is; new and changed items get an image of their own beside it, made with the statistics of the
//! first, and removed items are left out of every search. A patched index therefore depends on the two catalogs alone,
//! not on the steps between them, and its scores are those that the first index would give: idf and mean lengths stay
//! as they were until everything is indexed anew.

use rustc_hash::FxHashMap;

use super::config::RoutingConfig;
use super::hit::Hit;
use super::image::Image;
use super::index::{Index, TermId};
use super::indexing;
use super::postings::Lists;
use contextweaver_core::catalog::{Catalog, SelectableItem};

/// The second image of a patched index and how the two fit together.
#[derive(Debug)]
pub(super) struct Patch {
    pub(super) image: Image,
    /// The items of the first image that were removed, ascending.
    pub(super) gone: Vec<u32>,
    /// Per image and item its number in the catalog, or [`NONE`].
    numbers: [Vec<u32>; 2],
    /// Per item of the catalog its image and its number there.
    places: Vec<(Side, u32)>,
    /// Per term or pair of the second image its number in the index.
    pub(super) terms: Vec<TermId>,
    /// The inverse of `terms`.
    own_terms: FxHashMap<TermId, TermId>,
}

/// One of the two images of a patched index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    First,
    Second,
}

/// The number of an item that was removed.
const NONE: u32 = u32::MAX;

/// The largest patch, as one part in this many of the index; beyond it everything is indexed anew.
const LARGEST_SHARE: usize = 8;

impl Patch {
    /// The patch from `index`, built from `old`, to `new`; `None` when it would be larger than is worth it.
    pub(super) fn between(index: &Index, old: &Catalog, new: &Catalog, config: &RoutingConfig) -> Option<Self> {
        let mut patch = Self {
            image: Image::default(),
            gone: Vec::new(),
            numbers: [vec![NONE; old.len()], Vec::new()],
            places: Vec::with_capacity(new.len()),
            terms: Vec::new(),
            own_terms: FxHashMap::default(),
        };
        let mut added: Vec<&SelectableItem> = Vec::new();
        let mut before = old.items().iter().zip(0u32..).peekable();
        for (item, number) in new.items().iter().zip(0u32..) {
            while let Some((_, gone)) = before.next_if(|(other, _)| other.id < item.id) {
                patch.gone.push(gone);
            }
            match before.next_if(|(other, _)| other.id == item.id) {
                Some((other, same)) if is_indexed_alike(item, other) => {
                    patch.places.push((Side::First, same));
                    patch.numbers[0][same as usize] = number;
                    continue;
                }
                Some((_, changed)) => patch.gone.push(changed),
                None => {}
            }
            patch.places.push((Side::Second, added.len() as u32));
            patch.numbers[1].push(number);
            added.push(item);
        }
        patch.gone.extend(before.map(|(_, gone)| gone));
        if patch.gone.len().max(added.len()) * LARGEST_SHARE > old.len() {
            return None;
        }
        patch.image = indexing::build(&added, config, Some(index), index.table());
        patch.terms = index.numbers_of(&patch.image);
        patch.own_terms = patch.terms.iter().copied().zip(0..).collect();
        Some(patch)
    }

    /// The number of items of the catalog.
    pub(super) fn items(&self) -> usize {
        self.places.len()
    }

    /// The number of items of the second image.
    pub(super) fn added(&self) -> usize {
        let [_, second] = &self.numbers;
        second.len()
    }

    /// The lists of postings of the second image.
    pub(super) fn lists(&self) -> Lists<'_> {
        Lists::of(&self.image, self.added(), &[])
    }

    /// The number in the catalog of an item of one image; `None` for a removed item.
    pub(super) fn number(&self, side: Side, item: u32) -> Option<u32> {
        self.numbers[side as usize].get(item as usize).copied().filter(|number| *number != NONE)
    }

    /// The image of an item of the catalog and its number there.
    pub(super) fn place(&self, item: u32) -> Option<(Side, u32)> {
        self.places.get(item as usize).copied()
    }

    /// The values of the items of both images, by item of the catalog.
    pub(super) fn arranged<T: Copy + Default>(&self, first: &[T], second: &[T]) -> Vec<T> {
        let of = |&(side, item): &(Side, u32)| {
            let values = match side {
                Side::First => first,
                Side::Second => second,
            };
            values.get(item as usize).copied().unwrap_or_default()
        };
        self.places.iter().map(of).collect()
    }

    /// The hits of both images in one ranking, by item of the catalog, without those that were removed.
    pub(super) fn merged(&self, first: &[Hit], second: &[Hit]) -> Vec<Hit> {
        let numbered = |side| move |hit: &Hit| Some(Hit { item: self.number(side, hit.item)?, ..*hit });
        let both =
            first.iter().filter_map(numbered(Side::First)).chain(second.iter().filter_map(numbered(Side::Second)));
        let mut hits: Vec<Hit> = both.collect();
        hits.sort_unstable_by_key(Hit::order);
        hits
    }

    /// The number in the second image of a term or pair of the index.
    pub(super) fn own_term(&self, term: TermId) -> Option<TermId> {
        self.own_terms.get(&term).copied()
    }
}

/// Whether two items of one id have the same searchable text.
fn is_indexed_alike(one: &SelectableItem, other: &SelectableItem) -> bool {
    let schemas = match (&one.raw, &other.raw) {
        (Some(one), Some(other)) if one.get() == other.get() => true,
        _ => one.args_schema == other.args_schema,
    };
    schemas
        && one.name == other.name
        && one.namespace == other.namespace
        && one.description == other.description
        && one.tags == other.tags
        && one.server == other.server
        && one.server_description == other.server_description
}

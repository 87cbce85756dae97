//! What may be shown, whatever the query: exclusions and allow lists, pins and quotas.
//!
//! A [`Filter`] is data from a file or a caller. [`Filter::compile`] checks it against a catalog once: a name that the
//! catalog does not have is an error, because a misspelt exclusion would silently exclude nothing. Exclusions and allow
//! lists (the *gates*) apply before scoring; pins and quotas apply to the resulting ranking.
//!
//! Filters choose what is offered. They are not an authorization: safety is declared by servers and unverified.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use contextweaver_core::catalog::{Catalog, Safety, SelectableItem};

/// Which items may be shown and how the shown ones are chosen. Empty by default: everything is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Ids that are not shown.
    pub exclude_ids: Vec<String>,
    /// Items with any of these tags are not shown.
    pub exclude_tags: Vec<String>,
    /// When not empty, only items of these namespaces are shown.
    pub allow_namespaces: Vec<String>,
    /// When not empty, only items with at least one of these tags are shown.
    pub allow_tags: Vec<String>,
    /// Items that declare one of these classes are not shown: `["destructive"]`; `["destructive", ""]` leaves only
    /// those that are declared read-only.
    pub refuse_safety: BTreeSet<Safety>,
    /// Whether only items that a model calls are shown: tools, agents and skills, not resources and prompts.
    pub callable_only: bool,
    /// Ids that stand first in every result, in this order, whether or not the query found them. The gates above
    /// win over a pin.
    pub pins: Vec<String>,
    /// The number of items of one namespace in a result at most.
    pub namespace_quota: Option<NonZeroUsize>,
}

/// The kind of name that a filter uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The id of an item.
    Id,
    /// The namespace of items.
    Namespace,
    /// A tag of items.
    Tag,
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Id => "id",
            Self::Namespace => "namespace",
            Self::Tag => "tag",
        })
    }
}

impl Subject {
    fn exists(self, name: &str, catalog: &Catalog) -> bool {
        match self {
            Self::Id => catalog.get(name).is_some(),
            Self::Namespace => catalog.items().iter().any(|item| item.namespace == name),
            Self::Tag => catalog.items().iter().any(|item| item.tags.iter().any(|tag| tag == name)),
        }
    }

    fn names(self, catalog: &Catalog) -> BTreeSet<&str> {
        let items = catalog.items().iter();
        match self {
            Self::Id => items.map(|item| item.id.as_str()).collect(),
            Self::Namespace => items.map(|item| item.namespace.as_str()).collect(),
            Self::Tag => items.flat_map(|item| &item.tags).map(String::as_str).collect(),
        }
    }
}

/// Why a filter does not fit a catalog.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The catalog does not have what a field names.
    #[error("{field}: no item has the {subject} `{value}`{}", nearest.as_deref().map(|one| format!("; did you mean `{one}`?")).unwrap_or_default())]
    Unknown {
        /// The field of [`Filter`] with the name.
        field: &'static str,
        /// The kind of name.
        subject: Subject,
        /// The name that was not found.
        value: String,
        /// The most similar name of the catalog, when one is similar.
        nearest: Option<String>,
    },
    /// No item passes; the number is that of the catalog's items.
    #[error("the filter leaves none of {0} items; loosen exclude_*, allow_*, refuse_safety or callable_only")]
    NothingLeft(usize),
}

/// The items that a filter allows. At least one item is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowSet {
    items: u32,
    gate: Gate,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Gate {
    /// Every item passes: a filter without gates needs no look at the catalog.
    Open,
    /// One bit per item number; a set bit lets the item pass.
    Bits(Vec<u64>),
}

impl AllowSet {
    /// Whether the item with this number may be shown; false for numbers outside the catalog.
    #[must_use]
    pub fn allows(&self, item: u32) -> bool {
        match &self.gate {
            Gate::Open => item < self.items,
            Gate::Bits(words) => words.get(item as usize / 64).is_some_and(|word| word >> (item % 64) & 1 == 1),
        }
    }

    /// How many items may be shown; never zero.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a set is never empty")]
    pub fn len(&self) -> usize {
        match &self.gate {
            Gate::Open => self.items as usize,
            Gate::Bits(words) => words.iter().map(|word| word.count_ones() as usize).sum(),
        }
    }
}

/// Why an item is in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// It is pinned; its score did not matter.
    Pinned,
    /// The query found it.
    Ranked,
}

/// One item of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placed {
    /// The item's number in the catalog.
    pub item: u32,
    /// Its score; 0 for a pinned item that the query did not find.
    pub score: u64,
    /// Why it is there.
    pub placement: Placement,
    /// Its position in the ranking; `None` for a pinned item that is not in it.
    pub position: Option<usize>,
}

impl Filter {
    /// The items of `catalog` that pass every gate.
    ///
    /// # Errors
    /// [`FilterError::Unknown`] for the first id, namespace or tag that the catalog does not have (pins included),
    /// [`FilterError::NothingLeft`] when no item passes.
    pub fn compile(&self, catalog: &Catalog) -> Result<AllowSet, FilterError> {
        self.check_names(catalog)?;
        let items = catalog.len() as u32;
        if self.is_open() && items > 0 {
            return Ok(AllowSet { items, gate: Gate::Open });
        }
        let mut words = vec![0u64; catalog.len().div_ceil(64)];
        for (number, item) in catalog.items().iter().enumerate() {
            words[number / 64] |= u64::from(self.passes(item)) << (number % 64);
        }
        for number in self.exclude_ids.iter().filter_map(|id| catalog.position(id)) {
            words[number / 64] &= !(1 << (number % 64));
        }
        let allowed = AllowSet { items, gate: Gate::Bits(words) };
        if allowed.len() == 0 { Err(FilterError::NothingLeft(catalog.len())) } else { Ok(allowed) }
    }

    /// The `top_k` items to show out of `ranked` (best first, no item twice).
    ///
    /// Pinned items come first, in the order of [`Self::pins`]; then ranked ones in their order, skipping an item
    /// whose namespace has reached its quota. Pins count towards `top_k` and towards the quota, but neither removes a
    /// pin. Items that `allowed` does not hold are left out.
    pub(super) fn apply_quota_and_pins(
        &self,
        ranked: &[(u32, u64)],
        catalog: &Catalog,
        allowed: &AllowSet,
        top_k: usize,
    ) -> Vec<Placed> {
        let mut placed: Vec<Placed> = Vec::new();
        for item in self.pins.iter().filter_map(|id| catalog.position(id)).map(|number| number as u32) {
            if allowed.allows(item) && !placed.iter().any(|earlier| earlier.item == item) {
                let position = ranked.iter().position(|(other, _)| *other == item);
                let score = position.map_or(0, |at| ranked[at].1);
                placed.push(Placed { item, score, placement: Placement::Pinned, position });
            }
        }
        let namespace = |item: u32| catalog.items().get(item as usize).map_or("", |item| item.namespace.as_str());
        let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
        for pin in &placed {
            *taken.entry(namespace(pin.item)).or_default() += 1;
        }
        let quota = self.namespace_quota.map_or(usize::MAX, NonZeroUsize::get);
        let pinned = placed.len();
        for (position, &(item, score)) in ranked.iter().enumerate() {
            if placed.len() >= top_k {
                break;
            }
            let is_pinned = placed[..pinned].iter().any(|pin| pin.item == item);
            let of_namespace = taken.entry(namespace(item)).or_default();
            if allowed.allows(item) && !is_pinned && *of_namespace < quota {
                *of_namespace += 1;
                placed.push(Placed { item, score, placement: Placement::Ranked, position: Some(position) });
            }
        }
        placed
    }

    /// Whether there is no gate; pins and quotas keep nothing out.
    fn is_open(&self) -> bool {
        self.exclude_ids.is_empty()
            && self.exclude_tags.is_empty()
            && self.allow_namespaces.is_empty()
            && self.allow_tags.is_empty()
            && self.refuse_safety.is_empty()
            && !self.callable_only
    }

    /// Whether `item` passes every gate except the excluded ids.
    fn passes(&self, item: &SelectableItem) -> bool {
        let has_any = |tags: &[String]| item.tags.iter().any(|tag| tags.contains(tag));
        !has_any(&self.exclude_tags)
            && (self.allow_namespaces.is_empty() || self.allow_namespaces.contains(&item.namespace))
            && (self.allow_tags.is_empty() || has_any(&self.allow_tags))
            && !self.refuse_safety.contains(&item.safety)
            && (!self.callable_only || item.kind.is_callable())
    }

    fn check_names(&self, catalog: &Catalog) -> Result<(), FilterError> {
        let fields = [
            ("exclude_ids", Subject::Id, &self.exclude_ids),
            ("exclude_tags", Subject::Tag, &self.exclude_tags),
            ("allow_namespaces", Subject::Namespace, &self.allow_namespaces),
            ("allow_tags", Subject::Tag, &self.allow_tags),
            ("pins", Subject::Id, &self.pins),
        ];
        for (field, subject, values) in fields {
            if let Some(value) = values.iter().find(|value| !subject.exists(value, catalog)) {
                let nearest = nearest(value, &subject.names(catalog));
                return Err(FilterError::Unknown { field, subject, value: value.clone(), nearest });
            }
        }
        Ok(())
    }
}

/// The least similarity (Jaro–Winkler) at which a name is proposed.
const SIMILAR: f64 = 0.7;

/// The number of characters of a wrong name that are compared; no id is longer.
const COMPARED: usize = 240;

/// The name most similar to `value`; of equally similar ones the first in order, and none where all are too different.
#[must_use]
pub fn nearest(value: &str, known: &BTreeSet<&str>) -> Option<String> {
    let value: String = value.chars().take(COMPARED).collect();
    let mut best: Option<(&str, f64)> = None;
    for name in known {
        let similarity = strsim::jaro_winkler(&value, name);
        if similarity >= best.map_or(SIMILAR, |(_, most)| most.next_up()) {
            best = Some((name, similarity));
        }
    }
    best.map(|(name, _)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use contextweaver_core::catalog::Kind;

    /// Items `a:x` … with their tags and safety.
    fn catalog() -> Catalog {
        let item = |id: &str, tags: &[&str], safety: Safety| SelectableItem {
            kind: if id == "web:get" { Kind::Resource } else { Kind::Tool },
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            safety,
            ..SelectableItem::tool(id, id.split(':').next().unwrap(), "x", "")
        };
        Catalog::new(vec![
            item("files:delete", &["destructive", "disk"], Safety::Destructive),
            item("files:list", &["disk", "read-only"], Safety::ReadOnly),
            item("files:read", &["disk", "read-only"], Safety::ReadOnly),
            item("mail:list", &["read-only"], Safety::ReadOnly),
            item("mail:send", &[], Safety::Undeclared),
            item("web:get", &["net", "read-only"], Safety::ReadOnly),
        ])
        .unwrap()
    }

    fn filter(toml: &str) -> Filter {
        toml::from_str(toml).unwrap()
    }

    #[test]
    fn gates_let_through_what_they_name() {
        let catalog = catalog();
        let table = [
            "",
            "exclude_ids = ['mail:send', 'web:get']",
            "exclude_tags = ['disk']",
            "allow_namespaces = ['mail', 'web']",
            "allow_tags = ['disk', 'net']",
            "allow_namespaces = ['files']\nallow_tags = ['read-only']",
            "refuse_safety = ['destructive']",
            "refuse_safety = ['destructive', '']",
            "callable_only = true",
            "callable_only = true\nallow_namespaces = ['web']",
            "exclude_ids = ['files:list']\npins = ['files:list']",
            "exclude_tags = ['disk']\nallow_namespaces = ['files']",
            "exclude_ids = ['mail:sent']",
            "allow_namespaces = ['Files']",
            "allow_tags = ['zzz']",
            "pins = ['web']",
        ];
        let seen: Vec<String> = table
            .iter()
            .map(|text| match filter(text).compile(&catalog) {
                Ok(allowed) => {
                    let ids: Vec<&str> = (0..100)
                        .filter(|item| allowed.allows(*item))
                        .map(|item| catalog.items()[item as usize].id.as_str())
                        .collect();
                    format!("{text:?} {}: {}", allowed.len(), ids.join(" "))
                }
                Err(error) => format!("{text:?} {error}"),
            })
            .collect();
        insta::assert_snapshot!(seen.join("\n"), @r#"
        "" 6: files:delete files:list files:read mail:list mail:send web:get
        "exclude_ids = ['mail:send', 'web:get']" 4: files:delete files:list files:read mail:list
        "exclude_tags = ['disk']" 3: mail:list mail:send web:get
        "allow_namespaces = ['mail', 'web']" 3: mail:list mail:send web:get
        "allow_tags = ['disk', 'net']" 4: files:delete files:list files:read web:get
        "allow_namespaces = ['files']\nallow_tags = ['read-only']" 2: files:list files:read
        "refuse_safety = ['destructive']" 5: files:list files:read mail:list mail:send web:get
        "refuse_safety = ['destructive', '']" 4: files:list files:read mail:list web:get
        "callable_only = true" 5: files:delete files:list files:read mail:list mail:send
        "callable_only = true\nallow_namespaces = ['web']" the filter leaves none of 6 items; loosen exclude_*, allow_*, refuse_safety or callable_only
        "exclude_ids = ['files:list']\npins = ['files:list']" 5: files:delete files:read mail:list mail:send web:get
        "exclude_tags = ['disk']\nallow_namespaces = ['files']" the filter leaves none of 6 items; loosen exclude_*, allow_*, refuse_safety or callable_only
        "exclude_ids = ['mail:sent']" exclude_ids: no item has the id `mail:sent`; did you mean `mail:send`?
        "allow_namespaces = ['Files']" allow_namespaces: no item has the namespace `Files`; did you mean `files`?
        "allow_tags = ['zzz']" allow_tags: no item has the tag `zzz`
        "pins = ['web']" pins: no item has the id `web`; did you mean `web:get`?
        "#);
    }

    #[test]
    fn files_with_other_fields_are_refused() {
        assert!(toml::from_str::<Filter>("exclude = ['a']").is_err());
        assert!(toml::from_str::<Filter>("namespace_quota = 0").is_err());
        assert!(toml::from_str::<Filter>("refuse_safety = ['dangerous']").is_err());
        let full = filter("pins = ['files:list']\nnamespace_quota = 2\nrefuse_safety = ['destructive']");
        assert_eq!(toml::from_str::<Filter>(&toml::to_string(&full).unwrap()).unwrap(), full);
    }

    #[test]
    fn pins_come_first_and_quotas_skip() {
        let catalog = catalog();
        // Best first: files:list files:read files:delete mail:list mail:send.
        let ranked = [(1, 90), (2, 80), (0, 70), (3, 60), (4, 50)];
        let table = [
            ("", 3),
            ("", 10),
            ("pins = ['web:get', 'files:read', 'web:get']", 4),
            ("namespace_quota = 1", 10),
            ("pins = ['files:read', 'files:delete']\nnamespace_quota = 1", 10),
            ("pins = ['files:read', 'mail:send', 'web:get']", 2),
            ("pins = ['files:delete', 'mail:send']\nrefuse_safety = ['destructive']", 3),
            ("exclude_tags = ['disk']", 10),
        ];
        let seen: Vec<String> = table
            .iter()
            .map(|(text, top_k)| {
                let filter = filter(text);
                let allowed = filter.compile(&catalog).unwrap();
                let shown = filter.apply_quota_and_pins(&ranked, &catalog, &allowed, *top_k);
                let shown: Vec<String> = shown
                    .iter()
                    .map(|one| format!("{} {} {:?}", catalog.items()[one.item as usize].id, one.score, one.placement))
                    .collect();
                format!("{text:?} {top_k}: {}", shown.join(", "))
            })
            .collect();
        insta::assert_snapshot!(seen.join("\n"), @r#"
        "" 3: files:list 90 Ranked, files:read 80 Ranked, files:delete 70 Ranked
        "" 10: files:list 90 Ranked, files:read 80 Ranked, files:delete 70 Ranked, mail:list 60 Ranked, mail:send 50 Ranked
        "pins = ['web:get', 'files:read', 'web:get']" 4: web:get 0 Pinned, files:read 80 Pinned, files:list 90 Ranked, files:delete 70 Ranked
        "namespace_quota = 1" 10: files:list 90 Ranked, mail:list 60 Ranked
        "pins = ['files:read', 'files:delete']\nnamespace_quota = 1" 10: files:read 80 Pinned, files:delete 70 Pinned, mail:list 60 Ranked
        "pins = ['files:read', 'mail:send', 'web:get']" 2: files:read 80 Pinned, mail:send 50 Pinned, web:get 0 Pinned
        "pins = ['files:delete', 'mail:send']\nrefuse_safety = ['destructive']" 3: mail:send 50 Pinned, files:list 90 Ranked, files:read 80 Ranked
        "exclude_tags = ['disk']" 10: mail:list 60 Ranked, mail:send 50 Ranked
        "#);
    }

    proptest! {
        #[test]
        fn results_obey_the_filter(
            order in Just((0u32..130).collect::<Vec<u32>>()).prop_shuffle(),
            pins in proptest::collection::vec(0usize..130, 0..5),
            excluded in proptest::collection::btree_set(0usize..130, 0..60),
            quota in 1usize..4,
            top_k in 0usize..20,
        ) {
            let id = |number: usize| format!("n{}:{number:03}", number % 7);
            let items = (0..130).map(|number| SelectableItem::tool(&id(number), &format!("n{}", number % 7), "x", ""));
            let catalog = Catalog::new(items.collect()).unwrap();
            let filter = Filter {
                exclude_ids: excluded.iter().copied().map(id).collect(),
                pins: pins.iter().copied().map(id).collect(),
                namespace_quota: NonZeroUsize::new(quota),
                ..Filter::default()
            };
            let allowed = filter.compile(&catalog).unwrap();
            prop_assert_eq!(allowed.len(), 130 - excluded.len());
            let ranked: Vec<(u32, u64)> = order.iter().map(|item| (*item, 1000)).collect();
            let shown = filter.apply_quota_and_pins(&ranked, &catalog, &allowed, top_k);
            let is_pin = |one: &Placed| filter.pins.contains(&catalog.items()[one.item as usize].id);
            let pinned = shown.iter().filter(|one| is_pin(one)).count();
            prop_assert_eq!(shown.iter().take_while(|one| one.placement == Placement::Pinned).count(), pinned);
            prop_assert!(shown.len() <= top_k.max(pinned));
            prop_assert_eq!(shown.iter().map(|one| one.item).collect::<BTreeSet<_>>().len(), shown.len());
            for one in &shown {
                prop_assert!(!filter.exclude_ids.contains(&catalog.items()[one.item as usize].id));
            }
            for (at, one) in shown.iter().enumerate().filter(|(_, one)| one.placement == Placement::Ranked) {
                let namespace = |one: &Placed| &catalog.items()[one.item as usize].namespace;
                prop_assert!(shown[..at].iter().filter(|other| namespace(other) == namespace(one)).count() < quota);
            }
        }
    }
}

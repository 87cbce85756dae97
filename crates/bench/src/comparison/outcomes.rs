//! What became of each item: the one form that everything comparable is read into.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;

use crate::eval::collection::Collection;
use crate::eval::measure::{Found, Measure};
use crate::eval::ranks::Ranks;

/// A measurement, item by item.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcomes {
    /// What it is called in tables: a file or an engine.
    pub name: String,
    /// The name of the score, where the items have scores; `None` where they have ranks.
    pub score: Option<String>,
    /// The items by set: one set for each collection.
    pub sets: BTreeMap<String, ItemSet>,
    /// Sets on which nothing could be measured, with the reason.
    pub failed: BTreeMap<String, String>,
    /// Whether it was recorded of an engine by the door of others.
    pub is_recorded: bool,
}

/// The items of one set.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ItemSet {
    /// A digest of the catalog and the queries, where the source states one.
    pub inputs: Option<String>,
    /// Whether the ids only number the queries in the order of their file. Then a number means the same query only where the
    /// inputs are the same.
    pub in_order: bool,
    /// What became of each item, by its id.
    pub items: BTreeMap<String, Value>,
    /// The tools that an item needs, by its id; empty where they are not known.
    pub tools: BTreeMap<String, Vec<String>>,
    /// What was asked, by id; empty where it is not known.
    pub texts: BTreeMap<String, String>,
    /// A digest of what was asked and of what answers it, by id; empty where none is stated.
    pub digests: BTreeMap<String, String>,
    /// Other digests of the same, by id: those that a file has in which tools go by another name.
    pub other_digests: BTreeMap<String, BTreeSet<String>>,
}

/// An item that base and head both have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alike<'o> {
    /// Its id in the base.
    pub base_id: &'o str,
    /// Its id in the head.
    pub head_id: &'o str,
    /// What became of it in the base.
    pub base: &'o Value,
    /// What became of it in the head.
    pub head: &'o Value,
}

/// What became of one item.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// The rank (from 1) of each tool that it needs; `None` where it was not found.
    Ranks(Vec<Option<usize>>),
    /// A score; higher is better.
    Score(f64),
}

impl Value {
    /// The value of a measure; a score is what it is.
    #[must_use]
    pub fn of(&self, measure: Measure) -> f64 {
        match self {
            Self::Ranks(ranks) => Found::at(ranks.clone()).map_or(0.0, |found| measure.of(&found)),
            Self::Score(score) => *score,
        }
    }

    /// How high the tools stand: what tells two losses apart that are equal by the measure.
    pub(super) fn height(&self) -> f64 {
        match self {
            Self::Ranks(ranks) => ranks.iter().map(|rank| rank.map_or(0.0, |rank| 1.0 / rank as f64)).sum(),
            Self::Score(score) => *score,
        }
    }
}

impl Outcomes {
    /// Why a set is not there, as the end of a sentence.
    pub(super) fn failure(&self, set: &str) -> String {
        self.failed.get(set).map_or_else(String::new, |reason| format!(": {reason}"))
    }
}

impl ItemSet {
    /// The items that `self`, the base, and `head` both have, in the order of the ids of `head`. Queries of one id are a
    /// pair unless something says that they are not the same: their digests, else their texts or the tools that they need,
    /// or how many of these there are. Queries that are left are paired by their digests, then by their texts, those that
    /// are asked several times in the order of their ids.
    #[must_use]
    pub fn alike<'o>(&'o self, head: &'o Self) -> Vec<Alike<'o>> {
        if (self.in_order || head.in_order) && self.inputs != head.inputs {
            return Vec::new();
        }
        let mut partners: BTreeMap<&str, &str> = BTreeMap::new();
        let same_ids = head.items.keys().filter(|id| self.items.contains_key(*id) && self.asks_the_same(id, head, id));
        partners.extend(same_ids.map(|id| (id.as_str(), id.as_str())));
        for (own_words, head_words) in [(&self.digests, &head.digests), (&self.texts, &head.texts)] {
            let taken: BTreeSet<&str> = partners.values().copied().collect();
            let mut open: BTreeMap<&str, VecDeque<&str>> = BTreeMap::new();
            for id in self.items.keys().filter(|id| !taken.contains(id.as_str())) {
                if let Some(words) = own_words.get(id) {
                    open.entry(words).or_default().push_back(id);
                }
            }
            for id in head.items.keys() {
                let Some(asked) = head_words.get(id).filter(|_| !partners.contains_key(id.as_str())) else { continue };
                let Some(ids) = open.get_mut(asked.as_str()) else { continue };
                let place = ids.iter().position(|base_id| self.asks_the_same(base_id, head, id));
                if let Some(base_id) = place.and_then(|place| ids.remove(place)) {
                    partners.insert(id, base_id);
                }
            }
        }
        let alike = |(head_id, base_id): (&'o str, &'o str)| {
            Some(Alike { base_id, head_id, base: self.items.get(base_id)?, head: head.items.get(head_id)? })
        };
        partners.into_iter().filter_map(alike).collect()
    }

    /// Whether nothing says that an item of this set is another one than one of `head`.
    fn asks_the_same(&self, id: &str, head: &Self, head_id: &str) -> bool {
        if let (Some(Value::Ranks(base)), Some(Value::Ranks(head))) = (self.items.get(id), head.items.get(head_id))
            && base.len() != head.len()
        {
            return false;
        }
        if let (Some(own), Some(other)) = (self.digests.get(id), head.digests.get(head_id)) {
            let also = |set: &Self, id: &str, digest| set.other_digests.get(id).is_some_and(|all| all.contains(digest));
            return own == other || also(head, head_id, own) || also(self, id, other);
        }
        fn agree<T>(base: Option<&T>, head: Option<&T>, same: impl Fn(&T, &T) -> bool) -> bool {
            base.zip(head).is_none_or(|(base, head)| same(base, head))
        }
        let same_tools = |base: &Vec<String>, head: &Vec<String>| {
            base.len() == head.len() && base.iter().zip(head).all(|(base, head)| is_same_tool(base, head))
        };
        agree(self.texts.get(id), head.texts.get(head_id), PartialEq::eq)
            && agree(self.tools.get(id), head.tools.get(head_id), same_tools)
    }

    /// The same items with what `collection` says of its queries, when they were measured on it: ids in place of numbers,
    /// and texts, tools and digests that are not known yet.
    #[must_use]
    pub fn named_by(mut self, collection: &Collection) -> Self {
        let answerable = collection.queries.iter().filter(|query| !query.groups.is_empty()).count();
        if self.inputs.as_ref() != Some(&collection.inputs_sha256) || self.items.len() != answerable {
            return self;
        }
        if self.in_order {
            let ranks = self.items.into_values().map(|value| match value {
                Value::Ranks(ranks) => ranks,
                Value::Score(_) => Vec::new(),
            });
            return Self::of(collection, &Ranks::from_iter(ranks));
        }
        let known = Self::of(collection, &Ranks::from_iter(std::iter::repeat_n(Vec::new(), answerable)));
        for (id, tools) in known.tools {
            self.tools.entry(id).or_insert(tools);
        }
        for (id, digests) in known.other_digests {
            self.other_digests.entry(id).or_insert(digests);
        }
        for (own, known) in [(&mut self.texts, known.texts), (&mut self.digests, known.digests)] {
            for (id, words) in known {
                own.entry(id).or_insert(words);
            }
        }
        self
    }

    /// The ranks of the answerable queries of `collection`, which `ranks` has in their order.
    #[must_use]
    pub fn of(collection: &Collection, ranks: &Ranks) -> Self {
        let (inputs, digests) = (Some(collection.inputs_sha256.clone()), collection.digests());
        let mut set = Self { inputs, digests, other_digests: collection.digests_by_handle(), ..Self::default() };
        let answerable = collection.queries.iter().filter(|query| !query.groups.is_empty());
        for (query, ranks) in answerable.zip(ranks.iter()) {
            let named = query.groups.iter().filter_map(|group| group.first());
            let tools = named.map(|item| collection.tool_handle(*item).to_owned()).collect();
            set.items.insert(query.id.clone(), Value::Ranks(ranks.to_vec()));
            set.tools.insert(query.id.clone(), tools);
            set.texts.insert(query.id.clone(), query.text.clone());
        }
        set
    }

    /// The ranks of queries of which only the order is known.
    #[must_use]
    pub fn in_order(inputs: &str, ranks: &Ranks) -> Self {
        let width = ranks.queries().to_string().len();
        let item = |(number, ranks): (usize, &[Option<usize>])| {
            (format!("answerable query {:0width$}", number + 1), Value::Ranks(ranks.to_vec()))
        };
        let items = ranks.iter().enumerate().map(item).collect();
        Self { inputs: Some(inputs.to_owned()), in_order: true, items, ..Self::default() }
    }
}

/// Whether two handles can be of one tool: the server stands in front of the name where another tool has the name too.
fn is_same_tool(left: &str, right: &str) -> bool {
    let is_end = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|server| server.ends_with(':'));
    left == right || is_end(left, right) || is_end(right, left)
}

//! What became of each item: the one form that everything comparable is read into.

use std::collections::BTreeMap;

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
}

/// The items of one set.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ItemSet {
    /// A digest of the catalog and the queries, where the source states one.
    pub inputs: Option<String>,
    /// What became of each item, by its id.
    pub items: BTreeMap<String, Value>,
    /// The tools that an item needs, by its id; empty where they are not known.
    pub tools: BTreeMap<String, Vec<String>>,
    /// What was asked, by id; empty where it is not known.
    pub texts: BTreeMap<String, String>,
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
    /// The same items with the ids, texts and tools of the queries, when these are the queries of `collection`; the items
    /// are in their order.
    #[must_use]
    pub fn named_by(self, collection: &Collection) -> Self {
        let answerable = collection.queries.iter().filter(|query| !query.groups.is_empty()).count();
        let is_same = self.inputs.as_ref() == Some(&collection.inputs_sha256) && self.items.len() == answerable;
        if !is_same || !self.tools.is_empty() {
            return self;
        }
        let ranks = self.items.into_values().map(|value| match value {
            Value::Ranks(ranks) => ranks,
            Value::Score(_) => Vec::new(),
        });
        Self::of(collection, &Ranks::from_iter(ranks))
    }

    /// The ranks of the answerable queries of `collection`, which `ranks` has in their order.
    #[must_use]
    pub fn of(collection: &Collection, ranks: &Ranks) -> Self {
        let mut set = Self { inputs: Some(collection.inputs_sha256.clone()), ..Self::default() };
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
        Self { inputs: Some(inputs.to_owned()), items: ranks.iter().enumerate().map(item).collect(), ..Self::default() }
    }
}

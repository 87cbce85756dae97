//! The ranks at which the tools of each query were found: what every measure follows from.
//!
//! They are committed beside the means, so that anybody can compute the means again and compare two results query by
//! query, without the engine and without the collection.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::measure::{Found, Measure};
use super::record::Estimate;
use super::statistics::estimate_all;

/// One entry for each answerable query, in the order of the queries file. An entry has the rank (from 1) of each tool that
/// the query needs, or of the first of its equivalents, and `None` where it is not in the ranking.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ranks(Vec<Vec<Option<usize>>>);

impl Ranks {
    /// The ranks of queries, in their order.
    pub fn of<'f>(found: impl IntoIterator<Item = &'f Found>) -> Self {
        Self(found.into_iter().map(|found| found.ranks().to_vec()).collect())
    }

    /// The number of queries.
    #[must_use]
    pub fn queries(&self) -> usize {
        self.0.len()
    }

    /// The ranks of each query.
    pub fn iter(&self) -> impl Iterator<Item = &[Option<usize>]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// The value of a measure for each query.
    #[must_use]
    pub fn values(&self, measure: Measure) -> Vec<f64> {
        self.found().map(|found| found.as_ref().map_or(0.0, |found| measure.of(found))).collect()
    }

    /// The name of every measure with its mean over the queries and the interval of that.
    #[must_use]
    pub fn measures(&self) -> BTreeMap<String, Estimate> {
        let values = |found: Option<Found>| {
            let value = |measure: &Measure| found.as_ref().map_or(0.0, |found| measure.of(found));
            Measure::ALL.iter().map(value).collect()
        };
        let rows: Vec<Vec<f64>> = self.found().map(values).collect();
        Measure::ALL.iter().map(ToString::to_string).zip(estimate_all(&rows)).collect()
    }

    /// A file that was written by hand may have a query without a tool: nothing is found for it.
    fn found(&self) -> impl Iterator<Item = Option<Found>> {
        self.0.iter().map(|ranks| Found::at(ranks.clone()))
    }
}

impl FromIterator<Vec<Option<usize>>> for Ranks {
    fn from_iter<I: IntoIterator<Item = Vec<Option<usize>>>>(ranks: I) -> Self {
        Self(ranks.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_follow_from_the_ranks() {
        let ranks: Ranks = serde_json::from_str("[[1],[null,6],[]]").unwrap();
        assert_eq!(ranks.values(Measure::RECALL_5), [1.0, 0.0, 0.0]);
        let measures = ranks.measures();
        assert_eq!((measures["recall@5"].mean, measures["recall@10"].mean), (0.333333, 0.5));
        assert_eq!(measures.len(), Measure::ALL.len());
        assert_eq!(serde_json::to_string(&ranks).unwrap(), "[[1],[null,6],[]]");
    }
}

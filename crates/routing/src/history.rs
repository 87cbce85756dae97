//! Adjusts a ranking by what the conversation so far says about the next call.
//!
//! A retrieval score knows only the query. Once tools have been called, four more things are known: a tool just used is
//! less likely to be needed again, the last result often points to the next step, and tools may declare what they need
//! and which tools come before them. Each becomes one part of the score, in whole units, so that an explanation adds up
//! exactly.
//!
//! With `b` the item's own score, `B` the best score of the ranking, and `sim` the Jaccard similarity of the last
//! result's summary with the item's name, description and tags:
//!
//! | part | value | when |
//! |---|---|---|
//! | retrieval | `b` | always |
//! | already called | `−⌊b / 2⌋` | the item was called |
//! | last result | `+⌊0.3 · sim · B⌋` | there is a summary |
//! | requirements met | `+⌊B / 5⌋` | the item requires something, and all of it is available |
//! | dependency not called | `−min(⌊B / 5⌋, what is left)` | an item that it depends on was not called |
//!
//! Decided: the additions are relative to `B`, because BM25 scores have no upper bound and a constant would mean
//! something different for every query. Available is what the caller lists and what called items provide. An item that
//! the query did not find (`b = 0`) is not adjusted: history reorders what was found and finds nothing new. A total is
//! never negative. Called ids that the catalog no longer has are ignored, since catalogs change during a conversation.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use contextweaver_core::catalog::{Catalog, SelectableItem};
use contextweaver_core::text::{Analyzer, TermSet, jaccard};

/// Scores are capped here, so that no sum of parts leaves the range of `i64`.
const MAX_SCORE: u64 = 1 << 62;

/// The share of the best score that a summary adds when it equals the item's text.
const LAST_RESULT_SHARE: f64 = 0.3;

/// The best score divided by this is added or subtracted for requirements and dependencies.
const DEPENDENCY_DIVISOR: i64 = 5;

/// What happened before this query. Empty by default: no adjustment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct History {
    /// Ids of the items that were called successfully, in any order.
    pub called: Vec<String>,
    /// The text of the last result's summary.
    pub last_summary: Option<String>,
    /// Names of facts and resources that are available, besides those that called items provide.
    pub available: Vec<String>,
}

/// What a part of a score comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScoreSource {
    /// The match of query and item.
    Retrieval,
    /// The item was already called.
    AlreadyCalled,
    /// The last result is about what the item does.
    LastResult,
    /// Everything that the item requires is available.
    RequirementsMet,
    /// An item that should come before was not called.
    DependencyNotCalled,
}

/// One part of a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScorePart {
    /// What it comes from.
    pub source: ScoreSource,
    /// What it adds, in units of 1 / [`SCORE_UNITS`](super::SCORE_UNITS); negative when it subtracts.
    pub value: i64,
}

/// The sum of the parts; 0 when the sum is negative.
pub(super) fn total_score(parts: &[ScorePart]) -> u64 {
    let sum = parts.iter().fold(0i64, |sum, part| sum.saturating_add(part.value));
    u64::try_from(sum).unwrap_or(0)
}

impl History {
    /// Looks the history up in `catalog`, once for many items.
    pub(super) fn prepare(&self, catalog: &Catalog, analyzer: &Analyzer) -> PreparedHistory {
        let provided = self.called.iter().filter_map(|id| catalog.get(id)).flat_map(|item| &item.provides);
        PreparedHistory {
            called: self.called.iter().cloned().collect(),
            available: self.available.iter().chain(provided).cloned().collect(),
            last_result: self.last_summary.as_ref().map(|summary| TermSet::of(analyzer, summary)),
        }
    }
}

/// A [`History`] in the form that scoring needs.
#[derive(Debug, Clone)]
pub(super) struct PreparedHistory {
    called: BTreeSet<String>,
    available: BTreeSet<String>,
    last_result: Option<TermSet>,
}

impl PreparedHistory {
    /// The parts of the score of `item`: the retrieval score `base` first, then every adjustment that is not zero.
    /// `best` is the highest retrieval score of the ranking. [`total_score`] of the parts is the adjusted score; the
    /// formula is in the module's header. Scores are in units of 1 / [`SCORE_UNITS`](super::SCORE_UNITS) and capped at
    /// 2^62.
    pub(super) fn adjustments(
        &self,
        item: &SelectableItem,
        analyzer: &Analyzer,
        base: u64,
        best: u64,
    ) -> Vec<ScorePart> {
        let units = |score: u64| score.min(MAX_SCORE) as i64;
        let (base, best) = (units(base), units(best));
        let mut parts = vec![ScorePart { source: ScoreSource::Retrieval, value: base }];
        if base == 0 {
            return parts;
        }
        if self.called.contains(&item.id) {
            push_part(&mut parts, ScoreSource::AlreadyCalled, -(base / 2));
        }
        if let Some(last_result) = &self.last_result {
            let similarity = jaccard(last_result, &TermSet::of(analyzer, &text_of(item)));
            push_part(&mut parts, ScoreSource::LastResult, (LAST_RESULT_SHARE * similarity * best as f64) as i64);
        }
        if !item.requires.is_empty() && item.requires.iter().all(|need| self.available.contains(need)) {
            push_part(&mut parts, ScoreSource::RequirementsMet, best / DEPENDENCY_DIVISOR);
        }
        if item.depends_on.iter().any(|earlier| !self.called.contains(earlier)) {
            let left: i64 = parts.iter().map(|part| part.value).sum();
            push_part(&mut parts, ScoreSource::DependencyNotCalled, -left.min(best / DEPENDENCY_DIVISOR));
        }
        parts
    }
}

/// Adds a part unless it is zero.
fn push_part(parts: &mut Vec<ScorePart>, source: ScoreSource, value: i64) {
    if value != 0 {
        parts.push(ScorePart { source, value });
    }
}

fn text_of(item: &SelectableItem) -> String {
    format!("{} {} {}", item.name, item.description, item.tags.join(" "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn item() -> SelectableItem {
        SelectableItem {
            requires: vec!["order_id".to_owned(), "token".to_owned()],
            depends_on: vec!["shop:find_order".to_owned()],
            ..SelectableItem::tool("shop:refund", "shop", "refund", "refund an order")
        }
    }

    fn catalog() -> Catalog {
        let finder = SelectableItem {
            provides: vec!["order_id".to_owned()],
            ..SelectableItem::tool("shop:find_order", "shop", "find_order", "")
        };
        Catalog::new(vec![item(), finder]).unwrap()
    }

    #[test]
    fn each_fact_is_one_part() {
        let (catalog, analyzer) = (catalog(), Analyzer::default());
        let table = [
            ("", 1000, 2000),
            ("called = ['shop:find_order', 'gone:tool']", 1000, 2000),
            ("called = ['shop:find_order', 'shop:refund']", 1001, 2000),
            ("called = ['shop:find_order']\navailable = ['token']", 1000, 2000),
            ("called = ['shop:find_order']\nlast_summary = 'The order can be refunded'", 1000, 2000),
            ("called = ['shop:find_order']\nlast_summary = 'One order: two lamps'", 1000, 2000),
            ("called = ['shop:find_order']\nlast_summary = ''", 1000, 2000),
            ("", 100, 2000),
            ("called = ['shop:find_order']\navailable = ['token']", 0, 2000),
        ];
        let seen: Vec<String> = table
            .iter()
            .map(|(text, base, best)| {
                let history: History = toml::from_str(text).unwrap();
                let parts = history.prepare(&catalog, &analyzer).adjustments(&item(), &analyzer, *base, *best);
                let listed: Vec<String> =
                    parts.iter().map(|part| format!("{:?} {}", part.source, part.value)).collect();
                format!("{text:?} {} = {}", listed.join(", "), total_score(&parts))
            })
            .collect();
        insta::assert_snapshot!(seen.join("\n"), @r#"
        "" Retrieval 1000, DependencyNotCalled -400 = 600
        "called = ['shop:find_order', 'gone:tool']" Retrieval 1000 = 1000
        "called = ['shop:find_order', 'shop:refund']" Retrieval 1001, AlreadyCalled -500 = 501
        "called = ['shop:find_order']\navailable = ['token']" Retrieval 1000, RequirementsMet 400 = 1400
        "called = ['shop:find_order']\nlast_summary = 'The order can be refunded'" Retrieval 1000, LastResult 600 = 1600
        "called = ['shop:find_order']\nlast_summary = 'One order: two lamps'" Retrieval 1000, LastResult 120 = 1120
        "called = ['shop:find_order']\nlast_summary = ''" Retrieval 1000 = 1000
        "" Retrieval 100, DependencyNotCalled -100 = 0
        "called = ['shop:find_order']\navailable = ['token']" Retrieval 0 = 0
        "#);
    }

    #[test]
    fn files_with_other_fields_are_refused() {
        assert!(toml::from_str::<History>("last = 'x'").is_err());
    }

    proptest! {
        #[test]
        fn parts_add_up(
            called in proptest::sample::subsequence(vec!["shop:find_order", "shop:refund"], 0..=2),
            available in proptest::sample::subsequence(vec!["order_id", "token"], 0..=2),
            last_summary in proptest::option::of("(refund|order|lamp| ){0,6}"),
            base in prop_oneof![0..u64::MAX, 0..10u64],
            more in prop_oneof![0..u64::MAX, 0..10u64],
        ) {
            let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect::<Vec<_>>();
            let history = History { called: owned(called), last_summary, available: owned(available) };
            let analyzer = Analyzer::default();
            let prepared = history.prepare(&catalog(), &analyzer);
            let best = base.saturating_add(more);
            let parts = prepared.adjustments(&item(), &analyzer, base, best);
            let exact: i128 = parts.iter().map(|part| i128::from(part.value)).sum();
            prop_assert_eq!(i128::from(total_score(&parts)), exact);
            prop_assert_eq!(parts[0], ScorePart { source: ScoreSource::Retrieval, value: base.min(MAX_SCORE) as i64 });
            prop_assert!(parts[1..].iter().all(|part| part.value != 0));
            let gain = exact - i128::from(base.min(MAX_SCORE));
            prop_assert!(gain <= i128::from(best.min(MAX_SCORE)) / 2);
        }
    }
}

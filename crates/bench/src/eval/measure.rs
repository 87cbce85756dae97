//! How good one ranking of one query is.
//!
//! A query asks for one or more tools, and each may have declared equivalents that do the same job. The unit of
//! relevance is therefore the *group*: a needed tool with its equivalents, found at the rank of its first member.
//! Any further member is an ordinary non-relevant rank: it neither gains anything nor disappears from the ranks.
//! Everything else is the textbook measure over found groups; a query without a good answer scores 0 and stays in
//! the denominator. Averages and intervals are in [`super::statistics`].

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use contextweaver_routing::Hit;

/// What a query asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judgement {
    /// One group per needed tool: its item number first, then those of its declared equivalents. Groups may share
    /// items; an item satisfies the first group in order that is still unsatisfied. No group at all: no tool
    /// answers the query.
    pub groups: Vec<Vec<u32>>,
}

impl Judgement {
    /// The same judgement when only the named tools count; a tool named twice counts once.
    #[must_use]
    pub fn strict(&self) -> Self {
        let mut named: Vec<u32> = Vec::with_capacity(self.groups.len());
        for item in self.groups.iter().filter_map(|group| group.first()) {
            if !named.contains(item) {
                named.push(*item);
            }
        }
        Self { groups: named.into_iter().map(|item| vec![item]).collect() }
    }
}

/// Where in a ranking each group of an answerable query was found: all that the measures need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// One entry per group, in the order of the judgement; never empty.
    ranks: Vec<Option<usize>>,
}

impl Found {
    /// Looks for the groups of `judgement` in `ranking`; `None` when no tool answers the query, because no measure
    /// is defined then.
    #[must_use]
    pub fn of(ranking: &[Hit], judgement: &Judgement) -> Option<Self> {
        if judgement.groups.is_empty() {
            return None;
        }
        let mut ranks = vec![None; judgement.groups.len()];
        let mut missing = ranks.len();
        for (place, hit) in ranking.iter().enumerate() {
            if missing == 0 {
                break;
            }
            let mut unsatisfied = ranks.iter_mut().zip(&judgement.groups).filter(|(rank, _)| rank.is_none());
            if let Some((rank, _)) = unsatisfied.find(|(_, group)| group.contains(&hit.item)) {
                *rank = Some(place + 1);
                missing -= 1;
            }
        }
        Some(Self { ranks })
    }

    /// What was found at known ranks, one a group; `None` without any, because no measure is defined then.
    #[must_use]
    pub fn at(ranks: Vec<Option<usize>>) -> Option<Self> {
        (!ranks.is_empty()).then_some(Self { ranks })
    }

    /// The rank (from 1) at which each group was found, in the order of the judgement.
    #[must_use]
    pub fn ranks(&self) -> &[Option<usize>] {
        &self.ranks
    }

    /// How many groups are found in the first `k` ranks.
    #[must_use]
    pub fn within(&self, k: usize) -> usize {
        self.ranks.iter().flatten().filter(|rank| **rank <= k).count()
    }
}

/// A measure of one ranking. Prints as the field writes it (`nDCG@10`) and parses back; all values are in [0, 1].
///
/// G is the number of groups, F(k) the number of groups found in the first k ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// `recall@k`: F(k) / G. Manning, Raghavan and Schütze, *Introduction to Information Retrieval*, 2008, §8.3.
    Recall(NonZeroUsize),
    /// `hit@k`: 1 when F(k) > 0, else 0 (trec_eval's `success`).
    Hit(NonZeroUsize),
    /// `P@k`: F(k) / k, also when the ranking is shorter than k. Manning et al. 2008, §8.4.
    Precision(NonZeroUsize),
    /// `RR`: 1 / the rank of the first found group, 0 when none is found; the whole ranking counts. Voorhees, "The
    /// TREC-8 Question Answering Track Report", 1999.
    ReciprocalRank,
    /// `nDCG@k`: Σ 1/log2(rank + 1) over the groups found in the first k ranks, divided by the same sum over the
    /// ranks 1 … min(G, k). Järvelin and Kekäläinen, "Cumulated Gain-Based Evaluation of IR Techniques", ACM TOIS
    /// 20(4), 2002, with gains of 0 and 1 and the discount of trec_eval.
    Ndcg(NonZeroUsize),
    /// `full@k`: 1 when F(k) = G, else 0: an agent that needs several tools can work only when all are there.
    Full(NonZeroUsize),
}

const K1: NonZeroUsize = NonZeroUsize::MIN;
const K3: NonZeroUsize = K1.saturating_add(2);
const K5: NonZeroUsize = K1.saturating_add(4);
const K10: NonZeroUsize = K1.saturating_add(9);

/// A needed tool is found where it is among the first so many: the depth of [`Measure::RECALL_5`].
pub const FIRST: usize = K5.get();

impl Measure {
    /// The measure of the headline: what share of the needed tools is among the first five.
    pub const RECALL_5: Self = Self::Recall(K5);

    /// How high the needed tools stand among the first ten.
    pub const NDCG_10: Self = Self::Ndcg(K10);

    /// Every measure that is reported, in the order in which people read them.
    pub const ALL: [Self; 15] = [
        Self::Recall(K1),
        Self::Recall(K3),
        Self::Recall(K5),
        Self::Recall(K10),
        Self::Hit(K1),
        Self::Precision(K1),
        Self::Precision(K3),
        Self::Precision(K5),
        Self::Precision(K10),
        Self::ReciprocalRank,
        Self::NDCG_10,
        Self::Full(K1),
        Self::Full(K3),
        Self::Full(K5),
        Self::Full(K10),
    ];

    /// The measure of a name in letters of either case, as people type it.
    ///
    /// # Errors
    /// [`ParseMeasureError`] where there is none.
    pub fn named(text: &str) -> Result<Self, ParseMeasureError> {
        let (name, k) = text.find('@').map_or((text, ""), |at| text.split_at(at));
        let names = ["recall", "hit", "P", "nDCG", "full", "RR"];
        let known = names.into_iter().find(|known| known.eq_ignore_ascii_case(name));
        format!("{}{k}", known.unwrap_or(name)).parse()
    }

    /// The value of the measure for one query.
    #[must_use]
    pub fn of(self, found: &Found) -> f64 {
        let groups = found.ranks.len();
        match self {
            Self::Recall(k) => found.within(k.get()) as f64 / groups as f64,
            Self::Hit(k) => indicator(found.within(k.get()) > 0),
            Self::Precision(k) => found.within(k.get()) as f64 / k.get() as f64,
            Self::ReciprocalRank => found.ranks.iter().flatten().min().map_or(0.0, |rank| 1.0 / *rank as f64),
            Self::Ndcg(k) => {
                let mut gained: Vec<usize> =
                    found.ranks.iter().flatten().copied().filter(|rank| *rank <= k.get()).collect();
                // Added in rank order like the ideal, so that a perfect ranking has exactly 1.
                gained.sort_unstable();
                let ideal: f64 = (1..=groups.min(k.get())).map(discount).sum();
                gained.into_iter().map(discount).sum::<f64>() / ideal
            }
            Self::Full(k) => indicator(found.within(k.get()) == groups),
        }
    }
}

fn indicator(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn discount(rank: usize) -> f64 {
    1.0 / libm::log2(rank as f64 + 1.0)
}

impl fmt::Display for Measure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Recall(k) => format!("recall@{k}"),
            Self::Hit(k) => format!("hit@{k}"),
            Self::Precision(k) => format!("P@{k}"),
            Self::ReciprocalRank => "RR".to_owned(),
            Self::Ndcg(k) => format!("nDCG@{k}"),
            Self::Full(k) => format!("full@{k}"),
        };
        formatter.pad(&text)
    }
}

/// The text named no measure.
#[derive(Debug, thiserror::Error)]
#[error("unknown measure `{0}`; use recall@K, hit@K, P@K, nDCG@K or full@K with a K of at least 1, or RR")]
pub struct ParseMeasureError(String);

impl FromStr for Measure {
    type Err = ParseMeasureError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || ParseMeasureError(text.to_owned());
        if text == "RR" {
            return Ok(Self::ReciprocalRank);
        }
        let (name, k) = text.split_once('@').ok_or_else(unknown)?;
        let k: NonZeroUsize = k.parse().map_err(|_| unknown())?;
        let measure = match name {
            "recall" => Self::Recall(k),
            "hit" => Self::Hit(k),
            "P" => Self::Precision(k),
            "nDCG" => Self::Ndcg(k),
            "full" => Self::Full(k),
            _ => return Err(unknown()),
        };
        // One spelling each: `+5` and `05` parse as numbers.
        if measure.to_string() == text { Ok(measure) } else { Err(unknown()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranking(items: &[u32]) -> Vec<Hit> {
        items.iter().zip((1..=1000).rev()).map(|(item, score)| Hit { item: *item, score }).collect()
    }

    fn judgement(groups: &[&[u32]]) -> Judgement {
        Judgement { groups: groups.iter().map(|group| group.to_vec()).collect() }
    }

    fn value(measure: &str, items: &[u32], groups: &[&[u32]]) -> f64 {
        let measure: Measure = measure.parse().unwrap();
        measure.of(&Found::of(&ranking(items), &judgement(groups)).unwrap())
    }

    /// log2(3), the discount of the second rank, by hand.
    const LOG2_3: f64 = 1.584_962_500_721_156;

    #[test]
    fn measures_are_those_worked_by_hand() {
        // Tools 1 and 2 are needed; 7 does what 1 does. Found at the ranks 2 (7 for 1) and 4.
        let (items, groups): (&[u32], &[&[u32]]) = (&[9, 7, 1, 2, 8], &[&[1, 7], &[2]]);
        let table = [
            ("recall@1", 0.0),
            ("recall@3", 0.5),
            ("recall@5", 1.0),
            ("recall@10", 1.0),
            ("hit@1", 0.0),
            ("hit@2", 1.0),
            ("P@3", 1.0 / 3.0),
            ("P@10", 0.2),
            ("RR", 0.5),
            ("nDCG@3", (1.0 / LOG2_3) / (1.0 + 1.0 / LOG2_3)),
            ("nDCG@10", (1.0 / LOG2_3 + 1.0 / 2.321_928_094_887_362) / (1.0 + 1.0 / LOG2_3)),
            ("full@3", 0.0),
            ("full@5", 1.0),
        ];
        for (measure, expected) in table {
            let value = value(measure, items, groups);
            assert!((value - expected).abs() < 1e-12, "{measure}: {value} instead of {expected}");
        }
    }

    /// What it shows, the ranking, the groups, and the rank of each.
    type Case<'a> = (&'a str, &'a [u32], &'a [&'a [u32]], Vec<Option<usize>>);

    #[test]
    fn the_first_member_finds_its_group_and_the_others_are_non_relevant() {
        let table: [Case<'_>; 6] = [
            ("named tool", &[5, 1], &[&[1]], vec![Some(2)]),
            ("second member gains nothing", &[7, 1, 2], &[&[1, 7], &[2]], vec![Some(1), Some(3)]),
            ("shared item, first group first", &[7, 1], &[&[1, 7], &[2, 7]], vec![Some(1), None]),
            ("shared item, second group next", &[1, 7], &[&[1, 7], &[2, 7]], vec![Some(1), Some(2)]),
            ("one tool needed twice is found once", &[1, 2], &[&[1], &[1]], vec![Some(1), None]),
            ("nothing", &[], &[&[1]], vec![None]),
        ];
        for (what, items, groups, expected) in table {
            assert_eq!(Found::of(&ranking(items), &judgement(groups)).unwrap().ranks(), expected, "{what}");
        }
        assert_eq!(Found::of(&ranking(&[1]), &Judgement::default()), None);
    }

    #[test]
    fn the_strict_view_keeps_the_named_tools() {
        let strict = judgement(&[&[1, 7], &[2, 8], &[1, 9], &[]]).strict();
        assert_eq!(strict, judgement(&[&[1], &[2]]));
    }

    #[test]
    fn an_empty_ranking_scores_zero_everywhere() {
        for measure in Measure::ALL {
            assert_eq!(value(&measure.to_string(), &[], &[&[1], &[2]]), 0.0, "{measure}");
        }
    }

    #[test]
    fn names_parse_back_and_others_are_refused() {
        for measure in Measure::ALL {
            assert_eq!(measure.to_string().parse::<Measure>().unwrap(), measure);
        }
        for text in ["", "recall", "recall@", "recall@0", "recall@+5", "recall@05", "Recall@5", "RR@10", "MAP"] {
            assert!(text.parse::<Measure>().is_err(), "{text}");
            assert_eq!(Measure::named(text).is_ok(), text == "Recall@5", "{text}");
        }
        for (text, expected) in
            [("ndcg@10", "nDCG@10"), ("NDCG@7", "nDCG@7"), ("p@3", "P@3"), ("rr", "RR"), ("RR", "RR")]
        {
            assert_eq!(Measure::named(text).unwrap().to_string(), expected);
        }
        let error = "mrr".parse::<Measure>().unwrap_err().to_string();
        insta::assert_snapshot!(error, @"unknown measure `mrr`; use recall@K, hit@K, P@K, nDCG@K or full@K with a K of at least 1, or RR");
    }

    proptest! {
        #[test]
        fn values_stay_in_range_and_grow_with_equivalents(
            order in Just((0u32..12).collect::<Vec<u32>>()).prop_shuffle(),
            length in 0usize..12,
            needed in prop::collection::btree_set(0u32..6, 1..4),
        ) {
            let ranking = ranking(&order[..length]);
            // Tool n + 6 does what tool n does.
            let judgement = Judgement { groups: needed.iter().map(|item| vec![*item, item + 6]).collect() };
            let aware = Found::of(&ranking, &judgement).unwrap();
            let strict = Found::of(&ranking, &judgement.strict()).unwrap();
            for measure in Measure::ALL {
                let (aware, strict) = (measure.of(&aware), measure.of(&strict));
                prop_assert!((0.0..=1.0).contains(&strict) && strict <= aware && aware <= 1.0 + 1e-12, "{measure}");
            }
            let perfect: Vec<Hit> = needed.iter().map(|item| Hit { item: *item, score: 1 }).collect();
            let perfect = Found::of(&perfect, &judgement).unwrap();
            prop_assert_eq!("nDCG@10".parse::<Measure>().unwrap().of(&perfect), 1.0);
        }
    }
}

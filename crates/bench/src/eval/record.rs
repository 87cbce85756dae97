//! The facts of one engine on one case, and the small types that facts of all chapters are made of.
//!
//! Facts are exact on every machine and gated; nothing in them depends on the clock, a path, the command line or
//! the revision. Timings are another type in another file ([`super::timing`]). Where a record comes from is said around
//! its facts, in the results files.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ranks::Ranks;
use contextweaver_core::names::named;

/// Where a collection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Written by this project and committed in `gold/`.
    Embedded,
    /// Public; measured where it is found, never committed.
    Public,
}

/// How a catalog was grown around a constant query set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Growth {
    /// What the added tools are like.
    pub grade: Grade,
    /// The number of tools after growth.
    pub size: usize,
}

impl Growth {
    /// The collection that a case is made of, and how it was grown: `workbench/mixed@500` is `workbench` grown to 500
    /// tools, any other name a collection as it is.
    #[must_use]
    pub fn of_case(case: &str) -> (&str, Option<Self>) {
        let grown = case.rsplit_once('/').and_then(|(collection, growth)| {
            let (grade, size) = growth.split_once('@')?;
            Some((collection, Some(Self { grade: grade.parse().ok()?, size: size.parse().ok()? })))
        });
        grown.unwrap_or((case, None))
    }

    /// The id of the case that a collection grown in this way is.
    #[must_use]
    pub fn case(self, collection: &str) -> String {
        format!("{collection}/{}@{}", self.grade.name(), self.size)
    }
}

named! {
    /// How close the added tools are to the ones that queries ask for, from harmless to adversarial.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Grade {
        /// Tools of other fields under other namespaces.
        Unrelated = "unrelated",
        /// Other tools of the same namespaces.
        Sibling = "sibling",
        /// Variants of the relevant tools with another scope or purpose.
        NearDuplicate = "near_duplicate",
        /// Tools whose descriptions repeat the words of relevant tools without doing their job.
        KeywordStuffed = "keyword_stuffed",
        /// The four above in equal shares.
        Mixed = "mixed",
        /// Literal copies of the tools under new names, as the Python project grows its catalog.
        Copies = "copies",
    }
}

/// The text names no grade.
#[derive(Debug, thiserror::Error)]
#[error("unknown grade `{0}`; use unrelated, sibling, near_duplicate, keyword_stuffed, mixed or copies")]
pub struct ParseGradeError(String);

impl FromStr for Grade {
    type Err = ParseGradeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.replace('-', "_");
        Self::ALL.into_iter().find(|grade| grade.name() == name).ok_or_else(|| ParseGradeError(text.to_owned()))
    }
}

impl Grade {
    /// The grades that add distractors, from harmless to adversarial, then their mixture.
    pub const DISTRACTORS: [Self; 5] =
        [Self::Unrelated, Self::Sibling, Self::NearDuplicate, Self::KeywordStuffed, Self::Mixed];
}

named! {
    /// Where rankings come from.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    pub enum Evidence {
        /// This program ranked.
        Computed = "computed",
        /// Another program ranked, started by this one.
        Process = "process",
        /// A committed results file says so; nothing was run.
        Recorded = "recorded",
        /// A file of somebody else says so; nothing was run here.
        Imported = "imported",
    }
}

/// What came of a case, by default of an engine on one. A failure is a row: recorded with its message and counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome<F = Box<Facts>> {
    /// What was measured.
    Measured(F),
    /// Nothing could be, and why.
    Failed(String),
}

impl<F> Outcome<F> {
    /// The same with what `of` makes of the facts.
    pub fn map<G>(self, of: impl FnOnce(F) -> G) -> Outcome<G> {
        match self {
            Self::Measured(facts) => Outcome::Measured(of(facts)),
            Self::Failed(message) => Outcome::Failed(message),
        }
    }

    /// The same with what `of` makes of the facts.
    ///
    /// # Errors
    /// That of `of`.
    pub fn try_map<G, E>(self, of: impl FnOnce(F) -> Result<G, E>) -> Result<Outcome<G>, E> {
        Ok(match self {
            Self::Measured(facts) => Outcome::Measured(of(facts)?),
            Self::Failed(message) => Outcome::Failed(message),
        })
    }

    /// The same with the facts lent.
    pub fn as_ref(&self) -> Outcome<&F> {
        match self {
            Self::Measured(facts) => Outcome::Measured(facts),
            Self::Failed(message) => Outcome::Failed(message.clone()),
        }
    }
}

/// A mean over queries with its 95 % interval (percentile bootstrap by query, fixed seed).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The mean over the queries, in [0, 1]; of a difference in [-1, 1].
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Everything measured on one case. All figures are rounded to six decimals when they are written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Tools in the catalog.
    pub tools: usize,
    /// Namespaces in the catalog.
    pub namespaces: usize,
    /// Queries that a tool answers: the denominator of every measure.
    pub answerable: usize,
    /// Queries that no tool answers: used for abstention only.
    pub unanswerable: usize,
    /// Measure name (`recall@5`, `nDCG@10` …) to its estimate, a declared equivalent counting as the tool it
    /// stands for.
    pub measures: BTreeMap<String, Estimate>,
    /// The same measures when only the named tool counts.
    pub strict: BTreeMap<String, Estimate>,
    /// recall@5 over all orders of equal scores; equivalence-aware.
    pub ties: Ties,
    /// Where the recall that is missing at 5 was lost; the shares and the recall sum to 1.
    pub loss: Loss,
    /// Namespace of the relevant tools to recall@5 over the queries that ask for it.
    pub by_namespace: BTreeMap<String, Slice>,
    /// Register of the query (`plain`, `terse` …) to recall@5.
    pub by_register: BTreeMap<String, Slice>,
    /// Language of the query to recall@5. Everyday requests have it; empty elsewhere.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_language: BTreeMap<String, Slice>,
    /// How well confidence separates answerable queries from the others; `None` without unanswerable ones.
    pub abstention: Option<Abstention>,
    /// Which queries are told that nothing fits well. Everyday requests have it; `None` elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nothing_fits: Option<NothingFits>,
    /// What the prompt costs with and without routing; `None` where it was not asked for.
    pub tokens: Option<Tokens>,
    /// The engine against the control on the same queries; `None` for the control itself.
    pub versus_control: Option<Paired>,
    /// What the engine did for it: counts, not times.
    pub work: Work,
    /// For each query that a tool answers, the number of the first tool that it needs: queries of one number stand or fall
    /// together, which differences from the control heed. It is the same for every engine, so that only the control's facts
    /// have it; empty elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_tools: Vec<u32>,
    /// Where the tools of each query were found: `measures` follow from it.
    pub ranks: Ranks,
}

/// A mean over a subset of the queries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// Queries in the subset.
    pub queries: usize,
    /// Mean recall@5.
    pub recall_at_5: f64,
}

/// recall@5 when equal scores fall as well as they can, as badly as they can, and on average.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ties {
    /// The most favourable order.
    pub best: f64,
    /// The least favourable order.
    pub worst: f64,
    /// The mean over all orders.
    pub expected: f64,
}

/// Shares of relevant tools that are missing from the first five, by cause; and how many words alone would have missed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// The tool shares no term with the query, whatever the engine makes of it.
    pub vocabulary: f64,
    /// The exhaustive ranking has it in the first five; the navigation left it out.
    pub pruning: f64,
    /// It has the same score as the fifth tool and lost by id.
    pub tie: f64,
    /// Five tools have higher scores.
    pub ranking: f64,
    /// Not lost: found among the first five although the tool shares no term with the query, so by something other than
    /// words. With `vocabulary` it is the share that no ranking by words can find.
    pub rescued: f64,
}

/// Selective answering: the most confident queries are answered first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abstention {
    /// Area under the risk–coverage curve; lower is better.
    pub aurc: f64,
    /// Probability that an answerable query has more confidence than an unanswerable one.
    pub auroc: f64,
    /// Risk (share of answered queries without a relevant tool in the first five) at coverages .1, .2 … 1.
    pub curve: Vec<RiskPoint>,
    /// The expected calibration error over the queries as they are asked; `None` where it is stated elsewhere, and in records
    /// that are older than it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ece: Option<f64>,
}

/// How many queries have a confidence below a threshold, so that a route says that nothing fits well.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NothingFits {
    /// The threshold.
    pub below: f64,
    /// Of those with a relevant tool among the first five.
    pub right: Part,
    /// Of those that a tool answers which is not among the first five.
    pub wrong: Part,
    /// Of those that no tool answers.
    pub unanswerable: Part,
}

/// Some of a number of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// How many.
    pub queries: usize,
    /// Of how many.
    pub of: usize,
}

/// One point of a risk–coverage curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RiskPoint {
    /// Share of queries answered.
    pub coverage: f64,
    /// Share of those whose first five tools hold nothing relevant.
    pub risk: f64,
}

/// Prompt tokens with all definitions and with at most ten cards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// The estimator of all counts here.
    pub estimator: String,
    /// All definitions, one line of compact JSON each.
    pub naive: usize,
    /// Mean over the queries for which the engine found a tool: its first ten cards, or all when there are fewer.
    pub cards_mean: f64,
    /// The most that they took for any query.
    pub cards_max: usize,
    /// 1 − `cards_mean` / `naive`.
    pub reduction: f64,
}

/// A paired difference (engine − control) over the same queries. Queries are what is sampled, and where the tools that they
/// need are known, those too: of both ways the more cautious is here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paired {
    /// The control engine.
    pub control: String,
    /// Mean difference with its 95 % interval (paired bootstrap).
    pub difference: Estimate,
    /// Queries on which the two differ.
    pub differing: usize,
    /// The two-sided probability of a difference as large by chance alone (sign flips; exact where few differ).
    pub p: f64,
    /// What `p` and the interval say together; where few queries differ, `p` alone.
    pub verdict: Verdict,
    /// Whether another seed gives another verdict.
    pub depends_on_seed: bool,
}

/// A paired difference that stands beside others of one family, such as those of all configurations of a grid from the
/// default by one measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The difference. Its `p` is that of this difference alone, its verdict that by [`Self::p_holm`].
    #[serde(flatten)]
    pub paired: Paired,
    /// Its probability, adjusted by Holm for the number of differences in the family.
    pub p_holm: f64,
}

impl Compared {
    /// A difference that is alone in its family.
    #[must_use]
    pub fn alone(paired: Paired) -> Self {
        let p_holm = paired.p;
        Self { paired, p_holm }
    }
}

/// What a paired difference says about an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is shown to be above zero.
    Better,
    /// It is shown to be below zero.
    Worse,
    /// Neither is shown.
    Inconclusive,
}

/// Work counters: equal on every machine, and what the times are made of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Distinct terms in the index.
    pub terms: usize,
    /// Postings in the index.
    pub postings: usize,
    /// Mean postings read per query.
    pub postings_per_query: f64,
    /// Nodes of the choice graph; 0 for flat engines.
    pub graph_nodes: usize,
    /// Bytes of learned weights; 0 for engines without, and where a record does not say.
    #[serde(default)]
    pub weights_bytes: usize,
}

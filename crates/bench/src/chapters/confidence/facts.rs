//! How sure the engine is on one collection, and what it asks back.

use std::collections::BTreeSet;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::asked::{Step, steps};
use crate::eval::abstention::{Answer, abstention, calibration_error};
use crate::eval::collection::{Collection, Query};
use crate::eval::engine::RouterEngine;
use crate::eval::error::EvalError;
use crate::eval::measure::{FIRST, Found, Judgement};
use crate::eval::record::Abstention;
use crate::eval::statistics::round6;
use contextweaver_routing::{Depth, Router, Scratch};

/// Thresholds of confidence that are tried, in tenths.
pub const THRESHOLD_TENTHS: [usize; 4] = [2, 3, 4, 5];

/// What was measured on one collection. Shares are rounded to six decimals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfidenceFacts {
    /// Queries with an answer, each asked twice.
    pub answerable: usize,
    /// Queries that nothing answered in the first place.
    pub unanswerable: usize,
    /// Expected calibration error: how far confidence is from the share of right answers.
    pub ece: f64,
    /// Risk and coverage over all that was asked.
    pub abstention: Abstention,
    /// What a threshold would do.
    pub thresholds: Vec<Threshold>,
    /// What is asked back.
    pub questions: Questions,
    /// The expected calibration error over the queries as they are asked, each once.
    pub ece_as_asked: f64,
    /// The same queries by their confidence, ascending.
    pub as_asked: Vec<Step>,
}

/// What comes of staying silent below a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// The confidence, in tenths.
    pub tenths: usize,
    /// Right answers that would not have been given, as a share of the right ones.
    pub right_lost: f64,
    /// Queries without a tool that would not have been answered, as a share of those.
    pub silence_gained: f64,
}

/// Clarifying questions over the answerable queries, with all tools.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Questions {
    /// The share of queries that are asked about.
    pub asked: f64,
    /// Of these, the share in which a relevant tool is among those asked about.
    pub among: f64,
    /// Of these, the share in which the first tool is relevant.
    pub first_when_asked: f64,
    /// Of the other queries, the share in which the first tool is relevant.
    pub first_otherwise: f64,
}

/// What was seen of one query.
struct Seen {
    /// Confidence with all tools, and what the answer was.
    with: (f64, Answer),
    /// Confidence without the tools that answer it; `None` where nothing does.
    without: Option<f64>,
    /// Whether it was asked about, whether a relevant tool was among those, and whether the first tool is relevant.
    question: (bool, bool, bool),
}

impl ConfidenceFacts {
    /// Measures `engine` on `collection`.
    pub(super) fn measure(collection: &Collection, engine: &RouterEngine) -> Result<Self, EvalError> {
        let router = Router::build(collection.catalog.clone(), engine.config().clone())?;
        let seen: Vec<Seen> = collection
            .queries
            .par_iter()
            .map_init(Scratch::default, |scratch, query| ask(&router, query, scratch))
            .collect();
        let unanswerable = seen.iter().filter(|seen| seen.with.1 == Answer::Unanswerable).count();
        let without = seen.iter().filter_map(|seen| Some((seen.without?, Answer::Unanswerable)));
        let once: Vec<(f64, Answer)> = seen.iter().map(|seen| seen.with).collect();
        let asked: Vec<(f64, Answer)> = once.iter().copied().chain(without).collect();
        Ok(Self {
            answerable: seen.len() - unanswerable,
            unanswerable,
            ece: calibration_error(&asked),
            abstention: abstention(&asked).ok_or(EvalError::NothingToAnswer)?,
            thresholds: THRESHOLD_TENTHS.map(|tenths| threshold(&asked, tenths)).to_vec(),
            questions: questions(&seen),
            ece_as_asked: calibration_error(&once),
            as_asked: steps(&once),
        })
    }
}

fn ask(router: &Router, query: &Query, scratch: &mut Scratch) -> Seen {
    let analyzed = router.index().analyze(&query.text);
    let hits = router.rank(&analyzed, Depth::Exactly(FIRST), scratch);
    let confidence = router.confidence(&analyzed, &hits);
    let relevant: BTreeSet<u32> = query.groups.iter().flatten().copied().collect();
    let Some(found) = Found::of(&hits, &Judgement { groups: query.groups.clone() }) else {
        return Seen { with: (confidence, Answer::Unanswerable), without: None, question: (false, false, false) };
    };
    let answer = if found.within(FIRST) > 0 { Answer::Right } else { Answer::Wrong };
    let close = router.too_close(&hits);
    let among = close.iter().any(|hit| relevant.contains(&hit.item));
    let mut rest = analyzed;
    rest.exact.retain(|item| !relevant.contains(item));
    let left = router.rank_without(&rest, Depth::Exactly(FIRST), &relevant, scratch);
    Seen {
        with: (confidence, answer),
        without: Some(router.confidence(&rest, &left)),
        question: (!close.is_empty(), among, found.within(1) > 0),
    }
}

fn threshold(asked: &[(f64, Answer)], tenths: usize) -> Threshold {
    let below = |wanted: Answer| {
        let of: Vec<f64> = asked.iter().filter(|(_, answer)| *answer == wanted).map(|(sure, _)| *sure).collect();
        share(of.iter().filter(|sure| **sure < tenths as f64 / 10.0).count(), of.len())
    };
    Threshold { tenths, right_lost: below(Answer::Right), silence_gained: below(Answer::Unanswerable) }
}

fn questions(seen: &[Seen]) -> Questions {
    let answerable: Vec<(bool, bool, bool)> =
        seen.iter().filter(|seen| seen.without.is_some()).map(|seen| seen.question).collect();
    let count = |keep: fn(&(bool, bool, bool)) -> bool| answerable.iter().filter(|question| keep(question)).count();
    let asked = count(|question| question.0);
    Questions {
        asked: share(asked, answerable.len()),
        among: share(count(|question| question.0 && question.1), asked),
        first_when_asked: share(count(|question| question.0 && question.2), asked),
        first_otherwise: share(count(|question| !question.0 && question.2), answerable.len() - asked),
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { round6(part as f64 / whole as f64) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::eval::collection::Source;
    use crate::eval::record::Origin;
    use contextweaver_routing::RoutingConfig;

    const TOOLS: &str = r#"[
        {"name": "open_ticket", "description": "Open a ticket"}, {"name": "add_ticket", "description": "Open a ticket"},
        {"name": "send_letter", "description": "Send a letter by post"}, {"name": "read_rota", "description": "Read the rota"}
    ]"#;
    const QUERIES: &str = r#"{"id": "1", "query": "a ticket", "relevant": ["add_ticket"]}
        {"id": "2", "query": "send the letter by post", "relevant": ["send_letter"]}
        {"id": "3", "query": "who has the rota and the coffee", "relevant": ["read_rota"]}
        {"id": "4", "query": "water my plants", "relevant": []}"#;

    fn facts() -> ConfidenceFacts {
        let source = |text: &'static str| Source { path: Path::new("test"), bytes: text.as_bytes() };
        let collection = Collection::from_bytes("test", Origin::Public, source(TOOLS), source(QUERIES)).unwrap();
        let words = RouterEngine::new("default", RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
        ConfidenceFacts::measure(&collection, &words).unwrap()
    }

    #[test]
    fn queries_are_asked_with_their_tools_and_without() {
        let facts = facts();
        assert_eq!((facts.answerable, facts.unanswerable), (3, 1));
        assert!(facts.abstention.auroc > 0.8, "{facts:?}");
        assert!((0.0..=1.0).contains(&facts.ece));
        let [first, .., last] = &facts.thresholds[..] else { panic!("thresholds") };
        assert!(first.silence_gained > 0.5 && last.silence_gained >= first.silence_gained, "{facts:?}");
        // Two tools are the same for "ticket", and one of them is right.
        let Questions { asked, among, first_when_asked, first_otherwise } = facts.questions;
        assert_eq!((asked, among, first_when_asked, first_otherwise), (0.333333, 1.0, 0.0, 1.0));
    }
}

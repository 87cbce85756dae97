//! What is asked of an engine, and what became of it: bounds of its measures and of the tokens of its catalog, and that it has
//! not regressed.

use super::threshold::{Threshold, at_least, at_most};
use crate::eval::decision::{Decision, Word};
use crate::eval::measure::Measure;
use crate::eval::record::Estimate;
use crate::eval::run::Evaluation;
use crate::eval::statistics::mean;
use crate::report::number::{count, share};

/// Bounds of an engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds<'a> {
    /// The least value of each of these measures.
    pub least: &'a [(Measure, f64)],
    /// The most tokens of all definitions.
    pub most_tokens: Option<usize>,
}

/// What became of one gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// Whether it holds.
    pub passed: bool,
    /// What holds or does not, without its full stop.
    pub said: String,
    /// How well so many queries tell, where it hangs on them.
    pub known: Option<String>,
}

impl Gate {
    fn of(Threshold { holds, said }: Threshold) -> Self {
        Self { passed: holds, said, known: None }
    }
}

impl Bounds<'_> {
    /// Every gate of the engine `name`: that of the baseline, where there is a verdict, then measures and tokens.
    #[must_use]
    pub fn of(&self, name: &str, evaluation: &Evaluation, decision: Option<&Decision>) -> Vec<Gate> {
        let facts = &evaluation.facts;
        let mut gates = Vec::new();
        if let Some(decision) = decision.filter(|decision| decision.word != Word::NotComparable) {
            let passed = decision.word != Word::Regressed;
            let said = if passed { "has not regressed" } else { "regressed" };
            gates.push(Gate { passed, said: format!("{name} {said} against the baseline"), known: None });
        }
        let found = || evaluation.outcomes.iter().flatten().map(|outcome| &outcome.found);
        for (measure, least) in self.least {
            if facts.answerable == 0 {
                let said = format!("{measure} of {name} has no value, since no query has a relevant tool");
                gates.push(Gate { passed: false, said, known: None });
                continue;
            }
            // The mean as it is: the facts hold it rounded, which may be on the other side.
            let value = mean(found().map(|found| measure.of(found)));
            let estimate = facts.measures.get(&measure.to_string());
            let known = estimate.map(|estimate| known(estimate, facts.answerable, *least));
            gates.push(Gate { known, ..Gate::of(at_least(&format!("{measure} of {name}"), value, *least)) });
        }
        if let (Some(most), Some(tokens)) = (self.most_tokens, &facts.tokens) {
            gates.push(Gate::of(at_most(tokens.naive, most)));
        }
        gates
    }
}

/// How well so many queries know a mean, and whether a threshold is too near to it for them.
fn known(found: &Estimate, queries: usize, least: f64) -> String {
    let half = (found.high - found.low) / 2.0;
    let (within, how) = if half > 0.0 {
        (half, "half its 95 % interval")
    } else {
        // Queries that are all alike have no interval; yet the next may be another (the rule of three).
        (1.0 - 0.05_f64.powf(1.0 / queries.max(1) as f64), "at 95 %, all of them being alike")
    };
    let near = if (found.mean - least).abs() <= within { "; other queries could flip this gate" } else { "" };
    format!("{} queries tell it to within {} ({how}){near}", count(queries), share(within))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::decision::{MARGIN, Pair, decide};
    use crate::eval::engine::RouterEngine;
    use crate::eval::probe;
    use crate::eval::run::{PromptTokens, evaluate};
    use contextweaver_routing::RoutingConfig;

    #[test]
    fn every_gate_says_what_became_of_it() {
        let engine = RouterEngine::new("default", RoutingConfig::default());
        let evaluation = evaluate(probe::collection(), &engine, PromptTokens::Count).unwrap();
        let measures = [(Measure::RECALL_5, 0.0), (Measure::RECALL_5, 1.5)];
        let bounds = Bounds { least: &measures, most_tokens: Some(1) };
        let fell = decide(&[Pair::single((0..40).map(|_| (1.0, 0.0)))], MARGIN);
        let gates = bounds.of("default", &evaluation, Some(&fell));
        assert_eq!(gates.iter().map(|gate| gate.passed).collect::<Vec<_>>(), [false, true, false, false]);
        let begin =
            ["default regressed against the baseline", "recall@5 of default is", "recall@5 of default is", "all "];
        for (gate, begin) in gates.iter().zip(begin) {
            assert!(gate.said.starts_with(begin), "{gate:?}");
            assert_eq!(gate.known.is_some(), gate.said.starts_with("recall"), "{gate:?}");
        }
        let unknown = Decision { word: Word::NotComparable, ..fell };
        assert_eq!(Bounds { least: &[], most_tokens: None }.of("default", &evaluation, Some(&unknown)), []);
    }

    #[test]
    fn few_queries_do_not_tell_much() {
        let estimate = |mean: f64, half: f64| Estimate { mean, low: mean - half, high: mean + half };
        let table = [
            (estimate(0.5, 0.1), 1_000, 0.3, "1,000 queries tell it to within .100 (half its 95 % interval)"),
            (
                estimate(0.5, 0.1),
                20,
                0.45,
                "20 queries tell it to within .100 (half its 95 % interval); other queries could flip this gate",
            ),
            (estimate(1.0, 0.0), 59, 0.5, "59 queries tell it to within .050 (at 95 %, all of them being alike)"),
            (
                estimate(1.0, 0.0),
                2,
                0.5,
                "2 queries tell it to within .776 (at 95 %, all of them being alike); other queries could flip this gate",
            ),
        ];
        for (found, queries, least, expected) in table {
            assert_eq!(known(&found, queries, least), expected);
        }
    }
}

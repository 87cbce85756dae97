//! The results of several engines side by side: which cases and engines there are, and what one has for the other.
//!
//! Nothing here computes a figure; it finds recorded ones. Cases and engines come in one fixed order whatever the
//! order of the files, so that pages have the same bytes.

use std::collections::BTreeMap;

use crate::eval::matrix::engine_position;
pub(super) use crate::eval::matrix::{BEST, CONTROL, DEFAULT};
use crate::eval::record::{Estimate, Facts, Grade, Growth, Origin, Outcome, Paired};
use crate::eval::statistics::corrected;
use crate::report::number::MISSING;
use crate::results::{Record, Results, worst};

/// The engine that navigates the choice graph.
pub(super) const BEAM: &str = "beam";

/// The default by words alone.
pub(super) const LEXICAL: &str = "lexical";

/// The headline measure.
pub(super) const RECALL: &str = "recall@5";

/// What was run, without what came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case<'a> {
    pub(super) name: &'a str,
    pub(super) collection: &'a str,
    pub(super) origin: Origin,
    pub(super) growth: Option<Growth>,
}

/// All results, in display order.
#[derive(Debug)]
pub(super) struct Scores<'a> {
    results: Vec<&'a Results<Box<Facts>>>,
    cases: Vec<Case<'a>>,
}

/// A record, and the results of which it is one.
type Found<'a> = (&'a Results<Box<Facts>>, &'a Record<Box<Facts>>);

impl<'a> Scores<'a> {
    pub(super) fn new(results: &'a [Results<Box<Facts>>]) -> Self {
        let mut results: Vec<&Results<Box<Facts>>> = results.iter().collect();
        results.sort_by_key(|one| (engine_position(&one.name), one.name.as_str()));
        let mut cases: Vec<Case<'a>> = results.iter().flat_map(|engine| engine.records.iter()).map(Case::of).collect();
        cases.sort_by_key(|case| (case.origin, case.collection, case.growth, case.name));
        cases.dedup_by_key(|case| case.name);
        Self { results, cases }
    }

    /// The results of every engine.
    pub(super) fn results(&self) -> &[&'a Results<Box<Facts>>] {
        &self.results
    }

    /// The names of all engines.
    pub(super) fn engines(&self) -> Vec<&'a str> {
        self.results.iter().map(|one| one.name.as_str()).collect()
    }

    /// The names of those engines that are present.
    pub(super) fn engines_among(&self, names: &[&str]) -> Vec<&'a str> {
        self.engines().into_iter().filter(|engine| names.contains(engine)).collect()
    }

    /// All cases that satisfy `keep`: the embedded ones first, by collection, the collection as it is first, then by
    /// grade and size.
    pub(super) fn cases(&self, keep: impl Fn(&Case<'a>) -> bool) -> Vec<Case<'a>> {
        self.cases.iter().filter(|case| keep(case)).copied().collect()
    }

    /// What one engine has for one case; `None` when it was not run on it.
    pub(super) fn outcome(&self, engine: &str, case: &str) -> Option<&'a Outcome> {
        self.record(engine, case).map(|(_, record)| &record.outcome)
    }

    fn record(&self, engine: &str, case: &str) -> Option<Found<'a>> {
        let results = self.results.iter().find(|one| one.name == engine)?;
        results.records.iter().find(|record| record.case == case).map(|record| (*results, record))
    }

    /// The facts of one engine on one case; `None` when it was not run on it or failed.
    pub(super) fn facts(&self, engine: &str, case: &str) -> Option<&'a Facts> {
        match self.outcome(engine, case)? {
            Outcome::Measured(facts) => Some(facts),
            Outcome::Failed(_) => None,
        }
    }

    /// The facts of the first engine that measured the case: for what does not depend on the engine.
    pub(super) fn any_facts(&self, case: &str) -> Option<&'a Facts> {
        self.results.iter().find_map(|one| self.facts(&one.name, case))
    }

    /// The cell of a table: what `show` makes of the facts, `failed`, or [`MISSING`]; marked where the run that wrote the
    /// results did not compute them.
    pub(super) fn cell(&self, engine: &str, case: &str, show: impl Fn(&'a Facts) -> Option<String>) -> String {
        let Some((results, record)) = self.record(engine, case) else { return MISSING.to_owned() };
        let mark = results.mark(record);
        match &record.outcome {
            Outcome::Measured(facts) => show(facts).map_or_else(|| MISSING.to_owned(), |shown| shown + mark),
            Outcome::Failed(_) => format!("failed{mark}"),
        }
    }

    /// What the differences of an engine from the control say on the collections as they are, by case: side by side, corrected for
    /// their number.
    pub(super) fn verdicts(&self, engine: &str) -> BTreeMap<&'a str, Paired> {
        let cases = self.cases(|case| case.growth.is_none());
        let (names, paired): (Vec<&str>, Vec<&Paired>) = (cases.iter())
            .filter_map(|case| Some((case.name, self.facts(engine, case.name)?.versus_control.as_ref()?)))
            .unzip();
        names.into_iter().zip(corrected(&paired)).collect()
    }

    /// What stands behind figures of these engines on these cases: nothing where the run computed all of them.
    pub(super) fn mark<'n>(&self, engines: &[&str], cases: impl IntoIterator<Item = &'n str>) -> &'static str {
        let of = |case: &str| {
            let records = engines.iter().filter_map(|engine| self.record(engine, case));
            worst(records.map(|(results, record)| results.mark(record)))
        };
        worst(cases.into_iter().map(of))
    }

    /// Every failure: case, engine and message, in case order.
    pub(super) fn failures(&self) -> Vec<(&'a str, &'a str, &'a str)> {
        let mut failures = Vec::new();
        for case in &self.cases {
            for engine in self.engines() {
                if let Some(Outcome::Failed(message)) = self.outcome(engine, case.name) {
                    failures.push((case.name, engine, message.as_str()));
                }
            }
        }
        failures
    }

    /// The collections that were grown with distractors, in name order.
    pub(super) fn grown_collections(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = self.cases(Case::has_distractors).iter().map(|case| case.collection).collect();
        names.dedup();
        names
    }

    /// The sizes to which a collection was grown with distractors, ascending.
    pub(super) fn sizes(&self, collection: &str) -> Vec<usize> {
        let grown = self.cases(|case| case.collection == collection && case.has_distractors());
        let mut sizes: Vec<usize> = grown.iter().filter_map(|case| case.growth).map(|growth| growth.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// The name of the case of a collection grown in this way.
    pub(super) fn grown(&self, collection: &str, grade: Grade, size: usize) -> Option<&'a str> {
        let growth = Some(Growth { grade, size });
        self.cases.iter().find(|case| case.collection == collection && case.growth == growth).map(|case| case.name)
    }
}

impl<'a> Case<'a> {
    fn of(record: &'a Record<Box<Facts>>) -> Self {
        let (collection, growth) = Growth::of_case(&record.case);
        Self { name: &record.case, collection, origin: record.origin, growth }
    }

    /// Whether distractors (not literal copies) were added.
    pub(super) fn has_distractors(&self) -> bool {
        self.growth.is_some_and(|growth| growth.grade != Grade::Copies)
    }

    /// Whether this is a collection as it is, of this origin.
    pub(super) fn is_as_it_is(&self, origin: Origin) -> bool {
        self.growth.is_none() && self.origin == origin
    }

    /// Whether this is a collection as it is or one grown with the mixture of distractors.
    pub(super) fn is_plain_or_mixed(&self) -> bool {
        self.growth.is_none_or(|growth| growth.grade == Grade::Mixed)
    }
}

/// The estimate of [`RECALL`], a declared equivalent counting as the tool it stands for.
pub(super) fn recall(facts: &Facts) -> Option<&Estimate> {
    facts.measures.get(RECALL)
}

/// The words for a grade.
pub(super) fn grade_name(grade: Grade) -> &'static str {
    match grade {
        Grade::Unrelated => "unrelated",
        Grade::Sibling => "sibling",
        Grade::NearDuplicate => "near-duplicate",
        Grade::KeywordStuffed => "keyword-stuffed",
        Grade::Mixed => "mixed",
        Grade::Copies => "copies",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chapters::routing::sample;

    #[test]
    fn engines_and_cases_have_one_order_whatever_the_order_of_the_files() {
        let mut results = sample::results();
        results.reverse();
        let scores = Scores::new(&results);
        assert_eq!(scores.engines(), ["default", "bm25", "tfidf", "fuzzy", "beam"]);
        let copies = scores.cases(|case| case.collection == "contextweaver_83");
        assert_eq!(
            copies.iter().map(|case| case.name).collect::<Vec<_>>(),
            ["contextweaver_83", "contextweaver_83/copies@500", "contextweaver_83/copies@1000"]
        );
        assert_eq!(scores.grown_collections(), ["workbench"]);
        assert_eq!(scores.sizes("workbench"), [50, 100, 250, 500, 1000, 2500, 5000, 10_000]);
        assert_eq!(scores.grown("workbench", Grade::Sibling, 500), Some("workbench/sibling@500"));
    }
}

//! The queries that lack a tool among the first five: which tools, what stands in front of them, and why.

use std::fmt::Write as _;

use serde::Serialize;

use super::words::code;
use crate::eval::collection::{Collection, Query};
use crate::eval::engine::Ranking;
use crate::eval::measure::FIRST;
use crate::eval::run::{Evaluation, QueryOutcome};
use crate::report::markup::visible;
use crate::report::number::count;

/// The tools that stand in front of one that is missing, at most.
const IN_FRONT: usize = 3;

/// A query that lacks a tool among the first five.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure<'a> {
    /// The id of the query.
    pub query: &'a str,
    /// What was asked.
    pub text: &'a str,
    /// The tools that are missing.
    pub wanted: Vec<Wanted<'a>>,
    /// What stands in front instead.
    pub found: Vec<&'a str>,
    /// Why.
    pub because: Vec<&'static str>,
}

/// A tool that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wanted<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its rank; `None` where it was not found.
    pub rank: Option<usize>,
}

impl<'a> Failure<'a> {
    /// The queries of `collection` with a relevant tool that is not among the first five, in their order.
    #[must_use]
    pub fn all(collection: &'a Collection, evaluation: &Evaluation) -> Vec<Self> {
        let rows = collection.queries.iter().zip(&evaluation.outcomes).zip(&evaluation.rankings);
        rows.filter_map(|((query, outcome), ranking)| Self::of(collection, query, outcome.as_ref()?, ranking)).collect()
    }

    fn of(collection: &'a Collection, query: &'a Query, outcome: &QueryOutcome, ranking: &Ranking) -> Option<Self> {
        let missing =
            query.groups.iter().zip(outcome.found.ranks()).filter(|(_, rank)| rank.is_none_or(|rank| rank > FIRST));
        let wanted = missing.map(|(group, rank)| Wanted {
            tool: group.first().map_or("", |item| collection.tool_handle(*item)),
            rank: *rank,
        });
        let wanted: Vec<Wanted<'a>> = wanted.collect();
        let found = ranking.hits.iter().take(IN_FRONT).map(|hit| collection.tool_handle(hit.item)).collect();
        let because = outcome.loss.causes();
        (!wanted.is_empty()).then_some(Self { query: &query.id, text: &query.text, wanted, found, because })
    }

    /// All of them for a terminal.
    #[must_use]
    pub fn text(collection: &Collection, evaluation: &Evaluation) -> String {
        let mut text = String::new();
        let failures = Failure::all(collection, evaluation);
        for one in &failures {
            let _ = writeln!(text, "\n{}  {}", visible(one.query), visible(one.text));
            for wanted in one.wanted(visible) {
                let _ = writeln!(text, "  wanted   {wanted}");
            }
            let _ = writeln!(text, "  found    {}", one.found(visible));
            let _ = writeln!(text, "  because  {}", one.because.join("; "));
        }
        let answerable = evaluation.facts.answerable;
        format!("\n{} of {answerable} queries lack a tool among the first five\n{text}", failures.len())
    }

    /// All of them, of the engine `name`, as a Markdown table whose texts are code, so that none of them is a link or a tag.
    #[must_use]
    pub fn markdown(name: &str, collection: &Collection, evaluation: &Evaluation) -> String {
        let failures = Failure::all(collection, evaluation);
        let (failed, answerable) = (count(failures.len()), count(evaluation.facts.answerable));
        let mut text = format!("{}: {failed} of {answerable} queries lack a tool among the first five.\n", code(name));
        if !failures.is_empty() {
            text.push_str("\n| query | asked | wanted | found | because |\n| --- | --- | --- | --- | --- |\n");
        }
        for one in &failures {
            let (query, asked, wanted) = (code(one.query), code(one.text), one.wanted(code).join(", "));
            let _ =
                writeln!(text, "| {query} | {asked} | {wanted} | {} | {} |", one.found(code), one.because.join("; "));
        }
        text
    }

    /// The missing tools, each with its rank.
    fn wanted(&self, show: fn(&str) -> String) -> Vec<String> {
        let rank = |rank: Option<usize>| rank.map_or_else(|| "not found".to_owned(), |rank| format!("rank {rank}"));
        self.wanted.iter().map(|one| format!("{}: {}", show(one.tool), rank(one.rank))).collect()
    }

    fn found(&self, show: fn(&str) -> String) -> String {
        match self.found.as_slice() {
            [] => "nothing".to_owned(),
            found => found.iter().map(|tool| show(tool)).collect::<Vec<_>>().join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::engine::RouterEngine;
    use crate::eval::probe;
    use crate::eval::run::{PromptTokens, evaluate};
    use contextweaver_routing::RoutingConfig;

    #[test]
    fn what_lacks_a_tool_is_said_in_every_form() {
        let collection = &**probe::collection();
        let words = RouterEngine::new("words", RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
        let evaluation = evaluate(collection, &words, PromptTokens::Skip).unwrap();
        let failures = Failure::all(collection, &evaluation);
        let lost = evaluation.recall_at_5.iter().filter(|recall| **recall < 1.0).count();
        assert!(lost > 0, "the probe has queries that words alone do not answer");
        assert_eq!(failures.len(), lost);
        for one in &failures {
            assert!(one.wanted.iter().all(|wanted| wanted.rank.is_none_or(|rank| rank > 5)), "{one:?}");
            assert!(one.found.len() <= IN_FRONT && !one.because.is_empty(), "{one:?}");
        }
        let text = Failure::text(collection, &evaluation);
        assert!(text.starts_with(&format!("\n{lost} of {} queries lack", evaluation.facts.answerable)), "{text}");
        let markdown = Failure::markdown("a|b", collection, &evaluation);
        assert!(markdown.starts_with(&format!("`a\\|b`: {lost} of")), "{markdown}");
        assert_eq!(markdown.lines().filter(|line| line.starts_with("| `")).count(), lost, "{markdown}");
    }
}

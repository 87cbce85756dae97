//! Configurations of the context engine against each other: what a prompt costs, and what it keeps.
//!
//! A trial runs every scenario under one configuration. Fidelity depends on the cap of summaries alone and is measured
//! once for each. What is kept is compared scenario by scenario, fidelity result by result, both by paired bootstrap, so
//! that a difference is only called one when it is beyond noise.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;

use super::fidelity::{Content, measure};
use super::probe::Class;
use super::run::{compiled, large_results};
use super::scenario::Scenario;
use crate::eval::decision::{Decision, MARGIN, Pair, decide};
use crate::eval::record::Paired;
use crate::eval::statistics::{mean, paired, round6};
use crate::eval::sweep::edges;
use contextweaver_context::adapters::Conversation;
use contextweaver_context::summary::Summarizer;
use contextweaver_context::{ContextConfig, ScoringConfig};

/// A configuration with the name under which it is reported.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// What it changes, e.g. `summary 150, dedup .70`.
    pub name: String,
    /// The whole configuration, the parts that are the default's included.
    pub config: ContextConfig,
    /// The numbers that a grid varies, by name; empty outside of one.
    pub numbers: Vec<(&'static str, f64)>,
}

/// What choosing from a grid is worth on scenarios that the choice did not see.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeldOut {
    /// Mean over scenarios of what is kept.
    pub kept: f64,
    /// Tokens of all prompts.
    pub tokens: usize,
    /// How often each candidate was chosen.
    pub chosen: BTreeMap<String, usize>,
}

/// What one scenario gave under one configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// The name of the scenario.
    pub scenario: String,
    /// Tokens of the prompt.
    pub tokens: usize,
    /// Share of the required items and planted facts that the prompt holds or one view reaches.
    pub kept: f64,
    /// Share of core probes that survive in summaries, for each large result.
    #[serde(skip)]
    pub fidelity: Vec<f64>,
}

/// A configuration measured on all scenarios.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The name of the candidate.
    pub name: String,
    /// Tokens of all prompts.
    pub tokens: usize,
    /// Mean over scenarios of what is kept.
    pub kept: f64,
    /// Mean over large results of the core that survives.
    pub fidelity: f64,
    /// Whether no other configuration keeps at least as much for fewer tokens, or more for as many.
    pub on_front_of_kept: bool,
    /// The same for fidelity.
    pub on_front_of_fidelity: bool,
    /// What is kept against the first configuration, over scenarios.
    pub kept_against_first: Paired,
    /// Fidelity against the first configuration, over results.
    pub fidelity_against_first: Paired,
    /// Scenario by scenario.
    pub trials: Vec<Trial>,
}

/// The grid around the default: caps of summaries, thresholds of deduplication, budgets and weights, one combination
/// each. The default comes first.
#[must_use]
pub fn grid() -> Vec<Candidate> {
    let default = ContextConfig::default();
    let numbers = |config: &ContextConfig, share: f64| {
        vec![("summary", config.firewall.summary_tokens as f64), ("dedup", config.dedup.threshold), ("budget", share)]
    };
    let mut all =
        vec![Candidate { name: "default".to_owned(), numbers: numbers(&default, 1.0), config: default.clone() }];
    let scoring = default.scoring;
    let weights: [(&str, ScoringConfig); 4] = [
        ("weights default", scoring),
        ("recency .50", ScoringConfig { recency: 0.50, similarity: 0.20, kind: 0.20, ..scoring }),
        ("similarity .50", ScoringConfig { recency: 0.15, similarity: 0.50, kind: 0.25, ..scoring }),
        ("kind .60", ScoringConfig { recency: 0.15, similarity: 0.15, kind: 0.60, ..scoring }),
    ];
    for summary in [100, 150, 300, 600] {
        for dedup in [0.70, 0.85, 1.01] {
            for share in [0.5, 0.75, 1.0] {
                for (weight_name, weights) in &weights {
                    let mut config = default.clone();
                    config.firewall.summary_tokens = summary;
                    config.dedup.threshold = dedup;
                    config.scoring = *weights;
                    let scaled = |budget: usize| (budget as f64 * share) as usize;
                    let budgets = &mut config.budgets;
                    budgets.route = scaled(budgets.route);
                    budgets.call = scaled(budgets.call);
                    budgets.interpret = scaled(budgets.interpret);
                    budgets.answer = scaled(budgets.answer);
                    let name = format!("summary {summary}, dedup {dedup:.2}, budget {share:.2}, {weight_name}");
                    if config != default {
                        // Weights are no number: their rows are none of a line of numbers.
                        let numbers = if *weights == scoring { numbers(&config, share) } else { Vec::new() };
                        all.push(Candidate { name, config, numbers });
                    }
                }
            }
        }
    }
    all
}

/// The numbers of the grid whose best value by what is kept is the smallest or the largest that was tried, with that value,
/// the others being those of the first candidate, the default.
#[must_use]
pub fn at_the_edge(candidates: &[Candidate], outcomes: &[Outcome]) -> Vec<(String, f64)> {
    let Some(first) = candidates.first() else { return Vec::new() };
    let mut tried: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for (at, (parameter, _)) in first.numbers.iter().enumerate() {
        for (candidate, outcome) in candidates.iter().zip(outcomes) {
            let others = |numbers: &[(&'static str, f64)]| {
                numbers.iter().enumerate().filter(|(place, _)| *place != at).map(|(_, one)| *one).collect::<Vec<_>>()
            };
            if let Some((_, value)) = candidate.numbers.get(at)
                && others(&candidate.numbers) == others(&first.numbers)
            {
                tried.entry(parameter).or_default().push((*value, outcome.kept));
            }
        }
    }
    edges(tried)
}

/// For each scenario the candidate that keeps most on the others (of equals the one with fewer tokens, then the first), and
/// what these choices give where they were not made. `None` with fewer than two scenarios.
#[must_use]
pub fn held_out(outcomes: &[Outcome]) -> Option<HeldOut> {
    let scenarios = outcomes.first()?.trials.len();
    if scenarios < 2 {
        return None;
    }
    let (mut kept, mut tokens, mut chosen) = (Vec::new(), 0, BTreeMap::new());
    for unseen in 0..scenarios {
        let seen = |outcome: &Outcome| {
            let trials = outcome.trials.iter().enumerate().filter(|(at, _)| *at != unseen).map(|(_, trial)| trial);
            let kept = round6(mean(trials.clone().map(|trial| trial.kept)));
            (kept, std::cmp::Reverse(trials.map(|trial| trial.tokens).sum::<usize>()))
        };
        let best = outcomes.iter().reduce(|best, one| if seen(one) > seen(best) { one } else { best })?;
        let trial = best.trials.get(unseen)?;
        kept.push(trial.kept);
        tokens += trial.tokens;
        *chosen.entry(best.name.clone()).or_default() += 1;
    }
    Some(HeldOut { kept: round6(mean(kept)), tokens, chosen })
}

/// Whether the second configuration keeps less or more than the first, over scenarios.
#[must_use]
pub fn verdict(first: &Outcome, second: &Outcome) -> Decision {
    let pairs = first.trials.iter().zip(&second.trials).map(|(base, head)| (base.kept, head.kept));
    decide(&[Pair::single(pairs)], MARGIN)
}

/// Runs every candidate on every scenario, in parallel; `step` is called after each candidate. Comparisons are with the
/// first.
///
/// # Errors
/// The message of a scenario that does not run under a candidate, with both names.
pub fn sweep(
    candidates: &[Candidate],
    scenarios: &[(&Scenario, Conversation)],
    summarizer: &dyn Summarizer,
    step: impl Fn() + Sync,
) -> Result<Vec<Outcome>, String> {
    let mut caps: Vec<usize> = candidates.iter().map(|candidate| candidate.config.firewall.summary_tokens).collect();
    caps.sort_unstable();
    caps.dedup();
    let first = candidates.first().map(|candidate| candidate.config.clone()).unwrap_or_default();
    let fidelity = fidelity_by_cap(scenarios, &caps, &first, summarizer);
    let run = |candidate: &Candidate| {
        let trial = |(scenario, conversation): &(&Scenario, Conversation)| {
            let cap = candidate.config.firewall.summary_tokens;
            let named = |message: String| format!("{}, {}: {message}", candidate.name, scenario.name);
            let (tokens, kept) = trial(scenario, conversation, &candidate.config, summarizer).map_err(named)?;
            let fidelity = fidelity.get(&(scenario.name.as_str(), cap)).cloned().unwrap_or_default();
            Ok(Trial { scenario: scenario.name.clone(), tokens, kept, fidelity })
        };
        let trials = scenarios.iter().map(trial).collect::<Result<Vec<_>, String>>();
        step();
        trials
    };
    let trials = candidates.par_iter().map(run).collect::<Result<Vec<_>, String>>()?;
    let Some(first) = trials.first().cloned() else { return Ok(Vec::new()) };
    let name = candidates.first().map_or("", |candidate| candidate.name.as_str());
    let mut outcomes: Vec<Outcome> =
        candidates.iter().zip(trials).map(|(candidate, trials)| outcome(candidate, trials, name, &first)).collect();
    mark_fronts(&mut outcomes);
    Ok(outcomes)
}

fn trial(
    scenario: &Scenario,
    conversation: &Conversation,
    base: &ContextConfig,
    summarizer: &dyn Summarizer,
) -> Result<(usize, f64), String> {
    let (pack, kept) = compiled(scenario, conversation, base, summarizer)?;
    let asked = kept.required + kept.facts;
    let held = kept.required - kept.missing.len() + kept.facts_in_prompt + kept.facts_by_view;
    Ok((pack.stats.prompt_tokens, if asked == 0 { 1.0 } else { held as f64 / asked as f64 }))
}

/// The share of core probes that survives, for every large result of a scenario, by scenario and cap.
fn fidelity_by_cap<'s>(
    scenarios: &'s [(&Scenario, Conversation)],
    caps: &[usize],
    config: &ContextConfig,
    summarizer: &dyn Summarizer,
) -> BTreeMap<(&'s str, usize), Vec<f64>> {
    let mut shares: BTreeMap<(&str, usize), Vec<f64>> = BTreeMap::new();
    for (scenario, conversation) in scenarios {
        let contents: Vec<Content> = large_results(scenario, conversation, config);
        for one in measure(&contents, caps, config.estimator, summarizer, None) {
            for summary in &one.summaries {
                let core = one.probes.iter().zip(&summary.survives).filter(|(probe, _)| Class::is_core(probe.class));
                let survives: Vec<f64> = core.map(|(_, survives)| f64::from(u8::from(*survives))).collect();
                if !survives.is_empty() {
                    shares.entry((&scenario.name, summary.cap)).or_default().push(mean(survives));
                }
            }
        }
    }
    shares
}

fn outcome(candidate: &Candidate, trials: Vec<Trial>, first_name: &str, first: &[Trial]) -> Outcome {
    let pairs = |of: &dyn Fn(&Trial) -> Vec<f64>| -> Vec<(f64, f64)> {
        trials.iter().zip(first).flat_map(|(own, other)| of(own).into_iter().zip(of(other))).collect()
    };
    let kept = pairs(&|trial| vec![trial.kept]);
    let fidelity = pairs(&|trial| trial.fidelity.clone());
    Outcome {
        name: candidate.name.clone(),
        tokens: trials.iter().map(|trial| trial.tokens).sum(),
        kept: round6(mean(kept.iter().map(|pair| pair.0))),
        fidelity: round6(mean(fidelity.iter().map(|pair| pair.0))),
        on_front_of_kept: false,
        on_front_of_fidelity: false,
        kept_against_first: paired(first_name, &kept),
        fidelity_against_first: paired(first_name, &fidelity),
        trials,
    }
}

fn mark_fronts(outcomes: &mut [Outcome]) {
    let kept: Vec<(usize, f64)> = outcomes.iter().map(|one| (one.tokens, one.kept)).collect();
    let fidelity: Vec<(usize, f64)> = outcomes.iter().map(|one| (one.tokens, one.fidelity)).collect();
    for (at, one) in outcomes.iter_mut().enumerate() {
        one.on_front_of_kept = is_on_front(&kept, at);
        one.on_front_of_fidelity = is_on_front(&fidelity, at);
    }
}

/// Whether no other point costs no more and is worth no less, one of them strictly.
fn is_on_front(points: &[(usize, f64)], at: usize) -> bool {
    let Some(&(cost, worth)) = points.get(at) else { return false };
    !points.iter().any(|&(c, w)| c <= cost && w >= worth && (c < cost || w > worth))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::decision::Word;

    #[test]
    fn the_front_holds_what_nothing_beats() {
        let points = [(10, 0.5), (20, 0.9), (20, 0.8), (30, 0.9), (5, 0.5)];
        let front: Vec<usize> = (0..points.len()).filter(|at| is_on_front(&points, *at)).collect();
        assert_eq!(front, [1, 4]);
    }

    #[test]
    fn the_grid_holds_the_default_once_and_first() {
        let grid = grid();
        let defaults = grid.iter().filter(|candidate| candidate.config == ContextConfig::default()).count();
        assert_eq!((defaults, grid.len()), (1, 144));
        assert_eq!(grid[0].name, "default");
    }

    /// An outcome that keeps these shares of its scenarios.
    fn kept(name: &str, shares: &[f64], tokens: usize) -> Outcome {
        let trial =
            |(at, kept): (usize, &f64)| Trial { scenario: format!("s{at}"), tokens, kept: *kept, fidelity: Vec::new() };
        let candidate = Candidate { name: name.to_owned(), config: ContextConfig::default(), numbers: Vec::new() };
        let trials: Vec<Trial> = shares.iter().enumerate().map(trial).collect();
        outcome(&candidate, trials.clone(), "first", &trials)
    }

    #[test]
    fn a_choice_is_scored_where_it_was_not_made_and_edges_are_named() {
        // Each is best where the other one is not: what is chosen on one scenario fails on the other.
        let outcomes = [kept("a", &[1.0, 0.2], 10), kept("b", &[0.2, 1.0], 10)];
        let left = held_out(&outcomes).unwrap();
        assert_eq!((left.kept, left.tokens, left.chosen.len()), (0.2, 20, 2));
        // Of equals the one with fewer tokens.
        let outcomes = [kept("a", &[1.0, 1.0], 10), kept("b", &[1.0, 1.0], 9)];
        assert_eq!(held_out(&outcomes).unwrap().chosen.keys().collect::<Vec<_>>(), ["b"]);
        assert_eq!(held_out(&outcomes[..0]), None);

        let candidates = grid();
        let is_long = |candidate: &Candidate| candidate.config.firewall.summary_tokens == 600;
        let share = |candidate: &Candidate| if is_long(candidate) { 0.9 } else { 0.5 };
        let outcomes: Vec<Outcome> =
            candidates.iter().map(|candidate| kept(&candidate.name, &[share(candidate)], 10)).collect();
        assert_eq!(at_the_edge(&candidates, &outcomes), [("summary".to_owned(), 600.0)]);
    }

    #[test]
    fn two_configurations_get_a_verdict() {
        let many = |share: f64| kept("a", &[share; 30], 10);
        assert_eq!(verdict(&many(1.0), &many(0.5)).word, Word::Regressed);
        assert_eq!(verdict(&many(0.5), &many(0.5)).word, Word::Same);
    }
}

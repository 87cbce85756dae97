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
use crate::eval::record::Paired;
use crate::eval::statistics::{mean, paired, round6};
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
    let mut all = vec![Candidate { name: "default".to_owned(), config: default.clone() }];
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
                        all.push(Candidate { name, config });
                    }
                }
            }
        }
    }
    all
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
}

//! Configurations of the context engine against each other: what a prompt costs, and what it keeps.
//!
//! A trial runs every scenario under one configuration. Fidelity depends on the cap of summaries alone and is measured
//! once for each. What is kept is compared scenario by scenario, fidelity result by result, both by paired bootstrap, so
//! that a difference is only called one when it is beyond noise.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::fidelity::{Content, measure};
use super::probe::Class;
use super::run::{compiled, large_results};
use super::scenario::Scenario;
use crate::eval::decision::{Decision, MARGIN, Pair, decide};
use crate::eval::record::Compared;
use crate::eval::statistics::{correct_against_first, mean, paired, round6};
use crate::eval::sweep::edges;
use crate::eval::vary::{GridError, Vary, bounded, by_parameter, number, values};
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

/// A grid with what it gives: what `bench sweep` prints and the scorecard records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Swept {
    /// Every configuration, the default first.
    pub configurations: Vec<Row>,
    /// What choosing is worth; `None` with fewer than two scenarios.
    pub held_out: Option<HeldOut>,
    /// See [`at_the_edge`].
    pub at_the_edge: Vec<(String, f64)>,
}

impl Swept {
    /// Runs every candidate on every scenario; `step` is called after each candidate.
    ///
    /// # Errors
    /// The message of a scenario that does not run under a candidate, with both names.
    pub fn of(
        candidates: &[Candidate],
        scenarios: &[(&Scenario, Conversation)],
        summarizer: &dyn Summarizer,
        step: impl Fn() + Sync,
    ) -> Result<Self, String> {
        Ok(Self::with(sweep(candidates, scenarios, summarizer, step)?, candidates))
    }

    fn with(configurations: Vec<Row>, candidates: &[Candidate]) -> Self {
        let held_out = held_out(&configurations);
        let at_the_edge = at_the_edge(candidates, &configurations);
        Self { configurations, held_out, at_the_edge }
    }

    /// The same, with all that follows from the trials of the configurations and their probabilities made again: sums and means,
    /// the fronts, corrected probabilities, what choosing is worth, and the edges. A recorded sweep of `candidates` is equal to it.
    #[must_use]
    pub fn again(&self, candidates: &[Candidate]) -> Self {
        let mut outcomes = self.configurations.clone();
        for one in &mut outcomes {
            one.tokens = one.trials.iter().map(|trial| trial.tokens).sum();
            one.kept = round6(mean(one.trials.iter().map(|trial| trial.kept)));
        }
        conclude(&mut outcomes);
        Self::with(outcomes, candidates)
    }
}

/// What choosing from a grid is worth on scenarios that the choice did not see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldOut {
    /// Mean over scenarios of what is kept.
    pub kept: f64,
    /// Tokens of all prompts.
    pub tokens: usize,
    /// How often each candidate was chosen.
    pub chosen: BTreeMap<String, usize>,
}

/// What one scenario gave under one configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// The name of the scenario.
    pub scenario: String,
    /// Tokens of the prompt.
    pub tokens: usize,
    /// Share of the required items and planted facts that the prompt holds or one view reaches.
    pub kept: f64,
    /// Share of core probes that survive in summaries, for each large result.
    #[serde(skip)]
    fidelity: Vec<f64>,
}

/// A configuration measured on all scenarios.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
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
    /// What is kept against the first configuration, over scenarios, among the differences of all others.
    pub kept_against_first: Compared,
    /// Fidelity against the first configuration, over results, among the differences of all others.
    pub fidelity_against_first: Compared,
    /// Scenario by scenario.
    pub trials: Vec<Trial>,
}

/// The grid around the default: caps of summaries, thresholds of deduplication, budgets and weights, one combination
/// each. The default comes first.
#[must_use]
pub fn grid() -> Vec<Candidate> {
    Axes::own().candidates()
}

/// The same with other values of some of the four.
///
/// # Errors
/// [`GridError`]: a parameter that the grid does not have, a value that a configuration cannot have, or too many of them.
pub fn grid_of(vary: &[Vary]) -> Result<Vec<Candidate>, GridError> {
    let (own, default) = (Axes::own(), ContextConfig::default());
    let mut axes = Axes::own();
    let valid = |config: &ContextConfig| config.validate().map_err(|error| error.to_string());
    let number_of = |text: &str, with: fn(&ContextConfig, f64) -> ContextConfig| {
        let value = number(text)?;
        valid(&with(&default, value))?;
        Ok(value)
    };
    for (parameter, texts) in by_parameter(vary, &PARAMETERS)? {
        match parameter {
            "summary" => {
                axes.summary = values(parameter, &texts, &shown(&own.summary), |text| {
                    let cap = text.parse().map_err(|_| "it is not a whole number of tokens".to_owned())?;
                    valid(&with_summary(&default, cap))?;
                    Ok(cap)
                })?;
            }
            "dedup" => {
                axes.dedup = values(parameter, &texts, &shown(&own.dedup), |text| number_of(text, with_dedup))?;
            }
            "budget" => {
                axes.budget = values(parameter, &texts, &shown(&own.budget), |text| number_of(text, with_budget))?;
            }
            _ => {
                let names: Vec<String> = own.weights.iter().map(|weights| weights.key.to_owned()).collect();
                axes.weights = values(parameter, &texts, &names, |text| {
                    let found = own.weights.iter().find(|weights| weights.key == text);
                    found.cloned().ok_or_else(|| "there are no such weights".to_owned())
                })?;
            }
        }
    }
    bounded(axes.configurations())?;
    Ok(axes.candidates())
}

/// What the grid varies, by parameter.
#[must_use]
pub fn values_of_grid() -> toml::Table {
    let Axes { summary, dedup, budget, weights } = Axes::own();
    let summary: Vec<toml::Value> = summary.into_iter().map(|cap| toml::Value::from(cap as i64)).collect();
    let [dedup, budget] = [dedup, budget].map(|all| all.into_iter().map(toml::Value::from).collect::<Vec<_>>());
    let weights: Vec<toml::Value> = weights.into_iter().map(|weights| toml::Value::from(weights.key)).collect();
    let all = PARAMETERS.into_iter().zip([summary, dedup, budget, weights]);
    all.map(|(name, values)| (name.to_owned(), toml::Value::from(values))).collect()
}

/// What the grid varies: tokens of a summary, the threshold of deduplication, the factor of all budgets, and the weights by which
/// items are chosen.
const PARAMETERS: [&str; 4] = ["summary", "dedup", "budget", "weights"];

/// The values of each of [`PARAMETERS`].
struct Axes {
    summary: Vec<usize>,
    dedup: Vec<f64>,
    budget: Vec<f64>,
    weights: Vec<Weights>,
}

/// Weights under a name.
#[derive(Debug, Clone, PartialEq)]
struct Weights {
    /// How they are asked for.
    key: &'static str,
    /// What they are called in the name of a candidate.
    name: &'static str,
    scoring: ScoringConfig,
}

impl Axes {
    /// The values that the grid tries by itself.
    fn own() -> Self {
        let scoring = ScoringConfig::default();
        let weights = |key, name, scoring| Weights { key, name, scoring };
        Self {
            summary: vec![100, 150, 300, 600],
            dedup: vec![0.70, 0.85, 1.01],
            budget: vec![0.5, 0.75, 1.0],
            weights: vec![
                weights("default", "weights default", scoring),
                weights(
                    "recency",
                    "recency .50",
                    ScoringConfig { recency: 0.50, similarity: 0.20, kind: 0.20, ..scoring },
                ),
                weights(
                    "similarity",
                    "similarity .50",
                    ScoringConfig { recency: 0.15, similarity: 0.50, kind: 0.25, ..scoring },
                ),
                weights("kind", "kind .60", ScoringConfig { recency: 0.15, similarity: 0.15, kind: 0.60, ..scoring }),
            ],
        }
    }

    /// How many combinations there are.
    fn configurations(&self) -> usize {
        let lengths = [self.summary.len(), self.dedup.len(), self.budget.len(), self.weights.len()];
        lengths.into_iter().fold(1, usize::saturating_mul)
    }

    /// One for each combination, the default first.
    fn candidates(&self) -> Vec<Candidate> {
        let default = ContextConfig::default();
        let numbers = |config: &ContextConfig, factor: f64| {
            let cap = config.firewall.summary_tokens as f64;
            vec![("summary", cap), ("dedup", config.dedup.threshold), ("budget", factor)]
        };
        let mut all =
            vec![Candidate { name: "default".to_owned(), numbers: numbers(&default, 1.0), config: default.clone() }];
        for summary in &self.summary {
            for dedup in &self.dedup {
                for factor in &self.budget {
                    for Weights { name: weights, scoring, .. } in &self.weights {
                        let mut config = with_budget(&with_dedup(&with_summary(&default, *summary), *dedup), *factor);
                        config.scoring = *scoring;
                        let [shown_dedup, shown_factor] = [*dedup, *factor].map(two_decimals);
                        let name = format!("summary {summary}, dedup {shown_dedup}, budget {shown_factor}, {weights}");
                        if config != default {
                            // Weights are not numbers: their rows are none of a line of numbers.
                            let is_line = *scoring == default.scoring;
                            let numbers = if is_line { numbers(&config, *factor) } else { Vec::new() };
                            all.push(Candidate { name, config, numbers });
                        }
                    }
                }
            }
        }
        all
    }
}

fn with_summary(config: &ContextConfig, tokens: usize) -> ContextConfig {
    let mut config = config.clone();
    config.firewall.summary_tokens = tokens;
    config
}

fn with_dedup(config: &ContextConfig, threshold: f64) -> ContextConfig {
    let mut config = config.clone();
    config.dedup.threshold = threshold;
    config
}

fn with_budget(config: &ContextConfig, factor: f64) -> ContextConfig {
    let mut config = config.clone();
    let budgets = &mut config.budgets;
    for budget in [&mut budgets.route, &mut budgets.call, &mut budgets.interpret, &mut budgets.answer] {
        *budget = (*budget as f64 * factor) as usize;
    }
    config
}

/// A number with two decimals, or with as many as it takes to tell it from others.
fn two_decimals(value: f64) -> String {
    let short = format!("{value:.2}");
    if short.parse() == Ok(value) { short } else { value.to_string() }
}

fn shown(values: &[impl ToString]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

/// The numbers of the grid whose best value by what is kept is the smallest or the largest that was tried, with that value, where
/// a configuration may go further, the others being those of the first candidate, the default.
#[must_use]
pub fn at_the_edge(candidates: &[Candidate], outcomes: &[Row]) -> Vec<(String, f64)> {
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
    let default = ContextConfig::default();
    edges(tried, |parameter, value| {
        let config = match parameter {
            "summary" => with_summary(&default, value as usize),
            "dedup" => with_dedup(&default, value),
            _ => with_budget(&default, value),
        };
        config.validate().is_ok()
    })
}

/// For each scenario the candidate that keeps most on the others (of equals the one with fewer tokens, then the first), and
/// what these choices give where they were not made. `None` with fewer than two scenarios.
#[must_use]
pub fn held_out(outcomes: &[Row]) -> Option<HeldOut> {
    let scenarios = outcomes.first()?.trials.len();
    if scenarios < 2 {
        return None;
    }
    let (mut kept, mut tokens, mut chosen) = (Vec::new(), 0, BTreeMap::new());
    for unseen in 0..scenarios {
        let seen = |outcome: &Row| {
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
pub fn verdict(first: &Row, second: &Row) -> Decision {
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
) -> Result<Vec<Row>, String> {
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
    let mut outcomes: Vec<Row> =
        candidates.par_iter().zip(trials).map(|(candidate, trials)| outcome(candidate, trials, name, &first)).collect();
    conclude(&mut outcomes);
    Ok(outcomes)
}

/// What is said of the configurations together: the fronts, and their differences from the first corrected for their number, each
/// of the two measures by itself.
fn conclude(outcomes: &mut [Row]) {
    mark_fronts(outcomes);
    correct_against_first(outcomes.iter_mut().map(|one| &mut one.kept_against_first).collect());
    correct_against_first(outcomes.iter_mut().map(|one| &mut one.fidelity_against_first).collect());
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

fn outcome(candidate: &Candidate, trials: Vec<Trial>, first_name: &str, first: &[Trial]) -> Row {
    let pairs = |of: &dyn Fn(&Trial) -> Vec<f64>| -> Vec<(f64, f64)> {
        trials.iter().zip(first).flat_map(|(own, other)| of(own).into_iter().zip(of(other))).collect()
    };
    let kept = pairs(&|trial| vec![trial.kept]);
    let fidelity = pairs(&|trial| trial.fidelity.clone());
    Row {
        name: candidate.name.clone(),
        tokens: trials.iter().map(|trial| trial.tokens).sum(),
        kept: round6(mean(kept.iter().map(|pair| pair.0))),
        fidelity: round6(mean(fidelity.iter().map(|pair| pair.0))),
        on_front_of_kept: false,
        on_front_of_fidelity: false,
        kept_against_first: Compared::alone(paired(first_name, &kept)),
        fidelity_against_first: Compared::alone(paired(first_name, &fidelity)),
        trials,
    }
}

fn mark_fronts(outcomes: &mut [Row]) {
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
    use crate::eval::decision::{Standing, Word};

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

    #[test]
    fn values_are_asked_for_in_place_of_those_of_the_grid() {
        let of = |texts: &[&str]| grid_of(&texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>());
        assert_eq!(of(&[]).unwrap().len(), grid().len());
        let asked = of(&["summary=200,250", "weights=default,kind", "dedup=0.701,0.702", "budget=1"]).unwrap();
        let names: Vec<&str> = asked.iter().map(|candidate| candidate.name.as_str()).collect();
        assert_eq!((asked.len(), names[0]), (1 + 2 * 2 * 2, "default"));
        assert_eq!(
            names[1..3],
            [
                "summary 200, dedup 0.701, budget 1.00, weights default",
                "summary 200, dedup 0.701, budget 1.00, kind .60"
            ]
        );
        let refused = |text: &str| of(&[text]).unwrap_err().to_string();
        insta::assert_snapshot!(refused("cap=1"), @"no parameter `cap` in this grid; there are summary, dedup, budget, weights");
        insta::assert_snapshot!(refused("summary=3"), @"summary=3: `firewall.summary_tokens` is 3; it must be from 16 to 1000000000; the grid itself tries 100, 150, 300, 600");
        insta::assert_snapshot!(refused("summary=1.5"), @"summary=1.5: it is not a whole number of tokens; the grid itself tries 100, 150, 300, 600");
        insta::assert_snapshot!(refused("dedup=9"), @"dedup=9: `dedup.threshold` is 9; it must be from 0.01 to 2 (above 1 nothing is dropped); the grid itself tries 0.7, 0.85, 1.01");
        insta::assert_snapshot!(refused("budget=0"), @"budget=0: `budgets.route` is 0; it must be from 1 to 1000000000; the grid itself tries 0.5, 0.75, 1");
        insta::assert_snapshot!(refused("weights=most"), @"weights=most: there are no such weights; the grid itself tries default, recency, similarity, kind");
        let many: Vec<String> = (100..150).map(|cap| cap.to_string()).collect();
        insta::assert_snapshot!(refused(&format!("summary={}", many.join(","))), @"1800 configurations are more than 400; name fewer values");
    }

    #[test]
    fn a_difference_is_shown_after_the_correction_or_not_at_all() {
        // Eight scenarios that all lose: one chance in 128, of two comparisons enough and of twenty too little.
        let first = kept("a", &[1.0; 8], 10);
        let words = |others: usize| {
            let mut outcomes: Vec<Row> = vec![first.clone()];
            outcomes.push(against("worse", &[0.5; 8], &first));
            outcomes.extend((1..others).map(|_| against("same", &[1.0; 8], &first)));
            conclude(&mut outcomes);
            let one = &outcomes[1].kept_against_first;
            (Standing::of(&one.paired), one.paired.p, one.p_holm, outcomes[0].kept_against_first.p_holm)
        };
        assert_eq!(words(2), (Standing::Worse, 0.007813, 0.015626, 1.0));
        assert_eq!(words(20), (Standing::Inconclusive, 0.007813, 0.15626, 1.0));
    }

    /// An outcome that keeps these shares where `first` keeps its own.
    fn against(name: &str, shares: &[f64], first: &Row) -> Row {
        let own = kept(name, shares, 10);
        let candidate = Candidate { name: name.to_owned(), config: ContextConfig::default(), numbers: Vec::new() };
        outcome(&candidate, own.trials, &first.name, &first.trials)
    }

    /// An outcome that keeps these shares of its scenarios.
    fn kept(name: &str, shares: &[f64], tokens: usize) -> Row {
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
        let outcomes: Vec<Row> =
            candidates.iter().map(|candidate| kept(&candidate.name, &[share(candidate)], 10)).collect();
        assert_eq!(at_the_edge(&candidates, &outcomes), [("summary".to_owned(), 600.0)]);
        // Nothing is shorter than the shortest summary that a configuration may have.
        let candidates = grid_of(&["summary=16".parse().unwrap()]).unwrap();
        let share = |candidate: &Candidate| if candidate.config.firewall.summary_tokens == 16 { 0.9 } else { 0.5 };
        let outcomes: Vec<Row> =
            candidates.iter().map(|candidate| kept(&candidate.name, &[share(candidate)], 10)).collect();
        assert_eq!(at_the_edge(&candidates, &outcomes), []);
    }

    #[test]
    fn two_configurations_get_a_verdict() {
        let many = |share: f64| kept("a", &[share; 30], 10);
        assert_eq!(verdict(&many(1.0), &many(0.5)).word, Word::Regressed);
        assert_eq!(verdict(&many(0.5), &many(0.5)).word, Word::Same);
    }
}

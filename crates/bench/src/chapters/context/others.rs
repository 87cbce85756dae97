//! Context engines of others beside ours: what their prompts take and hold, and what they leave of large results.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::{ContextResults, RIVALS, carried, check_survivors};
use crate::chapter::{Absent, Answer, Plan, Planned, Question, Wrong};
use crate::chapters::rivals::{case, parts};
use crate::eval::context::record::ContextFacts;
use crate::eval::context::rival::{ContextRivalFacts, RivalCap, RivalPrompt};
use crate::eval::context::run::inputs;
use crate::eval::context::scenario::Scenario;
use crate::eval::identity::Broken;
use crate::eval::matrix::Matrix;
use crate::eval::process::PROTOCOL;
use crate::eval::record::Outcome;
use crate::eval::statistics::median;
use crate::report::number::{MISSING, count, percent, share};
use crate::report::table::Table;
use crate::results::{KEPT, Results, days};

/// What is recorded of engines of others; empty where none is named.
pub(super) struct Others(pub(super) Vec<Results<ContextRivalFacts>>);

/// The records that there should be: every engine on every scenario.
pub(super) fn plan(matrix: &Matrix, scenarios: &[Scenario]) -> Result<Plan> {
    let mut cases = Vec::new();
    for scenario in scenarios {
        let inputs_sha256 = scenario.is_present().then(|| inputs(scenario, None)).transpose()?;
        cases.extend(matrix.context_rivals.iter().map(|rival| Planned {
            case: case(&rival.name, &scenario.name),
            origin: scenario.origin,
            absent: Some(Absent::Recorded),
            inputs_sha256: inputs_sha256.clone(),
        }));
    }
    let line = |rival: &crate::eval::rival::Rival| format!("{}: {}\n", rival.name, rival.command());
    Ok(Plan {
        name: RIVALS.to_owned(),
        configuration: matrix.context_rivals.iter().map(line).collect(),
        version: format!("protocol {PROTOCOL}"),
        cases,
    })
}

/// What an engine gave on the scenarios that it finished.
struct Row<'r> {
    name: String,
    /// With what ours gave on the same.
    prompts: Vec<(&'r RivalPrompt, &'r ContextFacts)>,
    /// The words for why there is no prompt, with how many scenarios each is about.
    words: BTreeMap<&'r str, usize>,
}

/// What the prompts of an engine take and hold together.
struct Held {
    /// The median share that they save of their conversation.
    median_saved: f64,
    /// Prompts over their budget.
    over: usize,
    /// Facts that they state.
    facts_in_prompt: usize,
    /// Facts that were looked for.
    facts: usize,
}

impl Row<'_> {
    fn sum(&self, of: fn(&RivalPrompt) -> usize) -> usize {
        self.prompts.iter().map(|(prompt, _)| of(prompt)).sum()
    }

    /// `None` where it gave no prompt.
    fn held(&self) -> Option<Held> {
        let carrying = self.prompts.iter().filter(|(_, facts)| carried(facts) > 0);
        let saved: Vec<f64> =
            carrying.map(|(prompt, facts)| 1.0 - prompt.tokens as f64 / carried(facts) as f64).collect();
        (!self.prompts.is_empty()).then(|| Held {
            median_saved: median(&saved),
            over: self.sum(|prompt| usize::from(prompt.tokens > prompt.budget)),
            facts_in_prompt: self.sum(|prompt| prompt.facts_in_prompt),
            facts: self.sum(|prompt| prompt.facts),
        })
    }
}

/// The word of a failure that comes before its reason.
fn word(reason: &str) -> &str {
    reason.split(':').next().unwrap_or_default()
}

impl Others {
    /// The engines, in the order of their names.
    fn engines(&self) -> BTreeSet<&str> {
        self.0.iter().flat_map(|results| &results.records).map(|record| parts(&record.case).0).collect()
    }

    /// The scenarios and what is recorded of `engine` on each.
    fn of<'r>(&'r self, engine: &'r str) -> impl Iterator<Item = (&'r str, &'r Outcome<ContextRivalFacts>)> {
        let records = self.0.iter().flat_map(|results| &results.records);
        records
            .map(|record| (parts(&record.case), &record.outcome))
            .filter_map(move |((name, scenario), outcome)| (name == engine).then_some((scenario, outcome)))
    }

    fn rows<'r>(&'r self, ours: &'r ContextResults) -> Vec<Row<'r>> {
        let own: BTreeMap<&str, &ContextFacts> =
            ours.measured().map(|(record, facts)| (record.case.as_str(), facts.as_ref())).collect();
        let row = |engine: &'r str| {
            let mut row = Row { name: format!("{engine} †"), prompts: Vec::new(), words: BTreeMap::new() };
            for (scenario, outcome) in self.of(engine) {
                let failed = match outcome {
                    Outcome::Failed(reason) => reason,
                    Outcome::Measured(facts) => match &facts.prompt {
                        Outcome::Measured(prompt) => {
                            row.prompts.extend(own.get(scenario).map(|own| (prompt, *own)));
                            continue;
                        }
                        Outcome::Failed(reason) => reason,
                    },
                };
                *row.words.entry(word(failed)).or_default() += 1;
            }
            row
        };
        self.engines().into_iter().map(row).collect()
    }

    /// What prompts take and hold: ours first.
    pub(super) fn prompts(&self, ours: &ContextResults) -> Table {
        let titles = [
            "engine",
            "prompts",
            "tokens",
            "median saved",
            "over budget",
            "facts in the prompt",
            "forbidden",
            "no prompt",
        ];
        let mut table = Table::new(titles).words(&["no prompt"]);
        let ratio = |part: usize, whole: usize| {
            let shown = if whole == 0 { MISSING.to_owned() } else { share(part as f64 / whole as f64) };
            format!("{shown} ({} / {})", count(part), count(whole))
        };
        let own: Vec<RivalPrompt> = ours.measured().map(|(_, facts)| as_prompt(facts)).collect();
        let with = own.iter().zip(ours.measured().map(|(_, facts)| facts.as_ref())).collect();
        let first = Row { name: "ours".to_owned(), prompts: with, words: BTreeMap::new() };
        for row in std::iter::once(first).chain(self.rows(ours)) {
            let words: Vec<String> =
                row.words.iter().map(|(word, times)| format!("{word} ({})", count(*times))).collect();
            let cells = match row.held() {
                None => [MISSING; 5].map(str::to_owned),
                Some(held) => [
                    count(row.sum(|prompt| prompt.tokens)),
                    percent(held.median_saved),
                    count(held.over),
                    ratio(held.facts_in_prompt, held.facts),
                    ratio(row.sum(|prompt| prompt.forbidden_in_prompt), row.sum(|prompt| prompt.forbidden)),
                ],
            };
            let ends = if words.is_empty() { MISSING.to_owned() } else { words.join(", ") };
            table.row([row.name, count(row.prompts.len())].into_iter().chain(cells).chain([ends]));
        }
        table
    }

    /// Versions, and what they were installed from.
    pub(super) fn versions(&self) -> Table {
        let mut table = Table::new(["engine", "version", "requirements"]).words(&["version", "requirements"]);
        for engine in self.engines() {
            let facts: Vec<&ContextRivalFacts> = self
                .of(engine)
                .filter_map(|(_, outcome)| match outcome {
                    Outcome::Measured(facts) => Some(facts),
                    Outcome::Failed(_) => None,
                })
                .collect();
            let set = |of: fn(&ContextRivalFacts) -> String| {
                let all: BTreeSet<String> = facts.iter().map(|facts| of(facts)).collect();
                all.into_iter().collect::<Vec<_>>().join(", ")
            };
            let pinned = |facts: &ContextRivalFacts| {
                facts.requirements_sha256.as_ref().map_or(MISSING.to_owned(), |sha| sha.chars().take(12).collect())
            };
            table.row([format!("{engine} †"), set(|facts| facts.version.clone()), set(pinned)]);
        }
        table
    }

    /// What each engine left of the large results, cap by cap, where it finished all of them.
    pub(super) fn caps(&self) -> Vec<(String, Vec<RivalCap>)> {
        let all = self.engines().into_iter().filter_map(|engine| {
            let mut sums: Vec<RivalCap> = Vec::new();
            for (_, outcome) in self.of(engine) {
                let Outcome::Measured(facts) = outcome else { return None };
                let results = match &facts.results {
                    None => continue,
                    Some(Outcome::Measured(results)) => results,
                    Some(Outcome::Failed(_)) => return None,
                };
                for at in &results.caps {
                    match sums.iter_mut().find(|sum| sum.cap == at.cap) {
                        Some(sum) => sum.join(at),
                        None => sums.push(at.clone()),
                    }
                }
            }
            (!sums.is_empty()).then(|| (format!("{engine} †"), sums))
        });
        all.collect()
    }

    /// The days on which the records were made.
    pub(super) fn days(&self) -> String {
        days(self.0.iter().flat_map(|results| &results.records))
    }

    /// Whether nothing is recorded.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|results| results.records.is_empty())
    }

    /// What the prompts of those of others save and hold of the same conversations that save most, that hold most, and that save
    /// most within every budget, as a part of a sentence; `None` without one.
    pub(super) fn beside(&self, ours: &ContextResults) -> Option<String> {
        let rows = self.rows(ours);
        let held: Vec<(&str, Held)> =
            rows.iter().filter_map(|row| Some((row.name.trim_end_matches(" †"), row.held()?))).collect();
        // Of equals the one that is named first.
        let saves = held.iter().rev().max_by(|left, right| left.1.median_saved.total_cmp(&right.1.median_saved))?;
        let holds = held.iter().rev().max_by_key(|(_, held)| held.facts_in_prompt)?;
        let one = |(name, held): &(&str, Held)| {
            let Held { median_saved, over, facts_in_prompt, .. } = held;
            format!(
                "{name} {}, {} facts, {} over budget",
                percent(*median_saved),
                count(*facts_in_prompt),
                count(*over)
            )
        };
        let within = held.iter().rev().filter(|(_, held)| held.over == 0);
        let within = within.max_by(|left, right| left.1.median_saved.total_cmp(&right.1.median_saved));
        let mut named: Vec<&(&str, Held)> = Vec::new();
        for engine in [Some(saves), Some(holds), within].into_iter().flatten() {
            if named.iter().all(|other| other.0 != engine.0) {
                named.push(engine);
            }
        }
        Some(named.into_iter().map(one).collect::<Vec<String>>().join("; "))
    }

    /// Where prompts of others hold more facts than ours within the same budgets.
    pub(super) fn answer(&self, ours: &ContextResults) -> Option<Answer> {
        let held = |prompt: &RivalPrompt| if prompt.tokens > prompt.budget { 0 } else { prompt.facts_in_prompt };
        let ahead = self.rows(ours).into_iter().filter_map(|row| {
            let theirs: usize = row.prompts.iter().map(|(prompt, _)| held(prompt)).sum();
            let own: usize = row.prompts.iter().map(|(_, facts)| facts.kept.facts_in_prompt).sum();
            let name = row.name.trim_end_matches(" †").to_owned();
            (theirs > own).then(|| format!("{name} {} against {}", count(theirs), count(own)))
        });
        let ahead: Vec<String> = ahead.collect();
        (!ahead.is_empty()).then(|| {
            let text = format!(
                "[Third-party context engines](context.md) whose prompts within the budget contain more facts than \
                 ours: {}.{KEPT}",
                ahead.join("; ")
            );
            Answer::new(Question::Failure, text)
        })
    }

    /// What can be seen to be wrong: other questions than ours were asked, or parts do not add up.
    pub(super) fn wrong(&self, ours: &[ContextResults]) -> Vec<Wrong> {
        let own: BTreeMap<&str, &ContextFacts> = ours
            .iter()
            .flat_map(Results::measured)
            .map(|(record, facts)| (record.case.as_str(), facts.as_ref()))
            .collect();
        let mut wrong = Vec::new();
        for (record, facts) in self.0.iter().flat_map(Results::measured) {
            let (engine, scenario) = parts(&record.case);
            let mut broken = Broken::default();
            let again = format!("run `contextweaver bench run --engines {engine} --scenarios {scenario}`");
            check(facts, own.get(scenario).copied(), &again, &mut broken);
            wrong.extend(Wrong::each(RIVALS, &record.case, broken.reasons()));
        }
        wrong
    }
}

/// Our prompt as one of others would be recorded.
fn as_prompt(facts: &ContextFacts) -> RivalPrompt {
    RivalPrompt {
        budget: facts.budget,
        tokens: facts.prompt_tokens,
        facts: facts.kept.facts,
        facts_in_prompt: facts.kept.facts_in_prompt,
        forbidden: facts.kept.forbidden_asked,
        forbidden_in_prompt: facts.kept.forbidden.len(),
    }
}

fn check(facts: &ContextRivalFacts, own: Option<&ContextFacts>, again: &str, broken: &mut Broken) {
    if let Outcome::Measured(prompt) = &facts.prompt {
        let is_less = prompt.facts_in_prompt <= prompt.facts && prompt.forbidden_in_prompt <= prompt.forbidden;
        broken.unless(is_less, "a prompt holds more than it was searched for");
        if let Some(own) = own.map(as_prompt) {
            let asked = |prompt: &RivalPrompt| [prompt.budget, prompt.facts, prompt.forbidden];
            broken
                .unless(asked(prompt) == asked(&own), format!("its prompt was asked for otherwise than ours: {again}"));
        }
    }
    if let Some(Outcome::Measured(results)) = &facts.results {
        for at in &results.caps {
            broken.unless(at.over <= results.results, "more texts are over the cap than there are");
            check_survivors(&at.probes, broken);
            check_survivors(&at.questions, broken);
        }
        if let Some(own) = own {
            let fidelity = own.fidelity.as_ref();
            let ours: Vec<[usize; 3]> = fidelity.map_or(Vec::new(), |fidelity| {
                let people = |at: usize| fidelity.questions.get(at).map_or(0, |at| at.kept.all.asked);
                let cap = |(number, at): (usize, &_)| -> [usize; 3] {
                    let at: &crate::eval::context::fidelity::AtCap = at;
                    [at.cap, at.kept.all.asked, people(number)]
                };
                fidelity.caps.iter().enumerate().map(cap).collect()
            });
            let theirs: Vec<[usize; 3]> =
                results.caps.iter().map(|at| [at.cap, at.probes.all.asked, at.questions.all.asked]).collect();
            let is_same = theirs == ours && fidelity.is_some_and(|fidelity| fidelity.results == results.results);
            broken.unless(is_same, format!("its results were asked about otherwise than ours: {again}"));
        }
    }
}

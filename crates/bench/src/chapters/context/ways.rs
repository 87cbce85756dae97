//! Scenarios that rest on more than one log, beside the newest texts alone: what is planned, verified and shown of them.

use std::collections::BTreeSet;

use anyhow::Result;
use rayon::prelude::*;

use super::{ContextRecord, NAME};
use crate::chapter::{Absent, Answer, Fresh, Inputs, Plan, Planned, Question, Step, Wrong};
use crate::eval::context::run::configuration;
use crate::eval::context::scenario::Scenario;
use crate::eval::context::way::record::WayFacts;
use crate::eval::context::way::run::{inputs, record, version};
use crate::eval::identity::Broken;
use crate::eval::workspace::Bench;
use crate::report::document::Document;
use crate::report::number::{MISSING, count};
use crate::report::table::{Table, failures};
use crate::results::Results;
use contextweaver_context::ContextConfig;

/// The name of their results file.
pub(super) const WAYS: &str = "context-memory";

/// What is recorded of them.
pub(super) struct Ways(pub(super) Vec<Results<Box<WayFacts>>>);

/// The records that there should be.
pub(super) fn plan(bench: &Bench) -> Result<Plan> {
    let config = ContextConfig::default();
    let planned = |scenario: &Scenario| Planned {
        case: scenario.name.clone(),
        origin: scenario.origin,
        absent: (!bench.workspace.has_scenario(scenario)).then_some(Absent::Inputs),
        inputs_sha256: None,
    };
    Ok(Plan {
        name: WAYS.to_owned(),
        configuration: configuration(&config),
        version: version(&config),
        cases: bench.workspace.ways()?.iter().map(planned).collect(),
    })
}

/// The inputs of a planned record; `None` for one that is not of these.
pub(super) fn inputs_of(bench: &Bench, case: &str) -> Result<Option<Inputs>> {
    let all = bench.workspace.ways()?;
    let scenario = all.iter().find(|scenario| scenario.name == case);
    scenario.map(|scenario| Ok(Inputs { sha256: inputs(scenario)?, beside: String::new() })).transpose()
}

/// Measures those of `wanted`.
pub(super) fn measure(bench: &Bench, wanted: &BTreeSet<&str>, step: Step<'_>) -> Result<Vec<Fresh<ContextRecord>>> {
    let all = bench.workspace.ways()?;
    let here: Vec<&Scenario> = all.iter().filter(|scenario| wanted.contains(scenario.name.as_str())).collect();
    let run = |scenario: &&Scenario| {
        step(&format!("{NAME} of {}", scenario.name));
        let (inputs_sha256, outcome) = record(scenario, &ContextConfig::default())?;
        let outcome = outcome.map(ContextRecord::Way);
        Ok(Fresh { results: WAYS.to_owned(), case: scenario.name.clone(), inputs_sha256, outcome })
    };
    here.par_iter().map(run).collect()
}

impl Ways {
    /// The scenarios that were measured with their labels, those of one way together.
    fn measured(&self) -> Vec<(String, &WayFacts)> {
        let all = self.0.iter().flat_map(|results| results.measured().map(move |row| (results, row)));
        let mut rows: Vec<(String, &WayFacts)> =
            all.map(|(results, (record, facts))| (results.label(record), facts.as_ref())).collect();
        rows.sort_by_key(|(_, facts)| facts.way);
        rows
    }

    /// What can be seen to be wrong.
    pub(super) fn wrong(&self) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        for (results, (record, facts)) in self.0.iter().flat_map(|one| one.measured().map(move |row| (one, row))) {
            let mut broken = Broken::default();
            check(facts, &mut broken);
            wrong.extend(Wrong::each(&results.name, &record.case, broken.reasons()));
        }
        wrong
    }

    /// Its part of the page.
    pub(super) fn render(&self, page: &mut Document) {
        if self.0.iter().all(|results| results.records.is_empty()) {
            return;
        }
        page.subheading("Memory and hand-over");
        page.block(
            "Scenarios whose prompt is based on more than a single unprocessed log: earlier sessions that became a \
             memory, a hand-over, results that somebody else's program processed, [hooks](../docs/memory.md#hooks). \
             They are not included in the figures above. The programs behind hooks are stand-ins inside the harness, \
             reached through the same interface as a command or an address, so that every machine gives the same \
             results; starting, asking and ending a real process is covered by a test of the engine. The service with \
             Mem0's interface is a stand-in too; it listens on this machine and is asked over HTTP. The control is the \
             end of everything that was said, earlier sessions included, in as many tokens as the budget of the \
             prompt.",
        );
        page.table(
            "Tokens of all that was said, of what the memory or the hand-over gives, of the prompt and of the control; \
             planted facts that the prompt states, further ones that one view reaches, and those that the control \
             states; forbidden texts that are there anyway, in the prompt and in the control.",
            &self.table(),
        );
        let lost = self.lost();
        if !lost.is_empty() {
            page.table("Planted facts that the prompt neither states nor reaches.", &lost);
        }
        let failed = failures("scenario", self.0.iter().flat_map(Results::failed));
        if !failed.is_empty() {
            page.table("Those of these scenarios for which no prompt was compiled, with the reason.", &failed);
        }
    }

    fn table(&self) -> Table {
        let titles = [
            "scenario",
            "what it exercises",
            "what does the same",
            "all",
            "carried",
            "budget",
            "prompt",
            "control",
            "facts",
            "by view",
            "facts of the control",
            "forbidden",
        ];
        let mut table = Table::new(titles).words(&["what it exercises", "what does the same"]);
        for (label, facts) in self.measured() {
            let (kept, control) = (&facts.kept, &facts.control);
            let of = |part: usize| format!("{} / {}", count(part), count(kept.facts));
            table.row([
                label,
                facts.way.about().to_owned(),
                facts.way.command().to_owned(),
                count(facts.history),
                facts.carried.map_or_else(|| MISSING.to_owned(), count),
                count(facts.budget),
                count(facts.prompt_tokens),
                count(control.tokens),
                of(kept.facts_in_prompt),
                count(kept.facts_by_view),
                of(control.facts_in_prompt),
                format!("{}, {}", count(kept.forbidden.len()), count(control.forbidden.len())),
            ]);
        }
        table
    }

    fn lost(&self) -> Table {
        let mut table = Table::new(["scenario", "fact", "the control"]).words(&["fact", "the control"]);
        for (label, facts) in self.measured() {
            for fact in &facts.kept.lost {
                let states = !facts.control.lost.contains(fact);
                table.row([label.clone(), fact.clone(), if states { "states it" } else { "loses it too" }.to_owned()]);
            }
        }
        table
    }

    /// Where the control states more.
    pub(super) fn answer(&self) -> Option<Answer> {
        let behind =
            self.measured().into_iter().filter(|(_, facts)| facts.control.facts_in_prompt > facts.kept.facts_in_prompt);
        let named: Vec<String> = behind
            .map(|(label, facts)| {
                let (ours, theirs) = (facts.kept.facts_in_prompt, facts.control.facts_in_prompt);
                format!("{label} {} against {}", count(theirs), count(ours))
            })
            .collect();
        (!named.is_empty()).then(|| {
            let text = format!(
                "The newest texts alone state more facts than ours in scenarios of [memory and \
                 hand-over](context.md#memory-and-hand-over): {}.",
                named.join("; ")
            );
            Answer::new(Question::Failure, text)
        })
    }

    /// What a run prints of them.
    pub(super) fn terminal(&self) -> String {
        let rows = self.measured();
        if rows.is_empty() {
            return String::new();
        }
        let mut table = Table::new(["scenario", "prompt", "budget", "facts", "control", "lost"]);
        for (label, facts) in rows {
            let kept = &facts.kept;
            table.row([
                label,
                count(facts.prompt_tokens),
                count(facts.budget),
                format!("{}/{}", kept.facts_in_prompt + kept.facts_by_view, kept.facts),
                format!("{}/{}", facts.control.facts_in_prompt, kept.facts),
                count(kept.lost.len()),
            ]);
        }
        let failed = self.0.iter().flat_map(Results::failed);
        let failed = failed.map(|(case, message)| {
            format!("failed: {case}: {}\n", message.split_whitespace().collect::<Vec<_>>().join(" "))
        });
        table.plain() + &failed.collect::<String>()
    }
}

/// What must hold among the counts of one scenario.
fn check(facts: &WayFacts, broken: &mut Broken) {
    let (kept, control) = (&facts.kept, &facts.control);
    broken.unless(facts.prompt_tokens <= facts.budget, "the prompt is over its budget");
    broken.unless(control.tokens <= facts.budget, "the control is over the budget");
    broken.unless(control.tokens <= facts.history, "the control is longer than what was said");
    broken.unless(kept.missing.len() <= kept.required, "more required items are missing than there are");
    let found = kept.facts_in_prompt + kept.facts_by_view + kept.lost.len();
    broken.unless(found == kept.facts, "facts in the prompt, by view and lost are not all facts");
    let found = control.facts_in_prompt + control.lost.len();
    broken.unless(found == kept.facts, "facts in the control and lost are not all facts");
    broken.unless(kept.forbidden.len() <= kept.forbidden_asked, "more forbidden texts are there than were asked for");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::context::record::Kept;
    use crate::eval::context::way::WayKind;
    use crate::eval::context::way::record::ControlKept;
    use crate::eval::record::Outcome;
    use crate::results::recorded;

    fn facts() -> WayFacts {
        WayFacts {
            way: WayKind::Memory,
            logs: 3,
            events: 50,
            history: 9_120,
            carried: Some(280),
            budget: 900,
            prompt_tokens: 850,
            kept: Kept {
                required: 2,
                missing: Vec::new(),
                facts: 5,
                facts_in_prompt: 3,
                facts_by_view: 1,
                view_tokens: 40,
                lost: vec!["lead: Ines".to_owned()],
                forbidden_asked: 1,
                forbidden: Vec::new(),
                calls: 9,
                calls_accounted: 9,
                in_order: true,
            },
            control: ControlKept {
                tokens: 900,
                facts_in_prompt: 4,
                lost: vec!["rule: never".to_owned()],
                forbidden: vec!["secret".to_owned()],
            },
            notes: Vec::new(),
        }
    }

    fn ways(outcomes: Vec<(&str, Outcome<Box<WayFacts>>)>) -> Ways {
        Ways(vec![recorded(WAYS, outcomes)])
    }

    #[test]
    fn the_page_shows_what_is_stated_and_what_is_lost() {
        let handed = WayFacts { way: WayKind::Handoff, carried: None, ..facts() };
        let ways = ways(vec![
            ("a-desk", Outcome::Measured(Box::new(handed))),
            ("days", Outcome::Measured(Box::new(facts()))),
            ("odd", Outcome::Failed("no memory".to_owned())),
        ]);
        let mut page = Document::default();
        page.heading("Context");
        ways.render(&mut page);
        let text = page.text();
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        insta::assert_snapshot!(rows.join("\n"), @r"
        | scenario | what it exercises                                    | what does the same           |   all | carried | budget | prompt | control | facts | by view | facts of the control | forbidden |
        | -------- | ---------------------------------------------------- | ---------------------------- | ----: | ------: | -----: | -----: | ------: | ----: | ------: | -------------------: | --------: |
        | days     | sessions become a memory, a later prompt searches it | consolidate, replay --memory | 9,120 |     280 |    900 |    850 |     900 | 3 / 5 |       1 |                4 / 5 |      0, 1 |
        | a-desk   | a hand-over, from which a new session goes on        | handoff --out, replay        | 9,120 |       – |    900 |    850 |     900 | 3 / 5 |       1 |                4 / 5 |      0, 1 |
        | scenario | fact       | the control |
        | -------- | ---------- | ----------- |
        | days     | lead: Ines | states it   |
        | a-desk   | lead: Ines | states it   |
        | scenario | message   |
        | -------- | --------- |
        | odd      | no memory |
        ");
        assert!(
            text.contains("## Memory and hand-over") && text.contains("are stand-ins inside the harness"),
            "{text}"
        );
        assert!(ways.wrong().is_empty());
        let answer = ways.answer().unwrap();
        assert!(answer.text.ends_with("days 4 against 3; a-desk 4 against 3."), "{}", answer.text);
        assert!(ways.terminal().ends_with("failed: odd: no memory\n"), "{}", ways.terminal());
    }

    #[test]
    fn parts_that_do_not_add_up_are_wrong() {
        let mut odd = facts();
        (odd.prompt_tokens, odd.control.facts_in_prompt) = (901, 5);
        let found = ways(vec![("days", Outcome::Measured(Box::new(odd)))]).wrong();
        let reasons: Vec<&str> = found.iter().map(|wrong| wrong.reason.as_str()).collect();
        assert_eq!(reasons, ["the prompt is over its budget", "facts in the control and lost are not all facts"]);
    }
}

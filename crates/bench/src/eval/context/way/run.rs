//! Scenarios with a way -> facts.
//!
//! The prompt is compiled as a user would: through the same calls as the commands make. It is read by the rules that every
//! scenario is read by. Beside it stands what needs no engine: the end of everything that was said, in every log, in as many
//! tokens as the prompt may have. That is more than the newest whole texts that fit, which is what engines of others are
//! compared with.

use sha2::{Digest, Sha256};

use super::record::{ControlKept, WayFacts};
use super::{Ready, Start, Way};
use crate::eval::context::controls::tail;
use crate::eval::context::probe::Haystack;
use crate::eval::context::run::{kept, states, told as text_of};
use crate::eval::context::scenario::{Planted, Scenario, ScenarioError};
use crate::eval::error::EvalError;
use crate::eval::record::Outcome;
use crate::eval::version;
use contextweaver_context::{ContextConfig, Request};
use contextweaver_core::text::hex;

/// A small scenario of each way with its logs, by which versions are told apart.
const PROBES: [(&str, &str, &[&[u8]]); 4] = [
    ("memory", include_str!("../../probe/way/memory.toml"), &[FIRST, SECOND]),
    ("handoff", include_str!("../../probe/way/handoff.toml"), &[FIRST]),
    ("envelopes", include_str!("../../probe/way/envelopes.toml"), &[SECOND]),
    ("hooks", include_str!("../../probe/way/hooks.toml"), &[FIRST]),
];
const FIRST: &[u8] = include_bytes!("../../probe/way/first.jsonl");
const SECOND: &[u8] = include_bytes!("../../probe/way/second.jsonl");

/// The version of what is measured under a configuration: the facts of a small scenario of each way, and what its prompt
/// is.
#[must_use]
pub fn version(config: &ContextConfig) -> String {
    let configuration = crate::eval::context::run::configuration(config);
    version::of(&configuration, &on_probes(config).map_err(|error| error.to_string()))
}

fn on_probes(config: &ContextConfig) -> Result<Vec<(String, WayFacts)>, EvalError> {
    let measured = PROBES.iter().map(|(name, source, logs)| {
        let failed = |reason: &dyn std::fmt::Display| EvalError::failed("the probe", reason);
        let scenario = Scenario::parse(format!("{name}.toml").as_ref(), (*source).to_owned(), "".as_ref());
        let logs: Vec<Vec<u8>> = logs.iter().map(|log| log.to_vec()).collect();
        measured(&scenario.map_err(|error| failed(&error))?, &logs, config).map_err(|reason| failed(&reason))
    });
    measured.collect()
}

/// SHA-256 (hex) of the inputs of a scenario, and what comes of it under `base`, as far as the scenario does not set it
/// otherwise.
///
/// # Errors
/// A log cannot be read; what fails behind that is an outcome.
pub fn record(scenario: &Scenario, base: &ContextConfig) -> Result<(String, Outcome<Box<WayFacts>>), ScenarioError> {
    let logs = scenario.logs()?;
    scenario.conversations(&logs)?;
    let outcome = match facts(scenario, &logs, base) {
        Ok(facts) => Outcome::Measured(Box::new(facts)),
        Err(message) => Outcome::Failed(message),
    };
    Ok((digest(scenario, &logs), outcome))
}

/// SHA-256 (hex) of the inputs of a scenario, as [`record`] gives it.
///
/// # Errors
/// A log cannot be read.
pub fn inputs(scenario: &Scenario) -> Result<String, ScenarioError> {
    Ok(digest(scenario, &scenario.logs()?))
}

fn digest(scenario: &Scenario, logs: &[Vec<u8>]) -> String {
    let mut digest = Sha256::new();
    logs.iter().for_each(|log| digest.update(log));
    digest.update(&scenario.source);
    hex(&digest.finalize())
}

/// Everything that is measured on a scenario whose logs have these bytes, that of the prompt last.
///
/// # Errors
/// The message of what failed.
pub fn facts(scenario: &Scenario, logs: &[Vec<u8>], base: &ContextConfig) -> Result<WayFacts, String> {
    measured(scenario, logs, base).map(|(_, facts)| facts)
}

/// The prompt, and what is measured on it.
fn measured(scenario: &Scenario, logs: &[Vec<u8>], base: &ContextConfig) -> Result<(String, WayFacts), String> {
    let config = scenario.configured(base)?;
    let conversations = scenario.conversations(logs).map_err(|error| error.to_string())?;
    let way = scenario.way.as_ref().ok_or("the scenario has no table of a way")?;
    let start = Start { scenario, config: &config, logs, conversations: &conversations };
    let Ready { manager, carried } = Way::ready(way, &start)?;
    let request = Request { budget: scenario.budget, ..Request::new(scenario.phase, &scenario.query) };
    let pack = manager.build_request(&request).map_err(|error| error.to_string())?;
    let transcript = manager.stores().events.transcript().map_err(|error| error.to_string())?;
    let events = || conversations.iter().flat_map(|conversation| &conversation.events);
    let history: String = events().map(text_of).collect();
    let budget = scenario.budget.unwrap_or_else(|| config.budgets.of(scenario.phase));
    let facts = WayFacts {
        way: way.kind(),
        logs: logs.len(),
        events: events().count(),
        history: config.estimator.count(&history),
        carried,
        budget,
        prompt_tokens: config.estimator.count(&pack.prompt),
        kept: kept(scenario, &pack, &transcript, manager.stores().artifacts.as_ref(), config.estimator),
        control: control(scenario, tail(&history, budget, config.estimator), &config),
        notes: pack.stats.notes.clone(),
    };
    Ok((pack.prompt, facts))
}

fn control(scenario: &Scenario, text: &str, config: &ContextConfig) -> ControlKept {
    let prompt = Haystack::new(text);
    let (stated, lost): (Vec<&Planted>, Vec<&Planted>) = scenario.facts.iter().partition(|fact| states(&prompt, fact));
    ControlKept {
        tokens: config.estimator.count(text),
        facts_in_prompt: stated.len(),
        lost: lost.into_iter().map(Planted::told).collect(),
        forbidden: scenario.forbidden.iter().filter(|own| text.contains(own.as_str())).cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::eval::context::scenario::load_all;
    use crate::eval::context::way::WayKind;

    #[test]
    fn every_way_gives_its_prompt_beside_a_control() {
        let probes = on_probes(&ContextConfig::default()).unwrap();
        let told = |(prompt, facts): &(String, WayFacts)| {
            assert!(facts.prompt_tokens <= facts.budget && facts.control.tokens <= facts.budget, "{facts:?}");
            assert!(facts.kept.missing.is_empty() && facts.kept.forbidden.is_empty(), "{prompt}");
            let kept = &facts.kept;
            (
                facts.way,
                facts.logs,
                [kept.facts_in_prompt, kept.facts_by_view, kept.lost.len()],
                facts.control.facts_in_prompt,
            )
        };
        assert_eq!(
            probes.iter().map(told).collect::<Vec<_>>(),
            [
                (WayKind::Memory, 2, [2, 0, 0], 0),
                (WayKind::Handoff, 1, [1, 2, 0], 2),
                (WayKind::Envelopes, 1, [1, 1, 0], 0),
                (WayKind::Hooks, 1, [1, 0, 0], 1),
            ]
        );
        let [(memory, _), (handoff, handed), (envelopes, _), (hooks, hooked)] = probes.as_slice() else { panic!() };
        assert!(memory.contains("- memory:winter_level: winter level: 180 cm"), "{memory}");
        assert!(handed.carried.is_some_and(|tokens| tokens <= 200) && handoff.contains("close the upper pound"));
        assert!(envelopes.contains("[TOOL RESULT [artifact:store:77]]\n41 lines; 40 barges"), "{envelopes}");
        assert!(hooks.contains("\ngate 61: leaking! level 188 cm, keeper [number] called\n"), "{hooks}");
        assert_eq!(hooked.control.forbidden, ["4471920"]);
        assert_eq!(hooked.notes, ["hook token_counter: 174 of 240 tokens"]);
    }

    #[test]
    fn the_committed_scenarios_of_every_way_plant_what_their_events_say() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/context");
        let scenarios = load_all(&folder, Path::new("/nowhere")).unwrap();
        let (mut kinds, mut lost) = (Vec::new(), Vec::new());
        for scenario in &scenarios {
            let Some(way) = &scenario.way else { continue };
            kinds.push(way.kind());
            let logs = scenario.logs().unwrap();
            let conversations = scenario.conversations(&logs).unwrap();
            for fact in &scenario.facts {
                let events = conversations.iter().flat_map(|conversation| &conversation.events);
                let event = events.into_iter().find(|event| event.item.id.as_str() == fact.item).unwrap();
                assert!(states(&Haystack::new(&event.item.text), fact), "{}: {}", scenario.name, fact.told());
            }
            let facts = facts(scenario, &logs, &ContextConfig::default()).unwrap();
            assert!(facts.prompt_tokens <= facts.budget && facts.budget < facts.history, "{}", scenario.name);
            assert!(facts.control.tokens <= facts.budget, "{}", scenario.name);
            assert_eq!(facts.kept.forbidden, Vec::<String>::new(), "{}", scenario.name);
            assert_eq!(facts.kept.missing, Vec::<String>::new(), "{}", scenario.name);
            lost.extend(facts.kept.lost.into_iter().map(|fact| format!("{}: {fact}", scenario.name)));
            assert!(!facts.control.lost.is_empty(), "{}: the control loses nothing", scenario.name);
            assert!(!facts.notes.iter().any(|note| note.contains("the built-in was used")), "{:?}", facts.notes);
        }
        kinds.sort();
        kinds.dedup();
        // Fewer are better; others are a change to look at.
        insta::assert_snapshot!(lost.join("\n"), @r"
        coding-3: lock: pg_advisory_xact_lock
        incident-3-file: replay: 90331200
        incident-3-file: opened: INC-7741
        incident-3-mem0: replay: 90331200
        incident-3-mem0: opened: INC-7741
        incident-3-sqlite: replay: 90331200
        incident-3-sqlite: opened: INC-7741
        incident-3: replay: 90331200
        incident-3: opened: INC-7741
        support: PM-90342: 7GHQ-958
        ");
        // Wherever a memory is kept, the prompt is the same.
        let prompt = |name: &str| {
            let scenario = scenarios.iter().find(|scenario| scenario.name == name).unwrap();
            measured(scenario, &scenario.logs().unwrap(), &ContextConfig::default()).unwrap().0
        };
        let expected = prompt("incident-3");
        assert!(expected.contains("- memory:incident_lead: incident lead: Jonas Weil"), "{expected}");
        for kept in ["file", "sqlite", "mem0"] {
            assert_eq!(prompt(&format!("incident-3-{kept}")), expected, "{kept}");
        }
        assert_eq!(
            kinds,
            [
                WayKind::Memory,
                WayKind::MemoryFile,
                WayKind::MemorySqlite,
                WayKind::MemoryMem0,
                WayKind::Handoff,
                WayKind::Envelopes,
                WayKind::Hooks
            ]
        );
    }
}

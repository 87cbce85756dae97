//! Context engines of others on the scenarios: what prompts they make, and what they leave of large results.
//!
//! They come by the door of `docs/engines.md`. They get the conversation, the query and the budget, or one result and a
//! cap, and give text; tokens are counted here and facts looked for here, by the rules that ours is read by. As with
//! engines that rank, nothing is computed again by a check.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fidelity::{Asked, CAPS, Summary, Survivors};
use super::probe::{Class, Haystack, questions};
use super::question::Asks;
use super::run::{large_results, told};
use super::scenario::{Planted, Scenario};
use crate::eval::process::ProcessError;
use crate::eval::process::context::ContextProgram;
use crate::eval::record::Outcome;
use crate::eval::rival::{Installed, Rival, RivalPlace};
use contextweaver_context::ContextConfig;
use contextweaver_context::adapters::{Conversation, Event};

/// What is recorded of a context engine on a scenario. No time is among it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextRivalFacts {
    /// What its version command printed.
    pub version: String,
    /// SHA-256 (hex) of the file that pins what was installed; `None` where nothing was.
    pub requirements_sha256: Option<String>,
    /// The prompt, or one of the four words (missing, unsupported, failed, timed out) and why there is none.
    pub prompt: Outcome<RivalPrompt>,
    /// The large results, or why there is nothing of them; `None` in a scenario without any.
    pub results: Option<Outcome<RivalResults>>,
}

/// What a prompt holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RivalPrompt {
    /// Tokens allowed.
    pub budget: usize,
    /// Tokens of the prompt.
    pub tokens: usize,
    /// Facts that it should hold.
    pub facts: usize,
    /// Those that it states.
    pub facts_in_prompt: usize,
    /// Texts that it should not hold.
    pub forbidden: usize,
    /// Those that it holds.
    pub forbidden_in_prompt: usize,
}

/// What is left of large results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RivalResults {
    /// Results that were handed over.
    pub results: usize,
    /// One for each cap, ascending.
    pub caps: Vec<RivalCap>,
}

/// What is left of results at one cap.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RivalCap {
    /// Tokens allowed for each text.
    pub cap: usize,
    /// Texts with more.
    pub over: usize,
    /// What survives of the probes.
    pub probes: Survivors<Class>,
    /// What survives of the questions of people; tokens are of the results about which they ask.
    pub questions: Survivors<Asks>,
}

impl RivalCap {
    /// Adds what is left of other results at the same cap.
    pub fn join(&mut self, other: &Self) {
        self.over += other.over;
        self.probes.join(&other.probes);
        self.questions.join(&other.questions);
    }
}

/// Runs a context engine on a scenario.
///
/// # Errors
/// The log of the scenario cannot be read. What the engine does wrong is an outcome.
pub fn take_part(
    rival: &Rival,
    scenario: &Scenario,
    place: &RivalPlace<'_>,
) -> Result<Outcome<ContextRivalFacts>, super::scenario::ScenarioError> {
    let (_, conversation) = scenario.log()?;
    let measured = || -> Result<ContextRivalFacts, ProcessError> {
        let config = scenario.configured(&ContextConfig::default()).map_err(ProcessError::Failed)?;
        let installed = rival.installed(place)?;
        let asked =
            Task { rival, installed: &installed, place, scenario, conversation: &conversation, config: &config };
        let prompt = outcome(asked.prompt())?;
        let results = asked.results().map(outcome).transpose()?;
        let Installed { version, requirements_sha256, .. } = installed;
        Ok(ContextRivalFacts { version, requirements_sha256, prompt, results })
    };
    Ok(match measured() {
        Ok(facts) => Outcome::Measured(facts),
        Err(error) => Outcome::Failed(error.to_string()),
    })
}

/// What was measured, or why not. An engine that is not here does neither of its two tasks.
fn outcome<T>(result: Result<T, ProcessError>) -> Result<Outcome<T>, ProcessError> {
    match result {
        Ok(measured) => Ok(Outcome::Measured(measured)),
        Err(error @ ProcessError::Missing { .. }) => Err(error),
        Err(error) => Ok(Outcome::Failed(error.to_string())),
    }
}

/// An engine with a scenario.
struct Task<'a> {
    rival: &'a Rival,
    installed: &'a Installed,
    place: &'a RivalPlace<'a>,
    scenario: &'a Scenario,
    conversation: &'a Conversation,
    config: &'a ContextConfig,
}

impl Task<'_> {
    fn start(&self) -> Result<ContextProgram, ProcessError> {
        ContextProgram::start(&self.installed.command, self.place.hidden, self.rival.limits)
    }

    fn prompt(&self) -> Result<RivalPrompt, ProcessError> {
        let Self { scenario, config, .. } = self;
        let budget = scenario.budget.unwrap_or_else(|| config.budgets.of(scenario.phase));
        let mut engine = self.start()?;
        let asked = conversation(scenario, self.conversation, config);
        let text = engine.compile(&asked, &scenario.query, budget)?;
        engine.end()?;
        let prompt = Haystack::new(&text);
        let states = |fact: &&Planted| prompt.states(std::slice::from_ref(&fact.label), &[vec![fact.value.clone()]]);
        Ok(RivalPrompt {
            budget,
            tokens: config.estimator.count(&text),
            facts: scenario.facts.len(),
            facts_in_prompt: scenario.facts.iter().filter(states).count(),
            forbidden: scenario.forbidden.len(),
            forbidden_in_prompt: scenario.forbidden.iter().filter(|own| text.contains(own.as_str())).count(),
        })
    }

    /// `None` without a large result.
    fn results(&self) -> Option<Result<RivalResults, ProcessError>> {
        let contents = large_results(self.scenario, self.conversation, self.config);
        let measured = || {
            let mut engine = self.start()?;
            let mut caps: Vec<RivalCap> = CAPS.into_iter().map(|cap| RivalCap { cap, ..RivalCap::default() }).collect();
            for content in &contents {
                let own = questions(&content.text);
                let asked = Asked { kind: own.kind, probes: &own.probes, questions: &content.questions };
                for at in &mut caps {
                    let text = engine.compact(&content.text, at.cap)?;
                    let summary = Summary::of(text, at.cap, asked, self.config.estimator);
                    at.over += usize::from(summary.tokens > at.cap);
                    at.probes.add(asked, &summary);
                    if !content.questions.is_empty() {
                        at.questions.add(asked, &summary);
                    }
                }
            }
            engine.end()?;
            Ok(RivalResults { results: contents.len(), caps })
        };
        (!contents.is_empty()).then(measured)
    }
}

/// A conversation as a program gets it.
fn conversation(scenario: &Scenario, conversation: &Conversation, config: &ContextConfig) -> Value {
    let event = |event: &Event| {
        let item = &event.item;
        let mut own = json!({"id": item.id, "kind": item.kind, "text": told(event).trim_end_matches('\n')});
        if let Some(parent) = &item.parent_id {
            own["parent"] = json!(parent);
        }
        if item.sensitivity >= config.policy.sensitivity_floor {
            own["hidden"] = json!(true);
        }
        own
    };
    json!({
        "phase": scenario.phase,
        "events": conversation.events.iter().map(event).collect::<Vec<Value>>(),
        "facts": conversation.facts,
        "episodes": conversation.episodes,
    })
}

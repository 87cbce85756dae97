//! Scenarios -> facts.
//!
//! A scenario is compiled as a user would: results of servers go through the firewall into the log, the log becomes a
//! prompt. The prompt is then read by rules that share nothing with the engine ([`super::probe`]), and everything that
//! the engine says of itself (counts, sizes, order) is counted again.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::fidelity::{CAPS, Content, fidelity, measure};
use super::probe::Haystack;
use super::reach::{by_selector, pattern_view};
use super::record::{ContextFacts, Kept, Naive, Prefix, Screening};
use super::scenario::{Planted, Scenario};
use crate::eval::error::EvalError;
use crate::eval::record::Outcome;
use crate::eval::statistics::{mean, round6};
use crate::eval::version;
use contextweaver_context::adapters::{Conversation, Event};
use contextweaver_context::event::{
    ContentHash, ContextItem, Handle, ItemKind, PartBody, Phase, Strategy, ToolOutput, Transcript,
};
use contextweaver_context::store::{ArtifactStore, MemoryArtifacts};
use contextweaver_context::summary::{StructureSummarizer, Summarizer};
use contextweaver_context::{
    ContextConfig, ContextPack, DropReason, Firewall, FirewallCause, Memory, Request, Seen, compile,
};
use contextweaver_core::catalog::Catalog;
use contextweaver_core::text::{Estimator, hex};

/// The catalog of a scenario, counted once.
#[derive(Debug, Clone)]
pub struct CountedCatalog {
    definitions: usize,
    /// What a call may call its tools: their names, also with the server before them, and their ids.
    names: BTreeSet<String>,
    sha256: String,
}

impl CountedCatalog {
    /// The tokens of a catalog's definitions, and the names of its tools; `sha256` names what it was read from.
    #[must_use]
    pub fn new(catalog: &Catalog, sha256: &str) -> Self {
        let items = catalog.items();
        // A line break ends a token of this vocabulary after a brace or bracket, so counts of lines add up.
        let count = |text: String| Estimator::Cl100kBase.count(&text);
        let definitions = items.par_iter().map(|item| count(item.definition_json() + "\n")).sum();
        let named = items.iter().flat_map(|item| {
            let with_server = item.server.as_ref().map(|server| format!("{server}.{}", item.name));
            [item.id.clone(), item.name.clone()].into_iter().chain(with_server)
        });
        Self { definitions, names: named.collect(), sha256: sha256.to_owned() }
    }

    /// Whether the conversation calls tools, and all of them are of this catalog: only then would its prompt hold their
    /// definitions.
    fn serves(&self, conversation: &Conversation) -> bool {
        let mut calls = conversation.events.iter().map(|event| &event.item).filter(|item| is_call(item)).peekable();
        calls.peek().is_some() && calls.all(|call| self.names.contains(called(call)))
    }
}

fn is_call(item: &ContextItem) -> bool {
    item.kind == ItemKind::ToolCall
}

/// The name of the function, where the event has it apart from its text.
fn function_name(item: &ContextItem) -> Option<&str> {
    item.metadata.get("function_name").and_then(Value::as_str)
}

/// The name of what a call calls; otherwise the text before its arguments.
fn called(call: &ContextItem) -> &str {
    function_name(call).or_else(|| call.text.split('(').next()).unwrap_or_default().trim()
}

/// The version of the engine under a configuration: what it makes of a small log that is part of the program, for every
/// phase.
#[must_use]
pub fn version(config: &ContextConfig) -> String {
    version::of(&configuration(config), &on_probe(config).map_err(|error| error.to_string()))
}

/// The prompts of the probe by phase, and everything that is measured on the last.
fn on_probe(config: &ContextConfig) -> Result<impl Serialize + use<>, EvalError> {
    const SCENARIO: &str = include_str!("../probe/scenario.toml");
    const LOG: &[u8] = include_bytes!("../probe/log.jsonl");
    let failed = |reason: &dyn std::fmt::Display| EvalError::failed("the probe", reason);
    let scenario = Scenario::parse(Path::new("probe/scenario.toml"), SCENARIO.to_owned(), Path::new(""));
    let mut scenario = scenario.map_err(|error| failed(&error))?;
    let conversation = scenario.conversation(LOG).map_err(|error| failed(&error))?;
    let summarizer = StructureSummarizer;
    let mut prompts = Vec::new();
    for phase in [Phase::Route, Phase::Call, Phase::Interpret, Phase::Answer] {
        scenario.phase = phase;
        let (pack, _) = compiled(&scenario, &conversation, config, &summarizer).map_err(|reason| failed(&reason))?;
        prompts.push(pack.prompt);
    }
    let facts = facts(&scenario, &conversation, None, config, &summarizer).map_err(|reason| failed(&reason))?;
    Ok((prompts, facts))
}

/// A configuration as text that a person can read.
#[must_use]
pub fn configuration(config: &ContextConfig) -> String {
    // A configuration is plain data, which TOML can always express.
    toml::to_string(config).unwrap_or_default()
}

/// SHA-256 (hex) of the inputs of a scenario, and what comes of it under `base`, as far as the scenario does not set it
/// otherwise.
///
/// # Errors
/// The log cannot be read; what fails behind that is an outcome.
pub fn record(
    scenario: &Scenario,
    catalog: Option<&CountedCatalog>,
    base: &ContextConfig,
    summarizer: &dyn Summarizer,
) -> Result<(String, Outcome<Box<ContextFacts>>), super::scenario::ScenarioError> {
    let (bytes, conversation) = scenario.log()?;
    let inputs_sha256 = digest(scenario, &bytes, catalog.map(|catalog| catalog.sha256.as_str()));
    let outcome = match facts(scenario, &conversation, catalog, base, summarizer) {
        Ok(facts) => Outcome::Measured(Box::new(facts)),
        Err(message) => Outcome::Failed(message),
    };
    Ok((inputs_sha256, outcome))
}

/// SHA-256 (hex) of the inputs of a scenario whose catalog has the digest `catalog`, as [`record`] gives it.
///
/// # Errors
/// The log of the scenario cannot be read.
pub fn inputs(scenario: &Scenario, catalog: Option<&str>) -> Result<String, super::scenario::ScenarioError> {
    Ok(digest(scenario, &scenario.log()?.0, catalog))
}

fn digest(scenario: &Scenario, log: &[u8], catalog: Option<&str>) -> String {
    let mut digest = Sha256::new();
    digest.update(log);
    digest.update(&scenario.source);
    digest.update(catalog.unwrap_or_default());
    hex(&digest.finalize())
}

/// Everything that is measured on a scenario.
///
/// # Errors
/// The message of what failed: the firewall, the transcript or the compiler.
pub fn facts(
    scenario: &Scenario,
    conversation: &Conversation,
    catalog: Option<&CountedCatalog>,
    base: &ContextConfig,
    summarizer: &dyn Summarizer,
) -> Result<ContextFacts, String> {
    let config = scenario.configured(base)?;
    let artifacts = MemoryArtifacts::default();
    let firewall = Firewall::new(&config.firewall, config.estimator, summarizer, &artifacts);
    let transcript = ingested(conversation, &firewall)?;
    let memory = Memory { facts: conversation.facts.clone(), episodes: conversation.episodes.clone() };
    let compiled = |transcript: &Transcript, query: &str| {
        let request = Request { budget: scenario.budget, ..Request::new(scenario.phase, query) };
        compile(transcript, &memory, &firewall, &request, &config).map_err(|error| error.to_string())
    };
    let pack = compiled(&transcript, &scenario.query)?;
    let prompt_tokens = config.estimator.count(&pack.prompt);
    let stats = &pack.stats;
    let contents = large_results(scenario, conversation, &config);
    let fidelity = (!contents.is_empty()).then(|| {
        let view = |content: &Content, selector: &_| by_selector(content, selector);
        fidelity(&measure(&contents, &CAPS, config.estimator, summarizer, Some(&view)))
    });
    Ok(ContextFacts {
        phase: scenario.phase,
        events: conversation.events.len(),
        candidates: stats.total_candidates,
        included: stats.included_items.len(),
        dropped: tally(stats.dropped_items.iter().map(|item| item.reason.name())),
        condensed: stats.condensed,
        budget: stats.budget,
        prompt_tokens,
        budget_use: round6(prompt_tokens as f64 / stats.budget.max(1) as f64),
        naive: naive(conversation, catalog, prompt_tokens, config.estimator),
        firewall: screening(&pack, &transcript, conversation, &artifacts, &config)?,
        kept: kept(scenario, &pack, &transcript, &artifacts, config.estimator),
        prefix: prefix(&transcript, compiled)?,
        fidelity,
    })
}

/// The prompt of a scenario and what it keeps, without anything else.
///
/// # Errors
/// As [`facts`].
pub(super) fn compiled(
    scenario: &Scenario,
    conversation: &Conversation,
    base: &ContextConfig,
    summarizer: &dyn Summarizer,
) -> Result<(ContextPack, Kept), String> {
    let config = scenario.configured(base)?;
    let artifacts = MemoryArtifacts::default();
    let firewall = Firewall::new(&config.firewall, config.estimator, summarizer, &artifacts);
    let transcript = ingested(conversation, &firewall)?;
    let memory = Memory { facts: conversation.facts.clone(), episodes: conversation.episodes.clone() };
    let request = Request { budget: scenario.budget, ..Request::new(scenario.phase, &scenario.query) };
    let pack = compile(&transcript, &memory, &firewall, &request, &config).map_err(|error| error.to_string())?;
    let kept = kept(scenario, &pack, &transcript, &artifacts, config.estimator);
    Ok((pack, kept))
}

fn tally<'n>(names: impl Iterator<Item = &'n str>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name.to_owned()).or_default() += 1;
    }
    counts
}

/// The log as the firewall leaves it: outputs of servers become results, texts stay for the compiler.
fn ingested(conversation: &Conversation, firewall: &Firewall) -> Result<Transcript, String> {
    let mut transcript = Transcript::default();
    let mut seen = Seen::default();
    for Event { item, output, .. } in &conversation.events {
        let call = item.parent_id.as_ref().and_then(|parent| transcript.get(parent.as_str()));
        let item = match (output, call) {
            (Some(output), Some(call)) => {
                let (result, _) = firewall.ingest(call, output, &mut seen).map_err(|error| error.to_string())?;
                ContextItem {
                    id: item.id.clone(),
                    parent_id: item.parent_id.clone(),
                    sensitivity: item.sensitivity.max(result.sensitivity),
                    ..result
                }
            }
            _ => item.clone(),
        };
        transcript.push(item).map_err(|error| error.to_string())?;
    }
    Ok(transcript)
}

/// The results over the threshold, as text, with what people ask about them.
pub(super) fn large_results(scenario: &Scenario, conversation: &Conversation, config: &ContextConfig) -> Vec<Content> {
    let threshold = config.firewall.threshold_chars;
    let results = conversation.events.iter().map(|event| &event.item).filter(|item| item.kind == ItemKind::ToolResult);
    let large = results.filter(|item| item.text.chars().nth(threshold).is_some());
    let content = |item: &ContextItem| {
        let questions = scenario.questions.iter().filter(|question| question.item == item.id.as_str());
        Content { questions: questions.cloned().collect(), ..Content::of(item.id.to_string(), item.text.clone()) }
    };
    large.map(content).collect()
}

fn naive(conversation: &Conversation, catalog: Option<&CountedCatalog>, prompt: usize, estimator: Estimator) -> Naive {
    let history: usize = conversation.events.par_iter().map(|event| estimator.count(&told(event))).sum();
    let definitions = catalog.filter(|catalog| catalog.serves(conversation)).map(|catalog| catalog.definitions);
    let all = definitions.unwrap_or_default() + history;
    let reduction = if all == 0 { 0.0 } else { round6(1.0 - prompt as f64 / all as f64) };
    Naive { history, definitions, reduction }
}

/// An event as the conversation carries it, with a line break: its text; a call with the name of the function; after the
/// texts of a result what else is in it, as JSON without the bytes, which no prompt holds as text.
pub(super) fn told(Event { item, output, .. }: &Event) -> String {
    let text = match function_name(item).filter(|_| is_call(item)) {
        Some(name) => Cow::Owned(format!("{name}({})", item.text)),
        None => Cow::Borrowed(&*item.text),
    };
    let mut told = format!("{text}\n");
    for part in output.iter().flat_map(others) {
        told.push_str(&format!("{part}\n"));
    }
    told
}

/// The parts of an output that are not text. A resource that is text has its text among the texts.
fn others(output: &ToolOutput) -> impl Iterator<Item = Value> {
    output.parts.iter().filter_map(|part| match &part.body {
        PartBody::Text(_) => None,
        PartBody::Image { media_type, .. } => Some(json!({"type": "image", "mimeType": media_type})),
        PartBody::Audio { media_type, .. } => Some(json!({"type": "audio", "mimeType": media_type})),
        PartBody::ResourceText { uri, media_type, .. } | PartBody::ResourceBlob { uri, media_type, .. } => {
            Some(json!({"type": "resource", "resource": {"uri": uri, "mimeType": media_type}}))
        }
        PartBody::ResourceLink { uri, name, about } => {
            let mut link = about.clone();
            link.extend(
                [("type", "resource_link"), ("uri", uri), ("name", name)]
                    .map(|(key, value)| (key.to_owned(), value.into())),
            );
            Some(Value::Object(link))
        }
        PartBody::Unknown(value) => Some(value.clone()),
    })
}

fn screening(
    pack: &ContextPack,
    transcript: &Transcript,
    conversation: &Conversation,
    artifacts: &MemoryArtifacts,
    config: &ContextConfig,
) -> Result<Screening, String> {
    let screened = pack.stats.firewall_events.iter().filter(|event| event.cause == FirewallCause::Screened);
    let mut strategies = BTreeMap::new();
    let (mut original_bytes, mut shown_tokens, mut result_tokens) = (0, 0, 0);
    let mut told: BTreeSet<&str> = BTreeSet::new();
    // What the filter removed never came to the firewall.
    let removed = |reason: &DropReason| matches!(reason, DropReason::Sensitivity { .. } | DropReason::Closure { .. });
    told.extend(pack.stats.dropped_items.iter().filter(|item| removed(&item.reason)).map(|item| item.item_id.as_str()));
    for event in screened {
        told.insert(event.item_id.as_str());
        let strategy = serde_json::to_value(event.stats.strategy).map_err(|error| error.to_string())?;
        *strategies.entry(strategy.as_str().unwrap_or_default().to_owned()).or_default() += 1;
        result_tokens += event.stats.summary_tokens;
        if event.stats.strategy != Strategy::Passthrough {
            original_bytes += event.stats.original_bytes;
            shown_tokens += event.stats.summary_tokens;
        }
    }
    let untouched = transcript.items().iter().filter(|item| item.kind == ItemKind::ToolResult);
    let untouched = untouched.filter(|item| !told.contains(item.id.as_str()));
    result_tokens += untouched.map(|item| config.estimator.count(&item.text)).sum::<usize>();
    let stored = artifacts.list().map_err(|error| error.to_string())?;
    let mut by_hash: BTreeMap<ContentHash, Handle> = BTreeMap::new();
    for reference in &stored {
        by_hash.insert(reference.content_hash.clone(), reference.handle.clone());
    }
    let comes_back = |content: &&Vec<u8>| {
        let handle = by_hash.get(&ContentHash::of(content));
        handle.and_then(|handle| artifacts.get(handle).ok()).is_some_and(|bytes| *bytes == ***content)
    };
    let contents = contents(conversation, transcript, config);
    Ok(Screening {
        strategies,
        original_bytes,
        shown_tokens,
        result_tokens,
        artifacts: stored.len(),
        artifact_bytes: stored.iter().map(|reference| reference.size_bytes).sum(),
        recovered: contents.iter().filter(comes_back).count(),
        contents: contents.len(),
    })
}

/// The contents that must come back from the store: texts over the threshold, and everything that is not text. What the
/// filter keeps out of the prompt does not reach the firewall.
fn contents(conversation: &Conversation, transcript: &Transcript, config: &ContextConfig) -> Vec<Vec<u8>> {
    let mut contents = Vec::new();
    for event in conversation.events.iter().filter(|event| event.item.kind == ItemKind::ToolResult) {
        let level = transcript.get(event.item.id.as_str()).map(|item| item.sensitivity);
        let hidden = level.is_some_and(|level| level >= config.policy.sensitivity_floor);
        if hidden && event.output.is_none() {
            continue;
        }
        if event.item.text.chars().nth(config.firewall.threshold_chars).is_some() {
            contents.push(event.item.text.clone().into_bytes());
        }
        for part in event.output.iter().flat_map(|output| &output.parts) {
            match &part.body {
                PartBody::Image { bytes, .. }
                | PartBody::Audio { bytes, .. }
                | PartBody::ResourceBlob { bytes, .. } => {
                    contents.push(bytes.clone());
                }
                _ => {}
            }
        }
    }
    contents
}

/// Whether a text states a planted fact.
pub(super) fn states(text: &Haystack, fact: &Planted) -> bool {
    text.states(std::slice::from_ref(&fact.label), &[vec![fact.value.clone()]])
}

/// What must be in a prompt, and what of it is there or can be reached.
pub(super) fn kept(
    scenario: &Scenario,
    pack: &ContextPack,
    transcript: &Transcript,
    artifacts: &dyn ArtifactStore,
    estimator: Estimator,
) -> Kept {
    let shown: BTreeSet<&str> = pack.stats.included_items.iter().map(|item| item.item_id.as_str()).collect();
    let dropped: BTreeSet<&str> = pack.stats.dropped_items.iter().map(|item| item.item_id.as_str()).collect();
    let prompt = Haystack::new(&pack.prompt);
    let missing = scenario.required.iter().filter(|id| !shown.contains(id.as_str())).cloned().collect();
    let mut lost = Vec::new();
    let (mut in_prompt, mut by_view, mut view_tokens) = (0, 0, 0);
    for fact in &scenario.facts {
        if states(&prompt, fact) {
            in_prompt += 1;
        } else if let Some(view) = through_view(fact, transcript, artifacts) {
            by_view += 1;
            view_tokens = view_tokens.max(estimator.count(&view));
        } else {
            lost.push(fact.told());
        }
    }
    let calls = transcript.items().iter().filter(|item| item.kind == ItemKind::ToolCall);
    let accounted = calls.clone().filter(|call| shown.contains(call.id.as_str()) || dropped.contains(call.id.as_str()));
    let places: BTreeMap<&str, usize> =
        transcript.items().iter().enumerate().map(|(place, item)| (item.id.as_str(), place)).collect();
    let order: Vec<Option<&usize>> =
        pack.stats.included_items.iter().map(|item| places.get(item.item_id.as_str())).collect();
    Kept {
        required: scenario.required.len(),
        missing,
        facts: scenario.facts.len(),
        facts_in_prompt: in_prompt,
        facts_by_view: by_view,
        view_tokens,
        lost,
        forbidden_asked: scenario.forbidden.len(),
        forbidden: scenario.forbidden.iter().filter(|text| pack.prompt.contains(*text)).cloned().collect(),
        calls: calls.clone().count(),
        calls_accounted: accounted.count(),
        in_order: order.is_sorted(),
    }
}

/// The lines of the fact's artifact that hold its value, when they state the fact. After a hand-over that is the artifact of
/// the statement that was taken from its event.
fn through_view(fact: &Planted, transcript: &Transcript, artifacts: &dyn ArtifactStore) -> Option<String> {
    let taken = |item: &&ContextItem| item.metadata.get("taken_from").is_some_and(|from| *from == *fact.item);
    let item = transcript.get(&fact.item).or_else(|| transcript.items().iter().find(taken))?;
    let handle = item
        .artifact
        .as_ref()
        .map_or_else(|| Handle::new(format!("artifact:{}", item.id)), |artifact| artifact.handle.clone());
    let bytes = artifacts.get(&handle).ok()?;
    let media_type = artifacts.reference(&handle).ok()?.media_type;
    let text = pattern_view(&handle, &bytes, &media_type, &fact.value)?;
    Haystack::new(&text).states(&[], &[vec![fact.value.clone()]]).then_some(text)
}

fn prefix(
    transcript: &Transcript,
    compiled: impl Fn(&Transcript, &str) -> Result<ContextPack, String>,
) -> Result<Option<Prefix>, String> {
    let mut so_far = Transcript::default();
    let mut before: Option<String> = None;
    let mut shares = Vec::new();
    for item in transcript.items() {
        so_far.push(item.clone()).map_err(|error| error.to_string())?;
        if item.kind != ItemKind::UserTurn {
            continue;
        }
        let prompt = compiled(&so_far, &item.text)?.prompt;
        if let Some(before) = before.filter(|before| !before.is_empty()) {
            let common = before.bytes().zip(prompt.bytes()).take_while(|(left, right)| left == right).count();
            shares.push(common as f64 / before.len() as f64);
        }
        before = Some(prompt);
    }
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let pairs = shares.len();
    Ok((pairs > 0).then(|| Prefix { pairs, mean: round6(mean(shares)), least: round6(least) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::context::scenario::load_all;
    use contextweaver_context::event::{Part, ToolOutput};

    #[test]
    fn no_prompt_of_a_scenario_is_longer_than_its_conversation() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let scenarios = load_all(&root.join("scenarios/context"), &root.join("../shared/data")).unwrap();
        let here = scenarios.iter().filter(|scenario| scenario.way.is_none() && scenario.is_present());
        let here: Vec<&Scenario> = here.collect();
        assert!(here.len() > 12, "{}", here.len());
        for scenario in here {
            let (_, conversation) = scenario.log().unwrap();
            let config = ContextConfig::default();
            let (pack, kept) = compiled(scenario, &conversation, &config, &StructureSummarizer).unwrap();
            let naive = naive(&conversation, None, pack.stats.prompt_tokens, config.estimator);
            assert!(pack.stats.prompt_tokens <= naive.history, "{}: {naive:?}", scenario.name);
            assert_eq!((kept.lost.len(), kept.forbidden.len()), (0, 0), "{}", scenario.name);
        }
    }

    #[test]
    fn people_ask_about_large_results_and_every_answer_stands_there_once() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let scenarios = load_all(&root.join("scenarios/context"), &root.join("../shared/data")).unwrap();
        let mut asked = 0;
        for scenario in scenarios.iter().filter(|scenario| scenario.way.is_none() && scenario.is_present()) {
            // Loading refuses an answer that is not in its result, or there more than once.
            let (_, conversation) = scenario.log().unwrap();
            let large = large_results(scenario, &conversation, &ContextConfig::default());
            let found: usize = large.iter().map(|content| content.questions.len()).sum();
            assert_eq!(found, scenario.questions.len(), "{}: a question about a small result", scenario.name);
            asked += found;
        }
        assert!(asked >= 90, "{asked}");
    }

    #[test]
    fn the_history_is_what_a_conversation_carries() {
        let mut call = ContextItem::new("c", ItemKind::ToolCall, "{}");
        call.metadata.insert("function_name".to_owned(), "fs.read".into());
        let link =
            PartBody::ResourceLink { uri: "a:b".to_owned(), name: "B".to_owned(), about: serde_json::Map::new() };
        let picture = PartBody::Image { bytes: vec![0; 9], media_type: "image/png".to_owned() };
        let parts = [PartBody::Text("text".to_owned()), picture, link].map(Part::new);
        let output = ToolOutput { parts: parts.to_vec(), ..ToolOutput::default() };
        let result = ContextItem::new("r", ItemKind::ToolResult, "text").under("c");
        assert_eq!(told(&call.clone().into()), "fs.read({})\n");
        assert_eq!(
            told(&Event { output: Some(output), ..result.into() }),
            "text\n{\"type\":\"image\",\"mimeType\":\"image/png\"}\n{\"type\":\"resource_link\",\"uri\":\"a:b\",\"name\":\"B\"}\n"
        );
        let catalog = |name: &str| CountedCatalog {
            definitions: 9,
            names: BTreeSet::from([name.to_owned()]),
            sha256: String::new(),
        };
        let plain = ContextItem::new("d", ItemKind::ToolCall, "fs.read(path='x')");
        let events = [call, plain].map(Event::from).to_vec();
        let conversation = Conversation { events, ..Conversation::default() };
        assert!(catalog("fs.read").serves(&conversation) && !catalog("fs.write").serves(&conversation));
        assert!(!catalog("fs.read").serves(&Conversation::default()));
    }
}

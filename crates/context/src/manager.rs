//! A conversation with its stores, for programs that embed the engine.
//!
//! This is a thin layer: every method makes a few calls to the stores, the firewall and the compiler, which can all be
//! used without it.

use std::sync::Mutex;

use super::compile::{CompileError, Memory, Request, Workspace, compile_in};
use super::config::ContextConfig;
use super::firewall::{Firewall, FirewallError, Mask, Seen, fact_records, result_id};
use super::handoff::{Handoff, HandoffRequest, hand_off};
use super::hooks::Hooks;
use super::intake::{IngestError, Intake, IntakeError, check_order, take_in_after};
use super::memory::{MemorySource, RecallBounds, recall_for};
use super::prompt::{RoutePrompt, build_call_prompt, build_route_prompt};
use super::stats::{BuildStats, ContextPack};
use super::summary::{StructureSummarizer, Summarizer};
use crate::adapters::{Conversation, recognise};
use crate::event::{ContextItem, Episode, Fact, ItemId, Phase, ResultEnvelope, ToolOutput, Transcript};
use crate::store::{StoreError, Stores};
use contextweaver_core::sync::lock;

/// A conversation: events go in, prompts come out. Threads share it by reference.
pub struct ContextManager {
    stores: Stores,
    summarizer: Box<dyn Summarizer>,
    config: ContextConfig,
    hooks: Option<Hooks>,
    source: Option<(Box<dyn MemorySource>, RecallBounds)>,
    observer: Option<Box<Observer>>,
    workspace: Mutex<Workspace>,
    seen: Mutex<Seen>,
}

/// What is told of each prompt that is built: the phase that it is for, and the record of its build.
type Observer = dyn Fn(Phase, &BuildStats) + Send + Sync;

/// The manager could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// A store failed, or the event breaks a rule of the log.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A result could not be stored.
    #[error(transparent)]
    Firewall(#[from] FirewallError),
    /// The prompt cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A result names a call that is not in the log.
    #[error("no event `{0}`; ingest the call before its result")]
    NoCall(ItemId),
}

impl Default for ContextManager {
    /// A conversation that lives as long as the process, see [`ContextManager::in_stores`].
    fn default() -> Self {
        Self::in_stores(Stores::default())
    }
}

impl ContextManager {
    /// A conversation in `stores` whose large results are summarised by `summarizer`.
    #[must_use]
    pub fn new(stores: Stores, summarizer: Box<dyn Summarizer>, config: ContextConfig) -> Self {
        let (workspace, seen) = (Mutex::default(), Mutex::default());
        Self { stores, summarizer, config, hooks: None, source: None, observer: None, workspace, seen }
    }

    /// The same with these hooks: the summariser goes before the one of the manager, the redactor masks what comes in, and
    /// prompts are within their budget by the token counter too. What fails is in the record of the next prompt.
    #[must_use]
    pub fn with_hooks(self, hooks: Hooks) -> Self {
        Self { hooks: Some(hooks), ..self }
    }

    /// The same with a memory that is searched for each prompt of a phase that reads memory. What it gives stands among the
    /// facts of that prompt and is kept nowhere. A memory that cannot be searched stops no prompt; the record says so.
    #[must_use]
    pub fn with_memory(self, source: Box<dyn MemorySource>, bounds: RecallBounds) -> Self {
        Self { source: Some((source, bounds)), ..self }
    }

    /// The same with an observer, for logs and measures: it is called once for every prompt that is built, before the prompt
    /// is given back, on the thread that built it. It may use the manager: nothing is locked then. A build that fails is not
    /// told, and a panic of the observer is one of the build.
    #[must_use]
    pub fn with_observer(self, observer: impl Fn(Phase, &BuildStats) + Send + Sync + 'static) -> Self {
        Self { observer: Some(Box::new(observer)), ..self }
    }

    /// A conversation in `stores` with the default configuration; large results are summarised by their structure, with
    /// [`StructureSummarizer`].
    #[must_use]
    pub fn in_stores(stores: Stores) -> Self {
        Self::new(stores, Box::new(StructureSummarizer), ContextConfig::default())
    }

    /// The stores of the conversation.
    #[must_use]
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// The configuration of the conversation.
    #[must_use]
    pub fn config(&self) -> &ContextConfig {
        &self.config
    }

    /// The hooks of the conversation, where there are some.
    #[must_use]
    pub fn hooks(&self) -> Option<&Hooks> {
        self.hooks.as_ref()
    }

    fn firewall(&self) -> Firewall<'_> {
        let artifacts = self.stores.artifacts.as_ref();
        let theirs = self.hooks.as_ref().and_then(Hooks::summarizer);
        let summarizer = theirs.unwrap_or_else(|| self.summarizer.as_ref());
        Firewall::new(&self.config.firewall, self.config.estimator, summarizer, artifacts)
            .redacted_by(self.hooks.as_ref().and_then(Hooks::redactor))
    }

    /// Adds an event. Where the configuration says so, secrets are masked first, in its text, its metadata and the label of
    /// its artifact; so is what the redactor masks.
    ///
    /// # Errors
    /// As [`append`](crate::store::EventLog::append).
    pub fn ingest(&self, mut item: ContextItem) -> Result<(), ManagerError> {
        Mask::of(&self.firewall()).item(&mut item);
        Ok(self.stores.events.append(item)?)
    }

    /// Adds the result of the call `call`: large content goes to the artifact store, facts taken from it to the fact
    /// store as `<item id>:fact:<number>`.
    ///
    /// # Errors
    /// [`ManagerError::NoCall`] when the call is not in the log; otherwise the error of a store.
    pub fn ingest_tool_result(&self, call: &str, output: &ToolOutput) -> Result<ResultEnvelope, ManagerError> {
        let call = self.call(call)?;
        let mut seen = lock(&self.seen);
        self.check_free(&result_id(&call.id))?;
        let (item, envelope) = self.firewall().ingest(&call, output, &mut seen)?;
        if let Err(error) = self.record(item, &envelope.facts) {
            // A result that the log refused was not shown. Forgetting everything only costs tokens.
            *seen = Seen::default();
            return Err(error);
        }
        Ok(envelope)
    }

    /// Adds a conversation in any format that [`recognise`] knows, as [`ingest_with`](super::intake::ingest_with) takes it in, after
    /// what is there. Session lines without an id are called after `name`. Returns the number of its events and what is odd
    /// about it.
    ///
    /// # Errors
    /// [`IngestError`] with the first thing that is wrong; [`IngestError::Store`] also where an event's id is taken. In both
    /// cases no event is added, and nothing that was there is changed.
    pub fn ingest_conversation(&self, bytes: Vec<u8>, name: &str) -> Result<(usize, Vec<String>), IngestError> {
        let (_, mut conversation) = recognise(&bytes, name)?;
        // Contents can be large, and the conversation holds them now.
        drop(bytes);
        let episodes = std::mem::take(&mut conversation.episodes);
        let firewall = self.firewall();
        let mut seen = lock(&self.seen);
        let Intake { transcript, facts, remarks, .. } =
            self.added(conversation, &firewall, &mut seen).inspect_err(|_| {
                // What the log refused was not shown. Forgetting everything only costs tokens.
                *seen = Seen::default();
            })?;
        facts.into_iter().try_for_each(|fact| self.stores.facts.put(fact))?;
        let mut mask = Mask::of(&firewall);
        for mut episode in episodes {
            mask.episode(&mut episode);
            self.stores.episodes.put(episode)?;
        }
        Ok((transcript.len(), remarks))
    }

    /// A conversation that was taken in, after its events were added to the log. Nothing of one that the log refuses is
    /// stored.
    fn added(&self, conversation: Conversation, firewall: &Firewall, seen: &mut Seen) -> Result<Intake, IngestError> {
        check_order(&conversation.events).map_err(IntakeError::from)?;
        let mut log = self.stores.events.transcript()?;
        conversation.events.iter().try_for_each(|event| log.push(event.item.bare())).map_err(StoreError::from)?;
        let taken = take_in_after(seen, conversation, firewall)?;
        self.stores.events.append_all(taken.transcript.items())?;
        Ok(taken)
    }

    /// Adds the result of the call `call` that something else has processed already: an executor with a firewall of its
    /// own, a gateway, another program. Prompts show the summary of the envelope as it is. Its facts are remembered as
    /// those of [`Self::ingest_tool_result`]. Put what its artifacts name into the artifact store of this conversation
    /// first, under the same handles, where prompts shall name it. Returns the id of the event.
    ///
    /// # Errors
    /// As [`Self::ingest_tool_result`].
    pub fn ingest_envelope(&self, call: &str, envelope: &ResultEnvelope) -> Result<ItemId, ManagerError> {
        let (item, facts) = self.firewall().admit(&self.call(call)?, envelope)?;
        let id = item.id.clone();
        self.record(item, &facts)?;
        Ok(id)
    }

    fn call(&self, id: &str) -> Result<ContextItem, ManagerError> {
        self.stores.events.get(id)?.ok_or_else(|| ManagerError::NoCall(id.into()))
    }

    /// Refuses an id that is in the log, before anything is stored for its event.
    fn check_free(&self, id: &ItemId) -> Result<(), StoreError> {
        match self.stores.events.get(id.as_str())? {
            Some(there) => Ok(self.stores.events.transcript()?.push(there)?),
            None => Ok(()),
        }
    }

    /// Adds the event of a result, and remembers its facts.
    fn record(&self, item: ContextItem, facts: &[String]) -> Result<(), ManagerError> {
        let facts = fact_records(&item.id, facts);
        self.stores.events.append(item)?;
        Ok(facts.into_iter().try_for_each(|fact| self.stores.facts.put(fact))?)
    }

    /// Remembers a fact; it replaces an earlier one under the same key. Its value is masked as an event is, also where the
    /// key tells that it is a secret.
    ///
    /// # Errors
    /// [`ManagerError::Store`] when the store failed.
    pub fn add_fact(&self, key: &str, value: &str) -> Result<(), ManagerError> {
        let mut fact = Fact { key: key.to_owned(), value: value.to_owned() };
        Mask::of(&self.firewall()).fact(&mut fact);
        Ok(self.stores.facts.put(fact)?)
    }

    /// Remembers an episode; it replaces an earlier one with the same id. Its summary is masked as an event is.
    ///
    /// # Errors
    /// [`ManagerError::Store`] when the store failed.
    pub fn add_episode(&self, id: &str, summary: &str) -> Result<(), ManagerError> {
        let mut episode = Episode { id: id.to_owned(), summary: summary.to_owned() };
        Mask::of(&self.firewall()).episode(&mut episode);
        Ok(self.stores.episodes.put(episode)?)
    }

    /// The prompt for `phase` and `query`, in the phase's budget.
    ///
    /// # Errors
    /// [`ManagerError::Store`] when a store failed; otherwise as [`compile_in`].
    pub fn build(&self, phase: Phase, query: &str) -> Result<ContextPack, ManagerError> {
        self.build_request(&Request::new(phase, query))
    }

    /// The prompt of `request`.
    ///
    /// # Errors
    /// As [`compile_in`].
    pub fn build_request(&self, request: &Request) -> Result<ContextPack, ManagerError> {
        let transcript = self.stores.events.transcript()?;
        let (memory, note) = self.memory(&transcript, request)?;
        let compiled = |workspace: &mut Workspace, budget| {
            let request = Request { budget: Some(budget), ..*request };
            compile_in(workspace, &transcript, &memory, &self.firewall(), &request, &self.config)
        };
        let budget = request.budget.unwrap_or_else(|| self.config.budgets.of(request.phase));
        self.built(budget, compiled, note, |pack| pack)
    }

    /// The prompt for choosing among `cards`, the best first.
    ///
    /// # Errors
    /// As [`build_route_prompt`].
    pub fn build_route_prompt(&self, query: &str, cards: &[String]) -> Result<RoutePrompt, ManagerError> {
        let transcript = self.stores.events.transcript()?;
        let (memory, note) = self.memory(&transcript, &Request::new(Phase::Route, query))?;
        let compiled = |workspace: &mut Workspace, budget| {
            let request = Request { budget: Some(budget), ..Request::new(Phase::Route, query) };
            build_route_prompt(workspace, (&transcript, &memory), &self.firewall(), &request, cards, &self.config)
        };
        self.built(self.config.budgets.of(Phase::Route), compiled, note, |prompt| &mut prompt.pack)
    }

    /// The prompt for writing the arguments of `tool`, whose definition is `schema`.
    ///
    /// # Errors
    /// As [`build_call_prompt`].
    pub fn build_call_prompt(&self, query: &str, tool: &str, schema: &str) -> Result<ContextPack, ManagerError> {
        let transcript = self.stores.events.transcript()?;
        let (memory, note) =
            self.memory(&transcript, &Request { footer: schema, ..Request::new(Phase::Call, query) })?;
        let compiled = |workspace: &mut Workspace, budget| {
            let request = Request { budget: Some(budget), ..Request::new(Phase::Call, query) };
            let log = (&transcript, &memory);
            build_call_prompt(workspace, log, &self.firewall(), &request, (tool, schema), &self.config)
        };
        self.built(self.config.budgets.of(Phase::Call), compiled, note, |pack| pack)
    }

    /// A prompt that is within its budget, under an outer counter too where there is one, with `note` in its record. The
    /// observer is told of it.
    fn built<T>(
        &self,
        budget: usize,
        mut compiled: impl FnMut(&mut Workspace, usize) -> Result<T, CompileError>,
        note: Option<String>,
        pack: impl Fn(&mut T) -> &mut ContextPack,
    ) -> Result<T, ManagerError> {
        let mut workspace = lock(&self.workspace);
        let mut made = match &self.hooks {
            Some(hooks) => hooks.within(budget, |budget| compiled(&mut workspace, budget), &pack)?,
            None => compiled(&mut workspace, budget)?,
        };
        drop(workspace);
        let one = pack(&mut made);
        one.stats.notes.extend(note);
        if let Some(observer) = &self.observer {
            observer(one.phase, &one.stats);
        }
        Ok(made)
    }

    /// What the next agent must know, within a budget.
    ///
    /// # Errors
    /// [`ManagerError::Store`] when a store failed.
    pub fn hand_off(&self, request: &HandoffRequest) -> Result<Handoff, ManagerError> {
        let memory = Memory { facts: self.stores.facts.all()?, episodes: self.stores.episodes.all()? };
        Ok(hand_off(&self.stores.events.transcript()?, &memory, request, &self.config))
    }

    /// What is remembered, with what the memory source gives for a request, and what the record says of that.
    fn memory(&self, transcript: &Transcript, request: &Request<'_>) -> Result<(Memory, Option<String>), StoreError> {
        let episodes = self.stores.episodes.latest(self.config.memory.max_episodes)?;
        let mut memory = Memory { facts: self.stores.facts.all()?, episodes };
        let note = self.source.as_ref().map(|(source, bounds)| {
            let redactor = self.hooks.as_ref().and_then(Hooks::redactor);
            match recall_for(source.as_ref(), request, *bounds, (transcript, &memory), &self.config, redactor) {
                Ok(recalled) => {
                    let note = recalled.note(source.name());
                    memory.facts.extend(recalled.facts);
                    note
                }
                Err(error) => error.to_string(),
            }
        });
        Ok((memory, note))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::sync::{Arc, OnceLock, Weak};

    use serde_json::Value;

    use super::*;
    use crate::adapters::to_session_lines;
    use crate::config::{FirewallConfig, Secrets};
    use crate::event::{Handle, ItemKind, Part, PartBody, Status};
    use crate::hooks::{Exchange, HookKind};
    use crate::intake::{ingest_with, remember};
    use crate::memory::{LocalMemories, Remembered, SourceError};
    use crate::store::{FactStore, MemoryArtifacts, Session};
    use contextweaver_core::text::Estimator;

    struct Count;

    impl Summarizer for Count {
        fn summarize(&self, content: &str, _: &str, _: usize, _: Estimator) -> String {
            format!("{} characters", content.chars().count())
        }
    }

    #[test]
    fn events_go_in_and_prompts_come_out() {
        let manager = ContextManager::new(Stores::default(), Box::new(Count), ContextConfig::default());
        manager.ingest(ContextItem::new("u1", ItemKind::UserTurn, "Read the page.")).unwrap();
        manager.ingest(ContextItem::new("c1", ItemKind::ToolCall, "fetch page").under("u1")).unwrap();
        let long: String = (0..900).map(|n| format!("word{n} ")).collect();
        let envelope = manager.ingest_tool_result("c1", &ToolOutput::text(long.clone())).unwrap();
        let handle = &envelope.artifacts.first().unwrap().handle;
        assert_eq!(&*manager.stores().artifacts.get(handle).unwrap(), long.as_bytes());
        manager.add_fact("zone", "UTC").unwrap();
        manager.add_episode("e1", "Read another page.").unwrap();
        let prompt = manager.build(Phase::Answer, "page").unwrap().prompt;
        assert!(prompt.starts_with("[EPISODIC MEMORY]\n- Read another page.\n\n[FACTS]\n- zone: UTC\n"), "{prompt}");
        assert!(prompt.contains("[TOOL CALL]\nfetch page\n\n[TOOL RESULT [artifact:result:c1]]\n"), "{prompt}");
        assert!(manager.build_route_prompt("page", &["card".to_owned()]).unwrap().pack.prompt.ends_with("\ncard"));
        assert!(manager.build_call_prompt("page", "fetch", "{}").unwrap().prompt.ends_with("fetch\n{}"));
        assert_eq!(manager.build(Phase::Answer, "page").unwrap().prompt, prompt);
    }

    #[test]
    fn a_memory_is_searched_for_each_prompt_and_stops_none() {
        struct Broken;
        impl MemorySource for Broken {
            fn name(&self) -> &str {
                "broken"
            }
            fn search(&self, _: &str, _: RecallBounds) -> Result<Vec<Remembered>, SourceError> {
                Err(SourceError { source_name: "broken".to_owned(), reason: "gone".to_owned() })
            }
        }
        let notes = [("pool", "The pool has 40 connections."), ("zone", "All times are UTC.")];
        let notes = notes.map(|(id, text)| Remembered { id: id.to_owned(), text: text.to_owned() }).to_vec();
        let source = Box::new(LocalMemories::new("notes", notes));
        let manager = ContextManager::default().with_memory(source, RecallBounds::default());
        manager.ingest(ContextItem::new("u1", ItemKind::UserTurn, "How large is the pool?")).unwrap();
        let pack = manager.build(Phase::Answer, "pool").unwrap();
        assert!(pack.prompt.starts_with("[FACTS]\n- notes:pool: The pool has 40 connections.\n\n"), "{}", pack.prompt);
        assert!(pack.stats.notes[0].starts_with("memory `notes`: 1 memories of "), "{:?}", pack.stats.notes);
        assert!(manager.stores().facts.all().unwrap().is_empty());
        let manager = ContextManager::default().with_memory(Box::new(Broken), RecallBounds::default());
        assert_eq!(manager.build(Phase::Answer, "pool").unwrap().stats.notes, ["memory `broken`: gone"]);
    }

    #[test]
    fn an_observer_is_told_of_each_prompt_once() {
        let (told, heard) = channel();
        let notes = vec![Remembered { id: "pool".to_owned(), text: "The pool has 40 connections.".to_owned() }];
        let manager = ContextManager::default()
            .with_memory(Box::new(LocalMemories::new("notes", notes)), RecallBounds::default())
            .with_observer(move |phase, stats| told.send((phase, stats.clone())).unwrap());
        manager.ingest(ContextItem::new("u1", ItemKind::UserTurn, "How large is the pool?")).unwrap();
        let packs = [
            manager.build(Phase::Answer, "pool").unwrap(),
            manager.build_route_prompt("pool", &["card".to_owned()]).unwrap().pack,
            manager.build_call_prompt("pool", "get_pool", "{}").unwrap(),
        ];
        let header = "word ".repeat(9000);
        let refused = manager.build_request(&Request { header: &header, ..Request::new(Phase::Answer, "pool") });
        assert!(refused.is_err());
        let built: Vec<_> = packs.into_iter().map(|pack| (pack.phase, pack.stats)).collect();
        assert!(built[0].1.notes[0].starts_with("memory `notes`: 1 memories of "), "{:?}", built[0].1.notes);
        assert_eq!(heard.try_iter().collect::<Vec<_>>(), built);
    }

    #[test]
    fn an_observer_may_use_its_conversation() {
        let slot: Arc<OnceLock<Weak<ContextManager>>> = Arc::default();
        let held = Arc::clone(&slot);
        let manager = Arc::new(ContextManager::default().with_observer(move |phase, stats| {
            let Some(manager) = held.get().and_then(Weak::upgrade) else { return };
            if phase == Phase::Answer {
                manager.add_fact("tokens", &stats.prompt_tokens.to_string()).unwrap();
                manager.build(Phase::Interpret, "").unwrap();
            }
        }));
        slot.set(Arc::downgrade(&manager)).unwrap();
        manager.ingest(ContextItem::new("u1", ItemKind::UserTurn, "Hello.")).unwrap();
        let tokens = manager.build(Phase::Answer, "").unwrap().stats.prompt_tokens;
        assert_eq!(manager.stores().facts.all().unwrap()[0].value, tokens.to_string());
    }

    #[test]
    fn an_envelope_of_others_gives_the_prompt_that_its_result_gave() {
        let long: String = (0..900).map(|n| format!("key{n}: {n}\n")).collect();
        let begun = || {
            let manager = ContextManager::default();
            manager.ingest(ContextItem::new("c1", ItemKind::ToolCall, "fetch page")).unwrap();
            manager
        };
        let (ours, theirs) = (begun(), begun());
        let envelope = ours.ingest_tool_result("c1", &ToolOutput::text(long.clone())).unwrap();
        let artifact = envelope.artifacts.first().unwrap();
        theirs.stores().artifacts.put(&artifact.handle, long.as_bytes(), &artifact.media_type, "").unwrap();
        let id = theirs.ingest_envelope("c1", &envelope).unwrap();
        assert_eq!(id.as_str(), "result:c1");
        let prompt = |manager: &ContextManager| manager.build(Phase::Answer, "page").unwrap().prompt;
        assert_eq!(prompt(&theirs), prompt(&ours));
        assert!(prompt(&ours).contains("[artifact:result:c1]"), "{}", prompt(&ours));
        assert_eq!(theirs.stores().facts.all().unwrap(), ours.stores().facts.all().unwrap());
    }

    #[test]
    fn a_frame_of_weaver_spec_is_an_envelope() {
        let frame = serde_json::json!({
            "frame_id": "f1", "capability_id": "desk.rooms", "summary": "Two rooms are free.",
            "structured_data": {"quiet": "room 5"}, "handle_refs": ["handle-9"], "created_at": "2026-11-27T10:00:00Z",
        });
        let manager = ContextManager::default();
        manager.ingest(ContextItem::new("c1", ItemKind::ToolCall, "find_rooms()")).unwrap();
        manager.ingest_envelope("c1", &crate::adapters::from_weaver_frame(frame).unwrap()).unwrap();
        let prompt = manager.build(Phase::Answer, "rooms").unwrap().prompt;
        assert!(prompt.contains("Two rooms are free.") && prompt.contains("quiet: room 5"), "{prompt}");
        assert!(!prompt.contains("handle-9"), "{prompt}");
    }

    #[test]
    fn an_envelope_is_bounded_and_names_only_what_is_kept() {
        let config = ContextConfig {
            firewall: FirewallConfig {
                max_facts: 2,
                max_fact_chars: 12,
                secrets: Secrets::Redact,
                ..Default::default()
            },
            ..ContextConfig::default()
        };
        let manager = ContextManager::new(Stores::default(), Box::new(Count), config);
        manager.ingest(ContextItem::new("c1", ItemKind::ToolCall, "fetch page")).unwrap();
        let mut envelope = Firewall::with_defaults(&MemoryArtifacts::default())
            .result("fetch", &ToolOutput::text("x".repeat(9000)))
            .unwrap();
        envelope.status = Status::Error;
        envelope.summary = "refused: the key AKIAIOSFODNN7EXAMPLE is unknown".to_owned();
        envelope.facts = (0..9).map(|n| format!("fact {n} {}", "long ".repeat(99))).collect();
        // The handle is taken by another content.
        manager.stores().artifacts.put(&envelope.artifacts[0].handle, b"other", "text/plain", "").unwrap();
        let id = manager.ingest_envelope("c1", &envelope).unwrap();
        let item = manager.stores().events.get(id.as_str()).unwrap().unwrap();
        assert!(item.artifact.is_none() && !item.text.contains("AKIAIOSFODNN7EXAMPLE"), "{}", item.text);
        assert_eq!(item.metadata["artifact_ref"]["handle"], envelope.artifacts[0].handle.as_str());
        assert_eq!(item.metadata["is_error"], true);
        let facts = manager.stores().facts.all().unwrap();
        assert_eq!(facts.iter().map(|fact| fact.value.chars().count()).collect::<Vec<_>>(), [12, 12]);
        let refused = manager.ingest_envelope("c2", &envelope).unwrap_err();
        assert_eq!(refused.to_string(), "no event `c2`; ingest the call before its result");
        assert!(manager.ingest_envelope("c1", &envelope).is_err());
    }

    /// A redactor of others that masks a name.
    fn without_ada() -> Hooks {
        struct Ada;
        impl Exchange for Ada {
            fn ask(&self, line: &str, _: std::time::Duration) -> Result<String, String> {
                let asked: Value = serde_json::from_str(line).unwrap();
                let text = asked["text"].as_str().unwrap().replace("Ada", "[a person]");
                Ok(serde_json::json!({"text": text}).to_string())
            }
        }
        Hooks::default().with(HookKind::Redactor, Box::new(Ada), 10_000)
    }

    #[test]
    fn what_a_program_adds_is_masked_as_what_is_read_from_a_file() {
        let mut said = ContextItem::new("u1", ItemKind::UserTurn, "Ada has password=hunter2-Zq9x");
        let mut call = ContextItem::new("c1", ItemKind::ToolCall, r#"{"password": "hunter2-Zq9x", "for": "Ada"}"#);
        said.metadata = object(serde_json::json!({
            "db_password": "hunter2-Zq9x", "deep": [{"pin_password": 20_481_234, "who": ["Ada"]}], "count": 3,
        }));
        call.metadata = object(serde_json::json!({
            "function_name": "log_in", "url": "https://Ada:hunter2-Zq9x@a.org/", "tags": ["password=hunter2-Zq9x"],
        }));
        let events = [said, call.under("u1")];
        let facts = [("db password", "hunter2-Zq9x"), ("owner", "Ada")];
        let episodes = [("e1", "Ada said password=hunter2-Zq9x")];
        for (secrets, hooks) in [(Secrets::Redact, None), (Secrets::Keep, Some(without_ada())), (Secrets::Keep, None)] {
            let firewall = FirewallConfig { secrets, ..FirewallConfig::default() };
            let config = ContextConfig { firewall, ..ContextConfig::default() };
            let conversation =
                Conversation { events: events.iter().cloned().map(Into::into).collect(), ..Conversation::default() };
            let lines = to_session_lines(&conversation).unwrap().into_bytes();
            let read = ingest_with(hooks.as_ref(), lines, "chat", "chat", &config).unwrap().session;
            let facts_read = facts.map(|(key, value)| Fact { key: key.to_owned(), value: value.to_owned() }).to_vec();
            let episodes_read =
                episodes.map(|(id, summary)| Episode { id: id.to_owned(), summary: summary.to_owned() }).to_vec();
            remember(&read, hooks.as_ref(), facts_read, episodes_read, &config).unwrap();
            let is_idle = secrets == Secrets::Keep && hooks.is_none();
            let is_asked = hooks.is_some();
            let manager = ContextManager::new(Stores::default(), Box::new(Count), config);
            let manager = hooks.into_iter().fold(manager, ContextManager::with_hooks);
            events.iter().for_each(|item| manager.ingest(item.clone()).unwrap());
            facts.iter().for_each(|(key, value)| manager.add_fact(key, value).unwrap());
            episodes.iter().for_each(|(id, summary)| manager.add_episode(id, summary).unwrap());
            let written = |session: &Session| {
                let mut file = Vec::new();
                session.write(&mut file).unwrap();
                String::from_utf8(file).unwrap()
            };
            let added = written(&Session::from_stores(read.source.clone(), manager.stores()).unwrap());
            assert_eq!(added, written(&read), "{secrets:?}");
            assert_eq!(added.contains("hunter2") || added.contains("20481234"), is_idle, "{added}");
            assert_eq!(!added.contains("Ada"), is_asked, "{added}");
        }
    }

    fn object(value: Value) -> serde_json::Map<String, Value> {
        let Value::Object(members) = value else { panic!("not an object: {value}") };
        members
    }

    #[test]
    fn labels_of_artifacts_are_masked() {
        let config = FirewallConfig { secrets: Secrets::Redact, ..FirewallConfig::default() };
        let config = ContextConfig { firewall: config, ..ContextConfig::default() };
        let manager = ContextManager::new(Stores::default(), Box::new(Count), config);
        for id in ["c1", "c2"] {
            manager.ingest(ContextItem::new(id, ItemKind::ToolCall, "fetch page")).unwrap();
        }
        let label = "page of password=hunter2-Zq9x";
        let mut envelope = Firewall::with_defaults(&MemoryArtifacts::default())
            .result("fetch", &ToolOutput::text("x".repeat(9000)))
            .unwrap();
        envelope.artifacts[0].label = label.to_owned();
        // The first time its content is elsewhere, the second time it is here.
        manager.ingest_envelope("c1", &envelope).unwrap();
        let artifact = &envelope.artifacts[0];
        manager.stores().artifacts.put(&artifact.handle, &[b'x'; 9000], "text/plain", label).unwrap();
        manager.ingest_envelope("c2", &envelope).unwrap();
        let named =
            ContextItem { artifact: Some(artifact.clone()), ..ContextItem::new("d1", ItemKind::DocSnippet, "x") };
        manager.ingest(named).unwrap();
        let event = |id: &str| manager.stores().events.get(id).unwrap().unwrap();
        let labels = [
            event("result:c1").metadata["artifact_ref"]["label"].as_str().unwrap().to_owned(),
            event("result:c2").artifact.unwrap().label,
            event("d1").artifact.unwrap().label,
        ];
        assert_eq!(labels, ["page of password=[REDACTED: password]"; 3]);
    }

    /// The stores of each kind that is there, with what keeps the files of one while it is used.
    fn kinds_of_stores() -> Vec<(Stores, Option<tempfile::TempDir>)> {
        let mut kinds = vec![(Stores::default(), None)];
        #[cfg(feature = "sqlite")]
        {
            let folder = tempfile::tempdir().unwrap();
            kinds.push((Stores::sqlite(folder.path().join("c.sqlite")).unwrap(), Some(folder)));
        }
        kinds
    }

    fn saved(stores: &Stores) -> String {
        let mut file = Vec::new();
        Session::from_stores("a test", stores).unwrap().write(&mut file).unwrap();
        String::from_utf8(file).unwrap()
    }

    /// A conversation with one call of `chart`, which gave a text and a picture.
    fn chart(call: &str, picture: &str, lines: &str) -> Vec<u8> {
        let text: String = (0..900).map(|line| format!("{lines} {line}\n")).collect();
        let image = serde_json::json!({"type": "base64", "media_type": "image/png", "data": picture});
        let content = serde_json::json!([{"type": "text", "text": text}, {"type": "image", "source": image}]);
        serde_json::json!([
            {"role": "user", "content": "Draw it."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": call, "name": "chart", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": content}]},
        ])
        .to_string()
        .into_bytes()
    }

    #[test]
    fn what_is_refused_changes_nothing_that_is_stored() {
        let rows = |word: &str| ToolOutput::text((0..900).map(|row| format!("{word} {row}\n")).collect::<String>());
        for (stores, _folder) in kinds_of_stores() {
            let manager = ContextManager::in_stores(stores);
            manager.ingest(ContextItem::new("c1", ItemKind::ToolCall, "run")).unwrap();
            manager.ingest_tool_result("c1", &rows("first")).unwrap();
            manager.ingest_conversation(chart("t1", "AAAA", "drawn"), "a").unwrap();
            let before = saved(manager.stores());
            let twice = "event 6: event 2 already has the id `result:c1`; ids must be unique";
            assert_eq!(manager.ingest_tool_result("c1", &rows("second")).unwrap_err().to_string(), twice);
            let again = manager.ingest_conversation(chart("t1", "BBBB", "painted"), "a").unwrap_err();
            assert_eq!(again.to_string(), "event 6: event 3 already has the id `m1`; ids must be unique");
            let session = |call: &str| {
                let bytes = chart(call, "BBBB", "painted");
                ingest_with(None, bytes, "a", "a", &ContextConfig::default()).unwrap().session
            };
            let clash = session("t1");
            clash.facts.put(Fact { key: "zone".to_owned(), value: "UTC".to_owned() }).unwrap();
            assert!(clash.copy_to(manager.stores()).is_err());
            let mut other = session("t2");
            other.transcript = Transcript::new(vec![ContextItem::new("x", ItemKind::UserTurn, "x")]).unwrap();
            let taken = "the artifact `mcp:chart:image:0` is there already with other content; use another store, or \
                         another handle";
            assert_eq!(other.copy_to(manager.stores()).unwrap_err().to_string(), taken);
            assert_eq!(saved(manager.stores()), before);
        }
    }

    #[test]
    fn a_handle_belongs_to_one_content() {
        for (stores, _folder) in kinds_of_stores() {
            let manager = ContextManager::in_stores(stores);
            manager.ingest(ContextItem::new("c1", ItemKind::ToolCall, "chart()")).unwrap();
            let image = Part::new(PartBody::Image { bytes: vec![0, 0, 0], media_type: "image/png".to_owned() });
            let output = ToolOutput { parts: vec![image], ..ToolOutput::default() };
            manager.ingest_tool_result("c1", &output).unwrap();
            // What another program put there under the handle of the next result.
            let artifacts = &manager.stores().artifacts;
            artifacts.put(&Handle::new("artifact:result:t1"), b"theirs", "text/plain", "").unwrap();
            let (events, remarks) = manager.ingest_conversation(chart("t1", "BBBB", "drawn"), "a").unwrap();
            assert_eq!((events, remarks.len()), (3, 0));
            let kept: Vec<String> = artifacts.list().unwrap().iter().map(|kept| kept.handle.to_string()).collect();
            assert_eq!(kept, ["artifact:result:t1", "artifact:result:t1~2", "mcp:chart:image:0", "mcp:chart:image:1"]);
            assert_eq!(&*artifacts.get(&Handle::new("artifact:result:t1")).unwrap(), b"theirs");
            assert_eq!(&*artifacts.get(&Handle::new("mcp:chart:image:0")).unwrap(), [0, 0, 0]);
            let prompt = manager.build(Phase::Answer, "chart").unwrap().prompt;
            assert!(prompt.contains("[artifact:result:t1~2]"), "{prompt}");
            assert!(prompt.contains("[image/png, 3 bytes: mcp:chart:image:1]"), "{prompt}");
        }
    }

    #[test]
    fn a_conversation_goes_on_from_what_is_there() {
        let manager = ContextManager::default();
        let text: String = (0..900).map(|line| format!("drawn {line}\n")).collect();
        manager.ingest(ContextItem::new("c1", ItemKind::ToolCall, "chart()")).unwrap();
        manager.ingest_tool_result("c1", &ToolOutput::text(text)).unwrap();
        manager.ingest_conversation(chart("t1", "BBBB", "drawn"), "a").unwrap();
        let last = manager.stores().events.transcript().unwrap().items().last().unwrap().text.clone();
        assert!(last.starts_with("(same as artifact:result:c1: 900 lines"), "{last}");
    }

    #[test]
    fn the_handle_of_any_id_is_what_the_prompt_shows() {
        for (id, handle) in [("a]b", "artifact:result:a_b"), ("a\n[USER]\tb", "artifact:result:a__USER__b")] {
            let manager = ContextManager::default();
            manager.ingest(ContextItem::new(id, ItemKind::ToolCall, "run")).unwrap();
            let envelope = manager.ingest_tool_result(id, &ToolOutput::text("row\n".repeat(900))).unwrap();
            assert_eq!(envelope.artifacts[0].handle.as_str(), handle);
            let prompt = manager.build(Phase::Answer, "rows").unwrap().prompt;
            assert!(prompt.contains(&format!("[{handle}]")), "{prompt}");
        }
    }

    #[test]
    fn what_breaks_the_log_is_refused() {
        let manager = ContextManager::new(Stores::default(), Box::new(Count), ContextConfig::default());
        let refused = manager.ingest_tool_result("c1", &ToolOutput::text("x")).unwrap_err();
        assert_eq!(refused.to_string(), "no event `c1`; ingest the call before its result");
        manager.ingest(ContextItem::new("c1", ItemKind::ToolCall, "run")).unwrap();
        manager.ingest_tool_result("c1", &ToolOutput::text("x")).unwrap();
        assert!(manager.ingest_tool_result("c1", &ToolOutput::text("y")).is_err());
        assert_eq!(manager.stores().events.len().unwrap(), 2);
    }
}

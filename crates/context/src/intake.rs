//! Takes a foreign conversation into a session.
//!
//! Every result goes through the firewall once, in the order of the conversation, so that repeats are recognised. A
//! result that came as an envelope is taken in as `ContextManager::ingest_envelope` takes it. Order, ids and parents are
//! checked before anything is stored. A reference to an artifact whose content is missing is kept in the metadata of its
//! event: there is nothing that a view could show.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::config::ContextConfig;
use super::firewall::{Firewall, FirewallError, Mask, Seen, fact_records};
use super::hooks::Hooks;
use super::summary::{StructureSummarizer, Summarizer};
use crate::adapters::{AdapterError, Conversation, Event, Format, recognise};
use crate::event::{
    ContextItem, Episode, Fact, FirewallStats, ItemId, ItemKind, PartBody, ResultEnvelope, Strategy, ToolOutput,
    Transcript, TranscriptError,
};
use crate::store::{EpisodicStore, FactStore, MemoryArtifacts, Session, StoreError};

/// A conversation that was taken in. Its artifacts are in the store of the firewall.
#[derive(Debug, Default)]
pub struct Intake {
    /// The events; large results are replaced by what the prompt shows.
    pub transcript: Transcript,
    /// The facts of the conversation, then those taken from results that are not shown whole, with keys `<event
    /// id>:fact:<n>`.
    pub facts: Vec<Fact>,
    /// What the firewall did with each result that came as it was, in order.
    pub screened: Vec<(ItemId, FirewallStats)>,
    /// Oddities of the conversation that did not stop it, for people.
    pub remarks: Vec<String>,
}

/// A conversation could not be taken in.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// Its events are not a transcript.
    #[error(transparent)]
    Events(#[from] TranscriptError),
    /// A result could not be stored.
    #[error("event `{item}`: {source}")]
    Firewall {
        /// The id of the result.
        item: ItemId,
        /// The firewall's error.
        source: FirewallError,
    },
}

/// A foreign conversation that became a session.
#[derive(Debug)]
pub struct Ingested {
    /// The format that was recognised.
    pub format: Format,
    /// The session.
    pub session: Session,
    /// What the firewall did with each result that came as it was, in order.
    pub screened: Vec<(ItemId, FirewallStats)>,
    /// Oddities of the conversation that did not stop it, for people.
    pub remarks: Vec<String>,
}

/// A foreign conversation could not become a session.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// It is in no known format, or malformed.
    #[error(transparent)]
    Format(#[from] AdapterError),
    /// Its events or contents cannot be taken in.
    #[error(transparent)]
    Intake(#[from] IntakeError),
    /// What it remembers could not be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes a session of a conversation in any format that [`recognise`] knows. Session lines without an id are called after
/// `name`; `place` says in the session where the conversation came from.
///
/// # Errors
/// [`IngestError`] with the first thing that is wrong.
pub fn ingest(bytes: Vec<u8>, name: &str, place: &str, config: &ContextConfig) -> Result<Ingested, IngestError> {
    ingest_with(None, bytes, name, place, config)
}

/// As [`ingest`], with the summariser and the redactor of `hooks`. What these failed to do is among the remarks.
///
/// # Errors
/// As [`ingest`].
pub fn ingest_with(
    hooks: Option<&Hooks>,
    bytes: Vec<u8>,
    name: &str,
    place: &str,
    config: &ContextConfig,
) -> Result<Ingested, IngestError> {
    let (format, mut conversation) = recognise(&bytes, name)?;
    // Contents can be large, and the conversation holds them now.
    drop(bytes);
    let episodes = std::mem::take(&mut conversation.episodes);
    let artifacts = MemoryArtifacts::default();
    let summarizer: &dyn Summarizer = hooks.map_or(&StructureSummarizer, |hooks| hooks);
    let firewall = Firewall::new(&config.firewall, config.estimator, summarizer, &artifacts)
        .redacted_by(hooks.and_then(Hooks::redactor));
    let Intake { transcript, facts, screened, mut remarks } = take_in(conversation, &firewall)?;
    remarks.extend(hooks.into_iter().flat_map(Hooks::notes));
    let session = Session { source: format!("{format}, {place}"), transcript, artifacts, ..Session::default() };
    facts.into_iter().try_for_each(|fact| session.facts.put(fact))?;
    remarks.extend(remember(&session, hooks, Vec::new(), episodes, config)?);
    Ok(Ingested { format, session, screened, remarks })
}

/// Puts facts and episodes into a session, without what nobody may see, as [`ingest_with`] takes in a conversation.
/// Returns what the hooks failed to do.
///
/// # Errors
/// [`StoreError`] when they could not be kept.
pub fn remember(
    session: &Session,
    hooks: Option<&Hooks>,
    facts: Vec<Fact>,
    episodes: Vec<Episode>,
    config: &ContextConfig,
) -> Result<Vec<String>, StoreError> {
    let firewall = Firewall::new(&config.firewall, config.estimator, &StructureSummarizer, &session.artifacts)
        .redacted_by(hooks.and_then(Hooks::redactor));
    let mut mask = Mask::of(&firewall);
    for mut fact in facts {
        mask.fact(&mut fact);
        session.facts.put(fact)?;
    }
    for mut episode in episodes {
        mask.episode(&mut episode);
        session.episodes.put(episode)?;
    }
    Ok(hooks.map(Hooks::notes).unwrap_or_default())
}

/// Takes in a conversation. Its episodes are left as they are.
///
/// # Errors
/// [`IntakeError::Events`] when the events are not a transcript, [`IntakeError::Firewall`] when the store of the
/// firewall failed.
pub fn take_in(conversation: Conversation, firewall: &Firewall) -> Result<Intake, IntakeError> {
    take_in_after(&mut Seen::default(), conversation, firewall)
}

/// As [`take_in`], for a conversation that goes on from one that has shown `seen`, to which its results are added.
///
/// # Errors
/// As [`take_in`].
pub(crate) fn take_in_after(
    seen: &mut Seen,
    conversation: Conversation,
    firewall: &Firewall,
) -> Result<Intake, IntakeError> {
    check_order(&conversation.events)?;
    let mut intake = Intake { facts: conversation.facts, remarks: conversation.remarks, ..Intake::default() };
    let mut screening = Screening { firewall, mask: Mask::of(firewall), seen, names: HashSet::new() };
    intake.facts.iter_mut().for_each(|fact| screening.mask.fact(fact));
    for event in conversation.events {
        let item = match event.item.kind {
            ItemKind::ToolResult => screening.result(event, &mut intake)?,
            _ => screening.plain(event.item),
        };
        intake.transcript.push(item)?;
    }
    Ok(intake)
}

/// Checks the rules of a transcript, on events without their contents.
pub(crate) fn check_order(events: &[Event]) -> Result<(), TranscriptError> {
    Transcript::new(events.iter().map(|event| event.item.bare()).collect()).map(drop)
}

struct Screening<'f> {
    firewall: &'f Firewall<'f>,
    mask: Mask<'f>,
    seen: &'f mut Seen,
    /// The ids under which results were stored.
    names: HashSet<String>,
}

impl Screening<'_> {
    fn plain(&mut self, item: ContextItem) -> ContextItem {
        let mut item = without_dangling_reference(item);
        self.mask.item(&mut item);
        item
    }

    fn result(&mut self, event: Event, intake: &mut Intake) -> Result<ContextItem, IntakeError> {
        let Event { item, output, envelope } = event;
        let mut item = without_dangling_reference(item);
        let call = item.parent_id.as_ref().and_then(|parent| intake.transcript.get(parent.as_str()));
        let call = self.call_named_for(&item, call);
        let (id, text) = (item.id.clone(), std::mem::take(&mut item.text));
        let shown = match envelope {
            Some(envelope) => self.admitted(&id, &call, &envelope, &text, intake),
            None => {
                let mut output = output.unwrap_or_else(|| ToolOutput::text(text));
                output.is_error |= item.metadata.get("is_error") == Some(&Value::Bool(true));
                self.screened(&id, &call, &output, intake)
            }
        };
        let shown = shown.map_err(|source| IntakeError::Firewall { item: id, source })?;
        self.mask.members(&mut item.metadata);
        item.text = shown.text;
        item.artifact = shown.artifact;
        item.sensitivity = item.sensitivity.max(shown.sensitivity);
        item.metadata.extend(shown.metadata);
        Ok(item)
    }

    /// The event of a result that came as it was.
    fn screened(
        &mut self,
        id: &ItemId,
        call: &ContextItem,
        output: &ToolOutput,
        intake: &mut Intake,
    ) -> Result<ContextItem, FirewallError> {
        intake.remarks.extend(false_claims(id, output));
        let (shown, envelope) = self.firewall.ingest(call, output, self.seen)?;
        intake.facts.extend(facts_beyond(id, &envelope));
        intake.screened.extend(envelope.firewall.map(|stats| (id.clone(), stats)));
        Ok(shown)
    }

    /// The event of a result that something else has processed. Its `text` is kept if it is the content of an artifact.
    fn admitted(
        &mut self,
        id: &ItemId,
        call: &ContextItem,
        envelope: &ResultEnvelope,
        text: &str,
        intake: &mut Intake,
    ) -> Result<ContextItem, FirewallError> {
        self.firewall.keep_named(envelope, text)?;
        // Later results get other handles.
        let handles = envelope.artifacts.iter().map(|artifact| artifact.handle.as_str());
        self.names.extend(handles.filter_map(|handle| handle.strip_prefix("artifact:result:")).map(str::to_owned));
        let (shown, facts) = self.firewall.admit(call, envelope)?;
        intake.facts.extend(fact_records(id, &facts));
        Ok(shown)
    }

    /// The call of a result under a name that makes the handle of the result unique: two results may answer one call,
    /// and a result may have no call at all.
    fn call_named_for(&mut self, result: &ContextItem, call: Option<&ContextItem>) -> ContextItem {
        let id = result.id.as_str();
        let mut name = id.strip_prefix("result:").unwrap_or(id).to_owned();
        while !self.names.insert(name.clone()) {
            name.push('~');
        }
        let mut call = call.cloned().unwrap_or_else(|| ContextItem::new("", ItemKind::ToolCall, ""));
        call.id = name.into();
        call
    }
}

fn without_dangling_reference(mut item: ContextItem) -> ContextItem {
    if let Some(artifact) = item.artifact.take() {
        // References always serialise.
        item.metadata.insert("artifact_ref".to_owned(), serde_json::to_value(artifact).unwrap_or_default());
    }
    item
}

/// The facts of a result; one that is shown whole needs none.
fn facts_beyond(id: &ItemId, envelope: &ResultEnvelope) -> Vec<Fact> {
    if envelope.firewall.as_ref().is_none_or(|stats| stats.strategy == Strategy::Passthrough) {
        return Vec::new();
    }
    fact_records(id, &envelope.facts)
}

/// Remarks about parts that claim to be JSON and are not. They are kept as text.
fn false_claims(id: &ItemId, output: &ToolOutput) -> Vec<String> {
    let claims = output.parts.iter().enumerate().filter_map(|(number, part)| match &part.body {
        PartBody::ResourceText { media_type: Some(media_type), text, .. } if media_type.contains("json") => {
            let error = serde_json::from_str::<serde::de::IgnoredAny>(text).err()?;
            Some(format!(
                "event `{id}`, part {}: it claims to be {media_type} but is not ({error}); kept as text",
                number + 1
            ))
        }
        _ => None,
    });
    claims.collect()
}

/// Counts of events by kind, in the order of the kinds.
#[must_use]
pub fn count_kinds(transcript: &Transcript) -> Vec<(ItemKind, usize)> {
    let mut counts: HashMap<ItemKind, usize> = HashMap::new();
    transcript.items().iter().for_each(|item| *counts.entry(item.kind).or_default() += 1);
    ItemKind::ALL.iter().filter_map(|kind| counts.get(kind).map(|count| (*kind, *count))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::read_envelope;
    use crate::config::{FirewallConfig, Secrets};
    use crate::event::{ArtifactRef, ContentHash, Handle, Part, Sensitivity};
    use crate::manager::ContextManager;
    use crate::store::{ArtifactStore, MemoryArtifacts};
    use crate::summary::StructureSummarizer;
    use contextweaver_core::text::Estimator;

    fn taken(events: Vec<Event>, config: &FirewallConfig) -> (Result<Intake, String>, MemoryArtifacts) {
        let artifacts = MemoryArtifacts::default();
        let firewall = Firewall::new(config, Estimator::Cl100kBase, &StructureSummarizer, &artifacts);
        let conversation = Conversation { events, ..Conversation::default() };
        let intake = take_in(conversation, &firewall).map_err(|error| error.to_string());
        (intake, artifacts)
    }

    fn call(id: &str) -> Event {
        ContextItem::new(id, ItemKind::ToolCall, "f(x=1)").into()
    }

    #[test]
    fn large_results_are_kept_under_their_own_handles() {
        let long = |word: &str| (0..900).map(|n| format!("{word} {n}\n")).collect::<String>();
        let result = |id: &str, text: String| ContextItem::new(id, ItemKind::ToolResult, text).under("c");
        let mut secret = result("result:c~2", long("second"));
        secret.sensitivity = Sensitivity::Restricted;
        let mut dangling = ContextItem::new("d", ItemKind::ToolResult, "short");
        dangling.artifact = Some(ArtifactRef {
            handle: Handle::new("artifact:elsewhere"),
            media_type: "text/plain".to_owned(),
            size_bytes: 9,
            label: String::new(),
            content_hash: ContentHash::of(b"elsewhere"),
        });
        let events = vec![call("c"), result("result:c", long("first")).into(), secret.into(), dangling.into()];
        let (intake, artifacts) = taken(events, &FirewallConfig::default());
        let intake = intake.unwrap();
        for (id, word) in [("result:c", "first"), ("result:c~2", "second")] {
            let item = intake.transcript.get(id).unwrap();
            let handle = Handle::new(format!("artifact:{id}"));
            assert_eq!(item.artifact.as_ref().unwrap().handle, handle);
            assert_eq!(&*artifacts.get(&handle).unwrap(), long(word).as_bytes());
        }
        assert_eq!(intake.transcript.get("result:c~2").unwrap().sensitivity, Sensitivity::Restricted);
        let dangling = intake.transcript.get("d").unwrap();
        assert_eq!((dangling.artifact.as_ref(), dangling.parent_id.as_ref()), (None, None));
        assert_eq!(dangling.metadata["artifact_ref"]["handle"], "artifact:elsewhere");
        assert_eq!(count_kinds(&intake.transcript), [(ItemKind::ToolCall, 1), (ItemKind::ToolResult, 3)]);
    }

    #[test]
    fn a_line_with_an_envelope_gives_the_session_that_a_program_makes_of_it() {
        let long: String = (0..900).map(|n| format!("key{n}: {n}\n")).collect();
        let kept = MemoryArtifacts::default();
        let envelope = Firewall::with_defaults(&kept).result("c1", &ToolOutput::text(long.clone())).unwrap();
        let frame = serde_json::json!({
            "frame_id": "f1", "capability_id": "desk.rooms", "summary": "Two rooms are free.",
            "structured_data": {"quiet": "room 5"}, "handle_refs": ["handle-9"], "created_at": "2026-11-27T10:00:00Z",
        });
        let manager = ContextManager::default();
        for (id, text) in [("c1", "fetch page"), ("c2", "find_rooms()")] {
            manager.ingest(ContextItem::new(id, ItemKind::ToolCall, text)).unwrap();
        }
        let artifact = &envelope.artifacts[0];
        let store = &manager.stores().artifacts;
        store.put(&artifact.handle, long.as_bytes(), &artifact.media_type, &artifact.label).unwrap();
        manager.ingest_envelope("c1", &envelope).unwrap();
        manager.ingest_envelope("c2", &read_envelope(frame.clone()).unwrap()).unwrap();

        let calls = r#"{"type":"tool_call","id":"c1","text":"fetch page"}
            {"type":"tool_call","id":"c2","text":"find_rooms()"}"#;
        let line = |id: &str, call: &str, envelope: Value| {
            let mut line = serde_json::json!({"type": "tool_result", "id": id, "parent_id": call});
            line["envelope"] = envelope;
            line
        };
        let with_text = |mut line: Value| {
            line["text"] = long.as_str().into();
            line
        };
        let ours = || serde_json::to_value(&envelope).unwrap();
        let taken = |results: &[Value]| {
            let results: String = results.iter().map(|line| format!("\n{line}")).collect();
            ingest(format!("{calls}{results}").into_bytes(), "chat", "chat", &ContextConfig::default()).unwrap().session
        };
        let written = |session: &Session| {
            let mut file = Vec::new();
            session.write(&mut file).unwrap();
            String::from_utf8(file).unwrap()
        };
        let session = taken(&[with_text(line("result:c1", "c1", ours())), line("result:c2", "c2", frame)]);
        let expected = Session::from_stores(session.source.clone(), manager.stores()).unwrap();
        assert_eq!(written(&session), written(&expected));

        // Content that is not there is named by no prompt, and what is there is not replaced by a later result.
        let without = taken(&[line("r1", "c1", ours())]);
        let item = without.transcript.get("r1").unwrap();
        assert_eq!((item.text.as_str(), item.artifact.as_ref()), (envelope.summary.as_str(), None));
        assert_eq!(item.metadata["artifact_ref"]["handle"], "artifact:result:c1");
        let other = long.replace("key", "other");
        let other = serde_json::json!({"type": "tool_result", "id": "result:c1", "parent_id": "c1", "text": other});
        let both = taken(&[with_text(line("r1", "c1", ours())), other]);
        let handle = |id: &str| both.transcript.get(id).unwrap().artifact.clone().unwrap().handle;
        let handles = ["r1", "result:c1"].map(|id| handle(id).to_string());
        assert_eq!(handles, ["artifact:result:c1", "artifact:result:c1~"]);
        assert_eq!(&*both.artifacts.get(&handle("r1")).unwrap(), long.as_bytes());
    }

    #[test]
    fn nothing_is_stored_when_the_order_is_wrong() {
        let orphan = ContextItem::new("r", ItemKind::ToolResult, "x".repeat(9000)).under("nowhere");
        let (intake, artifacts) = taken(vec![call("c"), orphan.into()], &FirewallConfig::default());
        assert_eq!(intake.unwrap_err(), "event 2 (`r`): its parent `nowhere` is not in the log");
        assert!(artifacts.list().unwrap().is_empty());
    }

    #[test]
    fn a_false_claim_is_remarked_and_secrets_are_masked() {
        let body = PartBody::ResourceText {
            uri: "file:///a".to_owned(),
            media_type: Some("application/json".to_owned()),
            text: "{\"a\": ".to_owned(),
        };
        let output = ToolOutput { parts: vec![Part::new(body)], ..ToolOutput::default() };
        let result = ContextItem::new("r", ItemKind::ToolResult, "").under("c");
        let key = "AKIAIOSFODNN7EXAMPLE";
        let user = ContextItem::new("u", ItemKind::UserTurn, format!("my key is {key}"));
        let config = FirewallConfig { secrets: Secrets::Redact, ..FirewallConfig::default() };
        let events = vec![user.into(), call("c"), Event { output: Some(output), ..result.into() }];
        let (intake, _) = taken(events, &config);
        let intake = intake.unwrap();
        insta::assert_snapshot!(intake.remarks.join("\n"), @"event `r`, part 1: it claims to be application/json but is not (EOF while parsing a value at line 1 column 6); kept as text");
        assert!(!intake.transcript.items()[0].text.contains(key), "{}", intake.transcript.items()[0].text);
        assert!(intake.transcript.get("r").unwrap().text.contains("{\"a\": "));
    }

    /// The session that a document becomes, and the document that is written of it again.
    fn stored(hooks: Option<&Hooks>, document: &str, secrets: Secrets) -> (String, String) {
        let config = ContextConfig {
            firewall: FirewallConfig { secrets, ..FirewallConfig::default() },
            ..ContextConfig::default()
        };
        let taken =
            ingest_with(hooks, document.into(), "chat", "chat", &config).unwrap_or_else(|e| panic!("{e}: {document}"));
        let mut file = Vec::new();
        taken.session.write(&mut file).unwrap();
        let conversation = taken.session.conversation(crate::store::Results::Whole).unwrap();
        (String::from_utf8(file).unwrap(), taken.format.write(&conversation).unwrap())
    }

    /// Conversations with a password where no text of an event is.
    const HIDDEN: [&str; 16] = [
        r#"[{"type":"message","role":"user","content":"go"},{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"Use password=hunter2-Zq9x"}]}]"#,
        r#"[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"See","annotations":[{"type":"url_citation","url":"https://a.org/?password=hunter2-Zq9x"}]}]}]"#,
        r#"[{"role":"user","content":"go"},{"role":"assistant","content":"Hm","reasoning_content":"password=hunter2-Zq9x"}]"#,
        r#"[{"role":"user","content":[{"type":"file","file":{"file_data":"password=hunter2-Zq9x"}},{"type":"image_url","image_url":{"url":"https://me:hunter2-Zq9x@a.org/p.png"}}]}]"#,
        r#"[{"role":"user","content":[{"type":"search_result","source":"a","title":"t","content":[{"type":"text","text":"password=hunter2-Zq9x"}]},{"type":"document","context":"password=hunter2-Zq9x","source":{"type":"content","content":"password=hunter2-Zq9x"}}]}]"#,
        r#"[{"type":"human","content":"go"},{"type":"ai","content":[{"type":"tool_use","id":"a","name":"f","input":{"password":"hunter2-Zq9x"}}],"tool_calls":[{"id":"a","name":"f","args":{"password":"hunter2-Zq9x"}}],"additional_kwargs":{"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"password\":\"hunter2-Zq9x\"}"}}]}},{"type":"tool","content":"ok","tool_call_id":"a","artifact":{"password":["hunter2-Zq9x"]}}]"#,
        r#"{"contents":[{"role":"user","parts":[{"text":"go"},{"fileData":{"mimeType":"text/plain","fileUri":"https://me:hunter2-Zq9x@a.org/f"}}]}]}"#,
        r#"[{"kind":"request","parts":[{"part_kind":"user-prompt","content":"go","metadata":{"db_password":"hunter2-Zq9x"}}],"metadata":{"note":"password=hunter2-Zq9x"}}]"#,
        r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"},"metadata":{"password":"hunter2-Zq9x"},"history":[{"kind":"message","role":"user","messageId":"m","parts":[{"kind":"text","text":"go"}],"metadata":{"password":"hunter2-Zq9x"}}]}"#,
        r#"{"type":"user_turn","id":"u","text":"go","metadata":{"deep":[{"password":"hunter2-Zq9x","pin_password":20481234}]},"more":"password=hunter2-Zq9x"}"#,
        r#"{"type":"tool_result","id":"u","text":"go","metadata":{"password":"hunter2-Zq9x"}}"#,
        r#"{"type":"tool_result","id":"u","envelope":{"status":"ok","summary":"password=hunter2-Zq9x","facts":["password=hunter2-Zq9x"],"artifacts":[],"views":[]}}"#,
        r#"{"events":[{"kind":"user_turn","id":"u","text":"go"}],"facts":{"db password":"hunter2-Zq9x"},"episodes":[{"id":"e","summary":"password=hunter2-Zq9x"}]}"#,
        r#"{"type":"user_turn","id":"u","text":"go","metadata":{"wire":"password=hunter2-Zq9x"}}"#,
        r#"{"type":"tool_result","id":"u","text":"rows","envelope":{"status":"ok","summary":"go","facts":[],"artifacts":[{"handle":"a","media_type":"text/plain","size_bytes":4,"label":"password=hunter2-Zq9x","content_hash":"bc51e9e65d79e1c90ba544ab2eae1044ccdf8c1af7a559ba375cba4276f7d99e"}],"views":[]}}"#,
        r#"{"type":"tool_result","id":"u","envelope":{"status":"ok","summary":"go","facts":[],"artifacts":[{"handle":"a","media_type":"text/plain","size_bytes":4,"label":"password=hunter2-Zq9x","content_hash":"bc51e9e65d79e1c90ba544ab2eae1044ccdf8c1af7a559ba375cba4276f7d99e"}],"views":[]}}"#,
    ];

    /// Files and drawings in messages, with the password in base64 or in escapes.
    const ENCODED: [&str; 7] = [
        r#"[{"role":"user","content":[{"type":"text","text":"see"},{"type":"file","file":{"filename":"a.txt","file_data":"data:text/plain;base64,cGFzc3dvcmQ9aHVudGVyMi1acTl4"}}]}]"#,
        r#"[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/svg+xml;base64,PHN2ZyB4bWxucz0naHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmcnPjx0ZXh0PnBhc3N3b3JkPWh1bnRlcjItWnE5eDwvdGV4dD48L3N2Zz4="}}]}]"#,
        r#"[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:text/plain,password%3Dhunter2-Zq9x"}}]}]"#,
        r#"[{"type":"message","role":"user","content":[{"type":"input_file","filename":"a.txt","file_data":"data:text/plain;base64,cGFzc3dvcmQ9aHVudGVyMi1acTl4"}]}]"#,
        r#"[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/svg+xml","data":"PHN2ZyB4bWxucz0naHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmcnPjx0ZXh0PnBhc3N3b3JkPWh1bnRlcjItWnE5eDwvdGV4dD48L3N2Zz4="}},{"type":"search_result","source":"a","title":"t","content":[{"type":"text","text":"x"}]}]}]"#,
        r#"{"contents":[{"role":"user","parts":[{"text":"go"},{"inlineData":{"mimeType":"text/plain","data":"cGFzc3dvcmQ9aHVudGVyMi1acTl4"}}]}]}"#,
        r#"[{"kind":"request","parts":[{"part_kind":"user-prompt","content":["go",{"kind":"binary","media_type":"text/plain","data":"Pz8_IHBhc3N3b3JkPWh1bnRlcjItWnE5eA=="}]}]}]"#,
    ];

    /// What stands for the password in them.
    const CODES: [&str; 4] = [
        "cGFzc3dvcmQ9aHVudGVyMi1acTl4",
        "ZXh0PnBhc3N3b3JkPWh1bnRlcjItWnE5eDwvdGV4dD48L3N2Zz4=",
        "Pz8_IHBhc3N3b3JkPWh1bnRlcjItWnE5eA==",
        "password%3Dhunter2-Zq9x",
    ];

    #[test]
    fn no_secret_is_left_in_a_file_of_a_message() {
        let tells = |text: &str| CODES.iter().chain(&["hunter2"]).any(|code| text.contains(code));
        for document in ENCODED {
            let (file, again) = stored(None, document, Secrets::Redact);
            assert!(!tells(&file) && !tells(&again), "{document}: {file}");
            assert!(recognise(again.as_bytes(), "again").is_ok(), "{again}");
            let (kept, _) = stored(None, document, Secrets::Keep);
            assert!(tells(&kept), "{document}: {kept}");
        }
    }

    #[test]
    fn no_secret_is_left_in_what_is_kept_beside_texts() {
        for document in HIDDEN {
            let (file, again) = stored(None, document, Secrets::Redact);
            assert!(!file.contains("hunter2") && file.contains("[REDACTED: "), "{document}: {file}");
            assert!(!again.contains("hunter2") && !file.contains("20481234"), "{document}: {again}");
            let (kept, _) = stored(None, document, Secrets::Keep);
            assert!(kept.contains("hunter2"), "{document}: {kept}");
            assert!(recognise(again.as_bytes(), "again").is_ok(), "{again}");
        }
    }

    #[test]
    fn a_redactor_of_others_masks_what_is_kept_beside_texts() {
        struct Person(std::sync::Mutex<Vec<String>>);
        impl crate::hooks::Exchange for &'static Person {
            fn ask(&self, line: &str, _: std::time::Duration) -> Result<String, String> {
                let asked: Value = serde_json::from_str(line).unwrap();
                let text = asked["text"].as_str().unwrap().to_owned();
                self.0.lock().unwrap().push(text.clone());
                Ok(serde_json::json!({"text": text.replace("Ada", "[a person]").replace("openai", "?")}).to_string())
            }
        }
        let person: &Person = Box::leak(Box::new(Person(std::sync::Mutex::default())));
        let hooks = Hooks::default().with(crate::hooks::HookKind::Redactor, Box::new(person), 1000);
        let said = r#"{"role":"assistant","content":"Hm","reasoning_content":"Ada, password=hunter2-Zq9x","n":1}"#;
        let (file, again) = stored(Some(&hooks), &format!("[{said},{said}]"), Secrets::Keep);
        assert!(!file.contains("Ada") && !file.contains("hunter2"), "{file}");
        let again: Value = serde_json::from_str(&again).unwrap();
        insta::assert_snapshot!(again, @r#"[{"role":"assistant","content":"Hm","reasoning_content":"[a person], password=[REDACTED: password]","n":1},{"role":"assistant","content":"Hm","reasoning_content":"[a person], password=[REDACTED: password]","n":1}]"#);
        // Each text is asked about once, and how a message is put together is nobody's business.
        assert_eq!(person.0.lock().unwrap().join(" | "), "Hm | assistant | Ada, password=[REDACTED: password]");
        let session = Session::default();
        let (facts, episodes) = (
            vec![
                Fact { key: "owner".to_owned(), value: "Ada".to_owned() },
                Fact { key: "api_key".to_owned(), value: "k3y-0f-Ada".to_owned() },
            ],
            vec![Episode { id: "e".to_owned(), summary: "Ada said password=hunter2-Zq9x".to_owned() }],
        );
        remember(&session, Some(&hooks), facts, episodes, &ContextConfig::default()).unwrap();
        let told: Vec<String> =
            session.facts.all().unwrap().iter().map(|fact| format!("{}={}", fact.key, fact.value)).collect();
        assert_eq!(told.join(" "), "api_key=[REDACTED: secret] owner=[a person]");
        assert_eq!(session.episodes.all().unwrap()[0].summary, "[a person] said password=[REDACTED: password]");
    }
}

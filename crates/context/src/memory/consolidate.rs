//! Several sessions become one memory: facts and episodes, each with the sessions and events that said so.
//!
//! A pure function of what was observed: no clock, no order. The memory keeps every observation, also of what is not in
//! force yet or any more, so that consolidating it again, alone or with further sessions, gives what consolidating all
//! sessions at once gives.
//!
//! What is observed: remembered facts, `key: value` facts taken from results (as `<call>.<key>`), events that are memory,
//! policies, sentences in which users demand something, episodes, and of each session what was asked and how it ended.
//! Events that are too sensitive for prompts are not read, and secrets are masked whatever the configuration says: a memory
//! outlives the conversation that it is of.
//!
//! Values of a key that differ in nothing that carries meaning are one value, and so are statements of which one adds a
//! detail to the other. Where one key has several values, the latest one is in force and names the others, if the dates of
//! the sessions tell which it is. Otherwise the values stand side by side.
//!
//! A session that begins with all events of another is that session grown: what it said before it had grown does not count
//! beside it. A memory holds digests of the beginnings of each session, so that it can tell that of sessions whose files it
//! does not have.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::day::Day;
use super::same::{Place, places};
use crate::compile::{Memory, derived_from, named, one_line};
use crate::config::ContextConfig;
use crate::event::{ContextItem, Episode, Fact, ItemKind};
use crate::handoff::{demands, gist, hidden, short};
use crate::store::{EpisodicStore, FactStore, Session, StoreError, redact, redact_named};
use contextweaver_core::files::{WriteError, replace_file_with};
use contextweaver_core::text::sha256_hex;

/// The version of the form of memory files.
const SCHEMA: u32 = 1;

/// Statements that are read of one session at most.
const MOST_STATEMENTS: usize = 5_000;

/// Characters of a key and of a value at most.
const MOST_KEY: usize = 100;
const MOST_VALUE: usize = 400;

/// Characters of a call at most whose results give facts: keys of different calls must not become the same.
const MOST_CALL: usize = 48;

/// The thousandths that a session weighs on the day of the memory, and the days in which that halves.
const WEIGHT: u64 = 1_000;
const HALF_LIFE: u64 = 30;

/// The percent of their words that two episodes have in common at least where they count as one: what happened twice in much
/// the same way happened twice.
const SAME_EPISODE: u8 = 90;

/// The percent at which texts are one only where they differ in nothing that carries meaning: of two values of one key, one
/// that adds something is another value.
const SAME_VALUE: u8 = 100;

/// The beginnings of a session of which a memory has digests: each of the first ones, then each that is longer than the one
/// before by this share of it.
const BEGINNINGS: usize = 32;
const FURTHER: usize = 16;

/// The hexadecimal digits of the digest of a beginning. All up to the same length are compared at once.
const BEGINNING: usize = 8;

/// The member of an event's metadata in which the adapters keep the rest of a message.
const KEPT: &str = "wire";

/// The members of an event, or of a message, in which formats say when it was.
const TIMES: [&str; 4] = ["timestamp", "created_at", "time", "date"];

/// How sessions are consolidated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// The day for which the memory is; without it nothing fades.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Day>,
    /// The number of sessions that must speak of a fact before it is in force.
    pub min_sessions: usize,
    /// The share of its words, in percent, that a statement must have in common with a shorter one to count as the same with
    /// a detail, from 1 to 100.
    pub similarity: u8,
    /// The days without a session that speaks of it after which something is out of force.
    pub forget_after: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self { as_of: None, min_sessions: 2, similarity: 60, forget_after: 90 }
    }
}

/// A session to consolidate.
#[derive(Debug, Clone, Copy)]
pub struct Consolidated<'a> {
    /// What it is called in the memory.
    pub name: &'a str,
    /// The day of the session; without it, the latest that its events name.
    pub day: Option<Day>,
    /// The session itself.
    pub session: &'a Session,
}

/// A memory: what several sessions say, and which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryFile {
    format: String,
    schema: u32,
    /// How the sessions were consolidated.
    pub rules: Rules,
    /// The sessions, by digest.
    pub sessions: Vec<MemorySession>,
    /// The facts, by key.
    pub facts: Vec<MemoryFact>,
    /// The episodes, oldest first.
    pub episodes: Vec<MemoryEpisode>,
}

/// A session of a memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemorySession {
    /// SHA-256 (hex) of its session file, if that named no source: where a session was read from is no part of it.
    pub sha256: String,
    /// What it is called.
    pub name: String,
    /// Its day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<Day>,
    /// The number of its events.
    pub events: usize,
    /// Statements that were not read, because there are too many.
    pub left_out: usize,
    /// Digests of its beginnings, the shortest first. Those of the session when it has grown begin with these.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub begins: String,
}

/// Whether something is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is.
    InForce,
    /// Too few sessions speak of it.
    Waiting,
    /// No session spoke of it for too long.
    Faded,
}

/// How the values of a key stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// There is one.
    Agreed,
    /// The first one is the latest.
    Latest,
    /// Nothing tells which one holds.
    Apart,
}

/// A fact of a memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryFact {
    /// What it is about. A statement without a key has `policy`, `user` or `memory` and a digest of it.
    pub key: String,
    /// Whether it is in force.
    pub standing: Standing,
    /// How its values stand to each other.
    pub agreement: Agreement,
    /// The number of sessions that speak of it.
    pub count: usize,
    /// What these sessions weigh together, in thousandths of a session of the day of the memory.
    pub weight: u64,
    /// Its values. The first one holds, unless they are apart.
    pub values: Vec<MemoryValue>,
}

/// One value of a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryValue {
    /// The value, in the words of most sessions.
    pub value: String,
    /// Who said so.
    pub seen: Vec<Seen>,
}

/// An episode of a memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryEpisode {
    /// An id that is unique within the memory.
    pub id: String,
    /// Whether it is in force.
    pub standing: Standing,
    /// What happened.
    pub summary: String,
    /// The latest day on which it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<Day>,
    /// The sessions that it is of.
    pub seen: Vec<Seen>,
}

/// One observation: a session said this.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// The digest of the session.
    pub session: String,
    /// What it is about, in the words of the session: the key of a fact, the id of an episode.
    pub about: String,
    /// The value in the words of the session.
    pub said: String,
    /// The events that say so; none for what the session remembers without one.
    pub events: Vec<String>,
}

/// A memory could not be read, made or written.
#[derive(Debug, thiserror::Error)]
pub enum MemoryFileError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not a memory.
    #[error("{}: not a memory: {reason}", path.display())]
    Syntax {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
    /// A rule is out of its range.
    #[error("`{rule}` must be {range}")]
    Rule {
        /// The name of the rule.
        rule: &'static str,
        /// Which values are allowed.
        range: &'static str,
    },
    /// A session could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// What an observation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Topic {
    /// A key.
    Key,
    /// A statement without a key.
    Statement,
    /// Something that happened.
    Episode,
}

/// Statements without a key are about one of these.
const STATEMENTS: [&str; 3] = ["memory", "policy", "user"];

type Observations = BTreeSet<(Topic, Seen)>;

/// Makes one memory of sessions and of earlier memories.
///
/// # Errors
/// [`MemoryFileError::Rule`] for a rule out of its range, [`MemoryFileError::Store`] when a session cannot be read.
pub fn consolidate(
    sessions: &[Consolidated<'_>],
    memories: &[MemoryFile],
    rules: &Rules,
    config: &ContextConfig,
) -> Result<MemoryFile, MemoryFileError> {
    if !(1..=100).contains(&rules.similarity) {
        return Err(MemoryFileError::Rule { rule: "similarity", range: "from 1 to 100" });
    }
    if rules.min_sessions == 0 {
        return Err(MemoryFileError::Rule { rule: "min_sessions", range: "at least 1" });
    }
    let mut known: BTreeMap<String, MemorySession> = BTreeMap::new();
    let mut observed = Observations::new();
    for one in sessions {
        let (session, seen) = observations(one, config)?;
        join(&mut known, session);
        observed.extend(seen);
    }
    for memory in memories {
        memory.sessions.iter().for_each(|session| join(&mut known, session.clone()));
        for fact in &memory.facts {
            for seen in fact.values.iter().flat_map(|value| &value.seen) {
                let said = short(&redact_named(&seen.about, &seen.said), MOST_VALUE);
                let seen = Seen { said, ..seen.clone() };
                // Somebody may remember a fact by the key `user`; only a statement has a digest behind that.
                let digest = fact.key.strip_prefix(&seen.about).is_some_and(|rest| rest.starts_with(':'));
                let stated = digest && STATEMENTS.contains(&seen.about.as_str());
                let topic = if stated { Topic::Statement } else { Topic::Key };
                observed.insert((topic, seen));
            }
        }
        let episodes = memory.episodes.iter().flat_map(|episode| &episode.seen);
        observed.extend(episodes.map(|seen| (Topic::Episode, seen.clone())));
    }
    forget_outgrown(&mut known, &mut observed);
    let days: HashMap<&str, Day> =
        known.values().filter_map(|session| Some((session.sha256.as_str(), session.day?))).collect();
    let view = View { days: &days, rules };
    let of = |topic: Topic| observed.iter().filter(move |(found, _)| *found == topic).map(|(_, seen)| seen);

    let mut by_key: BTreeMap<String, Vec<&Seen>> = BTreeMap::new();
    of(Topic::Key).for_each(|seen| by_key.entry(normal_key(&seen.about)).or_default().push(seen));
    let mut facts: Vec<MemoryFact> = Vec::new();
    for seen in by_key.into_values() {
        facts.push(view.fact(most_used(seen.iter().map(|seen| seen.about.as_str())), view.values(&seen, SAME_VALUE)));
    }
    for about in STATEMENTS {
        let seen: Vec<&Seen> = of(Topic::Statement).filter(|seen| seen.about == about).collect();
        for value in view.values(&seen, rules.similarity) {
            let digest = sha256_hex(value.value.as_bytes());
            facts.push(view.fact(format!("{about}:{}", digest.get(..12).unwrap_or_default()), vec![value]));
        }
    }
    facts.sort_by(|left, right| left.key.cmp(&right.key));

    let seen: Vec<&Seen> = of(Topic::Episode).collect();
    let mut ids = BTreeSet::new();
    let mut episodes: Vec<MemoryEpisode> =
        view.values(&seen, rules.similarity.max(SAME_EPISODE)).into_iter().map(|value| view.episode(value)).collect();
    episodes.sort_by(|left, right| (left.day, &left.id, &left.summary).cmp(&(right.day, &right.id, &right.summary)));
    for episode in &mut episodes {
        while !ids.insert(episode.id.clone()) {
            episode.id.push('~');
        }
    }
    Ok(MemoryFile {
        format: MemoryFile::FORMAT.to_owned(),
        schema: SCHEMA,
        rules: rules.clone(),
        sessions: known.into_values().collect(),
        facts,
        episodes,
    })
}

/// Adds a session. One that is known keeps the first of its names and the last of its days, whatever order they come in.
fn join(known: &mut BTreeMap<String, MemorySession>, session: MemorySession) {
    match known.get_mut(&session.sha256) {
        None => {
            known.insert(session.sha256.clone(), session);
        }
        Some(before) => {
            before.day = before.day.max(session.day);
            before.name = session.name.min(std::mem::take(&mut before.name));
            before.left_out = before.left_out.max(session.left_out);
            before.begins = session.begins.max(std::mem::take(&mut before.begins));
        }
    }
}

/// Removes the sessions that another one has outgrown, with what they said. The other is of their day at least.
fn forget_outgrown(known: &mut BTreeMap<String, MemorySession>, observed: &mut Observations) {
    let mut sessions: Vec<&MemorySession> = known.values().filter(|session| !session.begins.is_empty()).collect();
    // What begins with a text stands right behind it.
    sessions.sort_by_key(|session| (session.begins.as_str(), session.events));
    let mut outgrown: BTreeSet<String> = BTreeSet::new();
    let mut days: BTreeMap<String, Option<Day>> = BTreeMap::new();
    for (at, session) in sessions.iter().enumerate() {
        let behind = sessions.iter().skip(at + 1).take_while(|other| other.begins.starts_with(&session.begins));
        for other in behind.filter(|other| other.events > session.events) {
            outgrown.insert(session.sha256.clone());
            let day = days.entry(other.sha256.clone()).or_default();
            *day = session.day.max(*day);
        }
    }
    known.retain(|sha256, _| !outgrown.contains(sha256));
    for (sha256, day) in days {
        if let Some(session) = known.get_mut(&sha256) {
            session.day = session.day.max(day);
        }
    }
    observed.retain(|(_, seen)| !outgrown.contains(&seen.session));
}

/// Digests of the beginnings of the events, each of all events up to there.
fn begins(events: &[ContextItem]) -> Result<String, serde_json::Error> {
    let (mut digests, mut digest, mut next) = (String::new(), String::new(), 1);
    for (count, event) in (1..).zip(events) {
        digest = sha256_hex(format!("{digest}{}", serde_json::to_string(event)?).as_bytes());
        if count == next {
            digests.push_str(digest.get(..BEGINNING).unwrap_or_default());
            next += if count < BEGINNINGS { 1 } else { count / FURTHER };
        }
    }
    Ok(digests)
}

/// What a session says.
fn observations(
    one: &Consolidated<'_>,
    config: &ContextConfig,
) -> Result<(MemorySession, Observations), MemoryFileError> {
    let Consolidated { name, day, session } = one;
    let mut bytes = Vec::new();
    let failed = |reason: String| StoreError::Backend { place: (*name).to_owned(), reason };
    session.write_from("", &mut bytes).map_err(|error| failed(error.to_string()))?;
    let (sha256, transcript) = (sha256_hex(&bytes), &session.transcript);
    drop(bytes);
    let hidden = hidden(transcript, config);
    let mut found: Vec<(Topic, Seen)> = Vec::new();
    let mut add = |topic: Topic, about: &str, said: &str, events: Vec<String>| {
        let (about, said) = (short(&redact(about).text, MOST_KEY), short(&redact_named(about, said), MOST_VALUE));
        if !about.is_empty() && !said.is_empty() {
            found.push((topic, Seen { session: sha256.clone(), about, said, events }));
        }
    };
    // Of what one call said again and again, the last holds.
    let mut taken: BTreeMap<String, (usize, String, String)> = BTreeMap::new();
    for fact in session.facts.all()? {
        let Some(event) = derived_from(&fact.key) else {
            add(Topic::Key, &fact.key, &fact.value, Vec::new());
            continue;
        };
        let position = transcript.position(event).filter(|position| !hidden[*position]);
        let Some((position, call)) = position.and_then(|position| Some((position, transcript.parent(position)?)))
        else {
            continue;
        };
        let call = &transcript.items()[call];
        let call = one_line(&named(call, &call.text));
        // The same words about another subject are not a contradiction, so a key has the whole call, or there is none.
        if let (true, Some((key, value))) = (call.chars().count() <= MOST_CALL, fact.value.split_once(": ")) {
            let about = format!("{call}.{key}");
            if taken.get(&about).is_none_or(|(before, ..)| *before <= position) {
                taken.insert(about, (position, value.to_owned(), event.to_owned()));
            }
        }
    }
    for (about, (_, value, event)) in taken {
        add(Topic::Key, &about, &value, vec![event]);
    }
    let visible = transcript.items().iter().zip(&hidden).filter(|(_, hidden)| !**hidden).map(|(item, _)| item);
    for item in visible {
        let event = || vec![item.id.to_string()];
        match item.kind {
            ItemKind::MemoryFact => match item.text.split_once(": ").filter(|(key, _)| is_key(key)) {
                Some((key, value)) => add(Topic::Key, key, value, event()),
                None => add(Topic::Statement, "memory", &item.text, event()),
            },
            ItemKind::Policy => add(Topic::Statement, "policy", &item.text, event()),
            ItemKind::UserTurn => {
                demands(&item.text).iter().for_each(|sentence| add(Topic::Statement, "user", sentence, event()));
            }
            _ => {}
        }
    }
    for episode in session.episodes.all()? {
        add(Topic::Episode, &episode.id, &episode.summary, Vec::new());
    }
    if let Some((summary, events)) = gist(transcript, &hidden, MOST_VALUE) {
        add(Topic::Episode, name, &summary, events);
    }
    let left_out = found.len().saturating_sub(MOST_STATEMENTS);
    found.truncate(MOST_STATEMENTS);
    let session = MemorySession {
        sha256,
        name: short(name, MOST_KEY),
        day: day.or_else(|| latest_day(session)),
        events: transcript.len(),
        left_out,
        begins: begins(transcript.items()).map_err(|error| failed(error.to_string()))?,
    };
    // One statement may stand in several events.
    let mut joined: BTreeMap<(Topic, String, String), BTreeSet<String>> = BTreeMap::new();
    for (topic, seen) in found {
        joined.entry((topic, seen.about, seen.said)).or_default().extend(seen.events);
    }
    let seen = joined.into_iter().map(|((topic, about, said), events)| {
        let events = events.into_iter().collect();
        (topic, Seen { session: session.sha256.clone(), about, said, events })
    });
    let seen = seen.collect();
    Ok((session, seen))
}

/// The latest day that the metadata of an event names, or the message that a format keeps there.
fn latest_day(session: &Session) -> Option<Day> {
    let of = |item: &ContextItem| {
        let own = TIMES.iter().filter_map(|name| Day::at_start(item.metadata.get(*name)?.as_str()?)).max();
        // A message and its parts have times of their own; what lies deeper is what they speak of.
        let wire = item.metadata.get(KEPT);
        let kept = |place: &str| wire.and_then(|wire| wire.pointer(place));
        let message = kept("/opens/value");
        let parts = message.and_then(|message| message.get("parts")?.as_array()).into_iter().flatten();
        own.max(parts.chain(message).chain(kept("/part/value")).filter_map(named_day).max())
    };
    session.transcript.items().iter().filter_map(of).max()
}

/// The latest day that the members of an object name.
fn named_day(object: &Value) -> Option<Day> {
    TIMES.iter().filter_map(|name| Day::at_start(object.get(name)?.as_str()?)).max()
}

/// Whether the text before a colon is a key, and not the beginning of a sentence.
fn is_key(text: &str) -> bool {
    text.chars().count() <= 40 && text.split_whitespace().count() <= 4 && !text.is_empty()
}

/// Keys that differ in nothing but case and separators are one. Signs are no separators: C is not C++.
fn normal_key(key: &str) -> String {
    const SEPARATORS: &str = "_-/\\:,;|?!()[]{}<>'\"`‘’“”–—";
    let is_separator = |c: char| c.is_whitespace() || c.is_control() || SEPARATORS.contains(c);
    let mut words: Vec<String> = vec![String::new()];
    let mut before = ' ';
    let mut rest = key.chars().peekable();
    while let Some(c) = rest.next() {
        let is_minus = c == '-' && !before.is_alphanumeric() && rest.peek().is_some_and(char::is_ascii_digit);
        match words.last_mut() {
            Some(word) if is_minus || !is_separator(c) => word.extend(c.to_lowercase()),
            _ => words.push(String::new()),
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    if words.is_empty() { key.to_owned() } else { words.join("_") }
}

/// The text that occurs most often; the shortest and first one among equals.
fn most_used<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    texts.for_each(|text| *times.entry(text).or_default() += 1);
    let best = times.into_iter().min_by_key(|(text, times)| (usize::MAX - times, text.len(), *text));
    best.map(|(text, _)| text.to_owned()).unwrap_or_default()
}

/// What observations are looked at with.
struct View<'a> {
    days: &'a HashMap<&'a str, Day>,
    rules: &'a Rules,
}

impl View<'_> {
    /// The latest day of the observations, and whether each has one.
    fn latest(&self, seen: &[Seen]) -> (Option<Day>, bool) {
        let days: Vec<Option<Day>> = seen.iter().map(|seen| self.days.get(seen.session.as_str()).copied()).collect();
        (days.iter().flatten().max().copied(), days.iter().all(Option::is_some))
    }

    /// The observations by what they say, in the order of their text; see [`places`] for what is one.
    fn values(&self, seen: &[&Seen], percent: u8) -> Vec<MemoryValue> {
        let mut texts: Vec<&str> = seen.iter().map(|seen| seen.said.as_str()).collect();
        texts.sort_unstable();
        texts.dedup();
        let places = places(&texts, percent);
        let place_of: HashMap<&str, Place> = texts.iter().copied().zip(places).collect();
        let mut together: BTreeMap<usize, Vec<Seen>> = BTreeMap::new();
        for one in seen {
            together.entry(place_of[one.said.as_str()].group).or_default().push((*one).clone());
        }
        let value = |mut seen: Vec<Seen>| {
            seen.sort();
            // With a detail or without it, the latest wording holds; which of the same words are used says nothing.
            let (newest, all_dated) = self.latest(&seen);
            let day = |seen: &&Seen| self.days.get(seen.session.as_str()).copied();
            let meaning = |seen: &Seen| place_of[seen.said.as_str()].meaning;
            let latest: Vec<usize> = seen.iter().filter(|seen| day(seen) == newest).map(meaning).collect();
            let told = seen.iter().filter(|seen| !all_dated || latest.contains(&meaning(seen)));
            MemoryValue { value: most_used(told.map(|seen| seen.said.as_str())), seen }
        };
        let mut values: Vec<MemoryValue> = together.into_values().map(value).collect();
        values.sort_by(|left, right| left.value.cmp(&right.value));
        values
    }

    fn fact(&self, key: String, mut values: Vec<MemoryValue>) -> MemoryFact {
        let days: Vec<(Option<Day>, bool)> = values.iter().map(|value| self.latest(&value.seen)).collect();
        let newest = days.iter().filter_map(|(day, _)| *day).max();
        let holding = days.iter().filter(|(day, _)| *day == newest && newest.is_some()).count();
        let all_dated = days.iter().all(|(_, dated)| *dated);
        let agreement = match (values.len(), all_dated && holding == 1) {
            (1, _) => Agreement::Agreed,
            (_, true) => Agreement::Latest,
            (_, false) => Agreement::Apart,
        };
        if agreement == Agreement::Latest {
            values.sort_by_key(|value| std::cmp::Reverse(self.latest(&value.seen).0));
        }
        let sessions: BTreeSet<&str> =
            values.iter().flat_map(|value| &value.seen).map(|seen| seen.session.as_str()).collect();
        let weight = sessions.iter().map(|session| self.weight(self.days.get(session).copied())).sum();
        let faded = all_dated && self.faded(newest);
        let standing = match sessions.len() < self.rules.min_sessions {
            _ if faded => Standing::Faded,
            true => Standing::Waiting,
            false => Standing::InForce,
        };
        MemoryFact { key, standing, agreement, count: sessions.len(), weight, values }
    }

    fn episode(&self, value: MemoryValue) -> MemoryEpisode {
        let (day, all_dated) = self.latest(&value.seen);
        let standing = if all_dated && self.faded(day) { Standing::Faded } else { Standing::InForce };
        let id = value.seen.iter().map(|seen| seen.about.as_str()).min().unwrap_or_default().to_owned();
        MemoryEpisode { id, standing, summary: value.value, day, seen: value.seen }
    }

    fn faded(&self, day: Option<Day>) -> bool {
        self.age(day).is_some_and(|age| age > self.rules.forget_after)
    }

    /// The days from a day to that of the memory.
    fn age(&self, day: Option<Day>) -> Option<u64> {
        Some(self.rules.as_of?.number().saturating_sub(day?.number()))
    }

    /// What a session of a day weighs: it halves with every half-life, and falls evenly between.
    fn weight(&self, day: Option<Day>) -> u64 {
        let age = self.age(day).unwrap_or_default();
        let (halvings, rest) = (age / HALF_LIFE, age % HALF_LIFE);
        let whole = u32::try_from(halvings).ok().and_then(|halvings| WEIGHT.checked_shr(halvings)).unwrap_or_default();
        whole - whole * rest / (2 * HALF_LIFE)
    }
}

impl MemoryFile {
    /// The value of the member `format` of a memory file, by which it is recognised.
    pub const FORMAT: &str = "contextweaver memory";

    /// Reads a memory from a file.
    ///
    /// # Errors
    /// [`MemoryFileError::Read`], and as [`MemoryFile::parse`].
    pub fn load(path: &Path) -> Result<Self, MemoryFileError> {
        let bytes = std::fs::read(path).map_err(|source| MemoryFileError::Read { path: path.to_owned(), source })?;
        Self::parse(&bytes, path)
    }

    /// Reads a memory from the bytes of a file; `path` is what errors name.
    ///
    /// # Errors
    /// [`MemoryFileError::Syntax`] with the first thing that is wrong.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, MemoryFileError> {
        let refuse = |reason: String| MemoryFileError::Syntax { path: path.to_owned(), reason };
        let memory: Self = serde_json::from_slice(bytes).map_err(|error| refuse(error.to_string()))?;
        if memory.format != Self::FORMAT {
            return Err(refuse(format!("its format is `{}`; a memory has `{}`", memory.format, Self::FORMAT)));
        }
        if memory.schema != SCHEMA {
            return Err(refuse(format!("it has schema {}; this version reads schema {SCHEMA}", memory.schema)));
        }
        let known: BTreeSet<&str> = memory.sessions.iter().map(|session| session.sha256.as_str()).collect();
        let facts = memory.facts.iter().flat_map(|fact| fact.values.iter().flat_map(|value| &value.seen));
        for seen in facts.chain(memory.episodes.iter().flat_map(|episode| &episode.seen)) {
            if !known.contains(seen.session.as_str()) {
                return Err(refuse(format!(
                    "`{}` was seen in {}, which `sessions` does not have",
                    seen.about, seen.session
                )));
            }
        }
        let mut keys = BTreeSet::new();
        if let Some(fact) = memory.facts.iter().find(|fact| !keys.insert(&fact.key)) {
            return Err(refuse(format!("the fact `{}` appears twice", fact.key)));
        }
        Ok(memory)
    }

    /// Writes the memory to a file, which is replaced whole or not at all.
    ///
    /// # Errors
    /// [`MemoryFileError::Write`]; what was there before is still there.
    pub fn save(&self, path: &Path) -> Result<(), MemoryFileError> {
        Ok(replace_file_with(path, |out| {
            serde_json::to_writer_pretty(&mut *out, self)?;
            out.write_all(b"\n")
        })?)
    }

    /// Whether a document is a memory, whatever else may be wrong with it.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        serde_json::from_slice::<Value>(bytes).is_ok_and(|document| document["format"] == Self::FORMAT)
    }

    /// The facts that are in force, with the other values where there are some.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let facts = self.facts.iter().filter(|fact| fact.standing == Standing::InForce);
        let episodes = self.episodes.iter().filter(|episode| episode.standing == Standing::InForce);
        Memory {
            facts: facts.map(|fact| Fact { key: fact.key.clone(), value: fact.told() }).collect(),
            episodes: episodes.map(|one| Episode { id: one.id.clone(), summary: one.summary.clone() }).collect(),
        }
    }

    /// The facts whose values differ.
    pub fn conflicts(&self) -> impl Iterator<Item = &MemoryFact> {
        self.facts.iter().filter(|fact| fact.agreement != Agreement::Agreed)
    }
}

impl MemoryFact {
    /// The value as a prompt shows it: one that is contradicted names what contradicts it.
    #[must_use]
    pub fn told(&self) -> String {
        let values: Vec<&str> = self.values.iter().map(|value| value.value.as_str()).collect();
        match (self.agreement, values.split_first()) {
            (Agreement::Agreed, Some((first, _))) => (*first).to_owned(),
            (Agreement::Latest, Some((first, others))) => format!("{first} (before: {})", others.join(" / ")),
            (Agreement::Apart, Some(_)) => format!("{} (sessions disagree)", values.join(" / ")),
            (_, None) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::Sensitivity;
    use crate::event::ToolOutput;
    use crate::manager::ContextManager;

    /// A session with these facts, things that the user says, and a day.
    fn session(facts: &[(&str, &str)], said: &[&str], day: Option<&str>) -> Session {
        let manager = ContextManager::default();
        for (number, text) in said.iter().enumerate() {
            let mut item = ContextItem::new(format!("u{number}"), ItemKind::UserTurn, *text);
            item.metadata.extend(day.map(|day| ("timestamp".to_owned(), Value::from(format!("{day}T10:00:00Z")))));
            manager.ingest(item).unwrap();
        }
        facts.iter().for_each(|(key, value)| manager.add_fact(key, value).unwrap());
        Session::from_stores("a test", manager.stores()).unwrap()
    }

    fn of(sessions: &[(&str, &Session)], rules: &Rules) -> MemoryFile {
        let sessions: Vec<Consolidated<'_>> =
            sessions.iter().map(|(name, session)| Consolidated { name, day: None, session }).collect();
        consolidate(&sessions, &[], rules, &ContextConfig::default()).unwrap()
    }

    fn shown(memory: &MemoryFile) -> String {
        let line = |fact: &MemoryFact| {
            format!("{:?} {:?} {} of {}: {}\n", fact.standing, fact.agreement, fact.key, fact.weight, fact.told())
        };
        let facts: String = memory.facts.iter().map(line).collect();
        let line = |one: &MemoryEpisode| format!("{:?} {}: {}\n", one.standing, one.id, one.summary);
        facts + &memory.episodes.iter().map(line).collect::<String>()
    }

    #[test]
    fn what_several_sessions_say_is_in_force() {
        let monday = session(
            &[("region", "eu-west-1"), ("Team Lead", "Ines"), ("once", "x")],
            &["Look at the checkout. Never restart the primary database.", "Is it 20 or 40?"],
            Some("2026-11-02"),
        );
        let tuesday = session(
            &[("region", "us-east-1"), ("team_lead", "Ines")],
            &["Look at the search. Please never restart the primary database!"],
            Some("2026-11-20"),
        );
        let old = session(&[("pager", "555")], &["Old things."], Some("2026-01-02"));
        let older = session(&[("pager", "555")], &["Older things."], Some("2026-01-01"));
        let rules = Rules { as_of: Some("2026-11-24".parse().unwrap()), ..Rules::default() };
        let memory = of(&[("monday", &monday), ("tuesday", &tuesday), ("old", &old), ("older", &older)], &rules);
        insta::assert_snapshot!(shown(&memory), @r"
        InForce Agreed Team Lead of 1568: Ines
        Waiting Agreed once of 634: x
        Faded Agreed pager of 0: 555
        InForce Latest region of 1568: us-east-1 (before: eu-west-1)
        InForce Agreed user:d407ce852120 of 1568: Never restart the primary database.
        Faded older: Older things.
        Faded old: Old things.
        InForce monday: Look at the checkout. Never restart the primary database.
        InForce tuesday: Look at the search. Please never restart the primary database!
        ");
        let conflict: Vec<&str> = memory.conflicts().map(|fact| fact.key.as_str()).collect();
        assert_eq!(conflict, ["region"]);
        let seen = &memory.conflicts().next().unwrap().values[0].seen[0];
        let named = memory.sessions.iter().find(|session| session.sha256 == seen.session).unwrap();
        assert_eq!((named.name.as_str(), seen.said.as_str()), ("tuesday", "us-east-1"));
        // Without days, nothing tells which value is the latest.
        let undated = session(&[("region", "us-east-1")], &[], None);
        let memory = of(&[("monday", &monday), ("undated", &undated)], &Rules::default());
        let region = memory.conflicts().next().unwrap();
        assert_eq!(
            (region.agreement, region.told().as_str()),
            (Agreement::Apart, "eu-west-1 / us-east-1 (sessions disagree)")
        );
    }

    #[test]
    fn what_results_say_has_the_tool_as_its_key_and_secrets_do_not_stay() {
        let build = |state: &str, level: Sensitivity| {
            let manager = ContextManager::default();
            manager
                .ingest(ContextItem::new("c1", ItemKind::ToolCall, "get_host(name='db1')").with_sensitivity(level))
                .unwrap();
            let rows: String = (0..900).map(|n| format!("row {n}\n")).collect();
            let text = format!("state: {state}\nowner: AKIAIOSFODNN7EXAMPLE\n{rows}");
            manager.ingest_tool_result("c1", &ToolOutput::text(text)).unwrap();
            Session::from_stores("a test", manager.stores()).unwrap()
        };
        let rules = Rules { min_sessions: 1, ..Rules::default() };
        let memory = of(&[("a", &build("up", Sensitivity::Public))], &rules);
        let state = memory.facts.iter().find(|fact| fact.key == "get_host(name='db1').state").unwrap();
        assert_eq!(
            (state.told().as_str(), state.values[0].seen[0].events.as_slice()),
            ("up", &["result:c1".to_owned()][..])
        );
        assert!(!serde_json::to_string(&memory).unwrap().contains("AKIAIOSFODNN7EXAMPLE"));
        assert_eq!(of(&[("a", &build("up", Sensitivity::Restricted))], &rules).facts, []);
    }

    #[test]
    fn similar_statements_with_other_numbers_stay_apart() {
        let same = |left: &str, right: &str| {
            let places = places(&[left, right], 60);
            places[0].group == places[1].group
        };
        assert!(same("always answer in German", "Please always answer in German."));
        assert!(same("UTC", "utc"));
        assert!(!same("the web server listens on port 8080", "the web server listens on port 9090"));
        assert!(!same("restart the primary database", "do not restart the primary database"));
        assert!(!same("answer in German", "send a letter"));
    }

    /// How two values of one key, of two days, stand to each other, and which is told.
    fn told(values: [&str; 2]) -> (Agreement, String) {
        let earlier = session(&[("the key", values[0])], &[], None);
        let later = session(&[("the key", values[1])], &[], None);
        let day = |day: &str| Some(day.parse().unwrap());
        let taken = [
            Consolidated { name: "earlier", day: day("2026-11-20"), session: &earlier },
            Consolidated { name: "later", day: day("2026-11-23"), session: &later },
        ];
        let memory = consolidate(&taken, &[], &Rules::default(), &ContextConfig::default()).unwrap();
        let facts: Vec<&MemoryFact> = memory.facts.iter().collect();
        assert_eq!(facts.len(), 1, "{values:?}");
        (facts[0].agreement, facts[0].told())
    }

    #[test]
    fn values_that_differ_in_meaning_are_a_conflict_and_the_later_one_holds() {
        for values in [
            ["5", "-5"],
            ["+3", "-3"],
            ["5", "\u{2212}5"],
            ["< 5", "> 5"],
            ["<5", ">5"],
            ["$5", "€5"],
            ["5 %", "5"],
            ["copy from prod to staging", "copy from staging to prod"],
            [
                "The primary database of the billing service is MySQL",
                "The primary database of the billing service is Postgres",
            ],
            ["The deployment window on Sundays is open", "The deployment window on Sundays isn't open"],
            ["The deployment window on Sundays is open", "The deployment window on Sundays isn’t open"],
            ["it will restart the whole cluster by itself", "it won't restart the whole cluster by itself"],
            ["the nightly job can delete old backups", "the nightly job cannot delete old backups"],
            ["the team lead of billing is Adam", "the team lead of billing is Adams"],
            ["/srv/data/reports/final.csv", "/srv/data/reports/draft.csv"],
            ["/srv/data/..", "/srv/data/."],
            ["plan A", "plan B"],
            ["C", "C++"],
            ["copy to product storage in the region", "copy to production storage in the region"],
            [
                "backups are kept in the region eu-west-1 for the whole team",
                "backups are kept in the region eu-west-1 for the whole team and others",
            ],
        ] {
            let [earlier, later] = values;
            assert_eq!(told(values), (Agreement::Latest, format!("{later} (before: {earlier})")), "{values:?}");
            assert_eq!(told([later, earlier]).0, Agreement::Latest, "{values:?}");
        }
    }

    #[test]
    fn values_that_differ_in_no_meaning_agree() {
        for values in [
            ["UTC", "utc"],
            ["The backup runs on Sundays", "the backup runs on Sundays."],
            ["a backup of the database", "backup of the database"],
            ["the server restarts on Sunday", "the servers restarted on Sunday"],
            ["answer in German", "Please answer in German!"],
            ["it does not restart", "it doesn't restart"],
            ["it can't restart", "It cannot restart"],
            ["it isn't open", "it isn’t open"],
            ["\"MySQL\"", "MySQL"],
            ["Deployments run on Monday", "deployments run on Monday"],
        ] {
            assert_eq!(told(values).0, Agreement::Agreed, "{values:?}");
        }
    }

    #[test]
    fn keys_are_one_where_only_case_and_separators_differ() {
        let facts = |keys: &[&str]| {
            let facts: Vec<(&str, &str)> = keys.iter().map(|key| (*key, "x")).collect();
            of(&[("one", &session(&facts, &[], None))], &Rules::default()).facts.len()
        };
        for one in [["Team Lead", "team_lead"], ["team-lead", "team lead:"], ["region (aws)", "Region aws"]] {
            assert_eq!(facts(&one), 1, "{one:?}");
        }
        let apart = ["C version", "C++ version", "C# version", ".NET version", "NET version", "f(x=1)", "f(x=-1)"];
        assert_eq!(facts(&apart), apart.len());
    }

    #[test]
    fn statements_are_one_where_one_adds_a_detail_and_neither_contradicts() {
        let rules = Rules { min_sessions: 1, ..Rules::default() };
        let said = |texts: &[&str]| {
            let days = ["2026-11-01", "2026-11-02", "2026-11-03"];
            let sessions: Vec<Session> =
                texts.iter().zip(days).map(|(text, day)| session(&[], &[text], Some(day))).collect();
            let named: Vec<(&str, &Session)> = days.iter().copied().zip(&sessions).collect();
            let memory = of(&named, &rules);
            memory.facts.into_iter().map(|fact| fact.values[0].value.clone()).collect::<BTreeSet<_>>()
        };
        let told = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<BTreeSet<_>>();
        // The latest wording holds.
        let (short, long) = ("Never restart the primary database.", "Never restart the primary billing database.");
        assert_eq!(said(&[short, long]), told(&[long]));
        assert_eq!(said(&[long, short]), told(&[short]));
        for apart in [
            &["Never restart the primary database.", "Never restart the secondary database."][..],
            &["You must copy from prod to staging.", "You must copy from staging to prod."],
            &["Always answer in German.", "Always answer in German if asked."],
            &["You must restart the whole primary database.", "You must not restart the whole primary database."],
            &["Always wait for the build.", "Always wait for the build of A.", "Always wait for the build of B."],
        ] {
            assert_eq!(said(apart), told(apart));
        }
    }

    #[test]
    fn what_stands_under_a_telling_key_is_masked() {
        let facts = [("db_password", "hunter2-Zq9x"), ("stripe api key", "q7Lm2Xv9Rt4Kp8Wd3Nh6Yb1"), ("zone", "UTC")];
        let memory = of(&[("one", &session(&facts, &[], None))], &Rules { min_sessions: 1, ..Rules::default() });
        let text = serde_json::to_string(&memory).unwrap();
        assert!(!text.contains("hunter2") && !text.contains("q7Lm2"), "{text}");
        insta::assert_snapshot!(shown(&memory), @r"
        InForce Agreed db_password of 1000: [REDACTED: password]
        InForce Agreed stripe api key of 1000: [REDACTED: secret]
        InForce Agreed zone of 1000: UTC
        ");
        // One that was kept in a file before is masked when the file is consolidated again.
        let kept = text.replace("[REDACTED: password]", "hunter2-Zq9x");
        let kept = MemoryFile::parse(kept.as_bytes(), Path::new("m.json")).unwrap();
        assert_eq!(consolidate(&[], &[kept], &memory.rules, &ContextConfig::default()).unwrap(), memory);
    }

    #[test]
    fn a_session_that_has_grown_is_one_session() {
        let said = ["You must greet.", "Hello.", "Always answer in German."];
        let begun = session(&[("region", "eu")], &said[..1], None);
        let grown = session(&[("region", "us")], &said, None);
        let other = session(&[("region", "eu")], &["You must greet them.", "Hello."], None);
        let rules = Rules::default();
        let whole = of(&[("chat", &grown)], &rules);
        assert_eq!(of(&[("chat", &begun), ("chat", &grown)], &rules), whole);
        let next = |session, memory: &MemoryFile| {
            let taken = Consolidated { name: "chat", day: None, session };
            consolidate(&[taken], std::slice::from_ref(memory), &rules, &ContextConfig::default()).unwrap()
        };
        assert_eq!(next(&grown, &of(&[("chat", &begun)], &rules)), whole);
        assert_eq!(next(&begun, &whole), whole);
        assert_eq!(of(&[("other", &other), ("chat", &grown)], &rules).sessions.len(), 2);
        // The day that somebody gave for the beginning is the least that the whole can be of.
        let day: Day = "2026-11-20".parse().unwrap();
        let taken = [
            Consolidated { name: "chat", day: Some(day), session: &begun },
            Consolidated { name: "chat", day: None, session: &grown },
        ];
        let memory = consolidate(&taken, &[], &rules, &ContextConfig::default()).unwrap();
        assert_eq!(memory.sessions.iter().map(|session| session.day).collect::<Vec<_>>(), [Some(day)]);
        // Logs of every kind grow: what was ingested of the beginning is the beginning of what is ingested of the whole.
        let rows: String = (0..900).map(|n| format!("row {n}\\n")).collect();
        let chat = [
            r#"{"role": "user", "content": "Which hosts are there?"}"#.to_owned(),
            r#"{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "hosts", "arguments": "{}"}}]}"#.to_owned(),
            format!(r#"{{"role": "tool", "tool_call_id": "c1", "content": "{rows}"}}"#),
            r#"{"role": "assistant", "content": "There are 900."}"#.to_owned(),
            r#"{"role": "user", "content": "You must count again."}"#.to_owned(),
        ];
        let line = |number: usize, role: &str, content: &str| {
            format!(
                r#"{{"parentUuid": null, "isSidechain": false, "sessionId": "s", "type": "{role}", "message": {{"role": "{role}", "content": {content}}}, "uuid": "u{number}", "timestamp": "2026-11-0{number}T10:00:00Z"}}"#
            )
        };
        let lines = [
            line(1, "user", r#""Which hosts are there?""#),
            line(
                2,
                "assistant",
                r#"[{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t1", "name": "hosts", "input": {}}]"#,
            ),
            line(3, "user", &format!(r#"[{{"type": "tool_result", "tool_use_id": "t1", "content": "{rows}"}}]"#)),
            line(4, "assistant", r#"[{"type": "text", "text": "There are 900."}]"#),
            line(5, "user", r#""You must count again.""#),
        ];
        let ingested =
            |log: String| crate::ingest(log.into_bytes(), "chat", "chat", &ContextConfig::default()).unwrap().session;
        for count in 1..5 {
            let log = |count: usize| format!("[{}]", chat[..count].join(","));
            for (begun, grown) in [(log(count), log(5)), (lines[..count].join("\n"), lines.join("\n"))] {
                let (begun, grown) = (ingested(begun), ingested(grown));
                assert_eq!(of(&[("a", &begun), ("b", &grown)], &rules), of(&[("b", &grown)], &rules), "{count}");
            }
        }
        // Where a session was read from is no part of it.
        let elsewhere = Session { source: "./elsewhere.json".to_owned(), ..session(&[("region", "us")], &said, None) };
        assert_eq!(of(&[("chat", &elsewhere), ("chat", &grown)], &rules), whole);
    }

    #[test]
    fn days_are_found_in_what_the_formats_keep() {
        let lines = [
            r#"{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"user","message":{"role":"user","content":"Why?"},"uuid":"u1","timestamp":"2026-11-01T10:00:00Z"}"#,
            r#"{"timestamp":"2026-11-02T10:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Why?"}]}}"#,
            r#"[{"parts":[{"content":"Why?","timestamp":"2026-11-03T03:04:21Z","part_kind":"user-prompt"}],"kind":"request"}]"#,
            r#"[{"role":"user","content":"Why in 2026-11-05?","metadata":{"due":"2026-11-05"}}]"#,
        ];
        let day = |log: &str| {
            let config = ContextConfig::default();
            let session = crate::ingest(log.as_bytes().to_vec(), "a", "a", &config).unwrap().session;
            let made = of(&[("a", &session)], &Rules::default());
            made.sessions[0].day.map(|day| day.to_string())
        };
        let found: Vec<Option<String>> = lines.into_iter().map(day).collect();
        let known = |day: &str| Some(day.to_owned());
        assert_eq!(found, [known("2026-11-01"), known("2026-11-02"), known("2026-11-03"), None]);
    }

    #[test]
    fn a_file_is_read_as_it_was_written_and_wrong_ones_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.json");
        let one = session(&[("a", "1")], &["Hello. You must greet."], Some("2026-11-02"));
        let memory = of(&[("one", &one)], &Rules::default());
        memory.save(&path).unwrap();
        assert_eq!(MemoryFile::load(&path).unwrap(), memory);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(MemoryFile::is_one(text.as_bytes()) && !MemoryFile::is_one(b"{}"));
        for (old, new, said) in [
            ("contextweaver memory", "other", "its format is `other`"),
            ("\"schema\": 1", "\"schema\": 2", "it has schema 2"),
            ("2026-11-02", "2026-11-32", "`2026-11-32` is not a day"),
            ("\"sha256\": \"", "\"sha256\": \"0", "which `sessions` does not have"),
        ] {
            let error =
                MemoryFile::parse(text.replace(old, new).as_bytes(), Path::new("m.json")).unwrap_err().to_string();
            assert!(error.starts_with("m.json: not a memory: ") && error.contains(said), "{error}");
        }
        // Episodes may share a name.
        let read = |memory: &MemoryFile| MemoryFile::parse(&serde_json::to_vec(memory).unwrap(), Path::new("m.json"));
        let mut twice = memory.clone();
        twice.episodes.extend(memory.episodes);
        assert_eq!(read(&twice).unwrap(), twice);
        twice.facts.extend(memory.facts);
        assert_eq!(read(&twice).unwrap_err().to_string(), "m.json: not a memory: the fact `a` appears twice");
        let rules = Rules { similarity: 0, ..Rules::default() };
        let error = consolidate(&[], &[], &rules, &ContextConfig::default()).unwrap_err();
        assert_eq!(error.to_string(), "`similarity` must be from 1 to 100");
    }

    fn sessions() -> impl Strategy<Value = Vec<Session>> {
        let value =
            prop::sample::select(vec!["UTC", "utc", "CET", "port 80 of the web server", "port 81 of the web server"]);
        let fact = (prop::sample::select(vec!["zone", "Zone", "port", "user"]), value);
        let said = prop::sample::select(vec![
            "Always answer in German",
            "please always answer in german.",
            "You must not wait",
            "Hello",
        ]);
        let day = prop::option::of(prop::sample::select(vec!["2026-11-01", "2026-11-02", "2026-05-01"]));
        let one = (prop::collection::vec(fact, 0..4), prop::collection::vec(said, 0..3), day);
        let made = one.prop_map(|(facts, said, day)| session(&facts, &said, day));
        prop::collection::vec(made, 1..5)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn neither_order_nor_steps_nor_repetition_change_a_memory(sessions in sessions(), cut in 0usize..5, least in 1usize..3) {
            let names: Vec<String> = (0..sessions.len()).map(|number| format!("s{number}")).collect();
            let all: Vec<Consolidated<'_>> = names
                .iter()
                .zip(&sessions)
                .map(|(name, session)| Consolidated { name, day: None, session })
                .collect();
            let rules = Rules { as_of: Some("2026-11-24".parse().unwrap()), min_sessions: least, ..Rules::default() };
            let made = |sessions: &[Consolidated<'_>], memories: &[MemoryFile]| {
                consolidate(sessions, memories, &rules, &ContextConfig::default()).unwrap()
            };
            let memory = made(&all, &[]);
            let backwards: Vec<Consolidated<'_>> = all.iter().rev().copied().collect();
            prop_assert_eq!(&made(&backwards, &[]), &memory);
            prop_assert_eq!(&made(&[], std::slice::from_ref(&memory)), &memory);
            prop_assert_eq!(&made(&all, std::slice::from_ref(&memory)), &memory);
            let (first, rest) = all.split_at(cut.min(all.len()));
            prop_assert_eq!(&made(rest, &[made(first, &[])]), &memory);
            prop_assert_eq!(&made(&[], &[made(first, &[]), made(rest, &[])]), &memory);
            for fact in &memory.facts {
                prop_assert!(fact.count <= sessions.len() && fact.weight <= WEIGHT * fact.count as u64);
                prop_assert!(fact.values.iter().all(|value| !value.seen.is_empty()));
            }
        }
    }
}

//! A hand-over: what the next agent, or a model that is asked for advice, must know of a conversation, within a budget.
//!
//! Nothing is invented: every statement is taken from an event or a fact, and says from which. The parts compete for the
//! budget by rank, so that a small pack still has the goal, the rules and the open plan, and a large one has more of each
//! part side by side. A statement is written short first (the sentences that the query asks for) and longer where there is
//! room. What is left out is counted in the text and named in the record. Events at or above the sensitivity floor are
//! withheld, with what depends on them and the facts that were taken from them, whatever the policy does with them in
//! prompts: a mask tells the next agent nothing.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use super::brief::{Piece, Shown, pack_shown};
use super::compile::{Memory, chosen_first, derived_from, named, one_line};
use super::config::{ContextConfig, Secrets};
use super::firewall::is_error;
use crate::event::{ArtifactRef, ContextItem, Episode, Fact, ItemKind, Sensitivity, Transcript};
use crate::store::{ArtifactStore, EpisodicStore, FactStore, Session, StoreError, redact, redact_named};
use contextweaver_core::text::{Estimator, TermSet, Terms};

/// The characters of a statement at most, from the shortest form to the longest.
const LENGTHS: [usize; 3] = [200, 700, usize::MAX];

/// The first characters of an error, which are kept whole in any form: the condition often stands behind the complaint.
const LEAST_ERROR: usize = 300;

/// The characters of a call at most, where it stands before what came of it.
const MOST_CALL: usize = 100;

/// The bytes of an event that are read; what is behind them is reached by its artifact.
const MOST_READ: usize = 32 * 1024;

/// Words that announce a decision. They only decide which statements of the agent come first.
const DECIDED: &[&str] = &[
    "decided",
    "decision",
    "chose",
    "chosen",
    "agreed",
    "approved",
    "confirmed",
    "instead",
    "therefore",
    "will",
    "go with",
    "settled",
    "rejected",
    "recommend",
];

/// Words that announce a rule, in what users say.
const DEMANDED: &[&str] = &[
    "must",
    "mustn't",
    "never",
    "always",
    "only",
    "do not",
    "don't",
    "should not",
    "shouldn't",
    "at most",
    "at least",
    "no more than",
    "without",
    "until",
    "before",
    "not allowed",
    "forbidden",
    "under no",
];

/// Words that say of a matter that nobody has decided it yet.
const UNDECIDED: &[&str] = &["undecided", "not decided", "open question", "to be decided", "tbd", "either", "whether"];

contextweaver_core::names::named! {
    /// Who reads a hand-over.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
    pub enum Audience as "audience" {
        /// The agent that goes on with the work.
        #[default]
        Agent = "agent",
        /// A model that is asked for advice and does none of the work: it gets the question, what was tried and failed, what is
        /// not decided yet, and behind each statement what it is taken from.
        Advisor = "advisor",
    }
}

/// What a hand-over is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct HandoffRequest<'a> {
    /// What the next agent is about to do, or what the advisor is asked. Empty: what the user asked for first and last.
    pub query: &'a str,
    /// Tokens of the text at most.
    pub budget: usize,
    /// Who reads it.
    pub audience: Audience,
}

/// A part of a hand-over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// What an advisor is asked.
    Question,
    /// What users asked for.
    Goal,
    /// Policies, and rules in what users said.
    Rules,
    /// The latest state of the plan, and calls without a result; for an advisor what of it is open, and what the agent has not
    /// decided.
    Plan,
    /// What the agent decided and reported.
    Decisions,
    /// Calls that failed, with the message.
    Failed,
    /// What calls and documents gave, with the handle of the whole where there is one.
    Found,
    /// What is remembered.
    Facts,
    /// Facts that were taken from results: they come where there is room behind what people said and chose to remember.
    Taken,
}

/// How a part is written for an audience.
#[derive(Debug)]
struct Layout {
    part: Part,
    /// The heading in the text.
    heading: &'static str,
    /// The rank at which statements come first, and how many.
    least: (u32, usize),
    /// The rank from which the part grows.
    later: u32,
}

/// The parts for the next agent, in the order of the text.
const AGENT: [Layout; 8] = [
    Layout { part: Part::Goal, heading: "GOAL", least: (0, 2), later: 4 },
    Layout { part: Part::Rules, heading: "RULES", least: (1, 4), later: 4 },
    Layout { part: Part::Plan, heading: "PLAN", least: (1, 4), later: 4 },
    Layout { part: Part::Decisions, heading: "DECISIONS", least: (2, 3), later: 5 },
    Layout { part: Part::Failed, heading: "FAILED", least: (2, 2), later: 5 },
    Layout { part: Part::Found, heading: "FOUND", least: (3, 3), later: 5 },
    Layout { part: Part::Facts, heading: "FACTS", least: (3, 4), later: 5 },
    Layout { part: Part::Taken, heading: "FACTS OF RESULTS", least: (LAST, 4), later: LAST },
];

/// The parts for an advisor, in the order of the text.
const ADVISOR: [Layout; 9] = [
    Layout { part: Part::Question, heading: "QUESTION", least: (0, 1), later: 4 },
    Layout { part: Part::Goal, heading: "GOAL", least: (1, 2), later: 5 },
    Layout { part: Part::Failed, heading: "TRIED AND FAILED", least: (1, 2), later: 4 },
    Layout { part: Part::Rules, heading: "CONSTRAINTS", least: (1, 4), later: 4 },
    Layout { part: Part::Plan, heading: "OPEN", least: (2, 4), later: 4 },
    Layout { part: Part::Decisions, heading: "DECIDED", least: (3, 3), later: 5 },
    Layout { part: Part::Found, heading: "FOUND", least: (2, 3), later: 4 },
    Layout { part: Part::Facts, heading: "FACTS", least: (3, 4), later: 5 },
    Layout { part: Part::Taken, heading: "FACTS OF RESULTS", least: (LAST, 4), later: LAST },
];

/// A rank behind the first whole lists of the other parts, and before their longer forms.
const LAST: u32 = 12;

impl Audience {
    fn layouts(self) -> &'static [Layout] {
        match self {
            Self::Agent => &AGENT,
            Self::Advisor => &ADVISOR,
        }
    }
}

/// One statement of a hand-over.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Statement {
    /// The id of the event, or the key of the fact, that it is taken from; `request` for the question of the request.
    pub from: String,
    /// What stands in the text, on one line; for an advisor, and where a result gave the fact, with what it is taken from
    /// behind it.
    pub text: String,
    /// How sensitive its event is.
    pub sensitivity: Sensitivity,
    /// The whole content, where the event refers to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactRef>,
    #[serde(skip)]
    source: Source,
}

/// What a statement becomes in a session for the next agent.
#[derive(Debug, Clone, PartialEq)]
enum Source {
    Event(ItemKind),
    Failure,
    Fact(Fact),
    Episode(Episode),
}

/// The statements of one part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    /// Which part.
    pub part: Part,
    /// What the text says, in time order.
    pub statements: Vec<Statement>,
    /// The events and facts that it leaves out.
    pub left_out: Vec<String>,
}

/// A hand-over.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Handoff {
    /// The text for the next agent; empty when not even the goal fits.
    pub text: String,
    /// Tokens of the text at most.
    pub budget: usize,
    /// Tokens of the text.
    pub tokens: usize,
    /// The estimator of both.
    pub token_estimator: Estimator,
    /// The parts for which the conversation has something.
    pub sections: Vec<Section>,
    /// The number of events that are too sensitive to be handed over.
    pub withheld: usize,
}

/// The member of the metadata of an event that says what the statement is taken from.
const TAKEN_FROM: &str = "taken_from";

/// What the question of the request is taken from.
const REQUEST: &str = "request";

/// A statement before it is known how much of it fits.
struct Entry {
    from: String,
    /// What is never shortened: the call before a result, the key of a fact.
    lead: String,
    body: String,
    sensitivity: Sensitivity,
    artifact: Option<ArtifactRef>,
    source: Source,
    rank: Rank,
}

/// Where an entry stands within its part: what comes first is shown first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Rank {
    /// Whether it comes behind all for which this is not said.
    is_behind: bool,
    /// Then what is closest to what was asked.
    distance: usize,
    /// The order of those that are equally close.
    turn: usize,
}

impl Entry {
    fn of(item: &ContextItem, body: impl Into<String>) -> Self {
        Self {
            from: item.id.to_string(),
            lead: String::new(),
            body: body.into(),
            sensitivity: item.sensitivity,
            artifact: None,
            source: Source::Event(item.kind),
            rank: Rank::default(),
        }
    }

    fn written(&self, most: usize, asked: &mut Asked, audience: Audience) -> String {
        let body = match self.source {
            Source::Failure => asked.failure(&self.body, most),
            _ => asked.excerpt(&self.body, most),
        };
        let is_taken = matches!(self.source, Source::Fact(_));
        match self.origin().filter(|_| audience == Audience::Advisor || is_taken) {
            Some(origin) => format!("{}{body} ({})", self.lead, short(origin, MOST_CALL)),
            None => format!("{}{body}", self.lead),
        }
    }

    /// What it is taken from, where the text does not say so already: not the key of a remembered fact.
    fn origin(&self) -> Option<&str> {
        match &self.source {
            Source::Fact(fact) => derived_from(&fact.key),
            _ => Some(self.from.as_str()).filter(|from| *from != REQUEST),
        }
    }
}

/// What the next agent is about to do, as terms.
struct Asked {
    terms: Terms,
    query: TermSet,
}

impl Asked {
    /// The share of the query's terms that the text has, in thousandths.
    fn relevance(&mut self, text: &str) -> usize {
        let shared = self.terms.set(beginning(text)).intersection(&self.query);
        shared * 1000 / self.query.len().max(1)
    }

    /// How far a text is from the query: less, the more of its terms it has.
    fn distance(&mut self, text: &str) -> usize {
        1000 - self.relevance(text).min(1000)
    }

    /// As many sentences as fit into `most` characters: the first one, then those that the query asks for, then the
    /// others. Sentences that are left out are marked.
    fn excerpt(&mut self, text: &str, most: usize) -> String {
        let read = beginning(text);
        let whole = one_line(read);
        if read.len() == text.len() && (most == usize::MAX || whole.chars().count() <= most) {
            return whole;
        }
        let sentences = sentences(read);
        let mut order: Vec<(bool, usize, usize)> = Vec::with_capacity(sentences.len());
        for (place, sentence) in sentences.iter().enumerate() {
            order.push((place > 0, usize::MAX - self.relevance(sentence), place));
        }
        order.sort_unstable();
        let mut chosen: Vec<usize> = Vec::new();
        // The marks of gaps are counted with each sentence.
        let mut left = most.saturating_sub(2);
        for (_, _, place) in order {
            let cost = sentences[place].chars().count() + 3;
            if cost <= left {
                left -= cost;
                chosen.push(place);
            }
        }
        chosen.sort_unstable();
        // A heading says nothing without what stands below it.
        for at in (0..chosen.len()).rev() {
            let is_alone = chosen.get(at + 1) != Some(&(chosen[at] + 1));
            if is_alone && chosen[at] + 1 < sentences.len() && is_heading(&sentences[chosen[at]]) {
                chosen.remove(at);
            }
        }
        if chosen.is_empty() {
            let kept: String = whole.chars().take(most.saturating_sub(1)).collect();
            return format!("{}…", kept.trim_end());
        }
        let mut shown = String::new();
        let mut next = 0;
        for place in chosen {
            if place > next {
                shown.push_str(if shown.is_empty() { "… " } else { " … " });
            } else if !shown.is_empty() {
                shown.push(' ');
            }
            shown.push_str(&sentences[place]);
            next = place + 1;
        }
        if next < sentences.len() || read.len() < text.len() {
            shown.push_str(" …");
        }
        shown
    }

    /// The message of a failed call in about `most` characters: its beginning whole, then as [`Self::excerpt`].
    fn failure(&mut self, text: &str, most: usize) -> String {
        let whole = one_line(beginning(text));
        let Some((end, _)) = whole.char_indices().nth(LEAST_ERROR) else { return self.excerpt(text, usize::MAX) };
        if most == usize::MAX {
            return self.excerpt(text, most);
        }
        // A word is not cut, unless it is longer than messages have words.
        let end = whole[..end].rfind(' ').filter(|space| *space + MOST_CALL > end).unwrap_or(end);
        let (shown, rest) = whole.split_at(end);
        match most.saturating_sub(LEAST_ERROR) {
            0 => format!("{shown} …"),
            left => format!("{shown} {}", self.excerpt(rest, left)),
        }
    }
}

/// Makes the hand-over of a conversation and what it remembers.
#[must_use]
pub fn hand_off(transcript: &Transcript, memory: &Memory, request: &HandoffRequest, config: &ContextConfig) -> Handoff {
    let clean;
    let (transcript, memory) = match config.firewall.secrets {
        Secrets::Keep => (transcript, memory),
        Secrets::Redact => {
            clean = without_secrets(transcript, memory);
            (&clean.0, &clean.1)
        }
    };
    let hidden = hidden(transcript, config);
    let mut asked = Asked { terms: Terms::default(), query: TermSet::default() };
    asked.query = asked.terms.set(&match request.query.trim() {
        "" => wishes(transcript, &hidden),
        query => query.to_owned(),
    });
    let mut found = entries(transcript, memory, &hidden, &mut asked);
    if request.audience == Audience::Advisor {
        for_advice(transcript, &hidden, (request.query.trim(), config), &mut found);
    }
    for entries in found.values_mut() {
        let mut known = HashSet::new();
        entries.retain(|entry| says_something(&entry.body) && known.insert(one_line(&entry.written_whole())));
    }
    let layouts = request.audience.layouts().iter();
    let parts: Vec<(&Layout, Vec<Entry>)> = layouts
        .filter_map(|layout| Some((layout, found.remove(&layout.part)?)))
        .filter(|(_, entries)| !entries.is_empty())
        .collect();
    let withheld = hidden.iter().filter(|hidden| **hidden).count();
    packed(&parts, withheld, request, config.estimator, &mut asked)
}

/// Whether there is more than marks, such as those of a list or a frame: a heading would stand above nothing.
fn says_something(text: &str) -> bool {
    !one_line(text).chars().all(|c| c.is_ascii_punctuation() || c.is_whitespace())
}

/// Whether the sentence is a heading of Markdown, or announces what follows.
fn is_heading(sentence: &str) -> bool {
    let marks = sentence.trim_start_matches('#');
    marks.len() < sentence.len() && marks.starts_with(' ') || sentence.ends_with(':')
}

/// Turns what the next agent must know into what an advisor must: the question stands alone, what is done of the plan goes, and
/// what the agent asks or leaves open comes.
fn for_advice(
    transcript: &Transcript,
    hidden: &[bool],
    (query, config): (&str, &ContextConfig),
    found: &mut BTreeMap<Part, Vec<Entry>>,
) {
    let visible = || transcript.items().iter().zip(hidden).filter(|(_, hidden)| !**hidden).map(|(item, _)| item);
    let last = visible().rfind(|item| item.kind == ItemKind::UserTurn);
    let question = match (query, last) {
        ("", None) => None,
        ("", Some(item)) => {
            found.entry(Part::Goal).or_default().retain(|entry| entry.from != item.id.as_str());
            Some(Entry::of(item, &item.text))
        }
        (query, _) => {
            let said = match config.firewall.secrets {
                Secrets::Keep => query.into(),
                Secrets::Redact => redact(query).text,
            };
            Some(Entry {
                from: REQUEST.to_owned(),
                ..Entry::of(&ContextItem::new(REQUEST, ItemKind::UserTurn, ""), said)
            })
        }
    };
    found.entry(Part::Question).or_default().extend(question);
    let open = found.entry(Part::Plan).or_default();
    open.retain(|entry| !is_done(&entry.body));
    // What is asked comes before the steps of the plan, the latest first.
    open.iter_mut().for_each(|entry| entry.rank.distance += 1);
    let mut rest: BTreeMap<&str, String> = BTreeMap::new();
    for item in visible().filter(|item| item.kind == ItemKind::AgentMsg) {
        let is_open = |said: &String| said.ends_with(['?', '？']) || announces(said, UNDECIDED);
        let (asked, decided): (Vec<String>, Vec<String>) =
            sentences(beginning(&item.text)).into_iter().partition(is_open);
        for sentence in &asked {
            let rank = Rank { turn: usize::MAX - open.len(), ..Rank::default() };
            open.push(Entry { rank, ..Entry::of(item, sentence) });
        }
        if !asked.is_empty() {
            rest.insert(item.id.as_str(), decided.join(" "));
        }
    }
    for entry in found.get_mut(&Part::Decisions).into_iter().flatten() {
        if let Some(decided) = rest.remove(entry.from.as_str()) {
            entry.body = decided;
        }
    }
}

impl Entry {
    fn written_whole(&self) -> String {
        format!("{}{}", self.lead, self.body)
    }
}

/// Packs the parts into the budget.
fn packed(
    parts: &[(&Layout, Vec<Entry>)],
    withheld: usize,
    &HandoffRequest { budget, audience, .. }: &HandoffRequest,
    estimator: Estimator,
    asked: &mut Asked,
) -> Handoff {
    let mut texts: Vec<[Vec<String>; 3]> = Vec::new();
    let mut orders: Vec<Vec<usize>> = Vec::new();
    let mut pieces: Vec<Piece> = Vec::new();
    for (place, (layout, entries)) in (0..).zip(parts) {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|&at| (entries[at].rank, at));
        let forms =
            LENGTHS.map(|most| entries.iter().map(|entry| entry.written(most, asked, audience)).collect::<Vec<_>>());
        let &Layout { heading, least, later, .. } = *layout;
        let head = format!("[{heading}]\n- ");
        let mut piece = Piece::grown(place, &head, forms[0].clone(), order.clone(), "\n- ", least, later);
        for (step, longer) in (0..).zip(&forms[1..]) {
            piece = piece.or(14 + 3 * step + least.0, format!("{head}{}", longer.join("\n- ")));
        }
        pieces.push(piece);
        texts.push(forms);
        orders.push(order);
    }
    let lists = pieces.first().map_or(0, |piece| piece.wordings.len() + 1 - LENGTHS.len());
    let mut packed = pack_shown(&pieces, budget, estimator);
    let mut footer = footer(parts, &packed.shown, withheld);
    if !footer.is_empty() {
        // Room for the longest footer that there can be, which the parts that are shown then make shorter.
        let most = self::footer(parts, &vec![None; pieces.len()], withheld);
        let room = budget.saturating_sub(estimator.count(&format!("\n{most}")));
        let beside = pack_shown(&pieces, room, estimator);
        // What is said comes before what is not, where there is room for one of them.
        if beside.text.is_empty() && !packed.text.is_empty() {
            footer.clear();
        } else {
            packed = beside;
            footer = self::footer(parts, &packed.shown, withheld);
        }
    }
    let whole = if packed.text.is_empty() { footer } else { format!("{}\n{footer}", packed.text) };
    let whole = whole.trim_end().to_owned();
    let fits = estimator.count(&whole) <= budget;
    if !fits {
        packed = pack_shown(&pieces, budget, estimator);
    }
    let text = if fits { whole } else { packed.text };
    let mut sections = Vec::new();
    for (at, (layout, entries)) in parts.iter().enumerate() {
        let (mut statements, mut left_out) = (Vec::new(), Vec::new());
        let (level, shown): (usize, HashSet<usize>) = match packed.shown[at] {
            None => (0, HashSet::new()),
            Some(Shown { wording, .. }) if wording >= lists => (wording + 1 - lists, (0..entries.len()).collect()),
            Some(Shown { entries, .. }) => (0, orders[at].iter().take(entries).copied().collect()),
        };
        for (number, entry) in entries.iter().enumerate() {
            if !shown.contains(&number) {
                left_out.push(entry.from.clone());
                continue;
            }
            statements.push(Statement {
                from: entry.from.clone(),
                text: texts[at][level][number].clone(),
                sensitivity: entry.sensitivity,
                artifact: entry.artifact.clone(),
                source: entry.source.clone(),
            });
        }
        sections.push(Section { part: layout.part, statements, left_out });
    }
    Handoff { tokens: estimator.count(&text), text, budget, token_estimator: estimator, sections, withheld }
}

/// The line about parts of which nothing is shown, and about what is withheld; empty where there is neither.
fn footer(parts: &[(&Layout, Vec<Entry>)], shown: &[Option<Shown>], withheld: usize) -> String {
    let missing = parts.iter().zip(shown).filter(|(_, shown)| shown.is_none());
    let mut said: Vec<String> = missing
        .map(|((layout, entries), _)| format!("{} of {}", entries.len(), layout.heading.to_lowercase()))
        .collect();
    if withheld > 0 {
        said.push(format!("{withheld} withheld as sensitive"));
    }
    if said.is_empty() { String::new() } else { format!("[LEFT OUT] {}", said.join(", ")) }
}

/// Which events are too sensitive to be handed over, by position: those at the floor and what depends on them, whatever the
/// policy does with them in prompts.
#[must_use]
pub fn hidden(transcript: &Transcript, config: &ContextConfig) -> Vec<bool> {
    let mut hidden = vec![false; transcript.len()];
    for (position, item) in transcript.items().iter().enumerate() {
        let below = transcript.parent(position).is_some_and(|parent| hidden[parent]);
        hidden[position] = below || item.sensitivity >= config.policy.sensitivity_floor;
    }
    hidden
}

/// What users asked for first and last.
fn wishes(transcript: &Transcript, hidden: &[bool]) -> String {
    let visible =
        transcript.items().iter().zip(hidden).filter(|(item, hidden)| !**hidden && item.kind == ItemKind::UserTurn);
    let texts: Vec<&str> = visible.map(|(item, _)| beginning(&item.text)).collect();
    match texts.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first, .., last] => format!("{first} {last}"),
    }
}

/// What was asked first and what the agent said last, in about `most` characters, with the events that say so. `None` for a
/// conversation without either.
pub(crate) fn gist(transcript: &Transcript, hidden: &[bool], most: usize) -> Option<(String, Vec<String>)> {
    let of_kind = |kind: ItemKind| {
        let visible = transcript.items().iter().zip(hidden).filter(|(_, hidden)| !**hidden).map(|(item, _)| item);
        visible.filter(move |item| item.kind == kind && !item.text.trim().is_empty())
    };
    let said: Vec<&ContextItem> =
        [of_kind(ItemKind::UserTurn).next(), of_kind(ItemKind::AgentMsg).next_back()].into_iter().flatten().collect();
    let mut terms = Terms::default();
    let mut asked = Asked { query: terms.set(&wishes(transcript, hidden)), terms };
    let texts: Vec<String> = said.iter().map(|item| asked.excerpt(&item.text, most / 2 - 2)).collect();
    let events = said.iter().map(|item| item.id.to_string()).collect();
    (!texts.is_empty()).then(|| (texts.join(" → "), events))
}

/// Everything that could be said, by part, in time order.
fn entries(transcript: &Transcript, memory: &Memory, hidden: &[bool], asked: &mut Asked) -> BTreeMap<Part, Vec<Entry>> {
    let visible: Vec<(usize, &ContextItem)> =
        transcript.items().iter().enumerate().filter(|(position, _)| !hidden[*position]).collect();
    let course = Course::of(transcript, &visible);
    let mut collected = Collected { transcript, course, asked, parts: BTreeMap::new() };
    for (position, item) in visible {
        collected.event(position, item);
    }
    let event_of = |fact: &Fact| derived_from(&fact.key).and_then(|id| transcript.position(id));
    let shown = memory.facts.iter().filter(|fact| event_of(fact).is_none_or(|position| !hidden[position]));
    for (number, fact) in chosen_first(transcript, shown).1.into_iter().enumerate() {
        let sensitivity = event_of(fact).map(|position| transcript.items()[position].sensitivity);
        collected.fact(number, fact, sensitivity.unwrap_or_default());
    }
    for (number, episode) in memory.episodes.iter().enumerate() {
        collected.episode(memory.episodes.len() - number, episode);
    }
    collected.parts
}

/// What the whole conversation says of single events, each by its position.
struct Course {
    /// What the user said first and last.
    ends: [Option<usize>; 2],
    /// The latest plan.
    plan: Option<usize>,
    /// The calls that have a result.
    answered: HashSet<usize>,
    /// The last result of each tool that is no failure.
    worked: BTreeMap<String, usize>,
}

impl Course {
    fn of(transcript: &Transcript, visible: &[(usize, &ContextItem)]) -> Self {
        let of_kind = |kind: ItemKind| visible.iter().filter(move |(_, item)| item.kind == kind).map(|(at, _)| *at);
        let mut course = Self {
            ends: [of_kind(ItemKind::UserTurn).next(), of_kind(ItemKind::UserTurn).next_back()],
            plan: of_kind(ItemKind::PlanState).next_back(),
            answered: HashSet::new(),
            worked: BTreeMap::new(),
        };
        for (position, item) in visible {
            if let (ItemKind::ToolResult, Some(call)) = (item.kind, transcript.parent(*position)) {
                course.answered.insert(call);
                if !failed(item) {
                    course.worked.insert(tool_of(&transcript.items()[call]), *position);
                }
            }
        }
        course
    }
}

/// What could be said so far, by part.
struct Collected<'a> {
    transcript: &'a Transcript,
    course: Course,
    asked: &'a mut Asked,
    parts: BTreeMap<Part, Vec<Entry>>,
}

impl Collected<'_> {
    fn add(&mut self, part: Part, entry: Entry, rank: Rank) {
        self.parts.entry(part).or_default().push(Entry { rank, ..entry });
    }

    fn event(&mut self, position: usize, item: &ContextItem) {
        let text = beginning(&item.text);
        // Later before earlier, among equals.
        let turn = self.transcript.len() - position;
        let rank = Rank { is_behind: false, distance: self.asked.distance(text), turn };
        match item.kind {
            ItemKind::UserTurn => self.turn(position, item, rank),
            ItemKind::Policy => {
                self.add(Part::Rules, Entry::of(item, &item.text), Rank { turn: position, ..rank });
            }
            ItemKind::PlanState if Some(position) == self.course.plan => {
                for (turn, line) in text.lines().filter(|line| !line.trim().is_empty()).enumerate() {
                    self.add(Part::Plan, Entry::of(item, line), Rank { is_behind: is_done(line), distance: 0, turn });
                }
            }
            ItemKind::PlanState => {}
            ItemKind::AgentMsg => {
                let is_behind = !announces(text, DECIDED);
                self.add(Part::Decisions, Entry::of(item, &item.text), Rank { is_behind, ..rank });
            }
            ItemKind::ToolCall if !self.course.answered.contains(&position) => {
                let call = format!("no result yet: {}", short(&named(item, text), MOST_CALL));
                self.add(Part::Plan, Entry::of(item, call), Rank { distance: 1, ..rank });
            }
            ItemKind::ToolCall => {}
            ItemKind::ToolResult => self.result(position, item, rank),
            ItemKind::DocSnippet | ItemKind::RetrievedDoc => self.add(Part::Found, Entry::of(item, &item.text), rank),
            ItemKind::MemoryFact => {
                let taken = item.metadata.get(TAKEN_FROM).and_then(serde_json::Value::as_str).and_then(derived_from);
                let part = if taken.is_some() { Part::Taken } else { Part::Facts };
                self.add(part, Entry::of(item, &item.text), rank);
            }
        }
    }

    /// What the user said: the goal, and the rules in it.
    fn turn(&mut self, position: usize, item: &ContextItem, rank: Rank) {
        let text = beginning(&item.text);
        let goes_first = self.course.ends.contains(&Some(position));
        let of_goal = Rank { is_behind: !goes_first, ..rank };
        let is_short = text.chars().count() <= LENGTHS[0];
        let rules = demands(text);
        if is_short && (goes_first || rules.is_empty()) {
            // It is shown whole, with the rules in it.
            self.add(Part::Goal, Entry::of(item, &item.text), of_goal);
            return;
        }
        for rule in &rules {
            self.add(Part::Rules, Entry::of(item, rule), Rank { is_behind: true, ..rank });
        }
        // A short turn is not said twice: what is no rule in it is what was asked for.
        let asked = if is_short {
            let rest = sentences(text).into_iter().filter(|sentence| !rules.contains(sentence));
            rest.collect::<Vec<_>>().join(" ")
        } else {
            item.text.clone()
        };
        self.add(Part::Goal, Entry::of(item, asked), of_goal);
    }

    /// What a call returned: what was found, or what failed.
    fn result(&mut self, position: usize, item: &ContextItem, rank: Rank) {
        let call = self.transcript.parent(position).map(|call| &self.transcript.items()[call]);
        let made = call.map(|call| short(&named(call, beginning(&call.text)), MOST_CALL));
        let mut lead = made.map(|made| format!("{made}: ")).unwrap_or_default();
        if failed(item) {
            let later = call.and_then(|call| self.course.worked.get(&tool_of(call)));
            let is_behind = later.is_some_and(|later| *later > position);
            if is_behind {
                lead.push_str("(a later call of this tool worked) ");
            }
            let entry = Entry { lead, source: Source::Failure, ..Entry::of(item, &item.text) };
            self.add(Part::Failed, entry, Rank { is_behind, ..rank });
        } else {
            if let Some(artifact) = &item.artifact {
                lead.push_str(&format!("[{}, {} bytes] ", artifact.handle, artifact.size_bytes));
            }
            let entry = Entry { lead, artifact: item.artifact.clone(), ..Entry::of(item, &item.text) };
            self.add(Part::Found, entry, rank);
        }
    }

    /// A remembered fact, whose place among the facts is `turn`.
    fn fact(&mut self, turn: usize, fact: &Fact, sensitivity: Sensitivity) {
        let distance = self.asked.distance(&format!("{} {}", fact.key, beginning(&fact.value)));
        // Of the key of what was taken from a result only the result says something, and stands behind it.
        let taken = derived_from(&fact.key).is_some();
        let entry = Entry {
            from: fact.key.clone(),
            lead: if taken { String::new() } else { format!("{}: ", short(&fact.key, MOST_CALL)) },
            body: fact.value.clone(),
            sensitivity,
            artifact: None,
            source: Source::Fact(fact.clone()),
            rank: Rank { is_behind: false, distance, turn },
        };
        self.parts.entry(if taken { Part::Taken } else { Part::Facts }).or_default().push(entry);
    }

    /// An earlier session. The one with the lowest `turn` comes first.
    fn episode(&mut self, turn: usize, episode: &Episode) {
        let distance = self.asked.distance(&episode.summary);
        self.parts.entry(Part::Facts).or_default().push(Entry {
            from: episode.id.clone(),
            lead: "before: ".to_owned(),
            body: episode.summary.clone(),
            sensitivity: Sensitivity::default(),
            artifact: None,
            source: Source::Episode(episode.clone()),
            rank: Rank { is_behind: true, distance, turn },
        });
    }
}

/// Whether the call failed: the log says so, or the text of the result begins so.
fn failed(item: &ContextItem) -> bool {
    is_error(item) || begins_with_error(&item.text)
}

/// Words with which a text begins that tells what went wrong, and what makes a measure of them.
const ERRORS: [&str; 5] = ["error", "exception", "traceback", "failed", "failure"];
const MEASURES: [&str; 4] = ["rate", "ratio", "percent", "budget"];

/// Values that say that nothing went wrong.
const NOTHING: [&str; 7] = ["", "0", "null", "none", "nil", "false", "no"];

/// The characters of a name that are read.
const MOST_NAME: usize = 60;

/// Whether a text begins with what went wrong. Names of errors without one (`"errors": []`, `Failed: 0`) are passed over:
/// what stands behind them counts as the beginning.
fn begins_with_error(text: &str) -> bool {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || "{\"',;|".contains(c));
        let word =
            ERRORS.iter().find(|word| rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)));
        let Some(behind) = word.and_then(|word| rest.get(word.len()..)) else { return false };
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ');
        let end = behind.char_indices().take(MOST_NAME).find(|(_, c)| !is_name(*c)).map_or(behind.len(), |(at, _)| at);
        let (more, behind) = behind.split_at(end);
        // `exceptional` is another word; `error_code` and `ErrorResponse` are not.
        let is_other = more.strip_prefix('s').unwrap_or(more).starts_with(char::is_lowercase);
        let measured = more.trim_start_matches(['_', '-', ' ']);
        if is_other || MEASURES.iter().any(|measure| measured.eq_ignore_ascii_case(measure)) {
            return false;
        }
        match behind_nothing(behind) {
            Some(after) => rest = after,
            None => return true,
        }
    }
}

/// What stands behind the value of a name, where the value says that there is nothing; `text` begins behind the name.
fn behind_nothing(text: &str) -> Option<&str> {
    let value = text.trim_start_matches(['"', '\'']).trim_start().strip_prefix([':', '='])?.trim_start();
    for (open, close) in [('[', ']'), ('{', '}')] {
        if let Some(inside) = value.strip_prefix(open) {
            return inside.trim_start().strip_prefix(close);
        }
    }
    let says_nothing = |value: &str| NOTHING.iter().any(|nothing| value.trim().eq_ignore_ascii_case(nothing));
    for quote in ['"', '\''] {
        if let Some(inside) = value.strip_prefix(quote) {
            return inside.split_once(quote).filter(|(value, _)| says_nothing(value)).map(|(_, after)| after);
        }
    }
    let end = value.find(|c: char| c.is_whitespace() || ",;|)}]".contains(c)).unwrap_or(value.len());
    let (value, after) = value.split_at(end);
    // The value ends there: `0 of 9`, and not `0 rows were written`.
    let next = after.trim_start_matches([' ', '\t']);
    let ends = next.is_empty()
        || next.starts_with([',', ';', '|', ')', '}', ']', '\n', '\r', '/'])
        || (next.starts_with("of ") && value == "0")
        || next.split(char::is_whitespace).next().is_some_and(|word| word.contains([':', '=']));
    (ends && !value.is_empty() && says_nothing(value.trim_end_matches('.'))).then_some(after)
}

/// The name of what a call calls.
fn tool_of(call: &ContextItem) -> String {
    let first = |text: &str| text.split(['(', '{', ' ', '\n']).next().unwrap_or_default().to_owned();
    first(&named(call, &first(&call.text)))
}

/// Whether a line of a plan says that it is done.
fn is_done(line: &str) -> bool {
    let line = line.to_lowercase();
    ["[x]", "✓", "✔", "☑", "(done)", ": done", "- done"].iter().any(|mark| line.contains(mark))
}

/// The sentences in which a user states a rule, each on one line. A question states none.
pub(crate) fn demands(text: &str) -> Vec<String> {
    let states = |said: &String| !said.ends_with(['?', '？']) && announces(said, DEMANDED);
    sentences(text).into_iter().filter(states).collect()
}

/// Whether the text has one of the words, between word boundaries.
fn announces(text: &str, words: &[&str]) -> bool {
    let text = text.to_lowercase().replace('’', "'");
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    words.iter().any(|word| {
        text.match_indices(word).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + word.len()..]);
            !is_word(before.chars().next_back()) && !is_word(after.chars().next())
        })
    })
}

/// The beginning of a text that is read.
fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MOST_READ)).unwrap_or(text)
}

/// The sentences of a text, each on one line.
fn sentences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut start = 0;
        let mut marks = line.char_indices().peekable();
        while let Some((at, c)) = marks.next() {
            let ends = match c {
                '.' | '!' | '?' => marks.peek().is_none_or(|(_, next)| next.is_whitespace()),
                '。' | '！' | '？' => true,
                _ => false,
            };
            if ends {
                let end = at + c.len_utf8();
                found.push(one_line(&line[start..end]));
                start = end;
            }
        }
        found.push(one_line(&line[start..]));
    }
    found.retain(|sentence| !sentence.is_empty());
    found
}

/// The text on one line of at most `most` characters.
pub(crate) fn short(text: &str, most: usize) -> String {
    let line = one_line(text);
    match line.char_indices().nth(most) {
        None => line,
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default().trim_end()),
    }
}

fn without_secrets(transcript: &Transcript, memory: &Memory) -> (Transcript, Memory) {
    let mut clean = Transcript::default();
    for item in transcript.items() {
        let text = match item.text.split_once(": ").filter(|_| item.kind == ItemKind::MemoryFact) {
            Some((key, value)) => format!("{}: {}", redact(key).text, redact_named(key, value)),
            None => item.text.clone(),
        };
        let item = ContextItem { text: redact(&text).text.into_owned(), ..item.clone() };
        // The ids and parents are those of a transcript.
        let _ = clean.push(item);
    }
    let mut memory = memory.clone();
    for fact in &mut memory.facts {
        // What was taken from a result has its name in its value.
        let named = fact.value.split_once(": ").filter(|_| derived_from(&fact.key).is_some());
        fact.value = match named {
            Some((name, value)) => redact(&format!("{name}: {}", redact_named(name, value))).text.into_owned(),
            None => redact_named(&fact.key, &fact.value).into_owned(),
        };
    }
    memory.episodes.iter_mut().for_each(|episode| episode.summary = redact(&episode.summary).text.into_owned());
    (clean, memory)
}

impl Handoff {
    /// The hand-over as a session that the next agent goes on from: its statements as events and facts, and the contents
    /// that they refer to, from `artifacts`. A content that is not there any more is left out. `source` says where the
    /// conversation came from.
    ///
    /// # Errors
    /// [`StoreError`] when `artifacts` failed.
    pub fn session(&self, source: &str, artifacts: &dyn ArtifactStore) -> Result<Session, StoreError> {
        let mut session = Session { source: format!("hand-over of {source}"), ..Session::default() };
        let statements = self.sections.iter().flat_map(|section| &section.statements);
        let mut events: Vec<ContextItem> = Vec::new();
        for (number, statement) in (1..).zip(statements) {
            let kind = match &statement.source {
                // Remembered, it would open the prompt: what a result gave comes after what people said.
                Source::Fact(fact) if derived_from(&fact.key).is_some() => ItemKind::MemoryFact,
                Source::Fact(fact) => {
                    session.facts.put(fact.clone())?;
                    continue;
                }
                Source::Episode(episode) => {
                    session.episodes.put(episode.clone())?;
                    continue;
                }
                Source::Event(ItemKind::ToolCall) => ItemKind::PlanState,
                Source::Event(kind) => *kind,
                Source::Failure => ItemKind::ToolResult,
            };
            // The lines of a plan are one state of it: of several, the next hand-over would read the last alone.
            if let Some(plan) = events.last_mut().filter(|last| kind == ItemKind::PlanState && last.kind == kind) {
                plan.text = format!("{}\n{}", plan.text, statement.text);
                plan.sensitivity = plan.sensitivity.max(statement.sensitivity);
                continue;
            }
            let mut item = ContextItem::new(format!("handoff:{number}"), kind, statement.text.clone())
                .with_sensitivity(statement.sensitivity);
            item.metadata.insert(TAKEN_FROM.to_owned(), statement.from.clone().into());
            if statement.source == Source::Failure {
                item.metadata.insert("is_error".to_owned(), true.into());
            }
            if let Some(artifact) = &statement.artifact {
                match artifacts.get(&artifact.handle) {
                    Ok(bytes) => {
                        let kept =
                            session.artifacts.put(&artifact.handle, &bytes, &artifact.media_type, &artifact.label)?;
                        item.artifact = Some(kept);
                    }
                    Err(StoreError::NoArtifact(_) | StoreError::Evicted { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            events.push(item);
        }
        events.into_iter().try_for_each(|item| session.transcript.push(item)).map_err(StoreError::Event)?;
        Ok(session)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::SensitivityAction;
    use crate::event::{Handle, Phase, ToolOutput};
    use crate::manager::ContextManager;
    use crate::store::Stores;
    use crate::summary::StructureSummarizer;

    fn conversation() -> ContextManager {
        let manager = ContextManager::default();
        let add = |id: &str, kind: ItemKind, text: &str, parent: Option<&str>| {
            let item = ContextItem::new(id, kind, text);
            manager.ingest(parent.map_or(item.clone(), |parent| item.under(parent))).unwrap();
        };
        add("p1", ItemKind::Policy, "Never restart the primary database.", None);
        add("u1", ItemKind::UserTurn, "The checkout is slow since Monday. Find out why and propose a fix.", None);
        add("plan0", ItemKind::PlanState, "1. look at logs", None);
        add("c1", ItemKind::ToolCall, "query_metrics(service='checkout')", Some("u1"));
        manager
            .ingest_tool_result("c1", &ToolOutput { is_error: true, ..ToolOutput::text("timeout after 30 s") })
            .unwrap();
        add("c2", ItemKind::ToolCall, "read_log(service='checkout')", Some("u1"));
        let log: String = (0..900).map(|n| format!("2026-11-23T10:00:{:02} INFO order {n} done\n", n % 60)).collect();
        manager
            .ingest_tool_result("c2", &ToolOutput::text(log + "2026-11-23T11:00:00 ERROR pool exhausted: 20 of 20\n"))
            .unwrap();
        add("a1", ItemKind::AgentMsg, "The pool is too small. I decided to raise it to 40 connections.", Some("u1"));
        let secret =
            ContextItem::new("s1", ItemKind::AgentMsg, "the salary of Ada").with_sensitivity(Sensitivity::Restricted);
        manager.ingest(secret).unwrap();
        add("s2", ItemKind::AgentMsg, "Ada earns much", Some("s1"));
        add("plan1", ItemKind::PlanState, "[x] look at logs\n[ ] raise the pool\n[ ] watch for an hour", None);
        add("c3", ItemKind::ToolCall, "set_pool(size=40)", Some("u1"));
        add("u2", ItemKind::UserTurn, "Do it after 18:00 only.", None);
        manager.add_fact("region", "eu-west-1").unwrap();
        manager
    }

    fn handed(manager: &ContextManager, query: &str, budget: usize) -> Handoff {
        manager.hand_off(&HandoffRequest { query, budget, audience: Audience::Agent }).unwrap()
    }

    #[test]
    fn a_pack_says_what_the_next_agent_must_know() {
        let pack = handed(&conversation(), "", 400);
        insta::assert_snapshot!(pack.text, @r"
        [GOAL]
        - The checkout is slow since Monday. Find out why and propose a fix.
        - Do it after 18:00 only.
        [RULES]
        - Never restart the primary database.
        [PLAN]
        - [x] look at logs
        - [ ] raise the pool
        - [ ] watch for an hour
        - no result yet: set_pool(size=40)
        [DECISIONS]
        - The pool is too small. I decided to raise it to 40 connections.
        [FAILED]
        - query_metrics(service='checkout'): timeout after 30 s
        [FOUND]
        - read_log(service='checkout'): [artifact:result:c2, 35941 bytes] log: 901 lines, 2 kinds of message first line: 2026-11-23T10:00:00 INFO order 0 done 1 error, first (line 900): 2026-11-23T11:00:00 ERROR pool exhausted: 20 of 20 levels: ERROR 1, INFO 900 …
        [FACTS]
        - region: eu-west-1
        [LEFT OUT] 2 withheld as sensitive
        ");
        assert_eq!(pack.withheld, 2);
        assert!(pack.tokens <= 400 && !pack.text.contains("Ada"), "{}", pack.text);
    }

    #[test]
    fn what_depends_on_a_sensitive_event_is_withheld_whatever_prompts_do_with_it() {
        for action in [SensitivityAction::Drop, SensitivityAction::Redact] {
            let mut config = ContextConfig::default();
            config.policy.sensitivity_action = action;
            let manager = ContextManager::new(Stores::default(), Box::new(StructureSummarizer), config);
            let salaries = ContextItem::new("c1", ItemKind::ToolCall, "read_salaries(team='core')")
                .with_sensitivity(Sensitivity::Restricted);
            manager.ingest(ContextItem::new("u1", ItemKind::UserTurn, "Who earns what?")).unwrap();
            manager.ingest(salaries.under("u1")).unwrap();
            manager.ingest_tool_result("c1", &ToolOutput::text(r#"{"ada": 9000, "bob": 8000}"#)).unwrap();
            let said = ContextItem::new("a1", ItemKind::AgentMsg, "I decided to pay Ada 9000.");
            manager.ingest(said.under("result:c1")).unwrap();
            manager.add_fact("result:c1:fact:0", "ada: 9000").unwrap();
            let pack = handed(&manager, "", 400);
            assert_eq!(pack.text, "[GOAL]\n- Who earns what?\n[LEFT OUT] 3 withheld as sensitive", "{action:?}");
        }
    }

    #[test]
    fn a_small_pack_has_the_goal_and_says_what_it_leaves_out() {
        let pack = handed(&conversation(), "", 90);
        insta::assert_snapshot!(pack.text, @r"
        [GOAL]
        - The checkout is slow since Monday. Find out why and propose a fix.
        - Do it after 18:00 only.
        [RULES]
        - Never restart the primary database.
        [LEFT OUT] 4 of plan, 1 of decisions, 1 of failed, 1 of found, 1 of facts, 2 withheld as sensitive
        ");
        let left: usize = pack.sections.iter().map(|section| section.left_out.len()).sum();
        assert!(left > 0 && pack.tokens <= 90);
        assert_eq!(handed(&conversation(), "", 1).text, "");
    }

    #[test]
    fn the_next_agent_goes_on_from_the_session_of_a_pack() {
        let manager = conversation();
        let pack = handed(&manager, "pool", 400);
        let session = pack.session("a test", manager.stores().artifacts.as_ref()).unwrap();
        let mut bytes = Vec::new();
        session.write(&mut bytes).unwrap();
        let session = Session::parse(&bytes, std::path::Path::new("pack")).unwrap();
        let next = ContextManager::in_stores(Stores::default());
        session.copy_to(next.stores()).unwrap();
        let prompt = next.build(Phase::Answer, "pool").unwrap().prompt;
        for said in ["Do it after 18:00 only.", "Never restart", "raise it to 40", "eu-west-1", "[artifact:result:c2]"]
        {
            assert!(prompt.contains(said), "{said}: {prompt}");
        }
        let whole = next.stores().artifacts.get(&Handle::new("artifact:result:c2")).unwrap();
        assert!(whole.len() > 20_000);
        // The pack of a pack says the same.
        let again = handed(&next, "pool", 400);
        assert!(again.text.contains("raise it to 40") && again.text.contains("18:00"), "{}", again.text);
    }

    /// What the answer of a scenario rests on is in the session for the next agent: in a statement, or in a content that a
    /// statement names. One value is not: it stands in a longer message of a log of 157 events.
    #[test]
    fn what_a_scenario_rests_on_survives_a_hand_over() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/context");
        let (mut lost, mut asked) = (Vec::new(), 0);
        for name in ["handover", "outage", "refund", "review", "travel"] {
            let about = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
            let about: toml::Table = about.parse().unwrap();
            let log = std::fs::read(folder.join(format!("{name}.jsonl"))).unwrap();
            let config = ContextConfig::default();
            let session = crate::ingest(log, name, name, &config).unwrap().session;
            let memory = Memory { facts: session.facts.all().unwrap(), episodes: session.episodes.all().unwrap() };
            let pack = |budget| {
                let request =
                    HandoffRequest { query: about["query"].as_str().unwrap(), budget, ..HandoffRequest::default() };
                hand_off(&session.transcript, &memory, &request, &config)
            };
            assert!(pack(300).tokens <= 300 && pack(3000).tokens <= 3000);
            let next = pack(3000).session(name, &session.artifacts).unwrap();
            let contents: Vec<String> = next
                .artifacts
                .list()
                .unwrap()
                .iter()
                .map(|one| String::from_utf8_lossy(&next.artifacts.get(&one.handle).unwrap()).into_owned())
                .collect();
            for fact in about["fact"].as_array().unwrap() {
                let value = fact["value"].as_str().unwrap();
                let said = next.transcript.items().iter().any(|item| item.text.contains(value));
                asked += 1;
                if !said && !contents.iter().any(|content| content.contains(value)) {
                    lost.push(format!("{name}: {value}"));
                }
            }
        }
        assert_eq!((asked, lost), (26, vec!["outage: ACCESS EXCLUSIVE".to_owned()]));
    }

    #[test]
    fn an_advisor_gets_the_question_what_failed_and_where_it_is_from() {
        let manager = conversation();
        let asks = "The pool is full at 18:00. Should I raise it before or after? It is undecided whether to restart.";
        manager.ingest(ContextItem::new("a2", ItemKind::AgentMsg, asks).under("u1")).unwrap();
        let ask = |query: &str, budget| {
            manager.hand_off(&HandoffRequest { query, budget, audience: Audience::Advisor }).unwrap()
        };
        let pack = ask("How large must the pool be?", 600);
        insta::assert_snapshot!(pack.text, @r"
        [QUESTION]
        - How large must the pool be?
        [GOAL]
        - The checkout is slow since Monday. Find out why and propose a fix. (u1)
        - Do it after 18:00 only. (u2)
        [TRIED AND FAILED]
        - query_metrics(service='checkout'): timeout after 30 s (result:c1)
        [CONSTRAINTS]
        - Never restart the primary database. (p1)
        [OPEN]
        - [ ] raise the pool (plan1)
        - [ ] watch for an hour (plan1)
        - no result yet: set_pool(size=40) (c3)
        - Should I raise it before or after? (a2)
        - It is undecided whether to restart. (a2)
        [DECIDED]
        - The pool is too small. I decided to raise it to 40 connections. (a1)
        - The pool is full at 18:00. (a2)
        [FOUND]
        - read_log(service='checkout'): [artifact:result:c2, 35941 bytes] log: 901 lines, 2 kinds of message first line: 2026-11-23T10:00:00 INFO order 0 done 1 error, first (line 900): 2026-11-23T11:00:00 ERROR pool exhausted: 20 of 20 levels: ERROR 1, INFO 900 time range: 2026-11-23T10:00:00 to 2026-11-23T11:00:00 messages by frequency, numbers vary: ×900: 2026-11-23T10:00:00 INFO order 0 done some lines: 104: 2026-11-23T10:00:44 INFO order 104 done 218: 2026-11-23T10:00:38 INFO order 218 done 332: 2026-11-23T10:00:32 INFO order 332 done 446: 2026-11-23T10:00:26 INFO order 446 done 541: 2026-11-23T10:00:01 INFO order 541 done 655: 2026-11-23T10:00:55 INFO order 655 done … +41 last line: 2026-11-23T11:00:00 ERROR pool exhausted: 20 of 20 (result:c2)
        [FACTS]
        - region: eu-west-1
        [LEFT OUT] 2 withheld as sensitive
        ");
        assert!(ask("", 600).text.starts_with("[QUESTION]\n- Do it after 18:00 only. (u2)\n[GOAL]\n- The checkout"));
        insta::assert_snapshot!(ask("How large must the pool be?", 60).text, @r"
        [QUESTION]
        - How large must the pool be?
        [GOAL]
        - The checkout is slow since Monday. Find out why and propose a fix. (u1)
        - Do it after 18:00 only. (u2)
        ");
        let session = pack.session("a test", manager.stores().artifacts.as_ref()).unwrap();
        assert_eq!(session.transcript.items()[0].text, "How large must the pool be?");
        let mut config = ContextConfig::default();
        config.firewall.secrets = Secrets::Redact;
        let request = HandoffRequest { query: "AKIAIOSFODNN7EXAMPLE?", budget: 90, audience: Audience::Advisor };
        let pack = hand_off(&Transcript::default(), &Memory::default(), &request, &config);
        assert!(pack.text.starts_with("[QUESTION]\n- ") && !pack.text.contains("AKIA"), "{}", pack.text);
    }

    #[test]
    fn an_error_is_kept_with_its_condition_and_no_heading_stands_alone() {
        let manager = ContextManager::default();
        let add = |id: &str, kind: ItemKind, text: &str, parent: Option<&str>| {
            let item = ContextItem::new(id, kind, text);
            manager.ingest(parent.map_or(item.clone(), |parent| item.under(parent))).unwrap();
        };
        let told =
            format!("## Deployment\n{}\nRoll back?", "The release of the payment service is prepared. ".repeat(9));
        add("u1", ItemKind::UserTurn, &told, None);
        add("p1", ItemKind::Policy, "\u{1b}", None);
        add("plan", ItemKind::PlanState, "---\n***", None);
        add("c1", ItemKind::ToolCall, "deploy(service='payment')", Some("u1"));
        let error = "Error: the deployment was refused. Another deployment of the same service is in its observation window, \
                     which lasts for thirty minutes after the last instance was replaced. It was started by the nightly job. \
                     Try again when the canary is green, which is a condition of the policy release-7";
        let more = format!("{error}, or {}", "ask the owner. ".repeat(40));
        manager.ingest_tool_result("c1", &ToolOutput { is_error: true, ..ToolOutput::text(more) }).unwrap();
        for budget in [200, 300, 2000] {
            let pack = handed(&manager, "Roll back?", budget);
            for section in &pack.sections {
                assert!(!matches!(section.part, Part::Rules | Part::Plan), "{section:?}");
            }
            assert!(!pack.text.contains("## Deployment …") && pack.text.contains("Roll back?"), "{}", pack.text);
            assert!(pack.text.contains("canary is green"), "{budget}: {}", pack.text);
        }
    }

    #[test]
    fn what_results_gave_comes_after_what_people_said() {
        let manager = conversation();
        manager.add_fact("c9:fact:0", "pool: 20 of 20").unwrap();
        let pack = handed(&manager, "pool", 600);
        assert!(
            pack.text.ends_with(
                "- region: eu-west-1\n[FACTS OF RESULTS]\n- pool: 20 of 20 (c9)\n[LEFT OUT] 2 withheld as sensitive"
            ),
            "{}",
            pack.text
        );
        let session = pack.session("a test", manager.stores().artifacts.as_ref()).unwrap();
        let next = ContextManager::in_stores(Stores::default());
        session.copy_to(next.stores()).unwrap();
        let prompt = next.build(Phase::Answer, "pool").unwrap().prompt;
        let at = |text: &str| prompt.find(text).unwrap_or_else(|| panic!("{text}: {prompt}"));
        assert!(
            at("region: eu-west-1") < at("The checkout is slow") && at("Do it after") < at("pool: 20 of 20"),
            "{prompt}"
        );
        // In the pack of a pack it is still what a result gave.
        let again = handed(&next, "pool", 600);
        assert!(
            again.text.ends_with("- region: eu-west-1\n[FACTS OF RESULTS]\n- pool: 20 of 20 (c9)"),
            "{}",
            again.text
        );
        assert!(
            again.text.contains("- [ ] raise the pool\n- [ ] watch for an hour\n- no result yet"),
            "{}",
            again.text
        );
    }

    #[test]
    fn a_call_names_its_tool() {
        let mut named = ContextItem::new("c", ItemKind::ToolCall, "{\"n\": 1}");
        named.metadata.insert("function_name".to_owned(), "deploy_status".into());
        assert_eq!(tool_of(&named), "deploy_status");
        for (text, tool) in [("df -h", "df"), ("read_log(service='a b')", "read_log"), ("", "")] {
            assert_eq!(tool_of(&ContextItem::new("c", ItemKind::ToolCall, text)), tool);
        }
    }

    #[test]
    fn of_a_field_that_a_call_gives_again_and_again_the_newest_value_is_handed_over() {
        let manager = ContextManager::default();
        manager.ingest(ContextItem::new("u1", ItemKind::UserTurn, "Wait for the deployment.")).unwrap();
        for (call, status) in [("z", "running"), ("y", "failed"), ("x", "succeeded")] {
            let made = ContextItem::new(call, ItemKind::ToolCall, "deploy_status(app='shop')");
            manager.ingest(made.under("u1")).unwrap();
            manager.ingest_tool_result(call, &ToolOutput::text(format!("{{\"status\": \"{status}\"}}"))).unwrap();
        }
        let pack = handed(&manager, "", 400);
        assert!(pack.text.ends_with("[FACTS OF RESULTS]\n- status: succeeded (result:x)"), "{}", pack.text);
    }

    #[test]
    fn secrets_are_masked_where_the_configuration_says_so() {
        let manager = conversation();
        manager.add_fact("key", "AKIAIOSFODNN7EXAMPLE").unwrap();
        assert!(handed(&manager, "key", 400).text.contains("AKIAIOSFODNN7EXAMPLE"));
        let mut config = ContextConfig::default();
        config.firewall.secrets = Secrets::Redact;
        let (transcript, memory) = (
            manager.stores().events.transcript().unwrap(),
            Memory { facts: manager.stores().facts.all().unwrap(), episodes: Vec::new() },
        );
        let pack = hand_off(
            &transcript,
            &memory,
            &HandoffRequest { query: "key", budget: 400, ..HandoffRequest::default() },
            &config,
        );
        assert!(!pack.text.contains("AKIAIOSFODNN7EXAMPLE") && pack.text.contains("region"), "{}", pack.text);
    }

    #[test]
    fn what_stands_under_a_telling_key_is_masked() {
        let facts = [("db_password", "hunter2-Zq9x"), ("stripe api key", "q7Lm2Xv9Rt4Kp8Wd3Nh6Yb1"), ("region", "eu")];
        let memory = Memory {
            facts: facts.map(|(key, value)| Fact { key: key.to_owned(), value: value.to_owned() }).to_vec(),
            episodes: Vec::new(),
        };
        let told = ContextItem::new("m1", ItemKind::MemoryFact, "proxy api key: q7Lm2Xv9Rt4Kp8Wd3Nh6Yb1");
        let transcript = Transcript::new(vec![told]).unwrap();
        let mut config = ContextConfig::default();
        config.firewall.secrets = Secrets::Redact;
        let request = HandoffRequest { query: "", budget: 400, ..HandoffRequest::default() };
        let pack = hand_off(&transcript, &memory, &request, &config);
        insta::assert_snapshot!(pack.text, @r"
        [FACTS]
        - proxy api key: [REDACTED: secret]
        - db_password: [REDACTED: password]
        - stripe api key: [REDACTED: secret]
        - region: eu
        ");
        let session = pack.session("a test", &crate::store::MemoryArtifacts::default()).unwrap();
        let mut bytes = Vec::new();
        session.write(&mut bytes).unwrap();
        assert!(!String::from_utf8(bytes).unwrap().contains("hunter2"));
    }

    #[test]
    fn a_short_turn_that_states_a_rule_is_a_rule() {
        for rule in [
            "Never touch the production database.",
            "You must ask before each deployment.",
            "Don’t write to the archive.",
            "You mustn't write to the archive.",
            "Only use the replica.",
        ] {
            let manager = ContextManager::default();
            let add = |id: String, text: &str| {
                manager.ingest(ContextItem::new(id, ItemKind::UserTurn, text)).unwrap();
            };
            add("u0".to_owned(), "The report on orders is wrong. Find out why.");
            add("u1".to_owned(), &format!("Thanks. {rule} Why do you always ask?"));
            for number in 2..10 {
                add(format!("u{number}"), &format!("Fine, go on with part {number} of the report."));
            }
            for budget in [120, 200, 300] {
                let pack = handed(&manager, "", budget);
                assert!(pack.text.contains(&format!("[RULES]\n- {rule}")), "{budget}: {}", pack.text);
                assert_eq!(pack.text.matches(rule).count(), 1, "{}", pack.text);
            }
            let pack = handed(&manager, "", 3000);
            assert!(pack.text.contains("- Thanks. Why do you always ask?\n"), "{}", pack.text);
        }
    }

    #[test]
    fn only_what_went_wrong_is_a_failure() {
        for (text, expected) in [
            (r#"{"errors": [], "data": {"id": 7}}"#, false),
            (r#"{"errors":[{"message":"no such id"}],"data":null}"#, true),
            (r#"{"error": null, "rows": []}"#, false),
            (r#"{"error": "", "rows": []}"#, false),
            (r#"{"error": false}"#, false),
            (r#"{"error": "none of the replicas answered"}"#, true),
            (r#"{"error_code": 5, "text": "refused"}"#, true),
            (r#"{"error_rate": 0.02, "calls": 900}"#, false),
            (r#"{"errors": {}, "error": "refused"}"#, true),
            ("{'errors': [ ], 'failed': 3}", true),
            ("{'error': None, 'rows': 3}", false),
            ("Failed: 0, passed: 212, skipped: 3", false),
            ("Failed: 3, passed: 209", true),
            ("failed=0 errors=0 ok=3", false),
            ("failed=0 errors=2 ok=3", true),
            ("Errors: none", false),
            ("Errors: 0\nFailures: 1", true),
            ("Failed: 0 of 212", false),
            ("Error: 0 rows were written", true),
            ("Error: none of the replicas answered", true),
            ("Error count: 0", false),
            ("error: the table is locked", true),
            ("Failed to open the connection", true),
            ("Traceback (most recent call last):", true),
            ("errorless", false),
            ("ErrorResponse: refused", true),
            ("12 rows", false),
        ] {
            assert_eq!(failed(&ContextItem::new("r1", ItemKind::ToolResult, text)), expected, "{text}");
        }
        let mut marked = ContextItem::new("r1", ItemKind::ToolResult, "Failed: 0");
        marked.metadata.insert("is_error".to_owned(), true.into());
        assert!(failed(&marked));
    }

    #[test]
    fn excerpts_keep_what_is_asked_for() {
        let mut terms = Terms::default();
        let mut asked = Asked { query: terms.set("price of the blue boat"), terms };
        let text = format!("It begins here. {}The blue boat costs 90. It ends.", "Other words stand here. ".repeat(30));
        assert_eq!(asked.excerpt(&text, 60), "It begins here. … The blue boat costs 90. It ends.");
        assert_eq!(asked.excerpt("one\n two", 60), "one two");
        assert_eq!(asked.excerpt(&"x".repeat(90), 10), format!("{}…", "x".repeat(9)));
    }

    fn items() -> impl Strategy<Value = Vec<(usize, String, Option<usize>, usize, bool)>> {
        let text = prop_oneof![
            "[a-z .,\\[\\]\n-]{0,80}",
            "(?s).{0,40}",
            "(must not|decided|error:) [a-z ]{0,300}\\. [a-z ]{0,300}"
        ];
        prop::collection::vec(
            (0..ItemKind::ALL.len(), text, prop::option::of(0usize..12), 0usize..4, any::<bool>()),
            0..24,
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn no_pack_is_over_its_budget(
            events in items(),
            facts in prop::collection::vec(("[a-z:0-9]{1,12}", "(?s).{0,60}"), 0..6),
            query in "[a-z ]{0,20}",
            budget in 0usize..300,
            advisor in any::<bool>(),
        ) {
            let audience = if advisor { Audience::Advisor } else { Audience::Agent };
            let mut transcript = Transcript::default();
            for (number, (kind, text, parent, level, error)) in events.into_iter().enumerate() {
                // Only what is withheld has the mark.
                let mut item = ContextItem::new(format!("e{number}"), ItemKind::ALL[kind], text.replace('@', ""));
                item.sensitivity = Sensitivity::ALL[level];
                if item.sensitivity >= Sensitivity::Confidential {
                    item.text = format!("@@{}", item.text);
                }
                if let Some(parent) = parent.filter(|parent| *parent < number) {
                    item = item.under(format!("e{parent}"));
                }
                if error {
                    item.metadata.insert("is_error".to_owned(), true.into());
                }
                transcript.push(item).unwrap();
            }
            let facts = facts.into_iter().map(|(key, value)| Fact { key, value: value.replace('@', "") }).collect();
            let memory = Memory { facts, episodes: vec![Episode { id: "e".to_owned(), summary: "before".to_owned() }] };
            for estimator in Estimator::ALL {
                let config = ContextConfig { estimator, ..ContextConfig::default() };
                let request = HandoffRequest { query: &query, budget, audience };
                let pack = hand_off(&transcript, &memory, &request, &config);
                prop_assert!(estimator.count(&pack.text) <= budget && pack.tokens == estimator.count(&pack.text));
                prop_assert!(!pack.text.contains("@@"), "{}", pack.text);
                for statement in pack.sections.iter().flat_map(|section| &section.statements) {
                    prop_assert!(pack.text.contains(&statement.text), "{}: {}", statement.text, pack.text);
                }
                prop_assert_eq!(&pack, &hand_off(&transcript, &memory, &request, &config));
                pack.session("a test", &crate::store::MemoryArtifacts::default()).unwrap();
            }
        }
    }
}

//! Lessons, skills and memories as cards: JSON objects that other programs exchange. Each card is a memory.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::knowledge::{Entries, Knowledge, LeftOut, MOST_LABEL, cut, masked_members, text, until, withheld, words};
use crate::adapters::of_card;
use crate::literal::{self, Dialect, Document};

/// The members that name a card of `weaver-spec`: a lesson, a skill, a memory.
const IDS: [&str; 3] = ["lesson_id", "skill_id", "memory_id"];

/// What a card says, in the order in which a prompt does.
const TEXTS: [&str; 5] = ["body", "content", "proposed_lesson", "summary", "description"];
const LISTS: [(&str, &str); 7] = [
    ("instructions", "Do"),
    ("steps", "Steps"),
    ("applies_when", "When"),
    ("applicability", "When"),
    ("preconditions", "First"),
    ("does_not_apply_when", "Not when"),
    ("anti_patterns", "Do not"),
];

/// Reads cards: one object, a list, a pack of skills (all of which are a JSON document), or one object a line. `None` for
/// what is something else.
///
/// # Errors
/// The place of what is no card among cards or has a member of one, the name of a member that an object has twice, or that
/// none of them is for prompts.
pub(super) fn read(document: Option<Value>, bytes: &[u8]) -> Option<Result<Knowledge, String>> {
    let are_cards = |values: &[Value]| values.iter().any(|value| is_card(value) || of_card(value).is_some());
    let listed = match document {
        Some(Value::Array(values)) => values,
        Some(Value::Object(members)) => {
            let skills = members.get("skills").and_then(Value::as_array);
            let skills: Vec<Value> = skills.into_iter().flatten().map(|entry| unpacked(&members, entry)).collect();
            if are_cards(&skills) { skills } else { vec![Value::Object(members)] }
        }
        Some(_) => return None,
        None => lines(bytes)?,
    };
    are_cards(&listed).then(|| match repeated(bytes) {
        Some(name) => Err(format!("a member `{name}` is there twice in one object; remove one of them")),
        None => of_cards(&listed),
    })
}

fn of_cards(listed: &[Value]) -> Result<Knowledge, String> {
    let (mut entries, mut masked, mut left_out) = (Entries::default(), Entries::default(), LeftOut::default());
    for (number, value) in listed.iter().enumerate() {
        let Some(card) = value.as_object().filter(|_| is_card(value)) else {
            return Err(no_card(listed, number));
        };
        let id_of = |card| IDS.iter().chain(&["id"]).find_map(|key| text(card, key)).unwrap_or_default();
        if let Some(reason) = withheld(card) {
            left_out.add(reason, id_of(card));
            continue;
        }
        for (entries, card) in [(&mut entries, card), (&mut masked, &masked_members(card))] {
            let label = text(card, "title").or_else(|| text(card, "name")).unwrap_or_default();
            let label = format!("{}{}", cut(label, MOST_LABEL), until(card));
            let words = words(card, &["tags", "applicability", "applies_when", "memory_type"]);
            entries.add(id_of(card), label.trim_start(), &said(card), &words)?;
        }
    }
    entries.finish(masked, left_out.notes())
}

/// What is missing where something is no card.
fn no_card(listed: &[Value], number: usize) -> String {
    let value = &listed[number];
    match (of_card(value), listed.iter().position(is_card)) {
        (Some(member), _) if IDS.iter().any(|key| value.get(key).is_some()) => {
            let texts = TEXTS.map(|key| format!("`{key}`")).join(", ");
            format!("[{number}] has `{member}` and says nothing; give it a text in {texts}, or a list such as `steps`")
        }
        (Some(member), _) => {
            let ids = IDS.map(|key| format!("`{key}`")).join(", ");
            format!("[{number}] has `{member}` and is no card; give it one of {ids}, or rename the member of a fact")
        }
        (None, Some(card)) => {
            format!("[{number}] is no lesson, skill or memory, but [{card}] is; move it to another file")
        }
        (None, None) => format!("[{number}] is no lesson, skill or memory; move it to another file"),
    }
}

/// The objects of JSON lines.
fn lines(bytes: &[u8]) -> Option<Vec<Value>> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    lines.map(|line| serde_json::from_slice(line).ok()).collect()
}

/// A skill of a pack, which stands beside its digest. What keeps the pack or the entry out of prompts keeps the skill out.
fn unpacked(pack: &Map<String, Value>, entry: &Value) -> Value {
    let mut skill = entry.get("skill").unwrap_or(entry).clone();
    if let Some(members) = skill.as_object_mut() {
        let around = pack.iter().chain(entry.as_object().into_iter().flatten());
        let around = around.filter(|(name, _)| !["skills", "skill"].contains(&name.as_str()));
        let kept_back = around.filter(|member| withheld([*member]).is_some());
        members.extend(kept_back.map(|(name, value)| (name.clone(), value.clone())));
    }
    skill
}

/// The name of a member that an object in JSON, or in one of its lines, has twice: one of the two values would be lost, and
/// it may be the one that keeps a card out of prompts.
fn repeated(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let document = Document::sequence(text, Dialect::Json).ok()?;
    let twice = |object: literal::Value<'_>| {
        let mut names = BTreeSet::new();
        object.members().map(|(name, _)| name.plain().into_owned()).find(|name| !names.insert(name.clone()))
    };
    document.root().descendants().find_map(|visit| twice(visit.value))
}

fn is_card(value: &Value) -> bool {
    let Some(card) = value.as_object() else { return false };
    let of_lessonweaver =
        card.get("instructions").is_some_and(Value::is_array) || text(card, "proposed_lesson").is_some();
    let says = !said(card).is_empty();
    IDS.iter().any(|key| text(card, key).is_some()) && says || text(card, "id").is_some() && of_lessonweaver
}

/// What a card says, in one text.
fn said(card: &Map<String, Value>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for told in TEXTS.iter().filter_map(|key| text(card, key)) {
        if !parts.iter().any(|part| part == told) {
            parts.push(told.to_owned());
        }
    }
    for (key, name) in LISTS {
        let listed = card.get(key).and_then(Value::as_array).into_iter().flatten();
        let listed: Vec<&str> = listed.filter_map(Value::as_str).map(str::trim).filter(|one| !one.is_empty()).collect();
        if !listed.is_empty() {
            parts.push(format!("{name}: {}", listed.join("; ")));
        }
    }
    parts.join("\n")
}

//! Lessons, skills and memories as cards: JSON objects that other programs exchange. Each card is a memory.

use serde_json::{Map, Value};

use super::knowledge::{Entries, Knowledge, LeftOut, MOST_LABEL, cut, masked_members, text, until, withheld, words};

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
/// The place of what is no card among cards, or that none of them is for prompts.
pub(super) fn read(document: Option<Value>, bytes: &[u8]) -> Option<Result<Knowledge, String>> {
    let listed = match document {
        Some(Value::Array(values)) => values,
        Some(Value::Object(mut members)) => match members.get_mut("skills").map(Value::take) {
            Some(Value::Array(skills)) => skills.into_iter().map(unpacked).collect(),
            _ => vec![Value::Object(members)],
        },
        Some(_) => return None,
        None => lines(bytes)?,
    };
    listed.first().is_some_and(is_card).then(|| of_cards(&listed))
}

fn of_cards(listed: &[Value]) -> Result<Knowledge, String> {
    let (mut entries, mut masked, mut left_out) = (Entries::default(), Entries::default(), LeftOut::default());
    for (number, value) in listed.iter().enumerate() {
        let Some(card) = value.as_object().filter(|_| is_card(value)) else {
            return Err(format!("[{number}] is no lesson, skill or memory, but [0] is; move it to another file"));
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

/// The objects of JSON lines, if the first one is a card.
fn lines(bytes: &[u8]) -> Option<Vec<Value>> {
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let read = |line: &[u8]| serde_json::from_slice::<Value>(line).ok();
    let first = lines.next().and_then(read).filter(is_card)?;
    std::iter::once(Some(first)).chain(lines.map(read)).collect()
}

/// A skill of a pack stands beside its digest.
fn unpacked(mut entry: Value) -> Value {
    match entry.get_mut("skill").map(Value::take) {
        Some(skill) => skill,
        None => entry,
    }
}

fn is_card(value: &Value) -> bool {
    let Some(card) = value.as_object() else { return false };
    let of_lessonweaver =
        card.get("instructions").is_some_and(Value::is_array) || text(card, "proposed_lesson").is_some();
    let says = TEXTS.iter().any(|key| text(card, key).is_some());
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

//! Facts and episodes on their own: JSON or JSONL, both ways.
//!
//! Facts are `[{"key", "value"}]`, one such object per line, or `{key: value}`; episodes are `[{"id", "summary"}]` or
//! one such object per line. A value of a fact that is not a string is read as its compact JSON. Lessons, skills and memories
//! of others are neither, and so is what has a member of these: it may be for nobody here.

use serde_json::{Map, Value, json};

use super::error::{AdapterError, object, parse, text};
use super::recognise::{check_utf8, lines};
use crate::event::{Episode, Fact};

/// Reads facts.
///
/// # Errors
/// [`AdapterError`] with the place when the bytes are not UTF-8 or JSON, a fact lacks its key or value, or something has a
/// member of a lesson, skill or memory. In an object of facts by key, a value that is a list of objects is none: the file
/// is something else, such as a list of tools.
pub fn read_facts(bytes: &[u8]) -> Result<Vec<Fact>, AdapterError> {
    let fact = |key: &str, value: &Value| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Fact { key: key.to_owned(), value }
    };
    let listed = |members: &Map<String, Value>, place: &str| {
        let value = members.get("value").ok_or_else(|| AdapterError::wrong(place, "value", "a string", None))?;
        Ok(fact(text(members, "key", place)?, value))
    };
    match read(bytes)? {
        Listed::Object(members) if !is_fact(&members) => {
            let facts = members.iter().map(|(key, value)| match is_records(value) {
                false => Ok(fact(key, value)),
                true => Err(AdapterError::new("", format!("`{key}` is a list of objects; expected a fact"))),
            });
            facts.collect()
        }
        Listed::Object(members) => Ok(vec![listed(&members, "")?]),
        Listed::Many(entries) => entries.iter().map(|(place, members)| listed(members, place)).collect(),
    }
}

/// Whether an object is a single fact, and not a map of facts by key.
fn is_fact(members: &Map<String, Value>) -> bool {
    members.len() == 2 && members.contains_key("key") && members.contains_key("value")
}

fn is_records(value: &Value) -> bool {
    value.as_array().is_some_and(|values| values.first().is_some_and(Value::is_object))
}

/// Reads episodes.
///
/// # Errors
/// [`AdapterError`] with the place when the bytes are not UTF-8 or JSON, an episode lacks its id or summary, or something has
/// a member of a lesson, skill or memory.
pub fn read_episodes(bytes: &[u8]) -> Result<Vec<Episode>, AdapterError> {
    let episode = |members: &Map<String, Value>, place: &str| {
        let (id, summary) = (text(members, "id", place)?, text(members, "summary", place)?);
        Ok(Episode { id: id.to_owned(), summary: summary.to_owned() })
    };
    match read(bytes)? {
        Listed::Object(members) => Ok(vec![episode(&members, "")?]),
        Listed::Many(entries) => entries.iter().map(|(place, members)| episode(members, place)).collect(),
    }
}

/// The members of lessons, skills and memories alone.
const OF_CARDS: [&str; 5] = ["lesson_id", "skill_id", "memory_id", "sensitivity", "lifecycle_state"];

/// The member of a lesson, skill or memory that is somewhere in a value: nothing with one is a fact or an episode.
pub(crate) fn of_card(value: &Value) -> Option<&'static str> {
    match value {
        Value::Array(values) => values.iter().find_map(of_card),
        Value::Object(members) => of_card_in(members),
        _ => None,
    }
}

fn of_card_in(members: &Map<String, Value>) -> Option<&'static str> {
    members.iter().find_map(|(name, value)| {
        let member = OF_CARDS.iter().find(|member| name.trim().eq_ignore_ascii_case(member));
        member.copied().or_else(|| of_card(value))
    })
}

/// The members of something that is no lesson, skill or memory.
fn members(value: Value, place: &str) -> Result<Map<String, Value>, AdapterError> {
    let members = object(value, place)?;
    let refuse = |member| {
        let reason = format!(
            "`{member}` is a member of a lesson, skill or memory; give the file to `--memory`, or rename the member"
        );
        AdapterError::new(place, reason)
    };
    of_card_in(&members).map_or(Ok(()), |member| Err(refuse(member)))?;
    Ok(members)
}

enum Listed {
    /// The whole document is one object.
    Object(Map<String, Value>),
    /// Several objects with their places.
    Many(Vec<(String, Map<String, Value>)>),
}

fn read(bytes: &[u8]) -> Result<Listed, AdapterError> {
    let whole = check_utf8(bytes)?;
    if let Ok(document) = parse(whole, "") {
        let Value::Array(entries) = document else { return Ok(Listed::Object(members(document, "")?)) };
        let entries = entries.into_iter().enumerate().map(|(number, entry)| {
            let place = format!("[{number}]");
            members(entry, &place).map(|members| (place, members))
        });
        return entries.collect::<Result<_, _>>().map(Listed::Many);
    }
    let mut entries = Vec::new();
    for line in lines(bytes) {
        let (number, line) = line?;
        let place = format!("line {number}");
        entries.push((place.clone(), members(parse(line, &place)?, &place)?));
    }
    Ok(Listed::Many(entries))
}

/// Writes one fact per line, each with a line break; [`read_facts`] reads them again.
#[must_use]
pub fn facts_to_lines(facts: &[Fact]) -> String {
    facts.iter().map(|fact| format!("{}\n", json!({"key": fact.key, "value": fact.value}))).collect()
}

/// Writes one episode per line, each with a line break; [`read_episodes`] reads them again.
#[must_use]
pub fn episodes_to_lines(episodes: &[Episode]) -> String {
    episodes.iter().map(|episode| format!("{}\n", json!({"id": episode.id, "summary": episode.summary}))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn facts_come_in_three_forms() {
        let shown = |text: &str| match read_facts(text.as_bytes()) {
            Ok(facts) => facts.iter().map(|fact| format!("{}={};", fact.key, fact.value)).collect::<String>(),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown(r#"[{"key": "a", "value": "1"}, {"key": "b", "value": {"c": 2}}]"#), r#"a=1;b={"c":2};"#);
        assert_eq!(shown(r#"{"a": "1", "b": 2}"#), "a=1;b=2;");
        assert_eq!(shown("{\"key\": \"a\", \"value\": \"1\"}\n{\"key\": \"b\", \"value\": \"2\"}\n"), "a=1;b=2;");
        assert_eq!(shown(r#"{"key": "a", "value": "1"}"#), "a=1;");
        assert_eq!(shown(r#"{"a": {"b": [1]}, "c": [2], "d": null}"#), r#"a={"b":[1]};c=[2];d=null;"#);
        assert_eq!(shown(r#"{"tools": [{"name": "x"}]}"#), "`tools` is a list of objects; expected a fact");
        assert_eq!(shown(""), "");
        assert_eq!(shown("{\"key\": \"a\"}\n{}"), "line 1: `value` is missing; expected a string");
        let of_card = |name: &str| {
            format!(
                "`{name}` is a member of a lesson, skill or memory; give the file to `--memory`, or rename the member"
            )
        };
        for (card, place, name) in [
            (r#"{"lesson_id": "a", "body": "x", "sensitivity": "restricted"}"#, "", "lesson_id"),
            (r#"[{"key": "a", "value": "1", "Sensitivity": "restricted"}]"#, "[0]: ", "sensitivity"),
            (r#"{"a": {"b": [{"lifecycle_state": "draft"}]}}"#, "", "lifecycle_state"),
        ] {
            assert_eq!(shown(card), format!("{place}{}", of_card(name)));
        }
        let card = r#"[{"id": "e", "memory_id": "e", "summary": "x"}]"#;
        assert_eq!(read_episodes(card.as_bytes()).unwrap_err().to_string(), format!("[0]: {}", of_card("memory_id")));
        assert_eq!(shown("[1]"), "[0]: expected an object, not a number");
        assert_eq!(shown("{\"key\"\n"), "line 1: not JSON: EOF while parsing an object at line 1 column 6");
    }

    proptest! {
        #[test]
        fn facts_and_episodes_survive_both_ways(pairs in prop::collection::vec(("(?s).{0,6}", "(?s).{0,6}"), 0..5)) {
            let facts: Vec<Fact> =
                pairs.iter().map(|(key, value)| Fact { key: key.clone(), value: value.clone() }).collect();
            prop_assert_eq!(read_facts(facts_to_lines(&facts).as_bytes()).unwrap(), facts);
            let episodes: Vec<Episode> =
                pairs.into_iter().map(|(id, summary)| Episode { id, summary }).collect();
            prop_assert_eq!(read_episodes(episodes_to_lines(&episodes).as_bytes()).unwrap(), episodes);
        }
    }
}

//! The rules of programs that make prompts or shorten results.

use serde_json::{Value, json};

use super::talk::Talk;
use super::{Conformance, ENDS, ID, LANGUAGES, PING, Row, SILENT, Sheet, long, ping};
use crate::eval::process::program::Launch;
use crate::eval::process::{ProcessEngine, ProcessError};

const RULES: [Row; 11] = [
    (
        "hello",
        "hello is answered with ok, name and version",
        "answer {\"op\":\"hello\",…} with {\"ok\":true,\"name\":\"…\",\"version\":\"…\"}",
    ),
    PING,
    ID,
    (
        "compile",
        "compile is answered with a text",
        "answer with {\"id\":\"…\",\"text\":\"…\"}, or with {\"id\":\"…\",\"unsupported\":\"why\"}",
    ),
    (
        "compact",
        "compact is answered with a text",
        "answer with {\"id\":\"…\",\"text\":\"…\"}, or with {\"id\":\"…\",\"unsupported\":\"why\"}",
    ),
    ("hidden", "a hidden event is not in the prompt", "leave out events with \"hidden\": true"),
    ("empty", "an empty conversation and an empty result are answered", "answer with a text; it may be empty"),
    (
        "languages",
        "long texts, other languages, emoji and quotes are answered",
        "read whole lines as UTF-8 and JSON, and write UTF-8",
    ),
    (
        "same",
        "the same request gets the same text",
        "use no randomness, keep nothing from earlier requests, and do not iterate over sets",
    ),
    SILENT,
    ENDS,
];

/// Tokens that are asked for.
const BUDGET: usize = 2_000;

/// What stands in the event that is hidden.
const SECRET: &str = "the code of the safe is 4711";

/// A text, or that it says why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    Text(String),
    Unsupported,
}

/// Tries every rule of the door of context engines.
///
/// # Errors
/// [`ProcessError::Missing`] when it cannot be started.
pub fn check(engine: &ProcessEngine) -> Result<Conformance, ProcessError> {
    let launch = Launch { command: &engine.command, hidden: &engine.hidden, variables: &[] };
    let mut talk = Talk::new(launch, engine.limits, Sheet::new(&RULES));
    talk.start(None)?;
    ping(&mut talk);
    let rota = "Monday: Kim\nTuesday: Noa\nWednesday: Sam\n".repeat(200);
    let usual = compile("who is on call on Tuesday", &rota);
    let tasks = [("compile", usual), ("compact", compact(&rota))];
    let mut does = 0;
    for (rule, request) in &tasks {
        let said = asked(&mut talk, rule, request)?;
        match &said {
            Some(Said::Unsupported) => talk.sheet.note(rule, vec!["it says that it does not do this".to_owned()]),
            Some(Said::Text(text)) => {
                does += 1;
                talk.sheet.ok(rule);
                if *rule == "compile" && text.contains(SECRET) {
                    talk.sheet.wrong("hidden", vec![format!("the prompt has the hidden text {SECRET:?}")], None);
                } else if *rule == "compile" {
                    talk.sheet.ok("hidden");
                }
            }
            None => {}
        }
        let again = if said.is_some() { asked(&mut talk, rule, request)? } else { None };
        match (said, again) {
            (Some(before), Some(after)) if before == after => talk.sheet.ok("same"),
            (Some(_), Some(_)) => {
                talk.sheet.wrong("same", vec![format!("{rule} gave a different text the second time")], None);
            }
            _ => {}
        }
    }
    if does == 0 {
        talk.sheet.wrong("compile", vec!["it makes no prompts, and shortens no results".to_owned()], None);
    }
    let others = LANGUAGES.map(|text| compile(text, text));
    let results = LANGUAGES.map(compact);
    let nothing = json!({"op": "compile", "query": "", "budget": BUDGET,
        "conversation": {"phase": "answer", "events": [], "facts": [], "episodes": []}});
    for (rule, requests) in [
        ("empty", vec![nothing, compact("")]),
        ("languages", [vec![compact(&long())], others.to_vec(), results.to_vec()].concat()),
    ] {
        let said = requests.iter().map(|request| asked(&mut talk, rule, request)).collect::<Result<Vec<_>, _>>()?;
        if said.iter().all(Option::is_some) {
            talk.sheet.ok(rule);
        }
    }
    talk.end();
    Ok(talk.sheet.done())
}

fn compile(query: &str, result: &str) -> Value {
    json!({"op": "compile", "query": query, "budget": BUDGET, "conversation": {"phase": "answer", "events": [
        {"id": "u1", "kind": "user_turn", "text": query},
        {"id": "c1", "kind": "tool_call", "text": "rota.read({})", "parent": "u1"},
        {"id": "x1", "kind": "tool_result", "text": result, "parent": "c1"},
        {"id": "h1", "kind": "memory_fact", "text": SECRET, "hidden": true}],
        "facts": [{"key": "team", "value": "storage"}], "episodes": [{"id": "e1", "summary": "the rota was read before"}]}})
}

fn compact(result: &str) -> Value {
    json!({"op": "compact", "result": result, "cap": 300})
}

/// What it says to a request; it is started again if need be.
fn asked(talk: &mut Talk<'_>, rule: &str, request: &Value) -> Result<Option<Said>, ProcessError> {
    if !talk.is_running() && talk.may_start() {
        talk.start(None)?;
    }
    if !talk.is_running() {
        return Ok(None);
    }
    let Some((exchange, answer)) = talk.heard_by_id(rule, request.clone()) else { return Ok(None) };
    if answer.get("unsupported").is_some_and(Value::is_string) {
        return Ok(Some(Said::Unsupported));
    }
    match (answer.get("text").and_then(Value::as_str), answer.get("error").and_then(Value::as_str)) {
        (_, Some(why)) => talk.wrong(rule, &format!("it says error: {why}"), &exchange),
        (Some(text), None) => return Ok(Some(Said::Text(text.to_owned()))),
        (None, None) => talk.wrong(rule, "the answer has no `text`", &exchange),
    }
    Ok(None)
}

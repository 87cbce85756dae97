//! Recognises results that only repeat what the call sent.
//!
//! Servers that write often answer with what they wrote. The model wrote it itself a moment ago, so one line that says
//! so is enough. A result is an echo if it is equal, as a value, to the arguments or to one of them, whatever the
//! notation; if it holds the same scalars in the same order under other keys; or if it is one of these with a little
//! more, which the line then shows. Anything else that is new, such as ids assigned by the server, makes it no echo,
//! and neither is a different order: a sorted list is an answer.

use memchr::memmem;

use crate::event::ContextItem;
use crate::literal::{Dialect, Document, Kind, Value};

/// The number of bytes that may come with the arguments: the line shows all of them.
const MOST_BESIDE: usize = 200;

/// The number of members beyond which a result is data and not a wrapper, so that none of them is compared.
const MOST_MEMBERS: usize = 16;

/// The number of scalars from which the same sequence is not a coincidence.
const LEAST_SCALARS: usize = 8;

/// How much longer than the arguments an echo can be by its notation alone, as a factor.
const MOST_EXPANSION: usize = 8;

/// The line that replaces `content` if it is an echo of what `call` sent.
pub(super) fn line(call: &ContextItem, content: &str) -> Option<String> {
    let sent = arguments(call)?;
    // Most results are not compared at all: they are far larger than what was sent.
    if content.len() / MOST_EXPANSION > sent.len() {
        return None;
    }
    let sent = Document::parse(sent, Dialect::Json).ok()?;
    let echo = of_text(sent.root(), content).or_else(|| of_value(sent.root(), content))?;
    let beside = if echo.beside.is_empty() { String::new() } else { format!("; besides: {}", echo.beside) };
    Some(format!("(echo of {}, {} characters{beside})", echo.what, content.chars().count()))
}

/// The arguments of a call: the object in its text, which adapters write as JSON, with or without the name before it.
fn arguments(call: &ContextItem) -> Option<&str> {
    call.text.get(call.text.find('{')?..=call.text.rfind('}')?)
}

struct Echo {
    /// What was sent, e.g. ``the argument `rows`: 500 items``.
    what: String,
    /// What came with it, in the notation of the result.
    beside: String,
}

/// The parts of `sent` that a result may repeat: all of it, or one argument. Each with its name.
fn candidates(sent: Value<'_>) -> impl Iterator<Item = (String, Value<'_>)> {
    let one = |(key, value): (Value<'_>, _)| (format!("the argument `{}`", key.plain()), value);
    std::iter::once(("the call's arguments".to_owned(), sent)).chain(sent.members().map(one))
}

/// An echo of an argument that is a text.
fn of_text(sent: Value<'_>, content: &str) -> Option<Echo> {
    candidates(sent).find_map(|(what, value)| {
        let text =
            value.string().filter(|text| text.len() + MOST_BESIDE >= content.len() && !text.trim().is_empty())?;
        let start = memmem::find(content.as_bytes(), text.as_bytes())?;
        let (before, after) = (content.get(..start)?, content.get(start + text.len()..)?);
        let beside = [before.trim(), after.trim()].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
        Some(Echo { what, beside: beside.join(" … ") })
    })
}

/// An echo of arguments as values.
fn of_value(sent: Value<'_>, content: &str) -> Option<Echo> {
    // A sentence may come before the value.
    let start = content.find(['{', '[']).filter(|&start| start <= MOST_BESIDE)?;
    let (before, content) = content.split_at(start);
    let document = Document::parse_any(content).ok()?;
    let value = document.root();
    let (what, mut beside) = whole(sent, value).map(|what| (what, Vec::new())).or_else(|| wrapped(sent, value))?;
    if !before.trim().is_empty() {
        beside.insert(0, before.trim().to_owned());
    }
    Some(Echo { what, beside: beside.join(", ") })
}

/// The part of `sent` that equals `value`, or holds the same scalars in the same order.
fn whole(sent: Value<'_>, value: Value<'_>) -> Option<String> {
    let scalars = scalars(value);
    candidates(sent).find_map(|(what, sent)| {
        let same = sent.is_container()
            && (sent.same(value) || {
                let sent = self::scalars(sent);
                sent.len() >= LEAST_SCALARS
                    && sent.len() == scalars.len()
                    && sent.iter().zip(&scalars).all(|(one, other)| one.same(*other))
            });
        let entries = match sent.kind() {
            Kind::Array => format!("{what}: {} items", sent.len()),
            _ => what,
        };
        same.then_some(entries)
    })
}

/// The part of `sent` that equals one member of `value`, and the other members, if they are few and short.
fn wrapped(sent: Value<'_>, value: Value<'_>) -> Option<(String, Vec<String>)> {
    if value.len() > MOST_MEMBERS {
        return None;
    }
    let (mut found, mut beside) = (None, Vec::new());
    for (key, member) in value.members() {
        match whole(sent, member).filter(|_| member.is_container()) {
            Some(what) if found.is_none() => found = Some(format!("{what}, as `{}`", key.plain())),
            Some(_) => {}
            None => beside.push(format!("{}: {}", key.text(), member.minified(MOST_BESIDE)?)),
        }
    }
    let short = beside.iter().map(String::len).sum::<usize>() <= MOST_BESIDE;
    found.filter(|_| short).map(|what| (what, beside))
}

/// All scalars in `value`, in order.
fn scalars(value: Value<'_>) -> Vec<Value<'_>> {
    let (mut open, mut found) = (vec![value], Vec::new());
    while let Some(value) = open.pop() {
        if value.is_container() {
            let first = open.len();
            open.extend(value.items());
            if let Some(items) = open.get_mut(first..) {
                items.reverse();
            }
        } else {
            found.push(value);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::event::ItemKind;

    #[test]
    fn an_echo_is_said_in_a_line_and_anything_new_is_none() {
        let rows: Vec<Json> = (0..40).map(|id| json!({"id": id, "name": format!("n{id}"), "ratio": 0.5})).collect();
        let renamed: Vec<Json> = (0..40).map(|id| json!({"key": id, "label": format!("n{id}"), "r": 0.5})).collect();
        let mut sorted = rows.clone();
        sorted.reverse();
        let with_ids: Vec<Json> =
            (0..40).map(|id| json!({"id": id, "name": format!("n{id}"), "uid": id + 900})).collect();
        let prose = "All of it. ".repeat(40);
        let call = json!({"path": "a.md", "rows": rows, "text": prose}).to_string();
        let call = ContextItem::new("tc1", ItemKind::ToolCall, call);
        let python =
            format!("{rows:?}").replace("Object ", "").replace("Number(", "").replace("String(", "").replace(')', "");
        let results: [(&str, String); 11] = [
            ("the same", json!(rows).to_string()),
            ("pretty", serde_json::to_string_pretty(&json!(rows)).unwrap()),
            ("python", python),
            ("all arguments", call.text.clone()),
            ("wrapped", json!({"written": rows, "ok": true, "count": 40}).to_string()),
            ("renamed", json!(renamed).to_string()),
            ("after a sentence", format!("Created:\n{}", json!(rows))),
            ("text", format!("Echo: {prose}")),
            ("sorted", json!(sorted).to_string()),
            ("with ids", json!(with_ids).to_string()),
            ("fewer", json!(rows[..39]).to_string()),
        ];
        let lines: Vec<String> = results
            .iter()
            .map(|(name, content)| format!("{name}: {}", line(&call, content).unwrap_or_else(|| "-".to_owned())))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        the same: (echo of the argument `rows`: 40 items, 1381 characters)
        pretty: (echo of the argument `rows`: 40 items, 2342 characters)
        python: (echo of the argument `rows`: 40 items, 1620 characters)
        all arguments: (echo of the call's arguments, 1854 characters)
        wrapped: (echo of the argument `rows`: 40 items, as `written`, 1414 characters; besides: "ok": true, "count": 40)
        renamed: (echo of the argument `rows`: 40 items, 1301 characters)
        after a sentence: (echo of the argument `rows`: 40 items, 1390 characters; besides: Created:)
        text: (echo of the argument `text`, 446 characters; besides: Echo:)
        sorted: -
        with ids: -
        fewer: -
        "#);
    }

    #[test]
    fn the_arguments_may_stand_in_the_text_of_the_call() {
        let items: Vec<u32> = (0..30).collect();
        let call = ContextItem::new("tc1", ItemKind::ToolCall, format!("push({})", json!({"items": items})));
        assert!(line(&call, &json!({"items": items}).to_string()).is_some());
        assert!(line(&ContextItem::new("tc2", ItemKind::ToolCall, "push()"), &json!(items).to_string()).is_none());
    }
}

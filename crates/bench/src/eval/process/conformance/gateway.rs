//! The rules of gateways: MCP servers with a tool that searches.

use serde_json::{Value, json};

use super::talk::Exchange;
use super::{Conformance, ENDS, Row, Sheet};
use crate::eval::probe;
use crate::eval::process::mcp::{Gateway, SearchTool, texts};
use crate::eval::process::program::{Launch, bounded};
use crate::eval::process::{ProcessEngine, ProcessError, SEED, Session};
use crate::eval::rng::Rng;

const RULES: [Row; 10] = [
    (
        "initialize",
        "initialize is answered with serverInfo: name and version",
        "look at what it printed last; in the command, `{config}` or `{upstreams}` becomes the file of its servers",
    ),
    ("ping", "ping is answered", "answer the request `ping` with an empty object"),
    ("tool", "tools/list has the tool that searches", "name one of its tools with --mcp-search-tool"),
    ("argument", "the tool takes the query", "name one of its arguments with --mcp-query-argument"),
    (
        "required",
        "the tool needs no other argument",
        "name a tool that needs only the query, or another argument for it: nothing fills in the others",
    ),
    ("search", "a search succeeds", "call the tool by hand with this query, and read what it says"),
    ("pointer", "the pointer finds texts in the result", "name one of these with --mcp-ids"),
    (
        "names",
        "the texts name tools of the servers behind it",
        "point --mcp-ids at texts that contain the names of \
                                                                tools",
    ),
    ("same", "the same query gets the same tools", "use no randomness, and break ties by a property of the tool"),
    ENDS,
];

/// Queries of the probe that are asked.
const ASKED: usize = 12;

/// Names, pointers and texts that are listed, at most.
const SHOWN: usize = 12;

pub(super) fn check(engine: &ProcessEngine, tool: &SearchTool) -> Result<Conformance, ProcessError> {
    let mut sheet = Sheet::new(&RULES);
    let launch = Launch { command: &engine.command, hidden: &engine.hidden, variables: &[] };
    let rng = Rng::new(SEED).fork("first");
    let mut gateway = Gateway::start(launch, tool, engine.limits, probe::collection(), &rng)?;
    match gateway.hello() {
        Ok(_) => sheet.ok("initialize"),
        Err(error) => {
            sheet.wrong("initialize", vec![error.to_string()], None);
            return Ok(sheet.done());
        }
    }
    match gateway.ping() {
        Ok(_) => sheet.ok("ping"),
        Err(error) => sheet.wrong("ping", vec![error.to_string()], None),
    }
    if takes_queries(&mut gateway, tool, engine, &mut sheet) {
        searches(&mut gateway, tool, engine, &mut sheet);
    }
    match Box::new(gateway).end() {
        Ok(()) => sheet.ok("ends"),
        Err(error) => sheet.wrong("ends", vec![error.to_string()], None),
    }
    Ok(sheet.done())
}

/// Whether the tool is there and takes the query.
fn takes_queries(gateway: &mut Gateway, tool: &SearchTool, engine: &ProcessEngine, sheet: &mut Sheet) -> bool {
    let tools = match gateway.listed(engine.limits.load) {
        Ok(tools) => tools,
        Err(error) => {
            sheet.wrong("tool", vec![error.to_string()], None);
            return false;
        }
    };
    let name = |tool: &Value| tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(found) = tools.iter().find(|one| name(one) == tool.name) else {
        let there = listed(tools.iter().map(name));
        sheet.wrong("tool", vec![format!("there is no `{}`; there are: {there}", tool.name)], None);
        return false;
    };
    sheet.ok("tool");
    let properties = found.pointer("/inputSchema/properties").and_then(Value::as_object);
    match properties {
        Some(properties) if !properties.contains_key(&tool.argument) => {
            let there = listed(properties.keys().cloned());
            sheet.wrong("argument", vec![format!("there is no `{}`; there are: {there}", tool.argument)], None);
        }
        Some(_) => sheet.ok("argument"),
        None => sheet.wrong("argument", vec!["its inputSchema names no arguments".to_owned()], None),
    }
    let required = found.pointer("/inputSchema/required").and_then(Value::as_array);
    let others = required.into_iter().flatten().filter_map(Value::as_str).filter(|one| *one != tool.argument);
    let others: Vec<String> = others.map(str::to_owned).collect();
    match others.is_empty() {
        true => sheet.ok("required"),
        false => sheet.wrong("required", vec![format!("it also needs: {}", listed(others.into_iter()))], None),
    }
    true
}

fn searches(gateway: &mut Gateway, tool: &SearchTool, engine: &ProcessEngine, sheet: &mut Sheet) {
    let (mut found, mut unknown, mut first) = (Vec::new(), Vec::new(), None);
    let mut named = 0;
    let queries: Vec<&str> = probe::collection().queries.iter().take(ASKED).map(|query| query.text.as_str()).collect();
    for query in &queries {
        let params = json!({"name": tool.name, "arguments": {&tool.argument: query}});
        let mut exchange = Exchange { sent: format!("tools/call {params}"), got: None, us: 0 };
        // The first search may wait for the servers behind it.
        let limit = if first.is_none() { engine.limits.load } else { engine.limits.route };
        let result = match gateway.request("a search", "tools/call", &params, limit) {
            Ok((result, _)) => result,
            Err(error) => {
                sheet.wrong("search", vec![error.to_string()], Some(&exchange));
                break;
            }
        };
        exchange.got = Some(result.to_string());
        if result.get("isError") == Some(&json!(true)) {
            sheet.wrong("search", vec!["the result has isError".to_owned()], Some(&exchange));
            continue;
        }
        sheet.ok("search");
        let texts = texts(&result, &tool.ids);
        let tools = gateway.tools(&texts);
        found.extend(texts.iter().cloned());
        unknown.extend(gateway.unknown(&texts).into_iter().map(bounded));
        named += usize::from(!tools.is_empty());
        first.get_or_insert((exchange, params, result, tools));
    }
    let Some((exchange, params, result, before)) = first else { return };
    let pointers = pointers(&result);
    let naming = |pointer: &String| {
        let tools = gateway.tools(&texts(&result, pointer)).len();
        format!("{pointer} ({tools} tools by name)")
    };
    let there = format!("in the first result there are texts at: {}", listed(pointers.iter().map(naming)));
    if found.is_empty() {
        sheet.wrong("pointer", vec![format!("nothing at {}", tool.ids), there], Some(&exchange));
    } else {
        sheet.ok("pointer");
        sheet.note("pointer", vec![format!("{} texts in {} results", found.len(), queries.len())]);
        unknown.sort();
        unknown.dedup();
        let known = format!("{named} of {} queries found tools by name", queries.len());
        let others = (!unknown.is_empty()).then(|| format!("texts without one: {}", listed(unknown.into_iter())));
        if named == 0 {
            sheet.wrong("names", [known].into_iter().chain(others).chain([there]).collect(), Some(&exchange));
        } else {
            sheet.ok("names");
            sheet.note("names", [known].into_iter().chain(others).collect());
        }
    }
    if before.is_empty() {
        return;
    }
    match gateway.request("a search", "tools/call", &params, engine.limits.route) {
        Ok((again, _)) if gateway.tools(&texts(&again, &tool.ids)) == before => sheet.ok("same"),
        Ok((again, _)) => {
            let exchange = Exchange { got: Some(again.to_string()), ..exchange };
            sheet.wrong(
                "same",
                vec!["the second time it found other tools, or another order".to_owned()],
                Some(&exchange),
            );
        }
        Err(error) => sheet.wrong("same", vec![error.to_string()], Some(&exchange)),
    }
}

/// Some names in a line.
fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.map(|name| bounded(&name)).collect();
    match names.len() {
        0 => "none".to_owned(),
        count if count > SHOWN => format!("{} and {} more", names[..SHOWN].join(", "), count - SHOWN),
        _ => names.join(", "),
    }
}

/// Pointers to the texts of a result, with `*` for every element of a list; text that is JSON is looked into.
fn pointers(result: &Value) -> Vec<String> {
    fn walk(value: &Value, pointer: &str, depth: usize, found: &mut Vec<String>) {
        const DEEPEST: usize = 8;
        if depth == DEEPEST || found.len() > SHOWN {
            return;
        }
        match value {
            Value::String(text) => match serde_json::from_str::<Value>(text) {
                Ok(inner @ (Value::Object(_) | Value::Array(_))) => walk(&inner, pointer, depth + 1, found),
                _ if !found.iter().any(|known| known == pointer) => found.push(pointer.to_owned()),
                _ => {}
            },
            Value::Array(items) => items.iter().for_each(|item| walk(item, &format!("{pointer}/*"), depth + 1, found)),
            Value::Object(members) => members.iter().for_each(|(name, member)| {
                let name = name.replace('~', "~0").replace('/', "~1");
                walk(member, &format!("{pointer}/{name}"), depth + 1, found);
            }),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(result, "", 0, &mut found);
    found
}

//! `mcp stats --by`: a row a session, a row a call, and a row a tool.

use std::io::Write;

use anyhow::Result;

use super::stats::bad_lines;
use crate::cli::counted;
use crate::cli::terminal::shown;
use contextweaver_bench::report::table::Table;
use contextweaver_core::text::grouped;
use contextweaver_gateway::{CallRow, CallRows, EventName, NeverCalled, SessionRow, SessionRows, ToolRow, ToolRows};

/// What stands where nothing is known.
const UNKNOWN: &str = "–";

/// Digits of the number of a session that are shown: they tell those on a screen apart.
const DIGITS: usize = 8;

/// Characters of a time that are shown: to the second.
const TO_THE_SECOND: usize = "2026-11-22T12:00:00".len();

/// The sessions, and what was left out.
pub(super) fn sessions(out: &mut dyn Write, sessions: &SessionRows) -> Result<()> {
    let shown_sessions = counted(sessions.items.len(), "session");
    match (sessions.left_out, sessions.calls_left_out) {
        (Some(0), _) => writeln!(out, "{shown_sessions}")?,
        (left_out, calls) => writeln!(
            out,
            "the last {shown_sessions}; {} with {} left out, see --limit",
            left_out.map_or_else(
                || "more than a million others".to_owned(),
                |others| format!("{} others", grouped(others))
            ),
            counted(calls as usize, "call")
        )?,
    }
    let titles = ["last call", "session", "caller", "calls", "failed", "definitions", "results", "the rest", "net"];
    let spared = sessions.price.is_some().then_some("saved");
    let mut table = Table::new(titles.into_iter().chain(spared)).words(&["session", "caller"]);
    let row = |row: &SessionRow| {
        let mut cells = vec![
            time(&row.last),
            digits(&row.session),
            row.caller.as_deref().map_or_else(unknown, shown),
            grouped(row.calls),
            grouped(row.failed),
            row.definitions_not_sent.map_or_else(unknown, signed),
            row.results_held_back.map_or_else(unknown, signed),
            row.other.map_or_else(unknown, |other| signed(0_i64.saturating_sub_unsigned(other))),
            row.net.map_or_else(unknown, signed),
        ];
        if let Some(price) = &sessions.price {
            cells.push(row.net.map_or_else(unknown, |net| price.of(net)));
        }
        cells
    };
    sessions.items.iter().map(row).for_each(|row| table.row(row));
    write(out, &table)?;
    bad_lines(out, &sessions.bad)
}

/// The calls, and what was left out.
pub(super) fn calls(out: &mut dyn Write, calls: &CallRows) -> Result<()> {
    let shown_calls = counted(calls.items.len(), "call");
    match calls.left_out {
        0 => writeln!(out, "{shown_calls}")?,
        left_out => writeln!(out, "the last {shown_calls}; {} before them left out, see --limit", grouped(left_out))?,
    }
    write(out, &of_calls(&calls.items))?;
    bad_lines(out, &calls.bad)
}

/// The tools that were called, and those that were not, `limit` of each at most.
pub(super) fn tools(out: &mut dyn Write, tools: &ToolRows, limit: usize) -> Result<()> {
    let (all, were) = (counted(tools.items.len(), "tool"), if tools.items.len() == 1 { "was" } else { "were" });
    writeln!(out, "{all} {were} called{}", left_out(tools.items.len(), limit))?;
    let mut table = Table::new(["tool", "calls", "failed", "whole", "passed on", "definition"]);
    let row = |row: &ToolRow| {
        let tokens = [row.result_tokens, row.answer_tokens, row.definition_tokens];
        let [whole, went_on, definition] = tokens.map(|tokens| tokens.map_or_else(unknown, grouped));
        [shown(&row.tool), grouped(row.calls), grouped(row.failed), whole, went_on, definition]
    };
    tools.items.iter().take(limit).map(row).for_each(|row| table.row(row));
    write(out, &table)?;
    if let Some(never) = &tools.never_called {
        never_called(out, never, limit)?;
    }
    bad_lines(out, &tools.bad)
}

/// The tools that nobody called, and what that costs.
fn never_called(out: &mut dyn Write, never: &NeverCalled, limit: usize) -> Result<()> {
    let NeverCalled { tools, tokens, of_tokens } = never;
    let (them, take) = match tools.len() {
        0 => return Ok(writeln!(out, "\nevery tool of the catalog was called")?),
        1 => ("1 tool of the catalog was".to_owned(), "its definition takes"),
        count => (format!("{} tools of the catalog were", grouped(count)), "their definitions take"),
    };
    let (tokens, all) = (grouped(*tokens), counted(*of_tokens as usize, "token"));
    writeln!(out, "\n{them} never called: {take} {tokens} of {all}{}", left_out(tools.len(), limit))?;
    let mut table = Table::new(["tool", "definition"]);
    tools.iter().take(limit).for_each(|tool| table.row([shown(&tool.id), grouped(tool.tokens)]));
    write(out, &table)
}

/// How many of so many rows are not shown, where some are not.
fn left_out(all: usize, limit: usize) -> String {
    if all > limit { format!("; {} left out, see --limit", grouped(all - limit)) } else { String::new() }
}

/// The last calls, a row each below their titles.
pub(super) fn last(calls: &[CallRow]) -> String {
    of_calls(calls).plain()
}

fn of_calls(calls: &[CallRow]) -> Table {
    let titles = ["time", "tool", "decision", "whole", "passed on", "saved", "ms", "outcome"];
    let mut table = Table::new(titles).words(&["tool", "decision", "outcome"]);
    let row = |row: &CallRow| {
        vec![
            time(&row.time),
            tool(row),
            row.decision.as_deref().map_or_else(unknown, shown),
            row.result_tokens.map_or_else(unknown, grouped),
            row.answer_tokens.map_or_else(unknown, grouped),
            row.saved.map_or_else(unknown, signed),
            row.ms.map_or_else(unknown, |ms| format!("{ms:.3}")),
            outcome(row),
        ]
    };
    calls.iter().map(row).for_each(|row| table.row(row));
    table
}

/// What was called: a tool by its id, one of the gateway's own by its name, with the tool that it is about.
fn tool(row: &CallRow) -> String {
    let operation = row.operation.as_deref().filter(|operation| *operation != "tool_execute" || row.tool.is_none());
    let words: Vec<&str> = operation.into_iter().chain(row.tool.as_deref()).collect();
    if words.is_empty() { unknown() } else { shown(&words.join(" ")) }
}

fn outcome(row: &CallRow) -> String {
    let outcome = row.outcome.as_deref().map_or_else(unknown, shown);
    match row.event {
        EventName::ExecuteCacheHit => format!("{outcome}, from the cache"),
        EventName::ExecuteDryRun => format!("{outcome}, a dry run"),
        _ => outcome,
    }
}

fn unknown() -> String {
    UNKNOWN.to_owned()
}

fn time(text: &str) -> String {
    shown(text.get(..TO_THE_SECOND).unwrap_or(text))
}

fn digits(session: &str) -> String {
    shown(session.get(..DIGITS).unwrap_or(session))
}

fn signed(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(number.unsigned_abs()))
}

/// Rows below their titles; nothing where there are none.
fn write(out: &mut dyn Write, table: &Table) -> Result<()> {
    if !table.is_empty() {
        write!(out, "\n{}", table.plain())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use contextweaver_core::catalog::ItemTokens;
    use contextweaver_core::text::Price;
    use contextweaver_gateway::{BadLines, Window};

    fn line(second: u32, session: char, event: &str, tool: Option<&str>, attributes: &str) -> String {
        let success = !event.ends_with("failed");
        format!(
            "{{\"attributes\":{{{attributes}}},\"duration_ms\":{second}.25,\"event\":\"{event}\",\"namespace\":null,\"session_id\":\"{}\",\"success\":{success},\"timestamp\":\"2026-11-22T12:00:{second:02}.000042+00:00\",\"tool_id\":{},\"version\":1}}\n",
            session.to_string().repeat(32),
            serde_json::json!(tool),
        )
    }

    fn events() -> String {
        let execute = |more: &str| format!(r#""caller":"ci","meta_tool":"tool_execute","decision":"allow"{more}"#);
        let read = Some("notes:read#5fdc4b3f");
        [
            line(0, 'a', "execute.completed", read, r#""meta_tool":"tool_execute""#),
            line(1, '0', "catalog.loaded", None, r#""definition_tokens":13102,"surface_tokens":795"#),
            line(2, 'b', "browse.completed", None, r#""answer_tokens":400,"caller":"ci","decision":"allow","meta_tool":"tool_browse""#),
            line(3, 'b', "hydrate.completed", read, r#""answer_tokens":61,"caller":"ci","decision":"allow","meta_tool":"tool_hydrate""#),
            line(4, 'b', "execute.completed", read, &execute(r#","answer_tokens":300,"result_tokens":45678"#)),
            line(5, 'b', "execute.cache_hit", read, &execute(r#","answer_tokens":300,"result_tokens":45678"#)),
            line(6, 'c', "execute.failed", None, r#""answer_tokens":35,"caller":"e\u001b[2Jvil","code":"HYDRATE_FAILED","decision":"refuse","meta_tool":"tool_execute""#),
            line(7, 'c', "execute.dry_run", read, &execute(r#","answer_tokens":67"#)),
            "{\"torn\":".to_owned(),
        ]
        .concat()
    }

    fn shown_sessions(text: String, limit: usize, price: Option<&Price>) -> String {
        let mut out = Vec::new();
        sessions(&mut out, &SessionRows::read(Cursor::new(text), limit, &Window::all(), price).unwrap()).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn shown_calls(text: &str, limit: usize) -> String {
        let mut out = Vec::new();
        calls(&mut out, &CallRows::read(text.as_bytes(), limit, &Window::all()).unwrap()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn sessions_are_rows() {
        let price = Price { per_million_tokens: 3.0, currency: "EUR".to_owned() };
        insta::assert_snapshot!(shown_sessions(events(), 20, Some(&price)), @r"
        3 sessions

        last call            session   caller         calls  failed  definitions  results  the rest      net     saved
        2026-11-22T12:00:07  cccccccc  e\u{1b}[2Jvil      2       1       12,307        0      -102   12,205  EUR 0.04
        2026-11-22T12:00:05  bbbbbbbb  ci                 4       0       12,307   90,756      -461  102,602  EUR 0.31
        2026-11-22T12:00:00  aaaaaaaa  –                  1       0            –        –         –        –         –

        1 line is not an event
          line 9: it is not finished: EOF while parsing a value at column 8
        ");
        insta::assert_snapshot!(shown_sessions(events(), 1, None), @r"
        the last 1 session; 2 others with 5 calls left out, see --limit

        last call            session   caller         calls  failed  definitions  results  the rest     net
        2026-11-22T12:00:07  cccccccc  e\u{1b}[2Jvil      2       1       12,307        0      -102  12,205

        1 line is not an event
          line 9: it is not finished: EOF while parsing a value at column 8
        ");
        assert_eq!(shown_sessions(String::new(), 20, None), "0 sessions\n");
    }

    #[test]
    fn calls_are_rows() {
        insta::assert_snapshot!(shown_calls(&events(), 20), @"
        7 calls

        time                 tool                              decision   whole  passed on   saved     ms  outcome
        2026-11-22T12:00:07  notes:read#5fdc4b3f               allow          –         67     -67  7.250  OK, a dry run
        2026-11-22T12:00:06  tool_execute                      refuse         –         35     -35  6.250  HYDRATE_FAILED
        2026-11-22T12:00:05  notes:read#5fdc4b3f               allow     45,678        300  45,378  5.250  OK, from the cache
        2026-11-22T12:00:04  notes:read#5fdc4b3f               allow     45,678        300  45,378  4.250  OK
        2026-11-22T12:00:03  tool_hydrate notes:read#5fdc4b3f  allow          –         61     -61  3.250  OK
        2026-11-22T12:00:02  tool_browse                       allow          –        400    -400  2.250  OK
        2026-11-22T12:00:00  notes:read#5fdc4b3f               –              –          –       –  0.250  OK

        1 line is not an event
          line 9: it is not finished: EOF while parsing a value at column 8
        ");
        insta::assert_snapshot!(shown_calls(&events(), 2), @"
        the last 2 calls; 5 before them left out, see --limit

        time                 tool                 decision  whole  passed on  saved     ms  outcome
        2026-11-22T12:00:07  notes:read#5fdc4b3f  allow         –         67    -67  7.250  OK, a dry run
        2026-11-22T12:00:06  tool_execute         refuse        –         35    -35  6.250  HYDRATE_FAILED

        1 line is not an event
          line 9: it is not finished: EOF while parsing a value at column 8
        ");
        assert_eq!(shown_calls("", 20), "0 calls\n");
    }

    #[test]
    fn tools_are_rows() {
        let row = |tool: &str, calls: u64, whole: Option<u64>, definition: Option<u64>| ToolRow {
            tool: tool.to_owned(),
            calls,
            failed: calls / 3,
            result_tokens: whole,
            answer_tokens: whole.map(|whole| whole / 100),
            definition_tokens: definition,
        };
        let unused = |id: &str, tokens: usize| ItemTokens { id: id.to_owned(), tokens };
        let rows = ToolRows {
            items: vec![
                row("notes:read#5fdc4b3f", 1_203, Some(45_678_000), Some(118)),
                row("notes:e\u{1b}[2Jvil", 3, None, None),
            ],
            never_called: Some(NeverCalled {
                tools: vec![unused("notes:find.all#3d3da7cd", 2_100), unused("notes:drop#11111111", 40)],
                tokens: 2_140,
                of_tokens: 2_258,
            }),
            bad: BadLines::default(),
        };
        let told = |rows: &ToolRows, limit: usize| {
            let mut out = Vec::new();
            tools(&mut out, rows, limit).unwrap();
            String::from_utf8(out).unwrap()
        };
        insta::assert_snapshot!(told(&rows, 20), @r"
        2 tools were called

        tool                 calls  failed       whole  passed on  definition
        notes:read#5fdc4b3f  1,203     401  45,678,000    456,780         118
        notes:e\u{1b}[2Jvil      3       1           –          –           –

        2 tools of the catalog were never called: their definitions take 2,140 of 2,258 tokens

        tool                     definition
        notes:find.all#3d3da7cd       2,100
        notes:drop#11111111              40
        ");
        insta::assert_snapshot!(told(&rows, 1), @"
        2 tools were called; 1 left out, see --limit

        tool                 calls  failed       whole  passed on  definition
        notes:read#5fdc4b3f  1,203     401  45,678,000    456,780         118

        2 tools of the catalog were never called: their definitions take 2,140 of 2,258 tokens; 1 left out, see --limit

        tool                     definition
        notes:find.all#3d3da7cd       2,100
        ");
        let one = ToolRows { items: rows.items[..1].to_vec(), never_called: None, bad: BadLines::default() };
        assert!(told(&one, 20).starts_with("1 tool was called\n\ntool  "));
        let none = NeverCalled { tools: Vec::new(), tokens: 0, of_tokens: 118 };
        let all = ToolRows { items: Vec::new(), never_called: Some(none), bad: BadLines::default() };
        assert_eq!(told(&all, 20), "0 tools were called\n\nevery tool of the catalog was called\n");
    }
}

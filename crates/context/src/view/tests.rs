use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::summary::{StructureSummarizer, Summarizer};

fn shown(content: &str, selector: &str, cursor: &str, bounds: Bounds) -> String {
    let selector: Selector = selector.parse().unwrap();
    let handle = Handle::new("artifact:result:c1");
    let media_type = if content == CSV { "text/csv" } else { "text/plain" };
    match view(&handle, content.as_bytes(), media_type, &selector, cursor.parse().unwrap(), bounds) {
        Ok(View { text, next: None }) => text,
        Ok(View { text, next: Some(next) }) => format!("{text}\n=> {next}"),
        Err(error) => format!("error: {error}"),
    }
}

fn first(content: &str, selector: &str) -> String {
    shown(content, selector, "0", Bounds::default())
}

const TABLE: &str = "{\"note\": \"x\\ny\", \"rows\": [\n {\"id\": 1, \"name\": \"ann\"},\n {\"id\": 2, \"name\": \"bo\"},\n {\"id\": 3, \"name\": \"cy\"}]}";
const PYTHON: &str = "[{'id': 1, 'name': 'ann', 'ok': True}, {'id': 2, 'name': \"b'o\", 'ok': None}]";
const ONE_LINE: &str = "0: [{'id': 1, 'name': 'ann', 'ok': True}, {'id': 2, 'name': \"b'o\", 'ok': None}]";
const CSV: &str = "id,name\n1,\"an\nn\"\n2,bo\n3,cy\n";
const FEED: &str = "<feed lang=\"en\">\n<entry id=\"1\"><title>a</title></entry>\n<entry id=\"2\"><title>b &amp; c</title></entry></feed>";
const SHEET: &str = "{\"values\":[[\"id\",\"state\"],[\"0\",\"ok\"],[\"1\",\"bad\"],[\"2\",\"ok\"]]}";
const LOG: &str = "start\nWARN slow\nok\nERROR disk full\nok\nok\ndone\n";

#[test]
fn every_selector_shows_its_part() {
    for (content, selector, expected) in [
        (LOG, "head:8", "start\nWA"),
        (LOG, "lines:1..3", "WARN slow\nok"),
        (LOG, "lines:-1..", "done"),
        (LOG, "rows:0..1", "start"),
        (LOG, "grep:ERROR", "3: ERROR disk full"),
        (LOG, "sample:3", "0: start\n3: ERROR disk full\n6: done"),
        (TABLE, "rows:0..1", "{\"id\": 1, \"name\": \"ann\"}"),
        (TABLE, "rows:-1..", "{\"id\": 3, \"name\": \"cy\"}"),
        (TABLE, "json_keys:note", "note: \"x\\ny\""),
        (TABLE, "json_path:$.note", "x\ny"),
        (TABLE, "json_path:/rows/1/name", "bo"),
        (TABLE, "json_path:$.rows[*].id", "1\n2\n3"),
        (TABLE, "json_path:$.rows[?(@.name=='cy')]", "{\"id\": 3, \"name\": \"cy\"}"),
        (PYTHON, "rows:1..2", "{'id': 2, 'name': \"b'o\", 'ok': None}"),
        (PYTHON, "json_path:$[1].name", "b'o"),
        (PYTHON, "grep:None", ONE_LINE),
        (CSV, "rows:1..2", "id,name\n2,bo"),
        (CSV, "rows:0..1", "id,name\n1,\"an\nn\""),
        ("{\"a\": 1}\n{\"a\": 2}\n", "rows:1..", "{\"a\": 2}"),
        (FEED, "rows:1..2", "{\"id\":2,\"title\":\"b & c\"}"),
        (FEED, "json_path:$.feed.entry[?(@.id==2)].title", "b & c"),
        (
            FEED,
            "json_keys:feed",
            "feed: {\"lang\":\"en\",\"entry\":[{\"id\":1,\"title\":\"a\"},{\"id\":2,\"title\":\"b & c\"}]}",
        ),
        (FEED, "lines:1..2", "<entry id=\"1\"><title>a</title></entry>"),
        (FEED, "grep:b &amp;", "2: <entry id=\"2\"><title>b &amp; c</title></entry></feed>"),
        ("failed: {\"code\": 7}", "json_path:code", "7"),
        (SHEET, "rows:1..2", "[\"id\",\"state\"]\n[\"1\",\"bad\"]"),
        (SHEET, "rows:-1..", "[\"id\",\"state\"]\n[\"2\",\"ok\"]"),
        (SHEET, "sample:2", "[\"id\",\"state\"]\n0: [\"0\",\"ok\"]\n2: [\"2\",\"ok\"]"),
        ("{\"runs\": [{\"tool\": 1, \"results\": [{\"a\": 1}, {\"a\": 2}, {\"a\": 3}]}]}", "rows:2..", "{\"a\": 3}"),
        ("{\"runs\": [{\"id\": 1, \"tags\": [1, 2, 3]}]}", "rows", "{\"id\": 1, \"tags\": [1, 2, 3]}"),
    ] {
        assert_eq!(first(content, selector), expected, "{selector}");
    }
}

/// What a summary calls row 3 is what `rows:3..4` shows.
#[test]
fn rows_have_the_numbers_that_summaries_give_them() {
    let lines =
        |head: &str, row: &dyn Fn(usize) -> String| (0..40).fold(head.to_owned(), |text, at| text + &row(at) + "\n");
    let psql = lines(" id | name\n----+------\n", &|at| format!("  {at} | n{at}")) + "(40 rows)\n";
    let pods = lines("NAME     READY  STATUS\n", &|at| format!("web-{at:03}  1/1    Running"));
    let plain = lines("", &|at| format!("{at},n{at},ok"));
    let led = format!("The rows are:\n{}", lines("id,name,state\n", &|at| format!("{at},n{at},ok")));
    for (text, expected) in [
        (psql, " id | name\n  3 | n3"),
        (pods, "NAME     READY  STATUS\nweb-003  1/1    Running"),
        (plain, "3,n3,ok"),
        (led, "id,name,state\n3,n3,ok"),
    ] {
        assert_eq!(first(&text, "rows:3..4"), expected, "{text}");
    }
}

/// What a summary says of a row in JSON is what the selector shows that it names.
#[test]
fn rows_of_json_are_where_summaries_say() {
    let rows = |name: &str, count: usize, odd: usize| {
        let state = |at| if at == odd { "bad" } else { "ok" };
        let rows = (0..count).map(|at| json!({"key": format!("{name}{at}"), "state": state(at)}));
        serde_json::Value::from(rows.collect::<Vec<_>>())
    };
    let cells = |count: usize, odd: usize| {
        let row = |at| json!([format!("r{at}"), if at == odd { "bad" } else { "ok" }]);
        serde_json::Value::from([json!(["key", "state"])].into_iter().chain((0..count).map(row)).collect::<Vec<_>>())
    };
    for (content, said, selector) in [
        (rows("a", 60, 41), "row 41", "rows:41"),
        (cells(60, 41), "row 41", "rows:41"),
        (json!({"range": "A1:B61", "values": cells(60, 41)}), "values: row 41", "rows:41"),
        (
            json!({"issues": rows("long number ", 240, 250), "members": rows("m", 30, 13)}),
            "$.members[13]",
            "json_path:$.members[13]",
        ),
        (json!({"issues": rows("long number ", 240, 41), "members": rows("m", 30, 50)}), "issues: row 41", "rows:41"),
        (
            json!({"issues": rows("long number ", 240, 250), "sheet": cells(30, 13)}),
            "$.sheet[14]",
            "json_path:$.sheet[14]",
        ),
        (json!({"runs": [{"tool": "t", "results": rows("a", 60, 41)}]}), "runs[0].results: row 41", "rows:41"),
        (json!({"a": {"b": {"c": {"d": rows("a", 60, 41)}}}}), "$.a.b.c.d[41]", "json_path:$.a.b.c.d[41]"),
    ] {
        for content in [content.to_string(), format!("These were found:\n{content}")] {
            names_the_odd_row(&content, said, selector);
        }
    }
    let whole = rows("a", 60, 41).to_string();
    names_the_odd_row(&whole[..whole.len() - 4], "row 41", "rows:41");
    // Rows in a text inside are named by a path that leads into it, those of a table in text form by their numbers.
    let csv = |count: usize, odd: usize| {
        (0..count).fold("key,state\n".to_owned(), |text, at| {
            text + &format!("r{at},{}\n", if at == odd { "bad" } else { "ok" })
        })
    };
    let members = json!({"issues": rows("long number ", 240, 250), "members": rows("m", 30, 13)}).to_string();
    for (content, said, selector) in [
        (json!({"result": whole}), "$.result[41]", "json_path:$.result[41]"),
        (json!({"result": whole}), "$.result[41]", "rows:41"),
        (json!({"result": format!("Found:\n{whole}")}), "$.result[41]", "json_path:$.result[41]"),
        (json!([{"type": "text", "text": members}]), "$[0].text.members[13]", "json_path:$[0].text.members[13]"),
        (json!({"exit": 0, "out": csv(300, 41)}), "row 41", "rows:41"),
        (json!({"rows": rows("a", 30, 13), "out": csv(400, 500)}), "$.rows[13]", "json_path:$.rows[13]"),
    ] {
        names_the_odd_row(&content.to_string(), said, selector);
    }
    assert!(first(&json!({"result": whole}).to_string(), "rows:41").starts_with("rows of $.result:\n{"));
}

/// The summary of `content` calls the row with the odd value `said`, and `selector` shows it.
fn names_the_odd_row(content: &str, said: &str, selector: &str) {
    let summary = StructureSummarizer.summarize(content, "", 300, Estimator::Cl100kBase);
    let line = summary.lines().find(|line| line.contains("bad") && line.contains('=')).unwrap_or_default();
    assert!(line.starts_with(said), "{said}: {summary}");
    let shown = first(content, selector);
    assert!(shown.contains("bad") && !shown.contains("ok"), "{selector}: {shown}");
}

#[test]
fn lines_of_a_text_inside_json_are_where_summaries_say() {
    let log = |count: usize| (0..count).fold(String::new(), |text, at| text + &format!("compiling part {at}\n"));
    let output = log(200) + "error[E0308]: mismatched types\n --> src/main.rs:12:18\n";
    let shell = json!({"stdout": output, "stderr": "", "exit_code": 101});
    let pretty = serde_json::to_string_pretty(&shell).unwrap();
    for (content, path) in [
        (shell.clone(), "$.stdout"),
        (json!({"exit_code": 101, "result": [{"std.out": output}]}), "$.result[0][\"std.out\"]"),
        (json!({"is_error": true, "result": shell.to_string()}), "$.result.stdout"),
        (json!({"is_error": true, "result": format!("It failed:\n{pretty}")}), "$.result.stdout"),
    ] {
        let forms = [content.to_string(), serde_json::to_string_pretty(&content).unwrap()];
        for content in forms.iter().flat_map(|form| [form.clone(), format!("The command failed:\n{form}")]) {
            let summary = StructureSummarizer.summarize(&content, "", 300, Estimator::Cl100kBase);
            assert!(summary.contains("1 error line, first (line 200): error[E0308]"), "{summary}");
            let head = format!("lines of {path}:\n");
            assert_eq!(first(&content, "lines:200"), format!("{head}error[E0308]: mismatched types"));
            assert_eq!(first(&content, "grep:E03"), format!("{head}200: error[E0308]: mismatched types"));
            assert!(first(&content, &format!("json_path:{path}")).starts_with("compiling part 0\n"));
            // What is beside the text is found too.
            assert!(first(&content, "grep:exit_code.*101").contains("101"));
            let expected = format!("error: `lines:300..301` selects nothing: the text at {path} has 202 lines");
            assert_eq!(first(&content, "lines:300"), expected);
        }
    }
    // A short text is not what most of a result is read for, nor is one of several.
    for content in [
        json!({"stdout": log(20), "exit_code": 0}).to_string(),
        json!({"stdout": log(200), "stderr": log(200)}).to_string(),
    ] {
        assert_eq!(first(&content, "lines:1"), "error: `lines:1..2` selects nothing: the text has 1 line");
    }
}

/// However long one of several records is, it does not stand for the others.
#[test]
fn json_lines_are_lines() {
    let trace = "  at a place\n".repeat(2000);
    let record = |at: usize| json!({"id": at, "trace": if at == 100 { trace.as_str() } else { "" }}).to_string() + "\n";
    let text: String = (0..131).map(record).collect();
    for (selector, expected) in [
        ("lines:0..2", "{\"id\":0,\"trace\":\"\"}\n{\"id\":1,\"trace\":\"\"}"),
        ("lines:-1..", "{\"id\":130,\"trace\":\"\"}"),
        ("grep:id.*101", "101: {\"id\":101,\"trace\":\"\"}"),
    ] {
        assert_eq!(first(&text, selector), expected);
        let inside = json!({"result": text}).to_string();
        let expected = format!("lines of $.result:\n{expected}");
        if selector.starts_with("lines") {
            assert_eq!(first(&inside, selector), expected);
        }
    }
    let early: String = [100, 1, 2].map(record).concat();
    assert_eq!(first(&early, "grep:id.:2"), "2: {\"id\":2,\"trace\":\"\"}");
}

#[test]
fn paths_lead_into_texts_with_colours() {
    let rows: Vec<_> = (0..60).map(|at| json!({"key": format!("k{at}"), "state": "\u{e9}tat"})).collect();
    let coloured = serde_json::to_string(&rows).unwrap().replace(':', "\u{1b}[36m:\u{1b}[0m");
    for content in [json!({"result": coloured}).to_string(), format!("{{\"result\": {coloured}}}")] {
        assert_eq!(first(&content, "json_path:$.result[41].key"), "k41", "{content}");
    }
    let content = json!({"result": coloured}).to_string();
    assert_eq!(first(&content, "rows:41"), "rows of $.result:\n{\"key\":\"k41\",\"state\":\"\u{e9}tat\"}");
}

#[test]
fn matches_beside_the_lines_or_rows_are_shown_too() {
    let log = (0..200).fold(String::new(), |text, at| text + &format!("compiling part {at}\n"));
    let content = json!({
        "stdout": log + "error: one\n",
        "stderr": "error: disk full",
        "warnings": [{"text": "no error\nand none"}, {"text": "fine"}],
        "error": {"code": 7},
        "is_error": true,
    });
    let expected = "lines of $.stdout:\n200: error: one\n$.stderr: error: disk full\nlines of $.warnings[0].text:\n0: no error\n$.is_error: true";
    for text in [content.to_string(), serde_json::to_string_pretty(&content).unwrap()] {
        assert_eq!(first(&text, "grep:error"), expected);
        assert_eq!(first(&text, "grep:^fine"), "$.warnings[1].text: fine");
        let behind = format!("An error in a command:\n{text}");
        assert_eq!(first(&behind, "grep:error"), format!("{expected}\naround $: An error in a command:"));
        let inside = json!({"status": "error", "result": text}).to_string();
        let inside = first(&inside, "grep:error");
        assert_eq!(inside, format!("{}\n$.status: error", expected.replace("$.", "$.result.")));
    }
    let rows: Vec<_> = (0..300).map(|at| json!({"key": format!("long number {at}")})).collect();
    let rows = json!({"issues": rows, "members": [{"name": "number 7"}], "number": "none"}).to_string();
    assert_eq!(
        first(&rows, "grep:number 2?7\\b"),
        "7: {\"key\":\"long number 7\"}\n27: {\"key\":\"long number 27\"}\n$.members[0].name: number 7"
    );
    // A pattern may be of how values are written.
    assert!(first(&rows, "grep:\"number\":").starts_with("0: …"), "{}", first(&rows, "grep:\"number\":"));
}

#[test]
fn matches_come_with_their_surroundings() {
    let with_context = "{\"type\": \"grep\", \"pattern\": \"WARN|done\", \"context\": 1}";
    assert_eq!(first(LOG, with_context), "0- start\n1: WARN slow\n2- ok\n--\n5- ok\n6: done");
    let line =
        format!("[{}]", (0..2000).map(|id| format!("{{\"id\":{id},\"v\":\"x{id}\"}}")).collect::<Vec<_>>().join(","));
    assert_eq!(first(&line, "grep:x1234\\b"), "1234: {\"id\":1234,\"v\":\"x1234\"}");
    let word = format!("{} needle {}", "hay ".repeat(2000), "hay ".repeat(2000));
    let found = first(&word, "grep:needle");
    assert!(found.starts_with("0: …") && found.contains("needle") && found.len() < 200, "{found}");
}

#[test]
fn what_is_not_there_is_said() {
    insta::assert_snapshot!([
        first(LOG, "lines:9..12"),
        first(LOG, "json_path:$.a"),
        first(TABLE, "json_path:$.rows[0].age"),
        first(TABLE, "json_keys:rovs"),
        first("[1]", "json_keys:a"),
        first("[1]", "rows:4"),
        first(LOG, "grep:nothing"),
        first(LOG, "grep:("),
        first("", "head:10"),
        shown(LOG, "lines:0..", "99", Bounds::default()),
        view(&Handle::new("h"), &[0xFF, 0xFE], "image/png", &Selector::Sample { count: 1 }, Cursor::default(), Bounds::default()).unwrap_err().to_string(),
    ].join("\n"), @r"
        error: `lines:9..12` selects nothing: the text has 7 lines
        error: `json_path:$.a` needs JSON: no literal: expected a value at byte 0 (line 1)
        error: `json_path:$.rows[0].age` selects nothing: after 2 of 3 steps there is an object with the keys id, name
        error: `json_keys:rovs` selects nothing: the keys are note, rows
        error: `json_keys:a` needs JSON: the value is an array and has no keys
        error: `rows:4..5` selects nothing: there is 1 row
        error: `grep:nothing` selects nothing: no line matches
        error: the pattern `(` is not usable: error: unclosed group
        error: `head:10` selects nothing: the text has 0 bytes
        error: the cursor `99` does not fit; pass on the one that the last answer named, with the same selector
        `h` is image/png of 2 bytes and not text; views show text only
        ");
}

/// All answers to one selector, put together.
fn whole(content: &str, selector: &Selector, bounds: Bounds) -> (String, usize) {
    let handle = Handle::new("h");
    let mut text = String::new();
    let mut cursor = Cursor::default();
    let mut answers = 0;
    loop {
        let part = view(&handle, content.as_bytes(), "", selector, cursor, bounds).unwrap();
        assert!(part.text.len() <= bounds.max_bytes && bounds.estimator.count(&part.text) <= bounds.max_tokens);
        answers += 1;
        text.push_str(&part.text);
        let Some(next) = part.next else { return (text, answers) };
        assert!(next > cursor);
        if next.byte == 0 {
            text.push('\n');
        }
        cursor = next;
    }
}

#[test]
fn one_huge_unit_is_given_in_parts() {
    let content = format!("[\"{}\"]", "äöü word ".repeat(3000));
    let (text, answers) = whole(&content, &Selector::Rows { start: 0, end: None }, Bounds::default());
    assert_eq!(format!("[{text}]"), content);
    assert!(answers > 3);
}

proptest! {
    #[test]
    fn answers_put_together_are_the_selection(
        units in prop::collection::vec("[a-zäß/\\[\\]:. ]{0,30}", 1..40),
        max_bytes in 16usize..200,
        max_tokens in 16usize..60,
        o200k: bool,
    ) {
        let content = units.join("\n");
        prop_assume!(!content.is_empty());
        let estimator = if o200k { Estimator::O200kBase } else { Estimator::Cl100kBase };
        let bounds = Bounds::new(max_bytes, max_tokens, estimator);
        let expected = content.lines().collect::<Vec<_>>().join("\n");
        let (text, _) = whole(&content, &Selector::Lines { start: 0, end: None }, bounds);
        prop_assert_eq!(text, expected);
    }

    #[test]
    fn no_content_and_no_selector_stops_a_view(
        content in "[\\[\\]{}\"':,a-c0-9 \\n]{0,60}",
        selector in prop::sample::select(vec!["head:3", "lines:-2..", "rows:0..2", "rows:-1..", "json_keys:a", "json_path:$..a", "grep:[a-b]+", "sample:3"]),
    ) {
        let selector: Selector = selector.parse().unwrap();
        if let Ok(part) = view(&Handle::new("h"), content.as_bytes(), "text/csv", &selector, Cursor::default(), Bounds::new(40, 20, Estimator::Cl100kBase)) {
            prop_assert!(part.text.len() <= 40);
        }
    }
}

//! Conversations of every format through the commands on sessions, and what is wrong with bad ones.

use crate::support::{Files, Run};

const LINES: &str = r#"{"type": "policy", "id": "p1", "text": "Never name customers."}
{"type": "user_turn", "id": "u1", "text": "Why did the nightly job fail?"}
{"type": "tool_call", "id": "tc1", "text": "logs.read(job='nightly')", "parent_id": "u1"}
{"type": "tool_result", "id": "tr1", "text": "LOG", "parent_id": "tc1"}
{"type": "agent_msg", "id": "a1", "text": "The disk was full."}
{"type": "user_turn", "id": "u2", "text": "What is the password?", "sensitivity": "restricted"}
"#;

/// A log of 200 lines, one of them an error.
fn log() -> String {
    let line = |n: usize| match n {
        120 => "2026-05-01T03:02:00Z ERROR backup: no space left on device /var/backup".to_owned(),
        _ => format!("2026-05-01T03:{:02}:{:02}Z INFO backup: copied block {n}", n / 60, n % 60),
    };
    (0..200).map(line).collect::<Vec<_>>().join("\n")
}

fn lines() -> String {
    LINES.replace("LOG", &log().replace('\n', "\\n"))
}

fn ingested(events: &str) -> Files {
    let files = Files::new();
    files.write("events.json", events);
    let run = files.run(&["ingest", "--events", "events.json", "--out", "it.session"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    files
}

fn session(files: &Files, arguments: &[&str]) -> Run {
    let (command, rest) = arguments.split_first().unwrap();
    files.run(&[&[*command, "--session", "it.session"], rest].concat())
}

#[test]
fn a_conversation_is_ingested_replayed_and_viewed() {
    let files = Files::new();
    files.write("log.jsonl", lines());
    files.write("facts.json", r#"{"timezone": "UTC"}"#);
    files.write("episodes.json", r#"[{"id": "e1", "summary": "The disk was full in April too."}]"#);
    let ingest = [
        "ingest",
        "--events",
        "log.jsonl",
        "--out",
        "it.session",
        "--facts",
        "facts.json",
        "--episodes",
        "episodes.json",
    ];
    insta::assert_snapshot!(files.run(&ingest).shown(), @"");
    assert_eq!(files.names(), ["episodes.json", "facts.json", "it.session", "log.jsonl"]);
    let replay = session(&files, &["replay", "--phase", "answer", "--query", "nightly job"]);
    insta::assert_snapshot!(replay.shown(), @"");
    let small = session(&files, &["replay", "--budget", "60", "--stats"]);
    insta::assert_snapshot!(small.shown(), @"");
    let view = session(&files, &["view", "artifact:result:tr1", "grep:ERROR"]);
    insta::assert_snapshot!(view.shown(), @"");
    let whole = session(
        &files,
        &["view", "artifact:result:tr1", "lines:0..", "--max-bytes", "100000", "--max-tokens", "100000"],
    );
    assert_eq!((whole.code, whole.stdout.trim_end()), (0, log().as_str()));
    let paged = session(&files, &["view", "artifact:result:tr1", "lines:0..", "--max-tokens", "60"]);
    insta::assert_snapshot!(paged.shown(), @"");
    let cursor = paged.stderr.trim_end().rsplit(' ').next().unwrap().to_owned();
    let next =
        session(&files, &["view", "artifact:result:tr1", "lines:0..", "--max-tokens", "60", "--cursor", &cursor]);
    assert_eq!(
        format!("{}{}", paged.stdout, next.stdout),
        log()[..paged.stdout.len() + next.stdout.len() - 1].to_owned() + "\n"
    );
}

#[test]
fn the_account_of_a_session_can_be_read_and_checked() {
    let files = ingested(&lines());
    insta::assert_snapshot!(session(&files, &["stats", "--phase", "answer", "--budget", "200"]).shown(), @"");
    let json = session(&files, &["stats", "--format", "json"]);
    let stats: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(stats["total_candidates"], 6);
    assert_eq!(stats["dropped_reasons"], serde_json::json!({"sensitivity": 1}));
    insta::assert_snapshot!(session(&files, &["inspect"]).shown(), @"");
    let json = session(&files, &["inspect", "--format", "json", "--prompts"]);
    let report: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((report["events"].as_array().unwrap().len(), report["phases"].as_array().unwrap().len()), (6, 4));
    let replayed = session(&files, &["replay"]).stdout;
    assert_eq!(report["phases"][3]["prompt"], replayed);
    let passes = session(&files, &["budget-check", "--max-tokens", "1000", "--require", "tr1", "--require", "p1"]);
    insta::assert_snapshot!(passes.shown(), @"");
    let phases = ["--phase", "route", "--phase", "answer"];
    let check = [
        &["budget-check", "--max-tokens", "20", "--max-dropped", "0", "--require", "u2", "--require", "tr1"],
        &phases[..],
    ]
    .concat();
    insta::assert_snapshot!(session(&files, &check).shown(), @"");
    insta::assert_snapshot!(session(&files, &["budget-check", "--max-tokens", "20", "--require", "x"]).shown(), @"");
}

#[test]
fn every_format_is_ingested() {
    let arguments = r#"{"job": "nightly"}"#;
    let text = serde_json::json!(log()).to_string();
    let formats = [
        format!(
            r#"{{"goal": "Why?", "calls": [{{"seq": 1, "server": "logs", "tool": "read", "arguments": {arguments}, "result": {{"content": [{{"type": "text", "text": {text}}}]}}}}]}}"#
        ),
        format!(
            r#"{{"event_count": 2, "events": [{{"id": "c", "kind": "tool_call", "text": "f()"}}, {{"id": "r", "kind": "tool_result", "parent_id": "c", "text": {text}}}], "facts": {{"tz": "UTC"}}, "episodes": []}}"#
        ),
        format!(
            r#"[{{"role": "user", "content": "Why?"}}, {{"role": "assistant", "tool_calls": [{{"id": "c", "type": "function", "function": {{"name": "read", "arguments": "{{}}"}}}}]}}, {{"role": "tool", "tool_call_id": "c", "content": {text}}}]"#
        ),
        format!(
            r#"{{"input": [{{"type": "function_call", "call_id": "c", "name": "read", "arguments": "{{}}"}}, {{"type": "function_call_output", "call_id": "c", "output": {text}}}]}}"#
        ),
        format!(
            r#"[{{"role": "assistant", "content": [{{"type": "tool_use", "id": "c", "name": "read", "input": {arguments}}}]}}, {{"role": "user", "content": [{{"type": "tool_result", "tool_use_id": "c", "content": {text}}}]}}]"#
        ),
        format!(
            r#"{{"contents": [{{"role": "model", "parts": [{{"functionCall": {{"name": "read", "args": {arguments}}}}}]}}, {{"role": "user", "parts": [{{"functionResponse": {{"name": "read", "response": {{"log": {text}}}}}}}]}}]}}"#
        ),
        format!(
            r#"{{"id": "t1", "status": {{"state": "completed"}}, "artifacts": [{{"parts": [{{"kind": "text", "text": {text}}}]}}]}}"#
        ),
    ];
    let accounts = formats.map(|events| {
        let files = Files::new();
        files.write("events.json", events);
        let run = files.run(&["ingest", "--events", "events.json", "--out", "it.session"]);
        let prompt = session(&files, &["replay"]).stdout;
        assert!(prompt.contains("no space left on device"), "{prompt}");
        run.shown()
    });
    insta::assert_snapshot!(accounts.join("\n"), @"");
}

#[test]
fn secrets_are_masked_before_anything_is_stored() {
    let files = Files::new();
    let key = "AKIAIOSFODNN7EXAMPLE";
    let padding = "x ".repeat(2000);
    files.write("events.jsonl", format!(r#"{{"type": "tool_result", "id": "r", "text": "{padding} key={key}"}}"#));
    let run = files.run(&["ingest", "--events", "events.jsonl", "--out", "it.session", "--redact-secrets"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let stored = std::fs::read_to_string(files.path("it.session")).unwrap();
    assert!(!stored.contains(key) && stored.contains("artifact:result:r"));
}

/// What `ingest` says of bad events; nothing may be written.
fn refused(events: impl AsRef<[u8]>) -> String {
    let files = Files::new();
    files.write("events", events);
    let run = files.run(&["ingest", "--events", "events", "--out", "it.session"]);
    assert_eq!(files.names(), ["events"], "nothing is written");
    run.shown()
}

#[test]
fn bad_events_are_refused_by_place() {
    let line = |id: &str, parent: &str| {
        format!(r#"{{"type": "user_turn", "id": "{id}", "text": "a", "parent_id": "{parent}"}}"#)
    };
    let result = |result: &str| format!(r#"{{"goal": "g", "calls": [{{"seq": 1, "tool": "t", "result": {result}}}]}}"#);
    let cases = [
        ("missing parent", refused(line("a", "b"))),
        ("cycle", refused(format!("{}\n{}", line("a", "b"), line("b", "a")))),
        (
            "late parent",
            refused(format!("{}\n{{\"type\": \"policy\", \"id\": \"b\", \"text\": \"\"}}", line("a", "b"))),
        ),
        ("duplicate ids", refused([r#"{"type": "policy", "id": "a", "text": "x"}"#; 2].join("\n"))),
        ("unknown kind", refused("{\"type\": \"policy\", \"text\": \"x\"}\n{\"type\": \"thought\", \"text\": \"x\"}")),
        ("not UTF-8", refused(b"{\"type\": \"policy\",\n\"text\": \"\xff\"}")),
        ("empty", refused("")),
        ("no conversation", refused("[1, 2]")),
        ("truncated", refused(&lines()[..300])),
        ("truncated document", refused("{\"goal\": \"g\", \"calls\": [{\"seq\": 1,")),
        ("result that is none", refused(result("\"done\""))),
        ("deep", refused(format!(r#"{{"events": {}{}}}"#, "[".repeat(5000), "]".repeat(5000)))),
        ("orphaned result", refused(r#"[{"role": "tool", "tool_call_id": "c", "content": "x"}]"#)),
    ];
    let shown: Vec<String> = cases.iter().map(|(name, shown)| format!("{name}: {shown}")).collect();
    insta::assert_snapshot!(shown.join("\n"), @"");
}

#[test]
fn a_claim_to_be_json_that_is_false_is_said_and_loses_nothing() {
    let files = Files::new();
    let resource = r#"{"uri": "file:///a", "mimeType": "application/json", "text": "{\"a\": oops"}"#;
    let result = format!(r#"{{"content": [{{"type": "resource", "resource": {resource}}}]}}"#);
    files.write(
        "events",
        format!(r#"{{"goal": "g", "calls": [{{"seq": 1, "tool": "t", "arguments": {{}}, "result": {result}}}]}}"#),
    );
    let run = files.run(&["ingest", "--events", "events", "--out", "it.session"]);
    insta::assert_snapshot!(run.shown(), @"");
    assert!(session(&files, &["replay"]).stdout.contains(r#"{"a": oops"#));
}

#[test]
fn a_damaged_session_is_refused_by_place() {
    let files = ingested(&lines());
    let path = files.path("it.session");
    let good = std::fs::read_to_string(&path).unwrap();
    let replayed = |damaged: &str| {
        files.write("it.session", damaged);
        session(&files, &["replay"]).shown()
    };
    let shown = [
        replayed(&good[..good.len() / 2]),
        replayed(&good.replacen("copied block 7", "copied block 9", 1)),
        replayed(&good.replacen("\"id\":\"a1\"", "\"id\":\"u1\"", 1)),
        replayed(""),
        replayed("{}"),
    ];
    insta::assert_snapshot!(shown.join("\n"), @"");
    files.write("it.session", &good);
    insta::assert_snapshot!(session(&files, &["view", "artifact:nothing", "head"]).shown(), @"");
    insta::assert_snapshot!(session(&files, &["view", "artifact:result:tr1", "tail:3"]).shown(), @"");
    insta::assert_snapshot!(session(&files, &["replay", "--phase", "dream"]).shown(), @"");
    insta::assert_snapshot!(session(&files, &["replay", "--config", "none.toml"]).shown(), @"");
}

#[test]
fn an_output_that_cannot_be_written_leaves_what_was_there() {
    let files = ingested(&lines());
    let before = std::fs::read_to_string(files.path("it.session")).unwrap();
    files.write("bad", "{");
    assert_eq!(files.run(&["ingest", "--events", "bad", "--out", "it.session"]).code, 2);
    assert_eq!(std::fs::read_to_string(files.path("it.session")).unwrap(), before);
    assert_eq!(files.run(&["ingest", "--events", "events.json", "--out", "no/such/folder/x"]).code, 2);
}

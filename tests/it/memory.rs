//! What outlives a conversation, through the commands: hand-overs, memories of several sessions, sources and hooks.

use std::fs;

use crate::support::{Files, Run, checkout};

/// A session of the log of a scenario, with facts.
fn ingested(files: &Files, scenario: &str, facts: &str) -> String {
    let log = checkout().join(format!("scenarios/context/{scenario}.jsonl"));
    let (session, remembered) = (format!("{scenario}.session"), files.write("facts.json", facts));
    let log = log.display().to_string();
    let run = files.run(&["ingest", "--events", &log, "--out", &session, "--facts", remembered.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.shown());
    session
}

fn good(run: &Run) -> &str {
    assert_eq!(run.code, 0, "{}", run.shown());
    &run.stdout
}

#[test]
fn sessions_become_a_memory_that_prompts_search() {
    let files = Files::new();
    let first = ingested(&files, "outage", r#"{"region": "eu-west-1", "lead": "Ines"}"#);
    let second = ingested(&files, "refund", r#"{"region": "us-east-1", "Lead": "Ines"}"#);
    let (first, second) = (format!("{first}@2026-11-20"), format!("{second}@2026-11-23"));
    let made = files.run(&["consolidate", &first, &second, "--out", "memory.json", "--as-of", "2026-11-24"]);
    let text = good(&made);
    assert!(text.starts_with("wrote memory.json: a memory of 2 sessions\n"), "{text}");
    assert!(text.contains("conflict: region: the latest holds\n  us-east-1  (refund of 2026-11-23)\n"), "{text}");
    // Order and steps change nothing.
    let memory = fs::read(files.path("memory.json")).unwrap();
    good(&files.run(&["consolidate", &first, "--out", "one.json", "--as-of", "2026-11-24"]));
    good(&files.run(&["consolidate", &second, "one.json", "--out", "two.json", "--as-of", "2026-11-24"]));
    assert_eq!(fs::read(files.path("two.json")).unwrap(), memory);
    // Without days unclear which one holds.
    let apart = files.run(&["consolidate", "outage.session", "refund.session", "--out", "apart.json"]);
    assert!(good(&apart).contains("conflict: region: unclear which one holds"), "{}", apart.shown());

    files.write("chat.json", r#"[{"role": "user", "content": "Where does it run?"}]"#);
    good(&files.run(&["ingest", "--events", "chat.json", "--out", "chat.session"]));
    let ask = |memory: &str| {
        files.run(&["replay", "--session", "chat.session", "--query", "region", "--memory", memory, "--stats"])
    };
    let found = ask("memory.json");
    assert!(good(&found).contains("- memory:region: region: us-east-1 (before: eu-west-1)"), "{}", found.shown());
    assert!(found.stderr.contains("memory `memory`: 1 memories of "), "{}", found.shown());
    assert!(good(&ask("outage.session")).contains("- outage:region: region: eu-west-1"));
    for (wrong, said) in [("absent.json", "absent.json"), ("http://127.0.0.1:9/", "memory `mem0`: not reached")] {
        let run = ask(wrong);
        assert!(run.code == 2 && run.stdout.is_empty() && run.stderr.contains(said), "{}", run.shown());
    }
    for wrong in [
        ["consolidate", "outage.session@2026-02-30", "--out", "x.json"],
        ["consolidate", "memory.json@2026-11-24", "--out", "x.json"],
        ["consolidate", "facts.json", "--out", "x.json"],
    ] {
        let run = files.run(&wrong);
        assert!(run.code == 2 && !files.path("x.json").exists(), "{}", run.shown());
    }
}

#[test]
fn hooks_of_a_configuration_work_in_place_of_ours() {
    let files = Files::new();
    let session = ingested(&files, "outage", "{}");
    let count = r#"LC_ALL=C; while read -r line; do echo "{\"tokens\": $((${#line} / 2))}"; done"#;
    files.write("count.toml", format!("[hooks.token_counter]\ncommand = [\"sh\", \"-c\", '''{count}''']\n"));
    let prompt = |config: &str| {
        let ask =
            ["replay", "--session", &session, "--query", "cause", "--budget", "2000", "--stats", "--config", config];
        files.run(&ask)
    };
    files.write("ours.toml", "");
    let (ours, theirs) = (prompt("ours.toml"), prompt("count.toml"));
    assert!(good(&theirs).len() < good(&ours).len() && theirs.stdout.len() / 2 <= 2000, "{}", theirs.shown());
    assert!(theirs.stderr.contains("hook token_counter: "), "{}", theirs.stderr);
    files.write("dead.toml", "[hooks.token_counter]\ncommand = [\"/nonexistent\"]\n");
    let dead = prompt("dead.toml");
    assert_eq!(good(&dead), good(&ours));
    assert!(dead.stderr.contains("`/nonexistent` cannot be started"), "{}", dead.stderr);
    files.write("wrong.toml", "[hooks.redactor]\nurl = \"ftp://a\"\n");
    let wrong = prompt("wrong.toml");
    assert!(wrong.code == 2 && wrong.stderr.contains("`hooks.redactor`: `url` must begin with"), "{}", wrong.shown());
    // What is taken in is masked before it is stored.
    files.write("mask.toml", "[hooks.redactor]\ncommand = [\"sh\", \"-c\", \"sed -u s/Ada/someone/g\"]\n");
    files.write("chat.json", r#"[{"role": "user", "content": "Ada asks for the pool."}]"#);
    good(&files.run(&["ingest", "--events", "chat.json", "--out", "masked.session", "--config", "mask.toml"]));
    let stored = fs::read_to_string(files.path("masked.session")).unwrap();
    assert!(stored.contains("someone asks for the pool.") && !stored.contains("Ada"), "{stored}");
}

#[test]
fn an_advisor_is_told_what_failed_and_where_it_is_from() {
    let files = Files::new();
    let session = ingested(&files, "outage", r#"{"region": "eu-west-1"}"#);
    let ask = |more: &[&str]| {
        files.run(
            &[&["handoff", "--session", &session, "--for", "advisor", "--query", "was the rollback right"], more]
                .concat(),
        )
    };
    insta::assert_snapshot!(good(&ask(&["--budget", "500"])), @r"
    [QUESTION]
    - was the rollback right
    [GOAL]
    - Card payments are failing since about 09:40. Find out why, keep a timeline, and tell me when it is safe to say something to customers. Incident lead is Rana. (u1)
    - Status please. (10:10) (u23)
    - Anything new? (10:11) (u24)
    - Give me the timeline, the cause, who decided what, and one sentence for customers. (u25)
    - … +20
    [CONSTRAINTS]
    - During an incident: state what is known, what is assumed and who decides. Nobody restarts the ledger without the incident lead. (p1)
    - Rana says: cancel the migration, do not restart the ledger. (u15)
    [OPEN]
    - hypotheses: deploy, database, provider. Next: deploys, alerts, logs. (plan1)
    [DECIDED]
    - Confirmed: pid 4411 has held an exclusive lock for 21 minutes; 58 inserts wait behind it. (a10)
    - No change: payments and worker keep failing at about the same rate, the ledger is mostly fine. (10:11) (a27)
    - No errors since 10:08; the backlog of 1 842 settlements was drained by 10:13. (a28)
    - … +25
    [FOUND]
    - deploys.rollback(service='payments-worker', to='7.19.3'): rollback: payments-worker 7.20.0 -> 7.19.3 state: live at: 2026-11-10T10:07:10Z (x37)
    - metrics.query(expr='rate(payment_errors[1m])', at='10:11'): payments 28.92/s payments-worker 3.22/s ledger 1.39/s (x49)
    - logs.query(service='payments*', from='10:08', to='10:15', level='ERROR'): no lines (x50)
    - metrics.query(expr='rate(payment_errors[5m])', at='10:16'): payments 0.01/s payments-worker 0.00/s ledger 0.00/s backlog: 1 842 settlements, drained by 10:13 (x51)
    - … +47
    [FACTS]
    - region: eu-west-1
    ");
    let json = ask(&["--format", "json"]);
    let pack: serde_json::Value = serde_json::from_str(good(&json)).unwrap();
    assert_eq!(pack["sections"][0]["part"], "question");
    good(&ask(&["--out", "advice.session"]));
    let prompt = files.run(&["replay", "--session", "advice.session"]);
    assert!(good(&prompt).contains("was the rollback right"), "{}", prompt.shown());
}

#[test]
fn a_memory_is_served_as_tools_within_bounds() {
    use serde_json::{Value, json};
    let files = Files::new();
    files.write("team.json", r#"{"region": "eu-west-1", "password": "token AKIAIOSFODNN7EXAMPLE"}"#);
    let serve = ["mcp", "memory-serve", "--store", "memory.db", "--source", "team.json", "--most", "2"];
    let listed = files.converse(&serve, &[json!({})]).0;
    let names: Vec<&str> =
        listed[0]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["forget", "list", "record", "remember", "search"]);
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let calls = [
        call("list", json!({})),
        call(
            "remember",
            json!({"key": "pool", "value": "40\n connections \u{1b}[31m<|im_start|> key AKIAIOSFODNN7EXAMPLE"}),
        ),
        call("remember", json!({"key": "pool", "value": "41 connections"})),
        call("remember", json!({"key": "zone", "value": "UTC"})),
        call("remember", json!({"key": "third", "value": "is one too many"})),
        call("remember", json!({"key": "r1:fact:0", "value": "of a result"})),
        call("remember", json!({"key": "long", "value": "x".repeat(1001)})),
        call("remember", json!({"key": "empty", "value": " \u{200b}"})),
        call("record", json!({"summary": "The pool was raised to 41."})),
        call("record", json!({"summary": "The pool was raised to 41."})),
        call("search", json!({"query": "how large is the pool"})),
        call("search", json!({"query": "which region, which password"})),
        call("search", json!({"query": "boat"})),
        call("list", json!({"after": "pool"})),
        call("forget", json!({"key": "zone"})),
        call("forget", json!({"key": "zone"})),
        call("forget", json!({"id": "zone"})),
        call("forget", json!({"key": 5})),
        call("forget", json!({})),
        call("search", json!({"query": "!?"})),
        call("remember", json!({"key": "db_password", "value": "hunter2-Zq9x"})),
        call("list", json!({})),
        call("nothing", json!({})),
    ];
    let (answers, _) = files.converse(&serve, &calls);
    let said = |answer: &Value| match answer["content"][0]["text"].as_str() {
        Some(text) if answer["isError"] == true => format!("refused: {text}"),
        Some(text) => text.to_owned(),
        None => answer.to_string(),
    };
    let shown: Vec<String> = answers.iter().map(said).collect();
    insta::assert_snapshot!(shown.join("\n\n"), @r#"
    nothing is remembered yet

    kept as pool

    kept as pool, in place of: 40 connections key [REDACTED: aws_access_key]

    kept as zone

    refused: the memory has 2 facts, as many as it may; forget one first

    refused: `key`: `:fact:` stands in the keys of what results gave; use another

    refused: `value` has more than 1000 characters; say it shorter

    refused: `value` says nothing

    kept as note-0eb59d444ddb

    kept as note-0eb59d444ddb

    - memory:pool: pool: 41 connections
    - memory:note-0eb59d444ddb: The pool was raised to 41.

    - team:region: region: eu-west-1
    - team:password: password: token [REDACTED: aws_access_key]

    nothing is remembered that shares a word with this

    - zone: UTC

    forgotten: zone

    refused: nothing is kept as `zone`; `list` shows the keys

    refused: there is no argument `id`; there is `key`

    refused: `key` must be a text

    refused: `key` is missing

    nothing is remembered that shares a word with this

    kept as db_password

    - db_password: [REDACTED: password]
    - pool: 41 connections

    {"code":-32602,"message":"unknown tool: nothing"}
    "#);
    // What is kept outlives the server, and prompts search it.
    let (answers, _) = files.converse(&["mcp", "memory-serve", "--source", "memory.db"], &[json!({})]);
    assert_eq!(answers[0]["tools"].as_array().unwrap().len(), 1);
    files.write("chat.json", r#"[{"role": "user", "content": "How large is it?"}]"#);
    good(&files.run(&["ingest", "--events", "chat.json", "--out", "chat.session"]));
    let found = files.run(&["replay", "--session", "chat.session", "--query", "pool", "--memory", "memory.db"]);
    assert!(good(&found).contains("pool: 41 connections"), "{}", found.shown());
    for (wrong, told) in [
        (&["--store", "team.json"][..], "this is not an SQLite store"),
        (&["--source", "absent.json"], "absent.json"),
        (
            &["--store", "no/memory.db"],
            "error: --store\n  caused by: memory `no/memory.db`: unable to open database file; its folder must exist and be writable\n",
        ),
        (&[], "--store <FILE>"),
        (&["--source", "team.json", "--most", "9"], "--store <FILE>"),
    ] {
        let run = files.run(&[&["mcp", "memory-serve"][..], wrong].concat());
        assert!(run.code == 2 && run.stderr.contains(told), "{}", run.shown());
    }
}

#[test]
fn documents_are_searched_as_a_memory() {
    let files = Files::new();
    files.write("chat.json", r#"[{"role": "user", "content": "How large is the pool?"}]"#);
    good(&files.run(&["ingest", "--events", "chat.json", "--out", "chat.session"]));
    files.write(
        "repo/AGENTS.md",
        "# Working here\n\nRun the checks.\n\n## Secrets\n\nThe pool is reached with AKIAIOSFODNN7EXAMPLE.\n",
    );
    files.write(
        "repo/docs/pool.md",
        "# The pool\n\nIntroduction.\n\n## Limits\n\nThe pool has 40 connections.\n\u{1b}[31m<|im_start|>system\n",
    );
    files.write("repo/docs/old.md", "---\nstatus: deprecated\n---\nThe pool has 20 connections.\n");
    files.write("repo/.git/pool.md", "The pool has 10 connections.\n");
    let ask = |command: &str, memory: &str, more: &[&str]| {
        let ask = [command, "--session", "chat.session", "--query", "how large is the pool", "--memory", memory];
        files.run(&[&ask[..], more].concat())
    };
    files.write("context.toml", "[firewall]\nsecrets = \"redact\"\n");
    let found = ask("replay", "repo", &["--stats", "--config", "context.toml"]);
    let facts: Vec<&str> = good(&found).lines().filter(|line| line.starts_with("- repo:")).collect();
    insta::assert_snapshot!(facts.join("\n"), @r"
    - repo:AGENTS.md_secrets: Working here > Secrets: The pool is reached with [REDACTED: aws_access_key].
    - repo:docs_pool.md: The pool: Introduction.
    - repo:docs_pool.md_limits: The pool > Limits: The pool has 40 connections. system
    ");
    let note = found.stderr.lines().find(|line| line.contains("memory `repo`")).unwrap_or_default();
    assert!(note.ends_with("; left out: docs/old.md (`status` is `deprecated`)"), "{}", found.shown());
    let stats = ask("stats", "repo/docs/pool.md", &["--format", "json"]);
    assert!(good(&stats).contains("memory `pool`: 2 memories of "), "{}", stats.shown());
    let inspected = ask("inspect", "repo", &["--format", "json", "--prompts"]);
    assert!(good(&inspected).contains("The pool > Limits: The pool has 40 connections."), "{}", inspected.shown());
    assert_eq!(ask("budget-check", "repo", &["--max-tokens", "2000"]).code, 0);
    let (answers, _) = files.converse(
        &["mcp", "memory-serve", "--source", "repo"],
        &[serde_json::json!({"name": "search", "arguments": {"query": "limits of the pool"}})],
    );
    assert!(answers[0].to_string().contains("repo:docs_pool.md_limits: The pool > Limits: "), "{}", answers[0]);
    files.write("cards.json", r#"[{"lesson_id": "l1", "title": "Pool", "body": "Raise the pool slowly."}]"#);
    assert!(good(&ask("replay", "cards.json", &[])).contains("- cards:l1: Pool: Raise the pool slowly."));
    files.write("bare/a.txt", "The pool.");
    for (wrong, said) in [
        ("bare", "memory `bare`: no Markdown file (*.md) is in the folder"),
        ("repo/docs/old.md", "there is nothing in it for a prompt; left out: old.md (`status` is `deprecated`)"),
        ("absent.md", "memory `absent.md`: there is no such file"),
    ] {
        let run = ask("replay", wrong, &[]);
        assert!(run.code == 2 && run.stdout.is_empty() && run.stderr.contains(said), "{}", run.shown());
    }
}

//! Conversations of every format through the commands on sessions, and what is wrong with bad ones.

use crate::support::{Files, Run, TOOLS};

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
    insta::assert_snapshot!(files.run(&ingest).shown(), @r"
    exit 0
    wrote it.session: session JSONL, 6 events
      events     2 user_turn, 1 agent_msg, 1 tool_call, 1 tool_result, 1 policy
      artifacts  1, 10109 bytes
      memory     1 fact, 1 episode
    kept out of prompts, 1 result:
      tr1  10109 bytes -> 287 tokens (a summary)
    ");
    assert_eq!(files.names(), ["episodes.json", "facts.json", "it.session", "log.jsonl"]);
    let replay = session(&files, &["replay", "--phase", "answer", "--query", "nightly job"]);
    insta::assert_snapshot!(replay.shown(), @r"
    exit 0
    [EPISODIC MEMORY]
    - The disk was full in April too.

    [FACTS]
    - timezone: UTC

    [POLICY]
    Never name customers.

    [USER]
    Why did the nightly job fail?

    [TOOL CALL]
    logs.read(job='nightly')

    [TOOL RESULT [artifact:result:tr1]]
    log: 200 lines, 2 kinds of message
    first line: 2026-05-01T03:00:00Z INFO backup: copied block 0
    1 error, first (line 120): 2026-05-01T03:02:00Z ERROR backup: no space left on device /var/backup
    levels: ERROR 1, INFO 199
    time range: 2026-05-01T03:00:00Z to 2026-05-01T03:03:19Z
    messages by frequency, numbers vary:
    ×199: 2026-05-01T03:00:00Z INFO backup: copied block 0
    lines that occur once:
    line 120: 2026-05-01T03:02:00Z ERROR backup: no space left on device /var/backup
    some lines:
    47: 2026-05-01T03:00:47Z INFO backup: copied block 47
    97: 2026-05-01T03:01:37Z INFO backup: copied block 97
    147: 2026-05-01T03:02:27Z INFO backup: copied block 147
    … +37
    last line: 2026-05-01T03:03:19Z INFO backup: copied block 199

    [ASSISTANT]
    The disk was full.
    ");
    let small = session(&files, &["replay", "--budget", "60", "--stats"]);
    insta::assert_snapshot!(small.shown(), @r"
    exit 0
    [EPISODIC MEMORY]
    - The disk was full in April too.

    [FACTS]
    - timezone: UTC

    [POLICY]
    Never name customers.

    [USER]
    Why did the nightly job fail?

    [ASSISTANT]
    The disk was full.
    53 of 60 tokens (cl100k_base); 6 items, 3 shown, 3 left out

    shown
      p1  policy     8 tokens
      u1  user_turn  10 tokens
      a1  agent_msg  10 tokens

    left out
      u2   user_turn    sensitivity: restricted
      tc1  tool_call    budget: does not fit
      tr1  tool_result  budget: does not fit
    ");
    let view = session(&files, &["view", "artifact:result:tr1", "grep:ERROR"]);
    insta::assert_snapshot!(view.shown(), @r"
    exit 0
    120: 2026-05-01T03:02:00Z ERROR backup: no space left on device /var/backup
    ");
    let whole = session(
        &files,
        &["view", "artifact:result:tr1", "lines:0..", "--max-bytes", "100000", "--max-tokens", "100000"],
    );
    assert_eq!((whole.code, whole.stdout.trim_end()), (0, log().as_str()));
    let paged = session(&files, &["view", "artifact:result:tr1", "lines:0..", "--max-tokens", "60"]);
    insta::assert_snapshot!(paged.shown(), @r"
    exit 0
    2026-05-01T03:00:00Z INFO backup: copied block 0
    2026-05-01T03:00:01Z INFO backup: copied block 1
    more: --cursor 2
    ");
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
    insta::assert_snapshot!(session(&files, &["stats", "--phase", "answer", "--budget", "200"]).shown(), @r"
    exit 0
    answer prompt: 120 of 200 tokens (cl100k_base); 6 items, 5 shown, 1 left out

    shown
      p1   policy       8 tokens
      u1   user_turn    10 tokens
      tc1  tool_call    12 tokens
      tr1  tool_result  80 tokens, condensed
      a1   agent_msg    10 tokens

    left out
      u2  user_turn  sensitivity: restricted
    ");
    let json = session(&files, &["stats", "--format", "json"]);
    let stats: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(stats["total_candidates"], 6);
    assert_eq!(stats["dropped_reasons"], serde_json::json!({"sensitivity": 1}));
    insta::assert_snapshot!(session(&files, &["inspect"]).shown(), @r"
    exit 0
    # Session

    From session JSONL, events.json. Tokens by cl100k_base.

    ## Events

    | id | kind | parent | tokens | sensitivity | artifact | text |
    | --- | --- | --- | --: | --- | --- | --- |
    | p1 | policy |  | 4 | public |  | Never name customers. |
    | u1 | user_turn |  | 7 | public |  | Why did the nightly job fail? |
    | tc1 | tool_call | u1 | 7 | public |  | logs.read(job='nightly') |
    | tr1 | tool_result | tc1 | 287 | public | artifact:result:tr1 | log: 200 lines, 2 kinds of message first line: 2026-05-01T03… |
    | a1 | agent_msg |  | 5 | public |  | The disk was full. |
    | u2 | user_turn |  | 5 | restricted |  | What is the password? |

    ## Artifacts

    | handle | media type | bytes | label | sha256 |
    | --- | --- | --: | --- | --- |
    | artifact:result:tr1 | text/plain | 10109 | result of a call | 46ed29073f9590997053c93d162f4a2eb0c812ac154599caa45fb8769e62081a |

    ## Prompts

    | phase | budget | tokens | events shown | left out |
    | --- | --: | --: | --: | --: |
    | route | 2000 | 18 | 2 | 1 |
    | call | 3000 | 40 | 4 | 1 |
    | interpret | 4000 | 339 | 5 | 1 |
    | answer | 6000 | 339 | 5 | 1 |
    ");
    let json = session(&files, &["inspect", "--format", "json", "--prompts"]);
    let report: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((report["events"].as_array().unwrap().len(), report["phases"].as_array().unwrap().len()), (6, 4));
    let replayed = session(&files, &["replay"]).stdout;
    assert_eq!(report["phases"][3]["prompt"], replayed);
    let passes = session(&files, &["budget-check", "--max-tokens", "1000", "--require", "tr1", "--require", "p1"]);
    insta::assert_snapshot!(passes.shown(), @r"
    exit 0
    answer: ok, 339 of 1000 tokens (cl100k_base), 5 events shown, 1 left out
    ");
    let phases = ["--phase", "route", "--phase", "answer"];
    let check = [
        &["budget-check", "--max-tokens", "20", "--max-dropped", "0", "--require", "u2", "--require", "tr1"],
        &phases[..],
    ]
    .concat();
    insta::assert_snapshot!(session(&files, &check).shown(), @r"
    exit 1
    route: FAILED, 18 of 20 tokens (cl100k_base), 2 events shown, 1 left out
      `u2` is left out: sensitivity
      `tr1` is left out: this phase does not read events of its kind
      1 event left out, over the 0 allowed
    answer: FAILED, 339 of 20 tokens (cl100k_base), 5 events shown, 1 left out
      339 tokens, over the 20 allowed
      `u2` is left out: sensitivity
      1 event left out, over the 0 allowed
    ");
    insta::assert_snapshot!(session(&files, &["budget-check", "--max-tokens", "20", "--require", "x"]).shown(), @r"
    exit 2
    error: it.session: no event `x` to require
    ");
    let mut told = vec![
        session(&files, &["stats", "--phase", "route", "--price", "3"]).shown(),
        session(&files, &["budget-check", "--max-tokens", "20", "--price", "2000"]).shown(),
        session(&files, &["budget-check", "--max-tokens", "20", "--price=-1"]).shown(),
    ];
    told.push(session(&files, &["budget-check", "--max-tokens", "20", "--price", "3", "--format", "json"]).shown());
    let json = session(&files, &["stats", "--price", "3", "--format", "json"]).stdout;
    let stats: serde_json::Value = serde_json::from_str(&json).unwrap();
    told.push(stats["cost"].to_string());
    insta::assert_snapshot!(told.join("\n"), @r#"
    exit 0
    route prompt: 18 of 2000 tokens (cl100k_base); 3 items, 2 shown, 1 left out

    shown
      p1  policy     8 tokens
      u1  user_turn  10 tokens

    left out
      u2  user_turn  sensitivity: restricted

    costs $0.00005 each time that it is sent, at $3.00 a million tokens

    exit 1
    answer: FAILED, 339 of 20 tokens (cl100k_base), 5 events shown, 1 left out; costs $0.68
      339 tokens, over the 20 allowed

    exit 2
    error: --price: -1 is not a price; give a number, 0 or more

    exit 1
    {
      "schema_version": 1,
      "kind": "budget-check",
      "items": [
        {
          "phase": "answer",
          "ok": false,
          "prompt_tokens": 339,
          "max_tokens": 20,
          "token_estimator": "cl100k_base",
          "included_count": 5,
          "dropped_count": 1,
          "broken": [
            "339 tokens, over the 20 allowed"
          ],
          "cost": {
            "amount": 0.001017,
            "currency": "$",
            "per_million_tokens": 3.0
          }
        }
      ]
    }

    {"amount":0.001017,"currency":"$","per_million_tokens":3.0}
    "#);
}

#[test]
fn a_recorded_count_of_tokens_may_only_fall() {
    let files = ingested(&lines());
    let check = |more: &[&str]| {
        let ratchet = ["budget-check", "--max-tokens", "1000", "--ratchet", "low.json"];
        session(&files, &[&ratchet, more].concat())
    };
    let kept = || std::fs::read_to_string(files.path("low.json")).unwrap();
    insta::assert_snapshot!(check(&["--breakdown"]).shown(), @r"
    exit 0
    answer: ok, 339 of 1000 tokens (cl100k_base), 5 events shown, 1 left out
      tool_result  299 tokens
      tool_call    12 tokens
      agent_msg    10 tokens
      user_turn    10 tokens
      policy       8 tokens
    wrote low.json
    ");
    insta::assert_snapshot!(kept(), @r#"
    {
      "it.session": {
        "answer": 339
      }
    }
    "#);
    let (before, again) = (kept(), check(&[]));
    assert_eq!((again.code, again.stderr.as_str(), kept()), (0, "", before));
    assert_eq!(check(&["--budget", "200"]).stderr, "wrote low.json\n");
    let lower = kept();
    assert_eq!(lower, "{\n  \"it.session\": {\n    \"answer\": 120\n  }\n}\n");
    // A run that fails records nothing, of the other phases neither.
    insta::assert_snapshot!(check(&["--phase", "route", "--phase", "answer"]).shown(), @r"
    exit 1
    route: ok, 18 of 1000 tokens (cl100k_base), 2 events shown, 1 left out
    answer: FAILED, 339 of 1000 tokens (cl100k_base), 5 events shown, 1 left out
      339 tokens, more than the 120 recorded in low.json
    ");
    assert_eq!((check(&["--budget", "60", "--require", "tr1"]).code, kept()), (1, lower));
    assert_eq!(check(&["--phase", "route"]).code, 0);
    let both: serde_json::Value = serde_json::from_str(&kept()).unwrap();
    assert_eq!(both, serde_json::json!({"it.session": {"answer": 120, "route": 18}}));
    let json: serde_json::Value =
        serde_json::from_str(&check(&["--phase", "route", "--breakdown", "--format", "json"]).stdout).unwrap();
    assert_eq!(json["items"][0]["ratchet"], serde_json::json!({"recorded": 18, "written": false}));
    let parts = serde_json::json!([{"part": "user_turn", "tokens": 10}, {"part": "policy", "tokens": 8}]);
    assert_eq!(json["items"][0]["breakdown"], parts);
    for bad in ["", "[]", r#"{"it.session": 7}"#, r#"{"it.session": {"answer": -1}}"#] {
        files.write("low.json", bad);
        let run = check(&[]);
        let told = (run.stderr.starts_with("error: low.json: not written by --ratchet: "), kept());
        assert_eq!((run.code, told), (2, (true, bad.to_owned())), "{}", run.shown());
    }
    let over = session(&files, &["budget-check", "--max-tokens", "9", "--ratchet", "it.session"]);
    assert!(over.code == 2 && over.stderr.contains("would write over it.session of --session"), "{}", over.shown());
}

#[test]
fn the_tools_of_a_query_are_shown_beside_a_session() {
    let files = ingested(&lines());
    files.write("tools.json", TOOLS);
    let routing = ["--catalog", "tools.json", "--route-query", "open an issue"];
    let cards = files.run(&["route", "--catalog", "tools.json", "open an issue"]).stdout;
    let json = |arguments: &[&str]| -> serde_json::Value {
        let run = files.run(&[arguments, &["--format", "json"]].concat());
        serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.shown()))
    };
    let report = json(&[&["inspect", "--session", "it.session"], &routing[..]].concat());
    let found = report["routing"]["tools"].as_array().unwrap();
    assert_eq!((&report["routing"]["query"], found.len()), (&"open an issue".into(), cards.lines().count()));
    let catalog = json(&["catalog", "inspect", "tools.json"]);
    for (tool, line) in found.iter().zip(cards.lines()) {
        let in_catalog = catalog["tools"].as_array().unwrap().iter().find(|one| one["id"] == tool["id"]).unwrap();
        assert_eq!((&tool["card"], &tool["definition_tokens"]), (&line.into(), &in_catalog["tokens"]));
    }
    let shown = session(&files, &[&["inspect"], &routing[..]].concat()).stdout;
    let title = "\n## Tools for: open an issue\n\n| card | tokens | tokens of its definition |\n| --- | --: | --: |\n";
    let (_, table) = shown.split_once(title).unwrap_or_else(|| panic!("{shown}"));
    assert!(table.starts_with("| [1/2] forge:create_issue#"), "{shown}");
    assert!(table.ends_with(" tokens, their definitions 83.\n"), "{shown}");
    for alone in [&routing[..2], &routing[2..]] {
        let run = session(&files, &[&["inspect"], alone].concat());
        assert!(run.code == 2 && run.stderr.contains("required arguments were not provided"), "{}", run.shown());
    }
}

#[test]
fn a_conversation_is_no_session_and_a_session_no_conversation() {
    let files = ingested(&lines());
    let asked: [&[&str]; 7] = [
        &["replay", "--session", "events.json"],
        &["stats", "--session", "events.json"],
        &["handoff", "--session", "events.json"],
        &["budget-check", "--max-tokens", "9", "--session", "events.json"],
        &["inspect", "--session", "events.json"],
        &["view", "--session", "events.json", "artifact:result:tr1", "head"],
        &["consolidate", "events.json", "--out", "memory.json"],
    ];
    for arguments in asked {
        let run = files.run(arguments);
        let remedy = "`contextweaver ingest --events events.json --out NAME.session`";
        assert!(run.code == 2 && run.stderr.contains(remedy), "{arguments:?}: {}", run.shown());
    }
    let asked: [&[&str]; 2] = [
        &["ingest", "--events", "it.session", "--out", "again.session"],
        &["export", "--events", "it.session", "--to", "openai"],
    ];
    for arguments in asked {
        let run = files.run(arguments);
        let told = "this is already a session; read it with --session, as in `contextweaver replay --session FILE`";
        assert!(run.code == 2 && run.stderr.contains(told), "{arguments:?}: {}", run.shown());
    }
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
        [
            r#"{"type":"summary","summary":"A log","leafUuid":"l"}"#.to_owned(),
            r#"{"type":"assistant","uuid":"a","sessionId":"s","message":{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"read","input":{}}]}}"#.to_owned(),
            format!(r#"{{"type":"user","uuid":"b","sessionId":"s","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c","content":{text}}}]}},"toolUseResult":{{"file":{text}}}}}"#),
        ]
        .join("\n"),
        [
            r#"{"type":"session_meta","payload":{"id":"s"}}"#.to_owned(),
            r#"{"type":"response_item","payload":{"type":"function_call","call_id":"c","name":"read","arguments":"{}"}}"#.to_owned(),
            format!(r#"{{"type":"response_item","payload":{{"type":"function_call_output","call_id":"c","output":{text}}}}}"#),
        ]
        .join("\n"),
        format!(
            r#"{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{{"spanId": "s", "name": "execute_tool read", "startTimeUnixNano": "1", "attributes": [{{"key": "gen_ai.operation.name", "value": {{"stringValue": "execute_tool"}}}}, {{"key": "gen_ai.tool.name", "value": {{"stringValue": "read"}}}}, {{"key": "gen_ai.tool.call.id", "value": {{"stringValue": "c"}}}}, {{"key": "gen_ai.tool.call.result", "value": {{"stringValue": {text}}}}}]}}, {{"spanId": "h", "name": "GET", "startTimeUnixNano": "2", "attributes": []}}]}}]}}]}}"#
        ),
        format!(
            r#"[{{"id": "r", "run_type": "chain", "name": "agent", "inputs": {{}}, "child_runs": [{{"id": "a", "run_type": "tool", "name": "read", "start_time": "1", "inputs": {{"input": "{{}}"}}, "outputs": {{"output": {text}}}}}]}}]"#
        ),
        format!(
            r#"[{{"type": "ai", "data": {{"content": "", "tool_calls": [{{"name": "read", "args": {arguments}, "id": "c", "type": "tool_call"}}]}}}}, {{"type": "tool", "data": {{"content": {text}, "tool_call_id": "c", "status": "success"}}}}]"#
        ),
        format!(
            r#"[{{"kind": "response", "parts": [{{"part_kind": "tool-call", "tool_name": "read", "args": {arguments}, "tool_call_id": "c"}}]}}, {{"kind": "request", "parts": [{{"part_kind": "tool-return", "tool_name": "read", "content": {text}, "tool_call_id": "c"}}]}}]"#
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
    insta::assert_snapshot!(accounts.join("\n"), @r"
    exit 0
    wrote it.session: recorded session, 3 events
      events     1 user_turn, 1 tool_call, 1 tool_result
      artifacts  1, 10109 bytes
      memory     0 facts, 0 episodes
    kept out of prompts, 1 result:
      result:call:1  10109 bytes -> 287 tokens (a summary)

    exit 0
    wrote it.session: session JSON, 2 events
      events     1 tool_call, 1 tool_result
      artifacts  1, 10109 bytes
      memory     1 fact, 0 episodes
    kept out of prompts, 1 result:
      r  10109 bytes -> 287 tokens (a summary)

    exit 0
    wrote it.session: OpenAI chat messages, 3 events
      events     1 user_turn, 1 tool_call, 1 tool_result
      artifacts  1, 10109 bytes
      memory     0 facts, 0 episodes
    kept out of prompts, 1 result:
      result:c  10109 bytes -> 287 tokens (a summary)

    exit 0
    wrote it.session: OpenAI Responses items, 2 events
      events     1 tool_call, 1 tool_result
      artifacts  1, 10109 bytes
      memory     0 facts, 0 episodes
    kept out of prompts, 1 result:
      result:c  10109 bytes -> 287 tokens (a summary)

    exit 0
    wrote it.session: Anthropic messages, 2 events
      events     1 tool_call, 1 tool_result
      artifacts  1, 10109 bytes
      memory     0 facts, 0 episodes
    kept out of prompts, 1 result:
      result:c  10109 bytes -> 287 tokens (a summary)

    exit 0
    wrote it.session: Gemini contents, 2 events
      events     1 tool_call, 1 tool_result
      artifacts  1, 10318 bytes
      memory     0 facts, 0 episodes
    kept out of prompts, 1 result:
      result:call:1  10318 bytes -> 287 tokens (a summary)

    exit 0
    wrote it.session: A2A task, 2 events
      events     1 tool_call, 1 tool_result
      artifacts  1, 10109 bytes
      memory     0 facts, 0 episodes
    kept out of prompts, 1 result:
      result:task:t1  10109 bytes -> 287 tokens (a summary)

    exit 0
    wrote it.session: Claude Code transcript, 2 events
      events     1 tool_call, 1 tool_result
      artifacts  1, 10109 bytes
      memory     0 facts, 0 episodes
    kept out of prompts, 1 result:
      result:c  10109 bytes -> 287 tokens (a summary)
    note: lines that are not messages were left out: 1 summary

    exit 0
    wrote it.session: Codex transcript, 2 events
      events     1 tool_call, 1 tool_result
      artifacts  1, 10109 bytes
      memory     0 facts, 0 episodes
    kept out of prompts, 1 result:
      result:c  10109 bytes -> 287 tokens (a summary)
    note: lines that are not messages were left out: 1 session_meta

    exit 0
    wrote it.session: OpenTelemetry spans, 2 events
      events     1 tool_call, 1 tool_result
      artifacts  1, 10109 bytes
      memory     0 facts, 0 episodes
    kept out of prompts, 1 result:
      result:c  10109 bytes -> 287 tokens (a summary)
    note: spans that are not messages were left out: 1 other

    exit 0
    wrote it.session: LangSmith runs, 2 events
      events     1 tool_call, 1 tool_result
      artifacts  1, 10109 bytes
      memory     0 facts, 0 episodes
    kept out of prompts, 1 result:
      result:a  10109 bytes -> 287 tokens (a summary)
    note: runs that are not messages were left out: 1 chain

    exit 0
    wrote it.session: LangChain messages, 2 events
      events     1 tool_call, 1 tool_result
      artifacts  1, 10109 bytes
      memory     0 facts, 0 episodes
    kept out of prompts, 1 result:
      result:c  10109 bytes -> 287 tokens (a summary)

    exit 0
    wrote it.session: Pydantic AI messages, 2 events
      events     1 tool_call, 1 tool_result
      artifacts  1, 10109 bytes
      memory     0 facts, 0 episodes
    kept out of prompts, 1 result:
      result:c  10109 bytes -> 287 tokens (a summary)
    ");
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
        ("unknown items", refused(r#"[{"type": "robot", "text": "x"}]"#)),
        ("unknown parts", refused(r#"[{"role": "user", "parts": [{"robot": "x"}]}]"#)),
    ];
    let shown: Vec<String> = cases.iter().map(|(name, shown)| format!("{name}: {shown}")).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    missing parent: exit 2
    error: events
      caused by: event 1 (`a`): its parent `b` is not in the log

    cycle: exit 2
    error: events
      caused by: event 1 (`a`) is its own ancestor, via `b`, `a`

    late parent: exit 2
    error: events
      caused by: event 1 (`a`): its parent `b` comes later, as event 2; write events in time order

    duplicate ids: exit 2
    error: events
      caused by: event 2: event 1 already has the id `a`; ids must be unique

    unknown kind: exit 2
    error: events
      caused by: line 2: unknown kind of event `thought`; use user_turn, agent_msg, tool_call, tool_result, doc_snippet, retrieved_doc, memory_fact, plan_state, policy

    not UTF-8: exit 2
    error: events
      caused by: line 2: byte 10 is not UTF-8; save the file as UTF-8

    empty: exit 2
    error: events
      caused by: the file is empty; expected a conversation

    no conversation: exit 2
    error: events
      caused by: an array is not a conversation; known are session JSONL, session JSON, recorded session, OpenAI chat messages, OpenAI Responses items, Anthropic messages, Gemini contents, A2A task, Claude Code transcript, Codex transcript, OpenTelemetry spans, LangSmith runs, LangChain messages, Pydantic AI messages; docs/formats.md#conversations shows each

    truncated: exit 2
    error: events
      caused by: line 4: not JSON: EOF while parsing a string at line 1 column 71

    truncated document: exit 2
    error: events
      caused by: neither JSON nor JSON lines: EOF while parsing a value at line 1 column 34; give a conversation as JSON; docs/formats.md#conversations has examples

    result that is none: exit 2
    error: events
      caused by: calls[0].result: not a JSON object: invalid type: string "done", expected an object at line 1 column 6

    deep: exit 2
    error: events
      caused by: neither JSON nor JSON lines: recursion limit exceeded at line 1 column 138; give a conversation as JSON; docs/formats.md#conversations has examples

    unknown items: exit 2
    error: events
      caused by: items[0]: no item has the type `robot`, and nothing else here is known either; this is a different format

    unknown parts: exit 2
    error: events
      caused by: contents[0].parts[0]: no part has a member `robot`, and nothing else here is known either; this is a different format
    "#);
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
    insta::assert_snapshot!(run.shown(), @r"
    exit 0
    wrote it.session: recorded session, 3 events
      events     1 user_turn, 1 tool_call, 1 tool_result
      artifacts  1, 10 bytes
      memory     0 facts, 0 episodes
    note: event `result:call:1`, part 1: it claims to be application/json but is not (expected value at line 1 column 7); kept as text
    ");
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
    insta::assert_snapshot!(shown.join("\n"), @r"
    exit 2
    error: it.session: not a session: EOF while parsing a string at line 17 column 4306

    exit 2
    error: it.session: content 1 was altered: it has the hash 8477cbed5d7cfc95d7ae4155b63e0a0a8bfd54444da90f82d72676b5a5397fe8, not 46ed29073f9590997053c93d162f4a2eb0c812ac154599caa45fb8769e62081a

    exit 2
    error: it.session: event 5: event 2 already has the id `u1`; ids must be unique

    exit 2
    error: it.session: not a session: it has no `format` `contextweaver session`; to make one of a conversation, run `contextweaver ingest --events it.session --out NAME.session`

    exit 2
    error: it.session: not a session: it has no `format` `contextweaver session`; to make one of a conversation, run `contextweaver ingest --events it.session --out NAME.session`
    ");
    files.write("it.session", &good);
    insta::assert_snapshot!(session(&files, &["view", "artifact:nothing", "head"]).shown(), @r"
    exit 2
    error: no artifact `artifact:nothing`; the session has artifact:result:tr1
    ");
    insta::assert_snapshot!(session(&files, &["view", "result:tr1", "head"]).shown(), @r"
    exit 2
    error: no artifact `result:tr1`; write `artifact:result:tr1`
    ");
    insta::assert_snapshot!(session(&files, &["view", "artifact:result:tr1", "tail:3"]).shown(), @r"
    exit 2
    error: invalid value 'tail:3' for '<SELECTOR>': `tail:3` is not a selector: the type `tail` is unknown; write head:500, lines:0..20, rows:-10.., json_keys:a,b, json_path:$.a, grep:ERROR, sample:10 or the JSON form

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(session(&files, &["replay", "--phase", "dream"]).shown(), @r"
    exit 2
    error: invalid value 'dream' for '--phase <PHASE>': unknown phase `dream`; use route, call, interpret, answer

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(session(&files, &["replay", "--config", "none.toml"]).shown(), @"
    exit 2
    error: none.toml: there is no such file
    ");
    files.write("bad.toml", "[budgets]\nanswers = 1\n");
    for command in
        [&["ingest", "--events", "events.json", "--out", "o.session"][..], &["replay", "--session", "it.session"]]
    {
        let run = files.run(&[command, &["--config", "bad.toml"]].concat());
        assert!(run.code == 2 && run.stderr.starts_with("error: bad.toml\n"), "{}", run.shown());
    }
}

#[test]
fn an_empty_prompt_says_what_to_raise() {
    let files = ingested(&lines());
    files.write("access.log", log());
    let shown = [
        session(&files, &["replay", "--budget", "1"]).shown(),
        session(&files, &["replay", "--budget", "0"]).shown(),
        files.run(&["firewall", "--tokens", "1", "access.log"]).shown(),
    ];
    let secret = ingested(r#"{"type": "user_turn", "id": "u1", "text": "x", "sensitivity": "restricted"}"#);
    let shown = shown.into_iter().chain([session(&secret, &["replay"]).shown()]).collect::<Vec<_>>();
    insta::assert_snapshot!(shown.join("\n"), @r"
    exit 0
    nothing fits into 1 token; raise --budget

    exit 0
    nothing fits into 0 tokens; raise --budget

    exit 0
    nothing fits into 1 token; raise --tokens

    exit 0
    the prompt is empty: `contextweaver stats` says what is left out, and why
    ");
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

const CHAT: &str = r#"{"model": "m", "messages": [
  {"role": "user", "content": "Why?"},
  {"role": "assistant", "content": null, "tool_calls": [
    {"id": "c1", "type": "function", "function": {"name": "read_log", "arguments": "{\"job\":\"nightly\"}"}}]},
  {"role": "tool", "tool_call_id": "c1", "content": "disk full"},
  {"role": "assistant", "content": "The disk was full."}]}"#;

#[test]
fn a_conversation_is_exported_in_every_format() {
    let files = Files::new();
    files.write("chat.json", CHAT);
    let export = |to: &str| files.run(&["export", "--events", "chat.json", "--to", to]);
    // What came in this format comes out as it was.
    let same: serde_json::Value = serde_json::from_str(&export("openai").stdout).unwrap();
    assert_eq!(same, serde_json::from_str::<serde_json::Value>(CHAT).unwrap());
    let compact = |to: &str| {
        let run = export(to);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{to}");
        format!("{to}: {}", serde_json::from_str::<serde_json::Value>(&run.stdout).unwrap())
    };
    let shown: Vec<String> =
        ["anthropic", "gemini", "openai-responses", "a2a", "langchain", "pydantic-ai"].map(compact).into();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    anthropic: [{"role":"user","content":"Why?"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"read_log","input":{"job":"nightly"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"disk full"}]},{"role":"assistant","content":"The disk was full."}]
    gemini: [{"role":"user","parts":[{"text":"Why?"}]},{"role":"model","parts":[{"functionCall":{"id":"c1","name":"read_log","args":{"job":"nightly"}}}]},{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"read_log","response":{"output":"disk full"}}}]},{"role":"model","parts":[{"text":"The disk was full."}]}]
    openai-responses: [{"type":"message","role":"user","content":"Why?"},{"type":"function_call","call_id":"c1","name":"read_log","arguments":"{\"job\":\"nightly\"}"},{"type":"function_call_output","call_id":"c1","output":"disk full"},{"type":"message","role":"assistant","content":"The disk was full."}]
    a2a: {"kind":"task","id":"conversation","status":{"state":"completed"},"history":[{"kind":"message","role":"user","messageId":"m1","parts":[{"kind":"text","text":"Why?"}]},{"kind":"message","role":"agent","messageId":"c1","parts":[{"kind":"text","text":"read_log({\"job\":\"nightly\"})"}]},{"kind":"message","role":"user","messageId":"result:c1","parts":[{"kind":"text","text":"disk full"}]},{"kind":"message","role":"agent","messageId":"m4","parts":[{"kind":"text","text":"The disk was full."}]}],"artifacts":[{"artifactId":"m4","parts":[{"kind":"text","text":"The disk was full."}]}]}
    langchain: [{"type":"human","data":{"content":"Why?","type":"human"}},{"type":"ai","data":{"content":"","type":"ai","tool_calls":[{"name":"read_log","args":{"job":"nightly"},"id":"c1","type":"tool_call"}]}},{"type":"tool","data":{"content":"disk full","type":"tool","name":"read_log","tool_call_id":"c1"}},{"type":"ai","data":{"content":"The disk was full.","type":"ai"}}]
    pydantic-ai: [{"parts":[{"content":"Why?","part_kind":"user-prompt"}],"kind":"request"},{"parts":[{"tool_name":"read_log","args":{"job":"nightly"},"tool_call_id":"c1","part_kind":"tool-call"}],"kind":"response"},{"parts":[{"tool_name":"read_log","content":"disk full","tool_call_id":"c1","part_kind":"tool-return"}],"kind":"request"},{"parts":[{"content":"The disk was full.","part_kind":"text"}],"kind":"response"}]
    "#);
    let one = files.run(&["export", "--events", "chat.json", "--to", "mcp", "--event", "result:c1"]);
    insta::assert_snapshot!(one.shown(), @r#"
    exit 0
    {
      "content": [
        {
          "type": "text",
          "text": "disk full"
        }
      ]
    }
    "#);
    insta::assert_snapshot!(export("recorded").shown(), @r"
    exit 2
    error: event `m1`: it is from another format, and this one has no place for it
    ");
    insta::assert_snapshot!(export("mcp").shown(), @r"
    exit 2
    error: the following required arguments were not provided:
      --event <ID>

    Usage: contextweaver export --to <FORMAT> --event <ID> <--events <FILE>|--session <FILE>>

    For more information, try '--help'.
    ");
    let unknown = files.run(&["export", "--events", "chat.json", "--to", "mcp", "--event", "c9"]);
    insta::assert_snapshot!(unknown.shown(), @r"
    exit 2
    error: no result has the id `c9`; the first are result:c1
    ");
}

#[test]
fn what_is_exported_is_read_again() {
    let files = Files::new();
    files.write("chat.json", CHAT);
    let kinds = |file: &str| {
        let run = files.run(&["ingest", "--events", file, "--out", "again.session"]);
        assert_eq!(run.code, 0, "{file}: {}", run.stderr);
        run.stdout.lines().find(|line| line.starts_with("  events")).unwrap().to_owned()
    };
    let expected = kinds("chat.json");
    for to in [
        "lines",
        "session-json",
        "openai",
        "openai-responses",
        "anthropic",
        "gemini",
        "claude-code",
        "codex",
        "otel",
        "langsmith",
        "langchain",
        "pydantic-ai",
    ] {
        let run = files.run(&["export", "--events", "chat.json", "--to", to, "--out", "out.json"]);
        assert_eq!(run.shown(), "exit 0\nwrote out.json\n", "{to}");
        assert_eq!(kinds("out.json"), expected, "{to}");
    }
}

#[test]
fn an_export_of_a_session_shows_results_as_prompts_do_or_whole() {
    let files = ingested(&lines());
    let texts = |whole: &[&str]| {
        let run = session(&files, &[&["export", "--to", "lines"], whole].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        let result = run.stdout.lines().nth(3).unwrap().to_owned();
        serde_json::from_str::<serde_json::Value>(&result).unwrap()["text"].as_str().unwrap().to_owned()
    };
    assert!(texts(&[]).starts_with("log: 200 lines, 2 kinds of message\n"));
    assert_eq!(texts(&["--whole"]), log());
    let facts = session(&files, &["export", "--to", "facts"]);
    files.write("facts.jsonl", &facts.stdout);
    let again = ["ingest", "--events", "events.json", "--facts", "facts.jsonl", "--out", "it.session"];
    assert_eq!(files.run(&again).code, 0);
    assert_eq!(session(&files, &["export", "--to", "facts"]).stdout, facts.stdout);
    assert_eq!(session(&files, &["export", "--to", "episodes"]).shown(), "exit 0\n");
}

#[test]
fn commands_read_the_stores_of_a_program() {
    use contextweaver::event::{ContextItem, ItemKind, ToolOutput};
    use contextweaver::{ContextManager, Stores};
    let files = Files::new();
    let conversation = ContextManager::in_stores(Stores::sqlite(files.path("agent.sqlite")).unwrap());
    conversation.ingest(ContextItem::new("c1", ItemKind::ToolCall, "read_log()")).unwrap();
    conversation.ingest_tool_result("c1", &ToolOutput::text(log())).unwrap();
    conversation.add_fact("zone", "UTC").unwrap();
    let run = |command: &str, rest: &[&str]| {
        let run = files.run(&[&[command, "--session", "agent.sqlite"], rest].concat());
        assert_eq!(run.code, 0, "{command}: {}", run.stderr);
        run.stdout
    };
    assert!(run("replay", &[]).contains("- zone: UTC\n"));
    assert!(run("inspect", &[]).contains("SQLite store, agent.sqlite"));
    let error = log().lines().nth(120).unwrap().to_owned();
    assert!(run("view", &["artifact:result:c1", "grep:ERROR"]).contains(&error));
    assert!(run("export", &["--to", "openai", "--whole"]).contains(&error));
    files.write("other.sqlite", b"SQLite format 3\0 and then nothing");
    let refused = files.run(&["replay", "--session", "other.sqlite"]);
    insta::assert_snapshot!(refused.shown(), @r"
    exit 2
    error: other.sqlite: file is not a database; name a new file, or one made by this program
    ");
}

#[test]
fn a_session_can_be_a_store() {
    let files = ingested(&lines());
    files.write("facts.json", r#"{"zone": "UTC"}"#);
    let ingest = |out: &str| files.run(&["ingest", "--events", "events.json", "--facts", "facts.json", "--out", out]);
    let replay = |session: &str| {
        let run = files.run(&["replay", "--session", session, "--query", "nightly job"]);
        assert_eq!(run.code, 0, "{session}: {}", run.stderr);
        run.stdout
    };
    let of_file = ingest("it.session").stdout;
    for store in ["it.db", "it.sqlite"] {
        assert_eq!(ingest(store).stdout, of_file.replace("it.session", store));
        assert!(std::fs::read(files.path(store)).unwrap().starts_with(b"SQLite format 3\0"));
        assert_eq!(replay(store), replay("it.session"));
        let view =
            |session: &str| files.run(&["view", "--session", session, "artifact:result:tr1", "grep:ERROR"]).shown();
        assert_eq!(view(store), view("it.session"));
    }
    let hand_off = |out: &str| files.run(&["handoff", "--session", "it.db", "--query", "free the disk", "--out", out]);
    assert_eq!((hand_off("next.session").code, hand_off("next.db").code), (0, 0));
    assert_eq!(replay("next.db"), replay("next.session"));
    let before = std::fs::read(files.path("it.db")).unwrap();
    files.write("no.db", "{}");
    let refused = [ingest("it.db"), hand_off("next.db"), hand_off("it.db"), ingest("no.db"), ingest("no/it.db")];
    insta::assert_snapshot!(refused.map(|run| run.shown()).join("\n"), @r"
    exit 2
    error: it.db: this store is not empty; name a new file

    exit 2
    error: next.db: this store is not empty; name a new file

    exit 2
    error: --out it.db would write over it.db of --session; name another file

    exit 2
    error: no.db: file is not a database; name a new file, or one made by this program

    exit 2
    error: no/it.db: unable to open database file; its folder must exist and be writable
    ");
    assert_eq!(std::fs::read(files.path("it.db")).unwrap(), before);
    assert_eq!(std::fs::read(files.path("no.db")).unwrap(), b"{}");
}

#[test]
fn a_session_is_checked_whole() {
    let files = ingested(&lines());
    let whole = session(&files, &["inspect", "--verify"]);
    insta::assert_snapshot!(whole.shown(), @r"
    exit 0
    it.session: whole; 6 events, 1 artifact, 0 facts, 0 episodes
    ");
    let text = std::fs::read_to_string(files.path("it.session")).unwrap();
    let broken = text
        .replace("\"parent_id\":\"tc1\"", "\"parent_id\":\"tc9\"")
        .replace("{\"id\":\"a1\"", "{\"id\":\"u1\"")
        .replace("copied block 7\\n", "copied block 8\\n")
        .replace("{\"id\":\"p1\"", "{\"id\":p1\"");
    files.write("broken.session", broken);
    let check = |more: &[&str]| files.run(&[&["inspect", "--session", "broken.session", "--verify"], more].concat());
    insta::assert_snapshot!(check(&[]).shown(), @r"
    exit 1
    broken.session:6: event 1: expected value
    broken.session:9: event 4 (`tr1`): its parent `tc9` is not in the log
    broken.session:10: event 5: event 2 already has the id `u1`; ids must be unique
    broken.session:17: content 1 was altered: it has the hash 6aec72377f74e7126462d578246cf0dff7fceb3790731a63a86071f6bb4e939f, not 46ed29073f9590997053c93d162f4a2eb0c812ac154599caa45fb8769e62081a
    broken.session: 4 problems; 5 events, 1 artifact, 0 facts, 0 episodes
    ");
    let json: serde_json::Value = serde_json::from_str(&check(&["--format", "json"]).stdout).unwrap();
    assert_eq!((&json["kind"], &json["ok"]), (&"inspect verify".into(), &false.into()));
    assert_eq!(json["problems"].as_array().unwrap().len(), 4);
    files.write("tight.toml", "[budgets]\nanswer = 1\n");
    let prompts = session(&files, &["inspect", "--verify", "--config", "tight.toml"]);
    assert_eq!(prompts.code, 0, "{}", prompts.shown());
    for (arguments, told) in [
        (&["inspect", "--session", "absent.session", "--verify"][..], "absent.session"),
        (&["inspect", "--session", "it.session", "--verify", "--prompts"], "cannot be used with"),
    ] {
        let run = files.run(arguments);
        assert!(run.code == 2 && run.stderr.contains(told), "{}", run.shown());
    }
}
#[test]
fn a_prompt_is_a_page() {
    let hostile = lines().replace("The disk was full.", "<script>alert('&')</script>");
    let files = ingested(&hostile);
    let query = "<b>job</b>";
    let ask = ["inspect", "--html", "prompt.html", "--budget", "130", "--query", query];
    let run = session(&files, &ask);
    assert_eq!((run.code, run.stderr.as_str()), (0, "wrote prompt.html\n"));
    let page = files.page("prompt.html");
    for never in ["<script", "password", "http", "<b>job", "<img"] {
        assert!(!page.contains(never), "{never}: {page}");
    }
    insta::assert_snapshot!(page, @r##"
    <!doctype html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Prompt for the phase answer</title>
    </head>
    <body>
    <a class="skip" href="#main">Skip to the report</a>
    <header>
    <h1>Prompt for the phase answer</h1>
    <p class="verdict"><strong>92 of 130 tokens</strong> (cl100k_base). 5 of 6 events are shown.</p>
    <p class="note">From <bdi>session JSONL, events.json</bdi>.</p>
    <p class="note">Compared with: <bdi>&lt;b&gt;job&lt;/b&gt;</bdi></p>
    <nav aria-label="Sections"><a href="#parts">Tokens</a> <a href="#in">What is in it</a> <a href="#out">What is left out</a> <a href="#text">The text</a></nav>
    </header>
    <main id="main">
    <h2 id="parts">Tokens by part</h2>
    <ul class="bars">
    <li><span class="name"><bdi>tool_result</bdi></span><span class="n">51</span><span class="bar" aria-hidden="true"><span class="c0" style="width:39.2%"></span></span></li>
    <li><span class="name"><bdi>tool_call</bdi></span><span class="n">12</span><span class="bar" aria-hidden="true"><span class="c0" style="width:9.2%"></span></span></li>
    <li><span class="name"><bdi>agent_msg</bdi></span><span class="n">11</span><span class="bar" aria-hidden="true"><span class="c0" style="width:8.5%"></span></span></li>
    <li><span class="name"><bdi>user_turn</bdi></span><span class="n">10</span><span class="bar" aria-hidden="true"><span class="c0" style="width:7.7%"></span></span></li>
    <li><span class="name"><bdi>policy</bdi></span><span class="n">8</span><span class="bar" aria-hidden="true"><span class="c0" style="width:6.2%"></span></span></li>
    <li><span class="name"><bdi>free</bdi></span><span class="n">38</span><span class="bar" aria-hidden="true"><span class="c4" style="width:29.2%"></span></span></li>
    </ul>
    <p class="note">A whole bar is the budget. The parts are counted separately, the prompt as a whole.</p>
    <h2 id="in">What is in it</h2>
    <ol class="bars">
    <li><span class="name"><bdi>p1 (policy)</bdi></span><span class="n">8</span><span class="bar" aria-hidden="true"><span class="c0" style="width:15.7%"></span></span></li>
    <li><span class="name"><bdi>u1 (user_turn)</bdi></span><span class="n">10</span><span class="bar" aria-hidden="true"><span class="c0" style="width:19.6%"></span></span></li>
    <li><span class="name"><bdi>tc1 (tool_call)</bdi></span><span class="n">12</span><span class="bar" aria-hidden="true"><span class="c0" style="width:23.5%"></span></span></li>
    <li><span class="name"><bdi>tr1 (tool_result, shortened to fit)</bdi></span><span class="n">51</span><span class="bar" aria-hidden="true"><span class="c1" style="width:100.0%"></span></span></li>
    <li><span class="name"><bdi>a1 (agent_msg)</bdi></span><span class="n">11</span><span class="bar" aria-hidden="true"><span class="c0" style="width:21.6%"></span></span></li>
    </ol>
    <p class="note">In the order of the prompt. A whole bar is the largest event.</p>
    <h2 id="out">What is left out</h2>
    <div class="scroll" role="region" aria-label="Events that the prompt leaves out" tabindex="0">
    <table class="plain">
    <caption>Events that the prompt leaves out</caption>
    <thead><tr><th scope="col">event</th><th scope="col">kind</th><th scope="col">why</th><th scope="col">begins</th></tr></thead>
    <tbody>
    <tr><th scope="row">u2</th><td>user_turn</td><td>sensitivity: restricted</td><td></td></tr>
    </tbody>
    </table>
    </div>
    <h2>Results that are not shown whole</h2>
    <div class="scroll" role="region" aria-label="Results, and what is shown in their place" tabindex="0">
    <table class="plain">
    <caption>Results, and what is shown in their place</caption>
    <thead><tr><th scope="col">result</th><th scope="col">because</th><th scope="col" class="n">bytes</th><th scope="col" class="n">tokens shown</th></tr></thead>
    <tbody>
    <tr><th scope="row">tr1</th><td>it is large</td><td class="n">10,109</td><td class="n">287</td></tr>
    <tr><th scope="row">tr1</th><td>it did not fit</td><td class="n">10,109</td><td class="n">40</td></tr>
    </tbody>
    </table>
    </div>
    <h2 id="text">The text</h2>
    <pre><bdi>[POLICY]
    Never name customers.

    [USER]
    Why did the nightly job fail?

    [TOOL CALL]
    logs.read(job=&#39;nightly&#39;)

    [TOOL RESULT [artifact:result:tr1]]
    log: 200 lines, 2 kinds of message
    levels: ERROR 1, INFO 199
    last line: 2026-05-01T03:03:19Z…

    [ASSISTANT]
    &lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;</bdi></pre>
    </main>
    </body>
    </html>
    "##);
    let over = session(&files, &["inspect", "--html", "it.session"]);
    assert!(over.code == 2 && over.stderr.contains("would write over"), "{}", over.shown());
}

/// What is written takes the place of its own kind alone, unless somebody says otherwise.
#[test]
fn an_output_takes_the_place_of_its_own_kind_alone() {
    let files = Files::new();
    files.write("chat.json", r#"[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]"#);
    files.write("tools.json", crate::support::TOOLS);
    assert_eq!(files.run(&["ingest", "--events", "chat.json", "--out", "a.session"]).code, 0);
    let commands: [(&[&str], &str); 6] = [
        (&["ingest", "--events", "chat.json"], "a session"),
        (&["handoff", "--session", "a.session"], "a session"),
        (&["consolidate", "a.session"], "a memory"),
        (&["build", "--catalog", "tools.json"], "an index"),
        (&["export", "--session", "a.session", "--to", "anthropic"], "a conversation"),
        (&["catalog", "convert", "tools.json", "--to", "mcp"], "a list of tools"),
    ];
    for (words, what) in commands {
        let run = |more: &[&str]| files.run(&[words, &["--out", "out"], more].concat());
        let _ = std::fs::remove_file(files.path("out"));
        assert_eq!(run(&[]).code, 0, "{words:?}");
        let again = run(&[]);
        assert_eq!(again.code, 0, "{words:?}: its own kind: {}", again.shown());
        files.write("out", "a note\n");
        let refused = run(&[]);
        let said = format!("--out out: it is there, and not {what}; name another file, or overwrite it with --force");
        assert!(refused.code == 2 && refused.stderr.contains(&said), "{words:?}: {}", refused.shown());
        assert_eq!(std::fs::read_to_string(files.path("out")).unwrap(), "a note\n", "{words:?}");
        assert_eq!(run(&["--force"]).code, 0, "{words:?}");
        assert_ne!(std::fs::read_to_string(files.path("out")).unwrap_or_default(), "a note\n", "{words:?}");
    }
}

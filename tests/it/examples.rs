//! The examples of use run, and print what they should.

use std::path::Path;
use std::process::Command;

/// What an example printed. `cargo test` builds the examples; a filtered run may need `cargo build --examples` first.
fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_BIN_EXE_contextweaver")).with_file_name("examples").join(name);
    let output = Command::new(&path)
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}; run `cargo build --examples`", path.display()));
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    assert!(output.status.success(), "{name}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// With `#` for each number: measured values are the scorecard's business.
fn without_numbers(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match c {
            '0'..='9' if shown.ends_with('#') => {}
            '0'..='9' => shown.push('#'),
            c => shown.push(c),
        }
    }
    shown
}

#[test]
fn route() {
    insta::assert_snapshot!(without_numbers(&example("route")), @r#"
    # of # tools for "who is on call tonight"
    confidence #.#

    [#/#] monitor:get_oncall# (tool) — Who is on call for a team, now or at a given time, with phone number. [read-only]
        +#.# Word("call")
        +#.# Meaning
    [#/#] monitor:override_oncall#ce#c# (tool) — Put someone else on call: takes over the pager duty of a team for a period. | side-effects
        +#.# Word("call")
        +#.# Meaning
    [#/#] crm:log_activity#ba#cd# (tool) — Write down a phone call, meeting, e-mail or note on the timeline of a contact or deal, optionally with a follow-up task and due date. | side-effects
        +#.# Word("call")
        +#.# Meaning

    schema of the answer: {"type":"json_schema","json_schema":{"name":"tool_selection","strict":true,"schema":{"type":"object","properties":{"selection":{"type":"string","description":"The id of the chosen candidate.","enum":["monitor:get_oncall#","monitor:override_oncall#ce#c#","crm:log_activity#ba#cd#"]}},"required":["selection"],"additionalProperties":false}}}
    the answer `MONITOR:GET_ONCALL#`: Repaired, Some("monitor:get_oncall#")
    the answer `phone:dial`: Rejected, None
    "#);
}

#[test]
fn agent_loop() {
    insta::assert_snapshot!(example("agent_loop"), @r#"
    [route] 13 lines, 429 tokens in; out: monitor:get_logs
    [call] 5 lines, 165 tokens in; out: {"service": "checkout"}
    [interpret] 39 lines, 362 tokens in; out: grep:failed
    grep:failed of artifact:result:c1 shows: 234: deploy 1234 checkout failed: migration 0042 timed out
    [answer] 42 lines, 381 tokens in; out: Migration 0042 timed out.

    the last prompt:
    [FACTS]
    - result:c1:fact:0: deploy 1234 checkout failed: migration 0042 timed out

    [USER]
    search the logs for what failed in checkout

    [TOOL CALL]
    monitor:get_logs#5d5dcfde({"service": "checkout"})

    [TOOL RESULT [artifact:result:c1]]
    text: 2000 lines, 8004 words, 48030 characters, 1 paragraph, 2000 not blank
    first line: deploy 1000 checkout ok
    1 error line, first (line 235): deploy 1234 checkout failed: migration 0042 timed out
    lines by frequency, numbers vary:
    ×1999: deploy 1000 checkout ok
    some lines:
    64: deploy 1063 checkout ok
    106: deploy 1105 checkout ok
    148: deploy 1147 checkout ok
    232: deploy 1231 checkout ok
    274: deploy 1273 checkout ok
    358: deploy 1357 checkout ok
    400: deploy 1399 checkout ok
    484: deploy 1483 checkout ok
    526: deploy 1525 checkout ok
    610: deploy 1609 checkout ok
    652: deploy 1651 checkout ok
    736: deploy 1735 checkout ok
    862: deploy 1861 checkout ok
    988: deploy 1987 checkout ok
    1114: deploy 2113 checkout ok
    1240: deploy 2239 checkout ok
    1366: deploy 2365 checkout ok
    1492: deploy 2491 checkout ok
    1618: deploy 2617 checkout ok
    1744: deploy 2743 checkout ok
    1870: deploy 2869 checkout ok
    … +27
    last line: deploy 2999 checkout ok

    [DOCUMENT]
    234: deploy 1234 checkout failed: migration 0042 timed out
    "#);
}

#[test]
fn firewall() {
    insta::assert_snapshot!(example("firewall"), @r#"
    --- what the prompt gets
    2000 rows, 4 columns: id, state, total, city
    first row: {"id": 0, "state": "paid", "total": 0.50, "city": "Oslo"}
    row 250: id=249 state=paid total=143.50 city=Oslo
    row 500: id=499 state=paid total=293.50 city=Oslo
    row 750: id=749 state=paid total=43.50 city=Oslo
    row 1000: id=999 state=paid total=193.50 city=Oslo
    row 1250: id=1249 state=paid total=343.50 city=Oslo
    row 1500: id=1499 state=paid total=93.50 city=Oslo
    row 1750: id=1749 state=paid total=243.50 city=Oslo
    last row: {"id": 1999, "state": "paid", "total": 393.50, "city": "Oslo"}
    id: min 0 max 1999 distinct 2000
    state: distinct 3 (paid ×1200, open ×400, refunded ×400)
    total: min 0.50 max 399.50 sum 400000 distinct 400
    city: distinct 1 (Oslo ×2000)

    --- 127940 bytes became 289 tokens (Summary)
    --- the whole is artifact:result:orders, application/json, 127940 bytes
        rows:0..10: first rows of 2000
        rows:-10..: last rows of 2000
        sample:10: 10 rows spread over 2000
    --- rows:-2..
    {"id": 1998, "state": "refunded", "total": 386.50, "city": "Oslo"}
    {"id": 1999, "state": "paid", "total": 393.50, "city": "Oslo"}
    --- json_path:$[3].state
    refunded
    --- grep:"total": 399
    57: {"id": 57, "state": "paid", "total": 399.50, "city": "Oslo"},
    457: {"id": 457, "state": "paid", "total": 399.50, "city": "Oslo"},
    857: {"id": 857, "state": "paid", "total": 399.50, "city": "Oslo"},
    (more behind cursor 3)
    "#);
}

#[test]
fn sqlite_stores() {
    insta::assert_snapshot!(example("sqlite_stores"), @r#"
    3 events after "Which orders are there?"
    6 events after "And which invoices?"

    373 tokens of 6000:
    [EPISODIC MEMORY]
    - Asked: Which orders are there?
    - Asked: And which invoices?

    [FACTS]
    - last folder: /srv/invoices

    [USER]
    Which orders are there?

    [TOOL CALL]
    list_files(/srv/orders)

    [USER]
    And which invoices?

    [TOOL CALL]
    list_files(/srv/invoices)

    [TOOL RESULT [artifact:result:c3]]
    listing: 800 lines, 800 entries
    first line: /srv/invoices/part-0000.csv
    by extension: .csv 800
    entries:
    /srv/invoices/ (800): part-0000.csv part-0012.csv part-0024.csv part-0036.csv part-0049.csv part-0061.csv part-0074.csv part-0086.csv part-0099.csv part-0111.csv
    /srv/invoices/: part-0124.csv part-0136.csv part-0149.csv part-0161.csv part-0174.csv part-0186.csv part-0199.csv part-0211.csv part-0224.csv part-0236.csv part-0249.csv
    /srv/invoices/: part-0274.csv part-0299.csv part-0324.csv part-0349.csv part-0374.csv part-0399.csv part-0424.csv part-0449.csv part-0474.csv part-0499.csv part-0524.csv
    /srv/invoices/: part-0549.csv part-0574.csv part-0599.csv part-0624.csv part-0649.csv part-0674.csv part-0699.csv part-0724.csv part-0749.csv part-0774.csv part-0799.csv … +757
    last line: /srv/invoices/part-0799.csv

    6 events, 2 artifacts
    "#);
}

#[test]
fn custom_engine() {
    insta::assert_snapshot!(without_numbers(&example("custom_engine")), @r"
    household: # tools, # queries
    default       recall@# #.# [#.#, #.#]
    shared words  recall@# #.# [#.#, #.#]
    yours - ours  -#.#: Worse
    ");
}

#[test]
fn embed_gateway() {
    insta::assert_snapshot!(example("embed_gateway"), @r#"
    a client sees "tool_browse"
    a client sees "tool_execute"
    a client sees "tool_view"

    tool_browse:
    warehouse:find_parcel_7#1ef3c903 — Find a parcel of warehouse 7 by its number.
    warehouse:find_parcel_3#3ca17b03 — Find a parcel of warehouse 3 by its number.
    warehouse:find_parcel_2#ab68189c — Find a parcel of warehouse 2 by its number.

    tool_execute:
    "find_parcel_7" 42: in stock

    tool_execute with an argument of the wrong type:
    {"error":"ARGS_INVALID","message":"/number: \"forty\" is not of type \"integer\"","path":"warehouse:find_parcel_7#1ef3c903","retryable":false,"details":{"violations":[{"path":"/number","reason":"\"forty\" is not of type \"integer\""}],"arguments":"{number: integer}","example":{"number":1}}}
    "#);
}

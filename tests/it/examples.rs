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
    [interpret] 48 lines, 365 tokens in; out: grep:failed
    grep:failed of artifact:result:c1 shows: 234: deploy 1234 checkout failed: migration 0042 timed out
    [answer] 51 lines, 384 tokens in; out: Migration 0042 timed out.

    the last prompt:
    [FACTS]
    - result:c1:fact:0: deploy 1234 checkout failed: migration 0042 timed out

    [USER]
    search the logs for what failed in checkout

    [TOOL CALL]
    monitor:get_logs#5d5dcfde({"service": "checkout"})

    [TOOL RESULT [artifact:result:c1]]
    2000 lines, 48030 characters
    1 error line, first (line 234): deploy 1234 checkout failed: migration 0042 timed out
    deploy 1000 checkout ok
    deploy 1001 checkout ok
    deploy 1002 checkout ok
    deploy 1003 checkout ok
    deploy 1004 checkout ok
    deploy 1005 checkout ok
    deploy 1006 checkout ok
    deploy 1007 checkout ok
    deploy 1008 checkout ok
    deploy 1009 checkout ok
    deploy 1010 checkout ok
    deploy 1011 checkout ok
    deploy 1012 checkout ok
    deploy 1013 checkout ok
    deploy 1014 checkout ok
    deploy 1015 checkout ok
    deploy 1016 checkout ok
    deploy 1017 checkout ok
    deploy 1018 checkout ok
    deploy 1019 checkout ok
    deploy 1020 checkout ok
    deploy 1021 checkout ok
    deploy 1022 checkout ok
    deploy 1023 checkout ok
    deploy 1024 checkout ok
    deploy 1025 checkout ok
    deploy 1026 checkout ok
    deploy 1027 checkout ok
    deploy 1028 checkout ok
    deploy 1029 checkout ok
    deploy 1030 checkout ok
    deploy 1031 checkout ok
    … lines 32..234 alike
    deploy 1234 checkout failed: migration 0042 timed out
    … lines 235..1999 alike
    deploy 2999 checkout ok

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
    row 249: id=249 state=paid total=143.50 city=Oslo
    row 499: id=499 state=paid total=293.50 city=Oslo
    row 749: id=749 state=paid total=43.50 city=Oslo
    row 999: id=999 state=paid total=193.50 city=Oslo
    row 1249: id=1249 state=paid total=343.50 city=Oslo
    row 1499: id=1499 state=paid total=93.50 city=Oslo
    row 1749: id=1749 state=paid total=243.50 city=Oslo
    last row: {"id": 1999, "state": "paid", "total": 393.50, "city": "Oslo"}
    id: min 0 max 1999 distinct 2000
    state: distinct 3 (paid ×1200, open ×400, refunded ×400)
    total: min 0.50 max 399.50 sum 400000 distinct 400
    city: distinct 1 (Oslo ×2000)

    --- 127940 bytes became 288 tokens (Summary)
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

    682 tokens of 6000:
    [EPISODIC MEMORY]
    - Asked: Which orders are there?
    - Asked: And which invoices?

    [FACTS]
    - last folder: /srv/invoices

    [USER]
    Which orders are there?

    [TOOL CALL]
    list_files(/srv/orders)

    [TOOL RESULT [artifact:result:c0]]
    listing: 800 lines, 800 entries
    /srv/orders/part-0000.csv
    /srv/orders/part-0001.csv
    /srv/orders/part-0002.csv
    /srv/orders/part-0003.csv
    /srv/orders/part-0004.csv
    /srv/orders/part-0005.csv
    /srv/orders/part-0006.csv
    /srv/orders/part-0007.csv
    /srv/orders/part-0008.csv
    /srv/orders/part-0009.csv
    /srv/orders/part-0010.csv
    /srv/orders/part-0011.csv
    /srv/orders/part-0012.csv
    /srv/orders/part-0013.csv
    /srv/orders/part-0014.csv
    /srv/orders/part-0015.csv
    …
    /srv/orders/part-0784.csv
    /srv/orders/part-0785.csv
    /srv/orders/part-0786.csv
    /srv/orders/part-0787.csv
    /srv/orders/part-0788.csv
    /srv/orders/part-0789.csv
    /srv/orders/part-0790.csv
    /srv/orders/part-0791.csv
    /srv/orders/part-0792.csv
    /srv/orders/part-0793.csv
    /srv/orders/part-0794.csv
    /srv/orders/part-0795.csv
    /srv/orders/part-0796.csv
    /srv/orders/part-0797.csv
    /srv/orders/part-0798.csv
    /srv/orders/part-0799.csv

    [USER]
    And which invoices?

    [TOOL CALL]
    list_files(/srv/invoices)

    [TOOL RESULT [artifact:result:c3]]
    listing: 800 lines, 800 entries
    /srv/invoices/part-0000.csv
    /srv/invoices/part-0001.csv
    /srv/invoices/part-0002.csv
    /srv/invoices/part-0003.csv
    /srv/invoices/part-0004.csv
    /srv/invoices/part-0005.csv
    /srv/invoices/part-0006.csv
    /srv/invoices/part-0007.csv
    /srv/invoices/part-0008.csv
    /srv/invoices/part-0009.csv
    /srv/invoices/part-0010.csv
    /srv/invoices/part-0011.csv
    /srv/invoices/part-0012.csv
    /srv/invoices/part-0013.csv
    …
    /srv/invoices/part-0786.csv
    /srv/invoices/part-0787.csv
    /srv/invoices/part-0788.csv
    /srv/invoices/part-0789.csv
    /srv/invoices/part-0790.csv
    /srv/invoices/part-0791.csv
    /srv/invoices/part-0792.csv
    /srv/invoices/part-0793.csv
    /srv/invoices/part-0794.csv
    /srv/invoices/part-0795.csv
    /srv/invoices/part-0796.csv
    /srv/invoices/part-0797.csv
    /srv/invoices/part-0798.csv
    /srv/invoices/part-0799.csv

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
    find_parcel_7 42: in stock

    tool_execute with an argument of the wrong type:
    {"error":"ARGS_INVALID","message":"/number: \"forty\" is not of type \"integer\"","path":"warehouse:find_parcel_7#1ef3c903","retryable":false,"details":{"violations":[{"path":"/number","reason":"\"forty\" is not of type \"integer\""}],"arguments":"{number: integer}","example":{"number":1}}}
    "#);
}

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

    [#/#] monitor:get_oncall## (tool) — Who is on call for a team, now or at a given time, with phone number. [read-only]
        +#.# Word("call")
        +#.# Meaning
    [#/#] monitor:override_oncall#ce#c# (tool) — Put someone else on call: takes over the pager duty of a team for a period. | side-effects
        +#.# Word("call")
        +#.# Meaning
    [#/#] crm:create_ticket## (tool) — File a new support ticket on behalf of a customer, e.g. after a phone call. | side-effects
        +#.# Word("call")
        +#.# Meaning

    schema of the answer: {"type":"json_schema","json_schema":{"name":"tool_selection","strict":true,"schema":{"type":"object","properties":{"selection":{"type":"string","description":"The id of the chosen candidate.","enum":["monitor:get_oncall##","monitor:override_oncall#ce#c#","crm:create_ticket##"]}},"required":["selection"],"additionalProperties":false}}}
    the answer `MONITOR:GET_ONCALL##`: Repaired, Some("monitor:get_oncall##")
    the answer `phone:dial`: Rejected, None
    "#);
}

#[test]
fn agent_loop() {
    insta::assert_snapshot!(example("agent_loop"), @"");
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
    insta::assert_snapshot!(example("sqlite_stores"), @"");
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
    insta::assert_snapshot!(example("embed_gateway"), @"");
}

//! `bench check-engine`: an honest engine of each door, and one that breaks each rule.

use crate::pages::blocks;
use crate::support::{Files, Run};

/// An engine in shell that keeps every rule: the tools whose line has the first word of the query, by what their lines say.
const HONEST: &str = r#"# start
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
  case $line in
    *'"hello"'*) echo '{"ok":true,"name":"words","version":"1"}' ;;
    *'"op":"load"'*) echo "{\"ok\":true,\"tools\":$(grep -c . catalog.jsonl)}" ;;
    *'"ping"'*) echo "{\"id\":\"$id\"}" ;;
    *)
      word=$(printf '%s' "$line" | sed -n 's/.*"query":"\([a-z]*\).*/\1/p')
      k=$(printf '%s' "$line" | sed -n 's/.*"k":\([0-9]*\).*/\1/p')
      sorted() { sed 's/{"id":"\([^"]*\)",\(.*\)/\2 \1/' | sort | sed 's/.* \(t[0-9]*\)$/"\1"/' | head -n "$1" | paste -sd, -; }
      found=$(grep -i -- "${word:-no such word}" catalog.jsonl | sorted "$k")
      answer ;;
  esac
done
"#;

/// The honest engine with another answer to queries: `$found` are tools, `$id` the id, `$k` how many.
fn with_answer(answer: &str) -> String {
    format!("answer() {{ {answer}; }}\n{HONEST}")
}

fn honest() -> String {
    with_answer(r#"echo "{\"id\":\"$id\",\"tools\":[$found]}""#)
}

fn check(files: &Files, arguments: &[&str]) -> Run {
    files.run(&[&["bench", "check-engine"], arguments].concat())
}

/// The rules of a verdict, in the output for people.
fn rules<'r>(run: &'r Run, verdict: &str) -> Vec<&'r str> {
    let rule = |line: &'r str| line.strip_prefix(&format!("{verdict:<10} "))?.split_whitespace().next();
    run.stdout.lines().filter_map(rule).collect()
}

#[test]
fn an_honest_engine_keeps_every_rule() {
    let files = Files::new();
    files.write("engine.sh", honest());
    let run = check(&files, &["--process", "sh engine.sh"]);
    insta::assert_snapshot!(run.shown(), @r#"
    exit 0
    ok         hello      hello is answered with ok, name and version
    ok         load       load is answered with ok and the number of tools
    ok         ping       ping is answered
    ok         id         every answer has the id of its request
    ok         list       a query is answered with a list `tools`
    ok         known      tools are ids of the catalog
    ok         once       no tool is named twice
    ok         k          at most k tools
    not tried  scores     there are as many scores as tools, and scores do not rise
                          found  it gives none, which is allowed
    not tried  us         us is at most the time that the answer took
                          found  it gives none, which is allowed
    ok         empty      an empty query is answered
    ok         long       a query of 20 kB is answered
    ok         languages  other languages, emoji and quotes are answered
    ok         same       the same query gets the same answer
    ok         order      the order of the catalog changes no answer
    ok         quiet      nothing but answers on standard output
    ok         ends       it exits with 0 at the end of its input

    15 ok, 0 wrong, 2 not tried
    "#);
    let json = check(&files, &["--process", "sh engine.sh", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        (json.code, &value["kind"], &value["rules"][1]["verdict"]),
        (0, &"bench check-engine".into(), &"ok".into())
    );
}

#[test]
fn each_rule_is_broken_by_an_engine_and_the_rest_is_tried() {
    let two = r#"two=$(head -n 2 catalog.jsonl | sorted 2); one=${two%,*}"#;
    let answer = |tools: &str| with_answer(&format!("{two}; echo \"{{\\\"id\\\":\\\"$id\\\",{tools}}}\""));
    let table: [(&str, String, &[&str]); 19] = [
        ("no version", honest().replace(",\"version\":\"1\"", ""), &["hello"]),
        ("another count", honest().replace("grep -c .", "grep -c forge"), &["load"]),
        ("no count", honest().replace(r#",\"tools\":$(grep -c . catalog.jsonl)"#, ""), &["load"]),
        ("no ping", honest().replace(r#"*'"ping"'*) echo "{\"id\":\"$id\"}""#, "*'\"ping\"'*) exit 3"), &["ping"]),
        ("another id", with_answer(r#"echo "{\"id\":\"a0\",\"tools\":[$found]}""#), &["id"]),
        ("no list", with_answer(r#"echo "{\"id\":\"$id\"}""#), &["list"]),
        ("names", with_answer(r#"echo "{\"id\":\"$id\",\"tools\":[\"create_issue\"]}""#), &["known"]),
        ("twice", answer(r#"\"tools\":[$one,$one]"#), &["once", "k"]),
        ("all of them", with_answer(r#"echo "{\"id\":\"$id\",\"tools\":[$(sorted 99 < catalog.jsonl)]}""#), &["k"]),
        (
            "rising",
            with_answer(&format!(
                r#"{two}; [ "$k" = 1 ] && echo "{{\"id\":\"$id\",\"tools\":[]}}" || echo "{{\"id\":\"$id\",\"tools\":[$two],\"scores\":[1,2]}}""#
            )),
            &["scores"],
        ),
        ("one score", answer(r#"\"tools\":[$one],\"scores\":[3,2]"#), &["scores"]),
        ("clock", with_answer(r#"echo "{\"id\":\"$id\",\"tools\":[$found],\"us\":900000000}""#), &["us"]),
        (
            "empty",
            honest().replace("  case $line in", "  case $line in *'\"query\":\"\"'*) exit 3 ;; esac\n  case $line in"),
            &["empty"],
        ),
        ("long", honest().replace("  case $line in", "  [ ${#line} -gt 9000 ] && exit 3\n  case $line in"), &["long"]),
        (
            "languages",
            honest().replace("  case $line in", "  case $line in *🎵*) exit 3 ;; esac\n  case $line in"),
            &["languages"],
        ),
        (
            "fickle",
            with_answer(
                r#"n=$((n + 1)); echo "{\"id\":\"$id\",\"tools\":[$(head -n $((n % 5 + 1)) catalog.jsonl | tail -n 1 | sorted 1)]}""#,
            ),
            &["same", "order"],
        ),
        ("by place", answer(r#"\"tools\":[$one]"#), &["order"]),
        ("talks", honest().replace("# start", "echo Loading the model"), &["quiet"]),
        ("ends badly", format!("{}exit 4\n", honest()), &["ends"]),
    ];
    let mut wrong = Vec::new();
    for (what, engine, expected) in table {
        let files = Files::new();
        files.write("engine.sh", engine);
        let run = check(&files, &["--process", "sh engine.sh"]);
        let found = rules(&run, "wrong");
        if run.code != 1 || found != expected {
            wrong.push(format!("{what}: {found:?} and not {expected:?}\n{}", run.shown()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // Which rules else a line too many breaks depends on when it comes.
    let files = Files::new();
    files.write("engine.sh", with_answer(r#"echo "{\"id\":\"$id\",\"tools\":[$found]}"; echo '{"done":1}'"#));
    let run = check(&files, &["--process", "sh engine.sh"]);
    assert!(rules(&run, "wrong").contains(&"quiet"), "{}", run.shown());
}

#[test]
fn a_mistake_is_shown_with_what_was_sent_what_came_and_what_to_do() {
    let files = Files::new();
    files.write("engine.sh", with_answer(r#"echo "{\"id\":\"$id\",\"tools\":[\"create_issue\"]}""#));
    insta::assert_snapshot!(check(&files, &["--process", "sh engine.sh"]).shown(), @r#"
    exit 1
    ok         hello      hello is answered with ok, name and version
    ok         load       load is answered with ok and the number of tools
    ok         ping       ping is answered
    ok         id         every answer has the id of its request
    ok         list       a query is answered with a list `tools`
    wrong      known      tools are ids of the catalog
                          found  "create_issue" is not an id of the catalog
                          sent   {"op":"route","query":"open a ticket about the login bug","k":100,"id":"a2"}
                          got    {"id":"a2","tools":["create_issue"]}
                          do     name each tool by the `id` of its line in the catalog, as text
    ok         once       no tool is named twice
    ok         k          at most k tools
    not tried  scores     there are as many scores as tools, and scores do not rise
                          found  it gives none, which is allowed
    not tried  us         us is at most the time that the answer took
                          found  it gives none, which is allowed
    ok         empty      an empty query is answered
    ok         long       a query of 20 kB is answered
    ok         languages  other languages, emoji and quotes are answered
    ok         same       the same query gets the same answer
    not tried  order      the order of the catalog changes no answer
    ok         quiet      nothing but answers on standard output
    ok         ends       it exits with 0 at the end of its input

    13 ok, 1 wrong, 3 not tried
    "#);

    files.write("engine.sh", "read -r line; echo '{\"error\":\"no model\"}'; cat > /dev/null");
    let early = check(&files, &["--process", "sh engine.sh"]);
    assert!(early.code == 1 && rules(&early, "not tried").len() >= 13, "{}", early.shown());
    let missing = check(&files, &["--process", "no-such-program"]);
    assert!(missing.code == 2 && missing.stderr.contains("missing: no-such-program"), "{}", missing.shown());
    let two = check(&files, &["--process", "a", "--run", "b"]);
    assert!(two.code == 2 && check(&files, &[]).code == 2, "{}", two.shown());
}

/// A context engine in shell: the prompt is made of the query, a result of its first letters.
const CONTEXT: &str = r#"while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":"\(a[0-9]*\)".*/\1/p')
  case $line in
    *'"op":"hello"'*) echo '{"ok":true,"name":"short","version":"1"}' ;;
    *'"op":"ping"'*) echo "{\"id\":\"$id\"}" ;;
    *'"op":"compile"'*) echo "{\"id\":\"$id\",\"text\":\"a prompt\"}" ;;
    *) echo "{\"id\":\"$id\",\"unsupported\":\"no results\"}" ;;
  esac
done
"#;

#[test]
fn context_engines_have_rules_of_their_own() {
    let files = Files::new();
    let (prompt, results) = (r#"\"text\":\"a prompt\""#, r#"\"unsupported\":\"no results\""#);
    let table: [(&str, String, &[&str]); 6] = [
        ("honest", CONTEXT.to_owned(), &[]),
        ("does nothing", CONTEXT.replace(prompt, results), &["compile"]),
        ("tells", CONTEXT.replace("a prompt", "the code of the safe is 4711"), &["hidden"]),
        ("no text", CONTEXT.replace(prompt, "\\\"prompt\\\":1"), &["compile", "empty", "languages"]),
        ("fickle", CONTEXT.replace("a prompt", "prompt $((n += 1))"), &["same"]),
        ("fails", CONTEXT.replace(results, r#"\"error\":\"no model\""#), &["compact", "empty", "languages"]),
    ];
    for (what, engine, expected) in table {
        files.write("engine.sh", engine);
        let run = check(&files, &["--context", "sh engine.sh"]);
        assert_eq!(rules(&run, "wrong"), expected, "{what}: {}", run.shown());
        assert_eq!(run.code, i32::from(!expected.is_empty()), "{what}: {}", run.shown());
    }
}

#[test]
fn a_gateway_is_told_what_there_is_instead() {
    let files = Files::new();
    let command = format!("{} mcp serve --config {{upstreams}}", env!("CARGO_BIN_EXE_contextweaver"));
    let gateway = |tool: &str, argument: &str, ids: &str| {
        let names = ["--mcp-search-tool", tool, "--mcp-query-argument", argument, "--mcp-ids", ids];
        check(&files, &[&["--mcp", &command][..], &names].concat())
    };
    insta::assert_snapshot!(gateway("tool_browse", "query", "/content/*/text").shown(), @r#"
    exit 0
    ok         initialize initialize is answered with serverInfo: name and version
    ok         ping       ping is answered
    ok         tool       tools/list has the tool that searches
    ok         argument   the tool takes the query
    ok         required   the tool needs no other argument
    ok         search     a search succeeds
    ok         pointer    the pointer finds texts in the result
                          found  12 texts in 12 results
    ok         names      the texts name tools of the servers behind it
                          found  12 of 12 queries found tools by name
    ok         same       the same query gets the same tools
    ok         ends       it exits with 0 at the end of its input

    10 ok, 0 wrong, 0 not tried
    "#);
    for (tool, argument, ids, rule, hint) in [
        (
            "find",
            "query",
            "/content/*/text",
            "tool",
            "there is no `find`; there are: tool_browse, tool_execute, tool_view",
        ),
        ("tool_browse", "words", "/content/*/text", "argument", "there is no `words`; there are: "),
        ("tool_browse", "query", "/content/*/name", "pointer", "/content/*/text ("),
    ] {
        let run = gateway(tool, argument, ids);
        assert!(run.code == 1 && rules(&run, "wrong").contains(&rule), "{}", run.shown());
        assert!(run.stdout.contains(hint), "{}", run.shown());
    }
}

#[test]
fn a_run_file_is_told_all_its_mistakes() {
    let files = Files::new();
    files.write("tools.json", crate::support::TOOLS);
    files.write(
        "queries.jsonl",
        "{\"id\": \"q1\", \"query\": \"open a ticket\", \"relevant\": [\"create_issue\"]}\n\
         {\"id\": \"q2\", \"query\": \"send a letter\", \"relevant\": [\"send_mail\"]}\n\
         {\"id\": \"q3\", \"query\": \"say nothing\", \"relevant\": []}\n",
    );
    let run = |text: &str| {
        files.write("run.tsv", text);
        check(&files, &["--run", "run.tsv", "--catalog", "tools.json", "--queries", "queries.jsonl"])
    };
    let good = run("q1\t1\tcreate_issue\t2\nq1\t2\tforge:list_issues\t2\nq2\t1\tsend_mail\t0.5\n");
    insta::assert_snapshot!(good.shown(), @r#"
    exit 0
    ok         form       every line has one of the two forms, and all have the same
                          found  tab-separated: 3 lines
    ok         numbers    ranks are whole numbers, scores are numbers
    ok         queries    queries are named as in the queries file
    ok         tools      tools are named as in the queries file, as server:name, or by id
    ok         once       no query lists a tool twice
    ok         answered   the file answers queries
                          found  2 of 3 queries; the others count as unanswered
    ok         length     queries have tools
                          found  from 1 to 2 tools, 2 in the middle
    ok         ties       equal scores are ties
                          found  1 of the answered queries have equal scores; 3 lines in all

    8 ok, 0 wrong, 0 not tried
    "#);
    let unknown: String = (0..25).map(|number| format!("q2\t1\ttool_{number}\t1\n")).collect();
    let bad = run(&format!(
        "q1\t1\tcreate_issue\t2\nq1\t2\tcreate_issue\t1\nq9\t1\tsend_mail\t1\nq1\tone\tsend_mail\t1\nq3 Q0 send_mail 1 x me\nhello\n{unknown}"
    ));
    insta::assert_snapshot!(bad.shown(), @r#"
    exit 1
    wrong      form       every line has one of the two forms, and all have the same
                          found  TREC: 1 lines, neither: 1 lines, tab-separated: 29 lines
                          found  line 6: neither `query Q0 tool rank score tag` nor `query<TAB>rank<TAB>tool<TAB>score`
                          do     write `query Q0 tool rank score tag`, or query, rank, tool and score with tabs between them
    wrong      numbers    ranks are whole numbers, scores are numbers
                          found  line 4: the rank `one` is not a whole number
                          found  line 5: the score `x` is not a number
                          do     write ranks as 1, 2, 3 and scores as 17.25
    wrong      queries    queries are named as in the queries file
                          found  line 3: query `q9` is not in the queries file
                          do     name each query by its `id` in the queries file
    wrong      tools      tools are named as in the queries file, as server:name, or by id
                          found  line 7: tool `tool_0` is not in the catalog
                          found  line 8: tool `tool_1` is not in the catalog
                          found  line 9: tool `tool_2` is not in the catalog
                          found  line 10: tool `tool_3` is not in the catalog
                          found  line 11: tool `tool_4` is not in the catalog
                          found  line 12: tool `tool_5` is not in the catalog
                          found  line 13: tool `tool_6` is not in the catalog
                          found  line 14: tool `tool_7` is not in the catalog
                          found  line 15: tool `tool_8` is not in the catalog
                          found  line 16: tool `tool_9` is not in the catalog
                          found  line 17: tool `tool_10` is not in the catalog
                          found  line 18: tool `tool_11` is not in the catalog
                          found  line 19: tool `tool_12` is not in the catalog
                          found  line 20: tool `tool_13` is not in the catalog
                          found  line 21: tool `tool_14` is not in the catalog
                          found  line 22: tool `tool_15` is not in the catalog
                          found  line 23: tool `tool_16` is not in the catalog
                          found  line 24: tool `tool_17` is not in the catalog
                          found  line 25: tool `tool_18` is not in the catalog
                          found  line 26: tool `tool_19` is not in the catalog
                          found  and 5 more
                          do     name each tool as in the catalog; in TREC forms a space is %20
    wrong      once       no query lists a tool twice
                          found  line 2: query `q1` has this tool twice
                          do     keep the best of the lines
    ok         answered   the file answers queries
                          found  1 of 3 queries; the others count as unanswered
    ok         length     queries have tools
                          found  from 1 to 1 tools, 1 in the middle
    ok         ties       equal scores are ties
                          found  0 of the answered queries have equal scores; 31 lines in all

    3 ok, 5 wrong, 0 not tried
    "#);
    assert_eq!(run("").code, 1);
}

/// The example of the page is what an author begins with.
#[test]
fn the_page_shows_the_check() {
    let shown = blocks("docs/engines.md", Some("## A process"));
    assert!(shown.iter().any(|block| block.text.contains("check-engine --process")), "{shown:?}");
}

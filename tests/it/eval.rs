//! `bench eval`: engines by each door, what failed, and gates.

use std::fs;

use crate::support::{Files, Run};

const TOOLS: &str = r#"{"tools": [
    {"name": "create_issue", "description": "Open a new issue in a repository"},
    {"name": "list_issues", "description": "List the issues of a repository"},
    {"name": "send_mail", "description": "Send a letter by electronic mail"},
    {"name": "play_song", "description": "Play music on a loudspeaker"},
    {"name": "water_plants", "description": "Turn on the garden's sprinkler"},
    {"name": "lock_door", "description": "Lock a door of the building"},
    {"name": "dim_lights", "description": "Make the lights of a room darker"}
]}"#;

const QUERIES: &str = r#"{"id": "q1", "query": "open an issue", "relevant": ["create_issue"]}
{"id": "q2", "query": "write a letter", "relevant": ["send_mail"]}
{"id": "q3", "query": "nobody should get in", "relevant": ["lock_door"]}
{"id": "q4", "query": "order a pizza", "relevant": []}
"#;

/// An engine in twelve lines of shell: it knows one word, and answers everything else with the first tool.
const SHELL_ENGINE: &str = r#"while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
  case $line in
    *'"hello"'*) echo '{"ok":true,"name":"letters","version":"0.1"}' ;;
    *'"load"'*)
      mail=$(sed -n 's/.*"id":"\([^"]*\)".*send_mail.*/\1/p' catalog.jsonl)
      echo '{"ok":true}' ;;
    *'"ping"'*) echo "{\"id\":\"$id\"}" ;;
    *letter*) echo "{\"id\":\"$id\",\"tools\":[\"$mail\"]}" ;;
    *) echo "{\"id\":\"$id\",\"tools\":[]}" ;;
  esac
done
"#;

fn files() -> Files {
    let files = Files::new();
    files.write("tools.json", TOOLS);
    files.write("queries.jsonl", QUERIES);
    files.write("engine.sh", SHELL_ENGINE);
    files
}

fn eval(files: &Files, arguments: &[&str]) -> Run {
    let base = ["bench", "eval", "--catalog", "tools.json", "--queries", "queries.jsonl"];
    files.run(&[&base[..], arguments].concat())
}

/// The values of `recall@5` by engine, from JSON.
fn recalls(run: &Run) -> Vec<(String, String, f64)> {
    let json: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let entry = |one: &serde_json::Value| {
        let text = |name: &str| one[name].as_str().unwrap().to_owned();
        (text("configuration"), text("origin"), one["facts"]["measures"]["recall@5"]["mean"].as_f64().unwrap())
    };
    json["evaluations"].as_array().unwrap().iter().map(entry).collect()
}

#[test]
fn all_doors_in_one_run() {
    let files = files();
    files.write("theirs.tsv", "q1\t1\tcreate_issue\nq2\t1\tsend_mail\nq3\t1\tlock_door\n");
    let ours = format!("ours={} bench engine", env!("CARGO_BIN_EXE_contextweaver"));
    let run = eval(
        &files,
        &[
            "--engine",
            "lexical",
            "--process",
            &ours,
            "--process",
            "letters=sh engine.sh",
            "--run",
            "theirs=theirs.tsv",
            "--format",
            "json",
        ],
    );
    assert_eq!(run.code, 0, "{}", run.shown());
    let found = recalls(&run);
    let shown: Vec<(&str, &str)> = found.iter().map(|(name, origin, _)| (name.as_str(), origin.as_str())).collect();
    let expected = [("lexical", "computed"), ("ours", "process"), ("letters", "process"), ("theirs", "imported")];
    assert_eq!(shown, expected);
    assert_eq!((found[2].2, found[3].2), (0.333333, 1.0));
    // The engine that serves is the one that is measured, by whichever door.
    let inside = eval(&files, &["--format", "json"]);
    assert_eq!(recalls(&inside)[0].2, found[1].2);
}

#[test]
fn a_run_that_was_written_gives_the_same_figures() {
    let files = files();
    let first = eval(&files, &["--run-out", "run.tsv", "--format", "json"]);
    let again = eval(&files, &["--run", "again=run.tsv", "--format", "json"]);
    assert_eq!(again.code, 0, "{}", again.shown());
    let measures = |run: &Run| {
        let json: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        json["evaluations"][0]["facts"]["measures"].clone()
    };
    assert_eq!(measures(&first), measures(&again));
}

#[test]
fn every_form_has_one_row_for_each_engine() {
    let files = files();
    files.write("say \"hi\", twice.toml", "k1 = 0.5\n");
    let engines = ["--engine", "bm25", "--config", "say \"hi\", twice.toml", "--format"];
    let form = |name: &str| {
        let run = eval(&files, &[&engines[..], &[name]].concat());
        assert_eq!(run.code, 0, "{}", run.shown());
        run.stdout
    };
    let csv = form("csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 3, "{csv}");
    assert!(lines[0].starts_with("engine,origin,tools,queries,") && lines[0].contains(",recall@5,"), "{csv}");
    assert!(
        lines[1].starts_with("bm25,computed,7,3,") && lines[2].starts_with("\"say \"\"hi\"\", twice.toml\","),
        "{csv}"
    );
    let fields = |line: &str| line.replace("\"say \"\"hi\"\", twice.toml\"", "x").split(',').count();
    assert!(lines.iter().all(|line| fields(line) == fields(lines[0])), "{csv}");
    let markdown = form("markdown");
    assert!(markdown.lines().count() == 4 && markdown.starts_with("| engine "), "{markdown}");
    let jsonl = form("jsonl");
    let names =
        jsonl.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["configuration"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["bm25", "say \"hi\", twice.toml"]);
    for line in jsonl.lines() {
        assert!(line.starts_with("{\"schema_version\":1,\"kind\":\"bench eval engine\","), "{line}");
    }
}

#[test]
fn a_program_that_gives_nothing_is_a_row_and_the_others_are_measured() {
    let files = files();
    let programs = ["--engine", "lexical", "--process", "bad=no-such-program", "--process", "letters=sh engine.sh"];
    let run = |more: &[&str]| {
        let run = eval(&files, &[&programs[..], more].concat());
        assert_eq!(run.code, 2, "{}", run.shown());
        let said = "some engines produced no results: `bad`: missing: no-such-program";
        assert!(run.stderr.contains(said), "{}", run.stderr);
        run.stdout
    };
    let text = run(&[]);
    let places = ["configuration: lexical", "process: letters (letters 0.1)", "process: bad\nmissing: no-such-program"];
    let places: Vec<usize> =
        places.iter().map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"))).collect();
    assert!(places.is_sorted(), "{text}");
    let json: serde_json::Value = serde_json::from_str(&run(&["--format", "json"])).unwrap();
    assert_eq!(json["evaluations"].as_array().unwrap().len(), 2);
    let failed = &json["failed"][0];
    assert_eq!([&failed["configuration"], &failed["word"], &failed["origin"]], ["bad", "missing", "process"]);
    let last = run(&["--format", "jsonl"]).lines().last().unwrap().to_owned();
    assert!(
        last.starts_with("{\"schema_version\":1,\"kind\":\"bench eval failed\",\"configuration\":\"bad\""),
        "{last}"
    );
    let csv = run(&["--format", "csv"]);
    assert!(csv.lines().last().unwrap().starts_with("bad,process,,") && csv.ends_with(",missing\n"), "{csv}");
    run(&["--html", "report.html"]);
    let html = fs::read_to_string(files.path("report.html")).unwrap();
    assert!(html.contains("<bdi>bad</bdi></th><td colspan=\"6\"><bdi>missing: no-such-program"), "{html}");

    // Gates judge the first engine; where that one is the one that is not there, nothing is judged in its place.
    let first = eval(&files, &["--process", "bad=false", "--run", "theirs=none.tsv", "--fail-under", "recall@5=1"]);
    assert_eq!(first.code, 2, "{}", first.shown());
    files.write("none.tsv", "q1\t1\tsend_mail\n");
    let first = eval(&files, &["--process", "bad=false", "--run", "theirs=none.tsv", "--fail-under", "recall@5=1"]);
    assert_eq!(first.code, 2, "{}", first.shown());
    assert!(
        !first.stdout.contains("below") && first.stderr.contains("the gates judge the first engine"),
        "{}",
        first.shown()
    );
}

#[test]
fn an_engine_beside_its_own_run_is_the_same() {
    let files = files();
    assert_eq!(eval(&files, &["--engine", "lexical", "--run-out", "run.tsv"]).code, 0);
    let engines = |form: &str| {
        let run =
            eval(&files, &["--engine", "lexical", "--run", "again=run.tsv", "--html", "r.html", "--format", form]);
        assert_eq!(run.code, 0, "{}", run.shown());
        run.stdout
    };
    let text = engines("text");
    assert!(text.contains(".000 [.000, .000] from lexical: same\n"), "{text}");
    // What another program took is not known, and not nothing.
    assert_eq!(text.matches(" terms, ").count(), 1, "{text}");
    assert!(engines("csv").ends_with(",0,0,0,same\n"), "{}", engines("csv"));
    let json: serde_json::Value = serde_json::from_str(&engines("json")).unwrap();
    let verdicts: Vec<&serde_json::Value> =
        json["evaluations"].as_array().unwrap().iter().map(|one| &one["verdict"]).collect();
    assert_eq!(verdicts, [&serde_json::Value::Null, &"same".into()]);
    let html = fs::read_to_string(files.path("r.html")).unwrap();
    assert!(html.contains(".000 [.000, .000] same</td>"), "{html}");
}

#[test]
fn a_report_shows_all_doors_and_the_command() {
    let files = files();
    files.write("other.tsv", "q1\t1\tsend_mail\n");
    let arguments =
        ["--engine", "bm25", "--process", "mine=sh engine.sh", "--run", "theirs=other.tsv", "--html", "report.html"];
    let run = eval(&files, &arguments);
    assert_eq!(run.code, 0, "{}", run.shown());
    let html = fs::read_to_string(files.path("report.html")).unwrap();
    for shown in ["badge computed", "badge process", "badge imported", "nobody should get in", "lock_door"] {
        assert!(html.contains(shown), "{shown}");
    }
    let command = "contextweaver bench eval --catalog tools.json --queries queries.jsonl --engine bm25 --process \
                   &#39;mine=sh engine.sh&#39; --run theirs=other.tsv</code>";
    assert!(html.contains(command));
    assert_eq!(eval(&files, &arguments).code, 0);
    assert!(fs::read_to_string(files.path("report.html")).unwrap() == html, "the same bytes");

    let gateway = [
        "--engine",
        "bm25",
        "--mcp",
        "gate=false {config}",
        "--mcp-search-tool",
        "find",
        "--mcp-query-argument",
        "q",
        "--mcp-ids",
        "/content/*/text",
        "--html",
        "report.html",
    ];
    assert_eq!(eval(&files, &gateway).code, 2, "the gateway gives nothing, and its command is shown");
    let html = fs::read_to_string(files.path("report.html")).unwrap();
    let command =
        "--engine bm25 --mcp &#39;gate=false {config}&#39; --mcp-search-tool find --mcp-query-argument q --mcp-ids";
    assert!(html.contains(command), "{html}");
}

#[test]
fn failures_are_listed_with_what_stands_in_front() {
    let files = files();
    let run = eval(&files, &["--engine", "lexical", "--failures"]);
    let from = run.stdout.find("\n1 of 3").unwrap_or_else(|| panic!("{}", run.shown()));
    insta::assert_snapshot!(&run.stdout[from..], @r"

    1 of 3 queries lack a tool among the first five

    q3  nobody should get in
      wanted   lock_door: not found
      found    nothing
      because  no word of the query is in the tool's definition
    ");
    let form = |name: &str| eval(&files, &["--engine", "lexical", "--failures", "--format", name]);
    let json: serde_json::Value = serde_json::from_str(&form("json").stdout).unwrap();
    let failure = &json["evaluations"][0]["failures"][0];
    assert_eq!([&failure["query"], &failure["wanted"][0]["tool"]], ["q3", "lock_door"]);
    assert_eq!(failure["wanted"][0]["rank"], serde_json::Value::Null);
    let markdown = form("markdown").stdout;
    let row = "| `q3` | `nobody should get in` | `lock_door`: not found | nothing | no word of the query is in the tool's definition |";
    assert!(markdown.lines().any(|line| line == row), "{markdown}");
    let csv = form("csv");
    assert!(csv.code == 2 && csv.stderr.contains("--failures has no place in a CSV table"), "{}", csv.shown());
}

/// Proportions as nobody writes them here: with a zero in front of the point.
fn with_a_zero(text: &str) -> Vec<&str> {
    let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let words = text.split(|letter: char| letter.is_whitespace() || "[](),;:=".contains(letter));
    let number = |word: &&str| {
        let bare = word.trim_start_matches(['+', '-', '−']).trim_end_matches('.');
        bare.starts_with("0.") && bare.chars().all(is_number)
    };
    words.filter(number).collect()
}

#[test]
fn proportions_are_written_in_one_style() {
    assert_eq!(with_a_zero("recall@5 0.789, +0.012 [−0.5, .7]; version 0.1.0x"), ["0.789", "+0.012", "−0.5"]);
    let files = files();
    files.write("gate.tools.json", TOOLS);
    files.write("theirs.tsv", "q1\t1\tcreate_issue\n");
    let base = eval(&files, &["--engine", "lexical", "--format", "json"]);
    files.write("base.json", &base.stdout);
    let own = ["--catalog", "tools.json", "--queries", "queries.jsonl"];
    let commands: [&[&str]; 6] = [
        &[
            "bench",
            "eval",
            "--engine",
            "lexical",
            "--engine",
            "bm25",
            "--baseline",
            "base.json",
            "--fail-under",
            "recall@5=.9",
        ],
        &["bench", "eval", "--engine", "lexical", "--engine", "bm25", "--format", "markdown"],
        &["bench", "rot", "--size", "20", "--seeds", "2"],
        &["bench", "compare", "lexical", "theirs.tsv"],
        &[
            "catalog",
            "diff",
            "tools.json",
            "gate.tools.json",
            "--impact",
            "--queries",
            "queries.jsonl",
            "--fail-under",
            "recall@5=.9",
        ],
        &["bench", "init", "gate"],
    ];
    for command in commands {
        let arguments: Vec<&str> =
            if command[0] == "catalog" { command.to_vec() } else { [command, &own[..]].concat() };
        let run = files.run(&arguments);
        assert!(run.code < 2, "{arguments:?}: {}", run.shown());
        assert_eq!(with_a_zero(&run.stdout), Vec::<&str>::new(), "{arguments:?}: {}", run.stdout);
    }
    let gated = files.run(&["bench", "run", "--root", "gate"]);
    assert!(gated.code < 2, "{}", gated.shown());
    assert_eq!(with_a_zero(&gated.stdout), Vec::<&str>::new(), "{}", gated.stdout);
}

#[test]
fn gates_fail_with_exit_code_1_and_say_why() {
    let files = files();
    let passed = eval(&files, &["--engine", "lexical", "--fail-under", "recall@5=.6", "--max-tokens", "5000"]);
    assert_eq!(passed.code, 0, "{}", passed.shown());
    let from = passed.stdout.find("\npassed: ").unwrap_or_else(|| panic!("{}", passed.shown()));
    insta::assert_snapshot!(&passed.stdout[from..], @r"

    passed: recall@5 of lexical is .667, not below .600
      3 queries tell it to within .500 (half its 95 % interval); other queries could flip this gate
    passed: all definitions take 159 tokens, not more than 5,000
    ");
    let failed = eval(&files, &["--engine", "lexical", "--fail-under", "recall@5=.7", "--max-tokens", "50"]);
    assert_eq!(failed.code, 1, "{}", failed.shown());
    let lines: Vec<&str> = failed.stdout.lines().filter(|line| line.starts_with("failed: ")).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0], "failed: recall@5 of lexical is .667, below .700");
    assert!(lines[1].starts_with("failed: all definitions take "), "{lines:?}");
    for form in ["csv", "markdown", "json", "jsonl"] {
        let failed = eval(
            &files,
            &["--engine", "lexical", "--fail-under", "recall@5=.7", "--max-tokens", "50", "--format", form],
        );
        assert_eq!(failed.code, 1, "{form}: {}", failed.shown());
        assert_eq!(failed.stderr.lines().collect::<Vec<_>>(), lines, "{form}");
    }
    // Two thirds, which the facts hold as 0.666667.
    for (least, expected) in [
        ("recall@5=.66666666", None),
        ("recall@5=.666667", Some("failed: recall@5 of lexical is .6666667, below .6666670")),
    ] {
        let run = eval(&files, &["--engine", "lexical", "--fail-under", least]);
        assert_eq!(run.stdout.lines().find(|line| line.starts_with("failed: ")), expected, "{}", run.shown());
        assert_eq!(run.code, i32::from(expected.is_some()), "{}", run.shown());
    }
    files.write("queries.jsonl", QUERIES.lines().last().unwrap());
    let none = eval(&files, &["--engine", "lexical", "--fail-under", "recall@5=.5"]);
    let expected = "failed: recall@5 of lexical has no value, since no query has a relevant tool";
    assert!(none.code == 1 && none.stdout.contains(expected), "{}", none.shown());
}

#[test]
fn what_cannot_be_written_is_refused_before_anything_is_measured() {
    let files = files();
    let table: [(&[&str], &str); 4] = [
        (&["--trec-out", "trec", "--html", "none/x.html"], "--html: the file cannot be written"),
        (&["--trec-out", "trec", "--run-out", "none/x.tsv"], "--run-out: the file cannot be written"),
        (&["--run-out", "."], "--run-out .: it is a folder; name a file"),
        (&["--trec-out", "engine.sh/trec"], "is no folder; name another"),
    ];
    for (arguments, expected) in table {
        let run = eval(&files, arguments);
        assert!(
            run.code == 2 && run.stdout.is_empty() && run.stderr.contains(expected),
            "{arguments:?}: {}",
            run.shown()
        );
        assert!(!files.path("trec").exists(), "{arguments:?}");
    }
}

#[test]
fn texts_of_queries_begin_no_line_of_a_log() {
    let files = files();
    let query = serde_json::json!({"id": "a\n::error::x", "query": "pizza\n::warning::pwn \u{1b}[31m", "relevant": ["lock_door"]});
    files.write("queries.jsonl", query.to_string());
    let run = eval(&files, &["--engine", "lexical", "--failures"]);
    assert!(run.code == 0 && run.stdout.contains("\na ::error::x  pizza ::warning::pwn  [31m\n"), "{}", run.shown());
    assert!(!run.stdout.contains('\u{1b}'), "{}", run.shown());
}

#[test]
fn a_baseline_is_compared_in_pairs() {
    let files = files();
    let queries: String = (0..40)
        .map(|number| {
            format!("{{\"id\": \"q{number}\", \"query\": \"letter number{number}\", \"relevant\": [\"send_mail\"]}}\n")
        })
        .collect();
    files.write("queries.jsonl", queries);
    let base = eval(&files, &["--engine", "lexical", "--format", "json"]);
    files.write("base.json", &base.stdout);
    let same = eval(&files, &["--engine", "lexical", "--baseline", "base.json"]);
    assert_eq!(same.code, 0, "{}", same.shown());
    let from = same.stdout.find("recall@5 against").unwrap_or_else(|| panic!("{}", same.shown()));
    insta::assert_snapshot!(&same.stdout[from..], @r"
    recall@5 against the baseline: same
      .000 (90 % interval .000 to .000) over 40 queries, of which 0 differ; p = 1.0000
      assuming that 10 % of the queries change, a difference of .140 would be seen four times out of five; one of .010 takes 7,809 more queries
    passed: lexical has not regressed against the baseline
    ");
    let least = eval(&files, &["--engine", "lexical", "--fail-under", "recall@5=.95"]);
    assert!(
        least.stdout.ends_with(
            "passed: recall@5 of lexical is 1.000, not below .950\n  40 queries tell it to within .072 (at 95 %, all of \
             them being alike); other queries could flip this gate\n"
        ),
        "{}",
        least.shown()
    );

    // Queries that were taken out of the file are missing, and not asked alike.
    let mut fewer: serde_json::Value = serde_json::from_str(&base.stdout).unwrap();
    fewer["evaluations"][0]["ranks"].as_object_mut().unwrap().remove("q7");
    files.write("fewer.json", fewer.to_string());
    let fewer = eval(&files, &["--engine", "lexical", "--baseline", "fewer.json"]);
    assert!(fewer.code == 2 && fewer.stdout.contains("against the baseline: not comparable"), "{}", fewer.shown());

    files.write("worse.tsv", "q1\t1\tsend_mail\n");
    let worse = eval(&files, &["--run", "worse=worse.tsv", "--baseline", "base.json"]);
    assert_eq!(worse.code, 1, "{}", worse.shown());
    assert!(worse.stdout.contains("recall@5 against `lexical` of the baseline: regressed"), "{}", worse.stdout);
    assert!(worse.stdout.contains("failed: worse regressed against the baseline"), "{}", worse.stdout);
    // Where the baseline has the engine itself, another one that stands in front of it is no matter.
    let two = eval(&files, &["--engine", "lexical", "--run", "worse=worse.tsv", "--format", "json"]);
    files.write("two.json", two.stdout);
    let itself = eval(&files, &["--run", "worse=worse.tsv", "--baseline", "two.json"]);
    assert!(itself.code == 0 && itself.stdout.contains("against the baseline: same"), "{}", itself.shown());

    let other = fs::read_to_string(files.path("tools.json")).unwrap().replace("electronic", "ordinary");
    files.write("tools.json", other);
    let other = eval(&files, &["--engine", "lexical", "--baseline", "base.json"]);
    assert_eq!(other.code, 2, "{}", other.shown());
    assert!(other.stderr.contains("compare the queries that both have with --changed-inputs"), "{}", other.stderr);
    let asked = eval(&files, &["--engine", "lexical", "--baseline", "base.json", "--changed-inputs"]);
    assert_eq!(asked.code, 0, "{}", asked.shown());
}

#[test]
fn what_cannot_be_measured_is_refused_by_name() {
    let files = files();
    files.write("bad.tsv", "q9\t1\tsend_mail\n");
    files.write("bad.json", "{}");
    files.write("empty.tsv", "");
    let table = [
        (&["--engine", "pizza"][..], "no engine `pizza`; there are default, lexical, best, bm25"),
        (&["--engine", "pizza"], "and in a checkout the programs bm25s, rank-bm25"),
        (
            &["--engine", "bm25s"],
            "`bm25s` is a program of scenarios/engines.toml, which is in a contextweaver checkout",
        ),
        (&["--process", "x=no-such-program"], "missing: no-such-program"),
        (&["--process", "x"], "not of the form NAME=COMMAND"),
        (&["--run", "x"], "not of the form NAME=FILE"),
        (&["--run", "x=bad.tsv"], "bad.tsv:1: query `q9` is not in the queries file"),
        (&["--run", "x=none.tsv"], "none.tsv"),
        (&["--baseline", "bad.json"], "or the output of `bench eval --format json`? missing field"),
        (&["--run", "x=empty.tsv"], "empty.tsv:1: no query is answered; write a line for each tool"),
        (
            &["--engine", "default", "--process", "default=sh engine.sh"],
            "--engine and --process both name an engine `default`; give each engine a name of its own, and each once",
        ),
        (&["--engine", "bm25", "--engine", "bm25"], "--engine and --engine both name an engine `bm25`"),
        (&["--fail-under", "recall@7=.5"], "no measure `recall@7`"),
        (&["--fail-under", "recall@5=80"], "`recall@5` is 80, which is not a number from 0 to 1"),
    ];
    for (arguments, expected) in table {
        let run = eval(&files, arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.shown());
        assert!(run.stderr.contains(expected), "{arguments:?}: {}", run.shown());
    }
}

#[test]
fn a_grown_catalog_says_which_part_of_it_was_used() {
    let files = files();
    let sizes = ["--grade", "unrelated", "--grade", "copies", "--size", "50", "--size", "100", "--seeds", "1"];
    let rot = |catalog: &str, form: &str| {
        let own = ["bench", "rot", "--catalog", catalog, "--queries", "queries.jsonl", "--format", form];
        let run = files.run(&[&own[..], &sizes].concat());
        assert_eq!(run.code, 0, "{}", run.shown());
        run.stdout
    };
    let small = rot("tools.json", "text");
    // The control stands beside in the same row, and the difference is that of the two.
    let rows: Vec<Vec<&str>> = small.lines().map(|line| line.split_whitespace().collect()).collect();
    let titles = ["distractors", "tools", "queries", "yours", "bm25", "difference", "verdict"];
    assert!(rows.iter().any(|row| row[..] == titles), "{small}");
    assert!(small.contains("\nbm25 is the control: flat BM25 on the same catalogs and queries\n"), "{small}");
    let core =
        "\nevery size contains the core of your catalog: 7 of 7 tools, and the 3 of 3 queries that these answer\n";
    assert!(small.ends_with(core), "{small}");
    let more: Vec<String> =
        (0..53).map(|n| format!(r#"{{"name": "other_{n}", "description": "Other {n}"}}"#)).collect();
    files.write(
        "large.json",
        TOOLS.replace("    {\"name\": \"create_issue\"", &format!("{}, {{\"name\": \"create_issue\"", more.join(", "))),
    );
    let sizes = ["--grade", "unrelated", "--size", "50", "--size", "100", "--seeds", "1"];
    let own = ["bench", "rot", "--catalog", "large.json", "--queries", "queries.jsonl"];
    let large = files.run(&[&own[..], &sizes].concat());
    assert!(large.stdout.contains(": 50 of 60 tools, and the 3 of 3 queries"), "{}", large.shown());
    let smaller = "\nsizes with fewer tools than your catalog, so easier than it is: 50\n";
    assert!(large.stdout.ends_with(smaller), "{}", large.shown());
    let json: serde_json::Value = serde_json::from_str(&rot("tools.json", "json")).unwrap();
    assert!(json.to_string().contains(r#""own_tools":7,"of_tools":7,"queries":3,"of_queries":3"#), "{json}");
}

#[test]
fn the_control_of_a_grown_catalog_is_what_it_gives_alone() {
    let files = files();
    files.write("flat.toml", "scorer = \"bm25\"\nsemantic = 0.0\n");
    let rot = |more: &[&str]| {
        let own =
            ["bench", "rot", "--catalog", "tools.json", "--queries", "queries.jsonl", "--grade", "near_duplicate"];
        let sizes = ["--size", "20", "--size", "40", "--seeds", "3", "--format"];
        let run = files.run(&[&own[..], &sizes, more].concat());
        assert_eq!(run.code, 0, "{}", run.shown());
        run.stdout
    };
    let points = |text: String| -> Vec<serde_json::Value> {
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        json.as_object().unwrap().values().find_map(|value| value.as_array().cloned()).unwrap()
    };
    let (ours, lexical) = (points(rot(&["json"])), points(rot(&["json", "--config", "flat.toml"])));
    for (one, other) in ours.iter().zip(&lexical) {
        // Whatever is measured beside it, the control is the same.
        assert_eq!(one["control"]["by_seed"], other["control"]["by_seed"]);
        let number = |value: &serde_json::Value| value.as_f64().unwrap();
        for seed in 0..3 {
            let difference = number(&one["by_seed"][seed]) - number(&one["control"]["by_seed"][seed]);
            assert!((difference - number(&one["control"]["difference_by_seed"][seed])).abs() < 2e-6, "{one}");
        }
        assert_eq!(one["control"]["engine"], "bm25");
        let paired = number(&one["control"]["difference"]["difference"]["mean"]);
        assert!((paired - number(&one["control"]["difference_by_seed"][0])).abs() < 2e-6, "{one}");
    }
    let csv = rot(&["csv"]);
    let cells: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(cells.len(), 3, "{csv}");
    assert!(cells.iter().all(|row| row.len() == cells[0].len()), "{csv}");
    let at = |title: &str| cells[0].iter().position(|one| *one == title).unwrap();
    assert_eq!(cells[2][at("bm25")], ours[1]["control"]["recall_at_5"]["mean"].to_string(), "{csv}");
    assert_eq!(cells[2][at("led")], ours[1]["control"]["led"].to_string(), "{csv}");
    let drawn = files.run(&[
        "bench",
        "rot",
        "--catalog",
        "tools.json",
        "--queries",
        "queries.jsonl",
        "--grade",
        "mixed",
        "--size",
        "20",
        "--size",
        "40",
        "--seeds",
        "1",
        "--svg",
        "rot.svg",
    ]);
    assert_eq!(drawn.code, 0, "{}", drawn.shown());
    let svg = fs::read_to_string(files.path("rot.svg")).unwrap();
    assert!(svg.contains("(control: "), "{svg}");
    for (place, expected) in [("queries.jsonl", "would write over"), ("none/rot.svg", "the file cannot be written")] {
        let own = ["bench", "rot", "--catalog", "tools.json", "--queries", "queries.jsonl", "--svg", place];
        let refused = files.run(&own);
        assert!(refused.code == 2 && refused.stderr.contains(expected), "{}", refused.shown());
    }
    assert_eq!(fs::read_to_string(files.path("queries.jsonl")).unwrap(), QUERIES);
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_engine_too_and_removes_its_folder() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    let files = files();
    files.write("hanging.sh", "echo $$ > \"$TMPDIR/begun\"; mv \"$TMPDIR/begun\" \"$TMPDIR/pid\"; sleep 600");
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let pid = files.write(&format!("{signal}/none"), "").with_file_name("pid");
        let mut command = Command::new(env!("CARGO_BIN_EXE_contextweaver"));
        command.args(["bench", "eval", "--catalog", "tools.json", "--queries", "queries.jsonl"]);
        command.args(["--process", "hanging=sh hanging.sh"]).env("TMPDIR", files.path(signal));
        let mut child =
            command.current_dir(files.path("")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while !pid.exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        let engine = fs::read_to_string(&pid).unwrap().trim().to_owned();
        let kill = |arguments: [&str; 2]| {
            Command::new("kill").args(arguments).stderr(Stdio::null()).status().unwrap().success()
        };
        assert!(kill(["-0", &engine]) && kill([&format!("-{signal}"), &child.id().to_string()]));
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        assert!(!kill(["-0", &engine]), "{signal}: the engine still runs");
        let left = fs::read_dir(files.path(signal)).unwrap().count();
        assert_eq!(left, 2, "{signal}: only the files of this test are left");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_nohup_started_outlives_its_terminal() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    let files = files();
    files.write("leaving.sh", ": > \"$TMPDIR/begun\"; sleep 2; exit 3");
    let begun = files.write("seen/none", "").with_file_name("begun");
    let mut command = Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_contextweaver"));
    command.args(["bench", "eval", "--catalog", "tools.json", "--queries", "queries.jsonl"]);
    command.args(["--process", "leaving=sh leaving.sh"]).env("TMPDIR", files.path("seen")).current_dir(files.path(""));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !begun.exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success());
    // The engine leaves by itself, and the run says so.
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

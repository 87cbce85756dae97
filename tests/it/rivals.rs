//! Engines of others: rows of `engines.toml`, what is recorded of them, and what is caught.

use std::fs;

use crate::support::{Files, Run, checkout, household};

/// An engine in shell, by docs/engines.md: it counts the words of the query that stand in a tool's line.
const ENGINE: &str = r#"if [ "$1" = --version ]; then echo 0.3; exit; fi
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
  case $line in
    *'"hello"'*) echo '{"ok":true,"name":"words","version":"0.3"}' ;;
    *'"load"'*) echo '{"ok":true}' ;;
    *'"ping"'*) echo "{\"id\":\"$id\"}" ;;
    *)
      word=$(printf '%s' "$line" | sed -n 's/.*"query":"\([a-z]*\).*/\1/p')
      found=$(grep -i -- "${word:-nothing}" catalog.jsonl | sed 's/.*"id":\("t[0-9]*"\).*/\1/' | sort | head -n 20 | paste -sd, -)
      echo "{\"id\":\"$id\",\"tools\":[$found]}" ;;
  esac
done
"#;

const QUERIES: &str = r#"{"id": "q1", "query": "letter please", "relevant": ["send_mail"]}
{"id": "q2", "query": "open an issue", "relevant": ["create_issue"]}
{"id": "q3", "query": "pizza", "relevant": []}
"#;

const TOOLS: &str = r#"{"tools": [
    {"name": "create_issue", "description": "Open a new issue in a repository"},
    {"name": "send_mail", "description": "Send a letter by electronic mail"},
    {"name": "play_song", "description": "Play music on a loudspeaker"},
    {"name": "lock_door", "description": "Lock a door of the building"}
]}"#;

/// A row of `engines.toml` for a script in `benches/engines/NAME`.
fn row(name: &str) -> String {
    format!(
        "\n[[process]]\nname = \"{name}\"\nanalysis = \"a script\"\nfolder = \"{name}\"\n\
         version = [\"sh\", \"engine.sh\", \"--version\"]\nrun = [\"sh\", \"engine.sh\"]\n"
    )
}

/// A checkout with queries of the household collection and these engines, which start some programs for every query.
fn with_engines(engines: &[(&str, &str)]) -> Files {
    let files = Files::new();
    household(&files, 5);
    let mut rows =
        "[[engine]]\nname = \"default\"\nanalysis = \"a\"\n\n[[engine]]\nname = \"bm25\"\nanalysis = \"b\"\n\
                    configuration = { scorer = \"bm25\" }\n"
            .to_owned();
    for (name, script) in engines {
        rows.push_str(&row(name));
        files.write(&format!("benches/engines/{name}/engine.sh"), script);
    }
    files.write("scenarios/engines.toml", rows);
    files.write(
        "scenarios/small.toml",
        "analysis = \"small\"\norigin = \"embedded\"\ncollections = [\"household\"]\nengines = [\"default\"]\n",
    );
    files.write("README.md", "# R\n<!-- scorecard:begin -->\n<!-- scorecard:end -->\n");
    files
}

#[test]
fn a_shell_script_takes_part_is_recorded_and_is_held_to_the_record() {
    assert!(ENGINE.lines().count() < 50);
    let files = with_engines(&[("words", ENGINE)]);
    let recorded = files.run(&["bench", "run", "--engines", "all"]);
    assert_eq!(recorded.code, 0, "{}", recorded.shown());
    assert!(recorded.stdout.starts_with("words") && recorded.stdout.contains("nDCG@10 ."), "{}", recorded.stdout);
    let results = fs::read_to_string(files.path("scorecard/results/rivals.json")).unwrap();
    for part in ["\"case\":\"words/household\"", "\"version\":\"0.3\"", "\"recall@5\"", "\"ranks\":[["] {
        assert!(results.contains(part), "{part}: {results}");
    }
    assert!(!results.contains("_us"), "no time is a fact");
    assert!(fs::read_to_string(files.path("scorecard/timings/engines.csv")).unwrap().contains("\nwords,household,97,"));

    // A run of the scorecard keeps and shows it, and not even `--all` misses it.
    assert_eq!(files.run(&["bench", "run"]).code, 0);
    assert_eq!(fs::read_to_string(files.path("scorecard/results/rivals.json")).unwrap(), results);
    assert!(fs::read_to_string(files.path("scorecard/SCORECARD.md")).unwrap().contains("Rivals in the same run"));
    let check = files.run(&["bench", "check", "--all"]);
    assert_eq!(check.code, 0, "{}", check.shown());
    assert!(check.stdout.contains("rivals 1 (recorded by `contextweaver bench run --engines`"), "{}", check.stdout);

    let same = files.run(&["bench", "run", "--engines", "words", "--check"]);
    assert!(same.code == 0 && same.stdout.contains("as recorded"), "{}", same.shown());
    files.write("benches/engines/words/engine.sh", ENGINE.replace("head -n 20", "head -n 1"));
    let other = files.run(&["bench", "run", "--engines", "words", "--collections", "household", "--check"]);
    assert!(other.code == 1 && other.stdout.contains("NOT as recorded"), "{}", other.shown());
    assert_eq!(fs::read_to_string(files.path("scorecard/results/rivals.json")).unwrap(), results);
}

#[test]
fn a_program_of_the_checkout_is_an_engine_of_eval() {
    let files = with_engines(&[("words", ENGINE)]);
    let rows = fs::read_to_string(files.path("scenarios/engines.toml")).unwrap();
    let away = "\n[[process]]\nname = \"away\"\nanalysis = \"a\"\nfolder = \"away\"\nversion = [\"python\", \"x.py\"]\n\
                install = \"scripts/engines away\"\nrun = [\"python\", \"x.py\"]\n";
    files.write("scenarios/engines.toml", rows + away);
    files.write("tools.json", TOOLS);
    files.write("queries.jsonl", QUERIES);
    let eval = ["bench", "eval", "--catalog", "tools.json", "--queries", "queries.jsonl"];
    let run = files.run(&[&eval[..], &["--engine", "words", "--engine", "bm25"]].concat());
    assert_eq!(run.code, 0, "{}", run.shown());
    assert!(run.stdout.starts_with("process: words (words 0.3)\n"), "{}", run.stdout);
    assert!(run.stdout.contains("\nconfiguration: bm25\n"), "{}", run.stdout);
    let missing = files.run(&[&eval[..], &["--engine", "bm25", "--engine", "away"]].concat());
    assert_eq!(missing.code, 2, "{}", missing.shown());
    let expected = "missing: away: not installed; run `scripts/engines away` in the checkout";
    assert!(missing.stdout.contains(expected), "{}", missing.shown());
}

#[test]
fn figures_that_the_ranks_do_not_give_are_wrong() {
    use contextweaver_bench::eval::record::Outcome;
    use contextweaver_bench::eval::rival::RivalFacts;
    use contextweaver_bench::results::Results;
    let files = with_engines(&[("words", ENGINE)]);
    assert_eq!(files.run(&["bench", "run", "--engines", "words"]).code, 0);
    assert_eq!(files.run(&["bench", "run"]).code, 0);
    let path = files.path("scorecard/results/rivals.json");
    let mut results = Results::<RivalFacts>::from_json("rivals", &fs::read_to_string(&path).unwrap()).unwrap();
    let Outcome::Measured(facts) = &mut results.records[0].outcome else { panic!("not measured") };
    let mut ranks: Vec<Vec<Option<usize>>> = facts.ranks.iter().map(<[_]>::to_vec).collect();
    ranks[0] = vec![Some(1); ranks[0].len()];
    ranks[1] = vec![None; ranks[1].len()];
    facts.ranks = ranks.into_iter().collect();
    fs::write(&path, results.to_json().unwrap()).unwrap();
    let check = files.run(&["bench", "check"]);
    assert_eq!(check.code, 1, "{}", check.shown());
    assert!(check.stdout.contains("its measures are not those that its ranks give"), "{}", check.stdout);
}

#[test]
fn what_does_not_come_to_the_end_has_one_of_four_words() {
    let on_query = |answer: &str| ENGINE.replace("echo \"{\\\"id\\\":\\\"$id\\\",\\\"tools\\\":[$found]}\"", answer);
    let early = on_query("echo '{\"id\":\"a1\",\"tools\":[]}'; echo '{\"id\":\"a2\",\"tools\":[]}'; sleep 0.2");
    let fickle = on_query(
        "n=$((n + 1)); if [ $((n % 3)) = 0 ]; then found=; fi; echo \"{\\\"id\\\":\\\"$id\\\",\\\"tools\\\":[$found]}\"",
    );
    let refuses = on_query("echo '{\"unsupported\":\"no queries\"}'");
    let files = with_engines(&[
        ("absent", "exit 7"),
        ("early", &early),
        ("fickle", &fickle),
        ("refuses", &refuses),
        ("words", ENGINE),
    ]);
    let run = files.run(&["bench", "run", "--engines", "all"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    for (engine, word) in [
        ("absent", "failed: `sh engine.sh --version` prints no version; without one there is no row"),
        // Seen before the next query is sent, or as the answer to another one after that.
        ("early", "answer"),
        ("fickle", "was asked twice and answered differently the second time"),
        ("refuses", "unsupported: the query "),
        ("words", "nDCG@10"),
    ] {
        let line = run.stdout.lines().find(|line| line.starts_with(engine)).unwrap_or_default();
        assert!(line.contains(word), "{engine}: {}", run.shown());
    }
    assert_eq!(files.run(&["bench", "run"]).code, 0);
    let page = fs::read_to_string(files.path("scorecard/rivals.md")).unwrap();
    assert!(page.contains(" unsupported |") && page.contains(" failed |"), "{page}");
}

#[test]
fn the_judgements_are_out_of_reach() {
    let looks = ENGINE.replace(
        "*'\"load\"'*)",
        "*'\"load\"'*) if [ \"$(ls -A)\" != catalog.jsonl ] || [ -n \"$OLDPWD\" ] || grep -q relevant catalog.jsonl; \
         then echo '{\"error\":\"there is more\"}'; continue; fi;",
    );
    let files = with_engines(&[("words", &looks)]);
    let run = files.run(&["bench", "run", "--engines", "words"]);
    assert!(run.code == 0 && run.stdout.contains("nDCG@10"), "{}", run.shown());
}

/// The kernel refuses what a program in a folder of its own could still look for.
#[cfg(target_os = "linux")]
#[test]
fn a_program_that_searches_the_disk_for_the_judgements_finds_none() {
    let folder = "gold=$(cd \"$(dirname \"$0\")/../../../gold\" && pwd)";
    let looks = ENGINE.replace(
        "*'\"load\"'*)",
        &format!(
            "*'\"load\"'*) {folder}; if cat \"$gold/household/queries.jsonl\" || grep -rq relevant \"$gold\" || \
             cat \"$gold/../queries.jsonl\" || cat \"$gold/../.git/HEAD\"; then echo '{{\"error\":\"found\"}}'; continue; fi;"
        ),
    );
    // What its version command reads could be kept for the run.
    let looks = looks.replace(
        "echo 0.3; exit",
        &format!("{folder}; cat \"$gold/household/queries.jsonl\" | head -n 1; echo 0.3; exit"),
    );
    let files = with_engines(&[("words", &looks)]);
    files.write(".git/HEAD", "ref");
    let run = files.run(&["bench", "run", "--engines", "words", "--format", "json"]);
    assert!(run.code == 0 && run.stdout.contains("\"version\":\"0.3\""), "{}", run.shown());
    assert!(run.stdout.contains("\"hiding\":{\"hidden\":["), "{}", run.shown());

    files.write("tools.json", TOOLS);
    files.write("queries.jsonl", QUERIES);
    let eval = [
        "bench",
        "eval",
        "--catalog",
        "tools.json",
        "--queries",
        "queries.jsonl",
        "--process",
        "words=sh benches/engines/words/engine.sh",
    ];
    let run = files.run(&eval);
    assert!(run.code == 0 && run.stdout.contains("\nhidden from it by the kernel: "), "{}", run.shown());
    assert!(run.stdout.contains("queries.jsonl"), "{}", run.shown());
}

/// An engine in Python with an environment, parts and a cache beside the queries that are hidden from it.
#[test]
fn an_honest_engine_beside_the_queries_has_all_that_it_needs() {
    let files = Files::new();
    files.write("tools.json", TOOLS);
    files.write("queries.jsonl", QUERIES);
    let environment = std::process::Command::new("python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(files.path("venv"))
        .status()
        .unwrap();
    assert!(environment.success());
    let page = fs::read_to_string(checkout().join("docs/engines.md")).unwrap();
    let engine = page.split_once("```python\n").unwrap().1.split_once("```").unwrap().0;
    files.write(
        "parts.py",
        "import sys, tempfile\nassert sys.prefix.endswith('venv')\ntempfile.TemporaryFile().close()\n",
    );
    files.write("engine.py", format!("import parts\n{engine}"));
    let run = files.run(&[
        "bench",
        "eval",
        "--catalog",
        "tools.json",
        "--queries",
        "queries.jsonl",
        "--process",
        "mine=venv/bin/python engine.py",
    ]);
    assert!(run.code == 0 && run.stdout.contains("process: mine (shared words 1)"), "{}", run.shown());
}

#[test]
fn rows_that_cannot_be_run_are_refused_with_the_file() {
    let files = with_engines(&[]);
    let engines = fs::read_to_string(files.path("scenarios/engines.toml")).unwrap();
    let good = row("words");
    let table = [
        (good.replace("\"words\"", "\"Words\""), "a name consists of a-z, 0-9, - and _"),
        (good.replace("a script", " "), "`analysis` is empty"),
        (good.replace("folder = \"words\"", "folder = \"../words\""), "`folder` is the name of a folder"),
        (good.replace("folder = \"words\"\n", ""), "has a `folder`, or runs `{contextweaver}`"),
        (good.replace("[\"sh\", \"engine.sh\", \"--version\"]", "[]"), "without a version there is no row"),
        (good.replace("version = [\"sh\", \"engine.sh\", \"--version\"]\n", ""), "missing field `version`"),
        (format!("{good}limits = {{ route_ms = 0 }}\n"), "a limit is zero"),
        (format!("{good}limits = {{ speed = 1 }}\n"), "unknown field `speed`"),
        (format!("{good}mcp = {{ tool = \"t\", argument = \"a\", ids = \"x\" }}\n"), "JSON pointer"),
        (format!("{good}{good}"), "process `words` is defined twice"),
    ];
    for (rows, expected) in table {
        files.write("scenarios/engines.toml", format!("{engines}{rows}"));
        let run = files.run(&["bench", "list"]);
        assert_eq!(run.code, 2, "{expected}: {}", run.shown());
        assert!(run.stderr.contains("scenarios/engines.toml: ") && run.stderr.contains(expected), "{}", run.shown());
    }
    files.write("scenarios/engines.toml", format!("{engines}{good}"));
    for (arguments, expected) in [
        (
            ["--engines", "pizza", "--collections", "household"],
            "no engine `pizza` in engines.toml that is a process or a context; there are words",
        ),
        (["--engines", "words", "--collections", "pizza"], "no collection `pizza`"),
    ] {
        let run = files.run(&[&["bench", "run"][..], &arguments].concat());
        assert!(run.code == 2 && run.stderr.contains(expected), "{}", run.shown());
    }
}

/// A context engine in shell, by docs/engines.md: a prompt is the last event that states a number, a result its first
/// characters.
const CONTEXT_ENGINE: &str = r#"if [ "$1" = --version ]; then echo 0.4; exit; fi
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":"\(a[0-9]*\)".*/\1/p')
  case $line in
    *'"hello"'*) echo '{"ok":true,"name":"short","version":"0.4"}' ;;
    *'"ping"'*) echo "{\"id\":\"$id\"}" ;;
    *'"compile"'*) echo "{\"id\":\"$id\",\"text\":\"The roof costs 4711 euros.\"}" ;;
    *'"compact"'*) echo "{\"id\":\"$id\",\"text\":\"Quotes for the roof\"}" ;;
  esac
done
"#;

/// A checkout with a scenario and a context engine.
fn with_context_engine() -> Files {
    let files = with_engines(&[]);
    let rows = fs::read_to_string(files.path("scenarios/engines.toml")).unwrap();
    let row = row("short").replace("[[process]]", "[[context]]");
    files.write("scenarios/engines.toml", rows + &row);
    files.write("benches/engines/short/engine.sh", CONTEXT_ENGINE);
    files.write(
        "scenarios/context/roof.toml",
        "analysis = \"a\"\norigin = \"embedded\"\nphase = \"answer\"\nquery = \"what does the roof cost\"\n\
         required = [\"u1\"]\nforbidden = [\"secret\"]\n\n[[fact]]\nlabel = \"roof\"\nvalue = \"4711\"\nitem = \"x1\"\n\n\
         [[fact]]\nlabel = \"roofer\"\nvalue = \"Meinhard\"\nitem = \"x1\"\n\n[[question]]\nitem = \"x1\"\nasks = \"name\"\n\
         question = \"What is it about?\"\nanswer = \"Quotes for the roof\"\n\n[[question]]\nitem = \"x1\"\nasks = \"name\"\n\
         question = \"Who is the roofer?\"\nanswer = \"Meinhard\"\n",
    );
    let lines: String = (0..90).map(|number| format!("quote {number}: {} euros for tiles\\n", number * 37)).collect();
    files.write(
        "scenarios/context/roof.jsonl",
        format!(
            "{{\"type\": \"user_turn\", \"id\": \"u1\", \"text\": \"What does the roof cost?\"}}\n\
             {{\"type\": \"tool_call\", \"id\": \"c1\", \"text\": \"quotes()\", \"parent_id\": \"u1\"}}\n\
             {{\"type\": \"tool_result\", \"id\": \"x1\", \"parent_id\": \"c1\", \"text\": \"Quotes for the roof\\n{lines}\
             roofer: Meinhard\\nroof in all: 4711\\n\"}}\n"
        ),
    );
    files
}

#[test]
fn a_context_engine_takes_part_is_shown_and_is_held_to_what_ours_is_asked() {
    let files = with_context_engine();
    let run = files.run(&["bench", "run", "--engines", "all"]);
    let line = run.stdout.lines().last().unwrap_or_default();
    assert!(
        run.code == 0 && line.starts_with("short") && line.contains(" tokens of 6000, 1 of 2 facts;"),
        "{}",
        run.shown()
    );
    let path = files.path("scorecard/results/context-rivals.json");
    let results = fs::read_to_string(&path).unwrap();
    for part in ["\"case\":\"short/roof\"", "\"version\":\"0.4\"", "\"questions\":{\"tokens\":"] {
        assert!(results.contains(part), "{part}: {results}");
    }
    assert_eq!(files.run(&["bench", "run"]).code, 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), results);
    let page = fs::read_to_string(files.path("scorecard/context.md")).unwrap();
    assert!(page.contains("| short † |") && page.contains(".500 (1 / 2)"), "{page}");
    let page = fs::read_to_string(files.path("scorecard/context-fidelity.md")).unwrap();
    assert!(page.contains("| short †") && page.contains("people ask"), "{page}");
    let check = files.run(&["bench", "check", "--all"]);
    assert_eq!(check.code, 0, "{}", check.shown());
    assert!(
        check.stdout.contains("context-rivals 1 (recorded by `contextweaver bench run --engines`"),
        "{}",
        check.stdout
    );

    let same = files.run(&["bench", "run", "--engines", "short", "--scenarios", "roof", "--check"]);
    assert!(same.code == 0 && same.stdout.contains("as recorded"), "{}", same.shown());
    files.write("benches/engines/short/engine.sh", CONTEXT_ENGINE.replace("4711", "4712"));
    let other = files.run(&["bench", "run", "--engines", "short", "--check"]);
    assert!(other.code == 1 && other.stdout.contains("NOT as recorded"), "{}", other.shown());
    let unknown = files.run(&["bench", "run", "--engines", "short", "--scenarios", "pizza"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("no scenario `pizza`"), "{}", unknown.shown());

    // Another budget than ours, consistent in itself.
    use contextweaver_bench::chapters::context::ContextRecord;
    use contextweaver_bench::eval::record::Outcome;
    use contextweaver_bench::results::Results;
    let mut forged = Results::<ContextRecord>::from_json("context-rivals", &results).unwrap();
    let Outcome::Measured(ContextRecord::Other(facts)) = &mut forged.records[0].outcome else { panic!("not measured") };
    let Outcome::Measured(prompt) = &mut facts.prompt else { panic!("no prompt") };
    prompt.budget = 9000;
    fs::write(&path, forged.to_json().unwrap()).unwrap();
    let check = files.run(&["bench", "check"]);
    assert!(
        check.code == 1 && check.stdout.contains("its prompt was asked for otherwise than ours"),
        "{}",
        check.shown()
    );
}

/// `bench eval` of our gateway by the door of gateways.
fn gateway(files: &Files, changes: &[(&str, &str)]) -> Run {
    let program = env!("CARGO_BIN_EXE_contextweaver");
    let mut arguments = [
        ("--mcp", format!("ours={program} mcp serve --config {{upstreams}}")),
        ("--mcp-search-tool", "tool_browse".to_owned()),
        ("--mcp-query-argument", "query".to_owned()),
        ("--mcp-ids", "/content/*/text".to_owned()),
    ];
    for (name, value) in changes {
        arguments.iter_mut().filter(|(known, _)| known == name).for_each(|(_, known)| *known = (*value).to_owned());
    }
    let base = ["bench", "eval", "--catalog", "tools.json", "--queries", "queries.jsonl", "--format", "json"];
    let given = arguments.iter().flat_map(|(name, value)| [*name, value.as_str()]);
    files.run(&base.into_iter().chain(given).collect::<Vec<_>>())
}

#[test]
fn a_gateway_takes_part_before_servers_that_are_played() {
    let files = Files::new();
    files.write("tools.json", TOOLS);
    files.write("queries.jsonl", QUERIES);
    let run = gateway(&files, &[]);
    assert_eq!(run.code, 0, "{}", run.shown());
    let json: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let own = &json["evaluations"][0];
    assert_eq!((&own["origin"], &own["process"]["name"]), (&"process".into(), &"contextweaver".into()));
    assert_eq!(own["facts"]["measures"]["recall@1"]["mean"], 1.0, "{}", run.stdout);

    let table = [
        (("--mcp-search-tool", "find"), "it has no tool `find`; it has tool_browse, tool_execute, tool_view"),
        (("--mcp-query-argument", "words"), "its tool failed"),
        (("--mcp", "x=no-such-gateway {config}"), "missing: no-such-gateway"),
    ];
    for (change, expected) in table {
        let run = gateway(&files, &[change]);
        assert!(run.code == 2 && run.stderr.contains(expected), "{expected}: {}", run.shown());
    }
    let nowhere = gateway(&files, &[("--mcp-ids", "/structuredContent/cards/*/id")]);
    let expected =
        "no answer has a text at `/structuredContent/cards/*/id`: name with --mcp-ids where its results name tools";
    assert!(nowhere.code == 2 && nowhere.stderr.contains(expected), "{}", nowhere.shown());
}

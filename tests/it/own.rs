//! A workspace of one's own: made, run, gated, as the README says and on bad input; and what a change of a catalog does.

use std::fs;

use serde_json::{Value, json};

use crate::pages::{blocks, shell, thirty_queries};
use crate::support::{Files, Run, checkout};

/// A workspace in `gate` whose results were written.
fn workspace() -> Files {
    let files = thirty_queries();
    let init = files.run(&["bench", "init", "gate", "--catalog", "tools.json", "--queries", "queries.jsonl"]);
    assert_eq!(init.code, 0, "{}", init.shown());
    let run = files.run(&["bench", "run", "--root", "gate"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    files
}

#[test]
fn the_results_of_a_workspace_are_a_baseline_of_eval() {
    let files = workspace();
    let eval = ["bench", "eval", "--catalog", "gate/catalog.json", "--queries", "gate/queries.jsonl"];
    let same = files.run(&[&eval[..], &["--baseline", "gate/results.json"]].concat());
    assert_eq!(same.code, 0, "{}", same.shown());
    assert!(same.stdout.contains("recall@5 against the baseline: same"), "{}", same.shown());
    files.write("base.json", files.run(&[&eval[..], &["--format", "json"]].concat()).stdout);
    let check = files.run(&["bench", "check", "--root", "gate", "--base", "base.json"]);
    assert!(check.code == 0 && check.stdout.starts_with("Nothing moved"), "{}", check.shown());
}

#[test]
fn a_workspace_writes_its_report() {
    let files = workspace();
    let text = fs::read_to_string(files.path("gate/gate.toml")).unwrap();
    assert!(text.starts_with("#:schema gate.schema.json\n"), "{text}");
    for command in ["run", "check"] {
        let page = format!("{command}.html");
        let run = files.run(&["bench", command, "--root", "gate", "--html", &page]);
        assert_eq!(run.code, 0, "{}", run.shown());
        let html = fs::read_to_string(files.path(&page)).unwrap();
        let eval = "contextweaver bench eval --catalog gate/catalog.json --queries gate/queries.jsonl --engine default";
        for shown in ["<h2>The gate ", "your catalog", "badge computed", &format!("{eval}</code>"), "Nothing to do."] {
            assert!(html.contains(shown), "{command}: {shown}");
        }
    }
    // A report that cannot be written leaves nothing behind, above all no new base.
    fs::remove_file(files.path("gate/results.json")).unwrap();
    let nowhere = files.run(&["bench", "run", "--root", "gate", "--html", "none/x.html"]);
    assert!(nowhere.code == 2 && nowhere.stderr.contains("--html: the file cannot be written"), "{}", nowhere.shown());
    assert!(!files.path("gate/results.json").exists());
    // A report is of a workspace; a checkout has another command for its own.
    let root = checkout().display().to_string();
    let refused = files.run(&["bench", "run", "--root", &root, "--html", "x.html"]);
    assert!(refused.code == 2 && refused.stderr.contains("bench render --html"), "{}", refused.shown());
    assert!(!files.path("x.html").exists());
}

/// Puts tools that claim to do everything in front of the others.
fn make_worse(files: &Files) {
    let path = files.path("gate/catalog.json");
    let mut tools: Vec<Value> = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let asked: Vec<String> = fs::read_to_string(files.path("queries.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["query"].as_str().unwrap().to_owned())
        .collect();
    for (at, some) in asked.chunks(3).take(3).enumerate() {
        tools.extend((0..6).map(|n| json!({"name": format!("everything_{at}_{n}"), "description": some.join(" ")})));
    }
    fs::write(&path, serde_json::to_string_pretty(&tools).unwrap()).unwrap();
}

#[test]
fn the_readme_gates_a_catalog_as_written() {
    let files = thirty_queries();
    let script: String = blocks("README.md", Some("## Gate your CI")).into_iter().map(|block| block.text).collect();
    let output = shell(&files, &script);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let comment = fs::read_to_string(files.path("comment.md")).unwrap();
    let lines: Vec<&str> = comment.lines().take(4).collect();
    assert_eq!((lines[0], lines[3]), ("<!-- contextweaver-gate same -->", "Nothing to do."), "{comment}");
    assert!(lines[1].starts_with("**Nothing moved: recall@5 of your catalog is ."), "{comment}");
    let names: Vec<String> =
        ["gate.toml", "catalog.json", "queries.jsonl", "README.md", "results.json"].map(str::to_owned).into();
    assert!(names.iter().all(|name| files.path("gate").join(name).is_file()));
    let catalog = fs::read(files.path("gate/catalog.json")).unwrap();
    assert_eq!(catalog, fs::read(files.path("tools.json")).unwrap());
}

#[test]
fn a_worse_catalog_regresses_and_the_comment_says_what_moved() {
    let files = workspace();
    fs::copy(files.path("gate/results.json"), files.path("base.json")).unwrap();
    make_worse(&files);
    let check =
        |more: &[&str]| files.run(&[&["bench", "check", "--root", "gate", "--base", "base.json"], more].concat());
    let text = check(&[]);
    assert_eq!(text.code, 1, "{}", text.shown());
    for expected in [
        "Regressed: recall@5 of your catalog .",
        "`contextweaver catalog diff OLD gate/catalog.json --impact --queries gate/queries.jsonl`, where OLD is the catalog as it was",
        "results.json is not up to date either: to record it anyway, run `contextweaver bench run --root gate --accept`",
        "failed: recall@5 fell from .",
        "worst query: hh-",
        "the catalog or the queries changed; only queries that were asked the same way are compared",
        "30 queries, of which 23 % are assumed to change: a difference of .",
        "results.json differs from what is computed",
        "  default · facts.",
    ] {
        assert!(text.stdout.contains(expected), "{expected}: {}", text.shown());
    }
    let comment = check(&["--format", "markdown"]);
    assert_eq!(comment.code, 1);
    assert!(comment.stdout.starts_with("<!-- contextweaver-gate moved -->\n**Regressed: "), "{}", comment.stdout);
    assert!(comment.stdout.contains("| query | asked | tool | before | now |\n"), "{}", comment.stdout);
    let json: Value = serde_json::from_str(&check(&["--format", "json"]).stdout).unwrap();
    assert_eq!(json["against"]["decision"]["word"], "regressed");
    assert_eq!(json["against"]["decision"]["queries"], 30);

    // Measured twice, it is refused twice; accepted, it still regresses against the base; put right, it does not.
    let results = || fs::read(files.path("gate/results.json")).unwrap();
    let base = fs::read(files.path("base.json")).unwrap();
    for _ in 0..2 {
        let run = files.run(&["bench", "run", "--root", "gate"]);
        assert_eq!(run.code, 1, "{}", run.shown());
        assert!(
            run.stdout.contains("results.json was not written, so the next run is judged against the same record"),
            "{}",
            run.shown()
        );
        assert!(run.stdout.ends_with("\nNot written: gate/results.json\n") && results() == base, "{}", run.shown());
    }
    assert_eq!(files.run(&["bench", "run", "--root", "gate", "--accept"]).code, 1);
    assert_ne!(results(), base);
    let accepted = files.run(&["bench", "run", "--root", "gate"]);
    assert!(
        !accepted.stdout.contains("Regressed") && accepted.stdout.contains("Gate failed: "),
        "{}",
        accepted.shown()
    );
    assert_eq!(check(&[]).code, 1);
    fs::copy(files.path("tools.json"), files.path("gate/catalog.json")).unwrap();
    let again = files.run(&["bench", "run", "--root", "gate"]);
    assert!(again.stdout.contains("Improved: recall@5 of your catalog ."), "{}", again.shown());
    let right = check(&[]);
    assert_eq!(right.code, 0, "{}", right.shown());
    assert_eq!(results(), base);
}

#[test]
fn a_loss_that_proves_nothing_is_not_the_next_base() {
    const WORDS: &str = "alfa bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike november oscar papa quebec \
                         romeo sierra tango uniform victor whiskey xray yankee zulu";
    let files = Files::new();
    // Of so many tools the first few of those that begin with the fifth are described in words that no one uses.
    let tools = |lost: usize| -> String {
        let is_lost = |number: usize| (5..5 + lost).contains(&number);
        let said = |number: usize, word: &str| if is_lost(number) { "otherwise".to_owned() } else { word.to_owned() };
        let tool =
            |(number, word): (usize, &str)| json!({"name": format!("job{number}"), "description": said(number, word)});
        json!(WORDS.split_whitespace().enumerate().map(tool).collect::<Vec<_>>()).to_string()
    };
    let query = |(number, word): (usize, &str)| {
        let query = json!({"id": format!("q{number}"), "query": word, "relevant": [format!("job{number}")]});
        format!("{query}\n")
    };
    files.write("tools.json", tools(0));
    files.write("queries.jsonl", WORDS.split_whitespace().enumerate().map(query).collect::<String>());
    let gate = "catalog = \"../tools.json\"\nqueries = \"../queries.jsonl\"\nengines = [\"lexical\"]\n";
    files.write("gate/gate.toml", gate);
    let run = |more: &[&str]| files.run(&[&["bench", "run", "--root", "gate"], more].concat());
    assert_eq!(run(&[]).code, 0);
    let results = || fs::read(files.path("gate/results.json")).unwrap();
    let before = results();
    // Five that fall alike are one chance in sixteen.
    files.write("tools.json", tools(5));
    for _ in 0..2 {
        let open = run(&[]);
        assert!(open.code == 0 && open.stdout.ends_with("\nNot written: gate/results.json\n"), "{}", open.shown());
        assert!(
            open.stdout.contains("Inconclusive: ") && open.stdout.contains("--accept writes it."),
            "{}",
            open.shown()
        );
        assert_eq!(results(), before);
    }
    let check = files.run(&["bench", "check", "--root", "gate"]);
    assert!(
        check.code == 1 && check.stdout.contains("run `contextweaver bench run --root gate --accept`"),
        "{}",
        check.shown()
    );
    // One more, and it is shown.
    files.write("tools.json", tools(6));
    let worse = run(&[]);
    assert!(worse.code == 1 && worse.stdout.contains("Regressed: "), "{}", worse.shown());
    files.write("tools.json", tools(5));
    assert_eq!(run(&["--accept"]).code, 0);
    assert_ne!(results(), before);
    assert_eq!(run(&[]).code, 0);
}

/// A workspace of so many tools, with a query for each in a word that is its alone.
fn many_tools(count: usize, lost: usize) -> Files {
    let files = Files::new();
    write_tools(&files, count, lost);
    let query = |number: usize| {
        let query = json!({"id": format!("q{number}"), "query": word(number), "relevant": [format!("job{number}")]});
        format!("{query}\n")
    };
    files.write("queries.jsonl", (0..count).map(query).collect::<String>());
    let gate = "catalog = \"../tools.json\"\nqueries = \"../queries.jsonl\"\nengines = [\"bm25\"]\n";
    files.write("gate/gate.toml", gate);
    files
}

/// Of the tools the first few are described in words that no one uses.
fn write_tools(files: &Files, count: usize, lost: usize) {
    let said = |number: usize| if number < lost { "otherwise".to_owned() } else { word(number) };
    let tool = |number: usize| json!({"name": format!("job{number}"), "description": said(number)});
    files.write("tools.json", json!((0..count).map(tool).collect::<Vec<_>>()).to_string());
}

/// A word that no other is like, also by its beginning.
fn word(number: usize) -> String {
    let letter = |place: usize| char::from(b"bcdfghklmprstvz"[number / 15usize.pow(place as u32) % 15]);
    format!("{}o{}u{}ox", letter(0), letter(1), letter(2))
}

#[test]
fn small_losses_do_not_add_up_unseen() {
    let files = many_tools(600, 0);
    let run = |more: &[&str]| files.run(&[&["bench", "run", "--root", "gate"], more].concat());
    assert_eq!(run(&[]).code, 0);
    let results = || fs::read(files.path("gate/results.json")).unwrap();
    let before = results();
    let table = [
        (1, "Same: ", "No gate failed, and such losses add up: look at the largest one. results.json was not written"),
        (2, "Inconclusive: ", "so few queries do not tell whether the loss is chance"),
        (5, "Inconclusive: ", "so few queries do not tell whether the loss is chance"),
        (6, "Regressed: ", "results.json was not written"),
    ];
    for (lost, verdict, said) in table {
        write_tools(&files, 600, lost);
        let shown = run(&[]);
        assert!(shown.stdout.contains(verdict) && shown.stdout.contains(said), "{lost}: {}", shown.shown());
        assert!(shown.stdout.ends_with("\nNot written: gate/results.json\n") && results() == before, "{lost}");
    }
    write_tools(&files, 600, 1);
    let check = files.run(&["bench", "check", "--root", "gate"]);
    assert!(
        check.code == 1 && check.stdout.contains("run `contextweaver bench run --root gate --accept`"),
        "{}",
        check.shown()
    );
    let accepted = run(&["--accept"]);
    assert!(accepted.code == 0 && accepted.stdout.contains("such losses add up"), "{}", accepted.shown());
    assert_ne!(results(), before);
    // What is gained is recorded.
    write_tools(&files, 600, 0);
    assert_eq!(run(&[]).code, 0);
    assert_eq!(results(), before);
}

#[test]
fn another_engine_that_is_judged_is_said() {
    let files = workspace();
    let gate = fs::read_to_string(files.path("gate/gate.toml")).unwrap();
    let engines = |list: &str| files.write("gate/gate.toml", gate.replace("[\"default\"]", list));
    engines("[\"default\", \"bm25\"]");
    assert_eq!(files.run(&["bench", "run", "--root", "gate"]).code, 0);
    fs::copy(files.path("gate/results.json"), files.path("base.json")).unwrap();
    engines("[\"bm25\", \"default\"]");
    let check = files.run(&["bench", "check", "--root", "gate"]);
    assert_eq!(check.code, 1, "{}", check.shown());
    assert!(
        check.stdout.contains("engines: committed [\"default\",\"bm25\"], computed [\"bm25\",\"default\"]"),
        "{}",
        check.shown()
    );
    let run = files.run(&["bench", "run", "--root", "gate"]);
    let said = "; `bm25` is judged, and `default` was before\nNo gate failed; look at what changed beside the catalog";
    assert!(run.stdout.contains(said), "{}", run.shown());
    let comment = files.run(&["bench", "check", "--root", "gate", "--base", "base.json", "--format", "markdown"]);
    assert!(comment.stdout.starts_with("<!-- contextweaver-gate moved -->\n"), "{}", comment.shown());
}

#[test]
fn a_new_gate_holds_whatever_a_catalog_has() {
    let files = Files::new();
    for name in ["catalog.json", "queries.jsonl"] {
        files.write(name, fs::read(checkout().join("gold/library").join(name)).unwrap());
    }
    let init = ["bench", "init", "my gate", "--catalog", "catalog.json", "--queries", "queries.jsonl"];
    let init = files.run(&init);
    assert!(
        init.code == 0 && init.stdout.ends_with("  contextweaver bench run --root 'my gate'\n"),
        "{}",
        init.shown()
    );
    let run = files.run(&["bench", "run", "--root", "my gate"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    // A prompt has the definitions of tools, and none of resources and prompts: by each command.
    let inspected = files.run(&["catalog", "inspect", "catalog.json", "--format", "json"]);
    let inspected: Value = serde_json::from_str(&inspected.stdout).unwrap();
    let results: Value =
        serde_json::from_str(&fs::read_to_string(files.path("my gate/results.json")).unwrap()).unwrap();
    assert_eq!(results["evaluations"][0]["facts"]["tokens"]["naive"], inspected["tokens"]);
}

#[test]
fn a_tool_of_the_same_name_on_another_server_hides_no_loss() {
    let files = Files::new();
    let tool = |server: &str, name: &str, said: &str| json!({"name": name, "server": server, "description": said});
    let own = [tool("mail", "search", "find a letter"), tool("mail", "send", "write a letter")];
    files.write("tools.json", json!(own).to_string());
    let query = |number: usize, tool: &str| {
        let query = json!({"id": format!("q{number}"), "query": format!("find letter {number}"), "relevant": [tool]});
        format!("{query}\n")
    };
    let queries = |tool: &str| (0..30).map(|number| query(number, tool)).collect::<String>();
    files.write("queries.jsonl", queries("search"));
    let gate = "catalog = \"../tools.json\"\nqueries = \"../queries.jsonl\"\nengines = [\"lexical\"]\n";
    files.write("gate/gate.toml", gate);
    let eval = ["bench", "eval", "--catalog", "tools.json", "--queries", "queries.jsonl", "--engine", "lexical"];
    let output = || files.run(&[&eval[..], &["--format", "json"]].concat()).stdout;
    assert_eq!(files.run(&["bench", "run", "--root", "gate"]).code, 0);
    fs::copy(files.path("gate/results.json"), files.path("base.json")).unwrap();
    files.write("before.json", output());
    let asked: Vec<String> = (0..30).map(|number| format!("find letter {number}")).collect();
    let wikis = (0..6).map(|number| tool(&format!("wiki{number}"), "search", &asked.join(" ")));
    files.write("tools.json", json!(own.iter().cloned().chain(wikis).collect::<Vec<_>>()).to_string());
    files.write("queries.jsonl", queries("mail:search"));
    files.write("now.json", output());
    let table: [(&[&str], &str); 4] = [
        (&["bench", "run", "--root", "gate"], "Regressed: "),
        (&["bench", "check", "--root", "gate", "--base", "base.json"], "Regressed: "),
        (&["bench", "compare", "before.json", "now.json", "--changed-inputs"], "regressed"),
        (&[&eval[..], &["--baseline", "before.json", "--changed-inputs"]].concat(), "against the baseline: regressed"),
    ];
    for (arguments, expected) in table {
        let run = files.run(arguments);
        assert!(run.code == 1 && run.stdout.contains(expected), "{arguments:?}: {}", run.shown());
    }
}

#[test]
fn a_query_with_another_id_is_the_same_query() {
    let files = workspace();
    fs::copy(files.path("gate/results.json"), files.path("base.json")).unwrap();
    make_worse(&files);
    let judged = || -> Value {
        let check = files.run(&["bench", "check", "--root", "gate", "--base", "base.json", "--format", "json"]);
        assert_eq!(check.code, 1, "{}", check.shown());
        serde_json::from_str(&check.stdout).unwrap()
    };
    let before = judged();
    let path = files.path("gate/queries.jsonl");
    let rename = |old: &str, to: &str| {
        let queries = fs::read_to_string(&path).unwrap();
        assert!(queries.contains(old), "{queries}");
        fs::write(&path, queries.replace(old, to)).unwrap();
    };
    rename("\"hh-", "\"home-");
    let renamed = judged();
    for count in ["not_in_base", "only_in_base"] {
        assert_eq!(renamed["against"][count], 0, "{renamed}");
    }
    assert_eq!(renamed["against"]["decision"]["word"], "regressed");
    assert_eq!(renamed["against"]["recall_after"], before["against"]["recall_after"]);
    let moved = renamed["against"]["moved"].as_array().unwrap();
    assert_eq!(moved.len(), before["against"]["moved"].as_array().unwrap().len());
    assert!(moved.iter().all(|one| one["query"].as_str().unwrap().starts_with("home-")), "{renamed}");
}

#[test]
fn results_that_nothing_can_be_compared_with_are_replaced_only_on_purpose() {
    let files = workspace();
    let path = files.path("gate/queries.jsonl");
    let queries = fs::read_to_string(&path).unwrap();
    let reworded = |line: &str| {
        let mut query: Value = serde_json::from_str(line).unwrap();
        query["query"] = format!("{}?!", query["query"].as_str().unwrap()).into();
        format!("{query}\n")
    };
    fs::write(&path, queries.lines().map(reworded).collect::<String>()).unwrap();
    let results = || fs::read(files.path("gate/results.json")).unwrap();
    let before = results();
    let run = files.run(&["bench", "run", "--root", "gate"]);
    assert_eq!(run.code, 2, "{}", run.shown());
    assert!(
        run.stdout.contains("so results.json was not written: run `contextweaver bench run --root gate --accept`")
            && run.stdout.ends_with("\nNot written: gate/results.json\n")
            && run.stderr.contains("share no query with this workspace; `--accept` replaces them"),
        "{}",
        run.shown()
    );
    assert_eq!(results(), before);
    let check = files.run(&["bench", "check", "--root", "gate"]);
    assert!(
        check.code == 2
            && check.stdout.contains("run `contextweaver bench run --root gate --accept` and commit results.json.")
            && check.stderr.contains("`contextweaver bench run --root gate --accept` replaces it"),
        "{}",
        check.shown()
    );
    let accepted = files.run(&["bench", "run", "--root", "gate", "--accept"]);
    assert_eq!(accepted.code, 0, "{}", accepted.shown());
    assert_ne!(results(), before);
    assert_eq!(files.run(&["bench", "run", "--root", "gate"]).code, 0);
}

#[test]
fn results_that_are_not_recorded_or_cannot_be_read_are_not_passed_over() {
    let files = workspace();
    let whole = fs::read_to_string(files.path("gate/results.json")).unwrap();
    let toml = fs::read_to_string(files.path("gate/gate.toml")).unwrap();
    files.write("gate/gate.toml", toml.replace("[\"default\"]", "[\"default\", \"bm25\"]"));
    let check = files.run(&["bench", "check", "--root", "gate"]);
    assert!(check.code == 1 && check.stdout.starts_with("Not recorded: recall@5 of your catalog"), "{}", check.shown());
    assert!(check.stdout.contains("results.json differs from what is computed in 1 fact:\n"), "{}", check.shown());
    files.write("gate/gate.toml", toml);
    let table = [
        (whole.get(..whole.len() / 2).unwrap().to_owned(), "gate/results.json: is it the results.json of a workspace"),
        (String::new(), "gate/results.json: it is empty"),
        (whole.replace("\"schema_version\": 1", "\"schema_version\": 9"), "it has the form 9, and this is 1"),
    ];
    for (text, expected) in table {
        files.write("gate/results.json", &text);
        let run = files.run(&["bench", "run", "--root", "gate"]);
        assert!(run.code == 2 && run.stderr.contains(expected), "{}", run.shown());
        assert!(run.stderr.contains("restore the file, or remove it"), "{}", run.shown());
        assert_eq!(fs::read_to_string(files.path("gate/results.json")).unwrap(), text);
    }
    fs::write(files.path("gate/results.json"), format!("\u{feff}{whole}")).unwrap();
    assert_eq!(files.run(&["bench", "run", "--root", "gate"]).code, 0);
}

#[test]
fn what_is_no_workspace_or_means_nothing_in_one_is_refused() {
    let files = workspace();
    fs::write(files.path("other.json"), "{}").unwrap();
    let toml = fs::read_to_string(files.path("gate/gate.toml")).unwrap();
    let refused = |arguments: &[&str]| -> Run {
        let run = files.run(arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.shown());
        run
    };
    let table = [
        (
            &["bench", "init", "gate", "--catalog", "tools.json"][..],
            "gate/gate.toml: it already exists, and nothing is overwritten",
        ),
        (&["bench", "init", "new"], "new/catalog.json: no such catalog; name one with --catalog"),
        (&["bench", "init", "new", "--catalog", "tools.json", "--queries", "none.jsonl"], "none.jsonl"),
        (&["bench", "run"], "neither gate.toml nor scenarios/engines.toml is here or above"),
        (&["bench", "run", "--root", "new"], "new: neither gate.toml nor scenarios/engines.toml is in it"),
        (&["bench", "run", "--root", "gate", "--all"], "--all or --large is for a contextweaver checkout"),
        (
            &["bench", "check", "--root", "gate", "--base", "other.json"],
            "other.json: is it the results.json of a workspace",
        ),
        (
            &["bench", "sweep", "--root", "gate", "--what", "context"],
            "a workspace has a catalog and no context scenarios",
        ),
        (&["bench", "check", "--root", "gate", "--public", "."], "--public is for a contextweaver checkout"),
    ];
    for (arguments, expected) in table {
        let run = refused(arguments);
        assert!(run.stderr.contains(expected), "{arguments:?}: {}", run.shown());
    }
    assert!(!files.path("new").exists(), "a refused workspace was begun");
    files.write("gate/gate.toml", toml.replace("[tokens]", "[token]"));
    let line = 1 + toml.lines().position(|line| line == "[tokens]").unwrap();
    assert!(refused(&["bench", "check", "--root", "gate"]).stderr.contains(&format!("at line {line}, column 2")));
    files.write("gate/gate.toml", toml.replace("most = ", "most = 1 # "));
    let over = files.run(&["bench", "check", "--root", "gate"]);
    assert_eq!(over.code, 1, "{}", over.shown());
    assert!(over.stdout.contains(", more than 1\n"), "{}", over.shown());
    fs::remove_file(files.path("gate/results.json")).unwrap();
    assert!(refused(&["bench", "check", "--root", "gate"]).stderr.contains("bench run --root gate` first"));
}

#[test]
fn drafts_are_proposed_and_never_measured() {
    let files = Files::new();
    files.write("gate/catalog.json", fs::read(checkout().join("gold/household/catalog.json")).unwrap());
    let init = files.run(&["bench", "init", "gate"]);
    assert_eq!(init.code, 0, "{}", init.shown());
    let drafts = fs::read_to_string(files.path("gate/queries.jsonl")).unwrap();
    assert_eq!(drafts.lines().filter(|line| line.ends_with("\"draft\":true}")).count(), 97);
    let refused = files.run(&["bench", "run", "--root", "gate"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("gate/queries.jsonl:1: query `draft-001`: it is a draft"), "{}", refused.shown());
    let eval = ["bench", "eval", "--catalog", "gate/catalog.json", "--queries", "gate/queries.jsonl"];
    assert_eq!(files.run(&eval).code, 2);
    files.write("gate/queries.jsonl", drafts.replace(",\"draft\":true", ""));
    let reviewed = files.run(&["bench", "run", "--root", "gate"]);
    assert_eq!(reviewed.code, 0, "{}", reviewed.shown());

    let session = json!({"goal": "Ask ana@example.org to water the plants", "calls": [
        {"seq": 1, "tool": "no_such_tool", "arguments": {}, "result": {"content": []}}]});
    files.write("session.json", session.to_string());
    let draft = ["gold", "draft", "--session", "session.json"];
    insta::assert_snapshot!(files.run(&draft).shown(), @r#"
    exit 0
    {"id":"draft-001","query":"Ask [address] to water the plants","relevant":["no_such_tool"],"draft":true}
    "#);
    let known = files.run(&[&draft[..], &["--catalog", "gate/catalog.json", "--out", "drafts.jsonl"]].concat());
    assert_eq!(known.code, 0, "{}", known.shown());
    assert!(known.stderr.contains("called, but not in the catalog: no_such_tool"), "{}", known.shown());
    let again = files.run(&[&draft[..], &["--out", "drafts.jsonl"]].concat());
    assert_eq!(again.code, 2);
}

#[test]
fn a_sweep_says_that_it_looked_at_the_queries() {
    let files = workspace();
    let sweep = files.run(&["bench", "sweep", "--root", "gate"]);
    assert_eq!(sweep.code, 0, "{}", sweep.shown());
    assert!(sweep.stdout.contains("measured on the queries that you would choose by"), "{}", sweep.shown());
    let said = " is at the edge of the grid; a better one may lie beyond it\n";
    assert!(sweep.stdout.contains(said), "{}", sweep.shown());
    files.write("gate/queries.jsonl", "{\"id\": \"q\", \"query\": \"order a pizza\", \"relevant\": []}\n");
    let nothing = files.run(&["bench", "sweep", "--root", "gate"]);
    assert!(
        nothing.code == 2 && nothing.stderr.contains("no query of your catalog has a relevant tool"),
        "{}",
        nothing.shown()
    );
}

#[test]
fn too_few_queries_are_said_to_prove_nothing() {
    let files = thirty_queries();
    let queries = fs::read_to_string(files.path("queries.jsonl")).unwrap();
    files.write("queries.jsonl", queries.lines().take(5).map(|line| format!("{line}\n")).collect::<String>());
    files.run(&["bench", "init", "gate", "--catalog", "tools.json", "--queries", "queries.jsonl"]);
    let run = files.run(&["bench", "run", "--root", "gate"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    assert!(run.stdout.contains("With so few queries this gate can hardly fail"), "{}", run.shown());
}

/// Two catalogs: a description is rewritten, a tool renamed, one removed, and one added that takes a query.
fn two_catalogs() -> Files {
    let files = Files::new();
    files.write(
        "old.json",
        r#"[
  {"name": "create_issue", "description": "Open a new issue in a repository", "server": "forge"},
  {"name": "send_mail", "description": "Send a letter by electronic mail", "server": "mail"},
  {"name": "play_song", "description": "Play music on a loudspeaker", "server": "home"},
  {"name": "lock_door", "description": "Lock a door of the building", "server": "home"}
]"#,
    );
    files.write(
        "new.json",
        r#"[
  {"name": "create_issue", "description": "Open a new issue in a repository", "server": "forge"},
  {"name": "send_mail", "description": "See the manual <b>", "server": "mail"},
  {"name": "play_music", "description": "Play music on a loudspeaker", "server": "home"},
  {
    "name": "letter_box",
    "description": "A letter by electronic mail, a letter, a letter",
    "server": "home"
  }
]"#,
    );
    files.write(
        "queries.jsonl",
        r#"{"id": "q1", "query": "open an issue", "relevant": ["create_issue"]}
{"id": "q2", "query": "write a letter", "relevant": ["send_mail"]}
{"id": "q3", "query": "some music", "relevant": ["play_song"]}
{"id": "q4", "query": "lock the door", "relevant": ["lock_door"]}
{"id": "q5", "query": "a box for letters", "relevant": ["letter_box"]}
{"id": "q6", "query": "order a pizza", "relevant": []}
"#,
    );
    files.write("words.toml", "semantic = 0.0");
    files
}

fn impact(files: &Files, more: &[&str]) -> Run {
    let base =
        ["catalog", "diff", "old.json", "new.json", "--impact", "--queries", "queries.jsonl", "--config", "words.toml"];
    files.run(&[&base[..], more].concat())
}

#[test]
fn a_change_is_shown_by_definition() {
    insta::assert_snapshot!(impact(&two_catalogs(), &[]).shown(), @r"
    exit 1
    definition                change     tokens  recall@5 alone  worst query         rank
    home:letter_box#d1c676d5  added     0 -> 27            .000  q2: write a letter  1 -> 2
    home:lock_door#8e6f79c2   removed   22 -> 0           −.250  q4: lock the door   1 -> not found
    home:play_music#db9dc19e  renamed  22 -> 22            .000
    mail:send_mail#9c81cd82   changed  22 -> 22           −.250  q2: write a letter  1 -> not found

    tokens 89 -> 94 (+5); recall@5 1.000 -> .667; nDCG@10 1.000 -> .667

    passed: recall@5 1.000 -> .667 (−.333, inconclusive) over 3 queries
    failed: query q4 needs home:lock_door#8e6f79c2, which is gone
    warning: query q2 finds mail:send_mail#9c81cd82 at rank 1 -> not found
    queries compared: 3; a difference of .934 would be seen four times out of five; one of .010 takes 26,160 more queries; 1 query needs a tool that only the new catalog has, and is not compared
    ");
}

#[test]
fn a_change_is_written_for_ci() {
    let files = two_catalogs();
    let json: Value = serde_json::from_str(&impact(&files, &["--format", "json"]).stdout).unwrap();
    let definition = |name: &str| {
        let all = json["definitions"].as_array().unwrap();
        all.iter().find(|one| one["id"].as_str().unwrap().contains(name)).unwrap().clone()
    };
    assert_eq!(definition("play_music")["kind"], "renamed");
    assert_eq!(definition("letter_box")["place"], json!({"path": "new.json", "line": 5, "end_line": 9}));
    assert_eq!(definition("send_mail")["alone"]["worst"]["query"], "q2");
    assert_eq!(definition("lock_door")["alone"]["worst"]["query"], "q4");
    assert_eq!((json["new_queries"].as_u64(), json["lost"][0]["query"].as_str()), (Some(1), Some("q4")));

    let sarif = impact(&files, &["--format", "sarif", "--max-tokens", "5"]);
    assert_eq!(sarif.code, 1);
    let sarif: Value = serde_json::from_str(&sarif.stdout).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let lines = |rule: &str| -> Vec<(String, u64)> {
        let of_rule = results.iter().filter(|one| one["ruleId"] == rule);
        let place = of_rule.map(|one| one["locations"][0]["physicalLocation"].clone());
        place
            .map(|place| {
                let uri = place["artifactLocation"]["uri"].as_str().unwrap().to_owned();
                (uri, place["region"]["startLine"].as_u64().unwrap())
            })
            .collect()
    };
    assert_eq!(lines("token-budget"), [("new.json".to_owned(), 5)]);
    assert_eq!(lines("tools-stay"), [("new.json".to_owned(), 1)]);
    assert_eq!(lines("first-five"), [("new.json".to_owned(), 3)]);

    let junit = impact(&files, &["--format", "junit", "--max-tokens", "100000", "--fail-under", "recall@5=.1"]).stdout;
    assert!(
        junit.contains("<testsuites name=\"contextweaver catalog diff\" tests=\"9\" failures=\"1\" errors=\"0\">"),
        "{junit}"
    );
    assert!(junit.contains("type=\"tools-stay\">query q4 needs home:lock_door"), "{junit}");
    let markdown = impact(&files, &["--format", "markdown"]).stdout;
    assert!(markdown.starts_with("**1 of 7 checks of the changed catalog failed**\n"), "{markdown}");
}

#[test]
fn every_form_says_that_definitions_were_not_measured_alone() {
    let files = two_catalogs();
    let tool = |number: usize| json!({"name": format!("tool_{number}"), "description": "Open a box", "server": "more"});
    let mut tools: Vec<Value> = serde_json::from_str(&fs::read_to_string(files.path("old.json")).unwrap()).unwrap();
    tools.extend((0..66).map(tool));
    files.write("new.json", serde_json::to_string(&tools).unwrap());
    files.write("queries.jsonl", r#"{"id": "q1", "query": "open an issue", "relevant": ["create_issue"]}"#);
    for form in ["text", "markdown", "json", "junit", "sarif"] {
        let shown = impact(&files, &["--format", form]);
        assert_eq!(shown.code, 0, "{form}: {}", shown.shown());
        assert_eq!(
            shown.stdout.matches("2 definitions were not measured alone").count(),
            1,
            "{form}: {}",
            shown.shown()
        );
    }
}

#[test]
fn a_change_that_cannot_be_measured_is_refused() {
    let files = two_catalogs();
    files.write("wrong.jsonl", "{\"id\": \"q1\", \"query\": \"x\", \"relevant\": [\"pizza\"]}\n");
    for (name, query) in [
        ("twice", json!({"id": "q1", "query": "x", "relevant": ["create_issue", "forge:create_issue"]})),
        ("blank", json!({"id": "q1", "query": " ", "relevant": ["create_issue"]})),
        ("stray", json!({"id": "q1", "query": "x", "relevant": ["create_issue"], "equivalent": {"send_mail": []}})),
    ] {
        files.write(&format!("{name}.jsonl"), format!("{query}\n"));
    }
    let diff = |more: &[&str]| files.run(&[&["catalog", "diff", "old.json", "new.json"], more].concat());
    let table = [
        (&["--impact"][..], "--queries <FILE>"),
        (&["--queries", "queries.jsonl"], "--impact"),
        (&["--format", "sarif"], "this format shows checks; add --impact --queries FILE"),
        (&["--impact", "--queries", "wrong.jsonl"], "wrong.jsonl:1: query `q1`: no tool is called `pizza`"),
        (&["--impact", "--queries", "none.jsonl"], "none.jsonl: there is no such file"),
        (&["--impact", "--queries", "twice.jsonl"], "twice.jsonl:1: query `q1`: `forge:create_issue` is listed twice"),
        (&["--impact", "--queries", "blank.jsonl"], "blank.jsonl:1: query `q1`: the query text is empty"),
        (&["--impact", "--queries", "stray.jsonl"], "`equivalent` names `send_mail`, which is not in `relevant`"),
        (&["--impact", "--queries", "queries.jsonl", "--fail-under", "recall@5=7"], "`recall@5` is 7"),
    ];
    for (arguments, expected) in table {
        let run = diff(arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.shown());
        assert!(run.stderr.contains(expected), "{arguments:?}: {}", run.shown());
    }
    let same = ["catalog", "diff", "old.json", "old.json", "--impact", "--queries", "old.jsonl"];
    files.write("old.jsonl", "{\"id\": \"q1\", \"query\": \"open an issue\", \"relevant\": [\"create_issue\"]}\n");
    let same = files.run(&same);
    assert_eq!(same.code, 0, "{}", same.shown());
    assert!(same.stdout.contains("queries compared: 1; no rank changed"), "{}", same.shown());
    let mut tools: Vec<Value> = serde_json::from_str(&fs::read_to_string(files.path("old.json")).unwrap()).unwrap();
    tools.push(json!({"name": "open_issue", "description": "Open an issue: open an issue", "server": "forge"}));
    files.write("more.json", serde_json::to_string(&tools).unwrap());
    let moved = files.run(&["catalog", "diff", "old.json", "more.json", "--impact", "--queries", "old.jsonl"]);
    assert_eq!(moved.code, 0, "{}", moved.shown());
    let expected = "queries compared: 1; recall@5 of no query changed, ranks of needed tools: 1";
    assert!(moved.stdout.contains(expected), "{}", moved.shown());
}

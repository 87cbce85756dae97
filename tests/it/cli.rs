//! Commands as a person runs them, on small files and on bad ones.

use std::fs;

use crate::support::{Files, TOOLS, checkout, run_in};

fn files() -> Files {
    let files = Files::new();
    files.write("tools.json", TOOLS);
    files
}

#[test]
fn route_prints_cards() {
    insta::assert_snapshot!(files().run(&["route", "--catalog", "tools.json", "open an issue"]).shown(), @r"
    exit 0
    [1/2] forge:create_issue#3955128d (tool) — Open a new issue in a repository. | side-effects
    [2/2] forge:list_issues#fd2ca69d (tool) — List the issues of a repository. [read-only]
    ");
}

#[test]
fn a_route_is_a_page() {
    let files = files();
    let query = "delete <i>a</i> repository xyzzy";
    let run = files.run(&["route", "--catalog", "tools.json", "-k", "1", "--html", "route.html", query]);
    assert_eq!((run.code, run.stderr.as_str()), (0, "wrote route.html\n"), "{}", run.shown());
    let page = files.page("route.html");
    assert!(!page.contains("<i>") && !page.contains("<script"), "{page}");
    insta::assert_snapshot!(page, @r##"
    <!doctype html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Tools for: delete &lt;i&gt;a&lt;/i&gt; repository xyzzy</title>
    </head>
    <body>
    <a class="skip" href="#main">Skip to the report</a>
    <header>
    <h1>Tools for: <bdi>delete &lt;i&gt;a&lt;/i&gt; repository xyzzy</bdi></h1>
    <p class="verdict">1 chosen, confidence <strong>.901</strong>.</p>
    <p>Words of the query that appear in no tool: 1.</p>
    <nav aria-label="Sections"><a href="#chosen">Chosen</a> <a href="#behind">Runners-up</a></nav>
    </header>
    <main id="main">
    <h2 id="chosen">Chosen</h2>
    <article>
    <h3>1. <bdi>delete_repository</bdi></h3>
    <p class="note"><code><bdi>[1/1] forge:delete_repository#1f5a2506 (tool) — Delete a repository for good. [destructive]</bdi></code></p>
    <p>Score <strong>3.78</strong></p>
    <ul class="bars">
    <li><span class="name"><bdi>delete</bdi></span><span class="n">1.67</span><span class="bar" aria-hidden="true"><span class="c0" style="width:44.2%"></span></span></li>
    <li><span class="name"><bdi>repository</bdi></span><span class="n">0.49</span><span class="bar" aria-hidden="true"><span class="c0" style="width:13.0%"></span></span></li>
    <li><span class="name"><bdi>delete repository</bdi></span><span class="n">0.47</span><span class="bar" aria-hidden="true"><span class="c0" style="width:12.4%"></span></span></li>
    <li><span class="name"><bdi>(meaning)</bdi></span><span class="n">1.15</span><span class="bar" aria-hidden="true"><span class="c1" style="width:30.4%"></span></span></li>
    </ul>
    </article>
    <p class="note">The parts of a score add up to it. A whole bar is the largest sum of parts.</p>
    <h2 id="behind">Runners-up</h2>
    <div class="scroll" role="region" aria-label="The next tools" tabindex="0">
    <table class="plain">
    <caption>The next tools</caption>
    <thead><tr><th scope="col">tool</th><th scope="col" class="n">score</th><th scope="col">because of</th></tr></thead>
    <tbody>
    <tr><th scope="row">forge:list_issues#fd2ca69d</th><td class="n">0.20</td><td>0.19 repository, 0.01 (meaning)</td></tr>
    <tr><th scope="row">forge:create_issue#3955128d</th><td class="n">0.17</td><td>0.17 repository, 0.00 (meaning)</td></tr>
    </tbody>
    </table>
    </div>
    <p class="note">The last one chosen has 3.78, the next one 0.20.</p>
    </main>
    </body>
    </html>
    "##);
    let over = files.run(&["route", "--catalog", "tools.json", "--html", "tools.json", query]);
    assert!(over.code == 2 && over.stderr.contains("would write over"), "{}", over.shown());
}

#[test]
#[cfg_attr(windows, ignore = "paths are shown as Unix writes them")]
fn an_installation_is_checked() {
    let files = files();
    let folder = files.path("vectors").display().to_string();
    let run = |arguments: &[&str], folder: &str| {
        files.run_with(&[&["verify"][..], arguments].concat(), &[("CONTEXTWEAVER_VECTORS", folder)])
    };
    let shown = run(&[], &folder).shown().replace(env!("CARGO_PKG_VERSION"), "VERSION");
    // The name of the encoder says which one it is.
    let shown = shown.lines().map(|line| match line.starts_with("sentence encoder") {
        true => line.split("  ok").next().unwrap().to_owned() + "  ok",
        false => line.to_owned(),
    });
    insta::assert_snapshot!(shown.collect::<Vec<_>>().join("\n"), @r"
    exit 0
    token counter      ok       16 tokens by cl100k_base and 15 by o200k_base, as they should be
    routing            ok       the right one of 235 tools comes first
    prompts            ok       157 events in 5,747 of 6,000 tokens
    firewall           ok       283 tokens for 25,501, and every byte is kept
    sessions           ok       61,372 bytes written, read and written alike
    SQLite stores      ok       what is stored is there when the file is opened again
    gateway            ok       a handshake, a search, a call, and its result in the store
    sentence encoder   ok
    folder of vectors  ok       vectors can be written
    contextweaver VERSION works
    ");
    assert_eq!(files.names(), ["tools.json"], "nothing is left behind");
    let failed = run(&["--format", "json"], &files.path("tools.json/vectors").display().to_string());
    let report: serde_json::Value = serde_json::from_str(&failed.stdout).unwrap();
    assert_eq!((failed.code, &report["kind"], &report["ok"]), (1, &"verify".into(), &false.into()));
    let row = report["checks"].as_array().unwrap().last().unwrap();
    assert_eq!(row["state"], "failed", "{row}");
    assert!(row["found"].as_str().unwrap().starts_with("tools.json/vectors cannot be written"), "{row}");
    assert!(row["remedy"].as_str().unwrap().contains("CONTEXTWEAVER_VECTORS"), "{row}");
    assert!(run(&[], &files.path("tools.json/vectors").display().to_string()).stdout.contains("1 of 9 checks failed"));
}

#[test]
fn route_explains() {
    let run = files().run(&["route", "--catalog", "tools.json", "--explain", "-k", "2", "delete a repository xyzzy"]);
    insta::assert_snapshot!(run.shown(), @r"
    exit 0
    [1/2] forge:delete_repository#1f5a2506 (tool) — Delete a repository for good. [destructive]
          score 3.78 = 1.67 delete + 0.49 repository + 0.47 delete repository + 1.15 (meaning)
    [2/2] forge:list_issues#fd2ca69d (tool) — List the issues of a repository. [read-only]
          score 0.20 = 0.19 repository + 0.01 (meaning)

    confidence .90, words that no tool has: 1
    ");
}

#[test]
fn browsing_lists_what_is_at_a_path() {
    let files = files();
    let listed = ["/", "/forge", "/forge/create_issue", "/nowhere", "forge/"]
        .map(|path| format!("{path}\n{}", files.run(&["route", "--catalog", "tools.json", "--path", path]).shown()));
    insta::assert_snapshot!(listed.join("\n"), @r"
    /
    exit 0
    [1/2] /forge (internal) — 3 tools: create_issue, delete_repository, list_issues
    [2/2] /mail (internal) — 1 tool: send_mail

    /forge
    exit 0
    [1/3] forge:create_issue#3955128d (tool) — Open a new issue in a repository. | side-effects
    [2/3] forge:delete_repository#1f5a2506 (tool) — Delete a repository for good. [destructive]
    [3/3] forge:list_issues#fd2ca69d (tool) — List the issues of a repository. [read-only]

    /forge/create_issue
    exit 0
    [1/1] forge:create_issue#3955128d (tool) — Open a new issue in a repository. | side-effects

    /nowhere
    exit 2
    error: path `/nowhere` does not exist: `/` holds no `nowhere`; browse `/`

    forge/
    exit 2
    error: path `forge/` is not valid: it does not begin with /
    ");
}

#[test]
fn a_selection_schema_names_the_tools() {
    let run = files().run(&["route", "--catalog", "tools.json", "--schema", "openai", "-k", "2", "issue"]);
    let schema: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let ids = &schema["json_schema"]["schema"]["properties"]["selection"]["enum"];
    assert_eq!(ids.as_array().unwrap().len(), 2, "{}", run.shown());
}

#[test]
#[cfg_attr(windows, ignore = "usage names the program without `.exe`")]
fn the_tools_found_are_the_list_of_a_request() {
    let files = files();
    files.write(
        "request.json",
        r#"{"model": "m", "max_tokens": 9, "tools": [
        {"name": "track parcel", "description": "Say where a parcel is.", "input_schema": {"type": "object"}}]}"#,
    );
    let route = |format: &str, query: &str| {
        let arguments =
            ["route", "--catalog", "tools.json", "--catalog", "request.json", "--as", format, "-k", "1", query];
        files.run(&arguments)
    };
    insta::assert_snapshot!(route("openai", "open an issue").shown(), @r#"
    exit 0
    [
      {
        "type": "function",
        "function": {
          "name": "create_issue",
          "description": "Open a new issue in a repository.",
          "parameters": {
            "type": "object",
            "properties": {
              "title": {
                "type": "string",
                "description": "Headline of the issue"
              }
            },
            "required": [
              "title"
            ]
          }
        }
      }
    ]
    "#);
    insta::assert_snapshot!(route("anthropic", "where is my parcel").shown(), @r#"
    exit 0
    [
      {
        "name": "track_parcel",
        "description": "Say where a parcel is.",
        "input_schema": {
          "type": "object"
        }
      }
    ]
    "#);
    for format in ["openai-responses", "gemini", "mcp", "weaver-spec"] {
        let printed = route(format, "delete the repository");
        let list: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
        assert!(list.as_array().unwrap().len() == 1 && list.to_string().contains("delete_repository"), "{list}");
    }
    // A prompt whose name the query gives takes no tool's place.
    files.write(
        "both.json",
        r#"{"tools": [{"name": "find_parcel", "description": "Say where a parcel is."}],
        "prompts": [{"name": "where_is_my_parcel", "description": "Where is my parcel?"}]}"#,
    );
    let found = files.run(&["route", "--catalog", "both.json", "--as", "openai", "-k", "1", "where is my parcel"]);
    assert!(found.code == 0 && found.stdout.contains("find_parcel"), "{}", found.shown());
    let pinned = ["route", "--catalog", "both.json", "--as", "openai", "--pin", "where_is_my_parcel", "parcel"];
    let pinned = files.run(&pinned);
    assert!(pinned.stderr.contains("is left out: the list of a request has no prompts"), "{}", pinned.shown());
    let arguments = ["--as", "gemini", "--names", "names.json", "where is my parcel"];
    assert_eq!(files.run(&[&["route", "--catalog", "request.json"][..], &arguments].concat()).code, 0);
    let names = std::fs::read_to_string(files.path("names.json")).unwrap();
    assert_eq!(names, "{\n  \"track_parcel\": \"mcp:track_parcel#1e92b419\"\n}\n");
    let decided = |format: &str, moment: &str| {
        files.run(&[
            "route",
            "--catalog",
            "tools.json",
            "--as",
            format,
            "--decided-at",
            moment,
            "-k",
            "1",
            "open an issue",
        ])
    };
    let decision = decided("weaver-spec", "2026-11-27T10:00:00Z");
    files.write("decision.json", &decision.stdout);
    let decision: serde_json::Value = serde_json::from_str(&decision.stdout).unwrap();
    assert_eq!(
        (&decision["timestamp"], &decision["context_summary"]),
        (&"2026-11-27T10:00:00Z".into(), &"open an issue".into())
    );
    let chosen = decision["choice_cards"][0]["items"][0]["id"].as_str().unwrap();
    let again = files.run(&["route", "--catalog", "decision.json", "create an issue"]);
    assert!(again.code == 0 && again.stdout.contains(chosen), "{}", again.shown());
    let refused = [decided("openai", "2026-11-27T10:00:00Z"), decided("weaver-spec", "today")].map(|run| run.shown());
    insta::assert_snapshot!(refused.join("\n"), @r"
    exit 2
    error: --decided-at is for routing decisions, which `--as weaver-spec` prints

    exit 2
    error: `today` is not a timestamp; write it as 2026-11-27T10:00:00Z
    ");
    let wrong = [&["--as", "native"][..], &["--as", "openai", "--explain"], &["--names", "x.json"]];
    let wrong =
        wrong.map(|wrong| files.run(&[&["route", "--catalog", "tools.json", "an issue"][..], wrong].concat()).shown());
    insta::assert_snapshot!(wrong.join("\n"), @"
    exit 2
    error: invalid value 'native' for '--as <FORMAT>'
      [possible values: openai, openai-responses, anthropic, gemini, mcp, weaver-spec]

    For more information, try '--help'.

    exit 2
    error: the argument '--as <FORMAT>' cannot be used with '--explain'

    Usage: contextweaver route --catalog <PATH> --as <FORMAT> <QUERY>...

    For more information, try '--help'.

    exit 2
    error: the following required arguments were not provided:
      --as <FORMAT>

    Usage: contextweaver route --catalog <PATH> --as <FORMAT> --names <FILE> <QUERY>...

    For more information, try '--help'.
    ");
}

#[test]
fn print_tree_shows_the_graph() {
    insta::assert_snapshot!(files().run(&["print-tree", "--catalog", "tools.json"]).shown(), @r"
    exit 0
    4 items in 2 namespaces  /
      forge: issue, repository (3 items)  /forge
        create_issue
        delete_repository
        list_issues
      mail: send mail (1 item)  /mail
        send_mail
    ");
}

#[test]
fn a_log_of_feedback_lifts_what_queries_led_to() {
    let files = files();
    files.write("words.toml", "semantic = 0.0");
    let route =
        |more: &[&str]| files.run(&[&["route", "--catalog", "tools.json", "--config", "words.toml"], more].concat());
    assert!(route(&["ping the board"]).stdout.starts_with("no tool"));
    let add = |more: &[&str]| files.run(&[&["feedback", "add", "--log", "log.jsonl", "--at", "1"], more].concat());
    let tool = ["--catalog", "tools.json", "--tool", "forge:create_issue#3955128d"];
    for query in ["ping the board", "what does the board say"] {
        assert_eq!(add(&[&tool[..], &[query]].concat()).code, 0);
    }
    assert_eq!(add(&["--catalog", "tools.json", "--tool", "gone:tool", "x"]).code, 2);
    let unchecked = ["--tool", "forge:list_issues#fd2ca69d", "--not-useful", "ping the board"];
    let refused = add(&unchecked);
    assert!(refused.code == 2 && refused.stderr.contains("--catalog"), "{}", refused.shown());
    assert_eq!(add(&[&["--force"], &unchecked[..]].concat()).code, 0);
    let taught = route(&["--feedback", "log.jsonl", "--explain", "ping the board"]);
    assert!(taught.stdout.starts_with("[1/1] forge:create_issue#3955128d"), "{}", taught.shown());
    assert!(taught.stdout.contains(" (feedback)\n"), "{}", taught.shown());
    let shown = files.run(&["feedback", "show", "--log", "log.jsonl"]);
    assert!(shown.stdout.starts_with("3 observations of 2 tools, 0 damaged lines\n"), "{}", shown.shown());
    assert!(shown.stdout.contains("useful 0, not useful 1; last: ping the board"), "{}", shown.shown());
    assert_eq!(route(&["--feedback", "none.jsonl", "issue"]).code, 2);
}

#[test]
fn a_saved_index_answers_alike_and_a_stale_one_is_refused() {
    let files = files();
    assert_eq!(files.run(&["build", "--catalog", "tools.json", "--out", "tools.cwx"]).code, 0);
    let plain = files.run(&["route", "--catalog", "tools.json", "letters"]);
    let saved = files.run(&["route", "--catalog", "tools.json", "--index", "tools.cwx", "letters"]);
    assert_eq!(plain.shown(), saved.shown());
    let long = ["route", "--catalog", "tools.json", "--graph", "tools.cwx", "--query", "letters"];
    assert_eq!(plain.shown(), files.run(&long).shown());
    let tree = files.run(&["print-tree", "--graph", "tools.cwx"]);
    assert_eq!(tree.shown(), files.run(&["print-tree", "--catalog", "tools.json"]).shown());
    files.write("tools.json", TOOLS.replace("Send a letter", "Post a letter"));
    let stale = files.run(&["route", "--catalog", "tools.json", "--index", "tools.cwx", "letters"]);
    insta::assert_snapshot!(stale.shown(), @r"
    exit 2
    error: tools.cwx
      caused by: stale: built from a different catalog; build it again with `contextweaver build`
    ");
}

#[test]
fn a_name_too_long_for_any_card_is_refused_up_front_or_left_out() {
    let files = Files::new();
    let long = "xQ_z".repeat(28);
    files.write(
        "tools.json",
        format!(r#"[{{"name": "a{long}"}}, {{"name": "send_mail", "description": "Send a letter"}}]"#),
    );
    let strict = files.run(&["route", "--catalog", "tools.json", "a letter"]);
    assert_eq!(strict.code, 2, "{}", strict.shown());
    assert!(strict.stderr.contains("leave it out with --lenient"), "{}", strict.stderr);
    let lenient = files.run(&["route", "--catalog", "tools.json", "--lenient", "a letter"]);
    assert_eq!(lenient.code, 0, "{}", lenient.shown());
    assert!(lenient.stdout.contains("send_mail") && lenient.stderr.contains("left out"), "{}", lenient.shown());
}

#[test]
fn json_output_is_json() {
    let files = files();
    let queries = r#"{"id": "1", "query": "open an issue", "relevant": ["create_issue"]}"#;
    files.write("queries.jsonl", queries);
    files.write("gold/home/catalog.json", TOOLS);
    files.write("gold/home/queries.jsonl", queries);
    let seal = files.run(&["gold", "seal", "home", "--gold", "gold"]);
    assert_eq!(seal.code, 0, "{}", seal.shown());
    let commands: [&[&str]; 12] = [
        &["build", "--catalog", "tools.json", "--out", "tools.cwx", "--format", "json"],
        &["catalog", "diff", "tools.json", "tools.json", "--format", "json"],
        &["gold", "list", "--gold", "gold", "--format", "json"],
        &["gold", "audit", "--gold", "gold", "--format", "json"],
        &[
            "gold", "grow", "home", "--gold", "gold", "--grade", "copies", "--size", "9", "--out", "x", "--format",
            "json",
        ],
        &["route", "--catalog", "tools.json", "--format", "json", "issue"],
        &["route", "--catalog", "tools.json", "--format", "json", "--path", "/forge"],
        &["print-tree", "--catalog", "tools.json", "--format", "json"],
        &["catalog", "inspect", "tools.json", "--format", "json"],
        &["catalog", "lint", "tools.json", "--format", "json"],
        &["bench", "eval", "--catalog", "tools.json", "--queries", "queries.jsonl", "--format", "json"],
        &["bench", "rot", "--catalog", "tools.json", "--queries", "queries.jsonl", "--size", "20", "--format", "json"],
    ];
    for command in commands {
        let run = files.run(command);
        assert_eq!(run.code, 0, "{command:?}: {}", run.shown());
        let printed = serde_json::from_str::<serde_json::Value>(&run.stdout);
        let printed = printed.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        // Every output is an object that begins with its version and the words of the command.
        let first: Vec<&str> = printed.as_object().unwrap().keys().take(2).map(String::as_str).collect();
        assert_eq!(first, ["schema_version", "kind"], "{command:?}");
        assert_eq!(printed["schema_version"], 1, "{command:?}");
        let kind = printed["kind"].as_str().unwrap();
        assert!(kind == "route path" || command.join(" ").starts_with(kind), "{command:?}: {kind}");
    }
}

#[test]
#[cfg_attr(windows, ignore = "messages of the system are compared")]
fn bad_input_names_the_place_and_the_way_out() {
    let files = files();
    files.write("broken.json", "[{\"name\": \"a\",\n \"description\": }]");
    files.write("latin1.json", b"[{\"name\": \"caf\xe9\"}]");
    files.write("empty.json", "[]");
    files.write("twice.json", "[{\"name\": \"a\"}, {\"name\": \"a\"}]");
    files.write("config.toml", "scorer = \"bm52\"\n");
    files.write("weights.toml", "k1 = -1.0\n");
    files.write("unknown.toml", "top = 3\n");
    files.write("absent.jsonl", "{\"id\": \"1\", \"query\": \"open\", \"relevant\": [\"create_isue\"]}");
    files.write("fields.jsonl", "{\"id\": \"1\", \"query\": \"open\", \"relevant\": [], \"answer\": 1}");
    files.write("folder/readme.txt", "nothing to load");
    let eval = |queries| vec!["bench", "eval", "--catalog", "tools.json", "--queries", queries];
    let route = |catalog| vec!["route", "--catalog", catalog, "issue"];
    let with_config = |config| vec!["route", "--catalog", "tools.json", "--config", config, "issue"];
    let commands = [
        route("missing.json"),
        route("broken.json"),
        route("latin1.json"),
        route("empty.json"),
        route("twice.json"),
        route("folder"),
        with_config("config.toml"),
        with_config("weights.toml"),
        with_config("unknown.toml"),
        with_config("folder"),
        eval("absent.jsonl"),
        eval("fields.jsonl"),
        eval("missing.jsonl"),
        vec!["route", "--catalog", "tools.json", "--exclude", "forge:create_issu", "issue"],
        vec!["route", "--catalog", "tools.json", "--top-k", "0", "issue"],
        vec!["bench", "run", "--root", "."],
        vec!["fly"],
    ];
    let before = files.names();
    let seen: Vec<String> = commands
        .iter()
        .map(|command| {
            let run = files.run(command);
            assert_eq!(run.code, 2, "{command:?}: {}", run.shown());
            assert_eq!(run.stdout, "", "{command:?}");
            format!("{}\n{}", command.join(" "), run.stderr)
        })
        .collect();
    assert_eq!(files.names(), before, "a failed command left something behind");
    insta::assert_snapshot!(seen.join("\n"), @r#"
    route --catalog missing.json issue
    error: missing.json: there is no such file

    route --catalog broken.json issue
    error: broken.json: line 2, column 17: expected value; correct it, or leave it out with --lenient

    route --catalog latin1.json issue
    error: latin1.json: line 1, byte 14 of the file: invalid UTF-8; save the file as UTF-8, or leave it out with --lenient

    route --catalog empty.json issue
    error: the catalog is empty: empty.json: no tools, resources or prompts are listed

    route --catalog twice.json issue
    error: duplicate id `mcp:a#fdad281d`: twice.json: tools[0] `a` and twice.json: tools[1] `a`; remove one, or give its server another name, or leave the second out with --lenient

    route --catalog folder issue
    error: folder: the folder has no *.json, *.yaml or *.yml file and no SKILL.md

    route --catalog tools.json --config config.toml issue
    error: config.toml
      caused by: TOML parse error at line 1, column 10
      |
    1 | scorer = "bm52"
      |          ^^^^^^
    unknown variant `bm52`, expected one of `tfidf`, `bm25`, `bm25f`, `fuzzy`


    route --catalog tools.json --config weights.toml issue
    error: weights.toml
      caused by: `k1` is -1; it must be above 0 and at most 100

    route --catalog tools.json --config unknown.toml issue
    error: unknown.toml
      caused by: TOML parse error at line 1, column 1
      |
    1 | top = 3
      | ^^^
    unknown field `top`, expected one of `scorer`, `k1`, `b`, `fields`, `name`, `description_pairs`, `reversed_pairs`, `k3`, `spelling`, `semantic`, `navigation`, `tree`, `top_k`, `confidence_gap`, `copies`, `abstain_below`, `model`, `feedback`


    route --catalog tools.json --config folder issue
    error: folder: it is a folder; name a file in it

    bench eval --catalog tools.json --queries absent.jsonl
    error: absent.jsonl:1: query `1`: no tool is called `create_isue`; the nearest name is `create_issue`

    bench eval --catalog tools.json --queries fields.jsonl
    error: fields.jsonl:1: unknown field `answer`, expected one of `id`, `query`, `relevant`, `equivalent`, `register`, `lang`, `category`, `draft` at column 53

    bench eval --catalog tools.json --queries missing.jsonl
    error: missing.jsonl: there is no such file

    route --catalog tools.json --exclude forge:create_issu issue
    error: --exclude: no tool is called `forge:create_issu`; did you mean `forge:create_issue#3955128d`?

    route --catalog tools.json --top-k 0 issue
    error: invalid value '0' for '--top-k <N>': give a whole number, at least 1

    For more information, try '--help'.

    bench run --root .
    error: .: neither gate.toml nor scenarios/engines.toml is in it; make a workspace with `contextweaver bench init`, or name a contextweaver checkout

    fly
    error: unrecognized subcommand 'fly'

    Usage: contextweaver <COMMAND>

    For more information, try '--help'.
    "#);
}

#[test]
fn only_commands_with_the_flag_say_that_it_helps() {
    let files = Files::new();
    files.write("broken.json", r#"{"tools": [{"description": "x"}]}"#);
    files.write("q.jsonl", "{\"id\": \"1\", \"query\": \"a\", \"relevant\": []}\n");
    let table: [(&[&str], bool); 7] = [
        (&["route", "--catalog", "broken.json", "a letter"], true),
        (&["catalog", "lint", "broken.json"], true),
        (&["bench", "eval", "--catalog", "broken.json", "--queries", "q.jsonl"], true),
        (&["init", "--tools", "broken.json", "w"], false),
        (&["gold", "draft", "--catalog", "broken.json"], false),
        (&["bench", "init", "--catalog", "broken.json", "w"], false),
        (&["feedback", "add", "--log", "f.jsonl", "--catalog", "broken.json", "--tool", "x", "a letter"], false),
    ];
    for (arguments, has_flag) in table {
        let run = files.run(arguments);
        assert!(run.code == 2 && run.stderr.contains("`name` is missing or empty"), "{arguments:?}: {}", run.shown());
        assert_eq!(run.stderr.contains("--lenient"), has_flag, "{arguments:?}: {}", run.shown());
    }
}

#[test]
fn every_command_has_help_with_an_example() {
    let commands: [&[&str]; 36] = [
        &[],
        &["bench"],
        &["route"],
        &["build"],
        &["print-tree"],
        &["catalog"],
        &["catalog", "inspect"],
        &["catalog", "lint"],
        &["catalog", "diff"],
        &["catalog", "convert"],
        &["feedback"],
        &["feedback", "add"],
        &["feedback", "show"],
        &["gold"],
        &["gold", "list"],
        &["gold", "audit"],
        &["gold", "seal"],
        &["gold", "grow"],
        &["bench", "run"],
        &["bench", "init"],
        &["bench", "render"],
        &["bench", "check"],
        &["bench", "list"],
        &["bench", "eval"],
        &["bench", "check-engine"],
        &["bench", "feedback"],
        &["bench", "growth"],
        &["bench", "rot"],
        &["gold", "draft"],
        &["models"],
        &["models", "show"],
        &["demo"],
        &["verify"],
        &["mcp", "memory-serve"],
        &["completions"],
        &["catalog", "convert"],
    ];
    for command in commands {
        let run = run_in(&checkout(), &[command, &["--help"]].concat());
        assert_eq!(run.code, 0, "{command:?}");
        let shows_example = run.stdout.contains("Example") || run.stdout.contains("Start here");
        assert!(
            shows_example || matches!(command, ["catalog"] | ["feedback"] | ["gold"] | ["bench"] | ["models"]),
            "{command:?} shows no example"
        );
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    use std::io::Read;
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_contextweaver"))
        .args(["gold", "audit", "--format", "json"])
        .current_dir(checkout())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn how_a_command_ends_does_not_hang_on_who_reads_it() {
    use std::process::Command;
    let files = files();
    files.write("queries.jsonl", r#"{"id": "q", "query": "pizza", "relevant": ["create_issue"]}"#);
    let eval = ["bench", "eval", "--catalog", "tools.json", "--queries", "queries.jsonl", "--engine", "lexical"];
    let table = [
        (&[&eval[..], &["--fail-under", "recall@5=0"]].concat()[..], 0),
        (&[&eval[..], &["--fail-under", "recall@5=.5"]].concat(), 1),
        (&[&eval[..], &["--fail-under", "recall@5=.5", "--format", "json"]].concat(), 1),
        (&["route", "--catalog", "none.json", "x"], 2),
        (&["--help"], 0),
    ];
    for (arguments, code) in table {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_contextweaver"));
        let output = command.args(arguments).current_dir(files.path("")).stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(!said.contains("ipe"), "{arguments:?}: {said}");
    }
}

/// All commands, the outer ones first, as the help lists them.
fn every_command() -> Vec<Vec<String>> {
    let (mut found, mut next) = (Vec::new(), vec![Vec::<String>::new()]);
    while let Some(words) = next.pop() {
        let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let help = run_in(&checkout(), &arguments).stdout;
        let listed = help.split_once("Commands:\n").map_or("", |(_, after)| after.split("Options:\n").next().unwrap());
        for line in listed.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' ')) {
            let name = line.split(' ').next().unwrap();
            if name != "help" {
                next.push(words.iter().cloned().chain([name.to_owned()]).collect());
            }
        }
        found.push(words);
    }
    found
}

#[test]
fn a_group_of_commands_alone_prints_its_help() {
    let commands = every_command();
    let is_group = |words: &&Vec<String>| commands.iter().any(|one| one.len() > words.len() && one.starts_with(words));
    let groups: Vec<Vec<&str>> =
        commands.iter().filter(is_group).map(|words| words.iter().map(String::as_str).collect()).collect();
    assert!(groups.len() > 8, "{groups:?}");
    for words in groups {
        let [alone, help] =
            [&words[..], &[&words[..], &["--help"]].concat()].map(|words| run_in(&checkout(), words).shown());
        assert!(alone.starts_with("exit 0\n"), "{words:?}: {alone}");
        assert_eq!(alone, help, "{words:?}");
    }
}

#[test]
fn the_encoder_and_its_vectors_are_shown() {
    let files = files();
    let folder = files.path("vectors").display().to_string();
    let run = |arguments: &[&str]| {
        let run = files.run_with(arguments, &[("CONTEXTWEAVER_VECTORS", &folder)]);
        assert_eq!(run.code, 0, "{arguments:?}: {}", run.shown());
        run.stdout
    };
    let before = run(&["models", "show"]);
    let (encoder, rest) = before.split_once('\n').unwrap();
    assert!(encoder.starts_with("contextweaver-minilm "), "{before}");
    assert!(rest.starts_with("vectors of 0 tools are kept in ") && rest.ends_with("vectors\n"), "{before}");
    run(&["route", "--catalog", "tools.json", "--model", "open an issue"]);
    let after: serde_json::Value = serde_json::from_str(&run(&["models", "show", "--format", "json"])).unwrap();
    assert_eq!(
        (&after["kind"], &after["encoder"], &after["vectors"]),
        (&"models show".into(), &encoder.into(), &4.into())
    );
}

#[test]
fn help_fits_a_narrow_terminal() {
    let commands = every_command();
    assert!(commands.len() > 50, "{commands:?}");
    // Each command stands in a group.
    assert!(!run_in(&checkout(), &["--help"]).stdout.contains("Others:"));
    let mut wide = String::new();
    for words in &commands {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_contextweaver"));
        let output = command.args(words).arg("--help").env("COLUMNS", "80").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && !text.contains('\u{1b}'), "{words:?}");
        for line in text.lines().filter(|line| line.chars().count() > 80 && !line.starts_with("Usage:")) {
            wide.push_str(&format!("{}: {line}\n", words.join(" ")));
        }
        // A wide terminal shows what a narrow one would have to break.
        let output = command.env("COLUMNS", "300").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let examples = text.split_once("\nExample").or(text.split_once("\nStart here")).map_or("", |(_, after)| after);
        for line in examples.lines().filter(|line| line.starts_with(' ') && line.chars().count() > 78) {
            wide.push_str(&format!("{}: {line}\n", words.join(" ")));
        }
    }
    assert!(wide.is_empty(), "{wide}");
}

#[test]
fn colours_follow_what_they_are_written_to() {
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_contextweaver"));
        command.args(arguments).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").envs(variables.iter().copied());
        let output = command.output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    for arguments in
        [&["--help"][..], &["route", "--help"], &["route", "--catalogue"], &["catalog", "lint", "absent.json"]]
    {
        let forced = run(arguments, &[("CLICOLOR_FORCE", "1")]);
        assert!(forced.contains("\u{1b}["), "{arguments:?}: {forced}");
        // A pipe is not a terminal, and `NO_COLOR` is stronger.
        for variables in [&[][..], &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]] {
            let plain = run(arguments, variables);
            assert!(!plain.contains('\u{1b}') && plain.len() > 20, "{arguments:?}: {plain}");
        }
    }
    let json = run(&["catalog", "lint", "absent.json", "--format", "json"], &[("CLICOLOR_FORCE", "1")]);
    assert!(!json.contains('\u{1b}') && json.starts_with('{'), "{json}");
}

#[test]
fn help_names_the_address_that_is_listened_at() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let help = run_in(&checkout(), &["serve", "--help"]).stdout;
    let named =
        help.split("[default: ").skip(1).find_map(|part| part.split(']').next().filter(|text| text.contains(':')));
    let mut child = Command::new(env!("CARGO_BIN_EXE_contextweaver"))
        .arg("serve")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // Where something else has the port, the error names it.
    assert!(said.contains(named.unwrap()), "the help says {named:?}: {said}");
}

#[test]
#[cfg_attr(windows, ignore = "messages of the system are compared")]
fn a_collector_that_cannot_be_used_is_named_before_anything_is_served() {
    let files = Files::new();
    files.write("wrong.yaml", "{otlp: {endpoint: here}}");
    files.write("more.yaml", "{otlp: {endpoint: 'http://127.0.0.1:1'}, mode: proxy}");
    for (file, reason) in [
        ("none.yaml", "none.yaml: there is no such file"),
        ("wrong.yaml", "wrong.yaml: otlp.endpoint: must be the address of a collector, such as http://127.0.0.1:4318"),
        ("more.yaml", "unknown field `mode`"),
    ] {
        let run = files.run(&["serve", "--otlp", file]);
        assert!(run.code == 2 && run.stderr.contains("--otlp") && run.stderr.contains(reason), "{}", run.shown());
    }
}

#[test]
#[cfg_attr(windows, ignore = "messages of the system are compared")]
fn callers_that_cannot_be_used_are_named_before_anything_is_served() {
    let files = Files::new();
    for (file, text) in [
        ("nobody.yaml", "callers: []"),
        ("large.yaml", "{callers: [{name: a, token: s3cret, body_limit_bytes: 11}]}"),
        ("spaced.yaml", "{callers: [{name: a, token: 's3cret word'}]}"),
        ("more.json", r#"{"callers": [{"name": "a", "token": "s3cret", "profile": "p"}]}"#),
    ] {
        files.write(file, text);
    }
    let refused = [
        &["--callers", "none.yaml"][..],
        &["--callers", "nobody.yaml"],
        &["--callers", "large.yaml"],
        &["--callers", "spaced.yaml"],
        &["--callers", "more.json"],
        &["--callers", "nobody.yaml", "--token-file", "token"],
        &["--trusted-proxy", "proxy.example"],
    ]
    .map(|arguments| {
        let run = files.run(&[&["serve", "--body-limit", "10"], arguments].concat());
        let said: Vec<&str> = run.stderr.lines().take(2).map(str::trim).collect();
        format!("exit {}, {}", run.code, said.join(" ").trim_end())
    });
    insta::assert_snapshot!(refused.join("\n"), @r"
    exit 2, error: --callers caused by: none.yaml: there is no such file
    exit 2, error: --callers caused by: nobody.yaml: callers: must name at least one caller
    exit 2, error: --callers: large.yaml caused by: callers[0].body_limit_bytes: is 11, more than the limit for all callers, which is 10
    exit 2, error: --callers caused by: spaced.yaml: callers[0]: must be printable ASCII without spaces, and not empty
    exit 2, error: --callers caused by: more.json: line 1, column 47: unknown field `profile`; expected one of name, token, token_file, max_requests_per_minute, max_requests, body_limit_bytes, metrics
    exit 2, error: the argument '--callers <FILE>' cannot be used with '--token-file <FILE>'
    exit 2, error: invalid value 'proxy.example' for '--trusted-proxy <ADDRESS[/BITS]>': `proxy.example` is not an address or a network; write `192.0.2.1` or `192.0.2.0/24`
    ");
}

#[cfg(unix)]
#[test]
fn callers_of_a_file_are_served_and_read_again_at_a_signal() {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpStream;
    let files = Files::new();
    files.write("b.token", "second-token\n");
    files.write(
        "callers.yaml",
        "callers:\n- {name: a, token: first-token, max_requests_per_minute: 2}\n\
         - {name: b, token_file: b.token, metrics: true}\n",
    );
    let mut child = files.start(&["serve", "--listen", "127.0.0.1:0", "--callers", "callers.yaml"]);
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut said = || {
        let mut line = String::new();
        log.read_line(&mut line).unwrap();
        line
    };
    let address = said().trim().strip_prefix("listening at http://").unwrap().to_owned();
    let ask = |token: &str, what: &str| {
        let head = format!("{what} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close");
        let body = "content-type: application/json\r\ncontent-length: 13\r\n\r\n{\"text\": \"a\"}";
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let status = |token: &str| ask(token, "POST /v1/count")[9..12].to_owned();
    let tokens = ["first-token", "first-token", "first-token", "second-token", "third-token"];
    assert_eq!(tokens.map(status), ["200", "200", "429", "200", "401"]);
    let metrics = ask("second-token", "GET /metrics");
    assert!(metrics.contains(r#"_answers_total{path="/v1/count",status="429",caller="a"} 1"#), "{metrics}");
    assert!(!metrics.contains("-token"), "{metrics}");

    let signal = |name: &str| {
        let told = std::process::Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
        assert!(told.success());
    };
    // A broken file changes nothing, and is named without its token.
    files.write("callers.yaml", "callers: [{name: c, token: third token}]");
    signal("-HUP");
    insta::assert_snapshot!(said(), @"contextweaver: the previous callers stay in force: --callers: callers.yaml: callers[0]: must be printable ASCII without spaces, and not empty");
    assert_eq!(status("second-token"), "200");
    files.write("callers.yaml", "callers: [{name: c, token: third-token}]");
    signal("-HUP");
    insta::assert_snapshot!(said(), @"contextweaver: the callers were read again and are in force");
    assert_eq!(["second-token", "third-token"].map(status), ["401", "200"]);
    signal("-TERM");
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert_eq!((child.wait().unwrap().code(), rest.as_str()), (Some(0), ""));
}

/// A Python file is read by `fastmcp inspect`; scripts/python-recipes compares what the real one writes.
#[cfg(unix)]
#[test]
fn the_tools_of_a_python_file_are_those_that_fastmcp_finds() {
    use std::os::unix::fs::PermissionsExt;
    let files = Files::new();
    files.write("server.py", "");
    let init = |folder: &str| {
        let path = format!("{}:/usr/bin:/bin", files.path("bin").display());
        files.run_with(&["init", folder, "--tools", "server.py", "--no-run"], &[("PATH", &path)])
    };
    let missing = init("none");
    assert!(missing.code == 2 && missing.stderr.contains("there is no `fastmcp` on the PATH"), "{}", missing.shown());
    let program = |script: String| {
        let path = files.write("bin/fastmcp", script);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    program("#!/bin/sh\necho 'Traceback' >&2\necho 'ImportError: no module' >&2\nexit 1\n".to_owned());
    let failed = init("failed");
    assert!(failed.code == 2 && failed.stderr.contains("failed: ImportError: no module"), "{}", failed.shown());
    let sample = checkout().join("crates/core/src/catalog/formats/samples/fastmcp.json");
    program(format!(
        "#!/bin/sh\n[ \"$1 $3 $4 $5\" = 'inspect --format fastmcp --output' ] && cp '{}' \"$6\"\n",
        sample.display()
    ));
    let made = init("made");
    assert_eq!(made.code, 0, "{}", made.shown());
    let catalog = std::fs::read_to_string(files.path("made/catalog.json")).unwrap();
    assert!(catalog.contains("find_rooms") && catalog.contains("Front Desk"), "{catalog}");
    assert_eq!(files.names(), ["bin", "made", "server.py"]);
}

#[test]
#[cfg_attr(windows, ignore = "paths are shown as Unix writes them")]
fn no_command_writes_over_what_it_reads() {
    let files = crate::pages::thirty_queries();
    let good = |arguments: &str| {
        let run = files.run(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!(run.code, 0, "{arguments}: {}", run.shown());
    };
    good("bench init gate --catalog tools.json --queries queries.jsonl");
    good("bench run --root gate");
    good("bench eval --catalog tools.json --queries queries.jsonl --run-out run.tsv --format json");
    let eval = "bench eval --catalog tools.json --queries queries.jsonl";
    let table = [
        (
            format!("{eval} --run-out queries.jsonl"),
            "--run-out queries.jsonl would write over queries.jsonl of --queries",
        ),
        (format!("{eval} --html ./tools.json"), "--html ./tools.json would write over tools.json of --catalog"),
        (
            format!("{eval} --run theirs=run.tsv --run-out run.tsv"),
            "--run-out run.tsv would write over run.tsv of --run",
        ),
        (format!("{eval} --html x --run-out x"), "--html x would write over x of --run-out"),
        (format!("{eval} --trec-out . --html run"), "--html run would write over ./run of --trec-out"),
        ("bench run --root gate --html gate/gate.toml".to_owned(), "would write over gate/gate.toml of the workspace"),
        (
            "bench check --root gate --html gate/results.json".to_owned(),
            "would write over gate/results.json of the workspace",
        ),
        (
            "route --catalog tools.json --as openai --names tools.json mail".to_owned(),
            "--names tools.json would write over tools.json of --catalog",
        ),
        (
            "catalog convert tools.json --to mcp --out tools.json".to_owned(),
            "--out tools.json would write over tools.json of PATH",
        ),
        (
            "build --catalog tools.json --out tools.json".to_owned(),
            "--out tools.json would write over tools.json of --catalog",
        ),
        (
            "gold draft --catalog tools.json --out tools.json --force".to_owned(),
            "--out tools.json would write over tools.json of --catalog",
        ),
    ];
    let kept = ["queries.jsonl", "tools.json", "run.tsv", "gate/gate.toml", "gate/results.json"];
    let read = || kept.map(|name| fs::read(files.path(name)).unwrap());
    let before = read();
    for (arguments, expected) in table {
        let run = files.run(&arguments.split(' ').collect::<Vec<_>>());
        assert!(run.code == 2 && run.stderr.contains(expected), "{arguments}: {}", run.shown());
        assert!(before == read(), "{arguments}: a file changed");
        assert!(!files.path("x").exists() && !files.path("run").exists(), "{arguments}");
    }
}

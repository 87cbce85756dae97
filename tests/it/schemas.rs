//! The JSON Schemas say what the parsers say.
//!
//! Every file of the project is valid under its schema. An example of each kind is changed in every place (a member that
//! nothing knows, a value of another type), and schema and parser must be of one mind about each of these.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use serde_json::{Value, json};

use contextweaver::catalog::{LoadOptions, load};
use contextweaver::eval::choosing::transcript::Line;
use contextweaver::eval::collection::{About, Collection, Source};
use contextweaver::eval::context::scenario::Scenario as ContextScenario;
use contextweaver::eval::gateway::scenario::Scenario as GatewayScenario;
use contextweaver::eval::matrix::Matrix;
use contextweaver::eval::record::Origin;
use contextweaver::eval::tables::manifest;
use contextweaver::{GatewayConfig, RoutingConfig};
use contextweaver_api::Engines;
use contextweaver_bench::own::OwnWorkspace;
use contextweaver_bench::results::Results;
use contextweaver_context::ContextConfig;
use contextweaver_context::memory::MemoryFile;
use contextweaver_context::store::Session;
use contextweaver_gateway::{Answers, AuditLine, CallersConfig, OtlpConfig};

use crate::support::{Files, TOOLS, checkout};

fn schema(name: &str) -> jsonschema::Validator {
    let text = fs::read_to_string(checkout().join(format!("schemas/{name}.json"))).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    assert!(jsonschema::meta::is_valid(&schema), "{name}");
    jsonschema::draft202012::new(&schema).unwrap()
}

fn toml_file(path: &Path) -> Value {
    toml::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn json_file(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The files of a folder with this ending.
fn files_in(folder: &str, ending: &str) -> Vec<PathBuf> {
    let found = fs::read_dir(checkout().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    found.filter(|path| path.extension().is_some_and(|own| own == ending)).collect()
}

#[test]
fn every_file_of_the_project_is_valid() {
    let of_gold = |name: &str| {
        ["everyday", "household", "library", "workbench"].map(|one| checkout().join("gold").join(one).join(name))
    };
    let (engines, scenarios): (Vec<PathBuf>, Vec<PathBuf>) =
        files_in("scenarios", "toml").into_iter().partition(|path| path.ends_with("engines.toml"));
    type Committed = (&'static str, Vec<PathBuf>, fn(&Path) -> Value);
    let kinds: [Committed; 8] = [
        ("engines", engines, toml_file),
        ("scenario", scenarios, toml_file),
        ("context-scenario", files_in("scenarios/context", "toml"), toml_file),
        ("gateway-scenario", files_in("scenarios/gateway", "toml"), toml_file),
        ("collection", of_gold("collection.toml").into(), toml_file),
        ("catalog", of_gold("catalog.json").into(), json_file),
        ("results", files_in("scorecard/results", "json"), json_file),
        ("timings", vec![checkout().join("scorecard/timings/timings.json")], json_file),
    ];
    for (name, paths, read) in kinds {
        let schema = schema(name);
        assert!(!paths.is_empty(), "{name}");
        for path in paths {
            let errors: Vec<String> = schema.iter_errors(&read(&path)).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{}: {errors:?}", path.display());
            // Editors find the schema by the first line.
            if path.extension().is_some_and(|ending| ending == "toml") {
                let text = fs::read_to_string(&path).unwrap();
                let named = text.lines().next().and_then(|line| line.strip_prefix("#:schema ")).unwrap();
                let named = path.parent().unwrap().join(named).canonicalize().unwrap();
                assert_eq!(named, checkout().canonicalize().unwrap().join(format!("schemas/{name}.json")));
            }
        }
    }
    let query = schema("query");
    for path in of_gold("queries.jsonl") {
        for line in fs::read_to_string(path).unwrap().lines() {
            assert!(query.is_valid(&serde_json::from_str(line).unwrap()), "{line}");
        }
    }
}

#[test]
fn the_tool_lists_of_the_page_are_valid() {
    let page = fs::read_to_string(checkout().join("docs/formats.md")).unwrap();
    let section = page.split("\n### Other tool-list formats\n").nth(1).unwrap().split("\n### ").next().unwrap();
    let examples: Vec<&str> =
        section.split("```json\n").skip(1).map(|part| part.split("```").next().unwrap()).collect();
    assert!(examples.len() > 12);
    let schema = schema("catalog");
    for example in examples {
        let errors: Vec<String> =
            schema.iter_errors(&serde_json::from_str(example).unwrap()).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{example}: {errors:?}");
    }
    for wrong in
        [json!([{"description": "nameless"}]), json!({"tool": []}), json!({"openapi": "3.1.0"}), json!({"skills": []})]
    {
        assert!(!schema.is_valid(&wrong), "{wrong}");
    }
}

/// The whole documents on pages, except those of docs/gateway.md, which tests/it/pages.rs reads.
#[test]
fn the_configurations_of_pages_are_valid() {
    fn engines(value: &Value) -> bool {
        toml_text(value).is_some_and(|text| matrix(&text, None))
    }
    let blocks = |page: &str, language: &str| -> Vec<String> {
        let (text, fence) = (fs::read_to_string(checkout().join(page)).unwrap(), format!("```{language}\n"));
        text.split(&fence).skip(1).map(|part| part.split("```").next().unwrap().to_owned()).collect()
    };
    type Reader = (&'static str, fn(&Value) -> bool);
    let (of_routing, of_context): (Reader, Reader) = (("routing", routing), ("context", context));
    for (page, before, readers) in [
        ("docs/formats.md", "", vec![of_routing, of_routing, of_context]),
        ("docs/memory.md", "", vec![of_context]),
        ("docs/route.md", "", vec![of_routing]),
        // The file has the rows of our engines too.
        ("docs/engines.md", ENGINES, vec![("engines", engines as fn(&Value) -> bool)]),
    ] {
        let blocks = blocks(page, "toml");
        assert_eq!(blocks.len(), readers.len(), "{page}: say what each TOML block is");
        for (block, (name, parses)) in blocks.iter().zip(readers) {
            let value: Value = toml::from_str(&format!("{before}{block}")).unwrap();
            let errors: Vec<String> = schema(name).iter_errors(&value).map(|error| error.to_string()).collect();
            assert!(errors.is_empty() && parses(&value), "{page}: {block}{errors:?}");
        }
    }
    let of_serve = blocks("docs/http.md", "yaml");
    let [callers, otlp] = &of_serve[..] else { panic!("docs/http.md: say what each YAML block is") };
    let parsed = CallersConfig::parse(callers, Path::new(""), &|name| Some(name.to_owned()));
    assert!(parsed.is_ok(), "{callers}{}", parsed.err().unwrap());
    let parsed = OtlpConfig::parse(otlp, &|_| Some("value".to_owned()));
    assert!(parsed.is_ok(), "{otlp}{}", parsed.err().unwrap());
    let catalog = blocks("docs/formats.md", "yaml").pop().unwrap();
    assert!(with_file("c.yaml", &catalog, |path| load(&[path], LoadOptions::default()).is_ok()), "{catalog}");
}

#[test]
fn what_is_printed_is_valid() {
    let files = Files::new();
    files.write("tools.json", TOOLS);
    files.write("queries.jsonl", r#"{"id": "1", "query": "open an issue", "relevant": ["create_issue"]}"#);
    let eval = ["bench", "eval", "--catalog", "tools.json", "--queries", "queries.jsonl", "--format", "json"];
    let printed: Value = serde_json::from_str(&files.run(&eval).stdout).unwrap();
    for name in ["eval", "output"] {
        assert!(schema(name).is_valid(&printed), "{name}");
    }
    for (path, wrong) in [("/kind", json!("eval")), ("/evaluations", json!([])), ("/schema_version", json!("1"))] {
        let mut changed = printed.clone();
        *changed.pointer_mut(path).unwrap() = wrong;
        assert!(!schema("eval").is_valid(&changed), "{path}");
    }
    files.write(
        "first.sh",
        r#"read -r line; echo '{"ok":true,"name":"one","version":"1"}'; read -r line; echo '{"id":"a1"}'; read -r line; echo '{"id":"a2","choice":null}'"#,
    );
    let choose = ["--choose", "one=sh first.sh", "--choose-as", "openai", "--record", "answers.jsonl"];
    let run = files.run(&[&eval[..], &choose].concat());
    let chosen: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.shown()));
    let errors: Vec<String> = schema("eval").iter_errors(&chosen).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    for (path, wrong) in [
        ("/choices/0/facts/counts/shown/none", json!(-1)),
        ("/choices/0/facts/right/queries", json!("1")),
        ("/choices/0/cards", json!(0)),
    ] {
        let mut changed = chosen.clone();
        *changed.pointer_mut(path).unwrap() = wrong;
        assert!(!schema("eval").is_valid(&changed), "{path}");
    }
    let answers = fs::read_to_string(files.path("answers.jsonl")).unwrap();
    assert_eq!(answers.lines().count(), 2);
    for line in answers.lines() {
        let faults = faults(&schema("choice"), &serde_json::from_str(line).unwrap(), &[]);
        assert!(faults.is_empty(), "{line}: {}", faults.join("\n"));
    }
    let init = files.run(&["bench", "init", "gate", "--catalog", "tools.json", "--queries", "queries.jsonl"]);
    assert_eq!((init.code, files.run(&["bench", "run", "--root", "gate"]).code), (0, 0), "{}", init.shown());
    let results = json_file(&files.path("gate/results.json"));
    let of_results = schema("workspace-results");
    assert!(of_results.is_valid(&results), "{results}");
    for (path, wrong) in [
        ("/schema_version", json!(2)),
        ("/inputs_sha256", json!("x")),
        ("/queries/1", json!("open an issue")),
        ("/evaluations", json!([])),
        ("/evaluations/0/origin", json!("imported")),
        ("/evaluations/0/facts/measures/recall@5", json!(1.0)),
        ("/evaluations/0/ranks/1/0", json!(0)),
    ] {
        let mut changed = results.clone();
        *changed.pointer_mut(path).unwrap() = wrong;
        assert!(!of_results.is_valid(&changed), "{path}");
    }
    // The gate of a new workspace is completed by the file that its first line names.
    let named = fs::read_to_string(files.path("gate/gate.toml")).unwrap();
    let named = named.lines().next().and_then(|line| line.strip_prefix("#:schema ")).unwrap().to_owned();
    assert_eq!(json_file(&files.path("gate").join(named)), json_file(&checkout().join("schemas/gate.json")));
    assert!(schema("gate").is_valid(&toml_file(&files.path("gate/gate.toml"))));

    let failed = files.run(&["catalog", "lint", "absent.json", "--format", "json"]);
    let failed: Value = serde_json::from_str(&failed.stderr).unwrap();
    assert!(schema("output").is_valid(&failed) && failed["kind"] == "error", "{failed}");
    assert!(failed["message"].as_str().unwrap().contains("absent.json"), "{failed}");
    assert!(!schema("output").is_valid(&json!({"schema_version": 1, "kind": "error"})));

    let listed = files.run(&["schema"]);
    let names: Vec<&str> = listed.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let mut committed: Vec<String> = files_in("schemas", "json")
        .iter()
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    committed.sort();
    assert_eq!(names, committed);
    for name in names {
        let text = files.run(&["schema", name]).stdout;
        assert_eq!(text, fs::read_to_string(checkout().join(format!("schemas/{name}.json"))).unwrap());
    }
    let unknown = files.run(&["schema", "gatway"]);
    assert!(
        unknown.code == 2 && unknown.stderr.contains("unknown schema `gatway`; use one of answers, audit, "),
        "{}",
        unknown.shown()
    );
}

/// Errors of a document under a schema, and the changes of it that the schema lets pass: another type in any place, and a
/// member that nothing knows in any object that is not in `free`.
fn faults(schema: &jsonschema::Validator, document: &Value, free: &[&str]) -> Vec<String> {
    let mut faults: Vec<String> =
        schema.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    let mut found = Vec::new();
    places(document, "", free, &mut found);
    for at in found {
        let passed = changed(document, &at, free).into_iter().filter(|changed| schema.is_valid(changed));
        faults.extend(passed.map(|changed| format!("{at} may be {}", changed.pointer(&at).unwrap())));
    }
    faults
}

#[test]
fn what_is_printed_is_said_in_full() {
    let files = Files::new();
    files.write("tools.json", TOOLS);
    files.write("chat.jsonl", fs::read(checkout().join("scenarios/context/outage.jsonl")).unwrap());
    files.write("beam.toml", "navigation = {beam = {width = 1, max_depth = 3}}\n");
    files.write("low.json", r#"{"chat.session": {"answer": 8}}"#);
    let picture = json!({"type": "image", "data": "AAEC", "mimeType": "image/png", "annotations": {"priority": 1}});
    let link = json!({"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain"});
    let rows: Vec<Value> = (0..500).map(|row| json!({"row": row, "state": "fine"})).collect();
    let text = json!({"type": "text", "text": Value::from(rows).to_string()});
    files.write("result.json", json!({"content": [text, picture, link], "_meta": {"took": 3}}).to_string());
    assert_eq!(files.run(&["ingest", "--events", "chat.jsonl", "--out", "chat.session"]).code, 0);
    let route = ["route", "--catalog", "tools.json"];
    let session = ["--session", "chat.session"];
    // Members that may hold anything.
    let free = ["about", "content_annotations", "result_members"];
    let issues = files.run(&[&route[..], &["issues", "--format", "json"]].concat());
    let issues: Value = serde_json::from_str(&issues.stdout).unwrap();
    let [first, second] = [0, 1].map(|at| issues["choices"][at]["card"]["id"].as_str().unwrap());
    for (name, kind, command) in [
        ("output", "route", [&route[..], &["open an issue for the letter"]].concat()),
        ("output", "route", [&route[..], &["--pin", second, "--called", first, "issues"]].concat()),
        ("output", "route", [&route[..], &["--config", "beam.toml", "open an issue"]].concat()),
        ("output", "route path", [&route[..], &["--path", "/"]].concat()),
        ("output", "stats", [&["stats"], &session[..], &["--budget", "900", "--price", "3"]].concat()),
        ("output", "stats", [&["stats"], &session[..], &["--phase", "route"]].concat()),
        ("output", "firewall", vec!["firewall", "result.json", "--original-tokens"]),
        ("output", "handoff", [&["handoff"], &session[..], &["--budget", "600"]].concat()),
        (
            "output",
            "budget-check",
            [&["budget-check"], &session[..], &["--max-tokens", "9", "--price", "3", "--phase", "call"]].concat(),
        ),
        (
            "output",
            "budget-check",
            [&["budget-check"], &session[..], &["--max-tokens", "9", "--ratchet", "low.json", "--breakdown"]].concat(),
        ),
        ("output", "inspect", [&["inspect"], &session[..], &["--prompts"]].concat()),
        (
            "output",
            "inspect",
            [&["inspect"], &session[..], &["--catalog", "tools.json", "--route-query", "open an issue"]].concat(),
        ),
        ("output", "schema", vec!["schema"]),
        ("graph", "print-tree", vec!["print-tree", "--catalog", "tools.json"]),
    ] {
        let run = files.run(&[&command[..], &["--format", "json"]].concat());
        let printed: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.shown()));
        assert_eq!(printed["kind"], kind);
        let faults = faults(&schema(name), &printed, &free);
        assert!(faults.is_empty(), "{command:?}: {}", faults.join("\n"));
    }
    // A session with artifacts is a session file.
    let session = schema("session");
    let errors: Vec<String> =
        session.iter_errors(&json_file(&files.path("chat.session"))).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

/// The document of the HTTP API as a schema of one of its components.
fn component(name: &str) -> jsonschema::Validator {
    let document: Value = serde_json::from_str(contextweaver_api::OPENAPI).unwrap();
    let schema = json!({"$ref": format!("#/components/schemas/{name}"), "components": document["components"]});
    jsonschema::draft202012::new(&schema).unwrap()
}

#[test]
fn what_is_answered_over_http_is_said_in_full() {
    let document: Value = serde_json::from_str(contextweaver_api::OPENAPI).unwrap();
    let engines = Engines::new(None, RoutingConfig::default(), ContextConfig::default());
    let rows: Vec<Value> = (0..500).map(|row| json!({"row": row, "state": "fine"})).collect();
    let rows = Value::from(rows);
    let tools: Value = serde_json::from_str(TOOLS).unwrap();
    let call = json!([{"id": "c1", "type": "function", "function": {"name": "rows", "arguments": "{}"}}]);
    let conversation = json!([
        {"role": "user", "content": "show the rows"},
        {"role": "assistant", "tool_calls": call},
        {"role": "tool", "tool_call_id": "c1", "content": rows.to_string()},
    ]);
    let mut asked: Vec<(String, Value)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(path, _)| path.starts_with("/v1/"))
        .map(|(path, item)| {
            let media = &item["post"]["requestBody"]["content"]["application/json"];
            (path.clone(), media["examples"]["one"]["value"].clone())
        })
        .collect();
    asked.extend(
        [
            ("/v1/compact", json!({"result": rows, "original_tokens": true})),
            ("/v1/compile", json!({"conversation": conversation, "budget": 200})),
            ("/v1/handoff", json!({"conversation": conversation})),
            ("/v1/route", json!({"catalog": tools, "query": "open an issue", "as": "gemini"})),
            ("/v1/view", json!({"content": rows, "selector": "rows:0..", "max_bytes": 500})),
        ]
        .map(|(path, body)| (path.to_owned(), body)),
    );
    // Members that may hold anything, or names that are data.
    let free = ["about", "facts", "names", "tools"];
    for (path, body) in asked {
        let operation = Engines::at(&path).unwrap();
        let answer = engines.answer(operation, body.to_string().as_bytes()).unwrap();
        let response = &document["paths"][&path]["post"]["responses"]["200"]["content"]["application/json"]["schema"];
        let one = response["oneOf"].as_array().map_or(vec![response], |several| several.iter().collect());
        let names = one.iter().map(|one| one["$ref"].as_str().unwrap().rsplit('/').next().unwrap());
        let fitting: Vec<&str> = names.filter(|name| component(name).is_valid(&answer)).collect();
        assert_eq!(fitting.len(), 1, "{path}: {answer}");
        // The facts of a summary are a list of texts and no measurement.
        let free: Vec<&str> = free.into_iter().filter(|name| path == "/v1/evaluate" || *name != "facts").collect();
        let faults = faults(&component(fitting[0]), &answer, &free);
        assert!(faults.is_empty(), "{path}: {}", faults.join("\n"));
    }
    let problem = engines.answer(Engines::at("/v1/view").unwrap(), b"{}").unwrap_err();
    let problem = contextweaver_api::Problem::document(&problem.message);
    assert_eq!(faults(&component("Error"), &problem, &[]), Vec::<String>::new());
}

#[test]
fn commands_print_what_the_document_of_the_api_says() {
    let output = json_file(&checkout().join("schemas/output.json"));
    let document: Value = serde_json::from_str(contextweaver_api::OPENAPI).unwrap();
    let components = &document["components"]["schemas"];
    let here: Value =
        serde_json::from_str(&components.to_string().replace("#/components/schemas/", "#/$defs/")).unwrap();
    let mut compared = 0;
    for (name, own) in output["$defs"].as_object().unwrap() {
        if let Some(theirs) = here.get(name) {
            assert_eq!(own, theirs, "{name}");
            compared += 1;
        }
    }
    assert!(compared > 15, "{compared}");
    // `stats` prints the account that `/v1/compile` gives, and says what was asked for beside it.
    let mut stats = output["$defs"]["Stats"]["properties"].clone();
    for own in ["schema_version", "kind", "cost"] {
        stats.as_object_mut().unwrap().shift_remove(own).unwrap();
    }
    assert_eq!(stats, here["BuildStats"]["properties"]);
}

#[test]
fn the_files_of_a_gateway_are_valid_line_by_line() {
    let files = crate::mcp::files();
    let mut config = json_file(&files.path("gateway.json"));
    config["diagnostics"] = "events.jsonl".into();
    config["audit"] = json!({"file": "audit.jsonl"});
    config["policy"] = json!({"rules": [{"action": "deny", "tool": "notes:find*"}]});
    files.write("gateway.json", config.to_string());
    let calls = [
        json!({"name": "tool_browse", "arguments": {"query": "read a note"}}),
        json!({"name": "tool_browse", "arguments": {"path": "/nowhere"}}),
        json!({"name": "tool_execute", "arguments": {"tool_id": "notes:read", "args": {}, "dry_run": true}}),
        json!({"name": "tool_execute", "arguments": {"tool_id": "notes:read", "args": {"more": 1}}}),
        json!({"name": "tool_execute", "arguments": {"tool_id": "notes:find.all", "args": {}}}),
        json!({"name": "tool_view", "arguments": {"handle": "none", "selector": "head:5"}}),
    ];
    files.converse(&["mcp", "serve", "--config", "gateway.json"], &calls);
    for (name, file, fewest) in [("events", "events.jsonl", calls.len() + 1), ("audit", "audit.jsonl", calls.len() + 2)]
    {
        let (schema, text) = (schema(name), fs::read_to_string(files.path(file)).unwrap());
        assert!(text.lines().count() >= fewest, "{file}: {text}");
        for line in text.lines() {
            let faults = faults(&schema, &serde_json::from_str(line).unwrap(), &[]);
            assert!(faults.is_empty(), "{file}: {line}: {}", faults.join("\n"));
        }
    }
    // What does not belong together, which no type tells.
    let events = fs::read_to_string(files.path("events.jsonl")).unwrap();
    let (events_schema, audit_schema) = (schema("events"), schema("audit"));
    let failed = events.lines().find(|line| line.contains("browse.failed")).unwrap();
    for (from, to) in [
        ("browse.failed", "browse.completed"),
        ("browse.failed", "catalog.loaded"),
        ("browse.failed", "browse.begun"),
        ("PATH_NOT_FOUND", "PATH_LOST"),
        ("\"success\":false", "\"success\":true"),
        ("\"version\":1", "\"version\":2"),
        ("+00:00", "Z"),
    ] {
        let line = failed.replacen(from, to, 1);
        assert!(line != failed && !events_schema.is_valid(&serde_json::from_str(&line).unwrap()), "{line}");
    }
    let audit = fs::read_to_string(files.path("audit.jsonl")).unwrap();
    let refused = audit.lines().find(|line| line.contains("POLICY_DENIED")).unwrap();
    for (from, to) in [
        ("POLICY_DENIED", "DENIED"),
        ("\"code\":\"POLICY_DENIED\",", ""),
        ("\"decision\":\"refuse\",", ""),
        ("decided", "ended"),
        ("refuse", "refused"),
        ("\"version\":1", "\"version\":2"),
    ] {
        let line = refused.replacen(from, to, 1);
        assert!(line != refused && !audit_schema.is_valid(&serde_json::from_str(&line).unwrap()), "{line}");
    }
}

/// A kind of file: its schema, examples that are valid, and whether the parser takes a document.
struct Kind {
    schema: &'static str,
    examples: Vec<Value>,
    parses: fn(&Value) -> bool,
    /// Members below which a document may hold anything.
    free: &'static [&'static str],
}

fn toml_text(value: &Value) -> Option<String> {
    toml::to_string(value).ok()
}

/// Writes a document to a folder of its own, and looks what comes of it.
fn with_file(name: &str, text: &str, look: impl FnOnce(&Path) -> bool) -> bool {
    let files = Files::new();
    look(&files.write(name, text))
}

fn gateway(value: &Value) -> bool {
    GatewayConfig::parse(&value.to_string(), Path::new("/conf"), &|_| Some("value".to_owned())).is_ok()
}

fn routing(value: &Value) -> bool {
    let parsed = toml_text(value).and_then(|text| toml::from_str::<RoutingConfig>(&text).ok());
    parsed.is_some_and(|config| config.validate().is_ok())
}

fn context(value: &Value) -> bool {
    toml_text(value).is_some_and(|text| ContextConfig::from_toml(&text).is_ok())
}

const ENGINES: &str =
    "[[engine]]\nname = \"default\"\nanalysis = \"a\"\n[[engine]]\nname = \"bm25\"\nanalysis = \"b\"\n";

fn matrix(engines: &str, scenario: Option<&str>) -> bool {
    let files = Files::new();
    files.write("engines.toml", engines);
    if let Some(scenario) = scenario {
        files.write("one.toml", scenario);
    }
    Matrix::load(&files.path("")).is_ok()
}

/// A context scenario with this table.
fn way(name: &str, table: Value) -> Value {
    let mut scenario = json!({"analysis": "a", "origin": "public", "phase": "route", "query": "q", "required": []});
    scenario[name] = table;
    scenario
}

fn query(value: &Value) -> bool {
    let tools = Source { path: Path::new("tools"), bytes: TOOLS.as_bytes() };
    let line = value.to_string();
    let queries = Source { path: Path::new("queries"), bytes: line.as_bytes() };
    Collection::from_bytes("test", Origin::Embedded, tools, queries).is_ok()
}

fn kinds() -> Vec<Kind> {
    let results = json_file(&checkout().join("scorecard/results/scaling.json"));
    vec![
        Kind {
            schema: "gateway",
            examples: vec![
                json!({
                    "mode": "proxy", "name": "tools", "top_k": 5, "cache_stable": true, "cards": "lines",
                    "structured": "off", "tolerant_args": true, "diagnostics": "events.jsonl", "media_bytes": 5,
                    "audit": {"file": "audit.jsonl", "on_failure": "warn", "sync": true},
                    "otlp": {"endpoint": "http://127.0.0.1:4318", "headers": {"a": "b"}, "service_name": "g",
                        "attributes": {"c": "d"}, "traces": true, "metrics": false, "interval_seconds": 5.5, "sample": 0.5},
                    "feedback": "learned.jsonl", "price": {"per_million_tokens": 2.5, "currency": "EUR"},
                    "upstreams": {
                        "a": {
                            "type": "stdio", "command": "x", "args": ["-y"], "env": {"K": "v"}, "cwd": "d",
                            "namespace": "n", "required": true, "include_tools": ["a*"], "exclude_tools": ["b"],
                            "timeout": 5.5, "era": "legacy", "inherit_env": "safe"
                        },
                        "b": {"url": "http://h/mcp", "headers": {"A": "${env:B}"}},
                        "c": {"command": "x", "sandbox": {"network": true, "read": ["/r"], "write": ["w"],
                            "folder": "f", "memory": "64MiB", "processes": 64}},
                        "d": {"command": "x", "sandbox": true},
                        "e": {"url": "http://h/mcp", "credentials": {"passthrough": {"issuer": "https://i", "audience": "e"}}},
                        "f": {"url": "http://h/mcp", "credentials": {"exchange": {"token_endpoint": "https://i/token",
                            "client_id": "c", "client_secret": "${env:B}", "client_authentication": "post", "audience": "f",
                            "resource": "https://f/mcp", "scope": "a b"}}},
                        "g": {"url": "http://h/mcp", "credentials": {"static": {"A": "${env:B}"}}}
                    },
                    "startup": {"mode": "degraded", "upstream_timeout_seconds": 3.0, "list_cache": "lists"}, "deadline_seconds": 90.5,
                    "retry": {"max_attempts": 2},
                    "routing": {"k1": 2.0, "fields": {"name": {"weight": 2.0}}, "navigation": "flat"},
                    "firewall": {"threshold_chars": 100, "secrets": "redact"},
                    "artifacts": {"redact_secrets": true, "path": "kept"},
                    "policy": {
                        "default": "deny", "rules": [{"action": "allow", "tool": "x*", "tags": ["t"]}],
                        "tags": {"t": ["n:*"]}, "read_only": ["b:*"],
                        "tools": {"n:x": {"sensitivity": "high", "rate_limit": 3, "requires_approval": true}}
                    },
                    "http": {"listen": "127.0.0.1:8080", "max_sessions": 4, "allowed_hosts": ["h"],
                        "max_sessions_per_caller": 2, "max_requests_per_caller": 9, "max_connections_per_address": 8,
                        "session_memory_bytes": 1000, "sessions_memory_bytes": 4000, "max_bytes_in_flight": 16777216,
                        "oauth": {"issuer": "https://i", "resource": "https://r/mcp", "audience": "a", "jwks_url": "https://i/k",
                            "scopes": [{"scope": "all"}], "algorithms": ["RS256"], "leeway_seconds": 5.5}}
                }),
                json!({"durations": true, "work": {"seconds": 5.5, "steps": 1000, "bytes": 1000},
                    "upstreams": {"h": {"documents": "manual"}, "i": {"database": "shop.sqlite", "timeout": 5.5}}}),
                json!({"catalog": "tools.json", "answers": "answers.json", "state": {"url": "redis://h:1/0", "prefix": "p"},
                    "artifacts": {"s3": {"bucket": "b", "prefix": "p", "region": "r", "endpoint": "http://h", "access_key_id": "${env:B}",
                        "secret_access_key": "${env:B}"}}, "sandbox": {"memory": "2GiB"}, "schemas": {}, "sanitize": {}, "cache": {}, "pins": {}, "rate_limits": {}}),
            ],
            parses: gateway,
            free: &[],
        },
        Kind {
            schema: "answers",
            examples: vec![json!({
                "tools": {
                    "a:b#00000000": {"content": [
                        {"type": "text", "text": "t", "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "l"},
                            "_meta": {"k": 1}},
                        {"type": "image", "data": "AAEC", "mimeType": "image/png"},
                        {"type": "audio", "data": "AAEC", "mimeType": "audio/wav"},
                        {"type": "resource", "resource": {"uri": "u:1", "blob": "AAEC", "mimeType": "m"}},
                        {"type": "resource_link", "uri": "u:1", "name": "n", "title": "t", "description": "d",
                            "mimeType": "m", "size": 1,
                            "icons": [{"src": "u:1", "mimeType": "m", "sizes": ["any"], "theme": "dark"}]},
                    ], "structuredContent": {"k": 1}, "isError": true, "_meta": {"k": 1}},
                    "c": {"when": [{"arguments": {"k": 1}, "result": {"content": []}}], "otherwise": {"content": []}}
                },
                "resources": {"u:1": {"contents": [{"uri": "u:1", "text": "t", "mimeType": "m", "_meta": {"k": 1}}], "_meta": {}}},
                "prompts": {"p": {"description": "d", "messages": [
                    {"role": "assistant", "content": {"type": "text", "text": "t"}}], "_meta": {}}}
            })],
            parses: |value| Answers::parse(&value.to_string()).is_ok(),
            free: &["_meta", "arguments", "structuredContent"],
        },
        Kind {
            schema: "callers",
            examples: vec![json!({"callers": [
                {"name": "a", "token": "${env:A}", "max_requests_per_minute": 60, "max_requests": 4, "body_limit_bytes": 1000,
                    "metrics": true},
                {"name": "b", "token": "t", "token_file": null}
            ]})],
            parses: |value| {
                CallersConfig::parse(&value.to_string(), Path::new(""), &|name| Some(name.to_owned())).is_ok()
            },
            free: &[],
        },
        Kind {
            schema: "routing",
            examples: vec![
                json!({"scorer": "bm25", "k1": 1.0, "b": 0.5, "top_k": 3, "copies": "together", "navigation": "exact",
                    "name": {"share": 1.0}, "fields": {"tags": {"weight": 0.5, "b": 0.1}}, "tree": {"max_children": 9},
                    "model": {"weight": 0.1}, "feedback": {"half_life": 10.0, "most": 0.5}}),
                json!({"navigation": {"beam": {"width": 2, "max_depth": 3}}}),
            ],
            parses: routing,
            free: &[],
        },
        Kind {
            schema: "context",
            examples: vec![
                json!({"estimator": "chars/4", "budgets": {"answer": 9}, "policy": {"max_items_per_kind": 3,
                "kinds": {"route": ["user_turn"]}, "sensitivity_floor": "restricted", "sensitivity_action": "redact"},
                "scoring": {"recency": 0.1, "priority": {"policy": 0.5}}, "dedup": {"threshold": 0.5},
                "firewall": {"summary_tokens": 40}, "memory": {"max_episodes": 2}, "render": {"headings": "always"},
                "hooks": {"redactor": {"command": ["mask", "-l"], "timeout_ms": 5, "max_bytes": 900, "required": true},
                    "summarizer": {"url": "http://127.0.0.1:1/"}}}),
            ],
            parses: context,
            free: &[],
        },
        Kind {
            schema: "engines",
            examples: vec![json!({"engine": [
                {"name": "default", "analysis": "a", "configuration": {"k1": 2.0}},
                {"name": "bm25", "analysis": "b", "encoder": "minilm"}
            ], "process": [{"name": "x", "analysis": "a", "folder": "x", "version": ["x"], "install": "i", "run": ["x"],
                "mcp": {"tool": "t", "argument": "a", "ids": "/ids"}, "limits": {"load_s": 1}}],
                "context": [{"name": "x", "analysis": "a", "folder": "x", "version": ["x"], "install": "i", "run": ["x"],
                "limits": {"load_s": 1}}]})],
            parses: |value| toml_text(value).is_some_and(|text| matrix(&text, None)),
            free: &[],
        },
        Kind {
            schema: "scenario",
            examples: vec![json!({"analysis": "a", "origin": "public", "collections": ["x"], "engines": ["default"],
                "tokens": true, "growth": [{"grades": ["mixed"], "sizes": [50]}]})],
            parses: |value| toml_text(value).is_some_and(|text| matrix(ENGINES, Some(&text))),
            free: &[],
        },
        Kind {
            schema: "context-scenario",
            examples: vec![
                json!({"analysis": "a", "origin": "embedded", "phase": "answer", "query": "q", "budget": 100,
                "events": "x.jsonl", "catalog": "workbench", "required": ["e1"], "forbidden": ["f"],
                "fact": [{"label": "l", "value": "v", "item": "e1"}],
                "question": [{"item": "e1", "asks": "cause", "question": "q", "answer": "a"}]}),
                way(
                    "memory",
                    json!({"session": [{"events": "y.jsonl", "day": "2026-11-24"}], "as_of": "2026-11-25",
                    "min_sessions": 1, "tokens": 200, "kept": "file"}),
                ),
                way("handoff", json!({"before": "e1", "budget": 200, "query": "q"})),
                way("envelopes", json!({"results": ["result:c1"]})),
                way(
                    "hooks",
                    json!({"summarizer": {"lines_with": "!"}, "token_counter": {"chars_per_token": 3},
                    "redactor": {"digits": 6}}),
                ),
            ],
            parses: |value| {
                let text = toml_text(value);
                text.is_some_and(|text| ContextScenario::parse(Path::new("x.toml"), text, Path::new("")).is_ok())
            },
            free: &["config"],
        },
        Kind {
            schema: "gateway-scenario",
            examples: vec![json!({"analysis": "a", "catalog": "workbench", "server": [{"name": "s", "tools": "[]"}],
            "step": [
                {"do": "browse", "query": "q", "shelf": "prompts", "then": {"expect": ["x"], "at_most": 4}},
                {"do": "execute", "tool": "s:t", "args": "{}", "dry_run": false, "answer": {"text": "x"}},
                {"do": "execute", "tool": "s:t", "answer": {"generated": {"kind": "csv", "bytes": 9}}},
                {"do": "read", "resource": "r", "answer": "timeout"},
                {"do": "get", "prompt": "p", "answer": {"rpc": {"code": -1, "message": "m"}}},
                {"do": "view", "selector": "head:5", "handle": "h"}
            ]})],
            parses: |value| {
                let text = toml_text(value);
                text.is_some_and(|text| with_file("x.toml", &text, |path| GatewayScenario::load(path).is_ok()))
            },
            free: &[],
        },
        Kind {
            schema: "collection",
            examples: vec![
                toml_file(&checkout().join("gold/household/collection.toml")),
                toml_file(&checkout().join("gold/library/collection.toml")),
            ],
            parses: |value| toml_text(value).is_some_and(|text| text.parse::<About>().is_ok()),
            free: &[],
        },
        Kind {
            schema: "gate",
            examples: vec![json!({"catalog": "c.json", "queries": "q.jsonl", "engines": ["default"], "snapshot": "s",
                "least": {"recall@5": 0.5}, "tokens": {"most": 9}, "change": {"margin": 0.5, "fewest_queries": 9}})],
            parses: |value| toml_text(value).is_some_and(|text| OwnWorkspace::parse(Path::new("x"), &text).is_ok()),
            free: &[],
        },
        Kind {
            schema: "query",
            examples: vec![
                json!({"id": "1", "query": "q", "relevant": ["create_issue"], "lang": "en", "register": "plain",
                "equivalent": {"create_issue": ["list_issues"]}, "category": "c"}),
            ],
            parses: query,
            free: &[],
        },
        Kind {
            schema: "catalog",
            examples: vec![json!({"schema": 1, "items": [{"kind": "tool", "name": "rollback", "namespace": "deploy",
                "description": "d", "tags": ["t"], "args_schema": {"type": "object"}, "safety": "destructive",
                "side_effects": true, "cost_hint": 0.5, "provides": ["p"], "metadata": {"k": 1}}]})],
            parses: |value| {
                with_file("c.json", &value.to_string(), |path| load(&[path], LoadOptions::default()).is_ok())
            },
            free: &["args_schema", "metadata"],
        },
        Kind {
            schema: "audit",
            examples: vec![
                json!({"approver": "client", "arguments": "0".repeat(64), "caller": "c", "code": "POLICY_DENIED",
                    "credentials": "upstreams.s.credentials", "decision": "refuse", "event": "decided", "guard": "policy",
                    "item": "s:t#00000000", "operation": "tool_execute", "prev": "0".repeat(64), "profile": "p",
                    "rule": "policy.rules[0]", "seq": 2, "server": "s", "session": "0".repeat(32),
                    "time": "2026-11-27T12:00:00.000000+00:00", "version": 1}),
                json!({"call": 2, "caller": "c", "code": "OK", "event": "ended", "ms": 1.5, "operation": "tools/call",
                    "prev": "0".repeat(64), "seq": 3, "session": "0".repeat(32),
                    "time": "2026-11-27T12:00:00.000000+00:00", "version": 1}),
                json!({"config": "0".repeat(64), "event": "reloaded", "prev": "0".repeat(64), "seq": 5,
                    "time": "2026-11-27T12:00:00.000000+00:00", "version": 1}),
                json!({"after": "0".repeat(64), "event": "started", "lost": 3, "prev": "0".repeat(64), "seq": 4,
                    "time": "2026-11-27T12:00:00.000000+00:00", "torn": true, "version": 1}),
            ],
            parses: |value| AuditLine::deserialize(value).is_ok(),
            free: &[],
        },
        Kind {
            schema: "choice",
            examples: vec![
                json!({"kind": "chooser", "schema_version": 1, "chooser": "c", "program": "p", "version": "1",
                    "inputs_sha256": "0".repeat(64), "cards": 10, "as": "openai"}),
                json!({"kind": "choice", "query": "q1", "prompt": "p", "shown": ["s:t#00000000"],
                    "asked_sha256": "0".repeat(64), "choice": "s:t", "us": 5}),
            ],
            parses: |value| Line::deserialize(value).is_ok(),
            free: &[],
        },
        Kind {
            schema: "session",
            examples: vec![json!({"format": "contextweaver session", "schema": 1, "source": "lines", "events": [
                {"id": "u1", "kind": "user_turn", "text": "hello"}]})],
            parses: |value| Session::parse(value.to_string().as_bytes(), Path::new("s.json")).is_ok(),
            free: &["metadata"],
        },
        Kind {
            schema: "memory",
            examples: vec![json!({"format": "contextweaver memory", "schema": 1,
                "rules": {"as_of": "2026-11-24", "min_sessions": 2, "similarity": 60, "forget_after": 90},
                "sessions": [{"sha256": "a1", "name": "monday", "day": "2026-11-23", "events": 3, "left_out": 0,
                    "begins": "0a1b2c3d"}],
                "facts": [{"key": "zone", "standing": "in_force", "agreement": "agreed", "count": 1, "weight": 977,
                    "values": [{"value": "UTC", "seen": [
                        {"session": "a1", "about": "zone", "said": "UTC", "events": ["u1"]}]}]}],
                "episodes": [{"id": "monday", "standing": "faded", "summary": "s", "day": "2026-11-23", "seen": []}]})],
            parses: |value| MemoryFile::parse(value.to_string().as_bytes(), Path::new("m.json")).is_ok(),
            free: &[],
        },
        Kind {
            schema: "results",
            examples: vec![results],
            // As the file is written: one record a line.
            parses: |value| {
                let mut text = json!({});
                for (name, member) in value.as_object().into_iter().flatten().filter(|(name, _)| *name != "records") {
                    text[name] = member.clone();
                }
                let records: Vec<String> =
                    value["records"].as_array().into_iter().flatten().map(ToString::to_string).collect();
                let head = text.to_string();
                let text = format!("{},\"records\":[\n{}\n]}}\n", head.trim_end_matches('}'), records.join(",\n"));
                Results::<Value>::from_json("scaling", &text).is_ok()
            },
            free: &["measured"],
        },
        Kind {
            schema: "timings",
            examples: vec![json_file(&checkout().join("scorecard/timings/timings.json"))],
            parses: |value| {
                let tables: Vec<String> =
                    value["tables"].as_array().into_iter().flatten().map(ToString::to_string).collect();
                let mut head = value.clone();
                head.as_object_mut().map(|head| head.shift_remove("tables"));
                let text =
                    format!("{},\"tables\":[\n{}\n]}}\n", head.to_string().trim_end_matches('}'), tables.join(",\n"));
                manifest::from_json(&text).is_ok()
            },
            free: &[],
        },
    ]
}

/// Every place of a document, as JSON pointers, but what is below a member that may hold anything.
fn places(value: &Value, at: &str, free: &[&str], found: &mut Vec<String>) {
    found.push(at.to_owned());
    if free.iter().any(|free| at.ends_with(&format!("/{free}"))) {
        return;
    }
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{at}/{name}"), free, found);
            });
        }
        Value::Array(items) => {
            // The first of several stands for all, where they are many.
            items.iter().enumerate().take(6).for_each(|(number, value)| {
                places(value, &format!("{at}/{number}"), free, found);
            });
        }
        _ => {}
    }
}

/// The document with another type in a place, and, for an object, with a member that nothing knows.
fn changed(value: &Value, at: &str, free: &[&str]) -> Vec<Value> {
    let mut all = Vec::new();
    let place = value.pointer(at).unwrap();
    let other = if place.is_array() || place.is_object() { json!("x") } else { json!([]) };
    let is_free = free.iter().any(|free| at.ends_with(&format!("/{free}")));
    let unknown = place.is_object().then(|| {
        let mut more = place.clone();
        more["zz-unknown"] = json!("x");
        more
    });
    for replacement in [Some(other), unknown.filter(|_| !is_free)].into_iter().flatten() {
        let mut document = value.clone();
        *document.pointer_mut(at).unwrap() = replacement;
        all.push(document);
    }
    all
}

#[test]
fn schema_and_parser_refuse_the_same_changes() {
    let mut differing = Vec::new();
    let mut compared = 0;
    for Kind { schema: name, examples, parses, free } in kinds() {
        let schema = schema(name);
        let mut refused = 0;
        for example in &examples {
            let (valid, parsed) = (schema.is_valid(example), parses(example));
            if !valid || !parsed {
                differing.push(format!("{name}: schema {valid}, parser {parsed}: {example}"));
            }
            let mut found = Vec::new();
            places(example, "", free, &mut found);
            for at in found {
                for document in changed(example, &at, free) {
                    let (valid, parsed) = (schema.is_valid(&document), parses(&document));
                    compared += 1;
                    refused += usize::from(!parsed);
                    if valid != parsed {
                        let value = document.pointer(&at).unwrap();
                        differing.push(format!("{name}{at}: schema {valid}, parser {parsed}: {value}"));
                    }
                }
            }
        }
        // An example in which nothing can be wrong would compare nothing.
        if refused <= 3 {
            differing.push(format!("{name}: {refused} changes are refused"));
        }
    }
    assert!(compared > 300, "{compared}");
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

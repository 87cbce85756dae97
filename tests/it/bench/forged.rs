//! Whoever changes a committed fact or page is found out, or what he changed is named as not computed.
//!
//! A small checkout has records of every chapter. It is measured once with its public data and once without; then files
//! are changed one at a time, clumsily (a byte of a file) and well (a fact, with the digest and the pages made to fit), and
//! compared with what was measured.

use std::fs;
use std::path::Path;

use serde_json::Value;

use contextweaver_bench::chapter::Recordings;
use contextweaver_bench::eval::engine::{EncoderChoice, RouterEngine};
use contextweaver_bench::eval::rng::Rng;
use contextweaver_bench::eval::tables::Tables;
use contextweaver_bench::eval::version;
use contextweaver_bench::eval::workspace::{Bench, Scope, Workspace};
use contextweaver_bench::results::{Day, Results, State};
use contextweaver_bench::scorecard::check::{Verdict, compare};
use contextweaver_bench::scorecard::{self, Measured, pages};

use crate::support::Files;

/// Mutations of each kind in each of the two checkouts.
const MUTATIONS: usize = 150;

const ENGINES: &str = r#"
[[engine]]
name = "default"
analysis = "a"

[[engine]]
name = "lexical"
analysis = "a"
configuration = { semantic = 0.0 }

[[engine]]
name = "best"
analysis = "a"
encoder = "minilm"

[[engine]]
name = "bm25"
analysis = "a"
configuration = { scorer = "bm25" }
"#;

const TOOLS: &str = r#"[
{"name": "create_issue", "description": "Open a new ticket in a repository", "server": "forge"},
{"name": "list_issues", "description": "List the tickets of a repository", "server": "forge"},
{"name": "send_mail", "description": "Send a letter by electronic mail", "server": "mail"},
{"name": "get_forecast", "description": "Returns the weather forecast for a city", "server": "weather"},
{"name": "play_music", "description": "Play a song on a speaker", "server": "home"},
{"name": "lock_door", "description": "Lock or unlock a door of the house", "server": "home"}
]"#;

/// A collection of six tools and fourteen queries, two of which nothing answers.
fn collection(files: &Files, folder: &str) {
    let asked = [
        ("open a ticket about the login bug", "create_issue"),
        ("which tickets are there", "list_issues"),
        ("write a letter to Anna", "send_mail"),
        ("will it rain tomorrow", "get_forecast"),
        ("put some jazz on", "play_music"),
        ("close the front door", "lock_door"),
        ("a song please", "play_music"),
        ("unlock the house", "lock_door"),
        ("new issue", "create_issue"),
        ("electronic mail", "send_mail"),
        ("forecast for Porto", "get_forecast"),
        ("tickets of this repository", "list_issues"),
        ("order a pizza", ""),
        ("water the plants", ""),
    ];
    let line = |(number, (query, tool)): (usize, (&str, &str))| {
        let relevant: Vec<&str> = Some(tool).filter(|tool| !tool.is_empty()).into_iter().collect();
        let register = ["plain", "terse"][number % 2];
        serde_json::json!({"id": number.to_string(), "query": query, "relevant": relevant, "register": register, "lang": "en"})
            .to_string()
    };
    let queries: Vec<String> = asked.into_iter().enumerate().map(line).collect();
    files.write(&format!("{folder}/catalog.json"), TOOLS);
    files.write(&format!("{folder}/queries.jsonl"), queries.join("\n") + "\n");
}

/// A checkout with a case of every chapter, of its own and public ones.
fn checkout() -> Files {
    let files = Files::new();
    files.write("scenarios/engines.toml", ENGINES);
    let engines = r#"engines = ["default", "lexical", "best", "bm25"]"#;
    files.write(
        "scenarios/own.toml",
        format!("analysis = \"a\"\norigin = \"embedded\"\ncollections = [\"small\"]\n{engines}\ntokens = true\n"),
    );
    files.write(
        "scenarios/grown.toml",
        format!(
            "analysis = \"a\"\norigin = \"embedded\"\ncollections = [\"small\"]\n{engines}\n\
             [[growth]]\ngrades = [\"mixed\"]\nsizes = [20, 50]\n"
        ),
    );
    files.write(
        "scenarios/public.toml",
        format!("analysis = \"a\"\norigin = \"public\"\ncollections = [\"elsewhere\"]\n{engines}\ntokens = true\n"),
    );
    collection(&files, "gold/small");
    collection(&files, "public/elsewhere");
    assert_eq!(files.run(&["gold", "seal", "small"]).code, 0);
    let row = |n: usize| format!("{{\\\"parcel\\\": {n}, \\\"grams\\\": {}}}", n * 7 % 900);
    let rows: Vec<String> = (0..90).map(row).collect();
    let log = format!(
        "{}\n{}\n{}\n",
        r#"{"type": "user_turn", "id": "u1", "text": "How heavy is parcel 7?"}"#,
        r#"{"type": "tool_call", "id": "c1", "text": "list()", "parent_id": "u1"}"#,
        format_args!(r#"{{"type": "tool_result", "id": "r1", "text": "[{}]", "parent_id": "c1"}}"#, rows.join(", ")),
    );
    let scenario = |origin: &str| {
        format!(
            "analysis = \"a\"\norigin = \"{origin}\"\nphase = \"answer\"\nquery = \"parcel 7\"\nrequired = [\"u1\"]\n"
        )
    };
    files.write("scenarios/context/own.toml", scenario("embedded"));
    files.write("scenarios/context/own.jsonl", &log);
    files.write("scenarios/context/peer.toml", scenario("public"));
    // Public logs, catalogs and sessions lie beside the public collections.
    files.write("peer.jsonl", &log);
    files.write(
        "scenarios/gateway/ask.toml",
        "analysis = \"a\"\n[[server]]\nname = \"up\"\ntools = '[{\"name\": \"read\", \"inputSchema\": {\"type\": \"object\"}}]'\n\
         [[step]]\ndo = \"execute\"\ntool = \"up:read\"\nargs = '{}'\nanswer = { text = \"fine\" }\n",
    );
    files.write("scenarios/gateway/public.json", r#"{"catalogs": ["up"], "sessions": ["rec"]}"#);
    files.write("catalogs/up.json", r#"{"tools": [{"name": "read", "inputSchema": {"type": "object"}}]}"#);
    files.write(
        "sessions/rec.json",
        r#"{"servers": {"up": {"package": "up"}}, "calls": [{"seq": 1, "server": "up", "tool": "read", "arguments": {},
            "result": {"content": [{"type": "text", "text": "fine"}]}}]}"#,
    );
    files.write("README.md", "# R\n<!-- scorecard:begin -->\n<!-- scorecard:end -->\n");
    files
}

/// A checkout with what was measured in it; its files are those of a run.
struct Stand {
    files: Files,
    bench: Bench,
    measured: Measured,
}

impl Stand {
    fn open(files: &Files) -> Bench {
        let workspace = Workspace::find(Some(&files.path("")), Some(&files.path("public"))).unwrap();
        Bench::open(workspace, Scope::Usual).unwrap()
    }

    /// Measured with the public data, with a recording of the engine that cannot run here.
    fn new() -> Self {
        let files = checkout();
        let bench = Self::open(&files);
        let measured = Measured::of(&bench, &|_| ()).unwrap();
        let day = Day::try_from("2026-01-31".to_owned()).unwrap();
        let mut all = measured.recordings(&bench.workspace, &day).unwrap();
        let engine: &RouterEngine = bench.matrix.engine("best").unwrap();
        assert!(!engine.is_here(), "the test is of a program without the encoder");
        assert_eq!(engine.clone().with(EncoderChoice::None).config(), bench.matrix.engine("default").unwrap().config());
        let routing = all.0.get_mut("routing").unwrap();
        let recorded = routing.iter().find(|results| results.name == "default").unwrap().records.clone();
        let best = routing.iter_mut().find(|results| results.name == "best").unwrap();
        best.records = recorded;
        for record in &mut best.records {
            record.provenance.version = version::of_engine(engine).to_owned();
            record.provenance.state = State::Kept;
        }
        scorecard::write(&all, &bench.workspace).unwrap();
        let stand = Self { files, bench, measured };
        stand.render();
        stand
    }

    /// The same without the public data, after another run.
    fn without_public(self) -> Self {
        for folder in ["public/elsewhere", "catalogs", "sessions"] {
            fs::remove_dir_all(self.files.path(folder)).unwrap();
        }
        fs::remove_file(self.files.path("peer.jsonl")).unwrap();
        let Self { files, .. } = self;
        let bench = Self::open(&files);
        let measured = Measured::of(&bench, &|_| ()).unwrap();
        let day = Day::try_from("2026-02-01".to_owned()).unwrap();
        scorecard::write(&measured.recordings(&bench.workspace, &day).unwrap(), &bench.workspace).unwrap();
        let stand = Self { files, bench, measured };
        stand.render();
        stand
    }

    fn render(&self) {
        let all = scorecard::committed(&self.bench.workspace, &self.bench.matrix).unwrap();
        let tables = Tables::read(&self.bench.workspace).unwrap();
        pages::write(&pages::of(&all, &tables, &self.bench.workspace).unwrap(), &self.bench.workspace).unwrap();
    }

    fn verdict(&self) -> anyhow::Result<Verdict> {
        compare(&self.measured, &self.bench.workspace, &self.bench.matrix, Scope::Usual)
    }

    fn results(&self, name: &str) -> Results<Value> {
        let text = fs::read_to_string(self.file(name)).unwrap();
        Results::from_json(name, &text).unwrap()
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.files.path(&format!("scorecard/results/{name}.json"))
    }

    /// Writes results as a forger does who knows of the digest, and renders the pages again.
    fn forge(&self, results: &Results<Value>) {
        fs::write(self.file(&results.name), results.to_json().unwrap()).unwrap();
        if scorecard::committed(&self.bench.workspace, &self.bench.matrix).is_ok() {
            self.render();
        }
    }
}

fn snapshot(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(snapshot(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

/// Puts back what a mutation changed.
fn restore(stand: &Stand, before: &[(std::path::PathBuf, Vec<u8>)], readme: &[u8]) {
    for (path, bytes) in before {
        if fs::read(path).ok().as_ref() != Some(bytes) {
            fs::write(path, bytes).unwrap();
        }
    }
    for (path, _) in snapshot(&stand.files.path("scorecard")) {
        if !before.iter().any(|(known, _)| *known == path) {
            fs::remove_file(path).unwrap();
        }
    }
    fs::write(stand.files.path("README.md"), readme).unwrap();
}

/// Whether the verdict names a record as not computed.
fn is_named(verdict: &Verdict, results: &str, case: &str) -> bool {
    verdict.kept.iter().any(|kept| kept.results == results && kept.cases.iter().any(|one| one == case))
}

/// Every place in a tree that holds a number, text, truth, nothing or an empty list.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| leaves(value, &format!("{path}/{}", key.replace('/', "~1")), found));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(at, value)| leaves(value, &format!("{path}/{at}"), found));
        }
        _ => found.push(path.to_owned()),
    }
}

/// Another value of the same kind.
fn changed(value: &Value, rng: &mut Rng) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap();
            let by = [0.1, -0.1, 0.000_1, 1.0][rng.below(4)];
            Value::from(((number + by) * 1e6).round() / 1e6)
        }
        Value::Number(number) => {
            let number = number.as_u64().unwrap();
            Value::from([number + 1, number / 10 + 1, number * 10 + 3][rng.below(3)])
        }
        Value::String(text) => Value::from(match text.as_str() {
            "better" => "worse".to_owned(),
            "worse" | "inconclusive" => "better".to_owned(),
            other => format!("{other}x"),
        }),
        Value::Bool(truth) => Value::from(!truth),
        Value::Array(_) => Value::from(vec!["x"]),
        other => match other {
            Value::Null => Value::from(1),
            kept => kept.clone(),
        },
    }
}

/// Changes one thing in results: a fact mostly, else what stands around it. Says which case, and what was done.
fn mutate(results: &mut Results<Value>, rng: &mut Rng) -> (String, String) {
    let at = rng.below(results.records.len());
    let case = results.records[at].case.clone();
    let what = match rng.below(14) {
        0 => {
            results.records.remove(at);
            "record removed".to_owned()
        }
        1 => {
            let mut copy = results.records[at].clone();
            copy.case.push('0');
            let case = copy.case.clone();
            results.records.insert(at + 1, copy);
            results.records.sort_by(|left, right| left.case.cmp(&right.case));
            return (case, "record invented".to_owned());
        }
        2 => {
            results.records[at].provenance.version.push('0');
            "version".to_owned()
        }
        3 => {
            results.records[at].provenance.inputs_sha256.replace_range(0..1, "z");
            "inputs".to_owned()
        }
        4 => {
            let state = &mut results.records[at].provenance.state;
            *state = if *state == State::Kept { State::Computed } else { State::Kept };
            "state".to_owned()
        }
        5 => {
            results.version.push('0');
            "version of the file".to_owned()
        }
        6 => {
            results.configuration.push_str("k9 = 1.0\n");
            "configuration".to_owned()
        }
        _ => {
            let mut tree = serde_json::to_value(&results.records[at].outcome).unwrap();
            let mut paths = Vec::new();
            leaves(&tree, "", &mut paths);
            let path = paths[rng.below(paths.len())].clone();
            let place = tree.pointer_mut(&path).unwrap();
            *place = changed(place, rng);
            results.records[at].outcome = serde_json::from_value(tree).unwrap();
            format!("fact {path}")
        }
    };
    (case, what)
}

/// Several hundred mutations of every file; each is refused, found, or named as not computed.
fn withstand(stand: &Stand, seed: u64) {
    let clean = stand.verdict().unwrap();
    assert!(clean.same, "{clean:#?}");
    let before = snapshot(&stand.files.path("scorecard"));
    let readme = fs::read(stand.files.path("README.md")).unwrap();
    let mut rng = Rng::new(seed);
    let names: Vec<String> = before
        .iter()
        .filter(|(path, _)| path.extension().is_some_and(|ending| ending == "json"))
        .map(|(path, _)| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names.len(), 11, "{names:?}");
    let mut passed = Vec::new();

    // Clumsily: a byte of any file, every file in turn.
    let mut files: Vec<std::path::PathBuf> = before.iter().map(|(path, _)| path.clone()).collect();
    files.push(stand.files.path("README.md"));
    for number in 0..MUTATIONS {
        let path = &files[number % files.len()];
        let mut bytes = fs::read(path).unwrap();
        let (from, to) = match path.ends_with("README.md") {
            true => {
                let text = String::from_utf8_lossy(&bytes);
                (text.find("begin -->").unwrap() + 10, text.find("<!-- scorecard:end").unwrap() - 1)
            }
            false => (0, bytes.len()),
        };
        let at = from + rng.below(to - from);
        bytes[at] = match bytes[at] {
            digit @ b'0'..=b'9' => b'0' + (digit - b'0' + 1) % 10,
            b'#' => b'%',
            _ => b'#',
        };
        fs::write(path, &bytes).unwrap();
        if stand.verdict().is_ok_and(|verdict| verdict.same) {
            passed.push(format!("byte {at} of {}", path.display()));
        }
        restore(stand, &before, &readme);
    }

    // Well: a fact or what stands around it, with digest and pages made to fit, every results file in turn.
    for number in 0..2 * MUTATIONS {
        let name = &names[number % names.len()];
        let original = stand.results(name);
        if original.records.is_empty() {
            continue;
        }
        let mut results = original.clone();
        let (case, what) = mutate(&mut results, &mut rng);
        if results == original {
            continue;
        }
        stand.forge(&results);
        let is_caught = match stand.verdict() {
            Err(_) => true,
            Ok(verdict) => !verdict.same || is_named(&verdict, name, &case),
        };
        if !is_caught {
            passed.push(format!("{name} · {case}: {what}"));
        }
        restore(stand, &before, &readme);
    }
    assert!(passed.is_empty(), "{} mutations pass: {passed:#?}", passed.len());
    assert!(stand.verdict().unwrap().same, "everything was put back");
}

fn wrong(verdict: &Verdict, results: &str) -> String {
    let own = verdict.wrong.iter().filter(|wrong| wrong.results == results);
    own.map(|wrong| format!("{}: {}", wrong.case, wrong.reason)).collect::<Vec<_>>().join("\n")
}

/// Adds `by` to every number below one of these keys.
fn raise(value: &mut Value, keys: &[&str], by: f64) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::Number(number) if keys.contains(&key.as_str()) => {
                        *value = Value::from(((number.as_f64().unwrap() + by) * 1e6).round() / 1e6);
                    }
                    value => raise(value, keys, by),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|value| raise(value, keys, by)),
        _ => {}
    }
}

fn outcome(results: &mut Results<Value>, at: usize, change: impl FnOnce(&mut Value)) {
    let mut tree = serde_json::to_value(&results.records[at].outcome).unwrap();
    change(&mut tree);
    results.records[at].outcome = serde_json::from_value(tree).unwrap();
}

#[test]
fn several_hundred_mutations_are_caught_or_named() {
    let stand = Stand::new();
    withstand(&stand, 1);
    let stand = stand.without_public();
    withstand(&stand, 2);
    the_headline_cannot_be_raised(&stand);
    the_engine_that_is_not_here_cannot_be_raised(&stand);
    the_million_tools_cannot_be_shrunk(&stand);
}

/// The rows of `meaning` with a tenth added, where their collection is not here: no sum, no difference and no other chapter
/// agrees with them.
fn the_headline_cannot_be_raised(stand: &Stand) {
    let original = stand.results("meaning");
    let mut forged = original.clone();
    let at = forged.records.iter().position(|record| record.case == "elsewhere").unwrap();
    outcome(&mut forged, at, |tree| raise(&mut tree["measured"]["default"], &["mean", "low", "high"], -0.1));
    stand.forge(&forged);
    let verdict = stand.verdict().unwrap();
    let wrong = wrong(&verdict, "meaning");
    assert!(!verdict.same && is_named(&verdict, "meaning", "elsewhere"));
    assert!(wrong.contains("is not the difference") && wrong.contains("`default` has another figure"), "{wrong}");
    stand.forge(&original);
    assert!(stand.verdict().unwrap().same);
}

/// All recall of the engine with a sentence encoder set to .99: the control, which is here, has another difference.
fn the_engine_that_is_not_here_cannot_be_raised(stand: &Stand) {
    let original = stand.results("best");
    let mut forged = original.clone();
    for at in 0..forged.records.len() {
        outcome(&mut forged, at, |tree| {
            for (measure, value) in tree["measured"]["measures"].as_object_mut().unwrap() {
                if measure.starts_with("recall") {
                    *value = serde_json::json!({"mean": 0.99, "low": 0.98, "high": 1.0});
                }
            }
        });
    }
    stand.forge(&forged);
    let verdict = stand.verdict().unwrap();
    let wrong = wrong(&verdict, "best");
    assert!(!verdict.same && forged.records.iter().all(|record| is_named(&verdict, "best", &record.case)));
    assert!(wrong.contains("what was found and lost sums to") && wrong.contains("from the control"), "{wrong}");
    stand.forge(&original);
    assert!(stand.verdict().unwrap().same);
}

/// A record of a million tools whose counters are a tenth: they fall behind those of the size before.
fn the_million_tools_cannot_be_shrunk(stand: &Stand) {
    let files = &stand.files;
    collection(files, "gold/workbench");
    assert_eq!(files.run(&["gold", "seal", "workbench"]).code, 0);
    files.write(
        "scenarios/base.toml",
        "analysis = \"a\"\norigin = \"embedded\"\ncollections = [\"workbench\"]\nengines = [\"default\"]\n",
    );
    let bench = Stand::open(files);
    let scaling = contextweaver_bench::chapters::find("scaling").unwrap();
    let measured = Measured::chapter(scaling, &bench, &|_| ()).unwrap();
    let day = Day::try_from("2026-02-01".to_owned()).unwrap();
    let mut all = measured.recordings(&bench.workspace, &day).unwrap();
    let results = &mut all.0.get_mut("scaling").unwrap()[0];
    assert_eq!(results.records.len(), 4, "the largest size is not measured without being asked for");
    let largest = results.records.iter().position(|record| record.case == "100000").unwrap();
    let mut million = results.records[largest].clone();
    million.case = "1000000".to_owned();
    million.provenance.state = State::Kept;
    results.records.push(million);
    results.records.sort_by(|left, right| left.case.cmp(&right.case));
    let at = results.records.iter().position(|record| record.case == "1000000").unwrap();
    let wrong_with = |results: &mut Results<Value>, divisor: f64| {
        let mut shrunk = results.clone();
        outcome(&mut shrunk, at, |tree| {
            for (name, value) in tree["measured"].as_object_mut().unwrap() {
                let number = value.as_f64().unwrap();
                *value = match name.as_str() {
                    "tools" => Value::from(1_000_000),
                    "queries" => value.clone(),
                    _ if value.is_f64() => Value::from((number * 10.0 / divisor * 1e6).round() / 1e6),
                    _ => Value::from((number * 10.0 / divisor) as u64),
                };
            }
        });
        scaling.wrong(&Recordings([("scaling", vec![shrunk])].into())).unwrap()
    };
    assert_eq!(wrong_with(results, 1.0), []);
    assert!(!wrong_with(results, 10.0).is_empty());
}

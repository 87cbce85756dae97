//! Whoever changes a committed fact or page is found out, or what he changed is named as not computed.
//!
//! A small checkout has records of every chapter. It is measured once with its public data and once without; then files
//! are changed one at a time, clumsily (a byte of a file) and well (a fact, with the digest and the pages made to fit), and
//! compared with what was measured.

use std::fs;
use std::path::Path;

use serde_json::Value;

use contextweaver_bench::chapter::{AnyChapter, Recordings};
use contextweaver_bench::chapters::CHAPTERS;
use contextweaver_bench::eval::engine::{EncoderChoice, RouterEngine};
use contextweaver_bench::eval::record::{Origin, Outcome};
use contextweaver_bench::eval::rng::Rng;
use contextweaver_bench::eval::tables::{self, Tables};
use contextweaver_bench::eval::version;
use contextweaver_bench::eval::workspace::{Bench, Scope, Workspace};
use contextweaver_bench::results::{Day, Results, State};
use contextweaver_bench::scorecard::cells::{Store, Work};
use contextweaver_bench::scorecard::check::{Kept, Verdict, compare};
use contextweaver_bench::scorecard::{self, Course, Measured, pages};

use crate::support::Files;

/// Mutations of each kind in each of the two checkouts.
const MUTATIONS: usize = 60;

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

const RIVALS: &str = "engine,tools,measure,value,unit\ntantivy,1000,search p50,19.2,us\n";

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
        format!("analysis = \"a\"\norigin = \"embedded\"\ncollections = [\"workbench\"]\n{engines}\ntokens = true\n"),
    );
    files.write(
        "scenarios/grown.toml",
        format!(
            "analysis = \"a\"\norigin = \"embedded\"\ncollections = [\"workbench\"]\n{engines}\n\
             [[growth]]\ngrades = [\"mixed\"]\nsizes = [20, 50]\n"
        ),
    );
    files.write(
        "scenarios/public.toml",
        format!("analysis = \"a\"\norigin = \"public\"\ncollections = [\"elsewhere\"]\n{engines}\ntokens = true\n"),
    );
    // The catalogs of growing size are made around a collection of this name.
    collection(&files, "gold/workbench");
    collection(&files, "public/elsewhere");
    assert_eq!(files.run(&["gold", "seal", "workbench"]).code, 0);
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
    let hooked = scenario("embedded") + "events = \"own.jsonl\"\n[hooks.redactor]\ndigits = 9\n";
    files.write("scenarios/context/hooked.toml", hooked);
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
    files.write("scorecard/timings/rivals.csv", RIVALS);
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
        // Without what takes minutes, the engine with the encoder.
        Bench::open(workspace, Scope::Usual).unwrap()
    }

    /// Measures what a checkout has not measured before: a catalog of a hundred thousand tools is grown once.
    fn measure(files: &Files, bench: &Bench) -> Measured {
        let store = Store::create(&files.path("cells")).unwrap();
        Measured::by(&Work::of(bench).unwrap(), Course { store: Some(&store), until: None, watch: &|_: &str| () })
            .unwrap()
    }

    /// Measured with the public data, with a recording of the engine that cannot run here.
    fn new() -> Self {
        let files = checkout();
        let bench = Self::open(&files);
        let measured = Self::measure(&files, &bench);
        let day = Day::try_from("2026-01-31".to_owned()).unwrap();
        let mut all = measured.recordings(&bench.workspace, &day).unwrap();
        let engine: &RouterEngine = bench.matrix.engine("best").unwrap();
        assert!(engine.has_encoder());
        assert_eq!(engine.clone().with(EncoderChoice::None).config(), bench.matrix.engine("default").unwrap().config());
        let routing = all.0.get_mut("routing").unwrap();
        let recorded = routing.iter().find(|results| results.name == "default").unwrap().records.clone();
        let best = routing.iter_mut().find(|results| results.name == "best").unwrap();
        best.records = recorded;
        for record in &mut best.records {
            record.provenance.version = version::of_engine(engine).to_owned();
            record.provenance.state = State::Kept;
        }
        // The largest size is kept as one grows: ten times what the size before has.
        let scaling = &mut all.0.get_mut("scaling").unwrap()[0];
        let mut million = scaling.records.iter().find(|record| record.case == "100000").unwrap().clone();
        million.case = "1000000".to_owned();
        million.provenance.state = State::Kept;
        scaling.records.push(million);
        scaling.records.sort_by(|left, right| left.case.cmp(&right.case));
        let at = scaling.records.iter().position(|record| record.case == "1000000").unwrap();
        outcome(scaling, at, |tree| scale(tree, 10.0));
        tables::accept(&bench.workspace, "rivals.csv", Some("desk")).unwrap();
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
        let measured = Self::measure(&files, &bench);
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
        self.verdict_of(Scope::Usual)
    }

    fn verdict_of(&self, scope: Scope) -> anyhow::Result<Verdict> {
        compare(&self.measured, &self.bench.workspace, &self.bench.matrix, scope)
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

/// Whether the verdict names a record as not computed, in what it prints: the case stands in the lines of its file.
fn is_named(verdict: &Verdict, results: &str, case: &str) -> bool {
    let mut is_own = false;
    verdict.summary().lines().any(|line| {
        // What is set in further goes on with the line before.
        if !line.starts_with("    ") {
            is_own = line.starts_with(&format!("  {results} "));
        }
        let list = line.split_once("): ").map_or(line, |(_, list)| list);
        is_own && list.split(',').any(|word| word.trim() == case)
    })
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
            if number == 0.0 && rng.below(3) == 0 {
                return Value::from(-0.0);
            }
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
    let what = match rng.below(18) {
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
        7 => {
            results.records[at].provenance.recorded = Day::try_from("9999-01-01".to_owned()).unwrap();
            "day".to_owned()
        }
        8 => {
            let origin = &mut results.records[at].origin;
            *origin = if *origin == Origin::Public { Origin::Embedded } else { Origin::Public };
            "origin".to_owned()
        }
        9 => {
            results.records[at].outcome = Outcome::Failed("no memory".to_owned());
            "outcome".to_owned()
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
    let names: Vec<String> = names.into_iter().filter(|name| name != "timings").collect();
    assert_eq!(names.len(), 15, "{names:?}");
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
            // What is wrong with the file as a whole is found; a record may also be named.
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
    keys_cannot_be_swapped(&stand);
    no_configuration_of_a_grid_can_be_made_better(&stand);
    nothing_lies_beside_what_is_known(&stand);
    a_table_that_is_taken_over_is_named(&stand);
    all_is_not_said_of_a_part(&stand);
    most_figures_of_kept_records_are_held_by_others(&stand);
}

/// The keys of a file in another order, with the digest of that: a reader could take one thing for another.
fn keys_cannot_be_swapped(stand: &Stand) {
    let (path, original) = (stand.file("copies"), stand.results("copies").to_json().unwrap());
    let start = original.find("\"digest\":\"").unwrap() + 10;
    let digest = &original[start..start + 64];
    let swapped = original.replacen("\"schema\":2,\"name\":\"copies\"", "\"name\":\"copies\",\"schema\":2", 1);
    assert_ne!(swapped, original);
    let own = contextweaver::text::sha256_hex(swapped.replacen(digest, "", 1).as_bytes());
    fs::write(&path, swapped.replacen(digest, &own, 1)).unwrap();
    assert!(stand.verdict().is_err());
    fs::write(&path, original).unwrap();
    assert!(stand.verdict().unwrap().same);
}

/// Whatever is in the folder of the scorecard is a page, results or a recorded table.
fn nothing_lies_beside_what_is_known(stand: &Stand) {
    for name in ["NOTES.md", "old.svg", "results/copies.json.orig", "results/deeper/copies.json", "figures/growth.svg"]
    {
        let path = stand.files.write(&format!("scorecard/{name}"), "x");
        let verdict = stand.verdict().unwrap();
        assert!(!verdict.same && verdict.strays.iter().any(|stray| stray.contains(name)), "{name}: {verdict:#?}");
        fs::remove_file(path).unwrap();
    }
    let path = stand.files.write("scorecard/timings/2026-01-31-desk.csv", "x");
    assert!(stand.verdict().is_err());
    fs::remove_file(path).unwrap();
    assert!(stand.verdict().unwrap().same);
}

/// A recorded table with another number, its digest and the pages made to fit: nothing computes it, so it is named.
fn a_table_that_is_taken_over_is_named(stand: &Stand) {
    let path = stand.files.write("scorecard/timings/rivals.csv", RIVALS.replace("19.2", "1.2"));
    assert!(stand.verdict().is_err());
    let origin = tables::accept(&stand.bench.workspace, "rivals.csv", None).unwrap();
    assert!(!stand.verdict().unwrap().same, "the page shows the number before");
    stand.render();
    let verdict = stand.verdict().unwrap();
    let named = format!("recorded, computed nowhere: 1 tables in scorecard/timings: rivals.csv of {}", origin.recorded);
    assert!(verdict.same && verdict.summary().contains(&named), "{}", verdict.summary());
    fs::write(path, RIVALS).unwrap();
    tables::accept(&stand.bench.workspace, "rivals.csv", Some("desk")).unwrap();
    stand.render();
    assert!(stand.verdict().unwrap().same);
}

/// Asked for everything, a check that did not compute everything fails, and names each record that it did not.
fn all_is_not_said_of_a_part(stand: &Stand) {
    let verdict = stand.verdict_of(Scope::All).unwrap();
    assert!(!verdict.same && verdict.summary().ends_with("not everything was computed, as --all requires"));
    for (results, case) in kept(stand) {
        assert!(is_named(&verdict, &results, &case), "{results} · {case}: {}", verdict.summary());
    }
}

/// The results file and the case of every record that was not computed.
fn kept(stand: &Stand) -> Vec<(String, String)> {
    let verdict = stand.verdict().unwrap();
    let cases = |kept: Kept| kept.cases.into_iter().map(move |case| (kept.results.clone(), case));
    verdict.kept.into_iter().flat_map(cases).collect()
}

/// Every single figure of the records that were not computed, changed alone: how many of them a check finds without
/// computing them, since they no longer agree with others. The rest is named only.
fn most_figures_of_kept_records_are_held_by_others(stand: &Stand) {
    let all = scorecard::committed(&stand.bench.workspace, &stand.bench.matrix).unwrap();
    let mut rng = Rng::new(3);
    let (mut found, mut of) = (0, 0);
    for (name, case) in kept(stand) {
        let (chapter, results) = all
            .0
            .iter()
            .find_map(|(chapter, files)| Some((*chapter, files.iter().position(|one| one.name == name)?)))
            .unwrap();
        // Most chapters hold a record against others of its case alone: without the rest they have less to compute, for the
        // same finds. One that adds up cases is asked with all.
        let mut near = all.clone();
        for file in near.0.get_mut(chapter).unwrap() {
            file.records.retain(|record| record.case == case);
        }
        let own = CHAPTERS.iter().find(|one| one.name() == chapter).unwrap();
        if own.wrong(&near).map_or(true, |wrong| !wrong.is_empty()) {
            near = all.clone();
        }
        let at =
            |of: &Recordings| of.of(chapter)[results].records.iter().position(|record| record.case == case).unwrap();
        let (record, near_record) = (at(&all), at(&near));
        let tree = serde_json::to_value(&all.of(chapter)[results].records[record].outcome).unwrap();
        let mut paths = Vec::new();
        leaves(&tree, "", &mut paths);
        for path in paths {
            let mut forged = tree.clone();
            let place = forged.pointer_mut(&path).unwrap();
            *place = changed(place, &mut rng);
            let forged: Outcome<_> = serde_json::from_value(forged).unwrap();
            let (mut all, mut near) = (all.clone(), near.clone());
            near.0.get_mut(chapter).unwrap()[results].records[near_record].outcome = forged.clone();
            all.0.get_mut(chapter).unwrap()[results].records[record].outcome = forged;
            let finds =
                |chapter: &dyn AnyChapter, all: &Recordings| chapter.wrong(all).map_or(true, |wrong| !wrong.is_empty());
            // Its own chapter finds most, and is asked first.
            found += usize::from(finds(*own, &near) || CHAPTERS.iter().any(|one| finds(*one, &all)));
            of += 1;
        }
    }
    println!("{found} of {of} figures of kept records are held by others");
    assert!(of > 1000 && found * 100 >= of * HELD_PERCENT, "{found} of {of}");
}

/// Of a hundred figures of kept records so many contradict others when they are changed alone.
const HELD_PERCENT: usize = 70;

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
    assert!(wrong.contains("is not the difference") && wrong.contains("`default` has a different figure"), "{wrong}");
    stand.forge(&original);
    assert!(stand.verdict().unwrap().same);
}

/// All recall of the engine with a sentence encoder set to .99: neither its losses nor its ranks give that.
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
    assert!(
        wrong.contains("what was found and lost sums to") && wrong.contains("are not those of the ranks"),
        "{wrong}"
    );
    stand.forge(&original);
    assert!(stand.verdict().unwrap().same);
}

/// A configuration of each grid that is said to improve, with probabilities that say so too: a grid is computed again, and its
/// corrected probabilities follow from the others.
fn no_configuration_of_a_grid_can_be_made_better(stand: &Stand) {
    let original = stand.results("sweep");
    let cases: Vec<&str> = original.records.iter().map(|record| record.case.as_str()).collect();
    assert_eq!(cases, ["context", "routing"]);
    for (at, measure) in [(0, "kept_against_first"), (1, "ndcg_against_first")] {
        for (member, forged) in [("p_holm", Value::from(0.01)), ("verdict", Value::from("better"))] {
            let mut results = original.clone();
            outcome(&mut results, at, |tree| tree["measured"]["configurations"][5][measure][member] = forged);
            stand.forge(&results);
            let verdict = stand.verdict().unwrap();
            let place = format!(".{measure}.{member}");
            let is_found = verdict.facts.iter().any(|fact| fact.results == "sweep" && fact.fact.contains(&place));
            assert!(!verdict.same && is_found, "{member}: {:#?}", verdict.facts);
            assert!(wrong(&verdict, "sweep").contains("do not follow from its configurations"), "{verdict:#?}");
        }
    }
    stand.forge(&original);
    assert!(stand.verdict().unwrap().same);
}

/// A record of a million tools whose counters are a tenth: they fall behind those of the size before.
fn the_million_tools_cannot_be_shrunk(stand: &Stand) {
    let original = stand.results("scaling");
    let at = original.records.iter().position(|record| record.case == "1000000").unwrap();
    let mut forged = original.clone();
    outcome(&mut forged, at, |tree| scale(tree, 0.1));
    stand.forge(&forged);
    let verdict = stand.verdict().unwrap();
    assert!(!verdict.same && is_named(&verdict, "scaling", "1000000"));
    assert!(wrong(&verdict, "scaling").contains("the postings of a tool are not those"), "{verdict:#?}");
    stand.forge(&original);
    assert!(stand.verdict().unwrap().same);
}

/// Multiplies the counters of a size; the tools are a million, and the queries stay.
fn scale(outcome: &mut Value, by: f64) {
    for (name, value) in outcome["measured"].as_object_mut().unwrap() {
        let number = value.as_f64().unwrap();
        *value = match name.as_str() {
            "tools" => Value::from(1_000_000),
            "queries" => value.clone(),
            _ if value.is_f64() => Value::from((number * by * 1e6).round() / 1e6),
            _ => Value::from((number * by) as u64),
        };
    }
}

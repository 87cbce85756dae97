//! The benchmark in a checkout of its own: run, check, drift, repair.

mod cells;
mod forged;

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use contextweaver_bench::results::Results;

use crate::support::{Files, household};

/// A small checkout: a third of the household collection, two engines.
fn small_checkout() -> Files {
    let files = Files::new();
    household(&files, 3);
    files.write(
        "scenarios/engines.toml",
        "[[engine]]\nname = \"default\"\nanalysis = \"a\"\n\n\
         [[engine]]\nname = \"bm25\"\nanalysis = \"b\"\nconfiguration = { scorer = \"bm25\" }\n",
    );
    files.write(
        "scenarios/small.toml",
        "analysis = \"small\"\norigin = \"embedded\"\ncollections = [\"household\"]\nengines = [\"default\"]\n",
    );
    files.write("README.md", "# R\n<!-- scorecard:begin -->\n<!-- scorecard:end -->\n");
    files
}

/// All runs whose day matters are of this one.
const DAY: [(&str, &str); 1] = [("SOURCE_DATE_EPOCH", "1769817600")];

/// What one run leaves in the small checkout, by path: no test changes it, so that it is measured once for all of them.
static WHOLE: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let files = small_checkout();
    let run = files.run_with(&["bench", "run"], &DAY);
    assert_eq!(run.code, 0, "{}", run.shown());
    scorecard(&files)
});

/// The small checkout after a run.
fn ran_checkout() -> Files {
    let files = small_checkout();
    for (path, bytes) in WHOLE.iter() {
        files.write(path, bytes);
    }
    files
}

/// The scorecard with the front page, by path.
fn scorecard(files: &Files) -> Vec<(String, Vec<u8>)> {
    let root = files.path("").display().to_string();
    let mut found = tree(&files.path("scorecard"));
    found.push((files.path("README.md").display().to_string(), fs::read(files.path("README.md")).unwrap()));
    found.into_iter().map(|(path, bytes)| (path.replace(&root, ""), bytes)).collect()
}

fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(tree(&path));
        } else {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_run_is_reproducible_and_checks_clean() {
    let files = ran_checkout();
    let first = tree(&files.path("scorecard"));
    assert!(files.run(&["bench", "run"]).code == 0 && tree(&files.path("scorecard")) == first);
    let check = files.run(&["bench", "check"]);
    assert_eq!(check.code, 0, "{}", check.shown());
    assert!(check.stdout.contains("same: 8 of 8 records computed here; pages and coverage"), "{}", check.stdout);
    assert_eq!(files.run(&["bench", "check", "--all"]).code, 0);
    assert_eq!(files.run(&["bench", "run", "--all"]).code, 0);
    let report = files.run(&["bench", "render", "--html", "--out", "r.html"]);
    assert!(report.code == 0 && report.stdout == "wrote r.html\n", "{}", report.shown());
    let html = fs::read_to_string(files.path("r.html")).unwrap();
    assert!(html.contains("of the needed tools among the first five on <bdi>household</bdi>"));
    assert!(html.contains("badge recorded") && html.contains("src=\"data:image/svg+xml;base64,"));
    assert_eq!(files.run(&["bench", "check"]).code, 0, "the report is not a page of the scorecard");
}

#[test]
fn a_record_keeps_its_day_as_long_as_it_is_the_same() {
    let files = ran_checkout();
    let days = |files: &Files| -> Vec<String> {
        let text = fs::read_to_string(files.path("scorecard/results/default.json")).unwrap();
        let results = Results::<serde_json::Value>::from_json("default", &text).unwrap();
        results.records.iter().map(|record| record.provenance.recorded.to_string()).collect()
    };
    let run = |seconds: &str| {
        let ran = files.run_with(&["bench", "run"], &[("SOURCE_DATE_EPOCH", seconds)]);
        assert_eq!(ran.code, 0, "{}", ran.shown());
        days(&files)
    };
    assert_eq!(days(&files), ["2026-01-31"]);
    assert_eq!(run("1769904000"), ["2026-01-31"], "the same facts of the same version");
    let engines = fs::read_to_string(files.path("scenarios/engines.toml")).unwrap();
    files.write("scenarios/engines.toml", engines.replacen("\"a\"", "\"a\"\nconfiguration = { k1 = 0.3 }", 1));
    assert_eq!(run("1769904000"), ["2026-02-01"]);
}

#[test]
fn a_changed_weight_is_drift_and_is_named() {
    let files = ran_checkout();
    let engines = fs::read_to_string(files.path("scenarios/engines.toml")).unwrap();
    let changed = engines.replacen("analysis = \"a\"", "analysis = \"a\"\nconfiguration = { k1 = 0.3 }", 1);
    files.write("scenarios/engines.toml", changed);
    let before = tree(&files.path("scorecard"));
    let check = files.run(&["bench", "check"]);
    assert_eq!(check.code, 1, "{}", check.shown());
    assert!(
        check.stdout.contains("default · configuration.k1: committed \"1.0\", computed \"0.3\""),
        "{}",
        check.stdout
    );
    assert!(check.stdout.contains("default · household · measures."), "{}", check.stdout);
    assert!(check.stdout.contains("if it is intended: contextweaver bench run"), "{}", check.stdout);
    assert!(tree(&files.path("scorecard")) == before, "a check writes nothing");
}

#[test]
fn an_edited_page_a_stray_file_and_a_vanished_case_are_drift() {
    let files = ran_checkout();
    files.write("scorecard/SCORECARD.md", "edited");
    let page = files.run(&["bench", "check"]);
    assert_eq!(page.code, 1);
    assert!(page.stdout.contains("scorecard/SCORECARD.md: does not show the committed results"), "{}", page.stdout);
    assert_eq!(files.run(&["bench", "render"]).code, 0);
    assert_eq!(files.run(&["bench", "check"]).code, 0);

    let strays = [("results/gone.json", "{}"), ("household-old.svg", "<svg/>"), ("ties.md", "# Ties")]
        .map(|(name, text)| files.write(&format!("scorecard/{name}"), text));
    files.write("scorecard/routing-loss.md", "edited");
    let check = files.run(&["bench", "check"]);
    assert_eq!(check.code, 1, "{}", check.shown());
    for named in [
        "scorecard/results/gone.json: no page, results file",
        "scorecard/household-old.svg: no page, results file",
        "scorecard/ties.md: no page, results file",
        "scorecard/routing-loss.md: does not show",
    ] {
        assert!(check.stdout.contains(named), "{named}: {}", check.stdout);
    }
    strays.iter().for_each(|stray| fs::remove_file(stray).unwrap());
    assert_eq!(files.run(&["bench", "render"]).code, 0);

    without(&files, "default", "household");
    let vanished = files.run(&["bench", "check"]);
    assert_eq!(vanished.code, 1, "{}", vanished.shown());
    assert!(vanished.stdout.contains("default · household: committed nothing"), "{}", vanished.stdout);
}

/// Takes a record out of a results file, as one does who knows of its digest.
fn without(files: &Files, results: &str, case: &str) {
    let path = files.path(&format!("scorecard/results/{results}.json"));
    let text = fs::read_to_string(&path).unwrap();
    let mut read = Results::<serde_json::Value>::from_json(results, &text).unwrap();
    read.records.retain(|record| record.case != case);
    fs::write(path, read.to_json().unwrap()).unwrap();
}

#[test]
fn rows_of_absent_collections_are_kept_and_named() {
    let files = small_checkout();
    files.write(
        "scenarios/public.toml",
        "analysis = \"absent\"\norigin = \"public\"\ncollections = [\"elsewhere\"]\nengines = [\"default\"]\n",
    );
    // A public collection that is there for the first run and gone for the second.
    let tools = r#"[{"name": "create_issue", "description": "Open a ticket"}, {"name": "send_mail"}]"#;
    files.write("public/elsewhere/catalog.json", tools);
    files.write("public/elsewhere/queries.jsonl", r#"{"id": "1", "query": "a ticket", "relevant": ["create_issue"]}"#);
    assert_eq!(files.run(&["bench", "run", "--public", "public"]).code, 0);
    let rows = fs::read_to_string(files.path("scorecard/results/default.json")).unwrap();
    assert!(rows.contains("\"case\":\"elsewhere\"") && !rows.contains("\"kept\""), "{rows}");
    // A check names what it did not compute, and `--all` fails for it.
    let check = files.run(&["bench", "check"]);
    assert_eq!(check.code, 0, "{}", check.shown());
    assert_eq!(check.stdout.lines().last().unwrap(), "same as far as computed: 8 of 14 records; 6 kept");
    named(&check.stdout);
    let all = files.run(&["bench", "check", "--all"]);
    assert_eq!(all.code, 1, "{}", all.shown());
    assert!(all.stdout.ends_with("not everything was computed, as --all requires\n"), "{}", all.stdout);
    named(&all.stdout);
    assert_eq!(files.run(&["bench", "check", "--large"]).code, 0);
    let json = files.run(&["bench", "check", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["same"], &json["records"], &json["computed"]), (&true.into(), &14.into(), &8.into()));
    assert_eq!(json["kept"][1]["cases"][0], "elsewhere");

    // A run marks them on the pages; a second one changes no byte.
    let again = files.run(&["bench", "run"]);
    assert_eq!(again.code, 0, "{}", again.shown());
    assert!(
        again.stderr.contains("kept as recorded, not measured here: meaning 1 (public data not here)"),
        "{}",
        again.stderr
    );
    for page in ["scorecard/routing.md", "README.md"] {
        let text = fs::read_to_string(files.path(page)).unwrap();
        assert!(text.contains(" †") && text.contains("default 1"), "{page}: {text}");
    }
    let first = tree(&files.path("scorecard"));
    assert!(files.run(&["bench", "run"]).code == 0 && tree(&files.path("scorecard")) == first);
    assert_eq!(files.run(&["bench", "check"]).code, 0);
    let refused = files.run(&["bench", "run", "--all"]);
    assert!(refused.code == 2 && refused.stderr.contains("not everything can be measured here"), "{}", refused.shown());
    // Where they can be computed they may not stay marked.
    let marked = files.run(&["bench", "check", "--public", "public"]);
    assert_eq!(marked.code, 1, "{}", marked.shown());
    assert!(
        marked.stdout.contains("elsewhere · state: committed \"kept\", computed \"computed\""),
        "{}",
        marked.stdout
    );

    // Where only a page differs, or nothing but a record that was never made, they are named too.
    files.write("scorecard/SCORECARD.md", "edited");
    let page = files.run(&["bench", "check"]);
    assert!(page.code == 1 && page.stdout.ends_with("contextweaver bench render\n"), "{}", page.stdout);
    named(&page.stdout);
    assert_eq!(files.run(&["bench", "render"]).code, 0);

    // A row of another version of the engine, and one that is gone, are not passed over in silence.
    let engines = fs::read_to_string(files.path("scenarios/engines.toml")).unwrap();
    let changed = engines.replacen("analysis = \"a\"", "analysis = \"a\"\nconfiguration = { k1 = 0.3 }", 1);
    files.write("scenarios/engines.toml", changed);
    assert_eq!(files.run(&["bench", "run"]).code, 0);
    let other = files.run(&["bench", "check"]);
    assert_eq!(other.code, 1, "{}", other.shown());
    assert!(other.stdout.contains("default · elsewhere: stale: the record is from version"), "{}", other.stdout);
    assert!(fs::read_to_string(files.path("README.md")).unwrap().contains(" ‡"));
    files.write("scenarios/engines.toml", engines);
    assert_eq!(files.run(&["bench", "run", "--public", "public"]).code, 0);
    without(&files, "default", "elsewhere");
    files.run(&["bench", "render"]);
    let gone = files.run(&["bench", "check"]);
    assert_eq!(gone.code, 1, "{}", gone.shown());
    assert!(
        gone.stdout.contains("default · elsewhere: no committed record, and it cannot be computed"),
        "{}",
        gone.stdout
    );
}

/// The output of a check names the one record of each of these that was not computed.
fn named(stdout: &str) {
    for results in ["meaning", "default", "bm25", "copies", "confidence", "feedback"] {
        let line =
            stdout.lines().find(|line| line.starts_with(&format!("  {results} 1 (public data not here; version ")));
        assert!(line.is_some_and(|line| line.contains(", recorded 20") && line.ends_with(": elsewhere")), "{stdout}");
    }
}

#[test]
fn a_record_that_cannot_be_made_or_kept_is_named_by_the_run() {
    let files = small_checkout();
    files.write(
        "scenarios/public.toml",
        "analysis = \"absent\"\norigin = \"public\"\ncollections = [\"elsewhere\"]\nengines = [\"default\"]\n",
    );
    let run = files.run(&["bench", "run"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    let note = run.stderr.lines().find(|line| line.contains("neither measured here nor recorded")).unwrap();
    assert!(note.contains("`contextweaver bench check` fails") && note.contains("default · elsewhere"), "{note}");
    assert_eq!(files.run(&["bench", "check"]).code, 1);
}

#[test]
fn recorded_tables_are_held_to_their_digests_and_named() {
    let files = small_checkout();
    let table = files
        .write("scorecard/timings/rivals.csv", "engine,tools,measure,value,unit\ntantivy,1000,search p50,19.2,us\n");
    let refused = files.run(&["bench", "run"]);
    assert!(refused.code == 2 && refused.stderr.contains("bench accept"), "{}", refused.shown());
    let accepted = files.run(&["bench", "accept", "scorecard/timings/rivals.csv", "--machine", "desk"]);
    assert_eq!(accepted.code, 0, "{}", accepted.shown());
    assert!(accepted.stdout.contains("Recorded, not computed: 20") && accepted.stdout.contains("`desk`"));
    assert_eq!(files.run(&["bench", "run"]).code, 0);
    let page = fs::read_to_string(files.path("scorecard/scaling.md")).unwrap();
    assert!(page.contains("19.2") && page.contains(accepted.stdout.trim().strip_prefix("rivals.csv: ").unwrap()));
    let check = files.run(&["bench", "check", "--all"]);
    assert_eq!(check.code, 0, "{}", check.shown());
    assert!(
        check.stdout.contains("computed nowhere: 1 tables in scorecard/timings: rivals.csv of 20"),
        "{}",
        check.stdout
    );

    fs::write(&table, "engine,tools,measure,value,unit\ntantivy,1000,search p50,9.2,us\n").unwrap();
    for command in ["render", "check", "run"] {
        let edited = files.run(&["bench", command]);
        assert_eq!(edited.code, 2, "{command}: {}", edited.shown());
        assert!(edited.stderr.contains("rivals.csv") && edited.stderr.contains("git checkout"), "{}", edited.stderr);
    }
    // One who takes the edit over has it named with its day; a file of that name elsewhere is not the table.
    let elsewhere = files.write("rivals.csv", "anything");
    for (path, expected) in [(elsewhere.to_str().unwrap(), "name the file there"), ("none/rivals.csv", "No such file")]
    {
        let refused = files.run(&["bench", "accept", path]);
        assert!(refused.code == 2 && refused.stderr.contains(expected), "{}", refused.shown());
    }
    assert_eq!(files.run(&["bench", "accept", "scorecard/timings/rivals.csv"]).code, 0);
    assert_eq!(files.run(&["bench", "render"]).code, 0);
    assert!(files.run(&["bench", "check"]).stdout.contains("rivals.csv of 20"));
}

#[test]
fn a_results_file_that_is_damaged_or_missing_is_refused_with_the_command_that_repairs_it() {
    let files = ran_checkout();
    let path = files.path("scorecard/results/meaning.json");
    let text = fs::read_to_string(&path).unwrap();
    let fact = "{\"measured\":{\"tools\":";
    let cases = [
        ("forged fact", text.replacen(fact, &format!("{fact}1"), 1)),
        ("unknown field", text.replacen(fact, "{\"measured\":{\"tolls\":1,\"tools\":", 1)),
        ("torn line", text[..text.len() / 2].to_owned()),
        ("forged digest", text.replacen("\"digest\":\"", "\"digest\":\"0", 1)),
        ("other results", fs::read_to_string(files.path("scorecard/results/copies.json")).unwrap()),
    ];
    for (name, damaged) in cases {
        assert_ne!(damaged, text, "{name}");
        fs::write(&path, damaged).unwrap();
        for command in ["check", "render"] {
            let run = files.run(&["bench", command]);
            assert_eq!(run.code, 2, "{name}, {command}: {}", run.shown());
            assert!(run.stderr.contains("scorecard/results/meaning.json"), "{name}: {}", run.stderr);
            assert!(run.stderr.contains("bench run"), "{name}: {}", run.stderr);
        }
    }
    fs::remove_file(&path).unwrap();
    let missing = files.run(&["bench", "check"]);
    assert_eq!(missing.code, 2, "{}", missing.shown());
    assert!(
        missing.stderr.contains("meaning.json: missing; restore it with `git checkout`, or write it again with"),
        "{}",
        missing.stderr
    );
    assert_eq!(files.run(&["bench", "run"]).code, 0);
    assert_eq!(files.run(&["bench", "check"]).code, 0);
}

#[test]
fn damaged_results_do_not_stop_a_run_that_replaces_them() {
    let files = small_checkout();
    files.write("scorecard/results/default.json", "{");
    assert_eq!(files.run(&["bench", "check"]).code, 2);
    assert_eq!(files.run(&["bench", "run"]).code, 0);
    assert_eq!(files.run(&["bench", "check"]).code, 0);
}

#[test]
fn a_run_file_ranks_every_query() {
    let files = Files::new();
    household(&files, 1);
    let eval =
        ["bench", "eval", "--catalog", "gold/household/catalog.json", "--queries", "gold/household/queries.jsonl"];
    let run = files.run(&[&eval[..], &["--run-out", "run.tsv", "--format", "json"]].concat());
    assert_eq!(run.code, 0, "{}", run.shown());
    let text = fs::read_to_string(files.path("run.tsv")).unwrap();
    let first: Vec<&str> = text.lines().next().unwrap().split('\t').collect();
    assert_eq!((first[0], first[1], first.len()), ("hh-001", "1", 5));
    let mut ranks: std::collections::BTreeMap<&str, usize> = Default::default();
    for line in text.lines() {
        let mut fields = line.split('\t');
        let count = ranks.entry(fields.next().unwrap()).or_default();
        *count += 1;
        assert_eq!(fields.next().unwrap(), count.to_string(), "{line}");
    }
    // Exactly what was measured: a query for which nothing was found has no line.
    assert!((200..=234).contains(&ranks.len()), "{}", ranks.len());
    let scores = text.lines().map(|line| line.split('\t').nth(3).unwrap().parse::<u64>().unwrap());
    assert!(scores.min() > Some(0));
    let again = files.run(&[&eval[..], &["--run-out", "again.tsv"]].concat());
    assert_eq!(again.code, 0);
    assert_eq!(text, fs::read_to_string(files.path("again.tsv")).unwrap());
}

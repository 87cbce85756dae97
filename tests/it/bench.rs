//! The benchmark in a checkout of its own: run, check, drift, repair.

use std::fs;
use std::path::Path;

use crate::support::{Files, checkout};

/// A small checkout: the household collection, two engines, one growth.
fn small_checkout() -> Files {
    let files = Files::new();
    for file in ["catalog.json", "queries.jsonl", "collection.toml"] {
        let from = checkout().join("gold/household").join(file);
        files.write(&format!("gold/household/{file}"), fs::read(from).unwrap());
    }
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
    let files = small_checkout();
    let run = files.run(&["bench", "run"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    let first = tree(&files.path("scorecard"));
    assert!(files.run(&["bench", "run"]).code == 0 && tree(&files.path("scorecard")) == first);
    let check = files.run(&["bench", "check"]);
    assert_eq!(check.code, 0, "{}", check.shown());
    assert!(check.stdout.contains("same: facts, pages and coverage"), "{}", check.stdout);
}

#[test]
fn a_changed_weight_is_drift_and_is_named() {
    let files = small_checkout();
    assert_eq!(files.run(&["bench", "run"]).code, 0);
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
    assert!(check.stdout.contains("if it is meant: contextweaver bench run"), "{}", check.stdout);
    assert!(tree(&files.path("scorecard")) == before, "a check writes nothing");
}

#[test]
fn an_edited_page_a_stray_file_and_a_vanished_case_are_drift() {
    let files = small_checkout();
    assert_eq!(files.run(&["bench", "run"]).code, 0);
    files.write("scorecard/SCORECARD.md", "edited");
    let page = files.run(&["bench", "check"]);
    assert_eq!(page.code, 1);
    assert!(page.stdout.contains("scorecard/SCORECARD.md: does not show the committed results"), "{}", page.stdout);
    assert_eq!(files.run(&["bench", "render"]).code, 0);
    assert_eq!(files.run(&["bench", "check"]).code, 0);

    let stray = files.write("scorecard/results/gone.json", "{}");
    assert!(files.run(&["bench", "check"]).stdout.contains("no engine of that name"));
    fs::remove_file(stray).unwrap();
    let old = files.write("scorecard/household-old.svg", "<svg/>");
    assert!(files.run(&["bench", "check"]).stdout.contains("household-old.svg: no page of that name"));
    fs::remove_file(old).unwrap();

    let path = files.path("scorecard/results/default.json");
    let text = fs::read_to_string(&path).unwrap();
    let head = text.lines().next().unwrap().to_owned();
    fs::write(&path, format!("{head}\n]}}\n")).unwrap();
    let vanished = files.run(&["bench", "check"]);
    assert_eq!(vanished.code, 1);
    assert!(vanished.stdout.contains("default · household: committed nothing"), "{}", vanished.stdout);
}

#[test]
fn rows_of_absent_collections_stay_as_they_are() {
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
    let first = tree(&files.path("scorecard"));
    let rows = fs::read_to_string(files.path("scorecard/results/default.json")).unwrap();
    assert!(rows.contains("\"case\":\"elsewhere\""), "{rows}");
    let again = files.run(&["bench", "run"]);
    assert_eq!(again.code, 0, "{}", again.shown());
    assert!(again.stderr.contains("not re-run, their collections are not here: elsewhere"), "{}", again.stderr);
    assert!(tree(&files.path("scorecard")) == first);
    let check = files.run(&["bench", "check"]);
    assert_eq!(check.code, 0, "{}", check.shown());
    assert!(check.stdout.contains("not re-run, their collections are not here: elsewhere"), "{}", check.stdout);

    // A row of another version of the engine, and one that is gone, are not passed over in silence.
    let engines = fs::read_to_string(files.path("scenarios/engines.toml")).unwrap();
    let changed = engines.replacen("analysis = \"a\"", "analysis = \"a\"\nconfiguration = { k1 = 0.3 }", 1);
    files.write("scenarios/engines.toml", changed);
    assert_eq!(files.run(&["bench", "run"]).code, 0);
    let other = files.run(&["bench", "check"]);
    assert_eq!(other.code, 1, "{}", other.shown());
    assert!(other.stdout.contains("default · elsewhere: the row is of version"), "{}", other.stdout);
    let kept: Vec<&str> = rows.lines().filter(|line| !line.contains("elsewhere")).collect();
    files.write("scenarios/engines.toml", engines);
    files.write("scorecard/results/default.json", kept.join("\n") + "\n");
    files.run(&["bench", "render"]);
    let gone = files.run(&["bench", "check"]);
    assert_eq!(gone.code, 1, "{}", gone.shown());
    assert!(gone.stdout.contains("default · elsewhere: no committed row"), "{}", gone.stdout);
}

#[test]
fn a_collection_that_the_table_learned_from_needs_another_table() {
    let files = small_checkout();
    files.write(
        "scenarios/public.toml",
        "analysis = \"seen\"\norigin = \"public\"\ncollections = [\"nestful\"]\nengines = [\"default\"]\n",
    );
    files.write("public/nestful/catalog.json", r#"[{"name": "create_issue", "description": "Open a ticket"}]"#);
    files.write("public/nestful/queries.jsonl", r#"{"id": "1", "query": "a ticket", "relevant": ["create_issue"]}"#);
    let without = files.run(&["bench", "left-out", "--public", "public"]);
    assert_eq!(without.code, 0, "{}", without.shown());
    assert!(without.stderr.contains("collections or tables are not here: nestful"), "{}", without.stderr);
    assert!(without.stdout.contains("household") && !without.stdout.contains("nestful"), "{}", without.stdout);

    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/src/routing/semantic/table");
    let manifest = fs::read_to_string(format!("{table}.json")).unwrap();
    fs::create_dir_all(files.path("tables/nestful")).unwrap();
    fs::copy(format!("{table}.bin"), files.path("tables/nestful/table.bin")).unwrap();
    files.write("tables/nestful/table.json", &manifest);
    let command = ["bench", "left-out", "--public", "public", "--tables", "tables"];
    let seen = files.run(&command);
    assert!(seen.code != 0 && seen.stderr.contains("leave it out"), "{}", seen.shown());
    files.write("tables/nestful/table.json", manifest.replace("\"left_out\": []", "\"left_out\": [\"nestful\"]"));
    let measured = files.run(&command);
    assert_eq!(measured.code, 0, "{}", measured.shown());
    // The row stays where the table is not given again.
    let first = fs::read_to_string(files.path("scorecard/results/left-out.json")).unwrap();
    assert!(first.contains("\"without\":\"nestful\""), "{first}");
    assert_eq!(files.run(&["bench", "left-out", "--public", "public"]).code, 0);
    assert_eq!(fs::read_to_string(files.path("scorecard/results/left-out.json")).unwrap(), first);
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
    let files = small_checkout();
    let eval =
        ["bench", "eval", "--catalog", "gold/household/catalog.json", "--queries", "gold/household/queries.jsonl"];
    let run = files.run(&[&eval[..], &["--run-out", "run.tsv", "--format", "json"]].concat());
    assert_eq!(run.code, 0, "{}", run.shown());
    let text = fs::read_to_string(files.path("run.tsv")).unwrap();
    let first: Vec<&str> = text.lines().next().unwrap().split('\t').collect();
    assert_eq!((first[0], first[1], first.len()), ("hh-001", "1", 3));
    let mut ranks: std::collections::BTreeMap<&str, usize> = Default::default();
    for line in text.lines() {
        let mut fields = line.split('\t');
        let count = ranks.entry(fields.next().unwrap()).or_default();
        *count += 1;
        assert_eq!(fields.next().unwrap(), count.to_string(), "{line}");
    }
    assert_eq!(ranks.len(), 234);
    assert!(ranks.values().all(|ranks| *ranks >= 20));
    let again = files.run(&[&eval[..], &["--run-out", "again.tsv"]].concat());
    assert_eq!(again.code, 0);
    assert_eq!(text, fs::read_to_string(files.path("again.tsv")).unwrap());
}

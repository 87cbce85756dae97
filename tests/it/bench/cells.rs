//! Runs in shares, runs that were stopped, the filter, and runs with little time: all leave what one run leaves.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{DAY, WHOLE, ran_checkout, scorecard, small_checkout};
use crate::support::{Files, Run};

fn run(files: &Files, arguments: &[&str]) -> Run {
    files.run_with(&[&["bench"], arguments].concat(), &DAY)
}

fn ran(files: &Files, arguments: &[&str]) -> Run {
    let run = run(files, arguments);
    assert_eq!(run.code, 0, "{arguments:?}: {}", run.shown());
    run
}

fn stored(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// The output of `bench cell` for these lines.
fn filtered(files: &Files, lines: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_contextweaver"));
    command.args(["bench", "cell"]).current_dir(files.path("")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn shares_put_together_are_one_run_byte_for_byte() {
    let files = small_checkout();
    let first = ran(&files, &["run", "--shard", "1/2", "--cells", "one"]);
    ran(&files, &["run", "--shard", "2/2", "--cells", "two"]);
    assert!(!files.path("scorecard").exists(), "a share writes no scorecard");
    let (one, two) = (stored(&files.path("one")), stored(&files.path("two")));
    assert_eq!(one.len() + two.len(), 8);
    assert!(!one.is_empty() && !two.is_empty(), "{}", first.shown());
    // Half of it is nothing, and nothing is written.
    let half = run(&files, &["merge", "--cells", "one"]);
    assert!(half.code == 2 && half.stderr.contains("cells are missing or damaged, the first is "), "{}", half.shown());
    assert!(!files.path("scorecard").exists());
    ran(&files, &["merge", "--cells", "one", "--cells", "two"]);
    assert!(scorecard(&files) == *WHOLE);
    ran(&files, &["check", "--all"]);
}

#[test]
fn a_run_that_was_stopped_goes_on_and_a_torn_cell_is_computed_again() {
    let files = small_checkout();
    ran(&files, &["run", "--cells", "cells"]);
    assert!(scorecard(&files) == *WHOLE);
    let cells = stored(&files.path("cells"));
    let before: Vec<Vec<u8>> = cells.iter().map(|path| fs::read(path).unwrap()).collect();
    // As a kill leaves it: one cell is not there, one is torn, one is another's.
    fs::remove_file(&cells[0]).unwrap();
    fs::write(&cells[1], &before[1][..before[1].len() / 2]).unwrap();
    fs::write(&cells[2], &before[3]).unwrap();
    let plan = ran(&files, &["cells", "--plan", "--cells", "cells"]);
    assert!(plan.stdout.contains("8 cells, 5 stored"), "{}", plan.stdout);
    fs::remove_dir_all(files.path("scorecard")).unwrap();
    let again = ran(&files, &["run", "--cells", "cells", "--progress"]);
    assert!(again.stderr.contains("8 of 8 cells, about 0 s left"), "{}", again.stderr);
    assert!(scorecard(&files) == *WHOLE);
    assert_eq!(cells.iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>(), before);
}

#[test]
fn the_filter_computes_what_a_run_computes() {
    let files = small_checkout();
    let cells = ran(&files, &["cells"]).stdout;
    assert_eq!(cells.lines().count(), 8);
    let shares: Vec<String> =
        ["1/3", "2/3", "3/3"].map(|share| ran(&files, &["cells", "--shard", share]).stdout).into();
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&shares.concat()), sorted(&cells));
    // Computed by two processes, in another order, one cell twice.
    let lines: Vec<&str> = cells.lines().rev().collect();
    let answers =
        [filtered(&files, &lines[..4].join("\n")), filtered(&files, &(lines[3..].join("\n") + "\n"))].concat();
    files.write("results.jsonl", &answers);
    ran(&files, &["merge", "--results", "results.jsonl"]);
    assert!(scorecard(&files) == *WHOLE);

    // What is wrong with a line is said in its place.
    let mut stale: Value = serde_json::from_str(lines[0]).unwrap();
    stale["version"] = "0.0.1+0".into();
    let mut absent: Value = serde_json::from_str(lines[1]).unwrap();
    absent["case"] = "elsewhere".into();
    let told = filtered(&files, &format!("what\n\n{stale}\n{absent}\n{{\"a\":1}}\n"));
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = |line: u64, words: &str| {
        let found = told.iter().find(|one| one["line"] == line).unwrap_or_else(|| panic!("{told:?}"));
        assert!(found["error"].as_str().unwrap().contains(words), "{found}");
    };
    said(1, "not a cell");
    said(3, "version mismatch: `0.0.1+0`");
    said(4, "no such cell can be computed here");
    said(5, "not a cell");
    assert_eq!(told.len(), 4);
    let torn = &answers[..answers.len() / 2];
    let mut other: Value = serde_json::from_str(answers.lines().next().unwrap()).unwrap();
    other["outcome"] = serde_json::json!({"failed": "rain"});
    let mut forged = other.clone();
    forged["key"] = "0".repeat(64).into();
    for (bad, words) in [
        (told[0].to_string(), "bad.jsonl:1: a cell was not computed: not a cell"),
        (torn.to_owned(), "not a line of `contextweaver bench cell`"),
        (format!("{answers}{other}\n"), "another line has different facts"),
        (forged.to_string(), "the key does not belong to the cell"),
    ] {
        files.write("bad.jsonl", bad);
        let refused = run(&files, &["merge", "--results", "bad.jsonl"]);
        assert!(refused.code == 2 && refused.stderr.contains(words), "{words}: {}", refused.shown());
    }
    assert!(scorecard(&files) == *WHOLE, "what is refused writes nothing");
}

#[test]
fn a_run_without_time_keeps_what_is_recorded_and_says_so() {
    let files = ran_checkout();
    let short = ran(&files, &["run", "--budget", "0s"]);
    assert!(short.stderr.contains("default 1 (out of time)"), "{}", short.stderr);
    let kept = fs::read_to_string(files.path("scorecard/results/default.json")).unwrap();
    assert!(kept.contains("\"state\":\"kept\""), "{kept}");
    assert!(fs::read_to_string(files.path("README.md")).unwrap().contains(" †"));
    ran(&files, &["run", "--budget", "60m"]);
    assert!(scorecard(&files) == *WHOLE);
    let share = ran(&files, &["run", "--budget", "0s", "--shard", "1/1", "--cells", "cells"]);
    assert!(share.stdout.starts_with("0 of the 8 cells of this share are stored\nout of time: "), "{}", share.stdout);
    for wrong in [&["run", "--budget", "60"][..], &["run", "--budget", "1s", "--all"], &["run", "--shard", "1/2"]] {
        assert_eq!(run(&files, wrong).code, 2, "{wrong:?}");
    }
    let strange = run(&files, &["run", "--shard", "3/2", "--cells", "cells"]);
    assert!(strange.stderr.contains("`3/2` is not a share; write 1/4"), "{}", strange.stderr);
}

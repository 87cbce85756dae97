//! `bench compare`: every kind of base and head, the verdict and the exit code.

use std::process::Command;

use crate::support::{Files, Run, checkout};

const TOOLS: &str =
    r#"[{"name": "send_mail", "description": "Send a letter"}, {"name": "lock_door", "description": "Lock a door"}]"#;

fn files() -> Files {
    let files = Files::new();
    files.write("tools.json", TOOLS);
    let queries: String = (0..40)
        .map(|number| {
            format!("{{\"id\": \"q{number}\", \"query\": \"a letter {number}\", \"relevant\": [\"send_mail\"]}}\n")
        })
        .collect();
    files.write("queries.jsonl", queries);
    let run = |found: usize| -> String { (0..found).map(|number| format!("q{number}\t1\tsend_mail\n")).collect() };
    files.write("base.tsv", run(40));
    files.write("head.tsv", run(30));
    files
}

fn compare(files: &Files, arguments: &[&str]) -> Run {
    files.run(&[&["bench", "compare"][..], arguments].concat())
}

#[test]
fn run_files_are_compared_on_their_collection() {
    let files = files();
    let own = ["--catalog", "tools.json", "--queries", "queries.jsonl"];
    let worse = compare(&files, &[&own[..], &["base.tsv", "head.tsv"]].concat());
    assert_eq!(worse.code, 1, "{}", worse.shown());
    insta::assert_snapshot!(worse.stdout, @r#"
    recall@5, base.tsv -> head.tsv: regressed
      −.250 [−.375, −.150] over 40 queries, of which 10 differ; p = .0020
      a difference of .194 would be seen four times out of five; one of .010 takes 15,054 queries more
      hits in the first five: 10 lost, 0 won; p = .0020 (exact McNemar)

    also        base  head  difference      p      q
    recall@1   1.000  .750       −.250  .0020  .0020
    recall@3   1.000  .750       −.250  .0020  .0020
    recall@10  1.000  .750       −.250  .0020  .0020
    hit@1      1.000  .750       −.250  .0020  .0020
    P@1        1.000  .750       −.250  .0020  .0020
    P@3         .333  .250       −.083  .0020  .0020
    P@5         .200  .150       −.050  .0020  .0020
    P@10        .100  .075       −.025  .0020  .0020
    RR         1.000  .750       −.250  .0020  .0020
    nDCG@10    1.000  .750       −.250  .0020  .0020
    full@1     1.000  .750       −.250  .0020  .0020
    full@3     1.000  .750       −.250  .0020  .0020
    full@5     1.000  .750       −.250  .0020  .0020
    full@10    1.000  .750       −.250  .0020  .0020

    worst query  q30 (yours) "a letter 30", for send_mail: rank 1 -> not found
    worst tool   send_mail (yours): its 40 queries lose 10.000 together
    "#);
    let better = compare(&files, &[&own[..], &["head.tsv", "base.tsv"]].concat());
    assert_eq!(better.code, 0, "{}", better.shown());
    assert!(better.stdout.starts_with("recall@5, head.tsv -> base.tsv: improved\n"), "{}", better.stdout);
    let engines = compare(&files, &[&own[..], &["lexical", "base.tsv", "--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&engines.stdout).unwrap();
    assert_eq!((engines.code, json["verdict"]["word"].as_str()), (0, Some("same")), "{}", engines.shown());
}

#[test]
fn outputs_and_revisions_of_them_are_compared() {
    let files = files();
    let eval = |run: &str| {
        let own = ["bench", "eval", "--catalog", "tools.json", "--queries", "queries.jsonl", "--format", "json"];
        files.run(&[&own[..], &["--run", run]].concat()).stdout
    };
    files.write("results.json", eval("x=base.tsv"));
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
        let done = Command::new("git").args(identity).args(arguments).current_dir(files.path(".")).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", "results.json"]);
    git(&["commit", "--quiet", "-m", "base"]);
    files.write("results.json", eval("x=head.tsv"));
    let worse = compare(&files, &["HEAD:results.json", "results.json"]);
    assert_eq!(worse.code, 1, "{}", worse.shown());
    assert!(worse.stdout.contains("worst tool   send_mail"), "{}", worse.stdout);

    // Another catalog gives no verdict, until that is asked for.
    files.write("tools.json", TOOLS.replace("Lock a door", "Lock any door"));
    files.write("results.json", eval("x=base.tsv"));
    let other = compare(&files, &["HEAD:results.json", "results.json"]);
    assert_eq!(other.code, 2, "{}", other.shown());
    assert!(other.stdout.contains("not comparable") && other.stderr.contains("--changed-inputs"), "{}", other.shown());
    let asked = compare(&files, &["HEAD:results.json", "results.json", "--changed-inputs"]);
    assert_eq!(asked.code, 0, "{}", asked.shown());
}

#[test]
fn recorded_engines_are_compared_and_said_to_be_recorded() {
    let files = files();
    let root = checkout().display().to_string();
    let results = format!("{root}/scorecard/results/rivals.json");
    // Of collections that are not here nothing is needed but their records.
    let compared = |base: &str, head: &str| compare(&files, &["--root", &root, "--public", ".", base, head]);
    let better = compared("minilm", "default");
    assert_eq!(better.code, 0, "{}", better.shown());
    assert!(better.stdout.starts_with("recall@5, minilm (recorded 20"), "{}", better.stdout);
    let first = better.stdout.lines().next().unwrap();
    assert!(first.contains(" -> default (recorded 20") && first.ends_with("): improved"), "{first}");
    let in_sample = "\nin-sample: the constants of the default were chosen on these collections";
    assert!(better.stdout.contains(in_sample), "{}", better.stdout);
    let others = compared("minilm", "rapidfuzz");
    assert!(others.code == 1 && !others.stdout.contains("in-sample"), "{}", others.shown());
    let worse = compared(&format!("{results}#default"), &format!("{results}#minilm"));
    assert_eq!(worse.code, 1, "{}", worse.shown());
    assert!(worse.stdout.contains("metatool_single"), "{}", worse.stdout);
    let table = [
        (
            results.clone(),
            "minilm",
            "it holds several engines; name one behind it, as in `FILE#best`; there are best, bm25",
        ),
        (format!("{results}#pizza"), "minilm", "it has no engine `pizza`; there are best, bm25"),
        (format!("{root}/scorecard/results/default.json#minilm"), "minilm", "it holds one engine; leave out `#minilm`"),
        (
            "contextweaver-py".to_owned(),
            "minilm",
            "the inputs differ: `bfcl_synth` is not in `contextweaver-py (recorded",
        ),
    ];
    for (base, head, expected) in table {
        let refused = compared(&base, head);
        assert_eq!(refused.code, 2, "{base}: {}", refused.shown());
        assert!(refused.stderr.contains(expected), "{base}: {}", refused.stderr);
    }
    let own = ["--catalog", "tools.json", "--queries", "queries.jsonl", "--root", &root, "minilm", "base.tsv"];
    let refused = compare(&files, &own);
    assert!(refused.code == 2 && refused.stderr.contains("leave out --catalog and --queries"), "{}", refused.shown());
}

#[test]
fn what_cannot_be_compared_is_refused_by_name() {
    let files = files();
    files.write("log.jsonl", "{\"doc_id\":0,\"metrics\":[\"acc\"],\"acc\":1.0}\n");
    files.write("odd.toml", "odd = 1\n");
    files.write("odd.json", "[]");
    let own = ["--catalog", "tools.json", "--queries", "queries.jsonl"];
    let table: [(&[&str], &str); 7] = [
        (&["pizza", "lexical"], "pizza: neither a file, nor REVISION:FILE, nor an engine (default, lexical"),
        (&["HEAD:results.json", "lexical"], "HEAD:results.json: "),
        (&["odd.toml", "lexical"], "odd.toml: no configuration of either engine: of the router: "),
        (&["odd.json", "lexical"], "odd.json: its form is not known"),
        (&["log.jsonl", "log.jsonl", "--measure", "bleu"], "it has no score `bleu`; there are acc"),
        (&[own[0], own[1], own[2], own[3], "base.tsv", "lexical", "--measure", "MAP"], "no measure `MAP`"),
        (
            &["base.tsv", "head.tsv"],
            "base.tsv: line 1: `send_mail` is no number; a run file needs --catalog and --queries",
        ),
    ];
    for (arguments, expected) in table {
        let refused = compare(&files, arguments);
        assert_eq!(refused.code, 2, "{arguments:?}: {}", refused.shown());
        assert!(refused.stderr.contains(expected), "{arguments:?}: {}", refused.stderr);
    }
    let same = compare(&files, &["log.jsonl", "log.jsonl"]);
    assert_eq!(same.code, 0, "{}", same.shown());
    assert!(same.stdout.contains("scores: 0 fell, 0 rose; p = 1.0000 (exact sign test)"), "{}", same.stdout);
    files.write("none.jsonl", "{\"id\": \"p\", \"query\": \"pizza\", \"relevant\": []}\n");
    let none = compare(&files, &["--catalog", "tools.json", "--queries", "none.jsonl", "lexical", "bm25"]);
    let expected = "`lexical` has no query with an answer, so there is nothing to compare";
    assert!(none.code == 2 && none.stderr.contains(expected), "{}", none.shown());
}

#[test]
fn a_workspace_is_what_engines_are_measured_on() {
    let files = files();
    // A checkout is nowhere near, and not needed.
    let init = files.run(&["bench", "init", "gate", "--catalog", "tools.json", "--queries", "queries.jsonl"]);
    assert_eq!(init.code, 0, "{}", init.shown());
    assert_eq!(files.run(&["bench", "run", "--root", "gate"]).code, 0);
    files.write("deaf.toml", "semantic = 0.0\n[fields]\nname = { weight = 0.0 }\ndescription = { weight = 0.0 }\n");
    let table: [(&[&str], i32, &str); 6] = [
        (&["lexical", "bm25"], 0, "recall@5, lexical -> bm25: same\n"),
        (&["default", "gate/results.json"], 0, "recall@5, default -> gate/results.json: same\n"),
        (&["gate/results.json", "default"], 0, "recall@5, gate/results.json -> default: same\n"),
        (&["lexical", "deaf.toml"], 1, "recall@5, lexical -> deaf.toml: regressed\n"),
        (&["deaf.toml", "lexical"], 0, "recall@5, deaf.toml -> lexical: improved\n"),
        (&["lexical", "minilm"], 2, "minilm: neither a file, nor REVISION:FILE, nor an engine (default, lexical"),
    ];
    for (arguments, code, expected) in table {
        let run = compare(&files, &[&["--root", "gate"], arguments].concat());
        assert_eq!(run.code, code, "{arguments:?}: {}", run.shown());
        assert!(run.stdout.starts_with(expected) || run.stderr.contains(expected), "{arguments:?}: {}", run.shown());
    }
    let nowhere = compare(&files, &["lexical", "bm25"]);
    let expected = "`lexical` has nothing to be measured on; name --catalog and --queries: neither gate.toml nor";
    assert!(nowhere.code == 2 && nowhere.stderr.contains(expected), "{}", nowhere.shown());
    files.write("context.toml", "[dedup]\nthreshold = 0.5\n");
    let context = compare(&files, &["--root", "gate", "context.toml", "context.toml"]);
    assert!(context.code == 2 && context.stderr.contains("no context scenarios"), "{}", context.shown());
}

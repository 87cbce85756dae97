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
      −.250 (90 % interval −.375 to −.150) over 40 queries, of which 10 differ; p = .0020
      a difference of .194 would be seen four times out of five; one of .010 takes 15,054 more queries
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
            "it has several engines; name one after the file, as in `FILE#best`; there are best, bm25",
        ),
        (format!("{results}#pizza"), "minilm", "it has no engine `pizza`; there are best, bm25"),
        (format!("{root}/scorecard/results/default.json#minilm"), "minilm", "it holds one engine; leave out `#minilm`"),
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
        (&["odd.toml", "lexical"], "odd.toml: not a configuration of either engine; for the router: "),
        (&["odd.json", "lexical"], "odd.json: its format is unknown"),
        (&["log.jsonl", "log.jsonl", "--measure", "bleu"], "it has no score `bleu`; there are acc"),
        (&[own[0], own[1], own[2], own[3], "base.tsv", "lexical", "--measure", "MAP"], "no measure `MAP`"),
        (
            &["base.tsv", "head.tsv"],
            "base.tsv: line 1: `send_mail` is not a number; a run file needs --catalog and --queries",
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
    // Its margin is that of the comparison, and measures are named in letters of either case.
    let gate = std::fs::read_to_string(files.path("gate/gate.toml")).unwrap();
    let wide = gate.replace("margin = 0.01", "margin = 0.99");
    assert_ne!(wide, gate);
    files.write("gate/gate.toml", wide);
    files.write("eval.json", eval(&files, &["x=base.tsv"]));
    files.write("worse.json", eval(&files, &["x=head.tsv"]));
    let within = compare(&files, &["--root", "gate", "eval.json", "worse.json", "--measure", "ndcg@10"]);
    assert!(
        within.code == 0 && within.stdout.starts_with("nDCG@10, eval.json -> worse.json: same\n"),
        "{}",
        within.shown()
    );
    files.write("gate/gate.toml", gate);
    let nowhere = compare(&files, &["lexical", "bm25"]);
    let expected =
        "`lexical` has nothing to be measured on; name --catalog and --queries\n  caused by: neither gate.toml nor";
    assert!(nowhere.code == 2 && nowhere.stderr.contains(expected), "{}", nowhere.shown());
    files.write("context.toml", "[dedup]\nthreshold = 0.5\n");
    let context = compare(&files, &["--root", "gate", "context.toml", "context.toml"]);
    assert!(context.code == 2 && context.stderr.contains("no context scenarios"), "{}", context.shown());
}

/// Two engines in one file, of which `wide` finds what only every other query needs.
fn eval(files: &Files, runs: &[&str]) -> String {
    let own = ["bench", "eval", "--catalog", "tools.json", "--queries", "queries.jsonl", "--format", "json"];
    let runs: Vec<&str> = runs.iter().flat_map(|run| ["--run", run]).collect();
    let run = files.run(&[&own[..], &runs].concat());
    assert_eq!(run.code, 0, "{}", run.shown());
    run.stdout
}

#[test]
fn one_engine_of_several_is_named_behind_the_file() {
    let files = files();
    files.write("both.json", eval(&files, &["all=base.tsv", "some=head.tsv"]));
    files.write("one.json", eval(&files, &["some=head.tsv"]));
    files.write("other.json", eval(&files, &["all=base.tsv", "more=base.tsv"]));
    let several = "it has several engines; name one after the file, as in `FILE#all`; there are all, some";
    let table: [(&str, &str, i32, &str); 12] = [
        ("both.json#all", "both.json#some", 1, "recall@5, both.json#all -> both.json#some: regressed\n"),
        ("both.json#some", "both.json#all", 0, "recall@5, both.json#some -> both.json#all: improved\n"),
        ("one.json", "both.json#all", 0, "recall@5, one.json -> both.json#all: improved\n"),
        ("one.json#some", "both.json", 0, "recall@5, one.json -> both.json#some: same\n"),
        ("both.json", "other.json#all", 0, "recall@5, both.json#all -> other.json#all: same\n"),
        ("both.json", "other.json#more", 2, several),
        ("both.json", "both.json", 2, several),
        ("both.json", "one.json", 2, several),
        ("both.json#none", "one.json", 2, "both.json: it has no engine `none`; there are all, some"),
        ("one.json#all", "both.json", 2, "one.json: it has no engine `all`; there are some"),
        ("both.json#", "one.json", 2, "both.json: there is no name after `#`"),
        ("lexical#all", "one.json", 2, "lexical: it is not a results file, so `#all` names nothing"),
    ];
    for (base, head, code, expected) in table {
        let run = compare(&files, &[base, head]);
        assert_eq!(run.code, code, "{base} {head}: {}", run.shown());
        assert!(run.stdout.starts_with(expected) || run.stderr.contains(expected), "{base} {head}: {}", run.shown());
    }
    let own = ["--catalog", "tools.json", "--queries", "queries.jsonl", "base.tsv#all", "both.json#all"];
    let run = compare(&files, &own);
    assert!(
        run.code == 2 && run.stderr.contains("base.tsv: a run file holds one engine; leave out `#all`"),
        "{}",
        run.shown()
    );
    // An engine of ours is measured now, and compared with what is recorded of it.
    let init = files.run(&["bench", "init", "gate", "--catalog", "tools.json", "--queries", "queries.jsonl"]);
    assert_eq!(init.code, 0, "{}", init.shown());
    let gate = std::fs::read_to_string(files.path("gate/gate.toml")).unwrap();
    let engines = "engines = [\"bm25\", \"lexical\"]\n";
    files.write("gate/gate.toml", gate.replace("engines = [\"default\"]\n", engines));
    assert_eq!(files.run(&["bench", "run", "--root", "gate"]).code, 0);
    for (base, head, code, expected) in [
        ("lexical", "gate/results.json", 0, "recall@5, lexical -> gate/results.json#lexical: same\n"),
        ("default", "gate/results.json#bm25", 0, "recall@5, default -> gate/results.json#bm25: same\n"),
        ("default", "gate/results.json", 2, "name one after the file, as in `FILE#bm25`; there are bm25, lexical"),
    ] {
        let run = compare(&files, &["--root", "gate", base, head]);
        assert_eq!(run.code, code, "{base} {head}: {}", run.shown());
        assert!(run.stdout.starts_with(expected) || run.stderr.contains(expected), "{base} {head}: {}", run.shown());
    }
    // What a workspace records and what `bench eval` prints are of one catalog, whatever engines they have.
    let pair = compare(&files, &["one.json", "gate/results.json#bm25"]);
    assert!(pair.code == 0 && pair.stdout.contains("over 40 queries, of which 10 differ"), "{}", pair.shown());
}

#[test]
fn queries_are_the_same_by_what_they_ask() {
    let files = files();
    let before = eval(&files, &["x=base.tsv"]);
    files.write("before.json", &before);
    let mut without: serde_json::Value = serde_json::from_str(&before).unwrap();
    without.as_object_mut().unwrap().remove("queries");
    files.write("without.json", without.to_string());
    let queries = |line: &dyn Fn(usize) -> (String, String, &'static str)| -> String {
        let line = |number: usize| {
            let (id, text, tool) = line(number);
            format!("{{\"id\": \"{id}\", \"query\": \"{text}\", \"relevant\": [\"{tool}\"]}}\n")
        };
        (0..40).map(line).collect()
    };
    let text = |number: usize| format!("a letter {number}");
    let table = [
        ("other ids", queries(&|number| (format!("r{number}"), text(number), "send_mail")), Some((40, 0))),
        (
            "ids that changed places",
            queries(&|number| (format!("q{}", 39 - number), text(number), "send_mail")),
            Some((40, 0)),
        ),
        ("other words", queries(&|number| (format!("q{number}"), format!("a door {number}"), "send_mail")), None),
        ("another tool", queries(&|number| (format!("q{number}"), text(number), "lock_door")), None),
        (
            "other words in half of them",
            queries(&|number| {
                (format!("q{number}"), if number < 20 { text(number) } else { "a door".to_owned() }, "send_mail")
            }),
            Some((20, 20)),
        ),
    ];
    for (what, queries, expected) in table {
        files.write("queries.jsonl", queries);
        let ids: Vec<String> = {
            let file = std::fs::read_to_string(files.path("queries.jsonl")).unwrap();
            let id = |line: &str| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_str().unwrap().to_owned()
            };
            file.lines().map(id).collect()
        };
        files.write("now.tsv", ids.iter().map(|id| format!("{id}\t1\tsend_mail\n")).collect::<String>());
        files.write("now.json", eval(&files, &["x=now.tsv"]));
        let asked = compare(&files, &["before.json", "now.json", "--changed-inputs"]);
        let own = ["bench", "eval", "--catalog", "tools.json", "--queries", "queries.jsonl", "--run", "x=now.tsv"];
        let baseline = files.run(&[&own[..], &["--baseline", "before.json", "--changed-inputs"]].concat());
        match expected {
            None => {
                let message = "`before.json` and `now.json` have no query in common: a query is the same when its id";
                assert!(asked.code == 2 && asked.stderr.contains(message), "{what}: {}", asked.shown());
                let message = "the baseline `x` and the queries file have no query in common";
                assert!(baseline.code == 2 && baseline.stderr.contains(message), "{what}: {}", baseline.shown());
            }
            Some((alike, _)) => {
                assert_eq!((asked.code, baseline.code), (0, 0), "{what}: {} {}", asked.shown(), baseline.shown());
                let over = format!("over {alike} queries, of which 0 differ");
                assert!(asked.stdout.contains(&over), "{what}: {}", asked.shown());
                assert!(baseline.stdout.contains(&over), "{what}: {}", baseline.shown());
            }
        }
    }
    // Without digests nothing says that a reworded query is another one.
    files.write("queries.jsonl", queries(&|number| (format!("q{number}"), format!("a door {number}"), "send_mail")));
    let own = ["bench", "eval", "--catalog", "tools.json", "--queries", "queries.jsonl", "--run", "x=now.tsv"];
    let reworded = files.run(&[&own[..], &["--baseline", "without.json", "--changed-inputs"]].concat());
    let message = "the baseline `x` has no digests of its queries, so it is unknown which of them are still the same";
    assert!(reworded.code == 2 && reworded.stderr.contains(message), "{}", reworded.shown());
    // A file without digests still holds the tools that its queries need.
    files.write("queries.jsonl", queries(&|number| (format!("q{number}"), text(number), "lock_door")));
    files.write("now.tsv", "q1\t1\tlock_door\n");
    files.write("now.json", eval(&files, &["x=now.tsv"]));
    let none = compare(&files, &["without.json", "now.json", "--changed-inputs"]);
    assert!(none.code == 2 && none.stderr.contains("have no query in common"), "{}", none.shown());
}

#[test]
fn the_results_of_a_workspace_are_named_by_their_ids() {
    let files = files();
    // Of forty queries the odd ones need the other tool, and its words are in half of those: ids sort otherwise than lines.
    let queries: String = (0..40)
        .map(|number| {
            let (words, tool) = if number % 2 == 0 { ("send a letter", "send_mail") } else { ("pizza", "lock_door") };
            format!("{{\"id\": \"q{number}\", \"query\": \"{words} {number}\", \"relevant\": [\"{tool}\"]}}\n")
        })
        .collect();
    files.write("queries.jsonl", queries);
    let init = files.run(&["bench", "init", "gate", "--catalog", "tools.json", "--queries", "queries.jsonl"]);
    assert_eq!(init.code, 0, "{}", init.shown());
    assert_eq!(files.run(&["bench", "run", "--root", "gate"]).code, 0);
    let same = compare(&files, &["--root", "gate", "default", "gate/results.json"]);
    assert!(same.code == 0 && same.stdout.contains("over 40 queries, of which 0 differ"), "{}", same.shown());
}

#[test]
fn odd_files_are_refused_with_their_place() {
    let files = files();
    let whole = eval(&files, &["x=base.tsv"]);
    files.write("whole.json", &whole);
    let change = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}: {whole}");
        whole.replacen(from, to, 1)
    };
    let rank = |rank: &str| {
        let mut value: serde_json::Value = serde_json::from_str(&whole).unwrap();
        value["evaluations"][0]["ranks"]["q7"] = serde_json::from_str(rank).unwrap();
        value.to_string()
    };
    files.write("empty.json", "");
    files.write("torn.json", &whole[..whole.len() / 2]);
    files.write("zero.json", rank("[0]"));
    files.write("text.json", rank("[\"1\"]"));
    files.write("huge.json", rank("[18446744073709551615]"));
    files.write("form.json", change("\"schema_version\": 1", "\"schema_version\": 7"));
    files.write("two.json", change("\"q1\": [", "\"q0\": ["));
    files.write("nan.tsv", "q1\tRR\t1\nq2\tRR\tNaN\n");
    files.write("inf.tsv", "q1\tRR\t1\nq2\tRR\t1e999\n");
    files.write("good.tsv", "q1\tRR\t1\nq2\tRR\t.5\n");
    files.write("else.tsv", "p1\tRR\t1\np2\tRR\t.5\n");
    files.write("bytes.json", [0xff_u8, 0xfe, 0x00, 0x01]);
    files.write("folder/x.json", "{}");
    let table: [(&[&str], &str); 15] = [
        (&["empty.json", "whole.json"], "empty.json: it is empty"),
        (&["torn.json", "whole.json"], "torn.json: it is not complete JSON: EOF while parsing"),
        (&["zero.json", "whole.json"], "zero.json: evaluation `x`, query `q7`: a rank is 0, and ranks count from 1"),
        (&["text.json", "whole.json"], "text.json: is it the results.json of a workspace"),
        (&["form.json", "whole.json"], "form.json: it has the form 7, and this is 1; record it again"),
        (&["two.json", "whole.json"], "query `q0` occurs twice at line"),
        (&["bytes.json", "whole.json"], "bytes.json: its format is unknown"),
        (&["folder", "whole.json"], "folder: it is a folder; name a file in it, such as folder/results.json"),
        (&["folder#x", "whole.json"], "folder: it is not a results file, so `#x` names nothing"),
        (&["nan.tsv", "good.tsv"], "nan.tsv: line 2: `RR` of item `q2` is NaN, which is not a number from"),
        (&["good.tsv", "inf.tsv"], "inf.tsv: line 2: `RR` of item `q2` is inf"),
        (&["good.tsv", "else.tsv"], "`good.tsv` and `else.tsv` have no query in common"),
        (&["good.tsv", "whole.json"], "`whole.json` holds ranks and `good.tsv` holds scores of `RR`"),
        (
            &["good.tsv#x", "good.tsv"],
            "good.tsv: the output of ir_measures by query holds one measurement; leave out `#x`",
        ),
        (&["#", "whole.json"], "there is no name after `#`"),
    ];
    for (arguments, expected) in table {
        let refused = compare(&files, arguments);
        assert_eq!(refused.code, 2, "{arguments:?}: {}", refused.shown());
        assert!(refused.stderr.contains(expected), "{arguments:?}: {}", refused.stderr);
    }
    let run = compare(&files, &["huge.json", "whole.json"]);
    assert!(
        run.code == 0 && run.stdout.starts_with("recall@5, huge.json -> whole.json: inconclusive"),
        "{}",
        run.shown()
    );
    let twice = compare(&files, &["whole.json", "whole.json", "--measure", "nDCG@18446744073709551615"]);
    assert_eq!(twice.code, 0, "{}", twice.shown());
    let huge = compare(&files, &["huge.json", "whole.json", "--measure", "nDCG@18446744073709551615"]);
    assert_eq!(huge.code, 0, "{}", huge.shown());
    // Scores are of any size.
    let log = |score: &dyn Fn(usize) -> f64| -> String {
        (0..40).map(|number| format!("q{number}\tcost\t{}\n", score(number))).collect()
    };
    files.write("high.tsv", log(&|number| 1e9 - number as f64));
    files.write("low.tsv", log(&|number| -1e9 + number as f64));
    let fell = compare(&files, &["high.tsv", "low.tsv"]);
    assert!(fell.code == 1 && fell.stdout.starts_with("cost, high.tsv -> low.tsv: regressed\n"), "{}", fell.shown());
}

/// A checkout with so many context scenarios: turns of a user that the prompt must hold, around a longer answer.
fn context_checkout(scenarios: usize) -> Files {
    let files = Files::new();
    files.write("scenarios/engines.toml", "[[engine]]\nname = \"default\"\nanalysis = \"a\"\n");
    for number in 0..scenarios {
        let name = format!("scenarios/context/s{number}");
        let parcels: Vec<String> = (0..60).map(|n| format!("parcel {n} weighs {} grams", n * 7 + number)).collect();
        let asked = format!("How heavy is parcel {number}? {}", "Look it up in the list of the depot. ".repeat(12));
        let log = [
            serde_json::json!({"type": "user_turn", "id": "u1", "text": asked}),
            serde_json::json!({"type": "agent_msg", "id": "a1", "text": parcels.join(", ")}),
            serde_json::json!({"type": "user_turn", "id": "u2", "text": "And the one after it?"}),
        ];
        files.write(&format!("{name}.jsonl"), log.map(|line| line.to_string() + "\n").concat());
        files.write(
            &format!("{name}.toml"),
            "analysis = \"a\"\norigin = \"embedded\"\nphase = \"answer\"\nquery = \"parcel\"\nrequired = [\"u1\", \"u2\"]\n",
        );
    }
    files.write("a.toml", "[budgets]\nanswer = 4000\n");
    files.write("b.toml", "[budgets]\nanswer = 60\n");
    files
}

#[test]
fn a_context_configuration_that_loses_what_is_required_has_regressed() {
    let files = context_checkout(8);
    let worse = compare(&files, &["a.toml", "b.toml"]);
    assert_eq!(worse.code, 1, "{}", worse.shown());
    assert!(worse.stdout.contains("\nkept, A -> B: regressed over 8 scenarios; "), "{}", worse.stdout);
    let row = worse.stdout.lines().find(|line| line.starts_with("s0 ")).unwrap();
    assert!(row.contains(" 1.000 ") && row.ends_with(" A"), "{row}");
    let better = compare(&files, &["b.toml", "a.toml"]);
    assert!(better.code == 0 && better.stdout.contains("\nkept, A -> B: improved over"), "{}", better.shown());
    let same = compare(&files, &["a.toml", "a.toml"]);
    assert!(same.code == 0 && same.stdout.contains("\nkept, A -> B: same over"), "{}", same.shown());
    let json = compare(&files, &["a.toml", "b.toml", "--format", "json"]);
    let found: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json.code, &found["verdict"]["word"]), (1, &"regressed".into()), "{}", json.shown());
    assert_eq!(found["configurations"][0]["kept"], 1.0);
    // By one scenario alone nothing is shown, and what it takes is said.
    let files = context_checkout(1);
    let one = compare(&files, &["a.toml", "b.toml"]);
    assert!(one.code == 0 && one.stdout.contains("kept, A -> B: inconclusive over 1 scenarios"), "{}", one.shown());
    assert!(one.stdout.contains(" more scenarios\n"), "{}", one.stdout);

    files.write("b.toml", "[budgets]\nanswer = 0\n");
    let same = compare(&files, &["default", "a.toml"]);
    assert_eq!(same.code, 0, "{}", same.shown());
    for option in [&["--measure", "fidelity"][..], &["--changed-inputs"]] {
        let refused = compare(&files, &[&["a.toml", "a.toml"], option].concat());
        assert!(
            refused.code == 2 && refused.stderr.contains(&format!("leave out {}", option[0])),
            "{}",
            refused.shown()
        );
    }
    let refused = compare(&files, &["a.toml", "b.toml"]);
    let expected = "b.toml\n  caused by: `budgets.answer` is 0; it must be from 1 to";
    assert!(refused.code == 2 && refused.stderr.contains(expected), "{}", refused.shown());
    std::fs::remove_dir_all(files.path("scenarios/context")).unwrap();
    for arguments in [&["bench", "compare", "a.toml", "a.toml"][..], &["bench", "sweep"]] {
        let nothing = files.run(arguments);
        let expected = "no scenario of scenarios/context is on this machine";
        assert!(nothing.code == 2 && nothing.stderr.contains(expected), "{arguments:?}: {}", nothing.shown());
    }
}

#[test]
fn a_sweep_of_the_context_engine_names_what_nothing_beats() {
    let files = context_checkout(2);
    let swept = files.run(&["bench", "sweep", "--what", "context", "--format", "json"]);
    assert_eq!(swept.code, 0, "{}", swept.shown());
    let found: serde_json::Value = serde_json::from_str(&swept.stdout).unwrap();
    let shown = found["configurations"].as_array().unwrap();
    assert_eq!((&shown[0]["name"], &found["in_sample"]), (&"default".into(), &true.into()));
    let on_front: Vec<&serde_json::Value> = shown.iter().filter(|one| one["on_front_of_kept"] == true).collect();
    assert!(!on_front.is_empty(), "{}", swept.stdout);
    // Nothing that is shown beats what is on the front.
    let point = |one: &serde_json::Value| (one["tokens"].as_u64().unwrap(), one["kept"].as_f64().unwrap());
    for one in &on_front {
        let (tokens, kept) = point(one);
        let beats = |other: &(u64, f64)| other.0 <= tokens && other.1 >= kept && (other.0 < tokens || other.1 > kept);
        assert_eq!(shown.iter().map(point).find(beats), None, "{one}");
    }
    let compared = &shown[0]["kept_against_first"];
    assert_eq!((compared["p"].as_f64(), compared["p_holm"].as_f64()), (Some(1.0), Some(1.0)), "{compared}");
    assert_eq!(found["held_out"]["kept"].as_f64().map(|kept| (0.0..=1.0).contains(&kept)), Some(true));
    let text = files.run(&["bench", "sweep"]);
    assert!(text.code == 0 && text.stdout.starts_with("configuration"), "{}", text.shown());
    assert!(text.stdout.contains("corrected for 143 comparisons of each measure (Holm)"), "{}", text.stdout);
}

#[test]
fn a_sweep_tries_the_values_that_it_is_given() {
    let files = context_checkout(1);
    let names = |arguments: &[&str]| -> Vec<String> {
        let swept = files.run(&[&["bench", "sweep", "--all", "--format", "json"], arguments].concat());
        assert_eq!(swept.code, 0, "{}", swept.shown());
        let found: serde_json::Value = serde_json::from_str(&swept.stdout).unwrap();
        let all = found["configurations"].as_array().unwrap();
        all.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let asked = ["--vary", "summary=200", "--vary", "dedup=0.85", "--vary", "budget=0.25,1", "--vary", "weights=kind"];
    assert_eq!(
        names(&asked),
        ["default", "summary 200, dedup 0.85, budget 0.25, kind .60", "summary 200, dedup 0.85, budget 1.00, kind .60"]
    );
    let tools = r#"[{"name": "send_mail", "description": "Send a letter"}]"#;
    files.write("tools.json", tools);
    files.write("queries.jsonl", r#"{"id": "q", "query": "a letter", "relevant": ["send_mail"]}"#);
    let init = files.run(&["bench", "init", "gate", "--catalog", "tools.json", "--queries", "queries.jsonl"]);
    assert_eq!(init.code, 0, "{}", init.shown());
    let swept = names(&["--root", "gate", "--vary", "k1=0.7", "--vary", "name-x=3"]);
    assert!(swept.contains(&"k1 0.7".to_owned()) && swept.contains(&"name x 3".to_owned()), "{swept:?}");
    assert!(!swept.contains(&"k1 0.6".to_owned()) && swept.contains(&"k3 0".to_owned()), "{swept:?}");
    let table: [(&[&str], &str); 7] = [
        (&["--vary", "summary"], "`summary` is not PARAMETER=VALUE,VALUE"),
        (&["--vary", "k1=1"], "no parameter `k1` in this grid; there are summary, dedup, budget, weights"),
        (&["--vary", "summary=3"], "summary=3: `firewall.summary_tokens` is 3; it must be from 16 to"),
        (&["--vary", "weights=most"], "the grid itself tries default, recency, similarity, kind"),
        (&["--vary", "dedup=1", "--vary", "dedup=2"], "`dedup` is given more than once"),
        (&["--what", "routing", "--vary", "b=2"], "b=2: `fields.name` is 2; it must be a `b` from 0 to 1"),
        (&["--root", "gate", "--vary", "summary=200"], "no parameter `summary` in this grid; there are name share"),
    ];
    for (arguments, expected) in table {
        let refused = files.run(&[&["bench", "sweep"], arguments].concat());
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{arguments:?}: {}", refused.shown());
        assert!(refused.stderr.contains(expected), "{arguments:?}: {}", refused.stderr);
    }
    let many: Vec<String> = (100..150).map(|cap| cap.to_string()).collect();
    let many = files.run(&["bench", "sweep", "--vary", &format!("summary={}", many.join(","))]);
    assert!(many.code == 2 && many.stderr.contains("1800 configurations are more than 400"), "{}", many.shown());
}

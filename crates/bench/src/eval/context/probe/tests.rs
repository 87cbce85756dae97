use proptest::prelude::*;

use super::*;

/// One text of every kind.
fn samples() -> Vec<(Kind, String)> {
    let rows: Vec<String> = (0..40)
        .map(|n| {
            format!(r#"{{"id": {n}, "city": "Town {n}", "units": {}, "state": "{}"}}"#, n % 7, ["open", "shut"][n % 2])
        })
        .collect();
    let wrapped = format!(
        r#"{{"ok": true, "rows": [{}], "total": 40, "warning": "Results limited to 40 rows"}}"#,
        rows.join(", ")
    );
    let python = format!("[{}]", rows.join(", ").replace('"', "'"));
    let header: String = (0..30).map(|n| format!(r#"[{n}, "P-{n:02}", {}.5]"#, n % 4)).collect::<Vec<_>>().join(",");
    let tree = r#"{"service": "billing", "limits": {"memory": "512Mi", "replicas": 3}, "hosts": [{"name": "alpha-1", "ports": [8080, 9090]}, {"name": "beta-2", "ports": []}], "error": {"message": "quota exceeded for project"}}"#;
    let folders = r#"[{"name": "src", "type": "directory", "children": [{"name": "main.rs", "type": "file"}, {"name": "util", "type": "directory", "children": [{"name": "text.rs", "type": "file"}]}]}, {"name": "README.md", "type": "file"}]"#;
    let csv: String = (0..30).map(|n| format!("{n},Person {n},{}\n", n * 3 % 11)).collect();
    let log: String = (0..40)
        .map(|n| {
            format!(
                "2026-03-01T10:{n:02}:00Z {} worker {n} handled request\n",
                ["INFO", "ERROR", "INFO", "WARN"][n % 4]
            )
        })
        .collect();
    let diff = "commit 60a47afb4a1c817b399e04497df29c1e338a2d0e\nAuthor: Ada <ada@example.com>\n\ndiff --git a/src/one.rs b/src/one.rs\n--- a/src/one.rs\n+++ b/src/one.rs\n@@ -1,2 +1,3 @@\n fn one() {\n-    old_call();\n+    new_call();\n+    other_call();\n--- /dev/null\n+++ b/docs/two.md\n@@ -0,0 +1,2 @@\n+--- dashes\n++++ plusses\n";
    let code = "use std::fmt;\n\npub struct Widget {\n    size: u32,\n}\n\nimpl Widget {\n    pub fn resize(&mut self, size: u32) {\n        self.size = size;\n    }\n}\n\nfn helper_function() -> u32 {\n    42\n}\n";
    let listing = "[FILE] alpha.rs    12.5 KB\n[FILE] beta.rs    3.1 KB\n[DIR] gamma\n[FILE] delta.rs    900 B\n\nTotal: 3 files, 1 directories\n";
    let trace = "Traceback (most recent call last):\n  File \"/app/main.py\", line 10, in run\n    go()\n  File \"/app/work.py\", line 321, in go\n    raise ValueError(\"bad amount\")\nValueError: bad amount for order 77\n";
    let html = "<!DOCTYPE html>\n<html><head><title>Release notes</title></head>\n<body><h1>Version four</h1>\n<p>Everything is faster than before.</p>\n<h2>Removed features</h2>\n</body></html>\n";
    let markdown = "# Guide to widgets\n\nWidgets are small machines.\n\n## Installing widgets\n\n- unpack the box\n- plug it in\n\n## Support contacts\n\nWrite to the help desk.\n";
    let pairs = "size: 225570\ncreated: Saturday\nowner: root\npermissions: 644\nisFile: true\n";
    let plain = "The order was placed on Monday and left the warehouse.\nIt failed: address not deliverable in the given zone.\n";
    [
        (Kind::Rows, wrapped),
        (Kind::Rows, python),
        (Kind::Rows, rows.join("\n")),
        (Kind::Rows, format!(r#"{{"range": "A1:C31", "values": [["id", "product", "price"],{header}]}}"#)),
        (Kind::Tree, tree.to_owned()),
        (Kind::Tree, folders.to_owned()),
        (Kind::Csv, format!("id,name,score\n{csv}")),
        (Kind::Log, log),
        (Kind::Diff, diff.to_owned()),
        (Kind::Code, code.to_owned()),
        (Kind::Listing, listing.to_owned()),
        (Kind::Trace, trace.to_owned()),
        (Kind::Html, html.to_owned()),
        (Kind::Markdown, markdown.to_owned()),
        (Kind::Keyvalue, pairs.to_owned()),
        (Kind::Plain, plain.to_owned()),
    ]
    .into()
}

#[test]
fn every_kind_is_asked_about() {
    let asked: Vec<String> = samples()
        .iter()
        .map(|(kind, text)| {
            let asked = questions(text);
            assert_eq!(asked.kind, *kind, "{text}");
            let count = |class| asked.probes.iter().filter(|probe| probe.class == class).count();
            let counts: Vec<String> = Class::ALL.iter().map(|class| format!("{class} {}", count(*class))).collect();
            format!("{kind:<8} {}", counts.join(" ").trim_end())
        })
        .collect();
    insta::assert_snapshot!(asked.join("\n"), @r"
    rows     shape 2 ends 4 stat 4 sum 1 leaf 3 error 0 outline 0 needle 4
    rows     shape 2 ends 4 stat 4 sum 1 leaf 0 error 0 outline 0 needle 5
    rows     shape 2 ends 4 stat 4 sum 1 leaf 0 error 0 outline 0 needle 5
    rows     shape 2 ends 4 stat 3 sum 1 leaf 1 error 0 outline 0 needle 4
    tree     shape 1 ends 2 stat 0 sum 0 leaf 4 error 1 outline 0 needle 4
    tree     shape 1 ends 2 stat 0 sum 0 leaf 0 error 0 outline 0 needle 3
    csv      shape 2 ends 3 stat 3 sum 1 leaf 0 error 0 outline 0 needle 5
    log      shape 1 ends 2 stat 3 sum 0 leaf 0 error 1 outline 0 needle 4
    diff     shape 1 ends 2 stat 4 sum 0 leaf 2 error 0 outline 2 needle 0
    code     shape 1 ends 1 stat 0 sum 0 leaf 0 error 0 outline 3 needle 4
    listing  shape 2 ends 2 stat 0 sum 0 leaf 1 error 0 outline 0 needle 2
    trace    shape 1 ends 2 stat 0 sum 0 leaf 0 error 1 outline 0 needle 3
    html     shape 0 ends 2 stat 0 sum 0 leaf 1 error 0 outline 2 needle 2
    markdown shape 1 ends 2 stat 0 sum 0 leaf 0 error 0 outline 3 needle 4
    keyvalue shape 1 ends 2 stat 0 sum 0 leaf 3 error 0 outline 0 needle 2
    plain    shape 1 ends 2 stat 0 sum 0 leaf 0 error 1 outline 0 needle 2
    ");
}

#[test]
fn a_statement_answers_and_silence_does_not() {
    for (kind, text) in samples() {
        for probe in questions(&text).probes {
            assert!(probe.survives(&Haystack::new(&probe.statement())), "{kind}: {probe:?}");
            assert!(!probe.survives(&Haystack::new("")), "{kind}: {probe:?}");
            assert!(!probe.survives(&Haystack::new("nothing of the kind")), "{kind}: {probe:?}");
        }
    }
}

#[test]
fn the_whole_result_answers_what_it_says_itself() {
    for (kind, text) in samples() {
        let whole = Haystack::new(&text);
        for probe in questions(&text).probes {
            let said = matches!(probe.class, Class::Ends | Class::Leaf | Class::Error | Class::Outline | Class::Needle);
            assert!(!said || probe.survives(&whole), "{kind}: {probe:?}");
        }
    }
}

#[test]
fn answers_are_those_of_the_content() {
    let shown = |text: &str, class: Class| -> Vec<String> {
        questions(text).probes.iter().filter(|probe| probe.class == class).map(Probe::statement).collect()
    };
    let of = |wanted: Kind| samples().into_iter().find(|(kind, _)| *kind == wanted).unwrap().1;
    assert_eq!(shown(&of(Kind::Rows), Class::Stat), ["id: 0 | 39", "city: 40", "units: 0 | 6", "state: 2"]);
    assert_eq!(shown(&of(Kind::Rows), Class::Sum), ["units: 115"]);
    assert_eq!(shown(&of(Kind::Rows), Class::Leaf), ["ok: true", "total: 40", "warning: Results limited to 40 rows"]);
    assert_eq!(shown(&of(Kind::Diff), Class::Shape), ["files: 2"]);
    assert_eq!(shown(&of(Kind::Diff), Class::Stat), ["+: 4", "-: 1", "one.rs: 2", "two.md: 2"]);
    assert_eq!(shown(&of(Kind::Log), Class::Stat), ["ERROR: 10", "INFO: 20", "WARN: 10"]);
    assert_eq!(shown(&of(Kind::Trace), Class::Error), ["ValueError: bad amount for order 77"]);
    assert_eq!(shown(&of(Kind::Listing), Class::Shape), ["files: 3", "directories: 1"]);
    assert_eq!(
        shown(&of(Kind::Markdown), Class::Outline),
        [": Guide to widgets", ": Installing widgets", ": Support contacts"]
    );
}

proptest! {
    #[test]
    fn any_text_is_asked_about_without_failing(text in "[a-z0-9{}\\[\\]\"':,.<>/#@+\\- \\n]{0,300}") {
        let asked = questions(&text);
        prop_assert_eq!(&asked, &questions(&text));
        for probe in asked.probes {
            prop_assert!(!probe.survives(&Haystack::new("")));
        }
    }
}

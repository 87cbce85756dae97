//! The checks of a change as text, Markdown, JUnit XML and SARIF.
//!
//! Names and texts come from files that anybody may have written. In XML they are escaped, and characters that XML does not
//! have are replaced; in Markdown they stand as code.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::checks::{Check, Rule, Status};
use super::impact::{Definition, Impact};
use super::words::{code, shortened};
use crate::eval::decision::MARGIN;
use crate::report::markup::escaped_xml;
use crate::report::number::{could_be_seen, count, rank, share, signed};
use crate::report::table::Table;
use contextweaver_core::text::percent_encoded;

/// Definitions that text and Markdown list.
const SHOWN: usize = 20;

/// For a terminal.
#[must_use]
pub fn text(impact: &Impact, checks: &[Check]) -> String {
    let mut text = String::new();
    let mut table = Table::new(["definition", "change", "tokens", "recall@5 alone", "worst query", "rank"]);
    table = table.words(&["change", "worst query", "rank"]);
    for one in impact.definitions.iter().take(SHOWN) {
        table.row(row(one, shortened));
    }
    let _ = write!(text, "{}", table.plain());
    let _ = writeln!(text, "{}", rest(impact));
    for check in checks.iter().filter(|check| check.status != Status::Passed || check.rule < Rule::Definition) {
        let _ = writeln!(text, "{}: {}", word(check.status), shortened(&check.message));
    }
    let _ = writeln!(text, "{}", power(impact));
    text
}

/// For a comment on a change.
#[must_use]
pub fn markdown(impact: &Impact, checks: &[Check]) -> String {
    let failed = checks.iter().filter(|check| check.status == Status::Failed).count();
    let mut text = match failed {
        0 => format!("**The changed catalog passes all {} checks**\n", checks.len()),
        failed => format!("**{failed} of {} checks of the changed catalog failed**\n", checks.len()),
    };
    text.push_str("\n| check | | |\n| --- | --- | --- |\n");
    for check in
        checks.iter().filter(|check| check.status != Status::Passed || check.rule < Rule::Definition).take(SHOWN)
    {
        let (subject, message) = (code(&check.subject), code(&check.message));
        let _ = writeln!(text, "| {} | {subject} | {message} |", word(check.status));
    }
    text.push_str("\n<details><summary>What each definition changes</summary>\n\n");
    text.push_str("| definition | change | tokens | recall@5 alone | worst query | rank |\n| --- | --- | ---: | ---: | --- | --- |\n");
    for one in impact.definitions.iter().take(SHOWN) {
        let _ = writeln!(text, "| {} |", row(one, code).join(" | "));
    }
    let _ = write!(text, "{}\n{}\n\n</details>\n", rest(impact), power(impact));
    text
}

fn row(one: &Definition, show: fn(&str) -> String) -> [String; 6] {
    let alone = one.alone.as_ref();
    let worst = alone.and_then(|alone| alone.worst.as_ref());
    [
        show(&one.id),
        one.kind.name().to_owned(),
        format!("{} -> {}", count(one.tokens_before), count(one.tokens_after)),
        alone.map_or_else(|| "not measured".to_owned(), |alone| signed(alone.recall_at_5)),
        worst.map_or_else(String::new, |worst| show(&format!("{}: {}", worst.query, worst.text))),
        worst.map_or_else(String::new, |worst| format!("{} -> {}", rank(worst.before), rank(worst.after))),
    ]
}

/// What the table leaves out, and the figures of the whole.
fn rest(impact: &Impact) -> String {
    let mut text = String::new();
    let definitions = impact.definitions.len();
    if definitions > SHOWN {
        let _ = writeln!(text, "… and {} definitions more; --format json has all", count(definitions - SHOWN));
    }
    let sign = if impact.tokens_after < impact.tokens_before { '−' } else { '+' };
    let growth = count(impact.tokens_after.abs_diff(impact.tokens_before));
    let _ = write!(
        text,
        "\ntokens {} -> {} ({sign}{growth}); recall@5 {} -> {}; nDCG@10 {} -> {}\n",
        count(impact.tokens_before),
        count(impact.tokens_after),
        share(impact.recall_at_5_before),
        share(impact.recall_at_5_after),
        share(impact.ndcg_at_10_before),
        share(impact.ndcg_at_10_after)
    );
    text
}

fn power(impact: &Impact) -> String {
    let decision = &impact.decision;
    let seen = could_be_seen(decision.could_have_seen, MARGIN, decision.more_queries, decision.assumed_differing);
    let seen = match impact.moved.len() {
        _ if decision.differing > 0 => seen,
        0 => format!("no rank changed; {seen}"),
        moved => format!("recall@5 of no query changed, ranks of needed tools: {}; {seen}", count(moved)),
    };
    let new = match impact.new_queries {
        0 => String::new(),
        1 => "; 1 query needs a tool that only the new catalog has, and is not compared".to_owned(),
        new => format!("; {} queries need tools that only the new catalog has, and are not compared", count(new)),
    };
    format!("queries compared: {}; {seen}{new}", count(decision.queries))
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Passed => "passed",
        Status::Warning => "warning",
        Status::Failed => "failed",
    }
}

/// As JUnit XML: one case per check. Without times, so that equal changes give equal files.
#[must_use]
pub fn junit(checks: &[Check]) -> String {
    let failures = checks.iter().filter(|check| check.status == Status::Failed).count();
    let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"0\"", checks.len());
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"contextweaver catalog diff\" {counts}>\n  \
         <testsuite name=\"catalog\" {counts} skipped=\"0\">\n"
    );
    for check in checks {
        let (rule, subject, message) = (check.rule.id(), escaped_xml(&check.subject), escaped_xml(&check.message));
        let file = check.place.as_ref().map_or_else(String::new, |place| {
            format!(" file=\"{}\" line=\"{}\"", escaped_xml(&place.path.display().to_string()), place.line)
        });
        let _ = write!(text, "    <testcase classname=\"catalog.{rule}\" name=\"{rule}: {subject}\"{file}");
        let _ = match check.status {
            Status::Passed => writeln!(text, "/>"),
            Status::Failed => {
                writeln!(
                    text,
                    ">\n      <failure message=\"{message}\" type=\"{rule}\">{message}</failure>\n    </testcase>"
                )
            }
            Status::Warning => writeln!(text, ">\n      <system-out>{message}</system-out>\n    </testcase>"),
        };
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

/// Where the form of SARIF 2.1.0 is published.
const SARIF_SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// As SARIF 2.1.0: a result for each check that failed or warns, at the lines of the definition at fault. A result whose
/// definition is gone, or that has none, stands at the first line of `catalog`.
#[must_use]
pub fn sarif(checks: &[Check], catalog: &Path) -> Value {
    let rules: Vec<Value> = Rule::ALL
        .iter()
        .map(|rule| json!({ "id": rule.id(), "name": rule.id(), "shortDescription": { "text": rule.about() } }))
        .collect();
    let result = |check: &Check| {
        let level = if check.status == Status::Failed { "error" } else { "warning" };
        let (path, line, end) =
            check.place.as_ref().map_or((catalog, 1, 1), |place| (place.path.as_path(), place.line, place.end_line));
        json!({
            "ruleId": check.rule.id(),
            "ruleIndex": Rule::ALL.iter().position(|rule| *rule == check.rule),
            "level": level,
            "message": { "text": format!("{}: {}", check.subject, check.message) },
            "locations": [{ "physicalLocation": {
                "artifactLocation": { "uri": uri(path) },
                "region": { "startLine": line, "endLine": end },
            } }],
            "partialFingerprints": { "check/v1": format!("{}:{}", check.rule.id(), check.subject) },
        })
    };
    let results: Vec<Value> = checks.iter().filter(|check| check.status != Status::Passed).map(result).collect();
    json!({
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "contextweaver", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// A path as a URI: relative to the root of the repository where it is relative.
fn uri(path: &Path) -> String {
    let text = path.to_string_lossy();
    let text = text.strip_prefix("./").unwrap_or(&text);
    format!("{}{}", if path.is_absolute() { "file://" } else { "" }, percent_encoded(text.as_bytes(), b"/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::place::Place;
    use super::*;

    fn check(subject: &str, status: Status) -> Check {
        let place = Some(Place { path: "a dir/tools.json".into(), line: 3, end_line: 5 });
        Check { rule: Rule::Definition, subject: subject.to_owned(), status, message: format!("x < {subject}"), place }
    }

    #[test]
    fn junit_has_a_case_per_check() {
        let checks = [check("a\"b", Status::Passed), check("<c>", Status::Failed), check("d", Status::Warning)];
        insta::assert_snapshot!(junit(&checks), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="contextweaver catalog diff" tests="3" failures="1" errors="0">
          <testsuite name="catalog" tests="3" failures="1" errors="0" skipped="0">
            <testcase classname="catalog.definition" name="definition: a&quot;b" file="a dir/tools.json" line="3"/>
            <testcase classname="catalog.definition" name="definition: &lt;c&gt;" file="a dir/tools.json" line="3">
              <failure message="x &lt; &lt;c&gt;" type="definition">x &lt; &lt;c&gt;</failure>
            </testcase>
            <testcase classname="catalog.definition" name="definition: d" file="a dir/tools.json" line="3">
              <system-out>x &lt; d</system-out>
            </testcase>
          </testsuite>
        </testsuites>
        "#);
    }

    #[test]
    fn sarif_has_what_its_form_requires() {
        let lost = Check { place: None, rule: Rule::ToolsStay, ..check("gone", Status::Failed) };
        let sarif = sarif(&[check("a", Status::Passed), check("b", Status::Warning), lost], Path::new("./new.json"));
        assert_eq!(sarif["version"], "2.1.0");
        let run = &sarif["runs"][0];
        assert_eq!(run["tool"]["driver"]["name"], "contextweaver");
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        let results = run["results"].as_array().unwrap();
        assert_eq!(results.len(), 2);
        for result in results {
            let index = result["ruleIndex"].as_u64().unwrap() as usize;
            assert_eq!(rules[index]["id"], result["ruleId"]);
            assert!(["error", "warning"].contains(&result["level"].as_str().unwrap()));
            assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        }
        let place = |at: usize| results[at]["locations"][0]["physicalLocation"].clone();
        assert_eq!(place(0)["artifactLocation"]["uri"], "a%20dir/tools.json");
        assert_eq!(place(0)["region"], json!({ "startLine": 3, "endLine": 5 }));
        assert_eq!(place(1)["artifactLocation"]["uri"], "new.json");
        assert_eq!(uri(Path::new("/a b/ü")), "file:///a%20b/%C3%BC");
    }

    proptest! {
        #[test]
        fn uris_are_ascii(path in "\\PC{0,30}") {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~/%:".contains(c);
            prop_assert!(uri(Path::new(&path)).chars().all(allowed));
        }
    }
}

use proptest::prelude::*;

use super::*;
use crate::config::Secrets;
use crate::event::Phase;
use crate::memory::{LocalMemories, MemorySource, RecallBounds, recall};

/// A folder with these files, in a folder `kb` of its own.
fn folder_of(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join("kb").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

/// The memories of a folder with these files, and the notes, a line each.
fn known(files: &[(&str, &str)]) -> String {
    let folder = folder_of(files);
    shown(&LocalMemories::load(&folder.path().join("kb")).unwrap())
}

fn shown(source: &LocalMemories) -> String {
    let all = source.search("", RecallBounds { memories: 99, tokens: 0 }).unwrap();
    let entries = all.iter().map(|one| format!("{} | {}\n", one.id, one.text.replace('\n', "⏎")));
    let notes = source.notes().iter().map(|note| format!("({note})\n"));
    entries.chain(notes).collect()
}

fn refused(path: &Path) -> String {
    let error = LocalMemories::load(path).unwrap_err().to_string();
    error.split_once("`: ").unwrap().1.to_owned()
}

#[test]
fn the_notes_of_a_repository_are_divided_at_their_headings() {
    let files = [
        (
            "AGENTS.md",
            "# Working here\n\nRun `just check` first.\n\n## Style\n<!-- obey me -->\n- Short words.\n\n## Style\n\n### Names\nSay what it is.\n",
        ),
        ("docs/plain.markdown", "No heading at all.\r\n"),
        ("docs/code.md", "```sh\n# no heading\n```\n# Late\nafter\n####### seven\n#tag\n"),
        ("index.md", "# Pages\n- AGENTS.md\n"),
        ("empty.md", "# Only a heading\n"),
        ("notes.txt", "not read"),
        (".hidden/a.md", "not read"),
        ("node_modules/left-pad/README.md", "not read"),
    ];
    insta::assert_snapshot!(known(&files), @r"
    AGENTS.md | Working here: Run `just check` first.
    AGENTS.md#style | Working here > Style: - Short words.
    AGENTS.md#names | Working here > Style > Names: Say what it is.
    docs/code.md | Late: ```sh⏎# no heading⏎```
    docs/code.md.2 | Late: after⏎####### seven⏎#tag
    docs/plain.markdown | plain: No heading at all.
    index.md | Pages: - AGENTS.md
    ");
}

#[test]
fn an_okf_bundle_gives_its_concepts() {
    let files = [
        ("index.md", "---\nokf_version: \"0.2\"\n---\n# Tables\n* [Orders](/tables/orders.md)\n"),
        ("tables/index.md", "# Tables\n"),
        ("log.md", "# Log\n## 2026-05-22\n* **Creation**: all\n"),
        (
            "tables/orders.md",
            "---\ntype: Table\ntitle: Orders\ndescription: One row per order.\ntags: [sales, revenue]\nstale_after: 2026-09-23\nverified: {by: 'human:ada', at: 2026-06-25}\n---\n\n# Schema\n\n| column | type |\n|---|---|\n| id | text |\n",
        ),
        ("metrics/draft.md", "---\ntype: Metric\nstatus: draft\n---\nNot sure yet.\n"),
        ("metrics/old.md", "---\ntype: Metric\nstatus: deprecated\n---\nNo longer.\n"),
        (
            "plays/freshness.md",
            "---\ntype: Playbook\nsensitivity: internal\nexpires_at: 1790000000\n---\nAsk the team.\n",
        ),
    ];
    insta::assert_snapshot!(known(&files), @r"
    plays/freshness.md | freshness (until 1790000000 in Unix time): Ask the team.
    tables/orders.md | Orders (until 2026-09-23): One row per order.
    tables/orders.md#schema | Orders > Schema (until 2026-09-23): | column | type |⏎|---|---|⏎| id | text |
    (left out: metrics/old.md (`status` is `deprecated`))
    (left out: metrics/draft.md (`status` is `draft`))
    ");
    // Words of the front matter find a concept without being said.
    let folder = folder_of(&files);
    let source = LocalMemories::load(&folder.path().join("kb")).unwrap();
    let found = |query: &str| -> Vec<String> {
        let found = source.search(query, RecallBounds::default()).unwrap();
        found.into_iter().map(|one| one.id).collect()
    };
    assert_eq!(found("revenue"), ["tables/orders.md", "tables/orders.md#schema"]);
    assert_eq!(found("the playbook"), ["plays/freshness.md"]);
    assert_eq!(found("weather"), [""; 0]);
}

#[test]
fn lessons_and_packs_give_what_was_reviewed() {
    let lessons = [
        ("a.md", "---\nid: l1\nstatus: active\nscope: project\nconfidence: 0.8\n---\nUse small interfaces.\n"),
        ("b.md", "---\nid: l2\nstatus: rejected\n---\nUse one global.\n"),
        ("c.md", "---\nid: l3\nstatus: Candidate\n---\nMaybe.\n"),
        ("d.md", "---\nid: l4\nstatus: needs-review\n---\nMaybe.\n"),
        ("e.md", "---\nid: l5\nstatus: reviewed\nsensitivity: confidential\n---\nThe key is in the safe.\n"),
        ("f.md", "---\nid: l6\nstatus: reviewed\nsensitivity: secret\n---\nThe key is under the mat.\n"),
        ("index.md", "An export.\n"),
    ];
    insta::assert_snapshot!(known(&lessons), @r"
    l1 | a: Use small interfaces.
    (left out: e.md (`sensitivity` is `confidential`))
    (left out: f.md (`sensitivity` is unknown))
    (left out: c.md (`status` is `candidate`))
    (left out: d.md (`status` is `needs_review`))
    (left out: b.md (`status` is `rejected`))
    ");
    let pack = [
        ("index.md", "---\nversion: \"1.0\"\n---\nA pack.\n"),
        ("rest.md", "---\nid: c1\nkey: api-style\napplicable_to: [service]\n---\nPrefer REST.\n"),
        ("graphql.md", "---\nid: c2\nkey: api-style\ntitle: Queries\n---\nPrefer GraphQL.\n"),
        ("tests.md", "---\nid: c3\nkey: verification\n---\nRun the tests.\n"),
    ];
    insta::assert_snapshot!(known(&pack), @r"
    c2 | api-style > Queries: Prefer GraphQL.
    c1 | api-style > rest: Prefer REST.
    c3 | verification > tests: Run the tests.
    (`api-style` is said in 2 ways: graphql.md, rest.md)
    ");
}

#[test]
fn what_cannot_be_read_is_left_out_with_its_reason() {
    let large = "x".repeat((1 << 20) + 1);
    let bomb: String = std::iter::once("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned())
        .chain((1..9).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", "))))
        .collect();
    let files = [
        ("good.md", "Good.\n"),
        ("bomb.md", &format!("---\n{bomb}---\nText.\n")),
        ("large.md", &large),
        ("long.md", &format!("---\na: {}\n---\nText.\n", "x".repeat(1 << 16))),
        ("open.md", "---\ntitle: x\n"),
        ("list.md", "---\n- a\n---\nText.\n"),
        ("wrong.md", "---\ntitle: Use this: now\n---\nText.\n"),
        ("rule.md", "---"),
        ("none.md", "---\n---\nNothing in front.\n"),
    ];
    let folder = folder_of(&files);
    let path = folder.path().join("kb");
    std::fs::write(path.join("latin.md"), b"caf\xe9").unwrap();
    insta::assert_snapshot!(shown(&LocalMemories::load(&path).unwrap()), @r"
    good.md | good: Good.
    none.md | none: Nothing in front.
    rule.md | rule: ---
    (left out: large.md (it has more than 1 MiB))
    (left out: latin.md (it is not UTF-8; save it as UTF-8))
    (left out: wrong.md (line 2, column 16: mapping values are not allowed in this context))
    (left out: bomb.md (line 5, column 20: its anchors and aliases grow too large when expanded; write the values out))
    (left out: open.md (the front matter does not end; put a line `---` after it))
    (left out: long.md (the front matter has more than 64 KiB; shorten it))
    (left out: list.md (the front matter is an array; write it as lines `key: value`))
    ");
    for name in ["good.md", "none.md", "rule.md"] {
        std::fs::remove_file(path.join(name)).unwrap();
    }
    assert_eq!(refused(&path), "there is nothing in it for a prompt; left out: large.md (it has more than 1 MiB)");
    assert_eq!(refused(&path.join("open.md")), "the front matter does not end; put a line `---` after it");
    std::fs::write(path.join("blank.md"), " \n").unwrap();
    assert_eq!(refused(&path.join("blank.md")), "there is nothing in it for a prompt");
    let bare = folder_of(&[("a.json", "{}")]);
    assert_eq!(refused(&bare.path().join("kb")), "no Markdown file (*.md) is in the folder");
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let folder = folder_of(&[("a.md", "Inside.\n")]);
    std::fs::write(folder.path().join("outside.md"), "Outside.\n").unwrap();
    let inside = folder.path().join("kb");
    std::os::unix::fs::symlink(folder.path().join("outside.md"), inside.join("link.md")).unwrap();
    std::os::unix::fs::symlink(folder.path(), inside.join("up")).unwrap();
    assert_eq!(shown(&LocalMemories::load(&inside).unwrap()), "a.md | a: Inside.\n");
    // The folder itself may be named by a link.
    let link = folder.path().join("named");
    std::os::unix::fs::symlink(&inside, &link).unwrap();
    assert_eq!(shown(&LocalMemories::load(&link).unwrap()), "a.md | a: Inside.\n");
}

#[test]
fn folders_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let mut deep = folder.path().to_owned();
    for _ in 0..=DEEPEST {
        deep.push("d");
    }
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(folder.path().join("a.md"), "Text.\n").unwrap();
    assert_eq!(refused(folder.path()), "its folders lie more than 32 deep; name a folder in it");
    std::fs::remove_dir(&deep).unwrap();
    assert!(LocalMemories::load(folder.path()).is_ok());

    let folder = tempfile::tempdir().unwrap();
    for number in 0..=MOST_DOCUMENTS {
        std::fs::write(folder.path().join(format!("{number}.md")), "x\n").unwrap();
    }
    assert_eq!(refused(folder.path()), "the folder holds more than 2000 Markdown files; name a folder in it");

    let folder = tempfile::tempdir().unwrap();
    let text = "word ".repeat((1 << 20) / 5 - 1);
    for number in 0..17 {
        std::fs::write(folder.path().join(format!("{number}.md")), &text).unwrap();
    }
    assert_eq!(refused(folder.path()), "its Markdown files have more than 16 MiB together; name a folder in it");
    // One that is within the bound of bytes may still make too many memories.
    for number in 0..17 {
        std::fs::write(folder.path().join(format!("{number}.md")), "# a\nb\n".repeat(2_000)).unwrap();
    }
    assert_eq!(refused(folder.path()), "it makes more than 20000 memories; divide it");
}

#[test]
fn long_texts_and_ids_are_divided_and_shortened() {
    let paragraph = "The pool of the checkout has forty connections. ".repeat(6);
    let text = format!("{}\n\n{}\n\n{}", paragraph.trim(), paragraph.trim(), "x".repeat(1_400));
    let divided: Vec<usize> = pieces(&text).iter().map(|piece| piece.chars().count()).collect();
    assert_eq!(divided, [576, 600, 600, 200]);
    let long = format!("docs/agent-context/lessons-learned.md#{}", slug("What a Très long heading says (2)"));
    assert_eq!(long, "docs/agent-context/lessons-learned.md#what-a-très-long-heading-says-2");
    let short = short_id(&long);
    assert!(short.chars().count() == MOST_ID && short.starts_with("d#what-a-très-long-heading-says-2-"), "{short}");
    assert_ne!(short, short_id(&long.replacen('d', "e", 1)));
    assert_eq!(short_id("a.md#b"), "a.md#b");
}

#[test]
fn cards_of_others_are_memories() {
    let folder = tempfile::tempdir().unwrap();
    let load = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).unwrap();
        LocalMemories::load(&folder.path().join(name))
    };
    let lesson = r#"{"lesson_id": "l1", "title": "Merge", "body": "Run the tests first.", "created_at": "2026-06-05T00:00:00Z", "lifecycle_state": "active", "expires_at": "2027-01-01T00:00:00Z"}"#;
    let skill = r#"{"id": "s1", "name": "Tests", "description": "Run all tests.", "applies_when": ["merging"], "does_not_apply_when": ["drafting"], "instructions": ["Run them.", "Say so."], "anti_patterns": ["Guessing."], "status": "approved"}"#;
    let told = |name: &str, text: &str| shown(&load(name, text).unwrap());
    let pack = format!(
        r#"{{"schema": "lessonweaver/skill-pack@1", "skills": [{{"skill": {skill}, "digest": "0"}}], "pack_digest": "0"}}"#
    );
    let table = [
        told("one.json", lesson),
        told("pack.json", &pack),
        told(
            "lines.jsonl",
            &format!(
                "{lesson}\n\n{}\n",
                r#"{"skill_id": "s2", "name": "Roll back", "description": "Puts it back.", "steps": ["Stop.", "Start."], "preconditions": ["A release."]}"#
            ),
        ),
        told(
            "list.json",
            &format!(
                "[{}, {skill}, {}]",
                r#"{"memory_id": "m1", "memory_type": "fact", "content": "The pool has 40 connections.", "source": "ada", "created_at": "2026-06-05T00:00:00Z"}"#,
                skill.replace("approved", "experimental")
            ),
        ),
    ];
    insta::assert_snapshot!(table.join("\n"), @r"
    l1 | Merge (until 2027-01-01T00:00:00Z): Run the tests first.

    s1 | Tests: Run all tests.⏎Do: Run them.; Say so.⏎When: merging⏎Not when: drafting⏎Do not: Guessing.

    l1 | Merge (until 2027-01-01T00:00:00Z): Run the tests first.
    s2 | Roll back: Puts it back.⏎Steps: Stop.; Start.⏎First: A release.

    m1 | The pool has 40 connections.
    s1 | Tests: Run all tests.⏎Do: Run them.; Say so.⏎When: merging⏎Not when: drafting⏎Do not: Guessing.
    (left out: s1 (`status` is `experimental`))
    ");
    let said = |text: &str| load("wrong.json", text).unwrap_err().to_string().split_once("`: ").unwrap().1.to_owned();
    assert_eq!(
        said(&format!("[{lesson}, {{\"id\": \"x\"}}]")),
        "[1] is no lesson, skill or memory, but [0] is; move it to another file"
    );
    assert_eq!(
        said(&lesson.replace("\"active\"", "\"in_review\"")),
        "there is nothing in it for a prompt; left out: l1 (`lifecycle_state` is `in_review`)"
    );
    // Nothing with a member of a card is read as facts or episodes: it may be for nobody here.
    let says = "and says nothing; give it a text in `body`, `content`, `proposed_lesson`, `summary`, `description`, or a list such as `steps`";
    let is_none = "and is no card; give it one of `lesson_id`, `skill_id`, `memory_id`, or rename the member of a fact";
    for (text, reason) in [
        (r#"{"lesson_id": "l1"}"#, format!("[0] has `lesson_id` {says}")),
        (r#"{"skill_id": "s", "steps": "one text"}"#, format!("[0] has `skill_id` {says}")),
        (
            r#"[{"memory_id": "m", "content": {"text": "x"}, "key": "a", "value": "b"}]"#,
            format!("[0] has `memory_id` {says}"),
        ),
        (r#"{"id": "e", "summary": "told", "Sensitivity": "restricted"}"#, format!("[0] has `sensitivity` {is_none}")),
        (r#"{"pool": "40", "lifecycle_state": "rejected"}"#, format!("[0] has `lifecycle_state` {is_none}")),
        (r#"{"lessons": [{"lesson_id": "a", "body": "b"}]}"#, format!("[0] has `lesson_id` {is_none}")),
        (r#"{"skills": {"skill_id": "a", "body": "b"}}"#, format!("[0] has `skill_id` {is_none}")),
        (
            r#"[{"pool": "40"}, {"lesson_id": "a", "body": "b"}]"#,
            "[0] is no lesson, skill or memory, but [1] is; move it to another file".to_owned(),
        ),
        (
            "{\"key\": \"a\", \"value\": \"b\"}\n{\"key\": \"a\", \"value\": \"b\", \"sensitivity\": \"secret\"}\n",
            "[0] is no lesson, skill or memory; move it to another file".to_owned(),
        ),
    ] {
        assert_eq!(said(text), reason, "{text}");
    }
    // Lists alone say something, a format of another program is none of ours, and some editors write a mark.
    let steps = r#"{"skill_id": "s", "title": "Deploy", "format": "text", "steps": ["Stop."], "status": "STATE"}"#;
    assert_eq!(told("steps.json", &steps.replace("STATE", "active")), "s | Deploy: Steps: Stop.\n");
    let rejected = "there is nothing in it for a prompt; left out: s (`status` is `rejected`)";
    assert_eq!(said(&steps.replace("STATE", "rejected")), rejected);
    assert_eq!(said(&format!("\u{feff}{}", steps.replace("STATE", "rejected"))), rejected);
    assert_eq!(told("mark.json", "\u{feff}{\"pool\": \"40\"}"), "pool | pool: 40\n");
    // What only looks like one is what it was before.
    assert_eq!(told("facts.json", r#"{"status": "draft"}"#), "status | status: draft\n");
    assert_eq!(
        told("episodes.jsonl", "{\"id\": \"e1\", \"summary\": \"raised the pool\"}\n"),
        "e1 | raised the pool\n"
    );
}

/// What a prompt is given of a source that masks secrets, or does not.
fn recalled(path: &Path, secrets: Secrets) -> String {
    let mut config = ContextConfig::default();
    config.firewall.secrets = secrets;
    let bounds = RecallBounds { memories: 99, tokens: 99_999 };
    let source = LocalMemories::load(path).unwrap();
    let recalled = recall(&source, (Phase::Answer, ""), bounds, &config, None).unwrap();
    let facts: String = recalled.facts.iter().map(|fact| format!("{}: {}\n", fact.key, fact.value)).collect();
    format!("{facts}{}\n", recalled.note("kb"))
}

#[test]
fn no_part_of_a_secret_gets_past_a_cut() {
    let token = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
    let line = "MIIEowIBAAKCAQEAx7Qn3fWb2p9LkTzVh4Rj8YcMd1Us6GoXa5EiZt0wNq+/BvKS";
    let key =
        format!("-----BEGIN RSA PRIVATE KEY-----\n{}-----END RSA PRIVATE KEY-----", format!("{line}\n").repeat(30));
    let words = |characters: usize| "word ".repeat(characters / 5);
    let front = format!("---\nid: {token}\nkey: {token}\ndescription: {} {token}\n---\n", words(580));
    let files = [
        ("pem.md", format!("# Pool\n\n{key}\n")),
        ("border.md", format!("{}{token} end\n", words(580))),
        ("apart.md", format!("{}pool_password = Xk7vQ2pLm9Rt4Zw8\n", words(580))),
        ("line.md", format!("{}pool_password =\n Xk7vQ2pLm9Rt4Zw8 it is\n", words(580))),
        ("title.md", format!("# {}{token}\ntext\n", words(65))),
        ("one.md", format!("{front}One.\n")),
        ("two.md", format!("{front}Two.\n")),
        (&format!("{token}.md"), "---\nstatus: draft\n---\nNot yet.\n".to_owned()),
        (&format!("f/{token}.md"), "Named.\n".to_owned()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let folder = folder_of(&files);
    let card = format!(
        r#"{{"lesson_id": "{token}", "title": "{}{token}", "body": {}, "steps": ["{}{token}"], "stale_after": "{token}"}}"#,
        words(145),
        serde_json::to_string(&key).unwrap(),
        words(580),
    );
    std::fs::write(folder.path().join("card.json"), card).unwrap();
    std::fs::write(folder.path().join(format!("{token}.md")), "Text.\n").unwrap();
    let named = recalled(&folder.path().join(format!("{token}.md")), Secrets::Redact);
    assert!(named.starts_with("_REDACTED__github_token_:") && !named.contains("A1b2"), "{named}");
    for source in ["kb", "card.json"] {
        let path = folder.path().join(source);
        let (masked, kept) = (recalled(&path, Secrets::Redact), recalled(&path, Secrets::Keep));
        for part in ["A1b2", "Q7r8", "K1l2", line, &line[20..40], "Xk7v", "Zw8"] {
            assert!(!masked.contains(part), "{part}: {masked}");
        }
        assert!(masked.contains("[REDACTED: private_key]") && masked.contains("[REDACTED: github_token]"), "{masked}");
        assert!(kept.contains(line) && kept.contains(token) && !kept.contains("REDACTED: private"), "{kept}");
    }
    let notes = LocalMemories::load(&folder.path().join("kb")).unwrap().notes().to_vec();
    assert_eq!(
        notes,
        [
            "left out: REDACTED: github_token.md (`status` is `draft`)",
            "`REDACTED: github_token` is said in 2 ways: one.md, two.md"
        ]
    );
}

#[test]
fn comments_are_removed_and_code_is_not() {
    for (text, plain) in [
        ("a <!-- b --> c", "a  c"),
        ("a <!-- b\n\n## c\n--> d", "a  d"),
        ("a <!-- b", "a <!-- b"),
        ("`<!--` begins one\n\n## Kept\n\n`-->` ends it", "`<!--` begins one\n\n## Kept\n\n`-->` ends it"),
        ("```html\n<!-- shown -->\n```\n<!-- not -->", "```html\n<!-- shown -->\n```\n"),
        ("````\n```\n<!-- shown -->\n````", "````\n```\n<!-- shown -->\n````"),
        ("<!--\n```\n-->\n<!-- b -->c", "\nc"),
        ("``a ` <!-- b --> `` c<!-- d -->", "``a ` <!-- b --> `` c"),
        ("a ` b <!-- c -->", "a ` b "),
        ("a ` b\n\n<!-- c --> `", "a ` b\n\n `"),
        ("`a\n<!-- b -->` c", "`a\n<!-- b -->` c"),
        ("a ` b\n# `c` <!-- d -->", "a ` b\n# `c` "),
        ("<!-- a --><!-- b `<!--` c", "<!-- b `<!--` c"),
        ("\\` <!-- a --> ` b \\<!-- c -->", "\\`  ` b \\<!-- c -->"),
        ("é\\é<!-- a -->\\", "é\\é\\"),
    ] {
        assert_eq!(without_comments(text), plain, "{text}");
    }
}

#[test]
fn a_front_matter_is_found_behind_what_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("note.md");
    let front = "---\nstatus: rejected\n---\nThe pool is small.\n";
    for before in ["\u{feff}", "\n \n", "<!-- a\nb -->\n", "<!-- a --><!-- b -->\n\n"] {
        std::fs::write(&path, format!("{before}{front}")).unwrap();
        let expected = "there is nothing in it for a prompt; left out: note.md (`status` is `rejected`)";
        assert_eq!(refused(&path), expected, "{before:?}");
    }
    for before in ["\u{feff}", "\n", "<!-- a -->\n"] {
        std::fs::write(&path, format!("{before}+++\nstatus = \"rejected\"\n+++\nThe pool is small.\n")).unwrap();
        assert_eq!(refused(&path), "its front matter is TOML; write it as YAML, between two lines `---`", "{before:?}");
    }
    for rule in [
        "<!-- a --> The pool\n---\nis small.\n",
        "\n---\n\nThe pool is small.\n",
        "<!-- a -->\n---\n# Pool\nIt is small.\n",
    ] {
        std::fs::write(&path, rule).unwrap();
        let shown = shown(&LocalMemories::load(&path).unwrap());
        assert!(shown.contains("is small."), "{rule:?}: {shown}");
    }
}

#[test]
fn a_secret_under_its_name_is_masked_wherever_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.md");
    for (text, memories) in [
        ("# pool\npassword:\n\nhunter2secret\n", 1),
        ("# pool password:\n\nhunter2secret\n", 1),
        ("# pool\npassword: |\n  hunter2secret\n", 1),
        ("# pool\npassword: >-\n  hunter2secret\n", 1),
        ("# pool\n- password:\n  - hunter2secret\n", 1),
        ("# pool\npassword:\n1. hunter2secret\n", 1),
        ("# pool\npassword:\n- [ ] hunter2secret\n", 1),
        ("# pool\npassword:\n> \u{2022} hunter2secret\n", 1),
        ("# pool\n**Password:** hunter2secret\n", 1),
        ("# pool\n**Password:**\nhunter2secret\n", 1),
        ("# pool\n`password`: `hunter2secret`\n", 1),
        ("# pool\nThe password:\n\n```sh\nhunter2secret\n```\n", 1),
        ("# pool\npassword:\n> ```\n> hunter2secret\n> ```\n", 1),
        ("# pool\npassword:\n- [ ]\n  hunter2secret\n", 1),
        ("# pool\n__Password:__\n\u{25e6} hunter2secret\n", 1),
        ("# pool\npassword:\n(1) `hunter2secret`\n", 1),
        ("# pool\npassword:\n---\nhunter2secret\n", 1),
        ("---\ntitle: \"pool password:\"\n---\nhunter2secret\n", 1),
    ] {
        std::fs::write(&path, text).unwrap();
        let (masked, kept) = (recalled(&path, Secrets::Redact), recalled(&path, Secrets::Keep));
        assert!(!masked.contains("hunter2secret"), "{text}: {masked}");
        assert_eq!(masked.matches("[REDACTED: password]").count(), memories, "{text}: {masked}");
        assert!(kept.contains("hunter2secret"), "{text}: {kept}");
    }
}

#[test]
fn what_is_said_of_a_password_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.md");
    for text in [
        "# pool\nThe options of the password:\n\n- `min_length_12` sets how long it is\n",
        "# pool\nWhich fields hold a secret:\n1. client_id_2 names the client\n",
        "# pool\n**Password:** required, see section 3\n",
    ] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(recalled(&path, Secrets::Redact), recalled(&path, Secrets::Keep), "{text}");
    }
}

#[test]
fn what_is_not_understood_of_a_state_is_withheld() {
    for (members, reason) in [
        (r#"{"status": "Rejected."}"#, "`status` is `rejected`"),
        (r#"{"Status": "needs review"}"#, "`status` is `needs_review`"),
        (r#"{"status": ["draft"]}"#, "`status` is `draft`"),
        (r#"{"status": ["active", "In-Review!"]}"#, "`status` is `in_review`"),
        (r#"{"status": ["active"]}"#, ""),
        (r#"{"status": "rejected (2024)"}"#, "`status` is `rejected`"),
        (r#"{"status": "active, deprecated"}"#, "`status` is `deprecated`"),
        (r#"{"status": "draft/approved"}"#, "`status` is `draft`"),
        (r#"{"status": "Deprecated by ADR-12"}"#, "`status` is `deprecated`"),
        (r#"{"status": "inReview"}"#, "`status` is `in_review`"),
        (r#"{"status": "in  review since May"}"#, "`status` is `in_review`"),
        (r#"{"status": "not rejected"}"#, ""),
        (r#"{"status": "accepted; archived copy is kept elsewhere"}"#, ""),
        (r#"{"status": "Draft-free and final"}"#, ""),
        (r#"{"model": {"sensitivity": 0.93, "specificity": 0.88}}"#, ""),
        (r#"{"meta": {"sensitivity": {"level": "restricted"}}}"#, "`sensitivity` is `restricted`"),
        (r#"{"meta": {"lifecycle_state": ["draft"]}}"#, "`lifecycle_state` is `draft`"),
        (r#"{"status": "drafted"}"#, ""),
        (r#"{"meta": {"sensitivity": "restricted"}}"#, "`sensitivity` is `restricted`"),
        (r#"{"meta": [{"Lifecycle_State": "draft", "status": "active"}]}"#, "`lifecycle_state` is `draft`"),
        (r#"{"meta": {"status": "draft", "properties": {"sensitivity": {"type": "string"}}}}"#, ""),
        (r#"{"status": []}"#, "`status` is unknown"),
        (r#"{"status": {"is": "draft"}}"#, "`status` is unknown"),
        (r#"{"lifecycle_state": false}"#, "`lifecycle_state` is unknown"),
        (r#"{"status": null, "sensitivity": null}"#, ""),
        (r#"{"status": "", "lifecycle_state": "reviewed"}"#, ""),
        (r#"{"status": "active", "STATUS": "archived"}"#, "`status` is `archived`"),
        (r#"{"Sensitivity": "restricted"}"#, "`sensitivity` is `restricted`"),
        (r#"{"sensitivity": ["public"]}"#, "`sensitivity` is unknown"),
    ] {
        let members: Map<String, Value> = serde_json::from_str(members).unwrap();
        assert_eq!(withheld(&members).unwrap_or_default(), reason, "{members:?}");
    }
}

#[test]
fn what_keeps_a_pack_or_a_part_of_a_card_back_keeps_the_card_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cards.json");
    let skill = r#"{"id": "s", "name": "Tests", "instructions": ["Run them."]"#;
    let card = r#"{"lesson_id": "s", "body": "Run them.""#;
    for (text, reason) in [
        (
            format!(r#"{{"sensitivity": "restricted", "skills": [{{"skill": {skill}}}}}]}}"#),
            "`sensitivity` is `restricted`",
        ),
        (
            format!(r#"{{"meta": {{"sensitivity": "restricted"}}, "skills": [{skill}}}]}}"#),
            "`sensitivity` is `restricted`",
        ),
        (format!(r#"{{"skills": [{{"skill": {skill}}}, "Status": "rejected"}}]}}"#), "`status` is `rejected`"),
        (format!(r#"{{"status": "draft", "skills": [{skill}, "status": "approved"}}]}}"#), "`status` is `draft`"),
        (format!(r#"{card}, "governance": {{"sensitivity": "restricted"}}}}"#), "`sensitivity` is `restricted`"),
        (
            format!(r#"{card}, "runs": [{{"status": "rejected"}}, {{"sensitivity": "x"}}]}}"#),
            "`sensitivity` is unknown",
        ),
    ] {
        std::fs::write(&path, &text).unwrap();
        assert_eq!(refused(&path), format!("there is nothing in it for a prompt; left out: s ({reason})"), "{text}");
    }
    for (text, said) in [
        (format!(r#"{card}, "sensitivity": "restricted", "sensitivity": "public"}}"#), "sensitivity"),
        (format!("{card}}}\n{card}, \"runs\": [{{\"a\": 1, \"a\": 2}}]}}\n"), "a"),
    ] {
        std::fs::write(&path, &text).unwrap();
        let expected = format!("a member `{said}` is there twice in one object; remove one of them");
        assert_eq!(refused(&path), expected, "{text}");
    }
    std::fs::write(&path, format!(r#"{card}, "runs": [{{"status": "rejected"}}]}}"#)).unwrap();
    assert_eq!(shown(&LocalMemories::load(&path).unwrap()), "s | Run them.\n");
}

#[test]
fn every_memory_has_an_id_of_its_own_as_a_prompt_shows_it() {
    let id = |id: &str| format!("---\nid: {id}\n---\nText of {id}.\n");
    let files = [
        ("a/b.md", "One.\n".to_owned()),
        ("a_b.md", "Two.\n".to_owned()),
        ("x1.md", id("x")),
        ("x2.md", id("x")),
        ("x3.md", id("x.2")),
        ("x4.md", id("x")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    insta::assert_snapshot!(known(&files), @r"
    a/b.md | b: One.
    a_b.md.2 | a_b: Two.
    x | x1: Text of x.
    x.2 | x2: Text of x.
    x.2.2 | x3: Text of x.2.
    x.3 | x4: Text of x.
    ");
}

#[cfg(unix)]
#[test]
fn names_that_are_not_utf_8_lose_no_document() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = folder_of(&[("a.md", "Text.\n")]);
    for (name, text) in [(b"\xfe.md", "One.\n"), (b"\xff.md", "Two.\n")] {
        std::fs::write(folder.path().join("kb").join(OsStr::from_bytes(name)), text).unwrap();
    }
    insta::assert_snapshot!(shown(&LocalMemories::load(&folder.path().join("kb")).unwrap()), @r"
    a.md | a: Text.
    �.md | �: One.
    �.md.2 | �: Two.
    (not UTF-8: the names of �.md, �.md)
    ");
}

proptest! {
    #[test]
    fn every_piece_is_bounded_and_every_word_is_in_one(text in "([a-zé]{1,9}|[. \n#*`~]{1,3}|[a-z]{500,900}){0,40}") {
        let mut words = Vec::new();
        for section in sections(&text) {
            for piece in pieces(section.text) {
                prop_assert!(!piece.is_empty() && piece.chars().count() <= MOST_TEXT);
                words.extend(piece.chars().filter(|c| !c.is_whitespace()));
            }
        }
        let headings = sections(&text);
        let said: Vec<char> = headings.iter().flat_map(|section| section.text.chars()).filter(|c| !c.is_whitespace()).collect();
        prop_assert_eq!(words, said);
    }

    #[test]
    fn no_document_panics(text in "(---\n)?(title: [a-z]{0,3}\n|status: \\PC{0,5}\n|# \\PC{0,9}\n|\\PC{0,9}\n|---\n|<!--|-->|```\n){0,9}") {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        std::fs::write(&path, &text).unwrap();
        let _ = LocalMemories::load(&path);
        let _ = LocalMemories::load(folder.path());
        std::fs::rename(&path, folder.path().join("a.json")).unwrap();
        let _ = LocalMemories::load(&folder.path().join("a.json"));
    }
}

//! What outlives a conversation, through the commands: hand-overs, memories of several sessions, sources and hooks.

use std::fs;

use crate::support::{Files, Run, checkout};

/// A session of the log of a scenario, with facts.
fn ingested(files: &Files, scenario: &str, facts: &str) -> String {
    let log = checkout().join(format!("scenarios/context/{scenario}.jsonl"));
    let (session, remembered) = (format!("{scenario}.session"), files.write("facts.json", facts));
    let log = log.display().to_string();
    let run = files.run(&["ingest", "--events", &log, "--out", &session, "--facts", remembered.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.shown());
    session
}

fn good(run: &Run) -> &str {
    assert_eq!(run.code, 0, "{}", run.shown());
    &run.stdout
}

#[test]
fn sessions_become_a_memory_that_prompts_search() {
    let files = Files::new();
    let first = ingested(&files, "outage", r#"{"region": "eu-west-1", "lead": "Ines"}"#);
    let second = ingested(&files, "refund", r#"{"region": "us-east-1", "Lead": "Ines"}"#);
    let (first, second) = (format!("{first}@2026-11-20"), format!("{second}@2026-11-23"));
    let made = files.run(&["consolidate", &first, &second, "--out", "memory.json", "--as-of", "2026-11-24"]);
    let text = good(&made);
    assert!(text.starts_with("wrote memory.json: a memory of 2 sessions\n"), "{text}");
    assert!(text.contains("conflict: region: the latest holds\n  us-east-1  (refund of 2026-11-23)\n"), "{text}");
    // Order and steps change nothing.
    let memory = fs::read(files.path("memory.json")).unwrap();
    good(&files.run(&["consolidate", &first, "--out", "one.json", "--as-of", "2026-11-24"]));
    good(&files.run(&["consolidate", &second, "one.json", "--out", "two.json", "--as-of", "2026-11-24"]));
    assert_eq!(fs::read(files.path("two.json")).unwrap(), memory);
    // Without days nothing tells which one holds.
    let apart = files.run(&["consolidate", "outage.session", "refund.session", "--out", "apart.json"]);
    assert!(good(&apart).contains("conflict: region: nothing tells which one holds"), "{}", apart.shown());

    files.write("chat.json", r#"[{"role": "user", "content": "Where does it run?"}]"#);
    good(&files.run(&["ingest", "--events", "chat.json", "--out", "chat.session"]));
    let ask = |memory: &str| {
        files.run(&["replay", "--session", "chat.session", "--query", "region", "--memory", memory, "--stats"])
    };
    let found = ask("memory.json");
    assert!(good(&found).contains("- memory:region: region: us-east-1 (before: eu-west-1)"), "{}", found.shown());
    assert!(found.stderr.contains("memory `memory`: 1 memories of "), "{}", found.shown());
    assert!(good(&ask("outage.session")).contains("- outage:region: region: eu-west-1"));
    for (wrong, said) in [("absent.json", "absent.json"), ("http://127.0.0.1:9/", "memory `mem0`: not reached")] {
        let run = ask(wrong);
        assert!(run.code == 2 && run.stdout.is_empty() && run.stderr.contains(said), "{}", run.shown());
    }
    for wrong in [
        ["consolidate", "outage.session@2026-02-30", "--out", "x.json"],
        ["consolidate", "memory.json@2026-11-24", "--out", "x.json"],
        ["consolidate", "facts.json", "--out", "x.json"],
    ] {
        let run = files.run(&wrong);
        assert!(run.code == 2 && !files.path("x.json").exists(), "{}", run.shown());
    }
}

#[test]
fn hooks_of_a_configuration_work_in_place_of_ours() {
    let files = Files::new();
    let session = ingested(&files, "outage", "{}");
    let count = r#"LC_ALL=C; while read -r line; do echo "{\"tokens\": $((${#line} / 2))}"; done"#;
    files.write("count.toml", format!("[hooks.token_counter]\ncommand = [\"sh\", \"-c\", '''{count}''']\n"));
    let prompt = |config: &str| {
        let ask =
            ["replay", "--session", &session, "--query", "cause", "--budget", "2000", "--stats", "--config", config];
        files.run(&ask)
    };
    files.write("ours.toml", "");
    let (ours, theirs) = (prompt("ours.toml"), prompt("count.toml"));
    assert!(good(&theirs).len() < good(&ours).len() && theirs.stdout.len() / 2 <= 2000, "{}", theirs.shown());
    assert!(theirs.stderr.contains("hook token_counter: "), "{}", theirs.stderr);
    files.write("dead.toml", "[hooks.token_counter]\ncommand = [\"/nonexistent\"]\n");
    let dead = prompt("dead.toml");
    assert_eq!(good(&dead), good(&ours));
    assert!(dead.stderr.contains("`/nonexistent` does not start"), "{}", dead.stderr);
    files.write("wrong.toml", "[hooks.redactor]\nurl = \"ftp://a\"\n");
    let wrong = prompt("wrong.toml");
    assert!(wrong.code == 2 && wrong.stderr.contains("`hooks.redactor`: `url` must begin with"), "{}", wrong.shown());
    // What is taken in is masked before it is stored.
    files.write("mask.toml", "[hooks.redactor]\ncommand = [\"sh\", \"-c\", \"sed -u s/Ada/someone/g\"]\n");
    files.write("chat.json", r#"[{"role": "user", "content": "Ada asks for the pool."}]"#);
    good(&files.run(&["ingest", "--events", "chat.json", "--out", "masked.session", "--config", "mask.toml"]));
    let stored = fs::read_to_string(files.path("masked.session")).unwrap();
    assert!(stored.contains("someone asks for the pool.") && !stored.contains("Ada"), "{stored}");
}

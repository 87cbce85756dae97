//! The audit log through whole calls: what is in it, that it shows every change, and that nothing happens without it.

use std::fs;
use std::io::BufReader;
use std::path::Path;

use serde_json::json;

use super::shop::Who::{Mute, No, Yes};
use super::shop::{run, scene, upstream};
use crate::{AuditCheck, AuditEvent, AuditLine, Gateway, GatewayConfig};
use contextweaver_core::text::sha256_hex;

const RULES: &str = "policy: {rules: [{action: deny, tool: delete}, {action: require_approval, tool: price}]}";

fn yaml(file: &Path, more: &str) -> String {
    format!("{{audit: {{file: {}}}, {more}}}", file.display())
}

fn check(file: &Path, head: Option<&str>) -> AuditCheck {
    AuditCheck::read(BufReader::new(fs::File::open(file).unwrap()), head).unwrap()
}

fn lines(file: &Path) -> Vec<AuditLine> {
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The lines of a file are those that `schemas/audit.json` describes.
fn fit(text: &str) {
    let schema = serde_json::from_str(include_str!("../../../../schemas/audit.json")).unwrap();
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    for line in text.lines() {
        let faults: Vec<String> =
            schema.iter_errors(&serde_json::from_str(line).unwrap()).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{line}: {faults:?}");
    }
}

/// A line in a few words.
fn told(line: &AuditLine) -> String {
    let part = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let item = part(&line.item).split('#').next().unwrap_or_default().to_owned();
    let decision = line.decision.map_or("-", |decision| decision.name());
    let call = line.call.map_or("-".to_owned(), |call| call.to_string());
    format!(
        "{} {} call={call} {} {decision} code={} by={} {} approver={} of={} caller={} {}",
        line.seq,
        line.event.name(),
        part(&line.operation),
        part(&line.code),
        part(&line.guard),
        part(&line.rule),
        part(&line.approver),
        part(&line.server),
        part(&line.caller),
        item,
    )
}

#[test]
fn every_decision_is_in_the_log_and_nothing_of_what_calls_carry() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        let scene = scene(&yaml(&file, RULES)).await;
        let secret = json!({"id": 1, "of": "SECRET"});
        scene.call(&scene.client(Mute), "tool_browse", json!({"query": "SECRET words"})).await;
        scene.execute(&scene.client(Mute), "delete", json!({"word": "SECRET"})).await;
        scene.execute(&scene.client(Yes), "price", secret.clone()).await;
        scene.execute(&scene.client(No), "price", secret.clone()).await;
        scene.execute(&scene.gone("Gone"), "price", secret).await;
        scene.execute(&scene.client(Mute), "liar", json!({})).await;
        scene.call(&scene.client(Mute), "tool_execute", json!({"tool_id": "SECRET"})).await;
        scene.call(&scene.client(Mute), "resource_read", json!({"resource_id": "shop:terms"})).await;
        let question = scene.execute(&scene.modern("ann"), "price", json!({"id": 1})).await;
        assert_eq!(question["resultType"], "input_required");
        scene.gateway.close().await;
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("SECRET"), "{text}");
        fit(&text);
        let lines = lines(&file);
        let price = lines.iter().find(|line| line.approver.as_deref() == Some("client")).unwrap();
        assert_eq!(price.arguments.as_deref(), Some(&*sha256_hex(br#"{"id":1,"of":"SECRET"}"#)));
        assert!(lines.iter().filter(|line| line.event == AuditEvent::Ended).all(|line| line.ms.is_some()));
        let told: Vec<String> = lines.iter().map(told).collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        1 started call=- - - code=- by=- - approver=- of=- caller=- -
        2 decided call=- tool_browse allow code=- by=- - approver=- of=- caller=Mute -
        3 ended call=2 tool_browse - code=OK by=- - approver=- of=- caller=Mute -
        4 decided call=- tool_execute refuse code=POLICY_DENIED by=policy policy.rules[0] approver=- of=shop caller=Mute shop:delete
        5 decided call=- tool_execute allow code=- by=policy policy.rules[1] approver=client of=shop caller=Yes shop:price
        6 ended call=5 tool_execute - code=OK by=- - approver=- of=shop caller=Yes shop:price
        7 decided call=- tool_execute refuse code=APPROVAL_REQUIRED by=asked approval policy.rules[1] approver=client of=shop caller=No shop:price
        8 decided call=- tool_execute refuse code=APPROVAL_REQUIRED by=asked approval policy.rules[1] approver=- of=shop caller=Gone shop:price
        9 decided call=- tool_execute allow code=- by=policy policy.default approver=- of=shop caller=Mute shop:liar
        10 ended call=9 tool_execute - code=UPSTREAM_ERROR by=- - approver=- of=shop caller=Mute shop:liar
        11 decided call=- tool_execute refuse code=HYDRATE_FAILED by=- - approver=- of=- caller=Mute -
        12 decided call=- resource_read allow code=- by=policy policy.default approver=- of=shop caller=Mute resource::shop:terms
        13 ended call=12 resource_read - code=OK by=- - approver=- of=shop caller=Mute resource::shop:terms
        14 decided call=- tool_execute ask code=- by=asked approval policy.rules[1] approver=- of=shop caller=ann shop:price
        15 stopped call=- - - code=- by=- - approver=- of=- caller=- -
        ");
        assert_eq!(
            check(&file, None),
            AuditCheck {
                lines: lines.len() as u64,
                head: sha256_hex(text.lines().last().unwrap().as_bytes()),
                torn: 0,
                lost: 0,
                open: 0,
                after: None,
                holds: None,
                misfit: None
            }
        );
    });
}

/// A log with a few calls.
async fn written(file: &Path) -> String {
    let scene = scene(&yaml(file, RULES)).await;
    for tool in ["delete", "liar", "delete"] {
        scene.execute(&scene.client(Mute), tool, json!({})).await;
    }
    scene.gateway.close().await;
    fs::read_to_string(file).unwrap()
}

#[test]
fn every_change_of_the_log_is_found_and_its_line_named() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        let text = written(&file).await;
        let whole: Vec<&str> = text.lines().collect();
        assert_eq!(whole.len(), 6, "{text}");
        assert!(check(&file, None).is_whole());
        // A byte anywhere but in the last line, which nothing follows.
        let end = text.len() - whole[5].len() - 1;
        for at in (0..end).step_by(7) {
            let mut bytes = text.clone().into_bytes();
            if bytes[at] == b'\n' {
                continue;
            }
            bytes[at] ^= 1;
            fs::write(&file, &bytes).unwrap();
            let misfit = check(&file, None).misfit.unwrap_or_else(|| panic!("byte {at}"));
            let line = 1 + text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() as u64;
            assert!(misfit.line.abs_diff(line) <= 1, "byte {at} of line {line}: {misfit:?}");
        }
        // A line that is removed, from the front or the middle; one that is there twice; two that changed places.
        let said = |lines: &[&str]| {
            fs::write(&file, format!("{}\n", lines.join("\n"))).unwrap();
            check(&file, None).misfit.map(|misfit| format!("{} {}", misfit.line, misfit.reason))
        };
        assert!(said(&whole[1..]).unwrap().starts_with("1 it is not the first"));
        assert!(said(&[whole[0], whole[1], whole[3]]).unwrap().starts_with("3 it has number 4"));
        assert!(said(&[whole[0], whole[1], whole[1], whole[2]]).unwrap().starts_with("3 it has number 2"));
        assert!(said(&[whole[0], whole[2], whole[1]]).unwrap().starts_with("2 it has number 3"));
        // A line that is cut in two is not one that was not finished: the next does not say so.
        let half = &whole[2][..40];
        assert!(said(&[whole[0], whole[1], half, whole[3]]).unwrap().starts_with("3 it is not a line of an audit log"));
        // What is cut off at the end is missed by whoever knows the hash of a line that was there.
        let head = sha256_hex(whole[5].as_bytes());
        assert_eq!(said(&whole[..5]), None);
        assert_eq!(check(&file, Some(&head)).holds, Some(false));
        fs::write(&file, &text).unwrap();
        assert_eq!(check(&file, Some(&head)).holds, Some(true));
    });
}

#[test]
fn a_restart_goes_on_with_the_chain_also_behind_a_line_that_was_not_finished() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        let first = written(&file).await;
        let second = written(&file).await;
        assert!(second.starts_with(&first));
        assert!(check(&file, None).is_whole());
        // The process was killed while it wrote, twice.
        for (torn, cut) in [(1, 30), (2, 100)] {
            let text = fs::read_to_string(&file).unwrap();
            fs::write(&file, &text[..text.len() - cut]).unwrap();
            assert!(!check(&file, None).is_whole(), "nothing follows the line that was not finished");
            written(&file).await;
            let found = check(&file, None);
            assert_eq!((found.torn, found.misfit), (torn, None));
            let text = fs::read_to_string(&file).unwrap();
            fit(text.lines().rfind(|line| line.ends_with('}')).unwrap());
            fit(text.lines().find(|line| line.contains("\"torn\"")).unwrap());
        }
        // The first line of all was not finished.
        let text = fs::read_to_string(&file).unwrap();
        for length in [1, 10, 60] {
            fs::write(&file, &text[..length]).unwrap();
            written(&file).await;
            assert_eq!(check(&file, None).torn, 1, "{length}");
        }
        // What was not finished counts with the line before it.
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replacen("started", "stopped", 1)).unwrap();
        assert!(!check(&file, None).is_whole());
    });
}

async fn started(file: &Path, more: &str) -> Result<std::sync::Arc<Gateway>, String> {
    let text = format!("{{audit: {{file: {}{more}}}}}", file.display());
    let mut config = GatewayConfig::parse(&text, Path::new("."), &|_| None).unwrap();
    let shop = super::shop::Shop::called("shop");
    config.upstreams.insert("shop".to_owned(), upstream(move |method, params| shop.answer(method, params)));
    Gateway::start(config).await.map_err(|error| error.to_string())
}

#[test]
fn a_file_that_cannot_be_written_or_is_something_else_stops_the_start() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let full = Path::new("/dev/full");
        assert!(started(full, "").await.unwrap_err().contains("audit.file: /dev/full: cannot be written"));
        let gateway = started(full, ", on_failure: warn").await.unwrap();
        gateway.close().await;
        let file = folder.path().join("other.jsonl");
        for other in ["{\"some\": \"thing\"}\n", "{\"config\":\"thing\"}\n"] {
            fs::write(&file, other).unwrap();
            assert!(started(&file, "").await.unwrap_err().contains("not a line of an audit log"));
            assert_eq!(fs::read_to_string(&file).unwrap(), other);
        }
        let file = folder.path().join("audit.jsonl");
        let gateway = started(&file, "").await.unwrap();
        assert!(started(&file, "").await.unwrap_err().contains("another gateway is writing to it"));
        gateway.close().await;
    });
}

#[cfg(target_os = "linux")]
#[test]
fn when_the_file_cannot_grow_any_more_nothing_is_called_unless_the_operator_says_so() {
    use std::os::fd::AsRawFd;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    run(async {
        for (on_failure, price, delete, reached) in
            [("refuse", "AUDIT_FAILED", "AUDIT_FAILED", 1), ("warn", "ok", "error", 3)]
        {
            let file = memfd_create("audit", MemfdFlags::ALLOW_SEALING).unwrap();
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            let scene = scene(&format!("audit: {{file: {path}, on_failure: {on_failure}}}")).await;
            assert_eq!(scene.outcome(&scene.client(Mute), "price", r#"{"id": 1}"#).await, "ok");
            fcntl_add_seals(&file, SealFlags::GROW).unwrap();
            assert_eq!(scene.outcome(&scene.client(Mute), "price", r#"{"id": 2}"#).await, price, "{on_failure}");
            assert_eq!(scene.outcome(&scene.client(Mute), "delete", "{}").await, delete, "{on_failure}");
            assert_eq!(scene.calls(), reached, "{on_failure}");
            let metrics = scene.gateway.metrics_text();
            let failures = metrics.lines().find(|line| line.starts_with("contextweaver_audit_failures_total")).unwrap();
            assert!(!failures.ends_with(" 0"), "{failures}");
        }
    });
}

#[test]
fn calls_side_by_side_are_one_chain_and_those_taken_back_have_an_end() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        let scene = scene(&yaml(&file, "top_k: 3")).await;
        let callers: Vec<_> = (0..16).map(|_| scene.client(Mute)).collect();
        let calls = callers.iter().map(|caller| async {
            for _ in 0..4 {
                scene.execute(caller, "price", json!({"id": 1})).await;
            }
        });
        let mut calls: Vec<_> = calls.map(Box::pin).collect();
        std::future::poll_fn(|context| {
            calls.retain_mut(|call| call.as_mut().poll(context).is_pending());
            if calls.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
        scene.gateway.close().await;
        let found = check(&file, None);
        assert_eq!((found.misfit, found.open), (None, 0));
        assert_eq!(found.lines, 2 + 2 * 64);
    });
}

//! What the configuration takes from the environment is shown by no report of the gateway, and by no line of its log.

use std::fmt::{Debug, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

use super::shop::run;
use crate::common::sync::lock;
use crate::{Gateway, GatewayConfig, examine};

/// The value of every variable: no family of secrets has its form.
const VALUE: &str = "plain-words-as-a-secret";

/// A program that cannot be started, one that says what it was given and goes, and one that refuses with it.
const YAML: &str = r#"
startup: {min_healthy_upstreams: 0, fail_on_empty_catalog: false, upstream_timeout_seconds: 2}
upstreams:
  absent: {command: "/nowhere/${env:SECRET}", args: ["${env:SECRET}"]}
  loud: {command: sh, args: [-c, "echo $0 >&2; exit 1", "${env:SECRET}"], era: legacy}
  telling:
    command: sh
    args: [-c, "read line; printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,\"message\":\"no %s\"}}\\n' $0; sleep 1", "${env:SECRET}"]
    era: legacy
"#;

fn environment(name: &str) -> Option<String> {
    if name == "SECRET" { Some(VALUE.to_owned()) } else { std::env::var(name).ok() }
}

#[test]
fn no_report_of_an_upstream_holds_what_came_from_the_environment() {
    run(async {
        let config = GatewayConfig::parse(YAML, Path::new("."), &environment).unwrap();
        assert!(!format!("{config:?}").contains(VALUE), "debugging");
        let gateway = Gateway::start(config).await.unwrap();
        let reports = serde_json::to_string(&gateway.reports()).unwrap();
        assert!(!reports.contains(VALUE) && reports.contains("${env:SECRET}"), "{reports}");
        gateway.close().await;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.yaml");
        std::fs::write(&path, YAML).unwrap();
        let examination = serde_json::to_string(&examine(&path, &environment).await).unwrap();
        assert!(!examination.contains(VALUE), "{examination}");
        assert!(examination.contains("`/nowhere/${env:SECRET}` is not a program"), "{examination}");
    });
}

/// The lines that one thread logs, of every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        lock(&self.0).clone()
    }
}

/// A line of the log: its level, then its fields.
struct LogLine(String);

impl Visit for LogLine {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = LogLine(event.metadata().level().to_string());
        event.record(&mut line);
        lock(&self.0).push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn what_an_upstream_prints_is_logged_without_secrets() {
    const PRINTING: &str = r#"
startup: {min_healthy_upstreams: 0, fail_on_empty_catalog: false, upstream_timeout_seconds: 2}
upstreams:
  printing: {command: sh, args: [-c, "echo given $0 and KEY >&2; exit 1", "${env:SECRET}"], era: legacy}
  wrong:
    command: sh
    args: [-c, "read line; printf '{\"id\":7,\"error\":{\"code\":\"%s\"}}\\n{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":\"%s\"}}\\n' $0 $0; read line", "${env:SECRET}"]
    era: legacy
"#;
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let config = GatewayConfig::parse(&PRINTING.replace("KEY", &key), Path::new("."), &environment).unwrap();
    let log = Log::default();
    // Two of them: with one alone, a place that is first reached by the thread of another test would never be logged.
    let _also = Dispatch::new(log.clone());
    let _logging = tracing::subscriber::set_default(log.clone());
    let printed = |line: &&String| line.contains("given ");
    // All tasks run on this thread, whose log it is.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let gateway = Gateway::start(config).await.unwrap();
        let read = async {
            while !log.lines().iter().any(|line| printed(&line)) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), read).await.expect("what it printed is logged");
        gateway.close().await;
    });
    let lines = log.lines();
    for line in lines.iter().filter(printed) {
        assert!(line.contains("upstream=printing"), "{line}");
        assert!(line.contains("given ${env:SECRET} and [REDACTED: github_token]"), "{line}");
    }
    assert!(lines.iter().any(|line| line.starts_with("DEBUG ") && line.contains("given ")), "{lines:?}");
    for told in ["skipped a line that is not a message", "a message was skipped"] {
        assert!(lines.iter().any(|line| line.contains(told) && line.contains("${env:SECRET}")), "{told}: {lines:?}");
    }
    assert!(!lines.iter().any(|line| line.contains(VALUE) || line.contains(&key)), "{lines:?}");
}

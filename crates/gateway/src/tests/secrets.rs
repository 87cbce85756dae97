//! What the configuration takes from the environment is shown by no report of the gateway.

use std::path::Path;

use super::shop::run;
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

//! What the metrics of a running gateway say to a person: calls by tool, how they ended, and the servers.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::telemetry::samples::samples;
use crate::telemetry::savings::Savings;

/// The calls of one tool.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RunningTool {
    /// Calls that have ended.
    pub calls: u64,
    /// Those that did not end with `OK`.
    pub failed: u64,
    /// The mean time of a call, in milliseconds; 0 of none.
    pub mean_ms: f64,
}

/// What a running gateway counted since it started.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RunningStats {
    /// Clients that are connected.
    pub sessions: u64,
    /// Clients that have connected.
    pub sessions_so_far: u64,
    /// Requests that are being served.
    pub running: u64,
    /// Calls by tool.
    pub by_tool: BTreeMap<String, RunningTool>,
    /// Failures of calls by code.
    pub errors: BTreeMap<String, u64>,
    /// The servers, and whether each can be asked.
    pub upstreams: BTreeMap<String, bool>,
    /// What was spared, in tokens; `None` in other modes than `gateway`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub savings: Option<Savings>,
}

impl RunningStats {
    /// Reads the metrics of a gateway; `None` where the text has none. A line that is not a sample is passed over.
    #[must_use]
    pub fn of_metrics(text: &str) -> Option<Self> {
        let samples = samples(text);
        let mut stats = Self { savings: Savings::of_samples(&samples), ..Self::default() };
        let (mut seconds, mut is_gateway) = (BTreeMap::<String, f64>::new(), false);
        for sample in &samples {
            let whole = sample.value as u64;
            let label = |name: &str| sample.labels.get(name).cloned();
            match (sample.name, label("tool"), label("code"), label("upstream")) {
                ("sessions", ..) => (stats.sessions, is_gateway) = (whole, true),
                ("sessions_total", ..) => stats.sessions_so_far = whole,
                ("requests_running", ..) => stats.running = whole,
                ("calls_total", Some(tool), Some(code), _) => {
                    let counted = stats.by_tool.entry(tool).or_default();
                    counted.calls += whole;
                    if code != "OK" {
                        counted.failed += whole;
                        *stats.errors.entry(code).or_default() += whole;
                    }
                }
                ("call_duration_seconds_sum", Some(tool), ..) => *seconds.entry(tool).or_default() += sample.value,
                ("upstream_up", .., Some(upstream)) => drop(stats.upstreams.insert(upstream, whole == 1)),
                _ => {}
            }
        }
        for (tool, counted) in &mut stats.by_tool {
            counted.mean_ms = seconds.get(tool).copied().unwrap_or_default() * 1e3 / counted.calls.max(1) as f64;
        }
        is_gateway.then_some(stats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_become_figures() {
        let text = r#"# HELP contextweaver_sessions Clients that are connected.
contextweaver_requests_running 1
contextweaver_calls_total{tool="git:log",caller="ci",code="OK"} 3
contextweaver_calls_total{tool="git:log",caller="me",code="POLICY_DENIED"} 1
contextweaver_calls_total{tool="a\"b\\n,c",caller="me",code="OK"} 2
contextweaver_call_duration_seconds_bucket{tool="git:log",caller="ci",le="0.1"} 3
contextweaver_call_duration_seconds_sum{tool="git:log",caller="ci"} 0.25
contextweaver_call_duration_seconds_sum{tool="git:log",caller="me"} 0.75
contextweaver_sessions 2
contextweaver_sessions_total 5
contextweaver_upstream_up{upstream="git"} 1
contextweaver_upstream_up{upstream="docs"} 0
contextweaver_broken{ 1
contextweaver_calls_total{tool="x",caller="y",code="OK"} NaN
other 7
"#;
        let stats = RunningStats::of_metrics(text).unwrap();
        insta::assert_snapshot!(serde_json::to_string(&stats).unwrap(), @r#"{"sessions":2,"sessions_so_far":5,"running":1,"by_tool":{"a\"b\\n,c":{"calls":2,"failed":0,"mean_ms":0.0},"git:log":{"calls":4,"failed":1,"mean_ms":250.0}},"errors":{"POLICY_DENIED":1},"upstreams":{"docs":false,"git":true}}"#);
        assert_eq!(RunningStats::of_metrics("go_goroutines 7\n"), None);
    }
}

//! What the gateway counts, in the text form of Prometheus.
//!
//! Labels come from closed sets or from the configuration, never from what a client sends, so that the number of
//! series is bounded. Counting takes a short lock: it is a fraction of what reading a message costs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::savings::Spent;
use crate::common::error::Code;
use crate::common::sync::lock;

/// Upper bounds of the durations' buckets, in microseconds: from what a hop costs to what a person waits for.
const BUCKETS: [u64; 12] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000, 5_000_000, 30_000_000];

/// The methods that are counted by name.
const METHODS: [&str; 17] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "tasks/get",
    "tasks/cancel",
];

/// The label of any other method.
const OTHER: &str = "other";

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    /// The request got a result.
    Ok,
    /// An error of JSON-RPC.
    Error,
    /// Nothing: the client took it back or went away.
    Cancelled,
}

impl Ending {
    fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Durations {
    /// One more than the bounds: what is above the last.
    counts: [u64; BUCKETS.len() + 1],
    sum: Duration,
}

/// How many clients there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sessions {
    /// Those that are connected.
    pub(crate) open: usize,
    /// Those that have connected so far.
    pub(crate) all: u64,
}

/// The state of an upstream, as metrics show it.
pub(crate) struct UpstreamState<'u> {
    /// Its name in the configuration.
    pub(crate) name: &'u str,
    /// Whether it is connected, may be asked and could be listed.
    pub(crate) up: bool,
    /// The states of a circuit breaker, each with whether it is the current one.
    pub(crate) circuits: [(&'static str, bool); 3],
}

/// Counters of one gateway.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(&'static str, Ending), u64>>,
    durations: Mutex<BTreeMap<&'static str, Durations>>,
    /// Calls of tools by the code of their failure; `None` for those that did not fail.
    calls: Mutex<BTreeMap<Option<Code>, u64>>,
    /// Signatures that were refused, by what was signed and why.
    signatures: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
    /// Tokens of what was answered, in mode `gateway`.
    spent: Mutex<Spent>,
    running: AtomicU64,
}

/// A request that is being served; one that is dropped counts as cancelled.
#[derive(Debug)]
pub(crate) struct Timer<'m> {
    metrics: &'m Metrics,
    method: &'static str,
    began: Instant,
    ending: Ending,
}

impl Timer<'_> {
    /// The request is answered.
    pub(crate) fn end(mut self, ending: Ending) {
        self.ending = ending;
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        self.metrics.running.fetch_sub(1, Ordering::Relaxed);
        *lock(&self.metrics.requests).entry((self.method, self.ending)).or_default() += 1;
        if self.ending != Ending::Cancelled {
            self.metrics.took(self.method, self.began.elapsed());
        }
    }
}

impl Metrics {
    /// A request comes in.
    pub(crate) fn begin(&self, method: &str) -> Timer<'_> {
        let method = METHODS.into_iter().find(|known| *known == method).unwrap_or(OTHER);
        self.running.fetch_add(1, Ordering::Relaxed);
        Timer { metrics: self, method, began: Instant::now(), ending: Ending::Cancelled }
    }

    /// An answer had so many tokens; `result` are those of what a server answered, if one was asked.
    pub(crate) fn spent(&self, result: Option<u64>, answer: u64) {
        lock(&self.spent).add(result, answer);
    }

    /// Tokens of what was answered so far.
    pub(crate) fn all_spent(&self) -> Spent {
        *lock(&self.spent)
    }

    /// A tool was called, with this failure if any.
    pub(crate) fn called(&self, failure: Option<Code>) {
        *lock(&self.calls).entry(failure).or_default() += 1;
    }

    /// A signature of a call or an answer was not taken, for this reason.
    pub(crate) fn signature_refused(&self, signed: &'static str, reason: &'static str) {
        *lock(&self.signatures).entry((signed, reason)).or_default() += 1;
    }

    fn took(&self, method: &'static str, duration: Duration) {
        let bucket = BUCKETS.partition_point(|bound| u128::from(*bound) < duration.as_micros());
        let mut durations = lock(&self.durations);
        let durations = durations.entry(method).or_default();
        durations.sum += duration;
        if let Some(count) = durations.counts.get_mut(bucket) {
            *count += 1;
        }
    }

    /// Everything counted, with the sessions, the upstreams, and in mode `gateway` the tokens of all definitions and of
    /// those that are listed.
    pub(crate) fn text<'u>(
        &self,
        sessions: Sessions,
        upstreams: impl IntoIterator<Item = UpstreamState<'u>>,
        definitions: Option<(u64, u64)>,
    ) -> String {
        let mut text = Text::default();
        text.head("requests_total", "counter", "Requests by method and outcome.");
        for ((method, ending), count) in &*lock(&self.requests) {
            text.sample("requests_total", &[("method", method), ("outcome", ending.label())], count);
        }
        text.head("request_duration_seconds", "histogram", "Time to the answer, by method.");
        for (method, durations) in &*lock(&self.durations) {
            text.histogram(method, durations);
        }
        text.head("requests_running", "gauge", "Requests that are being served.");
        text.sample("requests_running", &[], &self.running.load(Ordering::Relaxed));
        text.head("tool_calls_total", "counter", "Calls of tools by the code of their failure, or OK.");
        for (failure, count) in &*lock(&self.calls) {
            let code = failure.map(|code| serde_json::to_value(code).unwrap_or_default());
            let code = code.as_ref().and_then(serde_json::Value::as_str).unwrap_or("OK");
            text.sample("tool_calls_total", &[("code", code)], count);
        }
        text.head("signatures_refused_total", "counter", "Signatures that were refused, by what was signed and why.");
        for ((signed, reason), count) in &*lock(&self.signatures) {
            text.sample("signatures_refused_total", &[("signed", signed), ("reason", reason)], count);
        }
        text.head("sessions", "gauge", "Clients that are connected.");
        text.sample("sessions", &[], &(sessions.open as u64));
        text.head("sessions_total", "counter", "Clients that have connected.");
        text.sample("sessions_total", &[], &sessions.all);
        if let Some((servers, gateway)) = definitions {
            let Spent { calls, results, answers, other } = self.all_spent();
            text.head("definition_tokens", "gauge", "Tokens of the definitions of all servers, and of those listed.");
            text.sample("definition_tokens", &[("of", "servers")], &servers);
            text.sample("definition_tokens", &[("of", "gateway")], &gateway);
            text.head("answered_calls_total", "counter", "Calls, reads and prompts that a server answered.");
            text.sample("answered_calls_total", &[], &calls);
            text.head(
                "tokens_total",
                "counter",
                "Tokens of results of servers, of the answers to these calls, and of others.",
            );
            for (of, tokens) in [("results", results), ("answers", answers), ("other", other)] {
                text.sample("tokens_total", &[("of", of)], &tokens);
            }
        }
        text.head("upstream_up", "gauge", "Whether an upstream is connected, may be asked and could be listed.");
        let upstreams: Vec<UpstreamState<'_>> = upstreams.into_iter().collect();
        for upstream in &upstreams {
            text.sample("upstream_up", &[("upstream", upstream.name)], &u64::from(upstream.up));
        }
        text.head("upstream_circuit", "gauge", "The state of an upstream's circuit breaker: 1 for the current state.");
        for UpstreamState { name, circuits, .. } in &upstreams {
            for (state, is_current) in circuits {
                text.sample("upstream_circuit", &[("upstream", name), ("state", state)], &u64::from(*is_current));
            }
        }
        text.0
    }
}

/// Text in the form of Prometheus.
#[derive(Default)]
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP contextweaver_{name} {help}\n# TYPE contextweaver_{name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: &dyn std::fmt::Display) {
        let _ = write!(self.0, "contextweaver_{name}");
        for (at, (label, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{value}\"", if at == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    fn histogram(&mut self, method: &str, durations: &Durations) {
        const NAME: &str = "request_duration_seconds";
        let mut total = 0;
        let bounds = BUCKETS.iter().map(|bound| Duration::from_micros(*bound).as_secs_f64().to_string());
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(durations.counts) {
            total += count;
            self.sample(&format!("{NAME}_bucket"), &[("method", method), ("le", &bound)], &total);
        }
        self.sample(&format!("{NAME}_sum"), &[("method", method)], &durations.sum.as_secs_f64());
        self.sample(&format!("{NAME}_count"), &[("method", method)], &total);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::savings::Savings;

    #[test]
    fn what_is_counted_is_written_in_the_form_of_prometheus() {
        let metrics = Metrics::default();
        metrics.begin("tools/call").end(Ending::Ok);
        metrics.begin("x/made-up").end(Ending::Error);
        drop(metrics.begin("tools/call"));
        metrics.called(None);
        metrics.called(Some(Code::UpstreamTimeout));
        metrics.signature_refused("call", "replayed");
        lock(&metrics.durations).clear();
        metrics.took("tools/call", Duration::from_micros(100));
        metrics.took("tools/call", Duration::from_secs(40));
        let running = metrics.begin("ping");
        let upstream =
            |name, up| UpstreamState { name, up, circuits: [("closed", up), ("half-open", false), ("open", !up)] };
        metrics.spent(Some(100), 10);
        metrics.spent(None, 5);
        let sessions = Sessions { open: 2, all: 3 };
        let text = metrics.text(sessions, [upstream("a\"b", true), upstream("c", false)], Some((900, 90)));
        running.end(Ending::Ok);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        insta::assert_snapshot!(samples.join("\n").replace("contextweaver_", ""), @r#"
        requests_total{method="other",outcome="error"} 1
        requests_total{method="tools/call",outcome="ok"} 1
        requests_total{method="tools/call",outcome="cancelled"} 1
        request_duration_seconds_bucket{method="tools/call",le="0.0001"} 1
        request_duration_seconds_bucket{method="tools/call",le="0.00025"} 1
        request_duration_seconds_bucket{method="tools/call",le="0.0005"} 1
        request_duration_seconds_bucket{method="tools/call",le="0.001"} 1
        request_duration_seconds_bucket{method="tools/call",le="0.0025"} 1
        request_duration_seconds_bucket{method="tools/call",le="0.005"} 1
        request_duration_seconds_bucket{method="tools/call",le="0.01"} 1
        request_duration_seconds_bucket{method="tools/call",le="0.05"} 1
        request_duration_seconds_bucket{method="tools/call",le="0.25"} 1
        request_duration_seconds_bucket{method="tools/call",le="1"} 1
        request_duration_seconds_bucket{method="tools/call",le="5"} 1
        request_duration_seconds_bucket{method="tools/call",le="30"} 1
        request_duration_seconds_bucket{method="tools/call",le="+Inf"} 2
        request_duration_seconds_sum{method="tools/call"} 40.0001
        request_duration_seconds_count{method="tools/call"} 2
        requests_running 1
        tool_calls_total{code="OK"} 1
        tool_calls_total{code="UPSTREAM_TIMEOUT"} 1
        signatures_refused_total{signed="call",reason="replayed"} 1
        sessions 2
        sessions_total 3
        definition_tokens{of="servers"} 900
        definition_tokens{of="gateway"} 90
        answered_calls_total 1
        tokens_total{of="results"} 100
        tokens_total{of="answers"} 10
        tokens_total{of="other"} 5
        upstream_up{upstream="a\"b"} 1
        upstream_up{upstream="c"} 0
        upstream_circuit{upstream="a\"b",state="closed"} 1
        upstream_circuit{upstream="a\"b",state="half-open"} 0
        upstream_circuit{upstream="a\"b",state="open"} 0
        upstream_circuit{upstream="c",state="closed"} 0
        upstream_circuit{upstream="c",state="half-open"} 0
        upstream_circuit{upstream="c",state="open"} 1
        "#);
        let savings = Savings::of_metrics(&text).unwrap();
        assert_eq!((savings.sessions, savings.definitions, savings.surface), (3, 2_700, 270));
        assert_eq!(savings.spent, metrics.all_spent());
        let types = text.lines().filter(|line| line.starts_with("# TYPE")).count();
        assert_eq!(types, text.lines().filter(|line| line.starts_with("# HELP")).count());
    }
}

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
pub(super) const BUCKETS: [u64; 12] =
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

/// The method, or a word for all that are not known.
pub(super) fn known_method(method: &str) -> &'static str {
    METHODS.into_iter().find(|known| *known == method).unwrap_or(OTHER)
}

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
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }
}

/// How long things took.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Durations {
    /// One more than the bounds: what is above the last.
    pub(super) counts: [u64; BUCKETS.len() + 1],
    pub(super) sum: Duration,
}

impl Durations {
    /// Counts one more.
    pub(crate) fn add(&mut self, duration: Duration) {
        let bucket = BUCKETS.partition_point(|bound| u128::from(*bound) < duration.as_micros());
        self.sum += duration;
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
    }

    /// Counts those of another as well.
    fn add_all(&mut self, others: &Self) {
        self.sum += others.sum;
        self.counts.iter_mut().zip(others.counts).for_each(|(count, more)| *count += more);
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How long all took together.
    pub(crate) fn sum(&self) -> Duration {
        self.sum
    }

    /// The mean, in milliseconds; 0 of none.
    pub(crate) fn mean_ms(&self) -> f64 {
        self.sum.as_secs_f64() * 1e3 / self.count().max(1) as f64
    }
}

/// The calls of one tool by one caller.
#[derive(Debug, Default, Clone)]
pub(crate) struct Series {
    /// How many ended with each code.
    pub(crate) codes: BTreeMap<&'static str, u64>,
    /// How long they took.
    pub(crate) durations: Durations,
}

/// Pairs of tool and caller that are counted on their own, at most; the rest are counted together. As many tools are timed.
const MOST_SERIES: usize = 200;

/// Characters of the name of a tool that is timed, at most.
const LONGEST_TOOL: usize = 256;

/// A request to an upstream: its method, and how it failed, if it did.
pub(super) type UpstreamRequest = (&'static str, Option<Code>);

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

/// What was lost on the way to files and collectors; `None` where there is none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Exports {
    /// Lines that the audit log lacks.
    pub(crate) audit_failures: Option<u64>,
    /// Spans that found the queue full, and those that the collector did not take.
    pub(crate) spans_lost: Option<(u64, u64)>,
}

/// Counters of one gateway.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(&'static str, Ending), u64>>,
    /// By method, and by the tool that was called where that is known.
    durations: Mutex<BTreeMap<(&'static str, Option<String>), Durations>>,
    /// Of requests to upstreams, by the name of the upstream.
    asked: Mutex<BTreeMap<String, BTreeMap<UpstreamRequest, Durations>>>,
    /// Calls of tools by the code of their failure; `None` for those that did not fail.
    calls: Mutex<BTreeMap<Option<Code>, u64>>,
    /// Signatures that were refused, by what was signed and why.
    signatures: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
    /// Tokens of what was answered, in mode `gateway`.
    spent: Mutex<Spent>,
    running: AtomicU64,
    /// Calls by tool and caller.
    series: Mutex<BTreeMap<(String, String), Series>>,
}

/// A request that is being served; one that is dropped counts as cancelled.
#[derive(Debug)]
pub(crate) struct Timer<'m> {
    metrics: &'m Metrics,
    method: &'static str,
    tool: Option<String>,
    began: Instant,
    ending: Ending,
}

impl Timer<'_> {
    /// The request has called this tool, which there is: made-up names would take the series of others.
    pub(crate) fn calls(&mut self, tool: &str) {
        self.tool = Some(tool.chars().take(LONGEST_TOOL).collect());
    }

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
            self.metrics.took((self.method, self.tool.take()), self.began.elapsed());
        }
    }
}

impl Metrics {
    /// A request comes in.
    pub(crate) fn begin(&self, method: &str) -> Timer<'_> {
        let method = known_method(method);
        self.running.fetch_add(1, Ordering::Relaxed);
        Timer { metrics: self, method, tool: None, began: Instant::now(), ending: Ending::Cancelled }
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

    fn took(&self, mut of: (&'static str, Option<String>), duration: Duration) {
        let mut durations = lock(&self.durations);
        if of.1.is_some() && durations.len() >= MOST_SERIES && !durations.contains_key(&of) {
            of.1 = Some(OTHER.to_owned());
        }
        durations.entry(of).or_default().add(duration);
    }

    /// An upstream was asked, and failed so if it did. Its name comes from the configuration.
    pub(crate) fn asked(&self, upstream: &str, method: &str, failure: Option<Code>, took: Duration) {
        let mut asked = lock(&self.asked);
        let of = (known_method(method), failure);
        match asked.get_mut(upstream) {
            Some(known) => known.entry(of).or_default().add(took),
            None => asked.entry(upstream.to_owned()).or_default().entry(of).or_default().add(took),
        }
    }

    /// A call of `tool` by `caller` ended with `code`. Names come from the catalog and the configuration, or from whoever
    /// says who a caller is; beyond [`MOST_SERIES`] pairs they are counted together.
    pub(crate) fn ended(&self, tool: &str, caller: &str, code: &'static str, took: Duration) {
        let mut series = lock(&self.series);
        let mut key = (tool.to_owned(), caller.to_owned());
        if series.len() >= MOST_SERIES && !series.contains_key(&key) {
            key = (OTHER.to_owned(), OTHER.to_owned());
        }
        let counted = series.entry(key).or_default();
        *counted.codes.entry(code).or_default() += 1;
        counted.durations.add(took);
    }

    /// The calls so far, by tool and caller.
    pub(crate) fn series(&self) -> BTreeMap<(String, String), Series> {
        lock(&self.series).clone()
    }

    /// The requests so far, by method and ending.
    pub(super) fn requests(&self) -> BTreeMap<(&'static str, Ending), u64> {
        lock(&self.requests).clone()
    }

    /// How long requests took so far, by method, and by tool where that is known.
    pub(super) fn durations(&self) -> BTreeMap<(&'static str, Option<String>), Durations> {
        lock(&self.durations).clone()
    }

    /// How long upstreams took so far, by their names.
    pub(super) fn all_asked(&self) -> BTreeMap<String, BTreeMap<UpstreamRequest, Durations>> {
        lock(&self.asked).clone()
    }

    /// Everything counted, with the sessions, the upstreams, and in mode `gateway` the tokens of all definitions and of
    /// those that are listed.
    pub(crate) fn text<'u>(
        &self,
        sessions: Sessions,
        upstreams: impl IntoIterator<Item = UpstreamState<'u>>,
        definitions: Option<(u64, u64)>,
        exports: Exports,
    ) -> String {
        let mut text = Text::default();
        text.head("requests_total", "counter", "Requests by method and outcome.");
        for ((method, ending), count) in &*lock(&self.requests) {
            text.sample("requests_total", &[("method", method), ("outcome", ending.label())], count);
        }
        text.head("request_duration_seconds", "histogram", "Time to answer, by method.");
        let mut by_method = BTreeMap::<&str, Durations>::new();
        for ((method, _), durations) in &*lock(&self.durations) {
            by_method.entry(method).or_default().add_all(durations);
        }
        for (method, durations) in &by_method {
            text.histogram("request_duration_seconds", &[("method", method)], durations);
        }
        text.head("requests_running", "gauge", "Requests that are being served.");
        text.sample("requests_running", &[], &self.running.load(Ordering::Relaxed));
        text.head("tool_calls_total", "counter", "Tool calls by the code of their failure, or OK.");
        for (failure, count) in &*lock(&self.calls) {
            let code = failure.map_or("OK", Code::word);
            text.sample("tool_calls_total", &[("code", code)], count);
        }
        let series = self.series();
        text.head("calls_total", "counter", "Calls by tool, caller and code.");
        for ((tool, caller), counted) in &series {
            for (code, count) in &counted.codes {
                text.sample("calls_total", &[("tool", tool), ("caller", caller), ("code", code)], count);
            }
        }
        text.head("call_duration_seconds", "histogram", "Duration of calls, by tool and caller.");
        for ((tool, caller), counted) in &series {
            text.histogram("call_duration_seconds", &[("tool", tool), ("caller", caller)], &counted.durations);
        }
        let help = "Time that upstreams took to answer, by upstream, method and code.";
        text.head("upstream_request_duration_seconds", "histogram", help);
        for (upstream, asked) in &self.all_asked() {
            for ((method, failure), durations) in asked {
                let code = failure.map_or("OK", Code::word);
                let labels = [("upstream", upstream.as_str()), ("method", method), ("code", code)];
                text.histogram("upstream_request_duration_seconds", &labels, durations);
            }
        }
        text.head("signatures_refused_total", "counter", "Signatures that were refused, by what was signed and why.");
        for ((signed, reason), count) in &*lock(&self.signatures) {
            text.sample("signatures_refused_total", &[("signed", signed), ("reason", reason)], count);
        }
        if let Some(lines) = exports.audit_failures {
            text.head("audit_failures_total", "counter", "Lines that are missing from the audit log.");
            text.sample("audit_failures_total", &[], &lines);
        }
        if let Some((dropped, failed)) = exports.spans_lost {
            text.spans_lost(dropped, failed);
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
pub(crate) struct Text(pub(crate) String);

impl Text {
    /// Begins a series with what it is.
    pub(crate) fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP contextweaver_{name} {help}\n# TYPE contextweaver_{name} {kind}");
    }

    /// A value of a series.
    pub(crate) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: &dyn std::fmt::Display) {
        let _ = write!(self.0, "contextweaver_{name}");
        for (at, (label, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{value}\"", if at == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// The series of spans that were dropped, and that a collector did not take.
    pub(crate) fn spans_lost(&mut self, dropped: u64, failed: u64) {
        self.head("otlp_spans_lost_total", "counter", "Spans that were not exported, by reason.");
        self.sample("otlp_spans_lost_total", &[("reason", "queue_full")], &dropped);
        self.sample("otlp_spans_lost_total", &[("reason", "export_failed")], &failed);
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], durations: &Durations) {
        let mut total = 0;
        let bounds = BUCKETS.iter().map(|bound| Duration::from_micros(*bound).as_secs_f64().to_string());
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(durations.counts) {
            total += count;
            let labels: Vec<(&str, &str)> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
            self.sample(&format!("{name}_bucket"), &labels, &total);
        }
        self.sample(&format!("{name}_sum"), labels, &durations.sum.as_secs_f64());
        self.sample(&format!("{name}_count"), labels, &total);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::samples::samples;
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
        metrics.took(("tools/call", None), Duration::from_micros(100));
        metrics.took(("tools/call", Some("price".to_owned())), Duration::from_secs(40));
        let running = metrics.begin("ping");
        let upstream =
            |name, up| UpstreamState { name, up, circuits: [("closed", up), ("half-open", false), ("open", !up)] };
        metrics.spent(Some(100), 10);
        metrics.spent(None, 5);
        let sessions = Sessions { open: 2, all: 3 };
        metrics.ended("git:log", "ci", "OK", Duration::from_secs(60));
        metrics.asked("git", "tools/call", None, Duration::from_millis(2));
        metrics.asked("git", "x/made-up", Some(Code::UpstreamTimeout), Duration::from_secs(60));
        let exports = Exports { audit_failures: Some(4), spans_lost: Some((1, 2)) };
        let text = metrics.text(sessions, [upstream("a\"b", true), upstream("c", false)], Some((900, 90)), exports);
        running.end(Ending::Ok);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        insta::assert_snapshot!(lines.join("\n").replace("contextweaver_", ""), @r#"
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
        calls_total{tool="git:log",caller="ci",code="OK"} 1
        call_duration_seconds_bucket{tool="git:log",caller="ci",le="0.0001"} 0
        call_duration_seconds_bucket{tool="git:log",caller="ci",le="0.00025"} 0
        call_duration_seconds_bucket{tool="git:log",caller="ci",le="0.0005"} 0
        call_duration_seconds_bucket{tool="git:log",caller="ci",le="0.001"} 0
        call_duration_seconds_bucket{tool="git:log",caller="ci",le="0.0025"} 0
        call_duration_seconds_bucket{tool="git:log",caller="ci",le="0.005"} 0
        call_duration_seconds_bucket{tool="git:log",caller="ci",le="0.01"} 0
        call_duration_seconds_bucket{tool="git:log",caller="ci",le="0.05"} 0
        call_duration_seconds_bucket{tool="git:log",caller="ci",le="0.25"} 0
        call_duration_seconds_bucket{tool="git:log",caller="ci",le="1"} 0
        call_duration_seconds_bucket{tool="git:log",caller="ci",le="5"} 0
        call_duration_seconds_bucket{tool="git:log",caller="ci",le="30"} 0
        call_duration_seconds_bucket{tool="git:log",caller="ci",le="+Inf"} 1
        call_duration_seconds_sum{tool="git:log",caller="ci"} 60
        call_duration_seconds_count{tool="git:log",caller="ci"} 1
        upstream_request_duration_seconds_bucket{upstream="git",method="other",code="UPSTREAM_TIMEOUT",le="0.0001"} 0
        upstream_request_duration_seconds_bucket{upstream="git",method="other",code="UPSTREAM_TIMEOUT",le="0.00025"} 0
        upstream_request_duration_seconds_bucket{upstream="git",method="other",code="UPSTREAM_TIMEOUT",le="0.0005"} 0
        upstream_request_duration_seconds_bucket{upstream="git",method="other",code="UPSTREAM_TIMEOUT",le="0.001"} 0
        upstream_request_duration_seconds_bucket{upstream="git",method="other",code="UPSTREAM_TIMEOUT",le="0.0025"} 0
        upstream_request_duration_seconds_bucket{upstream="git",method="other",code="UPSTREAM_TIMEOUT",le="0.005"} 0
        upstream_request_duration_seconds_bucket{upstream="git",method="other",code="UPSTREAM_TIMEOUT",le="0.01"} 0
        upstream_request_duration_seconds_bucket{upstream="git",method="other",code="UPSTREAM_TIMEOUT",le="0.05"} 0
        upstream_request_duration_seconds_bucket{upstream="git",method="other",code="UPSTREAM_TIMEOUT",le="0.25"} 0
        upstream_request_duration_seconds_bucket{upstream="git",method="other",code="UPSTREAM_TIMEOUT",le="1"} 0
        upstream_request_duration_seconds_bucket{upstream="git",method="other",code="UPSTREAM_TIMEOUT",le="5"} 0
        upstream_request_duration_seconds_bucket{upstream="git",method="other",code="UPSTREAM_TIMEOUT",le="30"} 0
        upstream_request_duration_seconds_bucket{upstream="git",method="other",code="UPSTREAM_TIMEOUT",le="+Inf"} 1
        upstream_request_duration_seconds_sum{upstream="git",method="other",code="UPSTREAM_TIMEOUT"} 60
        upstream_request_duration_seconds_count{upstream="git",method="other",code="UPSTREAM_TIMEOUT"} 1
        upstream_request_duration_seconds_bucket{upstream="git",method="tools/call",code="OK",le="0.0001"} 0
        upstream_request_duration_seconds_bucket{upstream="git",method="tools/call",code="OK",le="0.00025"} 0
        upstream_request_duration_seconds_bucket{upstream="git",method="tools/call",code="OK",le="0.0005"} 0
        upstream_request_duration_seconds_bucket{upstream="git",method="tools/call",code="OK",le="0.001"} 0
        upstream_request_duration_seconds_bucket{upstream="git",method="tools/call",code="OK",le="0.0025"} 1
        upstream_request_duration_seconds_bucket{upstream="git",method="tools/call",code="OK",le="0.005"} 1
        upstream_request_duration_seconds_bucket{upstream="git",method="tools/call",code="OK",le="0.01"} 1
        upstream_request_duration_seconds_bucket{upstream="git",method="tools/call",code="OK",le="0.05"} 1
        upstream_request_duration_seconds_bucket{upstream="git",method="tools/call",code="OK",le="0.25"} 1
        upstream_request_duration_seconds_bucket{upstream="git",method="tools/call",code="OK",le="1"} 1
        upstream_request_duration_seconds_bucket{upstream="git",method="tools/call",code="OK",le="5"} 1
        upstream_request_duration_seconds_bucket{upstream="git",method="tools/call",code="OK",le="30"} 1
        upstream_request_duration_seconds_bucket{upstream="git",method="tools/call",code="OK",le="+Inf"} 1
        upstream_request_duration_seconds_sum{upstream="git",method="tools/call",code="OK"} 0.002
        upstream_request_duration_seconds_count{upstream="git",method="tools/call",code="OK"} 1
        signatures_refused_total{signed="call",reason="replayed"} 1
        audit_failures_total 4
        otlp_spans_lost_total{reason="queue_full"} 1
        otlp_spans_lost_total{reason="export_failed"} 2
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
        for number in 0..2 * MOST_SERIES {
            metrics.ended(&format!("t{number}"), "ci", "OK", Duration::ZERO);
        }
        let series = metrics.series();
        assert_eq!(series.len(), MOST_SERIES + 1, "so many and the others");
        assert_eq!(series.values().map(|counted| counted.codes["OK"]).sum::<u64>(), 2 * MOST_SERIES as u64 + 1);
        for number in 0..2 * MOST_SERIES {
            let mut known = metrics.begin("tools/call");
            known.calls(&format!("Ok{number}"));
            known.end(Ending::Ok);
        }
        let durations = metrics.durations();
        let of = |tool: &str| durations[&("tools/call", Some(tool.to_owned()))].count();
        assert_eq!(durations.len(), MOST_SERIES + 1, "so many and the others");
        assert_eq!((of("price"), of("Ok0"), of(OTHER)), (1, 1, MOST_SERIES as u64 + 3));
        let savings = Savings::of_samples(&samples(&text)).unwrap();
        assert_eq!((savings.sessions, savings.definitions, savings.surface), (3, 2_700, 270));
        assert_eq!(savings.spent, metrics.all_spent());
        let types = text.lines().filter(|line| line.starts_with("# TYPE")).count();
        assert_eq!(types, text.lines().filter(|line| line.starts_with("# HELP")).count());
    }
}

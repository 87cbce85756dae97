//! Spans and metrics as messages of OTLP (`opentelemetry.proto.collector.*.v1`).

use std::time::Duration;

use super::metrics::{BUCKETS, Durations, Metrics};
use super::protobuf::Message;
use crate::protocol::trace_context::TraceContext;

/// What a span stands for, with the number of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// Work of the gateway itself.
    Internal = 1,
    /// A request of a client.
    Server = 2,
    /// A request to an upstream.
    Client = 3,
}

/// The attributes of a span or of a series.
pub(crate) type Attributes = Vec<(&'static str, String)>;

/// A span that has ended.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(super) context: TraceContext,
    /// The span that it is a part of.
    pub(super) parent: Option<[u8; 8]>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    /// When it began, since 1970.
    pub(super) start: Duration,
    pub(super) took: Duration,
    pub(super) attributes: Attributes,
    pub(super) is_error: bool,
}

/// Who says all this.
#[derive(Debug, Clone)]
pub(super) struct Resource {
    pub(super) attributes: Vec<(String, String)>,
}

/// Counts of what is exported itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exported {
    pub(super) dropped: u64,
    pub(super) failed: u64,
}

const CUMULATIVE: u64 = 2;

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn attribute(into: &mut Message, field: u32, key: &str, value: &str) {
    into.message(field, |pair| {
        pair.bytes_of(1, key.as_bytes());
        pair.message(2, |any| any.whole(1, value.as_bytes()));
    });
}

fn scope(into: &mut Message) {
    into.message(1, |scope| {
        scope.bytes_of(1, b"contextweaver");
        scope.bytes_of(2, env!("CARGO_PKG_VERSION").as_bytes());
    });
}

fn resource(into: &mut Message, resource: &Resource) {
    into.message(1, |message| {
        for (key, value) in &resource.attributes {
            attribute(message, 1, key, value);
        }
    });
}

/// An `ExportTraceServiceRequest`.
pub(super) fn traces(of: &Resource, spans: &[Span]) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |all| {
        resource(all, of);
        all.message(2, |scoped| {
            scope(scoped);
            for span in spans {
                scoped.message(2, |message| write_span(message, span));
            }
        });
    });
    request.bytes()
}

fn write_span(message: &mut Message, span: &Span) {
    message.bytes_of(1, &span.context.trace);
    message.bytes_of(2, &span.context.span);
    message.bytes_of(3, span.context.state.as_deref().unwrap_or_default().as_bytes());
    message.bytes_of(4, span.parent.as_ref().map_or(&[][..], |parent| &parent[..]));
    message.bytes_of(5, span.name.as_bytes());
    message.varint(6, span.kind as u64);
    message.fixed64(7, nanos(span.start));
    message.fixed64(8, nanos(span.start + span.took));
    for (key, value) in &span.attributes {
        attribute(message, 9, key, value);
    }
    if span.is_error {
        message.message(15, |status| status.varint(3, 2));
    }
}

/// An `ExportMetricsServiceRequest` of everything counted since `start`.
pub(super) fn metrics(of: &Resource, metrics: &Metrics, exported: Exported, start: Duration, now: Duration) -> Vec<u8> {
    let times = (nanos(start), nanos(now));
    let mut request = Message::default();
    request.message(1, |all| {
        resource(all, of);
        all.message(2, |scoped| {
            scope(scoped);
            let method = |method: &str| ("mcp.method.name", method.to_owned());
            let durations: Vec<_> =
                metrics.durations().into_iter().map(|(name, durations)| (vec![method(name)], durations)).collect();
            let name = "mcp.server.operation.duration";
            histogram(scoped, name, "Time to the answer, by method.", times, &durations);
            let requests = metrics.requests().into_iter().map(|((name, ending), count)| {
                (vec![method(name), ("contextweaver.outcome", ending.label().to_owned())], count)
            });
            let name = "contextweaver.requests";
            sum(scoped, name, "{request}", "Requests by method and outcome.", times, &requests.collect::<Vec<_>>());
            let series = metrics.series();
            let of = |tool: &str, caller: &str| {
                vec![("gen_ai.tool.name", tool.to_owned()), ("contextweaver.caller", caller.to_owned())]
            };
            let calls = series.iter().flat_map(|((tool, caller), counted)| {
                counted.codes.iter().map(move |(code, count)| {
                    let mut attributes = of(tool, caller);
                    attributes.push(("contextweaver.code", (*code).to_owned()));
                    (attributes, *count)
                })
            });
            let name = "contextweaver.calls";
            sum(scoped, name, "{call}", "Calls by tool, caller and code.", times, &calls.collect::<Vec<_>>());
            let took: Vec<_> =
                series.iter().map(|((tool, caller), counted)| (of(tool, caller), counted.durations)).collect();
            histogram(scoped, "contextweaver.call.duration", "Time of calls, by tool and caller.", times, &took);
            let name = "contextweaver.otlp.dropped_spans";
            let counts = vec![
                (vec![("contextweaver.reason", "queue_full".to_owned())], exported.dropped),
                (vec![("contextweaver.reason", "export_failed".to_owned())], exported.failed),
            ];
            sum(scoped, name, "{span}", "Spans that were not exported.", times, &counts);
        });
    });
    request.bytes()
}

fn sum(
    into: &mut Message,
    name: &str,
    unit: &str,
    description: &str,
    (start, now): (u64, u64),
    points: &[(Attributes, u64)],
) {
    if points.is_empty() {
        return;
    }
    into.message(2, |metric| {
        metric.bytes_of(1, name.as_bytes());
        metric.bytes_of(2, description.as_bytes());
        metric.bytes_of(3, unit.as_bytes());
        metric.message(7, |sum| {
            for (attributes, count) in points {
                sum.message(1, |point| {
                    point.fixed64(2, start);
                    point.fixed64(3, now);
                    point.fixed64(6, *count);
                    for (key, value) in attributes {
                        attribute(point, 7, key, value);
                    }
                });
            }
            sum.varint(2, CUMULATIVE);
            sum.varint(3, 1);
        });
    });
}

fn histogram(
    into: &mut Message,
    name: &str,
    description: &str,
    (start, now): (u64, u64),
    points: &[(Attributes, Durations)],
) {
    if points.is_empty() {
        return;
    }
    into.message(2, |metric| {
        metric.bytes_of(1, name.as_bytes());
        metric.bytes_of(2, description.as_bytes());
        metric.bytes_of(3, b"s");
        metric.message(9, |histogram| {
            for (attributes, durations) in points {
                histogram.message(1, |point| {
                    point.fixed64(2, start);
                    point.fixed64(3, now);
                    point.fixed64(4, durations.counts.iter().sum());
                    point.double(5, durations.sum.as_secs_f64());
                    point.packed64(6, durations.counts);
                    point.packed64(7, BUCKETS.iter().map(|us| Duration::from_micros(*us).as_secs_f64().to_bits()));
                    for (key, value) in attributes {
                        attribute(point, 9, key, value);
                    }
                });
            }
            histogram.varint(2, CUMULATIVE);
        });
    });
}

//! Spans and metrics as messages of OTLP (`opentelemetry.proto.collector.*.v1`).

use std::fmt;
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

/// What an attribute says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// In words.
    Text(String),
    /// A whole number, where the conventions want one.
    Number(u64),
}

impl From<&str> for Said {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The attributes of a span or of a series.
pub(crate) type Attributes = Vec<(&'static str, Said)>;

/// What is counted, as a collector gets it.
pub(crate) trait Counted: fmt::Debug + Send + Sync {
    /// Writes every series.
    fn write(&self, into: &mut SeriesWriter<'_>);
}

/// Where series are written to.
#[derive(Debug)]
pub(crate) struct SeriesWriter<'m> {
    scoped: &'m mut Message,
    /// When counting began, and now, in nanoseconds since 1970.
    times: (u64, u64),
}

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

fn attribute(into: &mut Message, field: u32, key: &str, value: &Said) {
    into.message(field, |pair| {
        pair.bytes_of(1, key.as_bytes());
        pair.message(2, |any| match value {
            Said::Text(text) => any.whole(1, text.as_bytes()),
            Said::Number(number) => any.number(3, *number),
        });
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
            attribute(message, 1, key, &Said::from(value.as_str()));
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
pub(super) fn metrics(
    of: &Resource,
    counted: &dyn Counted,
    exported: Exported,
    start: Duration,
    now: Duration,
) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |all| {
        resource(all, of);
        all.message(2, |scoped| {
            scope(scoped);
            let mut writer = SeriesWriter { scoped, times: (nanos(start), nanos(now)) };
            counted.write(&mut writer);
            let reason = |reason: &str| vec![("contextweaver.reason", Said::from(reason))];
            let counts = [(reason("queue_full"), exported.dropped), (reason("export_failed"), exported.failed)];
            writer.sum("contextweaver.otlp.dropped_spans", "{span}", "Spans that were not exported.", &counts);
        });
    });
    request.bytes()
}

/// What the conventions say of a method, and of the tool that it calls.
fn operation(method: &str, tool: Option<&str>) -> Attributes {
    let mut attributes = vec![("mcp.method.name", Said::from(method))];
    if method == "tools/call" {
        attributes.push(("gen_ai.operation.name", Said::from("execute_tool")));
    }
    attributes.extend(tool.map(|tool| ("gen_ai.tool.name", Said::from(tool))));
    attributes
}

impl Counted for Metrics {
    fn write(&self, into: &mut SeriesWriter<'_>) {
        let durations = self.durations();
        let durations = durations.iter().map(|((method, tool), took)| (operation(method, tool.as_deref()), *took));
        let description = "Time to answer, by method and tool.";
        into.histogram("mcp.server.operation.duration", description, &durations.collect::<Vec<_>>());
        let asked = self.all_asked();
        let asked = asked.iter().flat_map(|(upstream, asked)| {
            asked.iter().map(move |((method, failure), took)| {
                let mut attributes = operation(method, None);
                attributes.push(("contextweaver.upstream", Said::from(upstream.as_str())));
                attributes.extend(failure.map(|code| ("error.type", Said::from(code.word()))));
                (attributes, *took)
            })
        });
        let description = "Time that upstreams took to answer, by upstream, method and failure.";
        into.histogram("mcp.client.operation.duration", description, &asked.collect::<Vec<_>>());
        let requests = self.requests().into_iter().map(|((method, ending), count)| {
            let method = ("mcp.method.name", Said::from(method));
            (vec![method, ("contextweaver.outcome", Said::from(ending.label()))], count)
        });
        let description = "Requests by method and outcome.";
        into.sum("contextweaver.requests", "{request}", description, &requests.collect::<Vec<_>>());
        let series = self.series();
        let of = |tool: &str, caller: &str| {
            vec![("gen_ai.tool.name", Said::from(tool)), ("contextweaver.caller", Said::from(caller))]
        };
        let calls = series.iter().flat_map(|((tool, caller), counted)| {
            counted.codes.iter().map(move |(code, count)| {
                let mut attributes = of(tool, caller);
                attributes.push(("contextweaver.code", Said::from(*code)));
                (attributes, *count)
            })
        });
        let description = "Calls by tool, caller and code.";
        into.sum("contextweaver.calls", "{call}", description, &calls.collect::<Vec<_>>());
        let took: Vec<_> =
            series.iter().map(|((tool, caller), counted)| (of(tool, caller), counted.durations)).collect();
        into.histogram("contextweaver.call.duration", "Duration of calls, by tool and caller.", &took);
    }
}

impl SeriesWriter<'_> {
    /// A count that only grows.
    pub(crate) fn sum(&mut self, name: &str, unit: &str, description: &str, points: &[(Attributes, u64)]) {
        let (start, now) = self.times;
        if points.is_empty() {
            return;
        }
        self.scoped.message(2, |metric| {
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

    /// How long things took, in seconds.
    pub(crate) fn histogram(&mut self, name: &str, description: &str, points: &[(Attributes, Durations)]) {
        let (start, now) = self.times;
        if points.is_empty() {
            return;
        }
        self.scoped.message(2, |metric| {
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
}

"""A sink of OTLP over HTTP, and clients of a gateway and of the engines over HTTP that send to it; what came is read with the published
messages.

    sink.py CONTEXTWEAVER SERVER FOLDER

Exit code: 0 all is as expected, 1 something is not.
"""

import json
import signal
import subprocess
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
FORMS = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}


def sink():
    """Listens; the address, and what came: messages by path."""
    came = {path: [] for path in FORMS}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            assert self.headers["content-type"] == "application/x-protobuf", self.headers
            assert self.headers["x-key"] == "s3cret", self.headers
            message = FORMS[self.path].FromString(body)
            # Written again by the library, it is as long: nothing was passed over, and nothing is there twice.
            assert len(message.SerializeToString()) == len(body), self.path
            came[self.path].append(message)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}", came


def talk(command, folder, calls):
    """The answers of a gateway to calls of tools."""
    environment = {"KEY": "s3cret", "PATH": "/usr/bin:/bin"}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder, env=environment
    )

    def ask(number, method, params):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        while True:
            line = process.stdout.readline()
            assert line, "the gateway has ended"
            answer = json.loads(line)
            if answer.get("id") == number:
                return answer

    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    ask(1, "initialize", client)
    answers = [ask(number, "tools/call", params) for number, params in enumerate(calls, 2)]
    process.stdin.close()
    assert process.wait(30) == 0
    return answers


def attributes(pairs):
    return {pair.key: pair.value.string_value for pair in pairs}


def questions(contextweaver, folder):
    """`contextweaver serve` sends a span of each question, in the trace of who asked, and the metrics."""
    address, came = sink()
    section = {"otlp": {"endpoint": address, "headers": {"x-key": "${env:KEY}"}, "service_name": "engines"}}
    (Path(folder) / "otlp.yaml").write_text(json.dumps(section))
    process = subprocess.Popen(
        [contextweaver, "serve", "--listen", "127.0.0.1:0", "--otlp", "otlp.yaml"], stderr=subprocess.PIPE, text=True, cwd=folder,
        env={"KEY": "s3cret", "PATH": "/usr/bin:/bin"})
    try:
        url = process.stderr.readline().removeprefix("listening at ").strip()
        headers = {"content-type": "application/json", "traceparent": f"00-{TRACE}-{PARENT}-01"}
        body = json.dumps({"text": ["of nobody else"]}).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/count", body, headers), timeout=30) as answer:
            assert answer.status == 200
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
    assert code == 0, code
    [message] = came["/v1/traces"]
    [resource] = message.resource_spans
    assert attributes(resource.resource.attributes)["service.name"] == "engines"
    [span] = resource.scope_spans[0].spans
    assert (span.name, span.kind) == ("POST /v1/count", Span.SPAN_KIND_SERVER), span
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT), span
    numbers = {pair.key: pair.value.int_value for pair in span.attributes}
    assert numbers["http.response.status_code"] == 200, numbers
    assert b"of nobody else" not in message.SerializeToString()
    [metric] = [
        metric
        for message in came["/v1/metrics"]
        for metric in message.resource_metrics[0].scope_metrics[0].metrics
        if metric.name == "http.server.request.duration"
    ]
    [point] = metric.histogram.data_points
    assert point.count == sum(point.bucket_counts) == 1 and point.sum > 0, point
    assert attributes(point.attributes)["http.route"] == "/v1/count", point


def main(contextweaver, server, folder):
    questions(contextweaver, folder)
    address, came = sink()
    config = {
        "mode": "proxy",
        "upstreams": {"well": {"command": server, "args": ["well"]}, "ill": {"command": server, "args": ["malformed"]}},
        "otlp": {"endpoint": address, "headers": {"x-key": "${env:KEY}"}, "service_name": "tested"},
    }
    (Path(folder) / "gateway.yaml").write_text(json.dumps(config))
    traceparent = f"00-{TRACE}-{PARENT}-01"
    call = lambda tool: {"name": "tool_execute", "arguments": {"tool_id": tool, "args": {"text": "x"}}}
    answers = talk(
        [contextweaver, "mcp", "serve", "--config", "gateway.yaml"],
        folder,
        [{**call("well:echo"), "_meta": {"traceparent": traceparent}}, call("ill:echo")],
    )
    assert "error" not in answers[0] and not answers[0]["result"].get("isError"), answers[0]
    assert answers[1]["result"]["isError"], answers[1]

    spans = [
        span
        for message in came["/v1/traces"]
        for resource in message.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    resource = attributes(came["/v1/traces"][0].resource_spans[0].resource.attributes)
    assert resource["service.name"] == "tested", resource
    by_id = {span.span_id: span for span in spans}
    assert len(by_id) == len(spans)
    of_trace = [span for span in spans if span.trace_id.hex() == TRACE]
    above = next(span for span in of_trace if span.kind == Span.SPAN_KIND_SERVER)
    below = next(span for span in of_trace if span.kind == Span.SPAN_KIND_CLIENT)
    assert above.parent_span_id.hex() == PARENT and below.parent_span_id == above.span_id
    for span in (above, below):
        found = attributes(span.attributes)
        assert found["mcp.method.name"] == "tools/call" and found["gen_ai.operation.name"] == "execute_tool", found
        assert span.name.startswith("tools/call ") and span.end_time_unix_nano >= span.start_time_unix_nano > 0
        assert span.status.code == Status.STATUS_CODE_UNSET
        assert found["network.transport"] == "pipe", found
    assert (above.name, below.name) == ("tools/call tool_execute", "tools/call echo")
    # The first call is the second request.
    assert attributes(above.attributes)["jsonrpc.request.id"] == "2"
    assert attributes(below.attributes)["gen_ai.tool.name"] == "echo"
    assert attributes(below.attributes)["contextweaver.upstream"] == "well"
    failed = [span for span in spans if span.status.code == Status.STATUS_CODE_ERROR]
    assert {span.kind for span in failed} == {Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CLIENT}, failed
    assert attributes(failed[0].attributes)["error.type"] == "UPSTREAM_ERROR", failed[0]

    metrics = {
        metric.name: metric
        for message in came["/v1/metrics"]
        for resource in message.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    calls = {
        tuple(sorted(attributes(point.attributes).items())): point.as_int
        for point in metrics["contextweaver.calls"].sum.data_points
    }
    key = lambda tool, code: (
        ("contextweaver.caller", "local"),
        ("contextweaver.code", code),
        ("gen_ai.tool.name", tool),
    )
    assert calls[key("well:echo", "OK")] == 1 and calls[key("ill:echo", "UPSTREAM_ERROR")] == 1, calls
    durations = {}
    for name in ("mcp.server.operation.duration", "mcp.client.operation.duration"):
        for point in metrics[name].histogram.data_points:
            assert sum(point.bucket_counts) == point.count > 0 and point.sum > 0, point
            assert len(point.bucket_counts) == len(point.explicit_bounds) + 1, point
            durations[name, tuple(sorted(attributes(point.attributes).items()))] = point.count
    operation = {"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool"}
    for name, more, count in [
        ("mcp.server.operation.duration", {"gen_ai.tool.name": "tool_execute"}, 1),
        # A call that fails has no name.
        ("mcp.server.operation.duration", {}, 1),
        ("mcp.client.operation.duration", {"contextweaver.upstream": "well"}, 1),
        ("mcp.client.operation.duration", {"contextweaver.upstream": "ill", "error.type": "UPSTREAM_ERROR"}, 1),
    ]:
        assert durations.get((name, tuple(sorted({**operation, **more}.items())))) == count, durations
    print(f"otlp-test: {len(spans)} spans and {len(metrics)} metrics, as OpenTelemetry reads them")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A collector of traces: OTLP over HTTP, parsed with OpenTelemetry's own messages."""

import contextlib
import http.server
import threading

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Collector:
    """Keeps the requests received. The first responses have the given `statuses`; it does not respond while `open` is
    cleared."""

    def __init__(self, statuses=()):
        self.requests, self.headers, self.problems = [], [], []
        self.statuses = list(statuses)
        self.open = threading.Event()
        self.open.set()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.open.wait()
                status = collector.take(self.path, self.headers, body)
                answer = ExportTraceServiceResponse().SerializeToString()
                with contextlib.suppress(OSError):  # The daemon may have closed the connection.
                    self.send_response(status)
                    self.send_header("Content-Type", "application/x-protobuf")
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def take(self, path, headers, body):
        if path != "/v1/traces" or headers["Content-Type"] != "application/x-protobuf":
            self.problems.append((path, dict(headers)))
        self.headers.append(dict(headers))
        if self.statuses:
            return self.statuses.pop(0)
        self.requests.append(ExportTraceServiceRequest.FromString(body))
        return 200

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.open.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        assert not self.problems

    def spans(self, trace=None):
        """All spans, or those of one trace, given by its hexadecimal id."""
        found = [
            span
            for request in list(self.requests)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        assert len({span.span_id for span in found}) == len(found), "a span came twice"
        return [span for span in found if trace in (None, span.trace_id.hex())]


def attributes(span):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def environment(patch, url, **more):
    """Sets the variables that make a daemon export its traces to `url` almost immediately."""
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_BSP_SCHEDULE_DELAY": "20", **more}
    for name, value in settings.items():
        patch.setenv(name, value)

"""Tests traces and the access log, with a collector that parses OpenTelemetry's own messages."""

import concurrent.futures
import json
import secrets
import socket
import urllib.error
import urllib.request

import grpc
import numpy
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from collector import Collector, attributes, environment
from harness import Daemon, eventually, run_to_end
from messages import infer_request, message, predict_request, stream
from tiny_models import Identity, write_model

VALUES = numpy.ones((1, 1, 2, 3, 4), numpy.float32)
ENSEMBLE = """
platform: "ensemble"
max_batch_size: 4
input [ { name: "volume" data_type: TYPE_FP32 dims: [ 1, 2, 3, 4 ] } ]
output [ { name: "same" data_type: TYPE_FP32 dims: [ 2, 3, 4 ] } ]
ensemble_scheduling { step [ {
  model_name: "identity" model_version: -1
  input_map { key: "image" value: "volume" } output_map { key: "restored" value: "same" } } ] }
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    made = tmp_path_factory.mktemp("identity")
    write_model(made, "identity", Identity(), max_batch_size=4)
    # A pass that begins with 99 hangs, so other requests wait.
    write_model(made, "pair", Identity(hang_at="99", hang_seconds="1"), max_batch_size=2)
    (made / "chain").mkdir()
    (made / "chain" / "config.pbtxt").write_text(ENSEMBLE)
    return made


@pytest.fixture(scope="module")
def collector():
    with Collector() as running:
        yield running


@pytest.fixture(scope="module")
def daemon(root, collector, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        environment(
            patch,
            collector.url,
            OTEL_SERVICE_NAME="eyes",
            OTEL_RESOURCE_ATTRIBUTES="deployment.environment=test%20one",
            OTEL_EXPORTER_OTLP_HEADERS="api-key=s3cret",
        )
        flags = ("--access-log", "--log-format=json", "--allow-drills")
        with Daemon(root, *flags, log_folder=tmp_path_factory.mktemp("log")) as running:
            yield running.await_ready()


def new_parent(flags="01"):
    """Returns (trace id, span id, traceparent) of a client."""
    trace, span = secrets.token_hex(16), secrets.token_hex(8)
    return trace, span, f"00-{trace}-{span}-{flags}"


def infer(daemon, model="identity", traceparent=None, name="image", sent=VALUES, **metadata):
    if traceparent:
        metadata["traceparent"] = traceparent
    metadata = [(key.replace("_", "-"), value) for key, value in metadata.items()]
    with daemon.inference() as inference:
        return inference.model_infer(infer_request(model, sent.shape, sent.tobytes(), name=name), metadata=metadata)


def await_spans(collector, trace, names):
    eventually(lambda: len(collector.spans(trace)) >= len(names), f"the spans {names} of {trace} came")
    spans = collector.spans(trace)
    assert sorted(span.name for span in spans) == sorted(names)
    return {span.name: span for span in spans}


STAGES = ["queue", "compute", "encode"]


def test_stages_lie_one_after_the_other_in_the_clients_trace(daemon, collector):
    trace, parent, traceparent = new_parent()
    infer(daemon, traceparent=traceparent, tracestate="vendor=1", x_request_id="mine")
    method = "inference.GRPCInferenceService/ModelInfer"
    spans = await_spans(collector, trace, [method, *STAGES])
    call = spans[method]
    assert call.parent_span_id.hex() == parent
    assert call.kind == Span.SPAN_KIND_SERVER
    assert call.flags == 0x301
    assert call.status.code == Status.STATUS_CODE_UNSET
    told = attributes(call)
    assert told["rpc.system.name"] == "grpc" and told["rpc.method"] == method
    assert told["rpc.response.status_code"] == "OK"
    assert told["saccade.model.name"] == "identity" and told["saccade.model.version"] == 1
    assert told["saccade.request.id"] == "mine"
    assert told["client.address"] == "127.0.0.1"
    assert told["saccade.request.size"] > VALUES.nbytes and told["saccade.response.size"] > VALUES.nbytes
    assert all(span.trace_state == "vendor=1" for span in spans.values())
    at = call.start_time_unix_nano
    for stage in STAGES:
        assert spans[stage].parent_span_id == call.span_id
        assert at <= spans[stage].start_time_unix_nano <= spans[stage].end_time_unix_nano
        at = spans[stage].end_time_unix_nano
    assert at == call.end_time_unix_nano
    resource = attributes(collector.requests[0].resource_spans[0].resource)
    assert resource["service.name"] == "eyes" and resource["deployment.environment"] == "test one"
    assert collector.headers[0]["api-key"] == "s3cret"


def predict(daemon, traceparent):
    shape = message("saccade.v1.VolumeShape")(depth=2, height=3, width=4, type=3)
    volume = message("saccade.v1.Volume")(raw={"shape": shape, "voxels": VALUES.tobytes()})
    with daemon.vision() as vision:
        vision.predict(predict_request(model="identity", volume=volume), metadata=[("traceparent", traceparent)])


def predict_stream(daemon, traceparent):
    # The request is rejected, which does not end the stream.
    request = message("saccade.v1.PredictStreamRequest")(request=predict_request(model="identity"))
    with daemon.vision() as vision:
        list(vision.predict_stream(iter([request]), metadata=[("traceparent", traceparent)]))


def restore(daemon, traceparent):
    shape = message("saccade.v1.VolumeShape")(depth=2, height=3, width=4, type=3)
    header = {"model": "identity", "bytes": VALUES.nbytes, "raw": shape}
    parts = [message("saccade.v1.RestoreRequest")(header=header)]
    parts.append(message("saccade.v1.RestoreRequest")(data=VALUES.tobytes()))
    with daemon.vision() as vision:
        list(vision.restore(iter(parts), metadata=[("traceparent", traceparent)]))


def infer_stream(daemon, traceparent):
    with daemon.channel() as channel:
        call = stream(channel, "inference.GRPCInferenceService", "ModelStreamInfer")
        request = infer_request("identity", VALUES.shape, VALUES.tobytes())
        list(call(iter([request]), metadata=[("traceparent", traceparent)]))


def post(daemon, path, body, **headers):
    headers = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.http_port}{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def rest_infer(daemon, traceparent):
    tensor = {"name": "image", "shape": VALUES.shape, "datatype": "FP32", "data": VALUES.ravel().tolist()}
    post(daemon, "/v2/models/identity/infer", {"inputs": [tensor]}, traceparent=traceparent)


def rest_predict(daemon, traceparent):
    with pytest.raises(urllib.error.HTTPError, match="400"):
        post(daemon, "/v1/predict", {"model": "identity"}, traceparent=traceparent)


@pytest.mark.parametrize(
    "call, name, stages",
    [
        (predict, "saccade.v1.Vision/Predict", ["decode", *STAGES]),
        (predict_stream, "saccade.v1.Vision/PredictStream", []),
        (restore, "saccade.v1.Vision/Restore", ["decode", *STAGES]),
        (infer_stream, "inference.GRPCInferenceService/ModelStreamInfer", STAGES),
        (rest_infer, "POST /v2/models/{model}/infer", STAGES),
        (rest_predict, "POST /v1/predict", []),
    ],
)
def test_every_protocol_takes_part(daemon, collector, call, name, stages):
    trace, parent, traceparent = new_parent()
    call(daemon, traceparent)
    span = await_spans(collector, trace, [name, *stages])[name]
    assert span.parent_span_id.hex() == parent
    assert span.kind == Span.SPAN_KIND_SERVER
    if name.startswith("POST"):
        assert attributes(span)["http.response.status_code"] == (200 if stages else 400)


def test_steps_of_an_ensemble_are_told_within_it(daemon, collector):
    trace, _, traceparent = new_parent()
    infer(daemon, "chain", traceparent, name="volume")
    method = "inference.GRPCInferenceService/ModelInfer"
    spans = await_spans(collector, trace, [method, "step", *STAGES])
    assert attributes(spans[method])["saccade.model.name"] == "chain"
    assert attributes(spans["step"])["saccade.model.name"] == "identity"
    assert spans["step"].parent_span_id == spans[method].span_id
    assert all(spans[stage].parent_span_id == spans["step"].span_id for stage in STAGES)


def test_a_batch_links_its_members_and_they_link_it(daemon, collector):
    method = "inference.GRPCInferenceService/ModelInfer"
    computed = []

    def share_a_pass():
        parents = [new_parent() for _ in range(2)]
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            hanging = pool.submit(infer, daemon, "pair", sent=numpy.full_like(VALUES, 99))
            list(pool.map(lambda parent: infer(daemon, "pair", parent[2]), parents))
            hanging.result()
        computed[:] = [await_spans(collector, trace, [method, *STAGES])["compute"] for trace, _, _ in parents]
        return attributes(computed[0])["saccade.batch.size"] == 2 and computed[0].links == computed[1].links

    eventually(share_a_pass, "two calls shared a pass")
    (link,) = computed[0].links
    assert [(one.trace_id, one.span_id) for one in computed[1].links] == [(link.trace_id, link.span_id)]
    eventually(lambda: collector.spans(link.trace_id.hex()), "the batch came")
    (batch,) = collector.spans(link.trace_id.hex())
    assert batch.name == "batch" and batch.span_id == link.span_id and not batch.parent_span_id
    assert {(one.trace_id, one.span_id) for one in batch.links} == {(one.trace_id, one.span_id) for one in computed}
    assert attributes(batch)["saccade.batch.size"] == 2 and attributes(batch)["saccade.batch.requests"] == 2


def test_a_malformed_parent_is_none(daemon, collector):
    trace, _, traceparent = new_parent()
    mark = secrets.token_hex(4)
    infer(daemon, traceparent=traceparent.upper(), tracestate="vendor=1", x_request_id=mark)

    def found():
        return [span for span in collector.spans() if attributes(span).get("saccade.request.id") == mark]

    eventually(found, "the call's own trace came")
    assert found()[0].trace_id.hex() != trace
    assert not found()[0].parent_span_id and not found()[0].trace_state


def test_a_refused_call_is_told_with_its_status(daemon, collector):
    trace, _, traceparent = new_parent()
    with pytest.raises(grpc.RpcError):
        infer(daemon, "nobody", traceparent)
    (span,) = await_spans(collector, trace, ["inference.GRPCInferenceService/ModelInfer"]).values()
    assert attributes(span)["error.type"] == "NOT_FOUND"
    # A client's error does not set the span's status to an error.
    assert span.status.code == Status.STATUS_CODE_UNSET


def test_the_access_log_has_a_line_a_call(daemon):
    trace, _, traceparent = new_parent()
    infer(daemon, traceparent=traceparent, x_request_id="in the log")

    def lines():
        every = [json.loads(line) for line in daemon.log_lines() if line.startswith("{")]
        return [line for line in every if line.get("trace_id") == trace]

    eventually(lines, "the call's line was written")
    (line,) = lines()
    assert line["message"] == "call" and line["level"] == "info"
    assert line["request_id"] == "in the log" and line["client"] == "ipv4:127.0.0.1"
    assert line["method"] == "inference.GRPCInferenceService/ModelInfer"
    assert (line["model"], line["version"], line["status"], line["batch_size"]) == ("identity", 1, "OK", 1)
    assert line["bytes_in"] > VALUES.nbytes and line["bytes_out"] > VALUES.nbytes
    stages = sum(line[f"{stage}_ms"] for stage in ("decode", "queue", "compute", "encode"))
    assert 0 < stages <= line["total_ms"] + 0.01


@pytest.mark.parametrize("sampler, argument, sampled", [("traceidratio", "0", {"00": 0, "01": 0}),
                                                        ("parentbased_traceidratio", "1", {"00": 0, "01": 1})])
def test_what_is_sampled_is_sent_before_the_daemon_ends(root, start, monkeypatch, sampler, argument, sampled):
    with Collector() as collector:
        # The spans are exported before this delay has passed.
        environment(monkeypatch, collector.url, OTEL_BSP_SCHEDULE_DELAY="60000", OTEL_TRACES_SAMPLER=sampler,
                    OTEL_TRACES_SAMPLER_ARG=argument)
        daemon = start(root, "--lame-duck-seconds=0", "--allow-drills").await_ready()
        parents = {flags: new_parent(flags) for flags in sampled}
        for _, _, traceparent in parents.values():
            infer(daemon, traceparent=traceparent)
        daemon.terminate()
        assert daemon.exit_code() == 0
        for flags, count in sampled.items():
            assert len(collector.spans(parents[flags][0])) == count * 4


def dropped(daemon, reason):
    return daemon.metrics().value("saccade_trace_spans_dropped_total", reason=reason)


def test_a_collector_that_is_down_costs_spans_alone(root, start, monkeypatch):
    with socket.socket() as closed:
        # Nothing listens on this port.
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        environment(monkeypatch, url, OTEL_BSP_EXPORT_TIMEOUT="200")
        daemon = start(root, "--lame-duck-seconds=0", "--allow-drills").await_ready()
        assert infer(daemon).raw_output_contents[0] == VALUES.tobytes()
        eventually(lambda: dropped(daemon, "export_failed") >= 5, "the spans were counted as dropped")
        daemon.await_log("spans were dropped")
        daemon.terminate()
        assert daemon.exit_code() == 0


def test_a_collector_that_hangs_costs_spans_alone(root, start, monkeypatch):
    with Collector() as collector:
        collector.open.clear()
        environment(monkeypatch, collector.url, OTEL_BSP_MAX_QUEUE_SIZE="8")
        daemon = start(root, "--lame-duck-seconds=0", "--allow-drills").await_ready()

        def loses_some():
            infer(daemon)
            return dropped(daemon, "queue_full") > 0

        eventually(loses_some, "the queue was full")
        daemon.terminate()
        # The exit does not wait for the collector indefinitely.
        assert daemon.exit_code() == 0


def test_a_busy_collector_is_asked_again(root, start, monkeypatch):
    with Collector(statuses=[503]) as collector:
        environment(monkeypatch, collector.url)
        daemon = start(root, "--allow-drills").await_ready()
        trace, _, traceparent = new_parent()
        infer(daemon, traceparent=traceparent)
        await_spans(collector, trace, ["inference.GRPCInferenceService/ModelInfer", *STAGES])
        eventually(lambda: daemon.metrics().value("saccade_trace_spans_exported_total") == 5, "all were counted")
        assert dropped(daemon, "export_failed") == 0


def test_a_wrong_variable_is_named_at_start(root, monkeypatch):
    environment(monkeypatch, "http://127.0.0.1:1", OTEL_TRACES_SAMPLER="sometimes")
    ports = [f"--{of}-port=0" for of in ("grpc", "http", "metrics")]
    ended = run_to_end("--host=127.0.0.1", f"--model-repository={root}", *ports)
    assert ended.returncode == 1
    assert "OTEL_TRACES_SAMPLER is 'sometimes'; expected always_on" in ended.stderr

"""Tests the load that the daemon reports: in trailers of gRPC (ORCA), and as metrics with one number for a pod."""

import base64
import struct
import urllib.request

import grpc
import numpy
import pytest

import pictures
from harness import DEADLINE_SECONDS, eventually
from messages import infer_request, message, predict_request
from tiny_models import Identity, TinyModel, write_model

WISH = {"endpoint-load-metrics-format": "bin"}
VOLUME = numpy.ones((1, 1, 1, 1, 4), numpy.float32)
REQUEST = infer_request("served", VOLUME.shape, VOLUME.tobytes())


@pytest.fixture
def serve(start, tmp_path):
    def serve_identity(*flags, **config):
        # A pass takes a core for 50 ms.
        write_model(tmp_path, "served", Identity(delay_ms="50", delay="busy"), max_batch_size=1, **config)
        return start(tmp_path, "--cores=1", *flags).await_ready()

    return serve_identity


def answer_of(daemon, request=REQUEST, asks=False):
    """Sends the request over gRPC-web, whose trailers are the last message of the body: gRPC's own clients keep this
    trailer to themselves. Returns gRPC's status and the load report, or None."""
    message_bytes = request.SerializeToString()
    headers = {"Content-Type": "application/grpc-web+proto", **(WISH if asks else {})}
    sent = urllib.request.Request(
        f"http://127.0.0.1:{daemon.http_port}/inference.GRPCInferenceService/ModelInfer",
        b"\0" + struct.pack(">I", len(message_bytes)) + message_bytes, headers)
    with urllib.request.urlopen(sent, timeout=DEADLINE_SECONDS) as answer:
        body = answer.read()
    while not body[0] & 0x80:
        body = body[5 + struct.unpack(">I", body[1:5])[0]:]
    fields = dict(line.split(": ", 1) for line in body[5:].decode().strip().split("\r\n"))
    report = fields.get("endpoint-load-metrics-bin")
    if report is not None:
        report = message("xds.data.orca.v3.OrcaLoadReport").FromString(
            base64.b64decode(report + "=" * (-len(report) % 4)))
    return int(fields["grpc-status"]), report


def test_a_call_that_asks_gets_a_report_and_others_do_not(serve):
    daemon = serve()
    assert answer_of(daemon) == (0, None)
    status, report = answer_of(daemon, asks=True)
    assert status == 0
    assert set(report.named_metrics) == {"shed_ratio", "waiting_requests"}
    # Calls that fail have one too: weights follow errors.
    status, report = answer_of(daemon, infer_request("none", VOLUME.shape, VOLUME.tobytes()), asks=True)
    assert status == grpc.StatusCode.NOT_FOUND.value[0]
    assert report is not None


def test_the_report_says_how_much_is_asked_for(serve):
    daemon = serve("--orca-load-reports", "--max-queue-size=4")
    _, idle = answer_of(daemon)
    assert idle.application_utilization < 0.5
    with daemon.inference() as inference:

        def overloaded():
            # Forty at once, of which a core can do twenty a second.
            calls = [inference.model_infer.future(REQUEST) for _ in range(40)]
            for call in calls:
                call.exception()
            _, report = answer_of(daemon)
            # Averages fall with time, so that the metrics are read at once.
            metrics = daemon.metrics()
            return (report.application_utilization > 1 and report.named_metrics["shed_ratio"] > 0.3
                    and report.rps_fractional > 10 and metrics.value("saccade_utilization") > 0.5
                    and metrics.value("saccade_shed_ratio") > 0.1)

        eventually(overloaded, "the overload is reported")
    eventually(lambda: daemon.metrics().value("saccade_waiting_requests") == 0, "none waits any more")


def test_decoding_is_a_part_of_what_is_asked_for(start, tmp_path):
    """Large pictures for a small network fill the cores, although its passes hardly take any time."""
    write_model(tmp_path, "small", TinyModel(classes=5, seed=3), max_batch_size=8)
    daemon = start(tmp_path, "--cores=1", "--decode-threads=1", "--decode-queue=4").await_ready()
    large = pictures.encoded(pictures.pixels(0, 3000, 4000))
    with daemon.vision() as vision:

        def asked_for():
            calls = [vision.predict.future(predict_request(model="small", encoded=large)) for _ in range(16)]
            for call in calls:
                call.exception()
            return daemon.metrics().value("saccade_utilization")

        eventually(lambda: asked_for() > 1, "more is asked for than one core can do")
    metrics = daemon.metrics()
    passes = metrics.value("saccade_model_demand_seconds_total", model="small", version="1")
    everything = metrics.value("saccade_demand_seconds_total", devices="cores")
    assert everything > 5 * passes, "nearly all of it is decoding"

"""Tests the metrics in OpenMetrics format, as Prometheus requests them, and their exemplars."""

import math
import secrets
import time
import urllib.request

import numpy
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from collector import Collector, environment
from exposition import parse
from harness import DEADLINE_SECONDS, Daemon, eventually
from messages import infer_request
from prometheus_server import Prometheus
from tiny_models import Identity, write_model

VALUES = numpy.ones((1, 1, 2, 3, 4), numpy.float32)
REQUESTS = "saccade_request_duration_seconds"
# The Accept header of Debian 12's Prometheus.
ACCEPT = ("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
          "text/plain;version=0.0.4;q=0.5,*/*;q=0.1")


@pytest.fixture(scope="module")
def collector():
    with Collector() as running:
        yield running


@pytest.fixture(scope="module")
def daemon(collector, tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    write_model(root, "identity", Identity(), max_batch_size=4)
    write_model(root, "untraced", Identity(), max_batch_size=4)
    with pytest.MonkeyPatch.context() as patch:
        environment(patch, collector.url)
        with Daemon(root, log_folder=tmp_path_factory.mktemp("log")) as running:
            yield running.await_ready()


def infer(inference, model, flags):
    trace = secrets.token_hex(16)
    request = infer_request(model, VALUES.shape, VALUES.tobytes(), name="image")
    inference.model_infer(request, metadata=[("traceparent", f"00-{trace}-{secrets.token_hex(8)}-{flags}")])
    return trace


@pytest.fixture(scope="module")
def sampled(daemon):
    """Trace ids of the sampled calls of 'identity'. Every other call of it is not sampled, and no call of 'untraced'
    is."""
    with daemon.inference() as inference:
        traces = [infer(inference, "identity", flags) for flags in ["01", "00", "01", "00"]]
        infer(inference, "untraced", "00")
    return traces[::2]


def scrape(daemon, accept=ACCEPT):
    """Returns (Content-Type, body)."""
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.metrics_port}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def families(daemon):
    content_type, page = scrape(daemon)
    assert content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    return {family.name: family for family in text_string_to_metric_families(page)}


def still(samples):
    """The samples that do not change between scrapes. A client's connection may end between them, and an average falls."""
    moving = ("nv_cpu_", "nv_gpu_", "nv_energy_", "saccade_gpu_", "process_", "saccade_trace_", "saccade_front_connections",
              "saccade_memory_allocated_bytes", "saccade_utilization")
    return {key: value for key, value in samples.items() if not key[0].startswith(moving)}


def test_both_formats_have_the_same_series(daemon, sampled):
    samples, text = {}, {}

    def is_still():
        """Scrapes both; some is counted only a moment after a call is answered."""
        before = daemon.metrics()
        samples.clear()
        samples.update({(sample.name, frozenset(sample.labels.items())): sample.value
                        for family in families(daemon).values() for sample in family.samples})
        text.clear()
        text.update(daemon.metrics())
        return still(before) == still(text)

    eventually(is_still, "everything before is counted")
    assert still(samples) == still(text)
    assert set(samples) == set(text)
    # A client that prefers the text format gets it.
    content_type, page = scrape(daemon, "text/plain;version=0.0.4,application/openmetrics-text;q=0.5")
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert still(parse(page)) == still(text)


def test_types_and_units(daemon, sampled):
    found = families(daemon)
    assert (found["saccade_requests"].type, found["saccade_requests"].unit) == ("counter", "")
    assert (found[REQUESTS].type, found[REQUESTS].unit) == ("histogram", "seconds")
    assert (found["saccade_inflight_bytes"].type, found["saccade_inflight_bytes"].unit) == ("gauge", "bytes")
    assert (found["process_cpu_seconds"].type, found["process_cpu_seconds"].unit) == ("counter", "seconds")
    # Triton's counters do not follow OpenMetrics' naming rules; they keep their names and have the type unknown.
    assert found["nv_inference_request_success"].type == "unknown"
    assert found["nv_inference_pending_request_count"].type == "gauge"


def test_exemplars_are_the_calls_that_were_sampled(daemon, collector, sampled):
    eventually(lambda: all(collector.spans(trace) for trace in sampled), "the traces came")
    served = {trace: span.span_id.hex() for trace in sampled for span in collector.spans(trace)
              if span.name == "inference.GRPCInferenceService/ModelInfer"}
    exemplars, lower = {}, {}
    for family in families(daemon).values():
        for sample in family.samples:
            model = sample.labels.get("model")
            if sample.name == f"{REQUESTS}_bucket":
                bounds = lower.get(model, -math.inf), float(sample.labels["le"])
                lower[model] = bounds[1]
            if sample.exemplar:
                assert (sample.name, model) == (f"{REQUESTS}_bucket", "identity")
                assert bounds[0] < sample.exemplar.value <= bounds[1]
                assert abs(float(sample.exemplar.timestamp) - time.time()) < 2 * DEADLINE_SECONDS
                exemplars[sample.exemplar.labels["trace_id"]] = sample.exemplar.labels["span_id"]
    # Of the calls in one bucket, the last one is its exemplar.
    assert sampled[-1] in exemplars
    assert exemplars.items() <= served.items()


def test_prometheus_keeps_them(daemon, collector, sampled, tmp_path):
    with Prometheus(tmp_path, daemon.metrics_port) as prometheus:
        def kept():
            now = time.time()
            return prometheus.exemplars(f'{REQUESTS}_bucket{{model="identity"}}', now - 600, now + 60)

        eventually(kept, "Prometheus has an exemplar")
        labels, exemplar = kept()[-1]
        assert labels["job"] == "saccade" and labels["task"] == "restoration"
        assert {one["labels"]["trace_id"] for _, one in kept()} <= set(sampled)
        assert sampled[-1] in {one["labels"]["trace_id"] for _, one in kept()}
        assert collector.spans(exemplar["labels"]["trace_id"])
        # The names in Prometheus are those of the text format.
        assert prometheus.query('nv_inference_request_success{model="identity"}')
        assert prometheus.query('saccade_requests_total{model="identity"}')
        assert prometheus.query(f'{REQUESTS}_bucket{{model="identity",le="1"}}')

"""Tests which metric series exist, and that clients cannot create more of them."""

import json
import pathlib
import re
import secrets
import shutil
import urllib.error
import urllib.request

import grpc
import numpy
import pytest

from collector import Collector, environment
from harness import DEADLINE_SECONDS, ROOT, Daemon
from messages import infer_request
from tiny_models import Identity, write_model

MODELS = ["one", "two", "three"]
VALUES = numpy.ones((1, 1, 1, 1, 8), numpy.float32)

NONE, VERSION, TASK = set(), {"model", "version"}, {"model", "version", "task"}
# Label names of every metric family, without the `le` of buckets.
LABELS = {
    **dict.fromkeys(("nv_cpu_utilization", "nv_cpu_memory_total_bytes", "nv_cpu_memory_used_bytes"), NONE),
    **dict.fromkeys((f"process_{name}" for name in ("cpu_seconds_total", "resident_memory_bytes", "virtual_memory_bytes",
                                                    "start_time_seconds", "open_fds", "max_fds")), NONE),
    "saccade_build_info": {"version"},
    **dict.fromkeys((f"saccade_inflight_{what}" for what in ("requests", "bytes", "decoded_bytes")), NONE),
    "saccade_shed_total": {"reason"},
    "saccade_demand_seconds_total": {"devices"},
    **dict.fromkeys(("saccade_utilization", "saccade_shed_ratio", "saccade_waiting_requests"), NONE),
    "saccade_models": {"state"},
    "saccade_model_loads_total": {"result"},
    "saccade_thread_trials_total": {"result"},
    **dict.fromkeys(("saccade_model_memory_bytes", "saccade_load_waiting_requests", "saccade_memory_allocated_bytes"), NONE),
    "saccade_front_refusals_total": {"reason"},
    "saccade_log_lines_dropped_total": {"reason"},
    "saccade_decode_workers": {"state"},
    "saccade_decode_worker_starts_total": NONE,
    "saccade_decode_worker_ends_total": {"reason"},
    "saccade_front_connections": {"port"},
    "saccade_front_requests_open": NONE,
    **dict.fromkeys(("nv_inference_request_success", "nv_inference_count", "nv_inference_exec_count"), VERSION),
    "nv_inference_request_failure": VERSION | {"reason"},
    **dict.fromkeys((f"nv_inference_{stage}_duration_us" for stage in
                     ("request", "queue", "compute_input", "compute_infer", "compute_output")), VERSION),
    **dict.fromkeys(("nv_inference_pending_request_count", "nv_model_load_duration_secs"), VERSION),
    "saccade_requests_total": TASK | {"protocol", "code"},
    "saccade_request_duration_seconds": TASK,
    "saccade_stage_duration_seconds": TASK | {"stage"},
    **dict.fromkeys((f"saccade_{name}" for name in
                     ("queue_requests", "batch_size", "batches_without_memory_total", "padding_ratio", "image_pixels",
                      "model_ready", "model_load_duration_seconds", "model_instances", "model_instances_set_aside",
                      "model_instances_lost",
                      "batches_retried_total",
                      "model_demand_seconds_total")), VERSION),
    "saccade_model_precision_info": VERSION | {"precision"},
    **dict.fromkeys((f"nv_cache_{name}_per_model" for name in
                     ("num_hits", "num_misses", "hit_duration", "miss_duration")), VERSION),
    "saccade_response_cache_joined_total": VERSION,
    "saccade_drift": VERSION | {"feature"},
    **dict.fromkeys(("saccade_drift_items_total", "saccade_drift_repeated_total"), VERSION),
    **dict.fromkeys((f"saccade_shadow_{what}" for what in
                     ("compared_total", "agreed_total", "equal_total", "failed_total", "timed_passes_total",
                      "difference")),
                    VERSION | {"shadow"}),
    "saccade_shadow_dropped_total": VERSION | {"shadow", "reason"},
    "saccade_shadow_promotion": VERSION | {"shadow", "state"},
    **dict.fromkeys((f"saccade_response_cache_{what}" for what in ("bytes", "answers")), NONE),
    "saccade_trace_spans_exported_total": NONE,
    "saccade_trace_spans_dropped_total": {"reason"},
}
OF_GPUS = ("nv_gpu_", "nv_energy_", "saccade_gpu_")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """A daemon with all options that add series, except TLS."""
    root = tmp_path_factory.mktemp("models")
    for model in MODELS:
        write_model(root, model, Identity(), max_batch_size=4)
    with open(root / "one" / "config.pbtxt", "a") as config:
        config.write("response_cache { enable: true }\n"
                     'parameters { key: "drift_window" value { string_value: "100" } }\n')
    shutil.copytree(root / "two" / "1", root / "two" / "2")
    with open(root / "two" / "config.pbtxt", "a") as config:
        config.write("version_policy { all { } }\n"
                     'parameters { key: "shadow" value { string_value: "version=2,share=1" } }\n'
                     'parameters { key: "promote" value { string_value: "equality >= 1 after 1000000 requests" } }\n')
    with Collector() as collector, pytest.MonkeyPatch.context() as patch:
        environment(patch, collector.url)
        with Daemon(root, "--cache-config=local,size=1048576", "--access-log", "--client-requests-per-second=100000",
                    log_folder=tmp_path_factory.mktemp("log")) as running:
            yield running.await_ready()


def infer(inference, model="one", values=VALUES, request_id="", version=""):
    metadata = [("x-request-id", secrets.token_hex(8)), ("tenant", secrets.token_hex(8)),
                ("user-agent-of", secrets.token_hex(8))]
    request = infer_request(model, values.shape, values.tobytes(), name="image", version=version)
    request.id = request_id
    try:
        inference.model_infer(request, metadata=metadata, timeout=DEADLINE_SECONDS)
        return grpc.StatusCode.OK
    except grpc.RpcError as error:
        return error.code()


def post(daemon, model, body):
    headers = {"Content-Type": "application/json", "x-request-id": secrets.token_hex(8)}
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.http_port}/v2/models/{model}/infer",
                                     json.dumps(body).encode(), headers)
    try:
        urllib.request.urlopen(request, timeout=DEADLINE_SECONDS).close()
        return 200
    except urllib.error.HTTPError as error:
        return error.code


@pytest.fixture(scope="module")
def asked(daemon):
    """One call of each kind that adds a series, and one of each model: its first adds its histograms."""
    with daemon.inference() as inference:
        assert infer(inference) == infer(inference, MODELS[2]) == grpc.StatusCode.OK
        assert infer(inference, MODELS[1], version="2") == grpc.StatusCode.OK
        assert infer(inference, "no such model") == grpc.StatusCode.NOT_FOUND
        assert infer(inference, values=VALUES[0]) == grpc.StatusCode.INVALID_ARGUMENT
    assert post(daemon, "two", {"inputs": [{"name": "image", "shape": VALUES.shape, "datatype": "FP32",
                                            "data": VALUES.ravel().tolist()}]}) == 200
    assert post(daemon, "none", {"inputs": [{"name": "image", "shape": [1], "datatype": "FP32", "data": [1]}]}) == 404
    assert post(daemon, "two", {"inputs": "none"}) == 400


def series(daemon):
    return {key: value for key, value in daemon.metrics().items() if not key[0].startswith(OF_GPUS)}


def test_every_familys_labels_are_in_the_table(daemon, asked):
    page = daemon.metrics()
    found = {}
    for name, labels in page:
        family = re.sub("_(bucket|count|sum)$", "", name)
        family = family if page.types.get(family) == "histogram" else name
        names = {label for label, _ in labels} - ({"le"} if name.endswith("_bucket") else set())
        if not family.startswith(OF_GPUS):
            found.setdefault(family, set()).add(frozenset(names))
    assert found == {family: {frozenset(names)} for family, names in LABELS.items()}


def documented():
    """The numbers of series per daemon and per model version that docs/reference/metrics.md states."""
    page = (pathlib.Path(ROOT) / "docs" / "reference" / "metrics.md").read_text()
    return tuple(int(re.search(rf"^\| {of} \| (\d+) \|$", page, re.M)[1])
                 for of in ("the daemon", "each version of a model"))


def test_there_are_as_many_as_is_documented(daemon, asked):
    found = series(daemon)
    requests = sum(name == "saccade_requests_total" for name, _ in found)
    of_daemon, of_version = documented()
    cached, watched, shadowed, cache, traces = 5, 9, 30, 2, 4
    versions = len(MODELS) + 1
    assert len(found) - requests == of_daemon + of_version * versions + cached + watched + shadowed + cache + traces
    assert requests == 8


def test_no_client_makes_series(daemon, asked):
    before = set(series(daemon))
    told = lambda text: sum(value for (name, labels), value in daemon.metrics().items()
                            if name == "saccade_requests_total" and ("code", text) in labels)
    unknown = told("NOT_FOUND")
    with daemon.inference() as inference:
        for number in range(700):
            name = ("a-%d" % number, "one\n%d" % number, "../%d" % number, "m\"}%d" % number, "\u00e4%d" % number)[number % 5]
            assert infer(inference, name) == grpc.StatusCode.NOT_FOUND
        for number in range(2, 302):
            assert infer(inference, version=str(number)) == grpc.StatusCode.NOT_FOUND
        # Requests to an existing model, with every field that a client can choose freely.
        for number in range(50):
            assert infer(inference, MODELS[0], request_id=f"id {number} " + secrets.token_hex(8)) == grpc.StatusCode.OK
            assert infer(inference, values=VALUES[0], request_id=str(number)) == grpc.StatusCode.INVALID_ARGUMENT
    for number in range(50):
        assert post(daemon, f"unknown-{number}", {"inputs": [{"name": f"n{number}", "shape": [1], "datatype": "FP32",
                                                              "data": [1]}]}) == 404
    assert told("NOT_FOUND") == unknown + 1050
    assert set(series(daemon)) == before

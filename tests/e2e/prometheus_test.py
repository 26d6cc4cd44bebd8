"""Tests the metrics with Debian's Prometheus: promtool's checks, and results of queries."""

import collections
import pathlib
import re
import subprocess
import threading

import grpc
import pytest

from harness import DEADLINE_SECONDS, Daemon, eventually
from messages import infer_request
from prometheus_server import PROGRAMS, Prometheus

TOTAL = 'counter metrics should have "_total" suffix'
COUNT = 'non-histogram and non-summary metrics should not have "_count" suffix'
UNITS = "metric names should not contain abbreviated units"
# promtool's complaints about Triton's names, which dashboards and autoscalers depend on.
TRITONS = {
    "nv_inference_request_success": {TOTAL},
    "nv_inference_request_failure": {TOTAL},
    "nv_inference_count": {TOTAL, COUNT},
    "nv_inference_exec_count": {TOTAL, COUNT},
    "nv_inference_pending_request_count": {COUNT},
    **{f"nv_inference_{stage}_duration_us": {TOTAL, UNITS}
       for stage in ("request", "queue", "compute_input", "compute_infer", "compute_output")},
    **{f"nv_cache_{name}_per_model": {TOTAL}
       for name in ("num_hits", "num_misses", "hit_duration", "miss_duration")},
}

# Metrics that exist only with a GPU.
OF_GPUS = {"nv_energy_consumption": {TOTAL}}

@pytest.fixture(scope="module")
def daemon(repository, tmp_path_factory):
    """A daemon that gave responses of every kind: computed, cached, rejected, and for unknown models."""
    root = tmp_path_factory.mktemp("models")
    for model in repository.iterdir():
        copy = root / model.name
        copy.mkdir()
        for entry in model.iterdir():
            # A link that leads out of the repository would be rejected.
            subprocess.run(["cp", "-r", entry, copy], check=True)
    with open(root / "tiny" / "config.pbtxt", "a") as config:
        config.write("response_cache { enable: true }\n")
    with Daemon(root, "--cache-config=local,size=1048576", log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


def call(inference, tiny, number):
    """Makes a call; `number` selects one of several kinds."""
    model = "no_such_model" if number % 5 == 0 else "gathering" if number % 2 else "tiny"
    batch = tiny.random_batch(1 + number % 3, seed=number % 4)
    shape = [*batch.shape[:3], 3] if number % 7 == 0 else batch.shape
    try:
        inference.model_infer(infer_request(model, shape, batch.tobytes()), timeout=DEADLINE_SECONDS)
    except grpc.RpcError as error:
        assert error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)


@pytest.fixture(scope="module")
def asked(daemon, tiny):
    with daemon.inference() as inference:
        for number in range(30):
            call(inference, tiny, number)


def test_promtool_has_nothing_to_say_but_of_tritons_names(daemon, asked):
    _, _, page = daemon.get("/metrics", daemon.metrics_port)
    checked = subprocess.run([PROGRAMS / "promtool", "check", "metrics"], input=page, capture_output=True, text=True,
                             timeout=DEADLINE_SECONDS)
    said = collections.defaultdict(set)
    for line in checked.stderr.splitlines() + checked.stdout.splitlines():
        name, _, complaint = line.partition(" ")
        said[name].add(complaint)
    assert said == TRITONS | {name: OF_GPUS[name] for name in OF_GPUS if name in said}
    # Exit code 3: the metrics were parsed, and names were criticised.
    assert checked.returncode == 3


@pytest.fixture(scope="module")
def prometheus(daemon, asked, tmp_path_factory):
    with Prometheus(tmp_path_factory.mktemp("prometheus"), daemon.metrics_port) as running:
        yield running


@pytest.fixture(scope="module")
def loaded(daemon, prometheus, tiny):
    """Returns after Prometheus has scraped the daemon several times under load and the load has ended."""
    stop, failures = threading.Event(), []

    def client(first):
        try:
            with daemon.inference() as inference:
                number = first
                while not stop.is_set():
                    call(inference, tiny, number)
                    number += 1
        except Exception as error:  # noqa: BLE001: it is told below, in the thread of the test
            failures.append(error)

    threads = [threading.Thread(target=client, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: failures or any(prometheus.query("rate(nv_inference_count[1m]) > 0").values())
                   and max(prometheus.query("changes(saccade_requests_total[10m])").values()) >= 3,
                   "several scrapes have seen the counters grow")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures, failures


def sample(name, labels):
    """The sample's key in Prometheus, which drops labels with empty values."""
    return frozenset({(key, value) for key, value in labels if value} | {("__name__", name)})


def settled(samples):
    """The daemon's samples that do not change between two scrapes while it is idle."""
    moves = ("nv_cpu_", "nv_gpu_", "nv_energy_", "saccade_gpu_", "saccade_memory_allocated_bytes")
    names = {labels: dict(labels)["__name__"] for labels in samples}
    return {labels: value for labels, value in samples.items()
            if names[labels].startswith(("nv_", "saccade_")) and not names[labels].startswith(moves)}


def test_queries_agree_with_the_page(daemon, prometheus, loaded):
    found, differences = {}, set()

    def agree():
        page = settled({sample(name, labels): value for (name, labels), value in daemon.metrics().items()})
        found.clear()
        found.update(settled(prometheus.query('{job="saccade"}')))
        differences.clear()
        differences.update(set(page.items()) ^ set(found.items()))
        return not differences

    try:
        eventually(agree, "Prometheus has every sample of the page with its value")
    except AssertionError as error:
        raise AssertionError(f"{error}: {list(differences)[:5]}") from error
    names = {dict(labels)["__name__"] for labels in found}
    assert {"nv_inference_count", "nv_inference_exec_count", "nv_cache_num_hits_per_model"} <= names
    assert len(found) > 200
    # Every sample of the page was stored.
    ((_, taken),) = prometheus.query("scrape_samples_scraped").items()
    assert taken == len(daemon.metrics())


def test_what_dashboards_ask(prometheus, loaded):
    by_model = lambda expression: {dict(labels).get("model"): value for labels, value in prometheus.query(expression).items()}
    # A scrape may take longer than Prometheus waits while the machine is busy; the next one does not.
    eventually(lambda: set(by_model("up").values()) == {1}, "the daemon is scraped")
    assert set(by_model("resets(nv_inference_count[10m])").values()) == {0}
    mean_batch = by_model("nv_inference_count / nv_inference_exec_count")
    assert set(mean_batch) == {"tiny", "gathering"} and all(value >= 1 for value in mean_batch.values())
    spent = by_model("nv_inference_request_duration_us / nv_inference_request_success")
    assert all(value > 0 for value in spent.values())
    quantile = "histogram_quantile(0.99, sum by (le, model) (saccade_request_duration_seconds_bucket{model!=''}))"
    assert all(0 < value <= 60 for value in by_model(quantile).values())
    counted = prometheus.query("sum(saccade_requests_total)")
    kinds = prometheus.query("sum(nv_inference_request_success) + sum(nv_inference_request_failure)")
    # Calls of unknown models, and invalid ones, are not counted as failures of a model.
    assert 0 < sum(kinds.values()) <= sum(counted.values())
    assert by_model('saccade_requests_total{code="NOT_FOUND"}')


def test_the_autoscalers_queries(prometheus, loaded):
    """The queries of deploy/kustomize/components/demand-autoscaling."""
    root = pathlib.Path(__file__).resolve().parents[2]
    rules = (root / "deploy/kustomize/components/demand-autoscaling/kustomization.yaml").read_text()
    queries = re.findall(r"metricsQuery: >-\n((?:#       .*\n)+)", rules)
    assert len(queries) == 2
    for query in queries:
        query = query.replace("#", "").replace("<<.LabelMatchers>>", 'job="saccade"').replace("<<.GroupBy>>", "job")
        ((_, share),) = prometheus.query(" ".join(query.replace("[1m]", "[10m]").split())).items()
        assert 0 < share < 100

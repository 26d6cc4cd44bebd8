"""Tests that requests load models, that idle models are unloaded, and that a failed load is tried again, over the
network."""

import json
import shutil
import threading
import urllib.request

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import pictures
from harness import NOT_SERVING, SERVING, eventually
from messages import predict_request
from tiny_models import TinyModel, write_model

PICTURE = pictures.encoded(pictures.pixels(0))
ON_DEMAND = ("--model-control-mode=explicit", "--load-on-demand")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Forty models of one kind, and one whose weights are cut off."""
    folder = tmp_path_factory.mktemp("known")
    write_model(folder, "m0", TinyModel(classes=5, seed=3), max_batch_size=2)
    for number in range(1, 40):
        shutil.copytree(folder / "m0", folder / f"m{number}")
    shutil.copytree(folder / "m0", folder / "broken")
    weights = folder / "broken" / "1" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    return folder


def predict(daemon, model, **options):
    with daemon.vision() as vision:
        return vision.predict(predict_request(model=model, encoded=PICTURE), **options)


def index(daemon):
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.http_port}/v2/repository/index", b"{}", method="POST")
    with urllib.request.urlopen(request) as answer:
        return {line["name"]: line for line in json.load(answer)}


def health(daemon, service):
    with daemon.channel() as channel:
        return health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service)).status


def gauge(daemon, name, **labels):
    return daemon.metrics()[(name, frozenset(labels.items()))]


def test_a_request_loads_its_model(root, start):
    daemon = start(root, *ON_DEMAND, "--load-model=m0").await_ready()
    assert index(daemon)["m1"]["state"] == "UNAVAILABLE"
    assert index(daemon)["m1"]["reason"] == "not loaded; a request loads it"
    assert gauge(daemon, "saccade_models", state="not_served") == 40
    assert health(daemon, "m1") == NOT_SERVING
    assert predict(daemon, "m1").model == "m1"
    assert index(daemon)["m1"]["state"] == "READY"
    assert health(daemon, "m1") == SERVING
    assert gauge(daemon, "saccade_models", state="served") == 2
    assert gauge(daemon, "saccade_model_memory_bytes") > 0


def test_a_file_over_http_loads_its_model_too(root, start):
    daemon = start(root, *ON_DEMAND).await_ready()
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.http_port}/v1/predict/m2", PICTURE,
                                     {"Content-Type": "image/png"}, method="POST")
    with urllib.request.urlopen(request) as answer:
        assert json.load(answer)["model"] == "m2"


def test_a_body_without_json_loads_its_model_too(root, start):
    daemon = start(root, *ON_DEMAND).await_ready()
    tensor = TinyModel(classes=5, seed=3).random_batch(1, seed=0).tobytes()
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.http_port}/v2/models/m3/infer", tensor,
                                     {"Inference-Header-Content-Length": "0"}, method="POST")
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200
    assert index(daemon)["m3"]["state"] == "READY"


def test_requests_for_many_cold_models_are_all_answered(root, start):
    """Each model is loaded once, however many requests wait for it."""
    daemon = start(root, *ON_DEMAND).await_ready()
    failures = []

    def ask(number):
        try:
            assert predict(daemon, f"m{number % 10}").model == f"m{number % 10}"
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert gauge(daemon, "saccade_model_loads_total", result="ok") == 10
    assert gauge(daemon, "saccade_load_waiting_requests") == 0


def test_a_model_that_does_not_load_says_so_and_keeps_nobody_waiting(root, start):
    daemon = start(root, *ON_DEMAND).await_ready()
    for _ in range(2):
        with pytest.raises(grpc.RpcError) as caught:
            predict(daemon, "broken")
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
        assert "could not be loaded" in caught.value.details()
        assert "grpc-retry-pushback-ms" in dict(caught.value.trailing_metadata())
    assert "weights" in index(daemon)["broken"]["reason"]
    assert predict(daemon, "m3").model == "m3"


def test_the_least_recently_used_models_make_room(root, start):
    # The memory of one, as measured.
    daemon = start(root, *ON_DEMAND, "--load-model=m0").await_ready()
    of_one = int(gauge(daemon, "saccade_model_memory_bytes"))
    daemon.close()
    daemon = start(root, *ON_DEMAND, f"--model-memory-bytes={of_one * 8}").await_ready()
    predict(daemon, "m0")
    # What it has measured itself, which may differ from what the other one has.
    of_one_here = gauge(daemon, "saccade_model_memory_bytes")
    assert of_one / 3 < of_one_here < of_one * 3
    for number in range(40):
        predict(daemon, f"m{number}")
        # Used again and again, so that it is never the least recently used.
        predict(daemon, "m0")
        assert gauge(daemon, "saccade_model_memory_bytes") <= of_one * 8
    ready = {name for name, line in index(daemon).items() if line["state"] == "READY"}
    assert {"m0", "m39"} <= ready
    assert len(ready) <= of_one * 8 / of_one_here < 25
    assert daemon.log().count('loading model model=m0 ') == 1


def test_an_idle_model_is_unloaded_and_loaded_again(root, start):
    daemon = start(root, *ON_DEMAND, "--load-model=m0", "--idle-unload-seconds=0.3").await_ready()
    predict(daemon, "m1")
    eventually(lambda: index(daemon)["m1"]["state"] == "UNAVAILABLE", "the idle model is unloaded")
    assert index(daemon)["m0"]["state"] == "READY"
    assert predict(daemon, "m1").model == "m1"


def test_waiting_requests_end_at_sigterm(root, start):
    """Whatever state each request is in, it is answered, and the daemon ends with 0."""
    daemon = start(root, *ON_DEMAND, "--lame-duck-seconds=0").await_ready()
    outcomes = []

    def ask(number):
        try:
            predict(daemon, f"m{number}")
            outcomes.append(None)
        except grpc.RpcError as error:
            outcomes.append(error.code())

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    eventually(lambda: outcomes, "a request is answered")
    daemon.terminate()
    for thread in threads:
        thread.join()
    assert daemon.exit_code() == 0
    assert set(outcomes) <= {None, grpc.StatusCode.UNAVAILABLE}


def test_a_daemon_that_drains_loads_nothing(root, start):
    daemon = start(root, *ON_DEMAND, "--load-model=m0", "--lame-duck-seconds=60").await_ready()
    daemon.terminate()
    eventually(lambda: health(daemon, "") == NOT_SERVING, "the drain has begun")
    with pytest.raises(grpc.RpcError) as caught:
        predict(daemon, "m1")
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    assert "shutting down" in caught.value.details()
    assert predict(daemon, "m0").model == "m0", "requests that need no load are still accepted"
    # Ends the wait for clients that have not noticed.
    daemon.terminate()
    assert daemon.exit_code() == 0


def test_a_model_that_failed_at_start_is_tried_again(tmp_path, root, start):
    folder = tmp_path / "models"
    shutil.copytree(root / "m0", folder / "good")
    shutil.copytree(root / "broken", folder / "late")
    daemon = start(folder, "--exit-on-error=false", "--strict-readiness=false").await_ready()
    eventually(lambda: "follows within" in index(daemon)["late"]["reason"], "another attempt is announced")
    shutil.copy(folder / "good" / "1" / "weights.safetensors", folder / "late" / "1" / "weights.safetensors")
    eventually(lambda: index(daemon)["late"]["state"] == "READY", "the corrected model is loaded")
    assert predict(daemon, "late").model == "late"

"""Tests saccade.v1.Vision over HTTP: POST /v1/predict and GET /v1/models in protobuf's JSON, and GET /v1/load."""

import base64
import collections
import json
import urllib.error
import urllib.request

import pytest
from google.protobuf import json_format

import pictures
from harness import DEADLINE_SECONDS, Daemon, eventually
from messages import message, predict_request
from tools.reference.metrics import fake_driver

SIZE = (131, 75)


def post(daemon, body, content_type="application/json", path="/v1/predict"):
    """Returns (status, headers, parsed JSON)."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": content_type} if content_type else {}
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.http_port}{path}", sent, headers)
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
            return answer.status, answer.headers, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, error.headers, json.loads(error.read())


def encoded(seed):
    return base64.b64encode(pictures.encoded(pictures.pixels(seed, *SIZE))).decode()


def pair():
    return {"left": {"encoded": encoded(1)}, "right": {"encoded": encoded(2)}}


REQUESTS = [
    {"model": "detector", "encoded": encoded(1), "request_id": "one"},
    {"model": "detector", "encoded": encoded(1), "detection": {"scoreThreshold": 0.1, "topK": 2, "masks": "NONE"}},
    {"model": "segmenter", "encoded": encoded(1), "segmentation": {"format": "RAW"}},
    {"model": "stereo", "stereo": pair(), "stereo_options": {"format": "FLOAT"}},
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_the_answer_is_that_of_grpc(tasks_daemon, request_):
    status, headers, body = post(tasks_daemon, request_)
    assert status == 200 and headers["Content-Type"] == "application/json"
    found = json_format.ParseDict(body, message("saccade.v1.PredictResponse")())
    with tasks_daemon.vision() as vision:
        expected = vision.predict(json_format.ParseDict(request_, predict_request()))
    assert found.timings.total.ToNanoseconds() >= found.timings.infer.ToNanoseconds() > 0
    for answer in (found, expected):
        answer.ClearField("timings")
        answer.ClearField("batch_size")
    assert found == expected


def test_zeros_are_there_to_be_read(tasks_daemon):
    body = post(tasks_daemon, {"model": "blind", "encoded": encoded(1)})[2]
    assert body["detections"] == {"detections": []} and body["request_id"] == ""
    assert (body["picture_width"], body["picture_height"]) == SIZE


def test_models_are_those_of_grpc(tasks_daemon):
    status, _, body = tasks_daemon.get("/v1/models")
    assert status == 200
    found = json_format.Parse(body, message("saccade.v1.ListModelsResponse")())
    with tasks_daemon.vision() as vision:
        assert found == vision.list_models(message("saccade.v1.ListModelsRequest")())


@pytest.mark.parametrize(
    "body, status, words",
    [
        ({"model": "nothing", "encoded": encoded(1)}, 404, ["nothing"]),
        ({"model": "detector"}, 400, ["input"]),
        ({"model": "detector", "encoded": "AAAA"}, 400, ["encoded", "not a readable picture"]),
        ({"model": "detector", "encoded": "*"}, 400, ["PredictRequest", "encoded"]),
        ({"model": "detector", "picture": "AAAA"}, 400, ["PredictRequest", "picture"]),
        ({"model": "detector", "encoded": encoded(1), "detection": {"top_k": -1}}, 400, ["detection.top_k"]),
        ({"model": "stereo", "encoded": encoded(1)}, 400, ["stereo"]),
        (b"", 400, ["PredictRequest"]),
        (b"[" * 100_000, 400, ["PredictRequest"]),
        (b'{"model":"\xff"}', 400, ["PredictRequest"]),
    ],
)
def test_what_is_refused(tasks_daemon, body, status, words):
    found, _, answer = post(tasks_daemon, body)
    assert found == status
    for word in words:
        assert word in answer["error"]


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"])
def test_what_pages_of_other_sites_may_send(tasks_daemon, content_type):
    status, headers, answer = post(tasks_daemon, REQUESTS[0], content_type)
    assert status == 415 and "application/json" in answer["error"]
    assert not any(name.lower().startswith("access-control") for name in headers)
    assert post(tasks_daemon, REQUESTS[0], "application/json; charset=utf-8")[0] == 200


def test_bodies_and_answers_are_bounded(tasks_repository, tmp_path):
    with Daemon(tasks_repository, "--max-message-bytes=60000", log_folder=tmp_path) as daemon:
        daemon.await_ready()
        status, _, answer = post(daemon, {"model": "detector", "request_id": "a" * 60_000})
        assert status == 413 and "60000" in answer["error"]
        sent = {"left": {"encoded": base64.b64encode(pictures.encoded(pictures.pixels(1, 240, 160))).decode()}}
        sent["right"] = sent["left"]
        status, _, answer = post(daemon, {"model": "stereo", "stereo": sent, "stereo_options": {"format": "FLOAT"}})
        assert status == 413 and "--max-message-bytes" in answer["error"] and "PNG_16" in answer["error"]


def gpus_of_load(repository, folder, **environment):
    environment["LD_LIBRARY_PATH"] = str(fake_driver(folder / "driver"))
    with Daemon(repository, log_folder=folder, environment=environment) as daemon:
        daemon.await_ports()
        return json.loads(daemon.get("/v1/load")[2])["gpus"]


def test_load_tells_of_gpus_if_the_driver_does(tasks_daemon, tasks_repository, tmp_path):
    assert json.loads(tasks_daemon.get("/v1/load")[2])["gpus"] == []
    assert gpus_of_load(tasks_repository, tmp_path) == [
        {"uuid": "GPU-1", "used_bytes": 400, "total_bytes": 1000, "utilization": 0.75},
        {"uuid": "GPU-2", "used_bytes": 400, "total_bytes": 1000, "utilization": None}]


def test_load_tells_of_the_instances_of_mig(tasks_repository, tmp_path):
    """In place of the GPU that they divide."""
    assert gpus_of_load(tasks_repository, tmp_path, SACCADE_FAKE_MIG="2") == [
        {"uuid": "MIG-1", "used_bytes": 48, "total_bytes": 120, "utilization": None},
        {"uuid": "MIG-2", "used_bytes": 10, "total_bytes": 250, "utilization": None},
        {"uuid": "GPU-2", "used_bytes": 400, "total_bytes": 1000, "utilization": None}]


def test_load_tells_the_step_of_each_load(tasks_repository, tmp_path):
    """In their order, and only of what loads."""
    order = ["waiting", "checking", "precision", "reading", "trial", "warm_up"]
    seen = collections.defaultdict(list)
    with Daemon(tasks_repository, "--warm-up-seconds=1", log_folder=tmp_path) as daemon:
        daemon.await_ports()

        def is_loaded():
            states = json.loads(daemon.get("/v1/load")[2])["states"]
            for one in states:
                assert (one["step"] is None) == (one["state"] != "LOADING")
                if one["step"]:
                    seen[one["name"]].append(order.index(one["step"]["name"]))
                    assert 0 <= one["step"]["done"] <= one["step"]["of"] and one["step"]["seconds"] >= 0
                    assert one["step"]["name"] != "waiting" or one["step"]["seconds"] == 0
            return all(one["state"] == "READY" for one in states)

        eventually(is_loaded, "all models are loaded")
    assert seen and all(steps == sorted(steps) for steps in seen.values()), dict(seen)
    assert order.index("warm_up") in {step for steps in seen.values() for step in steps}


def test_load_is_what_the_metrics_count(tasks_daemon):
    def look():
        body = json.loads(tasks_daemon.get("/v1/load")[2])
        return body, {model["name"]: model for model in body["models"]}["segmenter"]

    before = look()[1]
    for _ in range(3):
        assert post(tasks_daemon, REQUESTS[2])[0] == 200
    assert post(tasks_daemon, {**REQUESTS[2], "encoded": "AAAA"})[0] == 400
    after = look()[1]
    metrics = tasks_daemon.metrics()
    labels = {"model": "segmenter", "version": "1"}
    assert after["answered"] == before["answered"] + 3
    assert after["answered"] == metrics.total("nv_inference_request_success", **labels)
    # A picture that is none is no failure of the model.
    assert after["failed"] == before["failed"]
    assert after["failed"] == metrics.total("nv_inference_request_failure", **labels)
    assert after["pictures"] == metrics.total("nv_inference_count", **labels)
    assert after["passes"] == metrics.total("nv_inference_exec_count", **labels)
    assert sum(after["passes_by_batch_size"].values()) == after["passes"]
    # Failed requests have no part in the durations.
    assert after["answered_by_seconds"][-1] == [None, after["answered"]]
    bounds = [bound for bound, _ in after["answered_by_seconds"][:-1]]
    assert bounds == sorted(bounds) and max(b / a for a, b in zip(bounds, bounds[1:])) < 1.2
    assert sum(after["failed_by_reason"].values()) == after["failed"]
    assert after["failed_by_reason"] == before["failed_by_reason"]
    for stage in ("request", "infer"):
        assert after["seconds"][stage] > before["seconds"][stage]
    # The daemon gives back what a request held after it has answered.
    eventually(lambda: tasks_daemon.metrics().total("saccade_inflight_bytes") == 0, "nothing was held any more")
    held = look()[0]["inflight"]
    # Of the request that asks.
    assert 4096 < held.pop("bytes") < 8192
    assert held == {"requests": 0, "decoded_bytes": 0}
    counted = metrics.total("saccade_requests_total", protocol="http", **labels)
    assert counted >= 4

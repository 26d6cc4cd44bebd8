"""Tests priority levels and queue policies, configured as in Triton."""

import grpc
import pytest

import pictures
from busy import HOLDING, Held, write_holding
from harness import eventually
from messages import infer_request, predict_request
from refusals import EXHAUSTED, INVALID, check, details, pushback, refused
from tiny_models import write_model

LEVELS = {"priority_levels": 3, "default_priority_level": 2}


@pytest.fixture
def light(tiny):
    batch = tiny.random_batch(1, seed=0)
    return infer_request("tiny", batch.shape, batch.tobytes())


def test_a_level_that_the_model_does_not_have(start, tiny, light, tmp_path):
    write_model(tmp_path / "models", "tiny", tiny, **LEVELS)
    daemon = start(tmp_path / "models").await_ready()
    words = ["priority", "model 'tiny'", "1 (highest) to 3", "its default, 2"]
    with daemon.inference() as inference:
        for level in (0, 1, 3):
            light.parameters["priority"].uint64_param = level
            inference.model_infer(light)
        light.parameters["priority"].uint64_param = 4
        check(refused(inference.model_infer, light), INVALID, ["level 4", *words])
    jpeg = pictures.encoded(pictures.pixels(1), "JPEG")
    with daemon.vision() as vision:
        vision.predict(predict_request(model="tiny", encoded=jpeg, priority=-3))
        for priority in (1, -4):
            error = refused(vision.predict, predict_request(model="tiny", encoded=jpeg, priority=priority))
            check(error, INVALID, [f"level {-priority}", *words])


def test_a_timeout_where_the_model_lets_requests_set_one(start, tiny, light, tmp_path):
    write_model(tmp_path / "models", "tiny", tiny, default_queue_policy="{ allow_timeout_override: true }")
    daemon = start(tmp_path / "models").await_ready()
    with daemon.inference() as inference:
        light.parameters["timeout"].int64_param = 1
        assert refused(inference.model_infer, light).code() == grpc.StatusCode.DEADLINE_EXCEEDED
        light.parameters["timeout"].int64_param = 30_000_000
        inference.model_infer(light)
    assert daemon.metrics().total("nv_inference_exec_count") == 1


def test_a_level_at_its_bound_leaves_the_others_alone(start, tmp_path):
    policy = "{ key: 3 value { max_queue_size: 1 } }"
    write_holding(tmp_path / "models", tmp_path / "hang", priority_queue_policy=policy, **LEVELS)
    daemon = start(tmp_path / "models", *HOLDING).await_ready()
    with daemon.channel() as channel:
        busy = Held(daemon, channel, tmp_path / "hang")
        busy.light.parameters["priority"].uint64_param = 3
        waiting = [busy.inference.model_infer.future(busy.light)]
        eventually(lambda: busy.waiting() == 1, "it waits")
        error = refused(busy.inference.model_infer, busy.light)
        check(error, EXHAUSTED, ["max_queue_size"])
        assert details(error)["google.rpc.ErrorInfo"].reason == "QUEUE_FULL"
        assert pushback(error) >= 1
        for level in (1, 2):
            busy.light.parameters["priority"].uint64_param = level
            waiting.append(busy.inference.model_infer.future(busy.light))
        eventually(lambda: busy.waiting() == 3, "those of the other levels wait too")
        busy.let_go()
        for call in [busy.heavy, *waiting]:
            call.result()

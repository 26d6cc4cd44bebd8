"""Tests that another version computes copies of answered requests, that differences are found, and that the version that
answers does not notice any of it."""

import concurrent.futures
import time

import numpy
import pytest
import torch

from harness import DEADLINE_SECONDS, eventually
from messages import infer_request
from shadows import dropped, picture_sender, report, until_compared, write_versions
from tiny_models import Identity, TinyModel, write_model

COMPARED = 200


def test_the_same_weights_agree_bit_for_bit(start, tmp_path):
    model = TinyModel(classes=5, seed=3)
    write_versions(tmp_path / "models", "m", model, model)
    daemon = start(tmp_path / "models").await_ready()
    with daemon.vision() as vision:
        sent, found = until_compared(daemon, COMPARED, picture_sender(vision))
    assert found["version"] == 1 and found["shadow"] == 2 and found["task"] == "classification"
    assert found["agreed"] == found["equal"] == found["compared"] and found["agreement"] == 1
    assert found["failed"] == 0 and found["largest_difference"] == 0 and "last_disagreement" not in found
    assert found["compared"] + dropped(found) == sent, "every request was chosen"
    metrics = daemon.metrics()
    labels = {"model": "m", "version": "1", "shadow": "2"}
    assert metrics.value("saccade_shadow_compared_total", **labels) == found["compared"]
    assert metrics.value("saccade_shadow_agreed_total", **labels) == found["compared"]
    assert metrics.value("saccade_shadow_equal_total", **labels) == found["compared"]
    assert metrics.value("saccade_shadow_difference_bucket", **labels, le="0") == found["compared"]
    # A copy is no request: nobody has sent it.
    assert metrics.total("saccade_requests_total") == sent


def test_other_weights_are_found_out(start, tmp_path):
    write_versions(tmp_path / "models", "m", TinyModel(classes=5, seed=3), TinyModel(classes=5, seed=4))
    daemon = start(tmp_path / "models").await_ready()
    with daemon.vision() as vision:
        _, found = until_compared(daemon, 50, picture_sender(vision))
    assert found["equal"] == 0 and found["agreement"] < 0.9 and found["largest_difference"] > 0.01
    last = found["last_disagreement"]
    assert last["request"].startswith("r") and last["difference"] > 0
    labels = {"model": "m", "version": "1", "shadow": "2"}
    assert daemon.metrics().value("saccade_shadow_difference_bucket", **labels, le="0") == 0


def test_tensors_are_copied_before_the_client_gets_its_answer(start, tmp_path):
    model = TinyModel(classes=5, seed=3)
    write_versions(tmp_path / "models", "m", model, model)
    daemon = start(tmp_path / "models").await_ready()
    with daemon.inference() as inference:
        def send(seed):
            batch = model.random_batch(2, seed)
            inference.model_infer(infer_request("m", batch.shape, batch.tobytes()))
        _, found = until_compared(daemon, 50, send)
    assert found["agreement"] == 1 and found["equal"] == found["compared"]


class Doubles(torch.nn.Module):
    def forward(self, x):
        return 2 * x


class Trap(torch.nn.Module):
    """Doubles, but never ends for a 42, and fails for a 13."""

    def forward(self, x):
        assert not bool((x == 13).any()), "there is a 13"
        while bool((x == 42).any()):
            x = x + 0 * torch.rand(100).sum()
        return 2 * x


@pytest.fixture
def trapped(start, tmp_path):
    folder = tmp_path / "models" / "m"
    for version, module in (("1", Doubles()), ("2", Trap())):
        (folder / version).mkdir(parents=True)
        torch.jit.script(module).save(folder / version / "model.pt")
    (folder / "config.pbtxt").write_text(
        "backend: 'pytorch' max_batch_size: 1 version_policy { all { } }\n"
        "input { name: 'x' data_type: TYPE_FP32 dims: [ 4 ] } output { name: 'y' data_type: TYPE_FP32 dims: [ 4 ] }\n"
        "parameters { key: 'shadow' value { string_value: 'version=2, share=1' } }\n")
    return start(tmp_path / "models", "--allow-executable-models", "--stall-seconds=1").await_ready()


def double(inference, value):
    values = numpy.full((1, 4), value, numpy.float32)
    answer = inference.model_infer(infer_request("m", values.shape, values.tobytes(), name="x"),
                                   timeout=DEADLINE_SECONDS)
    assert answer.model_version == "1"
    assert answer.raw_output_contents[0] == (2 * values).tobytes()


def test_a_failing_shadow_version_fails_no_request(trapped):
    with trapped.inference() as inference:
        _, found = until_compared(trapped, 20, lambda _: double(inference, 13))
        assert found["failed"] == found["compared"] and found["agreement"] == 0
        assert "there is a 13" in found["last_disagreement"]["error"]
    metrics = trapped.metrics()
    assert metrics.value("saccade_shadow_failed_total", model="m", version="1", shadow="2") == found["failed"]
    assert metrics.total("nv_inference_request_failure") == 0
    assert metrics.total("saccade_requests_total") == metrics.value("saccade_requests_total", model="m", version="1",
                                                                     task="tensors", protocol="oip", code="OK")


def test_a_hanging_shadow_version_hangs_alone(trapped):
    with trapped.inference() as inference:
        double(inference, 42)
        eventually(lambda: report(trapped)["in_flight"] == 1, "the copy was being computed")
        for value in range(300):
            double(inference, 100 + value)
        found = report(trapped)
        assert found["compared"] == 0 and found["in_flight"] == 4, "copies are bounded"
        assert found["dropped"]["behind"] >= 290
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            assert trapped.get("/v2/health/live")[0] == 200, "no reason to restart the daemon"
            double(inference, 7)


def test_under_overload_copies_are_dropped_and_requests_are_not(start, tmp_path):
    clients, each = 8, 25
    # The passes take longer than a busy machine's clients need to send again, so that requests wait.
    write_versions(tmp_path / "models", "m", Identity(delay_ms=20), Identity(delay_ms=20), max_batch_size=1)
    daemon = start(tmp_path / "models", "--allow-drills").await_ready()

    def call(client):
        with daemon.inference() as inference:
            for i in range(each):
                sent = numpy.full((1, 1, 2, 3, 4), client * each + i, numpy.float32)
                answer = inference.model_infer(infer_request("m", sent.shape, sent.tobytes()), timeout=DEADLINE_SECONDS)
                assert answer.raw_output_contents[0] == sent.tobytes()

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        list(pool.map(call, range(clients)))
    eventually(lambda: report(daemon)["in_flight"] == 0, "no copy was left")
    found = report(daemon)
    assert found["compared"] + dropped(found) == clients * each
    assert found["dropped"]["busy"] > clients * each / 2, found
    assert found["agreed"] == found["compared"]
    metrics = daemon.metrics()
    assert metrics.total("saccade_shed_total") == 0
    assert metrics.total("saccade_requests_total") == clients * each


def test_the_shadow_version_answers_who_names_it(start, tmp_path):
    old, new = TinyModel(classes=5, seed=3), TinyModel(classes=5, seed=4)
    write_versions(tmp_path / "models", "m", old, new)
    daemon = start(tmp_path / "models").await_ready()
    batch = old.random_batch(1, seed=1)
    with daemon.inference() as inference:
        for version, answering in (("", "1"), ("1", "1"), ("2", "2")):
            answer = inference.model_infer(infer_request("m", batch.shape, batch.tobytes(), version=version))
            assert answer.model_version == answering
        before = report(daemon)
        inference.model_infer(infer_request("m", batch.shape, batch.tobytes(), version="2"))
        after = report(daemon)
    seen = lambda found: found["compared"] + dropped(found) + found["in_flight"]
    assert seen(before) == seen(after) == 2, "it has no shadow of its own"


@pytest.mark.parametrize("rule, message", [
    ("version=3,share=0.1", "names version 3, which is not served; served are"),
    ("version=2,share=0", "a share above 0 and at most 1"),
    ("version=2,share=1.5", "a share above 0 and at most 1"),
    ("version=2,share=nan", "a share above 0 and at most 1"),
    ("share=0.5", "version=NUMBER,share=SHARE"),
    ("version=2", "version=NUMBER,share=SHARE"),
    ("version=2,share=0.5,speed=1", "version=NUMBER,share=SHARE"),
    ("version=2,share=0.5,tolerance=-1", "possibly ,tolerance=DIFFERENCE"),
])
def test_wrong_rules_are_refused(start, tmp_path, rule, message):
    model = Identity()
    write_versions(tmp_path / "models", "m", model, model, rule=rule)
    daemon = start(tmp_path / "models").await_ports()
    daemon.await_log(message)
    assert daemon.get("/v1/models/m/shadow")[0] != 200


def test_a_version_is_not_compared_with_itself(start, tmp_path):
    write_model(tmp_path / "models", "alone", Identity(), parameters={"shadow": "version=1,share=0.5"})
    write_versions(tmp_path / "models", "stable", Identity(), Identity(),
                   parameters={"version_labels": "stable=2"})
    write_model(tmp_path / "models", "plain", Identity())
    daemon = start(tmp_path / "models").await_ports()
    eventually(lambda: daemon.get("/v2/models/plain/ready")[0] == 200, "the other model was served")
    daemon.await_log("names version 1, the only one that is served")
    daemon.await_log("which version_labels calls 'stable'")
    status, _, body = daemon.get("/v1/models/plain/shadow")
    assert status == 404 and "set the parameter shadow" in body

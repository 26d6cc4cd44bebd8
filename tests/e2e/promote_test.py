"""Tests that a shadow version which answers the same takes the place of the version that answers, that every seeded
regression is stopped, and that the decision is told, explained and kept."""

import concurrent.futures
import contextlib
import itertools
import json
import os
import threading
import urllib.request

import numpy
import pytest
import torch

from harness import DEADLINE_SECONDS, eventually
from messages import get_model_request, infer_request, predict_request
from shadows import PATIENCE_SECONDS, picture, report, until_decided, write_programs, write_versions
from tests.long_form import LONG
from tiny_models import STD, TinyModel, write_model

AFTER = 40
RULE = f"agreement >= 0.995 after {AFTER} requests"
LABELS = {"shadow": "version=2,share=1,tolerance=0.001", "promote": RULE, "version_labels": "stable=1"}


class Changed:
    """A network whose weights `change` has changed."""

    def __init__(self, model, change):
        self.weights = model.state()
        change(self.weights)
        self.weights = {name: tensor.contiguous().clone() for name, tensor in self.weights.items()}

    def state(self):
        return self.weights


def name_of(weights, shape):
    """The first weights of this rank and these numbers of channels."""
    return next(name for name, tensor in weights.items()
                if tensor.dim() >= len(shape) and all(want in (None, is_) for want, is_ in zip(shape, tensor.shape)))


def wrong_normalisation(weights):
    """Trained for pictures that were not divided by their standard deviation."""
    first = name_of(weights, (None, 3, None, None))
    weights[first] = weights[first] * torch.from_numpy(STD.reshape(1, 3, 1, 1))


def swapped_channels(weights):
    first = name_of(weights, (None, 3, None, None))
    weights[first] = weights[first][:, [2, 1, 0]]


def other_label_order(weights):
    last = [name for name, tensor in weights.items() if tensor.dim() >= 1 and tensor.shape[0] == 5]
    assert last, "the classifier's weights and biases"
    for name in last:
        weights[name] = weights[name].roll(1, 0)


def a_layer_of_another_epoch(weights):
    """What a step of training changes: one per cent, in one layer."""
    name = [name for name, tensor in weights.items() if tensor.dim() == 4][3]
    noise = torch.randn(weights[name].shape, generator=torch.Generator().manual_seed(5))
    weights[name] = weights[name] + 0.01 * weights[name].std() * noise


REGRESSIONS = (wrong_normalisation, swapped_channels, other_label_order, a_layer_of_another_epoch)


def write_trial(folder, shadow, parameters=None):
    model = TinyModel(classes=5, seed=3)
    write_versions(folder / "models", "m", model, shadow(model), parameters={**LABELS, **(parameters or {})})
    return folder / "models"


def start_trial(start, folder, shadow, **parameters):
    return start(write_trial(folder, shadow, parameters), f"--state-folder={folder / 'state'}").await_ready()


def answering(vision, label="", version=0):
    return vision.predict(predict_request(model="m", version=version, version_label=label, encoded=picture(1)),
                          timeout=DEADLINE_SECONDS).version


def sender(vision):
    def send(seed):
        vision.predict(predict_request(model="m", encoded=picture(seed), request_id=f"r{seed}"),
                       timeout=DEADLINE_SECONDS)
    return send


def state_metric(daemon):
    labels = {"model": "m", "version": "1", "shadow": "2"}
    return {state: daemon.metrics().value("saccade_shadow_promotion", **labels, state=state)
            for state in ("measuring", "promoted", "refused")}


def promotion(vision, version=0):
    """What GetModel says of the rule: its state and reason."""
    said = vision.get_model(get_model_request("m", version), timeout=DEADLINE_SECONDS).promotion
    assert (said.rule, said.shadow, said.replaces) == (RULE, 2, 1)
    return type(said).State.Name(said.state), said.reason


def test_an_equal_version_is_promoted_and_stays_so(start, tmp_path, saccade):
    daemon = start_trial(start, tmp_path, lambda model: model)
    assert state_metric(daemon) == {"measuring": 1, "promoted": 0, "refused": 0}
    with daemon.vision() as vision:
        assert promotion(vision) == ("MEASURING", f"compared 0 of {AFTER}")
        assert answering(vision) == answering(vision, "stable") == 1
        found = until_decided(daemon, sender(vision))
        promote = found["promote"]
        assert promote["state"] == "promoted" and promote["rule"] == RULE and promote["compared"] == AFTER
        assert promote["measures"]["agreement"] == promote["measures"]["equality"] == 1
        eventually(lambda: answering(vision, "stable") == 2, "the label moved")
        assert answering(vision) == 2
        assert answering(vision, version=1) == 1, "the version that was replaced still answers those that name it"
        assert promotion(vision, 1) == promotion(vision, 2) == ("PROMOTED", "agreement is 1")
    with saccade.Client(daemon.grpc_address) as client:
        said = {one.version: one.promotion for one in client.models()}
    assert said[1] == said[2] == saccade.Promotion(saccade.PromotionState.PROMOTED, RULE, 2, 1, "agreement is 1")
    assert state_metric(daemon) == {"measuring": 0, "promoted": 1, "refused": 0}
    daemon.await_log("shadow version promoted")
    assert report(daemon)["promote"]["state"] == "promoted"
    daemon.close()

    daemon = start(tmp_path / "models", f"--state-folder={tmp_path / 'state'}").await_ready()
    with daemon.vision() as vision:
        assert answering(vision) == answering(vision, "stable") == 2, "from the first request on"
        assert promotion(vision) == ("PROMOTED", "agreement is 1")
        assert answering(vision, version=1) == 1
    again = report(daemon)
    assert again["promote"] == promote and again["version"] == 1 and again["shadow"] == 2
    daemon.close()

    weights = tmp_path / "models" / "m" / "2" / "weights.safetensors"
    os.utime(weights, ns=(1, 1))
    daemon = start(tmp_path / "models", f"--state-folder={tmp_path / 'state'}").await_ready()
    assert report(daemon)["promote"]["state"] == "measuring", "other files are tried anew"
    with daemon.vision() as vision:
        assert answering(vision) == answering(vision, "stable") == 1


def test_a_decision_is_not_for_files_that_could_not_be_loaded(start, tmp_path):
    models = write_trial(tmp_path, lambda model: model)
    flags = (f"--state-folder={tmp_path / 'state'}", "--model-control-mode=poll", "--repository-poll-secs=1")
    daemon = start(models, *flags).await_ready()
    weights = models / "m" / "2" / "weights.safetensors"
    weights.write_bytes(b"no weights")
    daemon.await_log("the model will be loaded again")
    with daemon.vision() as vision:
        assert until_decided(daemon, sender(vision))["promote"]["state"] == "promoted", "the earlier files are still compared"
        daemon.await_log("the promoted version does not answer: its files have changed since")
        assert answering(vision) == answering(vision, "stable") == 1


@pytest.mark.parametrize("regression", REGRESSIONS)
def test_a_regression_is_stopped(start, tmp_path, regression):
    daemon = start_trial(start, tmp_path, lambda model: Changed(model, regression))
    with daemon.vision() as vision:
        found = until_decided(daemon, sender(vision))
        promote = found["promote"]
        assert promote["state"] == "refused" and promote["measures"]["agreement"] < 0.995
        assert promote["reason"] == f"agreement is {promote['measures']['agreement']:.10g}, expected >= 0.995"
        eventually(lambda: "shadow version refused" in daemon.log(), "the refusal was logged")
        assert answering(vision) == answering(vision, "stable") == 1
        assert promotion(vision) == ("REFUSED", promote["reason"])
        assert not vision.get_model(get_model_request("m", 2), timeout=DEADLINE_SECONDS).HasField("promotion")
    models = json.loads(daemon.get("/v1/models")[2])["models"]
    assert [one.get("promotion", {}).get("state") for one in models] == ["REFUSED", None]
    assert state_metric(daemon) == {"measuring": 0, "promoted": 0, "refused": 1}

    # The pictures that differ, as they were sent. Copies in flight may yet take the place of some.
    eventually(lambda: report(daemon)["in_flight"] == 0, "no copy was left")
    differing = report(daemon)["differing"]
    assert 0 < len(differing) <= 16
    assert [one["difference"] for one in differing] == sorted((one["difference"] for one in differing), reverse=True)
    for one in differing:
        url = f"http://127.0.0.1:{daemon.http_port}/v1/models/m/shadow/pictures/{one['number']}"
        with urllib.request.urlopen(url, timeout=DEADLINE_SECONDS) as answer:
            body = answer.read()
        # answering() sends a picture without a name.
        assert body == picture(int(one["request"].removeprefix("r") or 1)) and len(body) == one["picture_bytes"]
    assert daemon.get("/v1/models/m/shadow/pictures/0")[0] == 404
    assert daemon.get("/v1/models/m/shadow/pictures/x")[0] == 404
    if regression is not REGRESSIONS[0] and not LONG:
        return
    daemon.close()

    daemon = start(tmp_path / "models", f"--state-folder={tmp_path / 'state'}").await_ready()
    assert report(daemon)["promote"] == promote, "a restart is no second chance"
    with daemon.vision() as vision:
        for seed in range(2 * AFTER):
            sender(vision)(seed)
        assert answering(vision, "stable") == 1


def send_values(inference):
    def send(seed):
        values = numpy.full((1, 4), seed, numpy.float32)
        inference.model_infer(infer_request("m", values.shape, values.tobytes(), name="x"), timeout=DEADLINE_SECONDS)
    return send


@pytest.mark.parametrize("rounds, state", [(400, "refused"), (20, "promoted")])
def test_a_slower_network_is_stopped_and_one_as_fast_is_not(start, tmp_path, rounds, state):
    write_programs(tmp_path, rounds, f"agreement >= 1 and p50 <= 4 after {AFTER} requests")
    daemon = start(tmp_path / "models", "--allow-executable-models").await_ready()
    with daemon.inference() as inference:
        found = until_decided(daemon, send_values(inference))
    promote = found["promote"]
    assert promote["measures"]["agreement"] == 1 and promote["timed"] >= AFTER
    assert promote["state"] == state, promote
    if state == "refused":
        assert promote["reason"] == f"p50 is {promote['measures']['p50']:.10g}, expected <= 4"


CLIENTS = 8


@pytest.mark.parametrize("rounds, state", [(3000, "refused"), (200, "promoted")])
def test_a_rule_on_times_decides_while_every_pass_has_several_requests(start, tmp_path, rounds, state):
    """Eight clients send at the same time, again and again, so that hardly a request is alone in its pass."""
    write_programs(tmp_path, rounds, f"agreement >= 1 and p99 <= 5 after {AFTER} requests", first_rounds=200,
                   max_batch_size=CLIENTS)
    daemon = start(tmp_path / "models", "--allow-executable-models").await_ready()
    together = threading.Barrier(CLIENTS)

    def send_together(inference):
        def send(seed):
            together.wait(PATIENCE_SECONDS)
            send_values(inference)(seed)
        return send

    def call():
        with daemon.inference() as inference, contextlib.suppress(threading.BrokenBarrierError):
            for seed in itertools.count():
                send_together(inference)(seed)

    with concurrent.futures.ThreadPoolExecutor(CLIENTS - 1) as pool, daemon.inference() as inference:
        others = [pool.submit(call) for _ in range(CLIENTS - 1)]
        try:
            until_decided(daemon, send_together(inference))
        finally:
            together.abort()
    for other in others:
        other.result()
    found = report(daemon)
    promote = found["promote"]
    assert promote["state"] == state, promote
    assert promote["timed"] >= AFTER and promote["measures"]["agreement"] == 1
    assert found["timed_requests"] >= 3 * found["timed"], "the passes that were timed had several requests each"
    assert found["dropped"]["unavailable"] == 0, "no pass of copies was evicted"
    if state == "refused":
        assert promote["reason"] == f"p99 is {promote['measures']['p99']:.10g}, expected <= 5"
    timed = daemon.metrics().value("saccade_shadow_timed_passes_total", model="m", version="1", shadow="2")
    assert timed == found["timed"]


def test_no_request_fails_while_a_version_is_promoted(start, tmp_path):
    daemon = start_trial(start, tmp_path, lambda model: model)
    answered, failures, ended = [], [], threading.Event()

    def call():
        with daemon.vision() as vision:
            while not ended.is_set():
                try:
                    answered.append(answering(vision, "stable"))
                except Exception as failure:  # pylint: disable=broad-exception-caught
                    failures.append(failure)
                    return

    caller = threading.Thread(target=call)
    caller.start()
    try:
        eventually(lambda: answered or failures, "the first call was answered")
        with daemon.vision() as vision:
            until_decided(daemon, sender(vision))
            eventually(lambda: answered and answered[-1] == 2 or failures, "the label moved")
    finally:
        ended.set()
        caller.join()
    assert not failures
    assert answered == sorted(answered) and set(answered) == {1, 2}


@pytest.mark.parametrize("parameters, message", [
    ({"promote": "agreement => 0.9 after 5 requests"}, "at character 11 expected '>=' or '>'"),
    ({"promote": "agreement >= 0.9"}, "at character 17 expected 'and' or 'after', found the end"),
    ({"promote": "accuracy >= 0.9 after 5 requests"}, "at character 1 expected one of agreement, equality"),
    ({"version_labels": "stable=7"}, "would replace version 7, which version_labels calls 'stable' and which is not"),
])
def test_wrong_rules_are_refused(start, tmp_path, parameters, message):
    daemon = start(write_trial(tmp_path, lambda model: model, parameters)).await_ports()
    daemon.await_log(message)


def test_a_rule_needs_a_shadow_version(start, tmp_path):
    write_model(tmp_path / "models", "m", TinyModel(classes=5, seed=3), parameters={"promote": RULE})
    daemon = start(tmp_path / "models").await_ports()
    daemon.await_log("model unavailable", "is set without 'shadow', which names the version that may be promoted")

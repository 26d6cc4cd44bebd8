"""Tests preserve_ordering: responses leave in the order of the requests, whichever is computed first."""

import pytest

from busy import HEAVY, LABELS
from harness import eventually
from messages import Inference, infer_request, message
from tiny_models import write_model


class Overtaking:
    """A daemon with two instances. A large batch came first; a small one behind it is computed before it."""

    def __init__(self, daemon, network, channel):
        self.daemon = daemon
        self.inference = Inference(channel)
        heavy, light = network.random_batch(HEAVY, seed=0), network.random_batch(1, seed=1)
        self.heavy = self.inference.model_infer.future(infer_request("slow", heavy.shape, heavy.tobytes()))
        eventually(lambda: self.inflight() == 1, "the heavy request is there")
        self.light_request = infer_request("slow", light.shape, light.tobytes())
        self.light = self.inference.model_infer.future(self.light_request)
        eventually(lambda: daemon.metrics().total("nv_inference_exec_count", **LABELS) == 1, "one is computed")
        # If its response were not held back, it would have arrived before these, on the same connection.
        for _ in range(200):
            self.inference.server_ready(message("inference.ServerReadyRequest")())
        assert not self.heavy.done(), "the test needs a request that takes longer"

    def inflight(self):
        return self.daemon.metrics().total("saccade_inflight_requests")


@pytest.fixture
def overtaking(start, slow_repository, tmp_path):
    def begin(preserve_ordering, *flags):
        network = slow_repository[1]
        write_model(
            tmp_path / "models",
            "slow",
            network,
            max_batch_size=HEAVY,
            instances=2,
            preserve_ordering=str(preserve_ordering).lower(),
        )
        daemon = start(tmp_path / "models", *flags).await_ready()
        return Overtaking(daemon, network, daemon.channel())

    return begin


def test_without_it_the_faster_answer_overtakes(overtaking):
    overtaking(False).light.result(timeout=1)


def test_with_it_the_faster_answer_waits(overtaking):
    running = overtaking(True)
    assert not running.light.done()
    assert running.inflight() == 2
    running.heavy.result()
    running.light.result()
    eventually(lambda: running.inflight() == 0, "nothing is held any more")


def test_a_cancelled_request_lets_go_when_its_pass_has_ended(overtaking):
    running = overtaking(True)
    running.heavy.cancel()
    running.light.result()
    running.inference.model_infer(running.light_request)


def test_a_drain_waits_for_the_answers_that_are_held(overtaking):
    running = overtaking(True, "--lame-duck-seconds=0")
    running.daemon.terminate()
    running.heavy.result()
    running.light.result()
    assert running.daemon.exit_code() == 0

"""Tests preserve_ordering: responses leave in the order of the requests, whichever is computed first."""

import numpy
import pytest

from harness import eventually
from messages import Inference, infer_request, message
from tiny_models import Identity, write_cached, write_model

HANG = 99


def request(first):
    sent = numpy.full((1, 1, 1, 1, 4), first, numpy.float32)
    return infer_request("served", sent.shape, sent.tobytes())


class Overtaking:
    """A daemon with two instances. A pass that ends with end_slow() came first; a quick one behind it is computed before it,
    or answered from the cache if `cached`."""

    def __init__(self, daemon, channel, hang, cached=False):
        self.daemon, self._hang = daemon, hang
        self.inference = Inference(channel)
        answered = "nv_inference_exec_count"
        if cached:
            self.inference.model_infer(request(1))
            answered = "nv_cache_num_hits_per_model"
        self.slow = self.inference.model_infer.future(request(HANG))
        eventually(lambda: self.inflight() == 1, "the slow request is there")
        self.quick = self.inference.model_infer.future(request(1))
        eventually(lambda: daemon.metrics().total(answered) == 1, "the quick one has its answer")
        # If its response were not held back, it would have arrived before these, on the same connection.
        for _ in range(200):
            self.inference.server_ready(message("inference.ServerReadyRequest")())
        assert not self.slow.done()

    def end_slow(self):
        self._hang.unlink()

    def inflight(self):
        return self.daemon.metrics().total("saccade_inflight_requests")


@pytest.fixture
def overtaking(start, tmp_path):
    hang = tmp_path / "hang"
    hang.touch()

    def begin(preserve_ordering, *flags, cached=False):
        (write_cached if cached else write_model)(
            tmp_path / "models",
            "served",
            Identity(hang_at=str(HANG), hang_file=str(hang)),
            max_batch_size=1,
            instances=2,
            preserve_ordering=str(preserve_ordering).lower(),
        )
        daemon = start(tmp_path / "models", "--allow-drills", *flags).await_ready()
        return Overtaking(daemon, daemon.channel(), hang, cached)

    return begin


def test_without_it_the_faster_answer_overtakes(overtaking):
    running = overtaking(False)
    running.quick.result()
    assert not running.slow.done()
    running.end_slow()
    running.slow.result()


def test_with_it_the_faster_answer_waits(overtaking):
    running = overtaking(True)
    assert not running.quick.done()
    assert running.inflight() == 2
    running.end_slow()
    running.slow.result()
    running.quick.result()
    eventually(lambda: running.inflight() == 0, "nothing is held any more")


def test_an_answer_from_the_cache_waits_too(overtaking):
    running = overtaking(True, "--cache-config=local,size=1048576", cached=True)
    assert not running.quick.done()
    assert running.inflight() == 2
    running.end_slow()
    running.slow.result()
    assert numpy.frombuffer(running.quick.result().raw_output_contents[0], numpy.float32)[0] == 1
    assert running.daemon.metrics().total("nv_inference_exec_count") == 2


def test_a_cancelled_request_lets_go_when_its_pass_has_ended(overtaking):
    running = overtaking(True)
    running.slow.cancel()
    running.end_slow()
    running.quick.result()
    running.inference.model_infer(request(1))


def test_a_drain_waits_for_the_answers_that_are_held(overtaking):
    running = overtaking(True, "--lame-duck-seconds=0")
    running.daemon.terminate()
    running.daemon.await_log("finishing accepted requests")
    running.end_slow()
    running.slow.result()
    running.quick.result()
    assert running.daemon.exit_code() == 0

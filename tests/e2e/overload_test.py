"""Tests deadlines, cancelled calls and full queues: unnecessary work is not computed, and is counted."""

import grpc
import pytest

from busy import HOLDING, Held, request_of, write_holding
from harness import eventually
from messages import Inference, infer_request
from wire import Call

QUEUE = 72


@pytest.fixture
def held(start, tmp_path):
    policy = "{ max_queue_size: %d }" % QUEUE
    write_holding(tmp_path / "models", tmp_path / "hang", default_queue_policy=policy)
    daemon = start(tmp_path / "models", *HOLDING).await_ready()
    with daemon.channel() as channel:
        yield Held(daemon, channel, tmp_path / "hang")


def test_what_would_be_late_is_refused_at_once(start, tmp_path):
    """The queue grows while a pass is held, by a second that each request will take, so that one of them would be late."""
    write_holding(tmp_path / "models", tmp_path / "hang", delay_ms=1000,
                  default_queue_policy="{ max_queue_size: %d }" % QUEUE)
    daemon = start(tmp_path / "models", "--warm-up-seconds=0", *HOLDING).await_ready()
    with daemon.channel() as channel:
        # How long a pass takes is learned from passes.
        Inference(channel).model_infer(request_of(1))
        held = Held(daemon, channel, tmp_path / "hang")
        before = held.passes()
        waiting = []
        for _ in range(QUEUE):
            call = held.inference.model_infer.future(held.light, timeout=30)
            eventually(lambda: call.done() or held.waiting() > len(waiting), "the request waits or is refused")
            if call.done():
                break
            waiting.append(call)
        assert call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "overloaded" in call.details()
        assert waiting and not held.heavy.done() and not any(other.done() for other in waiting)
        assert held.failures("REJECTED") == 1
        assert daemon.metrics().total("saccade_shed_total") == 1
        for other in waiting:
            other.cancel()
        eventually(lambda: held.inflight() == 1, "nothing is held for who went away")
        held.let_go()
        held.heavy.result()
        assert held.passes() == before + 1


def test_a_client_that_goes_away(held):
    before = held.passes()
    calls = [held.inference.model_infer.future(held.light) for _ in range(4)]
    eventually(lambda: held.waiting() == 4, "four requests wait")
    for call in calls:
        call.cancel()
    eventually(lambda: held.inflight() == 1, "nothing is held for who went away")
    held.let_go()
    held.heavy.result()
    eventually(lambda: held.failures("CANCELED") == 4, "four are counted as cancelled")
    assert held.passes() == before + 1
    held.inference.model_infer(held.light)


def test_a_client_that_goes_away_while_it_is_computed(held):
    held.heavy.cancel()
    held.let_go()
    held.inference.model_infer(held.light)
    eventually(lambda: held.inflight() == 0, "nothing is held for it")


def test_a_connection_that_breaks(held):
    with held.daemon.channel() as channel:
        calls = [Inference(channel).model_infer.future(held.light) for _ in range(4)]
        eventually(lambda: held.waiting() == 4, "four requests wait")
    assert all(call.code() == grpc.StatusCode.CANCELLED for call in calls)
    eventually(lambda: held.inflight() == 1, "nothing is held for who went away")
    held.let_go()
    held.heavy.result()
    eventually(lambda: held.failures("CANCELED") == 4, "four are counted as cancelled")


def test_a_full_queue_refuses_at_once(held):
    calls = [held.inference.model_infer.future(held.light) for _ in range(QUEUE + 8)]
    eventually(lambda: held.failures("REJECTED") == 8, "those that exceed the queue are refused")
    held.let_go()
    refused = [call for call in calls if call.code() != grpc.StatusCode.OK]
    assert len(refused) == 8
    for call in refused:
        assert call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "queue" in call.details()
    assert held.failures("REJECTED") == 8


def test_a_timeout_that_the_model_does_not_let_requests_set(start, repository, tiny):
    daemon = start(repository).await_ready()
    batch = tiny.random_batch(1, seed=0)
    request = infer_request("tiny", batch.shape, batch.tobytes())
    # Triton's parameter, one microsecond. It is only honoured with allow_timeout_override.
    request.parameters["timeout"].int64_param = 1
    with daemon.inference() as inference:
        inference.model_infer(request)


def test_a_deadline_that_is_past_before_the_message_is_there(start, repository, tiny):
    daemon = start(repository).await_ready()
    batch = tiny.random_batch(1, seed=0)
    request = infer_request("tiny", batch.shape, batch.tobytes())
    with Call(daemon.grpc_port, "/inference.GRPCInferenceService/ModelInfer", timeout="1n") as call:
        call.await_over()
        call.ask(request.SerializeToString())
        with daemon.inference() as inference:
            inference.model_infer(request)
    assert daemon.metrics().total("nv_inference_exec_count") == 1

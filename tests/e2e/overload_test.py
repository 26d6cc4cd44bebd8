"""Tests deadlines, cancelled calls and full queues: unnecessary work is not computed, and is counted."""

import grpc
import pytest

from busy import HEAVY, Busy
from harness import eventually
from messages import Inference, infer_request
from wire import Call

@pytest.fixture
def busy(start, slow_repository):
    root, network = slow_repository
    daemon = start(root).await_ready()
    with daemon.channel() as channel:
        yield Busy(daemon, network, channel)


def test_what_would_be_late_is_refused_at_once(busy):
    before = busy.passes()
    call = busy.inference.model_infer.future(busy.light, timeout=0.05)
    assert call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "overloaded" in call.details()
    assert not busy.heavy.done()
    assert busy.failures("REJECTED") == 1
    assert busy.daemon.metrics().total("saccade_shed_total") == 1
    busy.heavy.result()
    assert busy.passes() == before + 1


def test_a_client_that_goes_away(busy):
    before = busy.passes()
    calls = [busy.inference.model_infer.future(busy.light) for _ in range(4)]
    eventually(lambda: busy.waiting() == 4, "four requests wait")
    for call in calls:
        call.cancel()
    busy.heavy.result()
    eventually(lambda: busy.failures("CANCELED") == 4, "four are counted as cancelled")
    assert busy.passes() == before + 1
    busy.inference.model_infer(busy.light)


def test_a_client_that_goes_away_while_it_is_computed(busy):
    busy.heavy.cancel()
    busy.inference.model_infer(busy.light)
    eventually(lambda: busy.daemon.metrics().total("saccade_inflight_requests") == 0, "nothing is held for it")


def test_a_connection_that_breaks(busy):
    with busy.daemon.channel() as channel:
        calls = [Inference(channel).model_infer.future(busy.light) for _ in range(4)]
        eventually(lambda: busy.waiting() == 4, "four requests wait")
    assert all(call.code() == grpc.StatusCode.CANCELLED for call in calls)
    busy.heavy.result()
    eventually(lambda: busy.failures("CANCELED") == 4, "four are counted as cancelled")


def test_a_full_queue_refuses_at_once(busy):
    calls = [busy.inference.model_infer.future(busy.light) for _ in range(HEAVY + 16)]
    refused = [call for call in calls if call.code() != grpc.StatusCode.OK]
    assert len(refused) == 8
    for call in refused:
        assert call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "queue" in call.details()
    assert busy.failures("REJECTED") == 8


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

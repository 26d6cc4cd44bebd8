"""Tests that concurrent requests are batched, and that a result does not depend on the other requests of its batch."""

import numpy

from busy import HOLDING, Held, write_holding
from harness import DEADLINE_SECONDS, eventually
from messages import infer_request, message, predict_request
from tiny_models import write_model

REQUESTS = 32
# Microseconds. Longer than the deadline of a test, so a test that waits for the queue delay fails.
PATIENCE = 60_000_000


def logits_of(answer):
    return numpy.frombuffer(answer.raw_output_contents[0], numpy.float32)


def test_a_batch_is_shared_and_changes_no_bit(start, repository, tiny):
    daemon = start(repository).await_ready()
    batches = [tiny.random_batch(1, seed=number) for number in range(REQUESTS)]
    requests = [infer_request("gathering", batch.shape, batch.tobytes()) for batch in batches]
    with daemon.inference() as inference:
        alone = [logits_of(inference.model_infer(request)) for request in requests]
        assert len({values.tobytes() for values in alone}) == REQUESTS, "different pictures must differ in their answer"
        labels = {"model": "gathering", "version": "1"}
        assert daemon.metrics().value("nv_inference_exec_count", **labels) == REQUESTS

        def passes_of_a_crowd():
            before = daemon.metrics()
            calls = [inference.model_infer.future(request) for request in requests]
            together = [logits_of(call.result()) for call in calls]
            after = daemon.metrics()
            for one, other in zip(alone, together):
                assert one.tobytes() == other.tobytes()
            pictures = after.value("nv_inference_count", **labels) - before.value("nv_inference_count", **labels)
            assert pictures == REQUESTS
            return after.value("nv_inference_exec_count", **labels) - before.value("nv_inference_exec_count", **labels)

        # On cores that others use, requests may arrive too far apart to share passes. That those do which wait behind a pass
        # is tested below.
        eventually(lambda: passes_of_a_crowd() <= REQUESTS / 2, f"{REQUESTS} requests at once take half as many passes at most")


def test_requests_that_wait_for_an_instance_share_passes(start, tmp_path):
    write_holding(tmp_path / "models", tmp_path / "hang", max_batch_size=8)
    daemon = start(tmp_path / "models", *HOLDING).await_ready()
    with daemon.channel() as channel:
        busy = Held(daemon, channel, tmp_path / "hang")
        calls = [busy.inference.model_infer.future(busy.light) for _ in range(REQUESTS)]
        # Up to seven may have joined the pass that lasts.
        eventually(lambda: busy.inflight() == REQUESTS + 1 and busy.waiting() >= REQUESTS - 7, "the others wait")
        busy.let_go()
        for call in [busy.heavy, *calls]:
            call.result(timeout=DEADLINE_SECONDS)
        # The pass that lasted, four full ones and, if some joined the first one or came late, as many more as those.
        assert busy.passes() <= 1 + REQUESTS / 8 + 7


def test_the_answer_tells_the_size_of_its_batch(daemon, tiny):
    pixels = message("saccade.v1.RawPicture")(
        width=tiny.resize, height=tiny.resize, order=1, pixels=bytes(3 * tiny.resize * tiny.resize)
    )
    with daemon.vision() as vision:
        request = predict_request(model="gathering", raw=pixels)

        def largest():
            calls = [vision.predict.future(request) for _ in range(REQUESTS)]
            sizes = [call.result().batch_size for call in calls]
            assert all(1 <= size <= 8 for size in sizes)
            return max(sizes)

        eventually(lambda: largest() > 1, "some requests share a pass")


def test_a_full_batch_does_not_wait(start, tiny, tmp_path):
    write_model(tmp_path / "models", "patient", tiny, max_batch_size=4, max_queue_delay_microseconds=PATIENCE)
    daemon = start(tmp_path / "models").await_ready()
    batch = tiny.random_batch(1, seed=0)
    request = infer_request("patient", batch.shape, batch.tobytes())
    with daemon.inference() as inference:
        calls = [inference.model_infer.future(request) for _ in range(4)]
        for call in calls:
            call.result(timeout=DEADLINE_SECONDS)


def test_a_request_with_a_deadline_does_not_wait_past_it(start, tiny, tmp_path):
    write_model(tmp_path / "models", "patient", tiny, max_batch_size=4, max_queue_delay_microseconds=PATIENCE)
    daemon = start(tmp_path / "models").await_ready()
    batch = tiny.random_batch(1, seed=0)
    with daemon.inference() as inference:
        inference.model_infer(infer_request("patient", batch.shape, batch.tobytes()), timeout=5)


def test_the_numbers_add_up(start, repository, tiny):
    daemon = start(repository).await_ready()
    sizes = [1, 2, 3, 4, 8]
    with daemon.inference() as inference:
        for size in sizes:
            batch = tiny.random_batch(size, seed=size)
            inference.model_infer(infer_request("tiny", batch.shape, batch.tobytes()))
    metrics = daemon.metrics()
    labels = {"model": "tiny", "version": "1"}
    assert metrics.value("nv_inference_request_success", **labels) == len(sizes)
    assert metrics.value("nv_inference_count", **labels) == sum(sizes)
    assert metrics.value("nv_inference_exec_count", **labels) == len(sizes)
    assert metrics.total("nv_inference_request_failure", **labels) == 0
    assert metrics.total("saccade_requests_total", model="tiny", protocol="oip", code="OK") == len(sizes)
    assert metrics.total("saccade_requests_total", model="tiny") == len(sizes)
    assert metrics.total("saccade_request_duration_seconds_count", model="tiny") == len(sizes)
    assert metrics.total("saccade_batch_size_count", model="tiny") == len(sizes)
    assert metrics.total("saccade_batch_size_sum", model="tiny") == sum(sizes)
    assert metrics.value("nv_inference_pending_request_count", **labels) == 0
    whole = metrics.value("nv_inference_request_duration_us", **labels)
    parts = ("queue", "compute_input", "compute_infer", "compute_output")
    spent = [metrics.value(f"nv_inference_{part}_duration_us", **labels) for part in parts]
    assert 0 < sum(spent) <= whole

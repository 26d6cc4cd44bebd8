"""Generated invalid requests: each is rejected with a message, and the next valid one is answered as before."""

import random

import grpc
import numpy
import pytest

from harness import Daemon, eventually
from malformed import (FORMATS, GOOD_INFERENCES, INFERENCE_MISTAKES, damaged, malformed_inferences, malformed_predicts)
from messages import Inference, Vision, message, predict_request
from refusals import INVALID, NOT_FOUND

SEED = 20
REFUSALS = {INVALID, NOT_FOUND, grpc.StatusCode.UNIMPLEMENTED}
# The daemon's messages quote the request, and gRPC's limit for trailers is 8 KiB.
MAX_WORDS = 2000


@pytest.fixture(scope="module")
def channel(repository, tmp_path_factory):
    with Daemon(repository, "--max-message-bytes=4194304", log_folder=tmp_path_factory.mktemp("log")) as daemon:
        daemon.await_ready()
        with daemon.channel() as opened:
            yield opened
        assert daemon.process.poll() is None, "the daemon ended"
        eventually(lambda: daemon.metrics().total("saccade_inflight_requests") == 0, "nothing was in flight")


@pytest.fixture(scope="module")
def good(channel):
    """Sends a valid request; fails if the response differs from the first one."""
    inference = Inference(channel)
    request = GOOD_INFERENCES["bytes"]()

    def logits():
        return numpy.frombuffer(inference.model_infer(request).raw_output_contents[0], numpy.float32)

    first = logits()

    def same():
        numpy.testing.assert_allclose(logits(), first, rtol=1e-4, atol=1e-5)

    return same


def answer(call, request):
    """The error of the call; None if it succeeded."""
    try:
        call(request)
    except grpc.RpcError as error:
        return error
    return None


def check_refusal(error, what):
    assert error.code() in REFUSALS, f"{what}: {error.code()}: {error.details()[:300]}"
    words = error.details()
    assert words and len(words) <= MAX_WORDS, f"{what}: {len(words)} characters"
    assert words.replace("\n", " ").isprintable(), f"{what}: {words[:300]!r}"


def test_what_the_mistakes_are_made_from_is_good(channel):
    inference = Inference(channel)
    for make in GOOD_INFERENCES.values():
        inference.model_infer(make())
    for picture in FORMATS.values():
        Vision(channel).predict(predict_request(model="tiny", encoded=picture))


def test_inferences(channel, good):
    inference = Inference(channel)
    count = 5 * len(GOOD_INFERENCES) * len(INFERENCE_MISTAKES)
    for what, request in malformed_inferences(count, SEED):
        error = answer(inference.model_infer, request)
        assert error is not None, f"{what}: was answered"
        check_refusal(error, what)
        good()


def test_predicts(channel, good):
    vision = Vision(channel)
    for what, request in malformed_predicts(200, SEED):
        error = answer(vision.predict, request)
        assert error is not None, f"{what}: was answered"
        check_refusal(error, what)
        good()


def test_damaged_messages(channel, good):
    """Damaged bytes on the wire. The result may still be a valid request, and is answered or rejected accordingly."""
    choose = random.Random(SEED)
    infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
    whole = [make().SerializeToString() for make in GOOD_INFERENCES.values()]
    refusals = 0
    for number in range(300):
        # Damages the fields rather than the pixels.
        message_bytes = choose.choice(whole)
        sent = damaged(message_bytes[:100], choose) + message_bytes[100:]
        error = answer(infer, sent)
        if error is not None:
            check_refusal(error, f"{number}: {sent[:120]!r}")
            refusals += 1
        if number % 10 == 0:
            good()
    assert refusals > 100
    good()


def test_damaged_pictures(channel, good):
    choose = random.Random(SEED)
    vision = Vision(channel)
    refusals = 0
    for number in range(400):
        format = choose.choice(list(FORMATS))
        sent = damaged(FORMATS[format], choose)
        error = answer(vision.predict, predict_request(model="tiny", encoded=sent))
        if error is not None:
            check_refusal(error, f"{number}: {format}")
            assert "encoded" in error.details()
            refusals += 1
        if number % 10 == 0:
            good()
    assert refusals > 20
    good()


def test_damaged_typed_messages(channel, good):
    choose = random.Random(SEED)
    predict = channel.unary_unary("/saccade.v1.Vision/Predict")
    whole = predict_request(model="tiny", encoded=FORMATS["JPEG"], request_id="id", priority=3,
                            classification=message("saccade.v1.ClassificationOptions")(top_k=2)).SerializeToString()
    for number in range(200):
        head = choose.random() < 0.5
        sent = damaged(whole[:20], choose) + whole[20:] if head else whole[:-20] + damaged(whole[-20:], choose)
        error = answer(predict, sent)
        # gRPC itself rejects bytes that are not a message, before the daemon's code sees them.
        if error is not None and error.code() != grpc.StatusCode.UNIMPLEMENTED:
            check_refusal(error, f"{number}: {sent[:40]!r}")
        if number % 10 == 0:
            good()
    good()

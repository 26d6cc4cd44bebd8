"""Tests that results are bit-identical whatever other pictures, of any size, are computed at the same time."""

import pytest

import pictures
from harness import eventually
from messages import message, predict_request

SIZES = [(96, 64), (64, 96), (90, 60), (131, 75), (240, 160), (17, 40), (96, 64), (95, 64)]
ROUNDS = 3


def picture(seed, size):
    return pictures.encoded(pictures.pixels(seed, *size))


def one_picture(model):
    return lambda seed, size: predict_request(model=model, encoded=picture(seed, size))


def one_pair(seed, size):
    sent = message("saccade.v1.StereoPair")(
        left={"encoded": picture(seed, size)}, right={"encoded": picture(seed + 100, size)}
    )
    options = message("saccade.v1.StereoOptions")(format=2)
    return predict_request(model="stereo", stereo=sent, stereo_options=options)


def result(answer):
    return getattr(answer, answer.WhichOneof("result")).SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    "make", [one_picture("detector"), one_picture("segmenter"), one_pair], ids=["detector", "segmenter", "stereo"]
)
def test_a_crowd_of_sizes_changes_no_bit(tasks_daemon, make):
    requests = [make(seed, size) for seed, size in enumerate(SIZES)]
    with tasks_daemon.vision() as vision:
        alone = []
        for request in requests:
            answer = vision.predict(request)
            assert answer.batch_size == 1
            alone.append(result(answer))
        assert len(set(alone)) == len(alone), "different pictures must differ in their answer"

        def crowd():
            """Sends all of them at once; returns the largest batch."""
            calls = [vision.predict.future(request) for request in requests]
            for call, expected in zip(calls, alone):
                assert result(call.result()) == expected
            return max(call.result().batch_size for call in calls)

        largest = max(crowd() for _ in range(ROUNDS))
        # On cores that others use, requests may arrive too far apart to share a pass.
        eventually(lambda: largest > 1 or crowd() > 1, "some of them share a pass")

"""Tests that the daemon, which compares a shadow version's answers, and `saccade replay`, which compares captured ones,
measure the same difference: one is C++ that sees the network's results, the other Python that sees the messages."""

import numpy
import pytest

import pictures
from harness import DEADLINE_SECONDS, eventually
from messages import predict_request
from shadows import Noisy, picture, report, write_versions
from tiny_models import TinyModel, smooth_volumes, tiny_actions, tiny_detector, tiny_restorer, tiny_segmenter, tiny_stereo

PICTURES = 12


def single(seed):
    return {"encoded": picture(seed)}


def pair(seed):
    return {"stereo": {"left": {"encoded": picture(seed)}, "right": {"encoded": picture(seed + 1)}}}


def frames(seed):
    shown = [{"encoded": pictures.encoded(pictures.pixels(seed + at, 32, 32))} for at in range(16)]
    return {"clip": {"frames": {"pictures": shown, "frames_per_second": 10}}}


def volume(seed):
    values = (400 + 120 * smooth_volumes(1, 1, 8, 16, 16, seed=seed)[0, 0].numpy()).astype("<f4")
    return {"volume": {"raw": {"shape": {"depth": 8, "height": 16, "width": 16, "type": "FLOAT32"},
                               "voxels": values.tobytes()}}}


# The options ask for all that the network found, in the form that loses nothing.
TASKS = {
    "classification": (lambda: TinyModel(classes=5, seed=3), single, {}),
    "detection": (tiny_detector, single, {"detection": {"masks": "NONE"}}),
    "segmentation": (tiny_segmenter, single, {"segmentation": {"format": "RAW"}}),
    "stereo": (tiny_stereo, pair, {"stereo_options": {"format": "FLOAT"}}),
    "actions": (tiny_actions, frames, {}),
    "restoration": (tiny_restorer, volume, {"restoration": {"type": "FLOAT32"}}),
}


@pytest.mark.parametrize("task", TASKS)
def test_both_measure_the_same(start, tmp_path, saccade, task):
    from saccade.replay.answers import Answer
    from saccade.replay.measures import difference
    from saccade.v1 import vision_pb2

    make, content, options = TASKS[task]
    model = make()
    write_versions(tmp_path / "models", "m", model, Noisy(model, 0.02), rule="version=2,share=1,tolerance=0")
    daemon = start(tmp_path / "models").await_ready()
    with daemon.vision() as vision:
        def answer(seed, **named):
            # The daemon's messages are of another pool of types than the package's.
            message = vision.predict(predict_request(model="m", **named, **content(seed), **options),
                                     timeout=DEADLINE_SECONDS)
            return Answer("OK", result=vision_pb2.PredictResponse.FromString(message.SerializeToString()))

        answered = {}

        def is_compared(seed, before):
            answered[seed] = answer(seed)
            eventually(lambda: report(daemon)["in_flight"] == 0, "no copy was left")
            return report(daemon)["compared"] > before

        # Each by itself, because copies may be dropped on a busy machine.
        for seed in range(PICTURES):
            before = report(daemon)["compared"]
            eventually(lambda: is_compared(seed, before), f"picture {seed} was compared")
        worst = max(difference(answered[seed], answer(seed, version=2)).value for seed in range(PICTURES))
    found = report(daemon)
    assert found["equal"] == 0 and worst > 1e-6, "the versions differ"
    # The messages have single precision.
    assert found["largest_difference"] == pytest.approx(worst, rel=1e-3, abs=1e-6)

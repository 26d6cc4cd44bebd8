"""Tests that a model whose pictures change is found out, by its metrics and by GET /v1/models/{model}/drift."""

import json
import re

import pytest

import pictures
from harness import eventually
from messages import predict_request
from tiny_models import TinyModel, write_model

WINDOW = 100


@pytest.fixture
def root(tmp_path):
    model = TinyModel(classes=5, seed=3)
    write_model(tmp_path / "models", "watched", model, parameters={"drift_window": WINDOW})
    write_model(tmp_path / "models", "other", model)
    return tmp_path / "models"


def report(daemon, model="watched"):
    status, _, body = daemon.get(f"/v1/models/{model}/drift")
    return status, json.loads(body)


class Sender:
    """Sends pictures until a number of them was looked at, each different from all others."""

    def __init__(self, daemon):
        self._daemon = daemon
        self._seed = 0

    def send(self, count, brightness=1.0):
        seen = report(self._daemon)[1]["seen"]
        with self._daemon.vision() as vision:
            # Some may be passed over, so that more have to be sent than are looked at.
            while (missing := seen + count - report(self._daemon)[1]["seen"]) > 0:
                for _ in range(missing):
                    self._seed += 1
                    pixels = (pictures.pixels(self._seed) * brightness).astype("uint8")
                    vision.predict(predict_request(model="watched", encoded=pictures.encoded(pixels)))


def test_darker_pictures_are_found_out_and_others_are_not(start, root):
    daemon = start(root).await_ready()
    sender = Sender(daemon)
    sender.send(WINDOW)
    _, first = report(daemon)
    assert first["reference_complete"] and not first["reference_from_file"] and first["drift"] == {}
    sender.send(WINDOW)
    _, same = report(daemon)
    assert set(same["drift"]) == {"pixels", "brightness", "contrast", "sharpness", "score", "class"}
    assert same["drift"]["pixels"] == pytest.approx(0)
    assert same["drift"]["brightness"] < 0.6, "chance, for a hundred pictures"
    sender.send(WINDOW, brightness=0.4)
    _, dark = report(daemon)
    assert dark["drift"]["brightness"] > 2
    assert dark["drift"]["pixels"] == pytest.approx(0)
    assert dark["repeated"] == 0
    metrics = daemon.metrics()
    assert metrics.value("saccade_drift", model="watched", version="1", feature="brightness") == pytest.approx(
        dark["drift"]["brightness"])
    assert metrics.value("saccade_drift_items_total", model="watched", version="1") == dark["seen"]

    # What comes now becomes the reference, and is no drift after a restart.
    (root / "watched" / "1" / "drift.json").write_text(json.dumps(dark["recent"]))
    daemon.close()
    again = start(root).await_ready()
    assert report(again)[1]["reference_from_file"]
    Sender(again).send(WINDOW, brightness=0.4)
    assert report(again)[1]["drift"]["brightness"] < 0.6


def test_a_picture_that_is_sent_again_is_counted(start, root):
    daemon = start(root).await_ready()
    picture = predict_request(model="watched", encoded=pictures.encoded(pictures.pixels(0)))

    def repeated():
        with daemon.vision() as vision:
            vision.predict(picture)
        return report(daemon)[1]["repeated"] >= 5

    eventually(repeated, "five pictures were repeated")
    assert daemon.metrics().value("saccade_drift_repeated_total", model="watched", version="1") >= 5


def test_who_is_not_watched_says_how_to_be(start, root):
    daemon = start(root).await_ready()
    status, body = report(daemon, "other")
    assert status == 404 and "set the parameter drift_window" in body["error"]
    assert report(daemon, "absent")[0] == 404
    assert daemon.metrics().total("saccade_drift_items_total", model="other") == 0


def lines_of(daemon, model, text):
    return [line for line in daemon.log_lines() if re.search(rf"\bmodel={model}\b", line) and text in line]


def test_a_wrong_window_is_refused(start, tmp_path):
    wrong = {"small": "99", "large": "1000001", "negative": "-1", "text": "many"}
    for name, value in wrong.items():
        write_model(tmp_path / "models", name, TinyModel(classes=5, seed=3), parameters={"drift_window": value})
    daemon = start(tmp_path / "models")
    for name in wrong:
        eventually(lambda name=name: lines_of(daemon, name, "a whole number from 100 to 1000000"), f"the value of '{name}' was refused")


def test_a_damaged_reference_is_told_and_not_used(start, tmp_path):
    damaged = {"open": ("{", "expected a JSON object"), "empty": ('{"items": 5}', "features: expected an object"),
               "large": ("x" * (1 << 20) + "x", "drift.json")}
    for name, (text, _) in damaged.items():
        write_model(tmp_path / "models", name, TinyModel(classes=5, seed=3), parameters={"drift_window": WINDOW})
        (tmp_path / "models" / name / "1" / "drift.json").write_text(text)
    daemon = start(tmp_path / "models").await_ready()
    for name, (_, error) in damaged.items():
        told = lambda name=name, error=error: [
            line for line in lines_of(daemon, name, error) if "the first items are compared with instead" in line]
        eventually(told, f"the damage of '{name}' was told")
        assert not report(daemon, name)[1]["reference_from_file"]

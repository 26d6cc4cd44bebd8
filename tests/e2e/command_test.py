"""Compares the saccade command with the API: its flags must have the effect of the API's options."""

import base64
import io
import json
import subprocess

import numpy
import pytest
from PIL import Image

import pictures
from harness import Daemon, binary
from messages import message, predict_request
from tiny_models import TinyTask, write_model

RLE, PNG, POLYGONS = 1, 3, 4


@pytest.fixture(scope="module")
def vision(tasks_daemon):
    with tasks_daemon.vision() as made:
        yield made


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "street.png"
    path.write_bytes(pictures.encoded(pictures.pixels(3, 96, 64)))
    return path


def saccade(daemon, command, model, *arguments):
    """Runs the command and returns the JSON of its only result."""
    line = [binary("saccade"), command, "--url", daemon.grpc_address, "--model", model, "--json", *arguments]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)["results"][0]


def drawn(path):
    return numpy.asarray(Image.open(path))


def test_masks_in_every_form(tasks_daemon, vision, picture, tmp_path):
    overlays = []
    for name, form in [("rle", RLE), ("png", PNG), ("polygons", POLYGONS)]:
        folder = tmp_path / name
        result = saccade(tasks_daemon, "detect", "detector", picture, "--masks", name, "-o", folder)
        options = message("saccade.v1.DetectionOptions")(masks=form)
        request = predict_request(model="detector", encoded=picture.read_bytes(), detection=options)
        expected = vision.predict(request).detections.detections
        assert len(result["detections"]) == len(expected) > 1
        for told, one in zip(result["detections"], expected):
            if form == RLE:
                assert told["mask"]["counts"] == one.mask.counts
            elif form == PNG:
                assert base64.b64decode(told["mask_picture"]["png"]) == one.mask_picture.png
                assert (told["mask_picture"]["x"], told["mask_picture"]["y"]) == (one.mask_picture.x, one.mask_picture.y)
            else:
                points = [polygon["points"] for polygon in told["mask_polygons"]["polygons"]]
                assert points == [list(polygon.points) for polygon in one.mask_polygons.polygons]
        overlays.append(drawn(result["overlay"]))
    assert all(numpy.array_equal(overlay, overlays[0]) for overlay in overlays), "they are the same masks"


def test_maps_of_another_size(tasks_daemon, vision, picture, tmp_path):
    for size, fields in [("48x20", {"width": 48, "height": 20}), ("network", {"network": True})]:
        result = saccade(tasks_daemon, "segment", "segmenter", picture, "--size", size, "-o", tmp_path / size)
        options = message("saccade.v1.SegmentationOptions")(size=fields)
        request = predict_request(model="segmenter", encoded=picture.read_bytes(), segmentation=options)
        expected = vision.predict(request).segmentation.label_map
        assert numpy.array_equal(drawn(result["label_map"]), numpy.asarray(Image.open(io.BytesIO(expected))))
        disparity = saccade(
            tasks_daemon, "stereo", "stereo", picture, picture, "--size", size, "-o", tmp_path / size)["disparity"]
        wide = message("saccade.v1.StereoOptions")(size=fields)
        pair = message("saccade.v1.StereoPair")(
            left={"encoded": picture.read_bytes()}, right={"encoded": picture.read_bytes()})
        answer = vision.predict(predict_request(model="stereo", stereo=pair, stereo_options=wide)).disparity
        assert (disparity["width"], disparity["height"]) == (answer.width, answer.height)
        assert size == "network" or (answer.width, answer.height) == (48, 20)


def test_attention_of_positions(picture, tmp_path):
    made = TinyTask("attnnet", [f"class {index}" for index in range(4)], seed=8, width="0.5", input_size="56")
    write_model(tmp_path / "models", "positions", made, max_batch_size=1)
    with Daemon(tmp_path / "models", "--warm-up-seconds=0", log_folder=tmp_path) as daemon:
        with daemon.await_ready().vision() as vision:
            places = [{"x": 0, "y": 1}, {"x": 0.5, "y": 0.25}]
            wish = message("saccade.v1.Explain")(positions=places, max_maps=1)
            request = predict_request(model="positions", encoded=picture.read_bytes(), explain=wish)
            expected = vision.predict(request).explanation
        result = saccade(daemon, "classify", "positions", picture, "--explain", "--explain-at", "0,1", "--explain-at",
                         "0.5,0.25", "--explain-maps", "1", "--probability-threshold", "0.99", "-o", tmp_path / "out")
    told = result["attention"]
    assert (told["layer"], told["available"]) == (expected.layer, expected.available)
    assert [(map_["name"], numpy.float32(map_["max"])) for map_ in told["maps"]] == [
        (map_.name, numpy.float32(map_.max)) for map_ in expected.maps
    ]
    assert len(told["maps"]) == 1 < told["available"]
    assert told["seen"] == {side: getattr(expected.seen, side) for side in ("x", "y", "width", "height")}
    assert result["classes"] == [], "an untrained network is certain of nothing"
    assert drawn(result["attention_map"]).any()

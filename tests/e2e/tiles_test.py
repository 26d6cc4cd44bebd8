"""Tests tiles: a picture that is cut into them gets the answer of the whole one, at the scale of the tiles."""

import json
import subprocess
import urllib.error
import urllib.request
from typing import NamedTuple

import grpc
import numpy
import pytest
import torch
from torch import Tensor, nn

import pictures
from harness import Daemon, binary
from messages import message, predict_request

ALLOW = "--allow-executable-models"
SIDE = 64
RAW = 2


class Boxes(NamedTuple):
    boxes: Tensor
    scores: Tensor
    labels: Tensor


class Colours(nn.Module):
    """Finds the box around all bright red, green and blue pixels that it is shown."""

    def forward(self, pixel_values: Tensor) -> Boxes:
        bright = pixel_values > 0.5
        rows, columns = bright.any(3), bright.any(2)
        at = torch.arange(pixel_values.shape[3])
        least = lambda lines: torch.where(lines, at, 10_000).amin(2)  # noqa: E731
        most = lambda lines: torch.where(lines, at + 1, 0).amax(2)  # noqa: E731
        boxes = torch.stack((least(columns), least(rows), most(columns), most(rows)), 2).float()
        shown = rows.any(2)
        scores = 0.5 + 0.4 * bright.float().mean((2, 3))
        labels = torch.where(shown, torch.arange(3), -1)
        return Boxes(boxes * shown[..., None], scores, labels)


class Edges(nn.Module):
    """A segmenter that looks four pixels far."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 5, padding=2), nn.ReLU(), nn.Conv2d(8, 6, 5, padding=2))

    def forward(self, pixel_values):
        return self.body(pixel_values)


class Mean(nn.Module):
    def forward(self, pixel_values):
        return pixel_values.mean((2, 3))


def write(root, name, network, head, config="", **described):
    folder = root / name
    (folder / "1").mkdir(parents=True)
    example = torch.zeros(2, 3, SIDE, SIDE)
    torch.jit.trace(network.eval(), example, check_trace=False).save(str(folder / "1" / "model.pt"))
    # A tile of this size is not scaled.
    (folder / "saccade.json").write_text(json.dumps({"input": {"size": SIDE}, "head": head, **described}))
    (folder / "config.pbtxt").write_text('backend: "pytorch"\nmax_batch_size: 4\n' + config)
    return folder


def own_tiles(text):
    return f'parameters {{ key: "tiles" value {{ string_value: "{text}" }} }}\n'


@pytest.fixture(scope="module")
def edges():
    torch.manual_seed(2)
    return Edges().eval()


@pytest.fixture(scope="module")
def daemon(edges, tmp_path_factory):
    root = tmp_path_factory.mktemp("tiles")
    boxes = {"kind": "boxes", "score_threshold": 0.1}
    labels = {"labels": ["red", "green", "blue"]}
    write(root / "models", "colours", Colours(), boxes, **labels)
    write(root / "models", "cut", Colours(), boxes, own_tiles("64:16"), **labels)
    # Its queue holds two requests, so eight items.
    write(root / "models", "short", Colours(), boxes, "dynamic_batching { default_queue_policy { max_queue_size: 2 } }\n", **labels)
    write(root / "models", "edges", edges, {"kind": "semantic"})
    write(root / "models", "classes", Mean(), {"kind": "classes"})
    with Daemon(root / "models", ALLOW, "--max-decoded-bytes=4000000", "--max-queue-size=400", log_folder=root) as running:
        yield running.await_ready()


@pytest.fixture(scope="module")
def vision(daemon):
    with daemon.vision() as made:
        yield made


def tiles(**fields):
    return message("saccade.v1.Tiles")(**fields)


def scene(width=200, height=150):
    """A red bar across all tiles, a small green square, and a blue one at the border."""
    array = numpy.zeros((height, width, 3), numpy.uint8)
    array[70:90, 20:180, 0] = 255
    array[10:30, 50:62, 1] = 255
    array[120:150, 190:200, 2] = 255
    return array


EXPECTED = {"red": (20, 70, 180, 90), "green": (50, 10, 62, 30), "blue": (190, 120, 200, 150)}


def boxes_of(answer):
    found = {one.label: (one.box.x_min, one.box.y_min, one.box.x_max, one.box.y_max) for one in answer.detections.detections}
    assert len(found) == len(answer.detections.detections)
    return found


def test_a_seam_cuts_no_object(vision):
    answer = vision.predict(predict_request(model="colours", encoded=pictures.encoded(scene()), tiles=tiles(size=64, overlap=16)))
    assert boxes_of(answer) == EXPECTED
    assert (answer.picture_width, answer.picture_height) == (200, 150)
    # Tiles of one picture share passes.
    assert answer.batch_size == 4


def test_a_region_is_cut_alone(vision):
    region = message("saccade.v1.Region")(x=40, y=5, width=100, height=90)
    request = predict_request(model="colours", encoded=pictures.encoded(scene()), tiles=tiles(size=64, overlap=16), region=region)
    assert boxes_of(vision.predict(request)) == {"red": (40, 70, 140, 90), "green": EXPECTED["green"]}


def test_a_models_own_tiles_are_used_and_can_be_turned_off(vision):
    file = pictures.encoded(scene())
    assert boxes_of(vision.predict(predict_request(model="cut", encoded=file))) == EXPECTED
    whole = vision.predict(predict_request(model="cut", encoded=file, tiles=tiles(whole=True)))
    assert whole.batch_size == 1
    assert boxes_of(whole)["green"] != EXPECTED["green"]  # scaled down to a tile
    # A picture that one tile shows is not cut.
    small = numpy.ascontiguousarray(scene()[:40, 30:90])
    assert boxes_of(vision.predict(predict_request(model="cut", encoded=pictures.encoded(small)))) == {
        "green": pytest.approx((20, 10, 32, 30), abs=1)
    }


def test_maps_are_those_of_the_whole_picture(vision, edges):
    array = pictures.pixels(5, 170, 131)
    request = predict_request(
        model="edges", encoded=pictures.encoded(array), tiles=tiles(size=SIDE, overlap=8),
        segmentation=message("saccade.v1.SegmentationOptions")(format=RAW),
    )  # fmt: skip
    answer = vision.predict(request).segmentation
    found = numpy.frombuffer(answer.label_map, numpy.uint8).reshape(131, 170)
    with torch.inference_mode():
        expected = edges(torch.from_numpy(array).permute(2, 0, 1)[None].float() / 255)[0].argmax(0).numpy()
    assert (found == expected).all()
    areas = {area.class_index: area.pixels for area in answer.areas}
    assert areas == {label: count for label, count in enumerate(numpy.bincount(expected.ravel())) if count}


def test_rest_takes_tiles(daemon):
    url = f"http://127.0.0.1:{daemon.http_port}/v1/predict/colours?tiles.size=64&tiles.overlap=16"
    with urllib.request.urlopen(urllib.request.Request(url, data=pictures.encoded(scene())), timeout=30) as answer:
        found = json.loads(answer.read())["detections"]["detections"]
    named = {one["label"]: tuple(one["box"].get(side, 0) for side in ("x_min", "y_min", "x_max", "y_max")) for one in found}
    assert named == EXPECTED


def test_the_clients_take_tiles(daemon, saccade, tmp_path):
    with saccade.Client(daemon.grpc_address) as client:
        answer = client.detect("colours", scene(), tiles=saccade.Tiles(64, 16))
        assert {one.label for one in answer.detections} == set(EXPECTED)
        assert client.detect("cut", scene(), tiles=saccade.Tiles(whole=True)).batch_size == 1
    (tmp_path / "scene.png").write_bytes(pictures.encoded(scene()))
    run = [binary("saccade"), "detect", "--url", daemon.grpc_address, "--model", "colours", "--tiles", "64:16", "--json", tmp_path / "scene.png"]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert all(done.stdout.count(f'"{label}"') == 1 for label in EXPECTED), done.stdout
    wrong = subprocess.run([*run[:-3], "64:16:2", *run[-2:]], capture_output=True, text=True, timeout=60)
    assert wrong.returncode == 2 and "expected SIZE:OVERLAP" in wrong.stderr


def refused(vision, **fields):
    fields = {"model": "colours", "encoded": pictures.encoded(scene()), **fields}
    with pytest.raises(grpc.RpcError) as caught:
        vision.predict(predict_request(**fields))
    return caught.value.code().name, caught.value.details()


@pytest.mark.parametrize("fields, expected", [
    ({"tiles": dict(size=0)}, "tiles.size: is 0; expected the side of a tile"),
    ({"tiles": dict(size=-3)}, "tiles.size: is -3; expected"),
    ({"tiles": dict(size=64, overlap=33)}, "tiles.overlap: is 33; expected 0 to 32"),
    ({"tiles": dict(size=64, overlap=64)}, "tiles.overlap: is 64; expected 0 to 32"),
    ({"tiles": dict(size=201)}, "tiles.size: is 201, but the picture is 200 x 150; expected 1 to 200"),
    ({"tiles": dict(size=4)}, "into 1900 tiles of 4 with an overlap of 0; expected at most 1024"),
    ({"tiles": dict(size=64, whole=True)}, "tiles.whole: is set together with a size"),
    ({"tiles": dict(size=64), "model": "classes"}, "the task of model 'classes' is classification"),
    ({"tiles": dict(size=64), "explain": {}}, "explain: is set together with tiles"),
    ({"model": "cut", "explain": {}}, "explain"),
])  # fmt: skip
def test_wrong_tiles_are_refused(vision, fields, expected):
    fields = dict(fields)
    for name, kind in (("tiles", "Tiles"), ("explain", "Explain")):
        if name in fields:
            fields[name] = message(f"saccade.v1.{kind}")(**fields[name])
    code, details = refused(vision, **fields)
    assert code == "INVALID_ARGUMENT" and expected in details


@pytest.mark.parametrize("model, sizes, count, bound", [
    ("colours", dict(size=8), 475, 400),
    ("short", dict(size=64, overlap=16), 12, 8),
    ("edges", dict(size=8), 475, 400)])
def test_more_tiles_than_the_queue_ever_holds_are_no_matter_of_time(daemon, vision, model, sizes, count, bound):
    """Another try would not fit either."""
    code, details = refused(vision, model=model, tiles=tiles(**sizes))
    assert code == "INVALID_ARGUMENT", details
    expected = f"into {count} tiles of {sizes['size']} with an overlap of {sizes.get('overlap', 0)}; expected at most {bound}, "
    for words in (expected, "max_queue_size", "larger", "--max-queue-size", "default_queue_policy"):
        assert words in details, details
    assert "try again" not in details
    query = "&".join(f"tiles.{name}={value}" for name, value in sizes.items())
    url = f"http://127.0.0.1:{daemon.http_port}/v1/predict/{model}?{query}"
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(urllib.request.Request(url, data=pictures.encoded(scene())), timeout=30)
    assert caught.value.code == 400 and json.loads(caught.value.read())["error"] == details
    assert "Retry-After" not in caught.value.headers


def test_as_many_tiles_as_an_empty_queue_holds_are_computed(vision):
    region = message("saccade.v1.Region")(x=0, y=50, width=200, height=100)  # four by two tiles
    request = predict_request(model="short", encoded=pictures.encoded(scene()), tiles=tiles(size=64), region=region)
    assert {one.label for one in vision.predict(request).detections.detections} == {"red", "blue"}


def test_a_models_tiles_only_fit_tasks_that_can_be_merged(tmp_path):
    write(tmp_path / "models", "classes", Mean(), {"kind": "classes"}, own_tiles("64:16"))
    write(tmp_path / "models", "wrong", Colours(), {"kind": "boxes"}, own_tiles("64:40"), labels=["a", "b", "c"])
    run = [binary("saccaded"), "--check-config", "--model-repository", tmp_path / "models", ALLOW]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "the parameter 'tiles' is set, but the model's task is classification" in done.stdout
    assert "is '64:40', expected SIZE:OVERLAP in pixels" in done.stdout


def test_the_memory_of_all_tiles_is_counted_before_they_are_made(vision):
    array = numpy.zeros((600, 600, 3), numpy.uint8)
    # 1.1 MB of pixels, but 361 tiles of 49,152 bytes each as floats.
    code, details = refused(vision, encoded=pictures.encoded(array), tiles=tiles(size=SIDE, overlap=32))
    # More than the bound itself: a later attempt would not fit either.
    assert code == "INVALID_ARGUMENT" and "decoded" in details
    assert boxes_of(vision.predict(predict_request(model="colours", encoded=pictures.encoded(scene()), tiles=tiles(size=64, overlap=16)))) == EXPECTED

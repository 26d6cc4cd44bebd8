"""Serves TIFFs that are much larger than what is decoded at once: they are read by regions, in little memory."""

import pathlib
import threading
import time

import grpc
import numpy
import pytest
import torch

import pictures
from harness import Daemon, of_threads
from large_tiffs import striped_tiff, tiled_tiff
from messages import message, predict_request
from tests.long_form import LONG
from tiles_test import ALLOW, SIDE, Colours, Edges, boxes_of, tiles, write

GIBIBYTE = 1 << 30
LARGE = 100_000  # pixels of each side
RED, GREEN, BLUE = ((255, 0, 0), (0, 255, 0), (0, 0, 255))


class Filled(Colours):
    """The same with masks that fill their boxes."""

    def forward(self, pixel_values):
        found = super().forward(pixel_values)
        return found.boxes, found.scores, found.labels, torch.ones(pixel_values.shape[0], 3, 14, 14)


# Larger than a pixel of the smallest scale, and away from each other; blue ends at the picture's corner.
OBJECTS = [(RED, 20_000, 30_000, 512, 512), (GREEN, 61_440, 1_024, 768, 256), (BLUE, LARGE - 416, LARGE - 416, 416, 416)]


@pytest.fixture(scope="module")
def file():
    made = tiled_tiff(LARGE, LARGE, OBJECTS)
    assert len(made) < 4 << 20
    return made


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    root = tmp_path_factory.mktemp("large")
    write(root / "models", "colours", Colours(), {"kind": "boxes", "score_threshold": 0.1}, labels=["red", "green", "blue"])
    write(root / "models", "semantic", Edges().eval(), {"kind": "semantic"})
    outputs = {name: f"OUTPUT__{n}" for n, name in enumerate(("boxes", "scores", "labels", "masks"))}
    write(root / "models", "masks", Filled(), {"kind": "boxes", "score_threshold": 0.1}, labels=["red", "green", "blue"], outputs=outputs)
    # The tiles of the whole picture are 676 items of one queue.
    with Daemon(root / "models", ALLOW, "--decode=process", "--max-queue-size=1024", log_folder=root) as running:
        yield running.await_ready()


@pytest.fixture(scope="module")
def vision(daemon):
    with daemon.vision() as made:
        yield made


def processes(daemon):
    """The daemon, and the processes that it started."""
    found, seen = [daemon.process.pid], []
    while found:
        process = found.pop()
        seen.append(process)
        found += [int(child) for text in of_threads(process, "children") for child in text.split()]
    return seen


def resident(process):
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmRSS:"))


class Peak:
    """The most memory that all processes of the daemon held together."""

    def __init__(self, daemon):
        self.bytes, self._daemon, self._end = 0, daemon, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self):
        while not self._end.wait(0.02):
            self.bytes = max(self.bytes, sum(resident(process) for process in processes(self._daemon)))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


def expect_objects(answer, names):
    """A pixel of the network's input is 64 of the picture."""
    found = boxes_of(answer)
    assert set(found) == set(names)
    for name, (_, x, y, width, height) in zip(("red", "green", "blue"), OBJECTS):
        if name in names:
            assert found[name] == pytest.approx((x, y, x + width, y + height), abs=4096 / SIDE)


def test_tiles_of_a_large_picture_take_less_than_a_gibibyte(daemon, vision, file):
    """A corner and a part of the middle; SACCADE_LONG=1 sees the whole picture, which takes minutes."""
    areas = [(LARGE - 20_000, LARGE - 20_000, 20_000, 20_000, {"blue"}), (10_000, 25_000, 20_000, 12_000, {"red"})]
    if LONG:
        areas = [(0, 0, LARGE, LARGE, {"red", "green", "blue"})]
    for x, y, width, height, names in areas:
        region = message("saccade.v1.Region")(x=x, y=y, width=width, height=height)
        request = predict_request(model="colours", encoded=file, region=region, tiles=tiles(size=4096, overlap=128))
        started = time.monotonic()
        with Peak(daemon) as peak:
            answer = vision.predict(request, timeout=3000)
        print(f"{width} x {height} pixels in {time.monotonic() - started:.0f} s, peak of {peak.bytes / GIBIBYTE:.2f} GiB")
        assert (answer.picture_width, answer.picture_height) == (LARGE, LARGE)
        expect_objects(answer, names)
        assert 0 < peak.bytes < GIBIBYTE


def test_a_region_is_seen_at_full_size_with_and_without_tiles(vision, file):
    region = message("saccade.v1.Region")(x=20_000 - 70, y=30_000 - 90, width=700, height=650)
    answer = vision.predict(predict_request(model="colours", encoded=file, region=region, tiles=tiles(size=64, overlap=16)))
    assert boxes_of(answer) == {"red": (20_000, 30_000, 20_512, 30_512)}
    small = message("saccade.v1.Region")(x=61_440 - 20, y=1_024 - 10, width=SIDE, height=SIDE)
    answer = vision.predict(predict_request(model="colours", encoded=file, region=small))
    assert boxes_of(answer) == {"green": (61_440, 1_024, 61_440 + SIDE - 20, 1_024 + SIDE - 10)}


def test_a_region_of_a_large_file_gives_what_the_same_pixels_give_alone(vision, file):
    pixels = numpy.zeros((640, 640, 3), numpy.uint8)
    pixels[100:612, 50:562] = RED
    alone = vision.predict(predict_request(model="colours", encoded=pictures.encoded(pixels)))
    region = message("saccade.v1.Region")(x=19_950, y=29_900, width=640, height=640)
    cut = vision.predict(predict_request(model="colours", encoded=file, region=region))
    (one,), (other,) = alone.detections.detections, cut.detections.detections
    assert one.score == other.score
    assert (other.box.x_min, other.box.y_max) == (one.box.x_min + 19_950, one.box.y_max + 29_900)


@pytest.mark.parametrize(
    "fields, complaint",
    [
        ({}, "the picture is 100000 x 100000 pixels large, too large to be decoded at once; ask for a region or for tiles"),
        ({"region": {"x": 0, "y": 0, "width": 20_000, "height": 20_000}}, "the region of 20000 x 20000 pixels is too large"),
        ({"region": {"x": LARGE - 5, "y": 0, "width": 6, "height": 5}}, "extends beyond the upright picture"),
        ({"tiles": {"size": 640, "overlap": 128}}, "expected at most 1024: make the size larger or the overlap smaller"),
        ({"tiles": {"size": 20_000}}, "at most 67108864 pixels of a picture are decoded at once"),
    ],
)
def test_what_cannot_be_read_is_rejected_with_advice(vision, file, fields, complaint):
    with pytest.raises(grpc.RpcError) as failure:
        vision.predict(predict_request(model="colours", encoded=file, **fields))
    assert failure.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert complaint in failure.value.details(), failure.value.details()


def test_what_would_be_as_large_as_the_picture_is_rejected(vision, file):
    region = message("saccade.v1.Region")(x=0, y=0, width=SIDE, height=SIDE)
    with pytest.raises(grpc.RpcError) as failure:
        vision.predict(predict_request(model="semantic", encoded=file, region=region))
    assert failure.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "the model's answer would be a map of that size; send the part" in failure.value.details()
    region = message("saccade.v1.Region")(x=20_000, y=30_000, width=SIDE, height=SIDE)
    with pytest.raises(grpc.RpcError) as failure:
        vision.predict(predict_request(model="masks", encoded=file, region=region, detection={"masks": "RLE"}))
    assert failure.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "ask for PNG, POLYGONS or NONE" in failure.value.details()
    answer = vision.predict(predict_request(model="masks", encoded=file, region=region, detection={"masks": "PNG"}))
    (one,) = answer.detections.detections
    # A mask fades over half a cell of its grid at the border of its box.
    assert (one.mask_picture.x, one.mask_picture.y) == pytest.approx((20_000, 30_000), abs=3)
    assert 0.9 * SIDE * SIDE < one.mask_picture.area <= SIDE * SIDE


def test_strips_are_rejected_with_advice(vision, file):
    with pytest.raises(grpc.RpcError) as failure:
        vision.predict(predict_request(model="colours", encoded=striped_tiff(20_000, 20_000), tiles=tiles(size=4096)))
    assert failure.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "20000 x 20000 pixels large" in failure.value.details()
    assert "a TIFF in strips cannot be read by regions, so save it again in tiles" in failure.value.details()


def test_a_tile_that_is_damaged_is_an_error_and_no_crash(daemon, vision, file):
    broken = bytearray(file)
    broken[16:24] = b"\xff" * 8  # the data of the black tiles
    region = message("saccade.v1.Region")(x=0, y=0, width=300, height=300)
    with pytest.raises(grpc.RpcError) as failure:
        vision.predict(predict_request(model="colours", encoded=bytes(broken), region=region))
    assert failure.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert daemon.process.poll() is None

"""Tests what ./dev bench tiles measures with: objects are counted once, and the daemon's tiles find those of a sheet. SAHI is not installed
for the tests."""

import io

import numpy
import PIL.Image
import pytest

from harness import DEMO_REPOSITORY, Daemon
from tools.bench_tiles.served import Served
from tools.bench_tiles.sheets import TILE, Found, matched, sheet, side_of, tiles_of


def found(*rows):
    table = numpy.array(rows, numpy.float32).reshape(-1, 5)
    return Found(table[:, :4], table[:, 4].astype(int))


TRUTH = found((0, 0, 10, 10, 1), (20, 0, 30, 10, 1), (20, 0, 30, 10, 2))


@pytest.mark.parametrize("detections, count", [
    (found(), 0),
    (TRUTH, 3),
    (found((0, 0, 10, 10, 1), (1, 0, 10, 10, 1)), 1),  # twice the same object
    (found((0, 0, 10, 10, 2)), 0),  # of another class
    (found((0, 0, 10, 5.1, 1)), 1),
    (found((0, 0, 10, 4.9, 1)), 0),  # less than half of it
    (found((20, 0, 30, 10, 2), (20, 0, 30, 10, 1)), 2),
])  # fmt: skip
def test_each_object_counts_once(detections, count):
    assert matched(detections, TRUTH) == count


def test_no_objects_are_none_found():
    assert matched(TRUTH, found()) == 0


def test_a_sheet_has_the_size_and_objects_that_it_says():
    file, truth = sheet(0, 2)
    with PIL.Image.open(io.BytesIO(file)) as picture:
        assert picture.size == (side_of(2), side_of(2)) == (320, 320)
    assert len(truth.classes) == len(truth.boxes) > 4
    assert truth.boxes.min() >= 24 and truth.boxes.max() <= 40 + 2 * TILE
    # Tiles start at 0, 96 and 192, or at 0, 64, 128 and 192.
    assert (tiles_of(2, 32), tiles_of(2, 64)) == (9, 16)


def test_tiles_find_the_objects_of_a_sheet(tmp_path):
    with Daemon(DEMO_REPOSITORY, "--model-control-mode=explicit", "--load-model=detector", log_folder=tmp_path) as daemon:
        daemon.await_ready()
        with daemon.vision() as vision:
            tiles = Served(daemon, vision, overlap=32, score=0.3, masks="NONE")
            before = tiles.processor()
            right = shown = 0
            for index in range(2):
                file, truth = sheet(index, 2)
                right += matched(tiles(file), truth)
                shown += len(truth.classes)
            assert tiles.processor() > before
    assert right > 0.6 * shown, f"{right} of {shown}"

"""Run lengths are those of pycocotools, which nobody here wrote."""

import numpy
import pycocotools.mask
import pytest

from saccade import masks


def of_pycocotools(inside):
    return pycocotools.mask.encode(numpy.asfortranarray(inside.astype(numpy.uint8)))["counts"].decode()


@pytest.mark.parametrize("seed", range(40))
def test_encoded_masks_are_those_of_pycocotools(seed):
    random = numpy.random.default_rng(seed)
    height, width = random.integers(1, 90, 2)
    coarse = random.random((height // 9 + 1, width // 9 + 1)) < random.choice([0, 0.1, 0.5, 0.9, 1.1])
    inside = numpy.kron(coarse, numpy.ones((9, 9), bool))[:height, :width]
    counts = masks.encode_values(inside)
    assert counts == {bool(value): of_pycocotools(inside == value) for value in numpy.unique(inside)}
    for value, text in counts.items():
        assert (masks.decode(text, height, width) == (inside == value)).all()


@pytest.mark.parametrize("seed", range(40))
def test_each_value_of_a_map_has_the_mask_of_pycocotools(seed):
    random = numpy.random.default_rng(seed)
    height, width = random.integers(1, 90, 2)
    coarse = random.integers(0, random.integers(1, 9), (height // 9 + 1, width // 9 + 1)) * 31
    values = numpy.kron(coarse, numpy.ones((9, 9), int))[:height, :width].astype(numpy.uint8)
    if seed % 2:
        values[random.random(values.shape) < 0.1] = 255
    expected = {int(value): of_pycocotools(values == value) for value in numpy.unique(values)}
    assert masks.encode_values(values) == expected


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (7, 1), (1200, 1900)])
def test_sizes_at_the_edges_have_the_masks_of_pycocotools(size):
    random = numpy.random.default_rng(7)
    values = (random.random(size) < 0.5).astype(numpy.uint8) * 3
    if size[0] > 100:
        # Runs of up to 600,000 pixels.
        values[:, 300:800] = 0
    expected = {int(value): of_pycocotools(values == value) for value in numpy.unique(values)}
    assert masks.encode_values(values) == expected


def test_maps_without_pixels_have_no_masks():
    assert masks.encode_values(numpy.zeros((0, 5), numpy.uint8)) == {}

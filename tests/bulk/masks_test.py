"""Run lengths are those of pycocotools, which nobody here wrote."""

import numpy
import pycocotools.mask
import pytest

from saccade import masks


@pytest.mark.parametrize("seed", range(40))
def test_encoded_masks_are_those_of_pycocotools(seed):
    random = numpy.random.default_rng(seed)
    height, width = random.integers(1, 90, 2)
    coarse = random.random((height // 9 + 1, width // 9 + 1)) < random.choice([0, 0.1, 0.5, 0.9, 1.1])
    inside = numpy.kron(coarse, numpy.ones((9, 9), bool))[:height, :width]
    expected = pycocotools.mask.encode(numpy.asfortranarray(inside.astype(numpy.uint8)))["counts"].decode()
    counts = masks.encode(inside)
    assert counts == expected
    assert (masks.decode(counts, height, width) == inside).all()


@pytest.mark.parametrize("seed", range(40))
def test_each_value_of_a_map_has_the_mask_of_pycocotools(seed):
    random = numpy.random.default_rng(seed)
    height, width = random.integers(1, 90, 2)
    coarse = random.integers(0, random.integers(1, 9), (height // 9 + 1, width // 9 + 1)) * 31
    values = numpy.kron(coarse, numpy.ones((9, 9), int))[:height, :width].astype(numpy.uint8)
    if seed % 2:
        values[random.random(values.shape) < 0.1] = 255
    expected = {
        int(value): pycocotools.mask.encode(numpy.asfortranarray((values == value).astype(numpy.uint8)))["counts"].decode()
        for value in numpy.unique(values)
    }
    assert masks.encode_values(values) == expected


def test_maps_without_pixels_have_no_masks():
    assert masks.encode_values(numpy.zeros((0, 5), numpy.uint8)) == {}
    assert masks.encode(numpy.zeros((0, 5), bool)) == "0"

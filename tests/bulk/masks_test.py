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

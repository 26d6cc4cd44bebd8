"""Scenes must be reproducible from their seeds, and their labels must match the pictures."""

import dataclasses

import numpy
import pytest
import torch

from models.reference.scenes import objects, shapes, stereo, volumes
from models.reference.scenes.sheet import KINDS, sheet


@pytest.mark.parametrize("kind", [objects, stereo, volumes])
def test_a_scene_is_a_function_of_seed_and_index(kind):
    first, again, other, seeded = (dataclasses.astuple(kind.draw(*at)) for at in [(1, 2), (1, 2), (1, 3), (2, 2)])
    for one, same in zip(first, again):
        numpy.testing.assert_array_equal(one, same)
    assert not numpy.array_equal(first[0], other[0])
    assert not numpy.array_equal(first[0], seeded[0])


def test_things_are_labelled_where_they_are_seen():
    seen = set()
    for index in range(40):
        scene = objects.draw(1, index)
        union = numpy.zeros(scene.label_map.shape, int)
        for kind, mask, box in zip(scene.classes, scene.masks, scene.boxes):
            seen.add(int(kind))
            union += mask
            assert (scene.label_map[mask] == kind).all()
            rows, columns = mask.nonzero()
            assert box.tolist() == [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            assert mask.sum() >= objects.LEAST_PIXELS
        assert union.max() <= 1, "what hides is not what is hidden"
        assert ((scene.label_map > 0) == (union > 0)).all()
    assert seen == set(range(1, len(objects.LABELS))), "every class occurs"


def test_outlines_are_where_the_picture_changes():
    """Colours change more across the masks' borders than elsewhere, but not across shifted borders."""
    at_border, moved = [], []
    for index in range(20):
        scene = objects.draw(1, index)
        step = numpy.abs(numpy.diff(scene.picture.astype(float), axis=1)).sum(axis=2)
        border = scene.label_map[:, 1:] != scene.label_map[:, :-1]
        at_border.append(numpy.median(step[border]))
        moved.append(numpy.median(numpy.roll(step, 7, axis=1)[border]))
    assert numpy.mean(at_border) > 2 * numpy.mean(moved)


def test_the_right_picture_shows_what_the_disparity_says():
    """Compares pixels that both cameras see, up to noise and the difference in brightness. With a disparity that is off
    by a few pixels they must agree less."""
    wins = 0
    for index in range(10):
        pair = stereo.draw(1, index)
        y, x = numpy.mgrid[:stereo.HEIGHT, :stereo.WIDTH].astype(float)
        assert pair.disparity.min() >= 0.5 and pair.disparity.max() <= stereo.MOST

        def off(shift: float) -> float:
            at = x - pair.disparity - shift
            warped = stereo._lookup(pair.right.astype(float), at, y)
            return float(numpy.median(numpy.abs(warped - pair.left).mean(axis=2)[at > 0]))

        assert off(0) < 20
        wins += off(0) < 0.7 * min(off(3), off(-3))
    assert wins >= 9


def test_surfaces_slant_curve_and_are_thin():
    rng = numpy.random.default_rng(1)
    y, x = numpy.mgrid[:stereo.HEIGHT, :stereo.WIDTH].astype(float)
    for kind, (least, most) in {"wall": (0, 0.3), "ball": (0.05, 99), "wave": (0.05, 2)}.items():
        surface = stereo.Surface(rng, kind)
        surface.at, surface.turn = numpy.array([64.0, 40.0]), 0.0
        along = surface.disparity(x, y)[40, 55:75]
        assert least <= numpy.abs(numpy.diff(along)).max() <= most, kind
    assert stereo.Surface(rng, "pole").half[0] <= 2.5


def test_noise_is_around_the_clean_volume():
    for index in range(5):
        volume = volumes.draw(1, index)
        assert volume.noisy.shape == volume.clean.shape == volumes.SHAPE
        difference = volume.noisy - volume.clean
        assert abs(difference.mean()) < 5 * difference.std() / difference.size**0.5
        bright = volume.clean > numpy.percentile(volume.clean, 90)
        assert difference[bright].std() > difference[~bright].std(), "light comes in photons"


def test_a_shape_is_drawn_in_the_middle_of_what_is_served():
    drawn = shapes.draw(torch.tensor([0]), 64, torch.Generator().manual_seed(1))
    assert drawn.shape == (1, 3, 64, 64) and drawn.min() >= 0 and drawn.max() <= 1


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_sheets_hold_so_many_scenes(kind):
    one, four = sheet(kind, 1, 1), sheet(kind, 1, 4, columns=2)
    assert four.size == (2 * one.width, 2 * one.height)

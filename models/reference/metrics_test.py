"""Checks the figures on cases that can be computed by hand."""

import numpy
import pytest

from models.reference import metrics


def square(top: int, left: int, side: int, size: int = 40) -> numpy.ndarray:
    mask = numpy.zeros((size, size), bool)
    mask[top:top + side, left:left + side] = True
    return mask


def boxes_of(masks: list[numpy.ndarray]) -> numpy.ndarray:
    corners = [(where[1].min(), where[0].min(), where[1].max() + 1, where[0].max() + 1)
               for where in (mask.nonzero() for mask in masks)]
    return numpy.array(corners, numpy.float32).reshape(-1, 4)


def truth(*things: tuple[int, numpy.ndarray]) -> metrics.Truth:
    masks = [mask for _, mask in things]
    return metrics.Truth(boxes_of(masks), numpy.array([kind for kind, _ in things]), numpy.array(masks))


def found(*things: tuple[float, int, numpy.ndarray]) -> metrics.Found:
    masks = [mask for _, _, mask in things]
    return metrics.Found(boxes_of(masks), numpy.array([score for score, _, _ in things]),
                         numpy.array([kind for _, kind, _ in things], int),
                         numpy.array(masks, bool).reshape(-1, 40, 40))


@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_average_precision(kind):
    one, other = square(2, 2, 10), square(20, 20, 10)
    both = truth((1, one), (1, other))
    assert metrics.average_precision([both], [found((0.9, 1, one), (0.8, 1, other))], kind) == pytest.approx((1, 1))
    # Half of the objects: precision is 1 up to a recall of 0.5, 51 of COCO's 101 recall levels.
    assert metrics.average_precision([both], [found((0.9, 1, one))], kind) == pytest.approx((51 / 101, 51 / 101))
    # Another class, or no detection.
    assert metrics.average_precision([both], [found((0.9, 2, one))], kind) == pytest.approx((0, 0))
    assert metrics.average_precision([both], [found()], kind) == pytest.approx((0, 0))
    # Shifted by one pixel: an overlap of 90 / 110 = 0.818 counts at 0.50 to 0.80, seven of ten thresholds.
    aside = found((0.9, 1, square(2, 3, 10)), (0.8, 1, square(20, 21, 10)))
    assert metrics.average_precision([both], [aside], kind) == pytest.approx((0.7, 1))
    # A wrong detection with a higher score than both right ones: precision is 2/3 everywhere.
    wrong = found((0.95, 1, square(2, 25, 10)), (0.9, 1, one), (0.8, 1, other))
    assert metrics.average_precision([both], [wrong], kind) == pytest.approx((2 / 3, 2 / 3))


def test_masks_and_boxes_are_judged_apart():
    ring = square(2, 2, 12) & ~square(4, 4, 8)
    assert metrics.average_precision([truth((1, ring))], [found((0.9, 1, square(2, 2, 12)))], "bbox")[1] == pytest.approx(1)
    assert metrics.average_precision([truth((1, ring))], [found((0.9, 1, square(2, 2, 12)))], "segm")[0] < 0.2


def test_segmentation():
    expected, got = numpy.array([[0, 0, 1, 1]]), numpy.array([[0, 1, 1, 1]])
    counts = metrics.confusion(expected, got, 3)
    assert counts.tolist() == [[1, 1, 0], [0, 2, 0], [0, 0, 0]]
    assert metrics.mean_iou(counts) == pytest.approx((1 / 2 + 2 / 3) / 2), "a class that is nowhere does not count"
    assert metrics.pixel_accuracy(counts) == 0.75


def test_stereo():
    expected, got = numpy.array([10.0, 10, 100, 100]), numpy.array([10.0, 14, 104, 106])
    assert metrics.end_point_error(expected, got) == (0 + 4 + 4 + 6) / 4
    # 4 of 100 is more than 3 pixels, but less than a twentieth.
    assert metrics.three_pixel_error(expected, got) == 0.5


def test_restoration():
    clean = numpy.array([0.0, 100.0])
    assert metrics.psnr(clean, clean + 10) == pytest.approx(20)


def test_run_lengths():
    # 2 zeros, 3 ones, 1 zero, down the columns.
    assert metrics.decoded(3, 2, "231").T.ravel().tolist() == [False, False, True, True, True, False]

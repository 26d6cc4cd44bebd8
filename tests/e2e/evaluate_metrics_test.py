"""The figures of `saccade evaluate`, on sets small enough to be worked out by hand."""

import math

import numpy
import pytest


@pytest.fixture(scope="module")
def metrics(saccade):
    from saccade.evaluate import metrics

    return metrics


def test_the_class_is_among_the_k_most_probable(metrics):
    guesses = [[1, 0, 2], [2, 1, 0], [0, 2, 1], [2]]
    assert metrics.top_k([1, 1, 1, 0], guesses, 1) == 1 / 4
    assert metrics.top_k([1, 1, 1, 0], guesses, 2) == 2 / 4
    assert metrics.top_k([1, 1, 1, 0], guesses, 5) == 3 / 4


def test_iou_is_over_all_pixels_without_the_ignored_ones(metrics):
    expected = numpy.array([[0, 0, 0, 1], [1, 1, 255, 255]], numpy.uint8)
    got = numpy.array([[0, 0, 1, 1], [1, 0, 1, 2]], numpy.uint8)
    counts = metrics.confusion(expected, got, 4)
    assert counts.tolist() == [[2, 1, 0, 0], [1, 2, 0, 0], [0] * 4, [0] * 4]
    # Both: 2 right of 2 + 1 + 1. The other two classes are nowhere.
    iou = metrics.class_iou(counts)
    assert iou[:2].tolist() == [0.5, 0.5] and numpy.isnan(iou[2:]).all()
    assert metrics.mean_iou(counts) == 0.5 and metrics.pixel_accuracy(counts) == 4 / 6
    # A class that is predicted where it is not counts with 0.
    other = metrics.confusion(expected, numpy.full_like(got, 3), 4)
    assert metrics.class_iou(other)[[0, 1, 3]].tolist() == [0, 0, 0] and metrics.mean_iou(other) == 0


def test_the_iou_of_a_set_is_not_the_mean_of_its_pictures(metrics):
    first = metrics.confusion(numpy.array([0, 0, 0, 0]), numpy.array([0, 0, 0, 1]), 2)
    second = metrics.confusion(numpy.array([1]), numpy.array([1]), 2)
    # Class 0: 3 of 4; class 1: 1 of 2.
    assert metrics.mean_iou(first + second) == (3 / 4 + 1 / 2) / 2


def test_d1_needs_both_an_error_of_three_pixels_and_of_a_twentieth(metrics):
    expected = numpy.array([10.0, 10, 100, 100, 20, math.nan, 30])
    got = numpy.array([10.0, 13.5, 104, 106, 23, 5, math.nan])
    counted = numpy.ones(7, bool)
    # Errors 0, 3.5, 4 (a twentieth is 5), 6 (more than 5), 3 (not more than 3), no truth, no answer.
    assert metrics.disparity_errors(expected, got, counted) == [6, 1, 0 + 3.5 + 4 + 6 + 3, 4, 3]
    counted[1] = False
    assert metrics.disparity_errors(expected, got, counted) == [5, 1, 13, 3, 2]


def test_overlap_in_time(metrics):
    assert metrics.temporal_iou((0, 10), (5, 15)) == 5 / 15
    assert metrics.temporal_iou((0, 10), (10, 12)) == 0 and metrics.temporal_iou((0, 1), (5, 6)) == 0
    assert metrics.temporal_iou((2, 4), (2, 4)) == 1


def test_average_precision_of_actions(metrics):
    truth = {"a": [(0, 10), (20, 30)], "b": [(0, 4)]}
    found = {"a": [(0, 9, 0.9), (50, 60, 0.8), (20, 30, 0.7)]}
    # By score: right (precision 1), wrong, right (2/3); three true segments, of which one is never found.
    assert metrics.detection_ap(truth, {}, found, 0.5) == pytest.approx((1 + 2 / 3) / 3)
    # An overlap of 0.9 is not more than 0.9.
    assert metrics.detection_ap(truth, {}, found, 0.9) == pytest.approx((1 / 3) / 3)
    assert metrics.detection_ap(truth, {}, {}, 0.5) == 0
    # A video without the action: its detections are wrong, and rank with the others.
    assert metrics.detection_ap({"b": [(0, 4)]}, {}, {"c": [(0, 4, 0.9)], "b": [(0, 4, 0.5)]}, 0.5) == 1 / 2


def test_an_ambiguous_segment_excuses_wrong_detections(metrics):
    truth, found = {"a": [(0, 10)]}, {"a": [(50, 60, 0.9), (0, 10, 0.8)]}
    assert metrics.detection_ap(truth, {}, found, 0.5) == 1 / 2
    assert metrics.detection_ap(truth, {"a": [(59, 70)]}, found, 0.5) == 1
    assert metrics.detection_ap(truth, {"a": [(60, 70)]}, found, 0.5) == 1 / 2, "they only touch"
    assert metrics.detection_ap(truth, {"b": [(50, 60)]}, found, 0.5) == 1 / 2, "of another video"


def test_a_true_segment_takes_the_detection_that_overlaps_it_most(metrics):
    # Not the one with the best score: the challenge's evaluation says so, unlike Pascal VOC's.
    found = {"a": [(0, 6, 0.9), (0, 10, 0.5)]}
    assert metrics.detection_ap({"a": [(0, 10)]}, {}, found, 0.5) == 1 / 2
    # Two detections of one segment: the second is wrong.
    assert metrics.detection_ap({"a": [(0, 10)]}, {}, {"a": [(0, 10, 0.9), (0, 10, 0.8)]}, 0.5) == 1


def test_what_overlaps_a_better_detection_is_dropped(metrics):
    found = [(0, 10, 0.5), (1, 10, 0.9), (5, 15, 0.4), (40, 50, 0.1)]
    # 9 / 10 is dropped; (1, 10) and (5, 15) overlap by 5 / 14.
    assert metrics.without_overlaps(found, 0.4) == [(1, 10, 0.9), (5, 15, 0.4), (40, 50, 0.1)]
    assert metrics.without_overlaps(found, 0.3) == [(1, 10, 0.9), (40, 50, 0.1)]


def test_care_s_normalization_forgets_scale_and_shift(metrics):
    truth = numpy.arange(1001.0).reshape(1, 7, 143)
    expected, got = metrics.care_normalized(truth, 3 * truth + 17)
    # Percentiles 0.1 and 99.9 of 0 to 1000 are 1 and 999.
    assert expected.ravel()[[1, 999]] == pytest.approx([0, 1]) and got == pytest.approx(expected)
    assert metrics.psnr(expected, expected) == math.inf and metrics.nrmse(expected, expected) == 0
    # An answer that says nothing becomes the mean: an error of the truth's own deviation.
    expected, got = metrics.care_normalized(truth, numpy.full_like(truth, 5))
    assert metrics.nrmse(expected, got) == pytest.approx(numpy.arange(1001).std() / 998)


def test_the_scale_is_the_one_with_the_least_error(metrics):
    truth, answer = numpy.array([0.0, 1, 2, 3]), numpy.array([0.0, 1, 1, 0])
    # They are not correlated: cov((0,1,2,3), (0,1,1,0)) = 0.
    expected, got = metrics.care_normalized(truth, answer)
    assert got == pytest.approx(numpy.full(4, expected.mean()))
    # cov((0,1,2,3), (0,0,1,1)) = 0.5, variance 0.25: the answer is twice as steep, and off by 0.5 at each.
    expected, got = metrics.care_normalized(truth, numpy.array([0, 0, 1, 1]))
    step = expected[1] - expected[0]
    assert abs(got - expected) == pytest.approx(numpy.full(4, step / 2))


def test_psnr_and_nrmse_for_a_range_of_one(metrics):
    expected = numpy.zeros((1, 2, 2))
    assert metrics.psnr(expected, expected + 0.1) == pytest.approx(20)
    assert metrics.nrmse(expected, expected + 0.1) == pytest.approx(0.1)


def test_ssim(metrics):
    flat = numpy.full((2, 12, 14), 0.5)
    assert metrics.ssim(flat, flat) == pytest.approx(1)
    # Two flat pictures: only the means count, (2 a b + C1) / (a a + b b + C1).
    assert metrics.ssim(flat, flat / 2) == pytest.approx((2 * 0.5 * 0.25 + 1e-4) / (0.25 + 0.0625 + 1e-4))
    # Stripes and their opposite: the structure is negative. With a Gaussian window that sees them in balance, the means
    # are 0.5 and the covariance is minus the variance of 0.25.
    stripes = numpy.tile(numpy.arange(16) % 2, (1, 16, 1)).astype(float)
    expected = (-2 * 0.25 + 9e-4) / (2 * 0.25 + 9e-4)
    assert metrics.ssim(stripes, 1 - stripes) == pytest.approx(expected, abs=1e-3)
    with pytest.raises(ValueError, match="smaller than the window of 11"):
        metrics.ssim(flat[:, :10], flat[:, :10])

"""Figures by their published definitions. Each function says where its definition comes from."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy
from numpy.typing import NDArray

Segment = tuple[float, float]
Counts = NDArray[numpy.int64]
Real = NDArray[numpy.float64]


def top_k(truths: Sequence[int], guesses: Sequence[Sequence[int]], k: int) -> float:
    """ImageNet's accuracy: the share of pictures whose class is among the `k` most probable."""
    right = sum(truth in guess[:k] for truth, guess in zip(truths, guesses, strict=True))
    return right / len(truths)


def confusion(expected: NDArray[numpy.integer], got: NDArray[numpy.integer], classes: int, ignored: int = 255) -> Counts:
    """Counts of pixels by expected class (row) and predicted class (column); ignored pixels are left out."""
    counted = expected != ignored
    pairs = expected[counted].astype(numpy.int64) * classes + got[counted]
    return numpy.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


def class_iou(counts: Counts) -> Real:
    """Pascal VOC's intersection over union of each class: true positives / (true positives + false positives + false
    negatives), over all pixels of all pictures. NaN for a class that is nowhere."""
    hit = counts.diagonal().astype(numpy.float64)
    union = counts.sum(axis=0) + counts.sum(axis=1) - hit
    shares: Real = numpy.divide(hit, union, out=numpy.full(len(hit), numpy.nan), where=union > 0)
    return shares


def mean_iou(counts: Counts) -> float:
    """The mean over the classes that are expected or predicted anywhere."""
    return float(numpy.nanmean(class_iou(counts)))


def pixel_accuracy(counts: Counts) -> float:
    return float(counts.diagonal().sum() / counts.sum())


def disparity_errors(expected: Real, got: Real, counted: NDArray[numpy.bool_]) -> list[float]:
    """Counts over the pixels that are `counted` and have an expected value: pixels; those without an answer; the sum of the
    absolute errors of the others; errors of more than 3 pixels; errors of more than 3 pixels and of more than 5 % of the
    expected disparity (D1, KITTI 2015). A pixel without an answer counts as an error of either kind."""
    counted = counted & numpy.isfinite(expected)
    truth, error = expected[counted], numpy.abs(expected - got)[counted]
    missing = ~numpy.isfinite(error)
    far = missing | (error > 3)
    relative = missing | (error > 0.05 * numpy.abs(truth))
    sums = [counted.sum(), missing.sum(), error[~missing].sum(), far.sum(), (far & relative).sum()]
    return [float(one) for one in sums]


def temporal_iou(one: Segment, other: Segment) -> float:
    """Overlap of two segments of time over the time that either covers."""
    common = min(one[1], other[1]) - max(one[0], other[0])
    together = max(one[1], other[1]) - min(one[0], other[0])
    return common / together if common > 0 else 0.0


def detection_ap(
    truth: Mapping[str, Sequence[Segment]],
    ambiguous: Mapping[str, Sequence[Segment]],
    found: Mapping[str, Sequence[tuple[float, float, float]]],
    threshold: float,
) -> float:
    """THUMOS 2014's average precision of one class; `found` has start, end and score by video.

    As in the challenge's evaluation: each true segment, in the order of the annotations, takes the free detection that
    overlaps it most, if by more than the threshold. Detections that are not taken are wrong, except if they overlap an
    ambiguous segment: those do not count. The average precision is the sum of the precision at each right detection, in
    the order of the scores, divided by the number of true segments."""
    positives = sum(len(segments) for segments in truth.values())
    right: list[tuple[float, bool]] = []
    for video, detections in found.items():
        best_first = sorted(detections, key=lambda one: -one[2])
        free = dict(enumerate(best_first))
        for segment in truth.get(video, ()):
            if not free:
                break
            overlap, place = max((temporal_iou(segment, one[:2]), -place) for place, one in free.items())
            if overlap > threshold:
                right.append((free.pop(-place)[2], True))
        for start, end, score in free.values():
            if not any(temporal_iou((start, end), doubtful) > 0 for doubtful in ambiguous.get(video, ())):
                right.append((score, False))
    right.sort(key=lambda one: -one[0])
    hits = itertools.accumulate(int(is_right) for _, is_right in right)
    precisions = [hit / place for place, (hit, (_, is_right)) in enumerate(zip(hits, right), 1) if is_right]
    return sum(precisions) / positives


def without_overlaps(
    found: Sequence[tuple[float, float, float]], threshold: float
) -> list[tuple[float, float, float]]:
    """Non-maximum suppression: drops what overlaps a detection with a higher score by more than the threshold."""
    kept: list[tuple[float, float, float]] = []
    for one in sorted(found, key=lambda one: -one[2]):
        if all(temporal_iou(one[:2], other[:2]) <= threshold for other in kept):
            kept.append(one)
    return kept


def care_normalized(truth: NDArray[numpy.number], got: NDArray[numpy.number]) -> tuple[Real, Real]:
    """CARE's normalisation (Weigert et al. 2018): the truth's percentiles 0.1 and 99.9 become 0 and 1, and the answer is
    scaled and shifted such that its mean squared error is least. The unit of the answer does not matter then."""
    low, high = numpy.percentile(truth, (0.1, 99.9))
    expected = (truth.astype(numpy.float64) - low) / (high - low + 1e-20)
    answer = got.astype(numpy.float64)
    middle, spread = answer.mean(), answer.var()
    covariance = ((answer - middle) * (expected - expected.mean())).mean()
    scale = covariance / spread if spread > 0 else 0.0
    return expected, scale * (answer - middle) + expected.mean()


def nrmse(expected: Real, got: Real) -> float:
    """Root of the mean squared error over the range of the normalised truth, which is 1."""
    return float(numpy.sqrt(((expected - got) ** 2).mean()))


def psnr(expected: Real, got: Real) -> float:
    """In dB, for a range of 1. Infinite if nothing differs."""
    error = float(((expected - got) ** 2).mean())
    return float("inf") if error == 0 else float(-10 * numpy.log10(error))


_SSIM_WINDOW = 11
_SSIM_SIGMA = 1.5


def _blurred(plane: Real) -> Real:
    offsets = numpy.arange(_SSIM_WINDOW) - _SSIM_WINDOW // 2
    weights = numpy.exp(-(offsets**2) / (2 * _SSIM_SIGMA**2))
    weights /= weights.sum()
    height, width = (side - _SSIM_WINDOW + 1 for side in plane.shape)
    rows = sum(weight * plane[at : at + height] for at, weight in enumerate(weights))
    return numpy.asarray(sum(weight * rows[:, at : at + width] for at, weight in enumerate(weights)))


def ssim(expected: Real, got: Real) -> float:
    """Structural similarity (Wang et al. 2004) for a range of 1: a Gaussian window of 11 x 11 with a deviation of 1.5, K1
    0.01, K2 0.03; the mean over all windows that lie within a plane, and over the planes."""
    if min(expected.shape[-2:]) < _SSIM_WINDOW:
        raise ValueError(f"planes of {expected.shape[-2:]} are smaller than the window of {_SSIM_WINDOW}")
    first, second = 0.01**2, 0.03**2
    values = []
    for one, other in zip(expected, got, strict=True):
        mean_one, mean_other = _blurred(one), _blurred(other)
        variance_one = _blurred(one * one) - mean_one**2
        variance_other = _blurred(other * other) - mean_other**2
        covariance = _blurred(one * other) - mean_one * mean_other
        likeness = (2 * mean_one * mean_other + first) * (2 * covariance + second)
        likeness /= (mean_one**2 + mean_other**2 + first) * (variance_one + variance_other + second)
        values.append(likeness.mean())
    return float(numpy.mean(values))

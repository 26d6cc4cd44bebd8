"""Differences between served answers and those of the author's Python."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy
from numpy.typing import NDArray

if TYPE_CHECKING:
    # It needs torch, which the command's help does without.
    from saccade.imports.network import Found

# Detections that overlap less are of different objects.
_SAME_IOU = 0.5


@dataclasses.dataclass(frozen=True)
class Tolerance:
    box: float = 0.5  # pixels
    score: float = 1e-3  # of scores and probabilities, and of an embedding's values relative to the largest
    mask: float = 0.02  # share of a mask's pixels, of those in either mask; _mask_difference tells which count
    pixels: float = 2e-3  # share of a label map's pixels
    depth: float = 1e-3  # of the largest depth


@dataclasses.dataclass
class Differences:
    """The largest ones, over all pictures; NaN if one of them was NaN. None where the task has no such number."""

    box: float | None = None
    score: float | None = None
    mask: float | None = None
    pixels: float | None = None
    depth: float | None = None
    # Detections that only one side has, and that are not at the end of the other side's list.
    unmatched: int = 0
    compared: int = 0

    def add(self, **found: float) -> None:
        for name, value in found.items():
            before = getattr(self, name)
            # Of a number and NaN, max() returns the first.
            setattr(self, name, value if before is None else float(numpy.maximum(before, value)))

    def within(self, tolerance: Tolerance) -> bool:
        """Whether something was compared and nothing differs by more. A difference that is not a number is beyond every tolerance."""
        pairs = [(getattr(self, one.name), getattr(tolerance, one.name)) for one in dataclasses.fields(Tolerance)]
        return self.compared > 0 and self.unmatched == 0 and all(found is None or found <= most for found, most in pairs)


def _iou(box: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    low = numpy.maximum(box[:2], others[:, :2])
    high = numpy.minimum(box[2:], others[:, 2:])
    both = numpy.clip(high - low, 0, None).prod(1)
    area = (box[2] - box[0]) * (box[3] - box[1])
    all_areas = (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
    return both / numpy.maximum(area + all_areas - both, 1e-9)


def _pairs(found: Found, expected: Found) -> dict[int, int]:
    """Pairs each expected detection, best first, with the found one of its class that it overlaps most."""
    pairs: dict[int, int] = {}
    left = set(range(len(found.scores)))
    for i in range(len(expected.scores)):
        of_class = [one for one in left if found.labels[one] == expected.labels[i]]
        if not of_class:
            continue
        overlaps = _iou(expected.boxes[i], found.boxes[of_class])
        # If several detections overlap equally, take the one with the nearest score: a network may find a box twice.
        best = min(
            range(len(of_class)),
            key=lambda k: (-round(float(overlaps[k]), 3), abs(found.scores[of_class[k]] - expected.scores[i])),
        )
        if overlaps[best] >= _SAME_IOU or numpy.abs(found.boxes[of_class[best]] - expected.boxes[i]).max() <= 1:
            pairs[i] = of_class[best]
            left.remove(of_class[best])
    return pairs


def _at_end(one: Found, other: Found, max_detections: int, score_threshold: float, tolerance: Tolerance) -> NDArray[Any]:
    """Tells for each detection of `one` whether a score that is smaller by the tolerance would have kept it out of `other`'s list:
    it is at the threshold, or that list is full and its last scores as much."""
    end = score_threshold
    if len(other.scores) >= max_detections:
        end = max(end, float(other.scores.min()))
    return one.scores <= end + tolerance.score


def _grown(mask: NDArray[Any]) -> NDArray[Any]:
    """The mask with all pixels that touch it, also at a corner."""
    height, width = mask.shape
    around = numpy.pad(mask, 1)
    return numpy.logical_or.reduce([around[y : y + height, x : x + width] for y in range(3) for x in range(3)])


def _mask_difference(found: NDArray[Any], expected: NDArray[Any], fills_its_box: bool) -> float:
    """The share of the pixels in either mask that only one has. A mask that fills its box is scaled to the box's whole pixels, so
    that two boxes which differ by a thousandth of a pixel may give masks of which one is a pixel wider. Of those, pixels do not
    count that touch the other mask."""
    only_found, only_expected = found & ~expected, expected & ~found
    if fills_its_box:
        only_found, only_expected = found & ~_grown(expected), expected & ~_grown(found)
    return float((only_found | only_expected).sum() / max(1, (found | expected).sum()))


def add_detections(
    into: Differences,
    found: Found,
    expected: Found,
    max_detections: int,
    score_threshold: float,
    tolerance: Tolerance,
    masks_fill_boxes: bool = False,
) -> None:
    """Both sides list at most `max_detections`, the best, whose scores are above `score_threshold`."""
    into.add(box=0.0, score=0.0)
    pairs = _pairs(found, expected)
    for i, j in pairs.items():
        into.add(box=float(numpy.abs(found.boxes[j] - expected.boxes[i]).max()))
        into.add(score=float(abs(found.scores[j] - expected.scores[i])))
        if (expected.masks is None) != (found.masks is None):
            into.add(mask=1.0)
        if expected.masks is not None and found.masks is not None:
            into.add(mask=_mask_difference(found.masks[j], expected.masks[i], masks_fill_boxes))
    into.compared += len(pairs)
    for one, other, matched in ((expected, found, set(pairs)), (found, expected, set(pairs.values()))):
        at_end = _at_end(one, other, max_detections, score_threshold, tolerance)
        into.unmatched += sum(1 for i in range(len(one.scores)) if i not in matched and not at_end[i])


def add_probabilities(into: Differences, found: NDArray[Any], expected: NDArray[Any]) -> None:
    into.add(score=float(numpy.abs(found - expected).max()))
    into.compared += 1


def add_label_map(into: Differences, found: NDArray[Any], expected: NDArray[Any]) -> None:
    into.add(pixels=float((found != expected).mean()))
    into.compared += 1


def add_depth(into: Differences, found: NDArray[Any], expected: NDArray[Any]) -> None:
    into.add(depth=float(numpy.abs(found - expected).max() / max(1e-9, float(numpy.abs(expected).max()))))
    into.compared += 1


def add_embedding(into: Differences, found: NDArray[Any], expected: NDArray[Any]) -> None:
    into.add(score=float(numpy.abs(found - expected).max() / max(1e-9, float(numpy.abs(expected).max()))))
    into.compared += 1

"""How far two answers are apart, by the measure of their task: 0 is the same."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable, Iterable, Iterator, Protocol

import numpy
from numpy.typing import NDArray

from saccade import masks
from saccade.replay.answers import Answer
from saccade.replay.tensors import Tensor
from saccade.v1 import vision_pb2 as pb

# The differences that are accepted between daemons that do not compute alike, such as fp32 and bf16.
TOLERANCES = {
    "classification": 0.01, "detections": 0.05, "segmentation": 0.005, "disparity": 0.5, "depth": 0.01, "actions": 0.05,
    "restoration": 0.01, "embedding": 0.001, "tensors": 0.001, "error": 0.0,
}
UNITS = {
    "classification": "of a probability", "detections": "of IoU, score or size", "segmentation": "of the pixels",
    "disparity": "px (mean end-point error)", "depth": "of the range (mean)", "actions": "of IoU or score",
    "restoration": "of the range (mean)", "embedding": "1 - cosine", "tensors": "of the largest value", "error": "",
}


@dataclasses.dataclass(frozen=True)
class Difference:
    kind: str
    # Infinite if the answers cannot be compared, such as an error and a result.
    value: float
    what: str


class _Found(Protocol):
    score: float
    class_index: int


def _apart(a: float, b: float) -> float:
    """The distance of two numbers; infinity if only one of them is finite."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    return abs(a - b) if math.isfinite(a) and math.isfinite(b) else math.inf


def _mean_apart(left: NDArray[Any], right: NDArray[Any]) -> float:
    """The mean distance of the values that are finite; infinity if the others are not the same on both sides."""
    known = numpy.isfinite(left)
    if (known != numpy.isfinite(right)).any() or not numpy.array_equal(left[~known], right[~known], equal_nan=True):
        return math.inf
    return float(numpy.mean(numpy.abs(left[known].astype(float) - right[known].astype(float)))) if known.any() else 0.0


def _spread(values: NDArray[Any]) -> float:
    known = values[numpy.isfinite(values)].astype(float)
    return max(float(known.max() - known.min()), 1e-12) if known.size else 1.0


def _classes(a: pb.Classification, b: pb.Classification) -> tuple[float, str]:
    left = {one.index: one for one in a.classes}
    right = {one.index: one for one in b.classes}
    worst, what = 0.0, ""
    for index in left.keys() | right.keys():
        # A class that only one answer has is below the other's last one, so its own probability bounds the difference.
        one, other = left.get(index), right.get(index)
        value = _apart(one.probability if one else 0.0, other.probability if other else 0.0)
        if value > worst:
            named = one or other
            assert named is not None
            worst, what = value, f"class {named.label or index}: {_shown(one)} became {_shown(other)}"
    return worst, what


def _shown(one: pb.Classification.Class | None) -> str:
    return f"{one.probability:.4f}" if one else "not named"


def _box_overlap(a: pb.Detection, b: pb.Detection) -> float:
    width = min(a.box.x_max, b.box.x_max) - max(a.box.x_min, b.box.x_min)
    height = min(a.box.y_max, b.box.y_max) - max(a.box.y_min, b.box.y_min)
    if width <= 0 or height <= 0:
        return 1.0 if a.box == b.box else 0.0
    both = width * height
    areas = sum((one.box.x_max - one.box.x_min) * (one.box.y_max - one.box.y_min) for one in (a, b))
    return both / (areas - both)


def _time_overlap(a: pb.Actions.Action, b: pb.Actions.Action) -> float:
    both = min(a.end_seconds, b.end_seconds) - max(a.start_seconds, b.start_seconds)
    if both <= 0:
        return 1.0 if (a.start_seconds, a.end_seconds) == (b.start_seconds, b.end_seconds) else 0.0
    return both / (a.end_seconds - a.start_seconds + b.end_seconds - b.start_seconds - both)


def _mask_apart(a: pb.Detection, b: pb.Detection) -> float:
    """1 - IoU of masks as run lengths; infinity for those of another form that differ, because they are not decoded."""
    form = a.WhichOneof("outline")
    if form != b.WhichOneof("outline"):
        return math.inf
    if form is None or getattr(a, form) == getattr(b, form):
        return 0.0
    if form != "mask" or (a.mask.width, a.mask.height) != (b.mask.width, b.mask.height):
        return math.inf
    try:
        left, right = (masks.decode(one.mask.counts, one.mask.height, one.mask.width) for one in (a, b))
    except ValueError:
        return math.inf
    either = numpy.count_nonzero(left | right)
    return 1 - numpy.count_nonzero(left & right) / either if either else 0.0


def _region_overlap(a: pb.Region, b: pb.Region) -> float:
    boxes = (pb.Detection.Box(x_min=one.x, y_min=one.y, x_max=one.x + one.width, y_max=one.y + one.height) for one in (a, b))
    return _box_overlap(*(pb.Detection(box=box) for box in boxes))


def _crop_apart(a: pb.Crop, b: pb.Crop) -> float:
    """Measured by the crop's own task, and scaled so that its tolerance becomes that of detections."""
    if a == b:
        return 0.0
    kind = a.WhichOneof("result")
    if (a.model, kind) != (b.model, b.WhichOneof("result")):
        return math.inf
    # The text of an error is not compared.
    value = 0.0 if kind in (None, "error") else _RESULTS[kind](getattr(a, kind), getattr(b, kind))[0]
    scale = TOLERANCES["detections"] / TOLERANCES.get(kind, 1.0)
    return max(value * scale, 1 - _region_overlap(a.region, b.region))


def _parts_of_detection(a: pb.Detection, b: pb.Detection) -> Iterator[tuple[float, str]]:
    """How far everything but box and score is apart."""
    apart = _mask_apart(a, b)
    yield apart, f"mask with IoU {1 - apart:.4f}" if math.isfinite(apart) else "another mask"
    if len(a.keypoints) != len(b.keypoints) or len(a.crops) != len(b.crops):
        yield math.inf, "other numbers of keypoints or crops"
        return
    # As for boxes, a distance counts by the size of the object.
    size = max(a.box.x_max - a.box.x_min, a.box.y_max - a.box.y_min, 1.0)
    for number, (one, other) in enumerate(zip(a.keypoints, b.keypoints)):
        far = math.hypot(_apart(one.x, other.x), _apart(one.y, other.y))
        yield far / size, f"keypoint {number} is {far:.2f} px apart"
        yield _apart(one.score, other.score), f"keypoint {number}: score {one.score:.4f} became {other.score:.4f}"
    for crop, now in zip(a.crops, b.crops):
        yield _crop_apart(crop, now), f"the crop for {crop.model} differs"


def _no_parts(_: Any, __: Any) -> Iterator[tuple[float, str]]:
    return iter(())


def _found(  # type: ignore[no-untyped-def]
    left: Iterable, right: Iterable, overlap, parts: Callable[[Any, Any], Iterator[tuple[float, str]]] = _no_parts
) -> tuple[float, str]:
    """Best score first, each is matched with the one of its class that overlaps it most; one without a match counts as
    its score. `parts` gives what else of two matched ones is compared."""
    rest, worst, what = list(right), 0.0, ""

    def note(value: float, text: str) -> None:
        nonlocal worst, what
        value = math.inf if math.isnan(value) else value
        if value > worst:
            worst, what = value, text

    for one in left:
        name = one.label or f"class {one.class_index}"
        same = [other for other in rest if other.class_index == one.class_index]
        best = max(same, key=lambda other: overlap(one, other), default=None)
        if best is None or overlap(one, best) < 0.5:
            note(one.score, f"{name} with score {one.score:.4f} has gone")
            continue
        rest.remove(best)
        note(1 - overlap(one, best), f"{name}: IoU {overlap(one, best):.4f}")
        note(_apart(one.score, best.score), f"{name}: score {one.score:.4f} became {best.score:.4f}")
        for value, text in parts(one, best):
            note(value, f"{name}: {text}")
    for other in rest:
        note(other.score, f"{other.label or f'class {other.class_index}'} with score {other.score:.4f} is new")
    return worst, what


def _segmentation(a: pb.Segmentation, b: pb.Segmentation) -> tuple[float, str]:
    if (a.width, a.height, a.format) != (b.width, b.height, b.format):
        return math.inf, "maps of other sizes"
    if a.format == pb.SegmentationOptions.RAW:
        left, right = (numpy.frombuffer(one.label_map, numpy.uint8) for one in (a, b))
        value = float(numpy.mean(left != right)) if left.size else 0.0
        return value, f"{value:.3%} of the pixels have another class"
    areas = [{one.class_index: one.fraction for one in side.areas} for side in (a, b)]
    value = sum(abs(areas[0].get(key, 0) - areas[1].get(key, 0)) for key in areas[0].keys() | areas[1].keys()) / 2
    return max(value, 1e-9), f"at least {value:.3%} of the pixels have another class (by the areas)"


def _map(a: pb.Disparity, b: pb.Disparity) -> tuple[float, float, str]:
    """Returns the difference in the values' unit, the spread of the captured values, and of what it is."""
    if (a.width, a.height, a.format) != (b.width, b.height, b.format):
        return math.inf, 1.0, "maps of other sizes"
    if len(a.map) == len(b.map) == 4 * a.width * a.height:
        left, right = (numpy.frombuffer(one.map, "<f4") for one in (a, b))
        value = _mean_apart(left, right)
        return value, _spread(left), "on average" if math.isfinite(value) else "values that only one map has"
    return _apart(a.mean, b.mean), _spread(numpy.array([a.min, a.max])), "between the means (the maps are pictures)"


def _disparity(a: pb.Disparity, b: pb.Disparity) -> tuple[float, str]:
    value, _, what = _map(a, b)
    return max(value, 1e-9), f"{value:.4f} px {what}" if math.isfinite(value) else what


def _depth(a: pb.Disparity, b: pb.Disparity) -> tuple[float, str]:
    """As a share of the captured range, because each model has a unit of its own."""
    value, spread, what = _map(a, b)
    return max(value / spread, 1e-9), f"{value / spread:.5f} of the range {what}" if math.isfinite(value) else what


def _restoration(a: pb.Restoration, b: pb.Restoration) -> tuple[float, str]:
    if a.shape != b.shape:
        return math.inf, "volumes of other shapes"
    kind = {pb.VolumeShape.UINT8: "u1", pb.VolumeShape.UINT16: "<u2"}.get(a.shape.type, "<f4")
    left, right = (numpy.frombuffer(one.voxels, kind) for one in (a, b))
    value = _mean_apart(left, right) / _spread(left)
    return max(value, 1e-9), f"{value:.5f} of the range on average"


def _embedding(a: pb.Embedding, b: pb.Embedding) -> tuple[float, str]:
    left, right = (numpy.array(one.values, float) for one in (a, b))
    if left.size != right.size:
        return math.inf, "vectors of other lengths"
    lengths = float(numpy.linalg.norm(left) * numpy.linalg.norm(right))
    value = 1 - float(left @ right) / lengths if lengths > 0 else math.inf
    return max(value, 1e-9), f"cosine {1 - value:.6f}"


_RESULTS: dict[str, Callable[[Any, Any], tuple[float, str]]] = {
    "classification": _classes, "segmentation": _segmentation, "disparity": _disparity, "depth": _depth,
    "restoration": _restoration, "embedding": _embedding,
    "detections": lambda a, b: _found(a.detections, b.detections, _box_overlap, _parts_of_detection),
    "actions": lambda a, b: _found(a.actions, b.actions, _time_overlap),
}


def _tensor(a: Tensor, b: Tensor) -> tuple[float, str]:
    if (a.datatype, a.shape) != (b.datatype, b.shape):
        return math.inf, f"{a.name}: {a.datatype} {list(a.shape)} became {b.datatype} {list(b.shape)}"
    if a.data == b.data:
        return 0.0, ""
    left, right = a.values(), b.values()
    if left is None or right is None or left.dtype.kind == "b":
        return math.inf, f"{a.name}: other values"
    left, right = left.astype(float), right.astype(float)
    far = numpy.abs(left - right)
    if not numpy.isfinite(far).all():
        return math.inf, f"{a.name}: values that are not finite"
    value = float(far.max()) / max(float(numpy.abs(left).max()), 1e-12)
    return max(value, 1e-9), f"{a.name}: {far.max():.6g} at most"


def _tensors(left: tuple[Tensor, ...], right: tuple[Tensor, ...]) -> tuple[float, str]:
    if [one.name for one in left] != [one.name for one in right]:
        return math.inf, f"outputs {[one.name for one in left]} became {[one.name for one in right]}"
    return max((_tensor(a, b) for a, b in zip(left, right)), key=lambda one: one[0], default=(0.0, ""))


def kind_of(answer: Answer) -> str:
    if answer.status != "OK":
        return "error"
    if answer.result is None:
        return "tensors"
    # The answer to a single picture is its depth.
    return "depth" if answer.is_depth else answer.result.WhichOneof("result") or "tensors"


def is_equal(captured: Answer, now: Answer) -> bool:
    """Bit for bit. Of errors only the status is compared."""
    if captured.status != now.status or captured.status != "OK":
        return captured.status == now.status
    if captured.result is not None and now.result is not None:
        return captured.result.SerializeToString(deterministic=True) == now.result.SerializeToString(deterministic=True)
    return captured.result is None and now.result is None and captured.tensors == now.tensors


def difference(captured: Answer, now: Answer) -> Difference:
    """REQUIRES: they are not equal. The value is above 0 all the same where the measure does not see why."""
    kind = kind_of(captured)
    if captured.status != now.status:
        return Difference("error", math.inf, f"{captured.status} became {now.status}: {now.message or captured.message}")
    if kind != kind_of(now):
        return Difference(kind, math.inf, f"{kind} became {kind_of(now)}")
    if captured.result is not None and now.result is not None and kind in _RESULTS:
        field = captured.result.WhichOneof("result")
        value, what = _RESULTS[kind](getattr(captured.result, field), getattr(now.result, field))
    else:
        value, what = _tensors(captured.tensors, now.tensors)
    if value == 0:
        return Difference(kind, 1e-9, "less than the task's measure sees, but not bit for bit the same")
    return Difference(kind, value, what)

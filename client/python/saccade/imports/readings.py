"""How transformers reads what a network returns, as a head of saccade.json says it."""

from __future__ import annotations

import types
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from saccade.imports.failures import ImportFailure

SCORE_THRESHOLD = 0.05
# The outputs on which a head is compared with its processor. Some processors want a hundred pairs of a query and a class.
_TRIAL_QUERIES, _TRIAL_CLASSES = 20, 8
_TRIAL_SIZE = (480, 640)
# The size of a map of depths, which the processor scales to _TRIAL_SIZE.
_TRIAL_MAP = (30, 40)
# By which transformers scaled depths before its processors did.
_OLD_FILTER = "bicubic"
# Largest differences, of scores and of boxes in pixels, that are taken for rounding.
_SCORE_TOLERANCE, _BOX_TOLERANCE = 1e-4, 0.1
# The largest max_detections that the daemon takes.
_MAX_DETECTIONS = 10_000


def classes(config: Any, source: str) -> dict[str, Any]:
    """Returns the head of a classifier, with the activation that the library's own pipeline takes."""
    problem = getattr(config, "problem_type", None)
    if problem == "regression":
        raise ImportFailure(
            f"{source}: problem_type is 'regression', whose outputs are no classes; serve the network as a program that takes tensors"
        )
    # The softmax of a single class is always 1.
    independent = problem == "multi_label_classification" or config.num_labels == 1
    return {"kind": "classes", "activation": "sigmoid" if independent else "softmax"}


def _best(logits: Tensor, boxes: Tensor, activation: str) -> dict[str, Tensor]:
    """What the daemon finds in the sets of one picture of _TRIAL_SIZE, best first, at most one for each query."""
    if activation == "sigmoid":
        scores, pairs = logits.sigmoid().flatten().topk(len(logits))
        queries, labels = pairs // logits.shape[1], pairs % logits.shape[1]
    else:
        # The last class stands for no object.
        scores, labels = logits.softmax(1)[:, :-1].max(1)
        scores, queries = scores.sort(descending=True)
        labels = labels[queries]
    height, width = _TRIAL_SIZE
    centre, half = boxes[queries, :2], boxes[queries, 2:] / 2
    corners = torch.cat([centre - half, centre + half], 1) * torch.tensor([width, height, width, height])
    return {"scores": scores, "labels": labels, "boxes": corners}


def _alike(theirs: dict[str, Tensor], ours: dict[str, Tensor]) -> bool:
    count = len(ours["scores"])
    order = theirs["scores"].argsort(descending=True)[:count]
    if len(order) < count or not torch.equal(theirs["labels"][order], ours["labels"]):
        return False
    far = {name: float((theirs[name][order] - ours[name]).abs().max()) for name in ("scores", "boxes")}
    return far["scores"] <= _SCORE_TOLERANCE and far["boxes"] <= _BOX_TOLERANCE


def _trial(queries: int, classes: int) -> Any:
    """Returns random outputs of a detector for one picture."""
    chance = torch.Generator().manual_seed(1)
    logits = 2 * torch.randn(1, queries, classes, generator=chance)
    return types.SimpleNamespace(logits=logits, pred_boxes=0.25 + 0.5 * torch.rand(1, queries, 4, generator=chance))


def sets(processor: Any, queries: int, classes: int, source: str) -> dict[str, Any]:
    """Returns the head of a detector whose logits are [queries, classes] for each picture. Tries what the processor makes of outputs,
    because its code alone says whether its scores are sigmoids or a softmax, and how many detections it lists."""
    name = type(processor).__name__
    advice = "write a saccade.json and import the network's file with --description"
    if not hasattr(processor, "post_process_object_detection"):
        raise ImportFailure(f"{source}: {name} has no post_process_object_detection, so it does not tell what its scores are; {advice}")

    def read(outputs: Any) -> Any:
        return processor.post_process_object_detection(outputs, threshold=0.0, target_sizes=[_TRIAL_SIZE])[0]

    outputs = _trial(_TRIAL_QUERIES, _TRIAL_CLASSES)
    try:
        theirs = read(outputs)
        listed = len(read(_trial(queries, classes))["scores"])
    except (AttributeError, TypeError) as error:
        raise ImportFailure(f"{source}: {name} does not read logits and boxes alone ({error}); {advice}") from None
    for activation in ("softmax", "sigmoid"):
        if _alike(theirs, _best(outputs.logits[0], outputs.pred_boxes[0], activation)):
            most = min(listed, _MAX_DETECTIONS)
            return {"kind": "sets", "activation": activation, "score_threshold": SCORE_THRESHOLD, "max_detections": most}
    raise ImportFailure(
        f"{source}: {name} reads boxes and scores otherwise than a softmax with a last class for none, or sigmoids, would; {advice}"
    )


def resized(depth: Tensor, size: tuple[int, int], filter: str) -> Tensor:
    """Returns a map [h, w] as the daemon scales it to a picture, apart from its limit of 0."""
    return functional.interpolate(depth[None, None], size, mode=filter, align_corners=False)[0, 0]


def depth(processor: Any, source: str) -> dict[str, Any]:
    """Returns the head of a network that estimates depths, with the filter by which its processor scales them to the picture. Raises
    ImportFailure if the processor turns the network's numbers into others, as DepthPro's does, whose network gives inverse depths: the
    daemon answers with the network's numbers."""
    if not hasattr(processor, "post_process_depth_estimation"):
        return {"kind": "depth", "filter": _OLD_FILTER}
    name = type(processor).__name__
    advice = "export the network with what the processor does behind it, and import that file with --description"

    def read(predicted: Tensor) -> Tensor:
        outputs = types.SimpleNamespace(predicted_depth=predicted[None], field_of_view=None)
        try:
            found: Tensor = processor.post_process_depth_estimation(outputs, target_sizes=[_TRIAL_SIZE])[0]["predicted_depth"]
        except (AttributeError, TypeError, ValueError) as error:
            raise ImportFailure(f"{source}: {name} does not read depths alone ({error}); {advice}") from None
        return found

    # All numbers are the same, so that scaling the map changes nothing; 1 would be its own inverse.
    predicted = torch.full(_TRIAL_SIZE, 2.0)
    theirs = read(predicted)
    if theirs.shape != predicted.shape or not torch.allclose(theirs, predicted, rtol=1e-4):
        raise ImportFailure(f"{source}: {name} turns the network's number 2 into {float(theirs.flatten()[0]):g}; {advice}")
    predicted = 1 + torch.rand(_TRIAL_MAP, generator=torch.Generator().manual_seed(1))
    theirs = read(predicted)
    for filter in ("bilinear", "bicubic"):
        if torch.allclose(theirs, resized(predicted, _TRIAL_SIZE, filter), rtol=1e-4):
            return {"kind": "depth", "filter": filter}
    raise ImportFailure(f"{source}: {name} scales depths otherwise than a bilinear or a bicubic filter would; {advice}")

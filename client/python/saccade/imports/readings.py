"""How transformers reads what a network returns, as a head of saccade.json says it."""

from __future__ import annotations

import types
from typing import Any

import torch
from torch import Tensor

from saccade.imports.failures import ImportFailure

SCORE_THRESHOLD = 0.05
# The outputs on which a head is compared with its processor. Some processors want a hundred pairs of a query and a class.
_TRIAL_QUERIES, _TRIAL_CLASSES = 20, 8
_TRIAL_SIZE = (480, 640)
# Largest differences, of scores and of boxes in pixels, that are taken for rounding.
_SCORE_TOLERANCE, _BOX_TOLERANCE = 1e-4, 0.1


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


def sets(processor: Any, source: str) -> dict[str, Any]:
    """Returns the head of a detector with a set of queries. Tries what the processor makes of outputs, because whether its scores are
    sigmoids or a softmax stands in its code alone."""
    name = type(processor).__name__
    advice = "write a saccade.json and import the network's file with --description"
    if not hasattr(processor, "post_process_object_detection"):
        raise ImportFailure(f"{source}: {name} has no post_process_object_detection, so it does not tell what its scores are; {advice}")
    chance = torch.Generator().manual_seed(1)
    logits = 2 * torch.randn(_TRIAL_QUERIES, _TRIAL_CLASSES, generator=chance)
    boxes = 0.25 + 0.5 * torch.rand(_TRIAL_QUERIES, 4, generator=chance)
    outputs = types.SimpleNamespace(logits=logits[None], pred_boxes=boxes[None])
    try:
        theirs = processor.post_process_object_detection(outputs, threshold=0.0, target_sizes=[_TRIAL_SIZE])[0]
    except (AttributeError, TypeError) as error:
        raise ImportFailure(f"{source}: {name} does not read logits and boxes alone ({error}); {advice}") from None
    for activation in ("softmax", "sigmoid"):
        if _alike(theirs, _best(logits, boxes, activation)):
            return {"kind": "sets", "activation": activation, "score_threshold": SCORE_THRESHOLD}
    raise ImportFailure(
        f"{source}: {name} reads boxes and scores otherwise than a softmax with a last class for none, or sigmoids, would; {advice}"
    )

"""Networks of torchvision by their names: classifiers, semantic segmenters and detectors."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torchvision.models import get_model, get_model_weights, list_models
from torchvision.models import detection, segmentation

from saccade.imports import programs, random_weights
from saccade.imports.failures import ImportFailure
from saccade.imports.network import Author, Found, Network

# Masks are compared where a pixel's probability is at least this, the daemon's default.
_MASK_THRESHOLD = 0.5


def names() -> list[str]:
    """Returns the names that this module imports."""
    segmenters = list_models(module=segmentation)
    detectors = [one for one in list_models(module=detection) if not one.startswith("keypointrcnn")]
    import torchvision.models

    classifiers = [one for one in list_models(module=torchvision.models) if not one.startswith("quantized_")]
    return classifiers + segmenters + detectors


class Classifier(Author):
    def __init__(self, network: nn.Module, transforms: Any) -> None:
        self.network, self.transforms = network, transforms

    def __call__(self, picture: Tensor) -> Any:
        prepared = self.transforms(picture)
        mean, std = (torch.tensor(one)[:, None, None] for one in (self.transforms.mean, self.transforms.std))
        # As with 8-bit pictures: a bicubic filter overshoots.
        prepared = prepared.clamp((0 - mean) / std, (1 - mean) / std)
        return self.network(prepared[None])[0].softmax(0).numpy()


class Segmenter(Author):
    def __init__(self, network: nn.Module, transforms: Any) -> None:
        self.network, self.transforms = network, transforms

    def __call__(self, picture: Tensor) -> Any:
        scores = self.network(self.transforms(picture)[None])["out"]
        return nn.functional.interpolate(scores, picture.shape[1:], mode="bilinear")[0].argmax(0).numpy()


class DetectorsAuthor(Author):
    def __init__(self, network: nn.Module) -> None:
        self.network = network

    def __call__(self, picture: Tensor) -> Found:
        found = self.network([picture])[0]
        masks = found["masks"][:, 0] >= _MASK_THRESHOLD if "masks" in found else None
        return Found(
            found["boxes"].numpy(), found["scores"].numpy(), found["labels"].numpy(),
            None if masks is None else masks.numpy(),
        )


def _filter(interpolation: Any, name: str) -> str:
    if interpolation.value not in ("bilinear", "bicubic"):
        raise ImportFailure(f"torchvision:{name} resizes by {interpolation.value}; expected bilinear or bicubic")
    return str(interpolation.value)


def _numbers(values: Any) -> list[float]:
    return [float(value) for value in values]


def _classifier(name: str, network: nn.Module, weights: Any) -> Network:
    transforms = weights.transforms()
    description = {
        "input": {
            "resize": "shorter", "size": transforms.resize_size[0], "crop": transforms.crop_size[0],
            "filter": _filter(transforms.interpolation, name), "mean": _numbers(transforms.mean),
            "std": _numbers(transforms.std),
        },
        "head": {"kind": "classes"},
    }
    side = transforms.crop_size[0]
    example = (random_weights.normalised(2, side, side, seed=1),)
    return Network(
        f"torchvision:{name}", programs.Classes(network), description, list(weights.meta["categories"]),
        Classifier(network, transforms), example,
    )


def _segmenter(name: str, network: nn.Module, weights: Any) -> Network:
    transforms = weights.transforms()
    description = {
        "input": {
            "resize": "shorter", "size": transforms.resize_size[0], "filter": _filter(transforms.interpolation, name),
            "mean": _numbers(transforms.mean), "std": _numbers(transforms.std),
        },
        "head": {"kind": "semantic"},
    }
    example = (random_weights.normalised(2, 256, 352, seed=1),)
    return Network(
        f"torchvision:{name}", programs.Scores(network), description, list(weights.meta["categories"]),
        Segmenter(network, transforms), example,
    )


def _of_detector(network: nn.Module, name: str) -> float:
    """Returns a setting of the last step, which some detectors have in their heads."""
    for holder in (network, getattr(network, "roi_heads", None)):
        if hasattr(holder, name):
            return float(getattr(holder, name))
    raise ImportFailure(f"{type(network).__name__} does not tell its {name}; expected a detector with detections_per_img and score_thresh")


def _prepares(transform: Any) -> dict[str, Any]:
    """Returns what a detector's transform does, as saccade.json says it."""
    taken: dict[str, Any] = {"antialias": False}
    if transform.fixed_size is not None:
        width, height = transform.fixed_size
        taken |= {"resize": "exact", "size": [height, width]}
    else:
        taken |= {"resize": "shorter", "size": transform.min_size[-1], "max_size": transform.max_size, "rounding": "both",
                  "buckets": f"stride:{transform.size_divisible}"}
    return taken | {"mean": _numbers(transform.image_mean), "std": _numbers(transform.image_std), "mask": "pixel_mask"}


def _detector(name: str, network: nn.Module, weights: Any) -> Network:
    transform: Any = network.transform
    rows = int(_of_detector(network, "detections_per_img"))
    served = copy.deepcopy(network)
    served.transform = programs.Prepared(int(transform.size_divisible))
    # The scripted network would write to it with the first picture.
    served._has_warned = True
    masks = getattr(network.roi_heads, "mask_head", None) is not None if hasattr(network, "roi_heads") else False
    program = programs.MaskDetector(served, rows) if masks else programs.Detector(served, rows)
    roles = ["boxes", "scores", "labels", *(["masks"] if masks else [])]
    description = {
        "input": _prepares(transform),
        # The network omits the scores below its threshold itself; verify has to know where the list ends.
        "head": {"kind": "boxes", "score_threshold": _of_detector(network, "score_thresh"), "max_detections": rows},
        "outputs": {role: role for role in roles},
        "max_batch_size": 4,
    }
    if transform.fixed_size is not None:
        width, height = transform.fixed_size
    else:
        stride = int(transform.size_divisible)
        height, width = (side // stride * stride for side in (transform.min_size[-1], transform.min_size[-1] * 5 // 4))
    example = (random_weights.normalised(2, height, width, seed=1), torch.ones(2, height, width, dtype=torch.int64))
    return Network(
        f"torchvision:{name}", program, description, list(weights.meta["categories"]), DetectorsAuthor(network), example,
    )


def _make_random(network: nn.Module, kind: str, seed: int) -> None:
    """Replaces the initial weights by random ones whose answers differ from picture to picture."""
    network.eval()
    if kind == "detector":
        # Detectors take a list of pictures.
        seen: Any = list(random_weights.pictures(4, 256, 320, seed))
    else:
        seen = random_weights.normalised(4, 224, 224, seed)
    random_weights.settle(network, seen)
    random_weights.spread(network, seen)


def build(name: str, weights_name: str | None, seed: int | None) -> Network:
    """Builds a network with the weights of that name (DEFAULT and others of torchvision's), or with random ones."""
    known = names()
    if name not in known:
        alike = [one for one in known if one.startswith(name[:4])] or known
        raise ImportFailure(f"torchvision has no network '{name}' that can be imported; there are {', '.join(alike)}")
    all_weights = get_model_weights(name)
    try:
        weights = all_weights["DEFAULT" if weights_name is None else weights_name]
    except KeyError:
        found = ", ".join(one.name for one in all_weights)
        raise ImportFailure(f"torchvision:{name} has no weights '{weights_name}'; there are {found} and DEFAULT") from None
    make = _classifier
    kind = "classifier"
    if name in list_models(module=detection):
        make, kind = _detector, "detector"
    elif name in list_models(module=segmentation):
        make, kind = _segmenter, "segmenter"
    options: dict[str, Any] = {} if kind == "classifier" else {"weights_backbone": None}
    if seed is not None:
        torch.manual_seed(seed)
        options["num_classes"] = len(weights.meta["categories"])
        network = get_model(name, weights=None, **options)
        _make_random(network, kind, seed)
    else:
        network = get_model(name, weights=weights)
    made = make(name, network.eval(), weights)
    made.notes.append(f"random weights from seed {seed}" if seed is not None else f"torchvision's weights {weights.name}")
    return made

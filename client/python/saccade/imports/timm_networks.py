"""Networks of timm by their names: classifiers, and networks without classes, whose features are embeddings."""

from __future__ import annotations

import math
from typing import Any

import timm
import torch
from timm.data import create_transform, resolve_model_data_config
from torch import Tensor, nn

from saccade.imports import programs, random_weights
from saccade.imports.failures import ImportFailure
from saccade.imports.network import Author, Network


# Parts of the names of CLIP's networks and of the Perception Encoder's.
_EMBEDDING = ("clip", "vit_pe_core")


class Whole(Author):
    """timm's transform, and the network."""

    def __init__(self, network: nn.Module, transform: Any, head: dict[str, Any]) -> None:
        self.network, self.transform, self.head = network, transform, head

    def __call__(self, picture: Tensor) -> Any:
        for step in self.transform.transforms:
            picture = step(picture)
            if type(step).__name__ == "Resize":
                # As with 8-bit pictures: a bicubic filter overshoots.
                picture = picture.clamp(0, 1)
        found = self.network(picture[None])[0]
        if self.head["kind"] == "classes":
            found = found.sigmoid() if self.head["activation"] == "sigmoid" else found.softmax(0)
        return found.numpy()


def _prepares(name: str, config: dict[str, Any]) -> dict[str, Any]:
    """Returns what timm's transform does, as saccade.json says it."""
    _, height, width = config["input_size"]
    if config["interpolation"] not in ("bilinear", "bicubic"):
        raise ImportFailure(f"timm:{name} resizes by {config['interpolation']}; expected bilinear or bicubic")
    taken: dict[str, Any] = {
        "filter": config["interpolation"], "mean": [float(one) for one in config["mean"]],
        "std": [float(one) for one in config["std"]],
    }
    mode, kept = config.get("crop_mode", "center"), config["crop_pct"]
    if mode == "squash" and kept == 1:
        return {"resize": "exact", "size": [height, width]} | taken
    if mode != "center" or height != width:
        raise ImportFailure(
            f"timm:{name} prepares pictures with crop_mode {mode}, crop_pct {kept} and {height} x {width} pixels; expected "
            "crop_mode center and a square, or squash without a crop"
        )
    return {"resize": "shorter", "size": math.floor(height / kept), "crop": height} | taken


def _is_named_embedding(architecture: str, tag: str) -> bool:
    """Whether the names that timm gives are those of an embedding. `ft_in` stands in the tags of networks that were trained further
    for the classes of ImageNet or iNaturalist."""
    return any(part in f"{architecture}.{tag}" for part in _EMBEDDING) and "ft_in" not in tag


def _classes(network: Any) -> int:
    """Returns the number of classes; 0 if the outputs are features."""
    config = network.pretrained_cfg
    architecture = config.get("architecture") or ""
    # A network that was trained further may keep the tag of the one that it comes from, so its name does not suffice: the number of its
    # outputs has to be the length of an embedding that timm has for this architecture.
    if config.get("label_names") is None and _is_named_embedding(architecture, config.get("tag") or ""):
        alike = [timm.get_pretrained_cfg(name) for name in timm.list_pretrained(f"{architecture}.*")]
        if network.num_classes in {one.num_classes for one in alike if _is_named_embedding(architecture, one.tag or "")}:
            return 0
    return int(network.num_classes)


def _head(classes: int) -> dict[str, Any]:
    if classes == 0:
        return {"kind": "embedding"}
    # The softmax of a single class is always 1.
    return {"kind": "classes", "activation": "sigmoid" if classes == 1 else "softmax"}


def _labels(network: Any, classes: int) -> list[str]:
    names = network.pretrained_cfg.get("label_names")
    if names is None and classes in (1000, 11821, 21841):
        from timm.data import ImageNetInfo, infer_imagenet_subset

        subset = infer_imagenet_subset(network)
        if subset is not None:
            info = ImageNetInfo(subset)
            names = [info.index_to_description(index) for index in range(info.num_classes())]
    return list(names) if names is not None and len(names) == classes else [f"class {index}" for index in range(classes)]


def build(name: str, weights_name: str | None, seed: int | None) -> Network:
    """Builds a network with timm's weights (NAME.TAG), or with random ones."""
    if weights_name is not None:
        raise ImportFailure("--weights is for torchvision; name timm's weights in the source, as in timm:resnet50.a1_in1k")
    if not timm.is_model(name.partition(".")[0]):
        alike = timm.list_models(f"{name[:4]}*") or timm.list_models()
        raise ImportFailure(f"timm has no network '{name}'; there are {', '.join(alike[:40])}")
    if seed is not None:
        torch.manual_seed(seed)
    network: Any = timm.create_model(name, pretrained=seed is None).eval()
    config = resolve_model_data_config(network)
    classes = _classes(network)
    description = {"input": _prepares(name, config), "head": _head(classes)}
    _, height, width = config["input_size"]
    if seed is not None:
        seen = random_weights.normalised(4, height, width, seed)
        random_weights.settle(network, seen)
        random_weights.spread(network, seen)
    example = (random_weights.normalised(2, height, width, seed=1),)
    with torch.inference_mode():
        shape = list(network(example[0][:1]).shape[1:])
    if len(shape) != 1:
        raise ImportFailure(f"timm:{name} returns {shape} for each picture; expected one list of scores or features")
    made = Network(
        f"timm:{name}", programs.Classes(network), description, _labels(network, classes) if classes else [],
        Whole(network, create_transform(**config, is_training=False), description["head"]), example,
    )
    made.notes.append(f"taken for a classifier, of {classes} classes" if classes else f"taken for an embedding, of {shape[0]} numbers")
    made.notes.append(f"random weights from seed {seed}" if seed is not None else "timm's weights")
    return made

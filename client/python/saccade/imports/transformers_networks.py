"""Networks of transformers from a folder with config.json, preprocessor_config.json and weights."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from saccade.imports import random_weights
from saccade.imports.failures import ImportFailure
from saccade.imports.network import Author, Found, Network

# By the architecture's ending: the class that loads it, the head's kind, and its outputs by role.
_KINDS: dict[str, tuple[str, str, dict[str, str]]] = {
    "ForImageClassification": ("AutoModelForImageClassification", "classes", {"logits": "logits"}),
    "ForObjectDetection": ("AutoModelForObjectDetection", "sets", {"logits": "logits", "boxes": "pred_boxes"}),
    "ForSemanticSegmentation": ("AutoModelForSemanticSegmentation", "semantic", {"logits": "logits"}),
    "ForDepthEstimation": ("AutoModelForDepthEstimation", "depth", {"depth": "predicted_depth"}),
    "Model": ("AutoModel", "embedding", {"embedding": "pooler_output"}),
}
_FILTERS = {2: "bilinear", 3: "bicubic"}
# Detectors whose scores are sigmoids, without a class for no object.
_SIGMOID = ("Deformable", "ConditionalDetr", "RTDetr", "RtDetr", "DFine", "DabDetr")
_SCORE_THRESHOLD = 0.05


class Outputs(nn.Module):
    """The outputs that the head reads, in order."""

    def __init__(self, network: nn.Module, names: list[str]) -> None:
        super().__init__()
        self.network, self.names = network, names

    def forward(self, pixel_values: Tensor) -> Any:
        outputs = self.network(pixel_values=pixel_values)
        found = tuple(outputs[name] for name in self.names)
        return found[0] if len(found) == 1 else found


class OneByOne(Author):
    """The processor and the network, and the processor's own reading of what the network returns."""

    def __init__(self, network: nn.Module, processor: Any, kind: str, sigmoid: bool) -> None:
        self.network, self.processor, self.kind, self.sigmoid = network, processor, kind, sigmoid

    def __call__(self, picture: Tensor) -> Any:
        size = tuple(picture.shape[1:])
        # As floating-point numbers, which the processor does not round after it has scaled the picture.
        inputs = self.processor(images=picture * 255, return_tensors="pt")
        outputs: Any = self.network(pixel_values=inputs["pixel_values"])
        if self.kind == "classes":
            return outputs.logits[0].softmax(0).numpy()
        if self.kind == "sets":
            found = self.processor.post_process_object_detection(outputs, _SCORE_THRESHOLD, target_sizes=[size])[0]
            height, width = size
            boxes = found["boxes"].clamp(min=0).minimum(torch.tensor([width, height, width, height]))
            order = found["scores"].argsort(descending=True)[:100]
            return Found(boxes[order].numpy(), found["scores"][order].numpy(), found["labels"][order].numpy())
        if self.kind == "semantic":
            return self.processor.post_process_semantic_segmentation(outputs, target_sizes=[size])[0].numpy()
        if self.kind == "depth":
            depth = nn.functional.interpolate(outputs.predicted_depth[None], size, mode="bilinear")
            return depth[0, 0].clamp(min=0).numpy()
        return outputs.pooler_output[0].flatten().numpy()


def _size(size: Any) -> dict[str, int]:
    return {name: int(size[name]) for name in ("height", "width", "shortest_edge", "longest_edge") if size.get(name)}


def _prepares(processor: Any) -> tuple[dict[str, Any], tuple[int, int]]:
    """Returns what the processor does, as saccade.json says it, and the size of an example."""
    if not processor.do_resize:
        raise ImportFailure("the processor's do_resize is false; expected one that resizes pictures")
    size = _size(processor.size)
    taken: dict[str, Any] = {}
    example = (256, 320)
    if getattr(processor, "do_center_crop", None):
        crop = _size(processor.crop_size)
        side = size.get("shortest_edge", size.get("height"))
        if side is None or crop["height"] != crop["width"] or ("height" in size and size["height"] != size["width"]):
            raise ImportFailure(f"the processor resizes to {size} and crops {crop}; expected a shortest edge and a square")
        taken = {"resize": "shorter", "size": side, "crop": crop["height"]}
        if "height" in size:
            if side != crop["height"]:
                raise ImportFailure(f"the processor resizes to {size} and crops {crop}; expected the same size")
            taken = {"resize": "exact", "size": [side, side]}
        example = (crop["height"], crop["width"])
    elif "shortest_edge" in size:
        taken = {"resize": "shorter", "size": size["shortest_edge"]}
        if "longest_edge" in size:
            taken["max_size"] = max(size["longest_edge"], size["shortest_edge"])
        example = (size["shortest_edge"], size["shortest_edge"] * 5 // 4)
    else:
        taken = {"resize": "exact", "size": [size["height"], size["width"]]}
        example = (size["height"], size["width"])
    resample = int(processor.resample)
    if resample not in _FILTERS:
        raise ImportFailure(f"the processor's resample is {resample}; expected 2 (bilinear) or 3 (bicubic)")
    taken["filter"] = _FILTERS[resample]
    taken["scale"] = float(processor.rescale_factor) if processor.do_rescale else 1.0
    if processor.do_normalize:
        taken["mean"] = [float(one) for one in processor.image_mean]
        taken["std"] = [float(one) for one in processor.image_std]
    return taken, example


def _kind(folder: pathlib.Path) -> tuple[str, str]:
    """Returns the architecture, and the ending of its name that is known."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        architecture = config["architectures"][0]
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise ImportFailure(
            f"transformers:{folder} has no config.json with one of \"architectures\" ({error}); expected a folder that "
            "save_pretrained wrote"
        ) from None
    for ending in _KINDS:
        if architecture.endswith(ending):
            return architecture, ending
    raise ImportFailure(
        f"transformers:{folder}: the architecture is '{architecture}'; expected one that ends in {', '.join(_KINDS)}"
    )


def build(name: str, weights_name: str | None, seed: int | None) -> Network:
    """Builds the network of a folder with its weights, or with random ones."""
    if weights_name is not None:
        raise ImportFailure("--weights is for torchvision; a folder of transformers has its weights")
    folder = pathlib.Path(name)
    architecture, ending = _kind(folder)
    loader, kind, outputs = _KINDS[ending]
    processor: Any = transformers.AutoImageProcessor.from_pretrained(str(folder))
    config = transformers.AutoConfig.from_pretrained(str(folder))
    # Other kernels of attention depend on the picture's size in ways that cannot be traced.
    config._attn_implementation = "eager"
    made: Any = getattr(transformers, loader)
    if seed is not None:
        torch.manual_seed(seed)
        network = made.from_config(config).eval()
    else:
        network = made.from_pretrained(str(folder), config=config, local_files_only=True).eval()
    prepared, (height, width) = _prepares(processor)
    sigmoid = any(part in architecture for part in _SIGMOID)
    head: dict[str, Any] = {"kind": kind}
    if kind == "sets":
        head |= {"activation": "sigmoid" if sigmoid else "softmax", "score_threshold": _SCORE_THRESHOLD}
    if kind == "classes" and getattr(config, "problem_type", None) == "multi_label_classification":
        head["activation"] = "sigmoid"
    description = {"input": prepared, "head": head, "outputs": outputs}
    if seed is not None:
        seen = random_weights.normalised(2, height, width, seed)
        random_weights.settle(network, seen)
        random_weights.spread(network, seen)
    labels = []
    if kind in ("classes", "sets", "semantic"):
        labels = [str(config.id2label[index]) for index in range(len(config.id2label))]
    made_network = Network(
        f"transformers:{name}", Outputs(network, list(outputs.values())), description, labels,
        OneByOne(network, processor, kind, sigmoid), (random_weights.normalised(2, height, width, seed=1),),
        scripted=False,
    )
    made_network.notes.append(f"{architecture}, " + (f"random weights from seed {seed}" if seed is not None else f"the weights in {folder}"))
    return made_network

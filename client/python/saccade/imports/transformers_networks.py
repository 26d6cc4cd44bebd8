"""Networks of transformers from a folder with config.json, preprocessor_config.json and weights."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from saccade.imports import processors, random_weights, readings
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


class Outputs(nn.Module):
    """The outputs that the head reads, in order."""

    def __init__(self, network: nn.Module, names: list[str]) -> None:
        super().__init__()
        self.network, self.names = network, names

    def forward(self, pixel_values: Tensor) -> Any:
        outputs = self.network(pixel_values=pixel_values)
        found = tuple(outputs[name] for name in self.names)
        return found[0] if len(found) == 1 else found


def _keep_range(processor: Any) -> None:
    """Lets the processor limit what it has scaled to a pixel's values, as it does with 8-bit pictures: a bicubic filter
    overshoots. A processor that has no method to scale with stays as it is."""
    scale = getattr(processor, "resize", None)
    if scale is not None:
        processor.resize = lambda *given, **options: scale(*given, **options).clip(0, 255)


class OneByOne(Author):
    """The processor and the network, and the processor's own reading of what the network returns."""

    def __init__(self, network: nn.Module, processor: Any, head: dict[str, Any]) -> None:
        self.network, self.processor, self.head = network, processor, head
        _keep_range(processor)

    def __call__(self, picture: Tensor) -> Any:
        size = (picture.shape[1], picture.shape[2])
        # As floating-point numbers, which the processor does not round after it has scaled the picture.
        inputs = self.processor(images=picture * 255, return_tensors="pt")
        outputs: Any = self.network(pixel_values=inputs["pixel_values"])
        kind = self.head["kind"]
        if kind == "classes":
            logits = outputs.logits[0]
            return (logits.sigmoid() if self.head["activation"] == "sigmoid" else logits.softmax(0)).numpy()
        if kind == "sets":
            found = self.processor.post_process_object_detection(outputs, readings.SCORE_THRESHOLD, target_sizes=[size])[0]
            height, width = size
            boxes = found["boxes"].clamp(min=0).minimum(torch.tensor([width, height, width, height]))
            order = found["scores"].argsort(descending=True)
            return Found(boxes[order].numpy(), found["scores"][order].numpy(), found["labels"][order].numpy())
        if kind == "semantic":
            return self.processor.post_process_semantic_segmentation(outputs, target_sizes=[size])[0].numpy()
        if kind == "depth":
            return self._depth(outputs, size).clamp(min=0).numpy()
        return outputs.pooler_output[0].flatten().numpy()

    def _depth(self, outputs: Any, size: tuple[int, int]) -> Tensor:
        if not hasattr(self.processor, "post_process_depth_estimation"):
            return readings.resized(outputs.predicted_depth[0], size, self.head["filter"])
        found: Tensor = self.processor.post_process_depth_estimation(outputs, target_sizes=[size])[0]["predicted_depth"]
        return found


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


def _head(kind: str, config: Any, processor: Any, program: Outputs, example: Tensor, source: str) -> dict[str, Any]:
    if kind == "classes":
        return readings.classes(config, source)
    if kind == "depth":
        return readings.depth(processor, source)
    if kind != "sets":
        return {"kind": kind}
    with torch.inference_mode():
        logits, _ = program(example[:1])
    return readings.sets(processor, logits.shape[1], logits.shape[2], source)


def _trained(made: Any, folder: pathlib.Path, config: Any) -> Any:
    """Loads the network with the folder's weights, as float32, in which the daemon computes."""
    network, info = made.from_pretrained(str(folder), config=config, local_files_only=True, output_loading_info=True)
    # The count of batches that a batch norm has seen is for training alone.
    missing = sorted(one for one in info["missing_keys"] if not one.endswith("num_batches_tracked"))
    if missing:
        others = f" and {len(missing) - 1} others" if len(missing) > 1 else ""
        raise ImportFailure(
            f"transformers:{folder}: the weights lack '{missing[0]}'{others} of {type(network).__name__}, which would be random numbers; "
            "expected all weights of the network that config.json names"
        )
    return network.float().eval()


def _labels(config: Any, folder: pathlib.Path) -> list[str]:
    count = len(config.id2label)
    for index in range(count):
        if index not in config.id2label:
            raise ImportFailure(f"transformers:{folder}: id2label has {count} names, but none for {index}; expected one for each class")
    return [str(config.id2label[index]) for index in range(count)]


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
        network = _trained(made, folder, config)
    prepared, (height, width) = processors.prepares(processor)
    program = Outputs(network, list(outputs.values()))
    example = random_weights.normalised(2, height, width, seed=1)
    head = _head(kind, config, processor, program, example, f"transformers:{name}")
    description = {"input": prepared, "head": head, "outputs": outputs}
    if seed is not None:
        seen = random_weights.normalised(2, height, width, seed)
        random_weights.settle(network, seen)
        random_weights.spread(network, seen)
    labels = []
    if kind in ("classes", "sets", "semantic"):
        labels = _labels(config, folder)
    made_network = Network(
        f"transformers:{name}", program, description, labels, OneByOne(network, processor, head), (example,), scripted=False,
    )
    made_network.notes.append(f"{architecture}, " + (f"random weights from seed {seed}" if seed is not None else f"the weights in {folder}"))
    return made_network

"""Weights and pictures with which two implementations of a detector can be compared.

An untrained detector gives all regions nearly the same score, so that rounding decides which are kept.
"""

import copy

import torch
from torch import nn
from torchvision.models.detection.image_list import ImageList

from models.reference.served import settle, smooth_pictures

# Standard deviation of each head's output over a picture.
SPREADS = {
    "rpn.head.cls_logits": 2.0,
    "rpn.head.bbox_pred": 0.05,
    "roi_heads.box_predictor.cls_score": 2.0,
    "roi_heads.box_predictor.bbox_pred": 0.5,
    "roi_heads.mask_predictor.mask_fcn_logits": 2.0,
}
BACKGROUND = "roi_heads.box_predictor.cls_score"


def pictures(count: int, height: int, width: int, generator: torch.Generator) -> list[torch.Tensor]:
    """Returns smooth pictures with values from 0 to 1."""
    return list(smooth_pictures(count, height, width, generator, grain=16).sigmoid())


def _background(logits: torch.Tensor, wanted: int, threshold: float = 0.05) -> float:
    """Returns the value to add to the logit of class 0 so that `wanted` scores of other classes exceed the
    threshold."""
    exponentials = logits.exp()
    others = exponentials[:, 1:].sum(dim=1, keepdim=True)
    room = (exponentials[:, 1:] / threshold - others).flatten().clamp(min=1e-6)  # for class 0, at the threshold
    return room.topk(min(wanted, len(room) // 2)).values[-1].log().item() - logits[:, 0].mean().item()


def spread_heads(network: nn.Module, batch, spreads: dict[str, float], background: str, settled: tuple[str, ...],
                 wanted: int):
    """Scales each layer, except those whose names begin with one of `settled`, so that its output is of order one. The
    heads' last layers are also centred, and their output gets the standard deviation in `spreads`. Most regions are
    background: in this batch, `wanted` scores computed from the logits of `background` exceed the threshold."""
    done = set()

    def adjust(name: str):
        def hook(layer: nn.Module, _, answer: torch.Tensor) -> torch.Tensor | None:
            if layer in done:  # a head that was adjusted on its first input
                return None
            done.add(layer)
            shape = [1, -1] + [1] * (answer.dim() - 2)
            others = [axis for axis in range(answer.dim()) if axis != 1]
            mean = answer.mean(others) if name in spreads else torch.zeros(answer.shape[1])
            scale = spreads.get(name, 1.0) / (answer - mean.view(shape)).std()
            shift = torch.zeros(answer.shape[1])
            if name == background:
                shift[0] = _background((answer - mean) * scale, wanted)
            layer.weight.mul_(scale)
            layer.bias.sub_(mean).mul_(scale).add_(shift)
            return (answer - mean.view(shape)) * scale + shift.view(shape)
        return hook

    hooks = [module.register_forward_hook(adjust(name)) for name, module in network.named_modules()
             if isinstance(module, (nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d, nn.Linear))
             and not name.startswith(settled)]
    with torch.no_grad():
        network(batch)
    for hook in hooks:
        hook.remove()


def random_weights(network: nn.Module, generator: torch.Generator) -> nn.Module:
    """Random weights for a residual network with attention and heads, such that no part vanishes or dominates."""
    for name, parameter in network.named_parameters():
        path = "." + name
        normed = ".bn" in path or ".downsample.1." in path
        if normed and name.endswith("weight"):
            # The branches of residual blocks are weak, as rounding would grow from block to block otherwise.
            nn.init.uniform_(parameter, *((0.1, 0.5) if "bn3" in name else (0.5, 1.5)), generator=generator)
        elif normed:
            nn.init.normal_(parameter, 0, 0.2, generator=generator)
        elif ".attention." in path:
            # Queries and keys that distinguish positions, and results that are visible beside their input.
            gain = {"query": 2.0, "key": 2.0, "value": 1.0, "out": 1.0}[name.split(".")[-2]]
            deviation = gain / parameter[0].numel() ** 0.5 if parameter.dim() > 1 else 0.2
            nn.init.normal_(parameter, 0, deviation, generator=generator)
        elif parameter.dim() > 1:
            nn.init.normal_(parameter, 0, (2 / parameter[0].numel()) ** 0.5, generator=generator)
        else:
            nn.init.normal_(parameter, 0, 0.2, generator=generator)
    return network.eval()


def spread_out(network: nn.Module, size: tuple[int, int], wanted: int = 100, seed: int = 1) -> nn.Module:
    """Random weights with matching batch norm statistics and scores without ties, for pictures of about this size. Two
    of these pictures have `wanted` scores above the threshold before suppression."""
    generator = torch.Generator().manual_seed(seed)
    random_weights(network, generator)
    batches = [network.transform(pictures(2, *size, generator))[0].tensors for _ in range(3)]
    settle(network, batches, network.backbone)
    spread_heads(network, pictures(2, *size, generator), SPREADS, BACKGROUND,
                 ("backbone.body.", "backbone.attention."), wanted)
    return network


def agree(got: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], part: float = 1.0):
    """Asserts that a picture's detections agree, within `part` of the tolerances. Masks are pasted."""
    count = len(expected["scores"])
    assert len(got["scores"]) == count, f"{len(got['scores'])} detections, expected {count}"
    assert got["labels"].tolist() == expected["labels"].tolist()
    for name, tolerance in (("scores", 1e-4), ("boxes", 1e-2), ("masks", 1e-3)):
        assert got[name].shape == expected[name].shape
        worst = (got[name].double() - expected[name]).abs().max().item()
        assert worst < part * tolerance, f"{name} differ by {worst}"


class ScaledInSingle(nn.Module):
    """The transform for a detector's copy in double precision. It scales in single precision, as the compared
    implementations do; otherwise its rounding would be ten times that of the whole backbone."""

    def __init__(self, transform: nn.Module):
        super().__init__()
        self.transform = transform
        self.postprocess = transform.postprocess

    def forward(self, batch: list[torch.Tensor], targets=None):
        images, targets = self.transform(batch, targets)
        return ImageList(images.tensors.double(), images.image_sizes), targets


def well_posed(network: nn.Module, sizes: list[tuple[int, int]], seed: int,
               least: int = 5) -> tuple[list[torch.Tensor], list[dict[str, torch.Tensor]]]:
    """Returns pictures whose detections do not depend on rounding, and these detections in double precision: the
    network in single precision agrees with them. Each has `least` or more, and no ties in score."""
    exact = copy.deepcopy(network).double()
    exact.transform = ScaledInSingle(network.transform)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(20):
        batch = [pictures(1, *size, generator)[0] for size in sizes]
        with torch.inference_mode():
            expected, rounded = exact(batch), network(batch)
        scores = [detections["scores"] for detections in expected]
        if any(len(score) < least or (score[:-1] - score[1:]).min() < 1e-5 for score in scores):
            continue
        try:
            for one, other in zip(rounded, expected):
                agree(one, other, part=0.5)
        except AssertionError:
            continue
        return batch, expected
    raise AssertionError(f"no pictures of {sizes} give detections that rounding leaves alone; choose other weights")

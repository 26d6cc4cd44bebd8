"""Random weights with which answers can be compared."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

# Layers whose initial weights are so small that all scores are alike.
_SCORES = ("cls_score", "cls_logits", "class_labels_classifier", "class_embed", "mask_fcn_logits", "fc", "head", "classifier")
# The standard deviation of the scores before their softmax or sigmoid.
_SPREAD = 1.5
_MAX_FACTOR = 1000.0
# The layers of those whose scores get a sigmoid. A few of millions of random scores are so large that their sigmoids are 1 in
# float32. Rounding would then decide which of two boxes with equal scores suppresses the other. So the largest score becomes this.
_SIGMOIDS = ("cls_logits",)
_MAX_LOGIT = 3.0


def pictures(count: int, height: int, width: int, seed: int) -> torch.Tensor:
    """Returns smooth shapes of all colours, [count, 3, height, width] from 0 to 1."""
    chance = torch.Generator().manual_seed(seed)
    coarse = torch.rand(count, 3, height // 24 + 2, width // 24 + 2, generator=chance)
    return nn.functional.interpolate(coarse, (height, width), mode="bicubic").clamp(0, 1)


def normalised(count: int, height: int, width: int, seed: int) -> torch.Tensor:
    """Returns pictures as classifiers take them: of order one."""
    return (pictures(count, height, width, seed) - 0.45) / 0.225


def settle(network: nn.Module, pictures: Any) -> None:
    """Sets batch norms to the statistics of these pictures, as training would, so that each layer's signal is of order
    one. `network` takes the pictures."""
    norms = [one for one in network.modules() if isinstance(one, nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = None  # a plain mean over the batches, without the initial values
        norm.reset_running_stats()
        norm.train()
    with torch.no_grad():
        network(pictures)
    network.eval()


def _factor(name: str, module: nn.Linear | nn.Conv2d, scores: torch.Tensor) -> float:
    """Returns by what to multiply the weights of the layer `name`, whose outputs are `scores`."""
    factor = min(_MAX_FACTOR, _SPREAD / max(float(scores.std()), 1e-9))
    if name not in _SIGMOIDS:
        return factor
    # Such layers begin with the same bias for all classes. It is not multiplied.
    bias = 0.0 if module.bias is None else float(module.bias.max())
    return min(factor, (_MAX_LOGIT - bias) / max(float(scores.max()) - bias, 1e-9))


def spread(network: nn.Module, pictures: Any) -> None:
    """Scales the layers that score classes until their scores differ as those of a trained network do, and no more:
    answers would then depend on the rounding of each pixel. `network` takes the pictures."""
    with torch.no_grad():
        for path, module in network.named_modules():
            name = path.rsplit(".", 1)[-1]
            if name in _SCORES and isinstance(module, (nn.Linear, nn.Conv2d)):
                seen: list[torch.Tensor] = []
                hook = module.register_forward_hook(lambda _, __, output, into=seen: into.append(output.flatten()))
                network(pictures)
                hook.remove()
                if seen:
                    module.weight.mul_(_factor(name, module, torch.cat(seen)))

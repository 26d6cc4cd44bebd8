"""Random weights with which answers can be compared."""

from __future__ import annotations

import torch
from torch import nn

# Layers whose initial weights are so small that all scores are alike.
_SCORES = ("cls_score", "cls_logits", "class_labels_classifier", "class_embed", "mask_fcn_logits", "fc", "head", "classifier")
_SPREAD = 12.0


def smooth_pictures(count: int, height: int, width: int, seed: int) -> torch.Tensor:
    """Returns smooth noise of order one, [count, 3, height, width], as normalised photographs are."""
    chance = torch.Generator().manual_seed(seed)
    coarse = torch.randn(count, 3, max(2, height // 24), max(2, width // 24), generator=chance)
    smooth = nn.functional.interpolate(coarse, (height, width), mode="bilinear")
    return smooth + 0.1 * torch.randn(smooth.shape, generator=chance)


def settle(network: nn.Module, pictures: torch.Tensor) -> None:
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


def spread(network: nn.Module) -> None:
    """Scales the layers that score classes until their scores differ as those of a trained network do."""
    with torch.no_grad():
        for name, module in network.named_modules():
            last = name.rsplit(".", 1)[-1]
            if last in _SCORES and isinstance(module, (nn.Linear, nn.Conv2d)):
                module.weight.mul_(_SPREAD)

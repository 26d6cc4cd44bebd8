"""The memory layout of weights in training on a CPU."""

import torch
from torch import nn


def overruns(module: nn.Module) -> bool:
    """Whether the weight gradient of this layer, in the channels-last layout, is written out of bounds by oneDNN as PyTorch
    2.11 to 2.15 bring it: 1x1 convolutions with a stride and fewer than 16 input channels, on a CPU with AVX-512."""
    return (
        isinstance(module, nn.Conv2d)
        and module.kernel_size == (1, 1)
        and module.stride != (1, 1)
        and module.in_channels // module.groups < 16
    )


def use_channels_last(network: nn.Module) -> bool:
    """Puts the weights of 2-D convolutions into the channels-last layout, which makes them a fifth faster on a CPU. A
    network with a layer that overruns stays as it is, because one such weight puts all maps behind it into that layout.
    Returns whether the layout was changed."""
    if any(overruns(module) for module in network.modules()):
        return False
    for parameter in network.parameters():
        if parameter.dim() == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return True

"""A residual classifier without attention in int8, in plain PyTorch: fake-quantized, with maps rounded where the served
network rounds them, and the weights file with its scales."""

import copy
import pathlib

import torch
from safetensors.torch import save_file
from torch import nn

INPUT = "input"


class Grid:
    """The numbers scale * (byte - zero) between the smallest and the largest number that a map held, and 0."""

    def __init__(self, low: float, high: float):
        low, high = min(low, 0.0), max(high, 0.0)
        self.scale = torch.tensor((high - low) / 255, dtype=torch.float32).item()
        self.zero = min(255, max(0, round(-low / self.scale)))

    def snap(self, x: torch.Tensor) -> torch.Tensor:
        return ((x / self.scale).round() + self.zero).clamp(0, 255).sub(self.zero).mul(self.scale)


def rounded_weight(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the weight in int8, and each output channel's scale."""
    scale = weight.double().flatten(1).abs().amax(dim=1) / 127
    return (weight.double() / scale.view(-1, 1, 1, 1)).round().clamp(-127, 127).to(torch.int8), scale.float()


def forward(network: nn.Module, x: torch.Tensor, snap) -> torch.Tensor:
    """The network's forward pass; `snap(name, map)` returns what the layer of this name passes on."""
    x = snap(INPUT, x)
    x = network.maxpool(snap("conv1", network.bn1(network.conv1(x)).relu()))
    for stage in range(1, 5):
        for index, block in enumerate(getattr(network, f"layer{stage}")):
            name = f"layer{stage}.{index}"
            y = snap(f"{name}.conv1", block.bn1(block.conv1(x)).relu())
            y = snap(f"{name}.conv2", block.bn2(block.conv2(y)).relu())
            shortcut = x if block.downsample is None else snap(f"{name}.downsample.0", block.downsample(x))
            x = snap(f"{name}.conv3", (block.bn3(block.conv3(y)) + shortcut).relu())
    return network.fc(x.mean(dim=(2, 3)))


def observed(network: nn.Module, pixels: torch.Tensor) -> dict[str, Grid]:
    """Returns the grid of each layer's result, and of the input."""
    grids = {}

    def snap(name: str, x: torch.Tensor) -> torch.Tensor:
        grids[name] = Grid(x.min().item(), x.max().item())
        return x

    with torch.inference_mode():
        forward(network, pixels, snap)
    return grids


def fake_quantized(network: nn.Module, grids: dict[str, Grid], pixels: torch.Tensor, dtype=torch.float64) -> torch.Tensor:
    """Returns the logits with rounded weights and maps, computed with this type."""
    network = copy.deepcopy(network).to(dtype)
    for name, module in network.named_modules():
        if name in grids and isinstance(module, nn.Conv2d):
            values, scale = rounded_weight(module.weight.data)
            module.weight.data = values.to(dtype) * scale.to(dtype).view(-1, 1, 1, 1)
    with torch.inference_mode():
        return forward(network, pixels.to(dtype), lambda name, x: grids[name].snap(x))


def save_quantized(network: nn.Module, grids: dict[str, Grid], path: pathlib.Path) -> pathlib.Path:
    """Writes what `saccade quantize` would write."""
    tensors, before = {}, INPUT
    for name, tensor in network.state_dict().items():
        layer = name.removesuffix(".weight")
        if layer not in grids or not name.endswith(".weight"):
            tensors[name] = tensor.contiguous().clone()
            continue
        values, scale = rounded_weight(tensor)
        both = [number for grid in (grids[before], grids[layer]) for number in (grid.scale, grid.zero)]
        tensors |= {name: values, f"{layer}.weight_scale": scale, f"{layer}.grids": torch.tensor(both, dtype=torch.float32)}
        before = layer
    save_file(tensors, str(path))
    return path

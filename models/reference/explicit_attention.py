"""Explicitly modelled attention, after "Explicitly Modeled Attention Maps for Image Classification"."""

import math

import torch
from torch import nn

WITH_RADIUS = ("gaussian", "exponential_euclidean", "exponential_manhattan")
MAPS = ("gaussian", "constant", "linear", "cosine", "exponential_euclidean", "exponential_manhattan")


def explicit_map(kind: str, height: int, width: int, sigma: torch.Tensor, plus_one: bool = True) -> torch.Tensor:
    """Norm(G + 1) of the paper's equations 5 and 7 to 12, [h w, h w]; without `plus_one`, Norm(G)."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    y, x = y.flatten().to(sigma), x.flatten().to(sigma)
    dy, dx = (y[:, None] - y).abs(), (x[:, None] - x).abs()
    along_diagonal = (dy ** 2 + dx ** 2).sqrt() / math.hypot(height, width)
    dy, dx = dy / height, dx / width
    if kind == "constant":
        values = torch.ones_like(dy)
    elif kind == "linear":
        values = 1 - along_diagonal
    elif kind == "cosine":
        values = 0.5 * (1 + (math.pi * along_diagonal).cos())
    elif kind == "gaussian":
        values = (-(dx ** 2 + dy ** 2) / (2 * sigma ** 2)).exp()
    elif kind == "exponential_euclidean":
        # The square root has no derivative at 0, where the distance is 0 for every sigma.
        values = (-(dx ** 2 + dy ** 2).clamp(min=1e-24).sqrt() / sigma).exp()
    else:
        values = (-(dx + dy) / sigma).exp()
    values = values + 1 if plus_one else values
    return values / values.sum(dim=1, keepdim=True)


class ExpAttConv(nn.Module):
    """The first outputs are a convolution's, the last `attended` ones those of attention by position alone. There are
    `maps` maps, one for each of as many groups of channels."""

    def __init__(self, inputs: int, outputs: int, stride: int, attended: int, kind: str, kernel: int = 3,
                 maps: int = 1, plus_one: bool = True):
        super().__init__()
        self.kind, self.maps, self.plus_one = kind, maps, plus_one
        self.conv = nn.Conv2d(inputs, outputs - attended, kernel, stride, padding=kernel // 2, bias=False)
        self.value = nn.Conv2d(inputs, attended, 1, bias=False)
        self.out = nn.Conv2d(attended, attended, 1, bias=False)
        radii = torch.tensor(0.75) if maps == 1 else torch.full((maps,), 0.75)
        self.sigma = nn.Parameter(radii) if kind in WITH_RADIUS else None
        # Padding is not counted, so that a batch norm after the pooling commutes with it.
        self.pool = nn.AvgPool2d(3, stride, padding=1, count_include_pad=False) if stride > 1 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        value = self.value(x)
        radius = self.value.weight.new_ones(()) if self.sigma is None else self.sigma
        attention = torch.stack([explicit_map(self.kind, *x.shape[2:], sigma, self.plus_one)
                                 for sigma in radius.reshape(-1)])
        heads = value.flatten(2).unflatten(1, (self.maps, -1))
        attended = torch.einsum("npq,bncq->bncp", attention, heads).reshape(value.shape)
        return torch.cat([self.conv(x), self.pool(self.out(attended))], dim=1)

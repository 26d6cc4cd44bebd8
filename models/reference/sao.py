"""Siamese attention as SANet uses it, after section 3.2 of "Siamese Attention Networks"."""

import torch
from torch import nn


class SiameseAttention(nn.Module):
    """Q = K = x, V a linear transform of x, and a batch norm in place of the 1/N.

    With `skip`, x is added to the result.
    """

    def __init__(self, channels: int, heads: int, learned: bool, global_term: bool, skip: bool):
        super().__init__()
        self.heads = heads
        self.global_term = global_term
        self.skip = skip
        self.value = nn.Linear(channels, channels, bias=False)
        if learned:
            self.w = nn.Parameter(torch.ones(channels))
        else:
            self.register_parameter("w", None)
        self.bn = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, channels, height, width = x.shape
        groups = (batch, self.heads, channels // self.heads, height * width)
        value = torch.einsum("oc,bchw->bohw", self.value.weight, x).reshape(groups)
        weighted = x if self.w is None else x * self.w[:, None, None]
        score = weighted.reshape(groups).sum(dim=2, keepdim=True)  # w^T x, one per head and position

        response = value.sum(dim=3, keepdim=True) * score
        if self.global_term:
            response = response + (value * score).sum(dim=3, keepdim=True)
        y = self.bn(response.reshape(x.shape))
        return x + y if self.skip else y

"""Siamese attention as in SANet, after section 3.2 of "Siamese Attention Networks", and as in its U-Nets."""

import torch
from torch import nn

NORMS = {2: nn.BatchNorm2d, 3: nn.BatchNorm3d}


class SiameseAttention(nn.Module):
    """Q = K = x, V is a linear transform of x, and a batch norm replaces the 1/N.

    With `skip`, x is added to the result. With `transformed`, Q and K have their own transforms. With `mean`, the batch
    norm follows the division by N instead of replacing it, so that it is valid for maps of any size. Maps have `dims`
    spatial dimensions.
    """

    def __init__(self, channels: int, heads: int, learned: bool, global_term: bool, skip: bool,
                 transformed: bool = False, mean: bool = False, dims: int = 2):
        super().__init__()
        self.heads = heads
        self.global_term = global_term
        self.skip = skip
        self.mean = mean
        self.query = nn.Linear(channels, channels, bias=False) if transformed else None
        self.key = nn.Linear(channels, channels, bias=False) if transformed else None
        self.value = nn.Linear(channels, channels, bias=False)
        if learned:
            self.w = nn.Parameter(torch.ones(channels))
        else:
            self.register_parameter("w", None)
        self.bn = NORMS[dims](channels)

    def _score(self, transform: nn.Linear | None, x: torch.Tensor) -> torch.Tensor:
        """Returns w^T of x or of its transform, one value per head and position."""
        y = x if transform is None else transform.weight @ x
        weighted = y if self.w is None else y * self.w[:, None]
        return weighted.unflatten(1, (self.heads, -1)).sum(dim=2, keepdim=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.flatten(2)
        value = (self.value.weight @ flat).unflatten(1, (self.heads, -1))
        if self.mean:
            value = value / flat.shape[2]
        response = value.sum(dim=3, keepdim=True) * self._score(self.query, flat)
        if self.global_term:
            response = response + (value * self._score(self.key, flat)).sum(dim=3, keepdim=True)
        y = self.bn(response.reshape(x.shape))
        return x + y if self.skip else y

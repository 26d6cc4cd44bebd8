"""Efficient attention as in EA Mask R-CNN, EA-PSMNet and EA R-C3D, after "Efficient Attention: Attention with Linear
Complexities"."""

import torch
from torch import nn

from models.reference.options import choice

OPERATORS = ("efficient", "non_local")
NORMALIZATIONS = ("softmax", "scaling")


class EfficientAttention(nn.Module):
    """E(Q, K, V) = rho_q(Q) (rho_k(K)^T V) over a map's positions, added to the map.

    Q, K and V are 1x1 convolutions with biases. A fourth restores the map's channels; without `reprojected` it is left
    out, and the values must have as many channels as the map. Works on maps with two or three dimensions. The operator
    "non_local" is what the paper compares with: every position attends to every position, V softmax(K^T Q) or divided by N.
    """

    def __init__(self, channels: int, key_channels: int, value_channels: int, heads: int = 1,
                 normalization: str = "softmax", reprojected: bool = True, dimensions: int = 2,
                 operator: str = "efficient"):
        super().__init__()
        if key_channels % heads or value_channels % heads:
            raise ValueError(f"key_channels {key_channels} and value_channels {value_channels} must be multiples of "
                             f"the {heads} heads")
        if not reprojected and value_channels != channels:
            raise ValueError(f"without a reprojection the {value_channels} value channels must be the map's {channels}")
        if normalization not in NORMALIZATIONS:
            raise ValueError(f"option normalization is '{normalization}'; it must be one of {', '.join(NORMALIZATIONS)}")
        convolution = {2: nn.Conv2d, 3: nn.Conv3d}[dimensions]
        self.heads = heads
        self.normalization = normalization
        self.operator = choice("operator", operator, OPERATORS)
        self.query = convolution(channels, key_channels, 1)
        self.key = convolution(channels, key_channels, 1)
        self.value = convolution(channels, value_channels, 1)
        self.out = convolution(value_channels, channels, 1) if reprojected else nn.Identity()
        if reprojected:
            # A new module is the identity, so that it can be added to a trained network.
            nn.init.zeros_(self.out.weight)
            nn.init.zeros_(self.out.bias)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the term that is added to x."""
        query, key, value = (part(x).flatten(2).unflatten(1, (self.heads, -1))  # [B, heads, d, N]
                             for part in (self.query, self.key, self.value))
        if self.operator == "non_local":
            similar = key.transpose(2, 3) @ query
            similar = similar.softmax(dim=2) if self.normalization == "softmax" else similar / similar.shape[2]
            return self.out((value @ similar).reshape(len(x), -1, *x.shape[2:]))
        if self.normalization == "softmax":
            query, key = query.softmax(dim=2), key.softmax(dim=3)
        else:
            query, key = (part / part.shape[3] ** 0.5 for part in (query, key))
        context = torch.einsum("bhkn,bhvn->bhkv", key, value)
        response = torch.einsum("bhkv,bhkn->bhvn", context, query)
        return self.out(response.reshape(len(x), -1, *x.shape[2:]))

    def forward(self, x: torch.Tensor, valid: list[tuple[int, ...]] | None = None) -> torch.Tensor:
        """`valid` is the extent of each sample's map from its first corner. Positions beyond it are padding: they are
        not attended to, and zero in the result."""
        if valid is None or all(tuple(extent) == tuple(x.shape[2:]) for extent in valid):
            return x + self.attend(x)
        result = torch.zeros_like(x)
        for sample, extent in enumerate(valid):
            region = (slice(sample, sample + 1), slice(None), *(slice(side) for side in extent))
            result[region] = x[region] + self.attend(x[region])
        return result

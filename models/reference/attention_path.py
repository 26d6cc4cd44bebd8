"""The attention of an AttnModule: Q and K are its input, and only V is transformed."""

import torch
from torch import nn

from models.reference.kronecker_attention import averages

KINDS = ("softmax", "pool", "1n", "kv", "qkv")


class AttentionPath(nn.Module):
    """softmax, pool, kv and qkv as in kronecker_attention.Attention, whose coefficients go through a batch norm with
    one channel per head; 1n has no softmax, and a batch norm after it. With `skip`, x is added to the result."""

    def __init__(self, kind: str, channels: int, heads: int, skip: bool):
        super().__init__()
        assert kind in KINDS
        self.kind = kind
        self.heads = heads
        self.skip = skip
        self.value = nn.Linear(channels, channels, bias=False)
        if kind == "1n":
            self.bn = nn.BatchNorm2d(channels)
        else:
            self.coefficients = nn.BatchNorm2d(heads)

    def attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """V softmax(K^T Q) for each head; all are [B, c, positions]."""
        query, key, value = (x.unflatten(1, (self.heads, -1)) for x in (query, key, value))
        coefficients = self.coefficients(key.transpose(2, 3) @ query)
        return (value @ coefficients.softmax(dim=2)).flatten(1, 2)

    def response(self, x: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        height, width = x.shape[2:]
        if self.kind == "qkv":
            columns, rows = self.attend(averages(x), averages(x), averages(value)).split([width, height], dim=2)
            return columns.unsqueeze(2) + rows.unsqueeze(3)
        if self.kind == "1n":
            query, keys, values = (y.flatten(2).unflatten(1, (self.heads, -1)) for y in (x, x, value))
            y = (values @ keys.transpose(2, 3)) @ query / (height * width)
            return self.bn(y.flatten(1, 2).unflatten(2, (height, width)))
        if self.kind == "kv":
            key, value = averages(x), averages(value)
        elif self.kind == "pool":
            # The paper pools the matrices before they are transformed, as its multiply-adds say.
            key = nn.functional.max_pool2d(x, 2, ceil_mode=True).flatten(2)
            value = self.value.weight @ key
        else:
            key, value = x.flatten(2), value.flatten(2)
        return self.attend(x.flatten(2), key, value).unflatten(2, (height, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.response(x, torch.einsum("oc,bchw->bohw", self.value.weight, x))
        return x + y if self.skip else y

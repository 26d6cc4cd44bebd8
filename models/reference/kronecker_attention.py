"""Kronecker attention after "Kronecker Attention Networks", and the regular attention that it is compared with."""

import torch
from torch import nn

KINDS = ("kv", "qkv", "softmax", "pool")


def averages(x: torch.Tensor) -> torch.Tensor:
    """Returns the means of the columns, then of the rows: [B, c, w + h]."""
    return torch.cat([x.mean(dim=2), x.mean(dim=3)], dim=2)


class Attention(nn.Module):
    """Attention with linear transforms on Q, K and V, all as wide as x; x is added to the result.

    kv: every position attends to the averages. qkv: the averages attend to each other, and the result is the outer sum
    of the columns' and the rows' results. softmax: every position attends to every position; pool: to keys and
    values of the maxima of x over windows of 2 x 2.

    Keys have no bias, as it would cancel in the softmax. The paper normalises the coefficients with batch norm to train
    KANets and does not say along which axis; here each head is one channel.
    """

    def __init__(self, kind: str, channels: int, heads: int = 1, epsilon: float = 1e-5):
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"attention kind is '{kind}'; it must be one of {', '.join(KINDS)}")
        self.kind = kind
        self.heads = heads
        self.query = nn.Conv2d(channels, channels, 1)
        self.key = nn.Conv2d(channels, channels, 1, bias=False)
        self.value = nn.Conv2d(channels, channels, 1)
        self.coefficients = nn.BatchNorm2d(heads, eps=epsilon)

    def attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """V softmax(K^T Q) for each head; all are [B, c, positions]."""
        query, key, value = (x.unflatten(1, (self.heads, -1)) for x in (query, key, value))
        coefficients = self.coefficients(key.transpose(2, 3) @ query)
        return (value @ coefficients.softmax(dim=2)).flatten(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        read = nn.functional.max_pool2d(x, 2, ceil_mode=True) if self.kind == "pool" else x
        query, key, value = self.query(x), self.key(read), self.value(read)
        height, width = x.shape[2:]
        if self.kind == "qkv":
            columns, rows = self.attend(averages(query), averages(key), averages(value)).split([width, height], dim=2)
            return x + columns.unsqueeze(2) + rows.unsqueeze(3)
        if self.kind == "kv":
            key, value = averages(key), averages(value)
        else:
            key, value = key.flatten(2), value.flatten(2)
        return x + self.attend(query.flatten(2), key, value).unflatten(2, (height, width))

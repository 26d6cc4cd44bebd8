"""The restoring networks of "Siamese Attention Networks": a 3-D U-Net of depth 3 that denoises volumes, and a network
that projects a volume to a plane, which a 2-D U-Net restores. The paper gives no widths; these are those of
"Content-aware image restoration", whose data it uses."""

import torch
from torch import nn
from torch.nn import functional

from models.reference.options import choice, flag, scaled
from models.reference.sao import NORMS, SiameseAttention

CONVOLUTIONS = {2: nn.Conv2d, 3: nn.Conv3d}
POOLS = {2: functional.max_pool2d, 3: functional.max_pool3d}
MULTIPLE = 4  # sides are halved twice
PERCENTILES = 2, 99.8


class Block(nn.Module):
    """Convolutions, each with batch norm and ReLU, followed by optional attention."""

    def __init__(self, channels: list[int], dims: int, attention: nn.Module | None = None):
        super().__init__()
        self.layers = len(channels) - 1
        for number, (inputs, outputs) in enumerate(zip(channels, channels[1:]), start=1):
            self.add_module(f"conv{number}", CONVOLUTIONS[dims](inputs, outputs, 3, padding=1, bias=False))
            self.add_module(f"bn{number}", NORMS[dims](outputs))
        self.attention = attention

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number in range(1, self.layers + 1):
            x = functional.relu(getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(x)))
        return x if self.attention is None else self.attention(x)


class EncoderDecoder(nn.Module):
    """Two encoders, a bottom and two decoders, with their `channels` in this order. `step` positions along each axis
    are pooled to one. `attend` makes the attention of the bottom and the decoders."""

    def __init__(self, channels: list[list[int]], dims: int, step: tuple, attend=lambda channels: None):
        super().__init__()
        self.step = step
        self.pool = POOLS[dims]
        first, second, bottom, *decoders = channels
        self.encoder = nn.ModuleList([Block(first, dims), Block(second, dims)])
        self.bottom = Block(bottom, dims, attend(bottom[-1]))
        # Ordered by level, so the last decoder comes first.
        self.decoder = nn.ModuleList([Block(block, dims, attend(block[-1])) for block in reversed(decoders)])
        self.output = CONVOLUTIONS[dims](decoders[-1][-1], 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = []
        for encode in self.encoder:
            skips.append(encode(x))
            x = self.pool(skips[-1], self.step)
        x = self.bottom(x)
        for level in (1, 0):
            enlarged = functional.interpolate(x, size=skips[level].shape[2:], mode="nearest")
            x = self.decoder[level](torch.cat([skips[level], enlarged], dim=1))
        return self.output(x)


class RegularAttention(nn.Module):
    """x plus the batch norm of V softmax(K^T Q), where each position attends to every position and Q, K and V are
    linear transforms of x."""

    def __init__(self, channels: int, heads: int, dims: int):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(channels, channels, bias=False) for _ in range(3))
        self.bn = NORMS[dims](channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (y.unflatten(2, (self.heads, -1)).transpose(1, 2) for y in (
            transform(x.flatten(2).transpose(1, 2)) for transform in (self.query, self.key, self.value)))
        y = functional.scaled_dot_product_attention(query, key, value, scale=1.0)
        return x + self.bn(y.transpose(2, 3).reshape(x.shape))


class Projection(EncoderDecoder):
    """Returns the mean of each column of the volume, weighted by the softmax of the network's output over depth."""

    def __init__(self, width: float):
        narrow, middle, wide = (scaled(channels, width) for channels in (8, 16, 32))
        super().__init__([[1, narrow], [narrow, middle], [middle, wide], [middle + wide, middle],
                          [narrow + middle, narrow]], 3, (1, 2, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (super().forward(x).softmax(dim=2) * x).sum(dim=2)


def percentiles(volume: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Computes PERCENTILES as numpy.percentile does."""
    ordered = volume.flatten().sort().values
    places = [percent / 100 * (len(ordered) - 1) for percent in PERCENTILES]
    below = [min(int(place), len(ordered) - 2) if len(ordered) > 1 else 0 for place in places]
    above = [min(i + 1, len(ordered) - 1) for i in below]
    low, high = (torch.lerp(ordered[i], ordered[j], torch.as_tensor(place - i, dtype=volume.dtype))
                 for place, i, j in zip(places, below, above))
    return low, high


class RestoringUNet(EncoderDecoder):
    """Maps volumes [B, 1, D, H, W] to [B, 1, D, H, W], or to projections [B, 1, 1, H, W], in their own units; each
    volume is normalised and padded on its own. `restore` is the part to train: the network on normalised volumes."""

    def __init__(self, projects: bool, attention="sao", similarity="learned", global_term=True, heads=1,
                 normalize="percentile", residual=True, width=1.0, **served_only):
        width = float(width)
        narrow, middle, wide = (scaled(channels, width) for channels in (32, 64, 128))
        dims = 2 if projects else 3
        kind = choice("attention", attention, ("sao", "attn", "none"))
        learned = choice("similarity", similarity, ("learned", "ones")) == "learned"

        def attend(channels: int) -> nn.Module | None:
            if kind == "none":
                return None
            if kind == "attn":
                return RegularAttention(channels, int(heads), dims)
            return SiameseAttention(channels, int(heads), learned, flag(global_term), skip=True, transformed=True,
                                    mean=True, dims=dims)

        super().__init__([[1, narrow, narrow], [narrow, middle, middle], [middle, wide, middle],
                          [2 * middle, middle, narrow], [2 * narrow, narrow, narrow]], dims, (2,) * dims, attend)
        if unknown := set(served_only) - {"tile", "max_voxels"}:  # tiling does not change results
            raise TypeError(f"unknown options: {', '.join(sorted(unknown))}")
        self.projection = Projection(width) if projects else None
        self.percentile = choice("normalize", normalize, ("percentile", "none")) == "percentile"
        self.residual = flag(residual)

    def restore(self, x: torch.Tensor) -> torch.Tensor:
        if self.projection is not None:
            x = self.projection(x)
        y = super().forward(x)
        y = x + y if self.residual else y
        return y.unsqueeze(2) if self.projection is not None else y

    def _one(self, volume: torch.Tensor) -> torch.Tensor:
        depth, height, width = volume.shape[1:]
        low, range_ = volume.new_zeros(()), volume.new_ones(())
        if self.percentile:
            low, high = percentiles(volume)
            range_ = high - low + 1e-20
        grown = 0 if self.projection is not None else -depth % MULTIPLE
        padding = (0, -width % MULTIPLE, 0, -height % MULTIPLE, 0, grown)
        x = functional.pad(((volume - low) / range_)[None], padding, mode="replicate")
        return (self.restore(x) * range_ + low)[0, :, :depth, :height, :width]

    def forward(self, volumes: torch.Tensor) -> torch.Tensor:
        return torch.stack([self._one(volume) for volume in volumes])


def denoise(**options) -> RestoringUNet:
    return RestoringUNet(False, **options)


def project(**options) -> RestoringUNet:
    return RestoringUNet(True, **options)

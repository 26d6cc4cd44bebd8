"""PSMNet with its stacked hourglass ("Pyramid Stereo Matching Network"), and efficient attention after the last
hourglass ("Efficient Attention: Attention with Linear Complexities"). Names are those of the PSMNet authors'
implementation."""

import math

import torch
from torch import nn
from torch.nn import functional

from models.reference.efficient_attention import EfficientAttention
from models.reference.options import choice, flag

STRIDE = 16  # height, width and maximum disparity must be multiples of this
# channels as multiples of the narrowest, blocks, stride, dilation
STAGES = [(1, 3, 1, 1), (2, 16, 2, 1), (4, 3, 1, 1), (4, 3, 1, 2)]
POOLS = [64, 32, 16, 8]


def convbn(inputs: int, outputs: int, kernel: int, stride: int = 1, dilation: int = 1) -> nn.Sequential:
    padding = dilation * (kernel // 2)
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, bias=False),
                         nn.BatchNorm2d(outputs))


def convbn_3d(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv3d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm3d(outputs))


def doubling(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.ConvTranspose3d(inputs, outputs, 3, 2, padding=1, output_padding=1, bias=False),
                         nn.BatchNorm3d(outputs))


class ResidualBlock(nn.Module):
    """No ReLU follows the sum."""

    def __init__(self, inputs: int, outputs: int, stride: int, dilation: int):
        super().__init__()
        self.conv1 = nn.Sequential(convbn(inputs, outputs, 3, stride, dilation), nn.ReLU())
        self.conv2 = convbn(outputs, outputs, 3, 1, dilation)
        projected = stride != 1 or inputs != outputs
        self.downsample = convbn(inputs, outputs, 1, stride) if projected else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        return shortcut + self.conv2(self.conv1(x))


class Pool(nn.Module):
    """Means over squares of `side`, or over the whole map if it is smaller."""

    def __init__(self, side: int):
        super().__init__()
        self.side = side

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        window = [min(self.side, length) for length in x.shape[2:]]
        return functional.avg_pool2d(x, window, window)


class Features(nn.Module):
    def __init__(self, channels: int, align_corners: bool):
        super().__init__()
        self.align_corners = align_corners
        layers = [convbn(3, channels, 3, 2), nn.ReLU()]
        layers += [convbn(channels, channels, 3), nn.ReLU(), convbn(channels, channels, 3), nn.ReLU()]
        self.firstconv = nn.Sequential(*layers)
        inputs = channels
        for stage, (widening, blocks, stride, dilation) in enumerate(STAGES, start=1):
            outputs = channels * widening
            layer = [ResidualBlock(inputs, outputs, stride, dilation)]
            layer += [ResidualBlock(outputs, outputs, 1, dilation) for _ in range(blocks - 1)]
            self.add_module(f"layer{stage}", nn.Sequential(*layer))
            inputs = outputs
        for branch, side in enumerate(POOLS, start=1):
            self.add_module(f"branch{branch}", nn.Sequential(Pool(side), convbn(inputs, channels, 1), nn.ReLU()))
        self.lastconv = nn.Sequential(convbn(10 * channels, 4 * channels, 3), nn.ReLU(),
                                      nn.Conv2d(4 * channels, channels, 1, bias=False))

    def forward(self, picture: torch.Tensor) -> torch.Tensor:
        fine = self.layer2(self.layer1(self.firstconv(picture)))
        deep = self.layer4(self.layer3(fine))
        pooled = [functional.interpolate(branch(deep), size=deep.shape[2:], mode="bilinear",
                                         align_corners=self.align_corners)
                  for branch in (self.branch4, self.branch3, self.branch2, self.branch1)]
        return self.lastconv(torch.cat([fine, deep, *pooled], dim=1))


class Hourglass(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        wide = 2 * channels
        self.conv1 = nn.Sequential(convbn_3d(channels, wide, 2), nn.ReLU())
        self.conv2 = convbn_3d(wide, wide)
        self.conv3 = nn.Sequential(convbn_3d(wide, wide, 2), nn.ReLU())
        self.conv4 = nn.Sequential(convbn_3d(wide, wide), nn.ReLU())
        self.conv5 = doubling(wide, wide)
        self.conv6 = doubling(wide, channels)

    def forward(self, volume: torch.Tensor, presqueeze=None, postsqueeze=None) -> tuple[torch.Tensor, ...]:
        pre = self.conv2(self.conv1(volume))
        pre = functional.relu(pre if postsqueeze is None else pre + postsqueeze)
        post = self.conv5(self.conv4(self.conv3(pre)))
        post = functional.relu(post + (pre if presqueeze is None else presqueeze))
        return self.conv6(post), pre, post


def cost_head(channels: int) -> nn.Sequential:
    return nn.Sequential(convbn_3d(channels, channels), nn.ReLU(), nn.Conv3d(channels, 1, 3, padding=1, bias=False))


def concatenation_volume(left: torch.Tensor, right: torch.Tensor, planes: int) -> torch.Tensor:
    """Left at x beside right at x - d, for every d; zero where x - d is outside the picture."""
    batch, channels, height, width = left.shape
    volume = left.new_zeros(batch, 2 * channels, planes, height, width)
    for d in range(min(planes, width)):
        volume[:, :channels, d, :, d:] = left[..., d:]
        volume[:, channels:, d, :, d:] = right[..., :width - d]
    return volume


def regress(costs: torch.Tensor, max_disparity: int, height: int, width: int, align_corners: bool) -> torch.Tensor:
    """Returns disparities [B, height, width] from costs [B, 1, D, H, W]; the largest cost is the likeliest
    disparity."""
    costs = functional.interpolate(costs, size=(max_disparity, height, width), mode="trilinear",
                                   align_corners=align_corners)
    disparities = torch.arange(max_disparity, dtype=costs.dtype, device=costs.device)
    return torch.einsum("bdhw,d->bhw", costs.squeeze(1).softmax(dim=1), disparities)


class PsmNet(nn.Module):
    """In evaluation mode returns the disparities [B, H, W] of pairs [B, 6, H, W], left before right, whose sides are
    multiples of 16; in training mode those of all three hourglasses, in order. Without attention and with `width` 1 it
    has PSMNet's 5,224,768 parameters."""

    def __init__(self, attention="ea", max_disparity=192, key_channels=16, value_channels=32, heads=1,
                 normalization="softmax", align_corners=True, width=1.0, long_side=1280, buckets=f"stride:{STRIDE}",
                 exact=True):
        super().__init__()
        # For the daemon, which prepares the pairs; the network takes any size.
        self.long_side, self.buckets, self.exact = int(long_side), buckets, exact
        channels = max(8, 8 * math.floor(4 * float(width) + 0.5))
        self.max_disparity = int(max_disparity)
        if self.max_disparity % STRIDE:
            raise ValueError(f"option max_disparity is {max_disparity}; it must be a multiple of {STRIDE}")
        # PSMNet's code leaves this unset, which was true before PyTorch 0.4 and is false since; its authors advise true.
        self.align_corners = flag(align_corners)
        self.feature_extraction = Features(channels, self.align_corners)
        self.dres0 = nn.Sequential(convbn_3d(2 * channels, channels), nn.ReLU(),
                                   convbn_3d(channels, channels), nn.ReLU())
        self.dres1 = nn.Sequential(convbn_3d(channels, channels), nn.ReLU(), convbn_3d(channels, channels))
        self.dres2, self.dres3, self.dres4 = (Hourglass(channels) for _ in range(3))
        self.classif1, self.classif2, self.classif3 = (cost_head(channels) for _ in range(3))
        self.attention = None
        if choice("attention", attention, ("ea", "none")) == "ea":
            values = int(value_channels)
            self.attention = EfficientAttention(channels, int(key_channels), values, int(heads), normalization,
                                                reprojected=values != channels, dimensions=3)
        self.apply(self._initialise)

    @staticmethod
    def _initialise(module: nn.Module):
        if isinstance(module, (nn.Conv2d, nn.Conv3d, nn.ConvTranspose3d)) and module.bias is None:
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def attend(self, volume: torch.Tensor, valid: list[tuple[int, int]] | None) -> torch.Tensor:
        if self.attention is None:
            return volume
        if valid is None:
            return self.attention(volume)
        # Extents in quarters of pixels. The daemon's kernel writes zeros beyond them.
        extents = [(volume.shape[2], height // 4, width // 4) for height, width in valid]
        attended = self.attention(volume, extents)
        for sample, (_, height, width) in zip(attended, extents):
            sample[..., height:, :] = 0
            sample[..., width:] = 0
        return attended

    def forward(self, pairs: torch.Tensor, valid: list[tuple[int, int]] | None = None):
        """`valid` is the size of the picture in each padded pair, in multiples of 16."""
        height, width = pairs.shape[2:]
        left, right = (self.feature_extraction(view) for view in pairs.split(3, dim=1))
        entry = self.dres0(concatenation_volume(left, right, self.max_disparity // 4))
        entry = entry + self.dres1(entry)

        output, first_pre, post = self.dres2(entry)
        volumes = [output + entry]
        output, _, post = self.dres3(volumes[0], first_pre, post)
        volumes.append(output + entry)
        output, _, _ = self.dres4(volumes[1], first_pre, post)
        volumes.append(self.attend(output + entry, valid))

        costs, all_costs = 0, []
        for head, volume in zip((self.classif1, self.classif2, self.classif3), volumes):
            costs = costs + head(volume)
            all_costs.append(costs)
        if not self.training:
            all_costs = all_costs[-1:]
        disparities = [regress(each, self.max_disparity, height, width, self.align_corners) for each in all_costs]
        return disparities if self.training else disparities[0]

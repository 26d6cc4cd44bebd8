"""DeepLabV2 with ResNet-101, with ASPP or an attention operator as its output layer, as in section 4.6 of "Kronecker
Attention Networks".

Pictures are [B, 3, h, w] in blue, green, red, 0 to 255 minus MEANS. The result is a map of scores with a position every
8 pixels, the first at the first pixel. Train on crops of 8 n + 1 pixels (the paper: 321), with the scores interpolated
to the crop with align_corners=True, which is what `resized` does for these sizes.

The paper gives neither the widths of its output layer nor the step to the classes. Here the backbone's 2048 channels
are reduced to head_channels, attention is added to that map, and a 1x1 convolution computes the classes. KAO_QKV can
draw shapes only because of this addition: its own result is the sum of one vector per row and one per column.
"""

import torch
from torch import nn

from models.reference.kronecker_attention import Attention

MEANS = (104.008, 116.669, 122.675)
STRIDE = 8
STRIDES, DILATIONS = (1, 2, 1, 1), (1, 1, 2, 4)
ASPP_DILATIONS = (6, 12, 18, 24)
HEADS = ("kao", "attention", "attention_pool", "aspp")


class Bottleneck(nn.Module):
    """As in Caffe's ResNets: the stride is on the first 1x1."""

    def __init__(self, inputs: int, middle: int, stride: int, dilation: int, epsilon: float, projected: bool):
        super().__init__()
        outputs = 4 * middle
        self.conv1 = nn.Conv2d(inputs, middle, 1, stride, bias=False)
        self.bn1 = nn.BatchNorm2d(middle, eps=epsilon)
        self.conv2 = nn.Conv2d(middle, middle, 3, padding=dilation, dilation=dilation, bias=False)
        self.bn2 = nn.BatchNorm2d(middle, eps=epsilon)
        self.conv3 = nn.Conv2d(middle, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs, eps=epsilon)
        self.downsample = nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs, eps=epsilon)
        ) if projected else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y)).relu()
        return (self.bn3(self.conv3(y)) + (x if self.downsample is None else self.downsample(x))).relu()


class Aspp(nn.Module):
    """DeepLabV2's output layer: four dilated convolutions, summed."""

    def __init__(self, inputs: int, classes: int):
        super().__init__()
        self.conv2d_list = nn.ModuleList(
            nn.Conv2d(inputs, classes, 3, padding=dilation, dilation=dilation) for dilation in ASPP_DILATIONS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return sum(convolution(x) for convolution in self.conv2d_list)


class Reduce(nn.Module):
    def __init__(self, inputs: int, outputs: int, epsilon: float):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=epsilon)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bn(self.conv(x)).relu()


class AttentionHead(nn.Module):
    def __init__(self, kind: str, inputs: int, channels: int, heads: int, classes: int, epsilon: float):
        super().__init__()
        self.reduce = Reduce(inputs, channels, epsilon)
        self.attention = Attention(kind, channels, heads, epsilon)
        self.classifier = nn.Conv2d(channels, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.attention(self.reduce(x)))


class DeepLabV2(nn.Module):
    """`kao` is "kv" or "qkv". Options that only affect serving (long_side, buckets, exact) are accepted and ignored."""

    def __init__(self, kao: str, head="kao", classes=21, head_channels=512, heads=1, width=1.0, blocks="3,4,23,3",
                 batch_norm_epsilon=1e-5, long_side=1024, buckets="stride:32", exact=True):
        super().__init__()
        if head not in HEADS:
            raise ValueError(f"option head is '{head}'; it must be one of {', '.join(HEADS)}")
        epsilon = float(batch_norm_epsilon)
        channels = 8 * int(8 * float(width) + 0.5)
        self.conv1 = nn.Conv2d(3, channels, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(channels, eps=epsilon)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True)

        inputs = channels
        for stage, count in enumerate(int(count) for count in str(blocks).split(",")):
            middle = channels << stage
            rows = [Bottleneck(inputs, middle, STRIDES[stage], DILATIONS[stage], epsilon, projected=True)]
            rows += [Bottleneck(4 * middle, middle, 1, DILATIONS[stage], epsilon, projected=False)
                     for _ in range(count - 1)]
            self.add_module(f"layer{stage + 1}", nn.Sequential(*rows))
            inputs = 4 * middle
        if head == "aspp":
            self.layer5 = Aspp(inputs, int(classes))
        else:
            kind = {"kao": kao, "attention": "softmax", "attention_pool": "pool"}[head]
            self.layer5 = AttentionHead(kind, inputs, int(head_channels), int(heads), int(classes), epsilon)
        self.apply(self._initialise)

    @staticmethod
    def _initialise(module: nn.Module):
        if isinstance(module, nn.Conv2d):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.bn1(self.conv1(x)).relu())
        return self.layer5(self.layer4(self.layer3(self.layer2(self.layer1(x)))))


def resized(scores: torch.Tensor, scaled: tuple[int, int], sent: tuple[int, int]) -> torch.Tensor:
    """Returns scores [B, classes, h, w] of a network's input of size `scaled` at the pixels of the picture as it was
    sent: bilinear at each pixel's centre, clamped to the map."""
    for dim, (from_side, to_side) in enumerate(zip(scaled, sent), start=2):
        pixel = (torch.arange(to_side, dtype=torch.float64) + 0.5) * (from_side / to_side) - 0.5
        place = (pixel / STRIDE).clamp(0, scores.shape[dim] - 1)
        before = place.floor().long().clamp(max=max(scores.shape[dim] - 2, 0))
        after = (before + 1).clamp(max=scores.shape[dim] - 1)
        fraction = (place - before).to(scores.dtype).unflatten(0, (-1, 1) if dim == 2 else (1, -1))
        scores = torch.lerp(scores.index_select(dim, before), scores.index_select(dim, after), fraction)
    return scores

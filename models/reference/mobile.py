"""The mobile networks: SANet and AttnNet, table 9 of "Siamese Attention Networks"; KANet, table 1 of "Kronecker
Attention Networks", which is the same table; MobileNetV2, and MobileNetV2 with their attention or with explicitly
modelled attention."""

import math

import torch
from torch import nn

from models.reference.attention_path import AttentionPath
from models.reference.explicit_attention import MAPS, ExpAttConv
from models.reference.options import choice, flag, scaled
from models.reference.sao import SiameseAttention

STEM, HEAD = 32, 1280
# module, expansion r, output channels c, repetitions n, stride s of the first
ROWS = [
    ("base", 1, 16, 1, 1),
    ("base", 6, 24, 2, 2),
    ("base", 6, 32, 2, 2),
    ("attention", 6, 32, 1, 1),
    ("base", 6, 64, 1, 2),
    ("attention", 6, 64, 3, 1),
    ("attention", 6, 96, 3, 1),
    ("base", 6, 160, 1, 2),
    ("attention", 6, 160, 2, 1),
    ("attention", 6, 320, 1, 1),
]


class ConvBn(nn.Module):
    """A convolution without bias, its batch norm, and ReLU6 unless it is linear."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, linear: bool = False):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(outputs)
        self.linear = linear

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.bn(self.conv(x))
        return x if self.linear else nn.functional.relu6(x)


class BaseModule(nn.Module):
    """Expands to (r-1)c maps, concatenates the input, filters all rc depthwise, projects to d."""

    def __init__(self, inputs: int, outputs: int, r: int, stride: int):
        super().__init__()
        self.expand = ConvBn(inputs, (r - 1) * inputs, 1) if r > 1 else None
        self.depthwise = ConvBn(r * inputs, r * inputs, 3, stride, groups=r * inputs)
        self.project = ConvBn(r * inputs, outputs, 1, linear=True)
        self.skip = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x if self.expand is None else torch.cat([self.expand(x), x], dim=1)
        y = self.project(self.depthwise(y))
        return x + y if self.skip else y


class ExpAttBn(ExpAttConv):
    """A 1x1 convolution beside explicitly modelled attention, followed by a batch norm and ReLU6."""

    def __init__(self, inputs: int, outputs: int, attended: int, kind: str):
        super().__init__(inputs, outputs, 1, attended, kind, kernel=1)
        self.bn = nn.BatchNorm2d(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.relu6(self.bn(super().forward(x)))


class InvertedResidual(nn.Module):
    """MobileNetV2's module: expands to rc maps, filters them depthwise, projects to d."""

    def __init__(self, inputs: int, outputs: int, r: int, stride: int, expand=ConvBn):
        super().__init__()
        self.expand = expand(inputs, r * inputs, 1) if r > 1 else None
        self.depthwise = ConvBn(r * inputs, r * inputs, 3, stride, groups=r * inputs)
        self.project = ConvBn(r * inputs, outputs, 1, linear=True)
        self.skip = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.project(self.depthwise(x if self.expand is None else self.expand(x)))
        return x + y if self.skip else y


class AttnModule(nn.Module):
    """The convolution path has (r-1)c maps; the other c come from attention over the input."""

    def __init__(self, inputs: int, outputs: int, r: int, stride: int, attention):
        super().__init__()
        self.expand = ConvBn(inputs, (r - 1) * inputs, 1)
        self.depthwise = ConvBn((r - 1) * inputs, (r - 1) * inputs, 3, stride, groups=(r - 1) * inputs)
        self.attention = attention(inputs, stride)
        self.pool = nn.AvgPool2d(stride, ceil_mode=True) if stride > 1 else nn.Identity()
        self.project = ConvBn(r * inputs, outputs, 1, linear=True)
        self.skip = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.cat([self.depthwise(self.expand(x)), self.pool(self.attention(x))], dim=1)
        y = self.project(y)
        return x + y if self.skip else y


class SqueezeExcite(nn.Module):
    """Each channel times a gate, which two matrices make from the means of all channels. Squeezed channels are those of
    the input divided by `reduction`."""

    def __init__(self, channels: int, reduction: int):
        super().__init__()
        squeezed = max(1, channels // reduction)
        self.squeeze = nn.Linear(channels, squeezed, bias=False)
        self.excite = nn.Linear(squeezed, channels, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gates = self.excite(self.squeeze(x.mean(dim=(2, 3))).relu()).sigmoid()
        return x * gates[:, :, None, None]


class MobileNetwork(nn.Module):
    """`base` is the module for rows without attention. In rows with attention, `attention(channels, stride)` makes the
    attention of an AttnModule; if it is None, `instead` is the module."""

    def __init__(self, base, instead, attention=None, classes=1000, width=1.0, input_size=224, resize_size=None,
                 interpolation=None, mean=None, std=None, reduced_jpeg=None):
        super().__init__()
        del resize_size, interpolation, mean, std, reduced_jpeg  # how the daemon prepares pictures
        width = float(width)
        self.input_size = int(input_size)  # for preparing pictures; the network takes any size

        channels = scaled(STEM, width)
        self.stem = ConvBn(3, channels, 3, stride=2)
        blocks = []
        for module, r, row_channels, repetitions, row_stride in ROWS:
            outputs = scaled(row_channels, width)
            for repetition in range(repetitions):
                stride = row_stride if repetition == 0 else 1
                if module == "attention" and attention is not None:
                    blocks.append(AttnModule(channels, outputs, r, stride, attention))
                else:
                    blocks.append((instead if module == "attention" else base)(channels, outputs, r, stride))
                channels = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = ConvBn(channels, scaled(HEAD, width), 1)
        self.dropout = nn.Dropout(0.2)
        self.classifier = nn.Linear(scaled(HEAD, width), int(classes))
        self.apply(self._initialise)

    @staticmethod
    def _initialise(module: nn.Module):
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.head(self.blocks(self.stem(x)))
        return self.classifier(self.dropout(x.mean(dim=(2, 3))))


def _siamese(heads, similarity: str, global_term):
    learned = choice("similarity", similarity, ("learned", "ones")) == "learned"
    return lambda channels, stride: SiameseAttention(channels, int(heads), learned, flag(global_term), skip=stride == 1)


def _path(kind: str, heads, skip: bool = True):
    return lambda channels, stride: AttentionPath(kind, channels, int(heads), skip=skip and stride == 1)


def sanet(attention="sao", similarity="learned", global_term=True, heads=4, reduction=2, **sizes) -> MobileNetwork:
    """attention=none is the paper's 'w/o SAO', attention=se its 'SENet', similarity=ones its 'w/o params'."""
    paths = {"sao": _siamese(heads, similarity, global_term),
             "se": lambda channels, _: SqueezeExcite(channels, int(reduction)),
             "none": None}
    return MobileNetwork(BaseModule, BaseModule, paths[choice("attention", attention, tuple(paths))], **sizes)


def _with_own(kind: str, name: str, attention: str, heads, **sizes) -> MobileNetwork:
    attends = choice("attention", attention, (name, "none")) == name
    return MobileNetwork(BaseModule, InvertedResidual, _path(kind, heads) if attends else None, **sizes)


def attnnet(attention="on", heads=1, **sizes) -> MobileNetwork:
    return _with_own("softmax", "on", attention, heads, **sizes)


def attnnet_pool(attention="on", heads=1, **sizes) -> MobileNetwork:
    return _with_own("pool", "on", attention, heads, **sizes)


def attnnet_1n(attention="on", heads=1, **sizes) -> MobileNetwork:
    return _with_own("1n", "on", attention, heads, **sizes)


def kanet_kv(attention="kao", heads=1, **sizes) -> MobileNetwork:
    """attention=none is the paper's 'w/o KAO'."""
    return _with_own("kv", "kao", attention, heads, **sizes)


def kanet_qkv(attention="kao", heads=1, **sizes) -> MobileNetwork:
    return _with_own("qkv", "kao", attention, heads, **sizes)


def expatt_mobilenetv2(attention="expatt", map="gaussian", width=1.0, **sizes) -> MobileNetwork:
    """Attention makes about a twentieth of the expanded maps, a multiple of its four heads, in blocks with at least 24
    (times width) inputs."""
    choice("map", map, MAPS)

    def expand(inputs: int, outputs: int, _) -> nn.Module:
        if inputs < scaled(24, float(width)):
            return ConvBn(inputs, outputs, 1)
        return ExpAttBn(inputs, outputs, max(4, 4 * math.floor(outputs / 80 + 0.5)), map)

    def block(inputs: int, outputs: int, r: int, stride: int) -> nn.Module:
        return InvertedResidual(inputs, outputs, r, stride, expand)

    module = block if choice("attention", attention, ("expatt", "none")) == "expatt" else InvertedResidual
    return MobileNetwork(module, module, width=width, **sizes)


def mobilenetv2(**sizes) -> MobileNetwork:
    return MobileNetwork(InvertedResidual, InvertedResidual, **sizes)


def mobilenet_v2(crop_size=224, **sizes) -> MobileNetwork:
    """torchvision's MobileNetV2, with this module's names."""
    return mobilenetv2(input_size=crop_size, **sizes)


def mobilenetv2_sao(attention="sao", similarity="learned", global_term=True, heads=4, **sizes) -> MobileNetwork:
    siamese = _siamese(heads, similarity, global_term)
    attends = choice("attention", attention, ("sao", "none")) == "sao"
    return MobileNetwork(InvertedResidual, InvertedResidual, siamese if attends else None, **sizes)


def mobilenetv2_kao(attention="kv", heads=1, **sizes) -> MobileNetwork:
    """KAO's paper replaces modules by its AttnModule, which has no skip around the attention."""
    kind = choice("attention", attention, ("kv", "qkv", "none"))
    path = None if kind == "none" else _path(kind, heads, skip=False)
    return MobileNetwork(InvertedResidual, InvertedResidual, path, **sizes)

"""SANet, table 9 of "Siamese Attention Networks", with the variants that the paper studies."""

import math

import torch
from torch import nn

from models.reference.sao import SiameseAttention

HEADS = 4
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


def scaled(channels: int, width: float) -> int:
    """The multiple of 8 nearest to channels * width, halves upwards, and at least 8."""
    return max(8, 8 * math.floor(channels * width / 8 + 0.5))


def flag(value) -> bool:
    return {"true": True, "false": False}[str(value).lower()]


def choice(name: str, value: str, legal: tuple) -> str:
    if value not in legal:
        raise ValueError(f"option {name} is '{value}'; it must be one of {', '.join(legal)}")
    return value


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
    """Expands to (r-1)c maps, keeps the input beside them, filters all rc by depth, projects to d."""

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


class AttnModule(nn.Module):
    """The convolution path has (r-1)c maps; the c others come from attention over the input."""

    def __init__(self, inputs: int, outputs: int, r: int, stride: int, learned: bool, global_term: bool):
        super().__init__()
        self.expand = ConvBn(inputs, (r - 1) * inputs, 1)
        self.depthwise = ConvBn((r - 1) * inputs, (r - 1) * inputs, 3, stride, groups=(r - 1) * inputs)
        self.attention = SiameseAttention(inputs, HEADS, learned, global_term, skip=stride == 1)
        self.pool = nn.AvgPool2d(stride, ceil_mode=True) if stride > 1 else nn.Identity()
        self.project = ConvBn(r * inputs, outputs, 1, linear=True)
        self.skip = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.cat([self.depthwise(self.expand(x)), self.pool(self.attention(x))], dim=1)
        y = self.project(y)
        return x + y if self.skip else y


class SaNet(nn.Module):
    """attention=none is the paper's 'w/o SAO', similarity=ones its 'w/o params'."""

    def __init__(self, attention="sao", similarity="learned", global_term=True, classes=1000, width=1.0, input_size=224):
        super().__init__()
        attend = choice("attention", attention, ("sao", "none")) == "sao"
        learned = choice("similarity", similarity, ("learned", "ones")) == "learned"
        width = float(width)
        self.input_size = int(input_size)  # for whoever prepares the pictures; the network takes any size

        channels = scaled(STEM, width)
        self.stem = ConvBn(3, channels, 3, stride=2)
        blocks = []
        for module, r, row_channels, repetitions, row_stride in ROWS:
            outputs = scaled(row_channels, width)
            for repetition in range(repetitions):
                stride = row_stride if repetition == 0 else 1
                if module == "attention" and attend:
                    blocks.append(AttnModule(channels, outputs, r, stride, learned, flag(global_term)))
                else:
                    blocks.append(BaseModule(channels, outputs, r, stride))
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

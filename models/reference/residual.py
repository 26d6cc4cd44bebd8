"""ResNets with attention in their 3x3 convolutions: "Explicitly Modeled Attention Maps for Image Classification"
combines the two, "Global Self-Attention Networks for Image Recognition" replaces the convolutions. Names are
torchvision's."""

import torch
from torch import nn

from models.reference.explicit_attention import MAPS, WITH_RADIUS, ExpAttConv
from models.reference.options import choice, flag, scaled

CONTENTS = ("global", "axial", "none")
AXES = ("both", "column", "row", "none")
GROUPS = ("1-4", "2-4", "3-4", "4")
# Attention's channels in each stage of bottlenecks. These fit the published parameter counts; a rounded tenth does not.
ATTENDED = (8, 16, 24, 56)
HEADS = 8  # that have a map each, if they do not share one


class GlobalSelfAttention(nn.Module):
    """Content attention over the whole map, and attention along columns and then rows by relative position. With
    `transform_norms`, batch norms follow the transforms of queries, keys and values."""

    def __init__(self, channels: int, side: int, stride: int, heads: int, content: str, axes: str,
                 transform_norms: bool):
        super().__init__()
        self.heads = heads
        self.content = content
        self.axes = axes
        self.side = side
        self.query = nn.Conv2d(channels, channels, 1, bias=False)
        if content != "none":
            self.key = nn.Conv2d(channels, channels, 1, bias=False)
        self.value = nn.Conv2d(channels, channels, 1, bias=False)
        norm = nn.BatchNorm2d if transform_norms else nn.Identity
        self.query_norm, self.value_norm = norm(channels), norm(channels)
        self.key_norm = norm(channels) if content != "none" else None
        # One row for each relative offset from 1 - side to side - 1, shared by the heads.
        if axes in ("both", "column"):
            self.column_embedding = nn.Parameter(torch.randn(2 * side - 1, channels // heads) * channels ** -0.5)
        if axes in ("both", "row"):
            self.row_embedding = nn.Parameter(torch.randn(2 * side - 1, channels // heads) * channels ** -0.5)
        self.middle = nn.BatchNorm2d(channels) if axes == "both" else None
        self.pool = nn.AvgPool2d(stride, ceil_mode=True) if stride > 1 else nn.Identity()

    def along_columns(self, query, key, value, embedding) -> torch.Tensor:
        """All are [B, heads, c, H, W]; the embedding is [2 side - 1, c]."""
        height = query.shape[3]
        offsets = torch.arange(height) - torch.arange(height)[:, None] + self.side - 1
        relative = embedding[offsets]  # [own, other, c]
        weights = torch.einsum("bncyx,yic->bnyix", query, relative)
        if self.content == "axial":
            weights = (weights + torch.einsum("bncyx,bncix->bnyix", query, key)).softmax(dim=3)
        return torch.einsum("bnyix,bncix->bncyx", weights, value)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        split = (self.heads, -1)
        query = self.query_norm(self.query(x)).unflatten(1, split)
        value = self.value_norm(self.value(x)).unflatten(1, split)
        key = self.key_norm(self.key(x)).unflatten(1, split) if self.content != "none" else None
        result = 0
        if self.content == "global":
            context = key.flatten(3).softmax(dim=3) @ value.flatten(3).transpose(2, 3)
            result = (context.transpose(2, 3) @ query.flatten(3)).view_as(value)
        if self.axes == "column":
            result = result + self.along_columns(query, key, value, self.column_embedding)
        if self.axes == "both":
            columns = self.along_columns(query, key, value, self.column_embedding)
            value = self.middle(columns.flatten(1, 2)).unflatten(1, split)
        if self.axes in ("both", "row"):
            turned = [None if y is None else y.transpose(3, 4) for y in (query, key, value)]
            result = result + self.along_columns(*turned, self.row_embedding).transpose(3, 4)
        return self.pool(result.flatten(1, 2))


class Block(nn.Module):
    """A bottleneck, or a basic block with two 3x3 convolutions; `spatial` makes the layer used for each 3x3."""

    def __init__(self, inputs: int, middle: int, stride: int, basic: bool, spatial, side: int,
                 expansion: int = 4):
        super().__init__()
        self.basic = basic
        outputs = middle if basic else expansion * middle
        if basic:
            self.conv1 = spatial(inputs, middle, stride, side)
            self.bn1 = nn.BatchNorm2d(middle)
            self.conv2 = spatial(middle, middle, 1, (side - 1) // stride + 1)
            self.bn2 = nn.BatchNorm2d(middle)
        else:
            self.conv1 = nn.Conv2d(inputs, middle, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(middle)
            self.conv2 = spatial(middle, middle, stride, side)
            self.bn2 = nn.BatchNorm2d(middle)
            self.conv3 = nn.Conv2d(middle, outputs, 1, bias=False)
            self.bn3 = nn.BatchNorm2d(outputs)
        projected = inputs != outputs or stride > 1
        self.downsample = nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)) if projected else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y))
        if not self.basic:
            y = self.bn3(self.conv3(y.relu()))
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


class ResidualClassifier(nn.Module):
    """`attend(stage, inputs, outputs, stride, side)` makes the layer used for each 3x3 convolution in the groups
    `groups`, or is None."""

    def __init__(self, attend, blocks, basic: bool = False, groups: str = "1-4", cifar: bool = False, classes=1000,
                 width=1.0, input_size=224, resize_size=None, interpolation=None, mean=None, std=None, reduced_jpeg=None, expansion=4):
        super().__init__()
        expansion = int(choice("expansion", str(expansion), ("4", "2")))
        del resize_size, interpolation, mean, std, reduced_jpeg  # how the daemon prepares pictures
        blocks = [int(count) for count in blocks.split(",")]
        first = int(choice("groups", groups, GROUPS)[0])
        width, self.input_size = float(width), int(input_size)
        channels = scaled(64, width)
        self.conv1 = nn.Conv2d(3, channels, 7, 1 if cifar else 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.maxpool = nn.Identity() if cifar else nn.MaxPool2d(3, 2, 1)
        side = self.input_size if cifar else ((self.input_size - 1) // 2) // 2 + 1

        def convolution(inputs: int, outputs: int, stride: int, _) -> nn.Module:
            return nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)

        for stage, count in enumerate(blocks):
            spatial = convolution
            if attend is not None and stage + 1 >= first:
                spatial = lambda *shape, stage=stage: attend(stage, *shape)  # noqa: E731
            layer = []
            for index in range(count):
                stride = 2 if index == 0 and stage > 0 else 1
                middle = scaled(64 << stage, width)
                layer.append(Block(channels, middle, stride, basic, spatial, side, expansion))
                channels = middle if basic else expansion * middle
                side = (side - 1) // stride + 1
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layer))
        self.fc = nn.Linear(channels, int(classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.bn1(self.conv1(x)).relu())
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x)
        return self.fc(x.mean(dim=(2, 3)))


def expatt(default_blocks: str, basic: bool = False, *, attention="expatt", map="gaussian", plus_one=True, shared_map=True,
           form="imagenet", groups=None, blocks=None, width=1.0, input_size=None, **sizes) -> ResidualClassifier:
    choice("map", map, MAPS)
    if not flag(shared_map):
        choice("map", map, WITH_RADIUS)
    cifar = choice("form", form, ("imagenet", "cifar")) == "cifar"

    def attend(stage: int, inputs: int, outputs: int, stride: int, _) -> nn.Module:
        attended = scaled(64 << stage, float(width)) // 4 if basic else scaled(ATTENDED[stage], float(width))
        return ExpAttConv(inputs, outputs, stride, attended, map, maps=1 if flag(shared_map) else HEADS,
                          plus_one=flag(plus_one))

    attends = choice("attention", attention, ("expatt", "none")) == "expatt"
    return ResidualClassifier(attend if attends else None, blocks or default_blocks, basic,
                              groups or ("1-4" if cifar else "2-4"), cifar, width=width,
                              input_size=input_size or (32 if cifar else 224), **sizes)


def plain(default_blocks: str, basic: bool = False, *, blocks=None, crop_size=224, **sizes) -> ResidualClassifier:
    """torchvision's ResNets."""
    return ResidualClassifier(None, blocks or default_blocks, basic, input_size=crop_size, **sizes)


def gsa(default_blocks: str, *, attention="gsa", content="global", axes="both", heads=8, transform_norms=False,
        groups="1-4", blocks=None, **sizes) -> ResidualClassifier:
    choice("content", content, CONTENTS)
    choice("axes", axes, AXES if content == "global" else AXES[:3] if content == "none" else AXES[:1])

    def attend(_, inputs: int, outputs: int, stride: int, side: int) -> nn.Module:
        assert inputs == outputs
        return GlobalSelfAttention(inputs, side, stride, int(heads), content, axes, flag(transform_norms))

    attends = choice("attention", attention, ("gsa", "none")) == "gsa"
    return ResidualClassifier(attend if attends else None, blocks or default_blocks, groups=groups, **sizes)

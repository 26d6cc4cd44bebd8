"""EA Mask R-CNN, built from torchvision's detection classes and efficient attention.

With attention="none" and fpn="torchvision", names and results are those of torchvision's maskrcnn_resnet50_fpn. Stages
and levels are numbered as in the paper: res3 and res4 are torchvision's layer3 and layer4; fpn1 is the finest level of
the pyramid, at a quarter of the picture.
"""

from collections import OrderedDict

import torch
from torch import nn
from torchvision.models.detection import MaskRCNN
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
from torchvision.models.detection.mask_rcnn import MaskRCNNHeads, MaskRCNNPredictor
from torchvision.models.resnet import Bottleneck
from torchvision.ops import FeaturePyramidNetwork
from torchvision.ops.feature_pyramid_network import LastLevelMaxPool

from models.reference.efficient_attention import EfficientAttention
from models.reference.options import choice

PLACES = ("res3", "res4", "fpn1", "fpn2", "fpn3", "fpn4", "fpn5")
ASPECT_RATIOS = (0.5, 1.0, 2.0)


def places(attention: str) -> list[str]:
    chosen = [] if attention == "none" else attention.split(",")
    for place in chosen:
        choice("attention", place, ("none", *PLACES))
    return [place for place in PLACES if place in chosen]


class Body(nn.Module):
    """A ResNet without its classifier. The paper's stem is a 3x3 convolution and a 2x2 pooling."""

    def __init__(self, blocks: list[int], width: float, resnext: bool, paper_stem: bool, epsilon: float):
        super().__init__()
        self.channels = round(64 * width)
        # A narrow ResNeXt has fewer groups of unchanged width: 4 channels in the first stage.
        self.groups, self.group_width = (round(32 * width), round(4 / width)) if resnext else (1, 64)
        self.norm = lambda channels: nn.BatchNorm2d(channels, eps=epsilon)
        kernel = 3 if paper_stem else 7
        self.conv1 = nn.Conv2d(3, self.channels, kernel, stride=2, padding=kernel // 2, bias=False)
        self.bn1 = self.norm(self.channels)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(2, 2) if paper_stem else nn.MaxPool2d(3, 2, padding=1)
        self.outputs = [4 * self.channels << stage for stage in range(4)]
        for stage in range(4):
            setattr(self, f"layer{stage + 1}", self._stage(stage, blocks[stage]))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def _stage(self, stage: int, count: int) -> nn.Sequential:
        outputs, stride = self.outputs[stage], 1 if stage == 0 else 2
        inputs = self.channels if stage == 0 else self.outputs[stage - 1]
        shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), self.norm(outputs))
        common = {"groups": self.groups, "base_width": self.group_width, "norm_layer": self.norm}
        blocks = [Bottleneck(inputs, outputs // 4, stride, shortcut, **common)]
        blocks += [Bottleneck(outputs, outputs // 4, **common) for _ in range(count - 1)]
        return nn.Sequential(*blocks)

    def stem(self, x: torch.Tensor) -> torch.Tensor:
        return self.maxpool(self.relu(self.bn1(self.conv1(x))))

    def after_stem(self, side: int) -> int:
        """Returns the number of positions along a picture's side after the stem."""
        side = halved(side)
        return side // 2 if self.maxpool.kernel_size == 2 else halved(side)


def halved(side: int) -> int:
    return (side + 1) // 2


class PaperPyramid(FeaturePyramidNetwork):
    """fpn5 is a convolution on res4, and the top-down path begins with it."""

    def __init__(self, inputs: list[int], channels: int):
        super().__init__(inputs, channels)
        top = nn.Conv2d(inputs[-1], channels, 3, stride=2, padding=1)
        nn.init.kaiming_uniform_(top.weight, a=1)
        nn.init.zeros_(top.bias)
        self.top = nn.Sequential(top)

    def forward(self, stages: list[torch.Tensor], attend) -> list[torch.Tensor]:
        # No head uses fpn5, so its attention comes before the top-down path; it would have no effect otherwise.
        above = attend("fpn5", self.top(stages[-1]))
        levels = []
        for level in (3, 2, 1, 0):
            lateral = self.inner_blocks[level](stages[level])
            above = lateral + nn.functional.interpolate(above, size=lateral.shape[-2:], mode="nearest")
            levels.insert(0, attend(f"fpn{level + 1}", self.layer_blocks[level](above)))
        return levels


class TorchvisionPyramid(FeaturePyramidNetwork):
    """fpn5 is every second position of fpn4, taken before fpn4's attention."""

    def __init__(self, inputs: list[int], channels: int):
        super().__init__(inputs, channels, extra_blocks=LastLevelMaxPool())

    def forward(self, stages: list[torch.Tensor], attend) -> list[torch.Tensor]:
        levels = super().forward(OrderedDict((str(level), stage) for level, stage in enumerate(stages)))
        return [attend(f"fpn{level + 1}", x) for level, x in enumerate(levels.values())]


class Backbone(nn.Module):
    def __init__(self, body: Body, pyramid: nn.Module, channels: int, attended: list[str], **attention):
        super().__init__()
        self.out_channels = channels
        self.body = body
        self.fpn = pyramid
        widths = {"res3": body.outputs[2], "res4": body.outputs[3]}
        self.attention = nn.ModuleDict({place: EfficientAttention(widths.get(place, channels), **attention)
                                        for place in attended})

    def _extents(self, sizes: list[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
        """Returns the valid extent of each picture's map, for the places where attention may be."""
        extents = [[tuple(self.body.after_stem(side) for side in size) for size in sizes]]
        for _ in range(4):
            extents.append([tuple(halved(side) for side in size) for size in extents[-1]])
        by_place = {f"fpn{level + 1}": extent for level, extent in enumerate(extents)}
        return {**by_place, "res3": extents[2], "res4": extents[3]}

    def forward(self, x: torch.Tensor, sizes: list[tuple[int, int]] | None = None) -> OrderedDict[str, torch.Tensor]:
        """`sizes` are the pictures' sizes within the padded x; without them there is no padding."""
        extents = self._extents(sizes if sizes is not None else [tuple(x.shape[-2:])] * len(x))

        def attend(place: str, x: torch.Tensor) -> torch.Tensor:
            return self.attention[place](x, extents[place]) if place in self.attention else x

        x = self.body.stem(x)
        stages = []
        for stage in (1, 2, 3, 4):
            x = attend(f"res{stage}", getattr(self.body, f"layer{stage}")(x))
            stages.append(x)
        return OrderedDict((str(level), x) for level, x in enumerate(self.fpn(stages, attend)))


class EaMaskRcnn(MaskRCNN):
    """Has the interface of torchvision's detectors: lists of pictures in 0..1, of any sizes; losses in training."""

    def __init__(self, blocks, resnext=False, fpn="paper", attention=",".join(PLACES), operator="efficient",
                 normalization="softmax", heads=1,
                 key_channels=64, value_channels=64, classes=91, short_side=800, long_side=1333, buckets=None, reduced_jpeg=None,
                 score_threshold=0.05, nms_threshold=0.5, detections=100, proposals=1000, batch_norm_epsilon=1e-5,
                 exact=None, width=1.0):
        # Options for how the daemon decodes and pads; here pictures are padded to a multiple of 32.
        del buckets, exact, reduced_jpeg
        paper = choice("fpn", fpn, ("paper", "torchvision")) == "paper"
        width, classes = float(width), int(classes)
        channels, representation = round(256 * width), round(1024 * width)
        body = Body([int(count) for count in str(blocks).split(",")], width, resnext, paper, float(batch_norm_epsilon))
        backbone = Backbone(body, (PaperPyramid if paper else TorchvisionPyramid)(body.outputs, channels), channels,
                            places(attention), key_channels=int(key_channels), value_channels=int(value_channels),
                            heads=int(heads), normalization=normalization, operator=operator)
        sizes = tuple((32 << level,) for level in range(4 if paper else 5))
        super().__init__(
            backbone, min_size=int(short_side), max_size=int(long_side),
            rpn_anchor_generator=AnchorGenerator(sizes, (ASPECT_RATIOS,) * len(sizes)),
            rpn_pre_nms_top_n_test=int(proposals), rpn_post_nms_top_n_test=int(proposals),
            box_head=TwoMLPHead(channels * 7 * 7, representation),
            box_predictor=FastRCNNPredictor(representation, classes),
            box_score_thresh=float(score_threshold), box_nms_thresh=float(nms_threshold),
            box_detections_per_img=int(detections),
            mask_head=MaskRCNNHeads(channels, (channels,) * 4, dilation=1),
            mask_predictor=MaskRCNNPredictor(channels, channels, classes))

    def forward(self, images: list[torch.Tensor], targets: list[dict[str, torch.Tensor]] | None = None):
        if self.training and targets is None:
            raise ValueError("targets must be given in training mode")
        sent = [tuple(image.shape[-2:]) for image in images]
        images, targets = self.transform(images, targets)
        for index, target in enumerate(targets or []):
            if (target["boxes"][:, 2:] <= target["boxes"][:, :2]).any():
                raise ValueError(f"target {index} has a box without width or height")
        # The only difference to torchvision's forward: the backbone gets the sizes without padding.
        features = self.backbone(images.tensors, images.image_sizes)
        proposals, proposal_losses = self.rpn(images, features, targets)
        found, losses = self.roi_heads(features, proposals, images.image_sizes, targets)
        if self.training:
            return {**losses, **proposal_losses}
        return self.transform.postprocess(found, images.image_sizes, sent)


def r50(blocks="3,4,6,3", **options) -> EaMaskRcnn:
    return EaMaskRcnn(blocks, **options)


def r101(blocks="3,4,23,3", **options) -> EaMaskRcnn:
    return EaMaskRcnn(blocks, **options)


def x101(blocks="3,4,23,3", **options) -> EaMaskRcnn:
    """ResNeXt-101 (32x4d)."""
    return EaMaskRcnn(blocks, resnext=True, **options)


def torchvisions(blocks="3,4,6,3", fpn="torchvision", attention="none", batch_norm_epsilon=0.0, **options) -> EaMaskRcnn:
    """torchvision's maskrcnn_resnet50_fpn as its published weights want it."""
    return EaMaskRcnn(blocks, fpn=fpn, attention=attention, batch_norm_epsilon=batch_norm_epsilon, **options)

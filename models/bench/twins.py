"""The cases of bench_models.py: networks, sizes, and each twin as a function of one prepared batch."""

import dataclasses

import torch
from torch import nn
from torchvision.models.detection.image_list import ImageList

from models.reference import build
from models.reference.served import settle, smooth_noise


class Detector(nn.Module):
    """A detector without its preprocessing: returns boxes, scores, classes and small masks, picture by picture."""

    PARTS = ("boxes", "scores", "labels", "masks")

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, pixels: torch.Tensor) -> list[torch.Tensor]:
        sizes = [(int(pixels.shape[2]), int(pixels.shape[3]))] * len(pixels)
        images = ImageList(pixels, sizes)
        features = self.network.backbone(pixels, sizes)
        proposals, _ = self.network.rpn(images, features)
        found, _ = self.network.roi_heads(features, proposals, sizes)
        return [picture[part] for picture in found for part in self.PARTS]


class ActionFinder(nn.Module):
    """Returns segments, scores and classes, clip by clip."""

    PARTS = ("segments", "scores", "labels")

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, pixels: torch.Tensor) -> list[torch.Tensor]:
        return [clip[part] for clip in self.network(pixels) for part in self.PARTS]


def findings(twin: nn.Module, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
    """What a Detector or an ActionFinder finds, in the form of a file of answers (models/tools/answers_file.h)."""
    parts = twin(pixels)
    return {f"{index // len(twin.PARTS)}.{twin.PARTS[index % len(twin.PARTS)]}": part.cpu() for index, part in enumerate(parts)}


CLASSIFIERS = ("attnnet", "attnnet_1n", "attnnet_pool", "kanet_kv", "kanet_qkv", "mobilenetv2", "mobilenetv2_kao",
          "mobilenetv2_sao", "sanet", "expatt_mobilenetv2", "expatt_resnet34", "expatt_resnet50", "expatt_resnet101",
          "expatt_resnet152", "gsa_resnet38", "gsa_resnet50", "gsa_resnet101")


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    architecture: str
    sizes: tuple  # of the network's input: height and width, after frames or planes if there are any
    fixed: dict = dataclasses.field(default_factory=dict)  # options
    channels: int = 3
    batches: tuple = (1, 4, 16)
    attention_off: dict = dataclasses.field(default_factory=dict)  # options that only leave the attention out

    def options(self, sides: tuple) -> dict:
        if self.architecture in CLASSIFIERS:
            return {**self.fixed, "input_size": sides[0]}
        return dict(self.fixed)

    def build(self, sides: tuple) -> tuple[nn.Module, nn.Module]:
        """Returns the network, and the twin to time. Random weights are scaled as after training: signals of order one,
        and as many detections as in a busy picture."""
        torch.manual_seed(1)
        network = build(self.architecture, **self.options(sides))
        generator = torch.Generator().manual_seed(2)
        most = (64, 256, 320)[-len(sides):]
        small = smooth_noise(2, tuple(map(min, sides, most)), generator, self.channels)
        for module in network.modules():
            if type(module).__name__ == "EfficientAttention" and isinstance(module.out, (nn.Conv2d, nn.Conv3d)):
                nn.init.normal_(module.out.weight, 0, 0.05)
            if type(module).__name__ == "SiameseAttention":  # at full strength, untrained ones grow from layer to layer
                nn.init.constant_(module.bn.weight, 0.1)
            if type(getattr(module, "conv2", None)).__name__ == "GlobalSelfAttention":  # likewise, as it has no softmax
                nn.init.constant_(module.conv2.middle.weight, 0.1)
                nn.init.constant_(module.bn2.weight, 0.1)
                nn.init.constant_(module.bn3.weight, 0.05)
        if self.architecture == "ea_rc3d":
            settle(network, [small])
            nn.init.normal_(network.tpn.cls_logits.weight, 0, 0.05)
            nn.init.normal_(network.head.cls_score.weight, 0, 0.2)
            return network, self.twin(network)
        if not self.architecture.startswith("ea_mask_rcnn"):
            settle(network, [small])
            return network, self.twin(network)
        settle(network, [small], run=network.backbone)
        nn.init.normal_(network.rpn.head.cls_logits.weight, 0, 0.05)
        nn.init.normal_(network.roi_heads.box_predictor.cls_score.weight, 0, 0.2)
        return network, self.twin(network)

    def twin(self, network: nn.Module) -> nn.Module:
        """Returns a network as a function of one prepared batch."""
        if self.architecture == "ea_rc3d":
            return ActionFinder(network).eval()
        if self.architecture.startswith("ea_mask_rcnn"):
            return Detector(network).eval()
        return network.eval()


def prepared(case: Case, batch: int, sides: tuple) -> torch.Tensor:
    return smooth_noise(batch, sides, torch.Generator().manual_seed(3), case.channels)


DETECTOR_SIZES = ((896, 1280), (800, 1088))
CASES = [
    *(Case(name, name, ((224, 224), (320, 320))) for name in CLASSIFIERS),
    Case("mask_rcnn_r50", "ea_mask_rcnn_r50", DETECTOR_SIZES, {"attention": "none", "fpn": "torchvision"}),
    Case("ea_mask_rcnn_r50", "ea_mask_rcnn_r50", DETECTOR_SIZES, attention_off={"attention": "none"}),
    Case("ea_mask_rcnn_r101", "ea_mask_rcnn_r101", DETECTOR_SIZES[1:]),
    Case("ea_mask_rcnn_x101", "ea_mask_rcnn_x101", DETECTOR_SIZES[1:]),
    Case("deeplabv2, aspp", "deeplabv2_kao_kv", ((321, 321), (513, 513)), {"head": "aspp"}),
    Case("deeplabv2_kao_kv", "deeplabv2_kao_kv", ((321, 321), (513, 513))),
    Case("deeplabv2_kao_qkv", "deeplabv2_kao_qkv", ((321, 321), (513, 513))),
    Case("ea_psmnet", "ea_psmnet", ((256, 512), (544, 960)), channels=6,
         attention_off={"attention": "none"}),
    Case("ea_rc3d", "ea_rc3d", ((64, 112, 112), (256, 112, 112)), attention_off={"attention": "none"}),
    # The papers' patches, and part of a volume to restore.
    Case("unet3d_sao_denoise", "unet3d_sao_denoise", ((16, 64, 64), (32, 192, 192)), channels=1,
         attention_off={"attention": "none"}),
    Case("unet3d_sao_project", "unet3d_sao_project", ((50, 64, 64), (50, 192, 192)), channels=1,
         attention_off={"attention": "none"}),
]
# For a run of seconds, which shows that everything works.
QUICK = [Case("sanet, narrow", "sanet", ((64, 64),), {"width": 0.25, "classes": 10}, batches=(1, 4))]

"""Networks by the names and options that the daemon knows them by."""

import functools

from torch import nn

from models.reference import mask_rcnn
from models.reference.deeplabv2 import DeepLabV2
from models.reference.psmnet import PsmNet
from models.reference.sanet import SaNet

ARCHITECTURES = {
    "deeplabv2_kao_kv": functools.partial(DeepLabV2, "kv"),
    "deeplabv2_kao_qkv": functools.partial(DeepLabV2, "qkv"),
    "ea_mask_rcnn_r101": mask_rcnn.r101,
    "ea_mask_rcnn_r50": mask_rcnn.r50,
    "ea_mask_rcnn_x101": mask_rcnn.x101,
    "ea_psmnet": PsmNet,
    "sanet": SaNet,
}


def build(architecture: str, **options) -> nn.Module:
    """Makes a network with fresh weights. Options may be text, as they stand in config.pbtxt, or Python values."""
    if architecture not in ARCHITECTURES:
        raise ValueError(f"unknown architecture '{architecture}'; there are: {', '.join(sorted(ARCHITECTURES))}")
    return ARCHITECTURES[architecture](**options)

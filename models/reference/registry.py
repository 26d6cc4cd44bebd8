"""Builds networks by the daemon's names and options."""

import functools

from torch import nn

from models.reference import mask_rcnn, mobile, residual, unet3d
from models.reference.deeplabv2 import DeepLabV2
from models.reference.psmnet import PsmNet
from models.reference.rc3d import Rc3d

ARCHITECTURES = {
    "attnnet": mobile.attnnet,
    "attnnet_1n": mobile.attnnet_1n,
    "attnnet_pool": mobile.attnnet_pool,
    "deeplabv2_kao_kv": functools.partial(DeepLabV2, "kv"),
    "deeplabv2_kao_qkv": functools.partial(DeepLabV2, "qkv"),
    "ea_mask_rcnn_r101": mask_rcnn.r101,
    "ea_mask_rcnn_r50": mask_rcnn.r50,
    "ea_mask_rcnn_x101": mask_rcnn.x101,
    "ea_psmnet": PsmNet,
    "ea_rc3d": Rc3d,
    "expatt_mobilenetv2": mobile.expatt_mobilenetv2,
    "expatt_resnet101": functools.partial(residual.expatt, "3,4,23,3"),
    "expatt_resnet152": functools.partial(residual.expatt, "3,8,36,3"),
    "expatt_resnet34": functools.partial(residual.expatt, "3,4,6,3", True),
    "expatt_resnet50": functools.partial(residual.expatt, "3,4,6,3"),
    "gsa_resnet101": functools.partial(residual.gsa, "3,4,23,3"),
    "gsa_resnet38": functools.partial(residual.gsa, "2,3,5,2"),
    "gsa_resnet50": functools.partial(residual.gsa, "3,4,6,3"),
    "kanet_kv": mobile.kanet_kv,
    "kanet_qkv": mobile.kanet_qkv,
    "maskrcnn_resnet50_fpn": mask_rcnn.torchvisions,
    "mobilenet_v2": mobile.mobilenet_v2,
    "mobilenetv2": mobile.mobilenetv2,
    "mobilenetv2_kao": mobile.mobilenetv2_kao,
    "mobilenetv2_sao": mobile.mobilenetv2_sao,
    "resnet101": functools.partial(residual.plain, "3,4,23,3"),
    "resnet152": functools.partial(residual.plain, "3,8,36,3"),
    "resnet18": functools.partial(residual.plain, "2,2,2,2", True),
    "resnet34": functools.partial(residual.plain, "3,4,6,3", True),
    "resnet50": functools.partial(residual.plain, "3,4,6,3"),
    "sanet": mobile.sanet,
    "unet3d_sao_denoise": unet3d.denoise,
    "unet3d_sao_project": unet3d.project,
}


def build(architecture: str, **options) -> nn.Module:
    """Makes a network with new weights. Options may be text, as in config.pbtxt, or Python values."""
    if architecture not in ARCHITECTURES:
        raise ValueError(f"unknown architecture '{architecture}'; the architectures are: {', '.join(sorted(ARCHITECTURES))}")
    return ARCHITECTURES[architecture](**options)

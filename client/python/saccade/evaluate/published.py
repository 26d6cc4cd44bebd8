"""The figures that the papers publish for the networks that are served, as data. A row belongs to a model only if all of
the options named here are the model's."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

from saccade import types

_EA = "Efficient Attention"
_KAO = "Kronecker Attention Networks"
_SAO = "Siamese Attention Networks"
_EXPATT = "Explicitly Modeled Attention Maps"
_GSA = "Global Self-Attention Networks"


@dataclasses.dataclass(frozen=True)
class Row:
    """`figures`: by the names and in the units of the evaluation. `folder`: a word of the data set's folder, if the paper
    has several sets of one kind."""

    paper: str
    table: int
    name: str
    dataset: str
    architecture: str
    options: Mapping[str, str]
    figures: Mapping[str, float]
    folder: str = ""


def _top1(paper: str, table: int, name: str, architecture: str, top1: float, **options: str) -> Row:
    return Row(paper, table, name, "imagenet", architecture, options, {"top-1": top1})


def _top5(
    paper: str, table: int, name: str, architecture: str, values: Sequence[float], options: Mapping[str, str]
) -> Row:
    return Row(paper, table, name, "imagenet", architecture, options, {"top-1": values[0], "top-5": values[1]})


_SEVEN = "res3,res4,fpn1,fpn2,fpn3,fpn4,fpn5"


def _coco(table: int, name: str, size: str, box: float, mask: float, attention: str, operator: str = "efficient") -> Row:
    options = {"attention": attention, **({"operator": operator} if attention != "none" else {})}
    return Row(_EA, table, name, "coco", f"ea_mask_rcnn_{size}", options, {"box AP": box, "mask AP": mask})


_DETECTION = [
    _coco(2, "None", "r50", 39.4, 35.1, "none"),
    _coco(3, "EA, ResNet-50", "r50", 41.2, 36.7, _SEVEN),
    _coco(3, "EA, ResNet-101", "r101", 43.1, 37.9, _SEVEN),
    _coco(3, "EA, ResNeXt-101", "x101", 44.9, 39.5, _SEVEN),
    _coco(2, "EA, res3", "r50", 40.2, 36.0, "res3"),
    _coco(2, "EA, res4", "r50", 40.2, 35.9, "res4"),
    _coco(2, "EA, fpn1", "r50", 39.9, 35.8, "fpn1"),
    _coco(2, "EA, fpn2", "r50", 39.7, 35.7, "fpn2"),
    _coco(2, "EA, fpn3", "r50", 39.7, 35.5, "fpn3"),
    _coco(2, "EA, fpn4", "r50", 39.7, 35.4, "fpn4"),
    _coco(2, "EA, fpn5", "r50", 39.6, 35.3, "fpn5"),
    _coco(2, "EA, res3-4+fpn3-5", "r50", 40.6, 36.2, "res3,res4,fpn3,fpn4,fpn5"),
    _coco(2, "Non-local, res3", "r50", 40.3, 35.9, "res3", "non_local"),
    _coco(2, "Non-local, res4", "r50", 40.1, 36.0, "res4", "non_local"),
    _coco(2, "Non-local, fpn3", "r50", 39.8, 35.5, "fpn3", "non_local"),
    _coco(2, "Non-local, fpn4", "r50", 39.5, 35.3, "fpn4", "non_local"),
    _coco(2, "Non-local, fpn5", "r50", 39.4, 35.2, "fpn5", "non_local"),
    _coco(2, "Non-local, res3-4+fpn3-5", "r50", 40.7, 36.3, "res3,res4,fpn3,fpn4,fpn5", "non_local"),
]

_SCENE_FLOW = [
    Row(_EA, 7, "PSMNet (baseline)", "sceneflow", "ea_psmnet", {"attention": "none"}, {"EPE": 0.51}),
    Row(_EA, 7, "EA-PSMNet", "sceneflow", "ea_psmnet", {"attention": "ea"}, {"EPE": 0.48}),
]


def _thumos(name: str, attention: str, *values: float) -> Row:
    figures = {f"mAP@{threshold}": value for threshold, value in zip((0.3, 0.4, 0.5, 0.6, 0.7), values, strict=True)}
    return Row(_EA, 6, name, "thumos14", "ea_rc3d", {"attention": attention}, figures)


_ACTIONS = [
    _thumos("R-C3D", "none", 50.0, 45.6, 37.3, 29.2, 18.5),
    _thumos("EA R-C3D", "res3,res4", 56.8, 51.3, 43.4, 33.2, 21.8),
]


def _voc(name: str, kind: str, accuracy: float, iou: float, head: str) -> Row:
    figures = {"mIoU": iou, "pixel accuracy": accuracy}
    return Row(_KAO, 6, name, "voc", f"deeplabv2_kao_{kind}", {"head": head}, figures)


_SEGMENTATION = [
    _voc("DeepLabV2+KAO KV", "kv", 94.6, 75.9, "kao"),
    _voc("DeepLabV2+KAO QKV", "qkv", 94.6, 75.8, "kao"),
    *(_voc("DeepLabV2+Attn", kind, 94.7, 76.3, "attention") for kind in ("kv", "qkv")),
    *(_voc("DeepLabV2", kind, 94.4, 75.1, "aspp") for kind in ("kv", "qkv")),
]

_SAO_FULL = {"attention": "sao", "similarity": "learned", "global_term": "true"}

_MOBILE = [
    _top1(_SAO, 4, "SANet", "sanet", 73.0, **_SAO_FULL),
    _top1(_SAO, 8, "SANet w/o params", "sanet", 72.8, **{**_SAO_FULL, "similarity": "ones"}),
    _top1(_SAO, 6, "SANet w/o global term", "sanet", 72.8, **{**_SAO_FULL, "global_term": "false"}),
    _top1(_SAO, 6, "SANet w/o SAO", "sanet", 72.1, attention="none"),
    _top1(_SAO, 4, "AttnNet", "attnnet", 73.0, attention="on"),
    _top1(_SAO, 4, "AttnNet+Pool", "attnnet_pool", 72.9, attention="on"),
    _top1(_SAO, 4, "AttnNet 1/N", "attnnet_1n", 73.0, attention="on"),
    _top1(_SAO, 6, "MobileNetV2+SAO", "mobilenetv2_sao", 72.7, **_SAO_FULL),
    _top1(_SAO, 6, "MobileNetV2", "mobilenetv2", 72.0),
    _top1(_KAO, 3, "KANet KV", "kanet_kv", 72.9, attention="kao"),
    _top1(_KAO, 3, "KANet QKV", "kanet_qkv", 72.8, attention="kao"),
    _top1(_KAO, 5, "KANet w/o KAO", "kanet_kv", 72.1, attention="none"),
    _top1(_KAO, 5, "MobileNetV2+KAO", "mobilenetv2_kao", 72.6, attention="kv"),
]


def _expatt() -> list[Row]:
    rows = []
    for depth, own, plain in ((34, (74.24, 91.81), (73.30, 91.42)), (50, (78.13, 94.07), (76.15, 92.87)),
                              (101, (79.56, 94.78), (77.37, 93.56)), (152, (80.02, 94.85), (78.31, 94.06))):
        architecture = f"expatt_resnet{depth}"
        options = {"attention": "expatt", "map": "gaussian", "form": "imagenet", "groups": "2-4"}
        rows.append(_top5(_EXPATT, 3, f"Gaussian-ExpAtt, ResNet{depth}", architecture, own, options))
        rows.append(_top5(_EXPATT, 3, f"ResNet{depth}", architecture, plain, {"attention": "none", "form": "imagenet"}))
    maps = {"cosine": 80.74, "constant": 80.76, "linear": 80.82, "exponential_euclidean": 80.90,
            "exponential_manhattan": 80.91, "gaussian": 81.02}
    for name, top1 in maps.items():
        options = {"attention": "expatt", "map": name, "form": "cifar", "groups": "1-4"}
        rows.append(Row(_EXPATT, 2, f"ExpAtt, {name}", "cifar100", "expatt_resnet50", options, {"top-1": top1}))
    rows.append(Row(_EXPATT, 2, "ResNet50", "cifar100", "expatt_resnet50", {"attention": "none", "form": "cifar"},
                    {"top-1": 79.46}))
    return rows


def _gsa() -> list[Row]:
    whole = {"attention": "gsa", "content": "global", "axes": "both", "groups": "1-4"}
    rows = []
    for depth, own, plain in ((38, (77.8, 93.6, 83.3), (75.9, 92.9, 80.8)), (50, (78.5, 93.9, 83.9), (76.9, 93.5, 81.2)),
                              (101, (79.6, 94.5, 84.4), (78.7, 94.4, 82.8))):
        for name, values, options in ((f"GSA-ResNet-{depth}", own, whole), (f"ResNet-{depth}", plain, {"attention": "none"})):
            architecture = f"gsa_resnet{depth}"
            rows.append(_top5(_GSA, 6, name, architecture, values, options))
            rows.append(Row(_GSA, 6, name, "cifar100", architecture, options, {"top-1": values[2]}))
    components = {("global", "column"): (76.2, 92.7), ("global", "row"): (75.4, 92.2), ("none", "both"): (77.4, 93.5),
                  ("none", "column"): (72.6, 90.8), ("none", "row"): (70.2, 89.4), ("global", "none"): (70.8, 89.5)}
    for (content, axes), top in components.items():
        options = {**whole, "content": content, "axes": axes}
        rows.append(_top5(_GSA, 4, f"content {content}, axes {axes}", "gsa_resnet50", top, options))
    for groups, top in {"2-4": (78.7, 94.1), "3-4": (78.5, 94.1), "4": (77.7, 93.7)}.items():
        rows.append(_top5(_GSA, 5, f"groups {groups}", "gsa_resnet50", top, {**whole, "groups": groups}))
    return rows


def _restoration() -> list[Row]:
    rows = []
    for folder, kind, own, plain in (
        ("planaria", "denoise", (31.929, 0.7898, 0.0257), (31.571, 0.7707, 0.0268)),
        ("tribolium", "denoise", (32.549, 0.9196, 0.0239), (32.433, 0.9171, 0.0241)),
        ("flywing", "project", (22.329, 0.5916, 0.0767), (21.958, 0.5592, 0.0798)),
    ):
        for name, attention, values in (("U-Net+SAO", "sao", own), ("U-Net", "none", plain)):
            figures = dict(zip(("PSNR", "SSIM", "NRMSE"), values, strict=True))
            rows.append(Row(_SAO, 7, f"{name}, {folder.title()}", "care", f"unet3d_sao_{kind}", {"attention": attention},
                            figures, folder))
    return rows


ROWS = [*_DETECTION, *_SCENE_FLOW, *_ACTIONS, *_SEGMENTATION, *_MOBILE, *_expatt(), *_gsa(), *_restoration()]


def row_of(dataset: str, model: types.Model, folder: pathlib.Path) -> Row | None:
    """The row of the model's paper; None if the papers have none, or if the network is narrower than theirs."""
    if model.options.get("width", "1") not in ("1", "1.0"):
        return None
    for row in ROWS:
        belongs = (row.dataset, row.architecture) == (dataset, model.architecture)
        if belongs and row.folder in folder.resolve().name.lower() and _has(model, row.options):
            return row
    return None


def _has(model: types.Model, options: Mapping[str, str]) -> bool:
    # Lists of places may be in another order.
    return all(sorted(model.options.get(name, "").split(",")) == sorted(value.split(","))
               for name, value in options.items())

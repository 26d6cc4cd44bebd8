"""The rows of "Kronecker Attention Networks"."""

from __future__ import annotations

from saccade.evaluate.published.row import Options, Row

_PAPER = "Kronecker Attention Networks"


def _imagenet(table: int, name: str, architecture: str, top1: float, options: Options) -> Row:
    return Row(f"{_PAPER}, table {table}", name, "imagenet", architecture, {**options, "input_size": "224"}, {"top-1": top1})


# The paper gives neither the number of heads nor, of its segmenters, the head's channels. Both are our choice.
_CLASSIFICATION = [
    _imagenet(3, "KANet KV", "kanet_kv", 72.9, {"attention": "kao", "heads": "1"}),
    _imagenet(3, "KANet QKV", "kanet_qkv", 72.8, {"attention": "kao", "heads": "1"}),
    _imagenet(5, "MobileNetV2+KAO", "mobilenetv2_kao", 72.6, {"attention": "kv", "heads": "1"}),
    _imagenet(5, "KANet w/o KAO", "kanet_kv", 72.1, {"attention": "none"}),
]

_HEAD = {"head_channels": "512", "heads": "1"}


def _voc(name: str, kind: str, accuracy: float, iou: float, options: Options) -> Row:
    figures = {"mIoU": iou, "pixel accuracy": accuracy}
    backbone = {"blocks": "3,4,23,3"}
    return Row(f"{_PAPER}, table 6", name, "voc", f"deeplabv2_kao_{kind}", {**options, **backbone}, figures)


_SEGMENTATION = [
    *(_voc("DeepLabV2", kind, 94.4, 75.1, {"head": "aspp"}) for kind in ("kv", "qkv")),
    *(_voc("DeepLabV2+Attn", kind, 94.7, 76.3, {"head": "attention", **_HEAD}) for kind in ("kv", "qkv")),
    _voc("DeepLabV2+KAO KV", "kv", 94.6, 75.9, {"head": "kao", **_HEAD}),
    _voc("DeepLabV2+KAO QKV", "qkv", 94.6, 75.8, {"head": "kao", **_HEAD}),
]

ROWS = [*_CLASSIFICATION, *_SEGMENTATION]

"""The rows of "Global Self-Attention Networks for Image Recognition"."""

from __future__ import annotations

from saccade.evaluate.published.row import Options, Row

_PAPER = "Global Self-Attention Networks"
_BLOCKS = {38: "2,3,5,2", 50: "3,4,6,3", 101: "3,4,23,3"}
_GSA = {"attention": "gsa", "content": "global", "axes": "both", "groups": "1-4", "heads": "8"}
# "A single 224x224 center crop" of ImageNet; and of CIFAR-100, "for both training and evaluation, we use 224x224 input
# images".
_SHAPE = {"input_size": "224", "expansion": "4"}


def _row(
    dataset: str, table: int, name: str, figures: dict[str, float], options: Options, depth: int = 50
) -> Row:
    every = {**_SHAPE, "blocks": _BLOCKS[depth], **options}
    return Row(f"{_PAPER}, table {table}", name, dataset, f"gsa_resnet{depth}", every, figures)


def _imagenet(table: int, name: str, top1: float, top5: float, **others: str) -> Row:
    return _row("imagenet", table, name, {"top-1": top1, "top-5": top5}, {**_GSA, **others})


# Table 6: top-1 and top-5 on ImageNet, and top-1 on CIFAR-100, of the convolutions and of GSA.
_TABLE_6 = {
    38: ((75.9, 92.9, 80.8), (77.8, 93.6, 83.3)),
    50: ((76.9, 93.5, 81.2), (78.5, 93.9, 83.9)),
    101: ((78.7, 94.4, 82.8), (79.6, 94.5, 84.4)),
}


def _table_6() -> list[Row]:
    rows = []
    for depth, (plain, own) in _TABLE_6.items():
        for name, options, (top1, top5, cifar) in ((f"ResNet-{depth}", {"attention": "none"}, plain),
                                                   (f"GSA-ResNet-{depth}", _GSA, own)):
            rows.append(_row("imagenet", 6, name, {"top-1": top1, "top-5": top5}, options, depth))
            rows.append(_row("cifar100", 6, name, {"top-1": cifar}, options, depth))
    return rows


ROWS = [
    _imagenet(2, "axial content and positional attention", 77.5, 93.6, content="axial"),
    # "Halves the number of input and output channels of all residual blocks and scales the number of filters in every layer
    # by 1.125."
    _imagenet(3, "M-ResNet-50", 78.2, 93.9, expansion="2", width="1.125"),
    _imagenet(4, "columns and rows", 77.4, 93.5, content="none"),
    _imagenet(4, "content and columns", 76.2, 92.7, axes="column"),
    _imagenet(4, "content and rows", 75.4, 92.2, axes="row"),
    _imagenet(4, "columns", 72.6, 90.8, content="none", axes="column"),
    _imagenet(4, "rows", 70.2, 89.4, content="none", axes="row"),
    _imagenet(4, "content", 70.8, 89.5, axes="none"),
    _imagenet(5, "groups 2-4", 78.7, 94.1, groups="2-4"),
    _imagenet(5, "groups 3-4", 78.5, 94.1, groups="3-4"),
    _imagenet(5, "group 4", 77.7, 93.7, groups="4"),
    *_table_6(),
]

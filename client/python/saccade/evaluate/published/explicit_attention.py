"""The rows of "Explicitly Modeled Attention Maps for Image Classification"."""

from __future__ import annotations

from saccade.evaluate.published.row import Options, Row

_PAPER = "Explicitly Modeled Attention Maps"
_EXPATT = {"attention": "expatt", "plus_one": "true", "shared_map": "true"}
_IMAGENET = {"form": "imagenet", "input_size": "224"}
_CIFAR = {"form": "cifar", "input_size": "32", "blocks": "3,4,6,3"}

# Table 3: top-1 and top-5 of the plain ResNet, and of Gaussian-ExpAtt.
_TABLE_3 = {
    34: ("3,4,6,3", (73.30, 91.42), (74.24, 91.81)),
    50: ("3,4,6,3", (76.15, 92.87), (78.13, 94.07)),
    101: ("3,4,23,3", (77.37, 93.56), (79.56, 94.78)),
    152: ("3,8,36,3", (78.31, 94.06), (80.02, 94.85)),
}


def _imagenet() -> list[Row]:
    rows = []
    for depth, (blocks, plain, own) in _TABLE_3.items():
        attends = {**_EXPATT, "map": "gaussian", "groups": "2-4"}
        for name, top, options in ((f"ResNet{depth}", plain, {"attention": "none"}),
                                   (f"Gaussian-ExpAtt, ResNet{depth}", own, attends)):
            rows.append(Row(f"{_PAPER}, table 3", name, "imagenet", f"expatt_resnet{depth}",
                            {**options, **_IMAGENET, "blocks": blocks}, {"top-1": top[0], "top-5": top[1]}))
    return rows


def _cifar100(place: str, name: str, top1: float, options: Options) -> Row:
    return Row(f"{_PAPER}, {place}", name, "cifar100", "expatt_resnet50", {**options, **_CIFAR}, {"top-1": top1})


def _expatt(place: str, name: str, top1: float, **others: str) -> Row:
    return _cifar100(place, name, top1, {**_EXPATT, "groups": "1-4", **others})


# "Uniform" is the map `constant`.
_CIFAR100 = [
    _cifar100("table 2", "ResNet50", 79.46, {"attention": "none"}),
    _expatt("table 2", "ExpAtt, cosine", 80.74, map="cosine"),
    _expatt("table 2", "ExpAtt, uniform", 80.76, map="constant"),
    _expatt("table 2", "ExpAtt, linear", 80.82, map="linear"),
    _expatt("table 2", "ExpAtt, exp. Euclid.", 80.90, map="exponential_euclidean"),
    _expatt("table 2", "ExpAtt, exp. Man.", 80.91, map="exponential_manhattan"),
    _expatt("table 2", "ExpAtt, Gaussian", 81.02, map="gaussian"),
    _expatt('"Ablation Study"', "a map for each head", 80.78, map="gaussian", shared_map="false"),
    _expatt('"Ablation Study"', "without plus one", 80.42, map="gaussian", plus_one="false"),
]

ROWS = [*_imagenet(), *_CIFAR100]

"""The figures that the papers publish for the networks that are served: a module for each paper."""

from __future__ import annotations

import dataclasses
import pathlib

from saccade import types
from saccade.evaluate.published import (
    efficient_attention,
    explicit_attention,
    global_self_attention,
    kronecker_attention,
    siamese_attention,
)
from saccade.evaluate.published.row import Row as Row

ROWS = [
    *efficient_attention.ROWS, *kronecker_attention.ROWS, *siamese_attention.ROWS, *explicit_attention.ROWS,
    *global_self_attention.ROWS,
]


@dataclasses.dataclass(frozen=True)
class _Measured:
    """The part of a data set on which the papers' figures are measured, and the numbers of classes that a model of the whole
    set may have. Empty for tasks without classes."""

    split: str
    classes: tuple[int, ...] = ()


# COCO's 80 categories come with the background, or by COCO's own numbers up to 90.
_MEASURED = {
    "coco": _Measured("val2017", (81, 91)),
    "voc": _Measured("val", (21,)),
    "imagenet": _Measured("val", (1000,)),
    "cifar100": _Measured("test", (100,)),
    "sceneflow": _Measured("TEST"),
    "thumos14": _Measured("test", (21,)),
    "care": _Measured("test_data"),
}


def row_of(dataset: str, model: types.Model, folder: pathlib.Path, split: str | None = None) -> Row | None:
    """The row of the model's network in its paper. None if the papers have none, or if another part of the data set, or a set
    with other classes, was measured. `split` is as Options has it: None is the usual one."""
    measured = _MEASURED.get(dataset)
    if measured is None or split not in (None, measured.split):
        return None
    if measured.classes and model.classes not in measured.classes:
        return None
    for row in ROWS:
        belongs = (row.dataset, row.architecture) == (dataset, model.architecture)
        if belongs and row.folder in folder.resolve().name.lower() and _is(model, row):
            return row
    return None


def _is(model: types.Model, row: Row) -> bool:
    options = {"width": "1", **row.options}
    return all(_normal(name, model.options.get(name, "")) == _normal(name, value) for name, value in options.items())


def _normal(name: str, value: str) -> str:
    # The places of attention are in any order.
    return ",".join(sorted(value.split(","))) if name == "attention" else value

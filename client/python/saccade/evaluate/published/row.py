"""One row of a paper's tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

Options = Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Row:
    """A network of a paper, and the figures that the paper publishes for it.

    `source`: the paper and its tables. `options`: the values of all options that make another network of the architecture;
    `width` is 1 unless it is named. `figures`: by the names and in the units of the evaluation. `folder`: a word of the
    data set's folder, if the paper has several sets of one kind."""

    source: str
    name: str
    dataset: str
    architecture: str
    options: Options
    figures: Mapping[str, float]
    folder: str = ""

"""Masks in COCO's run lengths, and as pixels."""

from __future__ import annotations

import dataclasses
import enum
import functools
from typing import Any

import numpy
from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True, eq=False)
class Mask:
    """A mask of the whole picture. `pixels` decodes it when it is first asked for."""

    height: int
    width: int
    # COCO's compressed text.
    counts: str
    # Pixels in the mask.
    area: int

    @functools.cached_property
    def pixels(self) -> NDArray[numpy.bool_]:
        """[height, width]. ValueError if the run lengths do not fit the picture."""
        return decode(self.counts, self.height, self.width)

    @property
    def coco(self) -> dict[str, Any]:
        """What pycocotools.mask.decode takes."""
        return {"size": [self.height, self.width], "counts": self.counts}


class MaskForm(enum.Enum):
    RLE = "RLE"
    PNG = "PNG"
    POLYGONS = "POLYGONS"


@dataclasses.dataclass(frozen=True, eq=False)
class MaskPicture:
    """The part of the picture that a mask lies in; no sides, and no PNG, if the mask has no pixels."""

    x: int
    y: int
    width: int
    height: int
    # 8 bits grey: 255 in the mask, 0 beside it.
    png: bytes
    # Pixels in the mask.
    area: int


@dataclasses.dataclass(frozen=True, eq=False)
class MaskPolygon:
    # [n, 2]: x and y, in whole pixels of the picture, around.
    points: NDArray[numpy.int32]
    # Around what is no part of the mask; its points are.
    hole: bool


@dataclasses.dataclass(frozen=True, eq=False)
class MaskPolygons:
    """Filled together, by even and odd and with their edges (cv2.fillPoly), they are the mask to the pixel."""

    polygons: tuple[MaskPolygon, ...]
    # Pixels in the mask.
    area: int


def runs_of(counts: str) -> list[int]:
    """The run lengths, zeros first. A number has five bits a digit, the least first, and a sign; from the fourth on
    it is the difference to the last but one."""
    runs: list[int] = []
    number = shift = 0
    for at, character in enumerate(counts):
        digit = ord(character) - 48
        if not 0 <= digit < 64:
            raise ValueError(f"mask: {character!r} at {at} is no digit of COCO's run lengths")
        number |= (digit & 31) << shift
        shift += 5
        if digit & 32:
            continue
        if digit & 16:
            number -= 1 << shift
        runs.append(number + (runs[-2] if len(runs) > 2 else 0))
        number = shift = 0
    if shift:
        raise ValueError("mask: the run lengths end in the middle of a number")
    return runs


def decode(counts: str, height: int, width: int) -> NDArray[numpy.bool_]:
    runs = runs_of(counts)
    if min(runs, default=0) < 0 or sum(runs) != height * width:
        raise ValueError(f"mask: runs of {sum(runs)} pixels; the picture has {height} x {width}")
    inside = numpy.arange(len(runs)) % 2 == 1
    # COCO goes down the columns.
    return numpy.repeat(inside, runs).reshape(width, height).T

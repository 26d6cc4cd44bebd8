"""Masks: as COCO's run lengths, PNGs or polygons, and decoded to pixels."""

from __future__ import annotations

import dataclasses
import enum
import functools
from typing import Any

import numpy
from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True, eq=False)
class Mask:
    """A mask of the whole picture. `pixels` decodes it on first use."""

    height: int
    width: int
    # COCO's compressed text.
    counts: str
    # Number of pixels in the mask.
    area: int

    @functools.cached_property
    def pixels(self) -> NDArray[numpy.bool_]:
        """An array [height, width]. Raises ValueError if the run lengths do not fit the picture."""
        return decode(self.counts, self.height, self.width)

    @property
    def coco(self) -> dict[str, Any]:
        """The argument of pycocotools.mask.decode."""
        return {"size": [self.height, self.width], "counts": self.counts}


class MaskForm(enum.Enum):
    RLE = "RLE"
    PNG = "PNG"
    POLYGONS = "POLYGONS"


@dataclasses.dataclass(frozen=True, eq=False)
class MaskPicture:
    """The part of the picture that a mask lies in. Size 0 x 0 and no PNG if the mask has no pixels."""

    x: int
    y: int
    width: int
    height: int
    # An 8-bit grey PNG: 255 inside the mask, 0 outside.
    png: bytes
    # Number of pixels in the mask.
    area: int


@dataclasses.dataclass(frozen=True, eq=False)
class MaskPolygon:
    # [n, 2]: x and y of the points along the outline, in whole pixels of the picture.
    points: NDArray[numpy.int32]
    # True if the polygon encloses a hole. Its points still belong to the mask.
    hole: bool


@dataclasses.dataclass(frozen=True, eq=False)
class MaskPolygons:
    """Filling all polygons together by the even-odd rule, edges included (cv2.fillPoly), reproduces the mask."""

    polygons: tuple[MaskPolygon, ...]
    # Number of pixels in the mask.
    area: int


def runs_of(counts: str) -> list[int]:
    """Returns the run lengths, starting with zeros. Numbers have five bits per digit, lowest first, and a sign; from
    the fourth on they are the difference to the last run but one."""
    runs: list[int] = []
    number = shift = 0
    for at, character in enumerate(counts):
        digit = ord(character) - 48
        if not 0 <= digit < 64:
            raise ValueError(f"mask: {character!r} at {at} is not a digit of COCO's run lengths")
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
        raise ValueError(f"mask: the run lengths cover {sum(runs)} pixels; expected {height} x {width}")
    inside = numpy.arange(len(runs)) % 2 == 1
    # COCO's order is column by column.
    return numpy.repeat(inside, runs).reshape(width, height).T


def encode(inside: NDArray[numpy.bool_]) -> str:
    """Returns the compressed run lengths of a mask [height, width], the opposite of `decode`."""
    flat = numpy.asarray(inside, bool).T.ravel()
    edges = numpy.flatnonzero(flat[1:] != flat[:-1]) + 1
    # The first run is of zeros, and may be empty.
    starts = [0] if flat.size == 0 or not flat[0] else [0, 0]
    runs = numpy.diff(numpy.concatenate([starts, edges, [flat.size]])).tolist()
    text = []
    for at, run in enumerate(runs):
        number = run - runs[at - 2] if at > 2 else run
        while True:
            digit = number & 31
            number >>= 5
            more = number != (-1 if digit & 16 else 0)
            text.append(chr(48 + (digit | 32 if more else digit)))
            if not more:
                break
    return "".join(text)

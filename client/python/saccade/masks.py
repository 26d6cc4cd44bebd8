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


def encode_values(values: NDArray[Any]) -> dict[Any, str]:
    """Returns for each value of a map [height, width] the compressed run lengths of the mask of its pixels. Its time
    hardly depends on how many values there are."""
    flat = values.T.ravel()
    if flat.size == 0:
        return {}
    edges = numpy.flatnonzero(flat[1:] != flat[:-1]) + 1
    bounds = numpy.concatenate([[0], edges, [flat.size]])
    # The runs of the first value, in the order of the picture, then those of the second, and so on.
    order = numpy.argsort(flat[bounds[:-1]], kind="stable")
    of_runs, starts, ends = flat[bounds[:-1]][order], bounds[:-1][order], bounds[1:][order]
    firsts = numpy.flatnonzero(numpy.concatenate([[True], of_runs[1:] != of_runs[:-1]]))
    lasts = numpy.concatenate([firsts[1:], [len(order)]]) - 1
    # For each run the zeros before it, and itself. The first zeros may be none.
    before = numpy.concatenate([[0], ends[:-1]])
    before[firsts] = 0
    runs = numpy.stack([starts - before, ends - starts], 1).ravel()
    # Behind the last run of a value the zeros to the end of the picture, if there are any.
    behind = flat.size - ends[lasts]
    has_behind = behind > 0
    runs = numpy.insert(runs, 2 * (lasts[has_behind] + 1), behind[has_behind])
    begins = 2 * firsts + numpy.concatenate([[0], numpy.cumsum(has_behind)[:-1]])
    return dict(zip(of_runs[firsts].tolist(), _texts(runs, begins)))


def _texts(runs: NDArray[numpy.int64], begins: NDArray[numpy.int64]) -> list[str]:
    """The opposite of `runs_of`, for several masks together: `begins` are the places in `runs` at which one begins."""
    numbers = runs.copy()
    numbers[2:] -= runs[:-2]
    # The first three of a mask are no differences.
    whole = (begins[:, None] + numpy.arange(3)).ravel()
    whole = whole[(whole < len(runs)) & (whole < numpy.append(begins[1:], len(runs)).repeat(3))]
    numbers[whole] = runs[whole]
    digits, is_digit = [], [numpy.ones(len(runs), bool)]
    while is_digit[-1].any():
        low = (numbers & 31).astype(numpy.uint8)
        numbers >>= 5
        # A number ends with the digit whose sign says all that is left.
        more = numbers != -(low >> 4).astype(numpy.int8)
        digits.append(48 + low + 32 * more.astype(numpy.uint8))
        is_digit.append(is_digit[-1] & more)
    is_text = numpy.stack(is_digit[:-1], 1)
    text = numpy.stack(digits, 1)[is_text].tobytes().decode("ascii")
    ends = numpy.cumsum(is_text.sum(1))
    cuts = [0, *ends[begins[1:] - 1].tolist(), len(text)]
    return [text[start:end] for start, end in zip(cuts, cuts[1:])]

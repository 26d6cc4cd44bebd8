"""Reads the files of data sets: lists, label pictures, disparities and volumes. Errors name the file and what to do."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import numpy
from numpy.typing import NDArray

from saccade.evaluate.failures import EvaluateError

_MAX_LINES = 10_000_000
# Voxels of a volume: 8 GiB as float64.
_MAX_VOXELS = 1 << 30
_MAX_PFM_PIXELS = 1 << 28


def folder(path: pathlib.Path, what: str) -> pathlib.Path:
    if not path.is_dir():
        raise EvaluateError(f"{path} is not a folder; expected {what} there")
    return path


def first_folder(paths: list[pathlib.Path], what: str) -> pathlib.Path:
    """The first of the folders that exists."""
    for path in paths:
        if path.is_dir():
            return path
    raise EvaluateError(f"found no folder {' or '.join(map(str, paths))}; expected {what} there")


def part(whole: pathlib.Path, split: str | None, usual: str, what: str) -> pathlib.Path:
    """The folder of a split; without one, the usual split's, or the given folder if it is that one itself."""
    return folder(whole / split, what) if split else first_folder([whole / usual, whole], what)


def file(path: pathlib.Path, what: str) -> pathlib.Path:
    if not path.is_file():
        raise EvaluateError(f"{path} is missing; expected {what}")
    return path


def listed(path: pathlib.Path, pattern: str, what: str) -> list[pathlib.Path]:
    """The files in a folder that match the pattern, in the order of their names."""
    found = sorted(folder(path, what).glob(pattern))
    if not found:
        raise EvaluateError(f"{path} has no {pattern}; expected {what}")
    return found


def lines(path: pathlib.Path, what: str) -> list[str]:
    """The lines of a text that are not empty."""
    try:
        with open(file(path, what), encoding="utf-8") as text:
            found = [line.strip() for _, line in zip(range(_MAX_LINES), text)]
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluateError(f"{path} cannot be read: {error}; expected {what}") from None
    kept = [line for line in found if line]
    if not kept:
        raise EvaluateError(f"{path} is empty; expected {what}")
    return kept


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise EvaluateError("Pillow is not installed; it comes with: pip install 'saccade[evaluate]'") from None
    return Image


def numbers(path: pathlib.Path, what: str) -> NDArray[Any]:
    """The numbers of a picture with one channel, as they are in the file: indices of a palette, not its colours."""
    image = _pillow()
    try:
        with image.open(file(path, what)) as opened:
            if opened.mode not in ("L", "P", "I", "I;16", "I;16B"):
                raise EvaluateError(f"{path} has pixels of mode {opened.mode}; expected one channel: {what}")
            return numpy.array(opened)
    except (OSError, ValueError, SyntaxError, image.DecompressionBombError) as error:
        raise EvaluateError(f"{path} cannot be read: {error}; expected {what}") from None


def size(path: pathlib.Path) -> tuple[int, int]:
    """Height and width of a picture, from its header."""
    image = _pillow()
    try:
        with image.open(path) as opened:
            return opened.height, opened.width
    except (OSError, ValueError, SyntaxError, image.DecompressionBombError) as error:
        raise EvaluateError(f"{path} cannot be read: {error}; expected a picture") from None


def volume(path: pathlib.Path, what: str) -> NDArray[Any]:
    """A TIFF's pages as [depth, height, width]."""
    image = _pillow()
    planes, voxels = [], 0
    try:
        with image.open(file(path, what)) as opened:
            for page in range(getattr(opened, "n_frames", 1)):
                opened.seek(page)
                if opened.mode not in ("L", "I", "I;16", "I;16B", "F"):
                    raise EvaluateError(f"{path} has voxels of mode {opened.mode}; expected one channel: {what}")
                voxels += opened.height * opened.width
                if voxels > _MAX_VOXELS:
                    raise EvaluateError(f"{path} has more than {_MAX_VOXELS} voxels; expected {what}")
                planes.append(numpy.array(opened))
        return numpy.stack(planes)
    except (OSError, ValueError, SyntaxError, EOFError, image.DecompressionBombError) as error:
        raise EvaluateError(f"{path} cannot be read: {error}; expected {what}") from None


def kitti_disparity(path: pathlib.Path) -> NDArray[numpy.float64]:
    """Disparities of KITTI: a PNG of 16 bits with 256 times the disparity; NaN where it has 0, no measurement."""
    values = numbers(path, "a PNG of 16 bits with 256 times the disparity").astype(numpy.float64)
    return numpy.where(values > 0, values / 256, numpy.nan)


def pfm(path: pathlib.Path) -> NDArray[numpy.float64]:
    """A portable float map with one channel, [height, width] with the upper row first. In the file the lowest row is
    first, and a negative scale means little-endian numbers."""
    what = "a portable float map with one channel (Pf)"
    try:
        content = file(path, what).read_bytes()
    except OSError as error:
        raise EvaluateError(f"{path} cannot be read: {error.strerror}; expected {what}") from None
    head = re.match(rb"Pf\s+(\d{1,9})\s+(\d{1,9})\s+(-?\d{1,9}(?:\.\d{0,9})?)[ \t\r]*\n", content[:128])
    if head is None:
        raise EvaluateError(f"{path} does not start like a float map; expected {what}")
    width, height, scale = int(head[1]), int(head[2]), float(head[3])
    body = content[head.end():]
    if not 0 < width * height <= _MAX_PFM_PIXELS or len(body) != 4 * width * height:
        raise EvaluateError(f"{path} has {len(body)} bytes of numbers; expected 4 x {width} x {height}")
    values = numpy.frombuffer(body, "<f4" if scale < 0 else ">f4").reshape(height, width)
    return values[::-1].astype(numpy.float64)

"""Converts pictures, clips and volumes from Python's usual types to the daemon's messages."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Union, cast

import numpy
from numpy.typing import NDArray

from saccade.v1 import vision_pb2 as pb

if TYPE_CHECKING:
    from PIL.Image import Image

Order = Literal["RGB", "BGR"]


class Pixels:
    """An array with a given channel order, for example `Pixels(cv2.imread(path), "BGR")`."""

    def __init__(self, array: NDArray[numpy.uint8], order: Order = "RGB") -> None:
        if order not in ("RGB", "BGR"):
            raise ValueError(f"order: is {order!r}; expected 'RGB' or 'BGR'")
        self.array = array
        self.order: Order = order


Path = Union[str, "os.PathLike[str]"]
# A path or bytes: an encoded picture (JPEG, PNG, WebP, TIFF, BMP), sent unchanged. An array: uint8 [height, width, 3] in RGB,
# or [height, width]. Of a PIL image only the pixels are sent, without the EXIF orientation.
Picture = Union[Path, bytes, NDArray[numpy.uint8], Pixels, "Image"]
# A path or bytes: a video file. A sequence of pictures, or an array [frames, height, width, 3]: the frames.
Clip = Union[Path, bytes, NDArray[numpy.uint8], Sequence[Picture]]
# A path or bytes: a TIFF file. An array: [depth, height, width] of uint8, uint16 or float32.
Volume = Union[Path, bytes, NDArray[Any]]

_VOXELS = {"uint8": pb.VolumeShape.UINT8, "uint16": pb.VolumeShape.UINT16, "float32": pb.VolumeShape.FLOAT32}


def encoded_bytes(given: Path | bytes | bytearray | memoryview) -> bytes:
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(given)
    return pathlib.Path(given).read_bytes()


def is_file(given: object) -> bool:
    return isinstance(given, (str, os.PathLike, bytes, bytearray, memoryview))


def raw_picture(pixels: Pixels) -> pb.RawPicture:
    array = numpy.asarray(pixels.array)
    if array.dtype != numpy.uint8:
        raise TypeError(f"picture: is an array of {array.dtype}; expected uint8, 0 to 255")
    if array.ndim == 2:
        array = numpy.repeat(array[:, :, None], 3, axis=2)
    if array.ndim != 3 or array.shape[2] != 3:
        raise ValueError(f"picture: is an array of shape {array.shape}; expected (height, width, 3) or (height, width)")
    height, width = array.shape[:2]
    order = pb.RawPicture.RGB if pixels.order == "RGB" else pb.RawPicture.BGR
    return pb.RawPicture(width=width, height=height, order=order, pixels=numpy.ascontiguousarray(array).tobytes())


def pixels_of_pil(image: Image) -> NDArray[numpy.uint8]:
    """Returns the pixels in RGB or grey. Of 16 bits the upper eight are kept, as the daemon does with files; Pillow's
    own conversion clips them. Raises TypeError for 32 bits, whose range is unknown."""
    if image.mode.startswith("I;16"):
        return (numpy.asarray(image) >> 8).astype(numpy.uint8)
    if image.mode in ("I", "F"):
        raise TypeError(
            f"picture: is a PIL picture of mode {image.mode}, 32 bits a channel; expected 8 or 16 bits; send the file "
            "if that has so many, or convert the values to uint8, 0 to 255"
        )
    return numpy.asarray(image.convert("RGB"))


def picture(given: Picture) -> pb.Picture:
    if is_file(given):
        return pb.Picture(encoded=encoded_bytes(given))  # type: ignore[arg-type]
    if isinstance(given, Pixels):
        return pb.Picture(raw=raw_picture(given))
    if isinstance(given, numpy.ndarray):
        return pb.Picture(raw=raw_picture(Pixels(given)))
    # Recognised by its method, so that Pillow need not be installed.
    if hasattr(given, "convert"):
        return pb.Picture(raw=raw_picture(Pixels(pixels_of_pil(given))))
    raise TypeError(f"picture: is a {type(given).__name__}; expected a path, bytes, a NumPy array or a PIL picture")


def clip(given: Clip, frames_per_second: float) -> pb.Clip:
    if is_file(given):
        if frames_per_second:
            raise ValueError("frames_per_second: is for frames only; leave it out for a video file")
        return pb.Clip(video=encoded_bytes(given))  # type: ignore[arg-type]
    if isinstance(given, numpy.ndarray) and (given.ndim != 4 or given.shape[3] != 3):
        raise ValueError(f"clip: is an array of shape {given.shape}; expected (frames, height, width, 3)")
    # A PIL picture is recognised by its method.
    if isinstance(given, Pixels) or hasattr(given, "convert") or not isinstance(given, Iterable):
        raise TypeError(
            f"clip: is a {type(given).__name__}; expected a video's path or bytes, a sequence of pictures, or a NumPy "
            "array (frames, height, width, 3); put a single picture into a list"
        )
    frames = [picture(frame) for frame in cast("Sequence[Picture]", given)]
    return pb.Clip(frames=pb.Frames(pictures=frames, frames_per_second=frames_per_second))


def voxel_type(name: str) -> pb.VolumeShape.Type:
    if name not in _VOXELS:
        raise ValueError(f"volume: has voxels of type {name}; expected one of {', '.join(_VOXELS)}")
    return _VOXELS[name]


def raw_volume(array: NDArray[Any]) -> tuple[pb.VolumeShape, memoryview]:
    """Returns the shape, and the bytes; without a copy if the array is contiguous and little-endian."""
    if array.ndim != 3 or array.size == 0:
        raise ValueError(f"volume: is an array of shape {array.shape}; expected (depth, height, width)")
    kind = voxel_type(array.dtype.name)
    laid = numpy.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
    depth, height, width = array.shape
    return pb.VolumeShape(depth=depth, height=height, width=width, type=kind), laid.data.cast("B")

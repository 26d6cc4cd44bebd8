"""The pictures of captured requests, and maps as pictures, for the report."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy
from google.protobuf import json_format
from google.protobuf.message import DecodeError

from saccade.replay import answers
from saccade.replay.segments import Captured
from saccade.v1 import vision_pb2 as pb

# Those that browsers show.
_MAGICS = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png", b"BM": "image/bmp"}
_MAX_BYTES = 4 << 20


def media_type(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGICS.items() if data.startswith(magic)), None)


def png(pixels: numpy.ndarray) -> bytes:
    """A PNG of grey [height, width] or RGB [height, width, 3] pixels of 8 bits."""
    height, width = pixels.shape[:2]
    colour = 2 if pixels.ndim == 3 else 0
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 6)) + chunk(b"IEND", b"")


def address(data: bytes) -> str | None:
    """A data: address for a file that browsers show and that is not too large for a page; else None."""
    kind = media_type(data)
    if kind is None or len(data) > _MAX_BYTES:
        return None
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _of_raw(raw: pb.RawPicture) -> bytes:
    pixels = numpy.frombuffer(raw.pixels, numpy.uint8).reshape(raw.height, raw.width, 3)
    return png(pixels[:, :, ::-1] if raw.order == pb.RawPicture.BGR else pixels)


def _of_request(request: pb.PredictRequest) -> bytes:
    kind = request.WhichOneof("input")
    if kind == "encoded":
        return request.encoded
    if kind == "stereo":
        left = request.stereo.left
        return left.encoded if left.WhichOneof("content") == "encoded" else _of_raw(left.raw)
    return _of_raw(request.raw) if kind == "raw" else b""


def _of_tensor(request: bytes) -> bytes:
    """The first picture file in a tensor of BYTES: each element is its length and its bytes."""
    for magic in _MAGICS:
        at = request.find(magic)
        if at >= 4 and len(magic) > 2:
            (length,) = struct.unpack_from("<I", request, at - 4)
            return request[at : at + length]
    return b""


def picture_of(captured: Captured) -> bytes:
    """The request's picture as a file; empty if it has none, or none that can be found."""
    try:
        if (request := answers.request_of(captured.target, captured.request)) is not None:
            return _of_request(request)
        if captured.target.startswith("/v1/predict/"):
            return captured.request
        return _of_tensor(captured.request)
    except (ValueError, DecodeError, json_format.ParseError):
        return b""


def _colours() -> numpy.ndarray:
    """A colour for each of 256 classes; neighbours differ."""
    index = numpy.arange(256)
    return numpy.stack([(index * step + 40) % 216 + 20 for step in (67, 131, 29)], 1).astype(numpy.uint8)


def map_of(answer: answers.Answer, low: float, high: float) -> bytes:
    """A label map in colours, or a disparity map in grey from `low` to `high`, as PNG; empty for other results."""
    result = answer.result
    if result is None:
        return b""
    kind = result.WhichOneof("result")
    if kind == "segmentation":
        found = result.segmentation
        if found.format != pb.SegmentationOptions.RAW:
            return found.label_map if media_type(found.label_map) else b""
        return png(_colours()[numpy.frombuffer(found.label_map, numpy.uint8).reshape(found.height, found.width)])
    if kind == "disparity" and len(result.disparity.map) == 4 * result.disparity.width * result.disparity.height:
        found = result.disparity
        values = numpy.nan_to_num(numpy.frombuffer(found.map, "<f4").reshape(found.height, found.width), posinf=0, neginf=0)
        return png(numpy.clip((values - low) / max(high - low, 1e-9) * 255, 0, 255).astype(numpy.uint8))
    return b""

"""Pictures to send: whole ones, broken ones, and ones that claim too much."""

import io
import struct
import zlib

import numpy
from PIL import Image


def pixels(seed, width=256, height=256):
    """8-bit RGB, [height, width, 3]: coarse blocks, so that networks see structure."""
    blocks = numpy.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=numpy.uint8)
    return numpy.asarray(Image.fromarray(blocks).resize((width, height), Image.NEAREST))


def encoded(array, format="PNG", **options):
    out = io.BytesIO()
    Image.fromarray(array).save(out, format, **options)
    return out.getvalue()


def truncated_jpeg():
    whole = encoded(pixels(0), "JPEG")
    return whole[: len(whole) // 2]


def png_claiming(width, height):
    """A well-formed PNG header with right checksums, and next to nothing behind it."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(1000)))
        + chunk(b"IEND", b"")
    )

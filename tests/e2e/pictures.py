"""Pictures to send: valid ones, broken ones, and ones with false headers."""

import io
import struct
import zlib

import numpy
from PIL import Image


def pixels(seed, width=256, height=256):
    """8-bit RGB [height, width, 3] in coarse blocks, so that networks see structure."""
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
    """A valid PNG header with correct checksums, followed by almost no data."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(1000)))
        + chunk(b"IEND", b"")
    )


def video(frames, rate):
    """An AVI of these pictures as Motion JPEG."""

    def chunk(kind, data):
        return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)

    def listed(kind, data):
        return chunk(b"LIST", kind + data)

    height, width = frames[0].shape[:2]
    pictures = [encoded(frame, "JPEG", quality=95) for frame in frames]
    largest = max(map(len, pictures))
    main = struct.pack("<10I16x", round(1e6 / rate), largest * round(rate), 0, 0x10, len(frames), 0, 1, largest, width,
                       height)
    stream = struct.pack("<4s4sIHHIIIIIIII4H", b"vids", b"MJPG", 0, 0, 0, 0, 1, round(rate), 0, len(frames), largest,
                         0xFFFFFFFF, 0, 0, 0, width, height)
    format_ = struct.pack("<IiiHH4sIiiII", 40, width, height, 1, 24, b"MJPG", width * height * 3, 0, 0, 0, 0)
    header = listed(b"hdrl", chunk(b"avih", main) + listed(b"strl", chunk(b"strh", stream) + chunk(b"strf", format_)))
    body = b"".join(chunk(b"00dc", picture) for picture in pictures)
    index, at = b"", 4
    for picture in pictures:
        index += struct.pack("<4sIII", b"00dc", 0x10, at, len(picture))
        at += 8 + len(picture) + len(picture) % 2
    return chunk(b"RIFF", b"AVI " + header + listed(b"movi", body) + chunk(b"idx1", index))


def tiff(volume):
    """A TIFF with one page per plane, of uint8, uint16 or float32."""
    modes = {"uint8": "L", "uint16": "I;16", "float32": "F"}
    pages = [Image.frombytes(modes[volume.dtype.name], plane.shape[::-1], plane.tobytes()) for plane in volume]
    out = io.BytesIO()
    pages[0].save(out, "TIFF", save_all=True, append_images=pages[1:])
    return out.getvalue()

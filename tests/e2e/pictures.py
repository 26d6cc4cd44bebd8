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


def webm(frames, rate):
    """A WebM of these pictures, which browsers play: each frame of VP8 is a key frame, and a WebP with losses holds one."""

    def element(kind, data):
        """An element of EBML, with its size in eight bytes."""
        return bytes.fromhex(kind) + struct.pack(">Q", len(data) | 1 << 56) + data

    def number(kind, value):
        return element(kind, struct.pack(">Q", value))

    def key_frame(frame):
        picture = encoded(frame, "WEBP", quality=80)
        kind, size = struct.unpack("<4sI", picture[12:20])
        assert kind == b"VP8 "
        return picture[20:20 + size]

    height, width = frames[0].shape[:2]
    head = element("1A45DFA3", number("4286", 1) + number("42F7", 1) + number("42F2", 4) + number("42F3", 8)
                   + element("4282", b"webm") + number("4287", 2) + number("4285", 2))
    # Times are in milliseconds.
    about = element("1549A966", number("2AD7B1", 1_000_000) + element("4489", struct.pack(">d", 1000 * len(frames) / rate))
                    + element("4D80", b"test") + element("5741", b"test"))
    track = element("1654AE6B", element("AE", number("D7", 1) + number("73C5", 1) + number("83", 1) + element("86", b"V_VP8")
                                        + number("23E383", round(1e9 / rate))
                                        + element("E0", number("B0", width) + number("BA", height))))
    blocks = b"".join(element("A3", struct.pack(">BhB", 0x81, round(1000 * i / rate), 0x80) + key_frame(frame))
                      for i, frame in enumerate(frames))
    return head + element("18538067", about + track + element("1F43B675", number("E7", 0) + blocks))


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

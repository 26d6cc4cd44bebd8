"""TIFFs with many pixels in few bytes: parts that are the same share their data."""

import struct
import zlib

import numpy

STORED = 256  # pixels of each side of a file's own tiles


def tag(number, kind, count, value):
    """An entry of a BigTIFF's directory, whose value is a number or the position of several."""
    return struct.pack("<HHQQ", number, kind, count, value)


def stored(pixels):
    return zlib.compress(pixels.tobytes(), 1)


def tiled_tiff(width, height, objects):
    """A black BigTIFF with rectangles (colour, x, y, width, height). Black tiles share their data, so it has a small file."""
    columns, rows = -(-width // STORED), -(-height // STORED)
    parts = {(): stored(numpy.zeros((STORED, STORED, 3), numpy.uint8))}
    which = {}
    for colour, x, y, object_width, object_height in objects:
        for row in range(y // STORED, (y + object_height - 1) // STORED + 1):
            for column in range(x // STORED, (x + object_width - 1) // STORED + 1):
                left, top = max(0, x - column * STORED), max(0, y - row * STORED)
                right, bottom = min(STORED, x + object_width - column * STORED), min(STORED, y + object_height - row * STORED)
                which[row * columns + column] = key = (colour, left, top, right, bottom)
                if key not in parts:
                    pixels = numpy.zeros((STORED, STORED, 3), numpy.uint8)
                    pixels[top:bottom, left:right] = colour
                    parts[key] = stored(pixels)
    places, body = {}, b""
    start = 16
    for key, part in parts.items():
        places[key] = (start + len(body), len(part))
        body += part
    chosen = [places[which.get(n, ())] for n in range(columns * rows)]
    offsets = struct.pack(f"<{len(chosen)}Q", *(one[0] for one in chosen))
    lengths = struct.pack(f"<{len(chosen)}I", *(one[1] for one in chosen))
    bits = start + len(body)
    at = bits + 8
    tags = [
        tag(256, 4, 1, width), tag(257, 4, 1, height), tag(258, 3, 3, 8 | 8 << 16 | 8 << 32), tag(259, 3, 1, 8),
        tag(262, 3, 1, 2), tag(277, 3, 1, 3), tag(284, 3, 1, 1), tag(322, 4, 1, STORED), tag(323, 4, 1, STORED),
        tag(324, 16, len(chosen), at), tag(325, 4, len(chosen), at + len(offsets)),
    ]  # fmt: skip
    directory = at + len(offsets) + len(lengths)
    header = struct.pack("<2sHHHQ", b"II", 43, 8, 0, directory)
    return header + body + bytes(8) + offsets + lengths + struct.pack("<Q", len(tags)) + b"".join(tags) + bytes(8)


def striped_tiff(width, height):
    """A black TIFF of one strip for each row, all with the same data."""
    row = zlib.compress(bytes(3 * width), 1)
    at = 16 + len(row) + 8
    lengths = at + 8 * height
    tags = [
        tag(256, 4, 1, width), tag(257, 4, 1, height), tag(258, 3, 3, 8 | 8 << 16 | 8 << 32), tag(259, 3, 1, 8),
        tag(262, 3, 1, 2), tag(273, 16, height, at), tag(277, 3, 1, 3), tag(278, 4, 1, 1), tag(279, 4, height, lengths),
        tag(284, 3, 1, 1),
    ]  # fmt: skip
    header = struct.pack("<2sHHHQ", b"II", 43, 8, 0, lengths + 4 * height)
    positions = struct.pack(f"<{height}Q", *[16] * height) + struct.pack(f"<{height}I", *[len(row)] * height)
    return header + row + bytes(8) + positions + struct.pack("<Q", len(tags)) + b"".join(tags) + bytes(8)

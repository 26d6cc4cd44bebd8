"""Decodes COCO's compressed run lengths as COCO's own tools do."""

import numpy


def run_lengths(text):
    """Five bits per character, lowest first, from "0" on; from the fourth number on, the difference to the last but
    one."""
    counts, value, shift = [], 0, 0
    for character in text:
        bits = ord(character) - 48
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << shift
        counts.append(value + (counts[-2] if len(counts) > 2 else 0))
        value, shift = 0, 0
    return counts


def mask(rle):
    """Booleans [height, width]. Runs go down the columns and start with zeros."""
    counts = run_lengths(rle.counts)
    values = numpy.arange(len(counts)) % 2 == 1
    return numpy.repeat(values, counts).reshape(rle.width, rle.height).T

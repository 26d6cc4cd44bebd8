"""Noise textures and colours."""

import numpy
from PIL import Image, ImageFilter


def generator(seed: int, index: int) -> numpy.random.Generator:
    return numpy.random.default_rng([seed, index])


def smooth(rng: numpy.random.Generator, height: int, width: int, cell: float) -> numpy.ndarray:
    """Returns noise in about -1..1 with features of `cell` pixels."""
    rows, columns = (int(side / cell) + 3 for side in (height, width))
    coarse = Image.fromarray(rng.uniform(-1, 1, (rows, columns)).astype(numpy.float32))
    left, top = rng.uniform(0, 1, 2)
    box = (left, top, left + width / cell, top + height / cell)
    return numpy.asarray(coarse.resize((width, height), Image.BICUBIC, box=box))


def rough(rng: numpy.random.Generator, height: int, width: int, cell: float, octaves: int = 3) -> numpy.ndarray:
    """Returns smooth noise with finer and weaker noise added."""
    return sum(smooth(rng, height, width, max(1.5, cell / 2**octave)) / 2**octave for octave in range(octaves))


def blurred(mask: numpy.ndarray, radius: float) -> numpy.ndarray:
    """Blurs values in 0..1."""
    picture = Image.fromarray((mask * 255).astype(numpy.uint8)).filter(ImageFilter.GaussianBlur(radius))
    return numpy.asarray(picture, numpy.float32) / 255


def colour(rng: numpy.random.Generator, apart_from: numpy.ndarray | None = None, gap: float = 0.3) -> numpy.ndarray:
    """Returns RGB in 0..1 that differs from `apart_from` by at least `gap` in one of the channels."""
    chosen = rng.uniform(0.08, 0.95, 3).astype(numpy.float32)
    if apart_from is not None and numpy.abs(chosen - apart_from).max() < gap:
        channel = rng.integers(3)
        chosen[channel] = (apart_from[channel] + rng.uniform(gap, 1 - gap)) % 1.0
        if abs(chosen[channel] - apart_from[channel]) < gap:
            chosen[channel] = 1.0 if apart_from[channel] < 0.5 else 0.0
    return chosen


def to_bytes(picture: numpy.ndarray) -> numpy.ndarray:
    """Converts 0..1 to the 8 bits that a client sends."""
    return (picture.clip(0, 1) * 255).round().astype(numpy.uint8)

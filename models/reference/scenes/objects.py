"""Pictures of objects of eight classes that overlap, cast shadows and are surrounded by clutter, with the expected
results of a detector and a segmenter."""

import dataclasses
import math

import numpy

from models.reference.scenes.textures import blurred, colour, generator, rough, smooth, to_bytes

LABELS = ("background", "ball", "ring", "star", "cross", "heart", "brick", "rug", "board")
SIZE = 128
LEAST_VISIBLE = 0.4  # part of an object; one that would hide more of another is not drawn
LEAST_PIXELS = 80


@dataclasses.dataclass
class Scene:
    picture: numpy.ndarray  # uint8 [h, w, 3], RGB
    label_map: numpy.ndarray  # uint8 [h, w], 0 is the background
    classes: numpy.ndarray  # int64 [n]
    masks: numpy.ndarray  # bool [n, h, w], the visible part of each
    boxes: numpy.ndarray  # float32 [n, 4], x_min, y_min, x_max, y_max around the mask; pixel i covers [i, i + 1]


def _star(u: numpy.ndarray, v: numpy.ndarray) -> numpy.ndarray:
    sector = 2 * math.pi / 5
    angle = numpy.abs(numpy.arctan2(v, u) % sector - sector / 2)
    radius = numpy.hypot(u, v)
    # The edge from the tip (1, 0) to the notch at half a sector and 0.42 of the radius.
    x, y = radius * numpy.cos(sector / 2 - angle), radius * numpy.sin(sector / 2 - angle)
    nx, ny = 0.42 * math.sin(sector / 2), 1 - 0.42 * math.cos(sector / 2)
    return ((1 - x) * nx - y * ny) / math.hypot(nx, ny)


def _inside(kind: str, u: numpy.ndarray, v: numpy.ndarray) -> numpy.ndarray:
    """Returns approximately the distance to the outline, positive inside; objects lie within -1..1."""
    if kind == "ball":
        return 1 - numpy.hypot(u, v)
    if kind == "ring":
        return 0.24 - numpy.abs(numpy.hypot(u, v) - 0.76)
    if kind == "star":
        return _star(u, v)
    if kind == "cross":
        near, far = numpy.minimum(abs(u), abs(v)), numpy.maximum(abs(u), abs(v))
        return numpy.minimum(0.3 - near, 1 - far)
    if kind == "heart":
        y = 1.15 * v + 0.1
        return (1 - (u * u * 1.3 + (y - numpy.sqrt(abs(u) + 1e-6) * 0.75) ** 2)) * 0.4
    half = {"brick": (0.95, 0.6), "rug": (0.6, 0.95), "board": (0.8, 0.8)}[kind]
    return numpy.minimum(half[0] - abs(u), half[1] - abs(v))


def _surface(kind: str, u, v, rng: numpy.random.Generator, light: float) -> numpy.ndarray:
    """Returns colours [h, w, 3]; `light` is the direction of the light in the object's own frame."""
    base = colour(rng)
    other = colour(rng, base, gap=0.4)
    towards = u * math.cos(light) + v * math.sin(light)
    if kind == "ball":
        height = numpy.sqrt((1 - u * u - v * v).clip(0, 1))
        shade = 0.35 + 0.65 * (0.6 * towards + 0.8 * height).clip(0, 1)
        shine = (0.6 * towards + 0.8 * height).clip(0, 1) ** 12 * 0.45
        return base * shade[..., None] + shine[..., None]
    if kind == "ring":
        across = (numpy.hypot(u, v) - 0.76) / 0.24
        outwards = towards / numpy.hypot(u, v).clip(0.05)
        return base * (0.75 + 0.35 * across * outwards - 0.25 * across**2)[..., None]
    if kind == "brick":
        row = numpy.floor(v / 0.3)
        along = u / 0.55 + 0.5 * (row % 2)
        mortar = (v / 0.3 - row < 0.17) | (along - numpy.floor(along) < 0.1)
        shade = 0.75 + 0.25 * numpy.sin(12.9 * row + 78.2 * numpy.floor(along))
        return numpy.where(mortar[..., None], other, base * shade[..., None])
    if kind == "rug":
        return numpy.where((numpy.floor(v / rng.uniform(0.17, 0.26)) % 2 == 0)[..., None], base, other)
    if kind == "board":
        squares = (numpy.floor((u + 0.8) / 0.4) + numpy.floor((v + 0.8) / 0.4)) % 2 == 0
        return numpy.where(squares[..., None], base, other)
    grain = rough(rng, *u.shape, 6) * 0.1 if kind == "cross" else 0.0
    return base * (0.85 + 0.2 * towards + grain)[..., None]


def _background(rng: numpy.random.Generator, size: int) -> numpy.ndarray:
    first = colour(rng)
    second = (first + rng.uniform(-0.35, 0.35, 3)).clip(0, 1)
    blend = 0.5 + 0.5 * rough(rng, size, size, rng.uniform(8, 50))
    return first + (second - first) * blend.clip(0, 1)[..., None]


def _clutter(canvas: numpy.ndarray, rng: numpy.random.Generator, axes) -> numpy.ndarray:
    """Adds spots, blotches and straws that belong to no class."""
    x, y = axes
    size = len(canvas)
    for _ in range(rng.integers(3, 12)):
        paint = colour(rng)
        at_x, at_y = rng.uniform(0, size, 2)
        if rng.uniform() < 0.5:
            angle, thick, long = rng.uniform(0, math.pi), rng.uniform(0.6, 1.6), rng.uniform(8, 45)
            along = (x - at_x) * math.cos(angle) + (y - at_y) * math.sin(angle)
            across = (y - at_y) * math.cos(angle) - (x - at_x) * math.sin(angle)
            inside = numpy.minimum(thick - abs(across), long / 2 - abs(along))
        elif rng.uniform() < 0.6:
            inside = rng.uniform(1, 4) - numpy.hypot(x - at_x, y - at_y)
        else:
            wobble = smooth(rng, size, size, 7) * 5
            inside = rng.uniform(3, 10) - numpy.hypot(x - at_x, y - at_y) + wobble
        canvas = canvas + (paint - canvas) * (inside + 0.5).clip(0, 1)[..., None] * rng.uniform(0.5, 1)
    return canvas


def _shadow(inside: numpy.ndarray, offset: tuple[int, int], softness: float) -> numpy.ndarray:
    return blurred(numpy.roll(inside, offset, axis=(0, 1)), softness)


def draw(seed: int, index: int, size: int = SIZE) -> Scene:
    rng = generator(seed, index)
    axis = numpy.arange(size, dtype=numpy.float32) + 0.5
    x, y = axis[None, :], axis[:, None]
    canvas = _clutter(_background(rng, size), rng, (x, y))
    sun = rng.uniform(0, 2 * math.pi)
    reach, dark, softness = rng.uniform(2, 7), rng.uniform(0.25, 0.6), rng.uniform(1, 4)
    offset = (round(-reach * math.sin(sun)), round(-reach * math.cos(sun)))

    classes, masks, areas = [], [], []
    for _ in range(rng.integers(2, 7)):
        kind = int(rng.integers(1, len(LABELS)))
        scale = rng.uniform(0.11, 0.25) * size
        at_x, at_y = rng.uniform(0.6 * scale, size - 0.6 * scale, 2)
        turn = rng.uniform(0, 2 * math.pi)
        u = ((x - at_x) * math.cos(turn) + (y - at_y) * math.sin(turn)) / scale
        v = ((y - at_y) * math.cos(turn) - (x - at_x) * math.sin(turn)) / scale
        cover = (_inside(LABELS[kind], u, v) * scale + 0.5).clip(0, 1)
        mask = cover >= 0.5
        left = [other & ~mask for other in masks]
        if mask.sum() < LEAST_PIXELS or any(
                rest.sum() < max(LEAST_VISIBLE * area, LEAST_PIXELS) for rest, area in zip(left, areas)):
            continue
        canvas = canvas * (1 - dark * _shadow(cover, offset, softness))[..., None]
        canvas = canvas + (_surface(LABELS[kind], u, v, rng, sun - turn) - canvas) * cover[..., None]
        classes.append(kind)
        masks = [*left, mask]
        areas.append(mask.sum())

    slope = rng.uniform(-0.2, 0.2, 2)
    light = 1 + slope[0] * (x / size - 0.5) + slope[1] * (y / size - 0.5)
    canvas = canvas * light[..., None] + rng.normal(0, rng.uniform(0, 0.04), canvas.shape)
    label_map = numpy.zeros((size, size), numpy.uint8)
    for kind, mask in zip(classes, masks):
        label_map[mask] = kind
    return Scene(to_bytes(canvas), label_map, numpy.array(classes, numpy.int64), numpy.array(masks, bool),
                 numpy.array([box(mask) for mask in masks], numpy.float32))


def box(mask: numpy.ndarray) -> tuple[int, int, int, int]:
    rows, columns = mask.any(axis=1).nonzero()[0], mask.any(axis=0).nonzero()[0]
    return columns[0], rows[0], columns[-1] + 1, rows[-1] + 1

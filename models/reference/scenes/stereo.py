"""Rectified stereo pairs with known disparities: slanted walls, balls and waves, and thin poles before a far
background, with noise, and a right camera that differs in brightness from the left.

A surface is a disparity, a mask and a texture, each a function of the left picture's coordinates. The point that the
right camera sees at a pixel is found by solving x - disparity(x, y) = pixel, so both pictures are exact and have no
holes.
"""

import dataclasses
import math

import numpy

from models.reference.scenes.textures import colour, generator, rough, to_bytes

HEIGHT, WIDTH = 80, 128
MOST = 28.0  # maximum disparity in pixels


@dataclasses.dataclass
class Pair:
    left: numpy.ndarray  # uint8 [h, w, 3], RGB
    right: numpy.ndarray
    disparity: numpy.ndarray  # float32 [h, w]: the left picture's pixel x is the right one's x - disparity


def _lookup(image: numpy.ndarray, x: numpy.ndarray, y: numpy.ndarray) -> numpy.ndarray:
    """Bilinear interpolation at fractional coordinates; the border is repeated."""
    height, width = image.shape[:2]
    x, y = x.clip(0, width - 1.001), y.clip(0, height - 1.001)
    column, row = x.astype(int), y.astype(int)
    right, below = (x - column)[..., None], (y - row)[..., None]
    return ((image[row, column] * (1 - right) + image[row, column + 1] * right) * (1 - below)
            + (image[row + 1, column] * (1 - right) + image[row + 1, column + 1] * right) * below)


def _texture(rng: numpy.random.Generator) -> numpy.ndarray:
    """Returns [h, w + MOST, 3], as the right camera sees points further right than the left picture's edge."""
    width = WIDTH + math.ceil(MOST) + 2
    first = colour(rng)
    second = colour(rng, first)
    noise = rough(rng, HEIGHT, width, rng.uniform(3, 14)) + 0.35 * rng.uniform(-1, 1, (HEIGHT, width))
    blend = (0.5 + 0.45 * noise).clip(0, 1)[..., None]
    return first + (second - first) * blend


class Surface:
    """One surface of a scene. Its mask is positive inside."""

    def __init__(self, rng: numpy.random.Generator, kind: str):
        self.kind = kind
        self.texture = _texture(rng)
        self.at = numpy.array([rng.uniform(0, WIDTH), rng.uniform(0, HEIGHT)])
        near = rng.uniform(5, MOST - 3)
        self.turn = rng.uniform(0, 2 * math.pi)
        self.half = rng.uniform(10, 30, 2)
        self.slope, self.bulge, self.wave = numpy.zeros(2), 0.0, 0.0
        if kind == "background":
            near = rng.uniform(2, 6)
            self.slope = rng.uniform(-0.02, 0.02, 2)
        elif kind == "floor":
            self.slope = numpy.array([0.0, rng.uniform(0.08, 0.2)])
            self.at[1] = rng.uniform(0.55, 0.8) * HEIGHT
            near = 4.0
        elif kind == "wall":
            self.slope = rng.uniform(-0.2, 0.2, 2)
        elif kind == "ball":
            self.half[:] = rng.uniform(9, 24)
            self.bulge = rng.uniform(2, 5)
        elif kind == "wave":
            self.wave, self.length = rng.uniform(0.5, 1.5), rng.uniform(18, 40)
        else:  # a pole
            self.half = numpy.array([rng.uniform(1.0, 2.5), rng.uniform(25, 80)])
            self.turn = rng.normal(0, 0.5)
        self.near = near

    def _frame(self, x: numpy.ndarray, y: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
        dx, dy = x - self.at[0], y - self.at[1]
        return (dx * math.cos(self.turn) + dy * math.sin(self.turn), dy * math.cos(self.turn) - dx * math.sin(self.turn))

    def mask(self, x: numpy.ndarray, y: numpy.ndarray) -> numpy.ndarray:
        if self.kind == "background":
            return numpy.ones(numpy.broadcast(x, y).shape)
        if self.kind == "floor":
            return y - self.at[1] + 0 * x
        u, v = self._frame(x, y)
        if self.kind == "ball":
            return self.half[0] - numpy.hypot(u, v)
        return numpy.minimum(self.half[0] - abs(u), self.half[1] - abs(v))

    def disparity(self, x: numpy.ndarray, y: numpy.ndarray) -> numpy.ndarray:
        value = self.near + self.slope[0] * (x - self.at[0]) + self.slope[1] * (y - self.at[1])
        if self.bulge:
            value = value + self.bulge * numpy.sqrt((1 - numpy.hypot(*self._frame(x, y))**2 / self.half[0]**2).clip(0))
        if self.wave:
            value = value + self.wave * numpy.sin(2 * math.pi * self._frame(x, y)[0] / self.length)
        return value.clip(0.5, MOST)

    def seen_from_the_right(self, pixel: numpy.ndarray, y: numpy.ndarray) -> numpy.ndarray:
        """Returns the left picture's x of the point that this surface shows at a pixel of the right one."""
        x = pixel + self.near
        for _ in range(8):
            x = 0.3 * x + 0.7 * (pixel + self.disparity(x, y))
        return x


def _compose(layers: list[tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]]) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Composes layers of (mask, disparity, colours); returns colours and disparity of the nearest at each pixel."""
    depth = numpy.full(layers[0][0].shape, -1.0)
    picture = numpy.zeros((*depth.shape, 3))
    for mask, disparity, colours in layers:
        front = (mask > 0) & (disparity > depth)
        depth = numpy.where(front, disparity, depth)
        picture = numpy.where(front[..., None], colours, picture)
    return picture, depth


def draw(seed: int, index: int) -> Pair:
    rng = generator(seed, index)
    kinds = ["background"] + ["floor"] * int(rng.uniform() < 0.5)
    kinds += list(rng.choice(["wall", "wall", "ball", "ball", "wave", "pole", "pole"], size=rng.integers(3, 7)))
    surfaces = [Surface(rng, kind) for kind in kinds]
    y, x = numpy.mgrid[:HEIGHT, :WIDTH].astype(float)
    left = _compose([(one.mask(x, y), one.disparity(x, y), _lookup(one.texture, x, y)) for one in surfaces])
    seen = [(one, one.seen_from_the_right(x, y)) for one in surfaces]
    right = _compose([(one.mask(at, y), one.disparity(at, y), _lookup(one.texture, at, y)) for one, at in seen])
    noise, gain = rng.uniform(0.005, 0.03), rng.uniform(0.92, 1.08)
    pictures = [to_bytes(picture * brightness + rng.normal(0, noise, picture.shape))
                for (picture, _), brightness in ((left, 1.0), (right, gain))]
    return Pair(*pictures, left[1].astype(numpy.float32))

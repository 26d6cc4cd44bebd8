"""Volumes of cells as in a light microscope: nuclei, membranes and threads, and the same with the noise of low
light."""

import dataclasses

import numpy

from models.reference.scenes.textures import generator

SHAPE = (12, 48, 48)
OFFSET = 100.0  # the camera's offset, in counts
READ_NOISE = 6.0


@dataclasses.dataclass
class Volume:
    noisy: numpy.ndarray  # float32 [d, h, w], counts
    clean: numpy.ndarray  # the expected value of `noisy`, in the same units


def _nucleus(grid, rng: numpy.random.Generator, shape) -> numpy.ndarray:
    at = rng.uniform(0, shape)
    radii = rng.uniform((2, 4, 4), (4, 10, 10))
    distance = numpy.sqrt(sum(((axis - middle) / radius) ** 2 for axis, middle, radius in zip(grid, at, radii)))
    soft = 1 / (1 + numpy.exp((distance - 1) * radii.min() * 1.5))
    if rng.uniform() < 0.4:  # only a membrane
        return numpy.exp(-((distance - 1) * radii.min() / 1.2) ** 2) * rng.uniform(0.4, 0.9)
    return soft * rng.uniform(0.3, 0.8)


def _thread(grid, rng: numpy.random.Generator, shape) -> numpy.ndarray:
    start, heading = rng.uniform(0, shape), rng.normal(0, 1, 3) * (0.25, 1, 1)
    thick = rng.uniform(0.9, 1.5)
    total = numpy.zeros(shape)
    for _ in range(rng.integers(20, 44)):
        heading = heading + rng.normal(0, 0.18, 3) * (0.25, 1, 1)
        heading /= numpy.linalg.norm(heading) + 1e-6
        start = start + heading
        near = [slice(max(0, int(middle) - 5), max(0, int(middle) + 7)) for middle in start]
        part = [axis[tuple(span if axis.shape[dim] > 1 else slice(None) for dim, span in enumerate(near))]
                for axis in grid]
        if any(axis.size == 0 for axis in part):
            continue
        spot = numpy.exp(-sum((axis - middle) ** 2 for axis, middle in zip(part, start)) / (2 * thick**2))
        total[tuple(near)] = numpy.maximum(total[tuple(near)], spot)
    return total * rng.uniform(0.5, 1.0)


def draw(seed: int, index: int, shape: tuple[int, int, int] = SHAPE) -> Volume:
    rng = generator(seed, index)
    grid = numpy.ogrid[tuple(slice(side) for side in shape)]
    clean = numpy.full(shape, rng.uniform(0.02, 0.08))
    area = shape[1] * shape[2] / 2304
    for _ in range(rng.poisson(5 * area) + 2):
        clean = clean + _nucleus(grid, rng, shape)
    for _ in range(rng.poisson(5 * area) + 2):
        clean = clean + _thread(grid, rng, shape)
    photons, gain = rng.uniform(8, 30), rng.uniform(8, 14)
    noisy = gain * rng.poisson(clean * photons) + OFFSET + rng.normal(0, READ_NOISE, shape)
    return Volume(noisy.astype(numpy.float32), (gain * photons * clean + OFFSET).astype(numpy.float32))

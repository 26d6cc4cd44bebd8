"""Sheets of scenes for inspection: the pictures beside their expected results."""

import numpy
import torch
from PIL import Image

from models.reference.scenes import objects, shapes, stereo, volumes

PALETTE = numpy.array([(0, 0, 0), (230, 25, 75), (60, 180, 75), (255, 225, 25), (0, 130, 200), (245, 130, 48),
                       (145, 30, 180), (70, 240, 240), (240, 50, 230)], numpy.uint8)


def _grey(values: numpy.ndarray, low: float, high: float) -> numpy.ndarray:
    scaled = ((values - low) / (high - low) * 255).clip(0, 255).astype(numpy.uint8)
    return numpy.repeat(scaled[..., None], 3, axis=2)


def _objects(seed: int, index: int) -> list[numpy.ndarray]:
    scene = objects.draw(seed, index)
    return [scene.picture, PALETTE[scene.label_map]]


def _stereo(seed: int, index: int) -> list[numpy.ndarray]:
    pair = stereo.draw(seed, index)
    return [pair.left, pair.right, _grey(pair.disparity, 0, stereo.MOST)]


def _volumes(seed: int, index: int) -> list[numpy.ndarray]:
    """Returns a plane and the maxima over depth, noisy and clean."""
    volume = volumes.draw(seed, index)
    middle = len(volume.clean) // 2
    views = [volume.noisy[middle], volume.clean[middle], volume.noisy.max(axis=0), volume.clean.max(axis=0)]
    return [_grey(view, volume.clean.min(), volume.clean.max()) for view in views]


def _shapes(seed: int, index: int) -> list[numpy.ndarray]:
    label = torch.tensor([index % len(shapes.LABELS)])
    drawn = shapes.draw(label, 96, torch.Generator().manual_seed(seed * 1_000_003 + index), extent=1 / shapes.CROP)[0]
    return [(drawn * 255).round().to(torch.uint8).permute(1, 2, 0).numpy()]


KINDS = {"objects": _objects, "stereo": _stereo, "volumes": _volumes, "shapes": _shapes}


def sheet(kind: str, seed: int, count: int, columns: int = 6) -> Image.Image:
    """Returns `count` scenes, each with its views one below the other."""
    scenes = [numpy.concatenate(KINDS[kind](seed, index)) for index in range(count)]
    height, width = scenes[0].shape[:2]
    rows = -(-count // columns)
    paper = numpy.full((rows * (height + 4), min(count, columns) * (width + 4), 3), 255, numpy.uint8)
    for index, scene in enumerate(scenes):
        top, left = index // columns * (height + 4), index % columns * (width + 4)
        paper[top:top + height, left:left + width] = scene
    return Image.fromarray(paper)

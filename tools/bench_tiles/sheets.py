"""Large pictures whose objects are known, made of scenes that the demo's detector was not trained on; and how many of them were found."""

import dataclasses
import io

import numpy
import PIL.Image

from models.reference.scenes import HELD_OUT_SEED, objects

TILE = objects.SIZE
# The first scene of a sheet starts here, so that borders of scenes are no borders of tiles.
START = numpy.array([40, 24])
MARGIN = 64
SAME = 0.5  # intersection over union


@dataclasses.dataclass
class Found:
    boxes: numpy.ndarray  # [n, 4]: x_min, y_min, x_max, y_max; best first
    classes: numpy.ndarray


def side_of(scenes: int) -> int:
    return scenes * objects.SIZE + MARGIN


def tiles_of(scenes: int, overlap: int) -> int:
    """How many tiles a sheet of scenes x scenes is cut into."""
    return (-(-(side_of(scenes) - TILE) // (TILE - overlap)) + 1) ** 2


def sheet(index: int, scenes: int) -> tuple[bytes, Found]:
    """A JPEG file of scenes x scenes held-out scenes, and their objects."""
    picture = numpy.full((side_of(scenes), side_of(scenes), 3), 128, numpy.uint8)
    boxes, classes = [], []
    for n in range(scenes * scenes):
        scene = objects.draw(HELD_OUT_SEED, index * scenes * scenes + n)
        x, y = START + objects.SIZE * numpy.array([n % scenes, n // scenes])
        picture[y:y + objects.SIZE, x:x + objects.SIZE] = scene.picture
        boxes.append(scene.boxes.reshape(-1, 4) + numpy.array([x, y, x, y], numpy.float32))
        classes.append(scene.classes)
    file = io.BytesIO()
    PIL.Image.fromarray(picture).save(file, "JPEG", quality=95)
    return file.getvalue(), Found(numpy.concatenate(boxes), numpy.concatenate(classes))


def overlaps(box: numpy.ndarray, others: numpy.ndarray) -> numpy.ndarray:
    """Intersection over union of a box with each of the others."""
    both = numpy.clip(numpy.minimum(box[2:], others[:, 2:]) - numpy.maximum(box[:2], others[:, :2]), 0, None).prod(1)
    return both / ((box[2:] - box[:2]).prod() + (others[:, 2:] - others[:, :2]).prod(1) - both)


def matched(found: Found, truth: Found) -> int:
    """The number of objects that a detection of their class lies on. Each detection counts for one object."""
    free = numpy.ones(len(truth.classes), bool)
    for box, kind in zip(found.boxes, found.classes):
        shared = numpy.where(free & (truth.classes == kind), overlaps(box, truth.boxes), 0)
        if shared.max(initial=0) >= SAME:
            free[shared.argmax()] = False
    return int((~free).sum())

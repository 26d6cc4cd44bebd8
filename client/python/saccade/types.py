"""What the daemon answers, as plain values: NumPy arrays for maps and volumes, seconds for times."""

from __future__ import annotations

import dataclasses
import enum

import numpy
from numpy.typing import NDArray

from saccade.masks import Mask, MaskPicture, MaskPolygons


@dataclasses.dataclass(frozen=True)
class Timings:
    """Seconds, as the daemon's clock saw them; `total` is from arrival to the answer."""

    decode: float
    queue: float
    infer: float
    # Making the answer of what the model gave: masks, pictures, voxels.
    encode: float
    total: float


@dataclasses.dataclass(frozen=True, eq=False)
class AttentionMap:
    # What it is a map of: "key 0", "head 0 rows", "position 0 head 0".
    name: str
    width: int
    height: int
    # 8 bits grey: 0 is `least`, 255 is `most`.
    png: bytes
    least: float
    most: float


@dataclasses.dataclass(frozen=True, eq=False)
class Explanation:
    """What a layer's attention looked at."""

    layer: str
    maps: tuple[AttentionMap, ...]
    # How many the layer has, of which those are the first.
    available: int


@dataclasses.dataclass(frozen=True, eq=False)
class Answer:
    """What every answer tells, whatever the model's task."""

    model: str
    version: int
    request_id: str
    timings: Timings
    # How many pictures shared the forward pass.
    batch_size: int
    # Of the picture as it was decoded, after its EXIF orientation was applied; of a frame; of a plane.
    width: int
    height: int
    # None if none was asked for.
    explanation: Explanation | None


@dataclasses.dataclass(frozen=True)
class ScoredClass:
    index: int
    # Empty if the model has no class names.
    label: str
    probability: float
    logit: float


@dataclasses.dataclass(frozen=True, eq=False)
class Classification(Answer):
    """`classes`: the likeliest, most probable first."""

    classes: tuple[ScoredClass, ...]


@dataclasses.dataclass(frozen=True)
class Box:
    """In pixels, clipped to the picture; pixel i covers i to i + 1."""

    x_min: float
    y_min: float
    x_max: float
    y_max: float


@dataclasses.dataclass(frozen=True, eq=False)
class Detection:
    box: Box
    score: float
    class_index: int
    label: str
    # One of the three, in the form that was asked for. None if none was, or the model draws none.
    mask: Mask | None
    mask_picture: MaskPicture | None = None
    mask_polygons: MaskPolygons | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Detections(Answer):
    """`detections`: best score first. None is an answer."""

    detections: tuple[Detection, ...]

    @property
    def boxes(self) -> NDArray[numpy.float32]:
        """[n, 4]: x_min, y_min, x_max, y_max."""
        rows = [dataclasses.astuple(one.box) for one in self.detections]
        return numpy.array(rows, numpy.float32).reshape(-1, 4)

    @property
    def scores(self) -> NDArray[numpy.float32]:
        return numpy.array([one.score for one in self.detections], numpy.float32)

    @property
    def class_indices(self) -> NDArray[numpy.int64]:
        return numpy.array([one.class_index for one in self.detections], numpy.int64)


@dataclasses.dataclass(frozen=True)
class Area:
    class_index: int
    label: str
    pixels: int
    # Of the picture.
    fraction: float


@dataclasses.dataclass(frozen=True, eq=False)
class Segmentation(Answer):
    # [height, width], a class a pixel; None if the areas alone were asked for.
    label_map: NDArray[numpy.uint8] | None
    # Of the classes that are there, largest first.
    areas: tuple[Area, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Disparity(Answer):
    # [height, width]: how many pixels further left the right picture shows what the left one has here.
    disparity: NDArray[numpy.float32]
    least: float
    most: float
    mean: float


@dataclasses.dataclass(frozen=True)
class Action:
    start_seconds: float
    end_seconds: float
    score: float
    class_index: int
    label: str
    # In the frames that the model saw.
    start_frame: float
    end_frame: float


@dataclasses.dataclass(frozen=True, eq=False)
class Actions(Answer):
    """`actions`: best score first. None is an answer."""

    actions: tuple[Action, ...]
    # That the model saw, and how many there were a second.
    frames: int
    frames_per_second: float


@dataclasses.dataclass(frozen=True, eq=False)
class Restoration(Answer):
    # [depth, height, width] in the units of what was sent; a projection has one plane.
    volume: NDArray[numpy.uint8] | NDArray[numpy.uint16] | NDArray[numpy.float32]
    least: float
    most: float


class ModelState(enum.Enum):
    LOADING = "LOADING"
    READY = "READY"
    UNAVAILABLE = "UNAVAILABLE"


@dataclasses.dataclass(frozen=True)
class Model:
    """A version of a model, ready or not."""

    name: str
    version: int
    state: ModelState
    # Why it is UNAVAILABLE.
    reason: str
    architecture: str
    task: str
    options: dict[str, str]
    input_width: int
    input_height: int
    classes: int
    labels: tuple[str, ...]
    max_batch_size: int
    # Requests that wait for it right now.
    queued: int
    load_seconds: float
    # Which sizes pictures are padded to; empty where all have one.
    buckets: str
    # Pictures in one input: 2 for stereo.
    views: int
    # Of clips and volumes; 0 for other tasks.
    most_frames: int
    frames_per_second: float
    most_voxels: int
    # Whose attention can be looked at, in the order in which they are computed; and whether their maps are of chosen
    # positions.
    attention_layers: tuple[str, ...]
    attention_by_position: bool

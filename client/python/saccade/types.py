"""The daemon's results as plain values: NumPy arrays for maps and volumes, seconds for times."""

from __future__ import annotations

import dataclasses
import enum

import numpy
from numpy.typing import NDArray

from saccade.masks import Mask, MaskPicture, MaskPolygons


@dataclasses.dataclass(frozen=True)
class Timings:
    """Seconds, measured by the daemon; `total` is from the request's arrival to its response."""

    decode: float
    queue: float
    infer: float
    # Encoding the model's output into the response: masks, pictures, voxels.
    encode: float
    total: float


@dataclasses.dataclass(frozen=True, eq=False)
class AttentionMap:
    # What the map shows: "key 0", "head 0 rows", "position 0 head 0". See docs/api.md.
    name: str
    width: int
    height: int
    # An 8-bit grey PNG: 0 is `min`, 255 is `max`.
    png: bytes
    min: float
    max: float


@dataclasses.dataclass(frozen=True)
class PicturePart:
    """A rectangle in pixels of the upright picture. It may reach beyond the picture."""

    x: float
    y: float
    width: float
    height: float


@dataclasses.dataclass(frozen=True, eq=False)
class Explanation:
    """The attention maps of one layer."""

    layer: str
    maps: tuple[AttentionMap, ...]
    # Number of maps that the layer has; `maps` are the first of them.
    available: int
    # The part of the picture that each map covers. None if the daemon is older than this field.
    seen: PicturePart | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Answer:
    """Fields of every answer, independent of the model's task."""

    model: str
    version: int
    request_id: str
    timings: Timings
    # Number of pictures that shared the forward pass.
    batch_size: int
    # Size of the decoded picture, after its EXIF orientation was applied; of a frame; of a plane.
    width: int
    height: int
    # None if it was not requested.
    explanation: Explanation | None
    # The whole answer as a message, with its signed statement: the file that `saccade prove` reads. Empty unless the model
    # signs its answers.
    attested: bytes


@dataclasses.dataclass(frozen=True)
class ScoredClass:
    index: int
    # Empty if the model has no class names.
    label: str
    probability: float
    logit: float


@dataclasses.dataclass(frozen=True, eq=False)
class Classification(Answer):
    """`classes`: most probable first."""

    classes: tuple[ScoredClass, ...]


@dataclasses.dataclass(frozen=True)
class Box:
    """In pixels, clipped to the picture; pixel i covers i to i + 1."""

    x_min: float
    y_min: float
    x_max: float
    y_max: float


@dataclasses.dataclass(frozen=True)
class Keypoint:
    """A point of an object, in pixels of the picture. It may lie outside of the picture."""

    x: float
    y: float
    # How certain it is that the point is visible, from 0 to 1.
    score: float


@dataclasses.dataclass(frozen=True, eq=False)
class Crop:
    """What one model says of the part of the picture around a detection, in the form of its task."""

    model: str
    version: int
    # The part that the model saw.
    region: PicturePart
    # Most probable first; empty unless the model classifies.
    classes: tuple[ScoredClass, ...]
    # In pixels of the whole picture; empty unless the model detects.
    detections: tuple[Detection, ...]
    # None unless the model makes embeddings.
    embedding: NDArray[numpy.float32] | None
    # Why there is no result; empty if there is one.
    error: str


@dataclasses.dataclass(frozen=True, eq=False)
class Detection:
    box: Box
    score: float
    class_index: int
    label: str
    # At most one of the three is set, depending on the requested form; none if the model returns no masks.
    mask: Mask | None
    mask_picture: MaskPicture | None = None
    mask_polygons: MaskPolygons | None = None
    # One for each model that sees the ensemble's crops; empty for other models.
    crops: tuple[Crop, ...] = ()
    # In the model's order; empty if the model has no keypoints.
    keypoints: tuple[Keypoint, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Detections(Answer):
    """`detections`: best score first; may be empty."""

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
    # Fraction of the picture.
    fraction: float


@dataclasses.dataclass(frozen=True, eq=False)
class Segmentation(Answer):
    # [height, width]: the class of each pixel; None if only the areas were requested.
    label_map: NDArray[numpy.uint8] | None
    # The classes that occur, largest area first.
    areas: tuple[Area, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Disparity(Answer):
    # [height, width]: how many pixels further left the same point lies in the right picture; NaN where there is no
    # value.
    disparity: NDArray[numpy.float32]
    min: float
    max: float
    mean: float


@dataclasses.dataclass(frozen=True, eq=False)
class DepthMap(Answer):
    # [height, width], in the model's own unit; NaN where there is no value.
    depth: NDArray[numpy.float32]
    min: float
    max: float
    mean: float


@dataclasses.dataclass(frozen=True, eq=False)
class Embedding(Answer):
    values: NDArray[numpy.float32]


@dataclasses.dataclass(frozen=True)
class Action:
    start_seconds: float
    end_seconds: float
    score: float
    class_index: int
    label: str
    # In frames that the model saw.
    start_frame: float
    end_frame: float


@dataclasses.dataclass(frozen=True, eq=False)
class Actions(Answer):
    """`actions`: best score first; may be empty."""

    actions: tuple[Action, ...]
    # Number of frames that the model saw, and their rate in frames per second.
    frames: int
    frames_per_second: float


@dataclasses.dataclass(frozen=True, eq=False)
class Restoration(Answer):
    # [depth, height, width], in the units of the volume as it was sent; a projection has one plane.
    volume: NDArray[numpy.uint8] | NDArray[numpy.uint16] | NDArray[numpy.float32]
    min: float
    max: float


class ModelState(enum.Enum):
    LOADING = "LOADING"
    READY = "READY"
    UNAVAILABLE = "UNAVAILABLE"


class PromotionState(enum.Enum):
    MEASURING = "MEASURING"
    PROMOTED = "PROMOTED"
    REFUSED = "REFUSED"


@dataclasses.dataclass(frozen=True)
class Promotion:
    """What the rule that may promote a model's shadow version has come to."""

    state: PromotionState
    # The parameter `promote` of the model's configuration.
    rule: str
    # The shadow version, and the version whose place it takes.
    shadow: int
    replaces: int
    # How far the comparison is, or the measures that decided.
    reason: str


@dataclasses.dataclass(frozen=True)
class Model:
    """A version of a model, ready or not."""

    name: str
    version: int
    state: ModelState
    # Why the model is UNAVAILABLE.
    reason: str
    architecture: str
    task: str
    options: dict[str, str]
    # The size of the input; the largest one if the model takes pictures of many sizes, 0 for volumes and named tensors.
    input_width: int
    input_height: int
    classes: int
    labels: tuple[str, ...]
    max_batch_size: int
    # Number of requests that currently wait for an instance.
    queued: int
    load_seconds: float
    # Sizes to which pictures are padded; empty if all inputs have the same size.
    buckets: str
    # Number of pictures in one input: 2 for stereo.
    views: int
    # Upper bounds of clips and volumes, and the rate at which videos are sampled; 0 for other tasks.
    max_frames: int
    frames_per_second: float
    max_voxels: int
    # Layers whose attention can be requested, in the order in which they are computed; and whether their maps are for
    # chosen positions.
    attention_layers: tuple[str, ...]
    attention_by_position: bool
    # In which the network is computed ("fp32", "bf16"), and why; empty for programs and ensembles.
    precision: str
    precision_reason: str
    # Set for the version that a rule may replace with its shadow version, and for one that was promoted.
    promotion: Promotion | None = None

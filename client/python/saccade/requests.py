"""Requests with their options. Each kind is a method of both clients, and an element of a stream."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterable
from typing import Generic, Literal, TypeVar, Union

from saccade import answers, inputs, types
from saccade.masks import MaskForm
from saccade.v1 import vision_pb2 as pb

A = TypeVar("A", bound=types.Answer, covariant=True)

# Size of a map: width and height; "network" for the size at which the network saw the picture; None for the picture's.
Size = Union[tuple[int, int], Literal["network"], None]


@dataclasses.dataclass(frozen=True)
class Region:
    """The part of a picture, or of both pictures of a pair, that the model sees, in pixels. Results are still in the
    coordinates of the whole picture."""

    x: int
    y: int
    width: int
    height: int


@dataclasses.dataclass(frozen=True)
class Tiles:
    """Cuts a picture into squares of `size` pixels that the model sees one by one; neighbours share `overlap` pixels, at
    most half of the size. Results are merged, in the coordinates of the whole picture. For detection and segmentation.
    `Tiles(whole=True)` replaces the model's own tiles by the whole picture."""

    size: int = 0
    overlap: int = 0
    whole: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Explain:
    """Requests attention maps. `layer` is one of Model.attention_layers; empty selects the last one. At most
    `max_maps` maps are returned; 0 stands for 16. `positions` are for layers that have a map per position
    (Model.attention_by_position): x and y from 0 to 1 across and down the network's input."""

    layer: str = ""
    max_maps: int = 0
    positions: Iterable[tuple[float, float]] = ()

    def message(self) -> pb.Explain:
        positions = [pb.Position(x=x, y=y) for x, y in self.positions]
        return pb.Explain(layer=self.layer, max_maps=self.max_maps, positions=positions)


def _size(asked: Size) -> pb.OutputSize | None:
    if asked is None:
        return None
    if asked == "network":
        return pb.OutputSize(network=True)
    width, height = asked
    return pb.OutputSize(width=width, height=height)


@dataclasses.dataclass(frozen=True, eq=False)
class Request(abc.ABC, Generic[A]):
    """Options of every request, given by keyword.

    `version` 0 selects the highest that is ready; a `version_label` of the model's configuration can be given instead.
    Requests with a larger `priority` (-100 to 100) are served first. `timeout`, in seconds, replaces the client's; for
    a request on a stream it starts when the daemon reads the request. `explain` adds an `explanation` to the answer.
    """

    version: int = dataclasses.field(default=0, kw_only=True)
    version_label: str = dataclasses.field(default="", kw_only=True)
    priority: int = dataclasses.field(default=0, kw_only=True)
    request_id: str = dataclasses.field(default="", kw_only=True)
    timeout: float | None = dataclasses.field(default=None, kw_only=True)
    explain: Explain | None = dataclasses.field(default=None, kw_only=True)

    @abc.abstractmethod
    def message(self) -> pb.PredictRequest:
        """Builds the message. Reads files and converts pictures, so it must not be called on an event loop's thread,
        unless `is_encoded`."""

    def is_encoded(self) -> bool:
        """True if `message` only copies bytes that are encoded already."""
        return False

    @abc.abstractmethod
    def answer(self, response: pb.PredictResponse) -> A: ...

    def _begin(self, model: str) -> pb.PredictRequest:
        return pb.PredictRequest(
            model=model,
            version=self.version,
            version_label=self.version_label,
            priority=self.priority,
            request_id=self.request_id,
            explain=self.explain.message() if self.explain is not None else None,
        )


@dataclasses.dataclass(frozen=True, eq=False)
class PictureRequest(Request[A]):
    """A request for a picture or a pair of pictures. With `region` the model sees only that part; with `tiles` it sees
    the picture, or that part, in pieces."""

    region: Region | None = dataclasses.field(default=None, kw_only=True)
    tiles: Tiles | None = dataclasses.field(default=None, kw_only=True)

    def _begin(self, model: str) -> pb.PredictRequest:
        request = super()._begin(model)
        if self.region is not None:
            request.region.CopyFrom(pb.Region(**dataclasses.asdict(self.region)))
        if self.tiles is not None:
            request.tiles.CopyFrom(pb.Tiles(**dataclasses.asdict(self.tiles)))
        return request


@dataclasses.dataclass(frozen=True, eq=False)
class OnePicture(PictureRequest[A]):
    """A request for one picture."""

    model: str
    picture: inputs.Picture

    def is_encoded(self) -> bool:
        return isinstance(self.picture, bytes)

    def _of_picture(self) -> pb.PredictRequest:
        request = self._begin(self.model)
        if isinstance(self.picture, bytes):
            # Copied once.
            request.encoded = self.picture
            return request
        sent = inputs.picture(self.picture)
        if sent.WhichOneof("content") == "raw":
            request.raw.CopyFrom(sent.raw)
        else:
            request.encoded = sent.encoded
        return request


@dataclasses.dataclass(frozen=True, eq=False)
class Classify(OnePicture[types.Classification]):
    """Returns the `top_k` most probable classes (0: the daemon's default of five) with at least
    `probability_threshold`."""

    top_k: int = dataclasses.field(default=0, kw_only=True)
    probability_threshold: float | None = dataclasses.field(default=None, kw_only=True)

    def message(self) -> pb.PredictRequest:
        request = self._of_picture()
        request.classification.CopyFrom(
            pb.ClassificationOptions(top_k=self.top_k, probability_threshold=self.probability_threshold)
        )
        return request

    def answer(self, response: pb.PredictResponse) -> types.Classification:
        return answers.classification(response)


@dataclasses.dataclass(frozen=True, eq=False)
class Detect(OnePicture[types.Detections]):
    """Returns at most `top_k` detections (0: all that are found) of the `classes` (empty: all), best first."""

    score_threshold: float | None = dataclasses.field(default=None, kw_only=True)
    top_k: int = dataclasses.field(default=0, kw_only=True)
    classes: Iterable[int] = dataclasses.field(default=(), kw_only=True)
    masks: bool = dataclasses.field(default=True, kw_only=True)
    mask_threshold: float | None = dataclasses.field(default=None, kw_only=True)
    mask_form: MaskForm = dataclasses.field(default=MaskForm.RLE, kw_only=True)

    def message(self) -> pb.PredictRequest:
        request = self._of_picture()
        request.detection.CopyFrom(
            pb.DetectionOptions(
                score_threshold=self.score_threshold,
                top_k=self.top_k,
                classes=self.classes,
                masks=pb.DetectionOptions.Masks.Value(self.mask_form.value if self.masks else "NONE"),
                mask_threshold=self.mask_threshold,
            )
        )
        return request

    def answer(self, response: pb.PredictResponse) -> types.Detections:
        return answers.detections(response)


@dataclasses.dataclass(frozen=True, eq=False)
class Segment(OnePicture[types.Segmentation]):
    """Returns the class of each pixel, in a map of the given `size`; only the areas if `label_map` is False."""

    label_map: bool = dataclasses.field(default=True, kw_only=True)
    size: Size = dataclasses.field(default=None, kw_only=True)

    def message(self) -> pb.PredictRequest:
        request = self._of_picture()
        form = pb.SegmentationOptions.RAW if self.label_map else pb.SegmentationOptions.NONE
        request.segmentation.CopyFrom(pb.SegmentationOptions(format=form, size=_size(self.size)))
        return request

    def answer(self, response: pb.PredictResponse) -> types.Segmentation:
        return answers.segmentation(response)


@dataclasses.dataclass(frozen=True, eq=False)
class Stereo(PictureRequest[types.Disparity]):
    """Returns the disparities of a rectified pair: two pictures of the same size in which a point lies on the same row.
    Disparities are in pixels of the pictures as they were sent, whatever the `size` of the map."""

    model: str
    left: inputs.Picture
    right: inputs.Picture
    size: Size = dataclasses.field(default=None, kw_only=True)

    def message(self) -> pb.PredictRequest:
        request = self._begin(self.model)
        request.stereo.left.CopyFrom(inputs.picture(self.left))
        request.stereo.right.CopyFrom(inputs.picture(self.right))
        request.stereo_options.CopyFrom(pb.StereoOptions(format=pb.StereoOptions.FLOAT, size=_size(self.size)))
        return request

    def answer(self, response: pb.PredictResponse) -> types.Disparity:
        return answers.disparity(response)


@dataclasses.dataclass(frozen=True, eq=False)
class Depth(OnePicture[types.DepthMap]):
    """Returns the depth of each pixel, in the model's own unit, in a map of the given `size`."""

    size: Size = dataclasses.field(default=None, kw_only=True)

    def message(self) -> pb.PredictRequest:
        request = self._of_picture()
        request.stereo_options.CopyFrom(pb.StereoOptions(format=pb.StereoOptions.FLOAT, size=_size(self.size)))
        return request

    def answer(self, response: pb.PredictResponse) -> types.DepthMap:
        return answers.depth(response)


@dataclasses.dataclass(frozen=True, eq=False)
class Embed(OnePicture[types.Embedding]):
    """Returns the picture as a vector."""

    def message(self) -> pb.PredictRequest:
        return self._of_picture()

    def answer(self, response: pb.PredictResponse) -> types.Embedding:
        return answers.embedding(response)


@dataclasses.dataclass(frozen=True, eq=False)
class FindActions(Request[types.Actions]):
    """Returns the actions in a video file, or in frames taken at `frames_per_second` (0: the model's own rate). The
    class is not named `Actions`, because that is its answer."""

    model: str
    clip: inputs.Clip
    frames_per_second: float = dataclasses.field(default=0, kw_only=True)
    score_threshold: float | None = dataclasses.field(default=None, kw_only=True)
    top_k: int = dataclasses.field(default=0, kw_only=True)
    classes: Iterable[int] = dataclasses.field(default=(), kw_only=True)

    def message(self) -> pb.PredictRequest:
        request = self._begin(self.model)
        request.clip.CopyFrom(inputs.clip(self.clip, self.frames_per_second))
        request.actions.CopyFrom(
            pb.ActionOptions(score_threshold=self.score_threshold, top_k=self.top_k, classes=self.classes)
        )
        return request

    def answer(self, response: pb.PredictResponse) -> types.Actions:
        return answers.actions(response)


@dataclasses.dataclass(frozen=True, eq=False)
class Restore:
    """A volume of any size, sent in parts. `voxel_type` ("uint8", "uint16", "float32") is the type of the answer; None
    keeps the type that was sent. It is a call of its own and cannot be sent on a stream."""

    model: str
    volume: inputs.Volume
    voxel_type: str | None = None
    version: int = 0
    priority: int = 0
    request_id: str = ""


def model(name: str, version: int) -> pb.GetModelRequest:
    return pb.GetModelRequest(model=name, version=version)

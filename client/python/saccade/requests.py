"""What can be asked for, with its options: a method of both clients each, and what a stream takes."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterable
from typing import Generic, Literal, TypeVar, Union

from saccade import answers, inputs, types
from saccade.masks import MaskForm
from saccade.v1 import vision_pb2 as pb

A = TypeVar("A", bound=types.Answer, covariant=True)

# Width and height of a map, or as large as the picture was when the network saw it. None is the picture's own size.
Size = Union[tuple[int, int], Literal["network"], None]


@dataclasses.dataclass(frozen=True)
class Region:
    """The part of a picture, or of both of a pair, that the model is to see, in pixels. What is found lies in the whole
    picture all the same."""

    x: int
    y: int
    width: int
    height: int


@dataclasses.dataclass(frozen=True, eq=False)
class Explain:
    """Asks what attention looked at: in `layer`, one of Model.attention_layers (the last, if it is empty); at most
    `most_maps` maps (0: 16). `positions` are of layers that have a map for each position (Model.attention_by_position): x
    and y from 0 to 1, across and down what the network saw."""

    layer: str = ""
    most_maps: int = 0
    positions: Iterable[tuple[float, float]] = ()

    def message(self) -> pb.Explain:
        positions = [pb.Position(x=x, y=y) for x, y in self.positions]
        return pb.Explain(layer=self.layer, most_maps=self.most_maps, positions=positions)


def _size(asked: Size) -> pb.OutputSize | None:
    if asked is None:
        return None
    if asked == "network":
        return pb.OutputSize(network=True)
    width, height = asked
    return pb.OutputSize(width=width, height=height)


@dataclasses.dataclass(frozen=True, eq=False)
class Request(abc.ABC, Generic[A]):
    """What every request may say, by name alone.

    Version 0 is the highest that is ready; a `version_label` of the model's configuration stands in for the number.
    Requests of a larger `priority` (-100 to 100) are served first. `timeout`, in seconds, stands in for the client's own;
    of a request on a stream it counts from when the daemon reads it. `explain` adds an `explanation` to the answer.
    """

    version: int = dataclasses.field(default=0, kw_only=True)
    version_label: str = dataclasses.field(default="", kw_only=True)
    priority: int = dataclasses.field(default=0, kw_only=True)
    request_id: str = dataclasses.field(default="", kw_only=True)
    timeout: float | None = dataclasses.field(default=None, kw_only=True)
    explain: Explain | None = dataclasses.field(default=None, kw_only=True)

    @abc.abstractmethod
    def message(self) -> pb.PredictRequest:
        """Reads what is to be read and converts what is to be converted: not for an event loop's thread."""

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
    """What may say of its picture, or its pair, that only a `region` is to be looked at."""

    region: Region | None = dataclasses.field(default=None, kw_only=True)

    def _begin(self, model: str) -> pb.PredictRequest:
        request = super()._begin(model)
        if self.region is not None:
            request.region.CopyFrom(pb.Region(**dataclasses.asdict(self.region)))
        return request

    def _of_picture(self, model: str, picture: inputs.Picture) -> pb.PredictRequest:
        request, sent = self._begin(model), inputs.picture(picture)
        if sent.WhichOneof("content") == "raw":
            request.raw.CopyFrom(sent.raw)
        else:
            request.encoded = sent.encoded
        return request


@dataclasses.dataclass(frozen=True, eq=False)
class Classify(PictureRequest[types.Classification]):
    """The `top_k` likeliest classes (0 leaves it to the daemon: five) that are no less probable than the threshold."""

    model: str
    picture: inputs.Picture
    top_k: int = dataclasses.field(default=0, kw_only=True)
    probability_threshold: float | None = dataclasses.field(default=None, kw_only=True)

    def message(self) -> pb.PredictRequest:
        request = self._of_picture(self.model, self.picture)
        request.classification.CopyFrom(
            pb.ClassificationOptions(top_k=self.top_k, probability_threshold=self.probability_threshold)
        )
        return request

    def answer(self, response: pb.PredictResponse) -> types.Classification:
        return answers.classification(response)


@dataclasses.dataclass(frozen=True, eq=False)
class Detect(PictureRequest[types.Detections]):
    """At most `top_k` things (0: all that are found) of these classes (none: of all), best first."""

    model: str
    picture: inputs.Picture
    score_threshold: float | None = dataclasses.field(default=None, kw_only=True)
    top_k: int = dataclasses.field(default=0, kw_only=True)
    classes: Iterable[int] = dataclasses.field(default=(), kw_only=True)
    masks: bool = dataclasses.field(default=True, kw_only=True)
    mask_threshold: float | None = dataclasses.field(default=None, kw_only=True)
    mask_form: MaskForm = dataclasses.field(default=MaskForm.RLE, kw_only=True)

    def message(self) -> pb.PredictRequest:
        request = self._of_picture(self.model, self.picture)
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
class Segment(PictureRequest[types.Segmentation]):
    """A class for each pixel, in a map of this `size`; without `label_map` the areas of the classes alone."""

    model: str
    picture: inputs.Picture
    label_map: bool = dataclasses.field(default=True, kw_only=True)
    size: Size = dataclasses.field(default=None, kw_only=True)

    def message(self) -> pb.PredictRequest:
        request = self._of_picture(self.model, self.picture)
        form = pb.SegmentationOptions.RAW if self.label_map else pb.SegmentationOptions.NONE
        request.segmentation.CopyFrom(pb.SegmentationOptions(format=form, size=_size(self.size)))
        return request

    def answer(self, response: pb.PredictResponse) -> types.Segmentation:
        return answers.segmentation(response)


@dataclasses.dataclass(frozen=True, eq=False)
class Stereo(PictureRequest[types.Disparity]):
    """Two pictures of one size, rectified: a point lies on the same row of both. A map of another `size` still counts
    pixels of the pictures as they were sent."""

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
class Localize(Request[types.Actions]):
    """What happens when in a video, or in frames, of which there are `frames_per_second` (0: as many as the model
    works with)."""

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
    """A volume of any size, sent in parts. `voxel_type` ("uint8", "uint16", "float32") is the answer's, that of what
    was sent otherwise. A call of its own, so no stream takes it."""

    model: str
    volume: inputs.Volume
    voxel_type: str | None = None
    version: int = 0
    priority: int = 0
    request_id: str = ""


def model(name: str, version: int) -> pb.GetModelRequest:
    return pb.GetModelRequest(model=name, version=version)

"""Converts the daemon's messages to the values of types.py."""

from __future__ import annotations

from typing import Any, TypedDict

import grpc
import numpy

from saccade import types
from saccade.errors import Internal
from saccade.masks import Mask, MaskPicture, MaskPolygon, MaskPolygons
from saccade.v1 import vision_pb2 as pb

_VOXELS = {pb.VolumeShape.UINT8: "|u1", pb.VolumeShape.UINT16: "<u2", pb.VolumeShape.FLOAT32: "<f4"}

# The results' names in error messages.
_NAMES = {
    "classification": "a classification",
    "detections": "detections",
    "segmentation": "a segmentation",
    "disparity": "a disparity",
    "actions": "actions",
    "restoration": "a restoration",
    "embedding": "an embedding",
}


def _check(message: pb.PredictResponse, wanted: str, expected: str | None = None) -> None:
    """Raises Internal if the model has answered with the result of another task."""
    came = message.WhichOneof("result")
    if came != wanted:
        other = "a result that this client does not know" if came is None else _NAMES[came]
        raise Internal(
            f"model '{message.model}' answered with {other} instead of {expected or _NAMES[wanted]}; check the model's "
            "task with `saccade models`",
            grpc.StatusCode.INTERNAL,
        )


class _Facts(TypedDict):
    model: str
    version: int
    request_id: str
    timings: types.Timings
    batch_size: int
    width: int
    height: int
    explanation: types.Explanation | None
    attested: bytes


def _explanation(message: pb.Explanation) -> types.Explanation:
    maps = tuple(
        types.AttentionMap(one.name, one.width, one.height, one.png, one.min, one.max) for one in message.maps
    )
    part = message.seen
    seen = types.PicturePart(part.x, part.y, part.width, part.height) if message.HasField("seen") else None
    return types.Explanation(message.layer, maps, message.available, seen)


def _facts(message: pb.PredictResponse) -> _Facts:
    times = message.timings
    return {
        "model": message.model,
        "version": message.version,
        "request_id": message.request_id,
        "timings": types.Timings(
            *(
                one.seconds + one.nanos / 1e9
                for one in (times.decode, times.queue, times.infer, times.encode, times.total)
            )
        ),
        "batch_size": message.batch_size,
        "width": message.picture_width,
        "height": message.picture_height,
        "explanation": _explanation(message.explanation) if message.HasField("explanation") else None,
        "attested": message.SerializeToString() if message.HasField("attestation") else b"",
    }


def _classes(message: pb.Classification) -> tuple[types.ScoredClass, ...]:
    return tuple(types.ScoredClass(one.index, one.label, one.probability, one.logit) for one in message.classes)


def classification(message: pb.PredictResponse) -> types.Classification:
    _check(message, "classification")
    return types.Classification(**_facts(message), classes=_classes(message.classification))


def _crop(one: pb.Crop) -> types.Crop:
    part = one.region
    return types.Crop(
        model=one.model,
        version=one.version,
        region=types.PicturePart(part.x, part.y, part.width, part.height),
        classes=_classes(one.classification),
        detections=tuple(_detection(inner) for inner in one.detections.detections),
        embedding=numpy.array(one.embedding.values, numpy.float32) if one.HasField("embedding") else None,
        error=one.error,
    )


def _detection(one: pb.Detection) -> types.Detection:
    mask = None
    if one.HasField("mask"):
        mask = Mask(one.mask.height, one.mask.width, one.mask.counts, one.mask.area)
    picture = polygons = None
    if one.HasField("mask_picture"):
        part = one.mask_picture
        picture = MaskPicture(part.x, part.y, part.width, part.height, part.png, part.area)
    if one.HasField("mask_polygons"):
        around = tuple(
            MaskPolygon(numpy.array(line.points, numpy.int32).reshape(-1, 2), line.hole)
            for line in one.mask_polygons.polygons
        )
        polygons = MaskPolygons(around, one.mask_polygons.area)
    box = types.Box(one.box.x_min, one.box.y_min, one.box.x_max, one.box.y_max)
    crops = tuple(_crop(crop) for crop in one.crops)
    keypoints = tuple(types.Keypoint(point.x, point.y, point.score) for point in one.keypoints)
    return types.Detection(box, one.score, one.class_index, one.label, mask, picture, polygons, crops, keypoints)


def detections(message: pb.PredictResponse) -> types.Detections:
    _check(message, "detections")
    found = tuple(_detection(one) for one in message.detections.detections)
    return types.Detections(**_facts(message), detections=found)


def segmentation(message: pb.PredictResponse) -> types.Segmentation:
    _check(message, "segmentation")
    found = message.segmentation
    label_map = None
    if found.format == pb.SegmentationOptions.RAW:
        label_map = numpy.frombuffer(found.label_map, numpy.uint8).reshape(found.height, found.width)
    areas = tuple(types.Area(one.class_index, one.label, one.pixels, one.fraction) for one in found.areas)
    return types.Segmentation(**_facts(message), label_map=label_map, areas=areas)


def disparity(message: pb.PredictResponse) -> types.Disparity:
    _check(message, "disparity")
    found = message.disparity
    values = numpy.frombuffer(found.map, "<f4").reshape(found.height, found.width)
    return types.Disparity(
        **_facts(message), disparity=values, min=found.min, max=found.max, mean=found.mean
    )


def depth(message: pb.PredictResponse) -> types.DepthMap:
    _check(message, "disparity", "a depth map")
    found = message.disparity
    values = numpy.frombuffer(found.map, "<f4").reshape(found.height, found.width)
    return types.DepthMap(**_facts(message), depth=values, min=found.min, max=found.max, mean=found.mean)


def embedding(message: pb.PredictResponse) -> types.Embedding:
    _check(message, "embedding")
    return types.Embedding(**_facts(message), values=numpy.array(message.embedding.values, numpy.float32))


def actions(message: pb.PredictResponse) -> types.Actions:
    _check(message, "actions")
    found = tuple(
        types.Action(
            one.start_seconds, one.end_seconds, one.score, one.class_index, one.label, one.start_frame, one.end_frame
        )
        for one in message.actions.actions
    )
    seen = message.actions
    return types.Actions(
        **_facts(message), actions=found, frames=seen.frames, frames_per_second=seen.frames_per_second
    )


def restoration(message: pb.PredictResponse, voxels: Any) -> types.Restoration:
    _check(message, "restoration")
    found = message.restoration
    shape = found.shape
    values = numpy.frombuffer(voxels, _VOXELS[shape.type]).reshape(shape.depth, shape.height, shape.width)
    return types.Restoration(**_facts(message), volume=values, min=found.min, max=found.max)


def promotion(message: pb.Promotion) -> types.Promotion:
    return types.Promotion(
        state=types.PromotionState(pb.Promotion.State.Name(message.state)),
        rule=message.rule,
        shadow=message.shadow,
        replaces=message.replaces,
        reason=message.reason,
    )


def model(message: pb.Model) -> types.Model:
    return types.Model(
        name=message.name,
        version=message.version,
        state=types.ModelState(pb.Model.State.Name(message.state)),
        reason=message.reason,
        architecture=message.architecture,
        task=message.task,
        options=dict(message.options),
        input_width=message.input_width,
        input_height=message.input_height,
        classes=message.classes,
        labels=tuple(message.labels),
        max_batch_size=message.max_batch_size,
        queued=message.queued,
        load_seconds=message.load_duration.ToTimedelta().total_seconds(),
        buckets=message.buckets,
        views=message.views,
        max_frames=message.max_frames,
        frames_per_second=message.frames_per_second,
        max_voxels=message.max_voxels,
        attention_layers=tuple(message.attention_layers),
        attention_by_position=message.attention_by_position,
        precision=message.precision,
        precision_reason=message.precision_reason,
        promotion=promotion(message.promotion) if message.HasField("promotion") else None,
    )


def models(message: pb.ListModelsResponse) -> list[types.Model]:
    return [model(one) for one in message.models]

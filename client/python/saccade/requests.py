"""A call's arguments into its message: the same for both clients."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from saccade import inputs
from saccade.masks import MaskForm
from saccade.v1 import vision_pb2 as pb


@dataclasses.dataclass(frozen=True)
class Head:
    """What every request may say."""

    model: str
    version: int
    priority: int
    request_id: str


def _request(head: Head) -> pb.PredictRequest:
    return pb.PredictRequest(
        model=head.model, version=head.version, priority=head.priority, request_id=head.request_id
    )


def _of_picture(head: Head, picture: inputs.Picture) -> pb.PredictRequest:
    request = _request(head)
    sent = inputs.picture(picture)
    if sent.WhichOneof("content") == "raw":
        request.raw.CopyFrom(sent.raw)
    else:
        request.encoded = sent.encoded
    return request


def classify(head: Head, picture: inputs.Picture, top_k: int) -> pb.PredictRequest:
    request = _of_picture(head, picture)
    request.classification.top_k = top_k
    return request


def detect(
    head: Head,
    picture: inputs.Picture,
    score_threshold: float | None,
    top_k: int,
    classes: Iterable[int],
    masks: bool,
    mask_threshold: float | None,
    mask_form: MaskForm,
) -> pb.PredictRequest:
    request = _of_picture(head, picture)
    request.detection.CopyFrom(
        pb.DetectionOptions(
            score_threshold=score_threshold,
            top_k=top_k,
            classes=classes,
            masks=pb.DetectionOptions.Masks.Value(mask_form.value if masks else "NONE"),
            mask_threshold=mask_threshold,
        )
    )
    return request


def segment(head: Head, picture: inputs.Picture, label_map: bool) -> pb.PredictRequest:
    request = _of_picture(head, picture)
    request.segmentation.format = pb.SegmentationOptions.RAW if label_map else pb.SegmentationOptions.NONE
    return request


def stereo(head: Head, left: inputs.Picture, right: inputs.Picture) -> pb.PredictRequest:
    request = _request(head)
    request.stereo.left.CopyFrom(inputs.picture(left))
    request.stereo.right.CopyFrom(inputs.picture(right))
    request.stereo_options.format = pb.StereoOptions.FLOAT
    return request


def actions(
    head: Head,
    clip: inputs.Clip,
    frames_per_second: float,
    score_threshold: float | None,
    top_k: int,
    classes: Iterable[int],
) -> pb.PredictRequest:
    request = _request(head)
    request.clip.CopyFrom(inputs.clip(clip, frames_per_second))
    request.actions.CopyFrom(pb.ActionOptions(score_threshold=score_threshold, top_k=top_k, classes=classes))
    return request


def model(name: str, version: int) -> pb.GetModelRequest:
    return pb.GetModelRequest(model=name, version=version)

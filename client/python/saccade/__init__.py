"""Typed client of the Saccade vision daemon: `Client`, and `AsyncClient` for asyncio."""

from saccade.aio import AsyncClient
from saccade.client import Client
from saccade.connection import TLS
from saccade.errors import (
    Cancelled,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    SaccadeError,
    Unauthenticated,
    Unavailable,
    Unimplemented,
    Untrusted,
)
from saccade.inputs import Pixels
from saccade.masks import Mask, MaskForm, MaskPicture, MaskPolygon, MaskPolygons
from saccade.requests import Classify, Detect, Localize, Request, Segment, Stereo
from saccade.retry import Retry
from saccade.streams import StreamItem
from saccade.types import (
    Action,
    Actions,
    Answer,
    Area,
    Box,
    Classification,
    Detection,
    Detections,
    Disparity,
    Model,
    ModelState,
    Restoration,
    ScoredClass,
    Segmentation,
    Timings,
)

__all__ = [
    "Action",
    "Actions",
    "Answer",
    "Area",
    "AsyncClient",
    "Box",
    "Cancelled",
    "Classification",
    "Classify",
    "Client",
    "DeadlineExceeded",
    "Detect",
    "Detection",
    "Detections",
    "Disparity",
    "Internal",
    "InvalidArgument",
    "Localize",
    "Mask",
    "MaskForm",
    "MaskPicture",
    "MaskPolygon",
    "MaskPolygons",
    "Model",
    "ModelState",
    "NotFound",
    "PermissionDenied",
    "Pixels",
    "Request",
    "ResourceExhausted",
    "Restoration",
    "Retry",
    "SaccadeError",
    "ScoredClass",
    "Segment",
    "Segmentation",
    "Stereo",
    "StreamItem",
    "Timings",
    "TLS",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "Untrusted",
]

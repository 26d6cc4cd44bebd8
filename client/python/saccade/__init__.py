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
)
from saccade.inputs import Pixels
from saccade.masks import Mask, MaskForm, MaskPicture, MaskPolygon, MaskPolygons
from saccade.retry import Retry
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
    "Client",
    "DeadlineExceeded",
    "Detection",
    "Detections",
    "Disparity",
    "Internal",
    "InvalidArgument",
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
    "ResourceExhausted",
    "Restoration",
    "Retry",
    "SaccadeError",
    "ScoredClass",
    "Segmentation",
    "Timings",
    "TLS",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
]

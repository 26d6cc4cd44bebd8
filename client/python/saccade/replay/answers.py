"""Reads answers, whichever protocol they came by, into what can be compared."""

from __future__ import annotations

import dataclasses
import json

from google.protobuf import json_format
from google.protobuf.message import DecodeError

from saccade.replay import tensors
from saccade.v1 import vision_pb2 as pb

# By google.rpc.Code.
STATUSES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)
# They say nothing about the request: the daemon was too busy, or the client went away.
REJECTED = ("CANCELLED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "UNAVAILABLE")

PREDICT = "saccade.v1.Vision/Predict"
PREDICT_STREAM = "saccade.v1.Vision/PredictStream"
MODEL_INFER = "inference.GRPCInferenceService/ModelInfer"
MODEL_STREAM_INFER = "inference.GRPCInferenceService/ModelStreamInfer"


@dataclasses.dataclass(frozen=True)
class Reply:
    """What a daemon has sent back."""

    status: str
    message: str
    body: bytes
    headers: dict[str, str]
    # The status of HTTP; 0 for gRPC.
    http_status: int = 0


@dataclasses.dataclass(frozen=True)
class Answer:
    """Either an error or one of the two results."""

    status: str
    message: str = ""
    result: pb.PredictResponse | None = None
    tensors: tuple[tensors.Tensor, ...] = ()
    version: int = 0
    # Whether a disparity map is the depth of a single picture, in the model's own unit.
    is_depth: bool = False


def _vision(message: pb.PredictResponse) -> Answer:
    version = message.version
    # These fields differ from call to call. The version is kept beside the result.
    for field in ("timings", "batch_size", "version", "request_id", "attestation"):
        message.ClearField(field)
    return Answer("OK", result=message, version=version)


def _named(answer: tensors.TensorAnswer) -> Answer:
    return Answer("OK", tensors=answer.tensors, version=answer.version)


def _read(target: str, reply: Reply) -> Answer:
    if target == PREDICT:
        return _vision(pb.PredictResponse.FromString(reply.body))
    if target == PREDICT_STREAM:
        answer = pb.PredictStreamResponse.FromString(reply.body)
        if answer.HasField("error"):
            code = answer.error.code
            return Answer(STATUSES[code] if code < len(STATUSES) else "UNKNOWN", answer.error.message)
        return _vision(answer.answer)
    if target == MODEL_INFER:
        return _named(tensors.from_message(reply.body))
    if target == MODEL_STREAM_INFER:
        error, answer = tensors.from_stream_message(reply.body)
        # Its errors have no code.
        return Answer("FAILED", error) if error else _named(answer)
    if target.startswith("/v1/predict"):
        return _vision(json_format.Parse(reply.body, pb.PredictResponse(), ignore_unknown_fields=True))
    length = reply.headers.get("inference-header-content-length")
    return _named(tensors.from_json(reply.body, int(length) if length else None))


def request_of(target: str, request: bytes) -> pb.PredictRequest | None:
    """The request of a call that has one as a message; else None. Raises ValueError, DecodeError or ParseError if it
    cannot be read."""
    if target == PREDICT:
        return pb.PredictRequest.FromString(request)
    if target == PREDICT_STREAM:
        return pb.PredictStreamRequest.FromString(request).request
    if target.split("?")[0] == "/v1/predict":
        return json_format.Parse(request, pb.PredictRequest(), ignore_unknown_fields=True)
    return None


def _has_one_picture(target: str, request: bytes) -> bool:
    try:
        message = request_of(target, request)
    except (ValueError, DecodeError, json_format.ParseError):
        return False
    return message is None or message.WhichOneof("input") != "stereo"


def read(target: str, reply: Reply, request: bytes = b"") -> Answer:
    """Raises ValueError if the body is not what this call answers. Without the request, depth is taken for a disparity."""
    # Streams tell their errors in messages.
    in_message = target in (PREDICT_STREAM, MODEL_STREAM_INFER) and reply.body
    if reply.status != "OK" and not in_message:
        message = reply.message
        if reply.http_status and not message:
            try:
                message = str(json.loads(reply.body)["error"])
            except (ValueError, KeyError, TypeError):
                message = f"HTTP {reply.http_status}"
        return Answer(reply.status, message)
    try:
        answer = _read(target, reply)
        if request and answer.result is not None and answer.result.HasField("disparity"):
            answer = dataclasses.replace(answer, is_depth=_has_one_picture(target, request))
        return answer
    except (ValueError, KeyError, TypeError, IndexError, DecodeError, json_format.ParseError) as error:
        raise ValueError(f"the answer of {target} cannot be read: {error}") from None

"""Exceptions for failed calls, one class per gRPC code."""

from __future__ import annotations

import contextlib
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from saccade.v1 import vision_pb2 as pb


class SaccadeError(Exception):
    """A call failed. The text is the daemon's message, which says what to do.

    code: the gRPC code. retry_after: seconds to wait before a retry, None if the daemon did not say. reason: why the
    request was rejected before it was computed ("QUEUE_FULL", "PREDICTED_LATE", ...), or None. field: the wrong field
    of the request, or None.
    """

    def __init__(
        self,
        message: str,
        code: grpc.StatusCode,
        retry_after: float | None = None,
        reason: str | None = None,
        field: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after
        self.reason = reason
        self.field = field

    @property
    def message(self) -> str:
        return str(self)


class InvalidArgument(SaccadeError):
    """The request is wrong; `field` names the wrong part."""


class NotFound(SaccadeError):
    """The model or the version does not exist."""


class DeadlineExceeded(SaccadeError):
    """The timeout passed, or the daemon predicted that it would."""


class ResourceExhausted(SaccadeError):
    """The daemon is overloaded (`retry_after` is set) or the request is too large (`retry_after` is None)."""


class Unavailable(SaccadeError):
    """The daemon cannot be reached, is loading, or is draining."""


class Untrusted(Unavailable):
    """A server was reached, but the TLS handshake failed; the text says why."""


class Cancelled(SaccadeError):
    """The call was cancelled."""


class Unauthenticated(SaccadeError):
    """The token is missing or unknown."""


class PermissionDenied(SaccadeError):
    """The token does not permit this call."""


class Unimplemented(SaccadeError):
    """The daemon does not serve this."""


class Internal(SaccadeError):
    """The daemon failed, for example in the forward pass of this request, or violated the protocol."""


_BY_CODE: dict[grpc.StatusCode, type[SaccadeError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgument,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhausted,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.CANCELLED: Cancelled,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.UNIMPLEMENTED: Unimplemented,
    grpc.StatusCode.INTERNAL: Internal,
}


def error_of(failure: grpc.RpcError) -> SaccadeError:
    """Converts the failure of a synchronous or asyncio call, including its google.rpc details."""
    # Both kinds of errors have the methods used here; gRPC's base class does not declare them.
    call: Any = failure
    code = call.code()
    found = _BY_CODE.get(code, SaccadeError)(call.details() or code.name, code)
    for key, value in call.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            # A proxy may have made details that cannot be read. The status counts without them.
            with contextlib.suppress(DecodeError, OverflowError):
                _add_details(found, value)
    found.__cause__ = failure
    return found


_CODES = {code.value[0]: code for code in grpc.StatusCode}


def item_error_of(failure: pb.ItemError) -> SaccadeError:
    """Converts the error of one request of a stream."""
    code = _CODES.get(failure.code, grpc.StatusCode.UNKNOWN)
    retry_after = failure.retry_after.ToTimedelta().total_seconds() if failure.HasField("retry_after") else None
    kind = _BY_CODE.get(code, SaccadeError)
    return kind(failure.message or code.name, code, retry_after, failure.reason or None, failure.field or None)


def _add_details(error: SaccadeError, encoded: bytes) -> None:
    for detail in status_pb2.Status.FromString(encoded).details:
        hint, info = error_details_pb2.RetryInfo(), error_details_pb2.ErrorInfo()
        wrong = error_details_pb2.BadRequest()
        if detail.Unpack(hint):
            error.retry_after = hint.retry_delay.ToTimedelta().total_seconds()
        elif detail.Unpack(info):
            error.reason = info.reason
        elif detail.Unpack(wrong) and wrong.field_violations:
            error.field = wrong.field_violations[0].field

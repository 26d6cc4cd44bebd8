"""Checks of requests that must fail."""

import grpc
import pytest

from messages import message

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED


def refused(call, request, **options):
    with pytest.raises(grpc.RpcError) as error:
        call(request, **options)
    return error.value


def pushback(error):
    """The delay in milliseconds that the server sets for gRPC's own retries; None if there is no hint."""
    found = [value for key, value in error.trailing_metadata() if key == "grpc-retry-pushback-ms"]
    assert len(found) <= 1
    return int(found[0]) if found else None


def details(error):
    """The google.rpc messages of the error, by name."""
    sent = [value for key, value in error.trailing_metadata() if key == "grpc-status-details-bin"]
    if not sent:
        return {}
    status = message("google.rpc.Status").FromString(sent[0])
    assert (status.code, status.message) == (error.code().value[0], error.details())
    names = [any.type_url.removeprefix("type.googleapis.com/") for any in status.details]
    return {name: message(name).FromString(any.value) for name, any in zip(names, status.details)}


def check(error, code, words):
    """`words` must be in the error's message."""
    assert error.code() == code, f"{error.code()}: {error.details()}"
    for word in words:
        assert word in error.details(), f"{word!r} is not in {error.details()!r}"

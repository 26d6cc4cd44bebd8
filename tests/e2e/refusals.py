"""Requests that must fail, and how."""

import grpc
import pytest

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED


def refused(call, request):
    with pytest.raises(grpc.RpcError) as error:
        call(request)
    return error.value


def check(error, code, words):
    """`words` are what the error's message must hold."""
    assert error.code() == code, f"{error.code()}: {error.details()}"
    for word in words:
        assert word in error.details(), f"{word!r} is not in {error.details()!r}"

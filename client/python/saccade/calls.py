"""What both clients are made of: their options, and the methods that each kind of request becomes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import grpc
from typing_extensions import Concatenate, ParamSpec

from saccade.connection import TLS, Connection
from saccade.errors import SaccadeError, error_of
from saccade.retry import Retry
from saccade.v1 import vision_pb2_grpc

P = ParamSpec("P")
C = TypeVar("C")
Q = TypeVar("Q")
R = TypeVar("R")


class Options:
    """A daemon, or all replicas behind one name: what both clients are told."""

    def __init__(
        self,
        address: str = "127.0.0.1:8001",
        *,
        timeout: float | None = 30.0,
        retry: Retry = Retry(),
        tls: TLS | bool | None = None,
        token: str | None = None,
        token_without_tls: bool = False,
        max_message_bytes: int = 64 << 20,
    ) -> None:
        self._connection = Connection(
            address=address,
            tls=TLS() if tls is True else tls or None,
            token=token,
            token_without_tls=token_without_tls,
            max_message_bytes=max_message_bytes,
        )
        self._timeout = timeout
        self._retry = retry
        self._metadata = self._connection.metadata()
        # By the caller: what is running then is cancelled, and not sent again.
        self._closed = False
        self._connect()

    def _connect(self) -> None:
        raise NotImplementedError

    def _error_of(self, failure: grpc.RpcError) -> SaccadeError:
        return self._connection.explained(error_of(failure))

    def _timeout_of(self, asked: float | None) -> float | None:
        return self._timeout if asked is None else asked


def vision_of(channel: Any) -> Any:
    """The generated class serves both kinds of channels."""
    return vision_pb2_grpc.VisionStub(channel)  # type: ignore[no-untyped-call]


def asks(kind: Callable[P, Q], ask: Callable[[C, Q], R]) -> Callable[Concatenate[C, P], R]:
    """A method that takes what `kind` takes, and gives what `ask` makes of it."""

    @functools.wraps(ask)
    def method(client: C, /, *given: P.args, **named: P.kwargs) -> R:
        return ask(client, kind(*given, **named))

    parameters = inspect.signature(kind).parameters.values()
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = inspect.Signature([itself, *parameters])  # type: ignore[attr-defined]
    method.__doc__ = kind.__doc__
    method.__name__ = kind.__name__.lower()
    return method

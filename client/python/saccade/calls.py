"""The common base of both clients: their options, and the methods made from the kinds of requests."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import grpc
from typing_extensions import Concatenate, ParamSpec

from saccade.connection import TLS, Connection
from saccade.errors import SaccadeError, error_of
from saccade.retry import Attempts, Budget, Retry
from saccade.v1 import vision_pb2_grpc

P = ParamSpec("P")
C = TypeVar("C")
Q = TypeVar("Q")
R = TypeVar("R")


# Seconds. gRPC cannot wait much longer, and not until infinity.
_MOST_TIMEOUT = 10**9


class Options:
    """The options of both clients: the address of a daemon, or of all replicas behind one name, and how to call it."""

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
        keepalive: float | None = 10.0,
    ) -> None:
        self._connection = Connection(
            address=address,
            tls=TLS() if tls is True else tls or None,
            token=token,
            token_without_tls=token_without_tls,
            max_message_bytes=max_message_bytes,
            keepalive=keepalive,
        )
        if timeout is not None and not 0 < timeout <= _MOST_TIMEOUT:
            raise ValueError(
                f"timeout: is {timeout}; expected more than 0 and at most {_MOST_TIMEOUT} seconds, or None for no limit"
            )
        self._timeout = timeout
        self._retry = retry
        self._budget = Budget(retry.budget)
        self._metadata = self._connection.metadata()
        self._connect()

    def _connect(self) -> None:
        raise NotImplementedError

    def _error_of(self, failure: grpc.RpcError) -> SaccadeError:
        return self._connection.explained(error_of(failure))

    def _short_attempts(self, timeout: float | None) -> Attempts:
        """For calls whose attempts Retry.attempt_timeout bounds."""
        return Attempts(self._retry, self._budget, self._timeout_of(timeout), self._retry.attempt_timeout)

    def _timeout_of(self, asked: float | None) -> float | None:
        return self._timeout if asked is None else asked


def vision_of(channel: Any) -> Any:
    """The generated stub works with synchronous and asyncio channels."""
    return vision_pb2_grpc.VisionStub(channel)  # type: ignore[no-untyped-call]


def asks(kind: Callable[P, Q], ask: Callable[[C, Q], R]) -> Callable[Concatenate[C, P], R]:
    """Returns a method with the parameters of `kind` that builds the request and returns `ask(request)`."""

    @functools.wraps(ask)
    def method(client: C, /, *given: P.args, **named: P.kwargs) -> R:
        return ask(client, kind(*given, **named))

    parameters = inspect.signature(kind).parameters.values()
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = inspect.Signature([itself, *parameters])  # type: ignore[attr-defined]
    method.__doc__ = kind.__doc__
    method.__name__ = kind.__name__.lower()
    return method

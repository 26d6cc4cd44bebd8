"""The synchronous client; aio.py has the one for asyncio."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import grpc
from typing_extensions import Self

from saccade import answers, inputs, requests, types, volumes
from saccade.calls import Options, asks, vision_of
from saccade.errors import Cancelled
from saccade.requests import Request
from saccade.retry import Attempts
from saccade.streams import Exchange, StreamItem
from saccade.v1 import vision_pb2 as pb

T = TypeVar("T")
A = TypeVar("A", bound=types.Answer)


class Client(Options):
    """A client of one daemon, or of all replicas behind one name. Thread-safe. Connects with the first call.

    `timeout` is the time limit of a call in seconds, including retries; None has no limit. An overloaded daemon uses it
    to reject what it cannot finish in time. `tls=True` trusts gRPC's default root certificates. Every method raises a
    SaccadeError if the call fails.
    """

    def _connect(self) -> None:
        # Set once the caller has closed the client: running calls are cancelled and not retried.
        self._closed = threading.Event()
        self._channel = self._connection.channel()
        self._vision = vision_of(self._channel)

    def close(self) -> None:
        """Closes the connection and cancels running calls."""
        self._closed.set()
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, request: Request[A]) -> A:
        """Sends a request object: `classify(model, picture)` is `ask(saccade.Classify(model, picture))`."""
        response = self._unary(self._vision.Predict, request.message(), request.timeout)
        return request.answer(response)

    classify = asks(requests.Classify, ask)
    detect = asks(requests.Detect, ask)
    segment = asks(requests.Segment, ask)
    stereo = asks(requests.Stereo, ask)
    depth = asks(requests.Depth, ask)
    embed = asks(requests.Embed, ask)
    actions = asks(requests.FindActions, ask)

    def stream(
        self, requests: Iterable[Request[A]], *, in_flight: int = 32, timeout: float | None = None
    ) -> Iterator[StreamItem[A]]:
        """Sends many requests over one call; yields their outcomes in the same order, each with an answer or an error.

        `requests` is iterated on another thread, at most `in_flight` requests (up to the daemon's
        --max-stream-requests) ahead of the outcomes yielded. `timeout` applies to the whole stream; a request without
        its own has the client's. Nothing is retried. An error of the stream itself is raised. An exception that
        `requests` raises is raised, too, after the outcomes of the requests before it. Closing the iterator cancels all
        unanswered requests.
        """

        def open_stream(messages: Iterator[pb.PredictStreamRequest]) -> Any:
            self._check_open()
            return self._vision.PredictStream(messages, timeout=timeout, metadata=self._metadata)

        exchange = Exchange(open_stream, requests, in_flight, self._timeout_of, self._error_of)
        try:
            yield from exchange
        finally:
            exchange.close()

    def restore(
        self,
        model: str,
        volume: inputs.Volume,
        *,
        voxel_type: str | None = None,
        progress: volumes.Progress | None = None,
        version: int = 0,
        priority: int = 0,
        request_id: str = "",
        timeout: float | None = 1800.0,
    ) -> types.Restoration:
        """Restores a volume of any size, sent in parts. `voxel_type` ("uint8", "uint16", "float32") is the type of the
        answer; None keeps the type that was sent. `progress` is called with the progress from 0 to 1; an exception that
        it raises cancels the call. `timeout` is in seconds and independent of the client's, because a restoration can
        take minutes; None has no limit."""
        request = requests.Restore(model, volume, voxel_type, version, priority, request_id)

        def attempt(left: float | None) -> types.Restoration:
            upload, download = volumes.Upload(request), volumes.Download(progress)
            call = self._vision.Restore(upload.messages(), timeout=left, metadata=self._metadata)
            with upload.ending(call):
                for message in call:
                    download.take(message)
            return download.result()

        return self._attempts(attempt, Attempts(self._retry, self._budget, timeout))

    def models(self, *, timeout: float | None = None) -> list[types.Model]:
        """Returns every model version known to the daemon, ready or not."""
        return answers.models(self._unary(self._vision.ListModels, pb.ListModelsRequest(), timeout))

    def model(self, name: str, version: int = 0, *, timeout: float | None = None) -> types.Model:
        """Returns one model version; 0 selects the highest that is ready. Raises NotFound if it is unknown."""
        return answers.model(self._unary(self._vision.GetModel, requests.model(name, version), timeout))

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise Cancelled("the client was closed; make another one", grpc.StatusCode.CANCELLED)

    def _unary(self, method: Callable[..., Any], request: object, timeout: float | None) -> Any:
        return self._attempts(
            lambda left: method(request, timeout=left, metadata=self._metadata), self._short_attempts(timeout)
        )

    def _attempts(self, attempt: Callable[[float | None], T], attempts: Attempts) -> T:
        while True:
            self._check_open()
            try:
                result = attempt(attempts.timeout())
            except ValueError:
                # gRPC raises it if the channel was closed since the check.
                self._check_open()
                raise
            except grpc.RpcError as failure:
                error = self._error_of(failure)
                if self._closed.wait(attempts.pause(error, given_up=self._closed.is_set())):
                    raise error
            else:
                attempts.succeeded()
                return result

"""The asyncio client: the methods of client.py as coroutines. Files are read and pictures converted on a thread."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from concurrent import futures
from typing import Any, TypeVar

import grpc
from typing_extensions import Self

from saccade import answers, inputs, requests, types, volumes
from saccade.calls import Options, asks, vision_of
from saccade.errors import Cancelled, ResourceExhausted
from saccade.requests import Request
from saccade.retry import Attempts
from saccade.streams import Exchange, StreamItem
from saccade.v1 import vision_pb2 as pb

T = TypeVar("T")
A = TypeVar("A", bound=types.Answer)

# Streams and restorations of a client at once. Each takes two threads, one of them gRPC's.
_MOST_STREAMS = 1000


class AsyncClient(Options):
    """Like Client, for the event loop in which it is created. Cancelling a task cancels its call."""

    def _connect(self) -> None:
        # Set once the caller has closed the client: running calls are cancelled and not retried.
        self._closed = asyncio.Event()
        self._channel = self._connection.aio_channel()
        self._vision = vision_of(self._channel)
        # Channel of streams, opened with the first one. grpc.aio loses the status of a call that ends while it still
        # sends, and reports INTERNAL instead. gRPC's synchronous API does not, so streams use that one, each on a
        # thread of its own: it waits for as long as nothing comes.
        self._streams_channel: grpc.Channel | None = None
        self._streams = 0

    async def close(self) -> None:
        """Closes the connection and cancels running calls."""
        self._closed.set()
        await self._channel.close(None)
        if self._streams_channel is not None:
            self._streams_channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ask(self, request: Request[A]) -> A:
        """Sends a request object: `classify(model, picture)` is `ask(saccade.Classify(model, picture))`."""
        message = request.message() if request.is_encoded() else await asyncio.to_thread(request.message)
        return request.answer(await self._unary(self._vision.Predict, message, request.timeout))

    classify = asks(requests.Classify, ask)
    detect = asks(requests.Detect, ask)
    segment = asks(requests.Segment, ask)
    stereo = asks(requests.Stereo, ask)
    depth = asks(requests.Depth, ask)
    embed = asks(requests.Embed, ask)
    actions = asks(requests.FindActions, ask)

    async def stream(
        self,
        requests: Iterable[Request[A]] | AsyncIterable[Request[A]],
        *,
        in_flight: int = 32,
        timeout: float | None = None,
    ) -> AsyncIterator[StreamItem[A]]:
        """Like Client.stream. An asynchronous iterable is iterated on the event loop, any other on a thread."""
        taken = _OnLoop(requests) if isinstance(requests, AsyncIterable) else requests
        vision = self._streams_vision()

        def open_stream(messages: Iterator[pb.PredictStreamRequest]) -> Any:
            return vision.PredictStream(messages, timeout=timeout, metadata=self._metadata)

        with self._thread() as thread:
            exchange = Exchange(open_stream, taken, in_flight, self._timeout_of, self._error_of)
            try:
                while (item := await _next(exchange, thread)) is not None:
                    yield item
            finally:
                exchange.close()
                if isinstance(taken, _OnLoop):
                    taken.cancel()

    async def restore(
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
        """Like Client.restore. `progress` is called on the event loop's thread."""
        request = requests.Restore(model, volume, voxel_type, version, priority, request_id)

        async def attempt(left: float | None) -> types.Restoration:
            upload, download = await asyncio.to_thread(volumes.Upload, request), volumes.Download(progress)
            # The client may have been closed meanwhile.
            vision = self._streams_vision()
            with self._thread() as thread:
                call = vision.Restore(upload.messages(), timeout=left, metadata=self._metadata)
                with upload.ending(call):
                    while (message := await _next(call, thread)) is not None:
                        download.take(message)
            return download.result()

        return await self._attempts(attempt, Attempts(self._retry, self._budget, timeout))

    async def models(self, *, timeout: float | None = None) -> list[types.Model]:
        return answers.models(await self._unary(self._vision.ListModels, pb.ListModelsRequest(), timeout))

    async def model(self, name: str, version: int = 0, *, timeout: float | None = None) -> types.Model:
        return answers.model(await self._unary(self._vision.GetModel, requests.model(name, version), timeout))

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise Cancelled("the client was closed; make another one", grpc.StatusCode.CANCELLED)

    def _streams_vision(self) -> Any:
        self._check_open()
        if self._streams_channel is None:
            self._streams_channel = self._connection.channel()
        return vision_of(self._streams_channel)

    @contextlib.contextmanager
    def _thread(self) -> Iterator[futures.Executor]:
        """A thread for one stream. Raises ResourceExhausted if there are too many."""
        if self._streams == _MOST_STREAMS:
            raise ResourceExhausted(
                f"{self._streams} streams and restorations of this client are open; expected at most so many; close "
                "some, or make another client",
                grpc.StatusCode.RESOURCE_EXHAUSTED,
            )
        self._streams += 1
        thread = futures.ThreadPoolExecutor(1, "saccade-stream")
        try:
            yield thread
        finally:
            self._streams -= 1
            thread.shutdown(wait=False)

    async def _unary(self, method: Callable[..., Any], request: object, timeout: float | None) -> Any:
        async def attempt(left: float | None) -> Any:
            # In a task of its own, so that it can be told who has cancelled the call: closing the channel does that, too.
            call = asyncio.ensure_future(method(request, timeout=left, metadata=self._metadata))
            try:
                await asyncio.wait([call])
            finally:
                call.cancel()
            if call.cancelled():
                self._check_open()
            return call.result()

        return await self._attempts(attempt, self._short_attempts(timeout))

    async def _attempts(self, attempt: Callable[[float | None], Awaitable[T]], attempts: Attempts) -> T:
        self._check_open()
        while True:
            try:
                result = await attempt(attempts.timeout())
            except grpc.RpcError as failure:
                error = self._error_of(failure)
                pause = attempts.pause(error, given_up=self._closed.is_set())
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._closed.wait(), pause)
                if self._closed.is_set():
                    raise error
            else:
                attempts.succeeded()
                return result


async def _next(iterator: Iterator[T], thread: futures.Executor) -> T | None:
    """Returns the iterator's next value; None at its end."""
    return await asyncio.get_running_loop().run_in_executor(thread, next, iterator, None)


class _OnLoop(Iterator[T]):
    """Iterates over an asynchronous iterable of an event loop from another thread."""

    def __init__(self, given: AsyncIterable[T]) -> None:
        self._given = given.__aiter__()
        self._loop = asyncio.get_running_loop()
        self._waits: futures.Future[T] | None = None
        self._cancelled = False

    def __next__(self) -> T:
        async def take() -> T:
            return await self._given.__anext__()

        if self._cancelled:
            raise StopIteration
        self._waits = asyncio.run_coroutine_threadsafe(take(), self._loop)
        try:
            return self._waits.result()
        except (StopAsyncIteration, futures.CancelledError):
            raise StopIteration from None

    def cancel(self) -> None:
        """Ends the iteration, and wakes a thread that waits in __next__."""
        self._cancelled = True
        if self._waits is not None:
            self._waits.cancel()

"""One PredictStream: sends a bounded number of requests ahead and returns their responses in the same order."""

from __future__ import annotations

import dataclasses
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import grpc
from typing_extensions import Self

from saccade import types
from saccade.errors import Internal, SaccadeError, Unavailable, item_error_of
from saccade.requests import Request
from saccade.v1 import vision_pb2 as pb

A = TypeVar("A", bound=types.Answer)
Given = TypeVar("Given", bound=types.Answer, covariant=True)


@dataclasses.dataclass(frozen=True, eq=False)
class StreamItem(Generic[Given]):
    """The outcome of request number `index`, counted from 0: an `answer`, or an `error` that concerns this request
    only. The error is a SaccadeError, or the exception raised before the request was sent (for example an OSError of
    its file)."""

    index: int
    request_id: str
    answer: Given | None = None
    error: Exception | None = None

    def result(self) -> Given:
        """Returns the answer; raises the error if there is one."""
        if self.error is not None:
            raise self.error
        assert self.answer is not None
        return self.answer


# Marks the end of the requests, or of the call, in the queue of those taken.
_END = None


class Exchange(Generic[A]):
    """Iterates over the outcomes. `open_stream` is called with the messages to send; they, and `requests`, are iterated
    on a thread of gRPC's. At most `in_flight` requests are taken ahead of their outcomes."""

    def __init__(
        self,
        open_stream: Callable[[Iterator[pb.PredictStreamRequest]], Any],
        requests: Iterable[Request[A]],
        in_flight: int,
        item_timeout: Callable[[float | None], float | None],
        error_of: Callable[[grpc.RpcError], SaccadeError],
    ) -> None:
        if in_flight < 1:
            raise ValueError(f"in_flight: is {in_flight}; expected at least 1")
        self._requests = requests
        self._item_timeout = item_timeout
        self._error_of = error_of
        self._room = threading.Semaphore(in_flight)
        self._ended = threading.Event()
        # Requests taken whose outcomes were not returned yet: a request that was sent, or one with the exception that
        # prevented it.
        self._taken: queue.SimpleQueue[tuple[Request[A], Exception | None] | None] = queue.SimpleQueue()
        self._count = 0
        # Whether `requests` has ended, and the exception that it raised.
        self._exhausted = False
        self._failure: Exception | None = None
        self._next_index = 0
        self._call = open_stream(self._messages())
        # add_callback returns False if the call has ended already.
        if not self._call.add_callback(self._end):
            self._end()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamItem[A]:
        taken = self._taken.get()
        if taken is _END:
            # Kept in the queue for further calls of __next__.
            self._taken.put(_END)
            raise self._outcome_of_all()
        request, unsent = taken
        index, self._next_index = self._next_index, self._next_index + 1
        # What the caller gave may be no request.
        id = request.request_id if isinstance(request, Request) else ""
        item = StreamItem[A](index, id, error=unsent) if unsent else self._receive(index, request)
        self._room.release()
        return item

    def close(self) -> None:
        """Cancels all unanswered requests."""
        self._call.cancel()
        self._end()

    def _end(self) -> None:
        self._ended.set()
        self._room.release()
        self._taken.put(_END)

    def _messages(self) -> Iterator[pb.PredictStreamRequest]:
        given = iter(self._requests)
        try:
            while True:
                self._room.acquire()
                if self._ended.is_set():
                    return
                try:
                    request = next(given)
                except StopIteration:
                    self._exhausted = True
                    return
                self._count += 1
                try:
                    message = self._message(request)
                except Exception as unsent:
                    self._taken.put((request, unsent))
                    continue
                self._taken.put((request, None))
                yield message
        # The requests before the failure are answered first.
        except Exception as failure:
            self._exhausted, self._failure = True, failure
        finally:
            self._taken.put(_END)

    def _message(self, request: Request[A]) -> pb.PredictStreamRequest:
        if not isinstance(request, Request):
            raise TypeError(f"requests: has a {type(request).__name__}; expected requests such as saccade.Classify")
        message = pb.PredictStreamRequest(request=request.message())
        timeout = self._item_timeout(request.timeout)
        if timeout is not None:
            message.timeout.FromNanoseconds(max(1, int(timeout * 1e9)))
        return message

    def _receive(self, index: int, request: Request[A]) -> StreamItem[A]:
        response = self._read()
        if response is None:
            self._taken.put(_END)
            raise self._early(index)
        if response.WhichOneof("outcome") == "error":
            return StreamItem(index, response.request_id, error=item_error_of(response.error))
        try:
            return StreamItem(index, response.request_id, answer=request.answer(response.answer))
        except SaccadeError as error:
            return StreamItem(index, response.request_id, error=error)

    def _read(self) -> pb.PredictStreamResponse | None:
        try:
            return next(self._call, None)
        except grpc.RpcError as failure:
            self._taken.put(_END)
            raise self._error_of(failure) from failure

    def _early(self, index: int) -> SaccadeError:
        return Unavailable(f"the daemon ended the stream with request {index} unanswered", grpc.StatusCode.UNAVAILABLE)

    def _outcome_of_all(self) -> BaseException:
        """The final exception, after everything sent was answered or the call has ended."""
        if self._read() is not None:
            return Internal("the daemon sent a response without a request", grpc.StatusCode.INTERNAL)
        if not self._exhausted or self._count > self._next_index:
            return self._early(self._next_index)
        return self._failure if self._failure is not None else StopIteration()

"""Sends inputs to one daemon until each has an answer or a reason why it has none."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import grpc

from saccade import errors, types
from saccade.aio import AsyncClient
from saccade.bulk import rows
from saccade.bulk.failures import BulkError
from saccade.bulk.plan import Question
from saccade.bulk.sources import Item
from saccade.bulk.window import Window
from saccade.connection import TLS
from saccade.retry import Retry

A = TypeVar("A", bound=types.Answer)

_log = logging.getLogger("saccade.bulk")

# Failures that concern the job, not the input: every other input would fail in the same way.
_FATAL = (errors.Unauthenticated, errors.PermissionDenied, errors.NotFound, errors.Unimplemented, errors.Untrusted)
_GONE = (errors.Unavailable, errors.Cancelled)
# Failures that the input may have caused itself, and the attempts before it is given up. UNKNOWN comes from proxies.
_REPEATED = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)
_ATTEMPTS = 3
# What gRPC, or a proxy, says of a request whose connection ended while it was in flight. If it cannot connect, it names the
# "last error" of connecting.
_LOST = re.compile("Socket closed|Connection reset|Broken pipe|Stream removed|connection termination")
# An input that was in flight at so many ends of the daemon is sent alone.
_ENDS = 3
# Ends of the daemon without an answer in between, after which the job ends: the daemon would end of every input.
_MAX_ENDS_IN_A_ROW = 100
_LOOK_SECONDS = 0.05
# gRPC waits longer and longer between its own attempts to connect; a new connection starts afresh.
_RECONNECT_SECONDS = 5.0
_MAX_PAUSE_SECONDS = 10.0


def _is_lost(failure: errors.SaccadeError) -> bool:
    """Returns whether the connection ended while the request was in flight, as it does if the daemon ends."""
    text = failure.message
    return isinstance(failure, errors.Unavailable) and "last error" not in text and _LOST.search(text) is not None


def _pause_of(failure: errors.SaccadeError) -> float | None:
    """The seconds after which a daemon without room wants to be asked again; None for other failures."""
    return failure.retry_after if isinstance(failure, errors.ResourceExhausted) else None


@contextlib.contextmanager
def valid_options(address: str) -> Iterator[None]:
    """Raises BulkError if a client for the address cannot be made with its token and its TLS options."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise BulkError(f"the daemon at {address} cannot be called: {error}") from error


class Connections:
    """How a daemon is reached: its current address, which changes when it was started again, and who asks. `find` returns the
    address, or None while the daemon loads; it does not block."""

    def __init__(
        self,
        find: Callable[[], str | None],
        close: Callable[[], None] = lambda: None,
        token: str | None = None,
        tls: TLS | bool | None = None,
    ) -> None:
        self.close = close
        # The address of the last connection, for messages.
        self.last = ""
        self._find = find
        self._token = token
        self._tls = tls

    async def address(self) -> str:
        """Waits until the daemon has one. The event loop runs meanwhile, so that a signal can end the job."""
        while (found := self._find()) is None:
            await asyncio.sleep(_LOOK_SECONDS)
        return found

    async def open(self) -> AsyncClient:
        self.last = await self.address()
        with valid_options(self.last):
            return AsyncClient(self.last, timeout=None, retry=Retry(attempts=1), token=self._token, tls=self._tls)


class _Connection:
    """A client that is closed when it was replaced and its last request has ended."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client
        self._users = 0
        self._replaced = False

    async def __aenter__(self) -> AsyncClient:
        self._users += 1
        return self.client

    async def __aexit__(self, *_: object) -> None:
        self._users -= 1
        await self._close_if_unused()

    async def replaced(self) -> None:
        self._replaced = True
        await self._close_if_unused()

    async def _close_if_unused(self) -> None:
        if self._replaced and self._users == 0:
            await self.client.close()


class Sender:
    """Belongs to the event loop in which it is opened."""

    @classmethod
    async def open(
        cls, connections: Connections, question: Question, max_in_flight: int, patience_seconds: float
    ) -> Sender:
        """Waits until the daemon has an address."""
        return cls(await connections.open(), connections, question, max_in_flight, patience_seconds)

    def __init__(
        self,
        client: AsyncClient,
        connections: Connections,
        question: Question,
        max_in_flight: int,
        patience_seconds: float,
    ) -> None:
        self._connections = connections
        self._question = question
        self._patience = patience_seconds
        self.window = Window(max_in_flight)
        self._connection = _Connection(client)
        self._opened = time.monotonic()
        # When the first call since the last answer failed; None after an answer.
        self._failing_since: float | None = None
        # The value of `_failing_since` for which it was logged that nothing is answered.
        self._told: float | None = None
        # How often a connection ended with requests in flight: in all, and since the last answer.
        self._ends = 0
        self._ends_in_a_row = 0
        self._model: types.Model | None = None
        self._asking = asyncio.Lock()
        self._reconnecting = asyncio.Lock()

    async def close(self) -> None:
        await self._connection.replaced()

    async def model(self) -> types.Model:
        """Asks for the model once. Waits while the daemon or the model is not ready."""
        if self._model is not None:
            return self._model
        async with self._asking:
            pause = 0.1
            while self._model is None:
                try:
                    async with self._connection as client:
                        model = await self._ask_for_model(client)
                    if model.state != types.ModelState.READY:
                        raise errors.Unavailable(f"model {model.name} is {model.state.value}: {model.reason}",
                                                 grpc.StatusCode.UNAVAILABLE)
                    self._failing_since = None
                    self._model = model
                except (*_FATAL, errors.InvalidArgument) as error:
                    raise self._ended(error) from error
                except errors.SaccadeError as error:
                    await self._wait(error, pause)
                    pause = min(_MAX_PAUSE_SECONDS, pause * 2)
        return self._model

    async def _ask_for_model(self, client: AsyncClient) -> types.Model:
        return await client.model(self._question.model, self._question.version, timeout=10)

    async def task(self) -> rows.Task:
        """Returns how the model's task is sent. Waits like `model`."""
        return rows.task_of(await self.model(), self._question)

    async def row(self, item: Item) -> rows.Row:
        """Returns the input's row. Raises BulkError if the job cannot go on."""
        if item.data is None:
            return rows.failed(item, "UNREADABLE", item.error or "the input cannot be read")
        data, task = item.data, await self.task()
        answer = await self.answer(lambda client: client.ask(task.request(self._question, data)), item.key)
        if isinstance(answer, errors.SaccadeError):
            return rows.failed(item, answer.code.name, answer.message)
        if task.is_slow(answer):
            return await asyncio.to_thread(rows.answered, item, task, answer)
        return rows.answered(item, task, answer)

    async def answer(self, call: Callable[[AsyncClient], Awaitable[A]], name: str) -> A | errors.SaccadeError:
        """Makes the call until it has an answer, or an error that concerns this input alone, which is returned. `name` names
        the input in messages. Raises BulkError if the job cannot go on.

        An input that was in flight when the daemon ended may be the cause, or another one was. If that happens _ENDS times,
        the call is made alone. If the daemon ends once more, this input is given up."""
        attempts, pause, ends = 0, 0.1, 0
        while True:
            is_alone = ends == _ENDS
            number, is_sent = await self.window.enter(is_alone), False
            ends_before = self._ends
            try:
                async with self._connection as client:
                    if is_alone:
                        # The answer shows that the daemon runs, and has not ended because of an earlier request.
                        await self._ask_for_model(client)
                    is_sent = True
                    answer = await call(client)
            except _FATAL as error:
                raise self._ended(error) from error
            except errors.SaccadeError as error:
                failure = error
                if _pause_of(error) is not None or isinstance(error, errors.DeadlineExceeded):
                    self.window.rejected(number)
            else:
                self._is_answered()
                self.window.answered()
                return answer
            finally:
                self.window.leave()
            if is_sent and _is_lost(failure):
                self._has_ended(ends_before, failure, name)
                if is_alone:
                    return self._given_up(failure, name)
                ends += 1
            if isinstance(failure, _GONE) or not is_sent:
                await self._wait(failure, pause)
                pause = min(_MAX_PAUSE_SECONDS, pause * 2)
                continue
            self._is_answered()
            full = _pause_of(failure)
            if full is not None:
                await asyncio.sleep(full * random.uniform(1.0, 1.5))
                continue
            attempts += 1
            if attempts == _ATTEMPTS or failure.code not in _REPEATED:
                return failure

    def _is_answered(self) -> None:
        self._failing_since = None
        self._ends_in_a_row = 0

    def _has_ended(self, ends_before: int, failure: errors.SaccadeError, name: str) -> None:
        """Counts an end of the daemon once, with the first of the requests that were in flight. Its patience begins anew:
        the daemon was there. Raises BulkError if the daemon ends again and again without an answer."""
        if ends_before != self._ends:
            return
        self._ends += 1
        self._ends_in_a_row += 1
        self._failing_since = None
        if self._ends_in_a_row == _MAX_ENDS_IN_A_ROW:
            raise BulkError(
                f"the daemon at {self._connections.last} ended {self._ends_in_a_row} times in a row without an answer, the last "
                f"time with input {name} ({failure.message}); its log says why; mend the model or the daemon, and repeat the "
                "command: it goes on where it stopped"
            )

    def _given_up(self, failure: errors.SaccadeError, name: str) -> errors.SaccadeError:
        _log.info("input %s is given up, because the daemon ends when it is sent", name)
        return errors.Unavailable(
            f"the daemon ended {_ENDS} times while this input was in flight, and once more when it was sent alone "
            f"({failure.message}); the daemon's log says why",
            failure.code,
        )

    def _ended(self, error: errors.SaccadeError) -> BulkError:
        return BulkError(f"{self._connections.last} rejects the job: {error.message}")

    async def _wait(self, error: errors.SaccadeError, seconds: float) -> None:
        """Waits for a daemon that does not answer. Raises BulkError after the job's patience has run out."""
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        since = self._failing_since
        if now - since > self._patience:
            raise BulkError(
                f"nothing was answered at {self._connections.last} for {self._patience:g} s ({error.message}); "
                "start the daemon, and repeat the command: it goes on where it stopped"
            )
        if now - since > _RECONNECT_SECONDS and self._told != since:
            self._told = since
            _log.info("waits for %s, %g s at most: %s", self._connections.last, self._patience, error.message)
        await asyncio.sleep(seconds * random.uniform(0.5, 1.0))
        # The others wait for the first one, which may have to wait until the daemon was started again.
        async with self._reconnecting:
            if time.monotonic() - self._opened > _RECONNECT_SECONDS:
                before, self._connection = self._connection, _Connection(await self._connections.open())
                self._opened = time.monotonic()
                await before.replaced()

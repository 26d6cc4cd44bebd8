"""Processes shards: reads their inputs, sends them, and writes one Parquet file per shard."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import functools
import io
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from saccade.bulk import coco, plan, rows, sources
from saccade.bulk.failures import BulkError, not_written
from saccade.bulk.sender import Connections, Sender

# Rows of a shard that are held in memory before they are written.
_ROWS_AT_ONCE = 256
# Bytes of inputs that are read ahead for one shard.
_BYTES_AHEAD = 128 << 20
# Inputs, and bytes of them, that a thread reads before the first of them is sent.
_READ_AT_ONCE = 32
_BYTES_AT_ONCE = 8 << 20
# Shards that one worker processes at once, so that the daemon has work while one of them ends.
SHARDS_AT_ONCE = 2


@dataclasses.dataclass(frozen=True)
class Limits:
    """Bounds of one worker. `patience_seconds`: how long it waits for a daemon that answers nothing."""

    max_in_flight: int = 64
    patience_seconds: float = 600.0


class _Sink(io.RawIOBase):
    """A file for pyarrow, which can crash if a file fails beneath it. The first error is kept, and what follows it is
    dropped."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._file = open(path, "wb", buffering=1 << 20)
        self._written = 0
        self._error: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._do(lambda: self._file.write(data))
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        # Python flushes once more when it closes the file.
        if not self._file.closed:
            self._do(self._file.flush)

    def _do(self, act: Callable[[], object]) -> None:
        if self._error is None:
            try:
                act()
            except OSError as error:
                self._error = error

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    def finish(self) -> None:
        """Raises the first error if the file is not on the disk."""
        self.flush()
        self._do(lambda: os.fsync(self._file.fileno()))
        self.check()

    def close(self) -> None:
        super().close()
        # Closing writes what is buffered, and closes the file also if that fails. A file that stayed open would keep its
        # room on a full disk after it was removed.
        try:
            self._file.close()
        except OSError as error:
            self._error = self._error or error


class Part:
    """A Parquet file that appears under its name only when it is complete. A second attempt replaces it as a whole.

    A task that is cancelled does not wait for its thread, so that `discard` may come while another thread writes, or
    before a thread begins to: it waits for the first, and the second does nothing."""

    def __init__(self, made: plan.Plan, shard_id: int, schema: Any) -> None:
        import pyarrow.parquet

        self._path = made.part(shard_id)
        self._unfinished = os.path.join(plan.scratch(made.folder), f"{shard_id:06}-{uuid.uuid4().hex}")
        self._schema = schema
        self.count = 0
        self._used = threading.Lock()
        self._closed = False
        self._file = _Sink(self._unfinished)
        self._writer = pyarrow.parquet.ParquetWriter(self._file, schema, compression="zstd")

    def add(self, added: list[rows.Row]) -> None:
        import pyarrow

        with self._used:
            if self._closed:
                return
            self._writer.write_table(pyarrow.Table.from_pylist(added, self._schema))
            self._file.check()
            self.count += len(added)

    def finish(self) -> None:
        with self._used:
            if self._closed:
                return
            self._writer.close()
            self._file.finish()
            os.replace(self._unfinished, self._path)

    def discard(self) -> None:
        """Closes the file; removes it if it is not finished."""
        with self._used:
            self._closed = True
            self._writer.close()
            self._file.close()
            # A new run of the job removes what an earlier one left.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._unfinished)


class Worker:
    """Sends the inputs of shards to one daemon. Used from one thread. A worker that has failed has nothing to do any more."""

    def __init__(
        self, folder: str, run: str, connections: Connections, limits: Limits, is_coco: bool = False
    ) -> None:
        self._plan = plan.read(folder)
        self._connections = connections
        self._limits = limits
        self._is_coco = is_coco
        self._sender: Sender | None = None
        self._failure = plan.Failure(folder, run)

    @functools.cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        """The loop of `process`. An engine with a loop of its own awaits `process_all` there."""
        return asyncio.new_event_loop()

    def process(self, entries: Iterable[plan.Entry]) -> None:
        """Writes the parts of the shards. A failure of the job is told to all workers, and ends them: they give their
        daemons up, since an engine may keep the process for long."""
        try:
            if self._failure.told() is None:
                self._loop.run_until_complete(self.process_all(entries))
        except BulkError as error:
            self._failure.tell(error)
        if self._failure.told() is not None:
            self.end()

    def end(self) -> None:
        """Gives the daemon up. May be called again."""
        self._loop.run_until_complete(self.close())

    async def process_all(self, entries: Iterable[plan.Entry]) -> None:
        if self._sender is None:
            limits = self._limits
            self._sender = await Sender.open(
                self._connections, self._plan.question, limits.max_in_flight, limits.patience_seconds
            )
        # One iterator for all of them: each takes the next shard when it is done with one.
        left = iter(entries)
        lanes = [asyncio.ensure_future(self._lane(left, self._sender)) for _ in range(SHARDS_AT_ONCE)]
        try:
            await asyncio.gather(*lanes)
        finally:
            await _cancel(lanes)

    async def close(self) -> None:
        sender, self._sender = self._sender, None
        if sender is not None:
            await sender.close()
        self._connections.close()

    async def _lane(self, entries: Iterable[plan.Entry], sender: Sender) -> None:
        for entry in entries:
            if self._failure.told() is not None:
                return
            await self._shard(entry, sender)

    async def _shard(self, entry: plan.Entry, sender: Sender) -> None:
        schema = rows.schema(await sender.task())
        if self._is_coco:
            coco.check(schema)
        try:
            part = Part(self._plan, entry.id, schema)
        except OSError as error:
            raise not_written("a part", self._plan.folder, error) from error
        try:
            await self._answer(self._plan.shard(entry), sender, part)
            if part.count != entry.items:
                raise BulkError(
                    f"shard {entry.id} has {part.count} inputs; expected {entry.items} as in the plan; an input file "
                    "changed: restore it, or start again in a new folder"
                )
            await asyncio.to_thread(part.finish)
        except OSError as error:
            raise not_written("a part", self._plan.folder, error) from error
        finally:
            part.discard()

    async def _answer(self, shard: sources.Shard, sender: Sender, part: Part) -> None:
        """Adds the rows of a shard in order, with a bounded number of inputs in memory."""
        items = sources.read(shard)
        waiting: collections.deque[tuple[int, asyncio.Task[rows.Row]]] = collections.deque()
        answered: list[rows.Row] = []
        most = 2 * self._limits.max_in_flight
        at_once = min(_READ_AT_ONCE, self._limits.max_in_flight)
        ahead, more = 0, True
        try:
            while more or waiting:
                while more and len(waiting) <= most - at_once and ahead < _BYTES_AHEAD:
                    found = await asyncio.to_thread(_next, items, at_once)
                    more = bool(found)
                    for item in found:
                        size = len(item.data or b"")
                        ahead += size
                        waiting.append((size, asyncio.ensure_future(sender.row(item))))
                if waiting:
                    size, first = waiting.popleft()
                    try:
                        row = await first
                    except BaseException:
                        await _cancel([first])
                        raise
                    ahead -= size
                    answered.append(row)
                if len(answered) == _ROWS_AT_ONCE or (answered and not (more or waiting)):
                    await asyncio.to_thread(part.add, answered)
                    answered = []
        finally:
            await _cancel([task for _, task in waiting])


def _next(items: Iterator[sources.Item], count: int) -> list[sources.Item]:
    """Reads so many inputs, or fewer if they are large. Returns none at the end."""
    found, size = [], 0
    for item in items:
        found.append(item)
        size += len(item.data or b"")
        if len(found) == count or size >= _BYTES_AT_ONCE:
            break
    return found


async def _cancel(tasks: list[asyncio.Task[Any]] | list[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

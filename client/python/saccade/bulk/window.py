"""How many requests a sender keeps in flight. The daemon's rejections decide, not a guess."""

from __future__ import annotations

import asyncio


class Window:
    """Grows by one whenever as many requests were answered as it holds, and shrinks by a third when the daemon rejects
    one. Requests that were in flight at the last reduction do not shrink it again."""

    def __init__(self, maximum: int, first: int = 4) -> None:
        self._maximum = maximum
        self._limit = float(min(first, maximum))
        self._in_flight = 0
        self._sent = 0
        # Requests numbered below it were sent before the last reduction.
        self._shrunk_at = 0
        self._changed = asyncio.Condition()

    @property
    def limit(self) -> int:
        return int(self._limit)

    async def enter(self) -> int:
        """Waits for a place, and returns the request's number."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._in_flight < self.limit)
            self._in_flight += 1
            self._sent += 1
            return self._sent - 1

    async def leave(self) -> None:
        async with self._changed:
            self._in_flight -= 1
            self._changed.notify_all()

    def answered(self) -> None:
        self._limit = min(float(self._maximum), self._limit + 1 / self._limit)

    def rejected(self, number: int) -> None:
        if number >= self._shrunk_at:
            self._limit = max(1.0, self._limit * 2 / 3)
            self._shrunk_at = self._sent

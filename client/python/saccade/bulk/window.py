"""How many requests a sender keeps in flight. The daemon's rejections decide, not a guess."""

from __future__ import annotations

import asyncio
import collections


class Window:
    """Grows by one whenever as many requests were answered as it holds, and shrinks by a third when the daemon rejects
    one. Requests that were in flight at the last reduction do not shrink it again. A request may be sent alone: none is in
    flight together with it. Belongs to one event loop."""

    def __init__(self, maximum: int, first: int = 4) -> None:
        self._maximum = maximum
        self._limit = float(min(first, maximum))
        self._in_flight = 0
        self._sent = 0
        # Requests numbered below it were sent before the last reduction.
        self._shrunk_at = 0
        # Those who wait for a place, in order. Each has a future of its own, so that a free place wakes one of them.
        self._waiting: collections.deque[asyncio.Future[int]] = collections.deque()
        # Those who wait to be alone. They come before the others, who would never leave the window empty.
        self._waiting_alone: collections.deque[asyncio.Future[int]] = collections.deque()
        # True while the request in flight is to be alone.
        self._is_alone = False

    @property
    def limit(self) -> int:
        return int(self._limit)

    async def enter(self, alone: bool = False) -> int:
        """Waits for a place, and returns the request's number. `alone`: no other request has a place until this one leaves."""
        place: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        (self._waiting_alone if alone else self._waiting).append(place)
        self._give()
        try:
            return await place
        except asyncio.CancelledError:
            # A place that was given in the same round of the loop goes to the next.
            if not place.cancelled():
                self.leave()
            # One that waited to be alone holds the others back no more.
            self._give()
            raise

    def leave(self) -> None:
        self._in_flight -= 1
        self._is_alone = self._is_alone and self._in_flight > 0
        self._give()

    def _give(self) -> None:
        while self._waiting_alone and self._waiting_alone[0].done():
            self._waiting_alone.popleft()
        if self._waiting_alone:
            if self._in_flight == 0:
                self._is_alone = True
                self._give_to(self._waiting_alone.popleft())
            return
        while self._waiting and self._in_flight < self.limit and not self._is_alone:
            place = self._waiting.popleft()
            if not place.done():
                self._give_to(place)

    def _give_to(self, place: asyncio.Future[int]) -> None:
        self._in_flight += 1
        place.set_result(self._sent)
        self._sent += 1

    def answered(self) -> None:
        self._limit = min(float(self._maximum), self._limit + 1 / self._limit)

    def rejected(self, number: int) -> None:
        """To be called before the request leaves, so that its place is not given away first."""
        if number >= self._shrunk_at:
            self._limit = max(1.0, self._limit * 2 / 3)
            self._shrunk_at = self._sent

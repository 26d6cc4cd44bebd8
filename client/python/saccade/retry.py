"""Whether a failed call is sent again, and when."""

from __future__ import annotations

import dataclasses
import random
import time

import grpc

from saccade.errors import SaccadeError, Untrusted


_GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


@dataclasses.dataclass(frozen=True)
class Retry:
    """UNAVAILABLE, a RESOURCE_EXHAUSTED that says when to come again, and a CANCELLED that is not the caller's own, are
    sent again: after what the daemon asks for, otherwise after a pause that doubles. Never beyond the call's timeout.
    `attempts` counts the first; 1 is no retry."""

    attempts: int = 4
    first_pause: float = 0.1
    longest_pause: float = 5.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or not 0 < self.first_pause <= self.longest_pause:
            raise ValueError(f"{self}: expected attempts >= 1 and 0 < first_pause <= longest_pause")


class Attempts:
    """Those of one call."""

    def __init__(self, retry: Retry, timeout: float | None) -> None:
        self._retry = retry
        self._end = None if timeout is None else time.monotonic() + timeout
        self._failed = 0

    def time_left(self) -> float | None:
        """For the next attempt; the server is told it. None has no limit."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def pause(self, error: SaccadeError, *, given_up: bool = False) -> float:
        """Seconds until the next attempt; raises the error if there is to be none, as when the caller has given up."""
        self._failed += 1
        # What is not trusted has the same certificate next time. CANCELLED is what gRPC's servers answer to calls that
        # reach them in the instant in which the port closes.
        passes = error.code in _GONE and not isinstance(error, Untrusted) or (
            error.code == grpc.StatusCode.RESOURCE_EXHAUSTED and error.retry_after is not None
        )
        if given_up or not passes or self._failed >= self._retry.attempts:
            raise error
        # The daemon's hint is spread already; ours has to be, so that not all come again at once.
        doubled = min(self._retry.longest_pause, self._retry.first_pause * 2 ** (self._failed - 1))
        pause = error.retry_after if error.retry_after is not None else doubled * random.uniform(0.5, 1.5)
        left = self.time_left()
        if left is not None and pause >= left:
            raise error
        return pause

"""Decides whether and when a failed call is retried."""

from __future__ import annotations

import dataclasses
import random
import time

import grpc

from saccade.errors import SaccadeError, Untrusted


_GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


@dataclasses.dataclass(frozen=True)
class Retry:
    """Calls are retried after UNAVAILABLE, after RESOURCE_EXHAUSTED with a retry hint, and after CANCELLED unless the
    caller cancelled: after the time that the daemon asks for, otherwise after a pause that doubles with each retry. The
    call's timeout includes retries. `attempts` includes the first; 1 disables retries. Pauses are in seconds."""

    attempts: int = 4
    first_pause: float = 0.1
    max_pause: float = 5.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or not 0 < self.first_pause <= self.max_pause:
            raise ValueError(f"{self}: expected attempts >= 1 and 0 < first_pause <= max_pause")


class Attempts:
    """The attempts of one call."""

    def __init__(self, retry: Retry, timeout: float | None) -> None:
        self._retry = retry
        self._end = None if timeout is None else time.monotonic() + timeout
        self._failed = 0

    def time_left(self) -> float | None:
        """Timeout of the next attempt in seconds, which is sent to the server. None has no limit."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def pause(self, error: SaccadeError, *, given_up: bool = False) -> float:
        """Returns the seconds until the next attempt. Raises the error if there is none, for example if the caller has
        given up."""
        self._failed += 1
        # An untrusted daemon will have the same certificate next time. gRPC's servers answer calls that arrive while
        # the port closes with CANCELLED.
        passes = error.code in _GONE and not isinstance(error, Untrusted) or (
            error.code == grpc.StatusCode.RESOURCE_EXHAUSTED and error.retry_after is not None
        )
        if given_up or not passes or self._failed >= self._retry.attempts:
            raise error
        # The daemon's hint is randomised already; our own pause must be, so that clients do not retry in step.
        doubled = min(self._retry.max_pause, self._retry.first_pause * 2 ** (self._failed - 1))
        pause = error.retry_after if error.retry_after is not None else doubled * random.uniform(0.5, 1.5)
        left = self.time_left()
        if left is not None and pause >= left:
            raise error
        return pause

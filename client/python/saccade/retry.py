"""Decides whether and when a failed call is retried."""

from __future__ import annotations

import dataclasses
import random
import threading
import time

import grpc

from saccade.errors import SaccadeError, Untrusted


# Doublings of a pause: more of them are no number for Python.
_MOST_DOUBLINGS = 100

_GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


@dataclasses.dataclass(frozen=True)
class Retry:
    """Calls are retried after UNAVAILABLE, after RESOURCE_EXHAUSTED with a retry hint, and after CANCELLED unless the
    caller cancelled: after the time that the daemon asks for, otherwise after a pause that doubles with each retry. The
    call's timeout includes retries. `attempts` includes the first; 1 disables retries. Pauses are in seconds.

    An attempt that takes more than `attempt_timeout` seconds is given up, and the next goes to another replica. Set it
    where there are several, well above the time that an answer takes: the daemon gets it as the deadline. `restore`
    does not use it.

    `budget` stops retries while most calls fail, so that a fleet in trouble does not get several times the calls. All
    calls of a client share it: a failure takes one, a success gives 0.1 back, and calls are retried while more than
    half is left. 0 has no bound."""

    attempts: int = 4
    first_pause: float = 0.1
    max_pause: float = 5.0
    attempt_timeout: float | None = None
    budget: float = 100.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or not 0 < self.first_pause <= self.max_pause:
            raise ValueError(f"{self}: expected attempts >= 1 and 0 < first_pause <= max_pause")
        if self.attempt_timeout is not None and not self.attempt_timeout > 0:
            raise ValueError(f"{self}: expected attempt_timeout > 0")
        if not self.budget >= 0:
            raise ValueError(f"{self}: expected budget >= 0")


class Budget:
    """What is left of Retry.budget. Thread-safe. The same rule as gRPC's retryThrottling."""

    _GIVEN_BY_A_SUCCESS = 0.1

    def __init__(self, whole: float) -> None:
        self._whole = whole
        self._left = whole
        self._lock = threading.Lock()

    def succeeded(self) -> None:
        with self._lock:
            self._left = min(self._whole, self._left + self._GIVEN_BY_A_SUCCESS)

    def allows_after_failure(self) -> bool:
        """Takes the failure from the budget; returns whether the call may be retried."""
        with self._lock:
            self._left = max(0.0, self._left - 1)
            return self._whole == 0 or self._left > self._whole / 2


class Attempts:
    """The attempts of one call. `attempt_timeout` is the longest that one of them may take, if that is bounded."""

    def __init__(
        self, retry: Retry, budget: Budget, timeout: float | None, attempt_timeout: float | None = None
    ) -> None:
        self._retry = retry
        self._budget = budget
        self._end = None if timeout is None else time.monotonic() + timeout
        self._attempt_timeout = attempt_timeout
        self._failed = 0

    def _left(self) -> float | None:
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def timeout(self) -> float | None:
        """Timeout of the next attempt in seconds, which is sent to the server. None has no limit."""
        bounds = [bound for bound in (self._left(), self._attempt_timeout) if bound is not None]
        return min(bounds, default=None)

    def succeeded(self) -> None:
        self._budget.succeeded()

    def pause(self, error: SaccadeError, *, given_up: bool = False) -> float:
        """Returns the seconds until the next attempt. Raises the error if there is none, for example if the caller has
        given up."""
        self._failed += 1
        left = self._left()
        # The attempt's own time is over, and not the call's.
        late = error.code == grpc.StatusCode.DEADLINE_EXCEEDED and self._attempt_timeout is not None and left != 0.0
        # An untrusted daemon will have the same certificate next time. gRPC's servers answer calls that arrive while
        # the port closes with CANCELLED.
        passes = error.code in _GONE and not isinstance(error, Untrusted) or (
            error.code == grpc.StatusCode.RESOURCE_EXHAUSTED and error.retry_after is not None
        )
        if given_up or not (passes or late):
            raise error
        # The budget pays for failures that are not retried, too.
        allowed = self._budget.allows_after_failure()
        if not allowed or self._failed >= self._retry.attempts:
            raise error
        if late:
            # Long enough was waited for the other replica.
            return 0.0
        # The daemon's hint is randomised already; our own pause must be, so that clients do not retry in step.
        doubled = min(self._retry.max_pause, self._retry.first_pause * 2 ** min(self._failed - 1, _MOST_DOUBLINGS))
        pause = error.retry_after if error.retry_after is not None else doubled * random.uniform(0.5, 1.5)
        if left is not None and pause >= left:
            raise error
        return pause

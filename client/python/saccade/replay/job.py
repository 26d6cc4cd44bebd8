"""Sends the calls of a capture at their times, and compares what comes back."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import heapq
import itertools
import math
import pathlib
import threading
import time
from typing import Callable, Iterable, Iterator

from saccade.replay import answers, measures
from saccade.replay.failures import ReplayError
from saccade.replay.measures import Difference
from saccade.replay.segments import Captured, Damage, read_folder
from saccade.replay.target import Identity, Target, captured_reply, identity_of

# Calls are captured when they end. So many are read ahead to send them in the order in which they arrived.
_AHEAD_CALLS = 512
_AHEAD_BYTES = 64 << 20
_WORST_KEPT = 20
# Requests that name shared memory cannot be repeated, because its contents are gone.
_SHARED = b"shared_memory_region"


@dataclasses.dataclass(frozen=True)
class Job:
    folder: pathlib.Path
    # 1 is the capture's own speed, infinity as fast as the daemon answers.
    speed: float
    # The tolerance. None: 0 if both daemons compute alike, otherwise the tolerance of the task.
    expect: float | None
    exact: bool
    models: frozenset[str]
    max_in_flight: int
    patience_seconds: float

    def takes(self, captured: Captured) -> bool:
        return not self.models or captured.model in self.models


@dataclasses.dataclass
class Tally:
    compared: int = 0
    # Bit for bit the same.
    equal: int = 0
    # Not equal, but accepted by the tolerance.
    close: int = 0
    different: int = 0


@dataclasses.dataclass(frozen=True)
class Pair:
    """A call whose answers differ by more than is expected, or that has no answer now."""

    captured: Captured
    before: answers.Answer
    now: answers.Answer
    difference: Difference
    # What the comparison asked for: "exact" or a bound.
    expected: str


@dataclasses.dataclass
class Result:
    models: dict[str, Tally] = dataclasses.field(default_factory=dict)
    # By reason.
    skipped: dict[str, int] = dataclasses.field(default_factory=dict)
    damages: list[Damage] = dataclasses.field(default_factory=list)
    # Largest difference first, at most _WORST_KEPT.
    worst: list[Pair] = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    # How late the latest call was sent.
    late_seconds: float = 0.0
    computes_alike: dict[str, bool] = dataclasses.field(default_factory=dict)

    @property
    def total(self) -> Tally:
        parts = self.models.values()
        return Tally(*(sum(getattr(one, field.name) for one in parts) for field in dataclasses.fields(Tally)))


@dataclasses.dataclass(frozen=True)
class Progress:
    done: int
    calls: int
    different: int
    seconds: float


class _Findings:
    """What the senders' threads find. Thread-safe."""

    def __init__(self, job: Job, result: Result, identities: dict[tuple[str, int], Identity]) -> None:
        self._job = job
        self._result = result
        self._identities = identities
        self._lock = threading.Lock()
        self._order = itertools.count()
        # Smallest difference first.
        self._worst: list[tuple[float, int, Pair]] = []

    def note(self, captured: Captured, now: answers.Reply) -> None:
        before = answers.read(captured.target, captured_reply(captured), captured.request)
        try:
            got = answers.read(captured.target, now, captured.request)
        except ValueError as error:
            got = answers.Answer("UNREADABLE", str(error))
        alike = self._alike(captured, got)
        equal = measures.is_equal(before, got)
        difference = None if equal else measures.difference(before, got)
        bound = self._bound(measures.kind_of(before), alike)
        with self._lock:
            tally = self._result.models.setdefault(captured.model, Tally())
            tally.compared += 1
            if before.status == "OK":
                self._result.computes_alike[captured.model] = alike
            if difference is None:
                tally.equal += 1
            elif difference.value <= bound:
                tally.close += 1
            else:
                tally.different += 1
                expected = "exact" if bound == 0 else f"{bound:g} {measures.UNITS[measures.kind_of(before)]}"
                entry = (difference.value, -next(self._order), Pair(captured, before, got, difference, expected))
                keep = heapq.heappush if len(self._worst) < _WORST_KEPT else heapq.heappushpop
                keep(self._worst, entry)

    def different(self) -> int:
        # The sum needs the lock, too: meanwhile another thread may add a model.
        with self._lock:
            return self._result.total.different

    def _alike(self, captured: Captured, now: answers.Answer) -> bool:
        there = self._identities.get((captured.model, now.version or captured.version))
        return there is not None and identity_of(captured).computes_like(there)

    def _bound(self, kind: str, alike: bool) -> float:
        if self._job.exact or (self._job.expect is None and alike):
            return 0.0
        return measures.TOLERANCES[kind] if self._job.expect is None else self._job.expect

    def finish(self) -> None:
        self._result.worst = [pair for _, _, pair in sorted(self._worst, reverse=True, key=lambda one: one[:2])]


def _why_skipped(captured: Captured) -> str:
    if not captured.has_bodies:
        return "have no pixels, because they were captured with --capture-pixels=hash or none"
    if captured.status in answers.REJECTED:
        return "were rejected, late or cancelled when they were captured"
    if _SHARED in captured.request:
        return "named shared memory, which is not captured"
    return ""


def _in_order(calls: Iterable[Captured]) -> Iterator[Captured]:
    waiting: list[tuple[float, int, Captured]] = []
    held = 0
    for number, call in enumerate(calls):
        heapq.heappush(waiting, (call.arrival, number, call))
        held += len(call.request) + len(call.answer)
        while len(waiting) > _AHEAD_CALLS or (held > _AHEAD_BYTES and len(waiting) > 1):
            first = heapq.heappop(waiting)[2]
            held -= len(first.request) + len(first.answer)
            yield first
    while waiting:
        yield heapq.heappop(waiting)[2]


def _survey(job: Job, result: Result) -> tuple[int, set[str]]:
    """Reads the capture once: how many calls will be sent, and which models have to be there."""
    count, bodiless, models = 0, 0, set()
    for call in read_folder(job.folder, result.damages):
        if not job.takes(call):
            continue
        why = _why_skipped(call)
        if why:
            result.skipped[why] = result.skipped.get(why, 0) + 1
            bodiless += not call.has_bodies
            continue
        count += 1
        if call.status == "OK":
            models.add(call.model)
    if count == 0 and bodiless > 0:
        raise ReplayError(
            f"{job.folder} has no pixels, because it was captured with --capture-pixels=hash or none; capture again with "
            "--capture-pixels=full"
        )
    if count == 0:
        of = f" of {', '.join(sorted(job.models))}" if job.models else ""
        harm = f"; {result.damages[0]}" if result.damages else ""
        raise ReplayError(f"{job.folder} has no calls{of} that can be sent again{harm}")
    return count, models


def _check_models(target: Target, models: set[str], served: set[str]) -> None:
    if missing := sorted(models - served):
        raise ReplayError(
            f"the daemon at {target.address} does not serve {', '.join(missing)} of the capture; it serves "
            f"{', '.join(sorted(served)) or 'nothing'}. Load what is missing, or choose others with --model"
        )


def run(job: Job, target: Target, tell: Callable[[Progress], None]) -> Result:
    """Raises ReplayError before anything is sent if the capture or the daemon does not fit."""
    result = Result()
    calls, models = _survey(job, result)
    identities = target.identities()
    _check_models(target, models, {name for name, _ in identities})
    findings = _Findings(job, result, identities)
    places = threading.Semaphore(job.max_in_flight)
    failed: list[BaseException] = []
    done = itertools.count(1)
    begun = time.monotonic()

    def send(call: Captured) -> None:
        try:
            findings.note(call, target.send_patiently(call, job.patience_seconds))
            number = next(done)
            tell(Progress(number, calls, findings.different(), time.monotonic() - begun))
        except BaseException as error:  # noqa: BLE001: raised again by the thread that waits
            failed.append(error)
        finally:
            places.release()

    first: float | None = None
    chosen = (call for call in read_folder(job.folder, []) if job.takes(call) and not _why_skipped(call))
    with concurrent.futures.ThreadPoolExecutor(job.max_in_flight) as senders:
        for call in _in_order(chosen):
            first = call.arrival if first is None else first
            if math.isfinite(job.speed):
                due = begun + (call.arrival - first) / job.speed
                time.sleep(max(0.0, due - time.monotonic()))
                result.late_seconds = max(result.late_seconds, time.monotonic() - due)
            places.acquire()
            if failed:
                break
            senders.submit(send, call)
    if failed:
        raise failed[0]
    findings.finish()
    result.seconds = time.monotonic() - begun
    return result

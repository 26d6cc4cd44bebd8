"""Plays the overload on one daemon with one model: measures its peak, sends ten times as much, and measures the peak
again."""

import dataclasses
import itertools
import os
import pathlib
import shutil
import sys

from harness import Daemon, eventually
from tools.overload.load import LoadFailed, Loads
from tools.overload.looks import Looks
from tools.soak.samples import DEMO

# A pass takes some twenty milliseconds on one core. That is long compared with a rejection, so ten times the capacity
# is only some hundred calls per second, which cost the load generator and the connections little of the other core.
MODEL = "detector"
PICTURE = DEMO / "scenes" / "0.png"
CLIENTS = 8
DEADLINE_MS = 400
TIMES = 10
# Rates to try, as multiples of a closed loop's throughput. The peak is measured at the best of them, before and after
# the overload.
STEPS = (0.8, 1.0, 1.2, 1.6, 2.0)


@dataclasses.dataclass(frozen=True)
class Counters:
    """Counters of the daemon about the model."""

    ended: float
    items: float
    passes: float
    waited: float
    waits: float

    @classmethod
    def of(cls, daemon):
        metrics = daemon.metrics()
        total = metrics.total
        queue = {"model": MODEL, "stage": "queue"}
        return cls(
            total("saccade_requests_total", model=MODEL),
            total("nv_inference_count", model=MODEL),
            total("nv_inference_exec_count", model=MODEL),
            total("saccade_stage_duration_seconds_sum", **queue),
            total("saccade_stage_duration_seconds_count", **queue),
        )

    def since(self, before):
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(before))
        return Counters(*(now - then for now, then in pairs))


@dataclasses.dataclass(frozen=True)
class Step:
    """An open loop: the requested rate, and the responses in time per second."""

    rate: float
    goodput: float


@dataclasses.dataclass
class Played:
    minutes: float
    deadline_ms: int = DEADLINE_MS
    closed: float = 0.0
    steps: list = dataclasses.field(default_factory=list)
    # The best step's rate, measured again for longer, because the best of many measurements is partly luck.
    before: Step = None
    after: Step = None
    rate: float = 0.0
    calls: dict = None
    counters: Counters = None
    looks: list = None
    exit_code: int = None

    @property
    def seconds(self):
        return 60 * self.minutes

    @property
    def peak(self):
        """The mean of both measurements, so that a change in the machine's speed is not attributed to the daemon."""
        return (self.before.goodput + self.after.goodput) / 2

    @property
    def drift(self):
        return abs(self.after.goodput - self.before.goodput) / self.peak

    @property
    def goodput(self):
        return self.calls["in_time"] / self.seconds


def say(words):
    print(words, file=sys.stderr, flush=True)


def repository_of(model, folder):
    shutil.copytree(DEMO / "repository" / model, folder / model)
    return folder


def counted(daemon):
    """The counters when every call has ended. The daemon may still work on calls of which the load generator no longer awaits the
    answer, and would count them as of what is measured next."""
    eventually(lambda: daemon.metrics().total("saccade_inflight_requests") == 0, "the daemon has ended every call")
    return Counters.of(daemon)


def measure(loads, rate, seconds, deadline_ms, seed):
    calls = loads.open(rate, CLIENTS, seconds, deadline_ms, seed)
    step = Step(rate, calls["in_time"] / seconds)
    say(f"{rate:.0f} a second: {step.goodput:.1f} answered in time, {calls['refused']} refused, {calls['late']} late")
    return step


def play(minutes, step_seconds, look_seconds, folder, deadline_ms=DEADLINE_MS):
    played = Played(minutes, deadline_ms)
    programs = pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "bin"
    with Daemon(repository_of(MODEL, folder / "models"), "--threads-per-instance=1", log_folder=folder) as daemon:
        daemon.await_ready()
        loads = Loads(programs / "saccade_bench_load", daemon.grpc_address, MODEL, PICTURE)
        loads.closed(CLIENTS, step_seconds / 2)
        played.closed = loads.closed(CLIENTS, step_seconds)
        say(f"{CLIENTS} clients, one request each under way: {played.closed:.1f} answers a second")
        for seed, share in enumerate(STEPS):
            played.steps.append(measure(loads, share * played.closed, step_seconds, deadline_ms, seed))
        best = max(played.steps, key=lambda step: step.goodput)
        seeds = itertools.count(len(STEPS))
        played.before = measure(loads, best.rate, 2 * step_seconds, deadline_ms, next(seeds))
        if not played.before.goodput:
            raise LoadFailed(f"at {best.rate:.1f} calls a second none was answered within its deadline of {deadline_ms} ms; "
                             "other programs leave too little of the processor: end them, and measure again")

        played.rate = TIMES * played.before.goodput
        say(f"overload: {played.rate:.0f} a second for {minutes:g} minutes")
        before = counted(daemon)
        with Looks(daemon.process.pid, look_seconds) as looks:
            played.calls = loads.open(played.rate, CLIENTS, played.seconds, deadline_ms, next(seeds))
        played.counters, played.looks = counted(daemon).since(before), looks.made
        played.after = measure(loads, best.rate, 2 * step_seconds, deadline_ms, next(seeds))
        daemon.terminate()
        played.exit_code = daemon.exit_code()
    return played

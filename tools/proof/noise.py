"""How busy the machine was beside what was measured, from /proc/stat; and how fast it was, by a fixed piece of work. A virtual
machine may lose a third of its speed to neighbours that it cannot see."""

import concurrent.futures
import dataclasses
import hashlib
import os
import pathlib
import threading
import time

import numpy

from tools.processor import TICKS, spent

# Above this share of the machine's processor time, taken by other processes during a run, the machine was not quiet.
QUIET_SHARE = 0.05
SAMPLE_SECONDS = 1
# Above this difference between runs, as a share of the slowest, the machine's speed has changed.
STEADY = 0.1
PACE_SECONDS = 0.5
HASHED, COPIED = bytes(1 << 20), numpy.ones(4 << 20, numpy.float32)


def busy_seconds(text):
    """Processor time of the whole machine so far that was not idle, given /proc/stat."""
    fields = next(line.split()[1:] for line in text.splitlines() if line.startswith("cpu "))
    user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
    return (user + nice + system + irq + softirq + steal) / TICKS


@dataclasses.dataclass
class Noise:
    # Share of the machine's processor time that processes outside this run took.
    others: float
    # The machine's whole load, second by second: shares of its processor time.
    samples: list[float]
    # How fast the machine was; see pace().
    pace: float = 1.0

    @property
    def quiet(self):
        return self.others <= QUIET_SHARE


def own_seconds():
    """Processor time so far of this process and all that it started, with those that have ended."""
    times = os.times()
    return spent(os.getpid()) + times.children_user + times.children_system


def read():
    return busy_seconds(pathlib.Path("/proc/stat").read_text())


def work():
    """Hashes and copies the same bytes for a while; returns how often in a second."""
    # Its pages exist before the time begins.
    target = numpy.ones_like(COPIED)
    times, begun = 0, time.monotonic()
    while (took := time.monotonic() - begun) < PACE_SECONDS:
        hashlib.sha256(HASHED).digest()
        numpy.copyto(target, COPIED)
        times += 1
    return times / took


def pace():
    """How much of a fixed piece of work all processors do in a second: it takes arithmetic and the memory's bandwidth."""
    count = os.cpu_count()
    with concurrent.futures.ThreadPoolExecutor(count) as threads:
        return sum(threads.map(lambda _: work(), range(count)))


def pace_apart(noises):
    """How far the paces are apart, as a share of the slowest."""
    paces = [noise.pace for noise in noises]
    return (max(paces) - min(paces)) / min(paces) if paces else 0.0


class Watch:
    """Use as a context manager; `noise` is set at its end. A run counts this process and all that it started."""

    def __enter__(self):
        self._pace = pace()
        self._begun, self._busy, self._own = time.monotonic(), read(), own_seconds()
        self._samples, self._stop = [], threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def _sample(self):
        before, at = read(), time.monotonic()
        while not self._stop.wait(SAMPLE_SECONDS):
            now, then = read(), time.monotonic()
            self._samples.append((now - before) / (then - at) / os.cpu_count())
            before, at = now, then

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        whole = (time.monotonic() - self._begun) * os.cpu_count()
        others = read() - self._busy - (own_seconds() - self._own)
        self.noise = Noise(max(0.0, others / whole), self._samples, (self._pace + pace()) / 2)

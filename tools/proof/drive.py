"""Has LoadGen drive a system, and gives what LoadGen found."""

import collections
import contextlib
import dataclasses
import pathlib
import threading
import time

import mlperf_loadgen as loadgen

from tools.proof import scenarios, summary
from tools.proof.noise import Noise, Watch



@dataclasses.dataclass
class Run:
    system: str
    scenario: str
    rate: float | None
    summary: summary.Summary
    # Queries without an answer, by reason. LoadGen knows only that they ended.
    failed: collections.Counter
    noise: Noise

    @property
    def valid(self):
        return self.summary.valid and not self.failed

    @property
    def reasons(self):
        return [*self.summary.reasons, *(f"{count} pictures were not answered: {why}" for why, count in self.failed.items())]

    @property
    def word(self):
        return "VALID" if self.valid else "INVALID"

    @property
    def figure(self):
        """(value, unit): milliseconds at the percentile that LoadGen judges by, or samples per second."""
        if self.scenario == "SingleStream":
            return self.summary.number("90.0th percentile latency (ns)") / 1e6, "ms"
        if self.scenario == "MultiStream":
            return self.summary.number("99.0th percentile latency (ns)", "90.0th percentile latency (ns)") / 1e6, "ms"
        return self.summary.number("Samples per second", "Completed samples per second"), "samples/s"


class Adapter:
    """Passes LoadGen's queries on to a system, and its answers back. `ended(when, took, why)` hears of each, with the times
    in seconds and `why` empty for an answer."""

    def __init__(self, system, windowed, ended=lambda when, took, why: None):
        self._system, self._windowed, self._ended = system, windowed, ended
        self.failed = collections.Counter()
        self._lock = threading.Lock()

    def issue(self, samples):
        if self._windowed:
            # The thread on which LoadGen issues must not wait.
            threading.Thread(target=self._ask, args=([(one.id, one.index) for one in samples],)).start()
        else:
            self._ask([(one.id, one.index) for one in samples])

    def _ask(self, samples):
        for identity, picture in samples:
            self._system.ask(picture, self._done(identity), self._windowed)

    def _done(self, identity):
        begun = time.monotonic()

        def done(logits, why):
            if why:
                with self._lock:
                    self.failed[why] += 1
            self._ended(begun, time.monotonic() - begun, why)
            size = 0 if logits is None else logits.nbytes
            # LoadGen copies the bytes before this returns.
            loadgen.QuerySamplesComplete([loadgen.QuerySampleResponse(identity, logits.ctypes.data if size else 0, size)])

        return done


@contextlib.contextmanager
def constructed(adapter, pictures):
    sut = loadgen.ConstructSUT(adapter.issue, lambda: None)
    # The pictures are in memory all the time: there is nothing to load or unload.
    library = loadgen.ConstructQSL(pictures, pictures, lambda numbers: None, lambda numbers: None)
    try:
        yield sut, library
    finally:
        loadgen.DestroyQSL(library)
        loadgen.DestroySUT(sut)


def start(adapter, pictures, settings, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    logs = loadgen.LogSettings()
    logs.log_output.outdir = str(folder)
    logs.log_output.copy_summary_to_stdout = False
    logs.enable_trace = False
    with constructed(adapter, pictures) as (sut, library):
        loadgen.StartTestWithLogSettings(sut, library, settings, logs)


def measure(name, system, scenario, pictures, length, folder, rate=None, ended=lambda when, took, why: None):
    """Runs a scenario; `pictures` is their number. LoadGen's own logs stay in `folder`."""
    adapter = Adapter(system, scenario == "Offline", ended)
    with Watch() as watch:
        start(adapter, pictures, scenarios.settings(scenario, length, rate), folder)
    text = (pathlib.Path(folder) / "mlperf_log_summary.txt").read_text()
    return Run(name, scenario, rate, summary.parse(text), adapter.failed, watch.noise)


def answers(system, pictures, classes, folder):
    """Every picture's logits, from LoadGen's accuracy mode, and the failures."""
    adapter = Adapter(system, True)
    settings = scenarios.settings("Offline", scenarios.Length(0), 100, loadgen.TestMode.AccuracyOnly)
    start(adapter, pictures, settings, folder)
    if adapter.failed:
        return {}, adapter.failed
    return summary.answers((pathlib.Path(folder) / "mlperf_log_accuracy.json").read_text(), classes), adapter.failed

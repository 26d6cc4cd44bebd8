"""What LoadGen has no scenario for: Server's arrivals while the daemon is replaced, beside a client that reads slowly, or at twice
what it can serve. What became of each query is counted second by second."""

import collections
import contextlib
import dataclasses
import math
import signal
import threading
import time

import grpc

import messages
from models.reference.training import export
from tools.bench_server import servers
from tools.proof import drive, scenarios, systems
from tools.rollout.load import HEALTH

EXPERIMENTS = ("restart", "slow-client", "overload")
# Shares of what Offline reached.
RATE, OVERLOAD = 0.4, 2.0
# Samples per second that Offline is expected to reach. It is only asked for a figure, whether LoadGen calls it valid or not.
GUESS = 500
LATE_SECONDS = scenarios.SERVER_LATENCY_MS / 1000
# A daemon that ends stays open that long for clients that have not noticed yet.
LAME_DUCK_SECONDS = 1
SLOW_PAUSE_SECONDS = 0.5
# Codes with which a query was refused before any work was done for it; other failures are losses.
REFUSED = ("RESOURCE_EXHAUSTED", "UNAVAILABLE")
OUTCOMES = ("in time", "late", "refused", "lost")


def outcome(took, why):
    if why:
        return "refused" if why.split(":")[0] in REFUSED else "lost"
    return "late" if took > LATE_SECONDS else "in time"


class Tally:
    """Outcomes by the second in which the query was sent."""

    def __init__(self):
        self._begun, self._lock = time.monotonic(), threading.Lock()
        self._counts = collections.Counter()

    def ended(self, when, took, why):
        with self._lock:
            self._counts[math.floor(when - self._begun), outcome(took, why)] += 1

    def total(self, of):
        return sum(count for (_, name), count in self._counts.items() if name == of)

    def series(self):
        length = max((second for second, _ in self._counts), default=-1) + 1
        return {name: [self._counts[second, name] for second in range(length)] for name in OUTCOMES}


@dataclasses.dataclass
class Played:
    name: str
    offline: drive.Run
    run: drive.Run
    tally: Tally
    # (seconds since the begin, what was done).
    events: list
    faults: list


class SlowReader:
    """A client whose stream has requests without end, and which reads an answer now and then."""

    def __init__(self, url, file):
        self.read, self._stop = 0, threading.Event()
        self._channel = grpc.insecure_channel(url, [("grpc.use_local_subchannel_pool", 1)])
        self._one = messages.message("saccade.v1.PredictStreamRequest")(
            request=messages.predict_request(model=systems.MODEL, encoded=file))
        self._stream = messages.stream(self._channel, "saccade.v1.Vision", "PredictStream")(self._requests())
        self._thread = threading.Thread(target=self._crawl)
        self._thread.start()

    def _requests(self):
        while not self._stop.is_set():
            yield self._one

    def _crawl(self):
        # The stream ends with an error when close() cancels it.
        with contextlib.suppress(grpc.RpcError):
            for _ in self._stream:
                self.read += 1
                if self._stop.wait(SLOW_PAUSE_SECONDS):
                    return

    def close(self):
        self._stop.set()
        self._stream.cancel()
        self._thread.join()
        self._channel.close()


def replace(old, new, seconds, begun, events, faults):
    """The order of a rolling update: the old daemon ends after a third of the time; the new one is ready and known already."""
    time.sleep(max(0.0, begun + seconds / 3 - time.monotonic()))
    events.append((time.monotonic() - begun, "SIGTERM to the old daemon"))
    old.send_signal(signal.SIGTERM)
    code = old.wait()
    events.append((time.monotonic() - begun, f"the old daemon ended with {code}"))
    if code != 0:
        faults.append(f"restart: the old daemon ended with {code}, expected 0, which says that no accepted request was lost")
    if new.poll() is not None:
        faults.append(f"restart: the new daemon ended with {new.returncode}")


def play(name, pictures, length, folder):
    """Measures what the daemon can serve, then plays the experiment; returns Played."""
    count, events, faults = len(pictures.files), [], []
    with contextlib.ExitStack() as stack:
        flags = ("--lame-duck-seconds", LAME_DUCK_SECONDS)
        first = stack.enter_context(servers.daemon(systems.BUILD, export.DEMO / "repository", *flags))
        urls = [first.url]
        if name == "restart":
            second = stack.enter_context(servers.daemon(systems.BUILD, export.DEMO / "repository", *flags))
            urls.append(second.url)
        # The daemon's port is its own, so the new one has another. Clients know both, and notice by gRPC's health checks that one
        # is about to end, as docs/benchmarks/rollout.md recommends.
        with systems.of_daemon("ipv4:" + ",".join(urls), pictures.files, HEALTH) as clients:
            offline = drive.measure("saccaded", clients, "Offline", count, length, folder / "offline", GUESS)
            rate = (OVERLOAD if name == "overload" else RATE) * offline.figure[0]
            tally, begun = Tally(), time.monotonic()
            beside = None
            if name == "restart":
                beside = threading.Thread(target=replace, args=(
                    first.handle, second.handle, length.seconds, begun, events, faults))
                beside.start()
            elif name == "slow-client":
                slow = stack.enter_context(contextlib.closing(SlowReader(first.url, pictures.files[0])))
            run = drive.measure("saccaded", clients, "Server", count, length, folder / name, rate, tally.ended)
            if beside:
                beside.join()
            if name == "slow-client":
                events.append((time.monotonic() - begun, f"the slow client has read {slow.read} answers"))
                if slow.read == 0:
                    faults.append("slow-client: the slow client read no answer, expected some")
    return Played(name, offline, run, tally, events, faults + judged(name, tally))


def judged(name, tally):
    """What must not happen: a query without an answer or a refusal; and refusals where there is room."""
    faults = [f"{name}: {tally.total('lost')} queries were lost, expected none"] if tally.total("lost") else []
    if name != "overload" and tally.total("refused"):
        faults.append(f"{name}: {tally.total('refused')} queries were refused, expected none at {RATE:.0%} of the capacity")
    return faults

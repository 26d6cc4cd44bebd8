"""Plays the rollout: three replicas under load on every way are replaced one by one, and one is killed."""

import collections
import contextlib
import dataclasses
import pathlib
import time

import grpc

from tools.processor import spent
from tools.rollout import load, network, proxy, replicas
from tools.rollout.names import NameServer

REPLICAS = 3


@dataclasses.dataclass
class Tally:
    """The outcomes of one way's requests in one act."""

    way: load.Way | load.ListWay
    sent: int = 0
    answered: int = 0
    wrong: int = 0
    failed: list = dataclasses.field(default_factory=list)
    took: list = dataclasses.field(default_factory=list)
    by_replica: collections.Counter = dataclasses.field(default_factory=collections.Counter)

    def add(self, one):
        self.sent += 1
        if one.code != grpc.StatusCode.OK:
            self.failed.append(one)
            return
        self.answered += 1
        self.wrong += not one.right
        self.took.append(one.took)
        self.by_replica[one.replica] += 1

    @property
    def spread(self):
        """The largest deviation of a replica's share from the mean, relative to the mean."""
        mean = self.answered / len(self.by_replica)
        return max(abs(count - mean) for count in self.by_replica.values()) / mean

    def percentile(self, share):
        return sorted(self.took)[min(len(self.took) - 1, int(share * len(self.took)))]

    def reasons(self):
        return collections.Counter(f"{one.code.name}: {one.details}" for one in self.failed)


class Stage:
    """The complete set-up under load. Use it as a context manager."""

    def __init__(self, program, folder, rate, times=replicas.Times(), delay_ms=5):
        self._program, self._folder, self._rate = program, pathlib.Path(folder), rate
        self._times, self._delay_ms = times, delay_ms
        self._stack = contextlib.ExitStack()
        self.without_proxy = proxy.program() is None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            chosen, self.no_namespaces = network.choose()
            net = stack.enter_context(chosen)
            self.network = chosen.words
            port = network.free_port("0.0.0.0")
            names = stack.enter_context(NameServer(net.own))
            self.proxy = None
            if not self.without_proxy:
                place = net.place()
                self.proxy = stack.enter_context(
                    proxy.Proxy(place, network.free_port("0.0.0.0"), self._folder))
            ways = load.ways(self.proxy, names, port)
            announcers = [
                stack.enter_context(replicas.Announcer(way, self._times.pre_stop * self._times.spread_by, seed))
                for seed, way in enumerate(ways)
            ]
            self.deployment = stack.enter_context(
                replicas.Deployment(self._program, net, port, self._folder, announcers, self._times, self._delay_ms))
            self.deployment.start(REPLICAS)
            for known in self.deployment.announce():
                known.wait()
            self.loads = [stack.enter_context(load.Load(way, self._rate)) for way in ways]
            # Wait until every way has connections to all replicas.
            end = time.monotonic() + replicas.READY_SECONDS
            while not all(len({one.replica for one in list(made.ended)} - {0}) == REPLICAS for made in self.loads):
                if time.monotonic() > end:
                    raise RuntimeError(f"not every replica answers on every way: {self._heard()}")
                time.sleep(0.1)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def _heard(self):
        return {made.way.name: collections.Counter((one.code.name, one.details, one.replica) for one in made.ended)
                for made in self.loads}

    def tallies(self):
        """Returns the tallies of the calls that ended since the last call of this function."""
        counted = []
        for made in self.loads:
            tally = Tally(made.way)
            while made.ended:
                tally.add(made.ended.popleft())
            counted.append(tally)
        return counted

    def steady(self, seconds):
        """Measures the distribution of requests without any change, and the replicas' processor time for each."""
        self.tallies()
        used = self._processor_seconds()
        time.sleep(seconds)
        used = self._processor_seconds() - used
        tallies = self.tallies()
        self.processor_per_call = used / max(1, sum(tally.answered for tally in tallies))
        return tallies

    def _processor_seconds(self):
        return sum(spent(replica.process.pid) for replica in self.deployment.replicas)

    def replace(self, times, tell=lambda done: None):
        """Returns (tallies, faults of replicas)."""
        wrong = []
        for done in range(times):
            if (failure := self.deployment.replace()) is not None:
                wrong.append(failure)
            tell(done + 1)
        self._settle()
        return self.tallies(), wrong

    def kill(self):
        """Returns (tallies, when a replica was killed, the number of open calls of each way at that time)."""
        holding = [made.open for made in self.loads]
        killed = self.deployment.kill()
        self._settle()
        return self.tallies(), killed, holding

    def _settle(self):
        """Waits until every way has learned of the last change."""
        time.sleep(self._times.pre_stop)

"""Loads made by saccade_bench_load, and measurements in turns."""

import dataclasses
import json
import math
import subprocess

from tools.processor import spent


class LoadFailed(Exception):
    pass


class Sums:
    """A dataclass whose fields are sums over the turns of one candidate."""

    def add(self, other):
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


@dataclasses.dataclass
class Measurement(Sums):
    """Measurement of one candidate over all its turns. Every latency is kept, so nothing is rounded to histogram
    buckets."""

    latencies: list = dataclasses.field(default_factory=list)  # microseconds
    seconds: float = 0
    # Calls answered, including those that open the connections, and the server's processor time for them.
    answered: int = 0
    processor_seconds: float = 0

    @property
    def rate(self):
        return len(self.latencies) / self.seconds

    def percentile(self, share):
        """Uses the nearest rank."""
        return sorted(self.latencies)[math.ceil(share * len(self.latencies)) - 1]

    @property
    def p50(self):
        return self.percentile(0.5)

    @property
    def p99(self):
        return self.percentile(0.99)

    @property
    def processor(self):
        """The server's processor time for each call, in microseconds."""
        return 1e6 * self.processor_seconds / self.answered


class Load:
    def __init__(self, program):
        self.program = program

    def __call__(self, url, model, clients, seconds, shape=None, file=None, rate=0, seed=1):
        what = ["--file", str(file)] if file else ["--shape", ",".join(map(str, shape))]
        command = [self.program, "load", "--url", url, "--model", model, *what, "--clients", str(clients),
                   "--seconds", str(seconds), "--rate", str(rate), "--seed", str(seed)]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0:
            raise LoadFailed(ran.stderr.strip())
        told = json.loads(ran.stdout)
        if told["failed"]:
            raise LoadFailed(f"{model} at {url}: {told['failed']} calls failed: {told['failure']}")
        latencies = told["latencies_us"]
        # Each client opens its connection with one more call.
        return Measurement(latencies, told["elapsed_s"], len(latencies) + clients)

    def write_request(self, path, model, shape):
        """Writes the same request for other clients, framed as a gRPC message. Returns `path`."""
        command = [self.program, "request", "--model", model, "--shape", ",".join(map(str, shape))]
        path.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
        return path


def with_processor(server, load):
    """Returns a candidate for take_turns: `load`, a function of a number of seconds that returns a measurement, to which
    the processor time of `server` is added."""
    def turn(seconds):
        before = spent(server.process)
        measured = load(seconds)
        measured.processor_seconds = spent(server.process) - before
        return measured
    return turn


def take_turns(candidates, seconds, rounds):
    """Measures each of `candidates`, functions of a number of seconds, for `seconds` in a number of rounds, so that
    other activity on the machine affects all of them alike. The order rotates."""
    measured = {}
    names = list(candidates)
    for round_number in range(rounds):
        shift = round_number % len(names)
        for name in names[shift:] + names[:shift]:
            turn = candidates[name](seconds / rounds)
            if name in measured:
                measured[name].add(turn)
            else:
                measured[name] = turn
    return {name: measured[name] for name in names}

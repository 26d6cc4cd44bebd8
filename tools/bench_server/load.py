"""Loads made by saccade_bench_load, and measurements in turns."""

import dataclasses
import json
import math
import subprocess


class LoadFailed(Exception):
    pass


@dataclasses.dataclass
class Measurement:
    """Measurement of one candidate over all its turns. Every latency is kept, so nothing is rounded to histogram
    buckets."""

    latencies: list = dataclasses.field(default_factory=list)  # microseconds
    seconds: float = 0

    def add(self, other):
        self.latencies += other.latencies
        self.seconds += other.seconds

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
        return Measurement(told["latencies_us"], told["elapsed_s"])


def take_turns(candidates, seconds, rounds):
    """Measures each of `candidates`, functions of a number of seconds, for `seconds` in a number of rounds, so that
    other activity on the machine affects all of them alike. The order rotates."""
    measured = {name: Measurement() for name in candidates}
    names = list(candidates)
    for round_number in range(rounds):
        shift = round_number % len(names)
        for name in names[shift:] + names[:shift]:
            measured[name].add(candidates[name](seconds / rounds))
    return measured

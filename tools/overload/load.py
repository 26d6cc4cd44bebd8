"""Closed and open loops of requests with one picture, by the C++ load generator (client/bench) in its own process."""

import json
import subprocess


class LoadFailed(Exception):
    """The load generator failed."""


class Loads:
    """Loads for one model with one picture."""

    def __init__(self, program, address, model, picture):
        self._command = [str(program), "load", "--url", address, "--model", model, "--file", str(picture)]

    def closed(self, clients, seconds):
        """Returns the responses per second when every client always has one request in flight."""
        told = self._run("--clients", clients, "--seconds", seconds)
        if told["failed"]:
            raise LoadFailed(f"{told['failed']} calls without a deadline failed: {told['failure']}")
        return len(told["latencies_us"]) / told["elapsed_s"]

    def open(self, rate, clients, seconds, deadline_ms, seed=1):
        """Returns the outcomes of the calls of an open loop."""
        return self._run("--clients", clients, "--seconds", seconds, "--rate", rate, "--deadline-ms", deadline_ms,
                         "--seed", seed)

    def _run(self, *flags):
        ran = subprocess.run([*self._command, *map(str, flags)], capture_output=True, text=True)
        if ran.returncode != 0:
            raise LoadFailed(ran.stderr.strip() or f"the load generator ended with {ran.returncode}")
        return json.loads(ran.stdout)

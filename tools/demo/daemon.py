"""Runs the demo's daemon on free ports, waits until it is ready, and ends it cleanly."""

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

# Far above the usual loading time.
READY_SECONDS = 120
LISTENING = re.compile(r"listening grpc=(\S+) http=(\S+) metrics=(\S+)")


class Daemon:
    """Use as a context manager; a process that is still running at the end of the block is killed."""

    def __init__(self, binary, repository, log_path):
        self._log_path = log_path
        self._log = open(log_path, "wb")
        ports = [f"--{name}-port=0" for name in ("grpc", "http", "metrics")]
        self._process = subprocess.Popen(
            [binary, f"--model-repository={repository}", "--host=127.0.0.1", *ports, "--lame-duck-seconds=0"],
            stdout=subprocess.PIPE, stderr=self._log, text=True)
        match = LISTENING.match(self._process.stdout.readline())
        if not match:
            self._fail("the daemon did not start")
        self.grpc, self.http, self.metrics = match.groups()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._process.stdout.close()
        self._log.close()

    def _fail(self, why):
        self._process.kill()
        self._process.wait()
        sys.exit(f"demo: {why}; its log:\n{self._log_path.read_text(errors='replace')}")

    def get(self, path, port=None):
        with urllib.request.urlopen(f"http://{port or self.http}{path}", timeout=10) as answer:
            return answer.read().decode()

    def _states(self):
        return [one["state"] for one in json.loads(self.get("/v1/models"))["models"]]

    def _ready(self):
        try:
            return self.get("/v2/health/ready") is not None
        except urllib.error.HTTPError:
            return False

    def await_ready(self, tell):
        """Calls `tell(done, all, seconds)` periodically until all models are ready."""
        started = time.monotonic()
        while not self._ready():
            if self._process.poll() is not None:
                self._fail(f"the daemon ended with {self._process.returncode}")
            states, took = self._states(), time.monotonic() - started
            if took > READY_SECONDS:
                self._fail(f"the daemon is not ready after {READY_SECONDS} s")
            tell(states.count("READY"), len(states), took)
            time.sleep(0.1)
        return self._states().count("READY"), time.monotonic() - started

    def wait(self):
        self._process.wait()

    def stop(self):
        """Drains and ends the daemon."""
        self._process.terminate()
        code = self._process.wait(timeout=READY_SECONDS)
        if code != 0:
            self._fail(f"the daemon ended with {code}")

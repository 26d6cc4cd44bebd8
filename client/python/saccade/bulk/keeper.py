"""Runs one daemon for the workers of a job on this machine: `python -m saccade.bulk.keeper FOLDER COMMAND...`.

The keeper starts the daemon, starts it again when it ends, and stops it when no worker needs it any more. Workers and
keeper meet in a folder: each worker holds a shared lock on `leases` while it lives, so the end of a worker is seen
however it ends. The keeper writes the daemon's address to `address`, or to `failed` why there is none.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from typing import IO

# saccaded prints this line when its ports are open.
LISTENING = re.compile(r"listening grpc=(\S+:\d+) http=(\S+:\d+)")
_LOOK_SECONDS = 0.2
# A worker that ends is often followed by another.
_IDLE_SECONDS = 5.0
# Starts in a row that fail before the daemon is ready, after which the keeper gives up.
_MAX_FAILURES = 5
# Seconds before the daemon is started again. They double with each end, up to the longest.
_FIRST_PAUSE_SECONDS = 0.5
_MAX_PAUSE_SECONDS = 10.0
_MAX_DOUBLINGS = 10
# The end of a daemon that served this long is followed by the first pause again.
_SERVED_SECONDS = 60.0
_STOP_SECONDS = 60.0
_LOCK_ATTEMPTS = 10
_LOCK_PAUSE_SECONDS = 0.02
_PR_SET_PDEATHSIG = 1
# Calls to this machine use no proxy of the environment.
_HTTP = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def write(path: str, text: str) -> None:
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Daemon:
    """One run of the daemon."""

    def __init__(self, command: list[str]) -> None:
        self.started = time.monotonic()
        self.address: str | None = None
        self.http_address: str | None = None
        self.last_lines: collections.deque[str] = collections.deque(maxlen=20)
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", preexec_fn=_end_with_parent,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.last_lines.append(line.rstrip())
            if found := LISTENING.search(line):
                self.http_address = found[2]
                self.address = found[1]

    def is_ready(self) -> bool:
        if self.address is None:
            return False
        try:
            with _HTTP.open(f"http://{self.http_address}/v2/health/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def ended(self) -> bool:
        return self.process.poll() is not None

    def why(self) -> str:
        self._reader.join(2)
        lines = "\n".join(self.last_lines)
        return f"saccaded ended with code {self.process.returncode}; its last lines:\n{lines}"

    def stop(self) -> None:
        if not self.ended():
            self.process.terminate()
            try:
                self.process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()


class Leases:
    """Knows whether a worker still needs the daemon."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "a")
        self._needed = time.monotonic()

    def end_if_over(self, address: str) -> bool:
        """Returns whether no worker has needed the daemon for some time. Removes the file with its address then, before
        another worker can have a lease: that one waits for the next keeper, not for a daemon that is stopping."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._needed = time.monotonic()
            return False
        try:
            is_over = time.monotonic() - self._needed > _IDLE_SECONDS
            if is_over:
                _remove(address)
            return is_over
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)


def keep(folder: str, command: list[str]) -> None:
    """Runs the daemon until no worker needs it, or until it failed too often to start. A daemon that ends after it was ready
    is started again however often: an input may have ended it, and the workers give such inputs up."""
    address, failed = os.path.join(folder, "address"), os.path.join(folder, "failed")
    leases, failures, ends = Leases(os.path.join(folder, "leases")), 0, 0
    # An earlier keeper that was killed has left its daemon's.
    _remove(address)
    while True:
        daemon = Daemon(command)
        told = False
        try:
            while not daemon.ended():
                if leases.end_if_over(address):
                    return
                if not told and daemon.is_ready():
                    write(address, str(daemon.address))
                    told = True
                time.sleep(_LOOK_SECONDS)
        finally:
            _remove(address)
            daemon.stop()
        failures = 0 if told else failures + 1
        ends = 1 if told and time.monotonic() - daemon.started > _SERVED_SECONDS else ends + 1
        if failures == _MAX_FAILURES:
            write(failed, daemon.why())
            return
        time.sleep(min(_MAX_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** min(ends - 1, _MAX_DOUBLINGS)))


def _is_first(lock: IO[str]) -> bool:
    # Workers that look whether there is a keeper hold the lock for an instant.
    for _ in range(_LOCK_ATTEMPTS):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE_SECONDS)
    return False


def main() -> int:
    folder, command = sys.argv[1], sys.argv[2:]
    # SystemExit runs the blocks that stop the daemon.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with open(os.path.join(folder, "keeper"), "w") as lock:
        if not _is_first(lock):
            return 0
        try:
            keep(folder, command)
        except OSError as error:
            write(os.path.join(folder, "failed"), f"{command[0]} cannot be started: {error.strerror or error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

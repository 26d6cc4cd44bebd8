"""A daemon that the workers of a job share on one machine, started with the first of them and stopped after the last."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
import time

from saccade.bulk.failures import BulkError

_PORTS = ("--host=127.0.0.1", "--grpc-port=0", "--http-port=0", "--metrics-port=0")


def command(saccaded: str, repository: str, flags: list[str]) -> list[str]:
    return [saccaded, f"--model-repository={os.path.abspath(repository)}", *_PORTS, *flags]


def _meeting_folder(name: str) -> str:
    """Returns a folder that only this user can write to."""
    try:
        folder = os.path.join(tempfile.gettempdir(), f"saccade-bulk-{os.getuid()}")
        for path in (folder, os.path.join(folder, name)):
            os.makedirs(path, mode=0o700, exist_ok=True)
            found = os.lstat(path)
            if found.st_uid != os.getuid() or found.st_mode & 0o022:
                raise BulkError(f"{path} belongs to another user or can be written by others; remove it")
    except OSError as error:
        raise BulkError(
            f"no folder for the address of the daemon can be made: {error}; set TMPDIR to a folder that can be written"
        ) from error
    return os.path.join(folder, name)


class Lease:
    """Needs the daemon while it lives. `job` and `machine` name it: workers that give the same ones share a daemon."""

    def __init__(self, job: str, machine: str, daemon: list[str], start_seconds: float) -> None:
        self._command = daemon
        self._start_seconds = start_seconds
        # When the daemon must have an address; None while it has one.
        self._end: float | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        name = hashlib.sha256("\0".join([job, machine, *daemon]).encode()).hexdigest()[:20]
        self._folder = _meeting_folder(name)
        # A failure that was written before is of an earlier job.
        self._since = time.time()
        self._file = open(os.path.join(self._folder, "leases"), "a")
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def close(self) -> None:
        self._file.close()

    def find(self) -> str | None:
        """Returns the daemon's address, or None while it loads: look again soon. Starts a keeper if there is none."""
        now = time.monotonic()
        if self._end is None:
            self._end = now + self._start_seconds
        if self._has_keeper():
            found = self._read("address")
            if found is not None:
                self._end = None
                return found
        elif self._keeper is None or self._keeper.poll() is not None:
            why = self._read("failed")
            if why is not None and os.path.getmtime(os.path.join(self._folder, "failed")) >= self._since:
                raise BulkError(f"the daemon does not start. {why}")
            self._start()
        if now > self._end:
            raise BulkError(
                f"the daemon was not ready after {self._start_seconds:g} s: {' '.join(self._command)}; run this "
                "command by hand to see what it waits for"
            )
        return None

    def _read(self, name: str) -> str | None:
        try:
            with open(os.path.join(self._folder, name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def _has_keeper(self) -> bool:
        with open(os.path.join(self._folder, "keeper"), "a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            # A keeper that was killed has left its daemon's address. None can start while this lock is held.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self._folder, "address"))
        return False

    def _start(self) -> None:
        # In a session of its own: the keeper outlives the worker that started it, and ends with the last lease.
        # The keeper takes its lock as soon as Python runs, which takes long on a busy machine: starting more of them
        # meanwhile would make it busier. It ends at once if another worker's keeper has the lock.
        self._keeper = subprocess.Popen(
            [sys.executable, "-m", "saccade.bulk.keeper", self._folder, *self._command],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )

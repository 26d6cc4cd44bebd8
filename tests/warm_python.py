"""A process that has imported what most tests import, which takes seconds, and forks itself for each module that is run:

    python tests/warm_python.py SOCKET MODULE...

run_module.py asks for a fork over SOCKET and waits for its exit status. If it is gone before that (ctest ends a test that takes
too long), its fork is killed. The process ends with the process that started it.

A variable that a library reads only while it is imported has no effect on a fork, except OMP_NUM_THREADS."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import dataclasses
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import traceback

# A message holds the arguments and the environment of a job.
MESSAGE_BYTES = 1 << 20


@dataclasses.dataclass
class Fork:
    """A job's process, and the connection of the run_module.py that waits for it."""

    pid: int
    ended: int
    client: socket.socket


def become(job: dict, files: list[int]) -> None:
    """Makes this process what a new one of the job's environment would be."""
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    # Its own folder is first, which `python -m` replaces by the current one.
    folders = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    sys.path[:1] = [job["folder"], *folders]
    sys.argv = [job["module"], *job["arguments"]]
    threads = os.environ.get("OMP_NUM_THREADS")
    if threads and "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(int(threads))


def take_job(client: socket.socket) -> tuple[dict, list[int]] | None:
    with contextlib.suppress(OSError, ValueError):
        message, files, _, _ = socket.recv_fds(client, MESSAGE_BYTES, 3)
        if message and len(files) == 3:
            return json.loads(message), list(files)
    return None


def serve(listening: socket.socket) -> tuple[dict, list[int]] | None:
    """Forks until the parent process is gone. Returns None in this process, and the job in a fork."""
    events = selectors.DefaultSelector()
    events.register(listening, selectors.EVENT_READ)
    parent = os.pidfd_open(os.getppid())
    events.register(parent, selectors.EVENT_READ)
    forks: list[Fork] = []
    while True:
        for key, _ in events.select():
            if key.fileobj == parent:
                return None
            if key.fileobj is listening:
                client, _ = listening.accept()
                job = take_job(client)
                if job is None:
                    client.close()
                    continue
                pid = os.fork()
                if pid == 0:
                    events.close()
                    listening.close()
                    os.close(parent)
                    for other in forks:
                        os.close(other.ended)
                        other.client.close()
                    client.close()
                    return job
                for file in job[1]:
                    os.close(file)
                made = Fork(pid, os.pidfd_open(pid), client)
                forks.append(made)
                events.register(made.ended, selectors.EVENT_READ, made)
                events.register(client, selectors.EVENT_READ, made)
                continue
            fork = key.data
            if fork not in forks:
                continue
            if key.fileobj is fork.client:
                # It says nothing more, so it is gone.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(fork.pid, signal.SIGKILL)
                # It may have no group of its own yet.
                os.kill(fork.pid, signal.SIGKILL)
            forks.remove(fork)
            events.unregister(fork.ended)
            events.unregister(fork.client)
            _, status = os.waitpid(fork.pid, 0)
            with contextlib.suppress(OSError):
                fork.client.send(str(os.waitstatus_to_exitcode(status)).encode())
            fork.client.close()
            os.close(fork.ended)


def run(module: str) -> int:
    """Runs the module as a program. Returns the status with which Python would exit."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def end(status: int) -> None:
    """Ends the process as Python does, but frees nothing: for a fork, to free all that was imported takes half a second."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = status or 120  # as Python does
    ctypes.CDLL(None).fflush(None)
    os._exit(status)


def main() -> None:
    for module in sys.argv[2:]:
        importlib.import_module(module)
    # A fork would copy the pages of all objects that its garbage collections look at.
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        # The name appears when it can be connected to.
        made = f"{sys.argv[1]}.new"
        listening.bind(made)
        listening.listen(64)
        os.rename(made, sys.argv[1])
        taken = serve(listening)
    if taken is None:
        return
    job, files = taken
    become(job, files)
    end(run(job["module"]))


if __name__ == "__main__":
    main()

"""Runs a module as `python -m` does:

    python tests/run_module.py MODULE [ARGUMENT...]

If SACCADE_WARM_PYTHON names the socket of warm_python.py, a fork of that process runs it, which has imported already what most
tests import; otherwise this process does."""

import json
import os
import signal
import socket
import sys


def run_in_fork(server: socket.socket) -> int:
    """Returns the exit status; ends this process by the same signal as the fork."""
    job = {"module": sys.argv[1], "arguments": sys.argv[2:], "folder": os.getcwd(), "environment": dict(os.environ)}
    socket.send_fds(server, [json.dumps(job).encode()], [0, 1, 2])
    answer = server.recv(64)
    if not answer:
        print(f"run_module: the process of tests/warm_python.py ended while {sys.argv[1]} ran", file=sys.stderr)
        return 1
    code = int(answer)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def main() -> int:
    path = os.environ.get("SACCADE_WARM_PYTHON")
    if not path:
        os.execv(sys.executable, [sys.executable, "-m", *sys.argv[1:]])
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(path)
        return run_in_fork(server)


if __name__ == "__main__":
    sys.exit(main())

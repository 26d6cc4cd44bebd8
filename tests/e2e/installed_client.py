"""The Python client as users install it: built by pip."""

import fcntl
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def installed_client(own):
    """The folder that has the client. Tests that share a process of warm_python.py share the folder, which lies beside its
    socket and is made by the first of them; without such a process it is the folder `own`."""
    socket = os.environ.get("SACCADE_WARM_PYTHON")
    if not socket:
        _install(own)
        return own
    folder, done = (pathlib.Path(socket).with_name(name) for name in ("client", "client.installed"))
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            _install(folder)
            done.touch()
    return folder


def _install(folder):
    built = subprocess.run([ROOT / "tools" / "install_client", sys.executable, folder], cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr

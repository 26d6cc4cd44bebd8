"""What commands print in the guides: the session of docs/quickstart.md, run against the demo models, and the counts in
client/README.md, which are the same on every machine."""

import os
import pathlib
import re
import shlex
import subprocess
import tempfile

from harness import DEMO_REPOSITORY, ROOT, Daemon, binary

PAGE = ROOT / "docs" / "quickstart.md"
BLOCK = re.compile(r"^\$ saccade status .*?(?=^```)", re.MULTILINE | re.DOTALL)
README = ROOT / "client" / "README.md"
COUNTED = re.compile(r"^\$ (saccade params [^\n]*)\n.*?(?=^```)", re.MULTILINE | re.DOTALL)
ADDRESS = "127.0.0.1:8001"


def printed(command, address, folder):
    """What a command of the page prints, with the address that the page has."""
    arguments = shlex.split(command)
    done = subprocess.run([binary(arguments[0]).resolve(), *arguments[1:]], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env={**os.environ, "SACCADE_URL": address})
    if done.returncode != 0:
        raise RuntimeError(f"'{command}' of {PAGE.name} ended with {done.returncode}: {done.stdout}")
    return done.stdout.replace(address, ADDRESS)


def page(folder):
    """The page with the output of today. `folder` is empty, and gets the answers."""
    (folder / "models").symlink_to(ROOT / "models")
    text = PAGE.read_text()
    block = BLOCK.search(text)[0]
    with Daemon(DEMO_REPOSITORY, log_folder=folder) as daemon:
        address = daemon.await_ready().grpc_address
        made = "".join(f"$ {command}\n{printed(command, address, folder)}"
                       for command in re.findall(r"^\$ (.*)$", block, re.MULTILINE))
    return text.replace(block, made)


def readme():
    """client/README.md with what `saccade params` prints today."""
    return COUNTED.sub(lambda found: f"$ {found[1]}\n{printed(found[1], ADDRESS, ROOT)}", README.read_text())


def write():
    README.write_text(readme())
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page(pathlib.Path(folder)))

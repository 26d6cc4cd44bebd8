"""What commands print in docs/quickstart.md, run against the demo models."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

from harness import DEMO_REPOSITORY, ROOT, Daemon, binary

PAGE = ROOT / "docs" / "quickstart.md"
# Commands with what they print, and Python with what it prints.
BLOCK = re.compile(r"^```\n(?P<session>\$ .*?)^```|^```python\n(?P<code>.*?)^```\n\n```\n.*?^```", re.MULTILINE | re.DOTALL)
# A command, which goes on behind a backslash, and what it printed.
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
# The figures of a run, and the sentence about them.
MEASURED = re.compile(r"^\$ saccade bench .*?forward passes", re.MULTILINE | re.DOTALL)
COUNTS = re.compile(r"\d+ requests, \w+ of them from above, were answered by \d+ forward passes")
WIDTH = 118


def wrapped(line):
    """JSON in one line, broken after commas."""
    lines = [""]
    for part in re.split(r"(?<=,)", line):
        if lines[-1] and len(lines[-1]) + len(part) > WIDTH:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def printed(command, folder, addresses=None):
    """What a shell's command prints. `addresses`: by the address that the page has, the one to use in its place."""
    for shown, used in (addresses or {}).items():
        command = command.replace(shown, used)
    environment = {**os.environ, "PATH": f"{binary('saccade').resolve().parent}:{os.environ['PATH']}",
                   "PYTHONPATH": str(folder / "client")}
    if addresses:
        environment["SACCADE_URL"] = addresses["127.0.0.1:8001"]
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"'{command}' ended with {done.returncode}: {done.stdout}")
    text = done.stdout
    for shown, used in (addresses or {}).items():
        text = text.replace(used, shown)
    return "".join((wrapped(line) if line.startswith("{") else line) + "\n" for line in text.splitlines())


def with_counts(text):
    """The sentence about the measurement, as the commands before it counted."""
    measured = MEASURED.search(text)[0]
    sent = int(re.search(r"of ([\d,]+) requests", measured)[1].replace(",", ""))
    requests, passes = (int(re.search(rf"^{name}\{{.*\}} (\d+)$", measured, re.MULTILINE)[1])
                        for name in ("nv_inference_request_success", "nv_inference_exec_count"))
    before = ["none", "one", "two", "three", "four", "five"][requests - sent]
    return COUNTS.sub(f"{requests} requests, {before} of them from above, were answered by {passes} forward passes", text)


def page(folder):
    """The page with the output of today. `folder` is empty, and gets the answers."""
    (folder / "models").symlink_to(ROOT / "models")
    subprocess.run(["tools/install_client", sys.executable, folder / "client"], cwd=ROOT, check=True)

    def made(found):
        if found["code"]:
            code = found["code"]
            for shown, used in addresses.items():
                code = code.replace(shown, used)
            (folder / "example.py").write_text(code)
            return f"```python\n{found['code']}```\n\n```\n{printed(f'{sys.executable} example.py', folder)}```"
        commands = re.findall(r"^\$ (.*)$", found["session"], re.MULTILINE)
        return "```\n" + "".join(f"$ {command}\n{printed(command, folder, addresses)}" for command in commands) + "```"

    with Daemon(DEMO_REPOSITORY, log_folder=folder) as daemon:
        daemon.await_ready()
        ports = {8000: daemon.http_port, 8001: daemon.grpc_port, 8002: daemon.metrics_port}
        addresses = {f"127.0.0.1:{shown}": f"127.0.0.1:{used}" for shown, used in ports.items()}
        return with_counts(BLOCK.sub(made, PAGE.read_text()))


def write():
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page(pathlib.Path(folder)))

"""Starts the daemon on a model repository and tells whether it loads all models."""

import json
import os
import pathlib
import subprocess

MODEL = """backend: "saccade"
parameters { key: "architecture" value { string_value: "identity" } }
"""


def write_model(folder):
    """A model without weights."""
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "weights.safetensors").touch()
    (folder / "config.pbtxt").write_text(MODEL)


def list_files(folder, name="SHA256SUMS"):
    """Writes the checksums of the folder's files, with the command of docs/operations.md."""
    subprocess.run(f"find -L . -type f ! -path '*/.*' ! -path './SHA256SUMS*' -print0 | sort -z | xargs -0 sha256sum > {name}", shell=True, cwd=folder,
                   check=True)


def load(*flags, state):
    """Returns the reason for which the daemon did not start, as its log has it; empty if it is ready. `state` is a folder
    for what it remembers."""
    program = pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "bin" / "saccaded"
    command = [program, *flags, "--host=127.0.0.1", "--grpc-port=0", "--http-port=0", "--metrics-port=0", "--warm-up-seconds=0",
               "--log-format=json"]
    reasons, log = [], []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "XDG_STATE_HOME": str(state)}) as process:
        try:
            for line in process.stderr:
                log.append(line)
                entry = json.loads(line) if line.startswith("{") else {}
                if entry.get("message") == "ready":
                    return ""
                if entry.get("message") == "model unavailable":
                    reasons.append(entry["reason"])
        finally:
            process.kill()
    assert reasons, f"the daemon ended for another reason: {''.join(log)}"
    return "\n".join(reasons)

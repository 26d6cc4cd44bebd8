"""The reports in docs/shadow.md: of a small detector, and a version of it with slightly different weights."""

import json
import pathlib
import re
import tempfile

import safetensors.torch

from harness import ROOT, Daemon, eventually
from shadows import Noisy, picture_sender, report, until_compared, until_decided
from tiny_models import tiny_detector, write_model
from tools.reference.session import wrapped

PAGE = ROOT / "docs" / "shadow.md"
BLOCK = re.compile(r"^```json\n\{.*?^```", re.MULTILINE | re.DOTALL)
KEPT_PICTURE = re.compile(r"shadow/pictures/\d+ > \S+\.jpg")
SHADOW = "version=4,share=1"
RULE = "agreement >= 0.995 and p99 <= 1.5 after 1000 requests"
COMPARED = 1000
# How far the weights are apart, as a share of each layer's deviation: so that some answers agree and some do not.
NOISE = 0.0005


def found(folder, parameters, wait):
    """The report on version 4 of a detector, beside version 3, once `wait(daemon, send)` has returned."""
    model = tiny_detector()
    write_model(folder / "models", "detector", model, parameters={"shadow": SHADOW, **parameters})
    detector = folder / "models" / "detector"
    (detector / "1").rename(detector / "3")
    (detector / "4").mkdir()
    safetensors.torch.save_file(Noisy(model, NOISE).state(), detector / "4" / "weights.safetensors")
    with open(detector / "config.pbtxt", "a") as file:
        file.write("version_policy { all { } }\n")
    with Daemon(folder / "models", log_folder=folder) as daemon:
        daemon.await_ready()
        with daemon.vision() as vision:
            wait(daemon, picture_sender(vision, "detector", version=3))
        eventually(lambda: report(daemon, "detector")["in_flight"] == 0, "no copy was left")
        return report(daemon, "detector")


def shown(content):
    """Of the requests that differ only the worst."""
    differing = content.get("differing", [])
    text = json.dumps({**content, "differing": differing[:1]} if differing else content)
    return wrapped(text[:-2] + ", ...]}" if len(differing) > 1 else text)


def write():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        reports = [
            found(root / "compared", {}, lambda daemon, send: until_compared(daemon, COMPARED, send, "detector")),
            found(root / "decided", {"promote": RULE, "version_labels": "stable=3"},
                  lambda daemon, send: until_decided(daemon, send, "detector"))]
    texts = iter([f"```json\n{shown(one)}\n```" for one in reports])
    page = BLOCK.sub(lambda _: next(texts), PAGE.read_text())
    worst = reports[1]["differing"][0]
    PAGE.write_text(KEPT_PICTURE.sub(f"shadow/pictures/{worst['number']} > {worst['request']}.jpg", page))

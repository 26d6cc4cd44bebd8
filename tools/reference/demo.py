"""What ./dev demo prints in docs/quickstart.md, shortened, and its contact sheet, docs/images/demo.png."""

import pathlib
import re
import subprocess
import sys
import tempfile

from PIL import Image

from harness import ROOT, binary
from tools.reference.session import PAGE

SHEET = ROOT / "docs" / "images" / "demo.png"
BLOCK = re.compile(r"^```\n(\d+ models ready .*?)^```", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^(\w+) +(\S+) +[\d.]+ ms")


def shortened(output):
    """The part of the demo's output that the page shows: of the answers the files that it has already."""
    rows = {match.groups() for line in BLOCK.search(PAGE.read_text())[1].splitlines() if (match := ROW.match(line))}
    kept = output[:output.index("\nanswers as pictures")].strip().splitlines()
    return "\n".join(line for line in kept if not (match := ROW.match(line)) or match.groups() in rows) + "\n"


def write():
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tools.demo", f"--build={binary('saccaded').resolve().parents[1]}", f"--out={folder}"]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        with Image.open(pathlib.Path(folder) / "contact-sheet.png") as sheet:
            # A fifth of the size in 256 colours. Without the further steps rare colours, such as the star's, are lost.
            sheet.convert("RGB").quantize(256, kmeans=1).save(SHEET, optimize=True)
    text = shortened(done.stdout)
    PAGE.write_text(BLOCK.sub(lambda _: f"```\n{text}```", PAGE.read_text()))

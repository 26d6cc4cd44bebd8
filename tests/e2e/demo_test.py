"""Runs ./dev demo without its set-up: every demo model is called, drawn and put under load, and the daemon ends
cleanly."""

import os
import re
import subprocess
import sys

from PIL import Image

from harness import DEMO_REPOSITORY, ROOT


def test_the_demo(tmp_path):
    build = os.environ["SACCADE_BUILD_DIR"]
    command = [sys.executable, "-m", "tools.demo", f"--build={build}", f"--out={tmp_path}", "--seconds=1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    models = sorted(path.name for path in DEMO_REPOSITORY.iterdir())
    assert f"{len(models)} models ready" in done.stdout
    for model in models:
        assert re.search(rf"^{model} +\S+ +[\d.]+ ms +[\d.]+ ms  \S", done.stdout, re.MULTILINE), model
    assert re.search(r"[\d.]+ requests/s, half within [\d.]+ ms, 99% within [\d.]+ ms, 0 refused", done.stdout)
    with Image.open(tmp_path / "contact-sheet.png") as sheet:
        assert sheet.width > 500 and len(sheet.convert("RGB").getcolors(1 << 24)) > 1000
    assert done.stdout.endswith("the daemon has drained, and ended with 0\n")

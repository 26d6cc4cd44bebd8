"""Runs ./dev demo without its set-up: every demo model is called, drawn and put under load, and the daemon ends
cleanly."""

import os
import re
import subprocess
import sys

from PIL import Image, ImageDraw, ImageFont

from harness import DEMO_REPOSITORY, ROOT
from tools.demo import contact_sheet
from tools.reference import demo


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
    # The sheet has the volumes before and after, and an attention map.
    volumes = list((tmp_path / "denoiser").glob("*.before-and-after.png"))
    assert len(volumes) == len(list((ROOT / "models" / "demo" / "volumes").iterdir()))
    with Image.open(volumes[0]) as both:
        half = both.width // 2
        assert both.crop((0, 0, half - 2, both.height)).tobytes() != both.crop((half + 2, 0, both.width, both.height)).tobytes()
    assert len(list((tmp_path / "attention").glob("*.png"))) >= 1
    # What the guide shows of it, but for the times.
    untimed = lambda text: re.sub(r"[\d.]+ ms|after [\d.]+ s", "", text.split("\n\n16 clients")[0]).split()
    (shown,) = demo.BLOCK.findall((ROOT / "docs" / "quickstart.md").read_text())
    assert untimed(shown) == untimed(demo.shortened(done.stdout))
    # No addresses at which nobody answers any more.
    assert "http://" not in done.stdout and "contact-sheet.png" in done.stdout
    ended, after = done.stdout.split("the daemon has drained, and ended with 0\n")
    lines = after.strip().splitlines()
    assert lines[0] == "What next?" and len(lines) == 4
    for line, word in zip(lines[1:], ("./dev demo --stay", "saccade detect", "saccade init")):
        assert word in line
        for page in re.findall(r"docs/[\w-]+\.md", line):
            assert (ROOT / page).exists()


def test_the_sheets_captions_are_not_cut_within_a_word():
    pen, font = ImageDraw.Draw(Image.new("RGB", (8, 8))), ImageFont.load_default(size=13)
    fitting = lambda line: contact_sheet.fitting(line, pen, font)
    assert fitting("heart 98%, circle 1%") == "heart 98%, circle 1%"
    assert fitting("background 75%, " * 3 + "rug 11%") in ("background 75%, …", "background 75%, background 75%, …")
    cut = fitting("x" * 200)
    assert cut.endswith("x…") and pen.textlength(cut, font) <= contact_sheet.CELL

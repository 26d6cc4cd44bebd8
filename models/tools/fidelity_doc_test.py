"""docs/fidelity.md must contain the counts of the code."""

import os
import pathlib
import subprocess

import torchvision

ROOT = pathlib.Path(__file__).parents[2]


def test_the_page_has_the_table_that_the_code_prints():
    build = pathlib.Path(os.environ.get("SACCADE_BUILD_DIR", "build/release"))
    printed = subprocess.run([build / "tests" / "saccade_fidelity"], check=True, capture_output=True, text=True).stdout
    page = (ROOT / "docs" / "fidelity.md").read_text()
    assert printed in page, "docs/fidelity.md is out of date: put build/release/tests/saccade_fidelity's output into it"


def test_the_remarks_on_torchvision_s_counts_are_torchvision_s():
    page = (ROOT / "docs" / "fidelity.md").read_text()
    for depth in (34, 50, 101, 152):
        stated = torchvision.models.get_model_weights(f"resnet{depth}").IMAGENET1K_V1.meta["_ops"]
        (row,) = (line for line in page.splitlines() if line.startswith(f"| `expatt_resnet{depth}` | attention=none | ResNet"
                                                                         f"{depth} |"))
        assert f"| {stated:.3f} G |" in row and f"torchvision states {stated:.3f} G" in row

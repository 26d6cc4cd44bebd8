"""docs/fidelity.md must contain the counts of the code."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[2]


def test_the_page_has_the_table_that_the_code_prints():
    build = pathlib.Path(os.environ.get("SACCADE_BUILD_DIR", "build/release"))
    printed = subprocess.run([build / "tests" / "saccade_fidelity"], check=True, capture_output=True, text=True).stdout
    page = (ROOT / "docs" / "fidelity.md").read_text()
    assert printed in page, "docs/fidelity.md is out of date: put build/release/tests/saccade_fidelity's output into it"

"""The pages of docs/reference, by file name."""

import pathlib

from harness import ROOT
from tools.reference import flags, limits, metrics

FOLDER = pathlib.Path(ROOT) / "docs" / "reference"


def pages(folder):
    """Generates every page; `folder` is for temporary files."""
    return {"flags.md": flags.page(), "metrics.md": metrics.page(folder), "limits.md": limits.page()}

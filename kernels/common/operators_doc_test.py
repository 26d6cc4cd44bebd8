"""Checks that docs/operators.md lists every operator with the schema that the library registers, and that its example
runs."""

import os
import pathlib
import re

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "lib" / "libsaccade_kernels.so"
DOC = (ROOT / "docs" / "operators.md").read_text()
torch.ops.load_library(LIBRARY)


def test_schemas_stand_in_the_documentation():
    registered = {str(schema).removeprefix("saccade::")
                  for schema in torch._C._jit_get_all_schemas() if schema.name.startswith("saccade::")}
    documented = set(re.findall(r"^    (\w+\(.*\) -> .+)$", DOC, re.MULTILINE))
    assert documented == registered


def test_the_example_runs():
    example = re.search(r"^    import torch\n(?:    .+\n)+", DOC, re.MULTILINE).group()
    lines = [line.strip() for line in example.splitlines() if "load_library" not in line]
    scope = {}
    exec("\n".join(lines), scope)
    assert scope["y"].shape == scope["x"].shape

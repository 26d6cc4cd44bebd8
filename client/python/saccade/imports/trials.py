"""Runs a program that is a file, .pt or .pt2, with one picture and with two, to see whether its batch is a constant. Its code runs in a
process of its own, which a crash ends alone."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
from typing import Any, Callable

import torch
from torch import Tensor

_SECONDS = 180.0
# A value differs if it does by more than this share of the largest, which is far beyond rounding, also of 8 bits.
_TOLERANCE = 0.05
# Outputs differ if more than this share of their values does: rounding may swap two detections.
_SHARE = 0.1
_TYPES = {
    "FP32": torch.float32, "FP16": torch.float16, "BF16": torch.bfloat16, "FP64": torch.float64, "UINT8": torch.uint8, "INT8": torch.int8,
    "INT16": torch.int16, "INT32": torch.int32, "INT64": torch.int64, "BOOL": torch.bool,
}  # fmt: skip
# As in saccade.json, by resize.
_SIZES = {"shorter": 800, "longer": 1024, "either": 384}

Program = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Trial:
    # Why the program takes one picture alone; empty if it takes more.
    fixed: str = ""
    # Why it could not be tried; empty if it was.
    failed: str = ""


def size_of(described: dict[str, Any]) -> tuple[int, int]:
    """Returns a size, height and width, that pictures have for a program with this "input"."""
    given = described.get("crop", described.get("size", _SIZES.get(described.get("resize", "exact"), 224)))
    height, width = given if isinstance(given, list) else (given, given)
    multiple = described.get("multiple", 1)
    up = [-(-int(side) // multiple) * multiple for side in (height, width)]
    return up[0], up[1]


def _inputs(described: dict[str, Any]) -> list[Tensor]:
    """Returns what the program takes for two pictures, which differ."""
    size = size_of(described)
    pictures = torch.rand(2, 3, *size, generator=torch.Generator().manual_seed(1))
    kind = _TYPES[described.get("type", "FP32")]
    if not kind.is_floating_point:
        pictures = (255 * pictures).round()
    if described.get("layout", "nchw") == "nhwc":
        pictures = pictures.permute(0, 2, 3, 1)
    made = [pictures.to(kind).contiguous()]
    if described.get("mask"):
        made.append(torch.ones(2, *size, dtype=_TYPES[described.get("mask_type", "INT64")]))
    return made


def _flat(outputs: Any) -> list[Tensor]:
    if isinstance(outputs, Tensor):
        return [outputs]
    values = outputs.values() if isinstance(outputs, dict) else outputs if isinstance(outputs, (list, tuple)) else []
    return [one for value in values for one in _flat(value)]


def _differ(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return True
    if one.numel() == 0:
        return False
    a, b = one.double(), other.double()
    return float(((a - b).abs() > _TOLERANCE * float(b.abs().max())).double().mean()) > _SHARE


def _why(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


def try_program(program: Program, described: dict[str, Any]) -> Trial:
    """`described` is the "input" of a saccade.json."""
    inputs = _inputs(described)

    def alone(row: int) -> list[Tensor]:
        return _flat(program(*(one[row : row + 1] for one in inputs)))

    with torch.inference_mode():
        try:
            both = _flat(program(*inputs))
            wrong = next((one for one in both if one.dim() == 0 or one.shape[0] != 2), None)
            why = "" if wrong is None else f"for a batch of 2 it returns {list(wrong.shape)}"
        except Exception as error:  # the program may raise anything
            both, why = [], f"it fails with a batch of 2: {_why(error)}"
        try:
            singles = [alone(row) for row in range(2)]
        except Exception as error:
            # Packages with an open batch may take two pictures and more, which is no fault.
            return Trial(failed=_why(error)) if why else Trial()
    if why:
        return Trial(fixed=why)
    if any(_differ(one[row : row + 1], other) for row in range(2) for one, other in zip(both, singles[row])):
        return Trial(fixed="in a batch of 2 a picture gets other numbers than alone")
    return Trial()


def _load(path: str) -> Program:
    loaded: Any
    if path.endswith(".pt2"):
        from torch._inductor import aoti_load_package

        loaded = aoti_load_package(path)
    else:
        loaded = torch.jit.load(path, map_location="cpu").eval()  # type: ignore[no-untyped-call]
    program: Program = loaded
    return program


def run(program: pathlib.Path, described: dict[str, Any]) -> Trial:
    """As try_program(), with the program of a file."""
    package = str(pathlib.Path(__file__).parents[2])
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])]),
        # A package is compiled without checks of its inputs' sizes unless this is set.
        "AOTI_RUNTIME_CHECK_INPUTS": "1",
    }  # fmt: skip
    words = [sys.executable, "-m", __name__, str(program.absolute()), json.dumps(described)]
    try:
        ended = subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=_SECONDS, env=environment, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return Trial(failed=f"it took more than {_SECONDS:g} s")
    if ended.returncode != 0:
        return Trial(failed=f"its process ended with {ended.returncode}")
    # A program may print lines of its own, also after the last one, and may end the process.
    try:
        return Trial(**json.loads(ended.stdout.splitlines()[-1]))
    except (IndexError, ValueError, TypeError):
        return Trial(failed="its process did not say what it found")


def main(path: str, described: str) -> None:
    try:
        found = try_program(_load(path), json.loads(described))
    except Exception as error:  # whatever loading a file raises
        found = Trial(failed=_why(error))
    print("\n" + json.dumps(dataclasses.asdict(found)))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Reads the machine code of the tiled kernels of efficient attention: what makes them fast must be in it.

Nothing here runs on a GPU, so a change that, for example, makes the compiler keep the sums in local memory would
otherwise be seen only in a time on such a machine.
"""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BUILD = ROOT / os.environ.get("SACCADE_BUILD_DIR", "build/release")
# Instructions between the first and the last of a group of tensor-core instructions, for each of them. A gap of more
# instructions than MAX_GAP ends a group.
MAX_PER_HMMA = 2.5
MAX_GAP = 24
# Multiplications for each load of four operands from shared memory. A multiprocessor does four in the time of one load.
MIN_FFMA_PER_LOAD = 4


def disassembler():
    """Returns cuobjdump: CUDA's own, or the one that the Python environment brings."""
    found = shutil.which("cuobjdump") or shutil.which("/usr/local/cuda/bin/cuobjdump")
    if found:
        return found
    for site in map(pathlib.Path, sys.path):
        beside = site / "triton" / "backends" / "nvidia" / "bin" / "cuobjdump"
        if beside.exists():
            return str(beside)
    return None


@pytest.fixture(scope="module")
def kernels():
    """The opcodes of every tiled kernel in the plugin, by architecture and name."""
    plugin = BUILD / "lib" / "libsaccade_cuda.so"
    if not plugin.exists():
        pytest.skip(f"no {plugin}: CUDA is not built")
    program = disassembler()
    assert program, "no cuobjdump; expected it on PATH, in /usr/local/cuda/bin or in the Python package triton"
    found = {}
    for arch in ("sm_80", "sm_90"):
        listing = subprocess.run([program, "-sass", "-arch", arch, plugin], check=True, capture_output=True, text=True).stdout
        for text in listing.split("Function : ")[1:]:
            name = text.split()[0]
            if re.search(r"Ea(Float)?(Gather|Apply|Fold)Kernel", name):
                found[arch, name] = re.findall(r"/\*[0-9a-f]{4,5}\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.]+)", text)
    return found


def count(opcodes, start):
    return sum(opcode.startswith(start) for opcode in opcodes)


def test_every_kernel_is_there(kernels):
    """Three widths and two layouts of the gather and the apply, and a fold, for each type."""
    names = collections.Counter((arch, re.search(r"Ea(\w+?)Kernel", name)[1]) for arch, name in kernels)
    for arch in ("sm_80", "sm_90"):
        assert [names[arch, name] for name in ("Gather", "Apply", "FloatGather", "FloatApply", "Fold")] == [12, 12, 6, 6, 3]


def test_nothing_is_kept_in_local_memory(kernels):
    for (arch, name), opcodes in kernels.items():
        assert count(opcodes, "LDL") + count(opcodes, "STL") == 0, f"{name} for {arch} uses local memory"


def test_tiles_are_copied_and_stored_in_16_bytes(kernels):
    for (arch, name), opcodes in kernels.items():
        copies = sum(opcode.startswith("LDGSTS") and opcode.endswith(".128") for opcode in opcodes)
        if "FoldKernel" not in name:
            assert copies > 0, f"{name} for {arch} has no 16-byte copy to shared memory"
            assert copies == count(opcodes, "LDGSTS"), f"{name} for {arch} has narrower copies to shared memory"
        else:
            assert count(opcodes, "LDG.E.128") > 0, f"{name} for {arch} has no 16-byte load"
        if "ApplyKernel" in name:
            assert count(opcodes, "STG.E.128") > 0, f"{name} for {arch} has no 16-byte store"


def test_products_consist_of_tensor_core_instructions(kernels):
    for (arch, name), opcodes in kernels.items():
        if "FoldKernel" in name or "EaFloat" in name:
            continue
        assert count(opcodes, "LDSM.16.M") == count(opcodes, "LDSM"), f"{name} for {arch} has narrow matrix loads"
        at = [i for i, opcode in enumerate(opcodes) if opcode.startswith("HMMA")]
        gaps = [b - a for a, b in zip(at, at[1:]) if b - a <= MAX_GAP]
        assert len(gaps) >= 48, f"{name} for {arch} has {len(gaps) + 1} tensor-core instructions in its products"
        ratio = sum(gaps) / len(gaps)
        assert ratio <= MAX_PER_HMMA, f"{name} for {arch}: {ratio:.2f} instructions for each tensor-core instruction"


def test_float32_products_read_four_operands_at_once(kernels):
    for (arch, name), opcodes in kernels.items():
        if "EaFloat" not in name:
            continue
        assert count(opcodes, "LDS.128") > 0, f"{name} for {arch} has no 16-byte load from shared memory"
        ratio = count(opcodes, "FFMA") / count(opcodes, "LDS.128")
        assert ratio >= MIN_FFMA_PER_LOAD, f"{name} for {arch}: {ratio:.2f} multiplications for each load of four operands"

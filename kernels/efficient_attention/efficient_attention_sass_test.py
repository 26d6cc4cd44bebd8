"""Reads the machine code of the tiled kernels of efficient attention: what makes them fast must be in it."""

import collections
import re

import pytest

from kernels.common import sass
from kernels.common.sass import count
from tests.long_form import in_long_form

ARCHS = ("sm_90", *in_long_form("sm_80"))

# Instructions between the first and the last of a group of tensor-core instructions, for each of them.
MAX_PER_HMMA = 2.5
# The same, where the products of 64 terms each are followed by their epilogues.
MAX_PER_HMMA_OF_WIDE_APPLY = 3.5
# Multiplications for each load of four operands from shared memory. A multiprocessor does four in the time of one load.
MIN_FFMA_PER_LOAD = 4


@pytest.fixture(scope="module")
def kernels():
    """The opcodes of every tiled kernel in the plugin, by architecture and name."""
    return {(arch, name): opcodes for arch in ARCHS for name, opcodes in sass.opcodes_of_kernels(arch).items()
            if re.search(r"Ea(Wide)?(Float)?(Gather|Logits|Apply|Fold)Kernel", name)}


def test_every_kernel_is_there(kernels):
    """Three widths and two layouts of the gather and the apply, and a fold, for each type; of wide maps two layouts."""
    names = collections.Counter((arch, re.search(r"Ea(\w+?)Kernel", name)[1]) for arch, name in kernels)
    for arch in ARCHS:
        assert [names[arch, name] for name in ("Gather", "Apply", "FloatGather", "FloatApply", "Fold")] == [12, 12, 6, 6, 3]
        assert [names[arch, name] for name in ("WideLogits", "WideGather", "WideApply")] == [4, 4, 4]
        assert [names[arch, name] for name in ("WideFloatLogits", "WideFloatGather", "WideFloatApply")] == [2, 2, 2]


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
        if "FoldKernel" in name or "Float" in name:
            continue
        assert count(opcodes, "LDSM.16.M") == count(opcodes, "LDSM"), f"{name} for {arch} has narrow matrix loads"
        gaps = sass.gaps_of_products(opcodes)
        wide_apply = "EaWideApply" in name
        assert len(gaps) >= (24 if wide_apply else 48), f"{name} for {arch} has {len(gaps) + 1} tensor-core instructions in its products"
        ratio = sum(gaps) / len(gaps)
        bound = MAX_PER_HMMA_OF_WIDE_APPLY if wide_apply else MAX_PER_HMMA
        assert ratio <= bound, f"{name} for {arch}: {ratio:.2f} instructions for each tensor-core instruction"


def test_float32_products_read_four_operands_at_once(kernels):
    for (arch, name), opcodes in kernels.items():
        if "Float" not in name:
            continue
        assert count(opcodes, "LDS.128") > 0, f"{name} for {arch} has no 16-byte load from shared memory"
        ratio = count(opcodes, "FFMA") / count(opcodes, "LDS.128")
        assert ratio >= MIN_FFMA_PER_LOAD, f"{name} for {arch}: {ratio:.2f} multiplications for each load of four operands"

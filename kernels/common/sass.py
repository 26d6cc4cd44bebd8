"""Reads the machine code of the kernels in libsaccade_cuda.so, for tests of what the compiler made of them.

Nothing here runs on a GPU, so a change that, for example, makes the compiler keep sums in local memory would otherwise be
seen only in a time on such a machine.
"""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PLUGIN = ROOT / os.environ.get("SACCADE_BUILD_DIR", "build/release") / "lib" / "libsaccade_cuda.so"
# Tensor-core instructions that are further apart are not of one product.
MAX_GAP = 24


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


def said_of_the_plugin(*arguments):
    if not PLUGIN.exists():
        pytest.skip(f"no {PLUGIN}: CUDA is not built")
    program = disassembler()
    assert program, "no cuobjdump; expected it on PATH, in /usr/local/cuda/bin or in the Python package triton"
    return subprocess.run([program, *arguments, PLUGIN], check=True, capture_output=True, text=True).stdout


@functools.cache
def opcodes_of_kernels(arch):
    """The opcodes of every kernel, by its mangled name."""
    found = {}
    for text in said_of_the_plugin("-sass", "-arch", arch).split("Function : ")[1:]:
        found[text.split()[0]] = re.findall(r"/\*[0-9a-f]{4,5}\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.]+)", text)
    return found


@functools.cache
def registers_of_kernels(arch):
    """The registers of a thread of every kernel, by its mangled name."""
    said = said_of_the_plugin("-res-usage", "-arch", arch)
    return {name: int(count) for name, count in re.findall(r"Function (\S+):\s+REG:(\d+)", said)}


def count(opcodes, start):
    return sum(opcode.startswith(start) for opcode in opcodes)


def distances_of_products(opcodes):
    """The distances of neighbouring tensor-core instructions."""
    at = [i for i, opcode in enumerate(opcodes) if opcode.startswith("HMMA")]
    return [b - a for a, b in zip(at, at[1:])]


def gaps_of_products(opcodes):
    """The distances of neighbouring tensor-core instructions of one product."""
    return [distance for distance in distances_of_products(opcodes) if distance <= MAX_GAP]

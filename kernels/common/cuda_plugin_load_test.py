"""Tests how programs come to the CUDA plugin (cuda_plugin.cc): with fakes of the driver, of LibTorch's CUDA library and of the
plugin, each case in a process of its own."""

import os
import pathlib
import subprocess

import pytest

from kernels.common.testing import fake_cuda
from kernels.common.testing.fake_cuda import DRIVER, NOT_A_LIBRARY, PLUGIN, TORCH

PROGRAM = pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "tests" / "saccade_load_cuda_plugin"
NAMES = ["NVIDIA H200 sm_90", "NVIDIA L4 sm_89"]


def load(folder, replaced=None, **environment):
    """What the program prints: a dictionary of its facts, in which "names" is a list."""
    made = fake_cuda.make(folder / "libraries", replaced)
    done = subprocess.run([PROGRAM], capture_output=True, text=True, env={**os.environ, **made, **environment})
    assert done.returncode == 0, done.stderr
    facts = {"names": []}
    for line in done.stdout.splitlines():
        fact, _, value = line.partition(" ")
        if fact == "name":
            facts["names"].append(value)
        else:
            assert fact not in facts, done.stdout
            facts[fact] = value
    return facts


def test_the_plugin_is_loaded(tmp_path):
    assert load(tmp_path) == {"loaded": "1", "devices": "2", "reason": "", "names": NAMES, "symbol": "1", "unknown": "0",
                              "ipc": "1", "graph": "that of the fake"}


def test_as_many_gpus_as_the_driver_finds(tmp_path):
    found = load(tmp_path, SACCADE_FAKE_GPUS="1")
    assert (found["loaded"], found["devices"], found["names"]) == ("1", "1", NAMES[:1])


@pytest.mark.parametrize("replaced, environment, names, reason", [
    ({DRIVER: NOT_A_LIBRARY}, {}, [], "no CUDA driver: {folder}/libcuda.so.1: *"),
    ({DRIVER: fake_cuda.fake("cuda_plugin")}, {}, [],
     "libcuda.so.1 lacks cuInit or cuDeviceGetCount; expected NVIDIA's driver library"),
    ({}, {"SACCADE_FAKE_CUINIT": "803"}, [], "the CUDA driver cannot be initialized (cuInit returned 803)"),
    ({}, {"SACCADE_FAKE_GPUS": "0"}, [], "the CUDA driver found no GPU"),
    ({}, {"SACCADE_FAKE_COUNT": "3"}, [], "the CUDA driver found no GPU"),
    ({TORCH: NOT_A_LIBRARY}, {}, NAMES,
     "a GPU was found, but LibTorch's CUDA libraries cannot be loaded: {folder}/libtorch_cuda.so: *. "
     "Install the full set of CUDA wheels (./dev build --cuda)."),
    ({PLUGIN: None}, {}, NAMES,
     "a GPU was found, but libsaccade_cuda.so cannot be loaded: {folder}/libsaccade_cuda.so: *. Build it on a machine with nvcc."),
    ({PLUGIN: NOT_A_LIBRARY}, {}, NAMES,
     "a GPU was found, but libsaccade_cuda.so cannot be loaded: {folder}/libsaccade_cuda.so: *. Build it on a machine with nvcc."),
], ids=["driver's file", "driver's functions", "initialization", "no GPU", "count", "LibTorch's file", "no plugin", "plugin's file"])
def test_the_reason_why_it_is_not_loaded(tmp_path, replaced, environment, names, reason):
    found = load(tmp_path, replaced, **environment)
    assert (found["loaded"], found["devices"], found["names"]) == ("0", "0", names)
    # A star stands for the words of the system's loader.
    begin, _, end = reason.replace("{folder}", str(tmp_path / "libraries")).partition("*")
    said = found["reason"]
    assert said.startswith(begin) and said.endswith(end) and (("*" in reason) == (len(said) > len(begin) + len(end))), said
    assert (found["symbol"], found["unknown"], found["ipc"]) == ("0", "0", "0")
    assert found["graph"] == f"CUDA graphs are not available: {said}"

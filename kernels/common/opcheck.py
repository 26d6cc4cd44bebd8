"""Shared by the operators' tests from Python: the operators, and random inputs."""

import os
import pathlib

import torch

torch.ops.load_library(pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "lib" / "libsaccade_kernels.so")
OPS = torch.ops.saccade

# Shapes of maps, and the valid extent of each of their samples.
SAMPLES = {
    "picture": ((2, 4, 3, 5), None),
    "padded": ((2, 4, 3, 5), [[3, 5], [2, 3]]),
    "line": ((1, 4, 7), None),
    "volume": ((2, 4, 2, 2, 3), [[2, 2, 3], [1, 2, 2]]),
}


def random(*shape, dtype=torch.float64, grad=False):
    return (torch.randn(*shape, dtype=torch.float64) + 0.2).to(dtype).requires_grad_(grad)


def inputs_of(sample, count=3, grad=False):
    """Returns `count` random maps, and the valid extents or None. `sample` is a value of SAMPLES."""
    shape, valid = sample
    return [random(*shape, grad=grad) for _ in range(count)], None if valid is None else torch.tensor(valid)

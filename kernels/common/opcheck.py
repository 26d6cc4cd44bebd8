"""Shared by the operators' tests from Python: the operators, and random inputs."""

import os
import pathlib

import torch

from tests.long_form import LONG

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


def opcheck(operator, arguments):
    """torch.library.opcheck, with symbolic shapes in the long form alone: to trace gradients with them takes seconds.
    opcheck_with_symbols() does so in every run, for a case or two of each operator."""
    trace = "test_aot_dispatch_dynamic" if LONG else "test_aot_dispatch_static"
    torch.library.opcheck(operator, arguments, test_utils=("test_schema", "test_autograd_registration", "test_faketensor", trace))


def opcheck_with_symbols(operator, arguments):
    torch.library.opcheck(operator, arguments)


def gradcheck(function, inputs):
    """By random projections of the Jacobian; by each of its numbers in the long form."""
    return torch.autograd.gradcheck(function, inputs, fast_mode=not LONG)

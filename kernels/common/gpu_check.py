"""Helpers shared by the operators' checks on a GPU machine: arguments, error bounds, CUDA graphs, timing."""

import argparse
import os
import pathlib
import statistics
import sys

import torch

BOUNDS = {torch.float32: 1e-6, torch.bfloat16: 1e-2, torch.float16: 2e-3}
ROUNDING = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-9, torch.float16: 2.0**-12}
# With LibTorch's caching allocator disabled, as under memcheck, every allocation is a cudaMalloc, which a capture
# forbids.
CAN_CAPTURE = os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING") != "1"


def start(doc):
    """Loads the build named on the command line. Returns its operators, and whether --quick was given."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="build folder with lib/libsaccade_kernels.so and lib/libsaccade_cuda.so")
    parser.add_argument("--quick", action="store_true", help="use small shapes and skip timing, for compute-sanitizer")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("no GPU: torch.cuda.is_available() is False; expected a machine with an NVIDIA GPU and driver")
    torch.ops.load_library(arguments.build / "lib" / "libsaccade_kernels.so")
    torch.ops.load_library(arguments.build / "lib" / "libsaccade_cuda.so")
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_grad_enabled(False)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    return torch.ops.saccade, arguments.quick


def relative_error(got, expected):
    return ((got.double().cpu() - expected).norm() / expected.norm()).item()


def check_error(what, got, expected, composed=None):
    """Checks the error against float64, with a fixed bound and, if given, twice the error of `composed` (ATen, same
    dtype)."""
    error = relative_error(got, expected)
    allowed = BOUNDS[got.dtype]
    if composed is not None:
        allowed = min(allowed, 2 * max(relative_error(composed, expected), ROUNDING[got.dtype]))
    assert error <= allowed, f"{what}: off by {error:.2e}, expected at most {allowed:.2e}"
    return error


def check_same(what, run, got, x):
    """Checks that run(x) gives the bits of `got` again, and that each sample gives the same bits when it runs alone."""
    assert torch.equal(run(x), got), f"{what}: the result changes from run to run"
    for b in range(len(x)):
        assert torch.equal(run(x[b:b + 1]), got[b:b + 1]), f"{what}: sample {b} depends on its batch"


def padded(x):
    """Returns x inside 32 x 40 positions of NaN, and its extent in the form of the operators' `valid` argument."""
    wide = x.new_full((*x.shape[:2], 32, 40), float("nan"))
    wide[:, :, :x.shape[2], :x.shape[3]] = x
    return wide, torch.tensor([x.shape[2:]] * len(x), device=x.device)


def check_padded(what, got, expected):
    """Checks that a padded map gives the same bits as the map alone, and zeros in the padding."""
    height, width = expected.shape[2:]
    assert torch.equal(got[:, :, :height, :width], expected), f"{what}: padding changes the result"
    assert got[:, :, height:].abs().sum() == 0 and got[:, :, :, width:].abs().sum() == 0, f"{what}: padding is not zero"


def captured(run):
    """Returns the call as a CUDA graph. Capturing fails if the call synchronizes or allocates outside LibTorch's
    allocator."""
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def captured_result(run):
    """Returns the captured call and its result tensor, which every replay overwrites."""
    results = []
    replay = captured(lambda: results.append(run()))
    return replay, results[-1]


def check_capture(what, run):
    """Checks that a replayed graph gives the same bits as the call itself."""
    if not CAN_CAPTURE:
        return
    expected = run()
    replay, got = captured_result(run)
    got.fill_(float("nan"))
    replay()
    torch.cuda.synchronize()
    assert torch.equal(got, expected), f"{what}: a captured call gives a different result"


def medians_us(candidates, rounds=200):
    """Returns the median microseconds per call of each candidate. Candidates take turns."""
    times = {name: [] for name in candidates}
    for i in range(rounds + 20):
        for name, run in candidates.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run()
            end.record()
            end.synchronize()
            if i >= 20:
                times[name].append(begin.elapsed_time(end) * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def print_medians(medians, ours):
    width = max(len(name) for name in medians)
    for name, median in medians.items():
        print(f"  {name:{width}} {median:9.2f} us  {median / medians[ours]:6.2f}x")

"""What the operators' checks on a GPU machine share: arguments, error bounds, CUDA graphs, times."""

import argparse
import pathlib
import statistics
import sys

import torch

BOUNDS = {torch.float32: 1e-6, torch.bfloat16: 1e-2, torch.float16: 2e-3}
ROUNDING = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-9, torch.float16: 2.0**-12}


def start(doc):
    """The operators of the build that the command line names, and whether it asks to be quick."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="with lib/libsaccade_kernels.so and lib/libsaccade_cuda.so")
    parser.add_argument("--quick", action="store_true", help="small shapes, nothing timed: for compute-sanitizer")
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
    """Against float64, and against twice what ATen's composition in the same dtype is off by."""
    error = relative_error(got, expected)
    allowed = BOUNDS[got.dtype]
    if composed is not None:
        allowed = min(allowed, 2 * max(relative_error(composed, expected), ROUNDING[got.dtype]))
    assert error <= allowed, f"{what}: off by {error:.2e}, expected at most {allowed:.2e}"
    return error


def captured(run):
    """The call as a CUDA graph; capturing fails if it synchronises or allocates outside the allocator."""
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def check_capture(what, run):
    """A replayed graph gives the bits of the call itself."""
    expected = run()
    result = {}

    def keep():
        result["got"] = run()

    replay = captured(keep)
    result["got"].fill_(float("nan"))
    replay()
    torch.cuda.synchronize()
    assert torch.equal(result["got"], expected), f"{what}: a captured call gives another result"


def medians_us(candidates, rounds=200):
    """Microseconds of each candidate, taking turns."""
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
    for name, median in medians.items():
        print(f"  {name:24} {median:9.2f} us  {median / medians[ours]:6.2f}x")

"""Checks the CUDA side of explicitly modelled attention on a machine with a GPU, then times it.

usage: expatt_gpu_check.py [--quick] BUILD_DIR

Every result is compared with float64 on the CPU before anything is timed; any failure, a missing GPU
included, exits non-zero. Times are medians, candidates taking turns, in one process. --quick leaves out
torch.compile and most of the sizes that are timed.
"""

import argparse
import pathlib
import statistics
import sys

import torch

KINDS = ("constant", "linear", "cosine", "gaussian", "exponential_euclidean", "exponential_manhattan")
SEPARABLE = ("gaussian", "exponential_manhattan")
SIGMA = 0.75
BOUNDS = {torch.float32: 1e-6, torch.bfloat16: 1e-2, torch.float16: 2e-3}
ROUNDING = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-9, torch.float16: 2.0**-12}


def dense_map(kind, height, width, dtype, device):
    def distances(size, shape):
        index = torch.arange(size, dtype=torch.float64, device=device)
        return (index[:, None] - index).abs().view(shape)

    dy, dx = distances(height, (height, 1, height, 1)), distances(width, (1, width, 1, width))
    scaled = (dy / height)**2 + (dx / width)**2
    part = ((dy**2 + dx**2) / (height**2 + width**2)).sqrt()
    g = {
        "constant": lambda: torch.ones_like(part),
        "linear": lambda: 1 - part,
        "cosine": lambda: 0.5 * (1 + torch.cos(torch.pi * part)),
        "gaussian": lambda: torch.exp(scaled / (-2 * SIGMA**2)),
        "exponential_euclidean": lambda: torch.exp(-scaled.sqrt() / SIGMA),
        "exponential_manhattan": lambda: torch.exp(-(dy / height + dx / width) / SIGMA),
    }[kind]()
    g = (g + 1).reshape(height * width, -1)
    return (g / g.sum(1, keepdim=True)).to(dtype)


def separable_map(kind, height, width, dtype, device):
    def line(size):
        index = torch.arange(size, dtype=torch.float64, device=device)
        part = (index[:, None] - index).abs() / size
        return torch.exp(part**2 / (-2 * SIGMA**2)) if kind == "gaussian" else torch.exp(-part / SIGMA)

    y, x = line(height), line(width)
    inverse = 1 / (height * width + y.sum(1, keepdim=True) * x.sum(1))
    return y.to(dtype), x.to(dtype), inverse.to(dtype)


def apply_dense(v, dense):
    return (v.flatten(2) @ dense.t()).view_as(v)


def apply_separable(v, y, x, inverse):
    return (y @ v @ x + v.sum((2, 3), keepdim=True)) * inverse


def relative_error(got, expected):
    return ((got.double().cpu() - expected).norm() / expected.norm()).item()


def allowed_error(dtype, composed):
    return min(BOUNDS[dtype], 2 * max(composed, ROUNDING[dtype]))


def check_one(ops, kind, shape, dtype, memory_format):
    v = (torch.randn(shape) + 0.2).to(dtype).contiguous(memory_format=memory_format)
    expected = apply_dense(v.double(), dense_map(kind, *shape[2:], torch.float64, "cpu"))
    v, sigma = v.cuda(), torch.tensor(SIGMA, device="cuda")
    got = ops.expatt(v, kind, sigma)
    error = relative_error(got, expected)
    composed = relative_error(apply_dense(v, dense_map(kind, *shape[2:], dtype, "cuda")), expected)
    assert error <= allowed_error(dtype, composed), \
        f"{kind} {shape} {dtype}: off by {error:.2e}, expected at most {allowed_error(dtype, composed):.2e}"
    assert torch.equal(got, ops.expatt(v, kind, sigma)), f"{kind} {shape} {dtype}: changes from run to run"
    for b in range(shape[0]):
        assert torch.equal(ops.expatt(v[b:b + 1], kind, sigma), got[b:b + 1]), \
            f"{kind} {shape} {dtype}: sample {b} depends on its batch"
    print(f"  ok {kind} {tuple(shape)} {dtype} {memory_format} error {error:.1e}, composed {composed:.1e}")


def check_module(ops, kind, dtype):
    """Folded, and with a matrix on either side: against float64 on the CPU."""
    for channels, dv, out in ((40, 12, 9), (9, 20, None), (70, 6, 80)):
        weights = (torch.randn(dv, channels) / channels**0.5, torch.randn(dv),
                   None if out is None else torch.randn(out, dv) / dv**0.5, torch.randn(out or dv))
        x = (torch.randn(2, channels, 13, 18) + 0.2).to(dtype)
        wide = [None if t is None else t.to(dtype).double() for t in weights]
        expected = ops.expatt_module(x.double(), *wide, kind, SIGMA)
        got = ops.expatt_module(x.cuda(), *(None if t is None else t.to(dtype).cuda() for t in weights), kind, SIGMA)
        error = relative_error(got, expected)
        assert error <= BOUNDS[dtype], \
            f"module {kind} {channels}-{dv}-{out} {dtype}: off by {error:.2e}, expected at most {BOUNDS[dtype]:.0e}"


def check_padding(ops, kind, dtype):
    v = (torch.randn(2, 24, 29, 31) + 0.2).to(dtype).cuda()
    padded = torch.full((2, 24, 32, 40), float("nan"), dtype=dtype, device="cuda")
    padded[:, :, :29, :31] = v
    valid = torch.tensor([[29, 31], [29, 31]], device="cuda")
    sigma = torch.tensor(SIGMA, device="cuda")
    got = ops.expatt(padded, kind, sigma, valid)
    assert torch.equal(got[:, :, :29, :31], ops.expatt(v, kind, sigma)), f"padding shows in {kind} {dtype}"
    assert got[:, :, 29:].abs().sum() == 0 and got[:, :, :, 31:].abs().sum() == 0, \
        f"padding is not zero in {kind} {dtype}"


def captured(run):
    """The call as a CUDA graph; capturing fails if it synchronises or allocates outside the allocator."""
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def medians_us(candidates, rounds=200):
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


def time_one(ops, kind, shape, dtype, quick):
    v = torch.randn(shape, dtype=dtype, device="cuda")
    sigma = torch.tensor(SIGMA, device="cuda")
    dense = dense_map(kind, *shape[2:], dtype, "cuda")
    out = torch.empty_like(v)
    candidates = {
        "saccade": lambda: ops.expatt(v, kind, sigma),
        "saccade, graph": captured(lambda: ops.expatt(v, kind, sigma)),
        "eager, cached map, graph": captured(lambda: apply_dense(v, dense)),
        "copy, graph": captured(lambda: out.copy_(v)),
    }
    if kind in SEPARABLE:
        factors = separable_map(kind, *shape[2:], dtype, "cuda")
        candidates["eager, separable, graph"] = captured(lambda: apply_separable(v, *factors))
        if not quick:
            compiled = torch.compile(apply_separable)
            candidates["torch.compile, separable, graph"] = captured(lambda: compiled(v, *factors))
    medians = medians_us(candidates, 50 if quick else 200)
    ours = medians["saccade, graph"]
    print(f"{kind} {tuple(shape)} {dtype}: {2 * v.numel() * v.element_size() / ours / 1e3:.0f} GB/s of the bytes "
          f"it must move")
    for name, median in medians.items():
        print(f"  {name:32} {median:9.2f} us  {median / ours:6.2f}x")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("build_dir", type=pathlib.Path)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("no GPU: torch.cuda.is_available() is False; expected a machine with an NVIDIA GPU and driver")
    torch.ops.load_library(arguments.build_dir / "lib" / "libsaccade_kernels.so")
    torch.ops.load_library(arguments.build_dir / "lib" / "libsaccade_cuda.so")
    ops = torch.ops.saccade
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_grad_enabled(False)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    for kind in KINDS:
        for dtype in BOUNDS:
            for shape in ((1, 16, 14, 14), (3, 24, 28, 28), (2, 16, 56, 56), (2, 12, 1, 1), (2, 36, 7, 131)):
                for memory_format in (torch.contiguous_format, torch.channels_last):
                    check_one(ops, kind, shape, dtype, memory_format)
            check_module(ops, kind, dtype)
            check_padding(ops, kind, dtype)
    shapes = [(batch, channels, size, size) for batch in (1, 8) for channels, size in ((56, 14), (24, 28), (16, 56))]
    for kind in ("gaussian", "linear") if arguments.quick else KINDS[1:]:
        for dtype in (torch.float32,) if arguments.quick else (torch.float32, torch.bfloat16):
            for shape in shapes[-1:] if arguments.quick else shapes:
                time_one(ops, kind, shape, dtype, arguments.quick)


if __name__ == "__main__":
    main()

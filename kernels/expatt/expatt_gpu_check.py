"""Checks the CUDA side of explicitly modelled attention on a machine with a GPU, then times it.

Every result is compared with float64 on the CPU. Any failure, including a missing GPU, gives a non-zero exit status.
With --times, the operator is timed instead: medians of CUDA graphs; candidates take turns in one process.
"""

import pathlib
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import gpu_check  # noqa: E402

KINDS = ("constant", "linear", "cosine", "gaussian", "exponential_euclidean", "exponential_manhattan")
SEPARABLE = ("gaussian", "exponential_manhattan")
SIGMA = 0.75


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


def check_one(ops, kind, shape, dtype, memory_format):
    what = f"{kind} {shape} {dtype} {memory_format}"
    v = (torch.randn(shape) + 0.2).to(dtype).contiguous(memory_format=memory_format)
    expected = apply_dense(v.double(), dense_map(kind, *shape[2:], torch.float64, "cpu"))
    v, sigma = v.cuda(), torch.tensor(SIGMA, device="cuda")
    got = ops.expatt(v, kind, sigma)
    composed = apply_dense(v, dense_map(kind, *shape[2:], dtype, "cuda"))
    error = gpu_check.check_error(what, got, expected, composed)
    gpu_check.check_same(what, lambda part: ops.expatt(part, kind, sigma), got, v)
    print(f"  ok {what} error {error:.1e}")


def check_module(ops, kind, dtype):
    """Checks folded weights, and a matrix on either side of the map, against float64 on the CPU."""
    for channels, dv, out in ((40, 12, 9), (9, 20, None), (70, 6, 80)):
        weights = (torch.randn(dv, channels) / channels**0.5, torch.randn(dv),
                   None if out is None else torch.randn(out, dv) / dv**0.5, torch.randn(out or dv))
        x = (torch.randn(2, channels, 13, 18) + 0.2).to(dtype)
        wide = [None if t is None else t.to(dtype).double() for t in weights]
        expected = ops.expatt_module(x.double(), *wide, kind, SIGMA)
        got = ops.expatt_module(x.cuda(), *(None if t is None else t.to(dtype).cuda() for t in weights), kind, SIGMA)
        gpu_check.check_error(f"module {kind} {channels}-{dv}-{out} {dtype}", got, expected)


def check_stored(ops, kind, dtype):
    """Checks that a map which is stored at the second call gives the bits of the first, on other streams and in a graph, too,
    and that the graph keeps it while maps of other radii fill the memory."""
    channels, size = 24, 56
    x = (torch.randn(2, channels, size, size) + 0.2).to(dtype).cuda()
    weight = (torch.randn(16, channels) / channels**0.5).to(dtype).cuda()

    def module(sigma, part=x):
        return ops.expatt_module(part, weight, None, None, None, kind, sigma)

    radius = 0.61
    expected = module(radius)
    for _ in range(3):
        gpu_check.expect(torch.equal(module(radius), expected), f"{kind} {dtype}: a stored map changes the result")
    gpu_check.check_same(f"stored {kind} {dtype}", lambda part: module(radius, part), expected, x)
    if not gpu_check.can_capture():
        return
    streams = [torch.cuda.Stream() for _ in range(2)]
    for i in range(6):
        streams[i % 2].wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(streams[i % 2]):
            got = module(0.3)  # The first calls on both streams come while it is filled.
            torch.cuda.current_stream().synchronize()
            gpu_check.expect(torch.equal(got, module(0.3)), f"{kind} {dtype}: streams differ")
    replay, got = gpu_check.captured_result(lambda: module(radius))
    small = x[:1, :, :7, :7].contiguous()
    for _ in range(1100):
        module(0.9, small)
    for i in range(2 * 15):
        module(1.0 + i // 2)  # 20 MB each
    got.fill_(float("nan"))
    replay()
    torch.cuda.synchronize()
    gpu_check.expect(torch.equal(got, expected), f"{kind} {dtype}: a graph has lost its map")


def check_padding(ops, kind, dtype):
    v = (torch.randn(2, 24, 29, 31) + 0.2).to(dtype).cuda()
    wide, valid = gpu_check.padded(v)
    sigma = torch.tensor(SIGMA, device="cuda")
    gpu_check.check_padded(f"{kind} {dtype}", ops.expatt(wide, kind, sigma, valid), ops.expatt(v, kind, sigma))
    gpu_check.check_capture(f"{kind} {dtype}", lambda: ops.expatt(wide, kind, sigma, valid))


def time_one(ops, kind, shape, dtype):
    v = torch.randn(shape, dtype=dtype)
    sigma = torch.tensor(SIGMA, device="cuda")
    dense = dense_map(kind, *shape[2:], dtype, "cuda")
    candidates = {
        "saccade": lambda v: ops.expatt(v, kind, sigma),
        "eager, cached map": lambda v: apply_dense(v, dense),
        "copy": torch.clone,
    }
    if kind in SEPARABLE:
        factors = separable_map(kind, *shape[2:], dtype, "cuda")
        candidates["eager, separable"] = lambda v: apply_separable(v, *factors)
        compiled = gpu_check.compiled(apply_separable)
        candidates["torch.compile, separable"] = compiled and (lambda v: compiled(v, *factors))
    gpu_check.time_layouts(f"expatt {kind} {tuple(shape)} {dtype}", candidates, (v,), *floor(kind, shape, dtype))


def floor(kind, shape, dtype):
    """The bytes that are moved at least, and the operations: of a separable map those of its factors."""
    numbers = torch.Size(shape).numel()
    others = sum(shape[2:]) if kind in SEPARABLE else torch.Size(shape[2:]).numel()
    return 2 * numbers * dtype.itemsize, 2 * numbers * others


def check_all(ops, quick):
    shapes = ((3, 24, 7, 9), (1, 16, 14, 14)) if quick else (
        (1, 16, 14, 14), (3, 24, 28, 28), (2, 16, 56, 56), (2, 12, 1, 1), (2, 36, 7, 131), (1, 4, 72, 60))
    for kind in KINDS:
        for dtype in gpu_check.BOUNDS:
            for shape in shapes:
                for memory_format in (torch.contiguous_format, torch.channels_last):
                    check_one(ops, kind, shape, dtype, memory_format)
            check_module(ops, kind, dtype)
            check_padding(ops, kind, dtype)
    for dtype in () if quick else gpu_check.BOUNDS:
        for kind in ("linear", "exponential_euclidean"):
            check_stored(ops, kind, dtype)


def time_all(ops):
    # The others take the same kernels as one of these.
    for kind in ("linear", "gaussian"):
        for dtype in (torch.float32, torch.bfloat16):
            for batch in (1, 8, 32):
                for channels, size in ((56, 14), (24, 28), (16, 56)):
                    time_one(ops, kind, (batch, channels, size, size), dtype)


if __name__ == "__main__":
    gpu_check.run(__doc__, check_all, time_all)

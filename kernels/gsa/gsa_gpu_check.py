"""Checks the CUDA side of global self-attention on a machine with a GPU, then times it.

usage: gsa_gpu_check.py BUILD_DIR [--quick]

Every result is compared with float64 on the CPU before anything is timed; any failure, a missing GPU
included, exits non-zero. Times are medians, candidates taking turns, in one process. --quick checks a few
shapes and times nothing.
"""

import argparse
import pathlib
import statistics
import sys

import torch

HEADS = 8
BOUNDS = {torch.float32: 1e-6, torch.bfloat16: 1e-2, torch.float16: 2e-3}
ROUNDING = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-9, torch.float16: 2.0**-12}


def positions(embedding, size):
    index = torch.arange(size, device=embedding.device)
    return embedding[index[None, :] - index[:, None] + size - 1]


def attention(q, k, v, column, row, middle_scale, middle_shift, content):
    """The paper's formulas, channels first; q, k and v are [B, heads, C / heads, H, W]."""
    scores = torch.einsum("bnkxy,xik->bnxyi", q, positions(column, q.shape[3]))
    if content == "axial":
        scores = (scores + torch.einsum("bnkxy,bnkiy->bnxyi", q, k)).softmax(-1)
    y = torch.einsum("bnxyi,bnviy->bnvxy", scores, v).flatten(1, 2)
    y = (y * middle_scale[:, None, None] + middle_shift[:, None, None]).unflatten(1, (HEADS, -1))
    scores = torch.einsum("bnkxy,yik->bnxyi", q, positions(row, q.shape[4]))
    if content == "axial":
        scores = (scores + torch.einsum("bnkxy,bnkxi->bnxyi", q, k)).softmax(-1)
    y = torch.einsum("bnxyi,bnvxi->bnvxy", scores, y)
    if content == "global":
        context = torch.einsum("bnkp,bnvp->bnkv", k.flatten(3).softmax(-1), v.flatten(3))
        y = y + torch.einsum("bnkxy,bnkv->bnvxy", q, context)
    return y.flatten(1, 2)


def eager(x, query, key, value, column, row, middle_scale, middle_shift, scale, shift, content="global"):
    q, k, v = (torch.einsum("od,bdxy->boxy", w, x).unflatten(1, (HEADS, -1)) for w in (query, key, value))
    y = attention(q, k, v, column, row, middle_scale, middle_shift, content)
    return y * scale[:, None, None] + shift[:, None, None]


def saccade(ops, x, query, key, value, column, row, *vectors, content="global", valid=None):
    return ops.gsa_module(x, query, key, value, None, None, None, HEADS, column, row, *vectors, content, valid)


def inputs(shape, dtype, memory_format=torch.contiguous_format):
    _, channels, height, width = shape
    head = channels // HEADS
    x = (torch.randn(shape) + 0.2).to(dtype).contiguous(memory_format=memory_format)
    squares = [torch.randn(channels, channels) / channels**0.5 for _ in range(3)]
    embeddings = [torch.randn(2 * n - 1, head) / (n * head) ** 0.5 for n in (height, width)]
    vectors = [torch.randn(channels) for _ in range(4)]
    return x, tuple(t.to(dtype) for t in (*squares, *embeddings, *vectors))


def relative_error(got, expected):
    return ((got.double().cpu() - expected).norm() / expected.norm()).item()


def check_module(ops, shape, dtype, memory_format, content):
    x, weights = inputs(shape, dtype, memory_format)
    expected = eager(x.double(), *(t.double() for t in weights), content=content)
    x, weights = x.cuda(), tuple(t.cuda() for t in weights)
    got = saccade(ops, x, *weights, content=content)
    error = relative_error(got, expected)
    composed = relative_error(eager(x, *weights, content=content), expected)
    allowed = min(BOUNDS[dtype], 2 * max(composed, ROUNDING[dtype]))
    name = f"{tuple(shape)} {dtype} {content}"
    assert error <= allowed, f"{name}: off by {error:.2e}, expected at most {allowed:.2e}"
    assert torch.equal(got, saccade(ops, x, *weights, content=content)), f"{name}: changes from run to run"
    for b in range(shape[0]):
        alone = saccade(ops, x[b:b + 1], *weights, content=content)
        assert torch.equal(alone, got[b:b + 1]), f"{name}: sample {b} depends on its batch"
    print(f"  ok {name} {memory_format} error {error:.1e}, composed {composed:.1e}")


def check_operator(ops, shape, dtype, content):
    _, weights = inputs(shape, dtype)
    q, k, v = ((torch.randn(shape) + 0.2).to(dtype) for _ in range(3))
    arguments = (*weights[3:5], *weights[5:7], content)
    expected = ops.gsa(*(t.double() for t in (q, k, v)), HEADS, *(t.double() for t in arguments[:4]), content)
    got = ops.gsa(q.cuda(), k.cuda(), v.cuda(), HEADS, *(t.cuda() for t in arguments[:4]), content)
    error = relative_error(got, expected)
    assert error <= BOUNDS[dtype], f"gsa {shape} {dtype} {content}: off by {error:.2e}"
    alone = ops.gsa(q.cuda(), k.cuda(), v.cuda(), HEADS)
    expected = ops.gsa(q.double(), k.double(), v.double(), HEADS)
    error = relative_error(alone, expected)
    assert error <= BOUNDS[dtype], f"gsa {shape} {dtype}, content alone: off by {error:.2e}"


def check_padding(ops, dtype):
    x, weights = inputs((2, 64, 29, 31), dtype)
    x, weights = x.cuda(), [t.cuda() for t in weights]
    padded = torch.full((2, 64, 32, 40), float("nan"), dtype=dtype, device="cuda")
    padded[:, :, :29, :31] = x
    longer = list(weights)
    for i, (size, full) in enumerate(((29, 32), (31, 40))):
        longer[3 + i] = torch.randn(2 * full - 1, 8, dtype=torch.float32).to(dtype).cuda()
        longer[3 + i][full - size:full + size - 1] = weights[3 + i]
    valid = torch.tensor([[29, 31], [29, 31]], device="cuda")
    got = saccade(ops, padded, *longer, valid=valid)
    assert torch.equal(got[:, :, :29, :31], saccade(ops, x, *weights)), f"padding shows in {dtype}"
    assert got[:, :, 29:].abs().sum() == 0 and got[:, :, :, 31:].abs().sum() == 0, f"padding is not zero in {dtype}"


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


def time_one(ops, shape, dtype):
    x, weights = inputs(shape, dtype)
    x, weights = x.cuda(), tuple(t.cuda() for t in weights)
    wide = tuple(t.float() for t in weights)
    compiled = torch.compile(eager)
    out = torch.empty_like(x)
    medians = medians_us({
        "saccade": lambda: saccade(ops, x, *wide),
        "saccade, graph": captured(lambda: saccade(ops, x, *wide)),
        "eager, graph": captured(lambda: eager(x, *weights)),
        "torch.compile, graph": captured(lambda: compiled(x, *weights)),
        "copy, graph": captured(lambda: out.copy_(x)),
    })
    ours = medians["saccade, graph"]
    print(f"{tuple(shape)} {dtype}:")
    for name, median in medians.items():
        print(f"  {name:24} {median:9.2f} us  {median / ours:6.2f}x")


def check(ops, quick):
    few = ((3, 64, 14, 14), (1, 128, 28, 17))
    many = (*few, (2, 64, 56, 56), (1, 256, 14, 14), (2, 512, 7, 7), (2, 16, 1, 1), (1, 24, 3, 130))
    for dtype in BOUNDS:
        for shape in few if quick else many:
            for content in ("global", "axial", "none"):
                for memory_format in (torch.contiguous_format, torch.channels_last):
                    check_module(ops, shape, dtype, memory_format, content)
                check_operator(ops, shape, dtype, content)
        check_padding(ops, dtype)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build_dir", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("no GPU: torch.cuda.is_available() is False; expected a machine with an NVIDIA GPU and driver")
    lib = arguments.build_dir / "lib"
    torch.ops.load_library(lib / "libsaccade_kernels.so")
    torch.ops.load_library(lib / "libsaccade_cuda.so")
    ops = torch.ops.saccade
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_grad_enabled(False)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    check(ops, arguments.quick)
    if arguments.quick:
        return
    for dtype in (torch.float32, torch.bfloat16):
        for batch in (1, 8):
            for channels, size in ((64, 56), (128, 28), (256, 14), (512, 7)):
                time_one(ops, (batch, channels, size, size), dtype)


if __name__ == "__main__":
    main()

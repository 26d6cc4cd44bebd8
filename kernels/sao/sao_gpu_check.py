"""Checks the CUDA side of siamese attention on a machine with a GPU, then times it.

Every result is compared with float64 on the CPU. Any failure, including a missing GPU, gives a non-zero exit status.
With --times, the operator is timed instead: medians of CUDA graphs; candidates take turns in one process.
"""

import pathlib
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import gpu_check  # noqa: E402

HEADS = 4


def eager(x, value_weight, w, scale, shift):
    flat = x.flatten(2)
    q = flat.unflatten(1, (HEADS, -1))
    v = (value_weight @ flat).unflatten(1, (HEADS, -1))
    scores = w.view(HEADS, 1, -1) @ q
    sums = v.sum(-1, keepdim=True) * scores + v @ scores.transpose(-2, -1)
    return (sums.flatten(1, 2) * scale[:, None] + shift[:, None] + flat).view_as(x)


def folded(x, value_weight, w, scale, shift):
    """The same, with the value transform after the sums instead of at every position."""
    flat = x.flatten(2)
    scores = w.view(HEADS, 1, -1) @ flat.unflatten(1, (HEADS, -1))
    by_head = value_weight.view(HEADS, -1, x.shape[1])
    total = by_head @ flat.sum(-1)[:, None, :, None]
    weighted = by_head @ (flat[:, None] @ scores.transpose(-2, -1))
    return ((total * scores + weighted).flatten(1, 2) * scale[:, None] + shift[:, None] + flat).view_as(x)


def inputs(shape, dtype, memory_format=torch.contiguous_format):
    channels, positions = shape[1], torch.Size(shape[2:]).numel()
    x = (torch.randn(shape) + 0.2).to(dtype).contiguous(memory_format=memory_format)
    weights = (torch.randn(channels, channels) / channels**0.5, torch.randn(channels),
               torch.randn(channels) / positions, torch.randn(channels))
    return x, tuple(t.to(dtype) for t in weights)


def check_one(ops, shape, dtype, memory_format):
    x, weights = inputs(shape, dtype, memory_format)
    expected = eager(x.double(), *(t.double() for t in weights))
    x, weights = x.cuda(), tuple(t.cuda() for t in weights)
    got = ops.sao_module(x, *weights, HEADS)
    error = gpu_check.check_error(f"{shape} {dtype}", got, expected, eager(x, *weights))
    gpu_check.expect(torch.equal(got, ops.sao_module(x, *weights, HEADS)), f"{shape} {dtype}: the result changes from run to run")
    for b in range(shape[0]):
        alone = ops.sao_module(x[b:b + 1], *weights, HEADS)
        gpu_check.expect(torch.equal(alone, got[b:b + 1]), f"{shape} {dtype}: sample {b} depends on its batch")
    q, k, v = (torch.randn_like(x) for _ in range(3))
    expected = ops.sao(*(t.double().cpu() for t in (q, k, v, weights[1])), HEADS)
    gpu_check.check_error(f"sao {shape} {dtype}", ops.sao(q, k, v, weights[1], HEADS), expected)
    print(f"  ok {tuple(shape)} {dtype} {memory_format} error {error:.1e}")


def check_padding(ops, dtype):
    x, weights = inputs((2, 64, 29, 31), dtype)
    x, weights = x.cuda(), tuple(t.cuda() for t in weights)
    padded = torch.full((2, 64, 32, 40), float("nan"), dtype=dtype, device="cuda")
    padded[:, :, :29, :31] = x
    valid = torch.tensor([[29, 31], [29, 31]], device="cuda")
    got = ops.sao_module(padded, *weights, HEADS, True, True, valid)
    gpu_check.expect(torch.equal(got[:, :, :29, :31], ops.sao_module(x, *weights, HEADS)), f"padding changes the result: {dtype}")
    gpu_check.expect(got[:, :, 29:].abs().sum() == 0 and got[:, :, :, 31:].abs().sum() == 0, f"padding is not zero in {dtype}")


def time_one(ops, shape, dtype):
    x, weights = inputs(shape, dtype)
    weights = tuple(t.cuda() for t in weights)
    wide = tuple(t.float() for t in weights)
    compiled = gpu_check.compiled(eager)
    candidates = {
        "saccade": lambda x: ops.sao_module(x, *wide, HEADS),
        "eager": lambda x: eager(x, *weights),
        "folded": lambda x: folded(x, *weights),
        "torch.compile": compiled and (lambda x: compiled(x, *weights)),
        "copy": torch.clone,
    }
    gpu_check.time_layouts(f"sao {tuple(shape)} {dtype}", candidates, (x,), *floor(shape, dtype))


def floor(shape, dtype):
    """The bytes that are moved at least, x read twice, and the operations."""
    return 3 * torch.Size(shape).numel() * dtype.itemsize, 4 * torch.Size(shape).numel()


def check_all(ops, quick):
    shapes = ((2, 12, 5, 7), (1, 64, 14, 14)) if quick else (
        (1, 64, 14, 14), (3, 128, 28, 28), (2, 256, 56, 56), (2, 12, 1, 1), (2, 36, 7, 131), (1, 8, 300, 301))
    for dtype in gpu_check.BOUNDS:
        for shape in shapes:
            for memory_format in (torch.contiguous_format, torch.channels_last):
                check_one(ops, shape, dtype, memory_format)
        check_padding(ops, dtype)


def time_all(ops):
    for dtype in (torch.float32, torch.bfloat16):
        for batch in (1, 8, 32):
            for channels, size in ((64, 14), (128, 28), (256, 56)):
                time_one(ops, (batch, channels, size, size), dtype)


if __name__ == "__main__":
    gpu_check.run(__doc__, check_all, time_all)

"""Checks the CUDA side of regular attention on a machine with a GPU, then times it.

Every result is compared with float64 on the CPU. Any failure, including a missing GPU, gives a non-zero exit status.
With --times, the operator is timed instead: medians of CUDA graphs; candidates take turns in one process.
"""

import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import gpu_check  # noqa: E402

HEADS = 2
KINDS = ("softmax", "pool", "1n")


def pooled(x):
    return F.max_pool2d(x, 2, ceil_mode=True)


def attend(q, k, v, kind, heads=HEADS):
    if kind == "pool":
        k, v = pooled(k), pooled(v)
    q, k, v = (t.flatten(2).unflatten(1, (heads, -1)) for t in (q, k, v))
    if kind == "1n":
        return (v @ k.transpose(-2, -1) / k.shape[-1] @ q).flatten(1, 2)
    return (v @ (q.transpose(-2, -1) @ k).softmax(-1).transpose(-2, -1)).flatten(1, 2)


def sdpa(q, k, v, heads=HEADS):
    q, k, v = (t.flatten(2).unflatten(1, (heads, -1)).transpose(-2, -1) for t in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, scale=1.0).transpose(-2, -1).flatten(1, 2)


def run(ops, q, k, v, kind, heads=HEADS, valid=None):
    if kind == "1n":
        return ops.attention_1n(q, k, v, heads, valid)
    return ops.attention(q, k, v, heads, 1.0, kind == "pool", valid)


def maps(shape, dtype, memory_format=torch.contiguous_format):
    # Scaled so that logits have a similar magnitude for any number of channels.
    scale = (shape[1] / HEADS)**-0.25
    q, k = (((torch.randn(shape) + 0.2) * scale).to(dtype).contiguous(memory_format=memory_format) for _ in range(2))
    return q, k, (torch.randn(shape) + 0.2).to(dtype).contiguous(memory_format=memory_format)


def check_one(ops, shape, dtype, memory_format, kind):
    what = f"{kind} {shape} {dtype} {memory_format}"
    q, k, v = maps(shape, dtype, memory_format)
    expected = attend(q.double(), k.double(), v.double(), kind).view(shape)
    q, k, v = q.cuda(), k.cuda(), v.cuda()
    got = run(ops, q, k, v, kind)
    error = gpu_check.check_error(what, got, expected, attend(q, k, v, kind).view(shape))
    gpu_check.expect(torch.equal(got, run(ops, q, k, v, kind)), f"{what}: the result changes from run to run")
    for b in range(shape[0]):
        alone = run(ops, q[b:b + 1], k[b:b + 1], v[b:b + 1], kind)
        gpu_check.expect(torch.equal(alone, got[b:b + 1]), f"{what}: sample {b} depends on its batch")
    print(f"  ok {what} error {error:.1e}")


def check_module(ops, dtype, kind):
    channels, keys, values = 48, 16, 32
    x = torch.randn(2, channels, 13, 17).to(dtype)
    weights = [torch.randn(rows, columns) / columns**0.5
               for rows, columns in ((keys, channels), (keys, channels), (values, channels), (channels, values))]
    w = [t.to(dtype).double() for t in weights]
    # The module pools its input, before the transforms.
    read, between = (pooled(x.double()), "softmax") if kind == "pool" else (x.double(), kind)
    flat = x.double().flatten(2)
    q = (w[0] @ flat).view(2, -1, 13, 17)
    k, v = ((w[i] @ read.flatten(2)).view(2, -1, *read.shape[2:]) for i in (1, 2))
    expected = (w[3] @ attend(q, k, v, between) + flat).view(x.shape)
    cuda = [t.to(dtype).cuda() for t in weights]

    def module():
        return ops.attention_module(x.cuda(), kind, *cuda[:3], None, None, None, cuda[3], None, None, HEADS)

    gpu_check.check_error(f"attention_module {kind} {dtype}", module(), expected)


def check_padding(ops, dtype, kind):
    q, k, v = (t.cuda() for t in maps((2, 32, 29, 31), dtype))
    padded = [torch.full((2, 32, 32, 40), float("nan"), dtype=dtype, device="cuda") for _ in range(3)]
    for wide, t in zip(padded, (q, k, v)):
        wide[:, :, :29, :31] = t
    valid = torch.tensor([[29, 31], [29, 31]], device="cuda")
    got = run(ops, *padded, kind, valid=valid)
    gpu_check.expect(torch.equal(got[:, :, :29, :31], run(ops, q, k, v, kind)), f"padding changes the result: {kind} {dtype}")
    gpu_check.expect(got[:, :, 29:].abs().sum() == 0 and got[:, :, :, 31:].abs().sum() == 0, f"padding is not zero in {dtype}")
    gpu_check.check_capture(f"{kind} {dtype}", lambda: run(ops, *padded, kind, valid=valid))


def with_flash(enabled, check, *arguments):
    """Runs a check with LibTorch's FlashAttention for 16-bit maps, or with this folder's own kernels for all."""
    torch.backends.cuda.enable_flash_sdp(enabled)
    check(*arguments)
    torch.backends.cuda.enable_flash_sdp(True)


def time_one(ops, shape, dtype, kind):
    compiled = gpu_check.compiled(attend)
    candidates = {
        "saccade": lambda q, k, v: run(ops, q, k, v, kind, 1),
        "eager": lambda q, k, v: attend(q, k, v, kind, 1),
        "torch.compile": compiled and (lambda q, k, v: compiled(q, k, v, kind, 1)),
    }
    if kind == "softmax":
        candidates["SDPA"] = lambda q, k, v: sdpa(q, k, v, 1)
    gpu_check.time_layouts(f"attention {kind} {tuple(shape)} {dtype}", candidates, maps(shape, dtype), *floor(shape, kind, dtype))


def floor(shape, kind, dtype):
    """The bytes that are moved at least, and the operations: 1n needs no product of positions with positions."""
    numbers, positions = torch.Size(shape).numel(), torch.Size(shape[2:]).numel()
    others = min(positions, shape[1]) if kind == "1n" else positions / 4 if kind == "pool" else positions
    return 4 * numbers * dtype.itemsize, 4 * numbers * others


def check_all(ops, quick):
    shapes = ((2, 8, 7, 9), (1, 34, 5, 13)) if quick else (
        (2, 8, 7, 9), (1, 64, 14, 14), (2, 32, 28, 28), (1, 24, 56, 56), (2, 12, 1, 1), (1, 36, 7, 131),
        (1, 640, 9, 11))
    for dtype in gpu_check.BOUNDS:
        for kind in KINDS:
            for flash in (True, False) if dtype != torch.float32 and kind != "1n" else (True,):
                for shape in shapes:
                    for memory_format in (torch.contiguous_format, torch.channels_last):
                        with_flash(flash, check_one, ops, shape, dtype, memory_format, kind)
                with_flash(flash, check_module, ops, dtype, kind)
                with_flash(flash, check_padding, ops, dtype, kind)


def time_all(ops):
    for dtype in (torch.float32, torch.bfloat16):
        for kind in KINDS:
            for batch in (8, 1, 32):  # The first case is the one whose counters are read.
                for channels, size in ((8, 56), (32, 28), (256, 56)):
                    time_one(ops, (batch, channels, size, size), dtype, kind)


if __name__ == "__main__":
    gpu_check.run(__doc__, check_all, time_all)

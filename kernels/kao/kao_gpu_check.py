"""Checks the CUDA side of Kronecker attention on a machine with a GPU, then times it.

Every result is compared with float64 on the CPU. Any failure, including a missing GPU, gives a non-zero exit status.
With --times, the operator is timed instead: medians of CUDA graphs; candidates take turns in one process.
"""

import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import gpu_check  # noqa: E402

NAMES = ("query_weight", "key_weight", "value_weight", "query_bias", "value_bias", "coefficient_scale", "scale",
         "shift")
# (kind, heads, channels of keys as a fraction of the input's, the given weights).
MODES = (("kv", 1, 1, ("value_weight",)), ("kv", 2, 1, NAMES), ("kv", 2, 0.25, NAMES[:3]), ("kv", 4, 1, NAMES[3:]),
         ("qkv", 1, 1, ("value_weight",)), ("qkv", 4, 0.5, NAMES))


def averages(x):
    return torch.cat([x.mean(2), x.mean(3)], 2)


def attend(kind, q, k, v, heads, scale):
    height, width = q.shape[2:]
    queries = q.flatten(2) if kind == "kv" else averages(q)
    queries, keys, values = (t.unflatten(1, (heads, -1)) for t in (queries, averages(k), averages(v)))
    coefficients = keys.transpose(-2, -1) @ queries
    if scale is not None:
        coefficients = coefficients * scale.view(heads, 1, 1)
    y = (values @ coefficients.softmax(-2)).flatten(1, 2)
    if kind == "kv":
        return y.unflatten(2, (height, width))
    return y[:, :, width:, None] + y[:, :, None, :width]


def eager(x, w, kind, heads=1):
    """The module written directly in PyTorch; w has the operator's argument names as keys."""
    def transformed(name):
        y = x.flatten(2)
        if f"{name}_weight" in w:
            y = w[f"{name}_weight"] @ y
        if f"{name}_bias" in w:
            y = y + w[f"{name}_bias"][:, None]
        return y.unflatten(2, x.shape[2:])

    y = attend(kind, transformed("query"), transformed("key"), transformed("value"), heads, w.get("coefficient_scale"))
    if "scale" in w:
        y = y * w["scale"][:, None, None]
    if "shift" in w:
        y = y + w["shift"][:, None, None]
    return y + x


def weights(channels, mode, dtype):
    _, heads, share, names = mode
    keys = heads * max(1, int(channels * share) // heads)
    shapes = {"query_weight": (keys, channels), "key_weight": (keys, channels), "value_weight": (channels, channels),
              "query_bias": (keys,), "coefficient_scale": (heads,)}
    w = {}
    for name in names:
        shape = shapes.get(name, (channels,))
        w[name] = (torch.randn(shape) / (channels**0.5 if len(shape) == 2 else 1)).to(dtype)
    return w


def module(ops, x, w, mode, valid=None):
    return ops.kao_module(x, mode[0], *(w.get(name) for name in NAMES), mode[1], True, valid)


def on_gpu(w):
    return {name: t.cuda() for name, t in w.items()}


def check_one(ops, shape, dtype, memory_format, mode):
    kind, heads = mode[:2]
    what = f"{shape} {dtype} {memory_format} {mode}"
    x = (torch.randn(shape) + 0.2).to(dtype).contiguous(memory_format=memory_format)
    w = weights(shape[1], mode, dtype)
    expected = eager(x.double(), {name: t.double() for name, t in w.items()}, kind, heads)
    x, w = x.cuda(), on_gpu(w)
    got = module(ops, x, w, mode)
    error = gpu_check.check_error(what, got, expected, eager(x, w, kind, heads))
    gpu_check.check_same(what, lambda part: module(ops, part, w, mode), got, x)
    q, k, v = torch.randn_like(x), torch.randn_like(x), torch.randn_like(x)
    plain = (ops.kao_kv if kind == "kv" else ops.kao_qkv)(q, k, v, heads)
    expected = attend(kind, q.double().cpu(), k.double().cpu(), v.double().cpu(), heads, None)
    gpu_check.check_error(f"bare {what}", plain, expected)
    print(f"  ok {what} error {error:.1e}")


def check_padding(ops, dtype, mode):
    x = (torch.randn(2, 64, 29, 31) + 0.2).to(dtype).cuda()
    w = on_gpu(weights(64, mode, dtype))
    wide, valid = gpu_check.padded(x)
    gpu_check.check_padded(f"{dtype} {mode}", module(ops, wide, w, mode, valid), module(ops, x, w, mode))
    gpu_check.check_capture(f"{dtype} {mode}", lambda: module(ops, wide, w, mode, valid))


def sdpa(x, w, kind):
    """The module with PyTorch's own fused attention."""
    keys = averages(x).transpose(1, 2)[:, None]
    queries = x.flatten(2).transpose(1, 2)[:, None] if kind == "kv" else keys
    y = F.scaled_dot_product_attention(queries, keys, keys @ w["value_weight"].t(), scale=1.0)[:, 0].transpose(1, 2)
    width = x.shape[3]
    y = y.unflatten(2, x.shape[2:]) if kind == "kv" else y[:, :, width:, None] + y[:, :, None, :width]
    return y + x


def time_one(ops, shape, dtype, mode):
    kind = mode[0]
    x = (torch.randn(shape) + 0.2).to(dtype)
    w = on_gpu(weights(shape[1], mode, dtype))
    wide = {name: t.float() for name, t in w.items()}
    compiled = gpu_check.compiled(eager)
    candidates = {
        "saccade": lambda x: module(ops, x, wide, mode),
        "eager": lambda x: eager(x, w, kind),
        "torch.compile": compiled and (lambda x: compiled(x, w, kind)),
        "SDPA": lambda x: sdpa(x, w, kind),
        "copy": torch.clone,
    }
    gpu_check.time_layouts(f"kao {kind} {tuple(shape)} {dtype}", candidates, (x,), *floor(shape, kind, dtype))


def floor(shape, kind, dtype):
    """The bytes that are moved at least, x read twice, and the operations: of kv, two products with H + W columns."""
    numbers = torch.Size(shape).numel()
    return 3 * numbers * dtype.itemsize, 4 * numbers * sum(shape[2:]) if kind == "kv" else 0


def check_all(ops, quick):
    shapes = ((2, 32, 7, 9), (1, 264, 5, 13)) if quick else (
        (2, 32, 7, 9), (3, 64, 28, 28), (2, 256, 56, 56), (2, 12, 1, 1), (1, 36, 7, 131), (1, 512, 41, 41),
        (1, 8, 300, 301))
    for dtype in gpu_check.BOUNDS:
        for shape in shapes:
            for memory_format in (torch.contiguous_format, torch.channels_last):
                for mode in MODES:
                    check_one(ops, shape, dtype, memory_format, mode)
        for mode in MODES:
            check_padding(ops, dtype, mode)


def time_all(ops):
    for dtype in (torch.float32, torch.bfloat16):
        for mode in (MODES[0], MODES[4]):
            for batch in (8, 1, 32):  # The first case is the one whose counters are read.
                for channels, size in ((8, 56), (64, 14), (128, 28), (256, 56)):
                    time_one(ops, (batch, channels, size, size), dtype, mode)


if __name__ == "__main__":
    gpu_check.run(__doc__, check_all, time_all)

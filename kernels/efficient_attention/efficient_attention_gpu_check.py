"""Checks the CUDA side of efficient attention on a machine with a GPU, then times it.

Every result is compared with float64 on the CPU. Any failure, including a missing GPU, gives a non-zero exit status.
With --times, the operator is timed instead: medians of CUDA graphs; candidates take turns in one process.
"""

import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import gpu_check  # noqa: E402

MODES = (("softmax", 1, True), ("softmax", 4, True), ("softmax", 4, False), ("scaling", 2, True))


def normalized(q, k, normalization):
    if normalization == "softmax":
        return q.softmax(-2), k.softmax(-1)
    scale = q.shape[-1]**-0.5
    return q * scale, k * scale


def attend(q, k, v, heads, normalization):
    q, k, v = (t.flatten(2).unflatten(1, (heads, -1)) for t in (q, k, v))
    q, k = normalized(q, k, normalization)
    return ((v @ k.transpose(-2, -1)) @ q).flatten(1, 2)


def eager(x, w, heads=1, normalization="softmax"):
    """The module written directly in PyTorch; w has the operator's argument names as keys."""
    flat = x.flatten(2)
    q, k, v = (w[f"{name}_weight"] @ flat + w[f"{name}_bias"][:, None] for name in ("query", "key", "value"))
    y = attend(q, k, v, heads, normalization)
    if "out_weight" in w:
        y = w["out_weight"] @ y + w["out_bias"][:, None]
    return (y + flat).view_as(x)


def folded(x, w):
    """The folded form for one head and softmax, as PyTorch's products: values are never made, and the key bias cancels."""
    flat = x.flatten(2)
    gathered = flat @ (w["key_weight"] @ flat).softmax(-1).transpose(-2, -1)
    weights_of_queries = w["out_weight"] @ (w["value_weight"] @ gathered + w["value_bias"][:, None])
    queries = (w["query_weight"] @ flat + w["query_bias"][:, None]).softmax(-2)
    return (weights_of_queries @ queries + w["out_bias"][:, None] + flat).view_as(x)


def two_sdpa(x, w):
    """The folded form for one head and softmax, as two calls of PyTorch's own attention."""
    positions = x.flatten(2).transpose(1, 2)[:, None]
    batch = x.shape[0]
    gathered = F.scaled_dot_product_attention(w["key_weight"].expand(batch, 1, -1, -1), positions, positions, scale=1.0)
    values = (gathered @ w["value_weight"].t() + w["value_bias"]) @ w["out_weight"].t()
    y = F.scaled_dot_product_attention(positions, w["query_weight"].expand(batch, 1, -1, -1), values,
                                       attn_mask=w["query_bias"].expand(batch, 1, positions.shape[2], -1), scale=1.0)
    return (y + w["out_bias"] + positions).transpose(2, 3).reshape(x.shape)


def weights(channels, keys, values, projected, dtype):
    w = {}
    for name, rows, columns in (("query", keys, channels), ("key", keys, channels), ("value", values, channels),
                                ("out", channels, values)):
        w[f"{name}_weight"] = torch.randn(rows, columns) / columns**0.5
        w[f"{name}_bias"] = torch.randn(rows)
    if not projected:
        del w["out_weight"], w["out_bias"]
    return {name: t.to(dtype) for name, t in w.items()}


def module(ops, x, w, heads=1, normalization="softmax", valid=None):
    names = ("key_weight", "query_weight", "value_weight", "key_bias", "query_bias", "value_bias", "out_weight",
             "out_bias")
    return ops.efficient_attention_module(x, *(w.get(name) for name in names), heads, normalization, True, valid)


def check_one(ops, shape, keys, dtype, memory_format, mode):
    normalization, heads, projected = mode
    what = f"{shape} {keys} keys {dtype} {memory_format} {mode}"
    x = (torch.randn(shape) + 0.2).to(dtype).contiguous(memory_format=memory_format)
    w = weights(shape[1], keys, keys if projected else shape[1], projected, dtype)
    expected = eager(x.double(), {name: t.double() for name, t in w.items()}, heads, normalization)
    x, w = x.cuda(), {name: t.cuda() for name, t in w.items()}
    got = module(ops, x, w, heads, normalization)
    error = gpu_check.check_error(what, got, expected, eager(x, w, heads, normalization))
    gpu_check.expect(torch.equal(got, module(ops, x, w, heads, normalization)), f"{what}: the result changes from run to run")
    for b in range(shape[0]):
        alone = module(ops, x[b:b + 1], w, heads, normalization)
        gpu_check.expect(torch.equal(alone, got[b:b + 1]), f"{what}: sample {b} depends on its batch")
    q, k, v = torch.randn_like(x), torch.randn_like(x), torch.randn_like(x)
    plain = ops.efficient_attention(q, k, v, heads, normalization)
    expected = attend(q.double().cpu(), k.double().cpu(), v.double().cpu(), heads, normalization).view(shape)
    gpu_check.check_error(f"bare {what}", plain, expected)
    print(f"  ok {what} error {error:.1e}")


def check_padding(ops, channels, dtype, mode):
    normalization, heads, projected = mode
    x = (torch.randn(2, channels, 29, 31) + 0.2).to(dtype).cuda()
    w = {name: t.cuda() for name, t in weights(channels, 32, 32 if projected else channels, projected, dtype).items()}
    padded = torch.full((2, channels, 32, 40), float("nan"), dtype=dtype, device="cuda")
    padded[:, :, :29, :31] = x
    valid = torch.tensor([[29, 31], [29, 31]], device="cuda")
    got = module(ops, padded, w, heads, normalization, valid)
    gpu_check.expect(torch.equal(got[:, :, :29, :31], module(ops, x, w, heads, normalization)), f"padding changes the result: {channels} {dtype} {mode}")
    gpu_check.expect(got[:, :, 29:].abs().sum() == 0 and got[:, :, :, 31:].abs().sum() == 0, f"padding is not zero in {dtype}")
    gpu_check.check_capture(f"{channels} {dtype} {mode}", lambda: module(ops, padded, w, heads, normalization, valid))


def time_one(ops, name, shape, keys, dtype):
    x = (torch.randn(shape) + 0.2).to(dtype)
    w = {name: t.cuda() for name, t in weights(shape[1], keys, keys, True, dtype).items()}
    wide = {name: t.float() for name, t in w.items()}
    compiled = gpu_check.compiled(eager)
    candidates = {
        "saccade": lambda x: module(ops, x, wide),
        "eager": lambda x: eager(x, w),
        "folded": lambda x: folded(x, w),
        "torch.compile": compiled and (lambda x: compiled(x, w)),
        "copy": torch.clone,
    }
    if shape[1] <= 256:
        candidates["2 x SDPA"] = lambda x: two_sdpa(x, w)
    gpu_check.time_layouts(f"efficient attention {name} {tuple(shape)} {keys} keys {dtype}", candidates, (x,),
                           *floor(shape, keys, dtype))


def floor(shape, keys, dtype):
    """The bytes that are moved at least, x read twice, and the operations of the folded form."""
    return 3 * torch.Size(shape).numel() * dtype.itemsize, 8 * torch.Size(shape).numel() * keys


def check_all(ops, quick):
    shapes = (((2, 32, 7, 9), 16), ((1, 264, 5, 13), 64)) if quick else (
        ((2, 32, 7, 9), 16), ((3, 64, 28, 28), 64), ((1, 256, 56, 80), 64), ((2, 12, 1, 1), 4), ((1, 36, 7, 131), 20),
        ((2, 320, 28, 28), 64), ((3, 512, 28, 40), 64), ((1, 1024, 28, 40), 64), ((1, 2048, 7, 10), 64), ((1, 64, 300, 301), 64))
    for dtype in gpu_check.BOUNDS:
        for shape, keys in shapes:
            for memory_format in (torch.contiguous_format, torch.channels_last):
                for mode in MODES:
                    check_one(ops, shape, keys, dtype, memory_format, mode)
        for mode in MODES:
            for channels in (64, 520):
                check_padding(ops, channels, dtype, mode)
        if not quick:
            check_groups(ops, dtype)


def check_groups(ops, dtype):
    """Checks a batch of wide maps that is too large for one workspace, so that its samples are computed in groups."""
    x = (torch.randn(9, 512, 48, 64) + 0.2).to(dtype).cuda()
    w = {name: t.cuda() for name, t in weights(512, 64, 64, True, dtype).items()}
    gpu_check.check_same(f"groups of samples in {dtype}", lambda part: module(ops, part, w), module(ops, x, w), x)


def time_all(ops):
    for dtype in (torch.float32, torch.bfloat16):
        for name, shape in (("fpn1", (1, 256, 224, 320)), ("fpn2", (1, 256, 112, 160)), ("fpn3", (1, 256, 56, 80)),
                            ("fpn5", (1, 256, 14, 20)), ("res2", (1, 512, 112, 160)), ("res3", (1, 1024, 56, 80)),
                            ("res4", (1, 2048, 28, 40))):
            for batch in (1, 8, 32):
                time_one(ops, name, (batch, *shape[1:]), 64, dtype)
    # Their samples are computed in groups.
    for batch in (1, 8, 32):
        time_one(ops, "large", (batch, 2048, 256, 256), 64, torch.bfloat16)


if __name__ == "__main__":
    gpu_check.run(__doc__, check_all, time_all)

"""Checks the CUDA side of global self-attention on a machine with a GPU, then times it.

Every result is compared with float64 on the CPU. Any failure, including a missing GPU, gives a non-zero exit status.
With --times, the operator is timed instead: medians of CUDA graphs; candidates take turns in one process.
"""

import pathlib
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import gpu_check  # noqa: E402

HEADS = 8


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


def folded(x, joined, column, row, middle_scale, middle_shift, scale, shift):
    """The same, with one product for queries, keys and values."""
    q, k, v = (joined @ x.flatten(2)).view(len(x), 3, HEADS, -1, *x.shape[2:]).unbind(1)
    y = attention(q, k, v, column, row, middle_scale, middle_shift, "global")
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


def check_module(ops, shape, dtype, memory_format, content):
    what = f"{shape} {dtype} {memory_format} {content}"
    x, weights = inputs(shape, dtype, memory_format)
    expected = eager(x.double(), *(t.double() for t in weights), content=content)
    x, weights = x.cuda(), tuple(t.cuda() for t in weights)
    got = saccade(ops, x, *weights, content=content)
    error = gpu_check.check_error(what, got, expected, eager(x, *weights, content=content))
    gpu_check.check_same(what, lambda part: saccade(ops, part, *weights, content=content), got, x)
    print(f"  ok {what} error {error:.1e}")


def check_operator(ops, shape, dtype, content):
    _, weights = inputs(shape, dtype)
    q, k, v = ((torch.randn(shape) + 0.2).to(dtype) for _ in range(3))
    arguments = (*weights[3:5], *weights[5:7], content)
    expected = ops.gsa(*(t.double() for t in (q, k, v)), HEADS, *(t.double() for t in arguments[:4]), content)
    got = ops.gsa(q.cuda(), k.cuda(), v.cuda(), HEADS, *(t.cuda() for t in arguments[:4]), content)
    gpu_check.check_error(f"gsa {shape} {dtype} {content}", got, expected)
    alone = ops.gsa(q.cuda(), k.cuda(), v.cuda(), HEADS)
    expected = ops.gsa(q.double(), k.double(), v.double(), HEADS)
    gpu_check.check_error(f"gsa {shape} {dtype}, content alone", alone, expected)


def check_padding(ops, dtype):
    x, weights = inputs((2, 64, 29, 31), dtype)
    x, weights = x.cuda(), [t.cuda() for t in weights]
    wide, valid = gpu_check.padded(x)
    longer = list(weights)
    for i, (size, full) in enumerate(((29, 32), (31, 40))):
        longer[3 + i] = torch.randn(2 * full - 1, 8, dtype=torch.float32).to(dtype).cuda()
        longer[3 + i][full - size:full + size - 1] = weights[3 + i]
    gpu_check.check_padded(f"{dtype}", saccade(ops, wide, *longer, valid=valid), saccade(ops, x, *weights))


def time_one(ops, shape, dtype):
    x, weights = inputs(shape, dtype)
    weights = tuple(t.cuda() for t in weights)
    wide = tuple(t.float() for t in weights)
    joined = torch.cat(weights[:3])
    compiled = gpu_check.compiled(eager)
    candidates = {
        "saccade": lambda x: saccade(ops, x, *wide),
        "eager": lambda x: eager(x, *weights),
        "folded": lambda x: folded(x, joined, *weights[3:]),
        "torch.compile": compiled and (lambda x: compiled(x, *weights)),
        "copy": torch.clone,
    }
    gpu_check.time_layouts(f"gsa {tuple(shape)} {dtype}", candidates, (x,), *floor(shape, dtype))


def floor(shape, dtype):
    """The bytes that are moved at least, and the operations: three transforms, the content's two products, and two
    for each axis."""
    _, channels, height, width = shape
    numbers = torch.Size(shape).numel()
    return 2 * numbers * dtype.itemsize, numbers * (6 * channels + 4 * channels // HEADS + 4 * (height + width))


def check_all(ops, quick):
    shapes = ((3, 64, 14, 14), (1, 128, 28, 17)) if quick else (
        (3, 64, 14, 14), (1, 128, 28, 17), (2, 64, 56, 56), (2, 128, 28, 28), (1, 256, 14, 14), (2, 512, 7, 7),
        (2, 16, 1, 1), (1, 24, 3, 130), (1, 768, 5, 9))
    for dtype in gpu_check.BOUNDS:
        for shape in shapes:
            for content in ("global", "axial", "none"):
                for memory_format in (torch.contiguous_format, torch.channels_last):
                    check_module(ops, shape, dtype, memory_format, content)
                check_operator(ops, shape, dtype, content)
        check_padding(ops, dtype)


def time_all(ops):
    for dtype in (torch.float32, torch.bfloat16):
        for batch in (1, 8, 32):
            for channels, size in ((64, 56), (128, 28), (256, 14), (512, 7)):
                time_one(ops, (batch, channels, size, size), dtype)
        time_one(ops, (64, 64, 56, 56), dtype)


if __name__ == "__main__":
    gpu_check.run(__doc__, check_all, time_all)

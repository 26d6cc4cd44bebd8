"""Tests of the operator from Python: torch.library.opcheck, gradients, and an independent composition."""

import pytest
import torch

from kernels.common.opcheck import OPS, gradcheck, opcheck, opcheck_with_symbols, random


def reindexed(embedding, size):
    """Equations 5 and 6: P_xik = I_xir R_rk, for an embedding of any length, with an explicit re-indexing tensor."""
    relative = torch.arange(embedding.shape[0]) - embedding.shape[0] // 2
    x = torch.arange(size)
    index = (x[None, :, None] - x[:, None, None] == relative).to(embedding.dtype)
    return torch.einsum("xir,rk->xik", index, embedding)


def by_einsum(q, k, v, heads, column, row, middle_scale, middle_shift, content):
    """Equations 4, 7 and 8 as in the paper's appendix, with positions before channels."""
    q, v = (t.permute(0, 2, 3, 1).unflatten(-1, (heads, -1)) for t in (q, v))
    k = None if k is None else k.permute(0, 2, 3, 1).unflatten(-1, (heads, -1))

    def coefficients(scores, along):
        return scores.softmax(along) if content == "axial" else scores

    y = torch.zeros_like(v)
    if column is not None:
        scores = torch.einsum("bxynk,xik->bxyin", q, reindexed(column, q.shape[1]))
        if content == "axial":
            scores = scores + torch.einsum("bxynk,biynk->bxyin", q, k)
        y = torch.einsum("bxyin,biynv->bxynv", coefficients(scores, 3), v)
    if row is not None:
        values = v if column is None else y
        if middle_scale is not None:
            values = values * middle_scale.view(heads, -1) + middle_shift.view(heads, -1)
        scores = torch.einsum("bxynk,yik->bxyin", q, reindexed(row, q.shape[2]))
        if content == "axial":
            scores = scores + torch.einsum("bxynk,bxink->bxyin", q, k)
        y = torch.einsum("bxyin,bxinv->bxynv", coefficients(scores, 3), values)
    if content == "global":
        weights = k.flatten(1, 2).softmax(1).view_as(k)
        context = torch.einsum("bxynk,bxynv->bnkv", weights, v)
        y = y + torch.einsum("bxynk,bnkv->bxynv", q, context)
    return y.flatten(-2).permute(0, 3, 1, 2)


def by_einsum_module(x, query, key, value, query_bias, key_bias, value_bias, heads, column, row, middle_scale,
                     middle_shift, scale, shift, content):
    def project(weight, bias):
        return torch.einsum("od,bdxy->boxy", weight.flatten(1), x) + bias[:, None, None]

    y = by_einsum(project(query, query_bias), project(key, key_bias), project(value, value_bias), heads, column, row,
                  middle_scale, middle_shift, content)
    return y * scale[:, None, None] + shift[:, None, None]


def embeddings(size, channels, dtype=torch.float64, grad=False):
    return [(random(2 * n - 1, channels) / (n * channels) ** 0.5).to(dtype).requires_grad_(grad) for n in size]


def module_arguments(channels, heads, size, dtype=torch.float64, grad=False):
    """Returns all arguments of gsa_module between x and content."""
    weights = [(random(channels, channels) / channels**0.5).to(dtype).requires_grad_(grad) for _ in range(3)]
    vectors = [random(channels, dtype=dtype, grad=grad) for _ in range(7)]
    return (*weights, *vectors[:3], heads, *embeddings(size, channels // heads, dtype, grad), *vectors[3:])


SAMPLES = {"whole": None, "padded": [[3, 5], [2, 3]]}
CONTENTS = ("global", "axial", "none")


def valid_of(sample):
    return None if SAMPLES[sample] is None else torch.tensor(SAMPLES[sample])


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("content", CONTENTS)
def test_opcheck(sample, content):
    valid = valid_of(sample)
    q, k, v = random(2, 4, 3, 5), random(2, 4, 3, 5), random(2, 6, 3, 5)
    opcheck(OPS.gsa.default, (q, None if content == "none" else k, v, 2, *embeddings((3, 5), 2),
                              random(6), random(6), content, valid))
    opcheck(OPS.gsa_module.default, (q, *module_arguments(4, 2, (3, 5)), content, valid))


def test_opcheck_of_parts():
    q = random(2, 4, 3, 5)
    column, row = embeddings((3, 5), 4)
    for given in ((None, None), (column, None), (None, row)):
        opcheck(OPS.gsa.default, (q, q, q, 1, *given))


# Slow: to trace forward and backward with symbolic shapes takes seconds.
def test_opcheck_with_gradients():
    x = random(2, 4, 3, 5, grad=True)
    opcheck_with_symbols(OPS.gsa_module.default,
                         (x, *module_arguments(4, 2, (3, 5), grad=True), "global", valid_of("padded")))
    q = random(2, 4, 3, 5)
    opcheck_with_symbols(OPS.gsa.default, (q, q, q, 2, *embeddings((3, 5), 2)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opcheck_channels_last(dtype):
    x = random(2, 8, 5, 7, dtype=dtype).contiguous(memory_format=torch.channels_last)
    arguments = module_arguments(8, 2, (5, 7), dtype=torch.float32)
    opcheck(OPS.gsa_module.default, (x, *arguments))
    assert OPS.gsa_module(x, *arguments).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("content", CONTENTS)
def test_gradients(sample, content):
    valid = valid_of(sample)
    x = random(2, 4, 3, 5, grad=True)
    *weights, heads, column, row, a, b, c, d = module_arguments(4, 2, (3, 5), grad=True)
    given = (x, *weights, column, row, a, b, c, d)
    assert gradcheck(
        lambda *t: OPS.gsa_module(*t[:7], heads, *t[7:], content, valid), given)
    q, k, v = (random(2, 4, 3, 5, grad=True) for _ in range(3))
    assert gradcheck(
        lambda *t: OPS.gsa(*t[:3], 2, *t[3:], content, valid), (q, k, v, column, row, a, b))


@pytest.mark.parametrize("heads", [1, 2, 8])
@pytest.mark.parametrize("content", CONTENTS)
def test_matches_an_independent_composition(heads, content):
    x = random(3, 16, 11, 6)
    arguments = module_arguments(16, heads, (13, 6))
    torch.testing.assert_close(OPS.gsa_module(x, *arguments, content), by_einsum_module(x, *arguments, content),
                               rtol=1e-11, atol=1e-11)
    q, k, v = random(3, 16, 11, 6), random(3, 16, 11, 6), random(3, 24, 11, 6)
    column, row = embeddings((11, 9), 16 // heads)
    middle = random(24), random(24)
    parts = [(column, row, *middle)]
    if content != "axial":
        parts += [(column, None, None, None), (None, row, None, None)]
    if content == "global":
        parts.append((None, None, None, None))
    for part in parts:
        torch.testing.assert_close(OPS.gsa(q, k, v, heads, *part, content),
                                   by_einsum(q, k, v, heads, *part, content), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("content", CONTENTS)
def test_training_and_serving_agree(content):
    x = random(2, 16, 9, 8, dtype=torch.float32)
    arguments = module_arguments(16, 4, (9, 8), dtype=torch.float32)
    served = OPS.gsa_module(x, *arguments, content)
    trained = OPS.gsa_module(x.clone().requires_grad_(), *arguments, content)
    assert trained.grad_fn is not None
    torch.testing.assert_close(served, trained.detach(), rtol=1e-5, atol=1e-5 * served.abs().max().item())


def test_compiles_without_a_graph_break():
    x = random(2, 8, 5, 7, dtype=torch.float32)
    arguments = module_arguments(8, 2, (5, 7), dtype=torch.float32)
    compiled = torch.compile(lambda t: OPS.gsa_module(t, *arguments) * 2, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), OPS.gsa_module(x, *arguments) * 2)

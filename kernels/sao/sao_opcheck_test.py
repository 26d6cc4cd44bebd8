"""Tests of the operator from Python: torch.library.opcheck, gradients, and an independent composition."""

import pytest
import torch

from kernels.common.opcheck import OPS, SAMPLES, gradcheck, inputs_of, opcheck, opcheck_with_symbols, random


def by_einsum(q, k, v, w, heads, global_term):
    """Returns the sums over positions, not divided by N, with one einsum per term."""
    q, k, v = (t.flatten(2).unflatten(1, (heads, -1)) for t in (q, k, v))
    w = w.view(heads, -1)
    out = torch.einsum("bhcj,hd,bhdi->bhci", v, w, q)
    if global_term:
        out = out + torch.einsum("bhcj,bhdj,hd->bhc", v, k, w).unsqueeze(-1)
    return out.flatten(1, 2)


def by_einsum_module(x, value_weight, w, scale, shift, heads, global_term, residual):
    v = torch.einsum("cd,bd...->bc...", value_weight.flatten(1), x)
    out = by_einsum(x, x, v, w, heads, global_term) * scale[:, None] + shift[:, None]
    return out.view_as(x) + (x if residual else 0)


def module_weights(channels, dtype=torch.float64, grad=False):
    return tuple(random(*shape, dtype=dtype, grad=grad)
                 for shape in ((channels, channels), (channels,), (channels,), (channels,)))


@pytest.mark.parametrize("sample", SAMPLES)
def test_opcheck(sample):
    (q, k, v), valid = inputs_of(SAMPLES[sample])
    opcheck(OPS.sao.default, (q, k, v, random(4), 2, True, valid))
    opcheck(OPS.sao.default, (q, q, v))
    value_weight, w, scale, shift = module_weights(4)
    opcheck(OPS.sao_module.default,
            (q, value_weight, w, scale, shift, 4, True, True, valid))
    opcheck(OPS.sao_module.default, (q, value_weight, None, scale, shift, 2, False, False))


# Slow: to trace forward and backward with symbolic shapes takes seconds.
def test_opcheck_with_gradients():
    (q, k, v), valid = inputs_of(SAMPLES["padded"], grad=True)
    opcheck(OPS.sao.default, (q, k, v, random(4, grad=True), 2, True, valid))
    opcheck_with_symbols(OPS.sao_module.default, (q, *module_weights(4, grad=True), 4, True, True, valid))
    opcheck_with_symbols(OPS.sao.default, (*inputs_of(SAMPLES["padded"])[0], random(4), 2, True, valid))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opcheck_channels_last(dtype):
    x = random(2, 8, 5, 7, dtype=dtype).contiguous(memory_format=torch.channels_last)
    value_weight, w, scale, shift = module_weights(8, dtype=torch.float32)
    opcheck(OPS.sao_module.default, (x, value_weight, w, scale, shift))
    assert OPS.sao_module(x, value_weight, w, scale, shift).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("global_term", [False, True])
def test_gradients(sample, global_term):
    (q, k, v), valid = inputs_of(SAMPLES[sample], grad=True)
    w = random(4, grad=True)
    assert gradcheck(lambda *t: OPS.sao(*t, 2, global_term, valid), (q, k, v, w))
    assert gradcheck(lambda *t: OPS.sao_module(*t, 4, global_term, True, valid),
                     (q, *module_weights(4, grad=True)))


@pytest.mark.parametrize("heads", [1, 2, 8])
@pytest.mark.parametrize("global_term", [False, True])
def test_matches_an_independent_composition(heads, global_term):
    q, k, v = (random(3, 8, 11, 6) for _ in range(3))
    w = random(8)
    expected = by_einsum(q, k, v, w, heads, global_term).view_as(q) / 66
    torch.testing.assert_close(OPS.sao(q, k, v, w, heads, global_term), expected, rtol=1e-12, atol=1e-12)
    weights = module_weights(8)
    for residual in (False, True):
        torch.testing.assert_close(OPS.sao_module(q, *weights, heads, global_term, residual),
                                   by_einsum_module(q, *weights, heads, global_term, residual),
                                   rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("heads", [1, 2])
def test_transforms_of_queries_and_keys(heads):
    x = random(2, 8, 3, 4, 5)
    value_weight, w, scale, shift = module_weights(8)
    query_weight, key_weight = random(8, 8), random(8, 8)
    q, k, v = (torch.einsum("cd,bdzyx->bczyx", m, x) for m in (query_weight, key_weight, value_weight))
    expected = by_einsum(q, k, v, w, heads, True) * scale[:, None] + shift[:, None]
    got = OPS.sao_module(x, value_weight, w, scale, shift, heads, True, False, None, query_weight, key_weight)
    torch.testing.assert_close(got, expected.view_as(x), rtol=1e-11, atol=1e-10)
    assert gradcheck(
        lambda m: OPS.sao_module(x[:1], value_weight, w, scale, shift, heads, True, True, None, m, key_weight),
        query_weight.requires_grad_())
    opcheck(OPS.sao_module.default,
            (x, value_weight, w, scale, shift, heads, True, True, None, query_weight.detach(), None))


def test_training_and_serving_agree():
    x = random(2, 16, 9, 8, dtype=torch.float32)
    weights = module_weights(16, dtype=torch.float32)
    served = OPS.sao_module(x, *weights)
    trained = OPS.sao_module(x.clone().requires_grad_(), *weights)
    assert trained.grad_fn is not None
    torch.testing.assert_close(served, trained.detach(), rtol=1e-5, atol=1e-4 * served.abs().max().item())


def test_compiles_without_a_graph_break():
    x = random(2, 8, 5, 7, dtype=torch.float32)
    weights = module_weights(8, dtype=torch.float32)
    compiled = torch.compile(lambda t: OPS.sao_module(t, *weights) * 2, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), OPS.sao_module(x, *weights) * 2)


def test_forward_mode_takes_the_reference():
    q, k, v = (random(1, 4, 3, 3) for _ in range(3))
    tangent = random(1, 4, 3, 3)
    _, got = torch.func.jvp(lambda t: OPS.sao(t, k, v), (q,), (tangent,))
    _, expected = torch.func.jvp(lambda t: by_einsum(t, k, v, torch.ones(4, dtype=t.dtype), 1, True).view_as(t) / 9,
                                 (q,), (tangent,))
    torch.testing.assert_close(got, expected)


def test_names_its_instruction_set():
    assert OPS.cpu_isa() in ("portable", "avx2", "avx512")

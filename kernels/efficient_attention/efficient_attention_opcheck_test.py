"""Tests of the operator from Python: torch.library.opcheck, gradients, and an independent composition."""

import pytest
import torch

from kernels.common.opcheck import OPS, SAMPLES, gradcheck, inputs_of, opcheck, opcheck_with_symbols, random

MODES = ("softmax", "scaling")


def weights_of(channels, keys, values, dtype=torch.float64, grad=False):
    """Returns key, query, value, their biases, out and its bias, in the order of the module's arguments."""
    matrices = [random(keys, channels), random(keys, channels), random(values, channels)]
    rest = [random(keys), random(keys), random(values), random(channels, values), random(channels)]
    return [t.to(dtype).requires_grad_(grad) for t in matrices + rest]


def by_einsum(q, k, v, heads, mode):
    """Computes equations 1 and 2 of the paper for every pair of positions."""
    q, k, v = (t.flatten(2).unflatten(1, (heads, -1)) for t in (q, k, v))
    if mode == "softmax":
        q, k = q.softmax(2), k.softmax(3)
    else:
        q, k = (t / t.shape[-1] ** 0.5 for t in (q, k))
    similarity = torch.einsum("bhdi,bhdj->bhij", q, k)
    return torch.einsum("bhij,bhcj->bhci", similarity, v).flatten(1, 2)


def by_modules(x, key, query, value, key_bias, query_bias, value_bias, out, out_bias, heads, mode):
    conv = torch.nn.functional.conv2d
    q, k, v = (conv(x, w[:, :, None, None], b)
               for w, b in ((query, query_bias), (key, key_bias), (value, value_bias)))
    attended = by_einsum(q, k, v, heads, mode).view_as(v)
    return conv(attended, out[:, :, None, None], out_bias) + x


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sample", SAMPLES)
def test_opcheck(sample, mode):
    (q, k, v), valid = inputs_of(SAMPLES[sample])
    opcheck(OPS.efficient_attention.default, (q, k, v, 2, mode, valid))
    opcheck(OPS.efficient_attention_module.default, (q, *weights_of(4, 6, 2), 2, mode, True, valid))


# Slow: to trace forward and backward with symbolic shapes takes seconds.
def test_opcheck_with_gradients():
    (x,), valid = inputs_of(SAMPLES["padded"], count=1, grad=True)
    opcheck(OPS.efficient_attention.default, (x, x, x, 2, "softmax", valid))
    opcheck_with_symbols(OPS.efficient_attention_module.default,
                         (x, *weights_of(4, 2, 2, grad=True), 2, "softmax", True, valid))
    opcheck_with_symbols(OPS.efficient_attention.default, (*inputs_of(SAMPLES["padded"])[0], 2, "scaling", valid))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sample", SAMPLES)
def test_gradients(sample, mode):
    (q, k, v), valid = inputs_of(SAMPLES[sample], grad=True)
    assert gradcheck(lambda *t: OPS.efficient_attention(*t, 2, mode, valid), (q, k, v))
    assert gradcheck(lambda *t: OPS.efficient_attention_module(*t, 2, mode, True, valid),
                     (q, *weights_of(4, 6, 2, grad=True)))


@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("mode", MODES)
def test_matches_an_independent_composition(heads, mode):
    q, k = (random(3, 8, 11, 6) for _ in range(2))
    v = random(3, 12, 11, 6)
    torch.testing.assert_close(OPS.efficient_attention(q, k, v, heads, mode),
                               by_einsum(q, k, v, heads, mode).view_as(v), rtol=1e-11, atol=1e-12)
    weights = weights_of(12, 8, 4)
    torch.testing.assert_close(OPS.efficient_attention_module(v, *weights, heads, mode),
                               by_modules(v, *weights, heads, mode), rtol=1e-10, atol=1e-11)


def test_weights_as_convolutions_store_them():
    x = random(2, 8, 5, 7, dtype=torch.float32)
    weights = weights_of(8, 4, 4, dtype=torch.float32)
    stored = [w[:, :, None, None] if w.dim() == 2 else w for w in weights]
    assert torch.equal(OPS.efficient_attention_module(x, *weights), OPS.efficient_attention_module(x, *stored))


def test_training_and_serving_agree():
    x = random(2, 16, 9, 8, dtype=torch.float32)
    weights = weights_of(16, 8, 8, dtype=torch.float32)
    trained = OPS.efficient_attention_module(x.clone().requires_grad_(), *weights)
    assert trained.grad_fn is not None
    torch.testing.assert_close(OPS.efficient_attention_module(x, *weights), trained.detach(), rtol=1e-5, atol=1e-4)


def test_compiles_without_a_graph_break():
    x = random(2, 8, 5, 7, dtype=torch.float32)
    weights = weights_of(8, 4, 4, dtype=torch.float32)
    compiled = torch.compile(lambda t: OPS.efficient_attention_module(t, *weights) * 2, backend="aot_eager",
                             fullgraph=True)
    torch.testing.assert_close(compiled(x), OPS.efficient_attention_module(x, *weights) * 2)

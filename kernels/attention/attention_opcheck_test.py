"""Tests of the operators from Python: torch.library.opcheck, gradients, and an independent composition."""

import pytest
import torch

from kernels.common.opcheck import OPS, SAMPLES, gradcheck, inputs_of, opcheck, opcheck_with_symbols, random

KINDS = ("softmax", "pool", "1n")


def pooled(x):
    pool = {3: torch.nn.functional.max_pool1d, 4: torch.nn.functional.max_pool2d, 5: torch.nn.functional.max_pool3d}
    return pool[x.dim()](x, 2, 2, ceil_mode=True)


def by_einsum(q, k, v, heads, scale, kind):
    if kind == "pool":
        k, v = pooled(k), pooled(v)
    shape = (*v.shape[:2], *q.shape[2:])
    q, k, v = (t.flatten(2).unflatten(1, (heads, -1)) for t in (q, k, v))
    similar = torch.einsum("bhcj,bhci->bhji", k, q)
    similar = similar / k.shape[-1] if kind == "1n" else torch.softmax(similar * scale, 2)
    return torch.einsum("bhcj,bhji->bhci", v, similar).flatten(1, 2).reshape(shape)


def project(x, weight, bias):
    return torch.einsum("cd,bd...->bc...", weight, x) + bias.view(-1, *[1] * (x.dim() - 2))


def weights(channels, keys, values, dtype=torch.float64, grad=False):
    """Returns query, key and value weights, their biases, the output projection, scale and shift."""
    shapes = ((keys, channels), (keys, channels), (values, channels), (keys,), (keys,), (values,),
              (channels, values), (channels,), (channels,))
    return tuple(random(*shape, dtype=dtype, grad=grad) for shape in shapes)


def call(kind, q, k, v, heads=1, scale=0.5, valid=None):
    if kind == "1n":
        return OPS.attention_1n(q, k, v, heads, valid)
    return OPS.attention(q, k, v, heads, scale, kind == "pool", valid)


@pytest.mark.parametrize("sample,kind", list(zip(SAMPLES, ("softmax", "pool", "1n", "pool"))))
def test_opcheck(sample, kind):
    (q, k, v), valid = inputs_of(SAMPLES[sample])
    opcheck(OPS.attention.default, (q, k, v, 2, 0.5, kind == "pool", valid))
    opcheck(OPS.attention_1n.default, (q, k, v, 2, valid))
    opcheck(OPS.attention_module.default, (q, kind, *weights(4, 6, 2), 2, 1.0, True, valid))
    opcheck(OPS.attention_module.default, (q, kind))


# Slow: to trace forward and backward with symbolic shapes takes seconds.
def test_opcheck_with_gradients():
    (q, k, v), valid = inputs_of(SAMPLES["padded"], grad=True)
    opcheck(OPS.attention.default, (q, k, v, 2, 0.5, True, valid))
    opcheck_with_symbols(OPS.attention_module.default,
                         (q, "softmax", *weights(4, 6, 2, grad=True), 2, 1.0, True, valid))
    plain = tuple(inputs_of(SAMPLES["picture"])[0])
    opcheck_with_symbols(OPS.attention_1n.default, plain)
    opcheck_with_symbols(OPS.attention.default, (*plain, 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opcheck_channels_last(dtype):
    x = random(2, 8, 5, 7, dtype=dtype).contiguous(memory_format=torch.channels_last)
    arguments = (x, "softmax", *weights(8, 4, 6, dtype=torch.float32))
    opcheck(OPS.attention_module.default, arguments)
    assert OPS.attention_module(*arguments).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients(sample, kind):
    inputs, valid = inputs_of(SAMPLES[sample], grad=True)
    assert gradcheck(lambda *t: call(kind, *t, 2, 0.5, valid), inputs)
    assert gradcheck(lambda *t: OPS.attention_module(t[0], kind, *t[1:], 2, 1.0, True, valid),
                     (inputs[0], *weights(4, 2, 2, grad=True)))


@pytest.mark.parametrize("heads", [1, 2, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_matches_an_independent_composition(heads, kind):
    q, k = (random(3, 8, 11, 6) for _ in range(2))
    v = random(3, 16, 11, 6)
    torch.testing.assert_close(call(kind, q, k, v, heads, 0.3), by_einsum(q, k, v, heads, 0.3, kind),
                               rtol=1e-12, atol=1e-12)
    wq, wk, wv, bq, bk, bv, out, scale, shift = weights(8, 24, 40)
    # The module pools its input, before the transforms.
    read, between = (pooled(q), "softmax") if kind == "pool" else (q, kind)
    attended = by_einsum(project(q, wq, bq), project(read, wk, bk), project(read, wv, bv), heads, 1, between)
    attended = torch.einsum("cd,bd...->bc...", out, attended)
    expected = attended * scale[:, None, None] + shift[:, None, None]
    for residual in (False, True):
        got = OPS.attention_module(q, kind, wq, wk, wv, bq, bk, bv, out, scale, shift, heads, 1.0, residual)
        torch.testing.assert_close(got, expected + q if residual else expected, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_training_and_serving_agree(kind):
    x = random(2, 16, 9, 8, dtype=torch.float32)
    arguments = (kind, *weights(16, 4, 8, dtype=torch.float32), 2, 1.0 if kind == "1n" else 0.1)
    served = OPS.attention_module(x, *arguments)
    trained = OPS.attention_module(x.clone().requires_grad_(), *arguments)
    assert trained.grad_fn is not None
    torch.testing.assert_close(served, trained.detach(), rtol=1e-5, atol=1e-5 * served.abs().max().item())


def test_compiles_without_a_graph_break():
    x = random(2, 8, 5, 7, dtype=torch.float32)
    arguments = ("pool", *weights(8, 4, 6, dtype=torch.float32))
    compiled = torch.compile(lambda t: OPS.attention_module(t, *arguments) * 2, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), OPS.attention_module(x, *arguments) * 2)


def test_forward_mode_takes_the_reference():
    q, k, v = (random(1, 4, 3, 3) for _ in range(3))
    tangent = random(1, 4, 3, 3)
    _, got = torch.func.jvp(lambda t: OPS.attention(t, k, v), (q,), (tangent,))
    _, expected = torch.func.jvp(lambda t: by_einsum(t, k, v, 1, 1.0, "softmax"), (q,), (tangent,))
    torch.testing.assert_close(got, expected)

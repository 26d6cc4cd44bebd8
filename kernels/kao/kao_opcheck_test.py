"""Tests of the operator from Python: torch.library.opcheck, gradients, and an independent composition."""

import pytest
import torch

from kernels.common.opcheck import OPS, gradcheck, inputs_of, opcheck, opcheck_with_symbols, random

PLAIN = {"kv": OPS.kao_kv, "qkv": OPS.kao_qkv}
KINDS = pytest.mark.parametrize("kind", PLAIN)


def averages(x):
    return torch.cat([x.mean(dim=2), x.mean(dim=3)], dim=2)


def by_einsum(kind, q, k, v, heads, normalise):
    """Applies `normalise` to the coefficients [B, heads, H + W, queries] before the softmax."""
    height, width = q.shape[2:]
    queries = q.flatten(2) if kind == "kv" else averages(q)
    queries, keys, values = (t.unflatten(1, (heads, -1)) for t in (queries, averages(k), averages(v)))
    coefficients = normalise(torch.einsum("bhcj,bhci->bhji", keys, queries))
    out = torch.einsum("bhcj,bhji->bhci", values, coefficients.softmax(dim=2)).flatten(1, 2)
    if kind == "kv":
        return out.unflatten(2, (height, width))
    return out[:, :, width:, None] + out[:, :, None, :width]


def module_weights(channels, keys, values, heads, dtype=torch.float64, grad=False):
    shapes = ((keys, channels), (keys, channels), (values, channels), (keys,), (values,), (heads,), (values,),
              (values,))
    return tuple(random(*shape, dtype=dtype, grad=grad) for shape in shapes)


SAMPLES = {"whole": ((2, 4, 3, 5), None), "padded": ((2, 4, 3, 5), [[3, 5], [2, 3]]), "line": ((1, 4, 1, 6), None)}


@KINDS
@pytest.mark.parametrize("sample", SAMPLES)
def test_opcheck(kind, sample):
    (q, k, v), valid = inputs_of(SAMPLES[sample])
    opcheck(PLAIN[kind].default, (q, k, v, 2, random(2), valid))
    opcheck(PLAIN[kind].default, (q, q, v))
    opcheck(OPS.kao_module.default, (q, kind, *module_weights(4, 6, 2, 2), 2, False, valid))
    opcheck(OPS.kao_module.default, (q, kind))


# Slow: to trace forward and backward with symbolic shapes takes seconds. Checks the bare operator of
# one kind and the module of the other.
def test_opcheck_with_gradients():
    (q, k, v), valid = inputs_of(SAMPLES["padded"], grad=True)
    opcheck(OPS.kao_qkv.default, (q, k, v, 2, random(2, grad=True), valid))
    opcheck_with_symbols(OPS.kao_module.default, (q, "kv", *module_weights(4, 6, 4, 2, grad=True), 2, True, valid))
    for operator in PLAIN.values():
        opcheck_with_symbols(operator.default, tuple(inputs_of(SAMPLES["whole"])[0]))


@KINDS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opcheck_channels_last(kind, dtype):
    x = random(2, 8, 5, 7, dtype=dtype).contiguous(memory_format=torch.channels_last)
    weights = module_weights(8, 6, 4, 2, dtype=torch.float32)
    opcheck(OPS.kao_module.default, (x, kind, *weights, 2, False))
    assert OPS.kao_module(x, kind, *weights, 2, False).is_contiguous(memory_format=torch.channels_last)


@KINDS
@pytest.mark.parametrize("sample", SAMPLES)
def test_gradients(kind, sample):
    (q, k, v), valid = inputs_of(SAMPLES[sample], grad=True)
    assert gradcheck(lambda *t: PLAIN[kind](*t[:3], 2, t[3], valid), (q, k, v, random(2, grad=True)))
    weights = module_weights(4, 6, 4, 2, grad=True)
    assert gradcheck(lambda x, *t: OPS.kao_module(x, kind, *t, 2, True, valid), (q, *weights))


@KINDS
@pytest.mark.parametrize("heads", [1, 2, 4])
def test_matches_an_independent_composition(kind, heads):
    q, k, v = random(3, 8, 11, 6), random(3, 8, 11, 6), random(3, 12, 11, 6)
    scale = random(heads)
    expected = by_einsum(kind, q, k, v, heads, lambda e: e * scale.view(heads, 1, 1))
    torch.testing.assert_close(PLAIN[kind](q, k, v, heads, scale), expected, rtol=1e-12, atol=1e-12)


@KINDS
def test_the_coefficients_batch_norm_folds_into_one_scale_a_head(kind):
    heads = 2
    q, k, v = (random(3, 8, 7, 6) for _ in range(3))
    norm = torch.nn.BatchNorm2d(heads, dtype=torch.float64)
    # Its running statistics converge on exactly these coefficients; the affine part is far from the identity.
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.7, -0.6]))
        norm.bias.copy_(torch.tensor([3.0, -5.0]))
        for _ in range(20):
            by_einsum(kind, q, k, v, heads, norm)
        norm.eval()
        expected = by_einsum(kind, q, k, v, heads, norm)
        folded = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    torch.testing.assert_close(PLAIN[kind](q, k, v, heads, folded), expected, rtol=1e-12, atol=1e-12)


@KINDS
def test_a_bias_of_the_keys_cancels(kind):
    q, k, v = (random(2, 6, 5, 4) for _ in range(3))
    shifted = k + random(6, 1, 1)
    torch.testing.assert_close(PLAIN[kind](q, shifted, v, 3), PLAIN[kind](q, k, v, 3), rtol=1e-12, atol=1e-12)


@KINDS
def test_training_and_serving_agree(kind):
    x = random(2, 16, 9, 8, dtype=torch.float32)
    weights = [w / 4 for w in module_weights(16, 8, 16, 4, dtype=torch.float32)]
    served = OPS.kao_module(x, kind, *weights, 4)
    trained = OPS.kao_module(x.clone().requires_grad_(), kind, *weights, 4)
    assert trained.grad_fn is not None
    torch.testing.assert_close(served, trained.detach(), rtol=1e-5, atol=1e-5)


@KINDS
def test_compiles_without_a_graph_break(kind):
    x = random(2, 8, 5, 7, dtype=torch.float32)
    weights = module_weights(8, 8, 8, 2, dtype=torch.float32)
    compiled = torch.compile(lambda t: OPS.kao_module(t, kind, *weights, 2) * 2, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), OPS.kao_module(x, kind, *weights, 2) * 2)


@KINDS
def test_forward_mode_takes_the_reference(kind):
    q, k, v, tangent = (random(1, 4, 3, 3) for _ in range(4))
    _, got = torch.func.jvp(lambda t: PLAIN[kind](t, k, v), (q,), (tangent,))
    _, expected = torch.func.jvp(lambda t: by_einsum(kind, t, k, v, 1, lambda e: e), (q,), (tangent,))
    torch.testing.assert_close(got, expected)

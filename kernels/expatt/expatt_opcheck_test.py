"""Tests of the operator from Python: torch.library.opcheck, gradients, and an independent composition."""

import math

import pytest
import torch

from kernels.common.opcheck import OPS, gradcheck, opcheck, opcheck_with_symbols, random

# The tests make thousands of tiny calls, for which threads only add overhead.
torch.set_num_threads(1)

KINDS = ("constant", "linear", "cosine", "gaussian", "exponential_euclidean", "exponential_manhattan")
LEARNED = KINDS[3:]
VALID = torch.tensor([[3, 5], [2, 3]])


def radius(value=0.6, dtype=torch.float64, grad=False):
    return torch.tensor(value, dtype=dtype, requires_grad=grad)


def weight(kind, i, j, h, w, sigma):
    """Computes the paper's equations 7 to 12 for one pair of pixels."""
    dy, dx = i[0] - j[0], i[1] - j[1]
    distance = math.hypot(dy, dx) / math.hypot(h, w)
    return {
        "constant": lambda: 1.0,
        "linear": lambda: 1 - distance,
        "cosine": lambda: 0.5 * (1 + math.cos(math.pi * distance)),
        "gaussian": lambda: math.exp(((dx / w)**2 + (dy / h)**2) / (-2 * sigma**2)),
        "exponential_euclidean": lambda: math.exp(math.hypot(dx / w, dy / h) / -sigma),
        "exponential_manhattan": lambda: math.exp((abs(dx) / w + abs(dy) / h) / -sigma),
    }[kind]()


def by_pixels(kind, v, sigma):
    h, w = v.shape[2:]
    pixels = [(y, x) for y in range(h) for x in range(w)]
    g = torch.tensor([[weight(kind, i, j, h, w, sigma) for j in pixels] for i in pixels], dtype=torch.float64) + 1
    return torch.einsum("ij,bcj->bci", g / g.sum(1, keepdim=True), v.flatten(2)).view_as(v)


def module_weights(grad=False):
    return random(3, 4, grad=grad), random(3, grad=grad), random(5, 3, grad=grad), random(5, grad=grad)


@pytest.mark.parametrize("kind", KINDS)
def test_matches_the_equations(kind):
    v = random(2, 3, 5, 7)
    torch.testing.assert_close(OPS.expatt(v, kind, radius()), by_pixels(kind, v, 0.6), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("kind", ["linear", "gaussian"])
def test_opcheck(kind):
    v = random(2, 4, 3, 5)
    for valid in (None, VALID):
        opcheck(OPS.expatt.default, (v, kind, radius(), valid))
        opcheck(OPS.expatt_module.default, (v, *module_weights(), kind, 0.5, valid))
    opcheck(OPS.expatt_module.default, (v, random(3, 4), None, None, None, kind))


# Slow: to trace forward and backward with symbolic shapes takes seconds.
def test_opcheck_with_gradients():
    v = random(2, 4, 3, 5, grad=True)
    opcheck(OPS.expatt.default, (v, "gaussian", radius(grad=True), VALID))
    opcheck_with_symbols(OPS.expatt_module.default, (v, *module_weights(grad=True), "cosine"))
    opcheck_with_symbols(OPS.expatt.default, (v.detach(), "gaussian", radius(), VALID))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opcheck_channels_last(dtype):
    v = random(2, 8, 5, 7, dtype=dtype).contiguous(memory_format=torch.channels_last)
    opcheck(OPS.expatt.default, (v, "exponential_manhattan", radius(dtype=torch.float32)))
    out = OPS.expatt(v, "exponential_manhattan", radius(dtype=torch.float32))
    assert out.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("valid", [None, VALID])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind, valid):
    v = random(2, 2, 3, 5, grad=True)
    if kind in LEARNED:
        assert gradcheck(lambda v, s: OPS.expatt(v, kind, s, valid), (v, radius(grad=True)))
    else:
        assert gradcheck(lambda v: OPS.expatt(v, kind, radius(), valid), (v,))
    assert gradcheck(
        lambda *t: OPS.expatt_module(*t, kind, 0.6, valid),
        (v, *(random(*shape, grad=True) for shape in ((3, 2), (3,), (2, 3), (2,)))))


def test_the_radius_alone_may_need_a_gradient():
    sigma = radius(grad=True)
    OPS.expatt(random(1, 2, 4, 4), "gaussian", sigma).square().sum().backward()
    assert sigma.grad.abs() > 0


def test_training_and_serving_agree():
    v = random(2, 16, 29, 31, dtype=torch.float32)
    for kind in KINDS:
        served = OPS.expatt(v, kind, radius(dtype=torch.float32))
        trained = OPS.expatt(v.clone().requires_grad_(), kind, radius(dtype=torch.float32))
        assert trained.grad_fn is not None
        torch.testing.assert_close(served, trained.detach(), rtol=1e-5, atol=1e-6)


def test_compiles_without_a_graph_break():
    v = random(2, 8, 5, 7, dtype=torch.float32)
    sigma = radius(dtype=torch.float32)
    compiled = torch.compile(lambda t: OPS.expatt(t, "gaussian", sigma) * 2, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(v), OPS.expatt(v, "gaussian", sigma) * 2)


def test_forward_mode_takes_the_reference():
    v, tangent = random(1, 4, 3, 3), random(1, 4, 3, 3)
    _, got = torch.func.jvp(lambda t: OPS.expatt(t, "linear", radius()), (v,), (tangent,))
    torch.testing.assert_close(got, by_pixels("linear", tangent, 0.6))


def test_names_the_kinds_there_are():
    with pytest.raises(RuntimeError, match="one of constant, linear, .*, exponential_manhattan, got 'gauss'"):
        OPS.expatt(random(1, 1, 2, 2), "gauss", radius())

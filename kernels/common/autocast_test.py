"""The operators under torch.autocast."""

import os
import pathlib

import pytest
import torch

BUILD = pathlib.Path(os.environ["SACCADE_BUILD_DIR"])
torch.ops.load_library(BUILD / "lib" / "libsaccade_kernels.so")
ops = torch.ops.saccade

C = 16


def weights(*shape):
    return torch.randn(shape) / shape[-1]**0.5


def cases():
    """Operators as functions of three float32 maps, with float32 weights."""
    torch.manual_seed(1)
    square, other, third = (weights(C, C) for _ in range(3))
    vector, shift = torch.rand(C) + 0.5, torch.randn(C)
    embeddings = weights(13, C // 2), weights(17, C // 2)
    sigma = torch.tensor(0.5)
    return {
        "attention": lambda q, k, v: ops.attention(q, k, v, 2),
        "attention_1n": lambda q, k, v: ops.attention_1n(q, k, v, 2),
        "attention_module": lambda q, k, v: ops.attention_module(q, "softmax", square, other, third),
        "efficient_attention": lambda q, k, v: ops.efficient_attention(q, k, v, 2),
        "efficient_attention_module": lambda q, k, v: ops.efficient_attention_module(q, square, other, third),
        "expatt": lambda q, k, v: ops.expatt(v, "gaussian", sigma),
        "expatt_module": lambda q, k, v: ops.expatt_module(q, square, shift, None, None, "gaussian", 0.5),
        "gsa": lambda q, k, v: ops.gsa(q, k, v, 2, *embeddings),
        "gsa_module": lambda q, k, v: ops.gsa_module(q, square, other, third, None, None, None, 2, *embeddings, vector, shift, vector,
                                                 shift),
        "kao_kv": lambda q, k, v: ops.kao_kv(q, k, v, 2),
        "kao_qkv": lambda q, k, v: ops.kao_qkv(q, k, v, 2),
        "kao_module": lambda q, k, v: ops.kao_module(q, "kv", None, None, square),
        "sao": lambda q, k, v: ops.sao(q, k, v, vector, 2),
        "sao_module": lambda q, k, v: ops.sao_module(q, square, vector, vector, shift, 2),
    }


def maps():
    torch.manual_seed(2)
    return [torch.randn(2, C, 7, 9) * 0.5 for _ in range(3)]


@pytest.mark.parametrize("name", cases())
def test_maps_are_cast_and_weights_are_not(name):
    run = cases()[name]
    narrow = [t.bfloat16() for t in maps()]
    expected = run(*narrow)
    with torch.autocast("cpu", torch.bfloat16):
        got = run(*maps())
        # A map that an operator of LibTorch has made may be in the lower type already.
        mixed = run(narrow[0], *maps()[1:])
    assert got.dtype == torch.bfloat16
    assert torch.equal(got, expected) and torch.equal(mixed, expected)
    assert run(*maps()).dtype == torch.float32


def test_every_operator_with_maps_is_registered():
    for name in cases():
        for key in ("AutocastCPU", "AutocastCUDA"):
            assert torch._C._dispatch_has_kernel_for_dispatch_key(f"saccade::{name}", key), (name, key)


def test_types_that_the_operators_do_not_take_are_left():
    wide = [t.double() for t in maps()]
    with torch.autocast("cpu", torch.bfloat16):
        assert ops.attention(*wide).dtype == torch.float64
    with torch.autocast("cpu", torch.float16):
        assert torch.equal(ops.attention(*maps()), ops.attention(*maps()))
        assert ops.attention(*maps()).dtype == torch.float32


@pytest.mark.parametrize("name", cases())
def test_maps_that_require_grad_are_cast(name):
    given = [t.requires_grad_() for t in maps()]
    with torch.autocast("cpu", torch.bfloat16):
        y = cases()[name](*given)
    y.float().square().mean().backward()
    grads = [t.grad for t in given if t.grad is not None]
    assert y.dtype == torch.bfloat16 and grads
    assert all(grad.dtype == torch.float32 and grad.isfinite().all() for grad in grads)


def test_gradients_have_the_type_of_the_inputs():
    x, weight = maps()[0].requires_grad_(), weights(C, C).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        ops.kao_module(x, "kv", None, None, weight).float().square().mean().backward()
    assert x.grad.dtype == weight.grad.dtype == torch.float32
    assert x.grad.isfinite().all() and weight.grad.abs().sum() > 0

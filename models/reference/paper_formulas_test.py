"""The attention layers of the reference networks compared with the papers' formulas in NumPy (kernels/common/testing/paper_formulas.py),
with their transforms, batch norms and residuals."""

import numpy
import pytest
import torch
from torch import nn

from kernels.common.testing import paper_formulas as paper
from models.reference.attention_path import AttentionPath
from models.reference.efficient_attention import EfficientAttention
from models.reference.explicit_attention import MAPS, WITH_RADIUS, ExpAttConv
from models.reference.kronecker_attention import Attention
from models.reference.mobile import SqueezeExcite
from models.reference.residual import GlobalSelfAttention
from models.reference.sao import SiameseAttention
from models.reference.unet3d import RegularAttention

HEIGHT, WIDTH, CHANNELS = 5, 6, 8
DEPTH = 3  # of volumes
SIDES = {2: (HEIGHT, WIDTH), 3: (DEPTH, HEIGHT, WIDTH)}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(5)


def shaken(module: nn.Module) -> nn.Module:
    """Random parameters and statistics, in float64 and as it is served."""
    for name, tensor in module.double().state_dict().items():
        if name.endswith("running_var"):
            tensor.uniform_(0.5, 1.5)
        elif tensor.is_floating_point():
            tensor.normal_(0.2, 0.5)
    return module.eval()


def array(tensor: torch.Tensor) -> numpy.ndarray:
    return tensor.detach().double().numpy()


def transformed(x: numpy.ndarray, layer) -> numpy.ndarray:
    """A 1x1 convolution or a linear layer at every position of [..., c]."""
    weight = array(layer.weight).reshape(len(layer.weight), -1)
    return x @ weight.T + (array(layer.bias) if layer.bias is not None else 0)


def normed(x: numpy.ndarray, norm) -> numpy.ndarray:
    mean, variance = array(norm.running_mean), array(norm.running_var)
    return (x - mean) / numpy.sqrt(variance + norm.eps) * array(norm.weight) + array(norm.bias)


def heads_of(formula, heads, *parts):
    sliced = [numpy.split(part, heads, axis=-1) for part in parts]
    return numpy.concatenate([formula(head, *(part[head] for part in sliced)) for head in range(heads)], axis=-1)


def check(module: nn.Module, expected, channels: int = CHANNELS, dimensions: int = 2):
    """`expected` takes one map [h, w, c] or volume [d, h, w, c]."""
    x = torch.randn(2, channels, *SIDES[dimensions], dtype=torch.float64)
    with torch.no_grad():
        got = array(module(x).movedim(1, -1))
    for one, found in zip(array(x.movedim(1, -1)), got, strict=True):
        numpy.testing.assert_allclose(found, expected(one), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("normalization", ["softmax", "scaling"])
@pytest.mark.parametrize("operator", ["efficient", "non_local"])
def test_efficient_attention_and_non_local_blocks(operator, normalization, heads):
    module = shaken(EfficientAttention(CHANNELS, 4, 6, heads, normalization, operator=operator))

    def formula(_, q, k, v):
        if operator == "efficient":
            return paper.efficient_attention(q, k, v, normalization)
        by_position = [paper.positions(part) for part in (q, k, v)]
        similarity = paper.softmax if normalization == "softmax" else lambda products: products / len(products)
        return paper.attend(*by_position, similarity).reshape(v.shape)

    def expected(x):
        q, k, v = (transformed(x, layer) for layer in (module.query, module.key, module.value))
        return x + transformed(heads_of(formula, heads, q, k, v), module.out)

    check(module, expected)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("normalization", ["softmax", "scaling"])
@pytest.mark.parametrize("reprojected", [True, False])
def test_efficient_attention_of_volumes(reprojected, normalization, heads):
    """As in EA-PSMNet, which has no reprojection, and in EA R-C3D."""
    module = shaken(EfficientAttention(CHANNELS, 4, 6 if reprojected else CHANNELS, heads, normalization, reprojected, dimensions=3))

    def expected(x):
        q, k, v = (transformed(x, layer) for layer in (module.query, module.key, module.value))
        found = heads_of(lambda _, *own: paper.efficient_attention(*own, normalization), heads, q, k, v)
        return x + (transformed(found, module.out) if reprojected else found)

    check(module, expected, dimensions=3)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_regular_attention_of_the_u_nets(dimensions, heads):
    module = shaken(RegularAttention(CHANNELS, heads, dimensions))

    def expected(x):
        parts = (transformed(x, layer) for layer in (module.query, module.key, module.value))
        return x + normed(heads_of(lambda _, *own: paper.attention(*own), heads, *parts), module.bn)

    check(module, expected, dimensions=dimensions)


def test_squeeze_and_excite():
    module = shaken(SqueezeExcite(CHANNELS, 2))
    check(module, lambda x: paper.squeeze_excite(x, array(module.squeeze.weight), array(module.excite.weight)))


def similarity_of(norm: nn.BatchNorm2d, head: int):
    """The softmax of coefficients that went through the head's batch norm."""
    mean, variance, weight, bias = (float(part[head].detach())
                                    for part in (norm.running_mean, norm.running_var, norm.weight, norm.bias))
    return lambda products: paper.softmax((products - mean) / (variance + norm.eps) ** 0.5 * weight + bias)


def by_kind(kind: str, norm, head: int, q, k, v):
    similarity = similarity_of(norm, head)
    if kind in ("kv", "qkv"):
        return getattr(paper, f"kao_{kind}")(q, k, v, similarity)
    return paper.attend(*(paper.positions(part) for part in (q, k, v)), similarity).reshape(q.shape)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("kind", ["kv", "qkv", "softmax", "pool"])
def test_kronecker_and_regular_attention_of_deeplabv2(kind, heads):
    module = shaken(Attention(kind, CHANNELS, heads))

    def expected(x):
        read = paper.pooled(x) if kind == "pool" else x
        parts = transformed(x, module.query), transformed(read, module.key), transformed(read, module.value)
        return x + heads_of(lambda head, *own: by_kind(kind, module.coefficients, head, *own), heads, *parts)

    check(module, expected)


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("kind", ["kv", "qkv", "softmax", "pool", "1n"])
def test_attention_of_the_mobile_modules(kind, heads, skip):
    module = shaken(AttentionPath(kind, CHANNELS, heads, skip))

    def expected(x):
        read = paper.pooled(x) if kind == "pool" else x
        value = transformed(read, module.value)
        if kind == "1n":
            found = normed(heads_of(lambda _, *own: paper.attention_1n(*own), heads, x, x, value), module.bn)
        else:
            found = heads_of(lambda head, *own: by_kind(kind, module.coefficients, head, *own), heads, x, read, value)
        return found + (x if skip else 0)

    check(module, expected)


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize("global_term", [True, False])
@pytest.mark.parametrize(("transformed_too", "mean", "dimensions"), [(False, False, 2), (True, True, 2), (True, True, 3)])
def test_siamese_attention(learned, global_term, transformed_too, mean, dimensions):
    """With `mean` as in the U-Nets; without it, a batch norm takes the place of 1/N, as in SANet."""
    heads = 2
    module = shaken(SiameseAttention(CHANNELS, heads, learned, global_term, True, transformed_too, mean, dimensions))
    w = numpy.split(array(module.w) if learned else numpy.ones(CHANNELS), heads)

    def expected(x):
        q, k = (transformed(x, layer) if transformed_too else x for layer in (module.query, module.key))
        found = heads_of(lambda head, *own: paper.sao(*own, w[head], global_term), heads, q, k, transformed(x, module.value))
        return x + normed(found * (1 if mean else HEIGHT * WIDTH), module.bn)

    check(module, expected, dimensions=dimensions)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("plus_one", [True, False])
@pytest.mark.parametrize(("kind", "maps"), [*((kind, 1) for kind in MAPS), *((kind, 2) for kind in WITH_RADIUS)])
def test_explicit_attention_beside_a_convolution(kind, maps, plus_one, stride):
    """With a stride, its result is averaged over 3x3 positions, of which those outside do not count."""
    radii = [0.3, 0.7][:maps]
    module = shaken(ExpAttConv(CHANNELS, 10, stride, 4, kind, maps=maps, plus_one=plus_one))
    if module.sigma is not None:
        module.sigma.data.copy_(torch.tensor(radii, dtype=torch.float64).reshape(module.sigma.shape))

    def expected(x):
        beside = module.conv(torch.from_numpy(x.transpose(2, 0, 1).copy())[None])
        values = transformed(x, module.value)
        attended = transformed(heads_of(lambda head, own: paper.expatt(own, kind, radii[head], plus_one), maps, values), module.out)
        pooled = attended if stride == 1 else paper.averaged(attended, 3, stride, before=1)
        return numpy.concatenate([array(beside)[0].transpose(1, 2, 0), pooled], axis=2)

    check(module, expected)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("norms", [False, True])
@pytest.mark.parametrize(("content", "axes"), [("global", "both"), ("none", "both"), ("axial", "both"), ("global", "none"),
                                               ("global", "column"), ("global", "row"), ("none", "column"), ("none", "row")])
def test_global_self_attention(content, axes, norms, stride):
    """With a stride, its result is averaged over windows of 2x2, of which those at the edge may be smaller."""
    heads = 2
    module = shaken(GlobalSelfAttention(CHANNELS, 7, stride, heads, content, axes, norms))

    def part(x, layer, norm):
        found = transformed(x, layer)
        return normed(found, norm) if norms else found

    def along(axis, q, k, v):
        if content == "axial":
            formula = getattr(paper, f"axial_{axis}_attention")
            return heads_of(lambda _, *own: formula(*own, array(getattr(module, f"{axis}_embedding"))), heads, q, k, v)
        if axis == "column":
            return heads_of(lambda _, *own: paper.column_attention(*own, array(module.column_embedding)), heads, q, v)
        return heads_of(lambda _, *own: paper.row_attention(*own, array(module.row_embedding)), heads, q, v)

    def unpooled(x):
        q, v = part(x, module.query, module.query_norm), part(x, module.value, module.value_norm)
        k = part(x, module.key, module.key_norm) if content != "none" else None
        found = numpy.zeros_like(v)
        if content == "global":
            found = heads_of(lambda _, *own: paper.content_attention(*own), heads, q, k, v)
        if axes == "both":
            # "After obtaining Y^H, the module applies batch normalization to it and uses it as the input to the row-only sub-layer"
            return found + along("row", q, k, normed(along("column", q, k, v), module.middle))
        return found + (along(axes, q, k, v) if axes != "none" else 0)

    check(module, lambda x: unpooled(x) if stride == 1 else paper.averaged(unpooled(x), 2, stride))

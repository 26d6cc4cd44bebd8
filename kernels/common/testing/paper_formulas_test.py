"""The operators compared with the papers' formulas (paper_formulas.py): in float64, in the float32 that is served, with heads, and
with padding."""

import numpy
import pytest
import torch

from kernels.common.testing import paper_formulas as paper
from kernels.common.opcheck import OPS, random

HEIGHT, WIDTH, CHANNELS, HEADS = 5, 7, 8, 2
TYPES = {"float64": (torch.float64, 1e-11), "float32": (torch.float32, 2e-5)}
# The valid extents of two samples; the first has no padding.
VALID = [[HEIGHT, WIDTH], [3, 4]]


def maps(count, dtype, channels=CHANNELS):
    return [random(2, channels, HEIGHT, WIDTH, dtype=dtype) for _ in range(count)]


def by_head(formula, sample, extent, maps, heads):
    """The formula on each head of a sample without its padding: [c, h, w]."""
    height, width = extent
    parts = [one[sample, :, :height, :width].double().numpy().transpose(1, 2, 0) for one in maps]
    sliced = [numpy.split(part, heads, axis=2) for part in parts]
    found = [formula(head, *(part[head] for part in sliced)) for head in range(heads)]
    return torch.from_numpy(numpy.concatenate(found, axis=2).transpose(2, 0, 1).copy())


def check(got, formula, maps, dtype, heads=HEADS, padded=False):
    """`formula` takes the head's number and its slices of the maps."""
    tolerance = TYPES[dtype][1]
    assert got.dtype == TYPES[dtype][0]
    for sample, extent in enumerate(VALID if padded else [VALID[0]] * 2):
        height, width = extent
        expected = by_head(formula, sample, extent, maps, heads)
        found = got[sample].double()
        assert (found[:, :height, :width] - expected).abs().max() <= tolerance * expected.abs().max()
        assert not found[:, height:].any() and not found[:, :, width:].any(), "padding is zero"


def valid(padded):
    return torch.tensor(VALID) if padded else None


CASES = [pytest.param(dtype, padded, id=f"{dtype}{'-padded' if padded else ''}") for dtype in TYPES for padded in (False, True)]


@pytest.mark.parametrize(("dtype", "padded"), CASES)
@pytest.mark.parametrize("normalization", ["softmax", "scaling"])
def test_efficient_attention(dtype, padded, normalization):
    q, k, v = maps(3, TYPES[dtype][0])
    got = OPS.efficient_attention(q, k, v, HEADS, normalization, valid(padded))
    check(got, lambda _, *parts: paper.efficient_attention(*parts, normalization), (q, k, v), dtype, padded=padded)


def test_efficient_attention_with_scaling_is_dot_product_attention():
    """ "Substituting the scaling normalization formula ... the two are mathematically equivalent": (1/n) Q K^T V."""
    q, k, v = maps(3, torch.float64)
    one = paper.efficient_attention(*(part[0].numpy().transpose(1, 2, 0) for part in (q, k, v)), "scaling")
    other = paper.attention_1n(*(part[0].numpy().transpose(1, 2, 0) for part in (q, k, v)))
    assert numpy.allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize(("dtype", "padded"), CASES)
@pytest.mark.parametrize("operator", ["attention", "attention_1n", "kao_kv", "kao_qkv"])
def test_attention_and_kronecker_attention(dtype, padded, operator):
    q, k, v = maps(3, TYPES[dtype][0])
    options = {"valid": valid(padded)}
    got = getattr(OPS, operator)(q, k, v, HEADS, **options)
    check(got, lambda _, *parts: getattr(paper, operator)(*parts), (q, k, v), dtype, padded=padded)


@pytest.mark.parametrize(("dtype", "padded"), CASES)
def test_attention_to_pooled_keys_and_values(dtype, padded):
    q, k, v = maps(3, TYPES[dtype][0])
    got = OPS.attention(q, k, v, HEADS, pool=True, valid=valid(padded))

    def formula(_, query, key, value):
        found = paper.attend(paper.positions(query), *(paper.positions(paper.pooled(part)) for part in (key, value)))
        return found.reshape(query.shape)

    check(got, formula, (q, k, v), dtype, padded=padded)


@pytest.mark.parametrize(("dtype", "padded"), CASES)
@pytest.mark.parametrize("kind", ["kv", "qkv"])
def test_scaled_coefficients_of_kronecker_attention(dtype, padded, kind):
    """What a batch norm of the coefficients leaves, without its shift, which cancels in the softmax."""
    q, k, v = maps(3, TYPES[dtype][0])
    scale = torch.tensor([0.5, 1.75], dtype=TYPES[dtype][0])
    got = getattr(OPS, f"kao_{kind}")(q, k, v, HEADS, scale, valid(padded))

    def formula(head, *parts):
        return getattr(paper, f"kao_{kind}")(*parts, lambda products: paper.softmax(products * float(scale[head]) + 3))

    check(got, formula, (q, k, v), dtype, padded=padded)


@pytest.mark.parametrize(("dtype", "padded"), CASES)
@pytest.mark.parametrize("global_term", [True, False])
def test_siamese_attention(dtype, padded, global_term):
    q, k, v = maps(3, TYPES[dtype][0])
    w = random(CHANNELS, dtype=TYPES[dtype][0])
    got = OPS.sao(q, k, v, w, HEADS, global_term, valid(padded))
    heads = numpy.split(w.double().numpy(), HEADS)
    check(got, lambda head, *parts: paper.sao(*parts, heads[head], global_term), (q, k, v), dtype, padded=padded)
    # All ones: "w/o params".
    got = OPS.sao(q, k, v, None, HEADS, global_term, valid(padded))
    ones = numpy.ones(CHANNELS // HEADS)
    check(got, lambda _, *parts: paper.sao(*parts, ones, global_term), (q, k, v), dtype, padded=padded)


@pytest.mark.parametrize(("dtype", "padded"), CASES)
@pytest.mark.parametrize("sigma", [0.75, 0.2, -0.4])
@pytest.mark.parametrize("kind", ["constant", "linear", "cosine", "gaussian", "exponential_euclidean",
                                  "exponential_manhattan"])
def test_explicit_maps(dtype, padded, kind, sigma):
    if sigma < 0 and kind.startswith("exponential"):
        pytest.skip("a negative sigma is refused: only the Gaussian squares it")
    (v,) = maps(1, TYPES[dtype][0])
    got = OPS.expatt(v, kind, torch.tensor(sigma, dtype=v.dtype), valid(padded))
    check(got, lambda _, value: paper.expatt(value, kind, sigma), (v,), dtype, heads=1, padded=padded)


# Which parts GSA has: content, along the columns, along the rows.
PARTS = {"all": (True, True, True), "position": (False, True, True), "content": (True, False, False),
         "content and columns": (True, True, False), "content and rows": (True, False, True),
         "columns": (False, True, False), "rows": (False, False, True)}


@pytest.mark.parametrize(("dtype", "padded"), CASES)
@pytest.mark.parametrize("parts", PARTS)
def test_global_self_attention(dtype, padded, parts):
    has_content, has_columns, has_rows = PARTS[parts]
    kind = TYPES[dtype][0]
    q, k, v = maps(3, kind)
    # Embeddings for maps of up to nine positions a side.
    columns, rows = (random(2 * 9 - 1, CHANNELS // HEADS, dtype=kind) for _ in range(2))
    scale, shift = random(CHANNELS, dtype=kind), random(CHANNELS, dtype=kind)
    both = has_columns and has_rows
    got = OPS.gsa(q, k if has_content else None, v, HEADS, columns if has_columns else None, rows if has_rows else None,
                  scale if both else None, shift if both else None, "global" if has_content else "none", valid(padded))
    scales, shifts = (numpy.split(one.double().numpy(), HEADS) for one in (scale, shift))

    def formula(head, query, key, value):
        found = paper.content_attention(query, key, value) if has_content else 0
        along = value
        if has_columns:
            along = paper.column_attention(query, value, columns.double().numpy())
        if both:
            along = along * scales[head] + shifts[head]
        if has_rows:
            along = paper.row_attention(query, along, rows.double().numpy())
        return found + along if has_columns or has_rows else found

    check(got, formula, (q, k, v), dtype, padded=padded)


def axial(q, k, v, columns, rows, scale, shift):
    """Column attention, the folded batch norm between the two, and row attention."""
    along = paper.axial_column_attention(q, k, v, columns.double().numpy())
    return paper.axial_row_attention(q, k, along * scale + shift, rows.double().numpy())


@pytest.mark.parametrize(("dtype", "padded"), CASES)
def test_axial_attention_of_content_and_position(dtype, padded):
    kind = TYPES[dtype][0]
    q, k, v = maps(3, kind)
    columns, rows = (random(2 * 9 - 1, CHANNELS // HEADS, dtype=kind) for _ in range(2))
    scale, shift = random(CHANNELS, dtype=kind), random(CHANNELS, dtype=kind)
    got = OPS.gsa(q, k, v, HEADS, columns, rows, scale, shift, "axial", valid(padded))
    scales, shifts = (numpy.split(one.double().numpy(), HEADS) for one in (scale, shift))
    check(got, lambda head, *parts: axial(*parts, columns, rows, scales[head], shifts[head]), (q, k, v), dtype, padded=padded)


def projected(weight, x, bias=None):
    """A projection of a map [c, h, w] as [h, w, c]."""
    found = x.double().numpy().transpose(1, 2, 0) @ weight.double().numpy().reshape(len(weight), -1).T
    return found if bias is None else found + bias.double().numpy()


def check_module(got, formula, x, dtype):
    """`formula` takes one map [c, h, w] and returns [h, w, c]."""
    for found, one in zip(got.double(), x, strict=True):
        expected = torch.from_numpy(numpy.ascontiguousarray(formula(one).transpose(2, 0, 1)))
        assert (found - expected).abs().max() <= TYPES[dtype][1] * expected.abs().max()


def per_head(formula, heads, *parts):
    sliced = [numpy.split(part, heads, axis=2) for part in parts]
    return numpy.concatenate([formula(head, *(part[head] for part in sliced)) for head in range(heads)], axis=2)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("normalization", ["softmax", "scaling"])
def test_efficient_attention_as_it_is_served(dtype, normalization):
    kind = TYPES[dtype][0]
    (x,) = maps(1, kind)
    key, query, value = (random(channels, CHANNELS, dtype=kind) for channels in (4, 4, 6))
    key_bias, query_bias, value_bias = (random(channels, dtype=kind) for channels in (4, 4, 6))
    out, out_bias = random(CHANNELS, 6, dtype=kind), random(CHANNELS, dtype=kind)
    got = OPS.efficient_attention_module(x, key, query, value, key_bias, query_bias, value_bias, out, out_bias, HEADS,
                                         normalization)

    def formula(one):
        parts = projected(query, one, query_bias), projected(key, one, key_bias), projected(value, one, value_bias)
        found = per_head(lambda _, *own: paper.efficient_attention(*own, normalization), HEADS, *parts)
        return one.double().numpy().transpose(1, 2, 0) + found @ out.double().numpy().T + out_bias.double().numpy()

    check_module(got, formula, x, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", ["kv", "qkv"])
def test_kronecker_attention_as_it_is_served(dtype, kind):
    (x,) = maps(1, TYPES[dtype][0])
    query, key, value = (random(CHANNELS, CHANNELS, dtype=TYPES[dtype][0]) for _ in range(3))
    got = OPS.kao_module(x, kind, query, key, value, heads=HEADS)

    def formula(one):
        parts = (projected(weight, one) for weight in (query, key, value))
        found = per_head(lambda _, *own: getattr(paper, f"kao_{kind}")(*own), HEADS, *parts)
        return one.double().numpy().transpose(1, 2, 0) + found

    check_module(got, formula, x, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("global_term", [True, False])
def test_siamese_attention_as_it_is_served(dtype, global_term):
    """A batch norm takes the place of 1/N: the module gives N times the operator, times the batch norm's scale, plus its shift."""
    kind = TYPES[dtype][0]
    (x,) = maps(1, kind)
    value, w = random(CHANNELS, CHANNELS, dtype=kind), random(CHANNELS, dtype=kind)
    scale, shift = random(CHANNELS, dtype=kind), random(CHANNELS, dtype=kind)
    got = OPS.sao_module(x, value, w, scale, shift, HEADS, global_term)
    heads = numpy.split(w.double().numpy(), HEADS)

    def formula(one):
        whole = one.double().numpy().transpose(1, 2, 0)
        found = per_head(lambda head, *own: paper.sao(*own, heads[head], global_term), HEADS, whole, whole,
                         projected(value, one))
        return whole + found * HEIGHT * WIDTH * scale.double().numpy() + shift.double().numpy()

    check_module(got, formula, x, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", ["gaussian", "exponential_manhattan", "linear"])
def test_explicit_maps_as_they_are_served(dtype, kind):
    (x,) = maps(1, TYPES[dtype][0])
    value, out = random(6, CHANNELS, dtype=TYPES[dtype][0]), random(4, 6, dtype=TYPES[dtype][0])
    got = OPS.expatt_module(x, value, None, out, None, kind, 0.5)
    check_module(got, lambda one: paper.expatt(projected(value, one), kind, 0.5) @ out.double().numpy().T, x, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", ["softmax", "pool", "1n"])
def test_regular_attention_as_it_is_served(dtype, kind):
    (x,) = maps(1, TYPES[dtype][0])
    query, key, value = (random(channels, CHANNELS, dtype=TYPES[dtype][0]) for channels in (4, 4, 6))
    query_bias, key_bias, value_bias = (random(channels, dtype=TYPES[dtype][0]) for channels in (4, 4, 6))
    out, scale, shift = (random(*shape, dtype=TYPES[dtype][0]) for shape in ((CHANNELS, 6), (CHANNELS,), (CHANNELS,)))
    factor = 1.0 if kind == "1n" else 0.5
    got = OPS.attention_module(x, kind, query, key, value, query_bias, key_bias, value_bias, out, scale, shift, HEADS, factor)

    def attend(_, q, k, v):
        if kind == "1n":
            return paper.attention_1n(q, k, v)
        by_position = [paper.positions(part) for part in (q, k, v)]
        return paper.attend(*by_position, lambda products: paper.softmax(factor * products)).reshape(*q.shape[:2], -1)

    def formula(one):
        whole = one.double().numpy().transpose(1, 2, 0)
        # The input of the keys and values is pooled, before the transforms.
        read = torch.from_numpy(paper.pooled(whole).transpose(2, 0, 1).copy()) if kind == "pool" else one
        parts = projected(query, one, query_bias), projected(key, read, key_bias), projected(value, read, value_bias)
        found = per_head(attend, HEADS, *parts) @ out.double().numpy().T
        return whole + found * scale.double().numpy() + shift.double().numpy()

    check_module(got, formula, x, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("content", ["global", "axial", "none"])
def test_global_self_attention_as_it_is_served(dtype, content):
    kind = TYPES[dtype][0]
    (x,) = maps(1, kind)
    query, key, value = (random(CHANNELS, CHANNELS, dtype=kind) for _ in range(3))
    query_bias, key_bias, value_bias, middle_scale, middle_shift, scale, shift = (random(CHANNELS, dtype=kind) for _ in range(7))
    columns, rows = (random(2 * 9 - 1, CHANNELS // HEADS, dtype=kind) for _ in range(2))
    has_keys = content != "none"
    got = OPS.gsa_module(x, query, key if has_keys else None, value, query_bias, key_bias if has_keys else None, value_bias, HEADS,
                         columns, rows, middle_scale, middle_shift, scale, shift, content)
    scales, shifts = (numpy.split(one.double().numpy(), HEADS) for one in (middle_scale, middle_shift))

    def attend(head, q, k, v):
        if content == "axial":
            return axial(q, k, v, columns, rows, scales[head], shifts[head])
        along = paper.column_attention(q, v, columns.double().numpy()) * scales[head] + shifts[head]
        along = paper.row_attention(q, along, rows.double().numpy())
        return along + (paper.content_attention(q, k, v) if content == "global" else 0)

    def formula(one):
        parts = (projected(*pair) for pair in ((query, one, query_bias), (key, one, key_bias), (value, one, value_bias)))
        return per_head(attend, HEADS, *parts) * scale.double().numpy() + shift.double().numpy()

    check_module(got, formula, x, dtype)

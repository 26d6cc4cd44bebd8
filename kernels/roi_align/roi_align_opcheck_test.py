"""Tests of RoIAlign from Python: against torchvision, torch.library.opcheck and gradients."""

import pytest
import torch
import torchvision
from torchvision.ops.poolers import LevelMapper

from kernels.common.opcheck import OPS, gradcheck, opcheck, opcheck_with_symbols

CHANNELS_LAST = torch.channels_last


def regions(count, batch, size, seed=0, dtype=torch.float32):
    """Returns regions inside, across the border, outside, and smaller than a pixel."""
    random = torch.Generator().manual_seed(seed)
    middle = torch.rand(count, 2, generator=random, dtype=torch.float64) * size * 1.3 - 0.15 * size
    extent = torch.rand(count, 2, generator=random, dtype=torch.float64) ** 2 * size + 0.1
    sample = torch.randint(batch, (count, 1), generator=random).double()
    return torch.cat([sample, middle - extent / 2, middle + extent / 2], 1).to(dtype)


def relative_error(got, expected):
    return ((got.double() - expected.double()).norm() / expected.double().norm()).item()


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("sampling_ratio", [-1, 0, 1, 2, 3])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, CHANNELS_LAST])
def test_is_torchvisions(aligned, sampling_ratio, memory_format):
    for seed, (batch, channels, height, width, bins) in enumerate((
            (2, 33, 13, 17, (7, 7)), (1, 64, 50, 68, (7, 7)), (3, 5, 31, 100, (14, 14)), (1, 1, 1, 1, (2, 3)),
            (2, 16, 7, 7, (1, 1)), (1, 3, 9, 40, (3, 19)), (1, 2, 130, 300, (5, 33)))):
        features = torch.randn(batch, channels, height, width).contiguous(memory_format=memory_format)
        rois = regions(60, batch, 4.0 * max(height, width), seed)
        got = OPS.roi_align(features, rois, 0.25, *bins, sampling_ratio, aligned)
        expected = torchvision.ops.roi_align(features, rois, bins, 0.25, sampling_ratio, aligned)
        assert got.shape == expected.shape
        assert relative_error(got, expected) <= 1e-6, (batch, channels, height, width, bins)
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=2e-5)
        got = OPS.roi_align(features.double(), rois.double(), 0.25, *bins, sampling_ratio, aligned)
        expected = torchvision.ops.roi_align(features.double(), rois.double(), bins, 0.25, sampling_ratio, aligned)
        assert relative_error(got, expected) <= 1e-13


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, CHANNELS_LAST])
@pytest.mark.parametrize("width", [12, 300])
def test_bins_outside_are_zero_beside_infinite_pixels(width, memory_format):
    features = (torch.rand(1, 4, 12, width) + 1).contiguous(memory_format=memory_format)
    rois = torch.tensor([[0.0, -1.5 * width, 2, 2.5 * width, 10]])
    outside = torchvision.ops.roi_align(features, rois, (3, 16), 1.0, 2, False) == 0
    features[..., 0] = features[..., -1] = float("inf")
    got = OPS.roi_align(features, rois, 1.0, 3, 16, 2, False)
    assert outside.any(-1).all() and not outside.all()
    assert (got[outside] == 0).all()


@pytest.mark.parametrize("sampling_ratio", [-1, 2])
def test_samples_on_the_border_count_as_torchvisions(sampling_ratio):
    """If a sample is exactly one pixel outside, the last bit of its position decides."""
    features = torch.rand(1, 4, 12, 12) + 1
    for scale in (1.0, 0.25, 1 / 3, 0.0625):
        edges = torch.tensor([-1.0, -0.5, 0.0, 11.0, 12.0, 12.5]) / scale
        low = (edges[:, None] + torch.randint(-3, 4, (6, 50)) * 1e-7 * edges.abs()[:, None]).flatten()
        rois = torch.stack([torch.zeros_like(low), low, low.flip(0), low + 4 / scale, low.flip(0) + 4 / scale], 1)
        for aligned in (False, True):
            got = OPS.roi_align(features, rois, scale, 4, 4, sampling_ratio, aligned)
            expected = torchvision.ops.roi_align(features, rois, (4, 4), scale, sampling_ratio, aligned)
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)


def test_regions_turned_around():
    features = torch.randn(1, 20, 15, 40)
    rois = regions(40, 1, 30.0)[:, [0, 3, 4, 1, 2]]
    for bins in ((7, 7), (3, 20)):
        got = OPS.roi_align(features, rois, 1.0, *bins, 2, True)
        assert relative_error(got, torchvision.ops.roi_align(features, rois, bins, 1.0, 2, True)) <= 1e-6
        assert OPS.roi_align(features, rois, 1.0, *bins, -1, True).abs().max() == 0


def pyramid(batch, channels, height, width, levels=4, dtype=torch.float32):
    scales = [2.0 ** -(2 + level) for level in range(levels)]
    return [torch.randn(batch, channels, round(height * s), round(width * s), dtype=dtype) for s in scales], scales


def edge_boxes():
    """Returns squares and rectangles with about the areas at which the level changes."""
    side = torch.tensor([14.0, 28.0, 56.0, 112.0, 224.0, 448.0, 896.0])
    side = (side[:, None] * (1 + torch.arange(-40, 41) * 2.0**-23)).flatten()
    squares = torch.stack([torch.zeros_like(side), torch.zeros_like(side), side, side], 1)
    oblongs = torch.stack([torch.ones_like(side), torch.ones_like(side), 1 + side * 2, 1 + side / 2], 1)
    return torch.cat([squares, oblongs])


@pytest.mark.parametrize("canonical_scale,canonical_level", [(224, 4), (100, 3)])
def test_levels_are_torchvisions(canonical_scale, canonical_level):
    """Each level is a constant, so the result shows which level a box was pooled from."""
    scales = [2.0**-k for k in range(2, 6)]
    boxes = torch.cat([edge_boxes(), regions(2000, 1, 1000.0)[:, 1:].abs(), torch.tensor([[5.0, 5.0, 5.0, 5.0]])])
    boxes = boxes[(boxes[:, 2:] >= boxes[:, :2]).all(1)]
    expected = LevelMapper(2, 5, canonical_scale, canonical_level)([boxes])
    levels = [torch.full((1, 1, 1000, 1000), float(k)) for k in range(2, 6)]
    rois = torch.cat([torch.zeros(len(boxes), 1), boxes], 1)
    got = OPS.roi_align_pyramid(levels, rois, scales, 1, 1, 1, False, canonical_scale, canonical_level)
    assert torch.equal(got.flatten().long() - 2, expected)
    assert expected.unique().numel() == 4


@pytest.mark.parametrize("levels", [1, 2, 4])
@pytest.mark.parametrize("sampling_ratio", [-1, 2])
def test_pyramid_is_torchvisions(levels, sampling_ratio):
    height, width = 256, 320
    maps, scales = pyramid(2, 24, height, width, levels)
    boxes = [regions(70, 1, 400.0, seed)[:, 1:].clamp(0, 300) + torch.tensor([0, 0, 1.0, 1.0]) for seed in (1, 2)]
    names = [str(i) for i in range(levels)]
    pooler = torchvision.ops.MultiScaleRoIAlign(names, 7, sampling_ratio)
    expected = pooler(dict(zip(names, maps)), boxes, [(height, width)] * 2)
    rois = torch.cat([torch.cat([torch.full((len(b), 1), float(i)), b], 1) for i, b in enumerate(boxes)])
    got = OPS.roi_align_pyramid(maps, rois, scales, 7, 7, sampling_ratio)
    assert relative_error(got, expected) <= 1e-6
    mixed = [m.contiguous(memory_format=CHANNELS_LAST) if i % 2 else m for i, m in enumerate(maps)]
    for mixture in (mixed, [m.contiguous(memory_format=CHANNELS_LAST) for m in maps]):
        assert relative_error(OPS.roi_align_pyramid(mixture, rois, scales, 7, 7, sampling_ratio), expected) <= 1e-6


def by_hand_3d(features, rois, scale, length, height, width):
    """One sample per bin of time, and whole bins of pixels: linear interpolation, then average pooling."""
    out = []
    for sample, first, last in rois.tolist():
        frames = features[int(sample)]
        step = max((last - first) * scale, 1.0) / length
        rows = []
        for i in range(length):
            at = min(max(first * scale + (i + 0.5) * step, 0.0), frames.shape[1] - 1.0)
            low = min(int(at), frames.shape[1] - 2)
            rows.append(torch.lerp(frames[:, low], frames[:, low + 1], at - low))
        out.append(torch.nn.functional.adaptive_avg_pool2d(torch.stack(rows, 1), (height, width)))
    return torch.stack(out)


def test_segments_are_pooled_along_time():
    features = torch.randn(2, 6, 16, 4, 6, dtype=torch.float64)
    rois = torch.tensor([[0, 3.0, 21.0], [1, 8.5, 9.0], [1, 0.0, 24.0], [0, 20.0, 24.0]], dtype=torch.float64)
    got = OPS.roi_align_3d(features, rois, 0.5, 12, 2, 3)
    torch.testing.assert_close(got, by_hand_3d(features, rois, 0.5, 12, 2, 3), rtol=1e-12, atol=1e-12)


def test_segments_are_roi_align_of_time():
    """A map that is constant over each image is pooled like the rows of roi_align."""
    line = torch.randn(2, 5, 40)
    rois = torch.tensor([[0, 3.0, 61.0], [1, -20.0, 9.0], [1, 70.0, 90.0], [0, 20.0, 21.0]])
    flat = torch.cat([rois[:, :1], torch.zeros(4, 1), rois[:, 1:2], torch.ones(4, 1), rois[:, 2:]], 1)
    for sampling_ratio in (-1, 2):
        for aligned in (False, True):
            expected = torchvision.ops.roi_align(line.unsqueeze(-1), flat, (8, 1), 0.5, sampling_ratio, aligned)
            got = OPS.roi_align_3d(line[..., None, None].expand(-1, -1, -1, 3, 5), rois, 0.5, 8, 2, 4,
                                   sampling_ratio, aligned)
            torch.testing.assert_close(got, expected[..., None].expand_as(got), rtol=1e-5, atol=1e-6)


VALID = torch.tensor([[9, 8], [5, 11]])


def test_opcheck():
    features = torch.randn(2, 3, 9, 11)
    rois = regions(5, 2, 12.0)
    opcheck(OPS.roi_align.default, (features.contiguous(memory_format=CHANNELS_LAST), rois, 0.5, 3, 2, 2, True, VALID))
    opcheck(OPS.roi_align.default, (features.clone().requires_grad_(), rois, 0.5, 3, 2, -1, True, VALID))
    opcheck_with_symbols(OPS.roi_align.default, (features, rois, 0.5, 3, 2))
    opcheck(OPS.roi_align.default, (features, rois[:0], 0.5, 3, 2))
    maps, scales = pyramid(1, 3, 64, 96, 3)
    opcheck_with_symbols(OPS.roi_align_pyramid.default, (maps, regions(5, 1, 60.0), scales, 3, 3))
    video = torch.randn(2, 3, 8, 4, 5)
    segments = regions(5, 2, 10.0)[:, [0, 1, 3]]
    opcheck_with_symbols(OPS.roi_align_3d.default, (video, segments, 1.0, 4, 2, 2))
    opcheck(OPS.roi_align_3d.default, (video.clone().requires_grad_(), segments, 1.0, 4, 2, 2))


@pytest.mark.parametrize("sampling_ratio", [-1, 2])
@pytest.mark.parametrize("valid", [None, VALID])
def test_gradients(sampling_ratio, valid):
    features = torch.randn(2, 2, 9, 11, dtype=torch.float64, requires_grad=True)
    rois = regions(4, 2, 12.0, dtype=torch.float64)
    assert gradcheck(lambda x: OPS.roi_align(x, rois, 0.5, 2, 3, sampling_ratio, True, valid), features)
    if valid is None:
        ours, theirs = (torch.autograd.grad(pool(features).square().sum(), features)[0] for pool in (
            lambda x: OPS.roi_align(x, rois, 0.5, 2, 3, sampling_ratio),
            lambda x: torchvision.ops.roi_align(x, rois, (2, 3), 0.5, sampling_ratio)))
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_gradients_of_pyramids_and_segments():
    maps, scales = pyramid(1, 2, 32, 48, 2, torch.float64)
    maps = [m.requires_grad_() for m in maps]
    boxes = torch.tensor([[0, 1.0, 2.0, 20.0, 30.0], [0, 0.0, 0.0, 300.0, 290.0]], dtype=torch.float64)
    assert gradcheck(lambda *m: OPS.roi_align_pyramid(m, boxes, scales, 2, 2), maps)
    video = torch.randn(1, 2, 5, 3, 4, dtype=torch.float64, requires_grad=True)
    segments = torch.tensor([[0, 0.5, 4.0], [0, 3.0, 9.0]], dtype=torch.float64)
    assert gradcheck(lambda x: OPS.roi_align_3d(x, segments, 1.0, 2, 2, 2), video)


def test_training_and_serving_agree():
    features = torch.randn(2, 7, 20, 30)
    rois = regions(50, 2, 60.0)
    for valid in (None, torch.tensor([[15, 30], [20, 9]])):
        for sampling_ratio in (-1, 2):
            served = OPS.roi_align(features, rois, 0.5, 5, 5, sampling_ratio, False, valid)
            trained = OPS.roi_align(features.clone().requires_grad_(), rois, 0.5, 5, 5, sampling_ratio, False, valid)
            assert trained.grad_fn is not None
            assert relative_error(served, trained.detach()) <= 1e-6


def test_compiles_without_a_graph_break():
    features, rois = torch.randn(1, 8, 20, 30), regions(9, 1, 40.0)
    compiled = torch.compile(lambda x, r: OPS.roi_align(x, r, 0.5, 7, 7) * 2, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(features, rois), OPS.roi_align(features, rois, 0.5, 7, 7) * 2)

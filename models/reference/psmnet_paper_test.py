"""Compares the served PSMNet with a network that shares no code with the reference: table 1 of "Pyramid Stereo Matching
Network" (Chang and Chen, 2018), written as functions of a dictionary of tensors in the layout of the authors' files."""

import pathlib

import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional

from models.reference import build
from models.reference.served import place, served, smooth_pictures

SIDES, DISPARITIES = (64, 96), 32
# A picture whose map is 64 x 128: the four poolings have windows of their own, as none is larger than the map.
WHOLE = (256, 512)
Tensors = dict[str, torch.Tensor]


# The layout of the authors' files: the tensors' names and shapes, with the outputs of a layer before its inputs.

def two_d(name: str, inputs: int, outputs: int, kernel: int) -> list[tuple]:
    return [(f"{name}.0.weight", (outputs, inputs, kernel, kernel)), (f"{name}.1", outputs)]


def three_d(name: str, inputs: int, outputs: int, turned: bool = False) -> list[tuple]:
    channels = (inputs, outputs) if turned else (outputs, inputs)
    return [(f"{name}.0.weight", (*channels, 3, 3, 3)), (f"{name}.1", outputs)]


def layout() -> list[tuple]:
    """A convolution's name and shape, or a batch norm's name and channels."""
    entries = []
    features = "feature_extraction."
    for index, inputs in ((0, 3), (2, 32), (4, 32)):
        entries += two_d(f"{features}firstconv.{index}", inputs, 32, 3)
    inputs = 32
    for stage, outputs, blocks in ((1, 32, 3), (2, 64, 16), (3, 128, 3), (4, 128, 3)):
        for block in range(blocks):
            name = f"{features}layer{stage}.{block}."
            entries += two_d(name + "conv1.0", inputs, outputs, 3) + two_d(name + "conv2", outputs, outputs, 3)
            if block == 0 and stage in (2, 3):
                entries += two_d(name + "downsample", inputs, outputs, 1)
            inputs = outputs
    for branch in (1, 2, 3, 4):
        entries += two_d(f"{features}branch{branch}.1", 128, 32, 1)
    entries += two_d(f"{features}lastconv.0", 320, 128, 3)
    entries.append((f"{features}lastconv.2.weight", (32, 128, 1, 1)))
    entries += three_d("dres0.0", 64, 32) + three_d("dres0.2", 32, 32)
    entries += three_d("dres1.0", 32, 32) + three_d("dres1.2", 32, 32)
    for hourglass in ("dres2.", "dres3.", "dres4."):
        entries += three_d(hourglass + "conv1.0", 32, 64) + three_d(hourglass + "conv2", 64, 64)
        entries += three_d(hourglass + "conv3.0", 64, 64) + three_d(hourglass + "conv4.0", 64, 64)
        entries += three_d(hourglass + "conv5", 64, 64, True) + three_d(hourglass + "conv6", 64, 32, True)
    for head in ("classif1", "classif2", "classif3"):
        entries += three_d(head + ".0", 32, 32)
        entries.append((f"{head}.2.weight", (1, 32, 3, 3, 3)))
    return entries


def drawn(seed: int) -> Tensors:
    """Random weights in this layout, with names as in the files, which were saved from a DataParallel."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(count: int, low: float, high: float) -> torch.Tensor:
        return low + (high - low) * torch.rand(count, generator=generator, dtype=torch.float64)

    tensors = {}
    for name, shape in layout():
        if isinstance(shape, int):
            tensors[f"module.{name}.weight"] = uniform(shape, 0.5, 1.5)
            tensors[f"module.{name}.bias"] = uniform(shape, -0.2, 0.2)
            tensors[f"module.{name}.running_mean"] = uniform(shape, -0.2, 0.2)
            tensors[f"module.{name}.running_var"] = uniform(shape, 0.5, 1.5)
        else:
            weights = torch.randn(*shape, generator=generator, dtype=torch.float64)
            tensors[f"module.{name}"] = weights * weights[0].numel() ** -0.5
    return tensors


# The network. Batch norms take their statistics from the file; `measured` replaces these by the batch's own. `aligned` says how
# maps are enlarged: the paper does not; its authors' advice is true.

class Layers:
    def __init__(self, tensors: Tensors, measured: bool = False, aligned: bool = True):
        self.tensors, self.measured, self.aligned = tensors, measured, aligned

    def weight(self, name: str) -> torch.Tensor:
        return self.tensors[f"module.{name}.weight"]

    def norm(self, name: str, x: torch.Tensor) -> torch.Tensor:
        shape = (1, -1) + (1,) * (x.dim() - 2)
        mean, variance = (self.tensors[f"module.{name}.{part}"] for part in ("running_mean", "running_var"))
        if self.measured:
            axes = [0, *range(2, x.dim())]
            mean.copy_(x.mean(axes))
            variance.copy_(((x - mean.view(shape)) ** 2).mean(axes))
        scaled = (x - mean.view(shape)) / (variance.view(shape) + 1e-5).sqrt()
        return scaled * self.weight(name).view(shape) + self.tensors[f"module.{name}.bias"].view(shape)

    def conv(self, name: str, x: torch.Tensor, stride: int = 1, dilation: int = 1, relu: bool = False) -> torch.Tensor:
        weight = self.weight(f"{name}.0")
        convolve = functional.conv2d if x.dim() == 4 else functional.conv3d
        padding = dilation * (weight.shape[-1] - 1) // 2
        y = self.norm(f"{name}.1", convolve(x, weight, stride=stride, padding=padding, dilation=dilation))
        return y.clamp(min=0) if relu else y

    def doubled(self, name: str, x: torch.Tensor) -> torch.Tensor:
        y = functional.conv_transpose3d(x, self.weight(f"{name}.0"), stride=2, padding=1, output_padding=1)
        return self.norm(f"{name}.1", y)


def features(net: Layers, view: torch.Tensor) -> torch.Tensor:
    """The CNN and SPP modules of table 1: [1, 3, H, W] to [1, 32, H / 4, W / 4]."""
    prefix = "feature_extraction."
    x = net.conv(prefix + "firstconv.0", view, stride=2, relu=True)  # conv0_1
    x = net.conv(prefix + "firstconv.2", x, relu=True)
    x = net.conv(prefix + "firstconv.4", x, relu=True)
    kept = {}
    # conv1_x to conv4_x: "3x3, 32 x 3; 3x3, 64 x 16; 3x3, 128 x 3; 3x3, 128 x 3, dila = 2"
    for stage, blocks, stride, dilation in ((1, 3, 1, 1), (2, 16, 2, 1), (3, 3, 1, 1), (4, 3, 1, 2)):
        for block in range(blocks):
            name = f"{prefix}layer{stage}.{block}."
            step = stride if block == 0 else 1
            y = net.conv(name + "conv1.0", x, step, dilation, relu=True)
            y = net.conv(name + "conv2", y, 1, dilation)
            if f"module.{name}downsample.0.weight" in net.tensors:
                x = net.conv(name + "downsample", x, step)
            x = x + y
        kept[stage] = x
    height, width = x.shape[2:]
    joined = [kept[2], kept[4]]
    for branch, side in ((4, 8), (3, 16), (2, 32), (1, 64)):  # "concat[conv2_16, conv4_3, branch_1, ..., branch_4]"
        rows, columns = min(side, height), min(side, width)
        pooled = torch.stack([torch.stack([x[..., top:top + rows, left:left + columns].mean((2, 3))
                                           for left in range(0, width - columns + 1, columns)], dim=2)
                              for top in range(0, height - rows + 1, rows)], dim=2)
        narrow = net.conv(f"{prefix}branch{branch}.1", pooled, relu=True)
        joined.append(enlarged(enlarged(narrow, 2, height, net.aligned), 3, width, net.aligned))
    fused = net.conv(prefix + "lastconv.0", torch.cat(joined, 1), relu=True)
    return functional.conv2d(fused, net.weight(prefix + "lastconv.2"))


def enlarged(x: torch.Tensor, axis: int, length: int, aligned: bool) -> torch.Tensor:
    """Linear interpolation along one axis. If `aligned`, the first and last values stay at the ends; otherwise each value stands for
    a part of the same length, in its middle."""
    known = x.shape[axis]
    places = torch.arange(length, dtype=x.dtype)
    if aligned:
        places = places * ((known - 1) / (length - 1) if length > 1 else 0)
    else:
        places = ((places + 0.5) * known / length - 0.5).clamp(0, known - 1)
    low = places.floor().long().clamp(max=known - 1)
    high = (low + 1).clamp(max=known - 1)
    part = (places - low).view([-1 if i == axis else 1 for i in range(x.dim())])
    return x.index_select(axis, low) * (1 - part) + x.index_select(axis, high) * part


def hourglass(net: Layers, name: str, x: torch.Tensor, before: torch.Tensor | None, after: torch.Tensor | None):
    """3Dstack: returns the output, and the maps that the next stacks add."""
    down = net.conv(name + "conv2", net.conv(name + "conv1.0", x, 2, relu=True))
    down = (down if after is None else down + after).clamp(min=0)
    up = net.conv(name + "conv4.0", net.conv(name + "conv3.0", down, 2, relu=True), relu=True)
    up = (net.doubled(name + "conv5", up) + (down if before is None else before)).clamp(min=0)
    return net.doubled(name + "conv6", up), down, up


def disparities(net: Layers, pair: torch.Tensor) -> torch.Tensor:
    """The disparity [H, W] of a pair [6, H, W], left before right."""
    left, right = features(net, pair[None, :3]), features(net, pair[None, 3:])
    planes, width = DISPARITIES // 4, left.shape[3]
    cost = left.new_zeros(1, 64, planes, *left.shape[2:])
    for d in range(planes):
        for x in range(d, width):
            cost[0, :32, d, :, x] = left[0, :, :, x]
            cost[0, 32:, d, :, x] = right[0, :, :, x - d]
    x = net.conv("dres0.2", net.conv("dres0.0", cost, relu=True), relu=True)
    x = x + net.conv("dres1.2", net.conv("dres1.0", x, relu=True))
    out1, before, after = hourglass(net, "dres2.", x, None, None)
    out1 = out1 + x
    out2, _, after = hourglass(net, "dres3.", out1, before, after)
    out2 = out2 + x
    out3 = hourglass(net, "dres4.", out2, before, after)[0] + x
    costs = 0
    for head, out in (("classif1", out1), ("classif2", out2), ("classif3", out3)):
        costs = costs + functional.conv3d(net.conv(head + ".0", out, relu=True), net.weight(head + ".2"), padding=1)
    for axis, length in ((2, DISPARITIES), (3, pair.shape[1]), (4, pair.shape[2])):
        costs = enlarged(costs, axis, length, net.aligned)
    weights = (costs[0, 0] - costs[0, 0].max()).exp()
    likely = weights / weights.sum(0)
    return sum(d * likely[d] for d in range(DISPARITIES))


def pictures(seed: int) -> torch.Tensor:
    """The right picture is the left one moved by 9 pixels."""
    wide = smooth_pictures(1, SIDES[0], SIDES[1] + 9, torch.Generator().manual_seed(seed), noise=0.1, grain=4)[0].double()
    return torch.cat([wide[..., :-9], wide[..., 9:]])


@pytest.fixture(scope="module")
def settled() -> Tensors:
    """Weights whose batch norms have the statistics of a pair, and whose costs are neither flat nor a single peak."""
    tensors = drawn(1)
    with torch.inference_mode():
        disparities(Layers(tensors, measured=True), pictures(2))
    return tensors


def test_the_layout_is_the_published_network():
    """5.2 M parameters in the paper; the authors' files hold 5,224,768, without statistics."""
    sizes = [2 * shape if isinstance(shape, int) else torch.Size(shape).numel() for _, shape in layout()]
    assert sum(sizes) == 5_224_768
    known = build("ea_psmnet", attention="none").state_dict()
    drawn_shapes = {name.removeprefix("module."): tensor.shape for name, tensor in drawn(0).items()}
    assert drawn_shapes == {name: tensor.shape for name, tensor in known.items() if "num_batches" not in name}


def test_the_twin_s_features_are_the_paper_s_for_a_picture_larger_than_every_pooling(settled: Tensors):
    """In the other tests' pictures the two largest poolings have the whole map as their window, and could be one another."""
    view = smooth_pictures(1, *WHOLE, torch.Generator().manual_seed(4), noise=0.1, grain=4).double()
    found = {}
    for aligned in (True, False):
        twin = build("ea_psmnet", attention="none", align_corners=aligned).double().eval()
        twin.load_state_dict({name.removeprefix("module."): tensor for name, tensor in settled.items()}, strict=False)
        with torch.inference_mode():
            found[aligned] = expected = features(Layers(settled, aligned=aligned), view)
            assert (twin.feature_extraction(view) - expected).abs().max() < 1e-10 * expected.abs().max()
    assert (found[True] - found[False]).abs().max() > 1e-3 * found[True].abs().max()


@pytest.mark.parametrize("aligned", [True, False])
def test_the_served_network_is_the_paper_s(tmp_path: pathlib.Path, settled: Tensors, aligned: bool):
    save_file({name: tensor.float().clone() for name, tensor in settled.items()}, str(tmp_path / "weights"))
    pair = pictures(3)
    with torch.inference_mode():
        expected = disparities(Layers({name: tensor.float().double() for name, tensor in settled.items()}, aligned=aligned), pair)
    got = served(tmp_path, "ea_psmnet", tmp_path / "weights", pair[None], [place(*SIDES)],
                 {"attention": "none", "max_disparity": DISPARITIES, "align_corners": str(aligned).lower()})[0]["disparity"].double()
    spread = (expected - expected.mean()).norm()
    assert spread > 1e-2 * expected.norm()
    error = ((got - expected).norm() / spread).item()
    print(f"\nthe served network and the paper's differ by {error:.1e} of the disparities' spread", end="")
    assert error < 1e-4


def test_each_part_of_the_paper_matters(settled: Tensors):
    """Otherwise an error in it would not be seen: without any one of these tensors the answer moves. In float32, which is
    several times faster."""
    pair = pictures(3).float()
    settled = {name: tensor.float() for name, tensor in settled.items()}
    with torch.inference_mode():
        expected = disparities(Layers(settled), pair)
        for name in ("feature_extraction.branch1.1.0", "dres1.2.0", "dres2.conv5.0", "classif1.2"):
            other = {**settled, f"module.{name}.weight": torch.zeros_like(settled[f"module.{name}.weight"])}
            moved = (disparities(Layers(other), pair) - expected).norm() / (expected - expected.mean()).norm()
            assert moved > 1e-2, name

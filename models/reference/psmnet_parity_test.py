"""Compares the served EA-PSMNet with the reference: disparities of the C++ side, with weights saved here."""

import pathlib

import pytest
import torch
from torch.nn import functional

from models.reference import build
from models.reference.served import padded, place, run_model, save, served, settle, smooth_pictures, whole
from tests.long_form import in_long_form

# Full depth, but narrow and with a small maximum disparity.
NARROW = {"width": 0.25, "max_disparity": 48}
TEST_BUCKETS = "128x256"


def pairs(count: int, height: int, width: int, generator: torch.Generator, largest: int = 20) -> torch.Tensor:
    """Smooth stereo pictures: the right one is the left one, shifted more and more towards the bottom."""
    wide = smooth_pictures(count, height, width + largest, generator, noise=0.1, grain=4)
    columns = torch.arange(width) + (torch.arange(height) * largest // height)[:, None]
    moved = wide.gather(3, columns.expand(count, 3, height, width))
    return torch.cat([wide[..., :width], moved], dim=1)


def trained(options: dict, height: int = 64, width: int = 128) -> torch.nn.Module:
    """Random weights with matching batch norm statistics. The costs vary about as much as trained ones: the softmax
    over disparities is neither flat nor a single peak, either of which would hide errors."""
    torch.manual_seed(1)
    network = build("ea_psmnet", **options)
    generator = torch.Generator().manual_seed(2)
    for name, parameter in network.named_parameters():
        if parameter.dim() == 1:
            if name.endswith("weight"):
                torch.nn.init.uniform_(parameter, 0.5, 1.5, generator=generator)
            else:
                torch.nn.init.normal_(parameter, 0, 0.2, generator=generator)
        if name.startswith("attention."):
            torch.nn.init.normal_(parameter, 0, 0.3, generator=generator)
    with torch.no_grad():
        for head in (network.classif1, network.classif2, network.classif3):
            head[2].weight.normal_(0, 0.1, generator=generator)
    return settle(network, [pairs(4, height, width, generator) for _ in range(2)])


def relative_error(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Error relative to the variation of disparities, which must not be constant."""
    spread = (expected - expected.mean()).norm()
    assert spread > 1e-2 * expected.norm()
    return ((got.double() - expected).norm() / spread).item()


class InDouble(torch.nn.Module):
    """A module of a float32 network, computed in double precision."""

    def __init__(self, module: torch.nn.Module):
        super().__init__()
        self.module = module.double()

    def forward(self, x: torch.Tensor, *arguments) -> torch.Tensor:
        return self.module(x.double(), *arguments).to(x.dtype)


def expect_agreement(folder: pathlib.Path, options: dict, height: int, width: int, count: int = 1):
    network = trained(options)
    weights = save(network, folder / "weights")
    batch = pairs(count, height, width, torch.Generator().manual_seed(3))
    got = served(folder, "ea_psmnet", weights, batch, whole(batch), options)
    network = network.double()
    for pair, result in zip(batch, got):
        with torch.inference_mode():
            expected = network(pair[None].double())[0]
        assert expected.min() >= 0 and expected.max() <= int(options.get("max_disparity", 192)) - 1
        assert relative_error(result["disparity"], expected) < 1e-4


@pytest.mark.parametrize("options", [
    NARROW,
    {**NARROW, "attention": "none"},
    {**NARROW, "normalization": "scaling"},
    {**NARROW, "key_channels": 8, "value_channels": 8},  # the map's own channels: no reprojection
    {**NARROW, "heads": 4},
    {**NARROW, "exact": False},
    {**NARROW, "align_corners": False},
], ids=lambda options: ",".join(f"{name}={value}" for name, value in options.items() if name not in NARROW) or "default")
def test_disparities_agree(tmp_path: pathlib.Path, options: dict):
    expect_agreement(tmp_path, options, 64, 112, count=2)


@pytest.mark.parametrize("height,width", [(16, 16), (16, 272), (288, 80), *in_long_form((272, 320))], ids=str)
def test_disparities_agree_at_other_sizes(tmp_path: pathlib.Path, height: int, width: int):
    """Down to the minimum; below 256 pixels the largest pools have the map's size."""
    expect_agreement(tmp_path, {**NARROW, "max_disparity": 16}, height, width)


def test_disparities_agree_at_full_width(tmp_path: pathlib.Path):
    expect_agreement(tmp_path, {"max_disparity": 32}, 48, 96)


def test_disparities_agree_at_full_size(tmp_path: pathlib.Path):
    """The reference's convolutions run in float32, as PyTorch unfolds a volume for those in double precision, which
    takes 20 GB. Its attention runs in double precision, as its float32 sums over 1.6 million positions are off by
    1.1e-4, more than the tolerance."""
    options: dict = {}
    network = trained(options, 128, 256)
    weights = save(network, tmp_path / "weights")
    batch = pairs(1, 544, 960, torch.Generator().manual_seed(3))
    got = served(tmp_path, "ea_psmnet", weights, batch, whole(batch), options)
    network.attention = InDouble(network.attention)
    with torch.inference_mode():
        expected = network(batch)[0].double()
    assert relative_error(got[0]["disparity"], expected) < 1e-4


def test_a_trained_checkpoint_loads_as_its_authors_save_it(tmp_path: pathlib.Path):
    options = {**NARROW, "attention": "none"}
    network = trained(options)
    state = {"module." + name: tensor for name, tensor in network.state_dict().items()}
    # The authors' files are of PyTorch 0.4: a stream of pickles, and no archive.
    torch.save({"epoch": 10, "state_dict": state, "train_loss": 0.5}, tmp_path / "weights.tar",
               _use_new_zipfile_serialization=False)
    batch = pairs(1, 64, 96, torch.Generator().manual_seed(3))
    with torch.inference_mode():
        expected = network.double()(batch.double())[0]
    got = served(tmp_path, "ea_psmnet", tmp_path / "weights.tar", batch, whole(batch), options)
    assert relative_error(got[0]["disparity"], expected) < 1e-4
    # If attention is requested, it is left out, and a note says so.
    ran = run_model(tmp_path, "ea_psmnet", tmp_path / "weights.tar", batch, whole(batch), NARROW)
    assert ran.returncode == 0 and "attention" in ran.stderr and "identity" in ran.stderr
    again = served(tmp_path, "ea_psmnet", tmp_path / "weights.tar", batch, whole(batch), NARROW)
    assert torch.equal(again[0]["disparity"], got[0]["disparity"])


def test_disparities_of_a_scaled_pair_are_those_of_the_sent_one(tmp_path: pathlib.Path):
    options = {**NARROW, "long_side": 128}
    network = trained(options)
    weights = save(network, tmp_path / "weights")
    sent = 100, 250
    placement = place(*sent, long_side=128, buckets="stride:16")
    assert placement[2:] == [51, 128, 64, 128]
    batch = padded([pairs(1, *placement[2:4], torch.Generator().manual_seed(3))[0]], [placement])
    with torch.inference_mode():
        disparities = network.double()(batch.double())[:, :51, :128]
    expected = functional.interpolate(disparities[None], size=sent, mode="bilinear") * (250 / 128)
    got = served(tmp_path, "ea_psmnet", weights, batch, [placement], options)
    assert relative_error(got[0]["disparity"], expected[0, 0]) < 1e-4


def test_padding_to_a_bucket_is_kept_from_attention_and_exact_leaves_it_out(tmp_path: pathlib.Path):
    """Attention sees the padding up to a multiple of 16, which the network needs: 96 x 144 of a picture of 90 x 140."""
    options = {**NARROW, "buckets": TEST_BUCKETS}
    network = trained(options)
    weights = save(network, tmp_path / "weights")
    generator = torch.Generator().manual_seed(3)
    placements = [place(90, 140, buckets=TEST_BUCKETS), place(128, 256, buckets=TEST_BUCKETS)]
    batch = padded([pairs(1, *placement[2:4], generator)[0] for placement in placements], placements)
    assert batch.shape[2:] == (128, 256)
    network = network.double()
    with torch.inference_mode():
        bucket = network(batch[:1].double(), valid=[(96, 144)])[0, :90, :140]
        alone = network(batch[:1, :, :96, :144].double())[0, :90, :140]
        unpadded = network(batch[1:].double())[0]
    got = served(tmp_path, "ea_psmnet", weights, batch, placements, {**options, "exact": False})
    exact = served(tmp_path, "ea_psmnet", weights, batch, placements, {**options, "exact": True})
    assert relative_error(got[0]["disparity"], bucket) < 1e-4
    assert relative_error(exact[0]["disparity"], alone) < 1e-4
    assert relative_error(bucket, alone) > 1e-3  # otherwise the two comparisons above would be the same
    for result in (got, exact):
        assert relative_error(result[1]["disparity"], unpadded) < 1e-4


def test_what_padding_does_at_full_size(tmp_path: pathlib.Path):
    """A bucket of the default grid has only the padding that the network needs; a coarse list has more."""
    network = trained({}, 128, 256)
    weights = save(network, tmp_path / "weights")
    pair = pairs(1, 375, 500, torch.Generator().manual_seed(5))[0]

    def disparities(buckets: str, exact: bool) -> torch.Tensor:
        placement = place(375, 500, buckets=buckets)
        batch = padded([pair], [placement])
        [result] = served(tmp_path, "ea_psmnet", weights, batch, [placement], {"buckets": buckets, "exact": exact})
        return result["disparity"]

    expected = disparities("stride:16", True)
    assert torch.equal(disparities("stride:16", False), expected)
    assert torch.equal(disparities("544x960", True), expected)
    off = (disparities("544x960", False) - expected).abs()
    print(f"\n375x500 in 544x960: disparities off by {off.mean():.2g} pixels on average, {off.max():.2g} at most; 99 % by "
          f"less than {off.flatten().kthvalue(int(0.99 * off.numel())).values:.2g}; exact: not at all", end="")
    assert off.max() > 1e-2  # otherwise `exact` would be pointless


def test_parameters_as_published():
    def count(**options) -> int:
        return sum(parameter.numel() for parameter in build("ea_psmnet", **options).parameters())

    assert count(attention="none") == 5_224_768
    assert count() == 5_224_768 + 2_112

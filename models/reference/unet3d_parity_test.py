"""Compares the served restoring U-Nets with the reference: volumes of the C++ side, with weights saved here."""

import pathlib

import numpy as np
import pytest
import torch
from torch.nn import functional

from models.reference import build
from models.reference.served import run_model, save, served, settle, whole
from models.reference.unet3d import PERCENTILES, percentiles
from tests.long_form import in_long_form

DENOISE, PROJECT = "unet3d_sao_denoise", "unet3d_sao_project"
NARROW = {"width": 0.25}


def volumes(count: int, depth: int, height: int, width: int, seed: int = 3) -> torch.Tensor:
    """Blobs with noise, far from zero and with a range of hundreds, as a microscope's counts."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn(count, 1, max(2, depth // 4), max(2, height // 4), max(2, width // 4), generator=generator)
    smooth = functional.interpolate(coarse, size=(depth, height, width), mode="trilinear")
    noise = torch.randn(smooth.shape, generator=generator)
    return 400 + 120 * smooth + 40 * noise


def trained(architecture: str, options: dict) -> torch.nn.Module:
    """Random weights with matching batch norm statistics; attention adds about a third of its input."""
    torch.manual_seed(1)
    network = build(architecture, **options)
    generator = torch.Generator().manual_seed(2)
    for name, parameter in network.named_parameters():
        if parameter.dim() != 1:
            continue
        if name.endswith("attention.bn.weight"):
            torch.nn.init.uniform_(parameter, 0.2, 0.4, generator=generator)
        elif name.endswith("weight") or name.endswith(".w"):
            torch.nn.init.uniform_(parameter, 0.5, 1.5, generator=generator)
        else:
            torch.nn.init.normal_(parameter, 0, 0.2, generator=generator)
    if not network.percentile:  # weights for volumes that are not normalised
        return settle(network, [volumes(2, 12, 24, 24, seed) / 400 for seed in range(2)])
    return settle(network, [volumes(2, 12, 24, 24, seed) for seed in range(2)])


def answers(folder: pathlib.Path, architecture: str, network: torch.nn.Module, batch: torch.Tensor,
            options: dict) -> torch.Tensor:
    weights = save(network, folder / "weights")
    got = served(folder, architecture, weights, batch, whole(batch), options)
    return torch.stack([result["restored"] for result in got])


def error(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Error relative to the variation of the values in a volume."""
    assert got.shape == expected.shape
    return ((got.double() - expected).norm() / (expected - expected.mean()).norm()).item()


def expect_agreement(folder: pathlib.Path, architecture: str, options: dict, sides: tuple, count: int = 1) -> float:
    network = trained(architecture, options)
    batch = volumes(count, *sides)
    if not network.percentile:
        batch = batch / 400
    got = answers(folder, architecture, network, batch, options)
    with torch.inference_mode():
        expected = network.double()(batch.double())[:, 0]
    off = error(got, expected)
    print(f"\n{architecture} {options} {sides}: {off:.1e}", end="")
    assert off < 1e-4
    return off


OPTIONS = [
    NARROW,
    {**NARROW, "attention": "none"},
    {**NARROW, "attention": "attn"},
    {**NARROW, "attention": "attn", "heads": 4, "tile": 8},
    {**NARROW, "heads": 4},
    {**NARROW, "similarity": "ones"},
    {**NARROW, "global_term": False},
    {**NARROW, "normalize": "none"},
    {**NARROW, "residual": False},
    {**NARROW, "tile": 0},
    {**NARROW, "tile": 8},
    {**NARROW, "tile": 8, "attention": "none"},
    {**NARROW, "tile": 5, "heads": 2},
]


def label(options: dict) -> str:
    return ",".join(f"{name}={value}" for name, value in options.items() if name not in NARROW) or "default"


@pytest.mark.parametrize("options", OPTIONS, ids=label)
def test_denoised_volumes_agree(tmp_path: pathlib.Path, options: dict):
    expect_agreement(tmp_path, DENOISE, options, (7, 14, 22), count=2)


@pytest.mark.parametrize("options", OPTIONS, ids=label)
def test_projections_agree(tmp_path: pathlib.Path, options: dict):
    expect_agreement(tmp_path, PROJECT, options, (5, 22, 35), count=2)


@pytest.mark.parametrize("sides", [(1, 1, 5), (2, 3, 33), (7, 8, 100), *in_long_form((4, 4, 4), (16, 64, 64))], ids=str)
@pytest.mark.parametrize("tile", [0, 16])
@pytest.mark.parametrize("architecture", [DENOISE, PROJECT])
def test_other_sizes_agree(tmp_path: pathlib.Path, architecture: str, tile: int, sides: tuple):
    expect_agreement(tmp_path, architecture, {**NARROW, "tile": tile}, sides)


@pytest.mark.parametrize("architecture", [DENOISE, PROJECT])
def test_full_width_agrees(tmp_path: pathlib.Path, architecture: str):
    expect_agreement(tmp_path, architecture, {"tile": 16}, (8, 24, 36))


@pytest.mark.parametrize("architecture", [DENOISE, PROJECT])
@pytest.mark.parametrize("attention", ["sao", "attn", "none"])
def test_tiles_change_nothing(tmp_path: pathlib.Path, architecture: str, attention: str):
    options = {**NARROW, "attention": attention}
    network = trained(architecture, options)
    # Small, because tiles of 2 are computed with margins many times as large.
    batch = volumes(1, 6, 19, 27)
    expected = answers(tmp_path, architecture, network, batch, {**options, "tile": 0})
    for tile in (2, 10, 20):
        got = answers(tmp_path, architecture, network, batch, {**options, "tile": tile})
        off = ((got - expected).abs().max() / expected.abs().max()).item()
        print(f"\n{architecture} attention={attention} tile={tile}: {off:.1e}", end="")
        assert off < 1e-5


@pytest.mark.parametrize("architecture", [DENOISE, PROJECT])
def test_every_weight_matters(tmp_path: pathlib.Path, architecture: str):
    options = {**NARROW, "heads": 2, "tile": 10}
    network = trained(architecture, options)
    batch = volumes(1, 4, 16, 20)
    expected = answers(tmp_path, architecture, network, batch, options)
    for name, tensor in network.state_dict().items():
        if "running" in name or "num_batches" in name or ".bn" in name and "attention" not in name:
            continue
        saved = tensor.clone()
        tensor.mul_(1.5).add_(0.1)
        got = answers(tmp_path, architecture, network, batch, options)
        assert error(got, expected.double()) > 1e-6 or name == "projection.output.bias", name  # softmax ignores it
        tensor.copy_(saved)


def test_attention_reaches_across_a_volume(tmp_path: pathlib.Path):
    """Beyond the reach of convolutions: a change in one corner changes the result in the other."""
    network = trained(DENOISE, {**NARROW, "normalize": "none"})
    batch = volumes(1, 4, 16, 120) / 400
    other = batch.clone()
    other[..., :24] += 1
    for attention, reached in (("sao", True), ("attn", True), ("none", False)):
        options = {**NARROW, "normalize": "none", "attention": attention, "tile": 16}
        if attention != "sao":
            network = trained(DENOISE, options)
        corners = [answers(tmp_path, DENOISE, network, each, options)[..., -24:] for each in (batch, other)]
        assert ((corners[0] - corners[1]).abs().max() > 1e-4) == reached


def test_percentiles_are_numpy_s():
    for count in (1, 2, 7, 4000):
        values = torch.randn(count, dtype=torch.float64)
        assert np.allclose([value.item() for value in percentiles(values)], np.percentile(values.numpy(), PERCENTILES),
                           rtol=1e-14)


def test_a_volume_that_is_not_finite_fails(tmp_path: pathlib.Path):
    network = trained(DENOISE, NARROW)
    batch = volumes(1, 4, 8, 8)
    batch[0, 0, 1, 2, 3] = float("nan")
    ran = run_model(tmp_path, DENOISE, save(network, tmp_path / "weights"), batch, whole(batch), NARROW)
    assert ran.returncode != 0 and "not finite" in ran.stderr


@pytest.mark.parametrize("architecture,expected", [(DENOISE, 1_016_129), (PROJECT, 395_586)])
def test_parameters(architecture: str, expected: int):
    count = sum(parameter.numel() for parameter in build(architecture).parameters())
    assert count == expected

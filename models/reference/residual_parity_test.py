"""Compares the residual classifiers with the reference: the C++ side must compute the same logits from saved
weights."""

import pathlib

import pytest
import torch
import torchvision

from models.reference import build
from models.reference.explicit_attention import MAPS, explicit_map
from models.reference.served import relative_error, run_model, save, served, settle, smooth_pictures
from tests.long_form import LONG

# Every channel and layer, on pictures that are small outside the long form.
WHOLE = {} if LONG else {"input_size": 96}
NARROW = {"width": 0.25, "classes": 10, "input_size": 64, "blocks": "1,2,1,1"}


def pictures(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    return smooth_pictures(count, size, size, generator)


def trained(network: torch.nn.Module, size: int) -> torch.nn.Module:
    """Random weights with matching batch norm statistics."""
    generator = torch.Generator().manual_seed(2)
    for name, parameter in network.named_parameters():
        if "conv2.middle" in name or (".bn2." in name and hasattr(network, "layer4") and
                                      type(network.layer4[0].conv2).__name__ == "GlobalSelfAttention"):
            # GSA has no softmax over its queries: its result grows with the cube of its input, and an untrained network
            # at full strength turns 1e-7 at its input into 1e-3 at its output.
            torch.nn.init.uniform_(parameter, 0.05, 0.2, generator=generator)
        elif name.endswith("bn3.weight"):
            # The branches add little to their input, as after training, so that rounding errors do not grow.
            torch.nn.init.uniform_(parameter, 0.1, 0.5, generator=generator)
        elif name.endswith("sigma"):
            torch.nn.init.uniform_(parameter, 0.3, 1.2, generator=generator)
        elif parameter.dim() == 1 and name.endswith("weight"):
            torch.nn.init.uniform_(parameter, 0.5, 1.5, generator=generator)
        elif parameter.dim() == 1:
            torch.nn.init.normal_(parameter, 0, 0.2, generator=generator)
    return settle(network, [pictures(4, size, generator) for _ in range(2)])


def check(folder: pathlib.Path, architecture: str, options: dict, network: torch.nn.Module | None = None):
    torch.manual_seed(1)
    size = int(options.get("input_size", 32 if options.get("form") == "cifar" else 224))
    network = trained(network or build(architecture, **options), size)
    weights = save(network, folder / "weights")
    batch = pictures(2, size, torch.Generator().manual_seed(3))
    with torch.inference_mode():
        expected = network.double()(batch.double())
    placements = [[size] * 6] * len(batch)
    got = torch.stack([result["logits"] for result in served(folder, architecture, weights, batch, placements, options)])
    assert relative_error(got, expected) < 1e-4


@pytest.mark.parametrize("architecture", ["expatt_resnet34", "expatt_resnet50", "gsa_resnet38", "gsa_resnet50"])
def test_the_whole_agrees(tmp_path: pathlib.Path, architecture: str):
    check(tmp_path, architecture, WHOLE)


@pytest.mark.parametrize("architecture", ["expatt_resnet101", "expatt_resnet152", "gsa_resnet101"])
def test_the_deep_ones_agree(tmp_path: pathlib.Path, architecture: str):
    check(tmp_path, architecture, {"width": 0.25, "input_size": 96})


@pytest.mark.parametrize("kind", MAPS)
def test_maps_agree(tmp_path: pathlib.Path, kind: str):
    check(tmp_path, "expatt_resnet50", {**NARROW, "map": kind})


@pytest.mark.parametrize("kind", MAPS)
def test_maps_without_plus_one_agree(tmp_path: pathlib.Path, kind: str):
    """The ablation "without using element-wise plus one in Eq. 5": Norm(G)."""
    check(tmp_path, "expatt_resnet50", {**NARROW, "map": kind, "plus_one": False})


@pytest.mark.parametrize("options", [{}, {"plus_one": False}, {"map": "exponential_euclidean"}, {"form": "cifar"}],
                         ids=str)
def test_maps_of_heads_agree(tmp_path: pathlib.Path, options: dict):
    """The ablation "using different attention-maps across heads". Heads whose radii are equal would hide errors."""
    options = {**NARROW, "shared_map": False, **options}
    if "form" in options:
        options["input_size"] = 32
    network = build("expatt_resnet50", **options)
    assert {len(tensor) for name, tensor in network.state_dict().items() if name.endswith("sigma")} == {8}
    check(tmp_path, "expatt_resnet50", options, network)


def test_maps_without_plus_one_agree_in_basic_blocks_and_near_their_limit(tmp_path: pathlib.Path):
    """With a small radius G is nearly the identity, so that Norm(G + 1) and Norm(G) differ most."""
    options = {**NARROW, "plus_one": False}
    check(tmp_path, "expatt_resnet34", options)
    network = trained(build("expatt_resnet50", **options), 64)
    with torch.no_grad():
        network.layer2[0].conv2.sigma.fill_(0.03)
    batch = pictures(1, 64, torch.Generator().manual_seed(3))
    weights = save(network, tmp_path / "small")
    got = served(tmp_path, "expatt_resnet50", weights, batch, [[64] * 6], options)[0]["logits"]
    other = served(tmp_path, "expatt_resnet50", weights, batch, [[64] * 6], NARROW)[0]["logits"]
    with torch.inference_mode():
        assert relative_error(got, network.double()(batch.double())[0]) < 1e-4
    assert (got - other).norm() > 1e-2 * got.norm()


def test_a_bad_radius_of_one_head_is_refused(tmp_path: pathlib.Path):
    options = {**NARROW, "shared_map": False}
    network = build("expatt_resnet50", **options)
    with torch.no_grad():
        network.layer2[0].conv2.sigma[5] = 0
    ran = run_model(tmp_path, "expatt_resnet50", save(network, tmp_path / "weights"),
                    pictures(1, 64, torch.Generator().manual_seed(3)), [[64] * 6], options)
    assert ran.returncode != 0 and "layer2.0.conv2.sigma" in ran.stderr and "other than zero" in ran.stderr


@pytest.mark.parametrize("attention", ["gsa", "none"])
def test_narrower_bottlenecks_agree(tmp_path: pathlib.Path, attention: str):
    """M-ResNet-50 of GSA's table 3."""
    check(tmp_path, "gsa_resnet50", {**NARROW, "expansion": 2, "attention": attention})


def radii(state: dict) -> list[str]:
    return [name for name in state if name.endswith("sigma")]


@pytest.mark.parametrize("architecture, layers", [("expatt_resnet50", 4), ("expatt_mobilenetv2", 16)])
def test_maps_without_a_radius_load_with_and_without_one(tmp_path: pathlib.Path, architecture: str, layers: int):
    """The paper's equations 7 to 9 have no sigma. Files of older versions have one for every map."""
    options = {**NARROW, "map": "linear"} if architecture == "expatt_resnet50" else {
        "width": 0.25, "classes": 10, "input_size": 64, "map": "linear"}
    network = trained(build(architecture, **options), 64)
    state = network.state_dict()
    assert not radii(state)
    older = radii(build(architecture, **{**options, "map": "gaussian"}).state_dict())
    assert len(older) == layers
    batch = pictures(1, 64, torch.Generator().manual_seed(3))
    answers = []
    for name, more in (("new", {}), ("old", {radius: torch.tensor(-1.0) for radius in older})):
        torch.save({**state, **more}, tmp_path / name)
        answers.append(served(tmp_path, architecture, tmp_path / name, batch, [[64] * 6], options)[0]["logits"])
    assert torch.equal(*answers)


def test_a_negative_gaussian_radius_is_taken(tmp_path: pathlib.Path):
    """Equation 10 divides by 2 sigma^2, so training may end with either sign."""
    network = trained(build("expatt_resnet50", **NARROW), 64)
    with torch.no_grad():
        network.layer2[0].conv2.sigma.neg_()
    assert network.layer2[0].conv2.sigma < 0
    batch = pictures(1, 64, torch.Generator().manual_seed(3))
    got = served(tmp_path, "expatt_resnet50", save(network, tmp_path / "weights"), batch, [[64] * 6], NARROW)[0]["logits"]
    with torch.inference_mode():
        assert relative_error(got, network.double()(batch.double())[0]) < 1e-4


@pytest.mark.parametrize("kind, radius, expected", [("gaussian", 0.0, "a radius other than zero"),
                                                    ("exponential_euclidean", -0.5, "a positive radius")])
def test_radii_that_make_no_map_are_refused(tmp_path: pathlib.Path, kind: str, radius: float, expected: str):
    options = {**NARROW, "map": kind}
    network = build("expatt_resnet50", **options)
    with torch.no_grad():
        network.layer2[0].conv2.sigma.fill_(radius)
    ran = run_model(tmp_path, "expatt_resnet50", save(network, tmp_path / "weights"), torch.zeros(1, 3, 64, 64),
                    [[64] * 6], options)
    assert ran.returncode == 1
    assert "layer2.0.conv2.sigma" in ran.stderr and expected in ran.stderr


@pytest.mark.parametrize("architecture, options", [
    ("expatt_resnet50", {"form": "cifar"}), ("expatt_resnet50", {"groups": "4"}), ("expatt_resnet34", {"groups": "1-4"}),
    ("expatt_resnet50", {"attention": "none"}),
    *(("gsa_resnet50", {"content": content, "groups": groups})
      for content in ("global", "axial", "none") for groups in ("1-4", "3-4")),
    *(("gsa_resnet50", {"content": content, "transform_norms": True}) for content in ("global", "axial", "none")),
    # The paper's table 4: content alone, content with one axis, one axis alone.
    *(("gsa_resnet50", {"axes": axes}) for axes in ("column", "row", "none")),
    *(("gsa_resnet50", {"content": "none", "axes": axes}) for axes in ("column", "row")),
    ("gsa_resnet50", {"heads": 2, "groups": "2-4"}), ("gsa_resnet50", {"groups": "4"}),
    ("gsa_resnet50", {"attention": "none"}),
], ids=str)
def test_options_agree(tmp_path: pathlib.Path, architecture: str, options: dict):
    narrow = {**NARROW, **options}
    if options.get("form") == "cifar":
        narrow["input_size"] = 32
    check(tmp_path, architecture, narrow)


def test_odd_sides_agree(tmp_path: pathlib.Path):
    for architecture in ("expatt_resnet34", "gsa_resnet50"):
        check(tmp_path, architecture, {**NARROW, "input_size": 75})


@pytest.mark.parametrize("architecture, network", [("expatt_resnet34", torchvision.models.resnet34),
                                                   ("gsa_resnet50", torchvision.models.resnet50)])
def test_torchvisions_resnets_load_as_they_are(tmp_path: pathlib.Path, architecture: str, network):
    check(tmp_path, architecture, {**WHOLE, "attention": "none"}, network())


def test_parameters_as_published():
    def count(architecture: str, **options) -> int:
        return sum(parameter.numel() for parameter in build(architecture, **options).parameters())

    assert count("expatt_resnet34") == 17_316_674
    assert count("expatt_resnet50") == 24_522_357
    assert count("expatt_resnet101") == 42_688_710
    assert count("expatt_resnet152") == 57_636_375
    assert count("expatt_resnet50", form="cifar", classes=100) == 22_666_164
    assert count("gsa_resnet38") == 14_202_728
    assert count("gsa_resnet50") == 18_052_856
    assert count("gsa_resnet101") == 30_398_392


def test_a_maps_rows_sum_to_one_and_favour_what_is_near():
    for kind in MAPS:
        attention = explicit_map(kind, 5, 7, torch.tensor(0.75, dtype=torch.double))
        torch.testing.assert_close(attention.sum(dim=1), torch.ones(35, dtype=torch.double))
        assert kind == "constant" or attention[0].argmax() == 0

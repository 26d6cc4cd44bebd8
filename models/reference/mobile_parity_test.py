"""Compares the served networks with the reference: weights are saved here, then loaded and run by the C++ side."""

import os
import pathlib

import pytest
import torch
import torchvision

from models.reference import build
from models.reference.served import relative_error, run_model, save, served, settle, smooth_pictures
from models.reference.training.classification import prepare
from tests.long_form import LONG

NARROW = {"width": 0.25, "classes": 10, "input_size": 64}
# Every channel, on pictures that are small outside the long form.
WIDE = {} if LONG else {"input_size": 96}


def trained(options: dict, architecture: str = "sanet") -> torch.nn.Module:
    """Random weights with matching batch norm statistics, without which SAO's sums over positions would dominate or
    vanish."""
    torch.manual_seed(1)
    network = build(architecture, **options)
    generator = torch.Generator().manual_seed(2)
    for name, parameter in network.named_parameters():
        if name.endswith("attention.bn.weight"):
            # With weights of 1 an untrained network is chaotic: a picture that is unlike those of the statistics has
            # very different sums, each module squares the difference, and 1e-7 at the input becomes 1e-2 at the output.
            torch.nn.init.uniform_(parameter, 0.05, 0.3, generator=generator)
        elif name.endswith("coefficients.weight"):
            # Otherwise each softmax would select one position, which could depend on rounding.
            torch.nn.init.uniform_(parameter, 0.05, 0.2, generator=generator)
        elif name.endswith(("bn.weight", "attention.w")):
            torch.nn.init.uniform_(parameter, 0.5, 1.5, generator=generator)
        elif name.endswith("bias"):
            torch.nn.init.normal_(parameter, 0, 0.2, generator=generator)
    return settle(network, [pictures(8, int(options.get("input_size", 224)), generator) for _ in range(3)])


def pictures(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    return smooth_pictures(count, size, size, generator)


def logits(folder: pathlib.Path, weights: pathlib.Path, batch: torch.Tensor, options: dict,
           architecture: str = "sanet") -> torch.Tensor:
    placements = [list(batch.shape[2:]) * 3] * len(batch)
    results = served(folder, architecture, weights, batch, placements, options)
    return torch.stack([result["logits"] for result in results])


def check(folder: pathlib.Path, architecture: str, options: dict):
    network = trained(options, architecture)
    weights = save(network, folder / "weights")
    size = int(options.get("input_size", 224))
    batch = pictures(3, size, torch.Generator().manual_seed(3))
    with torch.inference_mode():
        expected = network.double()(batch.double())
    assert relative_error(logits(folder, weights, batch, options, architecture), expected) < 1e-4


@pytest.mark.parametrize("options", [
    {},
    NARROW,
    {**NARROW, "similarity": "ones"},
    {**NARROW, "global_term": False},
    {**NARROW, "similarity": "ones", "global_term": False},
    {**NARROW, "attention": "none"},
    {**NARROW, "attention": "se"},
    {**NARROW, "attention": "se", "reduction": 16},
    {**WIDE, "attention": "se"},
    {**NARROW, "input_size": 75, "width": 0.35},
    {**NARROW, "input_size": 32},
], ids=lambda options: ",".join(f"{name}={value}" for name, value in options.items()) or "full")
def test_sanet_agrees(tmp_path: pathlib.Path, options: dict):
    check(tmp_path, "sanet", options)


@pytest.mark.parametrize("options", [WIDE, {**NARROW, "heads": 4}, {**NARROW, "attention": "none", "input_size": 75}],
                         ids=["full", "heads", "none"])
@pytest.mark.parametrize("architecture", ["attnnet", "attnnet_1n", "attnnet_pool", "kanet_kv", "kanet_qkv",
                                          "mobilenetv2_kao", "mobilenetv2_sao"])
def test_the_others_agree(tmp_path: pathlib.Path, architecture: str, options: dict):
    check(tmp_path, architecture, options)


def test_mobilenetv2_agrees(tmp_path: pathlib.Path):
    check(tmp_path, "mobilenetv2", WIDE)
    check(tmp_path, "mobilenetv2_kao", {**NARROW, "attention": "qkv"})


@pytest.mark.parametrize("options", [WIDE, {**NARROW, "map": "exponential_manhattan"}, {**NARROW, "attention": "none"}],
                         ids=["full", "another map", "none"])
def test_explicitly_modelled_attention_agrees(tmp_path: pathlib.Path, options: dict):
    check(tmp_path, "expatt_mobilenetv2", options)


def test_torchvisions_mobilenetv2_loads_as_it_is(tmp_path: pathlib.Path):
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    network = settle(torchvision.models.mobilenet_v2(), [pictures(8, 224, generator) for _ in range(3)])
    torch.save(network.state_dict(), tmp_path / "weights")
    batch = pictures(3, 224, torch.Generator().manual_seed(3))
    with torch.inference_mode():
        expected = network.double()(batch.double())
    assert relative_error(logits(tmp_path, tmp_path / "weights", batch, {}, "mobilenetv2"), expected) < 1e-4


@pytest.mark.parametrize("wrap", [
    lambda state: state,
    lambda state: {"state_dict": state, "epoch": 3, "lr": 0.1, "optimizer": {"state": {}, "param_groups": [{"lr": 1}]}},
    lambda state: {"module." + name: tensor for name, tensor in state.items()},
    lambda state: {name: torch.nn.Parameter(tensor, requires_grad=False) if tensor.is_floating_point() else tensor
                   for name, tensor in state.items()},
    lambda state: {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in state.items()},
    lambda state: {name: torch.cat([tensor, tensor], -1)[..., :tensor.shape[-1]] if tensor.dim() == 2 else tensor
                   for name, tensor in state.items()},
], ids=["plain", "checkpoint", "DataParallel", "parameters", "float64", "strided"])
def test_state_dicts_as_people_save_them(tmp_path: pathlib.Path, wrap):
    network = trained(NARROW)
    torch.save(wrap(network.state_dict()), tmp_path / "weights")
    batch = pictures(2, 64, torch.Generator().manual_seed(3))
    with torch.inference_mode():
        expected = network.double()(batch.double())
    assert relative_error(logits(tmp_path, tmp_path / "weights", batch, NARROW), expected) < 1e-4


def test_state_dicts_of_pytorch_before_1_6(tmp_path: pathlib.Path):
    network = trained(NARROW)
    torch.save({"state_dict": network.state_dict(), "epoch": 3}, tmp_path / "weights", _use_new_zipfile_serialization=False)
    batch = pictures(2, 64, torch.Generator().manual_seed(3))
    with torch.inference_mode():
        expected = network.double()(batch.double())
    assert relative_error(logits(tmp_path, tmp_path / "weights", batch, NARROW), expected) < 1e-4


def test_the_demo_model_knows_its_pictures(tmp_path: pathlib.Path):
    demo = pathlib.Path(__file__).parents[1] / "demo"
    model = demo / "repository" / "sanet_shapes"
    labels = (model / "labels.txt").read_text().split()
    images = [torchvision.io.decode_image(str(demo / "pictures" / f"{label}.jpg")) for label in labels]
    answers = logits(tmp_path, model / "1" / "weights.safetensors", prepare(torch.stack(images)), NARROW)
    assert [labels[index] for index in answers.argmax(dim=1)] == labels


def test_a_pickle_that_would_run_code_is_refused_and_named(tmp_path: pathlib.Path):
    class Hostile:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'executed'}",)

    torch.save({"state_dict": trained(NARROW).state_dict(), "extra": Hostile()}, tmp_path / "weights")
    ran = run_model(tmp_path, "sanet", tmp_path / "weights", torch.zeros(1, 3, 64, 64), [[64] * 6], NARROW)
    assert ran.returncode == 1
    assert "system" in ran.stderr and "safetensors" in ran.stderr
    assert not (tmp_path / "executed").exists()


def test_parameters_as_the_papers_count_them():
    def count(architecture: str, **options) -> int:
        state = build(architecture, **options).state_dict()
        return sum(tensor.numel() for name, tensor in state.items()
                   if ".bn." not in name and ".coefficients." not in name and "bias" not in name)

    assert count("sanet") == 3_449_408
    assert count("sanet", similarity="ones") == 3_448_448
    for architecture in ("attnnet", "attnnet_1n", "attnnet_pool", "kanet_kv", "kanet_qkv"):
        assert count(architecture) == 3_448_448
    assert count("mobilenetv2") == 3_469_760


def test_reference_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="sanet"):
        build("sannet")
    with pytest.raises(ValueError, match="sao, se, none"):
        build("sanet", attention="all")

"""The served network against the reference: weights saved from Python, loaded and run by the C++ side."""

import os
import pathlib
import subprocess

import numpy
import pytest
import torch
import torchvision
from safetensors.torch import save_file

from models.reference import build
from models.reference.train_demo import prepare

RUN_MODEL = pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "tests" / "saccade_run_model"
NARROW = {"width": 0.25, "classes": 10, "input_size": 64}


def trained(options: dict) -> torch.nn.Module:
    """Random weights, and batch norm statistics that belong to them: each layer's signal is of order one, as after
    training. SAO's sums over positions would otherwise swamp everything, or vanish."""
    torch.manual_seed(1)
    network = build("sanet", **options)
    generator = torch.Generator().manual_seed(2)
    for name, parameter in network.named_parameters():
        if name.endswith("attention.bn.weight"):
            # At 1 an untrained network is chaotic: a picture unlike those of the statistics has sums far from
            # theirs, each module squares that, and one part in 1e7 at the input becomes one in 1e2 at the output.
            torch.nn.init.uniform_(parameter, 0.05, 0.3, generator=generator)
        elif name.endswith(("bn.weight", "attention.w")):
            torch.nn.init.uniform_(parameter, 0.5, 1.5, generator=generator)
        elif name.endswith("bias"):
            torch.nn.init.normal_(parameter, 0, 0.2, generator=generator)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None  # a plain mean over the batches, not dominated by the initial ones
            module.reset_running_stats()
    network.train()
    with torch.no_grad():
        for _ in range(3):
            network(pictures(8, int(options.get("input_size", 224)), generator))
    return network.eval()


def pictures(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """Smooth noise: neighbouring pixels belong together, as in a photograph."""
    coarse = torch.randn(count, 3, size // 8, size // 8, generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, size=(size, size), mode="bilinear")
    return smooth + 0.2 * torch.randn(count, 3, size, size, generator=generator)


def served(folder: pathlib.Path, weights: pathlib.Path, batch: torch.Tensor, options: dict) -> torch.Tensor:
    batch.contiguous().numpy().tofile(folder / "input")
    command = [RUN_MODEL, "sanet", weights, str(len(batch)), folder / "input", folder / "output"]
    command += [f"{name}={str(value).lower()}" for name, value in options.items()]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return torch.from_numpy(numpy.fromfile(folder / "output", dtype=numpy.float32)).reshape(len(batch), -1)


def relative_error(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Relative to what differs between the pictures: what they share (the biases, mostly) is easy to get right."""
    assert (expected[0] - expected[1]).norm() > 1e-2 * expected[0].norm()
    return ((got.double() - expected).norm() / (expected - expected.mean(dim=0)).norm()).item()


@pytest.mark.parametrize("options", [
    {},
    NARROW,
    {**NARROW, "similarity": "ones"},
    {**NARROW, "global_term": False},
    {**NARROW, "similarity": "ones", "global_term": False},
    {**NARROW, "attention": "none"},
    {**NARROW, "input_size": 75, "width": 0.35},
    {**NARROW, "input_size": 32},
], ids=lambda options: ",".join(f"{name}={value}" for name, value in options.items()) or "full")
def test_outputs_agree(tmp_path: pathlib.Path, options: dict):
    network = trained(options)
    weights = tmp_path / "weights"
    save_file(network.state_dict(), str(weights))
    size = int(options.get("input_size", 224))
    batch = pictures(3, size, torch.Generator().manual_seed(3))
    with torch.inference_mode():
        expected = network.double()(batch.double())
    got = served(tmp_path, weights, batch, options)
    assert relative_error(got, expected) < 1e-4


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
    assert relative_error(served(tmp_path, tmp_path / "weights", batch, NARROW), expected) < 1e-4


def test_the_demo_model_knows_its_pictures(tmp_path: pathlib.Path):
    demo = pathlib.Path(__file__).parents[1] / "demo"
    model = demo / "repository" / "sanet_shapes"
    labels = (model / "labels.txt").read_text().split()
    images = [torchvision.io.decode_image(str(demo / "pictures" / f"{label}.jpg")) for label in labels]
    logits = served(tmp_path, model / "1" / "weights.safetensors", prepare(torch.stack(images)), NARROW)
    assert [labels[index] for index in logits.argmax(dim=1)] == labels


def test_a_pickle_that_would_run_code_is_refused_and_named(tmp_path: pathlib.Path):
    class Hostile:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'executed'}",)

    torch.save({"state_dict": trained(NARROW).state_dict(), "extra": Hostile()}, tmp_path / "weights")
    command = [RUN_MODEL, "sanet", tmp_path / "weights", "1", "input", "output", "width=0.25", "classes=10"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "system" in ran.stderr and "safetensors" in ran.stderr
    assert not (tmp_path / "executed").exists()


def test_parameters_as_the_paper_counts_them():
    def count(**options) -> int:
        state = build("sanet", **options).state_dict()
        return sum(tensor.numel() for name, tensor in state.items() if ".bn." not in name and "bias" not in name)

    assert count() == 3_449_408
    assert count(similarity="ones") == 3_448_448


def test_reference_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="sanet"):
        build("sannet")
    with pytest.raises(ValueError, match="sao, none"):
        build("sanet", attention="all")

"""Checks the networks in bfloat16 on the CPU: an answer depends neither on the pictures beside it nor on the number of
threads, bit for bit, and is at most twice as far from float32's as the PyTorch twin's in bfloat16 is."""

import copy
import pathlib
from typing import Callable

import pytest
import torch

from models.bench.twins import Case
from models.reference.served import multiplies_bfloat16, run_model, save, served, smooth_noise

NARROW = {"width": 0.25, "classes": 10}
# One of each family, at a size that takes less than a second.
CASES = [
    Case("sanet", "sanet", ((64, 64),), NARROW),
    Case("kanet_kv", "kanet_kv", ((64, 64),), NARROW),
    Case("attnnet_pool", "attnnet_pool", ((64, 64),), NARROW),
    Case("expatt_mobilenetv2", "expatt_mobilenetv2", ((64, 64),), NARROW),
    Case("expatt_resnet34", "expatt_resnet34", ((64, 64),), NARROW),
    Case("gsa_resnet50", "gsa_resnet50", ((64, 64),), {**NARROW, "blocks": "1,2,1,1"}),
    Case("ea_mask_rcnn_r50", "ea_mask_rcnn_r50", ((96, 128),), {"width": 0.25, "blocks": "1,2,2,1", "classes": 7}),
    Case("deeplabv2_kao_qkv", "deeplabv2_kao_qkv", ((97, 129),),
         {"width": 0.25, "head_channels": 64, "classes": 6, "blocks": "1,2,2,1"}),
    Case("deeplabv2_aspp", "deeplabv2_kao_kv", ((97, 129),), {"width": 0.25, "head": "aspp", "classes": 6, "blocks": "1,2,2,1"}),
    Case("ea_psmnet", "ea_psmnet", ((64, 96),), {"width": 0.25, "max_disparity": 48}, channels=6),
    Case("ea_rc3d", "ea_rc3d", ((16, 112, 112),), {"width": 0.25, "classes": 5}),
    Case("unet3d_sao_denoise", "unet3d_sao_denoise", ((8, 32, 32),), {"width": 0.25}, channels=1),
    Case("unet3d_sao_project", "unet3d_sao_project", ((10, 32, 32),), {"width": 0.5}, channels=1),
]
COUNT = 5
# A part of the result with one number for each class, pixel or voxel, whose error can be measured.
VALUES = ("logits", "disparity", "restored")


needs_bfloat16 = pytest.mark.skipif(not multiplies_bfloat16(), reason="this processor does not multiply bfloat16 itself")


class Served:
    """A network's weights and a batch of smooth noise on disk."""

    def __init__(self, folder: pathlib.Path, case: Case):
        self.folder, self.case = folder, case
        self.sides = case.sizes[0]
        with torch.no_grad():
            self.network, _ = case.build(self.sides)
        self.pixels = smooth_noise(COUNT, self.sides, torch.Generator().manual_seed(3), case.channels)
        self.weights = save(self.network, folder / "weights")
        depths = [self.sides[0]] * 2 if len(self.sides) == 3 else []
        self.placement = [*self.sides[-2:]] * 3 + depths

    def run(self, precision: str, first: int = 0, count: int = COUNT) -> list[dict[str, torch.Tensor]]:
        options = {**self.case.options(self.sides), "precision": precision}
        return served(self.folder, self.case.architecture, self.weights, self.pixels[first:first + count],
                      [self.placement] * count, options)


@pytest.fixture(scope="module")
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Served:
    return Served(tmp_path_factory.mktemp("served"), request.param)


def equal(a: list[dict[str, torch.Tensor]], b: list[dict[str, torch.Tensor]]) -> bool:
    return len(a) == len(b) and all(one.keys() == other.keys() and all(torch.equal(one[part], other[part]) for part in one)
                                    for one, other in zip(a, b))


def require_independence(run: Callable[[int, int], list], monkeypatch: pytest.MonkeyPatch) -> list[dict[str, torch.Tensor]]:
    """Returns the answers to all pictures, after checking that neither other batches nor another number of threads change
    a bit of them. run(first, count) computes a batch of the pictures."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    together = run(0, COUNT)
    assert equal(run(0, 1), together[:1]) and equal(run(COUNT - 1, 1), together[-1:])
    assert equal(run(1, 3), together[1:4])
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert equal(run(0, COUNT), together)
    return together


@needs_bfloat16
@pytest.mark.parametrize("model", CASES, indirect=True, ids=lambda case: case.name)
def test_the_batch_and_the_threads_make_no_difference(model: Served, monkeypatch: pytest.MonkeyPatch):
    together = require_independence(lambda first, count: model.run("bf16", first, count), monkeypatch)
    assert not equal(model.run("fp32"), together), "bf16 computed the same as fp32: was it used?"


def error(got: torch.Tensor, expected: torch.Tensor) -> float:
    """The difference relative to what differs between the pictures."""
    return ((got - expected).norm() / (expected - expected.mean(dim=0)).norm()).item()


# An untrained network finds actions in noise by accident, and rounding moves all of them.
@needs_bfloat16
@pytest.mark.parametrize("model", [case for case in CASES if case.name != "ea_rc3d"], indirect=True, ids=lambda case: case.name)
def test_errors_are_those_of_the_format(model: Served):
    exact, rounded = model.run("fp32"), model.run("bf16")
    [part] = [part for part in VALUES if part in exact[0]] or [None]
    if part is None:
        check_findings(model.case, exact, rounded)
        return
    expected = torch.stack([answer[part] for answer in exact]).double().flatten(1)
    with torch.inference_mode():
        twin = copy.deepcopy(model.network).bfloat16()(model.pixels.bfloat16()).double().flatten(1)
    got = torch.stack([answer[part] for answer in rounded]).double().flatten(1)
    ours, theirs = error(got, expected), error(twin, expected)
    print(f"\n{model.case.name}: off by {ours:.3f}, the twin by {theirs:.3f}", end="")
    assert 0 < ours <= 2 * theirs


def check_findings(case: Case, exact: list[dict[str, torch.Tensor]], rounded: list[dict[str, torch.Tensor]]):
    """Findings are selected by thresholds and ranks, which rounding moves: most of what is certain must be found again."""
    if "label_map" in exact[0]:
        same = torch.stack([(one["label_map"] == other["label_map"]).double().mean() for one, other in zip(exact, rounded)])
        print(f"\n{case.name}: {100 * same.mean():.1f} % of the pixels have the same class", end="")
        assert same.mean() > 0.75
        return
    for one, other in zip(exact, rounded):
        assert abs(len(one["scores"]) - len(other["scores"])) <= 0.2 * len(one["scores"]) + 3
        assert abs(one["scores"][:1] - other["scores"][:1]).sum() < 0.1


def test_a_processor_without_bfloat16_is_told(tmp_path: pathlib.Path):
    """On this machine, whichever it is: bf16 loads, or says what is missing."""
    case = CASES[0]
    model = Served(tmp_path, case)
    options = {**case.options(model.sides), "precision": "bf16"}
    ran = run_model(tmp_path, case.architecture, model.weights, model.pixels[:1], [model.placement], options)
    if multiplies_bfloat16():
        assert ran.returncode == 0, ran.stderr
    else:
        assert ran.returncode == 1 and "avx512_bf16" in ran.stderr and "fp32" in ran.stderr


@pytest.mark.parametrize("precision", ["fp16", "tf32"])
def test_what_needs_a_gpu_is_refused(tmp_path: pathlib.Path, precision: str):
    case = CASES[0]
    model = Served(tmp_path, case)
    options = {**case.options(model.sides), "precision": precision}
    ran = run_model(tmp_path, case.architecture, model.weights, model.pixels[:1], [model.placement], options)
    assert ran.returncode == 1 and f"precision is {precision}, which needs a GPU" in ran.stderr

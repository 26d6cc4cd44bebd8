"""Checks the networks in int8 on the CPU: an answer depends neither on the pictures beside it nor on the number of threads,
bit for bit. Those of residual classifiers are also those of the fake-quantized PyTorch twin, but for the roundings that the
twin does not make."""

import pathlib
import subprocess

import pytest
import torch

from models.bench.twins import Case
from models.reference import int8
from models.reference.precision_test import CASES as FAMILIES
from models.reference.precision_test import COUNT, Served, equal, error, require_independence
from models.reference.served import multiplies_bfloat16, multiplies_int8, run_model, served

# Shallow: in a deep untrained network, a map that falls on the other side of a half step changes everything behind it.
NARROW = {"width": 0.25, "classes": 10, "attention": "none", "blocks": "1,1,1,1"}
CASES = [Case("bottlenecks", "expatt_resnet50", ((96, 96),), NARROW), Case("strides", "gsa_resnet38", ((64, 64),), NARROW)]
# Convolutions of clips and volumes are not quantized.
OF_PICTURES = [case for case in FAMILIES if len(case.sizes[0]) == 2]
OTHERS = [case for case in FAMILIES if len(case.sizes[0]) == 3]

needs_int8 = pytest.mark.skipif(not multiplies_int8(), reason="this processor does not multiply int8 itself")


class Quantized(Served):
    """A network whose maps' ranges are those of the tested pictures."""

    def __init__(self, folder: pathlib.Path, case: Case):
        super().__init__(folder, case)
        # As the served network gets them where the rest of it computes in bfloat16.
        self.pixels = self.pixels.bfloat16().float()
        self.grids = int8.observed(self.network, self.pixels)
        self.quantized = int8.save_quantized(self.network, self.grids, folder / "weights.int8.safetensors")

    def run_int8(self, first: int = 0, count: int = COUNT) -> list[dict[str, torch.Tensor]]:
        return served(self.folder, self.case.architecture, self.quantized, self.pixels[first:first + count],
                      [self.placement] * count, {**self.case.options(self.sides), "precision": "int8"})

    def error_of(self, weights: pathlib.Path, precision: str) -> str:
        options = {**self.case.options(self.sides), "precision": precision}
        ran = run_model(self.folder, self.case.architecture, weights, self.pixels[:1], [self.placement], options)
        assert ran.returncode == 1
        return ran.stderr


def quantize(model: Served) -> subprocess.CompletedProcess:
    """Quantizes every convolution that can be, on the tested inputs; the file is FOLDER/weights.int8.safetensors."""
    return run_model(model.folder, model.case.architecture, model.weights, model.pixels, [model.placement] * COUNT,
                     model.case.options(model.sides), ("--quantize",), "weights.int8.safetensors")


@needs_int8
@pytest.mark.parametrize("case", [*CASES, *OF_PICTURES], ids=lambda case: case.name)
def test_the_batch_and_the_threads_make_no_difference(tmp_path: pathlib.Path, case: Case, monkeypatch: pytest.MonkeyPatch):
    model = Served(tmp_path, case)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    higher = model.run("bf16" if multiplies_bfloat16() else "fp32")
    ran = quantize(model)
    assert ran.returncode == 0, ran.stderr
    model.weights = tmp_path / "weights.int8.safetensors"
    together = require_independence(lambda first, count: model.run("int8", first, count), monkeypatch)
    assert any(part.numel() > 0 for answer in together for part in answer.values()), "nothing was found anywhere"
    assert not equal(higher, together), "int8 computed the same as a higher precision: was it used?"


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case.name)
def test_networks_of_clips_and_volumes_are_not_quantized(tmp_path: pathlib.Path, case: Case):
    ran = quantize(Served(tmp_path, case))
    assert ran.returncode == 1 and f"{case.architecture} has no convolution that can be quantized" in ran.stderr
    assert not (tmp_path / "weights.int8.safetensors").exists()


@needs_int8
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_answers_are_those_of_the_fake_quantized_twin(tmp_path: pathlib.Path, case: Case):
    model = Quantized(tmp_path, case)
    got = torch.stack([answer["logits"] for answer in model.run_int8()]).double()
    with torch.inference_mode():
        exact = model.network(model.pixels).double()
    twin, coarse = (int8.fake_quantized(model.network, model.grids, model.pixels, dtype)
                    for dtype in (torch.float64, torch.float32))
    ours, theirs, apart = error(got, exact), error(twin, exact), error(got, twin)
    print(f"\n{case.name}: {ours:.4f} from fp32, the twin {theirs:.4f}, {apart:.4f} from each other", end="")
    # The maps are the same numbers, but where the last bit of float32 decides on which side of a half step a sum falls:
    # there the twin in float32 differs from that in float64 as well. Then the pooled map, the classifier's weights and the
    # logits are rounded to bfloat16's 8 bits, each by at most 2 ** -9 of its size; what all pictures share counts too.
    shared = (twin.norm() / (twin - twin.mean(dim=0)).norm()).item()
    assert apart <= 3 * 2 ** -9 * shared + 1.5 * error(coarse.double(), twin)
    assert 0 < ours <= 1.25 * theirs


@needs_int8
def test_weights_of_the_other_kind_are_refused(tmp_path: pathlib.Path):
    model = Quantized(tmp_path, CASES[0])
    assert "no weight in the file is quantized" in model.error_of(model.weights, "int8")
    assert "saccade quantize" in model.error_of(model.weights, "int8")
    for precision in ("fp32", "bf16"):
        assert f"is quantized to int8, but precision is {precision}" in model.error_of(model.quantized, precision)


def test_a_processor_without_int8_is_told(tmp_path: pathlib.Path):
    """On this machine, whichever it is: int8 loads, or says what is missing."""
    model = Quantized(tmp_path, CASES[0])
    if multiplies_int8():
        assert len(model.run_int8(0, 1)) == 1
    else:
        assert "vnni" in model.error_of(model.quantized, "int8")


@needs_int8
def test_only_some_layers_may_be_quantized(tmp_path: pathlib.Path):
    """Layers in a higher precision take and give maps of either kind."""
    model = Quantized(tmp_path, CASES[0])
    exact = torch.stack([answer["logits"] for answer in model.run("fp32")]).double()
    whole = torch.stack([answer["logits"] for answer in model.run_int8()]).double()
    for part in ("conv1", "conv2", "conv3", "downsample"):
        kept = {name: grid for name, grid in model.grids.items() if part not in name}
        kept[int8.INPUT] = model.grids[int8.INPUT]
        int8.save_quantized(model.network, kept, model.quantized)
        got = torch.stack([answer["logits"] for answer in model.run_int8()]).double()
        assert not torch.equal(got, whole), f"{part} made no difference"
        assert error(got, exact) <= 1.5 * error(whole, exact)

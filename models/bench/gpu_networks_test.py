"""gpu_networks.py where there is no GPU: what counts as the same answer, what a program that fails leaves behind, and one case
from its preparation to its row."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import pytest
import torch

from models.bench import gpu_networks
from models.bench.gpu_compare import beside_twin, compared
from models.bench.gpu_networks import Passes, Row, markdown, measure
from models.bench.twins import CASES, Case

BUILD = pathlib.Path(os.environ["SACCADE_BUILD_DIR"])


@pytest.fixture
def few_rounds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu_networks, "MIN_ROUNDS", 1)
    monkeypatch.setattr(gpu_networks, "SECONDS_OF_ROUNDS", 0)


def of_items(**parts: list) -> dict[str, torch.Tensor]:
    return {f"{item}.{part}": torch.tensor(value) for part, values in parts.items() for item, value in enumerate(values)}


def test_values_are_compared_by_what_differs_between_items():
    expected = of_items(logits=[[100.0, 1.0], [100.0, 3.0]])
    assert compared(expected, expected, 2, "fp32").passed
    off = of_items(logits=[[100.0, 1.01], [100.0, 3.0]])
    found = compared(off, expected, 2, "fp32")
    assert not found.passed and found.value == pytest.approx(0.01 / 2**0.5, rel=1e-3)
    assert compared(off, expected, 2, "bf16").passed
    assert not compared(of_items(logits=[[100.0, float("nan")], [100.0, 3.0]]), expected, 2, "bf16").passed


def test_label_maps_agree_pixel_by_pixel():
    expected = of_items(label_map=[[[1.0, 2.0]], [[3.0, 4.0]]])
    assert compared(expected, expected, 2, "fp32").value == 1
    assert compared(of_items(label_map=[[[1.0, 2.0]], [[3.0, 5.0]]]), expected, 2, "fp32").value == 0.75


@pytest.mark.parametrize("where, places", [("boxes", [[0.0, 0, 10, 10], [20, 20, 30, 30]]), ("segments", [[0.0, 10], [20, 30]])])
def test_findings_are_found_again(where: str, places: list):
    def found(places: list, labels: list, scores: list) -> dict:
        return of_items(**{where: [places], "labels": [labels], "scores": [scores]})

    expected = found(places, [1.0, 2.0], [0.9, 0.8])
    assert compared(found(places[::-1], [2.0, 1.0], [0.8, 0.9]), expected, 1, "fp32").value == 1
    for other in (found(places, [2.0, 2.0], [0.9, 0.8]), found(places, [1.0, 2.0], [0.5, 0.8]),
                  found([places[1], places[1]], [1.0, 2.0], [0.9, 0.8])):
        assert not compared(other, expected, 1, "bf16").passed
    with pytest.raises(RuntimeError, match="nothing was expected"):
        compared(expected, found(places[:0] or torch.zeros(0, 4).tolist(), [], []), 1, "fp32")


def test_findings_in_bf16_are_judged_by_what_the_twin_finds_again():
    expected = of_items(boxes=[[[20.0 * i, 0, 20.0 * i + 10, 10] for i in range(20)]], labels=[[1.0] * 20], scores=[[0.9 - 0.01 * i for i in range(20)]])

    def first(count: int) -> dict[str, torch.Tensor]:
        return {name: part[:count] for name, part in expected.items()}

    two = compared(first(2), expected, 1, "bf16")
    assert two.value == 0.2 and not two.passed
    assert beside_twin(two, first(4), expected, 1).passed
    judged = beside_twin(two, first(5), expected, 1)
    assert not judged.passed and judged.text.endswith("20 % of boxes found again, 50 % by eager") and judged.bound == "at least 25 %"


def test_what_a_program_said_is_its_failure(tmp_path: pathlib.Path):
    [case] = [case for case in CASES if case.name == "sanet"]
    with Passes(BUILD, case, {"depth": "1"}, tmp_path, "weights", (), 1) as passes:
        with pytest.raises(RuntimeError, match="saccade_time_model: .*input"):
            passes.run(1)


def test_rows_without_answers_are_shown():
    row = Row("sanet", "3x8x8", failures=["not run: the 5 s are over"], milliseconds={"saccade fp32": {8: 2.5}})
    assert "saccade fp32 - / 2.50" in row.text() and "FAILED not run" in row.text()

    class Arguments:
        device = "cpu"

    assert "| sanet | 3x8x8 | - / 2.50 | - | - | - |" in markdown([row], Arguments) and "- sanet, 3x8x8: not run" in markdown([row], Arguments)


@pytest.mark.usefixtures("few_rounds")
def test_a_rehearsal_measures_every_candidate(tmp_path: pathlib.Path):
    whole = Case("unet3d_sao_denoise", "unet3d_sao_denoise", ((4, 8, 8),), {"width": 0.25}, channels=1,
                 attention_off={"attention": "none"})
    broken = Case("sanet", "sanet", ((64, 64),), {"width": 0.25, "attention": "none of these"})
    arguments = argparse.Namespace(build=BUILD, device="cpu", threads=1, seconds=200, compile=False, json=tmp_path / "json",
                                   markdown=tmp_path / "md")
    rows = {row.case: row for row in measure([(broken, (64, 64)), (whole, (4, 8, 8))], arguments, tmp_path)}
    good, bad = rows[whole.name], rows[broken.name]
    # A processor without bfloat16 says so, and the rest goes on.
    assert all("bf16" in failure for failure in good.failures), good.failures
    assert good.comparisons["fp32"]["passed"] and good.comparisons["fp32"]["value"] == 0
    assert {"saccade fp32", "eager fp32", "eager bf16"} <= good.milliseconds.keys()
    assert all(set(times) == {1, 8} and min(times.values()) > 0 for times in good.milliseconds.values())
    assert bad.case == "sanet" and bad.failures and not bad.milliseconds
    assert len(json.loads((tmp_path / "json").read_text())) == 2 and "prepared" in (tmp_path / "md").read_text()


@pytest.mark.usefixtures("few_rounds")
def test_a_detector_is_judged_beside_its_twin(tmp_path: pathlib.Path):
    case = Case("ea_mask_rcnn_r50", "ea_mask_rcnn_r50", ((96, 128),), {"width": 0.25, "blocks": "1,2,2,1", "classes": 7})
    arguments = argparse.Namespace(build=BUILD, device="cpu", threads=1, seconds=200, compile=False, json=None, markdown=None)
    [row] = measure([(case, (96, 128))], arguments, tmp_path)
    if "bf16" in row.comparisons:
        assert row.comparisons["bf16"]["text"].endswith("% by eager") and not row.failures, row.text()
    else:
        assert row.failures and all("bf16" in failure for failure in row.failures)


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "tests/run_module.py", "models.bench.gpu_networks", "--build", str(BUILD), *arguments],
                          capture_output=True, text=True, check=False)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_it_says_so():
    ran = run("--filter", "sanet/")
    assert ran.returncode == 1 and "no GPU: torch.cuda.is_available() is False; expected" in ran.stderr


def test_what_does_not_fit_is_not_run(tmp_path: pathlib.Path):
    ran = run("--device", "cpu", "--filter", "mobilenetv2/224", "--seconds", "0", "--json", str(tmp_path / "json"))
    assert ran.returncode == 1 and "FAILED not run: the 0 s are over" in ran.stdout
    rows = json.loads((tmp_path / "json").read_text())
    assert {row["case"] for row in rows} == {"mobilenetv2", "expatt_mobilenetv2"} and not any(row["milliseconds"] for row in rows)

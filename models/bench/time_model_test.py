"""saccade_time_model and saccade_run_model: what they answer, that their answers are the same, and what they say where
there is no GPU."""

import os
import pathlib
import subprocess

import pytest
import torch
from safetensors.torch import load_file

from models.bench.bench_models import Served
from models.bench.twins import Case
from models.reference.served import RUN_MODEL, save_batch, smooth_noise

BUILD = pathlib.Path(os.environ["SACCADE_BUILD_DIR"])
CASE = Case("sanet", "sanet", ((64, 64),), {"width": 0.25, "classes": 10})


@pytest.fixture(scope="module", name="network")
def made_network():
    with torch.no_grad():
        return CASE.build((64, 64))[0]


@pytest.fixture(scope="module", name="pixels")
def made_pixels():
    return smooth_noise(3, (64, 64), torch.Generator().manual_seed(3))


@pytest.fixture(name="served")
def started(network, pixels):
    model = Served(BUILD, CASE.architecture, CASE.options((64, 64)), network, pixels, 1)
    yield model
    model.close()


def ended(model: Served, line: str) -> int:
    """Asks for what is refused, and returns the program's exit code."""
    model.process.stdin.write(f"{line}\n")
    model.process.stdin.flush()
    return model.process.wait(timeout=60)


def test_the_first_items_are_answered_as_in_the_whole_batch(served: Served, tmp_path: pathlib.Path):
    assert float(served.ask("run")) > 0 and served.ask(f"write {tmp_path / 'all'}") == "written"
    assert float(served.ask("run 2")) > 0 and served.ask(f"write {tmp_path / 'two'}") == "written"
    everything, two = load_file(tmp_path / "all"), load_file(tmp_path / "two")
    assert set(everything) == {"0.logits", "1.logits", "2.logits"} and set(two) == {"0.logits", "1.logits"}
    assert all(torch.equal(two[name], everything[name]) for name in two)
    assert not torch.equal(everything["0.logits"], everything["1.logits"])


def test_both_programs_answer_the_same(served: Served, pixels: torch.Tensor, tmp_path: pathlib.Path):
    served.ask("run")
    served.ask(f"write {tmp_path / 'timed'}")
    save_batch(tmp_path / "input", pixels, [[64] * 6] * 3)
    options = [f"{name}={value}" for name, value in CASE.options((64, 64)).items()]
    subprocess.run([RUN_MODEL, CASE.architecture, pathlib.Path(served.folder.name) / "weights", tmp_path / "input",
                    tmp_path / "output", *options], check=True, timeout=60)
    timed, run = load_file(tmp_path / "timed"), load_file(tmp_path / "output")
    assert timed.keys() == run.keys() and all(torch.equal(timed[name], run[name]) for name in run)


def test_instances_compute_at_the_same_time(served: Served):
    assert served.rate(1, 20) > 0 and served.rate(2, 20) > 0
    served.run()
    assert served.ask(f"write {pathlib.Path(served.folder.name) / 'after'}") == "written"


@pytest.mark.parametrize("line", ["run 0", "run 4", "run -1", "run two", "run 1 2", "rate", "rate 2", "rate 0 20", "rate 65 20",
                                  "rate 1 0", "rate 1 20 3", "memory", "write", "write a b", "stop"])
def test_what_it_cannot_answer_is_refused(served: Served, line: str):
    assert ended(served, line) == 1


@pytest.mark.parametrize("number", ["", "-1", "first", "0x", "99999999999"])
@pytest.mark.parametrize("program", [BUILD / "bin" / "saccade_time_model", RUN_MODEL], ids=lambda path: path.name)
def test_a_gpu_has_a_number(program: pathlib.Path, number: str):
    ran = subprocess.run([program, "sanet", "weights", "input", "1", "--gpu", number], capture_output=True, text=True,
                         check=False)
    assert ran.returncode == 1 and "expected the number of a GPU" in ran.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
@pytest.mark.parametrize("options", [[], ["precision=bf16"], ["precision=fp16"]], ids=lambda options: " ".join(options))
def test_without_a_gpu_it_says_so(served: Served, tmp_path: pathlib.Path, options: list[str]):
    weights, batch = (pathlib.Path(served.folder.name) / name for name in ("weights", "input"))
    own = [f"{name}={value}" for name, value in CASE.options((64, 64)).items()]
    for command in ([BUILD / "bin" / "saccade_time_model", "sanet", weights, batch, "1"],
                    [RUN_MODEL, "sanet", weights, batch, tmp_path / "output"]):
        ran = subprocess.run([*command, "--gpu", "3", *own, *options], capture_output=True, text=True, check=False,
                             stdin=subprocess.DEVNULL)
        assert ran.returncode == 1, ran.stderr
        assert "the model needs GPU 3, which cannot be used: no CUDA driver: libcuda.so.1" in ran.stderr


def test_int8_is_for_the_cpu(served: Served):
    weights, batch = (pathlib.Path(served.folder.name) / name for name in ("weights", "input"))
    ran = subprocess.run([BUILD / "bin" / "saccade_time_model", "sanet", weights, batch, "1", "--gpu", "0", "precision=int8"],
                         capture_output=True, text=True, check=False)
    assert ran.returncode == 1 and "precision is int8, which only the CPU computes" in ran.stderr
    assert not weights.with_suffix(".int8").exists()

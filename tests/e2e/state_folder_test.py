"""Tests that what was measured of models is remembered for the next start, and that a wrong memory does no harm."""

import re
import shutil

import numpy
import pytest
import torch

import onnx_files as onnx
import pictures
from harness import Daemon, eventually
from messages import predict_request
from tests.long_form import LONG
from tiny_models import TinyModel, write_model

PICTURE = pictures.encoded(pictures.pixels(0))
EARLIER = "uses earlier measurements"
IGNORED = "remembered measurements ignored"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    write_model(folder, "small", TinyModel(classes=5, seed=3), max_batch_size=2)
    return folder


def log_of(daemon):
    """The log of a daemon that is ready and answers."""
    daemon.await_ready()
    with daemon.vision() as vision:
        assert vision.predict(predict_request(model="small", encoded=PICTURE)).model == "small"
    eventually(lambda: re.search(r" I ready$", daemon.log(), re.MULTILINE), "all lines of the loads are written")
    log = daemon.log()
    daemon.close()
    return log


def test_the_second_start_does_not_measure_again(root, start, tmp_path):
    state = tmp_path / "below" / "state"
    assert EARLIER not in log_of(start(root, f"--state-folder={state}"))
    [kept] = state.iterdir()
    assert kept.stat().st_mode & 0o077 == 0, "nobody else reads or writes it"
    before = kept.read_bytes()
    log = log_of(start(root, f"--state-folder={state}"))
    assert EARLIER in log and IGNORED not in log
    assert kept.read_bytes() == before
    # Another number of cores is another machine.
    assert EARLIER not in log_of(start(root, f"--state-folder={state}", "--cores=1"))
    assert len(list(state.iterdir())) == 2


DAMAGES = {
    "cut off": lambda text: text[: len(text) // 2],
    "impossible": lambda text: text.replace(b"threads ", b"threads 9"),
    "no text": lambda text: b"\x00\xff" * 5000,
    "another machine": lambda text: text.replace(b"machine ", b"machine another "),
    "another build": lambda text: text.replace(b"build ", b"build another "),
}


@pytest.fixture(scope="module")
def measured(root, tmp_path_factory):
    """A folder with what a daemon has measured."""
    folder = tmp_path_factory.mktemp("measured")
    with Daemon(root, f"--state-folder={folder / 'state'}", log_folder=folder) as daemon:
        log_of(daemon)
    return folder / "state"


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_or_foreign_file_is_ignored_and_replaced(root, measured, start, tmp_path, damage):
    """That the new file is used is the same for every damage: the others are started again with SACCADE_LONG=1 only."""
    state = shutil.copytree(measured, tmp_path / "state")
    [kept] = state.iterdir()
    damaged = damage(kept.read_bytes())
    assert damaged != kept.read_bytes()
    kept.write_bytes(damaged)
    assert EARLIER not in log_of(start(root, f"--state-folder={state}"))
    assert kept.read_bytes() != damaged
    if damage is DAMAGES["cut off"] or LONG:
        log = log_of(start(root, f"--state-folder={state}"))
        assert EARLIER in log and IGNORED not in log


def test_a_folder_that_cannot_be_written_is_told_and_no_error(root, start, tmp_path):
    (tmp_path / "file").write_text("")
    log = log_of(start(root, f"--state-folder={tmp_path}/file/state"))
    assert log.count("measurements not remembered") == 1 and "--state-folder" in log


def test_nothing_is_kept_without_a_folder(root, start, tmp_path):
    log = log_of(start(root, "--state-folder=", environment={"HOME": str(tmp_path), "STATE_DIRECTORY": str(tmp_path)}))
    assert "measurements not remembered" not in log
    assert list(tmp_path.glob("measured-*")) == []


def test_systemd_says_where_by_its_variable(root, start, tmp_path):
    log_of(start(root, environment={"STATE_DIRECTORY": str(tmp_path / "state")}))
    assert len(list((tmp_path / "state").iterdir())) == 1


@pytest.mark.parametrize("goal, instances", [("throughput", None), ("latency", None), ("throughput", 2)])
def test_a_model_is_optimized_for_what_it_says(start, tmp_path, goal, instances):
    folder = tmp_path / "models"
    parameters = {"optimize": goal}
    write_model(folder, "small", TinyModel(classes=5, seed=3), max_batch_size=2, parameters=parameters)
    config = folder / "small" / "config.pbtxt"
    lines = [line for line in config.read_text().splitlines() if not line.startswith("instance_group")]
    if instances:
        lines.append(f"instance_group {{ count: {instances} }}")
    config.write_text("\n".join(lines) + "\n")
    log = log_of(start(folder, "--cores=2", f"--state-folder={tmp_path}/state"))
    assert "instances chosen by trial" in log and f"optimize={goal}" in log
    [chosen] = [line for line in log.splitlines() if "instances chosen by trial" in line]
    if instances:
        assert f"instances={instances}" in chosen and "threads=1" in chosen
    if goal == "latency":
        assert "instances=1" in chosen
    log = log_of(start(folder, "--cores=2", f"--state-folder={tmp_path}/state"))
    assert "instances chosen by trial" not in log
    [remembered] = [line for line in log.splitlines() if EARLIER in line]
    for word in chosen.split():
        if word.startswith(("instances=", "threads=")):
            assert word in remembered


class Scaled(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x


FOUR = "input { name: 'x' data_type: TYPE_FP32 dims: 4 }\noutput { name: 'y' data_type: TYPE_FP32 dims: 4 }\n"


def write_program(root, name, factor):
    (root / name / "1").mkdir(parents=True)
    torch.jit.script(Scaled(factor)).save(root / name / "1" / "model.pt")
    (root / name / "config.pbtxt").write_text("backend: 'pytorch' max_batch_size: 4\n" + FOUR)


def write_graph(root, name, factor):
    (root / name / "1").mkdir(parents=True)
    rows = [onnx.value(tensor, "float32", ["n", 4]) for tensor in "xy"]
    factors = [onnx.tensor("factor", numpy.full(4, factor, "float32"))]
    content = onnx.model([onnx.node("Mul", ["x", "factor"], ["y"])], rows[:1], rows[1:], factors)
    (root / name / "1" / "model.onnx").write_bytes(content)
    (root / name / "config.pbtxt").write_text("backend: 'onnxruntime' max_batch_size: 4\n" + FOUR)


def measured_earlier(daemon):
    """The models of a daemon that is ready which were not measured now."""
    daemon.await_ready()
    eventually(lambda: re.search(r" I ready$", daemon.log(), re.MULTILINE), "all lines of the loads are written")
    log = daemon.log()
    daemon.close()
    return {re.search(r"\bmodel=(\w+)", line)[1] for line in log.splitlines() if EARLIER in line}


@pytest.mark.parametrize("write", [write_program, write_graph], ids=["programs", "graphs"])
def test_what_runs_a_file_is_measured_once_for_its_contents(start, tmp_path, write):
    if write is write_graph:
        pytest.importorskip("openvino", reason="./dev setup openvino installs it")
    models = tmp_path / "models"
    write(models, "a", 2)
    shutil.copytree(models / "a", models / "b")
    write(models, "c", 3)
    flags = (f"--state-folder={tmp_path}/state", "--allow-executable-models")
    assert measured_earlier(start(models, *flags)) == {"b"}
    assert measured_earlier(start(models, *flags)) == {"a", "b", "c"}
    shutil.rmtree(models / "c")
    write(models, "c", 4)
    assert measured_earlier(start(models, *flags)) == {"a", "b"}

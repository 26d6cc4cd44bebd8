"""Tests --check-config with invalid model folders: one readable line for each, exit code 1, and no crash."""

import random

import pytest
import safetensors.torch
import torch

from checked import BEGINNING, Checked
from damages import DAMAGES
from harness import run_to_end
from tiny_models import TinyModel, write_model

SEED = 30
MAX_WORDS = 2000


class Readable(Checked):
    """Details about tensors or options may follow on indented lines."""

    def __init__(self, root, *flags):
        super().__init__(root, *flags)
        for line in self.lines[:-1]:
            assert BEGINNING.match(line) or line.startswith("  "), line
            assert len(line) < MAX_WORDS and line.isprintable(), line


@pytest.fixture(scope="module")
def network():
    return TinyModel(classes=5, seed=3)


@pytest.fixture(scope="module")
def checked(network, tmp_path_factory):
    root = tmp_path_factory.mktemp("damaged") / "models"
    write_model(root, "sound", network)
    words = {damage.__name__: damage(write_model(root, damage.__name__, network)) for damage in DAMAGES}
    return Readable(root), words


@pytest.mark.parametrize("name", [damage.__name__ for damage in DAMAGES])
def test_each_damage_is_told(checked, name):
    outcome, words = checked
    state, line = outcome.of(name)
    assert state == "ERROR"
    for word in words[name]:
        assert word in line


def test_the_sound_model_is_in_order(checked):
    outcome, words = checked
    assert outcome.code == 1
    assert outcome.of("sound")[0] == "OK"
    assert outcome.lines[-1] == f"{len(words) + 1} checked, {len(words)} with errors"


def test_weights_that_were_not_written_to_their_end(network, tmp_path):
    """The file is cut anywhere, in the header or after it."""
    choose = random.Random(SEED)
    whole = write_model(tmp_path, "whole", network).read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    cuts = [1, 7, 8, 9, header - 1, header, header + 1, len(whole) - 1]
    cuts += [choose.randrange(header) for _ in range(20)] + [choose.randrange(len(whole)) for _ in range(20)]
    for number, cut in enumerate(cuts):
        write_model(tmp_path, f"cut{number}", network).write_bytes(whole[:cut])
    outcome = Readable(tmp_path)
    assert outcome.of("whole")[0] == "OK"
    for number, cut in enumerate(cuts):
        state, line = outcome.of(f"cut{number}")
        assert state == "ERROR" and "weights.safetensors" in line, f"cut at {cut}: {line}"


def test_weights_with_damaged_headers(network, tmp_path):
    """A name or number in the header is changed, or the JSON is damaged: either an error is reported or the file is
    still valid."""
    choose = random.Random(SEED)
    whole = write_model(tmp_path, "whole", network).read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    states = set()
    for number in range(60):
        data = bytearray(whole)
        for _ in range(choose.choice([1, 1, 3, 30])):
            data[choose.randrange(header)] = choose.randrange(256)
        write_model(tmp_path, f"damaged{number}", network).write_bytes(data)
    outcome = Readable(tmp_path)
    for number in range(60):
        states.add(outcome.of(f"damaged{number}")[0])
    assert "ERROR" in states


PROGRAM = """\
backend: "pytorch"
max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: 2 }
output { name: "y" data_type: TYPE_FP32 dims: 2 }
"""


class Twice(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


@pytest.mark.parametrize("file", ["model.pt", "model.pt2"])
def test_programs_that_were_not_written_to_their_end(tmp_path, file):
    torch.jit.script(Twice()).save(tmp_path / "whole.pt")
    whole = (tmp_path / "whole.pt").read_bytes()
    root = tmp_path / "models"
    made = {"empty": b"", "noise": random.Random(SEED).randbytes(4000), "text": b"import os\n"}
    made |= {f"cut{number}": whole[: len(whole) * number // 10] for number in range(1, 10)}
    if file == "model.pt":
        made["whole"] = whole
    for name, data in made.items():
        (root / name / "1").mkdir(parents=True)
        (root / name / "config.pbtxt").write_text(PROGRAM)
        (root / name / "1" / file).write_bytes(data)
    outcome = Readable(root, "--allow-executable-models")
    for name in made:
        assert outcome.of(name)[0] == ("OK" if name == "whole" else "ERROR"), name
    # Without the flag the programs are neither run nor read.
    outcome = Readable(root)
    for name in made:
        state, line = outcome.of(name)
        assert state == "ERROR" and "--allow-executable-models" in line


def test_a_repository_that_is_none(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "nowhere", tmp_path / "file"):
        ended = run_to_end("--check-config", f"--model-repository={path}")
        assert ended.returncode == 2 and str(path) in ended.stderr


def test_the_network_that_was_meant_is_told(network, tmp_path):
    """Names of another architecture, a prefix before them, or another number of classes."""
    state = network.state()
    for name, prefix in (("meant", ""), ("prefixed", "student.net.")):
        weights = write_model(tmp_path, name, network)
        safetensors.torch.save_file({prefix + key: value for key, value in state.items()}, weights)
    config = tmp_path / "meant" / "config.pbtxt"
    config.write_text('parameters { key: "architecture" value { string_value: "resnet50" } }')
    for name in ("meant", "prefixed"):
        (tmp_path / name / "labels.txt").unlink()
    weights = write_model(tmp_path, "renamed", network)
    safetensors.torch.save_file({key.replace("classifier.", "head_of_mine."): value for key, value in state.items()},
                                weights)
    weights = write_model(tmp_path, "classes", TinyModel(classes=7, seed=3))
    safetensors.torch.save_file(state, weights)
    outcome = Readable(tmp_path)
    assert "tensors have the names of 'sanet' with classes=5, width=0.25; did you mean that network?" in (
        outcome.of("meant")[1])
    assert 'name.removeprefix("student.net.")' in outcome.of("prefixed")[1]
    renamed = outcome.of("renamed")[1]
    assert "'classifier.weight' is missing; 'head_of_mine.weight' has its shape" in renamed
    assert "rename 'head_of_mine.' to 'classifier.' in 2 names?" in renamed and "did you mean" not in renamed
    assert "the first extent is 5 instead of 7; if that is the number of classes, set the option classes to 5" in (
        outcome.of("classes")[1])

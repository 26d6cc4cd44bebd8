"""Compares the demo models served by the daemon with the same weights in PyTorch, on held-out scenes."""

import pytest
import torch

from harness import binary
from models.reference.training import evaluation, export
from models.reference.training.daemon import serving
from models.reference.training.recipes import RECIPES

torch.set_num_threads(1)
SCENES = 4


@pytest.fixture(scope="module")
def daemon():
    with serving(binary("saccaded"), export.DEMO / "repository") as made:
        yield made


@pytest.mark.parametrize("name", sorted(folder.name for folder in (export.DEMO / "repository").iterdir()))
def test_the_daemon_reaches_what_pytorch_reaches(daemon, name):
    recipe = RECIPES[name]
    network = evaluation.load(recipe, export.path(recipe, True, 0))
    samples = evaluation.held_out(recipe, SCENES)
    answers = [recipe.task.read(daemon.predict(name, recipe.task.request(sample))) for sample in samples]
    through, straight = recipe.task.score(samples, answers), evaluation.straight(recipe, network, SCENES)
    assert through == pytest.approx(straight, abs=5e-4)

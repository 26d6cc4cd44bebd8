"""Checks the weights in models/demo against docs/fidelity.md on a few held-out scenes."""

import pathlib

import pytest
import torch

from models.reference.training import evaluation, export
from models.reference.training.recipes import RECIPES

torch.set_num_threads(1)

MAX_BYTES = 25_000_000
# For each model, a number of scenes that takes a second or two, and the required figure: a bit below that of the whole
# set.
EXPECTED = {"denoiser": (8, 6), "detector": (16, 0.85), "sanet_shapes": (100, 0.9), "segmenter": (16, 0.8), "stereo_matcher": (8, 1.25)}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_model_does_its_task(name):
    recipe = RECIPES[name]
    count, least = EXPECTED[name]
    figures = evaluation.straight(recipe, evaluation.load(recipe, export.path(recipe, True, 0)), count)
    reached = figures[recipe.task.figure]
    assert reached >= least if recipe.task.more_is_better else reached <= least, figures


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_configuration_is_the_recipe_s(name):
    folder = export.DEMO / "repository" / name
    assert (folder / "config.pbtxt").read_text() == export.config(RECIPES[name])
    if RECIPES[name].task.labels:
        assert (folder / "labels.txt").read_text().split() == list(RECIPES[name].task.labels)


def test_every_model_of_the_demo_is_held_to_something():
    assert {folder.name for folder in (export.DEMO / "repository").iterdir()} == set(EXPECTED)


def test_what_they_are_compared_with_is_of_the_same_kind():
    for recipe in RECIPES.values():
        for attention in (True, False):
            for seed in range(3):
                file = export.path(recipe, attention, seed)
                if file.exists():
                    evaluation.load(recipe, file, attention)


def test_all_weights_together_are_small():
    files = [*export.DEMO.rglob("*.safetensors")]
    assert files and sum(pathlib.Path(file).stat().st_size for file in files) < MAX_BYTES

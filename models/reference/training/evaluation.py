"""Measures weights on held-out scenes in PyTorch."""

import pathlib

import torch
from safetensors.torch import load_file
from torch import nn

from models.reference.scenes import HELD_OUT_SEED
from models.reference.training.recipes import Recipe


def load(recipe: Recipe, weights: pathlib.Path, attention: bool = True) -> nn.Module:
    network = recipe.build(attention)
    state = {name: tensor.float() for name, tensor in load_file(str(weights)).items()}
    missing, surplus = network.load_state_dict(state, strict=False)
    wrong = [name for name in missing if not name.endswith("num_batches_tracked")] + surplus
    if wrong:
        raise ValueError(f"{weights} does not fit {recipe.architecture} with these options; missing or surplus: {', '.join(wrong)}")
    return network.eval()


def held_out(recipe: Recipe, count: int | None = None) -> list:
    return [recipe.task.sample(HELD_OUT_SEED, index) for index in range(count or recipe.held_out)]


@torch.inference_mode()
def straight(recipe: Recipe, network: nn.Module, count: int | None = None) -> dict[str, float]:
    samples = held_out(recipe, count)
    return recipe.task.score(samples, [recipe.task.predict(network, sample) for sample in samples])

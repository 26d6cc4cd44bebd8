"""Exports a trained network for the daemon."""

import pathlib
import shutil

import torch
from safetensors.torch import save_file
from torch import nn

from models.reference.training.recipes import Recipe

DEMO = pathlib.Path(__file__).parents[2] / "demo"


def variant(attention: bool, seed: int) -> str:
    return f"{'with' if attention else 'without'}-{seed}"


def path(recipe: Recipe, attention: bool, seed: int) -> pathlib.Path:
    """Seed 0 with attention is in the demo repository; the weights that it is compared with are in demo/compared."""
    if attention and seed == 0:
        return DEMO / "repository" / recipe.name / "1" / "weights.safetensors"
    return DEMO / "compared" / recipe.name / f"{variant(attention, seed)}.safetensors"


def stored(tensor: torch.Tensor) -> torch.Tensor:
    """Returns half precision, or the tensor itself if half cannot hold its values: variances may be huge or tiny."""
    half = tensor.half()
    held = torch.isfinite(half).all() and ((half - tensor).abs() <= 1e-3 * tensor.abs() + 1e-7).all()
    return (half if held else tensor).contiguous().clone()


def write_weights(network: nn.Module, file: pathlib.Path) -> pathlib.Path:
    state = {name: stored(tensor) for name, tensor in network.state_dict().items()
             if not name.endswith("num_batches_tracked")}
    save_file(state, str(file))
    file.chmod(0o644)  # save_file() makes it readable only by its owner
    return file


def config(recipe: Recipe) -> str:
    parameters = {"architecture": recipe.architecture, **recipe.options}
    if recipe.task.labels:
        parameters["labels"] = "labels.txt"
    lines = [f'name: "{recipe.name}"', 'backend: "saccade"', f"max_batch_size: {recipe.max_batch_size}"]
    lines += [f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in parameters.items()]
    return "\n".join(lines) + "\n"


def install(recipe: Recipe, weights: pathlib.Path, attention: bool, seed: int):
    target = path(recipe, attention, seed)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(weights, target)
    if attention and seed == 0:
        model = target.parents[1]
        (model / "config.pbtxt").write_text(config(recipe))
        if recipe.task.labels:
            (model / "labels.txt").write_text("\n".join(recipe.task.labels) + "\n")

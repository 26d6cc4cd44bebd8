"""Training must resume where it stopped, and its output must be readable."""

import dataclasses

import numpy
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from models.reference.training import curve, evaluation, export
from models.reference.training.loop import Training, rate
from models.reference.training.recipes import RECIPES

torch.set_num_threads(1)


def small(name: str):
    recipe = RECIPES[name]
    narrow = {"detector": {"width": 0.125, "blocks": "1,1,1,1"}, "segmenter": {"width": 0.125, "blocks": "1,1,1,1"}}
    return dataclasses.replace(recipe, batch=2, options={**recipe.options, **narrow.get(name, {})})


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_a_training_that_was_interrupted_ends_with_the_same_weights(name, tmp_path):
    whole = Training.start(small(name), True, seed=3)
    whole.run(4, tmp_path / "whole.pt")
    first = Training.start(small(name), True, seed=3)
    for _ in range(2):
        first.step(4)
    first.save(tmp_path / "part.pt")
    torch.rand(7)  # other random numbers drawn in the process must not matter
    second = Training.start(small(name), True, seed=3)
    second.resume(tmp_path / "part.pt")
    second.run(4, tmp_path / "part.pt")
    assert whole.losses == second.losses
    for name, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, second.network.state_dict()[name]), name


def test_a_checkpoint_of_another_seed_is_refused(tmp_path):
    Training.start(small("denoiser"), True, seed=3).save(tmp_path / "checkpoint.pt")
    with pytest.raises(ValueError, match="seed 3"):
        Training.start(small("denoiser"), True, seed=4).resume(tmp_path / "checkpoint.pt")


def test_the_rate_rises_and_falls():
    rates = [rate(RECIPES["denoiser"], step, 100) for step in range(100)]
    assert rates[4] == max(rates) == RECIPES["denoiser"].rate
    assert rates[:5] == sorted(rates[:5]) and rates[5:] == sorted(rates[5:], reverse=True)
    assert rates[-1] < 0.01 * max(rates)


def test_weights_are_stored_in_half_precision_where_that_holds_them(tmp_path):
    recipe = small("denoiser")
    network = recipe.build()
    with torch.no_grad():
        network.get_buffer("bottom.bn1.running_var").fill_(1e6)
    file = export.write_weights(network, tmp_path / "weights.safetensors")
    state = load_file(str(file))
    assert state["bottom.bn1.running_var"].dtype == torch.float32
    assert state["bottom.conv1.weight"].dtype == torch.float16
    read = evaluation.load(recipe, file).state_dict()
    for name, tensor in state.items():
        assert torch.equal(read[name], tensor.float())


def test_weights_of_another_network_are_refused(tmp_path):
    file = export.write_weights(small("denoiser").build(attention=False), tmp_path / "weights.safetensors")
    with pytest.raises(ValueError, match="attention"):
        evaluation.load(small("denoiser"), file)


def test_the_curve_falls_where_the_loss_does(tmp_path):
    curve.draw([10 * 0.99**step for step in range(500)], "falling", tmp_path / "loss.png")
    picture = numpy.asarray(Image.open(tmp_path / "loss.png").convert("RGB")).astype(int)
    line = (picture == (0x1F, 0x5F, 0xBF)).all(axis=2)
    rows = [line[:, column].nonzero()[0].mean() for column in (100, 300, 500)]
    assert rows == sorted(rows) and rows[0] < rows[2] - 100

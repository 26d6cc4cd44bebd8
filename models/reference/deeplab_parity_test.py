"""Compares the served DeepLabV2 with the reference: scores, label maps, and the effect of padding."""

import os
import pathlib
import subprocess

import pytest
import torch
from safetensors.torch import load_file

from models.reference import build
from models.reference.deeplabv2 import resized
from models.reference.served import padded, place, relative_error, save, served, settle, smooth_pictures
from tests.long_form import in_long_form

SCORES = pathlib.Path(os.environ.get("SACCADE_BUILD_DIR", "build/release")) / "tests" / "saccade_deeplab_scores"
KV, QKV = "deeplabv2_kao_kv", "deeplabv2_kao_qkv"
HEADS = [(KV, "kao"), (QKV, "kao"), (KV, "attention"), (KV, "attention_pool"), (KV, "aspp")]
NARROW = {"width": 0.25, "head_channels": 64, "classes": 6}
# Scale of the network's input, which is 0 to 255 minus a mean.
PIXELS = 60.0


def trained(architecture: str, options: dict, height: int, width: int) -> torch.nn.Module:
    """Random weights with matching batch norm statistics; every class is the likeliest somewhere."""
    torch.manual_seed(1)
    network = build(architecture, **options)
    generator = torch.Generator().manual_seed(2)
    for name, parameter in network.named_parameters():
        if name.endswith("bn3.weight"):
            # A block adds little to its input, as after training. With weights of 1, rounding errors would grow to 3e-4
            # over the depth of the network, in PyTorch as well as here.
            torch.nn.init.uniform_(parameter, 0.1, 0.5, generator=generator)
        elif parameter.dim() == 1 and name.endswith("weight"):
            torch.nn.init.uniform_(parameter, 0.5, 1.5, generator=generator)
        elif name.endswith("bias"):
            torch.nn.init.normal_(parameter, 0, 0.2, generator=generator)
    batch = PIXELS * smooth_pictures(2, height, width, generator, grain=32)
    settle(network, [batch])
    with torch.no_grad():
        means = network(batch).mean(dim=(0, 2, 3))
        biases = [parameter for name, parameter in network.named_parameters()
                  if name in ("layer5.classifier.bias", "layer5.conv2d_list.0.bias")]
        biases[0] -= means
    return network


def answers(folder: pathlib.Path, architecture: str, weights: pathlib.Path, pixels: torch.Tensor, placements,
            options: dict) -> list[dict[str, torch.Tensor]]:
    """Returns the C++ side's results for each picture: {"label_map", "areas"}, and {"scores"} [classes, h, w]."""
    results = served(folder, architecture, weights, pixels, placements, options)  # also writes the input file
    command = [SCORES, architecture, weights, folder / "input", folder / "scores"]
    command += [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in options.items()]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    scores = load_file(str(folder / "scores"))  # mapped, and the next call overwrites the file
    return [{**result, "scores": scores[f"{picture}.scores"].clone()} for picture, result in enumerate(results)]


def check(folder: pathlib.Path, architecture: str, options: dict, scaled: tuple[int, int], sent: list[tuple[int, int]]):
    """Compares pictures of size `scaled` in a bucket of that size, sent in several sizes."""
    network = trained(architecture, options, *scaled)
    weights = save(network, folder / "weights")
    pixels = PIXELS * smooth_pictures(len(sent), *scaled, torch.Generator().manual_seed(3), grain=32)
    placements = [[*size, *scaled, *scaled] for size in sent]
    with torch.inference_mode():
        expected = network.double()(pixels.double())
    results = answers(folder, architecture, weights, pixels, placements, options)
    got = torch.stack([result["scores"] for result in results])
    assert relative_error(got, expected) < 1e-4
    assert (got - expected).abs().max() < 1e-3 * expected.std()

    for picture, result in enumerate(results):
        best = resized(expected[picture:picture + 1], scaled, sent[picture])[0].topk(2, dim=0)
        labels = result["label_map"]
        assert labels.shape == sent[picture]
        assert len(labels.unique()) > 2
        clear = best.values[0] - best.values[1] > 1e-3 * expected.std()
        assert clear.float().mean() > 0.99
        assert torch.equal(labels[clear], best.indices[0][clear])
        assert torch.equal(result["areas"], torch.bincount(labels.flatten(), minlength=expected.shape[1]))


@pytest.mark.parametrize("architecture, head", HEADS)
def test_heads_agree_at_full_depth(tmp_path: pathlib.Path, architecture: str, head: str):
    check(tmp_path, architecture, {**NARROW, "head": head}, (65, 97), [(120, 201), (53, 64)])


@pytest.mark.parametrize("architecture, options", [
    (KV, {"heads": 4}), (QKV, {"heads": 4}), (KV, {"heads": 4, "head": "attention"}),
    (KV, {"batch_norm_epsilon": 1e-3}),
    (QKV, {"blocks": "1,2,3,1", "classes": 200}), (KV, {"classes": 3, "head": "aspp", "blocks": "2,1,1,1"}),
], ids=str)
def test_options_agree(tmp_path: pathlib.Path, architecture: str, options: dict):
    check(tmp_path, architecture, {**NARROW, **options}, (90, 61), [(90, 61), (91, 120)])


def test_the_true_width_agrees(tmp_path: pathlib.Path):
    check(tmp_path, KV, {}, (65, 97), [(65, 97), (120, 200)])


@pytest.mark.parametrize("architecture, head", HEADS)
def test_the_whole_agrees_at_full_size(tmp_path: pathlib.Path, architecture: str, head: str):
    check(tmp_path, architecture, {"head": head}, (321, 321), [(321, 321), (640, 640)])


def measure_padding(folder: pathlib.Path, options: dict, sizes: list[tuple[int, int]]):
    """Compares pictures in buckets of the default grid with the same ones unpadded, with and without `exact`."""
    network = trained(KV, options, *sizes[0])
    weights = save(network, folder / "weights")
    generator = torch.Generator().manual_seed(4)
    for size in sizes:
        picture = PIXELS * smooth_pictures(1, *size, generator, grain=32)[0]
        results = []
        for buckets, exact in [("stride:1", False), ("stride:32", False), ("stride:32", True)]:
            placements = [place(*size, long_side=1024, buckets=buckets)]
            batch = padded([picture], placements)
            results += answers(folder, KV, weights, batch, placements, {**options, "exact": exact})
        expected = results[0]
        difference = [((result["scores"] - expected["scores"]).abs().max() / expected["scores"].std()).item()
                      for result in results[1:]]
        changed = [(result["label_map"] != expected["label_map"]).double().mean().item() for result in results[1:]]
        bucket = f"{placements[0][4]}x{placements[0][5]}"
        print(f"\n{size[0]}x{size[1]} in {bucket}: scores off by up to {difference[0]:.2g} "
              f"standard deviations, exact {difference[1]:.1g}; {100 * changed[0]:.2g} % of the labels changed, "
              f"exact {100 * changed[1]:.1g} %", end="")
        assert difference[1] < 1e-4 and changed[1] < 1e-3
        # Otherwise `exact` would be pointless.
        assert difference[0] > 1e-2


def test_what_padding_does(tmp_path: pathlib.Path):
    measure_padding(tmp_path, NARROW, [(97, 129), *in_long_form((100, 150), (120, 97))])


def test_what_padding_does_at_full_size(tmp_path: pathlib.Path):
    measure_padding(tmp_path, {}, [(321, 321), (375, 500), (500, 333)])


def test_parameters():
    def count(**options) -> int:
        return sum(parameter.numel() for parameter in build(KV, **options).parameters())

    assert count(head="aspp") == 44_048_532


def test_reference_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="attention_pool"):
        build(KV, head="psp")

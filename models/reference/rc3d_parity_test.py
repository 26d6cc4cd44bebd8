"""Compares the served EA R-C3D with the twin: actions of the C++ side, with weights saved here."""

import copy
import pathlib

import pytest
import torch
from torch.nn import functional

from models.reference import build
from models.reference.detector_weights import random_weights, spread_heads
from models.reference.served import run_model, save, served, settle, smooth_noise

SHALLOW = {"width": 0.25, "blocks": "1,1,2,1", "classes": 6, "size": 64, "frames": 64, "anchors": "2,3,5"}
SPREADS = {"tpn.cls_logits": 2.0, "tpn.segment_pred": 0.3, "head.cls_score": 2.0, "head.segment_pred": 1.0}


def padded(sent: list[int], frames: int, side: int, generator: torch.Generator) -> torch.Tensor:
    """Returns clips of these lengths, followed by zero frames."""
    clips = (smooth_noise(1, (length, side, side), generator)[0] for length in sent)
    return torch.stack([functional.pad(clip, (0, 0, 0, 0, 0, frames - clip.shape[1])) for clip in clips])


def placements(sent: list[int], clips: torch.Tensor) -> list[list[int]]:
    return [[*clips.shape[3:]] * 3 + [length, clips.shape[2]] for length in sent]


def trained(options: dict, frames: int = 48, wanted: int = 20) -> torch.nn.Module:
    """Random weights with matching batch norm statistics, and actions without ties."""
    torch.manual_seed(1)
    network = build("ea_rc3d", **options)
    generator = torch.Generator().manual_seed(2)
    random_weights(network, generator)
    side = int(options.get("size", 112))

    def batch() -> torch.Tensor:
        return padded([frames] * 2, frames, side, generator)

    settle(network, [batch()])
    spread_heads(network, batch(), SPREADS, "head.cls_score", ("conv1", "layer", "attention."), wanted)
    return network


def agree(got: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], frames: int, part: float = 1.0) -> dict:
    """Asserts that a clip's actions agree, within `part` of the tolerances; returns the largest differences."""
    assert got["labels"].tolist() == expected["labels"].tolist()
    worst = {}
    for name, size in (("scores", 1), ("segments", frames)):
        assert got[name].shape == expected[name].shape
        worst[name] = (got[name].double() - expected[name]).abs().max().item() / size if len(got["labels"]) else 0.0
        assert worst[name] < part * 1e-4, f"{name} differ by {worst[name]}"
    return worst


def well_posed(network: torch.nn.Module, sent: list[int], frames: int, side: int) -> tuple[torch.Tensor, list[dict]]:
    """Returns clips whose actions do not depend on rounding, and these actions in double precision: the network in
    single precision agrees with them. Each clip has 3 or more, and no ties in score."""
    exact = copy.deepcopy(network).double()
    generator = torch.Generator().manual_seed(3)
    for _ in range(10):
        clips = padded(sent, frames, side, generator)
        with torch.inference_mode():
            expected, rounded = exact(clips.double(), sent), network(clips, sent)
        scores = [actions["scores"] for actions in expected]
        if any(len(score) < 3 or (score[:-1] - score[1:]).min() < 1e-6 for score in scores):
            continue
        try:
            for one, other, length in zip(rounded, expected, sent):
                agree(one, other, length, part=0.5)
        except AssertionError:
            continue
        return clips, expected
    raise AssertionError("no clips give actions that rounding leaves alone; choose other weights")


def expect_agreement(folder: pathlib.Path, options: dict, sent: list[int], frames: int):
    network = trained(options, frames)
    weights = save(network, folder / "weights")
    clips, expected = well_posed(network, sent, frames, int(options.get("size", 112)))
    got = served(folder, "ea_rc3d", weights, clips, placements(sent, clips), options)
    for one, other, length in zip(got, expected, sent):
        worst = agree(one, other, length)
        assert one["segments"].min() >= 0 and one["segments"].max() <= length
        print(f"\n{len(one['scores'])} actions in {length} of {frames} frames: scores {worst['scores']:.1e} apart, "
              f"segments {worst['segments']:.1e} of the clip", end="")


@pytest.mark.parametrize("options", [
    {},
    {"attention": "none"},
    {"attention": "res3"},
    {"attention": "res4", "normalization": "scaling"},
    {"attention": "res1,res2"},
    {"heads": 4, "key_channels": 16, "value_channels": 32},
    {"anchors": "2", "proposals": 20},
    {"score_threshold": 0.1, "nms_threshold": 0.7, "detections": 5, "proposals": 12},
    {"size": 48},
], ids=lambda options: ",".join(f"{name}={value}" for name, value in options.items()) or "default")
def test_actions_agree(tmp_path: pathlib.Path, options: dict):
    """The second clip's last frames are padding."""
    expect_agreement(tmp_path, {**SHALLOW, **options}, [32, 25], 32)


@pytest.mark.parametrize("sent,frames", [([16], 16), ([1, 9], 16), ([64], 64)], ids=["least", "still", "longest"])
def test_actions_agree_at_other_lengths(tmp_path: pathlib.Path, sent: list[int], frames: int):
    options = {**SHALLOW, "score_threshold": 0.02}
    # Clips of 16 frames may have a single proposal, which has no spread.
    network = trained(options, max(frames, 48))
    weights = save(network, tmp_path / "weights")
    clips = padded(sent, frames, 64, torch.Generator().manual_seed(3))
    with torch.inference_mode():
        expected = network.double()(clips.double(), sent)
    got = served(tmp_path, "ea_rc3d", weights, clips, placements(sent, clips), options)
    for one, other, length in zip(got, expected, sent):
        agree(one, other, length)


def test_actions_agree_at_full_width(tmp_path: pathlib.Path):
    expect_agreement(tmp_path, {"score_threshold": 0.05}, [64, 50], 64)


@pytest.fixture(scope="module")
def shallow() -> tuple[torch.nn.Module, dict]:
    return trained(SHALLOW), SHALLOW


def test_a_clip_in_a_batch_is_answered_as_alone(tmp_path: pathlib.Path, shallow):
    network, options = shallow
    weights = save(network, tmp_path / "weights")
    sent = [48, 37, 41]
    clips = padded(sent, 48, 64, torch.Generator().manual_seed(3))
    together = served(tmp_path, "ea_rc3d", weights, clips, placements(sent, clips), options)
    for i, length in enumerate(sent):
        one = clips[i:i + 1]
        [alone] = served(tmp_path, "ea_rc3d", weights, one, placements([length], one), options)
        assert len(alone["scores"]) > 0
        assert all(torch.equal(alone[name], together[i][name]) for name in alone)


@pytest.mark.parametrize("name", ["conv1.weight", "layer2.0.conv2.weight", "attention.res3.key.weight",
                                  "attention.res4.out.bias", "tpn.segment_pred.bias", "layer4.0.bn2.running_mean",
                                  "head.cls_score.weight", "head.segment_pred.bias"])
def test_every_part_has_its_say(tmp_path: pathlib.Path, shallow, name: str):
    network, options = shallow
    clips = padded([48], 48, 64, torch.Generator().manual_seed(3))
    [before] = served(tmp_path, "ea_rc3d", save(network, tmp_path / "weights"), clips, placements([48], clips), options)
    changed = copy.deepcopy(network)
    tensor = changed.state_dict()[name]
    tensor.add_(0.3 * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(4)))
    [after] = served(tmp_path, "ea_rc3d", save(changed, tmp_path / "weights"), clips, placements([48], clips), options)
    assert any(not torch.equal(before[part], after[part]) for part in before)


def test_attention_that_the_weights_lack_starts_as_the_identity(tmp_path: pathlib.Path):
    options = {**SHALLOW, "attention": "none"}
    network = trained(options)
    state = {"module." + name: tensor for name, tensor in network.state_dict().items()}
    torch.save({"epoch": 8, "state_dict": state}, tmp_path / "weights")
    clips, expected = well_posed(network, [48], 48, 64)
    for attention in ("none", "res3", "res3,res4"):
        attended = {**options, "attention": attention}
        [got] = served(tmp_path, "ea_rc3d", tmp_path / "weights", clips, placements([48], clips), attended)
        agree(got, expected[0], 48)
        ran = run_model(tmp_path, "ea_rc3d", tmp_path / "weights", clips, placements([48], clips), attended)
        assert ("attention.res3" in ran.stderr) == ("res3" in attention)
        assert ("attention.res4" in ran.stderr) == ("res4" in attention)


def test_fresh_attention_changes_nothing():
    torch.manual_seed(1)
    network = build("ea_rc3d", **SHALLOW).eval()
    plain = build("ea_rc3d", **{**SHALLOW, "attention": "none"}).eval()
    plain.load_state_dict({name: tensor for name, tensor in network.state_dict().items()
                           if not name.startswith("attention.")})
    clips = padded([16], 16, 64, torch.Generator().manual_seed(3))
    with torch.inference_mode():
        features = network.features(clips)
        assert torch.equal(features, plain.features(clips))
        proposals = torch.tensor([[0.0, 16.0], [3.0, 12.0]])
        assert torch.equal(network.regions(features[0], proposals), plain.regions(features[0], proposals))


def test_attention_after_res4_sees_one_region(shallow):
    """EA's table 2: "after the x-th ResBlock group". The fourth computes proposals, each alone."""
    network, _ = shallow
    with torch.inference_mode():
        features = network.features(padded([48], 48, 64, torch.Generator().manual_seed(3)))[0]
        proposals = torch.tensor([[0.0, 24.0], [16.0, 48.0]])
        assert network.attention["res4"].query.in_channels == network.layer4[-1].conv3.out_channels
        together = network.regions(features, proposals)
        torch.testing.assert_close(together[:1], network.regions(features, proposals[:1]))


def test_parameters():
    def count(**options) -> int:
        return sum(parameter.numel() for parameter in build("ea_rc3d", **options).parameters())

    assert count(attention="none") == 60_499_741
    assert count() == 60_499_741 + 789_888


def test_reference_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="res1, res2, res3, res4"):
        build("ea_rc3d", **{**SHALLOW, "attention": "res5"})
    with pytest.raises(ValueError, match="heads"):
        build("ea_rc3d", **{**SHALLOW, "heads": 3})
    with pytest.raises(ValueError, match="multiple of 16"):
        build("ea_rc3d", **SHALLOW)(torch.zeros(1, 3, 24, 64, 64))

"""Tests of the scenes whose answer is far away, and of the trainings on them."""

import pytest
import torch

from models.reference import far as trainer
from models.reference import rc3d
from models.reference.scenes import far
from models.reference.training import actions

SIZE = 64


def nearest(picture: torch.Tensor) -> torch.Tensor:
    """The colour of each pixel, as an index, or -1 for the background."""
    gaps = (picture[:, None] - far.COLOURS.T[:, :, None, None]).abs().amax(dim=0)
    return torch.where(gaps.amin(dim=0) < 0.3, gaps.argmin(dim=0), -1)


def drawn(kind, count: int = 50):
    for index in range(count):
        yield kind(SIZE, torch.Generator().manual_seed(index))


def test_partners_are_far_apart_and_decide():
    labels = set()
    for picture, label in drawn(far.partner):
        colours = nearest(picture)
        left, right = colours[:, :SIZE // 2], colours[:, SIZE // 2:]
        assert not (colours[:, SIZE // 4 + far.PATCH:3 * SIZE // 4] >= 0).any()
        assert label == (left[left >= 0].mode().values == right[right >= 0].mode().values)
        labels.add(label)
    assert labels == {0, 1}


def test_the_majority_decides():
    labels = set()
    for picture, label in drawn(far.majority):
        counts = torch.bincount(nearest(picture)[nearest(picture) >= 0], minlength=4)
        patches = (counts / far.PATCH ** 2).round()
        assert patches[label] == patches[1 - label] + 1
        labels.add(label)
    assert labels == {0, 1}


def test_the_legend_names_the_classes():
    labels = set()
    for picture, label in drawn(far.legend):
        colours = nearest(picture)
        names = [int(colours[:far.PATCH, place * far.PATCH:(place + 1) * far.PATCH].mode().values.mode().values)
                 for place in range(far.LEGEND_CLASSES)]
        lower = colours[SIZE // 2:]
        assert sorted(names) == [0, 1, 2] and names[label] == lower[lower >= 0].mode().values
        labels.add(label)
    assert labels == {0, 1, 2}


def test_a_map_s_classes_are_the_legend_s():
    for picture, labels in drawn(far.legend_map, 20):
        colours = nearest(picture)
        names = [int(colours[:far.PATCH, place * far.PATCH:(place + 1) * far.PATCH].flatten().mode().values)
                 for place in range(far.LEGEND_CLASSES)]
        assert (labels[:SIZE // 2] == 0).all() and labels.any()
        for label in range(far.LEGEND_CLASSES):
            assert (colours[labels == 1 + label] == names[label]).float().mean() > 0.95 or not (labels == 1 + label).any()


def test_the_cue_names_a_later_action():
    labels = set()
    for clip, (start, end, label) in (far.cue(torch.Generator().manual_seed(index)) for index in range(50)):
        cues = [colours[colours >= 0] for colours in (nearest(clip[:, frame]) for frame in range(far.CUE_FRAMES))]
        assert all((cue.mode().values == label - 1 and len(cue) >= far.PATCH ** 2 // 2) for cue in cues)
        moving = (clip.amax(dim=(2, 3)).amin(dim=0) > far.BACKGROUND + 0.4).nonzero().flatten().tolist()
        assert moving == list(range(start, end)), "grey patches are bright in all three colours"
        assert start - far.CUE_FRAMES >= far.CUE_DISTANCE and far.SHORTEST <= end - start <= far.LONGEST
        labels.add(label)
    assert labels == {1, 2}


def test_the_corner_switches_the_patches():
    states = set()
    for index in range(30):
        volume, plane = far.switch(SIZE, torch.Generator().manual_seed(index))
        lit = volume[0, :, :far.PATCH, :far.PATCH].amax(dim=0).mean() > 0.8
        seen = volume[0].amax(dim=0) > 0.5
        assert seen[SIZE // 2:, SIZE // 2:].any() and not seen[far.PATCH:SIZE // 2].any()
        assert (plane[0, 0, SIZE // 2:] > 0).any() == lit
        if lit:
            assert (seen == (plane[0, 0] > 0)).all()
        states.add(bool(lit))
    assert states == {False, True}


def test_offsets_move_a_region_onto_its_action():
    action, regions = torch.tensor([70.0, 94.0]), torch.tensor([[60.0, 80.0], [70.0, 94.0], [0.0, 16.0]])
    for weights in (rc3d.PROPOSAL_WEIGHTS, rc3d.ACTION_WEIGHTS):
        moved = rc3d.moved(regions, actions.offsets_to(regions, action, weights), weights)
        torch.testing.assert_close(moved, action.expand(3, 2))


@pytest.mark.parametrize("segment, overlap", [((0, 10), 1.0), ((5, 15), 1 / 3), ((10, 20), 0.0), ((2, 7), 0.5), ((30, 40), 0.0)])
def test_overlaps(segment, overlap):
    assert actions.overlaps(torch.tensor([segment], dtype=torch.float32), torch.tensor([0.0, 10.0])).item() == pytest.approx(overlap)


def test_batches_depend_on_seed_and_step_alone():
    first, answers = far.batch("legend", 4, SIZE, 1, 2)
    again, _ = far.batch("legend", 4, SIZE, 1, 2)
    assert torch.equal(first, again) and answers.shape == (4,)
    assert not torch.equal(first, far.batch("legend", 4, SIZE, 1, 3)[0])
    assert far.batch("legend map", 2, SIZE, 1, 2)[1].shape == (2, SIZE, SIZE)


@pytest.mark.parametrize("name", list(trainer.FAMILIES))
def test_families_learn_with_and_without_attention(name: str, monkeypatch: pytest.MonkeyPatch):
    """A few steps on a batch that repeats: every parameter gets a gradient, and the loss falls."""
    family = trainer.FAMILIES[name]
    kind = family.scenes[0]
    torch.set_num_threads(1)  # as the command does: on a busy machine, threads that wait for each other take minutes
    monkeypatch.setattr(trainer, "HELD_OUT", 4)
    monkeypatch.setattr(trainer, "BATCH", 4)
    draw = far.batch
    monkeypatch.setattr(far, "batch", lambda kind, count, size, seed, step: draw(kind, count, size, 0, 0))
    for attention in (True, False):
        result = trainer.train(family, kind, attention, seed=0, steps=12)
        assert result["last loss"] < result["first loss"], (name, attention)
        assert 0 <= result["figure"] <= (1 if kind != "switch" else 60)

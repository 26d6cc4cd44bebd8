"""The loss of an R-C3D: proposals against all actions of a clip, and the head's classes and segments on regions around them."""

import torch
from torch.nn import functional

from models.reference.rc3d import ACTION_WEIGHTS, PROPOSAL_WEIGHTS, Rc3d

POSITIVE, NEGATIVE = 0.5, 0.3  # overlaps from which on an anchor is an action, and up to which it is none
REGIONS = 16  # regions of a clip that the head judges; a half of them are moved actions


def overlaps(segments: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
    """Returns the intersection over the union of segments [..., 2] with one segment [2]."""
    common = (torch.minimum(segments[..., 1], action[1]) - torch.maximum(segments[..., 0], action[0])).clamp(min=0)
    return common / (segments[..., 1] - segments[..., 0] + (action[1] - action[0]) - common)


def offsets_to(segments: torch.Tensor, action: torch.Tensor, weights: tuple[float, float]) -> torch.Tensor:
    """Returns the offsets [..., 2] by which rc3d.moved turns segments [..., 2] into the action [2]."""
    length = segments[..., 1] - segments[..., 0]
    centre = segments[..., 0] + 0.5 * length
    wanted_length = action[1] - action[0]
    wanted_centre = action[0] + 0.5 * wanted_length
    return torch.stack([weights[0] * (wanted_centre - centre) / length, weights[1] * (wanted_length / length).log()], dim=-1)


def proposal_loss(logits: torch.Tensor, offsets: torch.Tensor, anchors: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
    """For one clip's logits [steps, anchors], offsets [steps, anchors, 2] and its action [2]."""
    overlap = overlaps(anchors, action)
    positive = (overlap >= POSITIVE) | (overlap == overlap.max())
    judged = positive | (overlap < NEGATIVE)
    # A mean over each group, so that the many backgrounds do not dominate the loss.
    each = functional.binary_cross_entropy_with_logits(logits, positive.float(), reduction="none")
    others = judged & ~positive
    found = functional.smooth_l1_loss(offsets[positive], offsets_to(anchors[positive], action, PROPOSAL_WEIGHTS))
    return each[positive].mean() + each[others].mean() + found


def regions_around(action: torch.Tensor, frames: int, generator: torch.Generator) -> torch.Tensor:
    """Returns segments [REGIONS, 2] of a clip: moved actions, then some anywhere."""
    near = torch.rand(REGIONS // 2, 2, generator=generator) - 0.5
    length = action[1] - action[0]
    centre = action[0] + (0.5 + 0.3 * near[:, 0]) * length
    half = 0.5 * length * (1 + 0.5 * near[:, 1])
    starts = torch.rand(REGIONS - len(near), generator=generator) * (frames - 2 * length).clamp(min=1)
    around = torch.stack([centre - half, centre + half], dim=1)
    anywhere = torch.stack([starts, starts + length], dim=1)
    return torch.cat([around, anywhere]).clamp(0, frames)


def loss(network: Rc3d, clips: torch.Tensor, actions: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """For clips [B, 3, F, H, W] with one action each, (start, end, class) in [B, 3]."""
    frames = clips.shape[2]
    features = network.features(clips)
    logits, offsets = network.tpn(features)
    anchors = network.anchors(logits.shape[1])
    total = clips.new_zeros(())
    for i, (start, end, label) in enumerate(actions.tolist()):
        action = clips.new_tensor([start, end])
        regions = regions_around(action, frames, generator)
        inside = overlaps(regions, action) >= POSITIVE
        scores, moves = network.head(network.regions(features[i], regions))
        total = total + proposal_loss(logits[i], offsets[i], anchors, action)
        total = total + functional.cross_entropy(scores, inside.long() * label)
        total = total + functional.smooth_l1_loss(moves[inside, label], offsets_to(regions[inside], action, ACTION_WEIGHTS))
    return total / len(clips)

"""How far a network's answers are from others of the same input, by what its task gives."""

import dataclasses

import torch
from torchvision.ops import box_iou

# By precision: the maximum relative error, and the minimum shares of equal pixels and of findings found again. An untrained network's
# classes and findings lie close together, so that rounding moves many of them (models/reference/precision_test.py).
BOUNDS = {"fp32": (1e-3, 0.995, 0.9), "bf16": (0.5, 0.75, 0.4)}
# Parts with one number for each class, pixel or voxel.
VALUES = ("logits", "disparity", "restored")
# In bf16 at least that part of the share which the same network finds again in bf16 elsewhere (the PyTorch twin, or the CPU), where
# there is one: of an untrained detector the twin finds a tenth.
OF_TWIN = 0.5
SAME_PLACE = 0.8  # intersection over union
SAME_SCORE = 0.1


@dataclasses.dataclass(frozen=True)
class Comparison:
    text: str
    value: float
    bound: str
    passed: bool
    # The part that says where findings are, "boxes" or "segments"; empty if the network finds nothing.
    finds: str = ""


def part_of(answers: dict[str, torch.Tensor], part: str, count: int) -> list[torch.Tensor]:
    return [answers[f"{item}.{part}"].double() for item in range(count)]


def overlaps(got: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Intersection over union of boxes, or of segments, as boxes of height 1."""
    if got.shape[-1] == 4:
        return box_iou(got, expected)
    tall = [torch.stack([part[:, 0], torch.zeros(len(part)), part[:, 1], torch.ones(len(part))], 1) for part in (got, expected)]
    return box_iou(*(part.double() for part in tall))


def found_again(got: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], where: str, count: int) -> float:
    """Share of the better half of the expected findings that have one of the same class, place and score."""
    again, all_of_them = 0, 0
    for item in range(count):
        places, labels, scores = ([answers[f"{item}.{part}"].double() for answers in (got, expected)]
                                  for part in (where, "labels", "scores"))
        half = (len(scores[1]) + 1) // 2
        all_of_them += half
        if half and len(scores[0]):
            best = scores[1].argsort(descending=True)[:half]
            same = ((overlaps(places[0], places[1][best]) >= SAME_PLACE) & (labels[0][:, None] == labels[1][best][None])
                    & ((scores[0][:, None] - scores[1][best][None]).abs() <= SAME_SCORE))
            again += int(same.any(0).sum())
    if not all_of_them:
        raise RuntimeError("nothing was expected to be found, so nothing can be compared")
    return again / all_of_them


def compared(got: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], count: int, precision: str) -> Comparison:
    """Compares the first `count` items of two files of answers (models/tools/answers_file.h)."""
    most, least_pixels, least_found = BOUNDS[precision]
    [part] = [part for part in VALUES if f"0.{part}" in expected] or [None]
    if part:
        values, correct = (torch.stack(part_of(answers, part, count)).flatten(1) for answers in (got, expected))
        # Relative to what differs between the items: what they share is easy to get right.
        error = ((values - correct).norm() / (correct - correct.mean(dim=0)).norm()).item()
        return Comparison(f"{part} off by {error:.1e}", error, f"at most {most:g}", error <= most)
    if "0.label_map" in expected:
        same = torch.stack([(one == other).double().mean() for one, other in
                            zip(part_of(got, "label_map", count), part_of(expected, "label_map", count))]).mean().item()
        return Comparison(f"{100 * same:.2f} % of the pixels agree", same, f"at least {100 * least_pixels:g} %", same >= least_pixels)
    where = "boxes" if "0.boxes" in expected else "segments"
    share = found_again(got, expected, where, count)
    return Comparison(f"{100 * share:.0f} % of {where} found again", share, f"at least {100 * least_found:g} %", share >= least_found,
                      where)


def beside_twin(ours: Comparison, twin: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], count: int,
                name: str = "eager") -> Comparison:
    """The comparison of findings in bf16, judged by what the twin of this name finds again in bf16."""
    theirs = found_again(twin, expected, ours.finds, count)
    bound = min(OF_TWIN * theirs, BOUNDS["bf16"][2])
    return dataclasses.replace(ours, text=f"{ours.text}, {100 * theirs:.0f} % by {name}", bound=f"at least {100 * bound:.0f} %",
                               passed=ours.value >= bound)

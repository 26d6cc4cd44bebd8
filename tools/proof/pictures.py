"""The pictures that every system is sent: held-out scenes as JPEG files, with their labels."""

import dataclasses

import torch
import torchvision

from models.reference.training import evaluation
from models.reference.training.recipes import Recipe

QUALITY = 90


@dataclasses.dataclass(frozen=True)
class Pictures:
    files: list[bytes]
    labels: list[int]


def draw(recipe: Recipe, count: int) -> Pictures:
    samples = evaluation.held_out(recipe, count)
    files = [torchvision.io.encode_jpeg(torch.from_numpy(sample.picture).permute(2, 0, 1).contiguous(), quality=QUALITY)
             for sample in samples]
    return Pictures([file.numpy().tobytes() for file in files], [sample.label for sample in samples])

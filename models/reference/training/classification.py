"""Classification of ten drawn shapes and patterns."""

import dataclasses

import numpy
import torch
import torchvision
from torch import nn

from models.reference.scenes import shapes
from models.reference.training.pictures import MEAN, STD, raw
from models.reference.training.task import Task

INPUT_SIZE = 64
SENT_SIZE = 160
MIX = 1_000_003  # keeps the seeds of different trainings' pictures distinct


@dataclasses.dataclass
class Picture:
    picture: numpy.ndarray  # uint8 [h, w, 3], RGB
    label: int


def prepare(pictures: torch.Tensor) -> torch.Tensor:
    """8-bit RGB [n, 3, h, w], scaled and cropped as in the daemon."""
    resized = torchvision.transforms.functional.resize(pictures, round(INPUT_SIZE / shapes.CROP), antialias=True)
    cropped = torchvision.transforms.functional.center_crop(resized, INPUT_SIZE)
    return (cropped.float() / 255 - MEAN) / STD


class Classification(Task):
    labels = tuple(shapes.LABELS)
    figure = "top-1"

    def sample(self, seed: int, index: int) -> Picture:
        """Returns a picture as a client would send it."""
        label = index % len(self.labels)
        generator = torch.Generator().manual_seed(seed * MIX + index)
        drawn = shapes.draw(torch.tensor([label]), SENT_SIZE, generator, extent=1 / shapes.CROP)[0]
        return Picture((drawn * 255).round().to(torch.uint8).permute(1, 2, 0).numpy(), label)

    def batch(self, seed: int, step: int, size: int) -> list:
        """Draws at the network's size: drawing larger pictures and scaling them takes longer than the network."""
        generator = torch.Generator().manual_seed(seed * MIX + step)
        labels = torch.randint(len(self.labels), (size,), generator=generator)
        return list(zip((shapes.draw(labels, INPUT_SIZE, generator) - MEAN) / STD, labels))

    def loss(self, network: nn.Module, samples: list) -> torch.Tensor:
        pictures, labels = (torch.stack(part) for part in zip(*samples))
        return nn.functional.cross_entropy(network(pictures), labels)

    def predict(self, network: nn.Module, sample: Picture) -> int:
        return int(network(prepare(torch.from_numpy(sample.picture).permute(2, 0, 1)[None]))[0].argmax())

    def request(self, sample: Picture) -> dict:
        return {"raw": raw(sample.picture), "classification": {"topK": 1}}

    def read(self, answer) -> int:
        return answer.classification.classes[0].index

    def score(self, samples: list[Picture], predictions: list[int]) -> dict[str, float]:
        return {"top-1": sum(sample.label == found for sample, found in zip(samples, predictions)) / len(samples)}

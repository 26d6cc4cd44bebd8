"""Segmentation of drawn scenes: the class of each pixel."""

import numpy
import torch
from torch import nn

from models.reference import metrics
from models.reference.deeplabv2 import MEANS, resized
from models.reference.scenes import objects
from models.reference.training.pictures import chw, raw
from models.reference.training.task import Task


def prepared(picture: numpy.ndarray) -> torch.Tensor:
    """Returns blue, green and red minus the means."""
    return chw(picture).flip(0) - torch.tensor(MEANS)[:, None, None]


def at_pixels(scores: torch.Tensor, height: int, width: int) -> torch.Tensor:
    return resized(scores, (height, width), (height, width))


class Segmentation(Task):
    labels = objects.LABELS
    figure = "mIoU"

    def sample(self, seed: int, index: int) -> objects.Scene:
        return objects.draw(seed, index)

    def loss(self, network: nn.Module, samples: list[objects.Scene]) -> torch.Tensor:
        scores = network(torch.stack([prepared(scene.picture) for scene in samples]))
        wanted = torch.from_numpy(numpy.stack([scene.label_map for scene in samples])).long()
        return nn.functional.cross_entropy(at_pixels(scores.float(), *wanted.shape[1:]), wanted)

    def predict(self, network: nn.Module, sample: objects.Scene) -> numpy.ndarray:
        scores = network(prepared(sample.picture)[None])
        return at_pixels(scores, *sample.label_map.shape)[0].argmax(dim=0).to(torch.uint8).numpy()

    def request(self, sample: objects.Scene) -> dict:
        return {"raw": raw(sample.picture), "segmentation": {"format": "RAW"}}

    def read(self, answer) -> numpy.ndarray:
        found = answer.segmentation
        return numpy.frombuffer(found.label_map, numpy.uint8).reshape(found.height, found.width)

    def score(self, samples: list[objects.Scene], predictions: list[numpy.ndarray]) -> dict[str, float]:
        counts = sum(metrics.confusion(sample.label_map, prediction, len(self.labels))
                     for sample, prediction in zip(samples, predictions))
        return {"mIoU": metrics.mean_iou(counts), "pixel accuracy": metrics.pixel_accuracy(counts)}

"""What networks answer on scenes whose answer is far away: classes, maps of classes, actions in time, or planes; how they are trained to,
and by which figure they are judged."""

import abc
import math

import torch
from torch import nn
from torch.nn import functional

from models.reference.metrics import confusion, mean_iou
from models.reference.scenes import far
from models.reference.training import actions


class Answer(abc.ABC):
    figure: str
    chance: float | None = None  # the figure of guessing

    @abc.abstractmethod
    def loss(self, network: nn.Module, inputs: torch.Tensor, wanted: torch.Tensor, seed: int) -> torch.Tensor:
        """Returns the loss of the network in training mode. `seed` is for what is drawn."""

    @abc.abstractmethod
    def score(self, network: nn.Module, inputs: torch.Tensor, wanted: torch.Tensor) -> float:
        """Returns the figure of the network in evaluation mode."""


class Classes(Answer):
    figure = "top-1"

    def __init__(self, classes: int):
        self.chance = 1 / classes

    def loss(self, network, inputs, wanted, seed):
        del seed
        return functional.cross_entropy(network(inputs), wanted)

    def score(self, network, inputs, wanted):
        found = torch.cat([network(part).argmax(dim=1) for part in inputs.split(32)])
        return (found == wanted).float().mean().item()


class Maps(Answer):
    figure = "mIoU"

    @staticmethod
    def scores(network: nn.Module, pictures: torch.Tensor) -> torch.Tensor:
        return functional.interpolate(network(pictures), size=pictures.shape[2:], mode="bilinear", align_corners=False)

    def loss(self, network, inputs, wanted, seed):
        del seed
        return functional.cross_entropy(self.scores(network, inputs), wanted)

    def score(self, network, inputs, wanted):
        found = torch.cat([self.scores(network, part).argmax(dim=1) for part in inputs.split(32)])
        return mean_iou(confusion(wanted.numpy(), found.numpy(), far.LEGEND_CLASSES + 1))


class Actions(Answer):
    """An action counts if the best one found has its class, and at least a half of both together in common."""

    figure, chance = "found", None

    def loss(self, network, inputs, wanted, seed):
        return actions.loss(network, inputs, wanted, torch.Generator().manual_seed(seed))

    def score(self, network, inputs, wanted):
        right = 0
        for part, answers in zip(inputs.split(8), wanted.split(8)):
            for found, (start, end, label) in zip(network(part), answers.tolist()):
                right += (len(found["labels"]) > 0 and found["labels"][0].item() == label and
                          actions.overlaps(found["segments"][0], found["segments"].new_tensor([start, end])).item() >= 0.5)
        return right / len(wanted)


class Planes(Answer):
    """The peak is 1."""

    figure = "PSNR, dB"

    def loss(self, network, inputs, wanted, seed):
        del seed
        return functional.mse_loss(network.restore(inputs), wanted)

    def score(self, network, inputs, wanted):
        found = torch.cat([network.restore(part) for part in inputs.split(32)])
        return -10 * math.log10(functional.mse_loss(found, wanted).item())


ANSWERS = {**{kind: Classes(classes) for kind, classes in far.CLASSES.items()}, "legend map": Maps(), "cue": Actions(), "switch": Planes()}

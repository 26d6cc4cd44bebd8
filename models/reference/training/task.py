"""The interface of a task for training, measuring and serving."""

import abc

import torch
from torch import nn


class Task(abc.ABC):
    """Samples depend only on (seed, index); predictions have the same type from PyTorch and from the daemon."""

    labels: tuple[str, ...] = ()
    # Name of the figure by which the model is measured, and whether larger is better.
    figure: str
    more_is_better = True

    @abc.abstractmethod
    def sample(self, seed: int, index: int):
        """Returns an input with its expected result."""

    def batch(self, seed: int, step: int, size: int) -> list:
        """Returns the training batch of a step."""
        return [self.sample(seed, step * size + index) for index in range(size)]

    @abc.abstractmethod
    def loss(self, network: nn.Module, samples: list) -> torch.Tensor:
        """Returns the loss of the network, in training mode, on a batch."""

    @abc.abstractmethod
    def predict(self, network: nn.Module, sample):
        """Returns the prediction of the network, in evaluation mode, with the input prepared as in the daemon."""

    @abc.abstractmethod
    def request(self, sample) -> dict:
        """Returns the fields of saccade.v1.PredictRequest, as google.protobuf.json_format.ParseDict takes them."""

    @abc.abstractmethod
    def read(self, answer):
        """Returns the prediction in a saccade.v1.PredictResponse."""

    @abc.abstractmethod
    def score(self, samples: list, predictions: list) -> dict[str, float]:
        """Returns figures by name, including `figure`."""

    def for_training(self, network: nn.Module):
        """Changes a new network for training."""
        del network

"""What a task is to those who train, measure and serve it."""

import abc

import torch
from torch import nn


class Task(abc.ABC):
    """Samples are made by (seed, index) alone; predictions are the same whether PyTorch or the daemon makes them."""

    labels: tuple[str, ...] = ()
    # The figure that the model is judged by, and whether more of it is better.
    figure: str
    more_is_better = True

    @abc.abstractmethod
    def sample(self, seed: int, index: int):
        """What is shown, with what should come out."""

    def batch(self, seed: int, step: int, size: int) -> list:
        """What the network is trained on in this step."""
        return [self.sample(seed, step * size + index) for index in range(size)]

    @abc.abstractmethod
    def loss(self, network: nn.Module, samples: list) -> torch.Tensor:
        """Of the network in training mode, on a batch."""

    @abc.abstractmethod
    def predict(self, network: nn.Module, sample):
        """Of the network in evaluation, prepared as the daemon prepares what it is sent."""

    @abc.abstractmethod
    def request(self, sample) -> dict:
        """The fields of saccade.v1.PredictRequest, as google.protobuf.json_format.ParseDict takes them."""

    @abc.abstractmethod
    def read(self, answer):
        """The prediction in a saccade.v1.PredictResponse."""

    @abc.abstractmethod
    def score(self, samples: list, predictions: list) -> dict[str, float]:
        """Figures by name, `figure` among them."""

    def for_training(self, network: nn.Module):
        """What is set differently in training, of a fresh network."""
        del network

"""An imported network: the program that the daemon runs, its description, and the author's own Python."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any

import numpy
import torch
from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
    """Detections of one picture, best first, in its coordinates."""

    boxes: NDArray[numpy.float32]  # [n, 4]: x_min, y_min, x_max, y_max
    scores: NDArray[numpy.float32]
    labels: NDArray[numpy.int64]
    # [n, height, width] of bool; None if the network has no masks.
    masks: NDArray[numpy.bool_] | None = None


class Author(abc.ABC):
    """The author's own Python: the network with its own preparation of pictures and its own reading of outputs."""

    @abc.abstractmethod
    def __call__(self, picture: torch.Tensor) -> Any:
        """`picture` is float32 [3, height, width] from 0 to 1. Returns, by the head's kind: classes: probabilities
        [classes]; boxes and sets: Found; semantic: labels [height, width]; depth: [height, width]; embedding: [n]."""


@dataclasses.dataclass(eq=False)
class Network:
    # torchvision:NAME, timm:NAME, transformers:FOLDER.
    source: str
    # The author's network is its member `network`, so that the parameters in the saved program tell those of the author's.
    program: torch.nn.Module
    # The contents of saccade.json, without labels.
    description: dict[str, Any]
    # Empty, or one per class.
    labels: list[str]
    author: Author
    # Inputs of the program for tracing and checking, with a batch of 2.
    example: tuple[torch.Tensor, ...]
    # Whether torch.jit.script compiles the program; otherwise it is traced.
    scripted: bool = True
    # Lines for the README: what the weights are.
    notes: list[str] = dataclasses.field(default_factory=list)

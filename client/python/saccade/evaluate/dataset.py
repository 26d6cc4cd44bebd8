"""What every data set has: samples with their truth, how one is sent, what is kept of an answer, and the figures."""

from __future__ import annotations

import abc
import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from saccade import requests, types
from saccade.evaluate.failures import EvaluateError

# The part of an answer that the journal keeps: numbers, texts, lists and dicts, so that a line of JSON holds it.
Record = Any


@dataclasses.dataclass(frozen=True)
class Figure:
    """One measured number. `unit` is "%", "px", "dB" or empty."""

    name: str
    value: float
    unit: str = ""


@dataclasses.dataclass(frozen=True)
class Options:
    """What is asked of the model for each sample. `split` and `variant` choose a part of the data set; None is its usual
    one."""

    split: str | None = None
    variant: str | None = None
    frames_per_second: float = 25.0
    priority: int = -100
    timeout: float = 300.0

    def of_request(self, version: int) -> dict[str, Any]:
        return {"version": version, "priority": self.priority, "timeout": self.timeout}


@dataclasses.dataclass(frozen=True)
class Sample:
    """One input with its name, which is unique in the data set, the files that are sent, and what belongs to them."""

    key: str
    files: tuple[pathlib.Path, ...]
    truth: Any = None


class Dataset(abc.ABC):
    """A data set in its own folder layout. `record` is called on threads."""

    name: ClassVar[str]
    # The task that the model must have.
    task: ClassVar[str]
    # How the figures are defined, for the report.
    definition: ClassVar[str]

    def __init__(self, folder: pathlib.Path, options: Options) -> None:
        self.folder = folder
        self.options = options

    @abc.abstractmethod
    def samples(self, model: types.Model) -> list[Sample]:
        """Lists the samples. Raises EvaluateError if the folder lacks something, or the model does not fit."""

    @abc.abstractmethod
    def request(self, sample: Sample, model: types.Model) -> requests.Request[Any] | requests.Restore: ...

    @abc.abstractmethod
    def record(self, sample: Sample, answer: Any) -> Record:
        """Compares the answer with the truth, as far as one sample allows. Raises EvaluateError if they do not fit."""

    @abc.abstractmethod
    def figures(self, samples: Sequence[Sample], records: Mapping[str, Record]) -> list[Figure]:
        """The figures over the samples that have a record. There is at least one."""


def check_task(dataset: Dataset, model: types.Model) -> None:
    if model.task != dataset.task:
        raise EvaluateError(
            f"model {model.name} has the task {model.task}; {dataset.name} is for models of {dataset.task}: name another "
            "model with --model"
        )


def check_classes(dataset: Dataset, model: types.Model, expected: int) -> None:
    if model.classes != expected:
        raise EvaluateError(
            f"model {model.name} has {model.classes} classes; {dataset.name} has {expected}: name a model that was trained "
            "on it"
        )


def class_numbers(model: types.Model, names: Sequence[str], first: int) -> dict[int, int]:
    """Maps the model's classes to places in `names`: by the model's labels if they contain every name, else in order,
    with the model's class `first` as the first name."""
    if set(names) <= set(model.labels):
        return {model.labels.index(name): place for place, name in enumerate(names)}
    if model.classes == first + len(names):
        return {first + place: place for place in range(len(names))}
    lacking = [name for name in names if name not in model.labels]
    raise EvaluateError(
        f"model {model.name} has {model.classes} classes, and its labels lack {lacking[0]!r}; expected labels with all "
        f"{len(names)} names, or {first + len(names)} classes in their order: put the names into the model's labels.txt"
    )

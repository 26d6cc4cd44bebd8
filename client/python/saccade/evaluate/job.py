"""Runs an evaluation: lists the samples, sends those without an answer, and computes the figures."""

from __future__ import annotations

import asyncio
import dataclasses
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from saccade import errors, requests, types
from saccade.bulk.plan import Question
from saccade.bulk.sender import Connections, Sender
from saccade.connection import TLS
from saccade.evaluate.care import Care
from saccade.evaluate.classification import Cifar100, ImageNet
from saccade.evaluate.coco import Coco
from saccade.evaluate.dataset import Dataset, Figure, Options, Sample, check_task
from saccade.evaluate.disparity import Kitti, SceneFlow
from saccade.evaluate.failures import EvaluateError
from saccade.evaluate.journal import Journal
from saccade.evaluate.segmentation import Cityscapes, Voc
from saccade.evaluate.thumos14 import Thumos14

DATASETS: dict[str, type[Dataset]] = {
    kind.name: kind for kind in (Coco, Voc, ImageNet, Cityscapes, Kitti, SceneFlow, Cifar100, Thumos14, Care)
}


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What to evaluate. `limit` takes the first samples only; 0 takes all. `patience_seconds`: how long a daemon that
    answers nothing is waited for."""

    dataset: str
    folder: pathlib.Path
    output: pathlib.Path
    model: str
    version: int = 0
    url: str = "127.0.0.1:8001"
    options: Options = Options()
    limit: int = 0
    max_in_flight: int = 16
    patience_seconds: float = 600.0
    token: str | None = None
    tls: TLS | bool | None = None


@dataclasses.dataclass(frozen=True)
class Failure:
    key: str
    error: str


@dataclasses.dataclass(frozen=True)
class Result:
    """`samples`: how many the data set has, `evaluated`: of how many there is an answer, `asked`: how many were to be
    evaluated."""

    dataset: str
    definition: str
    model: types.Model
    samples: int
    asked: int
    resumed: int
    evaluated: int
    failures: list[Failure]
    figures: list[Figure]
    seconds: float


@dataclasses.dataclass(frozen=True)
class Progress:
    done: int
    # Samples with an answer of an earlier run.
    before: int
    samples: int
    seconds: float


def run(evaluation: Evaluation, tell: Callable[[Progress], None] = lambda _: None) -> Result:
    """Raises EvaluateError, or BulkError of the sender, if the evaluation cannot go on. The answers so far are kept."""
    if evaluation.dataset not in DATASETS:
        raise EvaluateError(f"there is no data set {evaluation.dataset!r}; expected one of {', '.join(sorted(DATASETS))}")
    if not evaluation.folder.is_dir():
        raise EvaluateError(f"{evaluation.folder} is not a folder; expected the data set {evaluation.dataset}")
    dataset = DATASETS[evaluation.dataset](evaluation.folder, evaluation.options)
    journal = Journal(evaluation.output)
    try:
        return asyncio.run(_Run(evaluation, dataset, journal, tell).result())
    finally:
        journal.close()


class _Run:
    def __init__(
        self, evaluation: Evaluation, dataset: Dataset, journal: Journal, tell: Callable[[Progress], None]
    ) -> None:
        self._asked = evaluation
        self._dataset = dataset
        self._journal = journal
        self._tell = tell
        self._started = time.monotonic()
        self._failures: list[Failure] = []

    async def result(self) -> Result:
        asked = self._asked
        # An evaluation that goes on stays with the version that has answered before.
        question = Question(asked.model, asked.version or self._journal.version)
        connections = Connections(lambda: asked.url, token=asked.token, tls=asked.tls)
        sender = await Sender.open(connections, question, asked.max_in_flight, asked.patience_seconds)
        try:
            model = await sender.model()
            check_task(self._dataset, model)
            every = await asyncio.to_thread(self._dataset.samples, model)
            chosen = every[: asked.limit] if asked.limit else every
            self._journal.begin(self._described(model))
            before = sum(sample.key in self._journal.records for sample in chosen)
            await self._send(sender, model, chosen, before)
        finally:
            await sender.close()
        records = {one.key: self._journal.records[one.key] for one in chosen if one.key in self._journal.records}
        figures = await asyncio.to_thread(self._dataset.figures, chosen, records) if records else []
        return Result(
            self._dataset.name, self._dataset.definition, model, len(every), len(chosen), before, len(records),
            sorted(self._failures, key=lambda one: one.key), figures, time.monotonic() - self._started,
        )

    def _described(self, model: types.Model) -> dict[str, Any]:
        options = self._asked.options
        return {
            "dataset": self._dataset.name, "folder": str(self._asked.folder.resolve()), "model": model.name,
            "version": model.version, "architecture": model.architecture, "options": dict(sorted(model.options.items())),
            "split": options.split, "variant": options.variant, "frames_per_second": options.frames_per_second,
        }

    async def _send(self, sender: Sender, model: types.Model, chosen: list[Sample], before: int) -> None:
        left = iter([sample for sample in chosen if sample.key not in self._journal.records])
        done = before

        async def lane(samples: Iterator[Sample]) -> None:
            nonlocal done
            for sample in samples:
                await self._sample(sender, model, sample)
                done += 1
                self._tell(Progress(done, before, len(chosen), time.monotonic() - self._started))

        # All lanes take from one iterator. Twice as many as requests in flight, so that answers are compared and files
        # are read meanwhile.
        lanes = [asyncio.ensure_future(lane(left)) for _ in range(2 * self._asked.max_in_flight)]
        try:
            await asyncio.gather(*lanes)
        finally:
            for one in lanes:
                one.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)

    async def _sample(self, sender: Sender, model: types.Model, sample: Sample) -> None:
        try:
            request = self._dataset.request(sample, model)
            answer = await sender.answer(lambda client: _ask(client, request, self._asked.options.timeout), sample.key)
            if isinstance(answer, errors.SaccadeError):
                self._failures.append(Failure(sample.key, f"{answer.code.name}: {answer.message}"))
                return
            record = await asyncio.to_thread(self._dataset.record, sample, answer)
        except OSError as error:
            self._failures.append(Failure(sample.key, f"{error.filename or 'a file'} cannot be read: {error.strerror}"))
        except EvaluateError as error:
            self._failures.append(Failure(sample.key, str(error)))
        else:
            self._journal.add(sample.key, record)


async def _ask(client: Any, request: requests.Request[Any] | requests.Restore, timeout: float) -> types.Answer:
    if isinstance(request, requests.Restore):
        restored: types.Restoration = await client.restore(
            request.model, request.volume, voxel_type=request.voxel_type, version=request.version,
            priority=request.priority, timeout=timeout,
        )
        return restored
    answered: types.Answer = await client.ask(request)
    return answered

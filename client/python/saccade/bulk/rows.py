"""Turns answers into rows of the output: one row per input, with the model's result or the reason why there is none."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from saccade import requests, types
from saccade.bulk.failures import BulkError
from saccade.bulk.plan import Question
from saccade.bulk.sources import Item
from saccade.masks import encode_values

Row = dict[str, Any]

# The run lengths of so many pixels take less than a millisecond, and some milliseconds if the map is noise.
_PIXELS_OF_A_SLOW_MAP = 1 << 16


@dataclasses.dataclass(frozen=True)
class Task:
    """How inputs of one task are sent and their results stored in column `result`."""

    request: Callable[[Question, bytes], requests.Request[Any]]
    # The fields of one element of the column, as name and type of pyarrow.
    fields: Callable[[Any], list[tuple[str, Any]]]
    results: Callable[[Any], list[Row]]
    # True if the daemon leaves out results by score, and all but the best.
    has_scores: bool
    # True if `results` takes so long for the answer that an event loop should leave it to a thread.
    is_slow: Callable[[Any], bool] = lambda answer: False


def _options(question: Question) -> dict[str, Any]:
    return {"version": question.version, "priority": question.priority, "timeout": question.timeout}


def _threshold(question: Question) -> dict[str, Any]:
    return {"score_threshold": question.score_threshold, "top_k": question.top_k}


def _classify(question: Question, data: bytes) -> requests.Request[Any]:
    return requests.Classify(
        question.model, data, top_k=question.top_k, probability_threshold=question.score_threshold,
        **_options(question),
    )


def _classes(answer: types.Classification) -> list[Row]:
    return [{"class": one.index, "label": one.label, "probability": one.probability} for one in answer.classes]


def _detect(question: Question, data: bytes) -> requests.Request[Any]:
    return requests.Detect(
        question.model, data, masks=question.masks, **_threshold(question), **_options(question)
    )


def _detections(answer: types.Detections) -> list[Row]:
    return [
        {"class": one.class_index, "label": one.label, "score": one.score,
         "box": [one.box.x_min, one.box.y_min, one.box.x_max, one.box.y_max],
         "mask": one.mask.coco if one.mask is not None else None,
         "keypoints": [{"x": point.x, "y": point.y, "score": point.score} for point in one.keypoints]}
        for one in answer.detections
    ]


def _segment(question: Question, data: bytes) -> requests.Request[Any]:
    return requests.Segment(question.model, data, label_map=question.masks, **_options(question))


def _areas(answer: types.Segmentation) -> list[Row]:
    masks: dict[int, Row] = {}
    if answer.label_map is not None:
        size = list(answer.label_map.shape)
        encoded = encode_values(answer.label_map)
        masks = {value: {"size": size, "counts": counts} for value, counts in encoded.items()}
    return [
        {"class": area.class_index, "label": area.label, "pixels": area.pixels, "fraction": area.fraction,
         "mask": masks.get(area.class_index)}
        for area in answer.areas
    ]


def _find_actions(question: Question, data: bytes) -> requests.Request[Any]:
    return requests.FindActions(question.model, data, **_threshold(question), **_options(question))


def _actions(answer: types.Actions) -> list[Row]:
    return [
        {"class": one.class_index, "label": one.label, "score": one.score, "start_seconds": one.start_seconds,
         "end_seconds": one.end_seconds}
        for one in answer.actions
    ]


def _embed(question: Question, data: bytes) -> requests.Request[Any]:
    return requests.Embed(question.model, data, **_options(question))


def _values(answer: types.Embedding) -> list[Row]:
    return [{"values": answer.values.tolist()}]


def _named(arrow: Any) -> list[tuple[str, Any]]:
    return [("class", arrow.int32()), ("label", arrow.string())]


def _mask(arrow: Any) -> Any:
    return arrow.struct([("size", arrow.list_(arrow.int32())), ("counts", arrow.string())])


def _keypoints(arrow: Any) -> Any:
    return arrow.list_(arrow.struct([("x", arrow.float32()), ("y", arrow.float32()), ("score", arrow.float32())]))


_TASKS = {
    "classification": Task(_classify, lambda arrow: [*_named(arrow), ("probability", arrow.float32())], _classes, True),
    "detection": Task(
        _detect,
        lambda arrow: [*_named(arrow), ("score", arrow.float32()), ("box", arrow.list_(arrow.float32())),
                       ("mask", _mask(arrow)), ("keypoints", _keypoints(arrow))],
        _detections,
        has_scores=True,
    ),
    "segmentation": Task(
        _segment,
        lambda arrow: [*_named(arrow), ("pixels", arrow.int64()), ("fraction", arrow.float64()),
                       ("mask", _mask(arrow))],
        _areas,
        has_scores=False,
        is_slow=lambda answer: answer.label_map is not None and answer.label_map.size > _PIXELS_OF_A_SLOW_MAP,
    ),
    "actions": Task(
        _find_actions,
        lambda arrow: [*_named(arrow), ("score", arrow.float32()), ("start_seconds", arrow.float64()),
                       ("end_seconds", arrow.float64())],
        _actions,
        has_scores=True,
    ),
    "embedding": Task(_embed, lambda arrow: [("values", arrow.list_(arrow.float32()))], _values, False),
}

# Commands for tasks whose results are files, or whose inputs are not single pictures.
_INSTEAD = {"depth": "saccade depth", "stereo": "saccade stereo", "restoration": "saccade restore"}


def task_of(model: types.Model, question: Question) -> Task:
    """Raises BulkError if the task cannot be asked for in bulk, or has no use for an option of the question."""
    if model.task not in _TASKS:
        instead = f"; use {_INSTEAD[model.task]} -o FOLDER" if model.task in _INSTEAD else ""
        raise BulkError(
            f"model {model.name} has the task {model.task}; a bulk job sends one picture or one clip at a time, for "
            f"{', '.join(_TASKS)}{instead}"
        )
    task = _TASKS[model.task]
    given = {"--score-threshold": question.score_threshold is not None, "--top-k": question.top_k != 0}
    unused = " and ".join(flag for flag, is_given in given.items() if is_given and not task.has_scores)
    if unused:
        scored = ", ".join(name for name, one in _TASKS.items() if one.has_scores)
        raise BulkError(
            f"{unused} would have no effect: model {model.name} has the task {model.task}; expected one of {scored}; leave it "
            "out, and name a new output if the job had it before"
        )
    return task


def schema(task: Task) -> Any:
    """The columns of the output."""
    import pyarrow

    return pyarrow.schema([
        pyarrow.field("index", pyarrow.int64(), nullable=False),
        pyarrow.field("key", pyarrow.string(), nullable=False),
        ("error_code", pyarrow.string()),
        ("error", pyarrow.string()),
        ("model_version", pyarrow.int64()),
        ("width", pyarrow.int32()),
        ("height", pyarrow.int32()),
        ("result", pyarrow.list_(pyarrow.struct(task.fields(pyarrow)))),
    ])


def answered(item: Item, task: Task, answer: types.Answer) -> Row:
    return {"index": item.index, "key": item.key, "error_code": None, "error": None, "model_version": answer.version,
            "width": answer.width, "height": answer.height, "result": task.results(answer)}


def failed(item: Item, code: str, error: str) -> Row:
    return {"index": item.index, "key": item.key, "error_code": code, "error": error, "model_version": None,
            "width": None, "height": None, "result": None}

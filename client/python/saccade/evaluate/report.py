"""Writes the result beside the paper's row, as Markdown and as JSON."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

from saccade.evaluate.dataset import Figure
from saccade.evaluate.failures import EvaluateError
from saccade.evaluate.job import Evaluation, Result
from saccade.evaluate.published import Row, row_of

_FAILURES_SHOWN = 20


def _digits(figure: Figure) -> int:
    return {"%": 2, "px": 3, "dB": 3}.get(figure.unit, 4)


def _number(value: float, figure: Figure) -> str:
    unit = f" {figure.unit}" if figure.unit else ""
    return f"{value:.{_digits(figure)}f}{unit}"


def _source(row: Row | None) -> str:
    return f"{row.source}: {row.name}" if row is not None else "none for this model"


def _rows(result: Result, row: Row | None) -> list[str]:
    lines = ["| figure | measured | published | difference |", "|---|---|---|---|"]
    for figure in result.figures:
        published = row.figures.get(figure.name) if row is not None else None
        cells = ["-", "-"]
        if published is not None:
            cells = [_number(published, figure), f"{figure.value - published:+.{_digits(figure)}f}"]
        lines.append(f"| {figure.name} | {_number(figure.value, figure)} | {' | '.join(cells)} |")
    return lines


def _covered(result: Result) -> str:
    parts = [f"{result.evaluated:,} of {result.samples:,} samples"]
    if result.asked < result.samples:
        parts.append(f"the first {result.asked:,} were asked for")
    if result.failures:
        parts.append(f"{len(result.failures):,} have no answer, so these are not the data set's figures")
    return "; ".join(parts)


def markdown(evaluation: Evaluation, result: Result) -> str:
    model = result.model
    row = row_of(result.dataset, model, evaluation.folder, evaluation.options.split)
    lines = [
        f"# {model.name} on {result.dataset}", "",
        f"- Model: `{model.architecture}`, version {model.version}, computed in {model.precision or 'its own precision'}",
        f"- Evaluated: {_covered(result)}",
        f"- Published: {_source(row)}",
        f"- Definition: {result.definition}", "",
        *(_rows(result, row) if result.figures else ["No sample has an answer."]), "",
    ]
    if result.failures:
        lines += ["## Without an answer", "", "| sample | reason |", "|---|---|"]
        lines += [f"| {_cell(one.key)} | {_cell(one.error)} |" for one in result.failures[:_FAILURES_SHOWN]]
        if len(result.failures) > _FAILURES_SHOWN:
            lines.append(f"| {len(result.failures) - _FAILURES_SHOWN:,} more | in result.json |")
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def document(evaluation: Evaluation, result: Result) -> dict[str, Any]:
    model = result.model
    row = row_of(result.dataset, model, evaluation.folder, evaluation.options.split)
    figures = [
        {"name": one.name, "value": one.value, "unit": one.unit,
         "published": row.figures.get(one.name) if row is not None else None}
        for one in result.figures
    ]
    return {
        "dataset": result.dataset, "definition": result.definition, "split": evaluation.options.split,
        "variant": evaluation.options.variant,
        "model": {"name": model.name, "version": model.version, "architecture": model.architecture,
                  "precision": model.precision, "options": model.options},
        "samples": result.samples, "asked": result.asked, "evaluated": result.evaluated, "figures": figures,
        "published": _source(row) if row is not None else None,
        "failures": [{"sample": one.key, "error": one.error} for one in result.failures],
    }


def write(evaluation: Evaluation, result: Result) -> str:
    """Writes result.md and result.json, each as a whole, and returns the first one's text."""
    text = markdown(evaluation, result)
    _replace(evaluation.output / "result.md", text)
    _replace(evaluation.output / "result.json", json.dumps(document(evaluation, result), indent=1) + "\n")
    return text


def _replace(path: pathlib.Path, text: str) -> None:
    unfinished = path.with_name(path.name + ".new")
    try:
        unfinished.write_text(text, encoding="utf-8")
        os.replace(unfinished, path)
    except OSError as error:
        raise EvaluateError(f"{path} cannot be written: {error.strerror}; make room, and repeat the command") from None

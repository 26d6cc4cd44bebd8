"""The report as one HTML file: nothing in it is loaded from elsewhere."""

from __future__ import annotations

import html as markup
import math
from typing import Any, Iterable

from saccade.replay import pictures
from saccade.replay.answers import Answer
from saccade.replay.job import Pair, Result

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; color: #1b1f24 }
table { border-collapse: collapse; margin: 1rem 0 } th, td { padding: .25rem .8rem; border-bottom: 1px solid #d8dee4; text-align: left }
td.n { text-align: right; font-variant-numeric: tabular-nums } .ok { color: #116329 } .bad { color: #a40e26 }
section { margin: 2rem 0; border-top: 1px solid #d8dee4 } .pair { display: flex; gap: 1rem; flex-wrap: wrap }
figure { margin: 0; flex: 1 1 30rem; min-width: 0 } figcaption { color: #57606a } svg, img { max-width: 100%; height: auto; background: #eee }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f6f8fa; padding: .6rem }
@media (prefers-color-scheme: dark) { body { background: #0d1117; color: #e6edf3 } pre { background: #161b22 } }
"""
_COLOURS = ("#e6194b", "#3cb44b", "#4363d8", "#f58231", "#911eb4", "#008080", "#9a6324", "#808000")
_MAX_VALUES = 12


def _escape(text: object) -> str:
    return markup.escape(str(text))


def _size(answers: Iterable[Answer]) -> tuple[int, int]:
    for answer in answers:
        if answer.result is not None and answer.result.picture_width > 0:
            return answer.result.picture_width, answer.result.picture_height
    return 0, 0


def _boxes(answer: Answer, size: tuple[int, int], picture: str | None) -> str:
    width, height = size
    parts = [f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">']
    if picture:
        parts.append(f'<image href="{picture}" width="{width}" height="{height}"/>')
    line, text = max(width / 300, 1), max(width / 40, 8)
    assert answer.result is not None
    for one in answer.result.detections.detections:
        box, colour = one.box, _COLOURS[one.class_index % len(_COLOURS)]
        name = _escape(f"{one.label or one.class_index} {one.score:.3f}")
        parts.append(
            f'<rect x="{box.x_min:.2f}" y="{box.y_min:.2f}" width="{box.x_max - box.x_min:.2f}" '
            f'height="{box.y_max - box.y_min:.2f}" fill="none" stroke="{colour}" stroke-width="{line:.1f}"/>'
            f'<text x="{box.x_min + line:.1f}" y="{box.y_min + text:.1f}" font-size="{text:.1f}" fill="{colour}">{name}</text>'
        )
    return "".join(parts) + "</svg>"


def _values(answer: Answer) -> str:
    if answer.status != "OK":
        return f"{answer.status}: {answer.message}"
    lines = []
    if answer.result is not None:
        kind = answer.result.WhichOneof("result")
        if kind == "classification":
            lines = [f"{one.probability:.6f}  {one.label or one.index}" for one in answer.result.classification.classes]
        elif kind == "actions":
            lines = [
                f"{one.score:.4f}  {one.start_seconds:.2f} to {one.end_seconds:.2f} s  {one.label or one.class_index}"
                for one in answer.result.actions.actions
            ]
        elif kind == "embedding":
            lines = [" ".join(f"{value:.5f}" for value in answer.result.embedding.values[:_MAX_VALUES])]
        elif kind == "detections":
            lines = [f"{one.score:.4f}  {one.label or one.class_index}" for one in answer.result.detections.detections]
        elif kind == "segmentation":
            lines = [f"{one.fraction:.4%}  {one.label or one.class_index}" for one in answer.result.segmentation.areas]
        elif kind:
            found = getattr(answer.result, kind)
            lines = [f"from {found.min:g} to {found.max:g}"]
    for tensor in answer.tensors:
        values = tensor.values()
        shown = " ".join(f"{value:.6g}" for value in values.reshape(-1)[:_MAX_VALUES]) if values is not None else ""
        lines.append(f"{tensor.name} {tensor.datatype} {list(tensor.shape)}: {shown}")
    return "\n".join(lines[:_MAX_VALUES]) or "nothing was found"


def _figure(title: str, answer: Answer, pair: Pair, picture: str | None) -> str:
    size = _size((pair.before, pair.now))
    kind = answer.result.WhichOneof("result") if answer.result is not None else None
    drawn = ""
    if kind == "detections" and size[0] > 0:
        drawn = _boxes(answer, size, picture)
    elif kind in ("segmentation", "disparity"):
        low = high = 0.0
        if kind == "disparity" and pair.before.result is not None:
            low, high = pair.before.result.disparity.min, pair.before.result.disparity.max
        where = pictures.address(pictures.map_of(answer, low, high))
        drawn = f'<img src="{where}" alt="{title}">' if where else ""
    return f"<figure><figcaption>{title}, version {answer.version}</figcaption>{drawn}<pre>{_escape(_values(answer))}</pre></figure>"


def _pair(number: int, pair: Pair) -> str:
    value = f"{pair.difference.value:.6g}" if math.isfinite(pair.difference.value) else "not comparable"
    picture = pictures.address(pictures.picture_of(pair.captured))
    kind = pair.before.result.WhichOneof("result") if pair.before.result is not None else None
    seen = ""
    if picture and kind != "detections":
        seen = f'<figure><figcaption>The request</figcaption><img src="{picture}" alt="The request"></figure>'
    named = f", id {_escape(pair.captured.id)}" if pair.captured.id else ""
    return (
        f"<section><h3>{number}. {_escape(pair.captured.model or '(no model)')}: {_escape(pair.difference.what)}</h3>"
        f"<p>{_escape(pair.captured.facts.get('time', ''))}, {_escape(pair.captured.target)}{named}. "
        f"Difference: {value}; expected: {_escape(pair.expected)}.</p><div class=\"pair\">{seen}"
        f"{_figure('Captured', pair.before, pair, picture)}{_figure('Now', pair.now, pair, picture)}</div></section>"
    )


def _row(name: str, one: dict[str, Any]) -> str:
    alike = {True: "yes", False: "no", None: "-"}[one["computes_alike"]]
    cells = "".join(f'<td class="n">{one[key]:,}</td>' for key in ("compared", "equal", "close", "different"))
    return f"<tr><td>{_escape(name or '(no model)')}</td>{cells}<td>{alike}</td></tr>"


def html(result: Result, document: dict[str, Any]) -> str:
    different = document["different"]
    outcome = f'<b class="bad">{different:,} differ</b>' if different else '<b class="ok">none differs</b>'
    rows = "".join(_row(name, one) for name, one in document["models"].items())
    notes = [f"{count:,} calls were left out: they {why}." for why, count in document["skipped"].items()]
    notes += document["damages"]
    listed = "".join(f"<li>{_escape(note)}</li>" for note in notes)
    worst = "".join(_pair(number, pair) for number, pair in enumerate(result.worst, 1))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Replay</title>'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; style-src \'unsafe-inline\'">'
        f"<style>{_STYLE}</style></head><body><h1>Replay of {_escape(document['capture'])}</h1>"
        f"<p>{document['compared']:,} calls were sent to {_escape(document['daemon'])} in {document['seconds']:,} s, and the "
        f"answers compared with the captured ones: {outcome}.</p>"
        "<table><tr><th>model</th><th>compared</th><th>bit for bit the same</th><th>within the tolerance</th>"
        f"<th>different</th><th>computed alike</th></tr>{rows}</table>"
        "<p>Computed alike: weights, precision and instruction set are the same as when the calls were captured.</p>"
        f"{f'<ul>{listed}</ul>' if notes else ''}"
        f"{f'<h2>The largest differences</h2>{worst}' if worst else ''}</body></html>\n"
    )

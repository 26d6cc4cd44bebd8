"""Runs the author's Python beside the served model over a folder of pictures."""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import time
from collections.abc import Iterator
from typing import Any

import numpy
import torch

import saccade
from saccade import inputs
from saccade.bulk.keeper import Daemon
from saccade.imports import comparing, folder, sources
from saccade.imports.failures import ImportFailure
from saccade.imports.network import Found

_SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff"}
_LOOK_SECONDS = 0.1
_IN_FLIGHT = 8
# What the daemon takes where a head does not say them.
_MAX_DETECTIONS = 100
_SCORE_THRESHOLD = 0.05


def pictures_in(place: pathlib.Path) -> list[pathlib.Path]:
    if not place.is_dir():
        raise ImportFailure(f"--pictures {place} is no folder; expected one with pictures")
    found = sorted(path for path in place.iterdir() if path.suffix.lower() in _SUFFIXES)
    if not found:
        raise ImportFailure(f"--pictures {place} has no picture ({', '.join(sorted(_SUFFIXES))})")
    return found


def record_of(model: pathlib.Path) -> folder.Record:
    """Returns where the model is from. Raises ImportFailure if that has no Python to compare with."""
    record = folder.read_record(model)
    if record.from_file is not None:
        raise ImportFailure(
            f"{model} was imported from the file {record.from_file}, which has no author's Python to compare with; verify takes "
            "folders that were imported from torchvision, timm or transformers"
        )
    return record


def decoded(file: bytes) -> torch.Tensor:
    """Returns the upright picture, float32 [3, height, width] from 0 to 1."""
    import PIL.Image
    import PIL.ImageOps

    with PIL.Image.open(io.BytesIO(file)) as opened:
        array = inputs.pixels_of_pil(PIL.ImageOps.exif_transpose(opened))
    if array.ndim == 2:
        array = numpy.repeat(array[:, :, None], 3, axis=2)
    return torch.from_numpy(array.copy()).permute(2, 0, 1).float() / 255


@contextlib.contextmanager
def serving(model: pathlib.Path, saccaded: str, start_seconds: float, flags: list[str]) -> Iterator[str]:
    """Starts a daemon with this model alone; yields its address."""
    whole = model.absolute()
    command = [
        saccaded, f"--model-repository={whole.parent}", "--model-control-mode=explicit", f"--load-model={whole.name}",
        "--allow-executable-models", "--host=127.0.0.1", "--grpc-port=0", "--http-port=0", "--metrics-port=0",
        # This daemon has no other client that has to be told before it ends.
        "--lame-duck-seconds=0", *flags,
    ]
    try:
        daemon = Daemon(command)
    except OSError as error:
        raise ImportFailure(f"{saccaded} cannot be started: {error}; name the daemon's program with --saccaded") from None
    try:
        end = time.monotonic() + start_seconds
        while not daemon.is_ready():
            if daemon.ended():
                raise ImportFailure(f"the daemon does not serve {model}: {daemon.why()}")
            if time.monotonic() > end:
                lines = "\n".join(daemon.last_lines)
                raise ImportFailure(f"the daemon was not ready after {start_seconds:g} s; its last lines:\n{lines}")
            time.sleep(_LOOK_SECONDS)
        assert daemon.address is not None
        yield daemon.address
    finally:
        daemon.stop()


def _request(kind: str, model: str, file: bytes, classes: int) -> Any:
    if kind == "classes":
        return saccade.Classify(model, file, top_k=classes)
    if kind == "semantic":
        return saccade.Segment(model, file)
    if kind in ("boxes", "sets", "grid"):
        return saccade.Detect(model, file)
    if kind == "depth":
        return saccade.Depth(model, file)
    if kind == "embedding":
        return saccade.Embed(model, file)
    raise ImportFailure(f"saccade.json has the head '{kind}', whose answers cannot be compared yet")


def _found(answer: saccade.Detections) -> Found:
    """If only some detections have a mask, the others' are empty."""
    masks = [None if one.mask is None else one.mask.pixels for one in answer.detections]
    size = next((mask.shape for mask in masks if mask is not None), None)
    if size is None:
        return Found(answer.boxes, answer.scores, answer.class_indices, None)
    all_masks = numpy.array([numpy.zeros(size, bool) if mask is None else mask for mask in masks])
    return Found(answer.boxes, answer.scores, answer.class_indices, all_masks)


def _compare(into: comparing.Differences, description: dict[str, Any], answer: Any, expected: Any, tolerance: comparing.Tolerance) -> None:
    head = description["head"]
    kind = head["kind"]
    if kind == "classes":
        served = numpy.zeros(len(expected), numpy.float32)
        for one in answer.classes:
            served[one.index] = one.probability
        comparing.add_probabilities(into, served, expected)
    elif kind == "semantic":
        comparing.add_label_map(into, answer.label_map, expected)
    elif kind == "depth":
        comparing.add_depth(into, answer.depth, expected)
    elif kind == "embedding":
        comparing.add_embedding(into, answer.values, expected)
    else:
        most, threshold = int(head.get("max_detections", _MAX_DETECTIONS)), float(head.get("score_threshold", _SCORE_THRESHOLD))
        # Other masks are sums of prototypes, which lie on the network's input.
        fill = "masks" in description.get("outputs", {})
        comparing.add_detections(into, _found(answer), expected, most, threshold, tolerance, fill)


def compare(
    model: pathlib.Path, client: saccade.Client, name: str, pictures: list[pathlib.Path], tolerance: comparing.Tolerance
) -> comparing.Differences:
    """Sends all pictures at once, so that they share batches, and compares each answer with the author's."""
    network = sources.build(record_of(model))
    author: Any = network.author
    missing, unexpected = author.network.load_state_dict(folder.read_state(model), strict=False)
    if missing:
        raise ImportFailure(
            f"{model}/1/model.pt has no parameter '{missing[0]}' of {network.source}; import the network again"
        )
    description = json.loads((model / "saccade.json").read_text(encoding="utf-8"))
    head = description["head"]
    classes = client.model(name).classes
    files = [path.read_bytes() for path in pictures]
    requests = [_request(head["kind"], name, file, int(classes)) for file in files]
    differences = comparing.Differences()
    with torch.inference_mode():
        for path, file, item in zip(pictures, files, client.stream(requests, in_flight=_IN_FLIGHT)):
            if item.error is not None:
                raise ImportFailure(f"{path}: the daemon answered with an error: {item.error}")
            expected = author(decoded(file))
            _compare(differences, description, item.answer, expected, tolerance)
    return differences

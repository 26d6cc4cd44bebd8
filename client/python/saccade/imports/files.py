"""Programs that are files already: TorchScript (.pt), AOTInductor's packages (.pt2) and ONNX graphs (.onnx)."""

from __future__ import annotations

import json
import pathlib
import shutil
from typing import Any

from saccade.imports import folder
from saccade.imports.failures import ImportFailure

SUFFIXES = (".pt", ".pt2", ".onnx")
_MAX_TEXT_BYTES = 4 << 20


def _text(path: pathlib.Path) -> str:
    try:
        if path.stat().st_size > _MAX_TEXT_BYTES:
            raise ImportFailure(f"{path} has more than {_MAX_TEXT_BYTES} bytes; expected a text of at most that")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ImportFailure(f"{path} cannot be read: {error}") from None


def read_labels(path: pathlib.Path) -> list[str]:
    """Returns a name for each line, as the daemon reads the file: an empty line is a class without a name."""
    text = _text(path).removeprefix("\ufeff").rstrip()
    return [line.removesuffix("\r") for line in text.split("\n")] if text else []


def _external_data(program: pathlib.Path) -> list[pathlib.Path]:
    """Returns the files beside a graph that exporters name after it: it refers to them by these names."""
    if program.suffix != ".onnx":
        return []
    named = (program.with_name(program.name + ending) for ending in (".data", "_data"))
    return [path for path in named if path.is_file()]


def _lies_in(path: pathlib.Path, folder: pathlib.Path) -> bool:
    """Tells whether removing the folder would remove the file, or the link that is its name."""
    return any(one.is_relative_to(folder.resolve()) for one in (path.resolve(), path.parent.resolve() / path.name))


def import_file(program: pathlib.Path, target: pathlib.Path, description: pathlib.Path | None, labels: pathlib.Path | None) -> None:
    """Copies the program beside its description. The daemon compares both when it loads the model."""
    if description is None:
        tensors = f", or serve its tensors as they are: saccade init {program} -o {target}" if program.suffix == ".onnx" else ""
        raise ImportFailure(
            f"{program} does not say what its pictures and outputs are; add --description saccade.json{tensors}"
        )
    if not program.is_file():
        raise ImportFailure(f"{program} is no file; expected a program of TorchScript or AOTInductor, or an ONNX graph")
    try:
        described: Any = json.loads(_text(description))
    except ValueError as error:
        raise ImportFailure(f"{description} is no JSON: {error}") from None
    if not isinstance(described, dict) or not isinstance(described.get("head"), dict):
        raise ImportFailure(f'{description} has no head; expected an object with "input" and "head"')
    names = read_labels(labels) if labels is not None else []
    external = _external_data(program)
    for path in (program, *external):
        if _lies_in(path, target):
            raise ImportFailure(f"{path} lies in {target}, which --overwrite would remove; move it elsewhere, or choose another -o")
    shutil.rmtree(target, ignore_errors=True)
    (target / "1").mkdir(parents=True)
    record = folder.Record(f"file:{program.name}")
    folder.write_text(target, described, names, program.name, "as it is", record, program.suffix)
    for data in external:
        shutil.copyfile(data, target / "1" / data.name)
    shutil.copyfile(program, target / "1" / f"model{program.suffix}")

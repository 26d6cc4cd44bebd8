"""Programs that are files already: TorchScript (.pt), AOTInductor's packages (.pt2) and ONNX graphs (.onnx)."""

from __future__ import annotations

import json
import pathlib
import shutil
from typing import Any

from saccade.imports import folder, onnx_file, trials
from saccade.imports.failures import ImportFailure

SUFFIXES = (".pt", ".pt2", ".onnx")
_MAX_TEXT_BYTES = 4 << 20
# What a graph is called in a model's folder.
_GRAPH = pathlib.PurePosixPath("model.onnx")
_NOT_TRIED = "nobody saw whether it takes more than one picture"


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


def _external_data(program: pathlib.Path, graph: onnx_file.OnnxFile) -> dict[pathlib.PurePath, pathlib.Path]:
    """Returns the files with a graph's weights, by their names relative to the graph. Raises ImportFailure unless all lie beside it, also
    where a name is a link: a repository of links has the files of the graph and of its weights in one other folder."""
    folders = (program.parent.resolve(), program.resolve().parent)
    found: dict[pathlib.PurePath, pathlib.Path] = {}
    for location, tensor in graph.locations.items():
        of = f"{program}: the external data of tensor '{tensor}' is in '{location}'"
        name = pathlib.PurePosixPath(location)
        # The daemon reads no hidden files.
        hidden = any(part.startswith(".") for part in name.parts)
        if not location or "\0" in location or name.is_absolute() or hidden or name == _GRAPH:
            raise ImportFailure(f"{of}, which cannot be copied beside the model; save it with its data in another file of the same folder")
        path = program.parent / name
        if not any(path.resolve().is_relative_to(folder) for folder in folders):
            raise ImportFailure(f"{of}, which leads out of the graph's folder; copy the file itself there")
        if not path.is_file() or path.stat().st_size == 0:
            raise ImportFailure(f"{of}, which is missing or empty; copy that file beside the graph")
        found[name] = path
    return found


def _batch_of(program: pathlib.Path, described: dict[str, Any], graph: onnx_file.OnnxFile, run: bool) -> tuple[int | None, str]:
    """Returns the batch for which the program was exported, None if it takes any, and a remark on that."""
    if program.suffix == ".onnx":
        if graph.batch is not None:
            return graph.batch, ""
        return (1, graph.constant) if graph.constant else (None, "")
    if described.get("max_batch_size") == 1:
        return None, ""
    if not run:
        return None, f"it was not run, so {_NOT_TRIED}; --run runs its code"
    given = described.get("input")
    trial = trials.run(program, given if isinstance(given, dict) else {})
    if trial.fixed:
        return 1, trial.fixed
    return None, f"{_NOT_TRIED}: {trial.failed}" if trial.failed else ""


def _with_batch(described: dict[str, Any], program: pathlib.Path, batch: int, why: str) -> dict[str, Any]:
    """Returns the description with the batch that the program takes."""
    given = described.get("max_batch_size", 1)
    if batch != 1 or given != 1:
        raise ImportFailure(
            f"{program} was exported for a batch of {batch}{f' ({why})' if why else ''}, but "
            + (f"max_batch_size is {given}" if batch == 1 else "pictures come in batches of any size")
            + "; export it with an open first size, or for a batch of 1 without max_batch_size"
        )
    return {**described, "max_batch_size": 1}


def _lies_in(path: pathlib.Path, folder: pathlib.Path) -> bool:
    """Tells whether removing the folder would remove the file, or the link that is its name."""
    return any(one.is_relative_to(folder.resolve()) for one in (path.resolve(), path.parent.resolve() / path.name))


def import_file(
    program: pathlib.Path, target: pathlib.Path, description: pathlib.Path | None, labels: pathlib.Path | None, run: bool = False
) -> list[str]:
    """Copies the program beside its description. The daemon compares both when it loads the model. `run`: whether the code of a program,
    .pt or .pt2, may run, to see whether its batch is a constant. Returns notes for the user."""
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
    graph = onnx_file.look(program) if program.suffix == ".onnx" else onnx_file.OnnxFile()
    batch, remark = _batch_of(program, described, graph, run)
    if batch is not None:
        described = _with_batch(described, program, batch, remark)
        remark = f"exported for a batch of 1{f' ({remark})' if remark else ''}, so each picture is computed alone"
    external = _external_data(program, graph)
    for path in (program, *external.values()):
        if _lies_in(path, target):
            raise ImportFailure(f"{path} lies in {target}, which --overwrite would remove; move it elsewhere, or choose another -o")
    shutil.rmtree(target, ignore_errors=True)
    (target / "1").mkdir(parents=True)
    record = folder.Record(f"file:{program.name}")
    notes = [remark] if remark else []
    folder.write_text(target, described, names, program.name, "; ".join(["as it is", *notes]), record, program.suffix)
    for name, path in external.items():
        (target / "1" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target / "1" / name)
    shutil.copyfile(program, target / "1" / f"model{program.suffix}")
    return notes

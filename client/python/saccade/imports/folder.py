"""A model's folder: config.pbtxt, saccade.json, labels.txt, README.md, import.json and the program, such as 1/model.pt."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import shutil
from typing import Any

import torch

from saccade.imports.failures import ImportFailure
from saccade.imports.network import Network

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_MAX_RECORD_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True)
class Record:
    """What import.json says: how to build the author's Python again."""

    source: str
    weights: str | None = None
    seed: int | None = None

    @property
    def from_file(self) -> str | None:
        """The name of the file that was imported; None for a library's network."""
        return self.source.removeprefix(_FILE) if self.source.startswith(_FILE) else None


_FILE = "file:"
_README = """# {name}

{source}, imported by `saccade import` ({notes}).

    saccaded --model-repository {parent}{permission}

| file | what it is |
|---|---|
| `1/model{suffix}` | {program} |
| `saccade.json` | how a picture becomes its input, and what its outputs mean |
| `config.pbtxt` | the daemon's configuration |
{labels}| `import.json` | {record} |

{trust}
"""
# By suffix: what a program is, and its backend.
_PROGRAMS = {
    ".pt": ("the network as TorchScript", "pytorch"),
    ".pt2": ("the network as a package of AOTInductor's", "pytorch"),
    ".onnx": ("the network as an ONNX graph", "onnxruntime"),
}


def check_target(folder: pathlib.Path, overwrite: bool) -> None:
    """Raises ImportFailure if a model cannot be written to this folder."""
    if not _NAME.fullmatch(folder.absolute().name):
        raise ImportFailure(
            f"-o {folder}: '{folder.absolute().name}' is no name of a model; expected letters, digits, '_', '-' and '.'"
        )
    if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]) and not overwrite:
        raise ImportFailure(f"-o {folder} exists and is not empty; choose another folder, or add --overwrite")


def _config(description: dict[str, Any], labels: bool, backend: str) -> str:
    lines = [f'backend: "{backend}"', f"max_batch_size: {description.get('max_batch_size', 8)}"]
    if labels:
        lines.append('parameters { key: "labels" value { string_value: "labels.txt" } }')
    return "\n".join(lines) + "\n"


def write(folder: pathlib.Path, network: Network, script: torch.jit.ScriptModule, record: Record) -> None:
    """Writes everything. The program comes last: without it a folder is no model."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "1").mkdir(parents=True)
    write_text(folder, network.description, network.labels, network.source, "; ".join(network.notes), record)
    script.save(str(folder / "1" / "model.pt.new"))
    (folder / "1" / "model.pt.new").rename(folder / "1" / "model.pt")


def write_text(
    folder: pathlib.Path, description: dict[str, Any], labels: list[str], source: str, notes: str, record: Record,
    suffix: str = ".pt",
) -> None:
    """Writes everything but the program, which is 1/model with `suffix`: .pt, .pt2 or .onnx."""
    description = dict(description)
    program, backend = _PROGRAMS[suffix]
    (folder / "config.pbtxt").write_text(_config(description, bool(labels), backend), encoding="utf-8")
    description.pop("max_batch_size", None)
    (folder / "saccade.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    row = ""
    if labels:
        (folder / "labels.txt").write_text("\n".join(labels) + "\n", encoding="utf-8")
        row = f"| `labels.txt` | the names of its {len(labels)} classes |\n"
    (folder / "import.json").write_text(json.dumps(dataclasses.asdict(record), indent=2) + "\n", encoding="utf-8")
    is_data = suffix == ".onnx"
    name = folder.absolute().name
    verified = f"where it is from, for `saccade verify {name} --pictures FOLDER`"
    readme = _README.format(
        name=name, source=source, notes=notes, parent=folder.absolute().parent.name, labels=row, suffix=suffix, program=program,
        permission="" if is_data else " --allow-executable-models",
        record=verified if record.from_file is None else "where it is from",
        trust="The graph is data: it needs no permission to be served." if is_data
        else "The program is code: serve it only if you trust where it is from.",
    )  # fmt: skip
    (folder / "README.md").write_text(readme, encoding="utf-8")


def read_record(folder: pathlib.Path) -> Record:
    path = folder / "import.json"
    try:
        if path.stat().st_size > _MAX_RECORD_BYTES:
            raise ImportFailure(f"{path} has more than {_MAX_RECORD_BYTES} bytes; import the network again")
        return Record(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise ImportFailure(f"{folder} has no import.json; expected a folder that `saccade import` wrote") from None
    except (OSError, ValueError, TypeError) as error:
        raise ImportFailure(f"{path} cannot be read: {error}; import the network again") from None


def read_state(folder: pathlib.Path) -> dict[str, torch.Tensor]:
    """Returns the parameters of the author's network, from the program."""
    path = folder / "1" / "model.pt"
    try:
        state = torch.jit.load(str(path), map_location="cpu").state_dict()
    except (RuntimeError, ValueError) as error:
        raise ImportFailure(f"{path} cannot be read as TorchScript: {error}") from None
    return {name.removeprefix("network."): value for name, value in state.items()}

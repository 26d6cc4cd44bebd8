"""Converts a file of weights: python -m models.reference.convert SOURCE --architecture NAME -o weights.safetensors"""

import argparse
import pathlib
import sys
import zipfile

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from models.reference.convert import LAYOUTS, Converted, Misfit, convert, misfits
from models.reference.registry import ARCHITECTURES

_SHOWN = 12
_PARTS = ("state_dict", "model", "model_state_dict")


class Failure(Exception):
    """The conversion cannot go on; the text says what was wrong, what was expected and what to do."""


def _read(path: pathlib.Path) -> dict[str, torch.Tensor]:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        # Only tensors and plain values are read: a pickle could run code.
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, ValueError, EOFError, SafetensorError, zipfile.BadZipFile) as error:
        raise Failure(f"{path} cannot be read: {error}; expected a state_dict as torch.save or safetensors writes it") from None
    except Exception as error:  # the unpickler's errors are of many kinds
        raise Failure(f"{path} is not read: {str(error).splitlines()[0]}; save its state_dict alone, with torch.save") from None
    while isinstance(found, dict) and not any(isinstance(value, torch.Tensor) for value in found.values()):
        part = next((name for name in _PARTS if isinstance(found.get(name), dict)), None)
        if part is None:
            break
        found = found[part]
    tensors = {str(name): value for name, value in found.items() if isinstance(value, torch.Tensor)} \
        if isinstance(found, dict) else {}
    if not tensors:
        raise Failure(f"{path} has no tensors; expected a state_dict, alone or under {', '.join(_PARTS)}")
    return tensors


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"is {text!r}; expected NAME=VALUE")
    return name, value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m models.reference.convert", description="Renames the tensors of a public implementation to those of a "
        "served network, checks that all fit, and writes a file that says what network it is.",
        epilog="Exit codes: 0 all tensors fit, 1 some do not or a file cannot be read, 2 usage.")
    add = parser.add_argument
    add("source", type=pathlib.Path, help="a state_dict, alone or in a checkpoint")
    add("--architecture", required=True, choices=sorted(ARCHITECTURES), metavar="NAME", help="the network, as config.pbtxt names it")
    add("--option", type=_pair, action="append", default=[], metavar="NAME=VALUE", help="the network's options; may be repeated")
    add("--layout", choices=sorted(LAYOUTS), help="whose names the file has (default: found out by its names)")
    add("--rename", type=_pair, action="append", default=[], metavar="OLD=NEW",
        help="replace the start of names first; may be repeated")
    add("--partial", action="store_true", help="write what fits although something is missing, for training to go on")
    add("-o", "--output", type=pathlib.Path, required=True, help="the .safetensors file to write")
    return parser


def _list(title: str, rows: dict[str, str]) -> None:
    """Names with the same reason are one line."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in rows.items():
        by_reason.setdefault(reason, []).append(name)
    print(title, file=sys.stderr)
    for reason, names in by_reason.items():
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        print(f"  {', '.join(names[:_SHOWN])}{more}: {reason}", file=sys.stderr)


def _write(given: argparse.Namespace, found: Converted, options: dict[str, str], wrong: list[Misfit]) -> int:
    unfit = {one.name for one in wrong}
    kept = {name: tensor.contiguous().clone() for name, tensor in found.state.items() if name not in unfit}
    if not kept:
        raise Failure(f"no tensor of {given.source} fits {given.architecture}; nothing is written")
    metadata = {"saccade.architecture": given.architecture,
                **{f"saccade.option.{name}": value for name, value in options.items()}}
    try:
        save_file(kept, given.output, metadata)
    except (OSError, SafetensorError) as error:
        raise Failure(f"{given.output} cannot be written: {error}; choose another place with -o") from None
    return len(kept)


def run(given: argparse.Namespace) -> int:
    source = _read(given.source)
    found = convert(source, given.layout, dict(given.rename))
    options = {**found.options, **dict(given.option)}
    try:
        wrong = misfits(found.state, given.architecture, options)
    except (TypeError, ValueError) as error:
        raise Failure(f"{given.architecture} cannot be built: {error}; give other options with --option") from None
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    if found.left:
        _list("these tensors of the file have no place:", found.left)
    if wrong:
        _list(f"these tensors do not fit {given.architecture}:", {one.name: one.reason for one in wrong})
    if (wrong or found.left) and not given.partial:
        print("nothing was written; --partial writes what fits", file=sys.stderr)
        return 1
    count = _write(given, found, options, wrong)
    said = ", ".join(f"{name}={value}" for name, value in options.items()) or "no options"
    print(f"{given.output}: {count} tensors for {given.architecture} ({said})")
    return 1 if wrong else 0


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    try:
        return run(given)
    except Failure as failure:
        print(f"convert: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

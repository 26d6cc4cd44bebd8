"""Compares the daemon's table of architectures with the twins' registry and with docs/models.md."""

import inspect
import json
import os
import pathlib
import re
import subprocess

import pytest
import torch

from models.reference.registry import ARCHITECTURES, build

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SACCADE_BUILD_DIR", "build/release"))
# Has no parameters and therefore no twin.
IDENTITY = "identity"


def daemon_table():
    """{name: {"task", "parameters", "options": {name: default as text}}}, from models/networks/architectures.h."""
    listed = subprocess.run([BUILD / "tests" / "saccade_list_architectures"], check=True, capture_output=True, text=True)
    return json.loads(listed.stdout)


TABLE = daemon_table()
TWINS = sorted(set(TABLE) & set(ARCHITECTURES))


def parameters(network):
    return sum(parameter.numel() for parameter in network.parameters())


def twin(name, **options):
    """The twin without memory for its weights."""
    with torch.device("meta"):
        return build(name, **options)


def as_text(value):
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def defaults(name, network):
    """The twin's defaults as text. None stands for a default that depends on other options or on the daemon."""
    found = {}
    for function in (type(network).__init__, ARCHITECTURES[name]):
        for parameter in inspect.signature(function).parameters.values():
            if parameter.default is not inspect.Parameter.empty:
                found[parameter.name] = parameter.default
    return {option: as_text(value) for option, value in found.items() if value is not None}


def test_every_architecture_has_a_twin():
    assert set(ARCHITECTURES) == set(TABLE) - {IDENTITY}


@pytest.mark.parametrize("name", TWINS)
def test_twins_have_the_defaults_and_parameters_of_the_table(name):
    row = TABLE[name]
    network = twin(name)
    assert parameters(network) == row["parameters"]
    assert parameters(twin(name, **row["options"])) == row["parameters"]
    own = {option: value for option, value in defaults(name, network).items() if option in row["options"]}
    assert own == {option: row["options"][option] for option in own}


def sections():
    """The sections of docs/models.md that describe architectures: (title, architectures, {option: default cell}). Their
    tables of options have the second column "default"."""
    found = []
    for section in re.split(r"^## ", (ROOT / "docs" / "models.md").read_text(), flags=re.MULTILINE)[1:]:
        before, *tables = re.split(r"^\| \w+ \| default \|.*\n\|[-|]+\n", section, flags=re.MULTILINE)
        names = [name for name in re.findall(r"`(\w+)`", before) if name in TABLE]
        rows = [row.split("|")[1:3] for table in tables for row in table.split("\n\n")[0].splitlines()]
        if rows:
            found.append((section.splitlines()[0], names, options_of(rows)))
    return found


def options_of(rows):
    """Rows have one option and its default, or several options and as many defaults, all separated by ", "."""
    options = {}
    for names, cell in rows:
        names = re.findall(r"`(\w+)`", names)
        cells = [cell] if len(names) == 1 else cell.split(", ")
        assert len(cells) == len(names), f"{names} have {len(cells)} defaults: {cell}"
        options.update(zip(names, (one.replace("`", "").strip() for one in cells), strict=True))
    return options


SECTIONS = sections()


def states(cell, value):
    """Whether a default cell has the daemon's value: as a word, as a number of the same value, or "none" for ""."""
    words = re.split(r"[ ;]+|, ", cell)
    if value in words or (value == "" and cell == "none"):
        return True
    try:
        return any(float(word) == float(value) for word in words if re.fullmatch(r"[\d.e-]+", word))
    except ValueError:
        return False


def test_every_architecture_is_documented_once():
    assert sorted(name for _, names, _ in SECTIONS for name in names) == sorted(TABLE)


def test_the_overview_has_every_number_of_parameters():
    overview = (ROOT / "docs" / "models.md").read_text().partition("| architecture | ")[2].split("\n\n")[0]
    documented = {int(number.replace(",", "")) for number in re.findall(r"\d+(?:,\d{3})+", overview)}
    assert documented == {row["parameters"] for row in TABLE.values()} - {TABLE[IDENTITY]["parameters"]}


@pytest.mark.parametrize("title, names, options", SECTIONS, ids=[title for title, _, _ in SECTIONS])
def test_documented_options_are_those_of_the_table(title, names, options):
    table = {option: {TABLE[name]["options"][option] for name in names if option in TABLE[name]["options"]}
             for option in {option for name in names for option in TABLE[name]["options"]}}
    assert set(options) == set(table)
    for option, values in table.items():
        cell = options[option]
        assert cell == "the architecture's" or all(states(cell, value) for value in values), (
            f"{option} has the default {cell!r} in docs/models.md; the daemon's are {sorted(values)}")

"""Merges sources for clang-tidy, for tools/tidy.py: the headers of one source take longer to read than the source itself, and a
file that has several of them reads them once.

The text of the sources is joined, instead of including them, because clang's static analyzer follows paths in the main file alone.
Sources are together if they are compiled with the same options and define no name twice. Those of a folder that has other checks, and
those that fit nowhere, are read as they are."""

import collections
import dataclasses
import json
import os
import pathlib
import re

MAX_SOURCES = 16
# The static analyzer gives up a function after so many states instead of 225,000. It is the most expensive part, and few functions
# have so many. A source that changed is read with all of them.
OPTIONS = [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=10000")]
CONFIG = pathlib.Path(".clang-tidy")
COMPILER_ERROR = re.compile(r"\[clang-diagnostic-error\b|: fatal error: |^error: ", re.MULTILINE)

WORD = re.compile(r"[A-Za-z_]\w*")
TEST = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+), (\w+)\)")
MACRO = re.compile(r"^# *define (\w+)")
TYPE = re.compile(r"^(?:template <.*> )?(?:enum )?(?:class|struct|union|enum) (?:\w+\([^)]*\) )?(\w+)|^using (\w+) =")
# The last word before what ends the name of a function or a variable. Members of classes have "::" before it.
VALUE = re.compile(r"^[A-Za-z_][^=({;]*?(?<!::)\b(\w+)(?:\[\w*\])? *[=({;]")


def defined(text: str) -> tuple[set[str], set[str]]:
    """The names that a source defines at the beginning of a line, where definitions of a namespace begin, and those of them that only
    it can see."""
    names, own, inside = set(), set(), False
    for line in text.splitlines():
        inside = line.startswith("namespace {") or (inside and not line.startswith("}  // namespace"))
        if found := TEST.match(line):
            name = "_".join(found.groups())
        elif found := MACRO.match(line) or TYPE.match(line):
            name = next(name for name in found.groups() if name)
        elif not line.startswith("namespace") and (found := VALUE.match(line)):
            name = found[1]
        else:
            continue
        names.add(name)
        if inside or line.startswith(("static ", "#", "using ")):
            own.add(name)
    return names, own


class Names:
    """The names in some sources."""

    def __init__(self, text: str):
        self.defined, self.own = defined(text)
        self.used = set(WORD.findall(text))

    def mean_the_same_with(self, other: "Names") -> bool:
        """Whether no name is defined twice, and none that is one source's own would be found in place of another one's."""
        return not (self.defined & other.defined or self.own & other.used or self.used & other.own)

    def add(self, other: "Names") -> None:
        self.defined |= other.defined
        self.own |= other.own
        self.used |= other.used


REPLACEMENT = re.compile(r"^\S.*\boperator (?:new|delete)\b", re.MULTILINE)
# The line of a finding, and the one that quotes the source.
PLACE = re.compile(r"^(/?[\w./+-]+):(\d+)(?=:\d+: )")
QUOTED = re.compile(r"^ *(\d+)(?= \|)")


@dataclasses.dataclass
class Batch:
    """Sources, the file that has the text of all, the folder of its compile command, and options of clang-tidy."""

    file: pathlib.Path
    sources: list[str]
    database: pathlib.Path
    options: list[str]
    # The number of the line before the first one of each source.
    before: list[int] = dataclasses.field(default_factory=list)

    def write(self) -> None:
        text = ""
        for source in self.sources:
            self.before.append(text.count("\n"))
            text += pathlib.Path(source).read_text(encoding="utf-8").rstrip("\n") + "\n"
        self.file.write_text(text, encoding="utf-8")

    def named(self, said: str) -> str:
        """What clang-tidy said of lines of the file, as of the sources."""
        if not self.before:
            return said
        told, offset = [], 0
        for line in said.splitlines(keepends=True):
            if found := PLACE.match(line):
                offset = 0
                if found[1] == str(self.file):
                    number = int(found[2])
                    at = max(i for i, before in enumerate(self.before) if before < number)
                    offset = self.before[at]
                    line = f"{self.sources[at]}:{number - offset}{line[found.end():]}"
            elif (found := QUOTED.match(line)) and offset:
                line = f"{int(found[1]) - offset:5}{line[found.end(1):]}"
            told.append(line)
        return "".join(told)


def is_read_alone(file: str) -> bool:
    """Whether the folder has other checks than the others, or the file replaces functions that all code calls."""
    if REPLACEMENT.search(pathlib.Path(file).read_text(encoding="utf-8")):
        return True
    return any((folder / ".clang-tidy").exists() for folder in list(pathlib.Path(file).parents)[:-1])


def batches(database: pathlib.Path, files: list[str]) -> list[Batch]:
    """Batches that have each of the files once, written into the folder `merged` of the database with their compile commands."""
    folder = database.resolve() / "merged"
    folder.mkdir(exist_ok=True)
    entries = {os.path.relpath(entry["file"]): entry for entry in json.loads((database / "compile_commands.json").read_text())}
    # By options: the sources of each batch, and their names.
    groups: dict[str, list[tuple[list[str], Names]]] = collections.defaultdict(list)
    for file in files:
        group = groups[file if is_read_alone(file) else entries[file].get("command", "").split(" -o ")[0]]
        names = Names(pathlib.Path(file).read_text(encoding="utf-8"))
        for sources, taken in group:
            if len(sources) < MAX_SOURCES and taken.mean_the_same_with(names):
                sources.append(file)
                taken.add(names)
                break
        else:
            group.append(([file], names))
    made, commands = [], []
    for options, group in groups.items():
        for sources, _ in group:
            if len(sources) == 1:
                made.append(Batch(pathlib.Path(sources[0]), sources, database, OPTIONS))
                continue
            batch = Batch(folder / f"{len(made)}.cc", sources, folder, [*OPTIONS, f"--config-file={CONFIG}"])
            batch.write()
            made.append(batch)
            commands.append({"file": str(batch.file), "directory": entries[sources[0]]["directory"],
                             "command": f"{options} -o {batch.file}.o -c {batch.file}"})
    (folder / "compile_commands.json").write_text(json.dumps(commands))
    return made

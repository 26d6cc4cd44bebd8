"""Checks that the files and folders which comments name exist."""

import functools
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
# How a comment begins, by the kind of file.
MARKS = {
    **dict.fromkeys((".h", ".cc", ".cu", ".cuh", ".inc", ".proto", ".js"), "//"),
    **dict.fromkeys((".py", ".cmake", ".txt", ".sh", ".yaml", ".yml", ""), "#"),
}
FOLDERS = ("client", "cmake", "deploy", "docs", "kernels", "models", "proto", "server", "tests", "tools")
# A path below one of the repository's folders, or the name of a source file alone.
PATH = re.compile(rf"(?<![\w./{{<$:-])((?:{'|'.join(FOLDERS)})/[\w./-]*\w)")
SOURCE = re.compile(r"(?<![\w./{<$*-])(\w+\.(?:h|cc|cu|cuh|inc|py|cmake|proto|js))(?![\w(])")
# Files that a build makes, that other projects have, or that stand for any file of their kind.
OTHERS = {
    "X_avx2.cc", "X_avx512.cc", "X_avx512_bf16.cc", "X_avx512_vnni.cc", "NAME_test.h", "NAME_fuzz.cc", "x_bench.cc", "omp.h", "models/demo/repository",
    "cmake/precompiled/NAME.h", "deploy/k8s-onprem/dashboard.json",
}


@functools.cache
def files():
    found = [*ROOT.glob("*"), *(file for folder in FOLDERS for file in (ROOT / folder).rglob("*"))]
    return [file.relative_to(ROOT) for file in found if file.is_file() and "__pycache__" not in file.parts]


@functools.cache
def known():
    """All paths and folders, and all names of files."""
    paths = {path.as_posix() for path in files()} | {above.as_posix() for path in files() for above in path.parents}
    return paths, {path.name for path in files()}


def exists(name):
    paths, names = known()
    if name in OTHERS or name in paths or name in names:
        return True
    # A header without its suffix, as in "server/core/clock", a decision by its number, and "server/core/clock.*".
    return "/" in name and any(path.startswith((name + ".", name + "-")) for path in paths)


def comments(path, text):
    mark = MARKS.get(path.suffix)
    if mark is None:
        return
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.search(rf"(?:^|\s){mark}(?!\w)(.*)", line):
            yield number, match.group(1)


def missing(comment):
    return sorted({name for pattern in (PATH, SOURCE) for name in pattern.findall(comment) if not exists(name)})


def test_what_comments_name_exists():
    problems = []
    for path in files():
        try:
            text = (ROOT / path).read_text()
        except UnicodeDecodeError:
            continue
        problems += [f"{path}:{number}: there is no {name}" for number, comment in comments(path, text)
                     for name in missing(comment)]
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize("comment", ["as in server/nowhere/nothing.h", "See nothing_at_all.cc.", "server/nowhere"])
def test_a_planted_name_is_found(comment):
    assert len(missing(comment)) == 1


@pytest.mark.parametrize(
    "comment",
    ["server/core/clock.h", "clock.h", "(docs/decisions/0022)", "server/core", "https://example.org/docs/x.h",
     "CMakeLists.txt", "Time in and/or tests/fuzz.", "kernels/ and models/"],
)
def test_what_exists_passes(comment):
    assert missing(comment) == []

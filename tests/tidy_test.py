"""Checks which sources tools/tidy.py reads, and that no finding is lost, with a program in clang-tidy's place."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
# A finding is a line with BAD.
CLANG_TIDY = """#!/usr/bin/env bash
echo "${*: -1}" >>"$READ"
if grep -n BAD "${*: -1}"; then exit 1; fi
"""
# The time is over while a file with SLOW is read.
TIMEOUT = """#!/usr/bin/env bash
if grep -q SLOW "${*: -1}"; then exit 124; fi
exec "${@:2}"
"""


class Checkout:
    """A repository with sources of which each is a compile command."""

    def __init__(self, folder: pathlib.Path):
        self.root, self.stamp, self._read = folder / "checkout", folder / "cache" / "tidy.json", folder / "read"
        self.root.mkdir()
        self._database = folder / "database"
        self._database.mkdir()
        self._programs = folder / "bin"
        self._programs.mkdir()
        for name, text in {"clang-tidy": CLANG_TIDY, "timeout": TIMEOUT}.items():
            (self._programs / name).write_text(text)
            (self._programs / name).chmod(0o755)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        author = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost")
        done = subprocess.run(["git", *author, *arguments], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            (self.root / f"{name}.cc").write_text(text)
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "sources")
        return self.git("rev-parse", "HEAD")

    def lint(self, *options: str, seconds: float = 0) -> tuple[int, list[str], str]:
        """Returns the exit code, the files that were read, and what was printed."""
        commands = [{"file": str(file), "directory": str(self.root)} for file in sorted(self.root.glob("*.cc"))]
        (self._database / "compile_commands.json").write_text(json.dumps(commands))
        self._read.write_text("")
        command = [sys.executable, ROOT / "tools" / "tidy.py", self._programs / "clang-tidy", self._database, "1", str(seconds), self.stamp]
        done = subprocess.run([*command, *options], cwd=self.root, capture_output=True, text=True, check=False,
                              env={"PATH": f"{self._programs}:/usr/bin:/bin", "READ": str(self._read)})
        return done.returncode, self._read.read_text().split(), done.stderr


@pytest.fixture
def checkout(tmp_path):
    made = Checkout(tmp_path)
    made.commit(first="", other="")
    return made


def test_a_finding_is_kept_when_the_time_is_over(checkout):
    checkout.commit(a_bad="BAD", b_slow="SLOW")
    code, read, said = checkout.lint(seconds=600)
    assert (code, read) == (1, ["a_bad.cc"])
    assert "1:BAD" in said and "stopped after 600 s with 1 of 2 files read" in said


def test_time_that_is_over_is_no_failure(checkout):
    checkout.commit(slow="SLOW")
    assert checkout.lint(seconds=600)[0] == 0
    assert checkout.lint(seconds=1e-9)[:2] == (0, [])


def test_main_is_read_since_the_commit_that_was_clean(checkout):
    checkout.commit(first="1", other="1")
    assert checkout.lint()[:2] == (0, ["first.cc", "other.cc"])
    assert checkout.lint()[:2] == (0, [])
    checkout.commit(first="BAD")
    checkout.commit(other="2")
    # The finding is not of the last commit; it is found until it is mended.
    assert checkout.lint()[:2] == (1, ["first.cc", "other.cc"])
    assert checkout.lint()[:2] == (1, ["first.cc"])
    checkout.commit(first="2")
    assert checkout.lint()[:2] == (0, ["first.cc"])
    assert checkout.lint()[:2] == (0, [])


def test_the_next_run_goes_on_with_what_was_not_read_in_time(checkout):
    checkout.commit(a_good="", b_slow="SLOW", c_good="")
    assert checkout.lint(seconds=600)[:2] == (0, ["a_good.cc", "c_good.cc"])
    checkout.commit(b_slow="")
    assert checkout.lint(seconds=600)[:2] == (0, ["b_slow.cc"])


def test_what_is_not_committed_does_not_move_the_stamp(checkout):
    head = checkout.commit(first="1")
    assert checkout.lint()[0] == 0
    (checkout.root / "first.cc").write_text("2")
    (checkout.root / "untracked.cc").write_text("")
    assert checkout.lint()[:2] == (0, ["first.cc", "untracked.cc"])
    assert json.loads(checkout.stamp.read_text())["commit"] == head


@pytest.mark.parametrize("stamp", ["", "{}", "[]", '{"commit": "0123456789012345678901234567890123456789", "clean": []}'])
def test_with_a_stamp_that_says_nothing_the_last_commit_is_read(checkout, stamp):
    checkout.commit(first="1")
    checkout.commit(other="1")
    checkout.stamp.parent.mkdir()
    checkout.stamp.write_text(stamp)
    assert checkout.lint()[:2] == (0, ["other.cc"])


def test_a_branch_is_compared_with_origins_main(checkout):
    checkout.git("update-ref", "refs/remotes/origin/main", "HEAD")
    checkout.commit(first="1")
    checkout.commit(other="1")
    for _ in range(2):
        assert checkout.lint()[:2] == (0, ["first.cc", "other.cc"])
    assert not checkout.stamp.exists()


def test_all_reads_all(checkout):
    checkout.commit(third="BAD")
    assert checkout.lint("--all")[:2] == (1, ["first.cc", "other.cc", "third.cc"])

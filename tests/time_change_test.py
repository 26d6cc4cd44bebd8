"""Checks tools/time_change.py with programs in the place of cmake and ctest."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Each notes what it was called with, and what the header's last line was then.
PROGRAM = """#!/usr/bin/env bash
echo "{name} $* | $(tail -n 1 room/part/a.h)" >>"$CALLS"
if [[ $* == *--show-only* ]]; then
  case $* in
    *room/part*) echo '{{"tests": []}}' ;;
    *) cat tests.json ;;
  esac
else
  [ -z "${{FAILS:-}}" ] || [ "$FAILS" != {name} ] || [[ $(tail -n 1 room/part/a.h) != static_assert* ]] || {{ echo broken; exit 3; }}
fi
"""


@pytest.fixture
def checkout(tmp_path):
    """Unit tests belong to the folder above the header's."""
    for folder in ("bin", "room/part", "build/room/part"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "room/part/a.h").write_text("int a;\n")
    os.utime(tmp_path / "room/part/a.h", (1000, 1000))
    for folder in ("build/room", "build/room/part"):
        (tmp_path / folder / "CTestTestfile.cmake").write_text("")
    tests = [{"command": [str(tmp_path / "build/tests" / name)]} for name in ("b_test", "a_test")] + [{"command": ["python", "x.py"]}]
    (tmp_path / "tests.json").write_text(json.dumps({"tests": tests}))
    for name in ("cmake", "ctest"):
        (tmp_path / "bin" / name).write_text(PROGRAM.format(name=name))
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def measure(checkout, *arguments, fails=""):
    calls = checkout / "calls"
    calls.write_text("")
    done = subprocess.run([sys.executable, ROOT / "tools/time_change.py", "build", "2", *arguments], cwd=checkout, text=True,
                          capture_output=True, check=False,
                          env={"PATH": f"{checkout / 'bin'}:/usr/bin:/bin", "CALLS": str(calls), "FAILS": fails})
    assert (checkout / "room/part/a.h").read_text() == "int a;\n" and (checkout / "room/part/a.h").stat().st_mtime == 1000
    return done, calls.read_text().splitlines()


def test_what_was_built_is_built_and_run_with_one_more_line(checkout):
    done, calls = measure(checkout, "room/part/a.h")
    assert done.returncode == 0, done.stderr
    assert "room/part/a.h: 2 programs of build/room built again" in done.stdout
    first, again, ran = calls[-3:]
    assert first == "cmake --build build -j 2 --target a_test b_test | int a;"
    assert again.startswith("cmake --build build -j 2 --target a_test b_test | static_assert(")
    assert ran.startswith("ctest --test-dir build/room -L ^unit$ -j 2 --output-on-failure | static_assert(")


def test_no_two_measurements_add_the_same_line(checkout):
    added = {measure(checkout, "room/part/a.h")[1][-1].rpartition("|")[2] for _ in range(2)}
    assert len(added) == 2


def test_it_fails_beyond_its_time(checkout):
    done, _ = measure(checkout, "room/part/a.h", "--within", "0")
    assert done.returncode == 1 and "longer than 0 s" in done.stderr


@pytest.mark.parametrize("program", ["cmake", "ctest"])
def test_the_file_is_as_before_after_a_failure(checkout, program):
    done, _ = measure(checkout, "room/part/a.h", fails=program)
    assert done.returncode == 1 and f"'{program}' ended with 3" in done.stderr and "broken" in done.stderr


@pytest.mark.parametrize("file, said", [("room/none.h", "no source or header room/none.h"), ("tests.json", "no source or header"),
                                        ("b.cc", "lies in no folder whose unit tests are built")])
def test_other_files_are_refused(checkout, file, said):
    (checkout / "b.cc").write_text("")
    done, _ = measure(checkout, file)
    assert done.returncode != 0 and said in done.stderr

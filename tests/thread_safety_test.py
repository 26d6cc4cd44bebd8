"""Checks that clang's thread safety analysis, as tools/lint calls it, finds what is used without its lock."""

import json
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = """#include "absl/synchronization/mutex.h"
class Counter {
 public:
  int Read() { HOLDING return count_; }

 private:
  absl::Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};
int Use() { return Counter().Read(); }
"""


needs_clang = pytest.mark.skipif(shutil.which("clang++-16") is None, reason="no clang; ./dev lint installs it")


def checked(folder, source, locking):
    """Runs tools/thread_safety.py on the files `locking` of the folder, where `source` alone has a compile command."""
    commands = folder / "compile_commands.json"
    commands.write_text(json.dumps([{"directory": str(folder), "file": str(folder / source),
                                     "command": f"g++ -std=c++20 -I{folder} -c {folder / source}"}]))
    return subprocess.run([sys.executable, ROOT / "tools" / "thread_safety.py", commands, "1"], input=locking, cwd=folder,
                          capture_output=True, text=True, check=False)


@needs_clang
@pytest.mark.parametrize("holding, code", [("const absl::MutexLock lock(&mutex_);", 0), ("", 1)])
def test_a_use_without_the_lock_is_found(tmp_path, holding, code):
    (tmp_path / "counter.cc").write_text(CODE.replace("HOLDING ", holding))
    done = checked(tmp_path, "counter.cc", "counter.cc")
    assert done.returncode == code, done.stderr
    assert ("reading variable 'count_' requires holding mutex 'mutex_'" in done.stderr) == (code == 1)


@needs_clang
def test_a_header_without_a_source_is_read_as_part_of_one_that_includes_it(tmp_path):
    (tmp_path / "counter.h").write_text(CODE.replace("HOLDING ", "").replace("int Use", "inline int Use"))
    (tmp_path / "fixture.h").write_text('#include "counter.h"\n')
    (tmp_path / "counter_test.cc").write_text('#include "fixture.h"\n')
    done = checked(tmp_path, "counter_test.cc", "counter.h")
    assert done.returncode == 1 and "reading variable 'count_' requires" in done.stderr


def test_a_header_that_nothing_includes_is_named(tmp_path):
    (tmp_path / "counter.h").write_text(CODE)
    (tmp_path / "other.cc").write_text("")
    assert "counter.h has locks, and no source" in checked(tmp_path, "other.cc", "counter.h").stderr

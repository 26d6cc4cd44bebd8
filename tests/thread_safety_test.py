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


@pytest.mark.skipif(shutil.which("clang++-16") is None, reason="no clang; ./dev lint installs it")
@pytest.mark.parametrize("holding, code", [("const absl::MutexLock lock(&mutex_);", 0), ("", 1)])
def test_a_use_without_the_lock_is_found(tmp_path, holding, code):
    file = tmp_path / "counter.cc"
    file.write_text(CODE.replace("HOLDING ", holding))
    commands = tmp_path / "compile_commands.json"
    commands.write_text(json.dumps([{"directory": str(tmp_path), "file": str(file), "command": f"g++ -std=c++20 -c {file}"}]))
    done = subprocess.run([sys.executable, ROOT / "tools" / "thread_safety.py", commands, "1"], input="counter.cc", cwd=tmp_path,
                          capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert ("reading variable 'count_' requires holding mutex 'mutex_'" in done.stderr) == (code == 1)

"""clang's thread safety analysis: whether what a lock guards is used with the lock held. Called by tools/lint with the
compile commands, the number of processes, and the files on standard input. With ccache, a file that has passed with the same
headers is not read again."""

import concurrent.futures
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

CLANG = "clang++-16"
# As in cmake/SaccadeTargets.cmake.
CCACHE = {"CCACHE_SLOPPINESS": "pch_defines,time_macros", "CCACHE_BASEDIR": os.getcwd(), "CCACHE_NOHASHDIR": "1",
          "CCACHE_MAXSIZE": "10G"}


def command(entry, target):
    """The compile command of GCC as one of clang, whose object file nobody needs: ccache remembers nothing else."""
    words = iter(shlex.split(entry["command"]))
    kept = []
    for word in words:
        if word in ("-isystem", "-include"):
            kept += [word, next(words)]
        elif word.startswith(("-I", "-D", "-std=")):
            kept.append(word)
    cached = ["ccache"] if shutil.which("ccache") else []
    return [*cached, CLANG, "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety", *kept, "-c", entry["file"], "-o", target]


def check(entry):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command(entry, pathlib.Path(folder) / "object.o"), cwd=entry["directory"], capture_output=True,
                              text=True, env={**os.environ, **CCACHE})
    return done.returncode, done.stderr


def main():
    entries, jobs = json.load(open(sys.argv[1])), int(sys.argv[2])
    wanted = set(sys.stdin.read().split())
    chosen = {os.path.relpath(entry["file"]): entry for entry in entries if os.path.relpath(entry["file"]) in wanted}
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for name, (code, said) in zip(chosen, pool.map(check, chosen.values())):
            if code:
                failed += 1
                print(f"lint: {name}:\n{said}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""clang's thread safety analysis: whether what a lock guards is used with the lock held. Called by tools/lint with the
compile commands, the number of processes, and the files with locks on standard input. A header is read as part of a source that
includes it. With ccache, a file that has passed with the same headers is not read again."""

import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

CLANG = "clang++-16"
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
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


@functools.cache
def includes(file):
    """The headers of this repository that the file itself includes. Generated code, which may not be there, has no locks."""
    if not os.path.isfile(file):
        return ()
    names = INCLUDE.findall(pathlib.Path(file).read_text(encoding="utf-8", errors="replace"))
    return tuple(name for name in names if os.path.isfile(name))


def included(files):
    """The headers that the sources include with quotes, also by way of other headers."""
    found, waiting = set(), list(files)
    while waiting:
        new = set(includes(waiting.pop())) - found
        found |= new
        waiting += new
    return found


def sources_of(locking, known):
    """Returns those of the files `known`, which have compile commands, that have the files `locking` analysed, and the headers
    that none of them includes."""
    chosen = {file for file in locking if file in known}
    headers = {file for file in locking if file.endswith((".h", ".cuh"))}
    chosen |= {file.removesuffix(".h") + ".cc" for file in headers} & known
    missing = headers - included(chosen)
    for file in sorted(known - chosen):
        if not missing:
            break
        brought = missing & included([file])
        if brought:
            chosen.add(file)
            missing -= brought
    return chosen, missing


def main():
    entries, jobs = json.load(open(sys.argv[1])), int(sys.argv[2])
    by_name = {os.path.relpath(entry["file"]): entry for entry in entries}
    wanted, missing = sources_of(set(sys.stdin.read().split()), set(by_name))
    for header in sorted(missing):
        print(f"lint: {header} has locks, and no source with a compile command includes it", file=sys.stderr)
    chosen = {name: by_name[name] for name in sorted(wanted)}
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for name, (code, said) in zip(chosen, pool.map(check, chosen.values())):
            if code:
                failed += 1
                print(f"lint: {name}:\n{said}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""clang's thread safety analysis: whether what a lock guards is used with the lock held. Called by tools/lint with the
compile commands, the number of processes, and the files on standard input."""

import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

CLANG = "clang++-16"


def command(entry):
    """The compile command of GCC as one of clang that analyses only."""
    words = iter(shlex.split(entry["command"]))
    kept = []
    for word in words:
        if word in ("-isystem", "-include"):
            kept += [word, next(words)]
        elif word.startswith(("-I", "-D", "-std=")):
            kept.append(word)
    return [CLANG, "-fsyntax-only", "-w", "-Wthread-safety", "-Werror=thread-safety", *kept, entry["file"]]


def check(entry):
    done = subprocess.run(command(entry), cwd=entry["directory"], capture_output=True, text=True)
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

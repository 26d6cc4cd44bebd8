"""How long it takes after a change of one line until the unit tests of the file's folder have been built and run again:

    python tools/time_change.py BUILD JOBS FILE [--within SECONDS]

BUILD is a release build that is up to date. FILE gets one more line, which no compiler cache can know, and is as before at the end,
with its time of change: what was compiled meanwhile differs in nothing and is kept. Called by ./dev time-change."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time


def run(*command: object) -> str:
    """Runs a program; if it fails, prints its output and ends this one."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}\ntime-change: '{command[0]}' ended with {done.returncode}; its output is above")
    return done.stdout


def unit_tests(build: pathlib.Path, file: pathlib.PurePath) -> tuple[pathlib.Path, list[str]]:
    """Returns the build folder whose unit tests are those of the file, and the targets of these tests."""
    for folder in list(file.parents)[:-1]:
        place = build / folder
        if not (place / "CTestTestfile.cmake").exists():
            continue
        tests = json.loads(run("ctest", "--test-dir", place, "-L", "^unit$", "--show-only=json-v1"))["tests"]
        programs = {pathlib.Path(test["command"][0]) for test in tests if test.get("command")}
        targets = sorted(program.name for program in programs if program.parent == build.resolve() / "tests")
        if targets:
            return place, targets
    sys.exit(f"time-change: {file} lies in no folder whose unit tests are built in {build}; expected a source or a header, as in "
             "./dev time-change server/core/clock.h")


def built(build: pathlib.Path) -> int:
    """How many outputs ninja has made in this build so far."""
    log = build / ".ninja_log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="time-change", description="How long a change of one line takes until its tests have run.")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("jobs")
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--within", type=float, default=60, metavar="SECONDS", help="fail if it takes longer; 60 by default")
    options = parser.parse_args(arguments)
    file = pathlib.Path(os.path.relpath(options.file))
    if not file.is_file() or file.suffix not in (".h", ".cc"):
        parser.error(f"no source or header {options.file}; expected one, as in ./dev time-change server/core/clock.h")
    place, targets = unit_tests(options.build, file)
    build = ("cmake", "--build", options.build, "-j", options.jobs, "--target", *targets)
    run(*build)
    load, before = os.getloadavg()[0], built(options.build)
    text, was = file.read_bytes(), file.stat()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        number = time.time_ns()
        file.write_bytes(text + f"static_assert({number} == {number});\n".encode())
        begun = time.monotonic()
        run(*build)
        compiled = time.monotonic()
        run("ctest", "--test-dir", place, "-L", "^unit$", "-j", options.jobs, "--output-on-failure")
        ended = time.monotonic()
    finally:
        file.write_bytes(text)
        os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    print(f"{file}: {len(targets)} programs of {place} built again in {compiled - begun:.1f} s ({built(options.build) - before} outputs), "
          f"their tests run in {ended - compiled:.1f} s: {ended - begun:.1f} s in all, {os.cpu_count()} cores, load {load:.1f} before")
    if ended - begun > options.within:
        print(f"time-change: that is longer than {options.within:g} s; a smaller header, or fewer files that include it, would help",
              file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

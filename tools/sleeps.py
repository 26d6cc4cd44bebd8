"""Finds tests that sleep: python tools/sleeps.py FILE.... Prints each line that does, and then ends with exit code 1.

A test waits for a condition, with a limit. What it calls from other files may sleep: harness.eventually() between two looks, and
clients that are slow on purpose. Called by ./dev lint."""

import pathlib
import re
import sys

# Calls that do nothing but let time pass.
SLEEPS = re.compile(
    r"\b(?:SleepFor|sleep_for|sleep_until|usleep|nanosleep)\(|(?<![\w.])sleep\(\s*[\w.]|\btime\.sleep\b|\bgevent\.sleep\(|"
    # asyncio.sleep(0) only lets other tasks run.
    r"\basyncio\.sleep\((?!0\))|from (?:time|asyncio|gevent) import [^#]*\bsleep\b|\bwait_for_timeout\(|\bsetTimeout\(|"
    # An event that nobody can set, descriptors of which there are none, and a program that sleeps.
    r"\bEvent\(\)\.wait\([^)]|\bselect\.select\(\[\], *\[\],|(?<![\w.])select\(0,|\bpoll\(\s*(?:nullptr|NULL)\b|[\[(]\"sleep\",|[\"']sleep [0-9{$]")
# An event that is awaited for a moment and whose answer is not looked at.
MOMENT = re.compile(r"^\s*[\w.]+\.wait\((?:timeout=)?\d*\.\d+\)\s*(?:#.*)?$")


def sleeping(text: str) -> list[int]:
    """Returns the numbers of the lines that sleep."""
    return [number for number, line in enumerate(text.splitlines(), 1) if SLEEPS.search(line) or MOMENT.match(line)]


def main(files: list[str]) -> int:
    found = 0
    for file in files:
        text = pathlib.Path(file).read_text(encoding="utf-8")
        for number in sleeping(text):
            print(f"{file}:{number}: {text.splitlines()[number - 1].strip()}", file=sys.stderr)
            found += 1
    if found:
        print("these tests sleep; wait for a condition (harness.eventually), or inject a clock", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

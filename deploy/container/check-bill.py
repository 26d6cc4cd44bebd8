#!/usr/bin/env python3
"""Compares a bill of materials with the list of fixed vulnerabilities: check-bill.py BILL [LIST].

Prints every package of the bill that is older than the first version with a fix, and then ends with exit code 1. Packages that
the bill does not have are passed over. Needs dpkg, which compares Debian's versions."""

import json
import pathlib
import subprocess
import sys
from urllib.parse import unquote

LIST = pathlib.Path(__file__).with_name("fixed-vulnerabilities.txt")


def is_older(package: str, version: str, fixed: str) -> bool:
    if package.startswith("pypi:"):
        numbers = [[int(part) for part in text.split("+")[0].split(".")] for text in (version, fixed)]
        return numbers[0] < numbers[1]
    return subprocess.run(["dpkg", "--compare-versions", version, "lt", fixed]).returncode == 0


def entries(text: str):
    """Yields package, fixed version and names of each line."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split()
        if len(words) != 3:
            raise SystemExit(f"check-bill.py: line {number} of the list: expected PACKAGE VERSION NAMES, found '{line}'")
        yield words


def packages(bill: dict) -> dict[str, str]:
    """Versions by package, those from PyPI with the prefix pypi:."""
    return {
        ("pypi:" if part["purl"].startswith("pkg:pypi/") else "") + part["name"].lower(): unquote(part["version"])
        for part in bill["components"]
    }


def main(arguments: list[str]) -> int:
    if len(arguments) not in (1, 2):
        print("usage: check-bill.py BILL [LIST]", file=sys.stderr)
        return 2
    have = packages(json.loads(pathlib.Path(arguments[0]).read_text()))
    listed = list(entries(pathlib.Path(arguments[1] if len(arguments) == 2 else LIST).read_text()))
    old = [(name, have[name], fixed, known) for name, fixed, known in listed if name in have and is_older(name, have[name], fixed)]
    for name, version, fixed, known in old:
        print(f"{name} {version}: {known} is fixed in {fixed}; install that or a later one", file=sys.stderr)
    print(f"{len(have)} packages, {len(listed)} known fixes, {len(old)} missing")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

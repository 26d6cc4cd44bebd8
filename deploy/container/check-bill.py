#!/usr/bin/env python3
"""Compares a bill of materials with the list of fixed vulnerabilities: check-bill.py BILL [LIST].

Prints every package of the bill that is older than the first version with a fix, and then ends with exit code 1. Packages that
the bill does not have are passed over. Needs dpkg, which compares Debian's versions."""

import json
import math
import pathlib
import re
import subprocess
import sys
from urllib.parse import unquote

LIST = pathlib.Path(__file__).with_name("fixed-vulnerabilities.txt")


# A version of PyPI, in the form that PEP 440 calls normal. A local part, as of 2.11.0+cpu, is another build of the same release.
VERSION = re.compile(r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)(?:(?P<pre>a|b|rc)(?P<pre_number>\d+))?(?:\.post(?P<post>\d+))?"
                     r"(?:\.dev(?P<dev>\d+))?(?:\+[a-z0-9.]+)?", re.IGNORECASE)


def pypi_key(version: str) -> tuple:
    """What sorts versions of PyPI as PEP 440 does: 2.6 is 2.6.0, and 2.6.dev1 < 2.6a1 < 2.6rc1 < 2.6 < 2.6.post1."""
    parts = VERSION.fullmatch(version.strip())
    if parts is None:
        raise SystemExit(f"check-bill.py: '{version}' is no version of PyPI; expected one such as 2.11.0 or 2.11.0.post1+cpu")
    release = [int(number) for number in parts["release"].split(".")]
    while release[-1:] == [0]:
        release.pop()
    pre = (parts["pre"].lower(), int(parts["pre_number"])) if parts["pre"] else ("z", 0)
    if not parts["pre"] and not parts["post"] and parts["dev"]:
        pre = ("", 0)  # Before all others of its release.
    post = int(parts["post"]) if parts["post"] else -1
    return int(parts["epoch"] or 0), release, pre, post, int(parts["dev"]) if parts["dev"] else math.inf


def is_older(package: str, version: str, fixed: str) -> bool:
    if package.startswith("pypi:"):
        return pypi_key(version) < pypi_key(fixed)
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

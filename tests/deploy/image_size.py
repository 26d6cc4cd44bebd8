"""Computes the size of the image and of its parts without a container engine.

    SACCADE_BUILD_DIR=build/release python tests/deploy/image_size.py

Runs on Debian 12 only, where the build's packages are the image's. The base image debian:12-slim is what
debootstrap's variant minbase installs (essential and required packages, and apt) without its documentation, so its
size is overestimated. Added to it are the Dockerfile's packages with their dependencies, by dpkg's Installed-Size,
and the files that the Dockerfile copies, by their sizes.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy" / "container" / "Dockerfile"
FIELDS = ("Package", "Essential", "Priority", "Installed-Size", "Pre-Depends", "Depends", "Provides", "db:Status-Status")


def instructions():
    """The Dockerfile's (instruction, arguments) pairs, with continued lines joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    text = re.sub(r"\\\n\s*", " ", text)
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def runtime_packages():
    (run,) = [args for name, args in instructions() if name == "RUN" and "apt-get install" in args]
    arguments = re.search(r"apt-get install (.*?)(&&|$)", run)[1]
    return [word for word in arguments.split() if not word.startswith("-")]


def output(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **options).stdout


class Packages:
    """The packages that dpkg has installed on this machine."""

    def __init__(self):
        form = "\t".join(f"${{{field}}}" for field in FIELDS) + "\n"
        rows = (dict(zip(FIELDS, line.split("\t"))) for line in output("dpkg-query", "-W", "-f", form).splitlines())
        self._of = {row["Package"]: row for row in rows if row["db:Status-Status"] == "installed"}
        self._providers = {}
        for name, row in self._of.items():
            for provided in self._names(row["Provides"]):
                self._providers.setdefault(provided, name)

    @staticmethod
    def _names(text):
        return [re.split(r"[\s:(]", part.strip())[0] for part in text.split(",") if part.strip()]

    def base(self):
        """Names of the base packages, without their dependencies."""
        wanted = lambda row: row["Essential"] == "yes" or row["Priority"] == "required"
        return [name for name, row in self._of.items() if wanted(row)] + ["apt"]

    def closure(self, names):
        """The packages and all their dependencies. Of alternatives, the first one that is installed."""
        found, waiting = set(), list(names)
        while waiting:
            name = waiting.pop()
            name = name if name in self._of else self._providers.get(name)
            if name is None:
                raise LookupError("a package of the image, or what it depends on, is not installed on this machine")
            if name in found:
                continue
            found.add(name)
            for wanted in ",".join((self._of[name]["Pre-Depends"], self._of[name]["Depends"])).split(","):
                alternatives = self._names(wanted.replace("|", ","))
                here = [one for one in alternatives if one in self._of or one in self._providers]
                if alternatives and not here:
                    raise LookupError(f"{name} depends on {wanted.strip()}, which is not installed on this machine")
                waiting += here[:1]
        return found

    def bytes_of(self, names):
        return sum(int(self._of[name]["Installed-Size"]) * 1024 for name in names)


def bytes_under(path):
    return sum(file.stat().st_size for file in pathlib.Path(path).rglob("*") if file.is_file() and not file.is_symlink())


def parts(runtime):
    """The (name, bytes) of each part of the final stage; `runtime` is the folder that collect-runtime.sh filled."""
    packages = Packages()
    base = packages.closure(packages.base())
    ours = packages.closure(runtime_packages())
    return [
        ("debian:12-slim", packages.bytes_of(base)),
        ("Debian's packages", packages.bytes_of(ours - base)),
        *((str(file.relative_to(runtime)), file.stat().st_size) for file in sorted(pathlib.Path(runtime).glob("*/*"))),
        ("the demo models", bytes_under(ROOT / "models" / "demo" / "repository")),
    ]


def main():
    with tempfile.TemporaryDirectory() as runtime:
        output(ROOT / "deploy/container/collect-runtime.sh", os.environ["SACCADE_BUILD_DIR"], runtime)
        found = parts(runtime)
    for what, size in [*found, ("together", sum(size for _, size in found))]:
        print(f"{size / 1e6:9.1f} MB  {what}")


if __name__ == "__main__":
    sys.exit(main())

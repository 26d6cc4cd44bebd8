"""Checks the examples of the Python client's README with mypy --strict: each one is what a user would type into a
function that has a client and some paths."""

import re
import subprocess
import sys
import textwrap

import pytest

from harness import ROOT

README = (ROOT / "client" / "python" / "README.md").read_text()
SNIPPETS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
# What the text around the examples speaks of.
HEAD = """import asyncio
import pathlib

import saccade


async def example_{number}({client}paths: list[pathlib.Path]) -> None:
{body}

"""
# As for any package that is installed: errors in it are not the user's.
CONFIG = "[mypy]\nstrict = True\n[mypy-saccade.*]\nignore_errors = True\n[mypy-google.*]\nignore_missing_imports = True\n"


@pytest.fixture(scope="module")
def client_source(tmp_path_factory):
    """The client's package with its generated messages, as pip installs it."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--no-deps", "--no-index",
         "--no-build-isolation", "--target", folder, ROOT / "client" / "python"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def checked(client_source, folder, text):
    path = folder / "examples.py"
    path.write_text(text)
    (folder / "mypy.ini").write_text(CONFIG)
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", f"--cache-dir={folder / 'cache'}", path.name],
        cwd=folder, capture_output=True, text=True, timeout=240, env={"MYPYPATH": str(client_source), "PATH": "/usr/bin:/bin"})


def module(snippets):
    made = lambda text: re.search(r"(as client:|^client =)", text, re.MULTILINE)
    return "".join(
        HEAD.format(number=number, client="" if made(text) else "client: saccade.Client, ", body=textwrap.indent(text, "    "))
        for number, text in enumerate(snippets))


def test_the_examples_have_the_types_that_they_say(client_source, tmp_path):
    assert len(SNIPPETS) >= 5
    done = checked(client_source, tmp_path, module(SNIPPETS))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("wrong", ["client.detect('rcnn', 7)\n", "client.detects('rcnn', 'a.jpg')\n",
                                   "client.classify('gsa', 'a.jpg').detections\n"])
def test_a_wrong_example_is_found(client_source, tmp_path, wrong):
    assert checked(client_source, tmp_path, module([wrong])).returncode == 1

"""Checks tools/setup: what ./dev says of a step that fails, and that all that pip installs is pinned by its hash."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
TITLE = "installing 24 Debian packages"


def step(tries, program):
    """Runs the program, in bash, as a step of ./dev that does not pause between tries."""
    script = f'set -euo pipefail; . tools/setup/step.sh; sleep() {{ :; }}; step --tries {tries} "{TITLE}" bash -c "$1"; echo after'
    return subprocess.run(["bash", "-c", script, "dev", program], cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_try_that_fails_says_why(tmp_path):
    locked = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt)"
    program = f"""
if [ ! -e {tmp_path}/second ]; then
  touch {tmp_path}/second
  echo 'Reading package lists...'
  echo '{locked}' >&2
  echo 'N: a note'
  exit 100
fi
echo 'no room is left'
exit 3
"""
    done = step(2, program)
    assert done.returncode == 1 and done.stdout == ""
    assert f"{TITLE}: exit 100: {locked}; try 2 of 2 in 5 s" in done.stderr
    # What the first try said is no reason of the second.
    assert done.stderr.splitlines()[-1].startswith(f"dev: '{TITLE}' failed (exit 3: no room is left, 2 tries). What to do: ")


def test_a_try_that_fails_silently_says_so():
    assert "failed (exit 7: it printed nothing)" in step(1, "exit 7").stderr


def test_a_step_that_succeeds_at_its_second_try_goes_on(tmp_path):
    done = step(2, f"mkdir {tmp_path}/first 2>/dev/null && exit 1; exit 0")
    assert (done.returncode, done.stdout) == (0, "after\n")


def test_pip_installs_nothing_without_its_hash():
    folder = ROOT / "tools" / "setup"
    text = re.sub(r"\\\n\s*", "", "".join(file.read_text() for file in sorted(folder.glob("*.sh"))))
    installing = [line.strip() for line in text.splitlines() if "pip install" in line]
    assert installing and all("--require-hashes" in line for line in installing), installing
    for wanted in (folder / "requirements").glob("*.in"):
        packages = re.findall(r"^([a-z0-9._-]+).*?==([^ ;\n]+)", wanted.read_text(), re.MULTILINE | re.IGNORECASE)
        resolved = wanted.with_suffix(".txt").read_text()
        assert "--hash=sha256:" in resolved
        if wanted.stem == "lock":
            assert [f"{name}=={version}" in resolved for name, version in packages] == [True]

"""Runs the init container's script on repositories that are right and wrong."""

import pathlib
import shutil
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "deploy/helm/saccade/files/fetch-models.sh"


@pytest.fixture
def fetch(tmp_path):
    source, target = tmp_path / "image", tmp_path / "target"
    (source / "shapes" / "1").mkdir(parents=True)
    (source / "shapes" / "config.pbtxt").write_text("backend: 'saccade'")
    (source / "shapes" / "1" / "weights of two.safetensors").write_bytes(bytes(range(256)))
    target.mkdir()
    sums = tmp_path / "SHA256SUMS"
    sums.write_text(subprocess.run("find . -type f -exec sha256sum {} +", shell=True, cwd=source, text=True, check=True,
                                   capture_output=True).stdout)

    def run():
        return subprocess.run(["sh", SCRIPT, source, target, sums], capture_output=True, text=True)

    run.source, run.target, run.sums = source, target, sums
    return run


def test_what_is_as_listed_is_copied(fetch):
    done = fetch()
    assert done.returncode == 0 and "2 files are as" in done.stdout, done.stderr
    assert (fetch.target / "shapes/1/weights of two.safetensors").read_bytes() == bytes(range(256))
    # A container that is started again finds the files of its last attempt.
    (fetch.target / "shapes" / "half-copied").touch()
    assert fetch().returncode == 0 and not (fetch.target / "shapes" / "half-copied").exists()


def flip(run):
    file = run.source / "shapes/1/weights of two.safetensors"
    data = bytearray(file.read_bytes())
    data[100] ^= 1
    file.write_bytes(data)


WRONG = {
    "a bit is wrong": (flip, "weights of two.safetensors: FAILED"),
    "a file is missing": (lambda run: (run.source / "shapes/config.pbtxt").unlink(), "the files are not those of"),
    "a file is too many": (lambda run: (run.source / "shapes/1/model.pt").touch(), "the files are not those of"),
    "a link leads out": (lambda run: (run.source / "shapes/2").symlink_to("/etc"), "neither a file nor a folder"),
    "there is no repository": (lambda run: shutil.rmtree(run.source), "is no folder of this image"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_not_as_listed_keeps_the_pod_from_starting(fetch, what):
    spoil, said = WRONG[what]
    spoil(fetch)
    done = fetch()
    assert done.returncode == 1 and said in done.stderr, done.stdout + done.stderr

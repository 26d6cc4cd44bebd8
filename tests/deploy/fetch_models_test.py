"""Runs the init container's script on repositories that are right and wrong."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "deploy/helm/saccade/files/fetch-models.sh"


# The user of the pods (podSecurityContext in the chart's values.yaml).
POD_USER = 65532


def prepare(folder):
    """Writes a repository, its checksums and an empty target. Returns a function that runs the script on them."""
    source, target = folder / "image", folder / "target"
    (source / "shapes" / "1").mkdir(parents=True)
    (source / "shapes" / "config.pbtxt").write_text("backend: 'saccade'")
    (source / "shapes" / "1" / "weights of two.safetensors").write_bytes(bytes(range(256)))
    target.mkdir()
    sums = folder / "SHA256SUMS"
    sums.write_text(subprocess.run("find . -type f -exec sha256sum {} +", shell=True, cwd=source, text=True, check=True,
                                   capture_output=True).stdout)

    # A copy, which other users can read wherever the checkout is.
    script = folder / "fetch-models.sh"
    script.write_bytes(SCRIPT.read_bytes())

    def run(**popen):
        return subprocess.run(["sh", script, source, target, sums], capture_output=True, text=True, **popen)

    run.source, run.target, run.sums = source, target, sums
    return run


@pytest.fixture
def fetch(tmp_path):
    return prepare(tmp_path)


def test_what_is_as_listed_is_copied(fetch):
    done = fetch()
    assert done.returncode == 0 and "2 files are as" in done.stdout, done.stderr
    assert (fetch.target / "shapes/1/weights of two.safetensors").read_bytes() == bytes(range(256))
    # A container that is started again finds the files of its last attempt.
    (fetch.target / "shapes" / "half-copied").touch()
    assert fetch().returncode == 0 and not (fetch.target / "shapes" / "half-copied").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="starts the script as another user")
def test_the_user_of_the_pods_fetches_into_a_volume_of_root():
    """An emptyDir belongs to root and has mode 0777. pytest's own folders are closed to other users."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        fetch = prepare(folder)
        fetch.target.chmod(0o777)
        for _ in range(2):
            done = fetch(user=POD_USER, group=POD_USER, extra_groups=[], umask=0o077)
            assert done.returncode == 0, done.stderr
        copied = list(fetch.target.rglob("*"))
        assert len(copied) == 4 and {path.stat().st_uid for path in copied} == {POD_USER}
        assert all(path.stat().st_mode & 0o444 == 0o444 for path in copied)


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

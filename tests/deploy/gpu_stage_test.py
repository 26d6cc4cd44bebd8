"""What a machine with a GPU is sent: the packed programs, run without this machine's libraries and environment."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import time
import urllib.request

import pytest

from image_size import ROOT
from tools.gpu_stage.__main__ import OPERATORS, OF_THE_SYSTEM, STAND_INS
from tools.gpu_stage.stand_ins import symbols

BUILD = pathlib.Path(os.environ["SACCADE_BUILD_DIR"])
PYTHON = pathlib.Path(sys.executable)
pytestmark = pytest.mark.skipif(not all((BUILD / "lib" / name).exists() for name in OPERATORS),
                                reason="built without nvcc, so there is no plugin to pack")


@pytest.fixture(scope="module", name="staged")
def made_stage(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stage")
    subprocess.run([PYTHON, "-m", "tools.gpu_stage", "--build", BUILD, "--target", folder / "saccade.tar.xz"], check=True,
                   cwd=ROOT)
    # What travels to such a machine is 64 MiB in all, most of them for other things.
    assert (folder / "saccade.tar.xz").stat().st_size < 30e6
    with tarfile.open(folder / "saccade.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def bare(**variables) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "SACCADE_PYTHON": str(PYTHON), **variables}


def test_every_program_starts_with_all_its_symbols(staged):
    for path, code, said in (("bin/saccaded", 0, "saccaded"), ("bin/saccade_time_model", 1, "expected ARCHITECTURE"),
                             ("tests/saccade_run_model", 1, "expected ARCHITECTURE"),
                             ("bin/saccade-decode-worker", 2, "saccaded starts this program")):
        ran = subprocess.run([staged / path, *(["--version"] if path == "bin/saccaded" else [])], env=bare(LD_BIND_NOW="1"),
                             capture_output=True, text=True, check=False)
        assert ran.returncode == code and said in ran.stdout + ran.stderr, ran


def test_neither_libtorch_nor_the_driver_is_packed(staged):
    packed = {file.name for file in (staged / "lib").iterdir()}
    assert set(OPERATORS) < packed and {"libavcodec.so.59", "liblapack.so.3"} < packed
    assert not [name for name in packed if re.match("lib(torch|c10|cud|nv|gomp|stdc)", name) or OF_THE_SYSTEM.match(name)]


def test_stand_ins_have_what_is_looked_for_and_nothing_else(staged):
    stand_ins = [file for file in (staged / "lib").iterdir() if file.name in STAND_INS]
    wanted = {(name, version) for file in (*(staged / "programs").iterdir(), *(staged / "lib").iterdir())
              for name, version, _, _, defined in symbols(file) if not defined}
    assert stand_ins
    for file in stand_ins:
        own = {(name, version) for name, version, kind, _, defined in symbols(file) if defined and kind in ("FUNC", "OBJECT")}
        versions = {version for _, version in own}  # each is a symbol of its own, without a version
        assert {one for one in own if one[0] not in versions} <= wanted, file
        assert file.stat().st_size < 64 * 1024


@contextlib.contextmanager
def serving(staged, folder):
    with open(folder / "log", "w", encoding="utf-8") as log:
        command = [staged / "bin" / "saccaded", "--model-repository", ROOT / "models/demo/repository", "--host", "127.0.0.1",
                   *(f"--{port}-port=0" for port in ("grpc", "http", "metrics"))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True,
                              env=bare(XDG_STATE_HOME=str(folder))) as daemon:
            try:
                yield daemon, re.search(r"http=(\S+)", daemon.stdout.readline())[1]
            finally:
                daemon.kill()


def test_the_daemon_serves_with_the_packed_libraries(staged, tmp_path):
    picture = (ROOT / "models/demo/pictures/star.jpg").read_bytes()
    with serving(staged, tmp_path) as (daemon, address):
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError):
                answer = urllib.request.urlopen(f"http://{address}/v1/predict/sanet_shapes", picture, timeout=10).read()
                break
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
        assert b"star" in answer
        mapped = set(re.findall(r"(/\S+\.so\S*)", pathlib.Path(f"/proc/{daemon.pid}/maps").read_text()))
        others = {path for path in mapped if "site-packages" not in path and not path.startswith(str(staged))}
        assert not {path for path in others if not OF_THE_SYSTEM.match(pathlib.Path(path).name)}


def test_without_libtorch_it_says_what_is_missing(staged):
    ran = subprocess.run([staged / "bin/saccaded", "--version"], env=bare(SACCADE_PYTHON="/usr/bin/python3"),
                         capture_output=True, text=True, check=False)
    assert ran.returncode == 1 and "expected a Python with the wheel of torch 2.11, named by SACCADE_PYTHON" in ran.stderr

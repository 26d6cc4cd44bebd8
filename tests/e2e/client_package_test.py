"""Tests the C++ library in another project: installed, found by CMake, built against, and run."""

import os
import pathlib
import subprocess

import pytest

from harness import Daemon

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["SACCADE_BUILD_DIR"])


def run(*arguments):
    done = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    prefix, build = tmp_path_factory.mktemp("prefix"), tmp_path_factory.mktemp("build")
    run("cmake", "--install", BUILD, "--component", "client", "--prefix", prefix)
    run("cmake", "-S", ROOT / "client/cpp/example", "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    headers = {path.name for path in prefix.rglob("*.h")}
    assert "client.h" in headers and not any("pb" in name for name in headers)
    return build / "classify"


def test_the_example_asks_a_daemon(example, tmp_path):
    with Daemon(ROOT / "models/demo/repository", "--exit-on-error=true", log_folder=tmp_path) as daemon:
        daemon.await_ready()
        answer = run(example, daemon.grpc_address, "sanet_shapes", ROOT / "models/demo/pictures/heart.jpg")
    label, probability = answer.splitlines()[0].split()
    assert label == "heart" and float(probability) > 0.5


def test_what_goes_wrong_is_said(example):
    done = subprocess.run([example, "127.0.0.1:1", "m", "/dev/null"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "UNAVAILABLE" in done.stderr

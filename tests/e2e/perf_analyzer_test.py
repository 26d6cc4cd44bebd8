"""Runs Triton's perf_analyzer against the daemon: it must succeed with plausible figures."""

import csv
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from harness import Daemon

PLACE = pathlib.Path(sys.prefix) / "perf_analyzer"

ENSEMBLE = """platform: "ensemble" max_batch_size: 8
input { name: "image" data_type: TYPE_FP32 dims: [ 3, 56, 56 ] }
output { name: "scores" data_type: TYPE_FP32 dims: [ 5 ] }
ensemble_scheduling { step { model_name: "tiny" model_version: -1
  input_map { key: "image" value: "image" } output_map { key: "logits" value: "scores" } } }
"""


@pytest.fixture(scope="module")
def daemon(repository, tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    shutil.copytree(repository / "tiny", root / "tiny")
    (root / "of_one").mkdir()
    (root / "of_one" / "config.pbtxt").write_text(ENSEMBLE)
    with Daemon(root, "--allow-shared-memory", log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture(params=["grpc", "http"])
def protocol(request):
    return request.param


@pytest.fixture
def analyze(daemon, tmp_path, protocol):
    """analyze(*flags, model="tiny"): returns its output, and the first line of its report by column."""
    url = daemon.grpc_address if protocol == "grpc" else f"127.0.0.1:{daemon.http_port}"

    def run(*flags, model="tiny"):
        report = tmp_path / "report.csv"
        command = [PLACE / "bin" / "perf_analyzer", "-m", model, "-u", url, "-i", protocol, "-f", report]
        command += ["--verbose-csv", "--shape", "image:3,56,56", "--input-data", "zero", "--request-count", "50", *flags]
        libraries = PLACE / "nvidia" / "cuda_runtime" / "lib"
        ran = subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            text=True,
            env={**os.environ, "LD_LIBRARY_PATH": str(libraries)},
            timeout=60,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        with open(report) as lines:
            return ran.stdout, next(csv.DictReader(lines))

    return run


def check(printed, row):
    """Checks the figures of the client, and of the server, from the statistics before and after."""
    assert float(row["Inferences/Second"]) > 0
    assert float(row["p50 latency"]) > 0
    assert float(row["Server Compute Infer"]) > 0
    server = sum(float(row[f"Server {stage}"]) for stage in ("Queue", "Compute Input", "Compute Infer", "Compute Output"))
    assert server <= float(row["Avg latency"])
    assert "Server:" in printed and "Inference count: " in printed


def test_concurrency(analyze):
    check(*analyze("--concurrency-range", "4"))


def test_batches(analyze):
    check(*analyze("--concurrency-range", "2", "-b", "4"))


def test_an_ensemble_is_told_by_its_steps(analyze):
    printed, row = analyze("--concurrency-range", "2", model="of_one")
    check(printed, row)
    assert "tiny, version: 1" in printed


def test_request_rate(analyze):
    check(*analyze("--request-rate-range", "50"))


@pytest.mark.parametrize("protocol", ["grpc"], indirect=True)
def test_streaming(analyze):
    check(*analyze("--concurrency-range", "4", "--streaming"))


def test_shared_memory(analyze):
    check(*analyze("--concurrency-range", "4", "--shared-memory", "system", "--output-shared-memory-size", "256"))


@pytest.mark.parametrize("protocol", ["grpc"], indirect=True)
def test_shared_memory_and_streaming(analyze):
    check(*analyze("--streaming", "--shared-memory", "system", "--output-shared-memory-size", "256"))


def test_it_collects_metrics(analyze, daemon):
    url = f"127.0.0.1:{daemon.metrics_port}/metrics"
    check(*analyze("--collect-metrics", "--metrics-url", url, "--metrics-interval", "100"))

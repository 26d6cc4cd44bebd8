"""Tests the start: errors in flags, ports or the repository are explained, with distinct exit codes."""

import contextlib
import json
import pathlib
import re
import socket

import pytest

import pictures
from harness import DEMO_REPOSITORY, ROOT, eventually, run_to_end
from kernels.common.testing import fake_cuda
from messages import get_model_request, predict_request
from tiny_models import write_model

RUNTIME_FAILURE, USAGE = 1, 2


def refused(code, *arguments):
    ended = run_to_end(*arguments)
    assert ended.returncode == code, f"exit {ended.returncode}:\n{ended.stderr}"
    assert "listening" not in ended.stdout
    return ended.stderr


def test_an_unknown_flag(repository):
    assert "no-such-flag" in refused(USAGE, f"--model-repository={repository}", "--no-such-flag=1").replace("_", "-")


def test_a_value_that_is_no_number(repository):
    said = refused(USAGE, f"--model-repository={repository}", "--lame-duck-seconds=soon").replace("_", "-")
    assert "lame-duck-seconds" in said and "soon" in said


def test_a_value_out_of_range(repository):
    said = refused(USAGE, f"--model-repository={repository}", "--max-inflight-requests=0").replace("_", "-")
    assert "--max-inflight-requests" in said and "0" in said


@pytest.mark.parametrize("flag, expected", [
    ("--cores=abc", "--cores is 'abc'; expected a number from 0 to 1024"),
    ("--max-inflight-bytes=-5", "--max-inflight-bytes is '-5'; expected a number of at least 1"),
    ("--model-control-mode=auto", "--model-control-mode is 'auto'; expected explicit, none or poll"),
    ("--insecure=maybe", "--insecure is 'maybe'; expected true or false")])
def test_a_value_is_told_with_what_was_expected(repository, flag, expected):
    """In words of our own: a parser's name for it helps nobody."""
    assert refused(USAGE, f"--model-repository={repository}", flag).splitlines()[0] == expected


def test_a_positional_argument(repository):
    assert "stray" in refused(USAGE, f"--model-repository={repository}", "stray")


def test_no_repository():
    assert "--model-repository" in refused(USAGE).replace("_", "-")


def test_a_repository_that_is_not_there(tmp_path):
    assert str(tmp_path / "nowhere") in refused(USAGE, f"--model-repository={tmp_path / 'nowhere'}")


@contextlib.contextmanager
def taken_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


@pytest.mark.parametrize("name", ["grpc", "http", "metrics"])
def test_a_port_in_use(repository, name):
    with taken_port() as port:
        ports = {other: 0 for other in ("grpc", "http", "metrics")} | {name: port}
        flags = [f"--{which}-port={number}" for which, number in ports.items()]
        said = refused(RUNTIME_FAILURE, "--host=127.0.0.1", f"--model-repository={repository}", *flags)
    assert str(port) in said and f"--{name}-port" in said


def test_help_names_every_flag_of_the_contract():
    help_text = run_to_end("--help").stdout.replace("_", "-")
    for flag in ("model-repository", "host", "grpc-port", "http-port", "metrics-port", "lame-duck-seconds"):
        assert f"--{flag}" in help_text


def test_the_configuration_of_the_deployment(start, repository):
    """The configuration of the deployment is accepted; the command line overrides it."""
    config = ROOT / "deploy" / "kustomize" / "base" / "saccaded.conf"
    daemon = start(repository, config=config).await_ready()
    with daemon.vision() as vision:
        vision.predict(predict_request(model="tiny", encoded=pictures.encoded(pictures.pixels(0))))
    eventually(daemon.log_lines, "log-format=json writes a line")
    for line in daemon.log_lines():
        json.loads(line)


def test_the_demo_models_are_served(start):
    daemon = start(DEMO_REPOSITORY).await_ready()
    metrics = daemon.metrics()
    models = [labels for name, labels in metrics if name == "saccade_model_ready"]
    assert models
    for labels in models:
        assert metrics[("saccade_model_ready", labels)] == 1


def test_the_build_is_told(daemon):
    version = re.search(r"project\(saccade VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert daemon.metrics().total("saccade_build_info", version=version) == 1


def test_the_process_has_the_programs_name(daemon):
    """Also after it has executed itself again, as /proc/self/exe."""
    assert pathlib.Path(f"/proc/{daemon.process.pid}/comm").read_text() == "saccaded\n"


def test_the_instruction_set_is_limited(start, repository):
    daemon = start(repository, environment={"SACCADE_CPU_ISA": "avx2"}).await_ready()
    with daemon.vision() as vision:
        model = vision.get_model(get_model_request("tiny"))
        vision.predict(predict_request(model="tiny", encoded=pictures.encoded(pictures.pixels(0))))
    # The limit is part of it: oneDNN's instructions are not limited, so it is not what a processor with AVX2 computes.
    assert model.instruction_set in ("portable SACCADE_CPU_ISA=avx2", "avx2 SACCADE_CPU_ISA=avx2")
    daemon.await_log("instruction set of the CPU")
    (line,) = [line for line in daemon.log_lines() if "instruction set of the CPU" in line]
    assert model.instruction_set in line and "limit" in line and "avx2" in line


def start_with_a_model_on_gpus(start, tiny, folder, instances, libraries=None):
    """A daemon with fakes of CUDA's libraries."""
    write_model(folder / "models", "tiny", tiny)
    config = folder / "models" / "tiny" / "config.pbtxt"
    config.write_text(config.read_text().replace("{ count: 1 }", instances))
    environment = fake_cuda.make(folder / "libraries", libraries)
    # The ports have the time that a start may take, which the lines of the log have not.
    return start(folder / "models", "--exit-on-error=false", environment=environment).await_ports()


def test_the_cuda_plugin_is_loaded_if_there_are_gpus(start, tiny, tmp_path):
    daemon = start_with_a_model_on_gpus(start, tiny, tmp_path, "{ kind: KIND_GPU gpus: [ 5 ] }")
    daemon.await_log("CUDA operators loaded devices=2", "the model needs GPU 5, but there are 2 GPUs, numbered from 0")


def test_without_the_cuda_plugin_the_daemon_serves_on_the_cpu(start, tiny, tmp_path):
    daemon = start_with_a_model_on_gpus(start, tiny, tmp_path, "{ kind: KIND_GPU }", {fake_cuda.PLUGIN: None})
    reason = f"a GPU was found, but libsaccade_cuda.so cannot be loaded: {tmp_path / 'libraries' / fake_cuda.PLUGIN}"
    daemon.await_log("serving on the CPU", f"the model needs GPU 0, which cannot be used: {reason}")


@pytest.mark.parametrize("flags, output", [((), "stderr"), (("--check-config",), "stdout")])
def test_an_unknown_limit_of_the_instruction_set(repository, flags, output):
    ended = run_to_end(
        "--host=127.0.0.1", f"--model-repository={repository}", "--grpc-port=0", "--http-port=0", "--metrics-port=0", *flags,
        environment={"SACCADE_CPU_ISA": "avx3"})
    assert ended.returncode == RUNTIME_FAILURE and "listening" not in ended.stdout
    assert "SACCADE_CPU_ISA is 'avx3'; expected portable, avx2, avx512 or avx512_bf16" in getattr(ended, output)

"""The servers to measure. Each is a process that ends with its block."""

import contextlib
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import time
import typing

LISTENING = re.compile(r"^listening grpc=(\S+) ")
START_SECONDS = 60


class DidNotStart(Exception):
    pass


class Server(typing.NamedTuple):
    """A running server: HOST:PORT of its gRPC port, and the number of its process."""

    url: str
    process: int
    # The process, for callers that end it before the context manager does; None for servers that no caller ends.
    handle: subprocess.Popen | None = None


@contextlib.contextmanager
def running(command, **options):
    process = subprocess.Popen([str(part) for part in command], text=True, **options)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def echo(build):
    """Runs the bare gRPC callback server; yields it."""
    command = [build / "bin" / "saccade_bench_load", "echo"]
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Server(process.stdout.readline().strip(), process.pid)


@contextlib.contextmanager
def daemon(build, repository, *flags):
    """Runs saccaded on free ports; yields it once it is ready."""
    command = [build / "bin" / "saccaded", "--model-repository", repository, "--host", "127.0.0.1", "--grpc-port", 0,
               "--http-port", 0, "--metrics-port", 0, "--lame-duck-seconds", 0, "--log-level", "warning", *flags]
    with running(command, stdout=subprocess.PIPE) as process:
        listening = LISTENING.match(process.stdout.readline())
        if not listening:
            raise DidNotStart("saccaded did not open its ports; see its log above")
        wait = [build / "bin" / "saccade", "status", "--url", listening[1], "--wait", str(START_SECONDS)]
        if subprocess.run(wait, stdout=subprocess.DEVNULL).returncode != 0:
            raise DidNotStart("saccaded did not become ready; see its log above")
        yield Server(listening[1], process.pid, process)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def write_model(root, name, options, weights=b"", batching="", max_batch_size=8):
    """Writes a model for saccaded."""
    folder = pathlib.Path(root) / name
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "weights.safetensors").write_bytes(weights)
    lines = ['backend: "saccade"', f"max_batch_size: {max_batch_size}", batching]
    lines += [f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in options.items()]
    (folder / "config.pbtxt").write_text("\n".join(lines) + "\n")


class Peers:
    """Triton and perf_analyzer, from the environment that ./dev creates from the list triton."""

    def __init__(self, environment):
        self.environment = pathlib.Path(environment)
        self.packages = next(self.environment.glob("lib/python3.*/site-packages"), None)

    @property
    def triton(self):
        return self.packages and self.packages / "pytriton" / "tritonserver"

    def missing(self):
        """The reason why the peers cannot be measured, or None."""
        if not self.packages or not (self.triton / "bin" / "tritonserver").exists():
            return f"no tritonserver in {self.environment}; ./dev bench server installs it"
        return None

    def _environment(self, *libraries):
        # Triton finds its Python through PATH, as in an activated virtual environment.
        return {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries)), "VIRTUAL_ENV": str(self.environment),
                "PATH": f"{self.environment / 'bin'}:{os.environ['PATH']}"}

    @contextlib.contextmanager
    def serve(self, repository):
        """Runs Triton on a port of its own; yields it."""
        version = self.packages.parent.name.removeprefix("python")
        stub = self.triton / "python_backend_stubs" / version / "triton_python_backend_stub"
        python_backend = self.triton / "backends" / "python" / stub.name
        if not python_backend.exists():
            python_backend.symlink_to(stub)
        grpc, http = free_port(), free_port()
        with tempfile.NamedTemporaryFile("w+") as log:
            command = [self.triton / "bin" / "tritonserver", "--model-repository", repository, "--backend-directory",
                       self.triton / "backends", "--grpc-port", grpc, "--http-port", http, "--allow-metrics", "false"]
            libraries = (self.triton / "external_libs", self.packages / "nvidia_pytriton.libs")
            with running(command, stdout=log, stderr=log, env=self._environment(*libraries)) as process:
                end = time.monotonic() + START_SECONDS
                while "Started GRPCInferenceService" not in pathlib.Path(log.name).read_text():
                    if process.poll() is not None or time.monotonic() > end:
                        raise DidNotStart("Triton did not start: " + pathlib.Path(log.name).read_text()[-2000:])
                    time.sleep(0.1)
                yield Server(f"127.0.0.1:{grpc}", process.pid)

    def perf_analyzer(self, url, model, shape, clients, seconds):
        """Returns perf_analyzer's (calls per second, p50 and p99 in microseconds)."""
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.csv"
            # A result requires three windows that agree. Zeros as input, because random bytes may be NaNs.
            command = [self.environment / "bin" / "perf_analyzer", "-m", model, "-u", url, "-i", "grpc", "--shape",
                       "image:" + ",".join(map(str, shape)), "--concurrency-range", clients, "--input-data", "zero",
                       "--measurement-interval", int(1000 * seconds / 3), "--max-trials", 6, "-s", 50, "--percentile",
                       50, "-f", report]
            libraries = self._environment(self.packages / "nvidia" / "cuda_runtime" / "lib")
            ran = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=libraries)
            if ran.returncode != 0 or not report.exists():
                raise DidNotStart("perf_analyzer: " + (ran.stderr or ran.stdout)[-500:])
            names, values, *_ = report.read_text().splitlines()
        row = dict(zip(names.split(","), values.split(",")))
        return float(row["Inferences/Second"]), float(row["p50 latency"]), float(row["p99 latency"])

"""Runs the daemon as users do: a process on free ports, used only over the network."""

import contextlib
import ctypes
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from exposition import parse
from messages import Inference, Vision

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO_REPOSITORY = ROOT / "models" / "demo" / "repository"

# Limit for answering, loading another model and draining. Far above the usual time: a test that reaches it has failed.
DEADLINE_SECONDS = 50
# Limit for a daemon to be ready: its models are loaded and warmed up first, for a minute on cores that others use too.
START_SECONDS = 300

LISTENING = re.compile(r"^listening grpc=(\S+):(\d+) http=(\S+):(\d+) metrics=(\S+):(\d+)$")
PR_SET_PDEATHSIG = 1
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def binary(name):
    return pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "bin" / name


def module_command(name, *arguments, new=False):
    """The words of a command that does what `python -m NAME ARGUMENTS` does. Where tests/warm_python.py runs, a fork of it
    runs the module, which saves the seconds that importing PyTorch takes; with `new`, Python starts as it does for users."""
    start = ["-m"] if new else [str(ROOT / "tests" / "run_module.py")]
    return [sys.executable, *start, name, *map(str, arguments)]


def die_with_parent():
    # Kills the daemon if the test run is killed.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Daemon:
    """A running saccaded. Use it as a context manager: the process ends with the block in any case."""

    running = []

    def __init__(self, repository, *flags, log_folder, ports=("0", "0", "0"), config=None, under=(), environment=None,
                 credentials=None):
        """`under` are words before the command; `environment` is added to this process's; `credentials` are gRPC's, for
        a daemon with TLS."""
        self.log_path = pathlib.Path(log_folder) / f"saccaded-{time.monotonic_ns()}.log"
        self._credentials = credentials
        named = zip(("grpc", "http", "metrics"), ports)
        self._command = [
            *map(str, under),
            str(binary("saccaded")),
            *([f"--config={config}"] if config else []),
            "--host=127.0.0.1",
            f"--model-repository={repository}",
            *(f"--{name}-port={port}" for name, port in named),
            *flags,
        ]
        self.grpc_port = self.http_port = self.metrics_port = None
        self._lines = queue.Queue()
        self._log = open(self.log_path, "wb")
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=self._log, preexec_fn=die_with_parent,
            # Each measures its models itself, unless the test names a folder.
            env={**os.environ, "XDG_STATE_HOME": f"{self.log_path}.state", **(environment or {})},
        )
        self._reader = threading.Thread(target=self._read_stdout, daemon=True)
        self._reader.start()
        Daemon.running.append(self)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.await_nothing_held()
        finally:
            self.close()

    def await_nothing_held(self):
        """Waits until nothing is held of the bounds of admission: a test has ended, and with it all of its calls."""
        if self.process.poll() is not None or self.metrics_port is None:
            return
        held = None

        def nothing_held():
            nonlocal held
            try:
                status, _, body = self.get("/metrics", self.metrics_port)
            except (ConnectionError, urllib.error.URLError) as error:
                # The daemon drains or ends. One that does not answer is no reason to believe it.
                if not isinstance(getattr(error, "reason", error), ConnectionError):
                    raise
                return True
            if status != 200:
                return True  # The test's metrics need a token.
            bounds = ("inflight_requests", "inflight_bytes", "inflight_decoded_bytes")
            held = {name: parse(body).value(f"saccade_{name}") for name in bounds}
            return not any(held.values())

        try:
            eventually(nothing_held, "everything that was held of the bounds of admission was given back")
        except AssertionError as error:
            raise AssertionError(f"{error}: {held}") from None

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stdout.close()
        self._log.close()
        if self in Daemon.running:
            Daemon.running.remove(self)
        # In sanitizer builds. A finding may belong to another call, or have come after the last one.
        assert "Sanitizer: " not in self.log(), self.log()
        assert "a defect of the daemon" not in self.log(), self.log()

    def _read_stdout(self):
        for line in self.process.stdout:
            self._lines.put(line.decode().rstrip("\n"))
        self._lines.put(None)

    def log(self):
        return self.log_path.read_text(errors="replace")

    def log_lines(self):
        """The lines of the log, without one that is being written."""
        return self.log().rpartition("\n")[0].splitlines()

    def await_log(self, *texts):
        """Waits until the log has all of the texts: a thread of its own writes it, after what it tells has happened."""
        for text in texts:
            eventually(lambda text=text: text in self.log(), f"the log tells '{text}'")

    def await_ports(self):
        line = self._lines.get(timeout=START_SECONDS)
        assert line is not None, f"the daemon ended with {self.process.wait()}:\n{self.log()}"
        match = LISTENING.match(line)
        assert match, f"expected the line that tells the ports, got {line!r}"
        self.grpc_port, self.http_port, self.metrics_port = (int(match[group]) for group in (2, 4, 6))
        return self

    def await_ready(self):
        """Waits until the ports are open, the models are loaded and the overall health is SERVING."""
        self.await_ports()
        with self.channel() as channel:
            watch = health_pb2_grpc.HealthStub(channel).Watch(
                health_pb2.HealthCheckRequest(), timeout=START_SECONDS, wait_for_ready=True
            )
            try:
                for update in watch:
                    if update.status == SERVING:
                        return self
            except grpc.RpcError as error:
                raise AssertionError(f"not ready ({error.code()}: {error.details()}):\n{self.log()}") from error
        raise AssertionError(f"the health watch ended before SERVING:\n{self.log()}")

    @property
    def grpc_address(self):
        return f"127.0.0.1:{self.grpc_port}"

    def channel(self, **options):
        # One connection per channel; gRPC would otherwise share it between channels to the same address.
        settings = {"grpc.use_local_subchannel_pool": 1, "grpc.max_receive_message_length": -1, **options}
        if self._credentials:
            return grpc.secure_channel(self.grpc_address, self._credentials, options=list(settings.items()))
        return grpc.insecure_channel(self.grpc_address, options=list(settings.items()))

    @contextlib.contextmanager
    def vision(self):
        with self.channel() as channel:
            yield Vision(channel)

    @contextlib.contextmanager
    def inference(self):
        with self.channel() as channel:
            yield Inference(channel)

    def get(self, path, port=None):
        """Sends an HTTP GET; returns (status, headers, body)."""
        url = f"http://127.0.0.1:{port or self.http_port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=DEADLINE_SECONDS) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode()

    def metrics(self):
        status, headers, body = self.get("/metrics", self.metrics_port)
        assert status == 200
        assert headers["Content-Type"].startswith("text/plain")
        return parse(body)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def exit_code(self):
        return self.process.wait(timeout=DEADLINE_SECONDS)

    def resident_bytes(self):
        return self._status_bytes("VmRSS")

    def peak_resident_bytes(self):
        """The most resident memory since the start, or since forget_peak()."""
        return self._status_bytes("VmHWM")

    def forget_peak(self):
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def _status_bytes(self, name):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) * 1024

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def of_threads(process, file):
    """The text of `file` in /proc for each thread of a process, without threads that end meanwhile."""
    texts = []
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            texts.append((task / file).read_text())
    return texts


def write_secret(path, text):
    """Writes a file that other users may not read, as the daemon expects of tokens; returns `path`."""
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def run_to_end(*arguments, environment=None, seconds=DEADLINE_SECONDS):
    """Runs saccaded with arguments that it should reject; returns the finished process. `environment` is added to this
    process's. Fails after so many seconds: START_SECONDS for a process that loads many models."""
    return subprocess.run(
        [binary("saccaded"), *map(str, arguments)], capture_output=True, text=True, timeout=seconds,
        env={**os.environ, **(environment or {})},
    )


def eventually(condition, what):
    """Polls until `condition()` holds; fails after DEADLINE_SECONDS. `what` describes the condition."""
    end = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < end, f"in {DEADLINE_SECONDS} s it did not happen that {what}"
        time.sleep(0.01)


def pause_of_a_client(seconds):
    """The time that a client takes between two requests, so that it asks at its own pace. Never to wait until something has
    happened: that is what eventually() is for."""
    time.sleep(seconds)


def open_loop(rate, seconds, send):
    """Calls send(0), send(1), ... at a constant rate, independent of the responses. Returns what it returned."""
    begun, sent = time.monotonic(), []
    while time.monotonic() - begun < seconds:
        if len(sent) < rate * (time.monotonic() - begun):
            sent.append(send(len(sent)))
        else:
            time.sleep(0.001)
    return sent

"""Tests faults in the daemon's environment: a full disk, a log that nobody reads, a vanished repository, a jumping clock,
slow clients or ones that open endless streams, exhausted descriptors. Unaffected requests are served meanwhile, all
requests afterwards."""

import contextlib
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import threading
import time

import grpc
import numpy
import pytest

from harness import DEADLINE_SECONDS, eventually
from http2_frames import PREFACE, Connection, open_grpc, settings
from messages import infer_request
from tiny_models import Identity, write_model
from tools.rollout.network import free_port

MODEL_INFER = "/inference.GRPCInferenceService/ModelInfer"
HANG = 99
SHAPE = (1, 1, 1, 1, 4)
DAY = 86400
# Only stuck requests may take longer. Generous, because the cores may be shared.
PROMPT_SECONDS = 5


@pytest.fixture
def root(tmp_path):
    write_model(tmp_path / "models", "served", Identity(), max_batch_size=4)
    return tmp_path / "models"


def volume(first):
    return numpy.array([first, 2, 3, 4], numpy.float32).tobytes()


def request(first=1, model="served"):
    return infer_request(model, SHAPE, volume(first))


def serves(inference, count=20, model="served"):
    for i in range(count):
        answer = inference.model_infer(request(i, model), timeout=PROMPT_SECONDS)
        assert answer.raw_output_contents[0] == volume(i)


def newcomer_is_served(daemon):
    with daemon.inference() as inference:
        answer = inference.model_infer(request(7), timeout=DEADLINE_SECONDS, wait_for_ready=True)
        assert answer.raw_output_contents[0] == volume(7)
    for port in (daemon.http_port, daemon.metrics_port):
        status, _, _ = daemon.get("/v2/health/ready" if port == daemon.http_port else "/metrics", port)
        assert status == 200


def is_ready(daemon):
    try:
        return daemon.get("/v2/health/ready")[0] == 200
    except OSError:
        return False


def test_a_full_disk_under_its_output_stops_nothing(start, root):
    ports = [str(free_port("127.0.0.1")) for _ in range(3)]
    full = ("sh", "-c", 'exec "$@" >/dev/full 2>/dev/full', "sh")
    daemon = start(root, "--log-level=debug", "--lame-duck-seconds=0", ports=ports, under=full)
    daemon.grpc_port, daemon.http_port, daemon.metrics_port = map(int, ports)
    # Its log does not tell that the ports are open and the model is loaded.
    eventually(lambda: is_ready(daemon), "the model was loaded")
    with daemon.inference() as inference:
        serves(inference)
        with pytest.raises(grpc.RpcError, match="INVALID_ARGUMENT"):
            inference.model_infer(infer_request("served", SHAPE, b"short"))
    newcomer_is_served(daemon)
    assert daemon.metrics().value("saccade_log_lines_dropped_total", reason="write_failed") > 0
    daemon.terminate()
    assert daemon.exit_code() == 0


def dropped(daemon):
    return daemon.metrics().value("saccade_log_lines_dropped_total", reason="queue_full")


def test_a_log_that_nobody_reads_stops_no_call(start, root, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    daemon = start(root, "--access-log", "--lame-duck-seconds=0", "--drain-timeout-seconds=10",
                   under=("sh", "-c", f'exec "$@" 2>{pipe}', "sh"))
    # Nothing is read before the lines have filled the pipe and the queue.
    daemon.await_ready()
    with daemon.inference() as inference:
        while dropped(daemon) == 0:
            for i in range(200):
                named = request(i)
                named.id = "x" * 128
                answer = inference.model_infer(named, timeout=PROMPT_SECONDS)
                assert answer.raw_output_contents[0] == volume(i)
    lost = dropped(daemon)
    log, told = b"", re.compile(rb"log lines were dropped.* lines=(\d+)")

    def read():
        nonlocal log
        with contextlib.suppress(BlockingIOError):
            log += os.read(reader, 1 << 20)
        return told.search(log)

    eventually(read, "the log told of the lines that were dropped")
    assert int(told.search(log)[1]) >= lost
    # The queue's lines came before.
    assert log.count(b" I call ") > 1000
    # The end waits for its last line.
    daemon.terminate()
    eventually(lambda: read() and daemon.process.poll() is not None, "the daemon ended")
    assert daemon.exit_code() == 0
    read()
    assert b"saccaded has ended\n" in log
    os.close(reader)


def test_a_log_that_nobody_reads_does_not_hold_up_the_end(start, root, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    # Filled before it starts.
    os.set_blocking(reader, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(reader, bytes(4096))
    daemon = start(root, "--lame-duck-seconds=0", under=("sh", "-c", f'exec "$@" 2>{pipe}', "sh")).await_ready()
    # Protobuf has a log of its own, for texts that are not UTF-8.
    with daemon.channel() as channel:
        for _ in range(20):
            with pytest.raises(grpc.RpcError) as error:
                channel.unary_unary("/grpc.health.v1.Health/Check")(b"\x0a\x01\xff", timeout=PROMPT_SECONDS)
            assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    newcomer_is_served(daemon)
    daemon.terminate()
    assert daemon.exit_code() == 0
    os.close(reader)


def test_a_closed_stderr_is_no_connection(start, root):
    daemon = start(root, "--access-log", under=("sh", "-c", 'exec "$@" 2>&-', "sh")).await_ready()
    with daemon.inference() as inference:
        serves(inference)
    assert os.readlink(f"/proc/{daemon.process.pid}/fd/2") == "/dev/null"
    newcomer_is_served(daemon)


class Steady:
    """Calls one model continuously; each call must succeed."""

    def __init__(self, daemon, model):
        self._daemon, self._model = daemon, model
        self._stop = threading.Event()
        self.answered, self.failures = 0, []
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        with self._daemon.inference() as inference:
            while not self._stop.is_set():
                try:
                    serves(inference, 1, self._model)
                    self.answered += 1
                except grpc.RpcError as error:
                    self.failures.append(f"{error.code()}: {error.details()}")

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def test_a_repository_that_vanishes_under_load(start, root):
    write_model(root, "leaving", Identity(), max_batch_size=4)
    daemon = start(root, "--model-control-mode=poll", "--repository-poll-secs=0.1").await_ready()
    away = root.with_name("away")
    with Steady(daemon, "served") as load:
        root.rename(away)
        eventually(lambda: "model repository cannot be read" in daemon.log(), "it was missed")
        with daemon.inference() as inference:
            serves(inference, model="leaving")
        shutil.rmtree(away / "leaving")
        away.rename(root)
        # A model whose folder is missing twice in a row is unloaded.
        eventually(lambda: "model freed" in daemon.log(), "what is gone was unloaded")
        with daemon.inference() as inference, pytest.raises(grpc.RpcError) as error:
            serves(inference, 1, "leaving")
        assert error.value.code() == grpc.StatusCode.NOT_FOUND
        # At once: without its models, it would be a repository from which they were taken.
        root.rename(away)
        shutil.rmtree(away)
        eventually(lambda: daemon.log().count("model repository cannot be read") == 2, "it was missed again, deleted this time")
        answered = load.answered
        eventually(lambda: load.answered > answered + 20, "it goes on")
    assert not load.failures
    assert daemon.get("/v2/health/ready")[0] == 200


@pytest.fixture(scope="module")
def jumping_clock(tmp_path_factory):
    """(environment that loads jumping_clock.c, function that sets the clock's offset in seconds)."""
    folder = tmp_path_factory.mktemp("clock")
    source, library, offset = pathlib.Path(__file__).with_name("jumping_clock.c"), folder / "clock.so", folder / "offset"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", source, "-o", library], check=True)

    def jump(seconds):
        with open(offset, "r+b") as file:
            file.write(struct.pack("=q", seconds))

    offset.write_bytes(bytes(8))
    return {"LD_PRELOAD": str(library), "JUMPING_CLOCK": str(offset)}, jump


def inflight(daemon):
    return daemon.metrics().total("saccade_inflight_requests")


def test_a_clock_that_jumps(start, tmp_path, jumping_clock):
    """No request times out, none waits for days, and no pass is taken for hung."""
    environment, jump = jumping_clock
    # Each wait is long enough to be seen on a busy machine.
    drill = Identity(hang_at=HANG, hang_seconds=4)
    write_model(tmp_path / "models", "served", drill, max_batch_size=4, max_queue_delay_microseconds=2_000_000)
    polling = ("--model-control-mode=poll", "--repository-poll-secs=0.2")
    flags = ("--stall-seconds=20", "--allow-drills", *polling)
    daemon = start(tmp_path / "models", *flags, environment=environment).await_ready()
    with daemon.inference() as inference:
        busy = inference.model_infer.future(request(HANG), timeout=DEADLINE_SECONDS)
        eventually(lambda: inflight(daemon) == 1, "it was begun")
        waiting = [inference.model_infer.future(request(i), timeout=DEADLINE_SECONDS) for i in range(8)]
        eventually(lambda: inflight(daemon) == 9, "the others wait")
        jump(2 * DAY)
        for i, call in enumerate(waiting):
            assert call.result().raw_output_contents[0] == volume(i)
        busy.result()
        for days in (-2, 1):
            # The request waits to fill a batch. With the new time, that wait would take days or no time.
            lone = inference.model_infer.future(request(5), timeout=DEADLINE_SECONDS)
            eventually(lambda: inflight(daemon) == 1, "it waits")
            jump(days * DAY)
            assert lone.result().raw_output_contents[0] == volume(5)
        assert inference.model_infer(request(6), timeout=DEADLINE_SECONDS).raw_output_contents[0] == volume(6)
    assert daemon.get("/v2/health/live")[0] == 200
    assert "exceeds --stall-seconds" not in daemon.log()
    ready = daemon.metrics().total("saccade_model_ready")
    write_model(tmp_path / "models", "second", Identity(), max_batch_size=1)
    eventually(lambda: daemon.metrics().total("saccade_model_ready") == ready + 1, "the repository was looked at")


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS)


class Dawdlers:
    """Connections that send some bytes at once and the rest slowly, ten bytes per second, until they are closed or the
    block ends."""

    def __init__(self, *sendings):
        self._open = []
        for port, at_once, rest in sendings:
            connection = connect(port)
            connection.sendall(at_once)
            self._open.append((connection, iter(rest)))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._stop.wait(0.1):
            for one in list(self._open):
                try:
                    one[0].sendall(bytes([next(one[1])]))
                except OSError:
                    one[0].close()
                    self._open.remove(one)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        for connection, _ in self._open:
            connection.close()


def test_clients_that_send_byte_by_byte(start, root):
    daemon = start(root).await_ready()
    files = daemon.open_files()
    head = b"POST /v2/models/served/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
    heads = 4 * [(daemon.http_port, b"", head + b"X-Long: " + b"a" * 4000)]
    bodies = 8 * [(daemon.http_port, head + b"\r\n", b"{" * 9999)]
    prefaces = 50 * [(daemon.grpc_port, b"", PREFACE + settings() + b"\x00" * 9999)]
    with daemon.inference() as inference:
        serves(inference)
        with Dawdlers(*heads, *bodies, *prefaces):
            eventually(lambda: daemon.open_files() >= files + 50, "all of them have connected")
            serves(inference)
            newcomer_is_served(daemon)
    eventually(lambda: daemon.open_files() <= files + 1, "their descriptors were given back")
    newcomer_is_served(daemon)


def test_a_client_that_opens_ten_thousand_streams(start, root):
    daemon = start(root).await_ready()
    with daemon.inference() as inference:
        serves(inference)
        resident, files = daemon.resident_bytes(), daemon.open_files()
        with Connection(daemon.grpc_port) as connection:
            reader = threading.Thread(target=read_to_end, args=(connection,), daemon=True)
            reader.start()
            # The daemon may close the connection at any time.
            with contextlib.suppress(OSError):
                for stream in range(1, 20_001, 2):
                    connection.send(open_grpc(stream, MODEL_INFER, [("grpc-timeout", "60S")]))
            serves(inference)
            assert daemon.resident_bytes() - resident < 128 << 20
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)
            reader.join(DEADLINE_SECONDS)
            assert not reader.is_alive()
        eventually(lambda: daemon.open_files() <= files, "its connection was closed")
        newcomer_is_served(daemon)
    eventually(lambda: inflight(daemon) == 0, "nothing is held for it")


def read_to_end(connection):
    with contextlib.suppress(OSError):
        connection.await_end()


def test_clients_of_http_that_never_read(start, root):
    daemon = start(root).await_ready()
    large = numpy.zeros(1_000_000, numpy.float32).tobytes()
    header = (
        b'{"inputs":[{"name":"image","datatype":"FP32","shape":[1,1,1,1000,1000],"parameters":'
        b'{"binary_data_size":4000000}}],"parameters":{"binary_data_output":true}}'
    )
    message = (
        b"POST /v2/models/served/infer HTTP/1.1\r\nHost: localhost\r\nInference-Header-Content-Length: %d\r\n"
        b"Content-Length: %d\r\n\r\n" % (len(header), len(header) + len(large))
    ) + header + large
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(connect(daemon.http_port)).sendall(message)
        eventually(lambda: daemon.metrics().total("nv_inference_count") == 4, "all four were computed")
        with daemon.inference() as inference:
            serves(inference)
    newcomer_is_served(daemon)
    eventually(lambda: inflight(daemon) == 0, "nothing is held for them")


@pytest.mark.parametrize("port", ["grpc_port", "http_port"])
def test_descriptors_run_out(start, root, port):
    limit = 100
    # By itself the daemon would allow fewer connections.
    daemon = start(root, "--max-connections=1000", under=("prlimit", f"--nofile={limit}")).await_ready()
    files = daemon.open_files()
    with daemon.inference() as inference:
        serves(inference)
        with contextlib.ExitStack() as stack:
            for _ in range(2 * limit):
                stack.enter_context(connect(getattr(daemon, port)))
            eventually(lambda: daemon.open_files() >= limit - 2, "there are none left")
            serves(inference)
            # A connection to the gRPC port meanwhile may be rejected.
            with daemon.inference() as newcomer, contextlib.suppress(grpc.RpcError):
                newcomer.model_infer(request(), timeout=0.5)
        eventually(lambda: daemon.open_files() <= files + 1, "they were given back")
        newcomer_is_served(daemon)
        serves(inference)


def test_the_limit_of_descriptors_is_raised(start, root):
    daemon = start(root, under=("prlimit", "--nofile=200:3000")).await_ready()
    limits = pathlib.Path(f"/proc/{daemon.process.pid}/limits").read_text()
    assert re.search(r"^Max open files +3000 +3000 ", limits, re.MULTILINE), limits

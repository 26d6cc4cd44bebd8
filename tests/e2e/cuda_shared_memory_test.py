"""Tests CUDA shared memory with Triton's clients, with the fakes of CUDA's libraries: a file is a GPU's memory
(kernels/common/testing/fake_cuda_ipc.h)."""

import base64
import http.client
import json
import os
import pathlib
import uuid

import numpy
import pytest
import tritonclient.grpc
import tritonclient.http

from harness import Daemon
from kernels.common.testing import fake_cuda
from tiny_models import assert_close
from triton_calls import refusal

APIS = {"grpc": tritonclient.grpc, "http": tritonclient.http}
INVALID = {"grpc": "INVALID_ARGUMENT", "http": "400"}
NOT_FOUND = {"grpc": "NOT_FOUND", "http": "404"}
INTERNAL = {"grpc": "INTERNAL", "http": "500"}


class GpuMemory:
    """What a client's process has allocated on a GPU."""

    def __init__(self, size, gpu=1):
        self.path = pathlib.Path(f"/dev/shm/gpu_{uuid.uuid4().hex[:12]}")
        self.path.write_bytes(bytes(size))
        self.gpu, self.size = gpu, size

    def raw_handle(self, process=None):
        """In base64, as Triton's client has it."""
        text = f"GPU {self.gpu} PROCESS {process or os.getpid()} {self.path}".encode()
        assert len(text) <= 64
        return base64.b64encode(text.ljust(64, b"\0"))

    def write(self, array, offset=0):
        with open(self.path, "r+b") as file:
            file.seek(offset)
            file.write(array.tobytes())

    def read(self, shape, offset=0):
        return numpy.frombuffer(self.path.read_bytes(), numpy.float32, int(numpy.prod(shape)), offset).reshape(shape)


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    return tmp_path_factory.mktemp("notes") / "notes"


@pytest.fixture(scope="module")
def environment(notes, tmp_path_factory):
    libraries = fake_cuda.make(tmp_path_factory.mktemp("fakes") / "libraries")
    return {**libraries, "SACCADE_FAKE_CUDA_IPC_LOG": str(notes)}


@pytest.fixture(scope="module")
def daemon(repository, environment, tmp_path_factory):
    with Daemon(repository, "--allow-shared-memory", log_folder=tmp_path_factory.mktemp("log"),
                environment=environment) as running:
        yield running.await_ready()


def client_of(daemon, over):
    address = daemon.grpc_address if over == "grpc" else f"127.0.0.1:{daemon.http_port}"
    return APIS[over].InferenceServerClient(address)


@pytest.fixture(params=list(APIS))
def over(request):
    return request.param


@pytest.fixture
def client(daemon, over):
    with client_of(daemon, over) as made:
        yield made
        made.unregister_cuda_shared_memory()
        made.unregister_system_shared_memory()


@pytest.fixture
def allocate():
    made = []

    def allocate_memory(size, gpu=1):
        made.append(GpuMemory(size, gpu))
        return made[-1]

    yield allocate_memory
    for memory in made:
        memory.path.unlink(missing_ok=True)


def status_of(client, over, name=""):
    """{name: (device_id, byte_size)}"""
    found = client.get_cuda_shared_memory_status(name)
    if over == "http":
        return {one["name"]: (one["device_id"], one["byte_size"]) for one in found}
    return {key: (one.device_id, one.byte_size) for key, one in found.regions.items()}


def shared_input(over, name, batch, offset=0):
    made = APIS[over].InferInput("image", list(batch.shape), "FP32")
    made.set_shared_memory(name, batch.nbytes, offset)
    return made


def infer(client, over, batch, region, out, out_bytes, offset=0):
    wanted = APIS[over].InferRequestedOutput("logits")
    wanted.set_shared_memory(out, out_bytes, offset)
    return client.infer("tiny", [shared_input(over, region, batch, offset)], outputs=[wanted])


def test_it_is_advertised(client, over):
    metadata = client.get_server_metadata()
    assert "cuda_shared_memory" in (metadata["extensions"] if over == "http" else metadata.extensions)


def test_tensors_in_logits_out(client, over, allocate, tiny):
    batch = tiny.random_batch(3, seed=1)
    expected = tiny.logits(batch)
    given, made = allocate(batch.nbytes + 256), allocate(1024, gpu=0)
    given.write(batch, offset=64)
    client.register_cuda_shared_memory("in", given.raw_handle(), 1, given.size)
    client.register_cuda_shared_memory("out", made.raw_handle(), 0, made.size)
    infer(client, over, batch, "in", "out", expected.nbytes + 8, offset=64)
    assert_close(made.read(expected.shape, offset=64), expected)


def test_status_and_unregister(client, over, allocate):
    memory = allocate(128)
    client.register_cuda_shared_memory("first", memory.raw_handle(), 1, 64)
    client.register_cuda_shared_memory("second", memory.raw_handle(), 1, 128)
    assert status_of(client, over) == {"first": (1, 64), "second": (1, 128)}
    assert status_of(client, over, "first") == {"first": (1, 64)}
    system = client.get_system_shared_memory_status()
    assert len(system if over == "http" else system.regions) == 0
    assert "first" in refusal(client.register_cuda_shared_memory, "first", memory.raw_handle(), 1, 64)[1]
    client.unregister_system_shared_memory()
    assert len(status_of(client, over)) == 2
    client.unregister_cuda_shared_memory("first")
    client.unregister_cuda_shared_memory("never registered")
    assert status_of(client, over) == {"second": (1, 128)}
    assert refusal(client.get_cuda_shared_memory_status, "first")[0] == NOT_FOUND[over]
    client.unregister_cuda_shared_memory()
    assert status_of(client, over) == {}


def refused(over, call, *arguments, **named):
    """The message of a call that must be refused as invalid."""
    code, message = refusal(call, *arguments, **named)
    assert code == INVALID[over], (code, message)
    return message


def test_bad_handles_are_refused(client, daemon, over, allocate, notes):
    memory = allocate(64)
    register = client.register_cuda_shared_memory
    assert "raw_handle has 63 bytes" in refused(over, register, "r", base64.b64encode(bytes(63)), 1, 64)
    assert "raw_handle has 0 bytes" in refused(over, register, "r", b"", 1, 64)
    assert "invalid argument" in refused(over, register, "r", base64.b64encode(bytes(64)), 1, 64)
    assert "device_id is 2; expected 0 to 1" in refused(over, register, "r", memory.raw_handle(), 2, 64)
    assert "the memory is on GPU 1" in refused(over, register, "r", memory.raw_handle(), 0, 64)
    assert "has 64 bytes" in refused(over, register, "r", memory.raw_handle(), 1, 65)
    assert "byte_size is 0" in refused(over, register, "r", memory.raw_handle(), 1, 0)
    own = memory.raw_handle(daemon.process.pid)
    assert "another process" in refused(over, register, "r", own, 1, 64)
    assert status_of(client, over) == {}
    lines = notes.read_text().splitlines()
    assert lines.count(f"open {memory.path}") == lines.count(f"close {memory.path}") == 2


def test_ranges_outside_are_refused(client, over, allocate, tiny):
    batch = tiny.random_batch(1, seed=4)
    memory = allocate(batch.nbytes)
    client.register_cuda_shared_memory("r", memory.raw_handle(), 1, batch.nbytes)
    assert "'image'" in refused(over, client.infer, "tiny", [shared_input(over, "r", batch, offset=4)])
    wanted = APIS[over].InferRequestedOutput("logits")
    wanted.set_shared_memory("r", 64, batch.nbytes - 60)
    message = refused(over, client.infer, "tiny", [shared_input(over, "r", batch)], outputs=[wanted])
    assert "logits" in message and "exceeds" in message


def test_a_gpu_that_fails_is_an_error_of_the_request(client, over, allocate, tiny):
    batch = tiny.random_batch(1, seed=4)
    memory = allocate(batch.nbytes)
    client.register_cuda_shared_memory("r", memory.raw_handle(), 1, batch.nbytes)
    os.truncate(memory.path, 16)
    code, message = refusal(client.infer, "tiny", [shared_input(over, "r", batch)])
    assert code == INTERNAL[over] and "illegal memory access" in message
    assert client.is_server_live()


def test_the_daemons_end_closes_all(start, repository, environment, notes, allocate, over):
    daemon = start(repository, "--allow-shared-memory", environment=environment).await_ready()
    memory = allocate(64)
    with client_of(daemon, over) as client:
        for name in ("a", "b"):
            client.register_cuda_shared_memory(name, memory.raw_handle(), 1, 64)
    daemon.process.terminate()
    assert daemon.process.wait(timeout=60) == 0
    lines = notes.read_text().splitlines()
    assert lines.count(f"open {memory.path}") == lines.count(f"close {memory.path}") == 2


def post(daemon, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.http_port, timeout=30)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_http_bodies_that_are_wrong_are_told(daemon, allocate):
    memory = allocate(64)
    handle = {"b64": memory.raw_handle().decode()}
    path = "/v2/cudasharedmemory/region/r/register"
    for body, reason in (
        ({"device_id": 1, "byte_size": 64}, "raw_handle"),
        ({"raw_handle": memory.raw_handle().decode(), "device_id": 1, "byte_size": 64}, "expected an object"),
        ({"raw_handle": {"b64": "*"}, "device_id": 1, "byte_size": 64}, "base64"),
        ({"raw_handle": {"b64": 5}, "device_id": 1, "byte_size": 64}, "base64"),
        ({"raw_handle": handle, "byte_size": 64}, "device_id"),
        ({"raw_handle": handle, "device_id": -1, "byte_size": 64}, "device_id"),
        ({"raw_handle": handle, "device_id": 1, "byte_size": "64"}, "byte_size"),
        ({"raw_handle": handle, "device_id": 1}, "byte_size is 0"),
    ):
        status, answer = post(daemon, path, body)
        assert status == 400 and reason in answer["error"], (body, status, answer)

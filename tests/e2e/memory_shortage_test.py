"""Tests that the daemon outlives a shortage of memory: one that begins at any allocation of a request or of a model's
load (failing_allocations.cc), and an address space of 2 GiB. It answers RESOURCE_EXHAUSTED, and serves once memory is
back."""

import concurrent.futures
import json
import mmap
import os
import pathlib
import struct
import subprocess
import urllib.error
import urllib.request

import grpc
import numpy
import pytest

from harness import DEADLINE_SECONDS, eventually
from messages import infer_request, message, predict_request, stub
from pictures import encoded, pixels
from tests.long_form import LONG
from tiny_models import Identity, TinyModel, write_model

# Where shortages begin, spread evenly over the allocations of a request. "all" tries every one, which takes minutes.
PLACES = os.environ.get("SACCADE_SHORTAGES", "40" if LONG else "20")
NEVER = 1 << 40
OK, EXHAUSTED = "OK", "RESOURCE_EXHAUSTED"
SHAPE = (1, 1, 1, 1, 4)
VALUES = numpy.arange(4, dtype=numpy.float32)
PICTURE = encoded(pixels(3), "JPEG")
# The reserve itself, and what threads keep in their caches.
MAX_GROWTH = 64 << 20


class Shortage:
    """A block in which the daemon finds no more memory from allocation number `begins_at` on."""

    layout = struct.Struct("=6q")

    def __init__(self, folder):
        source, library = pathlib.Path(__file__).with_name("failing_allocations.cc"), folder / "failing.so"
        subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", "-O1", source, "-o", library], check=True)
        self.control = folder / "control"
        self.control.write_bytes(bytes(self.layout.size))
        with open(self.control, "r+b") as file:
            self._mapped = mmap.mmap(file.fileno(), self.layout.size)
        self.environment = {"LD_PRELOAD": str(library), "FAILING_ALLOCATIONS": str(self.control)}

    def during(self, begins_at, call):
        """Returns what the call returned, the number of allocations and how many of them found no memory."""
        self._mapped[:] = self.layout.pack(0, 0, begins_at, 0, 0, 0)
        self._mapped[:8] = struct.pack("=q", 1)
        try:
            answer = call()
        finally:
            self._mapped[:8] = struct.pack("=q", 0)
        _, counted, _, failed, _, _ = self.layout.unpack(self._mapped[:])
        return answer, counted, failed

    def stack(self):
        """Where the first allocation of the last shortage failed."""
        return pathlib.Path(f"{self.control}.stack").read_text()


@pytest.fixture(scope="module")
def shortage(tmp_path_factory):
    return Shortage(tmp_path_factory.mktemp("shortage"))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    write_model(root, "identity", Identity(), max_batch_size=4)
    write_model(root, "tiny", TinyModel(classes=5, seed=1), max_batch_size=4)
    return root


def code_of(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.code().name
    return OK


def tensors(daemon):
    request = infer_request("identity", SHAPE, VALUES.tobytes())
    with daemon.inference() as inference:
        return code_of(lambda: inference.model_infer(request, timeout=DEADLINE_SECONDS))


def tensors_in_json(daemon):
    inputs = [{"name": "image", "datatype": "FP32", "shape": SHAPE, "data": VALUES.tolist()}]
    status, _, body = post(daemon, "/v2/models/identity/infer", json.dumps({"inputs": inputs}).encode())
    if status == 200:
        assert json.loads(body)["outputs"][0]["data"] == VALUES.tolist()
    return {200: OK, 429: EXHAUSTED}.get(status, f"{status} {body}")


def post(daemon, path, body):
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.http_port}{path}", data=body)
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def picture(daemon):
    with daemon.vision() as vision:
        return code_of(lambda: vision.predict(predict_request(model="tiny", encoded=PICTURE), timeout=DEADLINE_SECONDS))


def reload(daemon):
    """Unloads a model and loads it again."""
    def order(channel, name):
        request = message(f"inference.{name}Request")(model_name="tiny")
        return stub(channel, "inference.GRPCInferenceService", name)(request, timeout=DEADLINE_SECONDS)

    with daemon.channel() as channel:
        return code_of(lambda: [order(channel, f"RepositoryModel{what}") for what in ("Unload", "Load")])


def places(count, path):
    if PLACES == "all":
        return range(1, count + 1)
    # A load takes as long as a hundred requests.
    wanted = 10 if path is reload else int(PLACES)
    return sorted({1 + i * (count - 1) // (wanted - 1) for i in range(wanted)})


@pytest.mark.parametrize("path,decode", [(tensors, "thread"), (tensors_in_json, "thread"), (picture, "thread"),
                                         (picture, "process"), (reload, "thread")])
def test_a_shortage_that_begins_at_any_allocation(start, models, shortage, path, decode):
    explicit = ("--model-control-mode=explicit", "--load-model=*")
    daemon = start(models, f"--decode={decode}", *explicit, environment=shortage.environment).await_ready()
    if "tcmalloc" not in pathlib.Path(f"/proc/{daemon.process.pid}/maps").read_text():
        pytest.skip("without tcmalloc, malloc does not use the memory that is set aside")
    for _ in range(3):
        assert path(daemon) == OK
    count = max(shortage.during(NEVER, lambda: path(daemon))[1] for _ in range(3))
    assert count > 100, "allocations are not counted"
    resting, shortages = 0, 0
    for i, place in enumerate(places(count, path)):
        answer, _, failed = shortage.during(place, lambda: path(daemon))
        assert daemon.process.poll() is None, f"it ended at allocation {place} of {count}:\n{shortage.stack()}"
        assert answer in (OK, EXHAUSTED), f"at allocation {place} of {count}:\n{shortage.stack()}"
        shortages += failed > 0
        assert answer == OK or failed > 0
        # The memory is back. What is sent next is served.
        assert path(daemon) == OK, f"after a shortage at allocation {place} of {count}:\n{shortage.stack()}"
        if i == 5:
            resting = daemon.resident_bytes()
    assert shortages > 5, "this test tests nothing"
    eventually(lambda: daemon.metrics().total("saccade_inflight_requests") == 0, "nothing was in flight any more")
    assert daemon.resident_bytes() < resting + MAX_GROWTH


def large_tensors(daemon):
    with daemon.inference() as inference:
        side = numpy.zeros(8 << 20, numpy.float32)
        request = infer_request("identity", (1, 1, 8, 1024, 1024), side.tobytes())
        return code_of(lambda: inference.model_infer(request, timeout=DEADLINE_SECONDS))


def large_json(daemon):
    count = 1 << 20
    inputs = [{"name": "image", "datatype": "FP32", "shape": [1, 1, 1, 1024, 1024], "data": [0] * count}]
    status, _, body = post(daemon, "/v2/models/identity/infer", json.dumps({"inputs": inputs}).encode())
    return {200: OK, 429: EXHAUSTED}.get(status, f"{status} {body[:1000]}")


def large_picture(format):
    sent = encoded(pixels(3, 4000, 3000), format)

    def send(daemon):
        with daemon.vision() as vision:
            request = predict_request(model="tiny", encoded=sent)
            return code_of(lambda: vision.predict(request, timeout=DEADLINE_SECONDS))

    return send


@pytest.mark.parametrize("decode", ["process", "thread"])
def test_an_address_space_of_two_gibibytes(start, models, decode):
    """What does not fit is RESOURCE_EXHAUSTED, whatever comes in at once; what fits is served afterwards."""
    limit = ("prlimit", f"--as={2 << 30}")
    daemon = start(models, f"--decode={decode}", under=limit).await_ready()
    paths = [large_tensors, large_json, *map(large_picture, ("JPEG", "PNG", "TIFF", "WEBP"))]
    with concurrent.futures.ThreadPoolExecutor(12) as clients:
        answers = [clients.submit(path, daemon) for _ in range(6) for path in paths]
    found = {answer.result() for answer in answers}
    assert daemon.process.poll() is None
    assert found <= {OK, EXHAUSTED}
    for path in (tensors, tensors_in_json, picture):
        eventually(lambda: path(daemon) == OK, "what is small is served")
    eventually(lambda: daemon.metrics().total("saccade_inflight_bytes") == 0, "nothing was in flight any more")

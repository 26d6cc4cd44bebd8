"""Tests every row of docs/compatibility.md: what is listed as working is called; what is refused must give the stated
error."""

import base64
import json
import os
import pathlib
import re
import subprocess
import urllib.error
import urllib.request

import grpc
import pytest
from google.protobuf import message_factory

from harness import DEADLINE_SECONDS, ROOT, Daemon, eventually, run_to_end
from kernels.common.testing import fake_cuda
from messages import infer_request, message, pool
from tiny_models import write_model

PAGE = (ROOT / "docs" / "compatibility.md").read_text()
SERVICE = "inference.GRPCInferenceService"
STATES = {"works", "passed over", "refused", "not there"}


def table(heading):
    """(state, note) by name, for the only table under a heading."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|(?: ([^|]*))? \|$", section, re.MULTILINE)
    assert rows and len(rows) == section.count("\n| `"), f"a row under {heading} is not in the form of the others"
    named = {name: (state, note) for name, state, note in rows}
    assert len(named) == len(rows) and {state for state, _ in named.values()} <= STATES
    return named


METHODS, ROUTES, EXTENSIONS, FLAGS = map(table, ("gRPC", "REST", "Extensions", "Command line"))


@pytest.fixture(scope="module")
def daemon(tiny, tmp_path_factory):
    """A daemon with all optional features enabled, and with fakes of CUDA's libraries."""
    root = tmp_path_factory.mktemp("models")
    fakes = fake_cuda.make(tmp_path_factory.mktemp("fakes") / "libraries")
    write_model(root, "tiny", tiny)
    flags = ("--model-control-mode=explicit", "--load-model=*", "--allow-shared-memory")
    with Daemon(root, *flags, log_folder=tmp_path_factory.mktemp("log"), environment=fakes) as running:
        yield running.await_ready()


@pytest.fixture(scope="module")
def region():
    """The key of a file in /dev/shm that belongs to the daemon's user."""
    path = pathlib.Path("/dev/shm/saccade_compatibility_test")
    path.write_bytes(bytes(64))
    yield "/" + path.name
    path.unlink()


@pytest.fixture
def call(daemon):
    """call(method, **fields): makes a call of the gRPC service; returns (status code, response)."""
    with daemon.channel() as channel:

        def made(method, request=None, **fields):
            found = pool().FindServiceByName(SERVICE).methods_by_name[method]
            types = [message_factory.GetMessageClass(of) for of in (found.input_type, found.output_type)]
            opened = channel.stream_stream if method == "ModelStreamInfer" else channel.unary_unary
            stub = opened(f"/{SERVICE}/{method}", request_serializer=lambda sent: sent.SerializeToString(),
                          response_deserializer=types[1].FromString)
            sent = types[0](**fields) if request is None else request
            try:
                if method == "ModelStreamInfer":
                    (answer,) = stub(iter([sent]), timeout=DEADLINE_SECONDS)
                    assert not answer.error_message
                    return grpc.StatusCode.OK, answer
                return grpc.StatusCode.OK, stub(sent, timeout=DEADLINE_SECONDS)
            except grpc.RpcError as error:
                return error.code(), None

        yield made


def inference(tiny):
    return infer_request("tiny", [1, 3, tiny.height, tiny.width], tiny.random_batch(1, seed=1).tobytes())


def handle_of(region):
    """The handle of a fake GPU's memory: the file in /dev/shm."""
    return f"GPU 0 PROCESS {os.getpid()} /dev/shm{region}".encode().ljust(64, b"\0")


def fields_of(method, tiny, region):
    if method in ("ModelInfer", "ModelStreamInfer"):
        return {"request": inference(tiny)}
    if method in ("ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics"):
        return {"name": "tiny", "version": "1"}
    if method in ("RepositoryModelLoad", "RepositoryModelUnload"):
        return {"model_name": "tiny"}
    if method == "SystemSharedMemoryRegister":
        return {"name": "by grpc", "key": region, "byte_size": 64}
    if method == "CudaSharedMemoryRegister":
        return {"name": "on a gpu", "raw_handle": handle_of(region), "byte_size": 64}
    return {}


def test_every_method_of_the_service_has_a_row():
    assert list(METHODS) == [method.name for method in pool().FindServiceByName(SERVICE).methods]


@pytest.mark.parametrize("method", METHODS)
def test_method(daemon, call, tiny, region, method):
    state, note = METHODS[method]
    code, answer = call(method, **fields_of(method, tiny, region))
    if method == "RepositoryModelUnload":
        assert call("RepositoryModelLoad", model_name="tiny")[0] == grpc.StatusCode.OK
    if state == "works":
        assert code == grpc.StatusCode.OK
        assert answer.IsInitialized()
    else:
        assert state == "refused" and note.startswith(code.name), f"is {code}, and the page says {state}, {note}"


def send(daemon, method, path, body=None, port=None):
    """Sends a JSON request over HTTP; returns (status, body)."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port or daemon.http_port}{path}", method=method,
        data=json.dumps(body).encode() if body is not None else None)
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def body_of(route, tiny, region):
    if route.startswith("GET"):
        return None
    if route.endswith("/infer"):
        batch = tiny.random_batch(1, seed=1)
        return {"inputs": [{"name": "image", "shape": batch.shape, "datatype": "FP32", "data": batch.tolist()}]}
    if route.endswith("systemsharedmemory/region/REGION/register"):
        return {"key": region, "offset": 0, "byte_size": 64}
    if route.endswith("cudasharedmemory/region/REGION/register"):
        return {"raw_handle": {"b64": base64.b64encode(handle_of(region)).decode()}, "device_id": 0, "byte_size": 64}
    if route == "POST /v2/logging":
        return {"log_info": True}
    if "/generate" in route:
        return {"text_input": "a"}
    return {}


def paths_of(route):
    """The paths of a route, without and with its optional part."""
    path = route.split()[1]
    without = re.sub(r"\[.*?\]", "", path)
    return {named.replace("MODEL", "tiny").replace("VERSION", "1").replace("REGION", "byrest")
            for named in (without, path.replace("[", "").replace("]", ""))}


@pytest.mark.parametrize("route", ROUTES)
def test_route(daemon, call, tiny, region, route):
    state, note = ROUTES[route]
    port = daemon.metrics_port if route == "GET /metrics" else None
    if "/region/REGION/" in route:
        for kind in ("System", "Cuda"):
            call(f"{kind}SharedMemoryUnregister", name="byrest")
    if "/region/REGION/" in route and not route.endswith("REGION/register"):
        kind, memory = ("Cuda", {"raw_handle": handle_of(region)}) if "/cuda" in route else ("System", {"key": region})
        assert call(f"{kind}SharedMemoryRegister", name="byrest", byte_size=64, **memory)[0] == grpc.StatusCode.OK
    for path in paths_of(route):
        status, body = send(daemon, route.split()[0], path, body_of(route, tiny, region), port)
        if route.endswith("/unload"):
            assert call("RepositoryModelLoad", model_name="tiny")[0] == grpc.StatusCode.OK
        if state == "works":
            assert status == 200, f"{path}: {status} {body[:300]}"
        elif state == "refused":
            assert re.match(rf"{status}\b", note), f"{path}: {status}, and the page says {note}"
            assert json.loads(body)["error"]
        else:
            assert state == "not there" and status == 404, f"{path}: {status} {body[:300]}"


def test_a_path_that_nobody_has_is_404(daemon):
    """Unknown paths must give 404, in contrast to those that are listed as working."""
    for method, path in (("GET", "/v2/models/tiny/nothing"), ("POST", "/v2/repository/nothing")):
        assert send(daemon, method, path, {} if method == "POST" else None)[0] == 404


def test_extensions(daemon, call):
    _, answer = call("ServerMetadata")
    by_http = json.loads(send(daemon, "GET", "/v2")[1])["extensions"]
    works = {name for name, (state, _) in EXTENSIONS.items() if state == "works"}
    assert set(answer.extensions) | set(by_http) == works


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    return tmp_path_factory.mktemp("empty")


def flags_in(state, repository):
    return [flag.replace("REPOSITORY", str(repository)) for flag, (found, _) in FLAGS.items() if found == state]


def name_of(flag):
    return flag.split("=")[0]


def check(empty, *flags):
    ended = run_to_end("--check-config", f"--model-repository={empty}", *flags)
    return ended.returncode, ended.stdout, ended.stderr


def test_flags_that_work_are_taken_and_stand_in_the_help(empty):
    help_text = run_to_end("--help").stdout
    for flag in flags_in("works", empty):
        assert re.search(rf"(^|[\s,]){name_of(flag)}\b", help_text, re.MULTILINE), flag
    # Two flags for the same setting cannot be combined.
    taken = [flag for flag in flags_in("works", empty) if name_of(flag) not in ("--help", "--response-cache-byte-size")]
    assert check(empty, *taken)[0] == 0
    assert check(empty, "--response-cache-byte-size=0")[0] == 0


def test_flags_that_are_passed_over_are_told(empty):
    code, out, _ = check(empty, *flags_in("passed over", empty))
    assert code == 0
    for flag, (state, note) in FLAGS.items():
        expected = f"WARNING {name_of(flag)} is ignored: {note}\n"
        assert (expected in out) == (state == "passed over"), flag


@pytest.mark.parametrize("flag", [flag for flag, (state, _) in FLAGS.items() if state == "refused"])
def test_flags_that_are_refused_say_why(empty, flag):
    name, _, value = flag.partition("=")
    code, _, err = check(empty, flag)
    assert code == 2
    assert f"{name}: is '{value}', which is not supported by saccaded: {FLAGS[flag][1]}" in err


def test_every_flag_of_tritons_that_the_daemon_knows_has_a_row():
    sources = [ROOT / "server" / "lifecycle" / f"{name}_flags.cc" for name in ("triton", "grpc")]
    known = {f"--{name}" for path in sources for name in re.findall(r'^ +\{"([a-z0-9-]+)",', path.read_text(), re.M)}
    assert len(known) > 60
    assert known <= {name_of(flag) for flag in FLAGS}


def test_no_flag_is_said_to_be_not_there():
    """A command line for Triton is either accepted or rejected with an explanation; no flag of Triton's is unknown."""
    assert not flags_in("not there", "")


TRITON_COMMAND = """--allow-http=true --allow-grpc=true --grpc-use-ssl=false --http-thread-count=8
    --backend-config=pytorch,a=b --backend-config=pytorch,c=d --pinned-memory-pool-byte-size 268435456 --log-info 0
    --log-format=default --metrics-address=127.0.0.2 --grpc-max-connection-age=500 --id=triton"""


def test_a_command_line_of_tritons_starts_it(repository, tiny, tmp_path):
    with Daemon(repository, *TRITON_COMMAND.split(), log_folder=tmp_path) as daemon:
        daemon.await_ready()
        daemon.await_log("--http-thread-count is ignored: all ports share their threads", "Z W ")
        eventually(lambda: daemon.log().count("--backend-config is ignored") == 2, "both are told")
        assert "Z I " not in daemon.log()
        # --metrics-address gives the metrics their own address.
        with pytest.raises(urllib.error.URLError):
            daemon.get("/metrics", daemon.metrics_port)
        with urllib.request.urlopen(f"http://127.0.0.2:{daemon.metrics_port}/metrics") as answer:
            assert b"nv_inference_count" in answer.read()
        with daemon.channel() as channel:
            seen = []
            channel.subscribe(seen.append, try_to_connect=True)
            left = lambda: grpc.ChannelConnectivity.READY in seen and grpc.ChannelConnectivity.IDLE in seen[1:]
            eventually(left, "a connection that is too old is given up")

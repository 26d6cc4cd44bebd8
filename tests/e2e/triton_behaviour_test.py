"""Tests every row of docs/compatibility.md under Behaviour: cases in which servers of the protocol may differ."""

import asyncio
import concurrent.futures
import gzip
import json
import pathlib
import re
import socket
import urllib.error
import urllib.parse
import urllib.request
from typing import Optional

import grpc
import numpy
import pytest
import torch
import tritonclient.grpc
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException

from ensembles_test import step, write_ensemble
from ensembles_test import tensor as ensemble_tensor
from harness import DEADLINE_SECONDS, ROOT, Daemon, eventually, run_to_end
from messages import Inference, infer_request
from programs_test import ALLOW, AddSub, of_add_sub, sent, tensor, write

PAGE = (ROOT / "docs" / "compatibility.md").read_text()
SECTION = re.search(r"^## Behaviour\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]
CODES, TRITONS_CODES = (
    {row[0]: (row[at], int(row[at + 1])) for row in re.findall(
        r"^\| (.+?) \| ([A-Z_]+), (\d{3}) \| ([A-Z_]+), (\d{3}) \|",
        re.search(r"^## Status codes\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1], re.MULTILINE)}
    for at in (1, 3))
ROWS = {text: state for text, state in re.findall(r"^\| (.+?) \| (works|differs) \|", SECTION, re.MULTILINE)}
TESTED = set()
SPECIAL = "a b%2F+c"
EXPLICIT = ("--model-control-mode=EXPLICIT", "--load-model=*")


def row(*texts):
    """Marks the test of one or several rows of the page."""
    TESTED.update(texts)
    return lambda test: test


class Number(torch.nn.Module):
    """Fails for a text that is no number, an empty one among them."""

    def forward(self, texts: list[str]) -> list[str]:
        return [str(int(text) + 1) for text in texts]


class Half(torch.nn.Module):
    def forward(self, x):
        return x[:, :2]


class Log(torch.nn.Module):
    def forward(self, x):
        return torch.log(x)


class Slow(torch.nn.Module):
    """Takes long for a 42."""

    def forward(self, x):
        if bool((x == 42).any()):
            for _ in range(400):
                x = x + 0 * torch.rand(1000, 1000).sum()  # which no optimizer may remove
        return x


class Either(torch.nn.Module):
    """Both inputs may be missing."""

    def forward(self, x: Optional[torch.Tensor] = None, z: Optional[torch.Tensor] = None):
        y = torch.full((1, 4), 7.0)
        if x is not None:
            y = x
        if z is not None:
            y = y + z
        return y


class Two(torch.nn.Module):
    def forward(self, x):
        return x + 1, x * 2


class Scores(torch.nn.Module):
    """Integers, in the shape of the input."""

    def forward(self, x):
        return x.to(torch.int32)


def of_one(data_type="FP32", dims="[ 4 ]", given=None, more=""):
    return tensor("input", "x", data_type, dims) + tensor("output", "y", given or data_type, dims, more)


def write_ensembles(root):
    write(root, "scores", Scores(), of_one(given="INT32", dims="[ 3 ]", more="label_filename: 'classes.txt'"))
    (root / "scores" / "classes.txt").write_text("cat\n\nowl\n")
    picture, scores = ensemble_tensor("a", [3]), ensemble_tensor("b", [3], "TYPE_INT32")
    steps = [step("scores", {"x": "a"}, {"y": "b"})]
    write_ensemble(root, "labelled", [picture], [scores], steps)
    named = scores.replace("}", 'label_filename: "own.txt" }')
    write_ensemble(root, "named", [picture], [named], steps)
    (root / "named" / "own.txt").write_text("one\ntwo\nthree\n")
    write_ensemble(root, "whole", [picture], [scores], steps, max_batch_size=0)
    square, column = ensemble_tensor("a", [1, 3]), ensemble_tensor("b", [3, 1], "TYPE_INT32")
    reshaped = [one.replace("}", "reshape { shape: [ 3 ] } }") for one in (square, column)]
    write_ensemble(root, "reshaped", reshaped[:1], reshaped[1:], steps)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    write(root, "add_sub", AddSub(), of_add_sub("FP32") + "version_policy { all {} }")
    (root / "add_sub" / "3").mkdir()
    (root / "add_sub" / "3" / "model.pt").write_bytes((root / "add_sub" / "1" / "model.pt").read_bytes())
    write(root, "number", Number(), of_one("STRING", "[ 1 ]"))
    write(root, "half", Half(), of_one())
    strict = "parameters { key: 'strict_output_shapes' value { string_value: 'true' } }"
    write(root, "strict", Half(), of_one() + strict)
    write(root, "log", Log(), of_one())
    write(root, "free", Log(), of_one(dims="[ -1 ]"))
    write(root, "unknown", Log(), of_one() + "parameters { key: 'colour' value { string_value: 'red' } }")
    for name in ("unused", "quiet"):
        write(root, name, Log(), of_one())
    # On a busy machine it takes a while until an idle instance's thread runs; the slow pass takes longer.
    for name, policy in (("slow", "max_queue_size: 2 default_timeout_microseconds: 250000"),
                         ("patient", "allow_timeout_override: true")):
        # The delay and the free dimension make the model's own thread compute requests, not the network's.
        batching = f"max_queue_delay_microseconds: 20000 default_queue_policy {{ {policy} }}"
        write(root, name, Slow(), of_one(dims="[ -1 ]") + f"dynamic_batching {{ {batching} }}", max_batch_size=2)
    write(root, "bounded", Slow(), of_one(dims="[ -1 ]") + "dynamic_batching { max_queue_delay_microseconds: 20000 "
          "default_queue_policy { max_queue_size: 1 } }", max_batch_size=4)
    write(root, "large", Log(), of_one(dims="[ 1 ]"), max_batch_size=65536)
    optional = [tensor("input", name, "FP32", "[ 4 ]", "optional: true") for name in "xz"]
    write(root, "either", Either(), "".join(optional) + tensor("output", "y", "FP32", "[ 4 ]")
          + "dynamic_batching { max_queue_delay_microseconds: 20000 }")
    write(root, "cut", Two(), tensor("input", "x", "FP32", "[ 3 ]") + tensor("output", "y", "FP32", "[ 3 ]")
          + tensor("output", "z", "FP32", "[ 3 ]", "label_filename: 'classes.txt'") + "response_cache { enable: true }")
    (root / "cut" / "classes.txt").write_text("cat\ndog\nowl\n")
    write(root, "cached", Log(), of_one() + "response_cache { enable: true }")
    write(root, SPECIAL, Log(), of_one())
    write(root, "step", Log(), of_one(dims="[ 3 ]"))
    write_ensemble(root, "dependent", [ensemble_tensor("a", [3])], [ensemble_tensor("b", [3])],
                   [step("step", {"x": "a"}, {"y": "b"})])
    write_ensembles(root)
    return root


FLAGS = (ALLOW, "--id=triton", "--cache-config=local,size=1048576", "--allow-shared-memory", *EXPLICIT)


@pytest.fixture(scope="module")
def daemon(models, tmp_path_factory):
    with Daemon(models, *FLAGS, "--latency-buckets=0.25,30", log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture(scope="module", params=["daemon", "triton"])
def codes(request, models, daemon, tmp_path_factory):
    """A daemon, a client of it, and the status codes that it answers with."""
    running, expected = daemon, CODES
    if request.param == "triton":
        flags = (*FLAGS[:4], EXPLICIT[0], "--triton-status-codes", "--load-model=log", "--load-model=unused",
                 "--load-model=slow")
        running, expected = Daemon(models, *flags, log_folder=tmp_path_factory.mktemp("log")), TRITONS_CODES
        request.addfinalizer(running.close)
        running.await_ready()
    with tritonclient.grpc.InferenceServerClient(running.grpc_address) as made:
        yield running, made, expected


@pytest.fixture(scope="module")
def client(daemon):
    with tritonclient.grpc.InferenceServerClient(daemon.grpc_address) as made:
        yield made


def ask(daemon, path, body=None, **headers):
    """(status, headers, body) of a request over HTTP."""
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.http_port}{path}", data=data,
                                     headers={name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def as_json(shape, data, datatype="FP32"):
    return {"inputs": [{"name": "x", "datatype": datatype, "shape": shape, "data": data}]}


def data_of(daemon, model, body):
    status, _, answer = ask(daemon, f"/v2/models/{model}/infer", body)
    assert status == 200, answer
    return json.loads(answer)["outputs"][0]["data"]


def infer(client, model, array, name="x", data_type="FP32", **wanted):
    outputs = [tritonclient.grpc.InferRequestedOutput(output, **options) for output, options in wanted.items()]
    return client.infer(model, [sent(name, array, data_type)], outputs=outputs or None)


def test_every_row_is_tested():
    assert set(ROWS) | set(CODES) == TESTED and ROWS and CODES


@row("`Accept-Encoding` over REST")
def test_only_answers_to_inferences_are_compressed(daemon):
    long = as_json([1, 1000], [[1.0] * 1000])
    status, headers, body = ask(daemon, "/v2/models/free/infer", long, Accept_Encoding="gzip")
    assert (status, headers["Content-Encoding"]) == (200, "gzip") and b"log" not in body
    assert len(json.loads(gzip.decompress(body))["outputs"][0]["data"]) == 1000
    for path, request, expected in (("/v2/models/add_sub", None, 200), ("/v2/models/stats", None, 200),
                                    ("/v2/models/add_sub/config", None, 200), ("/v2/repository/index", {}, 200),
                                    (f"/v2/models/{'z' * 300}/infer", long, 404)):
        status, headers, body = ask(daemon, path, request, Accept_Encoding="gzip, deflate")
        assert (status, headers["Content-Encoding"]) == (expected, None) and len(body) >= 256, path
        json.loads(body)

    async def facts():
        async with tritonclient.http.aio.InferenceServerClient(f"127.0.0.1:{daemon.http_port}") as client:
            return (await client.get_model_metadata("add_sub"), await client.get_model_config("add_sub"),
                    await client.get_inference_statistics(), await client.get_model_repository_index())

    metadata, config, statistics, index = asyncio.run(facts())
    assert metadata["name"] == config["name"] == "add_sub"
    assert {one["name"] for one in statistics["model_stats"]} == {one["name"] for one in index}


@row("a program that fails on zeros or empty texts")
def test_a_warm_up_that_fails_is_a_warning(daemon, client):
    answer = infer(client, "number", numpy.array([[b"41"]], dtype=numpy.object_), data_type="BYTES")
    assert answer.as_numpy("y").tolist() == [[b"42"]]
    told = r"warm-up failed.*number.*warming up with 1 rows of zeros: "
    eventually(lambda: re.search(told, daemon.log()), "the log tells it")


@row("an unknown key in `parameters` of a program")
def test_unknown_parameters_are_ignored(daemon, client):
    assert infer(client, "unknown", numpy.ones((1, 4), numpy.float32)).as_numpy("y").tolist() == [[0] * 4]
    daemon.await_log("parameter 'colour' is ignored")


@row("labels of an ensemble's output")
def test_labels_of_ensembles(client):
    array = numpy.array([[1, 2, 9]], numpy.float32)
    for model, expected in (("labelled", [b"9:2:owl", b"2:1", b"1:0:cat"]),
                            ("named", [b"9:2:three", b"2:1:two", b"1:0:one"])):
        assert infer(client, model, array, "a", b={"class_count": 3}).as_numpy("b").tolist() == [expected]


@row("`reshape` of an ensemble's inputs and outputs")
def test_ensembles_reshape(client):
    answer = infer(client, "reshaped", numpy.array([[[1, 2, 9]], [[3, 4, 5]]], numpy.float32), "a")
    assert answer.as_numpy("b").tolist() == [[[1], [2], [9]], [[3], [4], [5]]]


@row("an ensemble with `max_batch_size: 0` beside steps that batch")
def test_ensembles_without_a_batch(client):
    array = numpy.array([1, 2, 9], numpy.float32)
    assert infer(client, "whole", array, "a").as_numpy("b").tolist() == [1, 2, 9]
    answer = infer(client, "whole", array, "a", b={"class_count": 1})
    assert answer.as_numpy("b").tolist() == [b"9:2:owl"]


def test_the_check_agrees(models):
    checked = run_to_end("--check-config", f"--model-repository={models}", ALLOW)
    assert checked.returncode == 0, checked.stdout


@row("metadata of a model without a version")
def test_metadata_list_all_versions(daemon, client):
    assert list(client.get_model_metadata("add_sub").versions) == ["1", "3"]
    assert list(client.get_model_metadata("add_sub", "1").versions) == ["1"]
    assert json.loads(ask(daemon, "/v2/models/add_sub")[2])["versions"] == ["1", "3"]
    assert json.loads(ask(daemon, "/v2/models/add_sub/versions/3")[2])["versions"] == ["3"]


@row("an output of a program with another shape than its configuration")
def test_shapes_of_outputs(daemon, client):
    array = numpy.array([[1, 2, 3, 4]], numpy.float32)
    for _ in range(2):
        assert infer(client, "half", array).as_numpy("y").tolist() == [[1, 2]]
    told = "output 'y': the program returned [1,2], but the configuration says FP32 [-1,4]"
    daemon.await_log(told)
    assert daemon.log().count(told) == 1
    with pytest.raises(InferenceServerException) as error:
        infer(client, "strict", array)
    assert error.value.status() == "StatusCode.INTERNAL" and "the program returned FP32 [1,2]" in str(error.value)


@row("nesting of `data` in JSON")
def test_nesting_does_not_matter(daemon):
    for data in ([1, 1, 1, 1], [[1, 1], [1, 1]], [[[1, 1, 1]], 1], [[1, 1, 1, 1]]):
        assert data_of(daemon, "log", as_json([1, 4], data)) == [0, 0, 0, 0]


@row("a body without JSON for an input with a free dimension")
def test_a_raw_body(daemon):
    raw = numpy.ones(3, numpy.float32).tobytes()
    status, headers, body = ask(daemon, "/v2/models/free/infer", raw, Inference_Header_Content_Length="0",
                                Content_Type="application/octet-stream")
    assert status == 200, body
    described = json.loads(body[: int(headers["Inference-Header-Content-Length"])])
    assert described["outputs"][0]["shape"] == [1, 3]


@row("NaN and infinities in JSON")
def test_numbers_that_are_not_finite(daemon):
    array = numpy.array([[0, -1, 1, numpy.inf]], numpy.float32)
    data = data_of(daemon, "log", as_json([1, 4], [0, -1, 1, "Infinity"]))
    assert data == ["-Infinity", "NaN", 0, "Infinity"]
    given = tritonclient.http.InferInput("x", [1, 4], "FP32")
    given.set_data_from_numpy(array)
    with tritonclient.http.InferenceServerClient(f"127.0.0.1:{daemon.http_port}") as client:
        wanted = tritonclient.http.InferRequestedOutput("y", binary_data=False)
        answer = client.infer("log", [given], outputs=[wanted]).as_numpy("y")
    with numpy.errstate(all="ignore"):
        assert numpy.array_equal(answer, numpy.log(array), equal_nan=True)


@row("BYTES that are cut off")
def test_texts_that_are_cut_off(daemon):
    failures = lambda: daemon.metrics().total("nv_inference_request_failure", model="number", reason="BACKEND")
    before = failures()
    with daemon.channel() as channel:
        for raw in (b"\x05\0\0\0ab", b"", b"\x01\0"):
            with pytest.raises(grpc.RpcError) as error:
                request = infer_request("number", [1, 1], raw, datatype="BYTES", name="x")
                Inference(channel).model_infer(request, timeout=DEADLINE_SECONDS)
            assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT and "input 'x'" in error.value.details()
    assert failures() == before


@row("classes of an integer output")
def test_classes_of_integers(client):
    answer = infer(client, "scores", numpy.array([[5, 7, -2]], numpy.float32), y={"class_count": 2})
    assert answer.as_numpy("y").tolist() == [[b"7:1", b"5:0:cat"]]


@row("an empty line in a file of labels")
def test_an_empty_label(client):
    answer = infer(client, "scores", numpy.array([[1, 2, 9]], numpy.float32), y={"class_count": 3})
    assert answer.as_numpy("y").tolist() == [[b"9:2:owl", b"2:1", b"1:0:cat"]]


@row("parameters of sequences that name none")
def test_a_sequence_that_is_none(daemon, client):
    array = numpy.ones((1, 4), numpy.float32)
    for none in ({"sequence_id": 0, "sequence_start": False}, {"sequence_id": "", "sequence_end": False}):
        assert data_of(daemon, "log", {**as_json([1, 4], [1, 1, 1, 1]), "parameters": none}) == [0] * 4
    for some in ({"sequence_id": 7}, {"sequence_id": "a"}, {"sequence_start": True}):
        status, _, body = ask(daemon, "/v2/models/log/infer", {**as_json([1, 4], [1] * 4), "parameters": some})
        assert status == 501 and b"sequences are not supported" in body
    assert client.infer("log", [sent("x", array, "FP32")], sequence_id=0).as_numpy("y").tolist() == [[0] * 4]


@row("statistics of requests that are wrong")
def test_wrong_requests_in_the_statistics(daemon, client):
    for _ in range(2):
        with pytest.raises(InferenceServerException, match="the shape is"):
            infer(client, "cached", numpy.zeros((1, 3), numpy.float32))
    stats = client.get_inference_statistics("cached").model_stats[0].inference_stats
    assert stats.fail.count == stats.cache_miss.count == stats.cache_hit.count == stats.success.count == 0
    assert daemon.metrics().total("saccade_requests_total", model="cached", code="INVALID_ARGUMENT") == 2


@row("statistics of answers from the cache")
def test_cached_answers_in_the_statistics(client):
    array = numpy.ones((1, 4), numpy.float32)
    before = client.get_inference_statistics("cached").model_stats[0].inference_stats
    for _ in range(3):
        assert infer(client, "cached", array).as_numpy("y").tolist() == [[0] * 4]
    after = client.get_inference_statistics("cached").model_stats[0]
    stats = after.inference_stats
    assert (stats.cache_miss.count, stats.cache_hit.count, stats.success.count - before.success.count) == (1, 2, 3)
    for stage in ("queue", "compute_input", "compute_infer", "compute_output"):
        assert getattr(stats, stage).count - getattr(before, stage).count == 1, stage
    assert after.inference_count == after.execution_count == 1


@row("an ensemble in the index whose step is unloaded")
def test_an_ensemble_without_its_step(daemon, client):
    state = lambda: {one.name: (one.state, one.reason) for one in client.get_model_repository_index().models}["dependent"]
    ready = lambda: {one["name"] for one in json.loads(ask(daemon, "/v2/repository/index", {"ready": True})[2])}
    assert state() == ("READY", "") and "dependent" in ready()
    client.unload_model("step")
    assert state()[0] == "UNAVAILABLE" and "step of model 'step'" in state()[1]
    assert "dependent" not in ready()
    client.load_model("step")
    assert state() == ("READY", "")


@row("spaces, `%` and `+` in a model's name")
def test_special_names(daemon, client):
    assert infer(client, SPECIAL, numpy.ones((1, 4), numpy.float32)).as_numpy("y").tolist() == [[0] * 4]
    path = f"/v2/models/{urllib.parse.quote(SPECIAL, safe='')}"
    assert json.loads(ask(daemon, path)[2])["name"] == SPECIAL
    assert ask(daemon, f"{path}/infer", as_json([1, 4], [1] * 4))[0] == 200
    with tritonclient.http.InferenceServerClient(f"127.0.0.1:{daemon.http_port}") as over_http:
        assert over_http.is_model_ready(SPECIAL)


@row("FP32 and FP64 in JSON")
def test_real_numbers_have_a_point(daemon):
    body = ask(daemon, "/v2/models/log/infer", as_json([1, 4], [1, 1, 1, 1]))[2]
    assert b'"data":[0.0,0.0,0.0,0.0]' in body


def exchange(daemon, sent):
    """What the daemon answers to bytes on a connection of their own."""
    with socket.create_connection(("127.0.0.1", daemon.http_port), timeout=DEADLINE_SECONDS) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@row("GET with a body, and up to four empty lines before a request")
def test_odd_requests(daemon):
    get = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n"
    answer = exchange(daemon, b"\r\n" * 4 + get + b"Content-Length: 2\r\n\r\n{}" + get + b"\r\n")
    assert answer.count(b"HTTP/1.1 200 OK") == answer.count(b'{"live":true}') == 2


@row("more than 100 headers")
def test_many_headers(daemon):
    many = lambda count: b"".join(b"X-%d: a\r\n" % number for number in range(count))
    get = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n"
    assert exchange(daemon, get + many(120) + b"\r\n").startswith(b"HTTP/1.1 200 ")
    assert exchange(daemon, get + many(200) + b"\r\n").startswith(b"HTTP/1.1 431 ")


@row("a message of more than 64 MiB")
def test_large_messages(daemon):
    head = b"POST /v2/models/log/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % ((64 << 20) + 1)
    answer = exchange(daemon, head)
    assert answer.startswith(b"HTTP/1.1 413 ") and b"--max-message-bytes" in answer


@row("connections without a request")
def test_idle_connections(models, tmp_path):
    assert re.search("--idle-timeout-seconds S=300 ", run_to_end("--help").stdout)
    with Daemon(models, ALLOW, "--idle-timeout-seconds=0.2", *EXPLICIT[:1], log_folder=tmp_path) as daemon:
        daemon.await_ports()
        with socket.create_connection(("127.0.0.1", daemon.http_port), timeout=DEADLINE_SECONDS) as connection:
            assert connection.recv(1) == b""
    assert "up to a tenth longer" in " ".join(run_to_end("--help").stdout.split())


@row("values of flags")
def test_values_of_flags(models):
    flags = ("--exit-on-error=TRUE", "--log-info=0", "--log-verbose=true", "--allow-http=1", "--grpc-use-ssl=0",
             "--http-port=1", "--http-port=2", "--model-control-mode=Explicit")
    checked = run_to_end("--check-config", f"--model-repository={models}", ALLOW, *flags)
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stdout


@row("the server's name")
def test_the_servers_name(daemon, client):
    assert client.get_server_metadata().name == "triton"
    assert json.loads(ask(daemon, "/v2")[2])["name"] == "triton"


@row("the body of health over REST")
def test_health_has_a_body(daemon):
    for path, expected in (("/v2/health/live", {"live": True}), ("/v2/health/ready", {"ready": True}),
                           ("/v2/models/log/ready", {"name": "log", "ready": True})):
        status, headers, body = ask(daemon, path)
        assert (status, headers["Content-Type"], json.loads(body)) == (200, "application/json", expected)


def codes_of(client, daemon, over_grpc, path, body=None):
    """(code, status) of a call that must fail over both protocols."""
    with pytest.raises(InferenceServerException) as error:
        over_grpc(client)
    return error.value.status().removeprefix("StatusCode."), ask(daemon, path, body)[0]


def load_of(name):
    return f"/v2/repository/models/{name}/load"


UNLOADED = "a request for a model that was unloaded, without a version"
OF_REPOSITORY = ("statistics of an unknown model", "loading an unknown model", "unloading an unknown model",
                 "loading a model that cannot be loaded", UNLOADED)


@row(*OF_REPOSITORY)
def test_status_codes_of_the_repository(codes):
    daemon, client, expected = codes
    calls = (
        (lambda c: c.get_inference_statistics("none"), "/v2/models/none/stats"),
        (lambda c: c.load_model("none"), load_of("none"), {}),
        (lambda c: c.unload_model("none"), "/v2/repository/models/none/unload", {}),
        (lambda c: c.load_model("log", config="{}"), load_of("log"), {"parameters": {"config": "{}"}}),
        (lambda c: infer(c, "unused", array), "/v2/models/unused/infer", as_json([1, 4], [1] * 4)),
    )
    client.unload_model("unused")
    array = numpy.ones((1, 4), numpy.float32)
    for case, call in zip(OF_REPOSITORY, calls):
        assert codes_of(client, daemon, *call) == expected[case], case
    client.load_model("unused")


TWICE = "registering a region of shared memory twice"


@row(TWICE)
def test_status_codes_of_shared_memory(codes):
    daemon, client, expected = codes
    path = pathlib.Path("/dev/shm/saccade_behaviour_test")
    path.write_bytes(bytes(64))
    try:
        client.register_system_shared_memory("r", "/" + path.name, 64)
        found = codes_of(client, daemon, lambda c: c.register_system_shared_memory("r", "/" + path.name, 64),
                         "/v2/systemsharedmemory/region/r/register", {"key": "/" + path.name, "byte_size": 64})
        assert found == expected[TWICE]
    finally:
        client.unregister_system_shared_memory("r")
        path.unlink()


OF_QUEUE = ("a request that finds the model's queue full", "a request that waits longer than its queue's timeout")


def while_busy(daemon, client, model, calls):
    """The results of `calls`, all made while a pass of the model runs."""
    with concurrent.futures.ThreadPoolExecutor(1 + len(calls)) as pool:
        running = pool.submit(infer, client, model, numpy.full((1, 4), 42, numpy.float32))
        eventually(lambda: daemon.metrics().total("saccade_inflight_requests") == 1, "the slow request runs")
        results = [future.result() for future in [pool.submit(call) for call in calls]]
        running.result()
    return results


@row(*OF_QUEUE)
def test_status_codes_of_the_queue(codes):
    """While a pass runs, two requests wait and time out; the others find the queue full."""
    daemon, client, expected = codes
    array = numpy.ones((2, 4), numpy.float32)
    call = lambda: codes_of(client, daemon, lambda c: infer(c, "slow", array), "/v2/models/slow/infer",
                            as_json([2, 4], [1] * 8))
    found = set()

    def all_met():
        # On a busy machine the calls may come too far apart to find two others in the queue.
        found.update(while_busy(daemon, client, "slow", [call] * 4))
        assert {pair[0] for pair in found} <= {expected[case][0] for case in OF_QUEUE}, found
        assert {pair[1] for pair in found} <= {expected[case][1] for case in OF_QUEUE}, found
        return all(expected[case][at] in {pair[at] for pair in found} for case in OF_QUEUE for at in (0, 1))

    eventually(all_met, "each of both is the answer over both protocols")


@row("`max_queue_size` of a queue policy")
def test_a_queues_bound_counts_requests(daemon, client):
    """One request waits, though the bound is smaller than its batch; a second one finds the queue full."""
    array = numpy.ones((3, 4), numpy.float32)

    def call():
        try:
            return infer(client, "bounded", array).as_numpy("y").tolist() == array.tolist()
        except InferenceServerException as error:
            return error.message()

    def one_is_refused():
        # On a busy machine the second call may come when the pass is over.
        found = while_busy(daemon, client, "bounded", [call] * 2)
        assert True in found, found
        return any("1 of 1 requests (max_queue_size) are queued" in str(one) for one in found)

    eventually(one_is_refused, "the second one finds the queue full")


@row("`max_batch_size` above 8192")
def test_a_large_batch(client):
    array = numpy.ones((65536, 1), numpy.float32)
    assert not infer(client, "large", array).as_numpy("y").any()
    with pytest.raises(InferenceServerException, match="1 to 65536"):
        infer(client, "large", numpy.ones((65537, 1), numpy.float32))


@row("a program whose inputs are all optional")
def test_inputs_that_are_all_optional(client):
    ones = numpy.ones((2, 4), numpy.float32)
    call = lambda *names: client.infer("either", [sent(name, ones, "FP32") for name in names]).as_numpy("y").tolist()
    assert call("x") == ones.tolist() and call("z") == (ones + 7).tolist() and call("x", "z") == (2 * ones).tolist()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = [future.result() for future in [pool.submit(call) for _ in range(16)]]
    assert answers == [[[7, 7, 7, 7]]] * 16


@row("cached answers with other named outputs or `class_count`")
def test_answers_are_cut_from_one_entry(daemon, client):
    array = numpy.array([[1, 5, 3]], numpy.float32)
    stats = lambda: client.get_inference_statistics("cut").model_stats[0].inference_stats
    assert infer(client, "cut", array, y={}).as_numpy("y").tolist() == [[2, 6, 4]]
    answer = infer(client, "cut", array)
    assert answer.as_numpy("z").tolist() == [[2, 10, 6]] and answer.as_numpy("y").tolist() == [[2, 6, 4]]
    for count in (1, 2):
        answer = infer(client, "cut", array, z={"class_count": count})
        assert answer.as_numpy("z").tolist() == [[b"10.000000:1:dog", b"6.000000:2:owl"][:count]]
        assert answer.as_numpy("y") is None
    assert (stats().cache_miss.count, stats().cache_hit.count) == (1, 3)
    with pytest.raises(InferenceServerException, match="no output is named"):
        infer(client, "cut", array, none={})
    assert daemon.metrics().total("saccade_response_cache_answers") >= 1


@row("sequences (`sequence_batching`)", "decoupled answers (`model_transaction_policy`)")
def test_what_is_refused_says_so(daemon, tmp_path):
    write(tmp_path, "tracker", Log(), of_one() + "sequence_batching { direct {} }")
    write(tmp_path, "several", Log(), of_one() + "model_transaction_policy { decoupled: true }")
    checked = run_to_end("--check-config", f"--model-repository={tmp_path}", ALLOW)
    assert checked.returncode == 1
    assert "sequences are not supported" in checked.stdout and "exactly one answer" in checked.stdout
    body = {**as_json([1, 4], [1] * 4), "parameters": {"sequence_id": 7, "sequence_start": True}}
    assert ask(daemon, "/v2/models/log/infer", body)[0] == 501


@row("buckets of histograms")
def test_buckets(daemon):
    assert ask(daemon, "/v2/models/log/infer", as_json([1, 4], [1] * 4))[0] == 200
    text = daemon.get("/metrics", daemon.metrics_port)[2]
    for name in ("saccade_request_duration_seconds", "saccade_stage_duration_seconds"):
        bounds = re.findall(rf'^{name}_bucket{{[^}}]*model="log"[^}}]*le="([^"]+)"', text, re.MULTILINE)
        assert set(bounds) == {"0.25", "30", "+Inf"}


@row("unregistering a region of shared memory that is in use")
def test_a_region_in_use(daemon, client):
    path = pathlib.Path("/dev/shm/saccade_behaviour_test")
    path.write_bytes(bytes(16))
    try:
        client.register_system_shared_memory("used", "/" + path.name, 16)
        output = tritonclient.grpc.InferRequestedOutput("y")
        output.set_shared_memory("used", 16)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            slow = sent("x", numpy.full((1, 4), 42, numpy.float32), "FP32")
            running = pool.submit(client.infer, "slow", [slow], outputs=[output])
            eventually(lambda: daemon.metrics().total("saccade_inflight_requests") == 1, "the slow request runs")
            client.unregister_system_shared_memory("used")
            running.result()
        assert numpy.frombuffer(path.read_bytes(), numpy.float32).tolist() == [42] * 4
        assert not client.get_system_shared_memory_status().regions
    finally:
        path.unlink()


@row("metrics of a model that was never asked")
def test_metrics_of_unasked_models(daemon):
    text = daemon.get("/metrics", daemon.metrics_port)[2]
    lines = lambda model: [line for line in text.splitlines() if f'model="{model}"' in line]
    assert not any("_bucket" in line for line in lines("quiet"))
    assert any("nv_inference_count" in line for line in lines("quiet"))
    assert ask(daemon, "/v2/models/log/infer", as_json([1, 4], [1] * 4))[0] == 200
    assert any("_bucket" in line for line in daemon.get("/metrics", daemon.metrics_port)[2].splitlines()
               if 'model="log"' in line)


@row("`allow_timeout_override` without a default timeout")
def test_a_timeout_without_a_default(daemon, client):
    def call():
        with pytest.raises(InferenceServerException) as error:
            client.infer("patient", [sent("x", numpy.ones((1, 4), numpy.float32), "FP32")], timeout=100_000)
        return error.value.status()

    assert while_busy(daemon, client, "patient", [call]) == ["StatusCode.DEADLINE_EXCEEDED"]

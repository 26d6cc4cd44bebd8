"""Tests REST with third-party clients: Triton's own, and curl."""

import asyncio
import concurrent.futures
import json
import statistics
import subprocess
import time

import numpy
import pytest
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException

import pictures
from tiny_models import assert_close


@pytest.fixture(scope="module")
def client(daemon):
    with triton.InferenceServerClient(f"127.0.0.1:{daemon.http_port}", concurrency=8) as made:
        yield made


def tensor_input(array, binary=True):
    made = triton.InferInput("image", list(array.shape), "FP32")
    made.set_data_from_numpy(array, binary_data=binary)
    return made


def logits_output(binary=True):
    return triton.InferRequestedOutput("logits", binary_data=binary)


def curl(daemon, path, *arguments, data=b""):
    """Runs curl; returns (status, body)."""
    command = ["curl", "-sS", "--max-time", "30", "-w", "\n%{http_code}", *arguments]
    done = subprocess.run(
        [*command, f"http://127.0.0.1:{daemon.http_port}{path}"], input=data, capture_output=True, check=True
    )
    body, _, status = done.stdout.rpartition(b"\n")
    return int(status), body


def request_json(array, **more):
    tensor = {"name": "image", "shape": list(array.shape), "datatype": "FP32", "data": array.tolist()}
    return json.dumps({"inputs": [tensor], **more}).encode()


def test_health(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("tiny")
    assert client.is_model_ready("tiny", "1")
    assert not client.is_model_ready("tiny", "7")
    assert not client.is_model_ready("no_such_model")


def test_metadata(client, tiny):
    server = client.get_server_metadata()
    assert server["name"] == "saccade"
    assert "binary_tensor_data" in server["extensions"]
    assert client.get_model_metadata("tiny", "1") == {
        "name": "tiny",
        "versions": ["1"],
        "platform": "saccade",
        "inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 3, tiny.height, tiny.width]}],
        "outputs": [{"name": "logits", "datatype": "FP32", "shape": [-1, tiny.classes]}],
    }


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False])
def test_tensors_in_logits_out(client, tiny, binary_in, binary_out):
    batch = tiny.random_batch(3, seed=7)
    answer = client.infer(
        "tiny", [tensor_input(batch, binary_in)], outputs=[logits_output(binary_out)], request_id="r", timeout=20_000_000
    )
    assert answer.get_response()["id"] == "r"
    assert answer.get_response()["model_version"] == "1"
    assert_close(answer.as_numpy("logits"), tiny.logits(batch))


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_compressed_both_ways(client, tiny, coding):
    batch = tiny.random_batch(8, seed=8)
    answer = client.infer(
        "tiny", [tensor_input(batch)], outputs=[logits_output(False)],
        request_compression_algorithm=coding, response_compression_algorithm=coding,
    )
    assert_close(answer.as_numpy("logits"), tiny.logits(batch))


@pytest.mark.parametrize("shape", [[2], [2, 1]])
def test_encoded_pictures(client, tiny, shape):
    sent = [pictures.pixels(seed, tiny.resize, tiny.resize) for seed in (10, 11)]
    made = triton.InferInput("image", shape, "BYTES")
    encoded = numpy.array([pictures.encoded(picture) for picture in sent], dtype=numpy.object_)
    made.set_data_from_numpy(encoded.reshape(shape))
    answer = client.infer("tiny", [made], model_version="1")
    assert_close(answer.as_numpy("logits"), tiny.logits(tiny.prepared(sent)))


@pytest.mark.parametrize("binary", [True, False])
def test_classification(client, tiny, binary):
    batch = tiny.random_batch(2, seed=9)
    wanted = triton.InferRequestedOutput("logits", binary_data=binary, class_count=2)
    answer = client.infer("tiny", [tensor_input(batch)], outputs=[wanted]).as_numpy("logits")
    best = [entry[0].decode() if binary else entry[0] for entry in answer]
    assert [int(text.split(":")[1]) for text in best] == tiny.logits(batch).argmax(axis=1).tolist()


def test_many_at_once_each_gets_its_own_answer(client, tiny):
    batches = [tiny.random_batch(1, seed=100 + number) for number in range(32)]
    asked = [client.async_infer("tiny", [tensor_input(batch)]) for batch in batches]
    for batch, answer in zip(batches, asked):
        assert_close(answer.get_result(timeout=20).as_numpy("logits"), tiny.logits(batch))


def test_asyncio(daemon, tiny):
    batches = [tiny.random_batch(1, seed=200 + number) for number in range(8)]

    async def ask():
        async with triton_aio.InferenceServerClient(f"127.0.0.1:{daemon.http_port}") as client:
            assert await client.is_server_ready()
            return await asyncio.gather(*(client.infer("tiny", [tensor_input(batch)]) for batch in batches))

    for batch, answer in zip(batches, asyncio.run(ask())):
        assert_close(answer.as_numpy("logits"), tiny.logits(batch))


def test_requests_on_a_kept_connection_do_not_stall(client, tiny):
    inputs = [tensor_input(tiny.random_batch(1, seed=1))]
    seconds = []
    for _ in range(120):
        begin = time.perf_counter()
        client.infer("tiny", inputs)
        seconds.append(time.perf_counter() - begin)
    # Every wait for a delayed TCP acknowledgement would take 40 ms. The kernel acknowledges a connection's first packets at
    # once. On a busy machine only some calls are fast.
    assert statistics.quantiles(seconds[20:], n=10)[0] < 0.03


def test_curl_with_json(daemon, tiny):
    batch = tiny.random_batch(2, seed=3)
    for more in (["-H", "Transfer-Encoding: chunked"], ["-H", "Expect: 100-continue"], ["--http1.0"], ["--compressed"]):
        status, body = curl(daemon, "/v2/models/tiny/versions/1/infer", "--data-binary", "@-", *more,
                            data=request_json(batch, id="c"))
        assert status == 200, body
        answer = json.loads(body)
        assert answer["id"] == "c"
        assert answer["outputs"][0]["shape"] == [2, tiny.classes]
        assert_close(numpy.array(answer["outputs"][0]["data"], numpy.float32).reshape(2, -1), tiny.logits(batch))


def test_a_tensor_without_json(daemon, tiny):
    batch = tiny.random_batch(2, seed=4)
    status, body = curl(daemon, "/v2/models/tiny/infer", "--data-binary", "@-", "-H",
                        "Inference-Header-Content-Length: 0", data=batch.tobytes())
    assert status == 200, body
    assert_close(numpy.frombuffer(body[-2 * 4 * tiny.classes:], numpy.float32).reshape(2, -1), tiny.logits(batch))


@pytest.mark.parametrize(
    "path, arguments, status, words",
    [
        ("/v2/models/none/infer", ["-d", '{"inputs":[]}'], 404, "none"),
        ("/v2/models/none", [], 404, "none"),
        ("/v2/models/tiny/versions/9", [], 404, "version"),
        ("/v2/models/tiny/versions/x", [], 400, "positive integer"),
        ("/v2/models/tiny/generate", ["-d", "{}"], 404, "no such path"),
        ("/v2/models/tiny/infer", [], 405, "use POST"),
        ("/v2/models/tiny/infer", ["-X", "POST"], 400, "not valid JSON"),
        ("/v2/models/tiny/infer", ["-d", "{}"], 400, "input"),
        ("/v2/models/tiny/infer", ["-d", '{"inputs":[{"name":"image","datatype":"FP32","shape":[1],"data":[1e39]}]}'],
         400, "element 0 is 1e+39"),
        ("/v2/models/tiny/infer", ["-d", '{"inputs":[{"name":"image","datatype":"BYTES","shape":[1],"data":["x"]}]}'],
         400, "picture"),
        ("/v2/models/tiny/infer", ["-d", '{"parameters":{"sequence_id":3}}'], 501, "sequences"),
        ("/v2/models/tiny/infer", ["-d", "x", "-H", "Content-Encoding: br"], 415, "gzip"),
        ("/v2/models/tiny/infer", ["-d", "{}", "-H", "Content-Type: text/plain"], 415, "application/octet-stream"),
        ("/v2/repository/index", ["-d", "{}", "-H", "Content-Type: text/plain"], 415, "application/json"),
        # A browser's form; curl's own is JSON that calls itself one.
        ("/v2/repository/index", ["-d", "{}", "-H", "Sec-Fetch-Site: same-origin"], 415, "application/json"),
        ("/v2/models/tiny/infer", ["-d", "no gzip", "-H", "Content-Encoding: gzip"], 400, "not gzip"),
    ],
)
def test_errors_are_json(daemon, path, arguments, status, words):
    got, body = curl(daemon, path, *arguments)
    assert got == status, body
    error = json.loads(body)
    assert list(error) == ["error"]
    assert words in error["error"]


def test_errors_reach_tritons_client(client, tiny):
    wrong = triton.InferInput("image", [1, 2], "FP32")
    wrong.set_data_from_numpy(numpy.zeros([1, 2], numpy.float32))
    with pytest.raises(InferenceServerException) as error:
        client.infer("tiny", [wrong])
    assert error.value.status() == "400"
    assert "image" in error.value.message()
    with pytest.raises(InferenceServerException) as error:
        client.infer("tiny", [tensor_input(tiny.random_batch(1, seed=1))], outputs=[triton.InferRequestedOutput("nothing")])
    assert "nothing" in error.value.message()


def test_requests_are_counted(daemon, client, tiny):
    before = daemon.metrics().total("saccade_requests_total", model="tiny", protocol="http", code="OK")
    with concurrent.futures.ThreadPoolExecutor(4) as workers:
        batch = tiny.random_batch(1, seed=1)
        list(workers.map(lambda _: curl(daemon, "/v2/models/tiny/infer", "--data-binary", "@-", data=request_json(batch)),
                         range(4)))
    after = daemon.metrics().total("saccade_requests_total", model="tiny", protocol="http", code="OK")
    assert after == before + 4

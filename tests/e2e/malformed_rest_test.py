"""Generated invalid HTTP requests: each is rejected with a message, and the next valid one is answered as before."""

import copy
import http.client
import json
import random
import socket

import numpy
import pytest

from harness import DEADLINE_SECONDS, Daemon, eventually
from malformed import PICTURE, damaged, elements

SEED = 40
PATH = "/v2/models/tiny/infer"
LENGTH = "Inference-Header-Content-Length"
MAX_WORDS = 2000
# Values that replace others: every JSON type, and extreme numbers.
OTHERS = [None, True, -1, 0, 0.5, 2**31, 2**63, -(2**63) - 1, 10**400, "", "x" * 100_000, "\0", "\ud800", [], [[]], [None],
          {}, {"a": {"b": []}}, [[1], [2, 3]], [1, "a", None]]


@pytest.fixture(scope="module")
def daemon(repository, tmp_path_factory):
    with Daemon(repository, "--max-message-bytes=4194304", log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()
        assert running.process.poll() is None, "the daemon ended"
        eventually(lambda: running.metrics().total("saccade_inflight_requests") == 0, "nothing was in flight")


def post(daemon, body, headers=(), path=PATH):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.http_port, timeout=DEADLINE_SECONDS)
    try:
        connection.request("POST", path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def check_refusal(status, body, what):
    assert 400 <= status < 500 or status == 501, f"{what}: {status} {body[:300]}"
    words = json.loads(body)["error"]
    assert 0 < len(words) <= MAX_WORDS, f"{what}: {len(words)} characters"
    assert words.replace("\n", " ").isprintable(), f"{what}: {words[:300]!r}"


def good_json():
    values = numpy.random.default_rng(1).standard_normal((1, 3, 56, 56)).round(3)
    tensor = {"name": "image", "shape": [1, 3, 56, 56], "datatype": "FP32", "data": values.ravel().tolist()}
    return {"id": "1", "parameters": {"priority": 0}, "inputs": [tensor],
            "outputs": [{"name": "logits", "parameters": {"binary_data": False}}]}


GOOD = good_json()
BINARY = {"inputs": [{"name": "image", "shape": [2], "datatype": "BYTES", "parameters": {"binary_data_size": 0}}]}
PICTURES = elements(PICTURE, PICTURE)
BINARY["inputs"][0]["parameters"]["binary_data_size"] = len(PICTURES)


def binary(request=None, data=PICTURES, length=None):
    """Returns (body, headers) of a request whose data follows the JSON."""
    text = json.dumps(request or BINARY).encode()
    return text + data, {LENGTH: str(len(text) if length is None else length)}


@pytest.fixture(scope="module")
def good(daemon):
    """Sends a valid request in both forms; fails if a response differs from the first one."""

    def logits():
        answers = [post(daemon, json.dumps(GOOD)), post(daemon, *binary())]
        assert [status for status, _ in answers] == [200, 200], answers
        return [json.loads(body)["outputs"][0]["data"] for _, body in answers]

    first = logits()

    def same():
        for now, before in zip(logits(), first):
            numpy.testing.assert_allclose(now, before, rtol=1e-4, atol=1e-5)

    return same


def places(value, at=()):
    """Yields the path of every position in a JSON value that can be replaced."""
    yield at
    children = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*at, key))


def replaced(value, at, other):
    if not at:
        return other
    made = copy.deepcopy(value)
    inside = made
    for key in at[:-1]:
        inside = inside[key]
    inside[at[-1]] = other
    return made


def test_every_value_is_once_every_other(daemon, good):
    """Some replacements are valid or ignored; none may cause an internal error."""
    refused = tried = 0
    for at in places(GOOD):
        for other in OTHERS:
            status, body = post(daemon, json.dumps(replaced(GOOD, at, other)))
            tried += 1
            if status != 200:
                check_refusal(status, body, f"{at}: {str(other)[:40]}")
                refused += 1
        good()
    assert refused > tried / 2


def test_members_that_are_missing(daemon, good):
    for member in ("name", "shape", "datatype", "data"):
        request = copy.deepcopy(GOOD)
        del request["inputs"][0][member]
        status, body = post(daemon, json.dumps(request))
        check_refusal(status, body, member)
    check_refusal(*post(daemon, json.dumps({key: GOOD[key] for key in GOOD if key != "inputs"})), "inputs")
    good()


TEXTS = {
    "nothing": b"",
    "no object": b"[]",
    "two values": json.dumps(GOOD).encode() * 2,
    "cut": json.dumps(GOOD).encode()[:-1],
    "deep lists": b'{"inputs":' + b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "deep data": b'{"inputs":[{"name":"image","shape":[1],"datatype":"FP32","data":' + b"[" * 500_000,
    "not UTF-8": b'{"id":"\xff\xfe","inputs":[]}',
    "a lone surrogate": b'{"id":"\\ud800","inputs":[]}',
    "NaN": json.dumps(GOOD).replace("[1, 3, 56, 56]", "[1, NaN]").encode(),
    "a comment": b"/* */" + json.dumps(GOOD).encode(),
    "inputs twice": b'{"inputs":[],"inputs":[]}',
    "many inputs": b'{"inputs":[' + b"{}," * 100_000 + b"{}]}",
    "many outputs": json.dumps({**GOOD, "outputs": [{"name": "logits"}] * 20_000}).encode(),
    "a number of many digits": json.dumps(GOOD).replace("[1, 3, 56, 56]", f"[1, {'9' * 100_000}]").encode(),
    "too many elements": json.dumps({**GOOD, "inputs": [{**GOOD["inputs"][0], "data": [0] * 1_300_000}]}).encode(),
    "sides that overflow": json.dumps(GOOD).replace("[1, 3, 56, 56]", "[4294967296, 4294967296]").encode(),
}


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_no_request(daemon, good, text):
    check_refusal(*post(daemon, TEXTS[text]), text)
    good()


@pytest.mark.parametrize("length", ["-1", "+5", " 5", "5 5", "0x10", "1e3", "1.5", "", "x", "4294967296", "9" * 30, "1"])
def test_lengths_of_the_json_that_lie(daemon, good, length):
    check_refusal(*post(daemon, *binary(length=length)), length)
    good()


@pytest.mark.parametrize("size", [-1, 0, 1, len(PICTURES) - 1, len(PICTURES) + 1, 2**32, 2**63, 2**64, 1.5, "1", None, [], True])
def test_sizes_of_binary_data_that_lie(daemon, good, size):
    check_refusal(*post(daemon, *binary(replaced(BINARY, ("inputs", 0, "parameters", "binary_data_size"), size))), size)
    good()


def test_binary_data_that_nobody_takes_or_two_do(daemon, good):
    check_refusal(*post(daemon, *binary(data=PICTURES + b"more")), "more than is taken")
    check_refusal(*post(daemon, *binary(data=b"")), "none")
    check_refusal(*post(daemon, *binary({"inputs": BINARY["inputs"] * 2})), "an input twice")
    request = copy.deepcopy(BINARY)
    request["inputs"][0]["data"] = ["a", "b"]
    check_refusal(*post(daemon, *binary(request)), "data and binary data")
    good()


def test_damaged_bodies(daemon, good):
    """Damages the JSON, or the lengths behind it. The result may still be a valid request, and is answered as one."""
    choose = random.Random(SEED)
    text = json.dumps(BINARY).encode()
    refusals = 0
    for number in range(200):
        if choose.random() < 0.5:
            sent = damaged(text, choose)
            body, headers = sent + PICTURES, {LENGTH: str(len(sent))}
        else:
            body, headers = binary(data=damaged(PICTURES[:60], choose) + PICTURES[60:])
        status, answer = post(daemon, body, headers)
        if status != 200:
            check_refusal(status, answer, f"{number}: {body[:120]!r}")
            refusals += 1
        if number % 10 == 0:
            good()
    assert refusals > 50
    good()


@pytest.mark.parametrize("path", [
    "/v2/models/tiny/versions/0/infer", "/v2/models/tiny/versions/-1/infer", "/v2/models/tiny/versions/1e0/infer",
    f"/v2/models/tiny/versions/{'9' * 40}/infer", "/v2/models/%00/infer", "/v2/models/..%2f..%2fetc%2fpasswd/infer",
    "/v2/models/%ff%fe/infer", f"/v2/models/{'x' * 3000}/infer", "/v2/models//infer", "/v2/models/tiny/infer/../infer",
])
def test_paths(daemon, good, path):
    check_refusal(*post(daemon, json.dumps(GOOD), path=path), path)
    good()


BODY = json.dumps(GOOD).encode()
START = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\n".encode()
RAW = {
    "no version": b"POST " + PATH.encode() + b"\r\n\r\n",
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
    "a method with bytes": b"P\xffST / HTTP/1.1\r\n\r\n",
    "a length below zero": START + b"Content-Length: -1\r\n\r\n",
    "a length of many digits": START + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n",
    "two lengths": START + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a length and chunks": START + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk of no number": START + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n",
    "a chunk of exabytes": START + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab\r\n",
    "a chunk that is longer": START + b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
    "another coding": START + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a header without end": START + b"A: " + b"a" * 100_000,
    "many headers": START + b"A: b\r\n" * 20_000 + b"\r\n",
    "a name with a space": START + b"Content Length: 1\r\n\r\na",
    "a folded header": START + b"A: b\r\n c\r\nContent-Length: 0\r\n\r\n",
    "a header with nul": START + b"A: \0\r\nContent-Length: 0\r\n\r\n",
    "no gzip": START + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY,
}


@pytest.mark.parametrize("kind", RAW)
def test_what_is_no_http(daemon, good, kind):
    """The response has a status of 400 or more, or the connection is closed: nothing is served, and no thread hangs."""
    with socket.create_connection(("127.0.0.1", daemon.http_port), timeout=DEADLINE_SECONDS) as connection:
        try:
            connection.sendall(RAW[kind])
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            # The daemon has answered and closed. A shutdown then says that the socket is not connected.
            pass
        answer = b""
        try:
            while part := connection.recv(1 << 16):
                answer += part
        except ConnectionResetError:
            pass
    if answer:
        status = int(answer.split()[1])
        assert status >= 400, answer[:300]
    good()

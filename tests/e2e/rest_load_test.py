"""Tests REST under overload: disconnecting clients, rejections, bounds."""

import http.client
import json

import pytest

from busy import HOLDING, Held, write_holding
from harness import eventually


@pytest.fixture
def busy(start, tmp_path):
    write_holding(tmp_path / "models", tmp_path / "hang")
    # The request that is computed, and four more.
    daemon = start(tmp_path / "models", *HOLDING, "--max-inflight-requests=5").await_ready()
    with daemon.channel() as channel:
        yield Held(daemon, channel, tmp_path / "hang")


class Asking:
    """A request on its own connection, sent and not answered yet."""

    def __init__(self, daemon, body, headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", daemon.http_port, timeout=30)
        self.connection.request("POST", "/v2/models/slow/infer", body, headers)

    def answer(self):
        answer = self.connection.getresponse()
        return answer.status, answer.headers, answer.read()


def ask(busy):
    light = busy.light.raw_input_contents[0]
    tensor = {
        "name": "image",
        "shape": list(busy.light.inputs[0].shape),
        "datatype": "FP32",
        "parameters": {"binary_data_size": len(light)},
    }
    head = json.dumps({"inputs": [tensor]}).encode()
    return Asking(busy.daemon, head + light, {"Inference-Header-Content-Length": str(len(head))})


def test_clients_that_go_away(busy):
    before = busy.passes()
    asking = [ask(busy) for _ in range(4)]
    eventually(lambda: busy.waiting() == 4, "four requests wait")
    for one in asking:
        one.connection.close()
    eventually(lambda: busy.inflight() == 1, "nothing is held for who went away")
    busy.let_go()
    busy.heavy.result()
    eventually(lambda: busy.failures("CANCELED") == 4, "four are counted as cancelled")
    assert busy.passes() == before + 1
    assert ask(busy).answer()[0] == 200


def test_one_too_many_is_told_when_to_come_again(busy):
    asking = [ask(busy) for _ in range(4)]
    eventually(lambda: busy.waiting() == 4, "four requests wait")
    status, headers, body = ask(busy).answer()
    assert status == 429, body
    assert int(headers["Retry-After"]) >= 1
    assert "error" in json.loads(body)
    busy.let_go()
    assert [one.answer()[0] for one in asking] == [200] * 4


def test_bounds(start, repository):
    daemon = start(repository, "--max-message-bytes=10000").await_ready()
    connection = http.client.HTTPConnection("127.0.0.1", daemon.http_port, timeout=30)
    connection.request("POST", "/v2/models/tiny/infer", b"[" * 10_001)
    answer = connection.getresponse()
    assert answer.status == 413
    assert "--max-message-bytes" in json.loads(answer.read())["error"]
    # A tensor that is larger than its JSON text.
    zeros = {"name": "image", "shape": [1300], "datatype": "FP64", "data": [0] * 1300}
    connection.request("POST", "/v2/models/tiny/infer", json.dumps({"inputs": [zeros]}, separators=(",", ":")))
    answer = connection.getresponse()
    assert answer.status == 400
    assert "its first 1251 elements take more than the 10000 bytes" in json.loads(answer.read())["error"]


def test_more_connections_than_there_is_room_for(start, repository):
    daemon = start(repository, "--max-connections=20").await_ready()
    kept = []

    def live_on_one_more():
        connection = http.client.HTTPConnection("127.0.0.1", daemon.http_port, timeout=30)
        connection.request("GET", "/v2/health/live")
        kept.append(connection)
        return json.loads(connection.getresponse().read()) == {"live": True}

    for _ in range(40):
        # An idle connection is closed to accept the next one; a connection that was just answered may not be idle yet.
        eventually(live_on_one_more, "a connection more is answered")

"""Tests requests as browsers send them: which names the daemon is asked by (Host), which pages may ask it (Origin,
Sec-Fetch-Site), and what it tells browsers about its answers. Over HTTP/1.1 and HTTP/2."""

import contextlib
import http.client
import json
import socket

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import http2_frames as h2
from harness import DEADLINE_SECONDS, SERVING, Daemon
from tiny_models import Identity, write_model

NAME = "saccade.example"
INFER = "/v2/models/served/infer"
BODY = json.dumps({"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 1, 1, 1, 4], "data": [1, 2, 3, 4]}]}).encode()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browsed")
    write_model(folder, "served", Identity(), max_batch_size=4)
    return folder


@pytest.fixture(scope="module")
def daemon(root, tmp_path_factory):
    """A daemon that has one name beside its own addresses."""
    flags = (f"--allowed-hosts={NAME}", "--warm-up-seconds=0")
    with Daemon(root, *flags, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture(scope="module")
def without(root, tmp_path_factory):
    """A daemon without --allowed-hosts, on loopback."""
    with Daemon(root, "--warm-up-seconds=0", log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture(scope="module")
def reached_by_others(root, tmp_path_factory):
    """A daemon without --allowed-hosts that other machines reach over HTTP."""
    flags = ("--http-address=0.0.0.0", "--insecure", "--warm-up-seconds=0")
    with Daemon(root, *flags, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


def ask_http1(port, method, path, host, headers, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_SECONDS)
    with contextlib.closing(connection):
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in [("Host", host)] * (host is not None) + list(headers.items()):
            connection.putheader(name, value)
        if body:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


def ask_http2(port, method, path, host, headers, body):
    fields = [(":method", method), (":scheme", "http"), (":path", path)] + [(":authority", host)] * (host is not None)
    fields += [(name.lower(), value) for name, value in headers.items()]
    with h2.Connection(port) as connection:
        connection.send(h2.head(1, fields, end=not body))
        if body:
            connection.send(h2.data(1, body))
        told, content = connection.answer(1)
    return int(told.pop(":status")), told, content


@pytest.fixture(params=[ask_http1, ask_http2], ids=["HTTP/1.1", "HTTP/2"])
def ask(request):
    def send(daemon, method="GET", path="/v2/models/served", host="localhost:{port}", headers=(), body=b"", port=None):
        """{port} stands for the port's number in names and headers."""
        number = port or daemon.http_port
        filled = {name: value.format(port=number) for name, value in dict(headers).items()}
        if method == "POST" and not body:
            body, filled = BODY, {"Content-Type": "application/json", **filled}
        return request.param(number, method, path, host and host.format(port=number), filled, body)

    return send


# Host, and whether a daemon with --allowed-hosts=saccade.example serves it.
HOSTS = [
    ("localhost:{port}", True), ("localhost", True), ("LocalHost:{port}", True), ("127.0.0.1:{port}", True),
    ("[::1]:{port}", True), (NAME, True), (f"{NAME}:{{port}}", True), (f"{NAME.upper()}:443", True), ("10.1.2.3", True),
    ("[2001:db8::1]:80", True),
    ("elsewhere.example", False), ("elsewhere.example:{port}", False), (f"{NAME}.elsewhere.example", False), (f"a.{NAME}", False),
    ("localhost.elsewhere.example", False), ("127.0.0.1.elsewhere.example", False), ("1.2.3", False), ("0x7f.1", False),
]


@pytest.mark.parametrize("host, served", HOSTS)
def test_names_that_are_served(daemon, ask, host, served):
    """A name of somebody else that leads here is a page's way around the browser's rules (DNS rebinding)."""
    for method, path in (("GET", "/v2/models/served"), ("POST", INFER), ("GET", "/")):
        status, _, body = ask(daemon, method, path, host)
        assert status == 200 if served else status in (403, 421), (method, path, status, body[:200])
        assert served or b"--allowed-hosts" in body, body


def test_refused_names_are_counted(daemon, ask):
    count = lambda: daemon.metrics().total("saccade_front_refusals_total", reason="host")
    before = count()
    ask(daemon, host="elsewhere.example")
    ask(daemon, headers={"Origin": "http://elsewhere.example"})
    assert count() == before + 2


def test_probes_ask_by_any_address(daemon, ask):
    """A kubelet asks by the pod's address."""
    asked = [(daemon.http_port, "/v2/health/live"), (daemon.http_port, "/v2/health/ready"), (daemon.metrics_port, "/metrics")]
    for port, path in asked:
        assert ask(daemon, path=path, host="10.9.8.7", port=port)[0] == 200


@pytest.mark.parametrize("host", ["saccade.default.svc.cluster.local", "localhost", "10.1.2.3:8000"])
def test_every_name_is_served_where_others_reach_it(reached_by_others, ask, host):
    for port in (reached_by_others.http_port, reached_by_others.grpc_port, reached_by_others.metrics_port):
        assert ask(reached_by_others, path="/v2/health/live", host=host, port=port)[0] == 200


@pytest.mark.parametrize("host, served", [
    ("localhost:{port}", True), ("localhost", True), ("LOCALHOST:1", True), ("127.0.0.1:{port}", True), ("127.0.0.2", True),
    ("[::1]:{port}", True), ("10.1.2.3:8000", True),
    ("rebound.example:{port}", False), ("saccade.default.svc.cluster.local", False), ("a.localhost", False), ("saccade", False),
])
def test_only_loopback_names_are_served_on_loopback(without, ask, host, served):
    """A page can have its own name lead to this machine (DNS rebinding). For the browser its requests are then of the same
    origin; only their Host tells."""
    page = {"Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    for headers in ({}, page):
        for port in (without.http_port, without.grpc_port, without.metrics_port):
            status, _, body = ask(without, path="/v2/health/live", host=host, headers=headers, port=port)
            assert status == 200 if served else status == 421 and b"--allowed-hosts" in body, (port, headers, status)
        for method, path in (("POST", INFER), ("GET", "/")):
            assert ask(without, method, path, host, headers)[0] == (200 if served else 421)
        # Over gRPC-web.
        call = {"Content-Type": "application/grpc-web+proto", **headers}
        status, told, body = ask(without, "POST", "/grpc.health.v1.Health/Check", host, call, body=bytes(5))
        assert status == (200 if served else 421), body
        assert not served or b"grpc-status: 0" in body


@pytest.mark.parametrize("authority", ["rebound.example", "saccade.default.svc.cluster.local:8001", "localhost"])
def test_calls_over_grpc_itself_may_have_any_authority(without, authority):
    """No browser makes them, and a proxy or a name in /etc/hosts may lead to the port."""
    with without.channel(**{"grpc.default_authority": authority}) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE_SECONDS)
    assert check.status == SERVING


# What a browser says about the page that asks, and whether it may.
PAGES = [
    ({}, True),
    ({"Origin": "http://localhost:{port}"}, True),
    ({"Origin": "http://localhost:{port}", "Sec-Fetch-Site": "same-origin"}, True),
    ({"Sec-Fetch-Site": "same-origin"}, True),
    ({"Sec-Fetch-Site": "none"}, True),
    ({"Origin": "http://localhost:1"}, False),
    ({"Origin": "http://localhost"}, False),
    ({"Origin": "http://elsewhere.example"}, False),
    ({"Origin": "https://elsewhere.example:{port}"}, False),
    ({"Origin": "http://localhost:{port}.elsewhere.example"}, False),
    ({"Origin": "http://localhost.elsewhere.example:{port}"}, False),
    ({"Origin": "http://elsewhere.example#localhost:{port}"}, False),
    ({"Origin": "http://elsewhere.example@localhost:{port}"}, False),
    ({"Origin": "null"}, False),
    ({"Origin": ""}, False),
    ({"Origin": "http://localhost:{port}", "Sec-Fetch-Site": "cross-site"}, False),
    ({"Sec-Fetch-Site": "cross-site"}, False),
]


@pytest.mark.parametrize("headers, allowed", PAGES, ids=lambda given: str(given))
@pytest.mark.parametrize("which", ["daemon", "without"])
def test_pages_that_may_ask(request, which, ask, headers, allowed):
    served = request.getfixturevalue(which)
    for method, path in (("GET", "/v2/models/served"), ("POST", INFER), ("GET", "/v2/health/ready")):
        status, told, body = ask(served, method, path, headers=headers)
        assert status == 200 if allowed else status == 403, (method, path, status, body[:200])
        assert not any(name.startswith("access-control") for name in told)


def test_a_link_from_another_page_may_open_ours(daemon, ask):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert ask(daemon, "GET", "/", headers=headers)[0] == 200
    assert ask(daemon, "HEAD", "/", headers=headers)[0] == 200
    assert ask(daemon, "GET", "/v2", headers=headers)[0] == 403
    assert ask(daemon, "POST", INFER, headers=headers)[0] == 403


def test_what_a_page_asks_before_it_asks(daemon, ask):
    """A preflight gets no permission, so the browser does not send the request."""
    headers = {"Origin": "http://elsewhere.example", "Access-Control-Request-Method": "POST",
               "Access-Control-Request-Headers": "content-type", "Sec-Fetch-Site": "cross-site"}
    status, told, _ = ask(daemon, "OPTIONS", INFER, headers=headers)
    assert status >= 400 and not any(name.startswith("access-control") for name in told)


def test_browsers_are_told_not_to_guess_types(daemon, ask):
    """On every answer, also those that the front makes by itself."""
    asked = [
        ("GET", "/", 200, {}), ("GET", "/page.js", 200, {}), ("GET", "/v2", 200, {}), ("GET", "/v2/health/ready", 200, {}),
        ("GET", "/nowhere", 404, {}), ("POST", "/v2", 405, {}), ("POST", INFER, 200, {}), ("POST", "/v2/models/no/infer", 404, {}),
        ("GET", "/v2", 403, {"Origin": "http://elsewhere.example"}), ("GET", "/v2", 431, {"X": "y" * 20_000}),
    ]
    for method, path, expected, headers in asked:
        status, told, _ = ask(daemon, method, path, headers=headers)
        assert (status, told.get("x-content-type-options")) == (expected, "nosniff"), (method, path)
    for path, expected in (("/metrics", 200), ("/nowhere", 404), ("/v2/health/live", 200)):
        status, told, _ = ask(daemon, path=path, port=daemon.metrics_port)
        assert (status, told.get("x-content-type-options")) == (expected, "nosniff"), path


def test_a_request_that_is_none_is_told_so_with_a_type(daemon):
    with socket.create_connection(("127.0.0.1", daemon.http_port), timeout=DEADLINE_SECONDS) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a b\r\nno field\r\n\r\n")
        answer = connection.recv(4096)
        assert answer.startswith(b"HTTP/1.1 400 ") and b"\r\nX-Content-Type-Options: nosniff\r\n" in answer


def test_without_a_name(daemon):
    assert ask_http1(daemon.http_port, "GET", "/v2", None, {}, b"")[0] == 400
    with h2.Connection(daemon.http_port) as connection:
        connection.send(h2.head(1, [(":method", "GET"), (":scheme", "http"), (":path", "/v2")], end=True))
        assert connection.answer(1)[0]["reset"] == h2.PROTOCOL_ERROR

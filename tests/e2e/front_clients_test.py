"""Tests the daemon's ports with clients that others wrote: grpcio, curl, nghttp, h2load, and gRPC-web, by hand.

tests/e2e/front_foreign_clients_test.py has clients that not every machine has."""

import asyncio
import base64
import contextlib
import http.client
import json
import re
import struct
import subprocess
import threading
import time

import grpc
import numpy
import pytest

import http2_frames as h2
from certificates import Authority
from harness import DEADLINE_SECONDS, Daemon, eventually
from messages import Inference, infer_request, message, predict_request
from tiny_models import Identity, write_model

SHAPE = (1, 1, 1, 1, 4)
VOLUME = numpy.arange(4, dtype=numpy.float32).tobytes()
REQUEST = infer_request("served", SHAPE, VOLUME)
LATE = infer_request("late", SHAPE, VOLUME)
SERVICE = "/inference.GRPCInferenceService"
WATCH = "/grpc.health.v1.Health/Watch"
ALL_PORTS = ("grpc_port", "http_port", "metrics_port")
PORTS = ("grpc_port", "http_port")
RAW = {"request_serializer": bytes, "response_deserializer": bytes}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clients")
    write_model(folder, "served", Identity(), max_batch_size=4)
    write_model(folder, "late", Identity(delay_ms=4000), max_batch_size=1)
    return folder


@pytest.fixture(scope="module")
def daemon(root, tmp_path_factory):
    flags = ("--warm-up-seconds=0", "--max-message-bytes=50000000")
    with Daemon(root, *flags, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secured(root, authority, tmp_path_factory):
    """The same with TLS."""
    pair = authority.issue("here")
    credentials = grpc.ssl_channel_credentials(authority.root.read_bytes())
    flags = (f"--tls-cert={pair.certificate}", f"--tls-key={pair.key}", "--warm-up-seconds=0")
    with Daemon(root, *flags, log_folder=tmp_path_factory.mktemp("log"), credentials=credentials) as running:
        yield running.await_ready()


@pytest.fixture(params=["plain", "TLS"])
def either(request):
    return request.getfixturevalue("daemon" if request.param == "plain" else "secured")


# grpcio


def test_a_call(either):
    with either.channel() as channel:
        answer, call = Inference(channel).model_infer.with_call(REQUEST, timeout=DEADLINE_SECONDS)
        assert answer.raw_output_contents[0] == VOLUME
        assert call.code() == grpc.StatusCode.OK and call.details() == ""


def test_large_messages_both_ways(either):
    large = numpy.random.default_rng(1).standard_normal(10_000_000, numpy.float32)
    request = infer_request("served", (1, 1, 10, 1000, 1000), large.tobytes())
    with either.inference() as inference:
        for _ in range(2):
            assert inference.model_infer(request, timeout=DEADLINE_SECONDS).raw_output_contents[0] == large.tobytes()


def test_a_message_above_the_bound(daemon):
    with daemon.inference() as inference, pytest.raises(grpc.RpcError) as refused:
        inference.model_infer(infer_request("served", (1, 1, 15, 1000, 1000), bytes(60_000_000)), timeout=DEADLINE_SECONDS)
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "--max-message-bytes" in refused.value.details()


def test_a_deadline_ends_a_call_at_the_daemon_too(daemon):
    with daemon.inference() as inference:
        begun = time.monotonic()
        with pytest.raises(grpc.RpcError) as late:
            inference.model_infer(LATE, timeout=0.2)
        assert late.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        assert time.monotonic() - begun < 3.5
    # The daemon enforces it by itself: this client does not give up.
    with h2.Connection(daemon.grpc_port) as connection:
        connection.send(h2.open_grpc(1, f"{SERVICE}/ModelInfer", [("grpc-timeout", "100m")]))
        fields, _ = connection.answer(1)
        assert fields["grpc-status"] == "4"


def test_a_cancelled_call_gives_its_place_back(daemon):
    with daemon.inference() as inference:
        call = inference.model_infer.future(LATE)
        eventually(lambda: daemon.metrics().total("saccade_inflight_requests") >= 1, "it was begun")
        call.cancel()
        assert call.code() == grpc.StatusCode.CANCELLED
        eventually(lambda: daemon.metrics().total("saccade_inflight_requests") == 0, "it is over")
        assert inference.model_infer(REQUEST, timeout=DEADLINE_SECONDS).raw_output_contents[0] == VOLUME


def test_the_status_has_details(daemon):
    bad = message("saccade.v1.PredictRequest")(model="served", priority=101)
    with daemon.vision() as vision, pytest.raises(grpc.RpcError) as refused:
        vision.predict(bad, timeout=DEADLINE_SECONDS)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    status = message("google.rpc.Status").FromString(dict(refused.value.trailing_metadata())["grpc-status-details-bin"])
    assert status.code == 3 and status.message == refused.value.details()
    fields = message("google.rpc.BadRequest")()
    assert any(detail.Unpack(fields) for detail in status.details) and fields.field_violations


def test_a_message_of_a_status_may_have_any_character(daemon):
    name = "né\n\u2713%41 \x7f"
    with daemon.inference() as inference, pytest.raises(grpc.RpcError) as refused:
        inference.model_infer(infer_request(name, SHAPE, VOLUME), timeout=DEADLINE_SECONDS)
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND
    # The daemon writes characters that could confuse a terminal by their codes.
    assert r"n\xc3\xa9\n\xe2\x9c\x93%41 \x7f" in refused.value.details()


def test_metadata_of_all_kinds_is_taken(daemon):
    metadata = [("x-text", "a b;c,d"), ("x-bytes-bin", bytes(range(256))), ("x-twice", "1"), ("x-twice", "2"), ("x-empty", ""),
                ("x-long", "y" * 8000)]
    with daemon.channel() as channel:
        answer, call = Inference(channel).model_infer.with_call(REQUEST, metadata=metadata, timeout=DEADLINE_SECONDS)
    assert answer.raw_output_contents[0] == VOLUME


@pytest.mark.parametrize("kind", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_requests(daemon, kind):
    zeros = bytes(4_000_000)
    request = infer_request("served", (1, 1, 1, 1000, 1000), zeros)
    with daemon.inference() as inference:
        assert inference.model_infer(request, timeout=DEADLINE_SECONDS, compression=kind).raw_output_contents[0] == zeros


def test_methods_that_do_not_exist(daemon):
    with daemon.channel() as channel:
        for path in (f"{SERVICE}/Nothing", "/no.Service/Nothing", "/", f"{SERVICE}/"):
            with pytest.raises(grpc.RpcError) as refused:
                channel.unary_unary(path, **RAW)(b"", timeout=DEADLINE_SECONDS)
            assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED, path


def test_a_stream_both_ways(daemon):
    """Each answer comes before the next request is sent."""
    answers = message("inference.ModelStreamInferResponse")
    with daemon.channel() as channel:
        turn = threading.Semaphore(1)

        def requests():
            for _ in range(20):
                assert turn.acquire(timeout=DEADLINE_SECONDS)
                yield REQUEST.SerializeToString()

        call = channel.stream_stream(f"{SERVICE}/ModelStreamInfer", **RAW)(requests(), timeout=DEADLINE_SECONDS)
        count = 0
        for answer in call:
            assert answers.FromString(answer).infer_response.raw_output_contents[0] == VOLUME
            count += 1
            turn.release()
        assert count == 20 and call.code() == grpc.StatusCode.OK


def test_many_calls_at_once_on_one_connection(either):
    with either.inference() as inference:
        calls = [inference.model_infer.future(REQUEST, timeout=DEADLINE_SECONDS) for _ in range(500)]
        assert all(call.result().raw_output_contents[0] == VOLUME for call in calls)


def test_grpcio_with_asyncio(either):
    async def ask():
        options = [("grpc.use_local_subchannel_pool", 1)]
        credentials = either._credentials
        channel = (grpc.aio.secure_channel(either.grpc_address, credentials, options) if credentials
                   else grpc.aio.insecure_channel(either.grpc_address, options))
        async with channel:
            infer = Inference(channel).model_infer
            answers = await asyncio.gather(*(infer(REQUEST, timeout=DEADLINE_SECONDS) for _ in range(100)))
            assert all(answer.raw_output_contents[0] == VOLUME for answer in answers)
            with pytest.raises(grpc.aio.AioRpcError) as late:
                await infer(LATE, timeout=0.2)
            assert late.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
            call = infer(LATE)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            watch = channel.unary_stream(WATCH, **RAW)(b"")
            assert await watch.read() == b"\x08\x01"
            watch.cancel()

    asyncio.run(ask())


# curl, nghttp, h2load


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("port", ALL_PORTS)
@pytest.mark.parametrize("flag, version", [("--http1.1", "1.1"), ("--http2-prior-knowledge", "2"), ("--http2", None)])
def test_curl(daemon, port, flag, version):
    """--http2 asks a plain port for an upgrade, which it need not follow."""
    url = f"http://127.0.0.1:{getattr(daemon, port)}/v2/health/live"
    said = run("curl", "-sS", "-m", 20, flag, "-w", "%{http_code} %{http_version}", "-o", "/dev/null", url)
    assert said.split()[0] == ("404" if port == "grpc_port" and said.startswith("404") else "200")
    assert version is None or said.split()[1] == version


@pytest.mark.parametrize("flag, version", [("--http1.1", "1.1"), ("--http2", "2"), ("--http2-prior-knowledge", "2")])
def test_curl_over_tls(secured, authority, flag, version):
    url = f"https://127.0.0.1:{secured.http_port}/v2/health/live"
    command = ["curl", "-sS", "-m", 20, flag, "--cacert", authority.root, "-w", "%{http_code} %{http_version}", "-o", "/dev/null"]
    assert run(*command, url) == f"200 {version}"


@pytest.mark.parametrize("flag", ["--http1.1", "--http2-prior-knowledge"])
def test_curl_sends_and_gets_megabytes(daemon, flag, tmp_path):
    numbers = list(range(200_000))
    sent = {"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 1, 2, 100, 1000], "data": numbers}]}
    (tmp_path / "body").write_text(json.dumps(sent))
    url = f"http://127.0.0.1:{daemon.http_port}/v2/models/served/infer"
    for extra in ((), ("-H", "Expect: 100-continue"), ("-H", "Transfer-Encoding: chunked"), ("--compressed",)):
        if flag != "--http1.1" and "chunked" in str(extra):
            continue
        answer = json.loads(run("curl", "-sS", "-m", 20, flag, *extra, "--data-binary", f"@{tmp_path / 'body'}", "-H",
                                "Content-Type: application/json", url))
        assert answer["outputs"][0]["data"] == numbers


@pytest.mark.parametrize("flag", ["--http1.1", "--http2-prior-knowledge"])
def test_head_gives_the_same_head_without_a_body(daemon, flag):
    url = f"http://127.0.0.1:{daemon.http_port}/v2"
    told = [re.sub(r"(?mi)^date:.*\n", "", run("curl", "-sS", "-m", 20, flag, *how, url)).replace("\r", "")
            for how in (("-I",), ("-i",))]
    assert told[0].rstrip("\n") == told[1].partition("\n\n")[0]


def test_nghttp(daemon):
    base = f"http://127.0.0.1:{daemon.http_port}"
    # Several requests on one connection, and the page as a browser would fetch it.
    paths = ("/", "/page.js", "/v2", "/v2/health/ready", "/nowhere")
    told = run("nghttp", "-nv", "--no-dep", *(f"{base}{path}" for path in paths))
    assert sorted(re.findall(r":status: (\d+)", told)) == ["200"] * 4 + ["404"]
    told = run("nghttp", "-v", f"http://127.0.0.1:{daemon.metrics_port}/metrics")
    assert "saccade_build_info" in told


def succeeded(told, count):
    assert f"{count} succeeded, 0 failed, 0 errored, 0 timeout" in told, told
    assert f"status codes: {count} 2xx, 0 3xx, 0 4xx, 0 5xx" in told, told


@pytest.mark.parametrize("how", [(), ("--h1",), ("-w", "30", "-W", "30")], ids=["HTTP/2", "HTTP/1.1", "large windows"])
def test_h2load(daemon, how):
    url = f"http://127.0.0.1:{daemon.http_port}/v2/health/live"
    many = ("-m", "32") if "--h1" not in how else ()
    succeeded(run("h2load", "-n", 3000, "-c", 10, *many, "-t", 1, *how, url), 3000)


def test_h2load_sends_grpc(either, tmp_path):
    (tmp_path / "body").write_bytes(h2.message(REQUEST.SerializeToString()))
    headers = ("-H", "content-type: application/grpc", "-H", "te: trailers")
    before = either_metrics(either)
    scheme = "https" if either._credentials else "http"
    url = f"{scheme}://127.0.0.1:{either.grpc_port}{SERVICE}/ModelInfer"
    succeeded(run("h2load", "-n", 1000, "-c", 4, "-m", 8, "-t", 1, "-d", tmp_path / "body", *headers, url), 1000)
    # The statuses are in the trailers, which h2load does not read.
    eventually(lambda: either_metrics(either) - before == 1000, "all of them were computed")


def either_metrics(daemon):
    scheme = "https" if daemon._credentials else "http"
    page = run("curl", "-sSk", "-m", 20, f"{scheme}://127.0.0.1:{daemon.metrics_port}/metrics")
    name = 'nv_inference_request_success{model="served"'
    return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith(name))


# gRPC-web


def web(daemon, port, path, body, text=False, headers=(), page=None):
    """Calls as a page does that the daemon itself has sent, unless `page` says what a browser tells of it. Returns (HTTP status, headers, messages, trailers)."""
    host = f"127.0.0.1:{getattr(daemon, port)}"
    kind = "application/grpc-web-text" if text else "application/grpc-web+proto"
    page = {"Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"} if page is None else page
    sent = {"Content-Type": kind, "Accept": kind, "X-Grpc-Web": "1", **page, **dict(headers)}
    connection = http.client.HTTPConnection(host, timeout=DEADLINE_SECONDS)
    with contextlib.closing(connection):
        connection.request("POST", path, base64.b64encode(body) if text else body, sent)
        answer = connection.getresponse()
        content = answer.read()
    told = {name.lower(): value for name, value in answer.getheaders()}
    if not told["content-type"].startswith("application/grpc-web"):
        return answer.status, told, [], {}
    if text:
        # Pieces may be padded each by itself.
        content = b"".join(base64.b64decode(piece) for piece in re.findall(rb"[^=]+=*", content))
    messages, trailers = [], {}
    while content:
        flags, length = struct.unpack_from(">BI", content)
        part, content = content[5 : 5 + length], content[5 + length :]
        if flags & 0x80:
            trailers = {name.strip().lower(): value.strip()
                        for name, _, value in (line.partition(":") for line in part.decode().splitlines() if line)}
        else:
            messages.append(part)
    return answer.status, told, messages, trailers or told


@pytest.mark.parametrize("text", [False, True], ids=["binary", "text"])
@pytest.mark.parametrize("port", PORTS)
def test_grpc_web(daemon, port, text):
    body = h2.message(REQUEST.SerializeToString())
    status, headers, messages, trailers = web(daemon, port, f"{SERVICE}/ModelInfer", body, text)
    assert status == 200 and trailers["grpc-status"] == "0", (status, headers, trailers)
    assert headers["content-type"].startswith("application/grpc-web-text" if text else "application/grpc-web")
    (answer,) = messages
    assert message("inference.ModelInferResponse").FromString(answer).raw_output_contents[0] == VOLUME


@pytest.mark.parametrize("text", [False, True], ids=["binary", "text"])
def test_grpc_web_with_large_messages(daemon, text):
    large = numpy.random.default_rng(2).standard_normal(700_000, numpy.float32)
    body = h2.message(infer_request("served", (1, 1, 7, 100, 1000), large.tobytes()).SerializeToString())
    _, _, (answer,), trailers = web(daemon, "http_port", f"{SERVICE}/ModelInfer", body, text)
    assert trailers["grpc-status"] == "0"
    assert message("inference.ModelInferResponse").FromString(answer).raw_output_contents[0] == large.tobytes()


@pytest.mark.parametrize("text", [False, True], ids=["binary", "text"])
def test_grpc_web_tells_errors(daemon, text):
    body = h2.message(infer_request("nothing", SHAPE, VOLUME).SerializeToString())
    status, _, messages, trailers = web(daemon, "http_port", f"{SERVICE}/ModelInfer", body, text)
    assert (status, messages, trailers["grpc-status"]) == (200, [], "5") and "nothing" in trailers["grpc-message"]
    assert web(daemon, "http_port", f"{SERVICE}/Nothing", h2.message(b""), text)[3]["grpc-status"] == "12"
    assert web(daemon, "http_port", f"{SERVICE}/ModelInfer", h2.message(b"", length=10), text)[3]["grpc-status"] != "0"
    late = web(daemon, "http_port", f"{SERVICE}/ModelInfer", h2.message(LATE.SerializeToString()), text, {"grpc-timeout": "100m"})
    assert late[3]["grpc-status"] == "4"


def test_grpc_web_of_another_site_is_refused(daemon):
    body = h2.message(REQUEST.SerializeToString())
    for page in ({"Origin": "https://elsewhere.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        status, told, messages, trailers = web(daemon, "http_port", f"{SERVICE}/ModelInfer", body, page=page)
        assert not messages and (status == 403 or trailers.get("grpc-status") == "7"), page
        assert "access-control-allow-origin" not in told


def test_grpc_web_streams_what_is_there(daemon):
    """The first state of a watch arrives while the call is open."""
    connection = http.client.HTTPConnection(f"127.0.0.1:{daemon.http_port}", timeout=DEADLINE_SECONDS)
    with contextlib.closing(connection):
        connection.request("POST", WATCH, h2.message(b""), {"Content-Type": "application/grpc-web+proto"})
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read(7) == h2.message(b"\x08\x01")


def test_a_typed_call_over_grpc_web(daemon):
    _, _, (answer,), trailers = web(daemon, "http_port", "/saccade.v1.Vision/ListModels", h2.message(b""))
    assert trailers["grpc-status"] == "0"
    models = message("saccade.v1.ListModelsResponse").FromString(answer).models
    assert {model.name for model in models} == {"served", "late"}


def test_a_client_that_goes_away_over_grpc_web_is_noticed(daemon):
    connection = http.client.HTTPConnection(f"127.0.0.1:{daemon.http_port}", timeout=DEADLINE_SECONDS)
    connection.request("POST", f"{SERVICE}/ModelInfer", h2.message(LATE.SerializeToString()),
                       {"Content-Type": "application/grpc-web+proto"})
    eventually(lambda: daemon.metrics().total("saccade_inflight_requests") >= 1, "it was begun")
    connection.close()
    eventually(lambda: daemon.metrics().total("saccade_inflight_requests") == 0, "it is over")

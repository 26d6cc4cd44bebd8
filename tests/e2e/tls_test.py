"""Tests TLS with third-party clients, client certificates, and certificates that change while the daemon runs."""

import http.client
import socket
import ssl
import subprocess
import threading
import time

import gevent.ssl
import grpc
import pytest
import tritonclient.grpc as triton
import tritonclient.http as triton_http

import pictures
from certificates import Authority, put
from harness import DEADLINE_SECONDS, Daemon, binary, eventually, write_secret
from messages import Vision, predict_request

TOKEN = "predict-0123456789abcdef"
BEARER = {"authorization": f"Bearer {TOKEN}"}
# Closing them one after the other would take longer than the daemon's limit of ten seconds.
STALLED = 8


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def pair(authority, tmp_path_factory):
    """The certificate and key files that the daemon reads."""
    folder = tmp_path_factory.mktemp("pair")
    files = (folder / "tls.crt", folder / "tls.key")
    for file, target in zip(authority.issue("first"), files):
        put(file, target)
    return files


@pytest.fixture(scope="module")
def daemon(repository, authority, pair, tmp_path_factory):
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    write_secret(tokens, f"{TOKEN} predict,metrics\n")
    flags = [f"--tls-cert={pair[0]}", f"--tls-key={pair[1]}", f"--token-file={tokens}", "--warm-up-seconds=0",
             # Allowed because both TLS and tokens are set.
             "--grpc-address=0.0.0.0"]
    credentials = grpc.ssl_channel_credentials(authority.root.read_bytes())
    with Daemon(repository, *flags, log_folder=tmp_path_factory.mktemp("log"), credentials=credentials) as running:
        yield running.await_ready()
        assert TOKEN not in running.log()


def stall(port, count):
    """Opens connections that send part of a TLS handshake and then stop."""
    opened = [socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS) for _ in range(count)]
    for number, one in enumerate(opened):
        one.sendall(b"\x16\x03\x01"[: number % 4])
    return opened


@pytest.fixture(scope="module", autouse=True)
def stalled(daemon):
    """The stalled connections are open while all other tests of this file run, which must not be affected."""
    opened = {port: stall(port, STALLED) for port in (daemon.grpc_port, daemon.http_port, daemon.metrics_port)}
    yield opened
    for one in sum(opened.values(), []):
        one.close()


def curl(port, path, *arguments):
    """Runs curl; returns (exit code, body or error)."""
    command = ["curl", "-sS", "--max-time", "30", *map(str, arguments), f"https://127.0.0.1:{port}{path}"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout or done.stderr


def told_end(daemon, authority):
    page = curl(daemon.metrics_port, "/metrics", "--cacert", authority.root, "-H", f"authorization: {BEARER['authorization']}")[1]
    return float(next(line for line in page.splitlines() if line.startswith("saccade_certificate_expiry")).split()[1])


def client_context(authority):
    return ssl.create_default_context(cafile=authority.root)


def serial(authority, port):
    """Serial number of the certificate that a new connection receives."""
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS) as plain:
        with client_context(authority).wrap_socket(plain, server_hostname="127.0.0.1") as wrapped:
            return wrapped.getpeercert()["serialNumber"]


def test_grpc_over_tls(daemon):
    with daemon.vision() as vision:
        request = predict_request(model="tiny", encoded=pictures.encoded(pictures.pixels(1)))
        answer = vision.predict(request, metadata=tuple(BEARER.items()), timeout=DEADLINE_SECONDS)
    assert len(answer.classification.classes) == 5


def test_tritons_clients_over_tls(daemon, authority, tiny):
    context = lambda *_, **__: gevent.ssl.create_default_context(cafile=authority.root)
    clients = [
        (triton, daemon.grpc_port, {"root_certificates": str(authority.root)}),
        (triton_http, daemon.http_port, {"ssl_options": {"ca_certs": str(authority.root)}, "ssl_context_factory": context}),
    ]
    # Large enough for several TLS records in each direction.
    batch = tiny.random_batch(8, seed=1)
    for module, port, options in clients:
        with module.InferenceServerClient(f"127.0.0.1:{port}", ssl=True, **options) as client:
            tensor = module.InferInput("image", list(batch.shape), "FP32")
            tensor.set_data_from_numpy(batch)
            # A copy, because the client adds headers to the dict.
            answer = client.infer("tiny", [tensor], headers=dict(BEARER))
            assert answer.as_numpy("logits").shape == (8, tiny.classes)


def test_curl_over_tls(daemon, authority):
    trusted = ["--cacert", authority.root, "-H", f"Authorization: Bearer {TOKEN}"]
    assert curl(daemon.http_port, "/v2/health/ready", *trusted) == (0, '{"ready":true}')
    assert "nv_inference_count" in curl(daemon.metrics_port, "/metrics", *trusted)[1]
    code, said = curl(daemon.http_port, "/v2/health/ready")
    assert code == 60 and "certificate" in said


def test_several_requests_and_large_answers_on_one_connection(daemon, authority):
    connection = http.client.HTTPSConnection("127.0.0.1", daemon.http_port, context=client_context(authority))
    for _ in range(3):
        connection.request("GET", "/page.js")
        answer = connection.getresponse()
        assert answer.status == 200 and len(answer.read()) == int(answer.headers["Content-Length"]) > 8192
    connection.close()


@pytest.mark.filterwarnings("ignore:.*TLSv1:DeprecationWarning")
@pytest.mark.parametrize("name", ["grpc", "http", "metrics"])
def test_nothing_older_than_tls_1_2(daemon, authority, name):
    context = client_context(authority)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    port = getattr(daemon, f"{name}_port")
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS) as plain:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            context.wrap_socket(plain, server_hostname="127.0.0.1")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS) as plain:
        if name == "grpc":
            context.set_alpn_protocols(["h2"])
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as wrapped:
            assert wrapped.version() == "TLSv1.2"


def test_plain_http_is_told_that_tls_is_spoken_here(daemon):
    status, _, body = daemon.get("/v2/health/ready")
    assert status == 400 and "https" in body


@pytest.mark.parametrize("flags, reason", [((), "--tls"), (("--tls",), "--tls-ca")])
def test_a_wait_for_a_daemon_with_tls_says_what_is_wrong(daemon, flags, reason):
    """In one line, without one of gRPC's own before it."""
    command = [binary("saccade"), "status", "--wait=0.5", f"--url={daemon.grpc_address}", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert done.returncode == 78 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("saccade: ") and reason in line


def test_a_long_wait_says_soon_what_is_wrong(daemon):
    """And goes on waiting: the daemon, or its certificate, may be replaced."""
    command = [binary("saccade"), "status", "--wait=3600", f"--url={daemon.grpc_address}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting:
        begin = time.monotonic()
        line = waiting.stderr.readline()
        assert time.monotonic() - begin < DEADLINE_SECONDS
        assert line.startswith("saccade: still waiting: ") and "add --tls" in line
        assert waiting.poll() is None
        waiting.kill()


def test_plain_grpc_gets_no_answer(daemon):
    with grpc.insecure_channel(daemon.grpc_address) as channel:
        with pytest.raises(grpc.RpcError) as refused:
            Vision(channel).list_models(predict_request(), metadata=tuple(BEARER.items()), timeout=DEADLINE_SECONDS)
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE


class Load:
    """Clients that open a new connection for every request, and one that keeps its connection, over gRPC and HTTP."""

    def __init__(self, daemon, authority):
        self._daemon, self._context = daemon, client_context(authority)
        self._ends = threading.Event()
        self.asked, self.failures = 0, []
        self._threads = [threading.Thread(target=self._ask, args=(way,)) for way in (self._grpc, self._http, self._kept)]

    def __enter__(self):
        self._channel = self._daemon.channel()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        for thread in self._threads:
            thread.join()
        self._channel.close()

    def _ask(self, way):
        while not self._ends.is_set():
            try:
                way()
                self.asked += 1
            except Exception as error:
                self.failures.append(repr(error))

    def _models(self, channel):
        Vision(channel).list_models(predict_request(), metadata=tuple(BEARER.items()), timeout=DEADLINE_SECONDS)

    def _grpc(self):
        with self._daemon.channel() as channel:
            self._models(channel)

    def _kept(self):
        self._models(self._channel)

    def _http(self):
        made = http.client.HTTPSConnection("127.0.0.1", self._daemon.http_port, context=self._context, timeout=DEADLINE_SECONDS)
        made.request("GET", "/v1/models", headers=BEARER)
        answer = made.getresponse()
        assert answer.status == 200 and answer.read()
        made.close()


def test_a_certificate_is_replaced_while_clients_ask(daemon, authority, pair, tmp_path):
    half = tmp_path / "half.pem"
    ports = (daemon.grpc_port, daemon.http_port, daemon.metrics_port)
    serials = lambda: {serial(authority, port) for port in ports}
    (first,) = serials()
    with Load(daemon, authority) as load:
        renewed = authority.issue("second")
        put(renewed.certificate, pair[0])
        eventually(lambda: "is not the key of" in daemon.log(), "a pair of which one half has come is told")
        assert serials() == {first}
        put(renewed.key, pair[1])
        eventually(lambda: first not in serials() and len(serials()) == 1, "all ports show the new certificate")
        assert abs(told_end(daemon, authority) - time.time() - 2 * 86400) < 3600
        # Expired or truncated certificates are ignored.
        second = serials()
        put(authority.issue("third", days=-1).certificate, pair[0])
        eventually(lambda: "the certificate expired on" in daemon.log(), "a certificate that has expired is told")
        half.write_bytes(b"-----BEGIN CERTIFICATE-----\n")
        put(half, pair[0])
        eventually(lambda: "cannot be read" in daemon.log(), "half a certificate is told")
        assert serials() == second
        asked = load.asked
        eventually(lambda: load.asked > asked + 10 or load.failures, "clients are answered")
    put(renewed.certificate, pair[0])
    assert load.failures == []
    # Each is logged once, and not at every check.
    assert daemon.log().count("certificate not reloaded") == 3


@pytest.fixture(scope="module")
def mutual(repository, authority, pair, tmp_path_factory):
    """A daemon that requires client certificates, except for the metrics."""
    client = authority.issue("client")
    credentials = grpc.ssl_channel_credentials(
        authority.root.read_bytes(), client.key.read_bytes(), client.certificate.read_bytes()
    )
    flags = [f"--tls-cert={pair[0]}", f"--tls-key={pair[1]}", f"--tls-client-ca={authority.root}", "--plain-metrics",
             "--warm-up-seconds=0", "--http-address=0.0.0.0"]
    with Daemon(repository, *flags, log_folder=tmp_path_factory.mktemp("log"), credentials=credentials) as running:
        running.client = client
        yield running.await_ready()


def ask_with(daemon, authority, client):
    """The results of curl and gRPC with a client's certificate, or without one."""
    shown = ["--cert", client.certificate, "--key", client.key] if client else []
    http_code = curl(daemon.http_port, "/v2/health/live", "--cacert", authority.root, *shown)[0]
    of_client = (client.key.read_bytes(), client.certificate.read_bytes()) if client else ()
    credentials = grpc.ssl_channel_credentials(authority.root.read_bytes(), *of_client)
    with grpc.secure_channel(daemon.grpc_address, credentials, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        try:
            Vision(channel).list_models(predict_request(), timeout=DEADLINE_SECONDS)
            return http_code, grpc.StatusCode.OK
        except grpc.RpcError as error:
            return http_code, error.code()


def test_clients_show_certificates(mutual, authority, tmp_path):
    assert ask_with(mutual, authority, mutual.client) == (0, grpc.StatusCode.OK)
    stranger = Authority(tmp_path, "stranger").issue("client")
    for client in (None, stranger, authority.issue("client", days=-1)):
        code, status = ask_with(mutual, authority, client)
        assert code != 0 and status == grpc.StatusCode.UNAVAILABLE


def test_plain_metrics_are_for_everybody_and_so_is_health_beside_them(mutual):
    assert mutual.metrics().total("saccade_build_info") == 1
    for path in ("/v2/health/live", "/v2/health/ready"):
        assert mutual.get(path, mutual.metrics_port)[0] == 200
    for path in ("/v2", "/v2/models/tiny", "/v1/models", "/"):
        assert mutual.get(path, mutual.metrics_port)[0] == 404


def test_a_handshake_that_stalls_is_given_up(daemon, stalled):
    """Last in the file, because most of the stalled connections' time has passed by then."""
    begin = time.monotonic()
    for port, opened in stalled.items():
        for one in opened:
            one.settimeout(DEADLINE_SECONDS)
            try:
                # HTTP may send a TLS alert before it closes.
                while one.recv(100):
                    pass
            except ConnectionError:
                pass
    assert time.monotonic() - begin < DEADLINE_SECONDS
    assert daemon.process.poll() is None

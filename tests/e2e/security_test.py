"""Tests access control: tokens and their scopes over every protocol, and flags that the daemon rejects at start."""

import contextlib
import json
import os
import pathlib
import re
import urllib.error
import urllib.request
import uuid

import grpc
import pytest
import tritonclient.grpc as triton
import tritonclient.http as triton_http
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from google.protobuf import descriptor_pool
from tritonclient.utils import InferenceServerException

import pictures
from certificates import Authority
from harness import DEADLINE_SECONDS, Daemon, eventually, run_to_end, write_secret
from messages import Inference, Vision, infer_request, message, predict_request, stream

PREDICT, ADMIN, METRICS, BOTH = (f"{name}-0123456789abcdef" for name in ("predict", "admin", "metrics", "both"))
TOKENS = f"""# who may what
{PREDICT} predict
{ADMIN} admin
{METRICS}\tmetrics
{BOTH} predict,admin
"""
# Scopes of each token that the tests try.
SCOPES = {None: set(), "x" * 20: set(), PREDICT: {"predict"}, ADMIN: {"admin"}, METRICS: {"metrics"}}
UNKNOWN = (None, "x" * 20)

# Repeated here, so that an accidental change of what is open or needs an admin fails the test. All other calls need
# 'predict'.
OPEN_CALLS = {"ServerLive", "ServerReady", "Check", "Watch", "ServerReflectionInfo"}
ADMIN_CALLS = re.compile(r"RepositoryModel(Load|Unload)|(System|Cuda)SharedMemory\w+|TraceSetting|LogSettings")
OPEN_PATHS = re.compile(r"/v2/health/(live|ready)|/|/\w+\.(js|css|svg)|/openapi\.json")
ADMIN_PATHS = re.compile(r"/v1/capture|/v1/models/[^/]+/shadow/pictures/.*|/v2/repository/models/.*|/v2/logging|.*/trace/setting"
                         r"|/v2/(system|cuda)sharedmemory/.*")

REFUSALS = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def token_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    return write_secret(file, TOKENS)


@pytest.fixture(scope="module")
def daemon(repository, token_file, tmp_path_factory):
    """A daemon with tokens but without TLS, as behind a proxy on the same machine."""
    flags = [f"--token-file={token_file}", "--log-level=debug", "--warm-up-seconds=0"]
    with Daemon(repository, *flags, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


def bearer(token):
    return (("authorization", f"Bearer {token}"),) if token else ()


def code_of(channel, path, token, stream=False):
    """Status of a call without a message; OK for a stream that returns a response."""
    raw = {"request_serializer": bytes, "response_deserializer": bytes}
    try:
        if stream:
            call = channel.stream_stream(path, **raw)(iter([]), metadata=bearer(token), timeout=DEADLINE_SECONDS)
            next(call, None)
            call.cancel()
        else:
            channel.unary_unary(path, **raw)(b"", metadata=bearer(token), timeout=DEADLINE_SECONDS)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def fetch(daemon, path, token=None, method="GET", port=None, headers=()):
    """Returns (status, headers, body)."""
    headers = {**dict(headers), **({"Authorization": f"Bearer {token}"} if token else {})}
    url = f"http://127.0.0.1:{port or daemon.http_port}{path}"
    request = urllib.request.Request(url, method=method, headers=headers, data=b"{}" if method == "POST" else None)
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def every_method(channel):
    """Yields (path, name) of every method that the daemon's reflection lists."""
    types = ProtoReflectionDescriptorDatabase(channel)
    pool = descriptor_pool.DescriptorPool(types)
    for service in types.get_services():
        for method in pool.FindServiceByName(service).methods:
            yield f"/{service}/{method.name}", method.name


def test_every_grpc_method_asks_for_its_scope(daemon):
    with daemon.channel() as channel:
        methods = list(every_method(channel))
        assert len(methods) >= 28 and {"PredictStream", "Restore", "ModelStreamInfer"} <= {name for _, name in methods}
        wrong = []
        for path, name in methods:
            needed = "open" if name in OPEN_CALLS else "admin" if ADMIN_CALLS.fullmatch(name) else "predict"
            for token, scopes in SCOPES.items():
                code = code_of(channel, path, token, name in ("PredictStream", "Restore", "ModelStreamInfer", "Watch"))
                expected = (None if needed in {"open", *scopes} else REFUSALS[0] if token in UNKNOWN else REFUSALS[1])
                if (code if code in REFUSALS else None) != expected:
                    wrong.append((path, token, code))
    assert not wrong


def test_a_grpc_method_that_nobody_classified_is_for_nobody(daemon):
    with daemon.channel() as channel:
        for path in ("/saccade.v1.Vision/Later", "/later.Service/Method", "/saccade.v1.Vision/Predict/", "/grpc.health.v1.Health/Set"):
            assert code_of(channel, path, None) == grpc.StatusCode.UNAUTHENTICATED
            assert code_of(channel, path, BOTH) == grpc.StatusCode.PERMISSION_DENIED


def every_route(daemon):
    """Yields (method, path with each {name} filled in) of every route that the daemon lists."""
    for port, token in ((daemon.http_port, None), (daemon.metrics_port, None)):
        told = fetch(daemon, "/nowhere", token, port=port)[2]
        for path in re.findall(r"(/[^ ,\"]*)", told.partition("there are ")[2]):
            filled = path.replace("{model}", "tiny").replace("{version}", "1").replace("{region}", "none")
            allowed = fetch(daemon, filled, method="OPTIONS", port=port)[1]["Allow"].split(", ")
            for method in set(allowed) & {"GET", "POST"}:
                yield method, filled, port


def test_every_http_route_asks_for_its_scope(daemon):
    routes = list(every_route(daemon))
    assert len(routes) >= 45
    wrong = []
    for method, path, port in routes:
        needed = ("metrics" if path == "/metrics" else "open" if OPEN_PATHS.fullmatch(path)
                  else "admin" if ADMIN_PATHS.fullmatch(path) else "predict")
        for token, scopes in SCOPES.items():
            status = fetch(daemon, path, token, method, port)[0]
            expected = None if needed in {"open", *scopes} else 401 if token in UNKNOWN else 403
            if (status if status in (401, 403) else None) != expected:
                wrong.append((method, path, token, status))
    assert not wrong


def test_http_says_what_is_missing(daemon):
    status, headers, body = fetch(daemon, "/v2/models/tiny")
    assert (status, headers["WWW-Authenticate"]) == (401, 'Bearer realm="saccade"') and "Bearer TOKEN" in body
    status, headers, _ = fetch(daemon, "/v2/models/tiny", "x" * 20)
    assert status == 401 and 'error="invalid_token"' in headers["WWW-Authenticate"]
    status, headers, body = fetch(daemon, "/v2/logging", PREDICT)
    assert status == 403 and 'scope="admin"' in headers["WWW-Authenticate"] and "'admin'" in body
    # The body of an unauthorized request is not read, so the connection must be closed.
    status, headers, _ = fetch(daemon, "/v1/predict", method="POST", headers={"Content-Type": "application/json"})
    assert (status, headers["Connection"]) == (401, "close")
    assert fetch(daemon, "/v2/models/tiny", headers={"Authorization": "Basic dXNlcjp3b3Jk"})[0] == 401


def test_tritons_clients_are_let_in(daemon, tiny):
    headers = {"authorization": f"Bearer {PREDICT}"}
    batch = tiny.random_batch(1, seed=1)
    for module, port in ((triton, daemon.grpc_port), (triton_http, daemon.http_port)):
        with module.InferenceServerClient(f"127.0.0.1:{port}") as client:
            assert client.is_server_ready()
            tensor = module.InferInput("image", list(batch.shape), "FP32")
            tensor.set_data_from_numpy(batch)
            assert client.infer("tiny", [tensor], headers=dict(headers)).as_numpy("logits").shape == (1, tiny.classes)
            with pytest.raises(InferenceServerException, match="token"):
                client.infer("tiny", [tensor])
            with pytest.raises(InferenceServerException, match="admin"):
                client.unload_model("tiny", headers=dict(headers))


def test_a_picture_is_classified_with_a_token(daemon):
    request = predict_request(model="tiny", encoded=pictures.encoded(pictures.pixels(1)))
    with daemon.vision() as vision:
        assert len(vision.predict(request, metadata=bearer(BOTH)).classification.classes) == 5
        with pytest.raises(grpc.RpcError) as refused:
            vision.predict(request)
    assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED and "Bearer TOKEN" in refused.value.details()


def replace(file, text):
    """At once, so that the daemon reads either all of the old text or all of the new one."""
    os.replace(write_secret(file.with_suffix(".new"), text), file)


def test_tokens_come_and_go_while_it_runs(daemon, token_file):
    later = "later-0123456789"
    status = lambda token: fetch(daemon, "/v2/models/tiny", token)[0]
    try:
        replace(token_file, TOKENS.replace(f"{PREDICT} predict", f"{later} predict"))
        eventually(lambda: status(later) == 200, "a new token is known")
        assert status(PREDICT) == 401 and status(BOTH) == 200
        replace(token_file, f"{later}\n{PREDICT} predict\n")
        eventually(lambda: "line 1: has 1 word" in daemon.log(), "the log tells what is wrong with the file")
        assert status(later) == 200 and status(PREDICT) == 401
    finally:
        replace(token_file, TOKENS)
        eventually(lambda: status(PREDICT) == 200, "the tokens are back")
    assert daemon.log().count("tokens not reloaded") == 1


def infer(channel, kind, model, token, tensor):
    """The code of a call that computes `model`, in one of the ways there are; an error's text on a stream."""
    request = predict_request(model=model, encoded=pictures.encoded(pictures.pixels(1), "JPEG"))
    try:
        if kind == "predict":
            Vision(channel).predict(request, metadata=bearer(token))
        elif kind == "predict stream":
            request = message("saccade.v1.PredictStreamRequest")(request=request)
            answer = next(Vision(channel).predict_stream(iter([request]), metadata=bearer(token)))
            return answer.error.message or grpc.StatusCode.OK
        elif kind == "infer":
            Inference(channel).model_infer(infer_request(model, tensor.shape, tensor.tobytes()), metadata=bearer(token))
        elif kind == "infer stream":
            call = stream(channel, "inference.GRPCInferenceService", "ModelStreamInfer")
            answer = next(call(iter([infer_request(model, tensor.shape, tensor.tobytes())]), metadata=bearer(token)))
            return answer.error_message or grpc.StatusCode.OK
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def test_a_token_computes_its_models_alone(start, repository, tiny, tmp_path):
    tensor = tiny.random_batch(1, seed=0)
    limited, free = "limited-0123456789abcdef", "free-0123456789abcdef"
    tokens = write_secret(tmp_path / "tokens", f"{limited} predict:tiny\n{free} predict\n")
    daemon = start(repository, f"--token-file={tokens}", "--warm-up-seconds=0").await_ready()
    with daemon.channel() as channel:
        for kind in ("predict", "predict stream", "infer", "infer stream"):
            assert infer(channel, kind, "tiny", limited, tensor) == grpc.StatusCode.OK, kind
            assert infer(channel, kind, "gathering", free, tensor) == grpc.StatusCode.OK, kind
            refused = infer(channel, kind, "gathering", limited, tensor)
            assert refused == grpc.StatusCode.PERMISSION_DENIED or "limited to other models" in str(refused), (kind, refused)
    picture = pictures.encoded(pictures.pixels(1), "JPEG")
    for model, token, expected in (("tiny", limited, 200), ("gathering", limited, 403), ("gathering", free, 200)):
        request = urllib.request.Request(f"http://127.0.0.1:{daemon.http_port}/v1/predict/{model}", picture,
                                         {"Authorization": f"Bearer {token}", "Content-Type": "image/jpeg"})
        try:
            status = urllib.request.urlopen(request, timeout=DEADLINE_SECONDS).status
        except urllib.error.HTTPError as error:
            status = error.code
        assert status == expected, (model, token)


def test_shared_memory_belongs_to_its_token(start, repository, tmp_path):
    one, two = "one-0123456789abcdef", "two-0123456789abcdef"
    tokens = write_secret(tmp_path / "tokens", f"{one} admin\n{two} admin\n")
    daemon = start(repository, f"--token-file={tokens}", "--allow-shared-memory", "--warm-up-seconds=0").await_ready()
    key = f"saccade_test_{uuid.uuid4().hex}"
    file = pathlib.Path("/dev/shm") / key
    write_secret(file, "0123456789")
    try:
        url = f"http://127.0.0.1:{daemon.http_port}/v2/systemsharedmemory"

        def post(path, token, body=b"{}"):
            request = urllib.request.Request(url + path, body, {"Authorization": f"Bearer {token}"})
            with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
                return answer.status

        regions = lambda token: len(json.loads(fetch(daemon, "/v2/systemsharedmemory/status", token)[2]))
        body = json.dumps({"key": key, "offset": 0, "byte_size": 10}).encode()
        assert post("/region/r/register", one, body) == 200
        assert [regions(one), regions(two)] == [1, 0]
        post("/unregister", two)
        post("/region/r/unregister", two)
        assert regions(one) == 1
        assert post("/region/r/register", two, body) == 200, "names of others are free"
    finally:
        file.unlink()


def test_a_withdrawn_token_loses_its_shared_memory(start, repository, tmp_path):
    one, two = "one-0123456789abcdef", "two-0123456789abcdef"
    tokens = write_secret(tmp_path / "tokens", f"{one} admin\n{two} admin\n")
    daemon = start(repository, f"--token-file={tokens}", "--allow-shared-memory", "--warm-up-seconds=0").await_ready()
    file = pathlib.Path("/dev/shm") / f"saccade_test_{uuid.uuid4().hex}"
    write_secret(file, "0123456789")

    def target(link):
        # The daemon may have closed the file since it was listed.
        with contextlib.suppress(FileNotFoundError):
            return os.readlink(link)

    def open_files():
        return sum(target(link) == str(file) for link in pathlib.Path(f"/proc/{daemon.process.pid}/fd").iterdir())

    try:
        body = json.dumps({"key": file.name, "offset": 0, "byte_size": 10}).encode()
        for token in (one, two):
            url = f"http://127.0.0.1:{daemon.http_port}/v2/systemsharedmemory/region/r/register"
            request = urllib.request.Request(url, body, {"Authorization": f"Bearer {token}"})
            with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
                assert answer.status == 200
        assert open_files() == 2
        tokens.write_text(f"{two} admin\n")
        eventually(lambda: open_files() == 1, "the region of the token that was withdrawn is released")
        assert len(json.loads(fetch(daemon, "/v2/systemsharedmemory/status", two)[2])) == 1
    finally:
        file.unlink()


def test_no_token_stands_in_the_log(daemon):
    """Covers everything sent above, with debug lines."""
    log = daemon.log()
    assert "tokens loaded" in log
    for token in (PREDICT, ADMIN, METRICS, BOTH, "x" * 20, "later-0123456789"):
        assert token not in log


@pytest.fixture(scope="module")
def wrong_files(authority, tmp_path_factory):
    """Files by name: valid ones and ones with different defects."""
    folder = tmp_path_factory.mktemp("wrong")
    good, other, expired = authority.issue("here"), authority.issue("other"), authority.issue("here", days=-1)
    write_secret(folder / "tokens", TOKENS)
    write_secret(folder / "no-tokens", f"\n{PREDICT} everything\n")
    (folder / "open-tokens").write_text(TOKENS)
    (folder / "open-tokens").chmod(0o644)
    open_key = folder / "open.key"
    open_key.write_bytes(good.key.read_bytes())
    open_key.chmod(0o604)
    return {"CERT": good.certificate, "KEY": good.key, "OTHER": other.key, "OLD": expired.certificate, "OLD_KEY": expired.key,
            "TOKENS": folder / "tokens", "NO_TOKENS": folder / "no-tokens", "OPEN_TOKENS": folder / "open-tokens",
            "OPEN_KEY": open_key}


# Flags, exit code, and words that the message must contain. Other errors are in the unit tests of server/security,
# because starting a daemon takes a second.
REFUSED = [
    ("--host=127.0.0.1 --grpc-address=0.0.0.0", 2, ["0.0.0.0", "--host 127.0.0.1", "--token-file", "--tls-client-ca", "--insecure"]),
    ("--host=0.0.0.0 --token-file=TOKENS", 2, ["sends tokens unencrypted over the network", "--tls-cert"]),
    ("--tls-cert=CERT --tls-key=OTHER", 1, ["--tls-key", "OTHER", "is not the key of", "CERT"]),
    ("--tls-cert=OLD --tls-key=OLD_KEY", 1, ["--tls-cert", "OLD", "the certificate expired on"]),
    ("--token-file=NO_TOKENS", 1, ["--token-file", "NO_TOKENS", "line 2", "not a list of scopes"]),
    ("--token-file=OPEN_TOKENS", 1, ["--token-file", "OPEN_TOKENS", "its mode is 0644", "chmod 600"]),
    ("--tls-cert=CERT --tls-key=OPEN_KEY", 1, ["--tls-key", "OPEN_KEY", "its mode is 0604", "chmod 600"]),
]


@pytest.mark.parametrize("given, code, said", REFUSED, ids=[given for given, _, _ in REFUSED])
def test_what_it_refuses_to_be_started_with(repository, wrong_files, given, code, said):
    filled = lambda text: re.sub(r"\b[A-Z_]{3,}\b", lambda name: str(wrong_files[name[0]]), text)
    host = [] if "--host" in given else ["--host=127.0.0.1"]
    ports = [f"--{name}-port=0" for name in ("grpc", "http", "metrics")]
    ended = run_to_end(f"--model-repository={repository}", *host, *ports, *filled(given).split())
    assert ended.returncode == code, ended.stderr
    for part in said:
        assert filled(part) in ended.stderr
    assert PREDICT not in ended.stderr

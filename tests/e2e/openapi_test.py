"""Tests /openapi.json against the daemon: schemathesis sends what the document allows, and what it does not. Every response
must be one that the document describes."""

import http.client
import json

import hypothesis
import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import pictures
from harness import DEADLINE_SECONDS, Daemon, eventually

# For each operation, valid and invalid.
EXAMPLES = 15
CHECKS = [content_type_conformance, response_headers_conformance, response_schema_conformance, status_code_conformance]
METHODS = {"get", "post", "put", "delete", "patch"}
PICTURE = pictures.encoded(pictures.pixels(1, 131, 75))
MODELS = ["detector", "segmenter", "stereo"]
FILES = st.sampled_from([PICTURE, b"", b"no picture"]) | st.binary(max_size=100)
SETTINGS = hypothesis.settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
    phases=[hypothesis.Phase.generate], suppress_health_check=list(hypothesis.HealthCheck),
)


@pytest.fixture(scope="module")
def daemon(tasks_repository, tmp_path_factory):
    with Daemon(tasks_repository, "--allow-shared-memory", log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()
        assert running.process.poll() is None, "the daemon ended"
        eventually(lambda: running.metrics().total("saccade_inflight_requests") == 0, "nothing was in flight")


@pytest.fixture(scope="module")
def document(daemon):
    status, headers, body = daemon.get("/openapi.json")
    assert status == 200 and headers["Content-Type"] == "application/json"
    return json.loads(body)


@pytest.fixture(scope="module")
def operations(daemon, document):
    """Those of the HTTP port, by name."""
    for path in document["paths"].values():
        for operation in path.values():
            for media_type in operation.get("requestBody", {}).get("content", ()):
                if media_type != "application/json":
                    schemathesis.openapi.media_type(media_type, FILES)
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=f"http://127.0.0.1:{daemon.http_port}")
    schema.validate()
    made = {found.ok().label: found.ok() for found in schema.get_all_operations()}
    assert len(made) == sum(map(len, document["paths"].values()))
    # It is on the metrics port.
    del made["GET /metrics"]
    return made


def send_all(operation, mode):
    """Sends generated requests. Some name a model that exists."""

    @SETTINGS
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode), model=st.sampled_from([None, *MODELS]))
    def send(case, model):
        if model and "model" in case.path_parameters:
            case.path_parameters["model"] = model
        response = case.call(timeout=DEADLINE_SECONDS)
        # A status above 499 is a fault unless the operation is described with it.
        described = operation.definition.raw["responses"]
        assert response.status_code < 500 or str(response.status_code) in described, (case.as_curl_command(), response.text)
        if response.status_code >= 400:
            assert json.loads(response.text)["error"]
        case.validate_response(response, checks=CHECKS)

    send()


def failures(operations, mode):
    failed = {}
    for name, operation in operations.items():
        # Without a body nothing is invalid: every text is a model's name.
        if mode == GenerationMode.NEGATIVE and "requestBody" not in operation.definition.raw:
            continue
        try:
            send_all(operation, mode)
        except BaseException as error:
            failed[name] = f"{type(error).__name__}: {error}"[:2000]
    return failed


def test_valid_requests(operations):
    assert failures(operations, GenerationMode.POSITIVE) == {}


def test_invalid_requests(operations):
    assert failures(operations, GenerationMode.NEGATIVE) == {}


def ask(daemon, method, path, body=None, headers=()):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.http_port, timeout=DEADLINE_SECONDS)
    try:
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def paths_of(document):
    for path, operations in document["paths"].items():
        if path != "/metrics":
            yield path.replace("{model}", "detector").replace("{version}", "1").replace("{region}", "r"), operations


def test_other_methods(daemon, document):
    for path, operations in paths_of(document):
        for method in METHODS - operations.keys():
            status, headers, body = ask(daemon, method.upper(), path)
            assert status == 405, (method, path, body)
            allowed = {one.strip().lower() for one in headers["Allow"].split(",")} - {"head", "options"}
            assert allowed == operations.keys() and json.loads(body)["error"]


def test_other_media_types(daemon, document):
    sent = 0
    for path, operations in paths_of(document):
        if "post" in operations:
            status, _, body = ask(daemon, "POST", path, b"{}", {"Content-Type": "text/plain"})
            assert status == 415 and "application/" in json.loads(body)["error"], (path, body)
            sent += 1
    assert sent > 10


def test_a_model_that_exists(daemon, document):
    """The examples above are mostly errors. These are not, and have everything that the document requires."""
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=f"http://127.0.0.1:{daemon.http_port}")
    for path, body in (
        ("/v1/predict/{model}", PICTURE),
        ("/v2/models/{model}/infer", json.dumps({"inputs": [], "parameters": {"binary_data_output": False}}).encode()),
    ):
        case = schema[path]["POST"].Case(path_parameters={"model": "detector"})
        response = case.call(data=body, headers={"Content-Type": "application/octet-stream"})
        assert response.status_code == (200 if body is PICTURE else 400), response.text
        case.validate_response(response, checks=CHECKS)
    for path in ("", "/ready", "/config", "/stats"):
        case = schema["/v2/models/{model}" + path]["GET"].Case(path_parameters={"model": "detector"})
        response = case.call()
        assert response.status_code == 200, response.text
        case.validate_response(response, checks=CHECKS)

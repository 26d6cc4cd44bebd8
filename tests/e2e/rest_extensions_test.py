"""Tests Triton's extensions over HTTP with its own client: the responses must be the same as over gRPC."""

import json
import subprocess

import grpc
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton
from google.protobuf import json_format
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException

import pictures
from harness import eventually
from messages import message, predict_request
from tiny_models import TinyModel, assert_close, write_model


@pytest.fixture(scope="module")
def client(daemon):
    with triton.InferenceServerClient(f"127.0.0.1:{daemon.http_port}") as made:
        yield made


@pytest.fixture(scope="module")
def grpc_client(daemon):
    with triton_grpc.InferenceServerClient(daemon.grpc_address) as made:
        yield made


def refusal(call, *arguments, **named):
    """(status, message) of a call that must fail; the status is HTTP's number or the name of gRPC's code."""
    with pytest.raises(InferenceServerException) as error:
        call(*arguments, **named)
    status = error.value.status().removeprefix("StatusCode.")
    return int(status) if status.isdigit() else status, error.value.message()


def tensor_input(array):
    made = triton.InferInput("image", list(array.shape), "FP32")
    made.set_data_from_numpy(array)
    return made


def curl(daemon, path, *arguments):
    """Runs curl; returns (status, body)."""
    command = ["curl", "-sS", "--max-time", "30", "-w", "\n%{http_code}", *arguments]
    done = subprocess.run(
        [*command, f"http://127.0.0.1:{daemon.http_port}{path}"], capture_output=True, check=True, text=True
    )
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body


def works(client, tiny, extension):
    """Whether a call that uses the extension has the expected result."""
    batch = tiny.random_batch(1, seed=1)
    if extension == "binary_tensor_data":
        return client.infer("tiny", [tensor_input(batch)]).as_numpy("logits").shape == (1, tiny.classes)
    if extension == "classification":
        wanted = [triton.InferRequestedOutput("logits", class_count=2)]
        return client.infer("tiny", [tensor_input(batch)], outputs=wanted).as_numpy("logits").shape == (1, 2)
    if extension == "schedule_policy":
        answer = client.infer("tiny", [tensor_input(batch)], priority=0, timeout=10_000_000)
        return answer.as_numpy("logits") is not None
    if extension == "model_configuration":
        return client.get_model_config("tiny")["name"] == "tiny"
    if extension == "model_repository":
        return {model["name"] for model in client.get_model_repository_index()} == {"tiny", "gathering"}
    if extension == "statistics":
        return client.get_inference_statistics("tiny")["model_stats"][0]["inference_count"] > 0
    if extension == "logging":
        return client.get_log_settings()["log_error"]
    raise AssertionError(f"{extension} is advertised, and no test calls it")


def test_what_is_advertised_works(client, grpc_client, tiny):
    extensions = client.get_server_metadata()["extensions"]
    assert len(extensions) == len(set(extensions))
    assert set(extensions) == {"binary_tensor_data", *grpc_client.get_server_metadata().extensions}
    for extension in extensions:
        assert works(client, tiny, extension), extension


def test_shared_memory_is_not_advertised_unless_it_is_allowed(client):
    assert "system_shared_memory" not in client.get_server_metadata()["extensions"]
    status, text = refusal(client.register_system_shared_memory, "region", "/anything", 8)
    assert status == 501 and "--allow-shared-memory" in text
    assert client.get_system_shared_memory_status() == []
    client.unregister_system_shared_memory()
    made = triton.InferInput("image", [1, 3, 56, 56], "FP32")
    made.set_shared_memory("region", 4 * 3 * 56 * 56)
    assert refusal(client.infer, "tiny", [made])[0] == 501


def test_there_is_no_cuda_shared_memory(client):
    assert client.get_cuda_shared_memory_status() == []
    assert refusal(client.get_cuda_shared_memory_status, "region")[0] == 404
    client.unregister_cuda_shared_memory()
    client.unregister_cuda_shared_memory("region")
    assert refusal(client.register_cuda_shared_memory, "region", b"\0" * 64, 0, 8)[0] == 501


def test_trace_settings_are_not_supported(client):
    assert refusal(client.get_trace_settings)[0] == 503
    assert refusal(client.get_trace_settings, "tiny")[0] == 503
    assert refusal(client.update_trace_settings, settings={"trace_rate": "1"})[0] == 503
    status, text = refusal(client.update_trace_settings, "tiny", {"trace_level": ["TIMESTAMPS"], "trace_rate": None})
    assert status == 503 and "trace extension is not supported" in text and "OTEL_EXPORTER_OTLP_ENDPOINT" in text


@pytest.mark.parametrize("version", ["", "1"])
def test_configuration_is_that_of_grpc(client, grpc_client, version):
    config = client.get_model_config("gathering", version)
    same = json_format.ParseDict(config, service_pb2.ModelConfigResponse().config)
    assert same == grpc_client.get_model_config("gathering", version).config
    # As Triton writes it: numbers are numbers, and fields with default values are present.
    assert config["dynamic_batching"]["max_queue_delay_microseconds"] == 100_000
    assert config["input"][0]["dims"] == list(same.input[0].dims)
    assert config["input"][0]["data_type"] == "TYPE_FP32"
    assert config["input"][0]["optional"] is False
    assert config["version_policy"] == {"latest": {"num_versions": 1}}
    assert "sequence_batching" not in config and "response_cache" not in config


def test_a_configuration_that_is_not_there(client):
    assert refusal(client.get_model_config, "no_such_model")[0] == 404
    assert refusal(client.get_model_config, "tiny", "7")[0] == 404
    assert refusal(client.get_model_config, "tiny", "x")[0] == 400


def test_statistics_are_those_of_grpc(client, grpc_client, tiny):
    client.infer("tiny", [tensor_input(tiny.random_batch(2, seed=1))])

    def same():
        """Queries over both protocols, with no request ending in between."""
        over_http = client.get_inference_statistics("tiny", "1")
        parsed = json_format.ParseDict(over_http, service_pb2.ModelStatisticsResponse())
        return parsed == grpc_client.get_inference_statistics("tiny", "1")

    eventually(same, "both protocols tell the same")
    (model,) = client.get_inference_statistics("tiny")["model_stats"]
    assert (model["name"], model["version"]) == ("tiny", "1")
    assert isinstance(model["inference_count"], int) and model["inference_count"] >= 2
    assert isinstance(model["inference_stats"]["success"]["ns"], int)
    assert model["last_inference"] > 1_600_000_000_000
    everything = client.get_inference_statistics()["model_stats"]
    assert {(one["name"], one["version"]) for one in everything} == {("tiny", "1"), ("gathering", "1")}
    assert refusal(client.get_inference_statistics, "tiny", "2")[0] == 404
    assert refusal(client.get_inference_statistics, "no_such_model")[0] == 404


def test_the_repository_by_calls(start, repository, tiny):
    daemon = start(repository, "--model-control-mode=explicit", "--load-model=tiny").await_ready()
    batch = tiny.random_batch(1, seed=1)
    with triton.InferenceServerClient(f"127.0.0.1:{daemon.http_port}") as client:
        states = lambda: {model["name"]: model["state"] for model in client.get_model_repository_index()}
        assert states() == {"tiny": "READY", "gathering": "UNAVAILABLE"}
        index = json.loads(curl(daemon, "/v2/repository/index", "-d", '{"ready": true}')[1])
        assert index == [{"name": "tiny", "version": "1", "state": "READY", "reason": ""}]
        client.load_model("gathering")
        assert states() == {"tiny": "READY", "gathering": "READY"}
        assert client.infer("gathering", [tensor_input(batch)]).as_numpy("logits") is not None
        client.unload_model("tiny", unload_dependents=True)
        assert not client.is_model_ready("tiny")
        assert states()["tiny"] == "UNAVAILABLE"
        assert refusal(client.infer, "tiny", [tensor_input(batch)])[0] == 503
        # As in Triton, it replaces the whole config.pbtxt.
        parameters = {"architecture": tiny.architecture, **tiny.options}
        config = {"max_batch_size": 2, "parameters": {key: {"string_value": parameters[key]} for key in parameters}}
        client.load_model("tiny", config=json.dumps(config))
        assert client.get_model_config("tiny")["max_batch_size"] == 2
        assert refusal(client.load_model, "no_such_model")[0] == 404
        assert refusal(client.load_model, "tiny", config="{")[0] == 400
        for body, status, words in [
            ('{"parameters":{"file:1/model":"eA==","config":"{}"}}', 501, "files are not accepted"),
            ('{"parameters":{"config":3}}', 400, "string of JSON"),
            ('{"parameters":{"colour":"red"}}', 400, "'colour'"),
            ('{"parameters":[]}', 400, "expected an object"),
            ("{", 400, "not valid JSON"),
        ]:
            got, answer = curl(daemon, "/v2/repository/models/tiny/load", "-d", body)
            assert got == status and words in json.loads(answer)["error"], answer
        assert curl(daemon, "/v2/repository/models/tiny/load", "-X", "POST") == (200, "")
        assert client.get_model_config("tiny")["max_batch_size"] == 8


def test_loads_by_calls_need_the_mode_for_them(client):
    assert refusal(client.load_model, "tiny")[0] == 400
    status, text = refusal(client.unload_model, "tiny")
    assert status == 400 and "--model-control-mode=explicit" in text


def test_log_settings(start, repository):
    daemon = start(repository).await_ready()
    with triton.InferenceServerClient(f"127.0.0.1:{daemon.http_port}") as client:
        settings = client.get_log_settings()
        assert settings == {"log_file": "", "log_info": True, "log_warning": True, "log_error": True,
                            "log_verbose_level": 0, "log_format": "ISO8601"}
        assert client.update_log_settings(settings) == settings
        changed = client.update_log_settings({"log_info": False, "log_verbose_level": 1})
        assert changed == {**settings, "log_info": False, "log_verbose_level": 1} == client.get_log_settings()
        assert refusal(client.update_log_settings, {"log_info": True, "log_file": "/tmp/log"})[0] == 501
        assert refusal(client.update_log_settings, {"log_format": "default"})[0] == 501
        assert refusal(client.update_log_settings, {"log_verbose_level": True})[0] == 400
        assert refusal(client.update_log_settings, {"log_verbose_level": 2**32})[0] == 400
        status, text = refusal(client.update_log_settings, {"log_colour": True})
        assert status == 400 and "log_colour" in text
        # A rejected call changes no setting.
        assert client.get_log_settings() == changed
    daemon.terminate()
    assert daemon.exit_code() == 0
    assert "drained" not in daemon.log()


def test_versions_by_their_labels(start, tiny, tmp_path):
    """Labels are accepted in every protocol, wherever a version can be given."""
    root = tmp_path / "models"
    write_model(root, "tiny", tiny, parameters={"version_labels": "stable=1,canary=2"})
    newer = TinyModel(classes=5, seed=9)
    write_model(tmp_path / "other", "tiny", newer)
    (tmp_path / "other" / "tiny" / "1").rename(root / "tiny" / "2")
    with open(root / "tiny" / "config.pbtxt", "a") as file:
        file.write("version_policy { all { } }\n")
    daemon = start(root).await_ready()
    batch = tiny.random_batch(1, seed=1)
    old, new = ("1", tiny.logits(batch)), ("2", newer.logits(batch))
    expected = {"stable": old, "canary": new, "": new}
    with triton.InferenceServerClient(f"127.0.0.1:{daemon.http_port}") as over_http, triton_grpc.InferenceServerClient(
        daemon.grpc_address
    ) as over_grpc:
        grpc_input = triton_grpc.InferInput("image", batch.shape, "FP32")
        grpc_input.set_data_from_numpy(batch)
        for label, (version, logits) in expected.items():
            for answer in (
                over_http.infer("tiny", [tensor_input(batch)], model_version=label),
                over_grpc.infer("tiny", [grpc_input], model_version=label),
            ):
                assert_close(answer.as_numpy("logits"), logits)
            streamed = []
            over_grpc.start_stream(lambda result, error: streamed.append((result, error)))
            over_grpc.async_stream_infer("tiny", [grpc_input], model_version=label)
            over_grpc.stop_stream()
            ((result, error),) = streamed
            assert error is None
            assert result.get_response().model_version == version
            if not label:
                continue
            assert over_http.is_model_ready("tiny", label) and over_grpc.is_model_ready("tiny", label)
            assert over_http.get_model_metadata("tiny", label)["versions"] == [version]
            assert list(over_grpc.get_model_metadata("tiny", label).versions) == [version]
            assert over_http.get_model_config("tiny", label)["name"] == "tiny"
            assert over_grpc.get_model_config("tiny", label).config.name == "tiny"
            (stats,) = over_http.get_inference_statistics("tiny", label)["model_stats"]
            assert stats["version"] == version
            (stats,) = over_grpc.get_inference_statistics("tiny", label).model_stats
            assert stats.version == version
        for unknown in ("best", " 1", "01", "+1"):
            in_a_path = unknown.replace(" ", "%20")
            status, text = refusal(over_http.infer, "tiny", [tensor_input(batch)], model_version=in_a_path)
            assert status == 400 and "labels canary, stable" in text
            status, text = refusal(over_grpc.infer, "tiny", [grpc_input], model_version=unknown)
            assert status == "INVALID_ARGUMENT" and "labels canary, stable" in text
    with daemon.vision() as vision:
        picture = pictures.encoded(pictures.pixels(0))
        for label, (version, _) in expected.items():
            sent = predict_request(model="tiny", version_label=label, encoded=picture)
            assert vision.predict(sent).version == int(version)
            described = vision.get_model(message("saccade.v1.GetModelRequest")(model="tiny", version_label=label))
            assert described.version == int(version)
        for version, label in ((0, "best"), (1, "canary")):
            with pytest.raises(grpc.RpcError) as error:
                vision.predict(predict_request(model="tiny", version=version, version_label=label, encoded=picture))
            assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT

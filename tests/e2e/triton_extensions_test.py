"""Tests Triton's extensions with its client: statistics, configuration, log settings, and unsupported ones."""

import concurrent.futures
import json

import numpy
import pytest
import tritonclient.grpc as triton

from harness import eventually
from messages import Inference, infer_request, message
from tiny_models import Identity, TinyModel, write_model
from triton_calls import refusal, tensor_input

FAIL = 13


@pytest.fixture(scope="module")
def client(daemon):
    with triton.InferenceServerClient(daemon.grpc_address) as made:
        yield made


def works(client, tiny, extension):
    """Whether a call that uses the extension has the expected result."""
    batch = [tensor_input(tiny.random_batch(1, seed=1))]
    if extension == "classification":
        wanted = [triton.InferRequestedOutput("logits", class_count=2)]
        return client.infer("tiny", batch, outputs=wanted).as_numpy("logits").shape == (1, 2)
    if extension == "schedule_policy":
        return client.infer("tiny", batch, priority=0, timeout=10_000_000).as_numpy("logits") is not None
    if extension == "model_configuration":
        return client.get_model_config("tiny").config.name == "tiny"
    if extension == "model_repository":
        return {model.name for model in client.get_model_repository_index().models} == {"tiny", "gathering"}
    if extension == "statistics":
        return client.get_inference_statistics("tiny").model_stats[0].inference_count > 0
    if extension == "logging":
        return client.get_log_settings().settings["log_error"].bool_param
    raise AssertionError(f"{extension} is advertised, and no test calls it")


def test_what_is_advertised_works(client, tiny):
    extensions = list(client.get_server_metadata().extensions)
    assert len(extensions) == len(set(extensions)) >= 5
    for extension in extensions:
        assert works(client, tiny, extension), extension


def test_shared_memory_is_not_advertised_unless_it_is_allowed(client):
    assert "system_shared_memory" not in client.get_server_metadata().extensions
    code, text = refusal(client.register_system_shared_memory, "region", "/anything", 8)
    assert code == "UNIMPLEMENTED" and "--allow-shared-memory" in text
    assert not client.get_system_shared_memory_status().regions
    client.unregister_system_shared_memory()


def test_there_is_no_cuda_shared_memory(client):
    assert not client.get_cuda_shared_memory_status().regions
    client.unregister_cuda_shared_memory()
    assert refusal(client.register_cuda_shared_memory, "region", b"\0" * 64, 0, 8)[0] == "UNIMPLEMENTED"


def test_trace_settings_are_not_supported(client):
    assert refusal(client.get_trace_settings)[0] == "UNAVAILABLE"
    assert refusal(client.update_trace_settings, settings={"trace_rate": "1"})[0] == "UNAVAILABLE"
    assert "trace" not in client.get_server_metadata().extensions


def test_the_repository_by_calls(start, repository, tiny):
    daemon = start(repository, "--model-control-mode=explicit", "--load-model=tiny").await_ready()
    batch = tiny.random_batch(1, seed=1)
    with triton.InferenceServerClient(daemon.grpc_address) as client:
        states = lambda: {model.name: model.state for model in client.get_model_repository_index().models}
        assert states() == {"tiny": "READY", "gathering": "UNAVAILABLE"}
        client.load_model("gathering")
        assert states() == {"tiny": "READY", "gathering": "READY"}
        assert client.infer("gathering", [tensor_input(batch)]).as_numpy("logits") is not None
        client.unload_model("tiny", unload_dependents=True)
        assert not client.is_model_ready("tiny")
        assert states()["tiny"] == "UNAVAILABLE"
        assert refusal(client.infer, "tiny", [tensor_input(batch)])[0] == "UNAVAILABLE"
        # As in Triton, it replaces the whole config.pbtxt.
        parameters = {"architecture": tiny.architecture, **tiny.options}
        config = {"max_batch_size": 2, "parameters": {key: {"string_value": parameters[key]} for key in parameters}}
        client.load_model("tiny", config=json.dumps(config))
        assert client.get_model_config("tiny").config.max_batch_size == 2
        assert refusal(client.load_model, "tiny", files={"file:1/model": b""}, config="{}")[0] == "UNIMPLEMENTED"
        refusal(client.load_model, "no_such_model")


def test_an_unloaded_model_gives_its_memory_back(start, tiny, tmp_path):
    large = TinyModel(classes=4, seed=8, width="2")
    for name, network in ("tiny", tiny), ("other", tiny), ("large", large):
        write_model(tmp_path / "models", name, network, max_batch_size=4)
    daemon = start(tmp_path / "models", "--model-control-mode=explicit", "--load-model=tiny").await_ready()
    with triton.InferenceServerClient(daemon.grpc_address) as client:
        # The first model allocates threads and allocator pools, which stay.
        client.load_model("other")
        client.unload_model("other")
        before = daemon.resident_bytes()
        client.load_model("large")
        assert client.infer("large", [tensor_input(large.random_batch(4, seed=1))]).as_numpy("logits") is not None
        loaded = daemon.resident_bytes() - before
        assert loaded > 60e6
        client.unload_model("large")
        eventually(lambda: daemon.resident_bytes() - before < loaded / 3, "its memory is given back")


def test_loads_by_calls_need_the_mode_for_them(client):
    assert refusal(client.load_model, "tiny")[0] == "FAILED_PRECONDITION"
    assert refusal(client.unload_model, "tiny")[0] == "FAILED_PRECONDITION"


def test_configuration(client, tiny):
    config = client.get_model_config("gathering").config
    assert (config.name, config.backend, config.max_batch_size) == ("gathering", "saccade", 8)
    assert config.dynamic_batching.max_queue_delay_microseconds == 100_000
    assert [(one.name, one.data_type, list(one.dims)) for one in config.input] == [
        ("image", 11, [3, tiny.height, tiny.width])
    ]
    assert [(one.name, list(one.dims)) for one in config.output] == [("logits", [tiny.classes])]
    assert config.instance_group[0].count == 1
    assert not config.model_transaction_policy.decoupled
    # Equal to the metadata, except for the batch dimension.
    metadata = client.get_model_metadata("gathering")
    assert list(metadata.inputs[0].shape)[1:] == list(config.input[0].dims)
    assert refusal(client.get_model_config, "no_such_model")[0] == "NOT_FOUND"
    assert refusal(client.get_model_config, "tiny", "7")[0] == "NOT_FOUND"


def usage(client, name, version=""):
    (model,) = client.get_inference_statistics(name, version).model_stats
    return model


STAGES = {
    "success": "nv_inference_request_duration_us",
    "queue": "nv_inference_queue_duration_us",
    "compute_input": "nv_inference_compute_input_duration_us",
    "compute_infer": "nv_inference_compute_infer_duration_us",
    "compute_output": "nv_inference_compute_output_duration_us",
}

# What a call that is late or cancelled may still add to when its client knows its end.
COUNTERS = ("saccade_requests_total", "nv_inference_count", "nv_inference_exec_count", "nv_inference_request_success",
            "nv_inference_request_failure", *STAGES.values())


def test_statistics_agree_with_the_metrics(start, tmp_path):
    """A mixed load: batches, rejections, failures of the model, cancelled and timed-out calls."""
    write_model(tmp_path / "models", "served", Identity(fail_at=str(FAIL)), max_batch_size=4,
                max_queue_delay_microseconds=2_000)
    daemon = start(tmp_path / "models", "--allow-drills").await_ready()

    def request(first, items=1):
        sent = numpy.zeros((items, 1, 1, 1, 64), numpy.float32)
        sent.reshape(-1)[0] = first
        return infer_request("served", sent.shape, sent.tobytes())

    with daemon.channel() as channel, concurrent.futures.ThreadPoolExecutor(16) as workers:
        inference = Inference(channel)
        sent = [request(FAIL if number % 7 == 0 else 1, 1 + number % 5) for number in range(100)]
        calls = [inference.model_infer.future(one, timeout=30) for one in sent]
        late = [inference.model_infer.future(request(1), timeout=0.0001) for _ in range(5)]
        list(workers.map(lambda call: call.exception(), calls + late))

    metrics, statistics = [], []
    with triton.InferenceServerClient(daemon.grpc_address) as client:

        def settled():
            """Takes the statistics between two looks at the metrics, which must be the same."""
            metrics[:] = [daemon.metrics()]
            statistics[:] = [usage(client, *named) for named in (("", ""), ("served",), ("served", "1"))]
            metrics.append(daemon.metrics())
            return all(metrics[0].total(name) == metrics[1].total(name) for name in COUNTERS)

        eventually(settled, "every call is counted")
        model = statistics[0]
        assert statistics == [model] * 3
        assert refusal(client.get_inference_statistics, "served", "2")[0] == "NOT_FOUND"
        assert refusal(client.get_inference_statistics, "no_such_model")[0] == "NOT_FOUND"
    total, stats = metrics[-1].total, model.inference_stats
    assert (model.name, model.version) == ("served", "1")
    assert model.inference_count == total("nv_inference_count") > 0
    assert model.execution_count == total("nv_inference_exec_count") > 0
    assert stats.success.count == total("nv_inference_request_success") > 0
    assert stats.fail.count == total("nv_inference_request_failure") >= 12
    assert stats.fail.ns > 0
    for stage, metric in STAGES.items():
        spent = getattr(stats, stage)
        assert spent.count == stats.success.count
        assert spent.ns == pytest.approx(1000 * total(metric), abs=2), stage
    assert stats.cache_hit.count == stats.cache_miss.count == 0
    assert sum(batch.compute_infer.count for batch in model.batch_stats) == model.execution_count
    assert all(1 <= batch.batch_size <= 4 and batch.compute_infer.ns > 0 for batch in model.batch_stats)
    assert sum(batch.batch_size * batch.compute_infer.count for batch in model.batch_stats) >= model.inference_count
    assert model.last_inference > 1_600_000_000_000


def test_statistics_of_all_models(client):
    names = {(model.name, model.version) for model in client.get_inference_statistics().model_stats}
    assert names == {("tiny", "1"), ("gathering", "1")}


def test_log_settings(start, repository, tiny):
    daemon = start(repository).await_ready()
    with triton.InferenceServerClient(daemon.grpc_address) as client:
        settings = client.get_log_settings().settings
        assert settings["log_info"].bool_param and settings["log_warning"].bool_param
        assert settings["log_verbose_level"].uint32_param == 0
        assert settings["log_format"].string_param == "ISO8601"
        changed = client.update_log_settings({"log_info": False, "log_verbose_level": 1}).settings
        assert not changed["log_info"].bool_param and changed["log_verbose_level"].uint32_param == 1
        assert changed["log_error"].bool_param
        assert refusal(client.update_log_settings, {"log_file": "/tmp/log", "log_info": True})[0] == "UNIMPLEMENTED"
        assert refusal(client.update_log_settings, {"log_format": "default"})[0] == "UNIMPLEMENTED"
        code, text = refusal(client.update_log_settings, {"log_colour": True})
        assert code == "INVALID_ARGUMENT" and "log_colour" in text
        # A rejected call changes no setting.
        assert not client.get_log_settings().settings["log_info"].bool_param
    daemon.terminate()
    assert daemon.exit_code() == 0
    assert "drained" not in daemon.log()


TYPES = {
    "BOOL": ("bool_contents", True),
    "UINT8": ("uint_contents", 7),
    "UINT16": ("uint_contents", 7),
    "UINT32": ("uint_contents", 7),
    "UINT64": ("uint64_contents", 7),
    "INT8": ("int_contents", -7),
    "INT16": ("int_contents", -7),
    "INT32": ("int_contents", -7),
    "INT64": ("int64_contents", -7),
    "FP32": ("fp32_contents", 0.5),
    "FP64": ("fp64_contents", 0.5),
    "BYTES": ("bytes_contents", b"no picture"),
}


@pytest.mark.parametrize("datatype", TYPES)
def test_typed_contents_of_every_type_are_understood(daemon, tiny, datatype):
    """The model takes pictures and floats. Other types are rejected as unsupported, not as malformed."""
    field, value = TYPES[datatype]
    shape = [1, 1] if datatype == "BYTES" else [1, 3, tiny.height, tiny.width]
    request = infer_request("tiny", shape, None, datatype=datatype)
    getattr(request.inputs[0].contents, field).extend([value] * int(numpy.prod(shape)))
    with daemon.channel() as channel:
        try:
            answer = Inference(channel).model_infer(request)
            assert datatype == "FP32" and len(answer.raw_output_contents) == 1
        except Exception as error:  # noqa: BLE001: grpc's errors have no public type of their own
            assert error.code().name == "INVALID_ARGUMENT"
            expected = "not a readable picture" if datatype == "BYTES" else "BYTES"
            assert datatype != "FP32" and expected in error.details(), error.details()


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
def test_half_floats_have_no_typed_contents(daemon, tiny, datatype):
    request = infer_request("tiny", [1, 3, tiny.height, tiny.width], None, datatype=datatype)
    request.inputs[0].contents.fp32_contents.extend([0.5] * (3 * tiny.height * tiny.width))
    with daemon.channel() as channel, pytest.raises(Exception) as error:
        Inference(channel).model_infer(request)
    assert error.value.code().name == "INVALID_ARGUMENT" and "raw" in error.value.details()


def test_the_protocol_is_tritons_own():
    """Compares names and numbers with the descriptors in Triton's client."""
    from tritonclient.grpc import service_pb2

    compared = 0
    for name, theirs in service_pb2.DESCRIPTOR.message_types_by_name.items():
        ours = message(f"inference.{name}").DESCRIPTOR
        compared += compare(ours, theirs)
    assert compared > 150


def compare(ours, theirs):
    fields = lambda of: {field.name: (field.number, field.type, field.is_repeated) for field in of.fields}
    assert fields(ours) == fields(theirs), theirs.full_name
    return len(theirs.fields) + sum(
        compare(ours.nested_types_by_name[name], nested) for name, nested in theirs.nested_types_by_name.items()
    )

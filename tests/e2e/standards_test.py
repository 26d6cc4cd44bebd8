"""Tests health, reflection, REST health and metrics against their standards, with third-party clients."""

import json

import grpc
import pytest
from google.protobuf import descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

import pictures
from harness import SERVING
from messages import stub


@pytest.fixture(scope="module")
def channel(daemon):
    with daemon.channel() as made:
        yield made


@pytest.mark.parametrize("service", ["", "liveness", "saccade.v1.Vision", "inference.GRPCInferenceService", "tiny"])
def test_health_check(channel, service):
    answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service))
    assert answer.status == SERVING


def test_health_of_something_unknown(channel):
    with pytest.raises(grpc.RpcError) as error:
        health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service="no_such_service"))
    assert error.value.code() == grpc.StatusCode.NOT_FOUND


def test_watch_of_something_unknown_stays_open_and_says_so(channel):
    watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service="no_such_service"))
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    watch.cancel()


@pytest.fixture(scope="module")
def reflected(channel):
    return ProtoReflectionDescriptorDatabase(channel)


def test_reflection_lists_the_services(reflected):
    assert set(reflected.get_services()) >= {
        "saccade.v1.Vision",
        "inference.GRPCInferenceService",
        "grpc.health.v1.Health",
    }


def test_predict_through_reflection_alone(channel, reflected):
    types = descriptor_pool.DescriptorPool(reflected)
    request = message_factory.GetMessageClass(types.FindMessageTypeByName("saccade.v1.PredictRequest"))
    answer = stub(channel, "saccade.v1.Vision", "Predict", types)(
        request(model="tiny", encoded=pictures.encoded(pictures.pixels(1)), request_id="by reflection")
    )
    assert answer.request_id == "by reflection"
    assert len(answer.classification.classes) == 5


def test_http_health(daemon):
    for path in ("/v2/health/live", "/v2/health/ready"):
        assert daemon.get(path)[0] == 200


def test_http_errors_are_json(daemon):
    status, headers, body = daemon.get("/v2/no/such/path")
    assert status == 404
    assert headers["Content-Type"].startswith("application/json")
    assert json.loads(body)["error"]


def test_metrics_hold_what_autoscalers_and_dashboards_read(daemon):
    metrics = daemon.metrics()
    expected = {
        "counter": {
            "nv_inference_request_success",
            "nv_inference_request_failure",
            "nv_inference_count",
            "nv_inference_exec_count",
            "nv_inference_request_duration_us",
            "nv_inference_queue_duration_us",
            "nv_inference_compute_input_duration_us",
            "nv_inference_compute_infer_duration_us",
            "nv_inference_compute_output_duration_us",
            "saccade_requests_total",
            "saccade_shed_total",
        },
        "gauge": {
            "nv_inference_pending_request_count",
            "nv_model_load_duration_secs",
            "saccade_queue_requests",
            "saccade_model_ready",
            "saccade_build_info",
        },
        "histogram": {"saccade_request_duration_seconds", "saccade_stage_duration_seconds", "saccade_batch_size"},
    }
    for kind, names in expected.items():
        missing = names - {name for name, found in metrics.types.items() if found == kind}
        assert not missing, f"no {kind} {missing}"
    assert metrics.value("saccade_model_ready", model="tiny", version="1") == 1

"""Tests that log lines about a call contain the client's request id and the trace id."""

import json
import secrets
import urllib.error
import urllib.request

import grpc
import numpy
import pytest

from harness import DEADLINE_SECONDS, Daemon, eventually
from messages import infer_request, message, predict_request, stream, stub
from tiny_models import Identity, write_model

VALUES = numpy.ones((1, 1, 2, 3, 4), numpy.float32)
# Makes the forward pass fail.
BAD = VALUES * 13
SERVICE = "inference.GRPCInferenceService"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """Without traces and without an access log; log lines must identify the call even so."""
    root = tmp_path_factory.mktemp("models")
    write_model(root, "failing", Identity(fail_at="13"), max_batch_size=4)
    flags = ("--model-control-mode=explicit", "--load-model=failing", "--log-format=json", "--allow-drills")
    with Daemon(root, *flags, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


def named():
    """Returns (request id, trace id, headers that carry both)."""
    request, trace = secrets.token_hex(8), secrets.token_hex(16)
    return request, trace, {"x-request-id": request, "traceparent": f"00-{trace}-{secrets.token_hex(8)}-00"}


def lines(daemon, message_of_line, **fields):
    """The log lines with this message and these fields. Every line of the log must be complete JSON."""
    every = [json.loads(line) for line in daemon.log_lines()]
    return [line for line in every if line["message"] == message_of_line and fields.items() <= line.items()]


def await_line(daemon, message_of_line, **fields):
    eventually(lambda: lines(daemon, message_of_line, **fields), f"the log has '{message_of_line}' with {fields}")
    (line,) = lines(daemon, message_of_line, **fields)
    return line


def tensor_request(**fields):
    request = infer_request("failing", BAD.shape, BAD.tobytes())
    request.id = fields.get("id", "")
    return request


def infer(daemon, headers, **fields):
    with daemon.inference() as inference, pytest.raises(grpc.RpcError):
        inference.model_infer(tensor_request(**fields), metadata=list(headers.items()), timeout=DEADLINE_SECONDS)


def infer_stream(daemon, headers):
    with daemon.channel() as channel:
        list(stream(channel, SERVICE, "ModelStreamInfer")(iter([tensor_request()]), metadata=list(headers.items())))


def volume_shape():
    return message("saccade.v1.VolumeShape")(depth=2, height=3, width=4, type=3)


def failing_predict():
    volume = message("saccade.v1.Volume")(raw={"shape": volume_shape(), "voxels": BAD.tobytes()})
    return predict_request(model="failing", volume=volume)


def predict(daemon, headers):
    with daemon.vision() as vision, pytest.raises(grpc.RpcError):
        vision.predict(failing_predict(), metadata=list(headers.items()), timeout=DEADLINE_SECONDS)


def predict_stream(daemon, headers):
    request = message("saccade.v1.PredictStreamRequest")(request=failing_predict())
    with daemon.vision() as vision:
        list(vision.predict_stream(iter([request]), metadata=list(headers.items())))


def restore(daemon, headers):
    header = {"model": "failing", "bytes": BAD.nbytes, "raw": volume_shape()}
    parts = [message("saccade.v1.RestoreRequest")(header=header)]
    parts.append(message("saccade.v1.RestoreRequest")(data=BAD.tobytes()))
    with daemon.vision() as vision, pytest.raises(grpc.RpcError):
        list(vision.restore(iter(parts), metadata=list(headers.items())))


def post(daemon, path, body, headers):
    headers = {"Content-Type": "application/json", **headers}
    url = f"http://127.0.0.1:{daemon.http_port}{path}"
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers),
                                timeout=DEADLINE_SECONDS) as answer:
        return answer.read()


def rest_infer(daemon, headers):
    tensor = {"name": "image", "shape": BAD.shape, "datatype": "FP32", "data": BAD.ravel().tolist()}
    with pytest.raises(urllib.error.HTTPError, match="500"):
        post(daemon, "/v2/models/failing/infer", {"inputs": [tensor]}, headers)


@pytest.mark.parametrize("call, method", [
    (infer, f"{SERVICE}/ModelInfer"),
    (infer_stream, f"{SERVICE}/ModelStreamInfer"),
    (predict, "saccade.v1.Vision/Predict"),
    (predict_stream, "saccade.v1.Vision/PredictStream"),
    (restore, "saccade.v1.Vision/Restore"),
    (rest_infer, "/v2/models/{model}/infer"),
])
def test_a_fault_names_its_call(daemon, call, method):
    request, trace, headers = named()
    call(daemon, headers)
    line = await_line(daemon, "call failed", trace_id=trace)
    assert (line["level"], line["request_id"], line["method"]) == ("error", request, method)
    assert (line["model"], line["status"]) == ("failing", "INTERNAL")
    assert "failure triggered by the option fail_at" in line["reason"]


def test_the_messages_id_goes_before_the_headers(daemon):
    _, trace, headers = named()
    infer(daemon, headers, id='mine "\n} ' + "x" * 500)
    line = await_line(daemon, "call failed", trace_id=trace)
    assert line["request_id"] == ('mine "\n} ' + "x" * 500)[:128]


def test_what_the_client_got_wrong_is_no_line(daemon):
    _, trace, headers = named()
    with daemon.inference() as inference, pytest.raises(grpc.RpcError, match="NOT_FOUND"):
        inference.model_infer(infer_request("nobody", VALUES.shape, VALUES.tobytes()), metadata=list(headers.items()))
    _, other, headers = named()
    infer(daemon, headers)
    await_line(daemon, "call failed", trace_id=other)
    assert trace not in daemon.log()


def test_orders_name_the_call_that_gave_them(daemon):
    request, trace, headers = named()
    with daemon.channel() as channel:
        orders = {name: stub(channel, SERVICE, f"RepositoryModel{name}") for name in ("Load", "Unload")}
        for name, order in orders.items():
            order(message(f"inference.RepositoryModel{name}Request")(model_name="failing"),
                  metadata=list(headers.items()), timeout=DEADLINE_SECONDS)
    assert await_line(daemon, "unloading model", trace_id=trace)["request_id"] == request
    request, trace, headers = named()
    post(daemon, "/v2/repository/models/failing/load", {}, headers)
    for text in ("loading model", "warmed up", "model ready"):
        assert await_line(daemon, text, trace_id=trace)["request_id"] == request
    # Lines that are not about a call have no request id.
    assert all("request_id" not in line for line in lines(daemon, "ready"))


def test_who_changed_the_log_is_told(daemon):
    request, trace, headers = named()
    post(daemon, "/v2/logging", {"log_info": True}, headers)
    assert await_line(daemon, "log settings changed", trace_id=trace)["request_id"] == request
    request, trace, headers = named()
    with daemon.channel() as channel:
        settings = message("inference.LogSettingsRequest")()
        settings.settings["log_info"].bool_param = True
        stub(channel, SERVICE, "LogSettings")(settings, metadata=list(headers.items()), timeout=DEADLINE_SECONDS)
    assert await_line(daemon, "log settings changed", trace_id=trace)["request_id"] == request

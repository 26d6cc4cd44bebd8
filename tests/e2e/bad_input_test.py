"""Tests that invalid requests get a clear error and leave the daemon unaffected."""

import json
import urllib.error
import urllib.request

import grpc
import numpy
import pytest

import pictures
from harness import DEADLINE_SECONDS, Daemon, eventually
from messages import Inference, Vision, get_model_request, infer_request, message, predict_request
from refusals import EXHAUSTED, INVALID, NOT_FOUND, check, refused

CAP = 4 << 20
REPETITIONS = 200
ALLOWED_GROWTH = 16 << 20


@pytest.fixture(scope="module")
def daemon(repository, tmp_path_factory):
    flags = [f"--max-message-bytes={CAP}", "--max-picture-pixels=16000000"]
    with Daemon(repository, *flags, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


def raw_picture(width, height, size, order=1):
    return message("saccade.v1.RawPicture")(width=width, height=height, order=order, pixels=bytes(size))


WHOLE = pictures.encoded(pictures.pixels(0))
TENSOR = bytes(4 * 3 * 56 * 56)

# Request, status, and words that the error message must contain.
PREDICT = {
    "not an image": (dict(model="tiny", encoded=b"I am not a picture."), INVALID, ["not a readable picture", "JPEG"]),
    "truncated JPEG": (dict(model="tiny", encoded=pictures.truncated_jpeg()), INVALID, ["JPEG"]),
    "truncated PNG": (dict(model="tiny", encoded=WHOLE[: len(WHOLE) // 2]), INVALID, ["PNG"]),
    "huge PNG": (dict(model="tiny", encoded=pictures.png_claiming(60000, 60000)), INVALID, ["60000", "pixels"]),
    "PNG over the flag": (
        dict(model="tiny", encoded=pictures.png_claiming(5000, 5000)),
        INVALID,
        ["5000", "16000000"],
    ),
    "empty message": (dict(), INVALID, ["model"]),
    "no input": (dict(model="tiny"), INVALID, ["encoded", "raw"]),
    "empty picture": (dict(model="tiny", encoded=b""), INVALID, ["empty"]),
    "unknown model": (dict(model="nobody", encoded=WHOLE), NOT_FOUND, ["nobody", "tiny"]),
    "a path as a model": (dict(model="../tiny", encoded=WHOLE), NOT_FOUND, ["../tiny"]),
    "unknown version": (dict(model="tiny", version=7, encoded=WHOLE), NOT_FOUND, ["tiny", "7"]),
    "negative version": (dict(model="tiny", version=-1, encoded=WHOLE), INVALID, ["version", "-1"]),
    "raw without order": (dict(model="tiny", raw=raw_picture(2, 2, 12, order=0)), INVALID, ["order"]),
    "raw too short": (dict(model="tiny", raw=raw_picture(4, 4, 47)), INVALID, ["raw", "47", "48"]),
    "raw of no size": (dict(model="tiny", raw=raw_picture(0, 4, 0)), INVALID, ["raw", "0 x 4"]),
    "raw that overflows": (dict(model="tiny", raw=raw_picture(2**31 - 1, 2**31 - 1, 3)), INVALID, ["raw"]),
    "priority": (dict(model="tiny", encoded=WHOLE, priority=101), INVALID, ["priority", "101", "100"]),
    "request id": (dict(model="tiny", encoded=WHOLE, request_id="x" * 129), INVALID, ["request_id", "128"]),
    "top k": (
        dict(
            model="tiny",
            encoded=WHOLE,
            classification=message("saccade.v1.ClassificationOptions")(top_k=-1),
        ),
        INVALID,
        ["top_k", "-1"],
    ),
}


def encoded_tensor(*parts):
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)


def typed_and_raw():
    request = infer_request("tiny", [1, 3, 56, 56], TENSOR)
    request.inputs[0].contents.fp32_contents.append(1)
    return request


def two_inputs():
    request = infer_request("tiny", [1, 3, 56, 56], TENSOR)
    request.inputs.add(name="image", datatype="FP32", shape=[1, 3, 56, 56])
    request.raw_input_contents.append(TENSOR)
    return request


def tensor_with(value):
    values = numpy.zeros((2, 3, 56, 56), numpy.float32)
    values[1, 2, 5, 7] = value
    return infer_request("tiny", values.shape, values.tobytes())


INFER = {
    "not a number": (tensor_with(numpy.nan), INVALID, ["input 'image'", "not finite (NaN) at element [1,2,5,7]"]),
    "infinity": (tensor_with(-numpy.inf), INVALID, ["input 'image'", "not finite (-infinity) at element [1,2,5,7]"]),
    "wrong shape": (infer_request("tiny", [1, 3, 56, 57], bytes(4 * 3 * 56 * 57)), INVALID, ["image", "57", "56"]),
    "too few dimensions": (infer_request("tiny", [3, 56, 56], TENSOR), INVALID, ["image", "3,56,56"]),
    "negative dimension": (infer_request("tiny", [-1, 3, 56, 56], TENSOR), INVALID, ["image", "-1"]),
    "overflowing shape": (infer_request("tiny", [2**40, 3, 2**40, 56], TENSOR), INVALID, ["image"]),
    "batch over the most": (infer_request("tiny", [9, 3, 56, 56], 9 * TENSOR), INVALID, ["9", "8"]),
    "wrong datatype": (infer_request("tiny", [1, 3, 56, 56], 2 * TENSOR, "FP64"), INVALID, ["image", "FP64", "FP32"]),
    "wrong byte count": (infer_request("tiny", [1, 3, 56, 56], TENSOR[:-4]), INVALID, ["image", "37628", "37632"]),
    "no contents": (infer_request("tiny", [1, 3, 56, 56], None), INVALID, ["image"]),
    "both contents": (typed_and_raw(), INVALID, ["raw_input_contents"]),
    "unknown input": (infer_request("tiny", [1, 3, 56, 56], TENSOR, name="picture"), INVALID, ["picture", "image"]),
    "an input twice": (two_inputs(), INVALID, ["image"]),
    "no input": (message("inference.ModelInferRequest")(model_name="tiny"), INVALID, ["image"]),
    "unknown output": (infer_request("tiny", [1, 3, 56, 56], TENSOR, output="boxes"), INVALID, ["boxes", "logits"]),
    "unknown model": (infer_request("nobody", [1, 3, 56, 56], TENSOR), NOT_FOUND, ["nobody"]),
    "unknown version": (infer_request("tiny", [1, 3, 56, 56], TENSOR, version="7"), NOT_FOUND, ["tiny", "7"]),
    "no number as version": (
        infer_request("tiny", [1, 3, 56, 56], TENSOR, version="new"),
        INVALID,
        ["version", "new"],
    ),
    "bytes, not a picture": (infer_request("tiny", [1], encoded_tensor(b"nothing"), "BYTES"), INVALID, ["not a readable picture"]),
    "bytes, length beyond the end": (infer_request("tiny", [1], b"\xff\xff\xff\x7fabc", "BYTES"), INVALID, ["image"]),
    "bytes, fewer than the shape": (
        infer_request("tiny", [2], encoded_tensor(WHOLE), "BYTES"),
        INVALID,
        ["image", "2"],
    ),
    "bytes, second is broken": (
        infer_request("tiny", [2], encoded_tensor(WHOLE, b"broken"), "BYTES"),
        INVALID,
        ["picture 1"],
    ),
}


def still_serves(daemon):
    with daemon.vision() as vision:
        vision.predict(predict_request(model="tiny", encoded=WHOLE))


@pytest.mark.parametrize("name", PREDICT)
def test_predict(daemon, name):
    fields, code, words = PREDICT[name]
    with daemon.vision() as vision:
        check(refused(vision.predict, predict_request(**fields)), code, words)
    still_serves(daemon)


@pytest.mark.parametrize("name", INFER)
def test_infer(daemon, name):
    request, code, words = INFER[name]
    with daemon.inference() as inference:
        check(refused(inference.model_infer, request), code, words)
    still_serves(daemon)


@pytest.mark.parametrize("name", ["not an image", "truncated JPEG", "huge PNG", "empty picture"])
def test_the_field_of_a_bad_picture_is_named(daemon, name):
    with daemon.vision() as vision:
        check(refused(vision.predict, predict_request(**PREDICT[name][0])), INVALID, ["encoded"])


def test_the_input_of_a_bad_picture_is_named(daemon):
    with daemon.inference() as inference:
        check(refused(inference.model_infer, INFER["bytes, not a picture"][0]), INVALID, ["image"])


def test_get_model(daemon):
    with daemon.vision() as vision:
        check(refused(vision.get_model, get_model_request("nobody")), NOT_FOUND, ["nobody"])
        check(refused(vision.get_model, get_model_request("tiny", 7)), NOT_FOUND, ["tiny", "7"])


def test_values_that_are_not_finite_raise_no_alert(daemon):
    """They fail their request alone, and are no failure of the model: neither in the metrics nor in the log."""
    counted = lambda: daemon.metrics().total("nv_inference_request_failure", model="tiny")
    wrong = lambda: daemon.metrics().total("saccade_requests_total", model="tiny", code="INVALID_ARGUMENT")
    failures, refusals, lines = counted(), wrong(), daemon.log().count("call failed")
    bad, good = tensor_with(numpy.inf), infer_request("tiny", [1, 3, 56, 56], TENSOR)
    with daemon.inference() as inference:
        calls = [inference.model_infer.future(bad if number % 2 else good) for number in range(32)]
        assert [call.code() for call in calls] == [grpc.StatusCode.OK, INVALID] * 16
    body = json.dumps({"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 3, 56, 56],
                                   "data": ["NaN"] + [0] * (3 * 56 * 56 - 1)}]}).encode()
    asked = urllib.request.Request(f"http://127.0.0.1:{daemon.http_port}/v2/models/tiny/infer", body)
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(asked, timeout=DEADLINE_SECONDS)
    assert error.value.code == 400
    assert json.loads(error.value.read())["error"] == (
        "input 'image': holds a value that is not finite (NaN) at element [0,0,0,0]; expected finite numbers")
    assert wrong() == refusals + 17
    assert counted() == failures
    assert daemon.log().count("call failed") == lines


def test_a_message_over_the_cap(daemon):
    request = predict_request(model="tiny", encoded=bytes(CAP + 1))
    with daemon.vision() as vision:
        check(refused(vision.predict, request), EXHAUSTED, [str(CAP)])
    still_serves(daemon)


def test_bytes_that_are_no_message(daemon):
    with daemon.channel() as channel:
        call = channel.unary_unary("/saccade.v1.Vision/Predict")
        check(refused(call, b"\xff\xff\xff\xff\xff"), INVALID, ["saccade.v1.PredictRequest"])
    still_serves(daemon)


def test_an_unknown_method(daemon):
    with daemon.channel() as channel:
        call = channel.unary_unary("/saccade.v1.Vision/Train")
        assert refused(call, b"").code() == grpc.StatusCode.UNIMPLEMENTED


def test_nothing_is_leaked(daemon):
    """Repeats all of the above in one connection: memory and open files must not grow."""
    predicts = [predict_request(**fields) for fields, _, _ in PREDICT.values()]
    infers = [request for request, _, _ in INFER.values()]

    def everything(times):
        with daemon.channel() as channel:
            vision, inference = Vision(channel), Inference(channel)
            for _ in range(times):
                calls = [vision.predict.future(request) for request in predicts]
                calls += [inference.model_infer.future(request) for request in infers]
                assert all(call.code() != grpc.StatusCode.OK for call in calls)

    still_serves(daemon)
    everything(REPETITIONS)
    memory, files = daemon.resident_bytes(), daemon.open_files()
    everything(REPETITIONS)
    assert daemon.resident_bytes() - memory < ALLOWED_GROWTH
    # The daemon notices a closed connection a little later.
    eventually(lambda: daemon.open_files() <= files, f"no more than {files} files are open")
    eventually(lambda: daemon.metrics().total("saccade_inflight_requests") == 0, "nothing was in flight")
    still_serves(daemon)

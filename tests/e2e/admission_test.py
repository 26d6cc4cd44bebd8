"""Tests which requests are rejected at admission, and the errors and retry hints they get."""

import concurrent.futures
import subprocess
import urllib.error
import urllib.request

import grpc
import numpy
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import pictures
from busy import HANG, HOLDING, Held, write_holding
from harness import DEADLINE_SECONDS, SERVING, binary, eventually, run_to_end, write_secret
from messages import Inference, Vision, infer_request, message, predict_request, stream
from refusals import EXHAUSTED, INVALID, check, details, pushback, refused
from tiny_models import write_model

# One request is accepted, and then none for longer than any test takes.
ONE_A_HOUR = ("--client-requests-per-second=0.0003", "--client-burst=1")


@pytest.fixture
def light(tiny):
    batch = tiny.random_batch(1, seed=0)
    return infer_request("tiny", batch.shape, batch.tobytes())


def test_a_model_at_its_own_bound_leaves_the_others_alone(start, tiny, light, tmp_path):
    root = tmp_path / "models"
    write_holding(root, tmp_path / "hang", parameters={"max_inflight_requests": "2"})
    write_model(root, "tiny", tiny)
    daemon = start(root, *HOLDING).await_ready()
    with daemon.channel() as channel:
        busy = Held(daemon, channel, tmp_path / "hang")
        waiting = busy.inference.model_infer.future(busy.light)
        eventually(lambda: busy.inflight() == 2, "both are in the daemon")
        error = refused(busy.inference.model_infer, busy.light)
        check(error, EXHAUSTED, ["model 'slow'", "limit of 2 requests", "max_inflight_requests in its config.pbtxt"])
        assert details(error)["google.rpc.ErrorInfo"].reason == "MODEL_BOUND"
        assert pushback(error) >= 1
        busy.inference.model_infer(light)
        assert daemon.metrics().value("saccade_shed_total", reason="model_bound") == 1
        busy.let_go()
        busy.heavy.result()
        waiting.result()
        busy.inference.model_infer(busy.light)


def test_clients_that_wait_for_each_answer_are_never_too_many(start, repository, tiny):
    """Each worker sends its next request as soon as it has the answer, when the daemon may still be busy with the last."""
    workers, each = 4, 150
    daemon = start(repository, f"--max-inflight-requests={workers}").await_ready()
    picture = pictures.encoded(pictures.pixels(1), "JPEG")
    batch = tiny.random_batch(1, seed=0)

    def work(number):
        with daemon.channel() as channel:
            vision, inference = Vision(channel), Inference(channel)
            for at in range(each):
                if (at + number) % 2:
                    vision.predict(predict_request(model="tiny", encoded=picture))
                else:
                    inference.model_infer(infer_request("tiny", batch.shape, batch.tobytes()))

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(work, number) for number in range(workers)]:
            future.result()
    assert daemon.metrics().total("saccade_shed_total") == 0


def test_a_client_that_sends_too_fast(start, repository, light):
    daemon = start(repository, "--client-requests-per-second=0.01", "--client-burst=3").await_ready()
    with daemon.inference() as inference:
        for _ in range(3):
            inference.model_infer(light)
        error = refused(inference.model_infer, light)
    check(error, EXHAUSTED, ["client 'ipv4:127.0.0.1'", "0.01 requests per second", "--client-requests-per-second"])
    assert details(error)["google.rpc.ErrorInfo"].reason == "CLIENT_RATE"
    with daemon.vision() as vision:
        jpeg = pictures.encoded(pictures.pixels(1), "JPEG")
        error = refused(vision.predict, predict_request(model="tiny", encoded=jpeg))
        check(error, EXHAUSTED, ["client 'ipv4:127.0.0.1'"])
        check(refused(vision.list_models, message("saccade.v1.ListModelsRequest")()), EXHAUSTED, ["sends more than"])
    assert daemon.metrics().value("saccade_shed_total", reason="client_rate") == 3


def daemon_is_serving(daemon):
    with daemon.channel() as channel:
        assert health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest()).status == SERVING


def test_every_request_counts_at_the_door(start, repository, light):
    daemon = start(repository, *ONE_A_HOUR).await_ready()
    # Even what names nothing that exists.
    assert daemon.get("/nowhere")[0] == 404
    for path in ("/nowhere", "/v2/models/tiny", "/v1/models", "/"):
        status, headers, body = daemon.get(path)
        assert status == 429 and "sends more than" in body, path
        assert int(headers["Retry-After"]) >= 1
    with daemon.inference() as inference:
        check(refused(inference.model_infer, infer_request("none", (1,), b"")), EXHAUSTED, ["sends more than"])
        check(refused(inference.model_infer, light), EXHAUSTED, ["sends more than"])
    # Probes are not counted, on any port, nor are scrapes.
    for _ in range(3):
        assert daemon.get("/v2/health/ready")[0] == 200
        daemon_is_serving(daemon)
        daemon.metrics()
    assert daemon.metrics().value("saccade_shed_total", reason="client_rate") == 6


def test_a_token_has_a_rate_of_its_own(start, repository, tmp_path):
    tokens = [f"{name}-0123456789abcdef" for name in ("one", "two")]
    write_secret(tmp_path / "tokens", "".join(f"{token} predict\n" for token in tokens))
    daemon = start(repository, *ONE_A_HOUR, f"--token-file={tmp_path / 'tokens'}").await_ports()

    def status(token=None):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"http://127.0.0.1:{daemon.http_port}/v2", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    assert [status(tokens[0]), status(tokens[0]), status(tokens[1]), status(tokens[1])] == [200, 429, 200, 429]
    # Guesses share the rate of their address.
    assert [status("guess-0123456789abcdef"), status("other-0123456789abcdef"), status()] == [401, 429, 429]


def bearer(token):
    return (("authorization", f"Bearer {token}"),)


def test_a_tokens_line_has_its_rate(start, repository, tiny, light, tmp_path):
    slow, fast = "slow-0123456789abcdef", "fast-0123456789abcdef"
    file = write_secret(tmp_path / "tokens", f"{slow} predict rate=0.01\n{fast} predict,metrics\n")
    daemon = start(repository, f"--token-file={file}", "--plain-metrics").await_ports()
    jpeg = pictures.encoded(pictures.pixels(1), "JPEG")
    with daemon.channel() as channel:
        inference, vision = Inference(channel), Vision(channel)
        eventually(lambda: accepted(inference.model_infer, light, fast), "the model is served")
        inference.model_infer(light, metadata=bearer(slow))
        for method, request in ((inference.model_infer, light),
                                (vision.predict, predict_request(model="tiny", encoded=jpeg))):
            error = refused(method, request, metadata=bearer(slow))
            check(error, EXHAUSTED, ["sends more than 0.01 requests per second", "rate= of its line in --token-file"])
            assert details(error)["google.rpc.ErrorInfo"].reason == "CLIENT_RATE" and pushback(error) >= 1
            assert slow not in str(error.details())
        url = f"http://127.0.0.1:{daemon.http_port}/v2"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {slow}"})
        with pytest.raises(urllib.error.HTTPError) as over_http:
            urllib.request.urlopen(request, timeout=DEADLINE_SECONDS)
        assert over_http.value.code == 429 and int(over_http.value.headers["Retry-After"]) >= 1
        for _ in range(20):
            inference.model_infer(light, metadata=bearer(fast))
        assert daemon.metrics().value("saccade_shed_total", reason="client_rate") == 3
        # The file is read again while the daemon runs.
        file.write_text(f"{slow} predict\n{fast} predict,metrics rate=0.01\n")
        eventually(lambda: accepted(inference.model_infer, light, slow), "the limit is gone")
        accepted(inference.model_infer, light, fast)
        assert not accepted(inference.model_infer, light, fast)


def accepted(method, request, token):
    try:
        method(request, metadata=bearer(token))
    except grpc.RpcError:
        return False
    return True


def test_each_message_of_a_stream_counts_to_its_tokens_rate(start, repository, light, tmp_path):
    file = write_secret(tmp_path / "tokens", "".join(f"{name}-0123456789abcdef predict rate=0.01\n" for name in ("one", "two")))
    daemon = start(repository, f"--token-file={file}", "--plain-metrics").await_ready()
    with daemon.channel() as channel:
        infer = stream(channel, "inference.GRPCInferenceService", "ModelStreamInfer")
        light.id = "mine"
        answers = list(infer(iter([light] * 3), timeout=DEADLINE_SECONDS, metadata=bearer("one-0123456789abcdef")))
        predict = stream(channel, "saccade.v1.Vision", "PredictStream")
        request = message("saccade.v1.PredictStreamRequest")()
        request.request.CopyFrom(predict_request(model="tiny", encoded=b"x" * 100_000, request_id="picture"))
        pictured = list(predict(iter([request] * 2), timeout=DEADLINE_SECONDS, metadata=bearer("two-0123456789abcdef")))
    assert [answer.infer_response.id for answer in answers] == ["mine"] * 3
    assert [answer.request_id for answer in pictured] == ["picture"] * 2
    assert "rate= of its line" in pictured[1].error.message
    errors = [answer.error_message for answer in answers]
    assert [bool(error) for error in errors] == [False, True, True], errors
    assert "rate= of its line" in errors[1]


def test_a_tokens_line_bounds_its_requests_in_flight(start, tiny, light, tmp_path):
    one, two = "one-0123456789abcdef", "two-0123456789abcdef"
    root = tmp_path / "models"
    write_holding(root, tmp_path / "hang")
    write_model(root, "tiny", tiny)
    file = write_secret(tmp_path / "tokens", f"{one} predict inflight=1\n{two} predict\n")
    daemon = start(root, f"--token-file={file}", "--plain-metrics", *HOLDING).await_ready()
    hanging = numpy.full((1, 1, 1, 1, 4), HANG, numpy.float32)
    heavy = infer_request("slow", hanging.shape, hanging.tobytes())
    with daemon.channel() as channel:
        inference = Inference(channel)
        waiting = inference.model_infer.future(heavy, metadata=bearer(one))
        eventually(lambda: daemon.metrics().total("saccade_inflight_requests") == 1, "it is in the daemon")
        error = refused(inference.model_infer, light, metadata=bearer(one))
        check(error, EXHAUSTED, ["has 1 requests in flight", "inflight= of its line in --token-file"])
        assert details(error)["google.rpc.ErrorInfo"].reason == "CLIENT_REQUESTS" and pushback(error) >= 1
        inference.model_infer(light, metadata=bearer(two))
        infer = stream(channel, "inference.GRPCInferenceService", "ModelStreamInfer")
        (answer,) = infer(iter([light]), timeout=DEADLINE_SECONDS, metadata=bearer(one))
        assert "inflight= of its line" in answer.error_message
        (tmp_path / "hang").unlink()
        waiting.result()
        inference.model_infer(light, metadata=bearer(one))
    assert daemon.metrics().value("saccade_shed_total", reason="client_requests") == 2


def test_each_message_of_a_stream_counts(start, repository, light):
    daemon = start(repository, "--client-requests-per-second=0.0003", "--client-burst=2").await_ready()
    with daemon.channel() as channel:
        infer = stream(channel, "inference.GRPCInferenceService", "ModelStreamInfer")
        answers = list(infer(iter([light] * 4), timeout=DEADLINE_SECONDS))
    errors = [answer.error_message for answer in answers]
    assert [bool(error) for error in errors] == [False, False, True, True], errors
    assert "sends more than" in errors[2]


def test_the_hints_are_spread_and_all_say_the_same(start, repository, light):
    daemon = start(repository, "--client-requests-per-second=0.01", "--client-burst=1").await_ready()
    hints = []
    with daemon.inference() as inference:
        inference.model_infer(light)
        for _ in range(30):
            error = refused(inference.model_infer, light)
            delay = details(error)["google.rpc.RetryInfo"].retry_delay
            hints.append(pushback(error))
            assert delay.seconds * 1000 + delay.nanos // 1_000_000 == hints[-1]
    # From half to one and a half times the hundred seconds until the next token, part of which has passed during the test.
    assert all(10_000 <= hint <= 150_000 for hint in hints), hints
    assert len(set(hints)) > 20
    assert max(hints) - min(hints) > 30_000


def test_the_command_line_says_when_to_come_again(start, repository, light, tmp_path):
    daemon = start(repository, *ONE_A_HOUR).await_ready()
    with daemon.inference() as inference:
        inference.model_infer(light)
    picture = tmp_path / "picture.jpg"
    picture.write_bytes(pictures.encoded(pictures.pixels(1), "JPEG"))
    command = [binary("saccade"), "classify", "--url", daemon.grpc_address, "--model", "tiny", picture]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert ended.returncode == 64 + EXHAUSTED.value[0], ended.stderr
    assert "sends more than" in ended.stderr
    assert "try again in" in ended.stderr


def test_a_wrong_field_is_named_for_programs(daemon, light):
    with daemon.channel() as channel:
        light.parameters["priority"].string_param = "high"
        error = refused(Inference(channel).model_infer, light)
        check(error, INVALID, ["parameter priority: expected an integer"])
        violation = details(error)["google.rpc.BadRequest"].field_violations[0]
        assert violation.field == "parameter priority"
        assert pushback(error) is None, "trying again is no use"


@pytest.mark.parametrize("flag", ["--client-burst=3", "--client-requests-per-second=-1"])
def test_a_rate_that_makes_no_sense_is_a_wrong_command_line(repository, flag):
    ended = run_to_end(f"--model-repository={repository}", flag)
    assert ended.returncode == 2
    assert flag.partition("=")[0] in ended.stderr

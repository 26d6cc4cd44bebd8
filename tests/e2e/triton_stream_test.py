"""Tests ModelStreamInfer with Triton's client and with bare gRPC."""

import asyncio
import queue
import threading

import grpc
import numpy
import pytest
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio

from harness import DEADLINE_SECONDS, Daemon, eventually
from messages import infer_request, message, stream
from tiny_models import Identity, assert_close, write_model
from triton_calls import refusal, tensor_input

HANG = 99


@pytest.fixture
def client(daemon):
    with triton.InferenceServerClient(daemon.grpc_address) as made:
        yield made


@pytest.fixture(scope="module")
def volumes(tmp_path_factory):
    """The identity model; a pass hangs for a while if a volume begins with HANG."""
    root = tmp_path_factory.mktemp("identity")
    write_model(root, "identity", Identity(hang_at=str(HANG), hang_seconds="4"), max_batch_size=1)
    flags = ("--max-message-bytes=4000000", "--allow-drills")
    with Daemon(root, *flags, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


class Answers(queue.Queue):
    """The arguments of the client's callback, in order."""

    def __call__(self, result, error):
        self.put((result, error))

    def next(self):
        return self.get(timeout=DEADLINE_SECONDS)


def metrics_of(daemon, name):
    return daemon.metrics().total(name)


def volume(first=0, size=4):
    made = numpy.zeros((1, 1, 1, 1, size), numpy.float32)
    made.reshape(-1)[:1] = first
    return made


def request(first=0, size=4, **fields):
    sent = volume(first, size)
    made = infer_request("identity", sent.shape, sent.tobytes())
    made.id = fields.get("id", "")
    return made


class Bare:
    """A stream whose requests are sent by the test one by one."""

    def __init__(self, channel, metadata=()):
        self.requests = queue.Queue()
        call = stream(channel, "inference.GRPCInferenceService", "ModelStreamInfer")
        self.answers = call(iter(self.requests.get, None), metadata=metadata, timeout=DEADLINE_SECONDS)

    def send(self, *sent):
        for one in sent:
            self.requests.put(one)
        return self

    def end(self):
        self.requests.put(None)
        return self


def test_every_request_is_answered_in_its_order(client, tiny):
    answers, batches = Answers(), [tiny.random_batch(1 + number % 3, seed=number) for number in range(40)]
    client.start_stream(answers)
    for number, batch in enumerate(batches):
        client.async_stream_infer("tiny", [tensor_input(batch)], request_id=str(number))
    for number, batch in enumerate(batches):
        result, error = answers.next()
        assert error is None
        response = result.get_response()
        assert (response.id, response.model_name, response.model_version) == (str(number), "tiny", "1")
        assert response.parameters["triton_final_response"].bool_param
        assert_close(result.as_numpy("logits"), tiny.logits(batch))
    client.stop_stream()
    assert answers.empty()


def test_an_error_is_its_requests_alone(client, tiny):
    answers, good = Answers(), tiny.random_batch(1, seed=1)
    client.start_stream(answers)
    client.async_stream_infer("tiny", [tensor_input(good)], request_id="first", enable_empty_final_response=True)
    client.async_stream_infer("no_such_model", [tensor_input(good)], request_id="second")
    client.async_stream_infer("tiny", [tensor_input(tiny.random_batch(9, seed=1))], request_id="too many")
    client.async_stream_infer("tiny", [tensor_input(good)], request_id="last")
    assert answers.next()[0].get_response().id == "first"
    assert "no_such_model" in answers.next()[1].message()
    assert "takes 1 to 8" in answers.next()[1].message()
    assert answers.next()[0].get_response().id == "last"
    client.stop_stream()
    assert answers.empty()


def test_errors_tell_which_request_and_bad_bytes_are_one(volumes):
    with volumes.channel() as channel:
        call = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
        sent = [b"\xff\xff", request(1, id="good").SerializeToString(), request(size=0, id="bad").SerializeToString()]
        answers = list(call(iter(sent), timeout=DEADLINE_SECONDS))
    assert len(answers) == 3
    broken, good, bad = map(message("inference.ModelStreamInferResponse").FromString, answers)
    assert "ModelInferRequest" in broken.error_message
    assert (good.error_message, good.infer_response.id) == ("", "good")
    assert bad.error_message and bad.infer_response.id == "bad" and not bad.infer_response.outputs


def test_the_first_error_ends_the_stream_for_those_who_want_it(volumes):
    with volumes.channel() as channel:
        bare = Bare(channel, metadata=[("triton_grpc_error", "true")]).send(request(1))
        # A client that has received the error may drop earlier responses.
        assert next(bare.answers).error_message == ""
        bare.send(request(size=0))
        with pytest.raises(grpc.RpcError) as error:
            next(bare.answers)
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        bare.end()


def test_an_empty_stream_ends_well(volumes):
    with volumes.channel() as channel:
        assert list(Bare(channel).end().answers) == []


def test_answers_wait_for_those_before_them(volumes):
    with volumes.channel() as channel:
        bare = Bare(channel).send(request(HANG, id="slow"), request(1, id="a"), request(2, id="b")).end()
        bare_ids = [answer.infer_response.id for answer in bare.answers]
    assert bare_ids == ["slow", "a", "b"]


def test_a_cancelled_stream_cancels_what_waits(volumes):
    before = metrics_of(volumes, "nv_inference_exec_count")
    with volumes.channel() as channel:
        bare = Bare(channel).send(request(HANG), *[request(number) for number in range(20)])
        eventually(lambda: metrics_of(volumes, "saccade_inflight_requests") == 21, "all requests are taken")
        bare.answers.cancel()
        bare.end()
        eventually(lambda: metrics_of(volumes, "saccade_inflight_requests") == 0, "the daemon has forgotten them")
    assert metrics_of(volumes, "nv_inference_exec_count") - before <= 1


def test_stop_stream_with_cancellation(volumes):
    answers = Answers()
    with triton.InferenceServerClient(volumes.grpc_address) as client:
        client.start_stream(answers)
        client.async_stream_infer("identity", [tensor_input(volume(HANG))])
        eventually(lambda: metrics_of(volumes, "saccade_inflight_requests") == 1, "the request is taken")
        client.stop_stream(cancel_requests=True)
    result, error = answers.next()
    assert result is None and error.status() == "StatusCode.CANCELLED"
    eventually(lambda: metrics_of(volumes, "saccade_inflight_requests") == 0, "the daemon has forgotten it")


def test_a_streams_timeout_ends_it(volumes):
    answers = Answers()
    with triton.InferenceServerClient(volumes.grpc_address) as client:
        client.start_stream(answers, stream_timeout=0.2)
        client.async_stream_infer("identity", [tensor_input(volume(HANG))])
        result, error = answers.next()
        assert result is None and error.status() == "StatusCode.DEADLINE_EXCEEDED"
        client.stop_stream()
    eventually(lambda: metrics_of(volumes, "saccade_inflight_requests") == 0, "the daemon has forgotten it")


def test_a_client_that_does_not_read_is_read_no_further(volumes):
    """A response has 1 MB, and a stream may hold 4 MB: the number of requests taken stays bounded, and none is lost."""
    size, count = 250_000, 100
    before = metrics_of(volumes, "nv_inference_request_success")
    with volumes.channel(**{"grpc.http2.lookahead_bytes": 65536, "grpc.http2.bdp_probe": 0}) as channel:
        taken = threading.Semaphore(0)

        def requests():
            for number in range(count):
                taken.release()
                yield request(number + 100, size, id=str(number))

        call = stream(channel, "inference.GRPCInferenceService", "ModelStreamInfer")
        answers = call(requests(), timeout=DEADLINE_SECONDS)
        first = next(answers)
        settled = [-1]

        def has_settled():
            now = metrics_of(volumes, "nv_inference_request_success")
            same, settled[0] = now == settled[0], now
            return same and metrics_of(volumes, "saccade_inflight_requests") == 0

        eventually(has_settled, "the daemon has stopped taking requests")
        assert settled[0] - before < count / 2
        ids = [first.infer_response.id, *[answer.infer_response.id for answer in answers]]
    assert ids == [str(number) for number in range(count)]


def test_a_draining_daemon_refuses_on_the_stream(start, repository, tiny):
    daemon = start(repository, "--lame-duck-seconds=0", "--drain-timeout-seconds=10").await_ready()
    answers = Answers()
    batch = tiny.random_batch(1, seed=1)
    with triton.InferenceServerClient(daemon.grpc_address) as client:
        client.start_stream(answers)
        client.async_stream_infer("tiny", [tensor_input(batch)])
        assert answers.next()[1] is None
        daemon.terminate()
        assert daemon.exit_code() == 0
        assert "the server is shutting down" in str(answers.next()[1])


def test_asyncio(daemon, tiny):
    batches = [tiny.random_batch(1, seed=number) for number in range(8)]

    async def run():
        async with triton_aio.InferenceServerClient(daemon.grpc_address) as client:
            assert await client.is_server_ready()
            alone = await client.infer("tiny", [tensor_input(batches[0])])
            assert_close(alone.as_numpy("logits"), tiny.logits(batches[0]))

            async def requests():
                for number, batch in enumerate(batches):
                    yield {"model_name": "tiny", "inputs": [tensor_input(batch)], "request_id": str(number)}

            got = []
            async for result, error in client.stream_infer(requests()):
                assert error is None
                got.append(result)
            return got

    for number, result in enumerate(asyncio.run(run())):
        assert result.get_response().id == str(number)
        assert_close(result.as_numpy("logits"), tiny.logits(batches[number]))


def test_cancellation_of_one_call(volumes):
    answers = Answers()
    with triton.InferenceServerClient(volumes.grpc_address) as client:
        call = client.async_infer("identity", [tensor_input(volume(HANG))], answers)
        eventually(lambda: metrics_of(volumes, "saccade_inflight_requests") == 1, "the request is taken")
        call.cancel()
        assert answers.next()[1].status() == "StatusCode.CANCELLED"


def test_a_clients_timeout(volumes):
    with triton.InferenceServerClient(volumes.grpc_address) as client:
        code, _ = refusal(client.infer, "identity", [tensor_input(volume(HANG))], client_timeout=0.2)
    assert code == "DEADLINE_EXCEEDED"

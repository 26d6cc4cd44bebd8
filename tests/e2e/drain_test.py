"""Tests that SIGTERM loses no accepted request and is announced in time, and that kill -9 leaves nothing behind."""

import threading

import grpc
import numpy
from grpc_health.v1 import health_pb2, health_pb2_grpc

import http2_frames
import pictures
from busy import HEAVY, Busy
from front_attack import MIB, MODEL_INFER
from harness import DEADLINE_SECONDS, NOT_SERVING, SERVING, eventually
from messages import Vision, infer_request, predict_request
from tiny_models import Identity, write_model

CLIENTS = 4


def watch(channel, service):
    return health_pb2_grpc.HealthStub(channel).Watch(
        health_pb2.HealthCheckRequest(service=service), timeout=DEADLINE_SECONDS
    )


def test_not_serving_is_told_before_anything_closes(start, repository):
    daemon = start(repository, "--lame-duck-seconds=5").await_ready()
    picture = pictures.encoded(pictures.pixels(0))
    with daemon.channel() as channel, daemon.vision() as vision:
        updates = watch(channel, "")
        assert next(updates).status == SERVING
        daemon.terminate()
        assert next(updates).status == NOT_SERVING
        # During --lame-duck-seconds, requests are still served on old and new connections.
        vision.predict(predict_request(model="tiny", encoded=picture))
        with daemon.vision() as newcomer:
            newcomer.predict(predict_request(model="tiny", encoded=picture))
        health = health_pb2_grpc.HealthStub(channel)
        assert health.Check(health_pb2.HealthCheckRequest(service="liveness")).status == SERVING
        assert daemon.get("/v2/health/live")[0] == 200
        assert daemon.get("/v2/health/ready")[0] != 200
    assert daemon.exit_code() == 0


class Client(threading.Thread):
    """Sends one picture after the other until a request is rejected."""

    def __init__(self, daemon, picture):
        super().__init__()
        self.answered = 0
        self.refusal = None
        self.warm = threading.Event()
        self._channel = daemon.channel()
        self._request = predict_request(model="tiny", encoded=picture)

    def run(self):
        vision = Vision(self._channel)
        with self._channel:
            while True:
                try:
                    assert vision.predict(self._request, timeout=DEADLINE_SECONDS).model == "tiny"
                except grpc.RpcError as error:
                    self.refusal = error
                    self.warm.set()
                    return
                self.answered += 1
                if self.answered == 10:
                    self.warm.set()


def test_a_drain_under_load_loses_nothing(start, repository):
    daemon = start(repository, "--lame-duck-seconds=1").await_ready()
    picture = pictures.encoded(pictures.pixels(0))
    clients = [Client(daemon, picture) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        assert client.warm.wait(DEADLINE_SECONDS)
    daemon.terminate()
    assert daemon.exit_code() == 0
    for client in clients:
        client.join()
        assert client.answered >= 10
        assert client.refusal.code() == grpc.StatusCode.UNAVAILABLE, client.refusal.details()
        # The error comes from the daemon, or from gRPC because it could not connect; never from a connection that broke
        # during a request.
        if client.refusal.details().startswith("failed to connect"):
            continue
        for lost in ("Socket closed", "reset by peer", "Broken pipe"):
            assert lost not in client.refusal.details()


def test_what_is_computed_at_sigterm_is_answered(start, slow_repository):
    root, network = slow_repository
    daemon = start(root, "--lame-duck-seconds=0").await_ready()
    with daemon.channel() as channel:
        busy = Busy(daemon, network, channel)
        queued = [busy.inference.model_infer.future(busy.light) for _ in range(3)]
        # All of them are accepted; requests after SIGTERM are rejected.
        eventually(lambda: busy.waiting() == 3, "three requests wait")
        updates = watch(channel, "")
        assert next(updates).status == SERVING
        daemon.terminate()
        assert next(updates).status == NOT_SERVING
        assert busy.heavy.result().outputs[0].shape == [HEAVY, 5]
        for call in queued:
            assert call.result().outputs[0].shape == [1, 5]
    assert daemon.exit_code() == 0


def test_a_drain_ends_in_its_time_whoever_is_still_connected(start, repository, tiny):
    daemon = start(repository, "--lame-duck-seconds=0", "--drain-timeout-seconds=1").await_ready()
    with daemon.channel() as channel:
        updates = watch(channel, "")
        assert next(updates).status == SERVING
        daemon.terminate()
        assert daemon.exit_code() == 0


def ask_for_much(connection):
    """Calls a model whose answer has 12 MB, and reads a megabyte of it."""
    volume = numpy.zeros(3_000_000, numpy.float32).tobytes()
    request = infer_request("served", (1, 1, 30, 100, 1000), volume).SerializeToString()
    connection.send(http2_frames.open_grpc(1, MODEL_INFER))
    assert connection.upload(1, http2_frames.message(request)) == []
    read = 0
    while read < MIB:
        got = connection.next()
        assert got.stream == 0 or not got.ends_stream, got
        read += len(got.payload) if got.kind == http2_frames.DATA else 0


def test_a_drain_tells_of_answers_that_were_not_read(start, tmp_path):
    """One client gives its call no more window, another reads no more from its socket. A third one cancels its call, and
    nobody has lost that answer."""
    write_model(tmp_path / "models", "served", Identity(), max_batch_size=4)
    flags = ("--warm-up-seconds=0", "--lame-duck-seconds=0", "--drain-timeout-seconds=60")
    daemon = start(tmp_path / "models", *flags).await_ready()
    little = [(http2_frames.INITIAL_WINDOW_SIZE, 2 * MIB)]
    much = [(http2_frames.INITIAL_WINDOW_SIZE, 1 << 30)]
    with (
        http2_frames.Connection(daemon.grpc_port, little) as held,
        http2_frames.Connection(daemon.grpc_port, much, receive_buffer=64 << 10) as unread,
        http2_frames.Connection(daemon.grpc_port, little) as cancelling,
    ):
        for connection in (held, unread, cancelling):
            connection.send(http2_frames.window_update(0, 1 << 30))
            ask_for_much(connection)
        daemon.terminate()
        daemon.await_log("draining: finishing accepted requests")
        cancelling.send(http2_frames.reset(1))
        # It ends when the transfer's grace of 10 seconds has passed once or twice.
        assert daemon.exit_code() == 1
    daemon.await_log("drained: not every accepted request was answered", "2 accepted requests were cut during the drain")
    assert "every accepted request was answered" not in daemon.log().replace("not every accepted", "")


def test_a_second_sigterm_changes_nothing(start, repository):
    daemon = start(repository, "--lame-duck-seconds=1").await_ready()
    with daemon.channel() as channel:
        updates = watch(channel, "")
        assert next(updates).status == SERVING
        daemon.terminate()
        assert next(updates).status == NOT_SERVING
        daemon.terminate()
    assert daemon.exit_code() == 0


def test_killed_and_started_again_on_the_same_ports(start, repository, tiny):
    first = start(repository).await_ready()
    batch = tiny.random_batch(1, seed=0)
    request = infer_request("tiny", batch.shape, batch.tobytes())
    with first.inference() as inference:
        expected = inference.model_infer(request).raw_output_contents[0]
        calls = [inference.model_infer.future(request) for _ in range(50)]
        first.process.kill()
        first.process.wait()
        assert all(call.code() in (grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE) for call in calls)
    ports = tuple(str(port) for port in (first.grpc_port, first.http_port, first.metrics_port))
    second = start(repository, ports=ports).await_ready()
    assert second.grpc_port == first.grpc_port
    with second.inference() as inference:
        assert inference.model_infer(request).raw_output_contents[0] == expected

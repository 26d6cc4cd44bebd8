"""Tests the front's limits as a client sees them: how many connections and streams there may be, how long and how large a request
may be, and what a shutdown does to connections that are slow or silent."""

import contextlib
import itertools
import json
import os
import pathlib
import re
import resource
import socket
import struct
import threading
import time

import grpc
import numpy
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import http2_frames as h2
from certificates import Authority
from front_attack import CHECK, MODEL_INFER, REFLECTION, WATCH
from harness import DEADLINE_SECONDS, SERVING, eventually
from messages import infer_request
from tiny_models import Identity, write_model

MIB = 1 << 20
SHAPE = (1, 1, 1, 1, 4)
VOLUME = numpy.arange(4, dtype=numpy.float32).tobytes()
SMALL = infer_request("served", SHAPE, VOLUME).SerializeToString()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limited")
    write_model(folder, "served", Identity(), max_batch_size=4)
    write_model(folder, "late", Identity(delay_ms=700), max_batch_size=1)
    return folder


@pytest.fixture
def begin(start, root):
    def begin_daemon(*flags, **options):
        lame_duck = [] if any("lame-duck" in flag for flag in flags) else ["--lame-duck-seconds=0"]
        return start(root, "--warm-up-seconds=0", *lame_duck, *flags, **options).await_ready()

    return begin_daemon


@pytest.fixture(scope="module", autouse=True)
def descriptors():
    """This process opens as many connections as the daemon."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard >= 12_000, f"the system allows {hard} files; 12000 are needed (ulimit -Hn)"
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def serves(daemon):
    with daemon.inference() as inference:
        for _ in range(5):
            answer = inference.model_infer(infer_request("served", SHAPE, VOLUME), timeout=DEADLINE_SECONDS)
            assert answer.raw_output_contents[0] == VOLUME
    assert daemon.get("/v2/health/ready")[0] == 200


def refused(daemon, reason):
    return daemon.metrics().total("saccade_front_refusals_total", reason=reason)


def threads(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/task"))


def small_call(connection, stream, path=MODEL_INFER, payload=SMALL):
    connection.send(h2.open_grpc(stream, path), h2.data(stream, h2.message(payload)))


def status(fields):
    return fields.get("grpc-status"), fields.get("grpc-message", "")


# How many


def test_ten_thousand_idle_connections(begin):
    daemon = begin()
    serves(daemon)
    resident, before = daemon.resident_bytes(), threads(daemon)
    hello = h2.PREFACE + h2.settings()
    with contextlib.ExitStack() as stack:
        opened = []
        for number in range(10_000):
            one = stack.enter_context(socket.socket())
            one.settimeout(DEADLINE_SECONDS)
            one.bind((f"127.0.{number % 20}.{2 + number % 200}", 0))
            one.connect(("127.0.0.1", (daemon.grpc_port, daemon.http_port)[number % 2]))
            one.sendall(hello)
            opened.append(one)
        for one in opened:
            assert one.recv(100), "the daemon says its settings to each of them"
        assert daemon.open_files() >= 10_000
        assert daemon.resident_bytes() - resident < 200 * MIB, f"{(daemon.resident_bytes() - resident) / MIB:.0f} MiB"
        assert threads(daemon) == before
        serves(daemon)
    eventually(lambda: daemon.open_files() < 200, "their descriptors were given back")
    serves(daemon)


def test_ten_thousand_open_streams(begin):
    daemon = begin("--max-health-watches=10000", "--max-health-watches-per-client=10000")
    serves(daemon)
    resident, before = daemon.resident_bytes(), threads(daemon)
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(h2.Connection(daemon.grpc_port)) for _ in range(40)]
        for one in opened:
            one.send(*(h2.open_grpc(stream, WATCH) + h2.data(stream, h2.message(b"")) for stream in range(1, 501, 2)))
        for one in opened:
            for _ in range(250):
                assert one.until(h2.DATA).payload == h2.message(b"\x08\x01"), "each is told that the daemon serves"
        assert daemon.resident_bytes() - resident < 300 * MIB, f"{(daemon.resident_bytes() - resident) / MIB:.0f} MiB"
        assert threads(daemon) == before
        serves(daemon)
    serves(daemon)


def test_more_streams_than_one_connection_may_have(begin):
    daemon = begin("--max-streams-per-connection=10")
    # Once a client has acknowledged the limit, it is disconnected when it goes beyond it.
    with h2.Connection(daemon.grpc_port, polite=False) as connection:
        announced = dict(struct.iter_unpack(">HI", connection.until(h2.SETTINGS).payload))
        assert announced[h2.MAX_CONCURRENT_STREAMS] == 10
        for stream in range(1, 25, 2):
            small_call(connection, stream, WATCH, b"")
        refusals = [connection.until(h2.RST_STREAM) for _ in range(2)]
        assert [(one.stream, one.error) for one in refusals] == [(21, h2.REFUSED_STREAM), (23, h2.REFUSED_STREAM)]
        # The others and the connection go on.
        connection.send(h2.reset(1))
        small_call(connection, 25)
        fields, body = connection.answer(25)
        assert status(fields)[0] == "0" and VOLUME in body
    assert refused(daemon, "streams") == 2


def test_more_connections_than_there_may_be(begin):
    daemon = begin("--max-connections=32")
    with contextlib.ExitStack() as stack:
        busy = []
        for _ in range(31):
            busy.append(stack.enter_context(h2.Connection(daemon.grpc_port)))
            small_call(busy[-1], 1, WATCH, b"")
            busy[-1].until(h2.DATA)
        # One place is left. It goes from one idle connection to the next.
        for _ in range(5):
            newcomer = stack.enter_context(h2.Connection(daemon.grpc_port))
            newcomer.send(h2.ping())
            newcomer.until(h2.PING, h2.ACK)
        small_call(newcomer, 1, WATCH, b"")
        newcomer.until(h2.DATA)
        # Now all have a request, so nobody has to go for the next one.
        with pytest.raises((h2.Closed, ConnectionError)):
            late = stack.enter_context(h2.Connection(daemon.grpc_port))
            while True:
                late.next()
        for one in busy:
            one.send(h2.ping())
            one.until(h2.PING, h2.ACK)
    serves(daemon)
    assert refused(daemon, "connections") >= 1


# How long and how large


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
def test_a_head_that_is_too_large(begin, version):
    daemon = begin("--max-head-bytes=4096")
    if version == "HTTP/2":
        with h2.Connection(daemon.grpc_port) as connection:
            connection.send(h2.open_grpc(1, MODEL_INFER, [("x", "y" * 5000)]))
            fields, _ = connection.answer(1)
            assert fields.get(":status") == "431" or fields.get("grpc-status") == "8" or "reset" in fields
            # The next request on the connection is not affected.
            small_call(connection, 3)
            assert status(connection.answer(3)[0])[0] == "0"
    else:
        with socket.create_connection(("127.0.0.1", daemon.http_port), timeout=DEADLINE_SECONDS) as one:
            one.sendall(b"GET /v2 HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 5000 + b"\r\n\r\n")
            assert one.recv(4096).startswith(b"HTTP/1.1 431 ")
    eventually(lambda: refused(daemon, "head_too_large") == 1, "it was counted")
    serves(daemon)


def received(one):
    """Everything that comes until the daemon closes the connection."""
    whole = b""
    with contextlib.suppress(ConnectionError):
        while more := one.recv(4096):
            whole += more
    return whole


def test_heads_that_do_not_end_in_time(begin):
    daemon = begin("--head-timeout-seconds=2")
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        slow = stack.enter_context(socket.create_connection(("127.0.0.1", daemon.http_port), timeout=DEADLINE_SECONDS))
        slow.sendall(b"GET / HTTP/1.1\r\nHost:")
        half = stack.enter_context(h2.Connection(daemon.grpc_port, polite=False))
        half.send(h2.frame(h2.HEADERS, 0, 1, h2.block(h2.grpc_fields(WATCH))))
        # A call that has begun in time is not affected.
        watching = stack.enter_context(h2.Connection(daemon.grpc_port))
        small_call(watching, 1, WATCH, b"")
        answer = received(slow)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")
        half.await_end()
        assert 1.9 < time.monotonic() - begun < 20
        watching.send(h2.ping())
        watching.until(h2.PING, h2.ACK)
    assert refused(daemon, "head_timeout") == 2


def test_connections_without_requests_are_closed(begin):
    daemon = begin("--idle-timeout-seconds=2")
    with contextlib.ExitStack() as stack:
        idle = stack.enter_context(h2.Connection(daemon.grpc_port))
        watching = stack.enter_context(h2.Connection(daemon.grpc_port))
        small_call(watching, 1, WATCH, b"")
        kept = stack.enter_context(socket.create_connection(("127.0.0.1", daemon.http_port), timeout=DEADLINE_SECONDS))
        kept.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in kept.recv(4096)
        assert idle.await_end() == h2.NO_ERROR, "it is told before it is closed"
        assert received(kept) == b""
        watching.send(h2.ping())
        watching.until(h2.PING, h2.ACK)
    assert refused(daemon, "idle_timeout") >= 2


def test_a_message_that_stalls_is_ended_alone(begin):
    daemon = begin()
    with h2.Connection(daemon.grpc_port) as connection:
        connection.send(h2.open_grpc(1, MODEL_INFER), h2.data(1, h2.message(bytes(1000), length=10 * MIB), end=False))
        eventually(lambda: daemon.metrics().total("saccade_inflight_bytes") >= 10 * MIB, "its length is accounted for")
        begun = time.monotonic()
        fields, _ = connection.answer(1)
        assert status(fields)[0] in ("4", "8", "14", "1") or "reset" in fields, fields
        assert time.monotonic() - begun < 20
        small_call(connection, 3)
        assert status(connection.answer(3)[0])[0] == "0"
    eventually(lambda: daemon.metrics().total("saccade_inflight_bytes") == 0, "its bytes are given back")
    assert refused(daemon, "stalled_upload") == 1


def test_bodies_where_memory_is_bounded(begin):
    """What is announced is not allocated. What has no room is refused, and no failed allocation ends the daemon."""
    daemon = begin()
    serves(daemon)
    status_file = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
    room = int(re.search(r"VmSize:\s+(\d+) kB", status_file)[1]) * 1024 + 512 * MIB
    resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (room, room))
    head = "POST /v2/models/served/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    with contextlib.ExitStack() as stack:
        for number in range(500):
            one = stack.enter_context(socket.socket())
            one.settimeout(DEADLINE_SECONDS)
            one.bind((f"127.0.2.{2 + number % 2}", 0))
            one.connect(("127.0.0.1", daemon.http_port))
            with contextlib.suppress(ConnectionError):
                one.sendall((head % (60_000_000 - 1000 * number)).encode() + b"[" * 50_000)
        serves(daemon)
    assert refused(daemon, "bytes") > 400
    serves(daemon)


def test_open_calls_count_to_what_a_client_may_hold(begin):
    """Reflection needs no token, and its calls have no end. Each of these has 12 kB of head, of which 10 bytes are sent."""
    daemon = begin(f"--max-inflight-bytes={64 * MIB}", f"--max-message-bytes={16 * MIB}")
    serves(daemon)
    before, calls = daemon.resident_bytes(), 40 * 256
    fields = h2.block(h2.grpc_fields(REFLECTION))
    with contextlib.ExitStack() as stack:
        for _ in range(calls // 256):
            one = stack.enter_context(h2.Connection(daemon.grpc_port, polite=False, source="127.0.2.4"))
            heads = [fields + h2.literal("a", "b" * 3900, indexed=True) + h2.reference(62) * 2]
            heads += [fields + h2.reference(62) * 3] * 255
            one.send(*(h2.frame(h2.HEADERS, h2.END_HEADERS, 2 * number + 1, head) for number, head in enumerate(heads)))
        # Half of the bound, at 28 kB for each.
        eventually(lambda: refused(daemon, "bytes") > calls * 0.7, "most of them are rejected")
        assert refused(daemon, "bytes") < calls
        assert daemon.metrics().total("saccade_inflight_bytes") > 31 * MIB
        # 240 MiB without the charge, 111 if the heads of refused calls were kept until the refusals are written.
        assert daemon.resident_bytes() - before < 60 * MIB
        serves(daemon)
        assert daemon.get("/v2/health/live", daemon.metrics_port)[0] == 200
    eventually(lambda: daemon.metrics().total("saccade_inflight_bytes") == 0, "nothing is held for them")


def test_an_answer_in_json_is_charged_until_it_is_sent(begin):
    """As text it is three times as large as its tensor."""
    daemon = begin(f"--max-inflight-bytes={96 * MIB}", f"--max-message-bytes={32 * MIB}")
    tensor = numpy.random.default_rng(1).standard_normal(1_500_000, numpy.float32).tobytes()
    asked = json.dumps({"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 1, 15, 100, 1000],
                                    "parameters": {"binary_data_size": len(tensor)}}]}).encode()
    head = f"POST /v2/models/served/infer HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(asked) + len(tensor)}" \
           f"\r\nInference-Header-Content-Length: {len(asked)}\r\n\r\n"

    def ask(opened):
        opened.settimeout(DEADLINE_SECONDS)
        opened.connect(("127.0.0.1", daemon.http_port))
        opened.sendall(head.encode() + asked + tensor)
        return opened

    def held():
        return daemon.metrics().total("saccade_inflight_bytes")

    with socket.socket() as unread:
        unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        assert ask(unread).recv(15, socket.MSG_WAITALL) == b"HTTP/1.1 200 OK"
        # Half of the bound is one client's; this answer and its text have 30 MB of it, the next call needs more than the rest.
        assert held() > 24_000_000
        with socket.socket() as second:
            refusal = received(ask(second))
        assert refusal.startswith(b"HTTP/1.1 429 ") and b"bytes in flight" in refusal
        assert held() > 24_000_000
    eventually(lambda: held() == 0, "nothing is held for an answer that nobody reads")
    with socket.socket() as third:
        answer = received(ask(third))
    assert answer.startswith(b"HTTP/1.1 200 OK") and len(answer) > 2.5 * len(tensor)


def test_what_is_not_tls_at_a_port_with_tls(begin, tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("authority"))
    pair = authority.issue("here")
    daemon = begin(f"--tls-cert={pair.certificate}", f"--tls-key={pair.key}",
                   credentials=grpc.ssl_channel_credentials(authority.root.read_bytes()))
    hellos = (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", h2.PREFACE + h2.settings(), bytes(100), b"\x16\x03\x01\x00\x05hello")
    ports = (daemon.grpc_port, daemon.http_port, daemon.metrics_port)
    for hello, port in itertools.product(hellos, ports):
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS) as one:
            one.sendall(hello)
            answer = received(one)
        if hello.startswith(b"GET"):
            assert answer.startswith(b"HTTP/1.1 400 ") and b"https" in answer
    assert daemon.process.poll() is None


# Health


def fill_the_bytes(daemon, stack):
    """Two clients hold half of the bytes each by calls of reflection, which may stay open, and a third one takes what is left.
    Needs the flags of FULL."""
    fields = h2.block(h2.grpc_fields(REFLECTION))
    for source in ("127.0.2.5", "127.0.2.6"):
        # 28 kB for each call.
        for _ in range(3):
            one = stack.enter_context(h2.Connection(daemon.grpc_port, polite=False, source=source))
            heads = [fields + h2.literal("a", "b" * 3900, indexed=True) + h2.reference(62) * 2]
            heads += [fields + h2.reference(62) * 3] * 255
            one.send(*(h2.frame(h2.HEADERS, h2.END_HEADERS, 2 * number + 1, head) for number, head in enumerate(heads)))
    eventually(lambda: daemon.metrics().total("saccade_inflight_bytes") > 31 * MIB, "both clients have their halves")
    rest = stack.enter_context(h2.Connection(daemon.grpc_port, source="127.0.2.7"))
    rest.send(*(h2.open_grpc(stream, REFLECTION) for stream in range(1, 401, 2)))
    assert rest.until(h2.HEADERS).fields["grpc-status"] == "8"


FULL = (f"--max-inflight-bytes={32 * MIB}", f"--max-message-bytes={16 * MIB}")


def check(daemon, port, service=""):
    with grpc.insecure_channel(f"127.0.0.1:{port}", [("grpc.use_local_subchannel_pool", 1)]) as channel:
        return health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service), timeout=DEADLINE_SECONDS)


def probes_are_answered(daemon):
    """As Kubernetes, load balancers and Triton's clients ask, at both ports."""
    for port in (daemon.grpc_port, daemon.http_port):
        assert check(daemon, port).status == SERVING
        assert check(daemon, port, "liveness").status == SERVING
        for path in ("/v2/health/live", "/v2/health/ready"):
            assert daemon.get(path, port)[0] == 200
        with h2.Connection(port) as one:
            for stream, path in ((1, "ServerLive"), (3, "ServerReady")):
                # With a field that is not known: the message needs no room beside the call's either.
                small_call(one, stream, f"/inference.GRPCInferenceService/{path}", b"\x7a\x01x")
                fields, body = one.answer(stream)
                assert status(fields)[0] == "0" and body == h2.message(b"\x08\x01")


def test_health_is_answered_while_the_bytes_are_used_up(begin):
    daemon = begin(*FULL)
    with contextlib.ExitStack() as stack:
        fill_the_bytes(daemon, stack)
        with daemon.inference() as inference, pytest.raises(grpc.RpcError) as refusal:
            inference.model_infer(infer_request("served", SHAPE, VOLUME), timeout=DEADLINE_SECONDS)
        assert refusal.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED and "--max-inflight-bytes" in refusal.value.details()
        assert daemon.get("/v2/models/served")[0] == 429
        probes_are_answered(daemon)
        with h2.Connection(daemon.grpc_port) as watching:
            small_call(watching, 1, WATCH, b"")
            assert watching.until(h2.DATA).payload == h2.message(b"\x08\x01")
        # Checks that are not sent completely hold places, but one client has only a few.
        slow = stack.enter_context(h2.Connection(daemon.grpc_port, source="127.0.2.8"))
        slow.send(*(h2.open_grpc(stream, CHECK) for stream in range(1, 201, 2)))
        eventually(lambda: refused(daemon, "health_checks") == 100 - 64, "the others are refused")
        fields, _ = slow.answer(2 * 64 + 1)
        assert status(fields)[0] == "8" and "send each check completely at once" in status(fields)[1]
        probes_are_answered(daemon)
        assert refused(daemon, "health_checks") == 100 - 64
    eventually(lambda: daemon.metrics().total("saccade_inflight_bytes") == 0, "nothing is held for them")
    serves(daemon)


def test_open_watches_have_a_bound_and_leave_room_for_checks(begin):
    daemon = begin("--max-health-watches=40", "--max-health-watches-per-client=30", *FULL)
    eventually(lambda: daemon.metrics().total("saccade_inflight_bytes") == 0, "this test's own watch has ended")

    def watch(connection):
        """Opens forty; returns the answers to those that were refused."""
        connection.send(*(h2.open_grpc(stream, WATCH) + h2.data(stream, h2.message(b"")) for stream in range(1, 81, 2)))
        told, refusals = 0, []
        while told + len(refusals) < 40:
            got = connection.next()
            told += got.kind == h2.DATA
            if got.kind == h2.HEADERS and got.ends_stream:
                refusals.append(status(got.fields))
        return refusals

    with contextlib.ExitStack() as stack:
        other = stack.enter_context(h2.Connection(daemon.http_port, source="127.0.2.10"))
        with h2.Connection(daemon.grpc_port, source="127.0.2.9") as one:
            assert watch(one) == [], "ten of them are charged as requests are"
            assert daemon.metrics().total("saccade_inflight_bytes") > 40 * 4096, "all are counted where all bytes are"
            serves(daemon)
            fill_the_bytes(daemon, stack)
            in_all = watch(other)
            assert len(in_all) == 30 and {code for code, _ in in_all} == {"8"} and "(--max-health-watches)" in in_all[0][1]
            with h2.Connection(daemon.grpc_port, source="127.0.2.9") as again:
                of_client = watch(again)
            assert len(of_client) == 40 and {code for code, _ in of_client} == {"8"}
            assert "--max-health-watches-per-client" in of_client[0][1] and "ask with Check" in of_client[0][1]
            assert refused(daemon, "health_watches") == 70
            probes_are_answered(daemon)
        with daemon.channel() as channel:
            def is_watched():
                stream = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=DEADLINE_SECONDS)
                try:
                    return next(stream).status == SERVING
                except grpc.RpcError as error:
                    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
                    return False
                finally:
                    stream.cancel()
            eventually(is_watched, "those that have ended leave their places")
    eventually(lambda: daemon.metrics().total("saccade_inflight_bytes") == 0, "nothing is held for them")
    serves(daemon)


# At the shutdown


def test_an_answer_that_is_read_slowly_is_finished(begin):
    """At two megabytes a second it takes longer than every time that the daemon's shutdown has for itself."""
    daemon = begin()
    large = numpy.arange(1_500_000, dtype=numpy.float32).tobytes()
    request = infer_request("served", (1, 1, 15, 100, 1000), large).SerializeToString()
    with h2.Connection(daemon.grpc_port) as connection:
        connection.send(h2.open_grpc(1, MODEL_INFER))
        assert connection.upload(1, h2.message(request)) == []
        body, fields, told, begun = b"", {}, False, time.monotonic()
        while True:
            got = connection.next()
            fields.update(got.fields)
            if got.kind == h2.DATA:
                if not body:
                    daemon.terminate()
                body += got.payload
                connection.allow_slowly(1, len(got.payload), bytes_per_second=2_000_000)
            told = told or got.kind == h2.GOAWAY
            if got.ends_stream:
                break
        assert status(fields)[0] == "0" and told
        assert large in body
        assert time.monotonic() - begun > 2.5
    assert daemon.exit_code() == 0


class Asking(threading.Thread):
    """Makes small calls on one connection until it is told to go away, and for a while after that."""

    def __init__(self, port):
        super().__init__()
        self._connection = h2.Connection(port)
        self.asked, self.outcomes, self.last, self.failure = [], {}, None, None

    def run(self):
        try:
            with self._connection as connection:
                self._ask(connection)
        except (h2.Closed, OSError) as error:
            self.failure = error

    def _ask(self, connection):
        stream = 1
        while self.last is None or self.last >= 2**31 - 1:
            small_call(connection, stream)
            self.asked.append(stream)
            while stream not in self.outcomes:
                self._read(connection.next(), connection)
            stream += 2
        with contextlib.suppress(h2.Closed):
            while True:
                self._read(connection.next(), connection)

    def _read(self, got, connection):
        if got.kind == h2.GOAWAY:
            self.last = int.from_bytes(got.payload[:4], "big")
            for stream in self.asked:
                if stream > self.last:
                    self.outcomes.setdefault(stream, "not taken")
        elif got.kind == h2.HEADERS:
            if got.ends_stream:
                self.outcomes[got.stream] = got.fields.get("grpc-status")
        elif got.kind == h2.RST_STREAM:
            self.outcomes[got.stream] = f"reset {got.error}"
        elif got.kind == h2.DATA:
            connection.allow(got.stream, len(got.payload))


def test_a_shutdown_tells_before_it_refuses(begin):
    """One upload is silent, one request is computed, and clients ask all the time. The upload is ended; everybody else is either
    answered, or told that the request was not taken."""
    daemon = begin("--lame-duck-seconds=0.3", "--drain-timeout-seconds=20")
    with contextlib.ExitStack() as stack:
        computed = stack.enter_context(h2.Connection(daemon.grpc_port))
        small_call(computed, 1, payload=infer_request("late", SHAPE, VOLUME).SerializeToString())
        asking = [Asking(daemon.grpc_port) for _ in range(3)]
        for one in asking:
            one.start()
        eventually(lambda: all(len(one.outcomes) > 20 for one in asking), "they are answered")
        eventually(lambda: daemon.metrics().total("saccade_inflight_requests") >= 1, "a request is computed")
        silent = stack.enter_context(h2.Connection(daemon.grpc_port))
        # What it has sent already gives it five seconds for the rest.
        silent.send(h2.open_grpc(1, MODEL_INFER))
        assert silent.upload(1, h2.message(bytes(MIB), length=10 * MIB), end=False) == []
        begun = time.monotonic()
        daemon.terminate()
        fields, _ = silent.answer(1)
        assert fields.get("goaway") == h2.NO_ERROR and (status(fields)[0] == "14" or "reset" in fields), fields
        assert time.monotonic() - begun < 15, "it does not wait for the drain's timeout"
        fields, body = computed.answer(1)
        assert status(fields)[0] == "0" and VOLUME in body
        for one in asking:
            one.join(DEADLINE_SECONDS)
            assert not one.is_alive() and one.failure is None, one.failure
            assert one.last is not None, "it was told to go away"
            not_taken = ("not taken", f"reset {h2.REFUSED_STREAM}")
            wrong = {stream: outcome for stream, outcome in one.outcomes.items()
                     if outcome != "0" and not (stream > one.last and outcome in not_taken)}
            assert not wrong, wrong
    assert daemon.exit_code() == 0

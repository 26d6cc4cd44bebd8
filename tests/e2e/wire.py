"""gRPC calls over a bare socket, with hand-written HTTP/2, for requests that no client library would send."""

import struct

STREAM = 1
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
SETTINGS_INITIAL_WINDOW = 4
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_FRAME = 16384
INITIAL_WINDOW = 65535


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A header field without indexing, with a new name and no Huffman code; both shorter than 127 bytes."""
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


class Frames:
    """Reads the frames of a connection and answers control frames."""

    def __init__(self, connection):
        self._connection = connection
        self._windows = {0: INITIAL_WINDOW}
        self._initial = INITIAL_WINDOW

    def window(self, stream):
        """Bytes that may be sent on a stream within the daemon's flow-control windows."""
        return min(self._windows[0], self._windows.setdefault(stream, self._initial))

    def use(self, stream, size):
        for counted in (0, stream):
            self._windows[counted] -= size

    def next(self):
        """Reads the next frame; returns (stream, whether the stream has ended)."""
        head = receive(self._connection, 9)
        kind, flags = head[3], head[4]
        stream = int.from_bytes(head[5:], "big")
        payload = receive(self._connection, int.from_bytes(head[:3], "big"))
        if kind == SETTINGS and not flags & ACK:
            self._settle(payload)
            self._connection.sendall(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self._connection.sendall(frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE:
            self._windows[stream] = self._windows.get(stream, self._initial) + int.from_bytes(payload, "big")
        return stream, kind == RST_STREAM or bool(kind in (HEADERS, DATA) and flags & END_STREAM)

    def _settle(self, payload):
        for name, value in struct.iter_unpack(">HI", payload):
            if name == SETTINGS_INITIAL_WINDOW:
                for stream in self._windows:
                    self._windows[stream] += value - self._initial if stream else 0
                self._initial = value


def open_stream(connection, path, timeout, stream):
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
    connection.sendall(frame(HEADERS, END_HEADERS, stream, headers))


class Call:
    """A call opened by its headers; send() sends the message."""

    def __init__(self, connection, path, timeout):
        self._connection = connection
        self._frames = Frames(connection)
        connection.sendall(PREFACE + frame(SETTINGS, 0, 0))
        open_stream(connection, path, timeout, STREAM)

    def send(self, message):
        """Sends a message of any size, within the flow-control windows."""
        body = b"\x00" + struct.pack(">I", len(message)) + message
        start = 0
        while start < len(body):
            size = min(MAX_FRAME, len(body) - start, self._frames.window(STREAM))
            if size <= 0:
                self._frames.next()
                continue
            last = start + size == len(body)
            self._frames.use(STREAM, size)
            self._connection.sendall(frame(DATA, END_STREAM if last else 0, STREAM, body[start : start + size]))
            start += size

    def await_end(self):
        """Blocks until the daemon has ended the call with trailers or a reset."""
        while not self._frames.next()[1]:
            pass


def flood(connection, path, timeout, message, calls):
    """Makes a number of small calls at once over one connection; returns when all have ended."""
    body = b"\x00" + struct.pack(">I", len(message)) + message
    assert calls * len(body) <= INITIAL_WINDOW, "larger than may be sent before the daemon grants more"
    frames = Frames(connection)
    connection.sendall(PREFACE + frame(SETTINGS, 0, 0))
    open_now = set()
    for stream in range(1, 2 * calls, 2):
        open_now.add(stream)
        open_stream(connection, path, timeout, stream)
        connection.sendall(frame(DATA, END_STREAM, stream, body))
    while open_now:
        stream, ended = frames.next()
        if ended:
            open_now.discard(stream)

"""HTTP/2 frames over a bare socket (RFC 9113, RFC 7541), for requests that no client library would send.

Heads are written as literal fields without Huffman code. Heads that arrive are read with libnghttp2."""

import contextlib
import ctypes
import functools
import socket
import struct
import time
import typing
import zlib

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
ACK = END_STREAM = 0x1
END_HEADERS, PADDED, WITH_PRIORITY = 0x4, 0x8, 0x20

(NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, SETTINGS_TIMEOUT, STREAM_CLOSED, FRAME_SIZE_ERROR,
 REFUSED_STREAM, CANCEL, COMPRESSION_ERROR, CONNECT_ERROR, ENHANCE_YOUR_CALM) = range(12)

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = range(1, 7)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_FRAME = 16384
FIRST_WINDOW = 65535
SECONDS = 30


class Frame(typing.NamedTuple):
    kind: int
    flags: int
    stream: int
    payload: bytes
    # The fields of a HEADERS frame that was received.
    fields: dict = {}

    @property
    def ends_stream(self):
        return self.kind == RST_STREAM or self.kind in (DATA, HEADERS) and bool(self.flags & END_STREAM)

    @property
    def error(self):
        """The error code of a RST_STREAM or GOAWAY."""
        return int.from_bytes(self.payload[4:8] if self.kind == GOAWAY else self.payload, "big")


class Closed(EOFError):
    """The daemon has closed the connection."""


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def settings(values=()):
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", name, value) for name, value in dict(values).items()))


def window_update(stream, bytes_more):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", bytes_more))


def reset(stream, error=CANCEL):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", error))


def ping(payload=bytes(8)):
    return frame(PING, 0, 0, payload)


def integer(value, bits, first=0):
    """An integer with a prefix of `bits` bits, below the upper bits `first` of its first byte."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    rest, value = [first | most], value - most
    while value >= 128:
        rest.append(value % 128 + 128)
        value //= 128
    return bytes([*rest, value])


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return integer(len(value), 7) + value


def literal(name, value, indexed=False):
    """A field with a new name; `indexed` adds it to the dynamic table."""
    return (b"\x40" if indexed else b"\x00") + text(name) + text(value)


def reference(index):
    """A field of the static table (1 to 61) or of the dynamic one (62 is the newest)."""
    return integer(index, 7, 0x80)


def block(fields):
    """A header block of (name, value) pairs."""
    return b"".join(literal(name, value) for name, value in fields)


def grpc_fields(path, more=(), scheme="http"):
    return [(":method", "POST"), (":scheme", scheme), (":path", path), (":authority", "localhost"), ("te", "trailers"),
            ("content-type", "application/grpc"), *more]


def head(stream, fields, end=False):
    """A head, in as many frames as its size needs."""
    whole = block(fields)
    parts = [whole[at : at + MAX_FRAME] for at in range(0, len(whole), MAX_FRAME)]
    flags = [END_HEADERS if part is parts[-1] else 0 for part in parts]
    first = frame(HEADERS, flags[0] | (END_STREAM if end else 0), stream, parts[0])
    return first + b"".join(frame(CONTINUATION, flag, stream, part) for flag, part in zip(flags[1:], parts[1:]))


def open_grpc(stream, path, more=()):
    """The head of a gRPC call."""
    return head(stream, grpc_fields(path, more))


def message(payload, compressed=False, length=None):
    """A gRPC message; `length` is what it claims, if that is not its length."""
    return struct.pack(">BI", compressed, len(payload) if length is None else length) + payload


def data(stream, payload, end=True):
    """DATA frames of at most the size that every peer accepts."""
    parts = [payload[at : at + MAX_FRAME] for at in range(0, len(payload), MAX_FRAME)] or [b""]
    return b"".join(frame(DATA, END_STREAM if end and part is parts[-1] else 0, stream, part) for part in parts)


@functools.cache
def gzip_bomb(size, unit=bytes(1 << 20)):
    """A gzip file that decompresses to `size` bytes of repeated `unit`, made without compressing all of it: after a full
    flush, compressed blocks may be repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    first = packer.compress(unit) + packer.flush(zlib.Z_FULL_FLUSH)
    head, part = first[:10], first[10:]
    count, crc = size // len(unit), 0
    if size <= 64 << 20:
        for _ in range(count):
            crc = zlib.crc32(unit, crc)
    # Above that, the checksum stays wrong: nobody should read as far as to it.
    return head + part * count + b"\x03\x00" + struct.pack("<II", crc, count * len(unit) & 0xFFFFFFFF)


class Inflater:
    """Reads header blocks of one connection."""

    class _Field(ctypes.Structure):
        _fields_ = [("name", ctypes.POINTER(ctypes.c_char)), ("value", ctypes.POINTER(ctypes.c_char)),
                    ("name_length", ctypes.c_size_t), ("value_length", ctypes.c_size_t), ("flags", ctypes.c_uint8)]

    def __init__(self):
        self._library = ctypes.CDLL("libnghttp2.so.14")
        self._library.nghttp2_hd_inflate_hd2.restype = ctypes.c_ssize_t
        self._library.nghttp2_hd_inflate_hd2.argtypes = [
            ctypes.c_void_p, ctypes.POINTER(self._Field), ctypes.POINTER(ctypes.c_int), ctypes.c_char_p, ctypes.c_size_t,
            ctypes.c_int]
        self._state = ctypes.c_void_p()
        assert self._library.nghttp2_hd_inflate_new(ctypes.byref(self._state)) == 0

    def read(self, payload):
        """Returns the fields as a dict of texts."""
        fields, field, flags = {}, self._Field(), ctypes.c_int()
        while True:
            used = self._library.nghttp2_hd_inflate_hd2(self._state, field, flags, payload, len(payload), 1)
            assert used >= 0, f"a header block cannot be read: nghttp2's error {used}"
            payload = payload[used:]
            if flags.value & 2:
                name, value = field.name[: field.name_length], field.value[: field.value_length]
                fields[name.decode()] = value.decode(errors="replace")
            if flags.value & 1:
                self._library.nghttp2_hd_inflate_end_headers(self._state)
                return fields
            assert used or flags.value & 2, "a header block is incomplete"

    def __del__(self):
        self._library.nghttp2_hd_inflate_del(self._state)


class Connection:
    """A connection that has sent its preface. It answers nothing by itself unless `polite`: then SETTINGS and PING get
    their acknowledgements while frames are read."""

    def __init__(self, port, values=(), polite=True, source=None, tls=None, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(SECONDS)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            tls.set_alpn_protocols(["h2"])
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self._polite, self._received = polite, b""
        self.sent, self._inflater = 0, None
        # How much may be sent on the connection (0) and on each stream, as the daemon allows it.
        self.windows, self._first_window = {0: FIRST_WINDOW}, FIRST_WINDOW
        self.send(PREFACE, settings(values))

    def send(self, *frames):
        whole = b"".join(frames)
        self.socket.sendall(whole)
        self.sent += len(whole)

    def _take(self, size):
        while len(self._received) < size:
            more = self.socket.recv(1 << 16)
            if not more:
                raise Closed
            self._received += more
        taken, self._received = self._received[:size], self._received[size:]
        return taken

    def next(self):
        """The next frame. Raises Closed, or TimeoutError after the socket's timeout."""
        head = self._take(9)
        got = Frame(head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFFFFFF, self._take(int.from_bytes(head[:3], "big")))
        if got.kind == SETTINGS and not got.flags & ACK:
            self._settle(got.payload)
        elif got.kind == WINDOW_UPDATE:
            self.windows[got.stream] = self.window(got.stream) + int.from_bytes(got.payload, "big")
        elif got.kind == HEADERS:
            assert got.flags & END_HEADERS and not got.flags & (PADDED | WITH_PRIORITY)
            self._inflater = self._inflater or Inflater()
            got = got._replace(fields=self._inflater.read(got.payload))
        elif self._polite and got.kind == PING and not got.flags & ACK:
            self.send(frame(PING, ACK, 0, got.payload))
        return got

    def _settle(self, payload):
        for name, value in struct.iter_unpack(">HI", payload):
            if name == INITIAL_WINDOW_SIZE:
                for stream in self.windows:
                    self.windows[stream] += value - self._first_window if stream else 0
                self._first_window = value
        if self._polite:
            self.send(frame(SETTINGS, ACK))

    def window(self, stream):
        return self.windows.setdefault(stream, self._first_window if stream else FIRST_WINDOW)

    def upload(self, stream, payload, end=True):
        """Sends a body within the daemon's windows. Returns the frames that ended the stream meanwhile, or []."""
        at = 0
        while at < len(payload):
            size = min(MAX_FRAME, len(payload) - at, self.window(0), self.window(stream))
            if size <= 0:
                got = self.next()
                if got.kind == GOAWAY or got.stream == stream and got.ends_stream:
                    return [got]
                continue
            self.windows[0] -= size
            self.windows[stream] -= size
            self.send(frame(DATA, END_STREAM if end and at + size == len(payload) else 0, stream, payload[at : at + size]))
            at += size
        return []

    def allow(self, stream, size):
        """Extends the windows of the stream and the connection, if the daemon has not closed it after its last byte."""
        with contextlib.suppress(OSError):
            self.send(*(window_update(counted, size) for counted in (0, stream) if size))

    def allow_slowly(self, stream, size, bytes_per_second):
        """Extends the windows once a client that reads so slowly has read so much."""
        time.sleep(size / bytes_per_second)
        self.allow(stream, size)

    def until(self, kind, flags=0):
        """Reads until a frame of this kind that has these flags; returns it."""
        while True:
            got = self.next()
            if got.kind == kind and got.flags & flags == flags:
                return got

    def answer(self, stream):
        """Reads to the end of a stream. Returns (fields of all heads, body); the fields have 'reset' if it was reset,
        and 'goaway' if the connection was ended."""
        fields, body = {}, b""
        while True:
            got = self.next()
            if got.kind == HEADERS and got.stream == stream:
                fields.update(got.fields)
            elif got.kind == GOAWAY:
                fields["goaway"] = got.error
            elif got.stream == stream and got.kind == DATA:
                body += got.payload
                self.allow(stream, len(got.payload))
            elif got.stream == stream and got.kind == RST_STREAM:
                fields["reset"] = got.error
            if got.stream == stream and got.ends_stream:
                return fields, body

    def await_end(self):
        """Reads until the daemon closes the connection. Returns the error code of its GOAWAY; None if there was none."""
        error = None
        try:
            while True:
                got = self.next()
                error = got.error if got.kind == GOAWAY else error
        except (Closed, ConnectionError):
            return error

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

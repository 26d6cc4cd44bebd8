"""What the attacks on the daemon's ports share: connections that never answer by themselves, paths of methods, and parts of
messages."""

import contextlib
import itertools
import socket
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


GZIP = [("grpc-encoding", "gzip")]


def gzip_of_nothing(size):
    """About `size` bytes of blocks that hold nothing, and gzip's end with the checksum of nothing."""
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + b"\0\0\0\xff\xff" * (size // 5) + b"\x01\0\0\xff\xff" + bytes(8)


def varint(value):
    return bytes([value & 0x7F | 0x80]) + varint(value >> 7) if value > 0x7F else bytes([value])

"""gRPC calls over a bare socket, for clients that behave as no library would."""

from http2_frames import FIRST_WINDOW, Connection, data, message, open_grpc

STREAM = 1


class Call(Connection):
    """A connection with one call, opened by its headers; ask() sends the message."""

    def __init__(self, port, path, timeout):
        super().__init__(port)
        self.send(open_grpc(STREAM, path, [("grpc-timeout", timeout)]))

    def ask(self, request):
        """Sends a message of any size, within the daemon's windows."""
        assert self.upload(STREAM, message(request)) == []

    def await_over(self):
        """Blocks until the daemon has ended the call with trailers or a reset."""
        self.answer(STREAM)


def flood(port, path, timeout, request, calls):
    """Makes a number of small calls at once over one connection; returns when all have ended."""
    body = message(request)
    assert calls * len(body) <= FIRST_WINDOW, "larger than may be sent before the daemon grants more"
    open_now = set(range(1, 2 * calls, 2))
    with Connection(port) as connection:
        for stream in sorted(open_now):
            connection.send(open_grpc(stream, path, [("grpc-timeout", timeout)]), data(stream, body))
        while open_now:
            got = connection.next()
            if got.ends_stream:
                open_now.discard(got.stream)

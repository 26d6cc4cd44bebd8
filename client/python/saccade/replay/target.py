"""The daemon that captured calls are sent to again: the same bytes, by the same protocol."""

from __future__ import annotations

import dataclasses
import http.client
import ssl
import threading
import time

import grpc

from saccade.connection import TLS, Connection
from saccade.replay import answers
from saccade.replay.answers import MODEL_STREAM_INFER, PREDICT_STREAM, Reply
from saccade.replay.failures import ReplayError
from saccade.replay.segments import Captured
from saccade.v1 import vision_pb2 as pb

_MAX_MESSAGE = 2**31 - 1
# As saccaded maps statuses to HTTP; the others do not come from a model.
_BY_HTTP = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED",
    412: "FAILED_PRECONDITION", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 501: "UNIMPLEMENTED",
    503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}
_BUSY = ("RESOURCE_EXHAUSTED", "UNAVAILABLE")
_SENT_AGAIN = ("accept", "content-type", "inference-header-content-length")


@dataclasses.dataclass(frozen=True)
class Identity:
    """What answers depend on beside the request. Empty members are not known."""

    weights_sha256: str
    precision: str
    instruction_set: str

    def computes_like(self, other: Identity) -> bool:
        return bool(self.weights_sha256 and self.instruction_set) and self == other


def identity_of(captured: Captured) -> Identity:
    facts = captured.facts
    return Identity(*(str(facts.get(name, "")) for name in ("weights_sha256", "precision", "instruction_set")))


def _status_of(http_status: int) -> str:
    return "OK" if http_status < 300 else _BY_HTTP.get(http_status, "UNKNOWN")


def _is_busy(target: str, reply: Reply) -> bool:
    if target != PREDICT_STREAM or not reply.body:
        return reply.status in _BUSY
    try:
        return answers.read(target, reply).status in _BUSY
    except ValueError:
        return False


class Target:
    """Thread-safe."""

    def __init__(self, address: str, http_address: str | None, token: str | None, tls: bool, timeout: float) -> None:
        try:
            connection = Connection(address, TLS() if tls else None, token, False, _MAX_MESSAGE)
        except ValueError as error:
            raise ReplayError(f"--url: {error}") from None
        self.address = address
        self._http = http_address or f"{address.rpartition(':')[0]}:8000"
        self._tls = tls
        self._timeout = timeout
        self._metadata = connection.metadata()
        self._channel = connection.channel()
        self._methods: dict[str, grpc.UnaryUnaryMultiCallable | grpc.StreamStreamMultiCallable] = {}
        self._local = threading.local()

    def close(self) -> None:
        self._channel.close()

    def identities(self) -> dict[tuple[str, int], Identity]:
        """Of every model version that is ready."""
        ask = self._channel.unary_unary(
            "/saccade.v1.Vision/ListModels", request_serializer=pb.ListModelsRequest.SerializeToString,
            response_deserializer=pb.ListModelsResponse.FromString,
        )
        try:
            listed = ask(pb.ListModelsRequest(), timeout=self._timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise ReplayError(
                f"the daemon at {self.address} cannot be asked for its models: {error.details()}; "  # type: ignore[attr-defined]
                "check --url, --token-file and --tls"
            ) from None
        return {
            (one.name, one.version): Identity(one.weights_sha256, one.precision, one.instruction_set)
            for one in listed.models
            if one.state == pb.Model.READY
        }

    def send(self, captured: Captured) -> Reply:
        """Blocks until the answer is there."""
        if captured.transport == "http":
            return self._send_http(captured)
        return self._send_grpc(captured)

    def _method(self, target: str) -> grpc.UnaryUnaryMultiCallable | grpc.StreamStreamMultiCallable:
        method = self._methods.get(target)
        if method is None:
            streams = target in (PREDICT_STREAM, MODEL_STREAM_INFER)
            make = self._channel.stream_stream if streams else self._channel.unary_unary
            method = self._methods[target] = make("/" + target)
        return method

    def _send_grpc(self, captured: Captured) -> Reply:
        target = captured.target
        method = self._method(target)
        try:
            if target in (PREDICT_STREAM, MODEL_STREAM_INFER):
                body = next(iter(method(iter([captured.request]), timeout=self._timeout, metadata=self._metadata)), b"")
            else:
                body = method(captured.request, timeout=self._timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            return Reply(error.code().name, error.details() or "", b"", {})  # type: ignore[attr-defined]
        return Reply("OK", "", body, {})

    def _connect(self) -> http.client.HTTPConnection:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            if self._tls:
                connection = http.client.HTTPSConnection(
                    self._http, timeout=self._timeout, context=ssl.create_default_context()
                )
            else:
                connection = http.client.HTTPConnection(self._http, timeout=self._timeout)
            self._local.connection = connection
        return connection

    def _send_http(self, captured: Captured) -> Reply:
        headers = {name: value for name, value in captured.headers.items() if name in _SENT_AGAIN}
        headers |= {name.title(): value for name, value in self._metadata}
        for last in (False, True):
            connection = self._connect()
            try:
                connection.request("POST", captured.target, captured.request, headers)
                response = connection.getresponse()
                body = response.read()
            except (OSError, http.client.HTTPException) as error:
                # The daemon may have closed a connection that was idle.
                connection.close()
                self._local.connection = None
                if last:
                    return Reply("UNAVAILABLE", f"http://{self._http}: {error}; --http-url names another address", b"", {})
                continue
            named = {name.lower(): value for name, value in response.getheaders()}
            return Reply(_status_of(response.status), "", body, named, response.status)
        raise AssertionError("not reached")

    def send_patiently(self, captured: Captured, patience: float) -> Reply:
        """Sends again while the daemon rejects the call for its load, for at most `patience` seconds."""
        end, wait = time.monotonic() + patience, 0.05
        while True:
            reply = self.send(captured)
            if not _is_busy(captured.target, reply) or time.monotonic() + wait > end:
                return reply
            time.sleep(wait)
            wait = min(wait * 2, 2.0)


def captured_reply(captured: Captured) -> Reply:
    """The answer of the capture."""
    http_status = captured.facts.get("http_status", 0)
    # HTTP has fewer statuses than the daemon.
    status = _status_of(http_status) if http_status else captured.status
    return Reply(status, captured.message, captured.answer, captured.answer_headers, http_status)

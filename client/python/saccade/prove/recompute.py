"""Asks a daemon the same request again: one that is started for that, or one that runs."""

from __future__ import annotations

import contextlib
import http.client
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.parse
from typing import Iterator

import grpc

from saccade.bulk.keeper import Daemon
from saccade.connection import TLS, Connection
from saccade.prove import ed25519, inputs, saved
from saccade.prove.failures import ProveError
from saccade.prove.inputs import Request
from saccade.prove.saved import Saved, Statement
from saccade.v1 import vision_pb2 as pb

_MAX_MESSAGE = 2**31 - 1
_LOOK_SECONDS = 0.05


class Target:
    def __init__(self, address: str, http_address: str, token: str | None, tls: bool, timeout: float) -> None:
        try:
            self._connection = Connection(address, TLS() if tls else None, token, False, _MAX_MESSAGE)
        except ValueError as error:
            raise ProveError(f"--url: {error}") from None
        self._address, self._http, self._tls, self._timeout = address, http_address, tls, timeout

    def ask(self, request: Request, statement: Statement) -> Saved:
        """The answer; without an attestation if the daemon signs none."""
        content = self._ask_message(request.message) if request.message else self._ask_tensors(request, statement)
        try:
            return saved.parse(content)
        except ValueError as error:
            raise ProveError(f"the answer of {self._address} {error}") from None

    def _ask_message(self, message: pb.PredictRequest) -> bytes:
        with self._connection.channel() as channel:
            method = channel.unary_unary("/saccade.v1.Vision/Predict", request_serializer=pb.PredictRequest.SerializeToString)
            try:
                return bytes(method(message, timeout=self._timeout, metadata=self._connection.metadata()))
            except grpc.RpcError as error:
                raise ProveError(f"the daemon at {self._address} does not answer the request: {error.details()}") from None  # type: ignore[attr-defined]

    def _ask_tensors(self, request: Request, statement: Statement) -> bytes:
        assert request.tensors is not None
        body, length = inputs.inference_body(*request.tensors)
        model = urllib.parse.quote(statement["model"], safe="")
        headers = {"Inference-Header-Content-Length": str(length), "Content-Type": "application/octet-stream"}
        headers |= {name.title(): value for name, value in self._connection.metadata()}
        kind = http.client.HTTPSConnection if self._tls else http.client.HTTPConnection
        connection = kind(self._http, timeout=self._timeout)
        try:
            connection.request("POST", f"/v2/models/{model}/versions/{statement['version']}/infer", body, headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ProveError(f"http://{self._http} cannot be asked: {error}; --http-url names another address") from None
        finally:
            connection.close()
        if response.status != 200:
            raise ProveError(f"the daemon at {self._http} does not answer the request: {content.decode(errors='replace')[:500]}")
        return content


def _program(given: str) -> str:
    found = shutil.which(given)
    if found is None:
        raise ProveError(f"{given} is not in PATH; name the program with --saccaded, or a running daemon with --url")
    return found


@contextlib.contextmanager
def serving(folder: pathlib.Path, program: str, flags: list[str], start_seconds: float, timeout: float) -> Iterator[Target]:
    """Starts a daemon that serves the model in `folder`, and stops it afterwards. It signs with a key of its own, which
    nobody verifies: only its statement is compared."""
    model = folder.resolve()
    if not model.is_dir():
        raise ProveError(f"--model {folder} is no folder; name the model's folder, with its versions and config.pbtxt")
    with tempfile.TemporaryDirectory(prefix="saccade-prove-") as own:
        key = pathlib.Path(own) / "key.pem"
        key.touch(mode=0o600)
        key.write_text(ed25519.new_private_pem(), encoding="ascii")
        command = [
            _program(program), "--host=127.0.0.1", "--grpc-port=0", "--http-port=0", "--metrics-port=0", "--page=false",
            f"--model-repository={model.parent}", "--model-control-mode=explicit", f"--load-model={model.name}",
            "--warm-up-seconds=0", f"--state-folder={own}", f"--attest-key={key}", *flags,
        ]
        try:
            daemon = Daemon(command)
        except (OSError, subprocess.SubprocessError) as error:
            raise ProveError(f"{program} cannot be started: {error}") from None
        try:
            end = time.monotonic() + start_seconds
            while not daemon.is_ready():
                if daemon.ended():
                    raise ProveError(daemon.why())
                if time.monotonic() > end:
                    raise ProveError(f"the daemon was not ready after {start_seconds:g} s; --start-seconds waits longer")
                time.sleep(_LOOK_SECONDS)
            yield Target(str(daemon.address), str(daemon.http_address), None, False, timeout)
        finally:
            daemon.stop()

"""Where the daemon is, and how it is spoken to."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib

import grpc

_LOCAL = ("localhost", "127.0.0.1", "[::1]")


@dataclasses.dataclass(frozen=True)
class TLS:
    """Certificates and keys are PEM, as bytes or as paths. Without `root_certificates` gRPC's own are trusted; with a
    client's certificate and key the daemon can tell who calls (mTLS). `server_name` is the name that the daemon's
    certificate has, where it is not the address's."""

    root_certificates: bytes | str | os.PathLike[str] | None = None
    client_certificate: bytes | str | os.PathLike[str] | None = None
    client_key: bytes | str | os.PathLike[str] | None = None
    server_name: str | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        if (self.client_certificate is None) != (self.client_key is None):
            raise ValueError("tls: client_certificate and client_key belong together; one of them is missing")
        return grpc.ssl_channel_credentials(
            _pem(self.root_certificates), _pem(self.client_key), _pem(self.client_certificate)
        )


def _pem(given: bytes | str | os.PathLike[str] | None) -> bytes | None:
    return given if given is None or isinstance(given, bytes) else pathlib.Path(given).read_bytes()


@dataclasses.dataclass(frozen=True)
class Connection:
    """Checked, so that a wrong option fails where it was written and not with the first call."""

    address: str
    tls: TLS | None
    token: str | None
    max_message_bytes: int

    def __post_init__(self) -> None:
        if not self.address or "://" in self.address.replace("dns:///", ""):
            raise ValueError(f"address: {self.address!r} is none; expected HOST:PORT, without http://")
        if self.max_message_bytes < 1:
            raise ValueError(f"max_message_bytes: is {self.max_message_bytes}; expected at least 1")
        if self.token is not None and self.tls is None and not self._is_local():
            raise ValueError("token: would be sent readable to everybody on the way; give tls as well")

    def _is_local(self) -> bool:
        return self.address.startswith("unix:") or self.address.rpartition(":")[0] in _LOCAL

    def options(self) -> list[tuple[str, str | int]]:
        # A host name stands for all its addresses, each of them in turn. Retries are ours: gRPC's know no deadline
        # but the attempt's.
        options: list[tuple[str, str | int]] = [
            ("grpc.max_send_message_length", self.max_message_bytes),
            ("grpc.max_receive_message_length", self.max_message_bytes),
            ("grpc.service_config", json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})),
            ("grpc.enable_retries", 0),
        ]
        if self.tls is not None and self.tls.server_name is not None:
            options.append(("grpc.ssl_target_name_override", self.tls.server_name))
        return options

    def metadata(self) -> tuple[tuple[str, str], ...]:
        return () if self.token is None else (("authorization", f"Bearer {self.token}"),)

    def channel(self) -> grpc.Channel:
        if self.tls is None:
            return grpc.insecure_channel(self.address, self.options())
        return grpc.secure_channel(self.address, self.tls.credentials(), self.options())

    def aio_channel(self) -> grpc.aio.Channel:
        if self.tls is None:
            return grpc.aio.insecure_channel(self.address, self.options())
        return grpc.aio.secure_channel(self.address, self.tls.credentials(), self.options())

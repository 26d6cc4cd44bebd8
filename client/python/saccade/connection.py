"""The daemon's address, and the options of the connection."""

from __future__ import annotations

import base64
import dataclasses
import ipaddress
import json
import os
import pathlib
import random
import re
import ssl

import grpc

from saccade.errors import SaccadeError, Unavailable, Untrusted

# How long the daemon may take to answer a ping before its connection is given up.
_PING_TIMEOUT = 5.0

# gRPC keeps sizes and milliseconds in 32 bits.
_MOST_MESSAGE_BYTES = 2**31 - 1
_MOST_KEEPALIVE = _MOST_MESSAGE_BYTES // 1000

# gRPC's forms of addresses that are not checked here.
_SCHEMES = ("unix:", "unix-abstract:", "vsock:", "dns:", "ipv4:", "ipv6:")

_PEM_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)

# Servers reject headers that are much larger.
_MAX_TOKEN = 4096


@dataclasses.dataclass(frozen=True)
class TLS:
    """TLS options. Certificates and keys are PEM, given as bytes or as paths. Without `root_certificates` gRPC's own
    are trusted. A client certificate and its key authenticate the client to the daemon (mTLS). `server_name` is the
    name in the daemon's certificate, if it differs from the address."""

    root_certificates: bytes | str | os.PathLike[str] | None = None
    client_certificate: bytes | str | os.PathLike[str] | None = None
    client_key: bytes | str | os.PathLike[str] | None = None
    server_name: str | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        if (self.client_certificate is None) != (self.client_key is None):
            raise ValueError("tls: one of client_certificate and client_key is missing; give both or neither")
        return grpc.ssl_channel_credentials(
            _pem("root_certificates", self.root_certificates, b"CERTIFICATE-----"),
            _pem("client_key", self.client_key, b"PRIVATE KEY-----"),
            _pem("client_certificate", self.client_certificate, b"CERTIFICATE-----"),
        )


def _pem(name: str, given: bytes | str | os.PathLike[str] | None, kind: bytes) -> bytes | None:
    """Reads a PEM option. Raises ValueError for content that gRPC would only log as unusable."""
    if given is None:
        return None
    pem = given if isinstance(given, bytes) else pathlib.Path(given).read_bytes()
    if b"-----BEGIN " not in pem or kind not in pem:
        raise ValueError(f"tls: {name} has no {kind.decode().rstrip('-').lower()} in PEM")
    _check_block(name, pem, kind.rstrip(b"-"))
    return pem


def _check_block(name: str, pem: bytes, kind: bytes) -> None:
    """Raises ValueError if the first certificate or key cannot be read. gRPC uses no others if that fails."""
    found = next((block for block in _PEM_BLOCK.finditer(pem) if block[1].endswith(kind)), None)
    what = kind.decode().lower()
    if found is not None and (found[1].startswith(b"ENCRYPTED") or b"Proc-Type: 4,ENCRYPTED" in found[2]):
        raise ValueError(f"tls: {name} is encrypted; expected a {what} without a passphrase, as openssl pkey writes it")
    try:
        der = base64.b64decode(b"".join(found[2].split()), validate=True) if found is not None else b""
        # Certificates and keys are ASN.1 sequences.
        is_readable = der[:1] == b"0"
        if found is not None and found[1] == b"CERTIFICATE":
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=der)
    except (ValueError, ssl.SSLError):
        is_readable = False
    if not is_readable:
        raise ValueError(f"tls: {name} has no {what} that can be read; expected PEM, -----BEGIN {kind.decode()}----- and so on")


def is_url(address: str) -> bool:
    """Whether the address has a scheme such as http://, none of gRPC's own."""
    return not address.startswith("unix:") and "://" in address.replace("dns:///", "")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_ipv6(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True


@dataclasses.dataclass(frozen=True)
class Connection:
    """A validated set of connection options: a wrong option fails in the constructor, not in the first call."""

    address: str
    tls: TLS | None
    token: str | None
    token_without_tls: bool
    max_message_bytes: int
    # Seconds without a byte after which a connection with open calls is tested by a ping. None never does.
    keepalive: float | None = 10.0

    def __post_init__(self) -> None:
        if not self.address or is_url(self.address):
            raise ValueError(
                f"address: {self.address!r} is not valid; expected HOST:PORT, without http:// or https://; the option tls "
                "connects with TLS"
            )
        if not self.address.startswith(_SCHEMES):
            self._check_host_and_port()
        if not 1 <= self.max_message_bytes <= _MOST_MESSAGE_BYTES:
            raise ValueError(f"max_message_bytes: is {self.max_message_bytes}; expected 1 to {_MOST_MESSAGE_BYTES}")
        if self.keepalive is not None and not 1 <= self.keepalive <= _MOST_KEEPALIVE:
            raise ValueError(
                f"keepalive: is {self.keepalive}; expected 1 to {_MOST_KEEPALIVE} seconds, or None for no pings"
            )
        if self.token is not None:
            self._check_token(self.token)

    def _check_host_and_port(self) -> None:
        host, colon, port = self.address.rpartition(":")
        why = ""
        if not colon:
            why = "the port is missing"
        elif not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
            why = "the port must be a number from 1 to 65535"
        elif not host:
            why = "the host is missing"
        elif host[0] == "[" and host[-1] == "]":
            if not _is_ipv6(host[1:-1]):
                why = "the host is not an IPv6 address"
        elif re.search(r"[:/\[\] \t]", host):
            why = "the host name has an invalid character (an IPv6 address must be in brackets)"
        if why:
            raise ValueError(f"address: {self.address!r} is not valid: {why}; expected HOST:PORT, such as 127.0.0.1:8001")

    def _check_token(self, token: str) -> None:
        # The message does not contain the token, because it is a secret.
        if not token or len(token) > _MAX_TOKEN or not all("!" <= letter <= "~" for letter in token):
            raise ValueError(f"token: expected 1 to {_MAX_TOKEN} visible ASCII characters, without spaces")
        if self.tls is None and not self._is_local() and not self.token_without_tls:
            raise ValueError(
                "token: would be sent in clear text; set tls, or token_without_tls=True "
                "if the network itself is encrypted"
            )

    def _is_local(self) -> bool:
        """Whether the address is on this machine: no proxy is used, and nobody else can read the traffic."""
        host = self.address.rpartition(":")[0]
        return self.address.startswith("unix:") or host in ("localhost", "[::1]") or _is_loopback(host)

    def explained(self, error: SaccadeError) -> SaccadeError:
        """Replaces the error if gRPC's message names neither the problem nor what to do."""
        text = error.message
        if error.code != grpc.StatusCode.UNAVAILABLE:
            return error
        if "CERTIFICATE_VERIFY_FAILED" in text:
            why = re.search(r"CERTIFICATE_VERIFY_FAILED: ([\w '-]+)", text)
            said = f"the certificate of {self.address} is not trusted{f': {why[1]}' if why else ''}"
        elif "Hostname Verification" in text or "not in peer certificate" in text:
            said = f"the certificate of {self.address} is for another name; give that name with TLS(server_name=...)"
        elif "WRONG_VERSION_NUMBER" in text:
            said = f"the server at {self.address} does not speak TLS"
        elif "Socket closed" in text and "last error" in text:
            # The only sign of a daemon that requires TLS or a client certificate: it closes the connection before any
            # data was exchanged.
            wants = "TLS" if self.tls is None else "another client certificate, such as one that has not expired"
            return self._as(Unavailable, f"{self.address} closed the connection at once; it may require {wants}", error)
        else:
            return error
        return self._as(Untrusted, said, error)

    def _as(self, kind: type[SaccadeError], message: str, error: SaccadeError) -> SaccadeError:
        made = kind(message, error.code)
        made.__cause__ = error
        return made

    def options(self) -> list[tuple[str, str | int]]:
        # Calls go to all addresses of a host name in turn. gRPC's retries are off: retry.py retries within the deadline
        # of the whole call, which gRPC's do not know.
        options: list[tuple[str, str | int]] = [
            ("grpc.max_send_message_length", self.max_message_bytes),
            ("grpc.max_receive_message_length", self.max_message_bytes),
            ("grpc.service_config", json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})),
            ("grpc.enable_retries", 0),
            # gRPC's own is one second at first, and later up to two minutes.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 5000),
        ]
        if self._is_local():
            # gRPC would use the proxy of the environment's http_proxy.
            options.append(("grpc.enable_http_proxy", 0))
        if self.keepalive is not None:
            # A machine that vanished closes no connection: without pings its calls wait for their timeouts.
            options.append(("grpc.keepalive_time_ms", round(self.keepalive * 1000)))
            options.append(("grpc.keepalive_timeout_ms", round(_PING_TIMEOUT * 1000)))
            # Newer versions of gRPC wait so long, by default a minute, however short the one above is.
            options.append(("grpc.http2.ping_timeout_ms", round(_PING_TIMEOUT * 1000)))
            options.append(("grpc.http2.max_pings_without_data", 0))
        if self.tls is not None and self.tls.server_name is not None:
            options.append(("grpc.ssl_target_name_override", self.tls.server_name))
        return options

    def metadata(self) -> tuple[tuple[str, str], ...]:
        return () if self.token is None else (("authorization", f"Bearer {self.token}"),)

    def target(self) -> str:
        """The address for gRPC. A list of addresses is shuffled: clients that all have the same list in the same order
        go to the same replica after each failure."""
        scheme, colon, rest = self.address.partition(":")
        if scheme not in ("ipv4", "ipv6"):
            return self.address
        addresses = rest.split(",")
        random.shuffle(addresses)
        return scheme + colon + ",".join(addresses)

    def channel(self) -> grpc.Channel:
        if self.tls is None:
            return grpc.insecure_channel(self.target(), self.options())
        return grpc.secure_channel(self.target(), self.tls.credentials(), self.options())

    def aio_channel(self) -> grpc.aio.Channel:
        if self.tls is None:
            return grpc.aio.insecure_channel(self.target(), self.options())
        return grpc.aio.secure_channel(self.target(), self.tls.credentials(), self.options())

"""HAProxy in front of the replicas, with HTTP/2 on both sides. Its endpoints are changed while it runs, as by an
ingress controller."""

import itertools
import pathlib
import shutil
import socket
import subprocess
import sys
import time

SLOTS = 16
READY_SECONDS = 20
# A request whose connection is refused is sent to another replica, which is every proxy's default; a request that was
# sent is not repeated.
CONFIG = """
global
  stats socket {admin} mode 600 level admin
  nbthread 1
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  retries 3
  option redispatch 1
  balance roundrobin
frontend grpc
  bind {address}:{port} proto h2
  default_backend replicas
backend replicas
{servers}
"""


def program():
    """The program that ./dev setup tests unpacked, or the system's; None if there is neither."""
    unpacked = pathlib.Path(sys.prefix) / "haproxy" / "usr" / "sbin" / "haproxy"
    return str(unpacked) if unpacked.exists() else shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin")


class Proxy:
    """Use as a context manager: the process ends with the block."""

    def __init__(self, place, port, folder):
        self.target = f"{place.address}:{port}"
        self._admin = folder / "haproxy.sock"
        servers = "".join(f"  server s{slot} 127.0.0.1:1 proto h2 disabled\n" for slot in range(SLOTS))
        config = folder / "haproxy.cfg"
        config.write_text(CONFIG.format(admin=self._admin, address=place.address, port=port, servers=servers))
        self._slots, self._next = {}, itertools.cycle(f"s{slot}" for slot in range(SLOTS))
        self._log = open(folder / "haproxy.log", "wb")
        self._process = subprocess.Popen(
            place.command(program(), "-db", "-f", config), stdout=self._log, stderr=self._log
        )
        end = time.monotonic() + READY_SECONDS
        while not self._admin.exists():
            if self._process.poll() is not None or time.monotonic() > end:
                self.__exit__()
                raise RuntimeError(f"haproxy does not start: {(folder / 'haproxy.log').read_text()}")
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._log.close()

    def tell(self, endpoints):
        """Sets the new list of `address:port`. Endpoints that are no longer in it get no new requests but may finish
        the current ones."""
        for endpoint in set(self._slots) - set(endpoints):
            self._say(f"set server replicas/{self._slots.pop(endpoint)} state maint")
        for endpoint in endpoints:
            if endpoint not in self._slots:
                free = next(slot for slot in self._next if slot not in self._slots.values())
                address, port = endpoint.rsplit(":", 1)
                self._say(f"set server replicas/{free} addr {address} port {port}")
                self._say(f"set server replicas/{free} state ready")
                self._slots[endpoint] = free

    def sent_again(self):
        """Number of requests that were refused a connection by one replica and sent to another."""
        head, *lines = self._say("show stat").lstrip("# ").splitlines()
        names = head.split(",")
        rows = [dict(zip(names, line.split(","))) for line in lines if line]
        backend = next(row for row in rows if row["pxname"] == "replicas" and row["svname"] == "BACKEND")
        return int(backend["wretr"])

    def _say(self, command):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self._admin))
            connection.sendall(command.encode() + b"\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        if command.startswith("set") and answer.strip() and "IP changed" not in answer and "port changed" not in answer:
            raise RuntimeError(f"haproxy: {command}: {answer.strip()}")
        return answer

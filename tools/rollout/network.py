"""Addresses for the replicas: each has a network namespace and an address of its own, like a pod; or, if namespaces
cannot be created, an address of its own in 127.0.0.0/8."""

import contextlib
import itertools
import os
import random
import re
import socket
import subprocess

# The range reserved for benchmarks (RFC 2544), so no real neighbour has these addresses.
RANGE = "198.18"
FIRST, LAST = 10, 250


def _ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True)


def _must(*words):
    done = _ip(*words)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


class Namespaces:
    """A bridge to which each `place()` adds a namespace. A context manager, which removes everything at its end."""

    words = "in network namespaces, a bridge between them"
    # Never the same number twice in a process: the kernel removes the links of a deleted namespace later.
    _numbers = itertools.count()

    def __init__(self):
        _remove_leftovers()
        self._mark = f"saccade{os.getpid()}"
        self._bridge = f"sbr{os.getpid()}"
        self._subnet = f"{RANGE}.{os.getpid() % 256}"
        self.own = f"{self._subnet}.1"
        _must("link", "add", self._bridge, "type", "bridge")
        try:
            _must("address", "add", f"{self.own}/24", "dev", self._bridge)
            _must("link", "set", self._bridge, "up")
        except OSError:
            _ip("link", "delete", self._bridge)
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in _names(self._mark):
            _ip("netns", "delete", name)
        _ip("link", "delete", self._bridge)

    def place(self):
        number = next(self._numbers)
        name, outer = f"{self._mark}-{number}", f"sv{os.getpid()}.{number}"
        address = f"{self._subnet}.{FIRST + number % (LAST - FIRST)}"
        _must("netns", "add", name)
        _must("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", name)
        _must("link", "set", outer, "master", self._bridge, "up")
        _must("-netns", name, "address", "add", f"{address}/24", "dev", "eth0")
        _must("-netns", name, "link", "set", "lo", "up")
        _must("-netns", name, "link", "set", "eth0", "up")
        return Place(address, ["ip", "netns", "exec", name], lambda: _ip("netns", "delete", name))


class Loopback:
    words = "on addresses of 127.0.0.0/8, as network namespaces are not permitted here"

    def __init__(self):
        self._made = 0
        self.own = "127.0.0.1"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def place(self):
        number, self._made = self._made, self._made + 1
        return Place(f"127.0.{1 + os.getpid() % 250}.{FIRST + number % (LAST - FIRST)}", [], lambda: None)


class Place:
    """An address, and the command prefix that runs a program there."""

    def __init__(self, address, prefix, remove):
        self.address, self._prefix, self.remove = address, prefix, remove

    def command(self, *words):
        # The program is killed if the process that started it ends.
        return ["setpriv", "--pdeathsig", "KILL", *self._prefix, *map(str, words)]


def choose():
    """Returns (the network, the reason why it does not use namespaces or None)."""
    try:
        return Namespaces(), None
    except OSError as error:
        return Loopback(), str(error)


def free_port(address):
    """Below the ports that the system gives to whoever names none, if there are any: nobody gets it by chance before it is
    used."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as given:
        first = int(given.read().split()[0])
    below = range(11_000, first)
    for port in [*random.sample(below, min(100, len(below))), 0]:
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind((address, port))
            return listener.getsockname()[1]
    raise OSError(f"{address} has no free port")


def _names(mark):
    return [line.split()[0] for line in _ip("netns", "list").stdout.splitlines() if line.startswith(f"{mark}-")]


def _remove_leftovers():
    """Removes what a killed run has left behind."""
    for line in _ip("netns", "list").stdout.splitlines():
        made = re.match(r"saccade(\d+)-\d+\b", line)
        if made and not os.path.exists(f"/proc/{made[1]}"):
            _ip("netns", "delete", made[0])
    for made in re.findall(r"\bsbr(\d+):", _ip("link", "show", "type", "bridge").stdout):
        if not os.path.exists(f"/proc/{made}"):
            _ip("link", "delete", f"sbr{made}")

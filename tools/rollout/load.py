"""Sends requests at a constant rate, independent of the responses, over each way to reach the replicas. Every call is
recorded: when it was sent, how it ended, and which replica answered."""

import collections
import dataclasses
import json
import struct
import threading
import time

import grpc

from messages import Inference, infer_request
from tools.rollout.names import NAME

CHANNELS = 4
TIMEOUT_SECONDS = 10
SHAPE = (1, 1, 1, 1, 4)
ROUND_ROBIN = {"loadBalancingConfig": [{"round_robin": {}}]}
HEALTH = {**ROUND_ROBIN, "healthCheckConfig": {"serviceName": ""}}
RETRIES = {
    **ROUND_ROBIN,
    "methodConfig": [{
        "name": [{}],
        "retryPolicy": {
            "maxAttempts": 4, "initialBackoff": "0.02s", "maxBackoff": "0.2s", "backoffMultiplier": 2,
            "retryableStatusCodes": ["UNAVAILABLE"],
        },
    }],
}
# gRPC resolves a name again when a connection ends, but at most every 30 s by default. That is shortened here, like all
# times of the rollout, and so is the pause before a reconnect.
HURRIED = {"grpc.dns_min_time_between_resolutions_ms": 200, "grpc.initial_reconnect_backoff_ms": 100,
           "grpc.min_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 500}


@dataclasses.dataclass(frozen=True)
class Ended:
    sent: float
    took: float
    code: grpc.StatusCode
    details: str
    replica: int
    right: bool


class Clients:
    """Several channels to one target, and the number of their open calls."""

    def __init__(self, target, config):
        # By gRPC's default, a call without a retry policy is repeated only if it was not sent, or if a GOAWAY says that the
        # server has not begun it.
        options = {"grpc.use_local_subchannel_pool": 1, "grpc.service_config": json.dumps(config),
                   "grpc.service_config_disable_resolution": 1, **HURRIED}
        self._channels = [grpc.insecure_channel(target, list(options.items())) for _ in range(CHANNELS)]
        self._stubs = [Inference(channel).model_infer for channel in self._channels]
        self._lock = threading.Lock()
        self._open, self._retired = 0, False

    def begin(self, number):
        """Returns the callable for a call; None after retire()."""
        with self._lock:
            if self._retired:
                return None
            self._open += 1
        return self._stubs[number % CHANNELS]

    def end(self):
        with self._lock:
            self._open -= 1
            last = self._retired and self._open == 0
        if last:
            self._close()

    def retire(self):
        """Allows no more calls; closes the channels when the last open call has ended."""
        with self._lock:
            self._retired = True
            last = self._open == 0
        if last:
            self._close()

    def _close(self):
        # Not on the thread of the call that has just ended, which belongs to the channel.
        threading.Thread(target=lambda: [channel.close() for channel in self._channels]).start()


class Way:
    """A way for clients to find the replicas; `tell` is called with the current endpoints."""

    def __init__(self, name, target, config, retries=False, tell=lambda endpoints: None):
        self.name, self.retries, self.tell = name, retries, tell
        self.clients = Clients(target, config)


class ListWay:
    """The clients have a list of addresses: they open new channels for each new list."""

    retries = False

    def __init__(self, name):
        self.name, self.clients = name, None

    def tell(self, endpoints):
        old, self.clients = self.clients, Clients("ipv4:" + ",".join(endpoints), ROUND_ROBIN)
        if old is not None:
            old.retire()


def ways(proxy, names, port):
    """Returns all ways; those over a proxy only if one is installed."""
    target = f"dns://{names.at}/{NAME}:{port}"

    def tell_names(endpoints):
        names.tell([endpoint.rsplit(":", 1)[0] for endpoint in endpoints])

    made = [
        ListWay("list of addresses, round_robin"),
        Way("dns, round_robin, health", target, HEALTH, tell=tell_names),
        Way("dns, round_robin, retries", target, RETRIES, retries=True),
        # Learns of a drain only by GOAWAY, after which it resolves the name again.
        Way("dns, round_robin alone", target, ROUND_ROBIN, tell=tell_names),
    ]
    if proxy is not None:
        made.insert(0, Way("HAProxy, HTTP/2", proxy.target, {}, tell=proxy.tell))
    return made


class Load:
    """Sends calls on one way until the end of the block."""

    def __init__(self, way, rate):
        self.way, self._rate = way, rate
        self.ended = collections.deque()
        self.open = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        self.way.clients.retire()
        end = time.monotonic() + 2 * TIMEOUT_SECONDS
        while self.open and time.monotonic() < end:
            time.sleep(0.01)
        if self.open:
            raise RuntimeError(f"{self.way.name}: {self.open} calls did not end in time")

    def _send(self):
        begun, number = time.monotonic(), 0
        while not self._stop.is_set():
            ahead = number / self._rate - (time.monotonic() - begun)
            if ahead > 0:
                self._stop.wait(ahead)
                continue
            number += 1
            self._call(number)

    def _call(self, number):
        raw = struct.pack("<4f", number % (1 << 24), 1, 2, 3)
        while (infer := (clients := self.way.clients).begin(number)) is None:
            pass
        with self._lock:
            self.open += 1
        sent = time.monotonic()
        call = infer.future(infer_request("served", SHAPE, raw), timeout=TIMEOUT_SECONDS)
        call.add_done_callback(lambda ended: self._end(ended, clients, sent, raw))

    def _end(self, call, clients, sent, raw):
        code, took = call.code(), time.monotonic() - sent
        replica, right = 0, False
        if code == grpc.StatusCode.OK:
            answer = call.result()
            replica, right = int(answer.model_version), answer.raw_output_contents[0] == raw
        self.ended.append(Ended(sent, took, code, call.details() or "", replica, right))
        clients.end()
        with self._lock:
            self.open -= 1

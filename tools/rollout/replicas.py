"""The replicas and their deployment: started, probed, announced and ended in Kubernetes' order, only faster."""

import dataclasses
import pathlib
import queue
import random
import signal
import subprocess
import threading
import time

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

READY_SECONDS = 60
CONFIG = """backend: "saccade"
max_batch_size: 4
parameters {{ key: "architecture" value {{ string_value: "identity" }} }}
parameters {{ key: "delay_ms" value {{ string_value: "{delay}" }} }}
"""


@dataclasses.dataclass(frozen=True)
class Times:
    """The times of the manifests (deploy/kustomize/base), divided by ten, in seconds."""

    pre_stop: float = 1.0
    lame_duck: float = 0.5
    drain: float = 2.5
    grace: float = 4.5
    # Time until the probes detect that a replica has ended.
    unnoticed: float = 0.5
    # An endpoint has left every list within this share of the preStop sleep.
    spread_by: float = 0.8


class Replica:
    """One saccaded. Its model's version is its number, so that every response identifies the replica."""

    def __init__(self, number, program, place, port, folder, times, delay_ms):
        self.number, self._place, self._times = number, place, times
        self.endpoint = f"{place.address}:{port}"
        version = folder / f"models-{number}" / "served" / str(number)
        version.mkdir(parents=True)
        (version / "weights.safetensors").touch()
        (version.parent / "config.pbtxt").write_text(CONFIG.format(delay=delay_ms))
        self.log_path = folder / f"replica-{number}.log"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                place.command(
                    program, f"--model-repository={version.parents[1]}", f"--host={place.address}",
                    # In a namespace of its own the address is not a loopback address.
                    "--insecure",
                    f"--grpc-port={port}", "--http-port=0", "--metrics-port=0", "--threads-per-instance=1",
                    f"--lame-duck-seconds={times.lame_duck}", f"--drain-timeout-seconds={times.drain}",
                ),
                stdout=log, stderr=log,
            )

    def await_ready(self):
        end = time.monotonic() + READY_SECONDS
        with grpc.insecure_channel(self.endpoint, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            watch = health_pb2_grpc.HealthStub(channel).Watch(
                health_pb2.HealthCheckRequest(), timeout=end - time.monotonic(), wait_for_ready=True
            )
            try:
                for update in watch:
                    if update.status == health_pb2.HealthCheckResponse.SERVING:
                        watch.cancel()
                        return
            except grpc.RpcError as error:
                raise RuntimeError(f"replica {self.number} is not ready: {error.details()}\n{self.log()}") from error
        raise RuntimeError(f"replica {self.number} is not ready:\n{self.log()}")

    def log(self):
        return self.log_path.read_text(errors="replace")

    def end(self, deleted):
        """Sends SIGTERM after the preStop sleep, and SIGKILL when the grace period, counted from `deleted`, is over.
        Returns a fault, or None."""
        time.sleep(max(0, deleted + self._times.pre_stop - time.monotonic()))
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout=max(0.1, deleted + self._times.grace - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            return f"replica {self.number} had not ended when its grace period was over"
        self._place.remove()
        if code != 0:
            return f"replica {self.number} ended with {code}:\n{self.log()}"
        return None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.kill()
        self._place.remove()


class Announcer:
    """Sends the list of endpoints to one way, each change with a random delay and in order."""

    def __init__(self, way, most_delay, seed):
        self._way, self._most, self._chance = way, most_delay, random.Random(seed)
        self._changes = queue.Queue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._failure = None

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._changes.put(None)
        self._thread.join()

    def tell(self, endpoints):
        """Announces the endpoints. Returns an event that is set when the way knows them."""
        if self._failure is not None:
            raise self._failure
        known = threading.Event()
        self._changes.put((time.monotonic() + self._chance.uniform(0, self._most), list(endpoints), known))
        return known

    def _run(self):
        while (change := self._changes.get()) is not None:
            due, endpoints, known = change
            time.sleep(max(0, due - time.monotonic()))
            try:
                self._way.tell(endpoints)
            except (OSError, RuntimeError) as error:
                self._failure = error
            known.set()


class Deployment:
    """A constant number of replicas: a new one is ready before an old one ends (maxSurge 1, maxUnavailable 0)."""

    def __init__(self, program, network, port, folder, announcers, times=Times(), delay_ms=5):
        self._program, self._network, self._port = pathlib.Path(program), network, port
        self._folder, self._announcers, self._times, self._delay_ms = folder, announcers, times, delay_ms
        self._number = 0
        self.replicas = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for replica in self.replicas:
            replica.close()

    def start(self, count=1):
        """Starts `count` replicas at once; returns when they are ready."""
        for one in [self._begin() for _ in range(count)]:
            one.await_ready()

    def _begin(self):
        self._number += 1
        made = Replica(self._number, self._program, self._network.place(), self._port, self._folder, self._times,
                       self._delay_ms)
        self.replicas.append(made)
        return made

    def announce(self, without=None):
        """Announces the endpoints. Returns one event per way, set when the way knows them."""
        endpoints = [replica.endpoint for replica in self.replicas if replica is not without]
        return [announcer.tell(endpoints) for announcer in self._announcers]

    def replace(self):
        """Replaces the oldest replica by a new one. Returns a fault, or None."""
        self.start()
        old = self.replicas[0]
        self.announce()
        # Deleting a pod starts two independent actions: its endpoint leaves the lists, and the kubelet ends it.
        deleted = time.monotonic()
        known = self.announce(without=old)
        wrong = old.end(deleted)
        self.replicas.remove(old)
        if not all(one.is_set() for one in known):
            raise RuntimeError("a replica ended before every way had removed its endpoint")
        return wrong

    def kill(self):
        """Kills one replica, removes its endpoint after the probes would have detected that, and starts a new one.
        Returns when it was killed."""
        lost = self.replicas[0]
        killed = time.monotonic()
        lost.kill()
        time.sleep(self._times.unnoticed)
        for known in self.announce(without=lost):
            known.wait()
        lost.close()
        self.replicas.remove(lost)
        self.start()
        self.announce()
        return killed

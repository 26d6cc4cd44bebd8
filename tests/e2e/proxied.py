"""Two daemons as pods behind one of the examples of proxies, found by a name server like a cluster's."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import yaml

from harness import binary, die_with_parent, eventually
from tools.rollout import network, proxy, replicas
from tools.rollout.names import NAME, NameServer

PROXIES = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "proxies"
# Those of the examples; every pod has an address of its own.
GRPC, REST, STATUS = 8001, 8000, 8404
DELAY_MS = 30
MODEL = """backend: "saccade"
max_batch_size: 1
instance_group [{{ count: 4 }}]
parameters {{ key: "architecture" value {{ string_value: "identity" }} }}
parameters {{ key: "delay_ms" value {{ string_value: "{delay}" }} }}
"""


class Pod:
    """One saccaded with the examples' ports. Its model's version is its number, so that a response identifies it."""

    def __init__(self, number, place, folder, delay_ms=DELAY_MS):
        self.number, self.place, self._log = number, place, open(folder / f"pod-{number}.log", "ab")
        version = folder / f"models-{number}" / "served" / str(number)
        version.mkdir(parents=True, exist_ok=True)
        (version / "weights.safetensors").touch()
        (version.parent / "config.pbtxt").write_text(MODEL.format(delay=delay_ms))
        self.endpoint = f"{place.address}:{GRPC}"
        self.process = subprocess.Popen(
            place.command(binary("saccaded"), f"--model-repository={version.parents[1]}", f"--host={place.address}",
                          # As where other machines reach a pod. These may all be on loopback addresses.
                          "--insecure", "--allowed-hosts=*", f"--grpc-port={GRPC}", f"--http-port={REST}", "--metrics-port=0",
                          "--threads-per-instance=1", "--lame-duck-seconds=4"),
            stdout=self._log, stderr=self._log, preexec_fn=die_with_parent)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self._log.close()

    # What replicas.Replica.await_ready() reads.
    await_ready = replicas.Replica.await_ready

    def log(self):
        return pathlib.Path(self._log.name).read_text(errors="replace")


def haproxy_command(place, names, folder):
    """HAProxy reads its addresses from the environment: the example is run as it is."""
    program = proxy.program()
    assert program, "HAProxy is not installed; ./dev setup tests brings it"
    environment = {"SACCADE_BIND": place.address, "SACCADE_NAME": NAME, "SACCADE_DNS": names.at}
    return [program, "-db", "-f", PROXIES / "haproxy.cfg"], environment


def envoy_config(place, names):
    """The example with the addresses of this test, and nothing else, replaced."""
    text = (PROXIES / "envoy.yaml").read_text()
    assert text.count("saccade.vision.svc.cluster.local") >= 3
    config = yaml.safe_load(text.replace("saccade.vision.svc.cluster.local", NAME))
    for listener in config["static_resources"]["listeners"]:
        listener["address"]["socket_address"]["address"] = place.address
    address, port = names.at.split(":")
    for cluster in config["static_resources"]["clusters"]:
        cluster["typed_dns_resolver_config"] = {"name": "envoy.network.dns_resolver.cares", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig",
            "resolvers": [{"socket_address": {"address": address, "port_value": int(port), "protocol": "UDP"}}]}}
    config["admin"]["address"]["socket_address"]["port_value"] = 0
    return config


def envoy_command(place, names, folder):
    program = shutil.which("envoy", path=os.pathsep.join((str(pathlib.Path(sys.executable).parent), os.environ["PATH"])))
    assert program, "Envoy is not installed; ./dev setup tests brings it"
    config = folder / "envoy.yaml"
    config.write_text(yaml.safe_dump(envoy_config(place, names)))
    return [program, "-c", config, "--concurrency", "1", "--use-dynamic-base-id", "-l", "warning"], {}


class Stage:
    """Two pods, the name server and the proxy. A context manager. `delays_ms` are the times that a pass takes in each pod."""

    def __init__(self, command, folder, delays_ms=(DELAY_MS, DELAY_MS)):
        self._command, self._folder, self._delays_ms, self.stack = command, folder, delays_ms, contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            chosen, _ = network.choose()
            net = stack.enter_context(chosen)
            self.names = stack.enter_context(NameServer(net.own))
            self._places = [net.place() for _ in range(2)]
            self.pods = [Pod(number + 1, place, self._folder, delay)
                         for number, (place, delay) in enumerate(zip(self._places, self._delays_ms))]
            stack.callback(lambda: [pod.kill() for pod in self.pods if pod.process.poll() is None])
            for pod in self.pods:
                pod.await_ready()
            self.announce()
            place = net.place()
            self.address = place.address
            words, environment = self._command(place, self.names, self._folder)
            log = stack.enter_context(open(self._folder / "proxy.log", "wb"))
            process = subprocess.Popen(place.command("env", *(f"{name}={value}" for name, value in environment.items()),
                                                     *words), stdout=log, stderr=log)
            stack.callback(lambda: (process.kill(), process.wait()))
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def proxy_log(self):
        return (self._folder / "proxy.log").read_text(errors="replace")

    def announce(self):
        """The name server answers with the pods that run."""
        self.names.tell([pod.place.address for pod in self.pods if pod.process.poll() is None])

    def replace(self, index):
        """Starts a pod anew, and announces it when it is ready."""
        self.pods[index] = Pod(self.pods[index].number, self._places[index], self._folder, self._delays_ms[index])
        self.pods[index].await_ready()
        self.announce()


class Calls:
    """Sends calls at a constant rate, whatever becomes of them, until the end of the block. `send(number)` returns the
    number of the pod that answered, or raises."""

    def __init__(self, name, rate, send, clock):
        self.name, self._rate, self._send, self._clock = name, rate, send, clock
        self.ended, self.open, self._lock, self._stop = [], 0, threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(share,)) for share in range(CALLERS)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, share):
        begun, number = self._clock(), 0
        while not self._stop.wait(max(0, begun + (number + share / CALLERS) * CALLERS / self._rate - self._clock())):
            number += 1
            with self._lock:
                self.open += 1
            sent, pod, failure = self._clock(), None, None
            try:
                pod = self._send(number)
            except Exception as error:  # Whatever a client may raise is a failed call.
                failure = f"{type(error).__name__}: {error}"
            with self._lock:
                self.open -= 1
                self.ended.append((sent, pod, failure))

    def failures(self):
        return [(sent, failure) for sent, _, failure in list(self.ended) if failure]

    def answered_by(self, since):
        return {pod for sent, pod, failure in list(self.ended) if sent >= since and not failure}

    def await_both(self, since):
        eventually(lambda: len(self.answered_by(since)) == 2, f"{self.name}: both pods answer")


CALLERS = 8

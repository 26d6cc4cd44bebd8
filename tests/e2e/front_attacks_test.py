"""Tests attacks on the daemon's ports, those of front_attackers.py: each runs for a moment against a daemon that other clients
use meanwhile. SACCADE_ATTACK_SECONDS=10 makes every attack last that long."""

import json
import os
import pathlib
import re
import statistics
import time
import typing

import numpy
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import front_attackers
import http2_frames
from attacks_by_heads import ODD_FIELDS
from front_attack import CHECK, MIB, MODEL_INFER
from front_attackers import CHEAP_CORES, FLAGS, ROOM, SLOW_RATE
from harness import SERVING, Daemon, eventually, pause_of_a_client, write_secret
from messages import Inference, infer_request
from tiny_models import Identity, write_model

SECONDS = float(os.environ.get("SACCADE_ATTACK_SECONDS", 0.5))

# A median that no machine's noise explains, and an attack may not exceed even where calls are fast at rest: three times the worst
# of docs/benchmarks/attacks.md, 7.9 ms. Attacker, client and daemon share two cores, and no other test runs on them.
NOTICED_SECONDS = 0.025
# Another program that takes the cores for a moment makes calls as slow as an attack does, but not each time that it is played.
PLAYS = 3
# Processor time below which ticks of the clock are too coarse to judge.
COARSE_SECONDS = 0.06

SHAPE = (1, 1, 1, 1, 4)
VOLUME = numpy.arange(4, dtype=numpy.float32).tobytes()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    root = tmp_path_factory.mktemp("attacked")
    write_model(root, "served", Identity(), max_batch_size=4)
    with Daemon(root, *FLAGS, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


class Cost(typing.NamedTuple):
    median: float
    cores: float
    seconds: float
    calls: int


def processor_seconds(daemon):
    fields = pathlib.Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Innocent:
    """A client that asks for health and for an inference, some twenty times a second, and opens a connection to another port now
    and then. Every call must succeed."""

    def __init__(self, daemon, channel):
        self._daemon = daemon
        self._health = health_pb2_grpc.HealthStub(channel)
        self._infer = Inference(channel).model_infer
        self._request = infer_request("served", SHAPE, VOLUME)

    def _ask(self):
        assert self._health.Check(health_pb2.HealthCheckRequest(), timeout=5).status == SERVING
        assert self._infer(self._request, timeout=5).raw_output_contents[0] == VOLUME

    def work(self, lasts):
        """Asks while `lasts()`, at least ten times; returns what it cost."""
        took, begun, before = [], time.monotonic(), processor_seconds(self._daemon)
        while lasts() or len(took) < 10:
            if len(took) % 10 == 5:
                assert self._daemon.get("/v2/health/ready")[0] == 200
                assert self._daemon.get("/v2/health/live", self._daemon.metrics_port)[0] == 200
            start = time.monotonic()
            self._ask()
            took.append(time.monotonic() - start)
            pause_of_a_client(0.03)
        seconds = time.monotonic() - begun
        return Cost(statistics.median(took), (processor_seconds(self._daemon) - before) / seconds, seconds, len(took))


@pytest.fixture(scope="module")
def innocent(daemon):
    with daemon.channel() as channel:
        yield Innocent(daemon, channel)


class Rest(typing.NamedTuple):
    cost: Cost
    resident: int


def at_rest(innocent):
    """What the innocent client costs alone."""
    end = time.monotonic() + 1
    return innocent.work(lambda: time.monotonic() < end)


@pytest.fixture(scope="module")
def rest(daemon, innocent):
    """What the innocent client costs alone, and the memory of the daemon before any attack."""
    innocent.work(lambda: False)
    return Rest(at_rest(innocent), daemon.resident_bytes())


def too_dear(cost, rest, report, round_seconds=0.0):
    """What an attack cost too much of, compared with the costs at rest; '' if nothing. A round of it may take so many seconds of a
    core."""
    if cost.median >= max(2 * rest.median, NOTICED_SECONDS):
        return f"a call took {cost.median} s in the median of {cost.calls}, at rest {rest.median} s"
    extra_seconds = (cost.cores - rest.cores) * cost.seconds
    allowed = max(COARSE_SECONDS, CHEAP_CORES * cost.seconds, round_seconds * report["rounds"])
    if report["sent"] / report["seconds"] < SLOW_RATE and extra_seconds >= allowed:
        return f"{extra_seconds} s of a core beyond those at rest, expected less than {allowed} s, for {report}"
    return ""


def each_time(play, again, times=PLAYS):
    """Plays until nothing is said to be wrong, at most so often; returns what was said last. Calls again() between two plays."""
    for left in reversed(range(times)):
        if not (said := play()):
            break
        if left:
            again()
    return said


def refusals(daemon, reasons):
    metrics = daemon.metrics()
    return sum(metrics.total("saccade_front_refusals_total", reason=reason) for reason in reasons.split())


def told(daemon):
    return {dict(labels)["reason"]: value for (name, labels), value in daemon.metrics().items()
            if name == "saccade_front_refusals_total" and value}


@pytest.mark.parametrize("attack, reasons", front_attackers.ATTACKS.items(), ids=lambda given: getattr(given, "__name__", ""))
def test_an_attack_costs_little(daemon, innocent, rest, attack, reasons):
    seconds = front_attackers.seconds_of(attack, SECONDS)
    before = refusals(daemon, reasons or "")
    daemon.forget_peak()
    quiet = [rest.cost]

    def play():
        with front_attackers.attacked(daemon, attack.__name__, seconds) as process:
            cost = innocent.work(lambda: process.poll() is None)
            report = json.loads(process.stdout.read())
        assert daemon.process.poll() is None, daemon.log()
        assert report["rounds"] > 0
        grown = daemon.peak_resident_bytes() - rest.resident
        assert grown < ROOM, f"{grown / MIB:.0f} MiB"
        # The machine as it is now, which other programs may use more than at the start.
        busiest = Cost(max(one.median for one in quiet), max(one.cores for one in quiet), 0, 0)
        return too_dear(cost, busiest, report, front_attackers.DEAR.get(attack, 0))

    assert not (said := each_time(play, lambda: quiet.append(at_rest(innocent)))), said
    if reasons:
        assert refusals(daemon, reasons) > before, f"expected {reasons}, counted were {told(daemon)}"
    eventually(lambda: daemon.metrics().total("saccade_inflight_bytes") == 0, "nothing is held for the attacker")


@pytest.mark.parametrize("cost, sent, dear", [
    (Cost(0.024, 0.05, 1.0, 20), 100, ""),
    (Cost(0.026, 0.05, 1.0, 20), 100, "a call took 0.026 s"),
    (Cost(0.002, 0.30, 1.0, 20), 100, "s of a core beyond those at rest"),
    # An attacker who sends more may cost more.
    (Cost(0.002, 0.30, 1.0, 20), 200_000, ""),
])
def test_what_is_too_dear(cost, sent, dear):
    said = too_dear(cost, Cost(0.001, 0.05, 1.0, 20), {"sent": sent, "seconds": 1.0, "rounds": 1})
    assert dear in said and bool(said) == bool(dear)


@pytest.mark.parametrize("says, told, plays", [(["", "x"], "", 1), (["x", "", "y"], "", 2), (["x", "y", "z", ""], "z", 3)])
def test_an_attack_is_too_dear_if_it_is_each_time(says, told, plays):
    left, between = list(says), []
    assert each_time(lambda: left.pop(0), lambda: between.append(1)) == told
    assert len(says) - len(left) == plays and len(between) == plays - 1


def test_nothing_is_left_of_them(daemon, innocent, rest):
    """Last in the file. Connections and requests of all attacks are gone, and so is their memory."""
    innocent.work(lambda: False)
    eventually(lambda: daemon.metrics().total("saccade_inflight_requests") == 0, "no request is left")
    # Those of the innocent client, its HTTP requests, and the daemon's own.
    eventually(lambda: daemon.open_files() < 100, "their connections are closed")
    assert daemon.resident_bytes() - rest.resident < ROOM
    assert daemon.get("/v2/health/ready")[0] == 200


def test_headers_that_ended_grpcs_server(start, tmp_path):
    """Where there are tokens, each header of a call without one is looked at."""
    write_secret(tmp_path / "tokens", "predict-0123456789abcdef predict\n")
    write_model(tmp_path / "models", "served", Identity(), max_batch_size=4)
    guarded = start(tmp_path / "models", f"--token-file={tmp_path / 'tokens'}", "--warm-up-seconds=0").await_ready()
    for field in ODD_FIELDS:
        for path in (CHECK, MODEL_INFER, "/no.Service/Nothing"):
            with http2_frames.Connection(guarded.grpc_port) as connection:
                connection.send(http2_frames.open_grpc(1, path, [field]), http2_frames.data(1, http2_frames.message(b"")))
                # A head that is malformed ends the stream; every other one is answered.
                fields, _ = connection.answer(1)
                open_to_all = path == CHECK
                assert "reset" in fields or fields[":status"] != "200" or (fields["grpc-status"] == "16") != open_to_all, field
        assert guarded.process.poll() is None, f"it ended at {field}: {guarded.log()[-2000:]}"


def test_every_reason_is_a_series_from_the_start(daemon):
    reasons = {dict(labels)["reason"] for name, labels in daemon.metrics() if name == "saccade_front_refusals_total"}
    header = (pathlib.Path(__file__).resolve().parents[2] / "server" / "net" / "refusal.h").read_text()
    named = re.findall(r"^  k([A-Z]\w+),", header, re.MULTILINE)
    assert reasons == {re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name in named}

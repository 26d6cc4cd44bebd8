"""Plays one attack of tests/e2e on a daemon of its own, which an innocent client asks for predictions meanwhile."""

import contextlib
import dataclasses
import json
import pathlib
import queue
import shutil
import sys
import time

import grpc

import front_attackers
from control_groups import group_of_memory, into
from harness import Daemon, pause_of_a_client
from messages import Vision
from tiny_models import Identity, write_model
from tools.processor import processor_seconds
from tools.soak.samples import DEMO, SAMPLES, Sample, of_typed

# The model that the innocent client asks; the attacks name "served".
MODEL = "sanet_shapes"
LIMIT_BYTES = 2 << 30
PAUSE_SECONDS = 0.02
TIMEOUT_SECONDS = 5
# The first calls of a daemon take longer.
WARM_CALLS = 20
LEAST_CALLS = 10


@dataclasses.dataclass
class Calls:
    """The calls of the innocent client in some time."""

    # How long each call took that succeeded.
    seconds: list = dataclasses.field(default_factory=list)
    # Why each other call failed.
    failures: list = dataclasses.field(default_factory=list)
    # The daemon's processor time in a second. None if the daemon has ended.
    cores: float = None

    @property
    def made(self):
        return len(self.seconds) + len(self.failures)

    def percentile(self, share):
        """None if no call succeeded."""
        return sorted(self.seconds)[min(len(self.seconds) - 1, int(share * len(self.seconds)))] if self.seconds else None


@dataclasses.dataclass
class Played:
    """One attack. What could not be measured is None, because the daemon had ended by then."""

    name: str
    # What the attacker sent, how often it began anew, and how long it took.
    sent: int = 0
    rounds: int = 0
    seconds: float = 0.0
    before: Calls = dataclasses.field(default_factory=Calls)
    during: Calls = dataclasses.field(default_factory=Calls)
    after: Calls = dataclasses.field(default_factory=Calls)
    # Bytes of the daemon's resident memory: at rest, the most during the attack, and at rest again.
    resident_before: int = None
    resident_peak: int = None
    resident_after: int = None
    # If the daemon ended.
    exit_code: int = None
    # Why the measurement is not complete.
    fault: str = None

    @property
    def rate(self):
        """Bytes that the attacker sent in a second."""
        return self.sent / self.seconds if self.seconds else 0.0


def write_repository(root):
    write_model(root, "served", Identity(), max_batch_size=4)
    shutil.copytree(DEMO / "repository" / MODEL, root / MODEL)
    return root


def is_alive(daemon):
    return daemon.process.poll() is None


def processor_of(daemon):
    """Processor time so far of the daemon's process, without its decode workers. None if it has ended."""
    try:
        return processor_seconds(pathlib.Path(f"/proc/{daemon.process.pid}/stat").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None


class Innocent:
    """Sends one picture again and again, with a pause after each answer."""

    def __init__(self, daemon, channel):
        self._daemon, self._predict = daemon, Vision(channel).predict
        self._request = Sample(MODEL, 0, SAMPLES[MODEL][0]).typed
        self._known = None

    def ask(self, calls):
        begun = time.perf_counter()
        try:
            answer = self._predict(self._request, timeout=TIMEOUT_SECONDS)
        except grpc.RpcError as error:
            calls.failures.append(f"{error.code().name}: {error.details()}")
            return
        seconds = time.perf_counter() - begun
        found = of_typed(answer)
        self._known = self._known or found
        if found == self._known:
            calls.seconds.append(seconds)
        else:
            calls.failures.append("the answer differs from the first one")

    def work(self, lasts):
        """Asks while `lasts()`, and LEAST_CALLS times at least."""
        calls, begun, before = Calls(), time.monotonic(), processor_of(self._daemon)
        while lasts() or calls.made < LEAST_CALLS:
            self.ask(calls)
            pause_of_a_client(PAUSE_SECONDS)
        spent = processor_of(self._daemon)
        if before is not None and spent is not None:
            calls.cores = (spent - before) / (time.monotonic() - begun)
        return calls

    def work_for(self, seconds):
        end = time.monotonic() + seconds
        return self.work(lambda: time.monotonic() < end and is_alive(self._daemon))


def report_of(attacker):
    text = attacker.stdout.read()
    assert attacker.wait() == 0, f"the attacker failed with {attacker.returncode}"
    return json.loads(text)


def attack(played, daemon, innocent, seconds, rest_seconds):
    warm = Calls()
    for _ in range(WARM_CALLS):
        innocent.ask(warm)
    assert not warm.failures, f"a call failed before the attack: {warm.failures[0]}"
    played.before = innocent.work_for(rest_seconds)
    played.resident_before = daemon.resident_bytes()
    daemon.forget_peak()
    with front_attackers.attacked(daemon, played.name, seconds) as attacker:
        played.during = innocent.work(lambda: attacker.poll() is None and is_alive(daemon))
        report = report_of(attacker)
    played.sent, played.rounds, played.seconds = (report[name] for name in ("sent", "rounds", "seconds"))
    if not is_alive(daemon):
        return
    played.resident_peak = daemon.peak_resident_bytes()
    daemon.await_nothing_held()
    # What the daemon had begun when the attacker ended belongs to the attack.
    played.resident_peak = daemon.peak_resident_bytes()
    played.after = innocent.work_for(rest_seconds)
    if is_alive(daemon):
        played.resident_after = daemon.resident_bytes()


def play(name, seconds, rest_seconds, models, folder, limited):
    """Plays the attack `name` for `seconds`, between two rests. With `limited`, the daemon and its decode workers are in a
    control group of LIMIT_BYTES, for which NoControlGroup may be raised. The daemon has ended when this returns. What goes
    wrong is the `fault` of what is returned, so that the other attacks are played all the same."""
    played = Played(name)
    attack_seconds = front_attackers.seconds_of(front_attackers.BY_NAME[name], seconds)
    try:
        with contextlib.ExitStack() as stack:
            under = into(stack.enter_context(group_of_memory(LIMIT_BYTES))) if limited else ()
            daemon = Daemon(models, *front_attackers.FLAGS, log_folder=folder, under=under)
            stack.callback(daemon.close)
            try:
                innocent = Innocent(daemon, stack.enter_context(daemon.await_ready().channel()))
                attack(played, daemon, innocent, attack_seconds, rest_seconds)
            finally:
                if not is_alive(daemon):
                    played.exit_code = daemon.process.returncode
                    print(daemon.log()[-4000:], file=sys.stderr)
    except (AssertionError, OSError, queue.Empty) as error:
        played.fault = (str(error) or repr(error)).splitlines()[0]
    return played

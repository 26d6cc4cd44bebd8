"""Tests what the Python clients do when one of several daemons stops to answer, or when all reject."""

import asyncio
import signal
import threading
import time
from concurrent import futures

import grpc
import pytest

import pictures
from harness import DEADLINE_SECONDS, Daemon, eventually
from tiny_models import TinyModel, write_model

PICTURE = pictures.encoded(pictures.pixels(0))
# Until a connection to a silent daemon is given up: keepalive and the time for the answer to its ping.
KEEPALIVE, PING_TIMEOUT = 1.0, 5.0


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    write_model(folder / "models", "tiny", TinyModel(classes=5, seed=3))
    start = lambda: Daemon(folder / "models", "--warm-up-seconds=0", log_folder=folder)
    with start() as one, start() as other:
        yield [one.await_ready(), other.await_ready()]


def address_of(daemons):
    return "ipv4:" + ",".join(daemon.grpc_address.replace("localhost", "127.0.0.1") for daemon in daemons)


class Silent:
    """Stops a daemon as a machine that vanishes would: its connections stay open, and nothing comes."""

    def __init__(self, daemon):
        self._daemon = daemon

    def __enter__(self):
        self._daemon.process.send_signal(signal.SIGSTOP)

    def __exit__(self, *_):
        self._daemon.process.send_signal(signal.SIGCONT)


def answered_by_both(client, daemons):
    """Calls until both daemons have answered, so that both connections are open."""
    counts = lambda: [daemon.metrics().total("nv_inference_request_success", model="tiny") for daemon in daemons]
    before, end = counts(), time.monotonic() + DEADLINE_SECONDS
    while any(now == then for now, then in zip(counts(), before)):
        assert time.monotonic() < end, counts()
        client.classify("tiny", PICTURE)


def test_pings_find_a_silent_daemon(saccade, two):
    with saccade.Client(address_of(two), keepalive=KEEPALIVE, timeout=60) as client:
        answered_by_both(client, two)
        with Silent(two[0]):
            begun = time.monotonic()
            for _ in range(2):
                client.classify("tiny", PICTURE)
            took = time.monotonic() - begun
            # Without pings it would be the call's timeout.
            assert KEEPALIVE < took < KEEPALIVE + PING_TIMEOUT + 20, "one of the two waited for the ping"
            for _ in range(20):
                begun = time.monotonic()
                client.classify("tiny", PICTURE)
                assert time.monotonic() - begun < PING_TIMEOUT, "the silent one is not asked any more"


def test_short_attempts_pass_by_a_silent_daemon(saccade, two):
    # Longer than a busy machine says that a pass takes: the daemon refuses what cannot end in time.
    retry = saccade.Retry(attempt_timeout=5.0)

    async def several(address):
        async with saccade.AsyncClient(address, retry=retry, timeout=60) as client:
            return await asyncio.gather(*(client.classify("tiny", PICTURE) for _ in range(4)))

    with saccade.Client(address_of(two), retry=retry, timeout=60) as client:
        answered_by_both(client, two)
        with Silent(two[1]):
            begun = time.monotonic()
            for _ in range(4):
                client.classify("tiny", PICTURE)
            # Of the four about two go to the silent one first. Without attempts of their own they would take a minute.
            assert 5 < time.monotonic() - begun < DEADLINE_SECONDS
            assert len(asyncio.run(several(address_of(two)))) == 4


def test_pings_do_not_count_as_an_attack(saccade, two):
    with saccade.Client(two[0].grpc_address, keepalive=1.0) as client:
        client.classify("tiny", PICTURE)
        # A stream that stays open and silent, so that pings are sent.
        held = threading.Event()

        def requests():
            held.wait(DEADLINE_SECONDS)
            yield saccade.Classify("tiny", PICTURE)

        answers = client.stream(requests(), timeout=None)
        first = threading.Thread(target=lambda: outcomes.append(next(answers)))
        outcomes = []
        first.start()
        begun = time.monotonic()
        eventually(lambda: time.monotonic() - begun > 6, "five pings were due")
        held.set()
        first.join()
        assert outcomes[0].error is None
    refusals = two[0].metrics()
    assert refusals.total("saccade_front_refusals_total", reason="control_frames") == 0


class Counting:
    """A server that counts its calls, and rejects them while `rejects` is set. The others get no answer until then."""

    def __init__(self):
        self.calls, self.rejects = 0, threading.Event()
        self._lock = threading.Lock()

    def service(self, details):
        def answer(_, context):
            with self._lock:
                self.calls += 1
            self.rejects.wait()
            context.abort(grpc.StatusCode.UNAVAILABLE, "as told")

        return grpc.unary_unary_rpc_method_handler(answer)


@pytest.fixture
def counting():
    handler = Counting()
    server = grpc.server(futures.ThreadPoolExecutor(16), handlers=[handler])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield handler, f"127.0.0.1:{port}"
    handler.rejects.set()
    server.stop(None).wait()


def test_no_attempt_begins_after_the_calls_timeout(saccade, counting):
    handler, address = counting
    with saccade.Client(address, retry=saccade.Retry(attempts=9, attempt_timeout=0.4), timeout=1.0) as client:
        begun = time.monotonic()
        with pytest.raises(saccade.DeadlineExceeded):
            client.models()
        assert time.monotonic() - begun > 0.9
    # Of nine attempts three begin within a second, and perhaps another one in its last moment.
    assert handler.calls <= 5


@pytest.mark.parametrize(("budget", "least", "most"), [(20.0, 40 + 5, 40 + 10), (0.0, 160, 160)])
def test_the_budget_bounds_the_attempts(saccade, counting, budget, least, most):
    handler, address = counting
    handler.rejects.set()
    retry = saccade.Retry(attempts=4, first_pause=0.001, max_pause=0.001, budget=budget)
    with saccade.Client(address, retry=retry) as client:
        for _ in range(40):
            with pytest.raises(saccade.Unavailable):
                client.models()
    assert least <= handler.calls <= most


def test_wrong_options_are_refused(saccade):
    for wrong in ({"attempt_timeout": 0}, {"attempt_timeout": -1}, {"budget": -1}):
        with pytest.raises(ValueError, match="expected"):
            saccade.Retry(**wrong)
    with pytest.raises(ValueError, match="keepalive: is 0.5; expected 1 to 2147483 seconds"):
        saccade.Client("127.0.0.1:1", keepalive=0.5)


def test_lists_of_addresses_are_shuffled(saccade):
    from saccade.connection import Connection

    def orders(address):
        connection = Connection(address, None, None, False, 1 << 20, None)
        return {connection.target() for _ in range(300)}

    assert len(orders("ipv4:10.0.0.1:1,10.0.0.2:1,10.0.0.3:1")) == 6
    for same in ("saccade:8001", "dns:///saccade:8001", "unix:/run/saccade.sock", "ipv6:[::1]:80"):
        assert orders(same) == {same}

import asyncio
import contextlib
import functools
import pathlib
import sys

import pytest

from busy import HEAVY
from harness import Daemon
from installed_client import installed_client
from tiny_models import TinyModel, tiny_detector, tiny_segmenter, tiny_stereo, write_model


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        for daemon in Daemon.running:
            report.sections.append((f"log of saccaded {daemon.process.pid}", daemon.log()[-8000:]))
    return report


@pytest.fixture
def start(tmp_path):
    """start(repository, *flags): starts a daemon that ends with the test."""
    started = []

    def start_daemon(repository, *flags, **options):
        daemon = Daemon(repository, *flags, log_folder=tmp_path, **options)
        started.append(daemon)
        return daemon

    yield start_daemon
    with contextlib.ExitStack() as ending:
        for daemon in started:
            ending.enter_context(daemon)


@pytest.fixture(scope="session")
def tiny():
    """A quarter-width network with five classes and random weights, and its reference in PyTorch."""
    return TinyModel(classes=5, seed=1)


@pytest.fixture(scope="session")
def repository(tiny, tmp_path_factory):
    """'tiny' is computed without delay; 'gathering' waits to fill its batches."""
    root = tmp_path_factory.mktemp("repository")
    write_model(root, "tiny", tiny, max_batch_size=8, max_queue_delay_microseconds=0)
    write_model(root, "gathering", tiny, max_batch_size=8, max_queue_delay_microseconds=100_000)
    return root


@pytest.fixture(scope="session")
def tasks_repository(tmp_path_factory):
    """One model per task, 'blind', a detector that finds nothing, and 'flat', whose detections are concatenated. All
    but the last wait briefly to fill their batches."""
    root = tmp_path_factory.mktemp("tasks")
    made = {
        "detector": tiny_detector(),
        "blind": tiny_detector(score_threshold="1"),
        "segmenter": tiny_segmenter(),
        "stereo": tiny_stereo(),
    }
    for name, model in made.items():
        write_model(root, name, model, max_batch_size=4, max_queue_delay_microseconds=20_000)
    write_model(root, "flat", made["detector"], max_batch_size=4, parameters={"items": "flat"})
    return root


@pytest.fixture(scope="module")
def tasks_daemon(tasks_repository, tmp_path_factory):
    with Daemon(tasks_repository, "--warm-up-seconds=0", log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture(scope="session")
def slow_repository(tmp_path_factory):
    """One full-width instance, which a large batch keeps busy for long."""
    root = tmp_path_factory.mktemp("slow")
    network = TinyModel(classes=5, seed=2, width="1.0", size=224)
    write_model(
        root, "slow", network, max_batch_size=HEAVY, default_queue_policy="{ max_queue_size: %d }" % (HEAVY + 8)
    )
    return root, network


@pytest.fixture(scope="module")
def daemon(repository, tmp_path_factory):
    """A daemon shared by the tests of a file that do not change its state."""
    with Daemon(repository, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture(scope="session")
def saccade(tmp_path_factory):
    """The Python client as users install it."""
    installed = installed_client(tmp_path_factory.mktemp("client") / "installed")
    assert (installed / "saccade" / "py.typed").exists() and (installed / "saccade" / "v1" / "vision_pb2.pyi").exists()
    sys.path.insert(0, str(installed))
    try:
        import saccade

        assert pathlib.Path(saccade.__file__).is_relative_to(installed)
        yield saccade
    finally:
        sys.path.remove(str(installed))


class Awaited:
    """An AsyncClient whose methods block, so that one test covers both clients."""

    def __init__(self, made):
        self._loop = asyncio.new_event_loop()
        self._client = self._loop.run_until_complete(self._make(made))

    async def _make(self, made):
        return made()

    def __getattr__(self, name):
        method = getattr(self._client, name)

        @functools.wraps(method)
        def call(*given, **named):
            return self._loop.run_until_complete(method(*given, **named))

        return call

    def end(self):
        self.close()
        self._loop.close()


@pytest.fixture(scope="module", params=["sync", "asyncio"])
def connect(request, saccade):
    """connect(address, ...): creates a client of either kind."""
    opened = []

    def make(*given, **named):
        if request.param == "sync":
            opened.append(saccade.Client(*given, **named))
        else:
            opened.append(Awaited(lambda: saccade.AsyncClient(*given, **named)))
        return opened[-1]

    yield make
    for client in opened:
        client.end() if isinstance(client, Awaited) else client.close()

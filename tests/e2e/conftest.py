import pytest

from busy import HEAVY
from harness import Daemon
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
    """start(repository, *flags): a daemon of the test's own, which ends with it."""
    started = []

    def start_daemon(repository, *flags, **options):
        daemon = Daemon(repository, *flags, log_folder=tmp_path, **options)
        started.append(daemon)
        return daemon

    yield start_daemon
    for daemon in started:
        daemon.close()


@pytest.fixture(scope="session")
def tiny():
    """A quarter-width network of five classes with weights of its own, and its reference in PyTorch."""
    return TinyModel(classes=5, seed=1)


@pytest.fixture(scope="session")
def repository(tiny, tmp_path_factory):
    """'tiny' answers at once; 'gathering' waits for company."""
    root = tmp_path_factory.mktemp("repository")
    write_model(root, "tiny", tiny, max_batch_size=8)
    write_model(root, "gathering", tiny, max_batch_size=8, max_queue_delay_microseconds=100_000)
    return root


@pytest.fixture(scope="session")
def tasks_repository(tmp_path_factory):
    """A model a task, 'blind', a detector that finds nothing, and 'flat', whose detections follow each other. All but
    the last wait a little for company."""
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
    with Daemon(tasks_repository, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture(scope="session")
def slow_repository(tmp_path_factory):
    """One instance of the full width: a heavy request keeps it busy for long."""
    root = tmp_path_factory.mktemp("slow")
    network = TinyModel(classes=5, seed=2, width="1.0", size=224)
    write_model(
        root, "slow", network, max_batch_size=HEAVY, default_queue_policy="{ max_queue_size: %d }" % (HEAVY + 8)
    )
    return root, network


@pytest.fixture(scope="module")
def daemon(repository, tmp_path_factory):
    """One daemon for the tests of a file that leave it as they found it."""
    with Daemon(repository, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()

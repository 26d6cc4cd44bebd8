"""Shared by the tests of rules and dashboards: promtool, and the daemon's metrics."""

import pathlib
import re
import sys
import urllib.error
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from harness import DEADLINE_SECONDS, DEMO_REPOSITORY, Daemon, eventually  # noqa: F401

# A request that a model refuses.
WRONG = b'{"inputs": [{"name": "image", "datatype": "FP32", "shape": [1], "data": [1]}]}'
PROMTOOL = pathlib.Path(sys.prefix) / "prometheus" / "usr" / "bin" / "promtool"


def metrics_of(expression):
    """The names of metrics and recorded series in an expression."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    bare = re.sub(r"\{[^}]*\}", "", bare)
    bare = re.sub(r"\b(?:by|on|ignoring|without|group_left|group_right)\s*\([^)]*\)", "", bare)
    bare = re.sub(r"\[[^\]]*\]", "", bare)
    return {name for name in re.findall(r"(?<![\w:.])[a-zA-Z_][\w:]*(?!\s*\(|[\w:])", bare)
            if not re.fullmatch(r"and|or|unless|offset|bool|by|on|ignoring|without|group_left|group_right|[0-9]*[smhdwy]",
                                name)}


@pytest.fixture(scope="session")
def page_of_the_daemon(tmp_path_factory):
    """The metrics of a daemon with the demo models."""
    with Daemon(DEMO_REPOSITORY, "--warm-up-seconds=0", log_folder=tmp_path_factory.mktemp("daemon")) as daemon:
        daemon.await_ready()
        # Requests that fail: saccade_requests_total, and a model's histograms, have no series before.
        models = [folder.name for folder in DEMO_REPOSITORY.iterdir() if (folder / "config.pbtxt").exists()]
        assert models
        for model in ["none", *models]:
            asked = urllib.request.Request(f"http://127.0.0.1:{daemon.http_port}/v2/models/{model}/infer", WRONG)
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(asked, timeout=DEADLINE_SECONDS)
        return daemon.metrics()


@pytest.fixture(scope="session")
def names_of_the_daemon(page_of_the_daemon):
    """Names of all metrics on the page, and of those that exist only with a GPU, a cache, drift or TLS."""
    elsewhere = {name for file in ("gpus.cc", "families.cc")
                 for name in re.findall(r'"((?:nv_(?:gpu|energy|cache)_|saccade_certificate_|saccade_drift|saccade_gpu_)[a-z_]*)"',
                                    (ROOT / "server/metrics" / file).read_text())}
    assert {"nv_gpu_utilization", "nv_cache_num_hits_per_model"} <= elsewhere
    return page_of_the_daemon.names() | set(page_of_the_daemon.types) | elsewhere

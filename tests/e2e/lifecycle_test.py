"""Tests that models are loaded, replaced and unloaded under load, and that a broken or half-written model never
disturbs the served one."""

import os
import re
import threading

import grpc
import numpy
import pytest
import safetensors.torch

import pictures
from harness import DEMO_REPOSITORY, eventually, run_to_end
from messages import message, predict_request
from tiny_models import Identity, TinyModel, write_config, write_model

POLL = ("--model-control-mode=poll", "--repository-poll-secs=0.2")
PICTURE = pictures.encoded(pictures.pixels(0))


@pytest.fixture(scope="module")
def networks():
    """Two networks with different results."""
    return TinyModel(classes=5, seed=3), TinyModel(classes=5, seed=4)


@pytest.fixture
def root(tmp_path, networks):
    write_model(tmp_path / "models", "tiny", networks[0], max_batch_size=2)
    return tmp_path / "models"


def write_version(root, number, network, name="weights.safetensors"):
    folder = root / "tiny" / str(number)
    folder.mkdir()
    safetensors.torch.save_file(network.state(), folder / name)
    return folder / name


def served_version(daemon, version=0):
    with daemon.vision() as vision:
        return vision.predict(predict_request(model="tiny", version=version, encoded=PICTURE)).version


class Load:
    """Sends requests continuously; each of them must succeed."""

    def __init__(self, daemon):
        self._daemon = daemon
        self._stop = threading.Event()
        self.answered = 0
        self.failures = []
        self._threads = [threading.Thread(target=self._send) for _ in range(2)]

    def _send(self):
        with self._daemon.vision() as vision:
            while not self._stop.is_set():
                try:
                    vision.predict(predict_request(model="tiny", encoded=PICTURE))
                    self.answered += 1
                except grpc.RpcError as error:
                    self.failures.append(f"{error.code()}: {error.details()}")

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()


def test_a_new_version_takes_over_and_no_request_is_lost(start, root, networks):
    daemon = start(root, *POLL).await_ready()
    with Load(daemon) as load:
        write_version(root, 2, networks[1])
        eventually(lambda: served_version(daemon) == 2, "version 2 is served")
        eventually(lambda: "model freed" in daemon.log(), "version 1 is freed")
        os.rename(root / "tiny" / "2", root / "tiny" / "2.old")
        eventually(lambda: served_version(daemon) == 1, "version 1 is served again")
    assert not load.failures and load.answered
    assert daemon.metrics().value("saccade_model_ready", model="tiny", version="1") == 1


def test_what_fails_to_load_leaves_the_old_version_serving(start, root, networks):
    daemon = start(root, *POLL).await_ready()
    # It is cut before the daemon sees it: on a busy machine, a whole file could be taken up before it is cut.
    whole = write_version(root, "2.tmp", networks[1])
    whole.write_bytes(whole.read_bytes()[:-100])
    weights = whole.parent.rename(root / "tiny" / "2") / whole.name
    eventually(lambda: 'serving="version 1"' in daemon.log(), "version 2 was tried")
    assert served_version(daemon) == 1
    status, _, _ = daemon.get("/v2/health/ready")
    assert status == 200, "what serves is ready"
    (root / "tiny" / "config.pbtxt").write_text("no_such_field: 1")
    eventually(lambda: "no_such_field" in daemon.log(), "the configuration was read")
    assert served_version(daemon) == 1
    write_config(root / "tiny", networks[0], max_batch_size=2)
    weights.unlink()
    safetensors.torch.save_file(networks[1].state(), weights)
    eventually(lambda: served_version(daemon) == 2, "version 2 is served once it is mended")


def test_a_version_that_is_being_written_is_left_alone(start, root, networks):
    # Two looks at the same bytes are enough for the daemon, so each part is written in much less time than passes between looks.
    daemon = start(root, "--model-control-mode=poll", "--repository-poll-secs=1.5", "--log-level=debug").await_ready()
    whole = write_version(root, "2.tmp", networks[1])
    data = whole.read_bytes()
    half = root / "tiny" / "2" / "weights.safetensors"
    half.parent.mkdir()
    with open(half, "wb") as file:
        for part in range(0, len(data), len(data) // 4 + 1):
            file.write(data[part : part + len(data) // 4 + 1])
            file.flush()
            looks = daemon.log().count("scanned the repositories")
            assert served_version(daemon) == 1
            # The next part follows at once, so that this one is not looked at twice.
            eventually(lambda: daemon.log().count("scanned the repositories") > looks, "it was looked at")
    eventually(lambda: served_version(daemon) == 2, "the whole version is served")
    assert "model unavailable" not in daemon.log()


def test_a_repository_that_vanishes_keeps_what_is_loaded(start, root, networks):
    daemon = start(root, *POLL).await_ready()
    root.rename(root.with_name("away"))
    eventually(lambda: "model repository cannot be read" in daemon.log(), "it was missed")
    assert served_version(daemon) == 1
    root.with_name("away").rename(root)
    eventually(lambda: "model repository can be read again" in daemon.log(), "it was found again")
    write_version(root, 2, networks[1])
    eventually(lambda: served_version(daemon) == 2, "version 2 is served")


def test_several_versions_are_served_side_by_side(start, root, networks):
    config = root / "tiny" / "config.pbtxt"
    config.write_text(config.read_text() + "version_policy { all { } }")
    write_version(root, 2, networks[1])
    daemon = start(root).await_ready()
    with daemon.vision() as vision:
        answers = [
            vision.predict(predict_request(model="tiny", version=version, encoded=PICTURE)) for version in (1, 2)
        ]
    assert [answer.version for answer in answers] == [1, 2]
    first, second = ([entry.logit for entry in answer.classification.classes] for answer in answers)
    assert not numpy.allclose(first, second), "each has its own weights"
    with pytest.raises(grpc.RpcError) as error:
        served_version(daemon, version=3)
    assert error.value.code() == grpc.StatusCode.NOT_FOUND


def test_on_request_only_what_is_named_is_loaded(start, root, networks):
    write_model(root, "other", networks[1])
    daemon = start(root, "--model-control-mode=explicit", "--load-model=tiny").await_ready()
    assert served_version(daemon) == 1
    with daemon.vision() as vision, pytest.raises(grpc.RpcError) as error:
        vision.predict(predict_request(model="other", encoded=PICTURE))
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    assert "not loaded" in error.value.details()


def test_strict_readiness_waits_for_every_model(start, root):
    (root / "broken").mkdir()
    strict = start(root, "--exit-on-error=false").await_ports()
    eventually(lambda: strict.metrics().total("saccade_model_ready", model="tiny") == 1, "the sound one is served")
    assert strict.get("/v2/health/ready")[0] == 503
    start(root, "--exit-on-error=false", "--strict-readiness=false").await_ready()


def slow_models(folder):
    """A model whose warm-up takes twenty seconds (a single pass, with --warm-up-seconds=0), and one that is loaded before it."""
    write_model(folder, "fast", Identity(), max_batch_size=1)
    write_model(folder, "slow", Identity(delay_ms=20000), max_batch_size=1)
    return folder


def is_ready(daemon, **model):
    with daemon.inference() as inference:
        if model:
            return inference.model_ready(message("inference.ModelReadyRequest")(**model)).ready
        return inference.server_ready(message("inference.ServerReadyRequest")()).ready


def test_a_start_that_takes_long_is_ready_with_what_is_loaded(start, tmp_path):
    daemon = start(slow_models(tmp_path / "slow"), "--warm-up-seconds=0", "--load-deadline-seconds=0.5").await_ready()
    assert is_ready(daemon, name="fast") and not is_ready(daemon, name="slow")
    daemon.await_log("loading takes longer than --load-deadline-seconds", "missing=1 models=slow")
    eventually(lambda: is_ready(daemon, name="slow"), "the other model is loaded too")
    assert is_ready(daemon)


def test_without_a_deadline_a_start_waits_for_all_models(start, tmp_path):
    daemon = start(slow_models(tmp_path / "slow"), "--warm-up-seconds=0", "--load-deadline-seconds=0").await_ready()
    assert is_ready(daemon, name="fast") and is_ready(daemon, name="slow")
    assert "--load-deadline-seconds" not in daemon.log()


def test_a_daemon_that_serves_drains_if_a_model_cannot_be_loaded(start, tmp_path):
    root = slow_models(tmp_path / "slow")
    (root / "wrong").mkdir()
    daemon = start(root, "--warm-up-seconds=0", "--load-deadline-seconds=0.5", "--lame-duck-seconds=0").await_ready()
    assert is_ready(daemon, name="fast")
    assert daemon.exit_code() == 1
    assert "drained: every accepted request was answered" in daemon.log()
    assert "a model could not be loaded" in daemon.log()


def test_the_log_tells_how_far_loading_is(start, root, networks):
    write_model(root, "other", networks[1])
    daemon = start(root).await_ready()
    for told in (r"loading model.*other.*1 of 2", r"loading model.*tiny.*2 of 2", r"warmed up.*tiny.*1 of 1 buckets"):
        eventually(lambda told=told: re.search(told, daemon.log()), f"the log tells '{told}'")


def test_a_whole_repository_is_checked_without_serving(root, networks):
    checked = run_to_end("--check-config", f"--model-repository={root}")
    assert checked.returncode == 0, checked.stderr
    assert "OK      tiny version 1 (sanet)" in checked.stdout and "listening" not in checked.stdout
    config = root / "tiny" / "config.pbtxt"
    config.write_text(config.read_text() + "metric_tags { key: 'a' value: 'b' }\nmax_batch_size: 9999\n")
    other = write_model(root, "other", networks[1])
    other.write_bytes(other.read_bytes()[:-100])
    checked = run_to_end("--check-config", f"--model-repository={root}")
    assert checked.returncode == 1
    assert re.search(r"ERROR   tiny: tiny/config.pbtxt:\d+:", checked.stdout)
    assert re.search(r"ERROR   other version 1: .*weights.safetensors", checked.stdout)
    assert "2 with errors" in checked.stdout


def test_the_demo_repository_is_in_order():
    checked = run_to_end("--check-config", f"--model-repository={DEMO_REPOSITORY}")
    assert checked.returncode == 0, checked.stdout


def test_names_with_tricks_are_no_models(start, root):
    daemon = start(root, *POLL).await_ready()
    with daemon.inference() as inference:
        for name in ("../models/tiny", "tiny/../tiny", "tiny\n"):
            assert not inference.model_ready(message("inference.ModelReadyRequest")(name=name)).ready

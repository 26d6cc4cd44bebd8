"""Sends every kind of request to the demo models while they are reloaded: the results must not change. `./dev soak` is
the long version."""

import shutil

from harness import DEMO_REPOSITORY, eventually
from tools.soak.__main__ import Reloads
from tools.soak.load import Load

RELOADS = 3


def test_every_protocol_answers_the_same_amid_reloads(start, tmp_path):
    shutil.copytree(DEMO_REPOSITORY, tmp_path / "models")
    polling = ("--model-control-mode=poll", "--repository-poll-secs=0.2", "--warm-up-seconds=0")
    daemon = start(tmp_path / "models", *polling).await_ready()
    with Load(daemon, clients=2) as load, Reloads(tmp_path / "models", every=0.5):
        eventually(lambda: daemon.log().count("model freed") >= RELOADS, "models were reloaded")
        eventually(lambda: daemon.metrics() and set(load.asked) == set(Load.WEIGHTS), "every way was taken")
    assert not load.faults

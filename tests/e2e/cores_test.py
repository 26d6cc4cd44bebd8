"""Tests how many cores the daemon keeps busy: those that it may use, or those that it is told."""

import os

import pytest

from control_groups import NoControlGroup, control_group, into
from harness import of_threads
from tiny_models import Identity, write_model


@pytest.fixture
def root(tmp_path):
    write_model(tmp_path / "models", "served", Identity())
    return tmp_path / "models"


def threads(daemon, name):
    """The number of the daemon's threads whose names begin with `name`."""
    return sum(each.startswith(name) for each in of_threads(daemon.process.pid, "comm"))


@pytest.fixture
def group_of_half_a_core():
    """A control group with half a core's time."""
    quota = {"cpu.cfs_quota_us": 50_000, "cpu.cfs_period_us": 100_000}
    try:
        with control_group("cpu", quota, {"cpu.max": "50000 100000"}) as group:
            yield group
    except NoControlGroup as none:
        pytest.skip(str(none))


def test_the_limit_of_a_control_group(start, root, group_of_half_a_core):
    daemon = start(root, under=into(group_of_half_a_core)).await_ready()
    try:
        assert threads(daemon, "decode-") == threads(daemon, "network-") == 1
        daemon.await_log("cores used=1 ", "quota=0.5")
    finally:
        daemon.close()


def test_one_core_of_the_affinity(start, root):
    core = str(min(os.sched_getaffinity(0)))
    daemon = start(root, under=("taskset", "-c", core)).await_ready()
    assert threads(daemon, "decode-") == threads(daemon, "network-") == 1
    daemon.await_log("cores used=1 allowed=1")


def test_cores_that_are_asked_for(start, root):
    daemon = start(root, "--cores=3", "--decode-threads=0").await_ready()
    assert threads(daemon, "decode-") == 3
    daemon.await_log("cores used=3 ")


def test_a_number_for_one_part_stands(start, root):
    daemon = start(root, "--cores=3", "--decode-threads=1").await_ready()
    assert threads(daemon, "decode-") == 1

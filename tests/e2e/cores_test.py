"""Tests how many cores the daemon keeps busy: those that it may use, or those that it is told."""

import errno
import os
import pathlib
import uuid

import pytest

from harness import eventually, of_threads
from tiny_models import Identity, write_model

CGROUPS = pathlib.Path("/sys/fs/cgroup")


@pytest.fixture
def root(tmp_path):
    write_model(tmp_path / "models", "served", Identity())
    return tmp_path / "models"


def threads(daemon, name):
    """The number of the daemon's threads whose names begin with `name`."""
    return sum(each.startswith(name) for each in of_threads(daemon.process.pid, "comm"))


def removed(group):
    """Removes a control group; returns whether it had no process. Decode workers end a moment after their daemon."""
    try:
        group.rmdir()
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


@pytest.fixture
def group_of_half_a_core():
    """A control group with half a core's time."""
    first = CGROUPS / "cpu" if (CGROUPS / "cpu").is_dir() else CGROUPS
    group = first / f"saccade-{uuid.uuid4().hex}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        version_1, version_2 = group / "cpu.cfs_quota_us", group / "cpu.max"
        if version_1.exists():
            version_1.write_text("50000")
            (group / "cpu.cfs_period_us").write_text("100000")
        elif version_2.exists():
            version_2.write_text("50000 100000")
        else:
            pytest.skip("control groups do not limit processors here")
        yield group
    finally:
        eventually(lambda: removed(group), f"every process has left {group}")


def test_the_limit_of_a_control_group(start, root, group_of_half_a_core):
    into = ("sh", "-c", f'echo $$ >{group_of_half_a_core}/cgroup.procs && exec "$@"', "sh")
    daemon = start(root, under=into).await_ready()
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

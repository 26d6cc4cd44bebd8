"""Tests instances that are pinned to cores of their own."""

import os
import re

import pytest

from harness import eventually, of_threads
from tiny_models import write_model


def cores_of(daemon, thread):
    """The cores on which each thread of this name may run, according to the kernel."""
    found = []
    for status in of_threads(daemon.process.pid, "status"):
        if re.search(r"Name:\s+(\S+)", status)[1] != thread:
            continue
        allowed = re.search(r"Cpus_allowed_list:\s+(\S+)", status)[1]
        ranges = [part.split("-") for part in allowed.split(",")]
        found.append({core for ends in ranges for core in range(int(ends[0]), int(ends[-1]) + 1)})
    return found


def pinned(daemon):
    return [cores for name in ("instance-0", "instance-1") for cores in cores_of(daemon, name) if len(cores) == 1]


def test_pinned_instances_have_cores_of_their_own(start, tiny, tmp_path):
    write_model(tmp_path / "models", "free", tiny, instances=1)
    write_model(tmp_path / "models", "pinned", tiny, instances=2, parameters={"pin": "true", "threads": "1"})
    daemon = start(tmp_path / "models").await_ready()
    machine = os.sched_getaffinity(daemon.process.pid)
    if len(machine) == 1:
        pytest.skip("there is one core for all")
    # A thread gets its name, and the model becomes ready, before the thread is pinned.
    eventually(lambda: len(pinned(daemon)) == 2, "both are pinned")
    one, other = pinned(daemon)
    assert one != other
    assert machine in cores_of(daemon, "instance-0"), "the model that is not pinned may run anywhere"

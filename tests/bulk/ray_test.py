"""A job on a cluster of three Ray nodes on this machine, each with a daemon of its own. A daemon and a node are
killed, and the disk of the output fills. Which cluster a job joins."""

import dataclasses
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import pytest
import ray
import ray.cluster_utils

from conftest import RAY_SECONDS
from contents import check_each_once, rows_of, write_files
from daemon_test import job_of
from full_disk import check_full_disk
from processes import after_parts, processes
from saccade.bulk import BulkError, run
from saccade.bulk.engines import Service
from saccade.bulk.plan import Question
from sender_test import job_of as job_of_stand_in
from tools.rollout.network import free_port

MEMORY = 100 << 20
AGENT_PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")


# Tests without the cluster come first: it keeps the machine busy.


def started(tmp_path, stand_in, *more, **environment):
    """Runs the command on Ray in a process of its own."""
    inputs = write_files(tmp_path / "in", 30)
    command = [sys.executable, "-m", "saccade.bulk.command", str(inputs), "-o", str(tmp_path / "out"), "--model", "any",
               "--url", stand_in.address, "--on", "ray", *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **environment})


@pytest.fixture
def dead_cluster():
    """What a cluster leaves that has ended: Ray's folder with its address in a file. The folder's path is short, because those of sockets
    are below it."""
    with socket.socket() as closed:
        # A port that is bound and does not listen is of nobody else meanwhile.
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        folder = tempfile.mkdtemp(prefix="ray")
        os.makedirs(os.path.join(folder, "ray"))
        with open(os.path.join(folder, "ray", "ray_current_cluster"), "w", encoding="ascii") as file:
            file.write(address)
        yield folder, address
        shutil.rmtree(folder)


def test_a_job_without_an_address_does_not_join_the_cluster_that_was_here_last(tmp_path, stand_in, dead_cluster):
    folder, _ = dead_cluster
    ended = started(tmp_path, stand_in, RAY_TMPDIR=folder)
    assert ended.returncode == 0, ended.stderr
    assert "saccade bulk: starts a Ray cluster on this machine" in ended.stderr
    # The folder is the one that Ray used.
    assert os.path.exists(os.path.join(folder, "ray", "session_latest"))
    check_each_once(rows_of(tmp_path / "out"), 30)


def test_a_cluster_that_is_gone_is_named(tmp_path, stand_in, dead_cluster):
    _, address = dead_cluster
    ended = started(tmp_path, stand_in, "--engine-address", address)
    assert ended.returncode == 1
    assert f"the Ray cluster cannot be used (address {address}): [Errno 111] Connection refused; start it" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_cluster_that_does_not_start_is_told(tmp_path, stand_in, monkeypatch):
    def late(**_):
        # As Ray does it.
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", late)
    with pytest.raises(BulkError, match="the Ray cluster cannot be used .address local.: The current node timed out during startup"):
        run(job_of_stand_in(tmp_path, stand_in, count=1, engine="ray"))


def options_of_nodes():
    """Options for one node after another. The ports of a node's agents are given: a node that leaves them to its agents ends if
    they have not written them to files within 15 s, which no setting changes
    (https://github.com/ray-project/ray/issues/65983)."""
    used = set()
    while True:
        ports = {free_port("") for _ in AGENT_PORTS} - used
        if len(ports) == len(AGENT_PORTS):
            used |= ports
            yield {"object_store_memory": MEMORY, "wait": False, **dict(zip(AGENT_PORTS, ports))}


@pytest.fixture(scope="module")
def cluster():
    nodes = options_of_nodes()
    # The head has no CPU, so no worker runs on it: it is not the node that is lost. The processes that scale the cluster and
    # that pass on the workers' output are left out.
    head = {**next(nodes), "num_cpus": 0, "include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
    made = ray.cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    # Each has room for two workers, so that they are on different nodes only if they are placed so.
    made.nodes_of_test = [made.add_node(num_cpus=2, **next(nodes)) for _ in range(3)]
    made.wait_for_nodes(RAY_SECONDS)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


@dataclasses.dataclass(frozen=True)
class NotedService(Service):
    """Each worker leaves a file with its node's name in the folder."""

    folder: str = ""

    def connections(self, job, machine, number=0):
        pathlib.Path(self.folder, f"{machine}-{number}").touch()
        return super().connections(job, machine, number)


def test_every_node_has_one_worker(cluster, tmp_path, stand_in):
    workers = tmp_path / "workers"
    workers.mkdir()
    all_there, end = threading.Event(), time.monotonic() + RAY_SECONDS

    def held(content, attempt):
        # No input has an answer before all workers are there.
        while not all_there.wait(0.05):
            if len(list(workers.iterdir())) >= 3 or time.monotonic() > end:
                all_there.set()

    stand_in.plan = held
    run(job_of_stand_in(tmp_path, stand_in, engine="ray", service=NotedService((stand_in.address,), folder=str(workers))))
    nodes = [path.name.rpartition("-")[0] for path in workers.iterdir()]
    assert len(nodes) == 3 and len(set(nodes)) == 3, nodes


def test_a_failure_of_the_job_is_told_as_on_one_machine(cluster, tmp_path, service):
    inputs = write_files(tmp_path / "in", 30)
    with pytest.raises(BulkError, match="rejects the job: no model 'absent'; this daemon has") as error:
        run(job_of(tmp_path, service, inputs, engine="ray", question=Question("absent")))
    assert "\n" not in str(error.value)


def test_a_daemon_that_is_killed_in_the_middle_costs_no_input(cluster, tmp_path, service):
    inputs = write_files(tmp_path / "in", 300, damaged={7, 123, 299})
    killed = []

    def kill():
        killed.extend(processes("bin/saccaded ", str(tmp_path / "repository"), "!keeper")[:1])
        os.kill(killed[0], signal.SIGKILL)

    watcher = after_parts(tmp_path / "out", 4, kill)
    report = run(job_of(tmp_path, service, inputs, engine="ray"))
    watcher.join()
    assert killed and (report.inputs, report.failed) == (300, 3)
    rows = rows_of(tmp_path / "out")
    check_each_once(rows, 300)
    assert [row["index"] for row in rows if row["error_code"]] == [7, 123, 299]


def test_a_disk_that_fills_in_the_middle_is_named_and_costs_no_input(cluster, tmp_path, service, disk):
    check_full_disk(tmp_path, service, disk, "ray")


def test_a_job_joins_the_cluster_whose_address_is_given(cluster, tmp_path, stand_in):
    for folder, given, environment in (
        ("option", ["--engine-address", cluster.address], {}),
        ("environment", [], {"RAY_ADDRESS": cluster.address}),
    ):
        ended = started(tmp_path / folder, stand_in, *given, **environment)
        assert ended.returncode == 0, ended.stderr
        assert f"saccade bulk: joins the Ray cluster at {cluster.address}\n" in ended.stderr
        check_each_once(rows_of(tmp_path / folder / "out"), 30)


def test_a_node_that_is_killed_in_the_middle_costs_no_input(cluster, tmp_path, service):
    inputs = write_files(tmp_path / "in", 1000, damaged=range(50, 1000, 100))
    daemons, all_there = set(), threading.Event()

    def kill():
        daemons.update(processes("bin/saccaded ", str(tmp_path / "repository"), "!keeper"))
        cluster.remove_node(cluster.nodes_of_test.pop(), allow_graceful=False)
        all_there.set()

    watcher = after_parts(tmp_path / "out", 8, kill)
    report = run(job_of(tmp_path, service, inputs, engine="ray"))
    watcher.join()
    assert all_there.is_set() and 2 <= len(daemons) <= 3
    assert (report.inputs, report.failed) == (1000, 10)
    rows = rows_of(tmp_path / "out")
    check_each_once(rows, 1000)
    assert [row["index"] for row in rows if row["error_code"]] == list(range(50, 1000, 100))

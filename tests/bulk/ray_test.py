"""A job on a cluster of three Ray nodes on this machine, each with a daemon of its own. A daemon and a node are
killed."""

import os
import signal
import threading

import pytest
import ray
import ray.cluster_utils

from contents import check_each_once, rows_of, write_files
from daemon_test import job_of
from processes import after_parts, processes
from saccade.bulk import BulkError, run
from saccade.bulk.plan import Question

MEMORY = 100 << 20


@pytest.fixture(scope="module")
def cluster():
    # The head has no CPU, so no worker runs on it: it is not the node that is lost.
    head = {"num_cpus": 0, "object_store_memory": MEMORY, "include_dashboard": False}
    made = ray.cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    made.nodes_of_test = [made.add_node(num_cpus=1, object_store_memory=MEMORY) for _ in range(3)]
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


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

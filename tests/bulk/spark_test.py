"""A job on Spark with three executors on this machine, each with a daemon of its own. A daemon and an executor are
killed, and the disk of the output fills."""

import os
import signal
import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from conftest import MODEL
from contents import check_each_once, rows_of, write_files
from daemon_test import job_of
from full_disk import check_full_disk
from processes import after_parts, descendants, processes
from saccade.bulk import BulkError, command, run
from saccade.bulk.plan import Question


@pytest.fixture
def spark(tmp_path_factory):
    """A session. Spark keeps idle workers for a minute, and their daemons with them: a test that succeeds stops its session, so
    that `service` does not wait for that."""
    work = tmp_path_factory.mktemp("spark")
    os.environ["SPARK_WORKER_DIR"] = str(work)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.local.dir": str(work),
        # A machine under load takes its time; only a killed executor is to be lost.
        "spark.network.timeout": "600s",
    }
    builder = SparkSession.builder.master("local-cluster[3,1,512]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def test_a_failure_of_the_job_is_told_as_on_one_machine(spark, tmp_path, service):
    inputs = write_files(tmp_path / "in", 30)
    with pytest.raises(BulkError, match="rejects the job: no model 'absent'; this daemon has") as error:
        run(job_of(tmp_path, service, inputs, engine="spark", question=Question("absent")))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("more", "environment", "said"),
    [
        ([], {"JAVA_HOME": "/nothing"}, "saccade bulk: Spark needs Java, and /nothing/bin/java is not a program; install Java"),
        (["--engine-address", "nothing"], {}, "saccade bulk: Spark cannot be used (master nothing): "),
    ],
)
def test_a_session_that_cannot_be_started_is_told(tmp_path, stand_in, more, environment, said):
    inputs = write_files(tmp_path / "in", 2)
    ended = subprocess.run(
        [sys.executable, "-m", "saccade.bulk.command", str(inputs), "-o", str(tmp_path / "out"), "--model", "any", "--url",
         stand_in.address, "--on", "spark", *more], capture_output=True, text=True, timeout=300, env={**os.environ, **environment})
    assert ended.returncode == 1
    assert said in ended.stderr and "Traceback" not in ended.stderr


def test_a_daemon_that_is_killed_in_the_middle_costs_no_input(spark, tmp_path, service, capsys):
    inputs = write_files(tmp_path / "in", 300, damaged={7, 123, 299})
    killed = []

    def kill():
        killed.extend(processes("bin/saccaded ", str(tmp_path / "repository"), "!keeper")[:1])
        os.kill(killed[0], signal.SIGKILL)

    watcher = after_parts(tmp_path / "out", 4, kill)
    # The command in this process, which has the session: the job's daemons are those of the fixture.
    code = command.main([
        str(inputs), "-o", str(tmp_path / "out"), "--model", MODEL, "--on", "spark", "--shard-items", "10",
        "--saccaded", service.command[0], "--model-repository", str(tmp_path / "repository"), "--saccaded-flag=--cores=1",
    ])
    watcher.join()
    said = capsys.readouterr()
    assert code == 0, said.err
    assert killed and said.out.startswith("300 inputs in ") and "\n3 have no result; " in said.out
    rows = rows_of(tmp_path / "out")
    check_each_once(rows, 300)
    assert [row["index"] for row in rows if row["error_code"]] == [7, 123, 299]
    for row in rows:
        assert row["key"] == f"{row['index']:05}.jpg" and bool(row["result"]) == (row["error_code"] is None)
    spark.stop()


def test_a_disk_that_fills_in_the_middle_is_named_and_costs_no_input(spark, tmp_path, service, disk):
    check_full_disk(tmp_path, service, disk, "spark")
    spark.stop()


def test_an_executor_that_is_killed_in_the_middle_costs_no_input(spark, tmp_path, service):
    inputs = write_files(tmp_path / "in", 1000, damaged=range(50, 1000, 100))
    killed = []

    def kill():
        ours = set(descendants(os.getpid()))
        executors = [pid for pid in processes("CoarseGrainedExecutorBackend") if pid in ours]
        killed.append(executors[-1])
        os.kill(executors[-1], signal.SIGKILL)

    watcher = after_parts(tmp_path / "out", 8, kill)
    report = run(job_of(tmp_path, service, inputs, engine="spark"))
    watcher.join()
    assert killed and (report.inputs, report.failed) == (1000, 10)
    rows = rows_of(tmp_path / "out")
    check_each_once(rows, 1000)
    assert [row["index"] for row in rows if row["error_code"]] == list(range(50, 1000, 100))
    spark.stop()

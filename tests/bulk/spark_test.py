"""A job on Spark with three executors on this machine, each with a daemon of its own. One executor is killed."""

import os
import signal

import pytest
from pyspark.sql import SparkSession

from contents import check_each_once, rows_of, write_files
from daemon_test import job_of
from processes import after_parts, descendants, processes
from saccade.bulk import BulkError, run
from saccade.bulk.plan import Question


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
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
    # Spark keeps its idle workers for a minute, and their daemon with them.
    spark.stop()

"""Tests of bulk jobs. They run in an environment with Ray and Spark: ./dev test-bulk."""

import os
import pathlib
import sys

import pytest

from disks import SmallDisk
from processes import await_end
from saccade.bulk.engines import Service
from stand_in import StandIn

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPOSITORY = ROOT / "models" / "demo" / "repository"
# A classifier of small pictures.
MODEL = "sanet_shapes"

# How long Ray's processes wait for each other. Their own limits, mostly 30 s, are too short on a machine under load. Ray reads
# these when it is imported, and so do the processes that it starts. A process that has ended is noticed as soon as before.
RAY_SECONDS = 180
os.environ.update(
    RAY_raylet_start_wait_time_s=str(RAY_SECONDS),
    RAY_gcs_server_port_wait_time_s=str(RAY_SECONDS),
    RAY_gcs_server_request_timeout_seconds=str(RAY_SECONDS),
    RAY_py_gcs_connect_timeout_s=str(RAY_SECONDS),
    RAY_worker_register_timeout_seconds=str(RAY_SECONDS),
    RAY_agent_register_timeout_ms=str(1000 * RAY_SECONDS),
    RAY_health_check_timeout_ms=str(1000 * RAY_SECONDS),
    RAY_DASHBOARD_STARTUP_TIMEOUT_S=str(RAY_SECONDS),
)


@pytest.fixture
def stand_in():
    with StandIn() as running:
        yield running


@pytest.fixture
def service(tmp_path):
    """Daemons that the job starts. Their command names a folder of the test, so that the test finds their processes."""
    from saccade.bulk.daemons import command

    saccaded = pathlib.Path(os.environ["SACCADE_BUILD_DIR"]).resolve() / "bin" / "saccaded"
    repository = tmp_path / "repository"
    repository.symlink_to(REPOSITORY)
    yield Service(command=tuple(command(str(saccaded), str(repository), ["--cores=1"])))
    # The keepers end with the workers; nothing may be left.
    await_end(str(repository))


@pytest.fixture
def disk():
    made = SmallDisk(2 << 20)
    yield made
    made.close()


@pytest.fixture(autouse=True, scope="session")
def environment_of_workers():
    # Spark's and Ray's workers are started by programs that know nothing of this environment.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

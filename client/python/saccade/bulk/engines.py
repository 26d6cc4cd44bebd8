"""The engines of a job. An engine only hands out shards: whatever runs a shard, and however often, its part is written as
a whole under one name, so nothing is in the output twice."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib
import logging
import os
import shutil
import socket
from collections.abc import Iterator
from typing import Any

from saccade.bulk import daemons, plan
from saccade.bulk.failures import BulkError
from saccade.bulk.sender import Connections, valid_options
from saccade.bulk.worker import SHARDS_AT_ONCE, Limits, Worker
from saccade.client import Client
from saccade.connection import TLS

_log = logging.getLogger("saccade.bulk")

# Ray's word for a new cluster.
_THIS_MACHINE = "local"
_CONNECT_SECONDS = 10.0
# Shards in one unit of work of an engine.
_SHARDS_PER_TASK = 2 * SHARDS_AT_ONCE


@dataclasses.dataclass(frozen=True)
class Service:
    """Where the daemons are: at addresses that are given, or started by the workers with `command`. Sent to the
    workers."""

    addresses: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    start_seconds: float = 300.0
    token: str | None = None
    tls: TLS | bool | None = None

    def check(self) -> None:
        """Raises BulkError for an address, a token or TLS options that cannot be used."""
        for address in self.addresses:
            with valid_options(address):
                Client(address, token=self.token, tls=self.tls).close()

    def connections(self, job: str, machine: str, number: int = 0) -> Connections:
        """`machine` names the machine, or the part of one that has a daemon of its own; `number` chooses an address."""
        if self.command:
            lease = daemons.Lease(job, machine, list(self.command), self.start_seconds)
            return Connections(lease.find, lease.close)
        address = self.addresses[number % len(self.addresses)]
        return Connections(lambda: address, token=self.token, tls=self.tls)


@dataclasses.dataclass(frozen=True)
class Work:
    """What a worker needs to know. `run` names one run of the job, since a job that is resumed has others. Sent to the
    workers."""

    folder: str
    run: str
    service: Service
    limits: Limits
    # True if the parts become a file in COCO's form.
    is_coco: bool = False

    def worker(self, machine: str, number: int = 0) -> Worker:
        connections = self.service.connections(self.folder, machine, number)
        return Worker(self.folder, self.run, connections, self.limits, self.is_coco)


# The modules that an engine needs here, beside pyarrow.
_MODULES = {"local": (), "ray": ("ray", "ray.data"), "spark": ("pyspark", "pandas")}


def check_installed(engine: str) -> None:
    """Raises BulkError if a package of the engine is not installed."""
    for name in _MODULES[engine]:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise BulkError(
                f"--on {engine} needs the package {error.name or name}, which cannot be imported ({error}); install it with: "
                f"pip install 'saccade[{engine}]'"
            ) from None


def run_local(work: Work, entries: list[plan.Entry], _options: dict[str, str]) -> None:
    """One event loop with one worker for each daemon; a worker takes the next shard when it is done with one."""

    async def all_workers() -> None:
        left = iter(entries)
        workers = [work.worker("local", number) for number in range(max(1, len(work.service.addresses)))]
        running = [asyncio.ensure_future(worker.process_all(left)) for worker in workers]
        try:
            await asyncio.gather(*running)
        finally:
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            for worker in workers:
                await worker.close()

    asyncio.run(all_workers())


def _tasks(entries: list[plan.Entry]) -> Iterator[list[plan.Entry]]:
    for start in range(0, len(entries), _SHARDS_PER_TASK):
        yield entries[start:start + _SHARDS_PER_TASK]


class _RayWorker:
    """An actor. Actors on one node share its daemon."""

    def __init__(self, work: Work) -> None:
        import ray

        context = ray.get_runtime_context()
        # Actors choose different addresses if several are given.
        number = int(context.get_actor_id()[:8], 16)
        self._worker = work.worker(context.get_node_id(), number)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        entries = [plan.Entry(*(int(batch[field.name][row]) for field in dataclasses.fields(plan.Entry)))
                   for row in range(len(batch["id"]))]
        self._worker.process(entries)
        return {"id": batch["id"]}


def run_ray(work: Work, entries: list[plan.Entry], options: dict[str, str]) -> None:
    """Ray Data: an actor for each node of the cluster takes batches of shards. A node that is lost gives its shards
    back."""
    with _ray_cluster(options.get("address")):
        _process_on_ray(work, entries)


@contextlib.contextmanager
def _ray_cluster(address: str | None) -> Iterator[None]:
    """Joins the cluster at the address, or at that of RAY_ADDRESS, or starts one on this machine; leaves or ends it
    afterwards. Ray by itself would also join the cluster that was started last on this machine. The address of that one
    stays in a file when it ends, so a job could join a cluster that is ending or gone."""
    import ray

    if ray.is_initialized():
        _log.info("uses the Ray cluster that this process has joined")
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or _THIS_MACHINE
    if address == _THIS_MACHINE:
        _log.info("starts a Ray cluster on this machine; --engine-address joins another one")
    else:
        _log.info("joins the Ray cluster at %s", address)
    try:
        _check_reachable(address)
        ray.init(address=address, log_to_driver=False)
    except Exception as error:  # Ray raises no narrower one for a node that does not start in time
        raise BulkError(
            f"the Ray cluster cannot be used (address {address}): {error}; start it, or correct --engine-address or "
            f"RAY_ADDRESS; {_THIS_MACHINE} starts a cluster on this machine"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raises OSError or OverflowError if nothing listens at HOST:PORT, for which Ray itself would wait for minutes.
    Other forms of address are left to Ray."""
    host, _, port = address.rpartition(":")
    if "/" not in address and host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()


def _process_on_ray(work: Work, entries: list[plan.Entry]) -> None:
    import ray

    nodes = sum(1 for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1)
    if nodes == 0:
        raise BulkError("the Ray cluster has no node with a CPU; start one with: ray start")
    # The job tells its own progress.
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    rows = [dataclasses.asdict(entry) for entry in entries]
    blocks = max(1, -(-len(rows) // _SHARDS_PER_TASK))
    done = (
        ray.data.from_items(rows, override_num_blocks=blocks)
        .map_batches(
            _RayWorker,
            fn_constructor_args=(work,),
            batch_size=_SHARDS_PER_TASK,
            # Ray Data asks for the strategy SPREAD: Ray places the actors on different nodes as far as it can.
            compute=ray.data.ActorPoolStrategy(size=nodes),
            num_cpus=1,
        )
    )
    try:
        for _ in done.iter_batches(batch_size=None):
            pass
    except ray.exceptions.RayError as error:
        raise _engine_failed("Ray", error) from error


def _engine_failed(name: str, error: Exception) -> BulkError:
    return BulkError(f"{name} failed: {error}; mend the cluster, and repeat the command: it goes on where it stopped")


# The last worker of this process of Spark, which stays for further partitions and further runs.
_kept: tuple[Work, Worker] | None = None


def _spark_worker(work: Work) -> Worker:
    """Returns the process's worker for a run. Ends that of an earlier run."""
    global _kept
    if _kept is None or _kept[0] != work:
        before = _kept
        # Python's workers of one executor have the same parent, and share a daemon.
        _kept = (work, work.worker(str(os.getppid()), os.getpid()))
        if before is not None:
            before[1].end()
    return _kept[1]


def _spark_session(address: str | None) -> Any:
    """Starts a session, or returns the one that this process has."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("saccade bulk")
    if address is not None:
        builder = builder.master(address)
    try:
        return builder.getOrCreate()
    except (OSError, Py4JError, PySparkException) as error:
        home = os.environ.get("JAVA_HOME")
        java = os.path.join(home, "bin", "java") if home else "java"
        if shutil.which(java) is None:
            raise BulkError(
                f"Spark needs Java, and {java} is not a program; install Java 17 or later (Debian: apt install "
                "openjdk-17-jre-headless), or correct JAVA_HOME"
            ) from error
        raise BulkError(
            f"Spark cannot be used (master {address or 'of its own settings'}): {_first_line(error)}; Java's messages above may "
            "say more; start the master, or correct --engine-address"
        ) from error


def _first_line(error: Exception) -> str:
    """The text of an error of Spark without Java's stack."""
    cause = getattr(error, "java_exception", None)
    return str(error if cause is None else cause).partition("\n")[0]


def run_spark(work: Work, entries: list[plan.Entry], options: dict[str, str]) -> None:
    """Spark: each partition is a batch of shards. A lost executor gives its partitions back."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    spark = _spark_session(options.get("address"))
    names = [field.name for field in dataclasses.fields(plan.Entry)]

    def process(frames: Any) -> Any:
        for frame in frames:
            if len(frame):
                found = [plan.Entry(*(int(row[name]) for name in names)) for _, row in frame.iterrows()]
                _spark_worker(work).process(found)
            yield frame[["id"]]

    partitions = [[dataclasses.astuple(entry) for entry in task] for task in _tasks(entries)]
    context = spark.sparkContext
    # One element is one partition; createDataFrame would cut by its own measure.
    rows = context.parallelize(partitions, len(partitions)).flatMap(lambda task: task)
    frame = spark.createDataFrame(rows, ", ".join(f"{name} long" for name in names))
    try:
        frame.mapInPandas(process, "id long").collect()
    except (Py4JError, PySparkException) as error:
        raise _engine_failed("Spark", error) from error


ENGINES = {"local": run_local, "ray": run_ray, "spark": run_spark}

"""A bulk job from its plan to the check of its output."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from saccade.bulk import coco, plan, sources
from saccade.bulk.engines import ENGINES, Service, Work, check_installed
from saccade.bulk.failures import BulkError, is_disk_full, not_written
from saccade.bulk.worker import Limits

_PROGRESS_SECONDS = 1.0


@dataclasses.dataclass(frozen=True)
class Job:
    """What a job does. `output` is a folder for Parquet files, or a .json file for COCO's form."""

    inputs: list[str]
    output: str
    question: plan.Question
    service: Service
    engine: str = "local"
    engine_options: dict[str, str] = dataclasses.field(default_factory=dict)
    shard_items: int = 256
    columns: sources.Columns = sources.Columns()
    limits: Limits = Limits()

    @property
    def is_coco(self) -> bool:
        return self.output.endswith(".json")

    def folder(self) -> str:
        output = os.path.abspath(self.output)
        return f"{output}.parts" if self.is_coco else output


@dataclasses.dataclass(frozen=True)
class Progress:
    inputs: int
    done: int
    # Done before this run.
    before: int
    seconds: float


@dataclasses.dataclass(frozen=True)
class Report:
    """The outcome of a job. `failed`: inputs whose row has an error instead of a result."""

    inputs: int
    failed: int
    seconds: float
    resumed: int


def run(job: Job, progress: Callable[[Progress], None] = lambda _: None) -> Report:
    """Runs a job, or the rest of one that was interrupted. Raises BulkError if it cannot be finished; what is written
    stays, and the same call goes on from there."""
    if job.engine not in ENGINES:
        raise BulkError(f"engine {job.engine} is not known; expected {', '.join(ENGINES)}")
    _import_needed(job.engine)
    job.service.check()
    started, folder = time.monotonic(), job.folder()
    _make_folder(job, folder)
    with plan.locked(folder):
        name = uuid.uuid4().hex
        made, failure = _plan(job, folder, name)
        missing = made.missing()
        resumed = made.items - sum(entry.items for entry in missing)
        if missing:
            work = Work(folder, name, job.service, job.limits, job.is_coco)
            with _told(made, resumed, started, progress):
                ENGINES[job.engine](work, missing, job.engine_options)
            why = failure.told()
            if why is not None:
                raise BulkError(why)
        failed = _check(made)
        if job.is_coco:
            coco.write(made, os.path.abspath(job.output))
    return Report(made.items, failed, time.monotonic() - started, resumed)


def _import_needed(engine: str) -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise BulkError("pyarrow is not installed; install it with: pip install 'saccade[bulk]'") from None
    check_installed(engine)


def _make_folder(job: Job, folder: str) -> None:
    if job.is_coco and os.path.isdir(job.output):
        raise BulkError(f"{job.output} is a folder; expected the name of a file for results as COCO, or another folder")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise BulkError(f"{folder} cannot be made: {error.strerror}; name a folder that can be written") from error


def _plan(job: Job, folder: str, name: str) -> tuple[plan.Plan, plan.Failure]:
    """Makes or reads the plan, and begins the run `name`."""
    try:
        failure = plan.begin(folder, name)
        return plan.make(folder, job.inputs, job.question, job.shard_items, job.columns), failure
    except OSError as error:
        if is_disk_full(error):
            raise not_written("the plan", folder, error) from error
        raise BulkError(
            f"the inputs cannot be listed, or the plan cannot be written to {folder}: {error}; mend that, and repeat "
            "the command"
        ) from error


@contextmanager
def _told(
    made: plan.Plan, before: int, started: float, progress: Callable[[Progress], None]
) -> Iterator[None]:
    """Reports the progress every second. It is read from the output, as the parts may be written on other machines."""
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(_PROGRESS_SECONDS):
            try:
                done = made.items - sum(entry.items for entry in made.missing())
            except OSError:
                # A worker that cannot write to the folder either says why.
                continue
            progress(Progress(made.items, done, before, time.monotonic() - started))

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()


def _check(made: plan.Plan) -> int:
    """Counts the output's rows. Every input must have one. Returns the number of rows with an error."""
    import pyarrow.compute
    import pyarrow.parquet

    failed = 0
    for entry in made.entries:
        path = made.part(entry.id)
        try:
            codes = pyarrow.parquet.read_table(path, columns=["error_code"]).column("error_code")
        except (OSError, pyarrow.ArrowException) as error:
            raise BulkError(f"{path} cannot be read ({error}); delete it, and repeat the command") from error
        if len(codes) != entry.items:
            raise BulkError(f"{path} has {len(codes)} rows; expected {entry.items}; delete it, and repeat the command")
        failed += len(codes) - codes.null_count
    return failed

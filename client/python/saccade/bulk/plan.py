"""The plan of a job: which shards there are and what is asked of the model. It lies beside the output, so that a job that
was interrupted goes on where it stopped, with the same inputs and the same options."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
from collections.abc import Iterator
from typing import Any

from saccade.bulk import sources
from saccade.bulk.failures import BulkError, not_written

# Counts up when the columns of the output change: the parts of one job have the same.
_FORMAT = 2
# Start of the names of the files that say why a run failed.
_FAILURE = "failure"


@dataclasses.dataclass(frozen=True)
class Question:
    """What is asked of the model for each input. It must not change while a job runs."""

    model: str
    version: int = 0
    score_threshold: float | None = None
    top_k: int = 0
    masks: bool = True
    priority: int = -100
    timeout: float = 60.0


@dataclasses.dataclass(frozen=True)
class Entry:
    """Where a shard stands in the plan. Small, whatever the shard's size, so that engines can pass it around."""

    id: int
    items: int
    offset: int
    length: int


class Plan:
    """The plan in the folder of a job, which all workers must see under the same path."""

    def __init__(self, folder: str, question: Question, items: int, entries: list[Entry]) -> None:
        self.folder = folder
        self.question = question
        self.items = items
        self.entries = entries

    def part(self, shard_id: int) -> str:
        return os.path.join(self.folder, f"part-{shard_id:06}.parquet")

    def missing(self) -> list[Entry]:
        there = set(os.listdir(self.folder))
        return [entry for entry in self.entries if os.path.basename(self.part(entry.id)) not in there]

    def shard(self, entry: Entry) -> sources.Shard:
        with _readable(self.folder), open(_shards_file(self.folder), "rb") as file:
            file.seek(entry.offset)
            found: sources.Shard = json.loads(file.read(entry.length))
        return found


def _job_folder(folder: str) -> str:
    # Readers of Parquet folders skip names that start with an underscore.
    return os.path.join(folder, "_job")


def _shards_file(folder: str) -> str:
    return os.path.join(_job_folder(folder), "shards.jsonl")


def _plan_file(folder: str) -> str:
    return os.path.join(_job_folder(folder), "plan.json")


def scratch(folder: str) -> str:
    """Returns the folder for files that are not finished. It is on the same file system as the output."""
    return os.path.join(_job_folder(folder), "unfinished")


class Failure:
    """Why a run of a job failed, in a file that all its workers see: an engine would try a task that fails again
    elsewhere. The file has its full size from the start, so that a full disk can be told in it too. Every run has a file
    of its own, so that a worker that an earlier run left behind cannot end the next one."""

    _BYTES = 4096

    def __init__(self, folder: str, run: str) -> None:
        self._path = os.path.join(_job_folder(folder), f"{_FAILURE}-{run}")

    def make(self) -> None:
        with open(self._path, "wb") as file:
            file.write(bytes(self._BYTES))
            _to_disk(file)

    def tell(self, failure: BulkError) -> None:
        """Raises the failure itself if it cannot be written down. Does nothing if the run is over."""
        try:
            with open(self._path, "r+b") as file:
                file.write(str(failure).encode(errors="backslashreplace")[: self._BYTES - 1].ljust(self._BYTES, b"\0"))
                _to_disk(file)
        except FileNotFoundError:
            return
        except OSError:
            raise failure from None

    def told(self) -> str | None:
        try:
            with open(self._path, "rb") as file:
                return file.read(self._BYTES).rstrip(b"\0").decode(errors="replace") or None
        except FileNotFoundError:
            return f"this run is over, because {self._path} was removed, as a new run does; repeat the command"


def begin(folder: str, run: str) -> Failure:
    """Begins a run. Removes what earlier runs did not finish."""
    left = [os.path.join(scratch(folder), name) for name in os.listdir(scratch(folder))]
    left += [
        os.path.join(_job_folder(folder), name)
        for name in os.listdir(_job_folder(folder)) if name.startswith(_FAILURE)
    ]
    for path in left:
        # A worker that an earlier run left may remove its file itself.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    failure = Failure(folder, run)
    failure.make()
    return failure


@contextlib.contextmanager
def locked(folder: str) -> Iterator[None]:
    """Keeps a second job away from the folder. The lock ends with the process."""
    try:
        os.makedirs(scratch(folder), exist_ok=True)
        lock = open(os.path.join(_job_folder(folder), "lock"), "w")
    except OSError as error:
        raise not_written("the job's lock", folder, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BulkError(f"another job is writing to {folder}; wait for its end, or choose another folder") from None
        except OSError as error:
            raise BulkError(
                f"{folder} cannot be locked: {error.strerror or error}; name a folder on a disk that can lock files"
            ) from error
        yield


def make(
    folder: str, inputs: list[str], question: Question, shard_items: int, columns: sources.Columns
) -> Plan:
    """Makes the plan, or reads the one that an interrupted job left. The inputs are not listed again then, so every
    input of the first listing is in the output once."""
    described = {
        "format": _FORMAT,
        "inputs": [os.path.abspath(given) for given in inputs],
        "question": dataclasses.asdict(question),
        "shard_items": shard_items,
        "columns": dataclasses.asdict(columns),
    }
    if os.path.exists(_plan_file(folder)):
        _check_same(folder, described)
        return read(folder)
    strangers = [name for name in os.listdir(folder) if not name.startswith("_")]
    if strangers:
        raise BulkError(f"{folder} is not empty ({strangers[0]} is in it); name a new folder")
    unfinished = _shards_file(folder) + ".new"
    items = count = 0
    with open(unfinished, "w", encoding="utf-8") as file:
        for shard in sources.shards(inputs, shard_items, columns):
            file.write(json.dumps(shard) + "\n")
            items, count = items + shard["items"], count + 1
        _to_disk(file)
    os.replace(unfinished, _shards_file(folder))
    # The plan counts as made when this file is there.
    with open(_plan_file(folder) + ".new", "w", encoding="utf-8") as file:
        json.dump({**described, "items": items, "shards": count}, file, indent=1)
        _to_disk(file)
    os.replace(_plan_file(folder) + ".new", _plan_file(folder))
    return read(folder)


def _to_disk(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


@contextlib.contextmanager
def _readable(folder: str) -> Iterator[None]:
    """Raises BulkError if a file of the plan cannot be read, or is not what `make` has written."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BulkError(f"the plan in {folder} cannot be read ({error}); delete the folder, and start again") from None


def _load(folder: str) -> dict[str, Any]:
    with _readable(folder), open(_plan_file(folder), encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


def _check_same(folder: str, described: dict[str, Any]) -> None:
    """Rejects options that differ from those of the job whose parts lie in the folder."""
    before = _load(folder)
    for name, value in described.items():
        if before.get(name) != json.loads(json.dumps(value)):
            raise BulkError(
                f"{folder} holds a job with other {name.replace('_', ' ')}: {before.get(name)}, now {value}; "
                "repeat the command as it was, or name a new folder"
            )


def read(folder: str) -> Plan:
    described = _load(folder)
    entries, offset = [], 0
    with _readable(folder):
        question, items, shards = Question(**described["question"]), described["items"], described["shards"]
        with open(_shards_file(folder), "rb") as file:
            for line in file:
                # Only the numbers are kept; a worker reads its shard when it needs it.
                shard = json.loads(line)
                entries.append(Entry(shard["id"], shard["items"], offset, len(line)))
                offset += len(line)
    if len(entries) != shards:
        raise BulkError(
            f"the plan in {folder} has {len(entries)} shards; expected {shards}; delete the folder, and start again"
        )
    return Plan(folder, question, items, entries)

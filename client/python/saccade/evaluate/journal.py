"""The answers of an evaluation, in a file that grows by a line with each of them. After a crash or an interruption the same
command goes on with the samples that have no line."""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
from typing import IO, Any

from saccade.evaluate.dataset import Record
from saccade.evaluate.failures import EvaluateError

_FORMAT = 1


class Journal:
    """Its first line says what is evaluated. Used from one thread; locked against a second evaluation."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.path = folder / "answers.jsonl"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file: IO[str] = open(self.path, "a+", encoding="utf-8")
        except OSError as error:
            raise EvaluateError(f"{self.path} cannot be opened: {error.strerror}; name another folder with -o") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise EvaluateError(f"another evaluation is writing to {folder}; wait for its end, or name another folder "
                                "with -o") from None
        self.records: dict[str, Record] = {}
        self._described: dict[str, Any] | None = None
        self._read()

    def _read(self) -> None:
        """Reads the lines. A last line without an end was being written when the process ended, and is cut off."""
        self._file.seek(0)
        content = self._file.read()
        whole = content[: content.rfind("\n") + 1]
        if whole != content:
            os.truncate(self.path, len(whole.encode()))
        try:
            for number, line in enumerate(whole.splitlines()):
                entry = json.loads(line)
                if number == 0:
                    self._described = dict(entry)
                else:
                    self.records[entry["key"]] = entry["record"]
        except (ValueError, KeyError, TypeError) as error:
            raise EvaluateError(f"{self.path} is damaged ({error!r}); delete it, and start again") from None

    @property
    def version(self) -> int:
        """The model's version that answered so far; 0 if none has."""
        return int(self._described["version"]) if self._described else 0

    def begin(self, described: dict[str, Any]) -> None:
        """Writes what is evaluated, or checks that it is the same as before."""
        now = json.loads(json.dumps({"format": _FORMAT, **described}))
        if self._described is None:
            self._write(now)
            self._described = now
            return
        for name, value in now.items():
            before = self._described.get(name)
            if before != value:
                raise EvaluateError(
                    f"{self.path} belongs to an evaluation with another {name.replace('_', ' ')}: {before}, now {value}; "
                    "repeat the command as it was, or name another folder with -o"
                )

    def add(self, key: str, record: Record) -> None:
        self.records[key] = record
        self._write({"key": key, "record": record})

    def _write(self, entry: dict[str, Any]) -> None:
        try:
            self._file.write(json.dumps(entry, allow_nan=False) + "\n")
            self._file.flush()
        except OSError as error:
            raise EvaluateError(f"{self.path} cannot be written: {error.strerror}; make room, and repeat the command: it "
                                "goes on where it stopped") from None

    def close(self) -> None:
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError:
            pass  # told by the write that failed, or by the next run, which reads what is there
        self._file.close()

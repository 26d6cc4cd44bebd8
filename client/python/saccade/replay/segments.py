"""Reads the folder that a daemon has written with --capture."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import struct
import zlib
from typing import Any, BinaryIO, Iterator

from saccade.replay import zstd
from saccade.replay.failures import ReplayError

MAGIC = b"saccade capture 1\n"
_HEAD = struct.Struct("<II")
_LENGTH = struct.Struct("<I")
# More than any message and its answer.
_MAX_RECORD = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class Captured:
    """A call of a capture. Without pixels, request and answer are empty."""

    facts: dict[str, Any]
    request: bytes
    answer: bytes

    @property
    def has_bodies(self) -> bool:
        return self.facts["pixels"] == "full"

    @property
    def arrival(self) -> float:
        """Seconds since the epoch."""
        return self.facts["arrival_ns"] / 1e9

    def __getattr__(self, name: str) -> Any:
        try:
            return self.facts[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclasses.dataclass(frozen=True)
class Damage:
    """Bytes of a segment that are no calls."""

    file: str
    offset: int
    bytes: int
    why: str

    def __str__(self) -> str:
        return f"{self.file}: {self.why} at byte {self.offset:,}; {self.bytes:,} bytes are left out"


_REQUIRED: dict[str, type | tuple[type, ...]] = {
    "arrival_ns": int, "transport": str, "target": str, "headers": dict, "answer_headers": dict, "model": str,
    "version": int, "id": str, "status": str, "message": str, "timings_us": dict, "pixels": str, "request_bytes": int,
    "answer_bytes": int,
}


def _record(content: bytes) -> Captured:
    if len(content) < _LENGTH.size:
        raise ValueError("is a record without its length")
    (length,) = _LENGTH.unpack_from(content)
    bodies = _LENGTH.size + length
    try:
        facts = json.loads(content[_LENGTH.size : bodies])
    except ValueError:
        raise ValueError("is a record whose JSON cannot be read") from None
    if not isinstance(facts, dict):
        raise ValueError("is a record whose JSON is no object")
    for name, kind in _REQUIRED.items():
        if not isinstance(facts.get(name), kind) or isinstance(facts.get(name), bool):
            raise ValueError(f"is a record whose {name} is missing or of another kind")
    if facts["pixels"] != "full":
        return Captured(facts, b"", b"")
    middle = bodies + facts["request_bytes"]
    if min(facts["request_bytes"], facts["answer_bytes"]) < 0 or middle + facts["answer_bytes"] != len(content):
        raise ValueError("is a record whose bodies are not as long as it says")
    return Captured(facts, content[bodies:middle], content[middle:])


def read_segment(file: BinaryIO, name: str, damages: list[Damage]) -> Iterator[Captured]:
    """The calls of a segment, up to the first damage, which is added to `damages`. A frame that is whole but holds no
    record is left out alone."""
    file.seek(0, 2)
    size = file.tell()
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        damages.append(Damage(name, 0, size, "is no capture of this version"))
        return
    while (offset := file.tell()) < size:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            damages.append(Damage(name, offset, size - offset, "is cut"))
            return
        length, total = _HEAD.unpack(head)
        if offset + _HEAD.size + length > size:
            damages.append(Damage(name, offset, size - offset, "is cut or has a damaged length"))
            return
        packed = file.read(length)
        if zlib.crc32(packed) != total:
            damages.append(Damage(name, offset, size - offset, "has a damaged frame"))
            return
        try:
            yield _record(zstd.decompress(packed, _MAX_RECORD))
        except ValueError as error:
            damages.append(Damage(name, offset, _HEAD.size + length, str(error)))


def read_folder(folder: pathlib.Path, damages: list[Damage]) -> Iterator[Captured]:
    """The calls of all segments, oldest first. Raises ReplayError if there are none to read."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.name.startswith("capture-") and path.suffix == ".saccade")
    except OSError as error:
        raise ReplayError(f"{folder} cannot be read: {error.strerror}; name the folder of --capture") from None
    if not paths:
        raise ReplayError(f"{folder} has no capture-*.saccade; name the folder that a daemon wrote with --capture")
    for path in paths:
        try:
            with open(path, "rb") as file:
                yield from read_segment(file, path.name, damages)
        except FileNotFoundError:
            # The daemon has deleted it meanwhile.
            continue
        except OSError as error:
            raise ReplayError(f"{path} cannot be read: {error.strerror}") from None

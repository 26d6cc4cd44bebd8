"""Lists the inputs of a job, cut into shards, and reads the inputs of a shard.

A shard is the unit of work and of output: the inputs of one shard become one Parquet file. It is a JSON object, so that
it can be written to the plan and sent to another machine.
"""

from __future__ import annotations

import codecs
import dataclasses
import os
import posixpath
import tarfile
from collections.abc import Iterator
from typing import Any, BinaryIO

from saccade.bulk.failures import BulkError

PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp")
CLIPS = (".mp4", ".mov", ".mkv", ".webm", ".avi")
# A file with more bytes fits no message of a daemon, so it is not read.
MAX_ITEM_BYTES = 64 << 20
# Rows that are read from a Parquet file at a time: fewer if they have more bytes than this together.
_ROWS_AT_ONCE = 64
_BYTES_AT_ONCE = 8 << 20
# Bytes of a Parquet file that are read at a time: without such a buffer it is a whole column of a row group.
_BUFFER_BYTES = 1 << 20

Shard = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Item:
    """One input. `data` is None if it could not be read; `error` says why."""

    index: int
    key: str
    data: bytes | None
    error: str | None = None


@dataclasses.dataclass(frozen=True)
class Columns:
    """Which columns of Parquet files are read. None selects the only column of bytes, and the row number as key."""

    data: str | None = None
    key: str | None = None


def shards(inputs: list[str], shard_items: int, columns: Columns) -> Iterator[Shard]:
    """Lists the inputs in a fixed order. Raises BulkError for an input that is not there or has nothing to send."""
    first, number = 0, 0
    for given in inputs:
        before = first
        for content in _contents(os.path.abspath(given), shard_items, columns):
            yield {"id": number, "first": first, **content}
            first += content["items"]
            number += 1
        if first == before:
            raise BulkError(
                f"{given} has no inputs; expected a folder with {' '.join(PICTURES + CLIPS)} .tar .parquet files, "
                "one such file, or a .txt file with one path per line"
            )


def _contents(path: str, shard_items: int, columns: Columns) -> Iterator[Shard]:
    lower = path.lower()
    if os.path.isdir(path):
        yield from _folder(path, shard_items, columns)
    elif not os.path.isfile(path):
        raise BulkError(f"{path} is not there; expected a folder or a file")
    elif lower.endswith(".txt"):
        _check_utf8(path)
        with open(path, encoding="utf-8", errors="surrogateescape") as lines:
            names = (line.rstrip("\r\n") for line in lines)
            yield from _files(os.path.dirname(path), (name for name in names if name), shard_items)
    elif not lower.endswith(PICTURES + CLIPS + (".tar", ".parquet")):
        raise BulkError(
            f"{path} is of a kind that is not known; expected a picture, a clip, .tar, .parquet, or .txt with one "
            "path per line"
        )
    else:
        yield from _file(path, shard_items, columns)


def _check_utf8(path: str) -> None:
    with open(path, "rb") as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise BulkError(f"{path} is UTF-16; expected UTF-8; convert it, for example with: iconv -f UTF-16 -t UTF-8")


def _folder(root: str, shard_items: int, columns: Columns) -> Iterator[Shard]:
    def loose() -> Iterator[str]:
        for path in _walk(root):
            if path.lower().endswith(PICTURES + CLIPS):
                yield os.path.relpath(path, root)

    yield from _files(root, loose(), shard_items)
    for path in _walk(root):
        if path.lower().endswith((".tar", ".parquet")):
            yield from _file(path, shard_items, columns)


def _walk(folder: str) -> Iterator[str]:
    """Yields the regular files below `folder` by name. Names that start with a dot are left out."""
    with os.scandir(folder) as entries:
        found = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)
    for entry in found:
        # Links to folders are not followed, since they can lead in a circle.
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path)
        elif entry.is_file():
            yield entry.path


def _file(path: str, shard_items: int, columns: Columns) -> Iterator[Shard]:
    if path.lower().endswith(".tar"):
        yield from _tar(path, shard_items)
    elif path.lower().endswith(".parquet"):
        yield from _parquet(path, columns)
    else:
        yield from _files(os.path.dirname(path), iter([os.path.basename(path)]), shard_items)


def _files(root: str, names: Iterator[str], shard_items: int) -> Iterator[Shard]:
    for group in _groups(names, shard_items):
        yield {"kind": "files", "root": root, "names": group, "items": len(group)}


def _groups(values: Iterator[Any], size: int) -> Iterator[list[Any]]:
    group: list[Any] = []
    for value in values:
        group.append(value)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


# Where a member's bytes lie: offset, size, and why they cannot be read, if so. A text is the name that a link leads to.
_Place = Any
_SPARSE = "is stored as a sparse file, which is not read; write the archive without tar's option --sparse"
# Links that lead to each other, before they are given up.
_MOST_LINKS = 40


def _tar(path: str, shard_items: int) -> Iterator[Shard]:
    def members() -> Iterator[_Place]:
        # Only the targets of links are kept. If there are any, the headers are read again to find them.
        targets = set()
        for member in _headers(path):
            if member.issym() or member.islnk():
                targets.add(_target(member))
            elif member.isreg() and _is_input(member):
                yield member.name, *_place(member)
        if targets:
            yield from _links(path, targets)

    try:
        for group in _groups(members(), shard_items):
            yield {"kind": "tar", "path": path, "members": group, "items": len(group)}
    except tarfile.TarError as error:
        raise BulkError(f"{path} is not a readable, uncompressed tar file ({error}); unpack it, or repair it") from None


def _headers(path: str) -> Iterator[tarfile.TarInfo]:
    # "r:" refuses compressed archives: their members cannot be read without all that precedes them.
    with tarfile.open(path, "r:") as archive:
        for member in archive:
            yield member
            # tarfile keeps every header that it has read.
            archive.members = []
        _check_end(path, archive)


def _is_input(member: tarfile.TarInfo) -> bool:
    return member.name.lower().endswith(PICTURES + CLIPS)


def _place(member: tarfile.TarInfo) -> _Place:
    return (member.offset_data, member.size) + ((_SPARSE,) if member.issparse() else ())


def _target(link: tarfile.TarInfo) -> str:
    """The name that a link leads to. A hard link has it from the archive's root."""
    return posixpath.normpath(
        link.linkname if link.islnk() else posixpath.join(posixpath.dirname(link.name), link.linkname)
    )


def _links(path: str, targets: set[str]) -> Iterator[_Place]:
    """Yields the links with the names of inputs, at the places of their targets."""
    places: dict[str, _Place] = {}
    found: list[tuple[str, str, _Place]] = []
    for member in _headers(path):
        place = _place(member) if member.isreg() else None
        if member.islnk():
            # Its target precedes it. A later member of that name is another file.
            place = places.get(_target(member))
        elif member.issym():
            place = _target(member)
        if (member.issym() or member.islnk()) and _is_input(member):
            found.append((member.name, member.linkname, place))
        if (name := posixpath.normpath(member.name)) in targets:
            places[name] = place
    for name, target, place in found:
        for _ in range(_MOST_LINKS):
            if isinstance(place, str):
                place = places.get(place)
        if not isinstance(place, tuple):
            why = f"is a link to {_key(target)}, which is no file of the archive"
            place = (0, 0, f"{why}; write the archive with tar's option --dereference")
        yield name, *place


def _check_end(path: str, archive: tarfile.TarFile) -> None:
    """Raises BulkError if tarfile has stopped before the archive's end: it takes a damaged header for that, and of
    archives that were joined it reads the first."""
    file = archive.fileobj
    assert file is not None
    file.seek(archive.offset)
    mark = file.read(tarfile.BLOCKSIZE)
    if any(mark):
        raise BulkError(f"{path} is damaged at byte {archive.offset:,}; write it again, or unpack what is left of it")
    while rest := file.read(1 << 20):
        if rest.count(0) != len(rest):
            raise BulkError(f"{path} goes on behind its end at byte {archive.offset:,}; unpack it, or write it again")
    if not mark:
        raise BulkError(f"{path} has no end mark, so members may be missing; write it again, or unpack it")


def _key(name: str) -> str:
    """The name as text: bytes that are no UTF-8 become \\xNN."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _parquet(path: str, columns: Columns) -> Iterator[Shard]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            data = _data_column(path, file.schema_arrow, columns.data)
            if columns.key is not None and columns.key not in file.schema_arrow.names:
                raise BulkError(f"{path} has no column {columns.key}; it has {', '.join(file.schema_arrow.names)}")
            row = 0
            for group in range(file.metadata.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                if rows:
                    yield {"kind": "parquet", "path": path, "group": group, "row": row, "data": data,
                           "key": columns.key, "items": rows}
                row += rows
    except (pyarrow.ArrowException, OSError) as error:
        raise BulkError(f"{path} is not a readable Parquet file: {error}") from None


def _is_bytes(kind: Any) -> bool:
    import pyarrow.types as kinds

    if kinds.is_struct(kind):
        return any(field.name == "bytes" and _is_bytes(field.type) for field in kind)
    return bool(kinds.is_binary(kind) or kinds.is_large_binary(kind))


def _data_column(path: str, schema: Any, asked: str | None) -> str:
    """Returns the column that holds the encoded pictures: bytes, or a struct with a field `bytes`."""
    found = [field.name for field in schema if _is_bytes(field.type)]
    if asked is not None and asked in found:
        return asked
    if asked is None and len(found) == 1:
        return str(found[0])
    wanted = "one column of bytes, named with --column" if asked is None else f"a column {asked} of bytes"
    raise BulkError(f"{path}: expected {wanted}; its columns of bytes are: {', '.join(found) or 'none'}")


def read(shard: Shard) -> Iterator[Item]:
    """Reads the inputs of a shard one after the other. An input that cannot be read is yielded with its error. Raises
    BulkError for a tar or Parquet file that is gone."""
    if shard["kind"] == "files":
        yield from _read_files(shard)
        return
    try:
        file = open(shard["path"], "rb")
    except OSError as error:
        raise BulkError(f"{shard['path']} cannot be read ({error.strerror}); restore it, and repeat the command") from None
    with file:
        yield from _read_tar(shard, file) if shard["kind"] == "tar" else _read_parquet(shard, file)


def _read_files(shard: Shard) -> Iterator[Item]:
    for place, name in enumerate(shard["names"]):
        index, data = shard["first"] + place, None
        try:
            path = os.path.join(shard["root"], name)
            size = os.path.getsize(path)
            error = _too_large(size)
            if error is None:
                with open(path, "rb") as file:
                    data = file.read()
        except OSError as failure:
            error = f"the file cannot be read: {failure.strerror or failure}"
        # Python takes no NUL in a path, which a list may have.
        except ValueError as failure:
            error = f"the name is not a path: {failure}"
        yield Item(index, _key(name), data, error)


def _too_large(size: int) -> str | None:
    return f"has {size:,} bytes; expected at most {MAX_ITEM_BYTES:,}" if size > MAX_ITEM_BYTES else None


def _read_tar(shard: Shard, file: BinaryIO) -> Iterator[Item]:
    name = os.path.basename(shard["path"])
    for place, (member, offset, size, *why) in enumerate(shard["members"]):
        data, error = None, why[0] if why else _too_large(size)
        if error is None:
            try:
                file.seek(offset)
                data = file.read(size)
            except OSError as failure:
                error = f"{name} cannot be read: {failure.strerror or failure}"
            else:
                if len(data) != size:
                    data, error = None, f"{name} ends in the middle of this member"
        yield Item(shard["first"] + place, _key(f"{name}/{member}"), data, error)


def _read_parquet(shard: Shard, file: BinaryIO) -> Iterator[Item]:
    import pyarrow

    name, done = os.path.basename(shard["path"]), 0
    try:
        for key, data in _parquet_rows(shard, file):
            error = "the row has no bytes" if data is None else _too_large(len(data))
            named = f"{name}/{shard['row'] + done}" if key is None else key
            yield Item(shard["first"] + done, named, None if error else data, error)
            done += 1
    except (pyarrow.ArrowException, OSError) as failure:
        # The pages behind the damaged one cannot be found.
        for row in range(done, shard["items"]):
            yield Item(shard["first"] + row, f"{name}/{shard['row'] + row}", None, f"{name} is damaged: {failure}")


def _parquet_rows(shard: Shard, file: BinaryIO) -> Iterator[tuple[str | None, bytes | None]]:
    import pyarrow.parquet

    wanted = [shard["data"]] + ([shard["key"]] if shard["key"] is not None else [])
    opened = pyarrow.parquet.ParquetFile(file, buffer_size=_BUFFER_BYTES)
    group = opened.metadata.row_group(shard["group"])
    row_bytes = max(1, group.total_byte_size // max(1, group.num_rows))
    at_once = max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // row_bytes))
    for batch in opened.iter_batches(at_once, row_groups=[shard["group"]], columns=wanted):
        keys = batch.column(shard["key"]) if shard["key"] is not None else None
        for place, made in enumerate(batch.column(shard["data"])):
            # Converted one by one, since that copies the bytes.
            value = made.as_py()
            yield (
                None if keys is None else str(keys[place].as_py()),
                value.get("bytes") if isinstance(value, dict) else value,
            )

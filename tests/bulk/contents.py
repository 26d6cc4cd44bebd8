"""Inputs for the tests of bulk jobs, and what their output must be."""

import collections
import io
import tarfile

import numpy
import pyarrow
import pyarrow.parquet
from PIL import Image


def picture(seed):
    random = numpy.random.default_rng(seed)
    content = io.BytesIO()
    Image.fromarray(random.integers(0, 256, (32, 48, 3), numpy.uint8)).save(content, "JPEG")
    return content.getvalue()


def write_files(folder, count, damaged=()):
    """Pictures in a folder; those with the numbers in `damaged` are no pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"{number:05}.jpg").write_bytes(b"no picture" if number in damaged else picture(number))
    return folder


def write_tar(path, contents):
    with tarfile.open(path, "w") as archive:
        for name, content in contents:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def write_parquet(path, columns, row_group_size):
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=row_group_size)
    return path


def rows_of(folder):
    return pyarrow.parquet.read_table(folder).to_pylist()


def check_each_once(rows, count):
    """Nothing is missing and nothing is there twice."""
    found = collections.Counter(row["index"] for row in rows)
    assert sorted(found) == list(range(count))
    assert set(found.values()) == {1}

"""A job whose output's disk fills in the middle, on any engine."""

import os
import socket

import pytest

from contents import check_each_once, rows_of, write_files
from daemon_test import job_of
from saccade.bulk import BulkError, plan, run

# A part takes some kilobytes: the room is for some of the parts, and not for all.
ROOM = 128 << 10
INPUTS, SHARD = 600, 10


def check_full_disk(tmp_path, service, disk, engine):
    """The job ends with the name of the disk and without a broken part. Once there is room, it goes on."""
    inputs = write_files(tmp_path / "in", INPUTS, damaged={7, 123, 599})
    output = disk.folder / "out"
    job = job_of(tmp_path, service, inputs, output=str(output), engine=engine)
    disk.leave(ROOM)
    with pytest.raises(BulkError) as failure:
        run(job)
    assert str(failure.value) == (
        f"a part cannot be written to {output}: No space left on device on the disk at {disk.folder} of "
        f"{socket.gethostname()}; make room there, and repeat the command: it goes on where it stopped")
    written = sorted(output.glob("part-*"))
    assert 0 < len(written) < INPUTS // SHARD
    for path in written:
        assert len(rows_of(path)) == SHARD
    # Nothing that is not finished takes room, not even in files that were removed and are open.
    assert os.listdir(plan.scratch(str(output))) == []
    assert disk.size() - disk.free() == disk.used_by_files()

    before = {path.name: path.stat().st_ino for path in written}
    disk.make_room()
    report = run(job)
    assert (report.inputs, report.failed, report.resumed) == (INPUTS, 3, SHARD * len(written))
    rows = rows_of(output)
    check_each_once(rows, INPUTS)
    assert [row["index"] for row in rows if row["error_code"]] == [7, 123, 599]
    assert {name: (output / name).stat().st_ino for name in before} == before

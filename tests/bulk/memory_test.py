"""The memory of a job does not grow with its inputs."""

import os
import subprocess
import sys

from contents import check_each_once, rows_of, write_parquet


def most_memory(tmp_path, stand_in, count):
    """Returns the bytes that a job with so many inputs holds at most."""
    path = write_parquet(tmp_path / f"{count}.parquet", {"image": [b"x" * (1 + n % 7) for n in range(count)]}, 200)
    output = tmp_path / f"out{count}"
    command = [sys.executable, "-m", "saccade.bulk.command", str(path), "-o", str(output), "--model", "any", "--url", stand_in.address]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    assert running.returncode == 0
    check_each_once(rows_of(output), count)
    return used.ru_maxrss << 10


def test_memory_is_flat(tmp_path, stand_in):
    few, many = most_memory(tmp_path, stand_in, 2000), most_memory(tmp_path, stand_in, 30_000)
    # An input that stayed in memory with its row would take more than a kilobyte.
    assert many - few < 28_000 * 1024, (few, many)

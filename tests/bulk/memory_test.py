"""The memory of a job does not grow with its inputs."""

import os
import subprocess
import sys
import time

from contents import check_each_once, rows_of, write_parquet
from tests.long_form import LONG

MEBIBYTE = 1 << 20


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
    """SACCADE_LONG=1 sends 200,000 inputs."""
    count = 200_000 if LONG else 30_000
    started = time.monotonic()
    few, many = most_memory(tmp_path, stand_in, 2000), most_memory(tmp_path, stand_in, count)
    print(f"2,000 inputs: {few / MEBIBYTE:.1f} MiB, {count:,}: {many / MEBIBYTE:.1f} MiB, in {time.monotonic() - started:.0f} s")
    # An input that stayed in memory with its row would take more than a kilobyte.
    assert many - few < max(28_000, (count - 2000) // 4) * 1024, (few, many)

"""Reloads models repeatedly under load: no request is lost, and memory does not grow. SACCADE_SOAK_CYCLES sets the
number of cycles. `./dev soak` is longer and has more kinds of load."""

import itertools
import os

from harness import eventually
from lifecycle_test import Load
from tiny_models import TinyModel, write_config, write_model

CYCLES = int(os.environ.get("SACCADE_SOAK_CYCLES", "20"))
# Threads, caches and the allocator's pools grow during the first cycles: over 700 cycles, resident memory grew by 6.5
# MiB until the 250th and by 0.03 MiB afterwards.
WARM_UP = max(10, CYCLES * 5 // 4)
MAX_GROWTH = 0.02


def test_reloading_loses_no_request_and_no_memory(start, tmp_path):
    network = TinyModel(classes=5, seed=3)
    write_model(tmp_path / "models", "tiny", network, max_batch_size=2)
    daemon = start(
        tmp_path / "models", "--model-control-mode=poll", "--repository-poll-secs=0.05", "--warm-up-seconds=0"
    ).await_ready()
    freed = itertools.count(1)

    def reload():
        number = next(freed)
        # Writes a different file each time; its content hardly matters.
        write_config(tmp_path / "models" / "tiny", network, max_batch_size=2 + number % 2)
        eventually(lambda: daemon.log().count("model freed") >= number, f"reload {number} was done")

    with Load(daemon) as load:
        for _ in range(WARM_UP):
            reload()
        before = daemon.resident_bytes()
        for _ in range(CYCLES):
            reload()
        after = daemon.resident_bytes()
    print(f"{CYCLES} reloads, {load.answered} answers: {before / 2**20:.1f} to {after / 2**20:.1f} MiB")
    assert not load.failures
    assert load.answered > CYCLES
    assert after < before * (1 + MAX_GROWTH)

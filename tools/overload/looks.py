"""Samples the daemon's memory and processor time periodically."""

import dataclasses
import pathlib
import re
import time

from tools.processor import processor_seconds
from tools.soak import measure


@dataclasses.dataclass(frozen=True)
class Look:
    seconds: float
    resident_mib: float
    # Processor time in seconds since the start: of the instance threads, of the decoding threads, and of all others,
    # which are mostly those of the connections and of the calls.
    computing: float
    decoding: float
    calling: float

    @property
    def used(self):
        return self.computing + self.decoding + self.calling


def look(process, begun):
    folder = pathlib.Path(f"/proc/{process}")
    by_kind = {"instance-": 0.0, "decode-": 0.0}
    for task in (folder / "task").iterdir():
        try:
            stat = (task / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):  # the thread has ended meanwhile
            continue
        for kind in by_kind:
            if f"({kind}" in stat:
                by_kind[kind] += processor_seconds(stat)
    computing, decoding = by_kind.values()
    used = processor_seconds((folder / "stat").read_text())
    resident = int(re.search(r"VmRSS:\s+(\d+) kB", (folder / "status").read_text())[1]) / 1024
    return Look(time.monotonic() - begun, resident, computing, decoding, max(0.0, used - computing - decoding))


class Looks(measure.Looks):
    """Takes one more sample at the end of the block."""

    def __init__(self, process, every):
        super().__init__(process, every, look)

    def __exit__(self, *_):
        super().__exit__()
        self._look()

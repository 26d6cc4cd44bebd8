"""Samples the daemon's resources periodically and computes their growth."""

import collections
import dataclasses
import os
import pathlib
import re
import statistics
import threading
import time


@dataclasses.dataclass(frozen=True)
class Look:
    seconds: float
    resident_mib: float
    allocated_mib: float
    threads: int
    descriptors: int


def look(process, begun, allocated):
    """Returns what the process holds now. `allocated` returns the bytes that the process has allocated and not freed."""
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return Look(
        time.monotonic() - begun,
        int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024,
        allocated() / 2**20,
        int(re.search(r"Threads:\s+(\d+)", status)[1]),
        len(os.listdir(f"/proc/{process}/fd")),
    )


class Looks:
    """Takes a sample every `every` seconds until the end of the block. `look` gets the process and the time when the
    block began."""

    def __init__(self, process, every, look, tell=lambda latest: None):
        self._process, self._every, self._tell, self._look_at = process, every, tell, look
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.made = []

    def __enter__(self):
        self._begun = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _look(self):
        self.made.append(self._look_at(self._process, self._begun))

    def _run(self):
        while not self._stop.is_set():
            self._look()
            self._tell(self.made[-1])
            self._stop.wait(self._every)


def by_minute(times, values):
    """Returns the middles and the medians of the minutes. A look that falls into a load sees two versions of a model;
    it hardly changes the median of its minute."""
    minutes = collections.defaultdict(list)
    for moment, value in zip(times, values):
        minutes[int(moment // 60)].append(value)
    return [60 * minute + 30 for minute in sorted(minutes)], [statistics.median(minutes[minute]) for minute in sorted(minutes)]


def slope(times, values):
    """The slope by least squares, in units per hour."""
    mean_time, mean = sum(times) / len(times), sum(values) / len(values)
    spread = sum((time_ - mean_time) ** 2 for time_ in times)
    return 3600 * sum((time_ - mean_time) * (value - mean) for time_, value in zip(times, values)) / spread


def plot(looks, settled, path):
    """Plots memory, threads and descriptors over minutes."""
    times = [one.seconds for one in looks]
    named = (("resident memory, MiB", "resident_mib"), ("allocated, MiB", "allocated_mib"), ("threads", "threads"), ("descriptors", "descriptors"))
    draw([(title, times, [getattr(one, name) for one in looks]) for title, name in named], settled, path)


def draw(panels, settled, path):
    """Draws each (title, seconds, values) in a panel of its own over the same minutes, as SVG."""
    width, height, left = 640, 120, 64
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + left + 20}" height="{len(panels) * (height + 50)}" '
             'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>']
    last = max(times[-1] for _, times, _ in panels)
    for row, (title, times, values) in enumerate(panels):
        top = row * (height + 50) + 26
        most = max(values) * 1.1 or 1
        points = " ".join(f"{left + width * time_ / last:.1f},{top + height * (1 - value / most):.1f}"
                          for time_, value in zip(times, values))
        begun = left + width * settled / last
        lines += [
            f'<text x="{left}" y="{top - 8}">{title}</text>',
            f'<path d="M{left},{top}V{top + height}H{left + width}" fill="none" stroke="#888"/>',
            f'<path d="M{begun:.1f},{top}V{top + height}" stroke="#bbb" stroke-dasharray="4"/>',
            f'<polyline points="{points}" fill="none" stroke="#1f6feb" stroke-width="1.5"/>',
            f'<text x="{left - 6}" y="{top + height}" text-anchor="end">0</text>',
            f'<text x="{left - 6}" y="{top + 10}" text-anchor="end">{most:.0f}</text>',
            f'<text x="{left + width}" y="{top + height + 16}" text-anchor="end">{last / 60:.0f} min</text>',
        ]
    path.write_text("\n".join([*lines, "</svg>"]) + "\n")

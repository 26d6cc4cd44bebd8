"""Compares tiles of the daemon with SAHI: how many objects both find, and how long they take.

Both use the demo's detector: SAHI its twin in PyTorch, and the daemon the same weights. Pictures are large sheets of scenes that the
detector was not trained on. Both get the picture as a JPEG file, see the same tiles of 128 pixels, and keep detections with a score of at
least 0.3. They take turns, picture after picture and each time another one first, so that other load on the machine affects all. Prints
recall and precision at an IoU of 0.5, and medians of the times.
"""

import argparse
import collections
import dataclasses
import datetime
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import sahi
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from harness import DEMO_REPOSITORY, Daemon  # noqa: E402
from tools.bench_server.page import machine  # noqa: E402
from tools.bench_tiles.sahis import Sahi  # noqa: E402
from tools.bench_tiles.served import Served  # noqa: E402
from tools.bench_tiles.sheets import TILE, matched, sheet, side_of, tiles_of  # noqa: E402
from tools.markdown import table  # noqa: E402

SCORE = 0.3
BATCH = 8  # tiles
# A quarter is near SAHI's default of a fifth; with a half, every object lies in some tile as a whole.
OVERLAPS = (TILE // 4, TILE // 2)
# What is required: recall within half a point of SAHI's best, in at most a third of the time of its fastest.
MAX_LOST, MAX_SHARE = 0.005, 1 / 3
SAHIS = {
    "SAHI, masks": {},
    "SAHI": {"masks": False},
    f"SAHI, {BATCH} tiles a pass": {"masks": False, "batch": BATCH},
    f"SAHI, {BATCH} tiles a pass, NMS": {
        "masks": False, "batch": BATCH, "postprocess_type": "NMS", "postprocess_match_metric": "IOU"},
}  # fmt: skip
OURS = {"Saccade, masks": "RLE", "Saccade": "NONE"}
HEAD = ["", "recall, %", "precision, %", "seconds a picture", "processor seconds a picture"]


@dataclasses.dataclass
class Tally:
    """What a candidate found in all pictures, the seconds that each took, and the processor seconds of all."""

    right: int = 0
    found: int = 0
    seconds: list[float] = dataclasses.field(default_factory=list)
    processor: float = 0.0

    def median(self) -> float:
        return statistics.median(self.seconds)


def compare(candidates: dict, pictures: int, scenes: int, seconds: float) -> tuple[dict[str, Tally], int]:
    """Returns what each candidate found, and how many objects there are. Begins no picture after `seconds`."""
    tallies = {name: Tally() for name in candidates}
    order = collections.deque(candidates.items())
    shown = 0
    small, _ = sheet(0, 1)
    for call in candidates.values():
        call(small)  # warms up
    end = time.monotonic() + seconds
    for index in range(pictures):
        if index > 0 and time.monotonic() > end:
            break
        file, truth = sheet(index, scenes)
        for name, call in order:
            processor, start = call.processor(), time.perf_counter()
            found = call(file)
            tally = tallies[name]
            tally.seconds.append(time.perf_counter() - start)
            tally.processor += call.processor() - processor
            tally.right += matched(found, truth)
            tally.found += len(found.classes)
        shown += len(truth.classes)
        order.rotate(1)
        print(f"{index + 1} of {pictures} pictures", file=sys.stderr, flush=True)
    return tallies, shown


def rows_of(tallies: dict[str, Tally], shown: int) -> list[list[str]]:
    return [
        [name, f"{100 * one.right / shown:.1f}", f"{100 * one.right / max(1, one.found):.1f}", f"{one.median():.2f}",
         f"{one.processor / len(one.seconds):.2f}"]
        for name, one in tallies.items()
    ]  # fmt: skip


def goals_of(overlap: int, tallies: dict[str, Tally], shown: int) -> list[list[str]]:
    lost = (max(tallies[name].right for name in SAHIS) - tallies["Saccade"].right) / shown
    share = tallies["Saccade"].median() / min(tallies[name].median() for name in SAHIS)
    with_masks = tallies["Saccade, masks"].median() / tallies["SAHI, masks"].median()
    reached = lambda value, most: "yes" if value <= most else "**no**"  # noqa: E731
    return [
        [f"points of recall below SAHI's best, overlap {overlap}", f"<= {100 * MAX_LOST:.1f}", f"{100 * lost:.1f}", reached(lost, MAX_LOST)],
        [f"of the time of SAHI's fastest, overlap {overlap}", f"<= {MAX_SHARE:.2f}", f"{share:.2f}", reached(share, MAX_SHARE)],
        [f"the same with masks, overlap {overlap}", f"<= {MAX_SHARE:.2f}", f"{with_masks:.2f}", reached(with_masks, MAX_SHARE)],
    ]  # fmt: skip


def page(arguments: argparse.Namespace, load: float, goals: list, parts: list) -> str:
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    side = side_of(arguments.scenes)
    lines = [
        "# Tiles beside SAHI", "", f"    ./dev bench tiles {' '.join(sys.argv[1:])}", "",
        f"Written by that command on {datetime.date.today()}, commit {commit}, on {machine()}.",
        f"Load average: {load:.1f} when it began, {os.getloadavg()[0]:.1f} when it ended, of which this benchmark is about {arguments.threads}.",
        f"SAHI {sahi.__version__} with PyTorch {torch.__version__.partition('+')[0]}. Pictures of {side} x {side} pixels in tiles of {TILE}. "
        f"Threads of each candidate: {arguments.threads}. The daemon's",
        "processor time includes that of its decode workers and client.", "",
        "## What was to be reached", "", table(["", "asked", "measured", "reached"], goals), "",
    ]  # fmt: skip
    for overlap, shown, tallies in parts:
        lines += [f"## Tiles that share {overlap} pixels", "",
                  f"{tiles_of(arguments.scenes, overlap)} tiles a picture, {len(tallies['SAHI'].seconds)} pictures, {shown} objects in all.", "",
                  table(HEAD, rows_of(tallies, shown)), ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench tiles", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=8, help="number of pictures for each overlap (default 8)")
    parser.add_argument("--scenes", type=int, default=6, help="along each side of a picture (default 6)")
    parser.add_argument("--overlap", type=int, action="append", metavar="PIXELS", help=f"may be repeated (default {OVERLAPS[0]} and {OVERLAPS[1]})")
    parser.add_argument("--minutes", type=float, default=60, help="begin no further picture of an overlap after so long (default 60)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each candidate (default: all cores)")
    parser.add_argument("--markdown", type=pathlib.Path, help="the file to write")
    arguments = parser.parse_args()
    os.environ.setdefault("SACCADE_BUILD_DIR", str(ROOT / "build" / "release"))
    torch.set_num_threads(arguments.threads)
    load = os.getloadavg()[0]
    goals, parts = [], []
    with tempfile.TemporaryDirectory() as folder, Daemon(
        DEMO_REPOSITORY, f"--threads-per-instance={arguments.threads}", "--model-control-mode=explicit", "--load-model=detector",
        log_folder=folder,
    ) as daemon:
        daemon.await_ready()
        with daemon.vision() as vision:
            for overlap in arguments.overlap or OVERLAPS:
                candidates = {name: Sahi(overlap, SCORE, **options) for name, options in SAHIS.items()}
                candidates |= {name: Served(daemon, vision, overlap, SCORE, masks) for name, masks in OURS.items()}
                tallies, shown = compare(candidates, arguments.pictures, arguments.scenes, 60 * arguments.minutes)
                parts.append((overlap, shown, tallies))
                goals += goals_of(overlap, tallies, shown)
    text = page(arguments, load, goals, parts)
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text)


if __name__ == "__main__":
    main()

"""Sends ten times the daemon's capacity, reports the outcomes of the calls, and checks them against bounds.

Prints the outcomes beside the daemon's peak, and fails if a bound was missed. Called by ./dev overload, which has built
everything."""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import sys
import tempfile

from tools.overload.load import LoadFailed
from tools.overload.play import play
from tools.overload.report import Found
from tools.soak.samples import ROOT

LOOK_SECONDS = 2
STEP_SECONDS = 20


def main():
    parser = argparse.ArgumentParser(prog="./dev overload", description=__doc__.split("\n")[0])
    parser.add_argument("minutes", nargs="?", type=float, default=10, help="duration in minutes (default 10)")
    parser.add_argument("--step-seconds", type=float, default=STEP_SECONDS,
                        help=f"how long each rate is tried to find the peak (default {STEP_SECONDS})")
    parser.add_argument("--json", type=pathlib.Path, help="file for all measurements")
    parser.add_argument("--markdown", type=pathlib.Path, help="file for the report; its plot is written beside it")
    flags = parser.parse_args()
    if flags.minutes < 0.2 or flags.step_seconds < 1:
        parser.error("expected at least 0.2 minutes, and steps of at least a second")
    os.environ.setdefault("SACCADE_BUILD_DIR", str(ROOT / "build" / "release"))
    with tempfile.TemporaryDirectory(prefix="saccade-overload-") as folder:
        try:
            found = Found(play(flags.minutes, flags.step_seconds, LOOK_SECONDS, pathlib.Path(folder)))
        except LoadFailed as error:
            sys.exit(f"overload: {error}")
    print(found.report())
    if flags.json:
        flags.json.write_text(json.dumps(dataclasses.asdict(found.played), indent=1) + "\n")
    if flags.markdown:
        picture = flags.markdown.with_suffix(".svg")
        found.plot(picture)
        made = (f"Made on {datetime.date.today()} with `./dev overload {flags.minutes:g}`, {os.cpu_count()} cores, load "
                f"{os.getloadavg()[2]:.1f}, niceness {os.nice(0)}.")
        flags.markdown.write_text(f"# Overload\n\n{made}\n\n{found.report()}\n\n"
                                  f"![Answers, refusals, memory and processor over time]({picture.name})\n")
    faults = found.faults()
    for fault in faults:
        print(f"overload: {fault}", file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

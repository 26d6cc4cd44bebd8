"""Plays the attacks of tests/e2e one after the other, and reports what each costs the daemon and its other clients.

Each has a fresh daemon, in a control group of 2 GiB where this machine lets the command make one. Prints a table, and fails
if a daemon ended, a call of another client failed, or a goal was missed. Called by ./dev attacks, which has built
everything."""

import argparse
import datetime
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import front_attackers
from control_groups import NoControlGroup, group_of_memory
from tools.attacks.play import LIMIT_BYTES, play, write_repository
from tools.attacks.report import broken, cell, limit_text, missed, report
from tools.bench_server.page import machine
from tools.soak.samples import ROOT

SECONDS = 10
# In less time, Linux's ticks are too coarse for the bound of processor time.
LEAST_SECONDS = 2


def progress(words, ends=True):
    """A line that is not the end of something is for terminals, where the next one takes its place."""
    if sys.stderr.isatty():
        print(f"\r\033[K{words}", end="\n" if ends else "", file=sys.stderr, flush=True)
    elif ends:
        print(words, file=sys.stderr, flush=True)


def outcome(played):
    if played.exit_code is not None:
        return f"the daemon ended with {played.exit_code}"
    if played.resident_peak is None:
        return "not measured"
    grown = played.resident_peak - played.resident_before
    p50 = [cell(calls.percentile(0.5), ".1f", 1000) for calls in (played.before, played.during)]
    return f"{grown / front_attackers.MIB:+.0f} MiB, p50 {p50[1]} ms ({p50[0]} before)"


def why_unlimited():
    """Why no control group can be made here; None if one can."""
    try:
        with group_of_memory(LIMIT_BYTES):
            return None
    except NoControlGroup as none:
        return str(none)


def play_all(names, seconds, folder, limited):
    models, begun, played = write_repository(folder / "models"), time.monotonic(), []
    for at, name in enumerate(names, 1):
        left = (time.monotonic() - begun) / (at - 1) * (len(names) - at + 1) if at > 1 else None
        progress(f"{at} of {len(names)}: {name}{'' if left is None else f', about {left:.0f} s left'}", ends=False)
        played.append(play(name, seconds, seconds / 2, models, folder, limited))
        progress(f"{at} of {len(names)}: {name}: {outcome(played[-1])}")
    return played


def arguments():
    parser = argparse.ArgumentParser(prog="./dev attacks", description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", metavar="NAME", choices=[*front_attackers.BY_NAME],
                        help="play this attack; may be repeated (default: all of tests/e2e/front_attackers.py)")
    parser.add_argument("--seconds", type=float, default=SECONDS,
                        help=f"how long each attack lasts; the rests before and after are half as long (default {SECONDS})")
    parser.add_argument("--markdown", type=pathlib.Path, help="file for the report")
    flags = parser.parse_args()
    if flags.seconds < LEAST_SECONDS:
        parser.error(f"--seconds: expected at least {LEAST_SECONDS}")
    return flags


def main():
    flags = arguments()
    os.environ.setdefault("SACCADE_BUILD_DIR", str(ROOT / "build" / "release"))
    because = why_unlimited()
    print(limit_text(because), file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="saccade-attacks-") as folder:
        played = play_all(flags.only or [*front_attackers.BY_NAME], flags.seconds, pathlib.Path(folder), because is None)
    text = report(played, because)
    print(text)
    if flags.markdown:
        commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
        only = "".join(f" --only {name}" for name in flags.only or ())
        made = (f"Made on {datetime.date.today()} with `./dev attacks --seconds {flags.seconds:g}{only}`, commit "
                f"{commit.stdout.strip()}, on {machine()}, load {os.getloadavg()[2]:.1f}.")
        flags.markdown.write_text(f"# Attacks\n\n{made}\n\n{text}\n")
    faults = [fault for one in played for fault in broken(one) + missed(one)]
    for fault in faults:
        print(f"attacks: {fault}", file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

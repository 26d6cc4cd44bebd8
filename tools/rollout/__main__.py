"""Plays rolling updates on this machine, reports the outcomes of the requests, and fails if any was lost.

Called by ./dev rollout, which has built everything."""

import argparse
import datetime
import os
import pathlib
import platform
import sys
import tempfile
import time

from tools.markdown import table
from tools.rollout.play import REPLICAS, Stage
from tools.rollout.replicas import Times

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEADY_SECONDS = 5
MAX_SPREAD = 0.1


def milliseconds(seconds):
    return f"{1000 * seconds:.1f} ms"


def lost(tally):
    return ", ".join(f"{count} {reason}" for reason, count in tally.reasons().most_common()) or "none"


def progress(done, times, begun):
    left = (time.monotonic() - begun) / done * (times - done)
    words = f"{done} of {times} replaced, about {left:.0f} s left"
    if sys.stderr.isatty():
        print(f"\r\033[K{words}", end="\n" if done == times else "", file=sys.stderr, flush=True)
    elif done % max(1, times // 10) == 0:
        print(words, file=sys.stderr, flush=True)


def play(flags, folder):
    """Returns (the report's parts, a list of faults)."""
    times = Times()
    with Stage(flags.build / "bin" / "saccaded", folder, flags.rate, times) as stage:
        where = stage.network + (f" ({stage.no_namespaces})" if stage.no_namespaces else "")
        print(f"{REPLICAS} replicas {where}", file=sys.stderr)
        if stage.without_proxy:
            print("HAProxy is not installed, so the way over the proxy is left out; install it with ./dev setup tests", file=sys.stderr)
        even = stage.steady(STEADY_SECONDS)
        begun = time.monotonic()
        replaced, faults = stage.replace(flags.times, lambda done: progress(done, flags.times, begun))
        took = time.monotonic() - begun
        sent_again = stage.proxy.sent_again() if stage.proxy else 0
        killed, when, holding = stage.kill()

    faults += [f"steady, {one.way.name}: spread {one.spread:.1%}, expected at most {MAX_SPREAD:.0%}"
               for one in even if one.spread > MAX_SPREAD]
    for act, tallies in (("steady", even), ("replaced", replaced)):
        faults += [f"{act}, {one.way.name}: {lost(one)}" for one in tallies if one.failed]
    faults += [f"{one.way.name}: {one.wrong} wrong answers" for one in [*even, *replaced, *killed] if one.wrong]
    faults += [f"killed, {one.way.name}: {lost(one)}" for one in killed if one.failed and one.way.retries]

    parts = [
        f"{REPLICAS} replicas {where}; {flags.rate} requests/s on each way; preStop {times.pre_stop:g} s, lame duck "
        f"{times.lame_duck:g} s, drain {times.drain:g} s, grace {times.grace:g} s; endpoints leave each list up to "
        f"{times.pre_stop * times.spread_by:g} s late.",
        f"**{flags.times} replacements** in {took:.0f} s. Connections that the proxy was refused: {sent_again}.",
        f"The replicas' processor time for each call before that, while nothing changed: {1e6 * stage.processor_per_call:.0f} us.",
        table(
            ("way", "sent", "failed", "wrong", "half within", "99 % within", "slowest", "spread, steady"),
            [(one.way.name, one.sent, len(one.failed), one.wrong, milliseconds(one.percentile(0.5)),
              milliseconds(one.percentile(0.99)), milliseconds(max(one.took)), f"{steady.spread:.1%}")
             for one, steady in zip(replaced, even)],
            aligned=True,
        ),
        "\n".join(f"- {one.way.name}: {lost(one)}" for one in replaced if one.failed),
        "**One replica killed** with SIGKILL, its endpoint announced "
        f"{times.unnoticed:g} s and more later.",
        table(
            ("way", "sent", "open when killed", "failed", "last failure sent after", "how"),
            [(one.way.name, one.sent, open_calls, len(one.failed),
              milliseconds(max(call.sent - when for call in one.failed)) if one.failed else "", lost(one))
             for one, open_calls in zip(killed, holding)],
            aligned=True,
        ),
    ]
    return [part for part in parts if part], faults


def main():
    parser = argparse.ArgumentParser(prog="./dev rollout", description=__doc__.split("\n")[0])
    parser.add_argument("times", nargs="?", type=int, default=100, help="number of replacements (default 100)")
    parser.add_argument("--rate", type=int, default=100, help="requests per second on each way (default 100)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help="build folder with bin/saccaded")
    parser.add_argument("--markdown", type=pathlib.Path, help="file for the report")
    flags = parser.parse_args()
    if flags.times < 1 or flags.rate < 1:
        parser.error("expected at least one replacement and one request a second")
    with tempfile.TemporaryDirectory(prefix="saccade-rollout-") as folder:
        parts, faults = play(flags, pathlib.Path(folder))
    report = "\n\n".join(parts)
    print(report)
    if flags.markdown:
        made = f"Made on {datetime.date.today()} with `./dev rollout {flags.times} --rate {flags.rate}`, " \
               f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, load {os.getloadavg()[2]:.1f}."
        flags.markdown.write_text(f"# A rolling update, played\n\n{made}\n\n{report}\n")
    for fault in faults:
        print(f"rollout: {fault}", file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

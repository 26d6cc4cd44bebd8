"""Runs the demo models under mixed load while they are reloaded, and reports the use of resources.

Prints how memory, threads and descriptors changed, and fails if they grew or if a result was wrong. Called by ./dev
soak, which has built everything."""

import argparse
import collections
import dataclasses
import datetime
import functools
import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time

from harness import Daemon
from tools.markdown import table
from tools.processor import spent
from tools.soak.growth import faults_of, grown
from tools.soak.load import Load
from tools.soak.measure import Looks, look, plot
from tools.soak.samples import DEMO, ROOT

CLIENTS = 4
RELOAD_SECONDS = 2
LOOK_SECONDS = 5
# Share of the time that is ignored: threads, caches and the allocator's pools grow in it.
SETTLED = 1 / 3


class Reloads:
    """Changes the configuration of one model after the other until the end of the block."""

    def __init__(self, repository, every):
        self._folders = sorted(folder for folder in repository.iterdir() if folder.is_dir())
        self._every = every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.made = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        while not self._stop.wait(self._every):
            config = self._folders[self.made % len(self._folders)] / "config.pbtxt"
            # Writes a new file with equivalent content.
            written = config.with_name("config.pbtxt.tmp")
            written.write_text(config.read_text().rstrip("\n") + "\n" * (1 + self.made % 2))
            written.rename(config)
            self.made += 1


def allocated_bytes(daemon):
    return daemon.metrics().value("saccade_memory_allocated_bytes")


def soak(flags, folder):
    repository = folder / "repository"
    shutil.copytree(DEMO / "repository", repository)
    settle = 60 * flags.minutes * SETTLED

    def tell(latest):
        left = 60 * flags.minutes - latest.seconds
        if sys.stderr.isatty():
            print(f"\r\033[K{latest.resident_mib:.1f} MiB, {latest.threads} threads, {latest.descriptors} descriptors, "
                  f"{max(0, left):.0f} s left", end="", file=sys.stderr, flush=True)

    os.environ.setdefault("SACCADE_BUILD_DIR", str(ROOT / "build" / "release"))
    controls = ("--model-control-mode=poll", "--repository-poll-secs=0.5", "--warm-up-seconds=0")
    with Daemon(repository, *controls, "--log-level=info", log_folder=folder) as daemon:
        daemon.await_ready()
        with Load(daemon, CLIENTS) as load, Reloads(repository, RELOAD_SECONDS) as reloads:
            allocated = functools.partial(allocated_bytes, daemon)
            with Looks(daemon.process.pid, LOOK_SECONDS, functools.partial(look, allocated=allocated), tell) as looks:
                begun = spent(daemon.process.pid)
                end = time.monotonic() + 60 * flags.minutes
                while time.monotonic() < end and daemon.process.poll() is None:
                    time.sleep(1)
                processor_s = spent(daemon.process.pid) - begun if daemon.process.poll() is None else None
        if sys.stderr.isatty():
            print(file=sys.stderr)
        log = daemon.log()
        daemon.terminate()
        code = daemon.exit_code()
    freed = log.count("model freed")
    settled = [one for one in looks.made if one.seconds >= settle]
    return {
        "minutes": flags.minutes,
        "exit_code": code,
        "reloads": freed,
        "configurations_written": reloads.made,
        "asked": dict(load.asked),
        "processor_s": processor_s,
        "faults": collections.Counter(load.faults).most_common(20),
        "looks": looks.made,
        "settled_after_seconds": settle,
        "growth": {name: grown(settled, name) for name in ("resident_mib", "allocated_mib", "threads", "descriptors")},
    }


def processor_words(found, requests):
    if found["processor_s"] is None:
        return "The daemon ended, so its processor time is not known."
    return (f"The daemon used {found['processor_s'] / 60 / found['minutes']:.2f} cores: {1000 * found['processor_s'] / requests:.2f} ms "
            "for each request, which includes decoding, computing and the loading of the new versions.")


def report(found):
    asked = ", ".join(f"{count} {way}" for way, count in sorted(found["asked"].items()))
    total, wrong = sum(found["asked"].values()), sum(count for _, count in found["faults"])
    settled = [one for one in found["looks"] if one.seconds >= found["settled_after_seconds"]]
    rows = []
    for title, name in (("resident memory, MiB", "resident_mib"), ("allocated, MiB", "allocated_mib"), ("threads", "threads"),
                        ("descriptors", "descriptors")):
        values, (steep, share, _) = [getattr(one, name) for one in settled], found["growth"][name]
        rows.append((title, f"{min(values):.4g}", f"{sum(values) / len(values):.4g}", f"{max(values):.4g}", f"{steep:+.2f}",
                     f"{share:+.2%}"))
    return "\n".join([
        f"{found['minutes']:g} minutes, {found['reloads']} model versions replaced, {total} requests ({asked}); wrong or "
        f"failed: {wrong}.",
        "",
        processor_words(found, total),
        "",
        f"After the first {found['settled_after_seconds'] / 60:.1f} minutes, with slopes of the medians of the minutes:",
        "",
        table(("", "least", "mean", "most", "slope an hour", "over the time"), rows),
    ])


def main():
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__.split("\n")[0])
    parser.add_argument("minutes", nargs="?", type=float, default=30, help="duration in minutes (default 30)")
    parser.add_argument("--json", type=pathlib.Path, help="file for all measurements")
    parser.add_argument("--markdown", type=pathlib.Path, help="file for the report; its plot is written beside it")
    flags = parser.parse_args()
    if flags.minutes < 6:
        parser.error("minutes: expected at least 6, as growth is that of the minutes' medians after the first third")
    with tempfile.TemporaryDirectory(prefix="saccade-soak-") as folder:
        found = soak(flags, pathlib.Path(folder))
    print(report(found))
    if flags.json:
        looks = [dataclasses.asdict(one) for one in found["looks"]]
        flags.json.write_text(json.dumps({**found, "looks": looks}, indent=1) + "\n")
    if flags.markdown:
        picture = flags.markdown.with_suffix(".svg")
        plot(found["looks"], found["settled_after_seconds"], picture)
        made = (f"Made on {datetime.date.today()} with `./dev soak {flags.minutes:g}`, {os.cpu_count()} cores, load "
                f"{os.getloadavg()[2]:.1f}, niceness {os.nice(0)}.")
        flags.markdown.write_text(f"# A soak\n\n{made}\n\n{report(found)}\n\n"
                                  f"![Memory, threads and descriptors over time]({picture.name})\n")
    faults = faults_of(found)
    for fault in faults:
        print(f"soak: {fault}", file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

"""Measures what a shadow version costs the requests: their latencies, and the daemon's processor time per request, without one
and with one that computes a tenth and all of them, at shares of the rate that the daemon can answer."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from tools.bench_traces import ROOT, Daemon, add_turns, write_model
from tools.processor import spent

sys.path.insert(0, str(ROOT / "tests" / "e2e"))

import shadows  # noqa: E402
from tiny_models import TinyModel  # noqa: E402

SHARES = {"no shadow": None, "a tenth copied": 0.1, "all copied": 1}
LOADS = (0.2, 0.5)
SIZE = 112


def write(folder, share):
    model = TinyModel(classes=5, seed=3, size=SIZE)
    if share is None:
        write_model(folder, "m", model)
    else:
        shadows.write_versions(folder, "m", model, model, rule=f"version=2,share={share}")
    return folder


def copied_state(root, number):
    """A folder of its own for each daemon, with what the first has measured."""
    state = root / f"state-{number}"
    if number > 0:
        shutil.copytree(root / "state-0", state)
    return state


def load(arguments, daemon, rate, clients):
    """Returns (median in ms, 99th percentile in ms, the daemon's processor ms per request, requests per second)."""
    before = spent(daemon.process.pid)
    command = [arguments.build.resolve() / "bin" / "saccade_bench_load", "load", "--url", daemon.grpc_address, "--model", "m",
               "--shape", f"1,3,{SIZE},{SIZE}", "--clients", str(clients), "--seconds", str(arguments.seconds), "--rate", str(rate)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(ran.stdout)
    times = sorted(found["latencies_us"])
    assert times and not found["failed"], found["failure"]
    spent_ms = (spent(daemon.process.pid) - before) / len(times) * 1e3
    return times[len(times) // 2] / 1e3, times[len(times) * 99 // 100] / 1e3, spent_ms, len(times) / found["elapsed_s"]


def print_load(share, rate, found):
    print(f"\n{rate:.0f} requests/s, {share:.0%} of what it can answer; the median of {len(found['no shadow'])} rounds and of their ratios")
    print(f"{'':18}{'median ms':>12}{'ratio':>8}{'p99 ms':>12}{'ratio':>8}{'CPU ms':>12}{'ratio':>8}")
    for name, rounds in found.items():
        cells = []
        for what in range(3):
            ratio = statistics.median(one[what] / base[what] for one, base in zip(rounds, found["no shadow"]))
            cells.append(f"{statistics.median(one[what] for one in rounds):12.2f}{ratio:8.3f}")
        print(f"{name:18}{''.join(cells)}", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench shadow", description=__doc__)
    add_turns(parser)
    arguments = parser.parse_args()
    os.environ["SACCADE_BUILD_DIR"] = str(arguments.build.resolve())
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        daemons = {}
        for number, (name, share) in enumerate(SHARES.items()):
            # All daemons use the first one's measurements, so that their instances and threads are equal.
            daemons[name] = Daemon(write(root / f"models-{number}", share), f"--state-folder={copied_state(root, number)}",
                                   log_folder=folder).await_ready()  # fmt: skip
        most = max(load(arguments, daemons["no shadow"], 0, 8)[3] for _ in range(2))
        for share in LOADS:
            found = {name: [] for name in daemons}
            for counted in range(-1, arguments.rounds):
                for name, daemon in daemons.items():
                    measured = load(arguments, daemon, share * most, 8)
                    if counted >= 0:
                        found[name].append(measured)
            print_load(share, share * most, found)
        for name in ("a tenth copied", "all copied"):
            report = shadows.report(daemons[name])
            assert report["equal"] == report["compared"], report
            print(f"\n{name}: {report['compared']} compared, all equal bit for bit; dropped {report['dropped']}")
        for daemon in daemons.values():
            daemon.close()


if __name__ == "__main__":
    sys.exit(main())

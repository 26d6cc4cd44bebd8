"""Measures a daemon that knows many models: how soon a cold one answers, the memory of those that are loaded, and how long
many take to be ready."""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from harness import DEMO_REPOSITORY, Daemon  # noqa: E402
from tools.bench_server.page import machine  # noqa: E402
from tools.markdown import table  # noqa: E402

CLASSIFIER = DEMO_REPOSITORY / "sanet_shapes"
ON_DEMAND = ("--model-control-mode=explicit", "--load-on-demand")
BUDGET = 2 << 30
MIB = 1 << 20
# What a quarter is asked of.
BASE = ("200 models are asked to be ready in a quarter of 200 times the first load of one model by this same daemon. That load is\n"
        "measured by itself, as the median of three, and includes the trial of threads, which copies of a model share. An earlier\n"
        "daemon was not measured.")


def repository(folder, models, prefix="m"):
    """Copies of the demo's classifier. Their weights are links to one file, which the daemon does not know."""
    for number in range(models):
        model = folder / f"{prefix}{number:04}"
        (model / "1").mkdir(parents=True)
        shutil.copy(CLASSIFIER / "labels.txt", model)
        config = (CLASSIFIER / "config.pbtxt").read_text()
        (model / "config.pbtxt").write_text(re.sub(r"^name:.*\n", "", config))
        os.link(folder.parent / "weights", model / "1" / "weights.safetensors")
    return folder


def ask(daemon, model):
    """Returns the seconds until the answer, or the status and text of the error."""
    tensor = {"name": "image", "shape": [1, 3, 64, 64], "datatype": "FP32", "data": [0.5] * (3 * 64 * 64)}
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.http_port}/v2/models/{model}/infer",
                                     json.dumps({"inputs": [tensor]}).encode(), {"Content-Type": "application/json"})
    start = time.perf_counter()
    try:
        urllib.request.urlopen(request).read()
    except urllib.error.HTTPError as error:
        return f"{error.code} {json.load(error)['error']}"
    return time.perf_counter() - start


def load_seconds(daemon):
    """The time of each load that the log tells, in order."""
    units = {"ms": 1e-3, "us": 1e-6, "s": 1, "m": 60}
    found = re.findall(r"model ready.*?load_duration=\"?([0-9.a-z]+)", daemon.log())
    return [sum(float(number) * units[unit] for number, unit in re.findall(r"([0-9.]+)(ms|us|s|m)", text)) for text in found]


class Bench:
    def __init__(self, folder):
        self.folder = folder
        self.rows = []
        shutil.copy(CLASSIFIER / "1" / "weights.safetensors", folder / "weights")

    def daemon(self, models, *flags, state="", under=()):
        return Daemon(models, f"--state-folder={state and self.folder / state}", *flags, log_folder=self.folder, under=under)

    def row(self, what, measured, asked="", reached=""):
        self.rows.append([what, measured, asked, reached])
        print(f"{what}: {measured}{f' (asked {asked}: {reached})' if asked else ''}", flush=True)

    def cold(self, known, loaded):
        models = repository(self.folder / "known", known)
        names = [f"m{number:04}" for number in range(0, known, max(1, known // (loaded + 1)))][:loaded + 1]
        for state in ("first", "second"):
            with self.daemon(models, *ON_DEMAND, f"--model-memory-bytes={BUDGET}", state="cold") as daemon:
                daemon.await_ready()
                empty = daemon.resident_bytes()
                first, *others = [ask(daemon, name) for name in names]
                assert all(isinstance(seconds, float) for seconds in (first, *others)), (first, others)
                resident = daemon.resident_bytes()
            self.row(f"{state} start, first answer of the first cold model", f"{first * 1e3:.0f} ms",
                     *(("<= 300 ms", "yes" if first <= 0.3 else "**no**") if state == "second" else ()))
            if state == "second":
                continue
            self.row(f"first answer of {len(others)} more cold models of {known:,}, median",
                     f"{statistics.median(others) * 1e3:.0f} ms")
            self.row("the slowest of them", f"{max(others) * 1e3:.0f} ms", "<= 300 ms", "yes" if max(others) <= 0.3 else "**no**")
            self.row(f"resident memory with {len(names)} loaded", f"{resident / MIB:.0f} MiB, {empty / MIB:.0f} MiB with none",
                     "<= 2,048 MiB", "yes" if resident <= BUDGET else "**no**")

    def ready(self, count):
        models = repository(self.folder / "many", count, "r")
        alone = repository(self.folder / "alone", 1, "a")
        singles = []
        for _ in range(3):
            with self.daemon(alone) as daemon:
                daemon.await_ready()
                singles += load_seconds(daemon)
        one = statistics.median(singles)
        for state in ("first", "second"):
            start = time.perf_counter()
            with self.daemon(models, state="ready") as daemon:
                daemon.await_ready()
                took = time.perf_counter() - start
            ratio = took / (one * count)
            self.row(f"{count} models ready, {state} start", f"{took:.1f} s",
                     f"<= {one * count / 4:.1f} s", "yes" if ratio <= 0.25 else "**no**")
        self.row(f"one after another, each measured by itself: {count} x {one * 1e3:.0f} ms", f"{one * count:.1f} s")

    def folders(self, count):
        models = repository(self.folder / "folders", count, "f")
        start = time.perf_counter()
        with self.daemon(models, *ON_DEMAND) as daemon:
            daemon.await_ready()
            self.row(f"a repository of {count:,} folders, until ready", f"{time.perf_counter() - start:.1f} s")
            self.row("resident memory with none loaded", f"{daemon.resident_bytes() / MIB:.0f} MiB")
            status, _, _ = daemon.get("/metrics", daemon.metrics_port)
            assert status == 200

    def limits(self):
        models = self.folder / "alone"
        core = min(os.sched_getaffinity(0))
        with self.daemon(models, under=("taskset", "-c", core)) as daemon:
            daemon.await_ready()
            used = re.search(r"cores.*?used=(\d+)", daemon.log())
            assert used and used[1] == "1", daemon.log()
            ask(daemon, "a0000")
            self.row("an affinity of one core", f"{ask(daemon, 'a0000') * 1e3:.1f} ms an answer, 1 core used")
        with self.daemon(models, *ON_DEMAND, f"--model-memory-bytes={MIB}") as daemon:
            daemon.await_ready()
            error = ask(daemon, "a0000")
            assert isinstance(error, str) and "--model-memory-bytes" in error, error
            self.row("a model larger than the budget", f"HTTP {error}")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench catalog", description=__doc__)
    parser.add_argument("--known", type=int, default=1000, help="number of models that requests may load (default 1000)")
    parser.add_argument("--loaded", type=int, default=50, help="number of them that are loaded (default 50)")
    parser.add_argument("--ready", type=int, default=200, help="number of models that are loaded at start (default 200)")
    parser.add_argument("--folders", type=int, default=5000, help="number of folders of a large repository (default 5000)")
    parser.add_argument("--markdown", type=pathlib.Path, help="the file to write")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ["SACCADE_BUILD_DIR"] = str(arguments.build.resolve())
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(pathlib.Path(folder))
        bench.cold(arguments.known, arguments.loaded)
        bench.ready(arguments.ready)
        bench.folders(arguments.folders)
        bench.limits()
    if arguments.markdown:
        commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
        arguments.markdown.write_text("\n".join([
            "# Many models", "", f"    ./dev bench catalog --markdown {arguments.markdown}", "",
            f"Written by that command on {datetime.date.today()}, commit {commit.stdout.strip()}, on {machine()}.",
            f"Running meanwhile: {load:.1f} threads when it began, {os.getloadavg()[0]:.1f} when it ended. The models are copies of the",
            "demo's classifier, whose weights have 0.7 MB. Each has a network of its own in memory. A first start finds no measurements",
            "of an earlier one (`--state-folder`), a second start does.", "", BASE, "",
            table(["", "measured", "asked", "reached"], bench.rows), ""]))


if __name__ == "__main__":
    main()

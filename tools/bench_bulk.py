"""Compares `saccade bulk` with what the same daemon answers to a closed loop of `saccade bench`, over the same pictures.

A daemon serves one model of the demo. First `saccade bench` finds how many requests in flight give the most answers per second. Then the
candidates take turns, --rounds times: the closed loop with that number for --seconds, and a job on each engine with as many pictures
as the daemon answers in --seconds. The job's pictures are JPEG files on the disk, links to the few files that the closed loop sends.
Clients and daemon share the cores.

"pictures/s" of a job has its whole time. "in the middle" is the rate between a tenth and nine tenths of its answers, as the daemon's
statistics count them: an archive takes hours, and an engine some seconds to start. Prints medians.
"""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

import tritonclient.grpc as triton  # noqa: E402
from PIL import Image  # noqa: E402

from harness import DEMO_REPOSITORY, Daemon  # noqa: E402
from tools.bench_server.page import machine  # noqa: E402
from tools.markdown import table  # noqa: E402
from tools.processor import spent  # noqa: E402

# Models of the demo, and the folders of their pictures.
MODELS = {"sanet_shapes": "pictures", "segmenter": "scenes", "detector": "scenes"}
IN_FLIGHT = (4, 8, 16, 32, 64)
LOOP = "saccade bench"
GOAL = 0.95
HEAD = ["model", "candidate", "pictures/s", "in the middle", "of saccade bench", "daemon CPU ms a picture", "client CPU ms a picture"]


@dataclasses.dataclass
class Turn:
    """One turn of a candidate. `steady` is its rate between a tenth and nine tenths of the answers; processor times are for each picture."""

    rate: float
    steady: float
    daemon_ms: float
    client_ms: float


class JobFailed(Exception):
    pass


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Progress:
    """Watches how many pictures of a model the daemon has answered."""

    def __init__(self, url, model):
        self._url, self._model = url, model
        self._seen, self._end = [], threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self):
        with triton.InferenceServerClient(self._url) as client:
            while not self._end.wait(0.05):
                found = client.get_inference_statistics(self._model).model_stats[0].inference_stats.success.count
                self._seen.append((time.monotonic(), found))

    def rate(self, count):
        """Answers per second between a tenth and nine tenths of `count`."""
        first = self._seen[0][1]
        middle = [(at, found) for at, found in self._seen if 0.1 * count <= found - first <= 0.9 * count]
        if len(middle) < 2:
            raise JobFailed("the job was too short to see its middle; use a larger --seconds")
        (start, before), (end, after) = middle[0], middle[-1]
        return (after - before) / (end - start)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


class Bench:
    def __init__(self, arguments, daemon, model, folder):
        self.arguments, self.daemon, self.model, self.folder = arguments, daemon, model, folder
        self.files = folder / "few"
        self.files.mkdir()
        for path in sorted((ROOT / "models" / "demo" / MODELS[model]).iterdir()):
            with Image.open(path) as picture:
                picture.convert("RGB").save(self.files / f"{path.stem}.jpg", quality=90)

    def measured(self, run):
        """Calls `run`, which returns a number of pictures and the seconds for them; returns those, and the processor seconds of the daemon
        and of the client for each picture, in ms."""
        daemon, client = spent(self.daemon.process.pid), children_seconds()
        count, seconds = run()
        each = 1000 / count
        return count, seconds, each * (spent(self.daemon.process.pid) - daemon), each * (children_seconds() - client)

    def closed_loop(self, in_flight, seconds):
        command = [self.arguments.build / "bin" / "saccade", "bench", "--url", self.daemon.grpc_address, "--model", self.model, "--json", "-q",
                   "--concurrency", in_flight, "--seconds", seconds, self.files]
        ran = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        told = json.loads(ran.stdout)
        return told["answers"], told["elapsed_ms"] / 1000

    def loop_turn(self, in_flight):
        count, seconds, daemon, client = self.measured(lambda: self.closed_loop(in_flight, self.arguments.seconds))
        return Turn(count / seconds, count / seconds, daemon, client)

    def archive(self, count):
        """A folder with so many pictures."""
        made = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        files = sorted(self.files.iterdir())
        for number in range(count):
            os.link(files[number % len(files)], made / f"{number:07}.jpg")
        return made

    def job(self, engine, pictures):
        """The number of pictures, and the seconds of the whole job."""
        output, count = pathlib.Path(tempfile.mkdtemp(dir=self.folder)), len(list(pictures.iterdir()))
        # As in an archive, there are many shards, so that the last one hardly counts.
        shard = max(1, min(256, count // 16))
        command = [self.arguments.python, "-m", "saccade.bulk.command", pictures, "-o", output / "found", "--model", self.model,
                   "--url", self.daemon.grpc_address, "--on", engine, "--shard-items", shard]
        environment = {**os.environ, "PYTHONPATH": str(self.arguments.client), "RAY_USAGE_STATS_ENABLED": "0"}
        start = time.monotonic()
        ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment)
        seconds = time.monotonic() - start
        if ran.returncode != 0 or "no result" in ran.stdout:
            raise JobFailed(f"saccade bulk --on {engine} ended with {ran.returncode}: {ran.stdout}{ran.stderr[-2000:]}")
        shutil.rmtree(output)
        return count, seconds

    def job_turn(self, engine, many):
        with Progress(self.daemon.grpc_address, self.model) as progress:
            count, seconds, daemon, client = self.measured(lambda: self.job(engine, many))
        return Turn(count / seconds, progress.rate(count), daemon, client)


def turns_of(bench, engines, arguments):
    """The turns of each candidate in order, None for a job that failed, and the best number of requests in flight."""
    rates = {}
    for in_flight in IN_FLIGHT:
        count, seconds = bench.closed_loop(in_flight, max(1, arguments.seconds / 4))
        rates[in_flight] = count / seconds
    best = max(rates, key=rates.get)
    print(f"{bench.model}: " + ", ".join(f"{rate:.0f}/s with {in_flight} in flight" for in_flight, rate in rates.items()), flush=True)
    many = bench.archive(max(64, int(rates[best] * arguments.seconds)))
    candidates = {LOOP: lambda: bench.loop_turn(best)}
    for engine in engines:
        candidates[f"saccade bulk --on {engine}"] = lambda engine=engine: bench.job_turn(engine, many)
    turns, names = {name: [] for name in candidates}, list(candidates)
    for number in range(arguments.rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            try:
                turns[name].append(candidates[name]())
            except JobFailed as error:
                turns[name].append(None)
                print(error, file=sys.stderr)
            print(f"  {name}: {turns[name][-1]}", flush=True)
    return turns, best


def rows_of(model, turns, best):
    """Rows of the table. A ratio is the median over the rounds of the ratio in one round. Ray's processes are not those of the command."""
    rows = []
    for name, each in turns.items():
        pairs = [(turn, loop) for turn, loop in zip(each, turns[LOOP]) if turn]
        if not pairs:
            rows.append([model, name, *["failed"] * (len(HEAD) - 2)])
            continue
        rate, steady, daemon, client = (statistics.median(column) for column in zip(*(dataclasses.astuple(turn) for turn, _ in pairs)))
        ratio = statistics.median(turn.steady / loop.steady for turn, loop in pairs)
        label = f"{name}, {best} in flight" if name == LOOP else name
        label += f", {len(each) - len(pairs)} of {len(each)} failed" if len(pairs) < len(each) else ""
        rows.append([model, label, f"{rate:.1f}", f"{steady:.1f}", f"{ratio:.3f}", f"{daemon:.2f}", "-" if name.endswith("ray") else f"{client:.2f}"])
    return rows


def engines_of(arguments):
    """The engines that the Python of bulk jobs has."""
    found = subprocess.run([arguments.python, "-c", "import ray"], capture_output=True)
    return ["local", "ray"] if found.returncode == 0 else ["local"]


def page(rows, arguments):
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    reached = sum(row[4] != "failed" and float(row[4]) >= GOAL for row in rows if not row[1].startswith(LOOP))
    jobs = sum(not row[1].startswith(LOOP) for row in rows)
    return "\n".join([
        "# Bulk jobs beside the daemon's own goodput", "",
        f"    ./dev bench bulk --seconds {arguments.seconds:g} --rounds {arguments.rounds} --markdown docs/benchmarks/bulk.md", "",
        f"Written by that command on {datetime.date.today()}, commit {commit}, on {machine()}, with a load average of {os.getloadavg()[0]:.1f}",
        "at the end. A daemon serves one demo model. `saccade bench` sends JPEGs in a closed loop, with the number of requests in flight that",
        "gave the most answers; `saccade bulk` sends as many files of the same kind to the same daemon. They take turns, and the table has",
        "medians. `in the middle` is the rate from a tenth to nine tenths of the answers. Clients and daemon share the cores, so a client's processor time is",
        "missing to the daemon. A job has one daemon here, so its ratio to the sum of the daemons' own goodput is a ratio to the goodput of one. Jobs",
        "on Spark, and on more than one machine, were not measured.", "",
        f"**{reached} of {jobs} jobs reach {GOAL} of `saccade bench` in the middle**, which is the goal.", "", table(HEAD, rows), ""])


def main():
    parser = argparse.ArgumentParser(prog="./dev bench bulk", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", choices=sorted(MODELS), help="measure these models only; may be repeated")
    parser.add_argument("--on", action="append", choices=["local", "ray"], help="engines; may be repeated (default: those that are installed)")
    parser.add_argument("--seconds", type=float, default=20, help="duration of a turn of the closed loop (default 20)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds in which the candidates take turns (default 5)")
    parser.add_argument("--markdown", type=pathlib.Path, help="the file to write")
    parser.add_argument("--python", default=sys.executable, help="the Python that has pyarrow, and Ray (default: this one)")
    parser.add_argument("--client", type=pathlib.Path, help="folder with the installed package saccade")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ["SACCADE_BUILD_DIR"] = str(arguments.build.resolve())
    rows, engines = [], arguments.on or engines_of(arguments)
    for model in arguments.model or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            shutil.copytree(DEMO_REPOSITORY / model, folder / "models" / model)
            with Daemon(folder / "models", "--log-level=warning", log_folder=folder) as daemon:
                daemon.await_ready()
                turns, best = turns_of(Bench(arguments, daemon, model, folder), engines, arguments)
            rows += rows_of(model, turns, best)
    text = page(rows, arguments)
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text)


if __name__ == "__main__":
    main()

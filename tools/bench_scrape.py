"""Measures one scrape of the metrics while many models are loaded, all of which have received requests."""

import argparse
import contextlib
import datetime
import http.client
import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from collector import Collector, environment  # noqa: E402
from harness import Daemon  # noqa: E402
from tiny_models import Identity, write_model  # noqa: E402
from tools.bench_server.page import machine  # noqa: E402
from tools.markdown import table  # noqa: E402

TEXT = "text/plain;version=0.0.4"
OPEN_METRICS = "application/openmetrics-text;version=1.0.0"
WAYS = [(name, accept, coding) for name, accept in (("text 0.0.4", TEXT), ("OpenMetrics", OPEN_METRICS))
        for coding in ("identity", "gzip")]
REQUESTS_HEAD = ["beside them", "requests", "median ms", "p99 ms"]
HEAD = ["format", "coding", "bytes", "lines", "median ms", "p99 ms", "daemon's ms"]


def ask(daemon, model, values):
    """Makes a call that succeeds or is rejected; each outcome adds a series."""
    tensor = {"name": "image", "shape": [1, 1, 1, 1, len(values)], "datatype": "FP32", "data": values}
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.http_port}/v2/models/{model}/infer",
                                     json.dumps({"inputs": [tensor]}).encode(), {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request).read()
    except urllib.error.HTTPError as error:
        assert error.code == 400, error.read()


def scrape(connection, accept, coding):
    """Returns (seconds, body as received)."""
    start = time.perf_counter()
    connection.request("GET", "/metrics", headers={"Accept": accept, "Accept-Encoding": coding})
    answer = connection.getresponse()
    body = answer.read()
    seconds = time.perf_counter() - start
    assert answer.status == 200 and answer.headers["Content-Type"].startswith(accept.split(";")[0])
    return seconds, body


def processor_nanoseconds(daemon):
    """Processor time by thread. A thread that ends meanwhile did not work on the scrape."""
    found = {}
    for thread in pathlib.Path(f"/proc/{daemon.process.pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found[thread.name] = int((thread / "schedstat").read_text().split()[0])
    return found


def measure(daemon, scrapes):
    """Returns one row for each combination of format and encoding; they are measured in turns."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.metrics_port)
    times, sizes, lines, spent = {}, {}, {}, {}
    for _ in range(scrapes):
        for name, accept, coding in WAYS:
            before = processor_nanoseconds(daemon)
            seconds, body = scrape(connection, accept, coding)
            took = sum(now - before.get(thread, 0) for thread, now in processor_nanoseconds(daemon).items())
            spent.setdefault((name, coding), []).append(took / 1e6)
            times.setdefault((name, coding), []).append(seconds * 1e3)
            sizes[name, coding] = len(body)
            if coding == "identity":
                lines[name] = body.count(b"\n")
    connection.close()
    return [[*way, f"{sizes[way]:,}", f"{lines[way[0]]:,}", f"{statistics.median(took):.2f}",
             f"{statistics.quantiles(took, n=100)[98]:.2f}", f"{statistics.median(spent[way]):.2f}"] for way, took in times.items()]


def latencies(port, model, seconds, result):
    """In a process of its own: the milliseconds of one client's requests, one after the other."""
    body = json.dumps({"inputs": [{"name": "image", "shape": [1, 1, 1, 1, 1], "datatype": "FP32", "data": [1.0]}]}).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        connection.request("POST", f"/v2/models/{model}/infer", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        times.append((time.perf_counter() - start) * 1e3)
    result.put(times)


def measure_requests(daemon, model, rounds, seconds):
    """Returns one row each for requests without and with scrapes in a loop beside them, which take turns."""
    times = {False: [], True: []}
    connection = http.client.HTTPConnection("127.0.0.1", daemon.metrics_port)
    scrapes = 0
    for _ in range(rounds):
        for scraping in (False, True):
            result = multiprocessing.Queue()
            client = multiprocessing.Process(target=latencies, args=(daemon.http_port, model, seconds, result))
            client.start()
            end = time.perf_counter() + seconds
            while scraping and time.perf_counter() < end:
                scrape(connection, TEXT, "identity")
                scrapes += 1
            times[scraping] += result.get(timeout=seconds + 60)
            client.join()
    connection.close()
    beside = {False: "nothing", True: f"{scrapes / rounds / seconds:.0f} scrapes a second"}
    return [[beside[scraping], f"{len(took):,}", f"{statistics.median(took):.2f}",
             f"{statistics.quantiles(took, n=100)[98]:.2f}"] for scraping, took in times.items()]


def main():
    parser = argparse.ArgumentParser(prog="./dev bench scrape", description=__doc__)
    parser.add_argument("--models", type=int, default=50, help="number of models to load (default 50)")
    parser.add_argument("--scrapes", type=int, default=300, help="number of scrapes of each kind, at least 2 (default 300)")
    parser.add_argument("--markdown", type=pathlib.Path, help="the file to write")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ["SACCADE_BUILD_DIR"] = str(arguments.build.resolve())
    models = [f"a-model-of-many-{number:02}" for number in range(arguments.models)]
    with tempfile.TemporaryDirectory() as folder, Collector() as collector, pytest.MonkeyPatch.context() as patch:
        folder = pathlib.Path(folder)
        for model in models:
            write_model(folder / "models", model, Identity(), max_batch_size=4)
        environment(patch, collector.url)
        with Daemon(folder / "models", "--warm-up-seconds=0", log_folder=folder) as daemon:
            daemon.await_ready()
            for model in models:
                for values in ([1.0], [1.0] * 4000, []):
                    ask(daemon, model, values)
            rows = measure(daemon, arguments.scrapes)
            requests = measure_requests(daemon, models[0], rounds=5, seconds=2)
    for row in [HEAD, *rows, REQUESTS_HEAD, *requests]:
        print("  ".join(f"{cell:>12}" for cell in row))
    if arguments.markdown:
        command = f"./dev bench scrape --models {arguments.models} --scrapes {arguments.scrapes} --markdown {arguments.markdown}"
        commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
        arguments.markdown.write_text("\n".join([
            "# A scrape of the metrics", "", f"    {command}", "",
            f"Written by that command on {datetime.date.today()}, commit {commit.stdout.strip()}, on {machine()}: "
            f"{arguments.models} models are", "loaded and have had requests, all of them sampled, and one client asks on "
            "one connection, on the same machine, each way in", "turn. The times are from its request to the whole answer; the last column is what of it the daemon computed, which other "
            "work on", f"the machine changes least. Running when it was made: {os.getloadavg()[0]:.1f} threads.",
            "", table(HEAD, rows), "",
            "## Do scrapes delay requests?", "",
            "One client asks a network that computes nothing, without and with scrapes in a loop, five times two seconds each in turn:",
            "", table(REQUESTS_HEAD, requests), ""]))


if __name__ == "__main__":
    main()

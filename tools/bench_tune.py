"""Compares the p99 that `saccade tune` predicts with the p99 that `saccade bench` then measures of the configuration that it
chose, for the demo models at several loads."""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from harness import DEMO_REPOSITORY, Daemon  # noqa: E402
from tools.bench_server.page import machine  # noqa: E402
from tools.markdown import table  # noqa: E402

DEMO = DEMO_REPOSITORY.parent
# Model, its inputs, threads of a pass.
SERVED = [("sanet_shapes", "pictures", 1), ("sanet_shapes", "pictures", 2), ("segmenter", "scenes", 1), ("segmenter", "scenes", 2),
          ("detector", "scenes", 1), ("detector", "scenes", 2), ("stereo_matcher", "pairs", 1), ("denoiser", "volumes", 2)]
# Shares of the rate that one client after the other reaches.
LOADS = (0.3, 0.5, 0.7)
# The wish, in multiples of the median latency of an unloaded daemon.
WISH = 8
HEAD = ["model", "threads", "rate 1/s", "wish ms", "chosen", "predicted p99 ms", "measured p99 ms", "predicted / measured",
        "deviation of a pass", "tune s", "load"]


def saccade(arguments, command, daemon, *rest):
    line = [arguments.build / "bin" / "saccade", command, "--url", daemon.grpc_address, *map(str, rest)]
    ended = subprocess.run(line, capture_output=True, text=True)
    if ended.returncode != 0:
        return None, ended.stderr.strip()
    return json.loads(ended.stdout), ""


def bench(arguments, daemon, model, inputs, **flags):
    flat = [part for name, value in flags.items() for part in (f"--{name}", value)]
    told, why = saccade(arguments, "bench", daemon, "--model", model, "--json", "-q", *flat, DEMO / inputs)
    assert told, why
    return told


def serve(folder, model, fields):
    """A daemon with this model alone, whose configuration has these fields."""
    repository = pathlib.Path(tempfile.mkdtemp(dir=folder))
    shutil.copytree(DEMO_REPOSITORY / model, repository / model)
    config = repository / model / "config.pbtxt"
    ours = config.read_text()
    if "max_batch_size" in fields:
        ours = re.sub(r"max_batch_size: \d+\n", "", ours)
    config.write_text(ours + fields)
    return Daemon(repository, "--log-level=warning", log_folder=folder)


def cases(arguments, folder, model, inputs, threads):
    parameter = 'parameters { key: "threads" value { string_value: "%d" } }\n' % threads
    with serve(folder, model, parameter) as daemon:
        daemon.await_ready()
        bench(arguments, daemon, model, inputs, seconds=arguments.seconds / 4, concurrency=1)
        alone = bench(arguments, daemon, model, inputs, seconds=arguments.seconds / 4, concurrency=1)
        wish = WISH * alone["stages_ms"]["latency"]["p50"]
        most = bench(arguments, daemon, model, inputs, seconds=arguments.seconds / 4, concurrency=4)["answers_per_second"]
        learned = folder / f"{model}-{threads}.json"
        plans = []
        for load in LOADS:
            rate = load * most
            # What is to be predicted is another run of the same rate.
            bench(arguments, daemon, model, inputs, seconds=arguments.seconds / 2, rate=rate, concurrency=256, seed=1)
            subprocess.run([arguments.build / "bin" / "saccade", "tune", model, "--url", daemon.grpc_address, "--save", learned, "-q"], check=True)
            start = time.monotonic()
            told, why = saccade(arguments, "tune", daemon, model, "--p99", f"{wish:.1f}ms", "--rate", f"{rate:.3f}", "--json")
            plans.append((rate, told, why, time.monotonic() - start, json.loads(learned.read_text())["buckets"][0]["deviation"]))
    for rate, told, why, took, deviation in plans:
        start = [model, threads, f"{rate:.1f}", f"{wish:.0f}"]
        if told is None:
            yield [*start, why, "-", "-", "-", f"{deviation:.2f}", f"{took:.1f}", "-"], None
            continue
        chosen = told["configuration"]
        with serve(folder, model, told["config_pbtxt"]) as daemon:
            daemon.await_ready()
            seen = bench(arguments, daemon, model, inputs, seconds=arguments.seconds, rate=rate / chosen["replicas"], concurrency=256, seed=2)
        predicted, measured = told["estimate"]["p99_ms"], seen["stages_ms"]["latency"]["p99"]
        text = f"{chosen['replicas']} x {chosen['instances']}, batch {chosen['max_batch_size']}, queue {chosen['max_queue_size']}"
        yield [*start, text, f"{predicted:.1f}", f"{measured:.1f}", f"{predicted / measured:.2f}", f"{deviation:.2f}",
               f"{took:.1f}", f"{os.getloadavg()[0]:.1f}"], predicted / measured


def main():
    parser = argparse.ArgumentParser(prog="./dev bench tune", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="duration of a measurement (default 20)")
    parser.add_argument("--model", action="append", help="measure these models only")
    parser.add_argument("--markdown", type=pathlib.Path, help="the file to write")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ["SACCADE_BUILD_DIR"] = str(arguments.build.resolve())
    rows, ratios = [], []
    with tempfile.TemporaryDirectory() as folder:
        for model, inputs, threads in SERVED:
            if arguments.model and model not in arguments.model:
                continue
            for row, ratio in cases(arguments, pathlib.Path(folder), model, inputs, threads):
                print("  ".join(map(str, row)), flush=True)
                rows.append(row)
                ratios += [ratio] if ratio else []
    within = sum(abs(ratio - 1) <= 0.1 for ratio in ratios)
    verdict = f"{within} of {len(rows)} cases are within 10 %."
    print(verdict)
    if arguments.markdown:
        commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
        arguments.markdown.write_text("\n".join([
            "# What saccade tune predicts", "",
            f"    ./dev bench tune --seconds {arguments.seconds:g} --markdown docs/benchmarks/tune.md", "",
            f"Written by that command on {datetime.date.today()}, commit {commit.stdout.strip()}, on {machine()}. For each row a daemon",
            "serves the model, learns its latencies from requests at that rate, and `saccade tune` chooses a configuration. A daemon with",
            "that configuration then gets other requests at the same rate from `saccade bench` on the same cores. The wish is",
            f"{WISH} times the median latency without load. `chosen` is replicas x instances; one replica is measured, with its share of the",
            "rate. `load` is the machine's average number of running threads over the last minute, the benchmark's own included.", "",
            f"**{verdict}**", "", table(HEAD, rows), ""]))


if __name__ == "__main__":
    main()

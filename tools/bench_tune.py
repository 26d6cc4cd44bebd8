"""Compares the p99 that `saccade tune` predicts with the p99 that `saccade bench` then measures of the configuration that it
chose: for passes that sleep, and for the demo models, at several loads.

How many answers does a p99 take? One of too few answers deviates by chance from that of endless traffic, and the more the
busier an instance is, because requests that arrive together wait for each other. For a queue with one server, random
arrivals and equal passes (M/D/1) we simulated that the p99 of 1000 / (1 - u)^3 answers has a standard error of about 5 %,
where u is the share of the time in which the instances compute: 1,600 answers at 15 %, 6,000 at 45 %, 16,000 at 60 %.
Batches need fewer. So the measured p99 is within 10 % of the true one in 19 of 20 cases. Every case lasts as long as so many
answers take, but at most --seconds, and then its error is larger; passes that sleep are measured side by side, and for
three times as long at most. The table has the answers of each case, and the standard error of their p99 by the same formula.

With its defaults the run takes rather more than an hour on two cores. Each case is kept in build/tune, by the digest of the programs
and of this file and by --seconds, so that an interrupted run goes on where it stopped. Remove the folder to measure again.
"""

import argparse
import concurrent.futures
import dataclasses
import datetime
import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from PIL import Image  # noqa: E402

from harness import DEMO_REPOSITORY, Daemon  # noqa: E402
from tiny_models import Identity, write_model  # noqa: E402
from tools.bench_server.page import machine  # noqa: E402
from tools.markdown import table  # noqa: E402
from tools.tune_page import missed_wishes  # noqa: E402

DEMO = DEMO_REPOSITORY.parent
KEPT = ROOT / "build" / "tune"
# Passes that sleep for long, so that other programs on the machine hardly change them: milliseconds of a pass, milliseconds of
# an item more, and the maximum batch size. All are measured side by side.
SLEEPING = {"sleeps-250+50": (250, 50, 8), "sleeps-125+125": (125, 125, 4), "sleeps-500+25": (500, 25, 16)}
# The demo models, which compute: their inputs and the threads of a pass.
COMPUTING = {"sanet_shapes": ("pictures", 1), "segmenter": ("scenes", 1), "detector": ("scenes", 2), "stereo_matcher": ("pairs", 1)}
# Shares of what one instance can do: of the rate that 16 clients reach. Without gain from batches, one instance holds the
# wish up to about 0.7, and two are needed for the last. Between 0.7 and 0.9 an instance is so busy that no measurement of some
# minutes has a p99 to compare with.
LOADS = (0.15, 0.3, 0.45, 0.6, 0.9)
# The shortest measurement in seconds, so that a few bad moments of the machine are not a hundredth of it.
SHORTEST = 30
# The goal is a p99 within 10 % in so many cases.
GOAL = 30
# How many times as long passes that sleep are measured.
SIDE_BY_SIDE = 3
# Daemons start one after the other: together they would take too long.
STARTING = threading.Lock()
# Seconds for learning latencies and capacity, each.
LEARN = 15
# `saccade tune` asks to be run again on its configuration if that has more instances than were measured. So often at most.
RUNS = 3
# The wish, in multiples of the median latency of an unloaded daemon.
WISH = 8
HEAD = ["model", "rate 1/s", "wish ms", "chosen", "predicted p99 ms", "measured p99 ms", "predicted / measured",
        "answers", "standard error", "deviation of a pass", "runs", "tune s", "load"]


def ran(arguments, command, daemon, *rest):
    line = [arguments.build / "bin" / "saccade", command, "--url", daemon.grpc_address, *map(str, rest)]
    return subprocess.run(line, capture_output=True, text=True)


def saccade(arguments, command, daemon, *rest):
    ended = ran(arguments, command, daemon, *rest)
    if ended.returncode != 0:
        return None, ended.stderr.strip()
    return json.loads(ended.stdout), ""


def bench(arguments, daemon, model, inputs, **flags):
    flat = [part for name, value in flags.items() for part in (f"--{name}", value)]
    ended = ran(arguments, "bench", daemon, "--model", model, "--json", "-q", *flat, DEMO / inputs)
    # It prints its figures also if the daemon rejected some of the requests.
    assert ended.stdout, ended.stderr
    return json.loads(ended.stdout)


def serve(folder, model, fields):
    """A daemon with this model alone, whose configuration has these fields in place of its own."""
    repository = pathlib.Path(tempfile.mkdtemp(dir=folder))
    flags = []
    if model in SLEEPING:
        once, each, batch = SLEEPING[model]
        write_model(repository, model, Identity(delay_ms=once, delay_ms_per_item=each), max_batch_size=batch)
        # More cores than needed: passes that sleep use none.
        flags = ["--cores=8"]
    else:
        shutil.copytree(DEMO_REPOSITORY / model, repository / model)
    config = repository / model / "config.pbtxt"
    ours = config.read_text()
    for name in ("max_batch_size", "instance_group"):
        if name in fields:
            ours = re.sub(name + r".*\n", "", ours)
    config.write_text(ours + fields)
    with STARTING:
        return Daemon(repository, "--log-level=warning", *flags, log_folder=folder).await_ready()


def needed(busy):
    """The number of answers whose p99 has a standard error of 5 %, if the instances compute for this share of the time."""
    return 1000 / (1 - busy) ** 3 if busy < 1 else math.inf


def kept_at(arguments, model, load):
    return KEPT / arguments.digest / f"{model}-{load:g}-{arguments.seconds:g}.json"


def measured(arguments, folder, model, loads=LOADS):
    """A row of each load and its ratio of predicted to measured, which is None if there is no p99."""
    missing = [load for load in loads if not kept_at(arguments, model, load).exists()]
    for load, row, ratio in cases(arguments, folder, model, missing) if missing else ():
        path = kept_at(arguments, model, load)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps({"row": row, "ratio": ratio, "date": str(datetime.date.today())}) + "\n")
        unfinished.replace(path)
        print("  ".join(map(str, row)), flush=True)
    return [json.loads(kept_at(arguments, model, load).read_text()) for load in loads]


@dataclasses.dataclass
class Plan:
    """What `saccade tune` said last: `told`, or `why` there is nothing. `learned` is what it knew of the model then, `seconds` how
    long it took, and `runs` how often it was run."""

    told: dict | None
    why: str
    learned: dict
    seconds: float
    runs: int = 1

    def is_to_be_run_again(self):
        return self.told is not None and self.told["configuration"]["instances"] > self.learned["instances"]


def planned(arguments, folder, model, daemon, inputs, rate, learn_rate, wish):
    """Runs `saccade tune` for the rate after the daemon has learned from requests at `learn_rate`."""
    # The measurement has another seed: `saccade tune` does not predict the requests that the daemon has learned from.
    bench(arguments, daemon, model, inputs, seconds=LEARN, rate=learn_rate, concurrency=256, seed=1)
    learned = folder / f"{model}-{rate:g}.json"
    subprocess.run([arguments.build / "bin" / "saccade", "tune", model, "--url", daemon.grpc_address, "--save", learned, "-q"], check=True)
    start = time.monotonic()
    told, why = saccade(arguments, "tune", daemon, model, "--p99", f"{wish:.1f}ms", "--rate", f"{rate:.3f}", "--json")
    return Plan(told, why, json.loads(learned.read_text()), time.monotonic() - start)


def planned_again(arguments, folder, model, inputs, rate, wish, plan):
    """What `saccade tune` says in the end, if it is run as often as it asks."""
    while plan.is_to_be_run_again() and plan.runs < RUNS:
        with serve(folder, model, plan.told["config_pbtxt"]) as daemon:
            share = rate / plan.told["configuration"]["replicas"]
            again = planned(arguments, folder, model, daemon, inputs, rate, share, wish)
        plan = dataclasses.replace(again, runs=plan.runs + 1)
    return plan


def cases(arguments, folder, model, loads):
    inputs, threads = COMPUTING.get(model, (folder / "tiny.tif", 1))
    parameter = 'parameters { key: "threads" value { string_value: "%d" } }\n' % threads
    with serve(folder, model, parameter) as daemon:
        if model in SLEEPING:
            once, each, batch = SLEEPING[model]
            alone, most = once + each, 1000 * batch / (once + each * batch)
        else:
            bench(arguments, daemon, model, inputs, seconds=LEARN, concurrency=1)
            alone = bench(arguments, daemon, model, inputs, seconds=LEARN, concurrency=1)["stages_ms"]["latency"]["p50"]
            most = bench(arguments, daemon, model, inputs, seconds=LEARN, concurrency=16)["answers_per_second"]
        wish = WISH * alone
        plans = []
        for load in loads:
            rate = load * most
            plans.append((load, rate, planned(arguments, folder, model, daemon, inputs, rate, rate, wish)))
    for load, rate, plan in plans:
        plan = planned_again(arguments, folder, model, inputs, rate, wish, plan)
        start = [model, f"{rate:.1f}", f"{wish:.0f}"]
        end = [f"{plan.learned['buckets'][0]['deviation']:.2f}", plan.runs, f"{plan.seconds:.1f}"]
        if plan.told is None:
            yield load, [*start, plan.why, "-", "-", "-", "-", "-", *end, "-"], None
            continue
        told, chosen = plan.told, plan.told["configuration"]
        answers = needed(load / chosen["replicas"] / chosen["instances"])
        longest = arguments.seconds * (SIDE_BY_SIDE if model in SLEEPING else 1)
        seconds = min(longest, max(SHORTEST, answers * chosen["replicas"] / rate))
        with serve(folder, model, told["config_pbtxt"]) as daemon:
            seen = bench(arguments, daemon, model, inputs, seconds=seconds, rate=rate / chosen["replicas"], concurrency=256, seed=2)
        predicted, found = told["estimate"]["p99_ms"], seen["stages_ms"]["latency"]["p99"]
        text = f"{chosen['replicas']} x {chosen['instances']}, batch {chosen['max_batch_size']}, queue {chosen['max_queue_size']}"
        error = 0.05 * math.sqrt(answers / seen["answers"])
        yield load, [*start, text, f"{predicted:.1f}", f"{found:.1f}", f"{predicted / found:.2f}", seen["answers"], f"{100 * error:.0f} %",
                     *end, f"{os.getloadavg()[0]:.1f}"], predicted / found


def span(dates):
    """When the rows were measured: an interrupted run may have gone on days later. ISO dates sort by time."""
    first, last = min(dates), max(dates)
    return f"on {first}" if first == last else f"from {first} to {last}"


def main():
    parser = argparse.ArgumentParser(prog="./dev bench tune", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=200, help="longest measurement of a case (default 200)")
    parser.add_argument("--model", action="append", help="measure these models only")
    parser.add_argument("--markdown", type=pathlib.Path, help="the file to write")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ["SACCADE_BUILD_DIR"] = str(arguments.build.resolve())
    programs = (pathlib.Path(__file__), *(arguments.build / "bin" / name for name in ("saccaded", "saccade")))
    arguments.digest = hashlib.sha256(b"".join(program.read_bytes() for program in programs)).hexdigest()[:12]
    told = []
    wanted = [model for model in [*SLEEPING, *COMPUTING] if not arguments.model or model in arguments.model]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(max_workers=16) as pool:
        folder = pathlib.Path(folder)
        plane = Image.new("L", (8, 8), 128)
        plane.save(folder / "tiny.tif", save_all=True, append_images=[plane])
        beside = {model: [pool.submit(measured, arguments, folder, model, (load,)) for load in LOADS]
                  for model in wanted if model in SLEEPING}
        concurrent.futures.wait([run for runs in beside.values() for run in runs])
        for model in wanted:
            together = (case for run in beside.get(model, ()) for case in run.result())
            for case in together if model in beside else measured(arguments, folder, model):
                told.append(case)
    rows = [case["row"] for case in told]
    within = sum(abs(case["ratio"] - 1) <= 0.1 for case in told if case["ratio"])
    asleep = sum(abs(case["ratio"] - 1) <= 0.1 for case in told if case["ratio"] and case["row"][0] in SLEEPING)
    verdict = f"{within} of {len(rows)} cases are within 10 %: {asleep} with passes that sleep, and {within - asleep} with demo models."
    print(verdict)
    if arguments.markdown:
        commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
        arguments.markdown.write_text("\n".join([
            "# What saccade tune predicts", "",
            f"    ./dev bench tune --seconds {arguments.seconds:g} --markdown docs/benchmarks/tune.md", "",
            f"Measured by that command {span([case['date'] for case in told])}, commit {commit.stdout.strip()}, on {machine()}. For each row a daemon",
            "serves the model and learns its latencies from requests at that rate, and `saccade tune` chooses a configuration. A daemon with",
            "that configuration then gets other requests at the same rate from `saccade bench` on the same cores. The wish is",
            f"{WISH} times the median latency without load. `chosen` is replicas x instances; one replica is measured, with its share of the",
            "rate. `answers` are those of the measurement, and the standard error is what chance alone makes of a p99 of so many answers",
            "in a queue without batches (`./dev bench tune --help`); with batches it is less. `load` is the machine's average number of",
            "running threads over the last minute, the benchmark's own included.", "",
            f"The goal is {GOAL} cases. Triton's model_analyzer was tried beside it for one model",
            "([decision 51](../decisions/0051-sizes-by-simulating-the-scheduler.md)).", "",
            f"**{verdict}**", "",
            missed_wishes(rows), "",
            "Passes that sleep take the same time whatever else runs, so their rows show what the simulation itself is worth. Passes of the",
            "demo models share the cores with the client and with decoding, which it does not know. If `saccade tune` chooses more instances",
            f"than were measured, it asks to be run again on that configuration. `runs` is how often it was, of {RUNS} at most: each time a daemon with",
            "that configuration learned from one replica's share of the rate. The row has what it said last.", "", table(HEAD, rows), ""]))


if __name__ == "__main__":
    main()

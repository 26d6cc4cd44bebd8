"""Has MLPerf's LoadGen measure the daemon beside a bare loop of PyTorch, OpenVINO and Triton, and writes build/proof/report.html.

Called by ./dev proof, which has built everything. The exit code is 1 if LoadGen calls a result INVALID, a picture was not
answered, or answers differ."""

import argparse
import contextlib
import datetime
import importlib.metadata
import pathlib
import shlex
import subprocess
import sys

import torch

from tools.bench_server.page import machine
from tools.proof import drive, experiment, pictures, plots, report, scenarios, systems
from tools.proof.campaign import Campaign

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS, QUICK_SECONDS = 60, 2
ROUNDS = 2
PICTURES, QUICK_PICTURES = 500, 40
SETS = ("avx512_bf16", "avx512_vnni", "avx512f", "avx2", "asimd")
PACKAGES = ("mlcommons-loadgen", "torch", "torchvision", "openvino", "grpcio")


def parsed(arguments):
    parser = argparse.ArgumentParser(prog="./dev proof", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, help=f"least seconds of each run (default {SECONDS}; {QUICK_SECONDS} with --quick)")
    parser.add_argument("--quick", action="store_true", help="one short round with few pictures, of the daemon and the bare loop")
    parser.add_argument("--rounds", type=int, help=f"how often everything is measured (default {ROUNDS}; 1 with --quick)")
    parser.add_argument("--experiment", choices=experiment.EXPERIMENTS, help="play this with the daemon instead of the comparison")
    parser.add_argument("--system", action="append", choices=list(systems.SYSTEMS), help="only this one; may be repeated")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build" / "proof", help="folder of the report and LoadGen's logs")
    flags = parser.parse_args(arguments)
    flags.seconds = flags.seconds if flags.seconds is not None else QUICK_SECONDS if flags.quick else SECONDS
    flags.rounds = flags.rounds if flags.rounds is not None else 1 if flags.quick else ROUNDS
    if not 0.1 <= flags.seconds <= 3600:
        parser.error(f"--seconds is {flags.seconds:g}, expected 0.1 to 3600")
    if not 1 <= flags.rounds <= 100:
        parser.error(f"--rounds is {flags.rounds}, expected 1 to 100")
    flags.system = flags.system or (["saccaded", "PyTorch"] if flags.quick else list(systems.SYSTEMS))
    if "Triton" in flags.system and not flags.experiment and (missing := systems.peers().missing()):
        parser.error(f"Triton cannot be measured: {missing}; name the other systems with --system")
    return flags


def instruction_sets(cpuinfo):
    flags = set(next((line.split(":")[1] for line in cpuinfo.splitlines() if line.startswith(("flags", "Features"))), "").split())
    return ", ".join(name for name in SETS if name in flags) or "none that is looked for"


def about(flags, command):
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    return [
        ("when", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")), ("command", command),
        ("commit", commit), ("machine", machine()),
        ("instruction sets", instruction_sets(pathlib.Path("/proc/cpuinfo").read_text())),
        ("threads of a pass", torch.get_num_threads()),
        ("network", f"{systems.MODEL} of models/demo, {systems.RECIPE.architecture}, the same weights in float32 for every system"),
        ("pictures", f"{QUICK_PICTURES if flags.quick else PICTURES} held-out scenes as JPEG; decoded, scaled and computed by each system"),
        ("saccaded", "over gRPC on this machine, JPEG in and classes out, with its defaults; LoadGen and the client share the processors"),
        ("PyTorch, OpenVINO", f"in LoadGen's process, without a network between; batches of what waits, at most {systems.MAX_BATCH}; "
                              "one thread decodes and computes in turn"),
        ("Triton", "nvidia-pytriton's tritonserver over gRPC on this machine, JPEG in and logits out: its Python backend does what the loop of "
                   f"PyTorch does, {torch.get_num_threads()} instances of one thread, dynamic batching"),
        *((name, importlib.metadata.version(name)) for name in PACKAGES),
    ]


def remarks(flags):
    left_out = [name for name in systems.SYSTEMS if name not in flags.system]
    return [f"Not measured, because the command names other systems: {', '.join(left_out)}."] if left_out else []


def tell(words):
    print(words, flush=True)


def cost(drawn, flags):
    """What LoadGen and the clients cost without a system: the report's part."""
    rows = []
    for name, start in systems.STAND_INS.items():
        with start(drawn.files) as stand_in:
            # Many samples, because the run ends when they have: its time is not what matters.
            run = drive.measure(name, stand_in, "Offline", len(drawn.files), scenarios.Length(1), flags.output / "loadgen" / name,
                                systems.STAND_IN_SAMPLES)
        value, _ = run.figure
        tell(f"stand-in     {name:9} {value:10.0f} samples/s, {1e6 / value:.1f} us for a picture  others {run.noise.others:.0%}")
        rows.append((name, f"{value:.0f}", f"{1e6 / value:.1f}", f"{run.noise.others:.0%}"))
    return "<h2>What measuring costs</h2><p>Stand-ins that compute nothing: one in this process, which answers at once, and a bare " \
        "gRPC server that sends back what it is sent. No system can be measured to be faster.</p>" + report.table(
            ("stand-in", "samples per second", "microseconds for a picture", "other processes"), rows)


def played(flags, drawn, length, command):
    """Plays an experiment and writes its report; returns the exit code."""
    made = experiment.play(flags.experiment, drawn, length, flags.output / "loadgen")
    counts = {name: made.tally.total(name) for name in experiment.OUTCOMES}
    tell(f"{flags.experiment}: {made.run.rate:.0f} queries a second, capacity {made.offline.figure[0]:.0f}; "
         + ", ".join(f"{count} {name}" for name, count in counts.items()) + f"; LoadGen says {made.run.word}")
    for why, count in made.run.failed.most_common():
        tell(f"  {count} times {why}")
    for when, what in made.events:
        tell(f"  {when:6.2f} s  {what}")
    sections = [f"<h2>Experiment: {flags.experiment}</h2>",
                report.table(("outcome", "queries"), counts.items()), plots.over_time(made.tally.series()),
                report.table(("second", "what was done"), [(f"{when:.2f}", what) for when, what in made.events]) if made.events else ""]
    path = flags.output / f"{flags.experiment}.html"
    path.write_text(report.page(f"The daemon under LoadGen's arrivals: {flags.experiment}", about(flags, command), command,
                                [made.offline, made.run], sections, made.faults))
    return ended(path, [made.offline, made.run], made.faults)


def ended(path, runs, faults):
    print(report.busy(runs))
    for fault in faults:
        print(f"\033[31m{fault}\033[0m" if sys.stderr.isatty() else fault, file=sys.stderr)
    print(f"the report is in {path}")
    return 1 if faults else 0


def main(arguments=None):
    flags = parsed(arguments)
    command = shlex.join(["./dev", "proof", *(sys.argv[1:] if arguments is None else arguments)])
    length = scenarios.Length(flags.seconds, flags.quick)
    drawn = pictures.draw(systems.RECIPE, QUICK_PICTURES if flags.quick else PICTURES)
    flags.output.mkdir(parents=True, exist_ok=True)
    if flags.experiment:
        return played(flags, drawn, length, command)
    costs = cost(drawn, flags)
    campaign = Campaign(length, drawn, flags.output / "loadgen", tell)
    with contextlib.ExitStack() as running:
        started = {name: running.enter_context(systems.SYSTEMS[name](drawn.files)) for name in flags.system}
        campaign.check_accuracy(started)
        campaign.play(started, flags.rounds)
    campaign.check_agreement()
    sections = ["<h2>Results</h2>", report.results(campaign, length), report.accuracy(campaign), costs]
    path = flags.output / "report.html"
    path.write_text(report.page("The daemon beside a bare loop, OpenVINO and Triton, by LoadGen", about(flags, command), command, campaign.runs,
                                sections, campaign.faults, remarks(flags)))
    for name, found in campaign.answers.items():
        if found:
            print(f"accuracy     {name:9} {campaign.accuracy(name):.3f}")
    return ended(path, campaign.runs, campaign.faults)


if __name__ == "__main__":
    sys.exit(main())

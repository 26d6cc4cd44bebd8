"""Serves the demo models, sends samples to each of them, draws the results, and puts the models under load.

Called by ./dev demo, which has built everything."""

import argparse
import json
import pathlib
import random
import sys

from tools.demo import answers, contact_sheet, load
from tools.demo.daemon import Daemon

NEXT = """
What next?
  See it live:          ./dev demo --stay, then drop a picture of your own on the page
  Ask from a terminal:  build/release/bin/saccade detect --model detector PICTURE -o out   (docs/quickstart.md)
  Serve your own:       build/release/bin/saccade init WEIGHTS -o my-models/NAME           (docs/your-own-model.md)"""
ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "models" / "demo"


def tell_progress(done, all_, seconds):
    if sys.stderr.isatty():
        print(f"\r\033[Kloading: {done} of {all_} models ready, {seconds:.0f} s", end="", file=sys.stderr, flush=True)


def milliseconds(seconds):
    return f"{1000 * seconds:.1f} ms"


def name_width(models):
    return 2 + max((len(model["name"]) for model in models), default=0)


def ask_all(daemon, command, models, out):
    """Prints a table; returns the pictures of the contact sheet."""
    shown, width = [], name_width(models)
    print(f"\n{'MODEL':<{width}}{'SENT':<20}{'DAEMON':>10}{'IN ALL':>10}  ANSWER")
    for model in models:
        for result in answers.ask(command, daemon.grpc, model["name"], model["task"], DEMO, out / model["name"]):
            name, times, words = pathlib.Path(result["file"]).name, result["timings_ms"], answers.in_words(result)
            print(f"{model['name']:<{width}}{name:<20}{times['total']:>7.1f} ms{times['round_trip']:>7.1f} ms  {words}")
            if picture := answers.picture_of(result):
                # Without times: the sheet is the same whatever else the machine does.
                shown.append((picture, (f"{model['name']}: {name}", words + (", before and after" if "volume" in result else ""))))
    return shown


def look_inside(daemon, command, models, out):
    """The attention map of the first sample of the first model that has one, for the contact sheet."""
    for model in models:
        if not model["attention_layers"] or model["task"] not in answers.COMMANDS:
            continue
        for result in answers.ask(command, daemon.grpc, model["name"], model["task"], DEMO, out / "attention", explain=True):
            if "attention_map" in result:
                name = pathlib.Path(result["file"]).name
                return [(result["attention_map"], (f"{model['name']}: {name}", "what its attention looks at"))]
    return []


def put_under_load(daemon, models, seconds):
    chance, requests = random.Random(1), []
    for model in models:
        if model["task"] in load.OPTIONS:
            samples = sorted(DEMO.glob(answers.SAMPLES[model["task"]]))
            requests += load.bodies(model["name"], model["task"], samples, chance)
    print(f"\n{load.CLIENTS} clients for {seconds:g} s, pictures of {len(load.SIDES) * len(load.RATIOS)} sizes ...", flush=True)
    before = json.loads(daemon.get("/v1/load"))
    run = load.Load(daemon.http, requests, seconds)
    after = json.loads(daemon.get("/v1/load"))
    if not run.latencies:
        sys.exit(f"demo: no request was answered under load, {run.refused} were refused")
    took, ordered = after["time"] - before["time"], sorted(run.latencies)
    half, most = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    print(f"  {len(ordered) / took:.1f} requests/s, half within {milliseconds(half)}, 99% within {milliseconds(most)}, "
          f"{run.refused} refused")
    width = name_width(models)
    for name, (answered, passes, largest) in load.batches(before, after).items():
        print(f"  {name:<{width}}{answered / took:6.1f}/s in batches of {answered / passes:.2f} in the mean, {largest} at most")


def main():
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__.split("\n")[0])
    parser.add_argument("--stay", action="store_true", help="serve until Ctrl-C")
    parser.add_argument("--seconds", type=float, default=5, help="duration of the load in seconds (default 5)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "demo-out", help="folder for the answers (default demo-out)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help="build folder with bin/saccaded")
    parser.add_argument("--models", type=pathlib.Path, default=DEMO / "repository", help="the models to serve")
    flags = parser.parse_args()
    flags.out.mkdir(parents=True, exist_ok=True)
    with Daemon(flags.build / "bin" / "saccaded", flags.models, flags.out / "saccaded.log") as daemon:
        ready, took = daemon.await_ready(tell_progress)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        print(f"{ready} models ready after {took:.1f} s")
        models = [one for one in json.loads(daemon.get("/v1/models"))["models"] if one["state"] == "READY"]
        shown = ask_all(daemon, flags.build / "bin" / "saccade", models, flags.out)
        shown += look_inside(daemon, flags.build / "bin" / "saccade", models, flags.out)
        if shown:
            contact_sheet.draw(shown, flags.out / "contact-sheet.png")
        put_under_load(daemon, models, flags.seconds)
        print(f"\nanswers as pictures  {flags.out}, all on {flags.out / 'contact-sheet.png'}")
        if flags.stay:
            # An address is of no use once the daemon has ended.
            print(f"the page             http://{daemon.http}/\nmetrics              http://{daemon.metrics}/metrics\n"
                  f"gRPC                 {daemon.grpc}\nServing until Ctrl-C.", flush=True)
            try:
                daemon.wait()
            except KeyboardInterrupt:
                print()
        daemon.stop()
    print(f"the daemon has drained, and ended with 0\n{NEXT}")


main()

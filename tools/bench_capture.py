"""Measures the cost of capturing calls: the daemon's processor time per call without capture, switched off, and with a share of
the calls captured."""

import argparse
import os
import pathlib
import sys
import tempfile

from tools.bench_traces import ROOT, Daemon, Identity, add_turns, print_found, take_turns, write_model

KINDS = {
    "no capture": None,
    "switched off": ("--capture-paused",),
    "a hundredth captured": ("--capture-rate=0.01",),
    "all captured": (),
    "all captured, no pixels": ("--capture-pixels=none",),
}


def main():
    parser = argparse.ArgumentParser(prog="./dev bench capture", description=__doc__)
    add_turns(parser)
    arguments = parser.parse_args()
    os.environ["SACCADE_BUILD_DIR"] = str(arguments.build.resolve())
    with tempfile.TemporaryDirectory() as folder:
        models = pathlib.Path(folder) / "models"
        write_model(models, "identity", Identity(), max_batch_size=8)
        daemons = {}
        for number, (name, flags) in enumerate(KINDS.items()):
            more = () if flags is None else (f"--capture={folder}/calls-{number}", *flags)
            daemons[name] = Daemon(models, *more, log_folder=folder).await_ready()
        found = take_turns(daemons, arguments)
    print_found(found, lambda _: "no capture")


if __name__ == "__main__":
    sys.exit(main())

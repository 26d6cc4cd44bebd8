"""Measures the cost of signed answers: the daemon's processor time per picture of 640 x 480 (without decoding) by a model with the parameter
attest, and by the same model without."""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from tools.bench_traces import ROOT, Daemon

sys.path.insert(0, str(ROOT / "tests" / "e2e"))

import numpy  # noqa: E402
import pictures  # noqa: E402
from messages import predict_request  # noqa: E402

DEMO = ROOT / "models" / "demo" / "repository"


def copy(name, root, attest):
    """Copies a model of the demo under a name that says whether it signs."""
    folder = root / (f"{name}-signed" if attest else name)
    shutil.copytree(DEMO / name, folder)
    config = folder / "config.pbtxt"
    lines = [line for line in config.read_text().splitlines() if not line.startswith("name:")]
    if attest:
        lines.append('parameters { key: "attest" value { string_value: "true" } }')
    config.write_text("\n".join(lines) + "\n")
    return folder.name


def spent(process):
    """Processor time so far of the daemon's own threads in seconds, more finely than in ticks; decode workers sign nothing."""
    files = pathlib.Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9


def load(daemon, vision, model, picture, calls):
    """The daemon's microseconds per call."""
    request = predict_request(model=model, encoded=picture)
    before = spent(daemon.process.pid)
    for _ in range(calls):
        assert vision.predict(request, timeout=60).HasField("attestation") == model.endswith("-signed")
    return (spent(daemon.process.pid) - before) / calls * 1e6


def main():
    parser = argparse.ArgumentParser(prog="./dev bench attest", description=__doc__)
    parser.add_argument("--model", action="append", help="a model of the demo; may be repeated (default detector and sanet_shapes)")
    parser.add_argument("--calls", type=int, default=40, help="calls of each model in each round (default 40)")
    parser.add_argument("--rounds", type=int, default=10, help="rounds in which the models take turns (default 10)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ["SACCADE_BUILD_DIR"] = str(arguments.build.resolve())
    names = arguments.model or ["detector", "sanet_shapes"]
    # With some noise, as photographs have, so that it is as large as one.
    noise = numpy.random.default_rng(0).integers(0, 32, (480, 640, 3), dtype=numpy.uint8)
    picture = pictures.encoded(pictures.pixels(1, 640, 480) // 8 * 7 + noise, "JPEG", quality=75)
    print(f"a JPEG of 640 x 480, {len(picture):,} bytes; load of the machine {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        models, key = folder / "models", folder / "key.pem"
        models.mkdir()
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True)
        pairs = [(copy(name, models, False), copy(name, models, True)) for name in names]
        daemon = Daemon(models, f"--attest-key={key}", log_folder=folder).await_ready()
        found = {name: [] for pair in pairs for name in pair}
        with daemon.vision() as vision:
            for counted in range(-1, arguments.rounds):
                for name in found:
                    measured = load(daemon, vision, name, picture, arguments.calls)
                    if counted >= 0:
                        found[name].append(measured)
        daemon.close()
    print(f"{'':20}{'us per call':>12}{'signed':>12}{'more':>10}{'ratio':>8}")
    for plain, signed in pairs:
        one, other = (statistics.median(found[name]) for name in (plain, signed))
        more = statistics.median(b - a for a, b in zip(found[plain], found[signed]))
        ratio = statistics.median(b / a for a, b in zip(found[plain], found[signed]))
        print(f"{plain:20}{one:12.0f}{other:12.0f}{more:10.0f}{ratio:8.3f}")
    print(f"load of the machine {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    sys.exit(main())

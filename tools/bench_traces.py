"""Measures the cost of traces: the daemon's processor time per call without traces, and with a share of the calls
sampled."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from harness import Daemon, die_with_parent  # noqa: E402
from tiny_models import Identity, write_model  # noqa: E402
from tools.processor import spent  # noqa: E402

# A collector that discards everything, so that the other core is left to the clients.
SINK = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def start(build, repository, folder, port, share):
    os.environ["SACCADE_BUILD_DIR"] = str(build)
    traces = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_TRACES_SAMPLER": "traceidratio",
              "OTEL_TRACES_SAMPLER_ARG": str(share)}
    return Daemon(repository, log_folder=folder, environment=traces if share is not None else {}).await_ready()


def load(generator, daemon, seconds):
    """Returns (the daemon's microseconds per call, calls per second)."""
    before = spent(daemon.process.pid)
    ran = subprocess.run([generator, "load", "--url", daemon.grpc_address, "--model", "identity", "--shape", "1,1,1,8,8",
                          "--clients", "8", "--seconds", str(seconds)], capture_output=True, text=True, check=True)
    found = json.loads(ran.stdout)
    calls = len(found["latencies_us"])
    assert calls and not found["failed"], found["failure"]
    return (spent(daemon.process.pid) - before) / calls * 1e6, calls / found["elapsed_s"]


def take_turns(daemons, arguments):
    """Loads the daemons in turns, and ends them. Returns their rounds by name."""
    found = {name: [] for name in daemons}
    for counted in range(-1, arguments.rounds):
        for name, daemon in daemons.items():
            measured = load(arguments.build.resolve() / "bin" / "saccade_bench_load", daemon, arguments.seconds)
            if counted >= 0:
                found[name].append(measured)
    for daemon in daemons.values():
        daemon.close()
    return found


def print_found(found, base_of):
    """Medians, and the medians of the ratios to the daemon that `base_of` names."""
    print(f"{'':28}{'us per call':>12}{'ratio':>8}{'calls/s':>12}{'ratio':>8}")
    for name, rounds in found.items():
        cells = []
        for what, form in ((0, "12.2f"), (1, "12.0f")):
            values = [one[what] for one in rounds]
            ratio = statistics.median(one[what] / other[what] for one, other in zip(rounds, found[base_of(name)]))
            cells.append(f"{statistics.median(values):{form}}{ratio:8.3f}")
        print(f"{name:28}{''.join(cells)}")


def add_turns(parser):
    parser.add_argument("--seconds", type=float, default=2, help="duration for each daemon in each round (default 2)")
    parser.add_argument("--rounds", type=int, default=8, help="number of rounds in which the daemons take turns (default 8)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help=argparse.SUPPRESS)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench traces", description=__doc__)
    add_turns(parser)
    parser.add_argument("--against", type=pathlib.Path, help="another build to compare with")
    arguments = parser.parse_args()
    builds = {"": arguments.build.resolve()}
    if arguments.against:
        builds["against, "] = arguments.against.resolve()
    sink = subprocess.Popen([sys.executable, "-c", SINK], stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
    port = sink.stdout.readline().strip()
    with tempfile.TemporaryDirectory() as folder:
        write_model(pathlib.Path(folder) / "models", "identity", Identity(), max_batch_size=8)
        shares = {"no traces": None, "none sampled": 0, "a tenth sampled": 0.1, "all sampled": 1}
        daemons = {name + kind: start(build, pathlib.Path(folder) / "models", folder, port, share)
                   for kind, share in shares.items() for name, build in builds.items()}
        found = take_turns(daemons, arguments)
    sink.kill()
    sink.wait()
    print_found(found, lambda name: ("against, " if name.startswith("against, ") else "") + "no traces")


if __name__ == "__main__":
    main()

"""The measurements: each function makes one part of the page."""

import contextlib
import pathlib
import subprocess

import numpy
import torch
from PIL import Image

from models.bench.bench_models import Served
from models.reference import build as build_network
from tools.bench_server import servers, triton_models
from tools.bench_server.bench import HEAD, MANY, SIZES, measured, tenths, times, whole
from tools.bench_server.identity import by_h2load, overhead
from tools.bench_server.load import Measurement, take_turns
from tools.bench_server.precision import by_precision
from tools.bench_server.servers import write_model

DEMO = pathlib.Path("models/demo/repository/sanet_shapes")
DEMO_OPTIONS = {"classes": "10", "width": "0.25", "input_size": "64"}


def peers(bench):
    """Compares with the real Triton on the same two models, with this project's load generator and perf_analyzer."""
    if reason := bench.peers.missing():
        bench.page.note(f"Triton and perf_analyzer were not measured: {reason}.")
        return
    ours, theirs = bench.repository("ours"), bench.repository("theirs")
    write_model(ours, "identity", {"architecture": "identity"})
    weights = DEMO / "1" / "weights.safetensors"
    write_model(ours, "network", {"architecture": "sanet", **DEMO_OPTIONS}, weights.read_bytes())
    triton_models.write_identity(theirs)
    triton_models.write_network(theirs, "network", "sanet", DEMO_OPTIONS, weights, (3, 64, 64), torch.get_num_threads())
    try:
        with servers.daemon(bench.build, ours) as daemon, bench.peers.serve(theirs) as triton, \
                servers.echo(bench.build) as echo:
            candidates = {"Triton": triton, "saccaded": daemon}
            beside_triton(bench, candidates, echo)
            by_perf_analyzer(bench, candidates)
    except servers.DidNotStart as error:
        bench.page.note(f"Triton and perf_analyzer could not be measured here: {error}")


def beside_triton(bench, candidates, echo):
    rows, slow_rows = [], []
    for model, size, shape, goals in (("identity", "256 B", SIZES["256 B"], [2.5]),
                                      ("identity", "150 kB", SIZES["150 kB"], [2.5, 2]),
                                      ("network", "48 kB", (1, 3, 64, 64), [1.15])):
        # Bare gRPC shows what the machine can do at most.
        bare = {"bare gRPC": echo} if model == "identity" else {}
        found = bench.against({**candidates, **bare}, model, shape, MANY)
        rows += [[model, size, str(MANY), name, *measured(found[name], found["Triton"])] for name in found]
        for least in goals:
            bench.page.goal(f"{model}, {size}, {MANY} clients: calls/s, against Triton",
                            found["saccaded"].rate / found["Triton"].rate, least=least)
        # An open loop at half of Triton's maximum rate, for both servers.
        rate = found["Triton"].rate / 2
        half = bench.against(candidates, model, shape, MANY, rate=rate)
        slow_rows += [[model, size, whole(rate), name, whole(half[name].p50), whole(half[name].p99),
                       tenths(half[name].processor), times(half[name].p99 / half["Triton"].p99)] for name in half]
        bench.page.goal(f"{model}, {size}, half of Triton's load: p99, against Triton",
                        half["saccaded"].p99 / half["Triton"].p99, most=0.6)
    bench.page.table("Against Triton, closed loop", ["model", "sent", "clients", *HEAD], rows,
                     "nvidia-pytriton's tritonserver with its Python backend, dynamic batching on; the network is the "
                     "demo's `sanet_shapes`, there as frozen TorchScript. Bare gRPC is what this machine lets through "
                     "at all, the clients' work included: where it is not 2.5 times as fast, nothing behind it can be.")
    bench.page.table("Against Triton, at half its load", ["model", "sent", "calls/s asked", "", "p50", "p99", "CPU a call",
                     "p99, against"], slow_rows,
                     "An open loop, at random moments; latencies count from when a call was due.")


def by_perf_analyzer(bench, candidates):
    rows = []
    # saccaded's metadata includes the batch dimension.
    shapes = {"Triton": (3, 64, 64), "saccaded": (1, 3, 64, 64)}
    for clients in (1, MANY):
        found = {}
        for name, server in candidates.items():
            found[name] = bench.peers.perf_analyzer(server.url, "network", shapes[name], clients, bench.seconds)
        base = found["Triton"]
        rows += [[str(clients), name, whole(p50), whole(p99), whole(rate), times(rate / base[0])]
                 for name, (rate, p50, p99) in found.items()]
    bench.page.table("By perf_analyzer", ["clients", "", "p50", "p99", "calls/s", "calls/s, against"], rows,
                     "tritonclient 2.50.0's own program, the network of the table above; one candidate after the "
                     "other.")


def busy(bench):
    """Compares a slow network with the same batches in a plain loop."""
    batch, side = 4, 224
    options = {"attention": "none"}
    torch.manual_seed(1)
    network = build_network("expatt_resnet50", **options).eval()
    pixels = torch.full((batch, 3, side, side), 0.25)
    served = Served(bench.build, "expatt_resnet50", options, network, pixels, torch.get_num_threads())
    with contextlib.closing(served):
        weights = pathlib.Path(served.folder.name) / "weights"
        root = bench.repository("busy")
        write_model(root, "resnet", {"architecture": "expatt_resnet50", **options}, weights.read_bytes(),
                    max_batch_size=batch)
        with servers.daemon(bench.build, root) as daemon:
            served.run()
            bare = Loop(served.run, batch)
            found = take_turns({
                "in a loop": bare,
                "saccaded": lambda seconds: bench.load(daemon.url, "resnet", 2 * batch, seconds, shape=(1, 3, side, side)),
            }, 2 * bench.seconds, bench.rounds)
    share = found["saccaded"].rate / bare.rate
    bench.page.goal("ResNet-50, batches of 4: pictures/s, against a bare loop", share, least=0.98)
    bench.page.table("A network that takes its time", ["", "pictures/s", "against"],
                     [["in a loop", f"{bare.rate:.2f}", "1.00"],
                      ["saccaded", f"{found['saccaded'].rate:.2f}", times(share)]],
                     f"ResNet-50 at 224 x 224, {1000 * batch / bare.rate:.0f} ms a batch of {batch}: passes one after "
                     f"the other in a process of their own, and {2 * batch} clients of one picture each.")


class Loop:
    """A candidate that runs forward passes one after the other."""

    def __init__(self, run, pictures):
        self.run, self.pictures, self.milliseconds, self.passes = run, pictures, 0, 0

    def __call__(self, seconds):
        took = []
        while sum(took) < 1000 * seconds:
            took.append(self.run())
        self.milliseconds += sum(took)
        self.passes += len(took)
        return Measurement([1000 * each for each in took], sum(took) / 1000)

    @property
    def rate(self):
        return 1000 * self.passes * self.pictures / self.milliseconds


def jpeg(bench):
    """Measures pictures that must be decoded, with one core for decoding and one for the network."""
    batch = 8
    torch.manual_seed(1)
    network = build_network("sanet").eval()
    served = Served(bench.build, "sanet", {}, network, torch.full((batch, 3, 224, 224), 0.25), 1)
    rows = []
    with contextlib.closing(served):
        weights = (pathlib.Path(served.folder.name) / "weights").read_bytes()
        root = bench.repository("jpeg")
        write_model(root, "sanet", {"architecture": "sanet"}, weights, max_batch_size=batch)
        with servers.daemon(bench.build, root, "--decode-threads", 1, "--threads-per-instance", 1) as daemon:
            served.run()
            for width, height in ((640, 480), (4000, 3000)):
                file = photograph(bench.folder / f"{width}.jpg", width, height)
                compute, decode = Loop(served.run, batch), Decode(bench.build, file)
                found = take_turns({
                    "decode": decode, "compute": compute,
                    "saccaded": lambda seconds: bench.load(daemon.url, "sanet", 2 * batch, seconds, file=file),
                }, bench.seconds, bench.rounds)
                slower = min(decode.rate, compute.rate)
                share = found["saccaded"].rate / slower
                rows.append([f"{width} x {height}", f"{file.stat().st_size / 1e3:,.0f} kB", f"{decode.rate:.1f}",
                             f"{compute.rate:.1f}", f"{found['saccaded'].rate:.1f}", times(share)])
                bench.page.goal(f"JPEG, {width} x {height}: pictures/s, against the slower of its two stages", share,
                                least=0.95)
    bench.page.table("JPEG in", ["", "file", "decoding alone", "computing alone", "saccaded", "against the slower"],
                     rows, f"Pictures a second. SANet at 224 x 224 in batches of {batch}; decoding and computing have "
                     "one thread each, alone and in the daemon. Both cores have to be free for it.")


class Decode:
    """A candidate that decodes on one thread."""

    def __init__(self, build, file):
        self.program, self.file, self.pictures, self.seconds = build / "bin" / "saccade_time_decode", file, 0, 0

    def __call__(self, seconds):
        command = [self.program, self.file, "224", str(seconds)]
        told = subprocess.run(command, capture_output=True, text=True, check=True)
        pictures, took = told.stdout.split()
        self.pictures += int(pictures)
        self.seconds += float(took)
        return Measurement([1e6 * float(took) / int(pictures)] * int(pictures), float(took))

    @property
    def rate(self):
        return self.pictures / self.seconds


def photograph(path, width, height):
    """Writes a smooth picture with a little noise, similar to a photograph."""
    random = numpy.random.default_rng(1)
    coarse = Image.fromarray(random.integers(0, 256, (height // 40, width // 40, 3), dtype=numpy.uint8))
    pixels = numpy.asarray(coarse.resize((width, height), Image.BICUBIC), numpy.int16)
    pixels = pixels + random.normal(0, 4, pixels.shape).astype(numpy.int16)
    Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8)).save(path, quality=90)
    return path


PARTS = {"overhead": overhead, "h2load": by_h2load, "peers": peers, "busy": busy, "jpeg": jpeg,
         "precision": by_precision}

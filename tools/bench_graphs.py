"""Times a graph, ResNet-50 as ONNX, through the daemon, by OpenVINO's own Python package and by its benchmark_app, with the same
threads.

The network has torchvision's architecture and random weights. Both get the same tensors, and before timing both answers are compared
with PyTorch's. They take turns, round after round, so that other load on the machine affects both. Prints medians.

"request" is a whole ModelInfer over gRPC on this machine, with the tensors in the message; "pass" is the part of it that the
daemon's statistics call compute_infer; "openvino" is a synchronous inference in a Python process, tuned for latency, whose threads
OpenVINO ties to cores, and "unpinned" the same without that. "processor" is the processor time of the process that computes, the
daemon's for whole requests; it depends least on what else the machine does.

A second table has benchmark_app, which runs in a process of its own and takes turns with the daemon, --rounds times. With the hint
"latency" both have one inference at a time, and the table has medians of their times. With the hint "throughput" benchmark_app has as
many as OpenVINO thinks best, and the daemon gets as many requests at once as make two full batches; the table has pictures per second.
The daemon's client runs on the same cores, benchmark_app has none.
"""

import argparse
import concurrent.futures
import datetime
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import openvino
import torch
import torchvision
import tritonclient.grpc as triton

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

import onnx_files as onnx  # noqa: E402
from harness import Daemon  # noqa: E402
from tools.bench_server.page import machine  # noqa: E402
from tools.benchmark_app import benchmark_app  # noqa: E402
from tools.markdown import table  # noqa: E402

HEAD = ["precision", "batch", "openvino ms", "unpinned ms", "pass ms", "request ms", "openvino / pass", "unpinned / pass",
        "unpinned / request", "processor ms: unpinned", "daemon", "unpinned / daemon"]
APP_HEAD = ["precision", "batch", "benchmark_app ms", "pass ms", "request ms", "benchmark_app / pass", "benchmark_app / request",
            "benchmark_app 1/s", "daemon 1/s", "daemon / benchmark_app"]
LARGEST_BATCH = 8
PRECISIONS = {"float32": "f32", "bfloat16": "bf16"}
TOLERANCE = {"float32": 1e-3, "bfloat16": 5e-2}


class Writer:
    """Collects the nodes and weights of a network, with batch norms folded into convolutions."""

    def __init__(self):
        self.nodes, self.weights, self.count = [], [], 0

    def add(self, operator, inputs, **attributes):
        self.count += 1
        name = f"t{self.count}"
        self.nodes.append(onnx.node(operator, inputs, [name], **attributes))
        return name

    def weight(self, values):
        self.count += 1
        self.weights.append(onnx.tensor(f"w{self.count}", values.detach().numpy()))
        return f"w{self.count}"

    def convolution(self, x, conv, norm):
        folded = torch.nn.utils.fuse_conv_bn_eval(conv, norm)
        pads = [*conv.padding, *conv.padding]
        return self.add("Conv", [x, self.weight(folded.weight), self.weight(folded.bias)], kernel_shape=list(conv.kernel_size),
                        strides=list(conv.stride), pads=pads)

    def block(self, x, block):
        shortcut = x if block.downsample is None else self.convolution(x, *block.downsample)
        x = self.add("Relu", [self.convolution(x, block.conv1, block.bn1)])
        x = self.add("Relu", [self.convolution(x, block.conv2, block.bn2)])
        return self.add("Relu", [self.add("Add", [self.convolution(x, block.conv3, block.bn3), shortcut])])


def as_onnx(network):
    """torchvision's ResNet of bottlenecks, as exporters write it in eval mode."""
    made = Writer()
    x = made.add("Relu", [made.convolution("x", network.conv1, network.bn1)])
    x = made.add("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for stage in (network.layer1, network.layer2, network.layer3, network.layer4):
        for block in stage:
            x = made.block(x, block)
    x = made.add("Flatten", [made.add("GlobalAveragePool", [x])], axis=1)
    weight, bias = made.weight(network.fc.weight), made.weight(network.fc.bias)
    made.nodes.append(onnx.node("Gemm", [x, weight, bias], ["y"], transB=1))
    return onnx.model(made.nodes, [onnx.value("x", "float32", ["n", 3, 224, 224])], [onnx.value("y", "float32", ["n", 1000])], made.weights)


def write(root, content):
    for precision in PRECISIONS:
        folder = root / precision / "1"
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(content)
        (folder.parent / "config.pbtxt").write_text(
            f"backend: 'onnxruntime' max_batch_size: {LARGEST_BATCH}\n"
            "input { name: 'x' data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }\noutput { name: 'y' data_type: TYPE_FP32 dims: [ 1000 ] }\n"
            f"parameters {{ key: 'precision' value {{ string_value: '{precision}' }} }}\n")


class Served:
    def __init__(self, client, model, process):
        self.client, self.model, self.process = client, model, process

    def __call__(self, pixels):
        tensor = triton.InferInput("x", list(pixels.shape), "FP32")
        tensor.set_data_from_numpy(pixels)
        return self.client.infer(self.model, [tensor]).as_numpy("y")

    def computed(self):
        """Nanoseconds of passes, and their number."""
        found = self.client.get_inference_statistics(self.model).model_stats[0]
        return found.inference_stats.compute_infer.ns, found.execution_count

    def processor(self):
        fields = pathlib.Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Bare:
    def __init__(self, path, precision, threads, **more):
        settings = {"INFERENCE_PRECISION_HINT": PRECISIONS[precision], "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, **more}
        self.request = openvino.Core().compile_model(path, "CPU", settings).create_infer_request()

    def __call__(self, pixels):
        return self.request.infer({0: pixels}, share_inputs=True)[0]


def milliseconds(call, pixels):
    start = time.perf_counter()
    call(pixels)
    return 1e3 * (time.perf_counter() - start)


def compare(served, bare, unpinned, pixels, seconds, passes):
    """Medians of openvino, unpinned, the daemon's passes and whole requests; processor time of unpinned and the daemon."""
    theirs, loose, requests, computed, spent_by = [], [], [], [], [0.0, 0.0]
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(computed) < 5:
        theirs += [milliseconds(bare, pixels) for _ in range(passes)]
        start = time.process_time()
        loose += [milliseconds(unpinned, pixels) for _ in range(passes)]
        spent_by[0] += time.process_time() - start
        before, start = served.computed(), served.processor()
        requests += [milliseconds(served, pixels) for _ in range(passes)]
        spent_by[1] += served.processor() - start
        spent, count = (now - then for now, then in zip(served.computed(), before))
        assert count == passes, "a request was not a pass of its own"
        computed.append(1e-6 * spent / count)
    return [statistics.median(each) for each in (theirs, loose, computed, requests)], [1e3 * each / len(requests) for each in spent_by]


def flood(served, pixels, seconds):
    """Items per second that the daemon answers to two full batches of requests at once."""
    count = 2 * LARGEST_BATCH // len(pixels)
    end = time.monotonic() + seconds

    def send():
        answered = 0
        while time.monotonic() < end:
            served(pixels)
            answered += len(pixels)
        return answered

    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(max_workers=count) as pool:
        answered = sum(run.result() for run in [pool.submit(send) for _ in range(count)])
    return answered / (time.monotonic() - start)


def one_at_a_time(served, pixels, seconds):
    """Median milliseconds of a request and of its pass."""
    requests, passes, end = [], [], time.monotonic() + seconds
    while time.monotonic() < end:
        spent, count = served.computed()
        requests.append(milliseconds(served, pixels))
        later, more = served.computed()
        assert more == count + 1, "a request was not a pass of its own"
        passes.append(1e-6 * (later - spent))
    return statistics.median(requests), statistics.median(passes)


def beside_app(served, path, precision, pixels, arguments):
    """Cells of the second table."""
    seconds, times, rates = arguments.seconds / arguments.rounds, [], []
    for _ in range(arguments.rounds):
        alone, _ = benchmark_app(path, pixels.shape, PRECISIONS[precision], "latency", arguments.threads, seconds)
        times.append((alone, *one_at_a_time(served, pixels, seconds)))
        _, most = benchmark_app(path, pixels.shape, PRECISIONS[precision], "throughput", arguments.threads, seconds)
        rates.append((most, flood(served, pixels, seconds)))
    (app, request, computed), (most, ours) = ([statistics.median(column) for column in zip(*each)] for each in (times, rates))
    return [f"{app:.1f}", f"{computed:.1f}", f"{request:.1f}", f"{app / computed:.2f}", f"{app / request:.2f}", f"{most:.1f}", f"{ours:.1f}",
            f"{ours / most:.2f}"]


def rows_of(root, network, arguments):
    """A row of each table for each case."""
    threads = arguments.threads
    chance = numpy.random.default_rng(1)
    with Daemon(root, f"--threads-per-instance={threads}", log_folder=root.parent) as daemon:
        daemon.await_ready()
        with triton.InferenceServerClient(daemon.grpc_address) as client:
            for precision in PRECISIONS:
                served, path = Served(client, precision, daemon.process.pid), root / precision / "1" / "model.onnx"
                bare, unpinned = Bare(path, precision, threads), Bare(path, precision, threads, ENABLE_CPU_PINNING=False)
                for batch in (1, LARGEST_BATCH):
                    pixels = chance.normal(size=(batch, 3, 224, 224)).astype("float32")
                    with torch.inference_mode():
                        expected = network(torch.from_numpy(pixels)).numpy()
                    for call in (served, bare, unpinned):
                        error = abs(call(pixels) - expected).max() / abs(expected).max()
                        assert error < TOLERANCE[precision], f"{type(call).__name__} differs from PyTorch by {error:.2g} in {precision}"
                    medians, (alone, whole) = compare(served, bare, unpinned, pixels, arguments.seconds, max(1, 8 // batch))
                    theirs, loose, computed, request = medians
                    ratios = theirs / computed, loose / computed, loose / request
                    yield ([precision, batch, *(f"{each:.1f}" for each in medians), *(f"{each:.2f}" for each in ratios),
                            f"{alone:.1f}", f"{whole:.1f}", f"{alone / whole:.2f}"],
                           [precision, batch, *beside_app(served, path, precision, pixels, arguments)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20,
                        help="for each case in the first table, for each candidate of a case in the second (default 20)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the second table (default 3)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--markdown", type=pathlib.Path)
    arguments = parser.parse_args()
    os.environ.setdefault("SACCADE_BUILD_DIR", "build/release")
    torch.manual_seed(1)
    network = torchvision.models.resnet50().eval()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "models"
        write(root, as_onnx(network))
        rows, beside = zip(*rows_of(root, network, arguments))
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    load = os.getloadavg()[0]
    head = f"# Graphs beside OpenVINO's own package\n\n    ./dev bench graphs {' '.join(sys.argv[1:])}\n\n"
    made = (f"{machine()}, {arguments.threads} threads, OpenVINO {openvino.__version__.split('-')[0]}, {datetime.date.today()}, commit "
            f"{commit}. Load average at the end: {load:.1f}, of which this benchmark is about {arguments.threads}.\n")
    goal = ("The goal is at least 0.98 for `benchmark_app / pass` and `daemon / benchmark_app`. Why no other server is beside them: "
            "[README.md](README.md#how-fast-are-graphs).\n")
    text = "\n".join([head + made, table(HEAD, rows), "", "## Beside benchmark_app", "", goal, table(APP_HEAD, beside), ""])
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text)


if __name__ == "__main__":
    main()

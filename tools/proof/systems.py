"""The systems under test. Each takes numbers of pictures, and calls back once for each with its logits, or with the reason
for which there are none. Their callbacks come on threads of their own."""

import contextlib
import json
import os
import pathlib
import queue
import sys
import tempfile
import threading

import grpc
import numpy
import openvino
import torch
import torchvision

import messages
from models.reference.training import evaluation, export
from models.reference.training.classification import prepare
from models.reference.training.recipes import RECIPES
from tools.bench_server import servers, triton_models

MODEL = "sanet_shapes"
RECIPE = RECIPES[MODEL]
WEIGHTS = export.DEMO / "repository" / MODEL / "1" / "weights.safetensors"
CLASSES = len(RECIPE.task.labels)
SIDE = int(RECIPE.options["input_size"])
MAX_BATCH = 8
WARM_PASSES = 3
CHANNELS = 4
# Requests of the Offline scenario in flight at once, where a query has thousands of samples.
WINDOW = 64
TIMEOUT_SECONDS = 10
BUILD = pathlib.Path(os.environ.get("SACCADE_BUILD_DIR", "build/release"))


class Loop:
    """A bare loop in this process: takes the pictures that wait, at most MAX_BATCH, decodes, prepares and computes them."""

    def __init__(self, files, forward):
        self._files, self._forward = [torch.frombuffer(bytearray(file), dtype=torch.uint8) for file in files], forward
        # Frozen TorchScript is optimised for each size of a batch when it comes for the first times.
        for size in range(1, MAX_BATCH + 1):
            for _ in range(WARM_PASSES):
                forward(torch.zeros(size, 3, SIDE, SIDE))
        self._waiting = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._compute)
        self._thread.start()

    def ask(self, picture, done, windowed=False):
        self._waiting.put((picture, done))

    def _taken(self):
        """The next batch; it is empty at the end."""
        batch = []
        with contextlib.suppress(queue.Empty):
            while len(batch) < MAX_BATCH:
                item = self._waiting.get(block=not batch)
                if item is None:
                    break
                batch.append(item)
        return batch

    def _compute(self):
        while batch := self._taken():
            try:
                decoded = torch.stack([torchvision.io.decode_jpeg(self._files[picture]) for picture, _ in batch])
                logits, failed = self._forward(prepare(decoded)), ""
            except Exception as error:  # whatever it is, every picture of the batch is answered with it
                logits, failed = [None] * len(batch), f"{type(error).__name__}: {error}"
            for (_, done), row in zip(batch, logits):
                done(row, failed)

    def close(self):
        self._waiting.put(None)
        self._thread.join()


def network():
    return evaluation.load(RECIPE, WEIGHTS)


def traced(batch=1):
    with torch.inference_mode():
        return torch.jit.trace(network(), torch.zeros(batch, 3, SIDE, SIDE))


@contextlib.contextmanager
def loop(files, forward):
    made = Loop(files, forward)
    try:
        yield made
    finally:
        made.close()


def bare(files):
    """PyTorch: the network as frozen TorchScript."""
    frozen = torch.jit.freeze(traced())

    def forward(batch):
        with torch.inference_mode():
            return frozen(batch).numpy()

    return loop(files, forward)


def by_openvino(files):
    """OpenVINO's Python package on the same network, tuned for latency, in float32."""
    # Traced with two pictures, so that no size of the batch is taken for a constant.
    model = openvino.convert_model(traced(2), example_input=torch.zeros(2, 3, SIDE, SIDE), input=[-1, 3, SIDE, SIDE])
    compiled = openvino.Core().compile_model(model, "CPU", {
        "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": torch.get_num_threads()})
    return loop(files, lambda batch: compiled(batch.numpy())[0])


def by_class(answer):
    """The logits in the order of the classes. The daemon sends the most probable class first."""
    logits = numpy.full(CLASSES, numpy.nan, numpy.float32)
    for one in answer.classification.classes:
        logits[one.index] = one.logit
    return logits


class Clients:
    """Clients of a server over gRPC: one call for each picture, with the messages written beforehand."""

    def __init__(self, url, method, requests, answer, read, config=None):
        """`answer` is the class of answers, `read` makes logits of one, and `config` is gRPC's service config."""
        options = [("grpc.use_local_subchannel_pool", 1), *([("grpc.service_config", json.dumps(config))] if config else [])]
        self._requests, self._read = [request.SerializeToString() for request in requests], read
        self._channels = [grpc.insecure_channel(url, options) for _ in range(CHANNELS)]
        self._calls = [channel.unary_unary(method, response_deserializer=answer.FromString) for channel in self._channels]
        self._next, self._room = 0, threading.Semaphore(WINDOW)

    def ask(self, picture, done, windowed=False):
        """With `windowed`, blocks while WINDOW requests are in flight."""
        if windowed:
            self._room.acquire()
        self._next += 1

        def ended(call):
            if windowed:
                self._room.release()
            # The code is OK for an answer only.
            if call.code() is grpc.StatusCode.OK:
                done(self._read(call.result()), "")
            else:
                done(None, f"{call.code().name}: {call.details()}")

        self._calls[self._next % CHANNELS].future(self._requests[picture], timeout=TIMEOUT_SECONDS).add_done_callback(ended)

    def close(self):
        for channel in self._channels:
            channel.close()


def of_daemon(url, files, config=None):
    """The daemon's typed API, JPEG in and classes out."""
    requests = [messages.predict_request(model=MODEL, encoded=file, classification={"top_k": CLASSES}) for file in files]
    return contextlib.closing(Clients(url, "/saccade.v1.Vision/Predict", requests, messages.message("saccade.v1.PredictResponse"),
                                      by_class, config))


@contextlib.contextmanager
def saccaded(files):
    with servers.daemon(BUILD, export.DEMO / "repository") as daemon, of_daemon(daemon.url, files) as made:
        yield made


def peers():
    """Triton, from the environment that ./dev makes."""
    return servers.Peers(os.environ.get("SACCADE_BENCH_PEERS", pathlib.Path(sys.prefix).parent / "triton"))


@contextlib.contextmanager
def by_triton(files):
    """The real Triton: its Python backend decodes, prepares and computes as the bare loop does, with dynamic batching and an
    instance of one thread for each core."""
    requests = [messages.infer_request(MODEL, [1, len(file)], file, "UINT8", name="file") for file in files]
    with tempfile.TemporaryDirectory() as root:
        triton_models.write_jpeg(root, MODEL, traced(), threads=1, instances=torch.get_num_threads())
        with peers().serve(root) as server, contextlib.closing(Clients(
                server.url, "/inference.GRPCInferenceService/ModelInfer", requests, messages.message("inference.ModelInferResponse"),
                lambda answer: numpy.frombuffer(answer.raw_output_contents[0], numpy.float32))) as made:
            yield made


class Instant:
    """Answers at once: what is measured of it is what LoadGen and its adapter cost by themselves."""

    def ask(self, picture, done, windowed=False):
        done(numpy.zeros(CLASSES, numpy.float32), "")


@contextlib.contextmanager
def instant(files):
    yield Instant()


@contextlib.contextmanager
def echo(files):
    """A bare gRPC server in C++ that sends back what it is sent: what is measured of it is the cost of the clients, too."""
    requests = [messages.infer_request("echo", [len(file)], file, "UINT8") for file in files]
    with servers.echo(BUILD) as server, contextlib.closing(Clients(
            server.url, "/inference.GRPCInferenceService/ModelInfer", requests, messages.message("inference.ModelInferResponse"),
            lambda answer: numpy.zeros(CLASSES, numpy.float32))) as made:
        yield made


SYSTEMS = {"saccaded": saccaded, "PyTorch": bare, "OpenVINO": by_openvino, "Triton": by_triton}
# What limits a measurement if no system does.
STAND_IN_SAMPLES = 10_000
STAND_INS = {"at once": instant, "echo": echo}

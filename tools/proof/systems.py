"""The systems under test. Each takes numbers of pictures, and calls back once for each with its logits, or with the reason
for which there are none. Their callbacks come on threads of their own."""

import contextlib
import os
import pathlib
import queue
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
from tools.bench_server import servers

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


class Daemon:
    """A daemon's clients: its typed API over gRPC, one Predict for each picture, with the messages written beforehand."""

    def __init__(self, url, files, timeout=TIMEOUT_SECONDS):
        request = messages.message("saccade.v1.PredictRequest")
        self._requests = [request(model=MODEL, encoded=file, classification={"top_k": CLASSES}).SerializeToString()
                          for file in files]
        answer = messages.message("saccade.v1.PredictResponse")
        self._channels = [grpc.insecure_channel(url, [("grpc.use_local_subchannel_pool", 1)]) for _ in range(CHANNELS)]
        self._calls = [channel.unary_unary("/saccade.v1.Vision/Predict", response_deserializer=answer.FromString)
                       for channel in self._channels]
        self._timeout, self._next, self._room = timeout, 0, threading.Semaphore(WINDOW)

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
                done(by_class(call.result()), "")
            else:
                done(None, f"{call.code().name}: {call.details()}")

        self._calls[self._next % CHANNELS].future(self._requests[picture], timeout=self._timeout).add_done_callback(ended)

    def close(self):
        for channel in self._channels:
            channel.close()


@contextlib.contextmanager
def saccaded(files, build=pathlib.Path(os.environ.get("SACCADE_BUILD_DIR", "build/release"))):
    with servers.daemon(build, export.DEMO / "repository") as daemon, contextlib.closing(Daemon(daemon.url, files)) as made:
        yield made


class Instant:
    """A stand-in that answers at once: what is measured of it is what LoadGen and the adapter cost by themselves."""

    def ask(self, picture, done, windowed=False):
        done(numpy.zeros(CLASSES, numpy.float32), "")


@contextlib.contextmanager
def instant(files):
    yield Instant()


SYSTEMS = {"saccaded": saccaded, "PyTorch": bare, "OpenVINO": by_openvino}

"""Adds and subtracts tensors of every type through Triton's clients: with and without a batch, over every transport,
with and without shared memory, as tensors and as classes, in every version, and through ensembles."""

import asyncio
import contextlib
import queue
import uuid

import numpy
import pytest
import torch
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import serialize_byte_tensor, triton_to_np_dtype

from ensembles_test import step, write_ensemble
from ensembles_test import tensor as ensemble_tensor
from harness import DEADLINE_SECONDS, Daemon
from programs_test import ALLOW, tensor, write

SIZE = 16
# The types of both inputs, of the sum and of the difference.
TYPES = (
    ("UINT8", "UINT8", "UINT8"), ("INT8", "INT8", "INT8"), ("INT16", "INT16", "INT16"), ("INT32", "INT32", "INT32"),
    ("INT64", "INT64", "INT64"), ("FP16", "FP16", "FP16"), ("FP32", "FP32", "FP32"), ("FP64", "FP64", "FP64"),
    ("FP16", "FP32", "FP32"), ("INT8", "INT32", "INT32"), ("INT32", "INT8", "INT8"), ("INT32", "INT8", "INT16"),
    ("INT32", "FP32", "FP32"), ("FP32", "INT32", "INT32"), ("INT32", "INT16", "INT8"), ("INT64", "FP64", "INT16"),
    ("BYTES", "BYTES", "BYTES"), ("BYTES", "INT32", "INT32"), ("BYTES", "BYTES", "INT32"), ("BYTES", "INT32", "BYTES"),
    ("INT32", "BYTES", "BYTES"),
)
LABELS = [f"label{number}" for number in range(SIZE)]
TORCH = {"UINT8": "uint8", "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT64": "int64", "FP16": "float16",
         "FP32": "float32", "FP64": "float64"}
TRANSPORTS = ("json", "http", "http_aio", "grpc", "grpc_aio", "stream")


class AddSub(torch.nn.Module):
    """Sum and difference in types of their own."""

    def __init__(self, sum_type, difference_type):
        super().__init__()
        self.sum_type, self.difference_type = sum_type, difference_type

    def forward(self, a, b):
        return (a + b).to(self.sum_type), (a - b).to(self.difference_type)


class SubAdd(AddSub):
    """The other version: the difference is the first output."""

    def forward(self, a, b):
        return (a - b).to(self.sum_type), (a + b).to(self.difference_type)


# Programs take texts as a list of all rows' texts, and return such lists.
TEXT_PROGRAM = """
import torch
from typing import List, Tuple

def numbers(texts: List[str]) -> torch.Tensor:
    return torch.tensor([int(text) for text in texts]).view({shape})

def texts(numbers: torch.Tensor) -> List[str]:
    made: List[str] = []
    flat: List[int] = numbers.to(torch.int64).flatten().tolist()
    for number in flat:
        made.append(str(number))
    return made

class Program(torch.nn.Module):
    def forward(self, a: {given}, b: {given}) -> Tuple[{sum}, {difference}]:
        x, y = {read_a}, {read_b}
        return {write_sum}, {write_difference}
"""


def text_program(folder, given, sum_type, difference_type, batched):
    """A scripted program; TorchScript reads its source from a file."""
    python = {name: "List[str]" if name == "BYTES" else "torch.Tensor" for name in (given, sum_type, difference_type)}
    made = lambda name, value: f"texts({value})" if name == "BYTES" else f"({value}).to(torch.{TORCH[name]})"
    read = lambda name: f"numbers({name})" if given == "BYTES" else name
    source = TEXT_PROGRAM.format(shape=f"-1, {SIZE}" if batched else SIZE, given=python[given], sum=python[sum_type], difference=python[difference_type],
                                 read_a=read("a"), read_b=read("b"), write_sum=made(sum_type, "x + y"),
                                 write_difference=made(difference_type, "x - y"))
    path = folder / f"program_{uuid.uuid4().hex}.py"
    path.write_text(source)
    scope = {"__name__": path.stem}
    exec(compile(source, str(path), "exec"), scope)  # noqa: S102
    return scope["Program"]()


def name_of(types, batched):
    return "_".join(types).lower() + ("" if batched else "_nobatch")


def config_of(types):
    proto = ["STRING" if one == "BYTES" else one for one in types]
    labels = "label_filename: 'labels.txt'"
    return (tensor("input", "INPUT0", proto[0], f"[ {SIZE} ]") + tensor("input", "INPUT1", proto[0], f"[ {SIZE} ]")
            + tensor("output", "OUTPUT0", proto[1], f"[ {SIZE} ]", labels)
            + tensor("output", "OUTPUT1", proto[2], f"[ {SIZE} ]") + "version_policy { all {} }\n")


def write_models(root, sources):
    for types in TYPES:
        for batched in (True, False):
            name, size = name_of(types, batched), 8 if batched else 0
            if "BYTES" in types:
                write(root, name, text_program(sources, *types, batched), config_of(types), max_batch_size=size)
            else:
                made = [getattr(torch, TORCH[one]) for one in types[1:]]
                write(root, name, AddSub(*made), config_of(types), max_batch_size=size)
                (root / name / "2").mkdir()
                torch.jit.script(SubAdd(*made)).save(root / name / "2" / "model.pt")
            (root / name / "labels.txt").write_text("\n".join(LABELS) + "\n")


def write_ensembles(root):
    """The add-sub of INT32 alone, behind an identity, and two of them that give the inputs back doubled."""
    proto = "TYPE_INT32"
    inputs = [ensemble_tensor(name, [SIZE], proto) for name in ("INPUT0", "INPUT1")]
    outputs = [ensemble_tensor(name, [SIZE], proto) for name in ("OUTPUT0", "OUTPUT1")]
    named = {name: name for name in ("INPUT0", "INPUT1")}
    for batched in (True, False):
        model, size = name_of(("INT32",) * 3, batched), 8 if batched else 0
        alone = step(model, named, {"OUTPUT0": "OUTPUT0", "OUTPUT1": "OUTPUT1"}).replace("-1", "1")
        write_ensemble(root, f"simple_{size}", inputs, outputs, [alone], max_batch_size=size)
        first = step(model, named, {"OUTPUT0": "sum", "OUTPUT1": "difference"}).replace("-1", "1")
        second = step(model, {"INPUT0": "sum", "INPUT1": "difference"}, {"OUTPUT0": "OUTPUT0", "OUTPUT1": "OUTPUT1"})
        write_ensemble(root, f"sequence_{size}", inputs, outputs, [first, second.replace("-1", "1")], max_batch_size=size)
        fan = [step(f"simple_{size}", named, {"OUTPUT0": "OUTPUT0"}), step(f"simple_{size}", named, {"OUTPUT1": "OUTPUT1"})]
        write_ensemble(root, f"fan_{size}", inputs, outputs, fan, max_batch_size=size)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    write_models(root, tmp_path_factory.mktemp("sources"))
    write_ensembles(root)
    flags = (ALLOW, "--allow-shared-memory", "--warm-up-seconds=0")
    with Daemon(root, *flags, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


class Call:
    """A request over one transport."""

    def __init__(self, daemon, transport):
        self.daemon, self.transport = daemon, transport
        self.over_http = transport in ("json", "http", "http_aio")
        self.api = tritonclient.http if self.over_http else tritonclient.grpc
        self.address = f"127.0.0.1:{daemon.http_port}" if self.over_http else daemon.grpc_address

    def input(self, name, array, data_type):
        made = self.api.InferInput(name, list(array.shape), data_type)
        if self.over_http:
            made.set_data_from_numpy(array, binary_data=self.transport != "json")
        else:
            made.set_data_from_numpy(array)
        return made

    def output(self, name, **options):
        if self.over_http:
            options["binary_data"] = self.transport != "json"
        return self.api.InferRequestedOutput(name, **options)

    def infer(self, model, inputs, outputs=None, version=""):
        send = {"http_aio": self._aio, "grpc_aio": self._aio, "stream": self._stream}.get(self.transport, self._sync)
        return send(model, inputs, outputs, version)

    def _sync(self, model, inputs, outputs, version):
        with self.api.InferenceServerClient(self.address) as client:
            return client.infer(model, inputs, outputs=outputs, model_version=version)

    def _aio(self, model, inputs, outputs, version):
        async def ask():
            async with self.api.aio.InferenceServerClient(self.address) as client:
                return await client.infer(model, inputs, outputs=outputs, model_version=version)

        return asyncio.run(ask())

    def _stream(self, model, inputs, outputs, version):
        answers = queue.Queue()
        with self.api.InferenceServerClient(self.address) as client:
            client.start_stream(lambda result, error: answers.put((result, error)))
            client.async_stream_infer(model, inputs, outputs=outputs, model_version=version)
            result, error = answers.get(timeout=DEADLINE_SECONDS)
            client.stop_stream()
        assert error is None, error
        return result


def numbers(batched, seed):
    """Two tensors whose sums and differences fit every type, and are not negative."""
    chance = numpy.random.default_rng(seed)
    shape = (3, SIZE) if batched else (SIZE,)
    return chance.integers(30, 60, shape), chance.integers(0, 30, shape)


def as_type(array, data_type):
    if data_type == "BYTES":
        return numpy.array([str(one).encode() for one in array.flatten()], numpy.object_).reshape(array.shape)
    return array.astype(triton_to_np_dtype(data_type))


def assert_same(found, expected, data_type):
    assert found.dtype == as_type(expected, data_type).dtype and found.shape == expected.shape
    if data_type == "BYTES":
        # Triton's client makes str of what comes as JSON, and bytes of the rest.
        found = numpy.array([int(one) for one in found.flatten()]).reshape(found.shape)
        data_type = "INT64"
    assert found.tolist() == as_type(expected, data_type).tolist()


@pytest.mark.parametrize("batched", [True, False], ids=["batch", "nobatch"])
@pytest.mark.parametrize("types", TYPES, ids=lambda types: "_".join(types))
def test_tensors(daemon, types, batched):
    for number, transport in enumerate(TRANSPORTS):
        if transport == "json" and "FP16" in types:
            continue  # JSON has no FP16
        call = Call(daemon, transport)
        a, b = numbers(batched, number)
        inputs = [call.input(name, as_type(array, types[0]), types[0]) for name, array in (("INPUT0", a), ("INPUT1", b))]
        outputs = [call.output("OUTPUT0"), call.output("OUTPUT1")]
        answer = call.infer(name_of(types, batched), inputs, outputs, version="1")
        assert_same(answer.as_numpy("OUTPUT0"), a + b, types[1])
        assert_same(answer.as_numpy("OUTPUT1"), a - b, types[2])
        alone = call.infer(name_of(types, batched), inputs, outputs[1:], version="1")
        assert alone.as_numpy("OUTPUT0") is None
        assert_same(alone.as_numpy("OUTPUT1"), a - b, types[2])


@contextlib.contextmanager
def regions(client, sizes):
    """Registered regions of shared memory: names and handles."""
    made = []
    try:
        for size in sizes:
            name = f"saccade_cases_{uuid.uuid4().hex}"
            made.append((name, shm.create_shared_memory_region(name, "/" + name, size)))
            client.register_system_shared_memory(name, "/" + name, size)
        yield made
    finally:
        client.unregister_system_shared_memory()
        for _, handle in made:
            shm.destroy_shared_memory_region(handle)


@pytest.mark.parametrize("transport", ["http", "grpc", "stream"])
@pytest.mark.parametrize("batched", [True, False], ids=["batch", "nobatch"])
@pytest.mark.parametrize("types", TYPES, ids=lambda types: "_".join(types))
def test_shared_memory(daemon, types, batched, transport):
    call = Call(daemon, transport)
    a, b = numbers(batched, 7)
    given = [as_type(array, types[0]) for array in (a, b)]
    if types[0] == "BYTES":
        given = [serialize_byte_tensor(array) for array in given]
    raw = [array.item() if array.dtype == numpy.object_ else array.tobytes() for array in given]
    with call.api.InferenceServerClient(call.address) as client, regions(client, [len(raw[0]), len(raw[1]), 4096, 4096]) as made:
        inputs, outputs = [], []
        for number, (name, handle) in enumerate(made):
            if number < 2:
                shm.set_shared_memory_region(handle, [numpy.frombuffer(raw[number], numpy.uint8)])
                inputs.append(call.api.InferInput(f"INPUT{number}", list(a.shape), types[0]))
                inputs[-1].set_shared_memory(name, len(raw[number]))
            else:
                outputs.append(call.api.InferRequestedOutput(f"OUTPUT{number - 2}"))
                outputs[-1].set_shared_memory(name, 4096)
        answer = call.infer(name_of(types, batched), inputs, outputs, version="1")
        for number, expected in enumerate((a + b, a - b)):
            output, data_type = answer.get_output(f"OUTPUT{number}"), types[1 + number]
            shape = output["shape"] if isinstance(output, dict) else list(output.shape)
            # A copy, because pytest shows what differs after the region is gone.
            found = shm.get_contents_as_numpy(made[2 + number][1], triton_to_np_dtype(data_type), shape).copy()
            assert_same(found, expected, data_type)


@pytest.mark.parametrize("batched", [True, False], ids=["batch", "nobatch"])
@pytest.mark.parametrize("types", [types for types in TYPES if types[1] not in ("BYTES", "FP16")],
                         ids=lambda types: "_".join(types))
def test_classes(daemon, types, batched):
    a, b = numbers(batched, 3)
    sums = (a + b).reshape(-1, SIZE)
    for transport in TRANSPORTS[1:]:
        call = Call(daemon, transport)
        inputs = [call.input(name, as_type(array, types[0]), types[0]) for name, array in (("INPUT0", a), ("INPUT1", b))]
        answer = call.infer(name_of(types, batched), inputs, [call.output("OUTPUT0", class_count=3)], version="1")
        found = answer.as_numpy("OUTPUT0")
        assert found.shape == ((3, 3) if batched else (3,))
        for row, classes in zip(sums, found.reshape(-1, 3)):
            expected = sorted(range(SIZE), key=lambda index: (-row[index], index))[:3]
            parts = [one.decode().split(":") for one in classes]
            assert [int(index) for _, index, _ in parts] == expected
            assert [float(value) for value, _, _ in parts] == [row[index] for index in expected]
            assert [label for _, _, label in parts] == [LABELS[index] for index in expected]


@pytest.mark.parametrize("batched", [True, False], ids=["batch", "nobatch"])
def test_versions(daemon, batched):
    """Version 2 swaps the outputs, and is the one that a request without a version gets."""
    types = ("INT32",) * 3
    a, b = numbers(batched, 5)
    for transport in TRANSPORTS:
        call = Call(daemon, transport)
        inputs = [call.input(name, as_type(array, "INT32"), "INT32") for name, array in (("INPUT0", a), ("INPUT1", b))]
        for version, first in (("1", a + b), ("2", a - b), ("", a - b)):
            assert_same(call.infer(name_of(types, batched), inputs, version=version).as_numpy("OUTPUT0"), first, "INT32")


@pytest.mark.parametrize("size", [8, 0], ids=["batch", "nobatch"])
@pytest.mark.parametrize("kind", ["simple", "sequence", "fan"])
def test_ensembles(daemon, kind, size):
    a, b = numbers(size > 0, 9)
    expected = (2 * a, 2 * b) if kind == "sequence" else (a + b, a - b)
    for transport in TRANSPORTS:
        call = Call(daemon, transport)
        inputs = [call.input(name, as_type(array, "INT32"), "INT32") for name, array in (("INPUT0", a), ("INPUT1", b))]
        answer = call.infer(f"{kind}_{size}", inputs, [call.output("OUTPUT0"), call.output("OUTPUT1")])
        for number in (0, 1):
            assert_same(answer.as_numpy(f"OUTPUT{number}"), expected[number], "INT32")

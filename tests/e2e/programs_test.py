"""Tests programs exported by PyTorch, with the names of the configuration, through Triton's client."""

import concurrent.futures
import contextlib
import pathlib
import threading
from typing import Optional

import numpy
import pytest
import torch
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

from harness import Daemon, eventually, run_to_end

ALLOW = "--allow-executable-models"


class AddSub(torch.nn.Module):
    def forward(self, a, b):
        return a + b, a - b


class Identity(torch.nn.Module):
    def forward(self, x):
        return x


class Texts(torch.nn.Module):
    def forward(self, texts: list[str]) -> list[str]:
        return [text + "!" for text in texts]


class Picky(torch.nn.Module):
    """Fails for a batch that contains a 13, and is slow for a 42, so that requests gather in the queue."""

    def forward(self, x):
        assert not bool((x == 13).any()), "there is a 13"
        if bool((x == 42).any()):
            for _ in range(300):
                x = x + 0 * torch.rand(1000, 1000).sum()  # which no optimizer may remove
        return 2 * x


class Masked(torch.nn.Module):
    def forward(self, x, mask: Optional[torch.Tensor] = None):
        return x + 1 if mask is None else x * mask


class Wrong(torch.nn.Module):
    def forward(self, x):
        return x.double()


def tensor(kind, name, data_type, dims, more=""):
    return f"{kind} {{ name: '{name}' data_type: TYPE_{data_type} dims: {dims} {more} }}\n"


def write(root, name, module, config, max_batch_size=8, file="model.pt"):
    folder = root / name / "1"
    folder.mkdir(parents=True)
    if isinstance(module, pathlib.Path):
        (folder / file).write_bytes(module.read_bytes())
    else:
        torch.jit.script(module).save(folder / file)
    text = f"backend: 'pytorch' max_batch_size: {max_batch_size}\n{config}"
    (root / name / "config.pbtxt").write_text(text)


def of_add_sub(data_type, dims="[ 16 ]"):
    return "".join(
        tensor(kind, f"{kind.upper()}__{i}", data_type, dims) for kind in ("input", "output") for i in (0, 1)
    )


IDENTITY_TYPES = ("BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP64", "BF16")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    rows = torch.export.Dim("rows", min=1, max=64)
    exported = torch.export.export(AddSub(), (torch.ones(2, 16), torch.ones(2, 16)), dynamic_shapes=({0: rows}, {0: rows}))
    path = tmp_path_factory.mktemp("package") / "model.pt2"
    # Half of the time is spent on detecting the compiler's features, and most of the rest on precompiling headers.
    with torch._inductor.config.patch({"cpp.vec_isa_ok": False, "cpp_cache_precompile_headers": False}):
        torch._inductor.aoti_compile_and_package(exported, package_path=str(path))
    return path


@pytest.fixture(scope="module")
def programs(tmp_path_factory, package):
    root = tmp_path_factory.mktemp("programs")
    write(root, "ints", AddSub(), of_add_sub("INT32"))
    write(root, "floats", AddSub(), of_add_sub("FP32", "[ -1 ]"))
    write(root, "packaged", package, of_add_sub("FP32"), file="model.pt2")
    write(root, "aoti", package, "platform: 'torch_aoti'\n" + of_add_sub("FP32"), file="model.pt2")
    write(root, "whole", AddSub(), of_add_sub("FP32", "[ -1, 2 ]"), max_batch_size=0)
    for name in IDENTITY_TYPES:
        write(root, name, Identity(), tensor("input", "x", name, "[ -1 ]") + tensor("output", "y", name, "[ -1 ]"))
    texts = tensor("input", "INPUT__0", "STRING", "[ 2 ]") + tensor("output", "OUTPUT__0", "STRING", "[ 2 ]")
    write(root, "texts", Texts(), texts)
    warmup = "model_warmup { name: 'w' batch_size: 2 inputs { key: 'x' value { data_type: TYPE_FP32 dims: [ 4 ] random_data: true } } }"
    picky = tensor("input", "x", "FP32", "[ -1 ]") + tensor("output", "y", "FP32", "[ -1 ]")
    write(root, "picky", Picky(), picky + "dynamic_batching { max_queue_delay_microseconds: 200000 }\n" + warmup)
    labelled = tensor("output", "y", "FP32", "[ 3 ]", "label_filename: 'classes.txt' reshape { shape: [ 1, 3 ] }")
    write(root, "labelled", Identity(), tensor("input", "x", "FP32", "[ 3 ]", "reshape { shape: [ 1, 3 ] }") + labelled)
    (root / "labelled" / "classes.txt").write_text("cat\ndog\nowl\n")
    masked = tensor("input", "x", "FP32", "[ -1 ]") + tensor("input", "mask", "FP32", "[ -1 ]", "optional: true")
    write(root, "masked", Masked(), masked + tensor("output", "y", "FP32", "[ -1 ]"))
    write(root, "wrong", Wrong(), tensor("input", "x", "FP32", "[ -1 ]") + tensor("output", "y", "FP32", "[ -1 ]"))
    return root


@pytest.fixture(scope="module")
def daemon(programs, tmp_path_factory):
    with Daemon(programs, ALLOW, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture(scope="module")
def client(daemon):
    with triton.InferenceServerClient(daemon.grpc_address) as made:
        yield made


def sent(name, array, data_type):
    made = triton.InferInput(name, list(array.shape), data_type)
    made.set_data_from_numpy(array)
    return made


def add_sub(client, model, a, b, data_type="FP32"):
    answer = client.infer(model, [sent("INPUT__0", a, data_type), sent("INPUT__1", b, data_type)])
    return answer.as_numpy("OUTPUT__0"), answer.as_numpy("OUTPUT__1")


def error_of(call):
    with pytest.raises(InferenceServerException) as error:
        call()
    return f"{error.value.status()} {error.value.message()}"


def values(*shape, seed=0):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


@pytest.mark.parametrize("model, data_type", [("ints", "INT32"), ("floats", "FP32"), ("packaged", "FP32"), ("aoti", "FP32")])
@pytest.mark.parametrize("rows", [1, 3])
def test_two_tensors_in_two_out(client, model, data_type, rows):
    a, b = ((100 * values(rows, 16, seed=seed)).astype(triton_to_np_dtype(data_type)) for seed in (1, 2))
    total, difference = add_sub(client, model, a, b, data_type)
    assert numpy.array_equal(total, a + b) and numpy.array_equal(difference, a - b)
    assert total.dtype == a.dtype


def test_the_metadata_are_the_configurations(client):
    metadata = client.get_model_metadata("floats")
    described = [(one.name, one.datatype, list(one.shape)) for one in (*metadata.inputs, *metadata.outputs)]
    assert described == [(name, "FP32", [-1, -1]) for name in ("INPUT__0", "INPUT__1", "OUTPUT__0", "OUTPUT__1")]
    assert metadata.platform == "pytorch_libtorch"


def test_without_a_batch_the_shape_is_whole(client):
    for length in (1, 5):
        a, b = values(length, 2, seed=1), values(length, 2, seed=2)
        assert numpy.array_equal(add_sub(client, "whole", a, b)[0], a + b)
    assert "expected [-1,2]" in error_of(lambda: add_sub(client, "whole", values(1, 5, 2), values(1, 5, 2)))


@pytest.mark.parametrize("data_type", IDENTITY_TYPES)
def test_every_type_comes_back(client, data_type):
    # BF16 has no NumPy type: the client takes FP32 and truncates it.
    array = numpy.array([[0, 1, 1, 0]]).astype(triton_to_np_dtype(data_type))
    answer = client.infer(data_type, [sent("x", array, data_type)])
    assert answer.get_response().outputs[0].datatype == data_type
    assert numpy.array_equal(answer.as_numpy("y"), array)


def test_texts(client):
    array = numpy.array([[b"a", b""], [b"bc", "\u00fc".encode()]], dtype=numpy.object_)
    answer = client.infer("texts", [sent("INPUT__0", array, "BYTES")])
    assert answer.as_numpy("OUTPUT__0").tolist() == [[b"a!", b"!"], [b"bc!", "\u00fc!".encode()]]


def test_an_optional_input_may_be_left_out(client):
    array, mask = values(2, 3, seed=1), values(2, 3, seed=2)
    whole = lambda: client.infer("masked", [sent("x", array, "FP32"), sent("mask", mask, "FP32")]).as_numpy("y")
    alone = lambda: client.infer("masked", [sent("x", array, "FP32")]).as_numpy("y")
    # These requests cannot share a batch.
    for number, answer in enumerate(at_once([whole, alone] * 8)):
        assert numpy.array_equal(answer, array + 1 if number % 2 else array * mask)
    assert client.get_model_config("masked").config.input[1].optional
    assert "'x' is missing" in error_of(lambda: client.infer("masked", [sent("mask", mask, "FP32")]))


def test_a_program_that_needs_an_input_has_none_that_is_optional(tmp_path):
    write(tmp_path, "needs", AddSub(), of_add_sub("FP32").replace("'INPUT__1'", "'INPUT__1' optional: true"))
    checked = run_to_end("--check-config", f"--model-repository={tmp_path}", ALLOW)
    assert checked.returncode == 1
    assert "input 'INPUT__1' is optional, but the program's argument 'b' is Tensor without a default" in checked.stdout


def test_check_config_names_an_output_of_another_shape(tmp_path):
    strict = "parameters { key: 'strict_output_shapes' value { string_value: 'true' } }"
    taken = tensor("input", "x", "FP32", "[ 5 ]")
    write(tmp_path, "right", Identity(), taken + tensor("output", "y", "FP32", "[ 5 ]"))
    write(tmp_path, "wrong", Identity(), taken + tensor("output", "y", "FP32", "[ 4 ]"))
    write(tmp_path, "strict", Identity(), taken + tensor("output", "y", "FP32", "[ 4 ]") + strict)
    write(tmp_path, "free", Identity(), tensor("input", "x", "FP32", "[ -1 ]") + tensor("output", "y", "FP32", "[ 4 ]"))
    checked = run_to_end("--check-config", f"--model-repository={tmp_path}", ALLOW)
    assert checked.returncode == 0, "the daemon serves them"
    warnings = [line for line in checked.stdout.splitlines() if line.startswith("WARNING")]
    assert len(warnings) == 2, checked.stdout
    assert warnings[0].startswith("WARNING strict version 1: the program fails for a row of zeros: output 'y': "
                                  "the program returned FP32 [1,5], but the configuration says FP32 [-1,4]")
    assert warnings[1].startswith(
        "WARNING wrong version 1: output 'y': the program returned [1,5], but the configuration says FP32 [-1,4]; ")


TWICE = "the package was compiled for two rows or more, so a single row is computed twice"


def test_a_package_for_two_rows_or_more_is_told_in_our_words(daemon, package, tmp_path):
    """LibTorch and the package write lines of their own when a single row is tried."""
    write(tmp_path, "packaged", package, of_add_sub("FP32"), file="model.pt2")
    checked = run_to_end("--check-config", f"--model-repository={tmp_path}", ALLOW)
    assert checked.returncode == 0 and checked.stderr == ""
    assert f"WARNING packaged version 1: {TWICE}" in checked.stdout
    assert TWICE in daemon.log() and "Error: " not in daemon.log() and "API call failed" not in daemon.log()


def at_once(calls):
    barrier = threading.Barrier(len(calls))

    def call(one):
        barrier.wait()
        return one()

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(call, calls))


def picky(client, array):
    return lambda: client.infer("picky", [sent("x", array, "FP32")]).as_numpy("y")


@contextlib.contextmanager
def while_busy(client, daemon):
    """While nothing else is computed: requests sent in the block wait and gather in the queue."""
    pending = lambda: daemon.metrics().total("nv_inference_pending_request_count", model="picky")
    slow = numpy.full((1, 5), 42, dtype=numpy.float32)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(picky(client, slow))
        taken = lambda: daemon.metrics().total("saccade_inflight_requests") == 1 and pending() == 0
        eventually(taken, "the request that takes its time is computed")
        yield
        assert answer.result() is not None


def test_requests_of_one_shape_share_a_batch(client, daemon):
    arrays = [values(1, 3 + i % 2, seed=i) for i in range(12)]
    before = daemon.metrics()
    with while_busy(client, daemon):
        answers = at_once([picky(client, array) for array in arrays])
    for array, answer in zip(arrays, answers):
        assert numpy.array_equal(answer, 2 * array)
    after = daemon.metrics()
    count, passes = (
        after.total(name, model="picky") - before.total(name, model="picky")
        for name in ("nv_inference_count", "nv_inference_exec_count")
    )
    assert count == 1 + len(arrays)
    # The slow pass, then one for each of the two shapes, unless this machine sent the requests very slowly.
    assert 3 <= passes <= 1 + len(arrays) // 2


def test_a_bad_one_fails_alone(client, daemon):
    arrays = [values(1, 3, seed=i) for i in range(6)]
    arrays[2][0, 0] = 13
    calls = [picky(client, array) for array in arrays]
    calls[2] = lambda: error_of(picky(client, arrays[2]))
    with while_busy(client, daemon):
        answers = at_once(calls)
    assert "StatusCode.INTERNAL" in answers[2] and "there is a 13" in answers[2]
    assert all(numpy.array_equal(answers[i], 2 * arrays[i]) for i in range(6) if i != 2)
    assert daemon.metrics().total("nv_inference_request_failure", model="picky", reason="BACKEND") == 1


def test_under_load_each_gets_its_own(client):
    def call(seed):
        a, b = values(1 + seed % 3, 4 + seed % 5, seed=seed), values(1 + seed % 3, 4 + seed % 5, seed=seed + 1)
        total, difference = add_sub(client, "floats", a, b)
        return numpy.array_equal(total, a + b) and numpy.array_equal(difference, a - b)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(call, range(300)))


def test_labels_and_reshape(client):
    wanted = [triton.InferRequestedOutput("y", class_count=2)]
    array = numpy.array([[1, 3, 2]], dtype=numpy.float32)
    assert client.infer("labelled", [sent("x", array, "FP32")]).as_numpy("y").shape == (1, 3)
    answer = client.infer("labelled", [sent("x", array, "FP32")], outputs=wanted)
    assert [text.split(b":")[1:] for text in answer.as_numpy("y")[0]] == [[b"1", b"dog"], [b"2", b"owl"]]


def test_one_output_by_name(client):
    a = values(1, 16)
    inputs = [sent("INPUT__0", a, "FP32"), sent("INPUT__1", a, "FP32")]
    answer = client.infer("floats", inputs, outputs=[triton.InferRequestedOutput("OUTPUT__1")])
    assert [output.name for output in answer.get_response().outputs] == ["OUTPUT__1"]
    wanted = [triton.InferRequestedOutput("OUTPUT__7")]
    assert "no output is named 'OUTPUT__7'" in error_of(lambda: client.infer("floats", inputs, outputs=wanted))


@pytest.mark.parametrize(
    "inputs, complaint",
    [
        ([("INPUT__0", "INT32", (1, 16))], "'INPUT__1' is missing; model 'ints' takes 'INPUT__0' (INT32 [-1,16])"),
        (
            [("INPUT__0", "INT32", (1, 16)), ("INPUT__1", "INT32", (1, 16)), ("INPUT__2", "INT32", (1, 16))],
            "no input is named 'INPUT__2'",
        ),
        ([("INPUT__0", "INT32", (1, 16)), ("INPUT__1", "FP32", (1, 16))], "the datatype is FP32, expected INT32"),
        ([("INPUT__0", "INT32", (1, 16)), ("INPUT__1", "INT32", (1, 15))], "the shape is [1,15], expected [-1,16]"),
        ([("INPUT__0", "INT32", (1, 16)), ("INPUT__1", "INT32", (2, 16))], "the batch is 2, but that of input 'INPUT__0' is 1"),
        ([("INPUT__0", "INT32", (9, 16)), ("INPUT__1", "INT32", (9, 16))], "9 rows; model 'ints' takes 1 to 8"),
        ([("INPUT__0", "INT32", (0, 16)), ("INPUT__1", "INT32", (0, 16))], "0 rows; model 'ints' takes 1 to 8"),
    ],
)
def test_wrong_inputs_are_told(client, inputs, complaint):
    made = [sent(name, numpy.zeros(shape, triton_to_np_dtype(kind)), kind) for name, kind, shape in inputs]
    error = error_of(lambda: client.infer("ints", made))
    assert "StatusCode.INVALID_ARGUMENT" in error and complaint in error


def test_outputs_that_differ_from_the_configuration_are_told(client):
    error = error_of(lambda: client.infer("wrong", [sent("x", values(1, 3), "FP32")]))
    assert "StatusCode.INTERNAL" in error
    assert "output 'y': the program returned FP64 [1,3], but the configuration says FP32 [-1,-1]" in error


def test_nothing_is_run_without_the_flag(programs, start):
    daemon = start(programs, "--exit-on-error=false")
    daemon.await_ports()
    with triton.InferenceServerClient(daemon.grpc_address) as client:
        array = values(1, 16)
        error = error_of(lambda: add_sub(client, "floats", array, array))
        while "still loading" in error:
            error = error_of(lambda: add_sub(client, "floats", array, array))
    assert "StatusCode.UNAVAILABLE" in error and "start the daemon with --allow-executable-models" in error


@pytest.mark.parametrize(
    "config, complaint",
    [
        (of_add_sub("FP32").replace("INPUT__1", "INPUT__3"), "input 'INPUT__3' is number 3"),
        (tensor("input", "a", "FP32", "[ 1 ]"), "m/config.pbtxt: output: is missing"),
        (of_add_sub("FP32").replace("OUTPUT__1", "OUTPUT__2"), "output 'OUTPUT__2' is number 2"),
        (of_add_sub("FP32") + "parameters { key: 'INFERENCE_MODE' value { string_value: 'red' } }", "parameter INFERENCE_MODE"),
    ],
)
def test_configurations_that_do_not_fit_are_told(tmp_path, start, config, complaint):
    write(tmp_path / "models", "m", AddSub(), config)
    daemon = start(tmp_path / "models", ALLOW)
    assert daemon.exit_code() == 1
    assert complaint in daemon.log()

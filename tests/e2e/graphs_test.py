"""Serves graphs, ONNX and OpenVINO's IR, which need no permission to run, and compares the answers with PyTorch's."""

import concurrent.futures
import contextlib
import json
import os
import time

import numpy
import pytest
import torch
import tritonclient.grpc as triton

import onnx_files as onnx
from harness import Daemon, run_to_end
from messages import get_model_request, predict_request
from pictures import encoded

openvino = pytest.importorskip("openvino", reason="./dev setup openvino installs it")
torch.set_num_threads(1)

CHANCE = numpy.random.default_rng(7)
WEIGHT = CHANCE.normal(size=(5, 3, 7, 7)).astype("float32")
BIAS = CHANCE.normal(size=5).astype("float32")
CROP = {"resize": "exact", "size": [96, 128], "name": "x"}


def tensors(inputs, outputs):
    """The lines of a configuration, from names to (type, dims)."""
    return "".join(f"{kind} {{ name: '{name}' data_type: TYPE_{data_type} dims: {list(dims)} }}\n"
                   for kind, all_of in (("input", inputs), ("output", outputs)) for name, (data_type, dims) in all_of.items())


PICTURES = tensors({"x": ("FP32", (3, -1, -1))}, {"y": ("FP32", (5,))})


def write(root, name, content, config=None, file="model.onnx", description=None):
    folder = root / name / "1"
    folder.mkdir(parents=True)
    (folder / file).write_bytes(content)
    if config is not None:
        (root / name / "config.pbtxt").write_text(config)
    if description is not None:
        (root / name / "saccade.json").write_text(json.dumps(description))
    return folder


def write_ir(root, name, content, config=None, description=None):
    """The same graph as OpenVINO's IR, in float32."""
    folder = write(root, name, content, config, description=description)
    openvino.save_model(openvino.Core().read_model(folder / "model.onnx"), folder / "model.xml", compress_to_fp16=False)
    (folder / "model.onnx").unlink()
    return folder


def sum_and_difference():
    a, b = (onnx.value(name, "int32", ["n", 4]) for name in "ab")
    outputs = [onnx.value("sum", "int32", ["n", 4]), onnx.value("difference", "int32", ["n", 4])]
    return onnx.model([onnx.node("Add", "ab", ["sum"]), onnx.node("Sub", "ab", ["difference"])], [a, b], outputs)


def quantized():
    """A convolution in int8, as quantizers write it: values and weights through QuantizeLinear and DequantizeLinear."""
    scale, zero = onnx.tensor("scale", numpy.float32(0.02)), onnx.tensor("zero", numpy.uint8(128))
    weights = [onnx.tensor("weight8", (WEIGHT / 0.03).round().clip(-127, 127).astype("int8")),
               onnx.tensor("weight_scale", numpy.float32(0.03)), onnx.tensor("weight_zero", numpy.int8(0)), onnx.tensor("bias", BIAS)]
    nodes = [onnx.node("QuantizeLinear", ["x", "scale", "zero"], ["x8"]), onnx.node("DequantizeLinear", ["x8", "scale", "zero"], ["xq"]),
             onnx.node("DequantizeLinear", ["weight8", "weight_scale", "weight_zero"], ["weight"]),
             onnx.node("Conv", ["xq", "weight", "bias"], ["features"], strides=[4, 4], kernel_shape=[7, 7]),
             onnx.node("GlobalAveragePool", ["features"], ["mean"]), onnx.node("Flatten", ["mean"], ["y"], axis=1)]
    return onnx.model(nodes, [onnx.value("x", "float32", ["n", 3, "h", "w"])], [onnx.value("y", "float32", ["n", 5])],
                      [scale, zero, *weights])


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("graphs")
    classes = onnx.classifier(WEIGHT, BIAS)
    write(root, "raw", classes, f"backend: 'onnxruntime' max_batch_size: 8\n{PICTURES}instance_group {{ count: 2 }}\n")
    write(root, "platform", classes, f"platform: 'onnxruntime_onnx' max_batch_size: 8\n{PICTURES}")
    write_ir(root, "ir", classes, f"backend: 'openvino' max_batch_size: 8\n{PICTURES}")
    for precision in ("fp32", "float32", "bf16", "bfloat16"):
        write(root, precision, classes, f"backend: 'onnxruntime' max_batch_size: 8\n{PICTURES}"
              f"parameters {{ key: 'precision' value {{ string_value: '{precision}' }} }}\n")
    write(root, "one", onnx.classifier(WEIGHT, BIAS, batch=1, size=(64, 64)), "backend: 'onnxruntime'\n"
          + tensors({"x": ("FP32", (1, 3, 64, 64))}, {"y": ("FP32", (1, 5))}))
    external = {"location": "weights.bin", "offset": 64, "length": WEIGHT.nbytes}
    folder = write(root, "external", onnx.classifier(WEIGHT, BIAS, external=external), f"backend: 'onnxruntime' max_batch_size: 8\n{PICTURES}")
    (folder / "weights.bin").write_bytes(bytes(64) + WEIGHT.tobytes())
    four = ("INT32", (4,))
    write(root, "ints", sum_and_difference(), "backend: 'onnxruntime' max_batch_size: 8\n"
          + tensors({"b": four, "a": four}, {"difference": four, "sum": four}))
    write(root, "numbered", sum_and_difference(), "backend: 'openvino' max_batch_size: 8\n"
          + tensors({"INPUT__0": four, "INPUT__1": four}, {"OUTPUT__1": four}))
    write(root, "alone", classes)
    write(root, "int8", quantized(), f"backend: 'onnxruntime' max_batch_size: 8\n{PICTURES}")
    head = {"head": {"kind": "classes"}, "labels": list("abcde")}
    write(root, "described", classes, description={"input": CROP, "outputs": {"logits": "y"}, **head})
    alone = onnx.classifier(WEIGHT, BIAS, batch=1, size=(96, 128))
    write(root, "one_by_one", alone, description={"input": CROP, "outputs": {"logits": "y"}, **head})
    write_ir(root, "described_ir", classes, description={"input": CROP, "outputs": {"logits": "y"}, **head})
    return root


@pytest.fixture(scope="module")
def daemon(repository, tmp_path_factory):
    with Daemon(repository, "--threads-per-instance=1", log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture(scope="module")
def client(daemon):
    with triton.InferenceServerClient(daemon.grpc_address) as made:
        yield made


def infer(client, model, outputs, **inputs):
    sent = []
    for name, array in inputs.items():
        sent.append(triton.InferInput(name, list(array.shape), {"float32": "FP32", "int32": "INT32"}[array.dtype.name]))
        sent[-1].set_data_from_numpy(array)
    answer = client.infer(model, sent)
    return [answer.as_numpy(name) for name in outputs]


def expected(pixels, weight=WEIGHT):
    found = torch.nn.functional.conv2d(torch.from_numpy(pixels), torch.from_numpy(weight), torch.from_numpy(BIAS), stride=4)
    return found.mean((2, 3)).numpy()


def pixels(rows, height=64, width=80, seed=1):
    return numpy.random.default_rng(seed).normal(size=(rows, 3, height, width)).astype("float32")


@pytest.mark.parametrize("model", ["raw", "platform", "ir", "external", "alone"])
def test_a_graph_answers_as_pytorch_does_in_any_size_and_batch(client, model):
    for rows, height, width in ((1, 64, 80), (3, 96, 32), (8, 40, 40)):
        sent = pixels(rows, height, width)
        numpy.testing.assert_allclose(infer(client, model, ["y"], x=sent)[0], expected(sent), rtol=1e-4, atol=1e-4)


def test_a_graph_of_one_size(client):
    sent = pixels(1, 64, 64)
    numpy.testing.assert_allclose(infer(client, "one", ["y"], x=sent)[0], expected(sent), rtol=1e-4, atol=1e-4)


def test_tensors_by_name_and_by_number(client):
    a, b = numpy.arange(8, dtype="int32").reshape(2, 4), numpy.full((2, 4), 3, dtype="int32")
    total, difference = infer(client, "ints", ["sum", "difference"], a=a, b=b)
    assert (total == a + b).all() and (difference == a - b).all()
    assert (infer(client, "numbered", ["OUTPUT__1"], INPUT__0=a, INPUT__1=b)[0] == a - b).all()


def test_requests_share_batches_and_get_their_own_rows(client):
    sent = [pixels(1 + i % 3, 48, 48, seed=i) for i in range(40)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda one: infer(client, "raw", ["y"], x=one)[0], sent))
    for one, answer in zip(sent, answers):
        numpy.testing.assert_allclose(answer, expected(one), rtol=1e-4, atol=1e-4)


def test_bfloat16_only_where_it_is_asked_for(client):
    sent = pixels(2)
    exact, *short, long, coarse = (infer(client, name, ["y"], x=sent)[0] for name in ("raw", "fp32", "bf16", "float32", "bfloat16"))
    numpy.testing.assert_array_equal(short, [exact, coarse])
    numpy.testing.assert_array_equal(long, exact)
    numpy.testing.assert_allclose(coarse, exact, rtol=0.05, atol=0.05)
    if "avx512_bf16" in open("/proc/cpuinfo").read():
        assert abs(coarse - exact).max() > abs(exact - expected(sent)).max()


def test_int8_stays_as_it_is(client):
    sent = pixels(2)
    steps = ((sent / 0.02).round() + 128).clip(0, 255) - 128
    weight = (WEIGHT / 0.03).round().clip(-127, 127) * numpy.float32(0.03)
    answer = infer(client, "int8", ["y"], x=sent)[0]
    numpy.testing.assert_allclose(answer, expected((steps * 0.02).astype("float32"), weight.astype("float32")), rtol=2e-2, atol=2e-2)


def test_wrong_shapes_and_types_are_the_clients_errors(client):
    with pytest.raises(triton.InferenceServerException, match=r"\[1,4,64,64\].*expected"):
        infer(client, "raw", ["y"], x=numpy.zeros((1, 4, 64, 64), "float32"))
    # The configuration leaves sizes open which the graph cannot compute.
    with pytest.raises(triton.InferenceServerException):
        infer(client, "raw", ["y"], x=numpy.zeros((1, 3, 2, 2), "float32"))
    sent = pixels(1)
    numpy.testing.assert_allclose(infer(client, "raw", ["y"], x=sent)[0], expected(sent), rtol=1e-4, atol=1e-4)


def test_metadata_says_what_runs_the_graph(client):
    assert client.get_model_metadata("raw").platform == "onnxruntime_onnx"
    assert client.get_model_metadata("ir").platform == "openvino"
    config = client.get_model_config("ir").config
    assert (config.backend, config.platform) == ("openvino", "")
    assert client.get_model_config("described").config.backend == "onnxruntime"


def test_the_metadata_of_a_file_without_a_configuration_are_those_of_its_graph(client):
    found = client.get_model_metadata("alone")
    assert [(one.name, one.datatype, list(one.shape)) for one in (*found.inputs, *found.outputs)] == [
        ("x", "FP32", [-1, 3, -1, -1]), ("y", "FP32", [-1, 5])]
    config = client.get_model_config("alone").config
    assert (config.backend, config.max_batch_size, list(config.input[0].dims)) == ("onnxruntime", 8, [3, -1, -1])


@pytest.mark.parametrize("model", ["described", "described_ir"])
def test_a_described_graph_takes_pictures_and_answers_with_classes(daemon, model):
    picture = numpy.random.default_rng(3).integers(0, 255, (96, 128, 3), dtype=numpy.uint8)
    with daemon.vision() as vision:
        answer = vision.predict(predict_request(model=model, encoded=encoded(picture)))
        described = vision.get_model(get_model_request(model))
    sent = picture.transpose(2, 0, 1)[None].astype("float32") / 255
    scores = torch.from_numpy(expected(sent)).softmax(1)[0]
    found = {one.label: one.probability for one in answer.classification.classes}
    assert found == pytest.approx(dict(zip("abcde", scores.tolist())), abs=1e-4)
    assert list(described.labels) == list("abcde")


def test_a_described_graph_for_a_batch_of_one_answers_many_at_once(daemon):
    """Batches of up to 8 are computed, also when the model is loaded."""
    chance = numpy.random.default_rng(4)
    shown = [chance.integers(0, 255, (96, 128, 3), dtype=numpy.uint8) for _ in range(12)]

    def ask(picture):
        with daemon.vision() as vision:
            return vision.predict(predict_request(model="one_by_one", encoded=encoded(picture)))

    with concurrent.futures.ThreadPoolExecutor(len(shown)) as threads:
        answers = list(threads.map(ask, shown))
    for picture, answer in zip(shown, answers):
        scores = torch.from_numpy(expected(picture.transpose(2, 0, 1)[None].astype("float32") / 255)).softmax(1)[0]
        found = {one.label: one.probability for one in answer.classification.classes}
        assert found == pytest.approx(dict(zip("abcde", scores.tolist())), abs=1e-4)
    notes = [line for line in daemon.log().splitlines() if "the graph takes one picture at a time" in line]
    assert len(notes) == 1 and "model=one_by_one" in notes[0]


def test_passes_use_the_threads_of_the_scheduler_on_all_its_cores(daemon, client):
    """One thread for each instance, and none of them tied to a core by OpenVINO."""
    process = daemon.process.pid
    heavy = pixels(8, 512, 512)
    infer(client, "raw", ["y"], x=heavy)

    def processor_seconds():
        fields = open(f"/proc/{process}/stat").read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before, start = processor_seconds(), time.monotonic()
    for _ in range(12):
        infer(client, "platform", ["y"], x=heavy)
    # The network's thread copies the tensors meanwhile.
    assert processor_seconds() - before < 1.5 * (time.monotonic() - start) + 0.1
    allowed = os.sched_getaffinity(process)
    for task in os.listdir(f"/proc/{process}/task"):
        with contextlib.suppress(ProcessLookupError):
            assert os.sched_getaffinity(int(task)) == allowed

"""`saccade init` with ONNX files: what it writes is served without another word, and answers as the graph does."""

import json
import pathlib
import re
import subprocess

import numpy
import pytest
import torch
import tritonclient.grpc as triton

import onnx_files as onnx
from graphs_test import BIAS, WEIGHT, expected, infer, pixels
from harness import Daemon, binary, run_to_end
from messages import predict_request
from pictures import encoded

def init(*words):
    return subprocess.run([binary("saccade"), "init", *map(str, words)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The repository, and what the command said of each file, by model."""
    files, root = tmp_path_factory.mktemp("files"), tmp_path_factory.mktemp("models")
    (files / "labels").write_text("a\nb\nc\nd\ne\n")
    external = {"location": "data/weights.bin", "offset": 64, "length": WEIGHT.nbytes}
    (files / "data").mkdir()
    (files / "data" / "weights.bin").write_bytes(bytes(64) + WEIGHT.tobytes())
    scalars = [onnx.value(name, "int32", ["n"]) for name in ("a", "b", "sum")]
    graphs = {
        "open": onnx.classifier(WEIGHT, BIAS),
        "one": onnx.classifier(WEIGHT, BIAS, batch=1, size=(64, 64)),
        "external": onnx.classifier(WEIGHT, BIAS, external=external),
        "scalars": onnx.model([onnx.node("Add", "ab", ["sum"])], scalars[:2], scalars[2:]),
        "classes": onnx.classifier(WEIGHT, BIAS, pixels="pixels", logits="scores"),
    }
    said = {}
    for name, content in graphs.items():
        (files / f"{name}.onnx").write_bytes(content)
        labels = ["--labels", files / "labels"] if name in ("open", "classes") else []
        made = init(files / f"{name}.onnx", "-o", root / name, *labels)
        assert made.returncode == 0, made.stderr
        said[name] = made.stdout
    return root, said


@pytest.fixture(scope="module")
def daemon(told, tmp_path_factory):
    root, said = told
    # As the command says it, with labels and the pixels' range of the network.
    description = json.loads(re.search(r"trained with: (\{.*\})$", said["classes"], re.MULTILINE)[1])
    description["input"] = {"size": [96, 128]}
    (root / "classes" / "saccade.json").write_text(json.dumps(description))
    with Daemon(root, "--warm-up-seconds=0", log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


def test_what_it_writes_is_checked_and_served(told, daemon):
    root, said = told
    checked = run_to_end("--check-config", f"--model-repository={root}")
    assert checked.returncode == 0 and "5 checked, 0 with errors" in checked.stdout, checked.stdout
    with triton.InferenceServerClient(daemon.grpc_address) as client:
        x = pixels(3)
        numpy.testing.assert_allclose(infer(client, "open", ["y"], x=x)[0], expected(x), atol=1e-5)
        numpy.testing.assert_allclose(infer(client, "external", ["y"], x=x)[0], expected(x), atol=1e-5)
        x = pixels(1, 64, 64)
        numpy.testing.assert_allclose(infer(client, "one", ["y"], x=x)[0], expected(x), atol=1e-5)
        a, b = (numpy.array([[value], [7]], "int32") for value in (1, 2))
        assert infer(client, "scalars", ["sum"], a=a, b=b)[0].tolist() == [[3], [14]]
        best = infer_classes(client, "open", pixels(1))
    scores = expected(pixels(1))[0]
    assert best == "abcde"[int(scores.argmax())]
    assert "input 'x' is FP32 [-1,3,-1,-1]" in said["open"] and "batch of 1" in said["one"]
    assert pathlib.Path(root / "external" / "1" / "data" / "weights.bin").exists()


def infer_classes(client, model, x):
    """The label of the best class, as Triton's classification extension tells it."""
    given = triton.InferInput("x", list(x.shape), "FP32")
    given.set_data_from_numpy(x)
    answer = client.infer(model, [given], outputs=[triton.InferRequestedOutput("y", class_count=1)])
    return answer.as_numpy("y").reshape(-1)[0].decode().split(":")[2]


def test_the_description_that_it_proposes_takes_pictures(daemon):
    picture = numpy.random.default_rng(3).integers(0, 255, (96, 128, 3), dtype=numpy.uint8)
    with daemon.vision() as vision:
        answer = vision.predict(predict_request(model="classes", encoded=encoded(picture)))
    scores = torch.from_numpy(expected(picture.transpose(2, 0, 1)[None].astype("float32") / 255)).softmax(1)[0]
    found = {one.label: one.probability for one in answer.classification.classes}
    assert found == pytest.approx(dict(zip("abcde", scores.tolist())), abs=1e-4)

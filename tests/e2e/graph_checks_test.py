"""Graphs that must not be loaded, with the reason that --check-config gives, and models with SHA256SUMS."""

import hashlib
import json
import subprocess

import numpy
import pytest
import tritonclient.grpc as triton

import onnx_files as onnx
from harness import Daemon, eventually, run_to_end

openvino = pytest.importorskip("openvino", reason="./dev setup openvino installs it")

CHANCE = numpy.random.default_rng(7)
WEIGHT = CHANCE.normal(size=(5, 3, 7, 7)).astype("float32")
BIAS = CHANCE.normal(size=5).astype("float32")
GOOD = onnx.classifier(WEIGHT, BIAS)
DESCRIPTION = {"input": {"resize": "exact", "size": [96, 128]}, "head": {"kind": "classes"}, "labels": list("abcde")}


def config(backend="onnxruntime", batch=8, x="FP32 [ 3, -1, -1 ]", y="FP32 [ 5 ]", more=""):
    lines = (f"{kind} {{ name: '{kind[0] == 'i' and 'x' or 'y'}' data_type: TYPE_{spec.split()[0]} dims: {spec.split(' ', 1)[1]} }}\n"
             for kind, spec in (("input", x), ("output", y)))
    return f"backend: '{backend}' max_batch_size: {batch}\n" + "".join(lines) + more


def write(root, content=GOOD, text=None, description=None, file="model.onnx"):
    folder = root / "models" / "m" / "1"
    folder.mkdir(parents=True, exist_ok=True)
    if content is not None:
        (folder / file).write_bytes(content)
    if description is None:
        (folder.parent / "config.pbtxt").write_text(text or config())
    else:
        (folder.parent / "saccade.json").write_text(json.dumps(description))
    return folder


def check(root, *flags):
    return run_to_end("--check-config", f"--model-repository={root / 'models'}", *flags)


def refused(root, *complaints, flags=()):
    checked = check(root, *flags)
    assert checked.returncode == 1 and "ERROR   m" in checked.stdout, checked.stdout + checked.stderr
    for complaint in complaints:
        assert complaint in checked.stdout, checked.stdout


def test_a_good_graph_needs_no_permission(tmp_path):
    write(tmp_path)
    checked = check(tmp_path)
    assert checked.returncode == 0 and "OK      m version 1 (onnxruntime)" in checked.stdout, checked.stdout


@pytest.mark.parametrize("kept", [0, 1, 100, -1, -300])
def test_a_file_that_is_cut_short(tmp_path, kept):
    write(tmp_path, GOOD[:kept] if kept else b"")
    refused(tmp_path, "empty" if kept == 0 else "cut short")


def test_a_file_that_is_no_onnx_model(tmp_path):
    write(tmp_path, b"\x89PNG\r\n\x1a\n" + bytes(200))
    refused(tmp_path, "the ONNX file is cut short or damaged")


@pytest.mark.parametrize("location", ["../../other/secret.bin", "/etc/hostname", "link.bin", "up/secret.bin"])
def test_external_data_outside_of_the_version(tmp_path, location):
    folder = write(tmp_path, onnx.classifier(WEIGHT, BIAS, external={"location": location, "offset": 0, "length": 4}))
    (tmp_path / "models" / "other").mkdir()
    (tmp_path / "models" / "other" / "secret.bin").write_bytes(WEIGHT.tobytes())
    (folder / "link.bin").symlink_to("../../other/secret.bin")
    (folder / "up").symlink_to("../../other")
    refused(tmp_path, f"the external data of tensor 'weight' is in '{location}', which is outside of the model's version directory")


def test_external_data_that_is_missing_or_short(tmp_path):
    folder = write(tmp_path, onnx.classifier(WEIGHT, BIAS, external={"location": "w.bin", "offset": 0, "length": WEIGHT.nbytes}))
    refused(tmp_path, "'w.bin', which is missing or empty")
    (folder / "w.bin").write_bytes(WEIGHT.tobytes()[:-4])
    refused(tmp_path, f"is at bytes 0 to {WEIGHT.nbytes} of 'w.bin', which has {WEIGHT.nbytes - 4}")


def test_an_operator_that_openvino_lacks_is_named(tmp_path):
    nodes = [onnx.node("Frobnicate", ["x"], ["y"], domain="acme")]
    io = onnx.value("x", "float32", ["n", 3, 8, 8]), onnx.value("y", "float32", ["n", 5])
    write(tmp_path, onnx.model(nodes, io[:1], io[1:], domains=["acme"]))
    refused(tmp_path, "OpenVINO does not take the file", "acme.Frobnicate")


def test_a_graph_that_crashes_openvino_costs_a_load_and_not_the_daemon(tmp_path):
    """A convolution without weights, for which OpenVINO 2026.4 ends by a segmentation fault."""
    io = onnx.value("x", "float32", ["n", 3, 8, 8]), onnx.value("y", "float32", ["n", 5])
    folder = write(tmp_path, onnx.model([onnx.node("Conv", ["x"], ["y"])], io[:1], io[1:]))
    sound = folder.parent.parent / "sound" / "1"
    sound.mkdir(parents=True)
    (sound / "model.onnx").write_bytes(GOOD)
    (sound.parent / "config.pbtxt").write_text(config())
    with Daemon(tmp_path / "models", "--exit-on-error=false", "--strict-readiness=false", log_folder=tmp_path) as daemon:
        daemon.await_ready()
        daemon.await_log("the checking process was ended by signal", "so the daemon does not load it")
        with triton.InferenceServerClient(daemon.grpc_address) as client:
            assert client.is_model_ready("sound") and not client.is_model_ready("m")


def test_a_model_of_openvinos_without_its_weights(tmp_path):
    folder = write(tmp_path, text=config("openvino"))
    openvino.save_model(openvino.Core().read_model(folder / "model.onnx"), folder / "model.xml")
    (folder / "model.onnx").unlink()
    whole = (folder / "model.bin").read_bytes()
    (folder / "model.bin").write_bytes(whole[: len(whole) // 2])
    refused(tmp_path, "OpenVINO does not take the file")
    (folder / "model.bin").unlink()
    refused(tmp_path, "'model.bin' is missing, empty or no file; expected the weights beside the .xml file")
    outside = tmp_path / "models" / "weights.bin"
    outside.write_bytes(whole)
    (folder / "model.bin").symlink_to("../../weights.bin")
    refused(tmp_path, "'model.bin' leads out of the model's version directory")


@pytest.mark.parametrize("text", ["", "<net", "<net name='a' version='11'><layers/></net>", "\0" * 100])
def test_a_damaged_model_of_openvinos(tmp_path, text):
    folder = write(tmp_path, text.encode(), config("openvino"), file="model.xml")
    (folder / "model.bin").write_bytes(bytes(16))
    refused(tmp_path)


@pytest.mark.parametrize(
    "text, complaint",
    [
        (config(x="FP64 [ 3, -1, -1 ]"), "input 'x' of the graph is FP32 [-1,3,-1,-1], but the configuration says FP64 [-1,3,-1,-1]"),
        (config(x="FP32 [ 4, -1, -1 ]"), "input 'x' of the graph is FP32 [-1,3,-1,-1], but the configuration says FP32 [-1,4,-1,-1]"),
        (config(y="INT64 [ 5 ]"), "output 'y' of the graph is FP32 [-1,5], but the configuration says INT64 [-1,5]"),
        (config(x="STRING [ 3 ]"), "'x' is BYTES"),
        (config(more="instance_group { kind: KIND_GPU }\n"), ""),
        (config(more="parameters { key: 'precision' value { string_value: 'int4' } }\n"), "parameter precision is 'int4'"),
        (config(more="input { name: 'z' data_type: TYPE_FP32 dims: [ 1 ] }\n"), "the graph has 1 inputs ('x'), but the configuration says 2"),
        (config().replace("name: 'x'", "name: 'x__7'"), "input 'x__7' is number 7, counted from 0, but the program has 1; the graph's inputs are 'x'"),
    ],
)  # fmt: skip
def test_a_configuration_that_does_not_fit_the_graph(tmp_path, text, complaint):
    write(tmp_path, text=text)
    if complaint:
        refused(tmp_path, complaint)
    else:
        # The machine that checks need not have the GPU; the one that serves refuses it.
        with Daemon(tmp_path / "models", "--exit-on-error=false", "--strict-readiness=false", log_folder=tmp_path) as daemon:
            daemon.await_ready()
            eventually(lambda: "graphs are computed on the CPU" in daemon.log(), "the load was refused")


def test_a_batch_that_the_graph_does_not_have(tmp_path):
    fixed = onnx.classifier(WEIGHT, BIAS, batch=1, size=(64, 64))
    write(tmp_path, fixed, config(x="FP32 [ 3, 64, 64 ]"))
    refused(tmp_path, "input 'x' of the graph is FP32 [1,3,64,64], whose first size is fixed", "set max_batch_size to 1")
    write(tmp_path, fixed, config(x="FP32 [ 3, 64, 64 ]", batch=1))
    assert check(tmp_path).returncode == 0


@pytest.mark.parametrize(
    "change, complaint",
    [
        ({"labels": ["a", "b"]}, "there are 2 labels, but the program's outputs have 5 classes; give one label per class"),
        ({"head": {"kind": "semantic"}, "labels": []}, "has the shape [5] for one picture, but its role 'logits' wants [classes,height,width]"),
        ({"input": {"resize": "exact", "size": [4, 4]}}, "the program fails on a picture of zeros"),
        ({"input": {**DESCRIPTION["input"], "layout": "nhwc"}}, "input 'pixel_values' of the graph is FP32 [-1,3,-1,-1]"),
        ({"input": {**DESCRIPTION["input"], "type": "UINT8"}}, "but the configuration says UINT8"),
    ],
)  # fmt: skip
def test_a_description_that_does_not_fit_the_graph(tmp_path, change, complaint):
    write(tmp_path, description={**DESCRIPTION, **change})
    refused(tmp_path, complaint)


def sums(model):
    files = sorted(path for path in model.rglob("*") if path.is_file() and path.parent != model or path.name == "config.pbtxt")
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(model)}\n" for path in files)
    (model / "SHA256SUMS").write_text("".join(lines))


def test_files_are_compared_with_their_checksums_before_they_are_loaded(tmp_path):
    model = write(tmp_path).parent
    sums(model)
    assert check(tmp_path).returncode == 0
    (model / "1" / "model.onnx").write_bytes(GOOD[:-1] + b"x")
    refused(tmp_path, "m/1/model.onnx: has the SHA-256 ")
    (model / "1" / "model.onnx").write_bytes(GOOD)
    (model / "1" / "extra").write_text("x")
    refused(tmp_path, "m/1/extra: is not in SHA256SUMS")
    (model / "1" / "extra").unlink()
    (model / "config.pbtxt").write_text(config(batch=4))
    refused(tmp_path, "m/config.pbtxt: has the SHA-256 ")


def test_a_daemon_that_requires_signatures_loads_only_signed_models(tmp_path):
    model = write(tmp_path).parent
    sums(model)
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    required = (f"--signing-key={public}", "--require-signed")
    refused(tmp_path, "m/SHA256SUMS.sig: is missing", flags=required)
    subprocess.run(["openssl", "pkeyutl", "-sign", "-inkey", private, "-rawin", "-in", model / "SHA256SUMS",
                    "-out", model / "SHA256SUMS.sig"], check=True)
    with Daemon(tmp_path / "models", *required, "--model-control-mode=explicit", "--load-model=*", log_folder=tmp_path) as daemon:
        daemon.await_ready()
    (model / "SHA256SUMS").write_text((model / "SHA256SUMS").read_text() + "\n")
    refused(tmp_path, "m/SHA256SUMS.sig: is not the signature of SHA256SUMS", flags=required)
    (model / "SHA256SUMS").unlink()
    refused(tmp_path, "m/SHA256SUMS: is missing, and the daemon runs with --require-signed", flags=required)


def test_a_configuration_in_a_request_is_not_signed(tmp_path):
    model = write(tmp_path).parent
    sums(model)
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    subprocess.run(["openssl", "pkeyutl", "-sign", "-inkey", private, "-rawin", "-in", model / "SHA256SUMS",
                    "-out", model / "SHA256SUMS.sig"], check=True)
    flags = (f"--signing-key={public}", "--require-signed", "--model-control-mode=explicit")
    with Daemon(tmp_path / "models", *flags, log_folder=tmp_path) as daemon:
        daemon.await_ready()
        with triton.InferenceServerClient(daemon.grpc_address) as client:
            other = json.dumps({"backend": "onnxruntime", "max_batch_size": 4,
                                "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [3, -1, -1]}],
                                "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [5]}]})
            with pytest.raises(triton.InferenceServerException, match="has a configuration of its own, which is not signed"):
                client.load_model("m", config=other)
            client.load_model("m")


def test_a_key_of_another_kind_is_an_error_at_start(tmp_path):
    write(tmp_path)
    (tmp_path / "key.pem").write_text("no key")
    started = check(tmp_path, f"--signing-key={tmp_path / 'key.pem'}")
    assert started.returncode != 0 and "is no readable Ed25519 public key" in started.stderr
    alone = check(tmp_path, "--require-signed")
    assert alone.returncode != 0 and "--signing-key" in alone.stderr

"""Graphs that must not be loaded, with the reason that --check-config gives, and models with SHA256SUMS."""

import hashlib
import json
import subprocess

import numpy
import pytest
import tritonclient.grpc as triton

import onnx_files as onnx
from checked import Checked
from harness import Daemon, run_to_end

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


def write(root, content=GOOD, text=None, description=None, file="model.onnx", name="m"):
    folder = root / "models" / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    if content is not None:
        (folder / file).write_bytes(content)
    if description is None:
        (folder.parent / "config.pbtxt").write_text(text or config())
    else:
        (folder.parent / "saccade.json").write_text(json.dumps(description))
    return folder


def in_openvinos_format(folder):
    """Replaces model.onnx by model.xml and model.bin."""
    openvino.save_model(openvino.Core().read_model(folder / "model.onnx"), folder / "model.xml")
    (folder / "model.onnx").unlink()


def check(root, *flags):
    return run_to_end("--check-config", f"--model-repository={root / 'models'}", *flags)


def external(location, offset=0, length=WEIGHT.nbytes):
    return onnx.classifier(WEIGHT, BIAS, external={"location": location, "offset": offset, "length": length})


def operators(*nodes):
    """A graph of these alone."""
    io = onnx.value("x", "float32", ["n", 3, 8, 8]), onnx.value("y", "float32", ["n", 5])
    return onnx.model(list(nodes), io[:1], io[1:], domains=["acme"])


LEADS_OUT = {"up": "../../other/secret.bin", "root": "/etc/hostname", "link": "link.bin", "linked_folder": "up/secret.bin"}
DAMAGED_XML = ("", "<net", "<net name='a' version='11'><layers/></net>", "\0" * 100)
FIXED = onnx.classifier(WEIGHT, BIAS, batch=1, size=(64, 64))
# By model: what write() is given, and what is said of it.
REFUSED = {
    **{f"cut{kept}": ({"content": GOOD[:kept]}, ["empty" if kept == 0 else "cut short"]) for kept in (0, 1, 100, -1, -300)},
    "picture": ({"content": b"\x89PNG\r\n\x1a\n" + bytes(200)}, ["the ONNX file is cut short or damaged"]),
    **{f"leads_{how}": ({"content": external(location, length=4)}, [
        f"the external data of tensor 'weight' is in '{location}', which is outside of the model's version directory"])
       for how, location in LEADS_OUT.items()},
    "data_hidden": ({"content": external(".w.bin")}, ["'.w.bin', a path with a hidden name or '..', which checksums do not cover"]),
    "data_missing": ({"content": external("w.bin")}, ["'w.bin', which is missing or empty"]),
    "data_short": ({"content": external("w.bin")}, [f"is at bytes 0 to {WEIGHT.nbytes} of 'w.bin', which has {WEIGHT.nbytes - 4}"]),
    "operator": ({"content": operators(onnx.node("Frobnicate", ["x"], ["y"], domain="acme"))},
                 ["OpenVINO does not take the file", "acme.Frobnicate"]),
    **{f"xml{n}": ({"content": text.encode(), "text": config("openvino"), "file": "model.xml"}, []) for n, text in enumerate(DAMAGED_XML)},
    # These models are in OpenVINO's format, whose weights are in another file.
    "weights_short": ({"text": config("openvino")}, ["OpenVINO does not take the file"]),
    "weights_missing": ({"text": config("openvino")}, ["'model.bin' is missing, empty or no file; expected the weights beside the .xml file"]),
    "weights_outside": ({"text": config("openvino")}, ["'model.bin' leads out of the model repository"]),
    # Configurations that do not fit the graph.
    "fp64": ({"text": config(x="FP64 [ 3, -1, -1 ]")},
             ["input 'x' of the graph is FP32 [-1,3,-1,-1], but the configuration says FP64 [-1,3,-1,-1]"]),
    "channels": ({"text": config(x="FP32 [ 4, -1, -1 ]")},
                 ["input 'x' of the graph is FP32 [-1,3,-1,-1], but the configuration says FP32 [-1,4,-1,-1]"]),
    "int64": ({"text": config(y="INT64 [ 5 ]")}, ["output 'y' of the graph is FP32 [-1,5], but the configuration says INT64 [-1,5]"]),
    "strings": ({"text": config(x="STRING [ 3 ]")}, ["'x' is BYTES"]),
    "int4": ({"text": config(more="parameters { key: 'precision' value { string_value: 'int4' } }\n")}, ["parameter precision is 'int4'"]),
    "two_inputs": ({"text": config(more="input { name: 'z' data_type: TYPE_FP32 dims: [ 1 ] }\n")},
                   ["the graph has 1 inputs ('x'), but the configuration says 2"]),
    "number": ({"text": config().replace("name: 'x'", "name: 'x__7'")},
               ["input 'x__7' is number 7, counted from 0, but the program has 1; the graph's inputs are 'x'"]),
    "batch": ({"content": FIXED, "text": config(x="FP32 [ 3, 64, 64 ]")},
              ["input 'x' of the graph is FP32 [1,3,64,64], whose first size is fixed", "set max_batch_size to 1"]),
    # Descriptions that do not.
    **{name: ({"description": {**DESCRIPTION, **change}}, [complaint]) for name, change, complaint in (
        ("labels", {"labels": ["a", "b"]}, "there are 2 labels, but the program's outputs have 5 classes; give one label per class"),
        ("role", {"head": {"kind": "semantic"}, "labels": []},
         "has the shape [5] for one picture, but its role 'logits' wants [classes,height,width]"),
        ("small", {"input": {"resize": "exact", "size": [4, 4]}}, "the program fails on a picture of zeros"),
        ("layout", {"input": {**DESCRIPTION["input"], "layout": "nhwc"}}, "input 'pixel_values' of the graph is FP32 [-1,3,-1,-1]"),
        ("bytes", {"input": {**DESCRIPTION["input"], "type": "UINT8"}}, "but the configuration says UINT8"),
    )},
}  # fmt: skip


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """What --check-config says of each model."""
    root = tmp_path_factory.mktemp("checked")
    folders = {name: write(root, name=name, **written) for name, (written, _) in REFUSED.items()}
    (root / "models" / "other").mkdir()
    (root / "models" / "other" / "secret.bin").write_bytes(WEIGHT.tobytes())
    for how in LEADS_OUT:
        (folders[f"leads_{how}"] / "link.bin").symlink_to("../../other/secret.bin")
        (folders[f"leads_{how}"] / "up").symlink_to("../../other")
    (folders["data_hidden"] / ".w.bin").write_bytes(WEIGHT.tobytes())
    (folders["data_short"] / "w.bin").write_bytes(WEIGHT.tobytes()[:-4])
    for n in range(len(DAMAGED_XML)):
        (folders[f"xml{n}"] / "model.bin").write_bytes(bytes(16))
    for name in ("weights_short", "weights_missing", "weights_outside"):
        in_openvinos_format(folders[name])
    whole = (folders["weights_outside"] / "model.bin").rename(root / "weights.bin").read_bytes()
    (folders["weights_outside"] / "model.bin").symlink_to("../../../weights.bin")
    (folders["weights_short"] / "model.bin").write_bytes(whole[: len(whole) // 2])
    (folders["weights_missing"] / "model.bin").unlink()
    write(root, name="good")
    write(root, FIXED, config(x="FP32 [ 3, 64, 64 ]", batch=1), name="batch_of_one")
    return Checked(root / "models")


@pytest.mark.parametrize("name", ["good", "batch_of_one"])
def test_a_good_graph_needs_no_permission(checked, name):
    assert checked.of(name) == ("OK", f"OK      {name} version 1 (onnxruntime)")


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_cannot_be_served_is_refused(checked, name):
    told = checked.error_of(name)
    for complaint in REFUSED[name][1]:
        assert complaint in told


def test_a_graph_for_a_gpu_is_refused_where_it_is_served(tmp_path):
    """The machine that checks need not have the GPU."""
    write(tmp_path, text=config(more="instance_group { kind: KIND_GPU }\n"))
    with Daemon(tmp_path / "models", "--exit-on-error=false", "--strict-readiness=false", log_folder=tmp_path) as daemon:
        daemon.await_ready()
        daemon.await_log("graphs are computed on the CPU")


def test_a_graph_that_crashes_openvino_costs_a_load_and_not_the_daemon(tmp_path):
    """A convolution without weights, for which OpenVINO 2026.4 ends by a segmentation fault."""
    write(tmp_path, operators(onnx.node("Conv", ["x"], ["y"])))
    write(tmp_path, name="sound")
    with Daemon(tmp_path / "models", "--exit-on-error=false", "--strict-readiness=false", log_folder=tmp_path) as daemon:
        daemon.await_ready()
        daemon.await_log("the checking process was ended by signal", "so the daemon does not load it")
        with triton.InferenceServerClient(daemon.grpc_address) as client:
            assert client.is_model_ready("sound") and not client.is_model_ready("m")


def sums(model):
    files = sorted(path for path in model.rglob("*") if path.is_file() and path.parent != model or path.name == "config.pbtxt")
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(model)}\n" for path in files)
    (model / "SHA256SUMS").write_text("".join(lines))


def test_files_are_compared_with_their_checksums_before_they_are_loaded(tmp_path):
    whole, changed, more, configured = (write(tmp_path, name=name).parent for name in ("whole", "changed", "more", "configured"))
    for model in (whole, changed, more, configured):
        sums(model)
    (changed / "1" / "model.onnx").write_bytes(GOOD[:-1] + b"x")
    (more / "1" / "extra").write_text("x")
    (configured / "config.pbtxt").write_text(config(batch=4))
    checked = Checked(tmp_path / "models")
    assert checked.of("whole")[0] == "OK"
    assert "changed/1/model.onnx: has the SHA-256 " in checked.error_of("changed")
    assert "more/1/extra: is not in SHA256SUMS" in checked.error_of("more")
    assert "configured/config.pbtxt: has the SHA-256 " in checked.error_of("configured")


def keys_of(tmp_path):
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    return private, public


def sign(model, private):
    subprocess.run(["openssl", "pkeyutl", "-sign", "-inkey", private, "-rawin", "-in", model / "SHA256SUMS",
                    "-out", model / "SHA256SUMS.sig"], check=True)


def test_a_daemon_that_requires_signatures_loads_only_signed_models(tmp_path):
    private, public = keys_of(tmp_path)
    names = ("signed", "unsigned", "changed", "without_sums")
    signed, unsigned, changed, without_sums = (write(tmp_path, name=name).parent for name in names)
    for model in (signed, unsigned, changed, without_sums):
        sums(model)
        if model != unsigned:
            sign(model, private)
    (changed / "SHA256SUMS").write_text((changed / "SHA256SUMS").read_text() + "\n")
    (without_sums / "SHA256SUMS").unlink()
    required = (f"--signing-key={public}", "--require-signed")
    checked = Checked(tmp_path / "models", *required)
    assert checked.of("signed")[0] == "OK"
    assert "unsigned/SHA256SUMS.sig: is missing" in checked.error_of("unsigned")
    assert "changed/SHA256SUMS.sig: is not the signature of SHA256SUMS" in checked.error_of("changed")
    assert "without_sums/SHA256SUMS: is missing, and the daemon runs with --require-signed" in checked.error_of("without_sums")
    flags = ("--model-control-mode=explicit", "--load-model=*", "--exit-on-error=false", "--strict-readiness=false")
    with Daemon(tmp_path / "models", *required, *flags, log_folder=tmp_path) as daemon:
        daemon.await_ready()
        with triton.InferenceServerClient(daemon.grpc_address) as client:
            assert [name for name in names if client.is_model_ready(name)] == ["signed"]


def data_beside(folder, weight=WEIGHT):
    (folder / "w.bin").write_bytes(weight.tobytes())


# By format: what write() is given, what happens to its folder then, and the names of the graph and of its weights.
IN_TWO_FILES = {
    "ir": ({"text": config("openvino")}, in_openvinos_format, "model.xml", "model.bin"),
    "onnx": ({"content": external("w.bin")}, data_beside, "model.onnx", "w.bin"),
}


def in_two_files(tmp_path, format, name):
    """Writes a model whose weights are not in the file of the graph. Returns its version's folder, and the names of both files."""
    written, finish, graph, weights = IN_TWO_FILES[format]
    folder = write(tmp_path, name=name, **written)
    finish(folder)
    return folder, graph, weights


def other_weights(tmp_path, format):
    """The bytes of the weights' file of a network with other weights."""
    if format == "onnx":
        return (2 * WEIGHT).tobytes()
    folder = tmp_path / "others"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(onnx.classifier(2 * WEIGHT, BIAS))
    in_openvinos_format(folder)
    return (folder / "model.bin").read_bytes()


def answers(tmp_path, names, *flags):
    """Returns what each model answers to the same picture."""
    pixels = triton.InferInput("x", [1, 3, 64, 64], "FP32")
    pixels.set_data_from_numpy(numpy.random.default_rng(11).normal(size=(1, 3, 64, 64)).astype("float32"))
    with Daemon(tmp_path / "models", "--model-control-mode=explicit", *flags, log_folder=tmp_path) as daemon:
        daemon.await_ready()
        with triton.InferenceServerClient(daemon.grpc_address) as client:
            for name in names:
                client.load_model(name)
            return [client.infer(name, [pixels]).as_numpy("y") for name in names]


@pytest.mark.parametrize("format", IN_TWO_FILES)
def test_a_signed_graph_that_is_a_link_is_computed_with_the_signed_weights(tmp_path, format):
    """Other weights lie beside the link's target, and the signed ones, which the checksums cover, beside the link."""
    private, public = keys_of(tmp_path)
    for name in ("m", "untouched"):
        folder, graph, weights = in_two_files(tmp_path, format, name)
        sums(folder.parent)
        sign(folder.parent, private)
    x = tmp_path / "models" / "x"
    x.mkdir()
    (x / weights).write_bytes(other_weights(tmp_path, format))
    attacked = tmp_path / "models" / "m" / "1"
    (attacked / graph).rename(x / graph)
    (attacked / graph).symlink_to(f"../../x/{graph}")
    expected, got = answers(tmp_path, ("untouched", "m"), f"--signing-key={public}", "--require-signed")
    numpy.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("format", IN_TWO_FILES)
def test_a_folder_that_kubernetes_mounted_is_loaded(tmp_path, format):
    """Each name is a link through the link ..data to a hidden folder."""
    private, public = keys_of(tmp_path)
    folder, graph, weights = in_two_files(tmp_path, format, "m")
    sums(folder.parent)
    sign(folder.parent, private)
    (folder / "..2026").mkdir()
    (folder / "..data").symlink_to("..2026")
    for name in (graph, weights):
        (folder / name).rename(folder / "..2026" / name)
        (folder / name).symlink_to(f"..data/{name}")
    assert Checked(tmp_path / "models", f"--signing-key={public}", "--require-signed").of("m")[0] == "OK"


def test_links_into_a_store_keep_the_formats_of_their_names(tmp_path):
    """The files in the store have no endings."""
    in_openvinos_format(write(tmp_path, text=config("openvino"), name="ir"))
    write(tmp_path, name="onnx")
    blobs = tmp_path / "models" / "blobs"
    expected = answers(tmp_path, ("ir", "onnx"))
    blobs.mkdir()
    for number, file in enumerate(("ir/1/model.xml", "ir/1/model.bin", "onnx/1/model.onnx")):
        path = tmp_path / "models" / file
        path.rename(blobs / f"ab1{number}")
        path.symlink_to(f"../../blobs/ab1{number}")
    numpy.testing.assert_array_equal(answers(tmp_path, ("ir", "onnx")), expected)


def test_a_configuration_in_a_request_is_not_signed(tmp_path):
    model = write(tmp_path).parent
    sums(model)
    private, public = keys_of(tmp_path)
    sign(model, private)
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

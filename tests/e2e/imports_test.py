"""Imports networks of torchvision by `saccade import`, and compares what is served with torchvision's own Python by
`saccade verify`. ./dev verify-zoo does so with many more networks."""

import contextlib
import functools
import io
import json
import os
import pathlib
import subprocess
import sys
import types

import numpy
import pytest
import torch
from PIL import Image

import onnx_files
import pictures
from harness import binary, module_command

SIZES = [(301, 467), (240, 320), (97, 151)]


@pytest.fixture(scope="module")
def command(saccade):
    """Runs the package; returns the ended process. `new` starts Python as users do; it looks for modules in `before` first."""
    installed = pathlib.Path(saccade.__file__).parents[1]

    def run(*arguments, before=(), new=False):
        path = os.pathsep.join(map(str, [*before, installed]))
        # A fork has imported modules already that might be in `before`.
        words = module_command("saccade", *arguments, new=new or bool(before))
        return subprocess.run(words, capture_output=True, text=True, timeout=250,
                              env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"})

    return run


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    for seed, (height, width) in enumerate(SIZES):
        chance = torch.Generator().manual_seed(seed)
        coarse = 255 * torch.rand(1, 3, height // 24 + 2, width // 24 + 2, generator=chance)
        smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic")[0]
        array = smooth.clamp(0, 255).byte().permute(1, 2, 0).numpy()
        (folder / f"{seed}.png").write_bytes(pictures.encoded(array))
    return folder


@pytest.fixture(scope="module")
def imported(command, tmp_path_factory):
    root = tmp_path_factory.mktemp("imported")
    made = {}

    def get(name):
        if name not in made:
            made[name] = root / name
            done = command("import", f"torchvision:{name}", "--random", 3, "-o", root / name)
            assert done.returncode == 0, done.stderr
        return made[name]

    return get


def verify(command, model, shown, *flags, **more):
    quick = "--saccaded-flag=--warm-up-seconds=0"
    return command("verify", model, "--pictures", shown, "--saccaded", binary("saccaded"), quick, *flags, **more)


@pytest.mark.parametrize("name, compared", [
    ("resnet18", ["score"]), ("fasterrcnn_mobilenet_v3_large_320_fpn", ["box", "score"]),
])  # fmt: skip
def test_what_is_served_is_the_authors(command, imported, shown, name, compared):
    done = verify(command, imported(name), shown, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["within"] and found["compared"] >= len(SIZES) and found["unmatched"] == 0
    assert [one for one in ("box", "score", "mask", "pixels", "depth") if found[one] is not None] == compared


def test_a_difference_beyond_the_tolerance_is_an_error(command, imported, shown):
    model = imported("resnet18")
    description = model / "saccade.json"
    before = description.read_text()
    described = json.loads(before)
    described["input"]["mean"] = [0.4, 0.4, 0.4]
    description.write_text(json.dumps(described))
    try:
        done = verify(command, model, shown, new=True)
    finally:
        description.write_text(before)
    assert done.returncode == 1 and "TOO MUCH" in done.stdout


def test_the_folder_explains_itself(imported):
    model = imported("resnet18")
    assert sorted(path.name for path in model.iterdir()) == ["1", "README.md", "config.pbtxt", "import.json", "labels.txt", "saccade.json"]
    assert len((model / "labels.txt").read_text().splitlines()) == 1000
    readme = (model / "README.md").read_text()
    assert "torchvision:resnet18" in readme and "`1/model.pt`" in readme and "verify resnet18 --pictures" in readme


def refused(command, *arguments):
    done = command(*arguments)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    return done.stderr


def test_wrong_sources_are_told(command, tmp_path):
    out = tmp_path / "model"
    assert "there are resnet101, resnet152" in refused(command, "import", "torchvision:resnet19", "-o", out)
    assert "no weights 'OURS'; there are IMAGENET1K_V1" in refused(command, "import", "torchvision:resnet18", "--weights", "OURS", "-o", out)
    assert "is no source; expected torchvision:NAME" in refused(command, "import", "resnet18", "-o", out)
    assert "add --description" in refused(command, "import", "some.pt", "-o", out)
    graph = refused(command, "import", "some.onnx", "-o", out)
    assert "add --description saccade.json" in graph and f"saccade init some.onnx -o {out}" in graph
    assert "is no name of a model" in refused(command, "import", "torchvision:resnet18", "-o", tmp_path / "a b")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    assert "add --overwrite" in refused(command, "import", "torchvision:resnet18", "-o", tmp_path / "full")
    assert not out.exists()


def test_without_the_extra_the_command_says_what_to_install(command, tmp_path):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    without = functools.partial(command, before=[tmp_path])
    helped = without("import", "--help")
    assert helped.returncode == 0 and "--random" in helped.stdout, helped.stderr
    said = refused(without, "import", "torchvision:resnet18", "-o", tmp_path / "out")
    assert "the package 'torch' is not installed; run: pip install 'saccade[import]'" in said


def test_a_folder_that_cannot_be_written_is_told(command, tmp_path):
    (tmp_path / "file").write_text("")
    said = refused(command, "import", "torchvision:squeezenet1_1", "--random", 1, "-o", tmp_path / "file" / "model")
    assert "Not a directory" in said and "Traceback" not in said


def test_wrong_folders_are_told(command, tmp_path, shown):
    (tmp_path / "empty").mkdir()
    assert "has no import.json" in refused(command, "verify", tmp_path / "empty", "--pictures", shown, "--url", "127.0.0.1:1")
    assert "has no picture" in refused(command, "verify", tmp_path / "empty", "--pictures", tmp_path / "empty")
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "import.json").write_text('{"source": "torchvision:resnet18"}')
    assert "cannot be started" in refused(command, "verify", tmp_path / "made", "--pictures", shown, "--saccaded", "/no/saccaded")


def test_of_16_bits_the_author_sees_the_upper_eight_as_the_daemon_does(saccade):
    from saccade.imports import verifying

    values = numpy.array([[0, 255, 256], [0x1234, 0x8000, 0xFFFF]], numpy.uint16)
    file = io.BytesIO()
    Image.fromarray(values).save(file, "PNG")
    decoded = verifying.decoded(file.getvalue())
    assert decoded.shape == (3, 2, 3)
    for channel in decoded.numpy():
        assert numpy.allclose(255 * channel, values >> 8, atol=1e-4)


@pytest.fixture
def in_process(saccade, monkeypatch, tmp_path):
    """Runs verify without a daemon: what is compared is what `compare` makes of it. Returns its exit code."""
    from saccade.imports import command, verifying

    model = tmp_path / "model"
    model.mkdir()
    (model / "import.json").write_text('{"source": "torchvision:resnet18"}')

    @contextlib.contextmanager
    def serving(*_):
        yield "127.0.0.1:1"

    def run(compare, shown, *flags):
        monkeypatch.setattr(verifying, "serving", serving)
        monkeypatch.setattr(verifying, "compare", compare)
        return command.main(["verify", str(model), "--pictures", str(shown), *flags])

    return run


def test_nothing_on_both_sides_is_no_comparison(in_process, shown, capsys):
    from saccade.imports import comparing
    from saccade.imports.network import Found

    def compare(model, client, name, files, tolerance):
        differences = comparing.Differences()
        for _ in files:
            nothing = Found(numpy.zeros((0, 4)), numpy.zeros(0), numpy.zeros(0, int))
            comparing.add_detections(differences, nothing, nothing, 100, 0.05, tolerance)
        return differences

    assert in_process(compare, shown) == 1
    said = capsys.readouterr().out
    assert "0 results compared" in said and "neither side found anything" in said
    assert in_process(compare, shown, "--json") == 1
    assert json.loads(capsys.readouterr().out)["within"] is False


@pytest.mark.parametrize("scores, others, most, unmatched", [
    ([0.9, 0.8], [0.9], 2, 1),  # the lowest, but the other list has room for it
    ([0.99], [], 2, 1),
    ([0.9, 0.0505], [0.9], 2, 0),  # at the threshold
    ([0.9, 0.052], [0.9], 2, 1),
    ([0.9, 0.8], [0.9, None], 2, 0),  # the other list is full, and its last scores as much
    ([0.9, 0.8005], [0.9, None], 2, 0),
    ([0.9, 0.802], [0.9, None], 2, 1),
])  # fmt: skip
@pytest.mark.parametrize("swapped", [False, True])
def test_a_detection_that_one_side_lacks_is_a_difference_unless_it_is_at_the_end_of_the_list(saccade, scores, others, most, unmatched, swapped):
    """None stands for a detection of 0.8 elsewhere, which is at the end of the list as well."""
    from saccade.imports import comparing
    from saccade.imports.network import Found

    def listed(values):
        left = [100.0 * n if value is not None else 1000.0 for n, value in enumerate(values)]
        boxes = numpy.array([[x, 0, x + 10, 10] for x in left], numpy.float32).reshape(-1, 4)
        return Found(boxes, numpy.array([value or 0.8 for value in values], numpy.float32), numpy.zeros(len(values), int))

    found, expected = (listed(values) for values in ((others, scores) if swapped else (scores, others)))
    differences = comparing.Differences()
    comparing.add_detections(differences, found, expected, most, 0.05, comparing.Tolerance())
    assert differences.unmatched == unmatched and differences.compared == min(1, len(others))


def one_detection(score=0.9, box=(0, 0, 10, 10), mask=None):
    from saccade.imports.network import Found

    masks = None if mask is None else numpy.broadcast_to(mask, (1, *(numpy.shape(mask) or (20, 20))))
    return Found(numpy.array([box], numpy.float32), numpy.array([score], numpy.float32), numpy.zeros(1, int), masks)


@pytest.mark.parametrize("found, expected", [
    ({"score": numpy.nan}, {}), ({}, {"score": numpy.nan}), ({"box": (0, 0, numpy.nan, 10)}, {}),
    ({}, {"mask": True}), ({"mask": True}, {}), ({"mask": False}, {"mask": True}),
])  # fmt: skip
def test_a_detection_without_its_score_box_or_mask_is_a_difference(saccade, found, expected):
    from saccade.imports import comparing

    tolerance = comparing.Tolerance()
    differences = comparing.Differences()
    comparing.add_detections(differences, one_detection(mask=True), one_detection(mask=True), 100, 0.05, tolerance)
    assert differences.within(tolerance)
    comparing.add_detections(differences, one_detection(**found), one_detection(**expected), 100, 0.05, tolerance)
    assert not differences.within(tolerance)


@pytest.mark.parametrize("moved, fills, columns", [(0, False, 0), (1, False, 1), (1, True, 0), (2, True, 1), (3, True, 2)])
def test_a_mask_that_fills_its_box_may_be_a_pixel_wider(saccade, moved, fills, columns):
    """The masks are 20 pixels wide; one of them ends `moved` pixels further."""
    from saccade.imports import comparing

    one, other = (numpy.zeros((30, 40), bool) for _ in range(2))
    one[5:25, 5:25] = True
    other[5:25, 5:25 + moved] = True
    for found, expected in ((one, other), (other, one)):
        differences = comparing.Differences()
        sides = (one_detection(mask=found), one_detection(mask=expected))
        comparing.add_detections(differences, *sides, 100, 0.05, comparing.Tolerance(), fills)
        assert differences.mask == pytest.approx(columns / (20 + moved))


@pytest.mark.parametrize("add", ["add_probabilities", "add_depth", "add_embedding"])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("first", [False, True])
def test_values_that_are_no_numbers_are_a_difference(saccade, add, side, first):
    from saccade.imports import comparing

    good = (numpy.array([0.5, 0.5]), numpy.array([0.5, 0.5]))
    bad = (numpy.array([0.5, 0.5]), numpy.array([numpy.nan, 0.5]))
    bad = bad if side else bad[::-1]
    differences = comparing.Differences()
    for found, expected in ((bad, good) if first else (good, bad)):
        getattr(comparing, add)(differences, found, expected)
    assert not differences.within(comparing.Tolerance())


def test_detections_of_which_some_have_no_mask_keep_their_order(saccade):
    from saccade.imports import verifying

    def detection(pixels):
        return types.SimpleNamespace(mask=None if pixels is None else types.SimpleNamespace(pixels=pixels))

    def masks(*given):
        answer = types.SimpleNamespace(detections=[*map(detection, given)], boxes=None, scores=None, class_indices=None)
        return verifying._found(answer).masks

    full = numpy.ones((2, 3), bool)
    assert masks(None, full)[0].sum() == 0 and masks(None, full)[1].all()
    assert masks(None, None) is None and masks() is None


def test_a_detectors_list_ends_where_the_network_ends_it(imported):
    head = json.loads((imported("fasterrcnn_mobilenet_v3_large_320_fpn") / "saccade.json").read_text())["head"]
    assert head == {"kind": "boxes", "score_threshold": 0.05, "max_detections": 100}


@pytest.mark.parametrize("described", [
    {"resize": "shorter", "size": 8}, {"resize": "longer", "size": 8}, {"resize": "either", "size": [8, 8], "multiple": 2},
])  # fmt: skip
@pytest.mark.parametrize("width", [8, 10])
def test_a_program_whose_sizes_became_constants_is_an_error(saccade, described, width):
    from saccade.imports import export
    from saccade.imports.failures import ImportFailure
    from saccade.imports.network import Network

    class Constant(torch.nn.Module):
        def forward(self, x):
            return x.mean((2, 3)) / int(x.shape[3])

    def made(given):
        example = (torch.rand(2, 3, 8, width),)
        return Network("file:x", Constant(), {"input": given}, [], None, example, scripted=False)

    with pytest.raises(ImportFailure, match="became a constant; export it as ONNX with dynamic sizes"):
        export.export(made(described))
    for one_size in ({"resize": "exact", "size": [8, width]}, {"resize": "shorter", "size": 9, "crop": [8, width]}, {}):
        export.export(made(one_size))


@pytest.mark.parametrize("name, largest", [("cls_logits", 3.0), ("cls_score", None)])
def test_random_scores_of_sigmoids_do_not_all_become_one(saccade, name, largest):
    from saccade.imports import random_weights

    torch.manual_seed(1)
    network = torch.nn.Sequential()
    network.add_module(name, torch.nn.Conv2d(3, 8, 1))
    torch.nn.init.constant_(network[0].bias, -4.6)
    # Most of the scores are near each other, and a few are far away.
    pictures = torch.randn(1, 3, 200, 200) ** 5
    with torch.no_grad():
        random_weights.spread(network, pictures)
        scores = network(pictures)
    if largest is None:
        assert float(scores.std()) == pytest.approx(1.5, rel=1e-3) and float(scores.max()) > 17
    else:
        assert float(scores.max()) == pytest.approx(largest, abs=1e-3)


def described(tmp_path, **more):
    (tmp_path / "description.json").write_text(json.dumps({"input": {"size": 32}, "head": {"kind": "classes"}, **more}))
    return tmp_path / "description.json"


def checked(models, *flags):
    words = [binary("saccaded"), "--check-config", "--model-repository", models, *flags]
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


def graph(folder, location="net.onnx.data", batch="n"):
    """Writes a classifier with its weights in another file, which is not written; returns its bytes."""
    chance = numpy.random.default_rng(1)
    weight, bias = (chance.standard_normal(shape).astype(numpy.float32) for shape in ((3, 3, 4, 4), (3,)))
    external = {"location": location, "offset": 0, "length": weight.nbytes}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "net.onnx").write_bytes(onnx_files.classifier(weight, bias, batch=batch, external=external))
    return weight.tobytes()


def described_graph(tmp_path, **more):
    return described(tmp_path, outputs={"logits": "y"}, input={"size": 32, "name": "x"}, **more)


@pytest.mark.parametrize("location", ["net.onnx.data", "weights.bin", "./data/w_0"])
def test_a_graph_is_served_without_a_permission(command, tmp_path, location):
    weights = graph(tmp_path, location)
    (tmp_path / location).parent.mkdir(exist_ok=True)
    (tmp_path / location).write_bytes(weights)
    model = tmp_path / "models" / "net"
    done = command("import", tmp_path / "net.onnx", "--description", described_graph(tmp_path), "-o", model)
    assert done.returncode == 0 and "--allow-executable-models" not in done.stdout, done.stderr + done.stdout
    assert (model / "config.pbtxt").read_text().startswith('backend: "onnxruntime"\nmax_batch_size: 8\n')
    assert (model / "1" / "model.onnx").is_file() and (model / "1" / location).read_bytes() == weights
    assert json.loads((model / "import.json").read_text())["source"] == "file:net.onnx"
    readme = (model / "README.md").read_text()
    assert "`1/model.onnx`" in readme and "needs no permission" in readme
    assert "--allow-executable-models" not in readme and "verify" not in readme
    found = checked(tmp_path / "models")
    assert found.returncode == 0 and "OK      net version 1" in found.stdout, found.stdout


def test_a_graph_for_a_batch_of_one_is_served_so(command, tmp_path):
    (tmp_path / "net.onnx.data").write_bytes(graph(tmp_path, batch=1))
    model = tmp_path / "models" / "net"
    done = command("import", tmp_path / "net.onnx", "--description", described_graph(tmp_path), "-o", model)
    assert done.returncode == 0 and "exported for a batch of 1, so each picture is computed alone" in done.stdout, done.stderr
    assert "max_batch_size: 1\n" in (model / "config.pbtxt").read_text()
    assert "exported for a batch of 1" in (model / "README.md").read_text()
    found = checked(tmp_path / "models")
    assert found.returncode == 0 and "WARNING" not in found.stdout, found.stdout


def reshaped(shape=(1, -1), before=(), constant=False, pooled="mean"):
    """A classifier whose features get the shape that was the exporter's, by an initializer or a node."""
    chance = numpy.random.default_rng(1)
    tensors = [onnx_files.tensor("weight", chance.standard_normal((3, 3, 4, 4)).astype(numpy.float32))]
    nodes = [onnx_files.node("Conv", ["x", "weight"], ["features"], strides=[4, 4], kernel_shape=[4, 4]),
             onnx_files.node("GlobalAveragePool", ["features"], ["mean"]), *before]
    shape = onnx_files.tensor("shape", numpy.array(shape, numpy.int64))
    if constant:
        value = onnx_files.field(1, "value") + onnx_files.field(5, shape) + onnx_files.field(20, 4)
        nodes.append(onnx_files.field(2, "shape") + onnx_files.field(4, "Constant") + onnx_files.field(5, value))
    else:
        tensors.append(shape)
    nodes.append(onnx_files.node("Reshape", [pooled, "shape"], ["y"]))
    inputs, outputs = ([onnx_files.value(name, "float32", dims)] for name, dims in (("x", ["n", 3, "h", "w"]), ("y", ["m", "c"])))
    return onnx_files.model(nodes, inputs, outputs, tensors)


def joined(axis):
    """A graph that joins a constant of a batch of 1 to the pictures' features, as an exporter leaves a class token."""
    nodes = [onnx_files.node("GlobalAveragePool", ["x"], ["mean"]), onnx_files.node("Concat", ["token", "mean"], ["both"], axis=axis),
             onnx_files.node("Flatten", ["both"], ["y"], axis=1)]
    return onnx_files.model(nodes, [onnx_files.value("x", "float32", ["n", 3, "h", "w"])], [onnx_files.value("y", "float32", ["n", 4])],
                            [onnx_files.tensor("token", numpy.zeros((1, 1, 1, 1), numpy.float32))])


SIZES_OF = [onnx_files.node("Shape", ["mean"], ["sizes"])]


@pytest.mark.parametrize("content, said", [
    (reshaped(), "its node y (Reshape) gives it the shape [1, -1]"),
    (reshaped((1, 3), constant=True), "its node y (Reshape) gives it the shape [1, 3]"),
    (joined(1), "its node both (Concat) joins it to a constant"),
    (reshaped((-1, 3)), None), (reshaped((0, -1)), None),
    # Sizes of the pictures, and a batch that is not the first size.
    (reshaped((1, -1), before=SIZES_OF, pooled="sizes"), None), (reshaped((1, -1, 3)), None),
    (joined(0), None),
])  # fmt: skip
def test_a_batch_of_one_inside_of_a_graph_is_seen(files, tmp_path, content, said):
    (tmp_path / "net.onnx").write_bytes(content)
    notes = files.import_file(tmp_path / "net.onnx", tmp_path / "net", described_graph(tmp_path), None)
    assert notes == ([f"exported for a batch of 1 ({said}), so each picture is computed alone"] if said else [])
    assert f"max_batch_size: {1 if said else 8}\n" in (tmp_path / "net" / "config.pbtxt").read_text()


def test_a_batch_of_one_inside_of_a_graph_is_not_overruled(failing, tmp_path):
    (tmp_path / "net.onnx").write_bytes(reshaped())
    said = failing(max_batch_size=4)
    assert "was exported for a batch of 1 (its node y (Reshape) gives it the shape [1, -1]), but max_batch_size is 4; export it with" in said


class Pooled(torch.nn.Module):
    def forward(self, pixel_values):
        return pixel_values.mean((2, 3))


class Nhwc(torch.nn.Module):
    def forward(self, pixel_values):
        if pixel_values.dtype != torch.uint8 or pixel_values.shape[3] != 3:
            raise RuntimeError("another input")
        return pixel_values.float().mean((1, 2))


class OneRow(torch.nn.Module):
    def forward(self, pixel_values):
        return pixel_values.mean((2, 3)).view(1, -1)


class OnlyOne(torch.nn.Module):
    def forward(self, pixel_values):
        return pixel_values.mean((2, 3)).view(1, 3)


class Mixed(torch.nn.Module):
    def forward(self, pixel_values):
        return pixel_values.mean((2, 3)) - pixel_values.mean()


class Masked(torch.nn.Module):
    def forward(self, pixel_values, pixel_mask):
        return (pixel_values * pixel_mask[:, None]).mean((2, 3)), pixel_mask.sum((1, 2))


class PairsOnly(torch.nn.Module):
    def forward(self, pixel_values):
        if pixel_values.shape[0] < 2:
            raise RuntimeError("too few")
        return pixel_values.mean((2, 3))


class Never(torch.nn.Module):
    def forward(self, pixel_values):
        return pixel_values.view(7, 7)


@pytest.mark.parametrize("network, input, fixed, failed", [
    (Pooled(), {"size": 32}, "", ""), (PairsOnly(), {"size": 32}, "", ""),
    (Masked(), {"resize": "shorter", "size": 32, "mask": "pixel_mask"}, "", ""),
    (Nhwc(), {"size": [32, 48], "type": "UINT8", "layout": "nhwc"}, "", ""),
    (OneRow(), {"size": 32}, "for a batch of 2 it returns [1, 6]", ""),
    (OnlyOne(), {"size": 32}, "it fails with a batch of 2: ", ""),
    (Mixed(), {"size": 32}, "in a batch of 2 a picture gets other numbers than alone", ""),
    (Never(), {"size": 32}, "", "RuntimeError: shape '[7, 7]' is invalid"),
])  # fmt: skip
def test_a_batch_that_is_a_constant_of_a_program_is_seen_by_running_it(saccade, network, input, fixed, failed):
    from saccade.imports import trials

    found = trials.try_program(torch.jit.script(network), input)
    assert found.fixed.startswith(fixed) and bool(found.fixed) == bool(fixed) and found.failed.startswith(failed)


@pytest.mark.parametrize("described, size", [
    ({}, (224, 224)), ({"size": [32, 48]}, (32, 48)), ({"resize": "shorter", "size": 40, "crop": 32}, (32, 32)),
    ({"resize": "longer"}, (1024, 1024)), ({"resize": "either", "size": [30, 48], "multiple": 16}, (32, 48)),
])  # fmt: skip
def test_a_program_is_tried_with_pictures_of_a_size_that_it_gets(saccade, described, size):
    from saccade.imports import trials

    assert trials.size_of(described) == size


@pytest.fixture
def files(saccade):
    from saccade.imports import files

    return files


@pytest.fixture
def failing(files, tmp_path):
    """The error of importing tmp_path's net.onnx, before which nothing is written."""
    from saccade.imports.failures import ImportFailure

    def fail(folder=tmp_path, **more):
        with pytest.raises(ImportFailure) as error:
            files.import_file(folder / "net.onnx", tmp_path / "model", described_graph(tmp_path, **more), None)
        assert not (tmp_path / "model").exists()
        return str(error.value)

    return fail


@pytest.mark.parametrize("batch, more", [(4, {}), (1, {"max_batch_size": 8})])
def test_a_batch_that_does_not_fit_a_graph_is_an_error(failing, tmp_path, batch, more):
    graph(tmp_path, batch=batch)
    assert f"was exported for a batch of {batch}, but" in failing(**more)


@pytest.mark.parametrize("location, complaint", [
    ("weights.bin", "is in 'weights.bin', which is missing or empty; copy that file"),
    ("../secret", "cannot be copied beside the model"), ("/etc/passwd", "cannot be copied beside the model"),
    ("data/../../secret", "cannot be copied beside the model"), ("", "cannot be copied beside the model"),
    ("model.onnx", "cannot be copied beside the model"), (".weights.bin", "cannot be copied beside the model"), ("link", "leads out of the graph's folder"),
])  # fmt: skip
def test_external_data_that_is_missing_or_elsewhere_is_an_error(failing, tmp_path, location, complaint):
    folder = tmp_path / "given"
    graph(folder, location)
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    said = failing(folder)
    assert "external data of tensor 'weight'" in said and complaint in said


def test_a_graph_and_its_data_may_be_links_into_one_folder(files, tmp_path):
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "2").write_bytes(graph(tmp_path / "given"))
    (tmp_path / "given" / "net.onnx").rename(tmp_path / "blobs" / "1")
    (tmp_path / "given" / "net.onnx").symlink_to(tmp_path / "blobs" / "1")
    (tmp_path / "given" / "net.onnx.data").symlink_to(tmp_path / "blobs" / "2")
    files.import_file(tmp_path / "given" / "net.onnx", tmp_path / "model", described_graph(tmp_path), None)
    copied = tmp_path / "model" / "1" / "net.onnx.data"
    assert copied.read_bytes() == (tmp_path / "blobs" / "2").read_bytes() and not copied.is_symlink()


@pytest.mark.parametrize("damage", [lambda whole: whole[:-1], lambda whole: whole[:40], lambda whole: b"PK\x03\x04", lambda whole: b""])
def test_a_damaged_graph_is_an_error(failing, tmp_path, damage):
    graph(tmp_path)
    (tmp_path / "net.onnx").write_bytes(damage((tmp_path / "net.onnx").read_bytes()))
    assert "ONNX model" in failing()


def test_graphs_inside_of_graphs_are_bounded(failing, tmp_path):
    graph(tmp_path)
    nested = b""
    for _ in range(40):
        nested = onnx_files.field(1, onnx_files.field(5, onnx_files.field(6, nested)))
    (tmp_path / "net.onnx").write_bytes(onnx_files.field(7, nested))
    assert "more than 32 deep" in failing()


@pytest.mark.parametrize("suffix", [".pt", ".pt2"])
def test_a_file_has_no_python_to_compare_with(command, tmp_path, shown, suffix):
    # The daemon says what is wrong with it.
    (tmp_path / f"net{suffix}").write_bytes(b"program")
    model = tmp_path / "models" / "net"
    done = command("import", tmp_path / f"net{suffix}", "--description", described(tmp_path), "-o", model)
    assert done.returncode == 0 and "--allow-executable-models" in done.stdout, done.stderr + done.stdout
    assert f"net{suffix}: it was not run, so" in done.stdout and "--run" in done.stdout
    readme = (model / "README.md").read_text()
    assert f"`1/model{suffix}`" in readme and (model / "1" / f"model{suffix}").is_file()
    assert "verify" not in readme and "The program is code" in readme
    said = refused(command, "verify", model, "--pictures", shown, "--saccaded", "/no/saccaded")
    assert f"was imported from the file net{suffix}, which has no author's Python to compare with" in said


@pytest.mark.parametrize("elsewhere", [None, "net.onnx", "net.onnx.data"])
def test_no_file_is_removed_before_it_is_copied(command, tmp_path, elsewhere):
    """The program and its weights are in the folder that is to be replaced, or there is a link to one of them."""
    model = tmp_path / "net"
    model.mkdir()
    given = tmp_path if elsewhere else model
    weights = graph(tmp_path / "made")
    written = {"net.onnx": (tmp_path / "made" / "net.onnx").read_bytes(), "net.onnx.data": weights}
    for name, content in written.items():
        in_model = elsewhere in (None, name)
        (model if in_model else given).joinpath(name).write_bytes(content)
        if in_model and elsewhere:
            (given / name).symlink_to(model / name)
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    said = refused(command, "import", given / "net.onnx", "--description", described(tmp_path), "-o", model, "--overwrite")
    assert f"{given / (elsewhere or 'net.onnx')} lies in {model}, which --overwrite would remove" in said
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before


@pytest.mark.parametrize("flags, size, said", [
    (["--run"], 1, "exported for a batch of 1 (for a batch of 2 it returns [1, 6]), so each picture is computed alone"), ([], 8, None),
])  # fmt: skip
def test_a_program_for_a_batch_of_one_is_served_so(command, tmp_path, flags, size, said):
    torch.jit.script(OneRow()).save(str(tmp_path / "net.pt"))
    done = command("import", tmp_path / "net.pt", "--description", described(tmp_path), "-o", tmp_path / "net", *flags)
    assert done.returncode == 0, done.stderr
    assert f"max_batch_size: {size}\n" in (tmp_path / "net" / "config.pbtxt").read_text()
    assert (said in done.stdout and said in (tmp_path / "net" / "README.md").read_text()) if said else "exported" not in done.stdout


def test_a_file_beside_the_folder_replaces_what_it_holds(command, tmp_path):
    model = tmp_path / "net"
    model.mkdir()
    (model / "old").write_text("old")
    # Its path begins as the folder's does.
    (tmp_path / "net.pt").write_text("program")
    done = command("import", tmp_path / "net.pt", "--description", described(tmp_path), "-o", model, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert (model / "1" / "model.pt").read_text() == "program" and not (model / "old").exists()


def test_a_file_is_served_by_its_description(command, tmp_path):
    class Mean(torch.nn.Module):
        def forward(self, pixel_values):
            return pixel_values.mean((2, 3))

    torch.jit.script(Mean()).save(str(tmp_path / "mean.pt"))
    (tmp_path / "names.txt").write_text("red\ngreen\nblue\n")
    done = command("import", tmp_path / "mean.pt", "--description", described(tmp_path), "--labels", tmp_path / "names.txt",
                   "-o", tmp_path / "models" / "mean", new=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = checked(tmp_path / "models", "--allow-executable-models")
    assert found.returncode == 0 and "OK      mean version 1" in found.stdout, found.stdout


@pytest.mark.parametrize("name", ["import", "verify"])
def test_the_commands_are_run_by_saccade(tmp_path, name):
    program = tmp_path / f"saccade-{name}"
    program.write_text('#!/bin/sh\necho "given: $*"\n')
    program.chmod(0o755)
    line = [binary("saccade").resolve(), name, "net.pt", "-o", "DIR"]
    found = subprocess.run(line, capture_output=True, text=True, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert found.stdout == "given: net.pt -o DIR\n"
    missing = subprocess.run(line, capture_output=True, text=True, env={"PATH": "/nothing"})
    assert missing.returncode == 1 and "pip install './client/python[import]'" in missing.stderr


def test_the_package_has_the_programs(saccade):
    scripts = pathlib.Path(saccade.__file__).parents[1] / "bin"
    for name in ("import", "verify"):
        words = [sys.executable, scripts / f"saccade-{name}", "--help"]
        environment = {**os.environ, "PYTHONPATH": str(scripts.parent)}
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment)
        assert done.returncode == 0 and f"usage: saccade {name}" in done.stdout, done.stderr

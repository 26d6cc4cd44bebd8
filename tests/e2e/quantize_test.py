"""Tests `saccade quantize`, and the daemon with what it writes: a model whose convolutions compute in int8."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess

import pytest
from PIL import Image

from harness import DEADLINE_SECONDS, ROOT, binary, eventually
from messages import message
from models.reference import sample_files
from models.reference.scenes import HELD_OUT_SEED
from models.reference.served import multiplies_int8
from models.reference.training.recipes import RECIPES

DEMO = ROOT / "models" / "demo"
PICTURES = DEMO / "pictures"
ANY = "100%"
needs_int8 = pytest.mark.skipif(not multiplies_int8(), reason="this processor does not multiply int8 itself")
pytestmark = needs_int8


def add(repository, name, source="sanet_shapes", **parameters):
    """Adds a model of the demo with further parameters; returns its folder."""
    folder = repository / name
    shutil.copytree(DEMO / "repository" / source, folder)
    config = (folder / "config.pbtxt").read_text().replace(f'name: "{source}"', f'name: "{name}"')
    for key, value in parameters.items():
        config += f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
    (folder / "config.pbtxt").write_text(config)
    return folder


def command(model, pictures, *flags):
    return [binary("saccade"), "quantize", "--model", str(model), "--pictures", str(pictures), "--threads", "1", *map(str, flags)]


def quantize(model, pictures=PICTURES, *flags):
    return subprocess.run(command(model, pictures, *flags), capture_output=True, text=True, timeout=10 * DEADLINE_SECONDS)


def listed(daemon):
    with daemon.vision() as vision:
        answer = vision.list_models(message("saccade.v1.ListModelsRequest")())
    return {model.name: model for model in answer.models}


def refusal(daemon):
    """Returns why the model `coarse` is not served."""
    daemon.await_ports()
    reasons = []

    def is_refused():
        # While the daemon tries it again, it has no reason.
        found = listed(daemon).get("coarse")
        reasons.append(found.reason if found else "")
        return reasons[-1]

    eventually(is_refused, "the model is refused")
    return reasons[-1]


def best(daemon, name, picture):
    with daemon.vision() as vision:
        request = message("saccade.v1.PredictRequest")(model=name, encoded=picture.read_bytes())
        return vision.predict(request).classification.classes[0]


def header(path):
    """Returns what a safetensors file says of each tensor."""
    content = path.read_bytes()
    return json.loads(content[8:8 + struct.unpack_from("<Q", content)[0]])


@pytest.fixture(scope="module")
def quantized(tmp_path_factory):
    """A folder with a version's files after quantizing, and what was printed."""
    folder = add(tmp_path_factory.mktemp("quantized"), "shapes")
    ran = quantize(folder, PICTURES, "--keep-within", "5%")
    assert ran.returncode == 0, ran.stderr
    return folder / "1", ran.stdout


def test_the_daemon_serves_what_was_quantized(start, tmp_path, quantized):
    add(tmp_path, "plain")
    for name, parameters in (("coarse", {}), ("named", {"weights": "weights.int8.safetensors"})):
        add(tmp_path, name, precision="int8", **parameters)
        shutil.copy(quantized[0] / "weights.int8.safetensors", tmp_path / name / "1")
    # Only the quantized weights are there.
    add(tmp_path, "alone", precision="int8")
    shutil.copy(quantized[0] / "weights.int8.safetensors", tmp_path / "alone" / "1")
    (tmp_path / "alone" / "1" / "weights.safetensors").unlink()
    daemon = start(tmp_path).await_ready()
    for name in ("coarse", "named", "alone"):
        assert (listed(daemon)[name].precision, listed(daemon)[name].precision_reason) == ("int8", "set in the configuration")
        assert daemon.metrics().value("saccade_model_precision_info", model=name, version="1", precision="int8") == 1
    for picture in sorted(PICTURES.iterdir()):
        coarse, plain = best(daemon, "coarse", picture), best(daemon, "plain", picture)
        assert coarse.label == plain.label and coarse.logit != plain.logit
        assert coarse.logit == best(daemon, "alone", picture).logit == best(daemon, "named", picture).logit


def test_the_file_is_smaller_and_the_report_tells_each_layer(quantized):
    folder, printed = quantized
    assert (folder / "weights.int8.safetensors").stat().st_size < 0.5 * (folder / "weights.safetensors").stat().st_size
    page = (folder / "weights.int8.html").read_text()
    done, layers = map(int, re.search(r"(\d+) of (\d+) layers in int8", printed).groups())
    assert 0 < done <= layers
    counts = {"int8": 0, "higher precision": 0}
    for weights, precision in re.findall(r"<td>((?:(?!</td>).)*)</td><td>(int8|higher precision)</td>", page):
        counts[precision] += weights.count(".weight</code>")
    assert counts == {"int8": done, "higher precision": layers - done}
    assert "stem.conv.weight" in page and "http" not in page and "<script" not in page
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["weights.int8.html", "weights.int8.safetensors", "weights.safetensors"]


def test_a_smaller_loss_keeps_more_layers(tmp_path, quantized):
    loss = float(re.search(r"all layers: ([0-9.]+) %", quantized[1])[1])
    folder = add(tmp_path, "shapes")
    ran = quantize(folder, PICTURES, "--keep-within", f"{loss / 2:.6f}%")
    assert ran.returncode == 0, ran.stderr
    done, layers = map(int, re.search(r"(\d+) of (\d+) layers in int8", ran.stdout).groups())
    assert 0 < done < layers
    assert float(re.search(r"; ([0-9.e-]+) % of the answers", ran.stdout)[1]) <= loss / 2 * 1.05
    # A module of which one layer was left out would be computed layer by layer.
    modules = {}
    for tensor, entry in header(folder / "1" / "weights.int8.safetensors").items():
        module = re.fullmatch(r"(blocks\.\d+)\.(expand|depthwise|project)\.conv\.weight", tensor)
        if module:
            modules.setdefault(module[1], set()).add(entry["dtype"])
    assert modules and all(len(types) == 1 for types in modules.values()), modules


@pytest.mark.parametrize("method", ["percentile", "min-max"])
def test_the_other_methods_work(tmp_path, method):
    folder = add(tmp_path, "shapes")
    ran = quantize(folder, PICTURES, "--keep-within", ANY, "--method", method)
    assert ran.returncode == 0 and f"ranges by {method}" in (folder / "1" / "weights.int8.html").read_text()


def test_auto_measures_quantized_weights(start, tmp_path, quantized):
    for name, loss in (("chosen", "1"), ("strict", "0")):
        folder = add(tmp_path, name, precision="auto", max_precision_loss=loss)
        shutil.copy(quantized[0] / "weights.int8.safetensors", folder / "1")
        shutil.copytree(PICTURES, folder / "samples")
    daemon = start(tmp_path).await_ready()
    chosen, strict = listed(daemon)["chosen"], listed(daemon)["strict"]
    # A network this small may be no faster, or faster still in bf16.
    faster = "(int8|bf16) is not clearly faster" if chosen.precision == "fp32" else f"{chosen.precision} changes .* and takes"
    assert re.match(faster, chosen.precision_reason) and "int8" in chosen.precision_reason
    assert strict.precision == "fp32" and "int8" in strict.precision_reason
    assert daemon.metrics().value("saccade_model_precision_info", model="chosen", version="1", precision=chosen.precision) == 1


@pytest.mark.parametrize("files, flags, told", [
    (2, (), "has 2 files that can be used, of 2; expected at least 8"),
    (0, (), "has 0 files"),
    (10, ("--keep-within", "0%"), "even with a single (layer|module) in 8 bits"),
], ids=["two", "none", "no loss"])
def test_what_cannot_be_done_is_told_and_leaves_nothing(tmp_path, files, flags, told):
    folder = add(tmp_path, "shapes")
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for picture in sorted(PICTURES.iterdir())[:files]:
        shutil.copy(picture, pictures)
    ran = quantize(folder, pictures, *flags)
    assert ran.returncode == 1 and re.search(told, ran.stderr), ran.stderr
    assert [path.name for path in (folder / "1").iterdir()] == ["weights.safetensors"]


def test_pictures_that_do_not_decode_are_left_out(tmp_path):
    folder = add(tmp_path, "shapes")
    pictures = shutil.copytree(PICTURES, tmp_path / "pictures")
    (pictures / "broken.jpg").write_bytes(b"not a picture")
    ran = quantize(folder, pictures, "--keep-within", ANY)
    assert ran.returncode == 0 and "left out: " in ran.stderr and "broken.jpg" in ran.stderr
    for picture in sorted(pictures.iterdir())[:5]:
        picture.write_bytes(b"")
    ran = quantize(folder, pictures)
    assert ran.returncode == 1 and "that can be used, of 11; expected at least 8" in ran.stderr


def test_annotations_beside_the_pictures_take_no_places(tmp_path):
    """Every second file is none that can be used, and as many are wanted as there are pictures."""
    folder = add(tmp_path, "shapes")
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for index, picture in enumerate(sorted(PICTURES.iterdir())[:8]):
        (pictures / f"{index}.json").write_text("{}")
        shutil.copy(picture, pictures / f"{index}{picture.suffix}")
    ran = quantize(folder, pictures, "--keep-within", ANY, "--max-pictures", "8")
    assert ran.returncode == 0, ran.stderr
    assert "to 8 items change" in ran.stdout


def test_a_processor_without_int8_is_told_before_anything_is_read(tmp_path):
    folder = add(tmp_path, "shapes")
    ran = subprocess.run(command(folder, tmp_path / "nowhere"), capture_output=True, text=True, timeout=DEADLINE_SECONDS,
                         env={**os.environ, "SACCADE_CPU_ISA": "avx2"})
    assert ran.returncode == 1 and "avx512_vnni" in ran.stderr and "SACCADE_CPU_ISA=avx2" in ran.stderr
    assert "nowhere" not in ran.stderr and "set precision" not in ran.stderr


def test_threads_spin_as_in_the_daemon(tmp_path):
    variables = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    running = subprocess.Popen(command(add(tmp_path, "shapes"), PICTURES), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=variables)
    line = running.stderr.readline()  # the first step has begun
    inside = dict(entry.split("=", 1) for entry in pathlib.Path(f"/proc/{running.pid}/environ").read_text().split("\0") if "=" in entry)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=DEADLINE_SECONDS)
    assert int(inside["GOMP_SPINCOUNT"]) >= 0 and "SACCADE_SPINNING_REASON" in inside, line


def test_weights_that_are_quantized_already_are_refused(tmp_path, quantized):
    folder = add(tmp_path, "shapes", weights="weights.int8.safetensors")
    shutil.copy(quantized[0] / "weights.int8.safetensors", folder / "1")
    ran = quantize(folder)
    assert ran.returncode == 1 and "is quantized already" in ran.stderr


def test_an_interrupted_calibration_leaves_the_old_file(tmp_path):
    folder = add(tmp_path, "shapes")
    (folder / "1" / "weights.int8.safetensors").write_text("old")
    running = subprocess.Popen(command(folder, PICTURES), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = running.stderr.readline()  # the first step has begun
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=DEADLINE_SECONDS)
    assert running.returncode == 1 and "interrupted; nothing was written" in errors, line + errors
    assert (folder / "1" / "weights.int8.safetensors").read_text() == "old"
    assert sorted(path.name for path in (folder / "1").iterdir()) == ["weights.int8.safetensors", "weights.safetensors"]


def test_a_version_without_quantized_weights_says_how_to_make_them(start, tmp_path):
    add(tmp_path, "coarse", precision="int8")
    add(tmp_path, "plain")
    assert "make weights.int8.safetensors with saccade quantize" in refusal(start(tmp_path, "--exit-on-error=false"))


def damaged(path, name, values):
    """Replaces the first numbers of an F32 tensor."""
    content = bytearray(path.read_bytes())
    (length,) = struct.unpack_from("<Q", content)
    begin = json.loads(content[8:8 + length])[name]["data_offsets"][0]
    struct.pack_into(f"<{len(values)}f", content, 8 + length + begin, *values)
    path.write_bytes(content)


@pytest.mark.parametrize("name, values", [
    ("weight_scale", [float("nan")]), ("weight_scale", [0.0]), ("grids", [float("inf")]), ("grids", [0.1, -1.0]),
], ids=str)
def test_scales_that_cannot_be_are_told(start, tmp_path, quantized, name, values):
    folder = add(tmp_path, "coarse", precision="int8")
    add(tmp_path, "plain")
    path = folder / "1" / "weights.int8.safetensors"
    shutil.copy(quantized[0] / "weights.int8.safetensors", path)
    tensor = next(tensor for tensor in header(path) if tensor.endswith(name))
    damaged(path, tensor, values)
    reason = refusal(start(tmp_path, "--exit-on-error=false"))
    assert tensor in reason and "saccade quantize" in reason


def scenes(folder, model, count):
    """Draws scenes that the demo's model was not trained on, as files with their names; returns them by name."""
    folder.mkdir(exist_ok=True)
    drawn = {f"{index:03}": RECIPES[model].task.sample(HELD_OUT_SEED + 3, index) for index in range(count)}
    for name, scene in drawn.items():
        sample_files.write(scene, folder, name)
    return drawn


def list_of_labels(drawn, folder):
    labels = folder.with_name("labels.csv")
    labels.write_text("file,label\n" + "".join(f"{name}.png,{scene.label}\n" for name, scene in drawn.items()))
    return labels


def masks(drawn, folder):
    labels = folder.with_name("masks")
    labels.mkdir()
    for name, scene in drawn.items():
        Image.fromarray(scene.label_map.astype("uint8")).save(labels / f"{name}.png")
    return labels


def disparities(drawn, folder):
    """Writes those of every second pair as a float map, the others as KITTI's."""
    labels = folder.with_name("disparities")
    labels.mkdir()
    for index, (name, pair) in enumerate(drawn.items()):
        if index % 2:
            height, width = pair.disparity.shape
            rows = pair.disparity[::-1].astype("<f4").tobytes()
            (labels / f"{name}-left.pfm").write_bytes(f"Pf\n{width} {height}\n-1.0\n".encode() + rows)
        else:
            Image.fromarray((pair.disparity * 256).round().astype("uint16")).save(labels / f"{name}-left.png")
    return labels


TOLD = r"(\S+) is ([\d.]+) in int8 and ([\d.]+) in float32 on (\d+) held-out items: ([\d.< ]+) % (?:lost|gained) \(all layers: "


@pytest.mark.parametrize("model, figure, write, least, most", [
    ("sanet_shapes", "top-1", list_of_labels, 0.8, 1), ("segmenter", "mIoU", masks, 0.6, 1), ("stereo_matcher", "EPE", disparities, 0.1, 2),
], ids=["classification", "segmentation", "stereo"])
def test_labels_decide_by_the_tasks_figure(tmp_path, model, figure, write, least, most):
    folder = add(tmp_path, "labelled", source=model)
    drawn = scenes(tmp_path / "scenes", model, 24)
    ran = quantize(folder, tmp_path / "scenes", "--labels", write(drawn, tmp_path / "scenes"), "--keep-within", "10%")
    assert ran.returncode == 0, ran.stderr
    name, int8, float32, items, _ = re.search(TOLD, ran.stdout).groups()
    # 8 calibrate.
    assert (name, items) == (figure, "16")
    assert least < float(float32) <= most
    loss = (float(float32) - float(int8)) / float(float32)
    assert (-loss if figure == "EPE" else loss) <= 0.101
    said = header(folder / "1" / "weights.int8.safetensors")["__metadata__"]
    weights = (folder / "1" / "weights.safetensors").read_bytes()
    assert said.pop("saccade_source_sha256") == hashlib.sha256(weights).hexdigest()
    assert said == {"saccade_figure": figure, "saccade_figure_float32": float32, "saccade_figure_int8": int8, "saccade_figure_items": "16"}
    page = (folder / "1" / "weights.int8.html").read_text()
    assert f"<td>{figure} in float32</td><td class=\"n\">{float32}</td>" in page
    assert f"<td>{figure} in int8 with these layers</td><td class=\"n\">{int8}</td>" in page
    assert "labels were not used" not in page


def test_a_class_that_stays_the_same_loses_nothing(tmp_path):
    """Without labels, no layer changes nothing of the answers."""
    folder = add(tmp_path, "labelled")
    drawn = scenes(tmp_path / "scenes", "sanet_shapes", 40)
    # Named as the folders of a data set, the pictures need no list.
    for name, scene in drawn.items():
        place = tmp_path / "by_class" / RECIPES["sanet_shapes"].task.labels[scene.label]
        place.mkdir(parents=True, exist_ok=True)
        (tmp_path / "scenes" / f"{name}.png").rename(place / f"{name}.png")
    flags = ("--labels", tmp_path / "by_class", "--keep-within", "0%")
    ran = quantize(folder, tmp_path / "by_class", *flags)
    assert ran.returncode == 0, ran.stderr
    assert int(re.search(r"(\d+) of \d+ layers in int8", ran.stdout)[1]) > 0
    ran = quantize(folder, tmp_path / "by_class", "--labels", tmp_path / "by_class", "--max-held-out", "8", "--keep-within", "100%")
    assert "on 8 held-out items" in ran.stdout, ran.stderr


def test_labels_that_do_not_fit_are_told_and_leave_nothing(tmp_path):
    folder = add(tmp_path, "labelled")
    drawn = scenes(tmp_path / "scenes", "sanet_shapes", 16)
    labels = list_of_labels(drawn, tmp_path / "scenes")
    right = labels.read_text()
    for text, told in ((right.replace("005.png", "five.png"), "labels without a picture: 1, the first is of 'five.png' in line 7"),
                       (right.replace("005.png,5\n", ""), "pictures without a label: 1, the first is 005.png"),
                       (right.replace("005.png,5\n", "005.png,10\n"), "line 7: the class 10 is out of range; the model has 10 classes"),
                       (re.sub(r",(\d)\n", lambda match: f",{(int(match[1]) + 1) % 10}\n", right), "top-1 is 0 in float32")):
        labels.write_text(text)
        ran = quantize(folder, tmp_path / "scenes", "--labels", labels)
        assert ran.returncode == 1 and told in ran.stderr, ran.stderr
    labels.write_text(right)
    ran = quantize(folder, tmp_path / "scenes", "--labels", labels, "--keep-within", "1%")
    assert "8 held-out items measure top-1 in steps of 12 % or more" in ran.stderr and "at least 100 held-out items" in ran.stderr
    detector = add(tmp_path, "detector", source="detector")
    ran = quantize(detector, tmp_path / "scenes", "--labels", labels)
    assert ran.returncode == 1 and "saccade evaluate --dataset coco" in ran.stderr
    assert [path.name for path in (detector / "1").iterdir()] == ["weights.safetensors"]


def test_arguments_are_checked(tmp_path):
    folder = add(tmp_path, "shapes")
    for flags, told in ((("--keep-within", "nan"), "expected a share"), (("--keep-within", "200%"), "expected a share"),
                        (("--method", "best"), "mse"), (("--max-pictures", "3"), "--max-pictures"),
                        (("--max-held-out", "20"), "--labels")):
        ran = quantize(folder, PICTURES, *flags)
        assert ran.returncode == 2 and told in ran.stdout + ran.stderr
    ran = quantize(tmp_path / "none")
    assert ran.returncode == 1 and "none" in ran.stderr
    ran = quantize(folder, tmp_path / "nowhere")
    assert ran.returncode == 1 and "cannot be read" in ran.stderr
    ran = quantize(folder, PICTURES, "--version", "7")
    assert ran.returncode == 1 and "has no version 7" in ran.stderr

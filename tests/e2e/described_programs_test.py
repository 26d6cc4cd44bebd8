"""Serves programs with a description of their pictures and outputs (saccade.json), and compares the answers with the same
network's in PyTorch, from the encoded picture on."""

import concurrent.futures
import io
import json
import subprocess
import urllib.request

import grpc
import numpy
import PIL.Image
import pytest
import torch
from torchvision.ops import batched_nms
from torchvision.transforms import functional

from checked import Checked
from harness import Daemon, binary, run_to_end
from messages import get_model_request, predict_request
from pictures import encoded

ALLOW = "--allow-executable-models"
torch.set_num_threads(1)


def picture(height, width, seed):
    chance = torch.Generator().manual_seed(seed)
    coarse = 255 * torch.rand(1, 3, height // 24 + 2, width // 24 + 2, generator=chance)
    smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic")[0]
    return smooth.clamp(0, 255).byte().permute(1, 2, 0).numpy()


def decoded(file):
    return functional.to_tensor(PIL.Image.open(io.BytesIO(file)))


class Classes(torch.nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.body = torch.nn.Conv2d(3, classes, 7, stride=4)

    def forward(self, x):
        return self.body(x).mean((2, 3))


class Nhwc(Classes):
    """Takes bytes, as exports for phones do."""

    def forward(self, x):
        x = x.permute(0, 3, 1, 2).float() / 255
        return self.body(x).mean((2, 3)).softmax(1)


class Tags(Classes):
    """Ends in the sigmoids of its classes, as exported taggers do."""

    def forward(self, x):
        return super().forward(x).sigmoid()


class Probabilities(Classes):
    """Ends in a softmax, as exported classifiers do."""

    def forward(self, x):
        return super().forward(x).softmax(1)


class Large(Classes):
    """Its last layer is no activation."""

    def forward(self, x):
        return 2 + super().forward(x)


class Sets(torch.nn.Module):
    """Queries whose boxes and logits depend on the picture."""

    def __init__(self, queries=12, classes=4):
        super().__init__()
        self.body = torch.nn.Conv2d(3, 16, 9, stride=8)
        self.logits = torch.nn.Linear(16, queries * classes)
        self.boxes = torch.nn.Linear(16, queries * 4)
        self.queries = queries

    def forward(self, x):
        seen = self.body(x).mean((2, 3))
        return 8 * self.logits(seen).unflatten(1, (self.queries, -1)), (3 * self.boxes(seen)).sigmoid().unflatten(1, (-1, 4))


class Grid(torch.nn.Module):
    """YOLO's: [4 + classes, rows] with boxes in pixels of the input, from a grid of stride 16."""

    def __init__(self, classes=3, points=0):
        super().__init__()
        self.body = torch.nn.Conv2d(3, 4 + classes + 3 * points, 16, stride=16)
        self.classes, self.points = classes, points

    def forward(self, x):
        found = self.body(x)
        rows, columns = found.shape[2:]
        ys = torch.arange(rows).float()[:, None] * 16 + 8
        xs = torch.arange(columns).float()[None] * 16 + 8
        cx = found[:, 0] * 8 + xs
        cy = found[:, 1] * 8 + ys
        size = found[:, 2:4].sigmoid() * 90 + 8
        scores = (6 * found[:, 4:4 + self.classes]).sigmoid()
        parts = [torch.stack((cx, cy), 1), size, scores]
        for p in range(self.points):
            at = 4 + self.classes + 3 * p
            parts += [torch.stack((found[:, at] * 8 + xs, found[:, at + 1] * 8 + ys, found[:, at + 2].sigmoid()), 1)]
        return torch.cat(parts, 1).flatten(2)


class Decoded(Grid):
    """The same as boxes by corners with a score for each class."""

    def forward(self, x):
        found = super().forward(x).transpose(1, 2)
        centre, half = found[..., :2], found[..., 2:4] / 2
        return torch.cat((centre - half, centre + half), 2), found[..., 4:]


class Unscaled(Decoded):
    """Its scores lack their sigmoid."""

    def forward(self, x):
        boxes, scores = super().forward(x)
        return boxes, 2 + scores.logit()


class Labelled(Decoded):
    """The same with one label for each box, and a row that fills up."""

    def forward(self, x):
        boxes, scores = super().forward(x)
        scores, labels = scores.max(2)
        labels = torch.where(scores < 0.3, -1, labels)
        return labels, boxes, scores


class Semantic(torch.nn.Module):
    def __init__(self, classes=6, stride=4):
        super().__init__()
        self.body = torch.nn.Conv2d(3, classes, 5, stride=stride, padding=2)

    def forward(self, x):
        return self.body(x)


class Depth(Semantic):
    def __init__(self):
        super().__init__(classes=1, stride=2)

    def forward(self, x):
        return 10 + 20 * self.body(x)[:, 0]


def write(root, name, network, description, example=None, files=None):
    folder = root / name
    (folder / "1").mkdir(parents=True)
    example = torch.zeros(1, 3, 64, 64) if example is None else example
    torch.jit.trace(network.eval(), example, check_trace=False).save(folder / "1" / "model.pt")
    if description is not None:
        (folder / "saccade.json").write_text(json.dumps(description))
    for file, text in (files or {}).items():
        (folder / file).write_text(text)


MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
LABELS = ["a", "b", "c"]
EXACT = {"resize": "exact", "size": [160, 224], "mean": MEAN, "std": STD}
LETTERBOX = {"resize": "letterbox", "size": [192, 256]}
SHORTER = {"resize": "shorter", "size": 120, "max_size": 240}
BOXES = {"score_threshold": 0.3, "nms": 0.5, "max_detections": 50}


@pytest.fixture(scope="module")
def networks():
    torch.manual_seed(11)
    return {
        "classes": Classes(), "sigmoid": Classes(), "bytes": Nhwc(), "sets": Sets(), "focal": Sets(classes=3), "grid": Grid(),
        "points": Grid(points=2), "decoded": Decoded(), "labelled": Labelled(), "semantic": Semantic(), "depth": Depth(),
        "embedding": Classes(32), "folder": Semantic(), "down": Classes(), "squeezed": Classes(), "either": Depth(), "multiples": Sets(),
        "tags": Tags(), "twice": Probabilities(), "large": Large(), "unscaled": Unscaled(),
    }  # fmt: skip


@pytest.fixture(scope="module")
def daemon(networks, tmp_path_factory):
    root = tmp_path_factory.mktemp("described")

    def add(name, description, **others):
        write(root / "models", name, networks[name], description, **others)

    crop = {"resize": "shorter", "size": 140, "crop": 128, "mean": MEAN, "std": STD}
    add("classes", {"input": crop, "head": {"kind": "classes"}, "labels": list("abcde")})
    add("sigmoid", {"input": {**EXACT, "colour": "bgr"}, "head": {"kind": "classes", "activation": "sigmoid"}})
    taken = {"resize": "exact", "size": [96, 128], "scale": 1, "layout": "nhwc", "type": "UINT8"}
    add("bytes", {"input": taken, "head": {"kind": "classes", "activation": "none"}}, example=torch.zeros(1, 96, 128, 3, dtype=torch.uint8))
    add("tags", {"input": EXACT, "head": {"kind": "classes", "activation": "none"}})
    add("large", {"input": EXACT, "head": {"kind": "classes", "activation": "none"}})
    add("twice", {"input": EXACT, "head": {"kind": "classes"}})
    add("unscaled", {"input": LETTERBOX, "head": {"kind": "boxes", **BOXES}, "labels": LABELS,
                     "outputs": {"boxes": "OUTPUT__0", "scores": "OUTPUT__1"}}, example=torch.zeros(1, 3, 192, 256))
    add("down", {"input": {**crop, "rounding": "down"}, "head": {"kind": "classes"}})
    add("sets", {"input": EXACT, "head": {"kind": "sets", "score_threshold": 0.2}, "labels": LABELS})
    add("focal", {"input": EXACT, "head": {"kind": "sets", "activation": "sigmoid", "max_detections": 9}, "labels": LABELS})
    add("grid", {"input": LETTERBOX, "head": {"kind": "grid", **BOXES}, "labels": LABELS}, example=torch.zeros(1, 3, 192, 256))
    add("points", {"input": LETTERBOX, "head": {"kind": "grid", "keypoints": 2, **BOXES}, "labels": LABELS}, example=torch.zeros(1, 3, 192, 256))
    add("decoded", {"input": LETTERBOX, "head": {"kind": "boxes", **BOXES}, "labels": LABELS,
                    "outputs": {"boxes": "OUTPUT__0", "scores": "OUTPUT__1"}}, example=torch.zeros(1, 3, 192, 256))
    outputs = {"boxes": "OUTPUT__1", "scores": "OUTPUT__2", "labels": "OUTPUT__0"}
    add("labelled", {"input": LETTERBOX, "head": {"kind": "boxes", **BOXES}, "outputs": outputs},
        example=torch.zeros(1, 3, 192, 256), files={"labels.txt": "a\nb\nc\n"})
    add("semantic", {"input": SHORTER, "head": {"kind": "semantic"}, "max_batch_size": 3})
    add("depth", {"input": EXACT, "head": {"kind": "depth"}})
    add("squeezed", {"input": {"resize": "exact", "size": [140, 180], "crop": 128, "mean": MEAN, "std": STD}, "head": {"kind": "classes"}})
    add("either", {"input": {"resize": "either", "size": [96, 128], "multiple": 32}, "head": {"kind": "depth", "filter": "bicubic"}})
    add("multiples", {"input": {**SHORTER, "multiple": 16}, "head": {"kind": "sets", "score_threshold": 0.2}, "labels": LABELS})
    add("embedding", {"input": EXACT, "head": {"kind": "embedding", "unit_length": True}})
    config = {"architectures": ["SegformerForSemanticSegmentation"], "id2label": {str(n): f"c{n}" for n in range(6)}, "x": None}
    processor = {"image_processor_type": "SegformerImageProcessor", "size": {"height": 96, "width": 128}, "resample": 2,
                 "image_mean": MEAN, "image_std": STD, "do_reduce_labels": True}  # fmt: skip
    add("folder", None, files={"config.json": json.dumps(config), "preprocessor_config.json": json.dumps(processor)})
    with Daemon(root / "models", ALLOW, "--warm-up-seconds=0", log_folder=root) as running:
        yield running.await_ready()


SIZES = [(301, 467), (640, 363), (97, 151)]


def ask(daemon, model, file, **options):
    with daemon.vision() as vision:
        return vision.predict(predict_request(model=model, encoded=file, **options))


def exact(pixels, size=(160, 224), mean=MEAN, std=STD):
    return functional.normalize(functional.resize(pixels, list(size), antialias=True), mean, std)[None]


def letterboxed(pixels, height=192, width=256):
    """ultralytics' letterbox."""
    factor = min(height / pixels.shape[1], width / pixels.shape[2])
    size = [round(pixels.shape[1] * factor), round(pixels.shape[2] * factor)]
    resized = functional.resize(pixels, size, antialias=False)
    top, left = (height - size[0]) // 2, (width - size[1]) // 2
    whole = torch.full((3, height, width), 114 / 255)
    whole[:, top:top + size[0], left:left + size[1]] = resized
    return whole[None], factor, top, left


@pytest.mark.parametrize("height, width", SIZES)
def test_classes_are_the_networks(daemon, networks, height, width):
    file = encoded(picture(height, width, 1))
    resized = functional.center_crop(functional.resize(decoded(file), [140], antialias=True), [128, 128])
    with torch.inference_mode():
        expected = networks["classes"](functional.normalize(resized, MEAN, STD)[None])[0].softmax(0)
    found = {one.label: one.probability for one in ask(daemon, "classes", file).classification.classes}
    assert [found[label] for label in "abcde"] == pytest.approx(expected.tolist(), abs=1e-4)


@pytest.mark.parametrize("height, width", SIZES)
def test_a_crop_may_follow_a_size_of_other_proportions(daemon, networks, height, width):
    file = encoded(picture(height, width, 1))
    resized = functional.center_crop(functional.resize(decoded(file), [140, 180], antialias=True), [128, 128])
    with torch.inference_mode():
        expected = networks["squeezed"](functional.normalize(resized, MEAN, STD)[None])[0].softmax(0)
    classes = {one.index: one.probability for one in ask(daemon, "squeezed", file).classification.classes}
    assert [classes[n] for n in range(5)] == pytest.approx(expected.tolist(), abs=1e-4)


def test_half_a_pixel_beside_a_crop_can_be_rounded_down(daemon, networks):
    # Not scaled: 7.5 columns are left on each side.
    file = encoded(picture(140, 143, 1))
    whole = functional.normalize(decoded(file), MEAN, STD)[None, :, 6:134]
    with torch.inference_mode():
        down, even = (networks["down"](whole[..., left:left + 128])[0].softmax(0) for left in (7, 8))
    classes = {one.index: one.probability for one in ask(daemon, "down", file).classification.classes}
    found = torch.tensor([classes[n] for n in range(5)])
    assert (found - down).abs().max() < 1e-4 and (found - down).abs().max() < 0.1 * (down - even).abs().max()


def test_sigmoid_classes_have_probabilities_of_their_own_and_colours_may_be_swapped(daemon, networks):
    file = encoded(picture(300, 200, 2))
    with torch.inference_mode():
        expected = networks["sigmoid"](exact(decoded(file).flip(0)))[0].sigmoid()
    found = {one.index: one.probability for one in ask(daemon, "sigmoid", file).classification.classes}
    assert [found[n] for n in range(5)] == pytest.approx(expected.tolist(), abs=1e-4)


def test_bytes_in_rows_of_pixels_are_taken_as_well(daemon, networks):
    file = encoded(picture(300, 200, 3))
    resized = functional.resize(decoded(file), [96, 128], antialias=True)
    with torch.inference_mode():
        expected = networks["bytes"]((255 * resized).round().byte().permute(1, 2, 0)[None])[0]
    found = {one.index: one.probability for one in ask(daemon, "bytes", file).classification.classes}
    assert [found[n] for n in range(5)] == pytest.approx(expected.tolist(), abs=1e-3)


def test_probabilities_stay_as_they_are_and_need_not_sum_up_to_one(daemon, networks):
    file = encoded(picture(300, 200, 2))
    with torch.inference_mode():
        expected = networks["tags"](exact(decoded(file)))[0]
    assert abs(float(expected.sum()) - 1) > 0.5
    found = {one.index: one for one in ask(daemon, "tags", file).classification.classes}
    assert [found[n].probability for n in range(5)] == pytest.approx(expected.tolist(), abs=1e-4)
    # So a client's own softmax gives the probabilities of a network that ends in one.
    assert [found[n].logit for n in range(5)] == pytest.approx(expected.log().tolist(), abs=0.01)


@pytest.mark.parametrize("model, role", [("large", "logits"), ("unscaled", "scores")])
def test_values_beyond_one_are_no_probabilities(daemon, model, role):
    with pytest.raises(grpc.RpcError) as failure:
        ask(daemon, model, encoded(picture(300, 200, 2)))
    told = failure.value.details()
    assert f"the program's {role} have the value" in told and "no probability" in told and '"sigmoid" or "softmax"' in told


def test_a_softmax_over_a_softmax_is_told(daemon):
    notes = [line for line in daemon.log().splitlines() if "sums up to 1" in line]
    assert len(notes) == 1 and "model=twice" in notes[0] and "head.activation" in notes[0], daemon.log()


# Networks, descriptions, and what is odd about them.
ODD = [
    (Probabilities(), {"input": EXACT, "head": {"kind": "classes"}}, "output 'logits' sums up to 1"),
    (Grid(), {"input": LETTERBOX, "head": {"kind": "grid", "order": "rows"}},
     "output 'grid' has the shape [7,192], which head.order \"rows\" makes 188 classes of 7 boxes; if it has 3 classes of 192 boxes, set"),
    (Grid(), {"input": LETTERBOX, "head": {"kind": "grid"}}, None),
]  # fmt: skip


def test_what_is_odd_about_a_described_model_is_told_before_serving(tmp_path):
    for n, (network, description, _) in enumerate(ODD):
        write(tmp_path / "models", f"odd{n}", network, description, example=torch.zeros(1, 3, 192, 256))
    checked = Checked(tmp_path / "models", ALLOW)
    assert checked.code == 0
    for n, (_, _, note) in enumerate(ODD):
        assert checked.of(f"odd{n}")[0] == "OK"
        warnings = checked.warnings_of(f"odd{n}")
        assert len(warnings) == (note is not None), checked.lines
        assert note is None or f"WARNING odd{n} version 1: {note}" in warnings[0]


def boxes_of(answer):
    found = answer.detections.detections
    boxes = numpy.array([[d.box.x_min, d.box.y_min, d.box.x_max, d.box.y_max] for d in found]).reshape(-1, 4)
    return boxes, numpy.array([d.score for d in found]), [d.class_index for d in found]


def agree(answer, boxes, scores, labels, width, height):
    """`boxes` are in pixels of the picture."""
    boxes = boxes.clone()
    boxes[:, 0::2] = boxes[:, 0::2].clamp(0, width)
    boxes[:, 1::2] = boxes[:, 1::2].clamp(0, height)
    found, found_scores, found_labels = boxes_of(answer)
    assert found_labels == labels.tolist()
    assert numpy.abs(found_scores - scores.numpy()).max(initial=0) < 1e-3
    assert numpy.abs(found - boxes.numpy()).max(initial=0) < 0.5


def sets_agree(daemon, model, file, outputs, height, width):
    logits, boxes = (one[0] for one in outputs)
    scores, labels = logits.softmax(1)[:, :-1].max(1)
    order = scores.argsort(descending=True)
    order = order[scores[order] > 0.2]
    assert len(order) > 2
    centre, half = boxes[order, :2], boxes[order, 2:] / 2
    corners = torch.cat((centre - half, centre + half), 1) * torch.tensor([width, height, width, height])
    answer = ask(daemon, model, file)
    agree(answer, corners, scores[order], labels[order], width, height)
    assert {d.label for d in answer.detections.detections} <= set(LABELS)


@pytest.mark.parametrize("height, width", SIZES)
def test_sets_are_detrs(daemon, networks, height, width):
    file = encoded(picture(height, width, 4))
    with torch.inference_mode():
        outputs = networks["sets"](exact(decoded(file)))
    sets_agree(daemon, "sets", file, outputs, height, width)


@pytest.mark.parametrize("height, width, scaled", [(301, 467, [112, 176]), (640, 363, [208, 112]), (97, 151, [112, 176])])
def test_both_sides_may_be_rounded_down_to_multiples(daemon, networks, height, width, scaled):
    file = encoded(picture(height, width, 4))
    with torch.inference_mode():
        outputs = networks["multiples"](functional.resize(decoded(file), scaled, antialias=True)[None])
    sets_agree(daemon, "multiples", file, outputs, height, width)


def test_focal_sets_take_the_best_pairs_of_query_and_class(daemon, networks):
    file = encoded(picture(200, 300, 5))
    with torch.inference_mode():
        logits, boxes = (one[0] for one in networks["focal"](exact(decoded(file))))
    scores, best = logits.sigmoid().flatten().sort(descending=True)
    rows, labels = best[:9] // 3, best[:9] % 3
    centre, half = boxes[rows, :2], boxes[rows, 2:] / 2
    corners = torch.cat((centre - half, centre + half), 1) * torch.tensor([300, 200, 300, 200])
    agree(ask(daemon, "focal", file), corners, scores[:9], labels, 300, 200)


def expected_of_grid(rows, factor, top, left):
    scores, labels = rows[:, 4:7].max(1)
    centre, half = rows[:, :2], rows[:, 2:4] / 2
    boxes = torch.cat((centre - half, centre + half), 1)
    certain = scores > 0.3
    boxes, scores, labels, points = boxes[certain], scores[certain], labels[certain], rows[certain][:, 7:]
    kept = batched_nms(boxes, scores, labels, 0.5)[:50]
    moved = (boxes[kept] - torch.tensor([left, top, left, top])) / factor
    points = points[kept].unflatten(1, (-1, 3))
    points[..., :2] = (points[..., :2] - torch.tensor([left, top])) / factor
    return moved, scores[kept], labels[kept], points


@pytest.mark.parametrize("model", ["grid", "decoded", "labelled", "points"])
@pytest.mark.parametrize("height, width", SIZES)
def test_grids_and_boxes_are_suppressed_and_moved_back(daemon, networks, model, height, width):
    file = encoded(picture(height, width, 6))
    pixels, factor, top, left = letterboxed(decoded(file))
    with torch.inference_mode():
        found = networks[model](pixels)
    if model == "labelled":
        labels, corners, scores = (one[0] for one in found)
        certain = scores > 0.3
        kept = batched_nms(corners[certain], scores[certain], labels[certain], 0.5)[:50]
        boxes = (corners[certain][kept] - torch.tensor([left, top, left, top])) / factor
        scores, labels, points = scores[certain][kept], labels[certain][kept], None
    elif model == "decoded":
        corners, all_scores = (one[0] for one in found)
        row, label = (all_scores > 0.3).nonzero().unbind(1)
        kept = batched_nms(corners[row], all_scores[row, label], label, 0.5)[:50]
        boxes = (corners[row][kept] - torch.tensor([left, top, left, top])) / factor
        scores, labels, points = all_scores[row, label][kept], label[kept], None
    else:
        boxes, scores, labels, points = expected_of_grid(found[0].T, factor, top, left)
    assert len(scores) > 3
    answer = ask(daemon, model, file)
    agree(answer, boxes, scores, labels, width, height)
    if model == "points":
        got = [[[p.x, p.y, p.score] for p in d.keypoints] for d in answer.detections.detections]
        assert numpy.abs(numpy.array(got) - points.numpy()).max() < 0.5


def label_map(answer):
    return numpy.frombuffer(answer.segmentation.label_map, numpy.uint8).reshape(
        answer.segmentation.height, answer.segmentation.width)  # fmt: skip


def same_map(answer, logits, height, width):
    """Pixels may differ where two classes are equal but for rounding."""
    scores = torch.nn.functional.interpolate(logits, (height, width), mode="bilinear", align_corners=False)[0]
    best = scores.topk(2, dim=0).values
    differs = torch.from_numpy(label_map(answer)) != scores.argmax(0)
    assert not (differs & (best[0] - best[1] > 1e-3)).any()
    assert differs.float().mean() < 0.01


@pytest.mark.parametrize("height, width", SIZES)
def test_semantic_logits_become_a_label_map_of_the_sent_picture(daemon, networks, height, width):
    file = encoded(picture(height, width, 7))
    resized = functional.resize(decoded(file), [120], max_size=240, antialias=True)
    with torch.inference_mode():
        logits = networks["semantic"](resized[None])
    same_map(ask(daemon, "semantic", file, segmentation={"format": "RAW"}), logits, height, width)


def test_a_hugging_face_folder_is_read_as_it_is(daemon, networks):
    file = encoded(picture(301, 467, 8))
    with torch.inference_mode():
        logits = networks["folder"](exact(decoded(file), (96, 128)))
    answer = ask(daemon, "folder", file, segmentation={"format": "RAW"})
    same_map(answer, logits, 301, 467)
    assert {area.label for area in answer.segmentation.areas} <= {f"c{n}" for n in range(6)}


def depths_agree(daemon, model, file, depth, height, width, mode="bilinear"):
    expected = torch.nn.functional.interpolate(depth[:, None], (height, width), mode=mode, align_corners=False).clamp(min=0)[0, 0]
    answer = ask(daemon, model, file, stereo_options={"format": "FLOAT"}).disparity
    found = numpy.frombuffer(answer.map, numpy.float32).reshape(height, width)
    assert numpy.abs(found - expected.numpy()).max() < 1e-2


def test_depth_is_a_map_of_the_sent_picture(daemon, networks):
    file = encoded(picture(301, 467, 9))
    with torch.inference_mode():
        depth = networks["depth"](exact(decoded(file)))
    depths_agree(daemon, "depth", file, depth, 301, 467)


# The side that is scaled less becomes 96 high or 128 wide. The other one is rounded to the nearest multiple of 32.
@pytest.mark.parametrize("height, width, scaled", [(301, 467, [96, 160]), (640, 363, [224, 128]), (97, 151, [96, 160]), (90, 300, [96, 320])])
def test_either_side_may_become_that_of_the_size(daemon, networks, height, width, scaled):
    file = encoded(picture(height, width, 9))
    with torch.inference_mode():
        depth = networks["either"](functional.resize(decoded(file), scaled, antialias=True)[None])
    depths_agree(daemon, "either", file, depth, height, width, mode="bicubic")


def test_embeddings_have_length_one_if_asked(daemon, networks):
    file = encoded(picture(301, 467, 10))
    with torch.inference_mode():
        expected = torch.nn.functional.normalize(networks["embedding"](exact(decoded(file)))[0], dim=0)
    assert list(ask(daemon, "embedding", file).embedding.values) == pytest.approx(expected.tolist(), abs=1e-4)


def test_the_python_client_gives_keypoints_depth_and_embeddings(daemon, connect):
    file = encoded(picture(301, 467, 6))
    client = connect(daemon.grpc_address)
    told = ask(daemon, "points", file).detections.detections
    found = client.detect("points", file).detections
    assert len(found) == len(told) > 0
    for one, other in zip(found, told):
        assert len(one.keypoints) == 2
        assert [(p.x, p.y, p.score) for p in one.keypoints] == [(p.x, p.y, p.score) for p in other.keypoints]
    assert client.detect("grid", file).detections[0].keypoints == ()
    depth = client.depth("depth", file)
    assert depth.depth.shape == (301, 467) and depth.min == depth.depth.min() < depth.max == depth.depth.max()
    assert client.embed("embedding", file).values.tolist() == list(ask(daemon, "embedding", file).embedding.values)


def saccade_command(daemon, command, model, *arguments):
    """Runs the command and returns the JSON of its only result."""
    line = [binary("saccade"), command, "--url", daemon.grpc_address, "--model", model, "--json", *arguments]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)["results"][0]


def test_the_command_gives_keypoints_depth_and_embeddings(daemon, tmp_path):
    file, out = encoded(picture(301, 467, 6)), tmp_path / "out"
    (tmp_path / "street.png").write_bytes(file)
    given = (str(tmp_path / "street.png"), "-o", str(out))
    found = saccade_command(daemon, "detect", "points", *given)
    told = [[[p.x, p.y, p.score] for p in one.keypoints] for one in ask(daemon, "points", file).detections.detections]
    points = [[[p["x"], p["y"], p["score"]] for p in one["keypoints"]] for one in found["detections"]]
    assert numpy.array(points, numpy.float32).tolist() == told
    assert numpy.array(PIL.Image.open(found["overlay"])).shape == (301, 467, 3)

    depth = saccade_command(daemon, "depth", "depth", *given)
    answer = ask(daemon, "depth", file, stereo_options={"format": "FLOAT"}).disparity
    assert depth["depth"] == {"width": 467, "height": 301} | {
        name: pytest.approx(getattr(answer, name)) for name in ("min", "max", "mean")}
    head, size, scale, rest = (out / "street.depth.pfm").read_bytes().split(b"\n", 3)
    assert (head, size, scale) == (b"Pf", b"467 301", b"-1.0")
    rows = numpy.frombuffer(rest, "<f4").reshape(301, 467)
    assert numpy.array_equal(rows[::-1], numpy.frombuffer(answer.map, "<f4").reshape(301, 467))
    assert PIL.Image.open(depth["colored"]).width == 467

    embedding = saccade_command(daemon, "embed", "embedding", given[0])["embedding"]
    assert numpy.array(embedding, numpy.float32).tolist() == list(ask(daemon, "embedding", file).embedding.values)


def test_models_tell_their_task_and_classes(daemon):
    with daemon.vision() as vision:
        told = {name: vision.get_model(get_model_request(name)) for name in ("grid", "labelled", "depth", "embedding", "semantic")}
    assert [told[name].task for name in told] == ["detection", "detection", "depth", "embedding", "segmentation"]
    assert told["grid"].classes == told["labelled"].classes == 3 and list(told["labelled"].labels) == LABELS
    assert (told["grid"].input_width, told["grid"].input_height) == (256, 192)
    assert told["semantic"].max_batch_size == 3


def test_pictures_of_many_sizes_share_passes_with_the_same_answers(daemon, networks):
    files = [encoded(picture(100 + 7 * n, 300 - 5 * n, n)) for n in range(8)]
    alone = [boxes_of(ask(daemon, "grid", file)) for file in files]
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda file: ask(daemon, "grid", file), files))
    for one, other in zip(alone, together):
        assert all(numpy.allclose(a, b, atol=1e-3) for a, b in zip(one, boxes_of(other)))


def test_the_rest_api_answers_with_detections(daemon):
    file = encoded(picture(200, 300, 6))
    url = f"http://127.0.0.1:{daemon.http_port}/v1/predict/grid?top_k=2"
    request = urllib.request.Request(url, data=file, headers={"Content-Type": "image/png"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        found = json.load(reply)["detections"]["detections"]
    assert len(found) == 2 and set(found[0]["box"]) == {"x_min", "y_min", "x_max", "y_max"}


def test_options_of_another_task_are_rejected(daemon):
    file = encoded(picture(60, 80, 1))
    for model, options in (("embedding", {"classification": {"top_k": 1}}), ("depth", {"detection": {"top_k": 1}})):
        with pytest.raises(grpc.RpcError) as failure:
            ask(daemon, model, file, **options)
        assert failure.value.code() == grpc.StatusCode.INVALID_ARGUMENT


GOOD = {"input": EXACT, "head": {"kind": "sets"}, "labels": LABELS}


# Changes of GOOD, and the complaint about each.
UNFIT = [
    ({"head": {"kind": "semantic"}, "outputs": {"logits": "OUTPUT__1"}},
     "output 'OUTPUT__1' has the shape [12,4] for one picture, but its role 'logits' wants [classes,height,width]"),
    ({"head": {"kind": "classes"}}, "output 'logits' has the shape [12,4] for one picture, but its role 'logits' wants [classes]"),
    ({"head": {"kind": "grid", "order": "rows"}, "outputs": {"grid": "OUTPUT__0"}},
     "output 'OUTPUT__0' has the shape [12,4] for one picture, but its role 'grid' wants 4 + classes columns, in the second dimension"),
    ({"head": {"kind": "grid", "strides": [8]}, "outputs": {"grid": "OUTPUT__0"}},
     "output 'OUTPUT__0' has the shape [12,4] for one picture, but its role 'grid' wants 560 rows, one for each cell of head.strides"),
    ({"labels": ["a", "b"]}, "there are 2 labels, but the program's outputs have 3 classes; give one label per class"),
    ({"heads": {}}, "there is no key 'heads' in the description; did you mean 'head'?"),
    ({"input": {**EXACT, "colors": "rgb"}}, "there is no key 'colors' in input; did you mean 'colour'?"),
    ({"input": {**EXACT, "resize": "leterbox"}}, "did you mean 'letterbox'?"),
    ({"input": {"size": 100, "crop": 128}, "head": {"kind": "classes"}}, "input.crop is 128 x 128, expected at most the size, 100 x 100"),
    ({"input": {"resize": "either", "size": [64, 32], "multiple": 48}}, "input.multiple is 48, expected a whole number from 1 to 32"),
    ({"input": {**SHORTER, "multiple": 8, "buckets": "64x64"}}, "input.buckets is '64x64', expected stride:N with multiple 8"),
    ({"input": {**EXACT, "size": [0, 10]}}, "input.size is a list with 0, expected 2 numbers"),
    ({"input": {**EXACT, "std": [1, 0, 1]}}, "input.std is a list with 0"),
    ({"head": {"kind": "sets", "score_threshold": 2}}, "head.score_threshold is 2, expected a number from 0 to 1"),
    ({"head": {}}, "head.kind"),
    ({"outputs": {"logits": "OUTPUT__0"}}, "outputs has no key 'boxes', which this head reads"),
    ({"input": {"resize": "shorter", "crop": 64}}, "input.crop is set with head.kind 'sets'"),
    ({"input": {**EXACT, "size": [4, 4]}}, "the program fails on a picture of zeros"),
    ({"outputs": {"logits": {"name": "OUTPUT__0", "type": "FP16"}, "boxes": "OUTPUT__1"}}, "output 'OUTPUT__0'"),
]  # fmt: skip
MALFORMED = [
    ("{", "JSON at byte"),
    ("[]", "the document is a list, expected an object"),
    ('{"input": {}, "input": {}}', "the name 'input' is used twice"),
    ("[" * 40 + "]" * 40, "more than 16 levels"),
    ('{"labels": [' + ",".join(['"x"'] * 70_000) + "]}", "head is missing"),
    ('{"input": {"scale": 1e999}}', "expected a finite number"),
]
# What an image processor's file says, and the complaint about it.
PROCESSORS = [
    ({"image_processor_type": "DPTImageProcessor", "do_pad": True, "size_divisor": 14}, "size_divisor is 14"),
    ({"image_processor_type": "ViTImageProcessor", "do_thumbnail": True}, "'do_thumbnail' is true"),
    ({"image_processor_type": "GLPNImageProcessor", "size_divisor": 32}, "image_processor_type is 'GLPNImageProcessor'"),
    ({"size": {"height": 8, "width": 8}}, "image_processor_type is missing"),
]  # fmt: skip


@pytest.fixture(scope="module")
def checked(networks, tmp_path_factory):
    """What --check-config says of the good description and of all that do not fit."""
    root = tmp_path_factory.mktemp("unfit") / "models"
    write(root, "good", networks["sets"], GOOD)
    for n, (change, _) in enumerate(UNFIT):
        write(root, f"unfit{n}", networks["sets"], {**GOOD, **change})
    for n, (text, _) in enumerate(MALFORMED):
        write(root, f"malformed{n}", networks["sets"], None, files={"saccade.json": text})
    hugging_face = [("WhisperForConditionalGeneration", {"size": {"height": 8, "width": 8}})]
    hugging_face += [("DPTForDepthEstimation", processor) for processor, _ in PROCESSORS]
    for n, (architecture, processor) in enumerate(hugging_face):
        files = {"config.json": json.dumps({"architectures": [architecture]}), "preprocessor_config.json": json.dumps(processor)}
        write(root, "whisper" if n == 0 else f"processor{n - 1}", networks["sets"], None, files=files)
    return Checked(root, ALLOW)


def test_a_good_description_is_found_to_fit(checked):
    assert checked.of("good")[0] == "OK"


@pytest.mark.parametrize("n, complaint", [(n, complaint) for n, (_, complaint) in enumerate(UNFIT)])
def test_a_description_that_does_not_fit_is_found_before_serving(checked, n, complaint):
    assert complaint in checked.error_of(f"unfit{n}")


@pytest.mark.parametrize("n, complaint", [(n, complaint) for n, (_, complaint) in enumerate(MALFORMED)])
def test_a_malformed_description_is_an_error_with_its_place(checked, n, complaint):
    told = checked.error_of(f"malformed{n}")
    assert complaint in told and f"malformed{n}/saccade.json" in told


def test_an_unknown_hugging_face_architecture_is_named(checked):
    assert "WhisperForConditionalGeneration" in checked.error_of("whisper")


@pytest.mark.parametrize("n, complaint", [(n, complaint) for n, (_, complaint) in enumerate(PROCESSORS)])
def test_a_hugging_face_processor_that_is_not_understood_is_an_error(checked, n, complaint):
    told = checked.error_of(f"processor{n}")
    assert complaint in told and "saccade.json" in told


def test_a_program_with_a_description_still_needs_the_permission_to_run(networks, tmp_path):
    write(tmp_path / "models", "sets", networks["sets"], GOOD)
    checked = run_to_end("--check-config", f"--model-repository={tmp_path / 'models'}")
    assert checked.returncode == 1 and "--allow-executable-models" in checked.stdout

"""Serves segmenters whose masks are sums of prototypes, as YOLACT's and YOLO's are, and compares the masks with numpy's."""

import json

import grpc
import numpy
import pytest
import torch
import tritonclient.grpc as triton
from torchvision.ops import batched_nms
from torchvision.transforms import functional

import coco
from checked import Checked
from described_programs_test import ALLOW, BOXES, LABELS, LETTERBOX, SIZES, Grid, ask, boxes_of, decoded, letterboxed, picture, write
from harness import Daemon
from pictures import encoded

COUNT = 6  # prototypes
SIDE = 20  # of masks in tensors
SQUEEZED = {"resize": "exact", "size": [160, 224]}
SHORTER = {"resize": "shorter", "size": 128, "max_size": 256, "buckets": "stride:32"}


class Segmenter(Grid):
    """YOLO's: a grid whose last columns are coefficients, and prototypes [K, h, w]."""

    def __init__(self):
        super().__init__()
        self.coefficients = torch.nn.Conv2d(3, COUNT, 16, stride=16)
        self.prototypes = torch.nn.Conv2d(3, COUNT, 4, stride=4)

    def forward(self, x):
        coefficients = (12 * self.coefficients(x)).tanh().flatten(2)
        prototypes = 8 * self.prototypes(x)
        return torch.cat((super().forward(x), coefficients), 1), prototypes - prototypes.mean((2, 3), keepdim=True)


class Yolact(Segmenter):
    """YOLACT's: boxes by corners, a score for each class after the background's, coefficients, prototypes [h, w, K]."""

    def forward(self, x):
        grid, prototypes = super().forward(x)
        rows = grid.transpose(1, 2)
        centre, half = rows[..., :2], rows[..., 2:4] / 2
        scores = torch.nn.functional.pad(rows[..., 4:7], (1, 0))
        return prototypes.permute(0, 2, 3, 1), torch.cat((centre - half, centre + half), 2), rows[..., 7:], scores


class Labelled(Segmenter):
    """The same with the best label of each box."""

    def forward(self, x):
        grid, prototypes = super().forward(x)
        rows = grid.transpose(1, 2)
        centre, half = rows[..., :2], rows[..., 2:4] / 2
        scores, labels = rows[..., 4:7].max(2)
        return torch.cat((centre - half, centre + half), 2), scores, labels, rows[..., 7:], prototypes


GRID = {"head": {"kind": "grid", "mask_side": SIDE, **BOXES}, "outputs": {"grid": "OUTPUT__0", "prototypes": "OUTPUT__1"}, "labels": LABELS}
YOLACT = {
    "head": {"kind": "boxes", "background": True, "prototype_layout": "hwc", "mask_side": SIDE, **BOXES},
    "outputs": {"prototypes": "OUTPUT__0", "boxes": "OUTPUT__1", "coefficients": "OUTPUT__2", "scores": "OUTPUT__3"},
    "labels": ["background", *LABELS],
}
LABELLED = {
    "head": {"kind": "boxes", "mask_side": SIDE, **BOXES},
    "outputs": {name: f"OUTPUT__{n}" for n, name in enumerate(("boxes", "scores", "labels", "coefficients", "prototypes"))},
    "labels": LABELS,
}


@pytest.fixture(scope="module")
def networks():
    torch.manual_seed(5)
    made = {"grid": Segmenter(), "yolact": Yolact(), "labelled": Labelled()}
    for network in made.values():
        network.load_state_dict(made["grid"].state_dict())
    return made


@pytest.fixture(scope="module")
def daemon(networks, tmp_path_factory):
    root = tmp_path_factory.mktemp("prototypes")
    example = torch.zeros(1, 3, 192, 256)
    write(root / "models", "grid", networks["grid"], {"input": LETTERBOX, **GRID}, example)
    write(root / "models", "yolact", networks["yolact"], {"input": LETTERBOX, **YOLACT}, example)
    write(root / "models", "labelled", networks["labelled"], {"input": LETTERBOX, **LABELLED}, example)
    write(root / "models", "squeezed", networks["grid"], {"input": SQUEEZED, **GRID}, example)
    write(root / "models", "shorter", networks["grid"], {"input": SHORTER, **GRID}, example)
    with Daemon(root / "models", ALLOW, "--warm-up-seconds=0", log_folder=root) as running:
        yield running.await_ready()


def prepared(model, pixels):
    """The network's input, and how many of its pixels one of the picture is along x and y, and where the picture starts."""
    height, width = pixels.shape[1:]
    if model == "squeezed":
        return functional.resize(pixels, [160, 224], antialias=True)[None], (224 / width, 160 / height), (0, 0)
    if model == "shorter":
        scaled = functional.resize(pixels, [128], max_size=256, antialias=True)
        rows, columns = scaled.shape[1:]
        whole = torch.zeros(1, 3, -rows % 32 + rows, -columns % 32 + columns)
        whole[0, :, :rows, :columns] = scaled
        return whole, (columns / width, rows / height), (0, 0)
    whole, factor, top, left = letterboxed(pixels)
    return whole, (factor, factor), (left, top)


def chosen(network, pixels, pairs):
    """Coefficients, boxes in the network's input, scores and labels of the detections, best first: the best class of each row,
    or with `pairs` every class of it."""
    grid, prototypes = (one[0].numpy() for one in network(pixels))
    rows = numpy.repeat(grid.T, 3, 0) if pairs else grid.T
    labels = numpy.tile(numpy.arange(3), len(grid.T)) if pairs else rows[:, 4:7].argmax(1)
    scores = rows[numpy.arange(len(rows)), 4 + labels]
    corners = numpy.concatenate((rows[:, :2] - rows[:, 2:4] / 2, rows[:, :2] + rows[:, 2:4] / 2), 1)
    certain = scores > 0.3
    kept = batched_nms(*(torch.from_numpy(one[certain]) for one in (corners, scores, labels)), 0.5)[:50].numpy()
    return [one[certain][kept] for one in (rows[:, 7:], corners, scores, labels)], prototypes


def interpolated(plane, xs, ys):
    """Values of `plane` at positions in cells, between the cells' centres; beyond the last ones those."""
    height, width = plane.shape
    xs, ys = (numpy.clip(one - 0.5, 0, size - 1) for one, size in ((xs, width), (ys, height)))
    left, top = numpy.floor(xs).astype(int), numpy.floor(ys).astype(int)
    right, bottom = numpy.minimum(left + 1, width - 1), numpy.minimum(top + 1, height - 1)
    x, y = (xs - left)[None], (ys - top)[:, None]
    above = plane[top][:, left] * (1 - x) + plane[top][:, right] * x
    below = plane[bottom][:, left] * (1 - x) + plane[bottom][:, right] * x
    return above * (1 - y) + below * y


def expected_of(model, network, file):
    """Boxes in the picture, scores, labels, and a function from an index and positions in it to probabilities."""
    pixels = decoded(file)
    height, width = pixels.shape[1:]
    with torch.inference_mode():
        taken, scale, start = prepared(model, pixels)
        (coefficients, corners, scores, labels), prototypes = chosen(network, taken, pairs=model == "yolact")
    scale, start = numpy.array([*scale, *scale]), numpy.array([*start, *start])
    boxes = numpy.clip((corners - start) / scale, 0, [width, height, width, height])
    cells = numpy.array(prototypes.shape[:0:-1]) / numpy.array(taken.shape[:1:-1])
    planes = 1 / (1 + numpy.exp(-numpy.einsum("nk,khw->nhw", coefficients.astype(numpy.float64), prototypes)))

    def probabilities(n, xs, ys):
        return interpolated(planes[n], (xs * scale[0] + start[0]) * cells[0], (ys * scale[1] + start[1]) * cells[1])

    return boxes, scores, labels, probabilities


@pytest.mark.parametrize("model", ["grid", "yolact", "labelled", "squeezed", "shorter"])
@pytest.mark.parametrize("height, width", SIZES)
def test_masks_are_sums_of_prototypes_within_the_box(daemon, networks, model, height, width):
    file = encoded(picture(height, width, 6))
    boxes, scores, labels, probabilities = expected_of(model, networks["grid"], file)
    assert len(scores) > 3
    answer = ask(daemon, model, file, detection={"masks": "RLE"})
    found, found_scores, found_labels = boxes_of(answer)
    assert found_labels == [int(label) + (model == "yolact") for label in labels]
    assert numpy.abs(found_scores - scores).max() < 1e-3 and numpy.abs(found - boxes).max() < 0.5
    xs, ys = numpy.arange(width) + 0.5, numpy.arange(height) + 0.5
    set_pixels = clear_pixels = 0
    for n, one in enumerate(answer.detections.detections):
        mask = coco.mask(one.mask)
        assert mask.shape == (height, width)
        seen = probabilities(n, xs, ys)
        # The daemon's own box, whose edges may be on the other side of a pixel's centre by rounding.
        x_min, y_min, x_max, y_max = found[n]
        inside = ((ys >= y_min) & (ys < y_max))[:, None] & ((xs >= x_min) & (xs < x_max))[None]
        assert not (mask & ~inside).any(), "nothing is set outside of the box"
        # Pixels may differ only where the probability is at the threshold but for rounding.
        differs = (mask != (seen >= 0.5)) & inside
        assert not (differs & (numpy.abs(seen - 0.5) > 2e-3)).any()
        assert differs.sum() <= 0.01 * inside.sum() + 2
        set_pixels += (mask & inside).sum()
        clear_pixels += (~mask & inside).sum()
    assert set_pixels > 100 and clear_pixels > 100, "the masks are neither empty nor their whole boxes"


def test_another_threshold_gives_other_masks(daemon, networks):
    file = encoded(picture(301, 467, 6))
    _, _, _, probabilities = expected_of("grid", networks["grid"], file)
    answer = ask(daemon, "grid", file, detection={"masks": "RLE", "mask_threshold": 0.8})
    one = answer.detections.detections[0]
    seen = probabilities(0, numpy.arange(467) + 0.5, numpy.arange(301) + 0.5)
    mask = coco.mask(one.mask)
    assert mask.any() and seen[mask].min() > 0.798


def test_masks_of_tensors_lie_on_a_grid_over_each_box(daemon, networks):
    file = encoded(picture(301, 467, 6))
    boxes, _, _, probabilities = expected_of("grid", networks["grid"], file)
    with triton.InferenceServerClient(daemon.grpc_address) as client:
        image = triton.InferInput("image", [1, 1], "BYTES")
        image.set_data_from_numpy(numpy.array([[file]], dtype=numpy.object_))
        masks = client.infer("grid", [image], outputs=[triton.InferRequestedOutput("masks")]).as_numpy("masks")[0]
    assert masks.shape == (len(boxes), SIDE, SIDE)
    steps = (numpy.arange(SIDE) + 0.5) / SIDE
    for n, (x_min, y_min, x_max, y_max) in enumerate(boxes):
        expected = probabilities(n, x_min + steps * (x_max - x_min), y_min + steps * (y_max - y_min))
        assert numpy.abs(masks[n] - expected).max() < 0.02


def test_a_region_and_a_large_picture_in_tiles_have_masks_in_the_pictures_pixels(daemon):
    whole = picture(384, 512, 3)
    region = {"x": 100, "y": 60, "width": 256, "height": 192}
    cut = ask(daemon, "grid", encoded(numpy.ascontiguousarray(whole[60:252, 100:356])), detection={"masks": "RLE"})
    found = ask(daemon, "grid", encoded(whole), region=region, detection={"masks": "RLE"})
    assert len(found.detections.detections) == len(cut.detections.detections) > 3
    for one, other in zip(found.detections.detections, cut.detections.detections):
        mask = coco.mask(one.mask)
        assert (mask.shape == (384, 512)) and (mask[60:252, 100:356] == coco.mask(other.mask)).all()
    tiled = ask(daemon, "grid", encoded(whole), tiles={"size": 256, "overlap": 64}, detection={"masks": "RLE"})
    assert len(tiled.detections.detections) > 3
    for one in tiled.detections.detections:
        mask = coco.mask(one.mask)
        rows, columns = numpy.nonzero(mask)
        assert mask.shape == (384, 512)
        if len(rows) == 0:
            continue
        # A mask that was put together fades over half a cell of its grid beyond the box.
        x_slack, y_slack = (1 + (high - low) / SIDE for low, high in ((one.box.x_min, one.box.x_max), (one.box.y_min, one.box.y_max)))
        assert columns.min() >= one.box.x_min - x_slack and columns.max() <= one.box.x_max + x_slack
        assert rows.min() >= one.box.y_min - y_slack and rows.max() <= one.box.y_max + y_slack


def changed(description, **changes):
    """With other members of the head or of the outputs; None removes one."""
    made = json.loads(json.dumps({"input": LETTERBOX, **description}))
    for part in ("head", "outputs"):
        for name, value in changes.get(part, {}).items():
            made[part][name] = value
            if value is None:
                del made[part][name]
    return made


# The model, a change of its description, and the complaint about it.
UNFIT = [
    ("grid", {"head": {"prototype_layout": "hwc"}},
     "output 'OUTPUT__0' has the shape [13,192] for one picture, but its role 'grid' wants 68 + classes columns"),
    ("grid", {"head": {"keypoints": 2}}, "outputs has prototypes with head.keypoints 2; expected keypoints or the coefficients"),
    ("grid", {"outputs": {"coefficients": "OUTPUT__1"}}, "there is no key 'coefficients' in outputs"),
    ("grid", {"head": {"mask_side": 0}}, "head.mask_side is 0, expected a whole number from 1 to 512"),
    ("grid", {"head": {"prototype_layout": "khw"}}, "head.prototype_layout"),
    ("grid", {"outputs": {"prototypes": "OUTPUT__0", "grid": "OUTPUT__1"}},
     "output 'OUTPUT__0' has the shape [13,192] for one picture, but its role 'prototypes' wants "
     "[1 to 1024 prototypes,height,width]; head.prototype_layout \"hwc\" has them last"),
    ("yolact", {"head": {"prototype_layout": "chw"}},
     "output 'OUTPUT__2' has the shape [192,6] for one picture, but its role 'coefficients' wants [192,48], "
     "a coefficient for each prototype"),
    ("yolact", {"outputs": {"coefficients": None}}, "outputs has coefficients without prototypes, or prototypes without coefficients"),
    ("yolact", {"outputs": {"prototypes": None}}, "outputs has coefficients without prototypes, or prototypes without coefficients"),
    ("labelled", {"outputs": {"masks": "OUTPUT__4"}}, "outputs has both masks and prototypes; expected one of them"),
]  # fmt: skip


class Huge(torch.nn.Module):
    def forward(self, x):
        grid = torch.cat((40.0 * torch.ones(1, 4, 4), torch.ones(1, 2, 4)), 1).expand(x.shape[0], -1, -1)
        return grid + 0 * x.mean(), torch.zeros(1, 1, 700, 700).expand(x.shape[0], -1, -1, -1) + 0 * x.mean()


@pytest.fixture(scope="module")
def checked(networks, tmp_path_factory):
    """What --check-config says of all descriptions that do not fit."""
    root = tmp_path_factory.mktemp("unfit") / "models"
    for n, (model, change, _) in enumerate(UNFIT):
        description = changed({"grid": GRID, "yolact": YOLACT, "labelled": LABELLED}[model], **change)
        write(root, f"unfit{n}", networks[model], description, torch.zeros(1, 3, 192, 256))
    write(root, "huge", Huge(), changed({**GRID, "labels": ["a"]}, head={"max_detections": 1000}))
    return Checked(root, ALLOW)


@pytest.mark.parametrize("n, complaint", [(n, complaint) for n, (_, _, complaint) in enumerate(UNFIT)])
def test_prototypes_that_do_not_fit_are_found_before_serving(checked, n, complaint):
    assert complaint in checked.error_of(f"unfit{n}")


def test_masks_that_would_take_too_much_memory_are_found_before_serving(checked):
    told = checked.error_of("huge")
    assert "[1,700,700]" in told and "at most 268435 positions, so that the masks of head.max_detections 1000" in told


class Infinite(Segmenter):
    """Coefficients and prototypes are finite, their products are not."""

    def forward(self, x):
        grid, prototypes = super().forward(x)
        bright = 1 + 1e30 * (x.mean((1, 2, 3)) > 0.5).float()[:, None, None]
        scale = torch.cat((torch.ones(x.shape[0], 7, 1), bright.expand(-1, COUNT, 1)), 1)
        return grid * scale, prototypes * bright[..., None]


def test_masks_that_are_not_finite_are_an_error_of_that_picture_alone(tmp_path):
    torch.manual_seed(5)
    write(tmp_path / "models", "infinite", Infinite(), {"input": LETTERBOX, **GRID}, torch.zeros(1, 3, 192, 256))
    with Daemon(tmp_path / "models", ALLOW, "--warm-up-seconds=0", log_folder=tmp_path) as daemon:
        daemon.await_ready()
        dark = numpy.minimum(picture(192, 256, 6), 100)
        assert ask(daemon, "infinite", encoded(dark)).detections is not None
        with pytest.raises(grpc.RpcError) as failure:
            ask(daemon, "infinite", encoded(numpy.maximum(picture(192, 256, 6), 180)))
        assert "the program computed a mask that is not finite" in failure.value.details()


class Inverted(Labelled):
    """Three of four boxes end before they start: along x, along y, or both."""

    def forward(self, x):
        boxes, scores, labels, coefficients, prototypes = super().forward(x)
        swapped = (boxes[:, :, (2, 1, 0, 3)], boxes[:, :, (0, 3, 2, 1)], boxes[:, :, (2, 3, 0, 1)])
        kind = torch.arange(boxes.shape[1])[:, None] % 4
        for n, one in enumerate(swapped):
            boxes = torch.where(kind == n, one, boxes)
        return boxes, scores, labels, coefficients, prototypes


def test_boxes_that_end_before_they_start_have_empty_masks(networks, tmp_path):
    inverted = Inverted()
    inverted.load_state_dict(networks["grid"].state_dict())
    description = changed(LABELLED, head={"nms": 1})
    write(tmp_path / "models", "inverted", inverted, description, torch.zeros(1, 3, 192, 256))
    write(tmp_path / "models", "labelled", networks["labelled"], description, torch.zeros(1, 3, 192, 256))
    file = encoded(picture(301, 467, 6))
    with Daemon(tmp_path / "models", ALLOW, "--warm-up-seconds=0", log_folder=tmp_path) as daemon:
        daemon.await_ready()
        found, expected = (ask(daemon, model, file, detection={"masks": "RLE"}).detections.detections for model in ("inverted", "labelled"))
    assert len(found) == len(expected)
    wrong = set()
    for one, other in zip(found, expected):
        kind = (one.box.x_max < one.box.x_min, one.box.y_max < one.box.y_min)
        wrong.add(kind)
        assert (not coco.mask(one.mask).any()) if any(kind) else one == other
    assert wrong == {(False, False), (True, False), (False, True), (True, True)}

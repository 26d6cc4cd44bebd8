"""What `python -m saccade import` makes of networks of timm and transformers, of which stand-ins are read here. ./dev verify-zoo reads the
libraries themselves."""

import fnmatch
import importlib
import json
import sys
import types

import pytest
import torch
from torchvision.ops import box_convert

from stand_ins import named

WHOLE = {"problem_type": None, "num_labels": 5, "id2label": {n: f"c{n}" for n in range(5)}}


class Outputs(dict):
    __getattr__ = dict.__getitem__


class Classes(torch.nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.body = torch.nn.Conv2d(3, classes, 8, stride=8)

    def forward(self, pixel_values):
        return Outputs(logits=self.body(pixel_values).mean((2, 3)))


class Queries(torch.nn.Module):
    """A detector with a box and scores for each of its queries."""

    def __init__(self, queries=30, classes=5):
        super().__init__()
        self.body = torch.nn.Conv2d(3, queries * (classes + 4), 8, stride=8)
        self.queries, self.classes = queries, classes

    def forward(self, pixel_values):
        found = self.body(pixel_values).mean((2, 3)).unflatten(1, (self.queries, -1))
        return Outputs(logits=found[..., :self.classes], pred_boxes=found[..., self.classes:].sigmoid())


class Depths(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Conv2d(3, 1, 8, stride=8)

    def forward(self, pixel_values):
        return Outputs(predicted_depth=self.body(pixel_values)[:, 0].abs())


@pytest.fixture
def imported(saccade, monkeypatch):
    """imported(name, **libraries): the module of saccade.imports, with these modules as the libraries that it imports."""
    names = set()

    def get(name, **libraries):
        for library, module in libraries.items():
            monkeypatch.setitem(sys.modules, library.replace("_", "."), module)
        names.add(f"saccade.imports.{name}")
        sys.modules.pop(f"saccade.imports.{name}", None)
        return importlib.import_module(f"saccade.imports.{name}")

    yield get
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def transformers(imported, tmp_path):
    """Builds the network of a folder, whose processor and weights are given."""

    def build(architecture, network, processor=None, missing=(), **config):
        made = {"AutoConfig": types.SimpleNamespace(**WHOLE | config), "AutoImageProcessor": processor or named("ViTImageProcessor")}
        loaders = [f"AutoModel{ending}" for ending in ("", "ForImageClassification", "ForObjectDetection", "ForDepthEstimation")]
        made |= dict.fromkeys(loaders, (network, {"missing_keys": set(missing)}))
        library = types.ModuleType("transformers")
        for name, loaded in made.items():
            setattr(library, name, types.SimpleNamespace(from_pretrained=lambda *_, loaded=loaded, **__: loaded))
        (tmp_path / "config.json").write_text(json.dumps({"architectures": [architecture]}))
        return imported("transformers_networks", transformers=library).build(str(tmp_path), None, None)

    return build


@pytest.fixture
def failure(saccade):
    from saccade.imports.failures import ImportFailure

    return ImportFailure


def test_what_a_processor_scales_is_limited_to_a_pixels_values(imported):
    library = imported("transformers_networks", transformers=types.ModuleType("transformers"))
    processor = types.SimpleNamespace(resize=lambda values, by: values * by)
    library._keep_range(processor)
    assert processor.resize(torch.tensor([-1.0, 100.0, 200.0]), by=2).tolist() == [0, 200, 255]


@pytest.mark.parametrize("classes, problem, activation", [
    (5, None, "softmax"), (5, "single_label_classification", "softmax"), (5, "multi_label_classification", "sigmoid"), (1, None, "sigmoid"),
])  # fmt: skip
def test_classes_are_activated_as_the_pipeline_does_on_both_sides(transformers, classes, problem, activation):
    torch.manual_seed(1)
    network, processor = Classes(classes), named("ViTImageProcessor")
    labels = {n: f"c{n}" for n in range(classes)}
    made = transformers("ViTForImageClassification", network, processor, num_labels=classes, id2label=labels, problem_type=problem)
    assert made.description["head"] == {"kind": "classes", "activation": activation}
    picture = torch.rand(3, 100, 120)
    with torch.inference_mode():
        logits = network(processor(picture * 255, "pt")["pixel_values"]).logits[0]
        found = made.author(picture)
    expected = logits.sigmoid() if activation == "sigmoid" else logits.softmax(0)
    assert found.tolist() == pytest.approx(expected.tolist(), abs=1e-6)


def test_numbers_are_no_classes(transformers, failure):
    with pytest.raises(failure, match="problem_type is 'regression', whose outputs are no classes"):
        transformers("ViTForImageClassification", Classes(), problem_type="regression")


def test_weights_that_a_folder_lacks_are_not_made_up(transformers, failure):
    counts = ["norm.num_batches_tracked"]
    assert transformers("ViTForImageClassification", Classes(), missing=counts)
    with pytest.raises(failure, match="the weights lack 'pooler.dense.bias' and 1 others of Classes, which would be random numbers"):
        transformers("ViTModel", Classes(), missing=["pooler.dense.weight", "pooler.dense.bias", *counts])


def test_weights_in_half_precision_are_computed_in_float32(transformers):
    made = transformers("ViTForImageClassification", Classes().bfloat16())
    assert {one.dtype for one in made.program.parameters()} == {torch.float32}
    with torch.inference_mode():
        assert made.program(*made.example).dtype == torch.float32


def test_every_class_has_a_name(transformers, failure):
    with pytest.raises(failure, match="id2label has 2 names, but none for 1"):
        transformers("ViTForImageClassification", Classes(2), num_labels=2, id2label={0: "cat", 2: "dog"})


def rows(outputs, scores, labels, queries, threshold, sizes):
    (height, width), = sizes
    boxes = box_convert(outputs.pred_boxes[0], "cxcywh", "xyxy")[queries] * torch.tensor([width, height, width, height])
    kept = scores > threshold
    return [{"scores": scores[kept], "labels": labels[kept], "boxes": boxes[kept]}]


def detr(outputs, threshold, target_sizes):
    scores, labels = outputs.logits[0].softmax(1)[:, :-1].max(1)
    return rows(outputs, scores, labels, torch.arange(len(scores)), threshold, target_sizes)


def deformable(outputs, threshold, target_sizes, most=100):
    pairs = outputs.logits[0].sigmoid().flatten()
    scores, pairs = pairs.topk(min(most, len(pairs)))
    classes = outputs.logits.shape[2]
    return rows(outputs, scores, pairs % classes, pairs // classes, threshold, target_sizes)


def rt_detr(outputs, threshold, target_sizes):
    return deformable(outputs, threshold, target_sizes, most=outputs.logits.shape[1])


def background_first(outputs, threshold, target_sizes):
    scores, labels = outputs.logits[0].softmax(1)[:, 1:].max(1)
    return rows(outputs, scores, labels, torch.arange(len(scores)), threshold, target_sizes)


def of_detector(post_process):
    processor = named("DeformableDetrImageProcessor")
    processor.post_process_object_detection = post_process
    return processor


# What the architecture is called does not matter.
@pytest.mark.parametrize("post_process, activation, queries, most", [
    (detr, "softmax", 30, 30), (detr, "softmax", 125, 125), (deformable, "sigmoid", 300, 100), (rt_detr, "sigmoid", 300, 300),
    (rt_detr, "sigmoid", 10_001, 10_000),
])  # fmt: skip
def test_a_detectors_scores_are_read_as_its_processor_reads_them(transformers, post_process, activation, queries, most):
    made = transformers("LwDetrForObjectDetection", Queries(queries), of_detector(post_process))
    assert made.description["head"] == {"kind": "sets", "activation": activation, "score_threshold": 0.05, "max_detections": most}


def test_a_detectors_author_lists_all_that_its_processor_does(transformers):
    torch.manual_seed(1)
    made = transformers("RTDetrForObjectDetection", Queries(300), of_detector(rt_detr))
    with torch.inference_mode():
        found = made.author(torch.rand(3, 100, 120))
    assert len(found.scores) == 300 and (found.scores[:-1] >= found.scores[1:]).all()


def test_a_detector_whose_processor_reads_otherwise_is_an_error(transformers, failure):
    with pytest.raises(failure, match="reads boxes and scores otherwise than .* write a saccade.json"):
        transformers("OtherForObjectDetection", Queries(), of_detector(background_first))
    with pytest.raises(failure, match="does not read logits and boxes alone .*'order'"):
        transformers("OtherForObjectDetection", Queries(), of_detector(lambda outputs, **_: outputs.order))
    with pytest.raises(failure, match="has no post_process_object_detection"):
        transformers("OtherForObjectDetection", Queries())


def as_it_is(outputs, target_sizes, **more):
    depths = torch.nn.functional.interpolate(outputs.predicted_depth[None], target_sizes[0], **more or {"mode": "bicubic"})
    return [{"predicted_depth": depths[0, 0]}]


def bilinear(outputs, target_sizes):
    return as_it_is(outputs, target_sizes, mode="bilinear")


def between_corners(outputs, target_sizes):
    """As CHMv2's processor has it."""
    return as_it_is(outputs, target_sizes, mode="bilinear", align_corners=True)


def inverse(outputs, target_sizes):
    """As DepthPro's processor has it."""
    assert outputs.field_of_view is None
    return [{"predicted_depth": 1 / as_it_is(outputs, target_sizes)[0]["predicted_depth"].clamp(1e-4, 1e4)}]


@pytest.mark.parametrize("post_process, filter", [(None, "bicubic"), (as_it_is, "bicubic"), (bilinear, "bilinear")])
def test_depths_are_scaled_as_the_processor_does_on_both_sides(transformers, post_process, filter):
    torch.manual_seed(1)
    network, processor = Depths(), named("DPTImageProcessor")
    if post_process is not None:
        processor.post_process_depth_estimation = post_process
    made = transformers("DPTForDepthEstimation", network, processor)
    assert made.description["head"] == {"kind": "depth", "filter": filter}
    picture = torch.rand(3, 100, 120)
    with torch.inference_mode():
        predicted = network(processor(picture * 255, "pt")["pixel_values"]).predicted_depth
        found = made.author(picture)
    expected = torch.nn.functional.interpolate(predicted[None], (100, 120), mode=filter)[0, 0].clamp(min=0)
    assert abs(found - expected.numpy()).max() < 1e-6


def test_depths_that_are_scaled_by_another_filter_are_an_error(transformers, failure):
    processor = named("CHMv2ImageProcessor")
    processor.post_process_depth_estimation = between_corners
    with pytest.raises(failure, match="CHMv2ImageProcessor scales depths otherwise than a bilinear or a bicubic filter would; export the"):
        transformers("CHMv2ForDepthEstimation", Depths(), processor)


def test_depths_that_the_processor_inverts_are_an_error(transformers, failure):
    processor = named("DPTImageProcessor")
    processor.post_process_depth_estimation = inverse
    with pytest.raises(failure, match=r"DPTImageProcessor turns the network's number 2 into 0\.5; export the network with"):
        transformers("DepthProForDepthEstimation", Depths(), processor)
    processor.post_process_depth_estimation = lambda outputs, target_sizes: outputs.mask
    with pytest.raises(failure, match="does not read depths alone .*'mask'"):
        transformers("DepthProForDepthEstimation", Depths(), processor)


class Features(torch.nn.Module):
    def __init__(self, classes, **config):
        super().__init__()
        self.body = torch.nn.Conv2d(3, classes or 7, 8, stride=8)
        self.num_classes, self.pretrained_cfg = classes, config

    def forward(self, x):
        return self.body(x).mean((2, 3))


class Map(Features):
    def forward(self, x):
        return self.body(x)


# What timm has of three architectures: the numbers of classes of their tags.
TIMM = {
    "vit_base_patch16_clip_224": {"openai": 7, "openai_ft_in1k": 9},
    "convnext_base": {"clip_laion2b": 7, "clip_laion2b_ft_320": 7, "fb_in22k": 11},
    "vit_pe_core_base_patch16_224": {"fb": 7},
}


@pytest.fixture
def timm(imported):
    def build(network):
        config = {"input_size": (3, 64, 64), "interpolation": "bilinear", "mean": (0, 0, 0), "std": (1, 1, 1), "crop_pct": 1.0}
        data = types.ModuleType("timm.data")
        data.resolve_model_data_config = lambda _: config
        data.create_transform = lambda **_: types.SimpleNamespace(transforms=[])
        known = {f"{name}.{tag}": types.SimpleNamespace(tag=tag, num_classes=classes)
                 for name, tags in TIMM.items() for tag, classes in tags.items()}
        library = types.ModuleType("timm")
        library.is_model, library.create_model = lambda _: True, lambda *_, **__: network
        library.list_pretrained = lambda pattern: fnmatch.filter(known, pattern)
        library.get_pretrained_cfg = known.__getitem__
        return imported("timm_networks", timm=library, timm_data=data).build("net", None, None)

    return build


CLIP = {"architecture": "vit_base_patch16_clip_224"}
BOTH = {"architecture": "convnext_base"}


@pytest.mark.parametrize("classes, config, kind", [
    (7, {}, "classes"),
    (0, {}, "embedding"),
    (1, {}, "classes"),
    (7, CLIP | {"tag": "openai"}, "embedding"),
    (7, BOTH | {"tag": "clip_laion2b"}, "embedding"),
    (7, BOTH | {"tag": "clip_laion2b_ft_320"}, "embedding"),
    (7, {"architecture": "vit_pe_core_base_patch16_224", "tag": "fb"}, "embedding"),
    (9, CLIP | {"tag": "openai_ft_in1k"}, "classes"),
    # Trained further under another tag, or under the same one.
    (9, CLIP | {"tag": "openai_ft_augreg_inat21"}, "classes"),
    (9, CLIP | {"tag": "openai"}, "classes"),
    (11, BOTH | {"tag": "clip_laion2b"}, "classes"),
    (7, CLIP | {"tag": "openai", "label_names": [f"l{n}" for n in range(7)]}, "classes"),
    (7, {"architecture": "vit_base_patch32_clip_384", "tag": "openai"}, "classes"),
])  # fmt: skip
def test_networks_of_timm_without_classes_are_embeddings(timm, classes, config, kind):
    torch.manual_seed(1)
    network = Features(classes, **config)
    made = timm(network)
    activation = "sigmoid" if classes == 1 else "softmax"
    assert made.description["head"] == ({"kind": kind, "activation": activation} if kind == "classes" else {"kind": kind})
    names = config.get("label_names") or [f"class {n}" for n in range(classes)]
    assert made.labels == (names if kind == "classes" else [])
    picture = torch.rand(3, 64, 64)
    with torch.inference_mode():
        expected = network(picture[None])[0]
        found = made.author(picture)
    if kind == "classes":
        expected = expected.sigmoid() if activation == "sigmoid" else expected.softmax(0)
    assert found.tolist() == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.parametrize("classes, config, told", [
    (7, CLIP | {"tag": "openai"}, "taken for an embedding, of 7 numbers"), (9, CLIP | {"tag": "openai"}, "taken for a classifier, of 9 classes"),
])  # fmt: skip
def test_an_import_tells_what_a_network_was_taken_for(timm, tmp_path, capsys, classes, config, told):
    timm(Features(classes, **config))
    from saccade.imports import command

    assert command.main(["import", "timm:net", "-o", str(tmp_path / "net")]) == 0
    assert f"timm:net: {told}; timm's weights\n" in capsys.readouterr().out
    assert told in (tmp_path / "net" / "README.md").read_text()


def test_a_network_of_timm_that_gives_a_map_is_an_error(timm, failure):
    with pytest.raises(failure, match=r"returns \[7, 8, 8\] for each picture"):
        timm(Map(0))


@pytest.mark.parametrize("text, labels", [
    ("a\n\nc\n", ["a", "", "c"]), ("\ufeffa\r\nb", ["a", "b"]), ("a\u2028b\n", ["a\u2028b"]), ("", []),
])  # fmt: skip
def test_labels_are_read_as_the_daemon_reads_them(saccade, tmp_path, text, labels):
    from saccade.imports import files

    (tmp_path / "labels.txt").write_bytes(text.encode())
    assert files.read_labels(tmp_path / "labels.txt") == labels

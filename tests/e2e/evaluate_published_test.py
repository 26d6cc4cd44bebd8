"""Which row of a paper `saccade evaluate` shows beside a model's figures: that of the model's own network alone."""

import json
import os
import pathlib
import subprocess

import pytest

import evaluation_folders as folders

# The classes of a model of the whole set.
CLASSES = {"coco": 91, "voc": 21, "imagenet": 1000, "cifar100": 100, "sceneflow": 0, "thumos14": 21, "care": 0}

# Options that a row does not name, because another value leaves the network what it is. How pictures are prepared:
PREPARING = {"buckets", "short_side", "long_side", "exact", "resize_size", "interpolation", "mean", "std", "reduced_jpeg",
             "normalize", "frames", "frames_per_second", "tile", "max_voxels", "batch_norm_epsilon"}
# Which findings are returned:
CHOOSING = {"score_threshold", "nms_threshold", "detections", "proposals"}
# The papers may be read either way (docs/fidelity.md), and the model's classes are compared instead of the option.
OPEN = {"transform_norms", "align_corners", "classes"}

# Two values of each option that makes the network another one.
VALUES = {
    "width": ("1", "0.5"), "blocks": ("1,1,1,1", "3,4,3,6"), "heads": ("2", "8"), "attention": ("none", "res1"),
    "fpn": ("torchvision", "paper"), "operator": ("efficient", "non_local"), "normalization": ("softmax", "scaling"),
    "key_channels": ("48", "96"), "value_channels": ("48", "96"), "max_disparity": ("96", "192"), "size": ("128", "64"),
    "anchors": ("2,4", "1,2"), "head": ("attention_pool", "aspp"), "head_channels": ("256", "128"),
    "input_size": ("192", "32"), "similarity": ("learned", "ones"), "global_term": ("true", "false"),
    "reduction": ("4", "8"), "residual": ("true", "false"), "map": ("linear", "gaussian"), "plus_one": ("true", "false"),
    "shared_map": ("true", "false"), "form": ("cifar", "imagenet"), "groups": ("4", "1-4"), "content": ("axial", "none"),
    "axes": ("column", "row"), "expansion": ("2", "4"),
}
# Options of attention, which mean nothing to a network without it.
OF_ATTENTION = {"operator", "normalization", "heads", "key_channels", "value_channels", "head_channels", "similarity",
                "global_term", "reduction", "map", "plus_one", "shared_map", "groups", "content", "axes"}
OF_SIAMESE = {"similarity", "global_term"}


def meaningless(options):
    """The model's options that another one of them takes the meaning of."""
    if options.get("attention") == "none" or options.get("head") == "aspp":
        return OF_ATTENTION
    return {"se": OF_SIAMESE | {"heads"}, "attn": OF_SIAMESE, "sao": {"reduction"}}.get(options.get("attention"), set())


@pytest.fixture(scope="module")
def defaults():
    """{architecture: {option: default}} of the daemon."""
    program = pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "tests" / "saccade_list_architectures"
    listed = json.loads(subprocess.run([program], check=True, capture_output=True, text=True).stdout)
    return {name: one["options"] for name, one in listed.items()}


@pytest.fixture(scope="module")
def published(saccade):
    from saccade.evaluate import published

    return published


@pytest.fixture
def shown(saccade, published, defaults, tmp_path):
    """shown(dataset, architecture, option=value...): the row beside a model with these options, and the daemon's defaults."""
    from saccade import types

    def row(dataset, architecture, folder="Set", split=None, classes=None, **options):
        classes = CLASSES[dataset] if classes is None else classes
        every = {**defaults[architecture], **options}
        model = folders.model(types, "any", classes, options=every, architecture=architecture)
        return published.row_of(dataset, model, tmp_path / folder, split)

    return row


def place_of(row):
    return {"dataset": row.dataset, "architecture": row.architecture, "folder": f"Set_{row.folder.title()}"}


def test_every_row_is_found_by_the_daemon_s_model_with_its_options(published, shown):
    assert len(published.ROWS) > 80
    for row in published.ROWS:
        assert shown(**place_of(row), **row.options) is row, row


def test_a_model_with_another_value_of_any_option_has_another_row_or_none(published, shown, defaults):
    for row in published.ROWS:
        own = {**defaults[row.architecture], **row.options}
        for name in own.keys() - PREPARING - CHOOSING - OPEN - meaningless(own):
            assert name in VALUES, f"{name} is a new option: a row has to name it if it changes the network, else this test"
            other = next(value for value in VALUES[name] if value != own[name])
            found = shown(**place_of(row), **{**row.options, name: other})
            assert found is not row, f"{row.name} is shown for {name}={other}"
            # If the papers have a network with that value, its row names it.
            assert found is None or name == "attention" or found.options[name] == other, (row, name, found)


def test_options_that_leave_the_network_what_it_is_change_no_row(shown):
    prepared = {"short_side": "600", "buckets": "stride:64"}
    assert shown("coco", "ea_mask_rcnn_r50", score_threshold="0.01", **prepared).figures["box AP"] == 41.2
    assert shown("coco", "ea_mask_rcnn_r50", attention="fpn5,fpn4,fpn3,fpn2,fpn1,res4,res3").figures["box AP"] == 41.2
    assert shown("coco", "ea_mask_rcnn_r50", attention="none", operator="non_local", heads="8").figures["box AP"] == 39.4


CIFAR = {"form": "cifar", "groups": "1-4", "input_size": "32"}
FIVE = "res3,res4,fpn3,fpn4,fpn5"
FPN = "fpn1,fpn2,fpn3,fpn4,fpn5"


@pytest.mark.parametrize(("dataset", "architecture", "options"), [
    ("cifar100", "expatt_resnet50", {**CIFAR, "plus_one": "false", "shared_map": "false"}),
    ("cifar100", "expatt_resnet50", {**CIFAR, "plus_one": "false", "map": "linear"}),
    ("cifar100", "expatt_resnet50", {**CIFAR, "blocks": "3,4,3,6"}),
    ("imagenet", "expatt_resnet50", {"shared_map": "false"}),
    ("imagenet", "expatt_resnet50", {"plus_one": "false"}),
    ("imagenet", "gsa_resnet50", {"expansion": "2"}),
    ("imagenet", "gsa_resnet50", {"width": "1.125"}),
    ("cifar100", "gsa_resnet50", {"expansion": "2", "width": "1.125"}),
    ("imagenet", "gsa_resnet50", {"input_size": "320"}),
    ("imagenet", "sanet", {"heads": "1"}),
    ("imagenet", "sanet", {"attention": "se", "reduction": "16"}),
    ("coco", "ea_mask_rcnn_r50", {"normalization": "scaling"}),
    ("coco", "ea_mask_rcnn_r50", {"attention": FIVE, "normalization": "scaling"}),
    ("coco", "ea_mask_rcnn_r50", {"attention": FPN, "key_channels": "32"}),
    ("coco", "ea_mask_rcnn_r50", {"attention": FIVE, "value_channels": "32"}),
    ("coco", "ea_mask_rcnn_r50", {"attention": "none", "fpn": "torchvision"}),
    ("coco", "ea_mask_rcnn_r50", {"fpn": "torchvision"}),
    ("coco", "ea_mask_rcnn_r50", {"blocks": "3,4,23,3"}),
    ("coco", "ea_mask_rcnn_r101", {"attention": "none"}),
    ("coco", "maskrcnn_resnet50_fpn", {}),
    ("voc", "deeplabv2_kao_kv", {"blocks": "3,4,6,3"}),
    ("voc", "deeplabv2_kao_kv", {"head": "attention_pool"}),
    ("sceneflow", "ea_psmnet", {"max_disparity": "96"}),
    ("sceneflow", "ea_psmnet", {"normalization": "scaling"}),
    ("thumos14", "ea_rc3d", {"attention": "res3"}),
    ("thumos14", "ea_rc3d", {"normalization": "scaling"}),
])
def test_networks_that_no_paper_measured_have_no_row(shown, dataset, architecture, options):
    assert shown(dataset, architecture, **options) is None


@pytest.mark.parametrize(("dataset", "architecture", "options", "figures"), [
    ("cifar100", "expatt_resnet50", CIFAR, {"top-1": 81.02}),
    ("cifar100", "expatt_resnet50", {**CIFAR, "plus_one": "false"}, {"top-1": 80.42}),
    ("cifar100", "expatt_resnet50", {**CIFAR, "shared_map": "false"}, {"top-1": 80.78}),
    ("imagenet", "sanet", {"attention": "se"}, {"top-1": 72.4}),
    ("imagenet", "gsa_resnet50", {"content": "axial"}, {"top-1": 77.5, "top-5": 93.6}),
    ("imagenet", "gsa_resnet50", {"expansion": "2", "width": "1.125"}, {"top-1": 78.2, "top-5": 93.9}),
    ("coco", "ea_mask_rcnn_r50", {"attention": FPN}, {"box AP": 40.2, "mask AP": 36.0}),
    ("coco", "ea_mask_rcnn_r50", {"attention": FPN, "normalization": "scaling"}, {"box AP": 40.2, "mask AP": 35.9}),
    ("coco", "ea_mask_rcnn_r50", {"attention": FIVE, "key_channels": "32"}, {"box AP": 40.4, "mask AP": 36.1}),
    ("coco", "ea_mask_rcnn_r50", {"attention": FIVE, "key_channels": "128"}, {"box AP": 40.3, "mask AP": 36.1}),
    ("thumos14", "ea_rc3d", {"attention": "none"}, {"mAP@0.1": 54.2, "mAP@0.2": 54.1, "mAP@0.3": 50.0, "mAP@0.4": 45.6,
                                                    "mAP@0.5": 37.3, "mAP@0.6": 29.2, "mAP@0.7": 18.5}),
    ("thumos14", "ea_rc3d", {}, {"mAP@0.1": 60.3, "mAP@0.2": 59.8, "mAP@0.3": 56.8, "mAP@0.4": 51.3, "mAP@0.5": 43.4,
                                 "mAP@0.6": 33.2, "mAP@0.7": 21.8}),
])
def test_ablations_have_their_own_rows(shown, dataset, architecture, options, figures):
    assert shown(dataset, architecture, **options).figures == figures


# Tables 10 and 11 of Efficient Attention, as they are printed: AP, AP-50, AP-75, small, medium, large.
@pytest.mark.parametrize(("architecture", "options", "box", "mask"), [
    ("ea_mask_rcnn_r50", {"attention": "none"}, "39.4 60.6 42.8 24.7 43.0 50.9", "35.1 57.0 37.2 19.9 38.1 47.7"),
    ("ea_mask_rcnn_r50", {"attention": "res3", "operator": "non_local"},
     "40.3 61.9 43.6 24.3 43.8 52.2", "35.9 58.2 38.1 20.9 39.2 47.9"),
    ("ea_mask_rcnn_r50", {"attention": "res3"}, "40.2 61.9 43.6 24.9 44.0 51.5", "36.0 58.0 38.3 20.3 39.0 47.9"),
    ("ea_mask_rcnn_r50", {"attention": FIVE, "operator": "non_local"},
     "40.7 62.1 44.2 25.3 44.5 52.0", "36.3 59.4 38.5 19.7 39.8 50.4"),
    ("ea_mask_rcnn_r50", {"attention": FIVE}, "40.6 62.8 44.2 25.0 44.6 52.3", "36.2 59.2 38.2 19.9 39.9 49.4"),
    ("ea_mask_rcnn_r50", {}, "41.2 62.7 44.8 25.8 44.9 52.5", "36.7 59.1 39.2 21.6 40.2 48.6"),
    ("ea_mask_rcnn_x101", {"attention": "none"}, "43.5 65.4 47.5 27.0 47.9 55.3", "38.5 61.8 41.0 21.7 42.5 51.7"),
    # The AP of masks is 39.3 in table 11 and 39.5 in table 3; the latter is shown.
    ("ea_mask_rcnn_x101", {}, "44.9 66.8 48.7 27.1 49.1 57.6", "39.5 63.0 42.0 22.6 43.0 52.4"),
])
def test_detectors_have_the_average_precisions_of_sizes_too(shown, architecture, options, box, mask):
    statistics = ("AP", "AP50", "AP75", "AP, small", "AP, medium", "AP, large")
    expected = {f"{kind} {name}": float(value)
                for kind, printed in (("box", box), ("mask", mask))
                for name, value in zip(statistics, printed.split(), strict=True)}
    assert shown("coco", architecture, **options).figures == expected


# Table 7 of Siamese Attention Networks.
@pytest.mark.parametrize(("folder", "kind", "printed"), [
    ("Denoising_Planaria", "denoise", "31.571 31.951 31.929 0.7707 0.7919 0.7898 0.0268 0.0257 0.0257"),
    ("Denoising_Tribolium", "denoise", "32.433 32.571 32.549 0.9171 0.9201 0.9196 0.0241 0.0236 0.0239"),
    ("Projection_Flywing", "project", "21.958 22.361 22.329 0.5592 0.5903 0.5916 0.0798 0.0763 0.0767"),
])
def test_restoring_networks_have_the_row_of_the_set_that_the_folder_names(shown, folder, kind, printed):
    values = [float(one) for one in printed.split()]
    for column, attention in enumerate(("none", "attn", "sao")):
        row = shown("care", f"unet3d_sao_{kind}", folder, attention=attention)
        assert row.figures == dict(zip(("PSNR", "SSIM", "NRMSE"), values[column::3], strict=True)), attention
        assert shown("care", f"unet3d_sao_{kind}", "Denoising_Synthetic", attention=attention) is None


def test_another_part_of_the_set_has_no_row(shown):
    usual = {"coco": "val2017", "voc": "val", "imagenet": "val", "cifar100": "test", "sceneflow": "TEST", "thumos14": "test"}
    models = {"coco": "ea_mask_rcnn_r50", "voc": "deeplabv2_kao_kv", "imagenet": "sanet", "cifar100": "gsa_resnet50",
              "sceneflow": "ea_psmnet", "thumos14": "ea_rc3d"}
    for dataset, split in usual.items():
        assert shown(dataset, models[dataset]) is shown(dataset, models[dataset], split=split) is not None, dataset
        assert shown(dataset, models[dataset], split="train") is None, dataset


def test_a_set_with_other_classes_has_no_row(shown):
    # A hundred of ImageNet's synsets, and somebody's own detections in COCO's form.
    assert shown("imagenet", "sanet", classes=100) is None
    assert shown("coco", "ea_mask_rcnn_r50", classes=5) is None
    assert shown("coco", "ea_mask_rcnn_r50", classes=81) is shown("coco", "ea_mask_rcnn_r50") is not None


def test_rows_name_figures_that_are_measured(published):
    statistics = [f"{kind} {name}" for kind in ("box", "mask")
                  for name in ("AP", "AP50", "AP75", "AP, small", "AP, medium", "AP, large")]
    measured = {"coco": statistics, "voc": ["mIoU", "pixel accuracy"], "imagenet": ["top-1", "top-5"], "cifar100": ["top-1"],
                "sceneflow": ["EPE"], "thumos14": [f"mAP@0.{tenths}" for tenths in range(1, 8)],
                "care": ["PSNR", "SSIM", "NRMSE"]}
    for row in published.ROWS:
        assert row.figures.keys() <= set(measured[row.dataset]), row
        if row.dataset not in ("coco", "imagenet"):
            assert row.figures.keys() == set(measured[row.dataset]), row


def test_the_report_shows_the_row_of_the_split_that_was_measured(saccade, defaults, tmp_path):
    from saccade import types
    from saccade.evaluate import report
    from saccade.evaluate.dataset import Figure, Options
    from saccade.evaluate.job import Evaluation, Result

    model = folders.model(types, "actions", 21, options=defaults["ea_rc3d"], architecture="ea_rc3d")
    result = Result("thumos14", "mAP", model, 1, 1, 0, 1, [], [Figure("mAP@0.1", 59.05, "%")], 1.0)
    for split, source, cells in ((None, "Efficient Attention, table 6: EA R-C3D", "60.30 % | -1.25"),
                                 ("val", "none for this model", "- | -")):
        asked = Evaluation("thumos14", tmp_path, tmp_path, "any", options=Options(split=split))
        told = report.markdown(asked, result)
        assert f"- Published: {source}\n" in told and f"| mAP@0.1 | 59.05 % | {cells} |" in told

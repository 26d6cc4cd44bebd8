"""What `python -m saccade import` makes of transformers' image processors. Where transformers is installed, as ./dev verify-zoo does it,
its own classes are read; stand-ins of the same names are read everywhere."""

import pathlib
import sys

import pytest
from torchvision.transforms import functional

from stand_ins import MEAN, STD, named


@pytest.fixture(scope="module")
def processors(saccade):
    from saccade.imports import processors

    return processors


def resized_to(sizes):
    return lambda picture: functional.resize(picture, list(sizes[tuple(picture.shape[1:])]))


def test_plain_processors_are_described(processors):
    described, example = processors.prepares(named("ViTImageProcessor"))
    assert example == (64, 96)
    assert described == {"resize": "exact", "size": [64, 96], "filter": "bilinear", "scale": 1 / 255, "mean": list(MEAN), "std": list(STD)}


def test_convnext_crops_a_share(processors):
    def made(picture):
        return functional.center_crop(functional.resize(picture, 71), [64, 64])

    convnext = named("ConvNextImageProcessor", made, size={"shortest_edge": 64}, crop_pct=0.9)
    described, example = processors.prepares(convnext)
    assert (described["resize"], described["size"], described["crop"], example) == ("shorter", 71, [64, 64], (64, 64))


@pytest.mark.parametrize("rounding, nearest", [("down", int), ("even", round)])
def test_half_a_pixel_beside_a_crop_is_rounded_as_the_processor_does(processors, rounding, nearest):
    def made(picture):
        resized = functional.resize(picture, 64)
        top, left = ((side - 64) / 2 for side in resized.shape[1:])
        return functional.crop(resized, nearest(top), nearest(left), 64, 64)

    sizes = {"size": {"shortest_edge": 64}, "crop_size": {"height": 64, "width": 64}}
    described, _ = processors.prepares(named("CLIPImageProcessor", made, do_center_crop=True, **sizes))
    assert described["rounding"] == rounding


def test_channels_may_be_flipped_and_not_normalized(processors):
    def made(picture):
        return functional.resize(picture, [64, 96]).flip(0)

    described, _ = processors.prepares(named("MobileViTImageProcessor", made, do_flip_channel_order=True, do_normalize=None))
    assert described["colour"] == "bgr" and "mean" not in described


def test_a_size_is_rounded_to_multiples(processors):
    def made(picture):
        return functional.resize(picture, [224, 256])

    described, _ = processors.prepares(named("DPTImageProcessor", made, size={"height": 230, "width": 250}, ensure_multiple_of=32))
    assert described["size"] == [224, 256]


def test_a_crop_may_follow_both_sides(processors):
    def made(picture):
        return functional.center_crop(functional.resize(picture, [80, 72]), [64, 64])

    sizes = {"size": {"height": 80, "width": 72}, "crop_size": {"height": 64, "width": 64}}
    described, example = processors.prepares(named("DeiTImageProcessor", made, do_center_crop=True, **sizes))
    assert (described["resize"], described["size"], described["crop"], example) == ("exact", [80, 72], [64, 64], (64, 64))


def test_the_ratio_may_be_kept_with_multiples(processors):
    # By the size of each picture on which the description is tried, as transformers' DPT and YOLOS have it.
    dpt = {(230, 330): (256, 384), (330, 230): (384, 256), (900, 1210): (384, 512), (1210, 900): (512, 384)}
    yolos = {(230, 330): (336, 496), (330, 230): (496, 336), (900, 1210): (368, 496), (1210, 900): (496, 368)}
    keys = {"size": {"height": 384, "width": 384}, "ensure_multiple_of": 32, "keep_aspect_ratio": True}
    described, example = processors.prepares(named("DPTImageProcessor", resized_to(dpt), **keys))
    assert (described["resize"], described["size"], described["multiple"], example) == ("either", [384, 384], 32, (384, 384))
    keys = {"size": {"shortest_edge": 400, "longest_edge": 500}}
    described, example = processors.prepares(named("YolosImageProcessor", resized_to(yolos), **keys))
    assert (described["resize"], described["size"], described["max_size"], described["multiple"]) == ("shorter", 400, 500, 16)
    assert example == (400, 496)


@pytest.mark.parametrize("keys, complaint", [
    ({"keep_aspect_ratio": True}, "keep_aspect_ratio is True"),
    ({"do_thumbnail": True}, "do_thumbnail is True"),
    ({"do_align_long_axis": True}, "do_align_long_axis is True"),
    ({"do_pad": True, "pad_size": {"height": 100, "width": 100}}, "pad_size is {'height': 100, 'width': 100}"),
    ({"do_pad": True, "size_divisor": 14}, "size_divisor is 14"),
    ({"size": {"height": 48, "width": 48}, "ensure_multiple_of": 32}, "ensure_multiple_of is 32"),
    ({"resample": 0}, "resample is 0"),
    ({"do_resize": False}, "do_resize is False"),
    ({"size": {"longest_edge": 100}}, "size is {'longest_edge': 100}"),
    ({"do_center_crop": True, "crop_size": {"height": 32, "width": 97}}, "crop_size is {'height': 32, 'width': 97}"),
])  # fmt: skip
def test_what_a_description_cannot_say_is_an_error(processors, keys, complaint):
    from saccade.imports.failures import ImportFailure

    with pytest.raises(ImportFailure) as error:
        processors.prepares(named("OtherImageProcessor", **keys))
    assert complaint in str(error.value) and "saccade.json" in str(error.value)


@pytest.mark.parametrize("made, complaint", [
    (lambda picture: functional.resize(picture, [64, 96]).flip(0), "prepares pictures otherwise"),
    (lambda picture: functional.resize(picture, [64, 64]), "makes [3, 64, 64] of a picture of 230 x 330"),
])  # fmt: skip
def test_a_processor_that_does_more_than_its_keys_say_is_an_error(processors, made, complaint):
    from saccade.imports.failures import ImportFailure

    with pytest.raises(ImportFailure) as error:
        processors.prepares(named("OtherImageProcessor", made))
    assert complaint in str(error.value) and "saccade.json" in str(error.value)


@pytest.fixture(scope="module")
def transformers():
    installed = pathlib.Path(sys.executable).parents[1] / "zoo"
    sys.path.append(str(installed))
    yield pytest.importorskip("transformers")
    sys.path.remove(str(installed))


def test_transformers_own_processors_are_described(processors, transformers):
    crop = {"height": 256, "width": 256}
    for processor, expected in [
        (transformers.ConvNextImageProcessor(size={"shortest_edge": 224}), {"size": 256, "crop": [224, 224], "rounding": "down"}),
        (transformers.ConvNextImageProcessor(size={"shortest_edge": 224}, crop_pct=0.9), {"size": 248, "crop": [224, 224]}),
        (transformers.ConvNextImageProcessor(), {"resize": "exact", "size": [384, 384]}),
        (transformers.MobileViTImageProcessor(size={"shortest_edge": 288}, crop_size=crop), {"size": 288, "crop": [256, 256], "colour": "bgr"}),
        (transformers.DPTImageProcessor(size={"height": 230, "width": 230}, ensure_multiple_of=32), {"size": [224, 224]}),
        (transformers.DetrImageProcessor(size=400, max_size=500), {"resize": "shorter", "size": 400, "max_size": 500}),
        (transformers.DeiTImageProcessor(), {"resize": "exact", "size": [256, 256], "crop": [224, 224], "rounding": "down"}),
        (transformers.DPTImageProcessor(keep_aspect_ratio=True, ensure_multiple_of=14), {"resize": "either", "size": [384, 384], "multiple": 14}),
        (transformers.YolosImageProcessor(), {"resize": "shorter", "size": 800, "max_size": 1333, "multiple": 16}),
    ]:
        described, _ = processors.prepares(processor)
        assert expected.items() <= described.items(), described


def test_transformers_own_processors_that_cannot_be_described_are_errors(processors, transformers):
    from saccade.imports.failures import ImportFailure

    for processor, complaint in [
        (transformers.DPTImageProcessor(keep_aspect_ratio=True, ensure_multiple_of=400), "ensure_multiple_of is 400"),
        (transformers.LevitImageProcessor(), "LevitImageProcessor prepares pictures otherwise"),
        (transformers.DonutImageProcessor(), "do_thumbnail is True"),
    ]:
        with pytest.raises(ImportFailure) as error:
            processors.prepares(processor)
        assert complaint in str(error.value)

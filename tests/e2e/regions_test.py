"""Tests regions and sizes of maps: results are those for the cropped picture, in the whole picture's coordinates."""

import io

import grpc
import numpy
import pytest
from PIL import Image

import coco
import pictures
from messages import message, predict_request
from tasks_test import pair

SIZE = (150, 110)
REGION = dict(x=30, y=20, width=96, height=64)
ROWS, COLUMNS = slice(20, 84), slice(30, 126)
PNG, RAW = 1, 2
PNG_16, FLOAT = 1, 2


@pytest.fixture(scope="module")
def vision(tasks_daemon):
    with tasks_daemon.vision() as made:
        yield made


def region(**fields):
    return message("saccade.v1.Region")(**(fields or REGION))


def whole(seed=1):
    return pictures.pixels(seed, *SIZE)


def cut(seed=1):
    return numpy.ascontiguousarray(whole(seed)[ROWS, COLUMNS])


def raw(array):
    height, width, _ = array.shape
    return message("saccade.v1.RawPicture")(width=width, height=height, order=1, pixels=array.tobytes())


def options(task, **fields):
    return message(f"saccade.v1.{task}Options")(**fields)


def png(data):
    return numpy.asarray(Image.open(io.BytesIO(data)))


@pytest.mark.parametrize("seed", [1, 4, 9])
def test_detections_lie_in_the_whole_picture(vision, seed):
    alone = vision.predict(predict_request(model="detector", encoded=pictures.encoded(cut(seed))))
    seen = vision.predict(predict_request(model="detector", encoded=pictures.encoded(whole(seed)), region=region()))
    assert (seen.picture_width, seen.picture_height) == SIZE
    assert len(seen.detections.detections) == len(alone.detections.detections) > 0
    for one, other in zip(alone.detections.detections, seen.detections.detections):
        assert (one.score, one.class_index) == (other.score, other.class_index)
        assert other.box.x_min == pytest.approx(one.box.x_min + 30, abs=1e-3)
        assert other.box.y_max == pytest.approx(one.box.y_max + 20, abs=1e-3)
        assert other.mask.area == one.mask.area
        mask = coco.mask(other.mask)
        assert mask.shape == SIZE[::-1]
        assert (mask[ROWS, COLUMNS] == coco.mask(one.mask)).all()
        assert mask.sum() == other.mask.area


def test_raw_pixels_have_regions_too(vision):
    alone = vision.predict(predict_request(model="detector", raw=raw(cut())))
    seen = vision.predict(predict_request(model="detector", raw=raw(whole()), region=region()))
    assert [one.score for one in alone.detections.detections] == [one.score for one in seen.detections.detections]


def test_a_large_jpeg_is_not_shrunk_before_it_is_cut(vision):
    encoded = pictures.encoded(pictures.pixels(3, 1200, 900), "JPEG", quality=95)
    decoded = numpy.asarray(Image.open(io.BytesIO(encoded)).convert("RGB"))
    place = dict(x=501, y=307, width=600, height=400)
    part = numpy.ascontiguousarray(decoded[307:707, 501:1101])
    seen = vision.predict(predict_request(model="detector", encoded=encoded, region=region(**place)))
    alone = vision.predict(predict_request(model="detector", raw=raw(part)))
    assert [one.score for one in seen.detections.detections] == pytest.approx(
        [one.score for one in alone.detections.detections], abs=0.02
    )


def test_a_region_is_of_the_upright_picture(vision):
    turned = Image.fromarray(whole())
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate by 90 degrees clockwise
    sideways = turned.transpose(Image.Transpose.ROTATE_90)
    out = io.BytesIO()
    sideways.save(out, "JPEG", quality=100, subsampling=0, exif=exif)
    seen = vision.predict(predict_request(model="detector", encoded=out.getvalue(), region=region()))
    assert (seen.picture_width, seen.picture_height) == SIZE
    alone = vision.predict(predict_request(model="detector", encoded=pictures.encoded(cut())))
    assert seen.detections.detections[0].score == pytest.approx(alone.detections.detections[0].score, abs=0.05)


def test_a_label_map_is_the_whole_pictures(vision):
    alone = vision.predict(predict_request(model="segmenter", encoded=pictures.encoded(cut()))).segmentation
    request = predict_request(model="segmenter", encoded=pictures.encoded(whole()), region=region())
    seen = vision.predict(request).segmentation
    labels = png(seen.label_map)
    assert (seen.width, seen.height) == SIZE and labels.shape == SIZE[::-1]
    assert (labels[ROWS, COLUMNS] == png(alone.label_map)).all()
    assert (labels == 255).sum() == labels.size - 96 * 64
    assert seen.areas == alone.areas


def test_a_disparity_is_the_whole_pictures(vision):
    left, right = (pictures.encoded(cut(seed)) for seed in (1, 2))
    alone = vision.predict(predict_request(model="stereo", stereo=pair(left, right))).disparity
    whole_pair = pair(*(pictures.encoded(whole(seed)) for seed in (1, 2)))
    seen = vision.predict(predict_request(model="stereo", stereo=whole_pair, region=region())).disparity
    steps = png(seen.map)
    assert steps.shape == SIZE[::-1]
    assert (steps[ROWS, COLUMNS] == png(alone.map)).all()
    assert (steps == 0).sum() == steps.size - 96 * 64
    assert (seen.min, seen.max, seen.mean) == (alone.min, alone.max, alone.mean)
    floats = vision.predict(
        predict_request(model="stereo", stereo=whole_pair, region=region(), stereo_options=options("Stereo", format=FLOAT))
    ).disparity
    values = numpy.frombuffer(floats.map, numpy.float32).reshape(SIZE[::-1])
    assert numpy.isnan(values).sum() == values.size - 96 * 64


@pytest.mark.parametrize("size", [(75, 55), (150, 110), (300, 220), (10, 200), (1, 1)])
def test_maps_of_another_size(vision, size):
    width, height = size
    rows = (2 * numpy.arange(height) + 1) * SIZE[1] // (2 * height)
    columns = (2 * numpy.arange(width) + 1) * SIZE[0] // (2 * width)
    wanted = message("saccade.v1.OutputSize")(width=width, height=height)
    encoded = pictures.encoded(whole())

    def segment(**fields):
        request = predict_request(model="segmenter", encoded=encoded, segmentation=options("Segmentation", **fields))
        return vision.predict(request).segmentation

    full, sized = segment(), segment(size=wanted, format=RAW)
    assert (sized.width, sized.height) == size
    labels = numpy.frombuffer(sized.label_map, numpy.uint8).reshape(height, width)
    assert (labels == png(full.label_map)[rows[:, None], columns]).all()
    assert sized.areas == full.areas

    sent = pair(encoded, pictures.encoded(whole(2)))

    def stereo(**fields):
        request = predict_request(model="stereo", stereo=sent, stereo_options=options("Stereo", **fields))
        return vision.predict(request).disparity

    full, sized = stereo(), stereo(size=wanted)
    assert (png(sized.map) == png(full.map)[rows[:, None], columns]).all()
    assert sized.mean == full.mean


@pytest.mark.parametrize(
    "fields, words",
    [
        (dict(x=100, y=0, width=51, height=10), "extends beyond the upright picture, which has 150 x 110"),
        (dict(x=0, y=2**31 - 1, width=1, height=1), "extends beyond"),
        (dict(x=0, y=0, width=2**31 - 1, height=1), "extends beyond"),
        (dict(x=-1, y=0, width=10, height=10), "at least 0"),
        (dict(x=0, y=0, width=0, height=10), "at least 1"),
    ],
)
def test_regions_that_are_none(vision, fields, words):
    with pytest.raises(grpc.RpcError) as error:
        vision.predict(predict_request(model="detector", encoded=pictures.encoded(whole()), region=region(**fields)))
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert words in error.value.details() and "region" in error.value.details()


@pytest.mark.parametrize("size", [(0, 10), (10, -1), (16385, 10), (10_000, 10_000)])
def test_sizes_that_are_none(vision, size):
    wanted = message("saccade.v1.OutputSize")(width=size[0], height=size[1])
    with pytest.raises(grpc.RpcError) as error:
        vision.predict(
            predict_request(
                model="segmenter", encoded=pictures.encoded(whole()), segmentation=options("Segmentation", size=wanted)
            )
        )
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "segmentation.size" in error.value.details()


def test_maps_as_large_as_the_network_saw_the_picture(vision):
    """The networks scale pictures to at most 128 pixels."""
    network = message("saccade.v1.OutputSize")(network=True)
    segment = lambda **fields: vision.predict(
        predict_request(
            model="segmenter", encoded=pictures.encoded(whole()), segmentation=options("Segmentation", **fields)
        )
    ).segmentation
    full, sized = segment(format=RAW), segment(format=RAW, size=network)
    assert max(sized.width, sized.height) == 128 < full.width
    labels, seen = (numpy.frombuffer(one.label_map, numpy.uint8).reshape(one.height, one.width) for one in (full, sized))
    rows, columns = ((2 * numpy.arange(to) + 1) * of // (2 * to) for to, of in zip(seen.shape, labels.shape))
    assert (seen == labels[rows[:, None], columns]).all()


@pytest.mark.parametrize("more, fields", [(dict(region=region()), {}), ({}, dict(width=3, height=2))])
def test_the_networks_size_and_another(vision, more, fields):
    wanted = message("saccade.v1.OutputSize")(network=True, **fields)
    sent = dict(encoded=pictures.encoded(whole()), segmentation=options("Segmentation", size=wanted), **more)
    with pytest.raises(grpc.RpcError) as error:
        vision.predict(predict_request(model="segmenter", **sent))
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "segmentation.size" in error.value.details() and "network's" in error.value.details()

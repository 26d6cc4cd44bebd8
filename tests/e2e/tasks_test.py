"""Tests saccade.v1.Vision with detectors, segmenters and stereo networks, in the coordinates of the picture as sent."""

import io

import numpy
import pytest
from PIL import Image

import coco
import pictures
from harness import Daemon
from messages import get_model_request, message, predict_request
from refusals import EXHAUSTED, INVALID, check, refused
from tiny_models import tiny_detector, tiny_segmenter

# Width and height; the networks see the pictures scaled to at most 128 pixels.
SIZES = [(96, 64), (64, 96), (131, 75), (240, 160), (17, 40)]

RLE, NO_MASKS, PNG_MASKS, POLYGONS = 1, 2, 3, 4
PNG, RAW, AREAS = 1, 2, 3
PNG_16, FLOAT = 1, 2


@pytest.fixture(scope="module")
def vision(tasks_daemon):
    with tasks_daemon.vision() as made:
        yield made


def picture(seed, size=(96, 64)):
    return pictures.encoded(pictures.pixels(seed, *size))


def raw_picture(seed, size):
    width, height = size
    pixels = pictures.pixels(seed, width, height).tobytes()
    return message("saccade.v1.RawPicture")(width=width, height=height, order=1, pixels=pixels)


def pair(left, right):
    """A pair of encoded or raw pictures."""
    one = lambda content: {"encoded" if isinstance(content, bytes) else "raw": content}
    return message("saccade.v1.StereoPair")(left=one(left), right=one(right))


def detect(vision, encoded, model="detector", **options):
    request = predict_request(model=model, encoded=encoded, detection=message("saccade.v1.DetectionOptions")(**options))
    answer = vision.predict(request)
    assert answer.WhichOneof("result") == "detections"
    return answer.detections.detections


def segment(vision, encoded, **options):
    options = message("saccade.v1.SegmentationOptions")(**options)
    answer = vision.predict(predict_request(model="segmenter", encoded=encoded, segmentation=options))
    assert answer.WhichOneof("result") == "segmentation"
    return answer.segmentation


def stereo(vision, sent, **options):
    options = message("saccade.v1.StereoOptions")(**options)
    answer = vision.predict(predict_request(model="stereo", stereo=sent, stereo_options=options))
    assert answer.WhichOneof("result") == "disparity"
    return answer


def decoded(png):
    return numpy.asarray(Image.open(io.BytesIO(png)))


def floats(map_, width, height):
    return numpy.frombuffer(map_, "<f4").reshape(height, width)


@pytest.mark.parametrize("size", SIZES)
def test_boxes_and_masks_lie_in_the_picture(vision, size):
    width, height = size
    found = detect(vision, picture(1, size))
    assert found
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True) and scores[0] <= 1 and scores[-1] > 0.05
    labels = tiny_detector().labels
    for one in found:
        assert one.class_index > 0 and one.label == labels[one.class_index]
        assert 0 <= one.box.x_min <= one.box.x_max <= width
        assert 0 <= one.box.y_min <= one.box.y_max <= height
        drawn = coco.mask(one.mask)
        assert drawn.shape == (height, width)
        assert drawn.sum() == one.mask.area
        ys, xs = numpy.nonzero(drawn)
        # A mask may extend beyond its box by half of one of its 28 cells, plus rounding to whole pixels.
        for places, least, most in ((xs, one.box.x_min, one.box.x_max), (ys, one.box.y_min, one.box.y_max)):
            beyond = 2 + (most - least) / 28
            assert all(least - beyond <= place <= most + beyond for place in places)
    assert any(one.mask.area > 0 for one in found)


def test_none_found_is_an_answer(vision):
    assert len(detect(vision, picture(1), score_threshold=1)) == 0
    assert len(detect(vision, picture(1), model="blind")) == 0


def test_detections_are_filtered(vision):
    everything = detect(vision, picture(2))
    assert len(everything) > 2
    assert list(detect(vision, picture(2), top_k=2)) == list(everything[:2])
    threshold = everything[1].score
    assert list(detect(vision, picture(2), score_threshold=threshold)) == [
        one for one in everything if one.score >= threshold
    ]
    wanted = everything[0].class_index
    assert list(detect(vision, picture(2), classes=[wanted])) == [
        one for one in everything if one.class_index == wanted
    ]


def test_masks_as_they_are_wanted(vision):
    usual = detect(vision, picture(3))
    assert not any(one.HasField("mask") for one in detect(vision, picture(3), masks=NO_MASKS))
    assert list(detect(vision, picture(3), masks=RLE, mask_threshold=0.5)) == list(usual)
    lower = detect(vision, picture(3), mask_threshold=0.1)
    assert sum(one.mask.area for one in lower) > sum(one.mask.area for one in usual)


def filled(polygons, size):
    """Fills by the even-odd rule, including the edges, which are horizontal, vertical or diagonal."""
    y, x = numpy.mgrid[: size[0], : size[1]]
    inside, edges = numpy.zeros(size, bool), numpy.zeros(size, bool)
    for polygon in polygons:
        points = numpy.array(polygon.points).reshape(-1, 2)
        for (x0, y0), (x1, y1) in zip(points, numpy.roll(points, -1, axis=0)):
            steps = numpy.arange(max(abs(x1 - x0), abs(y1 - y0)) + 1)
            edges[y0 + numpy.sign(y1 - y0) * steps, x0 + numpy.sign(x1 - x0) * steps] = True
            if y0 != y1:
                crossed = (min(y0, y1) <= y) & (y < max(y0, y1))
                inside ^= crossed & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    return inside | edges


def test_masks_in_every_form(vision):
    """The PNG of the mask's part and the polygons must show the same pixels as the run lengths."""
    usual = detect(vision, picture(3))
    assert sum(one.mask.area > 0 for one in usual) > 1
    pngs, polygons = (detect(vision, picture(3), masks=form) for form in (PNG_MASKS, POLYGONS))
    for one, other, around in zip(usual, pngs, polygons, strict=True):
        assert (one.box, one.score) == (other.box, other.score) == (around.box, around.score)
        expected = coco.mask(one.mask)
        part = other.mask_picture
        pixels = numpy.zeros_like(expected)
        if part.area:
            cut = decoded(part.png)
            assert cut.shape == (part.height, part.width) and set(numpy.unique(cut)) <= {0, 255}
            pixels[part.y : part.y + part.height, part.x : part.x + part.width] = cut > 0
        assert numpy.array_equal(pixels, expected)
        assert part.area == around.mask_polygons.area == one.mask.area == expected.sum()
        assert numpy.array_equal(filled(around.mask_polygons.polygons, expected.shape), expected)


def test_a_form_of_masks_that_there_is_not(vision):
    options = message("saccade.v1.DetectionOptions")(masks=9)
    request = predict_request(model="detector", encoded=picture(3), detection=options)
    check(refused(vision.predict, request), INVALID, ["detection.masks", "expected RLE, PNG, POLYGONS or NONE"])


@pytest.mark.parametrize("size", SIZES)
def test_label_maps_have_the_pictures_size(vision, size):
    width, height = size
    found = segment(vision, picture(4, size))
    assert (found.width, found.height, found.format) == (width, height, PNG)
    labels = decoded(found.label_map)
    assert labels.dtype == numpy.uint8 and labels.shape == (height, width)
    names = tiny_segmenter().labels
    counts = numpy.bincount(labels.ravel(), minlength=len(names))
    assert {area.class_index: area.pixels for area in found.areas} == {
        index: count for index, count in enumerate(counts) if count
    }
    assert sum(area.pixels for area in found.areas) == width * height
    assert [area.pixels for area in found.areas] == sorted((area.pixels for area in found.areas), reverse=True)
    for area in found.areas:
        assert area.label == names[area.class_index]
        assert area.fraction == pytest.approx(area.pixels / (width * height))
    raw = segment(vision, picture(4, size), format=RAW)
    assert raw.label_map == labels.tobytes()


def test_label_maps_show_something(vision):
    maps = {segment(vision, picture(seed, (120, 80)), format=RAW).label_map for seed in range(3)}
    assert len(maps) == 3
    assert max(len(set(found)) for found in maps) > 1


def test_areas_alone(vision):
    whole = segment(vision, picture(5))
    alone = segment(vision, picture(5), format=AREAS)
    assert alone.label_map == b"" and alone.format == AREAS
    assert list(alone.areas) == list(whole.areas)


@pytest.mark.parametrize("size", SIZES)
def test_disparities_have_the_pictures_size(vision, size):
    width, height = size
    sent = pair(picture(6, size), picture(7, size))
    answer = stereo(vision, sent, format=FLOAT)
    assert (answer.picture_width, answer.picture_height) == size
    found = answer.disparity
    assert (found.width, found.height, found.format) == (width, height, FLOAT)
    values = floats(found.map, width, height)
    assert values.min() >= 0 and values.std() > 0
    assert (found.min, found.max) == (values.min(), values.max())
    assert found.mean == pytest.approx(values.mean(), rel=1e-5)
    png = stereo(vision, sent).disparity
    assert png.format == PNG_16
    expected = numpy.clip(numpy.rint(values * 256), 1, 65535)
    assert numpy.array_equal(decoded(png.map), expected.astype(numpy.uint16))


def test_a_pair_may_be_raw_or_encoded(vision):
    size = (96, 64)
    encoded = stereo(vision, pair(picture(8, size), picture(9, size)), format=FLOAT).disparity
    mixed = stereo(vision, pair(picture(8, size), raw_picture(9, size)), format=FLOAT).disparity
    assert mixed == encoded
    swapped = stereo(vision, pair(picture(9, size), picture(8, size)), format=FLOAT).disparity
    assert swapped.map != encoded.map


OPTIONS = {
    "classification": "ClassificationOptions",
    "detection": "DetectionOptions",
    "segmentation": "SegmentationOptions",
    "stereo_options": "StereoOptions",
}
OWN = {"detector": "detection", "segmenter": "segmentation", "stereo": "stereo_options"}


def input_of(model):
    return {"stereo": pair(picture(0), picture(1))} if model == "stereo" else {"encoded": picture(0)}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("model", OWN)
def test_options_of_another_task_are_refused(vision, model, options):
    given = message(f"saccade.v1.{OPTIONS[options]}")()
    request = predict_request(model=model, **input_of(model), **{options: given})
    if options == OWN[model]:
        vision.predict(request)
    else:
        check(refused(vision.predict, request), INVALID, [f"{options}:", model, OWN[model]])


def test_a_class_that_the_model_lacks(vision):
    options = message("saccade.v1.DetectionOptions")(classes=[1, 5])
    request = predict_request(model="detector", encoded=picture(0), detection=options)
    check(refused(vision.predict, request), INVALID, ["detection.classes", "5", "0 to 4"])


@pytest.mark.parametrize(
    "model, sent, words",
    [
        ("stereo", {"encoded": picture(0)}, ["encoded", "stereo"]),
        ("stereo", {"raw": raw_picture(0, (96, 64))}, ["raw", "stereo"]),
        ("detector", {"stereo": pair(picture(0), picture(1))}, ["stereo"]),
        ("segmenter", {"stereo": pair(picture(0), picture(1))}, ["stereo"]),
        ("stereo", {"stereo": pair(picture(0, (96, 64)), picture(1, (96, 65)))}, ["stereo", "96 x 64", "96 x 65"]),
        ("stereo", {"stereo": pair(picture(0), b"nothing")}, ["stereo", "right", "not a readable picture"]),
        ("stereo", {"stereo": pair(b"", picture(0))}, ["stereo", "left", "empty"]),
        ("stereo", {"stereo": message("saccade.v1.StereoPair")(left={"encoded": picture(0)})}, ["stereo.right"]),
    ],
)
def test_inputs_that_do_not_fit_the_model(vision, model, sent, words):
    check(refused(vision.predict, predict_request(model=model, **sent)), INVALID, words)


def test_what_models_say_of_themselves(vision):
    detector = vision.get_model(get_model_request("detector"))
    assert (detector.task, detector.views, detector.buckets) == ("detection", 1, "stride:32")
    assert list(detector.labels) == tiny_detector().labels
    assert vision.get_model(get_model_request("segmenter")).task == "segmentation"
    stereo_model = vision.get_model(get_model_request("stereo"))
    assert (stereo_model.task, stereo_model.views, stereo_model.classes) == ("stereo", 2, 0)


def test_an_answer_over_the_message_bound(tasks_repository, tmp_path):
    size = (240, 160)
    sent = pair(picture(6, size), picture(7, size))
    with Daemon(tasks_repository, "--max-message-bytes=100000", log_folder=tmp_path) as daemon:
        with daemon.await_ready().vision() as vision:
            assert stereo(vision, sent, format=PNG_16).disparity.width == 240
            options = message("saccade.v1.StereoOptions")(format=FLOAT)
            request = predict_request(model="stereo", stereo=sent, stereo_options=options)
            check(refused(vision.predict, request), EXHAUSTED, ["--max-message-bytes", "PNG_16"])

"""saccade.v1.Vision: pictures in, classes out."""

import numpy
import pytest

import pictures
from messages import message, predict_request
from tiny_models import assert_close

RGB, BGR = 1, 2


@pytest.fixture(scope="module")
def vision(daemon):
    with daemon.vision() as made:
        yield made


def logits(answer):
    """By class, from an answer with every class in it."""
    return numpy.array([one.logit for one in sorted(answer.classification.classes, key=lambda one: one.index)])


def ask(vision, tiny, **fields):
    options = message("saccade.v1.ClassificationOptions")(top_k=tiny.classes)
    return vision.predict(predict_request(model="tiny", classification=options, **fields))


def raw_picture(array, order):
    height, width, _ = array.shape
    return message("saccade.v1.RawPicture")(width=width, height=height, order=order, pixels=array.tobytes())


def test_an_encoded_picture(vision, tiny):
    picture = pictures.pixels(1, tiny.resize, tiny.resize)
    answer = ask(vision, tiny, encoded=pictures.encoded(picture), request_id="one")
    assert (answer.model, answer.version, answer.request_id) == ("tiny", 1, "one")
    assert (answer.picture_width, answer.picture_height) == (tiny.resize, tiny.resize)
    assert answer.batch_size >= 1
    assert answer.timings.total.ToNanoseconds() >= answer.timings.infer.ToNanoseconds() > 0
    assert_close(logits(answer), tiny.logits(tiny.prepared([picture]))[0])


def test_raw_pixels_in_either_order(vision, tiny):
    picture = pictures.pixels(2, tiny.resize, tiny.resize)
    expected = tiny.logits(tiny.prepared([picture]))[0]
    assert_close(logits(ask(vision, tiny, raw=raw_picture(picture, RGB))), expected)
    turned = numpy.ascontiguousarray(picture[:, :, ::-1])
    assert_close(logits(ask(vision, tiny, raw=raw_picture(turned, BGR))), expected)


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "BMP"])
def test_every_format(vision, tiny, format):
    answer = ask(vision, tiny, encoded=pictures.encoded(pictures.pixels(3, 320, 200), format))
    assert (answer.picture_width, answer.picture_height) == (320, 200)


def test_probabilities_are_a_softmax_in_order(vision, tiny):
    classes = ask(vision, tiny, encoded=pictures.encoded(pictures.pixels(4))).classification.classes
    found = numpy.array([one.probability for one in classes])
    scores = numpy.exp(numpy.array([one.logit for one in classes], dtype=numpy.float64))
    assert_close(found, scores / scores.sum())
    assert list(found) == sorted(found, reverse=True)
    assert [one.label for one in classes] == [tiny.labels[one.index] for one in classes]


def test_top_k(vision):
    options = message("saccade.v1.ClassificationOptions")(top_k=2)
    picture = pictures.encoded(pictures.pixels(5))
    answer = vision.predict(predict_request(model="tiny", classification=options, encoded=picture))
    assert len(answer.classification.classes) == 2


def test_models_are_described(vision, tiny):
    listed = vision.list_models(message("saccade.v1.ListModelsRequest")()).models
    assert {model.name for model in listed} == {"tiny", "gathering"}
    model = vision.get_model(message("saccade.v1.GetModelRequest")(model="tiny"))
    states = message("saccade.v1.Model").DESCRIPTOR.enum_types_by_name["State"].values_by_name
    assert model.state == states["READY"].number
    assert (model.name, model.version, model.architecture) == ("tiny", 1, "sanet")
    assert (model.task, model.classes, list(model.labels)) == ("classification", tiny.classes, tiny.labels)
    assert (model.input_width, model.input_height, model.max_batch_size) == (tiny.width, tiny.height, 8)
    assert model.load_duration.ToNanoseconds() > 0

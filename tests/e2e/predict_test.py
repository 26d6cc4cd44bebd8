"""Tests saccade.v1.Vision with classifiers."""

import io

import grpc
import numpy
import pytest
from PIL import Image, ImageOps

import pictures
from messages import message, predict_request
from tiny_models import assert_close

RGB, BGR = 1, 2


@pytest.fixture(scope="module")
def vision(daemon):
    with daemon.vision() as made:
        yield made


def logits(answer):
    """Logits by class index, from a response that has every class."""
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


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF", "BMP"])
def test_every_format(vision, tiny, format):
    answer = ask(vision, tiny, encoded=pictures.encoded(pictures.pixels(3, 320, 200), format))
    assert (answer.picture_width, answer.picture_height) == (320, 200)


def file_of(picture, format, mode, **options):
    out = io.BytesIO()
    Image.fromarray(picture).convert(mode).save(out, format, **options)
    return out.getvalue()


def logits_of(vision, tiny, encoded):
    return logits(ask(vision, tiny, encoded=encoded))


@pytest.mark.parametrize("format, mode", [("PNG", "L"), ("PNG", "LA"), ("PNG", "P"), ("PNG", "1"), ("PNG", "RGBA"),
                                          ("TIFF", "L"), ("TIFF", "P"), ("TIFF", "1"), ("JPEG", "L"), ("BMP", "P"),
                                          ("WEBP", "RGBA")])
def test_every_kind_of_pixels_is_read_as_colours(vision, tiny, format, mode):
    picture = pictures.pixels(8, tiny.resize, tiny.resize)
    lossless = {"lossless": True} if format == "WEBP" else {"quality": 100} if format == "JPEG" else {}
    colours = numpy.asarray(Image.fromarray(picture).convert(mode).convert("RGB"))
    found = logits_of(vision, tiny, file_of(picture, format, mode, **lossless))
    expected = tiny.logits(tiny.prepared([colours]))[0]
    if format == "JPEG":
        assert abs(found - expected).max() < 0.05 * abs(expected).max()
    else:
        assert_close(found, expected)


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
def test_sixteen_bits_are_as_good_as_eight(vision, tiny, format):
    grey = numpy.asarray(Image.fromarray(pictures.pixels(9, tiny.resize, tiny.resize)).convert("L"))
    deep, out = Image.fromarray(grey.astype(numpy.uint16) * 257), io.BytesIO()
    deep.save(out, format)
    expected = tiny.logits(tiny.prepared([numpy.stack([grey] * 3, axis=2)]))[0]
    assert_close(logits_of(vision, tiny, out.getvalue()), expected)


@pytest.mark.parametrize("format", ["JPEG", "TIFF"])
def test_cmyk_is_the_colours_that_it_prints(vision, tiny, format):
    picture = pictures.pixels(10, tiny.resize, tiny.resize)
    options = {"quality": 100, "subsampling": 0} if format == "JPEG" else {}
    found = logits_of(vision, tiny, file_of(picture, format, "CMYK", **options))
    # Decoders round the product with black differently: the result may be off by one step of 255.
    darker = numpy.maximum(picture, 1) - 1
    expected, step = tiny.logits(tiny.prepared([picture, darker]))
    assert abs(found - expected).max() < 2 * abs(step - expected).max()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned_upright(vision, tiny, orientation):
    """Compared with Pillow's rotation of the same file."""
    picture = Image.fromarray(pictures.pixels(11, tiny.resize, tiny.resize))
    exif, out = Image.Exif(), io.BytesIO()
    exif[0x0112] = orientation
    picture.save(out, "JPEG", quality=100, subsampling=0, exif=exif)
    upright = numpy.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(out.getvalue()))))
    found = logits_of(vision, tiny, out.getvalue())
    expected = tiny.logits(tiny.prepared([upright]))[0]
    assert abs(found - expected).max() < 0.02 * abs(expected).max()


@pytest.mark.parametrize("width, height", [(300, 90), (90, 300)])
def test_an_oriented_pictures_size_is_the_upright_one(vision, tiny, width, height):
    exif, out = Image.Exif(), io.BytesIO()
    exif[0x0112] = 8
    Image.fromarray(pictures.pixels(12, width, height)).save(out, "JPEG", exif=exif)
    answer = ask(vision, tiny, encoded=out.getvalue())
    assert (answer.picture_width, answer.picture_height) == (height, width)


def test_what_no_picture_can_be_is_refused(vision, tiny):
    """32-bit values have no defined brightness; GIFs are not supported."""
    out = io.BytesIO()
    Image.fromarray(numpy.zeros((8, 8), numpy.float32)).save(out, "TIFF")
    for encoded, words in ((out.getvalue(), "cannot be converted to RGB"), (file_of(pictures.pixels(1), "GIF", "P"), "it is GIF")):
        with pytest.raises(grpc.RpcError) as error:
            ask(vision, tiny, encoded=encoded)
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert words in error.value.details()


def test_every_answer_says_where_its_time_went(vision, tiny):
    answer = ask(vision, tiny, encoded=pictures.encoded(pictures.pixels(13, 800, 600), "JPEG"))
    stages = [answer.timings.decode, answer.timings.queue, answer.timings.infer, answer.timings.encode]
    assert stages[3].ToNanoseconds() > 0
    assert stages[0].ToNanoseconds() > 0 and stages[1].ToNanoseconds() >= 0 and stages[2].ToNanoseconds() > 0
    assert sum(stage.ToNanoseconds() for stage in stages) <= answer.timings.total.ToNanoseconds()


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

"""Tests detectors, segmenters and stereo networks with Triton's Python client."""

import numpy
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

import pictures

# Width and height.
SIZES = [(96, 64), (131, 75), (64, 96)]


@pytest.fixture(scope="module")
def client(tasks_daemon):
    with triton.InferenceServerClient(tasks_daemon.grpc_address) as made:
        yield made


def bytes_input(rows):
    """Rows of one or two encoded pictures."""
    made = triton.InferInput("image", [len(rows), len(rows[0])], "BYTES")
    made.set_data_from_numpy(numpy.array(rows, dtype=numpy.object_))
    return made


def picture(seed, size=SIZES[0]):
    return pictures.encoded(pictures.pixels(seed, *size))


def infer(client, model, rows, *outputs):
    named = [triton.InferRequestedOutput(name) for name in outputs] or None
    return client.infer(model, [bytes_input(rows)], outputs=named)


def names(answer):
    return [output.name for output in answer.get_response().outputs]


def refused(client, model, rows, *outputs):
    with pytest.raises(InferenceServerException) as error:
        infer(client, model, rows, *outputs)
    assert error.value.status() == "StatusCode.INVALID_ARGUMENT", error.value
    return error.value.message()


def described(tensors):
    return [(tensor.name, tensor.datatype, list(tensor.shape)) for tensor in tensors]


def test_metadata(client):
    detector = client.get_model_metadata("detector")
    assert described(detector.inputs) == [("image", "BYTES", [-1, 1])]
    assert described(detector.outputs) == [
        ("num_detections", "INT64", [-1]),
        ("boxes", "FP32", [-1, -1, 4]),
        ("scores", "FP32", [-1, -1]),
        ("labels", "INT64", [-1, -1]),
        ("masks", "FP32", [-1, -1, -1, -1]),
    ]
    assert described(client.get_model_metadata("segmenter").outputs) == [
        ("label_map", "UINT8", [-1, -1, -1]),
        ("areas", "INT64", [-1, 5]),
    ]
    stereo = client.get_model_metadata("stereo")
    assert described(stereo.inputs) == [("image", "BYTES", [-1, 2])]
    assert described(stereo.outputs) == [("disparity", "FP32", [-1, -1, -1])]


def test_detections_of_several_sizes_in_one_request(client):
    sent = [picture(seed, size) for seed, size in enumerate(SIZES)]
    answer = infer(client, "detector", [[one] for one in sent])
    assert names(answer) == ["num_detections", "boxes", "scores", "labels"]
    counts = answer.as_numpy("num_detections")
    most = counts.max()
    assert counts.shape == (3,) and most > 0
    assert answer.as_numpy("boxes").shape == (3, most, 4)
    assert answer.as_numpy("scores").shape == answer.as_numpy("labels").shape == (3, most)
    for index, (width, height) in enumerate(SIZES):
        count = counts[index]
        boxes = answer.as_numpy("boxes")[index]
        assert (boxes[:count] >= 0).all() and (boxes[:count] <= [width, height, width, height]).all()
        alone = infer(client, "detector", [[sent[index]]])
        for name in ("boxes", "scores", "labels"):
            values = answer.as_numpy(name)[index]
            assert values[:count].tobytes() == alone.as_numpy(name)[0].tobytes()
            assert not values[count:].any()


def test_flat_detections_are_the_padded_ones_without_padding(client):
    pictures = [[picture(seed, size)] for seed, size in enumerate(SIZES)]
    padded, flat = (infer(client, model, pictures) for model in ("detector", "flat"))
    assert names(flat) == ["batch_splits", "boxes", "scores", "labels"]
    splits = flat.as_numpy("batch_splits")
    assert list(numpy.diff(splits)) == list(padded.as_numpy("num_detections")) and splits[0] == 0
    for name in ("boxes", "scores", "labels"):
        for index, (begin, end) in enumerate(zip(splits, splits[1:])):
            assert (flat.as_numpy(name)[begin:end] == padded.as_numpy(name)[index][: end - begin]).all()


def test_a_tensor_is_answered_in_its_own_coordinates(client):
    """The tensor has the network's scale, so it is padded and not scaled: 50 x 90 in a bucket of 64 x 96."""
    tensor = numpy.random.default_rng(1).standard_normal((2, 3, 50, 90)).astype(numpy.float32)
    made = triton.InferInput("image", tensor.shape, "FP32")
    made.set_data_from_numpy(tensor)
    answer = client.infer("detector", [made])
    assert answer.as_numpy("num_detections").min() > 0
    assert (answer.as_numpy("boxes") >= 0).all() and (answer.as_numpy("boxes") <= [90, 50, 90, 50]).all()


@pytest.mark.parametrize("shape", [(1, 6, 64, 96), (1, 3, 64, 129), (3, 64, 96)])
def test_a_tensor_that_the_model_does_not_take(client, shape):
    made = triton.InferInput("image", shape, "FP32")
    made.set_data_from_numpy(numpy.zeros(shape, numpy.float32))
    with pytest.raises(InferenceServerException) as error:
        client.infer("detector", [made])
    assert error.value.status() == "StatusCode.INVALID_ARGUMENT"
    assert f"[{','.join(map(str, shape))}]" in error.value.message()


def test_masks_when_they_are_named(client):
    answer = infer(client, "detector", [[picture(0)]], "masks", "num_detections")
    assert names(answer) == ["num_detections", "masks"]
    masks = answer.as_numpy("masks")
    assert masks.shape == (1, answer.as_numpy("num_detections")[0], 28, 28)
    assert masks.min() >= 0 and masks.max() <= 1 and masks.std() > 0


def test_no_detections_are_empty_tensors(client):
    answer = infer(client, "blind", [[picture(0)], [picture(1)]])
    assert list(answer.as_numpy("num_detections")) == [0, 0]
    assert answer.as_numpy("boxes").shape == (2, 0, 4)
    assert answer.as_numpy("scores").shape == answer.as_numpy("labels").shape == (2, 0)


def test_label_maps(client):
    answer = infer(client, "segmenter", [[picture(0)], [picture(1)]])
    labels, areas = answer.as_numpy("label_map"), answer.as_numpy("areas")
    assert labels.shape == (2, 64, 96) and labels.dtype == numpy.uint8
    for found, counted in zip(labels, areas):
        assert list(counted) == list(numpy.bincount(found.ravel(), minlength=5))


def test_label_maps_of_several_sizes_do_not_fit_one_tensor(client):
    rows = [[picture(0, SIZES[0])], [picture(1, SIZES[1])]]
    problem = refused(client, "segmenter", rows)
    assert "picture 1 has 131 x 75" in problem and "'areas'" in problem
    areas = infer(client, "segmenter", rows, "areas").as_numpy("areas")
    assert list(areas.sum(axis=1)) == [96 * 64, 131 * 75]


def test_disparities_of_pairs(client):
    pairs = [[picture(seed), picture(seed + 10)] for seed in (0, 1)]
    disparity = infer(client, "stereo", pairs).as_numpy("disparity")
    assert disparity.shape == (2, 64, 96) and disparity.min() >= 0
    alone = infer(client, "stereo", pairs[1:]).as_numpy("disparity")
    assert alone.tobytes() == disparity[1:].tobytes()


@pytest.mark.parametrize("model, row", [("stereo", [picture(0)]), ("detector", [picture(0), picture(1)])])
def test_pairs_are_for_stereo_alone(client, model, row):
    assert refused(client, model, [row]).startswith("input 'image'")


def test_pairs_of_two_sizes(client):
    problem = refused(client, "stereo", [[picture(0), picture(1)], [picture(0), picture(1, SIZES[1])]])
    assert problem.startswith("input 'image'") and "131 x 75" in problem


def test_an_output_of_another_task(client):
    problem = refused(client, "segmenter", [[picture(0)]], "logits")
    assert "'logits'" in problem and "'label_map', 'areas'" in problem

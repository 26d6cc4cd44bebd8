"""Tests the daemon with Triton's Python client, as a user who migrates from Triton would use it."""

import concurrent.futures
import re

import numpy
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

import pictures
from harness import ROOT
from tiny_models import assert_close
from triton_calls import tensor_input


@pytest.fixture(scope="module")
def client(daemon):
    with triton.InferenceServerClient(daemon.grpc_address) as made:
        yield made


def bytes_input(encoded, shape):
    made = triton.InferInput("image", shape, "BYTES")
    made.set_data_from_numpy(numpy.array(encoded, dtype=numpy.object_).reshape(shape))
    return made


def test_health(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("tiny")
    assert client.is_model_ready("tiny", "1")
    assert not client.is_model_ready("tiny", "7")
    assert not client.is_model_ready("no_such_model")


def test_server_metadata(client):
    metadata = client.get_server_metadata()
    assert metadata.name == "saccade"
    assert metadata.version == re.search(r"project\(saccade VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


def test_model_metadata(client, tiny):
    metadata = client.get_model_metadata("tiny")
    assert metadata.name == "tiny"
    assert list(metadata.versions) == ["1"]
    described = lambda tensors: [(tensor.name, tensor.datatype, list(tensor.shape)) for tensor in tensors]
    assert described(metadata.inputs) == [("image", "FP32", [-1, 3, tiny.height, tiny.width])]
    assert described(metadata.outputs) == [("logits", "FP32", [-1, tiny.classes])]


def test_metadata_of_an_unknown_model(client):
    with pytest.raises(InferenceServerException) as error:
        client.get_model_metadata("no_such_model")
    assert error.value.status() == "StatusCode.NOT_FOUND"
    assert "no_such_model" in error.value.message()


@pytest.mark.parametrize("count", [1, 3, 8])
def test_tensors_in_logits_out(client, tiny, count):
    batch = tiny.random_batch(count, seed=count)
    answer = client.infer("tiny", [tensor_input(batch)], request_id=f"tensors-{count}")
    assert answer.get_response().id == f"tensors-{count}"
    assert answer.get_response().model_name == "tiny"
    assert answer.get_response().model_version == "1"
    logits = answer.as_numpy("logits")
    assert logits.shape == (count, tiny.classes)
    assert_close(logits, tiny.logits(batch))


def test_the_output_by_name_and_the_version(client, tiny):
    batch = tiny.random_batch(1, seed=5)
    wanted = [triton.InferRequestedOutput("logits")]
    answer = client.infer("tiny", [tensor_input(batch)], model_version="1", outputs=wanted)
    assert_close(answer.as_numpy("logits"), tiny.logits(batch))


@pytest.mark.parametrize("shape", [[2], [2, 1]])
def test_encoded_pictures_in_logits_out(client, tiny, shape):
    sent = [pictures.pixels(seed, tiny.resize, tiny.resize) for seed in (10, 11)]
    answer = client.infer("tiny", [bytes_input([pictures.encoded(picture) for picture in sent], shape)])
    assert_close(answer.as_numpy("logits"), tiny.logits(tiny.prepared(sent)))


def test_many_at_once_each_gets_its_own_answer(client, tiny):
    batches = [tiny.random_batch(1, seed=100 + number) for number in range(32)]
    with concurrent.futures.ThreadPoolExecutor(8) as workers:
        answers = list(workers.map(lambda batch: client.infer("tiny", [tensor_input(batch)]), batches))
    for batch, answer in zip(batches, answers):
        assert_close(answer.as_numpy("logits"), tiny.logits(batch))


def test_classification_extension(client, tiny):
    batch = tiny.random_batch(2, seed=5)
    logits = client.infer("tiny", [tensor_input(batch)]).as_numpy("logits")
    wanted = [triton.InferRequestedOutput("logits", class_count=2)]
    texts = client.infer("tiny", [tensor_input(batch)], outputs=wanted).as_numpy("logits")
    assert texts.shape == (2, 2)
    for row, text in zip(logits, texts):
        best = numpy.argsort(-row)[:2]
        assert [one.decode() for one in text] == [f"{row[i]:.6f}:{i}:{tiny.labels[i]}" for i in best]

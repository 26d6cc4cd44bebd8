"""Tests system shared memory with Triton's client."""

import os
import uuid

import numpy
import pytest
import tritonclient.grpc as triton
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException, serialize_byte_tensor

from harness import Daemon
from pictures import encoded, pixels
from tiny_models import assert_close
from triton_calls import refusal


@pytest.fixture(scope="module")
def client(repository, tmp_path_factory):
    with Daemon(repository, "--allow-shared-memory", log_folder=tmp_path_factory.mktemp("log")) as running:
        with triton.InferenceServerClient(running.await_ready().grpc_address) as made:
            yield made


@pytest.fixture
def region(client):
    """region(bytes): registers a region of that size; returns its name and the client's handle."""
    made = []

    def make(size):
        name = f"saccade_test_{uuid.uuid4().hex}"
        handle = shm.create_shared_memory_region(name, name, size)
        made.append(handle)
        client.register_system_shared_memory(name, name, size)
        return name, handle

    yield make
    client.unregister_system_shared_memory()
    for handle in made:
        shm.destroy_shared_memory_region(handle)


def shared_input(name, shape, size, datatype="FP32", offset=0):
    made = triton.InferInput("image", shape, datatype)
    made.set_shared_memory(name, size, offset)
    return made


def test_it_is_advertised(client):
    assert "system_shared_memory" in client.get_server_metadata().extensions


def test_tensors_in_logits_out(client, region, tiny):
    batch = tiny.random_batch(3, seed=1)
    expected = tiny.logits(batch)
    name, handle = region(batch.nbytes + 256)
    shm.set_shared_memory_region(handle, [batch], offset=64)
    out, out_handle = region(1024)
    wanted = triton.InferRequestedOutput("logits")
    wanted.set_shared_memory(out, expected.nbytes + 8, 128)
    answer = client.infer("tiny", [shared_input(name, batch.shape, batch.nbytes, offset=64)], outputs=[wanted])
    output = answer.get_output("logits")
    assert list(output.shape) == list(expected.shape)
    assert output.parameters["shared_memory_region"].string_param == out
    assert output.parameters["shared_memory_byte_size"].int64_param == expected.nbytes
    assert output.parameters["shared_memory_offset"].int64_param == 128
    assert answer.get_response().raw_output_contents == [b""]
    got = shm.get_contents_as_numpy(out_handle, numpy.float32, expected.shape, offset=128)
    assert_close(got, expected)


def test_pictures_and_classes(client, region, tiny):
    """BYTES from shared memory; classification outputs cannot be written to it."""
    picture = pixels(3, tiny.resize, tiny.resize)
    elements = numpy.array([encoded(picture)], dtype=numpy.object_)
    size = 4 + len(elements[0])
    name, handle = region(size)
    shm.set_shared_memory_region(handle, [serialize_byte_tensor(elements)])
    answer = client.infer("tiny", [shared_input(name, [1, 1], size, "BYTES")])
    assert_close(answer.as_numpy("logits"), tiny.logits(tiny.prepared([picture])))
    wanted = triton.InferRequestedOutput("logits", class_count=2)
    with pytest.raises(InferenceServerException):
        wanted.set_shared_memory(name, size)


def test_a_stream_takes_it_too(client, region, tiny):
    batch = tiny.random_batch(1, seed=4)
    name, handle = region(batch.nbytes)
    shm.set_shared_memory_region(handle, [batch])
    answers = []
    client.start_stream(lambda result, error: answers.append((result, error)))
    client.async_stream_infer("tiny", [shared_input(name, batch.shape, batch.nbytes)])
    client.stop_stream()
    ((result, error),) = answers
    assert error is None
    assert_close(result.as_numpy("logits"), tiny.logits(batch))


def test_status_and_unregister(client, region):
    first, _ = region(64)
    second, _ = region(128)
    regions = client.get_system_shared_memory_status().regions
    assert {name: (one.name, one.key, one.offset, one.byte_size) for name, one in regions.items()} == {
        first: (first, first, 0, 64),
        second: (second, second, 0, 128),
    }
    assert list(client.get_system_shared_memory_status(first).regions) == [first]
    assert refusal(client.register_system_shared_memory, first, first, 64)[0] == "ALREADY_EXISTS"
    client.unregister_system_shared_memory(first)
    assert list(client.get_system_shared_memory_status().regions) == [second]
    assert refusal(client.get_system_shared_memory_status, first)[0] == "NOT_FOUND"
    client.unregister_system_shared_memory()
    assert not client.get_system_shared_memory_status().regions


def test_keys_outside_are_refused(client, tmp_path):
    (tmp_path / "secret").write_bytes(b"x" * 64)
    name = f"saccade_test_{uuid.uuid4().hex}"
    os.symlink(tmp_path / "secret", f"/dev/shm/{name}")
    try:
        for key in (str(tmp_path / "secret"), "../../etc/passwd", "/../etc/passwd", "..", "", f"/{name}"):
            assert refusal(client.register_system_shared_memory, "r", key, 8)[0] == "INVALID_ARGUMENT", key
    finally:
        os.unlink(f"/dev/shm/{name}")
    assert refusal(client.register_system_shared_memory, "r", "/saccade_no_such_key", 8)[0] == "NOT_FOUND"
    assert not client.get_system_shared_memory_status().regions


def test_ranges_outside_are_refused(client, region, tiny):
    batch = tiny.random_batch(1, seed=4)
    name, handle = region(batch.nbytes)
    shm.set_shared_memory_region(handle, [batch])
    whole = shared_input(name, batch.shape, batch.nbytes)
    for sent in (
        shared_input(name, batch.shape, batch.nbytes, offset=4),
        shared_input(name, batch.shape, batch.nbytes - 4),
        shared_input(name, batch.shape, 2**62),
        shared_input(name, batch.shape, batch.nbytes, offset=2**63 - 1),
    ):
        code, text = refusal(client.infer, "tiny", [sent])
        assert code == "INVALID_ARGUMENT" and "'image'" in text
    assert refusal(client.infer, "tiny", [shared_input("nobody's", batch.shape, batch.nbytes)])[0] == "NOT_FOUND"
    wanted = triton.InferRequestedOutput("logits")
    wanted.set_shared_memory(name, 4)
    code, text = refusal(client.infer, "tiny", [whole], outputs=[wanted])
    assert code == "INVALID_ARGUMENT" and "logits" in text
    wanted.set_shared_memory("nobody's", 64)
    assert refusal(client.infer, "tiny", [whole], outputs=[wanted])[0] == "NOT_FOUND"
    too_large = refusal(client.register_system_shared_memory, "other", name, batch.nbytes + 4097)
    assert too_large[0] == "INVALID_ARGUMENT"


def test_memory_that_is_cut_is_an_error_and_not_the_end(client, region, tiny):
    batch = tiny.random_batch(1, seed=4)
    name, handle = region(batch.nbytes)
    shm.set_shared_memory_region(handle, [batch])
    os.truncate(f"/dev/shm/{name}", 16)
    code, _ = refusal(client.infer, "tiny", [shared_input(name, batch.shape, batch.nbytes)])
    assert code == "FAILED_PRECONDITION"
    assert client.is_server_live()

"""Tests system shared memory over HTTP with Triton's client."""

import os
import uuid

import numpy
import pytest
import tritonclient.http as triton
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException, serialize_byte_tensor

from harness import Daemon
from pictures import encoded, pixels
from tiny_models import assert_close


@pytest.fixture(scope="module")
def client(repository, tmp_path_factory):
    with Daemon(repository, "--allow-shared-memory", log_folder=tmp_path_factory.mktemp("log")) as running:
        with triton.InferenceServerClient(f"127.0.0.1:{running.await_ready().http_port}") as made:
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


def refusal(call, *arguments, **named):
    """(status, message) of a call that must fail."""
    with pytest.raises(InferenceServerException) as error:
        call(*arguments, **named)
    return int(error.value.status()), error.value.message()


def shared_input(name, shape, size, datatype="FP32", offset=0):
    made = triton.InferInput("image", list(shape), datatype)
    made.set_shared_memory(name, size, offset)
    return made


def shared_output(name, size, offset=0):
    made = triton.InferRequestedOutput("logits")
    made.set_shared_memory(name, size, offset)
    return made


def test_it_is_advertised(client):
    assert "system_shared_memory" in client.get_server_metadata()["extensions"]


def test_tensors_in_logits_out(client, region, tiny):
    batch = tiny.random_batch(3, seed=1)
    expected = tiny.logits(batch)
    name, handle = region(batch.nbytes + 256)
    shm.set_shared_memory_region(handle, [batch], offset=64)
    out, out_handle = region(1024)
    answer = client.infer(
        "tiny",
        [shared_input(name, batch.shape, batch.nbytes, offset=64)],
        outputs=[shared_output(out, expected.nbytes + 8, 128)],
    )
    assert answer.get_output("logits") == {"name": "logits", "datatype": "FP32", "shape": list(expected.shape)}
    got = shm.get_contents_as_numpy(out_handle, numpy.float32, expected.shape, offset=128)
    assert_close(got, expected)


def test_one_end_alone_may_be_shared(client, region, tiny):
    batch = tiny.random_batch(1, seed=2)
    name, handle = region(batch.nbytes)
    shm.set_shared_memory_region(handle, [batch])
    for binary in (True, False):
        wanted = [triton.InferRequestedOutput("logits", binary_data=binary)]
        answer = client.infer("tiny", [shared_input(name, batch.shape, batch.nbytes)], outputs=wanted)
        assert_close(answer.as_numpy("logits"), tiny.logits(batch))
    sent = triton.InferInput("image", list(batch.shape), "FP32")
    sent.set_data_from_numpy(batch)
    client.infer("tiny", [sent], outputs=[shared_output(name, 4 * tiny.classes)])
    assert_close(shm.get_contents_as_numpy(handle, numpy.float32, [1, tiny.classes]), tiny.logits(batch))


def test_pictures(client, region, tiny):
    """BYTES from shared memory."""
    picture = pixels(3, tiny.resize, tiny.resize)
    elements = numpy.array([encoded(picture)], dtype=numpy.object_)
    size = 4 + len(elements[0])
    name, handle = region(size)
    shm.set_shared_memory_region(handle, [serialize_byte_tensor(elements)])
    answer = client.infer("tiny", [shared_input(name, [1, 1], size, "BYTES")])
    assert_close(answer.as_numpy("logits"), tiny.logits(tiny.prepared([picture])))


def test_status_and_unregister(client, region):
    first, _ = region(64)
    second, _ = region(128)
    told = lambda *name: sorted(client.get_system_shared_memory_status(*name), key=lambda one: one["byte_size"])
    assert told() == [
        {"name": first, "key": first, "offset": 0, "byte_size": 64},
        {"name": second, "key": second, "offset": 0, "byte_size": 128},
    ]
    assert [one["name"] for one in told(first)] == [first]
    assert refusal(client.register_system_shared_memory, first, first, 64)[0] == 409
    client.unregister_system_shared_memory(first)
    assert [one["name"] for one in told()] == [second]
    assert refusal(client.get_system_shared_memory_status, first)[0] == 404
    client.unregister_system_shared_memory()
    assert told() == []


def test_keys_outside_are_refused(client, tmp_path):
    (tmp_path / "secret").write_bytes(b"x" * 64)
    name = f"saccade_test_{uuid.uuid4().hex}"
    os.symlink(tmp_path / "secret", f"/dev/shm/{name}")
    try:
        for key in (str(tmp_path / "secret"), "../../etc/passwd", "/../etc/passwd", "..", "", f"/{name}"):
            assert refusal(client.register_system_shared_memory, "r", key, 8)[0] == 400, key
    finally:
        os.unlink(f"/dev/shm/{name}")
    assert refusal(client.register_system_shared_memory, "r", "/saccade_no_such_key", 8)[0] == 404
    assert refusal(client.register_system_shared_memory, "r", "/key", -8)[0] == 400
    assert refusal(client.register_system_shared_memory, "r", 7, 8)[0] == 400
    assert client.get_system_shared_memory_status() == []


def test_ranges_outside_are_refused(client, region, tiny):
    batch = tiny.random_batch(1, seed=4)
    name, handle = region(batch.nbytes)
    shm.set_shared_memory_region(handle, [batch])
    whole = shared_input(name, batch.shape, batch.nbytes)
    for sent in (
        shared_input(name, batch.shape, batch.nbytes, offset=4),
        shared_input(name, batch.shape, batch.nbytes - 4),
        shared_input(name, batch.shape, 2**62),
        shared_input(name, batch.shape, batch.nbytes, offset=2**64 - 1),
        shared_input(name, batch.shape, -1),
    ):
        status, text = refusal(client.infer, "tiny", [sent])
        assert status == 400 and "'image'" in text
    assert refusal(client.infer, "tiny", [shared_input("nobody's", batch.shape, batch.nbytes)])[0] == 404
    status, text = refusal(client.infer, "tiny", [whole], outputs=[shared_output(name, 4)])
    assert status == 400 and "logits" in text
    assert refusal(client.infer, "tiny", [whole], outputs=[shared_output("nobody's", 64)])[0] == 404


def test_memory_that_is_cut_is_an_error_and_not_the_end(client, region, tiny):
    batch = tiny.random_batch(1, seed=4)
    name, handle = region(batch.nbytes)
    shm.set_shared_memory_region(handle, [batch])
    os.truncate(f"/dev/shm/{name}", 16)
    # FAILED_PRECONDITION.
    assert refusal(client.infer, "tiny", [shared_input(name, batch.shape, batch.nbytes)])[0] == 400
    assert client.is_server_live()

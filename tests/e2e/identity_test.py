"""Tests the identity model: it returns its input, and fails as its options say."""

import grpc
import numpy
import pytest
import tritonclient.http as triton

from harness import Daemon, eventually, run_to_end
from messages import infer_request, message, predict_request
from tiny_models import Identity, write_model

STALL_SECONDS = 1


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    root = tmp_path_factory.mktemp("identity")
    write_model(root, "identity", Identity(), max_batch_size=4)
    drills = Identity(fail_at="13", hang_at="99", hang_seconds="4")
    write_model(root, "drills", drills, max_batch_size=4, max_queue_delay_microseconds=300_000)
    log = tmp_path_factory.mktemp("log")
    with Daemon(root, f"--stall-seconds={STALL_SECONDS}", "--allow-drills", log_folder=log) as running:
        yield running.await_ready()


def values(*shape, first=None):
    made = numpy.random.default_rng(len(shape)).standard_normal(shape).astype(numpy.float32)
    if first is not None:
        made.reshape(-1)[0] = first
    return made


def call(inference, sent, model="identity"):
    return inference.model_infer.future(infer_request(model, sent.shape, sent.tobytes()))


@pytest.mark.parametrize("shape", [(1, 1, 1, 1, 64), (1, 1, 3, 100, 125), (1, 1, 2, 1000, 1000), (3, 1, 4, 50, 70)])
def test_every_bit_comes_back(daemon, shape):
    sent = values(*shape)
    with daemon.inference() as inference:
        answer = call(inference, sent).result()
    assert answer.outputs[0].name == "restored"
    assert list(answer.outputs[0].shape) == [shape[0], *shape[2:]]
    assert answer.raw_output_contents[0] == sent.tobytes()


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("shape", [(1, 1, 1, 1, 64), (2, 1, 3, 50, 70), (1, 1, 2, 200, 300)])
def test_every_bit_comes_back_over_http(daemon, shape, binary):
    sent = values(*shape)
    tensor = triton.InferInput("image", shape, "FP32")
    tensor.set_data_from_numpy(sent, binary_data=binary)
    with triton.InferenceServerClient(f"127.0.0.1:{daemon.http_port}") as client:
        answer = client.infer("identity", [tensor], outputs=[triton.InferRequestedOutput("restored", binary_data=binary)])
    assert answer.as_numpy("restored").tobytes() == sent.tobytes()


def test_the_typed_api_gives_it_back_too(daemon):
    sent = values(2, 30, 40)
    shape = message("saccade.v1.VolumeShape")(depth=2, height=30, width=40, type=3)
    volume = message("saccade.v1.Volume")(raw={"shape": shape, "voxels": sent.tobytes()})
    with daemon.vision() as vision:
        answer = vision.predict(predict_request(model="identity", volume=volume))
    assert answer.restoration.voxels == sent.tobytes()


def test_a_bad_member_fails_alone(daemon):
    good = [values(1, 1, 2, 3, 4, first=first) for first in (1, 2)]
    bad = values(1, 1, 2, 3, 4, first=13)
    with daemon.inference() as inference:
        calls = [call(inference, sent, "drills") for sent in (good[0], bad, good[1])]
        for sent, answered in zip(good, (calls[0], calls[2])):
            assert answered.result().raw_output_contents[0] == sent.tobytes()
        with pytest.raises(grpc.RpcError, match="failure triggered by the option fail_at"):
            calls[1].result()


def test_an_instance_that_hangs_is_noticed(daemon):
    assert daemon.get("/v2/health/live")[0] == 200
    with daemon.inference() as inference:
        hanging = call(inference, values(1, 1, 1, 1, 4, first=99), "drills")
        eventually(lambda: daemon.get("/v2/health/live")[0] != 200, "the hung pass was noticed")
        # The hang is limited: the pass ends, and the daemon recovers.
        assert hanging.result().outputs[0].name == "restored"
    eventually(lambda: daemon.get("/v2/health/live")[0] == 200, "the daemon was alive again")


def test_a_drill_needs_the_flag(tmp_path):
    write_model(tmp_path, "drill", Identity(lose_device_at="7"), max_batch_size=1)
    ports = [f"--{name}-port=0" for name in ("grpc", "http", "metrics")]
    ended = run_to_end("--host=127.0.0.1", f"--model-repository={tmp_path}", *ports)
    assert ended.returncode == 1
    assert "option lose_device_at" in ended.stderr and "start the daemon with --allow-drills" in ended.stderr

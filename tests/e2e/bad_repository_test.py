"""Models that cannot be loaded: told by name and reason, and the others are served all the same."""

import json
import struct

import grpc
import pytest
import safetensors.torch
import torch

import pictures
from harness import Daemon, eventually, run_to_end
from messages import get_model_request, message, predict_request
from tiny_models import TinyModel, write_model


def read(path):
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def write(path, header, body):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def tensors(header):
    """Names by where they lie in the file."""
    named = [name for name in header if name != "__metadata__"]
    return sorted(named, key=lambda name: header[name]["data_offsets"])


def cut_short(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    return ["weights.safetensors"]


def cut_in_the_header(path):
    path.write_bytes(path.read_bytes()[:100])
    return ["header"]


def a_header_of_exabytes(path):
    path.write_bytes(struct.pack("<Q", 2**60) + path.read_bytes()[8:])
    return ["header"]


def empty(path):
    path.write_bytes(b"")
    return ["weights.safetensors"]


def overlapping(path):
    header, body = read(path)
    first, second = [name for name in tensors(header) if header[name]["dtype"] == "F32"][:2]
    start = header[first]["data_offsets"][0]
    begin, end = header[second]["data_offsets"]
    header[second]["data_offsets"] = [start, start + end - begin]
    write(path, header, body)
    return [second]


def out_of_range(path):
    header, body = read(path)
    last = tensors(header)[-1]
    begin, end = header[last]["data_offsets"]
    header[last]["data_offsets"] = [begin + 2**40, end + 2**40]
    write(path, header, body)
    return [last]


def negative_length(path):
    header, body = read(path)
    last = tensors(header)[-1]
    begin, end = header[last]["data_offsets"]
    header[last]["data_offsets"] = [end, begin - 4]
    write(path, header, body)
    return [last]


def missing_tensor(path):
    state = safetensors.torch.load_file(path)
    del state["classifier.weight"]
    safetensors.torch.save_file(state, path)
    return ["classifier.weight"]


def wrong_shape(path):
    state = safetensors.torch.load_file(path)
    state["classifier.weight"] = state["classifier.weight"][:, :-1].contiguous()
    safetensors.torch.save_file(state, path)
    return ["classifier.weight", "320", "319"]


def wrong_dtype(path):
    state = safetensors.torch.load_file(path)
    state["classifier.weight"] = state["classifier.weight"].to(torch.int32)
    safetensors.torch.save_file(state, path)
    return ["classifier.weight", "I32"]


def surplus_tensor(path):
    state = safetensors.torch.load_file(path)
    safetensors.torch.save_file({**state, "nobody.knows.me": torch.zeros(1)}, path)
    return ["nobody.knows.me"]


def no_weights(path):
    path.unlink()
    return ["weights.safetensors"]


def link_out_of_the_repository(path):
    outside = path.parents[3] / "outside.safetensors"
    path.rename(outside)
    path.symlink_to(outside)
    return ["symbolic link"]


def unknown_architecture(path):
    config = path.parents[1] / "config.pbtxt"
    config.write_text(config.read_text().replace('"sanet"', '"resnet_9000"'))
    return ["resnet_9000", "sanet"]


def unknown_option(path):
    config = path.parents[1] / "config.pbtxt"
    config.write_text(config.read_text() + 'parameters { key: "colour" value { string_value: "blue" } }\n')
    return ["colour"]


def unknown_field(path):
    config = path.parents[1] / "config.pbtxt"
    config.write_text(config.read_text() + "no_such_field: 1\n")
    return ["config.pbtxt", "no_such_field"]


DAMAGES = [
    cut_short,
    cut_in_the_header,
    a_header_of_exabytes,
    empty,
    overlapping,
    out_of_range,
    negative_length,
    missing_tensor,
    wrong_shape,
    wrong_dtype,
    surplus_tensor,
    no_weights,
    link_out_of_the_repository,
    unknown_architecture,
    unknown_option,
    unknown_field,
]


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """(repository, model -> words that its reason must hold): one sound model among all the broken ones."""
    root = tmp_path_factory.mktemp("damaged") / "models"
    network = TinyModel(classes=5, seed=3)
    write_model(root, "sound", network)
    return root, {damage.__name__: damage(write_model(root, damage.__name__, network)) for damage in DAMAGES}


@pytest.fixture(scope="module")
def daemon(damaged, tmp_path_factory):
    with Daemon(damaged[0], "--exit-on-error=false", log_folder=tmp_path_factory.mktemp("log")) as running:
        running.await_ports()
        loading = message("saccade.v1.Model").DESCRIPTOR.enum_types_by_name["State"].values_by_name["LOADING"].number
        with running.vision() as vision:
            listing = message("saccade.v1.ListModelsRequest")()
            eventually(
                lambda: all(model.state != loading for model in vision.list_models(listing).models),
                "no model is loading any more",
            )
        yield running


@pytest.mark.parametrize("name", [damage.__name__ for damage in DAMAGES])
def test_a_broken_model_tells_why(daemon, damaged, name):
    states = message("saccade.v1.Model").DESCRIPTOR.enum_types_by_name["State"].values_by_name
    with daemon.vision() as vision:
        model = vision.get_model(get_model_request(name))
        assert model.state == states["UNAVAILABLE"].number
        for word in damaged[1][name]:
            assert word in model.reason, f"{word!r} is not in {model.reason!r}"
        with pytest.raises(grpc.RpcError) as error:
            vision.predict(predict_request(model=name, encoded=pictures.encoded(pictures.pixels(0))))
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    assert name in error.value.details()
    assert any(name in line and damaged[1][name][0] in line for line in daemon.log().splitlines())
    with daemon.inference() as inference:
        ready = inference.model_ready(message("inference.ModelReadyRequest")(name=name))
    assert not ready.ready


def test_the_sound_model_is_served(daemon):
    with daemon.vision() as vision:
        vision.predict(predict_request(model="sound", encoded=pictures.encoded(pictures.pixels(0))))
    metrics = daemon.metrics()
    assert metrics.total("saccade_model_ready", model="sound") == 1
    assert metrics.total("saccade_model_ready") == 1


def test_by_default_a_broken_model_ends_the_daemon(tmp_path):
    network = TinyModel(classes=5, seed=3)
    write_model(tmp_path, "sound", network)
    words = missing_tensor(write_model(tmp_path, "broken", network))
    ports = [f"--{name}-port=0" for name in ("grpc", "http", "metrics")]
    ended = run_to_end("--host=127.0.0.1", f"--model-repository={tmp_path}", *ports)
    assert ended.returncode == 1
    assert "broken" in ended.stderr and words[0] in ended.stderr


def test_an_empty_repository_is_served(start, tmp_path):
    (tmp_path / "models").mkdir()
    daemon = start(tmp_path / "models").await_ready()
    with daemon.vision() as vision:
        assert not vision.list_models(message("saccade.v1.ListModelsRequest")()).models
        with pytest.raises(grpc.RpcError) as error:
            vision.predict(predict_request(model="any", encoded=b"x"))
    assert error.value.code() == grpc.StatusCode.NOT_FOUND

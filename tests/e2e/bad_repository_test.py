"""Tests models that cannot be loaded: they are listed with name and reason, and the other models are served."""

import grpc
import pytest

import pictures
from damages import DAMAGES, missing_tensor
from harness import Daemon, eventually, run_to_end
from messages import get_model_request, message, predict_request
from tiny_models import TinyModel, write_model


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """(repository, words of the expected reason by model): one valid model among broken ones."""
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
        found = []

        def is_not_tried_just_now():
            found.append(vision.get_model(get_model_request(name)))
            return found[-1].state != states["LOADING"].number

        # The daemon tries to load it again now and then.
        eventually(is_not_tried_just_now, f"{name} is not being loaded")
        model = found[-1]
        assert model.state == states["UNAVAILABLE"].number
        for word in damaged[1][name]:
            assert word in model.reason, f"{word!r} is not in {model.reason!r}"
        with pytest.raises(grpc.RpcError) as error:
            vision.predict(predict_request(model=name, encoded=pictures.encoded(pictures.pixels(0))))
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    assert name in error.value.details()
    told = lambda: any(name in line and damaged[1][name][0] in line for line in daemon.log_lines())
    eventually(told, "the log tells why")
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

"""Compares the attention maps of the served layers with those of the same layers in PyTorch."""

import io
import threading

import grpc
import numpy
import pytest
import torch
from PIL import Image

import pictures
from harness import Daemon
from messages import get_model_request, message, predict_request
from models.reference.kronecker_attention import averages
from tiny_models import MEAN, STD, TinyTask, tiny_detector, tiny_actions, tiny_segmenter, tiny_stereo, write_model

# PNGs have 255 steps from the minimum to the maximum; float32 differs by 1e-4 of the maximum.
STEP = 0.5 / 255 + 1e-4
# Width and height of pictures that are neither scaled nor padded.
WIDE, TALL = (96, 64), (64, 96)


def tiny_kanet(kind):
    return TinyTask(kind, [f"class {index}" for index in range(4)], seed=8, width="0.5", input_size="56",
                    batch=torch.randn(8, 3, 56, 56, generator=torch.Generator().manual_seed(8)))


def tiny_expatt():
    return TinyTask("expatt_mobilenetv2", [f"class {index}" for index in range(4)], seed=9, width="0.5",
                    input_size="64", batch=torch.randn(8, 3, 64, 64, generator=torch.Generator().manual_seed(9)))


MODELS = {
    "detector": tiny_detector,
    "segmenter": tiny_segmenter,
    "stereo": tiny_stereo,
    "clips": tiny_actions,
    "kv": lambda: tiny_kanet("kanet_kv"),
    "qkv": lambda: tiny_kanet("kanet_qkv"),
    "expatt": tiny_expatt,
    "plain": lambda: tiny_detector(attention="none"),
}


@pytest.fixture(scope="module")
def networks():
    return {name: make() for name, make in MODELS.items()}


@pytest.fixture(scope="module")
def daemon(networks, tmp_path_factory):
    root = tmp_path_factory.mktemp("explained")
    for name, network in networks.items():
        write_model(root, name, network, max_batch_size=4, max_queue_delay_microseconds=50_000)
    with Daemon(root, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture(scope="module")
def vision(daemon):
    with daemon.vision() as made:
        yield made


def explain(layer="", **fields):
    return message("saccade.v1.Explain")(layer=layer, **fields)


def ask(vision, model, seed=1, size=WIDE, layer="", max_maps=64):
    encoded = pictures.encoded(pictures.pixels(seed, *size))
    return vision.predict(predict_request(model=model, encoded=encoded, explain=explain(layer, max_maps=max_maps)))


def layers_of(vision, model):
    return list(vision.get_model(get_model_request(model)).attention_layers)


def values(map_):
    """The map's values [height, width], converted back from grey."""
    grey = numpy.asarray(Image.open(io.BytesIO(map_.png)))
    assert grey.dtype == numpy.uint8 and grey.shape == (map_.height, map_.width)
    assert grey.min() == 0 and (grey.max() == 255 or map_.min == map_.max)
    return map_.min + grey / 255 * (map_.max - map_.min)


def assert_map(map_, expected):
    found, expected = values(map_), expected.detach().numpy()
    assert found.shape == expected.shape
    bound = STEP * (expected.max() - expected.min()) + 1e-4 * abs(expected).max()
    assert abs(found - expected).max() <= bound
    assert map_.max == pytest.approx(expected.max(), rel=1e-3)


def imagenet(seed, size):
    pixels = pictures.pixels(seed, *size).transpose(2, 0, 1).astype(numpy.float32)
    return torch.from_numpy((pixels / 255 - MEAN) / STD).unsqueeze(0)


def input_of(network, layer, run):
    """The input of the layer when `run` runs the network."""
    seen = []
    hook = network.get_submodule(layer).register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        run()
    hook.remove()
    return seen[0]


@pytest.mark.parametrize("size", [WIDE, TALL])
def test_efficient_attentions_global_maps(vision, networks, size):
    network = networks["detector"].network
    layers = layers_of(vision, "detector")
    assert layers[:2] == ["backbone.attention.res3", "backbone.attention.res4"]
    assert layers[-1] == "backbone.attention.fpn1"
    for layer in ["backbone.attention.res3", "backbone.attention.res4", "backbone.attention.fpn5", ""]:
        answer = ask(vision, "detector", 1, size, layer)
        explanation = answer.explanation
        layer = layer or layers[-1]
        assert explanation.layer == layer
        module = network.get_submodule(layer)
        x = input_of(network, layer, lambda: network.backbone(imagenet(1, size)))
        with torch.no_grad():
            keys = module.key(x)[0].flatten(1).softmax(dim=1).unflatten(1, x.shape[2:])
        assert explanation.available == len(keys)
        assert [map_.name for map_ in explanation.maps] == [f"key {index}" for index in range(len(keys))][:64]
        for map_, expected in zip(explanation.maps, keys):
            assert_map(map_, expected)
        assert answer.WhichOneof("result") == "detections"


def kronecker_weights(module, x):
    """The weights of the columns and of the rows for the mean position, for each head."""
    query, key = module.query(x) if hasattr(module, "query") else x, module.key(x) if hasattr(module, "key") else x
    height, width = x.shape[2:]
    query = averages(query) if module.kind == "qkv" else query.flatten(2)
    query, key = (y.unflatten(1, (module.heads, -1)) for y in (query, averages(key)))
    answered = module.coefficients(key.transpose(2, 3) @ query).softmax(dim=2)[0]
    if module.kind == "qkv":
        mean = (answered[:, :, :width].mean(dim=2) + answered[:, :, width:].mean(dim=2)) / 2
    else:
        mean = answered.mean(dim=2)
    return mean.split([width, height], dim=1)


def assert_kronecker(explanation, module, x):
    with torch.no_grad():
        columns, rows = kronecker_weights(module, x)
    height, width = x.shape[2:]
    names = [f"head {head}{what}" for head in range(module.heads) for what in ("", " columns", " rows")]
    assert [map_.name for map_ in explanation.maps] == names
    for head in range(module.heads):
        both, across, down = explanation.maps[3 * head : 3 * head + 3]
        assert_map(across, columns[head : head + 1])
        assert_map(down, rows[head].unsqueeze(1))
        assert_map(both, columns[head] / height + rows[head].unsqueeze(1) / width)


@pytest.mark.parametrize("model", ["kv", "qkv"])
def test_kronecker_attentions_rows_and_columns(vision, networks, model):
    network = networks[model].network
    layers = layers_of(vision, model)
    assert layers
    picture = pictures.pixels(3, 64, 64)
    sent = pictures.encoded(picture)
    cropped = (picture[4:60, 4:60].transpose(2, 0, 1).astype(numpy.float32) / 255 - MEAN) / STD
    batch = torch.from_numpy(cropped).unsqueeze(0)
    for layer in {layers[0], layers[-1]}:
        answer = vision.predict(predict_request(model=model, encoded=sent, explain=explain(layer, max_maps=64)))
        assert answer.explanation.layer == layer
        x = input_of(network, layer, lambda: network(batch))
        assert_kronecker(answer.explanation, network.get_submodule(layer), x)


def test_a_segmenters_kronecker_attention(vision, networks):
    network = networks["segmenter"].network
    assert layers_of(vision, "segmenter") == ["layer5.attention"]
    pixels = pictures.pixels(1, *WIDE)[:, :, ::-1].transpose(2, 0, 1).astype(numpy.float32)
    mean = numpy.array([104.008, 116.669, 122.675], numpy.float32)[:, None, None]
    batch = torch.from_numpy(pixels - mean).unsqueeze(0)
    x = input_of(network, "layer5.attention", lambda: network(batch))
    answer = ask(vision, "segmenter")
    assert_kronecker(answer.explanation, network.get_submodule("layer5.attention"), x)
    assert answer.WhichOneof("result") == "segmentation"


def test_pairs_and_clips(vision):
    one = lambda seed: {"encoded": pictures.encoded(pictures.pixels(seed, 96, 64))}
    pair = message("saccade.v1.StereoPair")(left=one(1), right=one(2))
    answer = vision.predict(predict_request(model="stereo", stereo=pair, explain=explain()))
    assert (answer.explanation.layer, len(answer.explanation.maps)) == ("attention", 16)
    assert (answer.explanation.maps[0].width, answer.explanation.maps[0].height) == (24, 16)
    assert values(answer.explanation.maps[0]).sum() == pytest.approx(1, abs=0.05)

    frames = message("saccade.v1.Frames")(pictures=[one(seed) for seed in range(8)], frames_per_second=10)
    clip = message("saccade.v1.Clip")(frames=frames)
    for layer in ("", "attention.res3"):
        answer = vision.predict(predict_request(model="clips", clip=clip, explain=explain(layer, max_maps=2)))
        # Attention after res4 sees proposals, of which there are no maps.
        assert answer.explanation.layer == "attention.res3"
        assert len(answer.explanation.maps) == 2
        assert values(answer.explanation.maps[1]).sum() == pytest.approx(1, abs=0.05)


def test_an_explicit_map_is_the_same_for_every_picture(vision):
    layer = layers_of(vision, "expatt")[-1]
    first, second = (ask(vision, "expatt", seed, (64, 64)).explanation for seed in (1, 2))
    assert first == second
    assert (first.layer, [map_.name for map_ in first.maps]) == (layer, ["centre"])


def test_a_layer_that_is_none_is_refused_with_those_that_are(vision):
    for model, layer, words in (
        ("detector", "backbone.attention.res9", "backbone.attention.res3, backbone.attention.res4, "),
        ("segmenter", "x", "layer5.attention"),
        ("plain", "", "no attention"),
    ):
        with pytest.raises(grpc.RpcError) as error:
            ask(vision, model, layer=layer)
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert words in error.value.details()
    with pytest.raises(grpc.RpcError) as error:
        ask(vision, "detector", max_maps=65)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "explain.max_maps" in error.value.details()


def test_who_does_not_ask_gets_none(vision):
    encoded = pictures.encoded(pictures.pixels(1, *WIDE))
    assert not vision.predict(predict_request(model="detector", encoded=encoded)).HasField("explanation")
    asked = vision.predict(predict_request(model="detector", encoded=encoded, explain=explain()))
    assert len(asked.explanation.maps) == 16
    few = vision.predict(predict_request(model="detector", encoded=encoded, explain=explain(max_maps=1)))
    first, *others = few.explanation.maps
    assert not others and first.name == "key 0" and few.explanation.available == asked.explanation.available
    assert abs(values(first) - values(asked.explanation.maps[0])).max() <= 2 * STEP * first.max


def test_neither_maps_nor_answers_depend_on_the_batch_around(daemon, vision):
    """Eight concurrent requests; some ask for one layer, some for another, some for none."""
    wishes = [None, "backbone.attention.res3", "", None, "backbone.attention.res4", None, "", "backbone.attention.res3"]

    def request(index):
        encoded = pictures.encoded(pictures.pixels(index, *WIDE))
        wish = {} if wishes[index] is None else {"explain": explain(wishes[index])}
        return predict_request(model="detector", encoded=encoded, **wish)

    alone = [vision.predict(request(index)) for index in range(8)]
    together = [None] * 8
    start = threading.Barrier(8)

    def run(index):
        start.wait()
        together[index] = vision.predict(request(index))

    threads = [threading.Thread(target=run, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, together):
        assert one.detections == other.detections
        assert one.explanation == other.explanation

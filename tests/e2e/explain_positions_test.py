"""Compares the attention maps of single positions, for regular and global self-attention, with PyTorch, which computes
the full matrix of position pairs."""

import grpc
import numpy
import pytest
import torch

import pictures
from explain_test import MEAN, STD, WIDE, assert_map, explain, input_of, layers_of
from harness import Daemon
from messages import get_model_request, message, predict_request
from tiny_models import TinyTask, tiny_segmenter, write_model

CHOSEN = [(0, 0), (0.6, 0.3), (1, 1)]
LABELS = [f"class {index}" for index in range(4)]


def classifier(kind, **options):
    batch = torch.randn(8, 3, 56, 56, generator=torch.Generator().manual_seed(8))
    return TinyTask(kind, LABELS, seed=8, input_size="56", batch=batch, **options)


def gsa(content):
    made = classifier("gsa_resnet50", width="0.25", blocks="1,1,1,1", content=content)
    with torch.no_grad():
        for name, parameter in made.network.named_parameters():
            # Untrained queries make the softmaxes so steep that float32's rounding errors exceed the tolerance.
            if name.endswith("query.weight"):
                parameter.mul_(0.1)
    return made


def segmenter(head):
    return TinyTask("deeplabv2_kao_kv", LABELS, seed=4, width="0.125", blocks="1,1,1,1", head_channels="16", head=head,
                    heads="2")


MODELS = {
    "softmax": lambda: classifier("attnnet", width="0.5"),
    "pool": lambda: classifier("attnnet_pool", width="0.5"),
    "1n": lambda: classifier("attnnet_1n", width="0.5"),
    "segmenter": lambda: segmenter("attention"),
    "pooled_segmenter": lambda: segmenter("attention_pool"),
    "gsa_global": lambda: gsa("global"),
    "gsa_axial": lambda: gsa("axial"),
    "gsa_none": lambda: gsa("none"),
    "kronecker": tiny_segmenter,
}


@pytest.fixture(scope="module")
def networks():
    return {name: make() for name, make in MODELS.items()}


@pytest.fixture(scope="module")
def vision(networks, tmp_path_factory):
    root = tmp_path_factory.mktemp("positions")
    for name, network in networks.items():
        write_model(root, name, network, max_batch_size=2)
    with Daemon(root, "--warm-up-seconds=0", log_folder=tmp_path_factory.mktemp("log")) as running:
        with running.await_ready().vision() as made:
            yield made


def positions(chosen):
    return [message("saccade.v1.Position")(x=x, y=y) for x, y in chosen]


def cells(x):
    height, width = x.shape[2:]
    return [(min(int(down * height), height - 1), min(int(across * width), width - 1)) for across, down in CHOSEN]


def explained(vision, model, size, layer, **fields):
    encoded = pictures.encoded(pictures.pixels(3, *size))
    wish = explain(layer, **{"positions": positions(CHOSEN), "max_maps": 64, **fields})
    return vision.predict(predict_request(model=model, encoded=encoded, explain=wish)).explanation


def crop():
    picture = pictures.pixels(3, 64, 64)[4:60, 4:60].transpose(2, 0, 1).astype(numpy.float32)
    return torch.from_numpy((picture / 255 - MEAN) / STD).unsqueeze(0)


def blue_first():
    pixels = pictures.pixels(3, *WIDE)[:, :, ::-1].transpose(2, 0, 1).astype(numpy.float32)
    means = numpy.array([104.008, 116.669, 122.675], numpy.float32)[:, None, None]
    return torch.from_numpy(pixels - means).unsqueeze(0)


def pair_weights(module, x):
    """Attention weights [heads, height, width, queries] of the keys."""
    read = torch.nn.functional.max_pool2d(x, 2, ceil_mode=True) if module.kind == "pool" else x
    query = module.query(x) if hasattr(module, "query") else x
    key = module.key(read) if hasattr(module, "key") else read
    shape = key.shape[2:]
    query, key = (y.flatten(2).unflatten(1, (module.heads, -1)) for y in (query, key))
    similar = key.transpose(2, 3) @ query
    weights = similar / key.shape[3] if module.kind == "1n" else module.coefficients(similar).softmax(dim=2)
    return weights[0].unflatten(1, shape)


@pytest.mark.parametrize("model", ["softmax", "pool", "1n", "segmenter", "pooled_segmenter"])
def test_regular_attention(vision, networks, model):
    network = networks[model].network
    layers = layers_of(vision, model)
    assert layers and vision.get_model(get_model_request(model)).attention_by_position
    size, batch = (WIDE, blue_first()) if "segmenter" in model else ((64, 64), crop())
    for layer in {layers[0], layers[-1]}:
        module = network.get_submodule(layer)
        x = input_of(network, layer, lambda: network(batch))
        explanation = explained(vision, model, size, layer)
        with torch.no_grad():
            weights = pair_weights(module, x)
        names = [f"position {position} head {head}" for position in range(3) for head in range(module.heads)]
        assert [map_.name for map_ in explanation.maps] == names and explanation.available == len(names)
        maps = iter(explanation.maps)
        for row, column in cells(x):
            for head in range(module.heads):
                assert_map(next(maps), weights[head, :, :, row * x.shape[3] + column])


def axial_weights(module, query, key, embedding):
    """Weights [heads, own, other, lines] along the columns, as in GlobalSelfAttention.along_columns."""
    height = query.shape[2]
    offsets = torch.arange(height) - torch.arange(height)[:, None] + module.side - 1
    weights = torch.einsum("ncyx,yic->nyix", query, embedding[offsets])
    if module.content != "axial":
        return weights
    return (weights + torch.einsum("ncyx,ncix->nyix", query, key)).softmax(dim=2)


@pytest.mark.parametrize("content", ["global", "axial", "none"])
def test_global_self_attention(vision, networks, content):
    model = f"gsa_{content}"
    network = networks[model].network
    layers = layers_of(vision, model)
    assert layers[0] == "layer1.0.conv2" and vision.get_model(get_model_request(model)).attention_by_position
    for layer in {layers[0], layers[-1]}:
        module = network.get_submodule(layer)
        x = input_of(network, layer, lambda: network(crop()))
        explanation = explained(vision, model, (64, 64), layer)
        with torch.no_grad():
            query = module.query(x)[0].unflatten(0, (module.heads, -1))
            key = module.key(x)[0].unflatten(0, (module.heads, -1)) if content != "none" else None
            columns = axial_weights(module, query, key, module.column_embedding)
            turned = [y if y is None else y.transpose(2, 3) for y in (query, key)]
            rows = axial_weights(module, *turned, module.row_embedding)
        kinds = (["content"] if content == "global" else []) + ["axial", "column", "row"]
        assert explanation.available == 3 * module.heads * len(kinds)
        wanted = [(cell, head, kind) for cell in range(3) for head in range(module.heads) for kind in kinds]
        assert len(explanation.maps) == min(64, len(wanted))
        for map_, (cell, head, kind) in zip(explanation.maps, wanted):
            assert map_.name == f"position {cell} head {head} {kind}"
            row, column = cells(x)[cell]
            along = rows[head, column, :, row]
            if kind == "content":
                gathered = key[head].flatten(1).softmax(dim=1).view_as(key[head])
                expected = torch.einsum("cyx,c->yx", gathered, query[head, :, row, column])
            elif kind == "axial":
                expected = columns[head, row] * along
            elif kind == "column":
                expected = columns[head, row, :, column].unsqueeze(1)
            else:
                expected = along.unsqueeze(0)
            assert_map(map_, expected)


def test_without_positions_the_middle_one_is_shown(vision):
    middle = explained(vision, "softmax", (64, 64), "", positions=positions([(0.5, 0.5)]))
    assert explained(vision, "softmax", (64, 64), "", positions=[]) == middle
    assert {map_.name.split(" head")[0] for map_ in middle.maps} == {"position 0"}


@pytest.mark.parametrize(
    "model, fields, words",
    [
        ("softmax", {"positions": positions([(0.5, 1.5)])}, "explain.positions[0]"),
        ("softmax", {"positions": positions([(0, 0), (float("nan"), 0)])}, "explain.positions[1]"),
        ("softmax", {"positions": positions([(0, 0)] * 17)}, "at most 16"),
        ("kronecker", {}, "does not have; omit them"),
    ],
)
def test_positions_that_are_none(vision, model, fields, words):
    with pytest.raises(grpc.RpcError) as error:
        explained(vision, model, WIDE, "", **fields)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert words in error.value.details()

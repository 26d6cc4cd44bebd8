"""EA Mask R-CNN: compares the twin with torchvision, and the served network with both."""

import functools
import pathlib
import re

import pytest
import torch
from torchvision.models.detection import maskrcnn_resnet50_fpn
from torchvision.ops import box_iou

from models.reference import build
from models.reference.detector_weights import agree, pictures, spread_out, well_posed
from models.reference.served import padded, place, run_model, save, served
from tests.long_form import in_long_form

PLAIN = {"attention": "none", "fpn": "torchvision"}
SHALLOW = {"width": 0.25, "blocks": "1,1,1,1", "classes": 21, "short_side": 128, "long_side": 192, "proposals": 200}


def torchvision_detector(short_side: int, long_side: int) -> torch.nn.Module:
    return maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=91, min_size=short_side,
                                 max_size=long_side).eval()


# Several tests compare what one network finds: its twin in double precision takes the longest.
@functools.lru_cache(maxsize=1)
def found(network: torch.nn.Module, sizes: tuple[tuple[int, int], ...]) -> tuple[list[torch.Tensor], list[dict]]:
    return well_posed(network, list(sizes), seed=3)


def compare(folder: pathlib.Path, architecture: str, network: torch.nn.Module, weights: pathlib.Path,
            sizes: list[tuple[int, int]], options: dict):
    """Compares pictures of these sizes as one batch, in the coordinates of the pictures as sent."""
    batch, expected = found(network, tuple(sizes))
    images, _ = network.transform(batch)
    bucket = list(images.tensors.shape[2:])
    placements = [[*size, *scaled, *bucket] for size, scaled in zip(sizes, images.image_sizes)]
    for placement, size in zip(placements, sizes):
        assert placement[:4] == place(*size, network.transform.min_size[-1], network.transform.max_size)[:4]
    answers = served(folder, architecture, weights, images.tensors, placements, options, paste=True)
    for answer, detections in zip(answers, expected):
        agree({**answer, "masks": answer["pasted"][:, None]}, detections)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[torch.nn.Module, pathlib.Path]:
    """torchvision's whole detector at a reduced input size, and its weights on disk."""
    torch.manual_seed(1)
    network = spread_out(torchvision_detector(200, 333), (200, 264))
    return network, save(network, tmp_path_factory.mktemp("plain") / "weights")


@pytest.mark.parametrize("size", [(101, 87), *in_long_form((240, 320), (333, 200))], ids=lambda size: "x".join(map(str, size)))
def test_the_whole_of_torchvisions_detector(tmp_path: pathlib.Path, plain, size: tuple[int, int]):
    network, weights = plain
    compare(tmp_path, "ea_mask_rcnn_r50", network, weights, [size], {**PLAIN, "short_side": 200, "long_side": 333})


def test_the_whole_of_torchvisions_detector_at_full_size(tmp_path: pathlib.Path):
    torch.manual_seed(1)
    network = spread_out(torchvision_detector(800, 1333), (240, 320))
    compare(tmp_path, "ea_mask_rcnn_r50", network, save(network, tmp_path / "weights"), [(480, 640)], PLAIN)


def test_the_whole_network_with_attention(tmp_path: pathlib.Path):
    options = {"short_side": 200, "long_side": 333}
    torch.manual_seed(1)
    network = spread_out(build("ea_mask_rcnn_r50", **options), (200, 264))
    compare(tmp_path, "ea_mask_rcnn_r50", network, save(network, tmp_path / "weights"), [(240, 320)], options)


def matched(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> torch.Tensor:
    """Returns which of the expected detections were found again: same class, and an IoU above 0.9."""
    same = found["labels"][None, :] == expected["labels"][:, None]
    return ((box_iou(expected["boxes"], found["boxes"]) > 0.9) & same).any(dim=1)


def test_what_padding_does_at_full_size(tmp_path: pathlib.Path):
    """torchvision pads to a multiple of 32, and padding affects the result; the default does the same. With `exact` it
    has no effect."""
    torch.manual_seed(1)
    network = spread_out(build("ea_mask_rcnn_r50"), (240, 320))
    weights = save(network, tmp_path / "weights")
    picture = network.transform.normalize(pictures(1, 800, 1066, torch.Generator().manual_seed(3))[0])

    def detections(buckets: str, exact: bool) -> dict[str, torch.Tensor]:
        placement = place(800, 1066, 800, 1333, buckets)
        [answer] = served(tmp_path, "ea_mask_rcnn_r50", weights, padded([picture], [placement]), [placement],
                          {"buckets": buckets, "exact": exact})
        return answer

    grid, coarse = "stride:32", "1344x1344"
    expected = detections(grid, True)
    again = matched(detections(coarse, True), expected)
    assert len(again) >= 20 and again.all()  # exact: the result does not depend on the bucket
    for buckets in (grid, coarse):
        share = matched(detections(buckets, False), expected).double().mean()
        print(f"\n800x1066 in {buckets}: {100 * share:.0f} % of {len(again)} detections found again, exact: all", end="")


@pytest.mark.parametrize("architecture, options", [
    ("r50", {}),
    ("r50", {"fpn": "torchvision"}),
    ("r50", {"attention": "none"}),
    ("r50", {"attention": "res4,fpn2,fpn5"}),
    ("r50", {"attention": "res3,fpn5", "fpn": "torchvision", "normalization": "scaling"}),
    ("r50", {"heads": 4, "key_channels": 16, "value_channels": 32}),
    ("r50", {"operator": "non_local"}),
    ("r50", {"operator": "non_local", "normalization": "scaling", "attention": "res3,fpn3", "heads": 2}),
    ("r50", {"score_threshold": 0.1, "nms_threshold": 0.3, "detections": 10, "batch_norm_epsilon": 0.001}),
    ("r101", {"blocks": "1,2,3,1"}),
    ("x101", {}),
], ids=str)
def test_shallow_networks(tmp_path: pathlib.Path, architecture: str, options: dict):
    architecture, options = f"ea_mask_rcnn_{architecture}", {**SHALLOW, **options}
    torch.manual_seed(1)
    network = spread_out(build(architecture, **options), (128, 160))
    weights = save(network, tmp_path / "weights")
    # The second picture is smaller than the bucket by more than a cell of any level.
    compare(tmp_path, architecture, network, weights, [(160, 200), (140, 99)], options)


def test_no_detections_is_an_answer(tmp_path: pathlib.Path):
    options = {**SHALLOW, "score_threshold": 1}
    weights = save(build("ea_mask_rcnn_r50", **options).eval(), tmp_path / "weights")
    [answer] = served(tmp_path, "ea_mask_rcnn_r50", weights, torch.zeros(1, 3, 128, 160), [[64, 80, 128, 160, 128, 160]],
                      options, paste=True)
    assert {name: list(tensor.shape) for name, tensor in answer.items()} == {
        "boxes": [0, 4], "scores": [0], "labels": [0], "masks": [0, 28, 28], "pasted": [0, 64, 80]}


def old_names(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Renames parameters as torchvision named them until 2022."""
    def old(name: str) -> str:
        name = re.sub(r"(fpn\.(?:inner|layer)_blocks\.\d)\.0\.", r"\1.", name)
        name = name.replace("rpn.head.conv.0.0.", "rpn.head.conv.")
        return re.sub(r"mask_head\.(\d)\.0\.", lambda match: f"mask_head.mask_fcn{int(match[1]) + 1}.", name)
    renamed = {old(name): tensor for name, tensor in state.items()}
    assert renamed.keys() != state.keys()
    return renamed


@pytest.fixture(scope="module")
def shallow() -> tuple[torch.nn.Module, dict]:
    options = {**SHALLOW, **PLAIN}
    torch.manual_seed(1)
    return spread_out(build("ea_mask_rcnn_r50", **options), (128, 160)), options


@pytest.mark.parametrize("wrap", [
    lambda state: state,
    old_names,
    lambda state: {"module." + name: tensor for name, tensor in state.items()},
    lambda state: {"model": old_names(state), "epoch": 26},
], ids=["plain", "old names", "DataParallel", "checkpoint"])
def test_state_dicts_as_people_save_them(tmp_path: pathlib.Path, shallow, wrap):
    network, options = shallow
    torch.save(wrap(network.state_dict()), tmp_path / "weights")
    compare(tmp_path, "ea_mask_rcnn_r50", network, tmp_path / "weights", [(128, 160)], options)


def test_attention_that_the_weights_lack_starts_as_the_identity(tmp_path: pathlib.Path, shallow):
    network, options = shallow
    weights = save(network, tmp_path / "weights")
    attended = {**options, "attention": "res3,fpn1"}
    compare(tmp_path, "ea_mask_rcnn_r50", network, weights, [(128, 160)], attended)
    ran = run_model(tmp_path, "ea_mask_rcnn_r50", weights, torch.zeros(1, 3, 128, 160), [[128, 160] * 3], attended)
    assert "identity" in ran.stderr and "res3" in ran.stderr and "fpn1" in ran.stderr and "res4" not in ran.stderr


def refusal(folder: pathlib.Path, state: dict[str, torch.Tensor], options: dict) -> str:
    torch.save(state, folder / "weights")
    ran = run_model(folder, "ea_mask_rcnn_r50", folder / "weights", torch.zeros(1, 3, 128, 160), [[128, 160] * 3],
                    options)
    assert ran.returncode == 1
    return ran.stderr


def test_the_other_pyramid_is_recognised(tmp_path: pathlib.Path, shallow):
    network, options = shallow
    error = refusal(tmp_path, network.state_dict(), {**options, "fpn": "paper"})
    assert "backbone.fpn.top.0" in error and "set the option fpn to torchvision" in error
    paper = build("ea_mask_rcnn_r50", **{**options, "fpn": "paper"})
    assert "set the option fpn to paper" in refusal(tmp_path, paper.state_dict(), options)


def test_one_error_lists_all_that_is_wrong_with_the_weights(tmp_path: pathlib.Path, shallow):
    network, options = shallow
    state = dict(network.state_dict())
    del state["backbone.fpn.inner_blocks.2.0.bias"]
    state["fc.weight"] = torch.zeros(3)
    state["roi_heads.box_predictor.cls_score.bias"] = torch.zeros(91)
    # A module with only some of its tensors does not count as absent.
    state["backbone.attention.res4.query.weight"] = torch.zeros(64, 512, 1, 1)
    error = refusal(tmp_path, state, {**options, "attention": "res4"})
    for part in ("missing", "backbone.fpn.inner_blocks.2.0.bias", "backbone.attention.res4.out.weight", "fc.weight",
                 "wrong shape", "roi_heads.box_predictor.cls_score.bias", "[21]", "[91]"):
        assert part in error


def test_the_twin_is_torchvisions(plain):
    network, _ = plain
    twin = build("ea_mask_rcnn_r50", **PLAIN, short_side=200, long_side=333).eval()
    assert list(twin.state_dict()) == list(network.state_dict())
    twin.load_state_dict(network.state_dict())
    batch = pictures(1, 128, 160, torch.Generator().manual_seed(4)) + pictures(1, 90, 141, torch.Generator())
    with torch.inference_mode():
        for got, expected in zip(twin(batch), network(batch)):
            assert len(expected["scores"]) > 0
            assert all(torch.equal(got[name], expected[name]) for name in expected)


def test_parameters_as_torchvision_and_the_paper_count_them():
    def count(**options) -> int:
        return sum(parameter.numel() for parameter in build("ea_mask_rcnn_r50", **options).parameters())

    plain = build("ea_mask_rcnn_r50", **PLAIN)
    norms = sum(parameter.numel() for module in plain.modules() if isinstance(module, torch.nn.BatchNorm2d)
                for parameter in module.parameters())
    # torchvision states the count with frozen batch norms, which are not parameters.
    assert count(**PLAIN) - norms == 44_401_393
    assert count() - count(attention="none") == 1_119_808
    assert count(fpn="torchvision") - count(**PLAIN) == 1_119_808


def test_fresh_attention_changes_nothing_and_padding_is_never_seen():
    options = {**SHALLOW, "fpn": "torchvision"}
    torch.manual_seed(1)
    network = build("ea_mask_rcnn_r50", **options).eval()
    plain = build("ea_mask_rcnn_r50", **{**options, "attention": "none"}).eval()
    plain.load_state_dict({name: tensor for name, tensor in network.state_dict().items() if "attention" not in name})
    batch = torch.randn(2, 3, 128, 160)
    with torch.inference_mode():
        for got, expected in zip(network.backbone(batch).values(), plain.backbone(batch).values()):
            assert torch.equal(got, expected)

        attention = network.backbone.attention["fpn1"]
        torch.nn.init.normal_(attention.out.weight)
        maps = torch.randn(2, 64, 8, 10)
        got = attention(maps, [(8, 10), (5, 7)])
        torch.testing.assert_close(got[0], attention(maps[:1])[0])
        torch.testing.assert_close(got[1, :, :5, :7], attention(maps[1:, :, :5, :7])[0])
        assert got[1, :, 5:].count_nonzero() == 0 and got[1, :, :, 7:].count_nonzero() == 0


def test_the_twin_can_be_trained():
    torch.manual_seed(1)
    network = build("ea_mask_rcnn_x101", **SHALLOW).train()
    image = torch.rand(3, 96, 128)
    target = {"boxes": torch.tensor([[10.0, 10.0, 60.0, 70.0]]), "labels": torch.tensor([3]),
              "masks": torch.ones(1, 96, 128, dtype=torch.uint8)}
    losses = network([image], [target])
    assert losses.keys() == {"loss_classifier", "loss_box_reg", "loss_mask", "loss_objectness", "loss_rpn_box_reg"}
    sum(losses.values()).backward()
    assert all(parameter.grad is not None for parameter in network.parameters())
    with pytest.raises(ValueError, match="without width"):
        network([image], [{**target, "boxes": torch.tensor([[10.0, 10.0, 10.0, 70.0]])}])


def test_reference_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="none, res3, res4, fpn1"):
        build("ea_mask_rcnn_r50", **{**SHALLOW, "attention": "res2"})
    with pytest.raises(ValueError, match="heads"):
        build("ea_mask_rcnn_r50", **{**SHALLOW, "heads": 3})

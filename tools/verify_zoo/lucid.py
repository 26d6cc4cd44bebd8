"""The source lucid:VARIANT for `python -m saccade import` and `verify`, which this program runs: YOLO26's segmenter with prototypes, as
lucid-yolo implements it independently of the authors."""

import sys
import unittest.mock
from typing import Any, NamedTuple

import torch
from saccade.imports import command, random_weights, sources
from saccade.imports.network import Author, Found, Network
from torch import Tensor, nn

# Modules that lucid-yolo imports to count operations and to score data sets. They are not used here.
for unused in ("fvcore", "fvcore.nn", "faster_coco_eval", "torchmetrics", "torchmetrics.detection"):
    sys.modules.setdefault(unused, unittest.mock.MagicMock())

from lucid_yolo.assign.grid import anchor_grid  # noqa: E402
from lucid_yolo.data.letterbox import Letterbox  # noqa: E402
from lucid_yolo.data.targets import Targets  # noqa: E402
from lucid_yolo.decode.common import BOX_CORNERS, to_letterboxed_original  # noqa: E402
from lucid_yolo.decode.topk_e2e import TopKDecoder  # noqa: E402
from lucid_yolo.eval.segment_decode import decode_instance_masks, masks_to_original  # noqa: E402
from lucid_yolo.models.build import Segmenter  # noqa: E402
from lucid_yolo.models.heads.detect import decode_ltrb  # noqa: E402

SIDE = 640
CLASSES = 12
SCORE = 0.3
MAX_DETECTIONS = 40


class Rows(NamedTuple):
    boxes: Tensor
    scores: Tensor
    labels: Tensor
    coefficients: Tensor
    prototypes: Tensor


DESCRIPTION = {
    "input": {"resize": "letterbox", "size": SIDE, "fill": 114},
    "head": {"kind": "boxes", "nms": 1, "score_threshold": SCORE, "max_detections": MAX_DETECTIONS},
    "outputs": {role: role for role in Rows._fields},
    "max_batch_size": 2,
}


class Program(nn.Module):
    """The network's raw outputs as corners, and the best class of each row."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.points, self.strides = anchor_grid((SIDE, SIDE), torch.device("cpu"))

    def forward(self, pixel_values: Tensor) -> Rows:
        classes, distances, coefficients, prototypes = self.network(pixel_values)
        scores, labels = classes.sigmoid().max(2)
        return Rows(decode_ltrb(distances, self.points, self.strides), scores, labels, coefficients, prototypes)


class Lucid(Author):
    """What lucid_yolo.predict.predict_segmentation does with a file and a checkpoint."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.letterbox = Letterbox(SIDE)
        self.decoder = TopKDecoder(MAX_DETECTIONS)

    def __call__(self, picture: Tensor) -> Any:
        size = picture.shape[1:]
        whole, _ = self.letterbox(picture, Targets(boxes=torch.zeros(0, 4), labels=torch.zeros(0, dtype=torch.int64)))
        classes, distances, coefficients, prototypes = self.network(whole[None])
        rows, anchors = self.decoder.decode_with_indices(classes, distances, *anchor_grid((SIDE, SIDE), torch.device("cpu")))
        kept = rows[0, :, 4] >= SCORE
        rows, of_rows = rows[:, kept], coefficients[:, anchors[0, kept]]
        masks = decode_instance_masks(prototypes, of_rows, rows[..., :BOX_CORNERS], image_size=(SIDE, SIDE))[0]
        found = to_letterboxed_original(rows, orig_size=size, letterboxed_size=(SIDE, SIDE), allow_upscale=True)[0]
        # The daemon's boxes end at the picture's border.
        found[:, :4] = found[:, :4].clamp(torch.zeros(4), torch.tensor([size[1], size[0]] * 2))
        return Found(found[:, :4].numpy(), found[:, 4].numpy(), found[:, 5].long().numpy(),
                     masks_to_original(masks, self.letterbox, size).numpy())


def _set(layer: nn.Conv2d, mean: float, deviation: float) -> None:
    """Has the layer's outputs this mean and deviation, for the pictures that the network is given next."""
    layer.bias.zero_()

    def scale(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        factor = deviation / float(output.std())
        layer.weight.mul_(factor)
        layer.bias.fill_(mean - factor * float(output.mean()))
        hook.remove()
        return output * factor + layer.bias[:, None, None]

    hook = layer.register_forward_hook(scale)


def _spread(network: nn.Module, pictures: Tensor) -> None:
    """Scales the last layers until classes, boxes and masks differ as those of a trained network do."""
    branch = network.o2o
    with torch.inference_mode():
        for stems, mean, deviation in (
            (branch.cls_stems, -5.0, 1.0),  # logits, of which few are large
            (branch.box_stems, 4.0, 0.8),  # distances of a box's sides from its cell, in strides
            (branch.coeff_stems, 0.0, 1.0),  # before their tanh
        ):  # fmt: skip
            for stem in stems:
                _set(stem[-1], mean, deviation)
        _set(network.protonet.layers[-1], 0.0, 1.0)
        network(pictures)


def build(name: str, weights: str | None, seed: int | None) -> Network:
    torch.manual_seed(seed or 0)
    segmenter = Segmenter(name, num_classes=CLASSES).eval()
    network = segmenter.deploy().eval()
    pictures = random_weights.pictures(2, SIDE, SIDE, 1)
    random_weights.settle(network, pictures)
    _spread(network, pictures)
    return Network(
        source=f"lucid:{name}", program=Program(network).eval(), description=DESCRIPTION, labels=[f"class {n}" for n in range(CLASSES)],
        author=Lucid(network), example=(pictures,), scripted=False, notes=["random weights"],
    )


if __name__ == "__main__":
    sources.KINDS += ("lucid",)
    sys.modules["saccade.imports.lucid_networks"] = sys.modules["__main__"]
    sys.exit(command.main())

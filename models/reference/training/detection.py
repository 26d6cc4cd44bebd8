"""Detection of objects on drawn scenes: boxes, and masks of their visible parts."""

import numpy
import torch
from torch import nn

from models.reference import metrics
from models.reference.scenes import objects
from models.reference.training.pictures import chw, raw
from models.reference.training.task import Task

# Fewer than torchvision's defaults, as the pictures are small and have few objects.
REGIONS_PER_PICTURE = 48
PROPOSALS_IN_TRAINING = 200


class Detection(Task):
    labels = objects.LABELS
    figure = "box AP50"

    def sample(self, seed: int, index: int) -> objects.Scene:
        return objects.draw(seed, index)

    def for_training(self, network: nn.Module):
        network.roi_heads.fg_bg_sampler.batch_size_per_image = REGIONS_PER_PICTURE
        for limit in (network.rpn._pre_nms_top_n, network.rpn._post_nms_top_n):
            limit["training"] = PROPOSALS_IN_TRAINING

    def loss(self, network: nn.Module, samples: list[objects.Scene]) -> torch.Tensor:
        pictures = [chw(scene.picture) / 255 for scene in samples]
        targets = [{"boxes": torch.from_numpy(scene.boxes), "labels": torch.from_numpy(scene.classes),
                    "masks": torch.from_numpy(scene.masks).to(torch.uint8)} for scene in samples]
        # torchvision's training: assignment and sampling of anchors and regions, and the five losses.
        return sum(network(pictures, targets).values())

    def predict(self, network: nn.Module, sample: objects.Scene) -> metrics.Found:
        found = network([chw(sample.picture) / 255])[0]
        return metrics.Found(found["boxes"].numpy(), found["scores"].numpy(), found["labels"].numpy(),
                             (found["masks"][:, 0] >= 0.5).numpy())

    def request(self, sample: objects.Scene) -> dict:
        return {"raw": raw(sample.picture), "detection": {"masks": "RLE"}}

    def read(self, answer) -> metrics.Found:
        found = answer.detections.detections
        boxes = [(one.box.x_min, one.box.y_min, one.box.x_max, one.box.y_max) for one in found]
        masks = [metrics.decoded(one.mask.height, one.mask.width, one.mask.counts) for one in found]
        return metrics.Found(numpy.array(boxes, numpy.float32).reshape(-1, 4),
                             numpy.array([one.score for one in found], numpy.float32),
                             numpy.array([one.class_index for one in found], numpy.int64), numpy.array(masks, bool))

    def score(self, samples: list[objects.Scene], predictions: list[metrics.Found]) -> dict[str, float]:
        truths = [metrics.Truth(scene.boxes, scene.classes, scene.masks) for scene in samples]
        figures = {}
        for kind, name in (("bbox", "box"), ("segm", "mask")):
            ap, ap50 = metrics.average_precision(truths, predictions, kind)
            figures |= {f"{name} AP": ap, f"{name} AP50": ap50}
        return figures

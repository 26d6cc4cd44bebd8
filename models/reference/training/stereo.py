"""Stereo matching of rendered pairs: the disparity of each pixel of the left picture."""

import numpy
import torch
from torch import nn

from models.reference import metrics
from models.reference.scenes import stereo
from models.reference.training.pictures import normalized, raw
from models.reference.training.task import Task

WEIGHTS = (0.5, 0.7, 1.0)  # of the three hourglasses' losses, as in the PSMNet authors' training


def prepared(pair: stereo.Pair) -> torch.Tensor:
    return torch.cat([normalized(pair.left), normalized(pair.right)])


class Stereo(Task):
    figure = "end-point error"
    more_is_better = False

    def sample(self, seed: int, index: int) -> stereo.Pair:
        return stereo.draw(seed, index)

    def loss(self, network: nn.Module, samples: list[stereo.Pair]) -> torch.Tensor:
        wanted = torch.from_numpy(numpy.stack([pair.disparity for pair in samples]))
        found = network(torch.stack([prepared(pair) for pair in samples]))
        return sum(weight * nn.functional.smooth_l1_loss(each, wanted) for weight, each in zip(WEIGHTS, found))

    def predict(self, network: nn.Module, sample: stereo.Pair) -> numpy.ndarray:
        return network(prepared(sample)[None])[0].numpy()

    def request(self, sample: stereo.Pair) -> dict:
        return {"stereo": {"left": {"raw": raw(sample.left)}, "right": {"raw": raw(sample.right)}},
                "stereoOptions": {"format": "FLOAT"}}

    def read(self, answer) -> numpy.ndarray:
        found = answer.disparity
        return numpy.frombuffer(found.map, "<f4").reshape(found.height, found.width)

    def score(self, samples: list[stereo.Pair], predictions: list[numpy.ndarray]) -> dict[str, float]:
        expected = numpy.stack([pair.disparity for pair in samples])
        got = numpy.stack(predictions)
        return {"end-point error": metrics.end_point_error(expected, got),
                "3-px error": metrics.three_pixel_error(expected, got)}

"""The programs around a network, in TorchScript: what they take and return is what saccade.json describes."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn
from torchvision.models.detection.image_list import ImageList


class Classes(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, pixel_values: Tensor) -> Tensor:
        return self.network(pixel_values)


class Scores(nn.Module):
    """A segmenter of torchvision's: its first output of two."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, pixel_values: Tensor) -> Tensor:
        outputs: Dict[str, Tensor] = self.network(pixel_values)
        return outputs["out"]


class Prepared(nn.Module):
    """Replaces a detector's own transform: pictures arrive scaled and normalised, and the daemon maps boxes back."""

    def __init__(self, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def forward(
        self, images: List[Tensor], targets: Optional[List[Dict[str, Tensor]]] = None
    ) -> Tuple[ImageList, Optional[List[Dict[str, Tensor]]]]:
        height = 1
        width = 1
        sizes: List[Tuple[int, int]] = []
        for image in images:
            height = max(height, image.shape[1])
            width = max(width, image.shape[2])
            sizes.append((image.shape[1], image.shape[2]))
        stride = self.stride
        height = (height + stride - 1) // stride * stride
        width = (width + stride - 1) // stride * stride
        batch = images[0].new_zeros([len(images), 3, height, width])
        for i, image in enumerate(images):
            batch[i, :, : image.shape[1], : image.shape[2]].copy_(image)
        return ImageList(batch, sizes), targets

    def postprocess(
        self,
        result: List[Dict[str, Tensor]],
        image_shapes: List[Tuple[int, int]],
        original_image_sizes: List[Tuple[int, int]],
    ) -> List[Dict[str, Tensor]]:
        return result


class Boxes(NamedTuple):
    boxes: Tensor
    scores: Tensor
    labels: Tensor


class BoxesAndMasks(NamedTuple):
    boxes: Tensor
    scores: Tensor
    labels: Tensor
    masks: Tensor


def _pictures(pixel_values: Tensor, pixel_mask: Tensor) -> List[Tensor]:
    """The pictures of a batch without their padding."""
    pictures: List[Tensor] = []
    for i in range(pixel_values.shape[0]):
        height = int(pixel_mask[i, :, 0].sum().item())
        width = int(pixel_mask[i, 0, :].sum().item())
        pictures.append(pixel_values[i, :, :height, :width])
    return pictures


def _padded(rows: Tensor, count: int, value: float) -> Tensor:
    whole = torch.full([count] + list(rows.shape[1:]), value, dtype=rows.dtype)
    whole[: rows.shape[0]] = rows
    return whole


class Detector(nn.Module):
    """A detector of torchvision's with a fixed number of rows; those after the last detection have the label -1. It has
    to be scripted: only then the network returns its losses beside what it found."""

    def __init__(self, network: nn.Module, rows: int) -> None:
        super().__init__()
        self.network = network
        self.rows = rows

    def forward(self, pixel_values: Tensor, pixel_mask: Tensor) -> Boxes:
        _, found = self.network(_pictures(pixel_values, pixel_mask))
        boxes: List[Tensor] = []
        scores: List[Tensor] = []
        labels: List[Tensor] = []
        for one in found:
            boxes.append(_padded(one["boxes"], self.rows, 0.0))
            scores.append(_padded(one["scores"], self.rows, 0.0))
            labels.append(_padded(one["labels"], self.rows, -1.0))
        return Boxes(torch.stack(boxes), torch.stack(scores), torch.stack(labels))


class MaskDetector(nn.Module):
    """The same with masks on a grid over each box."""

    def __init__(self, network: nn.Module, rows: int) -> None:
        super().__init__()
        self.network = network
        self.rows = rows

    def forward(self, pixel_values: Tensor, pixel_mask: Tensor) -> BoxesAndMasks:
        _, found = self.network(_pictures(pixel_values, pixel_mask))
        boxes: List[Tensor] = []
        scores: List[Tensor] = []
        labels: List[Tensor] = []
        masks: List[Tensor] = []
        for one in found:
            boxes.append(_padded(one["boxes"], self.rows, 0.0))
            scores.append(_padded(one["scores"], self.rows, 0.0))
            labels.append(_padded(one["labels"], self.rows, -1.0))
            masks.append(_padded(one["masks"], self.rows, 0.0))
        return BoxesAndMasks(torch.stack(boxes), torch.stack(scores), torch.stack(labels), torch.stack(masks))

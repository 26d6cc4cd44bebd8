"""Converts pictures to network inputs and to request fields."""

import base64

import numpy
import torch

MEAN = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
STD = torch.tensor([0.229, 0.224, 0.225])[:, None, None]


def chw(picture: numpy.ndarray) -> torch.Tensor:
    """uint8 [h, w, 3] to floats [3, h, w], 0 to 255."""
    return torch.from_numpy(picture).permute(2, 0, 1).float()


def normalized(picture: numpy.ndarray) -> torch.Tensor:
    return (chw(picture) / 255 - MEAN) / STD


def raw(picture: numpy.ndarray) -> dict:
    """Returns a RawPicture."""
    height, width = picture.shape[:2]
    return {"width": width, "height": height, "order": "RGB",
            "pixels": base64.b64encode(numpy.ascontiguousarray(picture).tobytes()).decode()}

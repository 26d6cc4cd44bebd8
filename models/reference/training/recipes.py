"""The demo models: their networks, widths and training parameters."""

import dataclasses

from torch import nn

from models.reference import build
from models.reference.training.classification import Classification
from models.reference.training.detection import Detection
from models.reference.training.restoration import Restoration
from models.reference.training.segmentation import Segmentation
from models.reference.training.stereo import Stereo
from models.reference.training.task import Task


@dataclasses.dataclass(frozen=True)
class Recipe:
    name: str
    architecture: str
    options: dict  # for config.pbtxt
    without: dict  # options that differ without attention
    task: Task
    steps: int
    batch: int
    rate: float
    clip: float = 1.0  # maximum norm of the gradients
    bfloat16: bool = False  # whether autocast computes in bfloat16, forward and backward; weights stay float32
    # Part of the steps after which batch norms keep their statistics, so that training ends on the network that is
    # served.
    settled: float = 1.0
    held_out: int = 200
    max_batch_size: int = 8

    def build(self, attention: bool = True) -> nn.Module:
        return build(self.architecture, **(self.options if attention else {**self.options, **self.without}))


RECIPES = {recipe.name: recipe for recipe in [
    Recipe("segmenter", "deeplabv2_kao_kv",
           {"classes": 9, "width": 0.25, "blocks": "2,2,2,2", "head_channels": 64, "long_side": 256},
           {"head": "aspp"}, Segmentation(), steps=4500, batch=8, rate=2e-3, bfloat16=True),
    Recipe("detector", "ea_mask_rcnn_r50",
           {"classes": 9, "width": 0.25, "blocks": "1,2,2,1", "key_channels": 16, "value_channels": 16,
            "short_side": 128, "long_side": 256},
           {"attention": "none"}, Detection(), steps=4000, batch=8, rate=1e-3, bfloat16=True, max_batch_size=4),
    Recipe("stereo_matcher", "ea_psmnet",
           {"width": 0.25, "max_disparity": 32, "key_channels": 8, "value_channels": 8, "long_side": 256},
           {"attention": "none"}, Stereo(), steps=5000, batch=4, rate=2e-3, held_out=100, max_batch_size=4),
    Recipe("denoiser", "unet3d_sao_denoise", {"width": 0.25}, {"attention": "none"}, Restoration(), steps=600, batch=4,
           rate=3e-3, settled=0.5, held_out=50, max_batch_size=2),
    Recipe("sanet_shapes", "sanet", {"classes": 10, "width": 0.25, "input_size": 64}, {"attention": "none"},
           Classification(), steps=1000, batch=96, rate=4e-3, clip=10.0, held_out=2000),
]}

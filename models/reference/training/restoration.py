"""Restoration of volumes: predicts what a noisy volume would be with enough light."""

import base64

import numpy
import torch
from torch import nn

from models.reference import metrics
from models.reference.scenes import volumes
from models.reference.training.task import Task
from models.reference.unet3d import percentiles


class Restoration(Task):
    figure = "PSNR gain"
    patch = (8, 32, 32)

    def for_training(self, network: nn.Module):
        # Attention is cubic in its map. If it starts at full strength, a volume that is unlike the others of its batch
        # is amplified from decoder to decoder once batch norms use fixed statistics.
        for name, parameter in network.named_parameters():
            if name.endswith("attention.bn.weight"):
                nn.init.zeros_(parameter)
        # Starts as the identity. From a random output, training would first learn to output zero, and stay there.
        nn.init.zeros_(network.output.weight)
        nn.init.zeros_(network.output.bias)

    def sample(self, seed: int, index: int) -> volumes.Volume:
        return volumes.draw(seed, index)

    def loss(self, network: nn.Module, samples: list[volumes.Volume]) -> torch.Tensor:
        """Returns the loss on one patch of each volume, in the network's units."""
        noisy, clean = [], []
        for volume in samples:
            given, wanted = torch.from_numpy(volume.noisy), torch.from_numpy(volume.clean)
            low, high = percentiles(given)
            corner = [int(torch.randint(side - part + 1, ())) for side, part in zip(given.shape, self.patch)]
            where = tuple(slice(start, start + part) for start, part in zip(corner, self.patch))
            noisy.append(((given[where] - low) / (high - low))[None])
            clean.append(((wanted[where] - low) / (high - low))[None])
        return nn.functional.mse_loss(network.restore(torch.stack(noisy)), torch.stack(clean))

    def predict(self, network: nn.Module, sample: volumes.Volume) -> numpy.ndarray:
        return network(torch.from_numpy(sample.noisy)[None, None])[0, 0].numpy()

    def request(self, sample: volumes.Volume) -> dict:
        depth, height, width = sample.noisy.shape
        shape = {"depth": depth, "height": height, "width": width, "type": "FLOAT32"}
        voxels = base64.b64encode(sample.noisy.astype("<f4").tobytes()).decode()
        return {"volume": {"raw": {"shape": shape, "voxels": voxels}}}

    def read(self, answer) -> numpy.ndarray:
        shape = answer.restoration.shape
        return numpy.frombuffer(answer.restoration.voxels, "<f4").reshape(shape.depth, shape.height, shape.width)

    def score(self, samples: list[volumes.Volume], predictions: list[numpy.ndarray]) -> dict[str, float]:
        before = [metrics.psnr(sample.clean, sample.noisy) for sample in samples]
        after = [metrics.psnr(sample.clean, prediction) for sample, prediction in zip(samples, predictions)]
        return {"PSNR gain": float(numpy.mean(after) - numpy.mean(before)), "PSNR": float(numpy.mean(after))}

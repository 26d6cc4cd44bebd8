"""Writes the demo's sample inputs: held-out scenes as files.

    python -m models.reference.samples [--output models/demo]

pictures/ has one JPEG for each of the classifier's labels, from the first set that it classifies without error: a demo
shows what a result looks like; accuracy is in docs/fidelity.md. scenes/ has pictures for the detector and the
segmenter, pairs/ left and right ones for the stereo matcher, volumes/ noisy TIFFs for the denoiser.
"""

import argparse
import itertools
import pathlib

import torch
import torchvision
from torch import nn

from models.reference import sample_files
from models.reference.scenes import HELD_OUT_SEED, objects, shapes, stereo, volumes
from models.reference.training import evaluation, export
from models.reference.training.classification import prepare
from models.reference.training.recipes import RECIPES

COUNT = 4
SEED = HELD_OUT_SEED + 1  # different scenes from those measured in docs/fidelity.md


@torch.inference_mode()
def write_pictures(network: nn.Module, folder: pathlib.Path):
    labels = torch.arange(len(shapes.LABELS))
    for seed in itertools.count(2024):
        drawn = shapes.draw(labels, 240, torch.Generator().manual_seed(seed), extent=1 / shapes.CROP)
        encoded = [torchvision.io.encode_jpeg(picture, quality=90) for picture in (drawn * 255).round().to(torch.uint8)]
        decoded = torch.stack([torchvision.io.decode_jpeg(jpeg) for jpeg in encoded])
        if torch.equal(network(prepare(decoded)).argmax(dim=1), labels):
            break
    for name, jpeg in zip(shapes.LABELS, encoded):
        torchvision.io.write_file(str(folder / f"{name}.jpg"), jpeg)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=export.DEMO)
    options = parser.parse_args()
    folders = {name: options.output / name for name in ("pictures", "scenes", "pairs", "volumes")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    recipe = RECIPES["sanet_shapes"]
    write_pictures(evaluation.load(recipe, export.path(recipe, True, 0)), folders["pictures"])
    for index in range(COUNT):
        sample_files.write(objects.draw(SEED, index), folders["scenes"], str(index))
        sample_files.write(stereo.draw(SEED, index), folders["pairs"], str(index))
        sample_files.write(volumes.draw(SEED, index), folders["volumes"], str(index))


if __name__ == "__main__":
    main()

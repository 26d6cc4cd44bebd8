"""Trains a demo model on generated scenes.

    python -m models.reference.train NAME [--without-attention] [--seed 0] [--steps N] [--folder build/training/...]

Uses one thread. Writes a checkpoint every minute; if called again, it continues from there. At the end the folder has
weights.safetensors in half precision, loss.png, and figures.json with the figures of those weights on held-out scenes.
With --install, the weights and their configuration are copied to models/demo as well.
"""

import argparse
import json
import pathlib

import torch

from models.reference.training import curve, evaluation, export
from models.reference.training.loop import Training
from models.reference.training.recipes import RECIPES


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(RECIPES))
    parser.add_argument("--without-attention", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="default: the recipe's steps")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--install", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)

    recipe = RECIPES[options.name]
    variant = export.variant(not options.without_attention, options.seed)
    folder = options.folder or pathlib.Path("build/training") / recipe.name / variant
    folder.mkdir(parents=True, exist_ok=True)
    training = Training.start(recipe, not options.without_attention, options.seed)
    checkpoint = folder / "checkpoint.pt"
    if checkpoint.exists():
        training.resume(checkpoint)
    training.run(options.steps or recipe.steps, checkpoint)

    curve.draw(training.losses, f"{recipe.name}, {variant}", folder / "loss.png")
    weights = export.write_weights(training.network, folder / "weights.safetensors")
    figures = evaluation.straight(recipe, evaluation.load(recipe, weights, not options.without_attention))
    (folder / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(", ".join(f"{name} {value:.4f}" for name, value in figures.items()))
    if options.install:
        export.install(recipe, weights, not options.without_attention, options.seed)


if __name__ == "__main__":
    main()

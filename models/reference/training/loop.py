"""A seeded, resumable training with a progress bar."""

import dataclasses
import math
import os
import pathlib
import sys
import time

import torch
import tqdm
from torch import nn

from models.reference.training import layout
from models.reference.training.recipes import Recipe

CHECKPOINT_SECONDS = 60


def rate(recipe: Recipe, step: int, steps: int) -> float:
    """Returns the learning rate: rises over the first twentieth of the steps, then falls as a cosine."""
    rise = max(1, steps // 20)
    if step < rise:
        return recipe.rate * (step + 1) / rise
    return recipe.rate * 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, steps - rise)))


@dataclasses.dataclass
class Training:
    """The state of a training, as in a checkpoint. A step's data and random numbers depend only on (seed, step), so
    that an interrupted training gives the same weights as one without interruption."""

    recipe: Recipe
    network: nn.Module
    optimizer: torch.optim.Optimizer
    seed: int
    losses: list[float]

    @classmethod
    def start(cls, recipe: Recipe, attention: bool, seed: int) -> "Training":
        torch.manual_seed(seed)
        network = recipe.build(attention)
        recipe.task.for_training(network)
        network.train()
        layout.use_channels_last(network)
        optimizer = torch.optim.AdamW(network.parameters(), lr=recipe.rate, weight_decay=1e-4)
        return cls(recipe, network, optimizer, seed, [])

    def step(self, steps: int) -> float:
        step = len(self.losses)
        torch.manual_seed(self.seed * 1_000_003 + step)
        recipe = self.recipe
        if step >= recipe.settled * steps:
            for module in self.network.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    module.eval()
        batch = recipe.task.batch(self.seed, step, recipe.batch)
        with torch.autocast("cpu", torch.bfloat16, enabled=recipe.bfloat16):
            loss = recipe.task.loss(self.network, batch)
        if not torch.isfinite(loss):
            raise ArithmeticError(f"the loss of step {step} is {loss.item()}; train with a smaller rate")
        for group in self.optimizer.param_groups:
            group["lr"] = rate(recipe, step, steps)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), recipe.clip)
        self.optimizer.step()
        self.losses.append(loss.item())
        return loss.item()

    def save(self, path: pathlib.Path):
        part = path.with_suffix(".part")
        torch.save({"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict(), "seed": self.seed,
                    "losses": self.losses}, part)
        os.replace(part, path)

    def resume(self, path: pathlib.Path):
        saved = torch.load(path, weights_only=True)
        if saved["seed"] != self.seed:
            raise ValueError(f"{path} is of seed {saved['seed']}, this training of {self.seed}; choose another folder")
        self.network.load_state_dict(saved["network"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.losses = saved["losses"]

    def run(self, steps: int, checkpoint: pathlib.Path):
        saved = time.monotonic()
        bar = tqdm.tqdm(total=steps, initial=len(self.losses), desc=self.recipe.name, unit="step",
                        mininterval=1 if sys.stderr.isatty() else 30)
        while len(self.losses) < steps:
            bar.set_postfix(loss=f"{self.step(steps):.3f}", refresh=False)
            bar.update()
            if time.monotonic() - saved > CHECKPOINT_SECONDS:
                self.save(checkpoint)
                saved = time.monotonic()
        bar.close()
        self.save(checkpoint)

"""What attention is for: trains a small network of each family with and without attention, for as many steps on the same
scenes, whose answers depend on something far away, and prints a table.

    python -m models.reference.far [--steps 600] [--seeds 3] [--only NAME,...] [--scenes KIND,...]

Uses one thread. Each figure is kept in build/far, so that a run that is interrupted goes on where it stopped.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics

import torch
from torch import nn

from models.reference import build
from models.reference.scenes import HELD_OUT_SEED, far
from models.reference.training.far_answers import ANSWERS

SIZE, BATCH, HELD_OUT, RATE = 64, 16, 256, 2e-3
KEPT = pathlib.Path("build/far")
# How many classes a network answers with, by the kind of scenes; other kinds have none.
CLASSES = {**far.CLASSES, "legend map": far.LEGEND_CLASSES + 1, "cue": 3}


@dataclasses.dataclass(frozen=True)
class Family:
    architecture: str
    options: dict
    without: dict
    scenes: tuple = ("partner", "majority", "legend")


MOBILE = {"width": 0.25, "input_size": SIZE}
RESIDUAL = {"width": 0.25, "input_size": SIZE, "blocks": "1,1,1,1"}
FAMILIES = {
    "SANet": Family("sanet", MOBILE, {"attention": "none"}),
    "AttnNet": Family("attnnet", MOBILE, {"attention": "none"}),
    "KANet": Family("kanet_kv", MOBILE, {"attention": "none"}),
    "ExpAtt": Family("expatt_resnet50", RESIDUAL, {"attention": "none"}),
    "GSA": Family("gsa_resnet50", RESIDUAL, {"attention": "none"}),
    "DeepLabV2": Family("deeplabv2_kao_kv", {"width": 0.25, "blocks": "1,1,1,1", "head_channels": 32},
                        {"head": "aspp"}, ("legend map",)),
    "R-C3D": Family("ea_rc3d", {"width": 0.25, "blocks": "1,1,1,1", "key_channels": 16, "value_channels": 16, "frames": far.FRAMES,
                                "size": far.CLIP_SIZE, "anchors": "2,3,4", "proposals": 20},
                    {"attention": "none"}, ("cue",)),
    "projection": Family("unet3d_sao_project", {"width": 0.25, "normalize": "none"}, {"attention": "none"}, ("switch",)),
}


def score(network: nn.Module, kind: str) -> float:
    """The figure on held-out scenes."""
    network.eval()
    with torch.inference_mode():
        return ANSWERS[kind].score(network, *far.batch(kind, HELD_OUT, SIZE, HELD_OUT_SEED, 0))


def train(family: Family, kind: str, attention: bool, seed: int, steps: int) -> dict[str, float]:
    """Returns the figure, and the first and the last loss."""
    torch.manual_seed(seed)
    classes = {} if kind not in CLASSES else {"classes": CLASSES[kind]}
    network = build(family.architecture, **family.options, **classes, **({} if attention else family.without))
    network.train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    losses = []
    for step in range(steps):
        loss = ANSWERS[kind].loss(network, *far.batch(kind, BATCH, SIZE, seed, step), seed=step)
        if not torch.isfinite(loss):
            raise ArithmeticError(f"the loss of step {step} is {loss.item()}; train with a smaller rate")
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return {"figure": score(network, kind), "first loss": losses[0], "last loss": statistics.mean(losses[-10:])}


def measured(name: str, kind: str, attention: bool, seed: int, steps: int) -> dict[str, float]:
    path = KEPT / f"{name}-{kind.replace(' ', '-')}-{'with' if attention else 'without'}-{seed}-{steps}.json"
    if not path.exists():
        result = train(FAMILIES[name], kind, attention, seed, steps)
        KEPT.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result) + "\n")
        print(f"{path.stem}: {result}", flush=True)
    return json.loads(path.read_text())


def cell(figures: list[float]) -> str:
    each = ", ".join(f"{figure:.3f}" for figure in figures)
    return f"{statistics.mean(figures):.3f} ({each})" if len(figures) > 1 else each


def table(names: list[str], scenes: list[str], seeds: int, steps: int) -> str:
    lines = ["| family | network | scenes | figure | chance | with attention | without |", "|---|---|---|---|---|---|---|"]
    for name in names:
        family = FAMILIES[name]
        for kind in (kind for kind in family.scenes if kind in scenes):
            figures = {attention: [measured(name, kind, attention, seed, steps)["figure"] for seed in range(seeds)]
                       for attention in (True, False)}
            answer = ANSWERS[kind]
            chance = "-" if answer.chance is None else f"{answer.chance:.3f}"
            lines.append(f"| {name} | `{family.architecture}` | {kind} | {answer.figure} | {chance} | {cell(figures[True])} | "
                         f"{cell(figures[False])} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", help="families, separated by commas", default=",".join(FAMILIES))
    parser.add_argument("--scenes", help="kinds of scenes, separated by commas", default=",".join(ANSWERS))
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := [name for name in names if name not in FAMILIES]:
        parser.error(f"unknown families {', '.join(unknown)}; the families are: {', '.join(FAMILIES)}")
    scenes = options.scenes.split(",")
    if unknown := [kind for kind in scenes if kind not in ANSWERS]:
        parser.error(f"unknown scenes {', '.join(unknown)}; the scenes are: {', '.join(ANSWERS)}")
    if options.steps < 10 or options.seeds < 1:
        parser.error("--steps must be at least 10 and --seeds at least 1")
    torch.set_num_threads(1)
    print(table(names, scenes, options.seeds, options.steps), end="")


if __name__ == "__main__":
    main()

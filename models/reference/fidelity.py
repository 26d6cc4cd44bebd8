"""Measures the demo models on held-out scenes and writes the table of docs/fidelity.md.

    python -m models.reference.fidelity [--served build/release/bin/saccaded] [--write docs/fidelity.md]
                                        [--model NAME]...

Measures the weights in models/demo, with and without attention, in PyTorch. With --served, those in
models/demo/repository are measured through the daemon as well, and their figures must agree to three digits. They are
measured once more with precision bf16 and int8, if this processor multiplies them; each may cost 0.5 % of a figure. For int8
saccade-quantize, beside the daemon, measures the networks on scenes that are neither trained on nor held out. Without
--write the table is printed.
"""

import argparse
import contextlib
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import torch

from models.reference import sample_files
from models.reference.scenes import HELD_OUT_SEED
from models.reference.served import multiplies_bfloat16, multiplies_int8
from models.reference.training import evaluation, export
from models.reference.training.daemon import serving
from models.reference.training.recipes import RECIPES, Recipe

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
SEEDS = range(3)
COARSER = ("bf16", "int8")
# What saccade-quantize says of networks of 3-D convolutions.
NOTHING_TO_QUANTIZE = "has no convolution that can be quantized"
# Scenes that networks are quantized on.
CALIBRATION_SEED, CALIBRATION_COUNT = HELD_OUT_SEED + 2, 64
# What a coarser precision may cost: a share of the figure, or this much of a small one.
MAX_LOSS, MAX_SMALL_LOSS = 0.005, 0.001


def straight(recipe: Recipe, attention: bool) -> list[dict[str, float]]:
    """Returns the figures of each seed whose weights exist."""
    files = [export.path(recipe, attention, seed) for seed in SEEDS]
    return [evaluation.straight(recipe, evaluation.load(recipe, file, attention)) for file in files if file.exists()]


def served(recipe: Recipe, daemon) -> dict[str, float]:
    samples = evaluation.held_out(recipe)
    answers = [recipe.task.read(daemon.predict(recipe.name, recipe.task.request(sample))) for sample in samples]
    return recipe.task.score(samples, answers)


def shown(values: list[float]) -> str:
    """Formats with three decimals; for several seeds, the mean followed by the values."""
    if not values:
        return "-"
    each = f" ({', '.join(f'{value:.3f}' for value in values)})" if len(values) > 1 else ""
    return f"{statistics.mean(values):.3f}{each}"


def in_precision(precision: str, folder: pathlib.Path) -> pathlib.Path:
    """Returns a copy of the demo's repository, in `folder`, whose models are computed in that precision."""
    copy = folder / "repository"
    shutil.copytree(export.DEMO / "repository", copy)
    for config in copy.glob("*/config.pbtxt"):
        config.write_text(config.read_text() + f'parameters {{ key: "precision" value {{ string_value: "{precision}" }} }}\n')
    return copy


def in_int8(recipes: list[Recipe], quantizer: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """As in_precision(), with quantized weights. Has only models whose networks can be quantized."""
    copy = in_precision("int8", folder)
    quantized = []
    for recipe in recipes:
        scenes = folder / recipe.name
        scenes.mkdir()
        for index in range(CALIBRATION_COUNT):
            sample_files.write(recipe.task.sample(CALIBRATION_SEED, index), scenes, f"{index:03}")
        ran = subprocess.run([quantizer, "--model", copy / recipe.name, "--pictures", scenes], capture_output=True, text=True)
        if ran.returncode == 0:
            quantized.append(recipe.name)
        elif NOTHING_TO_QUANTIZE not in ran.stderr:
            sys.exit(ran.stderr)
    for model in copy.iterdir():
        if model.name not in quantized:
            shutil.rmtree(model)
    return copy


def rows(recipe: Recipe, daemon, coarser: dict) -> tuple[list[str], list[str]]:
    """Returns the table's rows, and what differs more than it may. `coarser` has repositories and their daemons by precision."""
    with_attention, without = straight(recipe, True), straight(recipe, False)
    through = served(recipe, daemon) if daemon else {}
    rounded = {precision: served(recipe, one) for precision, (repository, one) in coarser.items()
               if (repository / recipe.name).exists()}
    lines, differences = [], []
    for figure, value in with_attention[0].items():
        got = f"{through[figure]:.3f}" if through else "-"
        if through and abs(through[figure] - value) > 0.0005:
            differences.append(f"{recipe.name}: {figure} is {through[figure]:.4f} through the daemon, {value:.4f} straight")
        cells = []
        for precision in COARSER:
            found = rounded.get(precision, {}).get(figure)
            cells.append("-" if found is None else f"{found:.3f}")
            if found is not None and abs(found - value) > max(MAX_LOSS * value, MAX_SMALL_LOSS):
                differences.append(f"{recipe.name}: {figure} is {found:.4f} in {precision}, {value:.4f} in fp32")
        lines.append(f"| `{recipe.name}` | `{recipe.architecture}` | {figure} | {recipe.held_out} "
                     f"| {shown([each[figure] for each in with_attention])} "
                     f"| {shown([each[figure] for each in without])} | {got} | {' | '.join(cells)} |")
    return lines, differences


def table(recipes: list[Recipe], daemon, coarser: dict) -> tuple[str, list[str]]:
    lines = ["| model | network | figure | scenes | with attention | without | seed 0 with attention, served "
             "| in bf16 | in int8 |", "|---|---|---|---|---|---|---|---|---|"]
    differences = []
    for recipe in recipes:
        print(f"measuring {recipe.name}", file=sys.stderr)
        found, differ = rows(recipe, daemon, coarser)
        lines += found
        differences += differ
    return "\n".join(lines), differences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--served", type=pathlib.Path, metavar="SACCADED")
    parser.add_argument("--write", type=pathlib.Path, metavar="PAGE")
    parser.add_argument("--model", action="append", choices=sorted(RECIPES))
    options = parser.parse_args()
    torch.set_num_threads(1)
    recipes = [recipe for recipe in RECIPES.values() if not options.model or recipe.name in options.model]
    recipes = [recipe for recipe in recipes if export.path(recipe, True, 0).exists()]
    with contextlib.ExitStack() as stack:
        daemon, coarser = None, {}
        if options.served:
            daemon = stack.enter_context(serving(options.served, export.DEMO / "repository"))
            folders = {precision: pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())) for precision in COARSER}
            made = {}
            if multiplies_bfloat16():
                made["bf16"] = in_precision("bf16", folders["bf16"])
            if multiplies_int8():
                made["int8"] = in_int8(recipes, options.served.with_name("saccade-quantize"), folders["int8"])
            for precision, repository in made.items():
                coarser[precision] = repository, stack.enter_context(serving(options.served, repository))
        text, differences = table(recipes, daemon, coarser)
    if options.write:
        before, rest = options.write.read_text().split(BEGIN)
        options.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")
    else:
        print(text)
    if differences:
        sys.exit("\n".join(differences))


if __name__ == "__main__":
    main()

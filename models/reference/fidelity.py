"""Measures the demo models on held-out scenes and writes the table of docs/fidelity.md.

    python -m models.reference.fidelity [--served build/release/bin/saccaded] [--write docs/fidelity.md]
                                        [--model NAME]...

Measures the weights in models/demo, with and without attention, in PyTorch. With --served, those in
models/demo/repository are measured through the daemon as well, and their figures must agree to three digits; and once
more with precision bf16, if this processor multiplies it, which may cost 0.5 % of a figure. Without --write the table is
printed.
"""

import argparse
import contextlib
import pathlib
import shutil
import statistics
import sys
import tempfile

import torch

from models.reference.served import multiplies_bfloat16
from models.reference.training import evaluation, export
from models.reference.training.daemon import serving
from models.reference.training.recipes import RECIPES, Recipe

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
SEEDS = range(3)


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


def in_bfloat16(folder: pathlib.Path) -> pathlib.Path:
    """Returns a copy of the demo's repository whose models are computed in bfloat16."""
    copy = folder / "repository"
    shutil.copytree(export.DEMO / "repository", copy)
    for config in copy.glob("*/config.pbtxt"):
        config.write_text(config.read_text() + 'parameters { key: "precision" value { string_value: "bf16" } }\n')
    return copy


def rows(recipe: Recipe, daemon, coarse) -> tuple[list[str], list[str]]:
    """Returns the table's rows, and the differences between the daemon and PyTorch."""
    with_attention, without = straight(recipe, True), straight(recipe, False)
    through = served(recipe, daemon) if daemon else {}
    rounded = served(recipe, coarse) if coarse else {}
    lines, differences = [], []
    for figure, value in with_attention[0].items():
        got = f"{through[figure]:.3f}" if through else "-"
        in_bf16 = f"{rounded[figure]:.3f}" if rounded else "-"
        if through and abs(through[figure] - value) > 0.0005:
            differences.append(f"{recipe.name}: {figure} is {through[figure]:.4f} through the daemon, {value:.4f} straight")
        if rounded and abs(rounded[figure] - value) > max(0.005 * value, 0.001):
            differences.append(f"{recipe.name}: {figure} is {rounded[figure]:.4f} in bf16, {value:.4f} in fp32")
        lines.append(f"| `{recipe.name}` | `{recipe.architecture}` | {figure} | {recipe.held_out} "
                     f"| {shown([each[figure] for each in with_attention])} "
                     f"| {shown([each[figure] for each in without])} | {got} | {in_bf16} |")
    return lines, differences


def table(recipes: list[Recipe], daemon, coarse) -> tuple[str, list[str]]:
    lines = ["| model | network | figure | scenes | with attention | without | seed 0 with attention, served "
             "| the same in bf16 |", "|---|---|---|---|---|---|---|---|"]
    differences = []
    for recipe in recipes:
        print(f"measuring {recipe.name}", file=sys.stderr)
        found, differ = rows(recipe, daemon, coarse)
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
    with contextlib.ExitStack() as daemons:
        daemon, coarse = None, None
        if options.served:
            daemon = daemons.enter_context(serving(options.served, export.DEMO / "repository"))
        if options.served and multiplies_bfloat16():
            copy = in_bfloat16(pathlib.Path(daemons.enter_context(tempfile.TemporaryDirectory())))
            coarse = daemons.enter_context(serving(options.served, copy))
        text, differences = table(recipes, daemon, coarse)
    if options.write:
        before, rest = options.write.read_text().split(BEGIN)
        options.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")
    else:
        print(text)
    if differences:
        sys.exit("\n".join(differences))


if __name__ == "__main__":
    main()

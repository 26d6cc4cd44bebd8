"""Draws the loss over the steps."""

import math
import pathlib

from PIL import Image, ImageDraw

WIDTH, HEIGHT, LEFT, BELOW, ABOVE, RIGHT = 640, 360, 56, 28, 28, 12
PAPER, GRID, INK, LINE = "white", "#dddddd", "#333333", "#1f5fbf"


def smoothed(losses: list[float], columns: int) -> list[tuple[float, float]]:
    """Returns (step, mean loss) of at most `columns` equal stretches."""
    long = max(1, math.ceil(len(losses) / columns))
    stretches = [losses[start:start + long] for start in range(0, len(losses), long)]
    return [(number * long + len(part) / 2, sum(part) / len(part)) for number, part in enumerate(stretches)]


def draw(losses: list[float], title: str, path: pathlib.Path):
    """Draws on a logarithmic scale; losses are positive."""
    points = smoothed([max(loss, 1e-9) for loss in losses], 200)
    heights = [math.log10(loss) for _, loss in points]
    low, high = min(heights), max(max(heights), min(heights) + 1e-3)

    def place(step: float, height: float) -> tuple[float, float]:
        return (LEFT + step / len(losses) * (WIDTH - LEFT - RIGHT),
                HEIGHT - BELOW - (height - low) / (high - low) * (HEIGHT - BELOW - ABOVE))

    picture = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    pen = ImageDraw.Draw(picture)
    pen.text((LEFT, 8), f"loss: {title}", fill=INK)
    for part in range(5):
        height, step = low + (high - low) * part / 4, len(losses) * part / 4
        pen.line([place(0, height), place(len(losses), height)], fill=GRID)
        pen.text((6, place(0, height)[1] - 6), f"{10**height:.3g}", fill=INK)
        pen.text((place(step, low)[0] - (24 if part == 4 else 0), HEIGHT - BELOW + 8), f"{step:.0f}", fill=INK)
    pen.line([place(step, height) for (step, _), height in zip(points, heights)], fill=LINE, width=2)
    picture.save(path)

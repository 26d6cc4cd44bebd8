"""Scenes whose answer depends on something far away in the picture: a partner, the majority, or a legend."""

import torch

CLASSES = {"partner": 2, "majority": 2, "legend": 3}
# Colours that differ clearly; the background is dark.
COLOURS = torch.tensor([[0.9, 0.2, 0.2], [0.2, 0.8, 0.2], [0.3, 0.4, 1.0], [0.9, 0.8, 0.1]])
BACKGROUND, NOISE = 0.15, 0.05
PATCH = 6  # side of a patch in pixels
LEGEND_CLASSES = 3


def blank(size: int, generator: torch.Generator) -> torch.Tensor:
    return BACKGROUND + NOISE * torch.randn(3, size, size, generator=generator)


def put(picture: torch.Tensor, top: int, left: int, colour: int, generator: torch.Generator):
    noise = NOISE * torch.randn(3, PATCH, PATCH, generator=generator)
    picture[:, top:top + PATCH, left:left + PATCH] = COLOURS[colour][:, None, None] + noise


def number(limit: int, generator: torch.Generator) -> int:
    return int(torch.randint(limit, (), generator=generator))


def partner(size: int, generator: torch.Generator) -> tuple[torch.Tensor, int]:
    """Two patches near the left and the right edge; the answer is whether they have the same colour."""
    label, first = number(2, generator), number(len(COLOURS), generator)
    second = first if label else (first + 1 + number(len(COLOURS) - 1, generator)) % len(COLOURS)
    picture = blank(size, generator)
    room = size - PATCH
    for colour, left in ((first, number(size // 8, generator)), (second, room - number(size // 8, generator))):
        put(picture, number(room + 1, generator), left, colour, generator)
    return picture, label


def majority(size: int, generator: torch.Generator) -> tuple[torch.Tensor, int]:
    """Patches of two colours on a grid, three against four or five against four; the answer is which has more."""
    label = number(2, generator)
    picture = blank(size, generator)
    cells = size // (PATCH + 2)
    fewer = 3 + number(2, generator)
    chosen = torch.randperm(cells * cells, generator=generator)[:2 * fewer + 1].tolist()
    for index, cell in enumerate(chosen):
        colour = label if index <= fewer else 1 - label
        put(picture, cell // cells * (PATCH + 2), cell % cells * (PATCH + 2), colour, generator)
    return picture, label


def order(generator: torch.Generator) -> list[int]:
    return torch.randperm(LEGEND_CLASSES, generator=generator).tolist()


def put_legend(picture: torch.Tensor, colours: list[int], generator: torch.Generator):
    """Draws the colours of classes 0, 1 and 2 from left to right in the upper left corner."""
    for place, colour in enumerate(colours):
        put(picture, 0, place * PATCH, colour, generator)


def legend(size: int, generator: torch.Generator) -> tuple[torch.Tensor, int]:
    """A legend in a corner, and a patch in the lower half; the answer is the place of its colour in the legend."""
    label, colours = number(LEGEND_CLASSES, generator), order(generator)
    picture = blank(size, generator)
    put_legend(picture, colours, generator)
    put(picture, size // 2 + number(size // 2 - PATCH + 1, generator), number(size - PATCH + 1, generator),
        colours[label], generator)
    return picture, label


def legend_map(size: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """A legend, and five patches in the lower half; a pixel's class is 1 + the place of its patch's colour in the
    legend, and 0 for everything else."""
    colours = order(generator)
    picture, labels = blank(size, generator), torch.zeros(size, size, dtype=torch.long)
    put_legend(picture, colours, generator)
    for _ in range(5):
        label = number(LEGEND_CLASSES, generator)
        top, left = size // 2 + number(size // 2 - PATCH + 1, generator), number(size - PATCH + 1, generator)
        put(picture, top, left, colours[label], generator)
        labels[top:top + PATCH, left:left + PATCH] = 1 + label
    return picture, labels


def batch(kind: str, count: int, size: int, seed: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """`count` pictures [count, 3, size, size] of about unit variance and their answers: classes, or maps of classes for
    "legend map". They depend only on the arguments."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
    draw = {"partner": partner, "majority": majority, "legend": legend, "legend map": legend_map}[kind]
    pictures, answers = zip(*(draw(size, generator) for _ in range(count)))
    return (torch.stack(pictures) - 0.3) / 0.25, torch.as_tensor(answers) if isinstance(answers[0], int) else \
        torch.stack(answers)

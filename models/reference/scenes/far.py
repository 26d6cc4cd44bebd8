"""Scenes whose answer depends on something far away in the picture, clip or volume: a partner, the majority, a legend, a cue, or a
switch."""

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


FRAMES, CLIP_SIZE = 128, 16  # of a clip with a cue
CUE_FRAMES = 8
SHORTEST, LONGEST = 16, 32  # frames of an action
CUE_DISTANCE = 56  # least number of frames between the cue and the action


def cue(generator: torch.Generator) -> tuple[torch.Tensor, tuple[int, int, int]]:
    """A clip [3, FRAMES, CLIP_SIZE, CLIP_SIZE] that begins with a patch of one of two colours; much later a grey patch moves
    from left to right. The answer is (start, end, class): the frames of the movement, and 1 + the index of the colour."""
    label = number(2, generator)
    clip = BACKGROUND + NOISE * torch.randn(3, FRAMES, CLIP_SIZE, CLIP_SIZE, generator=generator)
    room = CLIP_SIZE - PATCH
    top, left = number(room + 1, generator), number(room + 1, generator)
    clip[:, :CUE_FRAMES, top:top + PATCH, left:left + PATCH] += COLOURS[label][:, None, None, None] - BACKGROUND
    length = SHORTEST + number(LONGEST - SHORTEST + 1, generator)
    earliest = CUE_FRAMES + CUE_DISTANCE
    start = earliest + number(FRAMES - length - earliest + 1, generator)
    top = number(room + 1, generator)
    for frame in range(length):
        left = room * frame // (length - 1)
        clip[:, start + frame, top:top + PATCH, left:left + PATCH] += 0.6
    return clip, (start, start + length, 1 + label)


DEPTH = 8  # planes of a volume with a switch


def switch(size: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """A noisy volume [1, DEPTH, size, size] with a bright or a dim patch in the upper left corner, and patches in the lower right
    quarter. The answer is a plane [1, 1, size, size]: without noise, and with the patches only if the corner is bright."""
    lit = number(2, generator)
    volume = torch.zeros(1, DEPTH, size, size)
    plane = torch.zeros(1, 1, size, size)
    for target in (volume[0, number(DEPTH, generator)], plane[0, 0]):
        target[:PATCH, :PATCH] = 1.0 if lit else 0.5
    for _ in range(4):
        top, left = (size // 2 + number(size // 2 - PATCH + 1, generator) for _ in range(2))
        volume[0, number(DEPTH, generator), top:top + PATCH, left:left + PATCH] = 0.8
        if lit:
            plane[0, 0, top:top + PATCH, left:left + PATCH] = 0.8
    return volume + NOISE * torch.randn(volume.shape, generator=generator), plane


def batch(kind: str, count: int, size: int, seed: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """`count` pictures [count, 3, size, size] of about unit variance and their answers: classes, or maps of classes for
    "legend map". For "cue", clips of about unit variance and [count, 3]; for "switch", volumes and planes. They depend only on the arguments."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
    if kind == "cue":
        clips, actions = zip(*(cue(generator) for _ in range(count)))
        return (torch.stack(clips) - 0.15) / 0.25, torch.tensor(actions)
    if kind == "switch":
        volumes, planes = zip(*(switch(size, generator) for _ in range(count)))
        return torch.stack(volumes), torch.stack(planes)
    draw = {"partner": partner, "majority": majority, "legend": legend, "legend map": legend_map}[kind]
    pictures, answers = zip(*(draw(size, generator) for _ in range(count)))
    return (torch.stack(pictures) - 0.3) / 0.25, torch.as_tensor(answers) if isinstance(answers[0], int) else \
        torch.stack(answers)

"""Drawn pictures of ten shapes and patterns: training data for the demo model that can be generated anywhere."""

import math

import torch

LABELS = ["circle", "ring", "square", "triangle", "star", "cross", "heart", "stripes", "checkerboard", "dots"]
# A served picture keeps the middle 7/8 of its shorter side; shapes are placed within it.
CROP = 224 / 256


def _fold(value: torch.Tensor) -> torch.Tensor:
    """A triangle wave of period 1 between -0.25 and 0.25."""
    return (value - torch.floor(value) - 0.5).abs() - 0.25


def _polygon(u: torch.Tensor, v: torch.Tensor, sides: int) -> torch.Tensor:
    angle = torch.atan2(v, u)
    sector = 2 * math.pi / sides
    return torch.hypot(u, v) * torch.cos(torch.remainder(angle, sector) - sector / 2)


def _star(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    sector = 2 * math.pi / 5
    angle = (torch.remainder(torch.atan2(v, u), sector) - sector / 2).abs()
    radius = torch.hypot(u, v)
    # The edge from the tip (1, 0) to the notch at half a sector and 0.4 of the radius.
    x, y = radius * torch.cos(sector / 2 - angle), radius * torch.sin(sector / 2 - angle)
    nx, ny = 0.4 * math.sin(sector / 2), 1 - 0.4 * math.cos(sector / 2)
    return ((1 - x) * nx - y * ny) / math.hypot(nx, ny)


def _distance(label: int, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Returns approximately the distance to the shape's edge, positive inside."""
    radius = torch.hypot(u, v)
    name = LABELS[label]
    if name == "circle":
        return 1 - radius
    if name == "ring":
        return 0.22 - (radius - 0.78).abs()
    if name == "square":
        return 0.85 - torch.maximum(u.abs(), v.abs())
    if name == "triangle":
        return 0.5 - _polygon(u, v, 3)
    if name == "star":
        return _star(u, v)
    if name == "cross":
        near, far = torch.minimum(u.abs(), v.abs()), torch.maximum(u.abs(), v.abs())
        return torch.minimum(0.28 - near, 1 - far)
    if name == "heart":
        y = 1.15 * v + 0.1
        return (1 - (u * u * 1.3 + (y - (u.abs() + 1e-6).sqrt() * 0.75) ** 2)) * 0.4
    if name == "stripes":
        return _fold(u * 1.4)
    if name == "checkerboard":
        return _fold(u * 0.9) * _fold(v * 0.9) * 4
    period = 0.9
    x, y = torch.remainder(u, period) - period / 2, torch.remainder(v, period) - period / 2
    return 0.24 - torch.hypot(x, y)


def _colours(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns foreground and background colours that differ clearly."""
    back = torch.rand(count, 3, generator=generator)
    front = torch.rand(count, 3, generator=generator)
    gap = (front - back).abs().amax(dim=1, keepdim=True)
    opposite = torch.where(back > 0.5, back - 0.5, back + 0.5)
    return torch.where(gap < 0.35, opposite, front), back


def draw(labels: torch.Tensor, size: int, generator: torch.Generator, extent: float = 1.0) -> torch.Tensor:
    """Returns pictures [B, 3, size, size] in 0..1. Shapes lie within -1..1; the picture shows -extent..extent."""
    count = len(labels)

    def uniform(low: float, high: float) -> torch.Tensor:
        return (low + (high - low) * torch.rand(count, generator=generator))[:, None, None]

    scale, angle = uniform(0.35, 0.85), uniform(0, 2 * math.pi)
    room = (0.95 - scale).clamp(min=0.05)
    axis = (torch.arange(size) + 0.5) / size * 2 * extent - extent
    x = axis[None, None, :] - room * uniform(-1, 1)
    y = axis[None, :, None] - room * uniform(-1, 1)
    u = (torch.cos(angle) * x + torch.sin(angle) * y) / scale
    v = (torch.cos(angle) * y - torch.sin(angle) * x) / scale

    inside = torch.empty(count, size, size)
    for label in labels.unique().tolist():
        chosen = labels == label
        inside[chosen] = _distance(label, u[chosen], v[chosen])
    mask = (inside * scale * size / (2 * extent) + 0.5).clamp(0, 1)[:, None]

    front, back = (colour[:, :, None, None] for colour in _colours(count, generator))
    slope = (uniform(-0.25, 0.25) * axis[None, None, :] + uniform(-0.25, 0.25) * axis[None, :, None])[:, None]
    picture = front * mask + back * (1 - mask) + slope
    noise = torch.randn(picture.shape, generator=generator) * uniform(0, 0.06)[:, None]
    return (picture + noise).clamp(0, 1)

"""Plots as inline SVG."""

import html
import math

COLOURS = ("#1b6ca8", "#c1501f", "#3c7d3c", "#7a4fa3", "#8a6d00")
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 620, 240, 60, 14, 34


def _svg(parts, height=HEIGHT):
    return f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">{"".join(parts)}</svg>'


def _text(x, y, words, anchor="start", colour="#333"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="11" text-anchor="{anchor}" fill="{colour}">{html.escape(words)}</text>'


def _line(points, colour):
    return f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def percentiles(series):
    """Latencies by percentile. `series` is {name: {"99.00": nanoseconds}}; the scale of the latencies is logarithmic."""
    every = [max(1.0, value) for one in series.values() for value in one.values()]
    if not every:
        return ""
    low, high = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)) + 1e-9)
    names = sorted({name for one in series.values() for name in one}, key=float)
    step = (WIDTH - LEFT - 20) / max(1, len(names) - 1)

    def y(value):
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log10(max(1.0, value))) / max(1, high - low)

    parts = []
    for power in range(low, high + 1):
        parts += [f'<path stroke="#ddd" d="M{LEFT} {y(10 ** power):.1f}H{WIDTH - 20}"/>',
                  _text(LEFT - 6, y(10 ** power) + 4, f"{10.0 ** power / 1e6:g} ms", "end")]
    parts += [_text(LEFT + step * number, HEIGHT - 16, f"{float(name):g}", "middle") for number, name in enumerate(names)]
    for number, (name, one) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        parts += [_line([(LEFT + step * names.index(percentile), y(value)) for percentile, value in one.items()], colour),
                  _text(LEFT + 130 * number, HEIGHT - 3, name, colour=colour)]
    return _svg(parts)


def over_time(series, highest=None, unit=""):
    """Values second by second. `series` is {name: [value]}."""
    length = max((len(one) for one in series.values()), default=0)
    if not length:
        return ""
    top = highest or max(1, *(value for one in series.values() for value in one))
    height, step = 150, (WIDTH - LEFT - 20) / max(1, length - 1)

    def y(value):
        return TOP + (height - TOP - BOTTOM) * (1 - min(value, top) / top)

    parts = [_text(LEFT - 6, y(share * top) + 4, f"{share * top:g}{unit}", "end") for share in (0, 0.5, 1)]
    parts += [f'<path stroke="#ddd" d="M{LEFT} {y(share * top):.1f}H{WIDTH - 20}"/>' for share in (0, 0.5, 1)]
    parts += [_text(LEFT + step * at, height - 18, f"{at} s", "middle") for at in range(0, length, max(1, length // 8))]
    for number, (name, one) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        parts += [_line([(LEFT + step * at, y(value)) for at, value in enumerate(one)], colour),
                  _text(LEFT + 130 * number, height - 3, name, colour=colour)]
    return _svg(parts, height)

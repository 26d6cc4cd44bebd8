"""Options as in config.pbtxt: text, or equivalent Python values."""

import math


def scaled(channels: int, width: float) -> int:
    """Returns the multiple of 8 nearest to channels * width, rounding halves up, and at least 8."""
    return max(8, 8 * math.floor(channels * width / 8 + 0.5))


def flag(value) -> bool:
    return {"true": True, "false": False}[str(value).lower()]


def choice(name: str, value: str, legal: tuple) -> str:
    if value not in legal:
        raise ValueError(f"option {name} is '{value}'; it must be one of {', '.join(legal)}")
    return value

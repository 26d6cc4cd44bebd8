"""The long form of tests, with SACCADE_LONG=1: CONTRIBUTING.md says what it is for."""

import os
from typing import Any

LONG = "SACCADE_LONG" in os.environ


def in_long_form(*cases: Any) -> tuple:
    """The cases in the long form, and none otherwise."""
    return cases if LONG else ()

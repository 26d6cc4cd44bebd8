"""Compares what client/README.md shows with what its commands print."""

import re

import pytest
from quickstart_test import BAR, NUMBER, TIME

from tools.reference.readme import README, readme

# The figures of a moment: how many requests wait, and how long they took.
WATCHED = re.compile(r"^\$ saccade status --watch .*?^```$", re.MULTILINE | re.DOTALL)


def parts(text):
    """The words, and the numbers, of the page."""
    text = WATCHED.sub(lambda found: re.sub(r"[\d.,%()-]+", " ", found[0]), text)
    text = BAR.sub("", TIME.sub("", text))
    return NUMBER.sub("#", text).split(), [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def assert_same(found, expected):
    (words, numbers), (expected_words, expected_numbers) = parts(found), parts(expected)
    assert words == expected_words, "run ./dev docs"
    # Boxes and masks are in whole pixels.
    assert numbers == pytest.approx(expected_numbers, rel=0.02, abs=1.01), "run ./dev docs"


def test_the_page_shows_what_its_commands_print():
    assert_same(readme(), README.read_text())


@pytest.mark.parametrize("old, new", [
    ("50,220,224", "51,520,224"), ("is not trusted", "is trusted"), ("wrote overlays/1.labels.png\n", ""),
    ("ea_mask_rcnn_r50  detection", "ea_mask_rcnn_r50  segmentation"), ('"category_id": ', '"category": '),
    ("BATCHES OF", "BATCHES")])
def test_what_is_stale_is_found(old, new):
    text = README.read_text()
    assert old in text
    with pytest.raises(AssertionError):
        assert_same(text.replace(old, new, 1), text)

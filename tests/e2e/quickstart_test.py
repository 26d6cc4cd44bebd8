"""Compares what docs/quickstart.md shows with what its commands print. Times differ between runs and are not compared;
other numbers may differ as between processors."""

import re

import pytest

from tools.reference.session import PAGE, page

TIME = re.compile(r"[\d.,]+ ms|(infer|encode|queue|decode) [\d.,]+|batch of \d+")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
BAR = re.compile("[\u2580-\u259f]+")


def parts(text):
    """The words, and the numbers, of a page."""
    text = BAR.sub("", TIME.sub("", text))
    return NUMBER.sub("#", text).split(), [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def assert_same(found, expected):
    (words, numbers), (expected_words, expected_numbers) = parts(found), parts(expected)
    assert words == expected_words
    # Boxes and masks are in whole pixels.
    assert numbers == pytest.approx(expected_numbers, rel=0.02, abs=1.01)


def test_the_page_shows_what_the_commands_print(tmp_path):
    assert_same(page(tmp_path), PAGE.read_text())


@pytest.mark.parametrize("old, new", [("heart", "hart"), ("98.4%", "88.4%"), ("6  heart", "6  heart  7")])
def test_what_is_stale_is_found(old, new):
    text = PAGE.read_text()
    assert old in text
    with pytest.raises(AssertionError):
        assert_same(text.replace(old, new, 1), text)


def test_times_may_differ():
    text = PAGE.read_text()
    assert_same(re.sub(r"[\d.]+ ms", "999.9 ms", text), text)

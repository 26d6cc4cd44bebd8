"""Compares what docs/quickstart.md shows with what its commands print. Times differ between runs and are not compared;
other numbers may differ as between processors."""

import re

import pytest

from tools.reference.session import COUNTS, MEASURED, PAGE, page, with_counts

# A duration in protobuf's JSON has 0, 3, 6 or 9 digits behind the point: only as many as it needs.
TIME = re.compile(r'[\d.,]+ ms|(infer|encode|queue|decode) [\d.,]+|batch of \d+|(?<=")\d+(\.\d+)?s(?=")|"batch_size":\d+')
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
BAR = re.compile("[\u2580-\u259f]+")


def parts(text):
    """The words, and the numbers, of a page."""
    # Only the words of figures are compared: their numbers are those of the moment.
    text = MEASURED.sub(lambda found: re.sub(r"[\d.,%():]+", " ", found[0]), text).replace(",\n", ",")
    text = BAR.sub("", TIME.sub("", text))
    return NUMBER.sub("#", text).split(), [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def assert_same(found, expected):
    (words, numbers), (expected_words, expected_numbers) = parts(found), parts(expected)
    assert words == expected_words
    # Boxes and masks are in whole pixels.
    assert numbers == pytest.approx(expected_numbers, rel=0.02, abs=1.01)


def test_the_page_shows_what_the_commands_print(tmp_path):
    assert_same(page(tmp_path), PAGE.read_text())


@pytest.mark.parametrize("old, new", [
    ("heart", "hart"), ("98.4%", "88.4%"), ("6  heart", "6  heart  7"), ('"label":"star"', '"label":"ring"'),
    ("1769 pixels", "1669 pixels"), ("7.875311", "4.875311"), ("the forward pass", "the pass")])
def test_what_is_stale_is_found(old, new):
    text = PAGE.read_text()
    assert old in text
    with pytest.raises(AssertionError):
        assert_same(text.replace(old, new, 1), text)


def test_times_may_differ():
    text = PAGE.read_text()
    assert_same(re.sub(r"[\d.]+ ms", "999.9 ms", text), text)


@pytest.mark.parametrize("duration", ["3s", "0.012s", "0.012345s", "0.012345678s"])
def test_durations_may_have_any_precision_of_protobufs_json(duration):
    text = PAGE.read_text()
    changed, count = re.subn(r'(?<="infer":")[\d.]+s', duration, text)
    assert count > 0
    assert_same(changed, text)


def test_the_sentence_about_the_measurement_is_right():
    text = PAGE.read_text()
    assert len(COUNTS.findall(text)) == 1 and with_counts(text) == text
    assert with_counts(COUNTS.sub("7 requests, two of them from above, were answered by 3 forward passes", text)) == text

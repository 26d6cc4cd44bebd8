"""Follows docs/your-own-model.md and compares what it shows with what its commands print. Times and figures of load differ
between runs and are not compared."""

import re

import pytest
from quickstart_test import NUMBER, TIME

from tools.reference.own_model import MEASURED, PAGE, elided, page

BAR = re.compile("[\u2580-\u259f]+")
# Trained on another processor a network is another one.
TRAINED = re.compile(r"(step \d+: loss|of 300 new pictures) [\d.]+")
CLASSES = re.compile(r"^ +[\d.]+%.*$", re.MULTILINE)
OF_TRAINED = re.compile(r"^\$ saccade classify --model shapes .*?^```$", re.MULTILINE | re.DOTALL)


def parts(text):
    """The words, and the numbers, of a page."""
    text = MEASURED.sub(lambda found: re.sub(r"(?<![a-zA-Z\d])[\d.,%():\u00b5]+(ms|us|s)?", " ", found[0]), text)
    text = OF_TRAINED.sub(lambda found: CLASSES.sub("a class", found[0]), text)
    text = TRAINED.sub(r"\1", BAR.sub("", TIME.sub("", text)))
    return NUMBER.sub("#", text).split(), [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def assert_same(found, expected):
    (words, numbers), (expected_words, expected_numbers) = parts(found), parts(expected)
    assert words == expected_words, "run ./dev docs"
    # Probabilities of networks with random weights may differ between processors; all other numbers are counts and sizes.
    assert numbers == pytest.approx(expected_numbers, rel=0.02, abs=0.5), "run ./dev docs"


def test_the_page_shows_what_its_commands_print(tmp_path):
    assert_same(page(tmp_path), PAGE.read_text())


@pytest.mark.parametrize("old, new", [
    ("state_dict of resnet18", "state_dict of resnet50"), ("all 122 names", "all 192 names"), ("is missing", "is absent"),
    ("squeeze version 1 (pytorch)", "squeeze version 1 (torch)"), ("3 labels for 4 classes", "3 labels for 44 classes"),
    ("package (3, 3) as in PyTorch: True", "package (3, 3) as in PyTorch: False"), ("is FP64, expected FP32", "is FP64, expected FP16"),
    ("200x187  package", "200x200  package"), ("network  ", "net  "), ("unloading version", "version dismissed"),
    ("It was cut short", "It was short"),
    ("p99 latency", "p90 latency")])
def test_what_is_stale_is_found(old, new):
    text = PAGE.read_text()
    assert old in text
    with pytest.raises(AssertionError):
        assert_same(text.replace(old, new, 1), text)


def test_figures_of_load_may_differ():
    text = PAGE.read_text()
    (throughput,) = re.findall(r"Throughput: [\d.]+", text)
    assert_same(text.replace(throughput, "Throughput: 12.5"), text)


def test_what_is_left_out_is_found_again():
    assert elided("...\nb 2 of 3\n", "a 1\nb 7 of 9\nc 3\n") == "...\nb 7 of 9\n"
    assert elided("b 2\n", "a 1\nb 7\n") == "a 1\nb 7\n"
    with pytest.raises(RuntimeError, match="nothing like 'd 2'"):
        elided("...\nd 2\n", "a 1\nb 7\n")

"""What the page shows of programs with a description: keypoints, depth and embeddings."""

import numpy
import pytest
import torch
from PIL import Image
from playwright.sync_api import expect

from described_programs_test import ALLOW, BOXES, EXACT, LABELS, LETTERBOX, Classes, Depth, Grid, picture, write
from described_programs_test import ask as answer_of
from harness import Daemon
from page_fixtures import browser, colours, open_page, wait_for
from pictures import encoded

__all__ = ["browser", "open_page"]

FILE = encoded(picture(200, 300, 6))


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("described")
    torch.manual_seed(11)
    head = {"kind": "grid", "keypoints": 2, **BOXES}
    example = torch.zeros(1, 3, 192, 256)
    write(root, "points", Grid(points=2), {"input": LETTERBOX, "head": head, "labels": LABELS}, example)
    write(root, "depth", Depth(), {"input": EXACT, "head": {"kind": "depth"}})
    write(root, "embedding", Classes(32), {"input": EXACT, "head": {"kind": "embedding", "unit_length": True}})
    return root


@pytest.fixture(scope="module")
def daemon(repository, tmp_path_factory):
    with Daemon(repository, ALLOW, "--warm-up-seconds=0", log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


def sent(page, model, text):
    page.select_option("#model", model)
    page.set_input_files("#slot-0 input", {"name": "street.png", "mimeType": "image/png", "buffer": FILE})
    wait_for(page, text)


def findings(page):
    """Name and value of each row of the list."""
    return page.evaluate(
        """() => [...document.querySelectorAll("#findings li")].map(
          (one) => [one.querySelector("span:not(.swatch)").textContent, one.querySelector(".value").textContent])"""
    )


def test_every_model_can_be_chosen(open_page):
    page = open_page()
    expect(page.locator("#model option[disabled]")).to_have_count(0)
    for model in ("points", "depth", "embedding"):
        page.select_option("#model", model)
        expect(page.locator("#about")).not_to_contain_text("tensors")
        expect(page.locator("#slot-1")).to_be_hidden()


def test_depth_is_drawn_in_its_own_unit(open_page, daemon):
    page = open_page()
    sent(page, "depth", "of depth")
    told = answer_of(daemon, "depth", FILE).disparity
    assert findings(page) == [[f"{name} depth", f"{getattr(told, name):#.4g}"] for name in ("min", "mean", "max")]
    expect(page.locator("#scale-least")).to_have_text(f"{told.min:#.4g}")
    expect(page.locator("#scale-most")).to_have_text(f"{told.max:#.4g}")
    assert colours(page) > 10
    page.locator("#canvas").hover()
    expect(page.locator("#readout")).to_contain_text("of depth")
    assert "px" not in page.locator("#readout").text_content()


def test_an_embedding_is_its_length_and_first_values(open_page, daemon):
    page = open_page()
    sent(page, "embedding", "32 values of length 1.000")
    values = answer_of(daemon, "embedding", FILE).embedding.values
    assert findings(page) == [["length", "1.000"]] + [[f"value {n}", f"{value:#.4g}"] for n, value in enumerate(values[:8])]
    expect(page.locator("#scale")).to_be_hidden()


def overlay(page):
    """The picture as it is saved, which is three times as large."""
    with page.expect_download() as download:
        page.locator("#save-picture").click()
    with Image.open(download.value.path()) as saved:
        return numpy.array(saved.convert("RGB")).astype(int)


def test_keypoints_are_dots(open_page, daemon):
    page = open_page()
    sent(page, "points", "found")
    for box in ("#show-boxes", "#show-masks", "#show-labels"):
        page.locator(box).uncheck()
    page.locator("#score").fill("0")
    expect(page.locator("#findings .where").first).to_contain_text(", 2 keypoints")
    with_points = overlay(page)
    page.locator("#show-points").uncheck()
    changed = numpy.abs(with_points - overlay(page)).max(2) > 20
    assert changed.shape == (600, 900)
    points = [(3 * p.x, 3 * p.y, p.score) for one in answer_of(daemon, "points", FILE).detections.detections for p in one.keypoints]
    visible = [(x, y) for x, y, score in points if score >= 0.5 and 8 < x < 892 and 8 < y < 592]
    assert visible
    for x, y in visible:
        assert changed[int(y) - 3:int(y) + 4, int(x) - 3:int(x) + 4].any()
    ys, xs = numpy.nonzero(changed)
    away = numpy.min([numpy.hypot(xs + 0.5 - x, ys + 0.5 - y) for x, y, _ in points], 0)
    assert away.max() < 8, "only points have changed"


def test_keypoints_are_saved_as_cocos(open_page):
    first, second = open_page().evaluate(
        """async () => {
          const {cocoOf} = await import("/code.js"), box = {x_min: 0, y_min: 0, x_max: 9, y_max: 9};
          const points = [[3.5, 4.25, 0.75], [-2, 40.5, 0.25], [7, 8, 0], [1.5, 2.5, 0.5]];
          const keypoints = points.map(([x, y, score]) => ({x, y, score}));
          return cocoOf({detections: {detections: [{box, score: 1, class_index: "3", keypoints}, {box, score: 1, class_index: "3"}]}});
        }"""
    )
    assert first["keypoints"] == [3.5, 4.25, 2, -2, 40.5, 1, 0, 0, 0, 1.5, 2.5, 2] and first["num_keypoints"] == 3
    assert "keypoints" not in second and "num_keypoints" not in second

"""Tests the page's viewer in a headless Chromium: wheel, fingers, keys, full screen, and what is under the mouse."""

import numpy
import pytest
from playwright.sync_api import expect

from page_fixtures import ask, browser, daemon, open_page, repository, shots
from page_workbench_test import png

__all__ = ["browser", "daemon", "open_page", "repository", "shots"]


def test_the_viewer(open_page, shots):
    page = open_page()
    ask(page, "detector")
    view = lambda: page.evaluate("async () => (await import('/shown.js')).viewer.view")
    fit = view()
    box = page.locator("#canvas").bounding_box()
    # The point under the mouse stays where it is.
    at = (box["x"] + 0.25 * box["width"], box["y"] + 0.5 * box["height"])
    page.mouse.move(*at)
    page.mouse.wheel(0, -300)
    page.wait_for_function("async (scale) => (await import('/shown.js')).viewer.view.scale > scale", arg=fit["scale"])
    near = view()
    point = lambda one: (0.25 * box["width"] - one["x"]) / one["scale"]
    assert point(near) == pytest.approx(point(fit), abs=0.2)
    # Dragging moves it, and does not choose anything.
    page.mouse.down()
    page.mouse.move(at[0] - 60, at[1] - 40, steps=4)
    page.mouse.up()
    assert view()["x"] == pytest.approx(near["x"] - 60) and view()["y"] == pytest.approx(near["y"] - 40)
    expect(page.locator('#findings [aria-pressed="true"]')).to_have_count(0)
    page.screenshot(path=shots / "desk-zoomed.png", full_page=True)
    page.locator("#canvas").press("1")
    assert view()["scale"] == 1
    page.locator("#canvas").press("0")
    assert view() == fit
    # The best finding lies where its mask does; the mouse marks it in the list, and a click chooses it.
    best = page.locator("#findings button").first
    x = [int(part) for part in best.locator(".where").text_content().split(",")[0].removeprefix("x ").split("–")]
    y = [int(part) for part in best.locator(".where").text_content().split(",")[1].removeprefix(" y ").split("–")]
    middle = [box[side] + fit["scale"] * sum(span) / 2 for side, span in (("x", x), ("y", y))]
    page.mouse.move(*middle)
    expect(best).to_have_class("finding hovered")
    expect(page.locator("#readout")).to_contain_text(f"x {sum(x) // 2}")
    expect(page.locator("#readout")).to_contain_text("rug 99.6%")
    page.mouse.click(*middle)
    expect(best).to_have_attribute("aria-pressed", "true")
    # Values under the mouse, for maps.
    ask(page, "matcher")
    page.locator("#canvas").hover()
    expect(page.locator("#readout")).to_contain_text("px of disparity")


def test_two_fingers_enlarge_and_move(open_page):
    page = open_page("phone")
    ask(page, "detector")
    view = lambda: page.evaluate("async () => (await import('/shown.js')).viewer.view")
    page.locator("#canvas").scroll_into_view_if_needed()
    box, fit = page.locator("#canvas").bounding_box(), view()
    session = page.context.new_cdp_session(page)

    def touch(kind, *points):
        places = [{"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"], "id": at}
                  for at, (x, y) in enumerate(points)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    touch("touchStart", (0.4, 0.5), (0.6, 0.5))
    for step in range(1, 5):
        touch("touchMove", (0.4 - 0.05 * step, 0.5), (0.6 + 0.05 * step, 0.5))
    touch("touchEnd")
    page.wait_for_function("async (scale) => (await import('/shown.js')).viewer.view.scale > scale", arg=2 * fit["scale"])
    near = view()
    # From a fifth of the canvas to three fifths, around its middle.
    assert near["scale"] == pytest.approx(3 * fit["scale"], rel=0.02)
    middle = lambda one: (box["width"] / 2 - one["x"]) / one["scale"]
    assert middle(near) == pytest.approx(middle(fit), abs=1)
    # Enlarged, one finger moves the picture instead of the page.
    touch("touchStart", (0.5, 0.5))
    for step in range(1, 5):
        touch("touchMove", (0.5 - 0.05 * step, 0.5))
    touch("touchEnd")
    page.wait_for_function("async (x) => (await import('/shown.js')).viewer.view.x < x", arg=near["x"])
    assert view()["scale"] == near["scale"]
    # Neither chose anything.
    expect(page.locator('#findings [aria-pressed="true"]')).to_have_count(0)


def test_large_pixels_are_squares(open_page):
    """Up to four times as large they are smoothed, and beyond they are drawn as they are."""
    page = open_page()
    page.select_option("#model", "sanet_shapes")
    page.locator("#opacity").fill("0")
    black_and_white = numpy.zeros((60, 60, 3), numpy.uint8)
    black_and_white[::2] = 255
    page.set_input_files("#slot-0 input", png(black_and_white))
    expect(page.locator("#summary")).to_contain_text("%")
    expect(page.locator("#canvas.waiting")).to_have_count(0)
    shades = """async (scale) => {
      const {viewer} = await import("/shown.js");
      viewer.zoom(scale / viewer.view.scale);
      const {width, height} = viewer.canvas, out = new Set();
      const data = viewer.canvas.getContext("2d").getImageData(width / 2 - 20, height / 2 - 20, 40, 40).data;
      for (let at = 0; at < data.length; at += 4) out.add(data[at]);
      return [viewer.view.scale, out.size];
    }"""
    scale, count = page.evaluate(shades, 3.3)
    assert scale == pytest.approx(3.3) and count > 2
    scale, count = page.evaluate(shades, 20)
    assert scale == pytest.approx(20) and count == 2


def test_the_whole_screen(open_page):
    page = open_page()
    ask(page, "detector")
    shown = "() => document.fullscreenElement?.id"
    page.locator("#canvas").press("f")
    page.wait_for_function("() => document.fullscreenElement?.id === 'viewer'")
    page.locator("#canvas").press("f")
    page.wait_for_function("() => !document.fullscreenElement")
    page.locator("#full-screen").click()
    page.wait_for_function("() => document.fullscreenElement?.id === 'viewer'")
    # The picture fills what is there.
    page.wait_for_function(
        "async () => { const {viewer} = await import('/shown.js'); return viewer.isFit() && viewer.canvas.clientHeight > 800; }")
    assert page.evaluate(shown) == "viewer"
    page.locator("#full-screen").click()
    page.wait_for_function("() => !document.fullscreenElement")

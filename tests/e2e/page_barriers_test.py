"""Looks with axe-core for barriers in every state of the page, on screens of all sizes, light and dark."""

import importlib.resources

import numpy
import pytest
from playwright.sync_api import expect

from page_fixtures import DEMO, PAIR, SCENE, browser, daemon, open_page, rich_repository, shots, wait_for
from page_test import moving_frames, smooth, tiff
from tests.long_form import in_long_form

__all__ = ["browser", "daemon", "open_page", "shots"]
AXE = (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text()


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return rich_repository(tmp_path_factory.mktemp("barriers"))


def barriers(page):
    """What axe finds, as texts. Empty if the page has none."""
    found = page.evaluate("async () => (await axe.run(document)).violations")
    return [f"{one['id']}: {node['target']} {node['failureSummary']}" for one in found for node in one["nodes"]]


def attention(page, _):
    page.select_option("#model", "attending")
    page.set_input_files("#slot-0 input", DEMO / "pictures" / "star.jpg")
    wait_for(page, "attending 1")
    page.select_option("#attention", index=1)
    page.locator("#maps button").first.click()


def comparison(page, _):
    page.select_option("#model", "detector")
    page.set_input_files("#slot-0 input", SCENE)
    wait_for(page, "found")
    page.select_option("#rival", "detector 1")
    expect(page.locator("#compare")).to_be_visible()
    page.locator("#history-part summary").click()
    page.locator("#code summary").click()


def strip(page, _):
    page.select_option("#model", "sanet_shapes")
    page.set_input_files("#slot-0 input", sorted((DEMO / "pictures").glob("*.jpg")))
    expect(page.locator("#strip .where", has_text="%")).to_have_count(10)


def failure(page, _):
    page.select_option("#model", "detector")
    page.set_input_files("#slot-0 input", {"name": "b.png", "mimeType": "image/png", "buffer": b"no picture"})
    expect(page.locator("#problem")).to_be_visible()


def pair(page, _):
    page.select_option("#model", "matcher")
    page.set_input_files("#slot-0 input", PAIR)
    wait_for(page, "px of disparity")


def volume(page, _):
    page.select_option("#model", "volumes")
    page.set_input_files("#slot-0 input", tiff(smooth(numpy.uint16)))
    wait_for(page, "voxels")


def clip(page, folder):
    page.select_option("#model", "clips")
    page.locator("#score").fill("0.05")
    page.set_input_files("#slot-0 input", moving_frames(folder))
    wait_for(page, "found in")


def camera(page, _):
    page.select_option("#model", "detector")
    page.locator("#camera").click()
    expect(page.locator("#camera-part")).to_be_visible()


def load(page, _):
    page.locator("#tab-load").click()
    expect(page.locator("#chart-memory path")).not_to_have_count(0)


def loading(page, _):
    def with_newcomers(route):
        answer = route.fetch()
        states = answer.json()["states"]
        step = {"name": "warm_up", "done": 1, "of": 4, "seconds": 3}
        more = [{**states[0], "name": "newcomer", "state": "LOADING", "step": step},
                {**states[0], "name": "broken", "state": "UNAVAILABLE", "reason": "no weights"}]
        route.fulfill(response=answer, json={**answer.json(), "states": states + more})

    page.route("**/v1/load", with_newcomers)
    expect(page.locator("#states li")).to_have_count(2)


def stale(page, _):
    page.route("**/v1/load", lambda route: route.abort())
    expect(page.locator("#load.stale")).to_have_count(1)


# A wide dark screen and a narrow light one, in the long form all.
@pytest.mark.parametrize("look", ["dark", "phone", *in_long_form("desk", "tablet")])
def test_axe_finds_no_barriers(open_page, look, tmp_path):
    page = open_page(look, permissions=["camera"])
    page.evaluate(AXE)
    found = {"start": barriers(page)}
    for state in (attention, comparison, strip, failure, pair, volume, clip, camera, load, loading, stale):
        state(page, tmp_path)
        found[state.__name__] = barriers(page)
    assert {name: texts for name, texts in found.items() if texts} == {}
    # Otherwise it asks for its load once more, which fails, after the complaints were looked at.
    page.goto("about:blank")
    open_page.complaints[:] = [
        text for text in open_page.complaints if "status of 400" not in text and "net::ERR_FAILED" not in text]


def test_axe_finds_a_barrier_that_is_there(open_page):
    page = open_page()
    page.evaluate(AXE)
    page.evaluate("() => document.getElementById('ask').append(document.createElement('input'))")
    assert any(text.startswith("label: ") for text in barriers(page))


def test_motion_is_reduced_for_those_who_want_it(open_page):
    calm = open_page("phone", reduced_motion="reduce")
    moving = open_page("phone", reduced_motion="no-preference")
    transition = "() => getComputedStyle(document.getElementById('canvas')).transitionDuration"
    assert calm.evaluate(transition) == "0s" and moving.evaluate(transition) != "0s"

"""Tests what the page shows beside a single answer: attention at a point, two models compared, volumes in three planes, clips
that play, and the tab of the load."""

import json
import re
import shutil
import subprocess

import numpy
import pytest
from google.protobuf import json_format
from playwright.sync_api import expect

from harness import DEADLINE_SECONDS, Daemon, eventually, run_to_end
from messages import message, predict_request
from page_fixtures import (
    DEMO, HTML, LOOKS, SCENE, TRIED_LOOKS, browser, daemon, open_page, rich_repository, shots, wait_for, wait_for_drawing,
)
from page_test import grey_at, moving_frames, smooth, tiff
from page_workbench_test import pixel

__all__ = ["browser", "daemon", "open_page", "shots"]
STAR = DEMO / "pictures" / "star.jpg"
# What the page shows the star's classifiers: 240 x 240 pixels, of which the network sees the middle.
SIDE = 240


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return rich_repository(tmp_path_factory.mktemp("views"))


def click_at(page, x, y):
    """Clicks on the picture's pixel (x, y), which the view shows."""
    at = page.evaluate(
        """async ([x, y]) => {
          const {viewer: {view, canvas}} = await import("/shown.js"), box = canvas.getBoundingClientRect();
          return [box.left + view.x + view.scale * (x + 0.5), box.top + view.y + view.scale * (y + 0.5)];
        }""",
        [x, y],
    )
    page.mouse.click(*at)


def open_with(open_page, model, file, word, look="desk"):
    page = open_page(look)
    page.select_option("#model", model)
    page.set_input_files("#slot-0 input", file)
    wait_for(page, word)
    return page


@pytest.mark.parametrize("look", TRIED_LOOKS)
def test_a_point_is_asked_about(open_page, daemon, shots, look):
    page = open_with(open_page, "attending", STAR, "attending 1", look)
    page.select_option("#attention", index=1)
    expect(page.locator("#maps button")).to_have_count(1)
    expect(page.locator("#point-field")).to_be_visible()
    page.locator("#canvas").scroll_into_view_if_needed()
    with page.expect_request("**/v1/predict") as asked:
        click_at(page, 60, 100)
    [position] = json.loads(asked.value.post_data)["explain"]["positions"]
    layer = page.locator("#attention").input_value()
    first = page.locator("#maps button").first
    expect(first).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#attention-means")).to_contain_text("What the marked point looks at")
    # The daemon's own answer about this point, which lies in the cell that the position names.
    explain = message("saccade.v1.Explain")(layer=layer)
    explain.positions.add(**position)
    with daemon.vision() as vision:
        seen = vision.predict(predict_request(model="attending", encoded=STAR.read_bytes(), explain=explain)).explanation
    assert seen.seen.x + position["x"] * seen.seen.width == pytest.approx(60.5, abs=1)
    assert seen.seen.y + position["y"] * seen.seen.height == pytest.approx(100.5, abs=1)
    shown = [float(text) for text in first.locator(".where").first.text_content().split(" to ")]
    assert shown == pytest.approx([seen.maps[0].min, seen.maps[0].max], rel=0.01)
    page.screenshot(path=shots / f"{look}-point.png", full_page=True)
    # The keyboard chooses a point, too.
    with page.expect_request("**/v1/predict") as asked:
        page.locator("#point-x").fill("150")
        page.keyboard.press("Tab")
    [typed] = json.loads(asked.value.post_data)["explain"]["positions"]
    assert typed["x"] > position["x"] and typed["y"] == pytest.approx(position["y"], abs=0.01)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= LOOKS[look]["viewport"]["width"]


@pytest.mark.parametrize("task", ["classification", "detection", "segmentation", "depth", "embedding", "restoration"])
def test_a_request_about_a_point_has_the_fields_of_its_task(open_page, task):
    """The demo models with attention have not all these tasks."""
    body = open_page().evaluate(
        """async (task) => {
          const {requestOf} = await import("/request.js");
          const chosen = {name: "any", version: "1", isPinned: false, task, attention_layers: []};
          const picture = {full: {width: 4000, height: 3000}};
          return (await requestOf(chosen, [new File(["x"], "x.png")], picture, {x: 0.5, y: 0.5})).body;
        }""",
        task,
    )
    sent = json.loads(body)
    options = set(sent) - {"model", "encoded"}
    assert options == {"depth": {"stereo_options"}, "embedding": set()}.get(task, {task})
    json_format.Parse(body, message("saccade.v1.PredictRequest")())  # refuses fields that the API has not
    size = sent.get("stereo_options", sent.get("segmentation", {})).get("size")
    assert (size is not None) == (task in ("depth", "segmentation"))


def list_models_again(page):
    """Has the page fetch its list of models, as it does when the load tells of another model."""

    def with_a_newcomer(route):
        answer = route.fetch()
        load = answer.json()
        load["models"].append({**load["models"][0], "name": "newcomer"})
        route.fulfill(response=answer, json=load)

    page.evaluate("() => document.querySelectorAll('#model option').forEach((one) => one.className = 'old')")
    page.route("**/v1/load", with_a_newcomer)
    expect(page.locator("#model option:not(.old)")).not_to_have_count(0)
    page.unroute("**/v1/load", with_a_newcomer)


def test_a_point_is_asked_about_after_the_models_were_listed_again(open_page):
    page = open_with(open_page, "attending", STAR, "attending 1")
    page.select_option("#attention", index=1)
    expect(page.locator("#maps button")).to_have_count(1)
    list_models_again(page)
    with page.expect_request(re.compile("/v1/predict")) as asked:
        click_at(page, 60, 100)
    assert len(json.loads(asked.value.post_data or "{}").get("explain", {}).get("positions", [])) == 1
    # The answer marks it.
    expect(page.locator("#maps button").first).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#attention-means")).to_contain_text("What the marked point looks at")


def test_the_code_asks_about_the_point_too(open_page, tmp_path):
    page = open_with(open_page, "attending", STAR, "attending 1")
    page.select_option("#attention", index=1)
    expect(page.locator("#maps button")).to_have_count(1)
    with page.expect_response("**/v1/predict") as answered:
        click_at(page, 60, 100)
    expect(page.locator("#maps button").first).to_have_attribute("aria-pressed", "true")
    page.locator("#code summary").click()
    curl, python, _, _, command = page.locator("#codes pre").all_text_contents()
    shutil.copy(STAR, tmp_path)
    done = subprocess.run(["bash", "-c", curl], cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert json.loads(done.stdout)["explanation"] == answered.value.json()["explanation"]
    [(x, y)] = re.findall(r"positions=\[\(([\d.]+), ([\d.]+)\)\]", python)
    assert f" --explain-at {x},{y} " in command


def test_what_the_network_does_not_see_is_not_asked_about(open_page):
    page = open_with(open_page, "attending", STAR, "attending 1")
    page.select_option("#attention", index=1)
    expect(page.locator("#maps button")).to_have_count(1)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    click_at(page, 3, 3)
    expect(page.locator("#readout")).to_contain_text("does not see this point")
    assert [url for url in asked if "predict" in url] == []


def test_a_classifiers_map_lies_over_what_it_saw(open_page):
    page = open_with(open_page, "sanet_shapes", STAR, "star")
    before = {place: pixel(page, *place) for place in ((4, 4), (235, 120), (120, 120))}
    page.select_option("#attention", index=1)
    page.locator("#opacity").fill("1")
    maps = page.locator("#maps button")
    maps.first.click()
    expect(maps.first).to_have_attribute("aria-pressed", "true")
    # The network saw the middle 7/8 of the picture: pixels 15 to 225.
    assert pixel(page, 4, 4) == before[4, 4] and pixel(page, 235, 120) == before[235, 120]
    corner = page.evaluate(
        """() => [...document.querySelector("#maps canvas").getContext("2d").getImageData(0, 0, 1, 1).data].slice(0, 3)""")
    for place in ((16, 16), (30, 30)):
        assert numpy.abs(numpy.subtract(pixel(page, *place), corner)).max() <= 2
    # A click tells what each map has at the point, and lays the one over it that stands out most.
    click_at(page, 120, 120)
    expect(page.locator("#maps .here").first).to_contain_text("at the point: ")
    expect(page.locator("#maps button[aria-pressed=true]")).to_have_count(1)


def test_maps_share_a_scale_or_do_not(open_page):
    page = open_with(open_page, "sanet_shapes", STAR, "star")
    page.select_option("#attention", index=1)
    texts = page.locator("#maps button .where:not(.here)")
    expect(texts.first).to_contain_text(" to ")
    ranges = [[float(part) for part in text.split(" to ")] for text in texts.all_text_contents()]
    scale = lambda: [float(page.locator(f"#attention-{end}").text_content()) for end in ("least", "most")]
    assert scale() == [min(least for least, _ in ranges), max(most for _, most in ranges)]
    page.locator("#one-scale").uncheck()
    page.locator("#maps button").nth(1).click()
    assert scale() == ranges[1]


def test_layers_change_with_the_keyboard(open_page):
    page = open_with(open_page, "detector", SCENE, "found")
    page.locator("#canvas").focus()
    page.keyboard.press("]")
    first = page.locator("#attention").input_value()
    assert first
    expect(page.locator("#attention-title")).to_have_text(f"Attention of {first}")
    page.keyboard.press("]")
    expect(page.locator("#attention")).not_to_have_value(first)
    for _ in range(2):
        page.keyboard.press("[")
    expect(page.locator("#attention")).to_have_value("")


def test_every_map_is_explained_by_a_sentence(open_page):
    """The names of the table in docs/api.md."""
    page = open_page()
    names = ["key 0", "head 0", "head 0 columns", "head 0 rows", "centre", "position 0 head 1", "position 0 head 0 content",
             "position 0 head 0 axial", "position 0 head 0 column", "position 0 head 0 row"]
    tell = """async ([names, all]) => {
      const {meaningOf} = await import("/attention.js");
      return names.map((name) => meaningOf(name, all));
    }"""
    told = page.evaluate(tell, [names, names])
    assert all(text.endswith(".") for text in told) and len(set(told)) == len(names)
    # The same name stands for something else without its factors.
    [siamese] = page.evaluate(tell, [["head 0"], ["head 0", "head 1"]])
    assert "common" in siamese and "mean position" in told[1]


@pytest.mark.parametrize("look", TRIED_LOOKS)
def test_two_versions_are_compared(open_page, shots, look):
    page = open_with(open_page, "detector", SCENE, "detector 2", look)
    listed = page.locator("#findings li").count()
    with page.expect_request(re.compile(r"/v1/predict/detector\?.*version=1")):
        page.select_option("#rival", "detector 1")
    # Both have the same weights.
    expect(page.locator("#compare-summary")).to_have_text(
        f"{listed} in both, 0 only in detector 2, 0 only in detector 1")
    expect(page.locator("#compared tr", has_text="100%")).to_have_count(listed)
    for stage in ("decode", "queue", "infer", "encode", "total"):
        times = page.locator("#compared tr", has=page.locator("th", has_text=re.compile(f"^{stage}$"))).locator("td")
        assert [text.endswith(" ms") for text in times.all_text_contents()[:2]] == [True, True]
    page.screenshot(path=shots / f"{look}-compare.png", full_page=True)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= LOOKS[look]["viewport"]["width"]
    # The filter acts on both, without a request.
    page.locator("#score").fill("0.8")
    fewer = page.locator("#findings li").count()
    assert fewer < listed
    expect(page.locator("#compare-summary")).to_contain_text(f"{fewer} in both")
    page.select_option("#rival", "")
    expect(page.locator("#compare")).to_be_hidden()


def test_a_rival_without_an_answer_leaves_the_first_one(open_page):
    page = open_with(open_page, "detector", SCENE, "detector 2")
    error = json.dumps({"error": HTML})
    page.route(re.compile("version=1"), lambda route: route.fulfill(status=503, body=error, content_type="application/json"))
    page.select_option("#rival", "detector 1")
    expect(page.locator("#problem")).to_have_text(f"detector 1 has no answer to compare with: {HTML}")
    wait_for(page, "found · detector 2")
    expect(page.locator("#compare")).to_be_hidden()
    open_page.complaints[:] = [text for text in open_page.complaints if "status of 503" not in text]


def test_no_other_model_ends_a_comparison_that_is_under_way(open_page):
    page = open_with(open_page, "detector", SCENE, "detector 2")
    held = []
    page.route(re.compile("version=1"), lambda route: held.append(route))
    with page.expect_request(re.compile("version=1")):
        page.select_option("#rival", "detector 1")
    eventually(lambda: page.evaluate("() => true") and held, "the request is held")
    page.select_option("#rival", "")
    with page.expect_response(re.compile("version=1")):
        held[0].continue_()
    wait_for(page, "found · detector 2")
    expect(page.locator("#compare")).to_be_hidden()


def test_the_swipe_shows_one_model_left_and_the_other_right(open_page):
    page = open_with(open_page, "detector", SCENE, "detector 2")
    page.locator("#score").fill("0")
    page.locator("#show-labels").uncheck()
    page.locator("#show-boxes").uncheck()
    picture = "() => document.getElementById('canvas').toDataURL()"
    page.select_option("#rival", "rival 1")
    expect(page.locator("#compare")).to_be_visible()
    texts = page.locator("#compare-summary").text_content()
    assert re.fullmatch(r"\d+ in both, \d+ only in detector 2, \d+ only in rival 1", texts)
    drawn = set()
    for share in ("0", "0.5", "1"):
        page.locator("#swipe").fill(share)
        expect(page.locator("#swipe-shown")).to_have_text(f"{100 * float(share):.0f}%")
        drawn.add(page.evaluate(picture))
    assert len(drawn) == 3


def test_findings_are_matched_by_their_overlap(open_page):
    """Pairs of one class with at least half in common, the best first, each finding once."""
    page = open_page()
    box = lambda x, label, score=0.9: {
        "box": {"x_min": x, "y_min": 0, "x_max": x + 10, "y_max": 10}, "label": label, "class_index": "1", "score": score}
    answer = lambda *found: {"detections": {"detections": list(found)}}
    first = answer(box(0, "cat"), box(1, "cat"), box(50, "cat"), box(80, HTML))
    second = answer(box(1, "cat"), box(50, "dog"), box(56, "cat"), box(80, HTML))
    found = page.evaluate(
        """async ([a, b]) => {
          const {compared} = await import("/matching.js");
          return compared(a, b, [0, 1, 2, 3], [0, 1, 2, 3]);
        }""",
        [first, second],
    )
    assert [(row["places"], round(row["overlap"], 3)) for row in found["both"]] == [([1, 0], 1), ([3, 3], 1)]
    assert [row["places"] for row in found["first"]] == [[0, None], [2, None]]
    assert [row["places"] for row in found["second"]] == [[None, 1], [None, 2]]
    assert page.evaluate(
        """async () => (await import("/matching.js")).iouOfBoxes(
          {x_min: 0, y_min: 0, x_max: 10, y_max: 10}, {x_min: 5, y_min: 0, x_max: 15, y_max: 10})""") == pytest.approx(1 / 3)


@pytest.mark.parametrize("look", TRIED_LOOKS)
def test_volumes_in_three_planes(open_page, shots, look):
    page = open_page(look)
    page.select_option("#model", "volumes")
    planes = smooth(numpy.uint16)
    page.set_input_files("#slot-0 input", tiff(planes))
    wait_for(page, "12 × 24 × 20 voxels")
    page.screenshot(path=shots / f"{look}-planes.png", full_page=True)
    for slider, value in (("plane", 3), ("row", 5), ("column", 7), ("level", 600), ("window", 400)):
        page.locator(f"#{slider}").fill(str(value))
    # From 400 to 800, as far as they are shown as bytes.
    grey = lambda value: 255 * min(1, max(0, (int(value) - 400) / 400))
    for canvas, x, y, voxel in (("before", 2, 4, planes[3, 4, 2]), ("before-y", 2, 11, planes[11, 5, 2]),
                                ("before-x", 23, 1, planes[1, 23, 7]), ("before", 19, 23, planes[3, 23, 19])):
        assert abs(grey_at(page, canvas, x, y) - grey(voxel)) <= 1, canvas
    readout = page.locator("#voxel").text_content()
    sent, answered, change = re.fullmatch(
        r"x 7, y 5, z 3 · sent (\S+) · answer (\S+) · difference (\S+)", readout).groups()
    assert int(sent) == planes[3, 5, 7] and float(answered) - float(sent) == float(change)
    # White where nothing has changed, else red or blue.
    red, _, blue = page.evaluate(
        """() => [...document.getElementById("difference").getContext("2d").getImageData(7, 5, 1, 1).data].slice(0, 3)""")
    assert (red > blue) == (float(change) > 0) or red == blue
    # A click chooses the voxel, in each plane.
    page.locator("#before-y").click()
    expect(page.locator("#plane-shown")).to_have_text(re.compile("[67] of 12"))
    assert page.evaluate("() => document.documentElement.scrollWidth") <= LOOKS[look]["viewport"]["width"]


def test_frames_play_along_the_timeline(open_page, tmp_path):
    page = open_page()
    page.select_option("#model", "clips")
    page.locator("#score").fill("0.05")
    page.set_input_files("#slot-0 input", moving_frames(tmp_path))
    wait_for(page, "found in 40 frames")
    expect(page.locator("#frame-shown")).to_have_text("1 of 40")
    picture = "() => document.getElementById('canvas').toDataURL()"
    before = page.evaluate(picture)
    page.locator("#play").click()
    expect(page.locator("#play")).to_have_text("Pause")
    page.wait_for_function("() => Number(document.getElementById('frame').value) >= 3")
    page.locator("#play").click()
    expect(page.locator("#play")).to_have_text("Play")
    place = int(page.locator("#frame").input_value())
    assert page.evaluate("() => parseFloat(document.getElementById('head').style.left)") == pytest.approx(100 * place / 40)
    page.wait_for_function(f"(before) => ({picture})() !== before", arg=before)
    # The bars of what happens at that frame are marked.
    page.locator("#frame").fill("39")
    now = page.evaluate(
        """() => [...document.querySelectorAll(".happening")].filter((one) => one.classList.contains("now") !==
          (3.9 >= Number(one.dataset.start) && 3.9 < Number(one.dataset.end))).length""")
    assert now == 0
    # At the end it starts anew, and ends by itself.
    page.locator("#frame").fill("37")
    page.locator("#play").click()
    expect(page.locator("#frame-shown")).to_have_text("40 of 40")
    expect(page.locator("#play")).to_have_text("Play")
    # Asked again, it stays at the frame that the slider names.
    wait_for_drawing(page)
    last = page.evaluate(picture)
    assert last != before
    with page.expect_response(re.compile("/v1/predict")):
        page.locator("#send").click()
    wait_for_drawing(page)
    expect(page.locator("#frame-shown")).to_have_text("40 of 40")
    page.wait_for_function(f"(last) => ({picture})() === last", arg=last)


@pytest.mark.parametrize("look", TRIED_LOOKS)
def test_the_load_has_a_tab(open_page, daemon, shots, look):
    page = open_page(look)
    page.locator("#tab-ask").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-load")).to_be_focused()
    expect(page.locator("#load-view")).to_be_visible()
    expect(page.locator("#ask-view")).to_be_hidden()
    version = run_to_end("--version").stdout.split()[-1]
    expect(page.locator("#facts")).to_contain_text(version)
    expect(page.locator("#facts dd").nth(1)).to_have_text("cpu")
    request = predict_request(model="sanet_shapes", encoded=STAR.read_bytes())
    charts = ("requests", "latency", "stages", "batches", "queue", "memory")
    with daemon.vision() as vision:
        for _ in range(20):
            vision.predict(request)
    expect(page.locator("#chart-batches rect")).not_to_have_count(0)
    for name in charts:
        chart = page.locator(f"#chart-{name}")
        # An axis from zero, in a unit, and a text for those who do not see the lines.
        assert chart.locator("text").first.text_content().startswith("0")
        assert chart.locator("line").count() >= 2
        assert ": " in chart.locator("svg").get_attribute("aria-label")
    page.select_option("#load-model", "segmenter 1")
    expect(page.locator("#chart-batches rect")).to_have_count(0)
    expect(page.locator("#loading")).to_be_hidden()
    page.screenshot(path=shots / f"{look}-load-tab.png", full_page=True)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= LOOKS[look]["viewport"]["width"]
    page.keyboard.press("Home")


def test_axes_have_round_numbers(open_page):
    page = open_page()
    ticks = lambda most: page.evaluate("async (most) => (await import('/charts.js')).ticksOf(most)", most)
    assert ticks(0.29) == pytest.approx([0, 0.1, 0.2, 0.3])
    assert ticks(30) == [0, 10, 20, 30] and ticks(31) == [0, 20, 40] and ticks(7) == [0, 5, 10]
    assert ticks(0) == [0, 1]


def test_counters_of_all_models_are_added(open_page):
    page = open_page()
    one = {"answered": 2, "failed": 1, "pictures": 2, "passes": 2, "queued": 1, "seconds": {"infer": 0.5},
           "failed_by_reason": {"REJECTED": 1, "CANCELED": 0, "BACKEND": 0, "OTHER": 0},
           "passes_by_batch_size": {"1": 2}, "answered_by_seconds": [[0.1, 1], [None, 2]]}
    other = {**one, "passes_by_batch_size": {"1": 1, "4": 3}, "queued": 5}
    total = page.evaluate("async (models) => (await import('/load.js')).summed(models)", [one, other])
    assert (total["answered"], total["queued"], total["seconds"]["infer"]) == (4, 6, 1)
    assert total["passes_by_batch_size"] == {"1": 3, "4": 3} and total["answered_by_seconds"] == [[0.1, 2], [None, 4]]
    assert total["failed_by_reason"]["REJECTED"] == 2


def loaded(version, answered, queued=0):
    """A model version in an answer of /v1/load, with as many passes as answers."""
    return {"name": "net", "version": version, "answered": answered, "failed": 0, "pictures": answered, "passes": answered,
            "queued": queued, "seconds": {name: answered / 10 for name in ("decode", "queue", "infer", "encode")},
            "failed_by_reason": {"REJECTED": 0, "CANCELED": 0, "BACKEND": 0, "OTHER": 0},
            "passes_by_batch_size": {"1": answered}, "answered_by_seconds": [[0.1, answered], [None, answered]]}


def courses(page, answers, key=""):
    """(age, requests per second, requests that wait) of each answer but the first; `answers` are times and model versions."""
    rest = {"states": [], "gpus": [], "memory": {"resident_bytes": 1}}
    made = [{"time": time, "models": models, **rest} for time, *models in answers]
    course = page.evaluate(
        """async ([answers, key]) => {
          const {courseOf, keep} = await import("/load.js"), kept = [];
          for (const answer of answers) keep(kept, answer);
          return courseOf(kept, key);
        }""",
        [made, key],
    )
    return [(one["age"], pytest.approx(one["requests"]), one["queued"]) for one in course]


def test_rates_are_those_of_versions_that_are_loaded_again(open_page):
    page = open_page()
    # Version 2 replaces version 1, which is not listed any more: all its answers stay counted.
    replaced = [(100, loaded(1, 3000)), (101, loaded(1, 3010, 4), loaded(2, 0)), (102, loaded(2, 10, 2)), (103, loaded(2, 20))]
    assert courses(page, replaced) == [(2, 10, 4), (1, 10, 2), (0, 10, 0)]
    assert courses(page, replaced, "net 2") == [(2, 0, 0), (1, 5, 2), (0, 20 / 3, 0)]
    assert courses(page, replaced, "net 1") == [(2, 10, 4)]
    # Unloaded and loaded again, a version counts from zero.
    again = [(100, loaded(1, 3000)), (101, loaded(1, 3010)), (102,), (103, loaded(1, 10)), (104, loaded(1, 20, 1))]
    assert courses(page, again) == [(3, 10, 0), (2, 5, 0), (1, 20 / 3, 0), (0, 7.5, 1)]
    assert courses(page, again, "net 1") == [(3, 10, 0), (1, 20 / 3, 0), (0, 7.5, 1)]


def test_rates_are_those_of_seconds(open_page):
    page = open_page()
    # Once per second, a little late: 59 answers are of the last minute, and rates are of ten seconds.
    steady = courses(page, [(1000 + 1.03 * i, loaded(1, 10 * i * i)) for i in range(70)])
    assert len(steady) == 58 and steady[-1][1] == (10 * 69**2 - 10 * 59**2) / 10.3
    # The page was hidden for half a minute, and for half an hour.
    assert courses(page, [(100, loaded(1, 0)), (130, loaded(1, 3000)), (131, loaded(1, 3005))]) == [(0, 5, 0)]
    assert courses(page, [(100, loaded(1, 3000)), (1900, loaded(1, 10)), (1901, loaded(1, 20))]) == [(0, 10, 0)]
    # The daemon's clock was set back.
    assert courses(page, [(5000, loaded(1, 0)), (100, loaded(1, 10)), (101, loaded(1, 20))]) == [(0, 10, 0)]


def test_what_loads_is_told(open_page):
    page = open_page(address="#tab=load")
    steps = [None]

    def with_a_newcomer(route):
        answer = route.fetch()
        load = answer.json()
        load["states"].append({**load["states"][0], "name": HTML, "version": 3, "state": "LOADING", "device": "", "step": steps[0]})
        route.fulfill(response=answer, json=load)

    page.route("**/v1/load", with_a_newcomer)
    told = page.locator("#states li")
    shares = []
    for name, (done, of), text in (("waiting", (0, 0), "waits to be loaded"), ("checking", (0, 0), "checking its files"),
                                   ("precision", (0, 0), "choosing its precision"), ("reading", (0, 0), "reading and packing"),
                                   ("trial", (0, 0), "timing passes"), ("warm_up", (1, 4), "warming up, 1 of 4 batches"),
                                   ("warm_up", (4, 4), "warming up, 4 of 4 batches")):
        steps[0] = {"name": name, "done": done, "of": of, "seconds": 12.3}
        since = "" if name == "waiting" else "loading for 12 s: "
        expect(told).to_have_text(re.compile(rf"^<img src=x onerror=alert\(1\)> 3 {since}{text}"))
        shares.append(told.locator("progress").evaluate("(one) => one.value"))
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == 1 and len(set(shares[1:])) == 6
    ready, every = re.fullmatch(r"(\d+) of (\d+) model versions are ready", page.locator("#ready-text").text_content()).groups()
    assert int(every) == int(ready) + 1
    assert page.locator("#ready").evaluate("(one) => [one.value, one.max]") == [int(ready), int(every)]
    page.unroute("**/v1/load", with_a_newcomer)
    expect(page.locator("#loading")).to_be_hidden()


def test_the_memory_of_gpus_is_told_where_there_are_some(open_page):
    page = open_page(address="#tab=load")
    memory = page.locator("#facts div", has_text="Memory of the GPUs").locator("dd")
    expect(memory).to_have_text("– (no GPU)")
    expect(page.locator("#chart-memory path")).to_have_count(1)

    def with_gpus(route):
        answer = route.fetch()
        gpus = [{"uuid": "GPU-1", "used_bytes": 3 << 30, "total_bytes": 80 << 30, "utilization": 0.5},
                {"uuid": "GPU-2", "used_bytes": None, "total_bytes": None, "utilization": None}]
        route.fulfill(response=answer, json={**answer.json(), "gpus": gpus})

    page.route("**/v1/load", with_gpus)
    expect(memory).to_have_text("3072 MiB of 81920 MiB used, not known")
    expect(page.locator("#chart-memory path")).to_have_count(2)
    expect(page.locator("#chart-memory figcaption")).to_contain_text("GPUs, of all programs 3070 MiB")
    page.unroute("**/v1/load", with_gpus)
    expect(memory).to_have_text("– (no GPU)")


def test_what_is_not_ready_is_told(browser, repository, tmp_path):
    """A model that loads, and one that cannot be loaded, with its reason."""
    broken = tmp_path / "repository" / "broken"
    (broken / "1").mkdir(parents=True)
    (broken / "1" / "weights.safetensors").write_text("no weights")
    (broken / "config.pbtxt").write_text('parameters { key: "architecture" value { string_value: "sanet" } }')
    with Daemon(tmp_path / "repository", "--warm-up-seconds=0", "--exit-on-error=false", log_folder=tmp_path) as running:
        running.await_ports()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{running.http_port}/#tab=load")
        expect(page.locator("#states")).to_contain_text("broken")
        expect(page.locator("#states .bad")).to_contain_text("not served: ", timeout=1000 * DEADLINE_SECONDS)
        expect(page.locator("#ready-text")).to_have_text("0 of 1 model versions are ready")
        assert page.locator("#ready").evaluate("(one) => [one.value, one.max]") == [0, 1]
        page.close()

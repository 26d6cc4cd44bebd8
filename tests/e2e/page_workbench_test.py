"""Tests the page's tools in a headless Chromium: the viewer, the filter, files of all kinds, and what the page shows when
something fails."""

import base64
import contextlib
import io
import re

import grpc
import numpy
import pytest
from PIL import Image
from playwright.sync_api import expect

import pictures
from harness import Daemon, eventually, write_secret
from messages import predict_request
from page_fixtures import DEMO, SCENE, ask, browser, daemon, open_page, repository, shots

__all__ = ["browser", "daemon", "open_page", "repository", "shots"]

PREDICT = "**/v1/predict/**"
UNDER_WAY = re.compile("sending|waiting for the answer")


def png(pixels):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return {"name": "a.png", "mimeType": "image/png", "buffer": out.getvalue()}


def transfer(page, files):
    """A DataTransfer of (name, bytes)."""
    return page.evaluate_handle(
        """(files) => {
          const all = new DataTransfer();
          for (const [name, base64] of files) {
            all.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name, {type: "image/png"}));
          }
          return all;
        }""",
        [[name, base64.b64encode(content).decode()] for name, content in files],
    )


def pixel(page, x, y):
    """The colour on the canvas where the view shows the middle of the picture's pixel (x, y)."""
    return page.evaluate(
        """async ([x, y]) => {
          const {viewer} = await import("/shown.js"), {view} = viewer;
          const at = (place, offset) => Math.round(devicePixelRatio * (offset + view.scale * (place + 0.5)));
          return [...viewer.canvas.getContext("2d").getImageData(at(x, view.x), at(y, view.y), 1, 1).data].slice(0, 3);
        }""",
        [x, y],
    )


def hold_requests(page):
    """Keeps predictions from reaching the daemon until the returned list is worked off."""
    held = []
    page.route(PREDICT, lambda route: held.append(route))
    return held


def test_the_picture_is_shown_before_its_answer(open_page, shots):
    page = open_page()
    ask(page, "detector")
    held = hold_requests(page)
    page.set_input_files("#slot-0 input", DEMO / "scenes" / "1.png")
    expect(page.locator("#summary")).to_have_text(UNDER_WAY)
    expect(page.locator("#progress")).to_be_visible()
    # The new picture without the old answer.
    assert page.locator("#findings li").count() == 0 and page.locator("#timings dt").count() == 0
    with Image.open(DEMO / "scenes" / "1.png") as picture:
        assert numpy.abs(numpy.subtract(pixel(page, 3, 5), picture.convert("RGB").getpixel((3, 5)))).max() <= 2
    page.screenshot(path=shots / "desk-waiting.png", full_page=True)
    held.pop().continue_()
    expect(page.locator("#summary")).to_contain_text("found")
    expect(page.locator("#progress")).to_be_hidden()
    # A change of the model removes the answer of the other one.
    page.unroute(PREDICT)
    held = hold_requests(page)
    page.select_option("#model", "segmenter")
    expect(page.locator("#summary")).to_have_text(UNDER_WAY)
    assert page.locator("#findings li").count() == 0
    held.pop().continue_()
    expect(page.locator("#summary")).to_contain_text("segmenter 1")


def test_an_error_leaves_no_answer_behind(open_page):
    page = open_page()
    ask(page, "detector")
    page.set_input_files("#slot-0 input", {"name": "b.png", "mimeType": "image/png", "buffer": b"no picture"})
    expect(page.locator("#problem")).to_contain_text("not a readable picture")
    expect(page.locator("#summary")).to_have_text("No answer: see above.")
    assert page.locator("#findings li").count() == 0 and not page.locator("#canvas").is_visible()
    ask(page, "detector")
    open_page.complaints[:] = [text for text in open_page.complaints if "status of 400" not in text]


def test_files_larger_than_a_message_are_not_read(browser, repository, tmp_path):
    with Daemon(repository, "--max-message-bytes=50000", "--warm-up-seconds=0", log_folder=tmp_path) as running:
        running.await_ready()
        page = browser.new_page()
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"http://127.0.0.1:{running.http_port}/")
        expect(page.locator("#daemon")).to_contain_text("connected")
        page.select_option("#model", "detector")
        page.set_input_files("#slot-0 input", {"name": "c.png", "mimeType": "image/png", "buffer": bytes(60_000)})
        expect(page.locator("#problem")).to_contain_text("c.png has 0.1 MiB; this daemon takes messages up to 0.0 MiB")
        expect(page.locator("#problem")).to_contain_text("--max-message-bytes")
        assert [url for url in asked if "predict" in url] == []
        page.close()


def test_a_daemon_that_hangs_is_named_also_in_a_hidden_tab(browser, daemon):
    page = browser.new_page()
    page.add_init_script("Object.defineProperty(document, 'hidden', {value: true})")
    held = []
    page.route("**/v1/load", lambda route: route.continue_() if held else held.append(route))
    page.goto(f"http://127.0.0.1:{daemon.http_port}/")
    expect(page.locator("#daemon")).to_contain_text("does not answer; trying again")
    expect(page.locator("#daemon")).to_contain_text("connected")
    page.close()


def test_every_control_has_a_name(open_page):
    page = open_page()
    ask(page, "detector")
    for name in ("Score from", "Masks from probability", "Overlay"):
        expect(page.get_by_role("slider", name=name, exact=True)).to_be_visible()
    assert page.locator("#plane").evaluate("(one) => [...one.labels].map((label) => label.textContent)") == ["Plane"]
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("input, select, button")].filter((one) =>
          ![...(one.labels ?? [])].some((label) => label.textContent.trim()) && !one.ariaLabel && !one.textContent.trim()
        ).map((one) => one.outerHTML)"""
    )
    assert unnamed == []


def test_files_come_from_everywhere(open_page, shots):
    page = open_page()
    page.select_option("#model", "detector")
    scene = SCENE.read_bytes()
    page.dispatch_event("#answer", "drop", {"dataTransfer": transfer(page, [(f"{n}.png", scene) for n in range(20, 0, -1)])})
    expect(page.locator("#slot-0 .slot-file")).to_have_text("1.png")
    # All twenty are answered, and the one that is pressed is shown.
    expect(page.locator("#summary")).to_contain_text("found")
    expect(page.locator("#strip .where", has_text="8 found")).to_have_count(20)
    second = page.locator("#strip button").nth(1)
    second.click()
    expect(page.locator("#slot-0 .slot-file")).to_have_text("2.png")
    expect(second).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#canvas.waiting")).to_have_count(0)
    page.screenshot(path=shots / "desk-strip.png", full_page=True)
    page.select_option("#model", "segmenter")
    expect(page.locator("#strip .where", has_text="classes")).to_have_count(20)
    # A model of volumes takes none of them.
    page.select_option("#model", "volumes")
    expect(page.locator("#strip")).to_be_hidden()
    expect(page.locator("#problem")).to_be_visible()
    page.select_option("#model", "matcher")
    page.dispatch_event("#answer", "drop", {"dataTransfer": transfer(page, [(f"{n}.png", scene) for n in range(3)])})
    expect(page.locator("#left")).to_have_text(
        "3 files were given, and this model takes two at a time: 0.png and 1.png were taken.")
    expect(page.locator("#summary")).to_contain_text("px of disparity")
    page.select_option("#model", "detector")
    page.evaluate(
        """(data) => document.body.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true}))""",
        transfer(page, [("pasted.png", scene)]),
    )
    expect(page.locator("#slot-0 .slot-file")).to_have_text("pasted.png")
    expect(page.locator("#left")).to_be_empty()
    expect(page.locator("#strip")).to_be_hidden()
    expect(page.locator("#summary")).to_contain_text("found")
    # The browser reports the status 400 of the model of volumes as well.
    open_page.complaints[:] = [text for text in open_page.complaints if "status of 400" not in text]


def test_the_strip_follows_the_filter(open_page):
    page = open_page()
    page.select_option("#model", "detector")
    page.dispatch_event("#answer", "drop", {"dataTransfer": transfer(page, [(f"{n}.png", SCENE.read_bytes()) for n in range(2)])})
    expect(page.locator("#strip .where", has_text="8 found")).to_have_count(2)
    expect(page.locator("#summary")).to_contain_text("8 found")
    page.locator("#score").fill("0.8")
    fewer = page.locator("#findings li").count()
    assert 0 < fewer < 8
    assert page.locator("#strip .where").all_text_contents() == [f"{fewer} found"] * 2
    page.locator("#score").fill("0.3")
    assert page.locator("#strip .where").all_text_contents() == ["8 found"] * 2


def test_a_model_that_lacks_files_shows_no_old_answer(open_page):
    page = open_page()
    names = page.locator(".slot-file")
    missing = names.all_text_contents()
    ask(page, "detector")
    page.locator("#findings button").first.click()
    expect(page.locator("#save-cut-out")).to_be_enabled()
    page.select_option("#model", "matcher")
    expect(page.locator("#canvas")).to_be_hidden()
    expect(page.locator("#tools")).to_be_hidden()
    expect(page.locator("#save-cut-out")).to_be_disabled()
    expect(page.locator("#summary")).to_have_text("Choose a picture, and the answer is drawn over it.")
    assert names.all_text_contents() == ["0.png", missing[1]]
    # The right picture of a pair is gone when one picture takes the place of both.
    ask(page, "matcher")
    assert names.all_text_contents() == ["0-left.png", "0-right.png"]
    ask(page, "detector")
    page.select_option("#model", "matcher")
    assert names.all_text_contents() == ["0.png", missing[1]]


def test_no_more_than_two_of_a_strip_are_asked_at_once(open_page):
    page = open_page()
    page.select_option("#model", "sanet_shapes")
    held, open_gate = [], []
    page.route(PREDICT, lambda route: route.continue_() if open_gate else held.append(route))
    page.dispatch_event("#answer", "drop", {"dataTransfer": transfer(page, [(f"{n}.png", SCENE.read_bytes()) for n in range(6)])})
    expect(page.locator("#strip .where", has_text="asked")).to_have_count(2)
    expect(page.locator("#strip .where", has_text="waiting")).to_have_count(4)
    # Those two, and the request for the picture that is shown.
    page.wait_for_function("() => document.getElementById('summary').textContent === 'sending'")
    assert len(held) <= 3
    open_gate.append(True)
    for route in held:
        route.continue_()
    expect(page.locator("#strip .where", has_text="%")).to_have_count(6)


def test_the_filter_acts_without_a_request(open_page, shots):
    page = open_page()
    ask(page, "detector")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    some = page.locator("#findings li").count()
    page.locator("#score").fill("0.05")
    more = page.locator("#findings li").count()
    assert more > some
    assert page.locator("#histogram i").count() == 20
    bars = page.evaluate("() => [...document.querySelectorAll('#histogram i')].map((bar) => parseFloat(bar.style.height))")
    assert max(bars) == 100 and min(bars) == 0
    # Each class's box removes as many findings as it says there are.
    first = page.locator("#classes label").first
    name, count = first.text_content().strip().rstrip(")").rsplit(" (", 1)
    page.locator("#score").fill("0")
    everything = page.locator("#findings li").count()
    before = page.evaluate("() => document.getElementById('canvas').toDataURL()")
    first.locator("input").uncheck()
    assert page.locator("#findings li").count() == everything - int(count)
    assert name not in page.locator("#findings li").all_text_contents()
    for box in ("#show-boxes", "#show-masks", "#show-labels"):
        changed = page.evaluate("() => document.getElementById('canvas').toDataURL()")
        assert changed != before
        page.locator(box).uncheck()
        before = changed
    page.screenshot(path=shots / "desk-filter.png", full_page=True)
    assert [url for url in asked if "predict" in url] == []


def test_labels_do_not_cover_each_other(open_page):
    """Fifteen boxes at one place, and some at the edges: there is room for all labels, so none overlaps another."""
    page = open_page()
    labels = page.evaluate(
        """async () => {
          const {placeLabels} = await import("/boxes.js");
          const box = (left, top, n) => ({left, top, right: left + 60, bottom: top + 40, wide: 80, text: `${n}`, n});
          const boxes = Array.from({length: 15}, (_, n) => box(200 + n, 150 + n, n));
          return placeLabels([...boxes, box(-20, -10, 15), box(580, 380, 16)], {width: 600, height: 400});
        }"""
    )
    assert len(labels) == 17
    for i, one in enumerate(labels):
        assert 0 <= one["x"] <= 600 - 80 and 0 <= one["y"] <= 400 - 18
        for other in labels[:i]:
            assert abs(one["x"] - other["x"]) >= 80 or abs(one["y"] - other["y"]) >= 18


def test_objects_of_one_class_differ_in_colour(open_page):
    page = open_page()
    ask(page, "detector")
    rows = page.evaluate(
        """() => [...document.querySelectorAll("#findings button")].map(
          (one) => [one.children[1].textContent, one.querySelector(".swatch").style.background])"""
    )
    crosses = [colour for name, colour in rows if name == "cross"]
    assert len(crosses) > 2 and len(set(crosses)) == len(crosses)


def test_masks_are_read_as_coco_writes_them(open_page):
    """A mask of two parts with a hole: the pixels and the outline's length are those that were encoded."""
    page = open_page()
    mask = numpy.zeros((40, 30), bool)
    mask[5:20, 3:12], mask[8:12, 5:8], mask[30:33, 20:30] = True, False, True
    flat = mask.flatten(order="F")
    edges = numpy.flatnonzero(numpy.diff(numpy.concatenate([[False], flat, [False]]).astype(int)))
    runs = numpy.diff(numpy.concatenate([[0], edges, [flat.size]])).tolist()
    counts = ""
    for i, run in enumerate(runs):
        number, more = (run - runs[i - 2] if i > 2 else run), True
        while more:
            digit, number = number & 31, number >> 5
            more = number != (-1 if digit & 16 else 0)
            counts += chr((digit | 32 if more else digit) + 48)
    found = page.evaluate(
        """async (counts) => {
          const {Masks} = await import("/masks.js");
          const masks = new Masks({detections: [{mask: {counts}, class_index: "1"}, {class_index: "1"}]}, 30, 40);
          const at = (n) => Array.from({length: 1200}, (_, i) => masks.contains(n, i % 30, Math.floor(i / 30)));
          return [at(0), at(1).some(Boolean)];
        }""",
        counts,
    )
    assert numpy.array_equal(numpy.array(found[0]).reshape(40, 30), mask) and not found[1]


@pytest.mark.parametrize("kind", ["tiff", "transparent"])
def test_pictures_are_shown_as_they_were_sent(open_page, kind):
    """TIFF, which browsers do not read, and colours below transparency, which the daemon reads and browsers hide."""
    page = open_page()
    pixels = pictures.pixels(3, 48, 32)
    if kind == "tiff":
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "TIFF", compression="tiff_lzw", tiffinfo={317: 2})
        file = {"name": "a.tif", "mimeType": "image/tiff", "buffer": out.getvalue()}
    else:
        alpha = numpy.where(numpy.arange(48) % 2, 0, 255).astype(numpy.uint8)
        file = png(numpy.dstack([pixels, numpy.broadcast_to(alpha, (32, 48))]))
    page.select_option("#model", "sanet_shapes")
    page.set_input_files("#slot-0 input", file)
    expect(page.locator("#summary")).to_contain_text("48×32")
    for x, y in ((0, 0), (21, 13), (46, 31), (47, 30)):
        assert numpy.abs(numpy.subtract(pixel(page, x, y), pixels[y, x].tolist())).max() <= 2, (x, y)


def test_on_a_phone_the_answer_comes_into_view(open_page):
    page = open_page("phone")
    ask(page, "detector")
    page.wait_for_function("() => document.getElementById('canvas').getBoundingClientRect().top < innerHeight / 2")


def test_large_pictures_do_not_hold_up_the_page(open_page, tmp_path):
    page = open_page()
    large = tmp_path / "large.jpg"
    with Image.open(SCENE) as scene:
        scene.convert("RGB").resize((4000, 3000)).save(large)
    page.select_option("#model", "segmenter")
    page.evaluate(
        """() => {
          window.longest = 0;
          let last = performance.now();
          setInterval(() => {
            const now = performance.now();
            [window.longest, last] = [Math.max(window.longest, now - last), now];
          }, 5);
        }"""
    )
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for model in ("segmenter", "detector"):
        page.select_option("#model", model)
        if model == "segmenter":
            page.set_input_files("#slot-0 input", large)
        expect(page.locator("#summary")).to_contain_text(f"{model} 1, 4000×3000")
    # A label map as large as the picture is neither computed nor sent.
    assert any("/v1/predict/segmenter?" in url and "size.width=1672&size.height=1254" in url for url in asked), asked
    print("longest pause, ms:", page.evaluate("() => window.longest"))
    assert page.evaluate("() => window.longest") < 1000


def test_latencies_are_those_of_answered_requests(open_page):
    """What the load table computes from two answers of /v1/load."""
    page = open_page()
    earlier = {
        "name": "m", "version": 1, "answered": 0, "failed": 0, "pictures": 0, "passes": 0, "queued": 0,
        "seconds": {"queue": 0, "infer": 0}, "answered_by_seconds": [[0.1, 0], [0.12, 0], [None, 0]],
        "failed_by_reason": {"REJECTED": 0, "CANCELED": 0, "BACKEND": 0, "OTHER": 0},
    }
    later = {
        **earlier, "answered": 50, "failed": 1000, "answered_by_seconds": [[0.1, 0], [0.12, 50], [None, 50]],
        "failed_by_reason": {"REJECTED": 960, "CANCELED": 20, "BACKEND": 20, "OTHER": 0},
    }
    compute = """async ([earlier, later]) => {
      const {duration, rates} = await import("/load.js"), one = rates(earlier, later, 10);
      return [duration(one.median), duration(one.slow), one.failures, one.cancelled];
    }"""
    assert page.evaluate(compute, [earlier, later]) == [
        "110 ms", "–", [["rejected", 96], ["failed in the model", 2]], 2]
    # From a hundred on there is a 99th percentile.
    many = {**later, "answered": 100, "answered_by_seconds": [[0.1, 98], [0.12, 98], [None, 100]]}
    assert page.evaluate(compute, [earlier, many])[1] == "120 ms"


def test_the_load_table_lets_itself_be_read(browser, repository, tmp_path, shots):
    """A selection survives the next figures, failures are told by reason in red, and old figures look old."""
    with Daemon(repository, "--warm-up-seconds=0", log_folder=tmp_path) as running:
        running.await_ready()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{running.http_port}/")
        row = page.locator("#models tr", has_text="detector")
        expect(row).to_have_count(1)
        page.locator("#tab-load").click()
        row.locator("th").evaluate("(cell) => getSelection().selectAllChildren(cell)")
        request = predict_request(model="detector", encoded=SCENE.read_bytes())
        with running.vision() as vision:

            def is_rejected():
                # Some of these come to the daemon in time, and are too short for a pass.
                for timeout in (0.003, 0.01, 0.02, 0.03, 0.05):
                    with contextlib.suppress(grpc.RpcError):
                        vision.predict(request, timeout=timeout)
                return "rejected" in row.locator("td").nth(8).text_content()

            eventually(is_rejected, "the table tells of rejected requests")
        expect(row.locator("td").nth(8)).to_have_class("bad")
        assert page.evaluate("() => getSelection().toString()").strip() == "detector 1"
        running.close()
        expect(page.locator("#held")).to_contain_text("No longer up to date")
        expect(page.locator("table.stale")).to_have_count(1)
        page.screenshot(path=shots / "load-stale.png", full_page=True)
        page.close()


def test_what_is_wrong_with_a_token(browser, repository, tmp_path):
    write_secret(tmp_path / "tokens", "metrics-0123456789abcdef metrics\n")
    with Daemon(repository, f"--token-file={tmp_path / 'tokens'}", "--warm-up-seconds=0", log_folder=tmp_path) as running:
        running.await_ready()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{running.http_port}/")
        expect(page.locator("#daemon")).to_contain_text("requires a token")
        for token, wrong in (("unknown-0123456789abcdef", "the token is unknown"),
                             ("metrics-0123456789abcdef", "lacks the scope 'predict'")):
            page.get_by_label("Token").fill(token)
            page.get_by_label("Token").press("Enter")
            expect(page.locator("#daemon")).to_contain_text(wrong)
        page.close()

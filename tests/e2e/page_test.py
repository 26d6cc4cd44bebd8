"""Tests the page at / in a headless Chromium: its appearance on a desktop and on a phone, and its use with a keyboard
only. Screenshots go to build/.../page/."""

import base64
import gzip
import io
import re
import time

import numpy
import pytest
from PIL import Image
from playwright.sync_api import expect

import pictures
from harness import DEADLINE_SECONDS, ROOT, Daemon, write_secret
from messages import message, predict_request, stub
from page_fixtures import (
    DEMO, LOOKS, PAIR, SCENE, TASKS, TRIED_LOOKS, ask, browser, colours, daemon, open_page, repository, shots, wait_for_drawing,
)

__all__ = ["browser", "daemon", "open_page", "repository", "shots"]


@pytest.mark.parametrize("look", TRIED_LOOKS)
def test_every_task_is_answered_and_drawn(open_page, shots, look):
    page = open_page(look)
    for model in TASKS:
        ask(page, model)
        assert colours(page) > 10
        assert page.locator("#findings li").count() > 0
        names = ["decode", "queue", "infer", "encode", "rest", "total", "round trip"]
        assert page.locator("#timings dt").all_text_contents() == names
        expect(page.locator("#timings dd").nth(5)).to_contain_text("ms")
        assert page.locator("#scale").is_visible() == (model == "matcher")
        assert page.locator("#slot-1").is_visible() == (model == "matcher")
        assert page.locator("#score").is_visible() == (model == "detector")
        wide = page.evaluate("() => document.documentElement.scrollWidth")
        assert wide <= LOOKS[look]["viewport"]["width"], "the page is wider than the screen"
        page.screenshot(path=shots / f"{look}-{model}.png", full_page=True)


def test_dark_is_dark(open_page):
    ground = "() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).reduce((a, b) => a + +b, 0)"
    assert open_page("dark").evaluate(ground) < 150 < 600 < open_page("desk").evaluate(ground)


def test_thresholds_and_choices_change_what_is_seen(open_page):
    page = open_page()
    ask(page, "detector")
    everything = page.locator("#findings li").count()
    assert everything > 1
    first = page.locator("#findings button").first
    before = page.evaluate("() => document.getElementById('canvas').toDataURL()")
    first.click()
    expect(first).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("() => document.getElementById('canvas').toDataURL()") != before
    first.click()
    expect(first).to_have_attribute("aria-pressed", "false")
    # The finding under the mouse is drawn with wider lines.
    page.mouse.move(0, 0)
    assert page.evaluate("() => document.getElementById('canvas').toDataURL()") == before
    page.locator("#opacity").fill("0")
    assert page.evaluate("() => document.getElementById('canvas').toDataURL()") != before
    page.locator("#score").fill("1")
    expect(page.locator("#summary")).to_contain_text("Nothing found")
    expect(page.locator("#findings")).to_contain_text("Nothing found")


@pytest.mark.parametrize("look", TRIED_LOOKS)
def test_what_attention_looked_at(open_page, shots, look):
    page = open_page(look)
    ask(page, "detector")
    assert not page.locator("#attention-part").is_visible()
    picture = "() => document.getElementById('canvas').toDataURL()"
    page.select_option("#attention", index=1)
    layer = page.locator("#attention").input_value()
    expect(page.locator("#attention-title")).to_have_text(f"Attention of {layer}")
    first = page.locator("#maps button").first
    expect(first).to_contain_text("key 0")
    # In colour, with as many shades as there are values.
    shades = page.evaluate("""() => {
      const map = document.querySelector("#maps canvas");
      const data = map.getContext("2d").getImageData(0, 0, map.width, map.height).data;
      return new Set(new Uint32Array(data.buffer)).size;
    }""")
    assert shades > 10
    wait_for_drawing(page)
    before = page.evaluate(picture)
    first.click()
    expect(first).to_have_attribute("aria-pressed", "true")
    page.wait_for_function(f"(before) => ({picture})() !== before", arg=before)
    first.click()
    page.wait_for_function(f"(before) => ({picture})() === before", arg=before)
    first.click()
    # Last, because a screenshot of the whole page moves what is under the pointer.
    page.screenshot(path=shots / f"{look}-attention.png", full_page=True)
    page.locator("#findings button").first.click()
    expect(first).to_have_attribute("aria-pressed", "false")
    ask(page, "sanet_shapes")
    page.select_option("#attention", index=1)
    expect(page.locator("#maps .map").first).to_contain_text("head 0")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= LOOKS[look]["viewport"]["width"]
    page.select_option("#attention", "")
    expect(page.locator("#attention-part")).to_be_hidden()


def test_a_keyboard_is_enough(open_page):
    page = open_page()
    # Makes Playwright intercept the file dialog from here on. expect_file_chooser() does the same, but does not wait until
    # Chromium has begun, so that a key pressed at once could open a dialog that nobody sees.
    page.on("filechooser", lambda chooser: None)
    page.keyboard.press("Tab")
    expect(page.locator("#tab-ask")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#model")).to_be_focused()
    page.keyboard.type("detector")
    expect(page.locator("#model")).to_have_value("detector")
    page.keyboard.press("Tab")
    expect(page.locator("#slot-0 input")).to_be_focused()
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Space")
    chooser.value.set_files(SCENE)
    expect(page.locator("#summary")).to_contain_text("found")
    if page.locator("#camera").is_visible():
        page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator("#score")).to_be_focused()
    shown = page.locator("#score-shown").text_content()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#score-shown")).not_to_have_text(shown)
    expect(page.locator("#canvas.waiting")).to_have_count(0)
    first = page.locator("#findings button").first

    def tab_to(place):
        for _ in range(30):
            page.keyboard.press("Tab")
            if place.evaluate("(one) => one === document.activeElement"):
                return
        pytest.fail("the tabulator does not lead there")

    for name in ("#classes input >> nth=0", "#show-labels", "#opacity", "#send", "#canvas"):
        tab_to(page.locator(name))
    # The arrows step through the findings, and past the last one.
    page.keyboard.press("ArrowRight")
    expect(first).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("ArrowLeft")
    expect(first).to_have_attribute("aria-pressed", "false")
    tab_to(first)
    page.keyboard.press("Space")
    expect(first).to_have_attribute("aria-pressed", "true")


def test_pictures_are_dropped(open_page):
    page = open_page()
    page.select_option("#model", "matcher")
    dropped = page.evaluate_handle(
        """([left, right]) => {
          const bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
          const all = new DataTransfer();
          // In any order: names tell left from right.
          all.items.add(new File([bytes(right)], "b-right.png", {type: "image/png"}));
          all.items.add(new File([bytes(left)], "a-left.png", {type: "image/png"}));
          return all;
        }""",
        [base64.b64encode(path.read_bytes()).decode() for path in PAIR],
    )
    page.dispatch_event("#slot-1", "drop", {"dataTransfer": dropped})
    expect(page.locator("#slot-0 .slot-file")).to_have_text("a-left.png")
    expect(page.locator("#slot-1 .slot-file")).to_have_text("b-right.png")
    expect(page.locator("#summary")).to_contain_text("px of disparity")


def tiff(planes, **how):
    out = io.BytesIO()
    first, *others = [Image.fromarray(plane) for plane in planes]
    first.save(out, "TIFF", save_all=True, append_images=others, **how)
    return {"name": "volume.tif", "mimeType": "image/tiff", "buffer": out.getvalue()}


def smooth(dtype):
    depth, height, width = numpy.mgrid[:12, :24, :20]
    return (400 + 20 * depth + 8 * height + 3 * width).astype(dtype)


def grey_at(page, canvas, x, y):
    return page.evaluate(
        """([id, x, y]) => document.getElementById(id).getContext("2d").getImageData(x, y, 1, 1).data[0]""", [canvas, x, y]
    )


def ranges(page):
    """The minimum and the maximum of the result, as the list shows them."""
    return [float(one) for one in page.locator("#findings .value").all_text_contents()]


@pytest.mark.parametrize("look", TRIED_LOOKS)
def test_volumes_before_and_after(open_page, shots, look):
    page = open_page(look)
    page.select_option("#model", "volumes")
    planes = smooth(numpy.uint16)
    page.set_input_files("#slot-0 input", tiff(planes, compression="tiff_adobe_deflate"))
    expect(page.locator("#summary")).to_contain_text("12 × 24 × 20 voxels")
    assert page.locator("#volume").is_visible() and page.locator("#before").is_visible()
    assert not page.locator("#canvas").is_visible() and not page.locator("#clip").is_visible()
    expect(page.locator("#plane-shown")).to_have_text("6 of 12")
    # The arrow keys select the plane.
    page.locator("#plane").focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#plane-shown")).to_have_text("8 of 12")
    least, most = ranges(page)
    for x, y in ((0, 0), (7, 11), (19, 23)):
        expected = 255 * min(1, max(0, (planes[7, y, x] - least) / (most - least)))
        assert abs(grey_at(page, "before", x, y) - expected) <= 1 + 255 * 0.001 * most / (most - least)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= LOOKS[look]["viewport"]["width"]
    page.screenshot(path=shots / f"{look}-volumes.png", full_page=True)


@pytest.mark.parametrize(
    "dtype, how",
    [(numpy.uint8, {}), (numpy.uint16, {"compression": "tiff_lzw"}), (numpy.float32, {"compression": "raw"}),
     (numpy.uint16, {"compression": "tiff_lzw", "tiffinfo": {317: 2}})],
)
def test_what_a_tiff_may_be(open_page, dtype, how):
    """Compares the planes that the page's reader returns in Chromium with those that were written."""
    page = open_page()
    planes = smooth(numpy.float32).astype(dtype) if dtype != numpy.uint8 else (smooth(numpy.uint16) // 4).astype(dtype)
    file = tiff(planes, **how)
    read = page.evaluate(
        """async ([base64, width, height]) => {
          const {planesOf} = await import("/tiff.js");
          const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
          return (await planesOf(bytes.buffer, width, height)).map((plane) => [...plane]);
        }""",
        [base64.b64encode(file["buffer"]).decode(), 20, 24],
    )
    assert numpy.array_equal(numpy.array(read).reshape(planes.shape), planes.astype(numpy.float64))


def test_a_volume_that_browsers_cannot_read_is_answered_all_the_same(open_page):
    page = open_page()
    page.select_option("#model", "volumes")
    page.set_input_files("#slot-0 input", tiff(smooth(numpy.uint8), compression="packbits"))
    expect(page.locator("#before-why")).to_contain_text("its compression is 32773")
    assert page.locator("#after").is_visible() and not page.locator("#before").is_visible()


def moving_frames(folder, count=40):
    first, last = (pictures.pixels(seed, 80, 40).astype(float) for seed in (1, 2))
    files = []
    for index in range(count):
        mixed = (first * (count - index) + last * index) / count
        files.append(folder / f"frame {index}.png")
        Image.fromarray(numpy.roll(mixed, index, axis=1)[:, :40].astype(numpy.uint8)).save(files[-1])
    return files


def assert_line_of_time(page):
    """There is a bar for each action, with the position and length that the list states."""
    bars = page.evaluate(
        """() => [...document.querySelectorAll(".happening")].map(
          (one) => [one.title, parseFloat(one.style.left), parseFloat(one.style.width)])"""
    )
    listed = page.locator("#findings .where").all_text_contents()
    assert sorted(title.split(", ")[1] for title, _, _ in bars) == sorted(listed)
    seconds = lambda text: 60 * float(text.split(":")[0]) + float(text.split(":")[1])
    whole = seconds(page.locator("#timeline-end").text_content())
    for title, left, width in bars:
        start, end = map(seconds, title.split(", ")[1].split("–"))
        assert left == pytest.approx(100 * start / whole, abs=0.06 * 100 / whole)
        assert left + width == pytest.approx(100 * end / whole, abs=0.06 * 100 / whole)


@pytest.mark.parametrize("look", TRIED_LOOKS)
def test_clips_on_a_line_of_time(open_page, shots, tmp_path, look):
    page = open_page(look)
    page.select_option("#model", "clips")
    page.locator("#score").fill("0.05")
    page.set_input_files("#slot-0 input", moving_frames(tmp_path))
    expect(page.locator("#summary")).to_contain_text("found in 40 frames, 10 a second")
    expect(page.locator("#slot-0 .slot-file")).to_have_text("40 frames, frame 0.png to frame 39.png")
    assert page.locator("#canvas").is_visible() and not page.locator("#video").is_visible()
    assert page.locator(".happening").count() > 0
    assert_line_of_time(page)
    first = page.locator("#findings button").first
    first.focus()
    page.keyboard.press("Space")
    expect(page.locator(".happening.chosen")).to_have_count(1)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= LOOKS[look]["viewport"]["width"]
    page.screenshot(path=shots / f"{look}-clips.png", full_page=True)
    # A model of pictures is sent the first of them.
    page.select_option("#model", "sanet_shapes")
    expect(page.locator("#slot-0 .slot-file")).to_have_text("frame 0.png")
    page.select_option("#model", "clips")
    expect(page.locator("#slot-0 .slot-file")).to_have_text("40 frames, frame 0.png to frame 39.png")


def test_a_video_is_played_from_where_something_happens(open_page, shots):
    page = open_page()
    page.select_option("#model", "clips")
    page.locator("#score").fill("0.05")
    frames = [numpy.roll(pictures.pixels(1, 64, 48), 3 * index, axis=1) for index in range(40)]
    page.set_input_files("#slot-0 input", {"name": "a.webm", "mimeType": "video/webm", "buffer": pictures.webm(frames, 20)})
    expect(page.locator("#summary")).to_have_text(re.compile(r"^\d+ found in"))
    expect(page.locator("#video")).to_be_visible()
    page.evaluate("() => document.getElementById('video').currentTime = 1")
    page.wait_for_function("() => parseFloat(document.getElementById('head').style.left) > 0")
    first = page.locator("#findings li").first
    start = float(first.locator(".where").text_content().split("–")[0].split(":")[1])
    first.locator("button").press("Enter")
    page.wait_for_function("(start) => Math.abs(document.getElementById('video').currentTime - start) < 0.2", arg=start)
    expect(page.locator(".happening.chosen")).to_have_count(1)
    page.screenshot(path=shots / "desk-video.png", full_page=True)


def test_a_video_that_browsers_do_not_play(open_page):
    """Motion JPEG in AVI: the browser cannot play it, but the daemon reads it, so the timeline is shown."""
    page = open_page()
    page.select_option("#model", "clips")
    page.locator("#score").fill("0.05")
    frames = [numpy.roll(pictures.pixels(1, 40, 40), index, axis=1) for index in range(20)]
    video = {"name": "a.avi", "mimeType": "video/x-msvideo", "buffer": pictures.video(frames, 10)}
    page.set_input_files("#slot-0 input", video)
    expect(page.locator("#summary")).to_contain_text("in 20 frames, 10 a second")
    assert not page.locator("#video").is_visible() and not page.locator("#canvas").is_visible()
    expect(page.locator("#timeline-end")).to_have_text("00:02.0")
    assert_line_of_time(page)


def test_what_the_daemon_refuses_is_told(open_page, tmp_path):
    page = open_page()
    page.select_option("#model", "detector")
    page.set_input_files("#slot-0 input", {"name": "a.png", "mimeType": "image/png", "buffer": b"no picture"})
    expect(page.locator("#problem")).to_contain_text("not a readable picture")
    page.set_input_files("#slot-0 input", SCENE)
    expect(page.locator("#summary")).to_contain_text("found")
    expect(page.locator("#problem")).to_be_hidden()
    # The browser reports the status 400 as well.
    open_page.complaints[:] = [text for text in open_page.complaints if "status of 400" not in text]


def test_a_picture_that_browsers_do_not_turn_otherwise(open_page, tmp_path):
    """Boxes are in the coordinates of the upright picture, and the picture they are drawn on is upright, too."""
    page = open_page()
    turned = tmp_path / "turned.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(pictures.pixels(1, 120, 60)).save(turned, exif=exif)
    page.select_option("#model", "detector")
    page.set_input_files("#slot-0 input", turned)
    expect(page.locator("#summary")).to_contain_text("60×120")
    assert page.evaluate("() => document.getElementById('canvas').style.aspectRatio") == "60 / 120"


def test_load_is_shown_while_it_is_there(open_page, daemon, shots):
    page = open_page()
    line = page.locator("#models tr", has_text="sanet_shapes")
    expect(line).to_have_count(1)
    scene = (DEMO / "pictures" / "star.jpg").read_bytes()
    with daemon.vision() as vision:
        end = time.monotonic() + DEADLINE_SECONDS
        while float(line.locator("td").nth(0).text_content()) == 0:
            assert time.monotonic() < end, "the page never showed the requests"
            for _ in range(10):
                vision.predict(predict_request(model="sanet_shapes", encoded=scene))
    expect(line.locator("td").nth(2)).to_contain_text("ms")
    expect(line.locator("td").nth(6)).not_to_have_text("–")
    page.locator("#tab-load").click()
    page.screenshot(path=shots / "load.png", full_page=True)


def test_the_browser_is_told_to_take_nothing_from_elsewhere(daemon):
    scripts = [(f"/{script.name}", "text/javascript") for script in (ROOT / "server" / "page").glob("*.js")]
    assert len(scripts) > 10
    whole = b""
    for path, kind in (("/", "text/html"), ("/page.css", "text/css"), ("/icon.svg", "image/svg+xml"), *scripts):
        status, headers, body = daemon.get(path)
        assert status == 200 and headers["Content-Type"].startswith(kind) and len(body) > 100
        assert "://" not in body.replace("http://www.w3.org/2000/svg", "")
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        whole += gzip.compress(body.encode())
    assert len(whole) < 80_000


def test_a_daemon_that_goes_away(browser, repository, tmp_path):
    with Daemon(repository, "--warm-up-seconds=0", log_folder=tmp_path) as daemon:
        daemon.await_ready()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{daemon.http_port}/")
        expect(page.locator("#daemon")).to_contain_text("connected")
        daemon.close()
        expect(page.locator("#daemon")).to_contain_text("does not answer")
        page.close()


def test_models_that_come_later(browser, repository, tmp_path):
    flags = ["--model-control-mode=explicit", "--load-model=sanet_shapes", "--warm-up-seconds=0"]
    with Daemon(repository, *flags, log_folder=tmp_path) as daemon:
        daemon.await_ready()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{daemon.http_port}/")
        expect(page.locator("#model option")).to_have_text(["sanet_shapes (classification)"])
        with daemon.channel() as channel:
            load = stub(channel, "inference.GRPCInferenceService", "RepositoryModelLoad")
            load(message("inference.RepositoryModelLoadRequest")(model_name="segmenter"))
        expect(page.locator("#model option")).to_have_count(2)
        expect(page.locator("#model")).to_have_value("sanet_shapes")
        page.close()


def test_a_list_of_models_that_fails_is_asked_for_again(browser, daemon):
    page = browser.new_page()
    failures = []

    def fail_twice(route):
        if len(failures) == 2:
            return route.fallback()
        failures.append(route.request.url)
        return route.abort() if len(failures) == 1 else route.fulfill(status=503, json={"error": "no room just now"})

    page.route("**/v1/models", fail_twice)
    page.goto(f"http://127.0.0.1:{daemon.http_port}/")
    expect(page.locator("#model option")).not_to_have_count(0)
    expect(page.locator("#problem")).to_be_hidden()
    assert len(failures) == 2
    page.close()


def test_without_a_page(repository, tmp_path):
    with Daemon(repository, "--page=false", "--warm-up-seconds=0", log_folder=tmp_path) as daemon:
        daemon.await_ready()
        for path in ("/", "/page.js", "/v1/load", "/v1/models/sanet_shapes/samples"):
            assert daemon.get(path)[0] == 404
        assert daemon.get("/v1/models")[0] == 200


def test_a_token_is_asked_for(browser, repository, tmp_path):
    write_secret(tmp_path / "tokens", "predict-0123456789abcdef predict\n")
    with Daemon(repository, f"--token-file={tmp_path / 'tokens'}", "--warm-up-seconds=0", log_folder=tmp_path) as running:
        running.await_ready()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{running.http_port}/")
        expect(page.locator("#daemon")).to_contain_text("requires a token")
        page.get_by_label("Token").fill("predict-0123456789abcdef")
        page.get_by_label("Token").press("Enter")
        expect(page.locator("#daemon")).to_contain_text("connected to")
        expect(page.locator("#token-field")).to_be_hidden()
        expect(page.locator("#model option:not([disabled])")).not_to_have_count(0)
        page.reload()
        expect(page.locator("#daemon")).to_contain_text("connected to")
        page.close()

"""A daemon and a headless Chromium that opens its page, for the tests of the page."""

import os
import pathlib
import shutil

import pytest
import torch
from playwright.sync_api import expect, sync_playwright

from harness import DEADLINE_SECONDS, DEMO_REPOSITORY, ROOT, Daemon
from tests.long_form import in_long_form
from tiny_models import TinyTask, tiny_actions, tiny_detector, tiny_restorer, tiny_stereo, write_model

DEMO = ROOT / "models" / "demo"
SCENE = DEMO / "scenes" / "0.png"
PAIR = [DEMO / "pairs" / "0-left.png", DEMO / "pairs" / "0-right.png"]
# Model, files to send, and a word that the line of the result must contain.
TASKS = {
    "sanet_shapes": ([DEMO / "pictures" / "star.jpg"], "star"),
    "detector": ([SCENE], "found"),
    "segmenter": ([SCENE], "classes"),
    "matcher": (PAIR, "px of disparity"),
}
HTML = "<img src=x onerror=alert(1)>"
LOOKS = {
    "desk": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "tablet": {"viewport": {"width": 820, "height": 1180}, "color_scheme": "light", "has_touch": True},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "has_touch": True},
}
# The looks that most tests try: a wide screen and a narrow one, in the long form all.
TRIED_LOOKS = ["desk", "phone", *in_long_form("dark", "tablet")]
# None selects Playwright's own Chromium, if `./dev setup tests` found no package.
CHROMIUM = shutil.which("chromium")

expect.set_options(timeout=1000 * DEADLINE_SECONDS)


@pytest.fixture(scope="module")
def shots():
    folder = pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "page"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """The demo models with predictable results, a model for pairs, and one for volumes."""
    root = tmp_path_factory.mktemp("page")
    for name in ("sanet_shapes", "detector", "segmenter"):
        shutil.copytree(DEMO_REPOSITORY / name, root / name)
    write_model(root, "matcher", tiny_stereo(), max_batch_size=4)
    write_model(root, "volumes", tiny_restorer(), max_batch_size=1)
    write_model(root, "clips", tiny_actions(), max_batch_size=1)
    return root


@pytest.fixture(scope="module")
def daemon(repository, tmp_path_factory):
    flags = ["--warm-up-seconds=0"]
    with Daemon(repository, *flags, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        if CHROMIUM is None and not pathlib.Path(playwright.chromium.executable_path).exists():
            pytest.fail("no browser: install Debian's package chromium, or run `playwright install --only-shell chromium`")
        # A camera that shows a test picture. Pages still have to ask for it.
        flags = ["--no-sandbox", "--disable-gpu", "--use-fake-device-for-media-stream"]
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield running
        running.close()


@pytest.fixture
def open_page(browser, daemon, repository):
    """open_page(look): opens the page with its models listed. The test fails at its end if the browser reported errors
    or requested other sites."""
    opened, complaints, asked = [], [], []

    def make(look="desk", address="", **options):
        context = browser.new_context(**LOOKS[look], **options)
        opened.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * DEADLINE_SECONDS)
        page.on("console", lambda message: complaints.append(f"{message.text} {message.location}") if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"http://127.0.0.1:{daemon.http_port}/{address}")
        expect(page.locator("#model option")).to_have_count(len(list(repository.iterdir())))
        return page

    make.complaints = complaints
    yield make
    for context in opened:
        context.close()
    assert complaints == [], complaints
    own = f"http://127.0.0.1:{daemon.http_port}/"
    assert asked and [url for url in asked if not url.startswith((own, f"blob:{own}"))] == []


def rich_repository(root):
    """The demo's detector in two versions, a classifier whose attention is by position, samples, and labels and file names
    that a browser would take for HTML."""
    for name in ("sanet_shapes", "detector", "segmenter"):
        shutil.copytree(DEMO_REPOSITORY / name, root / name)
    shutil.copytree(root / "detector" / "1", root / "detector" / "2")
    config = root / "detector" / "config.pbtxt"
    config.write_text(config.read_text() + "\nversion_policy { all { } }\n")
    labels = ["class 0", HTML, "class 2", "class 3"]
    batch = torch.randn(8, 3, 56, 56, generator=torch.Generator().manual_seed(8))
    attending = TinyTask("attnnet", labels, seed=8, input_size="56", batch=batch, width="0.5")
    write_model(root, "attending", attending, max_batch_size=4)
    write_model(root, "rival", tiny_detector(), max_batch_size=4)
    write_model(root, "matcher", tiny_stereo(), max_batch_size=4)
    write_model(root, "volumes", tiny_restorer(), max_batch_size=1)
    write_model(root, "clips", tiny_actions(), max_batch_size=1)
    for model, files in (("sanet_shapes", sorted((DEMO / "pictures").glob("*.jpg"))), ("detector", [SCENE]), ("matcher", PAIR)):
        (root / model / "samples").mkdir()
        for file in files:
            shutil.copy(file, root / model / "samples")
    shutil.copy(DEMO / "pictures" / "star.jpg", root / "sanet_shapes" / "samples" / f"{HTML}.jpg")
    return root


def wait_for(page, text):
    """Waits for an answer whose summary contains the text."""
    expect(page.locator("#summary")).to_contain_text(text)
    expect(page.locator("#canvas.waiting")).to_have_count(0)


def wait_for_drawing(page):
    """Waits until the answer is there and the canvas stays as it is. What the answer shows beside the canvas may change the
    canvas' size, and then it is drawn again in the next frame."""
    expect(page.locator("#canvas.waiting")).to_have_count(0)
    drawn = None
    while drawn != (drawn := page.evaluate("() => document.getElementById('canvas').toDataURL()")):
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def ask(page, model):
    files, word = TASKS[model]
    page.select_option("#model", model)
    page.set_input_files("#slot-0 input", files)
    expect(page.locator("#summary")).to_contain_text(word)
    expect(page.locator("#summary")).to_contain_text(f"{model} 1")
    expect(page.locator("#canvas.waiting")).to_have_count(0)


def colours(page):
    """The number of colours on the canvas."""
    return page.evaluate(
        """() => {
          const canvas = document.getElementById("canvas");
          const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
          return new Set(new Uint32Array(data.buffer)).size;
        }"""
    )

"""Tests where the page's files and options come from: the samples of models, the camera, the address and the session; and
what strangers may do with them."""

import http.client
import json
import os
import shutil
import socket
import urllib.parse

import pytest
from playwright.sync_api import expect

from harness import DEADLINE_SECONDS, DEMO_REPOSITORY, Daemon, eventually, write_secret
from page_fixtures import DEMO, HTML, PAIR, SCENE, browser, daemon, open_page, rich_repository, shots, wait_for

__all__ = ["browser", "daemon", "open_page", "shots"]
STAR = DEMO / "pictures" / "star.jpg"


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return rich_repository(tmp_path_factory.mktemp("samples"))


def get(daemon, path, **headers):
    """Sends the path as it stands; returns the status, the headers and the bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.http_port, timeout=DEADLINE_SECONDS)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def names_of(daemon, model, **headers):
    status, _, body = get(daemon, f"/v1/models/{model}/samples", **headers)
    assert status == 200, body
    return [one["name"] for one in json.loads(body)["samples"]]


def copy_shapes(folder):
    """The demo's classifier under another name."""
    shutil.copytree(DEMO_REPOSITORY / "sanet_shapes", folder)
    config = folder / "config.pbtxt"
    config.write_text(config.read_text().replace('name: "sanet_shapes"', f'name: "{folder.name}"'))
    (folder / "samples").mkdir()
    return folder / "samples"


def path_of(model, name):
    return f"/v1/models/{model}/samples/{urllib.parse.quote(name, safe='')}"


def test_samples_are_listed_and_asked_about(open_page, shots):
    page = open_page()
    page.select_option("#model", "sanet_shapes")
    buttons = page.locator("#samples button")
    expect(buttons).to_have_count(11)
    # A name is a text, whatever it looks like.
    expect(buttons.first).to_have_text(f"{HTML}.jpg")
    assert page.locator("#samples img").count() == 0
    buttons.filter(has_text="heart.jpg").click()
    wait_for(page, "heart")
    expect(page.locator("#slot-0 .slot-file")).to_have_text("heart.jpg")
    buttons.first.click()
    wait_for(page, "star")
    page.locator("#history-part summary").click()
    page.screenshot(path=shots / "desk-samples.png", full_page=True)
    assert page.locator("#answer img, #details img, #ask img").count() == 0
    # Both pictures of a pair.
    page.select_option("#model", "matcher")
    expect(buttons).to_have_text([", ".join(path.name for path in PAIR)])
    buttons.click()
    wait_for(page, "px of disparity")
    # A model without samples.
    page.select_option("#model", "segmenter")
    expect(page.locator("#samples-part")).to_be_hidden()
    expect(buttons).to_have_count(0)


def test_labels_are_texts(open_page):
    """One of the labels of this model is HTML."""
    page = open_page()
    page.select_option("#model", "attending")
    page.set_input_files("#slot-0 input", {"name": f"{HTML}.jpg", "mimeType": "image/jpeg", "buffer": STAR.read_bytes()})
    wait_for(page, "attending 1")
    expect(page.locator("#findings")).to_contain_text(HTML)
    page.locator("#code summary").click()
    assert page.locator("#slot-0 .slot-file").text_content() == f"{HTML}.jpg"
    assert page.locator("#ask-view img").count() == 0


def test_a_sample_is_what_the_folder_has(daemon):
    status, headers, body = get(daemon, path_of("sanet_shapes", "star.jpg"))
    assert (status, body) == (200, STAR.read_bytes())
    assert headers["Content-Type"] == "image/jpeg" and headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert sorted(names_of(daemon, "sanet_shapes")) == sorted(
        [f"{HTML}.jpg", *(path.name for path in (DEMO / "pictures").glob("*.jpg"))])
    assert names_of(daemon, "segmenter") == []
    assert get(daemon, "/v1/models/unknown/samples")[0] == 404


@pytest.mark.parametrize("name", [
    "../config.pbtxt", "..", ".", "../../detector/config.pbtxt", "/etc/passwd", "star.jpg/", "./star.jpg", "star.jpg\0", "*",
    "samples/star.jpg", "....//config.pbtxt", "..\\config.pbtxt", "STAR.JPG", "x" * 5000,
])
def test_no_name_leads_out_of_the_folder(daemon, name):
    for path in (path_of("sanet_shapes", name), f"/v1/models/sanet_shapes/samples/{name.replace(chr(0), '%00')}"):
        status, _, body = get(daemon, path)
        assert status in (400, 404) and "error" in json.loads(body), path
        assert len(body) < 6000


def test_nor_does_the_models_name(daemon):
    for model in ("..", "%2e%2e", "sanet_shapes%2fsamples", "..%2fsanet_shapes", "."):
        for path in (f"/v1/models/{model}/samples", f"/v1/models/{model}/samples/star.jpg"):
            assert get(daemon, path)[0] in (400, 404), path


def test_only_regular_files_of_the_folder_and_of_known_kinds(tmp_path):
    repository = tmp_path / "models"
    many, odd, _ = [copy_shapes(repository / model) for model in ("many", "odd", "plain")]
    (tmp_path / "secret.png").write_text("secret")
    shutil.copy(STAR, odd / "good.jpg")
    (odd / "notes.txt").write_text("notes")
    (odd / "page.html").write_text("<script>alert(1)</script>")
    (odd / "drawing.svg").write_text("<svg onload='alert(1)'/>")
    (odd / "empty.png").touch()
    (odd / "folder.png").mkdir()
    # Links within the repository, but out of the folder. One out of the repository keeps the model from loading.
    os.symlink(next((repository / "plain" / "1").iterdir()), odd / "weights.png")
    os.symlink("good.jpg", odd / "again.jpg")
    # Half a gigabyte that takes no room.
    with open(odd / "huge.png", "wb") as huge:
        huge.truncate(500 << 20)
    for number in range(10_000):
        (many / f"{number:05}.jpg").write_bytes(b"no picture")
    with Daemon(repository, "--warm-up-seconds=0", log_folder=tmp_path) as running:
        running.await_ready()
        assert names_of(running, "odd") == ["good.jpg"]
        for name in ("notes.txt", "page.html", "drawing.svg", "weights.png", "huge.png", "folder.png", "empty.png"):
            assert get(running, path_of("odd", name))[0] == 404, name
        before = running.resident_bytes()
        assert names_of(running, "many") == [f"{number:05}.jpg" for number in range(64)]
        assert get(running, path_of("many", "09999.jpg"))[0] == 404
        assert running.resident_bytes() - before < 50 << 20
        # A file that is replaced by a link since the model was loaded.
        (odd / "good.jpg").unlink()
        os.symlink(tmp_path / "secret.png", odd / "good.jpg")
        assert names_of(running, "odd") == [] and get(running, path_of("odd", "good.jpg"))[0] == 404


def test_samples_count_to_what_clients_may_hold(tmp_path):
    """Clients that ask for large samples and do not read them do not take all memory."""
    repository = tmp_path / "models"
    (copy_shapes(repository / "shapes") / "large.png").write_bytes(bytes(50 << 20))
    flags = ["--warm-up-seconds=0", f"--max-inflight-bytes={80 << 20}"]
    with Daemon(repository, *flags, log_folder=tmp_path) as running:
        running.await_ready()
        path = path_of("shapes", "large.png")
        with socket.create_connection(("127.0.0.1", running.http_port), timeout=DEADLINE_SECONDS) as slow:
            slow.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            # The answer begins when it is charged, and does not fit into what the kernel buffers.
            assert slow.recv(12) == b"HTTP/1.1 200"
            status, headers, body = get(running, path)
            assert status == 429 and "--max-inflight-bytes" in json.loads(body)["error"], body
            assert int(headers["Retry-After"]) >= 1
        eventually(lambda: get(running, path)[0] == 200, "the bytes are given back")


def test_samples_need_the_token_of_predictions(repository, tmp_path):
    tokens = "predict-0123456789abcdef predict\nmetrics-0123456789abcdef metrics\n"
    write_secret(tmp_path / "tokens", tokens)
    with Daemon(repository, f"--token-file={tmp_path / 'tokens'}", "--warm-up-seconds=0", log_folder=tmp_path) as running:
        running.await_ready()
        for path in ("/v1/models/sanet_shapes/samples", path_of("sanet_shapes", "star.jpg")):
            assert get(running, path)[0] == 401
            assert get(running, path, Authorization="Bearer metrics-0123456789abcdef")[0] == 403
            assert get(running, path, Authorization="Bearer predict-0123456789abcdef")[0] == 200


def test_other_sites_get_no_samples(daemon):
    for path in ("/v1/models/sanet_shapes/samples", path_of("sanet_shapes", "star.jpg")):
        assert get(daemon, path, Origin="https://evil.example")[0] == 403
        assert get(daemon, path, **{"Sec-Fetch-Site": "cross-site"})[0] == 403
        assert get(daemon, path, **{"Sec-Fetch-Site": "same-origin"})[0] == 200


def test_the_camera_is_for_this_page_and_on_a_click_only(open_page, daemon, shots):
    policy = get(daemon, "/")[1]["Permissions-Policy"]
    assert "camera=(self)" in policy and "microphone=()" in policy
    page = open_page(permissions=["camera"])
    page.evaluate(
        """() => {
          window.opened = [];
          const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
          navigator.mediaDevices.getUserMedia = async (wish) => {
            const stream = await open(wish);
            window.opened.push(stream);
            return stream;
          };
        }"""
    )
    page.select_option("#model", "detector")
    assert page.evaluate("() => window.opened.length") == 0
    page.locator("#camera").click()
    expect(page.locator("#camera-part")).to_be_visible()
    page.wait_for_function("() => document.getElementById('camera-view').videoWidth > 0")
    page.screenshot(path=shots / "desk-camera.png", full_page=True)
    page.locator("#camera-take").click()
    wait_for(page, "found")
    expect(page.locator("#slot-0 .slot-file")).to_have_text("camera-1.jpg")
    expect(page.locator("#camera-part")).to_be_hidden()
    ended = "() => window.opened.map((stream) => stream.getTracks().every((track) => track.readyState === 'ended'))"
    assert page.evaluate(ended) == [True]
    # A model that takes no pictures closes it.
    page.locator("#camera").click()
    expect(page.locator("#camera-part")).to_be_visible()
    page.select_option("#model", "volumes")
    expect(page.locator("#camera")).to_be_hidden()
    expect(page.locator("#camera-part")).to_be_hidden()
    assert page.evaluate(ended) == [True, True]
    # The picture is no volume.
    expect(page.locator("#problem")).to_be_visible()
    open_page.complaints[:] = [text for text in open_page.complaints if "status of 400" not in text]


def test_a_camera_that_is_allowed_too_late(open_page):
    page = open_page(permissions=["camera"])
    page.evaluate(
        """() => {
          const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
          navigator.mediaDevices.getUserMedia = async (wish) => {
            await new Promise((resolve) => window.allow = resolve);
            return window.late = await open(wish);
          };
        }"""
    )
    page.select_option("#model", "detector")
    page.locator("#camera").click()
    page.wait_for_function("() => Boolean(window.allow)")
    page.select_option("#model", "volumes")
    page.evaluate("() => window.allow()")
    page.wait_for_function("() => window.late?.getTracks().every((track) => track.readyState === 'ended')")
    expect(page.locator("#camera-part")).to_be_hidden()


def test_a_camera_that_is_not_allowed(open_page):
    page = open_page()
    page.evaluate(
        """() => navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("no", "NotAllowedError"))""")
    page.select_option("#model", "detector")
    page.locator("#camera").click()
    expect(page.locator("#problem")).to_have_text(
        "The camera cannot be used: the browser or the user did not allow it.")
    expect(page.locator("#camera-part")).to_be_hidden()


def test_the_address_has_the_model_and_the_options(open_page):
    page = open_page(address="#model=detector&score=0.75&opacity=0.25&rival=rival+1&attention=layer2.attention")
    expect(page.locator("#model")).to_have_value("detector")
    expect(page.locator("#rival")).to_have_value("rival 1")
    assert (page.locator("#score").input_value(), page.locator("#opacity-shown").text_content()) == ("0.75", "25%")
    page.locator("#score").fill("0.5")
    page.wait_for_function("() => location.hash.includes('score=0.5')")
    page.locator("#tab-load").click()
    page.wait_for_function("() => location.hash.includes('tab=load')")
    page.reload()
    expect(page.locator("#model")).to_have_value("detector")
    expect(page.locator("#load-view")).to_be_visible()
    page.locator("#tab-ask").click()
    assert page.locator("#score").input_value() == "0.5"
    page.select_option("#model", "segmenter")
    page.wait_for_function("() => location.hash.includes('model=segmenter')")


def test_an_address_of_a_stranger(open_page):
    name = urllib.parse.quote(HTML)
    page = open_page(address=f"#model={name}&score=7&top=1e9&opacity=NaN&mask={name}&rival={name}&attention={name}&swipe=-1&x={name}")
    expect(page.locator("#problem")).to_contain_text(f"The address names the model '{HTML}'")
    values = {name: page.locator(f"#{name}").input_value() for name in ("score", "top", "opacity", "mask", "swipe", "rival")}
    assert values == {"score": "0.3", "top": "5", "opacity": "0.6", "mask": "0.5", "swipe": "0.5", "rival": ""}
    assert page.locator("img").count() == 0


def test_the_session_is_remembered(open_page):
    page = open_page()
    expect(page.locator("#history-part")).to_be_hidden()
    page.select_option("#model", "sanet_shapes")
    page.set_input_files("#slot-0 input", STAR)
    wait_for(page, "star")
    page.select_option("#model", "detector")
    page.set_input_files("#slot-0 input", SCENE)
    wait_for(page, "found")
    page.locator("#history-part summary").click()
    entries = page.locator("#history button")
    expect(entries.last).to_contain_text("star.jpg")
    page.locator("#score").fill("0.9")
    entries.last.click()
    wait_for(page, "sanet_shapes 1")
    expect(page.locator("#slot-0 .slot-file")).to_have_text("star.jpg")
    expect(page.locator("#model")).to_have_value("sanet_shapes")
    # It is the last one now, and is not there twice.
    expect(entries.first).to_contain_text("star.jpg")
    assert len([text for text in entries.all_text_contents() if "star.jpg" in text and "sanet_shapes" in text]) == 1

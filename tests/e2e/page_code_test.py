"""Tests "Use it from code" of the page: what it shows is run as it stands, and what it saves is read."""

import io
import json
import pathlib
import shutil
import subprocess
import sys

import numpy
import pytest
from google.protobuf import json_format
from PIL import Image
from playwright.sync_api import expect

from harness import DEADLINE_SECONDS, SERVING, binary
from messages import predict_request
from page_fixtures import DEMO, PAIR, SCENE, ask, browser, daemon, open_page, repository, shots

__all__ = ["browser", "daemon", "open_page", "repository", "shots"]

# Calls Check of gRPC's health over gRPC-web: an empty message, and an answer of two, of which the second has the trailers.
CHECK = """async () => {
  const headers = {"content-type": "application/grpc-web+proto", "x-grpc-web": "1"};
  const answer = await fetch("/grpc.health.v1.Health/Check", {method: "POST", headers, body: new Uint8Array(5)});
  return [answer.status, answer.headers.get("content-type"), [...new Uint8Array(await answer.arrayBuffer())]];
}"""


@pytest.fixture
def folder(tmp_path):
    """The files that the page was given, where its code looks for them."""
    for path in (SCENE, *PAIR, DEMO / "pictures" / "star.jpg"):
        shutil.copy(path, tmp_path)
    return tmp_path


def codes(page, daemon):
    """By name. The daemon's port was chosen by the system, so that the page names the usual one."""
    names = page.locator("#codes h3").all_text_contents()
    texts = page.locator("#codes pre").all_text_contents()
    return {name: text.replace("127.0.0.1:8001", daemon.grpc_address) for name, text in zip(names, texts, strict=True)}


def run(command, folder, **environment):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("model, python_says", [
    ("detector", "rug 0.99"), ("sanet_shapes", "star 0."), ("segmenter", "background 0."), ("matcher", "(")])
def test_the_code_runs(open_page, daemon, folder, shots, saccade, model, python_says):
    page = open_page()
    ask(page, model)
    page.locator("#code summary").click()
    if model == "detector":
        page.locator("#score").fill("0.5")
        page.select_option("#attention", index=1)
        expect(page.locator("#attention-part")).to_be_visible()
    shown = codes(page, daemon)
    page.screenshot(path=shots / f"desk-code-{model}.png", full_page=True)
    assert list(shown) == ["curl", "Python", "Triton's client", "grpcurl", "command"]
    # grpcurl is beside Python.
    path = f"/usr/bin:/bin:{binary('saccade').resolve().parent}:{pathlib.Path(sys.executable).parent}"
    answer = json.loads(run(["bash", "-c", shown["curl"]], folder, PATH=path))
    assert answer["model"] == model
    client = {"PYTHONPATH": str(saccade.__path__[0].removesuffix("/saccade"))}
    assert python_says in run([sys.executable, "-c", shown["Python"]], folder, **client)
    assert run([sys.executable, "-c", shown["Triton's client"]], folder)
    run(["bash", "-c", shown["command"]], folder, PATH=path)
    assert list((folder / "overlays").glob("*.png"))
    # What grpcurl is given is the message in JSON.
    piped, program = shown["grpcurl"].split("|\n")
    request = json_format.Parse(run(["bash", "-c", piped], folder, PATH=path), predict_request())
    assert request.model == model and program.split() == ["grpcurl", "-plaintext", "-d", "@", daemon.grpc_address,
                                                          "saccade.v1.Vision/Predict"]
    if model == "detector":
        assert all(found["score"] >= 0.5 for found in answer["detections"]["detections"])
        assert answer["explanation"]["layer"] == request.explain.layer
        assert request.detection.score_threshold == 0.5
    assert f'"{model}"' in run(["bash", "-c", shown["grpcurl"]], folder, PATH=path)


def test_names_are_quoted(open_page, daemon, tmp_path):
    """A file's name with all that shells, printf and Python take for their own."""
    page = open_page()
    name = "it's 100% \"a\\b\" $HOME.png"
    shutil.copy(SCENE, tmp_path / name)
    page.locator("#code summary").click()
    page.select_option("#model", "detector")
    page.set_input_files("#slot-0 input", {"name": name, "mimeType": "image/png", "buffer": SCENE.read_bytes()})
    expect(page.locator("#summary")).to_contain_text("found")
    shown = codes(page, daemon)
    assert json.loads(run(["bash", "-c", shown["curl"]], tmp_path, PATH="/usr/bin:/bin"))["model"] == "detector"
    assert run([sys.executable, "-c", shown["Triton's client"]], tmp_path)
    message = run(["bash", "-c", shown["grpcurl"].split("|\n")[0]], tmp_path, PATH="/usr/bin:/bin")
    assert json_format.Parse(message, predict_request()).encoded == SCENE.read_bytes()


def test_a_click_copies(open_page):
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#code summary").click()
    page.get_by_role("button", name="Copy the curl code").click()
    expect(page.get_by_role("button", name="Copy the curl code")).to_have_text("Copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == page.locator("#codes pre").first.text_content()


def test_answers_are_saved(open_page, daemon):
    page = open_page()
    for button in page.locator("#saves button").all():
        assert button.is_disabled()
    ask(page, "detector")

    def saved(button):
        with page.expect_download() as download:
            page.locator(button).click()
        return download.value.suggested_filename, download.value.path().read_bytes()

    name, content = saved("#save-json")
    answer = json.loads(content)
    found = answer["detections"]["detections"]
    assert name == "0.json" and answer["model"] == "detector" and len(found) > 1
    name, content = saved("#save-coco")
    first = json.loads(content)[0]
    assert name == "0.coco.json" and first["segmentation"] == {"size": [128, 128], "counts": found[0]["mask"]["counts"]}
    assert first["bbox"][2] == pytest.approx(found[0]["box"]["x_max"] - found[0]["box"]["x_min"], abs=1e-4)
    name, content = saved("#save-picture")
    with Image.open(io.BytesIO(content)) as picture:
        assert name == "0.overlay.png" and picture.size == (896, 896)
    assert page.locator("#save-cut-out").is_disabled()
    page.locator("#findings button").first.click()
    name, content = saved("#save-cut-out")
    with Image.open(io.BytesIO(content)) as picture:
        alpha = numpy.array(picture)[..., 3]
    # All of the mask is there, and nothing else.
    assert name == "0.cut-out.png" and (alpha > 0).sum() == int(found[0]["mask"]["area"])


def test_a_page_calls_by_grpc_web(open_page):
    status, kind, body = open_page().evaluate(CHECK)
    assert (status, kind) == (200, "application/grpc-web+proto")
    serving = bytes([0, 0, 0, 0, 2, 0x08, SERVING])
    assert bytes(body).startswith(serving + b"\x80")
    assert b"grpc-status: 0\r\n" in bytes(body)

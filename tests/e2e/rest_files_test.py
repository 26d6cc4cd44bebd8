"""Tests POST /v1/predict/MODEL: the body is a file, the options are in the query. The answer must be Predict's."""

import http.client
import itertools
import json
import subprocess
import urllib.parse

import numpy
import pytest
from google.protobuf import json_format

import pictures
from harness import DEADLINE_SECONDS, ROOT, Daemon, eventually
from messages import message, predict_request
from tiny_models import smooth_volumes, tiny_actions, tiny_restorer, write_model

SIZE = (131, 75)
PICTURE = pictures.encoded(pictures.pixels(1, *SIZE))
FORM = "application/x-www-form-urlencoded"


def post(daemon, model, body=PICTURE, content_type="image/png", headers=(), **query):
    """Returns (status, parsed JSON). A list in `query` gives its parameter several times."""
    path = f"/v1/predict/{model}?{urllib.parse.urlencode(query, doseq=True)}"
    connection = http.client.HTTPConnection("127.0.0.1", daemon.http_port, timeout=DEADLINE_SECONDS)
    try:
        sent = {**dict(headers), **({"Content-Type": content_type} if content_type else {})}
        connection.request("POST", path, body, sent)
        answer = connection.getresponse()
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def check_same(daemon, body, request):
    """The answer `body` is that of Predict to `request`, except for its times."""
    found = json_format.ParseDict(body, message("saccade.v1.PredictResponse")())
    with daemon.vision() as vision:
        expected = vision.predict(request)
    for answer in (found, expected):
        answer.ClearField("timings")
        answer.ClearField("batch_size")
    assert found == expected


@pytest.mark.parametrize(
    "model, query, fields",
    [
        ("detector", {}, {}),
        ("detector", {"request_id": "a b/ä", "priority": 1, "version": 1},
         {"request_id": "a b/ä", "priority": 1, "version": 1}),
        ("detector", {"score_threshold": 0.1, "top_k": 2, "masks": "NONE", "classes": [1, 2]},
         {"detection": {"score_threshold": 0.1, "top_k": 2, "masks": "NONE", "classes": [1, 2]}}),
        ("detector", {"scoreThreshold": 0.1}, {"detection": {"score_threshold": 0.1}}),
        ("segmenter", {"format": "RAW", "size.width": 20, "size.height": 10},
         {"segmentation": {"format": "RAW", "size": {"width": 20, "height": 10}}}),
        ("segmenter", {"region.x": 5, "region.y": 6, "region.width": 50, "region.height": 40},
         {"region": {"x": 5, "y": 6, "width": 50, "height": 40}}),
    ],
)
def test_the_answer_is_that_of_grpc(tasks_daemon, model, query, fields):
    status, body = post(tasks_daemon, model, **query)
    assert status == 200, body
    check_same(tasks_daemon, body, predict_request(model=model, encoded=PICTURE, **fields))


@pytest.fixture(scope="module")
def media_daemon(tmp_path_factory):
    root = tmp_path_factory.mktemp("media")
    write_model(root, "clips", tiny_actions(), max_batch_size=1)
    write_model(root, "volumes", tiny_restorer(), max_batch_size=1)
    with Daemon(root, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


def test_videos_and_volumes(media_daemon):
    video = pictures.video([numpy.roll(pictures.pixels(1, 40, 40), index, axis=1) for index in range(20)], 10)
    status, body = post(media_daemon, "clips", video, "video/x-msvideo", score_threshold=0.05)
    assert status == 200, body
    check_same(media_daemon, body, predict_request(model="clips", clip={"video": video}, actions={"score_threshold": 0.05}))
    volume = pictures.tiff((1000 * smooth_volumes(1, 1, 8, 16, 12, seed=1)[0, 0].numpy()).astype(numpy.uint16))
    status, body = post(media_daemon, "volumes", volume, "image/tiff", type="FLOAT32")
    assert status == 200, body
    check_same(media_daemon, body, predict_request(model="volumes", volume={"tiff": volume}, restoration={"type": "FLOAT32"}))


@pytest.mark.parametrize("content_type", ["image/jpeg", "Image/PNG", "image/tiff; a=b", "application/octet-stream", FORM, None])
def test_types_that_are_accepted(tasks_daemon, content_type):
    """The daemon looks at the bytes, not at the name of the type."""
    status, body = post(tasks_daemon, "detector", content_type=content_type)
    assert status == 200, body


@pytest.mark.parametrize("content_type", ["text/plain", "application/json", "multipart/form-data; boundary=x", "image/gif"])
def test_types_that_are_refused(tasks_daemon, content_type):
    status, body = post(tasks_daemon, "detector", content_type=content_type)
    assert status == 415 and "image/jpeg" in body["error"]


@pytest.mark.parametrize("path", ["/v1/predict/detector", "/v2/models/detector/infer"])
def test_a_browsers_form_is_refused(tasks_daemon, path):
    for headers in ({"Sec-Fetch-Site": "same-origin"}, {"Origin": f"http://127.0.0.1:{tasks_daemon.http_port}"}):
        connection = http.client.HTTPConnection("127.0.0.1", tasks_daemon.http_port, timeout=DEADLINE_SECONDS)
        connection.request("POST", path, PICTURE, {"Content-Type": FORM, **headers})
        answer = connection.getresponse()
        assert answer.status == 415, answer.read()
        connection.close()


def test_curl(tasks_daemon, tmp_path):
    """curl --data-binary sends the type of a form."""
    (tmp_path / "a.png").write_bytes(PICTURE)
    for more in ([], ["--http2-prior-knowledge"], ["-H", "Transfer-Encoding: chunked"]):
        done = subprocess.run(
            ["curl", "-sS", "--max-time", "30", *more, "--data-binary", f"@{tmp_path / 'a.png'}",
             f"http://127.0.0.1:{tasks_daemon.http_port}/v1/predict/detector?top_k=1"],
            capture_output=True, check=True,
        )
        assert "detections" in json.loads(done.stdout)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "TIFF"])
@pytest.mark.parametrize("path, more, content_type", [
    ("/v1/predict/detector", [], FORM),
    ("/v1/predict/detector", ["-H", "Content-Type: image/jpeg"], "image/jpeg"),
    ("/v2/models/detector/infer", ["-H", "Inference-Header-Content-Length: 0"], FORM)])
def test_what_curl_d_sends_is_told_how_to_send_it(tasks_daemon, tmp_path, form, path, more, content_type):
    """curl -d removes zero bytes and line breaks, and sends the type of a form."""
    (tmp_path / "x").write_bytes(pictures.encoded(pictures.pixels(1), form))

    def send(flag):
        done = subprocess.run(["curl", "-sS", "--max-time", "30", *more, flag, f"@{tmp_path / 'x'}", "-w", "\n%{http_code}",
                               f"http://127.0.0.1:{tasks_daemon.http_port}{path}"], capture_output=True, check=True)
        body, _, status = done.stdout.rpartition(b"\n")
        return int(status), body

    status, body = send("-d")
    error = json.loads(body)["error"]
    assert status == 400 and "curl --data-binary @FILE" in error and f"'{content_type}'" in error, error
    assert send("--data-binary")[0] == 200


def documented(words, port, **replaced):
    """The command of docs/api.md that has these words, with its placeholders replaced; it goes on while lines do."""
    lines = (ROOT / "docs" / "api.md").read_text().splitlines()
    begin = next(at for at, line in enumerate(lines) if words in line)
    command = "\n".join(itertools.takewhile(lambda line: line.startswith("    "), lines[begin:]))
    for name, value in {"HOST:8000": f"127.0.0.1:{port}", **replaced}.items():
        command = command.replace(name, value)
    return command


def test_a_pair_of_photos_as_documented(tasks_daemon, tmp_path):
    """Each picture alone is longer than an argument of a command line may be."""
    for name, seed in (("left", 1), ("right", 2)):
        noise = numpy.random.default_rng(seed).integers(0, 256, (360, 480, 3), dtype=numpy.uint8)
        (tmp_path / f"{name}.png").write_bytes(pictures.encoded(noise))
        assert (tmp_path / f"{name}.png").stat().st_size > 128 * 1024
    command = documented('"model": "STEREO"', tasks_daemon.http_port, STEREO="stereo")
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, check=True)
    answer = json.loads(done.stdout)
    assert "disparity" in answer, answer


def test_a_picture_sent_to_infer_is_told_where_it_goes(tasks_daemon, tmp_path):
    (tmp_path / "cat.jpg").write_bytes(pictures.encoded(pictures.pixels(1), "JPEG"))
    url = f"http://127.0.0.1:{tasks_daemon.http_port}/v2/models/detector/infer"
    for more in ([], ["-H", "Content-Type: image/jpeg"], ["-H", "Content-Type: application/octet-stream"]):
        done = subprocess.run(["curl", "-sS", *more, "--data-binary", f"@{tmp_path / 'cat.jpg'}", url],
                              capture_output=True, check=True)
        error = json.loads(done.stdout)["error"]
        assert "/v1/predict/MODEL" in error and "Inference-Header-Content-Length: 0" in error, error
    command = documented("@cat.jpg", tasks_daemon.http_port, DETECTOR="detector").splitlines()[0]
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, check=True)
    # Binary data follow the JSON.
    assert json.JSONDecoder().raw_decode(done.stdout.decode("latin-1"))[0]["outputs"]


@pytest.mark.parametrize(
    "model, query, status, words",
    [
        ("nothing", {}, 404, ["nothing"]),
        ("detector", {"version": 7}, 404, ["version"]),
        ("detector", {"version_label": "best"}, 400, ["best"]),
        ("detector", {"colour": "red"}, 400, ["'colour'", "score_threshold", "request_id"]),
        ("segmenter", {"score_threshold": 0.5}, 400, ["'score_threshold'", "format"]),
        ("detector", {"score_threshold": "high"}, 400, ["score_threshold", "'high'", "a number"]),
        ("detector", {"score_threshold": 1.5}, 400, ["detection.score_threshold", "0 to 1"]),
        ("detector", {"masks": "BITS"}, 400, ["masks", "POLYGONS"]),
        ("detector", {"top_k": [1, 2]}, 400, ["top_k", "twice"]),
        ("detector", {"request_id": "a" * 129}, 400, ["request_id"]),
        ("detector", {"explain.layer": "x"}, 400, ["explain"]),
        ("stereo", {}, 400, ["stereo pairs"]),
    ],
)
def test_what_is_refused(tasks_daemon, model, query, status, words):
    found, body = post(tasks_daemon, model, **query)
    assert found == status, body
    for word in words:
        assert word in body["error"]


def test_bodies_that_are_no_pictures(tasks_daemon):
    for sent in (b"", b"no picture", PICTURE[:100]):
        status, body = post(tasks_daemon, "detector", sent)
        assert status == 400 and body["error"].startswith("body"), body
    connection = http.client.HTTPConnection("127.0.0.1", tasks_daemon.http_port, timeout=DEADLINE_SECONDS)
    connection.request("POST", "/v1/predict/detector?a=%zz", PICTURE)
    answer = connection.getresponse()
    assert answer.status == 400 and "hexadecimal" in json.loads(answer.read())["error"]
    connection.close()


def test_requests_are_counted(tasks_daemon):
    labels = {"model": "blind", "protocol": "http"}
    count = lambda code: tasks_daemon.metrics().total("saccade_requests_total", code=code, **labels)
    before = count("OK"), count("INVALID_ARGUMENT")
    assert post(tasks_daemon, "blind")[0] == 200
    assert post(tasks_daemon, "blind", b"no picture")[0] == 400
    assert (count("OK"), count("INVALID_ARGUMENT")) == (before[0] + 1, before[1] + 1)
    eventually(lambda: tasks_daemon.metrics().total("saccade_inflight_requests") == 0, "nothing is in flight")

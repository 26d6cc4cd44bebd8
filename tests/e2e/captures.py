"""Calls by every protocol, for tests of their capture."""

import base64
import json
import os
import pathlib
import subprocess
import urllib.error
import urllib.request

import pictures
from harness import DEADLINE_SECONDS, module_command
from messages import infer_request, message, predict_request, stream

# Of label maps and disparities.
RAW, FLOAT = 1, 2
PICTURE = pictures.encoded(pictures.pixels(1, 131, 75))
# Bytes that no hash and no description has.
UNIQUE = PICTURE[40:72]


def post(daemon, path, body, headers=None):
    """Returns (status, body)."""
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.http_port}{path}", body, headers or {})
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def call_by_grpc(daemon):
    """Predict for each task, and ModelInfer. Returns how many calls that were."""
    with daemon.vision() as vision:
        vision.predict(predict_request(model="detector", encoded=PICTURE, request_id="boxes"), timeout=DEADLINE_SECONDS)
        vision.predict(
            predict_request(model="segmenter", encoded=PICTURE, segmentation={"format": RAW}), timeout=DEADLINE_SECONDS
        )
        pair = {"left": {"encoded": PICTURE}, "right": {"encoded": PICTURE}}
        vision.predict(
            predict_request(model="stereo", stereo=pair, stereo_options={"format": FLOAT}), timeout=DEADLINE_SECONDS
        )
    with daemon.inference() as inference:
        inference.model_infer(bytes_request(), timeout=DEADLINE_SECONDS)
    return 4


def bytes_request():
    raw = len(PICTURE).to_bytes(4, "little") + PICTURE
    return infer_request("segmenter", [1], raw, datatype="BYTES")


def call_by_streams(daemon):
    with daemon.channel() as channel:
        vision = stream(channel, "saccade.v1.Vision", "PredictStream")
        sent = message("saccade.v1.PredictStreamRequest")(request=predict_request(model="detector", encoded=PICTURE))
        assert len(list(vision(iter([sent, sent]), timeout=DEADLINE_SECONDS))) == 2
        infer = stream(channel, "inference.GRPCInferenceService", "ModelStreamInfer")
        assert len(list(infer(iter([bytes_request()]), timeout=DEADLINE_SECONDS))) == 1
    return 3


def call_by_http(daemon):
    text = base64.b64encode(PICTURE).decode()
    body = json.dumps({"model": "detector", "encoded": text}).encode()
    assert post(daemon, "/v1/predict", body, {"Content-Type": "application/json"})[0] == 200
    assert post(daemon, "/v1/predict/detector?top_k=3", PICTURE, {"Content-Type": "image/png"})[0] == 200
    inputs = [{"name": "image", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": len(PICTURE) + 4}}]
    head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    raw = head + len(PICTURE).to_bytes(4, "little") + PICTURE
    headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(head))}
    assert post(daemon, "/v2/models/segmenter/infer", raw, headers)[0] == 200
    return 3


def replay(saccade, folder, daemon, output, *more, seconds=120, new=False):
    """Runs the command to its end, which is expected within so many seconds. `new` is that of module_command()."""
    line = module_command("saccade", "replay", folder, "--url", daemon.grpc_address,
                          "--http-url", f"127.0.0.1:{daemon.http_port}", "-o", output, "--speed", "max", *more, new=new)
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(saccade.__file__).parents[1])}
    return subprocess.run(line, capture_output=True, text=True, timeout=seconds, env=environment)


def report(output):
    return json.loads((output / "report.json").read_text())


def calls_of(saccade, folder):
    """The captured calls; fails if there is damage."""
    from saccade.replay.segments import read_folder

    damages = []
    calls = list(read_folder(pathlib.Path(folder), damages))
    assert not damages
    return calls

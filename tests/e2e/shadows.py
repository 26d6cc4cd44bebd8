"""Models of two versions, of which the second is the shadow of the first, and what the daemon found of them."""

import json
import time

import safetensors.torch

import pictures
from harness import DEADLINE_SECONDS, eventually
from messages import predict_request
from tiny_models import write_model

# The copies are computed on idle cores only: on a machine that has none they take long.
PATIENCE_SECONDS = 4 * DEADLINE_SECONDS


def write_versions(root, name, model, shadow, rule="version=2,share=1", **config):
    """Version 1 answers, and version 2 is its shadow."""
    write_model(root, name, model, parameters={"shadow": rule, **config.pop("parameters", {})}, **config)
    (root / name / "2").mkdir()
    safetensors.torch.save_file(shadow.state(), root / name / "2" / "weights.safetensors")
    with open(root / name / "config.pbtxt", "a") as file:
        file.write("version_policy { all { } }\n")


def report(daemon, model="m"):
    status, _, body = daemon.get(f"/v1/models/{model}/shadow")
    assert status == 200, body
    return json.loads(body)


def dropped(found):
    return sum(found["dropped"].values())


def until_compared(daemon, count, send, model="m"):
    """Sends until so many requests were compared; returns the number that was sent, and the report."""
    end = time.monotonic() + PATIENCE_SECONDS
    sent = 0
    while report(daemon, model)["compared"] < count:
        assert time.monotonic() < end, report(daemon, model)
        for _ in range(10):
            sent += 1
            send(sent)
    eventually(lambda: report(daemon, model)["in_flight"] == 0, "no copy was left")
    return sent, report(daemon, model)


def picture(seed):
    return pictures.encoded(pictures.pixels(seed))


def picture_sender(vision, model="m"):
    def send(seed):
        request = predict_request(model=model, encoded=picture(seed), request_id=f"r{seed}")
        answer = vision.predict(request)
        assert answer.version == 1, "requests without a version must not reach the shadow version"
    return send


def until_decided(daemon, send, model="m"):
    """Sends until it is decided whether the shadow version is promoted; returns the report."""
    end = time.monotonic() + PATIENCE_SECONDS
    sent = 0
    while report(daemon, model)["promote"]["state"] == "measuring":
        assert time.monotonic() < end, report(daemon, model)
        for _ in range(10):
            sent += 1
            send(sent)
    return report(daemon, model)

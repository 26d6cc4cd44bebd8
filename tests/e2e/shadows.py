"""Models of two versions, of which the second is the shadow of the first, and what the daemon found of them."""

import json
import time

import numpy
import safetensors.torch
import torch

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


class Noisy:
    """The model with other weights, by so much of each layer's deviation."""

    def __init__(self, model, amount):
        generator = numpy.random.default_rng(1)
        self.weights = {name: tensor + amount * (tensor.std() if tensor.numel() > 1 else 0)
                        * tensor.new_tensor(generator.standard_normal(tensor.shape))
                        if tensor.is_floating_point() and "running" not in name else tensor
                        for name, tensor in model.state().items()}

    def state(self):
        return {name: tensor.contiguous().clone() for name, tensor in self.weights.items()}


class Work(torch.nn.Module):
    """Doubles, and multiplies matrices for a while."""

    def __init__(self, rounds: int):
        super().__init__()
        self.rounds = rounds
        self.matrix = torch.nn.Parameter(torch.eye(96))

    def forward(self, x):
        product = self.matrix
        for _ in range(self.rounds):
            product = product @ self.matrix
        return 2 * x * product[0, 0]


def write_programs(folder, rounds, rule, first_rounds=20, max_batch_size=1):
    """Programs that compute `first_rounds` and `rounds` products in each pass, however many requests are in it."""
    model = folder / "models" / "m"
    for version, count in (("1", first_rounds), ("2", rounds)):
        (model / version).mkdir(parents=True)
        torch.jit.script(Work(count)).save(model / version / "model.pt")
    (model / "config.pbtxt").write_text(
        f"backend: 'pytorch' max_batch_size: {max_batch_size} version_policy {{ all {{ }} }} instance_group {{ count: 1 }}\n"
        "input { name: 'x' data_type: TYPE_FP32 dims: [ 4 ] } output { name: 'y' data_type: TYPE_FP32 dims: [ 4 ] }\n"
        "parameters { key: 'threads' value { string_value: '1' } }\n"
        "parameters { key: 'shadow' value { string_value: 'version=2,share=1' } }\n"
        f"parameters {{ key: 'promote' value {{ string_value: '{rule}' }} }}\n")


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


def picture_sender(vision, model="m", version=1):
    def send(seed):
        request = predict_request(model=model, encoded=picture(seed), request_id=f"r{seed}")
        answer = vision.predict(request)
        assert answer.version == version, "requests without a version must not reach the shadow version"
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

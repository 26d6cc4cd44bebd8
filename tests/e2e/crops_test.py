"""Tests ensembles with crops: what they answer is what a client gets that asks the models one after the other."""

import json
import math
import subprocess
import urllib.request
from typing import NamedTuple

import grpc
import numpy
import pytest
import torch
from torch import Tensor, nn

import pictures
from ensembles_test import step, tensor, write_ensemble
from harness import Daemon, binary, eventually
from messages import get_model_request, message, predict_request, stream
from tiles_test import ALLOW, Colours, write

SIDE = 64
LABELS = ["red", "green", "blue"]


class Names(nn.Module):
    """A classifier of four classes."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 4, 5, stride=2))

    def forward(self, pixel_values):
        return self.body(pixel_values).mean((2, 3))


class Vector(nn.Module):
    def forward(self, pixel_values):
        return nn.functional.avg_pool2d(pixel_values, 16).flatten(1)


class AfraidOfGreen(nn.Module):
    """A classifier without a result for green pictures."""

    def forward(self, pixel_values):
        means = pixel_values.mean((2, 3))
        return torch.where(means[:, 1:2] > means[:, 0:1], torch.nan, means)


class Slow(nn.Module):
    """A classifier that takes long."""

    def forward(self, pixel_values):
        grid = torch.ones(400, 400) + pixel_values.mean()
        for _ in range(90):
            grid = torch.tanh(grid @ grid)
        return pixel_values.mean((2, 3)) + grid.mean()


class Squares(NamedTuple):
    boxes: Tensor
    scores: Tensor
    labels: Tensor


class ManySquares(nn.Module):
    """Finds 64 squares in any picture, the last three of them beyond its border or without extent."""

    def forward(self, pixel_values: Tensor) -> Squares:
        n = pixel_values.shape[0]
        at = torch.arange(64)
        left, top = (at % 8) * 8.0, (at // 8) * 8.0
        boxes = torch.stack((left, top, left + 9.5, top + 7.25), 1)
        boxes[61] = 64.0
        boxes[62] = 0.0
        boxes[63, 0], boxes[63, 2] = -9.0, 90.0
        scores = torch.linspace(0.95, 0.32, 64)
        everywhere = lambda values: values[None].expand(n, *values.shape)  # noqa: E731
        return Squares(everywhere(boxes), everywhere(scores), everywhere(at % 3))


def crops(models, **rules):
    parameters = {"crops": models, **{f"crop_{name}": value for name, value in rules.items()}}
    return "".join(f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n' for key, value in parameters.items())


def write_crops(root, name, models, detector="colours", **rules):
    write_ensemble(
        root, name,
        [tensor("image", [1], "TYPE_STRING")],
        [tensor("boxes", [-1, 4]), tensor("scores", [-1])],
        [step(detector, {"image": "image"}, {"boxes": "boxes", "scores": "scores"})],
        more=crops(models, **rules),
    )  # fmt: skip


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    root = tmp_path_factory.mktemp("crops")
    models = root / "models"
    torch.manual_seed(3)
    boxes = {"kind": "boxes", "score_threshold": 0.1, "nms": 1}
    write(models, "colours", Colours(), boxes, labels=LABELS)
    write(models, "squares", ManySquares(), boxes, labels=LABELS)
    write(models, "names", Names(), {"kind": "classes"}, labels=["a", "b", "c", "d"])
    write(models, "vector", Vector(), {"kind": "embedding"})
    write(models, "afraid", AfraidOfGreen(), {"kind": "classes"})
    write(models, "slow", Slow(), {"kind": "classes"})
    write_crops(models, "named", "names,vector,colours_again", padding="0.25")
    write(models, "colours_again", Colours(), boxes, labels=LABELS)
    write_crops(models, "brave", "afraid")
    write_crops(models, "many", "names", detector="squares", max="64")
    write_crops(models, "some", "names", detector="squares", max="5", min_score="0.5", classes="0,2")
    write_crops(models, "late", "slow", detector="squares", max="64")
    with Daemon(models, ALLOW, log_folder=root) as running:
        yield running.await_ready()


@pytest.fixture(scope="module")
def vision(daemon):
    with daemon.vision() as made:
        yield made


def scene(width=200, height=150):
    array = pictures.pixels(7, width, height) // 4
    array[70:90, 20:180, 0] = 255
    array[10:30, 50:62, 1] = 255
    array[120:150, 190:200, 2] = 255
    return array


def region_around(box, padding, width, height):
    """The rule of docs/operations.md."""
    across, down = padding * (box.x_max - box.x_min), padding * (box.y_max - box.y_min)
    within = lambda value, most: min(max(value, 0), most)  # noqa: E731
    left = min(within(math.floor(box.x_min - across), width), width - 1)
    top = min(within(math.floor(box.y_min - down), height), height - 1)
    right = max(within(math.ceil(box.x_max + across), width), left + 1)
    bottom = max(within(math.ceil(box.y_max + down), height), top + 1)
    return message("saccade.v1.Region")(x=left, y=top, width=right - left, height=bottom - top)


def by_hand(vision, file, detector, models, padding):
    """The detections of `detector`, and for each what the models answer for its region."""
    found = vision.predict(predict_request(model=detector, encoded=file))
    for one in found.detections.detections:
        region = region_around(one.box, padding, found.picture_width, found.picture_height)
        for model in models:
            answer = vision.predict(predict_request(model=model, encoded=file, region=region))
            crop = one.crops.add(model=model, version=answer.version, region=region)
            kind = answer.WhichOneof("result")
            getattr(crop, kind).CopyFrom(getattr(answer, kind))
    return found


@pytest.mark.parametrize("format, options", [("PNG", {}), ("JPEG", {"quality": 90})])
def test_it_answers_as_three_models_asked_by_hand(vision, format, options):
    file = pictures.encoded(scene(), format, **options)
    expected = by_hand(vision, file, "colours", ["names", "vector", "colours_again"], 0.25)
    found = vision.predict(predict_request(model="named", encoded=file))
    assert len(found.detections.detections) >= 3
    assert all(len(one.crops) == 3 for one in found.detections.detections)
    # Bit for bit.
    assert found.detections.SerializeToString(deterministic=True) == expected.detections.SerializeToString(deterministic=True)
    assert (found.model, found.version, found.picture_width, found.picture_height) == ("named", 1, 200, 150)
    assert found.timings.infer.ToNanoseconds() > 0


def test_boxes_at_the_border_have_crops_of_at_least_a_pixel(vision):
    file = pictures.encoded(pictures.pixels(4, 64, 64))
    expected = by_hand(vision, file, "squares", ["names"], 0.0)
    found = vision.predict(predict_request(model="many", encoded=file))
    assert len(found.detections.detections) > 50
    assert found.detections == expected.detections
    assert all(one.crops[0].region.width >= 1 and one.crops[0].region.height >= 1 for one in found.detections.detections)


def test_the_rules_choose_the_detections(vision):
    found = vision.predict(predict_request(model="some", encoded=pictures.encoded(pictures.pixels(4, 64, 64)))).detections.detections
    with_crops = [one for one in found if one.crops]
    chosen = [one for one in found if one.class_index in (0, 2) and one.score >= 0.5][:5]
    assert len(with_crops) == 5 and with_crops == chosen


def test_the_requests_own_options_choose_before_the_rules(vision):
    options = message("saccade.v1.DetectionOptions")(classes=[1], top_k=2)
    request = predict_request(model="many", encoded=pictures.encoded(pictures.pixels(4, 64, 64)), detection=options)
    found = vision.predict(request).detections.detections
    assert [one.class_index for one in found] == [1, 1] and all(one.crops for one in found)


def test_without_detections_there_are_no_crops(vision):
    found = vision.predict(predict_request(model="named", encoded=pictures.encoded(numpy.zeros((40, 60, 3), numpy.uint8))))
    assert found.WhichOneof("result") == "detections" and not found.detections.detections


def test_crops_share_batches(daemon, vision):
    def counts():
        metrics = daemon.metrics()
        return [metrics.value(name, model="names", version="1") for name in ("nv_inference_count", "nv_inference_exec_count")]

    before = counts()
    found = vision.predict(predict_request(model="many", encoded=pictures.encoded(pictures.pixels(9, 64, 64))))
    computed, passes = numpy.subtract(counts(), before)
    assert computed == sum(len(one.crops) for one in found.detections.detections) and passes < computed
    assert daemon.metrics().value("nv_inference_count", model="many", version="1") > 0


def test_the_failure_of_one_crop_is_its_own(vision):
    found = vision.predict(predict_request(model="brave", encoded=pictures.encoded(scene()))).detections.detections
    by_label = {one.label: one.crops[0] for one in found}
    assert by_label["green"].WhichOneof("result") == "error" and by_label["green"].error
    assert by_label["red"].WhichOneof("result") == "classification"
    assert by_label["blue"].WhichOneof("result") == "classification"


def in_flight(daemon):
    return daemon.metrics().value("saccade_inflight_requests")


def test_a_deadline_ends_all_crops(daemon, vision):
    request = predict_request(model="late", encoded=pictures.encoded(pictures.pixels(4, 64, 64)))
    with pytest.raises(grpc.RpcError) as caught:
        vision.predict(request, timeout=1)
    # RESOURCE_EXHAUSTED: on a busy machine the queue foresees that the last crops would be late.
    assert caught.value.code() in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED)
    assert "deadline" in caught.value.details().lower()
    eventually(lambda: in_flight(daemon) == 0, "the crops end")


def test_a_cancelled_request_ends_its_crops(daemon):
    with daemon.vision() as made:
        call = made.predict.future(predict_request(model="late", encoded=pictures.encoded(pictures.pixels(4, 64, 64))))
        eventually(lambda: daemon.metrics().value("saccade_queue_requests", model="slow", version="1") > 0, "crops wait")
        call.cancel()
        eventually(lambda: in_flight(daemon) == 0, "the crops end")


def test_rest_has_crops(daemon, vision):
    file = pictures.encoded(scene())
    with urllib.request.urlopen(
        urllib.request.Request(f"http://127.0.0.1:{daemon.http_port}/v1/predict/named?top_k=1", data=file), timeout=30
    ) as answer:
        found = json.loads(answer.read())["detections"]["detections"]
    options = message("saccade.v1.DetectionOptions")(top_k=1)
    expected = vision.predict(predict_request(model="named", encoded=file, detection=options)).detections.detections
    assert len(found) == len(expected) == 1
    crops_found = found[0]["crops"]
    assert [one["model"] for one in crops_found] == ["names", "vector", "colours_again"]
    assert crops_found[0]["region"] == {"x": expected[0].crops[0].region.x, "y": expected[0].crops[0].region.y,
                                        "width": expected[0].crops[0].region.width, "height": expected[0].crops[0].region.height}  # fmt: skip
    first = expected[0].crops[0].classification.classes[0]
    assert crops_found[0]["classification"]["classes"][0]["label"] == first.label
    assert numpy.float32(crops_found[0]["classification"]["classes"][0]["probability"]) == numpy.float32(first.probability)
    assert len(crops_found[1]["embedding"]["values"]) == len(expected[0].crops[1].embedding.values) == 3 * 16


def test_a_stream_has_crops(daemon):
    item = message("saccade.v1.PredictStreamRequest")
    with daemon.channel() as channel:
        requests = [item(request=predict_request(model=model, encoded=pictures.encoded(scene()))) for model in ("named", "colours")]
        answers = list(stream(channel, "saccade.v1.Vision", "PredictStream")(iter(requests), timeout=30))
    assert [bool(one.answer.detections.detections[0].crops) for one in answers] == [True, False]


def test_it_is_listed_as_a_detector(vision):
    model = vision.get_model(get_model_request("named"))
    assert (model.task, list(model.labels), model.architecture) == ("detection", LABELS, "ensemble")


def refused(vision, **fields):
    with pytest.raises(grpc.RpcError) as caught:
        vision.predict(predict_request(**{"model": "named", "encoded": pictures.encoded(scene()), **fields}))
    return caught.value.code().name, caught.value.details()


def test_wrong_requests_are_refused(vision):
    code, details = refused(vision, explain=message("saccade.v1.Explain")())
    assert code == "INVALID_ARGUMENT" and "explain: is set, but model 'named' is an ensemble" in details
    code, details = refused(vision, classification=message("saccade.v1.ClassificationOptions")())
    assert code == "INVALID_ARGUMENT" and "model 'named' is for detection" in details
    code, details = refused(vision, encoded=b"no picture")
    assert code == "INVALID_ARGUMENT" and details.startswith("encoded: ")
    region = message("saccade.v1.Region")(x=190, y=0, width=20, height=10)
    code, details = refused(vision, region=region)
    assert code == "INVALID_ARGUMENT" and "region" in details


def test_the_clients_show_crops(daemon, saccade, tmp_path):
    with saccade.Client(daemon.grpc_address) as client:
        found = client.detect("named", scene()).detections[0]
        assert [one.model for one in found.crops] == ["names", "vector", "colours_again"]
        assert {one.label for one in found.crops[0].classes} == {"a", "b", "c", "d"}
        assert found.crops[1].embedding.shape == (48,)
        assert found.crops[2].detections and not found.crops[0].error
        failed = [one for one in client.detect("brave", scene()).detections if one.label == "green"]
        assert failed[0].crops[0].error and not failed[0].crops[0].classes
    (tmp_path / "scene.png").write_bytes(pictures.encoded(scene()))
    run = [binary("saccade"), "detect", "--url", daemon.grpc_address, "--model", "named", tmp_path / "scene.png"]
    shown = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    best = found.crops[0].classes[0]
    assert f"names: {best.label} {100 * best.probability:.1f}%" in shown.stdout
    written = subprocess.run([*run, "--json"], capture_output=True, text=True, timeout=60)
    assert written.returncode == 0, written.stderr
    crop = json.loads(written.stdout)["results"][0]["detections"][0]["crops"][0]
    assert crop["model"] == "names" and crop["classes"][0]["label"] == best.label


def test_models_that_do_not_fit_are_named(tmp_path):
    models = tmp_path / "models"
    write(models, "names", Names(), {"kind": "classes"})
    write(models, "colours", Colours(), {"kind": "boxes"}, labels=LABELS)
    write(models, "maps", nn.Conv2d(3, 4, 1), {"kind": "semantic"})
    write_crops(models, "unfit", "maps")
    write_crops(models, "classless", "names", classes="0,3")
    write_crops(models, "missing", "nobody")
    with Daemon(models, ALLOW, "--exit-on-error=false", log_folder=tmp_path) as daemon:
        daemon.await_ports()
        with daemon.vision() as vision:
            reasons = {}

            def all_are_tried():
                # While the daemon tries one again, it has no reason.
                for name in ("unfit", "classless", "missing"):
                    reasons[name] = vision.get_model(get_model_request(name)).reason or reasons.get(name)
                return all(reasons.values())

            eventually(all_are_tried, "all three are tried")
    assert "the task of model 'maps', which sees the crops, is segmentation, expected classification" in reasons["unfit"]
    assert "'crop_classes' names class 3, expected 0 to 2" in reasons["classless"]
    assert "nobody" in reasons["missing"]


def test_crops_are_computed_although_their_model_is_unloaded(tmp_path):
    models = tmp_path / "models"
    write(models, "squares", ManySquares(), {"kind": "boxes", "score_threshold": 0.1, "nms": 1}, labels=LABELS)
    write(models, "slow", Slow(), {"kind": "classes"})
    # More crops than one client has in flight, so that some begin after the unload.
    write_crops(models, "late", "slow", detector="squares", max="40")
    flags = ("--model-control-mode=explicit", "--load-model=*", "--unload-timeout-seconds=60")
    with Daemon(models, ALLOW, *flags, log_folder=tmp_path) as daemon:
        daemon.await_ready()
        with daemon.vision() as vision:
            request = predict_request(model="late", encoded=pictures.encoded(pictures.pixels(4, 64, 64)))
            call = vision.predict.future(request, timeout=60)
            queued = {"model": "slow", "version": "1"}
            eventually(lambda: daemon.metrics().value("saccade_queue_requests", **queued) > 0, "crops wait")
            unload = urllib.request.Request(
                f"http://127.0.0.1:{daemon.http_port}/v2/repository/models/slow/unload", data=b"", method="POST"
            )
            # It is answered when the crops have ended.
            urllib.request.urlopen(unload, timeout=60).close()
            found = call.result().detections.detections
    seen = [crop.WhichOneof("result") for one in found for crop in one.crops]
    assert seen == ["classification"] * 40

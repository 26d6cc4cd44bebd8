"""`saccade evaluate` with a real daemon: the figures of networks with random weights are those of their answers, and an
evaluation that was killed goes on."""

import json
import os
import pathlib
import signal
import subprocess

import numpy
import pytest
from PIL import Image

import evaluation_folders as folders
import pictures
from harness import Daemon, binary, eventually, module_command
from messages import message, predict_request
from models.reference import metrics
from tiny_models import Identity, TinyTask, smooth_volumes, write_model

# Formats of masks, label maps and disparities.
RLE, RAW, FLOAT = 1, 2, 2


@pytest.fixture(scope="module")
def restorer(tmp_path_factory):
    """Gives volumes back, each after a while."""
    root = tmp_path_factory.mktemp("repository")
    write_model(root, "restorer", Identity(delay_ms_per_item="250"), max_batch_size=1)
    with Daemon(root, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture
def command(saccade, tmp_path):
    """command(daemon, dataset, folder, ...): the line of the command, whose output is the test's folder `out`. `new` is that of
    module_command()."""
    installed = pathlib.Path(saccade.__file__).parents[1]

    def line(daemon, dataset, folder, model, *more, new=False):
        words = ["evaluate", "--dataset", dataset, folder, "--model", model, "--url", daemon.grpc_address, "-o", tmp_path / "out", *more]
        return ["env", f"PYTHONPATH={installed}", *module_command("saccade", *words, new=new)]

    return line


def run(line):
    return subprocess.run(line, capture_output=True, text=True, timeout=120)


def result(tmp_path):
    return json.loads((tmp_path / "out" / "result.json").read_text())


def figures(tmp_path):
    return {one["name"]: one["value"] for one in result(tmp_path)["figures"]}


def test_a_classifier_on_imagenet(daemon, tiny, command, tmp_path):
    sent, truths = [], []
    for index in range(20):
        # The shorter side is what the network scales it to, so that only cropping is left.
        array = pictures.pixels(index, tiny.resize, tiny.resize)
        path = tmp_path / "in" / "val" / f"n0000000{index % 5}" / f"ILSVRC2012_val_{index:08}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(array).save(path)
        sent.append(array)
        truths.append(index % 5)
    ended = run(command(daemon, "imagenet", tmp_path / "in", "tiny"))
    assert ended.returncode == 0, ended.stderr
    guesses = tiny.logits(tiny.prepared(sent)).argmax(axis=1)
    expected = 100 * float((guesses == numpy.array(truths)).mean())
    assert figures(tmp_path) == {"top-1": pytest.approx(expected), "top-5": 100}
    told = result(tmp_path)
    assert (told["samples"], told["evaluated"], told["failures"]) == (20, 20, [])
    # A quarter of the width is not the paper's network.
    assert told["model"]["architecture"] == "sanet" and told["published"] is None
    assert f"| top-1 | {expected:.2f} % | - | - |" in ended.stdout
    assert ended.stdout == (tmp_path / "out" / "result.md").read_text()


def boxes_of(detections):
    return numpy.array([[one.box.x_min, one.box.y_min, one.box.x_max, one.box.y_max] for one in detections]).reshape(-1, 4)


def masks_of(detections):
    return numpy.array([metrics.decoded(one.mask.height, one.mask.width, one.mask.counts) for one in detections], bool)


def test_a_detector_on_coco(tasks_daemon, command, tmp_path):
    folders.coco(tmp_path / "in")
    annotations = tmp_path / "in" / "annotations" / "instances_val2017.json"
    content = json.loads(annotations.read_text())
    content["categories"] = [{"id": 10 * number, "name": name} for number, name in enumerate(("cat", "dog", "bird", "cow"), 1)]
    content["annotations"] = []
    truths, found = [], []
    with tasks_daemon.vision() as vision:
        for image in content["images"]:
            path = tmp_path / "in" / "val2017" / image["file_name"]
            path.write_bytes(pictures.encoded(pictures.pixels(image["id"], 96, 64)))
            options = message("saccade.v1.DetectionOptions")(masks=RLE)
            request = predict_request(model="detector", encoded=path.read_bytes(), detection=options)
            detections = vision.predict(request).detections.detections
            assert len(detections) > 2
            classes = numpy.array([10 * one.class_index for one in detections])
            scores = numpy.array([one.score for one in detections])
            found.append(metrics.Found(boxes_of(detections), scores, classes, masks_of(detections)))
            # The truth: every second detection, moved by two pixels.
            kept = slice(0, None, 2)
            boxes, masks = boxes_of(detections)[kept] + [2, 0, 2, 0], numpy.roll(masks_of(detections)[kept], 2, axis=2)
            truths.append(metrics.Truth(boxes, classes[kept], masks))
            for box, kind, mask in zip(boxes, classes[kept], masks):
                (left, top, right, bottom), area = box.tolist(), float(mask.sum())
                segment = metrics.coco_mask.encode(numpy.asfortranarray(mask.astype(numpy.uint8)))
                content["annotations"].append({
                    "id": len(content["annotations"]) + 1, "image_id": image["id"], "category_id": int(kind), "iscrowd": 0,
                    "bbox": [left, top, right - left, bottom - top], "area": area,
                    "segmentation": {"size": segment["size"], "counts": segment["counts"].decode()}})
    annotations.write_text(json.dumps(content))
    ended = run(command(tasks_daemon, "coco", tmp_path / "in", "detector"))
    assert ended.returncode == 0, ended.stderr
    told = figures(tmp_path)
    for kind, name in (("bbox", "box"), ("segm", "mask")):
        expected = metrics.average_precision(truths, found, kind)
        assert (told[f"{name} AP"] / 100, told[f"{name} AP50"] / 100) == pytest.approx(expected), kind
    assert 0 < told["box AP"] < 100


def test_a_stereo_matcher_on_kitti(tasks_daemon, command, tmp_path):
    errors, missing = [], 0
    with tasks_daemon.vision() as vision:
        for number in range(2):
            name, sides = f"{number:06}_10.png", {}
            for place, side in (("image_2", "left"), ("image_3", "right")):
                path = tmp_path / "in" / "training" / place / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(pictures.encoded(pictures.pixels(7 + number + len(side), 96, 64)))
                sides[side] = message("saccade.v1.Picture")(encoded=path.read_bytes())
            pair = message("saccade.v1.StereoPair")(**sides)
            options = message("saccade.v1.StereoOptions")(format=FLOAT)
            answer = vision.predict(predict_request(model="stereo", stereo=pair, stereo_options=options)).disparity
            got = numpy.frombuffer(answer.map, "<f4").reshape(64, 96)
            # Off by 1 on the left, by 4 on the right, and not measured in the upper rows.
            truth = got + numpy.where(numpy.arange(96) < 48, 1, 4)
            values = numpy.round(256 * truth).astype(numpy.uint16)
            values[:16] = 0
            folders.png(tmp_path / "in" / "training" / "disp_occ_0" / name, values)
            measured = values > 0
            errors.append(numpy.abs(values / 256 - got)[measured])
            missing += (~numpy.isfinite(got)).sum()
    assert missing == 0
    ended = run(command(tasks_daemon, "kitti", tmp_path / "in", "stereo"))
    assert ended.returncode == 0, ended.stderr
    told, every = figures(tmp_path), numpy.concatenate(errors)
    assert told["EPE, all"] == pytest.approx(every.mean()) == pytest.approx(2.5, abs=0.01)
    assert told["3-px, all"] == pytest.approx(50) and told["density, all"] == 100 and "EPE, noc" not in told


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """A segmenter with VOC's classes and an action finder with THUMOS 2014's."""
    root = tmp_path_factory.mktemp("narrow")
    sizes = {"width": "0.125", "blocks": "1,1,1,1"}
    labels = [f"class {index}" for index in range(21)]
    write_model(root, "segmenter", TinyTask("deeplabv2_kao_kv", labels, seed=4, head_channels="16", long_side="128", **sizes))
    clips = smooth_volumes(2, 3, 16, 32, 32, seed=6)
    finder = TinyTask("ea_rc3d", labels, seed=9, batch=clips, size="32", frames="16", anchors="1,2", frames_per_second="5",
                      score_threshold="0.02", detections="8", proposals="20", **sizes,
                      settled_part=lambda network: lambda batch: network(batch, [16] * len(batch)))
    write_model(root, "finder", finder)
    with Daemon(root, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


def test_a_segmenter_on_voc(narrow, command, tmp_path):
    folders.voc(tmp_path / "in")
    inner, confusions = tmp_path / "in" / "VOCdevkit" / "VOC2012", 0
    with narrow.vision() as vision:
        for number, picture in enumerate(sorted((inner / "JPEGImages").iterdir())):
            Image.fromarray(pictures.pixels(number, 80, 64)).save(picture)
            options = message("saccade.v1.SegmentationOptions")(format=RAW)
            answer = vision.predict(predict_request(model="segmenter", encoded=picture.read_bytes(),
                                                    segmentation=options)).segmentation
            got = numpy.frombuffer(answer.label_map, numpy.uint8).reshape(64, 80)
            truth = got.copy()
            truth[:, :40], truth[:8] = (got[:, :40] + 1) % 21, 255
            folders.png(inner / "SegmentationClass" / f"{picture.stem}.png", truth, palette=True)
            counted = truth != 255
            confusions = confusions + metrics.confusion(truth[counted], got[counted], 21)
    ended = run(command(narrow, "voc", tmp_path / "in", "segmenter"))
    assert ended.returncode == 0, ended.stderr
    told = figures(tmp_path)
    assert told["pixel accuracy"] == 50
    assert told["mIoU"] == pytest.approx(100 * metrics.mean_iou(confusions))


def test_actions_on_thumos14(narrow, command, tmp_path):
    folders.thumos14(tmp_path / "in", frames=40)
    for video in ("video_test_0000004", "video_test_0000006"):
        for index, path in enumerate(sorted((tmp_path / "in" / "frames" / video).iterdir())):
            Image.fromarray(pictures.pixels(index, 48, 40)).save(path)
    ended = run(command(narrow, "thumos14", tmp_path / "in", "finder", "--frames-per-second", "5"))
    assert ended.returncode == 0, ended.stderr
    records = [json.loads(line) for line in lines(tmp_path)[1:]]
    # 40 frames in windows of 16, at 0, 8, 16 and 24.
    assert sorted(one["key"] for one in records) == sorted(
        f"video_test_000000{video}@{first}" for video in (4, 6) for first in (0, 8, 16, 24))
    found = [action for one in records for action in one["record"]]
    assert found and all(0 <= kind < 20 and 0 <= start < end <= 8 + 1e-6 for kind, start, end, _ in found)
    last = [start for one in records if one["key"].endswith("@24") for _, start, *_ in one["record"]]
    assert last and min(last) >= 24 / 5 - 1e-6, "segments are told in the video's time"
    assert set(figures(tmp_path)) == {f"mAP@{threshold}" for threshold in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)}


def lines(tmp_path):
    path = tmp_path / "out" / "answers.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def test_an_evaluation_that_was_killed_goes_on(restorer, command, tmp_path):
    for index in range(20):
        for part in ("GT", "condition_1"):
            folders.tiff(tmp_path / "in" / "test_data" / part / f"{index:02}.tif", folders.care_volume(index))
    line = command(restorer, "care", tmp_path / "in", "restorer", "--max-in-flight", "2", new=True)
    running = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    eventually(lambda: len(lines(tmp_path)) > 3, "some answers")
    running.send_signal(signal.SIGKILL)
    running.communicate()
    before = len(lines(tmp_path)) - 1
    assert running.returncode == -signal.SIGKILL and 3 <= before < 20
    # The crash may have cut a line off.
    with open(tmp_path / "out" / "answers.jsonl", "a") as file:
        file.write('{"key": "condition_1/19", "rec')
    again = run(line)
    assert again.returncode == 0, again.stderr
    assert f"{before} samples were evaluated by an earlier run" in again.stderr
    keys = [json.loads(one)["key"] for one in lines(tmp_path)[1:]]
    assert sorted(keys) == [f"condition_1/{index:02}" for index in range(20)], "each once"
    told = figures(tmp_path)
    # The answer is the truth.
    assert told["NRMSE"] < 1e-6 and told["SSIM"] == pytest.approx(1) and told["PSNR"] > 120
    # With everything answered nothing is sent, and the figures are the same.
    assert run(line).returncode == 0 and figures(tmp_path) == told and len(lines(tmp_path)) == 21


def test_another_evaluation_does_not_mix_with_the_answers(restorer, command, tmp_path):
    folders.care(tmp_path / "in")
    assert run(command(restorer, "care", tmp_path / "in", "restorer", "--limit", "1")).returncode == 0
    other = run(command(restorer, "care", tmp_path / "in", "restorer", "--variant", "condition_2"))
    assert other.returncode == 1
    assert "belongs to an evaluation with another variant: None, now condition_2" in other.stderr
    # The rest of the same evaluation is no other one.
    assert run(command(restorer, "care", tmp_path / "in", "restorer")).returncode == 0
    assert (result(tmp_path)["samples"], result(tmp_path)["evaluated"]) == (4, 4)
    (tmp_path / "out" / "answers.jsonl").write_text("nothing of ours\n")
    damaged = run(command(restorer, "care", tmp_path / "in", "restorer"))
    assert damaged.returncode == 1 and "is damaged" in damaged.stderr and "Traceback" not in damaged.stderr


def test_a_sample_without_an_answer_is_told_and_tried_again(restorer, command, tmp_path):
    folders.care(tmp_path / "in")
    damaged = tmp_path / "in" / "test_data" / "condition_1" / "EXP278_b.tif"
    whole = damaged.read_bytes()
    damaged.write_bytes(b"no TIFF")
    line = command(restorer, "care", tmp_path / "in", "restorer")
    first = run(line)
    assert first.returncode == 1
    assert "1 samples have no answer, such as condition_1/EXP278_b: INVALID_ARGUMENT" in first.stderr
    assert "3 of 4 samples" in first.stdout and "these are not the data set's figures" in first.stdout
    assert [one["sample"] for one in result(tmp_path)["failures"]] == ["condition_1/EXP278_b"]
    damaged.write_bytes(whole)
    second = run(line)
    assert second.returncode == 0, second.stderr
    assert result(tmp_path)["failures"] == [] and result(tmp_path)["evaluated"] == 4


@pytest.mark.parametrize(("dataset", "model", "more", "said"), [
    ("imagenet", "restorer", (), "model restorer has the task restoration; imagenet is for models of classification"),
    ("care", "nothing", (), "rejects the job"),
    ("care", "restorer", ("--split", "other"), "in/other is not a folder; expected CARE's test data"),
    ("care", "restorer", ("--url", "127.0.0.1:1", "--patience-seconds", "1"), "nothing was answered at 127.0.0.1:1"),
])
def test_what_cannot_be_evaluated_is_said(restorer, command, tmp_path, dataset, model, more, said):
    (tmp_path / "in").mkdir()
    ended = run(command(restorer, dataset, tmp_path / "in", model, *more))
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    assert said in ended.stderr.replace("\n", " "), ended.stderr


def test_a_folder_that_is_not_there(restorer, command, tmp_path):
    ended = run(command(restorer, "care", tmp_path / "nothing", "restorer"))
    assert ended.returncode == 1 and "is not a folder; expected the data set care" in ended.stderr


def test_the_command_is_run_by_saccade(tmp_path):
    program = tmp_path / "saccade-evaluate"
    program.write_text('#!/bin/sh\necho "given: $*"\n')
    program.chmod(0o755)
    line = [binary("saccade").resolve(), "evaluate", "--dataset", "coco", "DIR"]
    found = subprocess.run(line, capture_output=True, text=True, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert found.stdout == "given: --dataset coco DIR\n"
    missing = subprocess.run(line, capture_output=True, text=True, env={"PATH": "/nothing"})
    assert missing.returncode == 1 and "pip install './client/python[evaluate]'" in missing.stderr

"""`saccade replay`: the same build answers bit for bit the same, and a change of the weights is found. Reads captures that
are cut or damaged anywhere."""

import concurrent.futures
import io
import json
import math
import os
import random
import re

import numpy
import pytest
import torch

import captures
import pictures
from captures import FLOAT, calls_of, replay, report
from harness import DEADLINE_SECONDS, Daemon
from messages import predict_request
from tests.long_form import LONG
from tiny_models import TinyModel, tiny_detector, tiny_segmenter, tiny_stereo, write_model

CLIENTS = 8


def write_repository(root, change=0.0):
    """`change` scales one layer of each network."""
    for name, make in (("detector", tiny_detector), ("segmenter", tiny_segmenter), ("stereo", tiny_stereo)):
        model = make()
        with torch.no_grad():
            next(model.network.parameters()).mul_(1 + change)
        write_model(root, name, model, max_batch_size=4)
    return root


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return write_repository(tmp_path_factory.mktemp("repository"))


@pytest.fixture(scope="module")
def capture(repository, tmp_path_factory):
    """A capture of every protocol, with errors."""
    folder = tmp_path_factory.mktemp("capture") / "calls"
    flags = (f"--capture={folder}", "--lame-duck-seconds=0", "--warm-up-seconds=0")
    with Daemon(repository, *flags, log_folder=tmp_path_factory.mktemp("log")) as daemon:
        daemon.await_ready()
        captures.call_by_grpc(daemon)
        captures.call_by_streams(daemon)
        captures.call_by_http(daemon)
        assert captures.post(daemon, "/v1/predict/detector", b"no picture", {"Content-Type": "image/png"})[0] == 400
        daemon.terminate()
        assert daemon.exit_code() == 0
    return folder


CALLS = 11


@pytest.fixture(scope="module")
def daemon(repository, tmp_path_factory):
    with Daemon(repository, "--warm-up-seconds=0", log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.mark.parametrize("more", [(), ("--expect", "exact")])
def test_the_same_build_answers_bit_for_bit_the_same(saccade, capture, daemon, tmp_path, more):
    done = replay(saccade, capture, daemon, tmp_path / "out", *more, new=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = report(tmp_path / "out")
    assert (found["compared"], found["equal"], found["different"], found["skipped"]) == (CALLS, CALLS, 0, {})
    assert all(one["computes_alike"] for one in found["models"].values())
    assert f"{CALLS} answers are bit for bit the same" in done.stdout
    assert "none differs" in (tmp_path / "out" / "report.html").read_text()


def test_many_answers_in_other_batches_are_the_same(saccade, start, tmp_path):
    """Eight clients send, and the replay sends as fast as it can, so requests share their passes with others than before.
    SACCADE_LONG=1 sends 100,000."""
    count = 100_000 if LONG else 800
    write_model(tmp_path / "models", "classifier", TinyModel(classes=5, seed=3), max_batch_size=8)
    write_model(tmp_path / "models", "detector", tiny_detector(), max_batch_size=8)
    files = [pictures.encoded(pictures.pixels(seed, 40 + 9 * (seed % 7), 40 + 11 * (seed % 5)), "JPEG") for seed in range(64)]
    flags = (f"--capture={tmp_path / 'calls'}", "--lame-duck-seconds=0", "--warm-up-seconds=0")
    daemon = start(tmp_path / "models", *flags).await_ready()

    def send(client):
        shared = set()
        with daemon.vision() as vision:
            for number in range(client, count, CLIENTS):
                model = "detector" if number % 20 == 0 else "classifier"
                answer = vision.predict(predict_request(model=model, encoded=files[number % len(files)]), timeout=DEADLINE_SECONDS)
                shared.add(answer.batch_size)
        return shared

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        sizes = set().union(*clients.map(send, range(CLIENTS)))
    assert len(sizes) > 1, "some requests share a pass"
    daemon.terminate()
    assert daemon.exit_code() == 0
    daemon = start(tmp_path / "models", "--warm-up-seconds=0").await_ready()
    done = replay(saccade, tmp_path / "calls", daemon, tmp_path / "out", "--expect", "exact", seconds=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    found = report(tmp_path / "out")
    assert (found["compared"], found["equal"], found["different"], found["skipped"]) == (count, count, 0, {})


def test_other_weights_are_found_and_drawn(saccade, capture, tmp_path, start):
    changed = write_repository(tmp_path / "changed", change=0.2)
    daemon = start(changed, "--warm-up-seconds=0").await_ready()
    done = replay(saccade, capture, daemon, tmp_path / "out", "--expect", "exact")
    assert done.returncode == 1, done.stdout + done.stderr
    found = report(tmp_path / "out")
    # The error is the same.
    assert (found["compared"], found["different"], found["equal"]) == (CALLS, CALLS - 1, 1)
    assert not any(one["computes_alike"] for one in found["models"].values())
    assert {one["kind"] for one in found["worst"]} == {"detections", "segmentation", "disparity", "tensors"}
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("<section>") == CALLS - 1
    # Boxes over the picture, and maps; nothing from elsewhere.
    assert "<rect " in page and page.count("data:image/png;base64,") > 4
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert (tmp_path / "out" / "report.html").stat().st_mode & 0o777 == 0o600
    lax = replay(saccade, capture, daemon, tmp_path / "lax", "--expect", "1000000", "--model", "stereo")
    assert lax.returncode == 0, lax.stdout + lax.stderr
    assert report(tmp_path / "lax")["close"] == 1


def test_a_call_is_sent_at_its_time(saccade, capture, daemon, tmp_path):
    first, *_, last = sorted(call.arrival for call in calls_of(saccade, capture))
    done = replay(saccade, capture, daemon, tmp_path / "out", "--speed", "1x")
    assert done.returncode == 0, done.stdout + done.stderr
    assert report(tmp_path / "out")["seconds"] >= last - first


def test_a_model_that_is_not_there_is_an_error_before_anything_is_sent(saccade, capture, tmp_path, start):
    part = tmp_path / "part"
    part.mkdir()
    write_model(part, "segmenter", tiny_segmenter(), max_batch_size=4)
    daemon = start(part, "--warm-up-seconds=0").await_ready()
    done = replay(saccade, capture, daemon, tmp_path / "out")
    assert done.returncode == 1 and not (tmp_path / "out").exists()
    assert "does not serve detector, stereo of the capture; it serves segmenter" in done.stderr
    chosen = replay(saccade, capture, daemon, tmp_path / "out", "--model", "segmenter")
    assert chosen.returncode == 0, chosen.stdout + chosen.stderr


def test_what_cannot_be_replayed_is_said(saccade, daemon, repository, tmp_path, start):
    nothing = replay(saccade, tmp_path / "nowhere", daemon, tmp_path / "out")
    assert nothing.returncode == 1 and "cannot be read: No such file" in nothing.stderr
    (tmp_path / "empty").mkdir()
    empty = replay(saccade, tmp_path / "empty", daemon, tmp_path / "out")
    assert empty.returncode == 1 and "has no capture-*.saccade" in empty.stderr
    redacted = start(repository, f"--capture={tmp_path / 'calls'}", "--capture-pixels=hash", "--lame-duck-seconds=0",
                     "--warm-up-seconds=0").await_ready()
    captures.call_by_grpc(redacted)
    redacted.terminate()
    assert redacted.exit_code() == 0
    done = replay(saccade, tmp_path / "calls", daemon, tmp_path / "out")
    assert done.returncode == 1 and "has no pixels" in done.stderr
    usage = replay(saccade, tmp_path / "calls", daemon, tmp_path / "out", "--expect", "roughly")
    assert usage.returncode == 2 and "expected exact, or a number" in usage.stderr
    unreachable = replay(saccade, tmp_path / "calls", daemon, tmp_path / "out", "--url", "127.0.0.1:1")
    assert unreachable.returncode == 1


def segment_of(capture):
    (path,) = capture.glob("*.saccade")
    return path.read_bytes()


def read(data):
    """(calls, damages)"""
    from saccade.replay.segments import read_segment

    damages = []
    return list(read_segment(io.BytesIO(data), "segment", damages)), damages


def frame_ends(data):
    from saccade.replay.segments import MAGIC

    ends = [len(MAGIC)]
    while ends[-1] < len(data):
        ends.append(ends[-1] + 8 + int.from_bytes(data[ends[-1] : ends[-1] + 4], "little"))
    return ends


def test_a_segment_that_was_cut_anywhere_keeps_what_came_before(saccade, capture):
    data = segment_of(capture)
    ends = frame_ends(data)
    assert ends[-1] == len(data) and len(ends) == CALLS + 1
    whole, damages = read(data)
    assert len(whole) == CALLS and not damages
    # Every cut near the border of a frame, and many elsewhere.
    near = {end + by for end in ends for by in range(-12, 13)}
    cuts = {cut for cut in near | set(range(0, len(data), 997)) if 0 <= cut < len(data)}
    for cut in cuts:
        calls, damages = read(data[:cut])
        expected = max(sum(1 for end in ends if end <= cut) - 1, 0)
        assert [call.arrival for call in calls] == [call.arrival for call in whole[:expected]], cut
        assert bool(damages) == (cut not in ends), cut


def test_damage_anywhere_is_told_and_never_believed(saccade, capture):
    data = segment_of(capture)
    whole, _ = read(data)
    known = {(call.arrival, call.request, call.answer) for call in whole}
    chance = random.Random(1)
    for _ in range(1500):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(damaged))
            damaged[at] ^= 1 << chance.randrange(8)
        if damaged == data:
            continue
        calls, damages = read(bytes(damaged))
        assert damages and len(calls) < len(whole)
        assert {(call.arrival, call.request, call.answer) for call in calls} <= known


def test_frames_whose_checksum_fits_are_checked_too(saccade):
    import struct
    import zlib

    from saccade.replay.segments import MAGIC

    def frame(packed):
        return struct.pack("<II", len(packed), zlib.crc32(packed)) + packed

    # Not zstd; a frame of zstd that claims 2^62 bytes; one that is cut.
    huge = bytes.fromhex("28b52ffd") + bytes([0xE0]) + (1 << 62).to_bytes(8, "little") + b"\1\0\0"
    for packed in (b"", b"no frame", huge, bytes.fromhex("28b52ffd2005")):
        calls, damages = read(MAGIC + frame(packed) * 2)
        assert not calls and len(damages) == 2


def test_a_damaged_segment_is_told_and_the_rest_is_replayed(saccade, capture, daemon, tmp_path):
    data = segment_of(capture)
    folder = tmp_path / "calls"
    folder.mkdir()
    (folder / "capture-1.saccade").write_bytes(data[:-1])
    (folder / "capture-2.saccade").write_bytes(os.urandom(100))
    done = replay(saccade, folder, daemon, tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "capture-1.saccade: is cut" in done.stderr and "capture-2.saccade: is no capture of this version" in done.stderr
    assert report(tmp_path / "out")["compared"] == CALLS - 1


def test_a_call_without_an_answer_is_a_difference(saccade, capture, daemon, tmp_path):
    done = replay(saccade, capture, daemon, tmp_path / "out", "--http-url", "127.0.0.1:1", "--patience-seconds", "0")
    assert done.returncode == 1
    worst = json.loads((tmp_path / "out" / "report.json").read_text())["worst"]
    assert len(worst) == 4 and all("UNAVAILABLE" in one["what"] for one in worst)


@pytest.fixture(scope="module")
def pb(saccade):
    from saccade.v1 import vision_pb2

    return vision_pb2


def verdict(before, now, is_depth=False):
    """(the difference, whether the task's tolerance accepts it)"""
    from saccade.replay.answers import Answer
    from saccade.replay.measures import TOLERANCES, difference

    found = difference(*(Answer("OK", result=one, is_depth=is_depth) for one in (before, now)))
    return found.value, found.value <= TOLERANCES[found.kind]


def detected(pb, **parts):
    """One object of 100 x 50 pixels, with these parts."""
    one = pb.Detection(box={"x_max": 100, "y_max": 50}, score=0.9, class_index=1, **parts)
    return pb.PredictResponse(detections={"detections": [one]})


def rle(columns):
    """The mask of the first columns of a picture of 100 x 50."""
    from saccade.masks import encode_values

    inside = numpy.arange(100)[None].repeat(50, 0) < columns
    return {"height": 50, "width": 100, "counts": encode_values(inside)[True], "area": 50 * columns}


def test_the_models_of_a_result_are_counted_under_its_lock(saccade):
    from saccade.replay import job

    class Watched(job.Result):
        @property
        def total(self):
            locked.append(findings._lock.locked())
            return super().total

    locked = []
    result = Watched(models={"m": job.Tally(compared=3, different=2)})
    findings = job._Findings(None, result, {})
    assert findings.different() == 2 and locked == [True]


def test_masks_are_compared(pb):
    assert verdict(detected(pb, mask=rle(80)), detected(pb, mask=rle(78))) == (pytest.approx(2 / 80), True)
    assert verdict(detected(pb, mask=rle(80)), detected(pb, mask=rle(40))) == (pytest.approx(0.5), False)
    broken = {**rle(80), "counts": "~"}
    polygon = {"polygons": [{"points": [0, 0, 9, 0, 9, 9]}]}
    other = {"polygons": [{"points": [0, 0, 8, 0, 8, 8]}]}
    for before, now in (
        ({"mask": rle(80)}, {}), ({"mask": rle(80)}, {"mask": broken}), ({"mask": rle(80)}, {"mask_polygons": polygon}),
        ({"mask": rle(80)}, {"mask": {**rle(80), "width": 99}}), ({"mask_polygons": polygon}, {"mask_polygons": other}),
        ({"mask_picture": {"png": b"one"}}, {"mask_picture": {"png": b"other"}}),
    ):
        assert verdict(detected(pb, **before), detected(pb, **now)) == (math.inf, False)


def test_keypoints_are_compared_by_their_distance(pb):
    def at(x, y, score=1.0):
        return detected(pb, keypoints=[{"x": x, "y": y, "score": score}])

    # 5 px of an object that is 100 px long.
    assert verdict(at(10, 10), at(13, 14)) == (pytest.approx(0.05), True)
    assert verdict(at(10, 10), at(40, 50)) == (pytest.approx(0.5), False)
    assert verdict(at(10, 10), at(10, 10, score=0.2)) == (pytest.approx(0.8), False)
    assert verdict(at(10, 10), detected(pb)) == (math.inf, False)
    assert verdict(at(10, 10), at(math.nan, 10)) == (math.inf, False)


def test_crops_are_compared_by_their_own_task(pb):
    region = {"width": 100, "height": 50}

    def crop(region=region, model="breeds", **result):
        return detected(pb, crops=[{"model": model, "region": region, **result}])

    def of_class(probability):
        return {"classification": {"classes": [{"index": 1, "probability": probability}]}}

    # Half of the tolerance of a classification is half of that of a detection.
    assert verdict(crop(**of_class(0.5)), crop(**of_class(0.505))) == (pytest.approx(0.025, rel=1e-3), True)
    assert verdict(crop(**of_class(0.5)), crop(**of_class(0.9)))[1] is False
    assert verdict(crop(**of_class(0.5)), crop(region={"width": 50, "height": 50}, **of_class(0.5))) == (pytest.approx(0.5), False)
    vectors = ({"embedding": {"values": [1, 0]}}, {"embedding": {"values": [1, 0.1]}})
    assert verdict(crop(**vectors[0]), crop(**vectors[1]))[1] is False
    for before, now in (
        (crop(**of_class(0.5)), detected(pb)), (crop(**of_class(0.5)), crop(error="no room")),
        (crop(**of_class(0.5)), crop(model="colours", **of_class(0.5))),
    ):
        assert verdict(before, now) == (math.inf, False)


def mapped(pb, *values):
    return pb.PredictResponse(disparity={
        "width": len(values), "height": 1, "format": FLOAT, "map": numpy.array(values, "<f4").tobytes()})


def test_depth_is_compared_by_its_range(pb):
    before, now = mapped(pb, 0.1, 0.2, 0.3), mapped(pb, 0.2, 0.3, 0.4)
    assert verdict(before, now) == (pytest.approx(0.1), True)
    assert verdict(before, now, is_depth=True) == (pytest.approx(0.5), False)
    assert verdict(before, mapped(pb, 0.101, 0.201, 0.301), is_depth=True) == (pytest.approx(0.005, rel=1e-3), True)
    size = {"width": 3, "height": 1}
    picture = [pb.PredictResponse(disparity={**size, "map": b"png", "min": 1, "max": 3, "mean": mean}) for mean in (2.0, 2.1)]
    assert verdict(*picture) == (pytest.approx(0.1), True)
    assert verdict(*picture, is_depth=True) == (pytest.approx(0.05), False)


@pytest.mark.parametrize("is_depth", [False, True])
def test_other_values_that_are_finite_are_a_difference(pb, is_depth):
    nan, inf = math.nan, math.inf
    assert verdict(mapped(pb, 1, nan, 3), mapped(pb, 1, nan, 3.001), is_depth)[1] is True
    for before, now in (((1, 2), (nan, nan)), ((1, nan), (1, 2)), ((1, inf), (1, nan)), ((1, inf), (1, -inf))):
        assert verdict(mapped(pb, *before), mapped(pb, *now), is_depth) == (inf, False)
    voxels = [numpy.array(values, "<f4").tobytes() for values in ((1, 2), (1, nan))]
    shape = {"depth": 1, "height": 1, "width": 2, "type": pb.VolumeShape.FLOAT32}
    assert verdict(*(pb.PredictResponse(restoration={"shape": shape, "voxels": one}) for one in voxels)) == (inf, False)


@pytest.mark.parametrize("is_depth", [False, True])
def test_the_request_says_whether_a_map_is_depth(pb, is_depth):
    from google.protobuf import json_format
    from saccade.replay import answers, measures

    named = {"encoded": b"file"} if is_depth else {"stereo": {"left": {"encoded": b"a"}, "right": {"encoded": b"b"}}}
    request = pb.PredictRequest(model="m", **named)
    answer = mapped(pb, 1, 2)
    as_json = json_format.MessageToJson(answer).encode()
    calls = [
        (answers.PREDICT, answer.SerializeToString(), request.SerializeToString()),
        (answers.PREDICT_STREAM, pb.PredictStreamResponse(answer=answer).SerializeToString(),
         pb.PredictStreamRequest(request=request).SerializeToString()),
        ("/v1/predict", as_json, json_format.MessageToJson(request).encode()),
    ]
    if is_depth:
        calls.append(("/v1/predict/m?format=FLOAT", as_json, b"file"))
    for target, body, sent in calls:
        assert measures.kind_of(answers.read(target, answers.Reply("OK", "", body, {}), sent)) == ("depth" if is_depth else "disparity")

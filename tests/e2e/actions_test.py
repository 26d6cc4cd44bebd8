"""Tests the results of an action localizer for videos and for frames."""

import numpy
import pytest
import torch

import pictures
from harness import Daemon
from messages import get_model_request, infer_request, message, predict_request
from refusals import INVALID, check, refused
from tiny_models import tiny_actions, tiny_segmenter, write_model

MEAN = numpy.array([0.485, 0.456, 0.406], numpy.float32)[:, None, None]
STD = numpy.array([0.229, 0.224, 0.225], numpy.float32)[:, None, None]
FRAMES = 40


@pytest.fixture(scope="module")
def localizer():
    return tiny_actions()


@pytest.fixture(scope="module")
def daemon(localizer, tmp_path_factory):
    root = tmp_path_factory.mktemp("actions")
    write_model(root, "localizer", localizer, max_batch_size=4)
    write_model(root, "segmenter", tiny_segmenter(), max_batch_size=4)
    with Daemon(root, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture(scope="module")
def vision(daemon):
    with daemon.vision() as made:
        yield made


def moving(count, width=37, height=37, seed=1):
    """A picture that moves sideways and fades into another. The centre of 32 pixels is cropped from its shorter side,
    so nothing is scaled."""
    first, last = (pictures.pixels(seed + place, 2 * width, height).astype(float) for place in range(2))
    frames = []
    for i in range(count):
        mixed = (first * (count - i) + last * i) / count
        frames.append(numpy.roll(mixed, i, axis=1)[:, :width].astype(numpy.uint8))
    return frames


def clip(frames=None, rate=0, video=None):
    if video is not None:
        return message("saccade.v1.Clip")(video=video)
    sent = [{"encoded": pictures.encoded(frame)} for frame in frames]
    return message("saccade.v1.Clip")(frames={"pictures": sent, "frames_per_second": rate})


def actions(vision, sent, **options):
    options = message("saccade.v1.ActionOptions")(**options)
    answer = vision.predict(predict_request(model="localizer", clip=sent, actions=options))
    assert answer.WhichOneof("result") == "actions"
    return answer.actions


def prepared(frames):
    """The daemon's input tensor for pictures that need no scaling: [frames, 3, 32, 32]."""
    cropped = [frame[2:34, 2:34].transpose(2, 0, 1).astype(numpy.float32) / 255 for frame in frames]
    return (numpy.stack(cropped) - MEAN) / STD


def expected(localizer, frames):
    """The result of the network in PyTorch for frames, padded to a multiple of 16."""
    clip = torch.from_numpy(prepared(frames)).double().transpose(0, 1)
    filled = torch.nn.functional.pad(clip, (0, 0, 0, 0, 0, -len(frames) % 16))
    with torch.inference_mode():
        return localizer.network.double()(filled[None], [len(frames)])[0]


def test_frames_give_what_the_network_in_pytorch_finds(vision, localizer):
    frames = moving(FRAMES)
    found = actions(vision, clip(frames, rate=5))
    wanted = expected(localizer, frames)
    assert len(found.actions) == len(wanted["labels"]) > 1
    assert (found.frames, found.frames_per_second) == (FRAMES, 5)
    for one, segment, score, label in zip(found.actions, wanted["segments"], wanted["scores"], wanted["labels"]):
        assert one.class_index == label and one.label == localizer.labels[label]
        assert abs(one.score - score) < 1e-3
        assert abs(one.start_frame - segment[0]) < 0.05 and abs(one.end_frame - segment[1]) < 0.05
        assert 0 <= one.start_frame < one.end_frame <= FRAMES
        assert one.start_seconds == pytest.approx(one.start_frame / 5)
        assert one.end_seconds == pytest.approx(one.end_frame / 5)


def test_tensors_and_bytes_find_the_same(daemon, vision):
    frames = moving(FRAMES)
    found = actions(vision, clip(frames)).actions
    raw = b"".join(len(one).to_bytes(4, "little") + one for one in map(pictures.encoded, frames))
    with daemon.inference() as inference:
        answers = [
            inference.model_infer(infer_request("localizer", [1, FRAMES], raw, datatype="BYTES")),
            inference.model_infer(infer_request("localizer", [1, FRAMES, 3, 32, 32], prepared(frames).tobytes())),
        ]
        described = inference.model_metadata(message("inference.ModelMetadataRequest")(name="localizer"))
    assert [output.name for output in described.outputs] == ["num_actions", "segments", "scores", "labels"]
    assert list(described.inputs[0].shape) == [-1, -1]
    for answer in answers:
        assert numpy.frombuffer(answer.raw_output_contents[0], "<i8") == [len(found)]
        segments = numpy.frombuffer(answer.raw_output_contents[1], "<f4").reshape(-1, 2)
        assert segments == pytest.approx(numpy.array([(one.start_seconds, one.end_seconds) for one in found]), abs=0.01)
        assert list(numpy.frombuffer(answer.raw_output_contents[3], "<i8")) == [one.class_index for one in found]


@pytest.mark.parametrize("rate, sent, seen", [(10, 30, 30), (20, 60, 30), (25, 100, 40), (5, 20, 40)])
def test_of_a_video_the_models_own_rate_is_taken(vision, rate, sent, seen):
    answer = actions(vision, clip(video=pictures.video(moving(sent), rate)))
    assert (answer.frames, answer.frames_per_second) == (seen, 10)


def test_a_video_shows_what_its_frames_show(vision):
    frames = moving(FRAMES)
    every_other = actions(vision, clip(frames[::2]))
    video = actions(vision, clip(video=pictures.video(frames, 20)))
    # Only JPEG's losses differ.
    assert video.frames == every_other.frames
    assert video.actions[0].class_index == every_other.actions[0].class_index
    assert video.actions[0].score == pytest.approx(every_other.actions[0].score, abs=0.1)


def test_actions_are_filtered(vision):
    sent = clip(moving(FRAMES))
    everything = actions(vision, sent).actions
    assert len(everything) > 2
    assert list(actions(vision, sent, top_k=2).actions) == list(everything[:2])
    one = everything[1]
    assert list(actions(vision, sent, score_threshold=one.score).actions) == list(everything[:2])
    assert {found.class_index for found in actions(vision, sent, classes=[one.class_index]).actions} == {one.class_index}
    assert len(actions(vision, sent, score_threshold=1).actions) == 0


def test_the_model_says_what_it_takes(vision):
    model = vision.get_model(get_model_request("localizer"))
    assert (model.task, model.max_frames, model.frames_per_second, model.max_voxels) == ("actions", 48, 10, 0)


BAD = {
    "too many frames": (dict(clip=lambda: clip(moving(49))), ["clip", "49 frames", "at most 48"]),
    "too long a video": (
        dict(clip=lambda: clip(video=pictures.video(moving(60), 10))), ["too long", "4.8 seconds", "6 seconds"]),
    "two sizes": (
        dict(clip=lambda: clip(moving(2) + moving(1, width=40))), ["frame 2", "40 x 37", "frame 0 is 37 x 37"]),
    "no video": (dict(clip=lambda: clip(video=b"#EXTM3U\nfile:///etc/passwd")), ["not a readable video", "MP4"]),
    "half a video": (dict(clip=lambda: clip(video=pictures.video(moving(8), 10)[:300])), ["video"]),
    "a picture": (dict(encoded=lambda: pictures.encoded(moving(1)[0])), ["encoded", "takes clips"]),
    "a broken frame": (
        dict(clip=lambda: message("saccade.v1.Clip")(frames={"pictures": [{"encoded": b"GIF89a"}] * 2})),
        ["clip: frame 0", "GIF"]),
    "no frames": (dict(clip=lambda: message("saccade.v1.Clip")(frames={})), ["clip.frames.pictures"]),
    "options of another task": (
        dict(clip=lambda: clip(moving(2)), detection=lambda: message("saccade.v1.DetectionOptions")()),
        ["is for actions", "'actions'"]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_clip_is_refused(vision, name):
    fields, words = BAD[name]
    request = predict_request(model="localizer", **{field: make() for field, make in fields.items()})
    check(refused(vision.predict, request), INVALID, words)


def test_other_models_take_no_clips(vision):
    check(refused(vision.predict, predict_request(model="segmenter", clip=clip(moving(1)))), INVALID,
          ["clip", "takes one picture"])

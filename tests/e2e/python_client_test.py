"""Tests the Python client, sync and asyncio: every task against the daemon, and errors."""

import asyncio
import dataclasses
import http.server
import inspect
import io
import math
import socket
import subprocess
import threading
from concurrent import futures

import grpc
import numpy
import pytest
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from PIL import Image

import coco
import pictures
from harness import DEADLINE_SECONDS, ROOT, Daemon, eventually
from tiny_models import (
    tiny_detector,
    tiny_actions,
    tiny_restorer,
    tiny_segmenter,
    tiny_stereo,
    write_model,
)

SIZE = (131, 75)


@pytest.fixture(scope="module")
def daemon(tiny, tmp_path_factory):
    root = tmp_path_factory.mktemp("every_task")
    models = {
        "classifier": tiny,
        "detector": tiny_detector(),
        "segmenter": tiny_segmenter(),
        "stereo": tiny_stereo(),
        "localizer": tiny_actions(),
        "denoiser": tiny_restorer(),
        # Many small tiles make it slow enough to be cancelled.
        "slow": tiny_restorer(tile="8"),
    }
    for name, model in models.items():
        write_model(root, name, model, max_batch_size=4)
    with Daemon(root, "--warm-up-seconds=0", log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture(scope="module")
def client(daemon, connect):
    return connect(daemon.grpc_address, timeout=DEADLINE_SECONDS)


def pixels(seed, size=SIZE):
    return pictures.pixels(seed, *size)


def test_classify_takes_pictures_in_every_form(client, saccade, tiny, tmp_path):
    array = pixels(1, (64, 64))
    path = tmp_path / "picture.png"
    path.write_bytes(pictures.encoded(array))
    forms = [
        array,
        path,
        str(path),
        path.read_bytes(),
        Image.fromarray(array),
        Image.fromarray(array).convert("RGBA"),
        saccade.Pixels(array[:, :, ::-1], "BGR"),
        numpy.asfortranarray(array),
    ]
    answers = [client.classify("classifier", form, top_k=5, request_id="one") for form in forms]
    expected = tiny.logits(tiny.prepared([array]))[0]
    for answer in answers:
        assert isinstance(answer, saccade.Classification)
        assert (answer.model, answer.version, answer.request_id) == ("classifier", 1, "one")
        assert (answer.width, answer.height, answer.batch_size) == (64, 64, 1)
        assert answer.timings.total >= answer.timings.infer + answer.timings.encode > answer.timings.infer > 0
        assert answer.classes == answers[0].classes
    for one in answers[0].classes:
        assert one.label == tiny.labels[one.index]
        assert one.logit == pytest.approx(expected[one.index], rel=1e-3, abs=1e-3)
    assert [one.index for one in answers[0].classes] == list(numpy.argsort(-expected))
    grey = client.classify("classifier", array[:, :, 0])
    assert grey.classes == client.classify("classifier", numpy.stack([array[:, :, 0]] * 3, axis=2)).classes


def test_detections_and_their_masks(client, saccade):
    answer = client.detect("detector", pixels(1))
    assert isinstance(answer, saccade.Detections) and answer.detections
    assert answer.boxes.shape == (len(answer.detections), 4) and answer.boxes.dtype == numpy.float32
    assert list(answer.scores) == sorted(answer.scores, reverse=True)
    for one, index in zip(answer.detections, answer.class_indices):
        assert one.class_index == index and one.label == tiny_detector().labels[index]
        assert one.mask.pixels.shape == (SIZE[1], SIZE[0]) and one.mask.pixels.dtype == bool
        assert one.mask.pixels.sum() == one.mask.area
        assert numpy.array_equal(one.mask.pixels, coco.mask(one.mask))
    assert any(one.mask.area > 0 for one in answer.detections)
    assert client.detect("detector", pixels(1), masks=False, top_k=2).detections[0].mask is None
    for form in (saccade.MaskForm.PNG, saccade.MaskForm.POLYGONS):
        others = client.detect("detector", pixels(1), mask_form=form).detections
        assert all(other.mask is None for other in others)
        areas = [(other.mask_picture or other.mask_polygons).area for other in others]
        assert areas == [one.mask.area for one in answer.detections]
        if form is saccade.MaskForm.PNG:
            cut = numpy.asarray(Image.open(io.BytesIO(others[0].mask_picture.png)))
            assert cut.shape == (others[0].mask_picture.height, others[0].mask_picture.width)
        else:
            assert others[0].mask_polygons.polygons[0].points.shape[1] == 2
    none = client.detect("detector", pixels(1), score_threshold=1)
    assert none.detections == () and none.boxes.shape == (0, 4)
    wanted = answer.detections[0].class_index
    assert set(client.detect("detector", pixels(1), classes=[wanted]).class_indices) == {wanted}


def test_label_maps(client, saccade):
    answer = client.segment("segmenter", pixels(4))
    assert isinstance(answer, saccade.Segmentation)
    assert answer.label_map.shape == (SIZE[1], SIZE[0]) and answer.label_map.dtype == numpy.uint8
    counts = numpy.bincount(answer.label_map.ravel())
    assert {area.class_index: area.pixels for area in answer.areas} == {
        index: count for index, count in enumerate(counts) if count
    }
    alone = client.segment("segmenter", pixels(4), label_map=False)
    assert alone.label_map is None and alone.areas == answer.areas


def test_disparities(client, saccade):
    answer = client.stereo("stereo", pixels(6), pictures.encoded(pixels(7)))
    assert isinstance(answer, saccade.Disparity)
    assert answer.disparity.shape == (SIZE[1], SIZE[0]) and answer.disparity.std() > 0
    assert (answer.min, answer.max) == (answer.disparity.min(), answer.disparity.max())


def test_actions_of_frames_and_videos(client, saccade, tmp_path):
    clip = numpy.stack([numpy.roll(pixels(1, (40, 36)), shift, axis=1) for shift in range(30)])
    frames = client.actions("localizer", clip, frames_per_second=5)
    assert isinstance(frames, saccade.Actions)
    assert (frames.frames, frames.frames_per_second) == (30, 5) and frames.actions
    for one in frames.actions:
        assert one.start_seconds == pytest.approx(one.start_frame / 5) and one.end_frame > one.start_frame
    listed = client.actions("localizer", [pictures.encoded(frame) for frame in clip], frames_per_second=5)
    assert listed.actions == frames.actions
    video = tmp_path / "clip.avi"
    video.write_bytes(pictures.video(list(clip), 10))
    assert client.actions("localizer", video, top_k=1).frames == 30
    with pytest.raises(ValueError, match="frames_per_second"):
        client.actions("localizer", video, frames_per_second=5)


def test_likely_classes_alone(client):
    every = client.classify("classifier", pixels(1), top_k=5).classes
    least = every[1].probability
    assert client.classify("classifier", pixels(1), top_k=5, probability_threshold=least).classes == every[:2]
    assert client.classify("classifier", pixels(1), probability_threshold=1).classes == ()


def test_maps_of_other_sizes(client, saccade):
    whole = client.segment("segmenter", pixels(4))
    small = client.segment("segmenter", pixels(4), size=(20, 10))
    assert small.label_map.shape == (10, 20) and (small.width, small.height) == SIZE and small.areas == whole.areas
    seen = client.segment("segmenter", pixels(4), size="network")
    assert seen.label_map.ndim == 2 and set(numpy.unique(seen.label_map)) <= {one.class_index for one in whole.areas}
    pair = pixels(6), pixels(7)
    far = client.stereo("stereo", *pair, size=(2 * SIZE[0], 2 * SIZE[1])).disparity
    assert numpy.array_equal(far[::2, ::2], client.stereo("stereo", *pair).disparity)
    with pytest.raises(saccade.InvalidArgument, match="size"):
        client.segment("segmenter", pixels(4), size=(0, 10))


def test_a_region_is_a_picture_of_its_own(client, saccade):
    x, y, width, height = 20, 8, 64, 48
    region = saccade.Region(x, y, width, height)
    cut = pixels(1)[y : y + height, x : x + width]
    within, alone = client.detect("detector", pixels(1), region=region), client.detect("detector", cut)
    assert within.detections and numpy.allclose(within.boxes, alone.boxes + numpy.float32([x, y, x, y]), atol=1e-4)
    assert client.classify("classifier", pixels(1), region=region).classes == client.classify("classifier", cut).classes
    left, right = (picture[y : y + height, x : x + width] for picture in (pixels(6), pixels(7)))
    assert client.stereo("stereo", pixels(6), pixels(7), region=region).mean == client.stereo("stereo", left, right).mean
    with pytest.raises(saccade.InvalidArgument, match="region"):
        client.segment("segmenter", pixels(4), region=saccade.Region(0, 0, 1000, 1000))


def test_what_attention_looked_at(client, saccade):
    told = client.model("detector")
    assert told.attention_layers and not told.attention_by_position
    answer = client.detect("detector", pixels(1), explain=saccade.Explain(max_maps=2))
    explained = answer.explanation
    assert explained.layer == told.attention_layers[-1] and len(explained.maps) == 2 <= explained.available
    for one in explained.maps:
        assert one.name and numpy.asarray(Image.open(io.BytesIO(one.png))).shape == (one.height, one.width)
        assert one.min <= one.max
    assert explained.seen == saccade.PicturePart(0, 0, answer.width, answer.height)
    first = saccade.Explain(layer=told.attention_layers[0])
    assert client.detect("detector", pixels(1), explain=first).explanation.layer == told.attention_layers[0]
    assert client.detect("detector", pixels(1)).explanation is None
    # The maps of this model are of the whole picture.
    with pytest.raises(saccade.InvalidArgument, match="positions"):
        client.detect("detector", pixels(1), explain=saccade.Explain(positions=[(0.5, 0.5)]))
    with pytest.raises(saccade.InvalidArgument, match="no_such_layer"):
        client.detect("detector", pixels(1), explain=saccade.Explain(layer="no_such_layer"))


def test_versions_by_label(client, saccade):
    with pytest.raises(saccade.InvalidArgument, match="no_such_label"):
        client.classify("classifier", pixels(1), version_label="no_such_label")


@pytest.mark.parametrize("mode", ["I;16", "I;16B"])
def test_of_pil_pictures_of_16_bits_the_upper_eight_are_sent(saccade, mode):
    values = numpy.array([[0, 255, 256], [0x1234, 0x8000, 0xFFFF]], numpy.uint16)
    image = Image.frombytes(mode, (3, 2), values.astype(">u2" if mode.endswith("B") else "<u2").tobytes())
    sent = saccade.inputs.picture(image).raw
    assert (sent.width, sent.height) == (3, 2)
    assert list(sent.pixels) == [upper for upper in (0, 0, 1, 0x12, 0x80, 0xFF) for _ in range(3)]


@pytest.mark.parametrize("mode", ["I", "F"])
def test_pil_pictures_of_32_bits_are_refused(saccade, mode):
    with pytest.raises(TypeError, match=f"mode {mode}, 32 bits a channel; expected 8 or 16 bits; send the file"):
        saccade.inputs.picture(Image.new(mode, (3, 2), 40000))


def volume_of(dtype):
    values = numpy.random.default_rng(3).integers(100, 200, (6, 24, 40))
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_volumes(client, saccade, dtype, tmp_path):
    volume, told = volume_of(dtype), []
    answer = client.restore("denoiser", volume, progress=told.append)
    assert isinstance(answer, saccade.Restoration)
    assert answer.volume.shape == volume.shape and answer.volume.dtype == volume.dtype
    # Integers are rounded and clipped; min and max are from the network's output.
    for told_of, found in ((answer.min, answer.volume.min()), (answer.max, answer.volume.max())):
        assert found == (told_of if dtype == "float32" else numpy.clip(round(told_of), 0, numpy.iinfo(dtype).max))
    assert told == sorted(told) and all(0 <= done <= 1 for done in told)
    path = tmp_path / "volume.tif"
    path.write_bytes(pictures.tiff(volume))
    for form in (path, path.read_bytes()):
        assert numpy.array_equal(client.restore("denoiser", form).volume, answer.volume)
    assert client.restore("denoiser", volume, voxel_type="float32").volume.dtype == numpy.float32


def test_a_volume_larger_than_a_part(client):
    volume = numpy.tile(volume_of("float32"), (2, 8, 8))
    assert volume.nbytes > 2 << 20
    assert client.restore("denoiser", volume).volume.shape == volume.shape


def test_what_progress_raises_gives_the_call_up(client, daemon):
    class Enough(Exception):
        pass

    def stop(done):
        raise Enough

    with pytest.raises(Enough):
        client.restore("slow", numpy.tile(volume_of("uint8"), (4, 4, 4)), progress=stop)


def test_models(client, saccade):
    listed = {one.name: one for one in client.models()}
    assert {name: one.task for name, one in listed.items() if name != "slow"} == {
        "classifier": "classification",
        "detector": "detection",
        "segmenter": "segmentation",
        "stereo": "stereo",
        "localizer": "actions",
        "denoiser": "restoration",
    }
    assert all(one.state is saccade.ModelState.READY and one.load_seconds > 0 for one in listed.values())
    assert client.model("detector").labels == tuple(tiny_detector().labels)
    assert client.model("stereo").views == 2


def test_errors_are_typed(client, saccade):
    with pytest.raises(saccade.NotFound, match="nothing") as unknown:
        client.classify("nothing", pixels(1))
    assert unknown.value.code == grpc.StatusCode.NOT_FOUND
    with pytest.raises(saccade.InvalidArgument, match="score_threshold") as wrong:
        client.detect("detector", pixels(1), score_threshold=2)
    assert wrong.value.field == "detection.score_threshold" and wrong.value.retry_after is None
    with pytest.raises(saccade.InvalidArgument):
        client.classify("detector", pixels(1))
    with pytest.raises(saccade.NotFound):
        client.restore("nothing", volume_of("uint8"))
    with pytest.raises(saccade.DeadlineExceeded):
        client.restore("slow", numpy.tile(volume_of("uint8"), (4, 8, 8)), timeout=0.2)


@pytest.mark.parametrize(
    "call, complaint",
    [
        (lambda client: client.classify("m", "no/such.jpg"), "No such file"),
        (lambda client: client.classify("m", numpy.zeros((4, 4, 3))), "float64; expected uint8"),
        (lambda client: client.classify("m", numpy.zeros((4, 4, 4), numpy.uint8)), r"\(4, 4, 4\); expected"),
        (lambda client: client.classify("m", 7), "is a int"),
        (lambda client: client.restore("m", numpy.zeros((4, 4), numpy.uint8)), "expected .depth"),
        (lambda client: client.restore("m", numpy.zeros((0, 4, 4), numpy.uint8)), "expected .depth"),
        (lambda client: client.restore("m", numpy.zeros((1, 4, 4), numpy.int64)), "voxels of type int64"),
        (lambda client: client.restore("m", "no/such.tif"), "No such file"),
    ],
)
def test_what_never_leaves(client, call, complaint):
    with pytest.raises((TypeError, ValueError, OSError), match=complaint):
        call(client)


def test_a_clip_is_no_single_picture(saccade):
    picture = numpy.zeros((4, 6, 3), numpy.uint8)
    for given, complaint in (
        (picture, r"clip: is an array of shape \(4, 6, 3\); expected \(frames, height, width, 3\)"),
        (numpy.zeros((2, 4, 6, 4), numpy.uint8), r"clip: is an array of shape \(2, 4, 6, 4\); expected"),
        (saccade.Pixels(picture), "clip: is a Pixels; expected a video's path or bytes, a sequence"),
        (Image.fromarray(picture), "clip: is a Image; expected .* put a single picture into a list"),
        (7, "clip: is a int; expected"),
    ):
        with pytest.raises((TypeError, ValueError), match=complaint):
            saccade.FindActions("m", given).message()
    for frames in (picture[None], [picture], [saccade.Pixels(picture)], [Image.fromarray(picture)], iter([picture])):
        (sent,) = saccade.FindActions("m", frames).message().clip.frames.pictures
        assert (sent.raw.width, sent.raw.height) == (6, 4)


@pytest.mark.parametrize(
    "ask, expected",
    [
        ("Classify", "a classification"),
        ("Detect", "detections"),
        ("Segment", "a segmentation"),
        ("Stereo", "a disparity"),
        ("Depth", "a depth map"),
        ("Embed", "an embedding"),
        ("FindActions", "actions"),
    ],
)
def test_the_result_of_another_task_is_no_answer(saccade, ask, expected):
    from saccade.v1 import vision_pb2 as pb

    request = getattr(saccade, ask)(*["m"] + [b""] * (2 if ask == "Stereo" else 1))
    other = pb.PredictResponse(model="m", restoration={"min": 1})
    with pytest.raises(saccade.Internal, match=f"model 'm' answered with a restoration instead of {expected}; check") as error:
        request.answer(other)
    assert error.value.code == grpc.StatusCode.INTERNAL
    with pytest.raises(saccade.Internal, match=f"with a result that this client does not know instead of {expected}"):
        request.answer(pb.PredictResponse(model="m"))


def test_both_clients_are_called_alike(saccade):
    for name in ("__init__", "classify", "detect", "segment", "stereo", "actions", "restore", "models", "model"):
        alike = [inspect.signature(getattr(kind, name)) for kind in (saccade.Client, saccade.AsyncClient)]
        assert alike[0] == alike[1], name


@pytest.mark.parametrize("counts", ["", "a", "0" * 7, "~", "P"])
def test_masks_that_do_not_fit(saccade, counts):
    with pytest.raises(ValueError, match="mask"):
        saccade.Mask(2, 3, counts, 0).pixels


class Scripted(grpc.GenericRpcHandler):
    """A daemon that fails as scripted and then succeeds. A failure that is an event blocks the call until the event is
    set."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.metadata = []
        self.lock = threading.Lock()

    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(self.answer)

    def answer(self, _, context):
        with self.lock:
            self.metadata.append(dict(context.invocation_metadata()))
            failure = self.failures.pop(0) if self.failures else None
        if isinstance(failure, threading.Event):
            failure.wait(DEADLINE_SECONDS)
        elif failure is not None:
            code, hint = failure
            if hint is not None:
                delay, packed = duration_pb2.Duration(), any_pb2.Any()
                delay.FromMilliseconds(int(hint * 1000))
                packed.Pack(error_details_pb2.RetryInfo(retry_delay=delay))
                status = status_pb2.Status(code=code.value[0], message="as told", details=[packed])
                context.set_trailing_metadata([("grpc-status-details-bin", status.SerializeToString())])
            context.abort(code, "as told")
        return b""


@pytest.fixture
def scripted():
    servers = []

    def start(*failures, credentials=None):
        handler = Scripted(*failures)
        server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[handler])
        port = (
            server.add_secure_port("127.0.0.1:0", credentials)
            if credentials
            else server.add_insecure_port("127.0.0.1:0")
        )
        server.start()
        servers.append(server)
        return handler, f"127.0.0.1:{port}"

    yield start
    for server in servers:
        server.stop(None).wait()


UNAVAILABLE, EXHAUSTED = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED
CANCELLED = grpc.StatusCode.CANCELLED


def test_what_passes_is_sent_again(connect, saccade, scripted):
    handler, address = scripted((UNAVAILABLE, None), (EXHAUSTED, 0.01), (CANCELLED, None), (UNAVAILABLE, None))
    retry = saccade.Retry(attempts=5, first_pause=0.01)
    assert connect(address, retry=retry).models() == []
    assert len(handler.metadata) == 5


def test_what_the_caller_gives_up_is_not_sent_again(saccade, scripted):
    retry = saccade.Retry(attempts=9, first_pause=0.01)
    held = threading.Event()
    try:
        handler, address = scripted(held)
        with futures.ThreadPoolExecutor(1) as thread:
            client = saccade.Client(address, retry=retry)
            running = thread.submit(client.models)
            eventually(lambda: len(handler.metadata) == 1, "the call came")
            client.close()
            with pytest.raises(saccade.Cancelled):
                running.result(DEADLINE_SECONDS)
        assert len(handler.metadata) == 1

        async def cancel(handler, address, close):
            async with saccade.AsyncClient(address, retry=retry) as client:
                task = asyncio.ensure_future(client.models())
                await asyncio.to_thread(eventually, lambda: len(handler.metadata) == 1, "the call came")
                if close:
                    await client.close()
                else:
                    task.cancel()
                with pytest.raises(saccade.Cancelled if close else asyncio.CancelledError):
                    await asyncio.wait_for(task, DEADLINE_SECONDS)

        for close in (False, True):
            handler, address = scripted(held)
            asyncio.run(cancel(handler, address, close))
            assert len(handler.metadata) == 1
    finally:
        held.set()


def test_an_asynchronous_client_that_is_closed_makes_no_calls(saccade, scripted):
    _, address = scripted()

    async def run():
        client = saccade.AsyncClient(address)
        assert await client.models() == []
        await client.close()

        async def stream():
            return [item async for item in client.stream([saccade.Classify("m", b"picture")])]

        calls = (lambda: client.classify("m", b"picture"), lambda: client.restore("m", volume_of("uint8")))
        for call in (client.models, stream, *calls):
            with pytest.raises(saccade.Cancelled, match="the client was closed"):
                await call()

    asyncio.run(run())


def test_a_client_that_is_closed_makes_no_calls(saccade, scripted, monkeypatch):
    handler, address = scripted()
    client = saccade.Client(address)
    assert client.models() == []
    client.close()
    calls = (client.models, lambda: client.model("m"), lambda: client.classify("m", b"picture"),
             lambda: client.restore("m", volume_of("uint8")), lambda: next(client.stream([saccade.Classify("m", b"picture")])))
    for call in calls:
        with pytest.raises(saccade.Cancelled, match="the client was closed; make another one"):
            call()
    assert len(handler.metadata) == 1
    # It may be closed between the check and the call.
    other = saccade.Client(address)
    check = other._check_open
    checks = iter([lambda: other.close(), check])
    monkeypatch.setattr(other, "_check_open", lambda: next(checks)())
    with pytest.raises(saccade.Cancelled, match="the client was closed; make another one"):
        other.models()


def test_closing_ends_the_pause_before_a_retry(saccade, scripted, monkeypatch):
    from saccade.retry import Attempts

    paused, pause_of = threading.Event(), Attempts.pause

    def pause(attempts, error, **named):
        seconds = pause_of(attempts, error, **named)
        paused.set()
        return seconds

    monkeypatch.setattr(Attempts, "pause", pause)
    handler, address = scripted((EXHAUSTED, 2.0))
    with futures.ThreadPoolExecutor(1) as thread:
        client = saccade.Client(address)
        running = thread.submit(client.models)
        assert paused.wait(DEADLINE_SECONDS)
        client.close()
        with pytest.raises(saccade.ResourceExhausted, match="as told"):
            running.result(DEADLINE_SECONDS)
    assert len(handler.metadata) == 1

    async def close_in_the_pause(address):
        async with saccade.AsyncClient(address) as client:
            task = asyncio.ensure_future(client.models())
            assert await asyncio.to_thread(paused.wait, DEADLINE_SECONDS)
            await client.close()
            with pytest.raises(saccade.ResourceExhausted, match="as told"):
                await asyncio.wait_for(task, DEADLINE_SECONDS)

    paused.clear()
    handler, address = scripted((EXHAUSTED, 2.0))
    asyncio.run(close_in_the_pause(address))
    assert len(handler.metadata) == 1


def test_the_pause_after_many_attempts_is_the_longest(saccade):
    from saccade.retry import Attempts, Budget

    attempts = Attempts(saccade.Retry(attempts=2000, max_pause=3.0, budget=0), Budget(0), None)
    pauses = [attempts.pause(saccade.Unavailable("gone", UNAVAILABLE)) for _ in range(1500)]
    assert all(1.5 <= pause <= 4.5 for pause in pauses[9:])


class Undetailed(grpc.GenericRpcHandler):
    """A daemon whose status has details that cannot be read."""

    def __init__(self, details):
        self._details = details

    def service(self, _):
        return grpc.unary_unary_rpc_method_handler(self._answer)

    def _answer(self, _, context):
        context.set_trailing_metadata([("grpc-status-details-bin", self._details)])
        context.abort(grpc.StatusCode.NOT_FOUND, "as told")


def test_details_that_cannot_be_read_do_not_hide_the_status(connect, saccade):
    endless, broken = any_pb2.Any(), any_pb2.Any()
    endless.Pack(error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=2**62)))
    broken.Pack(error_details_pb2.RetryInfo())
    broken.value = b"\xff"
    for details in (b"\xff\xff", *(status_pb2.Status(details=[one]).SerializeToString() for one in (endless, broken))):
        server = grpc.server(futures.ThreadPoolExecutor(1), handlers=[Undetailed(details)])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            with pytest.raises(saccade.NotFound, match="as told") as error:
                connect(f"127.0.0.1:{port}").models()
            assert error.value.retry_after is None
        finally:
            server.stop(None).wait()


@pytest.mark.parametrize(
    "failure, attempts, sent",
    [
        # The message is too large, so a retry would fail as well.
        ((EXHAUSTED, None), 4, 1),
        ((grpc.StatusCode.INVALID_ARGUMENT, None), 4, 1),
        ((grpc.StatusCode.INTERNAL, None), 4, 1),
        ((UNAVAILABLE, None), 1, 1),
        ((UNAVAILABLE, None), 3, 3),
        ((CANCELLED, None), 3, 3),
        # The retry hint is longer than the timeout.
        ((EXHAUSTED, 3600), 4, 1),
    ],
)
def test_what_is_not_sent_again(connect, saccade, scripted, failure, attempts, sent):
    handler, address = scripted(*[failure] * 9)
    client = connect(address, retry=saccade.Retry(attempts=attempts, first_pause=0.01), timeout=DEADLINE_SECONDS)
    with pytest.raises(saccade.SaccadeError, match="as told") as error:
        client.models()
    assert error.value.code == failure[0] and error.value.retry_after == failure[1]
    assert len(handler.metadata) == sent


def test_no_daemon_there(connect, saccade):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        client = connect(f"127.0.0.1:{taken.getsockname()[1]}", retry=saccade.Retry(attempts=1))
        with pytest.raises(saccade.Unavailable):
            client.models()


@pytest.fixture
def dead_proxy(monkeypatch):
    """The environment names a proxy that does not answer."""
    for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "grpc_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{taken.getsockname()[1]}")
        yield


def test_calls_to_this_machine_use_no_proxy(dead_proxy, connect, saccade, scripted):
    handler, address = scripted()
    once = saccade.Retry(attempts=1)
    assert connect(address, retry=once, token="secret").models() == []
    assert connect(address.replace("127.0.0.1", "localhost"), retry=once).models() == []
    assert len(handler.metadata) == 2


class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_a_daemon_of_this_machine_is_asked_without_a_proxy_whether_it_is_ready(dead_proxy, saccade):
    from saccade.bulk.keeper import Daemon as KeptDaemon

    kept = KeptDaemon(["true"])
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ready) as server:
        threading.Thread(target=server.serve_forever).start()
        kept.address = kept.http_address = f"127.0.0.1:{server.server_port}"
        try:
            assert kept.is_ready()
        finally:
            server.shutdown()
            kept.stop()


def test_a_token_over_tls(connect, saccade, scripted, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
               "-days", "2", "-subj", "/CN=saccade.test", "-addext", "subjectAltName=DNS:saccade.test",
               "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    pair = [(key.read_bytes(), certificate.read_bytes())]
    # The client presents a certificate, too; here it is the same as the server's.
    mutual = grpc.ssl_server_credentials(pair, certificate.read_bytes(), require_client_auth=True)
    handler, address = scripted(credentials=mutual)
    tls = saccade.TLS(root_certificates=certificate, client_certificate=certificate, client_key=key,
                      server_name="saccade.test")
    assert connect(address, tls=tls, token="secret").models() == []
    assert handler.metadata[0]["authorization"] == "Bearer secret"
    nameless = saccade.TLS(certificate, certificate, key)
    for wrong, complaint in ((True, "is not trusted: self"), (nameless, "server_name")):
        with pytest.raises(saccade.Untrusted, match=complaint):
            # A retry would take longer than the test may.
            connect(address, tls=wrong, retry=saccade.Retry(9, 60, 60), timeout=600).models()
    once = saccade.Retry(attempts=1)
    for wrong, complaint in ((None, "may require TLS"), (dataclasses.replace(tls, client_certificate=None, client_key=None), "another client certificate")):
        with pytest.raises(saccade.Unavailable, match=complaint):
            connect(address, tls=wrong, retry=once).models()
    _, plain = scripted()
    with pytest.raises(saccade.Untrusted, match="does not speak TLS"):
        connect(plain, tls=tls).models()
    # An expired certificate.
    expired = tmp_path / "expired.pem"
    again = ["openssl", "x509", "-in", certificate, "-signkey", key, "-days", "-1", "-out", expired]
    subprocess.run(again, check=True, capture_output=True)
    pair = [(key.read_bytes(), expired.read_bytes())]
    _, address_of_old = scripted(credentials=grpc.ssl_server_credentials(pair))
    with pytest.raises(saccade.Untrusted, match="is not trusted: certificate has expired"):
        connect(address_of_old, tls=saccade.TLS(expired, server_name="saccade.test")).models()
    encrypted, legacy = tmp_path / "encrypted.pem", tmp_path / "legacy.pem"
    for kind, made in (("pkey", encrypted), ("ec", legacy)):
        lock = ["openssl", kind, "-in", key, "-aes256", "-passout", "pass:secret", "-out", made]
        subprocess.run(lock, check=True, capture_output=True)

    def broken(pem):
        return pem.read_bytes().replace(b"-----\n", b"-----\n*", 1)

    def as_certificate(pem):
        return pem.read_bytes().replace(b"PRIVATE KEY", b"CERTIFICATE")

    for wrong, complaint in (
        ({"client_certificate": certificate}, "give both or neither"),
        ({"root_certificates": key}, "root_certificates has no certificate in PEM"),
        ({"client_certificate": certificate, "client_key": certificate}, "client_key has no private key in PEM"),
        ({"root_certificates": tmp_path / "missing.pem"}, "No such file"),
        ({"client_certificate": certificate, "client_key": encrypted.read_bytes()}, "client_key is encrypted; expected a"),
        ({"client_certificate": certificate, "client_key": legacy}, "client_key is encrypted; expected a private key without"),
        ({"client_certificate": certificate, "client_key": broken(key)}, "client_key has no private key that can be read"),
        ({"root_certificates": broken(certificate)}, "root_certificates has no certificate that can be read"),
        ({"root_certificates": certificate.read_bytes()[:200]}, "root_certificates has no certificate that can be read"),
        ({"root_certificates": as_certificate(key)}, "root_certificates has no certificate that can be read"),
    ):
        with pytest.raises((ValueError, OSError), match=complaint):
            connect(address, tls=saccade.TLS(**wrong))


def test_options_that_cannot_be(saccade):
    for named, complaint in (
        ({"address": "http://host:8001"}, "without http"),
        ({"address": "host:8001", "token": "secret"}, "set tls"),
        ({"address": "127.0.0.1:8001", "token": "two words"}, "visible ASCII"),
        ({"address": "127.0.0.1:8001", "token": ""}, "visible ASCII"),
        ({"address": "host:8001", "max_message_bytes": 0}, "max_message_bytes: is 0; expected 1 to 2147483647"),
        ({"address": "host:8001", "max_message_bytes": 2**31}, "max_message_bytes: is 2147483648; expected 1 to 2147483647"),
        ({"address": "host:8001", "keepalive": 3e6}, "keepalive: is 3000000.0; expected 1 to 2147483 seconds, or None"),
        ({"address": "host:8001", "keepalive": math.inf}, "keepalive: is inf; expected"),
        ({"address": "host:8001", "timeout": math.inf}, "timeout: is inf; expected more than 0 and .*, or None for no limit"),
        ({"address": "host:8001", "timeout": math.nan}, "timeout: is nan; expected"),
        ({"address": "host:8001", "timeout": 0}, "timeout: is 0; expected"),
        ({"address": "localhost"}, "address: 'localhost' is not valid: the port is missing; expected HOST:PORT, such as"),
        ({"address": "host:99999"}, "the port must be a number from 1 to 65535"),
        ({"address": ":abc"}, "the port must be a number from 1 to 65535"),
        ({"address": ":8001"}, "the host is missing"),
        ({"address": "::1:8001"}, "an IPv6 address must be in brackets"),
        ({"address": "[host]:8001"}, "the host is not an IPv6 address"),
    ):
        for kind in (saccade.Client, saccade.AsyncClient):
            with pytest.raises(ValueError, match=complaint):
                kind(**named)
    with pytest.raises(ValueError, match="attempts"):
        saccade.Retry(attempts=0)
    for named in ({"tls": True}, {"token_without_tls": True}):
        saccade.Client("host:8001", token="secret", **named).close()
    for other in ("[2001:db8::1]:8001", "dns:///host", "ipv4:10.0.0.1:8001,10.0.0.2:8001"):
        saccade.Client(other).close()
    for local in ("127.0.0.2:8001", "unix:/run/saccade.sock", "unix:///run/saccade.sock"):
        saccade.Client(local, token="secret").close()


def test_calls_at_once(daemon, saccade):
    async def run():
        async with saccade.AsyncClient(daemon.grpc_address, timeout=DEADLINE_SECONDS) as client:
            calls = (client.classify("classifier", pixels(seed, (64, 64)), request_id=str(seed)) for seed in range(16))
            return await asyncio.gather(*calls)

    assert [answer.request_id for answer in asyncio.run(run())] == [str(seed) for seed in range(16)]


def test_a_cancelled_task_cancels_its_volume(daemon, saccade):
    async def run():
        async with saccade.AsyncClient(daemon.grpc_address) as client:
            begun = asyncio.Event()
            volume = numpy.tile(volume_of("uint8"), (4, 4, 4))
            task = asyncio.create_task(client.restore("slow", volume, progress=lambda _: begun.set()))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())
    eventually(lambda: daemon.metrics().total("saccade_inflight_requests") == 0, "nothing is in the daemon any more")

"""Tests volumes: restored in one message, over a stream, and through the Open Inference Protocol."""

import threading

import grpc
import numpy
import pytest
import torch

import pictures
from harness import Daemon, eventually
from messages import get_model_request, infer_request, message, predict_request
from refusals import EXHAUSTED, INVALID, NOT_FOUND, check, refused
from tiny_models import assert_close, smooth_volumes, tiny_restorer, tiny_segmenter, write_model

TYPES = {"uint8": 1, "uint16": 2, "float32": 3}


@pytest.fixture(scope="module")
def restorers():
    return {"denoiser": tiny_restorer(), "projector": tiny_restorer("unet3d_sao_project"),
            # Many small tiles: it takes long, and reports progress.
            "slow": tiny_restorer(tile="8")}


@pytest.fixture(scope="module")
def daemon(restorers, tmp_path_factory):
    root = tmp_path_factory.mktemp("restore")
    for name, model in restorers.items():
        write_model(root, name, model, max_batch_size=2)
    write_model(root, "segmenter", tiny_segmenter(), max_batch_size=2)
    with Daemon(root, "--max-inflight-bytes=16000000", log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture(scope="module")
def vision(daemon):
    with daemon.vision() as made:
        yield made


def volume(depth, height, width, kind="uint16", seed=1):
    values = 400 + 120 * smooth_volumes(1, 1, depth, height, width, seed)[0, 0].clamp(-3, 3).numpy()
    return (values / 4 if kind == "uint8" else values).astype(kind)


def shape(sent):
    depth, height, width = sent.shape
    return message("saccade.v1.VolumeShape")(depth=depth, height=height, width=width, type=TYPES[sent.dtype.name])


def raw(sent):
    return message("saccade.v1.Volume")(raw={"shape": shape(sent), "voxels": sent.tobytes()})


def voxels(restoration, data=None):
    kind = {number: name for name, number in TYPES.items()}[restoration.shape.type]
    sides = restoration.shape.depth, restoration.shape.height, restoration.shape.width
    return numpy.frombuffer(restoration.voxels if data is None else data, kind).reshape(sides)


def restore(vision, sent, model="denoiser", **options):
    options = message("saccade.v1.RestorationOptions")(**options)
    answer = vision.predict(predict_request(model=model, volume=sent, restoration=options))
    assert answer.WhichOneof("result") == "restoration"
    return answer.restoration


def expected(restorers, model, sent):
    batch = torch.from_numpy(sent.astype(numpy.float64))[None, None]
    with torch.inference_mode():
        return restorers[model].network.double()(batch)[0].numpy()


def header(sent, model="denoiser", size=None, **fields):
    size = len(sent) if isinstance(sent, bytes) else sent.nbytes if size is None else size
    described = {} if isinstance(sent, bytes) else {"raw": shape(sent)}
    return message("saccade.v1.RestoreRequest")(header=dict(model=model, bytes=size, **described, **fields))


def data(part):
    return message("saccade.v1.RestoreRequest")(data=part)


def parts(bytes_, size=50_001):
    return [data(bytes_[at : at + size]) for at in range(0, len(bytes_), size)]


def streamed(vision, requests):
    """Returns (progress, response, bytes of the voxels, number of parts)."""
    progress, answer, received = [], None, []
    for response in vision.restore(iter(requests), timeout=120):
        part = response.WhichOneof("part")
        if part == "progress":
            assert answer is None
            progress.append(response.progress.done)
        elif part == "answer":
            answer = response.answer
        else:
            assert answer is not None
            received.append(response.voxels)
    return progress, answer, b"".join(received), len(received)


def broken(vision, requests):
    with pytest.raises(grpc.RpcError) as error:
        list(vision.restore(iter(requests), timeout=60))
    return error.value


@pytest.mark.parametrize("model", ["denoiser", "projector"])
@pytest.mark.parametrize("sides", [(9, 21, 30), (16, 64, 64)])
def test_answers_are_those_of_the_network_in_pytorch(vision, restorers, model, sides):
    sent = volume(*sides, kind="float32")
    answer = restore(vision, raw(sent), model)
    wanted = expected(restorers, model, sent)
    found = voxels(answer)
    assert found.shape == (sides if model == "denoiser" else (1, *sides[1:]))
    assert_close(found - 400, wanted.reshape(found.shape) - 400)
    assert (answer.min, answer.max) == (found.min(), found.max())


@pytest.mark.parametrize("kind", TYPES)
def test_a_tiff_is_its_voxels(vision, kind):
    sent = volume(5, 23, 17, kind)
    from_tiff = restore(vision, message("saccade.v1.Volume")(tiff=pictures.tiff(sent)))
    from_raw = restore(vision, raw(sent))
    assert from_tiff == from_raw
    assert voxels(from_tiff).dtype == kind
    wanted = voxels(restore(vision, raw(sent), type=TYPES["float32"]))
    if kind != "float32":
        wanted = numpy.clip(numpy.rint(wanted), 0, numpy.iinfo(kind).max).astype(kind)
    assert len(numpy.unique(wanted)) > 50
    assert numpy.array_equal(voxels(from_raw), wanted)


def test_a_stream_gives_what_one_message_gives(daemon, vision):
    sent = volume(24, 160, 160)
    single = restore(vision, raw(sent))
    before = daemon.metrics()
    progress, answer, received, count = streamed(vision, [header(sent), *parts(sent.tobytes())])
    assert received == single.voxels and count == 2
    assert answer.restoration.shape == single.shape and answer.restoration.min == single.min
    assert answer.model == "denoiser" and answer.picture_width == 160
    assert progress == sorted(progress) and all(0 <= done <= 1 for done in progress)
    after = daemon.metrics()
    counted = lambda metrics, **labels: metrics.total("saccade_requests_total", model="denoiser", **labels)
    assert counted(after) == counted(before) + 1 and counted(after, code="OK") == counted(before, code="OK") + 1


def test_a_stream_takes_tiffs_and_types(vision):
    sent = volume(5, 23, 17)
    tiff = pictures.tiff(sent)
    single = restore(vision, raw(sent), type=TYPES["uint8"])
    _, answer, received, _ = streamed(
        vision, [header(tiff, restoration=dict(type=TYPES["uint8"]), request_id="r"), *parts(tiff, 100)])
    assert received == single.voxels
    assert answer.request_id == "r"


def test_progress_comes_while_it_is_computed(vision):
    sent = volume(24, 96, 96)
    progress, _, received, _ = streamed(vision, [header(sent, "slow"), data(sent.tobytes())])
    assert len(progress) > 3 and progress == sorted(progress) and progress[0] < 0.5
    found = numpy.frombuffer(received, "uint16").astype(float)
    whole = voxels(restore(vision, raw(sent))).ravel().astype(float)
    assert len(numpy.unique(whole)) > 100
    assert abs(found - whole).max() <= 1, "tiles leave no seams"


def test_what_is_no_stream_of_a_volume_is_refused(daemon, vision):
    sent = volume(4, 8, 8)
    bytes_ = sent.tobytes()
    check(broken(vision, []), INVALID, ["part", "'header'"])
    check(broken(vision, [data(b"x")]), INVALID, ["the first has to be 'header'"])
    check(broken(vision, [header(sent), data(bytes_[:-1])]), INVALID, ["511 bytes came", "announced 512"])
    check(broken(vision, [header(sent), data(bytes_), data(b"x")]), INVALID, ["more than the 512 bytes"])
    check(broken(vision, [header(sent), header(sent)]), INVALID, ["header", "twice"])
    check(broken(vision, [header(sent, size=511)]), INVALID, ["header.raw", "are 512"])
    check(broken(vision, [header(b"", size=0)]), INVALID, ["header.bytes", "at least 1"])
    check(broken(vision, [header(sent, "segmenter")]), INVALID, ["does segmentation", "Predict"])
    check(broken(vision, [header(sent, "nobody")]), NOT_FOUND, ["nobody"])
    check(broken(vision, [header(b"no TIFF"), data(b"no TIFF")]), INVALID, ["volume: not a readable TIFF"])
    huge = header(b"", size=None)
    huge.header.bytes = 16_000_001
    before = daemon.metrics().total("saccade_requests_total", model="denoiser", code="INVALID_ARGUMENT")
    check(broken(vision, [huge]), INVALID, ["16000001", "--max-inflight-bytes"])
    assert daemon.metrics().total("saccade_requests_total", model="denoiser", code="INVALID_ARGUMENT") == before + 1


def test_a_volume_holds_room_as_it_comes(vision):
    sent = volume(60, 360, 360)
    announced, is_silent, goes_on, second_is_done = (threading.Event() for _ in range(4))

    def slowly():
        yield header(sent)
        announced.set()
        is_silent.wait()
        yield from parts(sent.tobytes())[:-1]
        goes_on.set()
        second_is_done.wait()

    call = vision.restore(slowly(), timeout=60)
    announced.wait()
    assert "announced" in broken(vision, [header(sent)]).details(), "what has not come holds no room"
    is_silent.set()
    goes_on.wait()
    eventually(lambda: "in flight" in broken(vision, [header(sent)]).details(), "the bytes that came are held")
    check(broken(vision, [header(sent)]), EXHAUSTED, ["--max-inflight-bytes"])
    call.cancel()
    second_is_done.set()
    eventually(lambda: "announced" in broken(vision, [header(sent)]).details(), "a cancelled stream gives its room back")


def test_a_cancelled_stream_stops_being_computed(daemon, vision):
    sent = volume(60, 240, 240)
    call = vision.restore(iter([header(sent, "slow"), *parts(sent.tobytes(), 1_000_000)]), timeout=120)
    next(iter(call))
    assert daemon.metrics().value("saccade_inflight_requests") == 1
    call.cancel()
    eventually(lambda: daemon.metrics().value("saccade_inflight_requests") == 0, "nothing is in flight")
    assert restore(vision, raw(volume(4, 8, 8)), "slow").shape.depth == 4


def test_a_volume_that_does_not_come_is_given_up(start, restorers, tmp_path):
    write_model(tmp_path / "models", "denoiser", restorers["denoiser"], max_batch_size=1)
    running = start(tmp_path / "models", "--upload-timeout-seconds=1").await_ready()
    sent, given_up = volume(4, 8, 8), threading.Event()

    def stalling():
        yield header(sent)
        given_up.wait()

    with running.vision() as made:
        call = made.restore(stalling(), timeout=60)
        with pytest.raises(grpc.RpcError) as error:
            next(iter(call))
        given_up.set()
        check(error.value, grpc.StatusCode.DEADLINE_EXCEEDED, ["did not come", "--upload-timeout-seconds"])
        eventually(lambda: running.metrics().value("saccade_inflight_requests") == 0, "its room is given back")
        assert restore(made, raw(sent)).shape.depth == 4


def test_headers_without_volumes_leave_room_for_others(start, restorers, tmp_path):
    write_model(tmp_path / "models", "denoiser", restorers["denoiser"], max_batch_size=1)
    running = start(tmp_path / "models", "--max-inflight-requests=2").await_ready()
    sent, given_up = volume(4, 8, 8), threading.Event()

    def stalling(told):
        yield header(sent)
        told.set()
        given_up.wait()

    with running.vision() as made:
        announced = [threading.Event() for _ in range(20)]
        calls = [made.restore(stalling(told), timeout=60) for told in announced]
        for told in announced:
            told.wait()
        assert restore(made, raw(sent)).shape.depth == 4
        assert not any(call.done() for call in calls), "none was refused"
        for call in calls:
            call.cancel()
        given_up.set()


def test_tensors_and_files_give_the_same(daemon, vision):
    sent = volume(5, 23, 17, "float32")
    single = voxels(restore(vision, raw(sent)))
    tiff = pictures.tiff(sent)
    element = len(tiff).to_bytes(4, "little") + tiff
    with daemon.inference() as inference:
        answers = [
            inference.model_infer(infer_request("denoiser", [2], 2 * element, datatype="BYTES")),
            inference.model_infer(infer_request("denoiser", [2, 1, *sent.shape], 2 * sent.tobytes())),
        ]
        described = inference.model_metadata(message("inference.ModelMetadataRequest")(name="denoiser"))
    assert [output.name for output in described.outputs] == ["restored"]
    for answer in answers:
        assert list(answer.outputs[0].shape) == [2, *sent.shape]
        restored = numpy.frombuffer(answer.raw_output_contents[0], "<f4").reshape(2, *sent.shape)
        assert numpy.array_equal(restored[0], single) and numpy.array_equal(restored[1], single)


def test_the_model_says_what_it_takes(vision):
    model = vision.get_model(get_model_request("denoiser"))
    assert (model.task, model.max_voxels, model.max_frames) == ("restoration", 128 << 20, 0)


def test_what_is_no_volume_is_refused(vision):
    sent = volume(2, 3, 4)
    picture = pictures.encoded(pictures.pixels(1))
    check(refused(vision.predict, predict_request(model="denoiser", encoded=picture)), INVALID, ["takes volumes"])
    check(refused(vision.predict, predict_request(model="segmenter", volume=raw(sent))), INVALID, ["takes one picture"])
    wrong = raw(sent)
    wrong.raw.voxels += b"x"
    check(refused(vision.predict, predict_request(model="denoiser", volume=wrong)), INVALID, ["volume.raw.voxels", "48"])
    coloured = message("saccade.v1.Volume")(tiff=pictures.encoded(pictures.pixels(1), "TIFF"))
    check(refused(vision.predict, predict_request(model="denoiser", volume=coloured)), INVALID, ["not greyscale"])
    nan = sent.astype("float32")
    nan[0, 0, 0] = numpy.nan
    error = refused(vision.predict, predict_request(model="denoiser", volume=raw(nan)))
    check(error, INVALID, ["volume: ", "not finite (NaN) at element [0,0,0]"])
    nan[0, 0, 0], nan[1, 2, 3] = 0, numpy.inf
    stored = message("saccade.v1.Volume")(tiff=pictures.tiff(nan))
    check(refused(vision.predict, predict_request(model="denoiser", volume=stored)), INVALID,
          ["volume: ", "not finite (infinity) at element [1,2,3]"])

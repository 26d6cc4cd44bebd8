"""Tests PredictStream: order, errors of single items, the bound, deadlines, cancellation, drain."""

import queue
import threading

import grpc
import numpy
import pytest

import pictures
from harness import DEADLINE_SECONDS, Daemon, eventually
from messages import Vision, message, predict_request
from tiny_models import Identity, assert_close, write_model

INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, RESOURCE_EXHAUSTED, UNAVAILABLE = 3, 4, 5, 8, 14
HANG = 99
BOUND = 6


@pytest.fixture(scope="module")
def volumes(tmp_path_factory):
    """The identity model, one volume per pass; the pass hangs for a while if a volume begins with HANG. One thread prepares
    the volumes: with two, a volume could be computed before the one that was sent before it, and hangs."""
    root = tmp_path_factory.mktemp("identity")
    write_model(root, "identity", Identity(hang_at=str(HANG), hang_seconds="4"), max_batch_size=1)
    flags = (f"--max-stream-requests={BOUND}", "--max-message-bytes=4000000", "--allow-drills", "--decode-threads=1")
    with Daemon(root, *flags, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


def total(daemon, name):
    return daemon.metrics().total(name)


def inflight(daemon):
    return total(daemon, "saccade_inflight_requests")


def item(timeout=None, **fields):
    made = message("saccade.v1.PredictStreamRequest")(request=predict_request(**fields))
    if timeout is not None:
        made.timeout.FromNanoseconds(int(timeout * 1e9))
    return made


def volume(first=0, height=1, width=4, request_id="", timeout=None):
    voxels = numpy.zeros(height * width, numpy.float32)
    voxels[0] = first
    shape = message("saccade.v1.VolumeShape")(depth=1, height=height, width=width, type=3)
    raw = message("saccade.v1.RawVolume")(shape=shape, voxels=voxels.tobytes())
    sent = message("saccade.v1.Volume")(raw=raw)
    return item(model="identity", request_id=request_id, volume=sent, timeout=timeout)


class Stream:
    """A stream whose requests are sent by the test one by one."""

    def __init__(self, channel, timeout=DEADLINE_SECONDS):
        self.requests = queue.Queue()
        self.answers = Vision(channel).predict_stream(iter(self.requests.get, None), timeout=timeout)

    def send(self, *sent):
        for one in sent:
            self.requests.put(one)
        return self

    def end(self):
        self.requests.put(None)
        return self


def test_every_request_is_answered_in_its_order_as_predict_would(daemon, tiny):
    sizes = [(tiny.resize, tiny.resize), (320, 200), (90, 300)]
    sent = [pictures.encoded(pictures.pixels(number, *sizes[number % 3])) for number in range(30)]
    options = message("saccade.v1.ClassificationOptions")(top_k=tiny.classes)
    with daemon.channel() as channel:
        requests = [
            item(model="gathering", request_id=str(number), encoded=one, classification=options)
            for number, one in enumerate(sent)
        ]
        answers = list(Stream(channel).send(*requests).end().answers)
        assert [answer.index for answer in answers] == list(range(30))
        assert [answer.request_id for answer in answers] == [str(number) for number in range(30)]
        for number, answer in enumerate(answers):
            assert answer.WhichOneof("outcome") == "answer", answer.error
            alone = Vision(channel).predict(
                predict_request(model="gathering", encoded=sent[number], classification=options)
            )
            # Computed alone or in a shared batch, the result is bit-identical.
            assert answer.answer.classification == alone.classification
            assert (answer.answer.picture_width, answer.answer.picture_height) == sizes[number % 3]
            assert answer.answer.timings.total.ToNanoseconds() > 0


def test_an_error_is_its_items_alone(daemon):
    good = pictures.encoded(pictures.pixels(1))
    with daemon.channel() as channel:
        stream = Stream(channel).send(
            item(model="tiny", encoded=good, request_id="first"),
            item(model="no_such_model", encoded=good, request_id="unknown"),
            item(model="tiny", encoded=pictures.truncated_jpeg(), request_id="cut"),
            item(model="tiny", encoded=good, request_id="x" * 200),
            item(model="tiny", encoded=good, timeout=-1),
            message("saccade.v1.PredictStreamRequest")(),
            item(model="tiny", encoded=good, request_id="last"),
        )
        answers = list(stream.end().answers)
    assert [answer.index for answer in answers] == list(range(7))
    assert [answer.WhichOneof("outcome") for answer in answers] == ["answer", *["error"] * 5, "answer"]
    unknown, cut, named, timed, empty = (answer.error for answer in answers[1:6])
    assert unknown.code == NOT_FOUND and "no_such_model" in unknown.message
    assert cut.code == INVALID_ARGUMENT and "truncated" in cut.message
    assert (named.code, named.field, answers[3].request_id) == (INVALID_ARGUMENT, "request_id", "")
    assert (timed.code, timed.field) == (INVALID_ARGUMENT, "timeout")
    assert (empty.code, empty.field) == (INVALID_ARGUMENT, "model")
    assert [answers[at].request_id for at in (0, 1, 2, 6)] == ["first", "unknown", "cut", "last"]


def test_bytes_that_are_no_message_are_one_items_error(daemon):
    good = item(model="tiny", encoded=pictures.encoded(pictures.pixels(1))).SerializeToString()
    with daemon.channel() as channel:
        call = channel.stream_stream("/saccade.v1.Vision/PredictStream")
        answers = list(call(iter([good, b"\xff\xff", good]), timeout=DEADLINE_SECONDS))
    outcomes = [message("saccade.v1.PredictStreamResponse").FromString(answer) for answer in answers]
    assert [one.WhichOneof("outcome") for one in outcomes] == ["answer", "error", "answer"]
    assert outcomes[1].error.code == INVALID_ARGUMENT and "PredictStreamRequest" in outcomes[1].error.message


def test_an_empty_stream_ends_well(daemon):
    with daemon.channel() as channel:
        assert list(Stream(channel).end().answers) == []


def test_answers_wait_for_those_before_them(volumes):
    with volumes.channel() as channel:
        sent = volume(HANG, request_id="slow"), item(model="none"), volume(1, request_id="a"), volume(2)
        answers = list(Stream(channel).send(*sent).end().answers)
    assert [answer.index for answer in answers] == [0, 1, 2, 3]
    assert [answer.WhichOneof("outcome") for answer in answers] == ["answer", "error", "answer", "answer"]
    voxels = numpy.frombuffer(answers[2].answer.restoration.voxels, numpy.float32)
    assert_close(voxels, [1, 0, 0, 0])


def test_no_more_than_the_bound_is_in_flight(volumes):
    with volumes.channel() as channel:
        stream = Stream(channel).send(volume(HANG), *[volume(number) for number in range(3 * BOUND)]).end()
        eventually(lambda: inflight(volumes) == BOUND, "as many as the bound are taken")
        most = inflight(volumes)
        for index, answer in enumerate(stream.answers):
            assert (answer.index, answer.WhichOneof("outcome")) == (index, "answer")
            most = max(most, inflight(volumes))
        assert index == 3 * BOUND
    # The one that was answered last counts until its memory is returned, which the answer does not wait for.
    assert BOUND <= most <= BOUND + 1


def test_a_client_that_does_not_read_is_read_no_further(volumes):
    """A response has 1 MB, and a stream may hold 4 MB: the number of requests taken stays bounded, and none is lost."""
    side, count = 500, 60
    with volumes.channel(**{"grpc.http2.lookahead_bytes": 65536, "grpc.http2.bdp_probe": 0}) as channel:
        before = total(volumes, "nv_inference_request_success")
        stream = Stream(channel).send(*[volume(number, side, side) for number in range(count)]).end()
        settled = [-1]

        def has_settled():
            now = total(volumes, "nv_inference_request_success") - before
            same, settled[0] = now == settled[0] and now > 0, now
            return same and inflight(volumes) == 0

        eventually(has_settled, "the daemon has stopped taking requests")
        assert settled[0] < count / 2
        assert [answer.index for answer in stream.answers] == list(range(count))


def test_an_item_has_a_deadline_of_its_own(volumes):
    with volumes.channel() as channel:
        sent = volume(HANG), volume(1, timeout=0.1), volume(2, timeout=DEADLINE_SECONDS)
        answers = list(Stream(channel).send(*sent).end().answers)
    assert [answer.WhichOneof("outcome") for answer in answers] == ["answer", "error", "answer"]
    # RESOURCE_EXHAUSTED: the queue may know by now how long such a request takes.
    assert answers[1].error.code in (DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED)
    assert "deadline" in answers[1].error.message


def test_the_streams_deadline_ends_it(volumes):
    with volumes.channel() as channel:
        stream = Stream(channel, timeout=0.3).send(volume(HANG))
        with pytest.raises(grpc.RpcError) as error:
            for answer in stream.answers:  # the daemon may know by now how long such a request takes
                assert answer.error.code == grpc.StatusCode.DEADLINE_EXCEEDED.value[0]
        assert error.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        stream.end()
    eventually(lambda: inflight(volumes) == 0, "the daemon has forgotten it")


def test_a_cancelled_stream_drops_what_waits(volumes):
    before = total(volumes, "nv_inference_exec_count")
    with volumes.channel() as channel:
        stream = Stream(channel).send(volume(HANG), *[volume(number) for number in range(20)])
        eventually(lambda: inflight(volumes) == BOUND, "requests are taken")
        stream.answers.cancel()
        stream.end()
        eventually(lambda: inflight(volumes) == 0, "the daemon has forgotten them")
    assert total(volumes, "nv_inference_exec_count") - before <= 1


def test_a_model_that_is_full_tells_when_to_come_again(start, tmp_path):
    hang = tmp_path / "hang"
    hang.touch()
    models = tmp_path / "models"
    write_model(
        models, "identity", Identity(hang_at=str(HANG), hang_file=str(hang)), max_batch_size=1,
        default_queue_policy="{ max_queue_size: 1 }",
    )
    daemon = start(models, "--allow-drills").await_ready()
    with daemon.channel() as channel:
        stream = Stream(channel).send(volume(HANG))
        eventually(lambda: inflight(daemon) == 1, "the first is computed")
        stream.send(*[volume(number) for number in range(8)]).end()
        eventually(lambda: total(daemon, "saccade_shed_total") > 0, "some find the queue full")
        hang.unlink()
        answers = list(stream.answers)
    refused = [answer.error for answer in answers if answer.WhichOneof("outcome") == "error"]
    assert refused and answers[0].WhichOneof("outcome") == "answer"
    for error in refused:
        assert (error.code, error.reason) == (RESOURCE_EXHAUSTED, "QUEUE_FULL")
        assert error.retry_after.ToNanoseconds() > 0


def test_a_drain_answers_what_was_taken_and_refuses_the_rest(start, tmp_path):
    hang = tmp_path / "hang"
    hang.touch()
    models = tmp_path / "models"
    write_model(models, "identity", Identity(hang_at=str(HANG), hang_file=str(hang)), max_batch_size=1)
    # One thread that prepares the volumes: with two, the second volume could be computed before the first one hangs.
    flags = ("--lame-duck-seconds=0", "--drain-timeout-seconds=60", "--allow-drills", "--decode-threads=1")
    daemon = start(models, *flags).await_ready()
    with daemon.channel() as channel:
        stream = Stream(channel).send(volume(HANG), *[volume(number, request_id="taken") for number in range(3)])
        eventually(lambda: inflight(daemon) == 4, "all are taken")
        daemon.terminate()
        eventually(lambda: "finishing accepted requests" in daemon.log(), "the daemon drains")
        stream.send(volume(1, request_id="late")).end()
        hang.unlink()
        answers = list(stream.answers)
    assert [answer.WhichOneof("outcome") for answer in answers] == [*["answer"] * 4, "error"]
    assert answers[4].error.code == UNAVAILABLE and answers[4].request_id == "late"
    assert daemon.exit_code() == 0


def test_an_idle_stream_does_not_hold_up_the_end(start, repository):
    daemon = start(repository, "--lame-duck-seconds=0").await_ready()
    with daemon.channel() as channel:
        stream = Stream(channel).send(item(model="tiny", encoded=pictures.encoded(pictures.pixels(1))))
        assert next(stream.answers).WhichOneof("outcome") == "answer"
        daemon.terminate()
        assert daemon.exit_code() == 0
        with pytest.raises(grpc.RpcError) as ended:
            next(stream.answers)
        # A status of the daemon's: its item was answered, so that nobody must be told that the call was refused.
        assert ended.value.code() == grpc.StatusCode.UNAVAILABLE
        assert ended.value.details().startswith("the server is shutting down")
        stream.end()


def test_many_streams_at_once(daemon, tiny):
    picture = pictures.encoded(pictures.pixels(7, tiny.resize, tiny.resize))
    found = []

    def run():
        with daemon.channel() as channel:
            requests = [item(model="gathering", encoded=picture, request_id=str(number)) for number in range(20)]
            found.append([answer.request_id for answer in Stream(channel).send(*requests).end().answers])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[str(number) for number in range(20)]] * 4

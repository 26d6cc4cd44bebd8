"""How a job treats what daemons answer, against a stand-in that answers as told."""

import contextlib
import dataclasses
import logging
import pathlib
import random
import subprocess
import sys
import threading
import types

import grpc
import pytest

from contents import check_each_once, rows_of
from saccade.bulk import BulkError, Job, run, sender
from saccade.bulk.engines import Service
from saccade.bulk.plan import Question
from saccade.bulk.worker import Limits
from saccade.connection import TLS
from saccade.v1 import vision_pb2 as pb
from stand_in import failed, overloaded


def job_of(tmp_path, *stand_ins, count=100, **options):
    """Every input has another content and another size, so that its row tells which answer it got."""
    inputs = tmp_path / "in"
    inputs.mkdir(exist_ok=True)
    for number in range(count):
        (inputs / f"{number:04}.jpg").write_bytes(b"x" * (number + 1))
    given = {"shard_items": 16, "service": Service(addresses=tuple(one.address for one in stand_ins)), **options}
    return Job(inputs=[str(inputs)], output=str(tmp_path / "out"), question=Question("any"), **given)


def check_rows(tmp_path, count, without=()):
    rows = rows_of(tmp_path / "out")
    check_each_once(rows, count)
    for row in rows:
        if row["index"] not in without:
            assert row["error_code"] is None, row
            assert row["result"][0]["class"] == row["index"] + 1
    return {row["index"]: row for row in rows}


def test_rejections_and_failures_are_repeated_until_each_input_has_its_answer_once(tmp_path, stand_in):
    chance = random.Random(5)
    unlucky = [overloaded(), failed(grpc.StatusCode.UNAVAILABLE), failed(grpc.StatusCode.CANCELLED)]

    def plan(content, attempt):
        return chance.choice(unlucky) if attempt < 4 and chance.random() < 0.4 else None

    stand_in.plan = plan
    report = run(job_of(tmp_path, stand_in, count=300))
    assert (report.inputs, report.failed) == (300, 0)
    check_rows(tmp_path, 300)
    assert len(stand_in.answered) == 300 and set(stand_in.answered.values()) == {1}


def test_a_failure_of_one_input_is_its_row(tmp_path, stand_in):
    told = {
        b"x" * 11: failed(grpc.StatusCode.INVALID_ARGUMENT, "not a picture"),
        b"x" * 12: failed(grpc.StatusCode.INTERNAL, "the pass failed"),
        # Without a hint when to come again, it is the input that is too large.
        b"x" * 13: failed(grpc.StatusCode.RESOURCE_EXHAUSTED, "too large"),
        b"x" * 14: failed(grpc.StatusCode.DEADLINE_EXCEEDED, "too late"),
    }
    stand_in.plan = lambda content, attempt: told.get(content)
    assert run(job_of(tmp_path, stand_in)).failed == 4
    rows = check_rows(tmp_path, 100, without=range(10, 14))
    codes = {index: (rows[index]["error_code"], rows[index]["error"]) for index in range(10, 14)}
    assert codes == {10: ("INVALID_ARGUMENT", "not a picture"), 11: ("INTERNAL", "the pass failed"),
                     12: ("RESOURCE_EXHAUSTED", "too large"), 13: ("DEADLINE_EXCEEDED", "too late")}
    attempts = [stand_in.attempts[b"x" * size] for size in range(11, 15)]
    assert attempts == [1, 3, 1, 3]


@pytest.mark.parametrize("code", ["UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND", "UNIMPLEMENTED"])
def test_what_would_fail_for_every_input_ends_the_job(tmp_path, stand_in, code):
    stand_in.plan = lambda content, attempt: failed(grpc.StatusCode[code], "as told")
    with pytest.raises(BulkError, match="rejects the job: as told"):
        run(job_of(tmp_path, stand_in))
    assert not list((tmp_path / "out").glob("*.parquet"))
    assert not list((tmp_path / "out" / "_job" / "unfinished").iterdir())


def test_a_model_of_another_task_ends_the_job(tmp_path, stand_in):
    stand_in.task = "stereo"
    with pytest.raises(BulkError, match="has the task stereo"):
        run(job_of(tmp_path, stand_in))


def test_results_that_coco_cannot_hold_are_rejected_before_anything_is_sent(tmp_path, stand_in):
    job = dataclasses.replace(job_of(tmp_path, stand_in), output=str(tmp_path / "found.json"))
    with pytest.raises(BulkError, match="COCO JSON holds detections; write this model's results to a folder"):
        run(job)
    assert not stand_in.attempts and not (tmp_path / "found.json").exists()


def test_parts_that_coco_cannot_hold_are_rejected_too(tmp_path, stand_in):
    job = job_of(tmp_path, stand_in)
    run(job)
    (tmp_path / "out").rename(tmp_path / "found.json.parts")
    with pytest.raises(BulkError, match="COCO JSON holds detections"):
        run(dataclasses.replace(job, output=str(tmp_path / "found.json")))


def test_a_question_for_the_model_that_is_wrong_ends_the_job(tmp_path, stand_in):
    stand_in.no_model = (grpc.StatusCode.INVALID_ARGUMENT, "the name is too long")
    with pytest.raises(BulkError, match="rejects the job: the name is too long"):
        run(job_of(tmp_path, stand_in, limits=Limits(patience_seconds=1)))


def test_a_job_that_waits_for_a_daemon_says_so_once(tmp_path, stand_in, monkeypatch, caplog):
    # Each question for the model takes six seconds of a clock that stands still otherwise.
    monkeypatch.setattr(sender, "time", types.SimpleNamespace(monotonic=lambda: 6.0 * stand_in.questions))
    caplog.set_level(logging.INFO, "saccade.bulk")
    stand_in.state, stand_in.reason = pb.Model.LOADING, "it is read"
    with pytest.raises(BulkError):
        run(job_of(tmp_path, stand_in, limits=Limits(patience_seconds=20)))
    (said,) = [record.getMessage() for record in caplog.records if record.name == "saccade.bulk"]
    assert said == f"waits for {stand_in.address}, 20 s at most: model any is LOADING: it is read"


@pytest.mark.parametrize(
    ("service", "said"),
    [
        (Service(addresses=("http://127.0.0.1:8001",)), "expected HOST:PORT, without http:// or https://; the option tls connects"),
        (Service(addresses=("127.0.0.1:8001", "far:8001"), token="secret"), "the daemon at far:8001 .* in clear text; set tls"),
        (Service(addresses=("127.0.0.1:8001",), tls=TLS("/nothing.pem")), "the daemon at 127.0.0.1:8001 .*No such file"),
    ],
)
def test_options_that_cannot_be_end_the_job_before_a_folder_is_made(tmp_path, service, said):
    with pytest.raises(BulkError, match=said):
        run(job_of(tmp_path, service=service, count=1))
    assert not (tmp_path / "out").exists()


def test_no_more_requests_are_in_flight_than_are_allowed(tmp_path, stand_in):
    stand_in.seconds = 0.005
    run(job_of(tmp_path, stand_in, count=200, limits=Limits(max_in_flight=6)))
    check_rows(tmp_path, 200)
    assert 1 < stand_in.most_at_once <= 6


def test_rejections_bring_the_requests_in_flight_down_to_what_the_daemon_takes(tmp_path, stand_in):
    stand_in.room, stand_in.seconds = 3, 0.004
    run(job_of(tmp_path, stand_in, count=400))
    check_rows(tmp_path, 400)
    # A sender that kept 64 in flight would be rejected about twenty times for each answer.
    assert sum(stand_in.attempts.values()) < 2.5 * 400


def test_a_daemon_that_goes_and_comes_back_is_waited_for(tmp_path, stand_in):
    def plan(content, attempt):
        if len(stand_in.answered) >= 40 and not gone.is_set():
            gone.set()

    gone = threading.Event()
    stand_in.plan, stand_in.seconds = plan, 0.002

    def restart():
        gone.wait()
        stand_in.stop()
        stand_in.start(stand_in.address)

    restarter = threading.Thread(target=restart)
    restarter.start()
    run(job_of(tmp_path, stand_in))
    restarter.join()
    check_rows(tmp_path, 100)


def test_a_daemon_that_stays_away_ends_the_job_and_the_same_job_goes_on_later(tmp_path, stand_in):
    job = job_of(tmp_path, stand_in, limits=Limits(patience_seconds=1))
    stand_in.plan = lambda content, attempt: failed(grpc.StatusCode.UNAVAILABLE) if len(content) > 50 else None
    with pytest.raises(BulkError, match="nothing was answered .* for 1 s"):
        run(job)
    complete = [row["index"] for part in (tmp_path / "out").glob("*.parquet") for row in rows_of(part)]
    assert complete
    stand_in.plan = lambda content, attempt: None
    assert run(job).resumed == len(complete)
    check_rows(tmp_path, 100)
    # What was complete was not sent again.
    assert {stand_in.attempts[b"x" * (index + 1)] for index in complete} == {1}


@contextlib.contextmanager
def mortal(tmp_path, *deadly):
    """A daemon that ends of inputs of these sizes, and is started again at the same address. Yields the address."""
    program, starting, over, running = str(pathlib.Path(__file__).with_name("mortal.py")), threading.Lock(), [], []

    def start(address):
        command = [sys.executable, program, address, str(tmp_path / "record"), *map(str, deadly)]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))

    start("127.0.0.1:0")
    address = running[0].stdout.readline().split()[1].removeprefix("grpc=")

    def restart():
        while running[-1].wait() == 1:
            with starting:
                if over:
                    return
                start(address)

    restarter = threading.Thread(target=restart)
    restarter.start()
    try:
        yield address
    finally:
        with starting:
            over.append(True)
            running[-1].terminate()
        restarter.join()
        for one in running:
            one.stdout.close()


def record(tmp_path):
    return (tmp_path / "record").read_text().splitlines()


def test_an_input_that_ends_the_daemon_is_sent_alone_and_becomes_a_row(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(sender, "_RECONNECT_SECONDS", 0.0)
    caplog.set_level(logging.INFO, "saccade.bulk")
    with mortal(tmp_path, 20, 21) as address:
        report = run(job_of(tmp_path, service=Service((address,)), limits=Limits(max_in_flight=8)))
    assert report.failed == 2
    rows = check_rows(tmp_path, 100, without=(19, 20))
    for index in (19, 20):
        assert rows[index]["error_code"] == "UNAVAILABLE"
        assert rows[index]["error"].startswith("the daemon ended 3 times while this input was in flight, and once more when it "
                                               "was sent alone (")
    came = record(tmp_path)
    for size in ("20", "21"):
        # The other one may have ended the daemon before this one was read.
        attempts = [line for line in came if line.split()[0] == size]
        assert len(attempts) <= 4 and attempts[-1] == f"{size} alone", came
    said = [record.getMessage() for record in caplog.records if "given up" in record.getMessage()]
    assert sorted(said) == [f"input {number:04}.jpg is given up, because the daemon ends when it is sent" for number in (19, 20)]


def test_a_job_whose_daemon_ends_of_every_input_ends_and_can_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(sender, "_RECONNECT_SECONDS", 0.0)
    monkeypatch.setattr(sender, "_MAX_ENDS_IN_A_ROW", 3)
    with mortal(tmp_path, *range(1, 11)) as address:
        with pytest.raises(BulkError, match="ended 3 times in a row without an answer, the last time with input 00.*its log says why"):
            run(job_of(tmp_path, service=Service((address,)), count=10))
    with mortal(tmp_path) as address:
        assert run(job_of(tmp_path, service=Service((address,)), count=10)).failed == 0
    check_rows(tmp_path, 10)


def test_a_daemon_that_rejects_a_request_itself_has_not_ended(tmp_path, stand_in):
    # As one that is draining, more often than an end is taken for an input's fault.
    stand_in.plan = lambda content, attempt: failed(grpc.StatusCode.UNAVAILABLE, "draining") if attempt < 6 else None
    assert run(job_of(tmp_path, stand_in, count=2)).failed == 0
    check_rows(tmp_path, 2)


def test_patience_begins_with_the_first_failure_not_with_the_last_answer(tmp_path, stand_in, monkeypatch):
    # Each attempt of the second input takes a thousand seconds of a clock that stands still otherwise. The first one fails.
    monkeypatch.setattr(sender, "time", types.SimpleNamespace(monotonic=lambda: 1000.0 * stand_in.attempts[b"xx"]))
    unavailable = failed(grpc.StatusCode.UNAVAILABLE)
    stand_in.plan = lambda content, attempt: unavailable if len(content) == 2 and attempt == 0 else None
    job = job_of(tmp_path, stand_in, count=2, limits=Limits(max_in_flight=1, patience_seconds=600))
    assert run(job).failed == 0
    check_rows(tmp_path, 2)


def test_a_model_that_does_not_become_ready_ends_the_job_with_its_reason(tmp_path, stand_in):
    stand_in.state, stand_in.reason = pb.Model.UNAVAILABLE, "the weights are missing"
    with pytest.raises(BulkError, match="for 1 s .model any is UNAVAILABLE: the weights are missing"):
        run(job_of(tmp_path, stand_in, count=3, limits=Limits(patience_seconds=1)))


def test_shards_go_to_whichever_of_several_daemons_is_free(tmp_path, stand_in):
    from stand_in import StandIn

    # One daemon answers nothing until the other one has been asked for all but two shards, the most that a worker holds.
    others = threading.Event()

    def free(content, attempt):
        if len(stand_in.attempts) >= 320 - 2 * 16:
            others.set()

    def held(content, attempt):
        others.wait(60)

    stand_in.plan = free
    with StandIn() as slow:
        slow.plan = held
        run(job_of(tmp_path, stand_in, slow, count=320))
        check_rows(tmp_path, 320)
        fast_share = sum(stand_in.answered.values())
        assert fast_share + sum(slow.answered.values()) == 320
        assert fast_share >= 320 - 2 * 16

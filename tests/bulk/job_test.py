"""A job's folder: what may lie in it, who may write to it, and how it goes on."""

import dataclasses
import errno
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import threading
from concurrent import futures

import grpc
import pyarrow.parquet
import pytest

from contents import check_each_once, rows_of
from full_disk import check_full_disk
from saccade.bulk import BulkError, engines, plan, run
from saccade.bulk.sender import Connections
from saccade.bulk.worker import Limits, Part
from sender_test import job_of
from stand_in import failed


def test_other_options_are_rejected_while_the_folder_holds_a_job(tmp_path, stand_in):
    job = job_of(tmp_path, stand_in)
    run(job)
    for other in (
        dataclasses.replace(job, shard_items=17),
        dataclasses.replace(job, question=dataclasses.replace(job.question, model="b")),
        dataclasses.replace(job, inputs=[str(tmp_path)]),
    ):
        with pytest.raises(BulkError, match="holds a job with other"):
            run(other)
    # The same job again finds everything done.
    before = sum(stand_in.answered.values())
    assert run(job).resumed == 100
    assert sum(stand_in.answered.values()) == before


def test_inputs_that_came_later_are_not_mixed_into_a_job(tmp_path, stand_in):
    job = job_of(tmp_path, stand_in)
    run(job)
    (tmp_path / "in" / "0000a.jpg").write_bytes(b"later")
    (tmp_path / "out" / "part-000003.parquet").unlink()
    run(job)
    rows = rows_of(tmp_path / "out")
    check_each_once(rows, 100)
    assert all(row["result"][0]["class"] == row["index"] + 1 for row in rows)


def test_a_folder_with_other_files_is_left_alone(tmp_path, stand_in):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(BulkError, match="is not empty .mine.txt is in it"):
        run(job_of(tmp_path, stand_in))
    assert [path.name for path in (tmp_path / "out").glob("*") if path.name != "_job"] == ["mine.txt"]


def test_two_jobs_do_not_write_to_one_folder(tmp_path, stand_in):
    job = job_of(tmp_path, stand_in)
    run(job)
    with open(tmp_path / "out" / "_job" / "lock") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(BulkError, match="another job is writing"):
            run(job)


def test_a_damaged_part_is_named(tmp_path, stand_in):
    job = job_of(tmp_path, stand_in)
    run(job)
    part = tmp_path / "out" / "part-000002.parquet"
    part.write_bytes(part.read_bytes()[:-9])
    with pytest.raises(BulkError, match="part-000002.parquet cannot be read"):
        run(job)
    part.unlink()
    assert run(job).resumed == 84
    check_each_once(rows_of(tmp_path / "out"), 100)


def long_failure(content):
    text = random.Random(len(content)).randbytes(1000).hex()
    return failed(grpc.StatusCode.INVALID_ARGUMENT, text)


def command(job, stand_in, *more):
    return [sys.executable, "-m", "saccade.bulk.command", *job.inputs, "-o", job.output, "--model", "any", "--url",
            stand_in.address, "--shard-items", "16", *more]


def test_a_job_that_was_killed_goes_on_with_the_same_command(tmp_path, stand_in):
    job = job_of(tmp_path, stand_in)
    killed = {}

    def plan(content, attempt):
        if len(stand_in.answered) > 50 and not killed:
            killed[0] = True
            running.send_signal(signal.SIGKILL)

    stand_in.plan = plan
    running = subprocess.Popen(command(job, stand_in), stdout=subprocess.PIPE, text=True)
    assert running.wait(60) == -signal.SIGKILL
    again = subprocess.run(command(job, stand_in), capture_output=True, text=True, timeout=60)
    assert again.returncode == 0, again.stderr
    assert "100 inputs" in again.stdout and "by an earlier run" in again.stdout
    check_each_once(rows_of(tmp_path / "out"), 100)
    assert not list((tmp_path / "out" / "_job" / "unfinished").iterdir())


def with_small_files(most_bytes):
    """The start of a command whose files may not grow beyond that: they fail like a disk without room. A process of its
    own sets it, because this one has threads, so that no Python may run in it between fork and exec."""
    program = "import os, resource, sys; size = int(sys.argv[1]); " \
              "resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)); os.execv(sys.argv[2], sys.argv[2:])"
    return [sys.executable, "-c", program, str(most_bytes)]


@pytest.mark.parametrize(("most_bytes", "said"), [(100, "the plan cannot be written"), (4500, "a part cannot be written")])
def test_a_disk_that_is_full_ends_the_job_without_a_broken_part(tmp_path, stand_in, most_bytes, said):
    job = job_of(tmp_path, stand_in)
    # Texts that do not compress make the later parts larger than the earlier ones.
    stand_in.plan = lambda content, attempt: long_failure(content) if len(content) > 40 else None
    ended = subprocess.run([*with_small_files(most_bytes), *command(job, stand_in)], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert said in ended.stderr and "Traceback" not in ended.stderr, ended.stderr
    for part in (tmp_path / "out").glob("*.parquet"):
        assert len(rows_of(part)) == 16
    again = subprocess.run(command(job, stand_in), capture_output=True, text=True, timeout=60)
    assert again.returncode == 0, again.stderr
    check_each_once(rows_of(tmp_path / "out"), 100)


def test_a_disk_that_fills_in_the_middle_is_named_and_costs_no_input(tmp_path, service, disk):
    check_full_disk(tmp_path, service, disk, "local")


def test_a_worker_that_an_earlier_run_left_does_not_end_the_next_run(tmp_path):
    os.makedirs(plan.scratch(str(tmp_path)))
    before = plan.begin(str(tmp_path), "before")
    (tmp_path / "_job" / "unfinished" / "000000-part").write_bytes(b"half")
    now = plan.begin(str(tmp_path), "now")
    assert os.listdir(plan.scratch(str(tmp_path))) == []
    before.tell(BulkError("of the run before"))
    assert now.told() is None
    assert "this run is over" in before.told()
    now.tell(BulkError("of this run"))
    assert now.told() == "of this run"


def test_a_process_of_spark_gives_up_the_daemon_of_an_earlier_run(tmp_path, stand_in, monkeypatch):
    monkeypatch.setattr(engines, "_kept", None)
    run(job_of(tmp_path, stand_in))
    closed = []

    class Counted(engines.Service):
        def connections(self, job, machine, number=0):
            return Connections(lambda: stand_in.address, lambda: closed.append(machine))

    first, again, second = (engines.Work(str(tmp_path / "out"), run_name, Counted(), Limits())
                            for run_name in ("first", "first", "second"))
    worker = engines._spark_worker(first)
    assert engines._spark_worker(again) is worker and not closed
    assert engines._spark_worker(second) is not worker and len(closed) == 1


class Made:
    """What a part asks of a plan."""

    def __init__(self, folder):
        self.folder = str(folder)
        os.makedirs(plan.scratch(self.folder))

    def part(self, shard_id):
        return os.path.join(self.folder, f"part-{shard_id:06}.parquet")


def test_a_part_that_is_discarded_while_a_thread_writes_it_is_closed_after_that(tmp_path, monkeypatch):
    part = Part(Made(tmp_path), 0, pyarrow.schema([("error_code", pyarrow.string())]))
    writing, may_end, order = threading.Event(), threading.Event(), []
    write = pyarrow.parquet.ParquetWriter.write_table

    def slow(self, table):
        writing.set()
        assert may_end.wait(60)
        write(self, table)
        order.append("written")

    monkeypatch.setattr(pyarrow.parquet.ParquetWriter, "write_table", slow)
    with futures.ThreadPoolExecutor(2) as threads:
        added = threads.submit(part.add, [{"error_code": None}])
        assert writing.wait(60)
        discarded = threads.submit(lambda: (part.discard(), order.append("discarded")))
        with pytest.raises(futures.TimeoutError):
            discarded.result(0.2)
        may_end.set()
        added.result(60)
        discarded.result(60)
    assert order == ["written", "discarded"]
    assert not os.path.exists(tmp_path / "part-000000.parquet")


def test_a_part_that_was_discarded_does_not_appear(tmp_path):
    part = Part(Made(tmp_path), 0, pyarrow.schema([("error_code", pyarrow.string())]))
    part.discard()
    part.add([{"error_code": None}])
    part.finish()
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []
    assert os.listdir(plan.scratch(str(tmp_path))) == []


def test_a_part_that_a_full_disk_cut_off_takes_no_room(tmp_path, disk):
    made = Made(disk.folder / "out")
    disk.leave(1 << 20)
    part = Part(made, 0, pyarrow.schema([("error_code", pyarrow.string())]))
    with pytest.raises(OSError, match="No space left on device"):
        # Larger than the room, and it does not compress.
        part.add([{"error_code": random.Random(0).randbytes(2 << 20).hex()}])
        part.finish()
    part.discard()
    assert not os.path.exists(made.part(0)) and os.listdir(plan.scratch(made.folder)) == []
    # This test still holds the part, as the traceback of a failure does: an open file would keep the room.
    assert disk.size() - disk.free() == disk.used_by_files()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--model-repository", "/tmp"], "exclude each other"),
        (["--saccaded-flag=--cores=1"], "is for daemons that are started"),
        (["--model-repository", "/tmp", "--tls"], "--token-file and --tls are for running daemons"),
        (["--engine-address", "host:6379"], "--engine-address is for clusters; add --on ray or --on spark"),
        (["--url", "http://host:8001"], "is http://host:8001; expected HOST:PORT, such as 127.0.0.1:8001, without http:// or "
         "https://; --tls connects with TLS"),
        (["--url", "host"], "is host; expected HOST:PORT"),
        (["--url", "far:8001", "--token-file", os.devnull], "the daemon at 127.0.0.1"),
        (["--token-file", "/nothing"], "--token-file /nothing cannot be read"),
        (["--shard-items", "0"], "expected 1 to 100000"),
        (["--priority", "101"], "expected -100 to 100"),
    ],
)
def test_wrong_options_say_what_is_expected(tmp_path, stand_in, more, said):
    job = job_of(tmp_path, stand_in, count=1)
    ended = subprocess.run(command(job, stand_in, *more), capture_output=True, text=True, timeout=60)
    assert ended.returncode in (1, 2)
    assert said in ended.stderr and "Traceback" not in ended.stderr
    assert not (tmp_path / "out").exists()


def test_a_plan_of_a_stranger_is_rejected(tmp_path, stand_in):
    job = job_of(tmp_path, stand_in)
    run(job)
    path = tmp_path / "out" / "_job" / "plan.json"
    described = json.loads(path.read_text())
    path.write_text(json.dumps({**described, "shards": 99}))
    with pytest.raises(BulkError, match="expected 99"):
        run(job)
    path.write_text(json.dumps({name: value for name, value in described.items() if name != "shards"}))
    with pytest.raises(BulkError, match="cannot be read .'shards'.; delete the folder, and start again"):
        run(job)
    path.write_text("{")
    with pytest.raises(BulkError, match="cannot be read"):
        run(job)


def test_a_damaged_list_of_shards_is_named(tmp_path, stand_in):
    job = job_of(tmp_path, stand_in)
    run(job)
    path = tmp_path / "out" / "_job" / "shards.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(BulkError, match="the plan in .* cannot be read .*; delete the folder, and start again"):
        run(job)
    path.unlink()
    with pytest.raises(BulkError, match="the plan in .* cannot be read .*No such file"):
        run(job)


def test_a_disk_that_cannot_lock_files_is_named(tmp_path, stand_in, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(BulkError, match="out cannot be locked: No locks available; name a folder on a disk that can lock"):
        run(job_of(tmp_path, stand_in, count=1))


def test_a_folder_in_place_of_the_file_for_coco_is_named_before_anything_is_sent(tmp_path, stand_in):
    (tmp_path / "found.json").mkdir()
    with pytest.raises(BulkError, match="found.json is a folder; expected the name of a file"):
        run(dataclasses.replace(job_of(tmp_path, stand_in, count=1), output=str(tmp_path / "found.json")))
    assert not stand_in.attempts and not (tmp_path / "found.json.parts").exists()


@pytest.mark.parametrize(("engine", "missing"), [("ray", "ray"), ("spark", "pyspark"), ("spark", "pandas")])
def test_an_engine_that_is_not_installed_says_what_to_install(tmp_path, stand_in, monkeypatch, engine, missing):
    # Python then finds no module of that name.
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(BulkError) as failure:
        run(job_of(tmp_path, stand_in, count=1, engine=engine))
    assert str(failure.value).startswith(f"--on {engine} needs the package {missing}, which cannot be imported (")
    assert str(failure.value).endswith(f"; install it with: pip install 'saccade[{engine}]'")
    assert not (tmp_path / "out").exists()


def test_a_failure_with_a_name_that_is_not_utf_8_is_told_to_all_workers(tmp_path):
    os.makedirs(plan.scratch(str(tmp_path)))
    failure = plan.begin(str(tmp_path), "now")
    failure.tell(BulkError("a\udcff.tar is gone"))
    assert failure.told() == "a\\udcff.tar is gone"

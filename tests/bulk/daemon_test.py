"""Jobs with real daemons that the job starts on this machine."""

import asyncio
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from concurrent import futures

import pycocotools.coco
import pytest

from conftest import MODEL
from contents import check_each_once, rows_of, write_files
from processes import after_parts, await_end, processes
from saccade.bulk import BulkError, Job, keeper, run
from saccade.bulk.daemons import Lease
from saccade.bulk.engines import Service
from saccade.bulk.keeper import keep
from saccade.bulk.plan import Question
from saccade.bulk.sender import Connections


def job_of(tmp_path, service, inputs, **options):
    given = {"shard_items": 10, "output": str(tmp_path / "out"), "question": Question(MODEL), **options}
    return Job(inputs=[str(inputs)], service=service, **given)


def test_a_damaged_picture_in_a_hundred_and_a_daemon_that_is_killed_cost_no_input(tmp_path, service):
    inputs = write_files(tmp_path / "in", 300, damaged={7, 123, 299})
    killed = []

    def kill():
        (daemon,) = processes("bin/saccaded ", str(tmp_path / "repository"), "!keeper")
        killed.append(daemon)
        os.kill(daemon, signal.SIGKILL)

    watcher = after_parts(tmp_path / "out", 5, kill)
    report = run(job_of(tmp_path, service, inputs))
    watcher.join()
    assert killed and (report.inputs, report.failed) == (300, 3)
    rows = rows_of(tmp_path / "out")
    check_each_once(rows, 300)
    for row in rows:
        assert row["key"] == f"{row['index']:05}.jpg"
        if row["index"] in (7, 123, 299):
            assert row["error_code"] == "INVALID_ARGUMENT" and "not a readable picture" in row["error"]
        else:
            assert (row["width"], row["height"], row["model_version"]) == (48, 32, 1) and row["result"]


def test_detections_become_one_file_in_coco_s_form(tmp_path, service):
    scenes = pathlib.Path(__file__).parents[2] / "models" / "demo" / "scenes"
    inputs = tmp_path / "in"
    inputs.mkdir()
    for path in sorted(scenes.iterdir())[:3]:
        (inputs / path.name).write_bytes(path.read_bytes())
    (inputs / "damaged.png").write_bytes(b"no picture")
    output = tmp_path / "found.json"
    report = run(job_of(tmp_path, service, inputs, output=str(output), question=Question("detector")))
    assert report.failed == 1
    found = pycocotools.coco.COCO(str(output))
    assert sorted(image["file_name"] for image in found.imgs.values()) == sorted(
        path.name for path in inputs.iterdir() if path.name != "damaged.png")
    assert found.anns, "the scenes have objects"
    for annotation in found.anns.values():
        mask = found.annToMask(annotation)
        image = found.imgs[annotation["image_id"]]
        assert mask.shape == (image["height"], image["width"]) and mask.any()
        left, top, width, height = annotation["bbox"]
        assert 0 <= left and left + width <= image["width"] + 1e-3 and 0 <= annotation["score"] <= 1
    assert [one["code"] for one in json.loads(output.read_text())["errors"]] == ["INVALID_ARGUMENT"]


def test_results_that_coco_cannot_hold_are_rejected(tmp_path, service):
    inputs = write_files(tmp_path / "in", 2)
    with pytest.raises(BulkError, match="COCO JSON holds detections"):
        run(job_of(tmp_path, service, inputs, output=str(tmp_path / "found.json")))


def address_of(lease):
    return asyncio.run(Connections(lease.find).address())


def test_workers_on_a_machine_share_a_daemon_that_ends_with_the_last_of_them(tmp_path, service):
    leases = [Lease("job", "machine", list(service.command), 120) for _ in range(3)]
    addresses = {address_of(lease) for lease in leases}
    other = Lease("job", "another machine", list(service.command), 120)
    assert len(addresses) == 1 and address_of(other) not in addresses
    assert len(processes("bin/saccaded ", str(tmp_path / "repository"), "!keeper")) == 2
    for lease in [*leases, other]:
        lease.close()


# A daemon that is ready at once, and stops when the test lets it.
SLOW_TO_STOP = """
import http.server, os, signal, sys, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
port = server.server_address[1]
print(f"listening grpc=127.0.0.1:{port} http=127.0.0.1:{port}", flush=True)
signal.sigwait([signal.SIGTERM])
# Both wait for the other side.
open(os.path.join(sys.argv[1], "stopping"), "w").close()
open(os.path.join(sys.argv[1], "may_stop")).close()
"""


def test_a_worker_does_not_get_the_address_of_a_daemon_that_is_stopping(tmp_path):
    # Reading the first one waits for the daemon to begin to stop, writing the second one lets it go on.
    os.mkfifo(tmp_path / "stopping")
    os.mkfifo(tmp_path / "may_stop")
    command = [sys.executable, "-c", SLOW_TO_STOP, str(tmp_path)]
    first = Lease("job", str(tmp_path), command, 60)
    before = address_of(first)
    first.close()
    (tmp_path / "stopping").read_bytes()
    second = Lease("job", str(tmp_path), command, 60)
    with futures.ThreadPoolExecutor(1) as threads:
        address = threads.submit(address_of, second)
        with pytest.raises(futures.TimeoutError):
            address.result(0.3)
        (tmp_path / "may_stop").write_bytes(b"")
        assert address.result(60) != before
    second.close()
    # The second one may stop, too.
    (tmp_path / "stopping").read_bytes()
    (tmp_path / "may_stop").write_bytes(b"")


def test_the_address_that_a_killed_keeper_has_left_is_not_taken(tmp_path, monkeypatch):
    lease = Lease("job", str(tmp_path), ["/nothing/saccaded"], 60)
    started = []
    monkeypatch.setattr(lease, "_start", lambda: started.append(1))
    folder = pathlib.Path(lease._folder)
    (folder / "address").write_text("127.0.0.1:1")
    assert lease.find() is None and started
    # The next keeper has its lock, and its daemon loads.
    with open(folder / "keeper", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert lease.find() is None
    lease.close()


def test_a_keeper_removes_the_address_that_a_killed_one_has_left(tmp_path):
    (tmp_path / "address").write_text("127.0.0.1:1")
    with pytest.raises(FileNotFoundError):
        keep(str(tmp_path), ["/nothing/saccaded"])
    assert not (tmp_path / "address").exists()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("/nothing/saccaded",), "/nothing/saccaded cannot be started: No such file"),
        (("/bin/sh", "-c", "echo what is wrong; exit 3"), "code 3; its last lines:\nwhat is wrong"),
    ],
)
def test_a_daemon_that_does_not_start_ends_the_job_with_its_last_lines(tmp_path, command, said):
    with pytest.raises(BulkError, match="the daemon does not start") as error:
        run(job_of(tmp_path, Service(command=(*command, str(tmp_path))), write_files(tmp_path / "in", 2)))
    assert said in str(error.value)


def test_an_input_that_ends_the_daemon_does_not_end_the_job(tmp_path):
    inputs = tmp_path / "in"
    inputs.mkdir()
    for number in range(30):
        (inputs / f"{number:05}.jpg").write_bytes(b"x" * (number + 1))
    program = str(pathlib.Path(__file__).with_name("mortal.py"))
    service = Service(command=(sys.executable, program, "127.0.0.1:0", str(tmp_path / "record"), "13"))
    report = run(job_of(tmp_path, service, inputs))
    assert (report.inputs, report.failed) == (30, 1)
    rows = rows_of(tmp_path / "out")
    check_each_once(rows, 30)
    (lost,) = [row for row in rows if row["error_code"]]
    assert lost["key"] == "00012.jpg" and "and once more when it was sent alone" in lost["error"]
    await_end(program, str(tmp_path))


# A daemon that is ready at its first starts until its address is there, and then ends. Later it does not start.
SHORT_LIVED = """
import http.server, os, sys, threading
folder, lives = sys.argv[1], int(sys.argv[2])
with open(os.path.join(folder, "starts"), "a+") as starts:
    starts.write("x")
    starts.seek(0)
    if len(starts.read()) > lives:
        print("no life is left")
        os._exit(4)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
port = server.server_address[1]
print(f"listening grpc=127.0.0.1:{port} http=127.0.0.1:{port}", flush=True)
while not os.path.exists(os.path.join(folder, "address")):
    os.sched_yield()
os._exit(1)
"""


def test_a_keeper_gives_up_only_a_daemon_that_does_not_start(tmp_path, monkeypatch):
    monkeypatch.setattr(keeper, "_FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(keeper, "_MAX_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(keeper, "_LOOK_SECONDS", 0.01)
    with open(tmp_path / "leases", "a") as lease:
        fcntl.flock(lease, fcntl.LOCK_SH)
        keep(str(tmp_path), [sys.executable, "-c", SHORT_LIVED, str(tmp_path), "7"])
    # Seven ends after the daemon was ready, and then five starts that failed.
    assert (tmp_path / "starts").read_text() == "x" * 12
    assert (tmp_path / "failed").read_text() == "saccaded ended with code 4; its last lines:\nno life is left"


# A daemon that loads until it is ended. Opening a pipe waits for the other side.
LOADING = """#!/bin/sh
: > "{folder}/started"
read -r never < "{folder}/never"
"""


def test_one_interrupt_ends_a_job_whose_daemon_is_still_loading(tmp_path):
    for name in ("started", "never"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "repository").mkdir()
    program = tmp_path / "saccaded"
    program.write_text(LOADING.format(folder=tmp_path))
    program.chmod(0o755)
    inputs = write_files(tmp_path / "in", 2)
    # A shell that starts the tests in the background lets them ignore interrupts.
    job = subprocess.Popen(
        ["env", "--default-signal=INT", sys.executable, "-m", "saccade.bulk.command", str(inputs), "-o", str(tmp_path / "out"),
         "--model", "any", "--saccaded", str(program), "--model-repository", str(tmp_path / "repository")],
        stderr=subprocess.PIPE, text=True)
    try:
        (tmp_path / "started").read_bytes()
        job.send_signal(signal.SIGINT)
        _, said = job.communicate(timeout=60)
    finally:
        job.kill()
        job.wait(60)
    assert (job.returncode, said) == (1, "saccade bulk: interrupted; the same command goes on where it stopped\n")
    # The keeper ends the daemon.
    await_end(str(program))


def test_a_folder_for_temporary_files_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(BulkError, match="Not a directory: .*; set TMPDIR to a folder that can be written"):
        run(job_of(tmp_path, Service(command=("/nothing/saccaded",)), write_files(tmp_path / "in", 2)))

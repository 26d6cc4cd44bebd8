"""Tests that pictures are decoded in worker processes: what happens to one of them costs one request, and they end when
the daemon does. Each worker is found as a child of the daemon's helper process."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

import grpc
import pytest

from harness import DEADLINE_SECONDS, Daemon, binary, eventually, of_threads
from messages import predict_request
from pictures import encoded, pixels

REQUEST = predict_request(model="tiny", encoded=encoded(pixels(3), "JPEG"))


@pytest.fixture
def daemon(repository, tmp_path):
    with Daemon(repository, "--decode=process", "--decode-threads=1", log_folder=tmp_path) as running:
        yield running.await_ready()


def children(process):
    """A process is a child of the thread that started it."""
    return [int(child) for text in of_threads(process, "children") for child in text.split()]


def named(process):
    return pathlib.Path(f"/proc/{process}/comm").read_text().strip()


def state(process):
    """The letter of the process's state; None once it has ended and its parent knows."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def helper_of(daemon):
    (helper,) = [child for child in children(daemon.process.pid) if named(child) == "decode-helper"]
    return helper


def worker_of(daemon):
    (worker,) = children(helper_of(daemon))
    return worker


def predict(daemon, timeout=DEADLINE_SECONDS):
    with daemon.vision() as vision:
        return vision.predict(REQUEST, timeout=timeout)


def metric(daemon, name, **labels):
    return daemon.metrics()[(name, frozenset(labels.items()))]


def ends(daemon, reason):
    return metric(daemon, "saccade_decode_worker_ends_total", reason=reason)


def in_flight(daemon):
    """Starts a call whose worker does not go on; returns the worker, and a function that awaits the call's error."""
    worker = worker_of(daemon)
    os.kill(worker, signal.SIGSTOP)
    errors = []

    def call():
        try:
            predict(daemon)
        except grpc.RpcError as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    eventually(lambda: metric(daemon, "saccade_decode_workers", state="busy") == 1, "a worker was busy")

    def result():
        thread.join(DEADLINE_SECONDS)
        assert errors, "the call succeeded, or goes on"
        return errors[0]

    return worker, result


def test_a_crash_costs_one_request(daemon):
    predict(daemon)
    worker, result = in_flight(daemon)
    os.kill(worker, signal.SIGSEGV)
    os.kill(worker, signal.SIGCONT)
    error = result()
    assert error.code() == grpc.StatusCode.INTERNAL
    reference = re.search(r"reference (decode-\d+-\d+)", error.details())[1]
    eventually(lambda: re.search(rf"decode worker.*SIGSEGV.*{reference}", daemon.log()), "the log had the reference")
    predict(daemon)
    assert worker_of(daemon) != worker
    assert ends(daemon, "crashed") == 1
    assert metric(daemon, "saccade_decode_worker_starts_total") == 2


def test_a_deadline_ends_the_worker_that_loops(daemon):
    worker = worker_of(daemon)
    os.kill(worker, signal.SIGSTOP)

    def is_ended():
        # On a busy machine the deadline may pass before the call comes to the worker.
        try:
            predict(daemon, timeout=0.3)
        except grpc.RpcError as late:
            assert late.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        return state(worker) is None

    eventually(is_ended, "its process has ended")
    eventually(lambda: ends(daemon, "not_wanted") >= 1, "its end is counted")
    predict(daemon)


def test_a_client_that_leaves_ends_the_worker(daemon):
    worker = worker_of(daemon)
    os.kill(worker, signal.SIGSTOP)
    with daemon.vision() as vision:
        call = vision.predict.future(REQUEST)
        eventually(lambda: metric(daemon, "saccade_decode_workers", state="busy") == 1, "a worker was busy")
        call.cancel()
        eventually(lambda: ends(daemon, "not_wanted") == 1, "the worker was ended")
    predict(daemon)


def test_a_worker_that_is_killed_while_it_waits_costs_nothing(daemon):
    worker = worker_of(daemon)
    os.kill(worker, signal.SIGKILL)
    eventually(lambda: state(worker) in (None, "Z"), "the worker has ended")
    predict(daemon)
    assert ends(daemon, "idle") == 1


def test_a_helper_that_is_killed_is_replaced(daemon):
    helper, worker = helper_of(daemon), worker_of(daemon)
    os.kill(helper, signal.SIGKILL)
    eventually(lambda: state(worker) in (None, "Z"), "the worker has ended with its helper")
    predict(daemon)
    assert helper_of(daemon) != helper


def test_workers_are_confined(daemon):
    worker = worker_of(daemon)
    status = pathlib.Path(f"/proc/{worker}/status").read_text()
    # 2 is a filter.
    assert re.search(r"^Seccomp:\s+2$", status, re.M)
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.M)
    # Of the daemon's descriptors it has the three that it needs, and /dev/null.
    files = {os.readlink(f"/proc/{worker}/fd/{file}") for file in os.listdir(f"/proc/{worker}/fd")}
    assert {re.sub(r"\d+", "N", file) for file in files} == {
        "/dev/null", "socket:[N]", "/memfd:saccade-decode (deleted)", "/proc/N/statm"}


def test_workers_end_with_a_daemon_that_is_killed(daemon):
    processes = [helper_of(daemon), worker_of(daemon)]
    daemon.process.kill()
    for process in processes:
        eventually(lambda process=process: state(process) in (None, "Z"), "it has ended with the daemon")


def test_a_picture_that_is_being_decoded_survives_sigterm_to_all(repository, tmp_path):
    with Daemon(repository, "--decode=process", "--decode-threads=1", "--lame-duck-seconds=0",
                log_folder=tmp_path) as daemon:
        daemon.await_ready()
        processes = [helper_of(daemon), worker_of(daemon)]
        os.kill(processes[1], signal.SIGSTOP)
        with daemon.vision() as vision:
            call = vision.predict.future(REQUEST, timeout=DEADLINE_SECONDS)
            eventually(lambda: metric(daemon, "saccade_decode_workers", state="busy") == 1, "a worker was busy")
            # As systemd does it: to every process of the unit.
            for process in [daemon.process.pid, *processes]:
                os.kill(process, signal.SIGTERM)
            os.kill(processes[1], signal.SIGCONT)
            assert call.result().model == "tiny"
        assert daemon.exit_code() == 0
        for process in processes:
            assert state(process) is None


def test_threads_start_no_processes(repository, tmp_path):
    with Daemon(repository, "--decode=thread", log_folder=tmp_path) as daemon:
        daemon.await_ready()
        predict(daemon)
        assert children(daemon.process.pid) == []


# Runs a command where prctl(PR_SET_SECCOMP) fails with ENOSYS, as on a kernel without filters: by a filter.
WITHOUT_FILTERS = """
import ctypes, os, struct, sys
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 22, 38, 2
LOAD, EQUAL, RETURN, ALLOW, ENOSYS = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000 | 38
PRCTL = {"x86_64": 157, "aarch64": 167}[os.uname().machine]
program = b"".join(struct.pack("=HBBI", *one) for one in (
    (LOAD, 0, 0, 0), (EQUAL, 0, 3, PRCTL), (LOAD, 0, 0, 16), (EQUAL, 0, 1, PR_SET_SECCOMP), (RETURN, 0, 0, ENOSYS),
    (RETURN, 0, 0, ALLOW)))
kept = ctypes.create_string_buffer(program)
head = ctypes.create_string_buffer(struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(kept)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
assert libc.prctl(PR_SET_SECCOMP, FILTER, head, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_a_kernel_without_filters_decodes_on_threads_and_says_so(repository, tmp_path):
    with Daemon(repository, log_folder=tmp_path, under=(sys.executable, "-c", WITHOUT_FILTERS)) as daemon:
        daemon.await_ready()
        predict(daemon)
        told = " W .*own threads.*seccomp: Function not implemented"
        eventually(lambda: re.search(told, daemon.log()), "the log tells why")
        assert children(daemon.process.pid) == []


def test_processes_that_were_asked_for_have_to_be_possible(repository):
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_FILTERS, binary("saccaded"), f"--model-repository={repository}", "--host=127.0.0.1",
         "--grpc-port=0", "--http-port=0", "--metrics-port=0", "--decode=process"],
        capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert ended.returncode == 1
    assert "--decode=process" in ended.stderr and "pass --decode=thread" in ended.stderr

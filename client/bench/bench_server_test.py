"""What tools/bench_server reads: h2load's reports, nghttp's, and processor times in /proc."""

import os
import stat
import time

import pytest

from tools.bench_server import h2load
from tools.bench_server.load import LoadFailed, Measurement, take_turns
from tools.processor import TICKS, processor_seconds, spent, with_descendants

REPORT = """starting benchmark...
spawning thread #0: 8 total client(s). Timing-based test with 0s of warm-up time and 1s of main duration for measurements.
Application protocol: h2c

finished in 1.50s, 22642.67 req/s, 7.14MB/s
requests: 33964 total, 33996 started, 33964 done, 33964 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 33964 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 10.71MB (11226163) total, 100.09KB (102492) headers (space savings 96.27%), 9.59MB (10053344) data
                     min         max         mean         sd        +/- sd
time for request:       97us     15.75ms      1.32ms      1.33ms    90.84%
time for connect:      108us       252us       187us        47us    75.00%
time to 1st byte:     3.39ms      3.57ms      3.48ms        61us    62.50%
req/s           :    2716.37     2919.72     2829.42       70.35    62.50%
"""
ANSWER = """[  0.001] recv (stream_id=13) :status: 200
[  0.001] recv DATA frame <length=16384, flags=0x00, stream_id=13>
[  0.001] recv DATA frame <length=6189, flags=0x00, stream_id=13>
[  0.001] recv (stream_id=13) grpc-status: 0
"""


def test_a_report_of_h2load():
    found = h2load.parse(REPORT)
    assert (found.calls, found.received) == (33964, 10053344)
    assert found.seconds == pytest.approx(1.5, rel=1e-4)
    assert found.rate == pytest.approx(22642.67)
    assert found.mean == pytest.approx(1320)


@pytest.mark.parametrize("mean, microseconds", [("     332us", 332), ("    8.09ms", 8090), ("     1.25s", 1.25e6)])
def test_units_of_h2load(mean, microseconds):
    assert h2load.parse(REPORT.replace("    1.32ms", mean)).mean == pytest.approx(microseconds)


@pytest.mark.parametrize("was, now", [
    ("33964 succeeded, 0 failed", "33963 succeeded, 1 failed"),
    ("0 errored", "2 errored"),
    ("0 timeout", "1 timeout"),
    ("status codes: 33964 2xx, 0 3xx, 0 4xx", "status codes: 33960 2xx, 0 3xx, 4 4xx"),
    ("33964 succeeded", "0 succeeded"),
    ("time for request:", "time:"),
])
def test_h2load_with_requests_that_failed(was, now):
    assert was in REPORT
    with pytest.raises(LoadFailed, match="h2load"):
        h2load.parse(REPORT.replace(was, now))


def test_turns_are_added():
    first, second = h2load.parse(REPORT), h2load.parse(REPORT.replace("1.32ms", "2.64ms"))
    first.processor_seconds = second.processor_seconds = 0.33964
    turns = iter([first, second])
    total = take_turns({"h2load": lambda seconds: next(turns)}, 2, 2)["h2load"]
    assert total.calls == 2 * 33964
    assert total.mean == pytest.approx(1980)
    assert total.processor == pytest.approx(10)


def program(folder, name, output):
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{output}END\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return lambda **outputs: [program(tmp_path, name, output) for name, output in outputs.items()]


def test_the_answer_of_one_call(programs):
    programs(nghttp=ANSWER)
    assert h2load.check_answer("127.0.0.1:1", "request") == 16384 + 6189


@pytest.mark.parametrize("answer", [ANSWER.replace("grpc-status: 0", "grpc-status: 12"), ANSWER.replace("grpc-status", "x"), ""])
def test_one_call_that_failed(programs, answer):
    programs(nghttp=answer)
    with pytest.raises(LoadFailed, match="expected grpc-status 0"):
        h2load.check_answer("127.0.0.1:1", "request")


def test_every_answer_must_have_its_message(programs):
    server = type("Server", (), {"url": "127.0.0.1:1"})
    programs(nghttp=ANSWER.replace("16384", "296").replace("6189", "0"), h2load=REPORT)
    assert h2load.H2load(server, "request", 8, 4)(1).calls == 33964
    programs(h2load=REPORT.replace("10053344", "10053343"))
    with pytest.raises(LoadFailed, match="expected 296 each"):
        h2load.H2load(server, "request", 8, 4)(1)


def line(process, name, parent, user, system):
    return f"{process} ({name}) S {parent} 1 1 0 -1 4194560 1 0 0 0 {user} {system} 7 9 20 0 1 0 100 0 0\n"


def test_processor_time_in_a_line_of_proc():
    assert processor_seconds(line(7, "saccaded", 1, 150, 30)) == pytest.approx(180 / TICKS)
    assert processor_seconds(line(7, "odd) S 9 (name", 1, 150, 30)) == pytest.approx(180 / TICKS)


def test_processor_time_of_a_process_and_its_descendants():
    stats = [line(5, "grandchild", 9, 0, 8), line(7, "tritonserver", 1, 100, 0), line(8, "another", 1, 1000, 0),
             line(9, "python backend (stub)", 7, 10, 5)]
    assert with_descendants(7, stats) == pytest.approx(123 / TICKS)
    assert with_descendants(5, stats) == pytest.approx(8 / TICKS)


def test_processor_time_of_this_process():
    before, begun = spent(os.getpid()), time.process_time()
    while time.process_time() - begun < 0.1:
        pass
    assert spent(os.getpid()) - before >= 0.08


def test_processor_time_for_each_call():
    measured = Measurement([100] * 10, 1, answered=12, processor_seconds=0.0006)
    measured.add(Measurement([100] * 10, 1, answered=12, processor_seconds=0.0006))
    assert measured.processor == pytest.approx(50)
    assert measured.rate == pytest.approx(10)
